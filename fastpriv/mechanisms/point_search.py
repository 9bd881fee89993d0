"""The best m points in an interval behind normal noise, by branch and bound over their places.

The outermost of m points belong at the ends of [-a, a]: stretched, points are what they were behind
less noise. A node holds an interval for each of the m - 2 others. For any output law q, points in
these intervals have at most the capacity

    max of D(-a), D(a) and the largest D(x) of an x in the intervals,      D(x) = KL(N(x, 1) || q),

which ``fastpriv.mechanisms.amplitude`` computes with a proved error; between places D'' <= 1 bounds
it. With q the output law of the best input on the ends and middles of the intervals, this bound is
above the best points in them by the square of their widths only: several points in one interval
tell that much more than one of them. So near the optimum a bounded number of nodes is left at each
width.
"""

from __future__ import annotations

import heapq
import itertools
import math
from functools import lru_cache

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv._matrices.capacity import matrix_capacity
from fastpriv.mechanisms.amplitude import MOVED, ROOT_TWO_PI, WINDOW, Mixture
from fastpriv.results import Bracket

#: Most nodes that are split in a search.
_NODES = 450
#: Relative width that a search reaches, and the gap of its capacities.
_FINEST, _FINE = 1e-7, 1e-9
#: Pieces of an interval on which D is bounded; width from which on middles are tried.
_PIECES, _NARROW = 4, 0.5
#: Most points whose places are searched: four dimensions.
_MANY = 6
#: Step of sums that nothing proved depends on.
_STEP = 0.125

Intervals = tuple[tuple[float, float], ...]


@lru_cache(maxsize=64)
def best_points(a: float, m: float, known: Bracket, gap: float) -> Bracket:
    """Narrow a bracket for m points in [-a, a], to a relative width of 1e-7 or the gap.

    Cost at most 450 nodes of a few milliseconds. Where that is not enough the bracket is wider, and
    it is returned as it is for more than 6 points or a > 12.
    """
    if a > MOVED or not 2 < m <= _MANY or known.width <= gap * min(1.0, known.lower):
        return known
    search = _Search(a, int(m), known.lower, max(gap, _FINEST))
    return Bracket(search.lower, max(search.lower, min(known.upper, search.run(known.upper))))


class _Search:
    """Nodes that may hold better points than the best ones so far, which have ``lower`` nats."""

    def __init__(self, a: float, m: int, lower: float, gap: float) -> None:
        self.a, self.m, self.lower, self.gap = a, m, lower, gap
        reach = math.ceil((a + WINDOW) / _STEP)
        self._outputs = np.arange(-reach, reach + 1) * _STEP

    @property
    def target(self) -> float:
        """The value up to which bounds are low enough."""
        return self.lower + self.gap * min(1.0, self.lower)

    def run(self, upper: float) -> float:
        """Return an upper bound on all points."""
        root: Intervals = ((-self.a, self.a),) * (self.m - 2)
        number = itertools.count()
        heap = [(-upper, next(number), root)]
        settled = 0.0
        for _ in range(_NODES):
            if not heap or -heap[0][0] <= self.target:
                break
            above, _, node = heapq.heappop(heap)
            for part in _halves(node):
                bound = min(-above, self.bound(part))
                if bound > self.target and max(high - low for low, high in part) < _NARROW:
                    self.try_points(np.array([0.5 * (low + high) for low, high in part]))
                if bound > self.target:
                    heapq.heappush(heap, (-bound, next(number), part))
                else:
                    settled = max(settled, bound)
        return max(settled, -heap[0][0] if heap else 0.0)

    def bound(self, node: Intervals) -> float:
        """Return an upper bound on all points in the intervals."""
        places = [p for low, high in node for p in (low, 0.5 * (low + high), high)]
        points = np.unique([-self.a, *places, self.a])
        mixture = Mixture(self.a, points, self.weigh(points))
        cuts = [np.linspace(low, high, 2 * _PIECES + 1) for low, high in node]
        x = np.concatenate([[-self.a, self.a], *(cut[1::2] for cut in cuts)])
        half = np.concatenate([[0.0, 0.0], *(np.diff(cut)[::2] for cut in cuts)])
        half = half * (1.0 + 1e-9) + 1e-15 * self.a  # places are rounded
        value, slope, error = mixture.divergences(x)
        bounds = value + np.abs(slope) * half + 0.5 * half * half + error * (1.0 + half)
        return float(bounds.max()) * (1.0 + 1e-15)

    def try_points(self, inner: Floats) -> None:
        """Keep points that tell more than the best ones so far."""
        points = np.unique([-self.a, *inner, self.a])
        mixture = Mixture(self.a, points, self.weigh(points))
        self.lower = max(self.lower, mixture.information())

    def weigh(self, points: Floats) -> Floats:
        """Return the best weights on points. Nothing of this is certified."""
        rows = np.exp(-0.5 * (self._outputs - points[:, None]) ** 2) * (_STEP / ROOT_TWO_PI)
        return matrix_capacity(rows, _FINE)[1]


def _halves(node: Intervals) -> list[Intervals]:
    """Halve the widest interval; points stay in order, and mirror images count once."""
    k = max(range(len(node)), key=lambda j: node[j][1] - node[j][0])
    low, high = node[k]
    middle = 0.5 * (low + high)
    parts = []
    for half in ((low, middle), (middle, high)):
        intervals = [*node[:k], half, *node[k + 1 :]]
        for j in range(1, len(intervals)):  # x_1 <= x_2 <= ...
            intervals[j] = max(intervals[j][0], intervals[j - 1][0]), intervals[j][1]
        for j in range(len(intervals) - 2, -1, -1):
            intervals[j] = intervals[j][0], min(intervals[j][1], intervals[j + 1][1])
        if all(p <= q for p, q in intervals) and intervals[0][0] + intervals[-1][0] <= 0.0:
            parts.append(tuple(intervals))
    return parts
