"""Pointwise maximal leakage about one row of the database."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, log_error, log_law, matrix_log_output
from fastpriv._matrices.leakage import row_leakages as leakages_of_laws
from fastpriv._structure.leakage import Column, log_masses, row_slack, tilted
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel, TiltedChannel
from fastpriv.channels.rowwise import row_kinds
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel, log_type_weights
from fastpriv.measures.arguments import as_channel, as_pair, output_rows, row_number
from fastpriv.measures.pointwise.chains import chain_row_levels
from fastpriv.measures.pointwise.database import leakage_levels, leakages
from fastpriv.measures.pointwise.rows import rows_levels, rows_log_output
from fastpriv.measures.pointwise.scaled import scaled_matrix
from fastpriv.measures.pointwise.set_outputs import set_row_leakages
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.columns import column, log_marginal
from fastpriv.priors.exchanged import as_exchangeable
from fastpriv.priors.sets import PriorSet

__all__ = ["row_pml"]

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike

#: Rows whose joint laws with the answer go through a query together.
_TOGETHER = 64


@overload
def row_pml(
    channel: ChannelLike, prior: PriorLike | PriorSet, i: int, *, time_limit: float = ...
) -> Floats: ...
@overload
def row_pml(
    channel: ChannelLike,
    prior: PriorLike | PriorSet,
    i: int,
    y: ArrayLike,
    *,
    time_limit: float = ...,
) -> float: ...
def row_pml(
    channel: ChannelLike,
    prior: PriorLike | PriorSet,
    i: int,
    y: ArrayLike | None = None,
    *,
    time_limit: float = 60.0,
) -> Floats | float:
    """Pointwise maximal leakage about one row, for every output or for one that was seen.

    l(D_i -> y) = ln max_v P(y | D_i = v) / p_Y(y) over values v that can occur, the other rows
    following the prior given D_i = v (Saeidian et al. 2024, Section 4). At most the leakage about
    the whole database.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution, 1-D array or PriorSet
        Law of the databases, or a set of them: all laws, all laws of independent rows, a box, a
        ball or a polytope. Then the leakage is the largest over the set.
    i : int
        The row.
    y : int or array of row values, optional
        One output, by index or by rows; then only its own leakage is computed.
    time_limit : float
        Seconds for a search over a set of priors. Outputs that it does not suffice for have the
        bound that is proved by then.

    Returns
    -------
    ndarray or float
        Nats, rounded up. Cost of m_i output laws; for one output of a row-by-row channel m_i
        passes along the rows. Over a set as for :func:`pml_level`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.row_pml(fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2), 0).round(6)
    array([0.379885, 0.379885, 0.379885, 0.379885])
    """
    if isinstance(prior, PriorSet):
        mechanism = as_channel(channel, getattr(prior, "space", None))
        leaks = set_row_leakages(prior, mechanism, row_number(mechanism, i), Clock(time_limit))
        if y is None:
            return leaks
        return float(leaks[mechanism.column_index(output_rows(mechanism, y))])
    mechanism, law = as_pair(channel, prior)
    i = row_number(mechanism, i)
    if y is not None:
        return row_leakage_at(mechanism, law, i, output_rows(mechanism, y))
    return row_leakages(mechanism, law, i)


@singledispatch
def row_leakages(channel: AbstractChannel, prior: Distribution, i: int) -> Floats:
    """Return the leakage of every output about row i, from the laws given each of its values."""
    if channel.space.n == 1:
        return leakages(channel, prior).above
    marginal, off = log_marginal(prior, i)
    values = np.flatnonzero(marginal > -math.inf)
    check.fits(len(values) * channel.output_count, "a law of the output per value", "give one y=")
    laws = [log_output(channel, prior.given({i: value})) for value in values.tolist()]
    return leakages_of_laws(laws, marginal[values], law_error(channel)) + off


@row_leakages.register
def _query_row_leakages(channel: QueryChannel, prior: Distribution, i: int) -> Floats:
    """From the joint law of the row and the answer."""
    laws = channel.query.row_laws(prior, np.array([i]))
    if laws is None or channel.space.n == 1:
        return row_leakages.dispatch(AbstractChannel)(channel, prior, i)
    return next(_joint_leakages(channel, prior, [i], laws))


def _joint_leakages(
    channel: QueryChannel, prior: Distribution, rows: Sequence[int], joints: Iterator[Floats]
) -> Iterator[Floats]:
    """Yield the leakage of every output about some rows, from the joint laws [v, answer]."""
    matrix, error = channel.kernel.matrix, law_error(channel)
    while joints_now := list(itertools.islice(joints, _TOGETHER)):
        # A power of two keeps products of small numbers from underflowing, and is exact.
        outputs = np.concatenate(joints_now) * 2.0**900 @ matrix
        ends = np.cumsum([len(joint) for joint in joints_now])
        for joint, law in zip(joints_now, np.split(outputs, ends[:-1]), strict=True):
            i, *rows = rows
            marginal, off = log_marginal(prior, i)
            values = np.flatnonzero(marginal > -math.inf)
            rare = np.flatnonzero(law[values].min(axis=0) < 2.0**900 * TINY)
            with np.errstate(divide="ignore"):
                laws = np.log(law[values] * 2.0**-900)  # exact where it is not rare
                if len(rare):
                    exact = prior.log_smallest() > math.log(TINY)
                    logs = np.log(joint) if exact else channel.query.log_row_law(prior, i)
                    laws[:, rare] = [log_law(matrix[:, rare], logs[v]) for v in values]
            given = list(laws - marginal[values, None])
            yield leakages_of_laws(given, marginal[values], error) + off


@row_leakages.register
def _type_row_leakages(channel: TypeChannel, prior: Distribution, i: int) -> Floats:
    """Under an exchangeable prior, by the type of the output and its value in the row."""
    types = as_exchangeable(prior)
    if types is None:
        return row_leakages.dispatch(AbstractChannel)(channel, prior, i)
    check.fits(channel.space.size, "a vector over outputs", "give one y=")
    outputs = channel.space.rows(np.arange(channel.space.size))
    return type_row_leakages(channel, types)[channel.types.number(outputs), outputs[:, i]]


def type_row_leakages(channel: TypeChannel, prior: Exchangeable) -> Floats:
    """Leakage about a row of an output of each type with each value in that row. O(classes m^2).

    Of the rows where y holds u, a share holds v in x; it is the chance of v in the row if the class
    of x is known.
    """
    marginal, off = log_marginal(prior, 0)
    values = np.flatnonzero(marginal > -math.inf)
    leaks = np.zeros((len(channel.classes), len(marginal)))
    if len(values) == 1:
        return leaks
    weights, sizes = log_type_weights(channel.types, prior), channel.types.log_sizes
    for kind, classes, entry, leak in zip(
        channel.types.counts, channel.classes, channel.entries, leaks, strict=True
    ):
        with np.errstate(divide="ignore"):
            logs = weights[classes.row] - sizes[classes.row] + classes.log_count + np.log(entry)
        error = log_error(logs, 0.0) / 16.0 + (len(logs) + 64) * ULP
        for u in np.flatnonzero(kind[0]).tolist():
            held = classes.held(u, len(marginal))[values]
            laws = [_log_mean(logs, share / kind[0][u]) for share in held]
            given = list((np.array(laws) - marginal[values])[:, None])
            leak[u] = leakages_of_laws(given, marginal[values], error)[0] + off
    return leaks


def _log_mean(logs: Floats, shares: Floats) -> float:
    """Log of sum shares e^logs, from the largest term down."""
    logs, shares = logs[shares > 0], shares[shares > 0]
    top = float(logs.max(initial=-math.inf))
    return top + math.log(shares @ np.exp(logs - top)) if top > -math.inf else top


@singledispatch
def worst_row_level(channel: AbstractChannel, prior: Distribution) -> float:
    """Return the largest leakage of an output about a row, rows that are alike taken once."""
    return max(row_level(channel, prior, i) for i in unlike_rows(channel, prior).tolist())


@worst_row_level.register
def _query_worst_row_level(channel: QueryChannel, prior: Distribution) -> float:
    """From the joint laws of rows and the answer, which share the sums of the rows beside."""
    rows = unlike_rows(channel, prior)
    laws = channel.query.row_laws(prior, rows)
    if laws is None or channel.space.n == 1:
        return worst_row_level.dispatch(AbstractChannel)(channel, prior)
    return max(float(leaks.max()) for leaks in _joint_leakages(channel, prior, rows.tolist(), laws))


def unlike_rows(channel: AbstractChannel, prior: Distribution) -> Ints:
    """Return one row of each kind: rows that play the same part in the channel and the prior."""
    kinds = row_kinds(channel)
    firsts = [rows[np.unique(kinds[rows], return_index=True)[1]] for rows in prior.alike_records()]
    return np.sort(np.concatenate(firsts))


@singledispatch
def row_level(channel: AbstractChannel, prior: Distribution, i: int) -> float:
    """Return the largest leakage of an output about row i."""
    if channel.space.n == 1:
        return leakage_levels(channel, prior)[0]
    return float(row_leakages(channel, prior, i).max())


@row_level.register
def _type_row_level(channel: TypeChannel, prior: Distribution, i: int) -> float:
    """Over types of outputs, under an exchangeable prior."""
    types = as_exchangeable(prior)
    if types is None:
        return row_level.dispatch(AbstractChannel)(channel, prior, i)
    return float(type_row_leakages(channel, types).max())


@row_level.register
def _product_row_level(channel: ProductChannel, prior: Distribution, i: int) -> float:
    """The leakage of the row alone where rows are independent, recursions on a chain of bits."""
    if isinstance(prior, Markov):
        if prior.space.m == 2:
            return float(chain_row_levels(prior, channel.kernels)[i])
        check.fits(
            channel.output_count,
            "the leakage of all outputs of a chain of more than two values a row, which",
            "ask row_pml for single outputs, y=, or use bits or fewer rows",
        )
    if not isinstance(prior, Product):
        return row_level.dispatch(AbstractChannel)(channel, prior, i)
    first = np.zeros(1, dtype=np.int64)
    row = Product.of([prior.distinct[prior.assignment[i]]], first)
    return rows_levels(row, RowKernels([channel.kernels[i]], first))[0]


@worst_row_level.register
def _product_worst_row_level(channel: ProductChannel, prior: Distribution) -> float:
    """All rows of a chain of bits at once."""
    if isinstance(prior, Markov) and prior.space.m == 2:
        return float(chain_row_levels(prior, channel.kernels).max())
    return worst_row_level.dispatch(AbstractChannel)(channel, prior)


@singledispatch
def row_leakage_at(channel: AbstractChannel, prior: Distribution, i: int, y: Ints) -> float:
    """Return the leakage of one output about row i, from those of all outputs."""
    return float(row_leakages(channel, prior, i)[channel.column_index(y)])


@row_leakage_at.register
def _product_row_leakage_at(channel: ProductChannel, prior: Distribution, i: int, y: Ints) -> float:
    """One pass along the rows for each value of row i.

    P(y, x_i = v) is W[v, y_i] times the chance of the other outputs together with x_i = v.
    """
    kernel, (marginal, off) = channel.kernels[i], log_marginal(prior, i)
    shown = channel.kernels.replaced(i, RowKernel(np.eye(len(marginal))))
    values = np.flatnonzero((marginal + kernel.log_near[:, y[i]]) > -math.inf)
    logs, where = kernel.log_near[values, y[i]], y.copy()
    error = off
    for k, value in enumerate(values):
        where[i] = value
        one = column(prior, shown, where)
        logs[k] += one.mass
        error = max(error, off + one.error if one.mass > -math.inf else 0.0)
    best = float((logs - marginal[values]).max(initial=-math.inf))
    mass = float(np.logaddexp.reduce(logs))
    error += 16.0 * ULP * (1.0 + abs(best) + abs(mass))
    return Column(best, mass, error).leakage()


@row_leakage_at.register
def _type_row_leakage_at(channel: TypeChannel, prior: Distribution, i: int, y: Ints) -> float:
    """From the type of the output and its value in the row."""
    types = as_exchangeable(prior)
    if types is None:
        return row_leakage_at.dispatch(AbstractChannel)(channel, prior, i, y)
    return float(type_row_leakages(channel, types)[channel.types.number(y[None])[0], y[i]])


@row_leakage_at.register
def _tilted_product_row_leakage_at(
    channel: TiltedProduct, prior: Distribution, i: int, y: Ints
) -> float:
    return row_leakage_at(channel.as_product, prior, i, y) + channel.rounding_error


@singledispatch
def log_output(channel: AbstractChannel, prior: Distribution) -> Floats:
    """Return ln of the law of the output up to a factor for every y, -inf only where impossible.

    The factor depends on the channel alone. Here through the matrix.
    """
    return matrix_log_output(scaled_matrix(channel), prior.probabilities(), prior.logs_if_rare())


@log_output.register
def _product_log_output(channel: ProductChannel, prior: Distribution) -> Floats:
    """In the structure of the prior."""
    channel.check_vector_fits()
    return rows_log_output(prior, channel.kernels)


@log_output.register
def _query_log_output(channel: QueryChannel, prior: Distribution) -> Floats:
    """From the law of the answer."""
    query = channel.query
    return matrix_log_output(channel.kernel.matrix, query.law(prior), query.log_law(prior))


@log_output.register
def _tilted_log_output(channel: TiltedChannel, prior: Distribution) -> Floats:
    """The prior divided by R q, sent through R. Cost O(N n m)."""
    occurs, tilt = channel.tilt()
    weights, logs, factor = tilted(prior.probabilities(), prior.logs_if_rare(), tilt)
    law = math.log(weights.sum()) + log_masses(weights, channel.kernels, logs) + factor
    return np.where(occurs, law, -math.inf)


@log_output.register
def _tilted_product_log_output(channel: TiltedProduct, prior: Distribution) -> Floats:
    return log_output(channel.as_product, prior)


@singledispatch
def law_error(channel: AbstractChannel) -> float:
    """Return a bound on the relative error of an output law."""
    return _sum_error(channel) + channel.matrix_error


def _sum_error(channel: AbstractChannel) -> float:
    return (2 * channel.space.size + 8 * channel.space.n + 16) * ULP


@law_error.register
def _product_law_error(channel: ProductChannel) -> float:
    """Every row's kernel, and the sums of the prior."""
    return 4.0 * row_slack(channel.kernels) + 64.0 * ULP


@law_error.register
def _query_law_error(channel: QueryChannel) -> float:
    """Added up from databases or from answers."""
    query = channel.query
    if not query.law_error:
        return _sum_error(channel)
    return query.law_error + (2 * query.answers + 16) * ULP


@law_error.register
def _tilted_law_error(channel: TiltedChannel) -> float:
    """From logarithms, not from the matrix."""
    return _sum_error(channel)


@law_error.register
def _tilted_product_law_error(channel: TiltedProduct) -> float:
    return _sum_error(channel) + channel.rounding_error
