"""What releases add to the level of a notion, from the levels of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from fastpriv.accounting.laws import LAWS, Law
from fastpriv.accounting.ledger.amounts import amount, plus, times, up
from fastpriv.errors import InvalidInput, described, did_you_mean
from fastpriv.notions.registry import NOTIONS


@dataclass(frozen=True)
class Offer:
    """A release that is to be charged.

    Attributes
    ----------
    levels : mapping
        Its level in each notion that is known.
    part : str or None
        Its privacy profile as text, where a budget needs that.
    prior : str or None
        What tells the prior that it was measured under from others.
    relation : str or None
        What neighbours are; None for declared levels, which are for the relation of the ledger.
    profile : bool
        Whether the release is known by an (epsilon, delta) curve, which gives few levels.
    """

    levels: Mapping[str, Decimal]
    part: str | None = None
    prior: str | None = None
    relation: str | None = None
    profile: bool = False


def declared(given: Mapping[str, Any], curve: bool) -> Offer:
    """Return a release whose levels are declared; with its worst profile if ``curve``."""
    for notion in given:
        if notion not in LAWS:
            raise unknown_notion("a level", notion)
    levels = {
        notion: amount(level, f"the {notion} level")
        for notion, level in given.items()
        if not isinstance(level, tuple | list)  # an (epsilon, delta)
    }
    pairs = len(levels) < len(given)
    return Offer(levels, _worst_profile(given) if curve else None, profile=pairs)


def unknown_notion(what: str, notion: object) -> InvalidInput:
    """Return the error for a notion that no budget is of."""
    return InvalidInput(
        f"{what} must be of a notion in fastpriv.accounting.LAWS, such as 'dp'; got one of "
        f"{described(notion)}{did_you_mean(notion, LAWS)}"
    )


def _worst_profile(given: Mapping[str, Any]) -> str:
    from fastpriv.accounting.ledger.parts import written  # profiles load the kernels
    from fastpriv.accounting.profile.profile import PrivacyProfile

    level = given.get("approximate-dp", given.get("dp"))
    if level is None:
        raise InvalidInput(
            "an (epsilon, delta) budget is charged the profile of a release; give the channel, or "
            'declare {"approximate-dp": (epsilon, delta)} or {"dp": epsilon}'
        )
    pair = level if isinstance(level, tuple | list) else (level, 0)
    if len(pair) != 2:
        raise InvalidInput(f"declare (epsilon, delta), got {described(level)}")
    epsilon, delta = (up(amount(value, "epsilon and delta")) for value in pair)
    if epsilon == float("inf") or delta == 1.0:
        return written(PrivacyProfile.of([[1.0, 0.0], [0.0, 1.0]]))  # which shows its input
    return written(PrivacyProfile.from_epsilon_delta(epsilon, delta))


def charge(law: Law, offer: Offer, begun: bool, count: int) -> Decimal:
    """Return what ``count`` releases add to the level of a notion."""
    if begun:
        return times(_level(offer, law.later, law), count)
    first = _level(offer, law.first, law)
    if count == 1:
        return first
    return plus(first, times(_level(offer, law.later, law), count - 1))


def _level(offer: Offer, needed: str, law: Law) -> Decimal:
    if needed in offer.levels:
        return offer.levels[needed]
    if offer.profile:
        why = "infinite" if needed == "dp" else "not known from its profile"
        raise InvalidInput(
            f"the {law.notion} budget is charged the {needed} level of this release, which is "
            f'{why}. Use the budget {{"approximate-dp": (epsilon, delta)}}'
        )
    instead = "give a prior" if _under_prior(needed) else "give the channel"
    raise InvalidInput(
        f"the {law.notion} budget is charged the {needed} level of this release, which is not "
        f"known; {instead} or declare it (--level {needed}=...)"
    )


def under_one_prior(law: Law) -> bool:
    """Whether levels add only when all are measured under the same prior."""
    return _under_prior(law.later)


def _under_prior(slug: str) -> bool:
    return NOTIONS[slug].scope == "prior"
