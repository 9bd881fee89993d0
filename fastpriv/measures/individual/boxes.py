"""Individual capacity over boxes of priors: of the database, or of the laws of independent rows."""

from __future__ import annotations

import heapq
import math

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import ULP, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import AbstractChannel, ProductChannel
from fastpriv.channels.rowwise import row_kinds
from fastpriv.errors import SolverFailure
from fastpriv.measures.individual.search import matrix_error, widened
from fastpriv.measures.pointwise.boxes import corners
from fastpriv.priors.sets import Box
from fastpriv.results import IndividualCapacity

#: Most entries of a matrix that is searched, and most channels at corners of other rows.
_ENTRIES, _CHANNELS = 1 << 16, 1 << 12
#: Seconds for one linear program, most tangents of a concave function, and rounds to find them.
_SECONDS, _TANGENTS, _ROUNDS = 60.0, 8, 60
#: Ascents, their steps, and the shares of the way to a corner that are tried.
_STARTS, _STEPS, _SHARES = 8, 60, (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
#: Least probability in a logarithm, and the price of a joint law outside the simplices.
_LEAST, _PRICE = 1e-300, 100.0


def box_leak(
    channel: AbstractChannel, box: Box, gap: float, most: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over rows i and a box of priors, nothing being above ``most``.

    With A = x_i and the posteriors Q_y of A, I = H(A) - sum P(y) H(Q_y). Every Q_y is kept in a
    simplex. There -H lies below the linear function with the same values at the corners, and
    H(A) lies below tangents. So a linear program bounds I, and its multipliers prove the bound.
    The simplex in which the bound is loosest is halved.
    """
    check.fits(
        channel.space.size * channel.output_space.size,
        "the matrix that is searched over a box of priors",
        "use fewer databases or outputs, or priors without bounds",
        _ENTRIES,
    )
    matrix = np.array(channel.matrix())
    rows = np.unique(row_kinds(channel), return_index=True)[1].tolist()
    if np.ptp(box._lower) > 0.0 or np.ptp(box._upper) > 0.0:
        rows = list(range(channel.space.n))  # the box may tell rows of one role apart
    lower, upper = 0.0, 0.0
    most = min(most, box_information(matrix, box, gap, clock)[1])
    for j, i in enumerate(rows):
        if channel.space.sizes[i] > 1:
            ends = _Row(channel, matrix, box, i).search(
                gap, lower, most, Clock(clock.share(len(rows) - j))
            )
            lower, upper = max(lower, ends[0]), max(upper, ends[1])
    leak = IndividualCapacity(min(lower, upper), min(upper, max(most, lower)), None)
    return widened(leak, matrix_error(channel))


def box_information(W: Floats, box: Box, gap: float, clock: Clock) -> tuple[float, float]:
    """Return the largest I(X; Y) over a box of input laws, as a bracket.

    I(p) is at most <p, D(W || q)> for every output law q, and equal for its own. A linear program
    over the box with such bounds gives the next p.
    """
    seen = np.ascontiguousarray(W[:, W.any(axis=0)])
    p = inside_box(box, np.full(len(seen), 1.0 / len(seen)))
    bounds: list[Floats] = []
    lower, upper = 0.0, math.inf
    for _ in range(_ROUNDS):
        q = np.maximum(p @ seen, _LEAST)
        told = (seen * np.log(np.maximum(seen, _LEAST) / q)).sum(axis=1)
        slack = (8.0 * seen.size + 64.0) * ULP * (1.0 + float(np.abs(told).max()))
        bounds.append(told)
        lower = max(lower, float(p @ told) - slack)
        upper = min(upper, -box._least_sum(-told)[0] + slack)
        if upper <= lower + 0.1 * gap * min(1.0, lower) or clock.left() == 0.0:
            break
        p, weights = _saddle(np.array(bounds), box)
        mixed = weights @ np.array(bounds)  # each is a bound, and so is any mixture
        upper = min(upper, -box._least_sum(-mixed)[0] + slack)
    return max(0.0, lower), max(upper, lower)


def _saddle(bounds: Floats, box: Box) -> tuple[Floats, Floats]:
    """Return the law of the box with the largest least bound, and the weights of the bounds."""
    count, size = bounds.shape
    table = np.vstack(
        [
            np.hstack([-bounds, np.ones((count, 1))]),
            np.append(np.ones(size), 0.0),
            np.eye(size, size + 1),
        ]
    )
    low = np.concatenate([np.full(count, -math.inf), [1.0], np.full(size, -math.inf)])
    high = np.concatenate([np.zeros(count), [1.0], box._upper])
    starts, order = np.arange(len(table) + 1) * (size + 1), np.arange(size + 1)
    rows = Rows(starts, np.tile(order, len(table)), table.reshape(-1), low, high)
    cost, least = np.append(np.zeros(size), -1.0), np.append(box._lower, 0.0)
    answer = minimise(cost, least, rows, _SECONDS)
    weights = np.maximum(-answer.duals[:count], 0.0) + _LEAST
    return inside_box(box, answer.values[:size]), weights / weights.sum()


def inside_box(box: Box, p: Floats) -> Floats:
    """Return a law of a box close to some numbers."""
    p = np.clip(p, box._lower, box._upper)
    missing = 1.0 - math.fsum(p)
    room = box._upper - p if missing > 0.0 else p - box._lower
    return np.asarray(p + missing * room / max(float(room.sum()), _LEAST))


def row_box_leak(
    channel: AbstractChannel, box: Box, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over rows i and independent rows, each with a law in a box.

    The channel from x_i to y is linear in the law of each other row, and information is convex in
    the channel. So all other rows are at corners of the box. In its own law it is concave. What
    the time does not suffice for is bounded by ln m.
    """
    if isinstance(channel, ProductChannel):
        tables = [kernel.matrix[None] for kernel in channel._kernels.distinct]
    else:
        tables = _at_corners(channel, corners(box))
    lower = upper = 0.0
    for number, table in enumerate(table for part in tables for table in part):
        if number and clock.left() == 0.0:
            upper = round_up(math.log(box.size))
            break
        low, high = box_information(table, box, gap, clock)
        lower, upper = max(lower, low), max(upper, high)
    leak = IndividualCapacity(lower, upper, None)
    return widened(leak, matrix_error(channel) + 8.0 * channel.space.n * (box.size + 2) * ULP)


def _at_corners(channel: AbstractChannel, laws: Floats) -> list[Floats]:
    """Return for each row its channels to the output, with the other rows at corners."""
    n, m = channel.space.n, laws.shape[1]
    rows = np.unique(row_kinds(channel), return_index=True)[1].tolist()
    check.fits(
        len(rows) * len(laws) ** (n - 1),
        "the list of the corners of other rows",
        "use fewer rows, or a channel that acts row by row",
        _CHANNELS,
    )
    lead = np.array(channel.matrix()).reshape((m,) * n + (-1,))
    tables = []
    for i in rows:
        table = lead
        for j in range(n):
            if j != i:
                table = np.moveaxis(np.tensordot(laws, np.moveaxis(table, j, 0), 1), 0, j)
        moved: Floats = np.moveaxis(table, i, -2)
        tables.append(moved.reshape(-1, m, np.shape(moved)[-1]))
    return tables


class _Row:
    """One row of the database: the joint law of its value and the output, linear in the prior."""

    def __init__(self, channel: AbstractChannel, matrix: Floats, box: Box, i: int) -> None:
        inner, self.m = int(channel.space._strides[i]), channel.space.sizes[i]
        self.values: Ints = np.arange(len(matrix)) // inner % self.m
        self.W = np.ascontiguousarray(matrix[:, matrix.any(axis=0)])
        self.box, self.tangents = box, [np.full(self.m, 1.0 / self.m)]
        self.best = 0.0

    def search(self, gap: float, floor: float, most: float, clock: Clock) -> tuple[float, float]:
        """Return what a prior of the box tells, and an upper bound."""
        self.best = max(floor, self._climbed(clock))
        if clock.left() == 0.0:
            return self.best, max(self.best, most)
        whole = np.tile(np.eye(self.m), (self.W.shape[1], 1, 1))
        bound, worst, at = self._bound(whole)
        heap, count = [(-bound, 0, whole, worst, at)], 0
        while heap:
            top = -heap[0][0]
            enough = self.best + gap * min(1.0, self.best)
            if min(top, most) <= enough or clock.left() == 0.0:
                break
            _, _, simplices, y, middle = heapq.heappop(heap)
            for half in _halves(simplices, y, middle):
                bound, worst, at = self._bound(half)
                count += 1
                heapq.heappush(heap, (-min(bound, top), count, half, worst, at))
        return self.best, max(self.best, min(most, -heap[0][0] if heap else self.best))

    def _climbed(self, clock: Clock) -> float:
        """Return what ascents from several priors reach, each step towards the best corner."""
        rng = np.random.default_rng(0)  # where ascents start; what they reach is computed
        size = len(self.W)
        starts = [np.full(size, 1.0 / size), *rng.dirichlet(np.full(size, 0.2), _STARTS)]
        best = 0.0
        for start in starts:
            p = inside_box(self.box, start)
            for _ in range(_STEPS):
                if clock.left() == 0.0:
                    return best
                joint = self._joint(p)
                law = np.maximum(joint.sum(axis=1, keepdims=True) * joint.sum(axis=0), _LEAST)
                slope = np.log(np.maximum(joint, _LEAST) / law)[self.values]
                corner = self.box._least_sum(-(self.W * slope).sum(axis=1))[1]
                ways = [p + share * (corner - p) for share in _SHARES]
                told = [self._told(way) for way in ways]
                if max(told) <= best * (1.0 + 1e-9) and max(told) <= self._told(p) * (1.0 + 1e-9):
                    break
                p = ways[int(np.argmax(told))]
                best = max(best, *told)
        return best

    def _bound(self, simplices: Floats) -> tuple[float, int, Floats]:
        """Return an upper bound over simplices [y, corner, a], the loosest y and its posterior."""
        heights, bound = _minus_entropy(simplices), math.inf
        p, g = self.box._lower, np.zeros((self.m, self.W.shape[1]))
        for _ in range(3):
            solved = self._program(simplices, heights)
            if solved is None:
                break
            p, g = solved
            self.best = max(self.best, self._told(inside_box(self.box, p)))
            law = np.maximum(np.bincount(self.values, p, minlength=self.m), 1e-12)
            self.tangents = [*self.tangents[-_TANGENTS:], law / law.sum()]
            proved = self._proved(simplices, heights, g, self.tangents[-1])
            if proved > bound * (1.0 - 1e-4):
                break
            bound = proved
        bound = min(bound, self._proved(simplices, heights, g, self.tangents[-1]))
        joint = self._joint(p)
        chance = joint.sum(axis=0)
        posterior = joint / np.maximum(chance, _LEAST)
        loose = np.array(
            [self._height(s, h, q) for s, h, q in zip(simplices, heights, posterior.T, strict=True)]
        )
        loose = chance * (loose - _minus_entropy(posterior.T[:, None])[:, 0])
        y = int(loose.argmax())
        return bound, y, posterior[:, y]

    @staticmethod
    def _height(simplex: Floats, heights: Floats, q: Floats) -> float:
        """Return the linear function through the corners at a posterior."""
        share, *_ = np.linalg.lstsq(simplex.T, q, rcond=None)
        return float(share @ heights)

    def _joint(self, p: Floats) -> Floats:
        joint = np.zeros((self.m, self.W.shape[1]))
        np.add.at(joint, self.values, p[:, None] * self.W)
        return joint

    def _told(self, p: Floats) -> float:
        """Return I(X_i; Y) under a prior, rounded down."""
        joint = self._joint(p)
        outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
        seen = joint > 0.0
        terms = joint[seen] * np.log(joint[seen] / outer[seen])
        slack = (8.0 * len(p) + 64.0) * ULP
        return max(0.0, float(terms.sum()) - slack * (1.0 + float(np.abs(terms).sum())))

    def _proved(self, simplices: Floats, heights: Floats, g: Floats, r: Floats) -> float:
        """Return the bound that multipliers g[a, y] prove, with the tangent of H(A) at r.

        g is raised until <g_y, corner> >= -H(corner) at all corners. Then I <= <w, p> with
        w(x) = -ln r(a) + sum_y W[x, y] g[a, y], a = x_i.
        """
        below = heights - np.einsum("yja,ay->yj", simplices, g)
        size = float(np.abs(g).max()) + math.log(self.m) + 1.0
        raised = g + (below.max(axis=1) + 16.0 * self.m * ULP * size)
        weights = -np.log(r)[self.values] + np.einsum("xy,xy->x", self.W, raised[self.values])
        size += float(np.abs(np.log(r)).max()) + float(np.abs(raised).max())
        slack = (4.0 * self.W.shape[1] + 32.0) * ULP * size
        return float(slack - self.box._least_sum(-weights)[0])

    def _program(self, simplices: Floats, heights: Floats) -> tuple[Floats, Floats] | None:
        """Maximise the linear bound over p, the weights of corners and the bound on H(A).

        Joint laws may differ from those of the corners at a price. So there is always a solution,
        and multipliers for simplices that no prior of the box reaches. None if the solver fails.
        """
        size, outputs = self.W.shape
        pairs = self.m * outputs
        corners, extra = size + pairs, size + 3 * pairs
        joint = np.zeros((pairs, extra + 1))
        own = self.values == np.arange(self.m)[:, None]
        joint[:, :size] = (own[:, None] * self.W.T).reshape(pairs, size)
        for y in range(outputs):
            start = size + y * self.m
            joint[y::outputs, start : start + self.m] = -simplices[y].T
        joint[:, corners : corners + pairs] = np.eye(pairs)
        joint[:, corners + pairs : extra] = -np.eye(pairs)
        cuts = np.zeros((len(self.tangents), extra + 1))
        cuts[:, :size] = np.log(self.tangents)[:, self.values]
        cuts[:, -1] = 1.0
        total = np.append(np.ones(size), np.zeros(extra + 1 - size))
        table = np.vstack([joint, cuts, total, np.eye(size, extra + 1)])
        free = np.full(len(cuts), -math.inf)
        low = np.concatenate([np.zeros(pairs), free, [1.0], np.full(size, -math.inf)])
        high = np.concatenate([np.zeros(pairs + len(cuts)), [1.0], self.box._upper])
        starts, order = np.arange(len(table) + 1) * (extra + 1), np.arange(extra + 1)
        rows = Rows(starts, np.tile(order, len(table)), table.reshape(-1), low, high)
        price = np.full(2 * pairs, _PRICE)
        cost = np.concatenate([np.zeros(size), -heights.reshape(-1), price, [-1.0]])
        least = np.append(self.box._lower, np.zeros(extra + 1 - size))
        try:
            answer = minimise(cost, least, rows, _SECONDS)
        except SolverFailure:
            return None
        return answer.values[:size], answer.duals[:pairs].reshape(self.m, outputs)


def _minus_entropy(laws: Floats) -> Floats:
    """Return sum q ln q of laws along the last axis."""
    return np.asarray((laws * np.log(np.maximum(laws, _LEAST))).sum(axis=-1))


def _halves(simplices: Floats, y: int, middle: Floats) -> list[Floats]:
    """Cut the simplex of one output through its longest edge, near a posterior if it has one."""
    ends = simplices[y]
    edges = np.abs(ends[:, None] - ends).sum(axis=2)
    j, k = np.unravel_index(int(edges.argmax()), edges.shape)
    way = ends[k] - ends[j]
    share = float((middle - ends[j]) @ way / (way @ way))
    cut = ends[j] + min(max(share, 0.2), 0.8) * way
    parts = []
    for lost in (j, k):
        part = simplices.copy()
        part[y, lost] = cut
        parts.append(part)
    return parts
