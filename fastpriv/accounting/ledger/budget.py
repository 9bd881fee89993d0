"""What may be spent, and what a release takes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fastpriv.accounting.laws import LAWS, Law
from fastpriv.accounting.ledger.amounts import ZERO, amount, down, minus, plus, up
from fastpriv.accounting.ledger.charges import Offer, charge, under_one_prior, unknown_notion
from fastpriv.accounting.ledger.rows import State
from fastpriv.accounting.profile.relations import one_relation
from fastpriv.errors import BudgetExceeded, InvalidInput, described

if TYPE_CHECKING:
    from fastpriv.accounting.ledger.composer import Composer

#: The notion whose budget may be a pair, epsilon at a delta.
CURVE = "approximate-dp"


class Budget:
    """The level allowed for each notion, with the laws by which releases use it up.

    ``delta`` is that of an (epsilon, delta) budget, whose limit is then the epsilon. Where it is
    ``adaptive``, it holds also if levels are chosen after earlier outputs. ``stored_law`` returns
    the composed law that the ledger's file keeps.
    """

    def __init__(
        self, given: Mapping[str, Any], stored_law: Callable[[], bytes | None] = lambda: None
    ) -> None:
        self.stored_law = stored_law
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(
                f'budget must be a mapping such as {{"dp": 3.0}}, got {described(given)}'
            )
        self.limits: dict[str, Decimal] = {}
        self.delta: Decimal | None = None
        self.adaptive = False
        self.laws: dict[str, Law] = {}
        for notion, value in sorted(given.items(), key=lambda item: str(item[0])):
            if notion not in LAWS:
                raise unknown_notion("a budget", notion)
            law, limit = LAWS[notion], value
            if isinstance(value, tuple | list | Mapping):
                limit, self.delta, self.adaptive = _pair(notion, value)
                how = (
                    "zCDP levels add, chosen as one likes" if self.adaptive else "profiles compose"
                )
                law = replace(law, name=f"{how}; epsilon at delta {float(self.delta):g}")
            self.limits[notion] = _finite(limit, f"the {notion} budget")
            self.laws[notion] = law
        sums = [law for notion, law in self.laws.items() if not self._is_curve(notion)]
        self._later = {law.later for law in sums}
        self._first = self._later | {law.first for law in sums}
        self.under_one_prior = any(under_one_prior(law) for law in sums)

    def _is_curve(self, notion: str) -> bool:
        return notion == CURVE and self.delta is not None

    def wanted(self, begun: bool) -> set[str]:
        """Notions that levels of a release are needed of; more for the first."""
        return self._later if begun else self._first

    def stored(self) -> dict[str, Any]:
        """Return it as text, to be read again."""
        limits: dict[str, Any] = {notion: str(limit) for notion, limit in self.limits.items()}
        if self.delta is not None:
            limits[CURVE] = [limits[CURVE], str(self.delta), *["adaptive"] * self.adaptive]
        return limits

    def shown(self) -> dict[str, Any]:
        """Return it as floats."""
        limits: dict[str, Any] = {notion: float(limit) for notion, limit in self.limits.items()}
        if self.delta is not None:
            limits[CURVE] = limits[CURVE], float(self.delta), *["adaptive"] * self.adaptive
        return limits

    def empty(self) -> State:
        """Return the totals of no release."""
        return State(0, dict.fromkeys(self.limits, ZERO), None, {})

    def charges(self, before: State, offer: Offer, count: int) -> dict[str, Decimal]:
        """Return what releases add to each total."""
        begun = before.entries > 0
        _joined(before, offer)  # before anything is composed
        return {
            notion: self._rise(before, offer, count)
            if self._is_curve(notion)
            else charge(self.laws[notion], offer, begun, count)
            for notion in self.limits
        }

    def after(
        self, before: State, charged: Mapping[str, Decimal], offer: Offer, count: int
    ) -> State:
        """Return the totals with a release, or raise if it does not fit."""
        if offer.prior is not None and before.prior not in (None, offer.prior):
            raise InvalidInput(
                "mutual information adds under one prior, but earlier releases of this ledger "
                "were measured under another one; use a ledger for each prior"
            )
        spent = {notion: plus(before.spent[notion], charged[notion]) for notion in self.limits}
        for notion, total in spent.items():
            if total > self.limits[notion]:
                left = minus(self.limits[notion], before.spent[notion])
                limit = float(self.limits[notion])
                raise BudgetExceeded(notion, up(charged[notion]), down(left), limit)
        parts = _more(before.parts, offer.part, count)
        relation, recorded = _joined(before, offer)
        prior = before.prior or offer.prior
        return State(before.entries + 1, spent, prior, parts, relation=relation, recorded=recorded)

    def _rise(self, before: State, offer: Offer, count: int) -> Decimal:
        """How much epsilon rises, at the budget's delta, when the profiles are composed."""
        level = self.epsilon(_more(before.parts, offer.part, count))
        return max(minus(level, before.spent[CURVE]), ZERO)

    def epsilon(self, parts: Mapping[str, int]) -> Decimal:
        """Epsilon of releases together at the budget's delta, rounded up."""
        if self.adaptive:
            from fastpriv.accounting.ledger.parts import filtered_level_of  # loads kernels

            return Decimal(repr(float(filtered_level_of(parts, down(self.delta or ZERO)))))
        return Decimal(repr(float(self._composer.level(parts))))

    def keep(self, parts: Mapping[str, int]) -> bytes | None:
        """Keep the composed law of releases; return it where the ledger's file should, too."""
        return None if self.delta is None or self.adaptive else self._composer.spent(parts)

    @cached_property
    def _composer(self) -> Composer:
        from fastpriv.accounting.ledger.composer import Composer  # profiles load the kernels

        return Composer(down(self.delta or ZERO), self.stored_law)


def _joined(before: State, offer: Offer) -> tuple[str | None, bool]:
    """Return the relation with one more spend, and whether all spends were checked against it."""
    if offer.relation is None:  # a declared level is for the relation of the ledger
        return before.relation, before.recorded or not before.entries
    known = before.neighbours
    if not before.recorded and known not in (None, offer.relation):
        raise InvalidInput(
            f"this ledger, of an earlier version, is known to hold for {known!r} only; if all its "
            f"spends were made for {offer.relation!r}, open it with relation={offer.relation!r}"
        )
    return one_relation(known, offer.relation), True


def _more(parts: Mapping[str, int], part: str | None, count: int) -> Mapping[str, int]:
    return parts if part is None else {**parts, part: parts.get(part, 0) + count}


def _pair(notion: str, value: Any) -> tuple[Any, Decimal, bool]:
    """Return the epsilon and the delta of a budget that has both, and whether it is adaptive."""
    if notion != CURVE:
        raise InvalidInput(
            f'an (epsilon, delta) budget is of "{CURVE}", got one of {described(notion)}'
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
            f"{described(value)}"
        ) from None
    least = amount(delta, "delta")
    if not 0 < least < 1:
        raise InvalidInput(
            f'delta must lie between 0 and 1, got {described(delta)}; for 0 budget "dp"'
        )
    return epsilon, least.normalize(), levels == "adaptive"


def _finite(value: Any, name: str) -> Decimal:
    limit = amount(value, name)
    if not limit.is_finite():
        raise InvalidInput(f"{name} must be finite, got {described(value)}")
    return limit.normalize()
