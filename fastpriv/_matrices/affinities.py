"""Bounds on the capacity of k rows by the affinities Z_ab = sum_y sqrt(W_a(y) W_b(y)) of pairs.

For a law on k values let s be the sum of sqrt(p_a p_b) over pairs, and H the entropy. For every
l > 0 let K(l) be the largest l s - H. Applied to the values given an output, and averaged,

    I <= H(p) - l sum_(a < b) sqrt(p_a p_b) Z_ab + K(l).

The bound falls in every Z_ab. It is used in two ways. If all Z_ab are at least z, the largest
H(p) - l z s(p) remains. And if no p_a is below some t, let S be the sum of all Z_ab and D the sum
of squares of the deviations of the rows' sums from their mean. Then for every T <= S

    I <= ln k + K(l) - l T/k + l^2 (T/S)^2 D/(4 k A),   A = c - l/2 - l T/k > 0,

with c = (2 u^2 ln u - u^2 + 1)/(u - 1)^2, u = sqrt(k t). The proofs are on the page "Individuals"
of the documentation.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from fastpriv._core.rounding import raised
from fastpriv._core.validation import Floats

#: Cells of a range of probabilities, and more than what rounding and the sums of rows change.
_CELLS, _SLACK = 1 << 13, 1e-12
#: Values of l (times k/4, where it is 1 for rows that hardly differ) and of t that are tried.
_SLOPES = tuple(0.3 + 0.1 * j for j in range(13))
_LEAST = (0.005, 0.01, 0.02, 0.04, 0.07, 0.1)
#: The same as shares of 1/k, for rows that are all alike.
_EVEN = (0.02, 0.1, 0.25, 0.4)
#: Ratio of D to the square of S that a test should allow for.
_UNEVEN = 0.012


def binary_entropy(t: Floats) -> Floats:
    """Return the entropy of laws (t, 1 - t)."""
    inner, outer = np.clip(t, 1e-300, 1.0), np.clip(1.0 - t, 1e-300, 1.0)
    return np.asarray(-inner * np.log(inner) - outer * np.log(outer))


def pair_limit(t: Floats, z: float) -> Floats:
    """Bound what two rows of an affinity of at least z tell at weights t and 1 - t.

    With r = 2 sqrt(t (1 - t)), and e(r) the entropy h(t), this is e(r) - e(r z): e is convex.
    """
    r = 2.0 * np.sqrt(np.clip(t * (1.0 - t), 0.0, 0.25)) * z
    less = 0.5 * r**2 / (1.0 + np.sqrt(np.clip(1.0 - r**2, 0.0, 1.0)))  # 2 sqrt(less (1-less)) = r
    return np.asarray(binary_entropy(t) - binary_entropy(less) + _SLACK)


def _largest(k: int, weight: float, sign: float, fixed: int = 0, least: float = 0.0) -> float:
    """Bound the largest sign (l s - H) over laws on k values with few different probabilities.

    ``fixed`` values have the ``least`` probability, j others have u and the rest v, both no less.
    Roots of u and v lie on an ellipse. Over a cell of its angle, s is between what the ends of its
    terms add up to. H is concave in u, so it is least at an end.
    """
    worst, free, mass = -math.inf, k - fixed, 1.0 - fixed * least
    first, still = fixed * math.sqrt(least), float(fixed * _term(np.array(least)))
    for j in range(1, max(free, 2)):
        rest = free - j
        low = math.asin(math.sqrt(min(rest * least / mass, 1.0)))
        high = math.acos(math.sqrt(min(j * least / mass, 1.0))) if rest else 0.0
        angles = np.linspace(low, max(low, high), _CELLS + 1)
        roots = np.cos(angles) * math.sqrt(mass / j)  # falling
        others = np.sin(angles) * math.sqrt(mass / max(rest, 1))  # rising
        u, v = roots**2, others**2
        if sign > 0.0:
            total = first + j * roots[:-1] + rest * others[1:]
            entropy = still + j * _term(u) + rest * _term(v)
            value = weight * (0.5 * (total**2 - 1.0)) - np.minimum(entropy[1:], entropy[:-1])
        else:
            total = first + j * roots[1:] + rest * others[:-1]
            entropy = still + j * _top(u) + rest * _top(v)
            value = entropy - weight * np.maximum(0.5 * (total**2 - 1.0), 0.0)
        worst = max(worst, float(value.max()))
    return worst + _SLACK


def _term(x: Floats) -> Floats:
    """Return -x ln x."""
    return np.asarray(-x * np.log(np.maximum(x, 1e-300)))


def _top(x: Floats) -> Floats:
    """Return the largest -x ln x over every cell between two neighbours."""
    low, high = np.minimum(x[1:], x[:-1]), np.maximum(x[1:], x[:-1])
    return _term(np.clip(1.0 / math.e, low, high)) * (1.0 + 1e-15)


@cache
def excess(k: int, slope: float) -> float:
    """Bound K(l), the largest l s - H over laws on k values.

    The derivative of l s is infinite where a probability is 0. Inside, l S/(2 x) + 2 ln x with
    x = sqrt(p_a) has one value, so that there are at most two different probabilities.
    """
    return _largest(k, slope, 1.0)


def alike_limit(k: int, z: float) -> float:
    """Bound the capacity of k rows of which any two have an affinity of at least z.

    Either some p_a is below t, so that the other rows and the question whether it is a tell
    F(p_a) + (1 - p_a) C. Or none is, and the largest H - l z s has at most two probabilities above
    t. Cost O(k^2) for every cell, l and t.
    """
    if k < 2:
        return 0.0
    best = math.log(k)
    if k == 2:
        return raised(min(best, float(pair_limit(np.array(0.5), z))), 8.0)
    fewer = alike_limit(k - 1, z)
    for t in _EVEN:
        grid = np.linspace(0.0, t / k, 257)
        rare = float((pair_limit(grid[1:], z) + (1.0 - grid[:-1]) * fewer).max())
        if rare >= best:
            continue
        for share in _SLOPES:
            slope = share * 4.0 / k
            even = max(_largest(k, slope * z, -1.0, j, t / k) for j in range(k))
            best = min(best, max(rare, even + excess(k, slope)))
    return raised(best + _SLACK, 8.0)


class Test(NamedTuple):
    """Numbers of a test whether affinities prove that k rows carry at most a level.

    They do if S > least and D <= S^2 w(min(S, best)), w(T) = scale (room - share T)(T - least)/T^2,
    and if no k - 1 of the rows carry more than ``parts``.
    """

    least: float
    best: float
    room: float
    share: float
    scale: float
    parts: float


#: A test that proves nothing.
NEVER = Test(math.inf, math.inf, 0.0, 0.0, 0.0, 0.0)


def part_limit(level: float, t: float) -> float:
    """Return what k - 1 rows may carry so that k rows with some p_a <= t carry at most a level.

    I <= h(p_a) + (1 - p_a) C with the capacity C of the others, and this rises in p_a while
    C <= ln((1 - t)/t).
    """
    h = float(binary_entropy(np.array(t))) + _SLACK
    return min((level - h) / (1.0 - t) - _SLACK, math.log((1.0 - t) / t))


def sum_test(k: int, level: float, parts: float) -> Test:
    """Return the test for k rows and a level that allows for k - 1 rows that carry ``parts``.

    Among the l and t that allow for them, those are taken that prove most.
    """
    found, reach = NEVER, math.inf
    for least in _LEAST:
        most = part_limit(level, least)
        if k * least > 0.9 or most < parts:
            continue
        u = math.sqrt(k * least)
        c = (2.0 * u * u * math.log(u) - u * u + 1.0) / (u - 1.0) ** 2 - _SLACK
        for share in _SLOPES:
            slope = share * 4.0 / k
            room, rate = c - 0.5 * slope, slope / k
            start = (math.log(k) + excess(k, slope) - level + _SLACK) / rate
            if start <= 0.0 or start * rate >= room:
                continue
            T = np.linspace(start, room / rate, 65)[1:-1]
            w = 4.0 / slope * (room - rate * T) * (T - start) / T**2
            enough = np.flatnonzero(w >= _UNEVEN)
            if len(enough) and T[enough[0]] < reach:
                reach = float(T[enough[0]])
                scale = 4.0 / slope * (1.0 - 1e-9)
                found = Test(start, float(T[w.argmax()]), room, rate, scale, most)
    return found
