"""How much of any private data can pass: correlation, contraction, strong data processing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._matrices.correlation import sparse_correlation
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.arguments import as_channel, as_pair
from fastpriv.priors import Distribution
from fastpriv.results import Bracket

__all__ = ["contraction_coefficient", "maximal_correlation", "sdpi_constant"]


def maximal_correlation(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike
) -> float:
    """Maximal correlation rho of database and output (Hirschfeld, Gebelein, Renyi).

    The largest correlation of a function of the database with a function of the output: the
    second singular value of p(x, y)/sqrt(p(x) p(y)). It is 0 if and only if the two are
    independent, and 1 if and only if they have a non-constant function in common. Its square
    bounds :func:`sdpi_constant` from below, and no function of the database can be estimated with
    less than a share 1 - rho^2 of its variance left (Makhdoumi-Fawaz 2013, Section IV).

    Parameters
    ----------
    channel : channel, 2-D array or scipy.sparse matrix
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.

    Returns
    -------
    float
        rho, rounded up. Proved for matrices with a side of at most 4096, and for all that
        reduces to them: above the truth by a share of about s^2 2^-53, s the smaller side.
        Beyond, a singular value of the Lanczos method plus its residual of 1e-10: that it is the
        largest one is sure up to the chance that a fixed random start misses it.

    Notes
    -----
    The first singular pair is known and taken off entry by entry, from differences of rows, so
    that epsilon 1e-8 costs no digits. Cost O(N K s) for a matrix; O(nonzeros) a step for a
    sparse one; the largest of the rows' for independent rows (Witsenhausen 1975), in closed
    form for E_d on the uniform prior; O(N n) a step for row-by-row channels on other priors.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.maximal_correlation([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5]), 9)
    0.8
    >>> prior = fp.Product.iid([0.7, 0.3], 1_000_000)
    >>> round(fp.maximal_correlation(fp.HammingChannel(1_000_000, 2, 1.0), prior), 6)
    0.430964
    """
    if hasattr(channel, "tocsr"):
        matrix = _sparse(channel)
        return sparse_correlation(matrix, _law(prior, matrix.shape[0])).upper
    mechanism, law = as_pair(channel, prior)
    return mechanism.correlation(law).upper


def contraction_coefficient(channel: AbstractChannel | ArrayLike) -> Bracket:
    """Contraction coefficient eta of a mechanism: what survives of any divergence.

    D(QW || PW) <= eta D(Q || P) for all laws P, Q of the database, hence I(S; Y) <= eta I(S; X)
    for all private data S, whatever the laws (Makhdoumi-Fawaz 2013, Theorem 3). It is the largest
    squared maximal correlation over priors, and two databases suffice (Ordentlich-Polyanskiy
    2021): the largest over pairs x, x' and 0 < b < 1 of
    b(1-b) sum_y (W_x - W_x')^2 / (b W_x + (1-b) W_x'), a concave function of b.

    Parameters
    ----------
    channel : channel, 2-D array or scipy.sparse matrix
        The mechanism.

    Returns
    -------
    Bracket
        eta, proved by tangents to within about 5 (K + 16) 2^-53 of itself for a matrix and for
        E_d on rows of one size. Wider for other products with more pairs than can be listed.

    Notes
    -----
    Distinct rows only, O(N^2 K) by one matrix product; Hellinger distances rule most pairs out,
    those left take one or a few sums of K terms each. E_d: the two databases differ in all n
    rows, O(n). Rows of matrices count as the floats they are.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.contraction_coefficient([[0.7, 0.15, 0.15], [0.15, 0.7, 0.15], [0.15, 0.15, 0.7]])
    Bracket(0.3558823529, 0.355882353)
    >>> fp.contraction_coefficient(fp.HammingChannel(10, 2, 1.0))  # one bit: 0.2135522671
    Bracket(0.8244043077, 0.8244043078)
    """
    return _mechanism(channel).contraction()


def sdpi_constant(channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike) -> Bracket:
    """Strong data-processing constant S*(X; Y) of a mechanism under a prior.

    The supremum of D(QW || PW) / D(Q || P) over laws Q of the database, P being the prior: for
    all private data S that reach the output through the database only,
    I(S; Y) <= S* I(S; X), and no smaller factor will do (Makhdoumi-Fawaz 2013, Theorem 3 and
    Section IV). It lies between rho^2 and eta; see :func:`maximal_correlation` and
    :func:`contraction_coefficient`.

    Parameters
    ----------
    channel : channel, 2-D array or scipy.sparse matrix
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.

    Returns
    -------
    Bracket
        Tight for two possible databases, or two different rows among those possible. For more
        the lower end is the best of a few climbs, and the upper end the contraction coefficient
        of the databases that can occur.

    Notes
    -----
    For two databases the excess l D(Q || P) - D(QW || PW) is convex, concave and convex again, so
    one tangent proves the upper end. Independent rows: the largest of the rows'
    (Ahlswede-Gacs 1976). Other structured pairings go through the matrix while it is small.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.sdpi_constant([[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5])  # (1 - 2 D)^2
    Bracket(0.6399999999, 0.6400000001)
    >>> z = [[1.0, 0.0], [0.5, 0.5]]
    >>> fp.sdpi_constant(z, [0.5, 0.5])  # ln(4/3) / ln 2; rho^2 is 1/3
    Bracket(0.4150374992, 0.4150374993)
    """
    mechanism, law = as_pair(_mechanism(channel, prior), prior)
    return mechanism.sdpi(law)


def _mechanism(channel: Any, prior: Any = None) -> AbstractChannel:
    """Return the channel, made from a matrix, dense or sparse, if it is one."""
    if hasattr(channel, "tocsr"):
        matrix = _sparse(channel)
        entries = matrix.shape[0] * matrix.shape[1]
        check.fits(entries, "the dense matrix", "only maximal_correlation", check.MAX_MATRIX)
        channel = matrix.toarray()
    return as_channel(channel, prior.space if isinstance(prior, Distribution) else None)


def _sparse(channel: Any) -> Any:
    """Return a scipy.sparse matrix as a channel in compressed rows, every row a law."""
    from scipy.sparse import csr_matrix

    if channel.dtype.kind not in "iufb" or len(channel.shape) != 2:
        raise InvalidInput(f"a sparse channel must be a real matrix, got {channel!r:.80}")
    matrix = csr_matrix(channel, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    if min(matrix.shape) == 0 or matrix.nnz == 0:
        raise InvalidInput("a sparse channel must not be empty")
    check.floats(matrix.data, "the sparse channel", 1)
    matrix.eliminate_zeros()
    totals = np.asarray(matrix.sum(axis=1)).reshape(-1)
    wrong = np.flatnonzero(np.abs(totals - 1.0) > check.SUM_TOLERANCE)
    if len(wrong):
        raise InvalidInput(
            f"every row of the sparse channel must sum to 1 within {check.SUM_TOLERANCE:g}; row "
            f"{wrong[0]} sums to {float(totals[wrong[0]])!r}"
        )
    matrix.data /= np.repeat(totals, np.diff(matrix.indptr))
    return matrix


def _law(prior: Distribution | ArrayLike, size: int) -> Any:
    p = prior._vector() if isinstance(prior, Distribution) else check.law(prior, "prior")
    if len(p) != size:
        raise InvalidInput(f"prior has {len(p)} entries, but the channel has {size} databases")
    return p
