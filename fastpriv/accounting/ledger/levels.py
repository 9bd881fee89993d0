"""Levels of a mechanism in every notion, measured once for as long as the mechanism lives.

This module imports measures and channels, so the ledger imports it at the first channel.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from fastpriv.accounting.ledger.amounts import amount
from fastpriv.accounting.ledger.budget import ZCDP, Offer, refuse_prior
from fastpriv.accounting.ledger.profiles import profile_text
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.accounting.profile.relations import REPLACED
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput, described
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.levels import LEVELS
from fastpriv.measures.realised import (
    INFORMATION_ERROR,
    drawn_level,
    raised_information,
    realised,
    with_draws,
)
from fastpriv.notions.notion import Notion
from fastpriv.notions.registry import NOTIONS
from fastpriv.priors import Dense, Distribution
from fastpriv.priors.base import as_prior
from fastpriv.results import Bracket, top

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Priors on at most this many databases are compared by their probability vectors.
_COMPARED = 1 << 16


@dataclass
class _Known:
    """Levels of one channel that have been computed, and its profile as text."""

    plain: dict[str, Decimal] = field(default_factory=dict)
    under: WeakKeyDictionary[Distribution, dict[str, Decimal]] = field(
        default_factory=WeakKeyDictionary
    )
    profile: str | None = None


# Channels and priors do not change, so their levels are kept for as long as they live.
_KNOWN: WeakKeyDictionary[AbstractChannel, _Known] = WeakKeyDictionary()


def measured(
    mechanism: AbstractChannel | ArrayLike | PrivacyProfile,
    prior: Distribution | ArrayLike | None,
    notions: Collection[str],
    curve: bool,
    one_prior: bool,
) -> Offer:
    """Return what a ledger may charge for a mechanism: the levels that can be computed.

    Levels under a prior are left out if none is given. The profile is added if ``curve``, the
    fingerprint of the prior if ``one_prior``.
    """
    if isinstance(mechanism, PrivacyProfile):
        refuse_prior(prior)
        return _of_profile(mechanism, curve, ZCDP in notions)
    if not isinstance(mechanism, AbstractChannel) and not _is_array(mechanism):
        raise InvalidInput(
            "mechanism must be a channel, a 2-D array, a release, a PrivacyProfile or levels such "
            f'as {{"dp": 0.1}}; got {described(mechanism)}. For steps of other libraries see '
            "fastpriv.adapters: dp_accounting, opendp and opacus make profiles of them."
        )
    channel = as_channel(mechanism, prior.space if isinstance(prior, Distribution) else None)
    known = _KNOWN.get(channel)
    if known is None:
        known = _KNOWN[channel] = _Known()
    draws = _Draws(channel)
    for notion in _measurable(notions, "mechanism"):
        if notion.slug not in known.plain:
            known.plain[notion.slug] = amount(draws.level(notion, None), notion.slug)
    if ZCDP in notions and ZCDP not in known.plain:
        rho = PrivacyProfile.realised(channel).zcdp_level().upper
        if rho < math.inf:
            known.plain[ZCDP] = amount(rho, "rho")
    if curve and known.profile is None:
        known.profile = profile_text(PrivacyProfile.realised(channel))
    part = known.profile if curve else None
    if prior is None:
        return Offer(known.plain, part, None, REPLACED)
    distribution = as_prior(prior, channel.space)
    under = known.under.get(distribution)
    if under is None:
        under = known.under[distribution] = {}
    for notion in _measurable(notions, "prior"):
        if notion.slug not in under:
            under[notion.slug] = amount(draws.level(notion, distribution), notion.slug)
    fingerprint = _fingerprint(distribution) if one_prior else None
    return Offer(known.plain | under, part, fingerprint, REPLACED)


def _is_array(mechanism: object) -> bool:
    """Whether a mechanism has rows; a number or a pair of numbers has none."""
    if isinstance(mechanism, list | tuple):
        return not any(isinstance(row, Real) for row in mechanism)
    return hasattr(mechanism, "__array__") and getattr(mechanism, "ndim", 2) > 1


def identified(
    mechanism: AbstractChannel | ArrayLike | PrivacyProfile, prior: Distribution | ArrayLike | None
) -> list[str | None]:
    """Return what identifies a mechanism and its prior, to recognise a spend that is repeated."""
    if isinstance(mechanism, PrivacyProfile):
        return ["profile", profile_text(mechanism), mechanism.relation]
    space = prior.space if isinstance(prior, Distribution) else None
    channel = as_channel(mechanism, space)
    under = None if prior is None else _fingerprint(as_prior(prior, channel.space))
    return ["channel", channel.identity.hex(), under]


def _of_profile(profile: PrivacyProfile, curve: bool, concentrated: bool) -> Offer:
    """Return what is known from a profile: its curve, its level at delta 0 and its zCDP level."""
    level = profile.cases.guaranteed(0.0)
    levels = {"dp": amount(level, "dp")} if level < math.inf else {}
    if concentrated and (rho := profile.zcdp_level().upper) < math.inf:
        levels[ZCDP] = amount(rho, "rho")
    relation = profile.relation if profile.parts else None  # the empty profile fits any relation
    return Offer(levels, profile_text(profile) if curve else None, None, relation, profile=True)


def _measurable(notions: Collection[str], scope: str) -> list[Notion]:
    """Return the notions of this scope that some function measures."""
    chosen = (NOTIONS[slug] for slug in notions if slug in NOTIONS)
    return [notion for notion in chosen if notion.scope == scope and notion.slug in LEVELS]


class _Draws:
    """A channel as it is sampled."""

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel = channel

    @cached_property
    def _realised(self) -> tuple[AbstractChannel, float]:
        """The channel that is drawn from, and by how much its log-ratios may be exceeded."""
        return realised(self._channel)

    def level(self, notion: Notion, prior: Distribution | None) -> float:
        """Return a level of the probabilities that ``sample`` draws with, rounded up."""
        if LEVELS[notion.slug] is LEVELS["dp"]:  # draws have a level of their own, without slack
            return drawn_level(self._channel)
        if notion.slug == "leakage-factor":
            assert prior is not None
            return _leakage_factor(self.level(NOTIONS["mutual-information"], prior), prior)
        drawn, slack = self._realised
        value = top(notion.level(drawn, prior))
        if notion.information:
            return raised_information(value * (1.0 + INFORMATION_ERROR), slack)
        return with_draws(value, slack)


def _leakage_factor(information: float, prior: Distribution) -> float:
    """Return an information divided by the entropy of the prior, rounded up."""
    entropy = prior.entropy()
    if isinstance(entropy, Bracket):
        return min(1.0, information / entropy.lower) if entropy.lower > 0.0 else 1.0
    if entropy == 0.0:  # a database that is certain reveals nothing
        return 0.0
    return min(1.0, information / entropy * (1.0 + INFORMATION_ERROR))


def _fingerprint(prior: Distribution) -> str:
    """Return a digest of all numbers that define a prior.

    Priors on few databases are compared by their probabilities, so that one distribution that is
    written in two ways is one.
    """
    if prior.space.size <= _COMPARED:
        prior = Dense(prior.pmf(), prior.space)
    return prior.identity.hex()[:32]
