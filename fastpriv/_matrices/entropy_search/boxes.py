"""Branch and bound over boxes of priors in which information plus entropy is concave.

A box is a range of the probability of every input, and of every value of the row. In a box that is
not too wide, the information plus a multiple of the entropy lies below a concave quadratic function
(kernel ``box_bound``), whatever the number of outputs. A box is cut where that gains most.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.entropy_search.slices import Individual

#: Multipliers that are tried for the first ranges, and their widening, to cover rounding.
_MULTIPLIERS = np.exp(np.linspace(-9.0, 5.0, 57))
_WIDER = 1e-12
#: First multiplier t, relative to that of the best law, and the least.
_WARMER, _COLDEST = 1.5, 1e-9
#: Units of work of two bounds, per entry of the matrices in a trial.
_BOUND = 24


class Boxes:
    """A row of the database, under H(X) >= b, and the boxes of its priors."""

    def __init__(self, individual: Individual, b: float) -> None:
        self.individual, self.b = individual, b - individual.doubt
        self.order: Ints = np.ascontiguousarray(np.argsort(individual.W, axis=0).T)
        self.t = max(_WARMER * individual.multiplier(individual.best[1]), _COLDEST)
        inputs, slices = len(individual.W), len(individual.slices)
        where = np.repeat(np.arange(slices), np.diff(individual.edges))
        self.high = self.most_likely(np.eye(inputs, dtype=bool))
        self.most = self.most_likely(where == np.arange(slices)[:, None])
        self.least = np.maximum(
            1.0 - self.most_likely(where != np.arange(slices)[:, None]) - _WIDER, 0.0
        )

    def most_likely(self, sets: NDArray[np.bool_]) -> Floats:
        """Return the largest probability of each set of inputs over laws with H >= b.

        It is at most t ln(K e^(1/t) + K') - t b for every t > 0, with K databases in the set and
        K' outside.
        """
        logs = self.individual.logs
        inside, outside = (
            np.logaddexp.reduce(np.where(part, logs, -np.inf), axis=1) for part in (sets, ~sets)
        )
        t = _MULTIPLIERS[:, None]
        bounds = t * (np.logaddexp(inside + 1.0 / t, outside) - self.b)
        return np.asarray(np.clip(bounds.min(axis=0) + _WIDER * (1.0 + self.b), 0.0, 1.0))

    def box(
        self,
        low: Floats,
        high: Floats,
        least: Floats,
        most: Floats,
        t: float,
        p: Floats,
        floor: float,
    ) -> Box:
        """Bound over a box, starting from the multiplier t and the law p.

        The bound is at least the floor, and the box keeps the priors that tell more than that.
        """
        one = self.individual
        low, high, least, most, p = low.copy(), high.copy(), least.copy(), most.copy(), p.copy()
        bound, t, at, cut = kernels.box_bound(
            low, high, least, most, one.W, one.logs, one.edges, self.order, self.b, floor, t, p
        )
        return Box(-bound, low, high, least, most, t, p, at, cut, self)

    def root(self, floor: float) -> Box:
        """Bound over all priors."""
        law = self.individual.best[1]
        low = np.zeros(len(law))
        return self.box(low, self.high, self.least, self.most, self.t, law / law.sum(), floor)


@dataclass(order=True)
class Box:
    """Ranges of the probabilities, the bound over them, and the law and multiplier behind it."""

    rank: float  #: minus the bound
    low: Floats = field(compare=False)
    high: Floats = field(compare=False)
    least: Floats = field(compare=False)
    most: Floats = field(compare=False)
    t: float = field(compare=False)
    p: Floats = field(compare=False)
    at: int = field(compare=False)  #: the range to cut, of an input or of a value; -1 if none
    cut: float = field(compare=False)
    problem: Boxes = field(compare=False)

    @property
    def work(self) -> float:
        """Units of work to cut it."""
        inputs, outputs = self.problem.individual.W.shape
        return float(_BOUND * inputs * inputs * (inputs + outputs))

    def children(self, floor: float) -> list[Box]:
        """Cut the range that gains most."""
        if self.at < 0:
            return []
        inputs, parts = len(self.low), []
        for side in range(2):
            ends = [end.copy() for end in (self.high, self.low, self.most, self.least)]
            if self.at < inputs:
                ends[side][self.at] = self.cut
            else:
                ends[2 + side][self.at - inputs] = self.cut
            high, low, most, least = ends
            child = self.problem.box(low, high, least, most, self.t, self.p, floor)
            child.rank = max(child.rank, self.rank)
            parts.append(child)
        return parts
