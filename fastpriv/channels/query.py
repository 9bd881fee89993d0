"""Channels that see a database only through a query."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio, log_spread, round_up
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import matrix_capacity
from fastpriv._matrices.contraction import matrix_contraction
from fastpriv._matrices.leakage import (
    TINY,
    Leakages,
    extremes,
    log_error,
    matrix_gain,
    matrix_leakages,
    matrix_log_output,
    surprise,
)
from fastpriv._matrices.pairs import Pairs, joint_laws
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, LawThresholds, ManyThresholds
from fastpriv._structure.rows import RowKernel, distinct
from fastpriv.channels.base import NO_HIGH, NO_LOW, AbstractChannel, support_range
from fastpriv.channels.dense import matrix_information
from fastpriv.channels.queries.query import Listed, Query
from fastpriv.channels.queries.sums import Histogram, Sum, corner_error, corner_laws
from fastpriv.channels.witnesses import furthest, widest
from fastpriv.errors import InvalidInput, short
from fastpriv.priors import Dense, Distribution
from fastpriv.results import Bracket, Witness
from fastpriv.spaces import Space

__all__ = ["QueryChannel"]

#: Entries of the pairs of answers that are compared in one go.
_BLOCK = 1 << 20
#: Most products in the chances of all outputs at all corners of a set of priors.
_CORNERS = 1 << 36


class QueryChannel(AbstractChannel):
    """A mechanism that sees a database only through a query: p(.|x) = kernel[values[x]].

    Parameters
    ----------
    values : integer array of length N
        The query's answer for every database, in C order: a row of ``kernel``.
    kernel : 2-D array
        ``kernel[v, y]`` = p(y | answer v).
    space : Space or sequence of int
        The databases.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> space = fp.Space.hamming(2, 2)
    >>> count = space.rows(np.arange(space.size)).sum(axis=1)  # how many of two bits are set
    >>> kernel = [[0.8, 0.2], [0.5, 0.5], [0.2, 0.8]]
    >>> round(fp.dp_level(fp.QueryChannel(count, kernel, space)), 6)  # ln(0.5 / 0.2)
    0.916291
    """

    def __init__(self, values: ArrayLike, kernel: ArrayLike, space: Space | ArrayLike) -> None:
        laws = check.stochastic(kernel, "kernel")
        space = space if isinstance(space, Space) else Space(space)
        given = check.array(values, "values")
        if given.shape != (space.size,) or given.dtype.kind not in "iub":
            raise InvalidInput(
                f"values must hold one integer for each of the {short(space.size)} databases, "
                f"got shape {given.shape} of {given.dtype}"
            )
        if given.min() < 0 or given.max() >= len(laws):
            raise InvalidInput(f"values must be rows of the kernel, 0 .. {len(laws) - 1}")
        self._set(Listed(given.astype(np.int64), space, len(laws)), laws)

    def _set(self, query: Query, laws: Floats) -> None:
        self._query, self._kernel = query, RowKernel(laws)
        self.space, self.output_space = query.space, Space([laws.shape[1]])

    @classmethod
    def _structured(cls, query: Query, kernel: ArrayLike, rows: str) -> QueryChannel:
        self = cls.__new__(cls)
        laws = check.stochastic(kernel, "kernel")
        if len(laws) != query.answers:
            raise InvalidInput(
                f"kernel must have a row for each of {query.answers:,} {rows}, got {len(laws):,}"
            )
        self._set(query, laws)
        return self

    @classmethod
    def count(cls, n: int, kernel: ArrayLike) -> QueryChannel:
        """Return a mechanism that sees how many of n bits are set: p(.|x) = kernel[sum of x].

        Parameters
        ----------
        n : int
            Number of bits.
        kernel : array of shape (n + 1, K)
            ``kernel[c, y]`` = p(y | c bits are set).

        Examples
        --------
        >>> import fastpriv as fp
        >>> import numpy as np
        >>> n = 10_000
        >>> share = np.linspace(0.1, 0.9, n + 1)  # of bits set, with noise
        >>> channel = fp.QueryChannel.count(n, np.stack([1 - share, share], axis=1))
        >>> fp.individual_capacity(channel)
        IndividualCapacity(0.3680642071, 0.3680642072)
        """
        n = check.integer(n, "n", 1)
        check.fits(n, "a database", "use fewer rows")
        return cls._structured(Sum([np.arange(2)], np.zeros(n, np.int64)), kernel, "counts")

    @classmethod
    def sum(cls, scores: Sequence[ArrayLike], kernel: ArrayLike) -> QueryChannel:
        """Return a mechanism that sees the sum of a score per row, without listing databases.

        Parameters
        ----------
        scores : sequence of 1-D integer arrays
            ``scores[i][v]`` >= 0 is what row i adds when it holds value v. Rows with equal
            scores (``[scores] * n``) are looked at once.
        kernel : 2-D array
            ``kernel[s, y]`` = p(y | sum s), for s = 0 .. the largest sum.

        Examples
        --------
        >>> import fastpriv as fp
        >>> import numpy as np
        >>> stars = [0, 1, 2]  # ratings of 50 people, and whether their total seems high
        >>> high = np.linspace(0.2, 0.8, 101)
        >>> channel = fp.QueryChannel.sum([stars] * 50, np.stack([1 - high, high], axis=1))
        >>> fp.individual_capacity(channel)
        IndividualCapacity(0.192744757, 0.1927447571)
        """
        found, which = distinct(scores, _load, "scores")
        return cls._structured(Sum([s.astype(np.int64) for s in found], which), kernel, "sums")

    @classmethod
    def histogram(cls, n: int, m: int, kernel: ArrayLike) -> QueryChannel:
        """Return a mechanism that sees how many of n rows hold each of m values.

        Parameters
        ----------
        n, m : int
            Number of rows, and of values of each.
        kernel : 2-D array
            One row for each of the C(n + m - 1, m - 1) histograms, in C order of the counts
            (c_1, ..., c_(m-1)) of values 1 .. m-1, as in the weights of :class:`Exchangeable`:
            for m = 2 in order of the number of ones, for m = 3 and n = 2 in the order
            (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0).

        Examples
        --------
        >>> import fastpriv as fp
        >>> import numpy as np
        >>> channel = fp.QueryChannel.histogram(2, 3, np.eye(6))
        >>> channel.sample([[0, 1], [1, 0], [2, 2]], rng=0)
        array([3, 3, 2])
        """
        n, m = check.integer(n, "n", 1), check.integer(m, "m", 1)
        return cls._structured(Histogram(n, m), kernel, "histograms")

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array."""
        self._check_matrix()
        return np.asarray(self._kernel.matrix[self._query.listed()])

    def _output(self, prior: Distribution) -> Dense:
        return Dense._trusted(self._query.law(prior) @ self._kernel.matrix, self.output_space)

    def _worst(self, prior: Distribution) -> tuple[float, int, int]:
        """Largest ln kernel ratio + ln p(x)/p(x') over neighbours x, x'; and the two.

        Cost O(N n m).
        """
        pmf, logs, values = prior._vector(), prior._logs(), self._query.listed()
        alive = pmf > 0 if logs is None else logs > -math.inf
        worst = 0.0, 0, 0
        for x, other in self.space._steps():
            x, other = x[alive], other[alive]
            ratios = self._kernel.log_ratios[values[x], values[other]]
            odds = log_ratio(pmf[x], pmf[other]) if logs is None else logs[x] - logs[other]
            levels = ratios + odds
            at = int(levels.argmax())
            if levels[at] > worst[0]:
                worst = float(levels[at]), int(x[at]), int(other[at])
        return worst

    def neighbour_laws(self) -> Iterator[Pairs]:
        """Yield the kernel and the pairs of answers that neighbours have, each pair once."""
        pairs = self._query.neighbours()
        yield self._kernel.matrix, pairs if len(pairs) else np.zeros((1, 2), dtype=np.int64)

    def attribute_range(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Least ``low`` and largest ``high`` behind each output: per answer, then per output."""
        answers = self._kernel.shape[0]
        least = np.full(answers, NO_LOW, dtype=np.int64)
        most = np.full(answers, NO_HIGH, dtype=np.int64)
        values = self._query.listed()
        np.minimum.at(least, values, low)
        np.maximum.at(most, values, high)
        return support_range(self._kernel.matrix > 0.0, least, most)

    def least_support(self) -> int:
        """Least number of databases whose answers can cause an output, counted up to 2^31."""
        sizes, matrix = self._query.class_sizes(), self._kernel.matrix
        counts = np.zeros(matrix.shape[1], dtype=np.int64)
        for size, row in zip(sizes, matrix, strict=True):
            counts += size * (row > 0.0)
        return int(counts[counts > 0].min())

    def step_witness(self, prior: Distribution | None = None) -> Witness:
        """Find what attains the neighbour level among answers, the posterior level among databases.

        Cost as for these levels, TooLarge beyond some ten million entries.
        """
        if prior is not None:
            _, x, other = self._worst(prior)
            first, second = self.space.rows(np.array([x, other]))
            v, w = self._query.of(np.stack([first, second])).tolist()
        else:
            v, w = widest(self._kernel.matrix, self._query.neighbours())
            first, second = self._query.step(v, w)
        return Witness(np.array([self._kernel.telling(v, w)]), first, second)

    def extreme_witness(self) -> Witness:
        """Find what attains the extreme level among answers."""
        seen = self._query.seen()
        v, w, y = furthest(self._seen())
        first, second = (self._query.database((), (), int(seen[a])) for a in (v, w))
        return Witness(np.array([y]), first, second)

    def leakage_witness(self, prior: Distribution) -> Witness:
        """Find the output that leaks most, and a database with the likeliest answer behind it."""
        y = int(self.leakages(prior).above.argmax())
        column = np.where(self._query.law(prior) > 0, self._kernel.matrix[:, y], -1.0)
        x = self._query.database((), (), int(column.argmax()))
        if prior.log_prob(x) == -math.inf:
            chances = np.where(prior._vector() > 0, column[self._query.listed()], -1.0)
            x = self.space.rows(int(chances.argmax()))
        return Witness(np.array([y]), x)

    @property
    def searched_entries(self) -> int:
        """Entries of the kernel."""
        return int(self._kernel.matrix.size)

    def neighbour_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over neighbours. Cost O(K) for each pair of answers."""
        return self._level(self._kernel.matrix)

    def _level(self, matrix: Floats) -> float:
        pairs = self._query.neighbours()
        pairs = pairs[pairs[:, 0] < pairs[:, 1]]
        step, axes = max(1, _BLOCK // matrix.shape[1]), np.array([[1, 2]])
        worst = 0.0
        for start in range(0, len(pairs), step):
            lines = matrix[pairs[start : start + step].reshape(-1)]
            spread = partial(_spread, lines, axes)
            worst = max(worst, log_spread(spread))
        return round_up(worst)

    def posterior_level(self, prior: Distribution) -> float:
        """Largest ln p(x|y)/p(x'|y) over neighbours. Cost O(N n m)."""
        logs = prior._logs()
        error = 0.0 if logs is None else log_error(logs, 0.0)
        return round_up(self._worst(prior)[0]) + error

    def information(self, prior: Distribution) -> float:
        """Return I(X; Y), which is I(answer; Y)."""
        return matrix_information(self._kernel.matrix, self._query.law(prior))

    def expected_distance(self, prior: Distribution) -> float:
        """Raise: a query's outputs are not databases."""
        raise InvalidInput("the outputs of a query are not databases: give metric[x, y]")

    def leakages(self, prior: Distribution) -> Leakages:
        """How far every output moves the odds of the answers, which is that of the databases."""
        return self._leakages(self._kernel.matrix, prior)

    def _leakages(self, matrix: Floats, prior: Distribution) -> Leakages:
        query = self._query
        return matrix_leakages(matrix, query.law(prior), query.law_error, query.log_law(prior))

    def log_output(self, prior: Distribution) -> Floats:
        """Log of the law of the output, -inf only where impossible."""
        query = self._query
        return matrix_log_output(self._kernel.matrix, query.law(prior), query.log_law(prior))

    def leakage_at(self, prior: Distribution, y: Ints) -> float:
        """Pointwise maximal leakage of one output, from its column."""
        column = np.ascontiguousarray(self._kernel.matrix[:, y])
        return float(self._leakages(column, prior).above[0])

    @property
    def _law_error(self) -> float:
        """Bound the relative error of an output law, added up from databases or from answers."""
        if not self._query.law_error:
            return super()._law_error
        return self._query.law_error + (2 * self._query.answers + 16) * ULP

    def entropy_gain(self, prior: Distribution) -> float:
        """Largest H(X) - H(X | Y = y). Cost O(N + answers K)."""
        own, values = surprise(prior._vector()), self._query.listed()
        inner = np.bincount(values, own, self._kernel.shape[0]).astype(np.float64)
        return matrix_gain(self._kernel.matrix, self._query.law(prior), inner)

    def _row_kinds(self) -> Ints:
        return self._query.kinds()

    def bernoulli_level(self, c: float, i: int | None) -> float:
        """Largest leakage under independent bits, each c to 1 - c, of a count by its corners.

        Only the number of bits with the larger chance matters. Cost O(n^2 K).
        """
        if not self._query.counts_bits():
            return super().bernoulli_level(c, i)
        n, matrix = self.space.n, self._kernel.matrix
        matrix = np.ascontiguousarray(matrix[:, matrix.max(axis=0) > 0.0])
        check.fits(n * matrix.size, "the work for all corners", "use fewer rows", _CORNERS)
        if i is None:
            least = np.full(matrix.shape[1], np.inf)
            for laws in corner_laws(n, c):
                np.minimum(least, (laws @ matrix).min(axis=0), out=least)
            return round_up(float(log_ratio(matrix.max(axis=0), least).max())) + corner_error(n, c)
        worst = 1.0
        for laws in corner_laws(n - 1, c):
            zero, one = laws @ matrix[:-1], laws @ matrix[1:]
            most, least = np.maximum(zero, one), np.minimum(zero, one)
            # Of outputs too rare to be told apart no more is known than the chance of the bit.
            mean = c * most + (1.0 - c) * least
            rare = most < TINY
            ratios = np.where(rare, 1.0 / c, most / np.where(rare, 1.0, mean))
            worst = max(worst, float(ratios.max()))
        return math.log(worst) + corner_error(n, c)

    def _seen(self) -> Floats:
        """Laws of the answers that occur; the kernel itself where all do."""
        seen, laws = self._query.seen(), self._kernel.matrix
        return laws if len(seen) == len(laws) else laws[seen]

    def capacity(self, gap: float) -> Bracket:
        """Capacity of the answers that occur, each counted once."""
        return matrix_capacity(self._seen(), gap)[0]

    def capacity_prior(self, gap: float) -> Distribution:
        """Return a prior with the best law of answers."""
        law = np.zeros(self._kernel.shape[0])
        law[self._query.seen()] = matrix_capacity(self._seen(), gap)[1]
        return self._query.prior(law)

    def as_query(self) -> tuple[Query, Floats]:
        """Return the query and the kernel."""
        return self._query, self._kernel.matrix

    def law_factors(self) -> list[tuple[Floats, int]]:
        """Return the laws of the answers that occur."""
        return [(self._seen(), 1)]

    def joined(self, other: AbstractChannel) -> AbstractChannel:
        """Return both outputs: one kernel for one query, pairs of answers for two queries."""
        if not isinstance(other, QueryChannel):
            return super().joined(other)
        query, first, second = self._query, self._kernel.matrix, other._kernel.matrix
        if not query.same(other._query):
            codes = query.listed() * len(second) + other._query.listed()
            pairs, values = np.unique(codes, return_inverse=True)
            query = Listed(values.astype(np.int64), self.space, len(pairs))
            first, second = first[pairs // len(second)], second[pairs % len(second)]
        return QueryChannel._structured(query, joint_laws(first, second), "answers")

    def correlation(self, prior: Distribution) -> Bracket:
        """Maximal correlation of the answer and the output."""
        return self._kernel.correlation(self._query.law(prior))

    def contraction(self) -> Bracket:
        """Contraction coefficient of the answers that occur."""
        return matrix_contraction(self._seen())

    def sdpi(self, prior: Distribution) -> Bracket:
        """Strong data-processing constant of the answer and the output."""
        return self._kernel.sdpi(self._query.law(prior))

    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""
        return extremes(self._seen())[0]

    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""
        return extremes(self._seen())[1]

    def row_entropies(self) -> Floats:
        """Entropy of the output for every database x."""
        entropies = np.array([kernels.entropy(row) for row in self._kernel.matrix])
        return entropies[self._query.listed()]

    def _sample(self, rows: Codes, source: Source) -> Codes:
        return self._laws.draw(self._query.of(rows), source)

    @cached_property
    def _laws(self) -> ManyThresholds:
        return ManyThresholds(self._kernel.matrix)

    def realised_level(self) -> float:
        """Level of the integer thresholds, over the pairs of answers that neighbours have."""
        return self._laws.level(self._level)

    def realised(self) -> tuple[QueryChannel, float]:
        """Return the integer thresholds as doubles, whose ratios are good to 2^-52."""
        found = QueryChannel.__new__(QueryChannel)
        found._set(self._query, LawThresholds(self._kernel.matrix).chances())
        return found, 2.0**-50


def _spread(lines: Floats, axes: Ints, scale: float) -> float:
    return kernels.matrix_spread(lines, 0.0, scale, axes, 0, lines.shape[1])


def _load(scores: ArrayLike, i: int) -> Floats:
    found = check.floats(scores, f"scores[{i}]", 1)
    if (found != np.floor(found)).any() or found.max() > check.MAX_VECTOR:
        raise InvalidInput(f"scores[{i}] must hold integers of at least 0, got {scores!r:.60}")
    return found
