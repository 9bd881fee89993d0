"""Largest fall of the database's entropy at one output."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv._core.rounding import ULP, raised, round_up
from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import matrix_gain
from fastpriv._structure.leakage import tilted, vector_gain
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv._structure.type_pairs import TypePairs
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel, log_type_weights, type_error
from fastpriv.measures.chain_bounds import gain_bounds, is_long
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.exchanged import as_exchangeable
from fastpriv.priors.exchanging import LISTED, many_types
from fastpriv.results import Bracket

#: Logarithm of how much larger than what underflow took the probability of an output must be.
_CLEAR = 50.0


@singledispatch
def entropy_gain(channel: AbstractChannel, prior: Distribution) -> float | Bracket:
    """Largest H(X) - H(X | Y = y) over outputs y that occur, rounded up.

    The general algorithm takes the matrix. Relative errors d of its entries are 2 d of a posterior,
    and move its entropy by 2 d (1 + ln N), up to a factor 1 + 2 d. Cost O(N K).
    """
    gain = matrix_gain(np.array(channel.nearest_matrix()), prior.probabilities())
    return gain + 4.0 * channel.matrix_error * (1.0 + math.log(channel.space.size))


@entropy_gain.register
def _dense_entropy_gain(channel: Channel, prior: Distribution) -> float:
    """Take the matrix as it is stored."""
    return matrix_gain(channel.array, prior.probabilities())


@entropy_gain.register
def _type_entropy_gain(channel: TypeChannel, prior: Distribution) -> float | Bracket:
    """Under an exchangeable prior, take the classes against an output of each type.

    They are told apart by the output, and their databases are equally likely. Cost O(classes).
    Otherwise take the matrix, with its rows divided by their sums.
    """
    view = as_exchangeable(prior)
    if view is None:
        return entropy_gain(channel.as_channel(), prior)
    types, gains = channel.types, [0.0]
    weights = log_type_weights(types, view)
    top = int(weights.argmax())
    others = math.fsum(np.exp(np.delete(weights, top)))
    if others < 0.5:  # the logarithm of a chance close to one
        weights[top] = math.log1p(-others)
    for classes, entry in zip(channel.classes, channel.entries, strict=True):
        logs = weights[classes.row] - types.log_sizes[classes.row]
        law = np.exp(logs + classes.log_count)
        own = np.where(law > 0.0, law * np.where(law > 0.0, logs, 0.0), 0.0)
        gains.append(matrix_gain(entry[:, None], law, own / law.sum(), type_error(channel.space.n)))
    return max(gains)


@entropy_gain.register
def _query_entropy_gain(channel: QueryChannel, prior: Distribution) -> float:
    """Take the answers, and the entropy of the database given each. Cost O(answers K).

    To this comes the cost of the law of the answer.
    """
    query, laws = channel.query, channel.kernel.matrix
    return matrix_gain(laws, query.law(prior), query.surprise(prior), 4.0 * query.law_error)


@entropy_gain.register
def _product_entropy_gain(channel: ProductChannel, prior: Distribution) -> float | Bracket:
    """Row by row, in the structure of the prior."""
    return rows_gain(prior, channel.kernels)


@entropy_gain.register
def _tilted_entropy_gain(channel: TiltedChannel, prior: Distribution) -> float:
    """Take the prior divided by R q through R. Cost O(N n m), or O(types^2).

    Under the channel's own prior every posterior is R, with the entropy of n rows of E_d.
    """
    if channel.owns(prior) and channel.space.size > LISTED:
        return own_gain(channel)
    types, same = channel.by_type, as_exchangeable(prior)
    if types is not None and same is not None and types.fits:
        log_p = types.log_prior(same)
        weights = log_p - types.log_each
        gain = type_gain(types.pairs, weights, same.entropy(), types.occurs)
        return gain + same.log_error + types.error
    occurs, tilt = channel.tilt()
    weights, logs, _ = tilted(prior.probabilities(), prior.logs_if_rare(), tilt)
    return vector_gain(prior.probabilities(), weights, channel.kernels, logs, occurs)


def own_gain(channel: TiltedChannel) -> float:
    """Return H(X) - n H(row) under the channel's own prior, rounded up. Cost of the entropy.

    Clipping q moves a posterior by a factor within e^(2 misfit) of R, and its entropy by at most
    this factor's excess over 1 times the largest -ln R.
    """
    noise, largest = 0.0, 1.0
    for kernel, rows in channel.kernels.groups():
        assert isinstance(kernel, Symmetric)
        moved = (kernel.m - 1) * kernel.off
        noise += len(rows) * (channel.epsilon * moved - math.log(kernel.stay))
        largest += len(rows) * (channel.epsilon - math.log(kernel.stay))
    whole = float(channel.prior.entropy())
    error = 2.0**-46 * (whole + noise) + math.expm1(2.0 * channel.misfit) * largest
    return min(max(0.0, whole - noise) + error, raised(whole, 128.0))


@entropy_gain.register
def _tilted_product_entropy_gain(channel: TiltedProduct, prior: Distribution) -> float | Bracket:
    """Take the rows."""
    return entropy_gain(channel.as_product, prior)


@singledispatch
def rows_gain(prior: Distribution, kernels: RowKernels) -> float | Bracket:
    """Largest H(X) - H(X | Y = y) across a channel that acts row by row. Cost O(N n m)."""
    return vector_gain(
        prior.probabilities(), prior.probabilities(), kernels, logs=prior.logs_if_rare()
    )


@rows_gain.register
def _markov_rows_gain(prior: Markov, kernels: RowKernels) -> float | Bracket:
    """Chain: by the vector, or a bracket where it is too long for one."""
    if is_long(prior):
        return gain_bounds(prior, kernels)
    return vector_gain(
        prior.probabilities(), prior.probabilities(), kernels, logs=prior.logs_if_rare()
    )


@rows_gain.register
def _exchangeable_rows_gain(prior: Exchangeable, kernels: RowKernels) -> float:
    """Over pairs of types where databases are many and use one kernel. Cost O(types^2)."""
    pairs = many_types(prior, kernels)
    if pairs is None:
        return vector_gain(
            prior.probabilities(), prior.probabilities(), kernels, logs=prior.logs_if_rare()
        )
    weights = prior.log_weights[tuple(pairs.types[1:])]
    return type_gain(pairs, weights, prior.entropy()) + prior.log_error


def type_gain(
    pairs: TypePairs, log_weights: Floats, whole: float, occurs: np.ndarray | None = None
) -> float:
    """Largest H(X) - H(X | Y = y) where p(x|y) is proportional to w(x) W[x, y]. Rounded up.

    ``log_weights`` are ln of w summed over the databases of each type, ``whole`` is H(X) and
    ``occurs`` tells which types of outputs do. With M(y) = sum_x w(x) W[x, y],
    H(X | Y = y) = ln M(y) - E ln w(X) - E ln W[X, y], given Y = y.
    """
    seen = log_weights > -math.inf
    each = np.where(seen, log_weights - pairs.log_sizes, 0.0)
    joint = pairs.log_joint(log_weights)
    mass = pairs.log_sum(joint)
    known = mass > -math.inf if occurs is None else occurs & (mass > -math.inf)
    # An output that underflow may have changed counts as the most that it could tell.
    clear = known & (mass > pairs.log_lost(log_weights) + _CLEAR)
    joint, mass = joint[:, clear], mass[clear]
    share = np.exp(joint - mass)
    cost = (share * pairs.mean_cost[:, clear]).sum(axis=0)
    top = pairs.log_tops[clear]
    prior = (share * each[:, None]).sum(axis=0)
    left = np.maximum(mass - pairs.log_output_sizes[clear] - prior - top + cost, 0.0)
    least = float(left.min(initial=math.inf)) if (known == clear).all() else 0.0
    size = np.abs(mass) + pairs.log_output_sizes[clear] + np.abs(prior) + np.abs(top) + cost
    error = (8.0 * pairs.error + 64.0 * ULP) * (1.0 + float(size.max(initial=0.0)) + whole)
    return min(max(0.0, whole - least), whole) + error


@rows_gain.register
def _product_rows_gain(prior: Product, kernels: RowKernels) -> float:
    """Add up the largest gains of the rows. Cost O(distinct rows)."""
    laws, which, counts, _ = prior.paired(kernels)
    pairs = zip(laws, which, strict=True)
    gains = [matrix_gain(kernels.distinct[j].matrix, prior.distinct[k]) for k, j in pairs]
    return round_up(math.fsum(np.multiply(counts, gains)))
