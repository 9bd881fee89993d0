"""Bounds on the information about a bit of the database, for priors with given posterior ranges.

Inputs x come in two slices a(x), one per value of the bit, and stand for k_x databases each. With
Q_y the chance of the first slice given output y and h the binary entropy,

    I = H(A) - sum_y P(y) h(Q_y).

Where l_y <= Q_y <= u_y, the convex -h lies below its chord, and both that chord, times P(y), and
the two ranges are linear in the prior p. So with t >= 0 for H(X) >= b and lambda >= 0 for the
ranges, C_x lambda >= 0, nothing is above

    U = (1 + t) ln sum_a e^(Z_a/(1 + t)) - t b,      Z_a = t ln sum_{x in a} k_x e^(g_x/t),
    g = chords + C lambda,

a true bound at every (t, lambda), jointly convex. Newton's method with a logarithmic barrier makes
it small.
"""

import math

import numpy as np
from numba import njit

U = 2.0**-53
STEPS = 100
HALVINGS = 12
SHRINK = 0.1  # of the barrier, from one centre to the next
CENTRED = 1.0  # squared Newton decrement, in units of the barrier, at a centre
ROOM = 0.95  # share of the way to the boundary
RIDGE = 1e-12


@njit(nogil=True, cache=True, error_model="numpy")
def _log_sum(g, count, first, last, s, pi):
    """Write the Gibbs law of g[first:last] at temperature s; return s ln sum count e^(g/s)."""
    top = -math.inf
    for x in range(first, last):
        top = max(top, g[x])
    total = 0.0
    for x in range(first, last):
        pi[x] = count[x] * math.exp((g[x] - top) / s)
        total += pi[x]
    for x in range(first, last):
        pi[x] /= total
    return top + s * math.log(total)


@njit(nogil=True, cache=True, error_model="numpy")
def _evaluate(z, score, C, count, edges, b, g, pi, Z, alpha):
    """Return U at z = t, lambda, rounded up; leave the laws of the slices in pi, theirs in alpha.

    ``score`` holds the chords and their rounding errors.
    """
    inputs, slices, t = C.shape[0], edges.size - 1, z[0]
    doubt, most = 0.0, 0.0
    for x in range(inputs):
        total, size = score[0, x], abs(score[0, x])
        for j in range(C.shape[1]):
            step = z[1 + j] * C[x, j]
            total += step
            size += abs(step)
        g[x] = total
        doubt = max(doubt, score[1, x] + (C.shape[1] + 16) * U * size)
    for a in range(slices):
        Z[a] = _log_sum(g, count, edges[a], edges[a + 1], t, pi)
        most = max(most, abs(Z[a]))
    value = _log_sum(Z, np.ones(slices), 0, slices, 1.0 + t, alpha)
    doubt += (inputs + 64) * U * (most + (1.0 + t) * (math.log(count.sum()) + b + 1.0))
    return value - t * b + doubt


@njit(nogil=True, cache=True, error_model="numpy")
def _add_square(H, v, weight):
    """Add weight v v' to the lower triangle."""
    for i in range(v.size):
        step = weight * v[i]
        for j in range(i + 1):
            H[i, j] += step * v[j]


@njit(nogil=True, cache=True, error_model="numpy")
def _derivatives(z, mu, C, edges, b, g, pi, Z, alpha, J, D, G, H):
    """Write gradient and Hessian (lower triangle) of U - mu sum ln z.

    s ln sum e^(g/s) has the gradient (pi, H(pi)) in (g, s), and along (dg, ds) its second
    derivative is the variance of dg - (g/s) ds under pi, divided by s.
    """
    t, size, slices = z[0], z.size, edges.size - 1
    mean = np.zeros(size)
    entropy = 0.0
    G[:] = 0.0
    H[:] = 0.0
    D[:] = 0.0
    for a in range(slices):
        for x in range(edges[a], edges[a + 1]):
            J[x, 0] = -g[x] / t
            for k in range(1, size):
                J[x, k] = C[x, k - 1]
            for k in range(size):
                D[a, k] += pi[x] * J[x, k]
        for x in range(edges[a], edges[a + 1]):
            for k in range(size):
                J[x, k] -= D[a, k]
            _add_square(H, J[x], alpha[a] * pi[x] / t)
        D[a, 0] += Z[a] / t
        for k in range(size):
            G[k] += alpha[a] * D[a, k]
        D[a, 0] -= Z[a] / (1.0 + t)
        for k in range(size):
            mean[k] += alpha[a] * D[a, k]
        if alpha[a] > 0.0:
            entropy -= alpha[a] * math.log(alpha[a])
    for a in range(slices):
        for k in range(size):
            D[a, k] -= mean[k]
        _add_square(H, D[a], alpha[a] / (1.0 + t))
    G[0] += entropy - b
    for k in range(size):
        G[k] -= mu / z[k]
        H[k, k] += mu / (z[k] * z[k])


@njit(nogil=True, cache=True, error_model="numpy")
def _newton(H, G, step):
    """Solve H step = -G by a Cholesky factor in place."""
    size = G.size
    for i in range(size):
        for j in range(i):
            total = H[i, j]
            for k in range(j):
                total -= H[i, k] * H[j, k]
            H[i, j] = total / H[j, j]
        total = H[i, i] * (1.0 + RIDGE)
        for k in range(i):
            total -= H[i, k] * H[i, k]
        H[i, i] = math.sqrt(max(total, 1e-15 * H[i, i], 1e-300))
    for i in range(size):
        total = -G[i]
        for k in range(i):
            total -= H[i, k] * step[k]
        step[i] = total / H[i, i]
    for i in range(size - 1, -1, -1):
        step[i] /= H[i, i]
        for k in range(i):
            step[k] -= H[i, k] * step[i]


@njit(nogil=True, cache=True, error_model="numpy")
def posterior_bound(z, mu, score, C, count, edges, b, floor, reach, p):
    """Make U small from the point z on; return the least seen.

    Stops once U is at most ``floor``, or within ``reach`` of its least. Leaves the last point in z
    and the law of the inputs in p.
    """
    inputs, slices, size = C.shape[0], edges.size - 1, z.size
    g, pi, Z, alpha = np.zeros(inputs), np.zeros(inputs), np.zeros(slices), np.zeros(slices)
    J, D = np.empty((inputs, size)), np.empty((slices, size))
    G, H, step, trial = np.empty(size), np.empty((size, size)), np.empty(size), np.empty(size)
    value = _evaluate(z, score, C, count, edges, b, g, pi, Z, alpha)
    best = value
    for _ in range(STEPS):
        if not floor < best < math.inf:
            break
        _derivatives(z, mu, C, edges, b, g, pi, Z, alpha, J, D, G, H)
        _newton(H, G, step)
        slope, most, height = 0.0, 0.0, value
        for k in range(size):
            slope += G[k] * step[k]
            most = max(most, -step[k] / z[k])
            height -= mu * math.log(z[k])
        if -slope > CENTRED * mu:
            share, moved = ROOM / max(most, ROOM), False
            for _ in range(HALVINGS):
                barrier = 0.0
                for k in range(size):
                    trial[k] = z[k] + share * step[k]
                    barrier += math.log(trial[k])
                found = _evaluate(trial, score, C, count, edges, b, g, pi, Z, alpha)
                if found - mu * barrier <= height + 0.1 * share * slope:
                    moved = True
                    break
                share *= 0.5
            if moved:
                z[:] = trial
                value = found
                best = min(best, value)
                continue
            value = _evaluate(z, score, C, count, edges, b, g, pi, Z, alpha)
        if size * mu <= reach:
            break
        mu *= SHRINK
    for a in range(slices):
        for x in range(edges[a], edges[a + 1]):
            p[x] = alpha[a] * pi[x]
    return best


SIGNATURES = {
    "posterior_bound": [
        "f8(f8[::1], f8, f8[:, ::1], f8[:, ::1], f8[::1], i8[::1], f8, f8, f8, f8[::1])"
    ],
}
