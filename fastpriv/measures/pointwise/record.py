"""Pointwise maximal leakage about one record of the database."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import log_down, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, log_error, log_law, matrix_leakages, matrix_log_output
from fastpriv._matrices.leakage import row_leakages as leakages_of_laws
from fastpriv._structure.leakage import Column, log_masses, row_slack, tilted
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel, TiltedChannel
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel, log_type_weights
from fastpriv.measures.attributes import context_secrets, secret_level
from fastpriv.measures.groups import Group, group_marginal, query_laws, rare_outputs
from fastpriv.measures.inputs import measure_as_product
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.database import (
    leakage_levels,
    leakages,
    rows_levels,
    rows_log_output,
    scaled_matrix,
)
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.results import Bracket

#: Rows whose joint distributions with the answer go through a query together.
_TOGETHER = 64
#: Most entries of the distributions of the output that are listed under exchangeable records.
_LISTED = 1 << 20


@singledispatch
def row_leakages(channel: AbstractChannel, prior: Distribution, i: int) -> Floats:
    """Return the leakage of every output about record i."""
    return row_leakages_by_value(channel, prior, i)


def row_leakages_by_value(channel: AbstractChannel, prior: Distribution, i: int) -> Floats:
    """From the distributions of the output given each value of record i."""
    if channel.space.n == 1:
        return leakages(channel, prior).above
    marginal, off = prior.log_marginal(i)
    values = np.flatnonzero(marginal > -math.inf)
    check.fits(
        len(values) * channel.output_count, "a distribution of the output per value", "give one y="
    )
    laws = [log_output(channel, prior.given({i: value})) for value in values.tolist()]
    return leakages_of_laws(laws, marginal[values], law_error(channel)) + off


@row_leakages.register
def _query_row_leakages(channel: QueryChannel, prior: Distribution, i: int) -> Floats:
    """Use the joint distribution of the record and the answer."""
    laws = channel.query.row_laws(prior, np.array([i]))
    if laws is None or channel.space.n == 1:
        return row_leakages_by_value(channel, prior, i)
    return next(_joint_leakages(channel, prior, [i], laws))


def _joint_leakages(
    channel: QueryChannel, prior: Distribution, rows: Sequence[int], joints: Iterator[Floats]
) -> Iterator[Floats]:
    """Yield the leakages about some records, from the joint distributions [v, answer]."""
    matrix, error = channel.kernel.matrix, law_error(channel)
    while joints_now := list(itertools.islice(joints, _TOGETHER)):
        # A power of two keeps products of small numbers from underflowing, and is exact.
        outputs = np.concatenate(joints_now) * 2.0**900 @ matrix
        ends = np.cumsum([len(joint) for joint in joints_now])
        for joint, law in zip(joints_now, np.split(outputs, ends[:-1]), strict=True):
            i, *rows = rows
            marginal, off = prior.log_marginal(i)
            values = np.flatnonzero(marginal > -math.inf)
            rare = np.flatnonzero(law[values].min(axis=0) < 2.0**900 * TINY)
            with np.errstate(divide="ignore"):
                laws = np.log(law[values] * 2.0**-900)  # exact unless it is rare
                if len(rare):
                    exact = prior.log_smallest() > math.log(TINY)
                    logs = np.log(joint) if exact else channel.query.log_row_law(prior, i)
                    laws[:, rare] = [log_law(matrix[:, rare], logs[v]) for v in values]
            given = list(laws - marginal[values, None])
            yield leakages_of_laws(given, marginal[values], error) + off


@row_leakages.register
def _type_row_leakages(channel: TypeChannel, prior: Distribution, i: int) -> Floats:
    """Use the type of the output and its value of record i, under an exchangeable prior."""
    types = prior.by_type()
    if types is None:
        return row_leakages_by_value(channel, prior, i)
    check.fits(channel.space.size, "a vector over outputs", "give one y=")
    outputs = channel.space.rows(np.arange(channel.space.size))
    return type_row_leakages(channel, types)[channel.types.number(outputs), outputs[:, i]]


def type_row_leakages(channel: TypeChannel, prior: Exchangeable) -> Floats:
    """Return the leakage about a record, for each type and value of the output. O(classes m^2).

    Among the records with value u in y, some share has value v in x. This share is the probability
    of v in such a record, given the class of x.
    """
    marginal, off = prior.log_marginal(0)
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
        error = log_error(logs, 0.0) / 16.0 + roundoff(len(logs) + 64)
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


# Groups of records, which count as one record.


def group_leakages(channel: AbstractChannel, prior: Distribution, group: Group) -> Floats:
    """Return the leakage of every output about a group of records."""
    if len(group) == 1:
        return row_leakages(channel, prior, group[0])
    if len(group) == channel.space.n:
        return leakages(channel, prior).above
    if isinstance(channel, QueryChannel):
        rows, chances = query_laws(channel, prior, group)
        above = matrix_leakages(rows, chances, law_error(channel)).above
        # No output leaks more than -ln of the probability of the group's rarest setting.
        most = -log_down(float(chances.min()))
        return np.where(rare_outputs(channel, prior, rows), most, np.minimum(above, most))
    sizes = [channel.space.sizes[i] for i in group]
    marginal = group_marginal(prior, group)
    logs = marginal.all_log_probabilities()
    seen = np.flatnonzero(logs > -math.inf)
    check.fits(
        len(seen) * channel.output_count, "a distribution of the output per value", "give one y="
    )
    settings = np.stack(np.unravel_index(seen, sizes), axis=1).tolist()
    given = [prior.given(dict(zip(group, values, strict=True))) for values in settings]
    laws = [log_output(channel, law) for law in given]
    return leakages_of_laws(laws, logs[seen], law_error(channel) + log_error(logs, 0.0))


def group_level(channel: AbstractChannel, prior: Distribution, group: Group) -> float | Bracket:
    """Return the largest leakage of an output about a group of records."""
    if isinstance(channel, ProductChannel) and isinstance(prior, Product):
        return rows_levels(prior.part(group), channel.kernels.part(group))[0]
    if isinstance(channel, ProductChannel) and isinstance(prior, Exchangeable):
        return _exchangeable_group_level(channel, prior, group)
    return float(group_leakages(channel, prior, group).max())


def _exchangeable_group_level(
    channel: ProductChannel, prior: Exchangeable, group: Group
) -> float | Bracket:
    """Use the types of the other records' outputs if there are too many outputs to list.

    It is a bracket if some outputs are so rare that their probability underflows.
    """
    settings = prior.space.sizes[0] ** len(group)
    if len(group) == prior.space.n or settings * channel.output_count <= _LISTED:
        return float(group_leakages(channel, prior, group).max())
    return secret_level(context_secrets(channel, prior, group, np.arange(settings)))


def group_leakage_at(channel: AbstractChannel, prior: Distribution, group: Group, y: Ints) -> float:
    """Return the leakage of one output about a group of records."""
    if len(group) == 1:
        return row_leakage_at(channel, prior, group[0], y)
    if not isinstance(channel, ProductChannel):
        return float(group_leakages(channel, prior, group)[channel.column_index(y)])
    marginal = group_marginal(prior, group).all_log_probabilities()
    shown, own = channel.kernels, [channel.kernels[i] for i in group]
    for i, kernel in zip(group, own, strict=True):
        shown = shown.replaced(i, RowKernel(np.eye(kernel.shape[0])))
    best, masses, error, where = -math.inf, [-math.inf], log_error(marginal, 0.0), y.copy()
    for log, values in zip(marginal, itertools.product(*map(range, _sizes(own))), strict=True):
        parts = zip(own, values, group, strict=True)
        likelihood = float(sum(kernel.log_relative[v, y[i]] for kernel, v, i in parts))
        if log == -math.inf or likelihood == -math.inf:
            continue
        where[list(group)] = values
        one = prior.column(shown, where)
        if one.mass > -math.inf:
            masses.append(one.mass + likelihood)
            best = max(best, one.mass + likelihood - log)
            error = max(error, one.error)
    mass = float(np.logaddexp.reduce(masses))
    error += (
        roundoff(16.0) * (len(group) + 1.0 + abs(best) + abs(mass)) if best > -math.inf else 0.0
    )
    return Column(best, mass, error).leakage()


def _sizes(kernels: Sequence[RowKernel]) -> list[int]:
    return [kernel.shape[0] for kernel in kernels]


@singledispatch
def worst_row_level(channel: AbstractChannel, prior: Distribution) -> float:
    """Return the largest leakage of an output about a record."""
    return worst_of_rows(channel, prior)


def worst_of_rows(channel: AbstractChannel, prior: Distribution) -> float:
    """Record by record, records that are alike taken once."""
    return max(row_level(channel, prior, i) for i in unlike_rows(channel, prior).tolist())


@worst_row_level.register
def _query_worst_row_level(channel: QueryChannel, prior: Distribution) -> float:
    """Use the joint distributions of records and the answer, which share partial sums."""
    rows = unlike_rows(channel, prior)
    laws = channel.query.row_laws(prior, rows)
    if laws is None or channel.space.n == 1:
        return worst_of_rows(channel, prior)
    return max(float(leaks.max()) for leaks in _joint_leakages(channel, prior, rows.tolist(), laws))


def unlike_rows(channel: AbstractChannel, prior: Distribution) -> Ints:
    """Return one record of each kind: records of a kind are alike for channel and prior."""
    kinds = channel.record_kinds
    firsts = [rows[np.unique(kinds[rows], return_index=True)[1]] for rows in prior.alike_records()]
    return np.sort(np.concatenate(firsts))


@singledispatch
def row_level(channel: AbstractChannel, prior: Distribution, i: int) -> float:
    """Return the largest leakage of an output about record i."""
    return largest_row_leakage(channel, prior, i)


def largest_row_leakage(channel: AbstractChannel, prior: Distribution, i: int) -> float:
    """From the leakages of all outputs."""
    if channel.space.n == 1:
        return leakage_levels(channel, prior)[0]
    return float(row_leakages(channel, prior, i).max())


@row_level.register
def _type_row_level(channel: TypeChannel, prior: Distribution, i: int) -> float:
    """Over types of outputs, under an exchangeable prior."""
    types = prior.by_type()
    if types is None:
        return largest_row_leakage(channel, prior, i)
    return float(type_row_leakages(channel, types).max())


@row_level.register
def _product_row_level(channel: ProductChannel, prior: Distribution, i: int) -> float:
    """Use the record alone if records are independent, recursions on a chain of bits."""
    if isinstance(prior, Markov) and prior.space.n > 1:
        if prior.space.m == 2:  # no record leaks more than the level of any two databases
            return min(float(chain_row_levels(prior, channel.kernels)[i]), extreme_level(channel))
        check.fits(
            channel.output_count,
            "the leakage of all outputs of a chain of more than two values a row, which",
            "ask row_pml for single outputs, y=, or use bits or fewer records",
        )
    if isinstance(prior, Exchangeable):
        return float(_exchangeable_group_level(channel, prior, (i,)))
    if not isinstance(prior, Product):
        return largest_row_leakage(channel, prior, i)
    first = np.zeros(1, dtype=np.int64)
    row = Product.of([prior.distinct[prior.assignment[i]]], first)
    return rows_levels(row, RowKernels([channel.kernels[i]], first))[0]


@worst_row_level.register
def _product_worst_row_level(channel: ProductChannel, prior: Distribution) -> float:
    """Compute all records of a chain of bits at once."""
    if isinstance(prior, Markov) and prior.space.m == 2 and prior.space.n > 1:
        worst = float(chain_row_levels(prior, channel.kernels).max())
        return min(worst, extreme_level(channel))
    return worst_of_rows(channel, prior)


@singledispatch
def row_leakage_at(channel: AbstractChannel, prior: Distribution, i: int, y: Ints) -> float:
    """Return the leakage of one output about record i."""
    return listed_row_leakage_at(channel, prior, i, y)


def listed_row_leakage_at(channel: AbstractChannel, prior: Distribution, i: int, y: Ints) -> float:
    """From the leakages of all outputs."""
    return float(row_leakages(channel, prior, i)[channel.column_index(y)])


@row_leakage_at.register
def _product_row_leakage_at(channel: ProductChannel, prior: Distribution, i: int, y: Ints) -> float:
    """Pass along the records once for each value of record i.

    P(y, x_i = v) is W[v, y_i] times the probability of the other outputs together with x_i = v.
    """
    kernel, (marginal, off) = channel.kernels[i], prior.log_marginal(i)
    shown = channel.kernels.replaced(i, RowKernel(np.eye(len(marginal))))
    values = np.flatnonzero((marginal + kernel.log_relative[:, y[i]]) > -math.inf)
    logs, where = kernel.log_relative[values, y[i]], y.copy()
    error = off
    for k, value in enumerate(values):
        where[i] = value
        one = prior.column(shown, where)
        logs[k] += one.mass
        error = max(error, off + one.error if one.mass > -math.inf else 0.0)
    best = float((logs - marginal[values]).max(initial=-math.inf))
    mass = float(np.logaddexp.reduce(logs))
    error += roundoff(16.0) * (1.0 + abs(best) + abs(mass))
    return Column(best, mass, error).leakage()


@row_leakage_at.register
def _type_row_leakage_at(channel: TypeChannel, prior: Distribution, i: int, y: Ints) -> float:
    """Use the type of the output and its value of record i."""
    types = prior.by_type()
    if types is None:
        return listed_row_leakage_at(channel, prior, i, y)
    return float(type_row_leakages(channel, types)[channel.types.number(y[None])[0], y[i]])


@row_leakage_at.register
def _tilted_product_row_leakage_at(
    channel: TiltedProduct, prior: Distribution, i: int, y: Ints
) -> float:
    return row_leakage_at(channel.as_product, prior, i, y) + channel.rounding_error


@singledispatch
def log_output(channel: AbstractChannel, prior: Distribution) -> Floats:
    """Return ln p_Y(y) up to a factor for every y, -inf only if y is impossible.

    The factor depends on y and the channel alone. The general algorithm uses the matrix.
    """
    return matrix_log_output(scaled_matrix(channel), prior.probabilities(), prior.logs_if_rare())


@log_output.register
def _product_log_output(channel: ProductChannel, prior: Distribution) -> Floats:
    """In the structure of the prior."""
    channel.check_vector_fits()
    return rows_log_output(prior, channel.kernels)


@log_output.register
def _query_log_output(channel: QueryChannel, prior: Distribution) -> Floats:
    """From the distribution of the answer."""
    query = channel.query
    return matrix_log_output(channel.kernel.matrix, query.law(prior), query.log_law(prior))


@log_output.register
def _tilted_log_output(channel: TiltedChannel, prior: Distribution) -> Floats:
    """The prior divided by R q, sent through R. Cost O(N n m)."""
    occurs, tilt = channel.log_tilt()
    weights, logs, factor = tilted(prior.probabilities(), prior.logs_if_rare(), tilt)
    law = math.log(weights.sum()) + log_masses(weights, channel.hamming_kernels, logs) + factor
    return np.where(occurs, law, -math.inf)


measure_as_product(log_output)


@singledispatch
def law_error(channel: AbstractChannel) -> float:
    """Return a bound on the relative error of an output distribution."""
    return _sum_error(channel) + channel.matrix_error


def _sum_error(channel: AbstractChannel) -> float:
    return roundoff(2 * channel.space.size + 8 * channel.space.n + 16)


@law_error.register
def _product_law_error(channel: ProductChannel) -> float:
    """Add the errors of every record's kernel and of the sums of the prior."""
    return 4.0 * row_slack(channel.kernels) + roundoff(64.0)


@law_error.register
def _query_law_error(channel: QueryChannel) -> float:
    """Added up from databases or from answers."""
    query = channel.query
    if not query.law_error:
        return _sum_error(channel)
    return query.law_error + roundoff(2 * query.answers + 16)


@law_error.register
def _tilted_law_error(channel: TiltedChannel) -> float:
    """From logarithms, not from the matrix."""
    return _sum_error(channel)


@law_error.register
def _tilted_product_law_error(channel: TiltedProduct) -> float:
    return _sum_error(channel) + channel.rounding_error


# Leakage about a record of a Markov chain of any length, by recursions along the chain.


def chain_row_levels(prior: Markov, kernels: RowKernels) -> Floats:
    """Return the largest leakage of an output about each record of a chain of bits. Rounded up.

    Given x_i, the outputs before, at and after record i are independent. So the odds of x_i = 0
    given y are a product of three numbers, one for each part of y, and every part can be chosen by
    itself. With the odds e^d before and e^s after, the leakage about the value 0 is
    ln (1 + e^-d)/(1 + e^-s). Cost O(n K).
    """
    from fastpriv.kernels import chain_odds_range

    start, back = prior.log_chain
    first = float(start[0] - start[1])
    outputs = np.array([kernel.shape[1] for kernel in kernels.distinct])
    near = np.full((len(outputs), int(outputs.max()), 2), -math.inf)
    at_row = np.empty((len(outputs), 2))
    for kind, kernel in enumerate(kernels.distinct):
        near[kind, : outputs[kind]] = kernel.log_relative.T
        seen = kernel.log_relative[:, kernel.column_maxima > 0.0]
        odds = seen[0] - seen[1]
        at_row[kind] = odds.min(), odds.max()
    rows = kernels.assignment
    nothing = np.zeros((1, 1, 2)), np.ones(1, dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    known = chain_odds_range(back, first, *nothing)[:-1, 0]
    before = chain_odds_range(back, first, near, outputs, rows)[:-1]
    steps, turned = np.ascontiguousarray(back.T), np.ascontiguousarray(rows[::-1])
    after = chain_odds_range(steps, 0.0, near, outputs, turned)[-2::-1]
    with np.errstate(invalid="ignore"):  # records that are certain are left out below
        least, most = (before + at_row[rows] + after).T
        leakage = np.maximum(_gain(known, most), _gain(-known, -least))
    # Every step adds a few rounding errors of logarithms, and none is magnified.
    logs = [part[np.isfinite(part)] for part in (back, near, known, before, after)]
    widest = 4.0 + sum(float(np.abs(part).max(initial=0.0)) for part in logs)
    error = roundoff(16.0 * (len(rows) + 4.0)) * widest
    return np.where(np.isinf(known), 0.0, np.maximum(leakage, 0.0) + error)


def _gain(known: Floats, told: Floats) -> Floats:
    """Return by how much the log-probability of a value rises with its log-odds."""
    return np.asarray(np.logaddexp(0.0, -known) - np.logaddexp(0.0, -told))
