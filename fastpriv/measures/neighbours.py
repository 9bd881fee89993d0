"""Channels with other neighbours: graphs and distances over databases, and groups of records.

Levels of differential privacy compare output distributions of neighbours. For other neighbours a
channel is turned into one with the same distributions, whose neighbours are the given pairs. The
levels of that channel are then the levels asked for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import quotient_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.ratios import apart
from fastpriv._structure.neighbours import related_pairs
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel
from fastpriv.channels.queries import Histogram, Listed, Query, Sum, pairs_of, unlike_groups
from fastpriv.channels.record import ColumnsChannel, RecordChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.inputs import as_channel, is_stack, table
from fastpriv.spaces import Space

#: A distance, and a channel whose neighbours are the pairs at this distance.
Part = tuple[float, AbstractChannel]


class Paired(Listed):
    """Inputs as their own answers, with the given pairs as neighbours."""

    def __init__(self, count: int, pairs: Ints) -> None:
        super().__init__(np.arange(count), Space.of((count,)), count)
        self.pairs = pairs

    def neighbours(self) -> Ints:
        """Return the given pairs."""
        return self.pairs

    def definition(self) -> tuple[object, ...]:
        """Return the number of inputs and the pairs."""
        return self.answers, self.pairs.tobytes()


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
    laws, shift = _laws(mechanism)
    moved = np.array([0, shift])
    return [(d, paired(laws, pairs + moved)) for d, pairs in related]


def paired(laws: Floats, pairs: Ints) -> AbstractChannel:
    """Return a channel with the given distributions and pairs of neighbours."""
    return QueryChannel.of(Paired(len(laws), np.ascontiguousarray(pairs)), laws)


def _laws(channel: AbstractChannel) -> tuple[Floats, int]:
    """Return output distributions, and by how many rows the second of a pair is shifted.

    Computed entries have errors. Then a pair is rounded apart.
    """
    matrix = table(channel)
    if channel.matrix_error == 0.0:
        return matrix, 0
    nothing = np.zeros(0, dtype=np.int64)
    both, _ = next(iter(apart(matrix, [(nothing, nothing)], channel.space.n)))
    return both, len(matrix)


def _grouped(channel: AbstractChannel, k: int) -> AbstractChannel | None:
    """Return a channel whose neighbours differ in up to k records; None if databases are listed."""
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
