"""Posterior odds of neighbours, from the odds of the prior behind answers or types."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import round_up
from fastpriv._core.validation import Floats
from fastpriv.channels.queries.odds import Odds
from fastpriv.channels.queries.sums import Histogram
from fastpriv.channels.types import TypeChannel
from fastpriv.priors import Distribution

#: How many entries of pairs of answers are compared at a time.
_BLOCK = 1 << 20


def odds_level(laws: Floats, odds: Odds) -> float:
    """Return the largest ln laws[a, y]/laws[b, y] + ln p(x)/p(x') over y and answers a, b."""
    worst, step = 0.0, max(1, _BLOCK // laws.shape[1])
    for start in range(0, len(odds.first), step):
        first, second, prior, size = (part[start : start + step] for part in odds)
        seen = laws[first] > 0
        ratios = log_ratio(np.where(seen, laws[first], 1.0), np.where(seen, laws[second], 1.0))
        kernel = np.where(seen, ratios, -math.inf).max(axis=1)
        levels = kernel + prior
        # Two logarithms of opposite signs leave the error of the larger one.
        levels += 2.0**-50 * np.where(levels < math.inf, np.abs(kernel) + size, 0.0)
        worst = max(worst, float(levels.max(initial=0.0)))
    return round_up(worst)


class TypeOdds(NamedTuple):
    """Largest ln p(x)/p(x') over neighbours of two types, and the size of its parts."""

    log_odds: Floats
    size: Floats


def type_odds(channel: TypeChannel, prior: Distribution) -> TypeOdds | None:
    """Return the odds of neighbours by their types; None where only a list would tell them."""
    query = Histogram(channel.space.n, channel.space.sizes[0])
    odds = query.odds(prior)
    if odds is None:
        return None
    place = {kind[0]: j for j, kind in enumerate(channel.types.counts)}
    number = np.array([place[tuple(counts)] for counts in query.counts.tolist()])
    table = TypeOdds(np.full((len(place),) * 2, -math.inf), np.zeros((len(place),) * 2))
    pairs = number[odds.first], number[odds.second]
    table.log_odds[pairs], table.size[pairs] = odds.log_odds, odds.size
    return table


def likeliest_move(channel: TypeChannel, odds: TypeOdds) -> tuple[float, int]:
    """Return the largest ln of posterior odds over moves of one row, and its place.

    Every output y of a type is possible beside any two neighbours, up to the order of its rows. So
    the odds of neighbours matter by their types only.
    """
    stack, entry = channel.stack, channel.entry
    kinds = stack.row[stack.source], stack.row[stack.target]
    seen = np.flatnonzero((entry[stack.source] > 0) & (odds.log_odds[kinds] > -math.inf))
    if not len(seen):
        return 0.0, 0
    ratios = log_ratio(entry[stack.source[seen]], entry[stack.target[seen]])
    own, size = (table[kinds][seen] for table in odds)
    levels = ratios + own
    # Two logarithms of opposite signs leave the error of the larger one.
    levels += 2.0**-50 * np.where(levels < math.inf, np.abs(ratios) + size, 0.0)
    at = int(levels.argmax())
    return max(0.0, float(levels[at])), int(seen[at])
