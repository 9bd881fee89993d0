"""One record of a database as its slices, the databases for each of its values.

Let V be the output distribution of a distribution pi on the inputs of a slice. The divergence D(V
|| r) is convex in pi. It has two kinds of upper bounds that are linear in pi up to a multiple of
the entropy: chords between the corners of a simplex of distributions, and lines that hold for all
distributions, D(V || r) <= sum_x pi_x line_x - theta H(pi).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.clock import Meter
from fastpriv._core.divergence import divergence
from fastpriv._core.rounding import ULP, roundoff, sum_error
from fastpriv._core.search import BestFirst
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.contraction import matrix_contraction

# One record as its slices.

#: Most steps of an ascent.
_CLIMB = 500
#: Steps times entries that an ascent is allowed.
_CLIMB_WORK = 1 << 26
#: Steps that it always takes.
_LEAST_CLIMB = 8
#: Most rows of a slice whose contraction is computed. Larger slices use the bound 1.
_CONTRACTED = 256
#: Output probabilities of the uniform prior below which a mean of all rows is mixed in.
_RARE = 1e-100
#: Its weight.
_MIXED = 1e-6
#: Share of one input in the distributions from which ascents within a slice start.
_NEAR = 0.9
#: Steps of these ascents.
_ASCENT = 300
#: Difference between them that does not count, in units of t.
_SAME = 1e-6
#: Weight of the uniform distribution in the distribution that a line touches, so that it has no
#: zeros.
_EVEN = 1e-9
#: Smallest probability of a slice whose conditional distribution a line may touch.
_LEAST_MASS = 1e-200
#: Smaller output probabilities are raised to this one in a tangent, which raises the bound.
_TINY = 1e-290


@dataclass(frozen=True)
class Line:
    """D(V || r) <= sum_x pi_x ``values[x]`` - ``theta`` H(pi) for all pi on a slice."""

    theta: float
    values: Floats
    doubt: Floats  #: bound on the rounding error of the values


@dataclass(frozen=True)
class Simplex:
    """Distributions of a slice with non-negative coordinates with respect to the corners."""

    corners: Floats  #: output distributions of the corners, minus r
    heights: Floats  #: their divergences from r
    B: Floats  #: coordinates of the inputs
    rough: float  #: relative error of the coordinates

    def halves(self, p: Floats, part: Slice) -> tuple[Simplex, Simplex]:
        """Cut through the middle of the edge in which the bound is loosest under p."""
        _, j, k = self.widest(p, part)
        middle = 0.5 * (self.corners[j] + self.corners[k])
        height = divergence(part.r + middle, part.r, middle)

        def with_middle(lost: int, kept: int) -> Simplex:
            corners, heights, B = self.corners.copy(), self.heights.copy(), self.B.copy()
            corners[lost], heights[lost] = middle, height
            B[:, lost] = 2.0 * self.B[:, lost]
            B[:, kept] = self.B[:, kept] - self.B[:, lost]
            return Simplex(corners, heights, B, self.rough + roundoff(4.0))

        return with_middle(j, k), with_middle(k, j)

    def widest(self, p: Floats, part: Slice) -> tuple[float, int, int]:
        """Return the largest slack of the bound at the middle of an edge, and the edge."""
        least = 1e-6 * float(p.sum())
        return kernels.widest_edge(p, self.B, self.corners, self.heights, part.r, least)


class Slice:
    """The inputs for one value: distinct output distributions, each shared by e^logs databases."""

    def __init__(self, rows: Floats, logs: Floats, r: Floats) -> None:
        self.rows, self.logs, self.r = rows, logs, r
        self.even = gibbs(logs)
        self.E = rows - r
        self.far = np.empty(len(rows))
        kernels.row_divergences(rows, r, np.zeros(len(r)), 0, len(rows), self.far)
        self.by_inputs = len(rows) <= len(r)

    @cached_property
    def eta(self) -> float:
        """A bound on the contraction of the slice."""
        return _contraction(self.rows)

    @cached_property
    def proved(self) -> Line:
        """The best line so far."""
        return self.tangent(self.even)

    @property
    def corners(self) -> int:
        """Number of corners of a simplex: inputs, or outputs if these are fewer."""
        return min(len(self.rows), len(self.r))

    def whole(self) -> Simplex:
        """Return the simplex of the inputs, or the smallest simplex over the outputs."""
        if self.by_inputs:
            return Simplex(self.E, self.far, np.eye(len(self.E)), sum_error(len(self.r), 128))
        least = self.rows.min(axis=0)
        room = float((self.rows - least).sum(axis=1).max())
        corners = (least - self.r) + room * np.eye(len(self.r))
        heights = np.array([divergence(self.r + e, self.r, e) for e in corners])
        rough = sum_error(2.0 * len(self.r) / room, 16.0)
        return Simplex(corners, heights, (self.rows - least) / room, rough)

    def tangent(self, p: Floats) -> Line:
        """Return the line that touches at p, by D(V || V') <= eta D(pi || pi')."""
        mass = float(p.sum())
        law = np.maximum(_EVEN * self.even + (p / mass if mass > _LEAST_MASS else 0.0), _TINY)
        law = law / law.sum()
        V, e = np.maximum(law @ self.rows, _TINY), law @ self.E
        near = e > -0.5 * self.r  # elsewhere e has lost digits of V, and V ln V is far from 0
        logs = np.where(near, np.log1p(np.maximum(e / self.r, -0.5)), np.log(V / self.r))
        sides = np.where(near, self.E, self.rows)
        shift = math.fsum(self.r[~near] - V[~near]) - math.fsum(
            map(kernels.divergence, self.r[near], (self.r + e)[near], -e[near])
        )
        own = self.eta * (np.log(law) - self.logs)
        values = sides @ logs + shift - own
        size = np.abs(sides) @ np.abs(logs) + np.abs(own) + abs(shift)
        return Line(self.eta, values, sum_error(len(self.r) + len(law), 160) * size)

    def from_maximum(self, most: float, d: Floats, t: float) -> Line:
        """Turn D(V || r + d) + t H(pi) <= most, for all distributions, into a line."""
        values, doubt = self.towards(d)
        return Line(t, most - values, doubt + roundoff(4.0) * abs(most))

    def towards(self, d: Floats) -> tuple[Floats, Floats]:
        """Return D(V || r + d) - D(V || r) as a value per input, and its rounding error."""
        logs = np.log1p(d / self.r)
        shift = math.fsum(map(kernels.divergence, self.r, self.r + d, -d))
        size = np.abs(self.E) @ (np.abs(logs) + np.abs(d) / (self.r + d)) + shift
        lost = self.r @ (np.abs(d) / (self.r + d))  # cancellation in r + d
        return shift - self.E @ logs, sum_error(len(self.r), 160) * size + roundoff(4.0) * lost

    def tells_most(self, p: Floats, d: Floats, t: float) -> bool:
        """Whether ascents from the inputs find no distribution with a larger D + t H than p.

        D is D(V || r + d). The result only guides the search. If a small t overflows, the
        comparison is False.
        """
        with np.errstate(all="ignore"):
            return self._ascents_agree(p, d, t)

    def _ascents_agree(self, p: Floats, d: Floats, t: float) -> bool:
        extra = self.towards(d)[0]
        starts = _NEAR * np.eye(len(p)) + (1.0 - _NEAR) * self.even
        laws = np.vstack([p / p.sum(), starts])
        for _ in range(_ASCENT):
            V = laws @ self.rows
            heights = np.log(np.maximum(V, _TINY) / self.r) @ self.rows.T + extra
            scores = heights / t + self.logs
            laws = np.exp(scores - scores.max(axis=1, keepdims=True))
            laws /= laws.sum(axis=1, keepdims=True)
        top = scores.max(axis=1)
        values = t * (top + np.log(np.exp(scores - top[:, None]).sum(axis=1)))
        return bool(values[1:].max() <= values[0] + _SAME * t)

    def lines(self, simplex: Simplex, p: Floats) -> tuple[Floats, Floats]:
        """Return the arguments of the kernel: values and doubt per input, and the two thetas."""
        near = simplex.B @ simplex.heights
        loose = simplex.rough * (np.abs(simplex.B) @ simplex.heights)
        if self.by_inputs:  # between corners the bound is never above the one between inputs
            other = self.tangent(p)
        else:
            other = Line(0.0, self.far, sum_error(len(self.r), 128) * self.far)
        doubt = loose + other.doubt + self.proved.doubt
        values = np.stack([near, other.values, self.proved.values, doubt])
        return values, np.array([other.theta, self.proved.theta])


class Individual:
    """One record of the database, with all its slices in the form the kernels take.

    A block is given for each value: the output distributions, and the logarithms of the numbers of
    databases that have them. ``doubt`` bounds the errors of these logarithms.
    """

    look: Floats  #: distributions of the part of the output that depends on the record alone
    rest: Floats  #: distributions of the rest of the output, for every input
    order: Ints  #: pairs of outputs of the rest; the first may have the larger posterior
    others: list[Floats]  #: channels of the other records, if they act separately

    def __init__(self, blocks: list[tuple[Floats, Floats]], doubt: float = 0.0) -> None:
        self.W = np.ascontiguousarray(np.concatenate([rows for rows, _ in blocks]))
        self.logs, self.doubt = np.concatenate([logs for _, logs in blocks]), doubt
        self.even = gibbs(self.logs)
        self.r = np.asarray(self.even @ self.W)
        if (self.r < _RARE).any():  # databases too few to count in the uniform distribution
            self.r = (1.0 - _MIXED) * self.r + _MIXED * self.W.mean(axis=0)
        self.slices = [Slice(rows, logs, self.r) for rows, logs in blocks]
        self.E = np.concatenate([part.E for part in self.slices])
        self.edges: Ints = np.cumsum([0, *(len(rows) for rows, _ in blocks)])
        self.scale = max(float(part.far.max()) for part in self.slices)
        self.best = 0.0, self.even  # the information of the last distribution, and the distribution
        self.look, self.rest = np.ones((len(blocks), 1)), self.W
        self.order, self.others = np.empty((0, 2), dtype=np.int64), []

    @classmethod
    def looked_at(cls, look: Floats, others: list[Floats], order: Ints) -> Individual:
        """Return a record of a record-by-record channel: its own channel and the others.

        Every prior has a symmetric one whose posteriors of the first value, given the outputs of
        the other records, are in the given ``order``.
        """
        rest: Floats = np.ones((1, 1))
        for kernel in others:
            rest = np.asarray(np.kron(rest, kernel), dtype=np.float64)
        seen_rest = rest.any(axis=0)
        rest = np.ascontiguousarray(rest[:, seen_rest])
        rows, count = np.unique(rest, axis=0, return_counts=True)
        seen, logs = np.ascontiguousarray(look[:, look.any(axis=0)]), np.log(count)
        made = cls([(np.kron(law, rows), logs) for law in seen])
        made.look, made.rest = seen, np.ascontiguousarray(np.tile(rows, (len(look), 1)))
        made.others = others
        if seen_rest.all():
            made.order = order
        return made

    @property
    def variables(self) -> int:
        """About how many variables a bound over its slices has."""
        corners = sum(part.corners + 2 for part in self.slices)
        return corners + min(len(self.W), len(self.r))

    def split(self, p: Floats) -> list[Floats]:
        """Return the parts of a vector over inputs that belong to the slices."""
        return np.split(p, self.edges[1:-1])

    def information(self, p: Floats) -> tuple[float, float]:
        """I of the distribution p / sum p of the inputs, rounded down and up."""
        total = math.fsum(p)
        value = size = 0.0
        for part, own in zip(self.slices, self.split(p), strict=True):
            mass = math.fsum(own)
            if mass > 0.0:
                e = own @ part.E / mass
                logs = np.abs(np.log1p(np.maximum(e / self.r, ULP - 1.0)))
                value += mass / total * divergence(self.r + e, self.r, e)
                size += mass / total * float(own / mass @ np.abs(part.E) @ logs)
        e = p @ self.E / total
        common = divergence(self.r + e, self.r, e)
        error = sum_error(len(self.W) + len(self.r), 160) * (2.0 * size + 4.0 * common + value)
        return max(0.0, value - common - error), value - common + error

    def entropy(self, p: Floats) -> float:
        """H of the distribution p / sum p, each input spread over its databases, rounded down."""
        seen = p > 0.0
        law = p[seen] / math.fsum(p)
        value = -math.fsum(law * (np.log(law) - self.logs[seen]))
        most = float(self.logs.max()) + math.log(len(p))
        return value - sum_error(len(p), 16) * (most + 1.0) - self.doubt

    def multiplier(self, p: Floats) -> float:
        """Return the t at which I + t H is nearest to stationary at p.

        There, the derivatives sum_y W_xy ln(V_ay/q_y) of I are t ln(p_x/k_x) up to a constant.
        """
        total, slopes = p.sum(), self._slopes(p)
        depths = np.log(np.maximum(p, _TINY)) - self.logs
        law = p / total
        depths = depths - law @ depths
        return float(law @ (slopes * depths)) / max(float(law @ depths**2), _TINY)

    def _slopes(self, p: Floats) -> Floats:
        """Return sum_y W_xy ln(V_ay/q_y) for every input x, at the distribution p."""
        total, q = p.sum(), np.maximum(p @ self.W, _TINY)
        parts = [
            part.rows @ np.log(np.maximum(own @ part.rows / own.sum(), _TINY) * total / q)
            for part, own in zip(self.slices, self.split(p), strict=True)
        ]
        return np.concatenate(parts)

    def slope_range(self) -> float:
        """Return the range of the slopes at the uniform distribution, raised past its rounding."""
        slopes = self._slopes(self.even)
        size = sum_error(self.W.shape[1], 64) * (float(np.abs(slopes).max()) + 1.0)
        return float(np.ptp(slopes) + 4.0 * size)

    def separation_work(self) -> float:
        """Return about how many units of work it takes to see whether slices separate."""
        return float(sum(_ASCENT * part.rows.size * (2 * len(part.rows)) for part in self.slices))

    def separates(self, p: Floats, d: Floats, t: float) -> bool:
        """Whether p seems to be the best distribution in every slice, for q = r + d and t."""
        return t > 0.0 and all(
            part.tells_most(own, d, t)
            for part, own in zip(self.slices, self.split(p), strict=True)
            if len(part.rows) > 1
        )

    def climb(self, p: Floats, b: float) -> Floats:
        """Ascend from p, and return a distribution with H >= b and locally large information."""
        p = np.maximum(p, 1e-9 * self.even)
        p = p / p.sum()
        steps = max(_LEAST_CLIMB, min(_CLIMB, _CLIMB_WORK // self.W.size))
        kernels.entropy_climb(
            p, self.E, self.r, self.logs, self.edges, b + self.doubt, steps, 1e-9 * self.scale
        )
        share = 0.0
        while share < 1.0 and self.entropy((1.0 - share) * p + share * self.even) < b:
            share = max(2.0 * share, 2.0**-50)
        share = min(share, 1.0)
        return np.asarray((1.0 - share) * p + share * self.even)


def gibbs(logs: Floats) -> Floats:
    """Return the distribution proportional to e^logs."""
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _contraction(rows: Floats) -> float:
    """Bound the factor by which the rows contract divergences."""
    if len(rows) == 1:
        return 0.0
    return matrix_contraction(rows).upper if len(rows) <= _CONTRACTED else 1.0


# Boxes of priors.
#
# A box is a range of the probability of every input, and of every value of the record. In a box
# that is not too wide, the information plus a multiple of the entropy lies below a concave
# quadratic function (kernel ``box_bound``), whatever the number of outputs. A box is cut in the
# place that lowers the bound most.

#: Multipliers that are tried for the first ranges, and their widening, to cover rounding.
_BOX_MULTIPLIERS = np.exp(np.linspace(-9.0, 5.0, 57))
_BOX_WIDER = 1e-12
#: First multiplier t, relative to the multiplier of the best prior.
_WARMER = 1.5
#: Smallest first multiplier.
_COLDEST = 1e-9
#: Units of work of two bounds, per entry of the matrices in a trial.
_BOX_WORK = 24


class Boxes:
    """A record of the database, under H(X) >= b, and the boxes of its priors."""

    def __init__(self, individual: Individual, b: float) -> None:
        self.individual, self.b = individual, b - individual.doubt
        self.order: Ints = np.ascontiguousarray(np.argsort(individual.W, axis=0).T)
        self.t = max(_WARMER * individual.multiplier(individual.best[1]), _COLDEST)
        inputs, slices = len(individual.W), len(individual.slices)
        where = np.repeat(np.arange(slices), np.diff(individual.edges))
        self.high = self.most_likely(np.eye(inputs, dtype=bool))
        self.most = self.most_likely(where == np.arange(slices)[:, None])
        self.least = np.maximum(
            1.0 - self.most_likely(where != np.arange(slices)[:, None]) - _BOX_WIDER, 0.0
        )

    def most_likely(self, sets: NDArray[np.bool_]) -> Floats:
        """Return the largest probability of each set of inputs over distributions with H >= b.

        It is at most t ln(K e^(1/t) + K') - t b for every t > 0, with K databases in the set and
        K' outside.
        """
        logs = self.individual.logs
        inside, outside = (
            np.logaddexp.reduce(np.where(part, logs, -np.inf), axis=1) for part in (sets, ~sets)
        )
        t = _BOX_MULTIPLIERS[:, None]
        bounds = t * (np.logaddexp(inside + 1.0 / t, outside) - self.b)
        return np.asarray(np.clip(bounds.min(axis=0) + _BOX_WIDER * (1.0 + self.b), 0.0, 1.0))

    def box(
        self,
        low: Floats,
        high: Floats,
        least: Floats,
        most: Floats,
        t: float,
        p: Floats,
        floor: float,
    ) -> Box:
        """Bound over a box, starting from the multiplier t and the distribution p.

        The bound is at least the floor, and the box keeps the priors that reveal more than that.
        """
        one = self.individual
        low, high, least, most, p = low.copy(), high.copy(), least.copy(), most.copy(), p.copy()
        bound, t, at, cut = kernels.box_bound(
            low, high, least, most, one.W, one.logs, one.edges, self.order, self.b, floor, t, p
        )
        return Box(bound, low, high, least, most, t, p, at, cut, self)

    def root(self, floor: float) -> Box:
        """Bound over all priors."""
        law = self.individual.best[1]
        low = np.zeros(len(law))
        return self.box(low, self.high, self.least, self.most, self.t, law / law.sum(), floor)


@dataclass
class Box:
    """Ranges of the probabilities, the bound over them, and its maximiser."""

    bound: float  #: on the information over it
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    t: float
    p: Floats
    at: int  #: the range to cut, of an input or of a value; -1 if none
    cut: float
    problem: Boxes

    @property
    def work(self) -> float:
        """Units of work to cut it."""
        inputs, outputs = self.problem.individual.W.shape
        return float(_BOX_WORK * inputs * inputs * (inputs + outputs))

    def children(self, floor: float) -> list[Box]:
        """Cut the range that gains most."""
        if self.at < 0:
            return []
        inputs, parts = len(self.low), []
        for side in range(2):
            ends = [end.copy() for end in (self.high, self.low, self.most, self.least)]
            if self.at < inputs:
                ends[side][self.at] = self.cut
            else:
                ends[2 + side][self.at - inputs] = self.cut
            high, low, most, least = ends
            child = self.problem.box(low, high, least, most, self.t, self.p, floor)
            child.bound = min(child.bound, self.bound)
            parts.append(child)
        return parts


# Posteriors of one bit.
#
# A cell is a range of the probability of the bit's first value given each output, and one before
# any output. The number of ranges does not depend on the number of databases. A cell is split in
# the range in which the bound of the kernel is loosest.

#: Relative widening of ranges, to cover rounding.
_WIDER = 2.0**-46
#: Bisection steps for the range of a ratio, and the multipliers that are tried.
_BISECTIONS = 30
_MULTIPLIERS = np.exp(np.linspace(-9.0, 5.0, 57))[:, None]
#: Inputs up to which ranges are computed with all of these. Others make do with a few.
_INPUTS = 256
#: Units of work of two bounds, per entry of the matrix.
_CELL_WORK = 800


def setup_work(individual: Individual) -> float:
    """Return about how many units of work the ranges of a bit take: three pairs of bisections."""
    inputs, outputs = individual.rest.shape
    multipliers, bisections = _steps(inputs)
    return 160.0 * float(bisections * len(multipliers) * inputs * (outputs + 1))


def _steps(inputs: int) -> tuple[Floats, int]:
    """Return the multipliers that are tried, and how often ranges are halved."""
    if inputs <= _INPUTS:
        return _MULTIPLIERS, _BISECTIONS
    return _MULTIPLIERS[::4], _BISECTIONS // 3


class Bit:
    """A record with two values, described by the posterior of the first one, under H(X) >= b.

    If part of the output depends on the record alone, posteriors given the rest are enough.

    If an output or a value has probability zero, the conditional probabilities given it are not
    defined. Such priors are limits of others, and information and bounds are continuous.
    """

    def __init__(self, individual: Individual, b: float) -> None:
        self.individual, self.b = individual, b - individual.doubt
        #: The last column is for the bit before any output.
        self.W = np.column_stack([individual.rest, np.ones(len(individual.rest))])
        self.look = individual.look
        self.logs, self.edges = individual.logs, individual.edges
        self.start = np.full(1 + 2 * self.W.shape[1], 0.1)
        one = np.zeros_like(self.W)
        one[: self.edges[1]] = 1.0
        self.ranges = self.ratio(self.W * one, self.W)
        low, high = self.ratio(self.W * one, one)
        low_other, high_other = self.ratio(self.W * (1.0 - one), 1.0 - one)
        with np.errstate(divide="ignore", invalid="ignore"):
            #: Ranges of P(y | first value) / P(y | second value).
            self.least = np.nan_to_num(low / high_other, nan=0.0) * (1.0 - _WIDER)
            self.most = np.where(low_other > 0.0, high / low_other, math.inf) * (1.0 + _WIDER)

    def ratio(self, F: Floats, G: Floats) -> tuple[Floats, Floats]:
        """Return the ranges of (p F)/(p G), 0 <= F <= G, over p with H >= b.

        p (F - u G) <= t ln sum_x k_x e^((F - u G)_x/t) - t b for every t > 0. So u is an upper
        bound if some t makes the right-hand side negative.
        """
        ends = []
        multipliers, bisections = _steps(len(F))
        scale = np.maximum(G.max(axis=0), 1e-300)
        for part in (F, G - F):
            low, high = np.zeros(F.shape[1]), np.ones(F.shape[1])
            for _ in range(bisections):
                middle = 0.5 * (low + high)
                g = (part - middle * G) / scale
                top = g.max(axis=0)
                total = self._log_sums((g - top) / multipliers[:, None])
                most = top + multipliers * (total + 1e-12 * np.abs(total) - self.b + 1e-12)
                proved = most.min(axis=0) < -1e-12
                high, low = np.where(proved, middle, high), np.where(proved, low, middle)
            ends.append(high)
        return np.maximum(1.0 - ends[1] - roundoff(2.0), 0.0), np.minimum(
            ends[0] + roundoff(2.0), 1.0
        )

    def _log_sums(self, g: Floats) -> Floats:
        """Return ln sum_x k_x e^g for every multiplier and output."""
        scores = g + self.logs[:, None]
        most = scores.max(axis=1, keepdims=True)
        return np.asarray(most[:, 0] + np.log(np.exp(scores - most).sum(axis=1)))

    def cell(self, low: Floats, high: Floats, z: Floats, floor: float, reach: float) -> Cell:
        """Bound over the priors whose posteriors are within ranges, starting from the point z.

        The bound is at least the floor, and the cell keeps the priors that reveal more than that.
        """
        low, high, z, p = low.copy(), high.copy(), z.copy(), np.empty(len(self.W))
        bound, output, cut = kernels.posterior_bound(
            low, high, z, self.W, self.look, self.individual.order, self.logs, self.edges,
            self.least, self.most, self.b, floor, reach, p,
        )  # fmt: skip
        return Cell(bound, low, high, z, p, output, cut, self)

    def root(self, floor: float, reach: float) -> Cell:
        """Bound over all priors."""
        return self.cell(*self.ranges, self.start, floor, reach)


@dataclass
class Cell:
    """Ranges of the posteriors, the bound over them, and its maximiser."""

    bound: float  #: on the information over it
    low: Floats
    high: Floats
    z: Floats
    p: Floats
    output: int  #: whose range to split, -1 if none is wide
    cut: float
    problem: Bit

    @property
    def work(self) -> float:
        """Units of work to split it."""
        return _CELL_WORK * self.problem.W.size

    def children(self, floor: float) -> list[Cell]:
        """Split the range in which the bound is loosest."""
        if self.output < 0:
            return []
        reach = 0.02 * (self.bound - floor)
        middle, other = self.high.copy(), self.low.copy()
        middle[self.output] = other[self.output] = self.cut
        parts = []
        for low, high in ((self.low, middle), (other, self.high)):
            child = self.problem.cell(low, high, self.z, floor, reach)
            if child.bound >= self.bound:  # nothing gained: the point may have been a bad start
                again = self.problem.cell(low, high, self.problem.start, floor, reach)
                child = min(child, again, key=lambda part: part.bound)
            child.bound = min(child.bound, self.bound)
            parts.append(child)
        return parts


# Simplices of the distributions of slices.

#: Largest coordinate of a simplex that is halved. Beyond, rounding errors exceed the gain.
_FINEST = 2.0**30
#: Inputs up to which output distributions are mixtures of them, rather than of outputs.
FEW_INPUTS = 64
#: Units of work of two bounds, per entry of the matrix.
_BOUND = 6000
#: Units of work of Newton's method, per cube of the variables.
_NEWTON = 20


def _basis(E: Floats, r: Floats) -> tuple[Floats, Floats]:
    """Return rows that span all q - r, and weights that stand for the middle."""
    inputs, outputs = E.shape
    if inputs <= max(FEW_INPUTS, outputs):
        return E, np.full(inputs, 1.0 / inputs)
    return np.eye(outputs) - r, r


class Problem:
    """The problem that the kernel bounds, over all slices of an individual."""

    def __init__(self, slices: list[Slice], E: Floats, b: float) -> None:
        self.slices, self.E, self.b, self.held = slices, E, b, 0
        self.logs = np.concatenate([part.logs for part in slices])
        self.inputs = len(self.logs)
        self.base, self.middle = _basis(E, slices[0].r)
        self.edges: Ints = np.cumsum([0, *(len(part.rows) for part in slices)])
        self.corners = max(part.corners for part in slices)
        self.extra, self.extra_doubt = np.zeros(len(E)), np.zeros(len(E))
        self.scale = max(float(part.far.max()) for part in slices)

    @classmethod
    def single(cls, part: Slice, d: Floats, t: float) -> Problem:
        """Return the maximum of D(V || r + d) + t H over distributions of a slice."""
        made = cls([part], np.zeros_like(part.E), 0.0)
        made.held = len(made.base) + 1
        made.extra, made.extra_doubt = part.towards(d)
        return made

    def split(self, p: Floats) -> list[Floats]:
        """Return the parts of a vector over inputs that belong to the slices."""
        return np.split(p, self.edges[1:-1])

    def start(self, t: float) -> Floats:
        """Return a point with a finite bound."""
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
        """Bound over simplices, starting from the point z, with tangents at the distribution p."""
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
        return Node(most, simplices, z, law, self)

    def root(self, p: Floats, t: float, floor: float, reach: float) -> Node:
        """Bound over all distributions, with tangents at p."""
        whole = [part.whole() for part in self.slices]
        return self.bound(whole, p, self.start(t), 0.1 * self.scale, floor, reach)

    def afresh(self, simplices: list[Simplex], t: float, floor: float, reach: float) -> Node:
        """Bound over simplices, starting from their centres; t is used only if it is fixed."""
        z, mu = self.start(t if self.held else self.ample()), 0.1 * self.scale
        return self.bound(simplices, gibbs(self.logs), z, mu, floor, reach)

    def ample(self) -> float:
        """Return a t that is large enough for all thetas."""
        return self.scale + 2.0 * max(max(part.eta, part.proved.theta) for part in self.slices)


@dataclass
class Node:
    """Simplices, the bound over them, and its maximiser."""

    bound: float  #: on the information over it
    simplices: list[Simplex]
    z: Floats
    p: Floats
    problem: Problem

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
        parts, gap, problem = [], 0.02 * (self.bound - floor), self.problem
        for half in self.simplices[a].halves(laws[a], slices[a]):
            simplices = [*self.simplices[:a], half, *self.simplices[a + 1 :]]
            mu = max(gap, 2e-4 * problem.scale)
            child = problem.bound(simplices, self.p, problem.calmed(self.z), mu, floor, gap)
            if child.bound >= self.bound:  # nothing gained: the point may have been a bad start
                t = float(self.z[len(problem.base)])
                again = problem.afresh(simplices, t, floor, gap)
                child = min(child, again, key=lambda part: part.bound)
            child.bound = min(child.bound, self.bound)
            parts.append(child)
        return parts


def prove_line(
    part: Slice, p: Floats, d: Floats, t: float, tolerance: float, meter: Meter, deadline: float
) -> None:
    """Search a slice at q = r + d and t, and keep the line that this proves."""
    problem = Problem.single(part, d, t)
    best = -math.inf

    def split(node: Node) -> list[Node]:
        nonlocal best
        law = node.p / node.p.sum()
        seen, e = law > 0.0, law @ part.E
        entropy = -float(law[seen] @ (np.log(law[seen]) - part.logs[seen]))
        value = divergence(part.r + e, part.r, e) + float(law @ problem.extra) + t * entropy
        best = max(best, value)
        meter.spend(node.work)
        children = node.children(best + tolerance) if node.bound > best + tolerance else []
        if not children:  # close enough, or rounding hides what the bound misses
            search.close(node.bound)
        return children

    root = problem.root(p, t, -math.inf, 0.1 * tolerance)
    if root.bound < math.inf:
        search: BestFirst[Node] = BestFirst([root], split)
        most = search.run(lambda: best + tolerance, lambda: meter.used() >= deadline)
        part.proved = part.from_maximum(most, d, t)
