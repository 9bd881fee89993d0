"""Search for the largest information about one record under an entropy constraint."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Meter
from fastpriv._core.divergence import divergence
from fastpriv._core.rounding import raised, roundoff, sum_error
from fastpriv._core.search import BestFirst, bisect, golden
from fastpriv._core.validation import Floats
from fastpriv._core.warm_up import load_kernels
from fastpriv._matrices.searches.entropy_parts import (
    FEW_INPUTS,
    Bit,
    Box,
    Boxes,
    Cell,
    Individual,
    Node,
    Problem,
    gibbs,
    prove_line,
    setup_work,
)
from fastpriv.results import Bracket

# An input of two values: no search.
#
# The distributions (t, 1-t) with an entropy of at least b are those with x <= t <= 1-x. The
# information is concave in t. For any output distribution q it is at most t D(W_0 || q) + (1-t)
# D(W_1 || q), which is linear in t. If q is the output distribution at t = x or t = 1-x, this bound
# equals the information there.


def bit_capacity(rows: Floats, b: float, most: float) -> Bracket:
    """Bracket the largest I(X; Y) with H(X) >= b for two rows; it is at most ``most``.

    Cost O(K), without a search.
    """
    inner, outer = bit_ends(b)
    lower = max(t * d + (1.0 - t) * e for t in inner for d, e in [_divergences(rows, t)])
    error = sum_error(rows.shape[1], 192)
    tops = []
    for t in outer:
        d, e = _divergences(rows, t)
        tops.append(max(s * d + (1.0 - s) * e for s in outer))
    upper = min(min(tops) * (1.0 + error), most)
    return Bracket(min(lower * (1.0 - error), upper), upper)


def bit_ends(b: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the ends of the range of t, moved inwards and outwards by the entropy's rounding."""
    x = bisect(lambda t: _entropy(t) < b, 0.0, 0.5)[1]
    inner, outer = _moved(x, 0.5, b), _moved(x, 0.0, b)
    return (inner, 1.0 - inner), (outer, 1.0 - outer)


def _entropy(t: float) -> float:
    return -t * math.log(t) - (1.0 - t) * math.log1p(-t)


def _moved(x: float, end: float, b: float) -> float:
    """Move x towards ``end`` until its entropy is certainly on that side of b."""
    step = roundoff(4.0) * x
    while abs(end - x) > step:
        x += math.copysign(step, end - x)
        if abs(_entropy(x) - b) >= roundoff(16.0) * b:
            return x
        step *= 2.0
    return end


def _divergences(rows: Floats, t: float) -> tuple[float, float]:
    """Return D of both rows from their mixture with weights t and 1-t."""
    apart = rows[0] - rows[1]
    q = t * rows[0] + (1.0 - t) * rows[1]
    return (
        divergence(rows[0], q, (1.0 - t) * apart),
        divergence(rows[1], q, -t * apart),
    )


# One record: the database is the record, so that the problem is concave.

#: Gains of a step, as shares of the width wanted, at which an ascent stops to be compared.
_GAINS = 1e-2, 1e-4, 1e-6
#: Steps of an ascent.
_RECORD_STEPS = 2000
#: Probabilities below do not help to find t.
_TINY = 1e-300


def record_capacity(
    rows: Floats, b: float, gap: float, most: float
) -> tuple[Bracket, Floats] | None:
    """Bracket the largest I(X; Y) with H(X) >= b, with the prior of its lower bound.

    None if ascents do not meet the gap.

    An ascent from the uniform distribution leads to the maximum p. The bound of the whole database
    below is tight at its output distribution q and the t with D(W_x || q) = t ln p_x + constant.
    """
    rows = np.ascontiguousarray(rows[:, rows.any(axis=0)])
    size, outputs = rows.shape
    p, r = np.full(size, 1.0 / size), rows.mean(axis=0)
    q, c, above = np.empty(outputs), np.empty(outputs), np.empty(size)
    apart, logs, edges = rows - r, np.zeros(size), np.arange(size + 1)
    for gain in _GAINS:
        kernels.entropy_climb(p, apart, r, logs, edges, b, _RECORD_STEPS, gain * gap * most)
        inside = _with_entropy(p, b)
        off = kernels.output_law(rows, inside, q, c)
        kernels.row_divergences(rows, q, c, 0, size, above)
        value = float(inside @ above) / float(inside.sum())
        lower = max(value * (1.0 - sum_error(outputs + 2 * size, 136)) - off, 0.0)
        upper = min(_gibbs_bound(above * (1.0 + sum_error(outputs, 132)), inside, b), most)
        if upper - lower <= gap * min(1.0, lower):
            return Bracket(lower, max(lower, upper)), inside / math.fsum(inside)
    return None


def _with_entropy(p: Floats, b: float) -> Floats:
    """Mix a distribution with the uniform one until its entropy is certainly at least b."""
    size = len(p)
    doubt, share, mixed = sum_error(size, 16) * (math.log(size) + 1.0), 0.0, p
    while share < 1.0:
        law = mixed[mixed > 0.0] / math.fsum(mixed)
        if -math.fsum(law * np.log(law)) - doubt >= b:
            return mixed
        share = min(max(2.0 * share, 2.0**-50), 1.0)
        mixed = (1.0 - share) * p + share / size
    return np.full(size, 1.0 / size)


def _gibbs_bound(above: Floats, p: Floats, b: float) -> float:
    """Return t ln sum_x e^(D_x/t) - t b, rounded up, for the t that suits p; infinite without."""
    seen = p > _TINY
    depths = np.log(p[seen])
    depths -= p[seen] @ depths
    spread = float(p[seen] @ depths**2)
    t = float(p[seen] @ (above[seen] * depths)) / spread if spread > 0.0 else 0.0
    top = float(above.max())
    if not t > _TINY * max(top, 1.0):
        return math.inf
    total = math.log(math.fsum(np.exp((above - top) / t)))
    size = top + t * (total + b + 1.0)
    return top + t * (total - b) + sum_error(len(p), 32) * size


# The whole database.
#
# For any output distribution q and any t > 0, and inputs x that stand for k_x databases each,
#
#     max {I(X; Y): H(X) >= b} <= t ln sum_x k_x e^(D(W_x || q)/t) - t b.
#
# It bounds what the output reveals about one record. It costs O(inputs outputs) for each q and t,
# so that it is there for queries with thousands of answers.

#: Range of ln t.
_COLDEST_DATABASE = -16.0
_WARMEST_DATABASE = 2.0
#: Width to which the range is halved: 16 steps.
_NARROW = 18.0 * 2.0**-16
#: Most steps of the ascent for one t.
_ASCENT = 300
#: Factors by which steps are lengthened and shortened.
_FASTER = 1.3
_SLOWER = 2.0
#: Relative gain below which an ascent ends.
_STALLED = 1e-6
#: Output probabilities below are raised to this one, which raises the bound.
_FLOOR = 1e-290
#: Units of work of a step, for each entry.
_STEP = 8


def database_bound(individual: Individual, b: float, meter: Meter, deadline: float) -> float:
    """Bound I(X; Y) over distributions of the inputs with H(X) >= b. Infinite if there is no time.

    For one t the distribution that maximises I + t H is a fixed point of p_x ~ k_x e^(D(W_x ||
    q)/t), q = p W. Steps of Blahut and Arimoto move ln p by a share t/(1 + t) of the way. They are
    lengthened while the bound falls. The entropy of the fixed point grows with t.
    """
    W, logs = individual.W, individual.logs
    own = np.where(W > 0.0, W * np.log(np.maximum(W, _FLOOR)), 0.0).sum(axis=1)
    best, weights = math.inf, np.log(np.maximum(individual.best[1], _FLOOR))

    def short_of_entropy(log_t: float) -> bool:
        """Ascend for one t; whether the fixed point has less entropy than b."""
        nonlocal best, weights
        t, last, pace = math.exp(log_t), math.inf, 1.0
        for _ in range(_ASCENT):
            if meter.used() >= deadline:
                break
            meter.spend(_STEP * W.size)
            p = gibbs(weights)
            q = np.maximum(p @ W, _FLOOR)
            far = own - W @ np.log(q) + (q.sum() - 1.0)
            now = _database_bound(far, logs, t, b - individual.doubt, W.shape[1])
            pace = _FASTER * pace if now < last else max(1.0, pace / _SLOWER)
            if 0.0 <= last - now <= _STALLED * now:
                break
            best, last, share = min(best, now), now, min(pace * t / (1.0 + t), 1.0)
            weights = (1.0 - share) * np.log(np.maximum(p, _FLOOR)) + share * (logs + far / t)
        return individual.entropy(gibbs(weights)) < b

    bisect(short_of_entropy, _COLDEST_DATABASE, _WARMEST_DATABASE, absolute=_NARROW)
    return best


def _database_bound(far: Floats, logs: Floats, t: float, b: float, outputs: int) -> float:
    """Return t ln sum e^(far/t + logs) - t b, rounded up."""
    scores = far / t + logs
    top = float(scores.max())
    value = t * (top + math.log(math.fsum(np.exp(scores - top))) - b)
    size = float(np.abs(far).max()) + t * (abs(top) + abs(b) + float(np.abs(logs).max()) + 1.0)
    rough = float(np.abs(far).max()) + math.log(1.0 / _FLOOR)  # of the two parts of a divergence
    return value + sum_error(2 * outputs, 64) * rough + sum_error(len(far), 64) * size


# A bound that removes records one by one.
#
# Let A be the bit, Z its own output, and let records X_1 .. X_k have outputs Y_1 .. Y_k. Their
# outputs are independent given the records. With Q the probability of A = 1 given Y_1 .. Y_k and
# f(Q) minus the mean entropy of A given Z,
#
#     I(A; Z, Y) + t H(A, X) = (1 + t) H(A) + E f(Q) + t sum_j H(X_j | A, X_1 .. X_(j-1)).
#
# The last record has H(X_k | A, X_1 ..) <= H(X_k | A, Y_1 .. Y_(k-1)). So its two terms are at most
# E F(Q), with Q given the outputs before, for
#
#     F(Q) = max over distributions of X_k given A of E f(Q after Y_k) + t H(X_k | A),
#
# and the records are removed one by one. If f is the largest of some lines, then so is F. For a
# choice of a line for each output, the best distribution of X_k given A = a has a closed form that
# does not depend on Q. Lines are replaced by the chords of F between points of a grid, which
# lie above the convex F.

#: Points of a grid for the search of t.
_COARSE = 41
#: Fewest and most points afterwards; about as many products as all records may take.
_LEAST = 41
_MOST = 241
_PRODUCTS = 4e8
#: Range of ln t, and steps of the search: they leave 1e-4 of the range.
_COLDEST = -14.0
_WARMEST = 3.0
_STEPS = 24


def peeled_bound(look: Floats, others: list[Floats], b: float) -> float:
    """Bound I of a bit and all outputs over distributions with H >= b, rounded up.

    ``look`` has the two output distributions of the bit itself, ``others`` the matrices of the
    other records, with two outputs each. Cost O(records points^3).
    """
    x, value = golden(  # the bound is convex in t
        lambda x: _peeled_at(look, others, b, math.exp(x), _COARSE), _COLDEST, _WARMEST, _STEPS
    )
    points = round((_PRODUCTS / max(1, len(others))) ** (1.0 / 3.0))
    points = min(max(points, _LEAST), _MOST)
    return min(value, _peeled_at(look, others, b, math.exp(x), points))


def _peeled_at(look: Floats, others: list[Floats], b: float, t: float, points: int) -> float:
    """Return the bound for one t, rounded up."""
    nodes = 0.5 - 0.5 * np.cos(np.linspace(0.0, math.pi, points))
    nodes[0], nodes[-1] = 0.0, 1.0
    values = _told(nodes, look)
    one, zero = _chords(nodes, values)
    for k, kernel in enumerate(others):
        one, zero = _peel(one, zero, kernel, t)
        if k + 1 < len(others):
            values = np.array([(q * one + (1.0 - q) * zero).max() for q in nodes])
            one, zero = _chords(nodes, values)
    scale = 1.0 + t
    most = scale * np.logaddexp(one / scale, zero / scale)
    size = np.abs(one).max() + np.abs(zero).max() + scale * (1.0 + b)
    return float(most.max() - t * b + roundoff(64.0) * size)


def _told(q: Floats, look: Floats) -> Floats:
    """Return minus the mean entropy of a bit of prior probability q given its own output."""
    total = np.zeros_like(q)
    for first, second in look.T.tolist():
        u, v = q * first, (1.0 - q) * second
        seen = (u > 0.0) & (v > 0.0)
        u, v = np.where(seen, u, 1.0), np.where(seen, v, 1.0)
        total -= np.where(seen, u * np.log1p(v / u) + v * np.log1p(u / v), 0.0)
    return total


def _chords(nodes: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the values at 1 and at 0 of lines that are nowhere below the chords."""
    slopes = np.diff(values) / np.diff(nodes)
    one, zero = values[:-1] + slopes * (1.0 - nodes[:-1]), values[:-1] - slopes * nodes[:-1]
    doubt = roundoff(32.0) * (1.0 + np.abs(values).max() + np.abs(one) + np.abs(zero))
    for q, value in ((nodes[:-1], values[:-1]), (nodes[1:], values[1:])):
        doubt = np.maximum(doubt, value - (q * one + (1.0 - q) * zero) + doubt)
    return one + doubt, zero + doubt


def _peel(one: Floats, zero: Floats, kernel: Floats, t: float) -> tuple[Floats, Floats]:
    """Return the lines of F, one for each choice of a line of f for each of two outputs."""

    def best(line: Floats) -> Floats:
        """Return t ln sum_x e^(mean over the outputs/t), for both outputs' lines."""
        means = kernel[:, 0, None, None] * line[:, None] + kernel[:, 1, None, None] * line
        top = means.max(axis=0)
        value = top + t * np.log(np.exp((means - top) / t).sum(axis=0))
        size = np.abs(line).max() + t * math.log(len(kernel) + 1.0)
        return np.asarray(value + 16.0 * sum_error(len(kernel), 4) * size).reshape(-1)

    return best(one), best(zero)


# The search.

#: Share of the gap that a search aims at, so that rounding does not carry it beyond.
_WITHIN = 1.0 - 2.0**-20
#: Ascents from random distributions.
_STARTS = 24
#: Parts of a search between two ascents; simplices take about a hundred times longer than others.
_SIMPLICES_PER_ASCENT = 8
_CELLS_PER_ASCENT = 500
#: Most outputs of a bit that is searched by its posteriors. Beyond, there are too many cells.
_OUTPUTS = 16
#: Smallest information for posteriors and boxes. Below, H(A) and H(A|Y) cancel.
_LEAST_INFORMATION = 1e-8
#: Most inputs of a record that is searched by boxes. Beyond, there are too many.
_BOXED = 64
#: Most variables of a bound over slices: Newton's method takes the cube of them.
_VARIABLES = 400
#: Variables up to which a bound counts as cheap.
_QUICK = 100
#: Seconds past a time limit after which not even these are begun.
_GRACE = 0.3
#: Share of the limit for a first look at every search. Many problems need no more.
_GLANCE = 0.01
#: Shares of the limit in which every search shows what it can do; the tightest has the rest.
_TRIAL_OF_BOXES = 0.1
_TRIAL = 0.2
#: Most units of work of the trial of boxes.
_BOXES = 3e9
#: Most records that are peeled off.
_PEELED = 64
#: Units of work for each of them.
_PEEL = 1e8
#: Units of work of a search without a time limit.
_WORK = 1e9
#: Units of work of an ascent, for each entry of the matrix.
_CLIMB = 4000

#: A part of the priors of one individual.
P = TypeVar("P", Box, Cell, Node)


class Constrained:
    """The records of a channel, and the largest information about one of them for any b."""

    def __init__(self, individuals: list[Individual]) -> None:
        self.individuals = individuals

    @classmethod
    def of_matrix(cls, matrix: Floats, sizes: tuple[int, ...]) -> Constrained:
        """Return the records of a database; of records with equal roles, one."""
        table = matrix[:, matrix.any(axis=0)].reshape(*sizes, -1)
        kept: list[int] = []
        for i, m in enumerate(sizes):
            twins = (j for j in kept if sizes[j] == m)
            if (m > 1 or len(matrix) == 1) and not any(_swap(table, i, j) for j in twins):
                kept.append(i)
        return cls([Individual(_slices(table, i)) for i in kept])

    def near_uniform(self, r: float) -> Bracket:
        """Bound the largest information over priors p with D(p || u) <= r, u the uniform one.

        Let A be the record. Then
        I_p(A; Y) <= D(p_AY || u_A u_Y) = D(p_AY || u_AY) + E_p ln u_AY/(u_A u_Y). The first term is
        at most r. By Pinsker's inequality the second is at most I_u and sqrt(r/2) times the range
        of its means given the database.
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
    """Whether exchanging two records only permutes the outputs."""
    swapped = np.swapaxes(table, i, j)
    columns = [np.ascontiguousarray(t.reshape(-1, t.shape[-1]).T) for t in (table, swapped)]
    before, after = (sorted(column.tobytes() for column in part) for part in columns)
    return before == after


def _slices(table: Floats, i: int) -> list[tuple[Floats, Floats]]:
    """Return distinct output distributions for each value of record i, with multiplicities."""
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
        self.meter = Meter(time_limit, _WORK)
        self.lower, self.seen = 0.0, 0

    @property
    def floor(self) -> float:
        """The value that an upper bound has to reach."""
        return self.lower + _WITHIN * self.gap * min(1.0, self.lower)

    @property
    def reach(self) -> float:
        """The accuracy to which bounds are computed, well within the gap."""
        return 0.1 * self.gap * min(1.0, self.lower)

    def deadline(self, share: float) -> float:
        """Return the reading of the meter at a fraction of the limit."""
        return share * self.meter.limit

    def too_late(self, individual: Individual) -> bool:
        """Whether the limit is used up. Bounds that take no time are not left out, but for many."""
        over = individual.variables > _QUICK and self.meter.used() >= self.deadline(1.0)
        return over or (individual is not self.individuals[0] and self.meter.overdue(_GRACE))

    def climb(self, individual: Individual, p: Floats) -> None:
        """Ascend from p, and keep the distribution if its information exceeds the best so far."""
        self.meter.spend(_CLIMB * individual.W.size)
        law = individual.climb(p, self.b)
        value = individual.information(law)[0]
        if value > individual.best[0]:
            individual.best = value, law
        self.lower = max(self.lower, value)

    def run(self) -> Bracket:
        """Return the lower and the upper bound."""
        rng = np.random.default_rng(0)  # used only to choose starting points
        for individual in self.individuals:
            last = individual.best[1]
            individual.best = 0.0, individual.even
            if individual is self.individuals[0] or not self.meter.overdue(_GRACE):
                starts = [individual.even, last][: 1 + (last is not individual.even)]
                for p in [*starts, *self.random_starts(individual, rng, 1)]:
                    self.climb(individual, p)
        if self.most > self.floor:
            self.direct_bounds()
        if self.most > self.floor:
            self.load("entropy_climb", "widest_edge")
            end = self.meter.used() + self.deadline(0.2)
            for individual in self.individuals:
                for p in self.random_starts(individual, rng, _STARTS):
                    if self.meter.used() >= end:
                        break
                    self.climb(individual, p)
        upper = self.most
        if upper > self.floor:
            upper = min(upper, self.bound())
        return Bracket(self.lower, max(upper, self.lower))

    def random_starts(
        self, individual: Individual, rng: np.random.Generator, count: int
    ) -> list[Floats]:
        """Return random distributions: the uniform one may be a saddle point."""
        return list(rng.dirichlet(np.full(len(individual.W), 0.3), count))

    def load(self, *names: str) -> None:
        """Load or compile kernels, which does not count."""
        with self.meter.stopped():
            load_kernels(*names)

    def direct_bounds(self) -> None:
        """Lower ``most`` by the bounds that need no search."""
        if any(len(individual.W) > FEW_INPUTS for individual in self.individuals):
            self.most = min(self.most, self.by_database(self.individuals))
        if all(map(self.peels, self.individuals)):
            self.most = min(self.most, self.by_rows(self.individuals))

    def bound(self) -> float:
        """Return an upper bound over all individuals, by a search."""
        few = [individual for individual in self.individuals if self.few(individual)]
        rest = [individual for individual in self.individuals if individual not in few]
        level = self.race(few, self.deadline(0.5 if rest else 1.0)) if few else 0.0
        if rest:
            level = max(level, self.race(rest, self.deadline(1.0)))
        return min(self.most, level)

    def race(self, individuals: list[Individual], end: float) -> float:
        """Search in several ways for a while each, and go on with the one that is tightest."""
        begin, best, leader = self.meter.used(), self.most, None
        searches = self.searches(individuals)
        trees: dict[int, BestFirst[Any] | None] = {}
        for most in (_GLANCE, 1.0):
            for k, (search, share) in enumerate(searches):
                until = self.meter.used() + min(share, most) * (end - begin)
                if k not in trees:
                    trees[k] = search(individuals)
                tree = trees[k]
                if tree is None:
                    continue
                if (level := self.grown(tree, until)) < best:
                    best, leader = level, tree
                if best <= self.floor:
                    return best
        return best if leader is None else min(best, self.grown(leader, end))

    def searches(
        self, individuals: list[Individual]
    ) -> list[tuple[Callable[[list[Individual]], BestFirst[Any] | None], float]]:
        """Return the searches that suit individuals, with the shares of the time to try them."""
        boxed = all(len(each.W) <= _BOXED for each in individuals)
        suitable: list[tuple[Callable[[list[Individual]], BestFirst[Any] | None], float]] = []
        if all(map(self.few, individuals)):
            suitable.append((self.by_posteriors, _TRIAL))
        if boxed and self.lower > _LEAST_INFORMATION:
            share = min(_TRIAL_OF_BOXES, _BOXES / max(self.meter.room(), 1.0))
            suitable.append((self.by_boxes, share))
        suitable.append((self.by_slices, _TRIAL))
        return suitable

    def grown(self, tree: BestFirst[Any], end: float) -> float:
        """Go on with a search until some time, and return its bound."""
        return tree.run(lambda: self.floor, lambda: self.meter.used() >= end)

    def tree(self, parts: list[P], owner: Callable[[P], Individual], often: int) -> BestFirst[P]:
        """Return a best-first search over parts, with an ascent for every ``often`` of them."""

        def split(part: P) -> list[P]:
            self.seen += 1
            if self.seen % often == 0:
                self.climb(owner(part), part.p)
            self.meter.spend(part.work)
            children = part.children(self.floor) if part.bound > self.floor else []
            if not children:  # rounding hides what the bound misses
                search.close(part.bound)
            for child in children:
                if child.bound <= self.floor:
                    search.close(child.bound)
            return [child for child in children if child.bound > self.floor]

        search: BestFirst[P] = BestFirst(parts, split)
        return search

    def few(self, individual: Individual) -> bool:
        """Whether the posteriors of an individual are worth a search."""
        return (
            len(individual.slices) == 2
            and len(individual.W) > 2
            and individual.rest.shape[1] <= _OUTPUTS
            and self.lower > _LEAST_INFORMATION
        )

    def peels(self, individual: Individual) -> bool:
        """Whether there is a record-by-record bound, and time for it."""
        left = self.meter.room()
        return (
            len(individual.slices) == 2
            and 0 < len(individual.others) <= _PEELED
            and all(kernel.shape[1] == 2 for kernel in individual.others)
            and left > _PEEL * len(individual.others)
        )

    def by_rows(self, individuals: list[Individual]) -> float:
        """Return an upper bound if the record is a bit and the others have two outputs each."""
        tops = []
        for each in individuals:
            self.meter.spend(_PEEL * len(each.others))
            tops.append(peeled_bound(each.look, each.others, self.b - each.doubt))
        return max(tops)

    def by_boxes(self, individuals: list[Individual]) -> BestFirst[Box] | None:
        """Return the search over boxes of priors, None if there is no time."""
        boxes: list[Box] = []
        self.load("box_bound")
        for individual in individuals:
            if self.too_late(individual):
                return None
            boxes.append(Boxes(individual, self.b).root(self.floor))
        return self.tree(boxes, lambda box: box.problem.individual, _CELLS_PER_ASCENT)

    def by_posteriors(self, individuals: list[Individual]) -> BestFirst[Cell] | None:
        """Return the search over cells of the posteriors of bits, None if there is no time."""
        cells: list[Cell] = []
        if self.meter.too_late(sum(map(setup_work, individuals))):
            return None
        self.load("posterior_bound")
        for individual in individuals:
            if self.too_late(individual):
                return None
            cells.append(Bit(individual, self.b).root(self.floor, self.reach))
        return self.tree(cells, lambda cell: cell.problem.individual, _CELLS_PER_ASCENT)

    def by_slices(self, individuals: list[Individual]) -> BestFirst[Node] | None:
        """Return the search over simplices of slices, None if there is no time."""
        nodes, owners = [], {}
        if any(individual.variables > _VARIABLES for individual in individuals):
            return None
        self.load("entropy_bound", "pair_contractions")
        for individual in individuals:
            if self.too_late(individual):
                return None
            node = self.root(individual)
            owners[id(node.problem)] = individual
            nodes.append(node)
        return self.tree(nodes, lambda node: owners[id(node.problem)], _SIMPLICES_PER_ASCENT)

    def root(self, individual: Individual) -> Node:
        """Bound over all priors of an individual, after a search of its single slices.

        Slices are searched at the output distribution and the multiplier of the best prior, if
        every slice by itself seems to reveal most there: then nothing is lost.
        """
        problem = Problem(individual.slices, individual.E, self.b - individual.doubt)
        law = individual.best[1]
        node = self.whole(individual, problem, law)
        d, t = law @ individual.E, individual.multiplier(law)
        if node.bound <= self.floor or self.meter.used() >= self.meter.limit:
            return node
        if self.meter.too_late(individual.separation_work()) or not individual.separates(law, d, t):
            return node
        share = _TRIAL * self.meter.limit / (2 * len(individual.slices) * len(self.individuals))
        lines = [part.proved for part in individual.slices]
        for part, own in zip(individual.slices, problem.split(node.p), strict=True):
            if len(part.rows) > 1:
                until = min(self.meter.used() + share, self.meter.limit)
                prove_line(part, own, d, t, self.reach, self.meter, until)
        better = self.whole(individual, problem, node.p)
        if better.bound < node.bound:
            return better
        for part, line in zip(individual.slices, lines, strict=True):
            part.proved = line
        return node

    def whole(self, individual: Individual, problem: Problem, p: Floats) -> Node:
        """Bound over all priors, with tangents at p, and ascend from the maximiser."""
        node = problem.root(p, problem.ample(), self.floor, self.reach)
        self.climb(individual, node.p)
        return node

    def by_database(self, individuals: list[Individual]) -> float:
        """Return an upper bound from the information about the whole database."""
        end = self.deadline(0.5)
        return max(database_bound(each, self.b, self.meter, end) for each in individuals)
