"""Levels and worst cases as what JSON has."""

from __future__ import annotations

import math
from typing import Any

from fastpriv._core.validation import Ints
from fastpriv._text.words import Value, Worst, written
from fastpriv.errors import short
from fastpriv.results import Adversary, Bracket


def plain(value: Value) -> Any:
    """Return a number that JSON has."""
    if isinstance(value, Bracket):
        return {"lower": plain(value.lower), "upper": plain(value.upper)}
    if isinstance(value, int):
        return value if value < 1 << 53 else short(value)
    return value if math.isfinite(value) else "infinite"


#: Longest database that JSON spells out.
_SPELT = 1 << 12


def spelt(worst: Worst) -> dict[str, Any]:
    """Return a worst case as lists and words."""
    if isinstance(worst, Adversary):
        databases = [_database(database) for database in worst.databases]
        return {"rows": list(worst.rows), "databases": databases, "law": worst.law.tolist()}
    return {
        "output": _database(worst.output),
        "database": _database(worst.database),
        "other": None if worst.other is None else _database(worst.other),
        "row": worst.row,
    }


def _database(database: Ints) -> Any:
    return database.tolist() if len(database) <= _SPELT else written(database)
