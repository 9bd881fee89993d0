"""Selections of one row from each of several slices that may carry more than a given level.

Let the values be split into A and B, and let t be the probability of A. The information of the
output is the information about the part, plus the information within the parts:

    I <= F(t) + t C_A + (1 - t) C_B,

where F(t) is the most that two rows reveal at weights t and 1 - t, because information is convex in
the channel. It is at most the entropy of t, and the capacity of the best pair of rows. So if a
selection carries more than a level, each j of its rows carry more than a level for j rows, which
follows from this and from a bound on the capacity of the other m - j rows. Pairs of rows below the
level for two are incompatible. The compiled search lists the selections of compatible rows.

Affinities Z_ab = sum_y sqrt(W_a(y) W_b(y)) of pairs bound the capacity of k rows. For a
distribution on k values let s be the sum of sqrt(p_a p_b) over pairs, and H the entropy. For every
l > 0 let K(l) be the largest l s - H. Applied to the values given an output, and averaged,

    I <= H(p) - l sum_(a < b) sqrt(p_a p_b) Z_ab + K(l).

The bound falls in every Z_ab. It is used in two ways. If all Z_ab are at least z, the largest
H(p) - l z s(p) remains. And if no p_a is below some t, let S be the sum of all Z_ab and D the sum
of squares of the deviations of the rows' sums from their mean. Then for every T <= S

    I <= ln k + K(l) - l T/k + l^2 (T/S)^2 D/(4 k A),   A = c - l/2 - l T/k > 0,

with c = (2 u^2 ln u - u^2 + 1)/(u - 1)^2, u = sqrt(k t). The proofs are on the page "Individuals"
of the documentation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.rounding import log_up, lowered, raised, round_up, well_below
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities, matrix_capacity

if TYPE_CHECKING:
    from fastpriv._matrices.searches.selection import Laws, Node, Search


# Bounds by affinities.

#: Cells of a range of angles.
_ANGLES = 1 << 13
#: Bounds the effect of rounding and of the sums of rows.
_SLACK = 1e-12
#: Values of l (times k/4, which is 1 for rows that hardly differ) and of t that are tried.
_SLOPES = tuple(0.3 + 0.1 * j for j in range(13))
_LEAST = (0.005, 0.01, 0.02, 0.04, 0.07, 0.1)
#: The same as shares of 1/k, for rows that are all alike.
_EVEN = (0.02, 0.1, 0.25, 0.4)
#: Ratio of D to the square of S that a test should allow for.
_UNEVEN = 0.012


def binary_entropy(t: Floats) -> Floats:
    """Return the entropy of distributions (t, 1 - t)."""
    inner, outer = np.clip(t, 1e-300, 1.0), np.clip(1.0 - t, 1e-300, 1.0)
    return np.asarray(-inner * np.log(inner) - outer * np.log(outer))


def pair_limit(t: Floats, z: float) -> Floats:
    """Bound the information of two rows of affinity at least z, at weights t and 1 - t.

    With r = 2 sqrt(t (1 - t)), and e(r) the entropy h(t), this is e(r) - e(r z): e is convex.
    """
    r = 2.0 * np.sqrt(np.clip(t * (1.0 - t), 0.0, 0.25)) * z
    less = 0.5 * r**2 / (1.0 + np.sqrt(np.clip(1.0 - r**2, 0.0, 1.0)))  # 2 sqrt(less (1-less)) = r
    return np.asarray(binary_entropy(t) - binary_entropy(less) + _SLACK)


def _largest(k: int, weight: float, sign: float, fixed: int = 0, least: float = 0.0) -> float:
    """Bound the largest sign (l s - H) over k values with few different probabilities.

    ``fixed`` values have the probability ``least``, j others have u and the rest v, both at least
    ``least``. Roots of u and v lie on an ellipse. Over a cell of its angle, bounds of the terms add
    up to bounds of s. H is concave in u, so it is smallest at a bound of u.
    """
    worst, free, mass = -math.inf, k - fixed, 1.0 - fixed * least
    first, still = fixed * math.sqrt(least), float(fixed * _term(np.array(least)))
    for j in range(1, max(free, 2)):
        rest = free - j
        low = math.asin(math.sqrt(min(rest * least / mass, 1.0)))
        high = math.acos(math.sqrt(min(j * least / mass, 1.0))) if rest else 0.0
        angles = np.linspace(low, max(low, high), _ANGLES + 1)
        roots = np.cos(angles) * math.sqrt(mass / j)  # falling
        others = np.sin(angles) * math.sqrt(mass / max(rest, 1))  # rising
        u, v = roots**2, others**2
        if sign > 0.0:
            total = first + j * roots[:-1] + rest * others[1:]
            entropy = still + j * _term(u) + rest * _term(v)
            value = weight * (0.5 * (total**2 - 1.0)) - np.minimum(entropy[1:], entropy[:-1])
        else:
            total = first + j * roots[1:] + rest * others[:-1]
            entropy = still + j * _top(u) + rest * _top(v)
            value = entropy - weight * np.maximum(0.5 * (total**2 - 1.0), 0.0)
        worst = max(worst, float(value.max()))
    return worst + _SLACK


def _term(x: Floats) -> Floats:
    """Return -x ln x."""
    return np.asarray(-x * np.log(np.maximum(x, 1e-300)))


def _top(x: Floats) -> Floats:
    """Return the largest -x ln x over every cell between two neighbours."""
    low, high = np.minimum(x[1:], x[:-1]), np.maximum(x[1:], x[:-1])
    return np.asarray(raised(_term(np.clip(1.0 / math.e, low, high)), 12.0))


@cache
def excess(k: int, slope: float) -> float:
    """Bound K(l), the largest l s - H over distributions on k values.

    The derivative of l s is infinite if a probability is 0. Inside, l S/(2 x) + 2 ln x with
    x = sqrt(p_a) has one value, so that there are at most two different probabilities.
    """
    return _largest(k, slope, 1.0)


def alike_limit(k: int, z: float) -> float:
    """Bound the capacity of k rows, any two with an affinity of at least z.

    Either some p_a is below t, so that I <= F(p_a) + (1 - p_a) C with the capacity C of the other
    rows. Or none is, and the largest H - l z s has at most two probabilities above
    t. Cost O(k^2) for every cell, l and t.
    """
    if k < 2:
        return 0.0
    best = math.log(k)
    if k == 2:
        return raised(min(best, float(pair_limit(np.array(0.5), z))), 8.0)
    fewer = alike_limit(k - 1, z)
    for t in _EVEN:
        grid = np.linspace(0.0, t / k, 257)
        rare = float((pair_limit(grid[1:], z) + (1.0 - grid[:-1]) * fewer).max())
        if rare >= best:
            continue
        for share in _SLOPES:
            slope = share * 4.0 / k
            even = max(_largest(k, slope * z, -1.0, j, t / k) for j in range(k))
            best = min(best, max(rare, even + excess(k, slope)))
    return raised(best + _SLACK, 8.0)


class Test(NamedTuple):
    """Numbers of a test whether affinities prove that k rows carry at most a level.

    They do if S > least and D <= S^2 w(min(S, best)), w(T) = scale (room - share T)(T -
    least)/T^2, and if no k - 1 of the rows carry more than ``parts``.
    """

    least: float
    best: float
    room: float
    share: float
    scale: float
    parts: float


#: A test that proves nothing.
NEVER = Test(math.inf, math.inf, 0.0, 0.0, 0.0, 0.0)


def part_limit(level: float, t: float) -> float:
    """Bound the capacity of k - 1 rows so that k rows with some p_a <= t carry at most a level.

    I <= h(p_a) + (1 - p_a) C with the capacity C of the others, and this rises in p_a while
    C <= ln((1 - t)/t).
    """
    h = float(binary_entropy(np.array(t))) + _SLACK
    return min((level - h) / (1.0 - t) - _SLACK, math.log((1.0 - t) / t))


def sum_test(k: int, level: float, parts: float) -> Test:
    """Return the test for k rows and a level that allows for k - 1 rows that carry ``parts``.

    Among the l and t that allow for them, those are taken that prove most.
    """
    found, reach = NEVER, math.inf
    for least in _LEAST:
        most = part_limit(level, least)
        if k * least > 0.9 or most < parts:
            continue
        u = math.sqrt(k * least)
        c = (2.0 * u * u * math.log(u) - u * u + 1.0) / (u - 1.0) ** 2 - _SLACK
        for share in _SLOPES:
            slope = share * 4.0 / k
            room, rate = c - 0.5 * slope, slope / k
            start = (math.log(k) + excess(k, slope) - level + _SLACK) / rate
            if start <= 0.0 or start * rate >= room:
                continue
            T = np.linspace(start, room / rate, 65)[1:-1]
            w = 4.0 / slope * (room - rate * T) * (T - start) / T**2
            enough = np.flatnonzero(w >= _UNEVEN)
            if len(enough) and T[enough[0]] < reach:
                reach = float(T[enough[0]])
                scale = well_below(4.0 / slope)
                found = Test(start, float(T[w.argmax()]), room, rate, scale, most)
    return found


# Lists of selections above a level.

#: Most rows that pairs are formed of.
_ROWS = 1 << 12
#: Units of work for each pair and output.
_PAIR = 24
#: Pairs below this share of the largest capacity of a pair are bounded roughly.
_NEAR = 0.25
#: Fraction of rows outside above which they are not tried first.
_SPLIT = 0.5
#: Share of the pairs that a test of three rows allows for.
_MOST = 0.98
#: Cells of the range of a weight.
_CELLS = 2048
#: Words of 64 distributions that each row is compared with.
_WORDS = 4
#: Selections that are listed at once.
_LISTED = 256
#: Candidates between two checks of the time.
_BUDGET = 1 << 22


def mean_questions(m: int) -> float:
    """Bound the mean length of a Huffman code for m values: equal weights are the worst."""
    depth = m.bit_length() - 1
    mean = depth + 2.0 - 2.0 ** (depth + 1) / m
    return mean if m == 1 << depth else raised(mean, 4.0)


def pair_work(rows: int, outputs: int) -> float:
    """Units of work of the bounds on all pairs of rows, infinite if they do not fit."""
    return float(_PAIR * rows * rows * outputs) if rows <= _ROWS else math.inf


class Cliques:
    """Rows of a table, with bounds on the capacities of all pairs of them."""

    def __init__(self, laws: Laws, rows: Ints) -> None:
        self.rows, self.place = rows, np.full(laws.size, -1)
        self.place[rows] = np.arange(len(rows))
        here = laws.part(rows)
        self.table = here.table
        self.own = laws.own[rows]
        everything = np.arange(len(rows))
        self.pairs = here.pairs(everything, everything)
        apart = np.triu(self.pairs > _NEAR * self.pairs.max(), 1)
        first, second = map(np.ascontiguousarray, np.nonzero(apart))
        sharp = here.sharp_pairs(first, second)
        for i, j in ((first, second), (second, first)):
            self.pairs[i, j] = np.minimum(self.pairs[i, j], sharp)
        self.most = round_up(float(self.pairs.max()))
        roots = np.sqrt(self.table)
        self.affinities = np.asarray(lowered(roots @ roots.T, 2.0 * laws.outputs + 16.0))
        self.parts: dict[int, float] = {}  # proved bounds on the capacity of so many rows
        self.edges = np.linspace(0.0, 1.0, _CELLS + 1)
        self.within = self._within()

    @property
    def step(self) -> float:
        """Most units of work between two yields of a list."""
        return 4.0 * _BUDGET

    def _within(self) -> Floats:
        """Bound F(t) over every cell of weights by the smallest affinity and the best pair."""
        low, high = self.edges[:-1], self.edges[1:]
        nearest = np.clip(0.5, low, high)  # both bounds rise up to 1/2
        entropy = pair_limit(nearest, float(self.affinities.min()))
        return np.asarray(np.minimum(raised(entropy, 8.0), self.most))

    def largest(self, m: int) -> float:
        """Bound the capacity of m rows."""
        if m < 2:
            return 0.0
        most = self.most
        for j in range(3, m + 1):  # one value and j - 1 others
            by_split = raised(float((self.within + self.edges[1:] * most).max()), 4.0)
            most = min(by_split, log_up(j), round_up(self.most * mean_questions(j)))
            most = min(most, self.parts.get(j, math.inf))
        return most

    def levels(self, level: float, m: int) -> Floats:
        """Return the level that j of m rows exceed if all m rows exceed a level, j = 0 .. m."""
        least = np.zeros(m + 1)
        least[m] = level
        for j in range(2, m):
            others = self.largest(m - j)
            if level <= others * (1.0 + 1e-12):
                continue  # the others alone may reach the level
            ends = np.stack([self.edges[:-1], self.edges[1:]]).clip(1e-300)
            room = lowered(level, 8.0) - self.within - (1.0 - ends) * others
            least[j] = float((room / ends).min())
        return np.maximum(lowered(least, 8.0), 0.0)

    def tests(self, levels: Floats) -> Floats:
        """Return the numbers of the tests by affinities for each number of rows.

        For three rows pairs are compared one by one, so a test need not hold for the best pair.
        """
        found = [NEVER] * len(levels)
        for j in range(3, len(levels)):
            if levels[j] > 0.0:
                parts = float(np.quantile(self.pairs, _MOST)) if j == 3 else self.largest(j - 1)
                found[j] = sum_test(j, float(levels[j]), parts)
        return np.array(found)

    def listed(
        self, slices: Sequence[Ints], level: float, outside: NDArray[np.bool_]
    ) -> Iterator[Ints]:
        """Yield the selections that may exceed a level, a few at a time, possibly none.

        A distribution bounds all rows that are not ``outside``, so some row of a selection is. The
        first slice whose row is outside goes first.
        """
        most = sum(int(outside[rows].sum()) for rows in slices)
        if most > _SPLIT * sum(map(len, slices)):
            yield from self._cliques(slices, list(range(len(slices))), level)
            return
        for s, rows in enumerate(slices):
            parts = [*(r[~outside[r]] for r in slices[:s]), rows[outside[rows]], *slices[s + 1 :]]
            if all(map(len, parts)):
                others = sorted(set(range(len(slices))) - {s}, key=lambda k: len(slices[k]))
                yield from self._cliques(parts, [s, *others], level)

    def _cliques(self, slices: Sequence[Ints], order: list[int], level: float) -> Iterator[Ints]:
        """Yield selections, built in the given order of slices."""
        parts = [self.place[slices[s]] for s in order]
        edges = np.cumsum([0, *map(len, parts)])
        seen: dict[bytes, int] = {}
        kind = np.array([seen.setdefault(part.tobytes(), s) for s, part in enumerate(parts)])
        m, levels = len(parts), self.levels(level, len(parts))
        compatible = self.pairs > levels[2] if levels[2] > 0.0 else self.pairs >= 0.0
        tests = self.tests(levels)
        lists = np.zeros((m, edges[-1]), np.int64)
        lists[0] = np.concatenate(parts)
        sizes = np.zeros((m, m), np.int64)
        sizes[0] = np.diff(edges)
        masks = np.full((m * len(self.rows), _WORDS), -1, np.int64).view(np.uint64)
        place, state = np.zeros(m, np.int64), np.zeros(1 + 2 * m, np.int64)
        out = np.empty((_LISTED, m), np.int64)
        while state[0] >= 0:
            number = kernels.list_cliques(
                self.table, self.own, edges, self.rows, kind, compatible, self.pairs,
                self.affinities, tests, levels, masks, lists, sizes, place, state, _BUDGET, out,
            )  # fmt: skip
            yield out[:number][:, np.argsort(order)]


# The search for one level after the other.

#: Gap of the capacity of all rows of a node.
_COARSE = 1e-6
#: Share of the way to the target that the next level leaves.
_LEAVES = 0.25
#: Relative distance from which the next level is the target.
_CLOSE = 0.02
#: Slices up to which the parts of selections are bounded first.
_PARTED = 6
#: Smallest probability of a row that this has to allow for.
_LOOSE = 0.01
#: Smallest probability that it should allow for.
_ENOUGH = 0.04


def advance(search: Search, steps: Iterator[float], deadline: float) -> float:
    """Take the steps of a list of cliques until the meter shows ``deadline``.

    Returns the last bound, infinity if there are no steps left.
    """
    search.deadline, last = deadline, math.inf
    for upper in steps:
        last = upper
        if search.over:
            break
    return last


def by_cliques(search: Search, nodes: list[Node], rows: Ints, upper: float) -> Iterator[float]:
    """Yield bounds on all selections, by listing those that may exceed one level after another.

    ``upper`` bounds all of them beforehand, and ``rows`` are all rows of all nodes.
    """
    search.meter.spend(pair_work(len(rows), search.laws.outputs))
    cliques = Cliques(search.laws, rows)
    bounds = [min(upper, cliques.largest(len(node.slices))) for node in nodes]
    centres = [_centre(search, node) for node in nodes]
    upper, last = max(bounds), math.inf
    while search.target < upper < last:
        near = upper - search.target <= _CLOSE * search.target
        level = search.target + (0.0 if near else _LEAVES * (upper - search.target))
        for _ in _prove_parts(search, cliques, nodes, level):
            yield max(search.upper, upper)
        for k, node in enumerate(nodes):
            if bounds[k] > level:
                worst = level
                outside = _outside(search, node, centres[k], level)
                for choices in cliques.listed(node.slices, level, outside):
                    search.meter.spend(cliques.step)
                    if len(choices):
                        worst = max(worst, search.evaluate(node.problem, choices))
                    yield max(search.upper, upper)
                bounds[k] = worst
        upper, last = max(*bounds, search.upper), upper
    yield max(search.upper, upper)


def _prove_parts(
    search: Search, cliques: Cliques, nodes: list[Node], level: float
) -> Iterator[None]:
    """Bound the capacity of all but one row of a selection, for tests of whole selections.

    The bound is for the slices of all nodes. It needs nodes with equal numbers of slices.
    """
    m, others = len(nodes[0].slices), {len(node.slices) for node in nodes}
    loose, enough = (part_limit(level, t) for t in (_LOOSE, _ENOUGH))
    if len(others) > 1 or not 3 < m <= _PARTED or cliques.largest(m - 1) <= loose:
        return
    parts = {
        tuple(map(id, part)): part
        for node in nodes
        for part in itertools.combinations(node.slices, m - 1)
    }
    worst, everywhere = enough, np.ones(search.laws.size, np.bool_)
    for part in parts.values():
        for choices in cliques.listed(part, enough, everywhere):
            search.meter.spend(cliques.step)
            if len(choices):
                search.spend_on_capacities(choices.size)
                high = capacities(search.laws.table[choices], 1e-3)[1]
                worst = max(worst, float(high.max()))
            if worst > loose:
                return
            yield
    cliques.parts[m - 1] = worst


def _centre(search: Search, node: Node) -> Floats:
    """Bound the divergences of the rows of a node from a distribution close to all of them."""
    union = node.union
    search.spend_on_capacities(len(union))
    law = matrix_capacity(search.laws.table[union], _COARSE, lambda: search.over)[1]
    search.bound(node, union, law)
    return search.far.copy()


def _outside(search: Search, node: Node, centre: Floats, level: float) -> NDArray[np.bool_]:
    """Return the rows of a node that one of two distributions does not bound by a level."""
    union = node.union
    return min((far > level for far in (centre, search.from_best())), key=lambda o: o[union].sum())
