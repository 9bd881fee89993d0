"""Individual capacity over a convex set of priors, from the largest means of vectors over it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock, Meter
from fastpriv._core.highs import Rows, minimise
from fastpriv._core.rounding import roundoff
from fastpriv._core.search import BestFirst
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import rewarded_law
from fastpriv.channels import AbstractChannel
from fastpriv.errors import SolverFailure
from fastpriv.measures.individual.adversary import adversary_of, widened
from fastpriv.priors.sets import ConvexPriors
from fastpriv.results import IndividualCapacity

#: Most entries of a matrix that is searched.
_ENTRIES = 1 << 20
#: Most pairs of a value and an output.
_PAIRS = 1 << 10
#: Seconds for one linear program.
_SECONDS = 60.0
#: Rounds of linear programs for one bound.
_ROUNDS = 12
#: Units of work of the programs for two parts.
_HALVING = 1 << 24
#: Units of work of a search without a time limit.
_WORK = 4e9
#: Share of what is open that further distributions must take off to be worth a round.
_OPEN = 0.2
#: Most tangents of a concave function.
_TANGENTS = 8
#: Most distributions that programs choose from.
_LAWS = 128
#: Ascents.
_STARTS = 8
#: Steps of an ascent.
_STEPS = 60
#: Factor by which a step of an ascent must gain.
_GAINED = 1.0 + 1e-9
#: Shares of the way to a corner that a step tries.
_SHARES = (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
#: Smallest probability in a logarithm.
_LEAST = 1e-300
#: Smallest probability at which a tangent is taken: steeper ones are bad for a program.
_RAREST = 1e-12
#: Smallest share of an edge on either side of a cut, so that both parts shrink.
_CUT = 0.2
#: Shares of the gap that a mixture of input distributions and its search may take.
_MIXTURE_GAP = 0.02
_SEARCH_GAP = 0.1
#: Price of a joint distribution outside the simplices, per unit of mass: far above any value of a
#: posterior, ln m at most, so that a solution pays only where it must.
_PRICE = 100.0
#: Rounds of :func:`most_information`.
_INPUT_ROUNDS = 80


def convex_leak(
    channel: AbstractChannel,
    priors: ConvexPriors,
    gap: float,
    most: float,
    time_limit: float | None,
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over records i and a convex set; ``most`` is an upper bound.

    With A = x_i and the posteriors Q_y of A, I = H(A) - sum P(y) H(Q_y). Every Q_y is kept in a
    simplex. There -H lies below the linear function with the same values at the corners, and H(A)
    lies below tangents. So the largest mean of a vector over the set bounds I. A linear program
    over the distributions seen so far chooses the vector, and the distribution with this mean is
    the next one. The simplex in which the bound is loosest is halved.
    """
    size, outputs = channel.space.size, channel.output_count
    advice = "use fewer databases or outputs, or priors without bounds"
    check.fits(size * outputs, "the matrix that is searched over a set of priors", advice, _ENTRIES)
    pairs = max(channel.space.sizes) * outputs
    check.fits(pairs, "the joint distribution of a record and the output", advice, _PAIRS)
    matrix = np.array(channel.nearest_matrix(), order="C")
    rows = [i for i in range(channel.space.n) if channel.space.sizes[i] > 1]
    if priors.symmetric():  # records of one role are alike for the set, too
        rows = [i for i in np.unique(channel.record_kinds, return_index=True)[1] if i in rows]
    meter = Meter(time_limit, _WORK)
    clock = Clock(math.inf if time_limit is None else time_limit)
    most = min(most, most_information(matrix, priors, gap, clock)[1])
    records = [_Row(channel, matrix, priors, int(i)) for i in rows]
    lower, upper = _searched(records, gap, most, meter)
    worst = max(records, key=lambda row: row.best[0], default=None)
    law = None if worst is None else worst.best[1]
    if law is None:  # no prior reveals anything, so any will do
        law = priors.lowest(np.zeros(size))[1]
    adversary = adversary_of(channel.space, (0 if worst is None else worst.i,), law)
    return widened(IndividualCapacity(lower, upper, adversary), channel.matrix_error)


def _searched(rows: list[_Row], gap: float, most: float, meter: Meter) -> tuple[float, float]:
    """Return bounds on the largest information about one of the records, over the set."""
    best, parts = 0.0, []
    for row in rows:
        best = max(best, row.climbed(meter))
    for row in rows:
        if meter.room() <= 0.0:
            return best, max(best, most)
        part, best = row.bound(row.whole(), best, gap)
        parts.append(part)

    def halves(whole: _Part) -> Iterator[_Part]:
        nonlocal best
        meter.spend(_HALVING)
        for simplices in _halves(whole.simplices, whole.y, whole.middle):
            part, best = whole.row.bound(simplices, best, gap)
            yield _Part(min(part.bound, whole.bound), *part[1:])

    upper = BestFirst(parts, halves).run(
        lambda: _enough(best, gap), lambda: most <= _enough(best, gap) or meter.room() <= 0.0
    )
    return best, max(best, min(most, upper))


def _enough(best: float, gap: float) -> float:
    """Return the upper bound at which the search may stop."""
    return best + gap * min(1.0, best)


class _Part(NamedTuple):
    """An upper bound over simplices [y, corner, a]; the output y where it is loosest.

    ``middle`` is a posterior of y in its simplex.
    """

    bound: float
    row: _Row
    simplices: Floats
    y: int
    middle: Floats


class _Row:
    """One record: the joint distribution of its value and the output, linear in the prior."""

    def __init__(
        self, channel: AbstractChannel, matrix: Floats, priors: ConvexPriors, i: int
    ) -> None:
        inner, self.m = int(channel.space.strides[i]), channel.space.sizes[i]
        self.values: Ints = np.arange(len(matrix)) // inner % self.m
        self.W = np.ascontiguousarray(matrix[:, matrix.any(axis=0)])
        self.priors, self.i = priors, i
        #: The largest information reached, and the prior that has it.
        self.best: tuple[float, Floats | None] = 0.0, None
        self.points = np.array(some_laws(priors, _STARTS))
        self.tangents = [np.log(np.full(self.m, 1.0 / self.m))]
        self.laws = np.array([self._joint(law) for law in self.points])

    def whole(self) -> Floats:
        """Return the simplex of all posteriors, for each output."""
        return np.tile(np.eye(self.m), (self.W.shape[1], 1, 1))

    def climbed(self, meter: Meter) -> float:
        """Return the information that ascents reach; a step leads towards the best distribution."""
        rng = np.random.default_rng(0)  # used only to choose starting points
        count, best = len(self.laws), 0.0
        for shares in [np.full(count, 1.0 / count), *rng.dirichlet(np.ones(count), _STARTS)]:
            joint, point = np.tensordot(shares, self.laws, 1), shares @ self.points
            self._reached(joint, point)
            for _ in range(_STEPS):
                if meter.room() <= 0.0:
                    return best
                outer = np.maximum(joint.sum(axis=1, keepdims=True) * joint.sum(axis=0), _LEAST)
                slope = np.log(np.maximum(joint, _LEAST) / outer)[self.values]
                _, corner, end = self._largest((self.W * slope).sum(axis=1))
                ways = [joint + share * (corner - joint) for share in _SHARES]
                values = [_information_below(way, len(self.W)) for way in ways]
                now = _information_below(joint, len(self.W))
                if max(values) <= min(best, now) * _GAINED:
                    break
                at = int(np.argmax(values))
                joint, point = ways[at], point + _SHARES[at] * (end - point)
                self._reached(joint, point)
                best = max(best, *values)
        return best

    def bound(self, simplices: Floats, best: float, gap: float) -> tuple[_Part, float]:
        """Bound the information over simplices; return also the largest value reached so far."""
        heights, bound = _minus_entropy(simplices), math.inf
        joint, g, tangent = self.laws[-1], np.zeros((self.m, self.W.shape[1])), self.tangents[0]
        for _ in range(_ROUNDS):
            solved = self._program(simplices, heights)
            if solved is None:
                break
            value, shares, g, tangent = solved
            joint = np.tensordot(shares, self.laws, 1)
            self._reached(joint, shares @ self.points)
            best = max(best, _information_below(joint, len(self.W)))
            law = np.maximum(joint.sum(axis=1), _RAREST)
            self.tangents = [*self.tangents[-_TANGENTS:], np.log(law / law.sum())]
            bound = min(bound, self._proved(simplices, heights, g, tangent))
            # More distributions would take little off what is open.
            if bound <= max(_enough(best, gap), value + _OPEN * (bound - best)):
                break
        bound = min(bound, self._proved(simplices, heights, g, self.tangents[-1]))
        chance = joint.sum(axis=0)
        posterior = joint / np.maximum(chance, _LEAST)
        loose = np.array(
            [_height(s, h, q) for s, h, q in zip(simplices, heights, posterior.T, strict=True)]
        )
        loose = chance * (loose - _minus_entropy(posterior.T[:, None])[:, 0])
        y = int(loose.argmax())
        return _Part(bound, self, simplices, y, posterior[:, y]), best

    def _joint(self, p: Floats) -> Floats:
        joint = np.zeros((self.m, self.W.shape[1]))
        np.add.at(joint, self.values, p[:, None] * self.W)
        return joint

    def _reached(self, joint: Floats, point: Floats) -> None:
        """Keep a prior if its information exceeds the best so far."""
        value = _information_below(joint, len(self.W))
        if value > self.best[0]:
            self.best = value, point / point.sum()

    def _largest(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """Return the largest mean over the set, rounded up, its joint distribution and prior."""
        least, law = self.priors.smallest_sum(-weights)
        return -least, self._joint(law), law

    def _proved(self, simplices: Floats, heights: Floats, g: Floats, tangent: Floats) -> float:
        """Return the bound that multipliers g[a, y] prove, with H(A) <= -<P(A), tangent>.

        g is raised until <g_y, corner> >= -H(corner) at all corners. Then I <= <w, p> with
        w(x) = -tangent(a) + sum_y W[x, y] g[a, y], a = x_i.
        """
        below = heights - np.einsum("yja,ay->yj", simplices, g)
        size = float(np.abs(g).max()) + math.log(self.m) + 1.0
        lifted = g + (below.max(axis=1) + roundoff(16.0 * self.m) * size)
        weights = -tangent[self.values] + np.einsum("xy,xy->x", self.W, lifted[self.values])
        size += float(np.abs(tangent).max()) + float(np.abs(lifted).max())
        slack = roundoff(4.0 * self.W.shape[1] + 32.0) * size
        bound, joint, law = self._largest(weights)
        self.points = np.concatenate([self.points[1 - _LAWS :], law[None]])
        self.laws = np.concatenate([self.laws[1 - _LAWS :], joint[None]])
        return float(bound + slack)

    def _program(
        self, simplices: Floats, heights: Floats
    ) -> tuple[float, Floats, Floats, Floats] | None:
        """Maximise the linear bound over mixtures of distributions; None if the solver fails.

        Variables are the shares of distributions, the weights of corners and the bound on H(A).
        Joint distributions may differ from the mixtures of corners at a price. So there is always
        a solution, with multipliers for simplices that no prior reaches. Returns the value, the
        shares, the multipliers of the joint distribution, and the mixture of tangents.
        """
        count, pairs = len(self.laws), self.m * self.W.shape[1]
        outputs, corners, extra = self.W.shape[1], count + pairs, count + 3 * pairs
        joint = np.zeros((pairs, extra + 1))
        joint[:, :count] = self.laws.reshape(count, pairs).T
        for y in range(outputs):
            start = count + y * self.m
            joint[y::outputs, start : start + self.m] = -simplices[y].T
        joint[:, corners : corners + pairs] = np.eye(pairs)
        joint[:, corners + pairs : extra] = -np.eye(pairs)
        tangents = np.array(self.tangents)
        cuts = np.zeros((len(tangents), extra + 1))
        cuts[:, :count] = tangents @ self.laws.sum(axis=2).T
        cuts[:, -1] = 1.0
        total = np.append(np.ones(count), np.zeros(extra + 1 - count))
        table = np.vstack([joint, cuts, total])
        low = np.concatenate([np.zeros(pairs), np.full(len(cuts), -math.inf), [1.0]])
        high = np.concatenate([np.zeros(pairs + len(cuts)), [1.0]])
        filled = table != 0.0
        starts = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
        rows = Rows(starts, np.nonzero(filled)[1], table[filled], low, high)
        price = np.full(2 * pairs, _PRICE)
        cost = np.concatenate([np.zeros(count), -heights.reshape(-1), price, [-1.0]])
        try:
            answer = minimise(cost, np.zeros(extra + 1), rows, _SECONDS)
        except SolverFailure:
            return None
        shares = np.maximum(answer.values[:count], 0.0)
        weights = np.maximum(-answer.duals[pairs:-1], 0.0) + _LEAST
        return (
            -float(cost @ answer.values),
            shares / shares.sum(),
            answer.duals[:pairs].reshape(self.m, outputs),
            weights / weights.sum() @ tangents,
        )


def _information_below(joint: Floats, size: int) -> float:
    """Return I(A; Y) of a joint distribution that sums over ``size`` databases, rounded down."""
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    seen = joint > 0.0
    terms = joint[seen] * np.log(joint[seen] / outer[seen])
    slack = roundoff(8.0 * size + 64.0)
    return max(0.0, float(terms.sum()) - slack * (1.0 + float(np.abs(terms).sum())))


def _height(simplex: Floats, heights: Floats, q: Floats) -> float:
    """Return the linear function through the corners at a posterior."""
    share, *_ = np.linalg.lstsq(simplex.T, q, rcond=None)
    return float(share @ heights)


def _minus_entropy(laws: Floats) -> Floats:
    """Return sum q ln q of distributions along the last axis."""
    return np.asarray((laws * np.log(np.maximum(laws, _LEAST))).sum(axis=-1))


def _halves(simplices: Floats, y: int, middle: Floats) -> list[Floats]:
    """Cut the simplex of one output through its longest edge, near a posterior if it has one."""
    ends = simplices[y]
    edges = np.abs(ends[:, None] - ends).sum(axis=2)
    j, k = np.unravel_index(int(edges.argmax()), edges.shape)
    way = ends[k] - ends[j]
    share = float((middle - ends[j]) @ way / (way @ way))
    cut = ends[j] + min(max(share, _CUT), 1.0 - _CUT) * way
    parts = []
    for replaced in (j, k):
        part = simplices.copy()
        part[y, replaced] = cut
        parts.append(part)
    return parts


# The largest information over a convex set of input distributions, as a bracket.


def some_laws(priors: ConvexPriors, count: int) -> list[Floats]:
    """Return distributions of a set in several directions."""
    rng = np.random.default_rng(0)  # used only to choose starting points
    return [priors.smallest_sum(rng.random(priors.size))[1] for _ in range(count)]


def most_information(
    W: Floats, priors: ConvexPriors, gap: float, clock: Clock
) -> tuple[float, float]:
    """Return the largest I(X; Y) over a convex set of input distributions, as a bracket.

    I(p) is at most <p, D(W || q)> for every output distribution q, and equal for its own. The
    distribution with the largest mean of such a bound joins the distributions seen so far, and q
    comes from the best mixture of these: for shares s of distributions with outputs V, it has I(s,
    V) plus the mean information of a distribution.
    """
    seen = np.ascontiguousarray(W[:, W.any(axis=0)])
    laws = np.array(some_laws(priors, _STARTS))
    lower, upper = 0.0, math.inf
    for _ in range(_INPUT_ROUNDS):
        rewards = np.array([law @ _divergences(seen, law) for law in laws])
        p = rewarded_law(laws @ seen, rewards, _MIXTURE_GAP * gap) @ laws
        divergences = _divergences(seen, p)
        slack = roundoff(8.0 * seen.size + 64.0) * (1.0 + float(np.abs(divergences).max()))
        lower = max(lower, float(p @ divergences) - slack)
        least, law = priors.smallest_sum(-divergences)
        upper = min(upper, slack - least)
        if upper <= lower + _SEARCH_GAP * gap * min(1.0, lower) or clock.left() == 0.0:
            break
        laws = np.vstack([laws, law])
    return max(0.0, lower), max(upper, lower)


def _divergences(W: Floats, p: Floats) -> Floats:
    """Return D(W_x || q) for the output distribution q of p."""
    q = np.maximum(p @ W, _LEAST)
    return np.asarray((W * np.log(np.maximum(W, _LEAST) / q)).sum(axis=1))
