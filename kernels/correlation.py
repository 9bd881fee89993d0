"""Contraction of pairs of distributions.

For distributions P, Q and a weight b, with d = P - Q and m = bP + (1-b)Q,

    g(b) = b(1-b) sum d^2/m,      g'(b) = (1-b)^2 sum Q (d/m)^2 - b^2 sum P (d/m)^2,

and g'' = -2 sum PQ d^2/m^3: g is concave, whatever P and Q sum to, so that a tangent bounds it.
All sums have non-negative terms. A term is good to 12 u, u = 2^-53, a sum of K of them to K + 12.
"""

import math

import numpy as np

from .arrays import SHORT
from .declare import Ints, Matrix, Vector, helper, in_any_order, kernel

U = 2.0**-53
EDGE = 2.0**-50  # b keeps this distance from 0 and 1; tangents cover the rest
TINY = 2.0**-1020  # means below are left out; what they could add is granted
LOST = 2.0**-960  # more than a term that was left out, or its underflow, can add
NEARER = 2.0**-6  # smallest share of the distance to a bound that a step leaves
STEPS = 200
BIG = 2.0**600  # sums beyond are scaled down by it


@helper()
def _short_sums(P, Q, b):
    """Return sum d^2/m, sum Q (d/m)^2, sum P (d/m)^2 and sum PQ d^2/m^3."""
    rest = 1.0 - b
    total, rise, fall, bend = 0.0, 0.0, 0.0, 0.0
    for y in range(P.size):
        v, w = P[y], Q[y]
        d = v - w
        m = b * v + rest * w
        inverse = np.divide(1.0, m) if m > TINY else 0.0
        r = d * inverse
        total += d * r
        rise += w * r * r
        fall += v * r * r
        bend += v * r * (w * r) * inverse
    return total, rise, fall, bend


_long_sums = in_any_order(_short_sums)


@helper()
def _sums(P, Q, b):
    """Return these sums, added in one order if they are short."""
    return _short_sums(P, Q, b) if P.size <= SHORT else _long_sums(P, Q, b)


@helper(error_model="numpy")
def _pair(P, Q, floor):
    """Largest g(b) from below and above, and its b; stops early once it is below ``floor``.

    Newton's method on g'. ``low`` and ``high`` are points where g' surely rises and falls.
    """
    error = (P.size + 16) * U
    low, high, b = 0.0, 1.0, 0.5
    best, bound, weight = 0.0, np.inf, 0.5
    for _ in range(STEPS):
        rest = 1.0 - b
        total, rise, fall, bend = _sums(P, Q, b)
        value, rise, fall = b * rest * total, rest * rest * rise, b * b * fall
        if value > best:
            best, weight = value, b
        slope, doubt = rise - fall, error * (rise + fall)
        most = max((slope + doubt) * (high - b), (doubt - slope) * (b - low))
        bound = min(bound, value * (1.0 + error) + most * (1.0 + 8.0 * U) + P.size * LOST)
        if bound <= floor or bound - best <= 4.0 * error * best or abs(slope) <= doubt:
            break
        if slope > 0.0:
            low = b
        else:
            high = b
        # Newton's method leaves a bound slowly, so that no step goes too close at once.
        b = min(max(b + slope / (2.0 * bend), NEARER * b, EDGE), 1.0 - max(NEARER * rest, EDGE))
        if not low < b < high:
            b = 0.5 * (low + high)
    return best * (1.0 - error), bound, weight


@kernel(error_model="numpy")
def pair_contractions(
    W: Matrix,
    left: Ints,
    right: Ints,
    floor: float,
    start: int,
    stop: int,
    lower: Vector,
    upper: Vector,
    weight: Vector,
) -> tuple[float, float]:
    """Largest g of the pairs of rows W[left[k]], W[right[k]], start <= k < stop.

    ``upper`` comes with any true bound on each pair. Pairs whose bound is not above the largest
    lower bound so far, or above ``floor``, keep it. Returns the largest lower and upper bound.
    """
    most = floor
    for k in range(start, stop):
        lower[k], weight[k] = 0.0, 0.5
        if upper[k] > floor:
            low, high, weight[k] = _pair(W[left[k]], W[right[k]], floor)
            lower[k], upper[k] = low, min(upper[k], high)
            floor = max(floor, low)
            most = max(most, upper[k])
    return floor, most


@helper()
def _short_square(P, Q):
    """Return |P - Q|^2."""
    total = 0.0
    for y in range(P.size):
        total += (P[y] - Q[y]) * (P[y] - Q[y])
    return total


_long_square = in_any_order(_short_square)


@helper()
def _square(P, Q):
    """Return |P - Q|^2, in one order if there are few terms."""
    return _short_square(P, Q) if P.size <= SHORT else _long_square(P, Q)


@kernel(small=2 * SHORT, error_model="numpy")
def rows_contraction(W: Matrix, unsummed: float) -> tuple[float, float]:
    """Largest g of all pairs of rows, from below and above.

    H = |sqrt P - sqrt Q|^2/2 bounds a pair by 2 H, and by H (2 - H) + ``unsummed``. The pair with
    the largest bound comes first.
    """
    rows, width = W.shape
    root, bounds = np.empty((rows, width)), np.zeros((rows, rows))
    for x in range(rows):
        for y in range(width):
            root[x, y] = np.sqrt(W[x, y])
    first, second = 0, 0
    for i in range(rows):
        for j in range(i):
            square = _square(root[i], root[j])
            differ = square > 0.0
            for y in range(width if not differ else 0):
                differ = differ or W[i, y] != W[j, y]
            if differ:
                # Roots are rounded once, and the sum is off by its terms and a few units.
                far = math.sqrt(square) * (1.0 + (width + 8) * U) + 16.0 * U
                half = 0.5 * far * far * (1.0 + 8.0 * U)
                bounds[i, j] = min(2.0 * half, half * (2.0 - half) + unsummed)
                if bounds[i, j] > bounds[first, second]:
                    first, second = i, j
    floor, most = 0.0, 0.0
    if bounds[first, second] > 0.0:
        floor, high, _ = _pair(W[first], W[second], 0.0)
        most = min(bounds[first, second], high)
        bounds[first, second] = 0.0
    for i in range(rows):
        for j in range(i):
            if bounds[i, j] > floor:
                low, high, _ = _pair(W[i], W[j], floor)
                floor = max(floor, low)
                most = max(most, min(bounds[i, j], high))
    return floor, max(most, floor)


@kernel(small=True, error_model="numpy")
def net_contraction(n: int, m: int, epsilon: float) -> float:
    """Mean of tanh^2(epsilon K / 2), K the outputs of n records that equal x minus x'.

    An output is x with probability 1, x' with r = e^-epsilon and neither with (m-2) r, up to scale.
    The probabilities q_i of K = n - i from the top down follow a recursion with positive terms.
    P(-K) is e^(-epsilon K) P(K).
    """
    r = math.exp(-epsilon)
    neither = (m - 2) * r
    before, chance = 0.0, 1.0
    total, part = 0.0, 0.0
    for i in range(n + 1):
        if i > 0:
            later = (neither * (n - i + 1) * chance + r * (2 * n - i + 2) * before) / i
            before, chance = chance, later
        level = epsilon * (n - i)
        tilt = math.tanh(0.5 * level)
        mass = chance * (1.0 + math.exp(-level)) if i < n else chance
        total += mass
        part += mass * tilt * tilt
        if total > BIG:
            before, chance, total, part = before / BIG, chance / BIG, total / BIG, part / BIG
    return part / total
