"""Realised distribution of a sampler: its differential privacy level, and its channel."""

from __future__ import annotations

import math
from functools import partial, singledispatch

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core.rounding import ratio_log_up, round_up, roundoff, sum_up
from fastpriv._matrices.ratios import matrix_level
from fastpriv._sampling.thresholds import LawThresholds
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.record import ColumnsChannel, RecordChannel
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel
from fastpriv.measures.dp import neighbour_level, query_level
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.leakage import extreme_level

__all__ = ["realised_level"]

#: Ratios of thresholds that are read as doubles are good to 2^-52.
_READ = 2.0**-50
#: Relative error of an information that is computed as a float, far above its few ulp.
INFORMATION_ERROR = 2.0**-40


def realised_level(channel: AbstractChannel | ArrayLike) -> float:
    """Compute the differential privacy level of the draws of ``channel.sample``.

    The sampler's integer thresholds determine its probabilities. For randomised response the
    realised level is at most epsilon. Other channels round every distribution to integer weights
    out of 2^64. Zeros stay zero and every positive probability is at least 2^-64, so the level is
    finite if the nominal level is. Optimal and tilted mechanisms draw a database in steps. Their
    level is the nominal level plus twice the largest error of these steps.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Returns
    -------
    float
        Level in nats, rounded up. Cost as for :func:`dp_level`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.realised_level(fp.HammingChannel(10, 4, 1.0))
    1.0
    >>> round(fp.realised_level(fp.HammingChannel(10, 4, 700.0)), 6)  # 64 bits tell no more
    44.36142
    """
    return drawn_level(as_channel(channel))


@singledispatch
def drawn_level(channel: AbstractChannel) -> float:
    """Return an upper bound on the differential privacy level of the draws of ``sample``.

    The general sampler has integer thresholds for every row of the matrix. Cost O(N K n).
    """
    if not _drawn_by_matrix(channel):
        raise NotImplementedError(
            f"{type(channel).__name__} has a sampler of its own; register the level of what it "
            "draws with fastpriv.measures.realised.drawn_level"
        )
    return channel.thresholds.level(partial(matrix_level, axes=channel.space.axes))


@singledispatch
def realised(channel: AbstractChannel) -> tuple[AbstractChannel, float]:
    """Return a channel that replaces the draws of ``sample`` in measures, and a slack.

    No level of the draws exceeds the level of the channel by more than the slack. For the general
    sampler the channel has the integer thresholds, read as doubles.
    """
    if _drawn_by_matrix(channel):
        return Channel(
            LawThresholds(np.array(channel.matrix(), order="C")).chances(), channel.space
        ), _READ
    level, nominal = drawn_level(channel), neighbour_level(channel)
    return channel, level - nominal if level > nominal else 0.0  # both may be infinite


def _drawn_by_matrix(channel: AbstractChannel) -> bool:
    """Whether a channel uses the general sampler."""
    return type(channel).draw is AbstractChannel.draw


@drawn_level.register
def _record_drawn_level(channel: RecordChannel) -> float:
    """Return the level of the columns' draws, between any two records."""
    drawn, slack = realised(channel.columns)
    level = extreme_level(drawn)
    return round_up(level + slack) if slack else level


@realised.register
def _record_realised(channel: RecordChannel) -> tuple[AbstractChannel, float]:
    """Return the record channel of the columns' draws."""
    drawn, slack = realised(channel.columns)
    return RecordChannel(drawn), slack


@drawn_level.register
def _product_drawn_level(channel: ProductChannel) -> float:
    """Level of the integer thresholds of the worst record. Cost O(distinct records)."""
    return max(kernel.thresholds.level() for kernel in channel.kernels.distinct)


@realised.register
def _product_realised(channel: ProductChannel) -> tuple[AbstractChannel, float]:
    """The integer thresholds of every record, read as doubles; R_e at its realised level."""
    kinds = [
        Symmetric(kernel.m, kernel.thresholds.level())
        if isinstance(kernel, Symmetric)
        else RowKernel(LawThresholds(kernel.matrix).chances())
        for kernel in channel.kernels.distinct
    ]
    rows = RowKernels(kinds, channel.kernels.assignment)
    read = sum(len(which) for kernel, which in rows.groups() if not isinstance(kernel, Symmetric))
    return ProductChannel.of(rows), read * _READ


@realised.register
def _hamming_realised(channel: HammingChannel) -> tuple[AbstractChannel, float]:
    """Randomised response at the realised level; the draws are a post-processing of it."""
    return HammingChannel(channel.space.n, channel.space.sizes, drawn_level(channel)), 0.0


@drawn_level.register
def _query_drawn_level(channel: QueryChannel) -> float:
    """Level of the integer thresholds over the pairs of answers that neighbours have."""
    return channel.thresholds.level(partial(query_level, channel))


@realised.register
def _query_realised(channel: QueryChannel) -> tuple[AbstractChannel, float]:
    """The integer thresholds of every answer, read as doubles."""
    drawn = QueryChannel.of(channel.query, LawThresholds(channel.kernel.matrix).chances())
    return drawn, _READ


@drawn_level.register
def _type_drawn_level(channel: TypeChannel) -> float:
    """The level of the entries, plus two errors of a few ulp.

    A class is drawn by at most 32 coins, each with an error of some ulp. The outputs of a class are
    equally likely without error. The probabilities of the classes are divided by their sum, which
    is not exactly 1.
    """
    totals = np.bincount(channel.all_classes.row, channel.class_masses)
    spread = math.log(totals.max() / totals.min())
    error = roundoff(16 * channel.space.n + len(channel.all_entries) + 512)
    return neighbour_level(channel) + spread + 2.0 * error


@drawn_level.register
def _tilted_drawn_level(channel: TiltedChannel) -> float:
    """Return a bound if records are drawn in turn.

    Given the previous records, the probability of record i has an error of some ulp, so p(y|x) has
    n times this error. The nominal level is raised by two of these errors, and by twice the error
    of clipping in the distribution of E_i.
    """
    if not channel.space.has_neighbours:
        return 0.0
    row = 8 * max(channel.space.sizes) + 64 + 2.0 * channel.epsilon
    error = roundoff(channel.space.n * row + 16.0 * abs(channel.base.log_smallest()) + 1024.0)
    return neighbour_level(channel) + 2.0 * (error + channel.misfit)


@drawn_level.register
def _tilted_product_drawn_level(channel: TiltedProduct) -> float:
    """Return the level of the records' thresholds."""
    return drawn_level(channel.drawn_product)


@realised.register
def _tilted_product_realised(channel: TiltedProduct) -> tuple[AbstractChannel, float]:
    """Return the records' thresholds, read as doubles."""
    return realised(channel.drawn_product)


@drawn_level.register
def _support_drawn_level(channel: SupportChannel) -> float:
    """The logarithm of the ratio of integers that is drawn; at most epsilon."""
    return min(ratio_log_up(channel.growth), channel.level)


@realised.register
def _support_realised(channel: SupportChannel) -> tuple[AbstractChannel, float]:
    """The same mechanism at the realised level.

    The sampled distribution has a ratio e' <= e and is a post-processing of the mechanism at that
    level. A mixture with the distribution b, which reveals nothing, has any ratio from 1 to e.
    Unary encoding is drawn as it is.
    """
    drawn = {**channel.definition(), "epsilon": drawn_level(channel)}
    return channel.from_definition(drawn), 0.0


@drawn_level.register
def _columns_drawn_level(channel: ColumnsChannel) -> float:
    """Return the level of the worst column's draws."""
    return max(drawn_level(column) for column in channel.columns)


@realised.register
def _columns_realised(channel: ColumnsChannel) -> tuple[AbstractChannel, float]:
    """Return the channel of the columns' draws, and the sum of their slacks."""
    parts = [realised(column) for column in channel.columns]
    return ColumnsChannel([part[0] for part in parts]), sum_up([part[1] for part in parts])


# Levels of the draws, from the levels of the channel that replaces them and its slack.


def with_draws(level: float, slack: float) -> float:
    """Raise a level by the most that the draws can add."""
    return round_up(level + slack) if slack else level


def raised_information(value: float, slack: float) -> float:
    """Raise an information or a capacity by the most that the draws can add.

    Probabilities within e^(+-s) of W give at most I + s + (e^s - 1) E|ln W/q|. Here q is the
    distribution of the output under W, and E|ln W/q| is at most I + 2/e.
    """
    return with_draws(value + slack * (1.0 + 2.0 * value), slack)
