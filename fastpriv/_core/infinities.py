"""Infinite numbers in JSON, which has none: they are words. Loads nothing, for quick commands."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """Write -inf and inf, which JSON has not, as words."""
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "infinite" if value > 0.0 else "-infinite"
    return value


def numbers(value: Any) -> Any:
    """Read numbers of JSON, in nested lists, with infinities as words."""
    if isinstance(value, list):
        return [numbers(item) for item in value]
    words = {"infinite": math.inf, "-infinite": -math.inf}
    return words.get(value, value) if isinstance(value, str) else value
