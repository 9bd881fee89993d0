"""Directed rounding: the one place where a computed number becomes a bound.

Every guarantee ends in one of these functions; docs/theory/rounding.md has the proofs. Two
assumptions are made. Additions, products, quotients and square roots are rounded to nearest (IEEE
754). Logarithms and exponentials of the machine are off by at most ``LIBM`` units in the last
place, which the tests sample.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from fastpriv._core.validation import Floats

#: Unit roundoff of a double: the relative error of one operation.
ULP = 2.0**-53
#: Least positive double: the least upper bound that is not zero.
LEAST = 5e-324
#: Least normal double: a smaller number has lost digits, and no relative error holds for it.
NORMAL = 2.0**-1022
#: Units in the last place that log, log1p, exp and expm1 may be off by.
LIBM = 4
_LARGEST = 1.7976931348623157e308

Number = TypeVar("Number", float, "Floats", "float | Floats")


def raised(value: Number, units: float) -> Number:
    """Return a bound above every number that rounding may have turned into ``value``.

    It holds for relative errors of up to (units - 2) u, and of one u for 2 units: value (1 + units
    u), upwards whatever the sign, and as many times the least double for what was lost to
    underflow. Rounding keeps the sign, so a negative number stays one; a zero is exact.
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
    """Push a computed positive level past its own rounding error: 4 roundings, at least 0."""
    return raised(level, 4.0) if level > 0.0 else 0.0


def sum_up(parts: Iterable[float]) -> float:
    """Return the least double that is no less than the exact sum."""
    terms = list(parts)
    total = math.fsum(terms)
    if not math.isfinite(total):
        return total
    short = Fraction(total) < sum(map(Fraction, terms))
    return math.nextafter(total, math.inf) if short else total


def sum_down(parts: Iterable[float]) -> float:
    """Return the largest double that is no more than the exact sum."""
    return -sum_up([-part for part in parts])


def product_up(first: float, second: float) -> float:
    """Return the least double that is no less than the exact product; 0 times infinity is 0."""
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
    """Return the least double that is no less than the exact quotient; bottom is positive."""
    if math.isinf(top) or math.isinf(bottom):
        return top / bottom
    return _above(top / bottom, lambda at: at * Fraction(bottom) < Fraction(top))


def quotient_down(top: float, bottom: float) -> float:
    """Return the largest double that is no more than the exact quotient; bottom is positive."""
    return -quotient_up(-top, bottom)


def _above(nearest: float, short: Callable[[Fraction], bool]) -> float:
    """Return a rounded number, or the next double where it is short of the exact one."""
    if math.isinf(nearest):
        return max(nearest, -_LARGEST)
    return math.nextafter(nearest, math.inf) if short(Fraction(nearest)) else nearest


def root_up(value: float) -> float:
    """Return the least double that is no less than the square root."""
    root = math.sqrt(value)
    if not math.isfinite(root):
        return root
    return math.nextafter(root, math.inf) if Fraction(root) ** 2 < Fraction(value) else root


def root_down(value: float) -> float:
    """Return the largest double that is no more than the square root."""
    root = math.sqrt(value)
    if not math.isfinite(root):
        return root
    return math.nextafter(root, 0.0) if Fraction(root) ** 2 > Fraction(value) else root


def log_up(value: float) -> float:
    """Return a double no less than ln value, exactly 0 at 1; -inf at 0."""
    return _outwards(math.log(value), math.inf) if value > 0.0 else -math.inf


def ratio_log_up(ratio: Fraction) -> float:
    """Return the least double no less than ln ratio, to within 10^-50, of a ratio from 1 on."""
    if ratio == 1:
        return 0.0
    with localcontext(Context(prec=60)):
        exact = (Decimal(ratio.numerator) / ratio.denominator).ln() + Decimal("1e-50")
        level = float(exact)
        return level if Decimal(level) >= exact else math.nextafter(level, math.inf)


def log_down(value: float) -> float:
    """Return a double no more than ln value, exactly 0 at 1; -inf at 0."""
    return _outwards(math.log(value), -math.inf) if value > 0.0 else -math.inf


def log1p_up(value: float) -> float:
    """Return a double no less than ln(1 + value), exactly 0 at 0; -inf at -1."""
    return _outwards(math.log1p(value), math.inf) if value > -1.0 else -math.inf


def log1p_down(value: float) -> float:
    """Return a double no more than ln(1 + value), exactly 0 at 0; -inf at -1."""
    return _outwards(math.log1p(value), -math.inf) if value > -1.0 else -math.inf


def exp_up(value: float) -> float:
    """Return a double no less than e^value, exactly 1 at 0; infinite from 709 on."""
    if value == 0.0:
        return 1.0
    return max(_outwards(math.exp(value), math.inf), LEAST) if value < 709.0 else math.inf


def exp_down(value: float) -> float:
    """Return a double no more than e^value, exactly 1 at 0, and at least 0."""
    return max(_outwards(math.exp(min(value, 709.0)), -math.inf), 0.0) if value else 1.0


def expm1_up(value: float) -> float:
    """Return a double no less than e^value - 1, exactly 0 at 0; infinite from 709 on."""
    return _outwards(math.expm1(value), math.inf) if value < 709.0 else math.inf


def expm1_down(value: float) -> float:
    """Return a double no more than e^value - 1, exactly 0 at 0, and at least -1."""
    return max(_outwards(math.expm1(min(value, 709.0)), -math.inf), -1.0)


def _outwards(value: float, towards: float) -> float:
    """Move a result of the machine's library by ``LIBM`` doubles, unless it is exact: zero."""
    if value == 0.0:
        return 0.0
    for _ in range(LIBM):
        value = math.nextafter(value, towards)
    return value


def least_float(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least float in ``(low, high]`` at which a predicate holds, 0 <= low < high.

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
