"""The file of a ledger: an SQLite database, in memory or shared by many processes.

One transaction per spend (BEGIN IMMEDIATE: one writer at a time, the others wait) adds the entry
and the new totals. It is on the disk before the spend is acknowledged (synchronous = FULL). A
process that dies leaves either all of it or none. The journal is SQLite's rollback journal and not
its write-ahead log, for two reasons. Between transactions a ledger is one file, which may be copied
and kept on any file system that has locks. And versions of SQLite before 3.51.3 can damage a
database when two processes write its log at the same instant.

The file is read top to bottom: what a ledger holds (State, Entry), how it is checked when it is
read, how the database is opened, and the Store that reads and writes it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from fastpriv._core import validation as check
from fastpriv.accounting.ledger.amounts import SUM_DIGITS, amount
from fastpriv.accounting.profile.relations import RELATIONS, earlier_relation
from fastpriv.errors import InvalidInput, LedgerError, described, short

#: Largest count of one spend, the largest integer of SQLite.
MOST_COUNT = 2**63 - 1
#: What reading a text that somebody else wrote may raise.
UNREADABLE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
#: Identifies the file: "fprv" in ASCII.
_APPLICATION = 0x66707276
#: Version of files in which every spend was checked against the relation.
_RECORDED = 2
_VERSIONS = (1, _RECORDED)
#: Kinds of parts that channels and declared levels are written as.
_FINITE = ("response", "laws", "shuffled")
#: Counts of spends are summed in two halves of this many bits, so that sums fit SQLite's integers.
_HALF = 32
#: Shortest and longest pause, in seconds, before a locked database is tried again.
_PAUSES = (0.0005, 0.0015)

_SCHEMA = (
    "CREATE TABLE ledger (budget TEXT NOT NULL, entries INTEGER NOT NULL, spent TEXT NOT NULL, "
    "prior TEXT)",
    "CREATE TABLE part (id INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL, count TEXT NOT NULL)",
    "CREATE TABLE entry (number INTEGER PRIMARY KEY, time TEXT NOT NULL, label TEXT, "
    "count INTEGER NOT NULL, charged TEXT NOT NULL, part INTEGER REFERENCES part)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_RECORDED}",
)
# Tables that are made when there is something to keep in them.
_SEAL = "CREATE TABLE IF NOT EXISTS seal (id INTEGER PRIMARY KEY, digest TEXT NOT NULL)"
_COMPOSITION = "CREATE TABLE IF NOT EXISTS law (id INTEGER PRIMARY KEY, data BLOB NOT NULL)"
_RELATION = "CREATE TABLE IF NOT EXISTS relation (id INTEGER PRIMARY KEY, name TEXT NOT NULL)"
#: Charges whose releases have not been published, each with what a resumed release must match.
_PENDING = "CREATE TABLE IF NOT EXISTS pending (number INTEGER PRIMARY KEY, claim TEXT NOT NULL)"

_TOTALS = "SELECT budget, entries, spent, prior FROM ledger"
_COUNTED = (
    f"SELECT text, part.count, SUM(entry.count >> {_HALF}), "
    f"SUM(entry.count & {(1 << _HALF) - 1}) "
    "FROM entry LEFT JOIN part ON entry.part = part.id WHERE part IS NOT NULL GROUP BY part"
)
_HISTORY = (
    "SELECT number, time, label, entry.count, charged, text FROM entry "
    "LEFT JOIN part ON entry.part = part.id ORDER BY number DESC LIMIT ?"
)
_ADD_ENTRY = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, (SELECT id FROM part WHERE text = ?))"
_SET_COUNT = (
    "INSERT INTO part (text, count) VALUES (?, ?) "
    "ON CONFLICT (text) DO UPDATE SET count = excluded.count"
)

#: Advice by words of SQLite's error messages.
_HINTS = {
    "locked": "another process held it all the time; nothing was spent. Try again, or give open() "
    "a longer timeout",
    "unable to open": "its folder must exist and be writeable",
    "readonly": "the file and its folder must be writeable, for the journal",
    "not a database": "the file is something else, or damaged",
    "malformed": "the file is damaged; restore it from an export (to_json) or a copy",
    "full": "nothing was spent; make room and try again",
    "I/O": "the disk failed; look at the history before trying again",
}


# What a ledger holds.


@dataclass(frozen=True)
class State:
    """Totals after a number of entries.

    Attributes
    ----------
    entries : int
        Number of spends.
    spent : mapping
        Exact total of each notion.
    prior : str or None
        Fingerprint of the prior under which all levels were measured, if that matters.
    parts : mapping
        How often each profile was spent, by its text, for budgets at (epsilon, delta).
    composition : bytes or None
        The composed profiles, if the file is to keep them from now on.
    relation : str or None
        Which databases are neighbours, if an argument or a spend states it.
    mark : int
        Sum of the digests of all parts; see :func:`_marked`.
    recorded : bool
        Whether every spend was checked against the relation. Earlier versions did not check; see
        :attr:`neighbours`.
    claim : str or None
        Claim of the last entry, while it is written.
    """

    entries: int
    spent: Mapping[str, Decimal]
    prior: str | None
    parts: Mapping[str, int]
    composition: bytes | None = None
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
    """One acknowledged spend of ``count`` steps, and what it added to each total."""

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


def _amounts_text(amounts: Mapping[str, Decimal]) -> str:
    """Write exact amounts as JSON."""
    return json.dumps({notion: str(value) for notion, value in amounts.items()})


def amounts_of(given: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return exact amounts that were written."""
    return {notion: amount(value, "an amount", SUM_DIGITS) for notion, value in given.items()}


def entry_of(number: Any, time: Any, label: Any, count: Any, charged: Any, part: Any) -> Entry:
    """Return a spend that was written."""
    if part is not None:
        from fastpriv.accounting.ledger.profiles import profile_of  # only when needed

        profile_of(part)
    return Entry(
        check.integer(number, "number", 1),
        datetime.fromisoformat(time).isoformat(),
        checked_label(label),
        checked_count(count),
        amounts_of(charged),
        part,
    )


def checked_count(count: Any) -> int:
    """Return how many steps a spend is for."""
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


def _marked(before: State, after: State, parts: Iterable[str]) -> State:
    """Return the totals with the mark after some parts were spent more often.

    The mark is a sum of digests, so that a spend changes it without reading the other parts.
    """
    mark = before.mark
    for part in parts:
        mark += _mark(part, after.parts[part])
        if part in before.parts:
            mark -= _mark(part, before.parts[part])
    return replace(after, mark=mark)


def _mark(part: str, count: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{count} {part}".encode()).digest(), "big")


def _seal(connection: sqlite3.Connection, state: State) -> None:
    """Write a digest of what later spends depend on. It detects damage, not forgery."""
    connection.execute(_SEAL)
    connection.execute("REPLACE INTO seal VALUES (0, ?)", (_digest(connection, state),))


def _digest(connection: sqlite3.Connection, state: State) -> str:
    ((budget, entries, spent, prior),) = connection.execute(_TOTALS)
    content = json.dumps([budget, entries, spent, prior, state.relation, state.mark])
    return hashlib.sha256(content.encode()).hexdigest()


def _state_of(connection: sqlite3.Connection, notions: Mapping[str, Any]) -> State:
    """Read the totals of a file, which have an amount for every notion of the budget."""
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
    recorded = version >= _RECORDED
    state = State(entries, totals, checked_label(prior), parts, None, relation, mark, recorded)
    if _has_table(connection, "seal"):  # files of earlier versions have none
        (kept,) = _only(connection.execute("SELECT digest FROM seal"), "seals")
        if kept != _digest(connection, state):
            raise InvalidInput(
                "its budget, totals or parts are not those that the last spend left in it"
            )
    return state


def _only(rows: Iterable[tuple[Any, ...]], what: str) -> tuple[Any, ...]:
    """Return the one row of a table."""
    listed = list(rows)
    if len(listed) != 1:
        raise InvalidInput(f"it has {len(listed)} {what}, not one")
    return listed[0]


def _has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Whether the database has a table."""
    query = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return connection.execute(query, (table,)).fetchone() is not None


def _relation(connection: sqlite3.Connection) -> str | None:
    """Read which databases are neighbours; files in which no spend stated it have no such table."""
    if not _has_table(connection, "relation"):
        return None
    (name,) = _only(connection.execute("SELECT name FROM relation"), "relations")
    return check.word(name, "relation", RELATIONS)


def _check_history(connection: sqlite3.Connection) -> None:
    """Check that no spend is missing, and that parts and spends agree on every count.

    Otherwise a file that lost some of its parts would compose the others alone. One pass over the
    entries, within SQLite: about 0.2 s for a million of them.
    """
    number, last = connection.execute("SELECT COUNT(*), MAX(number) FROM entry").fetchone()
    if number != (last or 0):
        raise InvalidInput(f"it has {number} spends, but the last one is number {last}")
    counted = connection.execute(_COUNTED).fetchall()
    (kinds,) = connection.execute("SELECT COUNT(*) FROM part").fetchone()
    for name, count, high, low in counted:
        if name is None or int(count) != (high << _HALF) + low:
            raise InvalidInput(
                f"the spends of the part {described(name)} do not agree with its count"
            )
    if kinds != len(counted):
        raise InvalidInput(f"it has {kinds} parts, but spends of {len(counted)}")


# Opening the database.


class _Patient(sqlite3.Connection):
    """A connection that asks again about every millisecond while others have the lock.

    SQLite's own waits grow to a tenth of a second, in which a busy process spends again and again.
    """

    patience = 0.0

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        deadline = math.inf
        while True:
            try:
                return super().execute(*statement)
            except sqlite3.OperationalError as error:
                now = time.monotonic()
                deadline = min(deadline, now + self.patience)
                if "locked" not in str(error) or now >= deadline:
                    raise
            time.sleep(random.uniform(*_PAUSES))


def _connected(path: Path | None, create: bool, timeout: float) -> sqlite3.Connection:
    """Open the database; make the file only if ``create``."""
    if path is None:
        name, uri = ":memory:", False
    else:
        if not create and not path.exists():
            raise LedgerError(f"there is no ledger {path}; give a budget to make one")
        name, uri = f"{path.as_uri()}?mode={'rwc' if create else 'rw'}", True
    connection = sqlite3.connect(
        name, timeout=0.0, isolation_level=None, check_same_thread=False, uri=uri, factory=_Patient
    )
    connection.patience = timeout
    return connection


def _prepared(
    connection: sqlite3.Connection, budget: Mapping[str, Any] | None, path: Path | None
) -> dict[str, Any]:
    """Make the tables of a new ledger, or check an existing one; return its budget."""
    if _is_new(connection):
        if budget is None:
            raise LedgerError(f"the file {path} is empty; give a budget to make a ledger")
        _settings(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _is_new(connection):  # still: another process may have made it
                for statement in _SCHEMA:
                    connection.execute(statement)
                nothing = json.dumps(dict.fromkeys(budget, "0"))
                connection.execute(
                    "INSERT INTO ledger VALUES (?, 0, ?, NULL)", (json.dumps(budget), nothing)
                )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != _APPLICATION or version not in _VERSIONS:
        what = (
            f"of version {version}, not 1 or {_RECORDED}"
            if application == _APPLICATION
            else "no ledger"
        )
        raise LedgerError(f"the database {path} is {what}; nothing was changed in it")
    _settings(connection)
    ((kept,),) = connection.execute("SELECT budget FROM ledger")
    stored: dict[str, Any] = json.loads(kept)
    return stored


def _is_new(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def _settings(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = FULL")


@contextmanager
def _one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """Let several reads see the same state, whoever writes meanwhile."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


class _Explained:
    """A context in which errors of SQLite become :class:`LedgerError`, with advice."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            hints = (hint for words, hint in _HINTS.items() if words in str(error))
            what = "; ".join([str(error), *hints][:2])
            raise LedgerError(f"the ledger {self._name}: {what}") from error


class _Legible(_Explained):
    """A context in which tables are read: an unreadable value is a damaged file."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if isinstance(error, UNREADABLE):
            raise LedgerError(
                f"the ledger {self._name} is damaged: {error!s:.120}; nothing was spent. Restore "
                "it from an export (to_json) or a copy"
            ) from error


# Reading and writing.


class Store:
    """The database of one ledger. All methods may be called from any thread."""

    def __init__(self, path: Path | None, budget: Mapping[str, Any] | None, timeout: float) -> None:
        self.path, self._timeout = path, timeout
        self._name = "in memory" if path is None else str(path)
        self._explained, self.legible = _Explained(self._name), _Legible(self._name)
        self.lock = threading.RLock()
        self._version = 0
        self._state: State | None = None
        self._close: Callable[[], object] | None = None
        self.closed = False
        self.budget: dict[str, Any] = {}
        self._connect(budget)
        with _FORKING:
            _LIVE.add(self)

    # Opening and closing.

    def _connect(self, budget: Mapping[str, Any] | None) -> None:
        with self._explained:
            connection = self._connection = _connected(self.path, budget is not None, self._timeout)
            self._close = weakref.finalize(self, connection.close)
            try:
                with self.legible:
                    self.budget = _prepared(connection, budget, self.path)
                    with _one_moment(connection):
                        _check_history(connection)
                        self._fresh(connection)
            except BaseException:
                self.close()
                raise
        self._file = self._identity()

    def close(self) -> None:
        """Close the database; what was acknowledged stays in the file."""
        with self.lock:
            self.closed = True
            if self._close is not None:
                self._close()

    def after_fork(self) -> None:
        """Give a child process its own lock and connection."""
        self.lock, self._state = threading.RLock(), None
        if self._close is not None:
            self._close()
            self._close = None

    def _ready(self) -> sqlite3.Connection:
        """Return the connection of this process; the lock is held."""
        if self.closed:
            raise LedgerError(f"the ledger {self._name} is closed; open it again")
        if self._close is None:
            if self.path is None:
                raise LedgerError(
                    "this ledger is in the memory of the process that forked this one, and a copy "
                    "could spend its budget twice; share a file: Ledger.open(path, budget)"
                )
            self._check_file()
            self._connect(None)
        return self._connection

    def _identity(self) -> tuple[int, int] | None:
        """Identify the file at the path, to notice if it was moved or replaced."""
        if self.path is None:
            return None
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check_file(self) -> None:
        if self._identity() != self._file:
            raise LedgerError(
                f"the file {self.path} was moved, deleted or replaced while this ledger was open; "
                "nothing was spent. Open it again"
            )

    # Reading and writing.

    def state(self) -> State:
        """Return the totals; they are read again only if another connection has written."""
        with self.lock, self._explained:
            return self._fresh(self._ready())

    def _fresh(self, connection: sqlite3.Connection) -> State:
        if self._state is not None and self.path is None:
            return self._state  # nobody else can have written
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if self._state is None or self._version != version:
            with self.legible, _one_moment(connection):
                self._version, self._state = version, _state_of(connection, self.budget)
        return self._state

    def write(self, make: Callable[[State], tuple[list[Entry], State]]) -> None:
        """Add entries and the totals after them; ``make`` returns both, given the current totals.

        Nobody else writes meanwhile. Any exception, also from ``make``, leaves the file as it was.
        After the return the entries are on the disk. If the new totals have a claim, the last entry
        is pending until :meth:`publish`.
        """
        with self.lock, self._explained:
            connection = self._ready()
            if connection.in_transaction:
                raise LedgerError("a signal handler must not spend while its thread is spending")
            connection.execute("BEGIN IMMEDIATE")
            try:
                before = self._fresh(connection)
                self._check_file()
                entries, after = make(before)
                self._state = None  # until it is certain what was written
                parts = {entry.part for entry in entries if entry.part is not None}
                after = _marked(before, after, parts)
                for part in parts:
                    connection.execute(_SET_COUNT, (part, str(after.parts[part])))
                for e in entries:
                    row = (e.number, e.time, e.label, e.count, _amounts_text(e.charged), e.part)
                    connection.execute(_ADD_ENTRY, row)
                connection.execute(
                    "UPDATE ledger SET entries = ?, spent = ?, prior = ?",
                    (after.entries, _amounts_text(after.spent), after.prior),
                )
                if after.claim is not None:
                    connection.execute(_PENDING)
                    pending = after.entries, after.claim
                    connection.execute("INSERT INTO pending VALUES (?, ?)", pending)
                if after.composition is not None:
                    connection.execute(_COMPOSITION)
                    connection.execute("REPLACE INTO law VALUES (0, ?)", (after.composition,))
                if after.recorded != before.recorded:
                    version = _RECORDED if after.recorded else 1
                    connection.execute(f"PRAGMA user_version = {version}")
                if after.relation != before.relation:
                    connection.execute(_RELATION)
                    connection.execute("REPLACE INTO relation VALUES (0, ?)", (after.relation,))
                if self.path is not None:
                    _seal(connection, after)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self._state = replace(after, composition=None, claim=None)

    def pending(self) -> dict[int, str]:
        """Return the claims of charges whose releases have not been published, by number."""
        with self.lock, self._explained:
            connection = self._ready()
            if not _has_table(connection, "pending"):
                return {}
            return dict(connection.execute("SELECT number, claim FROM pending").fetchall())

    def publish(self, number: int) -> bool:
        """Close a pending charge; return False if it was closed before.

        If this returns True, the closing is on the disk, and no other call returns True for this
        charge. The claim is overwritten, not only unlinked.
        """
        with self.lock, self._explained:
            connection = self._ready()
            self._check_file()
            if not _has_table(connection, "pending"):
                return False
            connection.execute("PRAGMA secure_delete = ON")
            return (
                connection.execute("DELETE FROM pending WHERE number = ?", (number,)).rowcount == 1
            )

    def composition(self) -> bytes | None:
        """Return the composed profiles that the file keeps; ledgers of few spends keep none."""
        with self.lock, self._explained:
            connection = self._ready()
            if _has_table(connection, "law"):
                row = connection.execute("SELECT data FROM law").fetchone()
                return None if row is None else bytes(row[0])
            return None

    def snapshot(self, last: int | None = None) -> tuple[State, list[Entry]]:
        """Return the totals and all entries or the last few, oldest first, of one state."""
        with self.lock, self._explained:
            connection = self._ready()
            with _one_moment(connection):
                state = self._fresh(connection)
                limit = -1 if last is None else last
                rows = connection.execute(_HISTORY, (limit,)).fetchall()
        with self.legible:
            return state, [
                entry_of(number, when, label, count, json.loads(charged), part)
                for number, when, label, count, charged, part in reversed(rows)
            ]


#: The stores of this process. Their locks are held during a fork, so no transaction is open.
_LIVE: weakref.WeakSet[Store] = weakref.WeakSet()
_FORKING = threading.Lock()
_HELD: list[Store] = []


def _before_fork() -> None:
    _FORKING.acquire()
    for store in list(_LIVE):
        store.lock.acquire()
        _HELD.append(store)


def _after_fork_in_parent() -> None:
    while _HELD:
        _HELD.pop().lock.release()
    _FORKING.release()


def _after_fork_in_child() -> None:
    while _HELD:
        _HELD.pop().after_fork()
    _FORKING.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
