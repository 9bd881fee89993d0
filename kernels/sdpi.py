"""Branch and bound for strong data-processing constants.

For a level l, F(r) = l D(r || p) - D(rW || q), q = pW, is non-negative on the simplex if and only
if l is at least the constant. Distributions are held as differences u = r - p, so that F keeps its
digits near p, where it vanishes to second order. A cell is a simplex of distributions with N
corners.

An output that only input x can give has m(y) = r(x) W[x, y]. Its term is a multiple of r ln r and
joins the term of the input, whose weight is l(x) = l - sum of these W[x, y]. The kernel takes the
other outputs as W, centred, and their distribution q.
"""

import math

import numpy as np

from .arrays import smallest
from .convex import divergence, newton_step
from .declare import Cube, Ints, Matrix, Vector, helper, kernel

UNIT = 2.0**-53
NOISE = 1e-13  # relative error allowed for in sums and curvatures
LENT = 0.1  # smallest curvature of an input, as a share of the level; later subtracted
STEEP = 0.05  # outputs whose probability varies by more than this factor are bounded by chords
SWEEPS, STEPS = 30, 60
NEAR = 4.0  # a known point is tried if it is within this squared number of radii of a cell
TINY = 2.0**-1000  # means below enter logarithms as this one
SETTLED = 1.0 + 1e-6  # an ascent that gains less in a step has settled
FIRST_STEPS = 5  # an ascent does not settle before


@helper(error_model="numpy")
def _log(diff, base):
    """Return ln((base + diff)/base)."""
    return math.log1p(diff / base) if abs(diff) < 0.5 * base else math.log((base + diff) / base)


@helper(error_model="numpy")
def _curvature(w, c):
    """Return the k with d(w, c) = k (w - c)^2/2, d the divergence. It falls as w grows."""
    if abs(w - c) < 1e-7 * c:
        return (1.0 - (w - c) / (3.0 * c)) / c
    return 2.0 * divergence(w, c, w - c) / (w - c) ** 2


@helper(error_model="numpy")
def _image(u, W, v):
    """Write u W to v."""
    for y in range(v.size):
        total = 0.0
        for x in range(u.size):
            total += u[x] * W[x, y]
        v[y] = total


@helper(error_model="numpy")
def _eigen(G, V):
    """Diagonalise a symmetric matrix in place by Jacobi's rotations, vectors in rows of V."""
    n = G.shape[0]
    size = 0.0
    for i in range(n):
        for j in range(n):
            V[i, j] = 1.0 if i == j else 0.0
            size += G[i, j] * G[i, j]
    for _ in range(SWEEPS):
        off = 0.0
        for i in range(n):
            for j in range(i):
                off += G[i, j] * G[i, j]
        if off <= 1e-28 * size:
            break
        for i in range(n):
            for j in range(i):
                if abs(G[i, j]) <= 1e-300:
                    continue
                slope = (G[j, j] - G[i, i]) / (2.0 * G[i, j])
                t = math.copysign(1.0 / (abs(slope) + math.sqrt(1.0 + slope * slope)), slope)
                c = 1.0 / math.sqrt(1.0 + t * t)
                s = t * c
                first, second = G[i, i] - t * G[i, j], G[j, j] + t * G[i, j]
                for k in range(n):
                    G[i, k], G[j, k] = c * G[i, k] - s * G[j, k], s * G[i, k] + c * G[j, k]
                    V[i, k], V[j, k] = c * V[i, k] - s * V[j, k], s * V[i, k] + c * V[j, k]
                for k in range(n):
                    G[k, i], G[k, j] = G[i, k], G[j, k]
                G[i, i], G[j, j], G[i, j], G[j, i] = first, second, 0.0, 0.0


@helper(error_model="numpy")
def _project(G, scale, moved):
    """Restrict a matrix in scaled coordinates to differences of distributions, which sum to 0."""
    n = G.shape[0]
    norm, inside = 0.0, 0.0
    for x in range(n):
        norm += 1.0 / scale[x]
    for a in range(n):
        moved[a] = 0.0
        for b in range(n):
            moved[a] += G[a, b] / math.sqrt(scale[b] * norm)
        inside += moved[a] / math.sqrt(scale[a] * norm)
    for a in range(n):
        first = 1.0 / math.sqrt(scale[a] * norm)
        for b in range(n):
            second = 1.0 / math.sqrt(scale[b] * norm)
            G[a, b] += first * second * inside - first * moved[b] - moved[a] * second


@helper(error_model="numpy")
def _least(base, noise, heights, Z, y, beta):
    """Whether base + heights beta + |Z' beta|^2/2 >= 0 for all weights beta of the corners.

    A tangent of the square at any y proves it. The first is at 0, others follow pairwise descent.
    """
    n = heights.size
    low = heights[0]
    for i in range(n):
        low = min(low, heights[i])
        beta[i] = 1.0 / n
    if base + low - NOISE * noise >= 0.0 or (base == 0.0 and low == 0.0):
        return True
    for j in range(n):
        y[j] = 0.0
        for i in range(n):
            y[j] += Z[i, j] / n
    for _ in range(STEPS):
        square, value = 0.0, base
        for j in range(n):
            square += y[j] * y[j]
        best, worst, least, most = 0, 0, math.inf, -math.inf
        for i in range(n):
            slope = heights[i]
            for j in range(n):
                slope += Z[i, j] * y[j]
            value += beta[i] * slope
            if slope < least:
                best, least = i, slope
            if beta[i] > 0.0 and slope > most:
                worst, most = i, slope
        if base + least - 0.5 * square - NOISE * (noise + square) >= 0.0:
            return True
        if value < 0.5 * square or most <= least:
            return False
        size = 0.0
        for j in range(n):
            size += (Z[best, j] - Z[worst, j]) ** 2
        step = min(beta[worst], (most - least) / size) if size > 0.0 else beta[worst]
        beta[best] += step
        beta[worst] = beta[worst] - step if step < beta[worst] else 0.0
        for j in range(n):
            y[j] += step * (Z[best, j] - Z[worst, j])
    return False


@helper(error_model="numpy")
def _positive(cell, images, c, W, p, q, weights, level, scale, G, V, work):
    """Whether F >= 0 on a cell is proved by a quadratic function that touches F at p + c.

    d(r, p) is its tangent at c plus d(r, c), and d(r, c) = k(r) (r - c)^2/2 with k falling in r. So
    the largest r of the cell bounds an input from below, the smallest m an output from above. The
    negative part of the difference is concave, and is replaced by its values at the corners.
    """
    n, k = W.shape
    v, curves, logs, slopes, heights, y, beta, Z = work
    _image(c, W, v)
    base, size = 0.0, 0.0
    for x in range(n):
        r, high, weight = p[x] + c[x], p[x] + c[x], weights[x]
        if r <= 0.0:
            return False
        for i in range(n):
            high = max(high, p[x] + cell[i, x])
        scale[x] = max(weight, LENT * level) * _curvature(high, r) * (1.0 - NOISE)
        slopes[x] = weight * _log(c[x], p[x]) if weight > 0.0 else 0.0
        term = weight * divergence(r, p[x], c[x]) if weight > 0.0 else 0.0
        base += term
        size += term
    for o in range(k):
        m = q[o] + v[o]
        low, high = m, m
        for i in range(n):
            low = min(low, q[o] + images[i, o])
            high = max(high, q[o] + images[i, o])
        curves[o], logs[o] = 0.0, 0.0
        if low > STEEP * high:
            curves[o] = _curvature(low, m) * (1.0 + NOISE)
            logs[o] = _log(v[o], q[o])
            term = divergence(m, q[o], v[o])
            base -= term
            size += term
    for a in range(n):
        for b in range(a + 1):
            total = 0.0
            for o in range(k):
                total += W[a, o] * curves[o] * W[b, o]
            G[a, b] = total / math.sqrt(scale[a] * scale[b])
            G[b, a] = G[a, b]
    _project(G, scale, y)
    _eigen(G, V)
    noise = 0.0
    for i in range(n):
        height, terms = 0.0, size
        for x in range(n):
            diff = cell[i, x] - c[x]
            term = slopes[x] * diff
            if weights[x] <= 0.0:
                r = max(p[x] + cell[i, x], 0.0)
                term = weights[x] * divergence(r, p[x], cell[i, x])
            share = max(1.0 - max(weights[x], 0.0) / (LENT * level), 0.0)
            lent = 0.5 * share * scale[x] * diff * diff
            height += term - lent
            terms += abs(term) + lent
        for o in range(k):
            term = logs[o] * (images[i, o] - v[o])
            if curves[o] == 0.0:
                term = divergence(max(q[o] + images[i, o], 0.0), q[o], images[i, o])
            height -= term
            terms += abs(term)
        for j in range(n):
            excess = G[j, j] * (1.0 + NOISE) + NOISE - 1.0
            along = 0.0
            for x in range(n):
                along += V[j, x] * math.sqrt(scale[x]) * (cell[i, x] - c[x])
            loss = 0.5 * max(excess, 0.0) * along * along
            height -= loss
            terms += loss
            Z[i, j] = math.sqrt(max(-excess, 0.0)) * along
        heights[i] = height
        noise = max(noise, terms)
    return _least(base, noise, heights, Z, y, beta)


@helper(error_model="numpy")
def _longest(cell, scale, G, V):
    """Return the longest edge of a cell, counting the loss to negative curvature."""
    n = scale.size
    far, ends = -1.0, (0, 1)
    for i in range(n):
        for j in range(i):
            length = 0.0
            for x in range(n):
                length += LENT * 4.0 * scale[x] * (cell[i, x] - cell[j, x]) ** 2
            for k in range(n):
                if G[k, k] > 1.0:
                    along = 0.0
                    for x in range(n):
                        along += V[k, x] * math.sqrt(scale[x]) * (cell[i, x] - cell[j, x])
                    length += (G[k, k] - 1.0) * along * along
            if length > far:
                far, ends = length, (i, j)
    return ends


@kernel(small=True, error_model="numpy")
def sdpi_cells(
    cells: Cube,
    count: int,
    W: Matrix,
    p: Vector,
    q: Vector,
    weights: Vector,
    level: float,
    points: Matrix,
    most: int,
    better: Vector,
) -> tuple[int, int]:
    """Prove F >= 0 on the first ``count`` cells, dividing them as needed; at most ``most`` of them.

    Returns how many cells are left, and how many were examined. A distribution with F < 0 ends the
    search and is written to ``better`` as u. ``points`` are distributions to touch F at, as u, p
    itself among them.
    """
    n, k = W.shape
    cell, images, c = np.empty((n, n)), np.empty((n, k)), np.empty(n)
    scale, G, V = np.empty(n), np.empty((n, n)), np.empty((n, n))
    work = (
        np.empty(k),
        np.empty(k),
        np.empty(k),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty((n, n)),
    )
    v = work[0]
    used = 0
    while 0 < count <= cells.shape[0] - 2 and used < most:
        used += 1
        count -= 1
        for x in range(n):
            c[x] = 0.0
            for i in range(n):
                cell[i, x] = cells[count, i, x]
                c[x] += cell[i, x]
            c[x] /= n
        _image(c, W, v)
        value, radius = 0.0, 0.0
        for x in range(n):
            value += weights[x] * divergence(p[x] + c[x], p[x], c[x])
        for o in range(k):
            value -= divergence(max(q[o] + v[o], 0.0), q[o], v[o])
        if value < 0.0:
            for x in range(n):
                better[x] = c[x]
            return count + 1, used
        for i in range(n):
            _image(cell[i], W, images[i])
            length = 0.0
            for x in range(n):
                length += (cell[i, x] - c[x]) ** 2 / (p[x] + c[x])
            radius = max(radius, length)
        proved = False
        for j in range(points.shape[0] + 1):
            point = points[j] if j < points.shape[0] else c
            length = 0.0
            for x in range(n):
                length += (point[x] - c[x]) ** 2 / (p[x] + c[x])
            if not proved and length <= NEAR * radius:
                proved = _positive(cell, images, point, W, p, q, weights, level, scale, G, V, work)
        if proved:
            continue
        a, b = _longest(cell, scale, G, V)
        for x in range(n):
            middle = 0.5 * (cell[a, x] + cell[b, x])
            for i in range(n):
                cells[count, i, x] = middle if i == a else cell[i, x]
                cells[count + 1, i, x] = middle if i == b else cell[i, x]
        count += 2
    return count, used


# Local searches: distributions r = p + u with a large ratio D(rW || q) / D(r || p).


@helper(error_model="numpy")
def _shifted(u, W, q, v, logs):
    """Write uW to v and ln((q + v)/q) to logs."""
    _image(u, W, v)
    for y in range(v.size):
        if abs(v[y]) < 0.5 * q[y]:
            logs[y] = math.log1p(v[y] / q[y])
        else:
            logs[y] = math.log(max(q[y] + v[y], TINY) / q[y])


@helper(error_model="numpy")
def _difference(r, p, W, q, level, u, v):
    """Return F(r) = l D(r || p) - D(rW || q)."""
    inputs, outputs = 0.0, 0.0
    for x in range(r.size):
        u[x] = r[x] - p[x]
        inputs += divergence(r[x], p[x], u[x])
    _image(u, W, v)
    for y in range(v.size):
        outputs += divergence(max(q[y] + v[y], 0.0), q[y], v[y])
    return level * inputs - outputs


@kernel(small=True, error_model="numpy")
def sdpi_climb(laws: Matrix, p: Vector, W: Matrix, q: Vector, steps: int, ratios: Vector) -> None:
    """Raise the ratio of each distribution, and write about its last value.

    A step goes to p e^(h/l), h(x) = sum_y W[x, y] ln(rW/q)(y), l the ratio: the ratio does not
    decrease. W is centred: pW = 0.
    """
    n, k = W.shape
    u, v, logs, h = np.empty(n), np.empty(k), np.empty(k), np.empty(n)
    for i in range(laws.shape[0]):
        r, last = laws[i], 0.0
        for step in range(steps):
            below, above = 0.0, 0.0
            for x in range(n):
                u[x] = r[x] - p[x]
                below += r[x] * math.log(max(r[x], TINY) / p[x])
            _shifted(u, W, q, v, logs)
            for y in range(k):
                above += (q[y] + v[y]) * logs[y]
            level = max(above / max(below, 1e-14), 1e-14)
            ratios[i] = level
            if step > FIRST_STEPS and level <= last * SETTLED:
                break
            last = level
            top, total = -math.inf, 0.0
            for x in range(n):
                h[x] = 0.0
                for y in range(k):
                    h[x] += logs[y] * W[x, y]
                h[x] /= level
                top = max(top, h[x])
            for x in range(n):
                r[x] = p[x] * math.exp(h[x] - top)
                total += r[x]
            for x in range(n):
                r[x] /= total


@kernel(small=True, error_model="numpy")
def sdpi_apart(laws: Matrix, order: Ints, apart: float, kept: Ints) -> int:
    """List distributions in order that differ by more than ``apart`` from all before; count them.

    No more are listed than ``kept`` has places.
    """
    count = 0
    for place in order:
        new = True
        for i in range(count):
            most = 0.0
            for x in range(laws.shape[1]):
                most = max(most, abs(laws[place, x] - laws[kept[i], x]))
            new = new and most > apart
        if new and count < kept.size:
            kept[count] = place
            count += 1
    return count


@kernel(small=True, error_model="numpy")
def sdpi_ratio(r: Vector, p: Vector, W: Matrix, q: Vector, least: float) -> float:
    """Return a lower bound on D(rW || q)/D(r || p), 0 if the divisor is below ``least``.

    D is convex in the mean, so an error e of the mean changes it by sum |ln(mean/q)| e.
    """
    n, k = W.shape
    u, v, logs = np.empty(n), np.empty(k), np.empty(k)
    below, above, depth, lost = 0.0, 0.0, 1.0, 0.0
    for x in range(n):
        u[x] = r[x] - p[x]
        below += divergence(r[x], p[x], u[x])
    below *= 1.0 + (n + 160) * UNIT
    if not below >= least:
        return 0.0
    _shifted(u, W, q, v, logs)
    for y in range(k):
        size = 0.0
        for x in range(n):
            size += abs(u[x]) * abs(W[x, y])
        lost += abs(logs[y]) * ((n + 16) * UNIT * size + TINY)
        depth = max(depth, 1.0 - logs[y])
        above += divergence(max(q[y] + v[y], 0.0), q[y], v[y])
    above = above * (1.0 - (n + k + 160) * UNIT * depth) - lost * (1.0 + 8.0 * UNIT)
    return max(above / below * (1.0 - 16.0 * UNIT), 0.0)


@kernel(small=True, error_model="numpy")
def sdpi_newton(r: Vector, p: Vector, W: Matrix, q: Vector, level: float, steps: int) -> None:
    """Move r to a local minimum of F.

    Newton's method in the coordinates u / sqrt(r), with the absolute values of the curvatures, so
    that it leaves saddle points.
    """
    n, k = W.shape
    u, v, logs = np.empty(n), np.empty(k), np.empty(k)
    scale, slope, step, moved = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    G, V, H = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    value = _difference(r, p, W, q, level, u, v)
    for _ in range(steps):
        if smallest(r) <= 1e-14:
            break
        for x in range(n):
            u[x] = r[x] - p[x]
            scale[x] = 1.0 / r[x]
        _shifted(u, W, q, v, logs)
        for a in range(n):
            slope[a] = level * math.log1p(u[a] / p[a])
            for y in range(k):
                slope[a] -= W[a, y] * logs[y]
            slope[a] *= math.sqrt(r[a])
            for b in range(a + 1):
                total = 0.0
                for y in range(k):
                    total += W[a, y] * W[b, y] / max(q[y] + v[y], TINY)
                G[a, b] = (level if a == b else 0.0) - total * math.sqrt(r[a] * r[b])
                G[b, a] = G[a, b]
        _project(G, scale, moved)
        _onto_differences(slope, r)
        for a in range(n):
            for b in range(a + 1):
                H[a, b] = G[a, b] + level * math.sqrt(r[a] * r[b])
        if not newton_step(H, slope, step):
            _eigen(G, V)
            for x in range(n):
                step[x] = 0.0
            for j in range(n):
                along = 0.0
                for x in range(n):
                    along += V[j, x] * slope[x]
                along /= max(abs(G[j, j]), 1e-9 * level)
                for x in range(n):
                    step[x] -= V[j, x] * along
        _onto_differences(step, r)
        steepest = 1e-300
        for x in range(n):
            step[x] *= math.sqrt(r[x])
            steepest = max(steepest, -step[x] / r[x])
        size, reached = min(1.0, 0.9 / steepest), math.inf
        while size > 1e-6:
            total = 0.0
            for x in range(n):
                moved[x] = r[x] + size * step[x]
                total += moved[x]
            for x in range(n):
                moved[x] /= total
            reached = _difference(moved, p, W, q, level, u, v)
            if reached < value:
                break
            size *= 0.25
        if size <= 1e-6:
            break
        value = reached
        for x in range(n):
            r[x] = moved[x]


@helper()
def _onto_differences(v, r):
    """Remove the part of v along sqrt(r): what is left keeps the sum of the distribution."""
    along = 0.0
    for x in range(r.size):
        along += math.sqrt(r[x]) * v[x]
    for x in range(r.size):
        v[x] -= along * math.sqrt(r[x])
