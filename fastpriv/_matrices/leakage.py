"""How far an output moves the odds of a database, for channels given as matrices.

For every output y there are two numbers, both at least 0 and rounded up:

    above = ln max_x W[x, y] / p_Y(y)        the pointwise maximal leakage
    below = ln p_Y(y) / min_x W[x, y]        how far a database can be ruled out

The extremes are over the databases x that the prior allows. Both numbers are 0 if y has probability
zero. ``fastpriv._structure.leakage`` computes them for channels that act record by record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import LEAST, NORMAL, raised, roundoff, sum_error
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats

#: Smallest matrix whose rows are split over threads.
_THREADED = 1 << 17
#: Masses below it may have lost terms to underflow, and are added up as logarithms instead.
TINY = 1e-280


class Leakages(NamedTuple):
    """Both leakages of every output."""

    above: Floats
    below: Floats

    def largest(self) -> tuple[float, float]:
        """Return the largest of each over outputs."""
        return float(self.above.max()), float(self.below.max())


def over_rows(
    task: Callable[[int, int], Floats], matrix: Floats, count: int | None = None
) -> list[Floats]:
    """Run a task over the rows of a matrix, or the first ``count``, in threads if it is large."""
    rows = len(matrix) if count is None else count
    return split(task, rows, max(1, _THREADED // matrix.shape[1]))


def added(parts: list[Floats]) -> Floats:
    """Add up the parts that the threads return."""
    return np.asarray(np.sum(parts, axis=0))


def extremes(matrix: Floats) -> tuple[Floats, Floats]:
    """Largest and smallest entry of every column. One pass."""
    from fastpriv.kernels import column_extremes

    parts = over_rows(partial(column_extremes, matrix), matrix)
    if len(parts) == 1:
        return parts[0][0], parts[0][1]
    joined = np.stack(parts)
    return joined[:, 0].max(axis=0), joined[:, 1].min(axis=0)


def matrix_leakages(
    matrix: Floats, prior: Floats, error: float = 0.0, logs: Floats | None = None
) -> Leakages:
    """Return both leakages of every column. One pass, and a second one if leakage is small.

    ``error`` bounds the relative error of the entries and the prior. ``logs`` are the logarithms of
    the prior if some of it underflows.
    """
    from fastpriv.kernels import column_gaps, column_summary

    # A power of two keeps products of small numbers from underflowing, and is exact.
    p = prior * 2.0**900
    mass, rows = p.sum(), np.flatnonzero(p if logs is None else logs > -math.inf)
    parts = np.stack(over_rows(partial(column_summary, matrix, p, rows), matrix, len(rows)))
    most, least = parts[:, 0].max(axis=0), parts[:, 1].min(axis=0)
    law = parts[:, 2].sum(axis=0) / mass
    seen = most > 0.0
    law[~seen] = most[~seen] = least[~seen] = 1.0
    up, down = log_ratio(most, law), log_ratio(law, least)
    # Underflow loses less than the smallest normal double, times the largest entry for priors.
    rare = np.flatnonzero(law < (NORMAL if logs is None else np.maximum(NORMAL, TINY * most)))
    if len(rare):
        with np.errstate(divide="ignore"):
            logs = np.log(prior / prior.sum()) if logs is None else logs
            ends, mean = np.log([most[rare], least[rare]]), log_law(matrix[:, rare], logs)
        off = log_error(logs, error) + roundoff(64.0) * (np.abs(ends[0]) + np.abs(mean))
        # An output that is equally likely everywhere leaks nothing.
        apart = most[rare] > least[rare]
        up[rare] = np.where(apart, np.maximum(ends[0] - mean, 0.0) + off, 0.0)
        down[rare] = np.where(apart, np.maximum(mean - ends[1], 0.0) + off, 0.0)
    slack = sum_error(2 * len(p), 16) + 4.0 * error
    if error > 0.0:  # the entries have lost the digits that a second pass could save
        both = [raised(np.maximum(v, 0.0), 8.0) + slack for v in (up, down)]
        return Leakages(*(np.where(seen, v, 0.0) for v in both))
    clear = seen.copy()
    clear[rare] = False
    near = clear & (up < 0.5), clear & (down < 0.5)
    if np.any(near):
        task = partial(column_gaps, matrix, p, most, least, rows)
        # Times the scale of the prior, and what underflow may have cost.
        gaps = added(over_rows(task, matrix, len(rows))) + len(p) * LEAST * (most > least)
        over, under = np.where(near[0], law, 1.0), np.where(near[1], least, 1.0)
        up = np.where(near[0], np.log1p(np.where(near[0], gaps[0] / over / mass, 0.0)), up)
        down = np.where(near[1], np.log1p(np.where(near[1], gaps[1] / under / mass, 0.0)), down)
    # If inputs differ in the probability of an output, its leakage is positive even if it
    # underflows.
    tiny = 8.0 * LEAST * (most > least)
    both = [v + slack * np.minimum(4.0 * v, 1.0) + roundoff(8.0) * v + tiny for v in (up, down)]
    return Leakages(*(np.where(seen, v, 0.0) for v in both))


def log_error(logs: Floats, error: float) -> float:
    """Bound the error of log-probabilities that come from sums, plus a given relative error."""
    return (roundoff(64.0) + error) * float(np.abs(logs[logs > -math.inf]).max(initial=0.0))


def log_law(matrix: Floats, logs: Floats) -> Floats:
    """Log-probability of every column, from the logs of the prior; -inf for impossible ones."""
    with np.errstate(divide="ignore"):
        terms = np.log(matrix) + logs[:, None]
    top = terms.max(axis=0)
    base = np.where(top > -math.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(base + np.log(np.exp(terms - base).sum(axis=0)))


def matrix_log_output(matrix: Floats, prior: Floats, logs: Floats | None) -> Floats:
    """Log of the probability of every column, -inf only for impossible ones. Cost O(N K)."""
    law = prior @ matrix
    with np.errstate(divide="ignore"):
        logs_of_law = np.log(law)
        rare = np.flatnonzero(law < TINY)
        if len(rare):
            logs_of_law[rare] = log_law(matrix[:, rare], np.log(prior) if logs is None else logs)
    return np.asarray(logs_of_law)


def row_leakages(laws: Sequence[Floats], marginal: Floats, error: float) -> Floats:
    """Leakage of every output about a value, from the log-probabilities of outputs given each.

    ``marginal`` are the logs of the values' probabilities. ``error`` bounds the relative error of
    the distributions. Rounded up.
    """
    table = np.stack(laws)
    best = table.max(axis=0)
    seen = best > -math.inf
    best, table = best[seen], table[:, seen]
    chances = marginal - np.logaddexp.reduce(marginal)
    mass = np.logaddexp.reduce(table + chances[:, None], axis=0)
    # Logs that were added up as such have errors in proportion to their size.
    terms = np.where(best > math.log(TINY), 1.0, 1.0 + np.abs(best))
    leakage = np.zeros(len(seen))
    leakage[seen] = np.maximum(best - mass, 0.0) + 4.0 * error * terms
    leakage[seen] += sum_error(2.0 * len(laws), 8.0) * (1.0 + np.abs(best) + np.abs(mass))
    return leakage


def surprise(law: Floats) -> Floats:
    """Return p ln p of a distribution divided by its sum, accurate even if p is close to one."""
    total, top = law.sum(), int(np.argmax(law))
    p = law / total
    terms: Floats = p * np.log(p, out=np.zeros_like(p), where=p > 0.0)
    if p[top] > 0.5:
        rest = (law[:top].sum() + law[top + 1 :].sum()) / total
        terms[top] = p[top] * math.log1p(-rest)
    return terms


def matrix_gain(
    matrix: Floats, prior: Floats, inner: Floats | None = None, error: float = 0.0
) -> float:
    """Return the largest H(X) - H(X | Y = y) over columns that occur, rounded up. Cost O(N K).

    ``inner`` is p ln p summed over the databases that a row of the matrix stands for. ``error``
    bounds the relative error of the prior and of ``inner``. With d = W/q - 1 the gain is
    sum p f(d) + sum d inner, f(d) = (1+d) ln(1+d) - d, so that columns close to constant keep their
    digits. Outputs whose probability underflows count as H(X), the most that an output reveals.
    """
    from fastpriv.kernels import column_summary, divergence_columns, shift_rows

    p, own = prior / prior.sum(), surprise(prior) if inner is None else inner
    ref, rows = matrix[np.argmax(p)], np.flatnonzero(p)
    shift = added(over_rows(partial(shift_rows, matrix, p, ref), matrix))
    drift = added(over_rows(partial(shift_rows, matrix, own, ref), matrix)) - own.sum() * shift
    bend = added(over_rows(partial(divergence_columns, matrix, p, ref, shift), matrix))
    parts = np.stack(over_rows(partial(column_summary, matrix, p, rows), matrix, len(rows)))
    most, least = parts[:, 0].max(axis=0), parts[:, 1].min(axis=0)
    law = parts[:, 2].sum(axis=0)
    # Every term of the drift is at most own times the width of its column, or own times the
    # entries themselves; own has one sign.
    whole = -float(own.sum())
    size = np.minimum(3.0 * whole * (most - least), whole * (law + ref) - own @ matrix)
    slack = sum_error(len(p), 32) + error
    off = slack * (bend + size)
    gains = np.full(len(law), whole * (1.0 + slack))
    gains[most == 0.0] = 0.0
    clear = law > TINY
    gain = (bend + drift + off)[clear] / law[clear]
    gains[clear] = np.minimum(gains[clear], gain)
    return max(0.0, float(gains.max()))
