"""What an output reveals about given records under a given prior: I(X_G; Y) of a group G."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels as compiled
from fastpriv._core.validation import Floats
from fastpriv._matrices.information import told_information
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel
from fastpriv.measures.chain_records import chain_contexts, conditional_chains, information_off
from fastpriv.measures.groups import Group, contexts, is_short, matrix_laws, query_laws
from fastpriv.measures.information import information
from fastpriv.measures.inputs import as_pair, group_numbers, measure_as_product
from fastpriv.priors import Distribution, Markov, Product
from fastpriv.priors.base import apply_rows
from fastpriv.results import Bracket

__all__ = ["row_information"]


def row_information(
    channel: AbstractChannel | ArrayLike,
    prior: Distribution | ArrayLike,
    rows: int | Sequence[int],
) -> float | Bracket:
    """Compute the mutual information I(X_G; Y) between some records and the output.

    G is one record or a group. The other records follow the prior given X_G, so that
    p(y|x_G) = sum over x with these values of p(x|x_G) p(y|x) (Wu-Xia-He 2020, Definition 5, before
    the maximum over priors). For all records it is :func:`mutual_information`.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism. A 2-D array is on the databases of the prior.
    prior : Distribution or 1-D array
        Distribution of the databases.
    rows : int or sequence of int
        Number of the record, 0 .. n-1, or the different numbers of a group.

    Returns
    -------
    float or Bracket
        Information in nats, rounded to nearest. It is at most the entropy of the group, and at most
        I(X; Y). A proved bracket for Markov priors that are too long for the exact sum.

    Notes
    -----
    Independent records add up: O(size of G) for channels that act record by record. Exchangeable
    bits through one kernel cost O(n^2) for each setting of the group. Counts and sums cost one
    distribution of the sum of the other records. Other cases use the matrix, or the vector of the
    prior for channels that act record by record.

    A long Markov chain is cut into windows around each record of the group. Outputs outside reveal
    at least nothing, and at most the record at the end of the window. For bits the windows have
    hundreds of outputs and the bracket is about 1e-6 wide. Records of three values have six outputs
    on each side.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> equal = fp.Dense([0.5, 0.0, 0.0, 0.5], [2, 2])  # both records hold the same bit
    >>> alone = fp.row_information(channel, fp.Uniform(2, 2), 0)
    >>> round(alone, 6), round(fp.row_information(channel, equal, 0), 6)
    (0.110944, 0.198909)
    >>> fp.row_information(channel, equal, [0, 1]) == fp.mutual_information(channel, equal)
    True
    """
    mechanism, law = as_pair(channel, prior)
    return group_information(mechanism, law, group_numbers(mechanism, rows))


@singledispatch
def group_information(
    channel: AbstractChannel, prior: Distribution, group: Group
) -> float | Bracket:
    """Return I(X_G; Y) for checked arguments. The general algorithm uses the matrix."""
    if len(group) == channel.space.n:
        return information(channel, prior)
    laws, settings = matrix_laws(channel, prior, group)
    return told_information(laws, settings)


@group_information.register
def _query_group_information(
    channel: QueryChannel, prior: Distribution, group: Group
) -> float | Bracket:
    """Use the joint distribution of the group and the answer."""
    if len(group) == channel.space.n:
        return information(channel, prior)
    return told_information(*query_laws(channel, prior, group))


@group_information.register
def _product_group_information(
    channel: ProductChannel, prior: Distribution, group: Group
) -> float | Bracket:
    """Use the outputs of the other records, then the outputs of the group one by one."""
    if len(group) == channel.space.n:
        return information(channel, prior)
    own = [channel.kernels[i] for i in group]
    if isinstance(prior, Product):
        laws = [prior.distinct[prior.assignment[i]] for i in group]
        return math.fsum(k.information(p[None, :]) for k, p in zip(own, laws, strict=True))
    if isinstance(prior, Markov) and not is_short(prior, channel.kernels):
        return _chain_group_information(prior, channel.kernels, group)
    return context_information(contexts(prior, channel.kernels, group), own)


def _chain_group_information(prior: Markov, kernels: RowKernels, group: Group) -> float | Bracket:
    """Add up the records of the group, each given the one before. Cost O(k m) records."""
    lower, upper, exact = [], [], True
    for chance, chain, rest, j in conditional_chains(prior, kernels, group):
        found = chain_contexts(chain, rest, j)
        low = context_information(found.lower, [rest[j]])
        lower.append(chance * low)
        if found.exact:
            upper.append(chance * low)
            continue
        exact = False
        high = min(
            context_information(found.upper, [rest[j]]), compiled.entropy(found.upper.sum(axis=0))
        )
        lower[-1] -= chance * information_off(low, found.lost)
        upper.append(chance * (high + information_off(high, found.lost)))
    if exact:
        return math.fsum(lower)
    low = max(0.0, math.fsum(lower))
    return Bracket(low, max(low, math.fsum(upper)))


measure_as_product(group_information)


def context_information(joint: Floats, own: Sequence[RowKernel]) -> float:
    """Return I(X_G; C, Y_G) = I(X_G; C) + sum_j I(X_j; Y_j | C, Y_<j), from ``joint[c, x_G]``.

    Every term is a sum of non-negative numbers.
    """
    settings = joint.sum(axis=0)
    seen = settings > 0.0
    terms = [0.0]
    if len(joint) > 1:
        laws = np.ascontiguousarray((joint[:, seen] / settings[seen]).T)
        terms.append(told_information(laws, settings[seen]))
    prefix = joint.reshape(-1)
    for j in range(len(own) - 1, -1, -1):
        m = own[j].shape[0]
        parts = prefix.reshape(len(joint), -1)
        if j:  # contexts are the trailing axis, which no kernel mixes
            flat = np.ascontiguousarray(parts.reshape(len(joint), -1, m).transpose(1, 0, 2))
            parts = apply_rows(flat.reshape(-1), own[:j], trailing=len(joint) * m)
        terms.append(own[j].information(parts.reshape(-1, m)))
        prefix = prefix.reshape(-1, m).sum(axis=1)
    return math.fsum(terms)
