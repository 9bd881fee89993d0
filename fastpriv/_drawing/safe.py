"""Lines through computed points that never cross the curve they stand for.

A straight line between two points of a curve may show a mechanism better than it is. Lines are
therefore bounds between the points as well. Monotone curves are drawn as stairs, which are bounds
on every scale of the axes. Curves that are also convex on some scale are drawn by chords and
extended secants, and a curve below several straight lines by their minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._core.rounding import raised

if TYPE_CHECKING:
    from fastpriv._core.validation import Floats

#: Share of its height by which a chord is moved outwards: more than rounding, too little to see.
_OUTWARDS = 1e-9


def stairs(x: Floats, y: Floats, ahead: bool) -> tuple[Floats, Floats]:
    """Return the corners of stairs through points: each step as high as its end, or its start.

    An upper bound on a rising curve, or a lower bound on a falling one, looks ahead. Corner 2i
    is point i where it does, corner 2i + 1 otherwise.
    """
    heights = np.repeat(y, 2)
    heights = np.append(heights[1:], y[-1:]) if ahead else np.append(y[:1], heights[:-1])
    return np.repeat(x, 2), heights


def refined(
    x: Floats,
    low: Floats,
    high: Floats,
    apart: Callable[[Floats, Floats], Floats],
    parts: int = 8,
) -> tuple[Floats, Floats, Floats]:
    """Bound a monotone curve that is convex on some scale at more points than it was computed at.

    It is below the chord of the points around it, and above the secants of the two points before
    and of the two points after, which are extended. ``apart(a, b)`` is how far b is from a on the
    scale, in units that may depend on a. Where that overflows, the curve is only monotone. Each
    stretch between two points is divided into ``parts``.
    """
    if len(x) < 2:
        return x, low, high
    share = np.arange(parts) / parts
    fine = (x[:-1, None] + share * np.diff(x)[:, None]).reshape(-1)
    at = np.repeat(np.arange(len(x) - 1), parts)
    end = at + 1
    with np.errstate(all="ignore"):
        weight = apart(x[at], fine) / apart(x[at], x[end])
        rise = high[end] - high[at]
        above = high[at] + weight * rise + _OUTWARDS * np.abs(rise)
        most = np.maximum(high[at], high[end])
        above = np.where(np.isnan(above), most, np.minimum(above, most))
        below = np.minimum(low[at], low[end])
        for near, far in ((at, at - 1), (end, end + 1)):
            known = (far >= 0) & (far < len(x))
            far = np.clip(far, 0, len(x) - 1)
            weight = apart(x[near], fine) / apart(x[near], x[far])
            secant = low[near] + weight * (high[far] - low[near])
            secant -= _OUTWARDS * np.abs(low[near] - secant)
            below = np.fmax(below, np.where(known, secant, -np.inf))
    nodes = np.arange(0, len(fine), parts)
    below[nodes], above[nodes] = low[:-1], high[:-1]
    below = np.minimum(below, above)
    return np.append(fine, x[-1]), np.append(below, low[-1]), np.append(above, high[-1])


def below_lines(heights: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """Return the corners of min(height + slope x) over lines, for x from 0 to 1.

    The corners are rounded up, so that straight lines between them are above the minimum.
    """
    order = np.lexsort((heights, -slopes))
    lines: list[tuple[float, float]] = []
    corners: list[float] = []
    for height, slope in zip(heights[order].tolist(), slopes[order].tolist(), strict=True):
        while lines:
            top, steep = lines[-1]
            if steep > slope:
                start = (height - top) / (steep - slope)  # from here on the flatter line is lower
                if start > (corners[-1] if corners else 0.0):
                    break
            elif height >= top:
                start = np.inf
                break
            lines.pop()
            if corners:
                corners.pop()
        else:
            lines.append((height, slope))
            continue
        if start < 1.0:
            lines.append((height, slope))
            corners.append(start)
    x = np.array([0.0, *corners, 1.0])
    value, slope = np.array(lines).T
    left = np.append(value + slope * x[:-1], -np.inf)
    right = np.append(-np.inf, value + slope * x[1:])
    return x, np.asarray(raised(np.maximum(left, right), 8.0))


def highest(curves: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return a line above several: between their corners and crossings the largest is convex."""
    x = np.unique(np.concatenate([corners for corners, _ in curves]))
    heights = [np.interp(x, *curve) for curve in curves]
    crossings = []
    for first, second in combinations(heights, 2):
        apart = first - second
        (at,) = np.nonzero(apart[:-1] * apart[1:] < 0.0)
        crossings.append(x[at] + np.diff(x)[at] * apart[at] / (apart[at] - apart[at + 1]))
    x = np.unique(np.concatenate([x, *crossings]))
    return x, np.asarray(raised(np.max([np.interp(x, *curve) for curve in curves], axis=0), 8.0))
