"""One pass over the columns of a channel, and one along a chain of rows, for leakage."""

import math

import numpy as np
from numba import njit

BLOCK = 1024  # columns whose running numbers stay in the first-level cache


@njit(nogil=True, cache=True)
def column_extremes(W, start, stop):
    """Largest and least entry of every column, over rows start <= x < stop: a (2, K) array."""
    width = W.shape[1]
    found = np.empty((2, width))
    for left in range(0, width, BLOCK):
        right = min(left + BLOCK, width)
        most, least = found[0, left:right], found[1, left:right]
        most[:] = W[start, left:right]
        least[:] = W[start, left:right]
        for x in range(start + 1, stop):
            row = W[x, left:right]
            for y in range(right - left):
                w = row[y]
                most[y] = w if w > most[y] else most[y]
                least[y] = w if w < least[y] else least[y]
    return found


@njit(nogil=True, cache=True, fastmath={"contract"})
def column_summary(W, p, start, stop):
    """Largest entry, least entry and p-mean of every column over rows with p > 0: (3, K).

    Where no row of the range has p > 0 the extremes are -inf and inf.
    """
    width = W.shape[1]
    found = np.empty((3, width))
    found[0] = -math.inf
    found[1] = math.inf
    found[2] = 0.0
    for left in range(0, width, BLOCK):
        right = min(left + BLOCK, width)
        most, least, law = found[0, left:right], found[1, left:right], found[2, left:right]
        for x in range(start, stop):
            weight = p[x]
            if weight > 0.0:
                row = W[x, left:right]
                for y in range(right - left):
                    w = row[y]
                    most[y] = w if w > most[y] else most[y]
                    least[y] = w if w < least[y] else least[y]
                    law[y] += weight * w
    return found


@njit(nogil=True, cache=True, fastmath={"contract"})
def column_gaps(W, p, most, least, start, stop):
    """Sums of p (most - W) and of p (W - least) for every column, no term negative: (2, K)."""
    found = np.zeros((2, W.shape[1]))
    down, up = found[0], found[1]
    for x in range(start, stop):
        weight = p[x]
        if weight > 0.0:
            for y in range(W.shape[1]):
                down[y] += weight * (most[y] - W[x, y])
                up[y] += weight * (W[x, y] - least[y])
    return found


@njit(nogil=True, cache=True)
def chain_log_mass(initial, transition, near, loss, assignment, rows):
    """Log of the expected product of near[assignment[i], y_i, state i] along a Markov chain.

    ``loss`` = 1 - near keeps its digits where near is close to one. The forward recursion,
    divided by its mass at every row; the logarithms are added with a carry (Neumaier).
    """
    m = initial.shape[0]
    law = initial.copy()
    ahead = np.empty(m)
    total = 0.0
    carry = 0.0
    for i in range(rows.shape[0]):
        kept, lost = near[assignment[i], rows[i]], loss[assignment[i], rows[i]]
        mass = 0.0
        gone = 0.0
        size = 0.0
        for a in range(m):
            gone += law[a] * lost[a]
            size += law[a]
            law[a] *= kept[a]
            mass += law[a]
        if mass == 0.0:
            return -math.inf
        term = math.log1p(-gone / size) if gone < 0.5 * size else math.log(mass / size)
        added = total + term
        carry += (total - added) + term if abs(total) >= abs(term) else (term - added) + total
        total = added
        for b in range(m):
            flow = 0.0
            for a in range(m):
                flow += law[a] * transition[a, b]
            ahead[b] = flow / mass
        law, ahead = ahead, law
    return total + carry


@njit(nogil=True, cache=True)
def chain_log_best(initial, transition, log_near, assignment, rows):
    """Largest sum of log_near[assignment[i], y_i, state i] over paths the chain can take."""
    m = initial.shape[0]
    best = np.empty(m)
    ahead = np.empty(m)
    for a in range(m):
        best[a] = log_near[assignment[0], rows[0], a] if initial[a] > 0.0 else -math.inf
    for i in range(1, rows.shape[0]):
        gain = log_near[assignment[i], rows[i]]
        for b in range(m):
            top = -math.inf
            for a in range(m):
                if transition[a, b] > 0.0:
                    top = max(top, best[a])
            ahead[b] = top + gain[b]
        best, ahead = ahead, best
    return best.max()


@njit(nogil=True, cache=True)
def binomial_product(n1, a0, a1, n2, b0, b1, n, forced, first, last):
    """Logs of c_k / C(n, k + forced), c_k the coefficients of (a0 + a1 u)^n1 (b0 + b1 u)^n2.

    The c_k obey a three-term recurrence whose terms are all positive from below up to the bend
    and, run backwards, from above down to it: no digits are lost on either side. ``first`` and
    ``last`` are the logarithms at both ends.
    """
    size = n1 + n2
    logs = np.empty(size + 1)
    logs[0], logs[size] = first, last
    rise = n1 * a1 * b0 + n2 * b1 * a0
    slope = a0 * b1 + a1 * b0
    bend = min(int(rise / slope), size)
    total, carry, ratio = first, 0.0, 1.0
    for k in range(bend):
        above = max(rise - slope * k, 0.0)
        if k > 0:
            above += a1 * b1 * (size - k + 1) / ratio
        ratio = above / (a0 * b0 * (k + 1))
        term = math.log(ratio * (k + forced + 1) / (n - k - forced))
        added = total + term
        carry += (total - added) + term if abs(total) >= abs(term) else (term - added) + total
        total = added
        logs[k + 1] = total + carry
    total, carry, ratio = last, 0.0, 1.0
    for k in range(size, bend + 1, -1):
        below = max(slope * k - rise, 0.0)
        if k < size:
            below += a0 * b0 * (k + 1) / ratio
        ratio = below / (a1 * b1 * (size - k + 1))
        term = math.log(ratio * (n - k - forced + 1) / (k + forced))
        added = total + term
        carry += (total - added) + term if abs(total) >= abs(term) else (term - added) + total
        total = added
        logs[k - 1] = total + carry
    return logs


SIGNATURES = {
    "binomial_product": ["f8[::1](i8, f8, f8, i8, f8, f8, i8, i8, f8, f8)"],
    "chain_log_best": ["f8(f8[::1], f8[:, ::1], f8[:, :, ::1], i8[::1], i8[::1])"],
    "chain_log_mass": ["f8(f8[::1], f8[:, ::1], f8[:, :, ::1], f8[:, :, ::1], i8[::1], i8[::1])"],
    "column_extremes": ["f8[:, ::1](f8[:, ::1], i8, i8)"],
    "column_gaps": ["f8[:, ::1](f8[:, ::1], f8[::1], f8[::1], f8[::1], i8, i8)"],
    "column_summary": ["f8[:, ::1](f8[:, ::1], f8[::1], i8, i8)"],
}
