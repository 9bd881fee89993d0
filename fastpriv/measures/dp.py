"""Differential privacy: how well neighbouring databases can be told apart."""

from __future__ import annotations

from functools import singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import round_up
from fastpriv._core.validation import Floats
from fastpriv._matrices.levels import matrix_level
from fastpriv._structure.rows import RowKernel
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.columns import ColumnsChannel
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.record import RecordChannel
from fastpriv.channels.tilted import FEW, TiltedProduct
from fastpriv.channels.types import TypeChannel
from fastpriv.measures.arguments import as_channel
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.stacks import is_stack, stacked
from fastpriv.measures.tilted_levels import home_error, home_ratios, live_level
from fastpriv.priors import Dense

__all__ = ["dp_level"]

ChannelLike = AbstractChannel | ArrayLike

#: How many entries of pairs of answers are compared at a time.
_BLOCK = 1 << 20


@overload
def dp_level(channel: AbstractChannel) -> float: ...
@overload
def dp_level(channel: ChannelLike, *, out: Floats | None = ...) -> float | Floats: ...
def dp_level(channel: ChannelLike, *, out: Floats | None = None) -> float | Floats:
    """Differential privacy level of a mechanism.

    The largest ln p(y|x)/p(y|x') over neighbours x, x' (databases that differ in one row) and
    outputs y (Wang-Ying-Zhang 2015, Definition 3). It is infinite as soon as an output is possible
    for x and impossible for a neighbour.

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices. A plain matrix is one row with as many values as it has
        rows.
    out : array of length B, optional
        Where to put the levels of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Level in nats, rounded up. Cost O(N K n) for a matrix with K outputs, O(distinct rows)
        for products, closed form for E_d and E_i.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.dp_level([[0.5, 0.5], [0.25, 0.75]])
    0.6931471805599456
    >>> fp.dp_level([[[0.5, 0.5], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]]]).round(6)  # a stack
    array([0.693147, 0.      ])
    """
    if is_stack(channel, out):
        return stacked(kernels.ratio_levels, dp_level, channel, out=out)
    return neighbour_level(as_channel(channel))


@singledispatch
def neighbour_level(channel: AbstractChannel) -> float:
    """Return the largest ln W[x, y]/W[x', y] over neighbours, through the matrix. O(N K n)."""
    return matrix_level(np.array(channel.nearest_matrix()), channel.space.axes)


@neighbour_level.register
def _dense_neighbour_level(channel: Channel) -> float:
    return matrix_level(channel.array, channel.space.axes)


@neighbour_level.register
def _record_neighbour_level(channel: RecordChannel) -> float:
    """Neighbours differ in the whole record: the largest ratio between any two."""
    return extreme_level(channel.columns)


@neighbour_level.register
def _product_neighbour_level(channel: ProductChannel) -> float:
    """The level of the worst row, as for its matrix alone. Cost O(distinct rows)."""
    return max(0.0, *map(_row_level, channel.kernels.distinct))


def _row_level(kernel: RowKernel) -> float:
    if type(kernel) is not RowKernel:
        return round_up(float(kernel.log_ratios.max()))
    values = len(kernel.matrix)
    return matrix_level(np.array(kernel.matrix), np.array([[1, values]])) if values > 1 else 0.0


@neighbour_level.register
def _hamming_neighbour_level(channel: HammingChannel) -> float:
    """Epsilon itself, or 0 where no row has a second value."""
    return channel.epsilon if max(channel.space.sizes) > 1 else 0.0


@neighbour_level.register
def _query_neighbour_level(channel: QueryChannel) -> float:
    """The largest ratio over pairs of answers that neighbours have. Cost O(K) for each pair."""
    return query_level(channel, channel.kernel.matrix)


@neighbour_level.register
def _support_neighbour_level(channel: SupportChannel) -> float:
    """The logarithm of the one ratio there is: every value can take the place of every other."""
    return channel.level


@neighbour_level.register
def _columns_neighbour_level(channel: ColumnsChannel) -> float:
    """The level of the worst column."""
    return max(neighbour_level(column) for column in channel.columns)


def query_level(channel: QueryChannel, laws: Floats) -> float:
    """Return the level of a query whose answers have the given output laws."""
    pairs = channel.query.neighbours()
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    step, axes = max(1, _BLOCK // laws.shape[1]), np.array([[1, 2]])
    worst = 0.0
    for start in range(0, len(pairs), step):
        worst = max(worst, matrix_level(laws[pairs[start : start + step].reshape(-1)], axes))
    return worst


@neighbour_level.register
def _type_neighbour_level(channel: TypeChannel) -> float:
    """The largest ratio over moves of one row from class to class. Cost O(classes)."""
    return _class_level(channel, channel.entry)


def _class_level(channel: TypeChannel, entry: Floats) -> float:
    """Return ln of the largest ratio of a number per class over moves of one row."""
    source, target = channel.stack.source, channel.stack.target
    seen = entry[source] > 0
    ratios = log_ratio(entry[source][seen], entry[target][seen])
    return round_up(float(ratios.max(initial=0.0)))


@neighbour_level.register
def _tilted_neighbour_level(channel: TiltedChannel) -> float:
    """Epsilon + eps_X of the prior R q if every value of every row can come out, else less."""
    if not channel.moves:
        return 0.0
    if channel.is_listable:
        return live_level(
            channel, [home_ratios(channel, int(i)).T for i, *_ in channel.alike_groups]
        )
    # From one database to a neighbour, R q changes by e^epsilon at most.
    home, doubt = channel.prior, home_error(channel)
    if channel.space.size <= FEW:  # some of R q is too small for a double, or for its digits
        logs = -channel.tilt()[1]
        home = Dense.of(np.exp(logs - logs.max()), channel.space, logs)
        doubt = home_error(channel, logs)
    ratios = (home.log_ratios(rows[:1]).T for rows in channel.alike_groups)
    return live_level(channel, [np.minimum(ratio + doubt, channel.epsilon) for ratio in ratios])


@neighbour_level.register
def _tilted_product_neighbour_level(channel: TiltedProduct) -> float:
    """Take the rows."""
    return neighbour_level(channel.as_product)
