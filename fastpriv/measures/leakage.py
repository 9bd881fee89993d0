"""Leakage of a mechanism as one number: maximal leakage, leakage capacity, leakage factors."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import LEAST, product_up, raised, round_up, sum_up
from fastpriv._core.validation import Floats
from fastpriv._matrices.levels import matrix_level
from fastpriv._structure.leakage import row_slack, tropical
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    HammingChannel,
    ProductChannel,
    TiltedChannel,
)
from fastpriv.channels.columns import ColumnsChannel
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.posterior import PosteriorChain
from fastpriv.channels.record import RecordChannel
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel
from fastpriv.measures.arguments import as_channel, as_pair
from fastpriv.measures.entropy_gain import entropy_gain
from fastpriv.measures.information import mutual_information
from fastpriv.measures.maxima import add_over_rows, maxima_level
from fastpriv.measures.stacks import Kernel, is_stack, measured, stacked
from fastpriv.priors import Dense, Distribution
from fastpriv.priors.chain_unmixing import opposite_path
from fastpriv.results import Bracket

__all__ = [
    "leakage_capacity",
    "leakage_factor",
    "maximal_leakage",
    "strong_dp_level",
    "worst_leakage_factor",
]

#: Most decimal operations.
_DECIMALS = 1 << 22
#: Relative error of an entropy.
_ENTROPY = 2.0**-46

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike


@overload
def maximal_leakage(channel: AbstractChannel) -> float: ...
@overload
def maximal_leakage(channel: ChannelLike, *, out: Floats | None = ...) -> float | Floats: ...
def maximal_leakage(channel: ChannelLike, *, out: Floats | None = None) -> float | Floats:
    """Maximal leakage, ln sum_y max_x p(y|x).

    The log of the mean of e^l(X -> y) under any full-support prior (Issa et al. 2019, Theorem 1).

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    out : array of length B, optional
        Where to put the levels of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Nats, rounded up. One pass over a matrix, O(distinct rows) for products.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.maximal_leakage([[0.75, 0.25], [0.25, 0.75]]), 6)  # ln 1.5
    0.405465
    """
    if is_stack(channel, out):
        return stacked(kernels.maxima_levels, maximal_leakage, channel, out=out)
    return maxima_level(as_channel(channel))


@overload
def leakage_capacity(channel: AbstractChannel) -> float: ...
@overload
def leakage_capacity(channel: ChannelLike, *, out: Floats | None = ...) -> float | Floats: ...
def leakage_capacity(channel: ChannelLike, *, out: Floats | None = None) -> float | Floats:
    """Leakage capacity: the largest ln p(y|x)/p(y|x') over all databases x, x' and outputs y.

    The most that any output leaks under any prior, and the level of free-lunch privacy (Saeidian
    et al. 2024, Definition 2.7, Theorems 2.8 and 4.5).

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    out : array of length B, optional
        Where to put the levels of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Level in nats, rounded up. One pass over a matrix, O(distinct rows) for products.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.leakage_capacity(fp.HammingChannel(1_000, 2, 0.5))
    500.0
    """
    if is_stack(channel, out):
        return stacked(kernels.ratio_levels, leakage_capacity, channel, out=out)
    return extreme_level(as_channel(channel))


@singledispatch
def extreme_level(channel: AbstractChannel) -> float:
    """Return the largest ln W[x, y]/W[x', y] over all x, x' and outputs y."""
    ends = np.stack([channel.column_maxima(), channel.column_minima()])
    return matrix_level(ends, np.array([[1, 2]]))


@extreme_level.register
def _dense_extreme_level(channel: Channel) -> float:
    """One pass over the matrix."""
    size = len(channel.array)
    axes = np.array([(1, size)] if size > 1 else [], np.int64).reshape(-1, 2)
    return matrix_level(channel.array, axes)


@extreme_level.register
def _record_extreme_level(channel: RecordChannel) -> float:
    """The level of the columns: any two records are any two of their databases."""
    return extreme_level(channel.columns)


@extreme_level.register
def _product_extreme_level(channel: ProductChannel) -> float:
    """The sum over rows. Cost O(distinct rows)."""
    return add_over_rows(channel, [float(k.log_ratios.max()) for k in channel.kernels.distinct])


@extreme_level.register
def _hamming_extreme_level(channel: HammingChannel) -> float:
    """Epsilon for every row that has a second value, the product rounded up."""
    return product_up(channel.epsilon, channel.space.n - channel.space.sizes.count(1))


@extreme_level.register
def _type_extreme_level(channel: TypeChannel) -> float:
    """From the largest and least entry for each type of output. Cost O(classes)."""
    ends = [(entry.max(), entry.min()) for entry in channel.entries if entry.max() > 0]
    most, least = np.array(ends).T
    return round_up(float(log_ratio(most, least).max()))


@extreme_level.register
def _tilted_extreme_level(channel: TiltedChannel) -> float:
    """From the largest and least tilt behind every output. Cost O(N n m), or O(types)."""
    types = channel.by_type
    if types is not None:
        spread = (types.opposite - types.log_each)[types.occurs].max()
        return round_up(channel.epsilon * types.n + float(spread)) + types.error
    occurs, tilt = channel.tilt()
    most, least = (tropical(tilt, channel.kernels, j) for j in (np.maximum, np.minimum))
    return round_up(float((most - least)[occurs].max())) + 4.0 * row_slack(channel.kernels)


@extreme_level.register
def _posterior_chain_extreme_level(channel: PosteriorChain) -> float:
    """Chain: the worst x differs from the output y in every row. Cost O(n m^4)."""
    chain, n = channel.prior, channel.space.n
    best = opposite_path(chain.initial, chain.transition, n)
    return raised(channel.epsilon * n + best, n + 16.0)


@extreme_level.register
def _tilted_product_extreme_level(channel: TiltedProduct) -> float:
    """The sum over rows, whose factors were rounded."""
    return extreme_level(channel.as_product) + 4.0 * row_slack(channel.kernels)


@extreme_level.register
def _support_extreme_level(channel: SupportChannel) -> float:
    """The logarithm of the one ratio there is."""
    return channel.level


@extreme_level.register
def _columns_extreme_level(channel: ColumnsChannel) -> float:
    """The sum over columns."""
    return sum_up([extreme_level(column) for column in channel.columns])


@overload
def strong_dp_level(channel: AbstractChannel) -> float: ...
@overload
def strong_dp_level(channel: ChannelLike, *, out: Floats | None = ...) -> float | Floats: ...
def strong_dp_level(channel: ChannelLike, *, out: Floats | None = None) -> float | Floats:
    """Strong (local) differential privacy level, over all pairs of databases.

    The same number as :func:`leakage_capacity` (Makhdoumi-Fawaz 2013, Definition 7).

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    out : array of length B, optional
        Where to put the levels of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Nats, rounded up; infinite where an output rules a database out.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.strong_dp_level(fp.HammingChannel(3, 2, 0.5)), fp.dp_level(fp.HammingChannel(3, 2, 0.5))
    (1.5, 0.5)
    """
    return leakage_capacity(channel, out=out)


@overload
def leakage_factor(channel: AbstractChannel, prior: PriorLike) -> float | Bracket: ...
@overload
def leakage_factor(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = ...
) -> float | Bracket | Floats: ...
def leakage_factor(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = None
) -> float | Bracket | Floats:
    """Leakage factor I(X; Y) / H(X): the share of the database's entropy that the output tells.

    Makhdoumi-Fawaz 2013, Definition 1; 0 for a database that is certain.

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
    float or Bracket, or array of length B for a stack
        Between 0 and 1; a bracket where the information or the entropy is one.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.leakage_factor([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)
    0.188722
    """
    if is_stack(channel, out):
        return stacked(kernels.information_shares, leakage_factor, channel, prior, out)
    mechanism, law = as_pair(channel, prior)
    share = _dense_share(kernels.information_shares, mechanism, law)
    return share if share >= 0.0 else _share(mutual_information(mechanism, law), law.entropy())


@overload
def worst_leakage_factor(channel: AbstractChannel, prior: PriorLike) -> float | Bracket: ...
@overload
def worst_leakage_factor(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = ...
) -> float | Bracket | Floats: ...
def worst_leakage_factor(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = None
) -> float | Bracket | Floats:
    """Worst-case leakage factor (H(X) - min_y H(X | Y = y)) / H(X).

    Makhdoumi-Fawaz 2013, Definition 7; 0 for a database that is certain, 1 when some output
    settles it.

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
    float or Bracket, or array of length B for a stack
        Between 0 and 1, rounded up; a bracket where the entropy is one. Cost O(N K) for a matrix,
        O(N n m) for row-by-row channels, O(distinct rows) where the rows are independent too.
        Counts, sums and histograms cost O(n sums + answers K) under priors with a structure,
        mechanisms on types O(classes) under exchangeable ones.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.worst_leakage_factor([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)
    0.188722
    """
    if is_stack(channel, out):
        return stacked(kernels.entropy_shares, worst_leakage_factor, channel, prior, out)
    mechanism, law = as_pair(channel, prior)
    gain = entropy_gain(mechanism, law)
    if (
        gain == 0.0 and mutual_information(mechanism, law) != 0.0
    ):  # what is told lowers some entropy
        gain = LEAST
    return _share(gain, law.entropy())


def _dense_share(run: Kernel, channel: AbstractChannel, prior: Distribution) -> float:
    """Measure a small matrix under a vector by the kernel of stacks; NaN for others."""
    if isinstance(channel, Channel) and isinstance(prior, Dense) and prior.logs_if_rare() is None:
        return measured(run, channel.array, prior.probabilities()[None])
    return math.nan


def _share(part: float | Bracket, whole: float | Bracket) -> float | Bracket:
    """Part / whole in [0, 1], rounded up; 0/0 = 0."""
    if isinstance(part, Bracket) or isinstance(whole, Bracket):
        low, high = (part.lower, part.upper) if isinstance(part, Bracket) else (part, part)
        least, most = (whole.lower, whole.upper) if isinstance(whole, Bracket) else (whole, whole)
        upper = min(1.0, high / least * (1.0 + _ENTROPY)) if least > 0 else 1.0
        return Bracket(min(low / most * (1.0 - _ENTROPY), upper) if most > 0 else 0.0, upper)
    return max(min(1.0, part / whole * (1.0 + _ENTROPY)), min(part, LEAST)) if whole > 0 else 0.0
