"""Expected distortion of a mechanism."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._matrices.tilted import FORMED
from fastpriv._structure.rows import RowKernels, Symmetric
from fastpriv.channels import (
    AbstractChannel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.queries import Histogram
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.inputs import as_pair, as_stack, is_stack, stacked, table
from fastpriv.priors import Distribution

__all__ = ["distortion"]


@overload
def distortion(
    channel: AbstractChannel, prior: Distribution | ArrayLike, metric: ArrayLike | None = ...
) -> float: ...
@overload
def distortion(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike,
    metric: ArrayLike | None = ...,
    *,
    out: Floats | None = ...,
) -> float | Floats: ...
def distortion(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike,
    metric: ArrayLike | None = None,
    *,
    out: Floats | None = None,
) -> float | Floats:
    """Compute the expected distortion E d(X, Y) of a mechanism.

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array
        Distribution of the databases; for a stack also (B, N), a distribution for each channel.
    metric : 2-D array, optional
        ``metric[x, y]`` for every database and output. The default is the Hamming distance, the
        number of records that change; outputs must then be databases.
    out : array of length B, optional
        Array that receives the distortions of a stack.

    Returns
    -------
    float, or array of length B for a stack
        E d(X, Y) in units of the metric. It is h(epsilon) for randomised response, and for E_i
        under its own prior (Wang-Ying-Zhang 2015, Lemmas 4 and 5).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.distortion(fp.HammingChannel(4, 2, 0.0), fp.Uniform(4, 2))
    2.0
    """
    if is_stack(channel, out):
        return _stack_distortion(as_stack(channel), prior, metric, out)
    mechanism, law = as_pair(channel, prior)
    if metric is None:
        return expected_distance(mechanism, law)
    cost = check.metric(metric, mechanism.space.size, mechanism.output_count)
    return expected_cost(mechanism, law, cost)


def _stack_distortion(
    stack: Floats, prior: Distribution | ArrayLike, metric: ArrayLike | None, out: Floats | None
) -> Floats:
    """Distortion of every matrix of a stack; without a metric, the probability of a change."""
    inputs, outputs = stack.shape[1:]
    if metric is None and inputs != outputs:
        raise InvalidInput(
            f"metric must be given, because outputs are not databases ({outputs} outputs for "
            f"{inputs} databases). Pass metric[x, y]."
        )
    cost = 1.0 - np.eye(inputs) if metric is None else check.metric(metric, inputs, outputs)

    def run(W: Floats, P: Floats, off: float, out: Floats) -> int:
        return kernels.expected_costs(W, P, cost, off, out)

    return stacked(run, lambda matrix, law: distortion(matrix, law, metric), stack, prior, out)


def expected_cost(channel: AbstractChannel, prior: Distribution, metric: Floats) -> float:
    """Return the sum of p(x) W[x, y] metric[x, y], from the matrix. Cost O(N K)."""
    return float(prior.probabilities() @ (channel.nearest_matrix() * metric).sum(axis=1))


@singledispatch
def expected_distance(channel: AbstractChannel, prior: Distribution) -> float:
    """Expected Hamming distance between database and output, for checked arguments.

    The general algorithm uses the matrix. Outputs must be databases. Cost O(N^2 n).
    """
    return matrix_distance(channel, prior)


def matrix_distance(channel: AbstractChannel, prior: Distribution) -> float:
    """Expected Hamming distance from the matrix of a channel. Cost O(N^2 n)."""
    space = channel.space
    if channel.output_space != space:
        raise InvalidInput(
            f"metric must be given, because outputs are not databases ({channel.output_count} "
            f"outputs for {space.size} databases). Pass metric[x, y]."
        )
    return kernels.hamming_cost(table(channel), prior.probabilities(), channel.databases)


@expected_distance.register
def _query_expected_distance(channel: QueryChannel, prior: Distribution) -> float:
    """Raise: the outputs of a query are not databases."""
    raise InvalidInput(
        "metric must be given, because the outputs of a query are not databases. Pass metric[x, y]."
    )


@expected_distance.register
def _product_expected_distance(channel: ProductChannel, prior: Distribution) -> float:
    """Add up the records. Cost O(distinct records) and the marginals of the prior."""
    if channel.output_space != channel.space:
        raise InvalidInput(
            "metric must be given, because records of outputs and databases have different "
            "sizes. Pass metric[x, y]."
        )
    total = []
    for kernel, rows in channel.kernels.groups():
        change = kernel.matrix.copy()
        np.fill_diagonal(change, 0.0)
        total.append(float(prior.marginal_sum(rows) @ change.sum(axis=1)))
    return math.fsum(total)


@expected_distance.register
def _hamming_expected_distance(channel: HammingChannel, prior: Distribution) -> float:
    """Return h(epsilon), whatever the prior (Wang-Ying-Zhang 2015, Lemma 5)."""
    return hamming_distance(channel.kernels)


@expected_distance.register
def _tilted_expected_distance(channel: TiltedChannel, prior: Distribution) -> float:
    """Return h(epsilon) under the channel's own prior.

    Under another prior the cost is O(N n), or O(types^2) for exchangeable records. A small matrix
    is used directly, because its terms are positive.
    """
    if channel.is_own_prior(prior):
        return hamming_distance(channel.hamming_kernels)
    types, same = channel.by_type, prior.by_type()
    if types is not None and same is not None and types.fits:
        joint = np.exp(types.log_joint(types.log_prior(same)))
        return math.fsum((joint * types.pairs.mean_distance).reshape(-1))
    if channel.space.size**2 <= FORMED:
        return matrix_distance(channel, prior)
    return float((prior.probabilities() * tilted_distances(channel)).sum())


@expected_distance.register
def _tilted_product_expected_distance(channel: TiltedProduct, prior: Distribution) -> float:
    """Return h(epsilon) under the channel's own prior. Otherwise use the product channel."""
    if channel.is_own_prior(prior):
        return hamming_distance(channel.hamming_kernels)
    return expected_distance(channel.as_product, prior)


@expected_distance.register
def _type_expected_distance(channel: TypeChannel, prior: Distribution) -> float:
    """Add up the classes. Cost O(classes) and the distribution of the counts of values."""
    stack, weights = channel.all_classes, channel.type_weights(prior)
    if weights is None:
        query = Histogram(channel.space.n, channel.space.sizes[0])
        place = {tuple(counts): j for j, counts in enumerate(query.counts.tolist())}
        weights = query.law(prior)[[place[kind[0]] for kind in channel.types.counts]]
    return math.fsum(weights[stack.row] * channel.class_masses * stack.distance)


def hamming_distance(row_kernels: RowKernels) -> float:
    """Expected number of records that randomised response changes: h(epsilon)."""
    return math.fsum(
        len(rows) * (kernel.m - 1) * kernel.off
        for kernel, rows in row_kernels.groups()
        if isinstance(kernel, Symmetric)
    )


def tilted_distances(channel: TiltedChannel) -> Floats:
    """Expected Hamming distance of the output of a tilted channel, for every x. Cost O(N n)."""
    value, home = channel.base_and_mixture()
    total = np.zeros_like(value)
    # Carry (sum of R q, sum of R q d) through the axes. A move along an axis adds one to d.
    for i, m in enumerate(channel.space.sizes):
        kernel = channel.hamming_kernels[i]
        assert isinstance(kernel, Symmetric)
        shape = (-1, m, int(channel.space.strides[i]))
        v, t = value.reshape(shape), total.reshape(shape)
        moved = kernel.off * (v.sum(axis=1, keepdims=True) - v)
        total = (kernel.gap * t + kernel.off * t.sum(axis=1, keepdims=True) + moved).reshape(-1)
        value = (kernel.stay * v + moved).reshape(-1)
    return np.asarray(total / home)
