"""Water-filling proved optimal by duality, and the Gaussian mechanism's two guarantees."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import fastpriv as fp
from fastpriv.mechanisms import (
    GaussianNoise,
    compare_gaussian,
    gaussian_delta,
    gaussian_distortion,
)
from oracles import noise as oracle


def leakage(signal, noise):
    """1/2 ln det(C_X + C_N)/det C_N in many digits."""
    signal, noise = mp.matrix(signal.tolist()), mp.matrix(noise.tolist())
    return (mp.log(mp.det(signal + noise)) - mp.log(mp.det(noise))) / 2


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=6),
    st.floats(1e-6, 0.999),
    st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_water_filling_is_optimal(values, share, seed):
    axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    signal = axes @ np.diag(values) @ axes.T
    signal = (signal + signal.T) / 2
    budget = share * float(np.trace(signal))
    noise = GaussianNoise(signal, budget)
    assert np.trace(noise.covariance) == pytest.approx(budget, rel=1e-12)
    exact = leakage(signal, noise.covariance)
    found = noise.leakage_bound()
    assert exact <= found * (1 + mpf("1e-14"))
    assert found <= exact * (1 + mpf("1e-5"))  # eigenvalues 1e12 apart are blurred by rounding
    # Any price gives a lower bound on what noise of this size can leak; the right one meets it.
    eigenvalues = mp.eigsy(mp.matrix(signal.tolist()), eigvals_only=True)
    level = max(noise._noise) * (max(noise._noise) + max(noise._signal)) / max(noise._signal)
    bound = oracle.water_filling_bound(list(eigenvalues), budget, 1 / (2 * mpf(level)))
    assert bound <= exact * (1 + mpf("1e-9"))
    assert exact <= bound * (1 + mpf("1e-9")) + mpf("1e-9")


def test_diagonal_covariance_to_the_last_digits():
    signal = [100.0, 3.0, 0.5, 1e-7]
    noise = GaussianNoise(np.diag(signal), 2.0)
    filled = np.diag(noise.covariance)
    level = filled * (filled + signal) / signal
    np.testing.assert_allclose(level, level[0], rtol=1e-13)  # the same water level everywhere
    assert filled.sum() == pytest.approx(2.0, rel=1e-15)
    exact = math.fsum(0.5 * math.log1p(v / s) for v, s in zip(signal, filled, strict=True))
    assert exact <= noise.leakage_bound() <= exact * (1 + 1e-12)


def test_scalar_and_scale():
    noise = GaussianNoise(4.0, 0.5)
    assert noise.covariance == pytest.approx(np.array([[0.5]]), rel=1e-15)
    assert noise.leakage_bound() == pytest.approx(math.log(3.0), rel=1e-14)
    for scale in (1e-290, 1e290):
        scaled = GaussianNoise(4.0 * scale, 0.5 * scale)
        assert scaled.leakage_bound() == pytest.approx(math.log(3.0), rel=1e-14)
    wide = GaussianNoise(np.diag([1.0, 1.0]), 1e-300)
    assert wide.leakage_bound() == pytest.approx(math.log(2e300), rel=1e-13)


def test_directions_without_variance_get_no_noise():
    signal = np.outer([1.0, 2.0, 2.0], [1.0, 2.0, 2.0])  # rank one, variance 9
    noise = GaussianNoise(signal, 1.0)
    np.testing.assert_allclose(noise.covariance, signal / 9.0, atol=1e-15)
    assert noise.leakage_bound() == pytest.approx(0.5 * math.log(10.0), rel=1e-13)


def test_ends_of_the_budget():
    signal = np.diag([4.0, 1.0])
    assert GaussianNoise(signal, 0.0).leakage_bound() == math.inf
    assert not GaussianNoise(signal, 0.0).covariance.any()
    almost = GaussianNoise(signal, math.nextafter(5.0, 0.0))
    assert not almost.deterministic
    assert almost.leakage_bound() > 0.6
    for enough in (5.0, 1e300):
        noise = GaussianNoise(signal, enough)
        assert noise.deterministic
        assert noise.leakage_bound() == 0.0
        with pytest.raises(fp.InvalidInput, match="mean"):
            _ = noise.covariance
    assert GaussianNoise(np.zeros((2, 2)), 0.0).leakage_bound() == 0.0
    assert "mean only" in repr(GaussianNoise(1.0, 2.0))


@pytest.mark.parametrize(("signal", "distortion", "message"), [
    ([[1.0, 2.0]], 1.0, "square"),
    ([[1.0, 2.0], [0.0, 1.0]], 1.0, "symmetric"),
    ([[1.0, 2.0], [2.0, 1.0]], 1.0, "negative eigenvalues"),
    ([[math.nan]], 1.0, "finite"),
    (-1.0, 1.0, "negative eigenvalues"),
    (1.0, -1.0, "distortion"),
    ("x", 1.0, "signal_covariance"),
])  # fmt: skip
def test_bad_arguments(signal, distortion, message):
    with pytest.raises(fp.InvalidInput, match=message):
        GaussianNoise(signal, distortion)


def test_numbers_at_the_ends_of_the_range():
    with pytest.raises(fp.InvalidInput, match="larger units"):
        GaussianNoise([[1e308, 0.0], [0.0, 1e308]], 1.0)
    assert GaussianNoise(1.0, 1e-320).leakage_bound() == pytest.approx(
        -0.5 * math.log(1e-320), rel=1e-12
    )


def test_example_3():
    # D = variance / (e^(2 f H(S)) - 1) for a leakage factor f of a secret of two bits.
    entropy = 2 * math.log(2.0)
    for factor in (0.5, 0.75, 1.0):
        found = gaussian_distortion(3.0, factor * entropy)
        exact = 3.0 / (math.exp(2.0 * factor * entropy) - 1.0)
        assert exact <= found <= exact * (1 + 1e-14)
        assert GaussianNoise(3.0, found).leakage_bound() == pytest.approx(factor * entropy)
    # Below a factor of 1/4 the printed distortion exceeds the variance: the mean is better.
    assert gaussian_distortion(3.0, 0.24 * entropy) == 3.0
    assert gaussian_distortion(3.0, 0.0) == 3.0
    assert 0.0 < gaussian_distortion(3.0, 400.0) < 1e-303


@given(st.floats(1e-3, 20.0), st.floats(-30.0, -0.5), st.floats(1e-3, 1e3))
@settings(max_examples=100, deadline=None)
def test_example_5(epsilon, log_delta, variance):
    delta = math.exp(log_delta)
    both = compare_gaussian(variance, epsilon, delta)
    assert both.distortion == pytest.approx(2 * math.log(2 / delta) / epsilon**2, rel=1e-14)
    # Either guarantee is read off the other: D = variance/(e^2L - 1).
    assert variance / math.expm1(2 * both.leakage_bound) == pytest.approx(both.distortion, rel=1e-9)
    exact = oracle.gaussian_delta(both.distortion, epsilon)
    assert exact <= both.delta <= exact * (1 + mpf("1e-11")) + mpf("1e-14")
    least = oracle.gaussian_delta(both.least_distortion, epsilon)
    assert delta * (1 - 1e-9) <= least <= delta
    assert both.least_leakage_bound == pytest.approx(
        0.5 * math.log1p(variance / both.least_distortion), rel=1e-13
    )


def test_the_printed_calibration_fails_for_large_epsilon():
    """M, Example 5, states 2 ln(2/delta)/epsilon^2 for any epsilon: it is for small ones only."""
    for epsilon, private in ((0.1, True), (1.0, True), (9.3, True), (9.5, False), (50.0, False)):
        both = compare_gaussian(1.0, epsilon, 1e-5)
        assert (oracle.gaussian_delta(both.distortion, epsilon) <= 1e-5) == private
        assert (both.delta <= 1e-5) == private
        assert (both.least_distortion <= both.distortion) == private


def test_gaussian_delta_at_its_ends():
    assert gaussian_delta(1.0, 0.0) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-14)
    assert gaussian_delta(0.0, 1.0) == 1.0
    assert gaussian_delta(1.0, 1.0, sensitivity=0.0) == 0.0
    assert 0.0 < gaussian_delta(1.0, 700.0) < 1e-300  # an upper bound on a positive number
    assert gaussian_delta(4.0, 1.0, sensitivity=2.0) == gaussian_delta(1.0, 1.0)
    assert gaussian_delta(1e-300, 1.0) == 1.0
    assert 0.0 < gaussian_delta(1e300, 0.0) < 1e-15
    for epsilon in (1e-8, 1e-3, 700.0, 1e5, 1e30):
        both = compare_gaussian(1.0, epsilon, 1e-6)
        least = oracle.gaussian_delta(both.least_distortion, epsilon)
        assert least <= 1e-6
        assert least >= 1e-6 * (1 - 1e-6) or epsilon > 1e5
    with pytest.raises(fp.InvalidInput, match="Scale the data"):
        compare_gaussian(1.0, 1e-200, 0.1)
    for bad in ((-1.0, 1.0), (1.0, -1.0), (1.0, math.nan)):
        with pytest.raises(fp.InvalidInput):
            gaussian_delta(*bad)
    for bad in ((1.0, 0.0, 0.1), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0), (-1.0, 1.0, 0.1)):
        with pytest.raises(fp.InvalidInput):
            compare_gaussian(*bad)


@pytest.mark.parametrize("epsilon", [1.0, 1e-300])
def test_a_delta_below_all_bounds_is_refused(epsilon):
    with pytest.raises(fp.InvalidInput, match="within the range"):
        fp.mechanisms.compare_gaussian(1.0, epsilon, 5e-324)


def test_drawn_noise_has_the_covariance():
    noise = GaussianNoise([[4.0, 1.0], [1.0, 2.0]], 2.0)
    drawn = noise.sample(200_000, 1)
    assert drawn.shape == (200_000, 2)
    assert np.cov(drawn.T) == pytest.approx(noise.covariance, abs=0.02)
    assert drawn.mean(axis=0) == pytest.approx([0.0, 0.0], abs=0.01)
    assert (noise.sample(3, np.random.default_rng(5)) == noise.sample(3, 5)).all()
    assert (noise.sample(2) != noise.sample(2)).all()
    assert not GaussianNoise(4.0, 0.0).sample(3).any()  # no distortion, no noise
    assert GaussianNoise(4.0, 1.0).sample(5).shape == (5, 1)
    assert GaussianNoise(4.0, 1.0).sample(0).shape == (0, 1)
    with pytest.raises(fp.InvalidInput, match="by the mean alone"):
        GaussianNoise(4.0, 4.0).sample(3)
    with pytest.raises(fp.InvalidInput, match="k must"):
        noise.sample(-1)
