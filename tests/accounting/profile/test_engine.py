"""The engine of profiles part by part: transforms, residues, lines of their own, and trees."""

import math

import mpmath as mp
import numpy as np
import pytest
from mpmath import mpf

from fastpriv.accounting import PrivacyProfile
from fastpriv.accounting.profile.composition import Composition
from fastpriv.accounting.profile.engines.closed_form import CLOSED_FORM
from fastpriv.accounting.profile.engines.contour import DENSE_CONTOUR, _period
from fastpriv.accounting.profile.engines.large_loss import LARGE_LOSS
from fastpriv.accounting.profile.losses import Directed, Discrete, uniform_sums
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture
from fastpriv.accounting.profile.steps.laplace import MOST, Interval, laplace_delta
from fastpriv.accounting.profile.strategy import ContinuousCurve
from tests.accounting import trees


@pytest.mark.parametrize("spread", [1e-6, 3.0, 400.0])
@pytest.mark.parametrize("count", [2, 1000])
def test_sums_of_exponentials(spread, count):
    rng = np.random.default_rng(5)
    losses, weights, tau = spread * rng.normal(size=500), rng.random(500), 0.3
    values, error = uniform_sums(losses, weights, tau, count)
    fine = losses.astype(np.longdouble)
    for j in {0, 1, count // 2, count - 1}:
        turn = np.longdouble(j) * np.longdouble(tau) * fine
        truth = (weights * np.cos(turn)).sum() + 1j * (weights * np.sin(turn)).sum()
        # Losses are rounded to the grid like any number.
        allowed = error + j * tau * spread * 2.0**-50
        assert abs(values[j] - truth) <= allowed * weights.sum()
    assert error < 1e-12


def test_crowded_points_are_summed_to_the_last_digit():
    losses, weights = np.full(100_000, 0.125), np.full(100_000, 0.1)
    values, error = uniform_sums(losses, weights, 1.0, 4)
    assert abs(values[0] - 1e4) <= error * 1e4 < 1e-8


def laplace_by_convolution(e, k, t):
    """Delta of k releases by integrating that of k - 1 over the losses of one."""
    if k == 0:
        return max(1 - mp.exp(t), mpf(0))
    corners = {-e, e, *(t + (2 * j - k + 1) * e for j in range(k))}
    points = sorted(x for x in corners if -e <= x <= e)
    inner = mp.quad(
        lambda l: mp.exp((l - e) / 2) / 4 * laplace_by_convolution(e, k - 1, t - l), points
    )
    atoms = laplace_by_convolution(e, k - 1, t - e) / 2
    return inner + atoms + mp.exp(-e) / 2 * laplace_by_convolution(e, k - 1, t + e)


@pytest.mark.slow(but=["1.0-1.7"])
@pytest.mark.parametrize(("e", "t"), [(0.5, 0.0), (1.0, 1.7), (3.0, 0.2)])
def test_two_laplace_releases_by_convolution(e, t):
    with mp.workdps(20):
        truth = laplace_by_convolution(mpf(e), 2, mpf(t))
    low, high = laplace_delta(e, 2, t)
    assert low * (1 - 1e-14) <= truth <= high * (1 + 1e-14)
    assert high - low <= 1e-14


@pytest.mark.slow(only=["40-0.9"])
@pytest.mark.parametrize(("k", "level"), [(3, 0.2), (12, 0.5), (MOST, 0.9)])
def test_residues_and_the_contour_agree(k, level, monkeypatch):
    e = 0.7
    monkeypatch.setattr(CLOSED_FORM, "applies", lambda parts: False)
    curve = ContinuousCurve(Composition([(Directed(Interval(e, True)), k)], []))
    low, high = curve.delta(level * k * e)
    closed = laplace_delta(e, k, level * k * e)
    assert low <= closed[1]
    assert closed[0] <= high
    assert closed[1] - closed[0] <= 1e-12 * closed[1]


def test_residues_beyond_all_losses_and_for_tiny_noise():
    assert laplace_delta(1.0, 3, 3.1) == (0.0, 0.0)
    low, high = laplace_delta(1e6, 5, 1.0)
    assert 1.0 - 1e-15 <= low <= high == 1.0
    assert PrivacyProfile.laplace(1e-6).self_compose(2).delta(0.5).lower > 0.99


@pytest.mark.slow
@pytest.mark.parametrize(("k", "t"), [(2, 0.2455), (3, 0.3), (1000, 0.8)])
def test_jumps_and_many_angles_agree(k, t):
    """Where one large loss decides, both lines hold; that of jumps is the narrower."""
    step = GaussianMixture(1.0, ((1.0, 0.01 if k < 9 else 3e-4),))
    parts = Composition([(Directed(step), k)], [])
    c = parts.tilt_at(t)
    jumps, dense = (e.prepare(parts, t, c).bounds(t) for e in (LARGE_LOSS, DENSE_CONTOUR))
    assert max(jumps[0], dense[0]) <= min(jumps[1], dense[1])
    assert jumps[1] - jumps[0] <= (1e-9 if k < 9 else 1e-7) * jumps[1]


@pytest.mark.slow
def test_two_humps():
    found = PrivacyProfile.gaussian(1.0, 3e-4).self_compose(1000).epsilon(1e-18)
    assert found.lower <= 1.13526741568 <= found.upper
    assert found.width <= 1e-8 * found.upper


@pytest.mark.slow
def test_lattices_blurred_and_listed():
    """Two lattices can be listed, so that the blurred integral is seen to hold."""
    both = PrivacyProfile.discrete_gaussian(5.0).self_compose(600)
    both = both.compose(PrivacyProfile.discrete_gaussian(6.7).self_compose(900))
    exact = both.delta(45.0)
    losses = [(step.lower, k) for step, k in both.parts.items()]
    low, high = ContinuousCurve(Composition([], losses)).delta(45.0)
    assert low <= exact.upper
    assert exact.lower <= high
    assert high - low <= 1e-9 * high


@pytest.mark.slow
def test_many_lattices_are_narrow():
    profile = PrivacyProfile.discrete_gaussian(5.0).self_compose(20)
    for sigma in (6.7, 8.4, 10.1, 11.8):
        profile = profile.compose(PrivacyProfile.discrete_gaussian(sigma).self_compose(25))
    found = profile.epsilon(1e-10)
    assert found.width <= 1e-9 * found.upper


def test_levels_that_are_known():
    """Discrete Gaussian noise is zCDP like the continuous one; sampling does not lower mu."""
    rho = PrivacyProfile.discrete_gaussian(2.0, 3).self_compose(5).zcdp_level()
    assert rho.lower <= 5 * 9 / 8 <= rho.upper
    assert rho.width < 1e-13
    order = 2.0
    level = PrivacyProfile.discrete_gaussian(0.8).renyi_level(order)
    assert level.lower <= order / (2 * 0.8**2) * (1 + 1e-9)
    mu = PrivacyProfile.gaussian(2.0, 0.01).self_compose(36).gdp_level()
    assert mu.lower <= 3.0 <= mu.upper
    assert mu.width < 1e-12


@pytest.mark.slow
def test_truncated_samples_have_a_lower_end():
    of = PrivacyProfile.truncated_subsampled_gaussian
    loose = of(1000, 0.01, 30, 1.0).self_compose(100).epsilon(1e-5)
    assert 0.999 * loose.upper < loose.lower < loose.upper
    cut = of(1000, 0.01, 12, 1.0).self_compose(100)
    attained = cut.delta(0.5).lower
    kept = PrivacyProfile.gaussian(1.0, 0.01).self_compose(100).delta(0.5)
    assert 0.0 < attained < kept.upper
    assert PrivacyProfile.from_dict(cut.to_dict()).delta(0.5).lower == attained
    single = of(100, 0.3, 20, 1.0).delta(0.5)
    assert single.lower < single.upper


@pytest.mark.grid(every=3)
@pytest.mark.parametrize("seed", range(40))
def test_trees_of_finite_releases_and_gaussian_noise(seed):
    assert trees.check(seed, ("finite", "normal")) in ("finite", "normal")


@pytest.mark.parametrize("seed", [4, 6])
def test_trees_of_all_kinds(seed):
    assert trees.check(seed, ("few", "many"))


def test_no_large_loss_of_flipped_pairs():
    """Without the person losses are bounded: the other order is left to other lines."""
    step = GaussianMixture(1.0, ((1.0, 0.05),))
    side = ContinuousCurve(Composition([(Directed(step, True), 3)], []))
    assert not LARGE_LOSS.applies(side.parts)
    low, high = side.delta(0.05)
    assert 0.0 < low <= high < 1.0
    assert side.at_most(3.0 * -math.log1p(-0.05) + 1e-9) == 0.0
    assert side.at_most(0.05) >= low


@pytest.mark.slow
def test_discrete_gaussian_noise_whose_losses_are_too_many_to_list():
    """Discrete noise of a standard deviation of 300 is Gaussian noise to fifteen digits."""
    many = PrivacyProfile.discrete_gaussian(300.0).self_compose(1_000_000)
    result = many.epsilon(1e-6)
    truth = PrivacyProfile.gaussian(300.0).self_compose(1_000_000).epsilon(1e-6)
    assert result.lower <= truth.upper
    assert truth.lower <= result.upper <= result.lower * (1.0 + 1e-7)
    assert many.cases.guaranteed(1e-6) == result.upper


@pytest.mark.parametrize(("sigma", "count", "c"), [(1.3, 3, 0.5), (30.0, 400, 5.0), (60.0, 1, 0.1)])
def test_angles_beyond_which_moments_are_tiny(sigma, count, c):
    (step,) = PrivacyProfile.discrete_gaussian(sigma).parts
    measure = step.upper
    period, reach = _period(Discrete(measure), count, c)
    assert period == pytest.approx(2.0 * math.pi * sigma**2, rel=1e-12)
    losses, logs = measure.losses, (measure.logs + c * measure.losses).astype(float)
    law = np.exp(logs - np.logaddexp.reduce(logs))
    for v in np.linspace(reach, 0.5 * period, 200):
        size = abs(np.exp(1j * v * losses) @ law)
        assert count * math.log(size + 1e-300) <= -46.0 or reach == 0.5 * period
