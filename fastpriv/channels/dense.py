"""Channels given by a matrix."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import extremes
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, ManyThresholds, fitting
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
