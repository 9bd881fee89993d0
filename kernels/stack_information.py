"""Information of many channels of one shape, by the rules of ``stacks``: W[b, x, y] and P[b, x]."""

import math

import numpy as np
from numba import uint64

from .arrays import largest_at, sum_of
from .declare import Cube, Matrix, Vector, helper, kernel
from .information import centre, divergence_head, entropy, log_tail
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


@helper(error_model="numpy", fastmath={"contract"})
def _shift(flat, base, weights, rows, width, ref, mass, shift):
    """Write sum_x weights (W_x - ref) / mass."""
    for y in range(uint64(width)):
        shift[y] = 0.0
    for x in range(rows):
        here = uint64(base + x * width)
        for y in range(uint64(width)):
            shift[y] += weights[x] * (flat[here + y] - flat[ref + y])
    for y in range(uint64(width)):
        shift[y] /= mass


@helper(fastmath={"contract"})
def _divergences(flat, base, rows, width, ref, shift, minus_q, c, s, h):
    """Leave D(W_xy, ref_y + shift_y) in h, with the mean repeated for every row.

    One loop over all entries is long enough to be vectorised even if rows are short.
    """
    for y in range(uint64(width)):
        minus_q[y], c[y] = centre(flat[ref + y], shift[y])
    size = uint64(rows * width)
    for i in range(uint64(width), size):
        minus_q[i] = minus_q[i - uint64(width)]
        c[i] = c[i - uint64(width)]
    start = uint64(base)
    for i in range(size):
        w = flat[start + i]
        s[i], h[i] = divergence_head(w, minus_q[i], (w + minus_q[i]) - c[i])
    for i in range(size):
        h[i] += flat[start + i] * log_tail(s[i])


@helper(error_model="numpy", fastmath={"contract"})
def _information(flat, base, p, rows, width, shift, scratch):
    """Mutual information: the mean of the divergences of the rows from their mean."""
    mass = sum_of(p)
    ref = uint64(base + largest_at(p) * width)
    _shift(flat, base, p, rows, width, ref, mass, shift)
    h = scratch[3]
    _divergences(flat, base, rows, width, ref, shift, scratch[0], scratch[1], scratch[2], h)
    total = 0.0
    for x in range(rows):
        row = 0.0
        here = uint64(x * width)
        for y in range(uint64(width)):
            row += h[here + y]
        total += p[x] * row
    return total / mass


@kernel()
def informations(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Mutual information of input and output."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    shift, scratch = np.empty(width), np.empty((4, rows * width))
    for b in range(count):
        if not are_laws(W, b, off) or prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        value = _information(flat, b * rows * width, p, rows, width, shift, scratch)
        out[b] = _noticed(value, flat, b * rows * width, p, rows, width)
    return -1


@helper(error_model="numpy")
def _share(part, whole):
    """Part / whole in [0, 1], rounded up; 0/0 = 0."""
    share = min(1.0, part / whole * (1.0 + ENTROPY)) if whole > 0.0 else 0.0
    return max(share, min(part, LEAST)) if whole > 0.0 else 0.0


@kernel()
def information_shares(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Mutual information over the entropy of the prior, rounded up."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    shift, scratch = np.empty(width), np.empty((4, rows * width))
    whole = 0.0
    for b in range(count):
        if not are_laws(W, b, off) or prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        if b < P.shape[0]:
            whole = entropy(p)
        part = _information(flat, b * rows * width, p, rows, width, shift, scratch)
        out[b] = _share(_noticed(part, flat, b * rows * width, p, rows, width), whole)
    return -1


@helper(error_model="numpy", fastmath={"contract"})
def _surprise(p, own):
    """Write p ln p of p divided by its sum, accurate also near one; return minus its sum."""
    top = largest_at(p)
    total, rest, whole = sum_of(p), 0.0, 0.0
    for x in range(p.size):
        share = p[x] / total
        own[x] = share * math.log(share) if share > 0.0 else 0.0
        rest += p[x] if x != top else 0.0
    if p[top] > 0.5 * total:
        own[top] = p[top] / total * math.log1p(-rest / total)
    for x in range(p.size):
        whole -= own[x]
    return whole


@helper(error_model="numpy", fastmath={"contract"})
def _entropy_gain(flat, base, p, own, whole, seen, rows, width, columns, scratch):
    """Largest H(X) - H(X | Y = y) over outputs that occur, rounded up.

    With d = W/q - 1 it is sum p f(d) + sum d p ln p, f(d) = (1+d) ln(1+d) - d, so that columns
    close to constant keep their digits. ``own`` is p ln p, and ``whole`` minus its sum.
    Outputs that are too rare for a double count as H(X).
    """
    number, mass = support(p, seen)
    least, most, law, shift, drift = columns[0], columns[1], columns[2], columns[3], columns[4]
    summary(flat, base, p, seen, number, width, least, most, law)
    ref = uint64(base + largest_at(p) * width)
    _shift(flat, base, p, rows, width, ref, mass, shift)
    _shift(flat, base, own, rows, width, ref, 1.0, drift)
    h = scratch[3]
    _divergences(flat, base, rows, width, ref, shift, scratch[0], scratch[1], scratch[2], h)
    slack = (rows + 32) * UNIT
    best = 0.0
    for y in range(width):
        if most[y] > 0.0:
            gain, q = whole * (1.0 + slack), law[y] / (mass * LIFT)
            if q > TINY:
                bent, seen_by = 0.0, 0.0
                for x in range(rows):
                    bent += p[x] * h[x * width + y]
                    seen_by -= own[x] * flat[base + x * width + y]
                bent /= mass
                size = min(
                    3.0 * whole * (most[y] - least[y]), whole * (q + flat[ref + y]) + seen_by
                )
                change = bent + (drift[y] + whole * shift[y])
                gain = min(gain, (change + slack * (bent + size)) / q)
            best = max(best, gain)
    return best


@kernel()
def entropy_shares(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Largest fall of the entropy at one output over the entropy of the prior, rounded up."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    own, seen = np.empty(rows), np.empty(rows, np.int64)
    columns, scratch = np.empty((5, width)), np.empty((4, rows * width))
    whole, surprise = 0.0, 0.0
    for b in range(count):
        if not are_laws(W, b, off) or prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        if b < P.shape[0]:
            whole = entropy(p)
            surprise = _surprise(p, own)
        gain = _entropy_gain(
            flat, b * rows * width, p, own, surprise, seen, rows, width, columns, scratch
        )
        out[b] = _share(_noticed(gain, flat, b * rows * width, p, rows, width), whole)
    return -1
