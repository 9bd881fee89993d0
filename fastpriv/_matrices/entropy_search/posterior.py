"""Branch and bound over the posteriors of one bit of the database.

A cell is a range of the probability of the bit's first value given each output, and one before any
output. The number of ranges does not depend on the number of databases. A cell is split in the
range in which the bound of the kernel is loosest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv._matrices.entropy_search.slices import Individual

#: Relative widening of ranges, to cover rounding.
_WIDER = 2.0**-46
#: Bisection steps for the range of a ratio, and the multipliers that are tried.
_BISECTIONS = 30
_MULTIPLIERS = np.exp(np.linspace(-9.0, 5.0, 57))[:, None]
#: Inputs up to which ranges are computed with all of these. Others make do with a few.
_INPUTS = 256
#: Units of work of two bounds, per entry of the matrix.
_BOUND = 800


def setup_work(individual: Individual) -> float:
    """Return about how many units of work the ranges of a bit take: three pairs of bisections."""
    inputs, outputs = individual.rest.shape
    multipliers, bisections = _steps(inputs)
    return 160.0 * float(bisections * len(multipliers) * inputs * (outputs + 1))


def _steps(inputs: int) -> tuple[Floats, int]:
    """Return the multipliers that are tried, and how often ranges are halved."""
    if inputs <= _INPUTS:
        return _MULTIPLIERS, _BISECTIONS
    return _MULTIPLIERS[::4], _BISECTIONS // 3


class Bit:
    """A row with two values, described by the posterior of the first one, under H(X) >= b.

    If the output has a part that depends on the row alone, posteriors given the rest are enough.

    If an output or a value has probability zero, the conditional probabilities given it are not
    defined. Such priors are limits of others, and information and bounds are continuous.
    """

    def __init__(self, individual: Individual, b: float) -> None:
        self.individual, self.b = individual, b - individual.doubt
        #: The last column is for the bit before any output.
        self.W = np.column_stack([individual.rest, np.ones(len(individual.rest))])
        self.look = individual.look
        self.logs, self.edges = individual.logs, individual.edges
        self.start = np.full(1 + 2 * self.W.shape[1], 0.1)
        one = np.zeros_like(self.W)
        one[: self.edges[1]] = 1.0
        self.ranges = self.ratio(self.W * one, self.W)
        low, high = self.ratio(self.W * one, one)
        low_other, high_other = self.ratio(self.W * (1.0 - one), 1.0 - one)
        with np.errstate(divide="ignore", invalid="ignore"):
            #: Ranges of P(y | first value) / P(y | second value).
            self.least = np.nan_to_num(low / high_other, nan=0.0) * (1.0 - _WIDER)
            self.most = np.where(low_other > 0.0, high / low_other, math.inf) * (1.0 + _WIDER)

    def ratio(self, F: Floats, G: Floats) -> tuple[Floats, Floats]:
        """Return the ranges of (p F)/(p G), 0 <= F <= G, over laws p of the inputs with H >= b.

        p (F - u G) <= t ln sum_x k_x e^((F - u G)_x/t) - t b for every t > 0. So u is an upper end
        if some t makes the right-hand side negative.
        """
        ends = []
        multipliers, bisections = _steps(len(F))
        scale = np.maximum(G.max(axis=0), 1e-300)
        for part in (F, G - F):
            low, high = np.zeros(F.shape[1]), np.ones(F.shape[1])
            for _ in range(bisections):
                middle = 0.5 * (low + high)
                g = (part - middle * G) / scale
                top = g.max(axis=0)
                total = self._log_sums((g - top) / multipliers[:, None])
                most = top + multipliers * (total + 1e-12 * np.abs(total) - self.b + 1e-12)
                proved = most.min(axis=0) < -1e-12
                high, low = np.where(proved, middle, high), np.where(proved, low, middle)
            ends.append(high)
        return np.maximum(1.0 - ends[1] - 2.0 * ULP, 0.0), np.minimum(ends[0] + 2.0 * ULP, 1.0)

    def _log_sums(self, g: Floats) -> Floats:
        """Return ln sum_x k_x e^g for every multiplier and output."""
        scores = g + self.logs[:, None]
        most = scores.max(axis=1, keepdims=True)
        return np.asarray(most[:, 0] + np.log(np.exp(scores - most).sum(axis=1)))

    def cell(self, low: Floats, high: Floats, z: Floats, floor: float, reach: float) -> Cell:
        """Bound over the priors whose posteriors are within ranges, starting from the point z.

        The bound is at least the floor, and the cell keeps the priors that tell more than that.
        """
        low, high, z, p = low.copy(), high.copy(), z.copy(), np.empty(len(self.W))
        bound, output, cut = kernels.posterior_bound(
            low, high, z, self.W, self.look, self.individual.order, self.logs, self.edges,
            self.least, self.most, self.b, floor, reach, p,
        )  # fmt: skip
        return Cell(-bound, low, high, z, p, output, cut, self)

    def root(self, floor: float, reach: float) -> Cell:
        """Bound over all priors."""
        return self.cell(*self.ranges, self.start, floor, reach)


@dataclass(order=True)
class Cell:
    """Ranges of the posteriors, the bound over them, and the point and the law that attain it."""

    rank: float  #: minus the bound
    low: Floats = field(compare=False)
    high: Floats = field(compare=False)
    z: Floats = field(compare=False)
    p: Floats = field(compare=False)
    output: int = field(compare=False)  #: whose range to split, -1 if none is wide
    cut: float = field(compare=False)
    problem: Bit = field(compare=False)

    @property
    def work(self) -> float:
        """Units of work to split it."""
        return _BOUND * self.problem.W.size

    def children(self, floor: float) -> list[Cell]:
        """Split the range in which the bound is loosest."""
        if self.output < 0:
            return []
        reach = 0.02 * (-self.rank - floor)
        middle, other = self.high.copy(), self.low.copy()
        middle[self.output] = other[self.output] = self.cut
        parts = []
        for low, high in ((self.low, middle), (other, self.high)):
            child = self.problem.cell(low, high, self.z, floor, reach)
            if child.rank <= self.rank:  # nothing gained: the point may have been a bad start
                child = max(child, self.problem.cell(low, high, self.problem.start, floor, reach))
            child.rank = max(child.rank, self.rank)
            parts.append(child)
        return parts
