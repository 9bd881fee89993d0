"""Joint distributions of private data S and a database X."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv.channels import Channel
from fastpriv.measures.correlation import maximal_correlation
from fastpriv.measures.information import mutual_information
from fastpriv.measures.sdpi import sdpi_constant
from fastpriv.priors import Dense
from fastpriv.results import SdpiConstant
from fastpriv.spaces import Space

__all__ = ["Joint"]


class Joint:
    """The joint distribution of private data S and a database X (Makhdoumi-Fawaz 2013).

    It is accepted in the place of a matrix ``joint[s, x]``, as by :func:`design_mapping` and
    :func:`collusion`. Values of probability zero are allowed: they change nothing.

    Parameters
    ----------
    matrix : 2-D array
        ``matrix[s, x]`` = P(S = s, X = x). Entries sum to one.

    Attributes
    ----------
    prior : Dense
        Distribution of X.
    channel : Channel
        p(s|x), from X to S; the attribute S of X. A database x of probability zero has the
        distribution of S.
    secret : Dense
        Distribution of S.
    reverse : Channel
        p(x|s), from S to X. A value s of probability zero has the distribution of X.

    Examples
    --------
    >>> import fastpriv as fp
    >>> joint = fp.Joint([[0.5, 0.0, 0.0], [0.25, 0.25, 0.0]])  # the third database never occurs
    >>> joint.prior.pmf().tolist(), joint.secret.pmf().tolist()
    ([0.75, 0.25, 0.0], [0.5, 0.5])
    >>> round(joint.information(), 6), round(joint.maximal_correlation(), 6)
    (0.215762, 0.57735)
    """

    def __init__(self, matrix: ArrayLike) -> None:
        self.matrix = check.shown(check.law(matrix, "matrix", 2))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.matrix, dtype=dtype)

    @cached_property
    def prior(self) -> Dense:
        """Distribution of X."""
        return _law(self.matrix.sum(axis=0))

    @cached_property
    def secret(self) -> Dense:
        """Distribution of S."""
        return _law(self.matrix.sum(axis=1))

    @cached_property
    def channel(self) -> Channel:
        """p(s|x), from X to S."""
        return _given(self.matrix.T, self.matrix.sum(axis=1))

    @cached_property
    def reverse(self) -> Channel:
        """p(x|s), from S to X."""
        return _given(self.matrix, self.matrix.sum(axis=0))

    def information(self) -> float:
        """Return I(S; X) in nats."""
        return float(mutual_information(self.channel, self.prior))

    def maximal_correlation(self) -> float:
        """Return the maximal correlation of S and X."""
        return float(maximal_correlation(self.channel, self.prior))

    def sdpi_constant(self, *, gap: float = 1e-6, time_limit: float = 10.0) -> SdpiConstant:
        """Return S*(X; S), the largest D(Q_S || P_S)/D(Q_X || P_X) over distributions Q of X."""
        return sdpi_constant(self.channel, self.prior, gap=gap, time_limit=time_limit)

    def __repr__(self) -> str:
        return f"Joint({self.matrix.shape[0]} values of S, {self.matrix.shape[1]} of X)"


def _law(law: Floats) -> Dense:
    return Dense.of(law / law.sum(), Space.of((len(law),)))


def _given(joint: Floats, instead: Floats) -> Channel:
    """Return the rows of a joint distribution divided by their sums; ``instead`` of empty rows."""
    totals = joint.sum(axis=1)
    rows = joint / np.where(totals > 0.0, totals, 1.0)[:, None]
    return Channel(np.where(totals[:, None] > 0.0, rows, instead / instead.sum()))
