"""Maximal correlation: the spectral norm of B[x, y] = sqrt(p(x)) (W[x, y] - q(y)) / sqrt(q(y)).

B is p(x, y)/sqrt(p(x) q(y)) without its first singular pair (sqrt p, sqrt q), which is known. It
is built from differences of rows, so that a channel at epsilon 1e-8 keeps its digits.

The norm of a matrix is certified: if floating point finds a Cholesky factor of mu I - B B', then
mu is an upper bound up to a known error. For larger operators the Lanczos method finds a singular
value and its residual. That no larger one exists is then certain only up to the probability that
the random start is orthogonal to its vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, raised, roundoff, sum_error
from fastpriv._core.validation import Floats
from fastpriv._matrices.tilted import Excess, centred
from fastpriv.results import Bracket

#: A power of two that keeps products of small probabilities from underflowing. It cancels in B.
SCALE = 2.0**600
#: Relative change of the result if the sums of distributions, which are not normalised, are off by
#: 1e-14.
UNSUMMED = 2e-14
#: More than what numbers too small for a double add up to.
_UNDERFLOW = 2.0**-300
#: Largest smaller side of a matrix that is certified.
_CERTIFIED = 4096
#: Largest smaller side for which a kernel without threads does all steps.
_FULL = 200
#: Relative rounding error that is allowed for without a matrix.
_ROUNDING = 1e-10
#: Residual to reach there.
_RESIDUAL = 1e-10
#: Lanczos vectors that are kept.
_KEPT = 20
#: Most restarts.
_RESTARTS = 1000
#: Most numbers in the Lanczos vectors.
_VECTORS = 1 << 26

Operator = Callable[[Floats], Floats]


def matrix_correlation(matrix: Floats, prior: Floats) -> Bracket:
    """Maximal correlation of input and output of a matrix."""
    matrix, B = np.require(matrix, np.float64, ["C", "W"]), np.empty(matrix.shape)
    norm, before, inputs = kernels.weighted_joint(matrix, prior, B)
    if inputs <= 1:
        return Bracket(0.0, 0.0)
    if inputs < len(B):
        seen = prior > 0.0
        return matrix_correlation(matrix[seen], prior[seen])
    return _weighted_correlation(B, norm, before)


def shrinking_correlation(gap: float, off: float, law: Floats) -> Bracket:
    """Return the maximal correlation of R = off + gap I, for one record, from an accurate gap."""
    p = law[law > 0.0] / law.sum()
    check.fits(
        len(p) ** 2, "the matrix of one record", "use a uniform distribution", check.MAX_MATRIX
    )
    unseen = off * SCALE if len(p) < len(law) else 0.0
    excess = np.hstack([gap * np.eye(len(p)), np.zeros((len(p), 1))])
    q = np.append((off + gap * p) * SCALE, unseen * (len(law) - len(p)))
    return excess_correlation(excess, p, q)


def excess_correlation(excess: Floats, p: Floats, q: Floats) -> Bracket:
    """Maximal correlation from W minus a vector common to its rows, p > 0, and q times 2^600.

    Every entry of the excess must be accurate to one ulp. It is centred here. Equal rows of the
    excess may belong to distributions that differ by less, unless all rows are zero.
    """
    occurs = q > 0.0
    excess, q = np.ascontiguousarray(excess[:, occurs]), q[occurs]
    if len(p) == 1 or not excess.any():
        return Bracket(0.0, 0.0)
    B = np.empty(excess.shape)
    return _weighted_correlation(B, *kernels.weighted_excess(excess, p, q, B))


def _weighted_correlation(B: Floats, norm: float, before: float) -> Bracket:
    """Maximal correlation from B, its norm and the norm before centring.

    An output as rare as e^-745 makes the second norm infinite. The bracket is then wide.
    """
    # Entries have errors of a few ulp of their sizes before and after centring, q of N + 2.
    rho = _certified(B, roundoff(16.0) * (before + norm) + _UNDERFLOW)
    lower = math.sqrt(max(rho.lower**2 - UNSUMMED**2, 0.0))  # rows that do not sum to one
    return Bracket(lower, rho.upper)


def relative_correlation(excess: Excess, law: Floats, prior: Floats) -> Bracket:
    """Maximal correlation from W[x, y] = distribution(y) (1 + u[x, y]) and a prior.

    B[x, y] = sqrt(p(x) p_Y(y)) r[x, y] with r = W/p_Y - 1.
    """
    seen, alive = prior > 0.0, law > 0.0
    if np.count_nonzero(seen) == 1:  # one database: nothing varies, and errors play no part
        return Bracket(0.0, 0.0)
    p, q = prior[seen] / prior.sum(), law[alive] / law.sum()
    u, errors, growth = excess.restricted(seen, alive)
    r, ratio = centred(u, growth, p)
    weight = np.sqrt(p)[:, None] * np.sqrt(q * ratio)
    B = weight * r
    doubt = weight * ((errors + p @ errors) / ratio + roundoff(16.0) * (np.abs(r) + p @ np.abs(r)))
    return _certified(B, float(np.linalg.norm(doubt)) + (_UNDERFLOW if errors.any() else 0.0))


def _certified(B: Floats, off: float) -> Bracket:
    """Bounds on the norm of a matrix known up to one of norm ``off``, and a relative error."""
    lower, upper = norm_bounds(B)
    relative = sum_error(len(B), 64) + UNSUMMED
    lower = max(lower - off, 0.0) * (1.0 - relative)
    return Bracket(min(lower, 1.0), min((upper + off) * (1.0 + relative), 1.0))


def norm_bounds(B: Floats) -> tuple[float, float]:
    """Bounds on the spectral norm: from below by a vector, from above by a Cholesky factor.

    If floating point completes a Cholesky factor of A = mu I - G, then A >= -g trace(A) with
    g = (s + 2) u (Rump 2006). The error of G = B B' is at most L u times the squared Frobenius
    norm. The relative width is about s^2 u.
    """
    if min(B.shape) <= _FULL:
        return kernels.spectral_bounds(np.ascontiguousarray(B))
    B = B if B.shape[0] <= B.shape[1] else B.T
    size, length = B.shape
    if not B.any():
        return 0.0, 0.0
    scale = 2.0 ** math.floor(math.log2(np.abs(B).max()))
    B = B / scale
    if size > _CERTIFIED:
        norm = lanczos(lambda v: B @ v, lambda u: B.T @ u, size)
        return scale * norm.lower, scale * norm.upper
    frobenius = raised(float(np.linalg.norm(B)), 4.0 * B.size)
    gram = B @ B.T
    top = _top(lambda v: gram @ v, size, 1e-7)  # its value is accurate to 1e-14
    reached = float(np.linalg.norm(top @ B)) - roundoff(size) * frobenius
    lower = max(reached, 0.0) / (raised(float(np.linalg.norm(top)), 4.0 * (size + length)))
    noise = 1.01 * roundoff(length) * frobenius**2
    margin = 4.0 * sum_error(size, 2) * size + noise / max(lower, ULP) ** 2 + 1e-13
    while margin < 1.0:
        mu = lower**2 * (1.0 + margin)
        try:
            np.linalg.cholesky(mu * np.eye(size) - gram)
        except np.linalg.LinAlgError:
            margin *= 4.0
            continue
        bound = mu + 1.01 * sum_error(size, 4) * size * mu + noise
        return scale * lower, scale * min(raised(math.sqrt(bound), 4.0), frobenius)
    return scale * lower, scale * frobenius


def lanczos(apply: Operator, adjoint: Operator, size: int) -> Bracket:
    """Spectral norm of an operator B with ``size`` rows, from the actions of B and B'.

    The lower bound is |B' u| for a unit vector u. The square of the upper bound is the square of
    the lower bound plus the residual of u. Both allow for the rounding of the operator.
    """
    top = _top(lambda u: apply(adjoint(u)), size, _RESIDUAL)
    top = top / np.linalg.norm(top)
    image = adjoint(top)
    reached = float(image @ image)
    residual = float(np.linalg.norm(apply(image) - reached * top))
    lower, upper = math.sqrt(reached), math.sqrt(reached + residual)
    return Bracket(lower * (1.0 - _ROUNDING), upper * (1.0 + _ROUNDING))


def _top(operator: Operator, size: int, residual: float) -> Floats:
    """Approximate vector for the largest eigenvalue of a positive semidefinite operator."""
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

    start = np.random.default_rng(0).standard_normal(size)
    image = operator(start)
    if size < 3 or not image.any():
        return start if not image.any() else image
    form: Any = LinearOperator((size, size), matvec=lambda v: operator(v.ravel()), dtype=float)
    kept = min(size, max(8, min(_KEPT, _VECTORS // size)))
    try:
        _, vectors = eigsh(form, 1, which="LA", v0=start, ncv=kept, maxiter=_RESTARTS, tol=residual)
        return np.asarray(vectors[:, 0])
    except ArpackNoConvergence as failure:
        vectors = failure.eigenvectors
        return np.asarray(vectors[:, 0]) if vectors.size else image
    except ArpackError:  # an operator that is zero up to rounding
        return image


def capped(bracket: Bracket) -> Bracket:
    """Cut both bounds at 1, which no correlation exceeds."""
    return Bracket(min(bracket.lower, 1.0), min(bracket.upper, 1.0))


def sparse_correlation(matrix: Any, prior: Floats) -> Bracket:
    """Maximal correlation of a channel in compressed sparse rows.

    If the graph of possible pairs (x, y) has more than one connected component, input and output
    have a function in common, and the correlation is 1 (Witsenhausen 1975). A matrix with a short
    side is made dense.
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
    rho = lanczos(
        lambda v: joint @ v - root_p * (root_q @ v),
        lambda u: turned @ u - root_q * (root_p @ u),
        size,
    )
    noise = roundoff(size + outputs)
    return capped(Bracket(max(rho.lower - noise, 0.0), rho.upper + noise))
