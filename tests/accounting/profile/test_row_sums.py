"""Rows of floats need not sum to one: profiles are of the laws that they are multiples of."""

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import fastpriv as fp
import oracles as o
from oracles.profile import worst_delta

BASES = [[1 / 3, 1 / 3, 1 / 3], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7], [0.9, 0.05, 0.05]]


def rows_next_to(base, seed):
    """Return rows some units in the last place from a base, whatever they sum to."""
    rng, rows = np.random.default_rng(seed), [list(base)]
    for _ in range(2):
        row = list(base)
        for y in rng.integers(len(base), size=3).tolist():
            row[y] = math.nextafter(row[y], float(rng.integers(2)))
        rows.append(row)
    return rows


def delta_of(rows, count, epsilon):
    return worst_delta([(rows, count)], o.neighbour_pairs([len(rows)]), epsilon)


@pytest.mark.parametrize("base", BASES, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_brackets_hold_the_delta_of_the_laws(base, count):
    with mpmath.workdps(60):
        for seed in range(8):
            rows = rows_next_to(base, seed)
            profile = fp.accounting.PrivacyProfile.of(rows).self_compose(count)
            laws = [o.normal(row) for row in rows]
            for epsilon in (0.0, 5e-17, 1e-16, 0.1):
                given, truth = profile.delta(epsilon), delta_of(laws, count, epsilon)
                assert mpf(given.lower) <= truth <= mpf(given.upper)
                if count == 1:  # as hockey_stick, which takes entries as they are
                    assert mpf(given.lower) <= delta_of(o.nums(rows), 1, epsilon)
                    assert mpf(given.upper) >= delta_of(o.nums(rows), 1, epsilon)


def test_equal_rows_say_nothing_whatever_they_sum_to():
    profile = fp.accounting.PrivacyProfile.of([[0.1, 0.2, 0.7]] * 2)
    assert profile.delta(0.0) == fp.Bracket(0.0, 0.0)
    declared = fp.accounting.PrivacyProfile.from_epsilon_delta(1.0, 1e-6)
    assert profile.compose(declared).epsilon(1e-6) == fp.Bracket(1.0, 1.0)
