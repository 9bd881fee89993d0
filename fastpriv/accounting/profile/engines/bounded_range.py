"""Bounds on adaptively chosen mechanisms of bounded range.

A mechanism of range e has, for two neighbours, losses in [u - e, u] for some u in [0, e]. The pair
with the two losses u and u - e dominates all such pairs. Its loss is u with probability

    p(u) = (1 - e^(u-e)) / (1 - e^-e).

So the largest delta of j + 1 steps, over all adaptive choices, is

    V_(j+1)(t) = sup over u of p(u) V_j(t - u) + (1 - p(u)) V_j(t - u + e),   V_0(t) = (1 - e^t)_+

(Dong, Durfee and Rogers 2020). All V_j decrease and are convex in e^t, as suprema of such curves.
If u is restricted to multiples of e/m, the recursion needs V_j only at points e/m apart. It is
attained, so it gives a lower bound.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fastpriv._core.rounding import lowered, raised, roundoff
from fastpriv._core.search import bisect
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.composition import Bounds

#: Maximum number of values of the recursion.
_WORK = 6e7
#: Maximum number m of levels of one range.
_FINE = 256
#: Minimum number m of levels of one range.
_COARSE = 8
#: Number of bisections between two points in the search for an attained level.
_HALVED = 4
#: Number of values processed in one block.
_BLOCK = 1 << 18


def levels(k: int) -> int:
    """Return the number m of levels of a range for k steps; 0 if the recursion is too long."""
    m = int(math.sqrt(_WORK) / k)
    return 0 if m < _COARSE else min(m, _FINE)


class Chosen:
    """Bounds on delta of k steps of bounded range e.

    V_k is bounded at multiples of h = e/m. Between them, chords in e^t give the upper bound. The
    cost is O(k^2 m^2), and five times as much for the lower bound of a level.
    """

    def __init__(self, e: float, k: int) -> None:
        self._e, self._k = e, k
        self._values, self._h = _recursion(e, k), e / levels(k)

    def delta(self, t: float) -> Bounds:
        """Bounds on delta(t); choices among some mechanisms attain the lower bound."""
        return self._attained(t), self._upper(t)

    def epsilon(self, delta: float) -> Bounds:
        """Bounds on the smallest t with delta(t) <= delta."""
        return self._attained_level(delta), self.guaranteed(delta)

    def _attained(self, t: float) -> float:
        """Lower bound on delta(t)."""
        at = t * (1.0 + roundoff(4.0)) / self._h
        i = math.floor(at)
        values = _attained(
            self._e, self._k, min(max(at - i, 0.0) + roundoff(4.0) * (at + 1.0), 1.0)
        )
        return float(values[i]) if i < len(values) else 0.0

    def _attained_level(self, delta: float) -> float:
        """Return a level at which the delta of these choices exceeds the given delta."""
        i = int(np.argmax(_attained(self._e, self._k, 0.0) <= delta)) - 1  # the last is 0
        if i < 0:
            return 0.0

        def above(part: float) -> bool:
            return bool(_attained(self._e, self._k, part)[i] > delta)

        low, _ = bisect(above, 0.0, 1.0, absolute=2.0**-_HALVED)  # from this point to the next
        return (i + low) * self._h * (1.0 - roundoff(8.0))

    def _upper(self, t: float) -> float:
        """Upper bound on delta(t)."""
        at = lowered(t, 4.0) / self._h
        i = math.floor(at)
        if i + 1 >= len(self._values):
            return 0.0
        high, low = float(self._values[i]), float(self._values[i + 1])
        share = math.expm1((at - i) * self._h) / math.expm1(self._h)
        return min(raised(high - (high - low) * share * (1.0 - 1e-12), 8.0), 1.0)

    def guaranteed(self, delta: float) -> float:
        """Upper bound on the smallest t with delta(t) <= delta."""
        i = int(np.argmax(self._values <= delta))  # the last is 0
        if i == 0:
            return 0.0
        high, low = float(self._values[i - 1]), float(self._values[i])
        share = min(raised((high - delta) / (high - low), 8.0), 1.0)
        rise = math.log1p(share * math.expm1(self._h))
        return raised(min((i - 1) * self._h + rise * (1.0 + 1e-12), i * self._h), 8.0)


@lru_cache(maxsize=16)
def _attained(e: float, k: int, start: float) -> Floats:
    """Lower bounds on V_k at (start + i) h for i = 0, 1, ..., by levels that are multiples of h."""
    m = levels(k)
    h = e / m
    u = h * np.arange(m + 1)
    whole = -math.expm1(-e)
    first = -np.expm1(-h * np.arange(m, -1, -1)) / whole
    second = -np.expm1(-u) * np.exp(-h * np.arange(m, -1, -1)) / whole
    # V_0 at all points that V_k needs.
    points = (np.arange(-k * m, k * m + 1) + start) * h
    values: Floats = np.maximum(-np.expm1(np.minimum(points, 0.0)), 0.0) * (1.0 - roundoff(8.0))
    for j in range(1, k + 1):
        windows = sliding_window_view(np.pad(values, m), 2 * m + 1)
        # V_j is 0 from j e on, and is not needed below (j - k) e.
        values, last = np.zeros(len(points)), (k + j) * m
        rows = max(1, _BLOCK // m)
        for begin in range(j * m, last, rows):
            some = windows[begin : min(begin + rows, last)]
            worth = first * some[:, m::-1] + second * some[:, : m - 1 : -1]
            values[begin : begin + len(some)] = worth.max(axis=1) * (1.0 - roundoff(32.0))
    return np.asarray(values[k * m :])


@lru_cache(maxsize=8)
def _recursion(e: float, k: int) -> Floats:
    """Upper bounds on V_k at 0, h, ..., k e.

    On a cell of u, chords bound both V_j by linear functions of x = e^(t-u), and p(u) is linear in
    1/x. So the value of a choice is at most some c0 + c1 x + c2/x. If c2 >= 0, this is at most the
    larger of its values at both ends; otherwise at most (width of x)^2 |c2| / (4 x^3) more.
    """
    m = levels(k)
    h = e / m
    u = h * np.arange(m + 1)
    whole = -math.expm1(-e)
    first, second = -np.expm1(u - e) / whole, -np.expm1(-u) * np.exp(u - e) / whole
    first[-1] = 0.0
    bend = 0.25 * math.expm1(h) ** 2 * np.exp(u[1:] - e) / whole * (1.0 + 1e-9)
    values: Floats = np.zeros(1)  # V_0 at 0; below it is 1 - e^t, above 0
    low = high = 0
    for j in range(1, k + 1):
        below, above = -min(k - j, j) * m, j * m
        known = np.arange(below - m, low)
        padded = np.concatenate(
            [
                raised(-np.expm1(h * known), 8.0),
                values[max(below - m - low, 0) :],
                np.zeros(above + m - high),
            ]
        )
        windows = sliding_window_view(padded, 2 * m + 1)
        result = np.empty(len(windows))
        rows = max(1, _BLOCK // m)
        for start in range(0, len(windows), rows):
            # At t - u for u = 0, h, ..., e, and at t - u + e.
            near = windows[start : start + rows, m::-1]
            far = windows[start : start + rows, : m - 1 : -1]
            worth = first * near + second * far
            apart = near - far
            curved = (apart[:, 1:] - apart[:, :-1]) / math.expm1(h) + apart[:, 1:]
            more = np.maximum(worth[:, 1:], worth[:, :-1]) + bend * np.maximum(curved, 0.0)
            result[start : start + rows] = more.max(axis=1)
        values, low, high = raised(result, 32.0), below, above
    return values
