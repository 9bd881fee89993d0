"""Mutual information of finite channels without cancellation.

Every kernel is a weighted sum of the divergence of two numbers

    D(w, q) = w ln(w / q) - w + q >= 0,        I = sum_x p_x sum_y D(W_xy, q_y),

with q the p-mean of the rows.  No term is negative, so I is as accurate as D, in
relative terms, however close the rows are.  That takes w - q to full precision
when w is near q; the mean is therefore kept as an unevaluated sum q + c.  The
error left in the mean counts only squared, because for any other q'
sum_x p_x D(W_x, q') = I + D(q, q').

The inner loops are elementwise (sums go into an array of lanes that `fold` adds
up pairwise), free of branches and inlined, so LLVM vectorises them without
fastmath.  Not even products and sums are fused: every processor, and plain Python,
returns the same bits, for a tenth of the time.  `np.divide` divides
without the test for ZeroDivisionError, which would be a branch; no divisor here is
ever zero.
"""

import math

import numpy as np

from .arrays import copy, largest_at
from .declare import Matrix, Vector, helper, kernel

LN2 = math.log(2.0)
TINY = 2.0**-1021  # numbers below enter logarithms as this one
HALF = np.uint64(1 << 51)  # half a unit of the exponent, in the bits of a float64
SHIFT = np.uint64(52)
BIG = np.uint64(0x433 << 52)  # the bits of 2^52; or-ed with n they are the bits of 2^52 + n
ZERO = 2.0**52 + 2048.0
BLOCK = 128  # terms added one after the other before the lanes are folded
CHUNK = 1024  # elements of a vector handled at a time


@helper()
def _floor(w):
    """w, or TINY if w is smaller."""
    return w if w > TINY else TINY


@helper()
def _scale(w, minus_q):
    """The k (as a float) and 2^k q with 2/3 <= 2^k q / w <= 3/2; both w, q >= TINY.

    The difference of two bit patterns is nearly 2^52 log2(w / q); k is its rounded
    exponent part.  The sign bit of -q adds the 2048 that keeps it non-negative.
    """
    bits = np.float64(minus_q).view(np.uint64)
    k = (np.float64(w).view(np.uint64) - bits + HALF) >> SHIFT
    scaled = np.uint64(bits + (k << SHIFT)).view(np.float64)
    return np.uint64(k | BIG).view(np.float64) - ZERO, scaled


@helper()
def log_tail(s):
    """2 (atanh(s) - s) for |s| <= 1/5: s^3 times a Chebyshev fit in s^2, to 3e-15."""
    z = s * s
    z2 = z * z
    low = (0.6666666666666694 + 0.39999999999335556 * z) + z2 * (
        0.2857142883604555 + 0.22222182776674482 * z
    )
    high = (0.18184610246294064 + 0.15283703752403146 * z) + z2 * 0.1511848710872457
    return (s * z) * (low + (z2 * z2) * high)


@helper()
def divergence_head(w, minus_q, diff):
    """S and h with D(w, q) = h + w log_tail(s), given diff = w - q and q >= TINY.

    With s = (w - 2^k q) / (w + 2^k q), ln(w / q) = k ln 2 + 2 s + log_tail(s).  For k = 0
    the numerator, exact otherwise, is the caller's more precise diff, and what is
    left of w 2 s - diff is s diff: nothing cancels.
    """
    v = _floor(w)
    k, scaled = _scale(v, minus_q)
    near = scaled == -minus_q
    s = np.divide(diff if near else v - scaled, v + scaled)
    return s, s * diff if near else w * (k * LN2 + 2.0 * s) - diff


@helper()
def times_log(w):
    """Return w ln w, 0 for 0."""
    v = _floor(w)
    k, scaled = _scale(v, -1.0)
    s = np.divide(v - scaled, v + scaled)
    return w * (k * LN2 + (2.0 * s + log_tail(s)))


@helper()
def _divergence(w, minus_q, diff):
    """D(w, q), given diff = w - q and q >= TINY."""
    s, head = divergence_head(w, minus_q, diff)
    return head + w * log_tail(s)


@helper()
def _mean(ref, shift):
    """Ref + shift as q + c, q the rounded sum and c its rounding error (Knuth)."""
    q = ref + shift
    back = q - ref
    return q, (ref - (q - back)) + (shift - back)


@helper()
def centre(ref, shift):
    """-q and c with q + c = ref + shift and q >= TINY."""
    q, c = _mean(ref, shift)
    floor = _floor(q)
    return -floor, c + (q - floor)


@helper()
def fold(lanes, n):
    """Pairwise sum of lanes[:n], in place; it halves n until one number is left."""
    while n > 1:
        half = n // 2
        for i in range(half):
            lanes[i] += lanes[n - half + i]
        n -= half
    return lanes[0]


@kernel(small=True)
def shift_rows(W: Matrix, p: Vector, ref: Vector, start: int, stop: int) -> Vector:
    """sum_x p_x (W_x - ref) over rows start <= x < stop: the mean relative to ref.

    With ref the row of largest p the terms are small whenever the rows are close.
    """
    shift = np.zeros(W.shape[1])
    for x in range(start, stop):
        weight = p[x]
        if weight != 0.0:
            for y in range(shift.size):
                shift[y] += weight * (W[x, y] - ref[y])
    return shift


@kernel()
def information_rows(
    W: Matrix, p: Vector, ref: Vector, shift: Vector, start: int, stop: int
) -> float:
    """sum_x p_x sum_y D(W_xy, ref_y + shift_y) over rows start <= x < stop.

    Head and tail are separate loops over the row, so that the constants of each fit
    the registers and the polynomial does not queue behind the division.
    """
    width = W.shape[1]
    minus_q = np.empty(width)
    c = np.empty(width)
    s = np.empty(width)
    lanes = np.empty(width)
    for y in range(width):
        minus_q[y], c[y] = centre(ref[y], shift[y])
    total = 0.0
    for low in range(start, stop, BLOCK):
        lanes[:] = 0.0
        for x in range(low, min(low + BLOCK, stop)):
            weight = p[x]
            if weight != 0.0:
                for y in range(width):
                    w = W[x, y]
                    s[y], head = divergence_head(w, minus_q[y], (w + minus_q[y]) - c[y])
                    lanes[y] += weight * head
                for y in range(width):
                    lanes[y] += weight * W[x, y] * log_tail(s[y])
        total += fold(lanes, width)
    return total


@kernel(small=True)
def divergence_columns(
    W: Matrix, p: Vector, ref: Vector, shift: Vector, start: int, stop: int
) -> Vector:
    """sum_x p_x D(W_xy, ref_y + shift_y) over rows start <= x < stop, for every column."""
    width = W.shape[1]
    minus_q = np.empty(width)
    c = np.empty(width)
    s = np.empty(width)
    lanes = np.zeros(width)
    for y in range(width):
        minus_q[y], c[y] = centre(ref[y], shift[y])
    for x in range(start, stop):
        weight = p[x]
        if weight != 0.0:
            for y in range(width):
                w = W[x, y]
                s[y], head = divergence_head(w, minus_q[y], (w + minus_q[y]) - c[y])
                lanes[y] += weight * head
            for y in range(width):
                lanes[y] += weight * W[x, y] * log_tail(s[y])
    return lanes


@kernel(small=True)
def mutual_information(W: Matrix, p: Vector) -> float:
    """Mutual information (nats) of channel W (N, K) with input p, as if p summed to 1.

    A caller with threads does the same with ranges of rows: add the `shift_rows`,
    divide by the sum of p, add the `information_rows`, divide again.
    """
    lanes = np.empty(p.size)
    copy(p, lanes)
    mass = fold(lanes, p.size)
    mass = mass if mass > 0.0 else 1.0
    ref = W[largest_at(p)]
    shift = shift_rows(W, p, ref, 0, p.size)
    for y in range(shift.size):
        shift[y] = np.divide(shift[y], mass)
    return information_rows(W, p, ref, shift, 0, p.size) / mass


@kernel(small=True)
def entropy_range(p: Vector, start: int, stop: int) -> float:
    """-sum p ln p over start <= i < stop: chunks are folded, then added with a carry."""
    lanes = np.empty(CHUNK)
    total = 0.0
    carry = 0.0
    for low in range(start, stop, CHUNK):
        n = min(CHUNK, stop - low)
        for i in range(n):
            lanes[i] = times_log(p[low + i])
        total, error = _mean(total, fold(lanes, n))
        carry += error
    return 0.0 - (total + carry)


@kernel(small=True)
def entropy(p: Vector) -> float:
    """Entropy (nats) of p, with 0 ln 0 = 0.

    A probability above one half is computed as the sum minus the others: close to certainty
    its rounding error is as large as its share of the entropy.
    """
    top = 0
    for i in range(p.size):
        if p[i] > p[top]:
            top = i
    if p.size == 0 or p[top] <= 0.5:
        return entropy_range(p, 0, p.size)
    rest = 0.0
    for i in range(p.size):
        rest += p[i] if i != top else 0.0
    others = entropy_range(p, 0, top) + entropy_range(p, top + 1, p.size)
    return others - p[top] * math.log1p(-rest / (p[top] + rest))


@kernel(small=True)
def symmetric_information(joint: Matrix, off: float, gap: float) -> float:
    """sum_l of U_l times the information of R = off + gap * identity under joint[l] / U_l.

    joint is (L, m).  Given y, R takes two values, off + gap with probability
    same = joint[l, y] and off with rest = the sum of the others (from running sums
    in both directions, never 1 - same), so there are two divergences for each (l, y).
    """
    count, m = joint.shape
    width = min(count, BLOCK)  # at most as wide as the distributions
    same = np.empty((m, width))
    rest = np.empty((m, width))
    run = np.empty(BLOCK)
    on = off + gap
    total = 0.0
    carry = 0.0
    for low in range(0, count, BLOCK):
        n = min(BLOCK, count - low)
        for i in range(n):
            for y in range(m):
                same[y, i] = joint[low + i, y]
        run[:] = 0.0
        for y in range(m):
            for i in range(n):
                rest[y, i] = run[i]
                run[i] += same[y, i]
        run[:] = 0.0
        for y in range(m - 1, -1, -1):
            for i in range(n):
                rest[y, i] += run[i]
                run[i] += same[y, i]
        run[:] = 0.0
        for y in range(m):
            for i in range(n):
                mass = same[y, i] + rest[y, i]
                mass = mass if mass > 0.0 else 1.0
                hit = np.divide(same[y, i], mass)
                miss = np.divide(rest[y, i], mass)
                minus_q = -_floor(on * hit + off * miss)
                run[i] += same[y, i] * _divergence(on, minus_q, gap * miss)
                run[i] += rest[y, i] * _divergence(off, minus_q, -gap * hit)
        total, error = _mean(total, fold(run, n))
        carry += error
    return total + carry


@kernel()
def factor_information(joint: Matrix, W: Matrix) -> float:
    """sum_l of U_l times the information of channel W (m, k) under joint[l] / U_l.

    As `mutual_information` for every row of joint (L, m), but vectorised along l:
    ref is then a gather, for each l from the row of W with the largest joint[l].
    """
    count, m = joint.shape
    weight = np.empty((m, min(count, BLOCK)))
    mass = np.empty(BLOCK)
    heavy = np.empty(BLOCK, np.int64)
    ref = np.empty(BLOCK)
    minus_q = np.empty(BLOCK)
    c = np.empty(BLOCK)
    lanes = np.empty(BLOCK)
    total = 0.0
    carry = 0.0
    for low in range(0, count, BLOCK):
        n = min(BLOCK, count - low)
        for i in range(n):
            for s in range(m):
                weight[s, i] = joint[low + i, s]
        mass[:] = 0.0
        for i in range(n):
            heavy[i] = largest_at(joint[low + i])
        for s in range(m):
            for i in range(n):
                mass[i] += weight[s, i]
        for i in range(n):
            mass[i] = mass[i] if mass[i] > 0.0 else 1.0
        lanes[:] = 0.0
        for y in range(W.shape[1]):
            for i in range(n):
                ref[i] = W[heavy[i], y]
                c[i] = 0.0
            for s in range(m):
                for i in range(n):
                    c[i] += weight[s, i] * (W[s, y] - ref[i])
            for i in range(n):
                minus_q[i], c[i] = centre(ref[i], np.divide(c[i], mass[i]))
            for s in range(m):
                for i in range(n):
                    diff = (W[s, y] + minus_q[i]) - c[i]
                    lanes[i] += weight[s, i] * _divergence(W[s, y], minus_q[i], diff)
        total, error = _mean(total, fold(lanes, n))
        carry += error
    return total + carry
