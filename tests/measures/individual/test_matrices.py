"""Individual and group capacity of matrices: brute force, theorems, the engine."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from fastpriv import kernels
from fastpriv._matrices.capacity import capacities
from fastpriv._matrices.searches.cliques import mean_questions
from fastpriv._matrices.searches.selection import Search, best_selection
from individual_cases import channel, holds, laws, reached
from oracles import individual as brute

SHAPES = [(1,), (2,), (4,), (2, 2), (2, 3), (3, 2), (2, 1, 2), (2, 2, 2), (3, 3), (4, 2)]


@pytest.mark.grid(every=8)
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("outputs", [1, 2, 3, 6])
@pytest.mark.parametrize("sizes", SHAPES)
def test_brute_force(sizes, outputs, zeros):
    rng = np.random.default_rng([outputs, zeros, *sizes])
    matrix = channel(rng, sizes, outputs, zeros)
    for k in range(1, len(sizes) + 1):
        found = fp.group_capacity(fp.Channel(matrix, sizes), k)
        assert holds(found, *brute.group_capacity(matrix, sizes, k))
        assert found.width <= 1e-9
        assert reached(found, matrix, sizes)


def test_larger_shapes_agree_with_all_selections():
    rng = np.random.default_rng(1)
    for m, n, outputs in [(3, 3, 3), (3, 3, 12), (4, 2, 5), (5, 2, 3)]:
        matrix = channel(rng, (m,) * n, outputs)
        found = fp.individual_capacity(fp.Channel(matrix, (m,) * n))
        assert found.width <= 1e-9
        most = 0.0
        for i in range(n):
            chosen = brute.selections(matrix, (m,) * n, (i,))
            low, high, _ = capacities(chosen, 1e-10)
            most = max(most, high.max())
            assert low.max() <= found.upper
        assert found.lower <= most


def test_random_channel_with_many_databases_closes():
    rng = np.random.default_rng(2)
    matrix = rng.dirichlet(np.ones(8), 512)
    found = fp.individual_capacity(fp.Channel(matrix, [2] * 9))
    first, second = np.triu_indices(512, 1)
    pairs = np.stack([matrix[first], matrix[second]], axis=1)
    low, high, _ = capacities(pairs, 1e-10)
    assert low.max() <= found.upper
    assert found.lower <= high.max()
    assert found.width <= 1e-9
    assert reached(found, matrix, [2] * 9)


def test_example_1():
    # x_1 in {0, 1, 2}, x_2 in {0, 1}, and whether they are equal, flipped with chance p.
    p = 0.125
    values = [int(a == b) for a in range(3) for b in range(2)]
    query = fp.QueryChannel(values, [[1 - p, p], [p, 1 - p]], [3, 2])
    exact = o.log(o.num(2)) - o.entropy([o.num(p), o.num(1 - p)])
    found = fp.individual_capacity(query)
    assert found.lower <= exact <= found.upper
    assert found.width < 1e-9
    assert reached(found, query.matrix(), [3, 2])


def test_data_independent_rows_reach_the_closed_form():
    # Rows are rotations of one law; three of them, one per value of x_1, have equal column sums.
    z = np.array([0.5, 0.25, 0.25])
    matrix = np.array([np.roll(z, a + b) for a in range(3) for b in range(3)])
    found = fp.individual_capacity(fp.Channel(matrix, [3, 3]))
    exact = o.log(o.num(3)) - o.entropy([o.num(v) for v in z])
    assert found.lower <= exact <= found.upper
    assert found.width < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_monotone_and_subadditive(seed):
    rng = np.random.default_rng(seed)
    mechanism = fp.Channel(channel(rng, (2, 3, 2), 4), (2, 3, 2))
    found = [fp.group_capacity(mechanism, k) for k in (1, 2, 3)]
    whole = fp.channel_capacity(mechanism)
    for k, (less, more) in enumerate(itertools.pairwise(found), start=2):
        assert less.lower <= more.upper
        assert more.lower <= k * found[0].upper  # Theorem 4
    assert holds(found[2], whole.lower, whole.upper)
    assert found[0].lower <= math.log(3)


def test_parallel_composition_leaks_more_than_its_parts():
    p = 0.125
    flip = [[1 - p, p], [p, 1 - p]]
    one, two = fp.ProductChannel([flip]), fp.ProductChannel([flip, flip])
    assert fp.individual_capacity(two).lower > fp.individual_capacity(one).upper + 0.1


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(laws(2))
def test_pair_bounds_hold(rows):
    zero, one = np.array([0]), np.array([1])
    loose, sharp = np.empty((1, 1)), np.empty(1)
    kernels.pair_bounds(rows, zero, one, 0, 1, loose)
    kernels.sharp_pair_bounds(rows, zero, one, 0, 1, sharp)
    low = capacities(rows[None], 1e-13)[0][0]
    assert low <= loose[0, 0] + 1e-280
    assert low <= sharp[0] + 1e-280
    assert loose[0, 0] <= low + 0.02  # and are of use
    assert sharp[0] <= low + 0.005


@settings(max_examples=100, deadline=None)
@given(st.integers(3, 6).flatmap(laws))
def test_questions_bound_capacity_by_the_best_pair(rows):
    whole = capacities(rows[None], 1e-10)[0][0]
    pairs = np.array([[a, b] for a, b in itertools.combinations(rows, 2)])
    assert whole <= mean_questions(len(rows)) * capacities(pairs, 1e-10)[1].max()


def test_mean_questions():
    assert [mean_questions(m) for m in (1, 2, 4, 8)] == [0.0, 1.0, 2.0, 3.0]
    assert mean_questions(3) == pytest.approx(5 / 3, rel=1e-15)
    assert mean_questions(5) == pytest.approx(12 / 5, rel=1e-15)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(laws(6), st.sampled_from([0.0, 1e-9, 1e-3]))
def test_divergence_bounds_hold_and_selections_are_optimal(rows, gap):
    slices = [np.array([0, 1, 2]), np.array([2, 3]), np.array([4, 5, 0])]
    found = best_selection(rows, [slices], gap)
    low, high, _ = capacities(rows[np.array(list(itertools.product(*slices)))], 1e-12)
    assert low.max() <= found.upper
    assert found.lower <= high.max()
    assert found.upper - found.lower <= max(gap, 1e-10) * max(1.0, found.upper) + 1e-279
    assert all(row in part for row, part in zip(found.choice, slices, strict=True))


@pytest.mark.slow(only=["sizes0", "sizes1"])
@pytest.mark.parametrize("sizes", [(3, 3), (2, 2, 2)])
def test_no_time_leaves_a_true_bracket(sizes):
    matrix = channel(np.random.default_rng(3), sizes, 5)
    for k in (1, 2):
        found = fp.group_capacity(fp.Channel(matrix, sizes), k, time_limit=0.0)
        assert holds(found, *brute.group_capacity(matrix, sizes, k))
        assert found.upper <= k * math.log(3) + 1e-12
        assert reached(found, matrix, sizes)


@pytest.mark.slow
def test_hard_selections_end_in_a_true_bracket():
    rng = np.random.default_rng(4)
    matrix = rng.dirichlet(np.ones(40), 3**5)
    found = fp.individual_capacity(fp.Channel(matrix, [3] * 5), time_limit=0.5)
    pairs = np.array([matrix[list(pair)] for pair in itertools.combinations(range(3**5), 2)])
    # Any two databases are a choice of two values of some row.
    assert capacities(pairs, 1e-9)[0].max() <= found.upper <= math.log(3) * (1 + 1e-12)
    assert 0 < found.lower < found.upper
    assert reached(found, matrix, [3] * 5)


@pytest.mark.parametrize("distance", [1e-3, 1e-7, 1e-12])
def test_close_rows_keep_their_digits(distance):
    matrix = np.array([[0.5, 0.5], [0.5 + distance, 0.5 - distance], [0.5, 0.5]])
    found = fp.individual_capacity(matrix)
    exact = float(o.capacity_bracket(matrix, found.adversary.law)[0])
    assert found.width <= 1e-9 * found.lower
    assert found.lower == pytest.approx(exact, rel=1e-8)


def test_nothing_to_tell():
    same = fp.Channel([[0.25, 0.75]] * 6, [2, 3])
    for k in (1, 2):
        found = fp.group_capacity(same, k)
        assert (found.lower, found.upper) == (0.0, 0.0)
    assert fp.individual_capacity(fp.Channel([[0.5, 0.5]] * 4, [2, 2])).upper == 0.0
    assert fp.individual_capacity([[0.5, 0.5]]).upper == 0.0
    assert fp.individual_capacity([[1.0], [1.0]]).upper == 0.0


def test_a_law_that_is_not_tilted_tells_nothing():
    channel = fp.TiltedChannel(fp.Dense([0.1, 0.2, 0.3, 0.4], [2, 2]), 0.0)
    assert fp.group_capacity(channel, 1).upper == 0.0


def test_random_ascents_only_where_selections_cannot_be_listed(monkeypatch):
    started = []
    climb = Search.climb
    monkeypatch.setattr(Search, "climb", lambda *given: (started.append(1), climb(*given))[1])
    rng = np.random.default_rng(2)
    for sizes, outputs, most in [
        ((8,), 8, 0),
        ((3, 3), 9, 4),
        ((3, 3, 3), 8, 6),
        ((3,) * 4, 6, 600),
    ]:
        started.clear()
        fp.individual_capacity(fp.Channel(channel(rng, sizes, outputs), sizes), time_limit=None)
        assert len(started) <= most
    assert len(started) > 64  # 27^3 selections for each record
