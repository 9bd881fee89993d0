"""One side of the (epsilon, delta) curve of some releases."""

from __future__ import annotations

import math
from collections import OrderedDict
from functools import cached_property

import numpy as np

from fastpriv._core.rounding import ULP, directed, exp_up, raised
from fastpriv.accounting.profile.bounds import Bound, TooMany, listed
from fastpriv.accounting.profile.contour import share
from fastpriv.accounting.profile.crossing import last
from fastpriv.accounting.profile.grid import grid_above, grid_below, spacing
from fastpriv.accounting.profile.measures import Releases
from fastpriv.accounting.profile.saddle import cumulant, tilt_at, tilt_for

#: Tilted laws that are kept for the next question.
_KEPT = 4
#: Standard deviations from the middle of a tilted law at which it is tilted again.
_FAR = 2.0
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
        return self._at(tilt_at(self.releases, epsilon - self._shift), epsilon)

    def at_most(self, epsilon: float) -> float:
        """Bound delta from above at a fraction of the cost: Chernoff's bound, proved.

        delta(t) <= e^(K(s) - s t) max over y of (1 - e^-y) e^(-sy) for every s >= 0. Errors of
        masses and losses count for every release, so that they grow with the number of them.
        """
        if epsilon >= self.top or self.infinite >= 1.0:
            return self.infinite
        s = tilt_at(self.releases, epsilon - self._shift)
        parts = [share(s), -s * epsilon]
        for measure, k in self.releases:
            most = np.abs(measure.logs).max() + s * np.abs(measure.losses).max()
            most += s * abs(measure.shift)
            error = measure.error + s * measure.off
            error += ULP * (16.0 + len(measure.losses) + 4.0 * float(most))
            value = cumulant([(measure, 1)], s)[0] + s * measure.shift
            parts.append(k * (value + error + 4.0 * ULP * abs(value)))
        log = math.fsum(parts) + 8.0 * ULP * math.fsum(map(abs, parts))
        return min(raised(self.infinite + exp_up(min(log, 0.0)), 4.0), 1.0)

    def epsilon(self, delta: float) -> float:
        """Bound the least level at a delta."""
        if delta >= 1.0 or self.top == 0.0 >= self.infinite - delta:
            return 0.0
        if self.infinite >= delta:
            return math.inf if self.infinite > delta else self.top
        s = tilt_for(self.releases, max(delta - self.infinite, 0.1 * delta))
        result, other, stuck = self._cross(s, delta), 0.0 if self._up else self.top, False
        for _ in range(_AGAIN):
            _, middle, variance = cumulant(self.releases, s)
            if s > 0.0 and abs(result - self._shift - middle) <= _FAR * math.sqrt(variance):
                break
            inside = 0.0 < result < self.top and not stuck
            here = result if inside else 0.5 * (result + other)
            s = tilt_at(self.releases, here - self._shift)
            again = self._cross(s, delta)
            again = min(result, again) if self._up else max(result, again)
            still = abs(again - result) <= _STILL * result
            if still and not inside:
                break
            result, stuck = again, still
        return result

    def _cross(self, s: float, delta: float) -> float:
        """Where the bound that belongs to one tilt crosses delta."""
        guess = min(max(cumulant(self.releases, s)[1] + self._shift, 0.0), self.top)
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
            if len(self._cache) > _KEPT:
                self._cache.popitem(last=False)
        return result

    def _made(self, s: float) -> Bound:
        try:
            return listed(self.releases, s, self._up)
        except TooMany:
            grid = grid_above if self._up else grid_below
            return grid(self.releases, s, spacing(self.releases, s))
