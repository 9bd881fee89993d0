"""Rare samples: one large loss decides, and the losses below a threshold are composed."""

import math

import mpmath as mp
import pytest
from mpmath import mpf

from fastpriv.accounting import PrivacyProfile, calibrate
from fastpriv.accounting.profile.composition import Composition, tilt_at
from fastpriv.accounting.profile.engines import threshold
from fastpriv.accounting.profile.engines.threshold import THRESHOLD
from fastpriv.accounting.profile.losses import Directed, NoBound, in_range
from fastpriv.accounting.profile.steps.gaussian import CutMixture, GaussianMixture
from fastpriv.errors import InvalidInput


def composition(sigma, q, count):
    return Composition([(Directed(GaussianMixture(sigma, ((1.0, q),))), count)], [])


def prepared(parts, t):
    with in_range():
        return THRESHOLD.prepare(parts, t, tilt_at(parts.terms, t))


def two_steps(sigma, q, t):
    """Delta of two steps by integrating the closed form of one over the output of the other."""
    sigma, q, t = mpf(sigma), mpf(q), mpf(t)

    def tail(x):
        return mp.erfc(x / mp.sqrt(2)) / 2

    def ratio(x):
        return 1 - q + q * mp.exp(x / sigma - 1 / (2 * sigma**2))

    def one(u):
        grown = mp.exp(u)
        if grown <= 1 - q:
            return 1 - grown
        y = sigma * mp.log((grown - 1 + q) / q) + 1 / (2 * sigma)
        return (1 - q) * tail(y) + q * tail(y - 1 / sigma) - grown * tail(y)

    def inner(x):
        density = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi) * ratio(x)
        return density * one(t - mp.log(ratio(x)))

    corner = sigma * mp.log((mp.exp(t) / (1 - q) - 1 + q) / q) + 1 / (2 * sigma)
    points = sorted([mpf(-14), mpf(-4), mpf(0), mpf(3), corner, corner + 4, corner + 20])
    return mp.quad(inner, points)


@pytest.mark.parametrize(
    ("sigma", "q", "t"), [(1.0, 1e-5, 3e-4), (0.7, 1e-3, 0.2), (2.0, 1e-4, 2e-4)]
)
@pytest.mark.parametrize("on_grid", [False, True])
def test_two_steps_by_quadrature(sigma, q, t, on_grid, monkeypatch):
    if on_grid:
        monkeypatch.setattr(threshold, "_by_contour", _no_bound)
    with mp.workdps(30):
        truth = two_steps(sigma, q, t)
    low, high = prepared(composition(sigma, q, 2), t).bounds(t)
    assert mpf(low) <= truth <= mpf(high)
    assert high - low <= 1e-5 * high


def _no_bound(*_):
    raise NoBound


@pytest.mark.parametrize(
    ("sigma", "q", "count", "t"), [(1.0, 1e-5, 10, 4.5e-4), (0.7, 1e-5, 300, 0.03)]
)
def test_contour_and_grid_agree_at_every_level(sigma, q, count, t, monkeypatch):
    """Both are narrow near the level, and hold below it and beyond the threshold."""
    parts = composition(sigma, q, count)
    contour = prepared(parts, t)
    monkeypatch.setattr(threshold, "_by_contour", _no_bound)
    grid = prepared(parts, t)
    assert isinstance(parts.pairs[0][0].pair, GaussianMixture)
    for level in (0.5 * t, t, 1.02 * t, 1.5 * t, 4.0 * t):
        first, second = contour.bounds(level), grid.bounds(level)
        assert max(first[0], second[0]) <= min(first[1], second[1])
    low, high = contour.bounds(t)
    assert high - low <= 1e-8 * high
    low, high = grid.bounds(t)
    assert high - low <= 1e-3 * high


def test_a_lower_threshold_that_is_not_certain():
    """Many steps have losses that add up to far less than t: the threshold is a likely one."""
    parts = composition(1.5, 4e-5, 50_000)
    chosen = threshold._thresholds(parts, 0.022, tilt_at(parts.terms, 0.022))
    assert chosen.ends[0] < 0.2 * chosen.certain[0]
    low, high = prepared(parts, 0.022).bounds(0.022)
    assert 0.0 < high - low <= 1e-7 * high


def test_moments_of_cut_noise():
    """The quadrature of the moments up to a cut against mpmath, at real and complex exponents."""
    pair = CutMixture(GaussianMixture(1.0, ((1.0, 1e-4),)), 3.5)
    with mp.workdps(30):
        for w in (mp.mpc(1), mp.mpc(40, 300), mp.mpc(500)):

            def integrand(x, w=w):
                ratio = 1 - mpf(1e-4) + mpf(1e-4) * mp.exp(x - mpf(0.5))
                return mp.exp(w * mp.log(ratio) - x * x / 2) / mp.sqrt(2 * mp.pi)

            truth = mp.log(mp.quad(integrand, [-16, -8, -2, 0, 1, 2, 3, 3.5]))
            values, errors = pair.log_moments(float(w.real), _array(float(w.imag)), 1e-17)
            off = abs(mp.mpc(complex(values[0])) - truth)
            assert off <= errors[0] < 1e-11


def _array(value):
    import numpy as np

    return np.array([value])


@pytest.mark.parametrize(
    ("sigma", "q", "count", "delta", "width"),
    [
        (1.0, 1e-5, 10, 1e-8, 1e-6),
        (1.0, 1e-5, 1000, 1e-8, 1e-6),
        (1.0, 1e-4, 100, 1e-6, 1e-6),
        (0.7, 1e-5, 1000, 1e-10, 1e-6),
        pytest.param(3.0, 1e-6, 30_000, 1e-10, 1e-6, marks=pytest.mark.slow),
    ],
)
def test_rare_samples_are_narrow(sigma, q, count, delta, width):
    profile = PrivacyProfile.gaussian(sigma, q).self_compose(count)
    bracket = profile.epsilon(delta)
    assert bracket.width <= width * bracket.upper
    above, below = profile.delta(bracket.upper), profile.delta(bracket.lower)
    assert above.lower <= delta <= below.upper
    assert math.isclose(above.upper, delta, rel_tol=1e-4)


def test_no_looser_than_a_pessimistic_grid():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    one = pld.from_gaussian_mechanism(
        1.0, sampling_prob=1e-4, value_discretization_interval=1e-4, use_connect_dots=True
    )
    upper = one.self_compose(100).get_epsilon_for_delta(1e-6)
    bracket = PrivacyProfile.gaussian(1.0, 1e-4).self_compose(100).epsilon(1e-6)
    assert bracket.lower <= upper
    assert bracket.upper <= upper


def test_accuracy_and_time_limit_leave_bounds_sound():
    """Coarse answers contain fine ones, and a limit of no time still gives an upper bound."""
    profile = PrivacyProfile.laplace(30.0).self_compose(400)
    fine = profile.epsilon(1e-8)
    for given in ({"accuracy": 0.1}, {"time_limit": 0.0}, {"accuracy": 0.5, "time_limit": 0.0}):
        coarse = PrivacyProfile.laplace(30.0).self_compose(400).epsilon(1e-8, **given)
        assert coarse.lower <= fine.upper
        assert fine.lower <= coarse.upper < math.inf
        delta = PrivacyProfile.laplace(30.0).self_compose(400).delta(3.0, **given)
        exact = profile.delta(3.0)
        assert delta.lower <= exact.upper
        assert exact.lower <= delta.upper < 1.0


@pytest.mark.parametrize(
    "given", [{"accuracy": -1.0}, {"accuracy": math.nan}, {"time_limit": -1.0}]
)
def test_goals_are_checked(given):
    with pytest.raises(InvalidInput, match=next(iter(given))):
        PrivacyProfile.laplace(1.0).epsilon(0.1, **given)


def test_calibration_evaluates_few_profiles():
    made = []

    def make(noise):
        made.append(noise)
        return PrivacyProfile.gaussian(noise, 0.01).self_compose(1000)

    bracket = calibrate(make, epsilon=1.5, delta=1e-5)
    assert len(made) <= 40  # rough estimates included
    assert bracket.width <= 1e-9 * bracket.upper
    assert make(bracket.upper).delta(1.5).upper <= 1e-5 <= make(bracket.lower).delta(1.5).upper


def test_a_level_whose_exponential_overflows():
    # e^760 Q is above P, so these outputs add nothing; e^700 Q would be below P.
    rare = threshold._Exceeding(800.0, (1e-9, 1e-9), (1e-314, 1e-314), [], 0.0)
    low, high = rare.bounds(760.0)
    assert low <= 0.0 <= high
