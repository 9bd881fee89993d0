"""Odds of neighbours behind the answers of a sum, in the structure of the prior.

The posterior odds of neighbours x, x' are p(x)/p(x') times a ratio of output laws that depends
on their two answers only. So for every pair of answers the largest p(x)/p(x') suffices. It depends
on the rows beside the one that changes, and the others matter only by the sums that they can have.
Sets of sums are the bits of one integer.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels.queries.laws import largest_sum
from fastpriv.priors import Distribution, Exchangeable, Markov, Product

#: Most words that a search for reachable sums goes through.
_WORK = 1 << 34


class Odds(NamedTuple):
    """For pairs of answers that neighbours have: the largest ln p(x)/p(x'), and a size.

    ``size`` bounds the sum of the absolute values of the logarithms that were added, of which the
    odds have an error of a few ulp.
    """

    first: Ints
    second: Ints
    log_odds: Floats
    size: Floats


_NONE = Odds(*np.empty((2, 0), np.int64), *np.empty((2, 0)))


def largest_odds(chunks: Iterable[Odds], answers: int) -> Odds:
    """Take every pair of answers once, with its largest odds and size."""
    first, second, odds, size = (np.concatenate(part) for part in zip(_NONE, *chunks, strict=True))
    codes, place = np.unique(first * answers + second, return_inverse=True)
    best, most = np.full(len(codes), -math.inf), np.zeros(len(codes))
    np.maximum.at(best, place, odds)
    np.maximum.at(most, place, size)
    return Odds(codes // answers, codes % answers, best, most)


@singledispatch
def score_odds(prior: Distribution, scores: Sequence[Ints], which: Ints) -> Iterable[Odds] | None:
    """Return the largest ln p(x)/p(x') for pairs of sums that neighbours x, x' have, p(x) > 0.

    A pair may come up several times, and both sums may be equal. None where the prior has no
    structure to take them from.
    """
    return None


@score_odds.register
def _product_score_odds(prior: Product, scores: Sequence[Ints], which: Ints) -> Iterator[Odds]:
    """Take the odds of single rows, and the sums of the others. Cost O(log n) for equal bits.

    Rows of the same scores whose laws have the same zeros leave the same sums to the others.
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
    """Take a row given the counts of the others, and the sums that these can have.

    Cost O(types m^2) where all rows have the same scores.
    """
    lines, m, n = prior.line_table, prior.space.sizes[0], prior.space.n
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
    """Return the set of sums of some rows for all counts of their values 1 .. m-1."""
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
    """Take a row given its two neighbours, and the sums of the others. Cost O(n m^4 sums/64).

    Along the chain, ``before[a]`` is the set of sums of all rows so far, the last one being a,
    ``open[kind, a]`` that of all rows but the last, which follows a, and ``after[kind, a, b]`` the
    same when b came next, by the last row. The states m stand for no row before and none behind.
    """
    m = len(prior.initial)
    work = prior.space.n * m**4 * (largest_sum(scores, which) // 64 + 1)
    check.fits(work, "the search for reachable sums", "use fewer rows", _WORK)
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


def _ratios(*factors: Floats) -> tuple[Floats, Floats]:
    """Return ln p[s]/p[t] for the product p of some laws, -inf where p[s] = 0, and sizes."""
    m = len(factors[0])
    ratios, size = np.full((m, m), -math.inf), np.zeros((m, m))
    for s in np.flatnonzero(np.all(np.stack(factors) > 0, axis=0)):
        parts = np.stack([log_ratio(law[s], law) for law in factors])
        ratios[s], size[s] = parts.sum(axis=0), np.abs(parts).sum(axis=0)
    return ratios, size


def _moves(rest: int, scores: Ints, ratios: Floats, size: Floats) -> Iterator[Odds]:
    """Yield the odds of one row that moves from each value to each other, by the rest's sums."""
    sums = _members(rest)
    for s, t in zip(*np.nonzero(ratios > -math.inf), strict=True):
        if s != t:
            odds, off = np.full(len(sums), ratios[s, t]), np.full(len(sums), size[s, t])
            yield Odds(sums + scores[s], sums + scores[t], odds, off)


def _reach(parts: Iterable[tuple[Ints, int]]) -> int:
    """Return the set of sums of some rows, from their possible scores and numbers of rows."""
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
