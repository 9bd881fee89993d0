"""What a ledger holds: totals and spends, checked as they are read from a file or an export."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from fastpriv._core import validation as check
from fastpriv.accounting.ledger.amounts import SUM_DIGITS, amount
from fastpriv.accounting.profile.relations import RELATIONS, earlier_relation
from fastpriv.errors import InvalidInput, described, short

#: Largest count of one spend, that of SQLite's integers.
MOST_COUNT = 2**63 - 1
#: Version of files in which every spend was checked against the relation.
RECORDED = 2
#: Kinds of parts that channels and declared levels are written as.
_FINITE = ("response", "laws", "shuffled")
#: What reading a text that somebody else wrote may raise.
UNREADABLE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
#: Counts of spends are summed in two halves, so that the sums fit SQLite's integers.
_HALF = 32
_COUNTED = (
    f"SELECT text, part.count, SUM(entry.count >> {_HALF}), "
    f"SUM(entry.count & {(1 << _HALF) - 1}) "
    "FROM entry LEFT JOIN part ON entry.part = part.id WHERE part IS NOT NULL GROUP BY part"
)
_TOTALS = "SELECT budget, entries, spent, prior FROM ledger"
_SEAL = "CREATE TABLE IF NOT EXISTS seal (id INTEGER PRIMARY KEY, digest TEXT NOT NULL)"


@dataclass(frozen=True)
class State:
    """Totals after a number of entries.

    ``prior`` tells which prior they were measured under, where that matters; ``parts`` how often
    each kind of release was made, by its profile, where a budget needs that. ``law`` is the
    composed law of the parts where the file is to keep it from now on. ``relation`` says what
    neighbours are, where an argument or a spend does; levels that are declared do not. ``mark``
    stands for all parts; see :func:`marked`. ``recorded`` says whether every spend was checked
    against the relation. Earlier versions did not: see :attr:`neighbours`. ``claim`` is that of the
    last entry, while it is written.
    """

    entries: int
    spent: Mapping[str, Decimal]
    prior: str | None
    parts: Mapping[str, int]
    law: bytes | None = None
    relation: str | None = None
    mark: int = 0
    recorded: bool = True
    claim: str | None = None

    @property
    def neighbours(self) -> str | None:
        """The relation for which the totals hold; None while all levels are declared."""
        finite = self.relation is not None and self.parts and all(map(_is_finite, self.parts))
        if self.recorded or not self.entries or finite:
            return self.relation
        return earlier_relation(self.relation)


@dataclass(frozen=True)
class Entry:
    """One acknowledged spend of ``count`` releases, and what it added to each total."""

    number: int
    time: str
    label: str | None
    count: int
    charged: Mapping[str, Decimal]
    part: str | None


def _is_finite(part: str) -> bool:
    """Whether a part holds channels and declared levels only, and no noise."""
    try:
        return all(kind in _FINITE for (kind, *_), _ in json.loads(part))
    except UNREADABLE:
        return False


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
        raise InvalidInput(f"count must be at most 2^63 - 1, got {short(number)}")
    return number


def checked_label(label: Any, what: str = "label") -> str | None:
    """Return the name of a spend, or its claim: text that can be written, or none."""
    if label is None:
        return None
    try:
        if not isinstance(label, str):
            raise TypeError
        label.encode()
    except (TypeError, UnicodeEncodeError):
        raise InvalidInput(
            f"{what} must be a string of Unicode text, got {described(label)}"
        ) from None
    return label


def marked(before: State, after: State, parts: Iterable[str]) -> State:
    """Return the totals after some parts were made more often, and their mark.

    It is a sum of digests, which changes with each part by itself: ledgers may have many.
    """
    mark = before.mark
    for part in parts:
        mark += _mark(part, after.parts[part])
        if part in before.parts:
            mark -= _mark(part, before.parts[part])
    return replace(after, mark=mark)


def _mark(part: str, count: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{count} {part}".encode()).digest(), "big")


def seal(connection: sqlite3.Connection, state: State) -> None:
    """Write a digest of what later spends depend on. It tells damage, not forgery."""
    connection.execute(_SEAL)
    connection.execute("REPLACE INTO seal VALUES (0, ?)", (_digest(connection, state),))


def _digest(connection: sqlite3.Connection, state: State) -> str:
    ((budget, entries, spent, prior),) = connection.execute(_TOTALS)
    told = json.dumps([budget, entries, spent, prior, state.relation, state.mark])
    return hashlib.sha256(told.encode()).hexdigest()


def state_of(connection: sqlite3.Connection, notions: Mapping[str, Any]) -> State:
    """Read the totals of a file. They have an amount for every notion of the budget."""
    _, entries, spent, prior = _only(connection.execute(_TOTALS), "totals")
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
    mark = sum(_mark(part, count) for part, count in parts.items())
    relation = _relation(connection)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    recorded = version >= RECORDED
    state = State(entries, totals, checked_label(prior), parts, None, relation, mark, recorded)
    if has_table(connection, "seal"):  # files of earlier versions have none
        (kept,) = _only(connection.execute("SELECT digest FROM seal"), "seals")
        if kept != _digest(connection, state):
            raise InvalidInput(
                "its budget, totals or parts are not those that the last spend left in it"
            )
    return state


def _only(rows: Iterable[tuple[Any, ...]], what: str) -> tuple[Any, ...]:
    """Return the one row of a table."""
    found = list(rows)
    if len(found) != 1:
        raise InvalidInput(f"it has {len(found)} {what}, not one")
    return found[0]


def has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Whether a file has a table: some are made when there is something to keep."""
    found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,))
    return found.fetchone() is not None


def _relation(connection: sqlite3.Connection) -> str | None:
    """Read what neighbours are; files in which no release said so have no such table."""
    if not has_table(connection, "relation"):
        return None
    (name,) = _only(connection.execute("SELECT name FROM relation"), "relations")
    return check.word(name, "relation", RELATIONS)


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
