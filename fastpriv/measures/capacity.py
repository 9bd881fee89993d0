"""Channel capacity: the largest mutual information over all priors."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, lowered, raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv._matrices.capacity import capacities, matrix_capacity, repeated, rewarded_law
from fastpriv._matrices.tilted import perturbed
from fastpriv._structure.rows import RowKernel, Symmetric, TiltedRow
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel, TiltedChannel
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.record import ColumnsChannel, RecordChannel
from fastpriv.channels.types import TypeChannel, type_error
from fastpriv.errors import InvalidInput
from fastpriv.measures import supports
from fastpriv.measures.inputs import as_channel, measure_as_product, table
from fastpriv.priors import Dense, Distribution, Exchangeable, Product, Uniform
from fastpriv.results import Bracket, Brackets
from fastpriv.spaces import Space

__all__ = ["capacity_prior", "channel_capacity"]

#: Above this capacity, row sums that are not exactly one change it by less than its rounding.
_CROSSED = 1e-12


@overload
def channel_capacity(channel: AbstractChannel, *, gap: float = ...) -> Bracket: ...
@overload
def channel_capacity(channel: ArrayLike, *, gap: float = ...) -> Bracket | Brackets: ...
def channel_capacity(
    channel: AbstractChannel | ArrayLike, *, gap: float = 1e-9
) -> Bracket | Brackets:
    """Bound the Shannon capacity of a mechanism, the largest mutual information over priors.

    C = max over p of I(p, W). Duality proves the bounds: for the output distribution q of any prior
    p, sum_x p(x) D(W_x || q) <= C <= max_x D(W_x || q).

    Parameters
    ----------
    channel : channel, 2-D array or 3-D array
        The mechanism, or a batch of B mechanisms as an array of shape (B, N, K). Rows are used
        without normalisation: a row that sums to 1 + 1e-16 is not divided by its sum.
    gap : float
        Target width of the bracket in nats, relative for capacities below one nat. With 0 the
        bracket is as narrow as rounding allows. If the target is not reached, the bracket is wider
        but valid.

    Returns
    -------
    Bracket or Brackets
        Capacity in nats, rounded outwards; one bracket for each mechanism of a batch. Positive
        capacities below 1e-280 give Bracket(0, 1e-280).

    Notes
    -----
    A matrix with two rows needs the root of one function. More rows need an interior-point method
    with about ten steps of O(N^2 K). Beyond 64 rows it runs on a subset of rows that may have
    positive probability. The capacities of independent records add up. A query uses each answer
    once, and a mechanism on types uses each type once.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.channel_capacity([[0.9, 0.1], [0.1, 0.9]])  # ln 2 - H(0.1)
    Bracket(0.3680642071, 0.3680642072)
    >>> fp.channel_capacity(fp.HammingChannel(1_000_000, 2, 1.0))  # a million times one row's
    Bracket(110944.0716, 110944.0717)
    >>> fp.channel_capacity([[[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]]).upper.round(6)
    array([0.693147, 0.      ])
    """
    gap = check.real(gap, "gap", least=0.0)
    if isinstance(channel, AbstractChannel | Distribution):
        return capacity(as_channel(channel), gap)
    given = check.array(channel, "channel")
    lower, upper, _ = capacities(_checked(given), gap)
    if given.ndim == 2:
        return Bracket(float(lower[0]), float(upper[0]))
    return Brackets(lower, upper)


@overload
def capacity_prior(channel: AbstractChannel, *, gap: float = ...) -> Distribution: ...
@overload
def capacity_prior(channel: ArrayLike, *, gap: float = ...) -> Distribution | Floats: ...
def capacity_prior(
    channel: AbstractChannel | ArrayLike, *, gap: float = 1e-9
) -> Distribution | Floats:
    """Return a prior that attains the capacity of a mechanism.

    Parameters
    ----------
    channel : channel, 2-D array or 3-D array
        The mechanism, or a batch of B mechanisms as an array of shape (B, N, K).
    gap : float
        As for :func:`channel_capacity`. The lower bound of that function is the mutual information
        under this prior, up to the rounding of the prior's probabilities.

    Returns
    -------
    Distribution or ndarray
        A prior on the channel's space. It is a product if the channel acts record by record. For a
        batch, an array of shape (B, N) with one distribution in each row.

    Examples
    --------
    >>> import fastpriv as fp
    >>> z = fp.Channel([[1.0, 0.0], [0.5, 0.5]])
    >>> fp.capacity_prior(z).pmf().round(6)
    array([0.6, 0.4])
    """
    gap = check.real(gap, "gap", least=0.0)
    if isinstance(channel, AbstractChannel | Distribution):
        return optimal_prior(as_channel(channel), gap)
    given = check.array(channel, "channel")
    laws = capacities(_checked(given), gap)[2]
    return Dense.of(laws[0], Space([len(given)])) if given.ndim == 2 else laws


def _checked(given: NDArray[Any]) -> Floats:
    """Return a matrix or a batch as (B, N, K); every row is a distribution."""
    if given.ndim not in (2, 3) or given.size == 0:
        raise InvalidInput(
            "a plain channel must be a matrix, or a batch of shape (B, N, K) with no empty side; "
            f"got shape {given.shape}."
        )
    batch = given.reshape((-1, *given.shape[-2:]))
    # The array is not kept, so one in C order is used without a copy, which would cost most at
    # small sizes.
    plain = batch.dtype == np.float64 and batch.flags.carray
    if plain and kernels.are_channels(batch, check.ROUNDED):
        return batch
    rows = batch.reshape(-1, given.shape[-1])
    name = "matrix" if given.ndim == 2 else "the batch, channel after channel"
    return check.stochastic(rows, name).reshape(batch.shape)


@singledispatch
def capacity(channel: AbstractChannel, gap: float) -> Bracket:
    """Largest I(X; Y) over priors, for checked arguments.

    The general algorithm uses the matrix.
    """
    return matrix_capacity(table(channel), gap)[0]


@capacity.register
def _record_capacity(channel: RecordChannel, gap: float) -> Bracket:
    """Return the capacity of the columns: a prior of the record is a prior of the columns."""
    return capacity(channel.columns, gap)


@capacity.register
def _query_capacity(channel: QueryChannel, gap: float) -> Bracket:
    """Use every answer that occurs, counted once."""
    return matrix_capacity(channel.occurring_rows(), gap)[0]


@capacity.register
def _product_capacity(channel: ProductChannel, gap: float) -> Bracket:
    """Add up the capacities of the records, each to its share of the gap. Cost O(distinct records).

    Let two distributions sum to s and t, and their reference distributions to s' and t'. Together
    they add (s - s')(t - t'), which matters if rows differ by no more than their sums.
    """
    kinds, rows = channel.kernels.distinct, channel.kernels.assignment
    counts = [len(rows)] if len(kinds) == 1 else np.bincount(rows, minlength=len(kinds)).tolist()
    parts = [row_capacity(kernel, gap / len(rows))[0] for kernel in kinds]
    total = repeated(list(zip(counts, parts, strict=True)))
    if len(rows) == 1 or total.upper > _CROSSED:
        return total
    unlike = math.fsum(c * _unlike_sums(kernel) for c, kernel in zip(counts, kinds, strict=True))
    return Bracket(total.lower, raised(total.upper + unlike**2, 8.0) if unlike else total.upper)


def _unlike_sums(kernel: RowKernel) -> float:
    """Return the spread of the exact sums of rows; 0 if distributions are computed."""
    if isinstance(kernel, Symmetric | TiltedRow):
        return 0.0
    sums = [math.fsum((-1.0, *row)) for row in kernel.matrix.tolist()]
    return max(sums) - min(sums)


@capacity.register
def _type_capacity(channel: TypeChannel, gap: float) -> Bracket:
    """Use a distribution of types: records may be permuted, and information is concave.

    Cost O(classes).
    """
    weights = rewarded_law(channel.type_matrix(), arrangement_gains(channel), 0.5 * gap)
    D = type_divergences(channel, weights)
    # Terms have relative errors of the sizes of classes, even if they nearly cancel.
    terms = int(np.bincount(channel.all_classes.row).max())
    off = type_error(channel.space.n) + roundoff(terms + 256)
    slack = off * (2.0 * D + 4.0 * np.sqrt(D))
    lower = math.fsum(weights * (D - slack)) / math.fsum(weights)
    return Bracket(max(0.0, lowered(lower, 8.0)), float((D + slack).max()))


def arrangement_gains(channel: TypeChannel) -> Floats:
    """Return the information of the output about the order of records, given both types.

    For a database of each type, it is the divergence of the output from a uniform output of its
    type.
    """
    types = channel.type_matrix()
    stack = channel.all_classes
    even = np.exp(stack.log_outputs - channel.types.log_sizes[stack.kind])
    expected = types[stack.row, stack.kind] * even
    return _added(channel, expected)


def type_divergences(channel: TypeChannel, weights: Floats) -> Floats:
    """Return D(W_x || q) for a database x of each type; q is the distribution of Y."""
    stack = channel.all_classes
    even = np.exp(stack.log_outputs - channel.types.log_sizes[stack.kind])
    return _added(channel, channel.output_types(weights / weights.sum())[stack.kind] * even)


def _added(channel: TypeChannel, expected: Floats) -> Floats:
    """Add up terms of a divergence of the masses of classes, by the type of x."""
    out, stack = np.empty(1), channel.all_classes
    order = np.argsort(stack.row, kind="stable")
    ends = np.cumsum(np.bincount(stack.row))[:-1]
    totals = []
    for part in np.split(order, ends):
        mass, law = channel.class_masses[part][None], expected[part]
        kernels.row_divergences(mass, law, np.zeros(len(part)), 0, 1, out)
        totals.append(float(out[0]))
    return np.array(totals)


@capacity.register
def _support_capacity(channel: SupportChannel, gap: float) -> Bracket:
    """Closed form for subsets and bits; otherwise the uniform prior and a bound by concavity."""
    if channel.is_small() and not channel.symmetric:
        found = matrix_capacity(channel.nearest_matrix(), gap)[0]
        return perturbed(found, channel.matrix_error, channel.level)
    return supports.capacity(channel)


@capacity.register
def _columns_capacity(channel: ColumnsChannel, gap: float) -> Bracket:
    """Add up the capacities of the columns, each to its share of the gap."""
    share = gap / len(channel.columns)
    return repeated([(1, capacity(column, share)) for column in channel.columns])


@capacity.register
def _tilted_capacity(channel: TiltedChannel, gap: float) -> Bracket:
    """Use the matrix, and widen by its error."""
    return channel.widened(matrix_capacity(channel.nearest_matrix(), gap)[0])


@singledispatch
def optimal_prior(channel: AbstractChannel, gap: float) -> Distribution:
    """Return a prior that attains the lower bound of the capacity, for checked arguments.

    The general algorithm uses the matrix.
    """
    law = matrix_capacity(table(channel), gap)[1]
    return Dense.of(law, channel.space)


@optimal_prior.register
def _query_optimal_prior(channel: QueryChannel, gap: float) -> Distribution:
    """Return a prior under which the answers follow their best distribution."""
    law = np.zeros(channel.kernel.shape[0])
    law[channel.query.seen()] = matrix_capacity(channel.occurring_rows(), gap)[1]
    return channel.query.prior(law)


@optimal_prior.register
def _product_optimal_prior(channel: ProductChannel, gap: float) -> Product:
    """Return independent records, each with the distribution that is best for its channel."""
    kinds, rows = channel.kernels.distinct, channel.kernels.assignment
    return Product.of([row_capacity(kernel, gap / len(rows))[1] for kernel in kinds], rows)


@optimal_prior.register
def _type_optimal_prior(channel: TypeChannel, gap: float) -> Distribution:
    """Return exchangeable records with the best distribution of types."""
    if channel.space.size == 1:
        return Dense.of(np.ones(1), channel.space)
    weights = rewarded_law(channel.type_matrix(), arrangement_gains(channel), 0.5 * gap)
    table = np.zeros((channel.space.n + 1,) * (channel.space.sizes[0] - 1))
    for kind, weight in zip(channel.types.counts, weights, strict=True):
        table[kind[0][1:]] = weight
    return Exchangeable.of(table / table.sum())


@optimal_prior.register
def _support_optimal_prior(channel: SupportChannel, gap: float) -> Distribution:
    """Return the uniform prior, or the result of a search if the matrix is small."""
    if channel.is_small() and not channel.symmetric:
        return Dense.of(matrix_capacity(channel.nearest_matrix(), gap)[1], channel.space)
    return Uniform(1, channel.k)


@singledispatch
def row_capacity(kernel: RowKernel, gap: float) -> tuple[Bracket, Floats]:
    """Capacity of one record's channel, and a distribution that attains the lower bound."""
    return matrix_capacity(kernel.matrix, gap)


@row_capacity.register
def _tilted_row_row_capacity(kernel: TiltedRow, gap: float) -> tuple[Bracket, Floats]:
    """Use the matrix, and widen by its error."""
    bracket, law = matrix_capacity(kernel.matrix, gap)
    return kernel.widened(bracket), law


@row_capacity.register
def _symmetric_row_capacity(kernel: Symmetric, gap: float) -> tuple[Bracket, Floats]:
    """Return ln m - H(row), attained by the uniform prior, as two terms without cancellation."""
    mean, m = 1.0 / kernel.m, kernel.m
    stays = kernels.divergence(kernel.stay, mean, kernel.gap * (m - 1) / m)
    value = stays + (m - 1) * kernels.divergence(kernel.off, mean, -kernel.gap / m)
    least = LEAST if m > 1 and kernel.epsilon > 0.0 else 0.0  # less than any other double
    upper = max(raised(value, 512.0), least)
    return Bracket(lowered(value, 512.0), upper), np.full(m, mean)


@singledispatch
def searched_entries(channel: AbstractChannel) -> int:
    """Return how many numbers an optimisation over all databases processes."""
    return channel.space.size * channel.output_count


@searched_entries.register
def _query_searched_entries(channel: QueryChannel) -> int:
    """Count the entries of the distributions of the answers."""
    return int(channel.kernel.matrix.size)


@searched_entries.register
def _type_searched_entries(channel: TypeChannel) -> int:
    """Count the classes."""
    return len(channel.all_entries)


@searched_entries.register
def _product_searched_entries(channel: ProductChannel) -> int:
    """Count the entries of the distinct records that have no closed forms."""
    kinds = (k for k in channel.kernels.distinct if not isinstance(k, Symmetric))
    return sum(math.prod(kernel.shape) for kernel in kinds)


@searched_entries.register
def _support_searched_entries(channel: SupportChannel) -> int:
    """Count the entries of a small matrix; larger ones are not searched."""
    listed = channel.is_small() and not channel.symmetric
    return channel.nearest_matrix().size if listed else channel.k


@searched_entries.register
def _columns_searched_entries(channel: ColumnsChannel) -> int:
    """Count the entries of the columns."""
    return sum(searched_entries(column) for column in channel.columns)


for _question in (capacity, optimal_prior, searched_entries):
    measure_as_product(_question)
