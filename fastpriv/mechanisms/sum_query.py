"""Sums of a score for each row: counts, sums and histograms of many rows without a list of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import distinct
from fastpriv.errors import InvalidInput, described
from fastpriv.mechanisms.answers import as_doubles
from fastpriv.spaces import Space

__all__ = ["SumQuery"]

#: Most types of rows whose sums are listed.
_TYPES = 1 << 22


class SumQuery:
    """A query f(x) = sum_i scores[i][x_i], for noise that is added to it.

    The scores are numbers, or vectors of one length. A count adds a bit for each row, a histogram
    a unit vector.

    Parameters
    ----------
    scores : sequence of arrays of shape (m_i,) or (m_i, d)
        ``scores[i][v]`` is what row i adds when it holds value v. Rows with equal scores
        (``[scores] * n``) are looked at once.

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
            raise InvalidInput(f"scores must be vectors of one length, got {sorted(lengths)}")
        self._set(kinds, which)

    def _set(self, kinds: list[Floats], which: Ints) -> None:
        self._kinds, self._which = kinds, which
        self._counts: list[int] = np.bincount(which, minlength=len(kinds)).tolist()
        sizes: list[int] = np.array([len(table) for table in kinds])[which].tolist()
        self.space, self.dimensions = Space.of(tuple(sizes)), kinds[0].shape[1]

    @classmethod
    def _alike(cls, table: Floats, n: int) -> SumQuery:
        self = cls.__new__(cls)
        check.fits(n, "a database", "use fewer rows")
        self._set([table], np.zeros(n, np.int64))
        return self

    @classmethod
    def count(cls, n: int) -> SumQuery:
        """Return how many of n bits are set."""
        return cls._alike(np.array([[0.0], [1.0]]), check.integer(n, "n", 1))

    @classmethod
    def histogram(cls, n: int, m: int) -> SumQuery:
        """Return how many of n rows hold each of m values."""
        m = check.integer(m, "m", 1)
        check.fits(m * m, "the scores of a row", "use fewer values")
        return cls._alike(np.eye(m), check.integer(n, "n", 1))

    def __repr__(self) -> str:
        more = f", {self.dimensions} dimensions" if self.dimensions > 1 else ""
        return f"SumQuery({self.space.n} rows{more})"


def _load(scores: ArrayLike, i: int) -> Floats:
    given = check.array(scores, f"scores[{i}]")
    if given.ndim not in (1, 2) or given.dtype.kind not in "iufb" or not given.size:
        raise InvalidInput(f"scores[{i}] must hold numbers or vectors, got {described(scores)}")
    table = as_doubles(given, f"scores[{i}]").reshape(len(given), -1)
    if not np.isfinite(table).all():
        raise InvalidInput(f"scores[{i}] must not hold a NaN or an infinity")
    return table


class Menu:
    """Some of the answers that rows other than one give together, with who holds what.

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
        raise InvalidInput(f"values must be a sum of numbers over rows, got {query!r}")


def all_sums(query: SumQuery) -> tuple[NDArray[Any], int]:
    """Return every answer of a query of numbers in order: whole numbers, and what divides them.

    Scores are multiples of one power of two. Sums of such numbers as whole numbers are exact, so
    that answers that differ by less than a double can tell do not become one.
    """
    check_line(query)
    sizes = [len(table) for table in query._kinds]
    number = menu_size(sizes, query._counts, max(query._counts))
    check.fits(number, "the list of types of rows", "use fewer rows, or list the answers", _TYPES)
    ratios = [[v.as_integer_ratio() for v in table[:, 0].tolist()] for table in query._kinds]
    whole = max(bottom for row in ratios for _, bottom in row)
    scores = [[top * (whole // bottom) for top, bottom in row] for row in ratios]
    most = sum(c * max(map(abs, row)) for c, row in zip(query._counts, scores, strict=True))
    kind: Any = np.int64 if most < 1 << 62 else object
    sums = np.zeros(1, kind)
    for row, count in zip(scores, query._counts, strict=True):
        own = np.array(row, kind)
        types = own if count == 1 else _proportions(len(row), count, count).astype(kind) @ own
        sums = np.unique(np.add.outer(sums, np.unique(types)))
    return sums, whole


def menu(tables: list[Floats], counts: list[int], steps: int) -> Menu:
    """Return all types of rows of several kinds, or those whose counts are in some proportions.

    With as many steps as there are rows that is all of them. With one step all rows of a kind
    hold the same value: a sum over rows that is furthest in some direction is of that form.
    """
    types = np.zeros((1, 0), dtype=np.int64)
    for table, count in zip(tables, counts, strict=True):
        parts = _proportions(len(table), count, min(steps, count))
        types = np.hstack([np.repeat(types, len(parts), axis=0), np.tile(parts, (len(types), 1))])
    return Menu(types.astype(np.float64) @ np.concatenate(tables), types, steps >= max(counts))


def chain_menu(tables: list[Floats], counts: list[int], steps: int) -> Menu:
    """Return sums of numbers from the least to the largest, one row after the other moved up."""
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
