"""Exact amounts of privacy: decimals that never round.

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

#: Digits of a level; more digits than a double has are taken for a mistake.
_DIGITS = 40
#: Largest exponent of a level, beyond the range of doubles.
_EXPONENT = 350
#: Digits of a sum: from 10^350 times a count of 19 digits down to 10^-390, so every sum is exact.
SUM_DIGITS = 1000
_EXACT = decimal.Context(prec=SUM_DIGITS, traps=[decimal.InvalidOperation, decimal.Inexact])

ZERO = Decimal(0)


def amount(value: Any, name: str, digits: int = _DIGITS) -> Decimal:
    """Return a level as an exact decimal: finite or infinite, at least 0."""
    if isinstance(value, Decimal | str):
        try:
            number = Decimal(value)
        except decimal.InvalidOperation:
            raise InvalidInput(f"{name} must be a number; got {described(value)}.") from None
        if number.is_finite() and (
            len(number.as_tuple().digits) > digits or abs(number.adjusted()) > _EXPONENT
        ):
            raise InvalidInput(
                f"{name} must have at most {digits} digits and the range of a double; got "
                f"{number:.10e}."
            )
    elif isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInput(f"{name} must be a number; got {described(value)}.")
    else:
        try:
            number = Decimal(repr(float(value)))
        except OverflowError:
            raise InvalidInput(
                f"{name} must be at most 1.7e308, the largest double. Give a smaller amount."
            ) from None
    if number.is_nan() or number < 0:
        raise InvalidInput(f"{name} must be a number of at least 0; got {described(value)}.")
    return number + 0 if number.is_zero() else number  # no negative zero


def plus(a: Decimal, b: Decimal) -> Decimal:
    """Return the exact sum."""
    return _EXACT.add(a, b)


def minus(a: Decimal, b: Decimal) -> Decimal:
    """Return the exact difference."""
    return _EXACT.subtract(a, b)


def times(a: Decimal, count: int) -> Decimal:
    """Return the exact product; zero times an infinite level is zero."""
    return _EXACT.multiply(a, Decimal(count)) if count else ZERO


def shortest(exact: Decimal) -> Decimal:
    """Return the same amount without trailing zeros, so that equal amounts have one text."""
    return _EXACT.normalize(exact)


def up(exact: Decimal) -> float:
    """Return the smallest float whose decimal is at least this one."""
    near = float(exact)
    return near if Decimal(repr(near)) >= exact else math.nextafter(near, math.inf)


def down(exact: Decimal) -> float:
    """Return the largest float whose decimal is at most this one."""
    near = float(exact)
    return near if Decimal(repr(near)) <= exact else math.nextafter(near, -math.inf)
