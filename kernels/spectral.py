"""Spectral norms with proved bounds, and the maximal correlation of a matrix.

The norm of B is bounded from below by a vector, and from above by a Cholesky factor of mu I - B B'.
The vector only guides the search. It comes from three diagonals, whose largest eigenvalue is found
by bisection and whose vector has no changes of sign.
"""

import math

import numpy as np

from .arrays import largest_at
from .declare import Matrix, Vector, helper, kernel

U = 2.0**-53
SLACK = 1e-13  # relative, added to the lower bound before the first factor is tried
HALVINGS = 34  # of the interval that contains the largest eigenvalue of three diagonals
SOLVES = 3  # steps of inverse iteration
SCALE = 2.0**600  # keeps products of small probabilities from underflowing
LEAST = 2.0**-400  # a smaller squared norm may have lost digits to underflow


@helper(error_model="numpy")
def _dot(u, v):
    """Return the inner product, as four sums that a processor adds side by side."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    fours = u.size - u.size % 4
    for i in range(0, fours, 4):
        a += u[i] * v[i]
        b += u[i + 1] * v[i + 1]
        c += u[i + 2] * v[i + 2]
        d += u[i + 3] * v[i + 3]
    for i in range(fours, u.size):
        a += u[i] * v[i]
    return (a + b) + (c + d)


@helper(error_model="numpy")
def _add_multiple(u, share, v):
    """Add share v to u."""
    for i in range(u.size):
        u[i] += share * v[i]


@helper(error_model="numpy")
def _three_diagonals(A, diagonal, beside, mirrors):
    """Bring a symmetric matrix to three diagonals by Householder's reflections, A being used up.

    The vectors of the reflections are written to the rows of ``mirrors``.
    """
    n = A.shape[0]
    image = np.empty(n)
    for k in range(n - 2):
        v, part = mirrors[k, k + 1 :], image[k + 1 :]
        for i in range(v.size):
            v[i] = A[k, k + 1 + i]
            part[i] = 0.0
        size = _dot(v, v)
        beside[k] = math.sqrt(size) if v[0] < 0.0 else -math.sqrt(size)
        v[0] -= beside[k]
        size = _dot(v, v)
        if size < LEAST:
            for i in range(v.size):
                v[i] = 0.0
            continue
        scale = math.sqrt(2.0 / size)
        for i in range(v.size):
            v[i] *= scale
        for i in range(v.size):
            _add_multiple(part, v[i], A[k + 1 + i, k + 1 :])
        _add_multiple(part, -0.5 * _dot(v, part), v)
        for i in range(v.size):
            first, second, row = v[i], part[i], A[k + 1 + i, k + 1 :]
            for j in range(v.size):
                row[j] -= first * part[j] + second * v[j]
    if n > 1:
        beside[n - 2] = A[n - 2, n - 1]
    for i in range(n):
        diagonal[i] = A[i, i]


@helper(error_model="numpy")
def _is_above(level, diagonal, squares):
    """Whether a level exceeds all eigenvalues of three diagonals."""
    pivot = level - diagonal[0]
    for i in range(1, diagonal.size):
        if not pivot > 0.0:
            return False
        pivot = level - diagonal[i] - squares[i - 1] / pivot
    return pivot > 0.0


@helper(error_model="numpy")
def _leading(diagonal, beside, mirrors, z):
    """Write about the leading vector of the matrix that three diagonals came from.

    With the signs of the diagonal beside the main one turned to plus, the vector is positive.
    """
    n = diagonal.size
    squares, pivots = np.empty(n), np.empty(n)
    low, high = diagonal[0], 0.0
    for i in range(n):
        squares[i] = beside[i] * beside[i] if i < n - 1 else 0.0
        reach = abs(beside[i]) if i < n - 1 else 0.0
        reach += abs(beside[i - 1]) if i > 0 else 0.0
        low, high = max(low, diagonal[i]), max(high, diagonal[i] + reach)
        z[i] = 1.0
    high *= 1.0 + 64.0 * U
    for _ in range(HALVINGS):
        level = 0.5 * (low + high)
        if _is_above(level, diagonal, squares):
            high = level
        else:
            low = level
    pivots[0] = high - diagonal[0]
    for i in range(1, n):
        pivots[i] = high - diagonal[i] - squares[i - 1] / max(pivots[i - 1], U * high)
    for i in range(n):
        pivots[i] = 1.0 / max(pivots[i], U * high)
    for _ in range(SOLVES):
        most = z[0]
        for i in range(1, n):
            z[i] += abs(beside[i - 1]) * pivots[i - 1] * z[i - 1]
            most = max(most, z[i])
        z[n - 1] *= pivots[n - 1] / most
        for i in range(n - 2, -1, -1):
            z[i] = (z[i] / most + abs(beside[i]) * z[i + 1]) * pivots[i]
        most = z[largest_at(z)]
        for i in range(n):
            z[i] /= most
    sign = 1.0
    for i in range(1, n):
        sign = -sign if beside[i - 1] < 0.0 else sign
        z[i] *= sign
    for k in range(n - 3, -1, -1):
        v = mirrors[k, k + 1 :]
        _add_multiple(z[k + 1 :], -_dot(v, z[k + 1 :]), v)


@helper(error_model="numpy")
def _has_factor(mu, gram, factor):
    """Whether floating point finds a Cholesky factor of mu I - gram, in the upper triangle."""
    n = gram.shape[0]
    for i in range(n):
        for j in range(i, n):
            factor[i, j] = mu - gram[i, i] if j == i else -gram[i, j]
    for k in range(n):
        row = factor[k, k:]
        if not row[0] > 0.0:
            return False
        inverse = 1.0 / math.sqrt(row[0])
        for j in range(1, row.size):
            row[j] *= inverse
        for i in range(1, row.size):
            _add_multiple(factor[k + i, k + i :], -row[i], row[i:])
    return True


@helper(error_model="numpy")
def _norm_bounds(B):
    """Bound the spectral norm of B, which has no more rows than columns and entries below 2.

    If floating point completes a Cholesky factor of A = mu I - G, then A >= -g trace(A) with
    g = (s + 2) u (Rump 2006). The pivots enter by their inverse roots, which adds some roundings
    to each entry. The error of G = B B' is at most L u times the squared Frobenius norm.
    """
    size, length = B.shape
    gram, factor = np.empty((size, size)), np.empty((size, size))
    diagonal, beside, top = np.empty(size), np.empty(size), np.empty(size)
    turned = np.empty((length, size))
    for i in range(size):
        for y in range(length):
            turned[y, i] = B[i, y]
    square = 0.0
    for i in range(size):
        part = gram[i, i:]
        for j in range(part.size):
            part[j] = 0.0
        for y in range(length):
            _add_multiple(part, B[i, y], turned[y, i:])
        for j in range(i, size):
            factor[i, j], factor[j, i] = gram[i, j], gram[i, j]
        square += gram[i, i]
    frobenius = math.sqrt(square) * (1.0 + (size + length + 16) * U)
    mirrors = np.empty((size, size))
    _three_diagonals(factor, diagonal, beside, mirrors)
    _leading(diagonal, beside, mirrors, top)
    image = np.zeros(length)
    for i in range(size):
        _add_multiple(image, top[i], B[i])
    norm = math.sqrt(_dot(top, top))
    # The image of a vector of norm z has an error of at most s u z times the Frobenius norm.
    reached = math.sqrt(_dot(image, image)) * (1.0 - (length + 8) * U)
    lower = reached / norm * (1.0 - (size + 16) * U) - (size + 8) * U * frobenius
    lower = max(lower, 0.0) if lower == lower else 0.0
    noise = 1.01 * (length + 8) * U * frobenius * frobenius
    least = max(lower, U)
    margin = 4.0 * (size + 4) * size * U + noise / (least * least) + SLACK
    while margin < 1.0:
        mu = lower * lower * (1.0 + margin)
        if _has_factor(mu, gram, factor):
            bound = mu + 1.01 * (size + 8) * size * U * mu + noise
            return lower, min(math.sqrt(bound) * (1.0 + 8.0 * U), frobenius)
        margin *= 4.0
    return lower, frobenius


@kernel(small=True, error_model="numpy")
def spectral_bounds(B: Matrix) -> tuple[float, float]:
    """Bound the spectral norm of a matrix from below and above."""
    most = 0.0
    rows, columns = B.shape
    for x in range(rows):
        for y in range(columns):
            most = max(most, abs(B[x, y]))
    if most == 0.0:
        return 0.0, 0.0
    scale = math.ldexp(1.0, math.frexp(most)[1] - 1)
    A = np.empty((min(rows, columns), max(rows, columns)))
    for x in range(rows):
        for y in range(columns):
            if rows <= columns:
                A[x, y] = B[x, y] / scale
            else:
                A[y, x] = B[x, y] / scale
    lower, upper = _norm_bounds(A)
    return scale * lower, scale * upper


# Maximal correlation: the norm of B[x, y] = sqrt(p(x) 2^600 / q(y)) e[x, y], q = pW 2^600.


@helper(error_model="numpy")
def _weighted(excess, p, q, B):
    """Write B for an excess e that is centred here; return its norm, and the norm before centring.

    Differences with the most likely row come first, whose own errors are then zero.
    """
    rows, columns = B.shape
    likely = largest_at(p)
    weight, mean, before, norm = np.empty(columns), np.empty(columns), 0.0, 0.0
    for y in range(columns):
        weight[y] = 1.0 / math.sqrt(q[y]) if q[y] > 0.0 else 0.0
    base = excess[likely].copy()
    for x in range(rows):
        root, part = math.sqrt(p[x] * SCALE), 0.0
        for y in range(columns):
            size = abs(excess[x, y]) + abs(base[y]) if x != likely else 0.0
            size *= root * weight[y]
            part += size * size
            B[x, y] = excess[x, y] - base[y]
        before += part
    for _ in range(2):  # the second pass removes the rounding error of the first
        for y in range(columns):
            mean[y] = 0.0
        for x in range(rows):
            _add_multiple(mean, p[x], B[x])
        for x in range(rows):
            _add_multiple(B[x], -1.0, mean)
    for x in range(rows):
        root = math.sqrt(p[x] * SCALE)
        for y in range(columns):
            B[x, y] *= root * weight[y]
        norm += _dot(B[x], B[x])
    return math.sqrt(norm), math.sqrt(before)


@kernel(small=True, error_model="numpy")
def weighted_excess(excess: Matrix, p: Vector, q: Vector, B: Matrix) -> tuple[float, float]:
    """Write B for W minus any vector common to its rows; return its norm, and that before."""
    return _weighted(excess, p, q, B)


@kernel(small=True, error_model="numpy")
def weighted_joint(W: Matrix, prior: Vector, B: Matrix) -> tuple[float, float, int]:
    """Write B of a matrix and a prior; return its norm, that before, and the number of inputs.

    Inputs of probability 0 are not counted. 0 inputs are returned if no two of them differ.
    """
    rows, columns = W.shape
    p, q = np.empty(rows), np.zeros(columns)
    total, lost, count = 0.0, 0.0, 0
    for x in range(rows):  # a sum that keeps what it loses to rounding
        step = prior[x] - lost
        after = total + step
        lost, total = (after - total) - step, after
        count += 1 if prior[x] > 0.0 else 0
    for x in range(rows):
        p[x] = prior[x] / total
        _add_multiple(q, p[x] * SCALE, W[x])
    likely, differ = largest_at(p), False
    for x in range(rows):
        for y in range(columns):
            B[x, y] = W[x, y] - W[likely, y]
            differ = differ or (B[x, y] != 0.0 and p[x] > 0.0 and q[y] > 0.0)
    norm, before = _weighted(B, p, q, B)
    return norm, before, count if differ else 0
