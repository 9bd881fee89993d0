"""The largest ratio of two entries of a column whose rows are neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from fastpriv import kernels
from fastpriv._core.logs import log_ratio, log_spread
from fastpriv._core.rounding import LEAST, NORMAL, ULP
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints

#: Smallest matrix that is split over threads.
_THREADED = 1 << 17
#: Relative room for the rounding of a level: ``round_up`` and the logarithm behind it.
_ROOM = 1.0 - 6.0 * ULP
#: Rounds of raising entries by one double; rounding moves them by a few doubles for each axis.
_ROUNDS = 1000


def matrix_level(matrix: Floats, axes: Ints, shift: float = 0.0) -> float:
    """Return ln of the largest ratio of two entries on a line along one axis. Rounded up.

    The rows of the matrix are databases. ``axes`` holds the stride and the size of every axis of
    two or more values. With a shift, the matrix holds entry - shift, for entries close to it.
    Cost O(N K) per axis.
    """
    return log_spread(partial(_spread, matrix, shift, axes), 3 if shift else 2)


def _spread(matrix: Floats, shift: float, axes: Ints, scale: float) -> float:
    if matrix.size < _THREADED:
        return kernels.matrix_spread(matrix, shift, scale, axes, 0, matrix.shape[1])
    task = partial(kernels.matrix_spread, matrix, shift, scale, axes)
    return max(split(task, matrix.shape[1], 512))


def inwards(matrix: Floats, axes: Ints, level: float) -> Floats:
    """Round a matrix inwards: return one with ``matrix_level(., axes) <= level``.

    An entry that is too small beside a neighbour is raised to e^-level times that one, rounded up,
    and a zero to the least double. Entries that were right up to rounding move by a few units in
    the last place, so that rows sum to one as closely as before. Cost O(N K) per axis.
    """
    if matrix_level(matrix, axes) <= level:
        return matrix
    return raised_beside(matrix, list(_neighbours(len(matrix), axes)), level)


def raised_beside(matrix: Floats, pairs: list[tuple[Ints, Ints]], level: float) -> Floats:
    """Raise entries until no ratio W[z, y]/W[x, y] of the given pairs (x, z) exceeds e^level."""
    result, bound = np.array(matrix, order="C"), level * _ROOM
    for _ in range(_ROUNDS):
        changed = False
        for x, z in pairs:
            top, bottom = result[z], result[x]
            rows, columns = np.nonzero(_beyond(top, bottom, bound))
            if rows.size:
                least = _shrunk(top[rows, columns], bound)
                here = np.maximum(bottom[rows, columns], least)
                short = _beyond(top[rows, columns], here, bound)
                result[x[rows], columns] = np.where(short, np.nextafter(here, math.inf), here)
                changed = True
        if not changed:
            break
    return result


def _beyond(top: Floats, bottom: Floats, level: float) -> np.ndarray:
    """Whether ln(top/bottom) exceeds a level; not where both are zero."""
    larger = top > bottom
    return larger & (log_ratio(np.where(larger, top, 1.0), bottom) > level)


def _shrunk(values: Floats, level: float) -> Floats:
    """Return e^-level times some values to the nearest double, at least the least one."""
    if level < 1.0:
        return np.asarray(values + values * math.expm1(-level))
    with np.errstate(under="ignore"):
        small = values * math.exp(-0.5 * level) * math.exp(-0.5 * level)
    return np.where(small < NORMAL, np.maximum(small * (1.0 + 4.0 * ULP), LEAST), small)


def _neighbours(size: int, axes: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield all rows beside a neighbour of each, for every axis and change along it."""
    index = np.arange(size)
    for inner, m in axes.tolist():
        lines = index.reshape(-1, m, inner)
        for step in range(1, m):
            yield index, np.roll(lines, step, axis=1).reshape(-1)
