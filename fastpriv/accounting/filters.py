"""Budgets for steps whose levels are chosen after earlier outputs: filters and odometers.

Composed profiles, and the sum of squares in advanced composition, need levels that are fixed
beforehand; only mechanisms may depend on earlier outputs. If the next *level* depends on earlier
outputs, fewer theorems hold. The ones used here are proved in docs/theory/filters.md.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered
from fastpriv._core.search import bisect
from fastpriv.accounting.ledger.amounts import SUM_DIGITS, ZERO, amount, up
from fastpriv.accounting.ledger.budget import CURVE, DELTA, ZCDP, Budget, Offer, pure_zcdp
from fastpriv.accounting.ledger.ledger import Ledger, Receipt, opened
from fastpriv.accounting.ledger.sqlite import SqliteStore
from fastpriv.accounting.ledger.store import Store, beginning
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import earlier_relation, optional_relation
from fastpriv.errors import BudgetExceeded, InvalidInput, described, unread

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["PrivacyFilter", "PrivacyOdometer"]

_RULES = ("basic", "zcdp")
#: The orders of an odometer minus one, with equal weights.
_ORDERS = np.geomspace(0.05, 2000.0, 48)
#: Levels beyond this one overflow when they are multiplied by an order; the bound is infinite.
_MOST_RHO = 1e290
#: Relative and absolute error of the logarithm of a mean of exponentials, far above its rounding.
_LOG_ERROR = 1e-12
#: Relative width of the bracket of an odometer's bound.
_LOSS_WIDTH = 1e-14
#: Relative margin that covers this width.
_LOSS_MARGIN = 1e-12
#: Width of the bracket of the largest rho, relative to its first upper bound.
_RHO_WIDTH = 2.0**-52
#: Sum of levels that an odometer may reach, at which its bound is infinite.
_MOST_SUM = "1e300"


class _Spends:
    """Steps that are charged to a ledger: in memory, in a file or on a server."""

    #: Notions of the ledger in which the level and the delta of a step are charged.
    _notions: tuple[str, str]
    _ledger: Ledger

    def _begin(
        self,
        place: str | os.PathLike[str] | None,
        limits: tuple[Any, Any],
        about: Mapping[str, Any],
        relation: str | None,
        timeout: float = 0.0,
    ) -> None:
        """Open the ledger, and make it if there is none."""
        budget = Budget(dict(zip(self._notions, limits, strict=True))).stored()
        genesis = beginning(budget, optional_relation(relation), about)
        store = (
            SqliteStore(None, genesis, 0.0) if place is None else opened(place, genesis, timeout)
        )
        self._take(store, about)

    def _take(self, store: Store, about: Mapping[str, Any]) -> None:
        if store.genesis["about"] != dict(about):
            given = described(store.genesis["about"] or "a ledger with a budget of its own")
            store.close()
            raise InvalidInput(
                f"{store.name} must be of {described(dict(about))}; it is of {given}. Open it "
                "with those, or give another path."
            )
        self._ledger = Ledger.of_store(store)

    @property
    def relation(self) -> str | None:
        """Which databases are neighbours; None until a relation is given or a profile is spent."""
        return self._ledger.relation

    @property
    def ledger(self) -> Ledger:
        """The ledger of the spends, with its history, export and ``verify``."""
        return self._ledger

    def history(self, last: int | None = None) -> list[Receipt]:
        """Return the spends, or the last few of them, oldest first."""
        return self._ledger.history(last)

    def close(self) -> None:
        """Close the file or the connection; in memory the spends are gone."""
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        address = self._ledger.address
        if address is not None:
            return type(self).open, (address,)  # type: ignore[attr-defined]
        return type(self).from_dict, (self.to_dict(),)  # type: ignore[attr-defined]

    def _totals(self) -> tuple[Decimal, Decimal]:
        level, delta = map(self._ledger.total, self._notions)
        return level, delta

    def _charge(
        self, release: Any, cost: tuple[Decimal, Decimal], count: int, **given: Any
    ) -> Receipt:
        offer = self._offer(release, cost)
        asked = ["step", *map(str, cost), offer.relation]
        return self._ledger.charge(offer, asked, count, given.pop("label", None), **given)

    def _offer(self, release: Any, cost: tuple[Decimal, Decimal]) -> Offer:
        known = isinstance(release, PrivacyProfile) and bool(release.parts)
        levels = dict(zip(self._notions, cost, strict=True))
        return Offer(levels, None, None, release.relation if known else None)

    def _spent(self) -> dict[str, Any]:
        level, delta = self._totals()
        count = sum(receipt.count for receipt in self._ledger.history())
        relation = {"relation": self.relation, "recorded": True}
        return {"level": str(level), "delta": str(delta), "count": count, **relation}

    def _restore(self, spent: Any) -> None:
        """Charge the totals of earlier steps as one entry."""
        given = check.mapping(spent, "spent")
        level = amount(given["level"], "level", SUM_DIGITS)
        delta = amount(given["delta"], "delta", SUM_DIGITS)
        count = check.integer(given["count"], "count", 0)
        relation = optional_relation(given.get("relation"))
        if given.get("recorded") is not True and count:
            relation = earlier_relation(relation)
        if count or level or delta:
            offer = Offer(
                dict(zip(self._notions, (level, delta), strict=True)), None, None, relation
            )
            self._ledger.restore(offer, max(count, 1))


class PrivacyFilter(_Spends):
    """An (epsilon, delta) budget for steps whose levels may depend on earlier outputs.

    Rule "zcdp": steps are rho_i-zCDP given earlier outputs. They are admitted while their sum is at
    most the largest rho for which rho-zCDP is (epsilon, delta - reserved)-DP. All of them together
    are then (epsilon, delta)-DP (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers and Wu 2023). A
    step of level e is at most e^2/2-zCDP, so this rule is never worse than advanced composition.

    Rule "basic": levels and deltas add (Rogers, Roth, Ullman and Vadhan 2016).

    Parameters
    ----------
    epsilon : float
        Total level, in nats.
    delta : float
        Total delta, a probability.
    rule : {"zcdp", "basic"}, optional
        Default: "zcdp" if delta is positive.
    reserved : float
        Under "zcdp", the part of delta reserved for the sum of the steps' own deltas.
    relation : {"add-or-remove", "replace-one", "replace-special"}, optional
        Which databases are neighbours. Default: the relation of the first profile that is spent.
        Declared levels must hold for it.

    Notes
    -----
    The spends are entries of a ledger: in memory, or by :meth:`open` in a file or on a server, with
    its keys, its history and its chain.

    Examples
    --------
    >>> import fastpriv as fp
    >>> budget = fp.accounting.PrivacyFilter(3.0, 1e-6)
    >>> receipt = budget.spend(0.01, 3700)  # levels add to 3 after 300
    >>> budget.admits(0.01), budget.admits(0.1)
    (True, False)
    >>> budget.spend(0.1)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    fastpriv.errors.BudgetExceeded: zcdp: the release asks for ...
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        rule: str | None = None,
        reserved: float = 0.0,
        relation: str | None = None,
    ) -> None:
        self._set(epsilon, delta, rule, reserved)
        self._begin(None, self._limits, self._about, relation)

    def _set(self, epsilon: Any, delta: Any, rule: str | None, reserved: Any) -> None:
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        self.delta = check.real(delta, "delta", least=0.0, most=1.0)
        self.reserved = check.real(reserved, "reserved", least=0.0, most=1.0)
        self.rule = rule if rule is not None else "zcdp" if self.delta > 0.0 else "basic"
        check.word(self.rule, "rule", _RULES)
        if self.rule == "zcdp" and not self.reserved < self.delta:
            raise InvalidInput(
                f"zcdp needs a delta above what is reserved; got {self.delta:g} and "
                f'{self.reserved:g}; use rule="basic".'
            )
        self._notions = (ZCDP if self.rule == "zcdp" else CURVE, DELTA)

    @property
    def _limits(self) -> tuple[Decimal, Decimal]:
        """What the sums of levels and of deltas may reach."""
        if self.rule == "basic":
            return amount(self.epsilon, "epsilon"), amount(self.delta, "delta")
        rest = lowered(self.delta - self.reserved, 2.0)
        rho = _largest_rho(self.epsilon, rest)
        return amount(rho, "rho"), amount(self.reserved, "reserved")

    @property
    def _about(self) -> dict[str, Any]:
        names = ("epsilon", "delta", "rule", "reserved")
        return {"filter": {name: getattr(self, name) for name in names}}

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        epsilon: float | None = None,
        delta: float = 0.0,
        *,
        rule: str | None = None,
        reserved: float = 0.0,
        relation: str | None = None,
        timeout: float = 5.0,
    ) -> PrivacyFilter:
        """Open the filter in a file or on a server; make it if an epsilon is given.

        Parameters
        ----------
        path, timeout
            As for :meth:`Ledger.open`.
        epsilon, delta, rule, reserved, relation
            As for :class:`PrivacyFilter`. Must agree with an existing filter.

        Examples
        --------
        >>> import os, tempfile, fastpriv as fp
        >>> path = os.path.join(tempfile.mkdtemp(), "study.filter")
        >>> with fp.accounting.PrivacyFilter.open(path, 1.0) as budget:
        ...     receipt = budget.spend(0.75, key="monday")
        >>> with fp.accounting.PrivacyFilter.open(path) as budget:
        ...     budget.spend(0.75, key="monday").number, budget.remaining["epsilon"]
        (1, 0.25)
        """
        self = cls.__new__(cls)
        if epsilon is not None:
            self._set(epsilon, delta, rule, reserved)
            self._begin(path, self._limits, self._about, relation, timeout)
            return self
        store = opened(path, None, timeout)
        try:
            given = store.genesis["about"]["filter"]
            self._set(given["epsilon"], given["delta"], given["rule"], given["reserved"])
        except (KeyError, TypeError) as error:
            store.close()
            raise unread("filter", store.genesis["about"], error) from None
        self._take(store, self._about)
        return self

    def spend(
        self,
        release: Any,
        count: int = 1,
        label: str | None = None,
        *,
        key: str | None = None,
        actor: str | None = None,
        metadata: Any = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Charge steps if they fit the budget; otherwise raise, and spend nothing.

        Parameters
        ----------
        release : float, (epsilon, delta) or PrivacyProfile
            Level of a step, given any earlier outputs; or its profile, such as
            ``PrivacyProfile.of(channel)``. Profiles for another relation are refused.
        count : int
            Number of such steps.
        label, key, actor, metadata, dry_run
            As for :meth:`Ledger.spend`.

        Returns
        -------
        Receipt
            The steps were charged and may be run. Calls from many threads are safe.

        Raises
        ------
        BudgetExceeded
            If they do not fit; :meth:`admits` asks.
        """
        given = {"label": label, "key": key, "actor": actor, "metadata": metadata}
        return self._charge(release, self._cost(release), count, dry_run=dry_run, **given)

    def admits(self, release: Any, count: int = 1) -> bool:
        """Return whether steps would fit the budget now, without spending."""
        return self._ledger.fits(self._offer(release, self._cost(release)), count)

    def _cost(self, release: Any) -> tuple[Decimal, Decimal]:
        level, delta = _levels(release, self.rule == "zcdp")
        return amount(level, "the level"), amount(delta, "delta")

    @property
    def remaining(self) -> dict[str, float]:
        """Remaining epsilon (basic) or rho (zcdp) and delta, rounded down."""
        name = "epsilon" if self.rule == "basic" else "rho"
        left = self._ledger.remaining
        return {name: left[self._notions[0]], "delta": left[self._notions[1]]}

    def to_dict(self) -> dict[str, Any]:
        """Return the budget and the totals for JSON; amounts are exact decimals."""
        given = {"epsilon": self.epsilon, "delta": self.delta, "rule": self.rule}
        return {**given, "reserved": self.reserved, "spent": self._spent()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PrivacyFilter:
        """Return the filter described by the result of :meth:`to_dict`.

        Examples
        --------
        >>> import fastpriv as fp
        >>> budget = fp.accounting.PrivacyFilter(1.0)
        >>> receipt = budget.spend(0.75)
        >>> fp.accounting.PrivacyFilter.from_dict(budget.to_dict()).remaining["epsilon"]
        0.25
        """
        try:
            fields = check.mapping(given, "a filter")
            levels = fields["epsilon"], fields["delta"]
            result = cls(*levels, rule=fields["rule"], reserved=fields["reserved"])
            result._restore(fields["spent"])
        except (KeyError, TypeError) as error:
            raise unread("filter", given, error) from None
        return result

    def _restore(self, spent: Any) -> None:
        try:
            super()._restore(spent)
        except BudgetExceeded:
            raise InvalidInput(
                "this filter has spent more than its budget. "
                "Make a new filter with a larger budget."
            ) from None

    def __repr__(self) -> str:
        left = ", ".join(f"{name} {value:.6g}" for name, value in self.remaining.items())
        return f"PrivacyFilter({self.epsilon:g}, {self.delta:g}, {self.rule!r}; left: {left})"


class PrivacyOdometer(_Spends):
    """A running bound on the privacy loss of steps whose levels may depend on earlier outputs.

    With probability at least 1 - delta, the privacy loss L of neighbours is at most
    ``epsilon(delta)`` *at all times at once*. If a mechanism stops before epsilon(delta) exceeds a
    number e, it is therefore (e, delta)-DP.

    For rho_i-zCDP steps with sum V, exp((a - 1)(L - a V)) is a supermartingale for each order
    a > 1, and so is its mean over 48 orders. By Ville's inequality, the mean exceeds 1/delta at
    any time with probability at most delta (docs/theory/filters.md).

    Parameters
    ----------
    relation : {"add-or-remove", "replace-one", "replace-special"}, optional
        As for :class:`PrivacyFilter`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> odometer = fp.accounting.PrivacyOdometer()
    >>> for _ in range(100):
    ...     receipt = odometer.spend(0.1)
    >>> round(odometer.epsilon(1e-6), 3)  # a filter of 5.22 admits as many
    6.33
    """

    _notions = (ZCDP, DELTA)
    #: A sum of levels that nobody reaches, in place of a limit.
    _limits = Decimal(_MOST_SUM), ZERO
    _about: Mapping[str, Any] = {"odometer": 1}

    def __init__(self, *, relation: str | None = None) -> None:
        self._begin(None, self._limits, self._about, relation)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, relation: str | None = None, timeout: float = 5.0
    ) -> PrivacyOdometer:
        """Open the odometer in a file or on a server; make it if there is none.

        Parameters
        ----------
        path, timeout
            As for :meth:`Ledger.open`.
        relation
            As for :class:`PrivacyOdometer`.
        """
        self = cls.__new__(cls)
        self._begin(path, self._limits, self._about, relation, timeout)
        return self

    def spend(
        self,
        release: Any,
        count: int = 1,
        label: str | None = None,
        *,
        key: str | None = None,
        actor: str | None = None,
        metadata: Any = None,
    ) -> Receipt:
        """Add steps, given by a level or a profile with a zCDP level.

        Parameters
        ----------
        release, count
            As for :meth:`PrivacyFilter.spend`.
        label, key, actor, metadata
            As for :meth:`Ledger.spend`.
        """
        rho, delta = _levels(release, True)
        if delta > 0.0 or rho == math.inf:
            raise InvalidInput(
                "an odometer counts releases that are zCDP, without a delta of their own; use a "
                "PrivacyFilter with reserved delta."
            )
        given = {"label": label, "key": key, "actor": actor, "metadata": metadata}
        return self._charge(release, (amount(rho, "rho"), ZERO), count, **given)

    @property
    def rho(self) -> float:
        """Sum of the zCDP levels, rounded up."""
        return up(self._totals()[0])

    def epsilon(self, delta: float) -> float:
        """Bound on the privacy loss at all times at once, except with probability delta.

        It is the L at which the mean of exp((a - 1)(L - a V)) is 1/delta, rounded up.
        """
        probability = check.real(delta, "delta", least=0.0, most=1.0)
        spent = self.rho
        if spent == 0.0 or probability == 1.0:
            return 0.0
        if probability == 0.0 or spent > _MOST_RHO:
            return math.inf
        target = -math.log(probability) + math.log(len(_ORDERS))

        def below(loss: float) -> bool:
            logs = _ORDERS * (loss - (1.0 + _ORDERS) * spent)
            top = float(logs.max())
            total = top + math.log(float(np.exp(logs - top).sum()))
            return total <= target * (1.0 + _LOG_ERROR) + _LOG_ERROR

        low, high = 0.0, 1.0
        while below(high):
            low, high = high, 2.0 * high
        _, loss = bisect(below, low, high, relative=_LOSS_WIDTH)
        return loss * (1.0 + _LOSS_MARGIN)

    def to_dict(self) -> dict[str, Any]:
        """Return the totals for JSON; amounts are exact decimals."""
        return {"spent": self._spent()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PrivacyOdometer:
        """Return the odometer described by the result of :meth:`to_dict`."""
        result = cls()
        try:
            result._restore(check.mapping(given, "an odometer")["spent"])
        except (KeyError, TypeError) as error:
            raise unread("odometer", given, error) from None
        return result

    def __repr__(self) -> str:
        return f"PrivacyOdometer({self._spent()['count']:,} releases, rho {self.rho:.6g})"


def _levels(release: Any, concentrated: bool) -> tuple[float, float]:
    """Return the level of a step, as rho if ``concentrated``, and its delta."""
    if isinstance(release, PrivacyProfile):
        level = release.zcdp_level().upper if concentrated else release.epsilon(0.0).upper
        return level, 0.0
    if isinstance(release, tuple | list):
        if len(release) != 2:
            raise InvalidInput(
                f"step must be a level or (epsilon, delta); got {described(release)}."
            )
        epsilon, delta = release
    elif isinstance(release, Real | Decimal):
        epsilon, delta = release, 0.0
    else:
        raise InvalidInput(
            "release must be a level, (epsilon, delta) or a PrivacyProfile; got "
            f"{described(release)}. Give PrivacyProfile.of(channel), or a profile that "
            "fastpriv.adapters makes of a step of another library."
        )
    level = check.real(epsilon, "epsilon", least=0.0)
    probability = check.real(delta, "delta", least=0.0, most=1.0)
    return pure_zcdp(level) if concentrated else level, probability


def _largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho for which rho-zCDP is (epsilon, delta)-DP, rounded down."""

    def holds(rho: float) -> bool:
        return PrivacyProfile.zcdp(rho).epsilon(delta).upper <= epsilon

    top = max(epsilon, 1.0)
    return bisect(holds, 0.0, top, absolute=_RHO_WIDTH * top)[0]
