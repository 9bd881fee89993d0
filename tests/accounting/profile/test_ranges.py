"""Mechanisms of bounded range: the recursion over choices against plain loops."""

import math
from functools import lru_cache

import pytest

from fastpriv.accounting import PrivacyProfile
from fastpriv.accounting.profile.engines.bounded_range import Chosen, levels


def best_choices(e, k, i, m):
    """delta at i e/m where u is a multiple of e/m, chosen after earlier outputs: attained."""

    @lru_cache(None)
    def value(j, i):
        if j == 0:
            return max(1.0 - math.exp(i * e / m), 0.0)
        chances = [(1.0 - math.exp(n * e / m - e)) / (1.0 - math.exp(-e)) for n in range(m + 1)]
        return max(
            p * value(j - 1, i - n) + (1.0 - p) * value(j - 1, i - n + m)
            for n, p in enumerate(chances)
        )

    return value(k, i)


@pytest.mark.parametrize(
    ("e", "k", "i"),
    [(0.5, 4, 24), (0.5, 4, 70), (2.0, 3, 12), (0.1, 6, 72), (1.0, 2, 0), (9.0, 2, 7)],
)
def test_best_choices(e, k, i):
    """Choices from few levels are attained; bounds are hardly above those from more levels."""
    m = 24
    t = i * e / m
    attained, bound = best_choices(e, k, i, m), Chosen(e, k)
    finer = best_choices(e, k, 3 * i, 3 * m)
    assert attained * (1.0 - 1e-12) <= finer <= bound.delta(t)[1] * (1.0 + 1e-12)
    assert bound.delta(t)[1] <= finer * (1.0 + 3e-3)
    assert bound.guaranteed(bound.delta(t)[1] * (1.0 + 1e-9)) <= t * (1.0 + 1e-6) + 1e-6
    assert bound.guaranteed(finer) >= t * (1.0 - 1e-12)
    # What is attained: below the bound, and hardly below choices from few levels.
    assert attained * (1.0 - 3e-3) <= bound.delta(t)[0] <= bound.delta(t)[1]
    level = bound.epsilon(attained)[0]
    assert level <= bound.guaranteed(attained)
    assert level >= t * (1.0 - 1e-2) - 1e-2 * e
    assert bound.delta(level)[0] >= attained * (1.0 - 1e-9) or level == 0.0


def test_choices_that_are_attained_by_plain_loops():
    """The recursion itself, at its own levels."""
    e, k = 0.8, 3
    m, bound = levels(k), Chosen(e, k)
    assert m == 256
    for i in (0, 100, 400):
        here = [bound.delta((i + part) * e / m)[0] for part in (1e-9, 0.5, 1.0 - 1e-9)]
        assert here[0] > here[1] > here[2] > 0.0
        coarse = best_choices(e, k, i // 4, m // 4)
        assert coarse * (1.0 - 1e-6) <= here[0] <= coarse * (1.0 + 1e-3)


def test_one_release_has_a_closed_form():
    e, bound = 0.7, Chosen(0.7, 1)
    for t in (0.0, 0.1, 0.35, 0.69, 0.7, 1.0):
        gap = max(math.exp(e / 2) - math.exp(t / 2), 0.0)
        truth = gap**2 / math.expm1(e)
        assert truth * (1.0 - 1e-12) <= bound.delta(t)[1] <= truth * (1.0 + 1e-3) + 1e-5


@pytest.mark.slow
def test_a_hundred_releases():
    """The envelope gives 2.6118, the conversion of e^2/8-zCDP 2.4191."""
    profile = PrivacyProfile.exponential(0.1).self_compose(100)
    result = profile.epsilon(1e-6)
    assert 2.2507 < result.lower < result.upper < 2.2513
    assert profile.cases.guaranteed(1e-6) == result.upper
    assert profile.delta(result.upper).upper <= 1e-6 * (1.0 + 1e-9)


def test_many_releases_and_several_levels_are_bounded_by_zcdp():
    assert levels(100_000) == 0
    parts = PrivacyProfile.exponential(0.1).self_compose(50)
    both = parts.compose(PrivacyProfile.exponential(0.2).self_compose(20))
    rho = PrivacyProfile.zcdp((50 * 0.1**2 + 20 * 0.2**2) / 8).epsilon(1e-6).upper
    result = both.epsilon(1e-6)
    assert result.lower < result.upper <= rho * (1.0 + 1e-9)
