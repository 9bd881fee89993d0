"""Differential privacy: the largest ratio of output probabilities of neighbouring databases."""

from __future__ import annotations

import itertools
import math
from functools import singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import product_up, raised, round_up, roundoff, sum_up
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import log_error
from fastpriv._matrices.ratios import matrix_level
from fastpriv._structure.leakage import log_slack, row_slack
from fastpriv._structure.rows import RowKernel, Symmetric
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
from fastpriv.channels.tilted import FEW
from fastpriv.channels.types import TypeChannel
from fastpriv.measures.inputs import (
    LARGE,
    as_channel,
    is_stack,
    measure_as_product,
    plainly,
    stacked,
    table,
)
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.neighbours import (
    ResponseGroup,
    group_size,
    per_distance,
    with_neighbours,
)
from fastpriv.priors import Dense, Distribution, Uniform
from fastpriv.spaces import Space

__all__ = ["dp_level"]

ChannelLike = AbstractChannel | ArrayLike
#: How many entries of pairs of answers are compared at a time.
_BLOCK = 1 << 20


@overload
def dp_level(
    channel: AbstractChannel, *, neighbours: ArrayLike | None = ..., group: int = ...
) -> float: ...
@overload
def dp_level(
    channel: ChannelLike,
    *,
    neighbours: ArrayLike | None = ...,
    group: int = ...,
    out: Floats | None = ...,
) -> float | Floats: ...
def dp_level(
    channel: ChannelLike,
    *,
    neighbours: ArrayLike | None = None,
    group: int = 1,
    out: Floats | None = None,
) -> float | Floats:
    """Compute the differential privacy level of a mechanism.

    The level is the largest ln p(y|x)/p(y|x') over neighbours x, x' and outputs y (Wang-Ying-Zhang
    2015, Definition 3). Neighbours are databases that differ in one record. The level is infinite
    if an output is possible for x and impossible for a neighbour.

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices. A 2-D array is a mechanism on one record; row x is
        the output distribution for value x.
    neighbours : array or sparse array, optional
        Databases that must be hard to distinguish. Default: those that differ in one record. Pairs
        (k, 2) of integers, or a matrix of zeros and ones, are the edges of a graph. A matrix of
        other numbers has distances d: the level is the largest ratio
        of ln p(y|x)/p(y|x') to d(x, x').
    group : int
        Number of records in which neighbours may differ. With a graph, the number of its edges
        between neighbours.
    out : array of length B, optional
        Array that receives the results of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Level in nats, rounded up. Cost O(N K n) for a matrix with K outputs, O(distinct records)
        for products, closed form for randomised response (E_d) and E_i.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.dp_level([[0.5, 0.5], [0.25, 0.75]])
    0.6931471805599456
    >>> fp.dp_level([[[0.5, 0.5], [0.25, 0.75]], [[0.5, 0.5], [0.5, 0.5]]]).round(6)  # a stack
    array([0.693147, 0.      ])
    >>> fp.dp_level(fp.HammingChannel(1_000, 2, 0.5), group=3)
    1.5
    >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]  # inputs 0 and 2 are not neighbours
    >>> round(fp.dp_level([[0.5, 0.5], [0.25, 0.75], [0.1, 0.9]], neighbours=path), 6)
    0.916291
    """
    group = group_size(group)
    if neighbours is not None or group > 1:
        is_stack(channel, out)  # out is refused for one matrix
        if neighbours is None and isinstance(channel, AbstractChannel):
            alone = group_level(channel, min(group, channel.space.n))
            if alone is not None:
                return alone
        parts = with_neighbours(channel, neighbours, group)
        return max([0.0, *(per_distance(neighbour_level(part), d) for d, part in parts)])
    if type(channel) is Channel and out is None:
        return _dense_neighbour_level(channel)
    if is_stack(channel, out):
        return stacked(kernels.ratio_levels, dp_level, channel, out=out)
    return neighbour_level(as_channel(channel))


def group_level(channel: AbstractChannel, k: int) -> float | None:
    """Return the level of databases that differ in up to k records, if no pairs are needed.

    The levels of the k worst records add up if a channel acts on every record by itself.
    """
    if k == channel.space.n:
        return extreme_level(channel)
    if isinstance(channel, HammingChannel):
        live = channel.space.n - channel.space.sizes.count(1)
        return product_up(channel.epsilon, min(k, live))
    kernels = channel.kernels
    if kernels is None:
        return None
    levels = [_row_level(kernel) for kernel in kernels.distinct]
    counts = np.bincount(kernels.assignment, minlength=len(levels)).tolist()
    parts, left = list[float](), k
    for level, count in sorted(zip(levels, counts, strict=True), reverse=True):
        taken = min(count, left)
        if taken:
            parts.append(product_up(level, taken) if level < math.inf else level)
            left -= taken
    return sum_up(parts)


@singledispatch
def neighbour_level(channel: AbstractChannel) -> float:
    """Return the largest ln W[x, y]/W[x', y] over neighbours, from the matrix. Cost O(N K n)."""
    return matrix_level(table(channel), channel.space.axes)


@neighbour_level.register
def _dense_neighbour_level(channel: Channel) -> float:
    """One pass over the matrix of a single record, and one for each of several records."""
    if len(channel.space.sizes) == 1 and channel.cube.size < LARGE:
        return plainly(kernels.ratio_levels, channel.cube)
    return matrix_level(channel.table(), channel.space.axes)


@neighbour_level.register
def _record_neighbour_level(channel: RecordChannel) -> float:
    """Neighbours differ in the whole record: the largest ratio between any two."""
    return extreme_level(channel.columns)


@neighbour_level.register
def _product_neighbour_level(channel: ProductChannel) -> float:
    """The level of the worst record, as for its matrix alone. Cost O(distinct records)."""
    return max(0.0, *map(_row_level, channel.kernels.distinct))


def _row_level(kernel: RowKernel) -> float:
    return kernel.level if type(kernel) is RowKernel else round_up(kernel.level)


@neighbour_level.register
def _hamming_neighbour_level(channel: HammingChannel) -> float:
    """Return epsilon, or 0 if no record has a second value."""
    return channel.epsilon if max(channel.space.sizes) > 1 else 0.0


@neighbour_level.register
def _query_neighbour_level(channel: QueryChannel) -> float:
    """The largest ratio over pairs of answers that neighbours have. Cost O(K) for each pair."""
    return query_level(channel, channel.kernel.matrix)


@neighbour_level.register
def _response_group_level(channel: ResponseGroup) -> float:
    """Return the sum of the levels of all records."""
    return extreme_level(channel.columns)


@neighbour_level.register
def _support_neighbour_level(channel: SupportChannel) -> float:
    """The logarithm of the one ratio there is: every value can take the place of every other."""
    return channel.level


@neighbour_level.register
def _columns_neighbour_level(channel: ColumnsChannel) -> float:
    """The level of the worst column."""
    return max(neighbour_level(column) for column in channel.columns)


def query_level(channel: QueryChannel, laws: Floats) -> float:
    """Return the level of a query whose answers have the given output distributions."""
    pairs = channel.query.neighbours()
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    step, axes = max(1, _BLOCK // laws.shape[1]), np.array([[1, 2]])
    worst = 0.0
    for start in range(0, len(pairs), step):
        worst = max(worst, matrix_level(laws[pairs[start : start + step].reshape(-1)], axes))
    return worst


@neighbour_level.register
def _type_neighbour_level(channel: TypeChannel) -> float:
    """The largest ratio over moves of one record from class to class. Cost O(classes)."""
    return _class_level(channel, channel.all_entries)


def _class_level(channel: TypeChannel, entry: Floats) -> float:
    """Return ln of the largest ratio of a number per class over moves of one record."""
    source, target = channel.all_classes.source, channel.all_classes.target
    seen = entry[source] > 0
    ratios = log_ratio(entry[source][seen], entry[target][seen])
    return round_up(float(ratios.max(initial=0.0)))


@neighbour_level.register
def _tilted_neighbour_level(channel: TiltedChannel) -> float:
    """Epsilon + eps_X of the prior R q if every value of every record can come out, else less."""
    if not channel.space.has_neighbours:
        return 0.0
    if channel.is_listable:
        return live_level(
            channel, [home_ratios(channel, int(i)).T for i, *_ in channel.alike_groups]
        )
    # From one database to a neighbour, R q changes by e^epsilon at most.
    home, doubt = channel.prior, home_error(channel)
    if channel.space.size <= FEW:  # some of R q underflows, or loses digits
        logs = -channel.log_tilt()[1]
        home = Dense.of(np.exp(logs - logs.max()), channel.space, logs)
        doubt = home_error(channel, logs)
    ratios = (home.log_ratios(rows[:1]).T for rows in channel.alike_groups)
    return live_level(channel, [np.minimum(ratio + doubt, channel.epsilon) for ratio in ratios])


measure_as_product(neighbour_level)


# Ratios of probabilities between neighbours, of mechanisms with tilted distributions.


def home_ratios(channel: TiltedChannel, i: int, prior: Distribution | None = None) -> Floats:
    """Largest ln v(x)/v(x') for v = R q, or for v = p/(R q), over neighbours in record i, and more.

    The entry (s, t) is for databases whose record i is s and t. With w the distribution q through
    all records but i, v is b sum_t w(t) + (a - b) w(s): ratios come from differences of w, before
    these cancel.
    """
    space, kernel = channel.space, channel.hamming_kernels[i]
    assert isinstance(kernel, Symmetric)
    steps = [k.mixing if isinstance(k, Symmetric) else 0.0 for k in channel.hamming_kernels]
    mixed = mix(
        channel.base.probabilities().copy(), space.sizes, [*steps[:i], 0.0, *steps[i + 1 :]]
    )
    lines, units = _lines(mixed, space, i), roundoff(12 * space.n + 32)
    home = kernel.off * lines.sum(axis=1, keepdims=True) + kernel.gap * lines
    odds = None if prior is None else _lines(prior.probabilities(), space, i)
    ratios = np.full((kernel.m, kernel.m), -math.inf)
    for s, t in itertools.product(range(kernel.m), repeat=2):
        apart = kernel.gap * (lines[:, s] - lines[:, t]) / home[:, t]
        near = np.abs(apart) < 0.5
        logs = np.where(near, np.log1p(np.where(near, apart, 0.0)), log_ratio(*home[:, [s, t]].T))
        # Entries of w are off by units of themselves, sums by a few more, and so are logarithms of
        # ratios that are not near one.
        doubt = np.where(
            near,
            units * kernel.gap * (lines[:, s] + lines[:, t]) / home[:, t],
            2.0 * units + roundoff(4.0 * (kernel.m + 2)),
        )
        doubt += roundoff(8.0) * np.abs(logs)
        if odds is not None:
            seen = odds[:, s] > 0.0
            given = log_ratio(odds[seen, s], odds[seen, t])
            logs, doubt = given - logs[seen], doubt[seen] + roundoff(8.0) * np.abs(given)
        ratios[s, t] = (logs + doubt).max(initial=-math.inf)
    return ratios if prior is None else ratios + products_error(prior)


def all_ratios(channel: TiltedChannel, rows: Ints, prior: Distribution) -> Floats:
    """Return the maximum over records: the channel treats them alike, another prior may not."""
    return np.asarray(np.max([home_ratios(channel, int(i), prior) for i in rows], axis=0))


def _lines(vector: Floats, space: Space, i: int) -> Floats:
    """Reshape a vector over databases: a row per setting of the other records, m_i columns."""
    m, inner = space.sizes[i], int(space.strides[i])
    return vector.reshape(-1, m, inner).swapaxes(1, 2).reshape(-1, m)


def live_level(
    channel: TiltedChannel, ratios: list[Floats], prior: Distribution | None = None
) -> float:
    """Return the largest e ([y_i = s] - [y_i = t]) + ratio[s, t] over records, values and outputs.

    If record i of x changes from s to t, R[x, y] changes by e^(epsilon ([y_i = s] - [y_i = t])). So
    a value s that is never an output does not give the full e^epsilon. If only one value is an
    output, the output reveals nothing about the record. Then only the ratios of the prior remain.
    """
    worst = [0.0]
    for rows, alive, ratio in zip(
        channel.alike_groups, channel.occurring_values, ratios, strict=True
    ):
        if alive.sum() == 1:
            worst += [] if prior is None else [float(prior.log_ratios(rows).max())]
            continue
        gain = np.where(alive[:, None], np.ones((len(alive), len(alive))), 0.0)
        np.fill_diagonal(gain, 0.0)
        worst.append(float(log_sum(channel.epsilon * gain, ratio).max()))
    return round_up(max(worst))


def products_error(prior: Distribution) -> float:
    """Bound the error of a log-ratio of probabilities that are products over records."""
    listed = isinstance(prior, Dense | Uniform) or prior.space.n == 1
    return 0.0 if listed else roundoff(4.0 * (prior.space.n + 1))


def home_error(channel: TiltedChannel, tilt: Floats | None = None) -> float:
    """Bound the error of ln (R q)(x)/(R q)(x') from R q itself, or from its logarithms.

    Each entry of R q, and thus its logarithm, has an error of ``row_slack``. Sums of logarithms
    have a relative error instead, and their difference loses the common part.
    """
    error = 2.0 * row_slack(channel.hamming_kernels)
    return (
        error if tilt is None else error + log_error(tilt, 2.0 * log_slack(channel.hamming_kernels))
    )


def log_sum(first: Floats, second: Floats) -> Floats:
    """Bound the sum of two logarithms, which may cancel: each is raised past its own error."""
    return np.asarray(raised(first, 12.0) + raised(second, 12.0))
