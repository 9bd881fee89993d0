"""Comparisons along the axes of a vector or a matrix over databases."""

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def axis_spreads(pmf, scale, inner, m, start, stop):
    """Largest (max - min)/min and largest sum(p - min)/min over lines of one axis, times scale.

    Lines have m entries a stride ``inner`` apart; those numbered ``start`` to ``stop`` - 1 are
    looked at. A line with a zero beside a positive entry gives infinity, an all-zero line nothing.
    """
    worst_ratio = 0.0
    worst_sum = 0.0
    for line in range(start, stop):
        base = line // inner * inner * m + line % inner
        least = pmf[base]
        most = least
        for j in range(1, m):
            value = pmf[base + j * inner]
            least = min(least, value)
            most = max(most, value)
        if most > least:
            total = 0.0
            for j in range(m):
                total += pmf[base + j * inner] - least
            worst_ratio = max(worst_ratio, (most - least) * scale / least)
            worst_sum = max(worst_sum, total * scale / least)
    return worst_ratio, worst_sum


@njit(nogil=True, cache=True, error_model="numpy")
def axis_log_ratios(pmf, inner, m, start, stop, worst):
    """Raise ``worst[s, t]`` to the largest ln p(s)/p(t) over lines of one axis; inf over zero."""
    for line in range(start, stop):
        base = line // inner * inner * m + line % inner
        for s in range(m):
            top = pmf[base + s * inner]
            if top > 0.0:
                for t in range(m):
                    bottom = pmf[base + t * inner]
                    excess = (top - bottom) / bottom
                    if abs(excess) < 0.5:
                        ratio = math.log1p(excess)
                    else:
                        ratio = math.log(top) - math.log(bottom)
                    worst[s, t] = max(worst[s, t], ratio)


@njit(nogil=True, cache=True, error_model="numpy")
def matrix_spread(matrix, shift, scale, inner, m, first, last):
    """Largest scale (max - min)/(shift + min) within a column, over lines of rows along one axis.

    The rows of a line are m rows of the matrix a stride ``inner`` apart; columns ``first`` to
    ``last`` - 1 are looked at, in blocks whose running extremes stay in cache. With shift 0 this
    is the worst ratio between neighbours, less one; a matrix that holds ratio - 1 already is
    passed with shift 1. A zero beside a positive entry gives infinity.
    """
    block = min(512, last - first)
    least = np.empty(block)
    most = np.empty(block)
    worst = 0.0
    for left in range(first, last, block):
        width = min(block, last - left)
        for line in range(matrix.shape[0] // m):
            base = line // inner * inner * m + line % inner
            for y in range(width):
                least[y] = matrix[base, left + y]
                most[y] = matrix[base, left + y]
            for j in range(1, m):
                row = base + j * inner
                for y in range(width):
                    value = matrix[row, left + y]
                    least[y] = value if value < least[y] else least[y]
                    most[y] = value if value > most[y] else most[y]
            for y in range(width):
                # An all-zero column gives 0/0; no comparison with that NaN is true.
                spread = (most[y] - least[y]) * scale / (shift + least[y])
                worst = spread if spread > worst else worst
    return worst


@njit(nogil=True, cache=True)
def hamming_cost(matrix, prior, rows):
    """Expected Hamming distance between input and output databases, sum p(x) W[x, y] d(x, y)."""
    size, n = rows.shape
    total = 0.0
    for x in range(size):
        cost = 0.0
        for y in range(size):
            distance = 0
            for i in range(n):
                distance += rows[x, i] != rows[y, i]
            cost += matrix[x, y] * distance
        total += prior[x] * cost
    return total


@njit(nogil=True, cache=True)
def axis_closure(v, move, inner, m):
    """In place along one axis: v[s] <- max(v[s], move * the largest other v[t] of the line)."""
    for base in range(v.shape[0]):
        if base // inner % m != 0:
            continue
        first = -math.inf
        second = -math.inf
        where = 0
        for j in range(m):
            value = v[base + j * inner]
            if value > first:
                first, second, where = value, first, j
            elif value > second:
                second = value
        for j in range(m):
            other = second if j == where else first
            v[base + j * inner] = max(v[base + j * inner], move * other)


@njit(nogil=True, cache=True)
def any_below(values, bounds, scale):
    """Whether some entry lies below minus ``scale`` times its bound; a NaN does not."""
    for j in range(values.shape[0]):
        if values[j] < -scale * bounds[j]:
            return True
    return False


SIGNATURES = {
    "any_below": ["b1(f8[::1], f8[::1], f8)"],
    "axis_spreads": ["UniTuple(f8, 2)(f8[::1], f8, i8, i8, i8, i8)"],
    "axis_log_ratios": ["void(f8[::1], i8, i8, i8, i8, f8[:, ::1])"],
    "matrix_spread": ["f8(f8[:, ::1], f8, f8, i8, i8, i8, i8)"],
    "hamming_cost": ["f8(f8[:, ::1], f8[::1], i8[:, ::1])"],
    "axis_closure": ["void(f8[::1], f8, i8, i8)"],
}
