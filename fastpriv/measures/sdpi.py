"""Strong data-processing constant of a mechanism under a prior."""

from __future__ import annotations

import math
from functools import reduce, singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, lowered, roundoff
from fastpriv._matrices.contraction import matrix_contraction
from fastpriv._matrices.sdpi import entries_off, matrix_sdpi
from fastpriv._structure.rows import RowKernels
from fastpriv.channels import (
    AbstractChannel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.types import TypeChannel
from fastpriv.errors import TooLarge
from fastpriv.measures.contraction import contraction, rows_contraction
from fastpriv.measures.correlation import correlation, has_rare, largest, rows_correlation
from fastpriv.measures.inputs import as_mechanism, as_pair, measure_as_product
from fastpriv.measures.leakage import extreme_level
from fastpriv.priors import Distribution, Product
from fastpriv.results import Bracket, SdpiConstant

__all__ = ["sdpi_constant"]

#: Most entries of the matrix of a record-by-record channel that is formed.
_FORMED = 1 << 20
#: Most entries of the distributions of a query's answers on which searches are begun.
_SEARCHED = 1 << 16
#: Randomised response and tilted mechanisms with a smaller epsilon n do not use the matrix.
_CLOSE = 1e-5


def sdpi_constant(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike,
    *,
    gap: float = 1e-6,
    time_limit: float | None = 10.0,
) -> SdpiConstant:
    """Bound the strong data-processing constant S*(X; Y) of a mechanism under a prior.

    S* is the supremum of D(QW || PW) / D(Q || P) over distributions Q of the database, where P is
    the prior. If private data S influence the output only through the database, I(S; Y) <= S* I(S;
    X), and S* is the smallest such factor (Makhdoumi-Fawaz 2013, Theorem 1, Section III-B). It lies
    between rho^2 (:func:`maximal_correlation`) and eta (:func:`contraction_coefficient`).

    Parameters
    ----------
    channel : channel, 2-D array or scipy.sparse matrix
        The mechanism.
    prior : Distribution or 1-D array
        Distribution of the databases.
    gap : float
        Target relative width of the bracket.
    time_limit : float or None
        Seconds for the search. After them the current bracket is returned; it is wider but valid.
        None bounds the work instead, so that the bracket is the same on every machine.

    Returns
    -------
    SdpiConstant
        A :class:`Bracket` with ``law``, the distribution Q that attains the lower bound. The upper
        bound is proved. It is at most the contraction coefficient of the databases that can occur.

    Notes
    -----
    Up to eight different output distributions are searched by branch and bound. Random N x N
    channels reach 1e-6 in about 0.02 s for N = 3, 0.1 s for 5 and 30 s for 6. For more output
    distributions the upper bound is the contraction coefficient, and the lower bound is the best of
    several local searches. For independent records S* is the largest constant of a record
    (Ahlswede-Gacs 1976).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.sdpi_constant([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5])  # (1 - 2 D)^2
    SdpiConstant(0.6399999999, 0.6400000001)
    >>> z = [[1.0, 0.0], [0.5, 0.5]]
    >>> fp.sdpi_constant(z, [0.5, 0.5])  # ln(4/3) / ln 2; rho^2 is 1/3
    SdpiConstant(0.4150374992, 0.4150374993)
    """
    mechanism, law = as_pair(as_mechanism(channel, prior), prior)
    gap = check.real(gap, "gap", least=0.0)
    limit = check.optional_limit(time_limit, "time_limit")
    bracket = accurate_sdpi(mechanism, law, gap, limit)
    if isinstance(bracket, SdpiConstant):
        return bracket
    return SdpiConstant(bracket.lower, bracket.upper, None)


def accurate_sdpi(
    channel: AbstractChannel,
    prior: Distribution,
    gap: float = 1e-6,
    time_limit: float | None = None,
) -> Bracket:
    """Strong data-processing constant, not from the matrix if it has lost its digits."""
    if _is_close(channel):
        return _between(channel, prior)
    bracket, error = sdpi(channel, prior, gap, time_limit), _entry_error(channel, prior)
    wider = entries_off(bracket, error) if error > 0.0 and bracket.upper > 0.0 else bracket
    if has_rare(channel, prior):
        wider = Bracket(wider.lower, max(wider.upper, contraction(channel).upper))
    if isinstance(bracket, SdpiConstant):
        return SdpiConstant(wider.lower, wider.upper, bracket.law)
    return wider


def _entry_error(channel: AbstractChannel, prior: Distribution) -> float:
    """Bound the relative error of the entries that a matrix of the channel was rounded to."""
    if isinstance(channel, TiltedChannel):
        return channel.entry_error
    if isinstance(channel, HammingChannel):
        return roundoff(16.0 * channel.space.n)
    if not isinstance(channel, ProductChannel):
        return channel.matrix_error
    return 0.0 if isinstance(prior, Product) else roundoff(2.0 * channel.space.n)


def _is_close(channel: AbstractChannel) -> bool:
    """Whether rows of the matrix differ so little that rounding matters."""
    if isinstance(channel, HammingChannel | TiltedChannel):
        return channel.epsilon * channel.space.n < _CLOSE
    computed = channel.matrix_error > 0.0 and not isinstance(channel, ProductChannel)
    return computed and extreme_level(channel) < _CLOSE


def _between(channel: AbstractChannel, prior: Distribution) -> Bracket:
    """From rho^2 to eta, which are computed from epsilon and not from the rounded matrix."""
    try:
        rho = correlation(channel, prior).lower
    except TooLarge:
        rho = 0.0
    upper = contraction(channel).upper
    return Bracket(min(max(lowered(rho**2, 4.0) - LEAST, 0.0), upper), upper)


@singledispatch
def sdpi(
    channel: AbstractChannel,
    prior: Distribution,
    gap: float = 1e-6,
    time_limit: float | None = None,
) -> Bracket:
    """Strong data-processing constant, for checked arguments.

    The general algorithm uses the matrix.
    """
    return matrix_sdpi(channel.nearest_matrix(), prior.probabilities(), gap, time_limit)


@sdpi.register
def _query_sdpi(
    channel: QueryChannel, prior: Distribution, gap: float = 1e-6, time_limit: float | None = None
) -> Bracket:
    """Use the answer in place of the database. For large tables, use rho^2 and eta."""
    laws, law = channel.kernel.matrix, channel.query.law(prior)
    if laws.size <= _SEARCHED:
        bounds = matrix_sdpi(laws, law, gap, time_limit)
        return Bracket(bounds.lower, bounds.upper)
    eta, rho = matrix_contraction(laws[law > 0.0]).upper, correlation(channel, prior).lower
    return Bracket(min(lowered(rho**2, 4.0), eta), eta)


@sdpi.register
def _product_sdpi(
    channel: ProductChannel, prior: Distribution, gap: float = 1e-6, time_limit: float | None = None
) -> Bracket:
    """Record by record, in the structure of the prior."""
    return rows_sdpi(prior, channel.kernels, gap, time_limit)


@sdpi.register
def _type_sdpi(
    channel: TypeChannel, prior: Distribution, gap: float = 1e-6, time_limit: float | None = None
) -> Bracket:
    """Use rho^2 and eta of all databases if the matrix is large."""
    if channel.space.size**2 <= _SEARCHED:
        return matrix_sdpi(channel.nearest_matrix(), prior.probabilities(), gap, time_limit)
    eta, rho = contraction(channel).upper, correlation(channel, prior).lower
    return Bracket(min(lowered(rho**2, 4.0), eta), eta)


measure_as_product(sdpi)


@singledispatch
def rows_sdpi(
    prior: Distribution, row_kernels: RowKernels, gap: float, time_limit: float | None
) -> Bracket:
    """Strong data-processing constant across a channel that acts record by record.

    A small matrix is used directly. Otherwise the lower bound is rho^2, or 0 if rho is too costly.
    The upper bound is the contraction coefficient.
    """
    entries = (math.log2(a * b) for a, b in (kernel.shape for kernel in row_kernels))
    if math.fsum(entries) <= math.log2(_FORMED):
        parts: list[Any] = [kernel.matrix for kernel in row_kernels]
        whole = np.asarray(reduce(np.kron, parts))
        bounds: Bracket = matrix_sdpi(whole, prior.probabilities(), gap, time_limit)
    else:
        bounds = Bracket(0.0, rows_contraction(row_kernels).upper)
    try:
        rho = rows_correlation(prior, row_kernels)
    except TooLarge:
        rho = Bracket(0.0, 1.0)
    return Bracket(min(max(bounds.lower, lowered(rho.lower**2, 4.0)), bounds.upper), bounds.upper)


@rows_sdpi.register
def _product_rows_sdpi(
    prior: Product, row_kernels: RowKernels, gap: float, time_limit: float | None
) -> Bracket:
    """Return the largest of the records' constants (Ahlswede-Gacs 1976)."""
    laws, which, _, _ = prior.paired(row_kernels)
    pairs = zip(laws, which, strict=True)
    rows = row_kernels.distinct
    share = None if time_limit is None else time_limit / max(len(laws), 1)
    return largest([matrix_sdpi(rows[j].matrix, prior.distinct[k], gap, share) for k, j in pairs])
