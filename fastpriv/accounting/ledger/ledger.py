"""A privacy budget that is spent once: by threads, by processes, and over restarts."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fastpriv._core import validation as check
from fastpriv._text import numbers
from fastpriv._text.table import table
from fastpriv.accounting.laws import Law
from fastpriv.accounting.ledger.amounts import down, minus, up
from fastpriv.accounting.ledger.budget import CURVE, Budget, Offer, declared
from fastpriv.accounting.ledger.store import (
    MOST_COUNT,
    UNREADABLE,
    Entry,
    State,
    Store,
    amounts_of,
    checked_count,
    checked_label,
    entry_of,
)
from fastpriv.accounting.profile.relations import REPLACED, one_relation, optional_relation
from fastpriv.errors import BudgetExceeded, InvalidInput, LedgerError, described, unread

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike

    from fastpriv.accounting.profile.profile import PrivacyProfile
    from fastpriv.channels import AbstractChannel
    from fastpriv.priors import Distribution

__all__ = ["Ledger", "Receipt"]

#: Names an export, and its version.
_FORMAT = "fastpriv ledger"
_VERSION = 1
_ENTRY_FIELDS = tuple(field.name for field in fields(Entry))
#: Relative difference of two compositions of the same profiles, on whatever grids they are.
_SAME_COMPOSITION = Decimal("1e-5")


@dataclass(frozen=True)
class Receipt:
    """One spend that a ledger has acknowledged.

    Attributes
    ----------
    number : int
        Its place in the ledger, from 1.
    time : datetime
        Time of the spend in UTC, by the clock of the process that made it.
    label : str or None
        The name it was given.
    count : int
        How many steps it is for.
    charged : dict
        Increase of each notion's total, in nats, rounded up.

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


def _receipt(entry: Entry) -> Receipt:
    charged = {notion: up(value) for notion, value in entry.charged.items()}
    when = datetime.fromisoformat(entry.time)
    return Receipt(entry.number, when, entry.label, entry.count, charged)


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
    budget between processes and keeps it over restarts. A spend costs one transaction: microseconds
    in memory, a disk write in a file. At (epsilon, delta) a spend adds its profile to the kept
    composition in about 20 ms. Levels of a channel are computed at its first spend and remembered.

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
        self._attach(Store(None, Budget(budget).stored(), timeout=0.0), stated)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        budget: Mapping[str, Any] | None = None,
        timeout: float = 60.0,
        *,
        relation: str | None = None,
    ) -> Ledger:
        """Open the ledger in a file; make the file if it does not exist and a budget is given.

        Any number of processes may open it and spend. Each spend is one SQLite transaction that is
        on the disk before it is acknowledged. A process that is killed loses no acknowledged spend;
        the spend in progress may count or not.

        Parameters
        ----------
        path : path
            The file, in a folder that can be written. Use a local disk, or a network file system
            whose locks work.
        budget : mapping, optional
            As for :class:`Ledger`. Must agree with the budget of an existing ledger.
        timeout : float
            Seconds to wait for other processes.
        relation : {"add-or-remove", "replace-one", "replace-special"}, optional
            As for :class:`Ledger`. Must agree with the relation of an existing ledger. In a ledger
            of an earlier version, which did not check relations, it states the relation of all
            spends.

        Raises
        ------
        LedgerError
            If the file cannot be used or is no ledger.
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
        limit = check.real(timeout, "timeout", least=0.0, most=1e6)
        stated = optional_relation(relation)
        store = Store(check.path(path, "path").absolute(), wanted, limit)
        if wanted is not None and wanted != store.budget:
            store.close()
            raise InvalidInput(
                f"the ledger has the budget {described(store.budget)}, not {described(wanted)}; "
                "open it without a budget, or with its own"
            )
        self = cls.__new__(cls)
        self._attach(store, stated)
        return self

    def _attach(self, store: Store, relation: str | None) -> None:
        with store.legible:
            self._store, self._budget = store, Budget(store.budget, store.composition)
        self._floats: tuple[State, dict[str, float], dict[str, float]] | None = None
        if relation is not None:
            try:
                self._state_relation(relation)
            except BaseException:
                store.close()
                raise

    def _state_relation(self, relation: str) -> None:
        """Record the relation of all spends, unless another one was stated."""

        def make(before: State) -> tuple[list[Entry], State]:
            if before.relation not in (None, relation):
                raise InvalidInput(
                    f"relation must be {before.relation!r}, that of the ledger; got {relation!r}. "
                    "Use a ledger for each relation"
                )
            return [], replace(before, relation=relation, recorded=True)

        before = self._store.state()
        if (before.relation, before.recorded) != (relation, True):
            self._store.write(make)

    # Spending.

    def spend(
        self,
        mechanism: AbstractChannel | ArrayLike | Mapping[str, Any] | Spends | PrivacyProfile,
        prior: Distribution | ArrayLike | None = None,
        count: int = 1,
        label: str | None = None,
        *,
        claim: str | None = None,
    ) -> Receipt:
        """Charge a mechanism to the budget, or raise before anything is spent.

        Parameters
        ----------
        mechanism : channel, 2-D array, release, PrivacyProfile or mapping
            The mechanism; its levels are computed, rounded up, for the probabilities that
            ``sample`` draws with. A ``Release``, its report or a ``GeometricCount`` reports
            itself what it spends. Declared levels, such as ``{"dp": 0.1}``, are floats, ints,
            Decimals or decimal strings and must hold for the ledger's relation.
        prior : Distribution or 1-D array, optional
            Distribution of the databases, for notions that depend on it.
        count : int
            How often the mechanism is run.
        label : str, optional
            A name for the history.
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
        >>> later = ledger.spend(fp.HammingChannel(3, 2, 0.5), prior)
        >>> round(first.charged["identifiability"], 6), later.charged["identifiability"]
        (1.886294, 0.5)
        """
        number, name = checked_count(count), checked_label(label)
        claim = checked_label(claim, "claim")
        budget, offer = self._budget, self._offer(mechanism, prior)
        made: list[Entry] = []

        def make(before: State) -> tuple[list[Entry], State]:
            charged = budget.charges(before, offer, number)
            after = replace(budget.after(before, charged, offer, number), claim=claim)
            composition = budget.composed(after.parts)
            if self._store.path is not None:
                after = replace(after, composition=composition)
            now = datetime.now(timezone.utc).isoformat()
            made[:] = [Entry(after.entries, now, name, number, charged, offer.part)]
            return made, after

        self._store.write(make)
        return _receipt(made[0])

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
                "published. Release anew, which is charged"
            )

    def runs_left(
        self,
        mechanism: AbstractChannel | ArrayLike | Mapping[str, Any] | Spends | PrivacyProfile,
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
        budget, before = self._budget, self._store.state()
        offer = self._offer(mechanism, prior)

        def fits(count: int) -> bool:
            try:
                budget.after(before, budget.charges(before, offer, count), offer, count)
            except BudgetExceeded:
                return False
            return True

        high = 1
        while high <= MOST_COUNT and fits(high):
            high *= 4
        counts, known = range(min(high, MOST_COUNT + 1)), high // 4
        return bisect_left(counts, True, lo=known + 1, key=lambda count: not fits(count)) - 1

    def _offer(
        self,
        mechanism: AbstractChannel | ArrayLike | Mapping[str, Any] | Spends | PrivacyProfile,
        prior: Distribution | ArrayLike | None,
    ) -> Offer:
        budget, curve = self._budget, self._budget.delta is not None
        if isinstance(mechanism, Spends):
            return replace(declared(mechanism.spending(), curve), relation=REPLACED)
        if isinstance(mechanism, Mapping):
            return declared(mechanism, curve)
        from fastpriv.accounting.ledger.levels import measured  # only when needed

        notions = budget.wanted(begun=len(self) > 0)
        return measured(mechanism, prior, notions, curve, budget.under_one_prior)

    # Asking.

    @property
    def relation(self) -> str | None:
        """Which databases are neighbours; None until a relation is given or spent."""
        return self._store.state().neighbours

    @property
    def budget(self) -> dict[str, Any]:
        """Total level allowed for each notion; a pair where it is (epsilon, delta)."""
        return self._budget.shown()

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
            limits = self._budget.limits
            left = {n: down(minus(limits[n], value)) for n, value in state.spent.items()}
            kept = self._floats = state, spent, left
        return kept

    @property
    def laws(self) -> dict[str, Law]:
        """Composition rule of each notion that has a budget, with its conditions."""
        return dict(self._budget.laws)

    def __len__(self) -> int:
        return self._store.state().entries

    def history(self, last: int | None = None) -> list[Receipt]:
        """Return the spends, or the last few of them, oldest first."""
        number = None if last is None else min(check.integer(last, "last", 0), MOST_COUNT)
        return [_receipt(entry) for entry in self._store.snapshot(number)[1]]

    def report(self) -> str:
        """Return the totals as text, each with its composition rule.

        Examples
        --------
        >>> import fastpriv as fp
        >>> ledger = fp.accounting.Ledger({"dp": 2.0, "mutual-information": 0.5})
        >>> receipt = ledger.spend({"dp": 0.5, "mutual-information": 0.125}, count=2)
        >>> print(ledger.report())  # doctest: +ELLIPSIS
        notion              spent  remaining  budget  law         needs
        dp                  1      1          2       levels add  nothing: later mechanisms may ...
        mutual-information  0.25   0.25       0.5     levels add  outputs that are independent ...
        relation: not stated, all levels were declared
        """
        _, spent, left = self._totals()
        lines = [("notion", "spent", "remaining", "budget", "law", "needs")]
        for notion, law in self.laws.items():
            limit = float(self._budget.limits[notion])
            used, rest = numbers.up(spent[notion]), numbers.down(left[notion])
            lines.append((notion, used, rest, numbers.down(limit), law.name, law.needs))
        relation = self.relation or "not stated, all levels were declared"
        return f"{table(lines)}\nrelation: {relation}"

    def __repr__(self) -> str:
        if self._store.closed:
            return f"Ledger({', '.join(self._budget.limits)}, closed)"
        state, spent, _ = self._totals()
        parts = [f"{n}: {spent[n]!r} of {total!r}" for n, total in self.budget.items()]
        return f"Ledger({', '.join(parts)}, {state.entries} spend{'s'[: state.entries != 1]})"

    # Export and import.

    def to_json(self) -> str:
        """Return the budget, the totals and every spend as JSON, amounts as exact decimals.

        Examples
        --------
        >>> import fastpriv as fp
        >>> ledger = fp.accounting.Ledger({"dp": 1.0})
        >>> receipt = ledger.spend({"dp": 0.25})
        >>> fp.accounting.Ledger.from_json(ledger.to_json())
        Ledger(dp: 0.25 of 1.0, 1 spend)
        """
        return _exported(self._budget, *self._store.snapshot())

    @classmethod
    def from_json(cls, text: str, path: str | os.PathLike[str] | None = None) -> Ledger:
        """Make a ledger from an export, in memory or in a new file.

        The totals are added up again from the spends. An export is refused if its totals do not
        agree with its spends or exceed its budget.
        """
        budget, entries, after = _imported(text)
        ledger = cls(budget.stored()) if path is None else cls.open(path, budget.stored())

        def make(before: State) -> tuple[list[Entry], State]:
            if before.entries:
                raise InvalidInput(f"{ledger!r} has spends already; import into a new file")
            return entries, replace(after, relation=one_relation(before.relation, after.relation))

        try:
            ledger._store.write(make)
        except BaseException:
            ledger.close()
            raise
        return ledger

    @property
    def path(self) -> Path | None:
        """The file; None for a ledger in memory."""
        return None if self._store.path is None else Path(self._store.path)

    # Leaving.

    def close(self) -> None:
        """Close the file; a ledger in memory is gone."""
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
        if self._store.path is None:
            raise TypeError(
                "a ledger in memory cannot be copied or sent to a process: each copy could spend "
                "the whole budget; share a file: Ledger.open(path, budget)"
            )
        return Ledger.open, (self._store.path,)


# Export and import.


def _exported(budget: Budget, state: State, entries: list[Entry]) -> str:
    """Return the budget, the totals, the composition rules and every spend as JSON."""
    return json.dumps(
        {
            "format": _FORMAT,
            "version": _VERSION,
            "budget": budget.stored(),
            "spent": state.spent,
            "prior": state.prior,
            "relation": state.relation,
            "recorded": state.recorded,
            "laws": {notion: law.name for notion, law in budget.laws.items()},
            "entries": [vars(entry) for entry in entries],
        },
        default=str,
        indent=1,
    )


def _imported(text: str) -> tuple[Budget, list[Entry], State]:
    """Read an export; its totals are added up again and must agree."""
    try:
        given = json.loads(text)
        if (given["format"], given["version"]) != (_FORMAT, _VERSION):
            raise InvalidInput(
                f"this is {described(given['format'])} of version {described(given['version'])}, "
                f"not {_FORMAT!r} of version {_VERSION}"
            )
        budget, prior = Budget(given["budget"]), checked_label(given["prior"])
        relation = optional_relation(given.get("relation"))  # older exports have none
        recorded = given.get("recorded") is True and "relation" in given
        total = amounts_of(given["spent"])
        entries = [entry_of(*map(each.__getitem__, _ENTRY_FIELDS)) for each in given["entries"]]
    except InvalidInput:
        raise
    except UNREADABLE as error:
        raise unread("export of a ledger", text, error) from None
    after = _added_up(budget, entries, total, prior)
    return budget, entries, replace(after, relation=relation, recorded=recorded)


def _added_up(
    budget: Budget, entries: list[Entry], total: Mapping[str, Decimal], prior: str | None
) -> State:
    state = budget.empty()
    for entry in entries:
        complete = (
            entry.number == state.entries + 1
            and entry.charged.keys() == budget.limits.keys()
            and (entry.part is None) == (budget.delta is None)
        )
        if not complete:
            raise InvalidInput(f"spend {state.entries + 1} of the export is not whole")
        try:
            state = budget.after(state, entry.charged, Offer({}, entry.part, prior), entry.count)
        except BudgetExceeded as error:
            raise InvalidInput(f"the export goes beyond its own budget: {error}") from None
    if state.spent != total:
        raise InvalidInput(
            f"the export's spends add up to {_amounts(state.spent)}, but its totals are "
            f"{_amounts(total)}; it was changed"
        )
    if budget.delta is not None:
        level = budget.epsilon(state.parts)
        if abs(level - total[CURVE]) > total[CURVE] * _SAME_COMPOSITION:
            raise InvalidInput(
                f"the export's profiles compose to epsilon {level}, but its total is "
                f"{total[CURVE]}; it was changed"
            )
    return state


def _amounts(amounts: Mapping[str, Decimal]) -> str:
    return ", ".join(f"{notion} {value}" for notion, value in amounts.items())
