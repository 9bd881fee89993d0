"""A ledger in an SQLite database: in memory, or in a file that many processes share.

A writer has the database for one short transaction (BEGIN IMMEDIATE: one writer at a time, the
others wait). It is on the disk before the spend is acknowledged (synchronous = FULL). A process
that dies leaves either all of it or none. The journal is SQLite's rollback journal and not its
write-ahead log, for two reasons. Between transactions a ledger is one file, which may be copied and
kept on any file system that has locks. And versions of SQLite before 3.51.3 can damage a database
when two processes write its log at the same instant.

After a spend, when a ledger is closed and when its process ends, the file is sealed: a digest of
all its bytes is written into the 20 bytes of SQLite's header that are reserved. Opening a file that
nobody wrote to since checks every byte. Otherwise SQLite checks its own structure: somebody is
writing, or was killed within a millisecond of a spend, or after a spend that had to wait for
others, or the file is large. The chain of entries is checked in both cases.
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from fastpriv._core import validation as check
from fastpriv.accounting.ledger.amounts import ZERO, plus
from fastpriv.accounting.ledger.store import (
    TABLES,
    VERSION,
    Entry,
    State,
    Store,
    amounts_of,
    beginning,
    checked_count,
    checked_label,
    counted,
    first_state,
    linked,
)
from fastpriv.errors import InvalidInput, LedgerError

#: Identifies the file: "fprv" in ASCII.
_APPLICATION = 0x66707276
#: Versions before entries were chained; from the second on relations were recorded.
_EARLIER, _RECORDED = (1, 2), 2
#: Shortest and longest pause, in seconds, before a locked database is tried again.
_PAUSES = (0.0005, 0.0015)
#: Longest wait, in seconds, for the file to be free of others to check or to write its seal.
_SEAL_WAIT = 0.2
#: Bytes that are sealed after every spend, in about a millisecond; a file of twice as many bytes is
#: sealed after every other spend.
_SEALED_AT_ONCE = 1 << 20
#: Places in SQLite's header: the counter of changes, its copy, and the reserved bytes.
_COUNTER, _COPY, _RESERVED = slice(24, 28), slice(92, 96), slice(72, 92)
#: Length of the header, and bytes that are hashed at a time.
_HEADER, _CHUNK = 100, 1 << 20

_STATEMENTS: dict[str, str] = {}

#: Device and number of a file; None in memory.
_File = tuple[int, int] | None

#: Advice by words of SQLite's error messages.
_HINTS = {
    "locked": "another process held it all the time; nothing was spent. Try again, or give open() "
    "a longer timeout",
    "unable to open": "its folder must exist and be writeable",
    "readonly": "the file and its folder must be writeable, for the journal",
    "not a database": "the file is something else, or damaged",
    "malformed": "the file is damaged; restore it from an export (to_json) or a copy",
    "full": "nothing was spent; make room and try again",
    "I/O": "the disk failed, or the journal beside the file cannot be written; look at the history "
    "before trying again",
}


class _Patient(sqlite3.Connection):
    """A connection that asks again about every millisecond while others have the lock.

    SQLite's own waits grow to a tenth of a second, in which a busy process spends again and again.
    """

    patience = 0.0
    #: Whether the last statement had to wait.
    waited = False

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        deadline, self.waited = math.inf, False
        while True:
            try:
                return super().execute(*statement)
            except sqlite3.OperationalError as error:
                now = time.monotonic()
                deadline = min(deadline, now + self.patience)
                if "locked" not in str(error) or now >= deadline:
                    raise
            self.waited = True
            time.sleep(random.uniform(*_PAUSES))


def _connected(path: Path | None, create: bool, timeout: float) -> _Patient:
    """Open the database; make the file only if ``create``."""
    if path is None:
        name, uri = ":memory:", False
    else:
        if not create and not path.exists():
            raise LedgerError(
                f"there is no ledger {path}. Make one with a budget: Ledger.open(path, budget), or "
                "fastpriv ledger init."
            )
        name, uri = f"{path.as_uri()}?mode={'rwc' if create else 'rw'}", True
    connection = sqlite3.connect(
        name, timeout=0.0, isolation_level=None, check_same_thread=False, uri=uri, factory=_Patient
    )
    connection.patience = timeout
    return connection


class SqliteStore(Store):
    """A ledger in memory, if there is no path, or in a file."""

    def __init__(
        self,
        path: Path | None,
        genesis: Mapping[str, Any] | None,
        timeout: float,
    ) -> None:
        self.path, self._timeout = path, timeout
        self.address = None if path is None else str(path)
        self._version = -1
        self._unsealed = 0  # spends since the file was sealed
        self._close: weakref.finalize[[_Patient, Path | None, _File], SqliteStore] | None = None
        super().__init__("in memory" if path is None else str(path))
        self._connect(genesis)

    # Opening and closing.

    def _connect(self, genesis: Mapping[str, Any] | None) -> None:
        with self.explained:
            connection = _connected(self.path, genesis is not None, self._timeout)
            self._connection = connection
            try:
                with self.legible:
                    whole = self.path is None or self._is_new() or self._is_sealed()
                    self._prepare(genesis)
                    with self.moment(write=False):
                        if not whole:
                            self.check_medium()
                        self._fresh()
            except BaseException:
                connection.close()
                self.closed = True
                raise
        self._file = _identity(self.path)
        self._close = weakref.finalize(self, _leave, connection, self.path, self._file)

    def _prepare(self, genesis: Mapping[str, Any] | None) -> None:
        """Make the tables of a new ledger, or check the version of an existing one."""
        if self._is_new():
            if genesis is None:
                raise LedgerError(f"the file {self.path} is empty; give a budget to make a ledger.")
            self._settings()
            with self.moment(write=True):
                if self._is_new():  # still: another process may have made it
                    self.make_tables(genesis, "INTEGER", "INTEGER PRIMARY KEY", "BLOB")
                    self.execute(f"PRAGMA application_id = {_APPLICATION}")
                    self.execute(f"PRAGMA user_version = {VERSION}")
        ((application,),) = self.execute("PRAGMA application_id")
        ((version,),) = self.execute("PRAGMA user_version")
        if application != _APPLICATION or version not in (*_EARLIER, VERSION):
            what = (
                f"of version {version}, not 1 to {VERSION}"
                if application == _APPLICATION
                else "no ledger"
            )
            raise LedgerError(
                f"the database {self.path} is {what}; nothing was changed in it. Give the path "
                "of a ledger."
            )
        self._settings()
        if version in _EARLIER:
            with self.moment(write=True):
                ((version,),) = self.execute("PRAGMA user_version")
                if version in _EARLIER:  # still: another process may have migrated it
                    _migrate(self, version)

    def _is_new(self) -> bool:
        return not self.execute("SELECT 1 FROM sqlite_master LIMIT 1")

    def _settings(self) -> None:
        self.execute("PRAGMA journal_mode = TRUNCATE")
        self.execute("PRAGMA synchronous = FULL")
        self.execute("PRAGMA secure_delete = ON")  # a claim is overwritten, not only unlinked

    def close(self) -> None:
        """Seal the file and close it; what was acknowledged stays in it."""
        with self.lock:
            self.closed = True
            if self._close is not None:
                self._close()

    def after_fork(self) -> None:
        """Give a child process its own lock and connection."""
        self.lock, self._state = threading.RLock(), None
        self._writing = self._within = False
        if self._close is not None:
            self._close.detach()
            self._connection.close()
        self._close = None

    def ready(self) -> None:
        """Check that the connection of this process can be used; the lock is held."""
        if self.closed:
            raise LedgerError(f"the ledger {self.name} is closed; open it again.")
        if self._close is None:
            if self.path is None:
                raise LedgerError(
                    "this ledger is in the memory of the process that forked this one, and a copy "
                    "could spend its budget twice; share a file: Ledger.open(path, budget)."
                )
            self._check_file()
            self._connect(None)
        if self._connection.in_transaction and not self._within:
            self._connection.execute("ROLLBACK")

    def _check_file(self) -> None:
        if _identity(self.path) != self._file:
            raise LedgerError(
                f"the file {self.path} was moved, deleted or replaced while this ledger was open; "
                "nothing was spent. Open it again."
            )

    # Statements.

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        text = _STATEMENTS.get(statement)
        if text is None:
            text = statement
            for name in TABLES:
                text = text.replace(f"{{{name}}}", name)
            if not values and statement.startswith(("PRAGMA", "CREATE")):
                return self._connection.execute(text).fetchall()
            _STATEMENTS[statement] = text
        return self._connection.execute(text, values).fetchall()

    @contextmanager
    def moment(self, write: bool) -> Iterator[None]:
        """Let several statements see one state; if ``write``, nobody else writes meanwhile."""
        connection = self._connection
        if connection.in_transaction:
            yield
            return
        changes = connection.total_changes
        try:
            self._within = True
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            alone = not connection.waited
            if write and hasattr(self, "_file"):
                self._check_file()
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        finally:
            self._within = False
        if connection.total_changes > changes and self._close is not None:
            self._unsealed += 1
            if alone and self.path is not None:
                self._seal_at_once(self.path)

    def _seal_at_once(self, path: Path) -> None:
        """Seal the file after a spend for which nobody waited, unless it is too large."""
        with suppress(sqlite3.Error, OSError):  # the spend is on the disk all the same
            if os.stat(path).st_size <= self._unsealed * _SEALED_AT_ONCE:
                self._unsealed = 0
                _seal(self._connection, path, 0.0)

    def is_unchanged(self) -> bool:
        """Whether no other connection has written since the last call."""
        if self.path is None:
            return True
        ((version,),) = self.execute("PRAGMA data_version")
        before, self._version = self._version, version
        return bool(before == version)

    def explain(self, error: BaseException) -> LedgerError | None:
        """Return an error of SQLite with advice."""
        if not isinstance(error, sqlite3.Error):
            return None
        hints = (hint for words, hint in _HINTS.items() if words in str(error))
        what = "; ".join([str(error), *hints][:2])
        return LedgerError(f"the ledger {self.name}: {what}")

    # The bytes of the file.

    def check_medium(self) -> None:
        """Let SQLite check its structure."""
        if self.path is None:
            return
        problems = self.execute("PRAGMA integrity_check(1)")
        if problems != [("ok",)]:
            raise InvalidInput(f"SQLite finds {problems[0][0]}")

    def _is_sealed(self) -> bool:
        """Whether the seal of the whole file holds; raise if it is broken, False if it is old."""
        assert self.path is not None
        with _alone(self._connection, _SEAL_WAIT) as alone:
            if not alone:
                return False
            with open(self.path, "rb") as file:
                header, digest = _hashed(file)
        counter, seal = header[_COUNTER], header[_RESERVED]
        if seal[4:] == digest and seal[:4] == counter:
            return True
        if seal[4:] == digest or seal[:4] == counter or counter != header[_COPY]:
            raise InvalidInput("its bytes are not those that were written.")
        return False  # somebody has written since, and was killed or goes on


@contextmanager
def _alone(connection: _Patient, wait: float) -> Iterator[bool]:
    """Have the file alone for a moment, if nobody else uses it.

    Closing any descriptor of a file gives up all locks that a process has on it. So its bytes are
    read only while nobody, also in this process, can have another lock.
    """
    patience = connection.patience
    connection.patience = min(patience, wait)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
        yield False
        return
    finally:
        connection.patience = patience
    try:
        yield True
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _identity(path: Path | None) -> _File:
    """Identify the file at a path, to notice if it was moved or replaced."""
    if path is None:
        return None
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _leave(connection: _Patient, path: Path | None, file: _File) -> None:
    """Seal the file and close it: when a ledger is closed or forgotten, or the process ends."""
    try:
        if path is not None and _identity(path) == file:
            _seal(connection, path, _SEAL_WAIT)
    except (sqlite3.Error, OSError):  # read-only, or gone: the chain is checked instead
        pass
    finally:
        connection.close()


def _seal(connection: _Patient, path: Path, wait: float) -> None:
    """Write a digest of the whole file, unless it is there or others use the file."""
    with _alone(connection, wait) as alone:
        if alone:
            with open(path, "r+b") as file:
                header, digest = _hashed(file)
                seal = header[_COUNTER] + digest
                if header[_RESERVED] != seal:
                    file.seek(_RESERVED.start)
                    file.write(seal)


def _hashed(file: Any) -> tuple[bytes, bytes]:
    """Return the header of a database, and a digest of the file without the reserved bytes."""
    header = file.read(_HEADER)
    digest = hashlib.sha256(header[: _RESERVED.start] + header[_RESERVED.stop :])
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return header, digest.digest()[:16]


# Files of earlier versions.


def _migrate(store: SqliteStore, version: int) -> None:
    """Chain the entries of a file of an earlier version, within a moment.

    Their totals are added up again and must agree with those of the file.
    """
    tables = {name for (name,) in store.execute("SELECT name FROM sqlite_master")}
    ((budget, entries, spent, prior),) = store.execute(
        "SELECT budget, entries, spent, prior FROM ledger"
    )
    relation = None
    if "relation" in tables:
        rows = store.execute("SELECT name FROM relation")
        if len(rows) != 1:
            raise InvalidInput(f"it has {len(rows)} relations, not one.")
        ((relation,),) = rows
    parts = {
        text: check.integer(int(count), "the count of a part", 1)
        for text, count in store.execute("SELECT text, count FROM part")
    }
    if "seal" in tables:
        mark = sum(
            int.from_bytes(hashlib.sha256(f"{count} {part}".encode()).digest(), "big")
            for part, count in parts.items()
        )
        content = json.dumps([budget, entries, spent, prior, relation, mark])
        if store.execute("SELECT digest FROM seal") != [
            (hashlib.sha256(content.encode()).hexdigest(),)
        ]:
            raise InvalidInput(
                "its budget, totals or parts are not those that the last spend left in it."
            )
    history = store.execute(
        "SELECT number, time, label, entry.count, charged, text FROM entry "
        "LEFT JOIN part ON entry.part = part.id ORDER BY number"
    )
    pending = store.execute("SELECT number, claim FROM pending") if "pending" in tables else []
    for name in ("ledger", "entry", "part", "seal", "law", "relation", "pending"):
        if name in tables:
            store.execute(f"DROP TABLE {name}")
    genesis = beginning(json.loads(budget), relation, {}, version >= _RECORDED)
    store.make_tables(genesis, "INTEGER", "INTEGER PRIMARY KEY", "BLOB")
    state = first_state(genesis)
    for number, when, label, count, charged, part in history:
        entry = Entry(
            check.integer(number, "number", 1),
            datetime.fromisoformat(when).isoformat(),
            checked_label(label),
            checked_count(count),
            amounts_of(json.loads(charged)),
            part,
        )
        if number != state.entries + 1:
            raise InvalidInput(f"spend {state.entries + 1} is missing.")
        entry, text, state = linked(entry, state, _followed(state, entry, prior))
        store.add(entry, text, state)
    if entries != state.entries or state.parts != parts:
        raise InvalidInput("its spends do not agree with its parts or their number.")
    if state.spent != amounts_of(json.loads(spent)):
        raise InvalidInput("its spends do not add up to its totals.")
    store.set_head(state)
    for number, claim in pending:
        store.add_claim(number, claim)
    store.execute(f"PRAGMA user_version = {VERSION}")


def _followed(state: State, entry: Entry, prior: str | None) -> State:
    """Return the totals after a spend of an earlier version."""
    spent = {n: plus(total, entry.charged.get(n, ZERO)) for n, total in state.spent.items()}
    parts, mark = counted(state, entry.part, entry.count)
    return replace(
        state,
        entries=state.entries + 1,
        spends=state.spends + 1,
        spent=spent,
        prior=checked_label(prior),
        parts=parts,
        mark=mark,
    )
