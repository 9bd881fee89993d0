"""Bounds over simplices of the laws of slices, and the branch and bound that halves them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Meter
from fastpriv._core.divergence import divergence
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.entropy_search.boxes import Box
from fastpriv._matrices.entropy_search.posterior import Cell
from fastpriv._matrices.entropy_search.slices import Simplex, Slice, gibbs

#: Largest coordinate of a simplex that is halved. Beyond, rounding errors exceed the gain.
_FINEST = 2.0**30
#: Inputs up to which output laws are mixtures of them, rather than of outputs.
FEW_INPUTS = 64
#: Units of work of two bounds: per entry of the matrix, and per cube of the variables (Newton's
#: method).
_BOUND, _NEWTON = 6000, 20


def _basis(E: Floats, r: Floats) -> tuple[Floats, Floats]:
    """Return rows that span the laws q - r, and weights that stand for a law in the middle."""
    inputs, outputs = E.shape
    if inputs <= max(FEW_INPUTS, outputs):
        return E, np.full(inputs, 1.0 / inputs)
    return np.eye(outputs) - r, r


class Problem:
    """The problem that the kernel bounds: all slices of an individual, or one slice at q and t."""

    def __init__(self, slices: list[Slice], E: Floats, b: float, held: int) -> None:
        self.slices, self.E, self.b, self.held = slices, E, b, held
        self.logs = np.concatenate([part.logs for part in slices])
        self.inputs = len(self.logs)
        self.base, self.middle = _basis(E, slices[0].r)
        self.edges: Ints = np.cumsum([0, *(len(part.rows) for part in slices)])
        self.corners = max(part.corners for part in slices)
        self.scale = max(float(part.far.max()) for part in slices)
        self.extra, self.extra_doubt = np.zeros(len(E)), np.zeros(len(E))

    @classmethod
    def single(cls, part: Slice, d: Floats, t: float) -> Problem:
        """Return max over laws of a slice of D(V || r + d) + t H."""
        made = cls([part], np.zeros_like(part.E), 0.0, 0)
        made.held = len(made.base) + 1
        made.extra, made.extra_doubt = part.towards(d)
        return made

    def split(self, p: Floats) -> list[Floats]:
        """Return the parts of a vector over inputs that belong to the slices."""
        return np.split(p, self.edges[1:-1])

    def start(self, t: float) -> Floats:
        """Return a point where the bound is finite."""
        thetas = [max(part.eta, part.proved.theta, 1e-300) for part in self.slices]
        blocks = [
            [0.25 * min(1.0, t / theta)] * 2 + [0.1 * self.scale] * self.corners for theta in thetas
        ]
        return np.concatenate([self.middle, [t], *blocks])

    def calmed(self, z: Floats) -> Floats:
        """Return the point with moderate lambda, which suits other simplices better."""
        z = z.copy()
        blocks = z[len(self.base) + 1 :].reshape(len(self.slices), -1)
        blocks[:, 2:] = np.clip(blocks[:, 2:], 1e-3 * self.scale, 2.0 * self.scale)
        return z

    def bound(
        self, simplices: list[Simplex], p: Floats, z: Floats, mu: float, floor: float, reach: float
    ) -> Node:
        """Bound over simplices, starting from the point z, with tangents at the law p."""
        lines, thetas = np.empty((4, self.inputs)), np.empty((2, len(self.slices)))
        B = np.ones((self.inputs, self.corners))  # a corner too many asks for pi 1 >= 0
        for a, (part, simplex, own) in enumerate(
            zip(self.slices, simplices, self.split(p), strict=True)
        ):
            where = slice(int(self.edges[a]), int(self.edges[a + 1]))
            lines[:, where], thetas[:, a] = part.lines(simplex, own)
            B[where, : simplex.B.shape[1]] = simplex.B
        lines[:3] += self.extra
        lines[3] += self.extra_doubt
        rough = np.array([simplex.rough for simplex in simplices])
        z, law, r = z.copy(), np.empty(self.inputs), self.slices[0].r
        most = kernels.entropy_bound(
            z, self.held, mu, self.E, self.base, r, self.logs, self.edges, thetas, lines, B, rough,
            self.b, floor, reach, law,
        )  # fmt: skip
        return Node(-most, simplices, z, law, self)

    def root(self, p: Floats, t: float, floor: float, reach: float) -> Node:
        """Bound over all laws, with tangents at the law p."""
        whole = [part.whole() for part in self.slices]
        return self.bound(whole, p, self.start(t), 0.1 * self.scale, floor, reach)

    def afresh(self, simplices: list[Simplex], t: float, floor: float, reach: float) -> Node:
        """Bound over simplices, starting from their centres; t is used only if it is fixed."""
        t = t if self.held else self.ample()
        return self.bound(
            simplices, gibbs(self.logs), self.start(t), 0.1 * self.scale, floor, reach
        )

    def ample(self) -> float:
        """Return a t that leaves room for all thetas."""
        return self.scale + 2.0 * max(max(part.eta, part.proved.theta) for part in self.slices)


@dataclass(order=True)
class Node:
    """Simplices, the bound over them, and the point and the law of the inputs that attain it."""

    rank: float  #: minus the bound
    simplices: list[Simplex] = field(compare=False)
    z: Floats = field(compare=False)
    p: Floats = field(compare=False)
    problem: Problem = field(compare=False)

    @property
    def work(self) -> float:
        """Units of work to split it."""
        return _BOUND * self.problem.E.size + _NEWTON * len(self.z) ** 3

    def children(self, floor: float) -> list[Node]:
        """Halve the simplex in which the bound is loosest."""
        slices, laws = self.problem.slices, self.problem.split(self.p)
        misses = [
            simplex.widest(own, part)[0] if len(part.rows) > 1 else -1.0
            for simplex, own, part in zip(self.simplices, laws, slices, strict=True)
        ]
        a = int(np.argmax(misses))
        if misses[a] <= 0.0 or np.abs(self.simplices[a].B).max() > _FINEST:
            return []
        parts, gap, problem = [], 0.02 * (-self.rank - floor), self.problem
        for half in self.simplices[a].halves(laws[a], slices[a]):
            simplices = [*self.simplices[:a], half, *self.simplices[a + 1 :]]
            mu = max(gap, 2e-4 * problem.scale)
            child = problem.bound(simplices, self.p, problem.calmed(self.z), mu, floor, gap)
            if child.rank <= self.rank:  # nothing gained: the point may have been a bad start
                child = max(
                    child, problem.afresh(simplices, float(self.z[len(problem.base)]), floor, gap)
                )
            child.rank = max(child.rank, self.rank)
            parts.append(child)
        return parts


Part = TypeVar("Part", Node, Cell, Box)


class Tree(Generic[Part]):
    """Branch and bound that can be stopped and continued."""

    heap: list[Part]
    floor: Callable[[Part], float]  #: what the bound of a part has to reach

    def __init__(self, parts: list[Part], floor: Callable[[Part], float]) -> None:
        self.heap, self.floor, self.closed = parts, floor, -math.inf
        heapq.heapify(self.heap)

    @property
    def bound(self) -> float:
        """The bound over all parts."""
        return max(self.closed, -self.heap[0].rank) if self.heap else self.closed

    def grow(self, meter: Meter, deadline: float) -> float:
        """Halve the worst part until its bound is at most its floor. Return the bound over all."""
        while self.heap and meter.used() < deadline:
            level = self.floor(self.heap[0])
            if -self.heap[0].rank <= level:
                break
            part = heapq.heappop(self.heap)
            meter.spend(part.work)
            children = part.children(level)
            if not children:  # rounding hides what the bound misses
                self.closed = max(self.closed, -part.rank)
            for child in children:
                if -child.rank <= level:
                    self.closed = max(self.closed, -child.rank)
                else:
                    heapq.heappush(self.heap, child)
        return self.bound


def prove_line(
    part: Slice,
    p: Floats,
    d: Floats,
    t: float,
    tolerance: float,
    meter: Meter,
    deadline: float,
) -> None:
    """Search a slice at q = r + d and t, and keep the line that this proves."""
    problem = Problem.single(part, d, t)
    best = -math.inf

    def floor(node: Node) -> float:
        nonlocal best
        law = node.p / node.p.sum()
        seen = law > 0.0
        entropy = -float(law[seen] @ (np.log(law[seen]) - part.logs[seen]))
        e = law @ part.E
        value = divergence(part.r + e, part.r, e) + float(law @ problem.extra) + t * entropy
        best = max(best, value)
        return best + tolerance

    root = problem.root(p, t, -math.inf, 0.1 * tolerance)
    if root.rank > -math.inf:
        part.proved = part.from_maximum(Tree([root], floor).grow(meter, deadline), d, t)
