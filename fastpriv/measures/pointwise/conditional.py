"""Pointwise maximal leakage to an adversary with side information about the database."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.leakage import Column
from fastpriv._structure.rows import RowKernel, RowKernels, distinct_sizes
from fastpriv.channels import AbstractChannel, ProductChannel
from fastpriv.errors import InvalidInput, short
from fastpriv.measures.inputs import as_channel, as_pair, output_rows, row_number
from fastpriv.measures.pointwise.database import ChannelLike, PriorLike, leakage_at, leakages
from fastpriv.measures.pointwise.prior_sets import set_conditional_leakages
from fastpriv.priors import Distribution, Markov
from fastpriv.priors.markov import HiddenMarkov
from fastpriv.priors.sets import PriorSet

__all__ = ["conditional_pml"]


def conditional_pml(
    channel: ChannelLike,
    prior: PriorLike | PriorSet,
    given: Mapping[int, int] | ArrayLike,
    y: ArrayLike | None = None,
) -> Floats | float:
    """Return the pointwise maximal leakage to an adversary with side information, in nats.

    l(X -> y | z) is the leakage under the prior given z (Saeidian et al. 2024, Definition 2.5).
    Over a set of priors it is the largest leakage under a prior that allows z.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution, 1-D array or PriorSet
        Distribution of the databases, or a set of them: all distributions, all distributions of
        independent records, a box, a ball or a polytope.
    given : mapping or boolean array
        Values of some records, ``{record: value}``, or an event: True for every database in it.
    y : int or array of values, optional
        One output, by index or by the value of each record.

    Returns
    -------
    ndarray or float
        Nats, rounded up: for every output, or for output y.

    Notes
    -----
    One output on a Markov chain costs O(n m^2). A set of priors costs a few smallest means over the
    set for each output.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel, prior = fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2)
    >>> fp.conditional_pml(channel, prior, {0: 1}).round(6)  # the known row leaks no more
    array([0.379885, 0.379885, 0.379885, 0.379885])
    >>> near = fp.PriorSet.total_variation([0.25] * 4, 0.1)
    >>> fp.conditional_pml(channel, near, {0: 1}).round(6)
    array([0.584265, 0.584265, 0.584265, 0.584265])
    """
    if isinstance(prior, PriorSet):
        return _set_given(channel, prior, given, y)
    mechanism, law = as_pair(channel, prior)
    if isinstance(given, Mapping):
        values = _known(mechanism, given)
        if y is not None:
            return known_leakage_at(mechanism, law, values, output_rows(mechanism, y))
        check.fits(mechanism.output_count, "the leakage of every output", "give one y=")
        known = law.given(values)
    else:
        known = law.as_dense("the distribution given an event").restricted(
            _event(given, law.space.size)
        )
    if y is not None:
        return leakage_at(mechanism, known, output_rows(mechanism, y))
    return leakages(mechanism, known).above


def _set_given(
    channel: ChannelLike,
    priors: PriorSet,
    given: Mapping[int, int] | ArrayLike,
    y: ArrayLike | None,
) -> Floats | float:
    """Return the largest leakage given side information, over a set of priors."""
    mechanism = as_channel(channel, getattr(priors, "space", None))
    space = mechanism.space
    check.fits(space.size, "the event as a list of databases", "use one prior, or fewer records")
    if isinstance(given, Mapping):
        event, index = np.ones(space.size, dtype=bool), np.arange(space.size)
        for i, value in _known(mechanism, given).items():
            event &= index // int(space.strides[i]) % space.sizes[i] == value
    else:
        event = _event(given, space.size)
    leaks = set_conditional_leakages(priors, mechanism, event)
    if y is None:
        return leaks
    return float(leaks[mechanism.column_index(output_rows(mechanism, y))])


def _known(mechanism: AbstractChannel, given: Mapping[int, int]) -> dict[int, int]:
    return {row_number(mechanism, i): _value(mechanism, i, given[i]) for i in given}


def _event(given: ArrayLike, size: int) -> NDArray[np.bool_]:
    event = check.array(given, "given")
    if event.shape != (size,) or event.dtype.kind != "b":
        raise InvalidInput(
            "given must be a mapping {row: value} or a boolean array with one entry for each "
            f"of {short(size)} databases; got shape {event.shape} of {event.dtype}."
        )
    return event


def _value(mechanism: AbstractChannel, i: int, value: Any) -> int:
    number = check.integer(value, f"the value of row {i}", 0)
    if number >= mechanism.space.sizes[i]:
        raise InvalidInput(
            f"given must be a value in 0 .. {mechanism.space.sizes[i] - 1} for record {i}; got "
            f"{short(number)}."
        )
    return number


@singledispatch
def known_leakage_at(
    channel: AbstractChannel, prior: Distribution, values: dict[int, int], y: Ints
) -> float:
    """Return the leakage of one output given the values of some records."""
    return leakage_at(channel, prior.given(values), y)


@known_leakage_at.register
def _product_known_leakage_at(
    channel: ProductChannel, prior: Distribution, values: dict[int, int], y: Ints
) -> float:
    """Use recursions along a chain; otherwise the prior given the values."""
    if isinstance(prior, Markov | HiddenMarkov):
        return leakage_given(prior, channel.kernels, values, y)
    return leakage_at(channel, prior.given(values), y)


def leakage_given(
    prior: Distribution, kernels: RowKernels, values: dict[int, int], y: Ints
) -> float:
    """Return the leakage of one output given the values of some records. Rounded up.

    Known records reveal nothing more. One pass along the chain computes the probability of the
    known values. Another one computes their joint probability with the other outputs.
    """
    sizes, plain = distinct_sizes(prior.space.sizes)
    shown = [RowKernel(np.eye(m)) for m in sizes]
    silent = RowKernels([*(RowKernel(np.ones((m, 1))) for m in sizes), *shown], plain.copy())
    mixed = RowKernels([*kernels.distinct, *shown], kernels.assignment.copy())
    nothing, where = np.zeros_like(y), y.copy()
    possible = True
    for i, value in values.items():
        possible = possible and bool(kernels[i].matrix[value, y[i]] > 0.0)
        silent.assignment[i] = len(sizes) + plain[i]
        mixed.assignment[i] = len(kernels.distinct) + plain[i]
        nothing[i] = where[i] = value
    known = prior.column(silent, nothing)
    if known.mass == -math.inf:
        raise InvalidInput(
            "given must have a positive probability; these values together have probability zero. "
            "Give values that can occur."
        )
    both = prior.column(mixed, where)
    if not possible or both.mass == -math.inf:
        return 0.0
    error = both.error + known.error + roundoff(4.0) * abs(both.mass)
    return Column(both.best, both.mass - known.mass, error).leakage()
