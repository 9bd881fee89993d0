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
from .logs import LEAST, excesses_up, ratio_up, sum_logs, two_sum

ONE, TWO, THREE = uint64(1), uint64(2), uint64(3)
UNIT = 2.0**-53
ROUND_UP = 1.0 + 2.0**-51
RARE = 2.0**-848  # probabilities above have all their digits, times 2^900 and the smallest double
LIFT = 2.0**900  # keeps products of small numbers from underflowing, and is exact
FAR = math.exp(0.5)  # smaller quotients come from differences
PRODUCTS = 2.0**-51  # bounds the error of the log of a ratio of two rounded products
SMALL = 0.1  # below, products p W would spoil the last digits of a level
LANES = 64  # most channels whose logarithms are taken together
WIDE = 32  # from so many columns on, loops over the entries of a row vectorise well


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
def _lanes(count, width):
    """Return the number of channels whose columns are compared, and logarithms taken, together."""
    return min(count, LANES) if width < WIDE else 1


@helper()
def _wide_extremes(flat, base, rows, width, least, most):
    """Write the smallest and largest entry of every column, four rows at a time."""
    for y in range(uint64(width)):
        least[y] = most[y] = flat[uint64(base) + y]
    for x in range(1, rows, 4):
        p0, p1 = uint64(base + x * width), uint64(base + min(x + 1, rows - 1) * width)
        p2 = uint64(base + min(x + 2, rows - 1) * width)
        p3 = uint64(base + min(x + 3, rows - 1) * width)
        for y in range(uint64(width)):
            a, b, c, d = flat[p0 + y], flat[p1 + y], flat[p2 + y], flat[p3 + y]
            least[y] = low(least[y], low(low(a, b), low(c, d)))
            most[y] = high(most[y], high(high(a, b), high(c, d)))


@helper()
def _extremes(flat, base, rows, width, least, most, lane, lanes):
    """Write the smallest and largest entry of column y to place ``y lanes + lane``.

    Loops over short rows do not vectorise: four columns at a time, in registers.
    """
    if width >= WIDE:
        _wide_extremes(flat, base, rows, width, least, most)
        return
    fours, step, n = uint64(width) & ~THREE, uint64(width), uint64(lanes)
    for y in range(uint64(0), fours, uint64(4)):
        i = uint64(base) + y
        l0, l1, l2, l3 = flat[i], flat[i + ONE], flat[i + TWO], flat[i + THREE]
        m0, m1, m2, m3 = l0, l1, l2, l3
        for _ in range(1, rows):
            i += step
            a, b, c, d = flat[i], flat[i + ONE], flat[i + TWO], flat[i + THREE]
            l0, l1, l2, l3 = low(l0, a), low(l1, b), low(l2, c), low(l3, d)
            m0, m1, m2, m3 = high(m0, a), high(m1, b), high(m2, c), high(m3, d)
        i = y * n + uint64(lane)
        least[i], least[i + n], least[i + n * TWO], least[i + n * THREE] = l0, l1, l2, l3
        most[i], most[i + n], most[i + n * TWO], most[i + n * THREE] = m0, m1, m2, m3
    for y in range(fours, step):
        i = uint64(base) + y
        lower = upper = flat[i]
        for _ in range(1, rows):
            i += step
            lower, upper = low(lower, flat[i]), high(upper, flat[i])
        least[y * n + uint64(lane)], most[y * n + uint64(lane)] = lower, upper


@helper(error_model="numpy")
def _worst_columns(least, most, width, shift, lift, lanes, worst):
    """Leave the largest (most - least)/(lift (shift + least)) of the columns of every lane.

    0/0 of an all-zero column is a NaN, which no comparison lets through.
    """
    for lane in range(worst.size):
        worst[lane] = 0.0
    for y in range(width):
        here = uint64(y * lanes)
        for lane in range(uint64(worst.size)):
            bottom = least[here + lane]
            spread = (most[here + lane] - bottom) / ((shift + bottom) * lift)
            worst[lane] = spread if spread > worst[lane] else worst[lane]


@helper()
def _levels(least, most, width, shift, lanes, worst, out):
    """Ln of the largest ratio of two entries of a column, rounded up, of every lane.

    The columns hold entry - shift. A ratio less one is rounded twice, thrice with a shift, and
    its logarithm once, upwards. Beyond the range of a double it is computed again, scaled down.
    """
    _worst_columns(least, most, width, shift, 1.0, lanes, worst)
    excesses_up(worst, 2 if shift == 0.0 else 3, out)
    beyond = 0
    for lane in range(out.size):
        beyond += out[lane] == math.inf
    if beyond > 0:
        _worst_columns(least, most, width, shift, 2.0**500, lanes, worst)
        for lane in range(out.size):
            if out[lane] == math.inf:
                out[lane] = ratio_up(worst[lane] * ROUND_UP, 2.0**-500)


@kernel(small=True)
def ratio_levels(W: Cube, off: float, out: Vector) -> int:
    """Largest ln W[b, x, y]/W[b, x', y], rounded up."""
    count, rows, width = W.shape
    flat = W.reshape(-1)
    lanes = _lanes(count, width)
    least, most, worst = np.empty(width * lanes), np.empty(width * lanes), np.empty(lanes)
    for first in range(0, count, lanes):
        last = min(first + lanes, count)
        for b in range(first, last):
            if not are_laws(flat, b, rows, width, off):
                return b
            _extremes(flat, b * rows * width, rows, width, least, most, b - first, lanes)
        _levels(least, most, width, 0.0, lanes, worst[: last - first], out[first:last])
    return -1


@kernel(small=True)
def maxima_levels(W: Cube, off: float, out: Vector) -> int:
    """Ln of the sum of the column maxima, rounded up.

    The sum less one carries its rounding errors along. NaN if even their sum has lost digits.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    lanes = _lanes(count, width)
    least, most = np.empty(width * lanes), np.empty(width * lanes)
    total, carry, lost = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    for first in range(0, count, lanes):
        last = min(first + lanes, count)
        for b in range(first, last):
            if not are_laws(flat, b, rows, width, off):
                return b
            _extremes(flat, b * rows * width, rows, width, least, most, b - first, lanes)
        number = uint64(last - first)
        for lane in range(number):
            total[lane], carry[lane], lost[lane] = -1.0, 0.0, 0.0
        for y in range(width):
            here = uint64(y * lanes)
            for lane in range(number):
                before, more = total[lane], most[here + lane]
                new = before + more
                back = new - before
                error = (before - (new - back)) + (more - back)
                total[lane], carry[lane] = new, carry[lane] + error
                lost[lane] += abs(error)
        for lane in range(number):
            excess = total[lane] + carry[lane]
            unclear = abs(excess) * 2.0**-55 < width * UNIT * lost[lane]
            lost[lane] = math.nan if unclear else 0.0
            total[lane] = high(excess, 0.0)
        excesses_up(total[:number], 1, out[first:last])
        for lane in range(number):
            out[uint64(first) + lane] += lost[lane]
    return -1


@kernel(small=True, error_model="numpy")
def posterior_levels(W: Cube, P: Matrix, off: float, out: Vector) -> int:
    """Largest ln p(x|y)/p(x'|y), rounded up; NaN if a probability is too small.

    Close to zero, p W / (p_0 W_0) - 1 = u + v + u v from exact differences u and v of the prior
    and of the rows, because products p W carry rounding errors as large as the level.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    lanes = _lanes(count, width)
    joint, rare = np.empty(rows * width), np.empty(lanes)
    least, most, worst = np.empty(width * lanes), np.empty(width * lanes), np.empty(lanes)
    for first in range(0, count, lanes):
        last = min(first + lanes, count)
        for b in range(first, last):
            if not are_laws(flat, b, rows, width, off) or prior_fails(P, b, off):
                return b
            p, lane = P[min(b, P.shape[0] - 1)], b - first
            rare[lane] = 0.0
            for x in range(rows):
                rare[lane] += 0.0 < p[x] < RARE
                weight = p[x] * LIFT
                here, there = uint64((b * rows + x) * width), uint64(x * width)
                for y in range(uint64(width)):
                    joint[there + y] = weight * flat[here + y]
            _extremes(joint, 0, rows, width, least, most, lane, lanes)
        _levels(least, most, width, 0.0, lanes, worst[: last - first], out[first:last])
        for b in range(first, last):
            out[b] += PRODUCTS
            if rare[b - first] > 0.0:
                out[b] = math.nan
            elif out[b] < SMALL:
                p = P[min(b, P.shape[0] - 1)]
                size = 0.0  # u and v may cancel
                for x in range(rows):
                    u = (p[x] - p[0]) / p[0]
                    for y in range(width):
                        start = W[b, 0, y]
                        v = (W[b, x, y] - start) / start if start > 0.0 else 0.0
                        joint[x * width + y] = u + v + u * v
                        size = max(size, abs(u) + abs(v))
                _extremes(joint, 0, rows, width, least, most, 0, 1)
                _levels(least, most, width, 1.0, 1, worst[:1], out[b : b + 1])
                out[b] += 16.0 * UNIT * size
    return -1


@helper()
def support(p, seen):
    """List the inputs of positive probability; return their number and total probability."""
    number, mass = 0, 0.0
    for x in range(p.size):
        seen[number] = x
        number += p[x] > 0.0
        mass += p[x]
    return number, mass


@helper()
def _wide_summary(flat, base, p, seen, number, width, least, most, law):
    """Write what ``summary`` does, four rows at a time.

    The last row is repeated with weight zero to fill four.
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


@helper()
def summary(flat, base, p, seen, number, width, least, most, law):
    """Smallest entry, largest entry and sum of 2^900 p W of every column, over inputs in ``seen``.

    Four columns at a time, as in ``_extremes``, and two rows, of which the last is repeated with
    weight zero.
    """
    if width >= WIDE:
        _wide_summary(flat, base, p, seen, number, width, least, most, law)
        return
    fours, step, last = uint64(width) & ~THREE, uint64(width), number - 1
    for y in range(uint64(0), fours, uint64(4)):
        l0 = l1 = l2 = l3 = math.inf
        m0 = m1 = m2 = m3 = q0 = q1 = q2 = q3 = 0.0
        for k in range(0, number, 2):
            x, z = seen[k], seen[min(k + 1, last)]
            v, w = p[x] * LIFT, p[z] * LIFT if k < last else 0.0
            i, j = uint64(base) + uint64(x) * step + y, uint64(base) + uint64(z) * step + y
            a, b, c, d = flat[i], flat[i + ONE], flat[i + TWO], flat[i + THREE]
            e, f, g, h = flat[j], flat[j + ONE], flat[j + TWO], flat[j + THREE]
            l0, l1, l2, l3 = (
                low(l0, low(a, e)),
                low(l1, low(b, f)),
                low(l2, low(c, g)),
                low(l3, low(d, h)),
            )
            m0, m1, m2, m3 = (
                high(m0, high(a, e)),
                high(m1, high(b, f)),
                high(m2, high(c, g)),
                high(m3, high(d, h)),
            )
            q0, q1 = q0 + (v * a + w * e), q1 + (v * b + w * f)
            q2, q3 = q2 + (v * c + w * g), q3 + (v * d + w * h)
        least[y], least[y + ONE], least[y + TWO], least[y + THREE] = l0, l1, l2, l3
        most[y], most[y + ONE], most[y + TWO], most[y + THREE] = m0, m1, m2, m3
        law[y], law[y + ONE], law[y + TWO], law[y + THREE] = q0, q1, q2, q3
    for y in range(fours, step):
        lower, upper, total = math.inf, 0.0, 0.0
        for k in range(0, number, 2):
            x, z = seen[k], seen[min(k + 1, last)]
            a, b = (
                flat[uint64(base) + uint64(x) * step + y],
                flat[uint64(base) + uint64(z) * step + y],
            )
            lower, upper = low(lower, low(a, b)), high(upper, high(a, b))
            total += p[x] * LIFT * a + (p[z] * LIFT if k < last else 0.0) * b
        least[y], most[y], law[y] = lower, upper, total


@helper(error_model="numpy")
def _gap_above(flat, base, p, seen, number, width, most, least, law, gap):
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
            worst = max(worst, (gap[y] + lost_below(number, least[y], most[y])) / law[y])
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
    """Largest top/bottom and its place, 0 and 0 if there is none; 0/0 does not count."""
    worst, place = 0.0, 0
    for y in range(width):
        quotient = top[y] / bottom[y]
        place = y if quotient > worst else place
        worst = quotient if quotient > worst else worst
    return worst, place


@helper()
def _one_more(gain, top, left, bottom, place):
    """Let a quotient for ``sum_logs`` be 1 + gain."""
    top[place], left[place] = two_sum(1.0, gain)
    bottom[place] = 1.0


@kernel(small=True, error_model="numpy")
def leakage_levels(W: Cube, P: Matrix, off: float, above: Vector, below: Vector) -> int:
    """Largest ln max_x W/q and largest ln q/min_x W over outputs that occur, rounded up.

    The extremes are over x of positive prior, q is the distribution of the output. One logarithm of
    the largest quotient each: the steps after the quotient are monotone. ``below`` may be empty.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most, law, gap = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    seen, lanes = np.empty(rows, np.int64), min(count, LANES)
    # The quotients, first those above and then those below, and what is added to the results.
    top, left, bottom = np.empty((2, lanes)), np.zeros((2, lanes)), np.empty((2, lanes))
    added = np.empty(lanes)
    slack = (2 * rows + 16) * UNIT
    both = below.size > 0
    for first in range(0, count, lanes):
        last = min(first + lanes, count)
        for b in range(first, last):
            if not are_laws(flat, b, rows, width, off) or prior_fails(P, b, off):
                return b
            base, lane = b * rows * width, b - first
            p = P[min(b, P.shape[0] - 1)]
            number, mass = support(p, seen)
            mass *= LIFT
            summary(flat, base, p, seen, number, width, least, most, law)
            rare, differ = 0, 0
            for y in range(uint64(width)):
                rare += (most[y] > 0.0) & (law[y] < NORMAL * mass)
                differ += most[y] > least[y]
            added[lane] = 8.0 * LEAST if differ > 0 else 0.0
            over, place = _largest_quotient(most, law, width)
            if over * mass >= FAR:
                top[0, lane], left[0, lane], bottom[0, lane] = most[place], 0.0, law[place] / mass
            elif rare == 0:
                gain = _gap_above(flat, base, p, seen, number, width, most, least, law, gap)
                _one_more(gain, top[0], left[0], bottom[0], lane)
            if both:
                under, place = _largest_quotient(law, least, width)
                if under >= FAR * mass:
                    mean = law[place] / mass
                    top[1, lane], left[1, lane], bottom[1, lane] = mean, 0.0, least[place]
                    # A quotient beyond the range of a double is not infinite leakage.
                    rare += under == math.inf and least[place] > 0.0
                elif rare == 0:
                    gain = _gap_below(flat, base, p, seen, number, width, most, least, mass, gap)
                    _one_more(gain, top[1], left[1], bottom[1], lane)
            if rare > 0:
                _one_more(math.nan, top[0], left[0], bottom[0], lane)
                _one_more(math.nan, top[1], left[1], bottom[1], lane)
        number = last - first
        sum_logs(top[0, :number], left[0], bottom[0], above[first:last])
        for lane in range(number):
            above[first + lane] = past(above[first + lane], slack) + added[lane]
        if both:
            sum_logs(top[1, :number], left[1], bottom[1], below[first:last])
            for lane in range(number):
                below[first + lane] = past(below[first + lane], slack) + added[lane]
    return -1


@kernel(small=True, error_model="numpy")
def column_leakages(W: Cube, P: Matrix, off: float, above: Matrix) -> int:
    """Ln max_x W/q of every output, rounded up; 0 for outputs that do not occur.

    NaN in the first place of a channel with an output that is too rare.
    """
    count, rows, width = W.shape
    flat = W.reshape(-1)
    least, most, law, gap = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    top, left, bottom = np.empty(width), np.empty(width), np.empty(width)
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
            rare += (most[y] > 0.0) & (law[y] < NORMAL * mass)
            gap[y] = 0.0
        for k in range(number):
            weight = p[seen[k]] * LIFT
            here = uint64(base + seen[k] * width)
            for y in range(uint64(width)):
                gap[y] += weight * (most[y] - flat[here + y])
        for y in range(width):
            mean = law[y] / mass
            if most[y] >= FAR * mean and most[y] > 0.0:
                top[y], left[y], bottom[y] = most[y], 0.0, mean
            else:
                gained = gap[y] + lost_below(number, least[y], most[y])
                gain = gained / law[y] if most[y] > 0.0 else 0.0
                _one_more(gain, top, left, bottom, y)
        sum_logs(top, left, bottom, above[b])
        for y in range(width):
            above[b, y] = past(above[b, y], slack) + (8.0 * LEAST if most[y] > least[y] else 0.0)
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
    least, most = np.empty(width), np.empty(width)
    ratio, level = np.empty(1), np.empty(1)
    raised = 1.0 + (width + 8.0) * UNIT
    for b in range(count):
        if not are_laws(flat, b, rows, width, off):
            return b
        _extremes(flat, b * rows * width, rows, width, least, most, 0, 1)
        _levels(least, most, width, 0.0, 1, ratio, level)
        for k in range(slopes.size):
            out[b, k] = 0.0
            if epsilons[k] < level[0]:
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
