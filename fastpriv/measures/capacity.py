"""Channel capacity: the largest mutual information over all priors."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._matrices.capacity import capacities, matrix_capacity, repeated
from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel, TiltedChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.arguments import as_channel
from fastpriv.priors import Dense, Distribution, Product
from fastpriv.results import Bracket, Brackets
from fastpriv.spaces import Space

__all__ = ["capacity_prior", "channel_capacity"]


@overload
def channel_capacity(channel: AbstractChannel, *, gap: float = ...) -> Bracket: ...
@overload
def channel_capacity(channel: ArrayLike, *, gap: float = ...) -> Bracket | Brackets: ...


def channel_capacity(
    channel: AbstractChannel | ArrayLike, *, gap: float = 1e-9
) -> Bracket | Brackets:
    """Shannon capacity of a mechanism: the largest mutual information over all priors, in nats.

    C = max over p of I(p, W), certified by duality: for the output law q of any prior p,
    sum_x p(x) D(W_x || q) <= C <= max_x D(W_x || q). It bounds what any adversary, whatever the
    prior, learns on average, and is where individual leakage starts from (Wu-Xia-He 2020).

    Parameters
    ----------
    channel : channel, 2-D array or 3-D array
        The mechanism, or a batch of B mechanisms as an array of shape (B, N, K). Rows count as the
        floats they are: one that sums to 1 + 1e-16 is not divided by its sum.
    gap : float
        Width to reach, in nats, and relative to capacities below one nat. 0 asks for all that
        rounding allows. Where that is less than asked for, the bracket is wider and still true.

    Returns
    -------
    Bracket or Brackets
        One bracket, or the brackets of the whole batch.

    Notes
    -----
    Divergences are sums of w ln(w/q) - w + q >= 0, each good to 100 units of 2^-53, so D is good
    to K + 100 of them relatively, however small it is; the upper end is raised by K + 128 of them,
    the lower end is cut by K + 2N + 136 and by the square of the error of q. Positive capacities
    below 1e-280 are not resolved further: Bracket(0, 1e-280).

    Two rows take a root of one variable, more an interior-point method with about ten steps of
    O(N^2 K); beyond 64 rows only rows that may carry mass enter, and a step over all rows costs
    O(N K). Independent rows add up (one solution per distinct row, a closed form for E_d);
    a query counts each of its answers once; other structured channels are solved as matrices.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.channel_capacity([[0.9, 0.1], [0.1, 0.9]])  # ln 2 - H(0.1)
    Bracket(0.3680642072, 0.3680642072)
    >>> fp.channel_capacity(fp.HammingChannel(1_000_000, 2, 1.0))  # a million times one row's
    Bracket(110944.0717, 110944.0717)
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
    """Find a prior under which a mechanism tells most: one that attains its capacity.

    Parameters
    ----------
    channel : channel, 2-D array or 3-D array
        The mechanism, or a batch of B mechanisms as an array of shape (B, N, K).
    gap : float
        As for :func:`channel_capacity`, whose lower end is the information of this prior (up to
        the rounding of its probabilities).

    Returns
    -------
    Distribution or ndarray
        A prior on the channel's space, a product for channels that act row by row; for a batch
        an array of shape (B, N), one law in each row.

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
    return Dense._trusted(laws[0], Space([len(given)])) if given.ndim == 2 else laws


def _checked(given: NDArray[Any]) -> Floats:
    """Return a matrix or a batch of them as (B, N, K), every row a law."""
    if given.ndim not in (2, 3) or given.size == 0:
        raise InvalidInput(
            "a plain channel must be a matrix, or a batch of shape (B, N, K) with no empty side; "
            f"got shape {given.shape}"
        )
    batch = given.reshape((-1, *given.shape[-2:]))
    # Nothing is kept, so an array in order is used as it is: at small sizes copies cost most.
    plain = batch.dtype == np.float64 and batch.flags.carray
    if plain and kernels.are_channels(batch, check.ROUNDED):
        return batch
    rows = batch.reshape(-1, given.shape[-1])
    name = "matrix" if given.ndim == 2 else "the batch, channel after channel"
    return check.stochastic(rows, name).reshape(batch.shape)


@singledispatch
def capacity(channel: AbstractChannel, gap: float) -> Bracket:
    """Largest I(X; Y) over priors, for checked arguments.

    The general algorithm takes the matrix.
    """
    return matrix_capacity(np.array(channel.matrix()), gap)[0]


@capacity.register(QueryChannel)
def _(channel: QueryChannel, gap: float) -> Bracket:
    """Take the answers that occur, each of them once."""
    return matrix_capacity(channel._seen(), gap)[0]


@capacity.register(ProductChannel)
def _(channel: ProductChannel, gap: float) -> Bracket:
    """Add up the capacities of the rows, each to its share of the gap. Cost O(distinct rows)."""
    kinds, rows = channel._kernels.distinct, channel._kernels.assignment
    counts = [len(rows)] if len(kinds) == 1 else np.bincount(rows).tolist()
    parts = [row_capacity(kernel, gap / len(rows))[0] for kernel in kinds]
    return repeated(list(zip(counts, parts, strict=True)))


@capacity.register(TiltedChannel)
def _(channel: TiltedChannel, gap: float) -> Bracket:
    """Take the rows where the channel is a product of them."""
    if channel._rows is not None:
        return capacity(channel._rows, gap)
    return matrix_capacity(channel.matrix(), gap)[0]


@singledispatch
def optimal_prior(channel: AbstractChannel, gap: float) -> Distribution:
    """Return a prior that reaches the lower end of the capacity, for checked arguments.

    The general algorithm takes the matrix.
    """
    return Dense._trusted(matrix_capacity(np.array(channel.matrix()), gap)[1], channel.space)


@optimal_prior.register(QueryChannel)
def _(channel: QueryChannel, gap: float) -> Distribution:
    """Return a prior under which the answers follow their best law."""
    law = np.zeros(channel._kernel.shape[0])
    law[channel._query.seen()] = matrix_capacity(channel._seen(), gap)[1]
    return channel._query.prior(law)


@optimal_prior.register(ProductChannel)
def _(channel: ProductChannel, gap: float) -> Product:
    """Return independent rows, each with the law that is best for its channel."""
    kinds, rows = channel._kernels.distinct, channel._kernels.assignment
    return Product._trusted([row_capacity(kernel, gap / len(rows))[1] for kernel in kinds], rows)


@optimal_prior.register(TiltedChannel)
def _(channel: TiltedChannel, gap: float) -> Distribution:
    """Take the rows where the channel is a product of them."""
    if channel._rows is not None:
        return optimal_prior(channel._rows, gap)
    return Dense._trusted(matrix_capacity(channel.matrix(), gap)[1], channel.space)


@singledispatch
def row_capacity(kernel: RowKernel, gap: float) -> tuple[Bracket, Floats]:
    """Capacity of the channel of one row, and a law of its value that reaches the lower end."""
    return matrix_capacity(kernel.matrix, gap)


@row_capacity.register(Symmetric)
def _(kernel: Symmetric, gap: float) -> tuple[Bracket, Floats]:
    """Return ln m - H(row), reached by the uniform law, as two terms without cancellation."""
    mean, m = 1.0 / kernel.m, kernel.m
    stays = kernels.divergence(kernel.stay, mean, kernel.gap * (m - 1) / m)
    value = stays + (m - 1) * kernels.divergence(kernel.off, mean, -kernel.gap / m)
    return Bracket(value * (1.0 - 2.0**-44), value * (1.0 + 2.0**-44)), np.full(m, mean)


@singledispatch
def searched_entries(channel: AbstractChannel) -> int:
    """Return how many numbers an optimisation over all databases goes through."""
    return channel.space.size * channel.output_space.size


@searched_entries.register(QueryChannel)
def _(channel: QueryChannel) -> int:
    """Count the entries of the laws of the answers."""
    return int(channel._kernel.matrix.size)


@searched_entries.register(ProductChannel)
def _(channel: ProductChannel) -> int:
    """Count the entries of the distinct rows that have no closed forms."""
    kinds = (k for k in channel._kernels.distinct if not isinstance(k, Symmetric))
    return sum(math.prod(kernel.shape) for kernel in kinds)


@searched_entries.register(TiltedChannel)
def _(channel: TiltedChannel) -> int:
    """Count those of the rows where the channel is a product of them."""
    if channel._rows is not None:
        return searched_entries(channel._rows)
    return channel.space.size * channel.output_space.size
