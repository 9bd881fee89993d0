"""The search for cliques of compatible rows, against all selections."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpriv._core.clock import Meter
from fastpriv._matrices.capacity import capacities
from fastpriv._matrices.searches.cliques import Cliques, advance, by_cliques
from fastpriv._matrices.searches.selection import Laws, Node, Search


def tables(rows, outputs, sharpness, seed):
    return np.random.default_rng(seed).dirichlet(np.full(outputs, sharpness), rows)


def best_by_listing(table, slices):
    choices = np.array(list(itertools.product(*slices)))
    return capacities(np.ascontiguousarray(table[choices]), 1e-12)[0].max()


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("shape", [(9, 9, 9), (1, 12, 7), (6, 5, 4, 6), (3, 3, 3, 3, 3)])
def test_all_selections(shape, sharpness):
    table = tables(sum(shape), 4, sharpness, sum(shape))
    slices = tuple(np.split(np.arange(sum(shape)), np.cumsum(shape)[:-1]))
    search = Search(table, 1e-9, Meter(None, 1e12))
    search.run([Node(0, slices)], 0.0)  # a first selection, and no more
    upper = advance(
        search,
        by_cliques(search, [Node(0, slices)], np.arange(len(table)), np.inf),
        search.meter.limit,
    )
    best = best_by_listing(table, slices)
    assert search.lower <= best * (1.0 + 1e-12)
    assert best <= upper <= search.lower * (1.0 + 1e-9)
    assert [int(x) in rows for x, rows in zip(search.choice, slices, strict=True)] == [True] * len(
        shape
    )


@pytest.mark.parametrize("sharpness", [0.2, 0.5])
def test_problems_of_several_sizes(sharpness):
    """Bounds on parts of the selections of one problem say nothing about another one."""
    table = tables(36, 6, sharpness, 11)
    problems = [np.split(np.arange(16), 4), np.split(np.arange(16, 36), 5)]
    nodes = [Node(p, tuple(slices)) for p, slices in enumerate(problems)]
    search = Search(table, 1e-9, Meter(None, 1e12))
    search.run(nodes, 0.0)
    steps = by_cliques(search, nodes, np.arange(36), np.inf)
    upper = advance(search, steps, search.meter.limit)
    best = max(best_by_listing(table, slices) for slices in problems)
    assert best <= upper <= search.lower * (1.0 + 1e-9)


def test_equal_slices_are_unordered():
    table, rows = tables(14, 5, 1.0, 3), np.arange(14)
    search = Search(table, 1e-9, Meter(None, 1e12))
    search.run([Node(0, (rows,) * 3)], 0.0)
    upper = advance(
        search, by_cliques(search, [Node(0, (rows,) * 3)], rows, np.inf), search.meter.limit
    )
    best = best_by_listing(table, [rows] * 3)
    assert best <= upper <= search.lower * (1.0 + 1e-9)


@given(
    m=st.integers(3, 5),
    outputs=st.integers(2, 5),
    sharpness=st.sampled_from([0.05, 0.5, 5.0, 500.0]),
    seed=st.integers(0, 10**6),
)
def test_parts_of_a_selection_reach_their_levels(m, outputs, sharpness, seed):
    table = tables(m, outputs, sharpness, seed)
    cliques = Cliques(Laws(table), np.arange(m))
    whole = capacities(table[None], 1e-10)[0][0]
    assert whole <= cliques.largest(m)
    levels = cliques.levels(whole * (1.0 - 1e-9), m)
    for j in range(2, m):
        for part in itertools.combinations(range(m), j):
            assert (
                capacities(np.ascontiguousarray(table[list(part)][None]), 1e-10)[1][0] >= levels[j]
            )


def test_everything_above_a_level_is_listed():
    table = tables(24, 4, 0.5, 8)
    slices = list(np.split(np.arange(24), 3))
    choices = np.array(list(itertools.product(*slices)))
    told = capacities(np.ascontiguousarray(table[choices]), 1e-10)[0]
    cliques = Cliques(Laws(table), np.arange(24))
    for level in np.quantile(told, [0.5, 0.9, 0.99]):
        for outside in (np.ones(24, bool), np.arange(24) % 5 == 0):
            allowed = outside[choices].any(axis=1) if outside.sum() < 12 else told > 0.0
            listed = {tuple(c) for part in cliques.listed(slices, level, outside) for c in part}
            assert listed >= set(map(tuple, choices[(told > level) & allowed]))
            assert len(listed) < len(choices)
