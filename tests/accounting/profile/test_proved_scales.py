"""Bounds that are relative to a moment rest on proved moments, not on guides."""

import math
from itertools import product

import numpy as np
import pytest

from fastpriv.accounting import PrivacyProfile
from fastpriv.accounting.profile.discrete import DiscreteLosses
from fastpriv.accounting.profile.losses import RecentRules
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture
from fastpriv.accounting.profile.steps.laplace import Interval
from fastpriv.accounting.profile.steps.sampling import Blend
from fastpriv.accounting.profile.strategy import DiscreteCurve

MIXTURES = [
    GaussianMixture(1.0, ((1.0, 0.01),)),
    GaussianMixture(0.7, ((1.0, 0.3),), ((1.0, 0.3),)),
]
PAIRS = [
    *MIXTURES,
    Interval(1.0, True, 0.2),
    Interval(2.0, False),
    Blend(tuple(MIXTURES), (0.3, 0.7)),
]


def moment(pair, c, f=lambda loss: 1.0):
    """E_Q f(L) e^(cL) of a mixture, on a fine grid of outputs, to about 1e-8."""
    x = np.linspace(-40.0, 60.0, 200_001)
    losses, _, log_b = pair._losses(x)
    weights = np.exp(-0.5 * x * x + log_b + c * losses) / math.sqrt(2.0 * math.pi)
    return float((weights * f(losses)).sum() * (x[1] - x[0]))


@pytest.mark.parametrize("c", [-6.0, 0.5, 2.0, 5.0, 8.0])
@pytest.mark.parametrize("pair", MIXTURES)
def test_moments_lie_within_their_bounds(pair, c):
    low, high = pair.log_moment_bounds(c)
    assert low <= high <= low + 1e-7
    assert math.log(moment(pair, c)) == pytest.approx(0.5 * (low + high), abs=1e-7)


@pytest.mark.parametrize("c", [-6.0, 2.0, 5.0, 8.0])
@pytest.mark.parametrize("pair", MIXTURES)
def test_the_slope_is_at_least_the_mean_distance(pair, c):
    whole = moment(pair, c)
    middle = moment(pair, c, lambda loss: loss) / whole
    apart = moment(pair, c, lambda loss: np.abs(loss - middle)) / whole
    assert apart * (1.0 - 1e-6) <= pair.slope(c) <= 1.2 * apart


@pytest.mark.parametrize(("pair", "c"), [*product(PAIRS, [-2.0, 3.0])])
def test_ratios_of_moments_stay_below_their_ceiling(pair, c):
    angles = np.geomspace(0.1, 50.0, 40)
    values, errors = pair.log_moments(c, np.concatenate([[0.0], angles]), 1e-12)
    ratios = np.exp((values - values[0]).real[1:])
    slack = errors[1:] + errors[0]
    assert np.all(ratios <= pair.ceiling(c, angles) * np.exp(slack) + 1e-14)
    slopes = np.abs(np.diff(ratios)) / np.diff(angles)
    assert np.all(slopes <= pair.slope(c) + 1e-9)


@pytest.mark.slow(only=["10000000000"])
@pytest.mark.parametrize("count", [1, 1000, 10**10])
def test_what_skips_a_pair_is_an_upper_bound(count):
    epsilon = 1e-6 if count > 10**9 else 0.3
    curve = DiscreteCurve([(DiscreteLosses.response(2, epsilon, 0.0), count)], True)
    for t in (
        0.1 * curve.top[1],
        0.5 * epsilon * math.sqrt(count),
        3.0 * epsilon * math.sqrt(count),
    ):
        assert curve.delta(t)[1] <= curve.at_most(t) <= 1.0


TINY = [0.0, 5e-324, 1e-310, 1e-200]


@pytest.mark.parametrize(("first", "second"), [*product(TINY, TINY)])
def test_tiny_entries_give_brackets(first, second):
    profile = PrivacyProfile.of([[first, 1.0], [second, 1.0]])
    truth = abs(first - second)
    for epsilon in (0.0, 1.0):
        bracket = profile.delta(epsilon)
        assert bracket.lower <= truth if epsilon == 0.0 else bracket.lower <= bracket.upper
        assert bracket.upper >= (truth if 0.0 in (first, second) else 0.0)
    risk = profile.bayes_risk()
    assert risk.lower <= 0.5 <= risk.upper + 1e-12
    assert profile.self_compose(10).epsilon(1e-5).upper <= 1e-280


def test_rules_are_kept_up_to_a_number_of_bytes():
    rules, made = RecentRules(100), []

    def ask(key, size):
        return rules.get(key, lambda: (made.append(key) or key, size))

    assert [ask("a", 60), ask("a", 60), ask("b", 60), ask("a", 60), ask("c", 200)] == list("aabac")
    assert made == ["a", "b", "a", "c"]
    assert ask("c", 200) == "c"
    assert made[-1] == "c"
    assert len(made) == 5
