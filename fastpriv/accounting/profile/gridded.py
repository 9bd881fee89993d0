"""Bounds on delta(t) of continuous pairs cut into cells, on a grid of losses."""

from __future__ import annotations

import math

from fastpriv._core.rounding import ULP, raised
from fastpriv.accounting.profile.bounds import Bound
from fastpriv.accounting.profile.grid import grid_above, grid_below
from fastpriv.accounting.profile.measures import Measure, Releases
from fastpriv.accounting.profile.nodes import TooCostly
from fastpriv.accounting.profile.saddle import cumulant
from fastpriv.accounting.profile.terms import Ordered

#: Cells of all kinds of releases together.
_CELLS = 1 << 17
#: Points of the grid within the window of the tilted law, and its widths that a window spans.
_POINTS, _SPAN = 1 << 19, 21.0


class Gridded:
    """Bounds from both sides by laws that are tilted by e^(c loss); good near where c belongs."""

    def __init__(
        self, pairs: list[tuple[Ordered, int]], finite: Releases, c: float, far: float
    ) -> None:
        count = _CELLS // len(pairs)
        sides = []
        for up in (False, True):
            cut = [(pair.measure(far, count, up), k) for pair, k in pairs]
            whole = [(measure.without_infinite, k) for measure, k in finite]
            sides.append([*cut, *whole])
        below, above = sides
        h = _spacing(above, c)
        if not 0.0 < h < 1.0:
            raise TooCostly  # so coarse a grid says nothing
        self._below = _Shifted(grid_below(below, c, h), below, -1.0)
        self._above = _Shifted(grid_above(above, c, h), above, 1.0)
        # What lies beyond the last cell counts as an infinite loss.
        beyond = math.fsum(k * measure.infinite for measure, k in above)
        self._beyond = raised(beyond, 4.0)

    def bounds(self, t: float) -> tuple[float, float]:
        """Return a lower and an upper bound on the finite part of delta(t)."""
        return self._below.value(t), min(self._above.value(t) + self._beyond, 1.0)


def _spacing(releases: Releases, c: float) -> float:
    """Distance of the points of the grid: so many in the window of the tilted law."""
    sigma = math.sqrt(cumulant(releases, c)[2])
    widest = max(float(measure.losses[-1] - measure.losses[0]) for measure, _ in releases)
    return max(_SPAN * sigma, widest) / _POINTS


class _Shifted:
    """A bound for losses that are counted from the shifts of their measures, and may be off."""

    def __init__(self, bound: Bound, releases: list[tuple[Measure, int]], sign: float) -> None:
        self._bound, self._sign = bound, sign
        self._shift = math.fsum(k * measure.shift for measure, k in releases)
        self._top = self._shift + math.fsum(k * measure.top for measure, k in releases) + 1.0
        self._off = math.fsum(k * measure.off for measure, k in releases) if sign > 0.0 else 0.0

    def value(self, t: float) -> float:
        if t > self._top:
            if self._sign < 0.0:
                return 0.0
            t = self._top  # delta falls with t
        slack = self._off + 4.0 * ULP * (abs(t) + abs(self._shift))
        return self._bound.value(t - self._shift - self._sign * slack)
