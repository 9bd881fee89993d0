"""Sums over databases and outputs of given types, if all records use one kernel.

A quantity that depends on a database x only through its type is a vector over types, and a sum
over x of such a quantity times W[x, y] depends on the type of y alone. So measures of exchangeable
records need tables over pairs of types, and no list of databases.
"""

from __future__ import annotations

import math
from functools import cached_property, reduce

import numpy as np

from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.counts import log_multinomials, types_array
from fastpriv._structure.rows import RowKernel, Symmetric

#: Most numbers in a table over pairs of types.
_TABLE = 1 << 22
#: Distributions below it may have lost digits to underflow.
_SMALL = 1e-300


def type_laws(n: int, matrix: Floats) -> Floats:
    """Return P(type of the output | type of the database) of n records, the database first.

    The distribution given the counts c is the polynomial prod_s (sum_y W[s, y] z_y)^c_s. All terms
    are positive: the relative error is at most ``laws_error(n, matrix)``. For an m x K matrix the
    cost is O((n+1)^2 (K-1)) for each of C(n+m-1, n) types, and the table has (n+1)^(m+K-2) numbers.

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
    """Bound the relative error of ``type_laws``: a product for each record, and sums over types."""
    m, outputs = matrix.shape
    return roundoff(float(n * (outputs + 1) + m * (n + 1) ** (outputs - 1)))


def extreme_sums(n: int, logs: Floats, join: np.ufunc) -> Floats:
    """Return the largest or smallest sum of logs[x_i, y_i] over databases and outputs of two types.

    ``join`` is ``np.maximum`` or ``np.minimum``. A type with a record of value v comes from one
    without it, and that record has some output y. Cost O(n (n+1)^(m+K-2)).
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
        # Impossible pairs of types stay unknown, even if the gain is infinite.
        with np.errstate(invalid="ignore"):
            join(part, np.where(best == unknown, unknown, best + gain), out=part)
    return grown


def _ahead(shape: tuple[int, ...], skipped: int, y: int) -> tuple[slice, ...]:
    """Return the places, in a table of one record more, of types plus a record of value y."""
    moved = [int(k == y - 1) for k in range(len(shape) - skipped)]
    sizes = zip(moved, shape[skipped:], strict=True)
    return (*(slice(None),) * skipped, *(slice(up, size + up) for up, size in sizes))


def sent(laws: Floats, row: Floats, skipped: int) -> Floats:
    """Return sum_y row[y] laws(. - e_y): one more record has output y with weight row[y]."""
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
    """Return the rows of ``type_laws`` minus its first one, from the table of n - 1 records.

    A record that changes from 0 to v changes a distribution by sum_y (W[v, y] - W[0, y]) times the
    distribution of the others, moved by y. ``steps`` are these differences; with their absolute
    values the result bounds the sum of the terms. Outside of the types it holds no meaning.
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


def pairs_fit(n: int, kernel: RowKernel) -> bool:
    """Whether the tables over pairs of types of n records are small enough."""
    m, outputs = kernel.shape
    return bool((n + 1) ** (m + outputs - 2) <= _TABLE)


class TypePairs:
    """Tables over pairs of types of the database (first axis) and the output (second axis).

    Parameters
    ----------
    n : int
        Number of records.
    kernel : RowKernel
        The kernel of every record, m x K. Cost O((n+1)^(m+K-2)) numbers.
    """

    def __init__(self, n: int, kernel: RowKernel) -> None:
        self.n, self.kernel = n, kernel
        self.types, self.outputs = types_array(n, kernel.shape[0]), types_array(n, kernel.shape[1])
        self.log_sizes, self.log_output_sizes = map(log_multinomials, (self.types, self.outputs))

    @property
    def _grid(self) -> tuple[Ints, ...]:
        return (*(c[:, None] for c in self.types[1:]), *(c[None, :] for c in self.outputs[1:]))

    @cached_property
    def laws(self) -> Floats:
        """P(type of the output | type of the database)."""
        return type_laws(self.n, self.kernel.matrix)[self._grid]

    @cached_property
    def _turned(self) -> np.ndarray:
        """Entries to take from output to database, because that number does not underflow.

        C(s) T[s, t] = C(t) T[t, s] for symmetric kernels, where C counts databases of a type.
        """
        if not isinstance(self.kernel, Symmetric):
            return np.zeros(self.laws.shape, dtype=bool)
        return (self.laws < _SMALL) & (self.laws < self.laws.T)

    @cached_property
    def log_laws(self) -> Floats:
        """Logarithms of the distributions."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.laws)
        if self._turned.any():
            other = logs.T + self.log_output_sizes - self.log_sizes[:, None]
            logs = np.where(self._turned, other, logs)
        return np.asarray(logs)

    def mean(self, costs: Floats) -> Floats:
        """Return the mean of sum_i costs[x_i, y_i] >= 0 over the pairs of two types, weighted by W.

        The costs of records are added one by one. The other records are a database of n - 1.
        """
        kernel, m, n = self.kernel, self.kernel.shape[0], self.n
        weights, fewer = kernel.matrix * costs, self._fewer
        total = np.zeros((n + 1,) * fewer.ndim)
        rest, *others = self.types
        share = np.zeros((m, *(n + 1,) * (m - 1)))
        at_types = (slice(None), *others)
        share[at_types] = [rest, *others]
        for v in range(m):
            moved = sent(fewer, weights[v], m - 1)
            ahead = tuple(slice(int(k == v - 1), n + int(k == v - 1)) for k in range(m - 1))
            part = share[v][ahead]
            total[ahead] += part.reshape(part.shape + (1,) * (fewer.ndim - m + 1)) * moved
        mean = total[self._grid] / np.where(self.laws > 0.0, self.laws, 1.0)
        return np.where(self._turned, mean.T, mean) if self._turned.any() else mean

    @cached_property
    def _fewer(self) -> Floats:
        return type_laws(self.n - 1, self.kernel.matrix)

    @cached_property
    def mean_cost(self) -> Floats:
        """Mean of ln(prod max W[., y_i] / W[x, y]) over the pairs of two types."""
        return self.mean(np.where(self.kernel.matrix > 0.0, -self.kernel.log_relative, 0.0))

    @cached_property
    def mean_distance(self) -> Floats:
        """Mean of the Hamming distance over the pairs of two types."""
        return self.mean(1.0 - np.eye(self.kernel.shape[0]))

    @cached_property
    def nearest(self) -> Floats:
        """Largest ln(W[x, y] / prod max W[., y_i]) over the pairs of two types."""
        return self._extreme(np.maximum)

    @cached_property
    def farthest(self) -> Floats:
        """Smallest ln(W[x, y] / prod max W[., y_i]) over the pairs of two types."""
        return self._extreme(np.minimum)

    def _extreme(self, join: np.ufunc) -> Floats:
        if isinstance(self.kernel, Symmetric):
            return np.asarray(-self.kernel.epsilon * distances(self.n, self.kernel.m, join))
        return extreme_sums(self.n, self.kernel.log_relative, join)[self._grid]

    @cached_property
    def log_tops(self) -> Floats:
        """Log of prod max W[., y_i] for an output of each type, -inf if it never occurs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = self.outputs * np.log(self.kernel.column_maxima)[:, None]
        return np.asarray(np.where(self.outputs > 0, logs, 0.0).sum(axis=0))

    @property
    def error(self) -> float:
        """Bound on the relative error of the tables."""
        return laws_error(self.n, self.kernel.matrix) + roundoff(8.0)

    def log_joint(self, log_weights: Floats) -> Floats:
        """Return ln of the sum of w(x) W[x, y] over pairs of types, from ln of w summed by type."""
        return np.asarray(log_weights[:, None] + self.log_laws)

    def log_lost(self, log_weights: Floats) -> Floats:
        """Bound ln of the loss by underflow in the sums over databases."""
        small = self.laws < _SMALL
        if isinstance(self.kernel, Symmetric):
            small &= self.laws.T < _SMALL
        return self.log_sum(np.where(small, log_weights[:, None], -math.inf)) + math.log(_SMALL)

    @staticmethod
    def log_sum(terms: Floats) -> Floats:
        """Return ln of the sum over the first axis of numbers given by their logarithms."""
        top = terms.max(axis=0)
        base = np.where(top > -math.inf, top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(base + np.log(np.exp(terms - base).sum(axis=0)))


def distances(n: int, m: int, join: np.ufunc) -> Ints:
    """Return the smallest (of np.maximum) or largest (of np.minimum) distance between two types.

    Records agree as much, or as little, as the counts allow.
    """
    types = types_array(n, m)
    apart = np.full((types.shape[1], types.shape[1]), n)
    for count in types:
        if join is np.maximum:
            apart -= np.minimum(count[:, None], count)
        else:
            apart -= np.maximum(count[:, None] + count - n, 0)
    return apart
