"""Sums over databases and outputs of given types, when all rows use one kernel.

A quantity that depends on a database x only through its type is a vector over types, and a sum
over x of such a quantity times W[x, y] depends on the type of y alone. So measures of exchangeable
rows need tables over pairs of types, and no list of databases.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv._structure.type_laws import extreme_sums, laws_error, sent, type_laws, types_array

#: Most numbers in a table over pairs of types.
_TABLE = 1 << 22
#: Laws below it may have lost digits to underflow.
_SMALL = 1e-300


def pairs_fit(n: int, kernel: RowKernel) -> bool:
    """Whether the tables over pairs of types of n rows are small enough."""
    m, outputs = kernel.shape
    return bool((n + 1) ** (m + outputs - 2) <= _TABLE)


class TypePairs:
    """Tables over pairs of types of the database (first axis) and the output (second axis).

    Parameters
    ----------
    n : int
        Number of rows.
    kernel : RowKernel
        The kernel of every row, m x K. Cost O((n+1)^(m+K-2)) numbers.
    """

    def __init__(self, n: int, kernel: RowKernel) -> None:
        self.n, self.kernel = n, kernel
        self.types, self.outputs = types_array(n, kernel.shape[0]), types_array(n, kernel.shape[1])
        self.log_sizes, self.log_output_sizes = log_sizes(self.types), log_sizes(self.outputs)

    @property
    def _grid(self) -> tuple[Ints, ...]:
        return (*(c[:, None] for c in self.types[1:]), *(c[None, :] for c in self.outputs[1:]))

    @cached_property
    def laws(self) -> Floats:
        """P(type of the output | type of the database)."""
        return type_laws(self.n, self.kernel.matrix)[self._grid]

    @cached_property
    def _turned(self) -> np.ndarray:
        """Where to look from the output to the database, because underflow spares that law.

        C(s) T[s, t] = C(t) T[t, s] for symmetric kernels, where C counts databases of a type.
        """
        if not isinstance(self.kernel, Symmetric):
            return np.zeros(self.laws.shape, dtype=bool)
        return (self.laws < _SMALL) & (self.laws < self.laws.T)

    @cached_property
    def log_laws(self) -> Floats:
        """Logarithms of the laws."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.laws)
        if self._turned.any():
            other = logs.T + self.log_output_sizes - self.log_sizes[:, None]
            logs = np.where(self._turned, other, logs)
        return np.asarray(logs)

    def mean(self, costs: Floats) -> Floats:
        """Return the mean of sum_i costs[x_i, y_i] >= 0 over the pairs of two types, weighted by W.

        One row after the other: the law of the others is that of n - 1 rows.
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
        return self.mean(np.where(self.kernel.matrix > 0.0, -self.kernel.log_near, 0.0))

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
        """Least ln(W[x, y] / prod max W[., y_i]) over the pairs of two types."""
        return self._extreme(np.minimum)

    def _extreme(self, join: np.ufunc) -> Floats:
        if isinstance(self.kernel, Symmetric):
            return np.asarray(-self.kernel.epsilon * distances(self.n, self.kernel.m, join))
        return extreme_sums(self.n, self.kernel.log_near, join)[self._grid]

    @cached_property
    def log_tops(self) -> Floats:
        """Log of prod max W[., y_i] for an output of each type, -inf where it never occurs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = self.outputs * np.log(self.kernel.tops)[:, None]
        return np.asarray(np.where(self.outputs > 0, logs, 0.0).sum(axis=0))

    @property
    def error(self) -> float:
        """Bound on the relative error of the tables."""
        return laws_error(self.n, self.kernel.matrix) + 8.0 * ULP

    def log_joint(self, log_weights: Floats) -> Floats:
        """Return ln of the sum of w(x) W[x, y] over pairs of types, from ln of w summed by type."""
        return np.asarray(log_weights[:, None] + self.log_laws)

    def log_lost(self, log_weights: Floats) -> Floats:
        """Bound ln of what underflow can have taken from the sums over databases."""
        small = self.laws < _SMALL
        if isinstance(self.kernel, Symmetric):
            small &= self.laws.T < _SMALL
        return self.log_sum(np.where(small, log_weights[:, None], -math.inf)) + math.log(_SMALL)

    @staticmethod
    def log_sum(terms: Floats) -> Floats:
        """Return ln of the sum over the first axis of what is given by logarithms."""
        top = terms.max(axis=0)
        base = np.where(top > -math.inf, top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(base + np.log(np.exp(terms - base).sum(axis=0)))


def log_sizes(types: Ints) -> Floats:
    """Log of the number of arrangements of the counts of each type."""
    from scipy.special import gammaln

    return np.asarray(gammaln(types.sum(axis=0) + 1.0) - gammaln(types + 1.0).sum(axis=0))


def distances(n: int, m: int, join: np.ufunc) -> Ints:
    """Return the least (of np.maximum) or largest (of np.minimum) distance between two types.

    Rows agree most, and least, where the counts allow it.
    """
    types = types_array(n, m)
    apart = np.full((types.shape[1], types.shape[1]), n)
    for count in types:
        if join is np.maximum:
            apart -= np.minimum(count[:, None], count)
        else:
            apart -= np.maximum(count[:, None] + count - n, 0)
    return apart
