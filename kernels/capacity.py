"""Shannon capacity of finite channels: the largest mutual information over input distributions.

For an input distribution p with output distribution q = p W, the divergences of the rows bracket
the capacity,

    sum_x p_x D(W_x, q) = I(p) <= C <= max_x D(W_x, q),      D(w, q) = sum_y w ln(w/q) - w + q,

and the right-hand side holds for any q >= 0 whatever.  Both sides are sums of non-negative terms
whose differences w - q are kept to full precision, so a capacity of 1e-17 has as many digits as
one of 1.  With u = 2^-53, a term is good to 100 u (logarithms are trusted to an ulp) and a sum of
K terms to K u more; 128 + K are granted.

Two rows: Halley's method on D(W_0, q) - D(W_1, q), which falls in p_0.  More rows: a primal-dual
interior-point method for max I(p), p >= 0, sum p = 1, whose Newton matrix is V V' + diag(z/p)
with V = (W - q)/sqrt(q).  Rounding or a step limit may end either early; the bracket stays true.
"""

import math

import numpy as np

from .arrays import SHORT, copy, largest, largest_at, sum_of
from .convex import divergence
from .declare import Cube, Matrix, Vector, helper, in_any_order, kernel

U = 2.0**-53
TINY = 2.0**-1021  # output probabilities below enter as this one
LEAST = 1e-280  # positive capacities below are only bounded by it: TINY would spoil them
STEPS = 100
STALLED = 5  # steps without a tenth less gap: rounding has won
ROOT_STEPS = 60
CENTRED = 0.1  # complementarity at the start, as a share of the largest divergence
RIDGE = 1e-14  # relative, for rows that depend on each other
ROOM = 0.995  # share of the way to the boundary
TILE = 32  # rows of a tile of the Newton matrix
CHUNK = 256  # outputs of a tile
LARGE = 1 << 26  # multiplications from which BLAS is worth its threads


@helper(error_model="numpy")
def _constant(W):
    """Whether all rows are the same."""
    for x in range(1, W.shape[0]):
        for y in range(W.shape[1]):
            if W[x, y] != W[0, y]:
                return False
    return True


@kernel(small=True, error_model="numpy")
def two_row_capacities(
    W: Cube, gap: float, start: int, stop: int, lower: Vector, upper: Vector, law: Matrix
) -> None:
    """Brackets and input distributions of channels start <= b < stop of W (B, 2, K).

    The weight t of row 0 is exact, and so are the differences (1 - t) d and -t d to the output
    distribution, d = W_0 - W_1, up to an ulp or three. The best t is in [1/e, 1 - 1/e] for any two
    rows (Majani and Rumsey 1991), and Halley's method from 1/2 converges there.
    """
    outputs = W.shape[2]
    error = (outputs + 132) * U
    for b in range(start, stop):
        low, high, t = 1.0 / 3.0, 2.0 / 3.0, 0.5
        lower[b], upper[b], law[b, 0], law[b, 1] = 0.0, math.inf, t, 1.0 - t
        for _ in range(ROOT_STEPS):
            rest = 1.0 - t
            first, second, slope, bend = 0.0, 0.0, 0.0, 0.0
            for y in range(outputs):
                v, w = W[b, 0, y], W[b, 1, y]
                d = v - w
                if d != 0.0:
                    q = max(t * v + rest * w, TINY)
                    first += divergence(v, q, rest * d)
                    second += divergence(w, q, -t * d)
                    r = d / q
                    slope += d * r
                    bend += d * r * r
            most = max(first, second)
            reached, bound = (t * first + rest * second) * (1.0 - error), most * (1.0 + error)
            if most < LEAST:
                lower[b], upper[b] = 0.0, 0.0 if _constant(W[b]) else LEAST
                break
            if bound - reached < upper[b] - lower[b]:
                lower[b], upper[b], law[b, 0], law[b, 1] = reached, bound, t, rest
            if bound - reached <= max(gap * min(1.0, reached), 4.0 * error * most):
                break
            excess = first - second
            if excess > 0.0:
                low = t
            else:
                high = t
            # The excess has derivative -slope and second derivative bend in t.
            t += excess / (slope - 0.5 * excess * bend / slope)
            if not low < t < high:
                t = 0.5 * (low + high)


@kernel(error_model="numpy")
def two_row_divergences(W: Cube, chance: Vector, out: Matrix) -> None:
    """Write D(W_0, q) and D(W_1, q) of channels W (B, 2, K), q at the probabilities of row 1.

    Relative errors are at most K + 132 units, as for capacities.
    """
    for b in range(W.shape[0]):
        t = chance[b]
        first, second = 0.0, 0.0
        for y in range(W.shape[2]):
            v, w = W[b, 0, y], W[b, 1, y]
            d = v - w
            if d != 0.0:
                q = max((1.0 - t) * v + t * w, TINY)
                first += divergence(v, q, t * d)
                second += divergence(w, q, -(1.0 - t) * d)
        out[b, 0], out[b, 1] = first, second


@kernel(small=True, error_model="numpy")
def output_law(W: Matrix, p: Vector, q: Vector, c: Vector) -> float:
    """Write the p-mean of the rows as q + c, c below an ulp of q; bound the effect of its error.

    The mean is taken relative to the heaviest row, so that rows close together have small
    terms. Being off by e_y costs at most sum e_y^2 / q_y of information. (While the rows are
    added, c holds the absolute values of the terms, which bound the error.)
    """
    inputs, outputs = W.shape
    ref = largest_at(p)
    mass = 0.0
    q[:] = 0.0
    c[:] = 0.0
    for x in range(inputs):
        mass += p[x]
        if x != ref:
            for y in range(outputs):
                step = p[x] * (W[x, y] - W[ref, y])
                q[y] += step
                c[y] += abs(step)
    off = 0.0
    for y in range(outputs):
        base, shift = W[ref, y], q[y] / mass
        mean = base + shift
        back = mean - base
        if mean >= TINY:
            error = (inputs + 8) * U * c[y] / mass
            off += error * error / mean
            q[y], c[y] = mean, (base - (mean - back)) + (shift - back)
        else:
            q[y], c[y] = 0.0, 0.0
            for x in range(inputs):
                if W[x, y] > 0.0:
                    q[y] = TINY
            off += q[y]
    return off


@kernel(small=True, error_model="numpy")
def row_divergences(W: Matrix, q: Vector, c: Vector, start: int, stop: int, out: Vector) -> float:
    """Write D(W_x, q + c) for rows start <= x < stop; return the largest, rounded up."""
    most = 0.0
    for x in range(start, stop):
        total = 0.0
        for y in range(q.size):
            total += divergence(W[x, y], q[y], (W[x, y] - q[y]) - c[y])
        out[x] = total
        most = max(most, total)
    return most * (1.0 + (q.size + 128) * U)


@helper(error_model="numpy")
def _bracket(W, p, q, c, D):
    """Bracket by one input distribution; leaves the output in q + c and the divergences in D."""
    off = output_law(W, p, q, c)
    upper = row_divergences(W, q, c, 0, p.size, D)
    value, mass = 0.0, 0.0
    for x in range(p.size):
        value += p[x] * D[x]
        mass += p[x]
    error = (q.size + 128 + 2 * p.size + 8) * U
    return max(value / mass * (1.0 - error) - off, 0.0), upper


@helper()
def _short_dots(A, i, j, first, last):
    """Products of rows i, i+1 with rows j, j+1 of A over columns first <= y < last."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for y in range(first, last):
        a += A[i, y] * A[j, y]
        b += A[i, y] * A[j + 1, y]
        c += A[i + 1, y] * A[j, y]
        d += A[i + 1, y] * A[j + 1, y]
    return a, b, c, d


_long_dots = in_any_order(_short_dots)


@helper()
def _dots(A, i, j, first, last):
    """Products of rows, in one order if there are few terms."""
    if last - first <= SHORT:
        return _short_dots(A, i, j, first, last)
    return _long_dots(A, i, j, first, last)


@helper()
def _short_dot(A, i, j, last):
    """Product of rows i and j of A over the first ``last`` columns."""
    total = 0.0
    for y in range(last):
        total += A[i, y] * A[j, y]
    return total


_long_dot = in_any_order(_short_dot)


@helper()
def _dot(A, i, j, last):
    """Product of two rows, in one order if there are few terms."""
    return _short_dot(A, i, j, last) if last <= SHORT else _long_dot(A, i, j, last)


@helper()
def _gram(V, M):
    """Lower triangle of V V', two by two entries at a time in tiles that stay in cache.

    Large ones go to BLAS in one call; many smaller calls would wait for its threads each time.
    """
    inputs, outputs = V.shape
    if inputs * inputs * outputs > LARGE:
        np.dot(V, V.T, M)
        return
    even = inputs - inputs % 2
    M[:] = 0.0
    for first in range(0, outputs, CHUNK):
        last = min(first + CHUNK, outputs)
        for left in range(0, even, TILE):
            for i in range(left, even, 2):
                for j in range(left, min(left + TILE, i + 1), 2):
                    a, b, c, d = _dots(V, i, j, first, last)
                    M[i, j] += a
                    M[i, j + 1] += b
                    M[i + 1, j] += c
                    M[i + 1, j + 1] += d
    if even < inputs:
        for j in range(inputs):
            M[even, j] = _dot(V, even, j, outputs)


@helper(error_model="numpy")
def _cholesky(M):
    """Factor the lower triangle in place; a pivot lost to rounding is raised to 1e-15."""
    size = M.shape[0]
    for i in range(size):
        for j in range(i):
            M[i, j] = (M[i, j] - _dot(M, i, j, j)) / M[j, j]
        M[i, i] = math.sqrt(max(M[i, i] - _dot(M, i, i, i), 1e-15 * M[i, i]))


@helper(error_model="numpy")
def _solve(M, v):
    """Solve L L' v = v in place."""
    size = v.size
    for i in range(size):
        total = v[i]
        for k in range(i):
            total -= M[i, k] * v[k]
        v[i] = total / M[i, i]
    for i in range(size - 1, -1, -1):
        v[i] /= M[i, i]
        for k in range(i):
            v[k] -= M[i, k] * v[i]


@helper(error_model="numpy")
def _direction(M, ones, dp):
    """Turn a pull in dp into the step: M dp = pull - lambda 1, sum dp = 0; ones = M^-1 1."""
    _solve(M, dp)
    shift = sum_of(dp) / sum_of(ones)
    for x in range(dp.size):
        dp[x] -= shift * ones[x]


@helper(error_model="numpy")
def _room(v, dv, share):
    """Return ``share`` of the step at which some v + step dv is 0, at most 1."""
    most = 0.0
    for x in range(v.size):
        most = max(most, -dv[x] / v[x])
    return share / max(most, share)


@helper(error_model="numpy")
def _advance(p, z, pull, M, ones, dp, dz):
    """One predictor-corrector step for pull + z = lambda 1, p z = 0, sum p = 1, p, z >= 0.

    ``pull`` holds the divergences up to a constant, M comes as V V'; M, ones, dp and dz are
    overwritten.
    """
    size = p.size
    for x in range(size):
        M[x, x] = M[x, x] * (1.0 + RIDGE) + z[x] / p[x]
        ones[x], dp[x] = 1.0, pull[x]
    _cholesky(M)
    _solve(M, ones)
    _direction(M, ones, dp)
    for x in range(size):
        dz[x] = -z[x] - z[x] / p[x] * dp[x]
    along, across = _room(p, dp, 1.0), _room(z, dz, 1.0)
    before, after = 0.0, 0.0
    for x in range(size):
        before += p[x] * z[x]
        after += (p[x] + along * dp[x]) * (z[x] + across * dz[x])
    ratio = after / before
    aim = ratio * ratio * ratio * before / size
    for x in range(size):
        dz[x] = (aim - dp[x] * dz[x]) / p[x]
        dp[x] = pull[x] + dz[x]
    _direction(M, ones, dp)
    for x in range(size):
        dz[x] -= z[x] + z[x] / p[x] * dp[x]
    along, across = _room(p, dp, ROOM), _room(z, dz, ROOM)
    for x in range(size):
        p[x] += along * dp[x]
        z[x] += across * dz[x]


@helper(error_model="numpy")
def _climb(W, gap, over_inputs, over_outputs, V, M, law):
    """Bracket of one channel, and its input distribution; other arrays are workspace."""
    inputs, outputs = W.shape
    q, c, root = over_outputs[0], over_outputs[1], over_outputs[2]
    p, z, D, pull = over_inputs[0], over_inputs[1], over_inputs[2], over_inputs[3]
    ones, dp, dz = over_inputs[4], over_inputs[5], over_inputs[6]
    p[:] = 1.0 / inputs
    lower, upper = _bracket(W, p, q, c, D)
    copy(p, law)
    scale = largest(D)
    if scale < LEAST:
        return 0.0, 0.0 if _constant(W) else LEAST
    for x in range(inputs):
        z[x] = 1.0 + CENTRED - D[x] / scale
    rounding = (4 * outputs + 4 * inputs + 512) * U
    stalled = 0
    for _ in range(STEPS):
        if upper - lower <= max(gap * min(1.0, lower), rounding * upper) or stalled == STALLED:
            break
        for y in range(outputs):
            root[y] = 1.0 / math.sqrt(q[y] * scale) if q[y] > 0.0 else 0.0
        for x in range(inputs):
            pull[x] = (D[x] - lower) / scale
            for y in range(outputs):
                V[x, y] = ((W[x, y] - q[y]) - c[y]) * root[y]
        _gram(V, M)
        _advance(p, z, pull, M, ones, dp, dz)
        reached, bound = _bracket(W, p, q, c, D)
        stalled = 0 if bound - reached < 0.9 * (upper - lower) else stalled + 1
        if bound - reached < upper - lower:
            lower, upper = reached, bound
            copy(p, law)
    return lower, upper


@kernel(small=2 * SHORT, error_model="numpy")
def capacities(
    W: Cube, gap: float, start: int, stop: int, lower: Vector, upper: Vector, law: Matrix
) -> None:
    """Brackets and input distributions of channels start <= b < stop of W (B, N, K)."""
    inputs, outputs = W.shape[1], W.shape[2]
    over_inputs, over_outputs = np.empty((7, inputs)), np.empty((3, outputs))
    V, M = np.empty((inputs, outputs)), np.empty((inputs, inputs))
    for b in range(start, stop):
        lower[b], upper[b] = _climb(W[b], gap, over_inputs, over_outputs, V, M, law[b])
        mass = sum_of(law[b])
        for x in range(inputs):
            law[b, x] /= mass


@kernel(small=True, error_model="numpy")
def are_channels(W: Cube, off: float) -> bool:
    """Whether all entries are finite and non-negative and all rows sum to 1 within ``off``."""
    for b in range(W.shape[0]):
        for x in range(W.shape[1]):
            total = 0.0
            for y in range(W.shape[2]):
                if not W[b, x, y] >= 0.0:
                    return False
                total += W[b, x, y]
            if not abs(total - 1.0) <= off:
                return False
    return True
