"""Logarithms that owe nothing to the machine's library; docs/theory/rounding.md has the proof.

With x = 2^k m and sqrt(1/2) <= m <= sqrt(2), ln x = k ln 2 + 2 z (1 + z^2/3 + z^4/5 + ...) where
z = (m - 1)/(m + 1). Numbers are pairs of doubles: a rounded value and what rounding left.
"""

import math

import numpy as np

from .arrays import high
from .declare import Vector, helper, kernel

#: Ln 2 as a sum; the first two parts have 41 bits each, so that k times them is exact.
LN2_FIRST = 1524246769571 * 2.0**-41
LN2_SECOND = 1365374871438 * 2.0**-82
LN2_THIRD = 1.667085920830552e-25
#: 1/(2 j + 1) and its rounding error; the tail beyond needs no second part.
ODD = tuple(1.0 / (2 * j + 1) for j in range(20))
ODD_LEFT = tuple(
    (bottom - (2 * j + 1) * top) / ((2 * j + 1) * bottom)
    for j in range(10)
    for top, bottom in [ODD[j].as_integer_ratio()]
)
SQRT2 = math.sqrt(2.0)
#: Splits a double into two of 26 bits (Veltkamp).
SPLIT = 2.0**27 + 1.0
#: Bounds on the relative errors of the pairs that `_close` and `_long` return.
UNCLEAR = 0.005 * 2.0**-53
DOUBT = 2.0**-90
#: Less than one and more than half of the distance to the next double, relative to any double.
STEP = 0.6 * 2.0**-52
#: Distance of the smallest doubles.
LEAST = 5e-324
#: Below, ln(1 + x) lies between x and the double below it.
TINY = 2.0**-54
#: Numbers between these two are split by their bits.
SMALL, LARGE = 2.0**-1000, 2.0**1000
#: Bits of a double: its digits, the exponent of one half, and the place of the exponent.
DIGITS = np.uint64((1 << 52) - 1)
ONE_HALF = np.uint64(1022 << 52)
SHIFT = np.uint64(52)


# A loop over numbers is vectorised if everything in it is inlined and free of branches.


@helper(forceinline=True)
def two_sum(a, b):
    """Return a + b and its rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@helper(forceinline=True)
def _product(a, b):
    """Return a b and its rounding error (Dekker)."""
    product = a * b
    shifted = SPLIT * a
    a1 = shifted - (shifted - a)
    a2 = a - a1
    shifted = SPLIT * b
    b1 = shifted - (shifted - b)
    b2 = b - b1
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


@helper(forceinline=True)
def _split(x):
    """Return m and e of x = 2^e m, 1/2 <= m < 1, for SMALL <= x <= LARGE."""
    bits = np.float64(x).view(np.uint64)
    return np.uint64((bits & DIGITS) | ONE_HALF).view(np.float64), np.int64(bits >> SHIFT) - 1022


@helper(forceinline=True)
def _is_usual(x):
    """Whether `_split` takes a number."""
    return (x >= SMALL) & (x <= LARGE)


@helper(forceinline=True)
def _matched(m, n, left, k):
    """Return k and the pair z of 2^k (m + left)/n = 2^k (1 + z)/(1 - z), |z| < 0.172."""
    twice, half = m > SQRT2 * n, n > SQRT2 * m
    scale = 0.5 if twice else (2.0 if half else 1.0)
    m, left = scale * m, scale * left
    k += 1.0 if twice else (-1.0 if half else 0.0)
    over, rest = two_sum(m, -n)
    over, rest = two_sum(over, rest + left)
    under, short = two_sum(m, n)
    short += left
    z = over / under
    product, error = _product(z, under)
    return k, z, ((over - product) - error + rest - z * short) / under


@helper(forceinline=True)
def _reduced_usual(top, left, bottom):
    """Return k and the pair z of (top + left)/bottom = 2^k (1 + z)/(1 - z), of usual numbers."""
    m, up = _split(top)
    n, down = _split(bottom)
    left *= np.uint64(np.uint64(1023 - up) << SHIFT).view(np.float64)
    return _matched(m, n, left, float(up - down))


@helper()
def _reduced(top, left, bottom):
    """Return the same of any positive numbers."""
    if _is_usual(top) and _is_usual(bottom):
        return _reduced_usual(top, left, bottom)
    m, up = math.frexp(top)
    n, down = math.frexp(bottom)
    return _matched(m, n, math.ldexp(left, -up), float(up - down))


@helper(forceinline=True)
def _finished(k, first, second):
    """Return k ln 2 + first + second as a pair."""
    total, rest = two_sum(k * LN2_FIRST, first)
    return two_sum(total, (k * LN2_SECOND + (rest + second)) + k * LN2_THIRD)


@helper()
def _long(k, z, rest):
    """Return k ln 2 + ln((1 + z)/(1 - z)) as a pair that is off by at most 2^-90 relative."""
    w, error = _product(z, z)
    error += 2.0 * z * rest
    tail = 0.0
    for j in range(19, 9, -1):
        tail = tail * w + ODD[j]
    sum_, short = tail, 0.0
    for j in range(9, -1, -1):
        product, lost = _product(sum_, w)
        lost += sum_ * error + short * w
        sum_, short = two_sum(ODD[j], product)
        short += lost + ODD_LEFT[j]
    product, lost = _product(sum_, 2.0 * z)
    return _finished(k, product, lost + 2.0 * (sum_ * rest + short * z))


@helper(forceinline=True)
def _tail(w):
    """Return 1/5 + w/7 + w^2/9 + ... for w < 0.03."""
    square = w * w
    odd, even = ODD[11], ODD[12]
    for j in range(9, 2, -2):  # two sums at a time
        odd = odd * square + ODD[j]
        even = even * square + ODD[j + 1]
    return ODD[2] + w * (odd + w * even)


@helper(forceinline=True)
def _short(k, z, rest):
    """Return the same as `_long` as a pair that is off by at most 0.15 units of roundoff."""
    w = z * z
    tail = w * (ODD[1] + w * _tail(w))
    return _finished(k, 2.0 * z, 2.0 * (rest + z * tail))


@helper(forceinline=True)
def _close(k, z, rest):
    """Return the same as a pair that is off by at most 0.005 units: z^3/3 has a second part."""
    w, error = _product(z, z)
    error += 2.0 * z * rest
    sum_, short = two_sum(ODD[1], w * _tail(w))
    short += ODD_LEFT[1]
    product, lost = _product(sum_, w)
    lost += sum_ * error + short * w
    tail, left = _product(product, z)
    left += product * rest + lost * z
    first, more = two_sum(2.0 * z, 2.0 * tail)
    return _finished(k, first, more + 2.0 * (rest + left))


@helper()
def log_quotient(top, bottom):
    """Return ln(top/bottom) of two doubles, off by at most 1.25 units of roundoff."""
    if bottom == 0.0 or top == math.inf:
        return math.inf
    if top == 0.0 or bottom == math.inf:
        return -math.inf
    k, z, rest = _reduced(top, 0.0, bottom)
    return _short(k, z, rest)[0]


@helper()
def _least_above(top, left, bottom):
    """Return the double above ln((top + left)/bottom), by the short form if that is clear."""
    k, z, rest = _reduced(top, left, bottom)
    value, low = _close(k, z, rest)
    if abs(low) <= UNCLEAR * abs(value):
        value, low = _long(k, z, rest)
        return value if low < -DOUBT * abs(value) else value + STEP * abs(value)
    return value if low < 0.0 else value + STEP * abs(value)


@helper()
def ratio_up(top, bottom):
    """Return the smallest double no less than ln(top/bottom), top >= bottom; infinity over 0."""
    if top == bottom:
        return 0.0
    if bottom == 0.0 or top == math.inf:
        return math.inf
    return _least_above(top, 0.0, bottom)


@helper()
def log1p_up(value):
    """Return the smallest double no less than ln(1 + value), of a value above -1."""
    if abs(value) < TINY or value == math.inf:
        return value
    top, left = two_sum(1.0, value)
    return _least_above(top, left, 1.0)


@helper()
def excess_up(excess, roundings):
    """Return a bound on ln(1 + excess), excess >= 0, past its roundings: a double for each."""
    if 0.0 < excess < math.inf:
        for _ in range(roundings):
            excess += max(STEP * excess, LEAST)
    return log1p_up(excess)


@helper()
def excesses_up(excess, roundings, out):
    """Set out = excess_up(excess, roundings), element by element; ``excess`` is raised."""
    for _ in range(roundings):
        for i in range(out.size):
            more = high(STEP * excess[i], LEAST)
            excess[i] += more if 0.0 < excess[i] < math.inf else 0.0
    for i in range(out.size):
        top, left = two_sum(1.0, excess[i])
        value, low = _close(*_reduced_usual(top, left, 1.0))
        clear = (abs(low) > UNCLEAR * abs(value)) & (excess[i] >= TINY) & (excess[i] <= LARGE)
        out[i] = (value if low < 0.0 else value + STEP * abs(value)) if clear else math.nan
    for i in range(out.size):
        if math.isnan(out[i]):
            out[i] = log1p_up(excess[i])


@helper()
def sum_logs(top, left, bottom, out):
    """Set out = ln((top + left)/bottom), each off by at most 1.25 units of roundoff.

    ``left`` is less than half a unit of ``top``, and 0 where ``top`` or ``bottom`` is 0 or
    infinite.
    """
    for i in range(out.size):
        usual = _is_usual(top[i]) & _is_usual(bottom[i])
        value = _short(*_reduced_usual(top[i], left[i], bottom[i]))[0]
        out[i] = value if usual else math.nan
    for i in range(out.size):
        if math.isnan(out[i]):
            out[i] = log_quotient(top[i], bottom[i])


@kernel(small=True)
def log_ratios(top: Vector, bottom: Vector, out: Vector) -> None:
    """Set out = ln(top/bottom) of non-negative numbers; infinity over 0, -infinity of 0."""
    for i in range(top.size):
        out[i] = log_quotient(top[i], bottom[i])


@kernel(small=True)
def log_ratio_up(top: float, bottom: float) -> float:
    """Return the smallest double no less than ln(top/bottom), as ``ratio_up``."""
    return ratio_up(top, bottom)


@kernel(small=True)
def log_excess_up(excess: float, roundings: int) -> float:
    """Return ln(1 + excess) of an excess that was rounded so many times, as ``excess_up``."""
    return excess_up(excess, roundings)
