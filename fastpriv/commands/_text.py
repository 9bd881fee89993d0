"""Numbers, tables and JSON as commands print them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

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
    digits = Context(_DIGITS, way).create_decimal(Decimal(repr(value)))
    return f"{float(digits):.{_DIGITS}g}"


def shown(level: float | Bracket) -> str:
    """Write a level rounded up, or a bracket rounded outwards."""
    if not isinstance(level, Bracket):
        return up(level)
    if level.lower == level.upper:
        return up(level.upper)
    return f"{down(level.lower)} to {up(level.upper)}"


def to_json(value: Any) -> str:
    """Return JSON that every parser reads: infinities are the word "infinite"."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Bracket):
        return [_plain(value.lower), _plain(value.upper)]
    if isinstance(value, float) and math.isinf(value):
        return "infinite" if value > 0.0 else "-infinite"
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
