"""How well neighbouring databases can be told apart: differential privacy, identifiability."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fastpriv.channels import AbstractChannel
from fastpriv.measures.arguments import as_channel, as_pair
from fastpriv.priors import Distribution

__all__ = ["dp_level", "identifiability_level", "realised_level"]


def dp_level(channel: AbstractChannel | ArrayLike) -> float:
    """Differential privacy level of a mechanism.

    The largest ln p(y|x)/p(y|x') over neighbours x, x' (databases that differ in one row) and
    outputs y (Wang-Ying-Zhang 2015, Definition 3): infinite as soon as an output is possible for
    x and impossible for a neighbour.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism. A plain matrix is one row with as many values as it has rows.

    Returns
    -------
    float
        Level in nats, rounded up. Cost O(N K n) for a matrix with K outputs, O(distinct rows)
        for products, closed form for E_d and E_i.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.dp_level([[0.5, 0.5], [0.25, 0.75]])
    0.6931471805599456
    """
    return as_channel(channel).neighbour_level()


def identifiability_level(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike
) -> float:
    """Identifiability level of a mechanism under a prior.

    The largest ln p(x|y)/p(x'|y) over neighbours x, x' and outputs y that can occur
    (Wang-Ying-Zhang 2015, Definition 2). Infinite when some database has probability zero, since
    a neighbour of it is then told apart from it by the prior alone.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.

    Returns
    -------
    float
        Level in nats, rounded up. At most ``dp_level(channel) + prior.epsilon_x()``, with
        equality for E_d; epsilon for E_i under its own prior.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product.iid([0.8, 0.2], 3)
    >>> level = fp.identifiability_level(fp.HammingChannel(3, 2, 0.5), prior)
    >>> round(level, 6)  # 0.5 + ln 4
    1.886294
    """
    mechanism, law = as_pair(channel, prior)
    return mechanism.posterior_level(law)


def realised_level(channel: AbstractChannel | ArrayLike) -> float:
    """Differential privacy level of what ``channel.sample`` draws.

    A sampler cannot have the chances of a formula: it has those of its integer thresholds, and
    this is the level of these. E_d keeps a value for ``stay`` of at most 2^64 equally likely words
    and moves it to each other value for ``move`` of them, with stay/move rounded down, so its
    realised level is at most epsilon. Other rows, matrices and queries round every law to integer
    weights out of 2^64 that are less than one away, keep zeros at zero and give every positive
    chance at least 2^-64, so the level stays finite where the nominal one is.

    Optimal and tilted mechanisms draw a database in steps, by coins whose chances are binary
    floating-point numbers realised as they stand. Each is a few units in the last place from the
    quotient it stands for, and so is the product over steps; the level is then the nominal one
    plus twice the largest sum of these errors, an upper bound.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Returns
    -------
    float
        Level in nats, rounded up. Cost as for :func:`dp_level`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.realised_level(fp.HammingChannel(10, 4, 1.0))
    1.0
    >>> round(fp.realised_level(fp.HammingChannel(10, 4, 700.0)), 6)  # 64 bits tell no more
    44.36142
    """
    return as_channel(channel).realised_level()
