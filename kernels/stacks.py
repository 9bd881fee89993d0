"""Measures of many channels of one shape: W[b, x, y] in, one number for each b out.

Each kernel checks a channel and its prior when it comes to it, while they are in the cache. It
stops at the first that is not a law within ``off`` and returns its number, or -1 at the end. A NaN
in ``out`` marks a channel whose numbers are too small for these sums: the caller measures it alone.

``P`` has one prior for each channel, or one for all of them.
"""

import math

import numpy as np
from numba import uint64

from fastpriv.kernels.arrays import high, largest_at, low
from fastpriv.kernels.declare import Cube, Matrix, Vector, helper, kernel
from fastpriv.kernels.information import (
    divergence_columns,
    entropy,
    mutual_information,
    shift_rows,
)
from fastpriv.kernels.leakage import column_summary
from fastpriv.kernels.lines import worst_column

UNIT = 2.0**-53
ROUND_UP = 1.0 + 2.0**-51
NORMAL = 2.0**-1022  # from here on doubles have all their digits
RARE = 2.0**-848  # times 2^900 and the least double, chances from here on have all their digits
LIFT = 2.0**900  # keeps products of small numbers from underflowing, and is exact
TINY = 1e-280  # a mass below may have lost terms to underflow
NEAR = 0.5  # leakages below come from differences
SMALL = 0.1  # below, products p W would spoil the last digits of a level
ENTROPY = 2.0**-46  # relative error of an entropy


@helper(fastmath={"contract", "reassoc"})
def _is_law(flat, base, width, off):
    """Whether numbers are not negative and sum to 1 within ``off``; a NaN fails."""
    total = 0.0
    below = 0
    for y in range(width):
        total += flat[base + y]
        below += flat[base + y] < 0.0
    return below == 0 and abs(total - 1.0) <= off


@helper()
def _are_laws(W, b, off):
    """Whether all rows of channel b are laws."""
    flat = W.reshape(-1)
    width = uint64(W.shape[2])
    for x in range(W.shape[1]):
        if not _is_law(flat, uint64((b * W.shape[1] + x) * W.shape[2]), width, off):
            return False
    return True


@helper()
def _prior_fails(P, b, off):
    """Whether channel b has a prior of its own that is not a law. A common one is checked."""
    if P.shape[0] == 1:
        return False
    width = uint64(P.shape[1])
    return not _is_law(P.reshape(-1), uint64(b * P.shape[1]), width, off)


@helper()
def _extremes(flat, base, rows, width, least, most):
    """Write the least and largest entry of every column, four rows at a time."""
    first = uint64(base)
    for y in range(width):
        least[y] = flat[first + y]
        most[y] = flat[first + y]
    for x in range(1, rows, 4):
        p0 = uint64(base + x * width)
        p1 = uint64(base + min(x + 1, rows - 1) * width)
        p2 = uint64(base + min(x + 2, rows - 1) * width)
        p3 = uint64(base + min(x + 3, rows - 1) * width)
        for y in range(width):
            a, b, c, d = flat[p0 + y], flat[p1 + y], flat[p2 + y], flat[p3 + y]
            least[y] = low(least[y], low(low(a, b), low(c, d)))
            most[y] = high(most[y], high(high(a, b), high(c, d)))


@helper()
def _level(flat, base, rows, width, shift, least, most):
    """Ln of the largest ratio of two entries of a column, rounded up.

    The numbers hold entry - shift. A quotient beyond the range of a double is computed again,
    scaled down.
    """
    _extremes(flat, base, rows, width, least, most)
    worst = worst_column(least, most, uint64(width), shift, 1.0, 0.0)
    if worst < math.inf:
        return math.log1p(worst) * ROUND_UP
    scaled = worst_column(least, most, uint64(width), shift, 2.0**500, 0.0)
    return (math.log(scaled) - math.log(2.0**-500)) * ROUND_UP if scaled < math.inf else math.inf


@kernel()
def ratio_levels(W: Cube, off: float, out: Vector) -> int:
    """Largest ln W[b, x, y]/W[b, x', y], rounded up."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most = np.empty(width), np.empty(width)
    for b in range(count):
        if not _are_laws(W, b, off):
            return b
        out[b] = _level(flat, b * rows * width, rows, width, 0.0, least, most)
    return -1


@kernel()
def maxima_levels(W: Cube, off: float, out: Vector) -> int:
    """Ln of the sum of the column maxima, rounded up.

    The sum less one carries its rounding errors along. NaN where even their sum has lost digits.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most = np.empty(width), np.empty(width)
    for b in range(count):
        if not _are_laws(W, b, off):
            return b
        _extremes(flat, b * rows * width, rows, width, least, most)
        total, carry, lost = -1.0, 0.0, 0.0
        for y in range(width):
            new = total + most[y]
            back = new - total
            error = (total - (new - back)) + (most[y] - back)
            carry += error
            lost += abs(error)
            total = new
        excess = total + carry
        if abs(excess) * 2.0**-55 < width * UNIT * lost:
            out[b] = math.nan
        else:
            out[b] = math.log1p(max(0.0, excess)) * ROUND_UP
    return -1


@kernel(error_model="numpy")
def posterior_levels(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Largest ln p(x|y)/p(x'|y), rounded up; NaN if a chance is too rare.

    Close to zero, p W / (p_0 W_0) - 1 = u + v + u v from exact differences u and v of the prior
    and of the rows, because products p W carry rounding errors as large as the level.
    """
    count, rows, width = W.shape
    joint = np.empty(rows * width)
    least, most = np.empty(width), np.empty(width)
    for b in range(count):
        if not _are_laws(W, b, off) or _prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        rare = 0
        for x in range(rows):
            rare += 0.0 < p[x] < RARE
            weight = p[x] * LIFT
            for y in range(width):
                joint[x * width + y] = weight * W[b, x, y]
        if rare > 0:
            out[b] = math.nan
            continue
        out[b] = _level(joint, 0, rows, width, 0.0, least, most)
        if out[b] < SMALL:
            for x in range(rows):
                u = (p[x] - p[0]) / p[0]
                for y in range(width):
                    first = W[b, 0, y]
                    v = (W[b, x, y] - first) / first if first > 0.0 else 0.0
                    joint[x * width + y] = u + v + u * v
            out[b] = _level(joint, 0, rows, width, 1.0, least, most)
    return -1


@helper(fastmath={"contract"}, error_model="numpy")
def _gap_ratios(flat, base, p, seen, count, width, most, least, law, mass, down, up):
    """Largest sum_x p (most - W) / law and sum_x p (W - least) / least over columns that occur."""
    for y in range(width):
        down[y] = 0.0
        up[y] = 0.0
    for k in range(count):
        weight = p[seen[k]] * LIFT
        here = uint64(base + seen[k] * width)
        for y in range(width):
            w = flat[here + y]
            down[y] += weight * (most[y] - w)
            up[y] += weight * (w - least[y])
    above, below = 0.0, 0.0
    for y in range(width):
        if most[y] > 0.0:
            above = max(above, down[y] / mass / law[y])
            below = max(below, up[y] / mass / least[y])
    return above, below


@helper()
def _raised(v, slack):
    """Leakage v past its rounding error."""
    return v + slack * min(4.0 * v, 1.0) + 8.0 * UNIT * v if v < math.inf else v


@kernel(fastmath={"contract"}, error_model="numpy")
def leakage_levels(W: Cube, P: Matrix, off: float, above: Vector, below: Vector) -> int:
    """Largest ln max_x W/q and largest ln q/min_x W over outputs that occur, rounded up.

    The extremes are over x of positive prior, q is the law of the output. One logarithm of the
    largest quotient each: the steps after the quotient are monotone.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most, law = np.empty(width), np.empty(width), np.empty(width)
    down, up = np.empty(width), np.empty(width)
    seen = np.empty(rows, np.int64)
    slack = (2 * rows + 16) * UNIT
    for b in range(count):
        if not _are_laws(W, b, off) or _prior_fails(P, b, off):
            return b
        base = b * rows * width
        p = P[min(b, P.shape[0] - 1)]
        number, mass = 0, 0.0
        for x in range(rows):
            mass += p[x] * LIFT
            if p[x] > 0.0:
                seen[number] = x
                number += 1
        for y in range(width):
            least[y], most[y], law[y] = math.inf, 0.0, 0.0
        for k in range(0, number, 4):
            x0, x1 = seen[k], seen[min(k + 1, number - 1)]
            x2, x3 = seen[min(k + 2, number - 1)], seen[min(k + 3, number - 1)]
            w0, w1 = p[x0] * LIFT, p[x1] * LIFT if k + 1 < number else 0.0
            w2 = p[x2] * LIFT if k + 2 < number else 0.0
            w3 = p[x3] * LIFT if k + 3 < number else 0.0
            p0, p1 = uint64(base + x0 * width), uint64(base + x1 * width)
            p2, p3 = uint64(base + x2 * width), uint64(base + x3 * width)
            for y in range(width):
                i, j, k0, k1 = flat[p0 + y], flat[p1 + y], flat[p2 + y], flat[p3 + y]
                least[y] = low(least[y], low(low(i, j), low(k0, k1)))
                most[y] = high(most[y], high(high(i, j), high(k0, k1)))
                law[y] += (w0 * i + w1 * j) + (w2 * k0 + w3 * k1)
        over, under, lost = 1.0, 1.0, 0
        for y in range(width):
            if most[y] > 0.0:
                law[y] /= mass
                over = max(over, most[y] / law[y])
                under = max(under, law[y] / least[y])
                # A quotient beyond the range of a double is not infinite leakage.
                lost += law[y] < NORMAL or (law[y] / least[y] == math.inf and least[y] > 0.0)
        if lost > 0:
            above[b] = math.nan
            below[b] = math.nan
            continue
        first, second = math.log(over), math.log(under)
        if first < NEAR or second < NEAR:
            one, two = _gap_ratios(
                flat, base, p, seen, number, width, most, least, law, mass, down, up
            )
            first = math.log1p(one) if first < NEAR else first
            second = math.log1p(two) if second < NEAR else second
        above[b], below[b] = _raised(first, slack), _raised(second, slack)
    return -1


@kernel()
def informations(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Mutual information of input and output."""
    for b in range(W.shape[0]):
        if not _are_laws(W, b, off) or _prior_fails(P, b, off):
            return b
        out[b] = mutual_information(W[b], P[min(b, P.shape[0] - 1)])
    return -1


@helper(error_model="numpy")
def _share(part, whole):
    """Part / whole in [0, 1], rounded up; 0/0 = 0."""
    return min(1.0, part / whole * (1.0 + ENTROPY)) if whole > 0.0 else 0.0


@kernel()
def information_shares(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Mutual information over the entropy of the prior, rounded up."""
    whole = 0.0
    for b in range(W.shape[0]):
        if not _are_laws(W, b, off) or _prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        if b < P.shape[0]:
            whole = entropy(p)
        out[b] = _share(mutual_information(W[b], p), whole)
    return -1


@helper(fastmath={"contract"}, error_model="numpy")
def _surprise(p, total, own):
    """Write p ln p of a law divided by its sum, accurate also where p is close to one."""
    top = largest_at(p)
    rest = 0.0
    for x in range(p.size):
        share = p[x] / total
        own[x] = share * math.log(share) if share > 0.0 else 0.0
        rest += p[x] if x != top else 0.0
    if p[top] > 0.5 * total:
        own[top] = p[top] / total * math.log1p(-rest / total)


@helper(fastmath={"contract"}, error_model="numpy")
def _entropy_gain(W, prior, p, own, rows):
    """Largest H(X) - H(X | Y = y) over outputs that occur, rounded up.

    With d = W/q - 1 it is sum p f(d) + sum d p ln p, f(d) = (1+d) ln(1+d) - d, so that columns
    close to constant keep their digits. Outputs that are too rare for a double count as H(X).
    """
    total = 0.0
    for x in range(prior.size):
        total += prior[x]
    _surprise(prior, total, own)
    whole, number = 0.0, 0
    for x in range(prior.size):
        p[x] = prior[x] / total
        whole -= own[x]
        if p[x] > 0.0:
            rows[number] = x
            number += 1
    ref = W[largest_at(p)]
    shift = shift_rows(W, p, ref, 0, p.size)
    drift = shift_rows(W, own, ref, 0, p.size)
    bend = divergence_columns(W, p, ref, shift, 0, p.size)
    summary = column_summary(W, p, rows, 0, number)
    slack = (p.size + 32) * UNIT
    best = 0.0
    for y in range(W.shape[1]):
        most, least, law = summary[0, y], summary[1, y], summary[2, y]
        if most > 0.0:
            gain = whole * (1.0 + slack)
            if law > TINY:
                seen = 0.0
                for x in range(p.size):
                    seen -= own[x] * W[x, y]
                size = min(3.0 * whole * (most - least), whole * (law + ref[y]) + seen)
                change = bend[y] + (drift[y] + whole * shift[y])
                gain = min(gain, (change + slack * (bend[y] + size)) / law)
            best = max(best, gain)
    return best


@kernel()
def entropy_shares(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Largest fall of the entropy at one output over the entropy of the prior, rounded up."""
    rows = W.shape[1]
    p, own, seen = np.empty(rows), np.empty(rows), np.empty(rows, np.int64)
    whole = 0.0
    for b in range(W.shape[0]):
        if not _are_laws(W, b, off) or _prior_fails(P, b, off):
            return b
        prior = P[min(b, P.shape[0] - 1)]
        if b < P.shape[0]:
            whole = entropy(prior)
        out[b] = _share(_entropy_gain(W[b], prior, p, own, seen), whole)
    return -1


@kernel()
def stack_excess(W: Cube, epsilons: Vector, slopes: Vector, off: float, out: Matrix) -> int:
    """Largest sum_y (W[x, y] - e^epsilon W[x', y])_+ over x, x', for every epsilon, rounded up.

    ``slopes`` are e^epsilon - 1, rounded down by 8 units; the sums of K terms are then low by at
    most K + 4 units. From the largest log-ratio on it is 0.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most = np.empty(width), np.empty(width)
    raised = 1.0 + (width + 8.0) * UNIT
    for b in range(count):
        if not _are_laws(W, b, off):
            return b
        level = _level(flat, b * rows * width, rows, width, 0.0, least, most)
        for k in range(slopes.size):
            worst = 0.0
            if epsilons[k] < level:
                for x in range(rows):
                    for other in range(rows):
                        total = 0.0
                        for y in range(width):
                            second = W[b, other, y]
                            total += max((W[b, x, y] - second) - slopes[k] * second, 0.0)
                        worst = max(worst, total)
            out[b, k] = min(worst * raised, 1.0)
    return -1


@kernel()
def expected_costs(W: Cube, P: Matrix, metric: Matrix, off: float, out: Vector) -> int:
    """Sum of p(x) W[x, y] metric[x, y]."""
    count, rows, width = W.shape
    for b in range(count):
        if not _are_laws(W, b, off) or _prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        total = 0.0
        for x in range(rows):
            cost = 0.0
            for y in range(width):
                cost += W[b, x, y] * metric[x, y]
            total += p[x] * cost
        out[b] = total
    return -1
