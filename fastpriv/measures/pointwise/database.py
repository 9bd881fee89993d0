"""Pointwise maximal leakage about the whole database."""

from __future__ import annotations

import math
from functools import partial, singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv import kernels
from fastpriv._core.rounding import ULP, sum_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, Leakages, matrix_leakages
from fastpriv._structure.leakage import vector_leakages
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.columns import ColumnsChannel
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.posterior import PosteriorChain
from fastpriv.channels.rowwise import row_kernels
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel, log_type_weights, type_error, type_weights
from fastpriv.measures import supports
from fastpriv.measures.arguments import as_pair, output_rows
from fastpriv.measures.chain_bounds import is_long, leakage_bounds
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.rows import rows_leakages, rows_levels
from fastpriv.measures.pointwise.types import tilted_types
from fastpriv.measures.stacks import measured
from fastpriv.priors import Distribution, Exchangeable, Markov
from fastpriv.priors.columns import column
from fastpriv.priors.exchanged import as_exchangeable
from fastpriv.results import Bracket

__all__ = ["pml"]

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike


@overload
def pml(channel: ChannelLike, prior: PriorLike) -> Floats: ...
@overload
def pml(channel: ChannelLike, prior: PriorLike, y: ArrayLike) -> float: ...
def pml(channel: ChannelLike, prior: PriorLike, y: ArrayLike | None = None) -> Floats | float:
    """Pointwise maximal leakage of every output, or of one that was seen.

    l(X -> y) = ln max_x p(y|x) / p_Y(y) over databases x that can occur: how much more likely any
    guess about any feature of X can become when y is seen (Saeidian et al. 2024, Theorem 2.4).
    An output of probability zero leaks nothing.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Law of the databases.
    y : int or array of row values, optional
        One output, by index or by rows; then only its own leakage is computed.

    Returns
    -------
    ndarray or float
        Nats, rounded up. All outputs: one pass over a matrix (two where leakage is small),
        O(N n m) for row-by-row channels. One output: O(n m^2) on a Markov prior and O(n) on
        independent rows and exchangeable bits, so that a million rows are no obstacle.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.pml([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]).round(6)  # ln 1.5
    array([0.405465, 0.405465])
    >>> chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 1_000_000)
    >>> channel = fp.HammingChannel(1_000_000, 2, 1.0)
    >>> round(fp.pml(channel, chain, y=[0] * 1_000_000), 3)
    98281.082
    """
    mechanism, law = as_pair(channel, prior)
    if y is not None:
        return leakage_at(mechanism, law, output_rows(mechanism, y))
    return leakages(mechanism, law).above


@singledispatch
def leakages(channel: AbstractChannel, prior: Distribution) -> Leakages:
    """Return how far every output moves the odds of databases, up and down."""
    return listed_leakages(channel, prior)


def listed_leakages(channel: AbstractChannel, prior: Distribution) -> Leakages:
    """Return both leakages of all outputs of a channel.

    Through the matrix: one pass, and a second one where leakage is small. Where the matrix has
    errors, the leakage capacity is a second bound.
    """
    matrix, error = np.array(channel.nearest_matrix()), channel.matrix_error
    both = matrix_leakages(matrix, prior.probabilities(), error, prior.logs_if_rare())
    if error == 0.0:
        return both
    most = extreme_level(channel)
    return Leakages(*(np.minimum(part, most) for part in both))


@singledispatch
def leakage_levels(channel: AbstractChannel, prior: Distribution) -> tuple[float, float]:
    """Return the largest of both leakages over outputs."""
    return leakages(channel, prior).largest()


def level_bounds(
    channel: AbstractChannel, prior: Distribution
) -> tuple[float | Bracket, float | Bracket]:
    """Return the largest of both leakages, as brackets where a long chain has only bounds."""
    kernels = row_kernels(channel)
    if kernels is not None and isinstance(prior, Markov) and is_long(prior):
        return leakage_bounds(prior, kernels)
    return leakage_levels(channel, prior)


@singledispatch
def leakage_at(channel: AbstractChannel, prior: Distribution, y: Ints) -> float:
    """Return the pointwise maximal leakage of one output, given as a row of the output space."""
    return float(leakages(channel, prior).above[channel.column_index(y)])


@leakages.register
def _dense_leakages(channel: Channel, prior: Distribution) -> Leakages:
    return matrix_leakages(channel.array, prior.probabilities(), logs=prior.logs_if_rare())


@leakage_at.register
def _dense_leakage_at(channel: Channel, prior: Distribution, y: Ints) -> float:
    """From the column of the output."""
    one = np.ascontiguousarray(channel.array[:, [channel.column_index(y)]])
    return float(matrix_leakages(one, prior.probabilities(), logs=prior.logs_if_rare()).above[0])


@leakage_levels.register
def _dense_leakage_levels(channel: Channel, prior: Distribution) -> tuple[float, float]:
    """One pass over the matrix; in vectors over outputs where some are rare."""
    if prior.logs_if_rare() is None:
        below = np.empty(1)
        run = partial(_both_levels, below)
        above = measured(run, channel.array, prior.probabilities()[None])
        if not math.isnan(above):
            return above, below.item()
    return leakages(channel, prior).largest()


def _both_levels(below: Floats, W: Floats, P: Floats, off: float, above: Floats) -> int:
    return kernels.leakage_levels(W, P, off, above, below)


@leakages.register
def _product_leakages(channel: ProductChannel, prior: Distribution) -> Leakages:
    """In the structure of the prior."""
    channel.check_vector_fits()
    return rows_leakages(prior, channel.kernels)


@leakage_levels.register
def _product_leakage_levels(channel: ProductChannel, prior: Distribution) -> tuple[float, float]:
    """In the structure of the prior."""
    return rows_levels(prior, channel.kernels)


@leakage_at.register
def _product_leakage_at(channel: ProductChannel, prior: Distribution, y: Ints) -> float:
    """In the structure of the prior."""
    return column(prior, channel.kernels, y).leakage()


@leakages.register
def _query_leakages(channel: QueryChannel, prior: Distribution) -> Leakages:
    """An output leaks about the answer as much as about the database."""
    return _answer_leakages(channel, channel.kernel.matrix, prior)


@leakage_at.register
def _query_leakage_at(channel: QueryChannel, prior: Distribution, y: Ints) -> float:
    """From the column of the output."""
    one = np.ascontiguousarray(channel.kernel.matrix[:, y])
    return float(_answer_leakages(channel, one, prior).above[0])


def _answer_leakages(channel: QueryChannel, laws: Floats, prior: Distribution) -> Leakages:
    query = channel.query
    return matrix_leakages(laws, query.law(prior), query.law_error, query.log_law(prior))


@leakages.register
def _type_leakages(channel: TypeChannel, prior: Distribution) -> Leakages:
    """Under an exchangeable prior by the type of the output, otherwise through the matrix."""
    types = as_exchangeable(prior)
    if types is None:
        return leakages(channel.as_channel(), prior)
    return Leakages(*map(channel.spread_out, type_leakages(channel, types)))


@leakage_levels.register
def _type_leakage_levels(channel: TypeChannel, prior: Distribution) -> tuple[float, float]:
    types = as_exchangeable(prior)
    if types is None:
        return leakage_levels(channel.as_channel(), prior)
    return type_leakages(channel, types).largest()


@leakage_at.register
def _type_leakage_at(channel: TypeChannel, prior: Distribution, y: Ints) -> float:
    """By its type under an exchangeable prior, otherwise from the law of the database's class."""
    types = as_exchangeable(prior)
    if types is None:
        law, logs = channel.class_distribution(prior, y)
        entry = channel.entries[int(channel.types.number(y[None])[0])]
        error = type_error(channel.space.n)
        return float(matrix_leakages(entry[:, None], law, error, logs).above[0])
    return float(type_leakages(channel, types).above[channel.types.number(y[None])[0]])


def type_leakages(channel: TypeChannel, prior: Exchangeable) -> Leakages:
    """Return both leakages of an output of each type, from the laws of types. O(classes)."""
    weights = type_weights(channel.types, prior)
    alive = possible_types(channel, prior)
    law = channel.output_types(weights) / np.exp(channel.types.log_sizes)
    both = np.zeros((2, len(law)))
    for j, (classes, entry) in enumerate(zip(channel.classes, channel.entries, strict=True)):
        seen = entry[alive[classes.row]]
        # An output too rare for a double may leak any amount.
        if seen.max() > 0:
            rare = law[j] < TINY
            both[0, j] = math.inf if rare else max(0.0, math.log(seen.max() / law[j]))
            least = seen.min()
            known = least > 0.0 and not rare
            both[1, j] = max(0.0, math.log(law[j] / least)) if known else math.inf
    slack = (len(channel.entry) + 8 * channel.space.n + 64) * ULP
    return Leakages(*np.where(both > 0, both * (1 + slack) + slack, 0.0))


def possible_types(channel: TypeChannel, prior: Exchangeable) -> NDArray[np.bool_]:
    """Return which types of databases can occur."""
    return np.asarray(log_type_weights(channel.types, prior) > -math.inf)


@leakages.register
def _tilted_leakages(channel: TiltedChannel, prior: Distribution) -> Leakages:
    """The kernel R, tilted by 1 / (R q). Cost O(N n m)."""
    occurs, tilt = channel.tilt()
    both = vector_leakages(prior.probabilities(), channel.kernels, prior.logs_if_rare(), tilt)
    return Leakages(*(np.where(occurs, part, 0.0) for part in both))


@leakage_levels.register
def _tilted_leakage_levels(channel: TiltedChannel, prior: Distribution) -> tuple[float, float]:
    """By the type of the output where rows are exchangeable, otherwise from all outputs."""
    by_type = tilted_types(channel, prior)
    return (leakages(channel, prior) if by_type is None else by_type).largest()


@leakage_at.register
def _tilted_leakage_at(channel: TiltedChannel, prior: Distribution, y: Ints) -> float:
    """By the type of the output where rows are exchangeable, otherwise from all outputs."""
    by_type = tilted_types(channel, prior)
    if by_type is None:
        return float(leakages(channel, prior).above[channel.column_index(y)])
    assert channel.by_type is not None
    counts = np.bincount(y, minlength=len(channel.by_type.types))
    at = np.flatnonzero((channel.by_type.types == counts[:, None]).all(axis=0))
    return float(by_type.above[at[0]])


@leakage_levels.register
def _posterior_chain_leakage_levels(
    channel: PosteriorChain, prior: Distribution
) -> tuple[float, float]:
    """Chain: ln R[y, y]/p(y) at the rarest y, ln p(x)/R[x, y] at the commonest x. O(n m^2)."""
    if not channel.owns(prior):
        return leakage_levels.dispatch(TiltedChannel)(channel, prior)
    scale, n = _log_stay(channel), channel.space.n
    above = scale - prior.log_smallest()
    below = n * channel.epsilon - scale - prior.min_entropy()
    error = (n + 16.0) * ULP * (abs(scale) + n * channel.epsilon - prior.log_smallest())
    return max(above, 0.0) + error, max(below, 0.0) + error


@leakage_at.register
def _posterior_chain_leakage_at(channel: PosteriorChain, prior: Distribution, y: Ints) -> float:
    """Chain: ln R[y, y]/p(y). Cost O(n)."""
    if not channel.owns(prior):
        return leakage_at.dispatch(TiltedChannel)(channel, prior, y)
    log = float(prior.log_probabilities(y[None, :])[0])
    error = (channel.space.n + 16.0) * ULP * (abs(_log_stay(channel)) - log)
    return max(_log_stay(channel) - log, 0.0) + error


def _log_stay(channel: PosteriorChain) -> float:
    """Return ln R[y, y]."""
    move = (channel.prior.space.sizes[0] - 1) * math.exp(-channel.epsilon)
    return -channel.space.n * math.log1p(move)


@leakages.register
def _tilted_product_leakages(channel: TiltedProduct, prior: Distribution) -> Leakages:
    """Those of the rows, and their rounding."""
    both = leakages(channel.as_product, prior)
    return Leakages(*(np.where(v > 0.0, v + channel.rounding_error, 0.0) for v in both))


@leakage_levels.register
def _tilted_product_leakage_levels(
    channel: TiltedProduct, prior: Distribution
) -> tuple[float, float]:
    above, below = leakage_levels(channel.as_product, prior)
    return above + channel.rounding_error, below + channel.rounding_error


@leakage_at.register
def _tilted_product_leakage_at(channel: TiltedProduct, prior: Distribution, y: Ints) -> float:
    return leakage_at(channel.as_product, prior, y) + channel.rounding_error


@leakages.register
def _support_leakages(channel: SupportChannel, prior: Distribution) -> Leakages:
    """From the masses of the supports where reports are listed, otherwise through the matrix."""
    if channel.listed is not None:
        return supports.leakages(channel, prior)
    return listed_leakages(channel, prior)


@leakage_levels.register
def _support_leakage_levels(channel: SupportChannel, prior: Distribution) -> tuple[float, float]:
    """From the least and the largest support. Cost O(k log k), or a pass over the reports."""
    return supports.leakage_levels(channel, prior)


@leakage_at.register
def _support_leakage_at(channel: SupportChannel, prior: Distribution, y: Ints) -> float:
    """From the values that the report supports. Cost O(k)."""
    return supports.leakage_at(channel, prior, y)


@leakage_levels.register
def _columns_leakage_levels(channel: ColumnsChannel, prior: Distribution) -> tuple[float, float]:
    """The sums over columns where they are independent, otherwise through the matrix."""
    pairs = supports.independent(channel, prior)
    if pairs is None:
        return leakages(channel, prior).largest()
    parts = [leakage_levels(*pair) for pair in pairs]
    return sum_up([part[0] for part in parts]), sum_up([part[1] for part in parts])
