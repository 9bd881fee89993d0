"""Bounds on the information about one record of a database, for priors in a box, by concavity.

Inputs x come in slices a(x), one per value of the record, and stand for k_x databases each. Let V_a
be the output distributions of slices and q of all inputs, for some distribution. For any
distribution p, with m_a = P(a) V_a,

    I = L p + sum_a D(m_a || P(a) V_a) - D(q_p || q),      L_x = sum_y W_xy ln(V_ay/q_y).

Let p* be the distribution of the box with the largest L p + t H (``truncated.py``), and U that
value less t b. Every other distribution has at most U - t D(p || p*) - sum push |p - p*|. The ratio
2 phi(z)/z^2 falls in z, with phi(z) = (1+z) ln(1+z) - z. So over ranges of V, of q and of p, all
divergences have quadratic bounds, and for H(X) >= b

    I <= U + p A p/2 - sum_x stiff_x (p_x - p*_x)^2/2.

If stiff - A is positive definite for changes of sum zero, I is at most the largest value of this
concave function, and distributions above a floor lie in an ellipsoid. A larger t makes it so: stiff
grows with t. A slice whose probability may be near zero is bounded as if the output revealed its
input, L_x = D(W_x || q).
"""

import math

import numpy as np

from .arrays import copy
from .declare import IntMatrix, Ints, Matrix, Vector, helper, kernel
from .majorant import RARE, WIDER, bend, majorant
from .truncated import truncated_gibbs

U = 2.0**-53
SHIFT = 1e-4  # taken from all eigenvalues, relative to stiff: it covers rounding
FINEST = 1e-9  # relative size of rounding errors that it covers
CENTRING = 4.0  # weight of the sum of all changes, which is zero
ASCENTS, FIRST_ASCENTS = 2, 3
TRIALS = 16  # values of t
PACES = (1.25, 1.1, 1.04)  # at which t falls or rises, while the bound falls
LEAST = 1e-14  # probability of an input at the start, and bound of its range
TINY = 1e-290  # probability of an output
RISE = 1.4  # of t, while there is no bound
NARROW = 1e-10  # a range that is not cut
POWERS = 4


@helper(error_model="numpy")
def _scores(p, W, edges, least, most, V, q, L):
    """Write the output distributions of p, and the scores L, which are a tangent of I at p.

    Returns whether there is a tangent: no output that an input can have underflows.
    """
    outputs = W.shape[1]
    for y in range(outputs):
        q[y] = 0.0
    total = 0.0
    for a in range(least.size):
        mass = 0.0
        for y in range(outputs):
            V[a, y] = 0.0
        for x in range(edges[a], edges[a + 1]):
            mass += p[x]
            for y in range(outputs):
                V[a, y] += p[x] * W[x, y]
        for y in range(outputs):
            q[y] += V[a, y]
            V[a, y] /= mass
        total += mass
    for y in range(outputs):
        q[y] /= total
    sound = True
    for a in range(least.size):
        rare = least[a] < RARE * most[a]
        for x in range(edges[a], edges[a + 1]):
            L[x] = 0.0
            for y in range(outputs):
                if W[x, y] > 0.0:
                    law = W[x, y] if rare else V[a, y]
                    sound = sound and q[y] > TINY and V[a, y] > TINY
                    L[x] += W[x, y] * math.log(law / q[y])
    return sound


@helper(error_model="numpy")
def _factor(M):
    """Replace the lower triangle by its Cholesky factor; return whether M is positive definite."""
    for i in range(M.shape[0]):
        for j in range(i + 1):
            total = M[i, j]
            for k in range(j):
                total -= M[i, k] * M[j, k]
            if i > j:
                M[i, j] = total / M[j, j]
            elif total > FINEST:
                M[i, i] = math.sqrt(total)
            else:
                return False
    return True


@helper(error_model="numpy")
def _solve(M, v):
    """Solve for v, given a Cholesky factor."""
    for i in range(v.size):
        for k in range(i):
            v[i] -= M[i, k] * v[k]
        v[i] /= M[i, i]
    for i in range(v.size - 1, -1, -1):
        for k in range(i + 1, v.size):
            v[i] -= M[k, i] * v[k]
        v[i] /= M[i, i]


@helper(error_model="numpy")
def _attempt(
    low, high, least, most, W, logs, edges, order, b, t, ascents,
    p, V, q, L, push, A, S, M, loose, step,
):  # fmt: skip
    """Return a bound at t, rounded up, or inf, and the entropy of the distribution p.

    Changes of p are counted in units of ``loose``, 1/sqrt(stiff). Leaves the factor of the concave
    function in M, and in ``step`` the way from p to its maximiser.
    """
    inputs, value, entropy, size = p.size, 0.0, 0.0, 0.0
    for _ in range(ascents):
        if not _scores(p, W, edges, least, most, V, q, L):
            return math.inf, entropy
        value, entropy, size = truncated_gibbs(
            L, logs, low, high, least, most, edges, t, p, push, step
        )
    largest = majorant(low, high, least, most, W, edges, order, V, q, S, A)
    total, away, widest = 0.0, -1.0, 0.0
    for x in range(inputs):
        stiff = t * bend(high[x] / p[x] * (1.0 + WIDER) - 1.0) / p[x]
        stiff += 2.0 * push[x] * (1.0 - WIDER) / max(high[x] - low[x], NARROW)
        loose[x] = 1.0 / math.sqrt(stiff)
        total += loose[x] * loose[x]
        widest = max(widest, loose[x] * loose[x])
        away += p[x]
    count = inputs + W.shape[1] + 64
    if not count * inputs * U * (widest * largest + CENTRING) < FINEST:
        return math.inf, entropy
    for x in range(inputs):
        for u in range(x + 1):
            M[x, u] = loose[x] * loose[u] * (CENTRING / total - A[x, u])
        M[x, x] += 1.0 - SHIFT
    if not _factor(M):
        return math.inf, entropy
    mean = 0.0
    for x in range(inputs):
        push[x] = 0.0
        for u in range(inputs):
            push[x] += A[x, u] * p[u]
        mean += push[x] * p[x]
    value += 0.5 * mean - t * b
    for x in range(inputs):
        push[x] = (push[x] - mean) * loose[x]
        step[x] = push[x]
    _solve(M, step)
    for x in range(inputs):
        value += 0.5 * (1.0 + SHIFT) * push[x] * step[x]
    doubt = 4.0 * count * U * (size + t * (b + 1.0) + largest + 1.0)
    doubt += abs(away) * (abs(mean) + CENTRING * abs(away) / total)
    return value + doubt, entropy


@helper(error_model="numpy")
def _narrow(low, high, least, most, edges, p, M, loose, step, gap):
    """Narrow the ranges to an ellipsoid of distributions above the floor; whether any are left."""
    reach, column = math.sqrt(2.0 * gap), np.empty(p.size)
    spread, centre = np.zeros(least.size), np.zeros(least.size)
    for a in range(least.size):
        doubt = 0.0
        for x in range(edges[a], edges[a + 1]):
            for u in range(p.size):
                column[u] = 0.0
            column[x] = 1.0
            _solve(M, column)
            middle = p[x] + loose[x] * step[x]
            far = loose[x] * (reach * math.sqrt(column[x]) * (1.0 + SHIFT) + SHIFT * abs(step[x]))
            far += WIDER * NARROW
            low[x], high[x] = max(low[x], middle - far), min(high[x], middle + far)
            if low[x] > high[x]:
                return False
            centre[a] += middle
            doubt += SHIFT * loose[x] * abs(step[x])
            for u in range(edges[a], edges[a + 1]):
                spread[a] += loose[x] * loose[u] * column[u]
        far = reach * math.sqrt(max(spread[a], 0.0)) * (1.0 + SHIFT) + doubt + WIDER * NARROW
        least[a], most[a] = max(least[a], centre[a] - far), min(most[a], centre[a] + far)
        if least[a] > most[a]:
            return False
    return True


@helper(error_model="numpy")
def _cut(low, high, least, most, W, edges, p, V, S, M, loose):
    """Return the range to cut, x for an input or inputs + a for a slice, and the place; -1 if none.

    In the direction in which the bound is least concave, the cut makes it more so.
    """
    inputs, outputs = W.shape
    v = np.empty(inputs)
    for x in range(inputs):
        v[x] = 1.0 + 0.3 * math.sin(7.0 * x)
    for _ in range(POWERS):
        _solve(M, v)
        norm = 0.0
        for x in range(inputs):
            norm += v[x] * v[x]
        for x in range(inputs):
            v[x] /= math.sqrt(norm)
    most_gained, at, where = 0.0, -1, 0.0
    for a in range(least.size):
        form, middle = 0.0, 0.5 * (least[a] + most[a])
        for x in range(edges[a], edges[a + 1]):
            half = 0.5 * (low[x] + high[x])
            now = bend(max(high[x] / p[x] - 1.0, 0.0))
            gain = v[x] * v[x] * (bend(max(half / p[x] - 1.0, 0.0)) / now - 1.0)
            if gain > most_gained and high[x] - low[x] > NARROW:
                most_gained, at, where = gain, x, half
        for y in range(outputs):
            moved = 0.0
            for x in range(edges[a], edges[a + 1]):
                moved += v[x] * loose[x] * (W[x, y] - V[a, y])
            form += S[a, y] * moved * moved
        gain = form * (1.0 - least[a] / middle)
        if least[a] < RARE * most[a]:
            gain = 1e3 * most[a]
        if gain > most_gained and most[a] - least[a] > NARROW:
            most_gained, at, where = gain, inputs + a, middle
    return at, where


@helper(error_model="numpy")
def _possible(low, high, least, most, edges):
    """Narrow ranges of slices to sums of ranges of inputs; whether a distribution exists."""
    below, above = 0.0, 0.0
    for a in range(least.size):
        fewest, all_of_it = 0.0, 0.0
        for x in range(edges[a], edges[a + 1]):
            fewest += low[x]
            all_of_it += high[x]
        least[a] = max(least[a], fewest * (1.0 - WIDER))
        most[a] = min(most[a], all_of_it * (1.0 + WIDER))
        if least[a] > most[a]:
            return False
        below += least[a]
        above += most[a]
    return below <= 1.0 + WIDER and above >= 1.0 - WIDER


@helper(error_model="numpy")
def _widest(low, high, least, most):
    """Return a range to cut if there is no bound, and its middle: -1 if none is wide."""
    worst, at, where = RARE, -1, 0.0
    for a in range(least.size):
        if most[a] - least[a] > worst * most[a] and most[a] - least[a] > NARROW:
            worst, at = (most[a] - least[a]) / most[a], low.size + a
            where = 0.5 * (least[a] + most[a])
    if at < 0:
        worst = NARROW
        for x in range(low.size):
            if high[x] - low[x] > worst:
                worst, at, where = high[x] - low[x], x, 0.5 * (low[x] + high[x])
    return at, where


@kernel(error_model="numpy")
def box_bound(
    low: Vector,
    high: Vector,
    least: Vector,
    most: Vector,
    W: Matrix,
    logs: Vector,
    edges: Ints,
    order: IntMatrix,
    b: float,
    floor: float,
    t: float,
    p: Vector,
) -> tuple[float, float, int, float]:
    """Bound the information over distributions in a box with H(X) >= b, at least ``floor``.

    Narrows the ranges of inputs (``low``, ``high``) and of slices (``least``, ``most``); all
    distributions that reveal more than ``floor`` stay in them. ``order`` sorts the inputs by the
    probability of each output. Starts from the distribution p and from t. Returns the bound, the t
    that gave it, the range to cut, -1 if none, and the place. Cost O(inputs^2 (inputs + outputs)).
    """
    inputs, outputs = W.shape
    slices = least.size
    if not _possible(low, high, least, most, edges):
        return floor, t, -1, 0.0
    V, S, A, M = (
        np.empty((slices, outputs)),
        np.empty((slices, outputs)),
        np.empty((inputs, inputs)),
        np.empty((inputs, inputs)),
    )
    q, L, push = np.empty(outputs), np.empty(inputs), np.empty(inputs)
    loose, step, law = np.empty(inputs), np.empty(inputs), np.empty(inputs)
    best, best_t, pace, colder, ascents = math.inf, t, PACES[0], True, FIRST_ASCENTS
    for x in range(inputs):
        high[x] = max(high[x], LEAST)
        p[x] = min(max(p[x], low[x], LEAST), high[x])
    trial = 0
    while trial < TRIALS and best > floor:
        trial += 1
        copy(p, law)
        value, entropy = _attempt(
            low, high, least, most, W, logs, edges, order, b, t, ascents,
            law, V, q, L, push, A, S, M, loose, step,
        )  # fmt: skip
        ascents = ASCENTS
        if value < best:
            if best == math.inf:
                colder = entropy >= b
            best, best_t = value, t
            copy(law, p)
        elif best == math.inf:
            t *= RISE
            continue
        elif pace > PACES[1]:
            pace = PACES[1]
        elif pace > PACES[2]:
            pace = PACES[2]
        else:
            break
        t = best_t / pace if colder else best_t * pace
    if best <= floor:
        return floor, best_t, -1, 0.0
    if best == math.inf:
        at, where = _widest(low, high, least, most)
        return best, t, at, where
    # The last trial was a worse one: the best one once more, from its own distribution.
    value, _ = _attempt(
        low, high, least, most, W, logs, edges, order, b, best_t, 1,
        p, V, q, L, push, A, S, M, loose, step,
    )  # fmt: skip
    if not value < math.inf:
        at, where = _widest(low, high, least, most)
        return best, best_t, at, where
    if value <= floor or not _narrow(
        low, high, least, most, edges, p, M, loose, step, value - floor
    ):
        return floor, best_t, -1, 0.0
    at, where = _cut(low, high, least, most, W, edges, p, V, S, M, loose)
    return min(best, value), best_t, at, where
