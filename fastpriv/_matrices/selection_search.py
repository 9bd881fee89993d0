"""Branch and bound for the best selection: lower and upper bounds of nodes, and how they are split.

The bounds are explained in ``selection.py``.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from fastpriv._core.clock import Meter
from fastpriv._core.rounding import ULP, log_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities, matrix_capacity
from fastpriv._matrices.laws import Laws

#: Most selections that are listed, and most that may remain after the bounds to be listed.
_LISTED, _ALIVE = 1 << 16, 1 << 11
#: Most pairs whose bounds are computed at once, and the work (in entries) that is always allowed.
_PAIRS, _PAIR_WORK = 1 << 22, 1 << 22
#: Pairs per row up to which listing them costs about as much as bounding a node.
_PAIRS_PER_ROW = 16
#: Fraction of the pairs of a node below which they are bounded one by one.
_FEW = 0.3
#: Entries of a batch of selections whose capacities are computed together.
_BATCH = 1 << 20
#: Rounds of ascent from one start, rows tried in an exchange, and laws tried for one node.
_ASCENT, _TRIED, _ROUNDS = 20, 4, 2
#: Random starts for each problem, and the fraction of the limit for all of them.
_STARTS, _SCATTER = 64, 0.02
#: Slices up to which selections are listed, and improved by exchanging one row at a time.
MANY = 16
#: Units of work of a node, and of a capacity per entry.
_NODE, CAPACITY = 1 << 16, 64


class Node(NamedTuple):
    """Slices that hold some of the candidates of one problem."""

    problem: int
    slices: tuple[Ints, ...]

    @property
    def selections(self) -> int:
        return math.prod(map(len, self.slices))

    @property
    def union(self) -> Ints:
        first = self.slices[0]
        same = all(rows is first for rows in self.slices)
        return first if same else np.unique(np.concatenate(self.slices))


class Search:
    """Branch and bound over all problems, with the best selection so far."""

    def __init__(self, table: Floats, gap: float, meter: Meter) -> None:
        self.laws, self.gap, self.meter, self.deadline = Laws(table), gap, meter, meter.limit
        self.lower, self.upper, self.settled = 0.0, 0.0, 0.0
        self.problem, self.choice, self.law = 0, np.empty(0, np.int64), np.empty(0)
        self.far = np.empty(len(table))  # bounds on divergences from the law used last
        self.heap: list[tuple[float, int, Node]] = []  # minus the bound, a number, the node
        self.number = itertools.count()
        self.star: Floats | None = None  # the same for the output law of the best selection

    @property
    def target(self) -> float:
        """The value up to which bounds are low enough for their selections to be dropped."""
        return max(self.lower + self.gap * min(1.0, self.lower), self.upper)

    @property
    def over(self) -> bool:
        """Whether the limit is used up."""
        return self.meter.used() > self.deadline

    def touch(self, rows: int, times: float = 1.0) -> None:
        """Count work on whole rows."""
        self.meter.spend(times * rows * self.laws.outputs)

    # Lower bounds.

    def evaluate(self, problem: int, choices: Ints) -> float:
        """Compute capacities of selections (B, m), keep the best, return the largest upper end."""
        self.touch(choices.size, CAPACITY)
        step, worst = max(1, _BATCH // (choices.shape[1] * self.laws.outputs)), 0.0
        for start in range(0, len(choices), step):
            part = choices[start : start + step]
            low, high, laws = capacities(self.laws.table[part], 0.25 * self.gap)
            best, worst = int(low.argmax()), max(worst, float(high.max()))
            if low[best] > self.lower or not len(self.choice):
                self.lower, self.upper = float(low[best]), float(high[best])
                self.problem, self.choice, self.law = problem, part[best], laws[best]
                self.star = None
        return worst

    def furthest(self, node: Node) -> Ints:
        """Return the row of each slice furthest from the law used last, distinct if possible."""
        taken: set[int] = set()
        chosen = []
        for rows in node.slices:
            best = int(rows[self.far[rows].argmax()])
            if best in taken:
                order = rows[np.argsort(-self.far[rows])[: len(taken) + 1]].tolist()
                best = next((x for x in order if x not in taken), best)
            taken.add(best)
            chosen.append(best)
        return np.array(chosen)

    def climb(self, node: Node, choice: Ints) -> None:
        """Ascend from a selection: replace the row of one slice after the other by a better one."""
        self.evaluate(node.problem, choice[None])
        last = -1.0
        for _ in range(_ASCENT if len(choice) <= MANY else 0):
            for a, rows in enumerate(node.slices):
                others = np.delete(choice, a)
                self.touch(_TRIED * len(choice), CAPACITY)
                if len(others) == 1:
                    self.touch(len(rows))
                    scores = self.laws.pairs(others, rows)[0]
                else:  # rows far from the output law of the others
                    law = capacities(self.laws.table[others][None], 1e-3)[2][0]
                    self.bound(node._replace(slices=(rows,)), others, law)
                    scores = self.far[rows]
                tried = np.repeat(choice[None], min(_TRIED, len(rows)), axis=0)
                tried[:, a] = rows[np.argsort(-scores)[:_TRIED]]
                low = capacities(self.laws.table[tried], 0.25 * self.gap)[0]
                choice = tried[low.argmax()]
            self.evaluate(node.problem, choice[None])
            if low.max() <= last * (1.0 + 1e-12):
                break
            last = float(low.max())

    def scatter(self, nodes: list[Node]) -> None:
        """Ascend from random selections of nodes that cannot be listed, for a part of the limit."""
        rng = np.random.default_rng(0)  # where ascents start; what they reach is computed
        end = self.meter.used() + _SCATTER * self.meter.limit
        open_nodes = [n for n in nodes if 2 < len(n.slices) <= MANY and n.selections > _ALIVE]
        for node in open_nodes * _STARTS:
            if self.over or self.meter.used() > end:
                break
            self.climb(node, np.array([rng.choice(rows) for rows in node.slices]))

    # Upper bounds.

    def bound(self, node: Node, rows: Ints, law: Floats) -> float:
        """Bound all selections of a node by the output law of some rows. Sets ``far``."""
        union = node.union
        self.touch(len(union))
        self.far[union] = self.laws.divergences(union, *self.laws.mean(rows, law), self.target)
        return float(self.far[union].max())

    def from_best(self) -> Floats:
        """Bound the divergences of all rows from the output law of the best selection."""
        if self.star is None:
            self.touch(self.laws.size)
            q, c = self.laws.mean(self.choice, self.law)
            self.star = self.laws.divergences(np.arange(self.laws.size), q, c, self.target)
        return self.star

    def bound_by_best(self, node: Node) -> float:
        """Bound all selections of a node by the output law of the best selection."""
        star = self.from_best()
        return max(float(star[rows].max()) for rows in node.slices)

    def root(self, node: Node) -> float:
        """Try first selections of a problem, and bound it by all its rows together."""
        trivial = log_up(len(node.slices))
        if len(self.choice) and self.over:
            return trivial
        if node.selections == 1 or len(node.slices) == 1:
            return self.evaluate(node.problem, np.array([[rows[0] for rows in node.slices]]))
        start = np.unique([rows[k] for rows in node.slices for k in (0, len(rows) // 2, -1)])
        self.bound(node, start, np.full(len(start), 1.0 / len(start)))
        self.climb(node, self.furthest(node))
        least = min(self.bound_by_best(node), trivial)
        if least <= self.target or len(node.slices) == 2:
            return least
        union = node.union
        self.touch(len(union), CAPACITY)
        capacity, law = matrix_capacity(self.laws.table[union], 0.25 * self.gap, lambda: self.over)
        self.climb(node, _matched(node.slices, union, law))
        return min(least, capacity.upper)

    def told_apart(self, node: Node) -> float:
        """Bound all selections of a node by the least probabilities in each slice."""
        m, outputs = len(node.slices), self.laws.outputs
        self.touch(m, CAPACITY)
        self.touch(sum(map(len, node.slices)))
        rows = np.zeros((m, outputs + m))
        for a, slice_ in enumerate(node.slices):
            rows[a, :outputs] = self.laws.least(slice_)
            rows[a, outputs + a] = max(0.0, self.laws.sums[1] - rows[a, :outputs].sum())
        # If the total of a law is off by e, D(w, q) changes by at most e |ln(w/q)|, which is below
        # 800 e for doubles.
        excess = self.laws.sums[1] - self.laws.sums[0] + 4.0 * outputs * ULP
        return float(capacities(rows[None], 0.25 * self.gap)[1][0] + 800.0 * excess)

    def refine(self, node: Node) -> float:
        """Bound a node by output laws of its own rows, the outermost first. Sets ``far``."""
        least = self.told_apart(node) if len(node.slices) <= MANY else math.inf
        if least <= self.target:
            return least
        star = self.from_best()
        rows = np.unique([r[f(star[r])] for r in node.slices for f in (np.argmin, np.argmax)])
        for _ in range(_ROUNDS):
            self.touch(len(rows), CAPACITY)
            law = capacities(self.laws.table[rows][None], 1e-3)[2][0]
            least = min(least, self.bound(node, rows, law))
            if least <= self.target:
                break
            choice = self.furthest(node)
            self.evaluate(node.problem, choice[None])
            rows = np.union1d(rows[law > 1e-3 / len(rows)], choice)
        return least

    def listed(self, node: Node) -> bool:
        """Whether to list the selections of a node."""
        if len(node.slices) > 2:
            return len(node.slices) <= MANY and node.selections <= _LISTED
        rows = sum(map(len, node.slices))
        small = node.selections * self.laws.outputs <= _PAIR_WORK
        return node.selections <= _PAIRS and (small or node.selections <= _PAIRS_PER_ROW * rows)

    def settle(self, node: Node) -> bool:
        """Evaluate the selections of a node in order of their bounds, unless they are too many."""
        bounds = self.bounds(node)
        pairs, alive = len(node.slices) == 2, np.count_nonzero(bounds > self.target)
        if not pairs and alive > _ALIVE:
            return False
        if pairs and alive > _FEW * bounds.size:
            self.touch(node.selections)
            bounds = np.minimum(bounds, self.laws.pairs(*node.slices))
        self.close(bounds)
        places = np.nonzero(bounds > self.target)
        choices = np.stack([rows[k] for rows, k in zip(node.slices, places, strict=True)], axis=1)
        above = bounds[places]
        if pairs:
            self.touch(len(choices), 8.0)
            above = self.laws.sharp_pairs(*np.ascontiguousarray(choices.T))
            self.close(above)
        order = np.argsort(-above)
        step = max(1, min(4096, _BATCH // (len(node.slices) * self.laws.outputs)))
        for start in range(0, len(order), step):
            if above[order[start]] <= self.target or self.over:
                self.settled = max(self.settled, float(above[order[start]]))
                break
            worst = self.evaluate(node.problem, choices[order[start : start + step]])
            self.settled = max(self.settled, worst)
        return True

    def close(self, bounds: Floats) -> None:
        """Record bounds of selections that are dropped because the bounds are low enough."""
        self.settled = max(self.settled, float(bounds[bounds <= self.target].max(initial=0.0)))

    def bounds(self, node: Node) -> Floats:
        """Bound all selections by two laws: that of the best selection and that of the node."""
        least = np.full([len(rows) for rows in node.slices], math.inf)
        for far in (self.from_best(), self.far):
            worst = reduce(np.maximum, np.ix_(*[far[rows] for rows in node.slices]))
            least = np.minimum(least, worst)
        once = len(node.slices) == 2 and node.slices[0] is node.slices[1]
        return np.triu(least, 1) if once else least  # pairs from equal slices are unordered

    def parts(self, node: Node) -> list[Node]:
        """Split the slice with the row furthest from the law used last."""
        reach = [self.far[rows].max() if len(rows) > 1 else -1.0 for rows in node.slices]
        a = int(np.argmax(reach))
        rows = node.slices[a]
        near, other = self.laws.halves(rows, int(rows[self.far[rows].argmax()]))
        if len(node.slices) == 2 and node.slices[0] is node.slices[1]:
            made: list[tuple[Ints, ...]] = [(near, near), (near, other), (other, other)]
        else:
            made = [(*node.slices[:a], half, *node.slices[a + 1 :]) for half in (near, other)]
        return [node._replace(slices=slices) for slices in made]

    def run(self, nodes: list[Node], deadline: float) -> float:
        """Return a bound on all selections of all nodes, until the meter shows ``deadline``.

        The next call continues.
        """
        self.deadline = deadline
        if not self.heap:
            self.heap = [(-self.root(node), next(self.number), node) for node in nodes]
            self.scatter([node for above, _, node in self.heap if -above > self.target])
            heapq.heapify(self.heap)
        heap = self.heap
        while heap and -heap[0][0] > self.target and not self.over:
            above, _, node = heapq.heappop(heap)
            self.meter.spend(_NODE)
            least = min(-above, self.bound_by_best(node))
            if least > self.target:
                least = min(least, self.refine(node))
            if least <= self.target:
                self.settled = max(self.settled, least)
            elif not self.listed(node) or not self.settle(node):
                for part in self.parts(node):
                    heapq.heappush(heap, (-least, next(self.number), part))
        rest = -heap[0][0] if heap else 0.0
        return max(rest, self.settled, self.upper)


def _matched(slices: Sequence[Ints], union: Ints, law: Floats) -> Ints:
    """Assign to slices the rows of largest weight in a law over their union, each row once."""
    from scipy.optimize import linear_sum_assignment

    heavy = np.argsort(-law)[: 2 * len(slices)]
    weight = np.stack([np.where(np.isin(union[heavy], rows), law[heavy], -1.0) for rows in slices])
    choice = np.array([int(rows[0]) for rows in slices])
    for a, k in zip(*linear_sum_assignment(weight, maximize=True), strict=True):
        if weight[a, k] > 0.0:
            choice[a] = union[heavy[k]]
    return choice
