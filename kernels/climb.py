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
CLOSE = 1e-13  # excess of an entropy, or width of an interval of ln t, at which a root is found


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


@helper(error_model="numpy")
def _root(score, level, logs, edges, b, at, p, Z, alpha):
    """Write the Gibbs distribution whose H(X) is b, from above; return its ln t, sought near at.

    H(X) rises with t. An interval around ``at`` grows until it has the root, which the method of
    Illinois then finds.
    """
    low, high, width = at, at, 0.25
    under = _gibbs(score, level, logs, edges, math.exp(at), p, Z, alpha) - b
    over = under
    while over < 0.0 and high < COLDEST:
        low, under = high, over
        high, width = min(high + width, COLDEST), 4.0 * width
        over = _gibbs(score, level, logs, edges, math.exp(high), p, Z, alpha) - b
    while under >= 0.0 and low > -COLDEST:
        high, over = low, under
        low, width = max(low - width, -COLDEST), 4.0 * width
        under = _gibbs(score, level, logs, edges, math.exp(low), p, Z, alpha) - b
    left, right, side = under, over, 0  # a bound that stays twice counts as half as far
    for _ in range(ROOT_STEPS):
        if over <= CLOSE or high - low <= CLOSE:
            break
        middle = (low * right - high * left) / (right - left)
        if not low < middle < high:
            middle = 0.5 * (low + high)
        found = _gibbs(score, level, logs, edges, math.exp(middle), p, Z, alpha) - b
        if found < 0.0:
            low, left = middle, found
            right *= 0.5 if side < 0 else 1.0
            side = -1
        else:
            high, over, right = middle, found, found
            left *= 0.5 if side > 0 else 1.0
            side = 1
    _gibbs(score, level, logs, edges, math.exp(high), p, Z, alpha)
    return high


@kernel(small=True, error_model="numpy")
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
    last, at = -math.inf, 0.0
    for step in range(steps):
        value = _scores(p, E, r, edges, score, level)
        if step > 1 and value - last <= tiny:  # the first distribution need not obey the constraint
            break
        last = value
        if _gibbs(score, level, logs, edges, math.exp(-COLDEST), p, Z, alpha) >= b:
            continue
        at = _root(score, level, logs, edges, b, at, p, Z, alpha)
    return last
