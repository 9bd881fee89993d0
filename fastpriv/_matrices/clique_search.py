"""Lists of selections that may exceed one level after the other, as the steps of a search.

The levels and the tests of selections are explained in ``cliques.py`` and ``affinities.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.affinities import part_limit
from fastpriv._matrices.capacity import capacities, matrix_capacity
from fastpriv._matrices.cliques import Cliques, pair_work
from fastpriv._matrices.selection_search import CAPACITY, Node, Search

#: Gap of the capacity of all rows of a node.
_COARSE = 1e-6
#: How much of the way to the target a level for cliques leaves, and the relative distance from
#: which the next level is the target.
_LEAVES, _CLOSE = 0.25, 0.02
#: Slices up to which the parts of selections are bounded first, and the least probabilities that
#: this has to allow for, and should allow for.
_PARTED, _LOOSE, _ENOUGH = 6, 0.01, 0.04


def advance(search: Search, steps: Iterator[float], deadline: float) -> float:
    """Take the steps of a list of cliques until the meter shows ``deadline``.

    Returns the last bound, infinity if there are no steps left.
    """
    search.deadline, last = deadline, math.inf
    for upper in steps:
        last = upper
        if search.over:
            break
    return last


def by_cliques(search: Search, nodes: list[Node], rows: Ints, upper: float) -> Iterator[float]:
    """Yield bounds on all selections, by listing those that may exceed one level after another.

    ``upper`` bounds all of them beforehand, and ``rows`` are all rows of all nodes.
    """
    search.meter.spend(pair_work(len(rows), search.laws.outputs))
    cliques = Cliques(search.laws, rows)
    bounds = [min(upper, cliques.largest(len(node.slices))) for node in nodes]
    centres = [_centre(search, node) for node in nodes]
    upper, last = max(bounds), math.inf
    while search.target < upper < last:
        near = upper - search.target <= _CLOSE * search.target
        level = search.target + (0.0 if near else _LEAVES * (upper - search.target))
        for _ in _prove_parts(search, cliques, nodes, level):
            yield max(search.upper, upper)
        for k, node in enumerate(nodes):
            if bounds[k] > level:
                worst = level
                outside = _outside(search, node, centres[k], level)
                for choices in cliques.listed(node.slices, level, outside):
                    search.meter.spend(cliques.step)
                    if len(choices):
                        worst = max(worst, search.evaluate(node.problem, choices))
                    yield max(search.upper, upper)
                bounds[k] = worst
        upper, last = max(*bounds, search.upper), upper
    yield max(search.upper, upper)


def _prove_parts(
    search: Search, cliques: Cliques, nodes: list[Node], level: float
) -> Iterator[None]:
    """Bound the capacity of all but one row of a selection, for tests of whole selections.

    The bound is for the slices of all nodes, so it is looked for if these have one number of them.
    """
    m, others = len(nodes[0].slices), {len(node.slices) for node in nodes}
    loose, enough = (part_limit(level, t) for t in (_LOOSE, _ENOUGH))
    if len(others) > 1 or not 3 < m <= _PARTED or cliques.largest(m - 1) <= loose:
        return
    parts = {
        tuple(map(id, part)): part
        for node in nodes
        for part in itertools.combinations(node.slices, m - 1)
    }
    worst, everywhere = enough, np.ones(search.laws.size, np.bool_)
    for part in parts.values():
        for choices in cliques.listed(part, enough, everywhere):
            search.meter.spend(cliques.step)
            if len(choices):
                search.touch(choices.size, CAPACITY)
                high = capacities(search.laws.table[choices], 1e-3)[1]
                worst = max(worst, float(high.max()))
            if worst > loose:
                return
            yield
    cliques.parts[m - 1] = worst


def _centre(search: Search, node: Node) -> Floats:
    """Bound the divergences of the rows of a node from a law that is close to all of them."""
    union = node.union
    search.touch(len(union), CAPACITY)
    law = matrix_capacity(search.laws.table[union], _COARSE, lambda: search.over)[1]
    search.bound(node, union, law)
    return search.far.copy()


def _outside(search: Search, node: Node, centre: Floats, level: float) -> NDArray[np.bool_]:
    """Return the rows of a node that one of two laws does not bound by a level."""
    union = node.union
    return min((far > level for far in (centre, search.from_best())), key=lambda o: o[union].sum())
