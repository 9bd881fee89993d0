"""What neighbours are, and how much noise is computed with."""

from __future__ import annotations

from fastpriv._core import validation as check
from fastpriv.errors import InvalidInput, described

#: Relations of neighbours.
RELATIONS = ("add-or-remove", "replace-one", "replace-special")
#: That of finite channels: databases that differ in one row.
REPLACED = "replace-one"
#: Least and largest noise that is computed with; none at all shows everything.
LEAST_NOISE, _MOST = 1e-6, 1e15


def as_relation(relation: str | None) -> str | None:
    """Return a relation of neighbours that is known, or None."""
    return None if relation is None else check.word(relation, "relation", RELATIONS)


def one_relation(first: str | None, second: str | None) -> str | None:
    """Return the relation that releases made for two have together; None is any."""
    if None not in (first, second) and first != second:
        raise InvalidInput(
            f"releases for neighbours by {described(first)} and by {described(second)} do not "
            "compose; make both for one relation, or account for each by itself"
        )
    return first or second


def amount_of_noise(value: float, name: str) -> float:
    """Return an amount of noise that is none, or neither tiny nor huge."""
    noise = check.real(value, name, least=0.0)
    if noise != 0.0 and not LEAST_NOISE <= noise <= _MOST:
        ends = f"{LEAST_NOISE:g} and {_MOST:g}"
        raise InvalidInput(f"{name} must be 0 or between {ends}, got {noise:g}")
    return noise
