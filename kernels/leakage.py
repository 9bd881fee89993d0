"""One pass over the columns of a channel, and one along a chain of records, for leakage."""

import math

import numpy as np

from .arrays import high, largest, low
from .declare import Cube, Ints, Matrix, Vector, helper, kernel, uint64

BLOCK = 512  # columns whose running numbers stay in the first-level cache
SMALL = 1e-100  # a product of three numbers from here on does not underflow


@kernel(small=True)
def column_extremes(W: Matrix, start: int, stop: int) -> Matrix:
    """Largest and smallest entry of every column, over rows start <= x < stop: a (2, K) array.

    Four rows at a time; the last ones are repeated if four does not divide their number.
    """
    stride = W.shape[1]
    flat = W.reshape(-1)
    summary = np.empty((2, stride))
    most = np.empty(BLOCK)
    least = np.empty(BLOCK)
    for left in range(0, stride, BLOCK):
        width = uint64(min(BLOCK, stride - left))
        most[:] = -math.inf
        least[:] = math.inf
        for x in range(start, stop, 4):
            p0 = uint64(x * stride + left)
            p1 = uint64(min(x + 1, stop - 1) * stride + left)
            p2 = uint64(min(x + 2, stop - 1) * stride + left)
            p3 = uint64(min(x + 3, stop - 1) * stride + left)
            for y in range(width):
                a, b, c, d = flat[p0 + y], flat[p1 + y], flat[p2 + y], flat[p3 + y]
                least[y] = low(least[y], low(low(a, b), low(c, d)))
                most[y] = high(most[y], high(high(a, b), high(c, d)))
        for y in range(width):
            summary[0, left + y], summary[1, left + y] = most[y], least[y]
    return summary


@kernel(small=True)
def column_summary(W: Matrix, p: Vector, rows: Ints, start: int, stop: int) -> Matrix:
    """Largest entry, smallest entry and p-sum of every column over rows[start:stop]: (3, K).

    Four rows at a time; the last one is repeated with weight zero to fill four.
    """
    stride = W.shape[1]
    flat = W.reshape(-1)
    summary = np.empty((3, stride))
    most = np.empty(BLOCK)
    least = np.empty(BLOCK)
    law = np.empty(BLOCK)
    for left in range(0, stride, BLOCK):
        width = uint64(min(BLOCK, stride - left))
        most[:] = -math.inf
        least[:] = math.inf
        law[:] = 0.0
        for k in range(start, stop, 4):
            x0, x1 = rows[k], rows[min(k + 1, stop - 1)]
            x2, x3 = rows[min(k + 2, stop - 1)], rows[min(k + 3, stop - 1)]
            w0, w1 = p[x0], p[x1] if k + 1 < stop else 0.0
            w2, w3 = p[x2] if k + 2 < stop else 0.0, p[x3] if k + 3 < stop else 0.0
            p0, p1 = uint64(x0 * stride + left), uint64(x1 * stride + left)
            p2, p3 = uint64(x2 * stride + left), uint64(x3 * stride + left)
            for y in range(width):
                a, b, c, d = flat[p0 + y], flat[p1 + y], flat[p2 + y], flat[p3 + y]
                least[y] = low(least[y], low(low(a, b), low(c, d)))
                most[y] = high(most[y], high(high(a, b), high(c, d)))
                law[y] += (w0 * a + w1 * b) + (w2 * c + w3 * d)
        for y in range(width):
            summary[0, left + y], summary[1, left + y] = most[y], least[y]
            summary[2, left + y] = law[y]
    return summary


@kernel(small=True)
def column_gaps(
    W: Matrix, p: Vector, most: Vector, least: Vector, rows: Ints, start: int, stop: int
) -> Matrix:
    """Sums of p (most - W) and of p (W - least) over rows[start:stop], no term negative: (2, K)."""
    stride = W.shape[1]
    flat = W.reshape(-1)
    summary = np.empty((2, stride))
    down = np.empty(BLOCK)
    up = np.empty(BLOCK)
    for left in range(0, stride, BLOCK):
        width = uint64(min(BLOCK, stride - left))
        top, bottom = most[left : left + width], least[left : left + width]
        down[:] = 0.0
        up[:] = 0.0
        for k in range(start, stop):
            weight = p[rows[k]]
            here = uint64(rows[k] * stride + left)
            for y in range(width):
                w = flat[here + y]
                down[y] += weight * (top[y] - w)
                up[y] += weight * (w - bottom[y])
        for y in range(width):
            summary[0, left + y], summary[1, left + y] = down[y], up[y]
    return summary


@kernel()
def chain_log_mass(
    initial: Vector, transition: Matrix, near: Cube, loss: Cube, assignment: Ints, rows: Ints
) -> float:
    """Log of the expected product of near[assignment[i], y_i, state i] along a Markov chain.

    ``loss`` = 1 - near keeps its digits if near is close to one. The forward recursion,
    divided by its mass at every record; the logarithms are added with a carry (Neumaier). NaN if
    some state becomes so rare that terms might underflow; entries of ``transition`` and
    ``near`` between 0 and ``SMALL`` are not for this recursion.
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
            if 0.0 < law[a] < SMALL:
                return math.nan
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


@helper()
def _log_sum(first, second):
    """Log of the sum of e^(first + second)."""
    top = -math.inf
    for a in range(first.shape[0]):
        top = max(top, first[a] + second[a])
    if top == -math.inf:
        return top
    total = 0.0
    for a in range(first.shape[0]):
        total += math.exp(first[a] + second[a] - top)
    return top + math.log(total)


@kernel()
def chain_log_sum(
    log_initial: Vector, log_back: Matrix, log_near: Cube, assignment: Ints, rows: Ints
) -> tuple[float, float]:
    """Compute ``chain_log_mass`` in logarithms; return also the largest that was added up.

    ``log_back[b, a]`` is the log of the probability of b after a. No state is too rare for it.
    """
    m = log_initial.shape[0]
    law = log_initial.copy()
    ahead = np.empty(m)
    total = 0.0
    carry = 0.0
    widest = 0.0
    for i in range(rows.shape[0]):
        gain = log_near[assignment[i], rows[i]]
        term = _log_sum(law, gain)
        if term == -math.inf:
            return term, widest
        added = total + term
        carry += (total - added) + term if abs(total) >= abs(term) else (term - added) + total
        total = added
        for a in range(m):
            law[a] += gain[a] - term
            if law[a] > -math.inf:
                widest = max(widest, abs(law[a]), abs(gain[a]))
        for b in range(m):
            ahead[b] = _log_sum(law, log_back[b])
        law, ahead = ahead, law
    return total + carry, widest


@kernel()
def chain_log_best(
    initial: Vector, transition: Matrix, log_near: Cube, assignment: Ints, rows: Ints
) -> float:
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
    return largest(best)


@kernel()
def binomial_product(
    n1: int,
    a0: float,
    a1: float,
    n2: int,
    b0: float,
    b1: float,
    n: int,
    forced: int,
    first: float,
    last: float,
) -> Vector:
    """Logs of c_k / C(n, k + forced), c_k the coefficients of (a0 + a1 u)^n1 (b0 + b1 u)^n2.

    The c_k obey a three-term recurrence whose terms are all positive from below up to the bend
    and, run backwards, from above down to it: no digits are lost on either side. ``first`` and
    ``last`` are the first and the last logarithm.
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
