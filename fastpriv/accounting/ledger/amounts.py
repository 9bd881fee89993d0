"""Exact amounts of privacy: decimals that never round, and floats that say so.

A float stands for the shortest decimal that reads back as it, the one that ``repr`` prints: 0.1
is one tenth, so that ten of them are 1. Amounts are added, multiplied and compared as decimals
without rounding; on the way back to floats they are rounded up (spent) or down (remaining).
"""

from __future__ import annotations

import decimal
import math
import numbers
from decimal import Decimal
from typing import Any

from fastpriv.errors import InvalidInput, described

#: Places from 10^350 times a count of 19 digits down to 10^-390: every sum is exact.
_EXACT = decimal.Context(prec=1000, traps=[decimal.InvalidOperation, decimal.Inexact])
#: Decimals far beyond the range and the digits of doubles are taken for mistakes; sums have more.
_DIGITS, SUM_DIGITS, _EXPONENT = 40, 1000, 350

ZERO = Decimal(0)


def amount(value: Any, name: str, digits: int = _DIGITS) -> Decimal:
    """Return a level as an exact decimal: finite or infinite, at least 0."""
    if isinstance(value, Decimal | str):
        try:
            number = Decimal(value)
        except decimal.InvalidOperation:
            raise InvalidInput(f"{name} must be a number, got {described(value)}") from None
        if number.is_finite() and (
            len(number.as_tuple().digits) > digits or abs(number.adjusted()) > _EXPONENT
        ):
            raise InvalidInput(
                f"{name} must have at most {digits} digits and the range of a double, got "
                f"{number:.10e}"
            )
    elif isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"{name} must be a number, got {described(value)}")
    else:
        try:
            number = Decimal(repr(float(value)))
        except OverflowError:
            raise InvalidInput(f"{name} must lie in the range of a double") from None
    if number.is_nan() or number < 0:
        raise InvalidInput(f"{name} must be a number of at least 0, got {described(value)}")
    return number + 0 if number.is_zero() else number  # no negative zero


def plus(a: Decimal, b: Decimal) -> Decimal:
    """Return the exact sum."""
    return _EXACT.add(a, b)


def minus(a: Decimal, b: Decimal) -> Decimal:
    """Return the exact difference."""
    return _EXACT.subtract(a, b)


def times(a: Decimal, count: int) -> Decimal:
    """Return the exact product; nothing times an infinite level is nothing."""
    return _EXACT.multiply(a, Decimal(count)) if count else ZERO


def up(exact: Decimal) -> float:
    """Return the least float that stands for no less."""
    near = float(exact)
    return near if Decimal(repr(near)) >= exact else math.nextafter(near, math.inf)


def down(exact: Decimal) -> float:
    """Return the largest float that stands for no more."""
    near = float(exact)
    return near if Decimal(repr(near)) <= exact else math.nextafter(near, -math.inf)
