"""What an output tells about the database on average, and what the mechanism costs."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv.channels import AbstractChannel
from fastpriv.measures.arguments import as_pair
from fastpriv.priors import Distribution
from fastpriv.results import Bracket

__all__ = ["distortion", "mutual_information"]


def mutual_information(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike
) -> float | Bracket:
    """Mutual information I(X; Y) between database and output, in nats.

    Always a sum of non-negative terms, sum p(x) q(y) f(W[x, y]/q(y) - 1) with
    f(d) = (1+d) ln(1+d) - d, or one such sum per row by the chain rule
    I = sum_i I(X_i; Y_i | Y_<i): nothing cancels, so that a mechanism at epsilon 1e-8 gets a
    number and not noise.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.

    Returns
    -------
    float or Bracket
        A certified bracket for a row-by-row channel on a Markov prior too long for the exact
        sum, a float in every other case. Cost O(N K) for a matrix, O(N n) for E_d and E_i on a
        dense prior, O(n^2) on a binary exchangeable one, O(distinct rows) on a product.

    References
    ----------
    Wang-Ying-Zhang 2015, Definition 4.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.mutual_information(fp.HammingChannel(10, 2, 1.0), fp.Uniform(10, 2)), 6)
    1.109441
    """
    mechanism, law = as_pair(channel, prior)
    return mechanism.information(law)


def distortion(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike,
    metric: ArrayLike | None = None,
) -> float:
    """Expected distortion E d(X, Y) of a mechanism.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.
    metric : 2-D array, optional
        ``metric[x, y]`` for every database and output. By default the Hamming distance, the
        number of rows that changed, which needs outputs that are databases.

    Returns
    -------
    float
        h(epsilon) for E_d, and for E_i under its own prior (Wang-Ying-Zhang 2015, Lemmas 4, 5).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.distortion(fp.HammingChannel(4, 2, 0.0), fp.Uniform(4, 2))
    2.0
    """
    mechanism, law = as_pair(channel, prior)
    if metric is None:
        return mechanism.expected_distance(law)
    cost = check.metric(metric, mechanism.space.size, mechanism.output_space.size)
    return mechanism.expected_cost(law, cost)
