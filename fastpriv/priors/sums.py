"""Sums of a score per record, in the structure of the prior.

This module has the distribution of the sum, its joint distribution with one record, and the odds of
neighbours by their sums. It also has the sum of p(x) ln p(x) over the databases with each sum.

Let all arrangements of given values be equally likely, and let t_v of j records hold value v. Then
the last record holds v with probability t_v / j, and the others have the same property. So

    P(sum = s | t) = sum_v t_v / j * P(sum of the others = s - score(v) | t - e_v).

The posterior odds of neighbours x, x' are p(x)/p(x') times a ratio of output probabilities that
depends only on their two sums. So the largest p(x)/p(x') for every pair of sums suffices. It
depends on the records adjacent to the changed record, and on the others only through their possible
sums. Sets of sums are stored as the bits of one integer.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, singledispatch
from typing import NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, log_law, surprise
from fastpriv._structure.counts import log_binomials
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.exchangeable import group_parts, without_one

#: Most terms of a convolution: as many as for 200,000 records of two values.
_MAX_TERMS = 200_000**2
#: Most terms of a convolution in logarithms.
_MAX_LOGS = 1 << 32
#: Most terms of the recursion over arrangements.
_TERMS = 1 << 34
#: Most entries of its table: 128 MB.
_ENTRIES = 1 << 24
#: Smallest logarithm of a probability in the table, so that none underflows.
_LEAST = -700.0
#: Most words that a search for reachable sums visits.
_WORK = 1 << 34


@singledispatch
def score_law(prior: Distribution, scores: Sequence[Ints], which: Ints) -> Floats:
    """Return the distribution of the sum over records of ``scores[which[i]][x_i]``.

    The general algorithm uses the vector of the prior. Cost O(N).
    """
    pmf, total = prior.as_dense("the law of a sum").probabilities(), sums(scores, which)
    return np.asarray(np.bincount(total, pmf, largest_sum(scores, which) + 1), np.float64)


@score_law.register
def _product_score_law(prior: Product, scores: Sequence[Ints], which: Ints) -> Floats:
    """Convolve record by record, with positive terms only. Cost O(n sums)."""
    laws = _steps(prior, scores, which)
    most = largest_sum(scores, which)
    work = prior.space.n * (most + 1)
    check.fits(work, "the work for the distribution of a sum", "use fewer records", _MAX_TERMS)
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
    """Use the types of databases. Cost O(types) if all records have the same scores.

    If the scores differ, the arrangements of a type are equally likely.
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
    """Propagate the joint distribution of sum and last record. Cost O(n m^2 sums)."""
    most, steps = largest_sum(scores, which), prior.transition.T
    _check_chain(prior, most)
    joint = np.zeros((len(steps), most + 1))
    joint[np.arange(len(steps)), scores[which[0]]] = prior.initial
    for kind in which[1:].tolist():
        joint = shifted(steps @ joint, scores[kind])
    return np.asarray(joint.sum(axis=0))


@singledispatch
def log_score_law(prior: Distribution, scores: Sequence[Ints], which: Ints) -> Floats:
    """Return the logs of :func:`score_law`, -inf only if impossible.

    The general algorithm uses the logs of all databases. Cost O(N).
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
        check.fits(work, "the work for the distribution of a sum", "use fewer records", _MAX_LOGS)
    total = np.zeros(1)
    for pair, count in pairs.items():
        total = log_convolve(total, log_power(laws[pair], count))
    return np.pad(total, (0, most + 1 - len(total)), constant_values=-math.inf)


@log_score_law.register
def _exchangeable_log_score_law(prior: Exchangeable, scores: Sequence[Ints], which: Ints) -> Floats:
    """Use the types of databases. Cost O(types) if all records have the same scores."""
    logs = np.full(largest_sum(scores, which) + 1, -math.inf)
    if len(scores) > 1:
        table = arranged_law(scores, which).reshape(-1, len(logs))
        return log_law(table, prior.log_weights.reshape(-1))
    total, inside = type_sums(prior, scores[0])
    np.logaddexp.at(logs, total, prior.log_weights[inside])
    return logs


@log_score_law.register
def _markov_log_score_law(prior: Markov, scores: Sequence[Ints], which: Ints) -> Floats:
    """Propagate the logs of the joint distribution along the chain. Cost O(n m^2 sums)."""
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
    check.fits(work, "the work for the distribution of a sum", "use fewer records", _MAX_LOGS)


def shifted(joint: Floats, by: Ints, empty: float = 0.0) -> Floats:
    """Shift every row of an array to the right by its own number; no entry is lost."""
    out = np.full_like(joint, empty)
    for row, part, step in zip(out, joint, by.tolist(), strict=True):
        row[step:] = part[: len(part) - step]
    return out


@singledispatch
def histogram_law(prior: Distribution) -> Floats:
    """Return the distribution of how many records hold each value, as flat weights of types.

    Entry (c_1, ..., c_(m-1)) is in C order of arrays with n + 1 entries along every axis. In
    general it is the distribution of a sum: value v = 1 .. m-1 scores (n + 1)^(m-1-v).
    """
    law = score_law(prior, [histogram_scores(prior)], np.zeros(prior.space.n, dtype=np.int64))
    return np.pad(law, (0, _histograms(prior) - len(law)))


@histogram_law.register
def _exchangeable_histogram_law(prior: Exchangeable) -> Floats:
    """Return the weights."""
    return prior.type_weights.reshape(-1)


@singledispatch
def log_histogram_law(prior: Distribution) -> Floats:
    """Return the logs of :func:`histogram_law`, -inf only if impossible."""
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
    """Return scores whose sum determines the histogram: digits in base n + 1."""
    base = (prior.space.n + 1) ** np.arange(prior.space.sizes[0] - 1)[::-1]
    return np.concatenate([[0], base]).astype(np.int64)


def _steps(
    prior: Product, scores: Sequence[Ints], which: Ints
) -> dict[tuple[int, int], list[tuple[int, float]]]:
    """Return the scores of records of each distribution and kind, with probabilities."""
    laws = {}
    for k, kind in set(zip(prior.assignment.tolist(), which.tolist(), strict=True)):
        steps = np.bincount(scores[kind], prior.distinct[k])
        laws[k, kind] = [(int(s), float(steps[s])) for s in np.flatnonzero(steps)]
    return laws


def type_sums(prior: Exchangeable, scores: Ints) -> tuple[Ints, np.ndarray]:
    """Return the sum for every type of database, and which entries of the weights are types."""
    return np.tensordot(scores, prior.counts, 1)[prior.inside], prior.inside


def largest_sum(scores: Sequence[Ints], which: Ints) -> int:
    """Return the largest sum over records of ``scores[which[i]]``."""
    tops = [int(score.max()) for score in scores]
    return sum(tops[kind] for kind in which.tolist())


def sums(scores: Sequence[Ints], which: Ints) -> Ints:
    """Return the sum over records of ``scores[which[i]][x_i]``, for every database."""
    total = np.zeros(1, dtype=np.int64)
    for kind in which:
        total = np.add.outer(total, scores[kind]).reshape(-1)
    return total


def arranged_law(scores: Sequence[Ints], which: Ints) -> Floats:
    """Return P(sum of scores = s | counts of values), [c_1, ..., c_(m-1), s], 0 outside.

    Cost O(n m types sums).
    """
    kept = _recursion(tuple(tuple(score.tolist()) for score in scores), tuple(which.tolist()))
    return check.shown(kept)


@lru_cache(maxsize=3)
def _recursion(scores: tuple[tuple[int, ...], ...], which: tuple[int, ...]) -> Floats:
    n, m = len(which), len(scores[0])
    most = sum(max(scores[kind]) for kind in which)
    size = (n + 1) ** (m - 1) * (most + 1)
    advice = "use fewer records, or the same scores for all rows"
    check.fits(size, "the table of sums by counts of values", advice, _ENTRIES)
    check.fits(n * m * size, "the work for the distribution of a sum", advice, _TERMS)
    if -n * math.log(m) < _LEAST:
        check.fits(m**n, "the list of arrangements", advice, _ENTRIES)
    table = np.zeros((n + 1,) * (m - 1) + (most + 1,))
    table[(0,) * m] = 1.0
    counts = np.indices(table.shape[:-1])
    end = 1
    for done, kind in enumerate(which):
        near = (slice(0, done + 2),) * (m - 1)
        reached = table[near]
        last = reached[..., :end].copy()
        reached[..., :end] = 0.0
        every_count = (slice(None), *near)
        held = counts[every_count]
        zeros = np.maximum(done + 1 - held.sum(axis=0), 0) / (done + 1.0)
        for value, step in enumerate(scores[kind]):
            part = reached[..., step : step + end]
            if value == 0:
                part += zeros[..., None] * last
                continue
            axis = value - 1
            ahead = tuple(slice(1, None) if a == axis else slice(None) for a in range(m - 1))
            back = tuple(slice(0, -1) if a == axis else slice(None) for a in range(m - 1))
            part[ahead] += (held[axis][ahead] / (done + 1.0))[..., None] * last[back]
        end += max(scores[kind])
    return table


def log_convolve(a: Floats, b: Floats) -> Floats:
    """Return the log of the convolution of two arrays of logs; cost: product of lengths."""
    if len(a) > len(b):
        a, b = b, a
    out = np.full(len(a) + len(b) - 1, -math.inf)
    for shift in np.flatnonzero(a > -math.inf).tolist():
        part = out[shift : shift + len(b)]
        np.logaddexp(part, a[shift] + b, out=part)
    return out


def log_power(steps: Sequence[tuple[int, float]], count: int) -> Floats:
    """Return logs of the distribution of a sum of ``count`` independent, equal terms.

    Two values: binomial, O(count). Otherwise one convolution for each term.
    """
    top = max(value for value, _ in steps)
    chances = np.full(top + 1, -math.inf)
    for value, chance in steps:
        chances[value] = math.log(chance)
    if len(steps) == 2:
        (low, first), (high, last) = sorted(steps)
        k = np.arange(count + 1)
        logs = np.full(count * top + 1, -math.inf)
        own = log_binomials(count) + (count - k) * math.log(first) + k * math.log(last)
        logs[low * (count - k) + high * k] = own
        return logs
    total = np.zeros(1)
    for _ in range(count):
        total = log_convolve(total, chances)
    return total


@singledispatch
def row_score_law(prior: Distribution, scores: Sequence[Ints], which: Ints, i: int) -> Floats:
    """Return the joint distribution [v, sum] of record i and the sum of scores.

    The sum is over records of ``scores[which[i]][x_i]``. The general algorithm puts v before the
    digits of the sum, and uses the distribution of this longer sum.
    """
    shape = len(scores[which[i]]), largest_sum(scores, which) + 1
    law = score_law(prior, *_marked(scores, which, i))
    return np.pad(law, (0, math.prod(shape) - len(law))).reshape(shape)


@singledispatch
def log_row_score_law(prior: Distribution, scores: Sequence[Ints], which: Ints, i: int) -> Floats:
    """Return the logs of :func:`row_score_law`, -inf only if impossible."""
    shape = len(scores[which[i]]), largest_sum(scores, which) + 1
    logs = log_score_law(prior, *_marked(scores, which, i))
    return np.pad(logs, (0, math.prod(shape) - len(logs)), constant_values=-math.inf).reshape(shape)


def _marked(scores: Sequence[Ints], which: Ints, i: int) -> tuple[list[Ints], Ints]:
    """Return scores under which record i adds its value times the number of sums."""
    own = scores[which[i]]
    marked = own + np.arange(len(own)) * (largest_sum(scores, which) + 1)
    kinds = which.copy()
    kinds[i] = len(scores)
    return [*scores, marked], kinds


@row_score_law.register
def _exchangeable_row_score_law(
    prior: Exchangeable, scores: Sequence[Ints], which: Ints, i: int
) -> Floats:
    """Use the share of records that hold each value, type by type. Cost O(types m).

    For records with different scores, use the sums of the others, whose orders are equally likely.
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
    """Use the share of records that hold each value, type by type. Cost O(types m)."""
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
    """Return log-probabilities of the others' counts together with each value of a record."""
    n, m = prior.space.n, prior.space.sizes[0]
    shares = without_one(np.ones(prior.type_weights.shape) / n)
    parts = []
    for v, share in enumerate(shares):
        ahead = tuple(slice(1, None) if a == v - 1 else slice(0, n) for a in range(m - 1))
        with np.errstate(divide="ignore"):
            parts.append(np.asarray(prior.log_weights[ahead] + np.log(share)))
    return parts


def _shares(prior: Exchangeable, inside: np.ndarray) -> Floats:
    """Return the share of records that hold each value, [v, type]."""
    return np.asarray(prior.counts[:, inside] / prior.space.n)


@singledispatch
def group_score_law(
    prior: Distribution, scores: Sequence[Ints], which: Ints, group: Sequence[int]
) -> Floats:
    """Return the joint distribution [setting, sum] of a group of records and the sum of scores.

    Settings of the group are in C order. The general algorithm puts the number of the setting
    before the digits of the sum.
    """
    width, marked, kinds = largest_sum(scores, which) + 1, list(scores), which.copy()
    digit, settings = width, 1
    for i in reversed(group):
        own = scores[which[i]]
        kinds[i] = len(marked)
        marked.append(own + np.arange(len(own)) * digit)
        digit, settings = digit * len(own), settings * len(own)
    law = score_law(prior, marked, kinds)
    return np.pad(law, (0, settings * width - len(law))).reshape(settings, width)


@group_score_law.register
def _product_group_score_law(
    prior: Product, scores: Sequence[Ints], which: Ints, group: Sequence[int]
) -> Floats:
    """Use the sum of the other records once, shifted by the group's own sum."""
    rest = np.delete(np.arange(prior.space.n), group)
    others = np.ones(1)
    if len(rest):
        others = score_law(prior.part(rest), scores, which[rest])
    own = sums([scores[kind] for kind in which[list(group)]], np.arange(len(group)))
    width = largest_sum(scores, which) + 1
    check.fits(len(own) * width, "the joint law of a group and a sum", "use a smaller group")
    return placed(prior.part(group).pmf()[:, None] * others, own, width)


@group_score_law.register
def _exchangeable_group_score_law(
    prior: Exchangeable, scores: Sequence[Ints], which: Ints, group: Sequence[int]
) -> Floats:
    """Use the types of the other records, together with each setting of the group."""
    rest, n = np.delete(which, group), prior.space.n - len(group)
    own = sums([scores[kind] for kind in which[list(group)]], np.arange(len(group)))
    width = largest_sum(scores, which) + 1
    check.fits(len(own) * width, "the joint law of a group and a sum", "use a smaller group")
    joint = np.zeros((len(own), width))
    others, mapped = None, np.zeros(0, np.int64)
    if n and len(set(rest.tolist())) > 1:
        others = arranged_law(scores, rest)
    elif n:
        counts = np.indices((n + 1,) * (prior.space.sizes[0] - 1))
        mine = scores[rest[0]]
        mapped = np.tensordot(mine[1:] - mine[0], counts, 1) + n * mine[0]
    for row, shift, (_, part) in zip(
        joint, own.tolist(), group_parts(prior.type_weights, len(group)), strict=True
    ):
        if others is not None:
            law = np.asarray(np.tensordot(part, others, part.ndim))
        elif n:
            inside = part > 0.0
            law = np.asarray(np.bincount(mapped[inside], part[inside]), np.float64)
        else:
            law = part.reshape(-1)
        row[shift : shift + len(law)] = law
    return joint


@singledispatch
def row_score_laws(
    prior: Distribution, scores: Sequence[Ints], which: Ints, rows: Ints
) -> Iterator[Floats]:
    """Yield :func:`row_score_law` of several records."""
    for i in rows.tolist():
        yield row_score_law(prior, scores, which, i)


@row_score_laws.register
def _product_row_score_laws(
    prior: Product, scores: Sequence[Ints], which: Ints, rows: Ints
) -> Iterator[Floats]:
    """Convolve the sums of the records before and after each. Cost O(sums^2) per record."""
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
    """Convolve the sums before and after each value. Cost O(m sums^2) per record."""
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
    """Return the largest sum if distributions of the sums of all first and last records fit."""
    most = largest_sum(scores, which)
    work = prior.space.n * max(prior.space.sizes) * (most + 1)
    check.fits(work, "the distributions of the sums before each record", "ask for one row")
    return most


def placed(joint: Floats, by: Ints, length: int | None = None) -> Floats:
    """Return rows shifted to the right, each by its own number, at the given length."""
    width = joint.shape[1]
    out = np.zeros((len(joint), length or width + int(by.max())))
    for row, part, step in zip(out, joint, by.tolist(), strict=True):
        row[step : step + width] = part
    return out


class Odds(NamedTuple):
    """The largest ln p(x)/p(x') and a size, for pairs of answers that neighbours have.

    ``size`` bounds the sum of the absolute values of the added logarithms. The odds have an error
    of a few ulp of it.
    """

    first: Ints
    second: Ints
    log_odds: Floats
    size: Floats


_NONE = Odds(*np.empty((2, 0), np.int64), *np.empty((2, 0)))


def largest_odds(chunks: Iterable[Odds], answers: int) -> Odds:
    """Return every pair of answers once, with its largest odds and size."""
    first, second, odds, size = (np.concatenate(part) for part in zip(_NONE, *chunks, strict=True))
    codes, place = np.unique(first * answers + second, return_inverse=True)
    best, most = np.full(len(codes), -math.inf), np.zeros(len(codes))
    np.maximum.at(best, place, odds)
    np.maximum.at(most, place, size)
    return Odds(codes // answers, codes % answers, best, most)


@singledispatch
def score_odds(prior: Distribution, scores: Sequence[Ints], which: Ints) -> Iterable[Odds] | None:
    """Return the largest ln p(x)/p(x') for pairs of sums that neighbours x, x' have, p(x) > 0.

    A pair may occur several times, and both sums may be equal. None if the structure of the prior
    does not give them.
    """
    return None


@score_odds.register
def _product_score_odds(prior: Product, scores: Sequence[Ints], which: Ints) -> Iterator[Odds]:
    """Use the odds of single records, and the sums of the others. O(log n) for equal bits.

    Records with the same scores, whose distributions have the same zeros, leave the same sums to
    the others.
    """
    rows = zip(prior.assignment.tolist(), which.tolist(), strict=True)
    kinds: dict[tuple[int, bytes], Floats] = {}
    counts: Counter[tuple[int, bytes]] = Counter()
    for (k, kind), count in Counter(rows).items():
        law = prior.distinct[k]
        key = kind, (law > 0).tobytes()
        counts[key] += count
        kinds[key] = np.maximum(kinds.get(key, -math.inf), _ratios(law)[0])
    allowed = {key: scores[key[0]][np.frombuffer(key[1], bool)] for key in kinds}
    for key, ratios in kinds.items():
        rest = _reach([(allowed[k], c - (k == key)) for k, c in counts.items()])
        yield from _moves(rest, scores[key[0]], ratios, np.abs(ratios))


@score_odds.register
def _exchangeable_score_odds(
    prior: Exchangeable, scores: Sequence[Ints], which: Ints
) -> Iterator[Odds]:
    """Use a record given the counts of the others, and the possible sums of the others.

    Cost O(types m^2) if all records have the same scores.
    """
    lines, m, n = (
        prior.conditional_lines(np.arange(prior.space.n)),
        prior.space.sizes[0],
        prior.space.n,
    )
    types = [c for c in np.ndindex(*(n,) * (m - 1)) if sum(c) < n]
    for kind, own in enumerate(scores):
        if len(scores) == 1:
            place, ones = np.arange(len(lines)), np.array(types, np.int64)
            rest = (n - 1 - ones.sum(axis=1)) * own[0] + ones @ own[1:]
        else:
            reach = _reach_by_type(scores, np.delete(which, int(np.argmax(which == kind))))
            parts = [_members(reach[counts]) for counts in types]
            place = np.repeat(np.arange(len(lines)), [len(part) for part in parts])
            rest = np.concatenate(parts)
        for s, t in itertools.permutations(range(m), 2):
            alive = lines[place, s] > 0
            near = lines[place[alive]]
            ratios = log_ratio(near[:, s], near[:, t]).astype(np.float64)
            yield Odds(rest[alive] + own[s], rest[alive] + own[t], ratios, np.abs(ratios))


def _reach_by_type(scores: Sequence[Ints], which: Ints) -> dict[tuple[int, ...], int]:
    """Return the set of sums of some records for all counts of their values 1 .. m-1."""
    steps = [score.tolist() for score in scores]
    m = len(steps[0])
    reach = {(0,) * (m - 1): 1}
    for kind in which.tolist():
        grown: dict[tuple[int, ...], int] = {}
        for counts, sums in reach.items():
            for value, step in enumerate(steps[kind]):
                new = tuple(c + (v == value) for v, c in enumerate(counts, 1))
                grown[new] = grown.get(new, 0) | sums << step
        reach = grown
    return reach


@score_odds.register
def _markov_score_odds(prior: Markov, scores: Sequence[Ints], which: Ints) -> Iterator[Odds]:
    """Use a record given its two adjacent records, and the sums of the others.

    Cost O(n m^4 sums/64). Along the chain, ``before[a]`` is the set of sums of all records so far
    if the last one is a. ``open[kind, a]`` is the set for all records but the last, which follows
    a. ``after[kind, a, b]`` is the same if b came next, by the last record. State m means that
    there is no record before or after.
    """
    m = len(prior.initial)
    work = prior.space.n * m**4 * (largest_sum(scores, which) // 64 + 1)
    check.fits(work, "the search for reachable sums", "use fewer records", _WORK)
    steps = [np.flatnonzero(row).tolist() for row in prior.transition]
    starts = np.flatnonzero(prior.initial).tolist()
    before = [0] * m
    open_: dict[tuple[int, int], int] = {}
    after: dict[tuple[int, int, int], list[int]] = {}
    for i, kind in enumerate(which.tolist()):
        by = scores[kind].tolist()
        last, waiting = before, open_
        before = [0] * m
        if i == 0:
            open_ = {(kind, m): 1}
            for a in starts:
                before[a] = 1 << by[a]
            continue
        open_ = {(kind, a): sums for a, sums in enumerate(last) if sums}
        for a, sums in enumerate(last):
            for b in steps[a]:
                before[b] |= sums << by[b]
        for pair, paths in after.items():
            after[pair] = [0] * m
            for a, sums in enumerate(paths):
                for b in steps[a]:
                    after[pair][b] |= sums << by[b]
        for (kind_, a), sums in waiting.items():
            for b in range(m):
                after.setdefault((kind_, a, b), [0] * m)[b] |= sums << by[b]
    ends = {(kind, a, m): [sums] for (kind, a), sums in open_.items()}
    came = np.vstack([prior.transition, prior.initial])
    goes = np.hstack([prior.transition, np.ones((m, 1))])
    for (kind, a, b), paths in (after | ends).items():
        rest = 0
        for sums in paths:
            rest |= sums
        if rest:
            yield from _moves(rest, scores[kind], *_ratios(came[a], goes[:, b]))


@singledispatch
def group_odds(
    prior: Distribution, scores: Sequence[Ints], which: Ints, k: int
) -> Iterable[Odds] | None:
    """Return :func:`score_odds` of databases that differ in up to k records."""
    return None


@group_odds.register
def _product_group_odds(
    prior: Product, scores: Sequence[Ints], which: Ints, k: int
) -> Iterator[Odds]:
    """Choose the records that change, one after the other, by the change of both sums.

    Records are of one kind if they have the same scores and zeros. Of each kind, and for each
    change of a value, only the k records with the largest odds matter.
    """
    m = max(prior.space.sizes)
    kinds: dict[tuple[int, bytes], list[Floats]] = {}
    rows = zip(prior.assignment.tolist(), which.tolist(), strict=True)
    counts: Counter[tuple[int, bytes]] = Counter()
    for (law, kind), count in Counter(rows).items():
        key = kind, (prior.distinct[law] > 0).tobytes()
        counts[key] += count
        kinds.setdefault(key, []).extend([_ratios(prior.distinct[law])[0]] * min(count, k))
    # By numbers of changed records of each kind, and both sums of these: the largest odds.
    found: dict[tuple[tuple[int, ...], int, int], tuple[float, float]] = {
        ((0,) * len(kinds), 0, 0): (0.0, 0.0)
    }
    for number, (key, ratios) in enumerate(kinds.items()):
        own = scores[key[0]].tolist()
        for ratio in _largest(ratios, k):
            moves = [
                (own[s], own[t], float(ratio[s, t]))
                for s, t in zip(*np.nonzero(ratio > -math.inf), strict=True)
                if s != t
            ]
            check.fits(len(found) * m * m, "the list of a group's odds", "use a smaller group")
            for (used, a, b), (odds, size) in list(found.items()):
                if sum(used) == k:
                    continue
                more = (*used[:number], used[number] + 1, *used[number + 1 :])
                for c, d, gain in moves:
                    state = more, a + c, b + d
                    if odds + gain > found.get(state, (-math.inf, 0.0))[0]:
                        found[state] = odds + gain, size + abs(gain)
    allowed = {key: scores[key[0]][np.frombuffer(key[1], bool)] for key in kinds}
    reach: dict[tuple[int, ...], Ints] = {}
    for (used, a, b), (odds, size) in found.items():
        if not any(used):
            continue
        if used not in reach:
            left = zip(kinds, used, strict=True)
            reach[used] = _members(_reach([(allowed[key], counts[key] - c) for key, c in left]))
        rest = reach[used]
        ends = np.full(len(rest), odds), np.full(len(rest), size * (1.0 + 0.25 * k))
        yield Odds(rest + a, rest + b, *ends)


def _largest(ratios: list[Floats], k: int) -> list[Floats]:
    """Return the records that have one of the k largest odds of some change."""
    if len(ratios) <= k:
        return ratios
    table = np.stack(ratios).reshape(len(ratios), -1)
    return [ratios[i] for i in np.unique(np.argsort(-table, axis=0, kind="stable")[:k]).tolist()]


@group_odds.register
def _exchangeable_group_odds(
    prior: Exchangeable, scores: Sequence[Ints], which: Ints, k: int
) -> Iterator[Odds] | None:
    """Compare types that differ in up to k records, if all records have the same scores."""
    return _type_odds(prior, scores[0], k) if len(scores) == 1 else None


def _type_odds(prior: Exchangeable, scores: Ints, k: int) -> Iterator[Odds]:
    inside, weights = prior.inside, prior.type_weights
    counts, logs = prior.counts[:, inside].T, prior.log_per_database[inside]
    place = np.full(weights.shape, -1, dtype=np.int64)
    place[inside] = np.arange(len(counts))
    single, total = weights[inside], counts @ scores
    moves = [
        np.array(move)
        for move in itertools.product(range(-k, k + 1), repeat=counts.shape[1])
        if sum(move) == 0 and sum(max(step, 0) for step in move) <= k
    ]
    work = len(moves) * len(counts)
    check.fits(work, "the list of pairs of types", "use a smaller group or fewer rows")
    for move in moves:
        held = counts + move
        x = np.flatnonzero((held >= 0).all(axis=1) & (logs > -math.inf))
        z = place[tuple(held[x, 1:].T)]
        # The numbers of databases of both types have few factors that are not in common.
        factors = np.zeros(len(x))
        size = np.zeros(len(x))
        for step, own in zip(move.tolist(), counts[x].T, strict=True):
            sign, start = (1.0, own) if step < 0 else (-1.0, own + step)
            for j in range(abs(step)):
                part = np.log(start - j)
                factors, size = factors + sign * part, size + part
        plain = np.minimum(single[x], single[z]) > TINY
        plain |= (logs[z] == -math.inf) & (single[x] > TINY)
        given = log_ratio(np.where(plain, single[x], 1.0), np.where(plain, single[z], 1.0))
        with np.errstate(invalid="ignore"):
            odds = np.where(plain, given + factors, logs[x] - logs[z])
        rare = np.abs(logs[x]) + np.where(logs[z] > -math.inf, np.abs(logs[z]), 0.0)
        sizes = np.where(plain, np.abs(given) + size, rare * (prior.space.n + 1))
        yield Odds(total[x], total[z], odds, sizes * (1.0 + 0.25 * k))


@group_odds.register
def _markov_group_odds(
    prior: Markov, scores: Sequence[Ints], which: Ints, k: int
) -> Iterator[Odds]:
    """Extend two databases record by record: the largest odds by both sums and both last values.

    Cost O(n m^4 k^2 sums) for scores of 0 and 1.
    """
    m, n = len(prior.initial), prior.space.n
    spans = [int(score.max() - score.min()) for score in scores]
    far = k * max(spans)
    most = largest_sum(scores, which) + 1
    check.fits(
        n * m**4 * (k + 1) * (2 * far + 1) * most,
        "the search for reachable sums",
        "use fewer rows or a smaller group",
        _WORK,
    )
    came = np.vstack([prior.transition, prior.initial])
    ratios = np.full((m + 1, m + 1, m, m), -math.inf)  # ln came[a, c]/came[b, d]
    for a, c in zip(*np.nonzero(came > 0.0), strict=True):
        ratios[a, :, c] = log_ratio(np.full(came.shape, came[a, c]), came)
    # By last values, number of changed records, difference of the sums and the first sum.
    best = {(m, m): np.full((k + 1, 2 * far + 1, most), -math.inf)}
    best[m, m][0, far, 0] = 0.0
    for kind in which.tolist():
        own, last, best = scores[kind].tolist(), best, {}
        for c, d in itertools.product(range(m), repeat=2):
            joint = np.full((k + 1, 2 * far + 1, most), -math.inf)
            for (a, b), odds in last.items():
                ratio = ratios[a, b, c, d]
                if ratio == math.inf:  # the second database is impossible
                    joint[odds > -math.inf] = math.inf
                elif ratio > -math.inf:
                    np.maximum(joint, odds + ratio, out=joint)
            moved, step = int(c != d), own[d] - own[c]
            shifted_odds = np.full_like(joint, -math.inf)
            low, high = max(step, 0), min(step, 0)
            shifted_odds[moved:, low : 2 * far + 1 + high, own[c] :] = joint[
                : k + 1 - moved, -high : 2 * far + 1 - low, : most - own[c]
            ]
            best[c, d] = shifted_odds
    whole = np.maximum.reduce(list(best.values()))[1:].max(axis=0)
    offset, first = np.nonzero(whole > -math.inf)
    finite = np.abs(ratios[np.isfinite(ratios)]).max(initial=0.0)
    size = np.full(len(first), 2.0 * k * finite * (1.0 + 0.5 * k))
    yield Odds(first, first + offset - far, whole[offset, first], size)


def _ratios(*factors: Floats) -> tuple[Floats, Floats]:
    """Return ln p[s]/p[t] for the product p of some factors, -inf if p[s] = 0, and sizes."""
    m = len(factors[0])
    ratios, size = np.full((m, m), -math.inf), np.zeros((m, m))
    for s in np.flatnonzero(np.all(np.stack(factors) > 0, axis=0)):
        parts = np.stack([log_ratio(law[s], law) for law in factors])
        ratios[s], size[s] = parts.sum(axis=0), np.abs(parts).sum(axis=0)
    return ratios, size


def _moves(rest: int, scores: Ints, ratios: Floats, size: Floats) -> Iterator[Odds]:
    """Yield the odds of one record that changes its value, by the sums of the others."""
    sums = _members(rest)
    for s, t in zip(*np.nonzero(ratios > -math.inf), strict=True):
        if s != t:
            odds, off = np.full(len(sums), ratios[s, t]), np.full(len(sums), size[s, t])
            yield Odds(sums + scores[s], sums + scores[t], odds, off)


def _reach(parts: Iterable[tuple[Ints, int]]) -> int:
    """Return the set of sums of some records, from their possible scores and counts."""
    sums = 1
    for scores, count in parts:
        steps = np.unique(scores)
        gaps = np.unique(np.diff(steps))
        if len(gaps) <= 1:  # sums of equally spaced scores are equally spaced
            sums <<= int(steps[0]) * count
            covered, whole = 1, (len(steps) - 1) * count + 1
            while covered < whole:
                more = min(covered, whole - covered)
                sums |= sums << int(gaps[0]) * more
                covered += more
            continue
        for _ in range(count):
            last, sums = sums, 0
            for step in steps.tolist():
                sums |= last << step
    return sums


def _members(sums: int) -> Ints:
    """Return the members of a set of sums, in order."""
    octets = np.frombuffer(sums.to_bytes((sums.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little"))


@singledispatch
def score_surprise(prior: Distribution, scores: Sequence[Ints], which: Ints) -> Floats:
    """Return the sum of p(x) ln p(x) over the databases x with each sum of scores.

    The sum is over records of ``scores[which[i]][x_i]``. The general algorithm uses the vector of
    the prior. Cost O(N).
    """
    own = surprise(prior.as_dense("the entropy of databases behind a sum").probabilities())
    return np.asarray(np.bincount(sums(scores, which), own, largest_sum(scores, which) + 1))


@score_surprise.register
def _product_score_surprise(prior: Product, scores: Sequence[Ints], which: Ints) -> Floats:
    """Add record by record: ln p(x) is a sum of terms of one sign. Cost O(n m sums)."""
    laws = [(law / law.sum(), surprise(law)) for law in prior.distinct]
    mass, total = np.zeros((2, largest_sum(scores, which) + 1))
    mass[0], end = 1.0, 1
    for k, kind in zip(prior.assignment.tolist(), which.tolist(), strict=True):
        last, own = mass[:end].copy(), total[:end].copy()
        mass[:end] = total[:end] = 0.0
        for step, p, q in zip(scores[kind].tolist(), *laws[k], strict=True):
            mass[step : step + end] += p * last
            total[step : step + end] += p * own + q * last
        end += int(scores[kind].max())
    return total


@score_surprise.register
def _exchangeable_score_surprise(
    prior: Exchangeable, scores: Sequence[Ints], which: Ints
) -> Floats:
    """Use the types of databases. Cost O(types) if all records have the same scores."""
    total, inside = type_sums(prior, scores[0])
    weights, most = prior.type_weights[inside], largest_sum(scores, which)
    own = surprise(weights) - weights / weights.sum() * prior.log_class_sizes[inside]
    if len(scores) > 1:
        return np.asarray(own @ arranged_law(scores, which)[inside])
    return np.asarray(np.bincount(total, own, most + 1))


@score_surprise.register
def _markov_score_surprise(prior: Markov, scores: Sequence[Ints], which: Ints) -> Floats:
    """Propagate mass and sum of p ln p by sum and last record. Cost O(n m^2 sums)."""
    m, T = len(prior.initial), prior.transition
    steps = (T / T.sum(axis=1, keepdims=True)).T
    bends = np.stack([surprise(row) for row in T]).T
    mass, total = np.zeros((2, m, largest_sum(scores, which) + 1))
    first = np.arange(m), scores[which[0]]
    mass[first], total[first] = prior.initial / prior.initial.sum(), surprise(prior.initial)
    for kind in which[1:].tolist():
        total = shifted(steps @ total + bends @ mass, scores[kind])
        mass = shifted(steps @ mass, scores[kind])
    return np.asarray(total.sum(axis=0))
