"""Channels, priors, rows and outputs as users give them: objects of the package or arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Ints
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.errors import InvalidInput, described, short
from fastpriv.priors import Distribution
from fastpriv.priors.arguments import as_prior
from fastpriv.priors.sets import PriorSet
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
    if not _array_like(channel):
        raise InvalidInput(
            f"a finite channel or a matrix of probabilities is expected, got {described(channel)}; "
            "noise with infinitely many outputs has measures of its own, see its methods"
        )
    return Channel(channel, space)


def _array_like(given: object) -> bool:
    """Whether it may hold numbers: a sequence, an array, a frame; or names a file that does."""
    return (
        isinstance(given, Sequence | os.PathLike)
        or hasattr(given, "__array__")
        or hasattr(given, "__len__")
    )


def as_pair(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike
) -> tuple[AbstractChannel, Distribution]:
    """Return a channel and a prior on its space; a plain matrix takes the prior's space."""
    if isinstance(prior, PriorSet):
        raise InvalidInput(
            "one prior is needed here; a PriorSet is taken by pml_level, row_pml, conditional_pml "
            "and individual_capacity"
        )
    _same_labels(channel, prior)
    mechanism = as_channel(channel, prior.space if isinstance(prior, Distribution) else None)
    return mechanism, as_prior(prior, mechanism.space)


def _same_labels(channel: object, prior: object) -> None:
    """Refuse a labelled matrix and a labelled vector (pandas) whose labels are in other orders."""
    rows, values = getattr(channel, "index", None), getattr(prior, "index", None)
    equals = getattr(rows, "equals", None)
    if equals is None or not hasattr(values, "equals") or equals(values):
        return
    raise InvalidInput(
        "the labels of the prior are not those of the channel's rows, in the same order; align "
        "them: prior.reindex(channel.index), or give .to_numpy() of both"
    )


def row_number(mechanism: AbstractChannel | Distribution, i: Any) -> int:
    """Return the number of a row, checked."""
    number = check.integer(i, "row", 0)
    if number >= mechanism.space.n:
        raise InvalidInput(f"row must be below n = {mechanism.space.n}, got {short(number)}")
    return number


def output_rows(mechanism: AbstractChannel, y: ArrayLike) -> Ints:
    """Return one output as rows of the output space, from its index or its rows."""
    space: Space = mechanism.output_space
    if check.array(y, "y").ndim == 0:
        number = check.integer(y, "y", 0)
        count = mechanism.output_count
        if number >= count:
            raise InvalidInput(
                f"y must be below the number of outputs {short(count)}, got {short(number)}"
            )
        return mechanism.output_row(number)
    rows = check.rows(y, space.sizes)
    if rows.ndim != 1:
        raise InvalidInput(f"y must be one output, got shape {rows.shape}; of samples, take y[0]")
    return rows
