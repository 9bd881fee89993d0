"""Channels whose output depends on a database only through a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.defined import unrolled
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import (
    extremes,
)
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, ManyThresholds
from fastpriv._structure.rows import RowKernel, distinct
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.queries import Histogram, Listed, Query, Sum
from fastpriv.errors import InvalidInput, described, short
from fastpriv.priors import Dense, Distribution
from fastpriv.spaces import Space

__all__ = ["QueryChannel"]


class QueryChannel(AbstractChannel):
    """A mechanism that uses only the answer of a query: p(.|x) = kernel[values[x]].

    Parameters
    ----------
    values : integer array of length N
        The query's answer for every database, in C order: the index of a row of ``kernel``.
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
                f"got shape {given.shape} of {given.dtype}."
            )
        if given.min() < 0 or given.max() >= len(laws):
            raise InvalidInput(f"values must be rows of the kernel, 0 .. {len(laws) - 1}.")
        self._set(Listed(given.astype(np.int64), space, len(laws)), laws)

    def _set(self, query: Query, laws: Floats) -> None:
        self.query, self.kernel = query, RowKernel(laws)
        self.space, self.output_space = query.space, Space([laws.shape[1]])

    @property
    def record_kinds(self) -> Ints:
        return self.query.kinds()

    @classmethod
    def of(cls, query: Query, laws: Floats) -> QueryChannel:
        self = QueryChannel.__new__(QueryChannel)
        self._set(query, laws)
        return self

    def definition(self) -> dict[str, Any]:
        return {"query": self.query.to_dict(), "kernel": self.kernel.matrix}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> QueryChannel:
        query, kernel = given["query"], given["kernel"]
        if "values" in query:
            return cls(query["values"], kernel, query["sizes"])
        if "scores" in query:
            which = unrolled(query["rows"], len(query["scores"])).tolist()
            return cls.sum([query["scores"][k] for k in which], kernel)
        return cls.histogram(query["n"], query["m"], kernel)

    @classmethod
    def from_query(cls, query: Query, kernel: ArrayLike, rows: str) -> QueryChannel:
        self = cls.__new__(cls)
        laws = check.stochastic(kernel, "kernel")
        if len(laws) != query.answers:
            raise InvalidInput(
                f"kernel must have a row for each of {query.answers:,} {rows}; got {len(laws):,}."
            )
        self._set(query, laws)
        return self

    @classmethod
    def count(cls, n: int, kernel: ArrayLike) -> QueryChannel:
        """Return a mechanism on the number of set bits among n: p(.|x) = kernel[sum of x].

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
        check.fits(n, "a database", "use fewer records")
        return cls.from_query(Sum([np.arange(2)], np.zeros(n, np.int64)), kernel, "counts")

    @classmethod
    def sum(cls, scores: Sequence[ArrayLike], kernel: ArrayLike) -> QueryChannel:
        """Return a mechanism on the sum of a score per record, without listing databases.

        Parameters
        ----------
        scores : sequence of 1-D integer arrays
            ``scores[i][v]`` >= 0 is the score of record i if it holds value v. Records with equal
            scores (``[scores] * n``) are processed together.
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
        kinds, which = distinct(scores, _load, "scores")
        return cls.from_query(Sum([s.astype(np.int64) for s in kinds], which), kernel, "sums")

    @classmethod
    def histogram(cls, n: int, m: int, kernel: ArrayLike) -> QueryChannel:
        """Return a mechanism on the histogram: how many of n records hold each of m values.

        Parameters
        ----------
        n, m : int
            Number of records, and of values of each.
        kernel : 2-D array
            One row for each of the C(n + m - 1, m - 1) histograms, in C order of the counts (c_1,
            ..., c_(m-1)) of values 1 .. m-1, as in the weights of :class:`Exchangeable`. For m = 2
            this is the order of the number of ones. For m = 3 and n = 2 it is (0, 0), (0, 1), (0,
            2), (1, 0), (1, 1), (2, 0).

        Examples
        --------
        >>> import fastpriv as fp
        >>> import numpy as np
        >>> channel = fp.QueryChannel.histogram(2, 3, np.eye(6))
        >>> channel.sample([[0, 1], [1, 0], [2, 2]], rng=0)
        array([3, 3, 2])
        """
        n, m = check.integer(n, "n", 1), check.integer(m, "m", 1)
        return cls.from_query(Histogram(n, m), kernel, "histograms")

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array."""
        self.check_matrix_fits()
        return np.asarray(self.kernel.matrix[self.query.listed()])

    def output_distribution(self, prior: Distribution) -> Dense:
        return Dense.of(self.query.law(prior) @ self.kernel.matrix, self.output_space)

    def occurring_rows(self) -> Floats:
        """Distributions of the answers that occur; the kernel itself if all occur."""
        seen, laws = self.query.seen(), self.kernel.matrix
        return laws if len(seen) == len(laws) else laws[seen]

    def column_maxima(self) -> Floats:
        """Return the largest p(y|x) over x, for every output y."""
        return extremes(self.occurring_rows())[0]

    def column_minima(self) -> Floats:
        """Return the smallest p(y|x) over x, for every output y."""
        return extremes(self.occurring_rows())[1]

    def draw(self, rows: Codes, source: Source) -> Codes:
        return self.thresholds.draw(self.query.of(rows), source)

    @cached_property
    def thresholds(self) -> ManyThresholds:
        return ManyThresholds(self.kernel.matrix)


def _load(scores: ArrayLike, i: int) -> Floats:
    numbers = check.floats(scores, f"scores[{i}]", 1)
    if (numbers != np.floor(numbers)).any() or numbers.max() > check.MAX_VECTOR:
        raise InvalidInput(
            f"scores[{i}] must hold integers of at least 0; got {described(scores)}."
        )
    return numbers
