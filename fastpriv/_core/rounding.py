"""The one number that rounding errors are counted in; sums and roots rounded the right way."""

import math
import struct
from collections.abc import Callable
from fractions import Fraction

#: Unit roundoff of a double: the relative error of one operation.
ULP = 2.0**-53
#: Least positive double: the least upper bound that is not zero.
LEAST = 5e-324
#: Least normal double: a smaller number has lost digits, and no relative error holds for it.
NORMAL = 2.0**-1022


def sum_up(parts: list[float]) -> float:
    """Return the least double that is no less than the exact sum."""
    total = math.fsum(parts)
    if not math.isfinite(total):
        return total
    short = Fraction(total) < sum(map(Fraction, parts))
    return math.nextafter(total, math.inf) if short else total


def product_up(count: int, value: float) -> float:
    """Return the least double that is no less than the exact product; 0 times infinity is 0."""
    product = count * value if count else 0.0
    if not math.isfinite(product):
        return product
    short = Fraction(product) < count * Fraction(value)
    return math.nextafter(product, math.inf) if short else product


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
