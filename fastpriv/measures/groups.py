"""Distributions of groups of records: of their values, and of outputs given these values.

The joint distribution of a group X_G and the output is computed in the structure of channel and
prior. For a channel that acts record by record, the outputs of the other records are the context of
the group; a statistic of them suffices, such as their type under an exchangeable prior.
"""

from __future__ import annotations

import itertools
import math
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import TINY
from fastpriv._structure.rows import RowKernels
from fastpriv.channels import AbstractChannel, QueryChannel
from fastpriv.channels.queries import group_lines
from fastpriv.measures.inputs import table
from fastpriv.priors import Dense, Distribution, Exchangeable, Markov, Product
from fastpriv.priors.base import apply_rows
from fastpriv.priors.exchangeable import group_parts, substitute, without_one
from fastpriv.spaces import Space

Group = tuple[int, ...]
#: Most entries of a joint distribution of a group and the other records' outputs.
_ENTRIES = 1 << 25
#: Longest vector of a chain whose databases are listed.
_LISTED = 1 << 16


def matrix_laws(
    channel: AbstractChannel, prior: Distribution, group: Group
) -> tuple[Floats, Floats]:
    """Return p(y|x_G) for the settings of a group that occur, and their probabilities."""
    matrix, sizes = table(channel), channel.space.sizes
    weights = group_lines(prior.probabilities(), sizes, group)
    places = group_lines(np.arange(channel.space.size), sizes, group)
    settings = weights.sum(axis=1)
    seen = np.flatnonzero(settings)
    laws = [weights[s] / settings[s] @ matrix[places[s]] for s in seen.tolist()]
    return np.ascontiguousarray(laws), settings[seen]


def query_laws(channel: QueryChannel, prior: Distribution, group: Group) -> tuple[Floats, Floats]:
    """Return p(y|x_G) for the settings of a group that occur, and their probabilities."""
    joint = channel.query.group_law(prior, group)
    settings = joint.sum(axis=1)
    seen = settings > 0.0
    laws = joint[seen] / settings[seen, None] @ channel.kernel.matrix
    return np.ascontiguousarray(laws), settings[seen]


def rare_outputs(channel: QueryChannel, prior: Distribution, laws: Floats) -> NDArray[np.bool_]:
    """Mark outputs of a query that may be possible although their probability underflows."""
    if prior.log_smallest() > math.log(TINY):
        return np.zeros(laws.shape[1], dtype=bool)
    return np.asarray((laws.max(axis=0) < TINY) & (channel.column_maxima() > 0.0))


@singledispatch
def contexts(prior: Distribution, kernels: RowKernels, group: Group) -> Floats:
    """Return the joint distribution of the other records' outputs and a group of records.

    The array is [context, setting of the group]. The general algorithm uses the vector of the
    prior. Cost O(N n).
    """
    vector = prior.as_dense("information about some records").probabilities()
    return vector_contexts(vector, kernels, group)


def vector_contexts(vector: Floats, kernels: RowKernels, group: Group) -> Floats:
    """Send the axes of all other records through their kernels."""
    others = [kernels[i] for i in range(len(kernels)) if i not in group]
    lines = group_lines(vector, kernels.sizes_in, group).T
    joint = apply_rows(np.ascontiguousarray(lines).reshape(-1), others, trailing=lines.shape[1])
    return joint.reshape(-1, lines.shape[1])


@contexts.register
def _product_contexts(prior: Product, kernels: RowKernels, group: Group) -> Floats:
    """The outputs of other records reveal nothing."""
    return prior.part(group).pmf()[None, :]


@contexts.register
def _exchangeable_contexts(prior: Exchangeable, kernels: RowKernels, group: Group) -> Floats:
    """Use the type of the other records' outputs, if these have one kernel."""
    n, m, k = prior.space.n, prior.space.sizes[0], len(group)
    kinds = set(np.delete(kernels.assignment, group).tolist())
    if len(kinds) > 1:
        vector = prior.as_dense("information through different row kernels").probabilities()
        return vector_contexts(vector, kernels, group)
    if not kinds:
        return prior.pmf()[None, :]
    kernel = kernels.distinct[kinds.pop()]
    if kernel.shape[1] == 1:
        return np.array([[part.sum() for _, part in group_parts(prior.type_weights, k)]])
    entries = m**k * (n - k + 1) ** (kernel.shape[1] - 1)
    check.fits(
        entries, "the joint distribution of a group and types", "use a smaller group", _ENTRIES
    )
    columns: dict[Group, Floats] = {}
    for setting, part in group_parts(prior.type_weights, k):
        kind = tuple(sorted(setting))
        if kind not in columns:
            columns[kind] = substitute(part, kernel.matrix).reshape(-1)
    settings = (tuple(sorted(setting)) for setting, _ in group_parts(prior.type_weights, k))
    joint = np.stack([columns[kind] for kind in settings], axis=1)
    return np.ascontiguousarray(joint[joint.max(axis=1) > 0.0])


def loses_contexts(prior: Distribution, kernels: RowKernels, group: Group, joint: Floats) -> bool:
    """Whether the probability of a possible context may underflow.

    If some kernel has zeros, contexts that are impossible count as well.
    """
    others = np.delete(kernels.assignment, group)
    least = [float(kernel.matrix[kernel.matrix > 0.0].min()) for kernel in kernels.distinct]
    smallest = float(np.log(least)[others].sum()) + prior.log_smallest()
    if smallest > math.log(TINY):
        return False
    possible = math.prod(kernels.distinct[kind].shape[1] for kind in others.tolist())
    if isinstance(prior, Exchangeable) and len(set(others.tolist())) == 1:
        outputs = kernels.distinct[others[0]].shape[1]
        possible = math.comb(len(others) + outputs - 1, outputs - 1)
    return bool(possible > len(joint) or (joint.max(axis=1) < TINY).any())


def is_short(prior: Markov, kernels: RowKernels) -> bool:
    """Whether the vector of the chain and of its outputs is listed."""
    widest = max(kernel.shape[1] for kernel in kernels.distinct)
    return prior.space.n * math.log(max(widest, prior.space.sizes[0])) <= math.log(_LISTED)


# The distribution of a group of records.


@singledispatch
def group_marginal(prior: Distribution, group: Group) -> Distribution:
    """Return the distribution of some records, with O(N) work in general."""
    sizes = tuple(prior.space.sizes[i] for i in group)
    vector = prior.as_dense("the distribution of some records").probabilities()
    return Dense.of(group_lines(vector, prior.space.sizes, group).sum(axis=1), Space.of(sizes))


@group_marginal.register
def _product_group_marginal(prior: Product, group: Group) -> Distribution:
    return prior.part(group)


@group_marginal.register
def _exchangeable_group_marginal(prior: Exchangeable, group: Group) -> Distribution:
    """Leave out one record after the other. Cost O(n types)."""
    weights = prior.type_weights
    for left in range(prior.space.n, len(group), -1):
        weights = np.asarray(sum(without_one(weights))) / left
    return Exchangeable.of(weights)


@group_marginal.register
def _markov_group_marginal(prior: Markov, group: Group) -> Distribution:
    """Powers of the transition matrix lead from one record of the group to the next."""
    m = len(prior.initial)
    check.fits(m ** len(group), "the distribution of some records", "use a smaller group")
    joint = prior.marginal(group[0])
    for a, b in itertools.pairwise(group):
        step = np.linalg.matrix_power(prior.transition, b - a)
        joint = (joint.reshape(-1, m, 1) * step).reshape(-1)
    return Dense.of(joint, Space.of((m,) * len(group)))
