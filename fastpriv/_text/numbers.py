"""Numbers in a few digits, rounded the way that a guarantee has to be."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from fastpriv.results import Bracket

#: Significant digits of a number that is printed.
_DIGITS = 9


def up(value: float) -> str:
    """Write a number with a few digits, never below it."""
    return _rounded(value, ROUND_CEILING)


def down(value: float) -> str:
    """Write a number with a few digits, never above it."""
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, way: str) -> str:
    if not math.isfinite(value):
        return "infinite" if value > 0.0 else str(value)
    # As its shortest digits: 0.1 is not to be printed as 0.100000001.
    digits = Context(_DIGITS, way).create_decimal(Decimal(repr(float(value))))
    return f"{float(digits):.{_DIGITS}g}"


def shown(level: float | Bracket) -> str:
    """Write a level rounded up, or a bracket rounded outwards."""
    if not isinstance(level, Bracket):
        return up(level)
    if level.lower == level.upper:
        return up(level.upper)
    return f"{down(level.lower)} to {up(level.upper)}"
