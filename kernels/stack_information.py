"""Information of many channels of one shape, by the rules of ``stacks``: W[b, x, y] and P[b, x]."""

import math

import numpy as np

from .arrays import high, largest_at, low, sum_of
from .declare import Cube, Matrix, Vector, helper, kernel, uint64
from .information import centre, divergence_head, fold, log_tail, times_log
from .stacks import LIFT, UNIT, are_laws, prior_fails, summary, support

TINY = 1e-280  # a mass below may have lost terms to underflow
ENTROPY = 2.0**-46  # relative error of an entropy
LEAST = 5e-324  # the smallest double, for information that underflows


@helper()
def _noticed(value, flat, base, p, rows, width):
    """A value of at least 0, or the smallest double if it underflowed.

    Zero is exact only if all rows that may occur are the same.
    """
    if value != 0.0:
        return value
    first = base + largest_at(p) * width
    for x in range(rows):
        if p[x] > 0.0:
            for y in range(width):
                if flat[base + x * width + y] != flat[first + y]:
                    return LEAST
    return value


@helper(error_model="numpy")
def _shift(flat, base, weights, rows, width, ref, shift):
    """Write sum_x weights (W_x - ref), four rows at a time."""
    columns = uint64(width)
    for y in range(columns):
        shift[y] = 0.0
    for x in range(0, rows - 3, 4):
        w0, w1, w2, w3 = weights[x], weights[x + 1], weights[x + 2], weights[x + 3]
        p0 = uint64(base + x * width)
        p1, p2, p3 = p0 + columns, p0 + columns + columns, p0 + columns + columns + columns
        for y in range(columns):
            r = flat[ref + y]
            first = w0 * (flat[p0 + y] - r) + w1 * (flat[p1 + y] - r)
            shift[y] += first + (w2 * (flat[p2 + y] - r) + w3 * (flat[p3 + y] - r))
    for x in range(rows - rows % 4, rows):
        here = uint64(base + x * width)
        for y in range(columns):
            shift[y] += weights[x] * (flat[here + y] - flat[ref + y])


@helper()
def _column_sums(h, weights, rows, width, sums):
    """Write sum_x weights h_x, four rows at a time."""
    columns = uint64(width)
    for y in range(columns):
        sums[y] = 0.0
    for x in range(0, rows - 3, 4):
        w0, w1, w2, w3 = weights[x], weights[x + 1], weights[x + 2], weights[x + 3]
        p0 = uint64(x * width)
        p1, p2, p3 = p0 + columns, p0 + columns + columns, p0 + columns + columns + columns
        for y in range(columns):
            first = w0 * h[p0 + y] + w1 * h[p1 + y]
            sums[y] += first + (w2 * h[p2 + y] + w3 * h[p3 + y])
    for x in range(rows - rows % 4, rows):
        here = uint64(x * width)
        for y in range(columns):
            sums[y] += weights[x] * h[here + y]


@helper()
def _repeat(v, width, size):
    """Repeat the first ``width`` entries up to ``size``."""
    done = width
    while done < size:
        more = min(done, size - done)
        there = uint64(done)
        for i in range(uint64(more)):
            v[there + i] = v[i]
        done += more


@helper()
def _divergences(flat, base, rows, width, ref, shift, minus_q, c, s, h):
    """Leave D(W_xy, ref_y + shift_y) in h, with the mean repeated for every row.

    One loop over all entries is long enough to be vectorised even if rows are short.
    """
    for y in range(uint64(width)):
        minus_q[y], c[y] = centre(flat[ref + y], shift[y])
    _repeat(minus_q, width, rows * width)
    _repeat(c, width, rows * width)
    size, start = uint64(rows * width), uint64(base)
    for i in range(size):
        w = flat[start + i]
        s[i], h[i] = divergence_head(w, minus_q[i], (w + minus_q[i]) - c[i])
    for i in range(size):
        h[i] += flat[start + i] * log_tail(s[i])


@helper(error_model="numpy")
def _information(flat, base, p, rows, width, shift, minus_q, c, s, h):
    """Mutual information: the mean of the divergences of the rows from their mean."""
    mass = sum_of(p)
    ref = uint64(base + largest_at(p) * width)
    _shift(flat, base, p, rows, width, ref, shift)
    for y in range(uint64(width)):
        shift[y] /= mass
    _divergences(flat, base, rows, width, ref, shift, minus_q, c, s, h)
    _column_sums(h, p, rows, width, shift)
    return fold(shift, width) / mass


@kernel()
def informations(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Mutual information of input and output."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    size, shift = rows * width, np.empty(width)
    minus_q, c, s, h = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for b in range(count):
        if not are_laws(flat, b, rows, width, off) or prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        value = _information(flat, b * size, p, rows, width, shift, minus_q, c, s, h)
        out[b] = _noticed(value, flat, b * size, p, rows, width)
    return -1


@helper(error_model="numpy")
def _share(part, whole):
    """Part / whole in [0, 1], rounded up; 0/0 = 0."""
    share = min(1.0, part / whole * (1.0 + ENTROPY)) if whole > 0.0 else 0.0
    return max(share, min(part, LEAST)) if whole > 0.0 else 0.0


@kernel(small=True)
def information_shares(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Mutual information over the entropy of the prior, rounded up."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    size, shift, own = rows * width, np.empty(width), np.empty(rows)
    minus_q, c, s, h = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    whole = 0.0
    for b in range(count):
        if not are_laws(flat, b, rows, width, off) or prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        if b < P.shape[0]:
            whole = _surprise(p, own)
        part = _information(flat, b * size, p, rows, width, shift, minus_q, c, s, h)
        out[b] = _share(_noticed(part, flat, b * size, p, rows, width), whole)
    return -1


@helper(error_model="numpy")
def _surprise(p, own):
    """Write p ln p of p divided by its sum, accurate also near one; return minus its sum."""
    top = largest_at(p)
    total, whole = sum_of(p), 0.0
    for x in range(uint64(p.size)):
        own[x] = times_log(p[x] / total)
    if p[top] > 0.5 * total:
        rest = 0.0
        for x in range(p.size):
            rest += p[x] if x != top else 0.0
        own[top] = p[top] / total * math.log1p(-rest / total)
    for x in range(p.size):
        whole -= own[x]
    return whole


@helper(error_model="numpy")
def _entropy_gain(
    flat, base, p, own, whole, seen, rows, width, columns, shift, drift, bent, minus_q, c, s, h
):
    """Largest H(X) - H(X | Y = y) over outputs that occur, rounded up.

    With d = W/q - 1 it is sum p f(d) + sum d p ln p, f(d) = (1+d) ln(1+d) - d, so that columns
    close to constant keep their digits. ``own`` is p ln p, and ``whole`` minus its sum.
    Outputs that are too rare for a double count as H(X).
    """
    number, mass = support(p, seen)
    least, most, law, seen_by = columns[0], columns[1], columns[2], columns[3]
    summary(flat, base, p, seen, number, width, least, most, law)
    ref = uint64(base + largest_at(p) * width)
    _shift(flat, base, p, rows, width, ref, shift)
    for y in range(uint64(width)):
        shift[y] /= mass
    _shift(flat, base, own, rows, width, ref, drift)
    _divergences(flat, base, rows, width, ref, shift, minus_q, c, s, h)
    _column_sums(h, p, rows, width, bent)
    _column_sums(flat[base : base + rows * width], own, rows, width, seen_by)
    slack = (rows + 32) * UNIT
    best, scale, all_of_it = 0.0, mass * LIFT, whole * (1.0 + slack)
    for y in range(uint64(width)):
        q, bend = law[y] / scale, bent[y] / mass
        # Every term of the drift is at most own times the width of its column, or own times the
        # entries themselves.
        size = low(3.0 * whole * (most[y] - least[y]), whole * (q + flat[ref + y]) - seen_by[y])
        gain = (bend + (drift[y] + whole * shift[y]) + slack * (bend + size)) / q
        gain = low(gain, all_of_it) if q > TINY else all_of_it
        best = high(best, gain if most[y] > 0.0 else 0.0)
    return best


@kernel(small=True)
def entropy_shares(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Largest fall of the entropy at one output over the entropy of the prior, rounded up."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    own, seen, size = np.empty(rows), np.empty(rows, np.int64), rows * width
    columns, shift, drift, bent = (
        np.empty((4, width)),
        np.empty(width),
        np.empty(width),
        np.empty(width),
    )
    minus_q, c, s, h = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    whole = 0.0
    for b in range(count):
        if not are_laws(flat, b, rows, width, off) or prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        if b < P.shape[0]:
            whole = _surprise(p, own)
        gain = _entropy_gain(
            flat, b * size, p, own, whole, seen, rows, width, columns, shift, drift, bent,
            minus_q, c, s, h,
        )  # fmt: skip
        out[b] = _share(_noticed(gain, flat, b * size, p, rows, width), whole)
    return -1
