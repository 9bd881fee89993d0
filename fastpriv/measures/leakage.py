"""Leakage of a mechanism as one number: capacities, information privacy, leakage factors."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fastpriv.channels import AbstractChannel
from fastpriv.measures.arguments import as_channel, as_pair
from fastpriv.measures.entropy_gain import entropy_gain
from fastpriv.measures.information import mutual_information
from fastpriv.priors import Distribution
from fastpriv.results import Bracket

__all__ = [
    "information_privacy_level",
    "leakage_capacity",
    "leakage_factor",
    "max_information",
    "maximal_leakage",
    "strong_dp_level",
    "worst_leakage_factor",
]

#: Relative error of an entropy.
_ENTROPY = 2.0**-46

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike


def maximal_leakage(channel: ChannelLike) -> float:
    """Maximal leakage, ln sum_y max_x p(y|x).

    The log of the mean of e^l(X -> y) under any full-support prior (Issa et al. 2019, Theorem 1).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Returns
    -------
    float
        Nats, rounded up. One pass over a matrix, O(distinct rows) for products.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.maximal_leakage([[0.75, 0.25], [0.25, 0.75]]), 6)  # ln 1.5
    0.405465
    """
    return as_channel(channel).maximal_leakage()


def leakage_capacity(channel: ChannelLike) -> float:
    """Leakage capacity: the largest ln p(y|x)/p(y|x') over all databases x, x' and outputs y.

    The most that any output leaks under any prior, and the level of free-lunch privacy (Saeidian
    et al. 2024, Definition 2.7, Theorems 2.8 and 4.5).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Returns
    -------
    float
        Level in nats, rounded up. One pass over a matrix, O(distinct rows) for products.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.leakage_capacity(fp.HammingChannel(1_000, 2, 0.5))
    500.0
    """
    return as_channel(channel).extreme_level()


def strong_dp_level(channel: ChannelLike) -> float:
    """Strong (local) differential privacy level, over all pairs of databases.

    The same number as :func:`leakage_capacity` (Makhdoumi-Fawaz 2013, Definition 7).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Returns
    -------
    float
        Nats, rounded up; infinite where an output rules a database out.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.strong_dp_level(fp.HammingChannel(3, 2, 0.5)), fp.dp_level(fp.HammingChannel(3, 2, 0.5))
    (1.5, 0.5)
    """
    return leakage_capacity(channel)


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
    mechanism, law = as_pair(channel, prior)
    return mechanism.leakage_levels(law)[0]


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
    mechanism, law = as_pair(channel, prior)
    return max(mechanism.leakage_levels(law))


def leakage_factor(channel: ChannelLike, prior: PriorLike) -> float | Bracket:
    """Leakage factor I(X; Y) / H(X): the share of the database's entropy that the output tells.

    Makhdoumi-Fawaz 2013, Definition 1; 0 for a database that is certain.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.

    Returns
    -------
    float or Bracket
        Between 0 and 1; a bracket where the information or the entropy is one.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.leakage_factor([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)
    0.188722
    """
    mechanism, law = as_pair(channel, prior)
    return _share(mutual_information(mechanism, law), law.entropy())


def worst_leakage_factor(channel: ChannelLike, prior: PriorLike) -> float | Bracket:
    """Worst-case leakage factor (H(X) - min_y H(X | Y = y)) / H(X).

    Makhdoumi-Fawaz 2013, Definition 7; 0 for a database that is certain, 1 when some output
    settles it.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.

    Returns
    -------
    float or Bracket
        Between 0 and 1, rounded up; a bracket where the entropy is one. Cost O(N K) for a matrix,
        O(N n m) for row-by-row channels, O(distinct rows) where the rows are independent too.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.worst_leakage_factor([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)
    0.188722
    """
    mechanism, law = as_pair(channel, prior)
    return _share(entropy_gain(mechanism, law), law.entropy())


def _share(part: float | Bracket, whole: float | Bracket) -> float | Bracket:
    """Part / whole in [0, 1], rounded up; 0/0 = 0."""
    if isinstance(part, Bracket) or isinstance(whole, Bracket):
        low, high = (part.lower, part.upper) if isinstance(part, Bracket) else (part, part)
        least, most = (whole.lower, whole.upper) if isinstance(whole, Bracket) else (whole, whole)
        upper = min(1.0, high / least * (1.0 + _ENTROPY)) if least > 0 else 1.0
        return Bracket(min(low / most * (1.0 - _ENTROPY), upper) if most > 0 else 0.0, upper)
    return min(1.0, part / whole * (1.0 + _ENTROPY)) if whole > 0 else 0.0
