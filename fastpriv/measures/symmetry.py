"""Data-independent mechanisms, and the closed form of their individual capacity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import raised
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel
from fastpriv.channels.queries import Listed, Query
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.measures.individual.adversary import as_query
from fastpriv.measures.inputs import as_channel

__all__ = ["data_independent_bound", "is_data_independent", "is_weakly_symmetric"]

#: Relative difference up to which two probabilities count as equal.
_SAME = 1e-12
#: Most partial selections that are tried.
_TRIED = 30_000


def is_data_independent(channel: AbstractChannel | ArrayLike) -> bool:
    """Check whether all output distributions are permutations of one distribution.

    This is data independence in the sense of Wu-Xia-He 2020, Definition 12. Randomised response and
    the rank-based exponential channel have it. Probabilities count as equal up to a relative
    difference of 1e-12.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Notes
    -----
    Cost O(N K log K). A product is data-independent if and only if each of its factors is. For a
    query only the distributions of the answers matter.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.is_data_independent(fp.HammingChannel(1_000, 3, 1.0))
    True
    >>> fp.is_data_independent([[1.0, 0.0], [0.5, 0.5]])
    False
    """
    for laws, _ in law_factors(as_channel(channel)):
        ordered = np.sort(laws, axis=1)
        most = ordered.max(axis=0)
        if np.any(most - ordered.min(axis=0) > _SAME * most):
            return False
    return True


def data_independent_bound(channel: AbstractChannel | ArrayLike) -> float:
    """Compute the upper bound ln|Y| - H(Z) on the capacities of a data-independent mechanism.

    Z is the output for any one database (Wu-Xia-He 2020, Corollary 4, eq. (64)). It bounds the
    individual, group and channel capacities. It equals the individual channel capacity if
    :func:`is_weakly_symmetric` holds (eq. (65)).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism, which must be data-independent.

    Returns
    -------
    float
        Bound in nats, rounded up: the divergence of the distribution of Z from the uniform
        distribution.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.mechanisms.binary_symmetric([0, 1, 1, 0], 0.1, [2, 2])
    >>> round(fp.data_independent_bound(channel), 6)  # ln 2 - H(0.1)
    0.368064
    """
    mechanism = as_channel(channel)
    if not is_data_independent(mechanism):
        raise InvalidInput(
            "channel must have output distributions that are permutations of each other; here "
            "ln|Y| - H(Z) depends on the database. Use individual_capacity."
        )
    total = []
    for laws, count in law_factors(mechanism):
        outputs = laws.shape[1]
        uniform, off = np.full(outputs, 1.0 / outputs), np.zeros(outputs)
        # Rows differ by rounding. The largest divergence bounds the capacities in any case.
        most = kernels.row_divergences(laws, uniform, off, 0, len(laws), np.empty(len(laws)))
        total.append(count * most)
    return raised(math.fsum(total), 4.0)


def is_weakly_symmetric(channel: AbstractChannel | ArrayLike) -> bool:
    """Check whether a uniformly distributed record attains the capacity bound ln|Y| - H(Z).

    The property is Wu-Xia-He 2020, Definition 13. For some record i there is a choice of one
    database for each of the m values of x_i. The output is uniform if these m databases are equally
    likely. The columns of this channel with m rows have equal sums. Equal column sums of the whole
    matrix are neither necessary nor sufficient. If the property holds, C_1 = ln|Y| - H(Z)
    (Corollary 4).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Returns
    -------
    bool
        Whether the property holds. Sums count as equal up to 1e-12.

    Notes
    -----
    The definition requires equal probabilities of the m values. Other probabilities may attain
    ln|Y| - H(Z) too; :func:`individual_capacity` covers them. The search extends selections whose
    column sums stay within bounds. It raises TooLarge after 30,000 selections.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.is_weakly_symmetric(fp.mechanisms.binary_symmetric([0, 1, 1, 0], 0.1, [2, 2]))
    True
    >>> fp.is_weakly_symmetric(fp.HammingChannel(2, 2, 1.0))  # two rows cannot even out four
    False
    """
    mechanism = as_channel(channel)
    if not is_data_independent(mechanism):
        return False
    factors = law_factors(mechanism)
    outputs = math.prod(laws.shape[1] ** count for laws, count in factors)
    # Every record contains the largest probability, which must fit into a column sum of m/|Y|.
    top = math.fsum(count * math.log(laws.max()) for laws, count in factors)
    if math.log(max(mechanism.space.sizes)) - math.log(outputs) < top - _SAME * (1.0 - top):
        return False
    query, table = as_query(mechanism)
    tried = 0
    for slices in _slices(query):
        stack = [np.full(outputs, len(slices) / outputs)]
        levels = [0]
        while stack:
            room, level = stack.pop(), levels.pop()
            tried += 1
            if tried > _TRIED:
                raise TooLarge(
                    f"{_TRIED:,} partial selections did not decide whether columns can have "
                    "equal sums. Use individual_capacity, which brackets the capacity."
                )
            rows = table[slices[level]]
            if level == len(slices) - 1:
                if (np.abs(rows - room) <= _SAME).all(axis=1).any():
                    return True
                continue
            for row in rows[(rows <= room + _SAME).all(axis=1)]:
                stack.append(room - row)
                levels.append(level + 1)
    return False


def _slices(query: Query) -> list[Sequence[Ints]]:
    """Return the answers that each value of a record allows, for every record of different role."""
    sizes = query.space.sizes
    problems = query.candidates(1, check.MAX_VECTOR)
    if any(p.group and len(p.slices) < sizes[p.group[0]] for p in problems):
        problems = Listed(query.listed(), query.space, query.answers).candidates(1, 1)
    return [p.slices for p in problems]


@singledispatch
def law_factors(channel: AbstractChannel) -> list[tuple[Floats, int]]:
    """Return matrices and multiplicities; output distributions are products of their rows.

    In general this is the matrix of the channel, once.
    """
    return [(np.array(channel.nearest_matrix(), order="C"), 1)]


@law_factors.register
def _query_law_factors(channel: QueryChannel) -> list[tuple[Floats, int]]:
    """Return the distributions of the answers that occur."""
    return [(channel.occurring_rows(), 1)]


@law_factors.register
def _product_law_factors(channel: ProductChannel) -> list[tuple[Floats, int]]:
    """Return the distinct records' matrices and the number of records that use each."""
    kinds = channel.kernels.distinct
    counts = np.bincount(channel.kernels.assignment, minlength=len(kinds))
    return [(k.matrix, count) for k, count in zip(kinds, counts.tolist(), strict=True)]
