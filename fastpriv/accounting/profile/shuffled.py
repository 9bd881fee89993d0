"""Outputs of many people in a random order: bounds by blankets, and what databases attain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, lru_cache, partial
from itertools import permutations, product
from typing import Any

import numpy as np

from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.blankets import Enough, Triple, refined, triple_of
from fastpriv.accounting.profile.crossing import lost
from fastpriv.accounting.profile.envelopes import (
    curve_above,
    curve_below,
    deviation,
    levels,
    lower_of,
)
from fastpriv.accounting.profile.lopsided import Levelwise
from fastpriv.accounting.profile.measures import Measure

#: Levels beyond which e^t is not computed with, and measures have no losses.
_FAR, _REACH = 690.0, 60.0
#: Relative width at which bounds are good, and that of a level.
_GOOD, _LEVEL = 1e-9, 1e-10
#: Relative width of points of a measure, and how many in a deviation: where the blanket is nearly
#: attained, and elsewhere. The first are taken up to this relative gap.
_CLOSE, _WIDE, _GAP = (1e-5, 64), (1e-4, 16), 0.01
#: Triples from below that are computed; the others look less promising.
_TRIED = 24
#: Reference probabilities that are taken for zero.
_TINY = 1e-100

#: Values of the two neighbours that differ, and of everybody else.
Site = tuple[int, int, int]


class Shuffled(Levelwise):
    """n people's outputs of a local randomiser, in a random order.

    Parameters
    ----------
    laws : 2-D array
        The local randomiser.
    n : int
        Number of people.
    alike : bool
        Whether values can be renamed without a change, as in k-ary response.
    """

    def __init__(self, laws: Floats, n: int, alike: bool) -> None:
        super().__init__(("shuffled", tuple(map(tuple, laws.tolist())), n, alike))
        self._laws, self.n, self.alike = laws, n, alike

    @cached_property
    def symmetric(self) -> bool:
        """Whether both orders of the neighbours have the same measures.

        They have, but for the lower one where histograms are listed.
        """
        return not self.triple(*self.site).listable(self.n)

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same law."""
        return bool((self._laws == self._laws[0]).all())

    @property
    def asked_of(self) -> tuple[Any, ...]:
        """Which values the neighbours of the lower measure have, and of how many.

        The same for releases that two databases attain together.
        """
        x, other, rest = self.site
        return len(self._laws), rest in (x, other) if self.alike else self.site

    def measure(self, flipped: bool, up: bool) -> Measure:
        """Measure of one order, from above or below."""
        if up:
            return _above(self)
        x, other, rest = self.site
        if self.symmetric:
            return _below(self)
        return _listed(self, (other, x, rest) if flipped else self.site)

    @cached_property
    def top(self) -> float:
        """Largest ln W(y|x)/W(y|x'), infinite where an output is possible under one value only."""
        shown = self._laws.max(axis=0) > 0.0
        high, low = self._laws.max(axis=0)[shown], self._laws.min(axis=0)[shown]
        return float(log_ratio(high, low).max()) if low.all() else math.inf

    @cached_property
    def top_bounds(self) -> tuple[float, float]:
        """Lower and upper bounds on ``top``, for the rows as they are and divided by their sums."""
        if self.top in (0.0, math.inf):
            return self.top, self.top
        off = max(abs(math.fsum((-1.0, *law))) for law in self._laws.tolist())
        slack = 2.0 * off + 8.0 * ULP
        return max(lowered(self.top, 16.0) - slack, 0.0), raised(self.top + slack, 16.0)

    @cached_property
    def _blankets(self) -> list[Triple]:
        blanket = self._laws.min(axis=0)
        pairs = permutations(range(len(self._laws)), 2)
        return _distinct(self._triple(x, other, blanket) for x, other in pairs)

    @cached_property
    def _sites(self) -> dict[Site, Triple]:
        """Databases of one person and others who are all alike, a few of each kind."""
        k = range(len(self._laws))
        return {
            (x, other, rest): self._triple(x, other, self._laws[rest])
            for (x, other), rest in product(permutations(k, 2), k)
        }

    def triple(self, x: int, other: int, rest: int) -> Triple:
        """Two neighbouring databases."""
        return self._sites[x, other, rest]

    @cached_property
    def _databases(self) -> list[Triple]:
        return _distinct(iter(self._sites.values()))

    def _triple(self, x: int, other: int, q: Floats) -> Triple:
        # A smaller blanket is a blanket. Laws of databases are moved by n times what is lost.
        kept = np.where(q < _TINY, 0.0, q)
        relative = (self._laws.shape[1] + 24.0) * ULP
        return triple_of(self._laws[x], self._laws[other], kept, relative, float((q - kept).sum()))

    @cached_property
    def _middle(self) -> float:
        """A level at which delta is about a thousandth of its most."""
        return min(3.0 * deviation(self.upper(0.0, _within(_WIDE[0]))), 0.5 * self.top, _REACH)

    @cached_property
    def site(self) -> Site:
        """The databases that are hardest to hide there."""
        return max(self._sites, key=lambda site: _likely(self._sites[site], self._middle, self.n))

    @cached_property
    def points(self) -> tuple[float, Floats]:
        """Relative width of the points that measures are made of, and their levels."""
        t, within = self._middle, _within(_WIDE[0])
        gap = 1.0 - self.lower(t, within) / max(self.upper(t, within), 1e-300)
        width, fine = _CLOSE if gap < _GAP else _WIDE
        return width, levels(self.upper(0.0, within), min(self.top, _REACH), fine)

    # The curve of one release.

    @cached_property
    def always(self) -> float:
        """Limit of the lower end for large levels."""
        limits = (triple.always(self.n) for triple in self._databases if triple.lost == 0.0)
        return max(limits, default=0.0)

    def delta(self, t: float) -> tuple[float, float]:
        """Bounds on delta(t)."""
        if t >= self.top_bounds[1]:
            return 0.0, 0.0
        low = self.always
        if t <= _FAR:
            low = max(low, self.lower(t, _within(_GOOD)))
        return low, self.upper(min(t, _FAR), _within(_GOOD))

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Bounds on the least level at a delta."""
        if delta >= 1.0:
            return 0.0, 0.0
        if delta == 0.0:
            return self.top_bounds
        start = min(self.top, _FAR)

        def decided(low: float, high: float) -> bool:
            return high <= delta or low > delta or high - low <= 0.1 * _GOOD * high

        if self.always > delta:
            return math.inf, math.inf
        low, _ = lost(lambda t: self.lower(t, decided) > delta, start, _LEVEL)
        if start < self.top and self.upper(start, decided) > delta:
            return low, math.inf
        _, high = lost(lambda t: self.upper(t, decided) > delta, start, _LEVEL)
        return low, min(high, self.top_bounds[1])

    def upper(self, t: float, enough: Enough) -> float:
        """Upper bound on delta(t), by blankets."""
        best = 0.0
        parts = [(triple.shown(t), triple.excess(t, self.n)) for triple in self._blankets]
        parts.sort(key=lambda part: part[0] + (part[1].about if part[1] else 0.0), reverse=True)
        for shown, excess in parts:
            if excess is None or shown + excess.chernoff > best:
                best = max(best, refined(excess, shown, _or_below(best, enough))[1])
        return min(best, 1.0)

    def lower(self, t: float, enough: Enough) -> float:
        """Lower bound on delta(t): what two neighbouring databases attain."""
        parts = [(triple, triple.shown(t), triple.excess(t, self.n)) for triple in self._databases]
        parts.sort(key=lambda part: part[1] + (part[2].about if part[2] else 0.0), reverse=True)
        best = 0.0
        for triple, shown, excess in parts[:_TRIED]:
            if excess is not None and shown + excess.chernoff <= best:
                continue
            low, _ = refined(excess, shown, _or_below(best, enough))
            best = max(best, low - triple.blurred(t, self.n))
        return best


@lru_cache(maxsize=16)
def _above(part: Shuffled) -> Measure:
    """Measure of the blankets: their curve at points, joined."""
    width, at = part.points
    return curve_above(lambda t: part.upper(t, _within(width)), at, part.top)


@lru_cache(maxsize=16)
def _listed(part: Shuffled, site: Site) -> Measure:
    """Measure of two neighbouring databases, whose histograms are few."""
    return part.triple(*site).measure(part.n)


@lru_cache(maxsize=16)
def _below(part: Shuffled) -> Measure:
    """Measure of two neighbouring databases, below their curves in both orders."""
    x, other, rest = part.site
    width, at = part.points
    both = _distinct(part.triple(*site) for site in ((x, other, rest), (other, x, rest)))
    curves = [
        lower_of(partial(triple.bounds, n=part.n, enough=_within(width)), at, part.top)
        for triple in both
    ]
    return curve_below(
        curves, min(0.0 if triple.lost else triple.always(part.n) for triple in both)
    )


def _within(width: float) -> Enough:
    return lambda low, high: high - low <= width * high


def _or_below(best: float, enough: Enough) -> Enough:
    """Whether it is enough, or known to be below another value."""
    return lambda low, high: high <= best or enough(low, high)


def _likely(triple: Triple, t: float, n: int) -> float:
    excess = triple.excess(t, n)
    return triple.shown(t) + (excess.about if excess else 0.0)


def _distinct(triples: Iterator[Triple]) -> list[Triple]:
    return list({triple.key: triple for triple in triples}.values())
