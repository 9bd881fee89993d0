"""The levels of a channel in every notion, computed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from fastpriv.accounting._amounts import amount
from fastpriv.accounting._charges import Offer
from fastpriv.channels import AbstractChannel
from fastpriv.distributions import Distribution
from fastpriv.measures._arguments import as_channel
from fastpriv.measures.individual import individual_capacity
from fastpriv.measures.leakage import information_privacy_level, leakage_factor
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: Relative error of an information that is computed as a float, far above its few ulp.
_INFORMATION_ERROR = 2.0**-40


def _above(value: float | Bracket) -> float:
    return (value.upper if isinstance(value, Bracket) else value) * (1.0 + _INFORMATION_ERROR)


def _drawn(channel: AbstractChannel) -> float:
    """DP level of the chances with which the channel is drawn from."""
    return channel.realised_level()


_PLAIN: Mapping[str, Callable[[AbstractChannel], float]] = {
    "strong-dp": lambda channel: channel.extreme_level(),
    "dp": _drawn,
    "approximate-dp": _drawn,  # for every delta, so for 0
    "product-row-pml": _drawn,
    "product-row-max-information": _drawn,
    "product-row-information": _drawn,  # at most that
    "pml-all-priors": lambda channel: channel.extreme_level(),
    "maximal-leakage": lambda channel: channel.maximal_leakage(),
    "individual-capacity": lambda channel: individual_capacity(channel).upper,
}
_UNDER_PRIOR: Mapping[str, Callable[[AbstractChannel, Distribution], float]] = {
    "identifiability": lambda channel, prior: channel.posterior_level(prior),
    "information-privacy": information_privacy_level,
    "pml": lambda channel, prior: channel.leakage_levels(prior)[0],
    "mutual-information": lambda channel, prior: _above(channel.information(prior)),
    "leakage-factor": lambda channel, prior: min(1.0, _above(leakage_factor(channel, prior))),
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
    for notion in notions:
        if notion not in known.plain and notion in _PLAIN:
            known.plain[notion] = amount(_PLAIN[notion](channel), notion)
    part = _profile_text(channel, known) if curve else None
    if prior is None:
        return Offer(known.plain, part)
    law = prior if isinstance(prior, Distribution) else channel.prior_for(prior)
    under = known.under.get(law)
    if under is None:
        under = known.under[channel.prior_for(law)] = {}
    for notion in notions:
        if notion not in under and notion in _UNDER_PRIOR:
            under[notion] = amount(_UNDER_PRIOR[notion](channel, law), notion)
    return Offer(known.plain | under, part, _fingerprint(law) if one_prior else None)


def _profile_text(channel: AbstractChannel, known: _Known) -> str:
    if known.profile is None:
        from fastpriv.accounting._parts import written
        from fastpriv.accounting.profile import PrivacyProfile

        known.profile = written(PrivacyProfile.of(channel))
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
