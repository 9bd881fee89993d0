"""Sums of rows with different scores when all arrangements of given values are equally likely.

If t_v rows hold value v and all their orders are equally likely, the last of j rows holds v with
chance t_v / j. Without it, the same is true of the other rows. So

    P(sum = s | t) = sum_v t_v / j * P(sum of the others = s - score(v) | t - e_v).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints

#: Most terms of the recursion, and entries of its table.
_TERMS, _ENTRIES = 1 << 34, 1 << 24
#: Least logarithm of a chance in the table, so that none underflows.
_LEAST = -700.0


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
    advice = "use fewer rows, or the same scores for all rows"
    check.fits(size, "the table of sums by counts of values", advice, _ENTRIES)
    check.fits(n * m * size, "the work for the law of a sum", advice, _TERMS)
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
