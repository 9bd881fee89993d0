"""The mechanisms that ``fastpriv audit`` measures when it is given none."""

from __future__ import annotations

from fastpriv.channels import AbstractChannel, HammingChannel, PosteriorChannel
from fastpriv.priors import Product


def example(epsilon: float) -> tuple[Product, dict[str, AbstractChannel]]:
    """Return a small prior and its two optimal mechanisms, which exist from ln 3 on."""
    prior = Product([[0.5, 0.3, 0.2], [0.6, 0.2, 0.2], [0.4, 0.35, 0.25]])
    return prior, {
        "E_d": HammingChannel(prior.space.n, prior.space.sizes, epsilon),
        "E_i": PosteriorChannel(prior, epsilon),
    }
