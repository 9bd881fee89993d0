"""Budgets for steps whose levels are chosen after earlier outputs: filters and odometers.

Composed profiles, and the sum of squares in advanced composition, need levels that are fixed
beforehand; only mechanisms may depend on earlier outputs. If the next *level* depends on earlier
outputs, fewer theorems hold. The ones used here are proved in docs/theory/filters.md.
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
from fastpriv.accounting.ledger.amounts import (
    SUM_DIGITS,
    ZERO,
    amount,
    down,
    minus,
    plus,
    times,
    up,
)
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import (
    earlier_relation,
    one_relation,
    optional_relation,
)
from fastpriv.errors import InvalidInput, described, unread

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
#: Rounding of e tanh(e/2), in units in the last place.
_TANH_ULPS = 8.0


class _Spends:
    """Exact totals of the spent levels, safe for many threads."""

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
        self._level = amount(given["level"], "level", SUM_DIGITS)
        self._delta = amount(given["delta"], "delta", SUM_DIGITS)
        self._count = check.integer(given["count"], "count", 0)
        relation = optional_relation(given.get("relation"))
        recorded = given.get("recorded") is True or not self._count
        self._relation = relation if recorded else earlier_relation(relation)

    def _joined(self, release: Any) -> str | None:
        """Return the relation with one more step; the lock is held."""
        known = isinstance(release, PrivacyProfile) and bool(release.parts)
        return one_relation(self._relation, release.relation if known else None)


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
        """Charge steps if they fit the budget; otherwise spend nothing.

        Parameters
        ----------
        release : float, (epsilon, delta) or PrivacyProfile
            Level of a step, given any earlier outputs; or its profile, such as
            ``PrivacyProfile.of(channel)``. Profiles for another relation are refused.
        count : int
            Number of such steps.

        Returns
        -------
        bool
            Whether the steps were charged and may be run. Calls from many threads are safe.
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
        """Return whether steps would fit the budget now, without spending."""
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
        """Remaining epsilon (basic) or rho (zcdp) and delta, rounded down."""
        name = "epsilon" if self.rule == "basic" else "rho"
        with self._lock:
            left = minus(self._most, self._level), minus(self._deltas, self._delta)
        return {name: down(left[0]), "delta": down(left[1])}

    def to_dict(self) -> dict[str, Any]:
        """Return the budget and the totals for JSON; amounts are exact decimals."""
        given = {"epsilon": self.epsilon, "delta": self.delta, "rule": self.rule}
        with self._lock:
            return {**given, "reserved": self.reserved, "spent": self._spent()}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PrivacyFilter:
        """Return the filter described by the result of :meth:`to_dict`.

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
        return result

    def _restore(self, spent: Any) -> None:
        super()._restore(spent)
        if self._level > self._most or self._delta > self._deltas:
            raise InvalidInput("this filter has spent more than its budget")

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
    ...     odometer.spend(0.1)
    >>> round(odometer.epsilon(1e-6), 3)  # a filter of 5.22 admits as many
    6.33
    """

    def __init__(self, *, relation: str | None = None) -> None:
        super().__init__(relation)

    def spend(self, release: Any, count: int = 1) -> None:
        """Add steps, given by a level or a profile with a zCDP level."""
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
        with self._lock:
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
        return f"PrivacyOdometer({self._count:,} releases, rho {self.rho:.6g})"


def _levels(release: Any, concentrated: bool) -> tuple[float, float]:
    """Return the level of a step, as rho if ``concentrated``, and its delta."""
    if isinstance(release, PrivacyProfile):
        level = release.zcdp_level().upper if concentrated else release.epsilon(0.0).upper
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
    probability = check.real(delta, "delta", least=0.0, most=1.0)
    if concentrated:
        # The zCDP level of randomised response, below e^2/2 (Harrison and Manurangsi 2025).
        level = raised(level * math.tanh(0.5 * level), _TANH_ULPS)
    return level, probability


def _largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho for which rho-zCDP is (epsilon, delta)-DP, rounded down."""

    def holds(rho: float) -> bool:
        return PrivacyProfile.zcdp(rho).epsilon(delta).upper <= epsilon

    top = max(epsilon, 1.0)
    return bisect(holds, 0.0, top, absolute=_RHO_WIDTH * top)[0]
