"""Maximal correlation: the spectral norm of B[x, y] = sqrt(p(x)) (W[x, y] - q(y)) / sqrt(q(y)).

B is p(x, y)/sqrt(p(x) q(y)) without its first singular pair (sqrt p, sqrt q), which is known. It
is built from differences of rows, so that a channel at epsilon 1e-8 keeps its digits.

Matrices are certified: mu I - B B' has a Cholesky factor, which floating point can prove. Beyond,
the Lanczos method finds a singular value and its residual; that no larger one hides from it is
sure only up to the chance that a random start has no share in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.results import Bracket

#: Keeps products of small probabilities from underflowing; cancels in B, and is exact.
SCALE = 2.0**600
#: Laws and rows are taken as they are: what sums that are off by 1e-14 can change, relatively.
_UNSUMMED = 2e-14
#: Largest smaller side of a matrix that is certified, and the largest solved in full.
_CERTIFIED, _FULL = 4096, 200
#: Largest matrix that is left to LAPACK as it is.
_TINY = 16
#: Share of a matrix-free answer granted to rounding, and the residual it is taken to.
_ROUNDING, _RESIDUAL = 1e-10, 1e-10
#: Lanczos vectors kept, and restarts.
_KEPT, _RESTARTS = 20, 1000
#: Most numbers in the Lanczos vectors.
_VECTORS = 1 << 26

Operator = Callable[[Floats], Floats]


def matrix_correlation(matrix: Floats, prior: Floats) -> Bracket:
    """Maximal correlation of input and output of a matrix."""
    seen = prior > 0.0
    matrix, p = (matrix, prior) if seen.all() else (matrix[seen], prior[seen])
    p = p / p.sum()
    return excess_correlation(matrix - matrix[np.argmax(p)], p, (p * SCALE) @ matrix)


def shrinking_correlation(gap: float, off: float, law: Floats) -> Bracket:
    """Maximal correlation of R = off + gap I, a row of E_d, whose gap is known to its digits."""
    p = law[law > 0.0] / law.sum()
    check.fits(len(p) ** 2, "the matrix of one row", "use a uniform law", check.MAX_MATRIX)
    unseen = off * SCALE if len(p) < len(law) else 0.0
    excess = np.hstack([gap * np.eye(len(p)), np.zeros((len(p), 1))])
    q = np.append((off + gap * p) * SCALE, unseen * (len(law) - len(p)))
    return excess_correlation(excess, p, q)


def excess_correlation(excess: Floats, p: Floats, q: Floats) -> Bracket:
    """Maximal correlation from W up to a common shift of its rows, p > 0 and q times 2^600.

    The excess must be good to an ulp in every entry; it is centred here.
    """
    occurs = q > 0.0
    excess, q = excess[:, occurs], q[occurs]
    if (excess == excess[0]).all():
        return Bracket(0.0, 0.0)
    weight = np.sqrt(p * SCALE)[:, None] / np.sqrt(q)
    before = np.linalg.norm(weight * excess)
    for _ in range(2):  # the second time takes off the rounding of the first
        excess = excess - p @ excess
    B = weight * excess
    lower, upper = _norm(B)
    # Entries are off by a few ulp of what they were before and after centring, q by N + 2 ulp.
    off = 16.0 * ULP * float(before + np.linalg.norm(B)) + 2.0**-300
    relative = (len(p) + 64) * ULP + _UNSUMMED
    lower = max(lower - off, 0.0) * (1.0 - relative)
    lower = math.sqrt(max(lower**2 - _UNSUMMED**2, 0.0))  # rows that do not sum to one
    return Bracket(min(lower, 1.0), min((upper + off) * (1.0 + relative), 1.0))


def _norm(B: Floats) -> tuple[float, float]:
    """Spectral norm of a matrix, from below by a vector, from above by a Cholesky factor.

    A factor of A = mu I - G found in floating point proves A >= -g trace(A), g = (s + 2) u (Rump
    2006); G = B B' is within L u of the squared Frobenius norm. Relative error about s^2 u.
    """
    B = B if B.shape[0] <= B.shape[1] else B.T
    size, length = B.shape
    if not B.any():
        return 0.0, 0.0
    scale = 2.0 ** math.floor(math.log2(np.abs(B).max()))
    B = B / scale
    if size > _CERTIFIED:
        found = lanczos(lambda v: B @ v, lambda u: B.T @ u, size)
        return scale * found.lower, scale * found.upper
    frobenius = float(np.linalg.norm(B)) * (1.0 + 4.0 * B.size * ULP)
    gram = B @ B.T
    full = size <= _FULL  # beyond, a vector to 1e-7 gives its value to twice the digits
    top = _leading(gram.copy()) if full else _top(lambda v: gram @ v, size, 1e-7)
    reached = float(np.linalg.norm(top @ B)) - size * ULP * frobenius
    lower = max(reached, 0.0) / (float(np.linalg.norm(top)) * (1.0 + 4.0 * (size + length) * ULP))
    noise = 1.01 * length * ULP * frobenius**2
    margin = 4.0 * (size + 2) * size * ULP + noise / max(lower, ULP) ** 2 + 1e-13
    while margin < 1.0:
        mu = lower**2 * (1.0 + margin)
        try:
            np.linalg.cholesky(mu * np.eye(size) - gram)
        except np.linalg.LinAlgError:
            margin *= 4.0
            continue
        bound = mu + 1.01 * (size + 4) * ULP * size * mu + noise
        return scale * lower, scale * min(math.sqrt(bound) * (1.0 + 4.0 * ULP), frobenius)
    return scale * lower, scale * frobenius


def _leading(gram: Floats) -> Floats:
    """Vector for the largest eigenvalue of a small symmetric matrix, which is used up.

    LAPACK's routine for all eigenvectors makes threads wait for each other from some 25 columns
    on, for up to tenths of a second where cores are busy; that for three diagonals has none.
    """
    if len(gram) <= _TINY:
        return np.asarray(np.linalg.eigh(gram)[1][:, -1])
    from scipy.linalg import eigh_tridiagonal

    from fastpriv.kernels import reflected, tridiagonal

    diagonal, beside, mirrors = tridiagonal(gram)
    last = len(gram) - 1
    found = eigh_tridiagonal(diagonal, beside, select="i", select_range=(last, last))[1]
    top = np.ascontiguousarray(found[:, 0])
    reflected(mirrors, top)
    return top


def lanczos(apply: Operator, adjoint: Operator, size: int) -> Bracket:
    """Spectral norm of an operator B from its action and that of its transpose, on ``size``.

    The lower end is |B' u| for a unit u, the upper end |B B' u| and its residual, both up to the
    rounding of the operator.
    """
    top = _top(lambda u: apply(adjoint(u)), size, _RESIDUAL)
    top = top / np.linalg.norm(top)
    image = adjoint(top)
    reached = float(image @ image)
    residual = float(np.linalg.norm(apply(image) - reached * top))
    lower, upper = math.sqrt(reached), math.sqrt(reached + residual)
    return Bracket(lower * (1.0 - _ROUNDING), upper * (1.0 + _ROUNDING))


def _top(operator: Operator, size: int, residual: float) -> Floats:
    """Vector for the largest eigenvalue of a positive semidefinite operator, well converged."""
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

    start = np.random.default_rng(0).standard_normal(size)
    image = operator(start)
    if size < 3 or not image.any():
        return start if not image.any() else image
    form: Any = LinearOperator((size, size), matvec=lambda v: operator(v.ravel()), dtype=float)
    kept = min(size, max(8, min(_KEPT, _VECTORS // size)))
    try:
        _, found = eigsh(form, 1, which="LA", v0=start, ncv=kept, maxiter=_RESTARTS, tol=residual)
        return np.asarray(found[:, 0])
    except ArpackNoConvergence as failure:
        found = failure.eigenvectors
        return np.asarray(found[:, 0]) if found.size else image
    except ArpackError:  # an operator that is zero up to rounding
        return image


def capped(bracket: Bracket) -> Bracket:
    """Cut both ends at 1, which no correlation exceeds."""
    return Bracket(min(bracket.lower, 1.0), min(bracket.upper, 1.0))


def sparse_correlation(matrix: Any, prior: Floats) -> Bracket:
    """Maximal correlation of a channel in compressed sparse rows.

    More than one connected part of possible pairs is a common function of input and output:
    the correlation is 1 (Witsenhausen 1975). Few outputs go through the dense matrix.
    """
    from scipy.sparse import bmat, diags
    from scipy.sparse.csgraph import connected_components

    seen = prior > 0.0
    matrix, p = matrix[seen], prior[seen] / prior.sum()
    matrix = matrix[:, np.flatnonzero(matrix.getnnz(axis=0))]
    size, outputs = matrix.shape
    if min(size, outputs) <= _CERTIFIED and size * outputs <= check.MAX_MATRIX:
        return matrix_correlation(matrix.toarray(), p)
    if connected_components(bmat([[None, matrix], [matrix.T, None]]), directed=False)[0] > 1:
        return Bracket(1.0, 1.0)
    q = matrix.T @ p
    root_p, root_q = np.sqrt(p), np.sqrt(q)
    joint = diags(root_p) @ matrix @ diags(1.0 / root_q)
    turned = joint.T.tocsr()
    found = lanczos(
        lambda v: joint @ v - root_p * (root_q @ v),
        lambda u: turned @ u - root_q * (root_p @ u),
        size,
    )
    noise = (size + outputs) * ULP
    return capped(Bracket(max(found.lower - noise, 0.0), found.upper + noise))
