"""Directed rounding: the one place where a computed number becomes a bound.

Every guarantee ends in one of these functions; docs/theory/rounding.md has the proofs. Additions,
products, quotients and square roots are assumed to be rounded to nearest (IEEE 754). Logarithms and
exponentials here have a proved error of their own. The C library's are used only
in long sums and in kernels that have a margin of their own. They are assumed to be off by at most
``LIBM`` units in the last place, and the tests sample that.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from fastpriv._core.validation import Floats

#: Unit roundoff u of a double, half a unit in the last place: the relative error of one operation.
ULP = 2.0**-53
#: Smallest positive double: the smallest upper bound that is not zero.
LEAST = 5e-324
#: Smallest normal double: a smaller number has lost digits, and no relative error holds for it.
NORMAL = 2.0**-1022
#: Units in the last place, of 2 u each, that log, log1p, exp and expm1 of the C library may be off.
LIBM = 4
_LARGEST = 1.7976931348623157e308
#: Below, ln(1 + x) lies between x and the double below, e^x - 1 between x and the double above.
_LINEAR = 2.0**-54
#: Binary digits of the integers that stand for logarithms and exponentials.
_BITS = 192
#: Digits of them that are right, see docs/theory/rounding.md.
_SURE = 170
#: Ln 2 times 2^_BITS.
_LN2 = 4350955369971217654477563090224794165364344896676135745069

Number = TypeVar("Number", float, "Floats", "float | Floats")


def raised(value: Number, units: float) -> Number:
    """Return a bound above every number that rounding may have turned into ``value``.

    It covers relative errors of (units - 2) u if units >= 3, and of u if units = 2. It is
    value (1 + units u), upwards for either sign, plus as many times the smallest positive double
    for what was lost to underflow. Rounding keeps the sign, so a negative number stays one; a zero
    is exact.
    """
    if isinstance(value, int | float):
        if value > 0.0:
            return value * (1.0 + units * ULP) + units * LEAST
        return min(value * (1.0 - units * ULP) + units * LEAST, 0.0) if value < 0.0 else value
    import numpy as np  # levels and names are known without it

    below = np.minimum(value * (1.0 - units * ULP) + units * LEAST, 0.0)
    above = value * (1.0 + units * ULP) + units * LEAST * (value > 0.0)
    return np.where(value < 0.0, below, above)


def lowered(value: Number, units: float) -> Number:
    """Return a bound below them, as :func:`raised` does above."""
    return -raised(-value, units)


def directed(value: Number, units: float, up: bool) -> Number:
    """Return one bound or the other."""
    return raised(value, units) if up else lowered(value, units)


def round_up(level: float) -> float:
    """Push a computed positive level past an error of 2 units of roundoff; at least 0."""
    return raised(level, 4.0) if level > 0.0 else 0.0


def sum_up(parts: Iterable[float]) -> float:
    """Return the smallest double that is no less than the exact sum."""
    terms = list(parts)
    try:
        total = math.fsum(terms)
    except OverflowError:  # of the sum, or on the way to it
        exact = sum(map(Fraction, terms), Fraction())
        if abs(exact) > Fraction(_LARGEST):
            return math.inf if exact > 0 else -_LARGEST
        total = float(exact)
    if not math.isfinite(total):
        return total
    try:
        short = math.fsum([*terms, -total]) > 0.0  # its sign is exact
    except OverflowError:
        short = Fraction(total) < sum(map(Fraction, terms))
    return math.nextafter(total, math.inf) if short else total


def sum_down(parts: Iterable[float]) -> float:
    """Return the largest double that is no more than the exact sum."""
    return -sum_up([-part for part in parts])


def product_up(first: float, second: float) -> float:
    """Return the smallest double that is no less than the exact product; 0 times infinity is 0."""
    if first == 0.0 or second == 0.0:
        return 0.0
    product = first * second
    if math.isinf(first) or math.isinf(second):
        return product
    return _above(product, lambda at: at < Fraction(first) * Fraction(second))


def product_down(first: float, second: float) -> float:
    """Return the largest double that is no more than the exact product; 0 times infinity is 0."""
    return -product_up(-first, second)


def quotient_up(top: float, bottom: float) -> float:
    """Return the smallest double that is no less than the exact quotient; bottom is positive."""
    if math.isinf(top) or math.isinf(bottom):
        return top / bottom
    return _above(top / bottom, lambda at: at * Fraction(bottom) < Fraction(top))


def _above(nearest: float, short: Callable[[Fraction], bool]) -> float:
    """Return a rounded number, or the next double where it is short of the exact one."""
    if math.isinf(nearest):
        return max(nearest, -_LARGEST)
    return math.nextafter(nearest, math.inf) if short(Fraction(nearest)) else nearest


def root_up(value: float) -> float:
    """Return the smallest double that is no less than the square root."""
    root = math.sqrt(value)
    if not math.isfinite(root):
        return root
    return math.nextafter(root, math.inf) if Fraction(root) ** 2 < Fraction(value) else root


def log_up(value: float) -> float:
    """Return the smallest double no less than ln value, of a float or an integer; -inf at 0."""
    if value <= 0.0 or value == math.inf:
        return math.inf if value > 0.0 else -math.inf
    return _log_up(*value.as_integer_ratio())


def log_down(value: float) -> float:
    """Return the largest double no more than ln value, of a float or an integer; -inf at 0."""
    if value <= 0.0 or value == math.inf:
        return math.inf if value > 0.0 else -math.inf
    top, bottom = value.as_integer_ratio()
    return -_log_up(bottom, top)


def ratio_log_up(ratio: Fraction) -> float:
    """Return the smallest double no less than ln ratio."""
    return _log_up(ratio.numerator, ratio.denominator)


def log1p_up(value: float) -> float:
    """Return the smallest double no less than ln(1 + value); -inf at -1."""
    if abs(value) < _LINEAR or value <= -1.0 or value == math.inf:
        return value if value > -1.0 else -math.inf
    top, bottom = value.as_integer_ratio()
    return _log_up(top + bottom, bottom)


def log1p_down(value: float) -> float:
    """Return the largest double no more than ln(1 + value); -inf at -1."""
    if abs(value) < _LINEAR:
        return math.nextafter(value, -math.inf) if value else 0.0
    if value <= -1.0 or value == math.inf:
        return value if value > -1.0 else -math.inf
    top, bottom = value.as_integer_ratio()
    return -_log_up(bottom, top + bottom)


def exp_up(value: float) -> float:
    """Return the smallest double no less than e^value; infinite from 709 on."""
    if -_LINEAR < value <= 0.0 or value >= 709.0:
        return math.inf if value > 0.0 else 1.0
    power, shift = _exp(value)
    return _quotient_up(power + (power >> _SURE), shift)


def exp_down(value: float) -> float:
    """Return the largest double no more than e^value, and e^709 from there on."""
    if 0.0 <= value < _LINEAR:
        return 1.0
    power, shift = _exp(min(value, 709.0))
    return -_quotient_up(-power + (power >> _SURE), shift)


def expm1_up(value: float) -> float:
    """Return the smallest double no less than e^value - 1; infinite from 709 on."""
    if abs(value) < _LINEAR or value >= 709.0:
        return math.inf if value >= 709.0 else math.nextafter(value, math.inf) if value else 0.0
    power, shift = _exp(value)
    return _quotient_up(power + (power >> _SURE) - (1 << shift), shift)


def expm1_down(value: float) -> float:
    """Return the largest double no more than e^value - 1, and e^709 - 1 from there on."""
    if abs(value) < _LINEAR:
        return value
    power, shift = _exp(min(value, 709.0))
    return -_quotient_up((1 << shift) - power + (power >> _SURE), shift)


def _log_up(top: int, bottom: int) -> float:
    """Return the smallest double no less than ln(top/bottom), to within 2^-_SURE relative.

    With top/bottom = 2^k m and m from 1/sqrt(2) to sqrt(2), up to one percent, it is
    k ln 2 + 2 (z + z^3/3 + z^5/5 + ...) with z = (m - 1)/(m + 1): integers times powers of two.
    """
    if top == bottom:
        return 0.0
    k = top.bit_length() - bottom.bit_length()
    top, bottom = top << max(-k, 0), bottom << max(k, 0)
    if 29 * top > 41 * bottom:
        bottom, k = 2 * bottom, k + 1
    elif 41 * top < 29 * bottom:
        top, k = 2 * top, k - 1
    shift = _BITS + bottom.bit_length() - abs(top - bottom).bit_length()
    z = (top - bottom << shift) // (top + bottom)
    square = z * z >> 2 * shift - _BITS
    series = power = 1 << _BITS
    odd = 1
    while power:
        power = power * square >> _BITS
        odd += 2
        series += power // odd
    level = 2 * z * series + k * (_LN2 << shift)
    return _quotient_up(level + (abs(level) >> _SURE), shift + _BITS)


def _exp(value: float) -> tuple[int, int]:
    """Return integers with power / 2^shift within 2^-_SURE of e^value relative, value <= 709.

    With value = k ln 2 + 32 r and 0 <= r < 0.022, e^value = 2^k (1 + r + r^2/2 + ...)^32.
    """
    top, bottom = max(value, -800.0).as_integer_ratio()
    k, rest = divmod((top << _BITS + 5) // bottom, _LN2 << 5)
    rest >>= 10
    power = term = 1 << _BITS
    j = 0
    while term:
        j += 1
        term = (term * rest >> _BITS) // j
        power += term
    for _ in range(5):
        power = power * power >> _BITS
    return (power, _BITS - k) if k <= _BITS else (power << k - _BITS, 0)


def _quotient_up(top: int, shift: int) -> float:
    """Return the smallest double no less than top / 2^shift."""
    nearest = top / (1 << shift)
    numerator, denominator = nearest.as_integer_ratio()
    short = numerator << shift < top * denominator
    return math.nextafter(nearest, math.inf) if short else nearest


def least_float(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest float in ``(low, high]`` at which a predicate holds, 0 <= low < high.

    The predicate is taken to hold at ``high`` and not to fail again once it holds. Bisection over
    the floats themselves, at most 63 steps: what is returned was tried, or is ``high``.
    """
    below, above = _rank(low), _rank(high)
    while above - below > 1:
        middle = (below + above) // 2
        if holds(_float(middle)):
            above = middle
        else:
            below = middle
    return _float(above)


def _rank(value: float) -> int:
    """Return the number of floats below a non-negative one: its bits, read as an integer."""
    return int(struct.unpack("<q", struct.pack("<d", value))[0])


def _float(rank: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", rank))[0])


#: More than what rounding changes in any sum here: nine million units of roundoff.
_AMPLE = 1e-9


def roundoff(units: Number) -> Number:
    """Return so many units of roundoff: the relative error of so many operations in turn."""
    return units * ULP


def sum_error(terms: float, each: float) -> float:
    """Bound the error of a sum of terms that are off by ``each`` units of roundoff, in any order.

    Relative to the sum of the absolute values of the terms. To first order it is terms - 1 + each
    units; the unit left over covers products of errors up to 9e7 terms (docs/theory/rounding.md).
    """
    return (terms + each) * ULP


def well_below(value: Number) -> Number:
    """Return a positive number lowered by 1e-9 of itself, where that many digits are not needed."""
    return value * (1.0 - _AMPLE)
