"""The SQLite database of a ledger: opening, waiting, and errors in words."""

from __future__ import annotations

import json
import math
import random
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastpriv.accounting.ledger.rows import RECORDED, UNREADABLE
from fastpriv.errors import LedgerError

_APPLICATION, _VERSIONS = 0x66707276, (1, RECORDED)
_SCHEMA = (
    "CREATE TABLE ledger (budget TEXT NOT NULL, entries INTEGER NOT NULL, spent TEXT NOT NULL, "
    "prior TEXT)",
    "CREATE TABLE part (id INTEGER PRIMARY KEY, text TEXT UNIQUE NOT NULL, count TEXT NOT NULL)",
    "CREATE TABLE entry (number INTEGER PRIMARY KEY, time TEXT NOT NULL, label TEXT, "
    "count INTEGER NOT NULL, charged TEXT NOT NULL, part INTEGER REFERENCES part)",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {RECORDED}",
)


class _Patient(sqlite3.Connection):
    """A connection that asks again every millisecond or so while others have the lock.

    SQLite's own waits grow to a tenth of a second, in which a busy neighbour has its turn again
    and again.
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
            time.sleep(random.uniform(0.0005, 0.0015))


def connected(path: Path | None, create: bool, timeout: float) -> sqlite3.Connection:
    """Open the database; a file that is not there is made only when asked for."""
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


def prepared(
    connection: sqlite3.Connection, budget: Mapping[str, Any] | None, path: Path | None
) -> dict[str, Any]:
    """Make the tables of a new ledger or check those of an old one; return its budget."""
    if _is_new(connection):
        if budget is None:
            raise LedgerError(f"the file {path} is empty; give a budget to make a ledger")
        _settings(connection)
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _is_new(connection):  # still; of two that make it, one finds it made
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
            f"of version {version}, not 1 or {RECORDED}"
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
def one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """Let several reads see the same moment, whoever writes meanwhile."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


class Explained:
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


class Legible(Explained):
    """A context in which what the tables hold is read: what cannot be is damaged."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        super().__exit__(kind, error, trace)
        if isinstance(error, UNREADABLE):
            raise LedgerError(
                f"the ledger {self._name} is damaged: {error!s:.120}; nothing was spent. Restore "
                "it from an export (to_json) or a copy"
            ) from error


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
