"""Discrete Gaussian noise by listed outcomes, where the last digit of a loss matters."""

import random

import pytest
from mpmath import mpf

from fastpriv.accounting import PrivacyProfile
from oracles.enumeration import exact_delta


def holds(sigma, count, delta):
    bracket = PrivacyProfile.discrete_gaussian(sigma).self_compose(count).epsilon(delta)
    leaves = {("discrete gaussian", sigma): count}
    low, high = (exact_delta(leaves, end) for end in (bracket.lower, bracket.upper))
    assert high <= delta <= low or bracket.lower == 0.0
    assert bracket.width <= 1e-12 * bracket.upper


def test_a_level_just_below_an_atom():
    holds(0.565, 3, 1e-100)


@pytest.mark.parametrize("seed", range(6))
def test_deltas_that_are_met_just_below_an_atom(seed):
    rng = random.Random(seed)
    sigma, count = round(rng.uniform(0.4, 0.9), 3), rng.randint(1, 3)
    odd = rng.randrange(count % 2 + 8, 40, 2)  # sums of odd losses are odd or even ones
    atom = odd / (2 * mpf(sigma) ** 2)
    value = exact_delta({("discrete gaussian", sigma): count}, atom * (1 - mpf(10) ** -13))
    holds(sigma, count, float(value))


@pytest.mark.parametrize(
    ("sigma", "count", "delta"),
    [(0.548, 1, 1e-300), (0.685, 1, 1e-300), (0.687, 2, 1e-100), (0.745, 1, 1e-100)],
)
def test_levels_next_to_an_atom_are_rounded_outwards(sigma, count, delta):
    """Less than a unit of the level decides there; found by the court."""
    bracket = PrivacyProfile.discrete_gaussian(sigma).self_compose(count).epsilon(delta)
    leaves = {("discrete gaussian", sigma): count}
    assert exact_delta(leaves, bracket.upper) <= delta <= exact_delta(leaves, bracket.lower)
