"""The uncertainty about every attribute that remains after the worst output."""

from __future__ import annotations

import math
from functools import singledispatch

from numpy.typing import ArrayLike

from fastpriv._core.rounding import ULP, lowered
from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel, ProductChannel
from fastpriv.measures.arguments import as_pair
from fastpriv.measures.pointwise.scaled import scaled_matrix
from fastpriv.priors import Distribution, Product

__all__ = ["remaining_uncertainty"]

#: Products below may have lost digits. They count as zero, which is on the safe side.
_TINY = 1e-290


def remaining_uncertainty(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike
) -> float:
    """Least min-entropy that an output leaves in any attribute of the database, in nats.

    It is -ln max_y (1 - min_x q(x|y)), q(x|y) the posterior and x over the support of the prior.
    The attribute is any function of the database that is not constant on the support. Its
    likeliest value has the probability 1 - P(x in A | y), where A is the set of all databases with
    other values. This is largest if A is the least likely database. Theorem 3.7 of Saeidian et al.
    2024 is a lower bound, see :func:`remaining_uncertainty_bound`.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        What the adversary believes.

    Returns
    -------
    float
        Min-entropy in nats, rounded down. It is 0 if some output rules a database out, and
        infinite for a point mass, under which no attribute varies.

    Notes
    -----
    Cost O(N K), or O(distinct rows) if the channel acts row by row and rows are independent.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel, prior = fp.HammingChannel(2, 2, 1.0), fp.Product.iid([0.8, 0.2], 2)
    >>> round(fp.remaining_uncertainty(channel, prior), 6)
    0.007119
    >>> round(fp.remaining_uncertainty_bound(channel, prior), 6)
    0.005623
    """
    mechanism, law = as_pair(channel, prior)
    log_least = _log_rarest(mechanism, law)
    if log_least >= 0.0:
        return math.inf
    return lowered(-math.log1p(-math.exp(log_least)), 16.0)


@singledispatch
def _log_rarest(channel: AbstractChannel, prior: Distribution) -> float:
    """Return ln of the least posterior probability of a database that may occur, rounded down."""
    weights = prior.probabilities()
    support = weights > 0.0
    matrix = scaled_matrix(channel)[support]
    units = 16.0 * channel.space.n + 2.0 * channel.matrix_error / ULP
    return _log_least(matrix, weights[support], units)


@_log_rarest.register
def _product_log_rarest(channel: ProductChannel, prior: Distribution) -> float:
    """Add up the rows, if they are independent."""
    if not isinstance(prior, Product):
        return _log_rarest.dispatch(AbstractChannel)(channel, prior)
    laws, which, counts, _ = prior.paired(channel.kernels)
    total = 0.0
    for law, kernel, count in zip(laws, which, counts, strict=True):
        own = prior.distinct[law]
        matrix = channel.kernels.distinct[kernel].near[own > 0.0]
        total += float(count) * _log_least(matrix, own[own > 0.0], 16.0)
    return lowered(total, 4.0 * len(counts))


def _log_least(matrix: Floats, weights: Floats, units: float) -> float:
    """Return ln of the least posterior probability, given columns up to a factor; 0 if certain."""
    if len(weights) == 1:
        return 0.0
    joint = weights[:, None] * matrix[:, matrix.max(axis=0) > 0.0]
    least, total = joint.min(axis=0), joint.sum(axis=0)
    if least.min() < _TINY:
        return -math.inf
    ratio = float((least / total).min())
    return lowered(math.log(ratio), 4.0) - (2.0 * len(weights) + units + 16.0) * ULP
