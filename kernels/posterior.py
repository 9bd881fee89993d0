"""Bounds on the information about a bit of the database, for priors with given posterior ranges.

Inputs x come in two slices a(x), one per value of the bit, and stand for k_x databases each, given
by their logarithms. Q_y is the probability of the first slice given output y. A further output
z may be given, which depends on the bit alone. With -f(Q) the mean entropy of the bit given z if
its probability was Q (f = -h, the binary entropy, without such an output),

    I = H(A) + sum_y P(y) f(Q_y).

If l_y <= Q_y <= u_y, the convex f lies below its chord, and both that chord, times P(y), and
the two ranges are linear in the prior p. So with t >= 0 for H(X) >= b and lambda >= 0 for the
ranges, C_x lambda >= 0, nothing is above

    U = (1 + t) ln sum_a e^(Z_a/(1 + t)) - t b,      Z_a = t ln sum_{x in a} k_x e^(g_x/t),
    g = chords + C lambda,

a true bound at every (t, lambda), jointly convex. Newton's method with a logarithmic barrier makes
it small. The chords exceed f. The part that no distribution avoids is subtracted afterwards
(``curvature.py``), and ranges are narrowed to distributions that can be above a floor
(``reach.py``).
"""

import math

import numpy as np

from .arrays import copy
from .convex import add_square, log_sum, log_total, newton_step
from .curvature import curvature_gain
from .declare import IntMatrix, Ints, Matrix, Vector, helper, kernel
from .reach import narrow_by_reach

U = 2.0**-53
STEPS = 100
HALVINGS = 12
SHRINK = 0.1  # of the barrier, from one centre to the next
CENTRED = 1.0  # squared Newton decrement, in units of the barrier, at a centre
ROOM = 0.95  # share of the way to the boundary
WIDER = 2.0**-46  # relative, of a range, to cover its rounding
NARROW = 1e-9  # a range that is not cut
LEAST = 1e-300  # probability of an input: one that underflows is raised, which raises the bound
LEAST_SHARE = 0.15  # of a range that both parts keep


@helper(error_model="numpy")
def _evaluate(z, score, C, logs, edges, b, g, pi, Z, alpha):
    """Return U at z = t, lambda, rounded up; leave P(input | slice) in pi, P(slice) in alpha.

    ``score`` holds the chords and their rounding errors. The second number is the amount added to
    round up. It covers the errors of g, and separately the errors of (1 + t) ln alpha + t ln pi.
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
        Z[a] = log_sum(g, logs, edges[a], edges[a + 1], t, pi)
        most = max(most, abs(Z[a]))
    value = log_sum(Z, np.zeros(slices), 0, slices, 1.0 + t, alpha)
    doubt += (inputs + 64) * U * (most + (1.0 + t) * (log_total(logs) + b + 1.0))
    return value - t * b + doubt, doubt


@helper(error_model="numpy")
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
            add_square(H, J[x], alpha[a] * pi[x] / t)
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
        add_square(H, D[a], alpha[a] / (1.0 + t))
    G[0] += entropy - b
    for k in range(size):
        G[k] -= mu / z[k]
        H[k, k] += mu / (z[k] * z[k])


@helper(error_model="numpy")
def _minimise(z, mu, score, C, logs, edges, b, floor, reach, p):
    """Make U small from the point z on; return the smallest U seen, and the last for p.

    Stops once U is at most ``floor``, or within ``reach`` of its minimum. Leaves the last point in
    z and the distribution of the inputs in p. This p, as rounded, is the exact distribution of
    other scores. They and their U differ from g and its U by at most 2 doubt each, so that the last
    U is raised by both.
    """
    inputs, slices, size = C.shape[0], edges.size - 1, z.size
    g, pi, Z, alpha = np.zeros(inputs), np.zeros(inputs), np.zeros(slices), np.zeros(slices)
    J, D = np.empty((inputs, size)), np.empty((slices, size))
    G, H, step, trial = np.empty(size), np.empty((size, size)), np.empty(size), np.empty(size)
    value, doubt = _evaluate(z, score, C, logs, edges, b, g, pi, Z, alpha)
    best = value
    for _ in range(STEPS):
        if not floor < best < math.inf:
            break
        _derivatives(z, mu, C, edges, b, g, pi, Z, alpha, J, D, G, H)
        newton_step(H, G, step)
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
                ahead, doubt = _evaluate(trial, score, C, logs, edges, b, g, pi, Z, alpha)
                if ahead - mu * barrier <= height + 0.1 * share * slope:
                    moved = True
                    break
                share *= 0.5
            if moved:
                copy(trial, z)
                value = ahead
                best = min(best, value)
                continue
            value, doubt = _evaluate(z, score, C, logs, edges, b, g, pi, Z, alpha)
        if size * mu <= reach:
            break
        mu *= SHRINK
    for a in range(slices):
        for x in range(edges[a], edges[a + 1]):
            p[x] = max(alpha[a] * pi[x], LEAST)
    return best, value + 4.0 * doubt


@helper(error_model="numpy")
def _told(q, look):
    """Return f(q), minus the mean entropy of the bit given its own output."""
    total = 0.0
    for z in range(look.shape[1]):
        first, second = q * look[0, z], (1.0 - q) * look[1, z]
        if first > 0.0 and second > 0.0:
            total -= first * math.log1p(second / first) + second * math.log1p(first / second)
    return total


@helper(error_model="numpy")
def _chance(odds):
    """Return the probability of given odds."""
    return 1.0 if odds == math.inf else odds / (1.0 + odds)


@helper(error_model="numpy")
def _narrow(low, high, order, least, most):
    """Narrow the ranges of the posteriors; return whether a prior may be in all of them.

    Q of the first output of each pair in ``order`` is at least Q of the second. The odds of the
    posteriors are the odds before times a ratio between ``least`` and ``most``, and the probability
    before is their mean. A comparison with NaN, of 0/0 or 0 inf, is false and narrows nothing.
    """
    for k in range(order.shape[0]):
        large, small = order[k, 0], order[k, 1]
        low[large], high[small] = max(low[large], low[small]), min(high[small], high[large])
    below, above = 1.0, 0.0
    for y in range(low.size):
        below, above = min(below, low[y]), max(above, high[y])
    for y in range(low.size):
        edge = _chance(low[y] / (1.0 - low[y]) / most[y])
        if edge > below:
            below = edge
        edge = _chance(high[y] / (1.0 - high[y]) / least[y])
        if edge < above:
            above = edge
    below, above = below * (1.0 - WIDER), min(above * (1.0 + WIDER), 1.0)
    for y in range(low.size):
        edge = _chance(below / (1.0 - below) * least[y]) * (1.0 - WIDER)
        if edge > low[y]:
            low[y] = edge
        edge = _chance(above / (1.0 - above) * most[y]) * (1.0 + WIDER)
        if edge < high[y]:
            high[y] = edge
        if low[y] > high[y]:
            return False
    return below <= above


@helper(error_model="numpy")
def _widest(low, high, W, look, first, least, most, p):
    """Return the range to cut, in which the chords miss most under p, and the place.

    A cut of the last range, for the bit before any output, narrows all others. The cut is
    between the middle and the posterior of p; the index is -1 if no range is wide.
    """
    worst, at, cut, last = -1.0, -1, 0.0, low.size - 1
    middle = 0.5 * (low[last] + high[last])
    odds, all_of_it = middle / (1.0 - middle), 0.0
    for y in range(last):
        width = high[y] - low[y]
        if width <= NARROW:
            continue
        mass, own = 1e-6, 0.5e-6 * (low[y] + high[y])
        for x in range(p.size):
            mass += p[x] * W[x, y]
            if x < first:
                own += p[x] * W[x, y]
        share = min(max((own / mass - low[y]) / width, 0.0), 1.0)
        chord = (1.0 - share) * _told(low[y], look) + share * _told(high[y], look)
        miss = mass * (chord - _told(low[y] + share * width, look))
        below = max(min(_chance(odds * most[y]), high[y]) - low[y], 0.0) / width
        above = max(high[y] - max(_chance(odds * least[y]), low[y]), 0.0) / width
        all_of_it += miss * (1.0 - 0.5 * (below * below + above * above))
        if miss > worst:
            share = min(max(0.25 + 0.5 * share, LEAST_SHARE), 1.0 - LEAST_SHARE)
            worst, at, cut = miss, y, low[y] + share * width
    if all_of_it > 1.5 * worst and high[last] - low[last] > NARROW:
        at, cut = last, middle
    return at, cut


@kernel(error_model="numpy")
def posterior_bound(
    low: Vector,
    high: Vector,
    z: Vector,
    W: Matrix,
    look: Matrix,
    order: IntMatrix,
    logs: Vector,
    edges: Ints,
    least: Vector,
    most: Vector,
    b: float,
    floor: float,
    reach: float,
    p: Vector,
) -> tuple[float, int, float]:
    """Bound the information over priors with low <= Q <= high; the bound is at least ``floor``.

    Narrows these ranges; all priors that reveal more than ``floor`` stay in them. The last column
    of W is ones, and the last range is for the bit before any output. ``look`` has the two
    distributions of the output of the bit alone (one column of ones if there is none). Q_y >= Q_z
    is given for each pair y, z in ``order``. ``least`` and ``most`` bound P(y | first value)/P(y |
    second value). Starts from the point z and leaves the last one there, and the distribution of
    the inputs in p. Stops once the bound is at most ``floor``, or within ``reach`` of its minimum.
    Returns the bound, the output whose range should be cut, -1 if none, and the place.
    """
    if not _narrow(low, high, order, least, most):
        return floor, -1, 0.0
    inputs, outputs = W.shape
    score, C = np.zeros((2, inputs)), np.empty((inputs, 2 * outputs))
    scale, doubt = NARROW, (8 + 4 * look.shape[1]) * U
    for y in range(outputs):
        left, right = 0.0, 0.0
        if y < outputs - 1:
            left, right = _told(low[y], look), _told(high[y], look)
        width = max(high[y] - low[y], NARROW)
        slope = (right - left) / width
        base = max(left - slope * low[y], right - slope * high[y]) + doubt * (abs(slope) + 1.0)
        middle = 0.5 * (low[y] + high[y])
        if y < outputs - 1:
            scale = max(scale, base + slope * middle - _told(middle, look))
        for x in range(inputs):
            has = 1.0 if x < edges[1] else 0.0
            score[0, x] += W[x, y] * (base + slope * has)
            score[1, x] += (2 * outputs + 8) * U * W[x, y] * (abs(base) + abs(slope))
            C[x, 2 * y] = W[x, y] * (has - low[y]) / width
            C[x, 2 * y + 1] = W[x, y] * (high[y] - has) / width
    for k in range(1, z.size):
        z[k] = min(max(z[k], 1e-3 * scale), scale)
    value, last = _minimise(z, max(reach, 1e-3 * scale), score, C, logs, edges, b, floor, reach, p)
    if value > floor:
        value = min(value, last - curvature_gain(low, high, look, W, edges[1], p, z[0]))
        if not narrow_by_reach(low, high, W, edges[1], p, z[0], last - floor):
            value = floor
    at, cut = _widest(low, high, W, look, edges[1], least, most, p)
    return max(value, floor), at, cut
