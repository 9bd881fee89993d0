"""JSON as commands print it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from fastpriv.results import Bracket


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
