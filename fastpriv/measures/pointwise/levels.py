"""Levels of pointwise maximal leakage: the worst output under one prior or a set of priors."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fastpriv.channels import AbstractChannel
from fastpriv.measures.arguments import as_channel, as_pair, row_number
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.pointwise.row import row_level
from fastpriv.measures.pointwise.sets import set_level
from fastpriv.priors import Distribution
from fastpriv.priors.sets import PriorSet

__all__ = ["information_privacy_level", "max_information", "pml_level"]

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike


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
        return set_level(prior, as_channel(channel, space), row)
    mechanism, law = as_pair(channel, prior)
    if row is None:
        return leakage_levels(mechanism, law)[0]
    rows = range(mechanism.space.n) if row == "worst" else [row_number(mechanism, row)]
    return max(row_level(mechanism, law, i) for i in rows)


def max_information(channel: ChannelLike, prior: PriorLike) -> float:
    """Largest ln p(y|x)/p_Y(y) over databases and outputs that occur, which is ``pml_level``.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.

    Returns
    -------
    float
        Nats, rounded up (Wu-Xia-He 2020, Definition 7). Cost as for :func:`pml_level`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.max_information([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)  # ln 1.5
    0.405465
    """
    return leakage_levels(*as_pair(channel, prior))[0]


def information_privacy_level(channel: ChannelLike, prior: PriorLike) -> float:
    """Information privacy level: the largest |ln p(x|y)/p(x)| over databases and outputs.

    Infinite as soon as an output rules out a database that can occur (Makhdoumi-Fawaz 2013,
    Definition 7). It lies between the strong differential privacy level and half of it.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.

    Returns
    -------
    float
        Level in nats, rounded up. Cost as for :func:`pml_level`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.information_privacy_level([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)  # ln 2
    0.693147
    """
    return max(leakage_levels(*as_pair(channel, prior)))
