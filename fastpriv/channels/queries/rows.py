"""Joint laws of the value of one row and the sum over all rows, in the structure of the prior."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import log_law
from fastpriv.channels.queries.arranged import arranged_law
from fastpriv.channels.queries.laws import (
    largest_sum,
    log_score_law,
    score_law,
    type_sums,
)
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.type_weights import without_one


@singledispatch
def row_score_law(prior: Distribution, scores: Sequence[Ints], which: Ints, i: int) -> Floats:
    """Joint law [v, sum] of row i and the sum over rows of ``scores[which[i]][x_i]``.

    The general algorithm writes v before the digits of the sum, and takes the law of that sum.
    """
    shape = len(scores[which[i]]), largest_sum(scores, which) + 1
    law = score_law(prior, *_marked(scores, which, i))
    return np.pad(law, (0, math.prod(shape) - len(law))).reshape(shape)


@singledispatch
def log_row_score_law(prior: Distribution, scores: Sequence[Ints], which: Ints, i: int) -> Floats:
    """Logs of :func:`row_score_law`, -inf only where impossible."""
    shape = len(scores[which[i]]), largest_sum(scores, which) + 1
    logs = log_score_law(prior, *_marked(scores, which, i))
    return np.pad(logs, (0, math.prod(shape) - len(logs)), constant_values=-math.inf).reshape(shape)


def _marked(scores: Sequence[Ints], which: Ints, i: int) -> tuple[list[Ints], Ints]:
    """Return scores under which row i adds its value times the number of sums."""
    own = scores[which[i]]
    marked = own + np.arange(len(own)) * (largest_sum(scores, which) + 1)
    kinds = which.copy()
    kinds[i] = len(scores)
    return [*scores, marked], kinds


@row_score_law.register
def _exchangeable_row_score_law(
    prior: Exchangeable, scores: Sequence[Ints], which: Ints, i: int
) -> Floats:
    """Take the share of the rows that hold each value, type by type. Cost O(types m).

    Of rows with different scores, take the sums of the others, whose orders are equally likely.
    """
    if len(scores) > 1 < prior.space.n:
        own, others = scores[which[i]], arranged_law(scores, np.delete(which, i))
        parts = without_one(prior.type_weights / prior.space.n)
        joint = np.stack([np.tensordot(part, others, part.ndim) for part in parts])
        return placed(joint, own, largest_sum(scores, which) + 1)
    total, inside = type_sums(prior, scores[0])
    weights, most = prior.type_weights[inside], largest_sum(scores, which)
    parts = [np.bincount(total, weights * share, most + 1) for share in _shares(prior, inside)]
    return np.asarray(np.stack(parts), np.float64)


@log_row_score_law.register
def _exchangeable_log_row_score_law(
    prior: Exchangeable, scores: Sequence[Ints], which: Ints, i: int
) -> Floats:
    """Take the share of the rows that hold each value, type by type. Cost O(types m)."""
    logs = np.full((len(scores[0]), largest_sum(scores, which) + 1), -math.inf)
    if len(scores) > 1 < prior.space.n:
        others = arranged_law(scores, np.delete(which, i))
        for part, log_part, step in zip(logs, _log_parts(prior), scores[which[i]], strict=True):
            law = log_law(others.reshape(-1, others.shape[-1]), log_part.reshape(-1))
            part[step : step + len(law)] = law
        return logs
    total, inside = type_sums(prior, scores[0])
    for part, share in zip(logs, _shares(prior, inside), strict=True):
        held = share > 0
        np.logaddexp.at(part, total[held], prior.log_weights[inside][held] + np.log(share[held]))
    return logs


def _log_parts(prior: Exchangeable) -> list[Floats]:
    """Return logs of the chances of the others' counts together with each value of a row."""
    n, m = prior.space.n, prior.space.sizes[0]
    shares = without_one(np.ones(prior.type_weights.shape) / n)
    parts = []
    for v, share in enumerate(shares):
        ahead = tuple(slice(1, None) if a == v - 1 else slice(0, n) for a in range(m - 1))
        with np.errstate(divide="ignore"):
            parts.append(np.asarray(prior.log_weights[ahead] + np.log(share)))
    return parts


def _shares(prior: Exchangeable, inside: np.ndarray) -> Floats:
    """Return the share of the rows that hold each value, [v, type]."""
    counts = np.stack([prior.zero_counts, *np.indices(prior.type_weights.shape)])
    return np.asarray(counts[:, inside] / prior.space.n)


@singledispatch
def row_score_laws(
    prior: Distribution, scores: Sequence[Ints], which: Ints, rows: Ints
) -> Iterator[Floats]:
    """Yield :func:`row_score_law` of several rows."""
    for i in rows.tolist():
        yield row_score_law(prior, scores, which, i)


@row_score_laws.register
def _product_row_score_laws(
    prior: Product, scores: Sequence[Ints], which: Ints, rows: Ints
) -> Iterator[Floats]:
    """Convolve the sums of the rows before and behind each. Cost O(sums^2) for each row."""
    if len(rows) == 1:
        yield row_score_law(prior, scores, which, int(rows[0]))
        return
    most = _check_laws(prior, scores, which)
    steps = [
        np.bincount(scores[kind], prior.distinct[k]).astype(np.float64)
        for k, kind in zip(prior.assignment.tolist(), which.tolist(), strict=True)
    ]
    before, behind = [np.ones(1)], [np.ones(1)]
    for first, last in zip(steps, reversed(steps), strict=True):
        before.append(np.convolve(before[-1], first))
        behind.append(np.convolve(behind[-1], last))
    for i in rows.tolist():
        others = np.convolve(before[i], behind[len(steps) - 1 - i])
        law = prior.distinct[prior.assignment[i]]
        yield placed(law[:, None] * others, scores[which[i]], most + 1)


@row_score_laws.register
def _markov_row_score_laws(
    prior: Markov, scores: Sequence[Ints], which: Ints, rows: Ints
) -> Iterator[Floats]:
    """Convolve the sums before and behind each value. Cost O(m sums^2) for each row."""
    if len(rows) == 1:
        yield row_score_law(prior, scores, which, int(rows[0]))
        return
    most, T, m = _check_laws(prior, scores, which), prior.transition, len(prior.initial)
    before, behind = [prior.initial[:, None]], [np.ones((m, 1))]
    for kind, last in zip(which[:-1].tolist(), which[:0:-1].tolist(), strict=True):
        before.append(T.T @ placed(before[-1], scores[kind]))
        behind.append(T @ placed(behind[-1], scores[last]))
    for i in rows.tolist():
        sides = zip(before[i], behind[len(behind) - 1 - i], strict=True)
        joint = np.stack([np.convolve(*both) for both in sides])
        yield placed(joint, scores[which[i]], most + 1)


def _check_laws(prior: Distribution, scores: Sequence[Ints], which: Ints) -> int:
    """Return the largest sum where laws of the sums of all first and last rows fit."""
    most = largest_sum(scores, which)
    work = prior.space.n * max(prior.space.sizes) * (most + 1)
    check.fits(work, "the laws of the sums before each row", "ask for one row")
    return most


def placed(joint: Floats, by: Ints, length: int | None = None) -> Floats:
    """Return rows moved to the right, each by a number of its own, at the given length."""
    width = joint.shape[1]
    out = np.zeros((len(joint), length or width + int(by.max())))
    for row, part, step in zip(out, joint, by.tolist(), strict=True):
        row[step : step + width] = part
    return out
