"""The levels of a channel in every notion, computed once."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from fastpriv.accounting.ledger.amounts import amount
from fastpriv.accounting.ledger.charges import Offer
from fastpriv.accounting.ledger.parts import written
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import REPLACED
from fastpriv.channels import AbstractChannel
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.levels import LEVELS
from fastpriv.measures.realised import (
    INFORMATION_ERROR,
    drawn_level,
    raised,
    raised_information,
    realised,
)
from fastpriv.notions.notion import Notion
from fastpriv.notions.registry import NOTIONS
from fastpriv.priors import Dense, Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Bracket, top

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class _Draws:
    """A channel as it is sampled: levels of the probabilities that ``sample`` draws with."""

    def __init__(self, channel: AbstractChannel) -> None:
        self.channel = channel

    @cached_property
    def _realised(self) -> tuple[AbstractChannel, float]:
        """The channel that is drawn from, and by how much its log-ratios may be exceeded."""
        return realised(self.channel)

    def level(self, notion: Notion, prior: Distribution | None) -> float:
        """Return a level of what is drawn, rounded up."""
        if LEVELS[notion.slug] is LEVELS["dp"]:  # draws have a level of their own, without slack
            return drawn_level(self.channel)
        if notion.slug == "leakage-factor":
            assert prior is not None
            return _share(self.level(NOTIONS["mutual-information"], prior), prior)
        drawn, slack = self._realised
        value = top(notion.level(drawn, prior))
        if notion.information:
            return raised_information(value * (1.0 + INFORMATION_ERROR), slack)
        return raised(value, slack)


def _share(told: float, prior: Distribution) -> float:
    """Return an information as a share of the entropy, rounded up."""
    entropy = prior.entropy()
    if isinstance(entropy, Bracket):
        return min(1.0, told / entropy.lower) if entropy.lower > 0.0 else 1.0
    # A database that is certain has nothing to tell.
    return min(1.0, told / entropy * (1.0 + INFORMATION_ERROR)) if entropy > 0.0 else 0.0


def _measurable(notions: Collection[str], scope: str) -> list[Notion]:
    """Return those of some notions that have a function and this scope."""
    chosen = (NOTIONS[slug] for slug in notions)
    return [notion for notion in chosen if notion.scope == scope and notion.slug in LEVELS]


@dataclass
class _Known:
    """Levels of one channel that have been computed, and its profile as text."""

    plain: dict[str, Decimal] = field(default_factory=dict)
    under: WeakKeyDictionary[Distribution, dict[str, Decimal]] = field(
        default_factory=WeakKeyDictionary
    )
    profile: str | None = None


#: Most databases of a prior that is told from others by its vector.
_COMPARED = 1 << 16
# Channels and priors do not change, so their levels are kept for as long as they live.
_KNOWN: WeakKeyDictionary[AbstractChannel, _Known] = WeakKeyDictionary()


def measured(
    mechanism: AbstractChannel | ArrayLike | PrivacyProfile,
    prior: Distribution | ArrayLike | None,
    notions: Collection[str],
    curve: bool,
    one_prior: bool,
) -> Offer:
    """Return a release by a channel with those of its levels that can be computed.

    Levels under a prior are left out where none is given. The profile is added if ``curve``, the
    fingerprint of the prior if ``one_prior``.
    """
    if isinstance(mechanism, PrivacyProfile):
        return _composed(mechanism, curve)
    channel = as_channel(mechanism, prior.space if isinstance(prior, Distribution) else None)
    known = _KNOWN.get(channel)
    if known is None:
        known = _KNOWN[channel] = _Known()
    draws = _Draws(channel)  # not kept: it may hold the channel itself
    for notion in _measurable(notions, "mechanism"):
        if notion.slug not in known.plain:
            known.plain[notion.slug] = amount(draws.level(notion, None), notion.slug)
    part = _profile_text(channel, known) if curve else None
    if prior is None:
        return Offer(known.plain, part, None, REPLACED)
    law = as_prior(prior, channel.space)
    under = known.under.get(law)
    if under is None:
        under = known.under[law] = {}
    for notion in _measurable(notions, "prior"):
        if notion.slug not in under:
            under[notion.slug] = amount(draws.level(notion, law), notion.slug)
    name = _fingerprint(law) if one_prior else None
    return Offer(known.plain | under, part, name, REPLACED)


def _composed(profile: PrivacyProfile, curve: bool) -> Offer:
    """Return releases that are known by their profile: its curve, and its level at delta 0."""
    level = profile._guaranteed(0.0)
    levels = {"dp": amount(level, "dp")} if level < math.inf else {}
    relation = profile.relation if profile._parts else None  # nothing holds for any
    return Offer(levels, written(profile) if curve else None, None, relation, profile=True)


def _profile_text(channel: AbstractChannel, known: _Known) -> str:
    if known.profile is None:
        known.profile = written(PrivacyProfile.realised(channel))
    return known.profile


def _fingerprint(law: Distribution) -> str:
    """Return a text that tells priors apart: a digest of all the numbers that define the law.

    Few databases are compared by their probabilities, so that one law said in two ways is one.
    """
    if law.space.size <= _COMPARED:
        law = Dense(law.pmf(), law.space)
    return law.identity.hex()[:32]
