"""Records whose order does not matter: distributions of counts of values (types).

This module has the weights of types, the prior, and rules for when types replace databases. It also
computes one output y of a channel under exchangeable bits from counts alone. Such an output turns a
channel that acts record by record into a polynomial in u, the product over records of r[0, y_i] +
r[1, y_i] u, where r is W of one record divided by its column maxima. Its coefficient c_k is the sum
of r[x, y], the product over records, over the x with k ones.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, log_error, log_law
from fastpriv._structure.counts import log_binomial, log_class_sizes
from fastpriv._structure.leakage import Column
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv._structure.type_pairs import TypePairs, pairs_fit
from fastpriv.errors import InvalidInput, described
from fastpriv.priors.base import Dense, Distribution, LineDistribution
from fastpriv.priors.unmixing import (
    clipped,
    least_epsilon,
    log_misfit,
    rounding,
    tilde_bound,
    vector_threshold,
)
from fastpriv.spaces import Space

__all__ = ["Exchangeable"]

#: Most databases that are listed if the probability of a type underflows.
_LISTED = 1 << 16
#: Most types that are listed.
_TYPES = 1 << 22
#: Up to this number databases are listed: measures then keep more digits near zero.
LISTED = 1 << 14


def from_counts(weights: Mapping[Any, float]) -> Floats:
    """Turn a mapping from count tuples to probabilities into the padded array."""
    keys = list(weights)
    if not keys or not all(isinstance(key, tuple) and len(key) >= 2 for key in keys):
        raise InvalidInput("count tuples must be (c_0, ..., c_(m-1)) with m >= 2 entries.")
    counts = [tuple(check.integer(c, "a count", 0) for c in key) for key in keys]
    n, m = sum(counts[0]), len(counts[0])
    if any(len(key) != m or sum(key) != n for key in counts):
        raise InvalidInput(f"all count tuples must have {m} entries that add up to {n}.")
    check.fits((n + 1) ** (m - 1), "the table of types", "use fewer records or values")
    array = np.zeros((n + 1,) * (m - 1))
    for key, weight in zip(counts, weights.values(), strict=True):
        array[key[1:]] = check.real(weight, "a weight", 0.0)
    return array


def without_one(weights: Any) -> list[Any]:
    """Return, for each value v, n times the weights of the other records if one record holds v.

    Entry t of part v is weights[t + e_v] (t_v + 1): n times the probability that a given record
    holds v and the others have type t.
    """
    axes, n = weights.ndim, weights.shape[0] - 1
    counts = np.indices((n,) * axes)
    inside = (slice(0, n),) * axes
    parts = [weights[inside] * np.maximum(n - sum(counts), 0)]
    for axis in range(axes):
        ahead = tuple(slice(1, None) if a == axis else slice(0, n) for a in range(axes))
        parts.append(weights[ahead] * (counts[axis] + 1))
    return parts


def group_parts(weights: Floats, k: int) -> Iterator[tuple[tuple[int, ...], Floats]]:
    """Yield every setting of k records with the probability of it and each type of the others.

    Settings are in C order. Settings of the same type share one array.
    """
    n, m = weights.shape[0] - 1, weights.ndim + 1
    parts: dict[tuple[int, ...], Floats] = {(): weights}
    for done in range(k):
        grown: dict[tuple[int, ...], Floats] = {}
        for values, part in parts.items():  # in order, so that one setting of each type is kept
            more = without_one(part)
            for value in range(values[-1] if values else 0, m):
                longer = (*values, value)
                grown[longer] = more[value] / (n - done)
        parts = grown
    for setting in itertools.product(range(m), repeat=k):
        yield setting, parts[tuple(sorted(setting))]


def inverse_matrix(kernel: Symmetric) -> Floats:
    """Return R^-1, computed so that its rows sum to one and its signs are right."""
    inverse = np.full((kernel.m, kernel.m), kernel.unmixing)
    np.fill_diagonal(inverse, 1.0 - (kernel.m - 1) * kernel.unmixing)
    return inverse


def substitute(weights: Floats, matrix: Floats) -> Floats:
    """Substitute u_s = sum_y matrix[s, y] z_y in the polynomial sum_t weights[t] u^t."""
    from fastpriv.kernels import multiply_linear, substitute_pair

    n, outputs = weights.shape[0] - 1, matrix.shape[1]
    shape = (n + 1,) * (outputs - 1)
    strides = (n + 1) ** np.arange(outputs - 1, dtype=np.int64)[::-1]
    size = (n + 1) ** (outputs - 1)

    def expand(part: Floats, degree: int) -> Floats:
        """Apply Horner's rule in the last variable, down to two."""
        top = part.ndim
        if top == 1:
            row = np.ascontiguousarray(part)
            return substitute_pair(row, matrix[0], matrix[1], degree, strides, size)
        poly = np.zeros(size)
        for count in range(degree, -1, -1):
            multiply_linear(poly, matrix[top], strides, poly)
            poly += expand(part[..., count], degree - count)
        return poly

    return expand(weights, n).reshape(shape)


class Exchangeable(LineDistribution):
    """A distribution under which databases with the same counts of values are equally likely.

    Parameters
    ----------
    weights : array or mapping
        For two values per record, ``weights[k]`` = P(k records hold value 1), k = 0 .. n. For m
        values, an array with m - 1 axes of length n + 1: ``weights[c_1, ..., c_(m-1)]`` = P(c_v
        records hold value v for v = 1 .. m-1), zero if the counts exceed n. Or a mapping from count
        tuples ``(c_0, ..., c_(m-1))`` to probabilities.

    Notes
    -----
    A type is stored as a monomial and the distribution as a homogeneous polynomial of degree n in m
    variables, sum_t w_t u^t. A record-by-record channel substitutes u_s = sum_y W[s, y] z_y. All
    terms are positive. Cost O(n^2) for m = 2 and O(n (n+1)^(m-1) types) in general.

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
        if np.any(self.type_weights[~self.inside] > 0):
            raise InvalidInput(
                "weights[c_1, ..., c_(m-1)] must be 0 where the counts add up to more than n = "
                f"{self.space.n}."
            )

    def _set(self, weights: Floats) -> None:
        n, m = weights.shape[0] - 1, weights.ndim + 1
        if len(set(weights.shape)) != 1 or n < 1:
            raise InvalidInput(
                f"weights must have n + 1 >= 2 entries along every axis; got shape {weights.shape}."
            )
        self.type_weights = weights
        self.space = Space.hamming(n, m)

    def definition(self) -> dict[str, Any]:
        return {"weights": self.type_weights}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> Exchangeable:
        return cls(given["weights"])

    @classmethod
    def of(
        cls,
        weights: Floats,
        log_weights: Floats | None = None,
        log_per_database: Floats | None = None,
        lines: Floats | None = None,
    ) -> Exchangeable:
        """Make a prior of checked weights and of quantities known more accurately than from them.

        These are the logs of the weights and of single databases, if some underflow, and the lines
        of ``conditional_lines``.
        """
        self = cls.__new__(cls)
        self._set(weights)
        for name, known in (
            ("log_weights", log_weights),
            ("log_per_database", log_per_database),
            ("_lines", lines),
        ):
            if known is not None:
                self.__dict__[name] = known  # in the place of the cached property
        return self

    @classmethod
    def beta_binomial(cls, n: int, a: float, b: float) -> Exchangeable:
        """Return n bits, independent given a common probability of 1 distributed as Beta(a, b)."""
        n = check.integer(n, "n", 1)
        check.fits(n, "the weights", "use fewer records")
        a, b = (check.real(v, name, least=0.0) for v, name in ((a, "a"), (b, "b")))
        if a == 0.0 or b == 0.0:
            raise InvalidInput("a and b must be above 0, as parameters of a beta distribution.")
        # Given k ones among the others, a record holds 1 with probability (k+a)/(n-1+a+b). The
        # lines are therefore known exactly, even if a weight underflows.
        k = np.arange(n, dtype=np.longdouble)
        lines = np.stack([n - 1.0 - k + b, k + a], axis=1).astype(np.float64)
        steps = np.log((n - k) / (k + 1.0)) + log_ratio(lines[:, 1], lines[:, 0])
        logs = np.concatenate([[0.0], np.cumsum(steps)]).astype(np.float64)
        weights = np.exp(logs - logs.max())
        if not np.isfinite(weights).all():
            raise InvalidInput(
                f"a = {described(a)} and b = {described(b)} are too extreme for double precision. "
                "Use values between 1e-300 and 1e300."
            )
        logs = logs - logs.max() - math.log(weights.sum())
        weights = weights / weights.sum()
        kept = weights > TINY
        own = np.where(kept, np.log(np.where(kept, weights, 1.0)), logs)
        return cls.of(weights, own, logs - log_class_sizes(n, 1), lines)

    @property
    def weights(self) -> Floats:
        """Probability of each type, as given to the constructor."""
        return check.shown(self.type_weights)

    @cached_property
    def counts(self) -> Ints:
        """Return how many records hold each value, [v, ...], for every entry of the weights.

        Outside the simplex of types the count of value 0 is negative.
        """
        others = np.indices(self.type_weights.shape)
        return np.concatenate([self.space.n - others.sum(axis=0)[None], others])

    @property
    def inside(self) -> np.ndarray:
        """Which entries of the weights are types."""
        return np.asarray(self.counts[0] >= 0)

    @cached_property
    def log_class_sizes(self) -> Floats:
        """Log of the number of databases of each type; 0 outside the simplex."""
        return log_class_sizes(self.space.n, self.type_weights.ndim)

    @cached_property
    def log_weights(self) -> Floats:
        """Log-probability of each type, finite even if the probability underflows."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.type_weights))

    @cached_property
    def log_per_database(self) -> Floats:
        return np.asarray(self.log_weights - self.log_class_sizes)

    @cached_property
    def possible_counts(self) -> Ints:
        """Numbers of ones that can occur, for two values per record."""
        return np.flatnonzero(self.log_weights > -math.inf)

    @cached_property
    def log_error(self) -> float:
        """Bound the error of the log-weights and of a sum with them, relative to the largest."""
        live = self.log_weights > -math.inf
        rare = (self.type_weights <= TINY) & live
        if rare.any():  # doubles do not hold the weights
            return log_error(self.log_weights, 0.0)
        return roundoff(8.0) * float(np.abs(self.log_weights[live]).max(initial=0.0))

    @property
    def type_strides(self) -> Ints:
        """Offset in the flat weights of one more record of value 1 .. m-1."""
        return (self.space.n + 1) ** np.arange(self.type_weights.ndim)[::-1]

    def pmf(self) -> Floats:
        """Return the probability of every database (N numbers)."""
        check.fits(self.space.size, f"the pmf of {self!r}", "ask for log_prob of chosen rows")
        steps = np.concatenate([[0], self.type_strides])
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
        """Return the log of the smallest positive probability of a database. Rounded down.

        The margin covers the log-factorials and up to n steps from one type to the next.
        """
        logs = self.log_per_database
        least, n = float(logs[logs > -math.inf].min()), self.space.n
        if least == 0.0:
            return 0.0  # one database has all the weight: no rounding
        return least * (1.0 + n * 2.0**-51) - n * math.log(n + 1.0) * 2.0**-50

    def conditional_lines(self, rows: Ints) -> Floats:
        """Return a record's distribution given the counts of all others, for every such counts."""
        return self._lines

    @cached_property
    def _lines(self) -> Floats:
        # Weights times small integers are exact in extended precision.
        parts = without_one(self.type_weights.astype(np.longdouble))
        simplex = sum(np.indices(parts[0].shape)) < self.space.n
        return np.stack([part[simplex] for part in parts], axis=-1)

    def alike_records(self) -> list[Ints]:
        return [np.arange(self.space.n)]

    def marginal_sum(self, rows: Ints) -> Floats:
        means = (self.counts * self.type_weights).reshape(len(self.counts), -1).sum(axis=1)
        return np.asarray(len(rows) / self.space.n * means)

    def through(self, kernels: RowKernels) -> Distribution:
        """Return the distribution of the output: exchangeable for a common kernel, else dense."""
        if len(kernels.distinct) > 1:
            return self.as_dense("the output law of different row kernels").through(kernels)
        if kernels.distinct[0].shape[1] == 1:
            return Dense.of(np.ones(1), Space.hamming(self.space.n, 1))
        return Exchangeable.of(substitute(self.type_weights, kernels.distinct[0].matrix))

    def epsilon_tilde(self) -> float:
        """Return the smallest epsilon at which the posterior response exists, by bisection.

        Each step is a substitution of cost O(n^2) for m = 2. If a type's probability underflows,
        the vector of all databases is used. If that vector is too long, an upper bound is returned.
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

    def by_type(self) -> Exchangeable:
        return self

    def type_pairs(self, kernels: RowKernels) -> TypePairs | None:
        """Return the tables of pairs of types; None for few databases or different kernels."""
        kernel = kernels.distinct[0]
        if self.space.size <= LISTED or len(kernels.distinct) > 1 or 1 in kernel.shape:
            return None
        return TypePairs(self.space.n, kernel) if pairs_fit(self.space.n, kernel) else None

    def column(self, kernels: RowKernels, y: Ints) -> Column:
        """Return the column of an output, from counts of ones for two values per record.

        Cost O(n) with at most two different factors. For more values the cost is O(types^2) for
        many databases with one kernel, and O(N) otherwise.
        """
        if any((kernel.column_maxima[y[rows]] == 0.0).any() for kernel, rows in kernels.groups()):
            return Column(-math.inf, -math.inf, 0.0)  # no database has this output
        if self.type_weights.ndim == 1:
            form = OutputForm(kernels, y)
            mass = form.log_mass(self.log_weights)
            if mass is not None:
                best = form.extreme(self.possible_counts)
                return Column(best, mass, form.error + self.log_error)
        pairs = self.type_pairs(kernels) if self.type_weights.ndim > 1 else None
        return super().column(kernels, y) if pairs is None else self._type_column(pairs, y)

    def _type_column(self, pairs: TypePairs, y: Ints) -> Column:
        """Return the column of one output from the tables of pairs of types. Cost O(types^2)."""
        counts = np.bincount(y, minlength=len(pairs.outputs))
        at = int(np.flatnonzero((pairs.outputs == counts[:, None]).all(axis=0))[0])
        log_prior = self.log_weights[tuple(pairs.types[1:])]
        best = float(pairs.nearest[log_prior > -math.inf, at].max())
        scale = float(pairs.log_output_sizes[at] + pairs.log_tops[at])
        mass = float(pairs.log_sum(pairs.log_joint(log_prior)[:, [at]])[0]) - scale
        error = 4.0 * pairs.error + self.log_error + roundoff(64.0) * (1.0 - best + abs(scale))
        return Column(best, mass, error + roundoff(64.0) * abs(mass) if mass > -math.inf else error)

    def log_marginal(self, i: int) -> tuple[Floats, float]:
        """Return the log-marginal, from the share of records that hold each value, by type."""
        shares = np.maximum(self.counts / self.space.n, 0.0).reshape(len(self.counts), -1)
        return log_law(shares.T, self.log_weights.reshape(-1)), self.log_error

    def unmixed(self, epsilon: float) -> Distribution:
        """Return the outputs of the posterior response, by a substitution in the polynomial."""
        if epsilon == 0.0:
            return self
        weights, kernel = self.type_weights, Symmetric(self.type_weights.ndim + 1, epsilon)
        inverse = substitute(weights, inverse_matrix(kernel))
        law = clipped(inverse, lambda q: substitute(q, kernel.matrix), weights, epsilon)
        return Exchangeable.of(law)

    def surely_unmixed(self, epsilon: float) -> bool:
        if epsilon == 0.0:
            return False
        weights, kernel = self.type_weights, Symmetric(self.type_weights.ndim + 1, epsilon)
        inverse = inverse_matrix(kernel)
        error = rounding(self.space.n) * substitute(weights, np.abs(inverse))
        return bool((substitute(weights, inverse) >= error).all())

    def misfit(self, other: Distribution) -> float:
        assert isinstance(other, Exchangeable)
        return log_misfit(self.type_weights, other.type_weights)

    def draw(self, k: int, rng: np.random.Generator) -> Ints:
        flat = rng.choice(self.type_weights.size, size=k, p=self.type_weights.reshape(-1))
        counts = self.counts.reshape(len(self.counts), -1)[:, flat]
        values = np.arange(len(counts))
        rows = (
            np.stack([np.repeat(values, c) for c in counts.T]) if k else np.empty((0, self.space.n))
        )
        return np.asarray(rng.permuted(rows.astype(np.int64), axis=1))


def multinomial(law: Floats, n: int) -> Exchangeable | None:
    """Return n independent records of one distribution; None if types are too many to list.

    Types whose probability underflows keep their logs.
    """
    m = len(law)
    if m == 1 or (n + 1) ** (m - 1) > _TYPES:
        return None
    types = Exchangeable.of(np.zeros((n + 1,) * (m - 1)))
    counts = types.counts
    with np.errstate(divide="ignore"):
        chances = np.log(law / law.sum())
    logs = np.zeros(types.type_weights.shape)
    for count, chance in zip(counts, chances.tolist(), strict=True):
        logs += np.where(count > 0, np.where(count > 0, count, 1) * chance, 0.0)
    logs = np.where(counts[0] >= 0, logs, -math.inf)
    weights = np.exp(logs + types.log_class_sizes)
    lines = np.tile(law, (math.comb(n + m - 2, m - 1), 1))
    return Exchangeable.of(weights / weights.sum(), logs + types.log_class_sizes, logs, lines)


class OutputForm:
    """The polynomial of one output: how many records have each factor a + b u."""

    def __init__(self, kernels: RowKernels, y: Ints) -> None:
        logs, counts = [], []
        for kernel, rows in kernels.groups():
            rows_of = np.bincount(y[rows], minlength=kernel.shape[1])
            for value in np.flatnonzero(rows_of):
                logs.append(kernel.log_relative[:, value])
                counts.append(rows_of[value])
        self.logs, self.counts = np.array(logs), np.array(counts)
        self.n = int(self.counts.sum())

    @property
    def error(self) -> float:
        """Bound the rounding error of the logarithms below."""
        size = np.where(np.isinf(self.logs), 0.0, np.abs(self.logs)).max(axis=1)
        return roundoff(24 * self.n + 64) + roundoff(16.0) * float(self.counts @ size)

    @property
    def possible(self) -> bool:
        """Whether any database can give the output."""
        return bool(np.all(self.logs.max(axis=1) > -math.inf))

    def _split(self) -> tuple[int, int, Floats, Ints]:
        """Return records that must hold 1, records that must hold 0, and the others' ln near.

        A record that must hold its value has near 1 there.
        """
        ones, zeros = np.isinf(self.logs[:, 0]), np.isinf(self.logs[:, 1])
        free = ~(ones | zeros)
        forced, barred = int(self.counts[ones].sum()), int(self.counts[zeros].sum())
        return forced, barred, self.logs[free], self.counts[free]

    def extreme(self, allowed: Ints, sign: float = 1.0) -> float:
        """Return the largest (sign 1) or smallest (sign -1) ln r[x, y] over allowed counts of ones.

        The records that gain most by a one get theirs first. The result is piecewise linear in the
        number of ones.
        """
        if sign < 0 and np.isinf(self.logs).any():
            return self.smallest(allowed)
        forced, barred, logs, counts = self._split()
        ones = allowed[(allowed >= forced) & (allowed <= self.n - barred)] - forced
        if not len(ones):
            return -math.inf
        gains = logs[:, 1] - logs[:, 0]
        order = np.argsort(-sign * gains)
        turns = np.concatenate([[0], np.cumsum(counts[order])])
        heights = np.concatenate([[0.0], np.cumsum(counts[order] * gains[order])])
        signed = sign * np.interp(ones, turns, heights)
        return float(counts @ logs[:, 0]) + sign * float(signed.max())

    def smallest(self, allowed: Ints) -> float:
        """Return the smallest ln r[x, y] if some factor vanishes: -inf if an allowed x meets it."""
        ones, zeros = np.isinf(self.logs[:, 0]), np.isinf(self.logs[:, 1])
        need, bar = int(self.counts[ones].sum()), int(self.counts[zeros].sum())
        # Every x with fewer than n ones can leave a forced record at 0. Every x with a one can
        # break a record that must be 0. Only the all-ones and all-zeros databases avoid both.
        escapes = (allowed == self.n) if not bar else np.zeros(len(allowed), bool)
        if not need:
            escapes |= allowed == 0
        if not escapes.all():
            return -math.inf
        ends = [self.counts @ self.logs[:, 1 if k else 0] for k in allowed.tolist()]
        return float(min(ends))

    def log_mass(self, log_weights: Floats) -> float | None:
        """Return ln sum_k e^log_weights[k] c_k / C(n, k); None for more than two mixed factors.

        Cost O(n).
        """
        from fastpriv.kernels import binomial_product

        if not self.possible:
            return -math.inf
        forced, barred, logs, counts = self._split()
        if len(logs) > 2:
            return None
        forms: list[tuple[int, float, float]] = [
            (int(c), math.exp(zero), math.exp(one))
            for c, (zero, one) in zip(counts, logs.tolist(), strict=True)
        ]
        forms += [(0, 1.0, 1.0)] * (2 - len(forms))
        if min(min(form[1:]) for form in forms) == 0.0:
            return None
        first = float(counts @ logs[:, 0]) - log_binomial(self.n, forced)
        last = float(counts @ logs[:, 1]) - log_binomial(self.n, barred)
        terms = binomial_product(*forms[0], *forms[1], self.n, forced, first, last)
        terms = terms + log_weights[forced : self.n - barred + 1]
        top = float(terms.max())
        if top == -math.inf:
            return -math.inf
        return top + math.log(math.fsum(np.exp(terms - top)))
