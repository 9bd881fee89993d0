"""The best selection: one row of a table from each of several slices, with the largest capacity.

The capacity of rows w_1 .. w_m is min over q of max_a D(w_a, q). So any distribution q bounds all
selections from slices S_1 .. S_m by the largest divergence of a row in them. The best such bound is
the capacity of all rows together. Best-first branch and bound splits slices into clusters of nearby
rows, until these bounds or a list of the selections left prove that the best one so far is optimal.

Three or more slices with few enough rows are left to the search for cliques of compatible rows
(``cliques.py``), after a fraction of the limit. It proves one level after the other.

Two further bounds hold for any m rows. Their capacity is at most ln m. And it is at most the mean
number of yes-or-no questions that identify one of m values by a Huffman code of equal weights,
times the capacity of the best pair of rows: mutual information is convex in the channel, so an
answer reveals at most as much as the best pair.

A third bound is for slices that are easy to distinguish. Construct a channel with one input for
each slice: every output has its smallest probability among the rows of the slice, and the rest goes
to an output that belongs to this slice alone. Every selection is a garbling of this channel,
because the extra output of a slice can be redistributed to the outputs that its row has more often.
The bound is good if the rows of a slice have similar overlaps with the other slices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Meter
from fastpriv._core.rounding import log_up, raised, round_up, roundoff, sum_error
from fastpriv._core.search import BestFirst
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.warm_up import load_kernels
from fastpriv._matrices.capacity import capacities, matrix_capacity
from fastpriv._matrices.searches.cliques import advance, by_cliques, mean_questions, pair_work

# A table of output distributions, and how far its rows are from others and from each other.

#: Fewest logarithms worth a thread of their own.
_LOGS = 1 << 15
#: Fewest plain operations worth one.
_PLAIN = 1 << 18
#: Entries that are copied together.
_BLOCK = 1 << 20
#: Capacities below are only bounded by it, as in the kernels.
_SMALLEST = 1e-280
#: Outputs that a distribution never shows count as this likely.
_NEVER = 1e-300


class Laws:
    """The rows of a table, with bounds on their divergences from any distribution.

    D(w, q) = sum w ln(w/q) - w + q is bounded above in one of two ways: as the sum of
    w ln w - w, known once and for all, and a product of w with -ln q, which costs little but has
    an error of about K ulp; and if that error matters as in ``kernels.capacities``, with a
    relative error of a few ulp.
    """

    def __init__(self, table: Floats) -> None:
        self.table = table
        self.size, self.outputs = table.shape
        self._dots = np.empty(self.size)

    @cached_property
    def own(self) -> Floats:
        """Sum of w ln w - w for every row."""
        own = np.empty(self.size)

        def task(start: int, stop: int) -> None:
            kernels.negative_entropies(self.table, start, stop, own)

        split(task, self.size, max(1, _LOGS // self.outputs))
        return own

    @cached_property
    def sums(self) -> tuple[float, float]:
        """Smallest and largest sum of a row: one, up to rounding."""
        sums = self.table.sum(axis=1)
        return float(sums.min()), float(sums.max())

    def part(self, rows: Ints) -> Laws:
        """Return some of the rows."""
        return Laws(np.ascontiguousarray(self.table[rows]))

    def mean(self, rows: Ints, law: Floats) -> tuple[Floats, Floats]:
        """Output distribution of rows with given probabilities, as a sum q + c."""
        q, c = np.empty(self.outputs), np.empty(self.outputs)
        kernels.output_law(self.table[rows], law, q, c)
        return q, c

    def least(self, rows: Ints) -> Floats:
        """Smallest probability of every output among some rows."""
        step = max(1, _BLOCK // self.outputs)
        parts = [
            self.table[rows[start : start + step]].min(axis=0)
            for start in range(0, len(rows), step)
        ]
        return np.asarray(np.minimum.reduce(parts))

    def divergences(self, rows: Ints, q: Floats, c: Floats, enough: float) -> Floats:
        """Bound D(w, q + c) of some rows from above; precisely if near ``enough``."""
        floor = np.maximum(q, _NEVER)
        logs, dots = np.log(floor), self._dots

        def task(start: int, stop: int) -> None:
            kernels.row_dots(self.table, rows, logs, start, stop, dots)

        split(task, len(rows), max(1, _PLAIN // self.outputs))
        own, cross = self.own[rows], dots[rows]
        error = sum_error(2 * self.outputs, 32) * (np.abs(own) + np.abs(cross) + 4.0)
        above = own - cross + floor.sum() + error
        doubt = np.flatnonzero((above > enough) & (above - 3.0 * error <= enough))
        if len(doubt):
            above[doubt] = self._precise(rows[doubt], q, c)
        return np.asarray(above)

    def _precise(self, rows: Ints, q: Floats, c: Floats) -> Floats:
        divergences = np.empty(len(rows))
        step = max(1, _BLOCK // self.outputs)

        def task(start: int, stop: int) -> None:
            for first in range(start, stop, step):
                part = rows[first : min(first + step, stop)]
                here = np.empty(len(part))
                kernels.row_divergences(self.table[part], q, c, 0, len(part), here)
                divergences[first : first + len(part)] = here

        split(task, len(rows), max(1, _LOGS // self.outputs))
        return np.asarray(raised(divergences, self.outputs + 128) + _SMALLEST)

    def pairs(self, left: Ints, right: Ints) -> Floats:
        """Bound the capacity of every pair of rows, one from each list."""
        out = np.empty((len(left), len(right)))
        swap = len(left) < len(right)  # threads share the longer list
        rows, others = (right, left) if swap else (left, right)
        into = np.empty((len(rows), len(others))) if swap else out

        def task(start: int, stop: int) -> None:
            kernels.pair_bounds(self.table, rows, others, start, stop, into)

        split(task, len(rows), max(1, _PLAIN // (len(others) * self.outputs)))
        return np.asarray((into.T if swap else into) + _SMALLEST)

    def sharp_pairs(self, left: Ints, right: Ints) -> Floats:
        """Bound the capacities of rows ``left[j]``, ``right[j]`` more closely, at more cost."""
        out = np.empty(len(left))

        def task(start: int, stop: int) -> None:
            kernels.sharp_pair_bounds(self.table, left, right, start, stop, out)

        split(task, len(left), max(1, _LOGS // self.outputs))
        return np.asarray(out + _SMALLEST)

    def halves(self, rows: Ints, pivot: int) -> tuple[Ints, Ints]:
        """Two clusters: rows closer to the pivot, and to the row furthest from it."""
        first = self._apart(rows, pivot)
        second = self._apart(rows, int(rows[first.argmax()]))
        nearer = first < second
        if not nearer.any() or nearer.all():  # rows too close to distinguish
            nearer = np.arange(len(rows)) < len(rows) // 2
        return rows[nearer], rows[~nearer]

    def _apart(self, rows: Ints, center: int) -> Floats:
        distances = np.empty(len(rows))

        def task(start: int, stop: int) -> None:
            kernels.row_distances(self.table, rows, center, start, stop, distances)

        split(task, len(rows), max(1, _PLAIN // self.outputs))
        return distances


# Branch and bound: lower and upper bounds of nodes, and how they are split.

#: Most selections of a node whose bounds are listed.
_LISTED = 1 << 16
#: Most of them that may remain after the bounds, to be evaluated one by one.
_ALIVE = 1 << 11
#: Most pairs whose bounds are computed at once.
_PAIRS = 1 << 22
#: Entries of pairs that are always compared.
_PAIR_WORK = 1 << 22
#: Pairs per row up to which they are listed in any case.
_PAIRS_PER_ROW = 16
#: Fraction of the pairs of a node below which they are bounded one by one.
_FEW = 0.3
#: Entries of a batch of selections whose capacities are computed together.
_BATCH = 1 << 20
#: Most rounds of an ascent from one start.
_ASCENT = 20
#: Rows tried in an exchange.
_TRIED = 4
#: Output distributions tried for one node.
_ROUNDS = 2
#: Random starts for each problem that cannot be listed.
_STARTS = 64
#: Fraction of the limit for all of them.
_SCATTER = 0.02
#: Slices up to which selections are listed, and improved by exchanging one row at a time.
MANY = 16
#: Units of work of a node.
_NODE = 1 << 16
#: Units of work of a capacity, per entry.
_CAPACITY = 64


class Node(NamedTuple):
    """Slices that hold some of the candidates of one problem."""

    problem: int
    slices: tuple[Ints, ...]
    bound: float = math.inf  # on the capacity of its selections

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
        self.far = np.empty(len(table))  # bounds on divergences from the distribution used last
        self.tree: BestFirst[Node] | None = None
        self.star: Floats | None = None  # the same for the best selection

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

    def spend_on_capacities(self, rows: int) -> None:
        """Count the work of capacities of so many rows in all."""
        self.touch(rows, _CAPACITY)

    # Lower bounds.

    def evaluate(self, problem: int, choices: Ints) -> float:
        """Compute capacities of selections (B, m), keep the best, return the largest bound."""
        self.spend_on_capacities(choices.size)
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
        """Return the row of each slice furthest from the reference, distinct if possible."""
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
                self.spend_on_capacities(_TRIED * len(choice))
                if len(others) == 1:
                    self.touch(len(rows))
                    scores = self.laws.pairs(others, rows)[0]
                else:  # rows far from the output distribution of the others
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
        rng = np.random.default_rng(0)  # used only to choose starting points
        end = self.meter.used() + _SCATTER * self.meter.limit
        open_nodes = [n for n in nodes if 2 < len(n.slices) <= MANY and n.selections > _ALIVE]
        for node in open_nodes * _STARTS:
            if self.over or self.meter.used() > end:
                break
            self.climb(node, np.array([rng.choice(rows) for rows in node.slices]))

    # Upper bounds.

    def bound(self, node: Node, rows: Ints, law: Floats) -> float:
        """Bound all selections of a node by the output distribution of some rows. Sets ``far``."""
        union = node.union
        self.touch(len(union))
        self.far[union] = self.laws.divergences(union, *self.laws.mean(rows, law), self.target)
        return float(self.far[union].max())

    def from_best(self) -> Floats:
        """Bound the divergences of all rows from the output distribution of the best selection."""
        if self.star is None:
            self.touch(self.laws.size)
            q, c = self.laws.mean(self.choice, self.law)
            self.star = self.laws.divergences(np.arange(self.laws.size), q, c, self.target)
        return self.star

    def bound_by_best(self, node: Node) -> float:
        """Bound all selections of a node by the output distribution of the best selection."""
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
        self.spend_on_capacities(len(union))
        capacity, law = matrix_capacity(self.laws.table[union], 0.25 * self.gap, lambda: self.over)
        self.climb(node, _matched(node.slices, union, law))
        return min(least, capacity.upper)

    def told_apart(self, node: Node) -> float:
        """Bound all selections of a node by the smallest probabilities in each slice."""
        m, outputs = len(node.slices), self.laws.outputs
        self.spend_on_capacities(m)
        self.touch(sum(map(len, node.slices)))
        rows = np.zeros((m, outputs + m))
        for a, slice_ in enumerate(node.slices):
            rows[a, :outputs] = self.laws.least(slice_)
            rows[a, outputs + a] = max(0.0, self.laws.sums[1] - rows[a, :outputs].sum())
        # If the total of a distribution is off by e, D(w, q) changes by at most e |ln(w/q)|, which
        # is below 800 e for doubles.
        excess = self.laws.sums[1] - self.laws.sums[0] + roundoff(4 * outputs)
        return float(capacities(rows[None], 0.25 * self.gap)[1][0] + 800.0 * excess)

    def refine(self, node: Node) -> float:
        """Bound a node by mixtures of its own rows, the outermost first. Sets ``far``."""
        least = self.told_apart(node) if len(node.slices) <= MANY else math.inf
        if least <= self.target:
            return least
        star = self.from_best()
        rows = np.unique([r[f(star[r])] for r in node.slices for f in (np.argmin, np.argmax)])
        for _ in range(_ROUNDS):
            self.spend_on_capacities(len(rows))
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
        """Bound all selections by two references: the best selection and the node."""
        least = np.full([len(rows) for rows in node.slices], math.inf)
        for far in (self.from_best(), self.far):
            worst = reduce(np.maximum, np.ix_(*[far[rows] for rows in node.slices]))
            least = np.minimum(least, worst)
        once = len(node.slices) == 2 and node.slices[0] is node.slices[1]
        return np.triu(least, 1) if once else least  # pairs from equal slices are unordered

    def parts(self, node: Node) -> list[Node]:
        """Split the slice with the row furthest from the distribution used last."""
        reach = [self.far[rows].max() if len(rows) > 1 else -1.0 for rows in node.slices]
        a = int(np.argmax(reach))
        rows = node.slices[a]
        near, other = self.laws.halves(rows, int(rows[self.far[rows].argmax()]))
        if len(node.slices) == 2 and node.slices[0] is node.slices[1]:
            made: list[tuple[Ints, ...]] = [(near, near), (near, other), (other, other)]
        else:
            made = [(*node.slices[:a], half, *node.slices[a + 1 :]) for half in (near, other)]
        return [node._replace(slices=slices) for slices in made]

    def split(self, node: Node) -> list[Node]:
        """Bound a node more closely. List its selections, or split it."""
        self.meter.spend(_NODE)
        bound = min(node.bound, self.bound_by_best(node))
        if bound > self.target:
            bound = min(bound, self.refine(node))
        if bound <= self.target:
            self.settled = max(self.settled, bound)
            return []
        if self.listed(node) and self.settle(node):
            return []
        return [part._replace(bound=bound) for part in self.parts(node)]

    def run(self, nodes: list[Node], deadline: float) -> float:
        """Return a bound on all selections of all nodes, until the meter shows ``deadline``.

        The next call continues.
        """
        self.deadline = deadline
        if self.tree is None:
            roots = [node._replace(bound=self.root(node)) for node in nodes]
            self.scatter([node for node in roots if node.bound > self.target])
            self.tree = BestFirst(roots, self.split)
        rest = self.tree.run(lambda: self.target, lambda: self.over)
        return max(rest, self.settled, self.upper)


def _matched(slices: Sequence[Ints], union: Ints, law: Floats) -> Ints:
    """Assign to slices the rows of largest weight over their union, each row once."""
    from scipy.optimize import linear_sum_assignment

    heavy = np.argsort(-law)[: 2 * len(slices)]
    weight = np.stack([np.where(np.isin(union[heavy], rows), law[heavy], -1.0) for rows in slices])
    choice = np.array([int(rows[0]) for rows in slices])
    for a, k in zip(*linear_sum_assignment(weight, maximize=True), strict=True):
        if weight[a, k] > 0.0:
            choice[a] = union[heavy[k]]
    return choice


# Turns of branch and bound and of cliques.

__all__ = ["Selection", "best_selection"]

#: Rows of a table whose search is short and needs few kernels, and all that others may need.
_TINY = 16
_SEARCH_KERNELS = (
    "capacities",
    "list_cliques",
    "negative_entropies",
    "output_law",
    "pair_bounds",
    "row_distances",
    "row_divergences",
    "row_dots",
    "sharp_pair_bounds",
    "two_row_capacities",
)
#: Fractions of the limit at which branch and bound and the list of cliques take turns.
_TURNS = (0.06, 0.5, 0.58, 1.0)
#: Fraction before a pair is bounded, if there are too many rows for cliques.
_BEFORE = 0.35
#: Units of work of a search without a time limit.
_WORK = 1e9


class Selection(NamedTuple):
    """The best selection so far, and a bound on all selections."""

    lower: float
    upper: float
    problem: int  # which of the problems it belongs to
    choice: Ints  # a row of the table for each slice
    law: Floats  # of the values, under which the rows carry ``lower`` nats


def best_selection(
    table: Floats,
    problems: Sequence[Sequence[Ints]],
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
) -> Selection:
    """Choose one row of ``table`` from each slice of one problem, for the largest capacity.

    Parameters
    ----------
    table : (R, K) array
        Output distributions.
    problems : sequence of sequences of integer arrays
        Each problem is a list of slices, and each slice is a list of rows of the table. If one
        array object is given twice, pairs are unordered.
    gap : float
        Width to reach, in nats, and relative to capacities below one nat.
    time_limit : float or None
        Seconds after which the bracket is returned as it stands. None bounds the work instead.
    """
    if len(table) > _TINY:
        load_kernels(*_SEARCH_KERNELS)  # compiling them does not count
    meter = Meter(time_limit, _WORK)
    search = Search(table, gap, meter)
    nodes = [Node(p, _distinct(slices)) for p, slices in enumerate(problems)]
    most = max(map(len, problems))
    upper = search.run(nodes, meter.limit) if most == 2 else _by_parts(search, nodes, most)
    return Selection(search.lower, upper, search.problem, search.choice, search.law)


def _by_parts(search: Search, nodes: list[Node], most: int) -> float:
    """Search slices for ``most`` values. Return the upper bound.

    If the rows are too many for cliques, branch and bound has the rest of the limit, after the
    bound from pairs.
    """
    meter = search.meter
    upper = search.run(nodes, _TURNS[0] * meter.limit)
    if upper <= search.target:
        return upper
    rows = np.unique(np.concatenate([rows for node in nodes for rows in node.slices]))
    if most <= MANY and pair_work(len(rows), search.laws.outputs) < 0.25 * meter.room():
        steps = by_cliques(search, nodes, rows, upper)
        for turn, share in enumerate(_TURNS[1:]):
            end = share * meter.limit
            told = search.run(nodes, end) if turn % 2 else advance(search, steps, end)
            upper = min(upper, told)
            if upper <= search.target:
                return max(search.upper, upper)
        return max(search.upper, min(upper, search.run(nodes, meter.limit)))
    upper = search.run(nodes, _BEFORE * meter.limit)
    if upper <= search.target:
        return upper
    pairs = Search(search.laws.table, search.gap, meter)
    pair = pairs.run([Node(0, (rows, rows))], 2.0 * _BEFORE * meter.limit)
    upper = min(upper, round_up(pair * mean_questions(most)))
    if upper > search.target:
        upper = min(upper, search.run(nodes, meter.limit))
    return max(search.upper, upper)


def _distinct(slices: Sequence[Ints]) -> tuple[Ints, ...]:
    """Sort every slice and remove repetitions. An object given twice stays one object."""
    seen = {id(rows): np.unique(rows) for rows in slices}
    return tuple(seen[id(rows)] for rows in slices)
