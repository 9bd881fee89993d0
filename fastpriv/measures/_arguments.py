"""Channels and priors as users give them: objects of ours, or plain arrays."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fastpriv.channels import AbstractChannel, Channel
from fastpriv.distributions import Distribution
from fastpriv.errors import InvalidInput
from fastpriv.prior_sets import PriorSet
from fastpriv.spaces import Space


def as_channel(channel: AbstractChannel | ArrayLike, space: Space | None = None) -> AbstractChannel:
    """Return the channel, made from a plain matrix if it is one."""
    if isinstance(channel, AbstractChannel):
        return channel
    if isinstance(channel, Distribution):
        raise InvalidInput(f"the first argument must be a channel, got the prior {channel!r}")
    if hasattr(channel, "channel"):
        kind = type(channel).__name__
        raise InvalidInput(f"a channel or a matrix is expected, got a {kind}; give its channel")
    return Channel(channel, space)


def as_pair(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike
) -> tuple[AbstractChannel, Distribution]:
    """Return a channel and a prior on its space; a plain matrix takes the prior's space."""
    if isinstance(prior, PriorSet):
        raise InvalidInput("one prior is needed here; a PriorSet is taken by pml_level only")
    mechanism = as_channel(channel, prior.space if isinstance(prior, Distribution) else None)
    return mechanism, mechanism.prior_for(prior)
