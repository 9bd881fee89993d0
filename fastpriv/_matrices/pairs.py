"""Pairs of output laws: the excess of one over the other, and the joint law of two outputs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, NORMAL, ULP, log1p_up, lowered, raised
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv.errors import InvalidInput

#: Laws as the rows of a matrix, and which rows to compare: (P, 2).
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
    """Largest sum_y (a_y - e^epsilon b_y)_+ over pairs of laws, for each epsilon. Rounded up.

    It is never 0: the level tells from which epsilon on there is no excess.
    """
    slopes = rounded_slopes(epsilons)
    worst = np.zeros(len(slopes))
    for laws, pairs in groups:
        task = partial(kernels.largest_excess, laws, pairs, slopes)
        result = np.max(split(task, len(pairs), _grain(laws)), axis=0)
        width = laws.shape[1]
        # A term that is less than the least double may have been lost to underflow.
        worst = np.maximum(worst, raised(result, width + 8.0) + width * LEAST)
    return worst


def rounded_slopes(epsilons: Floats) -> Floats:
    """Return e^epsilon - 1, rounded down past the library's 8 units of roundoff and 2 more."""
    return np.asarray(lowered(np.expm1(np.minimum(epsilons, _LARGEST)), 12.0))


def crossing(groups: Iterable[Pairs], delta: float) -> float:
    """Least epsilon >= 0 from which no pair of laws exceeds ``delta``. Rounded up."""
    slope = 0.0
    for laws, pairs in groups:
        task = partial(kernels.least_slope, laws, pairs, delta, slope)
        slope = max(split(task, len(pairs), _grain(laws)))
    return log1p_up(slope)


def all_pairs(laws: Floats) -> Iterable[Pairs]:
    """Yield all ordered pairs of different laws, in blocks of as many pairs as there are laws."""
    rows = np.arange(len(laws))
    for step in range(1, len(laws)):
        yield laws, np.stack([rows, np.roll(rows, step)], axis=1)


def apart_by(outputs: int, n: int) -> float:
    """Return a bound on the relative error of a law that was computed from n factors."""
    return (16 * n + 64 + outputs) * ULP


def apart(
    laws: Floats, steps: Iterable[tuple[Ints, Ints]], n: int, occurs: Mask | None = None
) -> Iterable[Pairs]:
    """Yield pairs of laws that were computed from n factors, rounded up and down respectively.

    Below the normal doubles no relative error holds. There an output that ``occurs`` under every
    law is rounded to the least normal double and to zero; without the mask, zeros are zeros.
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
    """Return the joint laws of two independent outputs: (N, K) and (N, L) to (N, K L)."""
    check.fits(
        first.size * second.shape[1],
        f"a table of {first.shape[1]} times {second.shape[1]} outputs together",
        "compose channels of one query, or channels that act row by row, or bound the sum with "
        "composition_bound",
        check.MAX_MATRIX,
    )
    with np.errstate(under="ignore"):
        pairs = first[:, :, None] * second[:, None, :]
    # A product that loses digits, or vanishes, would hide what this output tells.
    if first[first > 0.0].min() * second[second > 0.0].min() < NORMAL:
        possible = (first > 0.0)[:, :, None] & (second > 0.0)[:, None, :]
        if (possible & (pairs < NORMAL)).any():
            raise InvalidInput(
                "two outputs together have a chance below the range of a double; merge outputs "
                "that almost never occur before composing"
            )
    return pairs.reshape(len(first), -1)
