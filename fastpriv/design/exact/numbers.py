"""Rational numbers that stand for e^epsilon, for floats and for levels, rounded one way."""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from fastpriv.errors import TooLarge

#: Relative distance of the ratio from e^epsilon, times epsilon where that is below one.
_DISTANCE = Fraction(1, 10**15)
#: Digits of logarithms and exponentials beyond those that the argument needs.
_DIGITS = 60
#: Largest level: its e^epsilon has some 4,300 digits.
_MOST = 1e4


def ratio_below(epsilon: float, least: Fraction = Fraction(0)) -> Fraction:
    """Return the fraction of least denominator just below e^epsilon, not below ``least``.

    Its distance from e^epsilon is at most 1e-15 min(1, epsilon) e^epsilon, so that its logarithm
    has the relative accuracy of a float also where epsilon is tiny. ``least`` must be no more
    than e^epsilon; :func:`is_at_most_exp` decides that.
    """
    if epsilon == 0.0:
        return Fraction(1)
    low, high = exp_bounds(epsilon)
    inside = high * (1 - _DISTANCE * min(Fraction(1), Fraction(epsilon)))
    return simplest(max(inside, least), max(low, least))


def ratio_above(epsilon: float) -> Fraction:
    """Return the fraction of least denominator just above e^epsilon, as far as the one below."""
    if epsilon == 0.0:
        return Fraction(1)
    low, high = exp_bounds(epsilon)
    return simplest(high, low * (1 + _DISTANCE * min(Fraction(1), Fraction(epsilon))))


def is_at_most_exp(value: Fraction, epsilon: float) -> bool:
    """Decide whether a rational number is at most e^epsilon.

    e^epsilon is irrational unless epsilon is 0, so that enough digits settle every case.
    """
    if epsilon == 0.0:
        return value <= 1
    digits = _DIGITS
    while True:
        low, high = exp_bounds(epsilon, digits)
        if value <= low or value > high:
            return value <= low
        digits *= 2


def exp_bounds(epsilon: float, digits: int = _DIGITS) -> tuple[Fraction, Fraction]:
    """Return rational numbers below and above e^epsilon, from the correctly rounded decimal."""
    if epsilon > _MOST:
        raise TooLarge(
            f"e^{epsilon:g} is a fraction of {1.4427 * epsilon:.3g} bits, too many for exact "
            f"programs; use an epsilon of at most {_MOST:g}"
        )
    small = max(0, -math.frexp(epsilon)[1])
    with decimal.localcontext() as context:
        context.prec = digits + small // 3
        context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
        value = Decimal(epsilon).exp()
        return Fraction(value.next_minus()), Fraction(value.next_plus())


def level_bounds(value: Fraction) -> tuple[float, float]:
    """Return the floats just below and above ln(value), for a value of at least one."""
    if value == 1:
        return 0.0, 0.0
    with decimal.localcontext() as context:
        excess = max(0, value.denominator.bit_length() - (value - 1).numerator.bit_length())
        context.prec = _DIGITS + excess // 3
        context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
        quotient = Decimal(value.numerator) / Decimal(value.denominator)
        low = quotient.next_minus().ln().next_minus()
        high = quotient.next_plus().ln().next_plus()
        below, above = float(low), float(high)
        if Decimal(below) > low:
            below = math.nextafter(below, -math.inf)
        if Decimal(above) < high:
            above = math.nextafter(above, math.inf)
    return max(below, 0.0), above


def simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of least denominator in ``[low, high]``, 0 < low <= high.

    Descent in the Stern-Brocot tree: the continued fractions of both ends as far as they agree.
    """
    whole = low.numerator // low.denominator
    if whole == low:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / simplest(1 / (high - whole), 1 / (low - whole))


def integers(values: Iterable[float]) -> list[int]:
    """Return the floats times the least power of two that makes all of them whole."""
    exact = [Fraction(value) for value in values]
    unit = max(value.denominator for value in exact)
    return [int(value * unit) for value in exact]
