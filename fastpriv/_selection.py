"""The best selection: one row of a table from each of several slices, with the largest capacity.

The capacity of rows w_1 .. w_m is min over q of max_a D(w_a, q). One law q therefore bounds all
selections from slices S_1 .. S_m at once, by the largest divergence of any row in them: this is
the capacity of all rows together when q is its output law. Best-first branch and bound splits
slices into clusters of nearby rows until that bound, or a list of all selections left, proves
that nothing beats the best selection found. Those are found by alternating ascent: every law q
names a selection (in each slice the row furthest from q), and every selection a law.

Two further bounds hold for any rows. m of them have at most ln m. And asking for one of m values
by yes-or-no questions, as a Huffman code of equal weights does, each answer tells at most as much
as the best pair of rows (mutual information is convex in the channel): the capacity is at most
the mean number of questions times that of the best pair.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from fastpriv import kernels
from fastpriv._capacity import capacities, matrix_capacity
from fastpriv._rows import round_up
from fastpriv._threads import split
from fastpriv._validation import Floats, Ints

__all__ = ["Selection", "best_selection"]

#: Most selections that are listed rather than split further.
_LISTED = 1 << 12
#: Most pairs whose bounds are formed in one go, and work (in entries) below which they always are.
_PAIRS, _PAIR_WORK = 1 << 22, 1 << 24
#: Pairs per row up to which listing them costs about what bounding a node does.
_PAIRS_PER_ROW = 64
#: Entries of a batch of selections whose capacities are found together.
_BATCH = 1 << 20
#: Fewest divergences worth a thread of their own.
_GRAIN = 1 << 15
#: Rounds of alternating ascent from one start, and of new rows for the law of one node.
_ASCENT, _ROUNDS = 20, 3
#: Capacities below are only bounded by it, as in the kernels.
_LEAST = 1e-280
#: Share of the time that is kept for the bound from pairs.
_FOR_PAIRS = 0.2


class Selection(NamedTuple):
    """The best selection found, and what any selection can reach."""

    lower: float
    upper: float
    problem: int  # which of the problems it belongs to
    choice: Ints  # a row of the table for each slice
    law: Floats  # of the values, under which the rows carry ``lower`` nats


class _Node(NamedTuple):
    """Slices that hold some of the candidates of one problem."""

    problem: int
    slices: tuple[Ints, ...]

    @property
    def selections(self) -> int:
        return math.prod(map(len, self.slices))


def best_selection(
    table: Floats,
    problems: Sequence[Sequence[Ints]],
    gap: float = 1e-9,
    time_limit: float = 60.0,
) -> Selection:
    """Choose one row of ``table`` from each slice of one of the problems: largest capacity.

    Parameters
    ----------
    table : (R, K) array
        Output laws.
    problems : sequence of sequences of integer arrays
        Each problem is a list of slices, each slice a list of rows of the table. Giving one array
        object twice makes a problem of unordered pairs.
    gap : float
        Width to reach, in nats, and relative to capacities below one nat.
    time_limit : float
        Seconds after which the bracket is returned as it stands.
    """
    search = _Search(table, gap, time.monotonic() + time_limit * (1.0 - _FOR_PAIRS))
    upper = search.run([_Node(p, _distinct(slices)) for p, slices in enumerate(problems)])
    if upper > search.target and max(map(len, problems)) > 2:
        bound = _by_questions(table, problems, gap, time_limit * _FOR_PAIRS)
        upper = max(search.upper, min(upper, bound))
    return Selection(search.lower, upper, search.problem, search.choice, search.law)


def _distinct(slices: Sequence[Ints]) -> tuple[Ints, ...]:
    """Every slice sorted and without repetition; one object given twice stays one object."""
    seen = {id(rows): np.unique(rows) for rows in slices}
    return tuple(seen[id(rows)] for rows in slices)


def _by_questions(
    table: Floats, problems: Sequence[Sequence[Ints]], gap: float, time_limit: float
) -> float:
    """Bound selections of m rows by the mean number of questions times the best pair."""
    worst = 0.0
    share = time_limit / len(problems)
    for slices in problems:
        rows = np.unique(np.concatenate(slices))
        pair = best_selection(table, [[rows, rows]], gap, share).upper
        worst = max(worst, pair * mean_questions(len(slices)))
    return round_up(worst)


def mean_questions(m: int) -> float:
    """Mean length of a Huffman code for m equally likely values, the most for any m values."""
    depth = m.bit_length() - 1
    return depth + 2.0 - 2.0 ** (depth + 1) / m


class _Search:
    """Branch and bound over all problems, with the best selection so far."""

    def __init__(self, table: Floats, gap: float, deadline: float) -> None:
        self.table, self.gap, self.deadline = table, gap, deadline
        self.lower, self.upper, self.settled = 0.0, 0.0, 0.0
        self.problem, self.choice, self.law = 0, np.empty(0, np.int64), np.empty(0)
        self.q, self.c = np.zeros(table.shape[1]), np.zeros(table.shape[1])
        self.far = np.empty(len(table))

    @property
    def target(self) -> float:
        """What a bound must not exceed for its selections to be left alone."""
        return max(self.lower + self.gap * min(1.0, self.lower), self.upper)

    # Lower bounds.

    def evaluate(self, problem: int, choices: Ints) -> float:
        """Find capacities of selections (B, m); keep the best, return the largest upper end."""
        step, worst = max(1, _BATCH // (choices.shape[1] * self.table.shape[1])), 0.0
        for start in range(0, len(choices), step):
            part = choices[start : start + step]
            low, high, laws = capacities(self.table[part], 0.25 * self.gap)
            best, worst = int(low.argmax()), max(worst, float(high.max()))
            self.keep(problem, part[best], float(low[best]), float(high[best]), laws[best])
        return worst

    def keep(self, problem: int, choice: Ints, lower: float, upper: float, law: Floats) -> None:
        """Remember a selection if it is the best so far."""
        if lower > self.lower or not len(self.choice):
            self.lower, self.upper = lower, upper
            self.problem, self.choice, self.law = problem, choice, law
            self.q, self.c = self.output(choice, law)

    def output(self, rows: Ints, law: Floats) -> tuple[Floats, Floats]:
        """Output law of some rows of the table, as a sum of two."""
        q, c = np.empty(self.table.shape[1]), np.empty(self.table.shape[1])
        kernels.output_law(self.table[rows], law, q, c)
        return q, c

    def bound(self, node: _Node, q: Floats, c: Floats) -> float:
        """Bound all selections of a node by one law; leaves the divergences in ``far``."""
        union = node.slices[0]
        if any(rows is not union for rows in node.slices):
            union = np.unique(np.concatenate(node.slices))
        outputs = self.table.shape[1]
        task = partial(_divergences, self.table, union, q, c, self.far)
        return max(split(task, len(union), max(1, _GRAIN // outputs))) + _LEAST

    def furthest(self, node: _Node) -> Ints:
        """In each slice the row furthest from the law last used; equal slices share no row."""
        chosen: list[int] = []
        for rows in node.slices:
            order = np.argsort(-self.far[rows], kind="stable")[: len(chosen) + 1]
            free = [int(x) for x in rows[order] if int(x) not in chosen]
            chosen.append(free[0] if free else int(rows[order[0]]))
        return np.array(chosen)

    def climb(self, node: _Node, q: Floats, c: Floats) -> float:
        """Ascend from a law until selections repeat; the least bound met on the way."""
        least, last = math.inf, -1.0
        for _ in range(_ASCENT):
            least = min(least, self.bound(node, q, c))
            choice = self.furthest(node)
            low, high, law = capacities(self.table[choice][None], 0.25 * self.gap)
            self.keep(node.problem, choice, float(low[0]), float(high[0]), law[0])
            if low[0] <= last * (1.0 + 1e-12) or least <= self.target:
                break
            last = float(low[0])
            q, c = self.output(choice, law[0])
        return least

    # Upper bounds.

    def root(self, node: _Node) -> float:
        """First selections of a problem, and a bound from all its rows together."""
        if node.selections == 1:
            return self.evaluate(node.problem, np.stack(node.slices, axis=1))
        start = np.unique([rows[k] for rows in node.slices for k in (0, len(rows) // 2, -1)])
        least = self.climb(node, *self.output(start, np.full(len(start), 1.0 / len(start))))
        least = min(least, round_up(math.log(len(node.slices))))
        if least <= self.target or len(node.slices) == 2:
            return least
        union = np.unique(np.concatenate(node.slices))
        capacity, law = matrix_capacity(self.table[union], 0.25 * self.gap)
        self.evaluate(node.problem, _matched(node.slices, union, law)[None])
        return min(least, capacity.upper)

    def refine(self, node: _Node) -> float:
        """Bound a node by the law of the best selection, then by laws of its own."""
        least = self.bound(node, self.q, self.c)
        work = self.furthest(node)
        for _ in range(_ROUNDS):
            if least <= self.target:
                return least
            rows = np.unique(work)
            _, _, law = capacities(self.table[rows][None], 1e-3)
            least = min(least, self.bound(node, *self.output(rows, law[0])))
            choice = self.furthest(node)
            self.evaluate(node.problem, choice[None])
            work = np.concatenate([rows[law[0] > 0.0], choice])
        return least

    def listed(self, node: _Node) -> bool:
        """Whether to go through the selections of a node one by one."""
        if len(node.slices) > 2:
            return node.selections <= _LISTED
        rows = sum(map(len, node.slices))
        small = node.selections * self.table.shape[1] <= _PAIR_WORK
        return node.selections <= _PAIRS and (small or node.selections <= _PAIRS_PER_ROW * rows)

    def settle(self, node: _Node) -> None:
        """Go through all selections of a node, those first that may be best."""
        bounds = self._pairs(node) if len(node.slices) == 2 else self._tuples(node)
        flat = bounds.reshape(-1)
        alive = np.flatnonzero(flat > self.target)
        self.settled = max(self.settled, float(flat[flat <= self.target].max(initial=0.0)))
        alive = alive[np.argsort(-flat[alive])]
        step = max(1, min(4096, _BATCH // (len(node.slices) * self.table.shape[1])))
        for start in range(0, len(alive), step):
            if flat[alive[start]] <= self.target:
                self.settled = max(self.settled, float(flat[alive[start]]))
                break
            places = np.unravel_index(alive[start : start + step], bounds.shape)
            choices = [rows[k] for rows, k in zip(node.slices, places, strict=True)]
            worst = self.evaluate(node.problem, np.stack(choices, axis=1))
            self.settled = max(self.settled, worst)

    def _pairs(self, node: _Node) -> Floats:
        """Upper bounds on all pairs of rows; 0 below the diagonal of equal slices."""
        left, right = node.slices
        out = np.empty((len(left), len(right)))
        task = partial(_pair_bounds, self.table, left, right, out)
        split(task, len(left), max(1, _GRAIN // (len(right) * self.table.shape[1])))
        out += _LEAST
        return np.triu(out, 1) if left is right else out

    def _tuples(self, node: _Node) -> Floats:
        """Upper bounds on all selections, from two laws: the best one's and the node's."""
        least = np.full([len(rows) for rows in node.slices], math.inf)
        rows = self.furthest(node)
        _, _, law = capacities(self.table[np.unique(rows)][None], 1e-3)
        for q, c in ((self.q, self.c), self.output(np.unique(rows), law[0])):
            self.bound(node, q, c)
            far = [self.far[part] for part in node.slices]
            least = np.minimum(least, np.array(np.broadcast_arrays(*np.ix_(*far))).max(axis=0))
        up = 1.0 + (self.table.shape[1] + 128) * 2.0**-53
        return np.asarray(least * up + _LEAST)

    def parts(self, node: _Node) -> list[_Node]:
        """Split the slice whose rows reach furthest from the law last used."""
        reach = [self.far[rows].max() if len(rows) > 1 else -1.0 for rows in node.slices]
        a = int(np.argmax(reach))
        rows = node.slices[a]
        near, other = self.halves(rows)
        if len(node.slices) == 2 and node.slices[0] is node.slices[1]:
            made: list[tuple[Ints, ...]] = [(near, near), (near, other), (other, other)]
        else:
            made = [(*node.slices[:a], half, *node.slices[a + 1 :]) for half in (near, other)]
        return [node._replace(slices=slices) for slices in made]

    def halves(self, rows: Ints) -> tuple[Ints, Ints]:
        """Two clusters: rows closer to the one furthest away, and to the one furthest from it."""
        first = self.apart(rows, int(rows[self.far[rows].argmax()]))
        second = self.apart(rows, int(rows[first.argmax()]))
        nearer = first < second
        if not nearer.any() or nearer.all():  # rows too close to tell
            nearer = np.arange(len(rows)) < len(rows) // 2
        return rows[nearer], rows[~nearer]

    def apart(self, rows: Ints, center: int) -> Floats:
        """Triangular discrimination sum (v - w)^2/(v + w) between some rows and one."""
        found, step = np.empty(len(rows)), max(1, _BATCH // self.table.shape[1])
        w = self.table[center]
        for start in range(0, len(rows), step):
            v = self.table[rows[start : start + step]]
            found[start : start + step] = ((v - w) ** 2 / np.maximum(v + w, _LEAST)).sum(axis=1)
        return found

    def run(self, nodes: list[_Node]) -> float:
        """Return a bound on all selections of all nodes."""
        number = itertools.count()
        heap = [(-self.root(node), next(number), node) for node in nodes]
        heapq.heapify(heap)
        while heap and -heap[0][0] > self.target and time.monotonic() < self.deadline:
            above, _, node = heapq.heappop(heap)
            if self.listed(node):
                self.settle(node)
                continue
            self.refine(node)  # its last law tells where to split
            for part in self.parts(node):
                least = self.bound(part, self.q, self.c)
                if least > self.target and not self.listed(part):
                    least = min(least, self.refine(part))
                heapq.heappush(heap, (max(above, -least), next(number), part))
        open_ = -heap[0][0] if heap else 0.0
        return max(open_, self.settled, self.upper)


def _divergences(
    table: Floats, rows: Ints, q: Floats, c: Floats, out: Floats, start: int, stop: int
) -> float:
    """Write D(row, q + c) for some of the rows at their places in ``out``; the largest, up."""
    most, step = 0.0, max(1, _BATCH // len(q))
    for first in range(start, stop, step):
        part = rows[first : min(first + step, stop)]
        if part[-1] - part[0] == len(part) - 1:  # neighbours in the table need no copy
            most = max(most, kernels.row_divergences(table, q, c, part[0], part[-1] + 1, out))
        else:
            found = np.empty(len(part))
            laws = table[part]
            most = max(most, kernels.row_divergences(laws, q, c, 0, len(part), found))
            out[part] = found
    return most


def _pair_bounds(
    table: Floats, left: Ints, right: Ints, out: Floats, start: int, stop: int
) -> None:
    kernels.pair_bounds(table, left, right, start, stop, out)


def _matched(slices: Sequence[Ints], union: Ints, law: Floats) -> Ints:
    """Give slices the rows that carry most of a law over their union, each row once."""
    from scipy.optimize import linear_sum_assignment

    heavy = np.argsort(-law)[: 2 * len(slices)]
    weight = np.stack([np.where(np.isin(union[heavy], rows), law[heavy], -1.0) for rows in slices])
    choice = np.array([int(rows[0]) for rows in slices])
    for a, k in zip(*linear_sum_assignment(weight, maximize=True), strict=True):
        if weight[a, k] > 0.0:
            choice[a] = union[heavy[k]]
    return choice
