"""Bounds on the information about one record of a database whose prior has a minimum entropy.

Inputs x come in slices a(x), one per value of the record. Each stands for k_x databases with equal
output distributions; ln k_x is given. With V_a the output distribution of slice a and r any output
distribution, the information is

    I = sum_a P(a) D(V_a || r) - D(q || r),      D(v, r) = sum_y v ln(v/r) - v + r,

so that with E = W - r nothing cancels, however small the information is. It is large if the convex
D(V_a || r) is large. A bound replaces it by a combination, with weights >= 0 that sum to 1, of
functions that are nowhere below it for any distribution pi of the slice in a simplex:

    sum_x pi_x near_x        between the corners of the simplex, where pi B >= 0,
    sum_x pi_x touch_x - theta H(pi)      from D(V || V') <= theta D(pi || pi'),

(two of the last kind; the second may have theta = 0 and be the one between the inputs), and D(q ||
r) by its tangent at any q = r + omega base, where base is E or spans as much. The rest is linear in
the distribution p of the inputs, apart from entropies. So with t >= 0 for the constraint H(X) >= b,
lambda >= 0 for pi B >= 0 and s_a = t minus the thetas times their weights, the largest value is two
sums of exponentials,

    U = t ln sum_a e^(Z_a/t) - t b + D(r, q),      Z_a = s_a ln sum_{x in a} k_x e^(g_x/s_a),
    g_x = combination - sum_y E_xy ln(q_y/r_y) + sum_j lambda_aj B_xj,

a true bound at every point (omega, t, weights, lambda), and jointly convex in it. Newton's method
with a logarithmic barrier makes it small.
"""

import math

import numpy as np

from .arrays import copy
from .convex import add_square, divergence, log_sum, log_total, newton_step
from .declare import Ints, Matrix, Vector, helper, kernel

U = 2.0**-53
STEPS = 150
HALVINGS = 12
SHRINK = 0.1  # of the barrier, from one centre to the next
CENTRED = 1.0  # squared Newton decrement, in units of the barrier, at a centre
ROOM = 0.95  # share of the way to the boundary


@helper(error_model="numpy")
def _evaluate(z, E, base, r, logs, edges, theta, lines, B, rough, b, d, g, pi, Z, alpha):
    """Return the bound U at z, rounded up, or inf outside; and its parts.

    z = omega, t, then for every slice its second and third weight and its lambda. ``lines`` holds
    the three functions and bounds on their rounding errors; ``rough`` is the relative error of B.
    Leaves q - r in d, the distributions of the slices in pi and their own in alpha.
    """
    inputs, outputs, slices, corners = E.shape[0], E.shape[1], theta.shape[1], B.shape[1]
    mixed = base.shape[0]
    for k in range(z.size):
        if not z[k] > 0.0:
            return math.inf
    common, lost, rise = 0.0, 0.0, np.empty(outputs)
    for y in range(outputs):
        total = 0.0
        for k in range(mixed):
            total += z[k] * base[k, y]
        if not r[y] + total > 0.0:
            return math.inf
        d[y] = total
        rise[y] = math.log1p(total / r[y])
        common += divergence(r[y], r[y] + total, -total)
        lost += 4.0 * U * r[y] * abs(total) / (r[y] + total)  # cancellation in r + d
    t, doubt, most = z[mixed], 0.0, 0.0
    for a in range(slices):
        at = mixed + 1 + a * (2 + corners)
        second, third = z[at], z[at + 1]
        rest, s = 1.0 - second - third, t - theta[0, a] * second - theta[1, a] * third
        if not (rest > 0.0 and s > 0.0):
            return math.inf
        for x in range(edges[a], edges[a + 1]):
            near, one, two = rest * lines[0, x], second * lines[1, x], third * lines[2, x]
            total, size, loose = near + one + two, abs(near) + abs(one) + abs(two), lines[3, x]
            for y in range(outputs):
                step = E[x, y] * rise[y]
                total -= step
                size += abs(step) + abs(E[x, y] * d[y]) / (r[y] + d[y])
            for j in range(corners):
                step = z[at + 2 + j] * B[x, j]
                total += step
                size += abs(step)
                loose += rough[a] * abs(step)
            g[x] = total
            doubt = max(doubt, loose + (outputs + corners + 16) * U * size)
        Z[a] = log_sum(g, logs, edges[a], edges[a + 1], s, pi)
        most = max(most, abs(Z[a]))
    value = log_sum(Z, np.zeros(slices), 0, slices, t, alpha)
    doubt += (inputs + 64) * U * (most + t * (log_total(logs) + b + 1.0))
    return value - t * b + common * (1.0 + (outputs + 128) * U) + doubt + lost


@helper(error_model="numpy")
def _barrier(z, theta, mixed, corners):
    """Sum of the logarithms of all that has to be positive."""
    total = 0.0
    for k in range(z.size):
        total += math.log(z[k])
    for a in range(theta.shape[1]):
        at = mixed + 1 + a * (2 + corners)
        s = z[mixed] - theta[0, a] * z[at] - theta[1, a] * z[at + 1]
        total += math.log(1.0 - z[at] - z[at + 1]) + math.log(s)
    return total


@helper(error_model="numpy")
def _room(z, step, theta, mixed, corners):
    """Return a share of the step, at most all of it, after which all is positive still."""
    most = 0.0
    for k in range(z.size):
        most = max(most, -step[k] / z[k])
    for a in range(theta.shape[1]):
        at = mixed + 1 + a * (2 + corners)
        most = max(most, (step[at] + step[at + 1]) / (1.0 - z[at] - z[at + 1]))
        s = z[mixed] - theta[0, a] * z[at] - theta[1, a] * z[at + 1]
        ds = step[mixed] - theta[0, a] * step[at] - theta[1, a] * step[at + 1]
        most = max(most, -ds / s)
    return ROOM / max(most, ROOM)


@helper(error_model="numpy")
def _derivatives(z, mu, E, base, r, edges, theta, lines, B, b, d, g, pi, Z, alpha, J, D, G, H):
    """Write gradient and Hessian (lower triangle) of U - mu times the barrier.

    s ln sum e^(g/s) has the gradient (pi, H(pi)) in (g, s), and along (dg, ds) its second
    derivative is the variance of dg - (g/s) ds under pi, divided by s.
    """
    inputs, outputs, slices, corners = E.shape[0], E.shape[1], theta.shape[1], B.shape[1]
    size, t, mixed = z.size, z[base.shape[0]], base.shape[0]
    G[:] = 0.0
    H[:] = 0.0
    J[:] = 0.0
    D[:] = 0.0
    for y in range(outputs):
        q = r[y] + d[y]
        mass, each = r[y], np.divide(1.0, q)
        for x in range(inputs):
            step = E[x, y] * each
            for k in range(mixed):
                J[x, k] -= step * base[k, y]
        for a in range(slices):
            for x in range(edges[a], edges[a + 1]):
                mass += alpha[a] * pi[x] * E[x, y]
        for k in range(mixed):
            G[k] += d[y] / q * base[k, y]
            step = mass / (q * q) * base[k, y]
            for j in range(k + 1):
                H[k, j] += step * base[j, y]
    mean = np.zeros(size)
    value = 0.0
    for a in range(slices):
        at = mixed + 1 + a * (2 + corners)
        s = t - theta[0, a] * z[at] - theta[1, a] * z[at + 1]
        for x in range(edges[a], edges[a + 1]):
            pull = g[x] / s
            J[x, mixed] = -pull
            J[x, at] = lines[1, x] - lines[0, x] + theta[0, a] * pull
            J[x, at + 1] = lines[2, x] - lines[0, x] + theta[1, a] * pull
            for j in range(corners):
                J[x, at + 2 + j] = B[x, j]
            for k in range(size):
                D[a, k] += pi[x] * J[x, k]
        for x in range(edges[a], edges[a + 1]):
            for k in range(size):
                J[x, k] -= D[a, k]
            add_square(H, J[x], alpha[a] * pi[x] / s)
        D[a, mixed] += Z[a] / s
        D[a, at] -= theta[0, a] * Z[a] / s
        D[a, at + 1] -= theta[1, a] * Z[a] / s
        for k in range(size):
            G[k] += alpha[a] * D[a, k]
        D[a, mixed] -= Z[a] / t
        for k in range(size):
            mean[k] += alpha[a] * D[a, k]
        value += alpha[a] * Z[a]
    entropy = 0.0
    for a in range(slices):
        if alpha[a] > 0.0:
            entropy -= alpha[a] * math.log(alpha[a])
        for k in range(size):
            D[a, k] -= mean[k]
        add_square(H, D[a], alpha[a] / t)
    G[mixed] += entropy - b
    for k in range(size):
        G[k] -= mu / z[k]
        H[k, k] += mu / (z[k] * z[k])
    for a in range(slices):
        at = mixed + 1 + a * (2 + corners)
        push = mu / (1.0 - z[at] - z[at + 1])
        for k in range(2):
            G[at + k] += push
            for j in range(k + 1):
                H[at + k, at + j] += push * push / mu
        first, second = theta[0, a], theta[1, a]
        push = mu / (t - first * z[at] - second * z[at + 1])
        bend = push * push / mu
        G[mixed] -= push
        G[at] += first * push
        G[at + 1] += second * push
        H[mixed, mixed] += bend
        H[at, mixed] -= first * bend
        H[at + 1, mixed] -= second * bend
        H[at, at] += first * first * bend
        H[at + 1, at] += first * second * bend
        H[at + 1, at + 1] += second * second * bend


@kernel(error_model="numpy")
def entropy_bound(
    z: Vector,
    held: int,
    mu: float,
    E: Matrix,
    base: Matrix,
    r: Vector,
    logs: Vector,
    edges: Ints,
    theta: Matrix,
    lines: Matrix,
    B: Matrix,
    rough: Vector,
    b: float,
    floor: float,
    reach: float,
    p: Vector,
) -> float:
    """Make U small from the point z on; return the smallest seen.

    The first ``held`` coordinates of z keep their values. Stops once U is at most ``floor``, or
    within ``reach`` of its minimum. Leaves the last point in z and the distribution of the inputs
    in p.
    """
    inputs, outputs = E.shape
    slices, corners, size, mixed = theta.shape[1], B.shape[1], z.size, base.shape[0]
    d, g, pi, Z, alpha = (
        np.zeros(outputs),
        np.zeros(inputs),
        np.zeros(inputs),
        np.zeros(slices),
        np.zeros(slices),
    )
    J, D = np.empty((inputs, size)), np.empty((slices, size))
    G, H, step, trial = np.empty(size), np.empty((size, size)), np.empty(size), np.empty(size)
    value = _evaluate(z, E, base, r, logs, edges, theta, lines, B, rough, b, d, g, pi, Z, alpha)
    best, steps = value, 0
    while steps < STEPS and floor < best < math.inf:
        steps += 1
        _derivatives(z, mu, E, base, r, edges, theta, lines, B, b, d, g, pi, Z, alpha, J, D, G, H)
        for k in range(held):
            G[k] = 0.0
            H[k, k] = 1.0
            H[k, :k] = 0.0
            H[k + 1 :, k] = 0.0
        newton_step(H, G, step)
        slope = 0.0
        for k in range(size):
            slope += G[k] * step[k]
        if -slope > CENTRED * mu:
            height = value - mu * _barrier(z, theta, mixed, corners)
            share, moved = _room(z, step, theta, mixed, corners), False
            for _ in range(HALVINGS):
                for k in range(size):
                    trial[k] = z[k] + share * step[k]
                ahead = _evaluate(
                    trial, E, base, r, logs, edges, theta, lines, B, rough, b, d, g, pi, Z, alpha
                )
                if (
                    ahead < math.inf
                    and ahead - mu * _barrier(trial, theta, mixed, corners)
                    <= height + 0.1 * share * slope
                ):
                    moved = True
                    break
                share *= 0.5
            if moved:
                copy(trial, z)
                value = ahead
                best = min(best, value)
                continue
            value = _evaluate(
                z, E, base, r, logs, edges, theta, lines, B, rough, b, d, g, pi, Z, alpha
            )
        if (size + 2 * slices) * mu <= reach:
            break
        mu *= SHRINK
    for a in range(slices):
        for x in range(edges[a], edges[a + 1]):
            p[x] = alpha[a] * pi[x]
    return best


@kernel(error_model="numpy")
def widest_edge(
    p: Vector, B: Matrix, corners: Matrix, heights: Vector, r: Vector, least: float
) -> tuple[float, int, int]:
    """Find the edge of a simplex whose middle the bound misses most, weighted by p.

    Returns the weighted miss and the two corners. ``least`` is added to the weight of a corner.
    """
    size = heights.size
    weight = np.empty(size)
    for j in range(size):
        total = 0.0
        for x in range(p.size):
            total += p[x] * B[x, j]
        weight[j] = max(total, 0.0) + least
    most, first, last = -1.0, 0, 0
    for j in range(size):
        for k in range(j):
            height = 0.0
            for y in range(r.size):
                e = 0.5 * (corners[j, y] + corners[k, y])
                height += divergence(r[y] + e, r[y], e)
            miss = (weight[j] + weight[k]) * (0.5 * (heights[j] + heights[k]) - height)
            if miss > most:
                most, first, last = miss, j, k
    return most, first, last
