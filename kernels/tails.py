"""Sums over the upper tail of a sum of independent losses, without cancellation.

Masses y are tilted: the mass of loss l is y e^(-s l) up to a common factor. With x = l - t the
mean of (1 - e^-x)_+ is a sum of products of non-negative numbers throughout.
"""

import math

from .arrays import count_up_to
from .declare import Ints, Matrix, Vector, kernel

#: Logarithm of a value too small to be computed.
NOTHING = -80.0


@kernel()
def tail_tables(
    losses: Vector, rests: Vector, masses: Vector, s: float, both: Vector, above: Vector
) -> None:
    """Suffix sums over rising losses, for every start j, with d = losses[i] - losses[j] >= 0.

    both[j] = sum of y_i e^(-(s+1) d), above[j] = sum of y_i e^(-s d) (1 - e^-d). From the top
    down: 1 - e^-(a+b) = (1 - e^-a) + e^-a (1 - e^-b), so that nothing is subtracted.
    """
    last = losses.size - 1
    if last < 0:  # nothing to sum, and no place to write to
        return
    both[last] = masses[last]
    above[last] = 0.0
    for j in range(last - 1, -1, -1):
        d = (losses[j + 1] - losses[j]) + (rests[j + 1] - rests[j])
        keep = math.exp(-s * d)
        above[j] = keep * (above[j + 1] - math.expm1(-d) * both[j + 1])
        both[j] = masses[j] + keep * math.exp(-d) * both[j + 1]


@kernel()
def tail_excess(
    shifts: Vector,
    weights: Vector,
    losses: Vector,
    rests: Vector,
    both: Vector,
    above: Vector,
    s: float,
    t: float,
    rest: float,
) -> float:
    """Sum over shifts c and losses l > t - c of w y e^(-s x) (1 - e^-x), x = c + l - t.

    Shifts rise, so the first loss that counts only moves down. A loss is losses[j] + rests[j], and
    the level t + rest: next to an atom less than a unit of t counts.
    """
    total = 0.0
    j = count_up_to(losses, t - shifts[0])
    for i in range(shifts.size):
        from_ = t - shifts[i]
        while j > 0 and (losses[j - 1] - from_) + (rests[j - 1] - rest) > 0.0:
            j -= 1
        if j < losses.size:
            x = max((losses[j] - from_) + (rests[j] - rest), 0.0)
            total += weights[i] * math.exp(-s * x) * (above[j] - math.expm1(-x) * both[j])
    return total


@kernel()
def characteristic_powers(
    at: Ints,
    masses: Vector,
    starts: Ints,
    counts: Vector,
    units: Vector,
    halves: Vector,
    wholes: Vector,
    out: Matrix,
) -> None:
    """Log of a product of powers of characteristic functions, and a bound on its error.

    Factor i is phi^counts[i], phi - 1 = sum of masses[j] (e^(-i theta at[j]) - 1) over its
    j = starts[i] .. starts[i+1] - 1, theta = 2 pi n / length, a power of two; ``halves`` and
    ``wholes`` hold sin(pi m / length) and sin(2 pi m / length). phi is off by at most units[i]
    times the sum of |e^(-i theta at) - 1|. For every n = 0, 1, ..: out[0] and out[1] are the real
    and imaginary part of the log, exp(out[2]) out[3] is the largest error, exp(out[2]) a bound on
    the absolute value.
    """
    mask = halves.size - 1
    for n in range(out.shape[1]):
        real = turn = size = relative = 0.0
        for i in range(counts.size):
            x = y = zeta = 0.0
            for j in range(starts[i], starts[i + 1]):
                place = (n * at[j]) & mask
                near = halves[place]
                x -= 2.0 * masses[j] * near * near
                y -= masses[j] * wholes[place]
                zeta += 2.0 * masses[j] * abs(near)
            # Near phi = 1 from phi - 1, so that small angles keep their digits.
            square = 2.0 * x + x * x + y * y
            if abs(square) < 0.5:
                log = 0.5 * math.log1p(square)
            else:
                log = math.log(max(math.hypot(1.0 + x, y), 1e-300))
            off = units[i] * zeta + 1e-300
            bound = math.exp(log) + 2.0 * off
            real += counts[i] * log
            turn += counts[i] * math.atan2(y, 1.0 + x)
            size += counts[i] * math.log(bound)
            relative += counts[i] * off / bound
            if size < NOTHING:  # other factors are at most 1: as small as its error
                real, turn, size, relative = NOTHING, 0.0, NOTHING, 2.0
                break
        out[0, n] = real
        out[1, n] = turn
        out[2, n] = size
        out[3, n] = relative
