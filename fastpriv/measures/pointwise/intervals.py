"""Leakage under the worst of the priors whose bits are independent, with chances in an interval."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, round_up
from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import TINY
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel
from fastpriv.channels.queries.sums import Chance, corner_error, corner_laws
from fastpriv.measures.maxima import add_over_rows
from fastpriv.measures.pointwise.scaled import scaled_matrix

#: Most products in the chances of all outputs at all corners of a set of priors.
_CORNERS = 1 << 36


@singledispatch
def interval_level(channel: AbstractChannel, low: Chance, high: Chance, i: int | None) -> float:
    """Return the largest leakage (about row i, if given) under independent bits in an interval.

    The chance of y is linear in the chance of each bit. So it is least, and its ratio to the one
    given a bit is most extreme, at the ends. All corners take O(N n K).
    """
    n, matrix = channel.space.n, scaled_matrix(channel)
    outputs, slack = matrix.shape[1], (8 * n + 16) * ULP
    corners = at_corners(matrix, low, high, [j for j in range(n) if j != i])
    if i is None:
        possible = matrix.reshape((2,) * n + (outputs,))[(_possible(low, high),) * n]
        most, least = possible.reshape(-1, outputs).max(axis=0), corners.min(axis=0)
        seen = most > 0.0
        return round_up(float(log_ratio(most[seen], least[seen]).max(initial=0.0))) + slack
    zero, one = np.moveaxis(corners.reshape(2**i, 2, -1), 1, 0)
    return math.log(_row_share(zero, one, low, high)) + slack


def at_corners(matrix: Floats, low: Chance, high: Chance, rows: list[int]) -> Floats:
    """Return the output laws with the given bits at either chance in place of either value."""
    table = matrix
    for j in rows:
        zero, one = np.moveaxis(table.reshape(2**j, 2, -1), 1, 0)
        table = np.stack([q * zero + p * one for q, p in (low, high)], axis=1)
    return table.reshape(matrix.shape)


def _possible(low: Chance, high: Chance) -> slice:
    """Return the values that a bit can have."""
    return slice(0 if low[0] > 0.0 else 1, 2 if high[1] > 0.0 else 1)


def _row_share(zero: Floats, one: Floats, low: Chance, high: Chance) -> float:
    """Return the largest P(y | bit)/P(y), from the chances of outputs given a zero and a one.

    It is largest where the bit is least likely. An output too rare for a double is bounded by
    the chance of the bit alone.
    """
    worst = 1.0
    for own, other, t in ((zero, one, high[0]), (one, zero, low[1])):
        if t < 1.0:
            rare = own < TINY
            mean = t * own + (1.0 - t) * other
            with np.errstate(divide="ignore"):
                shares = own / np.where(rare, 1.0, mean)
            worst = max(worst, float(shares.max()))
            if rare.any() and (own[rare] > other[rare]).any():
                worst = max(worst, 1.0 / t if t > 0.0 else math.inf)
    return worst * (1.0 + 8.0 * ULP)


@interval_level.register
def _product_interval_level(
    channel: ProductChannel, low: Chance, high: Chance, i: int | None
) -> float:
    """Every row by itself."""
    if i is not None:
        return interval_level(Channel(channel.kernels[i].matrix, [2]), low, high, 0)
    rows = [Channel(kernel.matrix, [2]) for kernel in channel.kernels.distinct]
    return add_over_rows(channel, [interval_level(row, low, high, None) for row in rows])


@interval_level.register
def _query_interval_level(channel: QueryChannel, low: Chance, high: Chance, i: int | None) -> float:
    """A count: only the number of bits with the larger chance matters. Cost O(n^2 K)."""
    if not channel.query.counts_bits():
        return interval_level.dispatch(AbstractChannel)(channel, low, high, i)
    n, matrix = channel.space.n, channel.kernel.matrix
    matrix = np.ascontiguousarray(matrix[:, matrix.max(axis=0) > 0.0])
    check.fits(n * matrix.size, "the work for all corners", "use fewer rows", _CORNERS)
    error = corner_error(n, low, high)
    if i is None:
        first, last = n * (low[0] == 0.0), n * (high[1] > 0.0)
        most = matrix[first : last + 1].max(axis=0)
        least = np.full(matrix.shape[1], np.inf)
        for laws in corner_laws(n, low, high):
            np.minimum(least, (laws @ matrix).min(axis=0), out=least)
        seen = most > 0.0
        return round_up(float(log_ratio(most[seen], least[seen]).max(initial=0.0))) + error
    parts = ((laws @ matrix[:-1], laws @ matrix[1:]) for laws in corner_laws(n - 1, low, high))
    return math.log(max(_row_share(zero, one, low, high) for zero, one in parts)) + error
