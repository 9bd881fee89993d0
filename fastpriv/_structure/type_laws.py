"""From the type of the database to the type of the output, when all rows use one kernel.

Types of j rows of m values are the counts (c_1, ..., c_(m-1)) of the values 1 .. m-1, and an array
over types has m - 1 axes of length j + 1, as in the weights of ``Exchangeable``.
"""

from __future__ import annotations

import math
from functools import reduce

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import RowKernel, Symmetric


def type_laws(n: int, matrix: Floats) -> Floats:
    """Return P(type of the output | type of the database) of n rows, the database's axes first.

    The law given the counts c is the polynomial prod_s (sum_y W[s, y] z_y)^c_s. All terms are
    positive: the relative error is at most ``laws_error(n, matrix)``. For an m x K matrix the cost
    is O((n+1)^2 (K-1)) for each of C(n+m-1, n) types, and the table has (n+1)^(m+K-2) numbers.

    Examples
    --------
    >>> type_laws(2, np.array([[1.0, 0.0], [0.5, 0.5]]))
    array([[1.  , 0.  , 0.  ],
           [0.5 , 0.5 , 0.  ],
           [0.25, 0.5 , 0.25]])
    """
    m, outputs = matrix.shape
    size = (n + 1) ** (outputs - 1)
    laws = np.zeros((*(n + 1,) * (m - 1), size))
    powers = [_powers(n, row) for row in matrix]
    for counts in types_array(n, m).T.tolist():
        factors = [powers[s][c] for s, c in enumerate(counts)]
        law = reduce(np.convolve, factors)
        laws[tuple(counts[1:])][: len(law)] = law[:size]
    return laws.reshape((n + 1,) * (m + outputs - 2))


def _powers(n: int, row: Floats) -> list[Floats]:
    """Return (sum_y row[y] z_y)^c for c = 0 .. n, with z_y at place (n+1)^(K-1-y) and z_0 = 1.

    The counts of values 1 .. K-1 are the digits of a place in base n + 1. No digit exceeds n, so
    that products of polynomials are plain convolutions.
    """
    places = (n + 1) ** np.arange(len(row) - 1)[::-1]
    linear = np.zeros(int(places.max(initial=0)) + 1)
    linear[0], linear[places] = row[0], row[1:]
    powers = [np.ones(1)]
    for _ in range(n):
        powers.append(np.convolve(powers[-1], linear))
    return powers


def laws_error(n: int, matrix: Floats) -> float:
    """Bound the relative error of ``type_laws``: a product for each row, and sums over types."""
    m, outputs = matrix.shape
    return ULP * float(n * (outputs + 1) + m * (n + 1) ** (outputs - 1))


def types_array(n: int, m: int) -> Ints:
    """Return the counts (c_0, ..., c_(m-1)) of all types, one column for each."""
    counts = np.indices((n + 1,) * (m - 1)).reshape(m - 1, (n + 1) ** (m - 1))
    rest = n - counts.sum(axis=0)
    return np.concatenate([rest[None], counts])[:, rest >= 0]


def extreme_sums(n: int, logs: Floats, join: np.ufunc) -> Floats:
    """Return the largest or least sum of logs[x_i, y_i] over databases and outputs of two types.

    ``join`` is ``np.maximum`` or ``np.minimum``. A type with a row of value v comes from one
    without it, and that row has some value y. Cost O(n (n+1)^(m+K-2)).
    """
    m, unknown = len(logs), -math.inf if join is np.maximum else math.inf
    best = np.zeros((1,) * (sum(logs.shape) - 2))
    for j in range(1, n + 1):
        grown = np.full((j + 1,) * best.ndim, unknown)
        grown[(slice(0, j),) * (m - 1)] = _joined(best, logs[0], m - 1, join, unknown)
        # Types without the value 0.
        edge = np.nonzero(np.indices((j,) * (m - 1)).sum(axis=0) == j - 1)
        for v in range(1, m):
            place = tuple(at + (axis == v - 1) for axis, at in enumerate(edge))
            grown[place] = _joined(best[edge], logs[v], 1, join, unknown)
        best = grown
    return best


def _joined(best: Floats, row: Floats, skipped: int, join: np.ufunc, unknown: float) -> Floats:
    """Return the extreme over y of row[y] + best(. - e_y)."""
    grown = np.full((*best.shape[:skipped], *(size + 1 for size in best.shape[skipped:])), unknown)
    for y, gain in enumerate(row.tolist()):
        part = grown[_ahead(best.shape, skipped, y)]
        # What no pair of databases makes stays unknown, also where the gain is infinite.
        with np.errstate(invalid="ignore"):
            join(part, np.where(best == unknown, unknown, best + gain), out=part)
    return grown


def _ahead(shape: tuple[int, ...], skipped: int, y: int) -> tuple[slice, ...]:
    """Return the place in a table of one row more of the types that gain a row of value y."""
    moved = [int(k == y - 1) for k in range(len(shape) - skipped)]
    sizes = zip(moved, shape[skipped:], strict=True)
    return (*(slice(None),) * skipped, *(slice(up, size + up) for up, size in sizes))


def sent(laws: Floats, row: Floats, skipped: int) -> Floats:
    """Return sum_y row[y] laws(. - e_y): the types once a row has left as y with weight row[y]."""
    grown = np.zeros((*laws.shape[:skipped], *(size + 1 for size in laws.shape[skipped:])))
    for y, weight in enumerate(row.tolist()):
        grown[_ahead(laws.shape, skipped, y)] += weight * laws
    return grown


def rises(kernel: RowKernel) -> Floats:
    """Return W[v, y] - W[0, y], to the last digit also at small epsilon."""
    if isinstance(kernel, Symmetric):
        apart = np.eye(kernel.m)
        apart[:, 0] = -1.0
        apart[0] = 0.0
        return kernel.gap * apart
    return np.asarray(kernel.matrix - kernel.matrix[0])


def rise_of_laws(fewer: Floats, steps: Floats) -> Floats:
    """Return the laws of n rows minus that of the type with all rows at 0, from those of n - 1.

    One row that goes from 0 to v changes a law by sum_y (W[v, y] - W[0, y]) times the law of the
    others, moved by y. ``steps`` are these differences; with their absolute values the result
    bounds the sum of the terms. Outside of the types it holds no meaning.
    """
    m, n = len(steps), fewer.shape[0] if fewer.ndim else 1
    total = np.zeros((n + 1,) * fewer.ndim)
    for v in range(1, m):
        change = sent(fewer, steps[v], m - 1)
        # From the types whose counts of later values are 0, add up along the axis of v.
        first = (*(slice(None),) * v, *(slice(0, 1),) * (m - 1 - v))
        rise = np.cumsum(change[first], axis=v - 1)
        later = (*(slice(0, n),) * (v - 1), slice(1, None))
        total[later] += rise
    return total
