"""Least distortion at an individual capacity for bits whose order does not matter.

Let the prior be exchangeable, and let P permute the rows of databases. W[Px, Py] has the individual
capacity and the distortion of W. Capacity is convex in W, so the mean over all P has at most this
capacity, and the same distortion. Hence some optimal W depends only on the class of (x, y): how
many rows hold s in x and v in y. The variables are the masses of classes: the chance, given x, that
the output makes the class.

An adversary selects two databases x and x'. Permuted, they tell as much, so one pair counts for all
with the same numbers of rows (0, 0), (0, 1), (1, 0) and (1, 1). For this pair, outputs with the
same numbers of ones among these four kinds of rows have equal chances. So the two output laws
are known by products of four binomial ranges, and each is a share of the mass of a class.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, lowered, raised, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities
from fastpriv._structure.counts import log_binomials
from fastpriv._structure.types import Blocks, Stack, classes_against, types_of
from fastpriv.channels.types import TypeChannel, type_error, type_weights
from fastpriv.design.capacity_interior import Capped, Part, Point, reduced
from fastpriv.priors import Exchangeable

#: Most classes: the second derivatives are a matrix of this size.
_CLASSES = 3_300
#: Level of E_d from which a start is looked for, and share of the capacity that it may have.
_STEEP, _START = 20.0, 0.6
#: Share of the gap that is asked of the method, as no last program mends the bound.
_INNER = 0.1
#: Gap of the capacities that are certified, and how often a mechanism is repaired.
_FINE, _TRIES = 1e-13, 60


class _Pair(Part):
    """Two databases: shares ``scale[a, c]`` of the masses of the classes ``index[a, c]``."""

    def __init__(self, index: Ints, scale: Floats) -> None:
        super().__init__(np.array([[0, 1]]))
        self.index, self.scale = index, scale

    def view(self, W: Floats) -> Floats:
        """Return the output laws of both databases."""
        return np.asarray(self.scale * W[self.index])


class CappedTypes(Capped):
    """The program over masses of classes, for the bits of an exchangeable prior."""

    def __init__(self, prior: Exchangeable, epsilon: float, priors: str) -> None:
        n = prior.space.n
        check.fits(
            math.comb(n + 3, 3),
            "the program over classes of databases and outputs",
            'use fewer rows, or independent rows with priors="independent"',
            _CLASSES,
        )
        self.n, self.types = n, types_of(Blocks.single(n, 2))
        self.classes = [classes_against(kind, self.types) for kind in self.types.counts]
        self.stack = Stack.of(self.types, self.classes)
        weights = type_weights(self.types, prior)
        self.cost = weights[self.stack.row] * self.stack.distance
        self.epsilon, self.parts = epsilon, self._pairs(priors)
        self.number = self.cost.size + 2 * len(self.parts)

    def _pairs(self, priors: str) -> list[Part]:
        """Return the pairs of databases that an adversary may choose, up to permutations."""
        n, table = self.n, self._table()
        logs = [log_binomials(k) for k in range(n + 1)]
        parts: list[Part] = []
        for up in range(1, n + 1):
            for down in range(0, min(up, n - up) + 1):
                if priors != "all" and (up, down) != (1, 0):
                    continue
                for both in range(n - up - down + 1):
                    kinds = n - up - down - both, up, down, both
                    ones = np.indices([k + 1 for k in kinds]).reshape(4, -1)
                    ways = sum(logs[k][o] for k, o in zip(kinds, ones, strict=True))
                    j = ones.sum(axis=0)
                    index = np.stack(
                        [
                            table[down + both, j, ones[2] + ones[3]],
                            table[up + both, j, ones[1] + ones[3]],
                        ]
                    )
                    scale = np.exp(ways - self.stack.log_outputs[index])
                    parts.append(_Pair(index, scale))
        return parts

    def _table(self) -> Ints:
        """Return the number of the class with i ones in x, j in y and t in both, [i, j, t]."""
        table = np.zeros((self.n + 1,) * 3, dtype=np.int64)
        starts = self.stack.starts.tolist()
        for kind, part, start in zip(self.types.counts, self.classes, starts, strict=False):
            shared = part.held(1, 2)[1]
            numbers = start + np.arange(len(part.row))
            table[shared + part.held(0, 2)[1], kind[0][1], shared] = numbers
        return table

    def normalised(self, W: Floats) -> Floats:
        """Let the masses of every type of x sum to 1."""
        return np.asarray(W / np.bincount(self.stack.row, W)[self.stack.row])

    def start(self) -> Floats:
        """Return E_d at a level with about half of the capacity that is allowed."""
        level, n, d = _STEEP, self.n, self.stack.distance
        while True:
            logs = self.stack.log_outputs - level * d - n * math.log1p(math.exp(-level))
            W = self.normalised(np.exp(logs))
            slacks = self.slacks(W, self.means(W))
            most = self.epsilon - min(float(slack.min()) for slack in slacks)
            if most <= _START * self.epsilon:
                return W
            level *= max(0.3, math.sqrt(0.5 * self.epsilon / most))

    def bound(self, W: Floats, weights: list[Floats]) -> float:
        """Lower bound on the cost, from multipliers >= 0 and masses. Rounded down."""
        total, size, spent = self.cost.copy(), np.abs(self.cost), 0.0
        terms = np.zeros(len(W))
        for part, weight in zip(self.parts, weights, strict=True):
            assert isinstance(part, _Pair)
            slopes = part.slopes(part.view(W), weight)[0]
            np.add.at(total, part.index, part.scale * slopes)
            np.add.at(size, part.index, part.scale * (weight[0][:, None] + np.abs(slopes)))
            np.add.at(terms, part.index, 1.0)
            spent += math.fsum(weight.reshape(-1))
        error = (256.0 + 4.0 * float(terms.max())) * ULP + 4.0 * type_error(self.n)
        least = np.full(self.n + 1, math.inf)
        np.minimum.at(least, self.stack.row, total - error * size)
        whole = math.fsum(least)
        return lowered(whole, 8.0) - raised(self.epsilon * spent, 8.0) - 8.0 * ULP * abs(whole)

    def _system(self, point: Point, slacks: list[Floats], aim: float) -> tuple[Floats, Floats]:
        """Return the second derivatives without those of W >= 0, and the right-hand side."""
        W, laws, _, weights = point
        total, rhs = np.zeros((len(W), len(W))), aim / W - self.cost
        low = np.zeros((2 * len(self.parts), len(W)))
        for k, (part, q, weight, slack) in enumerate(
            zip(self.parts, laws, weights, slacks, strict=True)
        ):
            assert isinstance(part, _Pair)
            V, index, scale = part.view(W), part.index, part.scale
            left = reduced(part, V, q, weight, slack, aim)
            np.add.at(rhs, index, scale * left.rhs[0])
            mass = weight[0] @ V
            for a in range(2):
                for b in range(2):
                    block = -weight[0, a] * weight[0, b] / mass
                    if a == b:
                        block = block + weight[0, a] / V[a]
                    np.add.at(total, (index[a], index[b]), scale[a] * scale[b] * block)
                np.add.at(low[2 * k + a], index, scale * left.low[0, :, :, a])
        total += low.T @ low
        return total, rhs

    def _sums(self) -> Floats:
        """Return which masses sum to 1, a column for each type of x."""
        return np.asarray(self.stack.row[:, None] == np.arange(self.n + 1), dtype=np.float64)

    def _polished(self, W: Floats, weights: list[Floats], seconds: float) -> float:
        """Nothing to mend: the bound of the multipliers is what there is."""
        return self.bound(W, weights)

    def level(self, W: Floats) -> float:
        """Return the largest capacity of all pairs. Rounded up."""
        worst = max(
            float(capacities(np.ascontiguousarray(part.view(W)[None]), _FINE)[1][0])
            for part in self.parts
        )
        error = 4.0 * type_error(self.n)
        return round_up(worst + error * (worst + math.sqrt(2.0 * worst) + 4.0 * error))

    def repaired(self, W: Floats) -> tuple[Floats, float]:
        """Mix with a constant answer until the capacity is at most epsilon; return it as well."""
        constants = [(self.stack.kind == kind).astype(np.float64) for kind in (0, self.n)]
        constant = min(constants, key=lambda masses: float(self.cost @ masses))
        constant, share = self.normalised(constant), 0.0
        for _ in range(_TRIES):
            mixed = self.normalised((1.0 - share) * W + share * constant)
            level = self.level(mixed)
            if level <= self.epsilon:
                return mixed, level
            share = min(1.0, max(4.0 * share, 2.0 * (level - self.epsilon) / level, 2.0 * ULP))
        return constant, 0.0

    def solved(self, gap: float, clock: Clock) -> tuple[TypeChannel, float, float]:
        """Return the mechanism, its certified capacity, and the bound on the distortion."""
        W, bound = self.solve(self.start(), _INNER * gap, clock)
        W, level = self.repaired(W)
        parts = np.split(W / np.exp(self.stack.log_outputs), self.stack.starts[1:-1])
        return TypeChannel(self.types, self.classes, parts), level, bound
