"""delta(t) of releases in one order of their neighbours, bounded from both sides."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any

import numpy as np

from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv.accounting.profile.blurred import Blurred, blurred_line
from fastpriv.accounting.profile.bounds import TooMany
from fastpriv.accounting.profile.contour import (
    Line,
    Terms,
    chernoff,
    cumulant,
    dense_line,
    line,
    tilt_at,
    tilt_for,
)
from fastpriv.accounting.profile.crossing import halved
from fastpriv.accounting.profile.gridded import Gridded
from fastpriv.accounting.profile.jumps import jump_line
from fastpriv.accounting.profile.measures import Releases
from fastpriv.accounting.profile.mixtures import Mixtures
from fastpriv.accounting.profile.nodes import TooCostly, in_range
from fastpriv.accounting.profile.single import closed, is_closed, single
from fastpriv.accounting.profile.terms import Finite, Ordered
from fastpriv.errors import TooLarge

#: Deltas from which on the saddle point is not looked for by delta itself.
_LARGE = 0.05
#: Relative widths at which other lines are tried, and at which the grid is asked too.
_WIDE, _WIDER = 4e-10, 2e-7
#: Lines that are kept for the next question.
_KEPT = 8
#: Standard deviations from the saddle point within which a line is good.
_NEAR = 1.0
#: Levels beyond which finite losses are not looked for: noise is at least 1e-6.
_FAR = 1e300
#: Levels beyond this one are asked for with Chernoff's bound first.
_LONG = 1e4
#: Deltas below this are not asked for but 0; what underflow can hide is below it.
_TINY = 1e-305
#: Least delta that is told from zero.
_LEAST = math.log(1e-320)


class Side:
    """Releases of continuous pairs in one order, and measures composed with them.

    Parameters
    ----------
    pairs : list of (Ordered, int)
        Continuous pairs, and how many releases of each.
    finite : releases
        Measures on finitely many losses.
    """

    def __init__(self, pairs: list[tuple[Ordered, int]], finite: Releases) -> None:
        self._pairs, self._finite = pairs, list(finite)
        self._terms: Terms = [*pairs, *((Finite(measure), k) for measure, k in finite)]
        self._lines: OrderedDict[tuple[float, Any], Line | Blurred | None] = OrderedDict()
        self._grids: dict[float, Gridded | None] = {}
        self._closed = is_closed(pairs) and not self._finite
        # Masses of measures are off by a factor, and losses by a sum.
        self._slack = math.fsum(k * (m.error + 8.0 * ULP) for m, k in self._finite)
        self._moved = math.fsum(k * m.off for m, k in self._finite)

    @cached_property
    def infinite(self) -> tuple[float, float]:
        """Chance that some loss is infinite, from below and above."""
        low = high = 0.0
        for measure, k in self._finite:
            if measure.infinite >= 1.0:
                return 1.0, 1.0
            part = -math.expm1(k * math.log1p(-measure.infinite))
            low += lowered(part * (1.0 - low), 16.0)
            high += raised(part * (1.0 - high), 16.0)
        return lowered(low, 4.0), min(raised(high, 4.0), 1.0)

    @cached_property
    def top(self) -> tuple[float, float]:
        """Largest finite loss of all releases together, rounded down and up."""
        tops = [k * term.top() for term, k in self._terms]
        if math.inf in tops:
            return math.inf, math.inf
        total, slack = math.fsum(tops), 8.0 * ULP * math.fsum(map(abs, tops))
        return max(total - slack - 2.0 * self._moved, 0.0), max(total + slack, 0.0)

    def delta(self, t: float) -> tuple[float, float]:
        """Lower and upper bounds on delta(t)."""
        low, high = self.infinite
        if high >= 1.0 or t >= self.top[1]:
            return low, high
        if t > _LONG and (t > _FAR or self.at_most(t) - high < 1e-320):
            return low, min(high + 2e-323, 1.0)  # what is finite is less than any double
        if self._closed:
            with suppress(NotImplementedError, TooCostly), in_range():
                return closed(*self._pairs[0], t)
        try:
            with in_range():
                result = self._at(tilt_at(self._terms, t), t)
        except TooCostly:
            return low, 1.0
        return low + lowered(result[0], 2.0), min(raised(high + result[1], 2.0), 1.0)

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Lower and upper bounds on the least t >= 0 with delta(t) <= delta."""
        low, high = self.infinite
        if delta >= 1.0:
            return 0.0, 0.0
        if low > delta:
            return math.inf, math.inf
        if delta < _TINY:
            return self.top[0] if delta == 0.0 else 0.0, math.inf if high > delta else self.top[1]
        if high == 0.0 and self._apart() <= delta:
            return 0.0, 0.0
        try:
            with in_range():
                if high >= delta:
                    return self._crossing(delta, 0.5 * delta)[0], math.inf
                result = self._crossing(delta, delta - high)
        except TooCostly:
            result = 0.0, math.inf
        if high >= delta:
            return 0.0, math.inf
        upper = min(result[1], self.top[1])
        if upper == math.inf:  # no line serves: Chernoff's bound does
            with suppress(TooCostly), in_range():
                start = max(cumulant(self._terms, 1.0)[1], 1.0)
                upper = _last(lambda t: self.at_most(t) > delta, start)[1]
        return min(result[0], upper), upper

    def _apart(self) -> float:
        """Upper bound on delta(0) by the sum over releases, at little cost where they are rare."""
        if self._finite:
            return 1.0
        try:
            with in_range():
                parts = [k * single(one, 0.0)[1] for one, k in self._pairs]
        except (NotImplementedError, TooCostly):
            return 1.0
        return math.fsum(parts) * (1.0 + 4.0 * ULP)

    def at_most(self, t: float) -> float:
        """Upper bound on delta(t) at little cost: Chernoff's, proved."""
        high = self.infinite[1]
        if high >= 1.0 or t >= self.top[1]:
            return high
        try:
            with in_range():
                at = tilt_at(self._terms, t)
                log = chernoff(self._terms, at, 1e-14) + self._slack + at * (self._moved - t)
        except TooCostly:
            return 1.0
        return min((high + math.exp(min(log + 1e-9 * (1.0 + at * t), 1.0))) * (1.0 + 1e-9), 1.0)

    def chernoff(self, t: float) -> float:
        """Return about Chernoff's bound on delta(t); used only to guide the search."""
        s = tilt_at(self._terms, t)
        share = s * math.log(s) - (1.0 + s) * math.log1p(s)
        return self.infinite[1] + math.exp(min(cumulant(self._terms, s)[0] - s * t + share, 0.0))

    def _at(self, c: float, t: float) -> tuple[float, float]:
        """Bounds on the finite part of delta(t), by a line near its saddle point c."""
        low, high = 0.0, 1.0
        made = self._line(c, t) if self._pairs else None
        if made is not None:
            low, high = self._loosened(made, t)
        if high - low > _WIDE * high:
            low = max(low, self._most(t))
        for make in (jump_line, dense_line) if self._pairs else (blurred_line,):
            made = self._line(c, t, make) if high - low > _WIDE * high else None
            if made is not None:
                more = self._loosened(made, t)
                low, high = max(low, more[0]), min(high, more[1])
        if high - low > _WIDER * high and high > _TINY:
            grid = self._grid(c, t)
            if grid is not None:
                more = grid.bounds(t)
                low, high = max(low, more[0]), min(high, more[1])
        return low, high

    def _most(self, t: float) -> float:
        """Lower bound where delta is nearly one: E min(1, e^(t-L)) <= M(-1/2) e^(t/2)."""
        if self._finite:
            return 0.0
        log = 0.5 * t
        for term, k in self._terms:
            value, error = term.log_moments(-0.5, np.zeros(1), 1e-12)
            log += k * (float(value[0].real) + float(error[0]))
        return max(1.0 - math.exp(min(log + 1e-12 * abs(log), 0.0)) * (1.0 + 1e-12), 0.0)

    def _line(
        self, c: float, t: float, make: Callable[[Terms, float, float], Line | Blurred] = line
    ) -> Line | Blurred | None:
        key = c, make
        if key not in self._lines:
            try:
                with in_range():
                    self._lines[key] = make(self._terms, t, c)
            except TooCostly:
                self._lines[key] = None
            if len(self._lines) > _KEPT:
                self._lines.popitem(last=False)
        return self._lines[key]

    def _loosened(self, made: Line | Blurred, t: float) -> tuple[float, float]:
        """Bounds, with the errors of measures counted."""
        if not self._finite:
            return made.bounds(t)
        low, high = made.bounds(t + self._moved)[0], made.bounds(t - self._moved)[1]
        slack = raised(math.expm1(min(self._slack, 700.0)), 8.0)
        return max(low * (1.0 - slack), 0.0), min(high * (1.0 + slack) + 1e-322, 1.0)

    def _grid(self, c: float, t: float) -> Gridded | None:
        """Bounds by cutting continuous pairs into cells, for a tilt."""
        if c not in self._grids:
            if len(self._grids) >= _KEPT:
                self._grids.clear()
            floor = min(max(cumulant(self._terms, c)[0] - c * t, _LEAST), 0.0)
            if not self._pairs:
                return None
            try:
                with in_range():
                    self._grids[c] = Gridded(self._pairs, self._finite, c, 32.0 - floor)
            except (TooCostly, TooLarge, TooMany):
                self._grids[c] = None
        return self._grids[c]

    def _start(self, rest: float) -> float:
        """Return a tilt for a delta: of a normal law where it is not small."""
        if rest < _LARGE:
            return tilt_for(self._terms, math.log(rest))
        _, mean, variance = cumulant(self._terms, 0.0)
        return tilt_at(
            self._terms, max(mean - math.sqrt(variance) * NormalDist().inv_cdf(rest), 0.0)
        )

    def _large(self, rest: float) -> float:
        """Return t at which one large loss of a mixture has about a chance; 0 where none has."""
        pairs = [
            (one.pair, k)
            for one, k in self._pairs
            if isinstance(one.pair, Mixtures) and not one.flipped
        ]
        low, high = 0.0, 1.0
        while sum(k * pair.single(high, False)[1] for pair, k in pairs) > rest and high < 1e3:
            low, high = high, 2.0 * high
        while high - low > 0.01 * high and high > 1e-6:
            t = 0.5 * (low + high)
            above = sum(k * pair.single(t, False)[1] for pair, k in pairs) > rest
            low, high = (t, high) if above else (low, t)
        return low

    def _crossing(self, delta: float, rest: float) -> tuple[float, float]:
        """Where bounds on the curve cross delta, ``rest`` of which is for finite losses."""
        if self._closed:
            with suppress(NotImplementedError, TooCostly), in_range():
                return _search(partial(closed, *self._pairs[0]), (0.0, 0.0), delta, 1.0)
        c = self._start(rest)
        low, high, t = 0.0, math.inf, 0.0

        def narrowed(bounds: Callable[[float], tuple[float, float]], start: float) -> None:
            nonlocal low, high
            result = _search(bounds, self.infinite, delta, start)
            low, high = max(low, result[0]), min(high, result[1])

        for _ in range(8):
            _, slope, curve = cumulant(self._terms, c)
            t = max(slope - 1.0 / c - 1.0 / (1.0 + c), 0.0)
            start = max(t, 1e-12)
            made = self._line(c, t) if self._pairs else None
            if made is not None:
                narrowed(partial(self._loosened, made), start)
            # Where the tilted law has two humps, t is not between them.
            there = 0.5 * (low + high) if high < math.inf else self._large(rest) or t
            for make in (jump_line, jump_line, dense_line) if self._pairs else (blurred_line,):
                if there > 0.0 and (high == math.inf or high - low > _WIDE * high):
                    made = self._line(tilt_at(self._terms, there), there, make)
                    if made is not None:
                        narrowed(partial(self._loosened, made), there)
                        there = 0.5 * (low + high) if high < math.inf else there
            if high == math.inf or high - low > _WIDER * high:
                grid = self._grid(c, t)
                if grid is not None:
                    narrowed(grid.bounds, start)
            middle = low if high == math.inf else 0.5 * (low + high)
            near = abs(middle - t) <= _NEAR * math.sqrt(curve + 1.0 / c**2)
            if near or high == 0.0 or high - low <= _WIDE * high:
                break
            c = tilt_at(self._terms, middle)
        return low, high


def _search(
    bounds: Callable[[float], tuple[float, float]],
    infinite: tuple[float, float],
    delta: float,
    start: float,
) -> tuple[float, float]:
    """Where bounds on the finite part of a curve, and infinite losses, cross delta."""

    def below(t: float) -> bool:
        return lowered(infinite[0] + bounds(t)[0], 4.0) > delta

    def above(t: float) -> bool:
        return raised(infinite[1] + bounds(t)[1], 4.0) > delta

    return _last(below, start)[0], _last(above, start)[1]


def _last(holds: Callable[[float], bool], start: float) -> tuple[float, float]:
    """Neighbouring numbers, nearly, between which a property of t >= 0 is lost.

    The bounds of one line are good near its own t only, so the search starts there.
    """
    low, high = -1.0, math.inf
    at, step = start, 1e-10 * start
    while low < 0.0 or high == math.inf:
        if holds(at):
            low = at
            at, step = at + step, 16.0 * step
            if at > 1e300:
                return low, math.inf
        else:
            high = at
            if at == 0.0:
                return 0.0, 0.0
            at, step = max(at - step, 0.0), 16.0 * step
    return halved(holds, low, high)
