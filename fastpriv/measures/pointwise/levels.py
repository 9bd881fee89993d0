"""Pointwise maximal leakage under one prior or a set: of the worst output, or about a record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.attributes import Attribute, secret_level, secrets_of, whole_channel
from fastpriv.measures.inputs import (
    as_channel,
    as_pair,
    group_numbers,
    is_stack,
    output_rows,
    plain_pair,
    plainly,
    stacked,
)
from fastpriv.measures.pointwise.database import level_bounds
from fastpriv.measures.pointwise.prior_sets import set_level, set_row_leakages
from fastpriv.measures.pointwise.record import (
    group_leakage_at,
    group_leakages,
    group_level,
    row_leakage_at,
    row_leakages,
    row_level,
    worst_row_level,
)
from fastpriv.priors import Distribution
from fastpriv.priors.sets import PriorSet
from fastpriv.results import Bracket, top

__all__ = ["information_privacy_level", "max_information", "pml_level", "row_pml"]

#: Tells a kernel that the other leakage is not asked for.
_NONE = np.empty(0)

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike


@overload
def pml_level(
    channel: AbstractChannel,
    prior: PriorLike | PriorSet,
    row: int | str | Sequence[int] | None = ...,
    *,
    attribute: Attribute | None = ...,
    time_limit: float = ...,
) -> float | Bracket: ...
@overload
def pml_level(
    channel: ChannelLike,
    prior: PriorLike | PriorSet,
    row: int | str | Sequence[int] | None = ...,
    *,
    attribute: Attribute | None = ...,
    out: Floats | None = ...,
    time_limit: float = ...,
) -> float | Bracket | Floats: ...
def pml_level(
    channel: ChannelLike,
    prior: PriorLike | PriorSet,
    row: int | str | Sequence[int] | None = None,
    *,
    attribute: Attribute | None = None,
    out: Floats | None = None,
    time_limit: float = 60.0,
) -> float | Bracket | Floats:
    """Return the pointwise maximal leakage of the worst output, under a prior or a set, in nats.

    The level is the supremum of ln p(y|x) / p_Y(y) over priors in the set, outputs y and databases
    x that the prior allows. It is the smallest epsilon for which the mechanism is (epsilon, P)-PML
    (Saeidian et al. 2024, Definition 2.6).

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution, 1-D array or PriorSet
        Distribution of the databases, or a set of them; for a stack also (B, N), one for each
        channel.
    row : int, sequence of int, or "worst", optional
        Leakage about one record, a group of records, or the record that leaks most, instead of the
        whole database. With an attribute, the number of the record that it is a function of.
    attribute : optional
        An attribute U of the database, under one prior; see :func:`pml`.
    out : array of length B, optional
        Array that receives the levels of a stack.
    time_limit : float
        Seconds for a search over a set of priors. If they run out, the level is a bracket. A prior
        of the set reaches its lower bound, up to 1e-6.

    Returns
    -------
    float or Bracket, or array of length B for a stack
        Level in nats, rounded up. It is a bracket if the time ran out, or if a Markov chain is too
        long to list.

    Notes
    -----
    Channels and priors that act record by record cost O(distinct records). Over all priors, or all
    product priors, the level is the leakage capacity (Theorems 2.8, 4.5). About the worst record,
    product priors give the differential privacy level (Theorem 4.2). A box takes a knapsack per
    output, a ball a certified dual, a polytope a linear program. In a polytope, a database counts
    as possible unless a row of A with b = 0 rules it out, and the smallest probability of an output
    is proved to about 1e-15 of itself plus 1e-15. Both can only raise the level: a level of more
    than 20 nats over a polytope may be far above that of the same box. Balls and polytopes about a
    record are searched to 1e-6 nats, bits with a common probability to a relative 1e-10.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(3, 2, 1.0)
    >>> round(fp.pml_level(channel, fp.Uniform(3, 2)), 6)
    1.139656
    >>> product = fp.PriorSet.product(channel.space)
    >>> fp.pml_level(channel, product), fp.pml_level(channel, product, row="worst")
    (3.0, 1.0)
    """
    ordinary = row is None and attribute is None and out is None
    if (
        ordinary
        and type(time_limit) is float
        and time_limit >= 0.0
        and (pair := plain_pair(channel, prior))
    ):
        level = plainly(_above, *pair)
        if level >= 0.0:
            return level
    clock = Clock(time_limit)
    if attribute is not None:
        whole_channel(channel, attribute, out)
        if isinstance(prior, PriorSet):
            raise InvalidInput(
                "prior must be one distribution if an attribute is given; got a PriorSet. Ask for "
                "each prior of the set."
            )
        return secret_level(secrets_of(channel, prior, attribute, row))
    if is_stack(channel, out):
        if row is not None:
            raise InvalidInput(
                "row must be left out for a stack, whose channels are on one record."
            )
        if isinstance(prior, PriorSet):
            return stacked(None, lambda W: _top(W, prior, clock), channel, out=out)
        return stacked(_above, pml_level, channel, prior, out)
    if isinstance(prior, PriorSet):
        mechanism = as_channel(channel, getattr(prior, "space", None))
        if row is not None and not isinstance(row, str):
            row = group_numbers(mechanism, row)
        return set_level(prior, mechanism, row, clock)
    mechanism, law = as_pair(channel, prior)
    if row is None:
        return level_bounds(mechanism, law)[0]
    if isinstance(row, str) and row == "worst":
        return worst_row_level(mechanism, law)
    group = group_numbers(mechanism, row)
    if _are_certain(law, group):
        return 0.0
    if len(group) > 1:
        return group_level(mechanism, law, group)
    return row_level(mechanism, law, group[0])


@overload
def max_information(channel: AbstractChannel, prior: PriorLike) -> float | Bracket: ...
@overload
def max_information(
    channel: ChannelLike,
    prior: PriorLike,
    *,
    attribute: Attribute | None = ...,
    row: int | None = ...,
    out: Floats | None = ...,
) -> float | Bracket | Floats: ...
def max_information(
    channel: ChannelLike,
    prior: PriorLike,
    *,
    attribute: Attribute | None = None,
    row: int | None = None,
    out: Floats | None = None,
) -> float | Bracket | Floats:
    """Return the largest ln p(y|x)/p_Y(y) over databases and outputs that occur, in nats.

    This is :func:`pml_level` (Wu-Xia-He 2020, Definition 7).

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array
        Distribution of the databases; for a stack also (B, N), a distribution for each channel.
    attribute, row
        An attribute U of the database, instead of the database; see :func:`pml`.
    out : array of length B, optional
        Array that receives the levels of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Nats, rounded up. Cost as for :func:`pml_level`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.max_information([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)  # ln 1.5
    0.405465
    """
    if attribute is not None or row is not None:
        whole_channel(channel, attribute, out)
        return secret_level(secrets_of(channel, prior, attribute, row))
    if (pair := plain_pair(channel, prior)) and out is None:
        level = plainly(_above, *pair)
        if level >= 0.0:
            return level
    if is_stack(channel, out):
        return stacked(_above, max_information, channel, prior, out)
    return level_bounds(*as_pair(channel, prior))[0]


@overload
def information_privacy_level(channel: AbstractChannel, prior: PriorLike) -> float | Bracket: ...
@overload
def information_privacy_level(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = ...
) -> float | Bracket | Floats: ...
def information_privacy_level(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = None
) -> float | Bracket | Floats:
    """Return the information privacy level, the largest |ln p(x|y)/p(x)|, in nats.

    The maximum is over databases and outputs (Makhdoumi-Fawaz 2013, Definition 7). It is infinite
    if an output rules out a database that can occur. It lies between the strong differential
    privacy level and half of it.

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array
        Distribution of the databases; for a stack also (B, N), a distribution for each channel.
    out : array of length B, optional
        Array that receives the levels of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Level in nats, rounded up. Cost as for :func:`pml_level`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.information_privacy_level([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)  # ln 2
    0.693147
    """
    if (pair := plain_pair(channel, prior)) and out is None:
        level = plainly(_either, *pair)
        if level >= 0.0:
            return level
    if is_stack(channel, out):
        return stacked(_either, information_privacy_level, channel, prior, out)
    above, below = level_bounds(*as_pair(channel, prior))
    if isinstance(above, Bracket) and isinstance(below, Bracket):
        return Bracket(max(above.lower, below.lower), max(above.upper, below.upper))
    return max(above, below)


@overload
def row_pml(
    channel: ChannelLike,
    prior: PriorLike | PriorSet,
    i: int | Sequence[int],
    *,
    time_limit: float = ...,
) -> Floats: ...
@overload
def row_pml(
    channel: ChannelLike,
    prior: PriorLike | PriorSet,
    i: int | Sequence[int],
    y: ArrayLike,
    *,
    time_limit: float = ...,
) -> float: ...
def row_pml(
    channel: ChannelLike,
    prior: PriorLike | PriorSet,
    i: int | Sequence[int],
    y: ArrayLike | None = None,
    *,
    time_limit: float = 60.0,
) -> Floats | float:
    """Return the pointwise maximal leakage about one record or a group, in nats.

    l(D_i -> y) = ln max_v P(y | D_i = v) / p_Y(y) over values v that can occur (Saeidian et al.
    2024, Section 4), for every output or one. The other records follow the prior given D_i = v. It
    is at most the leakage about the whole database. A group counts as one record.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution, 1-D array or PriorSet
        Distribution of the databases, or a set of them, except for bits with a common
        probability. For a set, the leakage is the largest over its priors.
    i : int or sequence of int
        Number of the record, or the different numbers of a group.
    y : int or array of values, optional
        One output, by index or by the value of each record. Only its leakage is computed.
    time_limit : float
        Seconds for a search over a set of priors. If they run out, the other outputs have wider
        upper bounds.

    Returns
    -------
    ndarray or float
        Nats, rounded up: for every output, or for output y.

    Notes
    -----
    The cost is m_i output distributions. One output of a record-by-record channel costs m_i passes
    along the records. A set costs as much as for :func:`pml_level`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.row_pml(fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2), 0).round(6)
    array([0.379885, 0.379885, 0.379885, 0.379885])
    """
    if isinstance(prior, PriorSet):
        mechanism = as_channel(channel, getattr(prior, "space", None))
        leaks = set_row_leakages(prior, mechanism, i, Clock(time_limit))
        if y is None:
            return leaks
        return float(leaks[mechanism.column_index(output_rows(mechanism, y))])
    mechanism, law = as_pair(channel, prior)
    group = group_numbers(mechanism, i)
    if y is None and _are_certain(law, group):
        check.fits(mechanism.output_count, "the leakage of every output", "give one y=")
        return np.zeros(mechanism.output_count)
    if len(group) > 1:
        if y is None:
            return group_leakages(mechanism, law, group)
        return group_leakage_at(mechanism, law, group, output_rows(mechanism, y))
    i = group[0]
    if y is not None:
        return row_leakage_at(mechanism, law, i, output_rows(mechanism, y))
    return row_leakages(mechanism, law, i)


def _are_certain(prior: Distribution, group: tuple[int, ...]) -> bool:
    """Whether each record of a group has one possible value, about which nothing leaks."""
    if any(prior.marginal(i).max() < 1.0 - roundoff(64.0) for i in group):
        return False
    return all(np.count_nonzero(prior.log_marginal(i)[0] > -math.inf) == 1 for i in group)


def _top(matrix: ArrayLike, priors: PriorSet, clock: Clock) -> float:
    """Return the level of one channel of a stack over a set, or its upper bound."""
    return top(set_level(priors, as_channel(matrix), None, clock))


def _above(W: Floats, P: Floats, off: float, out: Floats) -> int:
    """Leave the largest leakages of a block of a stack in ``out``."""
    return kernels.leakage_levels(W, P, off, out, _NONE)


def _either(W: Floats, P: Floats, off: float, out: Floats) -> int:
    """Leave the larger of both leakages in ``out``."""
    below = np.empty_like(out)
    wrong = kernels.leakage_levels(W, P, off, out, below)
    np.maximum(out, below, out=out)
    return wrong
