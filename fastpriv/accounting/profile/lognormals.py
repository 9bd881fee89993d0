"""Sums of independent lognormal numbers, bounded in convex order.

S is the sum of t copies of Y = e^((2x-1)/(2 sigma^2)), x ~ N(0, sigma^2), of mean one. A law is
larger in convex order if f has a larger mean under it for all convex f, such as (S - a)_+ and
(a - S)_+. Sums keep this order. So each law is put on points: larger where a value is shared
between the points on either side of it so that the mean stays, smaller where all values of a cell
are replaced by their mean. Copies are doubled and added, O(log t) pairs of laws, each on points
that are close where the sum is likely. All terms are positive, so that chances have a relative
error, however small they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats

#: Pairs of points of all sums together, and most points of a law.
_WORK, _POINTS = 6e7, 5000
#: Standard deviations of ln Y on either side, and of ln S that have close points.
_REACH, _NEAR = 13.0, 9.0
#: Share of the points of a law that a standard deviation of ln Y has away from there.
_FAR = 1.0 / 50.0
#: Relative error of differences of normal chances.
_CELL = 2e-12
#: Chances that are lost to underflow.
_LOST = 1e-290


@dataclass(frozen=True, eq=False)
class Sums:
    """A law on rising points, and mean that went to infinity.

    Chances are known up to a relative ``error``, values up to a relative ``off``.
    """

    values: Floats
    chances: Floats
    infinite: float
    error: float
    off: float

    def excess(self, a: float) -> float:
        """E (S - a)_+."""
        return float((self.chances * np.maximum(self.values - a, 0.0)).sum()) + self.infinite

    def shortfall(self, a: float) -> float:
        """E (a - S)_+."""
        return float((self.chances * np.maximum(a - self.values, 0.0)).sum())

    @property
    def spread(self) -> tuple[float, float]:
        """Mean and deviation of ln S."""
        seen = self.values > 0.0
        logs, chances = np.log(self.values[seen]), self.chances[seen]
        mean = float(chances @ logs)
        return mean, math.sqrt(max(float(chances @ (logs - mean) ** 2), 1e-300))


@lru_cache(maxsize=16)
def lognormal_sums(sigma: float, t: int, up: bool) -> Sums:
    """The law of S, larger or smaller in convex order."""
    stages = t.bit_length() + t.bit_count() - 2
    size = int(min(math.sqrt(_WORK / max(stages, 1)), _POINTS))
    one = _single(sigma, size, up)
    total, power, left = None, one, t
    while True:
        if left & 1:
            total = power if total is None else _added(total, power, sigma, size, up)
        left >>= 1
        if not left:
            return total or one
        power = _added(power, power, sigma, size, up)


def _single(sigma: float, size: int, up: bool) -> Sums:
    """Put Y on points, from the chances of cells and their means, both normal chances."""
    z = np.linspace(-_REACH, _REACH + 1.0 / sigma, size)  # of x / sigma; means are those of z - 1/s
    ends = np.exp((z - 0.5 / sigma) / sigma)
    chances, means = _cells(z), _cells(z - 1.0 / sigma)
    off = 4.0 * _CELL + 8.0 * ULP * float(np.abs(z).max() + 1.0 / sigma) / sigma
    middle = np.divide(means, chances, out=np.zeros(len(z) + 1), where=chances > 0.0)
    if not up:
        seen = chances > 0.0
        return Sums(middle[seen], chances[seen], 0.0, _CELL, off)
    points = np.append(0.0, ends)
    # What is above the last point stays there, and its mean goes to infinity.
    share = np.clip((middle[:-1] - points[:-1]) / np.diff(points), 0.0, 1.0)
    masses = np.append(chances[:-1] * (1.0 - share), chances[-1])
    masses[1:] += chances[:-1] * share
    return Sums(points, masses, float(means[-1]) * (1.0 + _CELL), _CELL + 8.0 * ULP, off)


def _cells(z: Floats) -> Floats:
    """Chances of a normal number below z_0, between neighbours, and above the last."""
    scaled = z / math.sqrt(2.0)
    below = 0.5 * np.array([math.erfc(-x) for x in scaled.tolist()])
    above = 0.5 * np.array([math.erfc(x) for x in scaled.tolist()])
    inner = np.where(z[:-1] > 0.0, above[:-1] - above[1:], below[1:] - below[:-1])
    return np.concatenate([below[:1], np.maximum(inner, 0.0), above[-1:]])


def _points(first: Sums, second: Sums, sigma: float, size: int) -> Floats:
    """Points for a sum: close within some deviations of its logarithm, and some elsewhere."""
    values, weights = zip(*map(_rough, (first, second)), strict=True)
    rough = np.add.outer(*values).ravel()
    mean, deviation = Sums(rough, np.multiply.outer(*weights).ravel(), 0.0, 0.0, 0.0).spread
    low = math.log(max(sum(float(v[v > 0.0][0]) for v in (first.values, second.values)), 1e-300))
    high = math.log(first.values[-1] + second.values[-1]) + 1e-9
    near = max(mean - _NEAR * deviation, low), min(mean + _NEAR * deviation, high)
    step = 1.0 / (sigma * _FAR * size)
    outer = [np.arange(low, near[0], step), np.arange(near[1], high, step)[1:]]
    inner = np.linspace(*near, max(size - sum(map(len, outer)), size // 4))
    return np.append(0.0, np.exp(np.unique(np.concatenate([*outer, inner, [high]]))))


def _rough(law: Sums) -> tuple[Floats, Floats]:
    """A few points of a law."""
    starts = np.arange(0, len(law.values), max(len(law.values) // 256, 1))
    return law.values[starts], np.add.reduceat(law.chances, starts)


def _added(first: Sums, second: Sums, sigma: float, size: int, up: bool) -> Sums:
    """The law of a sum of independent numbers, on points of its own."""
    points = _points(first, second, sigma, size)
    count = len(points)
    chances, means, terms = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64)
    laws = (first.values, first.chances, second.values, second.chances)
    kernels.add_laws(*laws, points, up, chances, means, terms)
    summed = (2.0 * float(terms.max()) + 16.0) * ULP
    error = first.error + second.error + summed
    off = max(first.off, second.off) + 8.0 * ULP
    if not up:
        seen = chances > _LOST
        return Sums(means[seen] / chances[seen], chances[seen], 0.0, error, off + 2.0 * summed)
    chances[0] += _LOST
    infinite = (first.infinite + second.infinite) * (1.0 + 8.0 * ULP)
    return Sums(points, chances, infinite, error, off)
