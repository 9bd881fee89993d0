"""A ledger on a PostgreSQL server, for many machines (extra ``postgres``, psycopg 3).

One schema of a database holds one ledger, in tables named ``fastpriv_...``. A writer locks the row
with the head of the chain for one short transaction and writes only if the head is the one it has
seen. If the connection is lost while an entry is written, the entry is in the ledger or it is not;
:meth:`Store.find_written` finds out over a new connection. A server that does not answer within the
timeout counts as a lost connection.
"""

from __future__ import annotations

import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from fastpriv.accounting.ledger.store import TABLES, VERSION, LostConnection, Store
from fastpriv.errors import InvalidInput, LedgerError

#: How addresses of servers begin.
SCHEMES = ("postgresql://", "postgres://")
#: Names the lock under which tables are made: "fprv" in ASCII.
_LOCK = 0x66707276
#: Pause, in seconds, before a server that cannot be reached is tried again.
_PAUSE = 0.1
#: Shortest limits, in seconds, on an attempt to connect and on the answer to a statement.
_SHORTEST_CONNECT, _SHORTEST_ANSWER = 2, 2.0

#: How often, within the timeout, a thread looks for statements that the server does not answer.
_LOOKS = 4
#: Seconds by which an answer may be late, so that the server's own timeout comes first.
_LATE = 1.0
#: Seconds after which the server ends the transaction of a client that is frozen or cut off and
#: holds the lock. Far longer than a composition within a transaction.
_FROZEN = 300.0

#: Why a connection was ended by this thread.
_SILENT = "the server did not answer within the timeout"

#: Advice by the names of psycopg's errors, and for a server that gave no answer.
_HINTS = {
    "LockNotAvailable": "another process held it all the time; nothing was spent. Try again, or "
    "give open() a longer timeout",
    "InvalidSchemaName": "the schema that the address names must exist. Make it first",
    "InsufficientPrivilege": "to spend, a user needs SELECT, INSERT, UPDATE and DELETE on the "
    "tables fastpriv_...; to make a ledger, CREATE on the schema",
    "UndefinedTable": "the ledger is not whole. Restore it from an export (to_json) or a backup",
    "UntranslatableCharacter": "nothing was spent. Use a database with the encoding UTF8",
    "DiskFull": "nothing was spent. Make room on the server and try again",
    "ReadOnlySqlTransaction": "nothing was spent. Give the address of the server that is written",
}
_UNREACHABLE = "the server cannot be reached. Check the address, or try again"

#: Connections of a parent process: a child must not close them.
_OF_PARENT: list[Any] = []


def _driver() -> Any:
    try:
        import psycopg
    except ImportError:
        raise InvalidInput(
            "a ledger on PostgreSQL needs psycopg 3; install it with "
            "pip install 'fastpriv[postgres]'."
        ) from None
    return psycopg


class PostgresStore(Store):
    """A ledger on a server."""

    def __init__(
        self,
        address: str,
        genesis: Mapping[str, Any] | None,
        timeout: float,
    ) -> None:
        self._psycopg = _driver()
        self.address, self._timeout = address, timeout
        parts = urlsplit(address)
        super().__init__(f"{parts.hostname or 'local'}{parts.path}")  # without a password
        self._connection: Any = None
        self._close: Callable[[], object] | None = None
        self._watch: Any = None
        with self.explained:
            try:
                self._connect()
                with self.legible:
                    self._prepare(genesis)
                    with self.moment(write=False):
                        self._fresh()
            except BaseException:
                self.close()
                raise

    # Opening and closing.

    def _connect(self) -> None:
        """Connect; try again until the timeout, as a server may be starting."""
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                connection = self._psycopg.connect(
                    self.address,
                    autocommit=True,
                    connect_timeout=max(int(self._timeout), _SHORTEST_CONNECT),
                    application_name="fastpriv",
                    client_encoding="utf8",
                )
                break
            except self._psycopg.OperationalError as error:
                if time.monotonic() >= deadline or _is_refused(error):
                    raise
            time.sleep(_PAUSE)
        watch = _Watch(self._timeout)
        close = weakref.finalize(self, _leave, connection, watch)
        self._watch, self._close, self._connection = watch, close, connection
        try:
            self.execute(f"SET lock_timeout = {max(int(1000 * self._timeout), 1)}")
            self.execute(f"SET idle_in_transaction_session_timeout = {int(1000 * _FROZEN)}")
            self.execute("SET synchronous_commit = on")
            self.execute("SET client_min_messages = warning")
        except BaseException:
            self._disconnect()
            raise

    def _prepare(self, genesis: Mapping[str, Any] | None) -> None:
        """Make the tables of a new ledger, or check the version of an existing one."""
        if not self._exists():
            if genesis is None:
                raise LedgerError(f"there is no ledger in {self.name}. Give a budget to make one.")
            with self._transaction("BEGIN"):
                self.execute("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
                if not self._exists():  # still: another process may have made it
                    serial = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
                    self.make_tables(genesis, "BIGINT", serial, "BYTEA")
        versions = self.execute("SELECT version FROM {ledger}")
        if versions != [(VERSION,)]:
            raise LedgerError(
                f"the ledger in {self.name} must be of version {VERSION}; it is of version "
                f"{versions}, and nothing was changed in it. Use the fastpriv that wrote it."
            )

    def _exists(self) -> bool:
        # Not to_regclass, which does not see what others have made during this transaction.
        question = "SELECT 1 FROM pg_class WHERE relname = ? AND pg_table_is_visible(oid)"
        return bool(self.execute(question, ("fastpriv_ledger",)))

    def close(self) -> None:
        """Disconnect; what was acknowledged stays on the server."""
        with self.lock:
            self.closed = True
            self._disconnect()

    def _disconnect(self) -> None:
        close, self._close, self._connection = self._close, None, None
        if close is not None:
            close()

    def after_fork(self) -> None:
        """Give a child process its own lock and connection."""
        self.lock, self._state = threading.RLock(), None
        self._writing = self._within = False
        if self._close is not None:
            self._close.detach()  # type: ignore[attr-defined]
            _OF_PARENT.append(self._connection)
        self._close = self._connection = self._watch = None

    def ready(self) -> None:
        """Connect if the connection was lost; the lock is held."""
        if self.closed:
            raise LedgerError(f"the ledger {self.name} is closed; open it again.")
        if self._connection is not None and self._in_transaction() and not self._within:
            self._disconnect()
        if self._connection is None:
            self._connect()

    # Statements.

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        text = statement.replace("?", "%s")
        for name in TABLES:
            text = text.replace(f"{{{name}}}", f"fastpriv_{name}")
        connection, watch = self._connection, self._watch
        try:
            with watch.over(connection):
                cursor = connection.execute(text, tuple(values))
                return cursor.fetchall() if cursor.description is not None else []
        except self._psycopg.Error as error:
            if watch.ended:
                connection.close()
            raise self._lost(error, _SILENT if watch.ended else _first_line(error)) from error
        except BaseException:  # interrupted, with an answer on its way
            self._disconnect()
            raise

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        try:
            self._within = True
            self.execute(begin)
            yield
            self.execute("COMMIT")
        except BaseException:
            if self._connection is not None and not self._connection.closed:
                with self.explained:
                    self.execute("ROLLBACK")
            raise
        finally:
            self._within = False

    @contextmanager
    def moment(self, write: bool) -> Iterator[None]:
        """Let several statements see one state; if ``write``, nobody else writes meanwhile."""
        if self._in_transaction():  # within a moment
            yield
            return
        isolation = "" if write else " ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._transaction(f"BEGIN{isolation}"):
            if write:
                self.execute("SELECT 1 FROM {ledger} FOR UPDATE")
            yield

    def _in_transaction(self) -> bool:
        return bool(self._connection.info.transaction_status != 0)

    def is_unchanged(self) -> bool:
        """Whether the head is the one that was read."""
        known = self._state
        return known is not None and self.execute("SELECT head FROM {ledger}") == [(known.head,)]

    def _lost(self, error: BaseException, why: str) -> BaseException:
        """Forget a connection that was lost; return the error to raise."""
        if self._connection is not None and not self._connection.closed:
            return error  # such as a lock that was held
        self._disconnect()
        self._state = None if self._writing else self._state
        return LostConnection(
            f"the ledger {self.name}: the connection was lost ({why}); a spend in "
            "progress counts, or it does not. Spend again with the same key"
        )

    def explain(self, error: BaseException) -> LedgerError | None:
        """Return an error of psycopg with advice."""
        if not isinstance(error, self._psycopg.Error):
            return None
        unreachable = isinstance(error, self._psycopg.OperationalError) and error.sqlstate is None
        hint = _UNREACHABLE if unreachable else _HINTS.get(type(error).__name__)
        advice = "" if hint is None else f"; {hint}"
        return LedgerError(f"the ledger {self.name}: {_first_line(error)}{advice}.")


class _Watch:
    """A thread that ends a connection whose server does not answer, such as a frozen one.

    The server's own timeouts do not help then, and the statement would wait for ever.
    """

    def __init__(self, timeout: float) -> None:
        self.ended = False
        self._timeout = max(timeout, _SHORTEST_ANSWER) + _LATE
        self._lock, self._stopped = threading.Lock(), threading.Event()
        self._asked: tuple[Any, float] | None = None  # a connection, and until when it may take
        threading.Thread(target=self._look, name="fastpriv ledger", daemon=True).start()

    @contextmanager
    def over(self, connection: Any) -> Iterator[None]:
        """Watch over one statement."""
        self._asked = connection, time.monotonic() + self._timeout
        try:
            yield
        finally:
            with self._lock:
                self._asked = None

    def stop(self) -> None:
        """End the thread."""
        self._stopped.set()

    def _look(self) -> None:
        while not self._stopped.wait(self._timeout / _LOOKS):
            with self._lock:
                if self._asked is not None and time.monotonic() > self._asked[1]:
                    self.ended = True
                    wire = socket.socket(fileno=self._asked[0].fileno())
                    try:
                        wire.shutdown(socket.SHUT_RDWR)
                    except OSError:  # it is closed
                        pass
                    finally:
                        wire.detach()
                    return


def _leave(connection: Any, watch: _Watch) -> None:
    watch.stop()
    connection.close()


def _is_refused(error: BaseException) -> bool:
    """Whether the server answers, and refuses: another attempt would not help."""
    words = str(error)
    return any(word in words for word in ("authentication", "does not exist", "no pg_hba"))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
