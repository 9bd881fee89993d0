"""Numbers in a few digits, rounded so that the printed number is still a bound."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Protocol

from fastpriv.errors import short

#: Significant digits of a printed number.
DIGITS = 9
#: Numbers with decimal exponents above the first and up to the second have no power of ten.
_TINY = -5
_LARGE = 8
#: Units that have a singular.
_SINGULAR = {"nats": "nat", "bits": "bit", "rows": "row", "outputs": "output"}


class Interval(Protocol):
    """A value between two proved bounds, such as :class:`fastpriv.Bracket`."""

    @property
    def lower(self) -> float:
        """Lower bound."""

    @property
    def upper(self) -> float:
        """Upper bound."""


def up(value: float, digits: int = DIGITS) -> str:
    """Write a number in a few digits, rounded up: read back, it is no less."""
    return _rounded(value, digits, ROUND_CEILING)


def down(value: float, digits: int = DIGITS) -> str:
    """Write a number in a few digits, rounded down: read back, it is no more."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    """Round the shortest decimal that reads back as the number: 0.1 is one tenth and prints so."""
    if math.isinf(value):
        return "infinite" if value > 0.0 else "-infinite"
    number = Context(digits, direction).create_decimal(Decimal(repr(float(value)))).normalize()
    if number.is_zero():
        return "0"
    if _TINY < number.adjusted() <= _LARGE:
        return f"{number:f}"
    mantissa, exponent = f"{number:e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def shown(value: float | Interval, digits: int = DIGITS, *, from_below: bool = False) -> str:
    """Write a value: "yes" or "no", a count, a number, or the two bounds of a bracket.

    Numbers are rounded up, or down if ``from_below``; brackets are rounded outwards. A bracket
    whose bounds are the same in these digits is one number.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return short(value)
    if isinstance(value, float):
        return down(value, digits) if from_below else up(value, digits)
    guaranteed = down if from_below else up
    if guaranteed(value.lower, digits) == guaranteed(value.upper, digits):
        return guaranteed(value.upper, digits)
    return f"[{down(value.lower, digits)}, {up(value.upper, digits)}]"


def quantity(number: str, unit: str) -> str:
    """Write a number with its unit, in the singular if the number is 1; infinity has no unit."""
    if not unit or number == "infinite":
        return number
    return f"{number} {_SINGULAR.get(unit, unit) if number == '1' else unit}"
