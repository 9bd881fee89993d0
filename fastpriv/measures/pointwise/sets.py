"""Pointwise maximal leakage under the worst prior of a set."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, round_up
from fastpriv._core.transform import mix
from fastpriv._matrices.leakage import TINY
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel
from fastpriv.channels.queries.sums import corner_error, corner_laws
from fastpriv.channels.rowwise import row_kinds
from fastpriv.measures.arguments import row_number
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.maxima import add_over_rows
from fastpriv.measures.pointwise.boxes import box_row_leakages, row_box_level
from fastpriv.measures.pointwise.iid_sets import iid_level
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

#: Most products in the chances of all outputs at all corners of a set of priors.
_CORNERS = 1 << 36


def set_level(priors: PriorSet, channel: AbstractChannel, row: int | str | None) -> float:
    """Return the supremum over priors of the leakage about the database or about a row."""
    check_set(priors, channel)
    if row is None:
        return _whole(priors, channel)
    if isinstance(row, str) and row == "worst":
        return _worst_row(priors, channel)
    return _one_row(priors, channel, row_number(channel, row))


@singledispatch
def _whole(priors: PriorSet, channel: AbstractChannel) -> float:
    """Return the leakage about the database."""
    raise NotImplementedError(f"no leakage is registered for {type(priors).__name__}")


@singledispatch
def _worst_row(priors: PriorSet, channel: AbstractChannel) -> float:
    """Return the leakage about the row that leaks most."""
    rows = np.unique(row_kinds(channel), return_index=True)[1]
    return max(_one_row(priors, channel, i) for i in rows.tolist())


@singledispatch
def _one_row(priors: PriorSet, channel: AbstractChannel, i: int) -> float:
    """Return the leakage about one row."""
    raise NotImplementedError(f"no leakage about a row is registered for {type(priors).__name__}")


@_whole.register
def _(priors: AllPriors, channel: AbstractChannel) -> float:
    return extreme_level(channel)


@_worst_row.register
def _(priors: AllPriors, channel: AbstractChannel) -> float:
    """Theorem 4.5: the pair x, x' of the leakage capacity differs in some row."""
    return extreme_level(channel)


@_one_row.register
def _(priors: AllPriors, channel: AbstractChannel, i: int) -> float:
    return row_ratio(channel, i, fixed=False)


@_whole.register
def _(priors: ProductPriors, channel: AbstractChannel) -> float:
    """Point masses are products, and p_Y(y) comes as close to its least value as one likes."""
    return extreme_level(channel)


@_worst_row.register
def _(priors: ProductPriors, channel: AbstractChannel) -> float:
    """Theorem 4.2: the differential privacy level."""
    return neighbour_level(channel)


@_one_row.register
def _(priors: ProductPriors, channel: AbstractChannel, i: int) -> float:
    return row_ratio(channel, i, fixed=True)


@_whole.register
def _(priors: BernoulliPriors, channel: AbstractChannel) -> float:
    return bernoulli_level(channel, priors.c, None) if priors.c else extreme_level(channel)


@_one_row.register
def _(priors: BernoulliPriors, channel: AbstractChannel, i: int) -> float:
    return bernoulli_level(channel, priors.c, i) if priors.c else row_ratio(channel, i, fixed=True)


@_whole.register
def _(priors: IidPriors, channel: AbstractChannel) -> float:
    return iid_level(channel, priors.c, None)


@_one_row.register
def _(priors: IidPriors, channel: AbstractChannel, i: int) -> float:
    return iid_level(channel, priors.c, i)


@_whole.register
def _(priors: RowBoxPriors, channel: AbstractChannel) -> float:
    return row_box_level(channel, priors._row, None)


@_one_row.register
def _(priors: RowBoxPriors, channel: AbstractChannel, i: int) -> float:
    return row_box_level(channel, priors._row, i)


@_one_row.register
def _(priors: Box, channel: AbstractChannel, i: int) -> float:
    return float(box_row_leakages(priors, channel, i).max())


@_one_row.register
def _(priors: ConvexPriors, channel: AbstractChannel, i: int) -> float:
    return convex_row_level(priors, channel, i)


@_whole.register
def _(priors: ConvexPriors, channel: AbstractChannel) -> float:
    """Output by output.

    For one output the supremum over p of max W[x, y] / p_Y(y), x over the support of p, is the
    largest W[x, y] over the x that any law of the set allows, divided by the least p_Y(y). To see
    this, mix a little of a law that allows x into the minimiser.
    """
    matrix, possible = scaled_matrix(channel), priors._possible()
    tops = matrix[possible].max(axis=0)
    worst = 0.0
    for y in np.flatnonzero(tops > 0):
        least = priors._least(np.where(possible, matrix[:, y] / tops[y], 0.0))
        worst = max(worst, -math.log(least) if least > 0 else math.inf)
        if worst == math.inf:
            break
    return round_up(worst) + 4.0 * ULP


@singledispatch
def row_ratio(channel: AbstractChannel, i: int, fixed: bool) -> float:
    """Return the largest ln W[x, y]/W[x', y] over x, x' that differ in row i, by the matrix.

    With ``fixed`` they differ in nothing else.
    """
    return round_up(float(row_ratios(scaled_matrix(channel), channel.space, i, fixed).max()))


@row_ratio.register
def _(channel: ProductChannel, i: int, fixed: bool) -> float:
    """From the row's kernel, or from all rows."""
    if channel.space.sizes[i] == 1:
        return 0.0
    if fixed:
        return round_up(float(channel._kernels[i].log_ratios.max()))
    return extreme_level(channel)


@singledispatch
def bernoulli_level(channel: AbstractChannel, c: float, i: int | None) -> float:
    """Return the largest leakage (about row i, if given) under independent bits, each c to 1 - c.

    The chance of y is linear in the chance of each bit. So it is least, and its ratio to the one
    given a bit is most extreme, at chances c or 1 - c. One O(N n K) transform gives all corners.
    """
    coefficients = [0.0 if row == i else c for row in range(channel.space.n)]
    matrix, sizes = scaled_matrix(channel), channel.space.sizes
    outputs = matrix.shape[1]
    corners = mix(matrix.reshape(-1).copy(), (*sizes, outputs), (*coefficients, 0.0))
    slack = (8 * channel.space.n + 16) * ULP
    if i is None:
        least, most = corners.reshape(-1, outputs).min(axis=0), matrix.max(axis=0)
    else:
        lines = corners.reshape(-1, 2, int(channel.space._strides[i]), outputs)
        most, least = lines.max(axis=1), lines.min(axis=1)
        least = c * most + (1.0 - c) * least
    seen = most > 0
    return round_up(float(log_ratio(most[seen], least[seen]).max(initial=0.0))) + slack


@bernoulli_level.register
def _(channel: ProductChannel, c: float, i: int | None) -> float:
    """Every row by itself."""
    if i is not None:
        return bernoulli_level(Channel(channel._kernels[i].matrix, [2]), c, 0)
    kinds = channel._kernels.distinct
    return add_over_rows(
        channel, [bernoulli_level(Channel(kernel.matrix, [2]), c, None) for kernel in kinds]
    )


@bernoulli_level.register
def _(channel: QueryChannel, c: float, i: int | None) -> float:
    """A count: only the number of bits with the larger chance matters. Cost O(n^2 K)."""
    if not channel._query.counts_bits():
        return bernoulli_level.dispatch(AbstractChannel)(channel, c, i)
    n, matrix = channel.space.n, channel._kernel.matrix
    matrix = np.ascontiguousarray(matrix[:, matrix.max(axis=0) > 0.0])
    check.fits(n * matrix.size, "the work for all corners", "use fewer rows", _CORNERS)
    if i is None:
        least = np.full(matrix.shape[1], np.inf)
        for laws in corner_laws(n, c):
            np.minimum(least, (laws @ matrix).min(axis=0), out=least)
        return round_up(float(log_ratio(matrix.max(axis=0), least).max())) + corner_error(n, c)
    worst = 1.0
    for laws in corner_laws(n - 1, c):
        zero, one = laws @ matrix[:-1], laws @ matrix[1:]
        most, least = np.maximum(zero, one), np.minimum(zero, one)
        # An output too rare for a double is bounded by the chance of the bit alone.
        mean = c * most + (1.0 - c) * least
        rare = most < TINY
        ratios = np.where(rare, 1.0 / c, most / np.where(rare, 1.0, mean))
        worst = max(worst, float(ratios.max()))
    return math.log(worst) + corner_error(n, c)
