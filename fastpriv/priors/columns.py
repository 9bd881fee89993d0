"""One output of a row-by-row channel under a prior, and the law of one row in logarithms.

Given an output y, every row's kernel is divided by its largest entry p(y_i | .). ``column``
returns the logs of the largest and of the mean product of these entries over the databases that
can occur. The difference of the two is the pointwise maximal leakage of y.
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, log_law
from fastpriv._structure.leakage import Column, log_masses, row_slack, tropical, vector_column
from fastpriv._structure.rows import RowKernel, RowKernels, distinct_sizes
from fastpriv._structure.type_pairs import TypePairs
from fastpriv.priors.base import Distribution
from fastpriv.priors.exchangeable import Exchangeable
from fastpriv.priors.exchanging import many_types
from fastpriv.priors.markov import HiddenMarkov, Markov
from fastpriv.priors.product import Product
from fastpriv.priors.type_leakage import OutputForm

#: Chances with a smaller logarithm are added up as logarithms.
_SMALL = math.log(1e-99)


@singledispatch
def column(prior: Distribution, kernels: RowKernels, y: Ints) -> Column:
    """Return best, mean and rounding error for one output, through the vector. Cost O(N)."""
    return vector_column(prior.probabilities(), kernels, y, prior.logs_if_rare())


@column.register
def _product_column(prior: Product, kernels: RowKernels, y: Ints) -> Column:
    """Independent rows: both logs are sums over rows. Cost O(n)."""
    laws, which, _, place = prior.paired(kernels)
    best, mass = [0.0], [0.0]
    for pair, (k, j) in enumerate(zip(laws, which, strict=True)):
        law, kernel = prior.distinct[k], kernels.distinct[j]
        counts = np.bincount(y[place == pair], minlength=kernel.shape[1])
        used = counts > 0
        allowed = np.where(law > 0, 0.0, -math.inf)
        best += (counts[used] * tropical(allowed, [kernel], np.maximum)[used]).tolist()
        mass += (counts[used] * log_masses(law, [kernel])[used]).tolist()
    total = math.fsum(best), math.fsum(mass)
    slack = max(row_slack([kernel]) for kernel in kernels.distinct)
    error = slack * min(len(y), -4.0 * total[1]) - 16.0 * ULP * sum(total)
    return Column(*total, error)


@column.register
def _exchangeable_column(prior: Exchangeable, kernels: RowKernels, y: Ints) -> Column:
    """Exchangeable rows: from the counts of ones, for two values per row.

    Cost O(n) with at most two different factors. For more values from pairs of types where
    databases are many and use one kernel, and O(N) otherwise.
    """
    if any((kernel.tops[y[rows]] == 0.0).any() for kernel, rows in kernels.groups()):
        return Column(-math.inf, -math.inf, 0.0)  # no database has this output
    if prior.type_weights.ndim == 1:
        form = OutputForm(kernels, y)
        mass = form.log_mass(prior.log_weights)
        if mass is not None:
            best = form.extreme(prior.possible)
            return Column(best, mass, form.error + prior.log_error)
    pairs = many_types(prior, kernels) if prior.type_weights.ndim > 1 else None
    if pairs is not None:
        return _type_column(prior, pairs, y)
    return vector_column(prior.probabilities(), kernels, y, prior.logs_if_rare())


def _type_column(prior: Exchangeable, pairs: TypePairs, y: Ints) -> Column:
    """Return the column of one output from the tables of pairs of types. Cost O(types^2)."""
    counts = np.bincount(y, minlength=len(pairs.outputs))
    at = int(np.flatnonzero((pairs.outputs == counts[:, None]).all(axis=0))[0])
    log_prior = prior.log_weights[tuple(pairs.types[1:])]
    best = float(pairs.nearest[log_prior > -math.inf, at].max())
    scale = float(pairs.log_output_sizes[at] + pairs.log_tops[at])
    mass = float(pairs.log_sum(pairs.log_joint(log_prior)[:, [at]])[0]) - scale
    error = 4.0 * pairs.error + prior.log_error + 64.0 * ULP * (1.0 - best + abs(scale))
    return Column(best, mass, error + 64.0 * ULP * abs(mass) if mass > -math.inf else error)


@column.register
def _markov_column(prior: Markov, kernels: RowKernels, y: Ints) -> Column:
    """Chain: the mean by the forward recursion, the largest by Viterbi. Cost O(n m^2)."""
    tables = [[k.near, k.loss, k.log_near, k.log_near] for k in kernels.distinct]
    return _along(prior, tables, kernels.assignment, y)


@column.register
def _hidden_markov_column(prior: HiddenMarkov, kernels: RowKernels, y: Ints) -> Column:
    """Chain behind kernels: those of the chain and the channel are joined. Cost O(n m^2)."""
    width = len(kernels.distinct)
    pairs, assignment = np.unique(
        prior.kernels.assignment * width + kernels.assignment, return_inverse=True
    )
    tables = []
    for hidden, kernel in (
        (prior.kernels.distinct[p // width], kernels.distinct[p % width]) for p in pairs
    ):
        seen = np.where(hidden.matrix[:, :, None] > 0, kernel.log_near, -math.inf)
        means = [hidden.matrix @ kernel.near, hidden.matrix @ kernel.loss]
        with np.errstate(divide="ignore"):
            terms = np.log(hidden.matrix)[:, :, None] + kernel.log_near
        tables.append([*means, np.logaddexp.reduce(terms, axis=1), seen.max(axis=1)])
    return _along(prior.chain, tables, assignment.reshape(-1), y)


def _along(chain: Markov, tables: list[list[Floats]], assignment: Ints, y: Ints) -> Column:
    """Run both recursions along a chain.

    For each kind of row there are four tables [state, y]: means of near and of loss, the log of
    the mean, and the largest log.
    """
    from fastpriv.kernels import chain_log_best, chain_log_mass, chain_log_sum

    initial, transition = chain.initial, chain.transition
    widest = max(table[0].shape[1] for table in tables)
    near, loss, logs, tops = np.zeros((4, len(tables), widest, len(initial)))
    for kind, parts in enumerate(tables):
        for out, part in zip((near, loss, logs, tops), parts, strict=True):
            out[kind, : part.shape[1]] = part.T
    best = chain_log_best(initial, transition, tops, assignment, y)
    # Every row multiplies the forward weights by a few positive numbers.
    slack = len(y) * (4 * len(initial) + 16) * ULP
    start, steps = chain.log_chain
    rare = any(np.any((part > -math.inf) & (part < _SMALL)) for part in (steps, logs))
    mass = math.nan if rare else chain_log_mass(initial, transition, near, loss, assignment, y)
    if math.isnan(mass):  # terms may be lost to underflow
        mass, size = chain_log_sum(start, steps, logs, assignment, y)
        slack += 8.0 * len(y) * ULP * size  # a few additions of logarithms for every row
    else:
        slack *= min(1.0, -4.0 * mass)
    return Column(best, mass, slack - 16.0 * ULP * (best + mass))


@singledispatch
def log_marginal(prior: Distribution, i: int) -> tuple[Floats, float]:
    """Return the log of the law of row i, -inf only for values that cannot occur.

    The second number bounds the error of the logs of values that are too rare for a double.
    """
    marginal = prior.marginal_sum(np.array([i]))
    with np.errstate(divide="ignore"):
        logs = np.log(marginal)
    rare, error = np.flatnonzero(marginal < TINY), 0.0
    if len(rare):
        sizes, assignment = distinct_sizes(prior.space.sizes)
        kernels = RowKernels([RowKernel(np.ones((m, 1))) for m in sizes], assignment)
        shown = kernels.replaced(i, RowKernel(np.eye(len(marginal))))
        y = np.zeros(prior.space.n, dtype=np.int64)
        for value in rare.tolist():
            y[i] = value
            one = column(prior, shown, y)
            if one.mass > -math.inf:
                error = max(error, one.error)
            logs[value] = one.mass
    return np.asarray(logs), error


@log_marginal.register
def _exchangeable_log_marginal(prior: Exchangeable, i: int) -> tuple[Floats, float]:
    """Exchangeable rows: from the share of the rows that hold each value, for every type."""
    counts = np.stack([prior.zero_counts, *np.indices(prior.type_weights.shape)]) / prior.space.n
    shares = np.maximum(counts, 0.0).reshape(len(counts), -1)
    return log_law(shares.T, prior.log_weights.reshape(-1)), prior.log_error
