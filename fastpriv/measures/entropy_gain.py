"""Largest fall of the database's entropy at one output."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv._core.logs import round_up
from fastpriv._matrices.leakage import matrix_gain
from fastpriv._structure.leakage import tilted, vector_gain
from fastpriv._structure.rows import RowKernels
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel, log_type_weights, type_error
from fastpriv.priors import Distribution, Product
from fastpriv.priors.exchanged import as_exchangeable


@singledispatch
def entropy_gain(channel: AbstractChannel, prior: Distribution) -> float:
    """Largest H(X) - H(X | Y = y) over outputs y that occur, rounded up.

    The general algorithm takes the matrix. Cost O(N K).
    """
    return matrix_gain(np.array(channel.matrix()), prior._vector())


@entropy_gain.register
def _(channel: Channel, prior: Distribution) -> float:
    """Take the matrix as it is stored."""
    return matrix_gain(channel._matrix, prior._vector())


@entropy_gain.register
def _(channel: TypeChannel, prior: Distribution) -> float:
    """Under an exchangeable prior, take the classes against an output of each type.

    They are told apart by the output, and their databases are equally likely. Cost O(classes).
    Otherwise take the matrix, with its rows divided by their sums.
    """
    view = as_exchangeable(prior)
    if view is None:
        return entropy_gain(channel._plain(), prior)
    types, gains = channel._types, [0.0]
    weights = log_type_weights(types, view)
    top = int(weights.argmax())
    others = math.fsum(np.exp(np.delete(weights, top)))
    if others < 0.5:  # the logarithm of a chance close to one
        weights[top] = math.log1p(-others)
    for classes, entry in zip(channel._classes, channel._entries, strict=True):
        logs = weights[classes.row] - types.log_sizes[classes.row]
        law = np.exp(logs + classes.log_count)
        own = np.where(law > 0.0, law * np.where(law > 0.0, logs, 0.0), 0.0)
        gains.append(matrix_gain(entry[:, None], law, own / law.sum(), type_error(channel.space.n)))
    return max(gains)


@entropy_gain.register
def _(channel: QueryChannel, prior: Distribution) -> float:
    """Take the answers, and the entropy of the database given each. Cost O(answers K).

    To this comes the cost of the law of the answer.
    """
    query, laws = channel._query, channel._kernel.matrix
    return matrix_gain(laws, query.law(prior), query.surprise(prior), 4.0 * query.law_error)


@entropy_gain.register
def _(channel: ProductChannel, prior: Distribution) -> float:
    """Row by row, in the structure of the prior."""
    return rows_gain(prior, channel._kernels)


@entropy_gain.register
def _(channel: TiltedChannel, prior: Distribution) -> float:
    """Take the prior divided by R q through R. Cost O(N n m)."""
    occurs, tilt = channel._tilt()
    weights, logs, _ = tilted(prior._vector(), prior._logs(), tilt)
    return vector_gain(prior._vector(), weights, channel._kernels, logs, occurs)


@entropy_gain.register
def _(channel: TiltedProduct, prior: Distribution) -> float:
    """Take the rows."""
    return entropy_gain(channel._rows, prior)


@singledispatch
def rows_gain(prior: Distribution, kernels: RowKernels) -> float:
    """Largest H(X) - H(X | Y = y) across a channel that acts row by row. Cost O(N n m)."""
    return vector_gain(prior._vector(), prior._vector(), kernels, logs=prior._logs())


@rows_gain.register
def _(prior: Product, kernels: RowKernels) -> float:
    """Add up the largest gains of the rows. Cost O(distinct rows)."""
    laws, which, counts, _ = prior._pairs(kernels)
    pairs = zip(laws, which, strict=True)
    gains = [matrix_gain(kernels.distinct[j].matrix, prior._laws[k]) for k, j in pairs]
    return round_up(math.fsum(np.multiply(counts, gains)))
