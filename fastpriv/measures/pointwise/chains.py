"""Leakage about a row of a Markov chain of any length, by recursions along the chain."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.leakage import Column
from fastpriv._structure.rows import RowKernel, RowKernels, distinct_sizes
from fastpriv.errors import InvalidInput
from fastpriv.priors import Distribution, Markov
from fastpriv.priors.columns import column


def chain_row_levels(prior: Markov, kernels: RowKernels) -> Floats:
    """Return the largest leakage of an output about each row of a chain of bits. Rounded up.

    Given x_i, the outputs before, at and after row i are independent. So the odds of x_i = 0
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
        near[kind, : outputs[kind]] = kernel.log_near.T
        seen = kernel.log_near[:, kernel.tops > 0.0]
        odds = seen[0] - seen[1]
        at_row[kind] = odds.min(), odds.max()
    rows = kernels.assignment
    nothing = np.zeros((1, 1, 2)), np.ones(1, dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    known = chain_odds_range(back, first, *nothing)[:-1, 0]
    before = chain_odds_range(back, first, near, outputs, rows)[:-1]
    steps, turned = np.ascontiguousarray(back.T), np.ascontiguousarray(rows[::-1])
    after = chain_odds_range(steps, 0.0, near, outputs, turned)[-2::-1]
    with np.errstate(invalid="ignore"):  # rows that are certain are left out below
        least, most = (before + at_row[rows] + after).T
        leakage = np.maximum(_gain(known, most), _gain(-known, -least))
    # Every step adds a few rounding errors of logarithms, and none is magnified.
    logs = [part[np.isfinite(part)] for part in (back, near, known, before, after)]
    widest = 4.0 + sum(float(np.abs(part).max(initial=0.0)) for part in logs)
    error = 16.0 * (len(rows) + 4.0) * ULP * widest
    return np.where(np.isinf(known), 0.0, np.maximum(leakage, 0.0) + error)


def _gain(known: Floats, told: Floats) -> Floats:
    """Return by how much the log-chance of a value rises with its log-odds."""
    return np.asarray(np.logaddexp(0.0, -known) - np.logaddexp(0.0, -told))


def leakage_given(
    prior: Distribution, kernels: RowKernels, values: dict[int, int], y: Ints
) -> float:
    """Return the leakage of one output to somebody who knows some rows. Rounded up.

    Known rows tell nothing more. The chance of the other outputs together with the known values,
    and that of the known values, come from one pass along the rows each.
    """
    sizes, plain = distinct_sizes(prior.space.sizes)
    shown = [RowKernel(np.eye(m)) for m in sizes]
    silent = RowKernels([*(RowKernel(np.ones((m, 1))) for m in sizes), *shown], plain.copy())
    mixed = RowKernels([*kernels.distinct, *shown], kernels.assignment.copy())
    nothing, where = np.zeros_like(y), y.copy()
    possible = True
    for i, value in values.items():
        possible = possible and bool(kernels[i].matrix[value, y[i]] > 0.0)
        silent.assignment[i] = len(sizes) + plain[i]
        mixed.assignment[i] = len(kernels.distinct) + plain[i]
        nothing[i] = where[i] = value
    known = column(prior, silent, nothing)
    if known.mass == -math.inf:
        raise InvalidInput(
            "the given values of rows have probability zero together; nothing can be conditioned "
            "on that"
        )
    both = column(prior, mixed, where)
    if not possible or both.mass == -math.inf:
        return 0.0
    error = both.error + known.error + 4.0 * ULP * abs(both.mass)
    return Column(both.best, both.mass - known.mass, error).leakage()
