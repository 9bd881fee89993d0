"""What a ledger holds: totals and spends, checked as they are read from a file or an export."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from fastpriv._core import validation as check
from fastpriv.accounting.ledger.amounts import SUM_DIGITS, amount
from fastpriv.accounting.profile.relations import as_relation
from fastpriv.errors import InvalidInput, described

#: Largest count of one spend, that of SQLite's integers.
MOST_COUNT = 2**63 - 1
#: What reading a text that somebody else wrote may raise.
UNREADABLE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
#: Counts of spends are summed in two halves, so that the sums fit SQLite's integers.
_HALF = 32
_COUNTED = (
    f"SELECT text, part.count, SUM(entry.count >> {_HALF}), "
    f"SUM(entry.count & {(1 << _HALF) - 1}) "
    "FROM entry LEFT JOIN part ON entry.part = part.id WHERE part IS NOT NULL GROUP BY part"
)


@dataclass(frozen=True)
class State:
    """Totals after a number of entries.

    ``prior`` tells which prior they were measured under, where that matters; ``parts`` how often
    each kind of release was made, by its profile, where a budget needs that. ``law`` is the
    composed law of the parts where the file is to keep it from now on. ``relation`` says what
    neighbours are, where some release does.
    """

    entries: int
    spent: Mapping[str, Decimal]
    prior: str | None
    parts: Mapping[str, int]
    law: bytes | None = None
    relation: str | None = None


@dataclass(frozen=True)
class Entry:
    """One acknowledged spend of ``count`` releases, and what it added to each total."""

    number: int
    time: str
    label: str | None
    count: int
    charged: Mapping[str, Decimal]
    part: str | None


def text(amounts: Mapping[str, Decimal]) -> str:
    """Write exact amounts as JSON."""
    return json.dumps({notion: str(value) for notion, value in amounts.items()})


def amounts_of(given: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return exact amounts that were written."""
    return {notion: amount(value, "an amount", SUM_DIGITS) for notion, value in given.items()}


def entry_of(number: Any, time: Any, label: Any, count: Any, charged: Any, part: Any) -> Entry:
    """Return a spend that was written."""
    if part is not None:
        from fastpriv.accounting.ledger.parts import read  # profiles load the kernels

        read(part)
    return Entry(
        check.integer(number, "number", 1),
        datetime.fromisoformat(time).isoformat(),
        checked_label(label),
        checked_count(count),
        amounts_of(charged),
        part,
    )


def checked_count(count: Any) -> int:
    """Return how many releases a spend is for."""
    number = check.integer(count, "count", 1)
    if number > MOST_COUNT:
        raise InvalidInput(f"count must be at most 2^63 - 1, got {number}")
    return number


def checked_label(label: Any) -> str | None:
    """Return the name of a spend: text that can be written, or none."""
    if label is None:
        return None
    try:
        if not isinstance(label, str):
            raise TypeError
        label.encode()
    except (TypeError, UnicodeEncodeError):
        raise InvalidInput(
            f"label must be a string of Unicode text, got {described(label)}"
        ) from None
    return label


def state_of(connection: sqlite3.Connection, notions: Mapping[str, Any]) -> State:
    """Read the totals of a file. They have an amount for every notion of the budget."""
    ((entries, spent, prior),) = connection.execute("SELECT entries, spent, prior FROM ledger")
    (last,) = connection.execute("SELECT MAX(number) FROM entry").fetchone()
    if entries != (last or 0):
        raise InvalidInput(
            f"it counts {described(entries)} spends, but the last one is number {last}"
        )
    totals = amounts_of(json.loads(spent))
    if totals.keys() != notions.keys():
        raise InvalidInput(f"its totals are of {sorted(totals)}, but its budget of {list(notions)}")
    parts = {
        text: check.integer(int(count), "the count of a part", 1)
        for text, count in connection.execute("SELECT text, count FROM part")
    }
    return State(entries, totals, checked_label(prior), parts, None, _relation(connection))


def _relation(connection: sqlite3.Connection) -> str | None:
    """Read what neighbours are; files in which no release said so have no such table."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'relation'").fetchone() is None:
        return None
    ((name,),) = connection.execute("SELECT name FROM relation")
    return as_relation(name)


def check_history(connection: sqlite3.Connection) -> None:
    """Check that no spend is missing, and that the parts were made as often as the spends say.

    Otherwise a file that lost some of its parts would compose the others alone. One pass over the
    entries, within SQLite: some 0.2 s for a million of them.
    """
    number, last = connection.execute("SELECT COUNT(*), MAX(number) FROM entry").fetchone()
    if number != (last or 0):
        raise InvalidInput(f"it has {number} spends, but the last one is number {last}")
    told = connection.execute(_COUNTED).fetchall()
    (kinds,) = connection.execute("SELECT COUNT(*) FROM part").fetchone()
    for name, count, high, low in told:
        if name is None or int(count) != (high << _HALF) + low:
            raise InvalidInput(
                f"the spends of the part {described(name)} do not agree with its count"
            )
    if kinds != len(told):
        raise InvalidInput(f"it has {kinds} parts, but spends of {len(told)}")
