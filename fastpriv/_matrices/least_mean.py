"""Least mean of a vector over a convex set of laws: a proved lower bound and a law close to it.

Every function takes a vector with entries in [0, 1]. The bound holds for the floats returned. The
law lies in the set, except for rounding errors.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.divergence import divergence
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats

#: A lower bound on the least mean, and a law with about this mean.
Least = tuple[float, Floats]


def box_least(lower: Floats, upper: Floats, free: float, column: Floats) -> Least:
    """Over lower <= p <= upper, where ``free`` is 1 - sum of lower. Cost O(N log N).

    A fractional knapsack: fill up from the smallest entries.
    """
    order = np.argsort(column)
    room = (upper - lower)[order]
    before = np.cumsum(room) - room
    added = np.clip(free - before, 0.0, room)
    mean = float(column @ lower + column[order] @ added)
    # The sums of room may be off by so many ulp of 1, which the last entry filled then gets.
    last = float(column[order][added > 0].max(initial=0.0))
    law = lower.copy()
    law[order] += added
    bound = mean - (4 * len(lower) + 16) * ULP * (mean + last)
    least = float(column.min()) * (1.0 - 4.0 * ULP)  # which no mean is below
    return max(least, bound), law


def variation_least(centre: Floats, radius: float, column: Floats) -> Least:
    """Over laws within a total variation distance. Cost O(N log N).

    Move as much as allowed from the largest entries to the least.
    """
    order = np.argsort(column)[::-1]
    law, values = centre[order], column[order]
    taken = np.clip(radius * (1.0 + 4.0 * ULP) - (np.cumsum(law) - law), 0.0, law)
    least, moved = float(values[-1]), float(taken.sum())
    mean = least * moved + float(values @ (law - taken))
    top = float(values[taken < law].max(initial=least))
    reached = centre.copy()
    reached[order] -= taken
    reached[order[-1]] += moved
    room = mean + (top if radius > 0.0 else 0.0)  # nothing is taken: only sums are rounded
    return max(least, mean - (4 * len(law) + 16) * ULP * room), reached


def divergence_least(centre: Floats, radius: float, column: Floats, inner: float) -> Least:
    """Over laws p with D(p || centre) <= radius. Cost O(100 N).

    The law that is returned is within the ``inner`` radius.

    For every t > 0, <c, p> >= -t radius - t ln sum centre e^(-c/t) (Donsker-Varadhan). The right
    side is concave in t, and a bound wherever the search stops.
    """
    seen = centre > 0
    law, least = centre[seen], float(column[seen].min())
    gaps = column[seen] - least
    low, high = math.log(1e-12), math.log(1e12)
    ratio = 0.5 * (math.sqrt(5.0) - 1.0)
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = _dual(law, radius, gaps, a), _dual(law, radius, gaps, b)
    best = max((0.0, low), (at_a, a), (at_b, b))
    for _ in range(96):
        if at_a < at_b:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = _dual(law, radius, gaps, b)
        else:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = _dual(law, radius, gaps, a)
        best = max(best, (at_a, a), (at_b, b))
    reached = np.zeros(len(centre))
    reached[seen] = law * np.exp(-gaps / math.exp(best[1]))
    return (least + best[0]) * (1.0 - 4.0 * ULP), _drawn_in(reached / reached.sum(), centre, inner)


def _drawn_in(law: Floats, centre: Floats, radius: float) -> Floats:
    """Mix a law with the centre of a ball until it lies inside: the divergence is convex."""
    for _ in range(4):
        far = divergence(law, centre)
        if far <= radius:
            return law
        law = centre + radius / far * (1.0 - 8.0 * ULP) * (law - centre)
    return centre


def _dual(law: Floats, radius: float, gaps: Floats, log_t: float) -> float:
    """Return -t radius - t ln sum law e^(-gaps/t), rounded down."""
    t = math.exp(log_t)
    lost = float(law @ -np.expm1(-gaps / t))
    # Where little is lost the sum is 1 - lost, and keeps its digits.
    near = lost < 0.5
    log_mean = math.log1p(-lost) if near else math.log(float(law @ np.exp(-gaps / t)))
    slack = (4 * len(law) + 32) * ULP
    radius = radius * (1.0 + slack) + slack * (1.0 if radius > 0 else 0.0)
    error = slack * (-log_mean if near else 1.0 - log_mean)
    return t * (-radius - log_mean - error)
