"""Branch and bound over what each output tells about one bit of the database.

A cell is a range for the chance of the bit's first value given each output. Together these couple
both slices, and there are no more of them when slices have many databases. Cells are cut where the
bound of the kernel misses most.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fastpriv import kernels
from fastpriv._rounding import ULP
from fastpriv._slices import Individual
from fastpriv._validation import Floats

#: Ranges are widened by this, relatively, to cover their rounding.
_WIDER = 2.0**-46
#: Ranges no wider are not cut.
_NARROW = 1e-9
#: Share of a range that both parts keep at least.
_LEAST_SHARE = 0.15
#: Bisection steps of a ratio's range, and the multipliers tried.
_BISECTIONS = 30
_MULTIPLIERS = np.exp(np.linspace(-9.0, 5.0, 57))[:, None]


class Bit:
    """A row with two values, seen through the chance of its first, under H(X) >= b."""

    def __init__(self, individual: Individual, b: float) -> None:
        self.b, self.count, self.edges = b, individual.count, individual.edges
        self.W = individual.W
        self.first = (np.arange(len(self.W)) < self.edges[1]).astype(np.float64)[:, None]
        one = np.repeat(self.first, self.W.shape[1], axis=1)
        self.ranges = self.ratio(self.W * one, self.W)
        low, high = self.ratio(self.W * one, one)
        low_other, high_other = self.ratio(self.W * (1.0 - one), 1.0 - one)
        with np.errstate(divide="ignore", invalid="ignore"):
            #: Ranges of P(y | first value) / P(y | second value).
            self.least = np.nan_to_num(low / high_other, nan=0.0) * (1.0 - _WIDER)
            self.most = np.where(low_other > 0.0, high / low_other, math.inf) * (1.0 + _WIDER)

    def ratio(self, F: Floats, G: Floats) -> tuple[Floats, Floats]:
        """Return the ranges of (p F)/(p G), 0 <= F <= G, over laws p of the inputs with H >= b.

        p (F - u G) <= t ln sum_x k_x e^((F - u G)_x/t) - t b for every t > 0: u is an upper end as
        soon as one t makes this negative.
        """
        ends = []
        scale = np.maximum(G.max(axis=0), 1e-300)
        for part in (F, G - F):
            low, high = np.zeros(F.shape[1]), np.ones(F.shape[1])
            for _ in range(_BISECTIONS):
                middle = 0.5 * (low + high)
                g = (part - middle * G) / scale
                top = g.max(axis=0)
                total = np.zeros((len(_MULTIPLIERS), len(top)))
                for x, count in enumerate(self.count):
                    total += count * np.exp((g[x] - top) / _MULTIPLIERS)
                most = top + _MULTIPLIERS * (np.log(total) - self.b + 1e-12)
                proved = most.min(axis=0) < -1e-12
                high, low = np.where(proved, middle, high), np.where(proved, low, middle)
            ends.append(high)
        return np.maximum(1.0 - ends[1] - 2.0 * ULP, 0.0), np.minimum(ends[0] + 2.0 * ULP, 1.0)

    def narrowed(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Narrow the ranges; some are empty, low > high, if no prior is in all of them.

        The odds given an output are those before times a ratio whose range is known, and the chance
        before is the mean of those given the outputs.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            least = _chance(np.fmax.reduce(low / (1.0 - low) / self.most))
            most = _chance(np.fmin.reduce(high / (1.0 - high) / self.least))
            least = np.maximum(least, low.min()) * (1.0 - _WIDER)
            most = np.minimum(np.minimum(most, high.max()) * (1.0 + _WIDER), 1.0)
            below = _chance(least / (1.0 - least) * self.least) * (1.0 - _WIDER)
            above = _chance(most / (1.0 - most) * self.most) * (1.0 + _WIDER)
        return np.fmax(low, below), np.minimum(np.fmin(high, above), 1.0)

    def cell(
        self, low: Floats, high: Floats, z: Floats | None, floor: float, reach: float
    ) -> Cell | None:
        """Bound over the priors whose chances are within ranges; None if there are none."""
        low, high = self.narrowed(low, high)
        if (low > high).any():
            return None
        width = np.maximum(high - low, _NARROW)
        ends = _negentropy(low), _negentropy(high)
        slope = (ends[1] - ends[0]) / width
        base = np.maximum(ends[0] - slope * low, ends[1] - slope * high)
        base += 8.0 * ULP * (np.abs(slope) + 1.0)
        score = (self.W * (base + slope * self.first)).sum(axis=1)
        doubt = (len(base) + 8) * ULP * (self.W * (np.abs(base) + np.abs(slope))).sum(axis=1)
        sides = [self.W * (self.first - low) / width, self.W * (high - self.first) / width]
        middle = 0.5 * (low + high)
        scale = max(float((base + slope * middle - _negentropy(middle)).max()), _NARROW)
        if z is None:
            z = np.concatenate([[0.2], np.full(2 * len(low), 0.2 * scale)])
        else:
            z = np.concatenate([z[:1], np.clip(z[1:], 1e-3 * scale, scale)])
        p = np.empty(len(self.W))
        most = kernels.posterior_bound(
            z, max(reach, 1e-3 * scale), np.stack([score, doubt]), np.concatenate(sides, axis=1),
            self.count, self.edges, self.b, floor, reach, p,
        )  # fmt: skip
        return Cell(-most, low, high, z, p, self)

    def root(self, floor: float, reach: float) -> Cell:
        """Bound over all priors."""
        found = self.cell(*self.ranges, None, floor, reach)
        assert found is not None  # the uniform prior is within
        return found


@dataclass(order=True)
class Cell:
    """Ranges of the chances, the bound over them, and the point and the law it comes from."""

    rank: float  #: minus the bound
    low: Floats = field(compare=False)
    high: Floats = field(compare=False)
    z: Floats = field(compare=False)
    p: Floats = field(compare=False)
    problem: Bit = field(compare=False)

    def children(self, floor: float) -> list[Cell]:
        """Cut the range that makes the bound miss most."""
        y, share = self.widest()
        width = self.high[y] - self.low[y]
        if width <= _NARROW:
            return []
        cut = self.low[y] + share * width
        found, reach = [], 0.02 * (-self.rank - floor)
        for end in range(2):
            ranges = self.low.copy(), self.high.copy()
            ranges[1 - end][y] = cut
            child = self.problem.cell(*ranges, self.z, floor, reach)
            if child is not None:
                child.rank = max(child.rank, self.rank)
                found.append(child)
        return found

    def widest(self) -> tuple[int, float]:
        """Return the range to cut, and where: between its middle and the law of the bound."""
        W, width = self.problem.W, self.high - self.low
        mass = self.p @ W
        Q = (self.p * self.problem.first[:, 0]) @ W / np.maximum(mass, 1e-300)
        share = np.clip((Q - self.low) / np.maximum(width, _NARROW), 0.0, 1.0)
        Q = self.low + share * width
        miss = (1.0 - share) * _negentropy(self.low) + share * _negentropy(self.high)
        miss = (mass + 1e-6) * (miss - _negentropy(Q))
        y = int(np.argmax(np.where(width > _NARROW, miss, -1.0)))
        return y, float(np.clip(0.25 + 0.5 * share[y], _LEAST_SHARE, 1.0 - _LEAST_SHARE))


def _chance(odds: Floats) -> Floats:
    """The chance of given odds, where infinite odds are a certainty."""
    return np.where(np.isinf(odds), 1.0, odds / (1.0 + odds))


def _negentropy(q: Floats) -> Floats:
    """q ln q + (1 - q) ln (1 - q)."""
    inside = np.where((q > 0.0) & (q < 1.0), q, 0.5)
    value = inside * np.log(inside) + (1.0 - inside) * np.log1p(-inside)
    return np.where(inside == q, value, 0.0)
