"""A privacy budget that is spent once: by threads, by processes, by machines, over restarts."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fastpriv._core import validation as check
from fastpriv._core.observing import emit
from fastpriv._core.tables import table as connected
from fastpriv._text import html, numbers
from fastpriv._text.table import table
from fastpriv.accounting.laws import Law
from fastpriv.accounting.ledger.amounts import down, minus, shortest, up
from fastpriv.accounting.ledger.budget import (
    Budget,
    NotBrief,
    Offer,
    declared,
    refuse_prior,
)
from fastpriv.accounting.ledger.exports import FORMAT, VERSION, Chain, imported
from fastpriv.accounting.ledger.postgres import SCHEMES, PostgresStore
from fastpriv.accounting.ledger.sqlite import SqliteStore
from fastpriv.accounting.ledger.store import (
    AMENDMENT,
    MOST_COUNT,
    SPEND,
    STATEMENT,
    Entry,
    LostConnection,
    State,
    Store,
    Written,
    beginning,
    checked_count,
    checked_key,
    checked_label,
    checked_metadata,
    digest_of,
    entry_of,
)
from fastpriv.accounting.profile.relations import REPLACED, optional_relation
from fastpriv.errors import BudgetExceeded, InvalidInput, LedgerError, described

if TYPE_CHECKING:
    import os
    from typing import TypeAlias

    from numpy.typing import ArrayLike

    from fastpriv.accounting.profile.profile import PrivacyProfile
    from fastpriv.channels import AbstractChannel
    from fastpriv.priors import Distribution

    #: A step that can be charged; objects of other libraries have no common type.
    Mechanism: TypeAlias = AbstractChannel | ArrayLike | Mapping[str, Any] | PrivacyProfile | Any

__all__ = ["Amendment", "Ledger", "Receipt"]

#: Seconds to wait for others who write; a transaction takes milliseconds.
_WAIT = 5.0
#: Spends that others may make while one is composed, before it is composed as a writer.
_ATTEMPTS = 24
#: Seconds of processor time after which composing is not brief: others do not wait for it.
_BRIEF = 0.1
#: How addresses begin, also of services that keep no ledgers.
_ADDRESS = re.compile(r"[A-Za-z][\w.+-]+://")
#: Longest pause, in seconds, after another one was faster.
_PAUSE = 0.004


@dataclass(frozen=True)
class Receipt:
    """One spend that a ledger has acknowledged.

    Attributes
    ----------
    number : int
        Its place in the ledger, from 1. Entries are ordered by number, not by time.
    time : datetime
        Time of the spend in UTC, by the clock of the process that made it, as it was seen: a clock
        that is set back gives an earlier time.
    label : str or None
        The name it was given.
    count : int
        How many steps it is for.
    charged : dict
        Increase of each notion's total, in nats, rounded up.
    key, actor : str or None
        The idempotency key, and who spent.
    metadata : object
        The metadata, as JSON reads them.
    digest : str or None
        Digest of the entry and of all entries before it; None for a dry run.

    Examples
    --------
    >>> import fastpriv as fp
    >>> receipt = fp.accounting.Ledger({"dp": 1.0}).spend({"dp": 0.1}, count=3, label="weekly")
    >>> receipt.number, receipt.label, receipt.count, receipt.charged
    (1, 'weekly', 3, {'dp': 0.3})
    """

    number: int
    time: datetime
    label: str | None
    count: int
    charged: Mapping[str, float]
    key: str | None = field(default=None, compare=False)
    actor: str | None = field(default=None, compare=False)
    metadata: Any = field(default=None, compare=False)
    digest: str | None = field(default=None, compare=False)

    def to_json(self) -> str:
        """Return all attributes as JSON; the time in ISO 8601.

        Examples
        --------
        >>> import json
        >>> import fastpriv as fp
        >>> receipt = fp.accounting.Ledger({"dp": 1.0}).spend({"dp": 0.5}, key="job-7")
        >>> given = json.loads(receipt.to_json())
        >>> given["number"], given["key"], given["charged"]
        (1, 'job-7', {'dp': 0.5})
        """
        fields = {**vars(self), "time": self.time.isoformat(), "charged": dict(self.charged)}
        return json.dumps(fields)


@dataclass(frozen=True)
class Amendment:
    """Another budget of a ledger: who set it, why and when.

    Attributes
    ----------
    number : int
        Its place among the entries of the ledger.
    time : datetime
        When, in UTC, by the clock of the process that made it.
    actor, reason : str
        Who, and why.
    budget : dict
        The limits from then on.
    digest : str
        Digest of this entry and of all entries before it.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ledger = fp.accounting.Ledger({"dp": 1.0})
    >>> change = ledger.amend({"dp": 2.0}, actor="board", reason="second wave")
    >>> change.number, change.actor, change.reason, change.budget
    (1, 'board', 'second wave', {'dp': 2.0})
    """

    number: int
    time: datetime
    actor: str
    reason: str
    budget: Mapping[str, Any]
    digest: str


def _receipt(entry: Entry) -> Receipt:
    charged = {notion: up(value) for notion, value in entry.charged.items()}
    when = datetime.fromisoformat(entry.time)
    known = entry.key, entry.actor, entry.metadata, entry.digest
    return Receipt(entry.number, when, entry.label, entry.count, charged, *known)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat()


def _entry(before: State, kind: str, **fields: Any) -> Entry:
    """Return the next entry."""
    identity = uuid.uuid4().hex
    known = {"label": None, **fields}
    return Entry(before.entries + 1, _now(), kind=kind, identity=identity, **known)


@runtime_checkable
class Spends(Protocol):
    """An object that reports which level of each notion it spends."""

    def spending(self) -> Mapping[str, float]:
        """Return a level for each notion that is known."""


class Ledger:
    """A privacy budget, and the spends that have been charged to it.

    Parameters
    ----------
    budget : mapping
        Total level allowed for each notion, in nats: ``{"dp": 3.0}``. Notions are the keys of
        ``fastpriv.accounting.LAWS``; a spend is charged in all that have a budget. For
        "approximate-dp" also a pair: ``{"approximate-dp": (3.0, 1e-6)}`` is 3 at delta 10^-6.
        ``(3.0, 1e-6, "adaptive")`` holds also if *levels* are chosen after earlier outputs, by the
        rule "zcdp" of :class:`PrivacyFilter`; each step must be zCDP.
    relation : {"add-or-remove", "replace-one", "replace-special"}, optional
        Which databases are neighbours. By default the relation of the first channel or profile
        that is spent: "replace-one" for channels and releases of tables.

    Notes
    -----
    A spend that does not fit raises :class:`~fastpriv.errors.BudgetExceeded`, and nothing is spent.
    Levels are added as exact decimals. A float stands for the decimal that it prints as, so that
    ten spends of 0.1 are 1. ``spent`` is rounded up to floats and ``remaining`` down.

    ``laws`` gives the composition rule of each notion and, as its ``source``, the theorem:

    - DP levels, leakage capacities ("strong-dp", "pml-all-priors"), individual capacities and
      maximal leakage add, even if a mechanism is chosen after seeing earlier outputs.
    - Mutual information adds for steps that are independent given the database, all under one
      prior.
    - The identifiability level is the level of the first step plus the DP levels of later ones.
    - Pointwise leakage, information privacy and divergence are the level of the first step plus
      later leakage capacities, because later outputs meet the posterior and not the prior.
    - An (epsilon, delta) budget composes the privacy profiles of all steps. ``spent`` is their
      epsilon at its delta, far below the sum of levels. One more step may add less to it than its
      own epsilon.

    A ledger has one relation and refuses what was made for another one, such as a channel (one
    record is replaced) after ``PrivacyProfile.gaussian(1.0)`` (one record is added or removed). A
    declared level, ``{"dp": 0.1}``, must hold for the relation of the ledger.

    Many threads may use a ledger. A ledger in memory belongs to its process; :meth:`open` shares a
    budget between processes or machines and keeps it over restarts. A spend costs one transaction:
    microseconds in memory, a disk write in a file. Levels of a channel are computed at its first
    spend and remembered.

    With an (epsilon, delta) budget a spend takes about 20 ms. ``spent`` is a proved upper bound.
    The guide "Run it as a service" describes stores, waiting times and accuracy.

    Entries are chained by digests, from the first to the last; see :meth:`verify`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ledger = fp.accounting.Ledger({"dp": 1.0})
    >>> for _ in range(9):
    ...     receipt = ledger.spend(fp.HammingChannel(100, 2, 0.1), label="survey")
    >>> ledger.spend({"dp": 0.1}, label="declared").number
    10
    >>> ledger.spent, ledger.remaining
    ({'dp': 1.0}, {'dp': 0.0})
    >>> ledger.spend({"dp": 0.01})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fastpriv.errors.BudgetExceeded: dp: the release asks for 0.01 but 0.0 of the budget 1.0 ...
    """

    def __init__(self, budget: Mapping[str, Any], *, relation: str | None = None) -> None:
        stated = optional_relation(relation)
        genesis = beginning(Budget(budget).stored(), stated, {})
        self._attach(SqliteStore(None, genesis, 0.0), stated)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        budget: Mapping[str, Any] | None = None,
        timeout: float = _WAIT,
        *,
        relation: str | None = None,
    ) -> Ledger:
        """Open the ledger in a file or on a PostgreSQL server; make it if a budget is given.

        Any number of processes may open it and spend. Each spend is one transaction that is durable
        before it is acknowledged. A process that is killed loses no acknowledged spend; the spend
        in progress counts, or it does not. The whole chain of entries is checked at opening.

        Parameters
        ----------
        path : path or address
            The file, in a folder that can be written; use a local disk, or a network file system
            whose locks work. Or an address ``"postgresql://user@host/database"`` (needs
            ``fastpriv[postgres]``); one schema holds one ledger, and ``?options=-csearch_path%3Dx``
            chooses the schema x.
        budget : mapping, optional
            As for :class:`Ledger`. Must agree with the budget of an existing ledger.
        timeout : float
            Seconds to wait for others who write, and for a server.
        relation : {"add-or-remove", "replace-one", "replace-special"}, optional
            As for :class:`Ledger`. Must agree with the relation of an existing ledger. In a ledger
            of an earlier version, which did not check relations, it states the relation of all
            spends.

        Raises
        ------
        LedgerError
            If the file or the server cannot be used, or its content is damaged or no ledger.
        InvalidInput
            If the ledger has another budget.

        Examples
        --------
        >>> import os, tempfile, fastpriv as fp
        >>> path = os.path.join(tempfile.mkdtemp(), "study.ledger")
        >>> with fp.accounting.Ledger.open(path, {"dp": 2.0}) as ledger:
        ...     receipt = ledger.spend({"dp": 0.5}, count=3, label="weekly")
        >>> with fp.accounting.Ledger.open(path) as ledger:
        ...     ledger
        Ledger(dp: 1.5 of 2.0, 1 spend)
        """
        wanted = None if budget is None else Budget(budget).stored()
        stated = optional_relation(relation)
        store = opened(path, None if wanted is None else beginning(wanted, stated, {}), timeout)
        self = cls.__new__(cls)
        try:
            current = dict(store.state().budget)
            if wanted is not None and wanted != current:
                raise InvalidInput(
                    f"the ledger has the budget {described(current)}, not {described(wanted)}; "
                    "open it without a budget, or with its own."
                )
            self._attach(store, stated)
        except BaseException:
            store.close()
            raise
        return self

    @classmethod
    def of_store(cls, store: Store) -> Ledger:
        """Return the ledger that a store keeps."""
        self = cls.__new__(cls)
        self._attach(store, None)
        return self

    def _attach(self, store: Store, relation: str | None) -> None:
        with store.legible:
            self._store = store
            self._budget = Budget(store.state().budget, store)
        self._floats: tuple[State, dict[str, float], dict[str, float]] | None = None
        if relation is not None:
            self._state_relation(relation)

    def _rules(self, state: State) -> Budget:
        """Return the budget of a state, which an amendment may have changed."""
        if state.budget != self._budget.stored():
            self._budget = self._budget.amended(state.budget)
        return self._budget

    def _state_relation(self, relation: str) -> None:
        """Record the relation of all spends, unless another one was stated."""

        def make(before: State) -> Written:
            if before.relation not in (None, relation):
                raise InvalidInput(
                    f"relation must be {before.relation!r}, that of the ledger; got {relation!r}. "
                    "Use a ledger for each relation."
                )
            entry = _entry(before, STATEMENT, count=0, charged={})
            entries = before.entries + 1
            after = replace(before, entries=entries, relation=relation, recorded=True)
            return [entry], lambda state, each: after, None

        before = self._store.state()
        if (before.relation, before.recorded) != (relation, True):
            self._store.write(make)

    # Spending.

    def spend(
        self,
        mechanism: Mechanism,
        prior: Distribution | ArrayLike | None = None,
        count: int = 1,
        label: str | None = None,
        *,
        key: str | None = None,
        actor: str | None = None,
        metadata: Any = None,
        dry_run: bool = False,
        claim: str | None = None,
    ) -> Receipt:
        """Charge a mechanism to the budget, or raise before anything is spent.

        Parameters
        ----------
        mechanism : channel, 2-D array, release, PrivacyProfile, event, measurement or mapping
            The mechanism; its levels are computed, rounded up, for the probabilities that
            ``sample`` draws with. A ``Release``, its report or a ``GeometricCount`` reports
            itself what it spends. A ``DpEvent`` of dp-accounting and a measurement of OpenDP (at
            distance 1) are charged their profiles. Declared levels, such as ``{"dp": 0.1}``, are
            floats, ints, Decimals or decimal strings and must hold for the ledger's relation.
        prior : Distribution or 1-D array, optional
            Distribution of the databases, for notions that depend on it.
        count : int
            How often the mechanism is run.
        label : str, optional
            A name for the history.
        key : str, optional
            An idempotency key. If the ledger has a spend with this key and the same arguments, its
            receipt is returned and nothing is charged; with other arguments it is refused.
        actor : str, optional
            Who spends.
        metadata : JSON, optional
            Anything to be kept with the spend: texts, numbers, lists and dicts.
        dry_run : bool
            Only return the receipt that the spend would have, or raise.
        claim : str, optional
            Identifies one release that is published later, or never. It stays in the ledger until
            :meth:`publish` and is in no export. The spend counts in full all the same.

        Returns
        -------
        Receipt
            The spend counts from now on, for every user of the ledger.

        Raises
        ------
        BudgetExceeded
            Names the notion, the level asked for and the level that remains.

        Examples
        --------
        >>> import fastpriv as fp
        >>> ledger = fp.accounting.Ledger({"dp": 2.0, "identifiability": 3.0})
        >>> prior = fp.Product.iid([0.8, 0.2], 3)  # eps_X = ln 4
        >>> first = ledger.spend(fp.HammingChannel(3, 2, 0.5), prior)
        >>> later = ledger.spend(fp.HammingChannel(3, 2, 0.5), prior, key="job-7")
        >>> round(first.charged["identifiability"], 6), later.charged["identifiability"]
        (1.886294, 0.5)
        >>> ledger.spend(fp.HammingChannel(3, 2, 0.5), prior, key="job-7").number
        2
        """
        checked_count(count)
        offer, asked = self._offer(mechanism, prior)
        return self.charge(
            offer, asked, count, label, key=key, actor=actor, metadata=metadata, dry_run=dry_run,
            claim=claim,
        )  # fmt: skip

    async def aspend(
        self,
        mechanism: Mechanism,
        prior: Distribution | ArrayLike | None = None,
        count: int = 1,
        label: str | None = None,
        **options: Any,
    ) -> Receipt:
        """Charge a mechanism as :meth:`spend` does, in a thread, while the event loop goes on.

        A task that is cancelled leaves the spend to its thread, which completes it; with a ``key``
        the next attempt finds it.
        """
        return await asyncio.to_thread(self.spend, mechanism, prior, count, label, **options)

    def charge(
        self,
        offer: Offer,
        asked: Any,
        count: int,
        label: str | None,
        *,
        key: str | None = None,
        actor: str | None = None,
        metadata: Any = None,
        dry_run: bool = False,
        claim: str | None = None,
    ) -> Receipt:
        """Charge what is known about a step; see :meth:`spend`. ``asked`` identifies the step."""
        fields: dict[str, Any] = {
            "label": checked_label(label),
            "count": checked_count(count),
            "part": offer.part,
            "key": checked_key(key),
            "actor": checked_label(actor, "actor"),
            "metadata": checked_metadata(metadata),
        }
        if fields["key"] is not None:
            given = (fields[name] for name in ("label", "count", "actor", "metadata"))
            fields["content"] = digest_of(asked, *given)
        claim = checked_label(claim, "claim")
        begun = time.perf_counter()
        try:
            if dry_run:
                before = self._store.state()
                entry = self._known(fields) or self._next(before, offer, fields)[0]
                return _receipt(entry)
            entry, event = self._charged(offer, fields, claim)
        except BudgetExceeded as error:
            emit(
                "refused",
                logging.WARNING,
                notion=error.notion,
                asked=error.asked,
                remaining=error.remaining,
                count=fields["count"],
                dry_run=dry_run,
            )
            raise
        receipt, seconds = _receipt(entry), time.perf_counter() - begun
        emit(
            event,
            number=receipt.number,
            count=receipt.count,
            charged=dict(receipt.charged),
            seconds=seconds,
        )
        return receipt

    def fits(self, offer: Offer, count: int) -> bool:
        """Whether a step would fit the budget now; nothing is spent."""
        return self._fits(self._store.state(), offer, checked_count(count))

    def _fits(self, before: State, offer: Offer, count: int) -> bool:
        budget = self._rules(before)
        try:
            budget.after(before, budget.charges(before, offer, count), offer, count)
        except BudgetExceeded:
            return False
        return True

    def restore(self, offer: Offer, count: int) -> None:
        """Charge the totals of ``count`` earlier steps as one entry."""

        def make(before: State) -> Written:
            after = self._rules(before).after(before, offer.levels, offer, count)
            entry = _entry(before, SPEND, count=count, charged=offer.levels, label="restored")
            if offer.relation is not None:
                after = replace(after, relation=offer.relation)
            return [entry], lambda state, each: after, None

        self._store.write(make)

    def total(self, notion: str) -> Decimal:
        """Return the exact total of a notion."""
        return self._store.state().spent[notion]

    @property
    def address(self) -> str | None:
        """What :meth:`open` is given to open the ledger again; None for a ledger in memory."""
        return self._store.address

    def _known(self, fields: Mapping[str, Any]) -> Entry | None:
        """Return the entry with the key of a spend, None if there is none."""
        key = fields["key"]
        entry = None if key is None else self._store.find(key)
        if entry is not None and entry.content != fields["content"]:
            raise InvalidInput(
                f"key must be new for a new spend; {described(key)} belongs to spend "
                f"{entry.number}, which had other arguments. Repeat those, or use another key."
            )
        return entry

    def _next(
        self, before: State, offer: Offer, fields: Mapping[str, Any], brief: bool = False
    ) -> tuple[Entry, State]:
        """Return the entry of a spend and the totals after it, or raise if it does not fit."""
        budget, count = self._rules(before), fields["count"]
        charged = budget.charges(before, offer, count, brief)
        after = budget.after(before, charged, offer, count)
        return _entry(before, SPEND, charged=charged, **fields), after

    def _charged(
        self, offer: Offer, fields: Mapping[str, Any], claim: str | None
    ) -> tuple[Entry, str]:
        """Write the entry of a spend; return it, and whether it is new ("spend") or "repeated".

        Profiles are composed while nobody waits. If somebody else has spent meanwhile, the step is
        added to their composition. That is brief, and done as a writer, so that it ends.
        """
        store, known = self._store, None
        made: tuple[State, bytes | None] | None = None

        def compose(before: State, brief: bool = False) -> Written:
            nonlocal known, made
            known = self._known(fields)
            if known is not None:
                return [], lambda state, entry: state, None
            entry, after = self._next(before, offer, fields, brief)
            made = after, self._budget.to_store(after)
            return [entry], lambda state, each: after, made[1]

        turn = False  # to compose as a writer
        for attempt in range(_ATTEMPTS + 1):
            before, begun = store.state(), time.thread_time()
            if not self._rules(before).composes or attempt == _ATTEMPTS:
                written = _surely(store, compose, None, claim)
            elif turn:
                try:
                    written = _surely(store, partial(compose, brief=True), None, claim)
                except NotBrief:
                    written, turn = None, False
            else:
                composed = compose(before)
                turn = time.thread_time() - begun < _BRIEF
                if known is not None:
                    return known, "repeated"
                written = _surely(store, lambda _, made=composed: made, before, claim)
            if known is not None:
                return known, "repeated"
            if written and made is not None:
                self._budget.keep(made[0], made[1] is not None)
                return written[0], "spend"
            emit("conflict", logging.DEBUG, attempt=attempt + 1)
            time.sleep(random.uniform(0.0, _PAUSE))
        raise LedgerError(
            f"the ledger {store.name}: the connection was lost {_ATTEMPTS} times; nothing was "
            "spent. Try again."
        )

    def unpublished(self, label: str) -> list[tuple[Receipt, str]]:
        """Return the unpublished charges under a label, with their claims."""
        pending = self._store.pending()
        receipts = self.history() if pending else []
        return [
            (one, pending[one.number])
            for one in receipts
            if one.number in pending and one.label == label
        ]

    def publish(self, receipt: Receipt) -> None:
        """Close a charge with a claim, immediately before its release is published.

        Of all processes that try, one succeeds.

        Raises
        ------
        LedgerError
            If the charge has been closed before. Then nothing may be published.
        """
        if not self._store.publish(receipt.number):
            raise LedgerError(
                f"spend {receipt.number} of the ledger has paid for another release; nothing was "
                "published. Release anew, which is charged."
            )

    def runs_left(
        self,
        mechanism: Mechanism,
        prior: Distribution | ArrayLike | None = None,
    ) -> int:
        """Return how often a mechanism can still be run within the budget; nothing is spent.

        Parameters
        ----------
        mechanism, prior
            As for :meth:`spend`.

        Examples
        --------
        >>> import fastpriv as fp
        >>> ledger = fp.accounting.Ledger({"approximate-dp": (2.0, 1e-6)})
        >>> ledger.runs_left(fp.accounting.PrivacyProfile.gaussian(20.0))
        80
        """
        before, offer = self._store.state(), self._offer(mechanism, prior)[0]
        high = 1
        while high <= MOST_COUNT and self._fits(before, offer, high):
            high *= 4
        known, high = high // 4, min(high, MOST_COUNT + 1)
        while high - known > 1:
            middle = (known + high) // 2
            known, high = (middle, high) if self._fits(before, offer, middle) else (known, middle)
        return known

    def _offer(
        self, mechanism: Any, prior: Distribution | ArrayLike | None
    ) -> tuple[Offer, list[Any]]:
        """Return what is known about a mechanism, and what identifies it."""
        state = self._store.state()
        budget, curve = self._rules(state), self._budget.delta is not None
        releases = not isinstance(mechanism, Mapping) and isinstance(mechanism, Spends)
        if releases or isinstance(mechanism, Mapping):
            refuse_prior(prior)
            given: Mapping[str, Any] = mechanism.spending() if releases else mechanism
            offer = declared(given, curve)
            levels = {notion: shortest(level) for notion, level in offer.levels.items()}
            asked = ["levels", releases, levels, offer.part]
            return replace(offer, relation=REPLACED) if releases else offer, asked
        convert = _adapter(mechanism)
        if convert is not None:
            mechanism = convert(mechanism, state.neighbours)
        from fastpriv.accounting.ledger.levels import identified, measured  # only when needed

        notions = budget.wanted(begun=state.spends > 0)
        offer = measured(mechanism, prior, notions, curve, budget.under_one_prior)
        return offer, identified(mechanism, prior)

    # Asking.

    @property
    def relation(self) -> str | None:
        """Which databases are neighbours; None until a relation is given or spent."""
        return self._store.state().neighbours

    @property
    def budget(self) -> dict[str, Any]:
        """Total level allowed for each notion; a pair where it is (epsilon, delta)."""
        return self._rules(self._store.state()).shown()

    @property
    def spent(self) -> dict[str, float]:
        """Level spent so far in each notion, by everybody, rounded up."""
        return dict(self._totals()[1])

    @property
    def remaining(self) -> dict[str, float]:
        """Level left in each notion, rounded down; a spend of this level fits."""
        return dict(self._totals()[2])

    def _totals(self) -> tuple[State, dict[str, float], dict[str, float]]:
        state, kept = self._store.state(), self._floats
        if kept is None or kept[0] is not state:
            spent = {notion: up(value) for notion, value in state.spent.items()}
            limits = self._rules(state).limits
            left = {n: down(minus(limits[n], value)) for n, value in state.spent.items()}
            kept = self._floats = state, spent, left
        return kept

    @property
    def laws(self) -> dict[str, Law]:
        """Composition rule of each notion that has a budget, with its conditions."""
        return dict(self._rules(self._store.state()).laws)

    def __len__(self) -> int:
        return self._store.state().spends

    def history(self, last: int | None = None) -> list[Receipt]:
        """Return the spends, or the last few of them, oldest first."""
        number = None if last is None else min(check.integer(last, "last", 0), MOST_COUNT)
        if number is not None:
            state = self._store.state()
            number += state.entries - state.spends  # as many entries may be none
        entries = self._store.snapshot(number)[1]
        spends = [_receipt(entry) for entry in entries if entry.kind == SPEND]
        return spends if last is None else spends[len(spends) - min(last, len(spends)) :]

    def amendments(self) -> list[Amendment]:
        """Return the amendments of the budget, oldest first."""
        return [_amendment(entry) for entry in self._store.snapshot()[1] if entry.kind == AMENDMENT]

    def amend(self, budget: Mapping[str, Any], *, actor: str, reason: str) -> Amendment:
        """Set other limits, as an entry of the chain that says who, why and when.

        Parameters
        ----------
        budget : mapping
            The new limits: of the same notions, at the same delta, and at least what is spent. The
            ledger of a filter or an odometer is not amended.
        actor, reason : str
            Who sets them, and why; neither may be empty.

        Examples
        --------
        >>> import fastpriv as fp
        >>> ledger = fp.accounting.Ledger({"dp": 1.0})
        >>> receipt = ledger.spend({"dp": 0.75})
        >>> change = ledger.amend({"dp": 2.0}, actor="board", reason="second wave")
        >>> ledger.remaining, ledger.amendments()[0].reason
        ({'dp': 1.25}, 'second wave')
        """
        limits = Budget(budget)
        if self._store.genesis["about"]:
            raise InvalidInput(
                "the ledger must have a budget of its own to be amended; this one is of "
                f"{described(self._store.genesis['about'])}, whose guarantee is its budget. Make "
                "a new filter."
            )
        for name, text in (("actor", actor), ("reason", reason)):
            if not checked_label(text, name):
                raise InvalidInput(f"{name} must be a text that is not empty; got {text!r}.")

        def make(before: State) -> Written:
            self._rules(before).amended(limits.stored())
            for notion, limit in limits.limits.items():
                if limit < before.spent[notion]:
                    raise InvalidInput(
                        f"the {notion} budget must be at least what is spent, "
                        f"{before.spent[notion]}; got {limit}."
                    )
            entry = _entry(
                before, AMENDMENT, count=0, charged={}, actor=actor, reason=reason,
                budget=limits.stored(),
            )  # fmt: skip
            number = before.entries + 1
            after = replace(before, entries=number, budget=limits.stored(), amended=number)
            return [entry], lambda state, each: after, None

        written = _surely(self._store, make)
        if not written:
            raise LedgerError(
                f"the ledger {self._store.name}: the connection was lost, and the budget was not "
                "amended. Try again."
            )
        return _amendment(written[0])

    def verify(self) -> str:
        """Check the whole ledger; return the digest of its last entry.

        The digest of every entry is computed again, from the first to the last, the charges are
        added up, and the profiles of all spends are composed. Whoever notes the returned digest
        elsewhere can later show that the history up to it was not changed.

        Raises
        ------
        LedgerError
            If anything is not as it was written.

        Examples
        --------
        >>> import fastpriv as fp
        >>> ledger = fp.accounting.Ledger({"dp": 1.0})
        >>> receipt = ledger.spend({"dp": 0.5})
        >>> ledger.verify() == receipt.digest
        True
        """
        store = self._store
        state, rows = store.exported()
        with store.legible:
            chain = Chain(store.genesis)
            for row in rows:
                chain.add(*row)
            if chain.state != state:
                raise InvalidInput("its entries do not add up to its totals.")
            chain.check_composition()
        return state.head

    def report(self) -> str:
        """Return the totals as text, each with its composition rule.

        Examples
        --------
        >>> import fastpriv as fp
        >>> ledger = fp.accounting.Ledger({"dp": 2.0, "mutual-information": 0.5})
        >>> receipt = ledger.spend({"dp": 0.5, "mutual-information": 0.125}, count=2)
        >>> print(ledger.report())  # doctest: +ELLIPSIS
        notion              spent  remaining  budget  rule        needs
        dp                  1      1          2       levels add  nothing: later mechanisms may ...
        mutual-information  0.25   0.25       0.5     levels add  outputs that are independent ...
        relation: not stated, all levels were declared
        """
        _, spent, left = self._totals()
        lines = [("notion", "spent", "remaining", "budget", "rule", "needs")]
        for notion, law in self.laws.items():
            limit = float(self._rules(self._store.state()).limits[notion])
            used, rest = numbers.up(spent[notion]), numbers.down(left[notion])
            lines.append((notion, used, rest, numbers.down(limit), law.name, law.needs))
        relation = self.relation or "not stated, all levels were declared"
        return f"{table(lines)}\nrelation: {relation}"

    def _repr_html_(self) -> str:
        if self._store.closed:
            return html.listing("Ledger, closed", ("notion",), [(n,) for n in self._budget.limits])
        state, spent, _ = self._totals()
        rows = [(n, numbers.up(spent[n]), _budget(total)) for n, total in self.budget.items()]
        note = f"{state.spends} spend{'s'[: state.spends != 1]}"
        return html.listing("Ledger", ("notion", "spent", "budget"), rows, note)

    def __repr__(self) -> str:
        if self._store.closed:
            return f"Ledger({', '.join(self._budget.limits)}, closed)"
        state, spent, _ = self._totals()
        parts = [f"{n}: {spent[n]!r} of {total!r}" for n, total in self.budget.items()]
        return f"Ledger({', '.join(parts)}, {state.spends} spend{'s'[: state.spends != 1]})"

    # Export and import.

    def to_json(self) -> str:
        """Return the budget, the totals and every entry as JSON, amounts as exact decimals.

        The chain is checked first, and its digests are in the export.

        Examples
        --------
        >>> import fastpriv as fp
        >>> ledger = fp.accounting.Ledger({"dp": 1.0})
        >>> receipt = ledger.spend({"dp": 0.25})
        >>> fp.accounting.Ledger.from_json(ledger.to_json())
        Ledger(dp: 0.25 of 1.0, 1 spend)
        """
        state, rows = self._store.exported()
        budget = self._rules(state)
        with self._store.legible:
            for row in rows:
                entry_of(*row)
            entries = [
                {**json.loads(text), "key": key, "part": part, "digest": digest}
                for text, key, part, digest in rows
            ]
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "beginning": self._store.genesis,
                "budget": budget.stored(),
                "spent": state.spent,
                "prior": state.prior,
                "relation": state.relation,
                "recorded": state.recorded,
                "laws": {notion: law.name for notion, law in budget.laws.items()},
                "head": state.head,
                "entries": entries,
            },
            default=str,
            indent=1,
        )

    @classmethod
    def from_json(cls, text: str, path: str | os.PathLike[str] | None = None) -> Ledger:
        """Make a ledger from an export: in memory, in a new file or on a server.

        The totals are added up again from the entries, and their digests are computed again. An
        export is refused if its totals do not agree with its entries or exceed its budget, or if a
        digest is not the one that was written.
        """
        chain = imported(text)
        store: Store = (
            SqliteStore(None, chain.genesis, 0.0)
            if path is None
            else opened(path, chain.genesis, _WAIT)
        )
        ledger = cls.__new__(cls)

        def make(before: State) -> Written:
            if before.entries or store.genesis != chain.genesis:
                raise InvalidInput(
                    f"path must be a new file or database; it holds {ledger!r} already. "
                    "Choose another one."
                )
            after = {state.entries: state for state in chain.states}
            return chain.entries, lambda state, entry: after[entry.number], None

        try:
            ledger._attach(store, None)
            store.write(make)
        except BaseException:
            store.close()
            raise
        return ledger

    @property
    def path(self) -> Path | None:
        """The file; None for a ledger in memory or on a server."""
        return None if self._store.path is None else Path(self._store.path)

    # Leaving.

    def close(self) -> None:
        """Close the file or the connection; a ledger in memory is gone."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._store.address is None:
            raise TypeError(
                "a ledger in memory cannot be copied or sent to a process: each copy could spend "
                "the whole budget; share a file: Ledger.open(path, budget)"
            )
        return Ledger.open, (self._store.address,)


# Stores.


def opened(
    path: str | os.PathLike[str], genesis: Mapping[str, Any] | None, timeout: float
) -> Store:
    """Open the store of a ledger by its path or address; make it if there is none."""
    limit = check.real(timeout, "timeout", least=0.0, most=1e6)
    if isinstance(path, str) and path.startswith(SCHEMES):
        return PostgresStore(path, genesis, limit)
    if isinstance(path, str) and _ADDRESS.match(path):
        scheme = path.partition("://")[0]
        raise InvalidInput(
            f'path must be the path of a file or an address "postgresql://..."; got one that '
            f"begins with {described(scheme + '://')}. Write it as one of these."
        )
    return SqliteStore(check.path(path, "path").absolute(), genesis, limit)


def _surely(
    store: Store,
    make: Callable[..., Written],
    expected: State | None = None,
    claim: str | None = None,
) -> list[Entry] | None:
    """Write; if the connection is lost, find out whether the entries were written."""
    try:
        return store.write(make, expected, claim)
    except LostConnection as lost:
        entries = list(lost.entries)
        if not entries:
            return None
        try:
            written = store.find_written(entries[-1].number, str(entries[-1].digest))
        except LedgerError:
            raise lost from None  # nobody knows
    return entries if written else None


def _adapter(mechanism: object) -> Callable[[Any, str | None], Any] | None:
    """Return the function that makes a profile of an object of another library, if it is one."""
    modules = {kind.__module__.partition(".")[0] for kind in type(mechanism).__mro__}
    return next((make for name, make in connected("foreign").items() if name in modules), None)


def _amendment(entry: Entry) -> Amendment:
    assert entry.budget is not None
    when = datetime.fromisoformat(entry.time)
    who, why = str(entry.actor), str(entry.reason)
    shown = Budget(entry.budget).shown()
    return Amendment(entry.number, when, who, why, shown, str(entry.digest))


def _budget(total: float | tuple[float, float]) -> str:
    """Write a budget: a level, or an epsilon at a delta."""
    if isinstance(total, tuple):
        return f"{numbers.down(total[0])} at delta {total[1]:g}"
    return numbers.down(total)
