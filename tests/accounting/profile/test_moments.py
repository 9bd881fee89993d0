"""Moments of losses: closed forms and sums over nodes against long arithmetic."""

import math

import mpmath as mp
import numpy as np
import pytest

from fastpriv import kernels
from fastpriv.accounting import PrivacyProfile, calibrate, calibration
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture
from fastpriv.accounting.profile.steps.laplace import Interval


def exact_moment(e, atoms, w):
    """E_Q e^(wL) of Laplace noise, or of the envelope of bounded range, of level e."""
    y, z = mp.mpf(e) / 2, (w - mp.mpf(1) / 2) * e
    ratio = mp.sinh(z) / z if z != 0 else mp.mpf(1)
    return mp.exp(-y) * (mp.cosh(z) + y * ratio) if atoms else ratio * y / mp.sinh(y)


@pytest.mark.parametrize("atoms", [True, False])
@pytest.mark.parametrize("e", [1e-7, 0.05, 1.9, 2.1, 60.0])
@pytest.mark.parametrize("c", [-2.0, 0.5, 1.0, 1.0 + 1e-6, 1.37, 8.0])
def test_closed_forms_of_moments_enclose_the_truth(e, atoms, c):
    angles = np.array([0.0, 1e-3, 0.7, 3.0, 45.0, 700.0])
    logs, errors = Interval(e, atoms).log_moments(c, angles, 1e-16)
    with mp.workdps(60):
        for angle, log, error in zip(angles.tolist(), logs.tolist(), errors.tolist(), strict=True):
            exact = exact_moment(e, atoms, mp.mpc(c, angle))
            assert abs(mp.exp(mp.mpc(log)) / exact - 1) <= mp.expm1(error)
        value, slope, curve = Interval(e, atoms).cumulant(c)
        at = [mp.diff(lambda w: mp.log(exact_moment(e, atoms, w)), mp.mpf(c), n) for n in (0, 1, 2)]
        assert value == pytest.approx(float(at[0]), rel=1e-9, abs=1e-25)
        assert slope == pytest.approx(float(at[1]), rel=1e-6, abs=1e-14 * e)
        assert curve == pytest.approx(float(at[2]), rel=1e-6)


@pytest.mark.parametrize("c", [0.3, 2.0, 40.0])
def test_blocks_of_angles_give_the_sums_of_single_ones(c):
    rng = np.random.default_rng(3)
    losses = np.sort(rng.normal(0.0, 0.4, 150))
    weights = rng.dirichlet(np.ones(150))
    angles = 0.37 * np.arange(5.0, 71.0)  # eight blocks and two more
    for name in ("excess_sums", "turned_sums"):
        kernel, given = getattr(kernels, name), (c,) if name == "excess_sums" else ()
        together, alone = np.empty((2, 66)), np.empty((2, 66))
        kernel(losses, weights, *given, angles, together)
        for k in range(66):
            one = np.empty((2, 1))
            kernel(losses, weights, *given, angles[k : k + 1], one)
            alone[:, k : k + 1] = one
        size = float((weights * np.exp(np.maximum(c * losses, 0.0))).sum())
        assert np.abs(together - alone).max() <= 1e-14 * (1.0 + c + angles[-1]) * size


@pytest.mark.parametrize("length", [64, 1000])
def test_sums_of_waves_are_the_transform(length):
    rng = np.random.default_rng(5)
    at, weights = rng.integers(-300, 300, 40), rng.dirichlet(np.ones(40))
    sums = np.empty((2, 21))
    kernels.wave_sums(at, weights, length, sums)
    turns = np.exp(2j * np.pi * (np.outer(np.arange(21), at) % length) / length)
    assert np.allclose(sums[0] + 1j * sums[1], turns @ weights, rtol=0.0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("down", [(), ((1.0, 0.1),)])
@pytest.mark.parametrize("c", [-6.0, -0.4, 0.7, 1.0, 9.0])
def test_guides_are_the_cumulants(c, down):
    pair = GaussianMixture(0.9, ((1.0, 0.1),), down)

    def log_moment(w):
        def integrand(x):
            first = mp.log(0.9 + 0.1 * mp.exp((x - 0.5 / 0.9) / 0.9))
            second = mp.log(0.9 + 0.1 * mp.exp((-x - 0.5 / 0.9) / 0.9)) if down else mp.mpf(0)
            return mp.npdf(x) * mp.exp(w * first + (1 - w) * second)

        return mp.log(mp.quad(integrand, [-25, -10, 0, 10, 25]))

    value, slope, curve = pair.cumulant(c)
    assert value == pytest.approx(float(log_moment(mp.mpf(c))), rel=1e-6, abs=1e-9)
    step = mp.mpf("1e-3")
    left, middle, right = (log_moment(c + sign * step) for sign in (-1, 0, 1))
    assert slope == pytest.approx(float((right - left) / (2 * step)), rel=1e-4, abs=1e-6)
    assert curve == pytest.approx(float((right - 2 * middle + left) / step**2), rel=1e-3)


def test_estimates_without_bounds_are_close():
    profile = PrivacyProfile.gaussian(1.0, 0.01).self_compose(1000)
    delta = profile.delta(1.5)
    assert profile.cases.rough(1.5, near=True) == pytest.approx(delta.upper, rel=1e-9)
    atoms = PrivacyProfile.laplace(1.0).compose(PrivacyProfile.from_epsilon_delta(0.1))
    assert math.isnan(atoms.cases.rough(0.5, near=True))  # such moments do not decay


def test_calibration_asks_for_few_proved_bounds(monkeypatch):
    asked, plain = [], calibration._Search._at

    def counted(self, x):
        asked.append(x)
        return plain(self, x)

    monkeypatch.setattr(calibration._Search, "_at", counted)
    noise = calibrate(
        lambda sigma: PrivacyProfile.gaussian(sigma, 0.01).self_compose(1000),
        epsilon=1.3,
        delta=1e-5,
    )
    assert noise.width <= 1e-9 * noise.upper
    assert len(set(asked)) <= 3
