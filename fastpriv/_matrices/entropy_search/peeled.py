"""A bit under an entropy constraint, bounded row by row, for rows with two outputs each.

Let A be the bit, Z a look at it alone, and let rows X_1 .. X_k have outputs Y_1 .. Y_k. Their
outputs are independent given the rows. With Q the chance of A = 1 given Y_1 .. Y_k and f(Q) minus
the mean entropy of A after the look,

    I(A; Z, Y) + t H(A, X) = (1 + t) H(A) + E f(Q) + t sum_j H(X_j | A, X_1 .. X_(j-1)).

The last row has H(X_k | A, X_1 ..) <= H(X_k | A, Y_1 .. Y_(k-1)). So its two terms are at most
E F(Q), with Q given the outputs before, for

    F(Q) = max over laws of X_k given A of E f(Q after Y_k) + t H(X_k | A),

and the rows are peeled off one by one. If f is the largest of some lines, then so is F: a line for
each output is chosen, after which the best law of X_k given A = a has a closed form that does not
depend on Q. Lines are replaced by the chords of F between points of a grid, which lie above the
convex F.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats

#: Points of a grid for the search of t, and about how many products all rows may take afterwards.
_COARSE, _WORK = 41, 4e8
_LEAST, _MOST = 41, 241
#: Range of ln t, and steps of the search.
_COLDEST, _WARMEST, _STEPS = -14.0, 3.0, 24
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)


def peeled_bound(look: Floats, others: list[Floats], b: float) -> float:
    """Bound I of a bit and all outputs over laws with H >= b, rounded up.

    ``look`` has the two output laws of the bit's own row, ``others`` the matrices of the other
    rows, with two outputs each. Cost O(rows points^3).
    """
    low, high = _COLDEST, _WARMEST
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [_bound(look, others, b, math.exp(x), _COARSE) for x in inner]
    for _ in range(_STEPS):  # the bound is convex in t
        if values[0] <= values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - _GOLDEN * (high - low)
            values[0] = _bound(look, others, b, math.exp(inner[0]), _COARSE)
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + _GOLDEN * (high - low)
            values[1] = _bound(look, others, b, math.exp(inner[1]), _COARSE)
    points = round((_WORK / max(1, len(others))) ** (1.0 / 3.0))
    t = math.exp(0.5 * (low + high))
    fine = _bound(look, others, b, t, min(max(points, _LEAST), _MOST))
    return min(fine, *values)


def _bound(look: Floats, others: list[Floats], b: float, t: float, points: int) -> float:
    """Return the bound for one t, rounded up."""
    nodes = 0.5 - 0.5 * np.cos(np.linspace(0.0, math.pi, points))
    nodes[0], nodes[-1] = 0.0, 1.0
    values = _told(nodes, look)
    one, zero = _chords(nodes, values)
    for k, kernel in enumerate(others):
        one, zero = _peel(one, zero, kernel, t)
        if k + 1 < len(others):
            values = np.array([(q * one + (1.0 - q) * zero).max() for q in nodes])
            one, zero = _chords(nodes, values)
    scale = 1.0 + t
    most = scale * np.logaddexp(one / scale, zero / scale)
    size = np.abs(one).max() + np.abs(zero).max() + scale * (1.0 + b)
    return float(most.max() - t * b + 64.0 * ULP * size)


def _told(q: Floats, look: Floats) -> Floats:
    """Return minus the mean entropy of a bit of chance q (of the first law) after the look."""
    total = np.zeros_like(q)
    for first, second in look.T.tolist():
        u, v = q * first, (1.0 - q) * second
        seen = (u > 0.0) & (v > 0.0)
        u, v = np.where(seen, u, 1.0), np.where(seen, v, 1.0)
        total -= np.where(seen, u * np.log1p(v / u) + v * np.log1p(u / v), 0.0)
    return total


def _chords(nodes: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the values at 1 and at 0 of lines that are nowhere below the chords."""
    slopes = np.diff(values) / np.diff(nodes)
    one, zero = values[:-1] + slopes * (1.0 - nodes[:-1]), values[:-1] - slopes * nodes[:-1]
    doubt = 32.0 * ULP * (1.0 + np.abs(values).max() + np.abs(one) + np.abs(zero))
    for q, value in ((nodes[:-1], values[:-1]), (nodes[1:], values[1:])):
        doubt = np.maximum(doubt, value - (q * one + (1.0 - q) * zero) + doubt)
    return one + doubt, zero + doubt


def _peel(one: Floats, zero: Floats, kernel: Floats, t: float) -> tuple[Floats, Floats]:
    """Return the lines of F, one for each choice of a line of f for each of two outputs."""

    def best(line: Floats) -> Floats:
        """Return t ln sum_x e^(mean over the outputs/t), for both outputs' lines."""
        means = kernel[:, 0, None, None] * line[:, None] + kernel[:, 1, None, None] * line
        top = means.max(axis=0)
        value = top + t * np.log(np.exp((means - top) / t).sum(axis=0))
        size = np.abs(line).max() + t * math.log(len(kernel) + 1.0)
        return np.asarray(value + 16.0 * (len(kernel) + 4) * ULP * size).reshape(-1)

    return best(one), best(zero)
