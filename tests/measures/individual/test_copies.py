"""E_d: noisy copies of one value are what tells most about a row."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv._core.clock import Clock
from fastpriv.measures.individual import copies
from oracles import dalenius
from oracles import individual as brute

FOREVER = Clock(math.inf)
LEVELS = [1e-8, 0.3, 5.0, 700.0]


@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 3), (5, 3), (4, 4), (3, 6), (2, 12)])
def test_copies_by_listing_all_outputs(n, m, epsilon):
    exact = brute.copies(n, m, epsilon)
    bracket = fp.individual_capacity(fp.HammingChannel(n, m, epsilon))
    assert bracket.lower <= exact <= bracket.upper
    assert bracket.width <= 1e-10 * bracket.upper
    assert bracket.upper <= math.log(m) * (1 + 1e-15)


def test_values_that_were_out_of_reach():
    for n, m, epsilon, value in [(5, 10, 0.5, 0.072176), (6, 3, 1.0, 0.542038)]:
        bracket = fp.individual_capacity(fp.HammingChannel(n, m, epsilon))
        assert round(bracket.lower, 6) == round(bracket.upper, 6) == value
    opposite = fp.cross_capacity(fp.HammingChannel(20, 3, 0.3), 2)
    assert opposite.lower == pytest.approx(0.136363821, abs=5e-10)
    assert opposite.width <= 1e-12
    wide = fp.individual_capacity(fp.HammingChannel(50, 5, 0.1))
    assert wide.width <= 1e-10 * wide.upper


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5).filter(lambda p: sum(p) > 0.1),
    st.integers(2, 5),
    st.floats(0.0, 8.0),
    st.randoms(use_true_random=False),
)
def test_injective_rows_tell_most(weights, m, epsilon, random):
    """The step of the proof: merging values lowers the entropy of a noisy output."""
    values = len(weights)
    m = max(m, values)
    p = np.array(weights) / sum(weights)
    merged, apart = np.zeros(m), np.zeros(m)
    apart[:values] = p
    for v in range(values):
        merged[random.randrange(m)] += p[v]
    stay = 1.0 / (1.0 + (m - 1) * math.exp(-epsilon))
    off = stay * math.exp(-epsilon)

    def entropy(law):
        shown = off + (stay - off) * law
        return -float((shown[shown > 0] * np.log(shown[shown > 0])).sum())

    assert entropy(merged) <= entropy(apart) + 1e-12


@pytest.mark.parametrize(
    ("sizes", "k"), [((3, 3), 3), ((3, 3), 2), ((4, 3), 3), ((3, 4), 2), ((5,), 3), ((3, 1, 3), 2)]
)
def test_cross_capacity_by_all_choices_of_databases(sizes, k):
    channel = fp.HammingChannel(len(sizes), sizes, 1.5)
    low, high = dalenius.cross(channel.matrix().tolist(), k)
    bracket = fp.cross_capacity(channel, k)
    assert bracket.lower <= high + 1e-12
    assert bracket.upper >= low - 1e-12
    assert bracket.width <= 1e-10


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("m", [3, 5])
def test_more_copies_than_can_be_listed(m, epsilon, monkeypatch):
    n = 12
    exact = copies.copies_bracket(n, fp.HammingChannel(n, m, epsilon).symmetric()[0], FOREVER)
    for entries in (1, 20, 40):
        monkeypatch.setattr(copies, "_ENTRIES", entries)
        bracket = copies.copies_bracket(n, fp.HammingChannel(n, m, epsilon).symmetric()[0], FOREVER)
        assert bracket.lower <= exact.upper
        assert exact.lower <= bracket.upper
        assert bracket.lower > 0.0
    assert bracket.width > exact.width


@pytest.mark.parametrize("epsilon", [1e-8, 0.1, 0.7, 5.0, 700.0])
@pytest.mark.parametrize(("n", "m"), [(1, 3), (2, 4), (12, 3), (9, 6), (30, 4)])
def test_merged_sums_hold_what_is_listed(n, m, epsilon):
    kernel = fp.HammingChannel(n, m, epsilon).symmetric()[0]
    exact, near = copies.listed(n, kernel), copies.merged(n, kernel, FOREVER)
    assert near is not None
    assert near.lower <= exact.upper
    assert exact.lower <= near.upper
    assert near.width <= 1e-4 * max(1.0, (epsilon * n / 100.0) ** 2)


@pytest.mark.slow
def test_copies_of_ten_values():
    """Some six million partitions: too many to list."""
    bracket = copies.merged(100, fp.HammingChannel(1, 10, 0.3).symmetric()[0], FOREVER)
    assert bracket.width <= 1e-4 * bracket.upper
    assert copies.merged(10**6, fp.HammingChannel(1, 3, 0.02).symmetric()[0], FOREVER) is None


@pytest.mark.slow
def test_a_million_copies():
    bracket = fp.individual_capacity(fp.HammingChannel(1_000_000, 3, 0.02))
    assert bracket.width <= 1e-12
    small = fp.individual_capacity(fp.HammingChannel(1_000_000, 7, 1e-9))
    assert 0.0 < small.lower <= small.upper < 1e-11


@pytest.mark.parametrize(("n", "m"), [(0, 1), (1, 1), (5, 1), (5, 3), (6, 9), (9, 4)])
def test_partitions(n, m):
    want = {
        tuple(sorted(parts, reverse=True))
        for parts in itertools.product(range(n + 1), repeat=min(m, n))
        if sum(parts) == n
    }
    listed = [tuple(row) for row in copies.partitions(n, m).tolist()]
    assert sorted(listed) == sorted(want)
    assert copies.partition_counts(n, m)[-1] == len(want)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 36.0, 200.0, 1e4, 1e308])
@pytest.mark.parametrize(("n", "m"), [(1000, 4), (10**6, 3), (200, 10)])
def test_copies_that_leave_no_doubt(n, m, epsilon):
    """Copies hide at most (m - 1) z^n nats of ln m, z the affinity of two values of a row."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        half = mpmath.exp(-mpmath.mpf(min(epsilon, 1e4)) / 2)
        z = (2 * half + (m - 2) * half**2) / (1 + (m - 1) * half**2)
        least = mpmath.log(m) - (m - 1) * z**n
        told = fp.individual_capacity(fp.HammingChannel(n, m, epsilon), time_limit=0.1)
        assert told.lower <= mpmath.log(m)
        assert told.upper >= least
        assert told.lower >= least * (1 - mpmath.mpf(2) ** -49)
        pair = fp.cross_capacity(fp.HammingChannel(n, m, epsilon), m, time_limit=0.1)
        assert pair.lower <= mpmath.log(m)
        assert pair.upper >= least


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1e160, 1.7e308])
@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 2), (3, 3), (50, 2)])
def test_an_epsilon_whose_multiples_are_infinite(n, m, epsilon):
    """Everything is shown, and no square or multiple of epsilon overflows on the way."""
    channel = fp.HammingChannel(n, m, epsilon)
    for k in {1, min(n, 2)}:
        told = fp.group_capacity(channel, k, time_limit=0.1)
        assert told.lower == pytest.approx(k * math.log(m), rel=1e-10)
        assert told.upper >= math.log(m**k)
        assert fp.cross_capacity(channel, 2, time_limit=0.1).upper >= math.log(2.0)
    assert n * epsilon <= fp.strong_dp_level(channel) <= n * epsilon * (1.0 + 1e-15)
