"""What a release costs in each notion: its levels, combined by its law."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from fastpriv.accounting._amounts import amount, plus, times, up
from fastpriv.accounting.laws import LAWS, Law
from fastpriv.channels import AbstractChannel
from fastpriv.distributions import Distribution
from fastpriv.errors import InvalidInput
from fastpriv.measures._arguments import as_channel
from fastpriv.measures.leakage import information_privacy_level, leakage_factor
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Mechanism = AbstractChannel | ArrayLike | Mapping[str, Any]

#: Relative error of an information that is computed as a float, far above its few ulp.
_INFORMATION_ERROR = 2.0**-40


def drawn_level(channel: AbstractChannel) -> float:
    """DP level of the probabilities that are drawn, where the channel knows them."""
    realised = getattr(channel, "realised_level", channel.neighbour_level)
    return float(realised())


def _above(value: float | Bracket) -> float:
    return (value.upper if isinstance(value, Bracket) else value) * (1.0 + _INFORMATION_ERROR)


_PLAIN: Mapping[str, Callable[[AbstractChannel], float]] = {
    "strong-dp": lambda channel: channel.extreme_level(),
    "dp": drawn_level,
    "approximate-dp": drawn_level,  # for every delta, so for 0
    "product-row-pml": drawn_level,
    "product-row-max-information": drawn_level,
    "product-row-information": drawn_level,  # at most that
    "pml-all-priors": lambda channel: channel.extreme_level(),
    "maximal-leakage": lambda channel: channel.maximal_leakage(),
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


def levels(
    mechanism: Mechanism, prior: Distribution | ArrayLike | None, notions: Collection[str]
) -> dict[str, Decimal]:
    """Return the levels of a release: those declared, or those of ``notions`` that are computed.

    Levels under a prior are left out where none is given.
    """
    if isinstance(mechanism, Mapping):
        return declared(mechanism)
    channel = as_channel(mechanism, prior.space if isinstance(prior, Distribution) else None)
    known = _KNOWN.setdefault(channel, _Known())
    found = known.plain
    for notion in notions:
        if notion not in found and notion in _PLAIN:
            found[notion] = amount(_PLAIN[notion](channel), notion)
    if prior is None:
        return found
    under = known.under.get(prior) if isinstance(prior, Distribution) else None
    if under is None:
        law = channel.prior_for(prior)
        under = known.under[law] = {}
    else:
        law = prior  # type: ignore[assignment]
    for notion in notions:
        if notion not in under and notion in _UNDER_PRIOR:
            under[notion] = amount(_UNDER_PRIOR[notion](channel, law), notion)
    return found | under


def declared(given: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return declared levels as exact amounts, refusing names that are no notion."""
    for notion in given:
        if notion not in LAWS:
            raise InvalidInput(f"levels are of {', '.join(LAWS)}; got one of {notion!r:.60}")
    return {
        notion: amount(level, f"the {notion} level")
        for notion, level in given.items()
        if not isinstance(level, tuple | list)  # an (epsilon, delta), for `profile_text`
    }


def profile_text(mechanism: Mechanism) -> str:
    """Return the profile of one release as text: the channel's, or the worst that is declared."""
    from fastpriv.accounting._parts import written
    from fastpriv.accounting.profile import PrivacyProfile

    if isinstance(mechanism, Mapping):
        given = mechanism.get("approximate-dp", mechanism.get("dp"))
        if given is None:
            raise InvalidInput(
                "an (epsilon, delta) budget is charged the profile of a release; give the channel, "
                'or declare {"approximate-dp": (epsilon, delta)} or {"dp": epsilon}'
            )
        pair = given if isinstance(given, tuple | list) else (given, 0.0)
        if len(pair) != 2:
            raise InvalidInput(f"declare (epsilon, delta), got {given!r:.60}")
        epsilon, delta = (up(amount(value, "epsilon and delta")) for value in pair)
        if epsilon == math.inf or delta == 1.0:
            return written(PrivacyProfile.of(np.eye(2)))  # which shows its input
        return written(PrivacyProfile.from_epsilon_delta(epsilon, delta))
    channel = as_channel(mechanism)
    known = _KNOWN.setdefault(channel, _Known())
    if known.profile is None:
        known.profile = written(PrivacyProfile.of(channel))
    return known.profile


def charge(law: Law, found: Mapping[str, Decimal], begun: bool, count: int) -> Decimal:
    """Return what ``count`` releases add to the level of a notion."""
    if begun:
        return times(_level(found, law.later, law), count)
    first = _level(found, law.first, law)
    if count == 1:
        return first
    return plus(first, times(_level(found, law.later, law), count - 1))


def _level(found: Mapping[str, Decimal], needed: str, law: Law) -> Decimal:
    if needed in found:
        return found[needed]
    instead = "give prior=" if needed in _UNDER_PRIOR else "give the channel"
    raise InvalidInput(
        f"the {law.notion} budget is charged the {needed} level of this release ({law.name}), "
        f"which is not known; {instead} or declare it: {{{needed!r}: ...}}"
    )


def under_one_prior(law: Law) -> bool:
    """Whether levels add only when all are measured under the same prior."""
    return law.later in _UNDER_PRIOR


def fingerprint(prior: Distribution | ArrayLike | None, mechanism: Mechanism) -> str | None:
    """Return a text that tells priors apart: digits of the chances of a few databases."""
    if prior is None or isinstance(mechanism, Mapping):
        return None
    if isinstance(prior, Distribution) and prior in _FINGERPRINTS:
        return _FINGERPRINTS[prior]
    law = as_channel(mechanism).prior_for(prior)
    sizes = law.space.sizes
    probes = np.random.default_rng(0).integers(0, sizes, (8, len(sizes)))
    chances = " ".join(f"{value:.6g}" for value in np.atleast_1d(law.log_prob(probes)).tolist())
    text = f"{len(sizes)} {sizes[:8]} {chances}"
    found = _FINGERPRINTS[law] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return found
