"""Searches: bisection, golden section, and best-first search over parts of a set."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np

    from fastpriv._core.validation import Floats

#: Ratio of the golden section.
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def bisect(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    *,
    relative: float = 0.0,
    absolute: float = 0.0,
    geometric: bool = False,
) -> tuple[float, float]:
    """Narrow an interval between a number where a property holds and one where it does not.

    Parameters
    ----------
    holds : callable
        The property. It is taken to hold at ``low``, not to hold at ``high``, and to change once;
        neither end is asked. ``low`` may be the larger of the two.
    low, high : float
        The ends.
    relative, absolute : float
        Stop once the ends differ by at most ``relative`` times the larger magnitude, or by at most
        ``absolute``. The default stops at neighbouring doubles.
    geometric : bool
        Halve ratios instead of differences; both ends must be positive.

    Returns
    -------
    tuple
        The last number at which the property was seen to hold, or ``low``, and the last at which
        it was seen not to hold, or ``high``.
    """
    while abs(high - low) > max(absolute, relative * max(abs(low), abs(high))):
        middle = math.sqrt(low) * math.sqrt(high) if geometric else low + 0.5 * (high - low)
        if not min(low, high) < middle < max(low, high):
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return low, high


def bisect_each(
    holds: Callable[[Floats], np.ndarray], low: Floats, high: Floats, steps: int
) -> tuple[Floats, Floats]:
    """Bisect for every entry of two arrays at once, as :func:`bisect` does for two numbers."""
    import numpy as np  # numbers are bisected without it

    for _ in range(steps):
        middle = 0.5 * (low + high)
        held = holds(middle)
        low, high = np.where(held, middle, low), np.where(held, high, middle)
    return low, high


def golden(f: Callable[[float], float], low: float, high: float, steps: int) -> tuple[float, float]:
    """Return (x, f(x)) for the smallest value that a golden-section search meets.

    Exact to (high - low) 0.618^steps where f falls and then rises; otherwise only a value of f.
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = f(left), f(right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = f(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = f(right)
    return (left, at_left) if at_left <= at_right else (right, at_right)


class Part(Protocol):
    """A part of a set over which a maximum is sought."""

    @property
    def bound(self) -> float:
        """Upper bound on the maximum over the part."""


P = TypeVar("P", bound=Part)


class BestFirst(Generic[P]):
    """Best-first search for a maximum: the part with the largest bound is split first.

    Parameters
    ----------
    parts : iterable
        Parts that cover the set.
    split : callable
        Returns parts that cover a given one. It may record better values found on the way. A part
        that it leaves out is closed; if that part may still have the maximum, :meth:`close` keeps
        its bound.
    """

    def __init__(self, parts: Iterable[P], split: Callable[[P], Iterable[P]]) -> None:
        self._split = split
        self._order = count()
        self._open: list[tuple[float, int, P]] = []
        self._closed = -math.inf
        self._add(parts)

    @property
    def open_bound(self) -> float:
        """Upper bound over the parts that are still open; -inf once all are closed."""
        return -self._open[0][0] if self._open else -math.inf

    @property
    def bound(self) -> float:
        """Upper bound over all parts, closed ones with the bounds that were kept for them."""
        return max(self.open_bound, self._closed)

    def __len__(self) -> int:
        return len(self._open)

    def close(self, bound: float) -> None:
        """Keep the bound of a part that is not split any further."""
        self._closed = max(self._closed, bound)

    def run(self, target: Callable[[], float], over: Callable[[], bool]) -> float:
        """Split until open parts have bounds of at most ``target()``, none is open, or ``over()``.

        Returns the bound over all parts. It can be called again to go on.
        """
        while self.open_bound > target() and not over():
            self._add(self._split(heapq.heappop(self._open)[2]))
        return self.bound

    def _add(self, parts: Iterable[P]) -> None:
        for part in parts:
            heapq.heappush(self._open, (-part.bound, next(self._order), part))


def crossing(
    holds: Callable[[float], bool], start: float, top: float, step: float
) -> tuple[float, float]:
    """Return nearly neighbouring numbers of [0, top] between which a property is lost.

    It is sought outwards from ``start`` in growing steps, for predicates that cost least there or
    are decided there only. It is taken to be lost at ``top``; (0, 0) where it does not hold at 0.
    An infinite ``top`` is returned where it still holds at 1e300.
    """
    low, high, at = -1.0, top, start
    while 0.0 < at < top and (low < 0.0 or high == top):
        held = holds(at)
        low, high = (at, high) if held else (low, at)
        at, step = at + step if held else max(at - step, 0.0), 16.0 * step
        if at > 1e300:
            return low, math.inf
    if low < 0.0:
        if not holds(0.0):
            return 0.0, 0.0
        low = 0.0
    return bisect(holds, low, high, relative=2.0**-51)


def lost_near_zero(
    holds: Callable[[float], bool], top: float, relative: float
) -> tuple[float, float]:
    """Return relatively close numbers of [0, top] between which a property is lost.

    It is sought upwards from near 0. (0, 0) where it does not hold at 0.
    """
    if not holds(0.0):
        return 0.0, 0.0
    low, high = 0.0, 1e-6 * top
    while high < top and holds(high):
        low, high = high, 4.0 * high
    high = min(high, top)
    while low == 0.0 and high > 1e-300:
        at = 0.125 * high
        low, high = (at, high) if holds(at) else (low, at)
    return bisect(holds, low, high, relative=relative) if low > 0.0 else (low, high)
