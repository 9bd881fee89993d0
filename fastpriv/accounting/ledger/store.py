"""Where a ledger is kept: an SQLite database, in memory or in a file that processes share.

One transaction per release (BEGIN IMMEDIATE: one writer at a time, the others wait) adds the entry
and the new totals, and is on the disk before the release is acknowledged (synchronous = FULL). A
process that dies leaves either all of it or none. The journal is SQLite's rollback journal and
not its write-ahead log: at rest a ledger is one file, which may be copied and kept on any file
system that has locks, and versions of SQLite before 3.51.3 can damage a database when two
processes write its log at the same instant.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastpriv.accounting.ledger.rows import (
    RECORDED,
    Entry,
    State,
    check_history,
    entry_of,
    has_table,
    marked,
    seal,
    state_of,
    text,
)
from fastpriv.accounting.ledger.sqlite import Explained, Legible, connected, one_moment, prepared
from fastpriv.errors import LedgerError

_ENTRY = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, (SELECT id FROM part WHERE text = ?))"
_COUNT = (
    "INSERT INTO part (text, count) VALUES (?, ?) "
    "ON CONFLICT (text) DO UPDATE SET count = excluded.count"
)

_LAW = "CREATE TABLE IF NOT EXISTS law (id INTEGER PRIMARY KEY, data BLOB NOT NULL)"
#: Charges whose releases have not been published, each with what a resumed release must match.
_PENDING = "CREATE TABLE IF NOT EXISTS pending (number INTEGER PRIMARY KEY, claim TEXT NOT NULL)"
_RELATION = "CREATE TABLE IF NOT EXISTS relation (id INTEGER PRIMARY KEY, name TEXT NOT NULL)"


class Store:
    """The database of one ledger. All methods may be called from any thread."""

    def __init__(self, path: Path | None, budget: Mapping[str, Any] | None, timeout: float) -> None:
        self.path, self._timeout = path, timeout
        self._name = "in memory" if path is None else str(path)
        self._explained, self.legible = Explained(self._name), Legible(self._name)
        self._lock = threading.RLock()
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
            connection = self._connection = connected(self.path, budget is not None, self._timeout)
            self._close = weakref.finalize(self, connection.close)
            try:
                with self.legible:
                    self.budget = prepared(connection, budget, self.path)
                    with one_moment(connection):
                        check_history(connection)
                        self._fresh(connection)
            except BaseException:
                self.close()
                raise
        self._file = self.identity()

    def close(self) -> None:
        """Close the database; what was acknowledged stays in the file."""
        with self._lock:
            self.closed = True
            if self._close is not None:
                self._close()

    def _after_fork(self) -> None:
        """Let a child process have its own lock and connection."""
        self._lock, self._state = threading.RLock(), None
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

    def identity(self) -> tuple[int, int] | None:
        """Return which file the path leads to, to notice when it was moved or replaced."""
        if self.path is None:
            return None
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check_file(self) -> None:
        if self.identity() != self._file:
            raise LedgerError(
                f"the file {self.path} was moved, deleted or replaced while this ledger was open; "
                "nothing was spent. Open it again"
            )

    # Reading and writing.

    def state(self) -> State:
        """Return the totals, read again only when another connection has written."""
        with self._lock, self._explained:
            return self._fresh(self._ready())

    def _fresh(self, connection: sqlite3.Connection) -> State:
        if self._state is not None and self.path is None:
            return self._state  # nobody else can have written
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if self._state is None or self._version != version:
            with self.legible, one_moment(connection):
                self._version, self._state = version, state_of(connection, self.budget)
        return self._state

    def write(self, make: Callable[[State], tuple[list[Entry], State]]) -> None:
        """Add entries and the totals after them; ``make`` returns both, given the current totals.

        With a claim, the last entry stays pending until :meth:`publish`. Nobody else writes
        meanwhile. Whatever is raised, by ``make`` too, leaves the file as it was; once this
        returns, the entries are on the disk.
        """
        with self._lock, self._explained:
            connection = self._ready()
            if connection.in_transaction:
                raise LedgerError("a signal handler must not spend while its thread is spending")
            connection.execute("BEGIN IMMEDIATE")
            try:
                before = self._fresh(connection)
                self._check_file()
                made, after = make(before)
                self._state = None  # until it is certain what was written
                parts = {entry.part for entry in made if entry.part is not None}
                after = marked(before, after, parts)
                for part in parts:
                    connection.execute(_COUNT, (part, str(after.parts[part])))
                for e in made:
                    row = (e.number, e.time, e.label, e.count, text(e.charged), e.part)
                    connection.execute(_ENTRY, row)
                connection.execute(
                    "UPDATE ledger SET entries = ?, spent = ?, prior = ?",
                    (after.entries, text(after.spent), after.prior),
                )
                if after.claim is not None:
                    connection.execute(_PENDING)
                    pending = after.entries, after.claim
                    connection.execute("INSERT INTO pending VALUES (?, ?)", pending)
                if after.law is not None:
                    connection.execute(_LAW)
                    connection.execute("REPLACE INTO law VALUES (0, ?)", (after.law,))
                if after.recorded != before.recorded:
                    connection.execute(f"PRAGMA user_version = {RECORDED if after.recorded else 1}")
                if after.relation != before.relation:
                    connection.execute(_RELATION)
                    connection.execute("REPLACE INTO relation VALUES (0, ?)", (after.relation,))
                if self.path is not None:
                    seal(connection, after)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self._state = replace(after, law=None, claim=None)

    def pending(self) -> dict[int, str]:
        """Return the claims of charges whose releases have not been published, by number."""
        with self._lock, self._explained:
            connection = self._ready()
            if not has_table(connection, "pending"):
                return {}
            return dict(connection.execute("SELECT number, claim FROM pending").fetchall())

    def publish(self, number: int) -> bool:
        """Close a pending charge; False where somebody has closed it before.

        Once this returns True, the closing is on the disk, and nobody else is told True for this
        charge. The claim is overwritten, not only unlinked.
        """
        with self._lock, self._explained:
            connection = self._ready()
            self._check_file()
            if not has_table(connection, "pending"):
                return False
            connection.execute("PRAGMA secure_delete = ON")
            return (
                connection.execute("DELETE FROM pending WHERE number = ?", (number,)).rowcount == 1
            )

    def law(self) -> bytes | None:
        """Return the composed law that the file keeps; ledgers of few releases keep none."""
        with self._lock, self._explained:
            connection = self._ready()
            if has_table(connection, "law"):
                row = connection.execute("SELECT data FROM law").fetchone()
                return None if row is None else bytes(row[0])
            return None

    def snapshot(self, last: int | None = None) -> tuple[State, list[Entry]]:
        """Return the totals and all entries or the last few, oldest first, of one moment."""
        with self._lock, self._explained:
            connection = self._ready()
            with one_moment(connection):
                state = self._fresh(connection)
                rows = connection.execute(
                    "SELECT number, time, label, entry.count, charged, text FROM entry "
                    "LEFT JOIN part ON entry.part = part.id ORDER BY number DESC LIMIT ?",
                    (-1 if last is None else last,),
                ).fetchall()
        with self.legible:
            return state, [
                entry_of(number, when, label, count, json.loads(charged), part)
                for number, when, label, count, charged, part in reversed(rows)
            ]


#: The stores of this process, made ready for a fork: no transaction is open while it happens.
_LIVE: weakref.WeakSet[Store] = weakref.WeakSet()
_FORKING = threading.Lock()
_HELD: list[Store] = []


def _before_fork() -> None:
    _FORKING.acquire()
    for store in list(_LIVE):
        store._lock.acquire()
        _HELD.append(store)


def _after_fork_in_parent() -> None:
    while _HELD:
        _HELD.pop()._lock.release()
    _FORKING.release()


def _after_fork_in_child() -> None:
    while _HELD:
        _HELD.pop()._after_fork()
    _FORKING.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
