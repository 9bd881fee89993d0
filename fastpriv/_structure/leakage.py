"""Leakage of channels that act record by record, from the kernels of the records.

The prior is a vector over databases. One pass along the records computes the leakage of all outputs
at once: O(N n m), never an N x N matrix. Every kernel is divided by the largest entry of each
column, near = W / max, and loss = 1 - near is stored beside it. Sums of losses have no negative
terms, so a mechanism at epsilon 1e-8 keeps its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fastpriv._core.rounding import LEAST, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, Leakages, surprise
from fastpriv._structure.rows import RowKernel

#: Losses below this number lose digits, or all of them, when they are multiplied by weights.
_FINE = 2.0**-900


def contract(
    vector: Floats, kernels: Sequence[RowKernel], step: Callable[[Floats, RowKernel], Floats]
) -> Floats:
    """Apply ``step`` along every axis. It takes (m, rest) to (k, rest): values to outputs."""
    for kernel in kernels:
        vector = step(vector.reshape(kernel.shape[0], -1), kernel).T.reshape(-1)
    return vector


def tropical(vector: Floats, kernels: Sequence[RowKernel], join: np.ufunc) -> Floats:
    """Return the max, min or logaddexp over x of vector[x] + ln near[x, y], for every y."""

    def step(v: Floats, kernel: RowKernel) -> Floats:
        parts = []
        for logs in kernel.log_relative.T:
            sums = v + logs[:, None]
            if join is np.minimum:  # inf (not allowed) stays out, also if near is 0
                sums[v == math.inf] = math.inf
            parts.append(join.reduce(sums, axis=0))
        return np.stack(parts)

    with np.errstate(invalid="ignore"):
        return contract(vector, kernels, step)


def row_slack(kernels: Sequence[RowKernel]) -> float:
    """Bound the relative error of a probability after one multiplication by every kernel."""
    return roundoff(sum(2 * kernel.shape[0] + 6 for kernel in kernels))


def log_slack(kernels: Sequence[RowKernel]) -> float:
    """Bound the relative error of its logarithm if logarithms are added up."""
    return roundoff(8 + sum(kernel.shape[0] for kernel in kernels))


def lost_losses(kernels: Sequence[RowKernel]) -> float:
    """Bound the underflow of sums of losses, each at most a few terms long."""
    rare = [kernel for kernel in kernels if ((kernel.loss > 0.0) & (kernel.loss < _FINE)).any()]
    return 4.0 * LEAST * sum(kernel.shape[0] for kernel in rare)


def log_masses(weights: Floats, kernels: Sequence[RowKernel], logs: Floats | None = None) -> Floats:
    """Return ln of sum_x weights[x] near[x, y] / sum of the weights, for every y; at most 0.

    ``logs`` are the logarithms of the weights if some of them underflow.
    """
    total = weights.sum()
    kept = weights / total
    lost = np.zeros_like(kept)
    for kernel in kernels:
        v, gone = kept.reshape(kernel.shape[0], -1), lost.reshape(kernel.shape[0], -1)
        lost = (gone.sum(axis=0) + kernel.loss.T @ v).T.reshape(-1)
        kept = (kernel.relative.T @ v).T.reshape(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        masses = np.where(lost < 0.5, np.log1p(-np.minimum(lost, 0.5)), np.log(kept))
        if kept.min() < TINY:
            fine = tropical(np.log(weights) if logs is None else logs, kernels, np.logaddexp)
            fine -= math.log(total)
            masses = np.where(kept < TINY, fine, masses)
    return np.asarray(np.minimum(masses, 0.0))


def tilted(prior: Floats, logs: Floats | None, tilt: Floats) -> tuple[Floats, Floats, float]:
    """Return prior[x] e^tilt[x] scaled into range, its logs, and the log of the scale."""
    with np.errstate(divide="ignore"):
        logs = tilt + (np.log(prior) if logs is None else logs)
    if np.ptp(tilt) < -math.log(TINY):
        top = float(tilt.max())
        return prior * np.exp(tilt - top), logs - top, top
    top = float(logs.max())
    return np.exp(logs - top), logs - top, top


def _among(occurs: np.ndarray, kernels: Sequence[RowKernel]) -> tuple[list[RowKernel], Ints]:
    """Omit values that no database has: entries relative to theirs would have larger errors.

    Also returns the databases that are left.
    """
    fewer, left, before = [], np.zeros(1, dtype=np.int64), 1
    for kernel in kernels:
        m = kernel.shape[0]
        values = np.flatnonzero(occurs.reshape(before, m, -1).any(axis=(0, 2)))
        fewer.append(kernel.among(values))
        left, before = np.add.outer(m * left, values).reshape(-1), before * m
    return fewer, left


def vector_leakages(
    prior: Floats,
    kernels: Sequence[RowKernel],
    logs: Floats | None = None,
    tilt: Floats | None = None,
) -> Leakages:
    """Return both leakages of every output of a record-by-record channel. Cost O(N n m).

    ``logs`` are the logarithms of the prior if some of it underflows. With a tilt the channel is
    W[x, y] e^tilt[x], up to a factor for every y.
    """
    occurs = prior > 0 if logs is None else logs > -math.inf
    if not occurs.all():
        kernels, kept = _among(occurs, kernels)
        prior, occurs = prior[kept], occurs[kept]
        logs, tilt = (None if part is None else part[kept] for part in (logs, tilt))
    weights, bonus = prior, np.zeros_like(prior)
    own = 0.0 if logs is None else roundoff(64.0)  # of the logs, if they were added up
    if tilt is not None:
        bonus = tilt
        weights, logs, factor = tilted(prior, logs, tilt)
    spent = -log_masses(weights, kernels, logs)
    best = tropical(np.where(occurs, bonus, -math.inf), kernels, np.maximum)
    worst = tropical(np.where(occurs, bonus, math.inf), kernels, np.minimum)
    seen = best > -math.inf
    slack = row_slack(kernels)
    shift = 0.0 if tilt is None else math.log(weights.sum()) - math.log(prior.sum()) + factor
    with np.errstate(invalid="ignore"):
        above, below = best + spent - shift, shift - spent - worst
        error = slack * np.minimum(4.0 * spent, 1.0) + (0.0 if tilt is None else 4.0 * slack)
        error += (log_slack(kernels) + own) * spent + lost_losses(kernels)
        scale = roundoff(len(kernels) + 8)
        above = np.maximum(above, 0.0) + error + scale * np.abs(best)
        below = np.maximum(below, 0.0) + error + scale * np.abs(worst)
    return Leakages(*(np.where(seen, v, 0.0) for v in (above, below)))


class Column(NamedTuple):
    """One output y, every record's kernel divided by its largest p(y_i|.).

    Over the databases that can occur: the log of the largest product of the kernels' entries, the
    log of their mean, and a bound on the rounding error of the difference.
    """

    best: float
    mass: float
    error: float

    def leakage(self) -> float:
        """Return best - mass, rounded up; 0 for an output of probability zero."""
        if self.best == -math.inf:
            return 0.0
        return max(0.0, self.best - self.mass) + self.error if self.mass > -math.inf else math.inf


def vector_column(
    weights: Floats, kernels: Sequence[RowKernel], y: Ints, logs: Floats | None = None
) -> Column:
    """Return the column of one output under any distribution of databases. Cost O(N)."""
    columns = [kernel.column(value) for kernel, value in zip(kernels, y.tolist(), strict=True)]
    occurs = weights > 0 if logs is None else logs > -math.inf
    best = float(tropical(np.where(occurs, 0.0, -math.inf), columns, np.maximum)[0])
    mass = float(log_masses(weights, columns, logs)[0])
    slack = row_slack(kernels)
    own = log_slack(kernels) + (0.0 if logs is None else roundoff(64.0))
    error = slack * min(1.0, -4.0 * mass) - own * mass - roundoff(len(y) + 8) * best
    error += lost_losses(columns)
    return Column(best, mass, error)


def vector_gain(
    prior: Floats,
    weights: Floats,
    kernels: Sequence[RowKernel],
    logs: Floats | None = None,
    occurs: np.ndarray | None = None,
) -> float:
    """Return the largest H(X) - H(X | Y = y), p(x|y) proportional to weights[x] W[x, y].

    Rounded up. ``logs`` are the logarithms of the weights if some of them underflow. ``occurs``
    marks the outputs that occur; by default all that have weight. Outputs whose probability
    underflows count as H(X), the largest possible value. Cost O(N n m).
    """
    from scipy.special import xlogy

    kept = weights / weights.sum()
    spread = xlogy(kept, kept)
    for kernel in kernels:
        m = kernel.shape[0]
        v, t = kept.reshape(m, -1), spread.reshape(m, -1)
        own = kernel.relative * np.where(kernel.relative > 0, kernel.log_relative, 0.0)
        spread = (kernel.relative.T @ t + own.T @ v).T.reshape(-1)
        kept = (kernel.relative.T @ v).T.reshape(-1)
    clear = kept > TINY
    kept, spread = np.where(clear, kept, 1.0), np.where(clear, spread, 0.0)
    left = np.maximum(np.log(kept) - spread / kept, 0.0)
    if not clear.all():
        allowed = np.where(weights > 0 if logs is None else logs > -math.inf, 0.0, -math.inf)
        left[tropical(allowed, kernels, np.maximum) == -math.inf] = math.inf
    if occurs is not None:
        left[~occurs] = math.inf
    whole = -math.fsum(surprise(prior))
    size = float((np.abs(np.log(kept)) + np.abs(spread / kept)).max())
    error = (roundoff(16) + 6.0 * row_slack(kernels)) * (1.0 + size)
    return min(max(0.0, whole - float(left.min())), whole) + error
