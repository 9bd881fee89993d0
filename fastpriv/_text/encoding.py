"""JSON as every command and every ``to_json`` writes it.

A bracket is ``{"lower": ..., "upper": ...}``. An infinite number is the word "infinite". Integers
from 2^53 on, which other programs would round, are words as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from fastpriv._core.infinities import finite, numbers
from fastpriv.errors import short

#: Integers up to here are exact as doubles, as which most programs read JSON numbers.
_EXACT = 1 << 53


def to_json(value: Any, indent: int | None = 2) -> str:
    """Return a value as JSON that every parser reads."""
    return json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def plain(value: Any) -> Any:
    """Return a value in terms of JSON: objects, lists, numbers, words, true, false and null.

    Objects of the library are asked for their ``to_dict()``, arrays for their ``tolist()``.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) < _EXACT else short(value)
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return plain(value.to_dict() if hasattr(value, "to_dict") else value.tolist())


def number(value: Any) -> float:
    """Return the number that ``plain`` wrote for a level; of a bracket the upper bound.

    Raises TypeError, KeyError or ValueError for anything else.
    """
    if isinstance(value, Mapping):
        value = value["upper"]
    return float(numbers(value))
