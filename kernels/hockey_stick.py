"""Sums of (a - e^eps b)_+ over outputs, for two output distributions a and b.

With E = e^eps - 1 a term is (a - b) - E b, which keeps its digits if a and b are close.
"""

import math

import numpy as np

from .declare import IntMatrix, Matrix, Vector, helper, kernel

UNIT = 2.0**-53


@kernel()
def largest_excess(laws: Matrix, pairs: IntMatrix, slopes: Vector, start: int, stop: int) -> Vector:
    """Largest sum_y ((a_y - b_y) - E b_y)_+ over pairs start .. stop - 1, for every E in slopes.

    ``pairs[j]`` = (row of a, row of b) in ``laws``. With slopes that are 2 units below the
    true ones every computed term is at least 1 - 2 units of the true one, so the sums, of K
    non-negative terms, are low by at most K + 4 units, and by K times half the smallest double.
    """
    worst = np.zeros(slopes.size)
    for j in range(start, stop):
        first = laws[pairs[j, 0]]
        second = laws[pairs[j, 1]]
        for k in range(slopes.size):
            slope = slopes[k]
            total = 0.0
            for y in range(first.size):
                total += max((first[y] - second[y]) - slope * second[y], 0.0)
            worst[k] = max(worst[k], total)
    return worst


@helper()
def _crossing(first, second, slope, delta):
    """Return E at which the line that a pair follows at ``slope`` falls to delta, rounded up.

    The line sums over the outputs with a - b >= slope b: sum (a - b) - delta - E sum b. The
    sum less delta carries its rounding errors along. If it is zero, no E is needed, and a last
    digit counts. An example is mass delta on outputs that are impossible under b.
    """
    total = -delta
    carry = 0.0
    lost = 0.0
    mass = 0.0
    for y in range(first.size):
        b = second[y]
        gain = first[y] - b
        if gain > 0.0 and gain >= slope * (1.0 - 8.0 * UNIT) * b:
            new = total + gain
            error = (total - new) + gain if abs(total) >= gain else (gain - new) + total
            rest = (first[y] - gain) - b  # the exact rounding error of a - b
            carry += error + rest
            lost += abs(error) + abs(rest)
            total = new
            mass += b
    excess = total + carry
    if mass == 0.0:
        return math.inf if excess > 0.0 else 0.0
    excess += 2.0 * UNIT * (abs(excess) + first.size * lost)
    if excess <= 0.0:
        return 0.0
    return excess / (mass * (1.0 - (first.size + 24.0) * UNIT)) * (1.0 + 4.0 * UNIT)


@kernel(small=True, error_model="numpy")
def least_slope(
    laws: Matrix, pairs: IntMatrix, delta: float, slope: float, start: int, stop: int
) -> float:
    """Smallest E >= slope for which no pair start .. stop - 1 exceeds delta, rounded up.

    The curve of a pair is convex and piecewise linear in E, so Newton's steps rise to its
    crossing and stop after as many as there are pieces; a pair that is below delta at the slope
    reached so far costs one evaluation.
    """
    for j in range(start, stop):
        while slope < math.inf:
            ahead = _crossing(laws[pairs[j, 0]], laws[pairs[j, 1]], slope, delta)
            if ahead <= slope:
                break
            slope = ahead
    return slope
