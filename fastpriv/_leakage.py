"""How far an output moves the odds of a database, for matrices and for rows.

For every output y two numbers, both at least 0 and rounded up:

    above = ln max_x W[x, y] / p_Y(y)        the pointwise maximal leakage
    below = ln p_Y(y) / min_x W[x, y]        how far a database can be ruled out

over databases x that the prior allows; 0 where y has probability zero. Kernels of rows are divided
by their largest entry, near = W / max, and 1 - near = loss is kept beside it: sums of losses have
no negative terms, so that a mechanism at epsilon 1e-8 gets a number and not noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from fastpriv._rounding import ULP
from fastpriv._rows import RowKernel, log_ratio
from fastpriv._threads import split
from fastpriv._validation import Floats, Ints

#: Smallest matrix whose rows are worth a second thread.
_THREADED = 1 << 17
#: Masses below it may have lost terms to underflow, and are added up as logarithms instead.
_TINY = 1e-280


class Leakages(NamedTuple):
    """Both numbers for every output, or the largest of each."""

    above: Floats
    below: Floats

    def largest(self) -> tuple[float, float]:
        """Return the level of each kind."""
        return float(self.above.max()), float(self.below.max())


def over_rows(
    task: Callable[[int, int], Floats], matrix: Floats, count: int | None = None
) -> list[Floats]:
    """Run a pass over (so many of) the rows of a matrix, in threads where there are enough."""
    rows = len(matrix) if count is None else count
    return split(task, rows, max(1, _THREADED // matrix.shape[1]))


def added(parts: list[Floats]) -> Floats:
    """Add up what the threads found."""
    return np.asarray(np.sum(parts, axis=0))


def extremes(matrix: Floats) -> tuple[Floats, Floats]:
    """Largest and least entry of every column. One pass."""
    from fastpriv.kernels import column_extremes

    parts = over_rows(partial(column_extremes, matrix), matrix)
    if len(parts) == 1:
        return parts[0][0], parts[0][1]
    joined = np.stack(parts)
    return joined[:, 0].max(axis=0), joined[:, 1].min(axis=0)


def matrix_leakages(matrix: Floats, prior: Floats, error: float = 0.0) -> Leakages:
    """Both numbers for every column of a matrix. One pass, a second where leakage is small.

    ``error`` bounds the relative error that entries and prior come with.
    """
    from fastpriv.kernels import column_gaps, column_summary

    # A power of two keeps products of small numbers from underflowing, and is exact.
    p = prior * 2.0**900
    mass, rows = p.sum(), np.flatnonzero(p)
    parts = np.stack(over_rows(partial(column_summary, matrix, p, rows), matrix, len(rows)))
    most, least = parts[:, 0].max(axis=0), parts[:, 1].min(axis=0)
    law = parts[:, 2].sum(axis=0) / mass
    seen = most > 0.0
    law[~seen] = most[~seen] = least[~seen] = 1.0
    up, down = log_ratio(most, law), log_ratio(law, least)
    slack = (2 * len(p) + 16) * ULP + 4.0 * error
    if error > 0.0:  # the entries have lost the digits that a second pass could save
        found = [np.maximum(v, 0.0) * (1.0 + 8.0 * ULP) + slack for v in (up, down)]
        return Leakages(*(np.where(seen, v, 0.0) for v in found))
    near = seen & (up < 0.5), seen & (down < 0.5)
    if np.any(near):
        task = partial(column_gaps, matrix, p, most, least, rows)
        gaps = added(over_rows(task, matrix, len(rows))) / mass
        up = np.where(near[0], np.log1p(np.where(near[0], gaps[0] / law, 0.0)), up)
        base = np.where(near[1], least, 1.0)
        down = np.where(near[1], np.log1p(np.where(near[1], gaps[1] / base, 0.0)), down)
    found = [v + slack * np.minimum(4.0 * v, 1.0) + 8.0 * ULP * v for v in (up, down)]
    return Leakages(*(np.where(seen, v, 0.0) for v in found))


def contract(
    vector: Floats, kernels: Sequence[RowKernel], step: Callable[[Floats, RowKernel], Floats]
) -> Floats:
    """Apply ``step`` along every axis: (m, rest) to (k, rest), values of the row to outputs."""
    for kernel in kernels:
        vector = step(vector.reshape(kernel.shape[0], -1), kernel).T.reshape(-1)
    return vector


def tropical(vector: Floats, kernels: Sequence[RowKernel], join: np.ufunc) -> Floats:
    """Join vector[x] + ln near[x, y] over all x, for every y: join is max, min or logaddexp."""

    def step(v: Floats, kernel: RowKernel) -> Floats:
        parts = []
        for logs in kernel.log_near.T:
            sums = v + logs[:, None]
            if join is np.minimum:  # what is not allowed (inf) stays out, also where near is 0
                sums[v == math.inf] = math.inf
            parts.append(join.reduce(sums, axis=0))
        return np.stack(parts)

    with np.errstate(invalid="ignore"):
        return contract(vector, kernels, step)


def row_slack(kernels: Sequence[RowKernel]) -> float:
    """Relative error of a mass after one multiplication by every row's kernel."""
    return ULP * sum(2 * kernel.shape[0] + 6 for kernel in kernels)


def log_masses(weights: Floats, kernels: Sequence[RowKernel]) -> Floats:
    """Log of sum_x weights[x] near[x, y] / sum of the weights, for every y; at most 0."""
    total = weights.sum()
    kept = weights / total
    lost = np.zeros_like(kept)
    for kernel in kernels:
        v, gone = kept.reshape(kernel.shape[0], -1), lost.reshape(kernel.shape[0], -1)
        lost = (gone.sum(axis=0) + kernel.loss.T @ v).T.reshape(-1)
        kept = (kernel.near.T @ v).T.reshape(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(lost < 0.5, np.log1p(-np.minimum(lost, 0.5)), np.log(kept))
        if kept.min() < _TINY:
            fine = tropical(np.log(weights), kernels, np.logaddexp) - math.log(total)
            logs = np.where(kept < _TINY, fine, logs)
    return np.asarray(np.minimum(logs, 0.0))


def vector_leakages(
    prior: Floats, kernels: Sequence[RowKernel], tilt: Floats | None = None
) -> Leakages:
    """Both numbers for every output of one kernel per row. Cost O(N n m), never N x N.

    With a tilt the channel is W[x, y] e^tilt[x], up to a factor for every y.
    """
    weights = prior if tilt is None else prior * np.exp(tilt)
    spent = -log_masses(weights, kernels)
    bonus = np.zeros_like(prior) if tilt is None else tilt
    best = tropical(np.where(prior > 0, bonus, -math.inf), kernels, np.maximum)
    worst = tropical(np.where(prior > 0, bonus, math.inf), kernels, np.minimum)
    seen = best > -math.inf
    slack = row_slack(kernels)
    shift = 0.0 if tilt is None else math.log(weights.sum()) - math.log(prior.sum())
    with np.errstate(invalid="ignore"):
        above, below = best + spent - shift, shift - spent - worst
        scale = (len(kernels) + 8) * ULP
        error = slack * np.minimum(4.0 * spent, 1.0) + (0.0 if tilt is None else 4.0 * slack)
        above = np.maximum(above, 0.0) + error + scale * (spent + np.abs(best))
        below = np.maximum(below, 0.0) + error + scale * (spent + np.abs(worst))
    return Leakages(*(np.where(seen, v, 0.0) for v in (above, below)))


class Column(NamedTuple):
    """One output y of a row-by-row channel, every row's kernel divided by its largest p(y_i|.).

    Log of the largest product of the rows' entries over databases that can occur, log of their
    mean, and a bound on the rounding error of the difference.
    """

    best: float
    mass: float
    error: float

    def leakage(self) -> float:
        """Return best - mass, rounded up; 0 for an output of probability zero."""
        if self.best == -math.inf:
            return 0.0
        return max(0.0, self.best - self.mass) + self.error if self.mass > -math.inf else math.inf


def vector_column(weights: Floats, kernels: Sequence[RowKernel], y: Ints) -> Column:
    """One output under any law of databases. Cost O(N)."""
    columns = [kernel.column(value) for kernel, value in zip(kernels, y.tolist(), strict=True)]
    allowed = np.where(weights > 0, 0.0, -math.inf)
    best = float(tropical(allowed, columns, np.maximum)[0])
    mass = float(log_masses(weights, columns)[0])
    error = row_slack(kernels) * min(1.0, -4.0 * mass) + (len(y) + 8) * ULP * -(best + mass)
    return Column(best, mass, error)


def matrix_gain(matrix: Floats, prior: Floats, inner: Floats | None = None) -> float:
    """Largest H(X) - H(X | Y = y) over columns that occur, rounded up. Cost O(N K).

    ``inner`` is p ln p summed over the databases that a row of the matrix stands for. With
    d = W/q - 1 the gain is sum p f(d) + sum d inner, f(d) = (1+d) ln(1+d) - d, so that columns
    close to constant keep their digits.
    """
    from scipy.special import xlogy

    from fastpriv.kernels import divergence_columns, shift_rows

    p = prior / prior.sum()
    own = np.asarray(xlogy(p, p) if inner is None else inner)
    ref = matrix[np.argmax(p)]
    shift = added(over_rows(partial(shift_rows, matrix, p, ref), matrix))
    drift = added(over_rows(partial(shift_rows, matrix, own, ref), matrix)) - own.sum() * shift
    bend = added(over_rows(partial(divergence_columns, matrix, p, ref, shift), matrix))
    law = p @ matrix
    most, least = extremes(matrix)
    # Every term of the drift is at most own times the width of its column.
    error = (len(p) + 32) * ULP * (bend + 3.0 * np.abs(own).sum() * (most - least))
    seen = law > 0
    return max(0.0, float(((bend + drift + error)[seen] / law[seen]).max()))


def vector_gain(
    prior: Floats, weights: Floats, kernels: Sequence[RowKernel], law: Floats | None = None
) -> float:
    """Largest H(X) - H(X | Y = y) under p(x|y) proportional to weights[x] W[x, y], rounded up.

    ``law`` is positive where outputs occur, if not all that have weight do. Outputs too rare for
    a double count as the most that they could tell, H(X). Cost O(N n m).
    """
    from scipy.special import xlogy

    kept = weights / weights.sum()
    spread = xlogy(kept, kept)
    for kernel in kernels:
        m = kernel.shape[0]
        v, t = kept.reshape(m, -1), spread.reshape(m, -1)
        own = kernel.near * np.where(kernel.near > 0, kernel.log_near, 0.0)
        spread = (kernel.near.T @ t + own.T @ v).T.reshape(-1)
        kept = (kernel.near.T @ v).T.reshape(-1)
    clear = kept > _TINY
    kept, spread = np.where(clear, kept, 1.0), np.where(clear, spread, 0.0)
    left = np.maximum(np.log(kept) - spread / kept, 0.0)
    if not clear.all():
        allowed = np.where(weights > 0, 0.0, -math.inf)
        left[tropical(allowed, kernels, np.maximum) == -math.inf] = math.inf
    if law is not None:
        left[law == 0] = math.inf
    p = prior / prior.sum()
    whole = -math.fsum(xlogy(p, p))
    size = float((np.abs(np.log(kept)) + np.abs(spread / kept)).max())
    error = (16 * ULP + 6.0 * row_slack(kernels)) * (1.0 + size)
    return min(max(0.0, whole - float(left.min())), whole) + error
