"""ln sum_y max_x p(y|x), the maximal leakage of every structure: from above and from below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.logs import log_total
from fastpriv._core.rounding import (
    LEAST,
    ULP,
    exp_down,
    expm1_down,
    log1p_up,
    log_up,
    lowered,
    product_down,
    product_up,
    quotient_up,
    raised,
    round_up,
    sum_down,
    sum_up,
)
from fastpriv._structure.leakage import row_slack
from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, TiltedChannel
from fastpriv.channels.columns import ColumnsChannel
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.posterior import PosteriorChain
from fastpriv.channels.record import RecordChannel
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel
from fastpriv.measures import supports
from fastpriv.measures.stacks import measured
from fastpriv.priors.chain_unmixing import log_mean_inverse

#: Most decimal operations.
_DECIMALS = 1 << 22


@singledispatch
def maxima_level(channel: AbstractChannel) -> float:
    """Return ln of the sum over outputs of the largest p(y|x)."""
    return log_total(channel.column_maxima())


@maxima_level.register
def _dense_maxima_level(channel: Channel) -> float:
    """One pass over the matrix."""
    level = measured(kernels.maxima_levels, channel.array)
    return log_total(channel.column_maxima()) if math.isnan(level) else level


@maxima_level.register
def _record_maxima_level(channel: RecordChannel) -> float:
    """The level of the columns."""
    return maxima_level(channel.columns)


@maxima_level.register
def _product_maxima_level(channel: ProductChannel) -> float:
    """The sum over rows. Cost O(distinct rows)."""
    return add_over_rows(channel, [_row_maxima(k) for k in channel.kernels.distinct])


@singledispatch
def _row_maxima(kernel: RowKernel) -> float:
    """Return ln of the sum of the largest entries of the columns of a row. Rounded up."""
    return log_total(kernel.tops)


@_row_maxima.register
def _symmetric_row_maxima(kernel: Symmetric) -> float:
    """R_epsilon: ln(m a) = ln(1 + (m - 1)(1 - e^-epsilon)/(1 + (m - 1) e^-epsilon))."""
    if kernel.m == 1:
        return 0.0
    top = product_up(kernel.m - 1, -expm1_down(-kernel.epsilon))
    bottom = sum_down([1.0, product_down(kernel.m - 1, exp_down(-kernel.epsilon))])
    return log1p_up(quotient_up(top, bottom))


@maxima_level.register
def _type_maxima_level(channel: TypeChannel) -> float:
    """From the largest entry for each type of output. Cost O(classes)."""
    tops = np.array([entry.max() for entry in channel.entries])
    total = math.fsum(tops * np.exp(channel.types.log_sizes))
    return max(0.0, log_up(total)) + maxima_slack(channel)


@maxima_level.register
def _tilted_maxima_level(channel: TiltedChannel) -> float:
    """From the column maxima, which carry the rounding of n factors.

    The largest p(y|x) is at x = y. In types: ln sum_y q(y) R[y, y] / (R q)(y). Cost O(types).
    """
    tilt = channel.by_type
    if tilt is None:
        return log_total(channel.column_maxima()) + maxima_slack(channel)
    terms = (tilt.log_stay + tilt.log_law - tilt.log_each)[tilt.occurs]
    return round_up(max(0.0, float(np.logaddexp.reduce(terms)))) + maxima_slack(channel)


@maxima_level.register
def _posterior_chain_maxima_level(channel: PosteriorChain) -> float:
    """Chain: ln sum_y q(y) R[y, y] / p(y), by the forward recursion. Cost O(n m^4)."""
    chain, n, m = channel.prior, channel.space.n, channel.prior.space.sizes[0]
    check.fits(n * m**4, "maximal leakage of E_i", "use fewer rows", _DECIMALS)
    mean = log_mean_inverse(chain.initial, chain.transition, n, channel.epsilon)
    stay = -n * math.log1p((m - 1) * math.exp(-channel.epsilon))
    return round_up(max(0.0, mean + stay)) + maxima_slack(channel)


@maxima_level.register
def _tilted_product_maxima_level(channel: TiltedProduct) -> float:
    """The sum over rows, whose factors were rounded."""
    return maxima_level(channel.as_product) + maxima_slack(channel)


@maxima_level.register
def _support_maxima_level(channel: SupportChannel) -> float:
    """Reports that support some value reach e^epsilon times their base chance. Closed form."""
    return supports.maxima(channel)


@maxima_level.register
def _columns_maxima_level(channel: ColumnsChannel) -> float:
    """The sum over columns."""
    return sum_up([maxima_level(column) for column in channel.columns])


def maxima_floor(channel: AbstractChannel) -> float:
    """Return ln of the sum over outputs of the largest p(y|x), rounded down.

    The level rounded up is above the truth by at most twice its slack and a few ulp of itself: of
    an excess and its logarithm for a row, of a product and a sum over rows, and what raised
    them.
    """
    return max(0.0, lowered(maxima_level(channel) - 2.0 * maxima_slack(channel), 64.0))


@singledispatch
def maxima_slack(channel: AbstractChannel) -> float:
    """Bound the absolute error of ln sum_y max_x p(y|x), besides a few ulp of itself."""
    return 0.0


@maxima_slack.register
def _product_maxima_slack(channel: ProductChannel) -> float:
    """What underflow may have cost each row."""
    return 8.0 * LEAST * channel.space.n


@maxima_slack.register
def _record_maxima_slack(channel: RecordChannel) -> float:
    return maxima_slack(channel.columns)


@maxima_slack.register
def _type_maxima_slack(channel: TypeChannel) -> float:
    """Logarithms of class sizes, each a sum over n rows."""
    return (8 * channel.space.n + 64) * ULP


@maxima_slack.register
def _tilted_maxima_slack(channel: TiltedChannel) -> float:
    """Probabilities that are products over n rows."""
    tilt = channel.by_type
    return 4.0 * row_slack(channel.kernels) if tilt is None else tilt.error


@maxima_slack.register
def _posterior_chain_maxima_slack(channel: PosteriorChain) -> float:
    """The floats of R, of the chain and of epsilon are off by a few ulp for each row."""
    spread = channel.epsilon + channel.prior.epsilon_x()
    return 64.0 * channel.space.n * ULP * (1.0 + spread)


@maxima_slack.register
def _tilted_product_maxima_slack(channel: TiltedProduct) -> float:
    """One kernel for each row, made from one of the prior."""
    return 4.0 * row_slack(channel.kernels)


@maxima_slack.register
def _columns_maxima_slack(channel: ColumnsChannel) -> float:
    return sum_up([maxima_slack(column) for column in channel.columns])


def add_over_rows(channel: ProductChannel, per_kernel: Sequence[float]) -> float:
    """Add a number over rows, given its value for each distinct kernel to 2 units. Rounded up."""
    counts = np.bincount(channel.kernels.assignment, minlength=len(per_kernel))
    return raised(math.fsum(np.multiply(counts, per_kernel)), 6.0)
