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


#: Relative distance of two numbers at which a crossing counts as found.
_CLOSE = 2.0**-51
#: Growth of steps while only one side of a crossing is known.
_GROWTH = 4.0
#: Share of a secant step by which it is made longer, so that it ends on the other side.
_BEYOND = 2.0**-10
#: Number of steps in a row that may end on one side before the interval is halved.
_ONE_SIDED = 12
#: Largest number at which a crossing is sought.
_LAST = 1e300


def crossing(
    value: Callable[[float], float],
    target: float,
    start: float,
    top: float,
    step: float,
    seen: Iterable[tuple[float, float]] = (),
    relative: float = _CLOSE,
) -> tuple[float, float]:
    """Return nearly neighbouring numbers of [0, top] between which a falling value meets a target.

    The value exceeds the target at the first number and does not at the second. Secant steps on
    the logarithm of the value are made a little longer, so that both numbers approach the root.

    Parameters
    ----------
    value : callable
        At least 0, and falling up to rounding. It is taken to be at most the target at ``top``,
        which is not asked.
    target : float
        The target, positive.
    start, step : float
        The first number, and about its distance from the second.
    top : float
        The end of the interval. If it is infinite, it is returned where the value still exceeds
        the target at 1e300.
    seen : iterable of (float, float)
        Numbers whose values are known, and these values.
    relative : float
        Relative distance of the two numbers at which they are close enough.

    Returns
    -------
    tuple
        The two numbers; (0, 0) if the value does not exceed the target at 0.
    """
    low, high, distance, repeated, passed = -1.0, top, step, 0, False
    points: list[tuple[float, float]] = []
    known = sorted(
        ((at, math.log(found / target), found > target) for at, found in seen if found > 0.0),
        key=lambda point: -abs(point[1]),
    )
    for at, log, exceeds in known:
        low, high = (max(low, at), high) if exceeds else (low, min(high, at))
        points.append((at, log))
    at = _secant(points) if len(points) > 1 else start
    while low < 0.0 or high == top or high - low > relative * high:
        both = low >= 0.0 and high < top
        if low < 0.0 and at <= 0.0:
            at = 0.0
        elif not low < at < high or (both and repeated > _ONE_SIDED):
            edge = max(relative * high, _BEYOND * (high - low))
            nearby = high - edge if at >= high else low + edge
            at = nearby if both and not passed else low + 0.5 * (high - low)
            passed, repeated = not passed, 0
        else:
            passed = False
        if at > _LAST:
            return low, math.inf
        if at in (low, high):  # neighbouring doubles
            break
        found = value(at)
        exceeds = found > target
        repeated = repeated + 1 if points and exceeds is (points[-1][1] > 0.0) else 0
        low, high = (at, high) if exceeds else (low, at)
        if high == 0.0:
            return 0.0, 0.0
        points.append((at, math.log(found / target) if found > 0.0 else -math.inf))
        root = _secant(points)
        if root != at and (root > at) is exceeds:  # otherwise the slope is one of rounding
            distance = abs(root - at) if both else min(abs(root - at), _GROWTH * distance)
        elif root == at and points[-1][1] == 0.0 and len(points) > 1:  # the root itself
            distance = relative * at
        elif not both:
            distance *= _GROWTH
        further = (_BEYOND * distance + relative * at) * 4.0 ** min(repeated, _ONE_SIDED)
        at += distance + further if exceeds else -distance - further
    return max(low, 0.0), high


def _secant(points: list[tuple[float, float]]) -> float:
    """Return the root of the line through the last two points; the last one if there is none."""
    if len(points) < 2:
        return points[-1][0]
    (a, x), (b, y) = points[-2:]
    return b - y * (b - a) / (y - x) if y != x and math.isfinite(y - x) else b


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
