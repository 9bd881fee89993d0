"""Bounds on the capacity of k rows by the affinities Z_ab = sum_y sqrt(W_a(y) W_b(y)) of pairs.

For a law on k values let s be the sum of sqrt(p_a p_b) over pairs, and H the entropy. For every
l > 0 let K(l) be the largest l s - H. Applied to the values given an output, and averaged,

    I <= H(p) - l sum_(a < b) sqrt(p_a p_b) Z_ab + K(l).

The bound falls in every Z_ab. It is used in two ways. If all Z_ab are at least z, the largest
H(p) - l z s(p) remains. And if no p_a is below some t, let S be the sum of all Z_ab and D the sum of
squares of the deviations of the rows' sums from their mean. Then for every T <= S

    I <= ln k + K(l) - l T/k + l^2 (T/S)^2 D/(4 k A),   A = c - l/2 - l T/k > 0,

with c = (2 u^2 ln u - u^2 + 1)/(u - 1)^2, u = sqrt(k t). The proofs are on the page "Individuals" of
the documentation.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from fastpriv._core.rounding import raised
from fastpriv._core.validation import Floats

#: Cells of a range of probabilities, and more than what rounding and the sums of rows change.
_CELLS, _SLACK = 1 << 15, 1e-12
#: Values of l (times k/4, where it is 1 for rows that hardly differ) and of t that are tried.
_SLOPES = tuple(0.3 + 0.05 * j for j in range(25))
_LEAST = (0.005, 0.01, 0.02, 0.04, 0.07, 0.1)
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


def _largest(k: int, weight: float, sign: float) -> float:
    """Bound the largest sign (l s - H) over laws on k values with at most two probabilities.

    j values have the probability u, the others v. Over a cell of u, s is concave and between its
    ends, and H lies above its chord and below what the larger of each term adds up to.
    """
    worst = -math.inf
    for j in range(1, k):
        roots = np.linspace(0.0, 1.0 / math.sqrt(j), _CELLS + 1)
        u = roots**2
        v = np.clip((1.0 - j * u) / (k - j), 0.0, 1.0)
        others = np.sqrt(v)
        terms = [-x * np.log(np.maximum(x, 1e-300)) for x in (u, v)]
        entropy = j * terms[0] + (k - j) * terms[1]
        if sign > 0.0:
            total = j * roots[1:] + (k - j) * others[:-1]
            low = np.minimum(entropy[1:], entropy[:-1])
            value = weight * (0.5 * (total**2 - 1.0)) - low
        else:
            total = j * roots[:-1] + (k - j) * others[1:]
            high = j * _top(terms[0], u) + (k - j) * _top(terms[1], v)
            value = high - weight * np.maximum(0.5 * (total**2 - 1.0), 0.0)
        worst = max(worst, float(value.max()))
    return worst + _SLACK


def _top(terms: Floats, x: Floats) -> Floats:
    """Return the largest -x ln x over every cell, from its values at the ends."""
    top = np.maximum(terms[1:], terms[:-1])
    peak = 1.0 / math.e
    inside = (np.minimum(x[1:], x[:-1]) <= peak) & (np.maximum(x[1:], x[:-1]) >= peak)
    return np.where(inside, peak * (1.0 + 1e-15), top)


@cache
def excess(k: int, slope: float) -> float:
    """Bound K(l), the largest l s - H over laws on k values.

    The derivative of l s is infinite where a probability is 0. Inside, l S/(2 x) + 2 ln x with
    x = sqrt(p_a) has one value, so that there are at most two different probabilities.
    """
    return _largest(k, slope, 1.0)


def alike_limit(k: int, z: float) -> float:
    """Bound the capacity of k rows of which any two have an affinity of at least z.

    The largest H - l z s is at a law on j <= k values with at most two probabilities.
    """
    if k < 2:
        return 0.0
    best = math.log(k)
    for share in _SLOPES:
        slope = share * 4.0 / k
        spread = max(
            [math.log(j) - slope * z * 0.5 * (j - 1) for j in range(1, k + 1)]
            + [_largest(j, slope * z, -1.0) for j in range(2, k + 1)]
        )
        best = min(best, spread + excess(k, slope))
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
