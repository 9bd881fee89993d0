"""Errors of tests between neighbours, against the best tests by Neyman and Pearson."""

from fractions import Fraction
from itertools import permutations, product
from math import prod
from statistics import NormalDist

import numpy as np
import pytest

from fastpriv.accounting import PrivacyProfile
from oracles.profile import best_rate

ALPHAS = [Fraction(1, 50), Fraction(3, 10), Fraction(1, 2), Fraction(4, 5)]


def _rows(rng, inputs, outputs):
    """Random rows in sixteenths, which doubles hold, some of them zero."""
    return [
        [Fraction(int(v), 16) for v in np.bincount(rng.integers(0, outputs, 16), None, outputs)]
        for _ in range(inputs)
    ]


def _together(row, count):
    return [prod(outputs) for outputs in product(row, repeat=count)]


def _best(rows, count, alpha):
    laws = [_together(row, count) for row in rows]
    return max(best_rate(p, q, alpha) for p, q in permutations(laws, 2))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("count", [1, 2])
def test_two_databases_whose_orders_differ(seed, count):
    rows = _rows(np.random.default_rng(seed), 2, 3)
    profile = PrivacyProfile.of(np.array(rows, dtype=float)).self_compose(count)
    for alpha in ALPHAS:
        truth, found = _best(rows, count, alpha), profile.tpr(float(alpha))
        # 0.3 and 0.02 are doubles beside the fractions; a rate rises by less than 100 times that.
        assert found.lower - 1e-14 <= truth <= found.upper + 1e-14
        assert found.width < 1e-6
        least = profile.tradeoff(float(alpha))
        assert least.lower - 1e-14 <= 1 - truth <= least.upper + 1e-14


@pytest.mark.parametrize("seed", range(3))
def test_one_release_of_several_pairs(seed):
    rows = _rows(np.random.default_rng([seed, 1]), 3, 3)
    profile = PrivacyProfile.of(np.array(rows, dtype=float))
    for alpha in ALPHAS:
        found = profile.tpr(float(alpha))
        assert found.lower - 1e-14 <= _best(rows, 1, alpha) <= found.upper + 1e-14
        assert found.width < 1e-6


@pytest.mark.slow
def test_several_releases_of_several_pairs():
    """The lower end is that of a pair, the upper end that of pairs which change with outputs."""
    rows = _rows(np.random.default_rng(3), 3, 2)
    profile = PrivacyProfile.of(np.array(rows, dtype=float)).self_compose(2)
    for alpha in ALPHAS:
        found, truth = profile.tpr(float(alpha)), _best(rows, 2, alpha)
        assert found.lower == pytest.approx(float(truth), abs=1e-6)
        assert found.lower - 1e-14 <= truth <= found.upper + 1e-14


def test_what_is_known_by_its_curve_alone():
    """A stored curve says not which pair has it: still some test reaches the lower end."""
    rows = _rows(np.random.default_rng(4), 3, 3)
    whole = PrivacyProfile.of(np.array(rows, dtype=float))
    stored = PrivacyProfile.from_json(whole.to_json())
    for alpha in ALPHAS:
        found, truth = stored.tpr(float(alpha)), _best(rows, 1, alpha)
        assert float(alpha) <= found.lower <= truth <= found.upper + 1e-14
    assert stored.tpr(0.3).lower > 0.3 + 0.2 * (float(_best(rows, 1, Fraction(3, 10))) - 0.3)


def test_samples_whose_orders_differ():
    """(1 - q) N(0, 1) + q N(1, 1) against N(0, 1): half-lines are best in either order."""
    sigma, q, alpha = 1.0, 0.1, 0.3
    law = NormalDist()

    def mixed(x):
        return (1 - q) * law.cdf(x) + q * law.cdf(x - 1 / sigma)

    low, high = -20.0, 20.0
    for _ in range(200):  # where the mixture leaves alpha below
        middle = 0.5 * (low + high)
        low, high = (middle, high) if mixed(middle) < alpha else (low, middle)
    rates = 1 - mixed(law.inv_cdf(1 - alpha)), law.cdf(low)
    found = PrivacyProfile.gaussian(sigma, q).tpr(alpha)
    assert found.lower - 1e-12 <= max(rates) <= found.upper + 1e-12
    assert found.width < 1e-6
    assert abs(rates[0] - rates[1]) > 1e-4


def test_nothing_is_told():
    profile = PrivacyProfile.of([[0.5, 0.5], [0.5, 0.5]])
    found = profile.tpr(0.25)
    assert 0.25 in found
    assert found.width < 1e-14
