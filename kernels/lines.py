"""Comparisons along the axes of a vector or a matrix over databases."""

import math

import numpy as np

from .arrays import high, low
from .declare import IntMatrix, Matrix, Vector, helper, kernel, uint64
from .logs import log_quotient


@kernel(small=True, error_model="numpy")
def axis_spreads(
    pmf: Vector, scale: float, inner: int, m: int, start: int, stop: int
) -> tuple[float, float]:
    """Largest (max - min)/min and largest sum(p - min)/min over lines of one axis, times scale.

    Lines have m entries a stride ``inner`` apart; those numbered ``start`` to ``stop`` - 1 are
    looked at. A line with a zero beside a positive entry gives infinity, an all-zero line nothing.
    Denominators are scaled up: a small numerator scaled down could vanish over a zero.
    """
    lift = 1.0 / scale
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
            worst_ratio = max(worst_ratio, (most - least) / (least * lift))
            worst_sum = max(worst_sum, total / (least * lift))
    return worst_ratio, worst_sum


@kernel(error_model="numpy")
def axis_log_ratios(pmf: Vector, inner: int, m: int, start: int, stop: int, worst: Matrix) -> None:
    """Raise ``worst[s, t]`` to the largest ln p(s)/p(t) over lines of one axis; inf over zero."""
    for line in range(start, stop):
        base = line // inner * inner * m + line % inner
        for s in range(m):
            top = pmf[base + s * inner]
            if top > 0.0:
                for t in range(m):
                    bottom = pmf[base + t * inner]
                    worst[s, t] = max(worst[s, t], log_quotient(top, bottom))


@helper(error_model="numpy")
def worst_column(least, most, width, shift, lift, worst):
    """Raise ``worst`` to the largest (most - least)/(lift (shift + least)).

    Dividing is rare: the columns are first compared with the worst so far, by a count that
    vectorises. 0/0 of an all-zero column is a NaN, which no comparison lets through.
    """
    above = 0
    for y in range(width):
        above += most[y] - least[y] > worst * ((shift + least[y]) * lift)
    if above > 0:
        for y in range(width):
            spread = (most[y] - least[y]) / ((shift + least[y]) * lift)
            worst = spread if spread > worst else worst
    return worst


@kernel(small=True)
def matrix_spread(
    matrix: Matrix, shift: float, scale: float, axes: IntMatrix, first: int, last: int
) -> float:
    """Largest scale (max - min)/(shift + min) within a column, over lines of rows along any axis.

    ``axes[k]`` = (stride, size) of an axis of the row index; a line is the rows that differ on
    that axis only. Columns ``first`` to ``last`` - 1 are read, in blocks whose running
    extremes stay in cache, four rows at a time. With shift 0 this is the worst ratio between
    neighbours, less one; a matrix that holds ratio - 1 already is passed with shift 1. A zero
    beside a positive entry gives infinity, an all-zero column nothing.
    """
    stride = matrix.shape[1]
    flat = matrix.reshape(-1)
    block = min(512, last - first)
    least = np.empty(block)
    most = np.empty(block)
    lift = 1.0 / scale
    worst = 0.0
    for k in range(axes.shape[0]):
        inner, m = axes[k]
        step = inner * stride
        for left in range(first, last, block):
            width = uint64(min(block, last - left))
            for line in range(matrix.shape[0] // m):
                top = (line // inner * inner * m + line % inner) * stride + left
                p0, p1 = uint64(top), uint64(top + min(1, m - 1) * step)  # one row is its own line
                for y in range(width):
                    a, b = flat[p0 + y], flat[p1 + y]
                    least[y] = low(a, b)
                    most[y] = high(a, b)
                for j in range(2, m, 4):
                    p0 = uint64(top + j * step)
                    p1 = uint64(top + min(j + 1, m - 1) * step)
                    p2 = uint64(top + min(j + 2, m - 1) * step)
                    p3 = uint64(top + min(j + 3, m - 1) * step)
                    for y in range(width):
                        a, b, c, d = flat[p0 + y], flat[p1 + y], flat[p2 + y], flat[p3 + y]
                        least[y] = low(least[y], low(low(a, b), low(c, d)))
                        most[y] = high(most[y], high(high(a, b), high(c, d)))
                worst = worst_column(least, most, width, shift, lift, worst)
    return worst


@kernel(small=True)
def hamming_cost(matrix: Matrix, prior: Vector, rows: IntMatrix) -> float:
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


@kernel()
def axis_closure(v: Vector, move: float, inner: int, m: int) -> None:
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


@kernel(small=True)
def any_below(values: Vector, bounds: Vector, scale: float) -> bool:
    """Whether some entry lies below minus ``scale`` times its bound; a NaN does not."""
    for j in range(values.shape[0]):
        if values[j] < -scale * bounds[j]:
            return True
    return False
