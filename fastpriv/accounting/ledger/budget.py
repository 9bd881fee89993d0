"""What may be spent, and what a spend adds to the total of each notion."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fastpriv._core.rounding import raised
from fastpriv.accounting.laws import LAWS, Law
from fastpriv.accounting.ledger.amounts import ZERO, amount, down, minus, plus, shortest, times, up
from fastpriv.accounting.ledger.store import State, Store, counted
from fastpriv.accounting.profile.relations import one_relation
from fastpriv.errors import BudgetExceeded, InvalidInput, described, did_you_mean
from fastpriv.notions.registry import NOTIONS

if TYPE_CHECKING:
    from fastpriv.accounting.ledger.profiles import Composer

#: The notion whose budget may be a pair, epsilon at a delta.
CURVE = "approximate-dp"
#: Levels that profiles have: rho of zCDP, and the probability that rho does not hold.
ZCDP, DELTA = "zcdp", "delta"
#: Rounding of e tanh(e/2), in units in the last place.
_TANH_ULPS = 8.0


class NotBrief(Exception):
    """All profiles would have to be composed again, and others would wait meanwhile."""


@dataclass(frozen=True)
class Offer:
    """What is known about a step that is to be charged.

    Attributes
    ----------
    levels : mapping
        Its level in each notion that is known.
    part : str or None
        Its privacy profile as text, for budgets at (epsilon, delta).
    prior : str or None
        Fingerprint of the prior under which it was measured.
    relation : str or None
        Which databases are neighbours; None for declared levels, which hold for the ledger's.
    profile : bool
        Whether the step is known by an (epsilon, delta) curve, which gives few levels.
    fails : bool
        Whether its levels hold except with a probability.
    """

    levels: Mapping[str, Decimal]
    part: str | None = None
    prior: str | None = None
    relation: str | None = None
    profile: bool = False
    fails: bool = False

    def charge(self, rule: Law, begun: bool, count: int) -> Decimal:
        """Return what ``count`` steps add to the total of a notion."""
        if begun:
            return times(self._level(rule.later, rule), count)
        first = self._level(rule.first, rule)
        if count == 1:
            return first
        return plus(first, times(self._level(rule.later, rule), count - 1))

    def _level(self, needed: str, rule: Law) -> Decimal:
        if needed in self.levels:
            return self.levels[needed]
        if needed == DELTA and not self.fails:
            return ZERO
        if needed == ZCDP:
            raise InvalidInput(
                "the zcdp budget is charged the zCDP level of this release, which is infinite or "
                'not known. Give its profile, or declare {"zcdp": rho} or {"dp": epsilon}.'
            )
        if self.profile:
            why = "infinite" if needed == "dp" else "not known from its profile"
            raise InvalidInput(
                f"the {rule.notion} budget is charged the {needed} level of this release, which is "
                f'{why}. Use the budget {{"approximate-dp": (epsilon, delta)}}.'
            )
        instead = "give a prior" if _under_prior(needed) else "give the channel"
        raise InvalidInput(
            f"the {rule.notion} budget is charged the {needed} level of this release, which is not "
            f"known; {instead} or declare it (--level {needed}=...)."
        )


def refuse_prior(prior: object) -> None:
    """Refuse a prior with a mechanism that is not a channel, such as a count by position."""
    if prior is None:
        return
    hint = f" Did you mean count={prior}?" if isinstance(prior, int) else ""
    raise InvalidInput(
        f"prior goes with a channel only; got {described(prior)} with levels, a release or a "
        f"profile.{hint} Leave it out."
    )


def declared(given: Mapping[str, Any], curve: bool) -> Offer:
    """Return a step whose levels are declared; with its worst profile if ``curve``."""
    for notion in given:
        if notion not in LAWS:
            raise _unknown_notion("a level", notion)
    levels = {
        notion: amount(level, f"the {notion} level")
        for notion, level in given.items()
        if not isinstance(level, tuple | list)  # an (epsilon, delta)
    }
    pairs = len(levels) < len(given)
    if ZCDP not in levels and "dp" in levels and levels["dp"].is_finite():
        levels[ZCDP] = amount(pure_zcdp(up(levels["dp"])), "rho")
    part = _worst_profile(given) if curve else None
    return Offer(levels, part, profile=pairs, fails=pairs)


def pure_zcdp(epsilon: float) -> float:
    """Return the zCDP level of a step of DP level epsilon, rounded up.

    It is that of randomised response, e tanh(e/2) < e^2/2 (Harrison and Manurangsi 2025).
    """
    return raised(epsilon * math.tanh(0.5 * epsilon), _TANH_ULPS)


def _worst_profile(given: Mapping[str, Any]) -> str:
    from fastpriv.accounting.ledger.profiles import profile_text  # only when needed
    from fastpriv.accounting.profile.profile import PrivacyProfile

    level = given.get(CURVE, given.get("dp"))
    if level is None and ZCDP in given:
        return profile_text(PrivacyProfile.zcdp(up(amount(given[ZCDP], "rho"))))
    if level is None:
        raise InvalidInput(
            "an (epsilon, delta) budget is charged the profile of a release; give the channel, or "
            'declare {"approximate-dp": (epsilon, delta)} or {"dp": epsilon}.'
        )
    pair = level if isinstance(level, tuple | list) else (level, 0)
    if len(pair) != 2:
        raise InvalidInput(
            f'levels must be {{"approximate-dp": (epsilon, delta)}}; got {described(level)}. '
            "Give both numbers."
        )
    epsilon, delta = (up(amount(value, "epsilon and delta")) for value in pair)
    if epsilon == float("inf") or delta == 1.0:
        return profile_text(PrivacyProfile.of([[1.0, 0.0], [0.0, 1.0]]))  # reveals its input
    return profile_text(PrivacyProfile.from_epsilon_delta(epsilon, delta))


class Budget:
    """The level allowed for each notion, with the rules by which steps use it up.

    An (epsilon, delta) budget has a ``delta``, and its limit is the epsilon. If it is ``adaptive``,
    it holds also for levels that are chosen after earlier outputs.

    Parameters
    ----------
    given : mapping
        Limits by notion.
    store : Store, optional
        Keeps the composed profiles of the ledger.
    """

    def __init__(self, given: Mapping[str, Any], store: Store | None = None) -> None:
        self._store = store
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(
                'budget must be a mapping such as {"dp": 3.0} or {"approximate-dp": (3.0, 1e-6)}; '
                f"got {described(given)}."
            )
        self.limits: dict[str, Decimal] = {}
        self.delta: Decimal | None = None
        self.adaptive = False
        self.laws: dict[str, Law] = {}
        for notion, value in sorted(given.items(), key=lambda item: str(item[0])):
            if notion not in LAWS:
                raise _unknown_notion("a budget", notion)
            rule, limit = LAWS[notion], value
            if isinstance(value, tuple | list | Mapping):
                limit, self.delta, self.adaptive = _pair(notion, value)
                how = (
                    "zCDP levels add, chosen as one likes" if self.adaptive else "profiles compose"
                )
                rule = replace(rule, name=f"{how}; epsilon at delta {float(self.delta):g}")
            self.limits[notion] = _finite(limit, f"the {notion} budget")
            self.laws[notion] = rule
        sums = [rule for notion, rule in self.laws.items() if not self._is_curve(notion)]
        self._later = {rule.later for rule in sums}
        self._first = self._later | {rule.first for rule in sums}
        #: Whether levels add only if all are measured under the same prior.
        self.under_one_prior = any(map(_under_prior, self._later))

    def _is_curve(self, notion: str) -> bool:
        return notion == CURVE and self.delta is not None

    def wanted(self, begun: bool) -> set[str]:
        """Return the notions whose levels a step needs; the first step needs more."""
        return self._later if begun else self._first

    def stored(self) -> dict[str, Any]:
        """Return the budget as text, to be read again."""
        limits: dict[str, Any] = {notion: str(limit) for notion, limit in self.limits.items()}
        if self.delta is not None:
            limits[CURVE] = [limits[CURVE], str(self.delta), *["adaptive"] * self.adaptive]
        return limits

    def shown(self) -> dict[str, Any]:
        """Return the budget as floats."""
        limits: dict[str, Any] = {notion: float(limit) for notion, limit in self.limits.items()}
        if self.delta is not None:
            limits[CURVE] = limits[CURVE], float(self.delta), *["adaptive"] * self.adaptive
        return limits

    def amended(self, given: Mapping[str, Any]) -> Budget:
        """Return the budget with other limits of the same notions, at the same delta."""
        result = Budget(given, self._store)
        same = (result.limits.keys(), result.delta, result.adaptive)
        if same != (self.limits.keys(), self.delta, self.adaptive):
            raise InvalidInput(
                "an amended budget must have the notions and the delta of the ledger, "
                f"{described(self.stored())}; got {described(result.stored())}. Other notions need "
                "a new ledger."
            )
        if "_composer" in self.__dict__:
            result.__dict__["_composer"] = self._composer
        return result

    @property
    def composes(self) -> bool:
        """Whether a charge needs the composition of profiles, which takes milliseconds."""
        return self.delta is not None and not self.adaptive

    def charges(
        self, before: State, offer: Offer, count: int, brief: bool = False
    ) -> dict[str, Decimal]:
        """Return what ``count`` steps add to each total; if ``brief``, soon or never."""
        begun = before.spends > 0
        _joined(before, offer)  # before anything is composed
        return {
            notion: self._rise(before, offer, count, brief)
            if self._is_curve(notion)
            else offer.charge(self.laws[notion], begun, count)
            for notion in self.limits
        }

    def after(
        self, before: State, charged: Mapping[str, Decimal], offer: Offer, count: int
    ) -> State:
        """Return the totals after a spend, or raise if it does not fit."""
        if offer.prior is not None and before.prior not in (None, offer.prior):
            raise InvalidInput(
                "mutual information adds under one prior, but earlier releases of this ledger "
                "were measured under another one; use a ledger for each prior."
            )
        spent = {notion: plus(before.spent[notion], charged[notion]) for notion in self.limits}
        for notion, total in spent.items():
            if total > self.limits[notion]:
                left = minus(self.limits[notion], before.spent[notion])
                limit = float(self.limits[notion])
                raise BudgetExceeded(notion, up(charged[notion]), down(left), limit)
        parts, mark = counted(before, offer.part, count)
        relation, recorded = _joined(before, offer)
        return replace(
            before,
            entries=before.entries + 1,
            spends=before.spends + 1,
            spent=spent,
            prior=before.prior or offer.prior,
            parts=parts,
            mark=mark,
            relation=relation,
            recorded=recorded,
        )

    def _rise(self, before: State, offer: Offer, count: int, brief: bool) -> Decimal:
        """Return how much the composed epsilon rises at the budget's delta."""
        level = self.epsilon(_more(before.parts, offer.part, count), offer.part, brief)
        return max(minus(level, before.spent[CURVE]), ZERO)

    def epsilon(
        self, parts: Mapping[str, int], own: str | None = None, brief: bool = False
    ) -> Decimal:
        """Return epsilon of all spends together at the budget's delta, rounded up."""
        if self.adaptive:
            from fastpriv.accounting.ledger.profiles import adaptive_epsilon  # only when needed

            return Decimal(repr(float(adaptive_epsilon(parts, down(self.delta or ZERO)))))
        level = self._composer.epsilon(parts, own, brief)
        if level is None:
            raise NotBrief
        return Decimal(repr(float(level)))

    def to_store(self, after: State) -> bytes | None:
        """Return the composed profiles of spends as bytes, if the store needs them."""
        if not self.composes:
            return None
        return self._composer.to_store(after.parts, after.entries, after.mark)

    def keep(self, after: State, stored: bool) -> None:
        """Keep the composed profiles of spends that were made, and possibly stored."""
        if self.composes:
            self._composer.spent(after.parts, stored)

    @cached_property
    def _composer(self) -> Composer:
        from fastpriv.accounting.ledger.profiles import Composer  # only when needed

        return Composer(down(self.delta or ZERO), self._store)


def _joined(before: State, offer: Offer) -> tuple[str | None, bool]:
    """Return the relation with one more spend, and whether all spends were checked against it."""
    if offer.relation is None:  # a declared level is for the relation of the ledger
        return before.relation, before.recorded or not before.spends
    known = before.neighbours
    if not before.recorded and known not in (None, offer.relation):
        raise InvalidInput(
            f"this ledger, of an earlier version, is known to hold for {known!r} only; if all its "
            f"spends were made for {offer.relation!r}, open it with relation={offer.relation!r}."
        )
    return one_relation(known, offer.relation), True


def _more(parts: Mapping[str, int], part: str | None, count: int) -> Mapping[str, int]:
    return parts if part is None else {**parts, part: parts.get(part, 0) + count}


def _under_prior(slug: str) -> bool:
    return slug in NOTIONS and NOTIONS[slug].scope == "prior"


def _unknown_notion(what: str, notion: object) -> InvalidInput:
    """Return the error for a notion without a composition rule."""
    return InvalidInput(
        f"{what} must be of a notion with a composition rule, such as 'dp'; got "
        f"{described(notion)}{did_you_mean(notion, LAWS) or '. See fastpriv.accounting.LAWS.'}"
    )


def _pair(notion: str, value: Any) -> tuple[Any, Decimal, bool]:
    """Return epsilon and delta of a budget that has both, and whether it is adaptive."""
    if notion != CURVE:
        raise InvalidInput(
            f'an (epsilon, delta) budget must be under the notion "{CURVE}"; got '
            f'{described(notion)}. Write {{"{CURVE}": (epsilon, delta)}}.'
        )
    try:
        if isinstance(value, Mapping):
            epsilon, delta, *rest = value["epsilon"], value["delta"], value.get("levels", "fixed")
        else:
            epsilon, delta, *rest = value
        levels = rest[0] if rest else "fixed"
        if levels not in ("fixed", "adaptive") or len(rest) > 1:
            raise ValueError
    except (KeyError, ValueError):
        raise InvalidInput(
            f'the {CURVE} budget must be (epsilon, delta) or (epsilon, delta, "adaptive"); got '
            f"{described(value)}."
        ) from None
    exact = amount(delta, "delta")
    if not 0 < exact < 1:
        raise InvalidInput(
            f'delta must be between 0 and 1; got {described(delta)}. For delta 0 use a "dp" budget.'
        )
    return epsilon, shortest(exact), levels == "adaptive"


def _finite(value: Any, name: str) -> Decimal:
    limit = amount(value, name)
    if not limit.is_finite():
        raise InvalidInput(
            f"{name} must be finite; got {described(value)}. Give the largest level you accept."
        )
    return shortest(limit)
