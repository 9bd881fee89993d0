"""Optima whose proof is exact: doubles look for a good point, balls and fractions judge it."""

import math
from functools import lru_cache
from itertools import combinations, product

import numpy as np
from flint import arb, fmpq

from fuzz import balls
from fuzz.balls import ONE, ZERO
from oracles import databases

#: Weights that are tried first, from e^-36 to 1 - e^-36.
_WEIGHTS = 1.0 / (1.0 + np.exp(-np.linspace(-36.0, 36.0, 73)))


def contraction_bound(W):
    """Return a lower bound on the contraction coefficient, from a good weight for every pair."""
    pairs = list(combinations(W, 2))
    if not pairs:
        return ZERO
    base, rows = offsets_of(W)
    first, second = np.array(list(combinations(range(len(W)), 2))).T
    squares = ((rows[first] - rows[second]) ** 2)[:, None]
    p, q = (np.maximum(base + rows[which], 0.0)[:, None] for which in (first, second))
    points = np.tile(_WEIGHTS, (len(pairs), 1))
    every = np.arange(len(pairs))
    for _ in range(4):  # the curve is concave: the best is between the best point's neighbours
        b = points[..., None]
        with np.errstate(all="ignore"):
            mixed = b * p + (1.0 - b) * q
            terms = np.where(mixed > 0.0, squares / mixed, 0.0).sum(axis=2)
            values = points * (1.0 - points) * terms
        k = np.where(np.isnan(values), 0.0, values).argmax(axis=1)
        best, last = points[every, k], points.shape[1] - 1
        low, high = points[every, np.maximum(k - 1, 0)], points[every, np.minimum(k + 1, last)]
        points = np.linspace(low, high, 21, axis=1)
    return balls.largest(
        chi_square(P, Q, arb(float(b))) for (P, Q), b in zip(pairs, best, strict=True)
    )


def chi_square(P, Q, b):
    """Return b(1-b) sum (P-Q)^2/(bP+(1-b)Q)."""
    terms = ((u - v, b * u + (1 - b) * v) for u, v in zip(P, Q, strict=True))
    return b * (1 - b) * sum((d * d / mean for d, mean in terms if balls.positive(mean)), ZERO)


# Capacities.


#: Ratios beyond count as this one.
_FAR = 1e300


def _phi(x):
    """Return (1 + x) ln(1 + x) - x, from its series where that would cancel."""
    series = x * x * (0.5 - x / 6.0 + x * x / 12.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        full = np.where(x > -1.0, (1.0 + x) * np.log1p(np.maximum(x, -1.0)) - x, 1.0)
    return np.where(np.abs(x) < 1e-3, series, full)


def capacity_laws(base, offsets, steps=80):
    """Return good input laws and their information, of channels (b, x, y) less a common row.

    Blahut-Arimoto, with steps as long for small capacities as for large ones. Differences from a
    common row keep their digits where rows are nearly equal.
    """
    count, inputs, _ = offsets.shape
    p = np.full((count, inputs), 1.0 / inputs)
    with np.errstate(all="ignore"):
        for _ in range(steps):
            mean = np.einsum("bx,bxy->by", p, offsets)
            q = np.maximum(base + mean, 0.0)[:, None]
            x = (offsets - mean[:, None]) / np.where(q > 0.0, q, 1.0)
            D = (q * _phi(np.minimum(x, _FAR))).sum(axis=2)
            most, value = D.max(axis=1), (p * D).sum(axis=1)
            if (most - value <= 2.0**-50 * value).all():  # the laws are as good as doubles tell
                break
            p = p * np.exp(D / np.maximum(most, 1e-300)[:, None])
            p /= p.sum(axis=1, keepdims=True)
    return p, value


def offsets_of(W):
    """Return the first row, and all rows less that, in doubles."""
    base = np.array([float(v.mid()) for v in W[0]])
    rows = [[float((v - w).mid()) for v, w in zip(row, W[0], strict=True)] for row in W]
    return base, np.array(rows)


def capacity_bounds(W, p):
    """Return bounds on the capacity that any input law proves."""
    p = balls.normal([float(v) for v in p])
    q = balls.output(W, p)
    far = [balls.divergence(row, q) for row in W]
    return sum((a * d for a, d in zip(p, far, strict=True) if a > 0), ZERO), balls.largest(far)


def capacity(W):
    """Return bounds on the capacity."""
    base, rows = offsets_of(W)
    laws, _ = capacity_laws(base, rows[None])
    return capacity_bounds(W, laws[0])


@lru_cache(maxsize=64)
def selections(sizes, k):
    """Return all ways to choose one database for every value of k rows, grouped by size."""
    every = list(enumerate(databases(sizes)))
    chosen = []
    for group in combinations(range(len(sizes)), k):
        values = product(*(range(sizes[i]) for i in group))
        parts = [[j for j, x in every if tuple(x[i] for i in group) == v] for v in values]
        chosen.append(np.array(list(product(*parts))))
    return chosen


def group_capacity(W, sizes, k, claimed=math.inf):
    """Return a lower bound on C_k, and an upper one of all selections where that is needed.

    A lower end that was claimed is true if a selection reaches it.
    """
    base, rows = offsets_of(W)
    best, tried = ZERO, []
    for choices in selections(tuple(sizes), k):
        laws, values = capacity_laws(base, rows[choices])
        tried.append((choices, laws))
        top = int(values.argmax())
        best = best.max(capacity_bounds([W[j] for j in choices[top]], laws[top])[0])
    if claimed < math.inf and best >= claimed:
        return best, best
    uppers = (
        capacity_bounds([W[j] for j in chosen], law)[1]
        for choices, laws in tried
        for chosen, law in zip(choices, laws, strict=True)
    )
    return best, balls.largest(uppers)


# Programs.


def least_distortion(p, sizes, ratio, joint):
    """Return the least distortion at a ratio, exactly: the simplex method in fractions."""
    far, pairs, size = balls.distances(tuple(sizes)), balls.pairs_of(tuple(sizes)), len(p)
    cells = [(x, y) for y in range(size) for x in range(size)]
    place = {cell: k for k, cell in enumerate(cells)}
    rows = []
    for y in range(size):
        for i, j in pairs:
            rows.append(({place[i, y]: fmpq(1), place[j, y]: -ratio}, fmpq(0)))
    equal = [
        ({place[x, y]: fmpq(1) for y in range(size)}, p[x] if joint else fmpq(1))
        for x in range(size)
    ]
    cost = [(fmpq(1) if joint else p[x]) * far[x][y] for x, y in cells]
    return minimise(cost, rows, equal)


def least_leaking(p, sizes, ratio):
    """Return the least distortion with W[x][y] <= ratio p_Y(y), exactly; p is positive."""
    far, size = balls.distances(tuple(sizes)), len(p)
    cells = [(x, y) for y in range(size) for x in range(size)]
    place = {cell: k for k, cell in enumerate(cells)}
    rows = []
    for x, y in cells:
        row = {place[z, y]: -ratio * p[z] for z in range(size)}
        row[place[x, y]] += 1
        rows.append((row, fmpq(0)))
    equal = [({place[x, y]: fmpq(1) for y in range(size)}, fmpq(1)) for x in range(size)]
    return minimise([p[x] * far[x][y] for x, y in cells], rows, equal)


def minimise(cost, upper, equal):
    """Return min c.v with A v <= 0, E v = b >= 0, v >= 0, by the simplex method in fractions."""
    count, slacks = len(cost), len(upper)
    width = count + slacks + len(equal)
    table, basis = [], []
    for k, (entries, right) in enumerate([*upper, *equal]):
        row = [fmpq(0)] * (width + 1)
        for column, value in entries.items():
            row[column] = value
        row[count + k], row[-1] = fmpq(1), right
        table.append(row)
        basis.append(count + k)
    first = [fmpq(0)] * (count + slacks) + [fmpq(1)] * len(equal)
    assert _pivot(table, basis, first, width) == 0
    return _pivot(table, basis, list(cost) + [fmpq(0)] * (slacks + len(equal)), count + slacks)


def _pivot(table, basis, cost, allowed):
    """Pivot until no reduced cost is negative; return the value. After a while Bland's rule."""
    line = [*cost, fmpq(0)]
    for row, k in zip(table, basis, strict=True):
        if cost[k] != 0:
            line = [a - cost[k] * e if e != 0 else a for a, e in zip(line, row, strict=True)]
    steps = 0
    while True:
        negative = [k for k in range(allowed) if line[k] < 0]
        if not negative:
            return -line[-1]
        steps += 1
        if steps > 2000:
            raise balls.Undecided
        entering = min(negative, key=lambda k: line[k]) if steps < 60 else negative[0]
        able = [i for i, row in enumerate(table) if row[entering] > 0]
        # Artificial variables that are left in the basis are zero, and must not grow again.
        idle = [i for i, row in enumerate(table) if basis[i] >= allowed and row[entering] != 0]
        leaving = min(idle or able, key=lambda i: (table[i][-1] / table[i][entering], basis[i]))
        lead = table[leaving][entering]
        pivot = table[leaving] = [e / lead if e != 0 else e for e in table[leaving]]
        filled = [k for k, e in enumerate(pivot) if e != 0]
        for row in (*(r for i, r in enumerate(table) if i != leaving), line):
            factor = row[entering]
            if factor != 0:
                for k in filled:
                    row[k] -= factor * pivot[k]
        basis[leaving] = entering


def _near_optimal(p, sizes, distortion):
    """Return Blahut's channel within a distortion, up to rounding, and its slope."""
    far = np.array(balls.distances(tuple(sizes)), dtype=float)
    law = np.array([float(v.mid()) for v in p])
    low, high = 0.0, 800.0
    for _ in range(40):
        slope = 0.5 * (low + high)
        V = _tilted(law, far, slope)
        reached = float((law[:, None] * V * far).sum())
        low, high = (slope, high) if reached > distortion else (low, slope)
    return _tilted(law, far, high), high


def rate_least(p, sizes, distortion):
    """Return a lower bound on the rate-distortion function, which any slope and law prove.

    With K = e^(-s d) and c = K'(p/Kq): R(D) >= -s D - sum p ln(Kq) - ln max c.
    """
    V, slope = _near_optimal(p, sizes, distortion)
    s, far = arb(slope), balls.distances(tuple(sizes))
    q = balls.output(balls.balls(V), p)
    total = sum(q, ZERO)
    q = [(v / total + arb("1e-30")) for v in q]
    K = [[(-s * d).exp() for d in row] for row in far]
    mixed = balls.output(K, q)
    c = balls.output(K, [a / z for a, z in zip(p, mixed, strict=True)])
    logs = sum((a * z.log() for a, z in zip(p, mixed, strict=True) if balls.positive(a)), ZERO)
    return (-s * arb(distortion) - logs - balls.largest(c).log()).lower().max(ZERO)


def rate_bound(p, sizes, distortion):
    """Return an upper bound on the rate-distortion function: the rate of a channel within D."""
    V, _ = _near_optimal(p, sizes, distortion)
    W = [balls.normal(row) for row in V.tolist()]
    reached = balls.distortion(W, p, sizes)
    if reached > distortion:  # mix with the identity until it is within
        share = arb(distortion) / reached
        W = [
            [share * w + (1 - share) * (ONE if x == y else ZERO) for y, w in enumerate(row)]
            for x, row in enumerate(W)
        ]
    return balls.mutual_information(W, p).upper()


def _tilted(law, far, slope, steps=60):
    """Return Blahut's channel at a slope."""
    K = np.exp(-slope * far)
    q = np.full(len(law), 1.0 / len(law))
    for _ in range(steps):
        V = K * q
        V /= np.maximum(V.sum(axis=1, keepdims=True), 1e-300)
        q = law @ V
    return V
