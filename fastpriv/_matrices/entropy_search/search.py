"""Largest information about one row of a database over priors of a given least entropy.

Branch and bound. The law of the database given each value of the row is restricted to a simplex,
over which a kernel bounds the information from above. The simplex with the loosest bound is halved.
Before that, each slice is searched for a linear bound on what it tells, plus a multiple of its
entropy. Bits with few outputs are searched by their posteriors first. Local ascents, from the laws
at which bounds are attained and from others, give the lower end.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Meter
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.warm_up import load_kernels
from fastpriv._matrices.entropy_search.database import database_bound
from fastpriv._matrices.entropy_search.posterior import Bit, Cell
from fastpriv._matrices.entropy_search.slices import (
    Individual,
    Line,
    Simplex,
    Slice,
    divergence,
    gibbs,
)
from fastpriv.results import Bracket

#: Kernels of the search.
_KERNELS = ("entropy_bound", "entropy_climb", "posterior_bound", "widest_edge")
#: Ascents from random laws.
_STARTS = 24
#: Largest coordinate of a simplex that is halved. Beyond, rounding errors exceed the gain.
_FINEST = 2.0**30
#: Number of nodes, and of cells, between two ascents. Cells are bounded much faster.
_OFTEN, _SELDOM = 8, 500
#: Most outputs, and least information, of a bit that is searched by its posteriors. Otherwise
#: there are too many cells, or H(A) and H(A|Y) cancel.
_OUTPUTS, _LEAST = 12, 1e-8
#: Inputs up to which output laws are mixtures of them, rather than of outputs.
_FEW_INPUTS = 64
#: Most variables of a bound over slices.
_VARIABLES = 400
#: Variables up to which a bound takes milliseconds.
_QUICK = 100
#: Units of work of a search without a time limit, of an ascent per entry of the matrix, and of two
#: bounds: per entry, and per cube of the variables (Newton's method).
_WORK, _CLIMB, _BOUND, _NEWTON = 1e9, 4000, 6000, 20


def _basis(E: Floats, r: Floats) -> tuple[Floats, Floats]:
    """Return rows that span the laws q - r, and weights that stand for a law in the middle."""
    inputs, outputs = E.shape
    if inputs <= max(_FEW_INPUTS, outputs):
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


Part = TypeVar("Part", Node, Cell)


def branch(
    heap: list[Part], floor: Callable[[Part], float], meter: Meter, deadline: float
) -> float:
    """Halve the worst node until its bound is at most its floor. Return the bound over all."""
    closed = -math.inf
    while heap and meter.used() < deadline:
        level = floor(heap[0])
        if -heap[0].rank <= level:
            break
        node = heapq.heappop(heap)
        meter.spend(node.work)
        children = node.children(level)
        if not children:  # rounding hides what the bound misses
            closed = max(closed, -node.rank)
        for child in children:
            if -child.rank <= level:
                closed = max(closed, -child.rank)
            else:
                heapq.heappush(heap, child)
    return max(closed, -heap[0].rank) if heap else closed


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
        value = divergence(law @ part.E, part.r) + float(law @ problem.extra) + t * entropy
        best = max(best, value)
        return best + tolerance

    root = problem.root(p, t, -math.inf, 0.1 * tolerance)
    if root.rank > -math.inf:
        part.proved = part.from_maximum(branch([root], floor, meter, deadline), d, t)


class Constrained:
    """The rows of a channel, and the largest information about one of them for any b."""

    def __init__(self, individuals: list[Individual]) -> None:
        self.individuals = individuals

    @classmethod
    def of_matrix(cls, matrix: Floats, sizes: tuple[int, ...]) -> Constrained:
        """Return the rows of a database, those of equal roles once."""
        table = matrix[:, matrix.any(axis=0)].reshape(*sizes, -1)
        kept: list[int] = []
        for i, m in enumerate(sizes):
            twins = (j for j in kept if sizes[j] == m)
            if (m > 1 or len(matrix) == 1) and not any(_swap(table, i, j) for j in twins):
                kept.append(i)
        return cls([Individual(_slices(table, i)) for i in kept])

    def uniform(self) -> Bracket:
        """Return the information of the uniform law."""
        ends = [individual.information(individual.even) for individual in self.individuals]
        return Bracket(max(low for low, _ in ends), max(high for _, high in ends))

    def at(self, b: float, gap: float, most: float, time_limit: float | None) -> Bracket:
        """Search for b, given that nothing is above ``most``."""
        return Search(self.individuals, b, gap, most, time_limit).run()


def _swap(table: Floats, i: int, j: int) -> bool:
    """Whether exchanging two rows only permutes the outputs."""
    swapped = np.swapaxes(table, i, j)
    columns = [np.ascontiguousarray(t.reshape(-1, t.shape[-1]).T) for t in (table, swapped)]
    before, after = (sorted(column.tobytes() for column in part) for part in columns)
    return before == after


def _slices(table: Floats, i: int) -> list[tuple[Floats, Floats]]:
    """Return the distinct output laws for each value of row i, and how many databases have them."""
    slices = []
    for rows in np.moveaxis(table, i, 0):
        distinct, count = np.unique(rows.reshape(-1, table.shape[-1]), axis=0, return_counts=True)
        slices.append((distinct, np.log(count)))
    return slices


class Search:
    """Branch and bound over all individuals for one b."""

    def __init__(
        self,
        individuals: list[Individual],
        b: float,
        gap: float,
        most: float,
        time_limit: float | None,
    ) -> None:
        self.individuals, self.b, self.gap, self.most = individuals, b, gap, most
        load_kernels(*_KERNELS)  # compiling them does not count
        self.meter = Meter(time_limit, _WORK)
        self.lower, self.seen = 0.0, 0

    @property
    def floor(self) -> float:
        """The value that an upper bound has to reach."""
        return self.lower + self.gap * min(1.0, self.lower)

    def deadline(self, share: float) -> float:
        """Return what the meter shows when a fraction of the limit is used."""
        return share * self.meter.limit

    def too_late(self, individual: Individual) -> bool:
        """Whether the limit is used up. First bounds that take no time are never left out."""
        return individual.variables > _QUICK and self.meter.used() >= self.deadline(1.0)

    def climb(self, individual: Individual, p: Floats) -> None:
        """Ascend from p, and keep the law if its information exceeds the best so far."""
        self.meter.spend(_CLIMB * individual.W.size)
        law = individual.climb(p, self.b)
        value = individual.information(law)[0]
        if value > individual.best[0]:
            individual.best = value, law
        self.lower = max(self.lower, value)

    def run(self) -> Bracket:
        """Return both ends."""
        rng = np.random.default_rng(0)  # where climbs start; what they reach is checked
        for individual in self.individuals:
            starts = [individual.even, individual.best[1]]
            individual.best = 0.0, individual.even
            starts += list(rng.dirichlet(np.full(len(individual.W), 0.3), _STARTS))
            for k, p in enumerate(starts):
                if k >= 2 and self.meter.used() >= self.deadline(0.2):
                    break
                self.climb(individual, p)
        upper = self.most
        if upper > self.floor:
            upper = min(upper, self.bound())
        return Bracket(self.lower, max(upper, self.lower))

    def bound(self) -> float:
        """Return an upper bound over all individuals."""
        if any(len(individual.W) > _FEW_INPUTS for individual in self.individuals):
            self.most = min(self.most, self.by_database(self.individuals))
            if self.most <= self.floor:
                return self.most
        few = [individual for individual in self.individuals if self.few(individual)]
        rest = [individual for individual in self.individuals if individual not in few]
        level = self.by_posteriors(few) if few else 0.0
        if level <= self.floor:
            return max(level, self.by_slices(rest)) if rest else level
        whole = min(self.most, self.by_slices(self.individuals))
        return whole if rest else min(level, whole)

    def few(self, individual: Individual) -> bool:
        """Whether the posteriors of an individual are worth a search."""
        return (
            len(individual.slices) == 2
            and len(individual.W) > 2
            and len(individual.r) <= _OUTPUTS
            and self.lower > _LEAST
        )

    def by_posteriors(self, individuals: list[Individual]) -> float:
        """Return an upper bound over bits from cells of their posteriors."""
        reach = 0.1 * self.gap * min(1.0, self.lower)
        heap: list[Cell] = []
        for individual in individuals:
            if self.too_late(individual):
                return self.most
            heap.append(Bit(individual, self.b).root(self.floor, reach))
        heapq.heapify(heap)
        return branch(
            heap,
            lambda cell: self.level(cell.problem.individual, cell.p, _SELDOM),
            self.meter,
            self.deadline(0.6),
        )

    def by_slices(self, individuals: list[Individual]) -> float:
        """Return an upper bound over individuals from simplices of the laws of their slices."""
        heap, owners = [], {}
        begin = self.meter.used()
        half = 0.5 * (self.deadline(1.0) - begin)
        if any(individual.variables > _VARIABLES for individual in individuals):
            return self.most
        for k, individual in enumerate(individuals):
            if self.too_late(individual):
                return self.most
            node = self.root(individual, begin + half * (k + 1) / len(individuals))
            owners[id(node.problem)] = individual
            heap.append(node)
        heapq.heapify(heap)
        return branch(
            heap,
            lambda node: self.level(owners[id(node.problem)], node.p, _OFTEN),
            self.meter,
            self.deadline(1.0),
        )

    def by_database(self, individuals: list[Individual]) -> float:
        """Return an upper bound from what the output tells about the whole database."""
        end = self.deadline(0.5)
        return max(database_bound(each, self.b, self.meter, end) for each in individuals)

    def level(self, individual: Individual, p: Floats, often: int) -> float:
        """Return the floor, after an ascent from p now and then."""
        self.seen += 1
        if self.seen % often == 0:
            self.climb(individual, p)
        return self.floor

    def root(self, individual: Individual, deadline: float) -> Node:
        """Bound over all laws of an individual, searching single slices where that helps."""
        problem = Problem(individual.slices, individual.E, self.b - individual.doubt, 0)
        p = individual.best[1]
        best: Node | None = None
        lines: list[Line] = []
        while True:
            reach = 0.1 * self.gap * min(1.0, self.lower)
            node = problem.root(p, problem.ample(), self.floor, reach)
            self.climb(individual, node.p)
            if best is not None and node.rank <= best.rank:
                for part, line in zip(individual.slices, lines, strict=True):
                    part.proved = line
                return best
            gain = math.inf if best is None else node.rank - best.rank
            left = deadline - self.meter.used()
            if -node.rank <= self.floor or gain < 0.05 * (-node.rank - self.lower) or left < 0.0:
                return node
            best, p, lines = node, node.p, [part.proved for part in individual.slices]
            mixed = len(problem.base)
            d, t = node.z[:mixed] @ problem.base, float(node.z[mixed])
            tolerance = 0.02 * (-node.rank - self.lower)
            for part, own in zip(individual.slices, problem.split(p), strict=True):
                if len(part.rows) > 1:
                    until = self.meter.used() + left / (2 * len(individual.slices))
                    prove_line(part, own, d, t, tolerance, self.meter, until)
