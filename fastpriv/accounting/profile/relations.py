"""Which databases are neighbours, and how much noise is computed with.

"add-or-remove": one database has a record more. "replace-one": one record has another value, which
is a removal and an addition. "replace-special": one record is replaced by a blank that counts zero.
"""

from __future__ import annotations

from fastpriv._core import validation as check
from fastpriv.errors import InvalidInput

#: The relation of noise unless another is given, as in dp-accounting, Opacus and OpenDP.
ADDED = "add-or-remove"
#: The relation of finite channels: databases that differ in one record's value.
REPLACED = "replace-one"
#: One record is replaced by a blank.
SPECIAL = "replace-special"
RELATIONS = (ADDED, REPLACED, SPECIAL)
#: Smallest noise that is computed with; none at all reveals everything.
LEAST_NOISE = 1e-6
#: Largest noise that is computed with.
_MOST = 1e15


def as_relation(relation: str | None) -> str:
    """Return a relation of neighbours that is known; None is the default."""
    return ADDED if relation is None else check.word(relation, "relation", RELATIONS)


def optional_relation(relation: str | None) -> str | None:
    """Return a relation of neighbours that is known, or None where none is stated."""
    return None if relation is None else check.word(relation, "relation", RELATIONS)


def one_relation(first: str | None, second: str | None) -> str | None:
    """Return the relation that two have in common; None, of declared levels, is either's."""
    if None not in (first, second) and first != second:
        remedy = REPLACED if REPLACED in (first, second) else first
        raise InvalidInput(
            f"steps for neighbours by {first!r} and by {second!r} do not compose; make all of "
            f"them with relation={remedy!r}"
        )
    return first or second


def earlier_relation(stored: str | None) -> str:
    """Return the relation for which totals hold that an earlier version has written.

    Earlier versions took noise that compared a person with nobody for noise of any relation. Such
    totals hold for "add-or-remove", and beside channels for "replace-special".
    """
    return {None: ADDED, REPLACED: SPECIAL}.get(stored) or str(stored)


def amount_of_noise(value: float, name: str) -> float:
    """Return an amount of noise that is none, or neither tiny nor huge."""
    noise = check.real(value, name, least=0.0)
    if noise != 0.0 and not LEAST_NOISE <= noise <= _MOST:
        ends = f"{LEAST_NOISE:g} and {_MOST:g}"
        raise InvalidInput(f"{name} must be 0 or between {ends}, got {noise:g}")
    return noise
