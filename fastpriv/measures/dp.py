"""Differential privacy and identifiability: how well neighbouring databases can be told apart."""

from __future__ import annotations

import itertools
import math
from functools import singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, raised, round_up
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import log_error
from fastpriv._matrices.levels import axes_spread, matrix_level
from fastpriv._structure.rows import Symmetric
from fastpriv._structure.tilted_row import TiltedRow
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
from fastpriv.measures import supports
from fastpriv.measures.arguments import as_channel, as_pair
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.moves import likeliest_move, odds_level, type_odds
from fastpriv.measures.stacks import is_stack, measured, stacked
from fastpriv.priors import Dense, Distribution, Uniform
from fastpriv.priors.exchanged import as_exchangeable
from fastpriv.priors.unmixing import rounding
from fastpriv.spaces import Space

__all__ = ["dp_level", "identifiability_level"]

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike

#: Below this level the products p(x) W[x, y] would spoil the last digits of an identifiability.
_SMALL = 0.1
#: Times 2^900 and the least double, chances from here on have all their digits.
_RARE = 2.0**-848
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
    return matrix_level(np.array(channel.matrix()), channel.space._axes)


@neighbour_level.register
def _(channel: Channel) -> float:
    return matrix_level(channel._matrix, channel.space._axes)


@neighbour_level.register
def _(channel: RecordChannel) -> float:
    """Neighbours differ in the whole record: the largest ratio between any two."""
    return extreme_level(channel.columns)


@neighbour_level.register
def _(channel: ProductChannel) -> float:
    """The level of the worst row. Cost O(distinct rows)."""
    levels = [float(kernel.log_ratios.max()) for kernel in channel._kernels.distinct]
    return round_up(max(0.0, *levels))


@neighbour_level.register
def _(channel: HammingChannel) -> float:
    """Epsilon itself, or 0 where no row has a second value."""
    return channel.epsilon if max(channel.space.sizes) > 1 else 0.0


@neighbour_level.register
def _(channel: QueryChannel) -> float:
    """The largest ratio over pairs of answers that neighbours have. Cost O(K) for each pair."""
    return query_level(channel, channel._kernel.matrix)


@neighbour_level.register
def _(channel: SupportChannel) -> float:
    """The logarithm of the one ratio there is: every value can take the place of every other."""
    return channel._level


@neighbour_level.register
def _(channel: ColumnsChannel) -> float:
    """The level of the worst column."""
    return max(neighbour_level(column) for column in channel.columns)


def query_level(channel: QueryChannel, laws: Floats) -> float:
    """Return the level of a query whose answers have the given output laws."""
    pairs = channel._query.neighbours()
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    step, axes = max(1, _BLOCK // laws.shape[1]), np.array([[1, 2]])
    worst = 0.0
    for start in range(0, len(pairs), step):
        worst = max(worst, axes_spread(laws[pairs[start : start + step].reshape(-1)], axes))
    return round_up(worst)


@neighbour_level.register
def _(channel: TypeChannel) -> float:
    """The largest ratio over moves of one row from class to class. Cost O(classes)."""
    return _class_level(channel, channel._entry)


def _class_level(channel: TypeChannel, entry: Floats) -> float:
    """Return ln of the largest ratio of a number per class over moves of one row."""
    source, target = channel._stack.source, channel._stack.target
    seen = entry[source] > 0
    ratios = log_ratio(entry[source][seen], entry[target][seen])
    return round_up(float(ratios.max(initial=0.0)))


@neighbour_level.register
def _(channel: TiltedChannel) -> float:
    """Epsilon + eps_X of the prior R q if every value of every row can come out, else less."""
    if not channel._moves:
        return 0.0
    if channel._listable:
        return _live_level(channel, [_home_ratios(channel, int(i)).T for i, *_ in channel._groups])
    # From one database to a neighbour, R q changes by e^epsilon at most.
    home, doubt = channel.prior, rounding(channel.space.n)
    if channel.space.size <= FEW:  # some of R q is too small for a double, or for its digits
        logs = -channel._tilt()[1]
        home, doubt = Dense._trusted(np.exp(logs - logs.max()), channel.space, logs), 0.0
    ratios = (home._log_ratios(rows[:1]).T for rows in channel._groups)
    return _live_level(channel, [np.minimum(ratio + doubt, channel.epsilon) for ratio in ratios])


@neighbour_level.register
def _(channel: TiltedProduct) -> float:
    """Take the rows."""
    return neighbour_level(channel._rows)


def _home_ratios(channel: TiltedChannel, i: int, prior: Distribution | None = None) -> Floats:
    """Largest ln v(x)/v(x') for v = R q, or for v = p/(R q), over neighbours in row i, and more.

    The entry (s, t) is for databases whose row i is s and t. With w the law q through all rows but
    i, v is b sum_t w(t) + (a - b) w(s): ratios come from differences of w, before these cancel.
    """
    space, kernel = channel.space, channel._kernels[i]
    assert isinstance(kernel, Symmetric)
    steps = [k.mixing if isinstance(k, Symmetric) else 0.0 for k in channel._kernels]
    mixed = mix(channel._law._vector().copy(), space.sizes, [*steps[:i], 0.0, *steps[i + 1 :]])
    lines, units = _lines(mixed, space, i), (12 * space.n + 32) * ULP
    home = kernel.off * lines.sum(axis=1, keepdims=True) + kernel.gap * lines
    odds = None if prior is None else _lines(prior._vector(), space, i)
    ratios = np.full((kernel.m, kernel.m), -math.inf)
    for s, t in itertools.product(range(kernel.m), repeat=2):
        apart = kernel.gap * (lines[:, s] - lines[:, t]) / home[:, t]
        near = np.abs(apart) < 0.5
        logs = np.where(near, np.log1p(np.where(near, apart, 0.0)), log_ratio(*home[:, [s, t]].T))
        # Entries of w are off by units of themselves, logarithms by a few of theirs.
        doubt = units * kernel.gap * (lines[:, s] + lines[:, t]) / home[:, t]
        doubt += 8.0 * ULP * np.abs(logs)
        if odds is not None:
            seen = odds[:, s] > 0.0
            given = log_ratio(odds[seen, s], odds[seen, t])
            logs, doubt = given - logs[seen], doubt[seen] + 8.0 * ULP * np.abs(given)
        ratios[s, t] = (logs + doubt).max(initial=-math.inf)
    return ratios if prior is None else ratios + _products_error(prior)


def _all_ratios(channel: TiltedChannel, rows: Ints, prior: Distribution) -> Floats:
    """The largest of them over rows: the channel treats them alike, another prior may not."""
    return np.asarray(np.max([_home_ratios(channel, int(i), prior) for i in rows], axis=0))


def _lines(vector: Floats, space: Space, i: int) -> Floats:
    """Return a vector over databases with one line per setting of the rows but i."""
    m, inner = space.sizes[i], int(space._strides[i])
    return vector.reshape(-1, m, inner).swapaxes(1, 2).reshape(-1, m)


def _live_level(
    channel: TiltedChannel, ratios: list[Floats], prior: Distribution | None = None
) -> float:
    """Return the largest e ([y_i = s] - [y_i = t]) + ratio[s, t] over rows, values and outputs.

    When row i of x moves from s to t, R[x, y] changes by e^(epsilon ([y_i = s] - [y_i = t])). A
    value s that never comes out therefore never gives the full e^epsilon. Where only one value
    does, the output says nothing about the row, and the prior's own ratios are left.
    """
    worst = [0.0]
    for rows, alive, ratio in zip(channel._groups, channel._alive, ratios, strict=True):
        if alive.sum() == 1:
            worst += [] if prior is None else [float(prior._log_ratios(rows).max())]
            continue
        elsewhere = alive.sum() - alive[:, None] - alive[None, :] > 0
        gain = np.where(alive[:, None], 1.0, np.where(elsewhere, 0.0, -1.0))
        np.fill_diagonal(gain, 0.0)
        worst.append(float(_log_sum(channel.epsilon * gain, ratio).max()))
    return round_up(max(worst))


@overload
def identifiability_level(channel: AbstractChannel, prior: PriorLike) -> float: ...
@overload
def identifiability_level(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = ...
) -> float | Floats: ...
def identifiability_level(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = None
) -> float | Floats:
    """Identifiability level of a mechanism under a prior.

    The largest ln p(x|y)/p(x'|y) over neighbours x, x' and outputs y that can occur
    (Wang-Ying-Zhang 2015, Definition 2). It is infinite when some database has probability zero,
    because the prior alone then tells a neighbour of that database apart from it.

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array
        Law of the databases; for a stack also (B, N), a law for each channel.
    out : array of length B, optional
        Where to put the levels of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Level in nats, rounded up. At most ``dp_level(channel) + prior.epsilon_x()``, with
        equality for E_d; epsilon for E_i under its own prior.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior = fp.Product.iid([0.8, 0.2], 3)
    >>> level = fp.identifiability_level(fp.HammingChannel(3, 2, 0.5), prior)
    >>> round(level, 6)  # 0.5 + ln 4
    1.886294
    """
    if is_stack(channel, out):
        return stacked(kernels.posterior_levels, identifiability_level, channel, prior, out)
    return posterior_level(*as_pair(channel, prior))


@singledispatch
def posterior_level(channel: AbstractChannel, prior: Distribution) -> float:
    """Return the largest ln p(x|y)/p(x'|y) over neighbours, from the joint law. O(N K n)."""
    return _joint_level(np.array(channel.matrix()), prior, channel.space)


@posterior_level.register
def _(channel: Channel, prior: Distribution) -> float:
    """From the joint law; with one row every two databases are neighbours."""
    if channel.space.n == 1 and prior._logs() is None:
        level = measured(kernels.posterior_levels, channel._matrix, prior._vector()[None])
        if not math.isnan(level):
            return level
    return _joint_level(channel._matrix, prior, channel.space)


def _joint_level(matrix: Floats, prior: Distribution, space: Space) -> float:
    p, logs = prior._vector(), prior._logs()
    if logs is None and np.any((p > 0.0) & (p < _RARE)):
        with np.errstate(divide="ignore"):
            logs = np.log(p)
    if logs is not None:
        return _rare_level(matrix, logs, space)
    # A power of two keeps products of small numbers from underflowing, and is exact.
    level = matrix_level((p * 2.0**900)[:, None] * matrix, space._axes)
    rounded = _products_error(prior)
    if level >= _SMALL:  # each of the two products is off by one rounding error at most
        return level + 4.0 * ULP + rounded
    # Close to zero, products p W carry rounding errors as large as the level. Work with
    # p W / (p_0 W_0) - 1 = a + b + a b instead, where a and b come from exact differences.
    a = (p - p[0]) / p[0]
    first = matrix[0]
    b = np.where(first > 0, (matrix - first) / np.where(first > 0, first, 1.0), 0.0)
    u = a[:, None] + b + a[:, None] * b
    return matrix_level(u, space._axes, 1.0) + 16.0 * ULP * float(np.abs(u).max()) + rounded


def _products_error(prior: Distribution) -> float:
    """Bound the error of a log-ratio of probabilities that were multiplied along the rows."""
    listed = isinstance(prior, Dense | Uniform) or prior.space.n == 1
    return 0.0 if listed else 4.0 * (prior.space.n + 1) * ULP


def _rare_level(matrix: Floats, logs: Floats, space: Space) -> float:
    """Return the posterior level under a prior given by logs, too rare for doubles."""
    with np.errstate(divide="ignore"):
        table = np.log(matrix) + logs[:, None]
    worst, seen = 0.0, table > -math.inf
    for x, other in space._steps():
        gaps = np.where(seen[x], table[x], 0.0) - np.where(seen[x], table[other], 0.0)
        worst = max(worst, float(gaps.max()))
    return round_up(worst) + log_error(table, 0.0)


@posterior_level.register
def _(channel: ProductChannel, prior: Distribution) -> float:
    """The worst sum of a row's and the prior's log-ratios. Cost O(distinct rows)."""
    worst = [0.0]
    for kernel, rows in channel._kernels.groups():
        ratios = prior._log_ratios(rows)
        # A value that never occurs (-inf) has no posterior to compare, even with an infinity.
        seen = ratios > -math.inf
        total = _log_sum(kernel.log_ratios[seen], ratios[seen])
        worst.append(float(total.max(initial=0.0)))
    return round_up(max(worst))


def _log_sum(first: Floats, second: Floats) -> Floats:
    """Bound the sum of two logarithms, which may cancel: each is raised past its own error."""
    return np.asarray(raised(first, 12.0) + raised(second, 12.0))


@posterior_level.register
def _(channel: HammingChannel, prior: Distribution) -> float:
    """Epsilon + eps_X: every pair of neighbours reaches e^epsilon at some output."""
    alone = neighbour_level(channel)
    if max(channel.space.sizes) == 1:
        return alone  # there are no neighbours
    spread = prior.epsilon_x()
    return round_up(channel.epsilon + spread) if spread > 0.0 else alone


@posterior_level.register
def _(channel: QueryChannel, prior: Distribution) -> float:
    """The largest sum of the answers' and the databases' log-ratios.

    Cost O(K) for each pair of answers that neighbours have if the prior knows their odds, else
    O(N n m).
    """
    odds = channel._query.odds(prior)
    if odds is not None:
        return odds_level(channel._kernel.matrix, odds)
    logs = prior._logs()
    error = _products_error(prior) if logs is None else log_error(logs, 0.0)
    return round_up(likeliest_step(channel, prior)[0]) + error


def likeliest_step(channel: QueryChannel, prior: Distribution) -> tuple[float, int, int]:
    """Return the largest ln kernel ratio + ln p(x)/p(x') over neighbours x, x', and the two.

    Cost O(N n m).
    """
    pmf, logs, values = prior._vector(), prior._logs(), channel._query.listed()
    alive = pmf > 0 if logs is None else logs > -math.inf
    worst = 0.0, 0, 0
    for x, other in channel.space._steps():
        x, other = x[alive], other[alive]
        ratios = channel._kernel.log_ratios[values[x], values[other]]
        odds = log_ratio(pmf[x], pmf[other]) if logs is None else logs[x] - logs[other]
        levels = _log_sum(ratios, odds)
        at = int(levels.argmax())
        if levels[at] > worst[0]:
            worst = float(levels[at]), int(x[at]), int(other[at])
    return worst


@posterior_level.register
def _(channel: TypeChannel, prior: Distribution) -> float:
    """Over moves of one row from class to class, O(classes), if the prior knows their odds."""
    odds = type_odds(channel, prior)
    if odds is None:
        return posterior_level(channel._plain(), prior)
    return round_up(likeliest_move(channel, odds)[0])


@posterior_level.register
def _(channel: TiltedChannel, prior: Distribution) -> float:
    """Epsilon under the channel's own prior. Under another one as for neighbours."""
    if not channel._moves:
        return 0.0
    if channel._own(prior):
        return channel._own_level
    types, same = channel._by_type, as_exchangeable(prior)
    if types is not None and same is not None:
        ratios = types.log_ratios(types.log_prior(same) - types.log_home)
        return _live_level(channel, [ratios], prior) + types.error + same._log_error
    logs = prior._logs()
    if logs is None and channel._listable:
        every = [_all_ratios(channel, rows, prior) for rows in channel._groups]
        return _live_level(channel, every, prior)
    with np.errstate(divide="ignore"):
        rare = (np.log(prior._vector()) if logs is None else logs) + channel._tilt()[1]
    odds = Dense._trusted(np.exp(rare - rare.max()), channel.space, rare)
    return _live_level(channel, [odds._log_ratios(rows) for rows in channel._groups], prior)


@posterior_level.register
def _(channel: TiltedProduct, prior: Distribution) -> float:
    """Epsilon under the channel's own prior. Under another one that of the rows."""
    if not channel._moves:
        return 0.0
    if channel._own(prior):
        return channel._own_level
    noise = [k.noise for k in channel._rows._kernels.distinct if isinstance(k, TiltedRow)]
    return posterior_level(channel._rows, prior) + 2.0 * max(noise, default=0.0)


@posterior_level.register
def _(channel: ColumnsChannel, prior: Distribution) -> float:
    """The level of the worst column where they are independent, otherwise through the matrix."""
    pairs = supports.independent(channel, prior)
    if pairs is None:
        return _joint_level(channel.matrix(), prior, channel.space)
    return max(posterior_level(*pair) for pair in pairs)


@posterior_level.register
def _(channel: SupportChannel, prior: Distribution) -> float:
    """Every two values are told apart by some report: epsilon + eps_X."""
    return round_up(channel._level + prior.epsilon_x())
