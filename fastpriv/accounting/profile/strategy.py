"""Which engine bounds a composition: the ordered list, and the search for a level."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any

import numpy as np

from fastpriv._core.rounding import ULP, directed, exp_up, lowered, raised
from fastpriv.accounting.profile.composition import (
    Terms,
    chernoff,
    cumulant,
    discrete_cumulant,
    discrete_tilt_at,
    discrete_tilt_for,
    share,
    tilt_at,
    tilt_for,
)
from fastpriv.accounting.profile.crossing import halved, last
from fastpriv.accounting.profile.discrete import Releases
from fastpriv.accounting.profile.engines.closed_form import closed, is_closed, single
from fastpriv.accounting.profile.engines.contour import (
    Blurred,
    Line,
    blurred_line,
    dense_line,
    line,
)
from fastpriv.accounting.profile.engines.grid import Gridded, grid_above, grid_below, spacing
from fastpriv.accounting.profile.engines.large_loss import jump_line
from fastpriv.accounting.profile.engines.lattice import Bound, TooMany, listed
from fastpriv.accounting.profile.losses import Directed, Discrete, TooCostly, in_range
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture
from fastpriv.errors import TooLarge

# delta(t) of releases in one order of their neighbours, bounded from both sides.


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

    def __init__(self, pairs: list[tuple[Directed, int]], finite: Releases) -> None:
        self._pairs, self._finite = pairs, list(finite)
        self._terms: Terms = [*pairs, *((Discrete(measure), k) for measure, k in finite)]
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
            if isinstance(one.pair, GaussianMixture) and not one.flipped
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


# One side of the (epsilon, delta) curve of some releases.


#: Tilted laws that are kept for the next question.
_KEPT_TABLES = 4
#: Standard deviations from the middle of a tilted law at which it is tilted again.
_RETILT = 2.0
#: How often at most, while an answer moves by more than this share of it.
_AGAIN, _STILL = 24, 1e-10


class Curve:
    """An upper or a lower bound on the curve of independent releases of given measures."""

    def __init__(self, releases: Releases, up: bool) -> None:
        self.releases = list(releases)
        self._up, self._sign = up, 1.0 if up else -1.0
        self._single = [k for _, k in self.releases] == [1]
        self._shift = math.fsum(k * measure.shift for measure, k in self.releases)
        self._cache: OrderedDict[float, Bound] = OrderedDict()

    @cached_property
    def top(self) -> float:
        """Largest finite loss of all releases together, rounded outwards; of one as it is."""
        if any(not len(measure.losses) for measure, _ in self.releases):
            return 0.0  # some release never has a finite loss
        total = math.fsum(k * measure.top for measure, k in self.releases) + self._shift
        off = math.fsum(k * measure.off for measure, k in self.releases)
        if self._single and off == 0.0:
            return total
        size = abs(total) + 2.0 * abs(self._shift)
        return max(total + self._sign * (off + 4.0 * ULP * size), 0.0)

    @cached_property
    def infinite(self) -> float:
        """Chance that some release has an infinite loss, rounded outwards; of one as it is."""
        if any(measure.infinite >= 1.0 for measure, _ in self.releases):
            return 1.0
        if self._single:
            return self.releases[0][0].infinite
        value = 0.0
        for measure, k in self.releases:
            value -= math.expm1(k * math.log1p(-measure.infinite)) * (1.0 - value)
        rounding = self._sign * 8.0 * ULP * (1 + len(self.releases))
        return min(value * (1.0 + rounding), 1.0)

    def delta(self, epsilon: float) -> float:
        """Bound the least delta at a level."""
        if epsilon >= self.top or self.infinite >= 1.0:
            return self.infinite
        return self._at(discrete_tilt_at(self.releases, epsilon - self._shift), epsilon)

    def at_most(self, epsilon: float) -> float:
        """Bound delta from above at a fraction of the cost: Chernoff's bound, proved.

        delta(t) <= e^(K(s) - s t) max over y of (1 - e^-y) e^(-sy) for every s >= 0. Errors of
        masses and losses count for every release, so that they grow with the number of them.
        """
        if epsilon >= self.top or self.infinite >= 1.0:
            return self.infinite
        s = discrete_tilt_at(self.releases, epsilon - self._shift)
        parts = [share(s), -s * epsilon]
        for measure, k in self.releases:
            most = np.abs(measure.logs).max() + s * np.abs(measure.losses).max()
            most += s * abs(measure.shift)
            error = measure.error + s * measure.off
            error += ULP * (16.0 + len(measure.losses) + 4.0 * float(most))
            value = discrete_cumulant([(measure, 1)], s)[0] + s * measure.shift
            parts.append(k * (value + error + 4.0 * ULP * abs(value)))
        log = math.fsum(parts) + 8.0 * ULP * math.fsum(map(abs, parts))
        return min(raised(self.infinite + exp_up(min(log, 0.0)), 4.0), 1.0)

    def epsilon(self, delta: float) -> float:
        """Bound the least level at a delta."""
        if delta >= 1.0 or self.top == 0.0 >= self.infinite - delta:
            return 0.0
        if self.infinite >= delta:
            return math.inf if self.infinite > delta else self.top
        s = discrete_tilt_for(self.releases, max(delta - self.infinite, 0.1 * delta))
        result, other, stuck = self._cross(s, delta), 0.0 if self._up else self.top, False
        for _ in range(_AGAIN):
            _, middle, variance = discrete_cumulant(self.releases, s)
            if s > 0.0 and abs(result - self._shift - middle) <= _RETILT * math.sqrt(variance):
                break
            inside = 0.0 < result < self.top and not stuck
            here = result if inside else 0.5 * (result + other)
            s = discrete_tilt_at(self.releases, here - self._shift)
            again = self._cross(s, delta)
            again = min(result, again) if self._up else max(result, again)
            still = abs(again - result) <= _STILL * result
            if still and not inside:
                break
            result, stuck = again, still
        return result

    def _cross(self, s: float, delta: float) -> float:
        """Where the bound that belongs to one tilt crosses delta."""
        guess = min(max(discrete_cumulant(self.releases, s)[1] + self._shift, 0.0), self.top)
        result = last(lambda t: self._at(s, t) > delta, guess, self.top)
        return result[1] if self._up else result[0]

    def _at(self, s: float, t: float) -> float:
        """Bound delta(t) by the law tilted by s; losses are counted from ``_shift``."""
        x = t - self._shift
        if self._shift != 0.0:
            x -= self._sign * 4.0 * ULP * (abs(t) + abs(self._shift))
        value = self.infinite + self._bound(s).value(x)
        return min(directed(value, 2.0, self._sign > 0.0), 1.0)

    def _bound(self, s: float) -> Bound:
        """Bound on the finite part of the curve from a law tilted by s."""
        result = self._cache.get(s)
        if result is None:
            result = self._cache[s] = self._made(s)
            if len(self._cache) > _KEPT_TABLES:
                self._cache.popitem(last=False)
        return result

    def _made(self, s: float) -> Bound:
        try:
            return listed(self.releases, s, self._up)
        except TooMany:
            grid = grid_above if self._up else grid_below
            return grid(self.releases, s, spacing(self.releases, s))
