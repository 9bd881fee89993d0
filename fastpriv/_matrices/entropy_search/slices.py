"""One row of a database as its slices, the databases for each of its values.

Let V be the output law of a law pi on the inputs of a slice. The divergence D(V || r) is convex in
pi. It has two kinds of upper bounds that are linear in pi up to a multiple of the entropy: chords
between the corners of a simplex of laws, and lines that hold for all laws,
D(V || r) <= sum_x pi_x line_x - theta H(pi).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fastpriv import kernels
from fastpriv._core.divergence import divergence
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.contraction import matrix_contraction

#: Most steps of an ascent, the steps times entries that are allowed, and the least steps.
_CLIMB, _CLIMB_WORK, _LEAST_CLIMB = 500, 1 << 26, 8
#: Most rows of a slice whose contraction is computed. That of others is taken to be 1.
_CONTRACTED = 256
#: Output probabilities of the uniform law below the first are raised by a mean of all rows.
_RARE, _MIXED = 1e-100, 1e-6
#: Where ascents within a slice start, their steps, and the difference that does not count.
_NEAR, _ASCENT, _SAME = 0.9, 300, 1e-6
#: Weight of the uniform law in the law that a line touches, so that it has no zeros.
_EVEN = 1e-9
#: Least probability of a slice whose conditional law a line may touch.
_LEAST = 1e-200
#: Smaller output probabilities are raised to this one in a tangent, which raises the bound.
_TINY = 1e-290


@dataclass(frozen=True)
class Line:
    """D(V || r) <= sum_x pi_x ``values[x]`` - ``theta`` H(pi) for all laws pi of a slice."""

    theta: float
    values: Floats
    doubt: Floats  #: bound on the rounding error of the values


@dataclass(frozen=True)
class Simplex:
    """Laws of a slice with non-negative coordinates with respect to the corners."""

    corners: Floats  #: output laws of the corners, minus r
    heights: Floats  #: their divergences from r
    B: Floats  #: coordinates of the inputs
    rough: float  #: relative error of the coordinates

    def halves(self, p: Floats, part: Slice) -> tuple[Simplex, Simplex]:
        """Cut through the middle of the edge in which the bound is loosest under the law p."""
        _, j, k = self.widest(p, part)
        middle = 0.5 * (self.corners[j] + self.corners[k])
        height = divergence(part.r + middle, part.r, middle)

        def with_middle(lost: int, kept: int) -> Simplex:
            corners, heights, B = self.corners.copy(), self.heights.copy(), self.B.copy()
            corners[lost], heights[lost] = middle, height
            B[:, lost] = 2.0 * self.B[:, lost]
            B[:, kept] = self.B[:, kept] - self.B[:, lost]
            return Simplex(corners, heights, B, self.rough + 4.0 * ULP)

        return with_middle(j, k), with_middle(k, j)

    def widest(self, p: Floats, part: Slice) -> tuple[float, int, int]:
        """Return the largest slack of the bound at the middle of an edge, and the edge."""
        least = 1e-6 * float(p.sum())
        return kernels.widest_edge(p, self.B, self.corners, self.heights, part.r, least)


class Slice:
    """The inputs for one value: distinct output laws, each shared by e^logs databases."""

    def __init__(self, rows: Floats, logs: Floats, r: Floats) -> None:
        self.rows, self.logs, self.r = rows, logs, r
        self.even = gibbs(logs)
        self.E = rows - r
        self.far = np.empty(len(rows))
        kernels.row_divergences(rows, r, np.zeros(len(r)), 0, len(rows), self.far)
        self.by_inputs = len(rows) <= len(r)
        self.eta = _contraction(rows)
        self.proved = self.tangent(self.even)

    @property
    def corners(self) -> int:
        """Number of corners of a simplex: inputs, or outputs if these are fewer."""
        return min(len(self.rows), len(self.r))

    def whole(self) -> Simplex:
        """Return all laws: the simplex of the inputs, or the least simplex over the outputs."""
        if self.by_inputs:
            return Simplex(self.E, self.far, np.eye(len(self.E)), (len(self.r) + 128) * ULP)
        least = self.rows.min(axis=0)
        room = float((self.rows - least).sum(axis=1).max())
        corners = (least - self.r) + room * np.eye(len(self.r))
        heights = np.array([divergence(self.r + e, self.r, e) for e in corners])
        rough = (16.0 + 2.0 * len(self.r) / room) * ULP
        return Simplex(corners, heights, (self.rows - least) / room, rough)

    def tangent(self, p: Floats) -> Line:
        """Return the line that touches at p, by D(V || V') <= eta D(pi || pi')."""
        mass = float(p.sum())
        law = np.maximum(_EVEN * self.even + (p / mass if mass > _LEAST else 0.0), _TINY)
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
        return Line(self.eta, values, (len(self.r) + len(law) + 160) * ULP * size)

    def from_maximum(self, most: float, d: Floats, t: float) -> Line:
        """Turn D(V || r + d) + t H(pi) <= most, for all laws, into a line."""
        values, doubt = self.towards(d)
        return Line(t, most - values, doubt + 4.0 * ULP * abs(most))

    def towards(self, d: Floats) -> tuple[Floats, Floats]:
        """Return D(V || r + d) - D(V || r) as a value per input, and its rounding error."""
        logs = np.log1p(d / self.r)
        shift = math.fsum(map(kernels.divergence, self.r, self.r + d, -d))
        size = np.abs(self.E) @ (np.abs(logs) + np.abs(d) / (self.r + d)) + shift
        lost = self.r @ (np.abs(d) / (self.r + d))  # where r + d cancels
        return shift - self.E @ logs, (len(self.r) + 160) * ULP * size + 4.0 * ULP * lost

    def tells_most(self, p: Floats, d: Floats, t: float) -> bool:
        """Whether ascents from the inputs find no law with a larger D(V || r + d) + t H than p.

        It only chooses what is tried. Where a small t overflows, the comparison fails.
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
        """Return what the kernel combines: values and doubt per input, and the two thetas."""
        near = simplex.B @ simplex.heights
        loose = simplex.rough * (np.abs(simplex.B) @ simplex.heights)
        if self.by_inputs:  # between corners the bound is never above the one between inputs
            other = self.tangent(p)
        else:
            other = Line(0.0, self.far, (len(self.r) + 128) * ULP * self.far)
        doubt = loose + other.doubt + self.proved.doubt
        values = np.stack([near, other.values, self.proved.values, doubt])
        return values, np.array([other.theta, self.proved.theta])


class Individual:
    """One row of the database, with all its slices in the form the kernels take.

    A block is given for each value: the output laws, and the logarithms of the numbers of databases
    that have them. ``doubt`` bounds the errors of these logarithms.
    """

    look: Floats  #: laws of a part of the output that depends on the row alone, one for each value
    rest: Floats  #: laws of the rest of the output, for every input
    order: Ints  #: pairs of outputs of the rest, the first of which may have the larger posterior
    others: list[Floats]  #: channels of the other rows, if each acts by itself

    def __init__(self, blocks: list[tuple[Floats, Floats]], doubt: float = 0.0) -> None:
        self.W = np.ascontiguousarray(np.concatenate([rows for rows, _ in blocks]))
        self.logs, self.doubt = np.concatenate([logs for _, logs in blocks]), doubt
        self.even = gibbs(self.logs)
        self.r = np.asarray(self.even @ self.W)
        if (self.r < _RARE).any():  # databases too few to count in the uniform law
            self.r = (1.0 - _MIXED) * self.r + _MIXED * self.W.mean(axis=0)
        self.slices = [Slice(rows, logs, self.r) for rows, logs in blocks]
        self.E = np.concatenate([part.E for part in self.slices])
        self.edges: Ints = np.cumsum([0, *(len(rows) for rows, _ in blocks)])
        self.scale = max(float(part.far.max()) for part in self.slices)
        self.best = 0.0, self.even  # the information of the last law, and the law
        self.look, self.rest = np.ones((len(blocks), 1)), self.W
        self.order, self.others = np.empty((0, 2), dtype=np.int64), []

    @classmethod
    def looked_at(cls, look: Floats, others: list[Floats], order: Ints) -> Individual:
        """Return a row of a channel that acts row by row: its own channel, and those of others.

        Every prior has a symmetric one whose posteriors of the first value, given the outputs of
        the other rows, are in the given ``order``.
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
        """I of the law p / sum p of the inputs, rounded down and up."""
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
        error = (len(self.W) + len(self.r) + 160) * ULP * (2.0 * size + 4.0 * common + value)
        return max(0.0, value - common - error), value - common + error

    def entropy(self, p: Floats) -> float:
        """H of the law p / sum p, each input spread over its databases, rounded down."""
        seen = p > 0.0
        law = p[seen] / math.fsum(p)
        value = -math.fsum(law * (np.log(law) - self.logs[seen]))
        most = float(self.logs.max()) + math.log(len(p))
        return value - (len(p) + 16) * ULP * (most + 1.0) - self.doubt

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
        """Return sum_y W_xy ln(V_ay/q_y) for every input x, at the law p."""
        total, q = p.sum(), np.maximum(p @ self.W, _TINY)
        parts = [
            part.rows @ np.log(np.maximum(own @ part.rows / own.sum(), _TINY) * total / q)
            for part, own in zip(self.slices, self.split(p), strict=True)
        ]
        return np.concatenate(parts)

    def slope_range(self) -> float:
        """Return the range of the slopes at the uniform law, raised past its rounding."""
        slopes = self._slopes(self.even)
        size = (self.W.shape[1] + 64) * ULP * (float(np.abs(slopes).max()) + 1.0)
        return float(np.ptp(slopes) + 4.0 * size)

    def separation_work(self) -> float:
        """Return about how many units of work it takes to see whether slices separate."""
        return float(sum(_ASCENT * part.rows.size * (2 * len(part.rows)) for part in self.slices))

    def separates(self, p: Floats, d: Floats, t: float) -> bool:
        """Whether every slice by itself seems to tell most at the law p, for q = r + d and t."""
        return t > 0.0 and all(
            part.tells_most(own, d, t)
            for part, own in zip(self.slices, self.split(p), strict=True)
            if len(part.rows) > 1
        )

    def climb(self, p: Floats, b: float) -> Floats:
        """Ascend from p, and return a law with H >= b and locally large information."""
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
    """Return the law proportional to e^logs."""
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _contraction(rows: Floats) -> float:
    """Bound the factor by which the rows contract divergences."""
    if len(rows) == 1:
        return 0.0
    return matrix_contraction(rows).upper if len(rows) <= _CONTRACTED else 1.0
