"""The levels of a channel in every notion, computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from fastpriv.accounting.ledger.amounts import amount
from fastpriv.accounting.ledger.charges import Offer
from fastpriv.channels import AbstractChannel
from fastpriv.measures.arguments import as_channel
from fastpriv.measures.dp import posterior_level
from fastpriv.measures.draws import INFORMATION_ERROR, raised, raised_information
from fastpriv.measures.individual import individual_capacity
from fastpriv.measures.information import information
from fastpriv.measures.leakage import extreme_level, maxima_level
from fastpriv.measures.pointwise import information_privacy_level
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.realised import drawn_level, realised
from fastpriv.priors import Distribution
from fastpriv.priors.arguments import as_prior
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def _above(value: float | Bracket) -> float:
    return (value.upper if isinstance(value, Bracket) else value) * (1.0 + INFORMATION_ERROR)


class _Draws:
    """A channel, and the one that is drawn from with what its levels may exceed by."""

    def __init__(self, channel: AbstractChannel) -> None:
        self.channel = channel

    @cached_property
    def _realised(self) -> tuple[AbstractChannel, float]:
        return realised(self.channel)

    def raised(self, measure: Callable[[AbstractChannel], float]) -> float:
        """Return a level of what is drawn, rounded up."""
        drawn, slack = self._realised
        return raised(measure(drawn), slack)

    def told(self, measure: Callable[[AbstractChannel], float]) -> float:
        """Return an information or a capacity of what is drawn, rounded up."""
        drawn, slack = self._realised
        return raised_information(measure(drawn), slack)


def _dp(draws: _Draws) -> float:
    return drawn_level(draws.channel)


def _extreme(draws: _Draws) -> float:
    return draws.raised(extreme_level)


_PLAIN: Mapping[str, Callable[[_Draws], float]] = {
    "strong-dp": _extreme,
    "dp": _dp,
    "approximate-dp": _dp,  # for every delta, so for 0
    "product-row-pml": _dp,
    "product-row-max-information": _dp,
    "product-row-information": _dp,  # at most that
    "pml-all-priors": _extreme,
    "maximal-leakage": lambda draws: draws.raised(maxima_level),
    "individual-capacity": lambda draws: draws.told(lambda c: individual_capacity(c).upper),
}


def _information(draws: _Draws, prior: Distribution) -> float:
    return draws.told(lambda channel: _above(information(channel, prior)))


def _factor(draws: _Draws, prior: Distribution) -> float:
    told, entropy = _information(draws, prior), prior.entropy()
    if isinstance(entropy, Bracket):
        return min(1.0, told / entropy.lower) if entropy.lower > 0.0 else 1.0
    # A database that is certain has nothing to tell.
    return min(1.0, told / entropy * (1.0 + INFORMATION_ERROR)) if entropy > 0.0 else 0.0


_UNDER_PRIOR: Mapping[str, Callable[[_Draws, Distribution], float]] = {
    "identifiability": lambda draws, prior: draws.raised(
        lambda channel: posterior_level(channel, prior)
    ),
    "information-privacy": lambda draws, prior: draws.raised(
        lambda channel: information_privacy_level(channel, prior)
    ),
    "pml": lambda draws, prior: draws.raised(lambda channel: leakage_levels(channel, prior)[0]),
    "mutual-information": _information,
    "leakage-factor": _factor,
}


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
_FINGERPRINTS: WeakKeyDictionary[Distribution, str] = WeakKeyDictionary()


def measured(
    mechanism: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike | None,
    notions: Collection[str],
    curve: bool,
    one_prior: bool,
) -> Offer:
    """Return a release by a channel with those of its levels that can be computed.

    Levels under a prior are left out where none is given. The profile is added if ``curve``, the
    fingerprint of the prior if ``one_prior``.
    """
    channel = as_channel(mechanism, prior.space if isinstance(prior, Distribution) else None)
    known = _KNOWN.get(channel)
    if known is None:
        known = _KNOWN[channel] = _Known()
    draws = _Draws(channel)  # not kept: it may hold the channel itself
    for notion in notions:
        if notion not in known.plain and notion in _PLAIN:
            known.plain[notion] = amount(_PLAIN[notion](draws), notion)
    part = _profile_text(channel, known) if curve else None
    if prior is None:
        return Offer(known.plain, part)
    law = as_prior(prior, channel.space)
    under = known.under.get(law)
    if under is None:
        under = known.under[law] = {}
    for notion in notions:
        if notion not in under and notion in _UNDER_PRIOR:
            under[notion] = amount(_UNDER_PRIOR[notion](draws, law), notion)
    return Offer(known.plain | under, part, _fingerprint(law) if one_prior else None)


def _profile_text(channel: AbstractChannel, known: _Known) -> str:
    if known.profile is None:
        from fastpriv.accounting.ledger.parts import written
        from fastpriv.accounting.profile.profile import PrivacyProfile

        known.profile = written(PrivacyProfile.realised(channel))
    return known.profile


def _fingerprint(law: Distribution) -> str:
    """Return a text that tells priors apart: digits of the chances of a few databases."""
    if law not in _FINGERPRINTS:
        sizes = law.space.sizes
        probes = np.random.default_rng(0).integers(0, sizes, (8, len(sizes)))
        chances = np.atleast_1d(law.log_prob(probes)).tolist()
        text = f"{len(sizes)} {sizes[:8]} " + " ".join(f"{value:.6g}" for value in chances)
        _FINGERPRINTS[law] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return _FINGERPRINTS[law]
