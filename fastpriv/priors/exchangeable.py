"""Rows whose order does not matter: the law is one of how many rows hold each value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, log_error
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv.errors import InvalidInput, described
from fastpriv.priors.base import (
    Distribution,
)
from fastpriv.priors.product import Uniform
from fastpriv.priors.rare import log_binomials
from fastpriv.priors.structured import LineDistribution
from fastpriv.priors.type_weights import (
    from_counts,
    inverse_matrix,
    substitute,
    without_one,
)
from fastpriv.priors.unmixing import least_epsilon, rounding, tilde_bound, vector_threshold
from fastpriv.spaces import Space

__all__ = ["Exchangeable"]


#: Most bits whose binomials are formed exactly.
_EXACT = 4096
#: Most databases that are listed where a type is too rare for doubles.
_LISTED = 1 << 16


class Exchangeable(LineDistribution):
    """A law under which databases with the same counts of values are equally likely.

    Parameters
    ----------
    weights : array or mapping
        For two values per row, ``weights[k]`` = P(k rows hold value 1), k = 0 .. n. For m values,
        an array with m - 1 axes of length n + 1, ``weights[c_1, ..., c_(m-1)]`` = P(c_v rows hold
        value v for v = 1 .. m-1), zero where the counts exceed n; or a mapping from count tuples
        ``(c_0, ..., c_(m-1))`` to probabilities.

    Notes
    -----
    A type is stored as a monomial and the law as a homogeneous polynomial of degree n in m
    variables, sum_t w_t u^t. A row-by-row channel substitutes u_s = sum_y W[s, y] z_y, which
    costs O(n^2) for m = 2 and O(n (n+1)^(m-1) types) in general, all terms positive.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Exchangeable.beta_binomial(20, 0.5, 0.8)
    >>> round(prior.epsilon_x(), 6), round(prior.epsilon_tilde(), 6)
    (3.678829, 3.704023)
    """

    def __init__(self, weights: ArrayLike | Mapping[tuple[int, ...], float]) -> None:
        if isinstance(weights, Mapping):
            weights = from_counts(weights)
        table = check.array(weights, "weights")
        self._set(check.law(table, "weights", max(table.ndim, 1)))
        if np.any(self.type_weights[self.zero_counts < 0] > 0):
            raise InvalidInput(
                "weights[c_1, ..., c_(m-1)] must be 0 where the counts add up to more than n = "
                f"{self.space.n}"
            )

    def _set(self, weights: Floats) -> None:
        n, m = weights.shape[0] - 1, weights.ndim + 1
        if len(set(weights.shape)) != 1 or n < 1:
            raise InvalidInput(
                f"weights must have n + 1 >= 2 entries along every axis, got shape {weights.shape}"
            )
        self.type_weights = weights
        self.space = Space.hamming(n, m)

    def definition(self) -> dict[str, Any]:
        return {"weights": self.type_weights}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> Exchangeable:
        return cls(given["weights"])

    @classmethod
    def of(cls, weights: Floats) -> Exchangeable:
        self = cls.__new__(cls)
        self._set(weights)
        return self

    @classmethod
    def beta_binomial(cls, n: int, a: float, b: float) -> Exchangeable:
        """Return n bits, independent given a common chance of 1 that is Beta(a, b)."""
        n = check.integer(n, "n", 1)
        check.fits(n, "the weights", "use fewer rows")
        a, b = (check.real(v, name, least=0.0) for v, name in ((a, "a"), (b, "b")))
        if a == 0.0 or b == 0.0:
            raise InvalidInput("a and b must be positive")
        # A row holds 1 given k ones among the others with chance (k+a)/(n-1+a+b): the lines are
        # known exactly, also where a weight is too small for a double.
        k = np.arange(n, dtype=np.longdouble)
        lines = np.stack([n - 1.0 - k + b, k + a], axis=1).astype(np.float64)
        steps = np.log((n - k) / (k + 1.0)) + log_ratio(lines[:, 1], lines[:, 0])
        logs = np.concatenate([[0.0], np.cumsum(steps)]).astype(np.float64)
        weights = np.exp(logs - logs.max())
        if not np.isfinite(weights).all():
            raise InvalidInput(
                f"a = {described(a)} and b = {described(b)} are too extreme for double precision"
            )
        self = cls.of(weights / weights.sum())
        self.__dict__["line_table"] = lines
        logs = logs - logs.max() - math.log(weights.sum())
        kept = self.type_weights > TINY
        self.__dict__["log_weights"] = np.where(
            kept, np.log(np.where(kept, self.type_weights, 1.0)), logs
        )
        self.__dict__["log_per_database"] = logs - self.log_class_sizes
        return self

    @property
    def weights(self) -> Floats:
        """Probability of each type, as given to the constructor."""
        return check.shown(self.type_weights)

    @cached_property
    def zero_counts(self) -> Ints:
        """Count of value 0 for every entry of the weights; negative outside the simplex."""
        return np.asarray(self.space.n - sum(np.indices(self.type_weights.shape)))

    @cached_property
    def log_class_sizes(self) -> Floats:
        """Log of the number of databases of each type, from exact binomials; 0 outside.

        Of so many bits that their binomials are long numbers, by sums of logarithms.
        """
        n, axes = self.space.n, self.type_weights.ndim
        if axes == 1 and n > _EXACT:
            return log_binomials(n)
        tops = [n] if axes == 1 else range(n + 1)
        table = np.zeros((n + 1, n + 1) if axes > 1 else (1, n + 1))
        for top in tops:
            ways = 1
            for k in range(top + 1):
                table[top if axes > 1 else 0, k] = math.log(ways)
                ways = ways * (top - k) // (k + 1)
        if axes == 1:
            return np.asarray(table[0])
        left = np.full(self.type_weights.shape, n)
        logs = np.zeros(self.type_weights.shape)
        for counts in np.indices(self.type_weights.shape):
            logs += table[np.maximum(left, 0), counts]
            left = left - counts
        return logs

    @cached_property
    def log_weights(self) -> Floats:
        """Log-probability of each type, finite also where a type is too rare for a double."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.type_weights))

    @cached_property
    def log_per_database(self) -> Floats:
        return np.asarray(self.log_weights - self.log_class_sizes)

    @cached_property
    def possible(self) -> Ints:
        """Numbers of ones that can occur, for two values per row."""
        return np.flatnonzero(self.log_weights > -math.inf)

    @cached_property
    def log_error(self) -> float:
        """Bound the error of the log-weights, and of a sum with them: units of the largest."""
        live = self.log_weights > -math.inf
        rare = (self.type_weights <= TINY) & live
        if rare.any():  # doubles do not hold the weights
            return log_error(self.log_weights, 0.0)
        return 8.0 * ULP * float(np.abs(self.log_weights[live]).max(initial=0.0))

    def strides(self, m: int) -> Ints:
        return (self.space.n + 1) ** np.arange(m - 1)[::-1]

    def pmf(self) -> Floats:
        """Return the probability of every database (N numbers)."""
        check.fits(self.space.size, f"the pmf of {self!r}", "ask for log_prob of chosen rows")
        m = self.type_weights.ndim + 1
        steps = np.concatenate([[0], self.strides(m)])
        place = np.zeros(1, dtype=np.int64)
        for _ in range(self.space.n):
            place = (place[:, None] + steps).reshape(-1)
        per_database = self.type_weights / np.rint(np.exp(self.log_class_sizes))
        return np.asarray(per_database.reshape(-1)[place])

    def log_probabilities(self, rows: Ints) -> Floats:
        counts = [(rows == v).sum(axis=1) for v in range(1, self.type_weights.ndim + 1)]
        return np.asarray(self.log_per_database[tuple(counts)])

    def entropy(self) -> float:
        """Return H(X) = H(type) + E ln(class size). Cost O(types)."""
        from fastpriv.kernels import entropy

        spread = (self.type_weights * self.log_class_sizes).reshape(-1)
        return entropy(self.type_weights.reshape(-1)) + math.fsum(spread)

    def min_entropy(self) -> float:
        """Return -ln max p(x). Cost O(types)."""
        return -float(self.log_per_database.max())

    def log_smallest(self) -> float:
        """Log of the least positive probability, over types. Rounded down.

        By some ulp of the log-factorials and of up to n steps from one type to the next.
        """
        logs = self.log_per_database
        least, n = float(logs[logs > -math.inf].min()), self.space.n
        if least == 0.0:
            return 0.0  # one database has all the weight, which no factorial has touched
        return least * (1.0 + n * 2.0**-51) - n * math.log(n + 1.0) * 2.0**-50

    def conditional_lines(self, rows: Ints) -> Floats:
        """A row's law given the counts of all others, for every such counts."""
        return self.line_table

    @cached_property
    def line_table(self) -> Floats:
        # Weights times small integers are exact in extended precision.
        parts = without_one(self.type_weights.astype(np.longdouble))
        simplex = sum(np.indices(parts[0].shape)) < self.space.n
        return np.stack([part[simplex] for part in parts], axis=-1)

    def alike_records(self) -> list[Ints]:
        return [np.arange(self.space.n)]

    def marginal_sum(self, rows: Ints) -> Floats:
        counts = np.stack([self.zero_counts, *np.indices(self.type_weights.shape)])
        means = (counts * self.type_weights).reshape(len(counts), -1).sum(axis=1)
        return np.asarray(len(rows) / self.space.n * means)

    def through(self, kernels: RowKernels) -> Distribution:
        """Law of the output: exchangeable when all rows share a kernel, dense otherwise."""
        if len(kernels.distinct) > 1:
            return self.as_dense("the output law of different row kernels").through(kernels)
        if kernels.distinct[0].shape[1] == 1:
            return Uniform(self.space.n, 1)
        return Exchangeable.of(substitute(self.type_weights, kernels.distinct[0].matrix))

    def epsilon_tilde(self) -> float:
        """Return the least epsilon for which E_i exists, by bisection over types.

        About a hundred substitutions of cost O(n^2) for m = 2. With a type too rare for doubles it
        is found through the vector of all databases, or if that is long bounded from above.
        """
        n, m = self.space.n, self.type_weights.ndim + 1
        kept = self.log_weights[self.log_weights > -math.inf]
        if kept.min() < math.log(TINY):
            if self.space.size <= _LISTED:
                return vector_threshold(self, self.probabilities)
            return max(self.epsilon_hat(), tilde_bound(self.space.sizes, self.epsilon_x()))

        def fails(e: float) -> bool:
            inverse = inverse_matrix(Symmetric(m, e))
            with np.errstate(over="ignore", invalid="ignore"):
                value = substitute(self.type_weights, inverse)
                error = rounding(n) * substitute(self.type_weights, np.abs(inverse))
                return bool(np.any(value < -error))

        return least_epsilon(self.epsilon_x(), self.epsilon_hat(), n, m, fails)

    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        flat = rng.choice(self.type_weights.size, size=k, p=self.type_weights.reshape(-1))
        counts = np.stack(
            [self.zero_counts.reshape(-1)[flat], *np.unravel_index(flat, self.type_weights.shape)]
        )
        values = np.arange(len(counts))
        rows = (
            np.stack([np.repeat(values, c) for c in counts.T]) if k else np.empty((0, self.space.n))
        )
        return np.asarray(rng.permuted(rows.astype(np.int64), axis=1))
