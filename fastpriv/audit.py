"""Every level the library can compute for a mechanism, side by side."""

from __future__ import annotations

from fastpriv.channels import AbstractChannel, HammingChannel, PosteriorChannel
from fastpriv.distributions import Distribution, Product
from fastpriv.measures.indistinguishability import dp_level, identifiability_level
from fastpriv.measures.information import distortion, mutual_information
from fastpriv.results import Bracket


def levels(channel: AbstractChannel, prior: Distribution) -> dict[str, float | Bracket]:
    """Measure a mechanism under a prior: privacy levels in nats, and what it costs."""
    return {
        "differential privacy": dp_level(channel),
        "identifiability": identifiability_level(channel, prior),
        "mutual information": mutual_information(channel, prior),
        "distortion": distortion(channel, prior),
    }


def example(epsilon: float) -> tuple[Product, dict[str, AbstractChannel]]:
    """Return a small prior and its two optimal mechanisms, which exist from ln 3 on."""
    prior = Product([[0.5, 0.3, 0.2], [0.6, 0.2, 0.2], [0.4, 0.35, 0.25]])
    return prior, {
        "E_d": HammingChannel(prior.space.n, prior.space.sizes, epsilon),
        "E_i": PosteriorChannel(prior, epsilon),
    }
