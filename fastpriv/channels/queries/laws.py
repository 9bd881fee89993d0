"""Laws of the answers of sums and histograms, in the structure of the prior."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import log_law
from fastpriv.channels.queries.arranged import arranged_law
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.rare import log_convolve, log_power

#: Most terms of a convolution: as many as for 200,000 rows of two values.
_MAX_TERMS = 200_000**2
#: Most terms of a convolution that is done in logarithms.
_MAX_LOGS = 1 << 32


@singledispatch
def score_law(prior: Distribution, scores: Sequence[Ints], which: Ints) -> Floats:
    """Law of the sum over rows of ``scores[which[i]][x_i]``.

    The general algorithm takes the vector of the prior. Cost O(N).
    """
    pmf, total = prior.as_dense("the law of a sum").probabilities(), sums(scores, which)
    return np.asarray(np.bincount(total, pmf, largest_sum(scores, which) + 1), np.float64)


@score_law.register
def _product_score_law(prior: Product, scores: Sequence[Ints], which: Ints) -> Floats:
    """Convolve row by row, with positive terms only. Cost O(n sums)."""
    laws = _steps(prior, scores, which)
    most = largest_sum(scores, which)
    work = prior.space.n * (most + 1)
    check.fits(work, "the work for the law of a sum", "use fewer rows", _MAX_TERMS)
    total, end = np.zeros(most + 1), 1
    total[0] = 1.0
    for k, kind in zip(prior.assignment.tolist(), which.tolist(), strict=True):
        last = total[:end].copy()
        total[:end] = 0.0
        for step, chance in laws[k, kind]:
            total[step : step + end] += chance * last
        end += laws[k, kind][-1][0]
    return total


@score_law.register
def _exchangeable_score_law(prior: Exchangeable, scores: Sequence[Ints], which: Ints) -> Floats:
    """Take the types of databases. Cost O(types) where all rows have the same scores.

    Where they differ, the arrangements of a type are equally likely.
    """
    if len(scores) > 1:
        return np.asarray(
            np.tensordot(prior.type_weights, arranged_law(scores, which), prior.type_weights.ndim)
        )
    total, inside = type_sums(prior, scores[0])
    most = prior.space.n * int(scores[0].max())
    return np.asarray(np.bincount(total, prior.type_weights[inside], most + 1), np.float64)


@score_law.register
def _markov_score_law(prior: Markov, scores: Sequence[Ints], which: Ints) -> Floats:
    """Carry the joint law of the sum and the last row along the chain. Cost O(n m^2 sums)."""
    most, steps = largest_sum(scores, which), prior.transition.T
    _check_chain(prior, most)
    joint = np.zeros((len(steps), most + 1))
    joint[np.arange(len(steps)), scores[which[0]]] = prior.initial
    for kind in which[1:].tolist():
        joint = shifted(steps @ joint, scores[kind])
    return np.asarray(joint.sum(axis=0))


@singledispatch
def log_score_law(prior: Distribution, scores: Sequence[Ints], which: Ints) -> Floats:
    """Logs of :func:`score_law`, -inf only where impossible.

    The general algorithm takes the logs of all databases. Cost O(N).
    """
    logs = np.full(largest_sum(scores, which) + 1, -math.inf)
    np.logaddexp.at(logs, sums(scores, which), prior.all_log_probabilities())
    return logs


@log_score_law.register
def _product_log_score_law(prior: Product, scores: Sequence[Ints], which: Ints) -> Floats:
    """Convolve in logarithms. Cost O(n) for equal bits, O(n sums) otherwise."""
    pairs = Counter(zip(prior.assignment.tolist(), which.tolist(), strict=True))
    laws, most = _steps(prior, scores, which), largest_sum(scores, which)
    if len(pairs) > 1 or any(len(steps) > 2 for steps in laws.values()):
        work = prior.space.n * (most + 1)
        check.fits(work, "the work for the law of a sum", "use fewer rows", _MAX_LOGS)
    total = np.zeros(1)
    for pair, count in pairs.items():
        total = log_convolve(total, log_power(laws[pair], count))
    return np.pad(total, (0, most + 1 - len(total)), constant_values=-math.inf)


@log_score_law.register
def _exchangeable_log_score_law(prior: Exchangeable, scores: Sequence[Ints], which: Ints) -> Floats:
    """Take the types of databases. Cost O(types) where all rows have the same scores."""
    logs = np.full(largest_sum(scores, which) + 1, -math.inf)
    if len(scores) > 1:
        table = arranged_law(scores, which).reshape(-1, len(logs))
        return log_law(table, prior.log_weights.reshape(-1))
    total, inside = type_sums(prior, scores[0])
    np.logaddexp.at(logs, total, prior.log_weights[inside])
    return logs


@log_score_law.register
def _markov_log_score_law(prior: Markov, scores: Sequence[Ints], which: Ints) -> Floats:
    """Carry the logs of the joint law along the chain. Cost O(n m^2 sums)."""
    start, steps = prior.log_chain
    most, m = largest_sum(scores, which), len(start)
    _check_chain(prior, most)
    joint = np.full((m, most + 1), -math.inf)
    joint[np.arange(m), scores[which[0]]] = start
    for kind in which[1:].tolist():
        ahead = [np.logaddexp.reduce(joint + step[:, None], axis=0) for step in steps]
        joint = shifted(np.stack(ahead), scores[kind], -math.inf)
    return np.asarray(np.logaddexp.reduce(joint, axis=0))


def _check_chain(prior: Markov, most: int) -> None:
    work = prior.space.n * prior.space.sizes[0] ** 2 * (most + 1)
    check.fits(work, "the work for the law of a sum", "use fewer rows", _MAX_LOGS)


def shifted(joint: Floats, by: Ints, empty: float = 0.0) -> Floats:
    """Move every row of an array to the right by a number of its own; nothing falls off."""
    out = np.full_like(joint, empty)
    for row, part, step in zip(out, joint, by.tolist(), strict=True):
        row[step:] = part[: len(part) - step]
    return out


@singledispatch
def histogram_law(prior: Distribution) -> Floats:
    """Law of how many rows hold each value, as weights of an exchangeable law, flat.

    Entry (c_1, ..., c_(m-1)) in C order of arrays with n + 1 entries along every axis. In general
    it is the law of a sum: value v = 1 .. m-1 scores (n + 1)^(m-1-v).
    """
    law = score_law(prior, [histogram_scores(prior)], np.zeros(prior.space.n, dtype=np.int64))
    return np.pad(law, (0, _histograms(prior) - len(law)))


@histogram_law.register
def _exchangeable_histogram_law(prior: Exchangeable) -> Floats:
    """Return the weights."""
    return prior.type_weights.reshape(-1)


@singledispatch
def log_histogram_law(prior: Distribution) -> Floats:
    """Logs of :func:`histogram_law`, -inf only where impossible."""
    law = log_score_law(prior, [histogram_scores(prior)], np.zeros(prior.space.n, dtype=np.int64))
    return np.pad(law, (0, _histograms(prior) - len(law)), constant_values=-math.inf)


@log_histogram_law.register
def _exchangeable_log_histogram_law(prior: Exchangeable) -> Floats:
    """Return the logs of the weights."""
    return prior.log_weights.reshape(-1)


def _histograms(prior: Distribution) -> int:
    """Return the number of entries of a table of histograms."""
    return int((prior.space.n + 1) ** (prior.space.sizes[0] - 1))


def histogram_scores(prior: Distribution) -> Ints:
    """Return scores whose sum tells the histogram: digits in base n + 1."""
    base = (prior.space.n + 1) ** np.arange(prior.space.sizes[0] - 1)[::-1]
    return np.concatenate([[0], base]).astype(np.int64)


def _steps(
    prior: Product, scores: Sequence[Ints], which: Ints
) -> dict[tuple[int, int], list[tuple[int, float]]]:
    """Return what rows of each law and kind add to the sum, with probabilities."""
    laws = {}
    for k, kind in set(zip(prior.assignment.tolist(), which.tolist(), strict=True)):
        steps = np.bincount(scores[kind], prior.distinct[k])
        laws[k, kind] = [(int(s), float(steps[s])) for s in np.flatnonzero(steps)]
    return laws


def type_sums(prior: Exchangeable, scores: Ints) -> tuple[Ints, np.ndarray]:
    """Return the sum for every type of database, and which entries of the weights are types."""
    counts = np.stack([prior.zero_counts, *np.indices(prior.type_weights.shape)])
    inside = prior.zero_counts >= 0
    return np.tensordot(scores, counts, 1)[inside], inside


def largest_sum(scores: Sequence[Ints], which: Ints) -> int:
    """Largest sum over rows of ``scores[which[i]]``."""
    tops = [int(score.max()) for score in scores]
    return sum(tops[kind] for kind in which.tolist())


def sums(scores: Sequence[Ints], which: Ints) -> Ints:
    """Sum over rows of ``scores[which[i]][x_i]``, for every database."""
    total = np.zeros(1, dtype=np.int64)
    for kind in which:
        total = np.add.outer(total, scores[kind]).reshape(-1)
    return total
