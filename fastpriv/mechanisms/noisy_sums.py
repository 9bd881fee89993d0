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
from typing import NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock, Meter
from fastpriv._core.rounding import LEAST, ULP, lowered
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.searches.selection import best_selection
from fastpriv.errors import InvalidInput
from fastpriv.measures.individual.adversary import widened
from fastpriv.mechanisms.answers import BLUR, FLAT, FURTHEST
from fastpriv.mechanisms.noise_kinds import (
    Noise,
    largest_capacity,
    noise_table,
    pair_capacity,
)
from fastpriv.mechanisms.sum_query import Menu, SumQuery, chain_menu, menu, menu_size
from fastpriv.results import Adversary, Bracket, IndividualCapacity

#: Most answers of a menu, most of those furthest out, and the steps of menus that are tried.
_ANSWERS, _ENDS, _MENUS = 1 << 12, 1 << 10, (256, 64, 32, 16, 8, 4, 2, 1)
#: Units of work without a time limit, those of directions, and of an entry of a list of databases.
_WORK, _SVD, _LISTED = 1e10, 16.0, 16.0


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
        meter = Meter(None if time_limit is None else clock.share(len(kinds) - j), _WORK)
        row = _Row(query, tables, kind, noise, independent, meter)
        leak = row.capacity(gap)
        upper = max(upper, leak.upper)
        if who is None or leak.lower > lower:
            lower, who = leak.lower, row.adversary(leak)
    if not kinds:
        who = Adversary((0,), np.zeros((1, query.space.n), np.int64), np.ones(1))
    return IndividualCapacity(lower, upper, who)


class _Leak(NamedTuple):
    """A bracket, with who learns its lower end: types of the other rows and a law of the values."""

    lower: float
    upper: float
    types: list[Ints]
    law: Floats


class _Row:
    """A row of one kind, with what the others may add."""

    def __init__(
        self,
        query: SumQuery,
        tables: list[Floats],
        kind: int,
        noise: Noise,
        independent: bool,
        meter: Meter,
    ) -> None:
        self.query, self.kind, self.noise, self.meter = query, kind, noise, meter
        self.own, self.m = tables[kind], len(tables[kind])
        counts = [count - (k == kind) for k, count in enumerate(query._counts)]
        self.others = [k for k, count in enumerate(counts) if count]
        self.tables, self.counts = (
            [tables[k] for k in self.others],
            [counts[k] for k in self.others],
        )
        self.fixed = independent or not self.others
        self.ends = self._ends()
        varying = [kind] if self.fixed else [kind, *self.others]
        self.silent = not any(np.ptp(query._kinds[k], axis=0).any() for k in varying)
        self.reach = _length(self.own) + _length(self.ends.points)
        #: How far answers are off: sums of numbers of at least 0 over all values, or over kinds.
        columns, dimensions = sum(map(len, self.tables)), self.own.shape[1]
        self.error = self.reach * (4.0 * columns + 8.0 * dimensions + 64.0) * ULP
        self.end_error = self.reach * 4.0 * len(tables) * ULP

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

    def capacity(self, gap: float) -> _Leak:
        """Return the largest I(X_i; Y) over priors."""
        distance, far, pair = self._furthest()
        choice = [self.ends.types[pair[1] if a == pair[0] else pair[3]] for a in range(self.m)]
        law = np.zeros(self.m)
        law[[pair[0], pair[2]]] = 0.5
        if distance == 0.0:  # or so little that doubles do not know it
            return _Leak(0.0, 0.0 if self.silent else LEAST, choice, law)
        blur = BLUR + self.end_error / distance
        far = max(far, distance) * (1.0 + blur)
        two = Bracket(
            pair_capacity(self.noise, distance, blur).lower,
            pair_capacity(self.noise, far, 0.0).upper,
        )
        axes, left_out = self._axes()
        line = len(axes) == 1
        if self.m == 2 or (line and far <= self.noise.few):
            return _Leak(two.lower, two.upper, choice, law)
        most = largest_capacity(self.noise, two, far, self.m, len(axes))
        best = _Leak(two.lower, most, choice, law)
        if not line:
            best = max(best, self._guessed(most), key=lambda leak: leak.lower)
        if best.upper - best.lower <= gap * min(1.0, best.lower) or self.meter.over:
            return best
        return self._searched(best, far, gap, axes, self.error + left_out)

    def _searched(self, best: _Leak, far: float, gap: float, axes: Floats, error: float) -> _Leak:
        """Narrow a bracket by the best selection from a menu, with answers that are off."""
        for rest in self._menus():
            places = (self.own @ axes[:2].T)[:, None] + rest.points @ axes[:2].T
            places = places.reshape(-1, places.shape[2])
            places -= places.min(axis=0)
            table, numbers = noise_table(places, self.noise, error, self.meter)
            if table is None:
                continue
            numbers = numbers.reshape(self.m, -1)
            left = self.meter.seconds_left()
            found = best_selection(table.laws, [[*map(np.unique, numbers)]], gap, left)
            told = IndividualCapacity(found.lower, found.upper, None)
            told = widened(told, table.rounding)
            high = best.upper
            if rest.complete and len(axes) <= 2:
                high = min(high, told.upper + table.error)
            elif len(axes) == 1:
                high = min(high, self.noise.spread(far, self.m, gap))
                step = float(np.diff(np.sort(rest.points[:, 0])).max(initial=0.0)) + 2.0 * error
                high = min(high, self.noise.nearby(told.upper + table.error, 0.5 * step, high))
            low = told.lower - table.error
            if low < best.lower:
                return best._replace(upper=max(best.lower, high))
            at = (numbers == found.choice[:, None]).argmax(axis=1)
            return _Leak(low, max(low, high), [rest.types[r] for r in at], found.law)
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

    def _furthest(self) -> tuple[float, float, tuple[int, int, int, int]]:
        """Return the largest distance of answers with other values, up to a bound, and who has it.

        |u + e|^2 = |u|^2 + |e|^2 + 2 u e for a difference u of the row's own scores and e of the
        others' ends. It is at most (|u| + |e|)^2, so that pairs with a short u need not be tried.
        The pair is value, end, other value, other end.
        """
        best, found = -1.0, (0, 0, 1, 0)
        if self.reach == 0.0:
            return 0.0, 0.0, found
        scores, sums = self.own / self.reach, self.ends.points / self.reach  # squares in range
        own, ends, mixed = _squares(scores), _squares(sums), scores @ sums.T
        error, widest = 4.0 * (scores.shape[1] + 8) * ULP, max(0.0, float(ends.max()))
        bounds = np.tril((np.sqrt(np.maximum(own, 0.0)) + math.sqrt(widest)) ** 2, -1)
        while True:
            a, b = divmod(int(bounds.argmax()), self.m)
            bound = float(bounds[a, b])
            if best >= 0.0 and (bound <= best + error or self.meter.over):
                break
            bounds[a, b] = 0.0
            along = mixed[a] - mixed[b]
            squares = own[a, b] + ends + 2.0 * (along[:, None] - along)
            self.meter.spend(4.0 * (squares.size + bounds.size))
            r, s = divmod(int(squares.argmax()), len(squares))
            if squares[r, s] > best:
                best, found = max(float(squares[r, s]), 0.0), (a, r, b, s)
        a, r, b, s = found
        apart = self.own[a] - self.own[b] + (self.ends.points[r] - self.ends.points[s])
        far = self.reach * math.sqrt(max(best, bound) + 2.0 * error)
        return float(np.linalg.norm(apart)), far, found

    def _axes(self) -> tuple[Floats, float]:
        """Return the directions in which answers vary, the widest first, and what is left out.

        Answers own + end have the covariance of the two together. All directions, in any order,
        where there is no time to find out.
        """
        size, dimensions = self.m + len(self.ends.points), self.own.shape[1]
        if dimensions == 1 or self.meter.too_late(_SVD * size * dimensions * min(size, dimensions)):
            return np.eye(dimensions), 0.0
        parts = [self.own - self.own.mean(axis=0), self.ends.points - self.ends.points.mean(axis=0)]
        both = np.vstack([parts[0] * math.sqrt(len(parts[1])), parts[1] * math.sqrt(self.m)])
        _, sizes, axes = np.linalg.svd(both, full_matrices=False)
        axes = axes[sizes > FLAT * sizes[0]]
        return axes, math.fsum(_length(part - (part @ axes.T) @ axes) for part in parts)

    def _guessed(self, most: float) -> _Leak:
        """Return what is told by the nearest of answers that lie far out, one for each value.

        By Fano's inequality, from a bound on the chance that normal noise leads to another answer.
        """
        towards = self.own - self.own.mean(axis=0)
        places = (self.ends.points @ towards.T).argmax(axis=0)
        points = self.own + self.ends.points[places]
        squares = _squares(points / self.reach)
        np.fill_diagonal(squares, math.inf)
        nearest = max(0.0, float(squares.min()) - 4.0 * (points.shape[1] + 8) * ULP)
        half = 0.5 * (math.sqrt(nearest) * self.reach * (1.0 - BLUR) - self.end_error)
        error = 0.5 * (self.m - 1.0) * math.erfc(half / math.sqrt(2.0)) * (1.0 + 1e-12)
        law = np.full(self.m, 1.0 / self.m)
        types = [self.ends.types[r] for r in places]
        if not error < 0.5:  # Fano's bound grows with the error up to there
            return _Leak(0.0, most, types, law)
        unsure = -math.log1p(-error) * (1.0 - error) + error * math.log(self.m - 1.0)
        unsure -= error * math.log(error) if error > 0.0 else 0.0
        return _Leak(max(0.0, lowered(math.log(self.m) - unsure, 16.0)), most, types, law)

    def adversary(self, leak: _Leak) -> Adversary | None:
        """Return who believes in the given types of the other rows; None if the list is long."""
        n, which = self.query.space.n, self.query._which
        if self.m * n > check.MAX_VECTOR or self.meter.too_late(_LISTED * self.m * n):
            return None
        i = int(np.argmax(which == self.kind))
        databases = np.zeros((self.m, n), dtype=np.int64)
        splits = np.cumsum([len(table) for table in self.tables])[:-1]
        for a, counts in enumerate(leak.types):
            for k, held in zip(self.others, np.split(counts, splits), strict=False):
                rows = np.flatnonzero(which == k)
                databases[a, rows[rows != i]] = np.repeat(np.arange(len(held)), held)
            databases[a, i] = a
        return Adversary((i,), databases, leak.law)


def _length(points: Floats) -> float:
    """Return the length of the longest of some vectors."""
    return float(np.linalg.norm(points, axis=1).max())


def _squares(points: Floats) -> Floats:
    """Return the squares of all distances, off by 4 (d + 3) u times that of the longest vector."""
    products = points @ points.T
    own = np.diag(products)
    return np.asarray(own[:, None] + own - 2.0 * products)
