"""Budgets for releases whose levels are chosen after earlier outputs: filters and odometers.

Composed profiles, and the sum of squares in advanced composition, are for levels that are fixed
beforehand, though mechanisms may depend on what came out. Where the next *level* is chosen after
earlier outputs, less is known: what is used here is proved in docs/theory/filters.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from threading import RLock
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered, raised
from fastpriv._core.search import bisect
from fastpriv.accounting.ledger.amounts import ZERO, amount, down, minus, plus, times, up
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import earlier_relation, one_relation, optional_relation
from fastpriv.errors import InvalidInput, described, unread

__all__ = ["PrivacyFilter", "PrivacyOdometer"]

_RULES = ("basic", "zcdp")
#: Orders less one that an odometer watches, with equal weights.
_ORDERS = np.geomspace(0.05, 2000.0, 48)
#: Levels beyond this one overflow when they are multiplied by an order: nothing is promised.
_MOST_RHO = 1e290


def zcdp_of(profile: PrivacyProfile) -> float:
    """Return the least rho for which a release is rho-zCDP, rounded up; infinite for none."""
    return profile.zcdp_level().upper


class _Spends:
    """What has been spent, as exact decimals, by any number of threads."""

    def __init__(self, relation: str | None) -> None:
        self._lock = RLock()
        self._level, self._delta, self._count = ZERO, ZERO, 0
        self._relation = optional_relation(relation)

    @property
    def relation(self) -> str | None:
        """Which databases are neighbours; None until a relation is given or a profile is spent."""
        return self._relation

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            return {key: value for key, value in self.__dict__.items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    def _spent(self) -> dict[str, Any]:
        amounts = {"level": str(self._level), "delta": str(self._delta)}
        relation = {"relation": self._relation, "recorded": True}
        return {**amounts, "count": self._count, **relation}

    def _restore(self, spent: Any) -> None:
        given = check.mapping(spent, "spent")
        self._level = amount(given["level"], "level", 1000)
        self._delta = amount(given["delta"], "delta", 1000)
        self._count = check.integer(given["count"], "count", 0)
        relation = optional_relation(given.get("relation"))
        recorded = given.get("recorded") is True or not self._count
        self._relation = relation if recorded else earlier_relation(relation)

    def _joined(self, release: Any) -> str | None:
        """Return what neighbours are with one more release; the lock is held."""
        known = isinstance(release, PrivacyProfile) and bool(release.parts)
        return one_relation(self._relation, release.relation if known else None)


class PrivacyFilter(_Spends):
    """An (epsilon, delta) budget that holds whatever levels are chosen after earlier outputs.

    Rule "zcdp": releases are rho_i-zCDP given what came before, and are admitted while their sum is
    at most the largest rho for which rho-zCDP is (epsilon, delta - reserved)-DP. All of them
    together are then (epsilon, delta)-DP: Feldman and Zrnic (2021); Whitehouse, Ramdas, Rogers and
    Wu (2023). A release of level e is at most e^2/2-zCDP, so this is never worse than advanced
    composition, and the levels need not be known beforehand.

    Rule "basic": levels and deltas add, Rogers, Roth, Ullman and Vadhan (2016).

    Parameters
    ----------
    epsilon : float
        Total level.
    delta : float
        Total delta.
    rule : {"zcdp", "basic"}, optional
        By default "zcdp" where delta is positive.
    reserved : float
        What of delta is for releases that have a delta of their own, under "zcdp"; their sum.
    relation : {"add-or-remove", "replace-one", "replace-special"}, optional
        Which databases are neighbours. By default the relation of the first profile that is spent.
        Declared levels must hold for it.

    Examples
    --------
    >>> import fastpriv as fp
    >>> budget = fp.accounting.PrivacyFilter(3.0, 1e-6)
    >>> sum(budget.spend(0.01) for _ in range(5000))  # levels add to 3 after 300
    3701
    >>> budget.spend(fp.accounting.PrivacyProfile.gaussian(300.0)), budget.spend(0.5)
    (True, False)
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
        super().__init__(relation)
        self.epsilon = check.real(epsilon, "epsilon", least=0.0)
        self.delta = check.real(delta, "delta", least=0.0, most=1.0)
        self.reserved = check.real(reserved, "reserved", least=0.0, most=1.0)
        self.rule = rule if rule is not None else "zcdp" if self.delta > 0.0 else "basic"
        check.word(self.rule, "rule", _RULES)
        if self.rule == "zcdp" and not self.reserved < self.delta:
            raise InvalidInput(
                f"zcdp needs a delta above what is reserved, got {self.delta:g} and "
                f'{self.reserved:g}; use rule="basic"'
            )
        if self.rule == "basic":
            self._most, self._deltas = amount(self.epsilon, "epsilon"), amount(self.delta, "delta")
        else:
            rest = lowered(self.delta - self.reserved, 2.0)
            self._most = amount(_largest_rho(self.epsilon, rest), "rho")
            self._deltas = amount(self.reserved, "reserved")

    def spend(self, release: Any, count: int = 1) -> bool:
        """Charge releases if they fit, and say whether they did; nothing is spent if not.

        Parameters
        ----------
        release : float, (epsilon, delta) or PrivacyProfile
            Level of a release, for all outputs that it may be chosen after; or its profile, such as
            ``PrivacyProfile.of(channel)``. Profiles for another relation are refused.
        count : int
            How many of them.

        Returns
        -------
        bool
            Whether the releases may be made. Safe to call from many threads.
        """
        level, delta = self._cost(release)
        number = check.integer(count, "count", 0)
        with self._lock:
            relation = self._joined(release)
            total = plus(self._level, times(level, number)), plus(self._delta, times(delta, number))
            if total[0] > self._most or total[1] > self._deltas:
                return False
            self._level, self._delta = total
            self._relation = relation
            self._count += number
            return True

    def admits(self, release: Any, count: int = 1) -> bool:
        """Whether releases would fit now; nothing is spent."""
        level, delta = self._cost(release)
        number = check.integer(count, "count", 0)
        with self._lock:
            self._joined(release)
            fits = plus(self._level, times(level, number)) <= self._most
            return fits and plus(self._delta, times(delta, number)) <= self._deltas

    def _cost(self, release: Any) -> tuple[Decimal, Decimal]:
        level, delta = _levels(release, self.rule == "zcdp")
        return amount(level, "the level"), amount(delta, "delta")

    @property
    def remaining(self) -> dict[str, float]:
        """What is left, rounded down: of epsilon (basic) or rho (zcdp), and of delta."""
        name = "epsilon" if self.rule == "basic" else "rho"
        with self._lock:
            left = minus(self._most, self._level), minus(self._deltas, self._delta)
        return {name: down(left[0]), "delta": down(left[1])}

    def to_dict(self) -> dict[str, Any]:
        """Return the budget and what has been spent, for JSON; amounts are exact decimals."""
        given = {"epsilon": self.epsilon, "delta": self.delta, "rule": self.rule}
        with self._lock:
            return {**given, "reserved": self.reserved, "spent": self._spent()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PrivacyFilter:
        """Return the filter that :meth:`to_dict` was called on.

        Examples
        --------
        >>> import fastpriv as fp
        >>> budget = fp.accounting.PrivacyFilter(1.0)
        >>> budget.spend(0.75)
        True
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
        if result._level > result._most or result._delta > result._deltas:
            raise InvalidInput("this filter has spent more than its budget")
        return result

    def __repr__(self) -> str:
        left = ", ".join(f"{name} {value:.6g}" for name, value in self.remaining.items())
        return f"PrivacyFilter({self.epsilon:g}, {self.delta:g}, {self.rule!r}; left: {left})"


class PrivacyOdometer(_Spends):
    """What has been spent so far, at any time, by releases whose levels are chosen on the way.

    With probability at least 1 - delta the privacy loss of neighbours is at most ``epsilon(delta)``
    *at all times at once*, so that one may also stop when one likes what is shown: a mechanism that
    stops before epsilon(delta) exceeds a number is (that number, delta)-DP. Under rho_i-zCDP
    releases with sum V, exp((a - 1)(L - a V)) is a supermartingale for each order a > 1, and so is
    the mean over 48 orders: by Ville's inequality it stays below 1/delta. The proof is in
    docs/theory/filters.md.

    Parameters
    ----------
    relation : {"add-or-remove", "replace-one", "replace-special"}, optional
        As for :class:`PrivacyFilter`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> odometer = fp.accounting.PrivacyOdometer()
    >>> for _ in range(100):
    ...     odometer.spend(0.1)
    >>> round(odometer.epsilon(1e-6), 3)  # a filter of 5.22 admits as many
    6.33
    """

    def __init__(self, *, relation: str | None = None) -> None:
        super().__init__(relation)

    def spend(self, release: Any, count: int = 1) -> None:
        """Count releases: a level, or a PrivacyProfile that is zCDP; given what came before."""
        rho, delta = _levels(release, True)
        if delta > 0.0 or rho == math.inf:
            raise InvalidInput(
                "an odometer counts releases that are zCDP, without a delta of their own; use a "
                "PrivacyFilter with reserved delta"
            )
        number = check.integer(count, "count", 0)
        with self._lock:
            self._relation = self._joined(release)
            self._level = plus(self._level, times(amount(rho, "rho"), number))
            self._count += number

    @property
    def rho(self) -> float:
        """Sum of the zCDP levels, rounded up."""
        with self._lock:
            return up(self._level)

    def epsilon(self, delta: float) -> float:
        """Bound on the privacy loss at all times at once, but for a probability delta.

        The L at which the mean of exp((a - 1)(L - a V)) is 1/delta, rounded up; O(48) per halving.
        """
        chance = check.real(delta, "delta", least=0.0, most=1.0)
        spent = self.rho
        if spent == 0.0 or chance == 1.0:
            return 0.0
        if chance == 0.0 or spent > _MOST_RHO:
            return math.inf
        target = -math.log(chance) + math.log(len(_ORDERS))

        def exceeds(loss: float) -> bool:
            logs = _ORDERS * (loss - (1.0 + _ORDERS) * spent)
            most = float(logs.max())
            return (
                most + math.log(float(np.exp(logs - most).sum())) > target * (1.0 + 1e-12) + 1e-12
            )

        low, high = 0.0, 1.0
        while not exceeds(high):
            low, high = high, 2.0 * high
        low, high = bisect(lambda loss: not exceeds(loss), low, high, relative=1e-14)
        return high * (1.0 + 1e-12)

    def to_dict(self) -> dict[str, Any]:
        """Return what has been spent, for JSON; amounts are exact decimals."""
        with self._lock:
            return {"spent": self._spent()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PrivacyOdometer:
        """Return the odometer that :meth:`to_dict` was called on."""
        result = cls()
        try:
            result._restore(check.mapping(given, "an odometer")["spent"])
        except (KeyError, TypeError) as error:
            raise unread("odometer", given, error) from None
        return result

    def __repr__(self) -> str:
        return f"PrivacyOdometer({self._count:,} releases, rho {self.rho:.6g})"


def _levels(release: Any, concentrated: bool) -> tuple[float, float]:
    """Return the level of a release, as rho if ``concentrated``, and its delta."""
    if isinstance(release, PrivacyProfile):
        level = zcdp_of(release) if concentrated else release.epsilon(0.0).upper
        return level, 0.0
    if isinstance(release, tuple | list):
        if len(release) != 2:
            raise InvalidInput(
                f"a release is a level or (epsilon, delta), got {described(release)}"
            )
        epsilon, delta = release
    else:
        epsilon, delta = release, 0.0
    level = check.real(epsilon, "epsilon", least=0.0)
    chance = check.real(delta, "delta", least=0.0, most=1.0)
    if concentrated:
        # Of randomised response, exactly: Harrison and Manurangsi (2025); it is below e^2/2.
        level = raised(level * math.tanh(0.5 * level), 8.0)
    return level, chance


def _largest_rho(epsilon: float, delta: float) -> float:
    """Return a rho, nearly the largest, for which rho-zCDP is (epsilon, delta)-DP."""

    def holds(rho: float) -> bool:
        return PrivacyProfile.zcdp(rho).epsilon(delta).upper <= epsilon

    most = max(epsilon, 1.0)
    return bisect(holds, 0.0, most, absolute=2.0**-52 * most)[0]
