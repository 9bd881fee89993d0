"""Relations of neighbouring databases, and limits on the amount of noise.

"add-or-remove": one database has one more record. "replace-one": one record has another value, as
after a removal and an addition. "replace-special": one record is replaced by a blank that
contributes zero.
"""

from __future__ import annotations

from fastpriv._core import validation as check
from fastpriv.errors import InvalidInput

#: Default relation of noise, as in dp-accounting, Opacus and OpenDP.
ADDED = "add-or-remove"
#: Relation of finite channels: the databases differ in the value of one record.
REPLACED = "replace-one"
#: One record is replaced by a blank.
SPECIAL = "replace-special"
RELATIONS = (ADDED, REPLACED, SPECIAL)
#: Smallest positive noise that is accepted; zero noise reveals everything.
LEAST_NOISE = 1e-6
#: Largest noise that is accepted.
_MOST = 1e15


def as_relation(relation: str | None) -> str:
    """Validate and return a relation; None is the default."""
    return ADDED if relation is None else check.word(relation, "relation", RELATIONS)


def optional_relation(relation: str | None) -> str | None:
    """Validate and return a relation; None if none is given."""
    return None if relation is None else check.word(relation, "relation", RELATIONS)


def one_relation(first: str | None, second: str | None) -> str | None:
    """Return the common relation of two steps; None, of declared levels, agrees with any."""
    if None not in (first, second) and first != second:
        remedy = REPLACED if REPLACED in (first, second) else first
        raise InvalidInput(
            f"steps for neighbours by {first!r} and by {second!r} do not compose; make all of "
            f"them with relation={remedy!r}"
        )
    return first or second


def earlier_relation(stored: str | None) -> str:
    """Return the relation for which totals written by an earlier version hold.

    Earlier versions accepted "add-or-remove" noise under any relation. Such totals hold for
    "add-or-remove", and together with channels for "replace-special".
    """
    return {None: ADDED, REPLACED: SPECIAL}.get(stored) or str(stored)


def amount_of_noise(value: float, name: str) -> float:
    """Validate and return an amount of noise: 0, or between the limits."""
    noise = check.real(value, name, least=0.0)
    if noise != 0.0 and not LEAST_NOISE <= noise <= _MOST:
        ends = f"{LEAST_NOISE:g} and {_MOST:g}"
        raise InvalidInput(f"{name} must be 0 or between {ends}; got {noise:g}.")
    return noise
