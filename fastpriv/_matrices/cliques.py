"""Selections of one row from each of several slices that may carry more than a given level.

Let the values be split into A and B, and let t be the probability of A. What the output tells is
what it tells about the part, plus what it tells within the parts:

    I <= F(t) + t C_A + (1 - t) C_B,

where F(t) is the most that two rows tell at weights t and 1 - t, because information is convex in
the channel. It is at most the entropy of t, and the capacity of the best pair of rows. So if a
selection carries more than a level, each j of its rows carry more than a level for j rows, which
follows from this and from a bound on the capacity of the other m - j rows. Pairs of rows below the
level for two are incompatible. The compiled search lists the selections of compatible rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.rounding import log_up, lowered, raised, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.affinities import NEVER, pair_limit, sum_test
from fastpriv._matrices.laws import Laws

#: Most rows that pairs are formed of, and units of work for each pair and output.
_ROWS, _PAIR = 1 << 12, 24
#: Pairs below this share of the largest capacity of a pair are bounded roughly.
_NEAR = 0.25
#: Fraction of rows outside from which it does not help to look at them first.
_SPLIT = 0.5
#: Share of the pairs that a test of three rows allows for.
_MOST = 0.98
#: Cells of the range of a weight.
_CELLS = 2048
#: Words of laws that each row is compared with, selections listed at once, and candidates between
#: two looks at the clock.
_WORDS, _LISTED, _BUDGET = 4, 256, 1 << 22


def mean_questions(m: int) -> float:
    """Bound the mean length of a Huffman code for m values: the largest where all are equal."""
    depth = m.bit_length() - 1
    mean = depth + 2.0 - 2.0 ** (depth + 1) / m
    return mean if m == 1 << depth else raised(mean, 4.0)


def pair_work(rows: int, outputs: int) -> float:
    """Units of work of the bounds on all pairs of rows, infinite if they do not fit."""
    return float(_PAIR * rows * rows * outputs) if rows <= _ROWS else math.inf


class Cliques:
    """Rows of a table, with bounds on the capacities of all pairs of them."""

    def __init__(self, laws: Laws, rows: Ints) -> None:
        self.rows, self.place = rows, np.full(laws.size, -1)
        self.place[rows] = np.arange(len(rows))
        self.table = np.ascontiguousarray(laws.table[rows])
        self.own = laws.own[rows]
        everything = np.arange(len(rows))
        here = Laws(self.table)
        self.pairs = here.pairs(everything, everything)
        apart = np.triu(self.pairs > _NEAR * self.pairs.max(), 1)
        first, second = map(np.ascontiguousarray, np.nonzero(apart))
        sharp = here.sharp_pairs(first, second)
        for i, j in ((first, second), (second, first)):
            self.pairs[i, j] = np.minimum(self.pairs[i, j], sharp)
        self.most = round_up(float(self.pairs.max()))
        roots = np.sqrt(self.table)
        self.affinities = np.asarray(lowered(roots @ roots.T, 2.0 * laws.outputs + 16.0))
        self.parts: dict[int, float] = {}  # proved bounds on the capacity of so many rows
        self.edges = np.linspace(0.0, 1.0, _CELLS + 1)
        self.within = self._within()

    @property
    def step(self) -> float:
        """Most units of work between two yields of a list."""
        return 4.0 * _BUDGET

    def _within(self) -> Floats:
        """Bound F(t) over every cell of weights by the least affinity and the best pair."""
        low, high = self.edges[:-1], self.edges[1:]
        nearest = np.clip(0.5, low, high)  # both bounds rise up to 1/2
        entropy = pair_limit(nearest, float(self.affinities.min()))
        return np.asarray(np.minimum(raised(entropy, 8.0), self.most))

    def largest(self, m: int) -> float:
        """Bound the capacity of m rows."""
        if m < 2:
            return 0.0
        most = self.most
        for j in range(3, m + 1):  # one value and j - 1 others
            by_split = raised(float((self.within + self.edges[1:] * most).max()), 4.0)
            most = min(by_split, log_up(j), round_up(self.most * mean_questions(j)))
            most = min(most, self.parts.get(j, math.inf))
        return most

    def levels(self, level: float, m: int) -> Floats:
        """Return what j of m rows must carry if all of them carry more than a level, j = 0 .. m."""
        least = np.zeros(m + 1)
        least[m] = level
        for j in range(2, m):
            others = self.largest(m - j)
            if level <= others * (1.0 + 1e-12):
                continue  # the others alone may reach the level
            ends = np.stack([self.edges[:-1], self.edges[1:]]).clip(1e-300)
            room = lowered(level, 8.0) - self.within - (1.0 - ends) * others
            least[j] = float((room / ends).min())
        return np.maximum(lowered(least, 8.0), 0.0)

    def tests(self, levels: Floats) -> Floats:
        """Return the numbers of the tests by affinities for each number of rows.

        For three rows pairs are compared one by one, so a test need not hold for the best pair.
        """
        found = [NEVER] * len(levels)
        for j in range(3, len(levels)):
            if levels[j] > 0.0:
                parts = float(np.quantile(self.pairs, _MOST)) if j == 3 else self.largest(j - 1)
                found[j] = sum_test(j, float(levels[j]), parts)
        return np.array(found)

    def listed(
        self, slices: Sequence[Ints], level: float, outside: NDArray[np.bool_]
    ) -> Iterator[Ints]:
        """Yield the selections that may exceed a level, a few at a time, possibly none.

        A law bounds all rows that are not ``outside``, so some row of a selection is. The first
        slice whose row is outside goes first.
        """
        most = sum(int(outside[rows].sum()) for rows in slices)
        if most > _SPLIT * sum(map(len, slices)):
            yield from self._cliques(slices, list(range(len(slices))), level)
            return
        for s, rows in enumerate(slices):
            parts = [*(r[~outside[r]] for r in slices[:s]), rows[outside[rows]], *slices[s + 1 :]]
            if all(map(len, parts)):
                others = sorted(set(range(len(slices))) - {s}, key=lambda k: len(slices[k]))
                yield from self._cliques(parts, [s, *others], level)

    def _cliques(self, slices: Sequence[Ints], order: list[int], level: float) -> Iterator[Ints]:
        """Yield selections, built in the given order of slices."""
        parts = [self.place[slices[s]] for s in order]
        edges = np.cumsum([0, *map(len, parts)])
        seen: dict[bytes, int] = {}
        kind = np.array([seen.setdefault(part.tobytes(), s) for s, part in enumerate(parts)])
        m, levels = len(parts), self.levels(level, len(parts))
        compatible = self.pairs > levels[2] if levels[2] > 0.0 else self.pairs >= 0.0
        tests = self.tests(levels)
        lists = np.zeros((m, edges[-1]), np.int64)
        lists[0] = np.concatenate(parts)
        sizes = np.zeros((m, m), np.int64)
        sizes[0] = np.diff(edges)
        masks = np.full((m * len(self.rows), _WORDS), -1, np.int64).view(np.uint64)
        place, state = np.zeros(m, np.int64), np.zeros(1 + 2 * m, np.int64)
        out = np.empty((_LISTED, m), np.int64)
        while state[0] >= 0:
            number = kernels.list_cliques(
                self.table, self.own, edges, self.rows, kind, compatible, self.pairs,
                self.affinities, tests, levels, masks, lists, sizes, place, state, _BUDGET, out,
            )  # fmt: skip
            yield out[:number][:, np.argsort(order)]
