"""Leakage of a mechanism: maximal leakage, leakage capacity, leakage factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio, log_total
from fastpriv._core.rounding import (
    LEAST,
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
    roundoff,
    sum_down,
    sum_up,
)
from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import matrix_gain
from fastpriv._matrices.ratios import matrix_level
from fastpriv._structure.leakage import row_slack, tilted, tropical, vector_gain
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv._structure.type_pairs import TypePairs
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
from fastpriv.channels.tilted import PosteriorChain, TiltedProduct
from fastpriv.channels.types import TypeChannel, log_type_weights, type_error
from fastpriv.measures import supports
from fastpriv.measures.attributes import Attribute, secrets_of, whole_channel
from fastpriv.measures.chain_bounds import gain_bounds, is_long
from fastpriv.measures.groups import group_marginal
from fastpriv.measures.information import mutual_information
from fastpriv.measures.inputs import (
    LARGE,
    as_channel,
    as_pair,
    group_numbers,
    is_stack,
    measure_as_product,
    measured,
    plain_pair,
    plainly,
    stacked,
    table,
)
from fastpriv.measures.records import group_information
from fastpriv.priors import Dense, Distribution, Exchangeable, Markov, Product
from fastpriv.priors.exchangeable import LISTED
from fastpriv.priors.unmixing import log_mean_inverse, opposite_path
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
#: Logarithm of how much larger than what underflow took the probability of an output must be.
_CLEAR = 50.0


@overload
def maximal_leakage(channel: AbstractChannel) -> float: ...
@overload
def maximal_leakage(
    channel: ChannelLike,
    prior: PriorLike | None = ...,
    *,
    attribute: Attribute | None = ...,
    row: int | None = ...,
    out: Floats | None = ...,
) -> float | Floats: ...
def maximal_leakage(
    channel: ChannelLike,
    prior: PriorLike | None = None,
    *,
    attribute: Attribute | None = None,
    row: int | None = None,
    out: Floats | None = None,
) -> float | Floats:
    """Compute the maximal leakage ln sum_y max_x p(y|x).

    It is ln of the mean of e^l(X -> y) under any prior with full support (Issa et al. 2019, Theorem
    1). Here l(X -> y) is the pointwise maximal leakage. For an attribute U of the database it is ln
    sum_y max_u p(y|u), which depends on the prior.

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array, optional
        Distribution of the databases, which an attribute needs.
    attribute, row
        An attribute U of the database, instead of the database; see :func:`pml`.
    out : array of length B, optional
        Array that receives the results of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Leakage in nats, rounded up. One pass over a matrix, O(distinct records) for products.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.maximal_leakage([[0.75, 0.25], [0.25, 0.75]]), 6)  # ln 1.5
    0.405465
    """
    if attribute is not None or prior is not None or row is not None:
        whole_channel(channel, attribute, out)
        secret = secrets_of(channel, prior, attribute, row)[1]
        return log_total(secret.matrix.max(axis=0)) + 4.0 * secret.error
    if type(channel) is Channel and out is None:
        return maxima_level(channel)
    if is_stack(channel, out):
        return stacked(kernels.maxima_levels, maximal_leakage, channel, out=out)
    return maxima_level(as_channel(channel))


@overload
def leakage_capacity(channel: AbstractChannel) -> float: ...
@overload
def leakage_capacity(channel: ChannelLike, *, out: Floats | None = ...) -> float | Floats: ...
def leakage_capacity(channel: ChannelLike, *, out: Floats | None = None) -> float | Floats:
    """Compute the leakage capacity, the largest ln p(y|x)/p(y|x') over databases and outputs.

    It is the largest leakage of any output under any prior, and the level of free-lunch privacy
    (Saeidian et al. 2024, Definition 2.7, Theorems 2.8 and 4.5).

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    out : array of length B, optional
        Array that receives the results of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Level in nats, rounded up. One pass over a matrix, O(distinct records) for products.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.leakage_capacity(fp.HammingChannel(1_000, 2, 0.5))
    500.0
    """
    if type(channel) is Channel and out is None:
        return _dense_extreme_level(channel)
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
    size = len(channel.table())
    if channel.cube.size < LARGE:
        return plainly(kernels.ratio_levels, channel.cube)
    axes = np.array([(1, size)] if size > 1 else [], np.int64).reshape(-1, 2)
    return matrix_level(channel.table(), axes)


@extreme_level.register
def _record_extreme_level(channel: RecordChannel) -> float:
    """The level of the columns: any two records are any two of their databases."""
    return extreme_level(channel.columns)


@extreme_level.register
def _product_extreme_level(channel: ProductChannel) -> float:
    """The sum over records. Cost O(distinct records)."""
    return add_over_rows(channel, [float(k.log_ratios.max()) for k in channel.kernels.distinct])


@extreme_level.register
def _hamming_extreme_level(channel: HammingChannel) -> float:
    """Return epsilon times the number of records with a second value, rounded up."""
    return product_up(channel.epsilon, channel.space.n - channel.space.sizes.count(1))


@extreme_level.register
def _type_extreme_level(channel: TypeChannel) -> float:
    """From the largest and smallest entry for each type of output. Cost O(classes)."""
    ends = [(entry.max(), entry.min()) for entry in channel.entries if entry.max() > 0]
    most, least = np.array(ends).T
    return round_up(float(log_ratio(most, least).max()))


@extreme_level.register
def _tilted_extreme_level(channel: TiltedChannel) -> float:
    """Use the largest and smallest tilt of every output. Cost O(N n m), or O(types)."""
    types = channel.by_type
    if types is not None:
        spread = (types.opposite - types.log_each)[types.occurs].max()
        return round_up(channel.epsilon * types.n + float(spread)) + types.error
    occurs, tilt = channel.log_tilt()
    most, least = (tropical(tilt, channel.hamming_kernels, j) for j in (np.maximum, np.minimum))
    return round_up(float((most - least)[occurs].max())) + 4.0 * row_slack(channel.hamming_kernels)


@extreme_level.register
def _posterior_chain_extreme_level(channel: PosteriorChain) -> float:
    """Chain: the worst x differs from the output y in every record. Cost O(n m^4)."""
    chain, n = channel.prior, channel.space.n
    best = opposite_path(chain.initial, chain.transition, n)
    return raised(channel.epsilon * n + best, n + 16.0)


@extreme_level.register
def _tilted_product_extreme_level(channel: TiltedProduct) -> float:
    """The sum over records, whose factors were rounded."""
    return extreme_level(channel.as_product) + 4.0 * row_slack(channel.hamming_kernels)


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
    """Compute the strong (local) differential privacy level, over all pairs of databases.

    It equals :func:`leakage_capacity` (Makhdoumi-Fawaz 2013, Definition 7).

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    out : array of length B, optional
        Array that receives the results of a stack.

    Returns
    -------
    float, or array of length B for a stack
        Level in nats, rounded up. Infinite if an output excludes a database.

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
    channel: ChannelLike,
    prior: PriorLike,
    *,
    rows: int | Sequence[int] | None = ...,
    out: Floats | None = ...,
) -> float | Bracket | Floats: ...
def leakage_factor(
    channel: ChannelLike,
    prior: PriorLike,
    *,
    rows: int | Sequence[int] | None = None,
    out: Floats | None = None,
) -> float | Bracket | Floats:
    """Compute the leakage factor I(X; Y) / H(X), the share of entropy that the output reveals.

    See Makhdoumi-Fawaz 2013, Definition 1. The factor is 0 if the database is certain. About some
    records it is I(X_G; Y) / H(X_G).

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array
        Distribution of the databases; for a stack also (B, N), a distribution for each channel.
    rows : int or sequence of int, optional
        One record or a group, instead of the whole database; see :func:`row_information`.
    out : array of length B, optional
        Array that receives the results of a stack.

    Returns
    -------
    float or Bracket, or array of length B for a stack
        Factor between 0 and 1. A bracket if the information or the entropy is a bracket.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.leakage_factor([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)
    0.188722
    """
    if rows is not None:
        whole_channel(channel, rows, out)
        mechanism, law = as_pair(channel, prior)
        group = group_numbers(mechanism, rows)
        told = group_information(mechanism, law, group)
        whole = len(group) == mechanism.space.n
        return information_share(told, (law if whole else group_marginal(law, group)).entropy())
    if (pair := plain_pair(channel, prior)) and out is None:
        share = plainly(kernels.information_shares, *pair)
        if share >= 0.0:
            return share
    if is_stack(channel, out):
        return stacked(kernels.information_shares, leakage_factor, channel, prior, out)
    mechanism, law = as_pair(channel, prior)
    share = _dense_share("information_shares", mechanism, law)
    return (
        share
        if share >= 0.0
        else information_share(mutual_information(mechanism, law), law.entropy())
    )


@overload
def worst_leakage_factor(channel: AbstractChannel, prior: PriorLike) -> float | Bracket: ...
@overload
def worst_leakage_factor(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = ...
) -> float | Bracket | Floats: ...
def worst_leakage_factor(
    channel: ChannelLike, prior: PriorLike, *, out: Floats | None = None
) -> float | Bracket | Floats:
    """Compute the worst-case leakage factor (H(X) - min_y H(X | Y = y)) / H(X).

    See Makhdoumi-Fawaz 2013, Definition 7. The factor is 0 if the database is certain, and 1 if
    some output determines it.

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices.
    prior : Distribution or 1-D array
        Distribution of the databases; for a stack also (B, N), a distribution for each channel.
    out : array of length B, optional
        Array that receives the results of a stack.

    Returns
    -------
    float or Bracket, or array of length B for a stack
        Factor between 0 and 1, rounded up. A bracket if the entropy is a bracket. Cost O(N K) for a
        matrix, O(N n m) for record-by-record channels, O(distinct records) if the records are also
        independent. Counts, sums and histograms cost O(n sums + answers K) under structured priors.
        Mechanisms on types cost O(classes) under exchangeable priors.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.worst_leakage_factor([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]), 6)
    0.188722
    """
    if (pair := plain_pair(channel, prior)) and out is None:
        share = plainly(kernels.entropy_shares, *pair)
        if share >= 0.0:
            return share
    if is_stack(channel, out):
        return stacked(kernels.entropy_shares, worst_leakage_factor, channel, prior, out)
    mechanism, law = as_pair(channel, prior)
    share = _dense_share("entropy_shares", mechanism, law)
    if share >= 0.0:
        return share
    gain = entropy_gain(mechanism, law)
    if (
        gain == 0.0 and mutual_information(mechanism, law) != 0.0
    ):  # some output has a smaller posterior entropy
        gain = LEAST
    return information_share(gain, law.entropy())


def _dense_share(kernel: str, channel: AbstractChannel, prior: Distribution) -> float:
    """Measure a small matrix under a vector by a kernel of stacks; NaN for others."""
    if isinstance(channel, Channel) and isinstance(prior, Dense) and prior.logs_if_rare() is None:
        return measured(getattr(kernels, kernel), channel.table(), prior.probabilities()[None])
    return math.nan


def information_share(part: float | Bracket, whole: float | Bracket) -> float | Bracket:
    """Part / whole in [0, 1], rounded up; 0/0 = 0."""
    if isinstance(part, Bracket) or isinstance(whole, Bracket):
        low, high = (part.lower, part.upper) if isinstance(part, Bracket) else (part, part)
        least, most = (whole.lower, whole.upper) if isinstance(whole, Bracket) else (whole, whole)
        upper = min(1.0, high / least * (1.0 + _ENTROPY)) if least > 0 else 1.0
        return Bracket(min(low / most * (1.0 - _ENTROPY), upper) if most > 0 else 0.0, upper)
    return max(min(1.0, part / whole * (1.0 + _ENTROPY)), min(part, LEAST)) if whole > 0 else 0.0


# ln sum_y max_x p(y|x), the maximal leakage of every structure: from above and from below.


def maxima_level(channel: AbstractChannel) -> float:
    """Return ln of the sum over outputs of the largest p(y|x), rounded up."""
    return maxima(channel)[0]


def maxima_floor(channel: AbstractChannel) -> float:
    """Return ln of the sum over outputs of the largest p(y|x), rounded down.

    The level rounded up is above the truth by at most twice its error and a few ulp of itself: of
    an excess and its logarithm for a record, of a product and a sum over records, and what raised
    them.
    """
    level, error = maxima(channel)
    return max(0.0, lowered(level - 2.0 * error, 64.0))


@singledispatch
def maxima(channel: AbstractChannel) -> tuple[float, float]:
    """Return ln sum_y max_x p(y|x) rounded up, and its absolute error besides a few ulp of it."""
    return log_total(channel.column_maxima()), 0.0


@maxima.register
def _dense_maxima(channel: Channel) -> tuple[float, float]:
    """One pass over the matrix."""
    level = measured(kernels.maxima_levels, channel.table())
    return log_total(channel.column_maxima()) if math.isnan(level) else level, 0.0


@maxima.register
def _record_maxima(channel: RecordChannel) -> tuple[float, float]:
    """The level of the columns."""
    return maxima(channel.columns)


@maxima.register
def _product_maxima(channel: ProductChannel) -> tuple[float, float]:
    """The sum over records, each of which underflow may have changed. O(distinct records)."""
    level = add_over_rows(channel, [_kernel_maxima(k) for k in channel.kernels.distinct])
    return level, 8.0 * LEAST * channel.space.n


@singledispatch
def _kernel_maxima(kernel: RowKernel) -> float:
    """Return ln of the sum of the largest entries of the columns of a kernel. Rounded up."""
    return log_total(kernel.column_maxima)


@_kernel_maxima.register
def _symmetric_kernel_maxima(kernel: Symmetric) -> float:
    """Randomised response: ln(m a) = ln(1 + (m - 1)(1 - e^-epsilon)/(1 + (m - 1) e^-epsilon))."""
    if kernel.m == 1:
        return 0.0
    top = product_up(kernel.m - 1, -expm1_down(-kernel.epsilon))
    bottom = sum_down([1.0, product_down(kernel.m - 1, exp_down(-kernel.epsilon))])
    return log1p_up(quotient_up(top, bottom))


@maxima.register
def _type_maxima(channel: TypeChannel) -> tuple[float, float]:
    """From the largest entry for each type of output. Cost O(classes)."""
    tops = np.array([entry.max() for entry in channel.entries])
    total = math.fsum(tops * np.exp(channel.types.log_sizes))
    error = roundoff(8 * channel.space.n + 64)  # logarithms of class sizes are sums over n records
    return max(0.0, log_up(total)) + error, error


@maxima.register
def _tilted_maxima(channel: TiltedChannel) -> tuple[float, float]:
    """From the column maxima, which are products of n factors.

    The largest p(y|x) is at x = y. In types: ln sum_y q(y) R[y, y] / (R q)(y). Cost O(types).
    """
    tilt = channel.by_type
    if tilt is None:
        error = 4.0 * row_slack(channel.hamming_kernels)
        return log_total(channel.column_maxima()) + error, error
    terms = (tilt.log_stay + tilt.log_law - tilt.log_each)[tilt.occurs]
    return round_up(max(0.0, float(np.logaddexp.reduce(terms)))) + tilt.error, tilt.error


@maxima.register
def _posterior_chain_maxima(channel: PosteriorChain) -> tuple[float, float]:
    """Chain: ln sum_y q(y) R[y, y] / p(y), by the forward recursion. Cost O(n m^4)."""
    chain, n, m = channel.prior, channel.space.n, channel.prior.space.sizes[0]
    check.fits(n * m**4, "maximal leakage of E_i", "use fewer records", _DECIMALS)
    mean = log_mean_inverse(chain.initial, chain.transition, n, channel.epsilon)
    stay = -n * math.log1p((m - 1) * math.exp(-channel.epsilon))
    # The floats of R, of the chain and of epsilon are off by a few ulp for each record.
    error = roundoff(64.0 * n) * (1.0 + channel.epsilon + chain.epsilon_x())
    return round_up(max(0.0, mean + stay)) + error, error


@maxima.register
def _tilted_product_maxima(channel: TiltedProduct) -> tuple[float, float]:
    """The sum over records, whose kernels were rounded."""
    error = 4.0 * row_slack(channel.hamming_kernels)
    return maxima(channel.as_product)[0] + error, error


@maxima.register
def _support_maxima(channel: SupportChannel) -> tuple[float, float]:
    """Messages that support some value reach e^epsilon times their base probability."""
    return supports.maxima(channel), 0.0


@maxima.register
def _columns_maxima(channel: ColumnsChannel) -> tuple[float, float]:
    """The sum over columns."""
    levels, errors = zip(*map(maxima, channel.columns), strict=True)
    return sum_up(levels), sum_up(errors)


def add_over_rows(channel: ProductChannel, per_kernel: Sequence[float]) -> float:
    """Add a number over records, given its value to 2 units for each kernel. Rounded up."""
    counts = np.bincount(channel.kernels.assignment, minlength=len(per_kernel))
    return raised(math.fsum(np.multiply(counts, per_kernel)), 6.0)


# Largest fall of the database's entropy at one output.


@singledispatch
def entropy_gain(channel: AbstractChannel, prior: Distribution) -> float | Bracket:
    """Largest H(X) - H(X | Y = y) over outputs y that occur, rounded up.

    The general algorithm uses the matrix. Relative errors d of its entries are 2 d of a posterior,
    and move its entropy by 2 d (1 + ln N), up to a factor 1 + 2 d. Cost O(N K).
    """
    gain = matrix_gain(table(channel), prior.probabilities())
    return gain + 4.0 * channel.matrix_error * (1.0 + math.log(channel.space.size))


@entropy_gain.register
def _type_entropy_gain(channel: TypeChannel, prior: Distribution) -> float | Bracket:
    """Under an exchangeable prior, use the classes for an output of each type.

    The output distinguishes classes, and the databases of a class are equally likely. Cost
    O(classes). Otherwise use the matrix, with its rows divided by their sums.
    """
    view = prior.by_type()
    if view is None:
        return entropy_gain(channel.as_channel(), prior)
    types, gains = channel.types, [0.0]
    weights = log_type_weights(types, view)
    top = int(weights.argmax())
    others = math.fsum(np.exp(np.delete(weights, top)))
    if others < 0.5:  # the logarithm of a probability close to one
        weights[top] = math.log1p(-others)
    for classes, entry in zip(channel.classes, channel.entries, strict=True):
        logs = weights[classes.row] - types.log_sizes[classes.row]
        law = np.exp(logs + classes.log_count)
        own = np.where(law > 0.0, law * np.where(law > 0.0, logs, 0.0), 0.0)
        gains.append(matrix_gain(entry[:, None], law, own / law.sum(), type_error(channel.space.n)))
    return max(gains)


@entropy_gain.register
def _query_entropy_gain(channel: QueryChannel, prior: Distribution) -> float:
    """Use the answers, and the entropy of the database given each. Cost O(answers K).

    The cost of the distribution of the answer is added.
    """
    query, laws = channel.query, channel.kernel.matrix
    return matrix_gain(laws, query.law(prior), query.surprise(prior), 4.0 * query.law_error)


@entropy_gain.register
def _product_entropy_gain(channel: ProductChannel, prior: Distribution) -> float | Bracket:
    """Record by record, in the structure of the prior."""
    return rows_gain(prior, channel.kernels)


@entropy_gain.register
def _tilted_entropy_gain(channel: TiltedChannel, prior: Distribution) -> float:
    """Apply R to the prior divided by R q. Cost O(N n m), or O(types^2).

    Under the channel's own prior every posterior is R, with the entropy of n records.
    """
    if channel.is_own_prior(prior) and channel.space.size > LISTED:
        return own_gain(channel)
    types, same = channel.by_type, prior.by_type()
    if types is not None and same is not None and types.fits:
        log_p = types.log_prior(same)
        weights = log_p - types.log_each
        gain = type_gain(types.pairs, weights, same.entropy(), types.occurs)
        return gain + same.log_error + types.error
    occurs, tilt = channel.log_tilt()
    weights, logs, _ = tilted(prior.probabilities(), prior.logs_if_rare(), tilt)
    return vector_gain(prior.probabilities(), weights, channel.hamming_kernels, logs, occurs)


def own_gain(channel: TiltedChannel) -> float:
    """Return H(X) - n H(row) under the channel's own prior, rounded up. Cost of the entropy.

    Clipping q moves a posterior by a factor within e^(2 misfit) of R, and its entropy by at most
    this factor's excess over 1 times the largest -ln R.
    """
    noise, largest = 0.0, 1.0
    for kernel, rows in channel.hamming_kernels.groups():
        assert isinstance(kernel, Symmetric)
        moved = (kernel.m - 1) * kernel.off
        noise += len(rows) * (channel.epsilon * moved - math.log(kernel.stay))
        largest += len(rows) * (channel.epsilon - math.log(kernel.stay))
    whole = float(channel.prior.entropy())
    error = 2.0**-46 * (whole + noise) + math.expm1(2.0 * channel.misfit) * largest
    return min(max(0.0, whole - noise) + error, raised(whole, 128.0))


measure_as_product(entropy_gain)


@singledispatch
def rows_gain(prior: Distribution, kernels: RowKernels) -> float | Bracket:
    """Largest H(X) - H(X | Y = y) across a channel that acts record by record. Cost O(N n m)."""
    return vector_gain(
        prior.probabilities(), prior.probabilities(), kernels, logs=prior.logs_if_rare()
    )


@rows_gain.register
def _markov_rows_gain(prior: Markov, kernels: RowKernels) -> float | Bracket:
    """Use the vector of the chain, or a bracket if the vector is too long."""
    if is_long(prior):
        return gain_bounds(prior, kernels)
    return vector_gain(
        prior.probabilities(), prior.probabilities(), kernels, logs=prior.logs_if_rare()
    )


@rows_gain.register
def _exchangeable_rows_gain(prior: Exchangeable, kernels: RowKernels) -> float:
    """Use pairs of types if there are many databases and one kernel. Cost O(types^2)."""
    pairs = prior.type_pairs(kernels)
    if pairs is None:
        return vector_gain(
            prior.probabilities(), prior.probabilities(), kernels, logs=prior.logs_if_rare()
        )
    weights = prior.log_weights[tuple(pairs.types[1:])]
    return type_gain(pairs, weights, prior.entropy()) + prior.log_error


def type_gain(
    pairs: TypePairs, log_weights: Floats, whole: float, occurs: np.ndarray | None = None
) -> float:
    """Largest H(X) - H(X | Y = y) if p(x|y) is proportional to w(x) W[x, y]. Rounded up.

    ``log_weights`` are ln of w summed over the databases of each type, ``whole`` is H(X) and
    ``occurs`` marks the types of outputs that occur. With M(y) = sum_x w(x) W[x, y], H(X | Y = y) =
    ln M(y) - E ln w(X) - E ln W[X, y], given Y = y.
    """
    seen = log_weights > -math.inf
    each = np.where(seen, log_weights - pairs.log_sizes, 0.0)
    joint = pairs.log_joint(log_weights)
    mass = pairs.log_sum(joint)
    known = mass > -math.inf if occurs is None else occurs & (mass > -math.inf)
    # If underflow may have changed an output, its largest possible information counts.
    clear = known & (mass > pairs.log_lost(log_weights) + _CLEAR)
    joint, mass = joint[:, clear], mass[clear]
    share = np.exp(joint - mass)
    cost = (share * pairs.mean_cost[:, clear]).sum(axis=0)
    top = pairs.log_tops[clear]
    prior = (share * each[:, None]).sum(axis=0)
    left = np.maximum(mass - pairs.log_output_sizes[clear] - prior - top + cost, 0.0)
    least = float(left.min(initial=math.inf)) if (known == clear).all() else 0.0
    size = np.abs(mass) + pairs.log_output_sizes[clear] + np.abs(prior) + np.abs(top) + cost
    error = (8.0 * pairs.error + roundoff(64.0)) * (1.0 + float(size.max(initial=0.0)) + whole)
    return min(max(0.0, whole - least), whole) + error


@rows_gain.register
def _product_rows_gain(prior: Product, kernels: RowKernels) -> float:
    """Add up the largest gains of the records. Cost O(distinct records)."""
    laws, which, counts, _ = prior.paired(kernels)
    pairs = zip(laws, which, strict=True)
    gains = [matrix_gain(kernels.distinct[j].matrix, prior.distinct[k]) for k, j in pairs]
    return round_up(math.fsum(np.multiply(counts, gains)))
