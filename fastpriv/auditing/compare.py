"""Which of two levels is better, as far as that is proved."""

from __future__ import annotations

import math

from fastpriv.auditing.report import Audit, Level
from fastpriv.notions.registry import NOTIONS
from fastpriv.results import Bracket

#: Levels that are closer than this, relative to 1 + level, are not told apart.
_SAME = 1e-9


def common(first: Audit, second: Audit) -> dict[str, tuple[Level, Level]]:
    """Return the levels that both mechanisms have, facts about the prior left out."""
    return {
        slug: (level, second.levels[slug])
        for slug, level in first.levels.items()
        if slug in second.levels and level.scope != "facts"
    }


def better(first: Level, second: Level) -> str | None:
    """Return which of two levels is proved to be better: "first", "second", "same", or None."""
    a, b = _bounds(first), _bounds(second)
    if a.lower == b.lower == math.inf:
        return "same"
    lower, upper = min(a.lower, b.lower), max(a.upper, b.upper)
    if upper < math.inf and upper - lower <= _SAME * (1.0 + abs(upper)):
        return "same"
    less, more = ("first", "second") if a.upper < b.lower else ("second", "first")
    if not (a.upper < b.lower or b.upper < a.lower):
        return None
    return more if NOTIONS[first.notion].direction == "lower" else less


def _bounds(level: Level) -> Bracket:
    value = level.value
    return value if isinstance(value, Bracket) else Bracket(float(value), float(value))
