"""Ratios of entries of a column: levels of neighbours, and hockey-stick divergences of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio, log_spread
from fastpriv._core.rounding import LEAST, NORMAL, log1p_up, lowered, raised, roundoff, sum_error
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv.errors import InvalidInput

# The largest ratio of two entries whose rows are neighbours.

#: Smallest matrix that is split over threads.
_THREADED = 1 << 17
#: Relative room for the rounding of a level: ``round_up`` and the logarithm behind it.
_ROOM = 1.0 - roundoff(6.0)
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

    An entry that is too small beside a neighbour is raised to e^-level times it, rounded up,
    and a zero to the smallest positive double. Entries that were right up to rounding move by a few
    units in the last place, and rows sum to one as closely as before. Cost O(N K) per axis.
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
    """Whether ln(top/bottom) exceeds a level; False if both are zero."""
    larger = top > bottom
    return larger & (log_ratio(np.where(larger, top, 1.0), bottom) > level)


def _shrunk(values: Floats, level: float) -> Floats:
    """Return e^-level times some values to the nearest double, at least the smallest one."""
    if level < 1.0:
        return np.asarray(values + values * math.expm1(-level))
    with np.errstate(under="ignore"):
        small = values * math.exp(-0.5 * level) * math.exp(-0.5 * level)
    return np.where(small < NORMAL, np.maximum(small * (1.0 + roundoff(4.0)), LEAST), small)


def _neighbours(size: int, axes: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield all rows beside a neighbour of each, for every axis and change along it."""
    index = np.arange(size)
    for inner, m in axes.tolist():
        lines = index.reshape(-1, m, inner)
        for step in range(1, m):
            yield index, np.roll(lines, step, axis=1).reshape(-1)


# Pairs of output distributions: the excess of one over the other, and two outputs together.

#: Distributions as the rows of a matrix, and which rows to compare: (P, 2).
Pairs = tuple[Floats, Ints]
#: Which outputs occur.
Mask = NDArray[np.bool_]

#: Beyond this level e^epsilon overflows. The curves fall, so the value there is an upper bound.
_LARGEST = 709.0
#: Fewest entries worth a thread.
_GRAIN = 1 << 16


def _grain(laws: Floats) -> int:
    return max(1, _GRAIN // len(laws[0]))


def excesses(groups: Iterable[Pairs], epsilons: Floats) -> Floats:
    """Largest sum_y (a_y - e^epsilon b_y)_+ over pairs, for each epsilon. Rounded up.

    It is never 0: the level reveals from which epsilon on there is no excess.
    """
    slopes = rounded_slopes(epsilons)
    worst = np.zeros(len(slopes))
    for laws, pairs in groups:
        task = partial(kernels.largest_excess, laws, pairs, slopes)
        result = np.max(split(task, len(pairs), _grain(laws)), axis=0)
        width = laws.shape[1]
        # A term that is less than the smallest positive double may have been lost to underflow.
        worst = np.maximum(worst, raised(result, width + 8.0) + width * LEAST)
    return worst


def rounded_slopes(epsilons: Floats) -> Floats:
    """Return e^epsilon - 1, rounded down past the library's 8 units of roundoff and 2 more."""
    if len(epsilons) == 1:
        return np.array([lowered(float(np.expm1(min(epsilons.item(), _LARGEST))), 12.0)])
    return np.asarray(lowered(np.expm1(np.minimum(epsilons, _LARGEST)), 12.0))


def crossing(groups: Iterable[Pairs], delta: float) -> float:
    """Smallest epsilon >= 0 from which no pair of distributions exceeds ``delta``. Rounded up."""
    slope = 0.0
    for laws, pairs in groups:
        task = partial(kernels.least_slope, laws, pairs, delta, slope)
        slope = max(split(task, len(pairs), _grain(laws)))
    return log1p_up(slope)


def all_pairs(laws: Floats) -> Iterable[Pairs]:
    """Yield all ordered pairs of different rows, in blocks of as many pairs as there are rows."""
    rows = np.arange(len(laws))
    for step in range(1, len(laws)):
        yield laws, np.stack([rows, np.roll(rows, step)], axis=1)


def apart_by(outputs: int, n: int) -> float:
    """Return a bound on the relative error of a distribution that was computed from n factors."""
    return sum_error(16 * n + outputs, 64)


def apart(
    laws: Floats, steps: Iterable[tuple[Ints, Ints]], n: int, occurs: Mask | None = None
) -> Iterable[Pairs]:
    """Yield pairs of distributions computed from n factors, rounded up and down respectively.

    Below the normal doubles no relative error holds. There an output that ``occurs`` under every
    distribution is rounded to the smallest normal double and to zero; without the mask, zeros are
    zeros.
    """
    error = apart_by(laws.shape[1], n)
    above, below = laws * (1.0 + error), laws * (1.0 - error)
    rare = laws < NORMAL
    if rare.any():
        above[rare & (laws > 0.0 if occurs is None else occurs)] = NORMAL
        below[rare] = 0.0
    both = np.concatenate([above, below])
    for x, other in steps:
        yield both, np.stack([x, other + len(laws)], axis=1)


def joint_laws(first: Floats, second: Floats) -> Floats:
    """Return the joint distributions of two independent outputs: (N, K) and (N, L) to (N, K L)."""
    check.fits(
        first.size * second.shape[1],
        f"a table of {first.shape[1]} times {second.shape[1]} outputs together",
        "compose channels of one query, or channels that act on each record, or bound the sum with "
        "composition_bound",
        check.MAX_MATRIX,
    )
    with np.errstate(under="ignore"):
        pairs = first[:, :, None] * second[:, None, :]
    # A product that loses digits, or vanishes, would hide what this output reveals.
    if first[first > 0.0].min() * second[second > 0.0].min() < NORMAL:
        possible = (first > 0.0)[:, :, None] & (second > 0.0)[:, None, :]
        if (possible & (pairs < NORMAL)).any():
            raise InvalidInput(
                "two outputs together have a probability that underflows; merge outputs "
                "that almost never occur before composing."
            )
    return pairs.reshape(len(first), -1)
