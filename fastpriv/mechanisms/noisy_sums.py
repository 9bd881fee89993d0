"""Noise on a sum over rows: what an output tells about one of them.

Given x_i = a the answer is the score of a plus a sum over the other rows. Under independent rows
the worst adversary knows that sum, and the scores of row i are what the noise hides. Under all
priors the sum may depend on a in any way (Wu-Xia-He 2020, Theorem 2). The norm of a difference of
two answers is convex in the types of the rows behind them, so in the two answers furthest apart all
rows of a kind hold the same value. That settles bits. For more values some of the answers, or all
of them, make a finite channel to search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, lowered
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.selection import best_selection
from fastpriv.errors import InvalidInput
from fastpriv.measures.individual.search import widened
from fastpriv.mechanisms.answers import FLAT, FURTHEST
from fastpriv.mechanisms.noise_kinds import (
    BLUR,
    Noise,
    largest_capacity,
    noise_table,
    pair_capacity,
)
from fastpriv.mechanisms.sum_query import Menu, SumQuery, chain_menu, menu, menu_size
from fastpriv.results import Adversary, IndividualCapacity

#: Most answers of a menu, most of those furthest out, and the steps of menus that are tried.
_ANSWERS, _ENDS, _MENUS = 1 << 12, 1 << 10, (256, 64, 32, 16, 8, 4, 2, 1)


def sum_capacity(
    query: SumQuery,
    scales: Floats,
    noise: Noise,
    independent: bool,
    gap: float,
    time_limit: float | None,
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over rows i and priors, for noise of some scales."""
    with np.errstate(over="ignore"):
        tables = [(table - table.min(axis=0)) / scales for table in query._kinds]
    parts = zip(tables, query._counts, strict=True)
    if not max(count * float(table.max()) for table, count in parts) <= FURTHEST:
        raise InvalidInput(
            f"answers may be at most {FURTHEST:g} times the noise apart; use more noise"
        )
    clock = Clock(math.inf if time_limit is None else time_limit)
    lower, upper, who = 0.0, 0.0, None
    kinds = [k for k, table in enumerate(tables) if len(table) > 1]
    for j, kind in enumerate(kinds):
        row = _Row(query, tables, kind, noise, independent)
        share = None if time_limit is None else clock.share(len(kinds) - j)
        leak = row.capacity(gap, share)
        upper = max(upper, leak.upper)
        if who is None or leak.lower > lower:
            lower, who = leak.lower, leak.adversary
    nobody = Adversary((0,), np.zeros((1, query.space.n), np.int64), np.ones(1))
    return IndividualCapacity(lower, upper, who or nobody)


class _Row:
    """A row of one kind, with what the others may add."""

    def __init__(
        self, query: SumQuery, tables: list[Floats], kind: int, noise: Noise, independent: bool
    ) -> None:
        self.query, self.kind, self.noise = query, kind, noise
        self.own, self.m = tables[kind], len(tables[kind])
        counts = [count - (k == kind) for k, count in enumerate(query._counts)]
        self.others = [k for k, count in enumerate(counts) if count]
        self.tables, self.counts = (
            [tables[k] for k in self.others],
            [counts[k] for k in self.others],
        )
        self.fixed = independent or not self.others
        self.ends = self._ends()
        points = (self.own[:, None] + self.ends.points).reshape(-1, self.own.shape[1])
        self.axes = _axes(points)
        #: Relative errors of sums over kinds.
        self.blur = BLUR + 4.0 * len(tables) * ULP

    def _ends(self) -> Menu:
        """Return the answers of the others that are furthest out."""
        if self.fixed:
            types = [np.eye(1, len(table), dtype=np.int64) * c for table, c in self._parts()]
            joined = np.hstack(types) if types else np.zeros((1, 0), np.int64)
            return Menu(np.zeros((1, self.own.shape[1])), joined, True)
        if self.own.shape[1] == 1:
            return chain_menu(self.tables, self.counts, 1)
        number = menu_size([len(table) for table in self.tables], self.counts, 1)
        advice = "use fewer kinds of rows, or a query of one dimension"
        check.fits(number, "the list of vectors that rows add up to", advice, _ENDS)
        return menu(self.tables, self.counts, 1)

    def _parts(self) -> list[tuple[Floats, int]]:
        return list(zip(self.tables, self.counts, strict=True))

    def capacity(self, gap: float, time_limit: float | None) -> IndividualCapacity:
        """Return the largest I(X_i; Y) over priors."""
        distance, pair = self._furthest()
        choice = [self.ends.types[pair[1] if a == pair[0] else pair[3]] for a in range(self.m)]
        law = np.zeros(self.m)
        law[[pair[0], pair[2]]] = 0.5
        adversary = self._adversary(choice, law)
        if distance == 0.0:
            return IndividualCapacity(0.0, 0.0, adversary)
        far, line = distance * (1.0 + self.blur), len(self.axes) == 1
        two = pair_capacity(self.noise, distance, self.blur)
        if self.m == 2 or (line and far <= self.noise.few):
            return IndividualCapacity(two.lower, two.upper, adversary)
        most = largest_capacity(self.noise, two, far, self.m, len(self.axes))
        best = IndividualCapacity(two.lower, most, adversary)
        if not line:
            best = max(best, self._guessed(most), key=lambda leak: leak.lower)
        if best.width <= gap * min(1.0, best.lower):
            return best
        return self._searched(best, far, gap, time_limit)

    def _searched(
        self, best: IndividualCapacity, far: float, gap: float, time_limit: float | None
    ) -> IndividualCapacity:
        """Narrow a bracket by the best selection from a menu."""
        for rest in self._menus():
            points = (self.own[:, None] + rest.points).reshape(-1, self.own.shape[1])
            places = points @ self.axes[:2].T
            table, numbers = noise_table(places - places.min(axis=0), self.noise)
            if table is None:
                continue
            numbers = numbers.reshape(self.m, -1)
            found = best_selection(table.laws, [[*map(np.unique, numbers)]], gap, time_limit)
            told = IndividualCapacity(found.lower, found.upper, None)
            told = widened(told, table.rounding * (1.0 + len(self.tables)))
            high = best.upper
            if rest.complete and len(self.axes) <= 2:
                high = min(high, told.upper + table.error)
            elif len(self.axes) == 1:
                high = min(high, self.noise.spread(far, self.m, gap))
                step = float(np.diff(np.sort(rest.points[:, 0])).max(initial=0.0))
                high = min(high, self.noise.nearby(told.upper + table.error, 0.5 * step, high))
            low = told.lower - table.error
            if low < best.lower:
                return IndividualCapacity(best.lower, max(best.lower, high), best.adversary)
            places = (numbers == found.choice[:, None]).argmax(axis=1)
            who = self._adversary([rest.types[r] for r in places], found.law)
            return IndividualCapacity(low, max(low, high), who)
        return best

    def _menus(self) -> Iterator[Menu]:
        """Yield menus of answers, the largest first."""
        if self.fixed:
            yield self.ends
            return
        sizes = [len(table) for table in self.tables]
        for steps in (max(self.counts), *_MENUS):
            if menu_size(sizes, self.counts, steps) <= _ANSWERS:
                yield menu(self.tables, self.counts, steps)
            elif self.own.shape[1] == 1 and steps in _MENUS:
                yield chain_menu(self.tables, self.counts, steps)

    def _furthest(self) -> tuple[float, tuple[int, int, int, int]]:
        """Return the largest distance of answers with other values, and values and places."""
        best, found = -1.0, (0, 0, 1, 0)
        for a in range(self.m):
            for b in range(a):
                apart = self.own[a] - self.own[b] + self.ends.points[:, None] - self.ends.points
                lengths = np.linalg.norm(apart, axis=2)
                r, s = np.unravel_index(int(lengths.argmax()), lengths.shape)
                if lengths[r, s] > best:
                    best, found = float(lengths[r, s]), (a, int(r), b, int(s))
        return best, found

    def _guessed(self, most: float) -> IndividualCapacity:
        """Return what is told by the nearest of answers that lie far out, one for each value.

        By Fano's inequality, from a bound on the chance that normal noise leads to another answer.
        """
        towards = self.own - self.own.mean(axis=0)
        places = (self.ends.points @ towards.T).argmax(axis=0)
        points = self.own + self.ends.points[places]
        apart = np.linalg.norm(points[:, None] - points, axis=2)
        np.fill_diagonal(apart, math.inf)
        half = 0.5 * float(apart.min()) * (1.0 - self.blur)
        error = 0.5 * (self.m - 1.0) * math.erfc(half / math.sqrt(2.0)) * (1.0 + 1e-12)
        law = np.full(self.m, 1.0 / self.m)
        who = self._adversary([self.ends.types[r] for r in places], law)
        if not error < 0.5:  # Fano's bound grows with the error up to there
            return IndividualCapacity(0.0, most, who)
        unsure = -math.log1p(-error) * (1.0 - error) + error * math.log(self.m - 1.0)
        unsure -= error * math.log(error) if error > 0.0 else 0.0
        return IndividualCapacity(max(0.0, lowered(math.log(self.m) - unsure, 16.0)), most, who)

    def _adversary(self, types: list[Ints], law: Floats) -> Adversary:
        """Return who believes in the given types of the other rows."""
        n, which = self.query.space.n, self.query._which
        check.fits(self.m * n, "the databases of an adversary", "use fewer rows")
        i = int(np.argmax(which == self.kind))
        databases = np.zeros((self.m, n), dtype=np.int64)
        splits = np.cumsum([len(table) for table in self.tables])[:-1]
        for a, counts in enumerate(types):
            for k, held in zip(self.others, np.split(counts, splits), strict=False):
                rows = np.flatnonzero(which == k)
                databases[a, rows[rows != i]] = np.repeat(np.arange(len(held)), held)
            databases[a, i] = a
        return Adversary((i,), databases, law)


def _axes(points: Floats) -> Floats:
    """Return the directions in which points vary, the widest first."""
    moved = points - points.mean(axis=0)
    if points.shape[1] == 1 or not moved.any():
        return np.eye(1, points.shape[1])
    _, sizes, axes = np.linalg.svd(moved, full_matrices=False)
    return np.asarray(axes[sizes > FLAT * sizes[0]])
