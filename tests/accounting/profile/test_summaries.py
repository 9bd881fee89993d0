"""rho of zCDP and mu of Gaussian privacy, against closed forms and dense grids."""

import math
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpriv.accounting import PrivacyProfile
from fastpriv.accounting.profile.questions import gaussian_mu

gaussian = PrivacyProfile.gaussian
PHI = NormalDist().cdf


def renyi_rate(p, order):
    """D_order / order of binary response, in two terms."""
    total = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
    return math.log(total) / (order - 1) / order


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 50.0), st.integers(1, 1000))
def test_gaussian_noise_in_closed_form(sigma, k):
    profile = gaussian(sigma).self_compose(k)
    rho, mu = profile.zcdp_level(), profile.gdp_level()
    assert rho.lower <= k / (2 * sigma**2) * (1 + 1e-14)
    assert rho.upper >= k / (2 * sigma**2) * (1 - 1e-14)
    assert mu.lower <= math.sqrt(k) / sigma * (1 + 1e-14)
    assert mu.upper >= math.sqrt(k) / sigma * (1 - 1e-14)
    assert rho.width <= 1e-13 * rho.upper
    assert mu.width <= 1e-13 * mu.upper


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0])
def test_binary_response(epsilon):
    """rho is the divergence of order 1, and mu is set by the total variation or beyond."""
    p = 1 / (1 + math.exp(-epsilon))
    profile = PrivacyProfile.randomised_response(2, epsilon)
    rho, mu = profile.zcdp_level(), profile.gdp_level()
    rates = [renyi_rate(p, 1 + 10 ** (i / 50 - 4)) for i in range(300)]
    assert max(rates) <= rho.upper
    limit = epsilon * math.tanh(epsilon / 2)
    assert rho.lower <= max(limit, *rates) * (1 + 1e-9)
    assert rho.upper == pytest.approx(max(limit, *rates), rel=1e-4)
    # delta(0) = 2p - 1 alone needs this mu, and delta(t) = p - e^t (1 - p) lies below its curve.
    assert mu.upper >= 2 * NormalDist().inv_cdf(p) * (1 - 1e-12)
    for i in range(200):
        t = epsilon * i / 200
        m = mu.upper
        curve = PHI(-t / m + m / 2) - math.exp(t) * PHI(-t / m - m / 2)
        assert p - math.exp(t) * (1 - p) <= curve + 1e-13
    assert mu.width <= 0.01 * mu.upper


def test_compositions_add_up():
    laplace = PrivacyProfile.laplace(1.0)
    alone, both = laplace.zcdp_level(), laplace.compose(gaussian(1.0)).zcdp_level()
    assert both.lower == pytest.approx(alone.lower + 0.5, rel=1e-9)
    assert both.upper == pytest.approx(alone.upper + 0.5, rel=1e-9)
    assert laplace.compose(PrivacyProfile.zcdp(0.25)).zcdp_level().upper == pytest.approx(
        alone.upper + 0.25, rel=1e-9
    )


def test_samples_reach_the_rate_of_the_whole_in_the_limit():
    sampled = gaussian(1.0, 0.1).self_compose(5)
    assert 2.5 in sampled.zcdp_level()
    assert sampled.zcdp_level().width < 1e-12
    assert sampled.gdp_level().upper == pytest.approx(math.sqrt(5.0))
    for order in (1.5, 10.0, 200.0):
        assert sampled.renyi_level(order).lower / order <= sampled.zcdp_level().upper


def test_edges():
    nothing = gaussian(1.0, 0.0)
    assert nothing.zcdp_level().upper == 0.0 == nothing.gdp_level().upper
    leaking = PrivacyProfile.from_epsilon_delta(1.0, 1e-3)
    assert leaking.zcdp_level().lower == math.inf == leaking.gdp_level().lower
    assert PrivacyProfile.zcdp(0.5).zcdp_level().upper == pytest.approx(0.5)
    assert PrivacyProfile.zcdp(0.5).gdp_level().upper == math.inf


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 20.0), st.floats(0.0, 5.0))
def test_mu_of_one_point(mu, t):
    delta = PHI(-t / mu + mu / 2) - math.exp(t) * PHI(-t / mu - mu / 2)
    if 1e-9 < delta < 1 - 1e-9:
        low, high = (gaussian_mu(t, delta, up) for up in (False, True))
        assert low <= high
        assert low == pytest.approx(mu, rel=1e-5)
        assert high == pytest.approx(mu, rel=1e-5)
