"""How well neighbouring databases can be told apart: differential privacy, identifiability."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fastpriv.channels import AbstractChannel
from fastpriv.distributions import Distribution
from fastpriv.measures._arguments import as_channel, as_pair

__all__ = ["dp_level", "identifiability_level"]


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
