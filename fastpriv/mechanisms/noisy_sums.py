"""Sums of a score for each row, and what noise on them reveals about one row.

Given x_i = a the answer is the score of a plus a sum over the other rows. Under independent rows
the worst adversary knows that sum, and the noise hides the scores of row i. Under all
priors the sum may depend on a in any way (Wu-Xia-He 2020, Theorem 2). The norm of a difference of
two answers is convex in the types of the rows behind them, so in the two answers furthest apart all
rows of a kind hold the same value. That is the answer for bits. For more values some of the
answers, or all of them, form a finite channel, which is searched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock, Meter
from fastpriv._core.rounding import LEAST, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.searches.selection import best_selection
from fastpriv._structure.rows import distinct
from fastpriv.errors import InvalidInput, described
from fastpriv.measures.individual.adversary import widened
from fastpriv.mechanisms.amplitude import erfc_up, fano_bound
from fastpriv.mechanisms.noise import (
    BLUR,
    FLAT,
    FURTHEST,
    Noise,
    as_doubles,
    largest_capacity,
    noise_table,
    pair_capacity,
)
from fastpriv.results import Adversary, Bracket, IndividualCapacity
from fastpriv.spaces import Space

__all__ = ["SumQuery"]

#: Most answers of a menu.
_ANSWERS = 1 << 12
#: Most extreme sums in several dimensions.
_ENDS = 1 << 10
#: Steps of menus that are tried, the finest first.
_MENUS = (256, 64, 32, 16, 8, 4, 2, 1)
#: Most types of rows whose sums are listed.
_TYPES = 1 << 22
#: Units of work if there is no time limit.
_WORK = 1e10
#: Units of work of a singular value decomposition, for each multiplication.
_SVD = 16.0
#: Units of work of an entry of a list of databases.
_LISTED = 16.0


# The query.


class SumQuery:
    """A query f(x) = sum_i scores[i][x_i], for noise that is added to it.

    The scores are numbers, or vectors of one length. A count adds a bit for each record, a
    histogram a unit vector.

    Parameters
    ----------
    scores : sequence of arrays of shape (m_i,) or (m_i, d)
        ``scores[i][v]`` is the score of value v in record i. Rows with equal scores
        (``[scores] * n``) are measured once.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ages = fp.mechanisms.SumQuery([[20.5, 40.0, 71.5]] * 1000)
    >>> ages, fp.mechanisms.SumQuery.histogram(500, 3)
    (SumQuery(1000 rows), SumQuery(500 rows, 3 dimensions))
    >>> fp.mechanisms.gaussian_query_capacity(fp.mechanisms.SumQuery.count(10**6), 5e5)
    IndividualCapacity(0.3368308203, 0.3368308204)
    """

    def __init__(self, scores: Sequence[ArrayLike]) -> None:
        kinds, which = distinct(scores, _load, "scores")
        lengths = {table.shape[1] for table in kinds}
        if len(lengths) > 1:
            raise InvalidInput(f"scores must be vectors of one length; got {sorted(lengths)}.")
        self._set(kinds, which)

    def _set(self, kinds: list[Floats], which: Ints) -> None:
        self.kinds, self.which = kinds, which
        self.counts: list[int] = np.bincount(which, minlength=len(kinds)).tolist()
        sizes: list[int] = np.array([len(table) for table in kinds])[which].tolist()
        self.space, self.dimensions = Space.of(tuple(sizes)), kinds[0].shape[1]

    @classmethod
    def _alike(cls, table: Floats, n: int) -> SumQuery:
        self = cls.__new__(cls)
        check.fits(n, "a database", "use fewer records")
        self._set([table], np.zeros(n, np.int64))
        return self

    @classmethod
    def count(cls, n: int) -> SumQuery:
        """Return the query that counts the ones among n bits."""
        return cls._alike(np.array([[0.0], [1.0]]), check.integer(n, "n", 1))

    @classmethod
    def histogram(cls, n: int, m: int) -> SumQuery:
        """Return the query that counts the rows, of n, that hold each of m values."""
        m = check.integer(m, "m", 1)
        check.fits(m * m, "the scores of a row", "use fewer values")
        return cls._alike(np.eye(m), check.integer(n, "n", 1))

    def __repr__(self) -> str:
        more = f", {self.dimensions} dimensions" if self.dimensions > 1 else ""
        return f"SumQuery({self.space.n} rows{more})"


def _load(scores: ArrayLike, i: int) -> Floats:
    given = check.array(scores, f"scores[{i}]")
    if given.ndim not in (1, 2) or given.dtype.kind not in "iufb" or not given.size:
        raise InvalidInput(f"scores[{i}] must hold numbers or vectors; got {described(scores)}.")
    table = as_doubles(given, f"scores[{i}]").reshape(len(given), -1)
    if not np.isfinite(table).all():
        raise InvalidInput(f"scores[{i}] must not hold a NaN or an infinity.")
    return table


class Menu:
    """Some of the sums of all rows but one, with the types of the rows.

    Parameters
    ----------
    points : array of shape (R, d)
        Sums of the scores.
    types : array of shape (R, values of all kinds)
        How many rows of each kind hold each value.
    complete : bool
        Whether no answer is left out.
    """

    def __init__(self, points: Floats, types: Ints, complete: bool) -> None:
        first = np.sort(np.unique(points, axis=0, return_index=True)[1])
        self.points, self.types, self.complete = points[first], types[first], complete


def menu_size(sizes: list[int], counts: list[int], steps: int) -> int:
    """Return the number of types of a menu with so many steps."""
    parts = zip(sizes, counts, strict=True)
    return math.prod(math.comb(min(steps, c) + m - 1, m - 1) for m, c in parts)


def check_line(query: SumQuery) -> None:
    """Refuse sums of vectors."""
    if query.dimensions != 1:
        raise InvalidInput(f"values must be a sum of numbers over records; got {query!r}.")


def integer_scores(query: SumQuery) -> tuple[list[list[int]], int]:
    """Return the scores of each kind of row as integers, and their common divisor."""
    check_line(query)
    ratios = [[v.as_integer_ratio() for v in table[:, 0].tolist()] for table in query.kinds]
    whole = max(bottom for row in ratios for _, bottom in row)
    return [[top * (whole // bottom) for top, bottom in row] for row in ratios], whole


def all_sums(query: SumQuery) -> tuple[NDArray[Any], int]:
    """Return every answer of a query of numbers in order, as integers, and their divisor.

    Scores are multiples of one power of two, so that sums of integers are exact and distinct
    answers stay distinct.
    """
    scores, whole = integer_scores(query)
    sizes = [len(table) for table in query.kinds]
    number = menu_size(sizes, query.counts, max(query.counts))
    check.fits(
        number, "the list of types of rows", "use fewer records, or list the answers", _TYPES
    )
    most = sum(c * max(map(abs, row)) for c, row in zip(query.counts, scores, strict=True))
    kind: Any = np.int64 if most < 1 << 62 else object
    sums = np.zeros(1, kind)
    for row, count in zip(scores, query.counts, strict=True):
        own = np.array(row, kind)
        types = own if count == 1 else _proportions(len(row), count, count).astype(kind) @ own
        sums = np.unique(np.add.outer(sums, np.unique(types)))
    return sums, whole


def menu(tables: list[Floats], counts: list[int], steps: int) -> Menu:
    """Return types of rows of several kinds, with counts near multiples of count/steps.

    With as many steps as rows these are all types. With one step all rows of a kind hold the same
    value, which gives the extreme sums in every direction.
    """
    types = np.zeros((1, 0), dtype=np.int64)
    for table, count in zip(tables, counts, strict=True):
        parts = _proportions(len(table), count, min(steps, count))
        types = np.hstack([np.repeat(types, len(parts), axis=0), np.tile(parts, (len(types), 1))])
    return Menu(types.astype(np.float64) @ np.concatenate(tables), types, steps >= max(counts))


def chain_menu(tables: list[Floats], counts: list[int], steps: int) -> Menu:
    """Return sums of numbers from the smallest to the largest, one row after the other moved up."""
    total = sum(counts)
    moved = np.unique(np.round(np.linspace(0.0, total, min(steps, total) + 1)).astype(np.int64))
    parts, before = [], 0
    for table, count in zip(tables, counts, strict=True):
        up = np.clip(moved - before, 0, count)
        part = np.zeros((len(moved), len(table)), dtype=np.int64)
        part[:, int(table[:, 0].argmin())] += count - up
        part[:, int(table[:, 0].argmax())] += up
        parts.append(part)
        before += count
    types = np.hstack(parts)
    return Menu(types.astype(np.float64) @ np.concatenate(tables), types, False)


def _proportions(m: int, count: int, steps: int) -> Ints:
    """Return counts of m values with sum ``count``, near all multiples of count/steps."""
    if steps == 1:
        return count * np.eye(m, dtype=np.int64)[::-1]
    grid = np.zeros((1, 0), dtype=np.int64)
    for _ in range(m - 1):
        left = steps - grid.sum(axis=1)
        grid = np.repeat(grid, left + 1, axis=0)
        own = np.concatenate([np.arange(k + 1) for k in left.tolist()])
        grid = np.hstack([grid, own[:, None]])
    grid = np.hstack([grid, (steps - grid.sum(axis=1))[:, None]])
    ends = np.cumsum(grid, axis=1) * count // max(steps, 1)
    return np.diff(ends, axis=1, prepend=0)


# Its capacity.


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
        tables = [(table - table.min(axis=0)) / scales for table in query.kinds]
    parts = zip(tables, query.counts, strict=True)
    if not max(count * float(table.max()) for table, count in parts) <= FURTHEST:
        raise InvalidInput(
            f"answers may be at most {FURTHEST:g} times the noise apart; use more noise."
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
    """A bracket with its adversary: types of the other rows and probabilities of the values."""

    lower: float
    upper: float
    types: list[Ints]
    probabilities: Floats


class _Row:
    """A row of one kind, and the sums that the other rows may have."""

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
        counts = [count - (k == kind) for k, count in enumerate(query.counts)]
        self.others = [k for k, count in enumerate(counts) if count]
        self.tables, self.counts = (
            [tables[k] for k in self.others],
            [counts[k] for k in self.others],
        )
        self.fixed = independent or not self.others
        self.ends = self._ends()
        varying = [kind] if self.fixed else [kind, *self.others]
        self.silent = not any(np.ptp(query.kinds[k], axis=0).any() for k in varying)
        self.reach = _length(self.own) + _length(self.ends.points)
        #: Rounding of answers: sums of non-negative numbers over all values, or over kinds.
        columns, dimensions = sum(map(len, self.tables)), self.own.shape[1]
        self.error = roundoff(self.reach * (4.0 * columns + 8.0 * dimensions + 64.0))
        self.end_error = roundoff(self.reach * 4.0 * len(tables))

    def _ends(self) -> Menu:
        """Return the extreme sums of the other rows."""
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
        even = np.zeros(self.m)
        even[[pair[0], pair[2]]] = 0.5
        if distance == 0.0:  # or it underflows
            return _Leak(0.0, 0.0 if self.silent else LEAST, choice, even)
        blur = BLUR + self.end_error / distance
        far = max(far, distance) * (1.0 + blur)
        two = Bracket(
            pair_capacity(self.noise, distance, blur).lower,
            pair_capacity(self.noise, far, 0.0).upper,
        )
        axes, left_out = self._axes()
        line = len(axes) == 1
        if self.m == 2 or (line and far <= self.noise.few):
            return _Leak(two.lower, two.upper, choice, even)
        most = largest_capacity(self.noise, two, far, self.m, len(axes))
        best = _Leak(two.lower, most, choice, even)
        if not line:
            best = max(best, self._decoded(most), key=lambda leak: leak.lower)
        if best.upper - best.lower <= gap * min(1.0, best.lower) or self.meter.over:
            return best
        return self._searched(best, far, gap, axes, self.error + left_out)

    def _searched(self, best: _Leak, far: float, gap: float, axes: Floats, error: float) -> _Leak:
        """Narrow a bracket by the best selection from a menu of answers with an error."""
        for rest in self._menus():
            places = (self.own @ axes[:2].T)[:, None] + rest.points @ axes[:2].T
            places = places.reshape(-1, places.shape[2])
            places -= places.min(axis=0)
            table, numbers = noise_table(places, self.noise, error, self.meter)
            if table is None:
                continue
            numbers = numbers.reshape(self.m, -1)
            left = self.meter.seconds_left()
            found = best_selection(table.rows, [[*map(np.unique, numbers)]], gap, left)
            bracket = IndividualCapacity(found.lower, found.upper, None)
            bracket = widened(bracket, table.rounding)
            high = best.upper
            if rest.complete and len(axes) <= 2:
                high = min(high, bracket.upper + table.error)
            elif len(axes) == 1:
                high = min(high, self.noise.spread(far, self.m, gap))
                step = float(np.diff(np.sort(rest.points[:, 0])).max(initial=0.0)) + 2.0 * error
                high = min(high, self.noise.nearby(bracket.upper + table.error, 0.5 * step, high))
            low = bracket.lower - table.error
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
        """Return the largest distance of answers with other values, a bound on it, and the pair.

        |u + e|^2 = |u|^2 + |e|^2 + 2 u e for a difference u of the row's own scores and e of the
        extreme sums of the others. It is at most (|u| + |e|)^2, so that pairs with a short u need
        not be tried. The pair is value, sum, other value, other sum.
        """
        best, found = -1.0, (0, 0, 1, 0)
        if self.reach == 0.0:
            return 0.0, 0.0, found
        scores, sums = self.own / self.reach, self.ends.points / self.reach  # squares in range
        own, ends, mixed = _squares(scores), _squares(sums), scores @ sums.T
        error, widest = roundoff(4.0 * (scores.shape[1] + 8)), max(0.0, float(ends.max()))
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
        """Return the directions in which answers vary, the widest first, and the rest's length.

        The covariance of answers is the sum of the covariances of own scores and other sums. If
        there is no time to find out, all directions are returned, in any order.
        """
        size, dimensions = self.m + len(self.ends.points), self.own.shape[1]
        if dimensions == 1 or self.meter.too_late(_SVD * size * dimensions * min(size, dimensions)):
            return np.eye(dimensions), 0.0
        parts = [self.own - self.own.mean(axis=0), self.ends.points - self.ends.points.mean(axis=0)]
        both = np.vstack([parts[0] * math.sqrt(len(parts[1])), parts[1] * math.sqrt(self.m)])
        _, sizes, axes = np.linalg.svd(both, full_matrices=False)
        axes = axes[sizes > FLAT * sizes[0]]
        return axes, math.fsum(_length(part - (part @ axes.T) @ axes) for part in parts)

    def _decoded(self, most: float) -> _Leak:
        """Return the information of answers that lie far apart, one for each value.

        By Fano's inequality, from a bound on the probability that another answer is nearer.
        """
        towards = self.own - self.own.mean(axis=0)
        places = (self.ends.points @ towards.T).argmax(axis=0)
        points = self.own + self.ends.points[places]
        squares = _squares(points / self.reach)
        np.fill_diagonal(squares, math.inf)
        nearest = max(0.0, float(squares.min()) - roundoff(4.0 * (points.shape[1] + 8)))
        half = 0.5 * (math.sqrt(nearest) * self.reach * (1.0 - BLUR) - self.end_error)
        error = 0.5 * (self.m - 1.0) * erfc_up(half / math.sqrt(2.0))
        types, even = [self.ends.types[r] for r in places], np.full(self.m, 1.0 / self.m)
        return _Leak(fano_bound(self.m, error), most, types, even)

    def adversary(self, leak: _Leak) -> Adversary | None:
        """Return the adversary who believes in these types of other rows; None if it is long."""
        n, which = self.query.space.n, self.query.which
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
        return Adversary((i,), databases, leak.probabilities)


def _length(points: Floats) -> float:
    """Return the length of the longest of some vectors."""
    return float(np.linalg.norm(points, axis=1).max())


def _squares(points: Floats) -> Floats:
    """Return the squares of all distances, off by 4 (d + 3) u times the longest square."""
    products = points @ points.T
    own = np.diag(products)
    return np.asarray(own[:, None] + own - 2.0 * products)
