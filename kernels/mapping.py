"""Newton steps to minimise I(S; Y) under a distortion budget, one output at a time.

Arrays over outputs and inputs are [y, x], over outputs and secrets [y, s].
"""

import math
from typing import Any, NamedTuple

import numpy as np

from .arrays import copy, dot
from .declare import Cube, Matrix, Vector, helper, kernel

ULP = 2.0**-53


@helper(fastmath={"contract"})
def _add_gram(M, T):
    """Add M'M to the upper half of T, four rows of M at a time so that T is passed over less."""
    rows, n = M.shape
    last = rows - rows % 4
    for s in range(0, last, 4):
        for i in range(n):
            a, b, c, d = M[s, i], M[s + 1, i], M[s + 2, i], M[s + 3, i]
            for g in range(i, n):
                T[i, g] += (a * M[s, g] + b * M[s + 1, g]) + (c * M[s + 2, g] + d * M[s + 3, g])
    for s in range(last, rows):
        for i in range(n):
            a = M[s, i]
            for g in range(i, n):
                T[i, g] += a * M[s, g]


@helper(fastmath={"contract"})
def _factor(T):
    """Turn the upper half of T into U with T = U'U; False if a pivot is lost to rounding."""
    size = T.shape[0]
    for c in range(size):
        if not T[c, c] > 0.0:
            return False
        pivot = 1.0 / math.sqrt(T[c, c])
        for g in range(c, size):
            T[c, g] *= pivot
        for i in range(c + 1, size):
            a = T[c, i]
            for g in range(i, size):
                T[i, g] -= a * T[c, g]
    return True


@helper(fastmath={"contract"})
def _substitute(U, M, triangle):
    """Turn M into U'^-1 M; a lower triangle (from M = 1) stays one and costs a third."""
    size, n = M.shape
    for i in range(size):
        last = i - i % 4
        for g in range(0, last, 4):
            a, b, c, d = U[g, i], U[g + 1, i], U[g + 2, i], U[g + 3, i]
            for x in range(g + 4 if triangle else n):
                M[i, x] -= (a * M[g, x] + b * M[g + 1, x]) + (c * M[g + 2, x] + d * M[g + 3, x])
        for g in range(last, i):
            a = U[g, i]
            for x in range(g + 1 if triangle else n):
                M[i, x] -= a * M[g, x]
        pivot = 1.0 / U[i, i]
        for x in range(i + 1 if triangle else n):
            M[i, x] *= pivot


@kernel(error_model="numpy")
def mapping_factor(
    A: Matrix,
    r: Matrix,
    j: Matrix,
    e: Matrix,
    few: bool,
    first: int,
    last: int,
    K: Cube,
    gram: Matrix,
) -> bool:
    """Factor the outputs first <= y < last and add K_y' K_y to the upper half of gram.

    With R = (A - r)/sqrt(j) e, the inverse B^-1 = e (1 + R'R)^-1 e of output y is K'K, or for few
    secrets e^2 - K'K, from a system of as many unknowns as there are secrets. Loops, not BLAS:
    its threads would compete with ours. False if rounding errors are too large.
    """
    k, n = A.shape
    size = k if few else n
    R = np.empty((k, n))
    T = np.empty((size, size))
    turned = np.empty((n, k) if few else (0, 0))
    for y in range(first, last):
        for s in range(k):
            weight = 1.0 / math.sqrt(j[y, s])
            for x in range(n):
                R[s, x] = (A[s, x] - r[y, s]) * weight * e[y, x]
        T[:] = 0.0
        if few:
            for s in range(k):
                for x in range(n):
                    turned[x, s] = R[s, x]
            _add_gram(turned, T)
        else:
            _add_gram(R, T)
        scale = 0.0
        for i in range(size):
            scale += T[i, i]
        if few:  # sqrt(r) R = 0, and no right-hand side points that way: any weight will do
            for i in range(size):
                for g in range(i, size):
                    T[i, g] += scale * math.sqrt(r[y, i] * r[y, g])
        for i in range(size):
            T[i, i] += 1.0 + 8.0 * ULP * scale
        if not _factor(T):
            return False
        for i in range(size):
            for x in range(n):
                unit = 1.0 if i == x else 0.0
                K[y, i, x] = R[i, x] if few else unit
        _substitute(T, K[y], not few)
        for i in range(size):
            for x in range(n):
                K[y, i, x] *= e[y, x]
        _add_gram(K[y], gram)
    return True


@helper(fastmath={"contract"})
def _apply(K, e, few, F, out):
    """Set out = B^-1 F for every output."""
    out[:] = 0.0
    for y in range(F.shape[0]):
        for i in range(K.shape[1]):
            c = dot(K[y, i], F[y])
            for x in range(F.shape[1]):
                out[y, x] += c * K[y, i, x]
        if few:
            for x in range(F.shape[1]):
                out[y, x] = e[y, x] * e[y, x] * F[y, x] - out[y, x]


class System(NamedTuple):
    """The factored Newton system at one point."""

    d: Any
    V: Any
    Z: Any
    allowed: Any
    pull: Any
    short: Any
    over: Any
    slope: Any
    t: Any
    K: Any
    e: Any
    few: Any
    root: Any
    U: Any


@helper(error_model="numpy")
def _coupling(d, ratio, K, e, few, gram):
    """Row sums and budget as a system of |X| + 1 unknowns, scaled to a unit diagonal, factored."""
    m, n = d.shape
    Bd = np.empty((m, n))
    _apply(K, e, few, d, Bd)
    schur = np.zeros((n + 1, n + 1))
    sign = -1.0 if few else 1.0
    for x in range(n):
        for g in range(x, n):
            schur[x, g] = sign * gram[x, g]
    schur[n, n] = ratio
    for y in range(m):
        for x in range(n):
            if few:
                schur[x, x] += e[y, x] * e[y, x]
            schur[x, n] -= Bd[y, x]
            schur[n, n] += d[y, x] * Bd[y, x]
    root = np.empty(n + 1)
    for x in range(n + 1):
        root[x] = 1.0 / math.sqrt(max(schur[x, x], 1e-300))
    for x in range(n + 1):
        for g in range(x, n + 1):
            schur[x, g] *= root[x] * root[g]
        schur[x, x] += 8.0 * ULP
    return root, schur, _factor(schur)


@helper(error_model="numpy")
def _solve(U, b):
    """Turn b into (U'U)^-1 b."""
    for i in range(b.size):
        b[i] /= U[i, i]
        for g in range(i + 1, b.size):
            b[g] -= U[i, g] * b[i]
    for i in range(b.size - 1, -1, -1):
        b[i] = (b[i] - dot(U[i, i + 1 :], b[i + 1 :])) / U[i, i]


@helper(error_model="numpy")
def _towards(target, last, f, dV, dZ, dmu):
    """Fill the step that adds ``target`` to V Z and ``last`` to slope t; also its length."""
    m, n = f.d.shape
    F = np.zeros((m, n))
    for y in range(m):
        for x in range(n):
            if f.allowed[y, x] > 0.0:
                F[y, x] = target[y, x] / f.V[y, x] - f.pull[y, x]
    ahead, both = np.empty((m, n)), np.empty(n + 1)
    _apply(f.K, f.e, f.few, F, ahead)
    copy(f.short, both)
    both[n] = last / f.slope - f.over
    for y in range(m):
        for x in range(n):
            both[x] -= ahead[y, x]
            both[n] += f.d[y, x] * ahead[y, x]
    for x in range(n + 1):
        both[x] *= f.root[x]
    _solve(f.U, both)
    for x in range(n + 1):
        both[x] *= f.root[x]
    for x in range(n):
        dmu[x] = both[x]
    dslope = both[n]
    for y in range(m):
        for x in range(n):
            F[y, x] += dmu[x] - dslope * f.d[y, x]
    _apply(f.K, f.e, f.few, F, dV)
    dt = (last - f.t * dslope) / f.slope
    shrink = max(1.0, -dt / f.t, -dslope / f.slope)
    for y in range(m):
        for x in range(n):
            dZ[y, x] = 0.0
            if f.allowed[y, x] > 0.0:
                dZ[y, x] = (target[y, x] - f.Z[y, x] * dV[y, x]) / f.V[y, x]
                shrink = max(shrink, -dZ[y, x] / f.Z[y, x], -dV[y, x] / f.V[y, x])
    return dslope, dt, 1.0 / shrink


@kernel(error_model="numpy")
def mapping_direction(
    A: Matrix,
    p: Vector,
    d: Matrix,
    allowed: Matrix,
    budget: float,
    V: Matrix,
    Z: Matrix,
    r: Matrix,
    j: Matrix,
    prices: Matrix,
    mu: Vector,
    slope: float,
    t: float,
    K: Cube,
    e: Matrix,
    few: bool,
    gram: Matrix,
) -> tuple[Matrix, Matrix, Matrix, Vector, float, float, float]:
    """Return one predictor-corrector step of V, Z, eta, mu, slope and t, and its length.

    The length is 0 if rounding errors are too large.
    """
    (k, n), m = A.shape, len(V)
    wrong, pull, deta = np.empty((m, k)), np.empty((m, n)), np.zeros((m, k))
    short, dmu = np.empty(n), np.zeros(n)
    copy(p, short)
    dV, dZ, target = np.zeros((m, n)), np.zeros((m, n)), np.zeros((m, n))
    over, comp, count = budget - t, slope * t, 1.0
    for y in range(m):
        for x in range(n):
            short[x] -= V[y, x]
            over -= d[y, x] * V[y, x]
            pull[y, x] = prices[y, x] - mu[x] - Z[y, x]  # slack of the price
            target[y, x] = -V[y, x] * Z[y, x]
            comp -= target[y, x]
            count += allowed[y, x]
        for s in range(k):  # residual of posteriors that differ from V
            wrong[y, s] = dot(A[s], V[y]) - j[y, s]
            c = wrong[y, s] / j[y, s]
            for x in range(n):
                pull[y, x] += c * A[s, x]
    root, U, good = _coupling(d, t / slope, K, e, few, gram)
    if not good:
        return dV, dZ, deta, dmu, 0.0, 0.0, 0.0
    f = System(d, V, Z, allowed, pull, short, over, slope, t, K, e, few, root, U)
    dslope, dt, a = _towards(target, -slope * t, f, dV, dZ, dmu)
    after = (slope + a * dslope) * (t + a * dt)
    for y in range(m):
        for x in range(n):
            after += (V[y, x] + a * dV[y, x]) * (Z[y, x] + a * dZ[y, x])
    aim = (after / comp) ** 3 * comp / count
    for y in range(m):
        for x in range(n):
            target[y, x] = allowed[y, x] * (aim - V[y, x] * Z[y, x] - dV[y, x] * dZ[y, x])
    dslope, dt, a = _towards(target, aim - slope * t - dslope * dt, f, dV, dZ, dmu)
    for y in range(m):
        mass = 0.0
        for x in range(n):
            mass += dV[y, x]
        for s in range(k):
            deta[y, s] = (wrong[y, s] + dot(A[s], dV[y]) - r[y, s] * mass) / j[y, s]
    return dV, dZ, deta, dmu, dslope, dt, a
