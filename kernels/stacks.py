"""Measures of many channels of one shape: W[b, x, y] in, one number for each b out.

Each kernel checks a channel and its prior when it comes to it, while they are in the cache. It
stops at the first that is not a distribution within ``off`` and returns its number, or -1 at the
end. A NaN in ``out`` marks a channel whose numbers are too small for these sums: the caller
measures it alone.

``P`` has one prior for each channel, or one for all of them.
"""

import math

import numpy as np

from .arrays import NORMAL, high, low
from .declare import Cube, Matrix, Vector, helper, kernel, uint64
from .lines import worst_column
from .logs import LEAST, excess_up, log_quotient, ratio_up

ONE, TWO, THREE = uint64(1), uint64(2), uint64(3)
UNIT = 2.0**-53
ROUND_UP = 1.0 + 2.0**-51
RARE = 2.0**-848  # probabilities above have all their digits, times 2^900 and the smallest double
LIFT = 2.0**900  # keeps products of small numbers from underflowing, and is exact
NEAR = 0.5  # leakages below come from differences
PRODUCTS = 2.0**-51  # bounds the error of the log of a ratio of two rounded products
SMALL = 0.1  # below, products p W would spoil the last digits of a level


@helper()
def _total(flat, base, width):
    """Return the sum of a row, four entries at a time: loops over short rows do not vectorise."""
    total, fours = 0.0, width & ~uint64(3)
    for y in range(uint64(0), fours, uint64(4)):
        i = base + y
        total += (flat[i] + flat[i + ONE]) + (flat[i + TWO] + flat[i + THREE])
    for y in range(fours, width):
        total += flat[base + y]
    return total


@helper()
def are_laws(flat, b, rows, width, off):
    """Whether all rows of channel b are distributions within ``off``; a NaN fails."""
    size, columns = uint64(rows * width), uint64(width)
    base, below, fine = uint64(b) * size, 0, True
    for i in range(size):
        below += flat[base + i] < 0.0
    for x in range(uint64(rows)):
        fine = fine and abs(_total(flat, base + x * columns, columns) - 1.0) <= off
    return fine and below == 0


@helper()
def prior_fails(P, b, off):
    """Whether channel b has its own prior, and it is not a distribution."""
    if P.shape[0] == 1:
        return False
    total, below, row = 0.0, 0, uint64(b)
    for x in range(uint64(P.shape[1])):
        total += P[row, x]
        below += P[row, x] < 0.0
    return below > 0 or not abs(total - 1.0) <= off


@helper()
def _room(rows, width):
    """Workspace for the extremes of columns, over all rows and over a quarter of them."""
    return np.empty(max(rows // 4, 1) * width)


@helper()
def _extremes(flat, base, rows, width, least, most):
    """Leave the smallest and largest entry of every column in the first ``width`` places.

    The four quarters of the rows are compared in one loop, then one half of the result with the
    other: these loops are long enough to be vectorised even if rows are short.
    """
    parts = max(rows // 4, 1)
    size = uint64(parts * width)
    p0, fold = uint64(base), size if rows >= 4 else uint64(0)
    p1, p2, p3 = p0 + fold, p0 + fold + fold, p0 + fold + fold + fold
    for i in range(size):
        a, b, c, d = flat[p0 + i], flat[p1 + i], flat[p2 + i], flat[p3 + i]
        least[i] = low(low(a, b), low(c, d))
        most[i] = high(high(a, b), high(c, d))
    for x in range(4 * parts if rows >= 4 else 1, rows):
        here = uint64(base + x * width)
        for y in range(uint64(width)):
            least[y] = low(least[y], flat[here + y])
            most[y] = high(most[y], flat[here + y])
    while parts > 1:
        half = parts // 2
        there = uint64((parts - half) * width)
        for i in range(uint64(half * width)):
            least[i] = low(least[i], least[there + i])
            most[i] = high(most[i], most[there + i])
        parts -= half


@helper()
def _level(flat, base, rows, width, shift, least, most):
    """Ln of the largest ratio of two entries of a column, rounded up.

    The numbers hold entry - shift. A ratio less one is rounded twice, thrice with a shift, and
    its logarithm once, upwards. Beyond the range of a double it is computed again, scaled down.
    """
    _extremes(flat, base, rows, width, least, most)
    worst = worst_column(least, most, uint64(width), shift, 1.0, 0.0)
    if worst < math.inf:
        return excess_up(worst, 2 if shift == 0.0 else 3)
    scaled = worst_column(least, most, uint64(width), shift, 2.0**500, 0.0)
    return ratio_up(scaled * ROUND_UP, 2.0**-500)


@kernel(small=True)
def ratio_levels(W: Cube, off: float, out: Vector) -> int:
    """Largest ln W[b, x, y]/W[b, x', y], rounded up."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most = _room(rows, width), _room(rows, width)
    for b in range(count):
        if not are_laws(flat, b, rows, width, off):
            return b
        out[b] = _level(flat, b * rows * width, rows, width, 0.0, least, most)
    return -1


@kernel(small=True)
def maxima_levels(W: Cube, off: float, out: Vector) -> int:
    """Ln of the sum of the column maxima, rounded up.

    The sum less one carries its rounding errors along. NaN if even their sum has lost digits.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most = _room(rows, width), _room(rows, width)
    for b in range(count):
        if not are_laws(flat, b, rows, width, off):
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
            out[b] = excess_up(max(0.0, excess), 1)
    return -1


@kernel(small=True, error_model="numpy")
def posterior_levels(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Largest ln p(x|y)/p(x'|y), rounded up; NaN if a probability is too small.

    Close to zero, p W / (p_0 W_0) - 1 = u + v + u v from exact differences u and v of the prior
    and of the rows, because products p W carry rounding errors as large as the level.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    joint = np.empty(rows * width)
    least, most = _room(rows, width), _room(rows, width)
    for b in range(count):
        if not are_laws(flat, b, rows, width, off) or prior_fails(P, b, off):
            return b
        p = P[min(b, P.shape[0] - 1)]
        rare = 0
        for x in range(rows):
            rare += 0.0 < p[x] < RARE
            weight = p[x] * LIFT
            here, there = uint64((b * rows + x) * width), uint64(x * width)
            for y in range(uint64(width)):
                joint[there + y] = weight * flat[here + y]
        if rare > 0:
            out[b] = math.nan
            continue
        out[b] = _level(joint, 0, rows, width, 0.0, least, most) + PRODUCTS
        if out[b] < SMALL:
            size = 0.0  # u and v may cancel
            for x in range(rows):
                u = (p[x] - p[0]) / p[0]
                for y in range(width):
                    first = W[b, 0, y]
                    v = (W[b, x, y] - first) / first if first > 0.0 else 0.0
                    joint[x * width + y] = u + v + u * v
                    size = max(size, abs(u) + abs(v))
            out[b] = _level(joint, 0, rows, width, 1.0, least, most) + 16.0 * UNIT * size
    return -1


@helper()
def support(p, seen):
    """List the inputs of positive probability; return their number and total probability."""
    number, mass = 0, 0.0
    for x in range(p.size):
        mass += p[x]
        if p[x] > 0.0:
            seen[number] = x
            number += 1
    return number, mass


@helper()
def summary(flat, base, p, seen, number, width, least, most, law):
    """Smallest entry, largest entry and sum of 2^900 p W of every column, over inputs in ``seen``.

    Four rows at a time; the last one is repeated with weight zero to fill four.
    """
    for y in range(uint64(width)):
        least[y], most[y], law[y] = math.inf, 0.0, 0.0
    last = number - 1
    for k in range(0, number, 4):
        x0, x1 = seen[k], seen[min(k + 1, last)]
        x2, x3 = seen[min(k + 2, last)], seen[min(k + 3, last)]
        w0, w1 = p[x0] * LIFT, p[x1] * LIFT if k + 1 < number else 0.0
        w2 = p[x2] * LIFT if k + 2 < number else 0.0
        w3 = p[x3] * LIFT if k + 3 < number else 0.0
        p0, p1 = uint64(base + x0 * width), uint64(base + x1 * width)
        p2, p3 = uint64(base + x2 * width), uint64(base + x3 * width)
        for y in range(uint64(width)):
            a, b, c, d = flat[p0 + y], flat[p1 + y], flat[p2 + y], flat[p3 + y]
            least[y] = low(least[y], low(low(a, b), low(c, d)))
            most[y] = high(most[y], high(high(a, b), high(c, d)))
            law[y] += (w0 * a + w1 * b) + (w2 * c + w3 * d)


@helper(error_model="numpy")
def _gap_above(flat, base, p, seen, number, width, most, least, law, mass, gap):
    """Largest sum_x p (most - W) / law over columns that occur."""
    for y in range(uint64(width)):
        gap[y] = 0.0
    for k in range(number):
        weight = p[seen[k]] * LIFT
        here = uint64(base + seen[k] * width)
        for y in range(uint64(width)):
            gap[y] += weight * (most[y] - flat[here + y])
    worst = 0.0
    for y in range(width):
        if most[y] > 0.0:
            worst = max(worst, (gap[y] + lost_below(number, least[y], most[y])) / law[y] / mass)
    return worst


@helper(error_model="numpy")
def _gap_below(flat, base, p, seen, number, width, most, least, mass, gap):
    """Largest sum_x p (W - least) / least over columns that occur."""
    for y in range(uint64(width)):
        gap[y] = 0.0
    for k in range(number):
        weight = p[seen[k]] * LIFT
        here = uint64(base + seen[k] * width)
        for y in range(uint64(width)):
            gap[y] += weight * (flat[here + y] - least[y])
    worst = 0.0
    for y in range(width):
        if most[y] > 0.0:
            worst = max(worst, (gap[y] + lost_below(number, least[y], most[y])) / least[y] / mass)
    return worst


@helper()
def lost_below(number, least, most):
    """Bound the loss of a sum of products by underflow; entries that are equal lose nothing."""
    return number * LEAST if most > least else 0.0


@helper()
def past(v, slack):
    """Leakage v past its rounding error."""
    return v + slack * min(4.0 * v, 1.0) + 8.0 * UNIT * v if v < math.inf else v


@helper(error_model="numpy")
def _largest_quotient(top, bottom, width):
    """Largest top/bottom above 1 and its place, -1 if there is none; 0/0 does not count."""
    worst, place = 1.0, -1
    for y in range(width):
        quotient = top[y] / bottom[y]
        if quotient > worst:
            worst, place = quotient, y
    return worst, place


@kernel(small=True, error_model="numpy")
def leakage_levels(W: Cube, P: Matrix, off: float, above: Vector, below: Vector) -> int:
    """Largest ln max_x W/q and largest ln q/min_x W over outputs that occur, rounded up.

    The extremes are over x of positive prior, q is the distribution of the output. One logarithm of
    the largest quotient each: the steps after the quotient are monotone. ``below`` may be empty.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most, law, gap = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    seen = np.empty(rows, np.int64)
    slack = (2 * rows + 16) * UNIT
    both = below.size > 0
    for b in range(count):
        if not are_laws(flat, b, rows, width, off) or prior_fails(P, b, off):
            return b
        base = b * rows * width
        p = P[min(b, P.shape[0] - 1)]
        number, mass = support(p, seen)
        mass *= LIFT
        summary(flat, base, p, seen, number, width, least, most, law)
        rare, differ = 0, 0
        for y in range(uint64(width)):
            law[y] /= mass
            rare += most[y] > 0.0 and law[y] < NORMAL
            differ += most[y] > least[y]
        tiny = 8.0 * LEAST if differ > 0 else 0.0
        over, place = _largest_quotient(most, law, width)
        first = log_quotient(most[place], law[place]) if over > 1.0 else 0.0
        if first < NEAR and rare == 0:
            gain = _gap_above(flat, base, p, seen, number, width, most, least, law, mass, gap)
            first = math.log1p(gain)
        above[b] = past(first, slack) + tiny if rare == 0 else math.nan
        if not both:
            continue
        under, place = _largest_quotient(law, least, width)
        # A quotient beyond the range of a double is not infinite leakage.
        if under == math.inf and least[place] > 0.0:
            above[b] = math.nan
        second = log_quotient(law[place], least[place]) if under > 1.0 else 0.0
        if second < NEAR and rare == 0:
            gain = _gap_below(flat, base, p, seen, number, width, most, least, mass, gap)
            second = math.log1p(gain)
        below[b] = past(second, slack) + tiny if above[b] == above[b] else math.nan
    return -1


@kernel(small=True, error_model="numpy")
def column_leakages(W: Cube, P: Matrix, off: float, above: Matrix) -> int:
    """Ln max_x W/q of every output, rounded up; 0 for outputs that do not occur.

    NaN in the first place of a channel with an output that is too rare.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most, law, gap = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    seen = np.empty(rows, np.int64)
    slack = (2 * rows + 16) * UNIT
    for b in range(count):
        if not are_laws(flat, b, rows, width, off) or prior_fails(P, b, off):
            return b
        base = b * rows * width
        p = P[min(b, P.shape[0] - 1)]
        number, mass = support(p, seen)
        mass *= LIFT
        summary(flat, base, p, seen, number, width, least, most, law)
        rare = 0
        for y in range(uint64(width)):
            law[y] /= mass
            rare += most[y] > 0.0 and law[y] < NORMAL
            gap[y] = 0.0
        for k in range(number):
            weight = p[seen[k]] * LIFT
            here = uint64(base + seen[k] * width)
            for y in range(uint64(width)):
                gap[y] += weight * (most[y] - flat[here + y])
        for y in range(width):
            if most[y] > 0.0:
                value = log_quotient(most[y], law[y])
                if value < NEAR:
                    gained = gap[y] + lost_below(number, least[y], most[y])
                    value = math.log1p(gained / law[y] / mass)
                above[b, y] = past(value, slack) + (8.0 * LEAST if most[y] > least[y] else 0.0)
            else:
                above[b, y] = 0.0
        if rare > 0:
            above[b, 0] = math.nan
    return -1


@helper()
def _excess(first, second, slope):
    """Sum of ((a - b) - slope b)_+ over outputs."""
    total = 0.0
    for y in range(first.size):
        total += high((first[y] - second[y]) - slope * second[y], 0.0)
    return total


@kernel()
def stack_excess(W: Cube, epsilons: Vector, slopes: Vector, off: float, out: Matrix) -> int:
    """Largest sum_y (W[x, y] - e^epsilon W[x', y])_+ over x, x', for every epsilon, rounded up.

    ``slopes`` are e^epsilon - 1, rounded down by 2 units; the sums of K terms are then low by at
    most K + 4 units, and K times half the smallest double. From the largest log-ratio on it is 0.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most = _room(rows, width), _room(rows, width)
    raised = 1.0 + (width + 8.0) * UNIT
    for b in range(count):
        if not are_laws(flat, b, rows, width, off):
            return b
        level = _level(flat, b * rows * width, rows, width, 0.0, least, most)
        for k in range(slopes.size):
            out[b, k] = 0.0
            if epsilons[k] < level:
                worst = 0.0
                for x in range(rows):
                    for other in range(rows):
                        worst = max(worst, _excess(W[b, x], W[b, other], slopes[k]))
                out[b, k] = min(worst * raised + width * LEAST, 1.0)
    return -1


@kernel()
def expected_costs(W: Cube, P: Matrix, metric: Matrix, off: float, out: Vector) -> int:
    """Sum of p(x) W[x, y] metric[x, y]."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    for b in range(count):
        if not are_laws(flat, b, rows, width, off) or prior_fails(P, b, off):
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
