"""Answers of a query in units of the noise, and the adversaries who know answers far apart."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv.errors import InvalidInput, short
from fastpriv.results import Adversary
from fastpriv.spaces import Space

#: Most pairs of answers in several dimensions.
_PAIRS = 1 << 22
#: Largest answer in units of the noise.
FURTHEST = 1e150
#: Relative error of distances, the directions that are left out included.
BLUR = 64.0 * ULP
#: Relative width of answers in further directions that counts as none.
FLAT = 1e-14


def as_doubles(given: NDArray[Any], name: str) -> Floats:
    """Return numbers as doubles, refusing whole numbers that are none: two could become one."""
    numbers = given.astype(np.float64)
    if given.dtype.kind in "iuO" and np.abs(numbers).max(initial=0.0) >= 2.0**53:
        odd = [v for v, x in zip(given.flat, numbers.flat, strict=True) if int(v) != int(x)]
        if odd:
            raise InvalidInput(
                f"{name} must hold numbers that a double can hold, {odd[0]} is none; "
                "subtract what all answers have in common"
            )
    return numbers


@dataclass(frozen=True)
class Query:
    """Answers of all databases, in units of the noise."""

    points: Floats  # (N, d)
    space: Space
    varies: bool  # whether any two answers differ, be it by less than doubles can say

    @staticmethod
    def of(values: Floats, scales: Floats, name: str, space: Space | ArrayLike) -> Query:
        """Check and scale the answers. Differences from the least one keep their digits."""
        databases = space if isinstance(space, Space) else Space(space)
        if len(values) != databases.size:
            raise InvalidInput(
                f"values must hold one answer for each of the {short(databases.size)} databases, "
                f"got {len(values)}"
            )
        table = as_doubles(values, "values").reshape(len(values), -1)
        if not np.isfinite(table).all():
            raise InvalidInput("values must not hold a NaN or an infinity")
        with np.errstate(over="ignore"):
            points = (table - table.min(axis=0)) / scales
        if not points.max() <= FURTHEST:
            raise InvalidInput(
                f"values may be at most {FURTHEST:g} times {name} apart; use a larger {name}"
            )
        return Query(points, databases, bool((table != table[0]).any()))

    def directions(self) -> tuple[Floats, float]:
        """Return the answers in coordinates of as few directions as they vary in: (N, r).

        And how far these may be from the answers, by rounding and by directions that are left out.
        """
        error = float(np.linalg.norm(self.points, axis=1).max()) * BLUR
        moved = self.points - self.points.mean(axis=0)
        if moved.shape[1] == 1 or not moved.any():
            return self.points[:, :1], error
        _, sizes, axes = np.linalg.svd(moved, full_matrices=False)
        axes = axes[sizes > FLAT * sizes[0]]
        places = moved @ axes.T
        left_out = float(np.linalg.norm(moved - places @ axes, axis=1).max())
        return places, error * (1.0 + 0.125 * moved.shape[1]) + left_out

    def lines(self, i: int) -> Ints:
        """Return the databases by the other rows and the value of row i: (N/m, m)."""
        m, inner = self.space.sizes[i], int(self.space.strides[i])
        numbers = np.arange(self.space.size).reshape(-1, m, inner)
        return np.asarray(np.swapaxes(numbers, 1, 2).reshape(-1, m))


def told_apart(query: Query, line: Floats, gap: float, all_of_them: bool) -> Adversary | None:
    """Return an adversary who has answers a gap apart for all values of a longest row, if any."""
    m = max(query.space.sizes)
    for i in np.flatnonzero(np.array(query.space.sizes) == m).tolist():
        lines = query.lines(i)
        values = line[lines]
        if all_of_them:
            chosen = _far_apart(values, gap)
        else:
            least = np.diff(np.sort(values, axis=1), axis=1).min(axis=1)
            at = int(least.argmax())
            chosen = np.full(m, at) if least[at] >= gap else None
        if chosen is not None:
            databases = query.space.rows(lines[chosen, np.arange(m)])
            return Adversary((i,), databases, np.full(m, 1.0 / m))
    return None


def _far_apart(values: Floats, gap: float) -> Ints | None:
    """Choose an entry of each column so that all are a gap apart, for some order of the columns.

    In a given order the least entry beyond the last one is the best choice. All orders of up to 5
    columns are tried, otherwise the orders by least and by largest entries.
    """
    m = values.shape[1]
    order = np.argsort(values, axis=0)
    ordered = np.take_along_axis(values, order, axis=0)
    some = [np.argsort(ordered[0]).tolist(), np.argsort(ordered[-1]).tolist()]
    for columns in itertools.permutations(range(m)) if m <= 5 else some:
        chosen, last = np.zeros(m, dtype=np.int64), -math.inf
        for a in columns:
            k = int(np.searchsorted(ordered[:, a], last + gap))
            if k == len(values):
                break
            chosen[a], last = order[k, a], float(ordered[k, a])
        else:
            return chosen
    return None


def furthest_pair(query: Query, line: Floats | None, all_of_them: bool) -> tuple[float, Adversary]:
    """Return the largest distance of answers with different values of a row, and who knows it."""
    best, pair, row = -1.0, (0, 0), 0
    for i, m in enumerate(query.space.sizes):
        lines = query.lines(i)
        if m == 1:
            continue
        if line is None:
            distance, found = _apart(query.points, lines, all_of_them)
        elif all_of_them:
            distance, found = _spread(line, lines)
        else:
            values = line[lines]
            at = int((values.max(axis=1) - values.min(axis=1)).argmax())
            found = int(lines[at, values[at].argmin()]), int(lines[at, values[at].argmax()])
            distance = float(np.ptp(values[at]))
        if distance > best:
            best, pair, row = distance, found, i
    rows = query.space.rows(np.array(pair))
    if best < 0.0:  # rows of one value
        return 0.0, Adversary((0,), rows[:1], np.ones(1))
    databases = np.repeat(rows[:1], query.space.sizes[row], axis=0)
    databases[:, row] = np.arange(query.space.sizes[row])
    law = np.zeros(len(databases))
    for database in rows:
        databases[database[row]], law[database[row]] = database, 0.5
    return max(best, 0.0), Adversary((row,), databases, law)


def _spread(line: Floats, lines: Ints) -> tuple[float, tuple[int, int]]:
    """Return the largest difference of answers with different values, and its databases."""
    values = line[lines]
    high, low = values.argmax(axis=0), values.argmin(axis=0)
    columns = np.arange(lines.shape[1])
    gaps = values[high, columns][:, None] - values[low, columns]
    np.fill_diagonal(gaps, -1.0)
    a, b = np.unravel_index(gaps.argmax(), gaps.shape)
    return float(gaps[a, b]), (int(lines[low[b], b]), int(lines[high[a], a]))


def _apart(points: Floats, lines: Ints, all_of_them: bool) -> tuple[float, tuple[int, int]]:
    """Return the same for vectors: all pairs of answers with different values, or of neighbours."""
    best, pair = -1.0, (0, 0)
    m = lines.shape[1]
    for a in range(m):
        for b in range(a + 1, m):
            first, second = lines[:, a], lines[:, b]
            if all_of_them:
                first, second = (_distinct(points, part) for part in (first, second))
                check.fits(len(first) * len(second), "the pairs of answers", "use fewer", _PAIRS)
                first, second = np.repeat(first, len(second)), np.tile(second, len(first))
            distances = np.linalg.norm(points[first] - points[second], axis=1)
            at = int(distances.argmax())
            if distances[at] > best:
                best, pair = float(distances[at]), (int(first[at]), int(second[at]))
    return best, pair


def _distinct(points: Floats, databases: Ints) -> Ints:
    """Return one database for each distinct answer."""
    return np.asarray(databases[np.unique(points[databases], axis=0, return_index=True)[1]])
