"""Channels given by a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import extremes
from fastpriv._sampling.thresholds import ManyThresholds
from fastpriv.channels.base import AbstractChannel
from fastpriv.errors import InvalidInput, short
from fastpriv.priors import Dense, Distribution
from fastpriv.priors.base import as_prior
from fastpriv.spaces import Space

__all__ = ["Channel"]


class Channel(AbstractChannel):
    """Any mechanism, as a matrix W[x, y] = p(y|x).

    Parameters
    ----------
    matrix : 2-D array
        One row per database, one column per output; rows sum to one.
    space : Space or sequence of int, optional
        The databases. Default: one record with one value for each row of the matrix, so any two
        inputs are neighbours.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> round(fp.dp_level(channel), 6)  # ln 3
    1.098612
    """

    def __init__(self, matrix: ArrayLike, space: Space | ArrayLike | None = None) -> None:
        self._table = check.stochastic(matrix, "matrix")
        size, outputs = self._table.shape
        if space is None:
            space = Space.of((size,))
        self.space = space if isinstance(space, Space) else Space(space)
        if self.space.size != size:
            raise InvalidInput(
                f"{self.space!r} has {short(self.space.size)} databases but the matrix has "
                f"{size} rows. Give a row for each database."
            )
        self.output_space = self.space if outputs == size else Space.of((outputs,))

    def definition(self) -> dict[str, Any]:
        return {"sizes": list(self.space.sizes), "matrix": self._table}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> Channel:
        return cls(given["matrix"], given["sizes"])

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x K array (read-only)."""
        return check.shown(self._table)

    def table(self) -> Floats:
        return self._table

    @cached_property
    def cube(self) -> Floats:
        """The matrix as a stack of one channel, for kernels."""
        return self._table[None]

    def output(self, prior: Distribution | ArrayLike) -> Dense:
        """Return the distribution of the output when the database follows ``prior``."""
        if type(prior) is not Dense or prior.space.sizes != self.space.sizes:
            prior = as_prior(prior, self.space)
        return Dense.of(prior.probabilities().dot(self._table), self.output_space)

    output_distribution = output

    def column_maxima(self) -> Floats:
        """Return the largest p(y|x) over x, for every output y."""
        return extremes(self._table)[0]

    def column_minima(self) -> Floats:
        """Return the smallest p(y|x) over x, for every output y."""
        return extremes(self._table)[1]

    @cached_property
    def thresholds(self) -> ManyThresholds:
        return ManyThresholds(self._table)
