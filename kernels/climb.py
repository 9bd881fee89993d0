"""Ascents to the prior that reveals most about one record of a database, under H(X) >= b.

Inputs x come in slices a(x), one per value of the record, and stand for k_x databases each, given
by their logarithms; E = W - r for some output distribution r, so that nothing cancels, however
small the information is.
"""

import math

import numpy as np

from .convex import divergence, log_sum
from .declare import Ints, Matrix, Vector, helper, kernel

COLDEST = 80.0  # |ln t| of a multiplier
ROOT_STEPS = 60


@helper(error_model="numpy")
def _gibbs(score, level, logs, edges, t, p, Z, alpha):
    """Write the distribution that maximises score + level + H(A) + t H(X); return its H(X)."""
    slices = Z.size
    for a in range(slices):
        Z[a] = level[a] + log_sum(score, logs, edges[a], edges[a + 1], t, p)
    log_sum(Z, np.zeros(slices), 0, slices, 1.0 + t, alpha)
    entropy = 0.0
    for a in range(slices):
        for x in range(edges[a], edges[a + 1]):
            p[x] *= alpha[a]
            if p[x] > 0.0:
                entropy -= p[x] * (math.log(p[x]) - logs[x])
    return entropy


@helper(error_model="numpy")
def _scores(p, E, r, edges, score, level):
    """Write ln P(a) + sum_y W_xy ln(V_a/q) as level(a) + score(x); return the information I."""
    inputs, outputs = E.shape
    mean, own = np.zeros(outputs), np.empty(outputs)
    for x in range(inputs):
        for y in range(outputs):
            mean[y] += p[x] * E[x, y]
    value = 0.0
    for y in range(outputs):
        value -= divergence(r[y] + mean[y], r[y], mean[y])
    for a in range(edges.size - 1):
        mass = 1e-300
        own[:] = 0.0
        for x in range(edges[a], edges[a + 1]):
            mass += p[x]
            for y in range(outputs):
                own[y] += p[x] * E[x, y]
            score[x] = 0.0
        level[a] = math.log(mass)
        for y in range(outputs):
            v, q = r[y] + own[y] / mass, r[y] + mean[y]
            if v > 0.0 and q > 0.0:
                value += mass * divergence(v, r[y], own[y] / mass)
                log = math.log1p((own[y] / mass - mean[y]) / q)
                level[a] += r[y] * log
                for x in range(edges[a], edges[a + 1]):
                    score[x] += E[x, y] * log
            else:
                value += mass * r[y]
    return value


@kernel(error_model="numpy")
def entropy_climb(
    p: Vector, E: Matrix, r: Vector, logs: Vector, edges: Ints, b: float, steps: int, tiny: float
) -> float:
    """Improve p under H(X) >= b, until a step gains less than ``tiny``; return the last I.

    For any guess P(a|y) of the slice, I >= H(A) + sum p_x W_xy ln P(a(x)|y), with equality at the
    posterior of p; the distribution that maximises the right-hand side under the constraint is a
    Gibbs distribution in each slice. So I never falls. One root, of the entropy in ln t, for each
    step.
    """
    score, level = np.empty(p.size), np.empty(edges.size - 1)
    Z, alpha = np.empty(edges.size - 1), np.empty(edges.size - 1)
    last = -math.inf
    for step in range(steps):
        value = _scores(p, E, r, edges, score, level)
        if step > 1 and value - last <= tiny:  # the first distribution need not obey the constraint
            break
        last = value
        low, high = -COLDEST, COLDEST
        if _gibbs(score, level, logs, edges, math.exp(low), p, Z, alpha) >= b:
            continue
        for _ in range(ROOT_STEPS):
            middle = 0.5 * (low + high)
            if _gibbs(score, level, logs, edges, math.exp(middle), p, Z, alpha) < b:
                low = middle
            else:
                high = middle
        _gibbs(score, level, logs, edges, math.exp(high), p, Z, alpha)
    return last
