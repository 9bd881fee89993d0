"""Symmetric measures from a curve delta(t) that is bounded at some levels.

delta is convex in E = e^t - 1. Bounds from above, joined by chords, are above it. Below it are the
chords of neighbouring points, continued: between two points that from the left, and that from the
right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.atoms import envelope, from_envelope
from fastpriv.accounting.profile.measures import SAME, Longs, Measure

Points = TypeVar("Points", Floats, Longs)

#: Deviations of the losses within which levels are close, and the ratio of those beyond.
_NEAR, _RATIO = 8.0, 1.1
#: Laws that overlap by less may do so by rounding.
_OVERLAP = 2.0**-40
#: Deltas below which no more levels are looked at.
_LEAST = 1e-60


def deviation(largest: float) -> float:
    """Return the deviation of normal losses whose delta(0) is given."""
    return 2.0 * NormalDist().inv_cdf(0.5 + 0.5 * min(max(largest, 1e-12), 1.0 - 1e-12))


def levels(largest: float, end: float, fine: int) -> Floats:
    """Return levels to look at up to an end: so many in a deviation, and fewer far out."""
    mu = deviation(largest)
    near = min(_NEAR * mu, end)
    close = np.arange(0.0, near * (1.0 - 1e-9), mu / fine)
    count = max(math.ceil(math.log(end / near) / math.log(_RATIO)), 0)
    result = np.append(close, near * (end / near) ** (np.arange(count + 1) / max(count, 1)))
    result[-1] = end
    return result


def curve_above(delta: Callable[[float], float], at: Floats, top: float) -> Measure:
    """Measure whose curve is above delta, of which upper bounds are known."""
    values, used = [], []
    for t in at.tolist():
        values.append(0.0 if t >= top else delta(t))
        used.append(t)
        if 0.0 < values[-1] < _LEAST and top < math.inf:
            values.append(0.0)
            used.append(top)
            break
    # A falling curve is below its value at a lower level: points are moved up by the rounding.
    moved = np.expm1(np.array(used) * (1.0 + 16.0 * ULP)) * (1.0 + 4.0 * ULP)
    e, d = hull(moved, np.array(values))
    lines = _chords(e, d) * np.array([1.0 + 16.0 * ULP, 1.0 - 16.0 * ULP])
    # Symmetric curves start with a slope of at most (1 - D)/2.
    most = 0.5 * (1.0 - lines[:, 0])
    lines[:, 1] = np.where(most > _OVERLAP, np.minimum(lines[:, 1], most), lines[:, 1])
    lines = np.concatenate([[[d[-1], 0.0]], lines[::-1]])
    return from_envelope(envelope(lines, SAME, True), up=True)


def lower_of(
    delta: Callable[[float], tuple[float, float]], at: Floats, top: float
) -> tuple[Floats, Floats]:
    """Corners of a convex function of E below delta, of which both bounds are known."""
    known: list[tuple[float, float, float]] = []
    for t in at.tolist():
        low, high = (0.0, 0.0) if t >= top else delta(t)
        if low <= _LEAST:
            break
        known.append((t, low, high))
    if len(known) < 4:
        return np.zeros(1), np.zeros(1)
    t_, below, above = np.array(known).T.copy()
    e = np.expm1(t_)
    rise = np.diff(e)
    # Points are rounded: a lower bound holds a little before, an upper one nearly there as well.
    e[1:] *= 1.0 - 4.0 * ULP
    above[1:] += 16.0 * ULP * e[1:] * (above[:-1] - below[1:]) / rise
    rise = np.diff(e)
    left = (below[1:] - above[:-1]) / rise * (1.0 + 8.0 * ULP)  # continued to the right
    right = np.minimum((above[1:] - below[:-1]) / rise * (1.0 - 8.0 * ULP), 0.0)  # to the left
    # At the ends one chord is known.
    below[0] = min(below[0], below[1] - right[1] * rise[0])
    below[-1] = max(min(below[-1], below[-2] + left[-2] * rise[-1]), 0.0)
    corners = list(zip(e.tolist(), below.tolist(), strict=True))
    for i in range(1, len(e) - 2):
        # Between two points both chords are; where one ends above a point, it is above throughout.
        down, up = below[i] + left[i - 1] * rise[i], below[i + 1] - right[i + 1] * rise[i]
        if down < below[i + 1] and up < below[i]:
            cut = rise[i] * (below[i] - up) / (below[i] - up + below[i + 1] - down)
            value = min(below[i] + left[i - 1] * cut, up + right[i + 1] * cut)
            corners.append((e[i] + cut, max(value - 16.0 * ULP * below[i], 0.0)))
    where, what = np.array(sorted(corners)).T
    return hull(where, what)


def curve_below(curves: list[tuple[Floats, Floats]], always: float) -> Measure:
    """Measure whose curve is below convex functions of E, given by their corners.

    ``always`` is below all of them everywhere.
    """
    e = np.unique(np.concatenate([corners for corners, _ in curves]))
    e = e[e <= min(corners[-1] for corners, _ in curves)]
    least = np.min([_between(e, *curve) for curve in curves], axis=0)
    e, d = hull(e, np.maximum(least, 0.0))
    lines = _chords(e, d) * np.array([1.0 - 16.0 * ULP, 1.0 + 16.0 * ULP])
    lines = np.concatenate([[[always, 0.0]], lines[lines[:, 0] > always][::-1]])
    return from_envelope(envelope(lines, SAME, False), up=False)


def _between(e: Floats, corners: Floats, values: Floats) -> Floats:
    """Function that is linear between corners, rounded down."""
    before = np.clip(np.searchsorted(corners, e, side="right") - 1, 0, len(values) - 1)
    here = np.interp(e, corners, values)
    return np.where(corners[before] == e, here, here - 8.0 * ULP * values[before])


def _chords(e: Floats, d: Floats) -> Floats:
    """Lines D - E T through neighbouring points of a falling function: D and T."""
    slope = (d[:-1] - d[1:]) / np.diff(e)
    return np.stack([d[:-1] + e[:-1] * slope, slope], axis=1)


def hull(at: Points, values: Points) -> tuple[Points, Points]:
    """Return the corners of the largest convex function below some points."""
    kept: list[int] = []
    for i in range(len(at)):
        while len(kept) > 1:
            j, k = kept[-2], kept[-1]
            left = (values[k] - values[j]) * (at[i] - at[k])
            if left < (values[i] - values[k]) * (at[k] - at[j]):
                break
            kept.pop()
        kept.append(i)
    return at[kept], values[kept]
