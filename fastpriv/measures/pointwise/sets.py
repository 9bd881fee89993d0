"""Pointwise maximal leakage under the worst prior of a set."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, log_down, round_up
from fastpriv._matrices.leakage import TINY
from fastpriv.channels import AbstractChannel, ProductChannel
from fastpriv.channels.queries.sums import Chance, chances_from
from fastpriv.channels.rowwise import row_kernels, row_kinds
from fastpriv.measures.arguments import row_number
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.boxes import box_row_leakages, chances, row_box_level
from fastpriv.measures.pointwise.iid_sets import iid_level
from fastpriv.measures.pointwise.intervals import interval_level
from fastpriv.measures.pointwise.row_sets import convex_row_level
from fastpriv.measures.pointwise.scaled import scaled_matrix
from fastpriv.measures.pointwise.set_outputs import check_set, row_ratios
from fastpriv.priors.sets import (
    AllPriors,
    BernoulliPriors,
    Box,
    ConvexPriors,
    IidPriors,
    PriorSet,
    ProductPriors,
    RowBoxPriors,
)
from fastpriv.results import Bracket, top

#: Distance in nats between the ends of a bracket that counts as one number.
_CLOSE = 4e-6


def set_level(
    priors: PriorSet, channel: AbstractChannel, row: int | str | None, clock: Clock
) -> float | Bracket:
    """Return the supremum over priors of the leakage about the database or about a row.

    A bracket where the time was over before it was found.
    """
    check_set(priors, channel)
    if row is None:
        found = _whole(priors, channel, clock)
    elif isinstance(row, str) and row == "worst":
        found = _worst_row(priors, channel, clock)
    else:
        found = _one_row(priors, channel, row_number(channel, row), clock)
    if channel.matrix_error and row_kernels(channel) is None:  # entries are off by that
        off, most = 4.0 * channel.matrix_error, extreme_level(channel)
        if isinstance(found, Bracket):
            lower = min(max(found.lower - off, 0.0), most)
            found = Bracket(lower, min(found.upper + off, most))
        else:
            found = min(found + off, most)
    if isinstance(found, Bracket) and (found.width <= _CLOSE or clock.left() > 0.0):
        return found.upper
    return found


@singledispatch
def _whole(priors: PriorSet, channel: AbstractChannel, clock: Clock) -> float | Bracket:
    """Return the leakage about the database."""
    raise NotImplementedError(f"no leakage is registered for {type(priors).__name__}")


@singledispatch
def _worst_row(priors: PriorSet, channel: AbstractChannel, clock: Clock) -> float | Bracket:
    """Return the leakage about the row that leaks most."""
    rows = np.unique(row_kinds(channel), return_index=True)[1]
    levels = [_one_row(priors, channel, i, clock) for i in rows.tolist()]
    if not any(isinstance(level, Bracket) for level in levels):
        return max(map(top, levels))
    lower = max(level.lower if isinstance(level, Bracket) else level for level in levels)
    return Bracket(lower, max(map(top, levels)))


@singledispatch
def _one_row(priors: PriorSet, channel: AbstractChannel, i: int, clock: Clock) -> float | Bracket:
    """Return the leakage about one row."""
    raise NotImplementedError(f"no leakage about a row is registered for {type(priors).__name__}")


@_whole.register
def _all_whole(priors: AllPriors, channel: AbstractChannel, clock: Clock) -> float:
    return extreme_level(channel)


@_worst_row.register
def _all_worst_row(priors: AllPriors, channel: AbstractChannel, clock: Clock) -> float:
    """Theorem 4.5: the pair x, x' of the leakage capacity differs in some row."""
    return extreme_level(channel)


@_one_row.register
def _all_one_row(priors: AllPriors, channel: AbstractChannel, i: int, clock: Clock) -> float:
    return row_ratio(channel, i, fixed=False)


@_whole.register
def _product_whole(priors: ProductPriors, channel: AbstractChannel, clock: Clock) -> float:
    """Point masses are products, and p_Y(y) comes as close to its least value as one likes."""
    return extreme_level(channel)


@_worst_row.register
def _product_worst_row(priors: ProductPriors, channel: AbstractChannel, clock: Clock) -> float:
    """Theorem 4.2: the differential privacy level."""
    return neighbour_level(channel)


@_one_row.register
def _product_one_row(
    priors: ProductPriors, channel: AbstractChannel, i: int, clock: Clock
) -> float:
    return row_ratio(channel, i, fixed=True)


@_whole.register
def _bernoulli_whole(priors: BernoulliPriors, channel: AbstractChannel, clock: Clock) -> float:
    return _bits(channel, *chances_from(priors.c), None)


@_one_row.register
def _bernoulli_one_row(
    priors: BernoulliPriors, channel: AbstractChannel, i: int, clock: Clock
) -> float:
    return _bits(channel, *chances_from(priors.c), i)


@_whole.register
def _iid_whole(priors: IidPriors, channel: AbstractChannel, clock: Clock) -> float | Bracket:
    return iid_level(channel, priors.c, None, clock)


@_one_row.register
def _iid_one_row(
    priors: IidPriors, channel: AbstractChannel, i: int, clock: Clock
) -> float | Bracket:
    return iid_level(channel, priors.c, i, clock)


@_whole.register
def _row_box_whole(priors: RowBoxPriors, channel: AbstractChannel, clock: Clock) -> float:
    return _in_box(channel, priors.record_set, None)


@_one_row.register
def _row_box_one_row(priors: RowBoxPriors, channel: AbstractChannel, i: int, clock: Clock) -> float:
    return _in_box(channel, priors.record_set, i)


@_one_row.register
def _box_one_row(priors: Box, channel: AbstractChannel, i: int, clock: Clock) -> float:
    return float(box_row_leakages(priors, channel, i).max())


@_one_row.register
def _convex_one_row(
    priors: ConvexPriors, channel: AbstractChannel, i: int, clock: Clock
) -> float | Bracket:
    return convex_row_level(priors, channel, i, clock)


@_whole.register
def _convex_whole(priors: ConvexPriors, channel: AbstractChannel, clock: Clock) -> float | Bracket:
    """Output by output.

    For one output the supremum over p of max W[x, y] / p_Y(y), x over the support of p, is the
    largest W[x, y] over the x that any law of the set allows, divided by the least p_Y(y). To see
    this, mix a little of a law that allows x into the minimiser.
    """
    matrix, possible = scaled_matrix(channel), priors.possible()
    tops, least = matrix[possible].max(axis=0), matrix[possible].min(axis=0)
    seen = np.flatnonzero(tops > 0.0)
    caps = log_ratio(tops[seen], least[seen]) + 8.0 * ULP  # the largest that any prior allows
    level = reached = 0.0
    for place in np.argsort(-caps).tolist():
        if caps[place] <= level:
            break
        if clock.left() == 0.0:
            level = float(caps[place])
            break
        y = seen[place]
        column = np.where(possible, matrix[:, y] / tops[y], 0.0)
        mean, law = priors.lowest(column)
        leak = -log_down(mean) + 4.0 * ULP if mean > 0.0 else math.inf
        level, reached = max(level, leak), max(reached, -math.log(max(float(column @ law), TINY)))
        if level == math.inf:
            break
    return Bracket(max(0.0, min(reached - _CLOSE, level)), level)


@singledispatch
def row_ratio(channel: AbstractChannel, i: int, fixed: bool) -> float:
    """Return the largest ln W[x, y]/W[x', y] over x, x' that differ in row i, by the matrix.

    With ``fixed`` they differ in nothing else.
    """
    return round_up(float(row_ratios(scaled_matrix(channel), channel.space, i, fixed).max()))


@row_ratio.register
def _product_row_ratio(channel: ProductChannel, i: int, fixed: bool) -> float:
    """From the row's kernel, or from all rows."""
    if channel.space.sizes[i] == 1:
        return 0.0
    if fixed:
        return round_up(float(channel.kernels[i].log_ratios.max()))
    return extreme_level(channel)


def _bits(channel: AbstractChannel, low: Chance, high: Chance, i: int | None) -> float:
    """Independent bits with chances in an interval."""
    if low[1] == 0.0 and high[0] == 0.0:
        return extreme_level(channel) if i is None else row_ratio(channel, i, fixed=True)
    return interval_level(channel, low, high, i)


def _in_box(channel: AbstractChannel, box: Box, i: int | None) -> float:
    """Independent rows with laws in a box."""
    if box.size == 2:
        return _bits(channel, *chances(box), i)
    return row_box_level(channel, box, i)
