"""The best selection: one row of a table from each of several slices, with the largest capacity.

The capacity of rows w_1 .. w_m is min over q of max_a D(w_a, q). So any law q bounds all selections
from slices S_1 .. S_m by the largest divergence of a row in them. The best such bound is the
capacity of all rows together. Best-first branch and bound splits slices into clusters of nearby
rows, until these bounds or a list of the selections left prove that the best one so far is optimal.

Three or more slices with few enough rows are left to the search for cliques of compatible rows
(``cliques.py``), after a fraction of the limit. It proves one level after the other.

Two further bounds hold for any m rows. Their capacity is at most ln m. And it is at most the mean
number of yes-or-no questions that identify one of m values by a Huffman code of equal weights,
times the capacity of the best pair of rows: mutual information is convex in the channel, so an
answer tells at most as much as the best pair.

A third bound is for slices that are easily told apart. Construct a channel with one input for each
slice: every output has its least probability among the rows of the slice, and the rest goes to an
output that belongs to this slice alone. Every selection is a garbling of this channel, because the
extra output of a slice can be redistributed to what its row has more. The bound is good if the rows
of a slice have similar overlaps with the other slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastpriv._core.clock import Meter
from fastpriv._core.rounding import round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.warm_up import load_kernels
from fastpriv._matrices.clique_search import advance, by_cliques
from fastpriv._matrices.cliques import mean_questions, pair_work
from fastpriv._matrices.selection_search import MANY, Node, Search

__all__ = ["Selection", "best_selection"]

#: Rows of a table whose search is short and needs few kernels, and all that others may need.
_TINY = 16
_SEARCH_KERNELS = (
    "capacities",
    "list_cliques",
    "negative_entropies",
    "output_law",
    "pair_bounds",
    "row_distances",
    "row_divergences",
    "row_dots",
    "sharp_pair_bounds",
    "two_row_capacities",
)
#: Fractions of the limit at which branch and bound and the list of cliques take turns, and the one
#: before a pair is bounded where there are too many rows for cliques.
_TURNS, _BEFORE = (0.06, 0.5, 0.58, 1.0), 0.35
#: Units of work of a search without a time limit.
_WORK = 1e9


class Selection(NamedTuple):
    """The best selection so far, and a bound on all selections."""

    lower: float
    upper: float
    problem: int  # which of the problems it belongs to
    choice: Ints  # a row of the table for each slice
    law: Floats  # of the values, under which the rows carry ``lower`` nats


def best_selection(
    table: Floats,
    problems: Sequence[Sequence[Ints]],
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
) -> Selection:
    """Choose one row of ``table`` from each slice of one problem, for the largest capacity.

    Parameters
    ----------
    table : (R, K) array
        Output laws.
    problems : sequence of sequences of integer arrays
        Each problem is a list of slices, and each slice is a list of rows of the table. If one
        array object is given twice, pairs are unordered.
    gap : float
        Width to reach, in nats, and relative to capacities below one nat.
    time_limit : float or None
        Seconds after which the bracket is returned as it stands. None bounds the work instead.
    """
    if len(table) > _TINY:
        load_kernels(*_SEARCH_KERNELS)  # compiling them does not count
    meter = Meter(time_limit, _WORK)
    search = Search(table, gap, meter)
    nodes = [Node(p, _distinct(slices)) for p, slices in enumerate(problems)]
    most = max(map(len, problems))
    upper = search.run(nodes, meter.limit) if most == 2 else _by_parts(search, nodes, most)
    return Selection(search.lower, upper, search.problem, search.choice, search.law)


def _by_parts(search: Search, nodes: list[Node], most: int) -> float:
    """Search slices for ``most`` values. Return the upper end.

    If the rows are too many for cliques, branch and bound has the rest of the limit, after the
    bound from pairs.
    """
    meter = search.meter
    upper = search.run(nodes, _TURNS[0] * meter.limit)
    if upper <= search.target:
        return upper
    rows = np.unique(np.concatenate([rows for node in nodes for rows in node.slices]))
    if most <= MANY and pair_work(len(rows), search.laws.outputs) < 0.25 * meter.room():
        steps = by_cliques(search, nodes, rows, upper)
        for turn, share in enumerate(_TURNS[1:]):
            end = share * meter.limit
            told = search.run(nodes, end) if turn % 2 else advance(search, steps, end)
            upper = min(upper, told)
            if upper <= search.target:
                return max(search.upper, upper)
        return max(search.upper, min(upper, search.run(nodes, meter.limit)))
    upper = search.run(nodes, _BEFORE * meter.limit)
    if upper <= search.target:
        return upper
    pairs = Search(search.laws.table, search.gap, meter)
    pair = pairs.run([Node(0, (rows, rows))], 2.0 * _BEFORE * meter.limit)
    upper = min(upper, round_up(pair * mean_questions(most)))
    if upper > search.target:
        upper = min(upper, search.run(nodes, meter.limit))
    return max(search.upper, upper)


def _distinct(slices: Sequence[Ints]) -> tuple[Ints, ...]:
    """Sort every slice and remove repetitions. An object given twice stays one object."""
    seen = {id(rows): np.unique(rows) for rows in slices}
    return tuple(seen[id(rows)] for rows in slices)
