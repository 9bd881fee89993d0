"""What one output tells: pointwise maximal leakage and the levels it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.arguments import as_channel, as_pair
from fastpriv.priors import Distribution
from fastpriv.priors.sets import PriorSet
from fastpriv.spaces import Space

__all__ = [
    "conditional_pml",
    "pml",
    "pml_level",
    "row_pml",
]

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike


@overload
def pml(channel: ChannelLike, prior: PriorLike) -> Floats: ...
@overload
def pml(channel: ChannelLike, prior: PriorLike, y: ArrayLike) -> float: ...
def pml(channel: ChannelLike, prior: PriorLike, y: ArrayLike | None = None) -> Floats | float:
    """Pointwise maximal leakage of every output, or of one that was seen.

    l(X -> y) = ln max_x p(y|x) / p_Y(y) over databases x that can occur: how much more likely any
    guess about any feature of X can become when y is seen (Saeidian et al. 2024, Theorem 2.4).
    An output of probability zero leaks nothing.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.
    y : int or array of row values, optional
        One output, by index or by rows; then only its own leakage is computed.

    Returns
    -------
    ndarray or float
        Nats, rounded up. All outputs: one pass over a matrix (two where leakage is small),
        O(N n m) for row-by-row channels. One output: O(n m^2) on a Markov prior and O(n) on
        independent rows and exchangeable bits, so that a million rows are no obstacle.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.pml([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]).round(6)  # ln 1.5
    array([0.405465, 0.405465])
    >>> chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 1_000_000)
    >>> channel = fp.HammingChannel(1_000_000, 2, 1.0)
    >>> round(fp.pml(channel, chain, y=[0] * 1_000_000), 3)
    98281.082
    """
    mechanism, law = as_pair(channel, prior)
    if y is not None:
        return mechanism.leakage_at(law, _output_rows(mechanism, y))
    return mechanism.leakages(law).above


def pml_level(
    channel: ChannelLike, prior: PriorLike | PriorSet, row: int | str | None = None
) -> float:
    """Pointwise maximal leakage of the worst output, under one prior or the worst of a set.

    The least epsilon for which the mechanism is (epsilon, P)-PML (Saeidian et al. 2024,
    Definition 2.6): the supremum over priors in the set, outputs y and databases x that the prior
    allows of ln p(y|x) / p_Y(y).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution, 1-D array or PriorSet
        Law of the databases, or a set of them.
    row : int or "worst", optional
        Leakage about one row, or about the row that leaks most, instead of the whole database.

    Returns
    -------
    float
        Level in nats, rounded up. Independent rows and row-by-row channels: O(distinct rows). All
        priors, and all product priors: the leakage capacity (Theorems 2.8, 4.5); about the worst
        row the leakage capacity (4.5) and the differential privacy level (4.2). Box: a knapsack
        per output. Polytope: a linear program per output, certified by weak duality; a database
        counts as possible unless a row of A with b = 0 rules it out, which can only raise the
        level. Independent bits: all corners by one O(N n K) transform, or each row by itself.

    Raises
    ------
    SolverFailure
        When a linear program cannot be certified.

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
    if isinstance(prior, PriorSet):
        space = getattr(prior, "space", None)
        return prior.level(as_channel(channel, space), row)
    mechanism, law = as_pair(channel, prior)
    if row is None:
        return mechanism.leakage_levels(law)[0]
    rows = range(mechanism.space.n) if row == "worst" else [_row(mechanism, row)]
    return max(mechanism.row_level(law, i) for i in rows)


@overload
def row_pml(channel: ChannelLike, prior: PriorLike, i: int) -> Floats: ...
@overload
def row_pml(channel: ChannelLike, prior: PriorLike, i: int, y: ArrayLike) -> float: ...
def row_pml(
    channel: ChannelLike, prior: PriorLike, i: int, y: ArrayLike | None = None
) -> Floats | float:
    """Pointwise maximal leakage about one row, for every output or for one that was seen.

    l(D_i -> y) = ln max_v P(y | D_i = v) / p_Y(y) over values v that can occur, the other rows
    following the prior given D_i = v (Saeidian et al. 2024, Section 4). At most the leakage about
    the whole database.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.
    i : int
        The row.
    y : int or array of row values, optional
        One output, by index or by rows; then only its own leakage is computed.

    Returns
    -------
    ndarray or float
        Nats, rounded up. Cost of m_i output laws; for one output of a row-by-row channel m_i
        passes along the rows.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.row_pml(fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2), 0).round(6)
    array([0.379885, 0.379885, 0.379885, 0.379885])
    """
    mechanism, law = as_pair(channel, prior)
    i = _row(mechanism, i)
    if y is not None:
        return mechanism.row_leakage_at(law, i, _output_rows(mechanism, y))
    return mechanism.row_leakages(law, i)


def conditional_pml(
    channel: ChannelLike,
    prior: PriorLike,
    given: Mapping[int, int] | ArrayLike,
    y: ArrayLike | None = None,
) -> Floats | float:
    """Pointwise maximal leakage to somebody who already knows something about the database.

    l(X -> y | z) is the leakage under the prior given z (Saeidian et al. 2024, Definition 2.5).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.
    given : mapping or boolean array
        Values of some rows, ``{row: value}``, or an event: True for every database in it.
    y : int or array of row values, optional
        One output, by index or by rows.

    Returns
    -------
    ndarray or float
        Nats, rounded up, as for :func:`pml`. Independent rows stay independent given rows.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel, prior = fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2)
    >>> fp.conditional_pml(channel, prior, {0: 1}).round(6)  # the known row leaks no more
    array([0.379885, 0.379885, 0.379885, 0.379885])
    """
    mechanism, law = as_pair(channel, prior)
    if isinstance(given, Mapping):
        known = law.given({_row(mechanism, i): _value(mechanism, i, given[i]) for i in given})
    else:
        event = check.array(given, "given")
        if event.shape != (law.space.size,) or event.dtype.kind != "b":
            raise InvalidInput(
                "given must be a mapping {row: value} or a boolean array with one entry for each "
                f"of {law.space.size} databases, got shape {event.shape} of {event.dtype}"
            )
        known = law._dense("the law given an event").restricted(event)
    if y is not None:
        return mechanism.leakage_at(known, _output_rows(mechanism, y))
    return mechanism.leakages(known).above


def _row(mechanism: AbstractChannel, i: Any) -> int:
    found = check.integer(i, "row", 0)
    if found >= mechanism.space.n:
        raise InvalidInput(f"row must be below n = {mechanism.space.n}, got {found}")
    return found


def _value(mechanism: AbstractChannel, i: int, value: Any) -> int:
    found = check.integer(value, f"the value of row {i}", 0)
    if found >= mechanism.space.sizes[i]:
        raise InvalidInput(f"row {i} takes values 0 .. {mechanism.space.sizes[i] - 1}, got {found}")
    return found


def _output_rows(mechanism: AbstractChannel, y: ArrayLike) -> Ints:
    """Return one output as rows of the output space, from its index or its rows."""
    space: Space = mechanism.output_space
    if np.ndim(y) == 0:
        number = check.integer(y, "y", 0)
        if number >= space.size:
            raise InvalidInput(f"y must be below the number of outputs {space.size}, got {number}")
        return space.rows(number)
    rows = check.rows(y, space.sizes)
    if rows.ndim != 1:
        raise InvalidInput(f"y must be one output, got shape {rows.shape}; of samples, take y[0]")
    return rows
