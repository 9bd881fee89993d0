"""Channels and priors as users give them: objects of ours, or plain arrays."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fastpriv.channels import AbstractChannel, Channel
from fastpriv.distributions import Distribution


def as_channel(channel: AbstractChannel | ArrayLike) -> AbstractChannel:
    """Return the channel, made from a plain matrix if it is one."""
    return channel if isinstance(channel, AbstractChannel) else Channel(channel)


def as_pair(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike
) -> tuple[AbstractChannel, Distribution]:
    """Return a channel and a prior on its space; a plain matrix takes the prior's space."""
    if isinstance(channel, AbstractChannel):
        mechanism: AbstractChannel = channel
    else:
        mechanism = Channel(channel, prior.space if isinstance(prior, Distribution) else None)
    return mechanism, mechanism.prior_for(prior)
