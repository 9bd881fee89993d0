"""Largest information about one row of a database over priors of a given least entropy.

Branch and bound. The law of the database given each value of the row is restricted to a simplex,
over which a kernel bounds the information from above. The simplex with the loosest bound is halved.
Before that, each slice is searched for a linear bound on what it tells, plus a multiple of its
entropy. Few databases are searched by boxes of priors first, and bits with few outputs by their
posteriors. Local ascents, from the laws at which bounds are attained and from others, give the
lower end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fastpriv._core.clock import Meter
from fastpriv._core.rounding import raised
from fastpriv._core.validation import Floats
from fastpriv._core.warm_up import load_kernels
from fastpriv._matrices.entropy_search.boxes import Box, Boxes
from fastpriv._matrices.entropy_search.database import database_bound
from fastpriv._matrices.entropy_search.peeled import peeled_bound
from fastpriv._matrices.entropy_search.posterior import Bit, Cell, setup_work
from fastpriv._matrices.entropy_search.simplices import (
    FEW_INPUTS,
    Node,
    Problem,
    Tree,
    prove_line,
)
from fastpriv._matrices.entropy_search.slices import Individual
from fastpriv.results import Bracket

#: Share of the gap that a search aims at, so that rounding does not carry it beyond.
_WITHIN = 1.0 - 2.0**-20
#: Kernels of the search.
_KERNELS = ("box_bound", "entropy_bound", "entropy_climb", "posterior_bound", "widest_edge")
#: Ascents from random laws.
_STARTS = 24
#: Number of nodes, and of cells, between two ascents. Cells are bounded much faster.
_OFTEN, _SELDOM = 8, 500
#: Most outputs, and least information, of a bit that is searched by its posteriors. Otherwise
#: there are too many cells, or H(A) and H(A|Y) cancel.
_OUTPUTS, _LEAST = 16, 1e-8
#: Most variables of a bound over slices.
_VARIABLES = 400
#: Variables up to which a bound takes milliseconds.
_QUICK = 100
#: Seconds past a time limit after which not even these are begun.
_GRACE = 0.3
#: Most inputs of a row that is searched by boxes. Beyond, there are too many.
_BOXED = 64
#: Shares of the limit in which searches show what they can do: boxes, posteriors, slices. That by
#: posteriors of up to ``_FEW`` outputs has a longer time if it is better than boxes, since it is
#: nearly always better than slices. Slices have a longer one if there are no posteriors. The rest
#: is for the best one.
_BRIEF, _TRIAL, _LONGER, _HALF, _FEW = 0.1, 0.2, 0.6, 0.5, 8
#: Most units of work in which boxes show it. Where they suit, they need less.
_BOXES = 3e9
#: Most rows that are peeled off, and units of work for each.
_ROWS, _PEEL = 64, 1e8
#: Units of work of a search without a time limit, and of an ascent per entry of the matrix.
_WORK, _CLIMB = 1e9, 4000

#: A search of individuals, whose first bounds may take until some time.
Way = Callable[[list[Individual], float], Tree[Any] | None]


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

    def near_uniform(self, r: float) -> Bracket:
        """Bound the largest information over laws p with D(p || u) <= r, u the uniform one.

        With A the row, I_p(A; Y) <= D(p_AY || u_A u_Y) = D(p_AY || u_AY) + E_p ln u_AY/(u_A u_Y).
        The first term is at most r. By Pinsker's inequality the second is at most I_u and
        sqrt(r/2) times the range of its means given the database.
        """
        lower = upper = 0.0
        for individual in self.individuals:
            low, high = individual.information(individual.even)
            reach = math.sqrt(0.5 * r) * individual.slope_range() if r > 0.0 else 0.0
            lower, upper = max(lower, low), max(upper, raised(high + r + reach, 8.0))
        return Bracket(lower, upper)

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
        return self.lower + _WITHIN * self.gap * min(1.0, self.lower)

    def deadline(self, share: float) -> float:
        """Return what the meter shows when a fraction of the limit is used."""
        return share * self.meter.limit

    def too_late(self, individual: Individual) -> bool:
        """Whether the limit is used up. Bounds that take no time are not left out, but for many."""
        over = individual.variables > _QUICK and self.meter.used() >= self.deadline(1.0)
        return over or (individual is not self.individuals[0] and self.meter.overdue(_GRACE))

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
                if individual is not self.individuals[0] and self.meter.overdue(_GRACE):
                    break
                self.climb(individual, p)
        upper = self.most
        if upper > self.floor:
            upper = min(upper, self.bound())
        return Bracket(self.lower, max(upper, self.lower))

    def bound(self) -> float:
        """Return an upper bound over all individuals."""
        if any(len(individual.W) > FEW_INPUTS for individual in self.individuals):
            self.most = min(self.most, self.by_database(self.individuals))
        if all(map(self.peels, self.individuals)):
            self.most = min(self.most, self.by_rows(self.individuals))
        if self.most <= self.floor:
            return self.most
        few = [individual for individual in self.individuals if self.few(individual)]
        rest = [individual for individual in self.individuals if individual not in few]
        level = self.race(few, self.deadline(0.5 if rest else 1.0)) if few else 0.0
        if rest:
            level = max(level, self.race(rest, self.deadline(1.0)))
        return min(self.most, level)

    def race(self, individuals: list[Individual], end: float) -> float:
        """Search in several ways for a while each, and go on with the one that is tightest."""
        begin, best, leader = self.meter.used(), self.most, None
        for way, shares in self.ways(individuals):
            start, tree, level = self.meter.used(), None, best
            for share in shares:
                until = start + share * (end - begin)
                tree = way(individuals, until) if tree is None else tree
                level = self.grown(tree, until)
                if level >= best:
                    break
                best, leader = level, tree
                if best <= self.floor:
                    return best
        return min(best, self.grown(leader, end))

    def ways(self, individuals: list[Individual]) -> list[tuple[Way, list[float]]]:
        """Return the searches that suit individuals, with their shares of the time.

        The second share is for a search that is the tightest so far after the first.
        """
        found: list[tuple[Way, list[float]]] = []
        if self.lower > _LEAST and all(len(each.W) <= _BOXED for each in individuals):
            found.append((self.by_boxes, [min(_BRIEF, _BOXES / max(self.meter.room(), 1.0))]))
        if all(map(self.few, individuals)):
            small = all(each.rest.shape[1] <= _FEW for each in individuals)
            found.append((self.by_posteriors, [_TRIAL, _LONGER] if small else [_TRIAL]))
            found.append((self.by_slices, [_TRIAL]))
        else:
            found.append((self.by_slices, [_HALF]))
        return found

    def grown(self, tree: Tree[Any] | None, end: float) -> float:
        """Let a tree grow until some time, and return its bound."""
        return self.most if tree is None else tree.grow(self.meter, end)

    def few(self, individual: Individual) -> bool:
        """Whether the posteriors of an individual are worth a search."""
        return (
            len(individual.slices) == 2
            and len(individual.W) > 2
            and individual.rest.shape[1] <= _OUTPUTS
            and self.lower > _LEAST
        )

    def peels(self, individual: Individual) -> bool:
        """Whether there is a bound row by row, and time for it."""
        left = self.meter.room()
        return (
            len(individual.slices) == 2
            and 0 < len(individual.others) <= _ROWS
            and all(kernel.shape[1] == 2 for kernel in individual.others)
            and left > _PEEL * len(individual.others)
        )

    def by_rows(self, individuals: list[Individual]) -> float:
        """Return an upper bound for bits whose other rows have two outputs each."""
        tops = []
        for each in individuals:
            self.meter.spend(_PEEL * len(each.others))
            tops.append(peeled_bound(each.look, each.others, self.b - each.doubt))
        return max(tops)

    def by_boxes(self, individuals: list[Individual], _: float) -> Tree[Box] | None:
        """Return the search over boxes of priors, None if there is no time."""
        boxes: list[Box] = []
        for individual in individuals:
            if self.too_late(individual):
                return None
            boxes.append(Boxes(individual, self.b).root(self.floor))
        return Tree(boxes, lambda box: self.level(box.problem.individual, box.p, _SELDOM))

    def by_posteriors(self, individuals: list[Individual], _: float) -> Tree[Cell] | None:
        """Return the search over cells of the posteriors of bits, None if there is no time."""
        reach = 0.1 * self.gap * min(1.0, self.lower)
        cells: list[Cell] = []
        if self.meter.too_late(sum(map(setup_work, individuals))):
            return None
        for individual in individuals:
            if self.too_late(individual):
                return None
            cells.append(Bit(individual, self.b).root(self.floor, reach))
        return Tree(cells, lambda cell: self.level(cell.problem.individual, cell.p, _SELDOM))

    def by_slices(self, individuals: list[Individual], end: float) -> Tree[Node] | None:
        """Return the search over simplices of the laws of slices, None if there is no time.

        The search of roots, which may be all that is needed, can take until ``end``.
        """
        nodes, owners = [], {}
        begin = self.meter.used()
        if any(individual.variables > _VARIABLES for individual in individuals):
            return None
        for k, individual in enumerate(individuals):
            if self.too_late(individual):
                return None
            node = self.root(individual, begin + (end - begin) * (k + 1) / len(individuals))
            owners[id(node.problem)] = individual
            nodes.append(node)
        return Tree(nodes, lambda node: self.level(owners[id(node.problem)], node.p, _OFTEN))

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
        """Bound over all laws of an individual, searching single slices where that helps.

        Slices are searched at the output law and the multiplier of the best law first, if every
        slice by itself seems to tell most there: then nothing is lost. After that they are
        searched at those of the bound, as long as this narrows it.
        """
        problem = Problem(individual.slices, individual.E, self.b - individual.doubt, 0)
        node = self.whole(individual, problem, individual.best[1])
        law = individual.best[1]
        d, t = law @ individual.E, individual.multiplier(law)
        hopeless = self.meter.too_late(individual.separation_work())
        apart = not hopeless and individual.separates(law, d, t)
        while -node.rank > self.floor and (left := deadline - self.meter.used()) > 0.0:
            gap, gain = -node.rank - self.lower, 0.0
            if not apart:
                mixed = len(problem.base)
                d, t = node.z[:mixed] @ problem.base, float(node.z[mixed])
            lines = [part.proved for part in individual.slices]
            tolerance = (0.1 * self.gap * min(1.0, self.lower)) if apart else 0.02 * gap
            for part, own in zip(individual.slices, problem.split(node.p), strict=True):
                if len(part.rows) > 1:
                    until = self.meter.used() + left / (2 * len(individual.slices))
                    prove_line(part, own, d, t, tolerance, self.meter, until)
            better = self.whole(individual, problem, node.p)
            if better.rank > node.rank:
                node, gain = better, better.rank - node.rank
            else:
                for part, line in zip(individual.slices, lines, strict=True):
                    part.proved = line
            if not apart and gain < 0.05 * gap:
                break
            apart = False
        return node

    def whole(self, individual: Individual, problem: Problem, p: Floats) -> Node:
        """Bound over all laws, with tangents at p, and ascend from where it is attained."""
        reach = 0.1 * self.gap * min(1.0, self.lower)
        node = problem.root(p, problem.ample(), self.floor, reach)
        self.climb(individual, node.p)
        return node
