"""Channels with other neighbours: graphs and distances over databases, and groups of records.

Levels of differential privacy compare output distributions of neighbours. For other neighbours a
channel is turned into one with the same distributions, whose neighbours are the given pairs. The
levels of that channel are then the levels asked for.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import quotient_up, sum_error
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.ratios import apart, apart_by
from fastpriv._structure.neighbours import related_pairs
from fastpriv._structure.rows import Symmetric
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
)
from fastpriv.channels.queries import Histogram, Listed, Query, Sum, pairs_of, unlike_groups
from fastpriv.channels.record import ColumnsChannel, RecordChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.inputs import as_channel, is_stack, table
from fastpriv.spaces import Space

#: A distance, and a channel whose neighbours are the pairs at this distance.
Part = tuple[float, AbstractChannel]
#: Most terms of the convolutions for a group of records under randomised response.
_TERMS = 1 << 34


class Paired(Listed):
    """Inputs as their own answers, with the given pairs as neighbours.

    ``apart`` is the relative error by which the output distributions of a pair are rounded apart.
    """

    def __init__(self, count: int, pairs: Ints, apart: float = 0.0) -> None:
        super().__init__(np.arange(count), Space.of((count,)), count)
        self.pairs, self.apart = pairs, apart

    def neighbours(self) -> Ints:
        """Return the given pairs."""
        return self.pairs

    def definition(self) -> tuple[object, ...]:
        """Return the number of inputs and the pairs."""
        return self.answers, self.pairs.tobytes()


class ResponseGroup(QueryChannel):
    """A group of records under randomised response, as two databases that differ in each of them.

    Databases that agree in a record have post-processed output distributions, so this pair is the
    worst. Only the loss of an output distinguishes it: epsilon times U - V, if U records agree with
    the first database and V with the second. ``kernel`` has both distributions of U - V, rounded up
    and then rounded down.
    """

    columns: HammingChannel
    #: Bound on what underflow takes from a probability, far above the smallest doubles.
    lost = 2.0**-960

    @property
    def losses(self) -> Floats:
        """Losses of the outputs for the first database, in decreasing order."""
        live = sum(m > 1 for m in self.columns.space.sizes)
        return self.columns.epsilon * np.linspace(live, -live, self.output_count)

    @classmethod
    def of_records(cls, columns: HammingChannel) -> ResponseGroup:
        """Return the group of all records of a channel. Cost O(n^2)."""
        n = columns.space.n
        check.fits(n**2, "the distribution of a group's loss", "use a smaller group", _TERMS)
        law, counts = np.ones(1), Counter(columns.space.sizes)
        for m, count in counts.items():
            law = np.convolve(law, _net_agreements(Symmetric(m, columns.epsilon), count))
        if set(counts) <= {2}:
            law = law[::2]  # every bit agrees with one of the two
        # A convolution of k and l records adds 2 min(k, l) + 1 products of positive numbers.
        error = sum_error(n * (n.bit_length() + 10) + len(law), 64)
        both = np.stack([law, law[::-1]])
        above = both * (1.0 + error) + cls.lost
        below = np.maximum(both * (1.0 - error) - cls.lost, 0.0)
        self = cls.__new__(cls)
        laws = np.concatenate([above, below])
        self._set(Paired(len(laws), np.array([[0, 3], [1, 2]]), error), laws)
        self.columns = columns
        return self


def _net_agreements(kernel: Symmetric, k: int) -> Floats:
    """Return P(U - V = k, k - 1, ..., -k) for k outputs of randomised response.

    U outputs agree with the input of their record, and V with another given value.
    """
    if kernel.m == 1:
        return np.ones(1)
    if k == 1:
        return np.array([kernel.stay, (kernel.m - 2) * kernel.off, kernel.off])
    half = _net_agreements(kernel, k // 2)
    whole = np.convolve(half, half)
    return np.convolve(whole, _net_agreements(kernel, 1)) if k % 2 else whole


def group_size(group: Any) -> int:
    """Return the number of records in which neighbours may differ, checked."""
    return check.integer(group, "group", 1)


def per_distance(level: float, distance: float) -> float:
    """Return a level divided by the distance of the pairs that have it. Rounded up."""
    return level if distance == 1.0 or math.isinf(level) else quotient_up(level, distance)


def with_neighbours(
    channel: AbstractChannel | ArrayLike, neighbours: ArrayLike | None, group: int
) -> list[Part]:
    """Return channels whose neighbours are the related databases, one for each distance.

    The level is the largest of their levels, each divided by the distance. Groups of records of
    channels that act record by record, and of counts, sums and histograms, need no list of
    databases.
    """
    if is_stack(channel):
        raise InvalidInput(
            "channel must be one mechanism if neighbours or group are given; got a stack. Measure "
            "the channels one by one."
        )
    mechanism = as_channel(channel)
    if neighbours is None:
        if group == 1:
            return [(1.0, mechanism)]
        view = _grouped(mechanism, min(group, mechanism.space.n))
        if view is not None:
            return [(1.0, view)]
    related = related_pairs(neighbours, mechanism.space, group)
    laws, shift, error = _laws(mechanism)
    moved = np.array([0, shift])
    return [(d, paired(laws, pairs + moved, error)) for d, pairs in related]


def paired(laws: Floats, pairs: Ints, error: float = 0.0) -> AbstractChannel:
    """Return a channel with the given distributions and pairs of neighbours."""
    return QueryChannel.of(Paired(len(laws), np.ascontiguousarray(pairs), error), laws)


def _laws(channel: AbstractChannel) -> tuple[Floats, int, float]:
    """Return output distributions, a shift of row numbers, and a relative error.

    Given entries are exact: the shift and the error are 0. Computed entries have errors, so all
    distributions are returned twice, rounded up and rounded down. The shift leads from the row of a
    database in the first copy to its row in the second.
    """
    matrix = table(channel)
    if channel.matrix_error == 0.0:
        return matrix, 0, 0.0
    no_pairs = np.zeros(0, dtype=np.int64)
    both, _ = next(iter(apart(matrix, [(no_pairs, no_pairs)], channel.space.n)))
    return both, len(matrix), apart_by(matrix.shape[1], channel.space.n)


def _grouped(channel: AbstractChannel, k: int) -> AbstractChannel | None:
    """Return a channel whose neighbours differ in up to k records; None if databases are listed."""
    if isinstance(channel, HammingChannel):
        # Randomised response among fewer values reveals more, and a single value nothing.
        sizes = sorted(m for m in channel.space.sizes if m > 1)[:k] or [1]
        return ResponseGroup.of_records(HammingChannel(len(sizes), sizes, channel.epsilon))
    own = getattr(channel, "as_product", channel)
    if isinstance(own, ProductChannel):
        groups = [_group_record(own, group) for group in unlike_groups(own.record_kinds, k)]
        return groups[0] if len(groups) == 1 else ColumnsChannel(groups)
    if isinstance(channel, QueryChannel):
        pairs = _group_answers(channel.query, k)
        return None if pairs is None else paired(channel.kernel.matrix, pairs)
    return None


def _group_record(channel: ProductChannel, group: tuple[int, ...]) -> AbstractChannel:
    """Return the records of a group as one record."""
    kernels = channel.kernels.part(group)
    part = ProductChannel.of(kernels)
    if part.space == part.output_space:
        return RecordChannel(part)
    return RecordChannel(ColumnsChannel([Channel(kernel.matrix) for kernel in kernels]))


def _group_answers(query: Query, k: int) -> Ints | None:
    """Return the pairs of answers of databases that differ in up to k records."""
    if isinstance(query, Sum):
        codes = [np.empty(0, np.int64)]
        for group in unlike_groups(query.which, k):
            rest, own = query.sums_beside(group)
            for a in own.tolist():
                ends = (rest + a)[:, None] * query.answers + (rest[:, None] + own)
                codes.append(ends.reshape(-1))
        return pairs_of(np.concatenate(codes), query.answers)
    if isinstance(query, Histogram):
        # Up to k records move if at most k counts are lost in total.
        check.fits(query.answers**2, "the pairs of histograms", "use fewer records")
        codes = []
        for a, counts in enumerate(query.counts):
            moved = np.maximum(counts - query.counts, 0).sum(axis=1)
            codes.append(a * query.answers + np.flatnonzero(moved <= k))
        return pairs_of(np.concatenate(codes), query.answers)
    return None
