"""Capacity of Gaussian noise behind a bounded input, certified.

An input x in [-a, a] is observed as y = x + Z with Z standard normal. Smith (1971): the best input
distribution has finitely many points. For any distribution p on points, with output density q,

    sum_i p_i D(x_i) <= C <= max over |x| <= a of D(x),        D(x) = KL(N(x, 1) || q).

D is an integral of w ln(w/q), w the density of N(x, 1). The trapezoidal rule has a proved error. At
height v above the real line, w and every part of q gain the modulus e^(v^2/2), and the parts of q
keep within an angle a|v| of one direction. So q has no zero for a|v| < pi/2, and

    |ln(w/q)|(u + iv) <= |ln(w/q)|(u) - ln cos(a v) + 2 a v.

The integral of w |ln(w/q)| is at most D + 2 <= 2a^2 + 2. At a v = 1.2 the integral of the integrand
is therefore at most M = e^(v^2/2) (2a^2 + 6), and a step h errs by at most 2M/(e^(2 pi v/h) - 1)
(Trefethen and Weideman 2014, Theorem 5.1). The slope D'(x) is the integral of (y - x) w ln(w/q),
for which the bound is (1 + v) (2a^2 + 2a + 8) e^(v^2/2). At the edge of the window |ln(w/q)| is at
most 2a (R + a).

Between grid points D is bounded by its curvature, D'' = 1 - E Var(X | Y). It is at most 1, and
D(x + s) <= D(x) + s D'(x) + s^2/2. It is at least 1 - a^2, so that D is convex for a <= 1 and even
odds on the two ends are best.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import lowered, raised, roundoff
from fastpriv._core.search import BestFirst
from fastpriv._core.validation import Floats
from fastpriv._matrices.capacity import matrix_capacity
from fastpriv.results import Bracket

#: Half-width R of the window of integration.
WINDOW = 9.9
#: Upper bound on phi(R), the normal density at the edge of the window.
_TAIL = 2.1e-22
#: Angle a v at which the integrand is bounded.
_ANGLE = 1.2
#: Smallest a; below it, the bracket goes from 0 to Shannon's bound, about a^2/2.
_SMALLEST = 1e-140
#: Largest a for which points are moved to their best places.
MOVED = 12.0
#: Largest a for which points a fixed distance apart are weighed, which leaves a bracket of 0.003.
_LARGEST = 64.0
#: That distance.
_APART = 0.7
#: Entries of an array over inputs and outputs that are computed at a time.
_BLOCK = 1 << 20
#: Smallest width of a bracket, relative to the capacity.
_FINEST = 1e-11
#: Relative width for points that are not moved.
_COARSE = 1e-4
#: Gap of the capacities that guide the places of points.
_POLISH_GAP = 1e-13
#: Most times that a point is added.
_ROUNDS = 12
#: Step of sums that only guide a search: good to all digits in practice.
_STEP = 0.125
#: Most points whose places are searched: four dimensions.
_MOST_SEARCHED = 6
#: Most nodes that a search splits.
_NODES = 450
#: Relative width that a search reaches.
_SEARCHED = 1e-7
#: Gap of the capacities that guide it.
_GUIDE_GAP = 1e-9
#: Pieces of an interval on which D is bounded.
_PIECES = 4
#: Width of intervals from which on their middles are tried.
_NARROW = 0.5
#: Relative rounding of middles and half-widths of intervals, generously.
_PLACE_ROUNDING = 1e-9
#: a^2 and a stay within doubles up to here.
_LARGE = 1e150
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


def shannon_bound(a: float) -> float:
    """Return ln(1 + a^2)/2, the capacity under a bound a^2 on the power. Rounded up."""
    half = 0.5 * math.log1p(a * a) if a < _LARGE else math.log(a)
    return raised(half, 8.0) + 4.0 * math.ulp(0.0)  # a^2 may underflow


def amplitude_capacity(a: float, m: float, gap: float) -> Bracket:
    """Capacity of the best m points (m may be infinite) in [-a, a] behind standard normal noise."""
    if m == 1.0:
        return Bracket(0.0, 0.0)
    if a < _SMALLEST:
        return Bracket(0.0, shannon_bound(a))
    if a <= 1.0:
        bracket = _two_ends(a)
    elif a <= _LARGEST:
        bracket = _points_capacity(a, m, gap)
    else:
        bracket = _closed(a, m)
    return Bracket(bracket.lower, min(bracket.upper, _closed(a, m).upper))


def _closed(a: float, m: float) -> Bracket:
    """Bounds without an integral.

    Above: ln m, Shannon's bound, and McKellips' ln(1 + 2a/sqrt(2 pi e)). Below: m' <= m evenly
    spaced points that are decoded to the nearest one (Fano); for m infinite also a uniform input,
    by the entropy power inequality.
    """
    upper = min(shannon_bound(a), math.log1p(2.0 * a / math.sqrt(2.0 * math.pi * math.e)))
    upper = min(upper, math.log(m) if m < math.inf else math.inf)
    lower = 0.0
    if m == math.inf:
        half = math.sqrt(2.0 / (math.pi * math.e)) * a
        lower = 0.5 * math.log1p(half * half) if half < _LARGE else math.log(half)
    top = int(min(m, max(2.0, a)))
    for share in (0.25, 0.4, 0.55, 0.7, 0.85, 1.0):
        points = max(2, int(top * share))
        lower = max(lower, fano_bound(points, erfc_up(a / (points - 1) / math.sqrt(2.0))))
    return Bracket(max(0.0, lowered(lower, 64.0)), raised(upper, 8.0))


def fano_bound(m: int, error: float) -> float:
    """Lower bound on the information of m equally likely points, decoded with an error probability.

    By Fano's inequality it is ln m - h(error) - error ln(m - 1), where h is the binary entropy. The
    bound falls with the error up to 1/2, so that an upper bound on the error will do.
    """
    if not error < 0.5:
        return 0.0
    unsure = -math.log1p(-error) * (1.0 - error) + error * math.log(m - 1.0)
    unsure -= error * math.log(error) if error > 0.0 else 0.0
    return max(0.0, math.log(m) - unsure - roundoff(64.0) * (1.0 + math.log(m)))


def erfc_up(x: float) -> float:
    """Return erfc(x), raised by far more than its relative error."""
    return math.erfc(x) * (1.0 + 1e-12)


def quadrature_step(a: float, scale: float = 1.0) -> tuple[float, float]:
    """Return the step, a power of two, and the error of rule and window, about an ulp of scale.

    The window must be so wide that phi(R) is phi(WINDOW) times the scale.
    """
    step = 0.25
    while True:
        v = min(_ANGLE / a, 2.0 * math.pi / step)
        size = 3.0 * (1.0 + v) * (2.0 * a * a + 2.0 * a + 8.0)
        rule = size * math.exp(0.5 * v * v - 2.0 * math.pi * v / step)
        if rule <= roundoff(scale):
            return step, rule + 256.0 * (1.0 + a) ** 2 * _TAIL * scale
        step *= 0.5


def _two_ends(a: float) -> Bracket:
    """Return the capacity of even odds on the two ends, for a <= 1 with all its digits.

    With w the density at a, q/w = 1 + e and e = (e^(-2ay) - 1)/2. As q - w integrates to zero,
    D(a) is the integral of w (e - ln(1 + e)), and these terms are positive.
    """
    scale = a * a
    reach = a + math.sqrt(WINDOW**2 - 2.0 * math.log(scale))
    step, error = quadrature_step(a, scale)
    k = np.arange(math.ceil(-reach / step), math.floor(reach / step) + 1)
    y = k * step
    weights = step * np.exp(-0.5 * (y - a) ** 2) / ROOT_TWO_PI
    excess = 0.5 * np.expm1(-2.0 * a * y)
    value = math.fsum(
        w * kernels.divergence(1.0, 1.0 + e, -e)
        for w, e in zip(weights.tolist(), excess.tolist(), strict=True)
    )
    error += roundoff(value * 512.0)
    return Bracket(value - error, value + error)


class Mixture:
    """The output density of weights on points in [-a, a], a >= 1, and divergences from it."""

    def __init__(self, a: float, points: Floats, weights: Floats) -> None:
        self.a, self.points, self.weights = a, points, weights
        self.step, self._error = quadrature_step(a)
        self._first = math.floor(-(a + WINDOW) / self.step) - 3
        y = np.arange(self._first, -self._first + 1, dtype=np.float64) * self.step
        self.log_density = self._logs(y)
        # A sum of weights of 1 + t shifts every divergence by ln(1 + t).
        self._error += 2.0 * abs(math.fsum([*weights.tolist(), -1.0]))

    def _logs(self, y: Floats) -> Floats:
        """Return ln of the density, up to ln sqrt(2 pi)."""
        parts = -0.5 * (y[:, None] - self.points) ** 2
        top = parts.max(axis=1)
        return np.asarray(top + np.log((np.exp(parts - top[:, None]) * self.weights).sum(axis=1)))

    def divergences(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return D(x), D'(x) and a bound on the error of either, for every input."""
        span = np.arange(2 * math.ceil(WINDOW / self.step) + 1)
        value, slope, error = np.empty((3, len(x)))
        rows = max(1, _BLOCK // len(span))
        for start in range(0, len(x), rows):
            part = slice(start, start + rows)
            index = np.floor((x[part, None] - WINDOW) / self.step).astype(np.int64) + span
            off = index * self.step - x[part, None]
            square = off * off
            logs = self.log_density[index - self._first]
            weights = (self.step / ROOT_TWO_PI) * np.exp(-0.5 * square)
            terms = weights * (-0.5 * square - logs)
            value[part], slope[part] = terms.sum(axis=1), (terms * off).sum(axis=1)
            # Exponents are good to 4 units each, logarithms and sums to 16 and the logs' own size.
            size = weights * (4.0 + square) * (1.0 + square) * (1.0 + square - logs)
            error[part] = self._error + roundoff(16.0) * size.sum(axis=1)
        return value, slope, error

    def information(self) -> float:
        """Return the mutual information of the weights, rounded down."""
        value, _, error = self.divergences(self.points)
        return float(lowered(((value - error) * self.weights).sum(), 16.0)) - self._error

    def ceiling(self, target: float) -> float:
        """Upper bound on D over [-a, a]: cells are halved until they stay below the target.

        The target is raised above every value of D that is found.
        """
        half = self.a / (8 * math.ceil(self.a))
        middle: Floats = np.arange(1.0, 8 * math.ceil(self.a), 2.0) * half
        most = 0.0
        while len(middle):
            value, slope, error = self.divergences(middle)
            target = max(target, float((value + 2.0 * error).max()) * (1.0 + _FINEST))
            reach = half * (1.0 + _PLACE_ROUNDING) + roundoff(4.0) * self.a
            bound = value + np.abs(slope) * reach + 0.5 * reach * reach + 2.0 * error
            rest = bound > target
            most = max(most, float(bound[~rest].max(initial=0.0)))
            half *= 0.5
            middle = np.concatenate([middle[rest] - half, middle[rest] + half])
        return raised(most, 8.0)


def _symmetric(a: float, inner: Floats, centre: bool) -> Floats:
    """Return both ends, the inner points and their mirror images, and 0 if asked for."""
    return np.array([-a, *-inner[::-1], *([0.0] if centre else []), *inner, a])


def _solve(a: float, points: Floats) -> tuple[float, Floats, Floats]:
    """Return the information of the best weights on points, the weights, and D' at the points.

    Used only to guide a search. The step is fine enough in practice: the zeros of the output
    density are at a distance of pi over the distance of points from the real line.
    """
    reach = math.ceil((a + WINDOW) / _STEP)
    y = np.arange(-reach, reach + 1) * _STEP
    rows = np.exp(-0.5 * (y - points[:, None]) ** 2) * (_STEP / ROOT_TWO_PI)
    capacity, weights = matrix_capacity(rows, _POLISH_GAP)
    weights = 0.5 * (weights + weights[::-1])
    mixed = rows * weights[:, None]
    mean = (mixed * points[:, None]).sum(axis=0) / mixed.sum(axis=0)
    return capacity.lower, weights, points - (rows * mean).sum(axis=1)


def _polish(a: float, inner: Floats, centre: bool) -> Mixture:
    """Move the inner points to where the information is largest nearby."""
    from scipy.optimize import minimize

    def negative(where: Floats) -> tuple[float, Floats]:
        points = _symmetric(a, where, centre)
        value, weights, slopes = _solve(a, points)
        own = slice(len(points) - 1 - len(where), -1)
        return -value, -2.0 * weights[own] * slopes[own]

    if len(inner):
        options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 200}
        bounds = [(0.0, a)] * len(inner)
        inner = np.sort(minimize(negative, inner, jac=True, bounds=bounds, options=options).x)
    return _weigh(a, inner, centre)


def _weigh(a: float, inner: Floats, centre: bool) -> Mixture:
    """Return the best weights on these points."""
    points = _symmetric(a, inner, centre)
    return Mixture(a, points, _solve(a, points)[1])


@lru_cache(maxsize=64)
def _optimum(a: float, gap: float) -> tuple[int, Bracket]:
    """Return a number of points that reaches the capacity of [-a, a], and that capacity."""
    if a > MOVED:
        mixture = _weigh(a, *_evenly(a, math.ceil(2.0 * a / _APART)))
        lower, gap = mixture.information(), _COARSE
    else:
        mixture = _grow(a, gap)
        lower = mixture.information()
    return len(mixture.points), Bracket(lower, mixture.ceiling(lower + gap * min(1.0, lower)))


def _grow(a: float, gap: float) -> Mixture:
    """Start from few points and add one where D is largest, until the bracket is narrow."""
    inner, centre = _evenly(a, max(2, int(a / 1.1) + 1))
    x = np.linspace(0.0, a, 64 * math.ceil(a))
    for _ in range(_ROUNDS):
        mixture = _polish(a, inner, centre)
        lower = mixture.information()
        value, _, _ = mixture.divergences(x)
        if value.max() <= lower + gap * min(1.0, lower):
            break
        worst = float(x[np.argmax(value)])
        inner = mixture.points[mixture.points > 0.0][:-1]
        if worst < 0.3 and not centre:
            centre = True
        else:
            inner = np.sort(np.append(inner, worst))
    return mixture


def _evenly(a: float, count: int) -> tuple[Floats, bool]:
    """Return the inner positive ones of evenly spaced points, and whether 0 is a point."""
    points = np.linspace(-a, a, count)
    return points[points > 1e-9 * a][:-1], count % 2 == 1


def _points_capacity(a: float, m: float, gap: float) -> Bracket:
    """Bracket for m points; narrow if so many points reach the capacity of the interval.

    Two points are best at the ends: closer points are the same points behind more noise.
    """
    if m == 2.0:
        ends = Mixture(a, np.array([-a, a]), np.array([0.5, 0.5]))
        lower = ends.information()
        value, _, error = ends.divergences(ends.points)
        return Bracket(lower, float((value + error).max()))
    count, all_points = _optimum(a, gap)
    if m >= count:
        return all_points
    mixture = (_polish if a <= MOVED else _weigh)(a, *_evenly(a, int(m)))
    return Bracket(min(mixture.information(), all_points.upper), all_points.upper)


# The best m points in an interval, by branch and bound over their places.
#
# The outermost of m points belong at the ends of [-a, a]: stretched points are the same points
# behind less noise. A node holds an interval for each of the m - 2 others. For any output
# distribution q, points in these intervals have at most the capacity
#
#     max of D(-a), D(a) and the largest D(x) of an x in the intervals.
#
# Between places D'' <= 1 bounds D. With q the output distribution of the best input on the bounds
# and middles of the intervals, this exceeds the best points in them by the square of their widths
# only: several points in one interval carry that much more than one of them. So near the optimum a
# bounded number of nodes is left at each width.


Intervals = tuple[tuple[float, float], ...]


@lru_cache(maxsize=64)
def best_points(a: float, m: float, known: Bracket, gap: float) -> Bracket:
    """Narrow a bracket for m points in [-a, a], to a relative width of 1e-7 or the gap.

    Cost at most 450 nodes of a few milliseconds; after them the bracket may be wider. It is
    returned unchanged for more than 6 points or a > 12.
    """
    if a > MOVED or not 2 < m <= _MOST_SEARCHED or known.width <= gap * min(1.0, known.lower):
        return known
    search = _Search(a, int(m), known.lower, max(gap, _SEARCHED))
    return Bracket(search.lower, max(search.lower, min(known.upper, search.run(known.upper))))


class _Node(NamedTuple):
    """An upper bound on the capacity of points in some intervals."""

    bound: float
    intervals: Intervals


class _Search:
    """Search for points better than the best ones so far, which carry ``lower`` nats."""

    def __init__(self, a: float, m: int, lower: float, gap: float) -> None:
        self.a, self.m, self.lower, self.gap = a, m, lower, gap
        reach = math.ceil((a + WINDOW) / _STEP)
        self._outputs = np.arange(-reach, reach + 1) * _STEP
        #: Largest bound of the nodes that were closed.
        self.settled = 0.0

    @property
    def target(self) -> float:
        """Nodes with an upper bound of at most this value need no further splits."""
        return self.lower + self.gap * min(1.0, self.lower)

    def run(self, upper: float) -> float:
        """Return an upper bound on all points."""
        root = _Node(upper, ((-self.a, self.a),) * (self.m - 2))
        search = BestFirst([root], self.split)
        spent = itertools.count()
        left = search.run(lambda: self.target, lambda: next(spent) >= _NODES)
        return max(self.settled, left)

    def split(self, node: _Node) -> list[_Node]:
        """Return the halves of a node that may hold better points; try middles of narrow ones."""
        kept = []
        for part in _halves(node.intervals):
            bound = min(node.bound, self.bound(part))
            if bound > self.target and max(high - low for low, high in part) < _NARROW:
                self.try_points(np.array([0.5 * (low + high) for low, high in part]))
            if bound > self.target:
                kept.append(_Node(bound, part))
            else:
                self.settled = max(self.settled, bound)
        return kept

    def bound(self, node: Intervals) -> float:
        """Return an upper bound on all points in the intervals."""
        places = [p for low, high in node for p in (low, 0.5 * (low + high), high)]
        points = np.unique([-self.a, *places, self.a])
        mixture = Mixture(self.a, points, self.weigh(points))
        cuts = [np.linspace(low, high, 2 * _PIECES + 1) for low, high in node]
        x = np.concatenate([[-self.a, self.a], *(cut[1::2] for cut in cuts)])
        half = np.concatenate([[0.0, 0.0], *(np.diff(cut)[::2] for cut in cuts)])
        half = half * (1.0 + _PLACE_ROUNDING) + roundoff(16.0) * self.a
        value, slope, error = mixture.divergences(x)
        bounds = value + np.abs(slope) * half + 0.5 * half * half + error * (1.0 + half)
        return raised(float(bounds.max()), 16.0)

    def try_points(self, inner: Floats) -> None:
        """Keep points if they carry more than the best ones so far."""
        points = np.unique([-self.a, *inner, self.a])
        mixture = Mixture(self.a, points, self.weigh(points))
        self.lower = max(self.lower, mixture.information())

    def weigh(self, points: Floats) -> Floats:
        """Return the best weights on points; used only to guide the search."""
        rows = np.exp(-0.5 * (self._outputs - points[:, None]) ** 2) * (_STEP / ROOT_TWO_PI)
        return matrix_capacity(rows, _GUIDE_GAP)[1]


def _halves(node: Intervals) -> list[Intervals]:
    """Halve the widest interval; points stay in order, and of mirror images one is kept."""
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
