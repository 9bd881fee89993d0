"""What a ledger keeps, and the protocol of the stores that keep it.

A ledger is a chain of entries. Each entry is written once, with the totals after it, and has a
digest of its text and of the digest before it. So the last digest, the head, identifies the whole
history: an entry that is changed, removed or moved breaks the chain.

A :class:`Store` keeps one chain in SQL tables. ``sqlite.py`` keeps it in a file or in memory,
``postgres.py`` on a server. Both write an entry in one transaction, and only if the head is the one
that the writer has seen. Everything else is here: reading, checking and writing the tables.

The file is read top to bottom: what a ledger holds (State, Entry), the chain, and the Store.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from fastpriv._core import validation as check
from fastpriv.accounting.ledger.amounts import SUM_DIGITS, ZERO, amount
from fastpriv.accounting.profile.relations import RELATIONS, earlier_relation
from fastpriv.errors import InvalidInput, LedgerError, described, short

#: Largest count of one spend, the largest integer of SQL.
MOST_COUNT = 2**63 - 1
#: What reading a text that somebody else wrote may raise.
UNREADABLE = (AttributeError, KeyError, RecursionError, TypeError, ValueError)
#: Version of the tables.
VERSION = 3
#: Kinds of parts that channels and declared levels are written as.
_FINITE = ("response", "laws", "shuffled")
#: Kinds of entries: a charge, another budget, and the relation of all spends of an old ledger.
SPEND, AMENDMENT, STATEMENT = "spend", "amendment", "relation"
_KINDS = (SPEND, AMENDMENT, STATEMENT)
#: Marks are sums of SHA-256 digests modulo this number.
_MARKS = 1 << 256
#: Entries that one statement reads, so that the answer of a server does not take long.
_AT_ONCE = 1 << 12
#: How often a question is asked again if the connection is lost.
_READS = 4
#: Longest key, in characters and in bytes of UTF-8: an index of PostgreSQL takes 2,704 bytes.
_LONGEST_KEY, _LONGEST_KEY_BYTES = 1 << 10, 2600
#: Longest text of the metadata of one entry.
_LONGEST_METADATA = 1 << 16

T = TypeVar("T")


# What a ledger holds.


@dataclass(frozen=True)
class State:
    """Totals after a number of entries.

    Attributes
    ----------
    entries, spends : int
        Number of entries, and of those among them that are charges.
    spent : mapping
        Exact total of each notion.
    prior : str or None
        Fingerprint of the prior under which all levels were measured, if that matters.
    parts : mapping
        How often each profile was spent, by its text, for budgets at (epsilon, delta).
    relation : str or None
        Which databases are neighbours, if an argument or a spend states it.
    mark : int
        Sum of the digests of all parts and their counts.
    recorded : bool
        Whether every spend was checked against the relation. Earlier versions did not check; see
        :attr:`neighbours`.
    budget : mapping
        The limits, as text.
    amended : int
        Number of the entry that set them; 0 for the first budget.
    head : str
        Digest of the last entry.
    """

    entries: int
    spends: int
    spent: Mapping[str, Decimal]
    prior: str | None
    parts: Mapping[str, int]
    relation: str | None
    mark: int
    recorded: bool
    budget: Mapping[str, Any]
    amended: int
    head: str

    @property
    def neighbours(self) -> str | None:
        """The relation for which the totals hold; None while all levels are declared."""
        finite = self.relation is not None and self.parts and all(map(_is_finite, self.parts))
        if self.recorded or not self.spends or finite:
            return self.relation
        return earlier_relation(self.relation)


@dataclass(frozen=True)
class Entry:
    """One acknowledged entry: a spend of ``count`` steps and what it added to each total.

    An amendment has the new ``budget`` instead, and nobody is charged. ``content`` is a digest of
    what was asked for, to recognise the same request under the same ``key``.
    """

    number: int
    time: str
    label: str | None
    count: int
    charged: Mapping[str, Decimal]
    part: str | None = None
    kind: str = SPEND
    key: str | None = None
    actor: str | None = None
    metadata: Any = None
    reason: str | None = None
    content: str | None = None
    budget: Mapping[str, Any] | None = None
    identity: str | None = None
    digest: str | None = None


def _is_finite(part: str) -> bool:
    """Whether a part holds channels and declared levels only, and no noise."""
    try:
        return all(kind in _FINITE for (kind, *_), _ in json.loads(part))
    except UNREADABLE:
        return False


def amounts_of(given: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return exact amounts that were written."""
    return {notion: amount(value, "an amount", SUM_DIGITS) for notion, value in given.items()}


def checked_count(count: Any) -> int:
    """Return how many steps a spend is for."""
    number = check.integer(count, "count", 1)
    if number > MOST_COUNT:
        raise InvalidInput(f"count must be at most 2^63 - 1; got {short(number)}.")
    return number


def checked_label(label: Any, what: str = "label") -> str | None:
    """Return the name of a spend, its claim or its key: text that can be written, or none."""
    if label is None:
        return None
    try:
        if not isinstance(label, str):
            raise TypeError
        label.encode()
    except (TypeError, UnicodeEncodeError):
        raise InvalidInput(
            f"{what} must be a string of Unicode text; got {described(label)}."
        ) from None
    if "\0" in label:
        raise InvalidInput(f"{what} must not contain the character NUL; got {described(label)}.")
    return label


def checked_key(key: Any) -> str | None:
    """Return the idempotency key of a new spend: a short text that is not empty, or none."""
    text = checked_label(key, "key")
    if text is None:
        return None
    size = len(text.encode())
    if not 0 < len(text) <= _LONGEST_KEY or size > _LONGEST_KEY_BYTES:
        raise InvalidInput(
            f"key must have 1 to {_LONGEST_KEY} characters and at most {_LONGEST_KEY_BYTES} bytes; "
            f"got {len(text)} characters, {size} bytes. Use a UUID, or the name of the job and its "
            "run."
        )
    return text


def checked_metadata(metadata: Any) -> Any:
    """Return metadata as JSON reads them again; None if there are none."""
    if metadata is None:
        return None
    try:
        text = _written(metadata)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(
            "metadata must be JSON: a dict of texts, finite numbers, lists and dicts; got "
            f"{described(metadata)}."
        ) from None
    if len(text) > _LONGEST_METADATA or "\\u0000" in text:
        raise InvalidInput(
            f"metadata must be JSON of at most {_LONGEST_METADATA:,} characters without NUL; got "
            f"{len(text):,} characters. Keep the rest elsewhere, and its name here."
        )
    return json.loads(text)


# The chain.


def _written(value: Any) -> str:
    """Write JSON in one way: sorted, without spaces, decimals as text."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_decimal
    )


def _decimal(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError


def digest_of(*values: Any) -> str:
    """Return the SHA-256 digest of some values as JSON."""
    return hashlib.sha256(_written(values).encode()).hexdigest()


def part_digest(part: str) -> str:
    """Return the digest by which entries name a part."""
    return hashlib.sha256(part.encode()).hexdigest()


def _mark(digest: str, count: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{count} {digest}".encode()).digest(), "big")


def beginning(
    budget: Mapping[str, Any], relation: str | None, about: Mapping[str, Any], recorded: bool = True
) -> dict[str, Any]:
    """Return what the chain of a new ledger begins with."""
    return {
        "budget": dict(budget), "relation": relation, "about": dict(about), "recorded": recorded,
    }  # fmt: skip


def first_state(genesis: Mapping[str, Any]) -> State:
    """Return the totals of no entry."""
    budget = genesis["budget"]
    relation = genesis["relation"]
    if relation is not None:
        check.word(relation, "relation", RELATIONS)
    return State(
        0, 0, dict.fromkeys(budget, ZERO), None, {}, relation, 0, genesis["recorded"] is True,
        budget, 0, digest_of("fastpriv ledger", genesis),
    )  # fmt: skip


def counted(before: State, part: str | None, count: int) -> tuple[Mapping[str, int], int]:
    """Return how often each part was spent after one more entry, and the mark of all parts."""
    if part is None:
        return before.parts, before.mark
    known, digest = before.parts.get(part, 0), part_digest(part)
    mark = before.mark + _mark(digest, known + count) - (_mark(digest, known) if known else 0)
    return {**before.parts, part: known + count}, mark % _MARKS


def linked(entry: Entry, before: State, after: State) -> tuple[Entry, str, State]:
    """Return an entry with its digest, its text, and the totals with the new head."""
    fields: dict[str, Any] = {
        "number": entry.number,
        "time": entry.time,
        "kind": entry.kind,
        "count": entry.count,
        "charged": entry.charged,
        "spent": after.spent,
        "spends": after.spends,
        "mark": f"{after.mark:x}",
        "recorded": after.recorded,
        "amended": after.amended,
        "label": entry.label,
        "actor": entry.actor,
        "metadata": entry.metadata,
        "reason": entry.reason,
        "content": entry.content,
        "budget": entry.budget,
        "identity": entry.identity,
        "relation": after.relation,
        "prior": after.prior,
    }
    text = _written({name: value for name, value in fields.items() if value is not None})
    digest = _link(before.head, text, entry.key, entry.part and part_digest(entry.part))
    return replace(entry, digest=digest), text, replace(after, head=digest)


def _link(head: str, text: str, key: str | None, part: str | None) -> str:
    return digest_of(head, text, key, part)


def entry_of(text: str, key: Any, part: str | None, digest: str | None) -> Entry:
    """Return an entry that was written."""
    if part is not None:
        from fastpriv.accounting.ledger.profiles import profile_of  # only when needed

        profile_of(part)
    given = json.loads(text)
    if given["kind"] not in _KINDS:
        raise InvalidInput(f"an entry is of the kind {described(given['kind'])}.")
    count = given["count"]
    return Entry(
        check.integer(given["number"], "number", 1),
        datetime.fromisoformat(given["time"]).isoformat(),
        checked_label(given.get("label")),
        checked_count(count) if given["kind"] == SPEND else check.integer(count, "count", 0),
        amounts_of(given["charged"]),
        part,
        given["kind"],
        checked_label(key, "key"),
        checked_label(given.get("actor"), "actor"),
        checked_metadata(given.get("metadata")),
        checked_label(given.get("reason"), "reason"),
        checked_label(given.get("content"), "content"),
        given.get("budget"),
        checked_label(given.get("identity"), "identity"),
        digest,
    )


def _after(before: State, text: str, part: str | None, digest: str) -> State:
    """Return the totals after an entry whose digest was checked."""
    given = json.loads(text)
    parts, mark = counted(before, part, given["count"])
    if f"{mark:x}" != given["mark"] or given["number"] != before.entries + 1:
        raise InvalidInput("an entry does not follow the one before it.")
    return State(
        given["number"],
        given["spends"],
        amounts_of(given["spent"]),
        given.get("prior"),
        parts,
        given.get("relation"),
        mark,
        given["recorded"],
        given.get("budget") or before.budget,
        given["amended"],
        digest,
    )


class LostConnection(LedgerError):
    """The connection was lost while an entry was written: it is in the ledger, or it is not."""

    #: The entries that were being written.
    entries: Sequence[Entry] = ()


#: Entries, the totals after each of them given the totals before, and bytes of a composition.
Written = tuple[Iterable[Entry], Callable[[State, Entry], State], bytes | None]


# The store.


class Explained:
    """A context in which errors of a database become :class:`LedgerError`, with advice."""

    def __init__(self, explain: Callable[[BaseException], LedgerError | None]) -> None:
        self._explain = explain

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and (explained := self._explain(error)) is not None:
            raise explained from error


class Store(ABC):
    """The tables of one ledger. All methods may be called from any thread.

    A subclass opens connections and runs statements. Statements have ``?`` for values and
    ``{entry}`` for the table of this name.
    """

    #: Where a new connection finds the ledger; None for one in memory.
    path: Path | None = None
    #: What :meth:`Ledger.open` is given to open the ledger again; None for one in memory.
    address: str | None = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.explained, self.legible = Explained(self._explain), Explained(self._explain_damage)
        self.lock = threading.RLock()
        self.genesis: dict[str, Any] = {}
        self.closed = False
        self._writing = False
        #: Whether a moment is open; a transaction outside of one was left by an interrupt.
        self._within = False
        self._state: State | None = None
        with _FORKING:
            _LIVE.add(self)

    # Of a subclass.

    @abstractmethod
    def ready(self) -> None:
        """Connect if needed; the lock is held. Raise LedgerError if the store cannot be used."""

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""

    @abstractmethod
    def moment(self, write: bool) -> AbstractContextManager[None]:
        """Let several statements see one state; if ``write``, nobody else writes meanwhile.

        An exception undoes all of them. After the context the statements are durable.
        """

    @abstractmethod
    def is_unchanged(self) -> bool:
        """Whether nobody has written since the state was read; False if that is not known."""

    @abstractmethod
    def explain(self, error: BaseException) -> LedgerError | None:
        """Return the error of a database as a LedgerError with advice, None for other errors."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect; what was acknowledged stays."""

    @abstractmethod
    def after_fork(self) -> None:
        """Give a child process its own lock and connection."""

    def _explain(self, error: BaseException) -> LedgerError | None:
        return None if isinstance(error, LedgerError) else self.explain(error)

    def _explain_damage(self, error: BaseException) -> LedgerError | None:
        if isinstance(error, UNREADABLE):
            return LedgerError(
                f"the ledger {self.name} is damaged: {str(error).rstrip('.'):.120}; nothing was "
                "spent. Restore it from an export (to_json) or a copy."
            )
        return self._explain(error)

    # Reading.

    def _read(self, ask: Callable[[], T]) -> T:
        """Return what is asked for, over a new connection if one is lost.

        Not within :meth:`write`: a new connection would be outside its transaction.
        """
        with self.lock, self.explained:
            if self._writing:
                return ask()
            for _ in range(_READS):
                self.ready()
                try:
                    return ask()
                except LostConnection:
                    continue
            self.ready()
            return ask()

    def state(self) -> State:
        """Return the totals; only entries are read that were not read before."""

        def ask() -> State:
            if self._state is not None and self.is_unchanged():
                return self._state
            with self.moment(write=False):
                return self._fresh()

        return self._read(ask)

    def _fresh(self) -> State:
        """Return the totals at this moment: checked from the first entry, or from the last seen."""
        with self.legible:
            ((genesis, entries, head),) = self._only("SELECT genesis, entries, head FROM {ledger}")
            state = self._state
            if state is None or entries < state.entries:
                self.genesis = json.loads(genesis)
                state = self._checked(first_state(self.genesis))
            elif entries > state.entries:
                state = self._followed(state)
            if (state.entries, state.head) != (entries, head):
                raise InvalidInput(
                    f"its last entry must be number {described(entries)} with the recorded digest; "
                    f"the chain ends with number {state.entries}."
                )
            self._state = state
        return state

    def _followed(self, state: State) -> State:
        """Return the totals after entries that somebody else has added."""
        columns = "body, spend_key, e.digest, p.text"
        for text, key, digest, part in self._rows(columns, state.entries + 1):
            if digest != _link(state.head, text, key, part and part_digest(part)):
                raise InvalidInput(f"entry {state.entries + 1} is not the one that was written.")
            state = _after(state, text, part, digest)
        return state

    def _checked(self, state: State) -> State:
        """Check the whole chain and the parts; return the totals after the last entry.

        A digest for each entry, about 3 microseconds, and the text of the last one alone.
        """
        parts: dict[str, int] = {}
        names: dict[int, str] = {}
        mark = 0
        for number, name, text, count in self.execute("SELECT id, digest, text, count FROM {part}"):
            parts[text] = check.integer(int(count), "the count of a part", 1)
            if part_digest(text) != name:
                raise InvalidInput("a part is not the one that was written.")
            names[number] = name
            mark += _mark(name, parts[text])
        last, head = None, state.head
        columns = "body, spend_key, e.part, e.digest"
        for number, (text, key, part, digest) in enumerate(self._rows(columns), 1):
            head = _link(head, text, key, None if part is None else names.get(part, ""))
            if head != digest:
                raise InvalidInput(f"entry {number} is not the one that was written.")
            last = text
        if last is None:
            if parts:
                raise InvalidInput("it has parts, but no entries.")
            return state
        given = json.loads(last)
        if given["amended"]:
            (text,) = self._only("SELECT body FROM {entry} WHERE number = ?", (given["amended"],))[
                0
            ]
            state = replace(state, budget=json.loads(text)["budget"])
        if f"{mark % _MARKS:x}" != given["mark"]:
            raise InvalidInput("its parts are not those that the last spend left in it.")
        # The last part is counted already.
        checked = replace(state, entries=given["number"] - 1, mark=mark % _MARKS)
        after = _after(checked, last, None, head)
        if after.spent.keys() != after.budget.keys():
            raise InvalidInput(
                f"its totals are of {sorted(after.spent)}, but its budget of {list(after.budget)}."
            )
        return replace(after, parts=parts)

    def _rows(self, columns: str, first: int = 1) -> Iterator[tuple[Any, ...]]:
        """Return columns of the entries e with their parts p, from a number on."""
        while True:
            rows = self.execute(
                f"SELECT number, {columns} FROM {{entry}} e LEFT JOIN {{part}} p ON e.part = p.id "
                "WHERE number >= ? ORDER BY number LIMIT ?",
                (first, _AT_ONCE),
            )
            for row in rows:
                yield row[1:]
            if len(rows) < _AT_ONCE:
                return
            first = rows[-1][0] + 1

    def _only(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the one row of a table."""
        rows = self.execute(statement, values)
        if len(rows) != 1:
            raise InvalidInput(f"it has {len(rows)} rows of totals, not one.")
        return rows

    def exported(self) -> tuple[State, list[tuple[str, str | None, str | None, str]]]:
        """Check the chain; return the totals, and text, key, part and digest of every entry."""

        def ask() -> tuple[State, list[tuple[str, str | None, str | None, str]]]:
            with self.moment(write=False):
                self._state = None
                with self.legible:
                    self.check_medium()
                state, rows = self._fresh(), self._rows("body, spend_key, p.text, e.digest")
                return state, [(text, key, part, digest) for text, key, part, digest in rows]

        return self._read(ask)

    def check_medium(self) -> None:
        """Check the bytes below the tables, within a moment; a server checks its own."""
        return

    def snapshot(self, last: int | None = None) -> tuple[State, list[Entry]]:
        """Return the totals and all entries or the last few, oldest first, of one state."""

        def ask() -> tuple[State, list[Entry]]:
            with self.moment(write=False):
                state = self._fresh()
                first = 1 if last is None else max(state.entries - last, 0) + 1
                rows = self._rows("body, spend_key, p.text, e.digest", first)
                with self.legible:
                    return state, [entry_of(*row) for row in rows]

        return self._read(ask)

    def find(self, key: str) -> Entry | None:
        """Return the entry with an idempotency key."""
        rows = self._read(
            lambda: self.execute(
                "SELECT body, spend_key, p.text, e.digest FROM {entry} e LEFT JOIN {part} p "
                "ON e.part = p.id WHERE spend_key = ?",
                (key,),
            )
        )
        with self.legible:
            return entry_of(*rows[0]) if rows else None

    def find_written(self, number: int, digest: str) -> bool:
        """Whether an entry is in the ledger, after the connection was lost while it was written.

        Asked as a writer: the server may still be at work on the transaction that was lost.
        """

        def ask() -> bool:
            with self.moment(write=True):
                question = "SELECT digest FROM {entry} WHERE number = ?"
                return self.execute(question, (number,)) == [(digest,)]

        return self._read(ask)

    # Writing.

    def write(
        self,
        make: Callable[[State], Written],
        expected: State | None = None,
        claim: str | None = None,
    ) -> list[Entry] | None:
        """Add entries in one transaction; return them with their digests.

        ``make`` returns, given the current totals, the entries, a function to the totals after
        each, and the composition to keep. If the ledger has moved on from ``expected``, nothing is
        written and the result is None. Any exception, also from ``make``, leaves the ledger as it
        was. After the return the entries are durable. With a claim, the last entry is pending until
        :meth:`publish`.
        """
        with self.lock, self.explained:
            self.ready()
            if self._writing:
                raise LedgerError("a signal handler must not spend while its thread is spending.")
            result: list[Entry] = []
            try:
                self._writing = True
                with self.moment(write=True):
                    state = self._fresh()
                    if expected is not None and state.head != expected.head:
                        return None
                    entries, follow, composition = make(state)
                    self._state = None  # until it is certain what was written
                    for entry in entries:
                        done, text, state = linked(entry, state, follow(state, entry))
                        self.add(done, text, state)
                        result.append(done)
                    if result:
                        self.set_head(state)
                    if claim is not None and result:
                        self.add_claim(state.entries, claim)
                    if composition is not None:
                        self.execute("DELETE FROM {composition}")
                        self.execute("INSERT INTO {composition} (data) VALUES (?)", (composition,))
            except LostConnection as error:
                error.entries = result
                raise
            finally:
                self._writing = False
            self._state = state
            return result

    def add(self, entry: Entry, text: str, after: State) -> None:
        """Add an entry and count its part, within a moment."""
        part: int | None = None
        if entry.part is not None:
            name, count = part_digest(entry.part), str(after.parts[entry.part])
            self.execute(
                "INSERT INTO {part} (digest, text, count) VALUES (?, ?, ?) "
                "ON CONFLICT (digest) DO UPDATE SET count = excluded.count",
                (name, entry.part, count),
            )
            ((part,),) = self.execute("SELECT id FROM {part} WHERE digest = ?", (name,))
        self.execute(
            "INSERT INTO {entry} (number, body, spend_key, part, digest) VALUES (?, ?, ?, ?, ?)",
            (entry.number, text, entry.key, part, entry.digest),
        )

    def add_claim(self, number: int, claim: str) -> None:
        """Keep the claim of an entry until it is published, within a moment."""
        self.execute(
            "INSERT INTO {pending} (number, claim, digest) VALUES (?, ?, ?)",
            (number, claim, digest_of(number, claim)),
        )

    def pending(self) -> dict[int, str]:
        """Return the claims of charges whose releases have not been published, by number."""
        rows = self._read(lambda: self.execute("SELECT number, claim, digest FROM {pending}"))
        with self.legible:
            if any(digest_of(number, claim) != name for number, claim, name in rows):
                raise InvalidInput("a claim is not the one that was written.")
        return {number: claim for number, claim, _ in rows}

    def publish(self, number: int) -> bool:
        """Close a pending charge; return False if it was closed before.

        If this returns True, the closing is durable, and no other call returns True for this
        charge.
        """
        with self.lock, self.explained:
            self.ready()
            with self.moment(write=True):
                where = "{pending} WHERE number = ?"
                if not self.execute(f"SELECT 1 FROM {where}", (number,)):
                    return False
                self.execute(f"DELETE FROM {where}", (number,))
            return True

    def composition(self) -> bytes | None:
        """Return the composed profiles that are kept; ledgers of few spends keep none."""
        rows = self._read(lambda: self.execute("SELECT data FROM {composition}"))
        return bytes(rows[0][0]) if rows else None

    def parts_at(self, number: int, mark: int) -> Mapping[str, int] | None:
        """Return how often each part was spent after an entry with a mark; None without it."""

        def ask() -> Mapping[str, int] | None:
            with self.moment(write=False), self.legible:
                state = self._fresh()
                if state.mark == mark:
                    return state.parts
                rows = self._rows("body, p.text", number)
                if json.loads(next(rows, ("{}",))[0]).get("mark") != f"{mark:x}":
                    return None
                parts = Counter(state.parts)
                for body, part in rows:
                    if part is not None:
                        parts[part] -= json.loads(body)["count"]
                return {part: count for part, count in parts.items() if count}

        return self._read(ask)

    # Making the tables.

    def make_tables(
        self, genesis: Mapping[str, Any], number: str, serial: str, binary: str
    ) -> None:
        """Make the tables of a new ledger, within a moment, with the types of the database."""
        for statement in (
            f"CREATE TABLE {{ledger}} (version {number} NOT NULL, genesis TEXT NOT NULL, "
            f"entries {number} NOT NULL, head TEXT NOT NULL)",
            f"CREATE TABLE {{part}} (id {serial}, digest TEXT UNIQUE NOT NULL, text TEXT NOT NULL, "
            "count TEXT NOT NULL)",
            f"CREATE TABLE {{entry}} (number {number} PRIMARY KEY, body TEXT NOT NULL, "
            f"spend_key TEXT UNIQUE, part {number} REFERENCES {{part}} (id), digest TEXT NOT NULL)",
            f"CREATE TABLE {{pending}} (number {number} PRIMARY KEY, claim TEXT NOT NULL, "
            "digest TEXT NOT NULL)",
            f"CREATE TABLE {{composition}} (data {binary} NOT NULL)",
        ):
            self.execute(statement)
        self.execute(
            "INSERT INTO {ledger} (version, genesis, entries, head) VALUES (?, ?, 0, ?)",
            (VERSION, _written(genesis), first_state(genesis).head),
        )

    def set_head(self, state: State) -> None:
        """Record the last entry, within a moment."""
        self.execute("UPDATE {ledger} SET entries = ?, head = ?", (state.entries, state.head))


#: Names of the tables.
TABLES = ("ledger", "part", "entry", "pending", "composition")


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
