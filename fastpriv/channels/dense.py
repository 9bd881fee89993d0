"""Channels given by a matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.logs import log_spread, round_up
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import Leakages, extremes, log_error, matrix_leakages
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, LawThresholds, ManyThresholds, fitting
from fastpriv.channels.base import AbstractChannel
from fastpriv.errors import InvalidInput, short
from fastpriv.priors import Dense, Distribution
from fastpriv.spaces import Space

__all__ = ["Channel"]

#: Below this level the products p(x) W[x, y] would spoil the last digits of an identifiability.
_SMALL = 0.1
#: Times 2^900 and the least double, chances from here on have all their digits.
_RARE = 2.0**-848
#: Smallest matrix whose rows are worth a second thread.
_THREADED = 1 << 17


class Channel(AbstractChannel):
    """Any mechanism, as a matrix W[x, y] = p(y|x).

    Parameters
    ----------
    matrix : 2-D array
        One row per database, one column per output; rows sum to one.
    space : Space or sequence of int, optional
        The databases. By default one row with as many values as the matrix has rows, so that any
        two inputs are neighbours.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> round(fp.dp_level(channel), 6)  # ln 3
    1.098612
    """

    def __init__(self, matrix: ArrayLike, space: Space | ArrayLike | None = None) -> None:
        self._matrix = check.stochastic(matrix, "matrix")
        size, outputs = self._matrix.shape
        if space is None:
            space = Space([size])
        self.space = space if isinstance(space, Space) else Space(space)
        if self.space.size != size:
            raise InvalidInput(
                f"{self.space!r} has {short(self.space.size)} databases but the matrix has "
                f"{size} rows"
            )
        self.output_space = self.space if outputs == size else Space([outputs])

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array (read-only)."""
        return check.shown(self._matrix)

    def _output(self, prior: Distribution) -> Dense:
        return Dense._trusted(prior._vector() @ self._matrix, self.output_space)

    def neighbour_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over neighbours. Cost O(N K n)."""
        return _level(self._matrix, 0.0, self._axes)

    @cached_property
    def _axes(self) -> Ints:
        """Stride and size of every row that has two or more values."""
        return _lines(zip(self.space._strides.tolist(), self.space.sizes, strict=True))

    def posterior_level(self, prior: Distribution) -> float:
        """Largest ln p(x|y)/p(x'|y) over neighbours, from the joint law. Cost O(N K n)."""
        p, logs = prior._vector(), prior._logs()
        if logs is None and np.any((p > 0.0) & (p < _RARE)):
            with np.errstate(divide="ignore"):
                logs = np.log(p)
        if logs is not None:
            return self._rare_level(logs)
        # A power of two keeps products of small numbers from underflowing, and is exact.
        level = _level((p * 2.0**900)[:, None] * self._matrix, 0.0, self._axes)
        if level >= _SMALL:
            return level
        # Close to zero, products p W carry rounding errors as large as the level. Work with
        # p W / (p_0 W_0) - 1 = a + b + a b instead, where a and b come from exact differences.
        a = (p - p[0]) / p[0]
        first = self._matrix[0]
        b = np.where(first > 0, (self._matrix - first) / np.where(first > 0, first, 1.0), 0.0)
        return _level(a[:, None] + b + a[:, None] * b, 1.0, self._axes)

    def _rare_level(self, logs: Floats) -> float:
        """Return the posterior level under a prior given by logs, too rare for doubles."""
        with np.errstate(divide="ignore"):
            table = np.log(self._matrix) + logs[:, None]
        worst, seen = 0.0, table > -math.inf
        for x, other in self.space._steps():
            gaps = np.where(seen[x], table[x], 0.0) - np.where(seen[x], table[other], 0.0)
            worst = max(worst, float(gaps.max()))
        return round_up(worst) + log_error(table, 0.0)

    def leakages(self, prior: Distribution) -> Leakages:
        """How far every output moves the odds. One pass, a second where leakage is small."""
        return matrix_leakages(self._matrix, prior._vector(), logs=prior._logs())

    def leakage_at(self, prior: Distribution, y: Ints) -> float:
        """Pointwise maximal leakage of one output, from its column."""
        column = np.ascontiguousarray(self._matrix[:, [self.output_space.index(y)]])
        return float(matrix_leakages(column, prior._vector(), logs=prior._logs()).above[0])

    def extreme_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over all x, x' and outputs y. One pass."""
        return _level(self._matrix, 0.0, _lines([(1, len(self._matrix))]))

    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""
        return extremes(self._matrix)[0]

    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""
        return extremes(self._matrix)[1]

    def _sample(self, rows: Codes, source: Source) -> Codes:
        drawn = self._laws.draw(np.asarray(self.space.index(rows)), source)
        if self.output_space != self.space:
            return drawn
        return self._databases.astype(fitting(rows.dtype, max(self.space.sizes)))[drawn]

    @cached_property
    def _databases(self) -> Ints:
        return self.space.rows(np.arange(self.space.size))

    @cached_property
    def _laws(self) -> ManyThresholds:
        return ManyThresholds(self._matrix)

    def realised_level(self) -> float:
        """Level of the integer thresholds. Cost O(N K n); rounded up."""
        return self._laws.level(lambda chances: _level(chances, 0.0, self._axes))

    def realised(self) -> tuple[Channel, float]:
        """Return the integer thresholds as doubles, whose ratios are good to 2^-52."""
        return Channel(LawThresholds(self._matrix).chances(), self.space), 2.0**-50


def _lines(axes: Iterable[tuple[int, int]]) -> Ints:
    """Stride and size of the axes that have two or more values, as kernels want them."""
    return np.array([(inner, m) for inner, m in axes if m > 1], np.int64).reshape(-1, 2)


def _level(matrix: Floats, shift: float, axes: Ints) -> float:
    """Log of the worst ratio along the axes of the rows of a matrix that holds ratio - shift."""
    return round_up(log_spread(partial(_spread, matrix, shift, axes)))


def _spread(matrix: Floats, shift: float, axes: Ints, scale: float) -> float:
    if matrix.size < _THREADED:
        return kernels.matrix_spread(matrix, shift, scale, axes, 0, matrix.shape[1])
    task = partial(kernels.matrix_spread, matrix, shift, scale, axes)
    return max(split(task, matrix.shape[1], 512))
