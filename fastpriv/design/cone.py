"""The privacy program: minimum cost over vectors of a cone with given sums.

    minimise <c, v>  subject to  s = A v >= 0,  B v = b,  v >= 0,

A has one row per ordered pair (source, target) of one output, s = e^level ratio v[target] -
v[source]. B sums the unknowns of each equation. A is an operator, not a stored matrix, in two
forms: a list of pairs, or all pairs of inputs with a working set. A third form is for methods that
do not factor anything: one list of pairs for all outputs.

A program is solved at a level slightly below the granted level, so that the repair of the floats
has room. Lower bounds hold at the granted level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import roundoff
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints

#: Pairs join the working set if the bound on their ratio is within this factor of the ratio.
_NEAR = 1.02
#: Complementarity of a pair that joins, as a share of the mean.
_JOINING = 0.1
#: Smallest slack of a pair that joins, as a share of the unknown of its source.
_ROOM = 0.003
#: Largest relative error of the sums of a point whose value counts.
_SOUND = 1e-6
#: Rounds of normalising and closing before masses are mixed in; each brings the sums closer.
_ROUNDS = 5
#: Covers rounding where missing masses are mixed in.
_MIXED = 1e-12
#: Most sweeps over all pairs to lower the ceilings.
_SWEEPS = 10_000
#: Covers the rounding of a ceiling: a chain of up to 4,000 products and e^level itself.
_CEILING_MARGIN = 1.0 + 1e-12


class Place(NamedTuple):
    """Where an interior-point method stands: a point, and per pair the slack and the multiplier."""

    v: Floats
    s: Floats  # positive; A v - s is ``off``
    w: Floats
    curve: Floats  # w / s of the last factorisation
    off: Floats | float = 0.0  # of pairs that joined while they were violated


@dataclass
class ListedCone:
    """A program with a list of pairs, in blocks of one output each."""

    cost: Floats
    total: Floats
    row: Ints
    source: Ints
    target: Ints
    ratio: Floats  # slack = e^epsilon ratio v[target] - v[source]
    epsilon: float
    margin: float  # distance of the program's level below the granted level
    starts: Ints  # first unknown of every block
    edges: Ints  # first pair of every block
    bands: Ints  # band width of every block
    start: Floats  # strictly inside the cone, with the right sums
    length: Floats | float = 1.0  # of a pair; margins are per unit of it
    near: Floats | None = None  # a guess with the right sums, for methods that may start anywhere
    gap_share: float = 0.5  # share of the gap for the engine; the rest is for the repair

    @property
    def equation(self) -> Ints:
        """Equation of every unknown, in one dimension."""
        return self.row

    @cached_property
    def has_one_unknown_per_equation(self) -> bool:
        """Whether every output has one unknown for each equation, as without symmetries."""
        equations = len(self.total)
        if not (np.diff(self.starts) == equations).all():
            return False
        rows = np.sort(self.row.reshape(-1, equations), axis=1)
        return bool((rows == np.arange(equations)).all())

    def by_input(self, v: Floats) -> Floats:
        """Return v[x, k] if every output has one unknown for each equation."""
        rows = self.row.reshape(-1, len(self.total))
        out = np.empty((len(self.total), len(rows)))
        np.put_along_axis(out, rows.T, v.reshape(rows.shape).T, axis=0)
        return out

    def listed(self, v: Floats) -> Floats:
        """Return unknowns v[k, x] in the order of the program."""
        rows = self.row.reshape(-1, len(self.total))
        return np.take_along_axis(v, rows, axis=1).reshape(-1)

    @cached_property
    def growth(self) -> float:
        """Return e^epsilon - 1."""
        return math.expm1(self.epsilon)

    @cached_property
    def granted_ratio(self) -> Floats:
        """Ratios at the granted level."""
        return np.asarray(self.ratio * np.exp(self.margin * self.length))

    @cached_property
    def ceiling(self) -> Floats:
        """Largest value of an unknown: the total, or e^epsilon times a neighbour's largest."""
        ceiling = self.total[self.row].copy()
        grow = (1.0 + self.growth) * _CEILING_MARGIN
        kernels.cone_ceiling(ceiling, self.source, self.target, self.granted_ratio, grow, _SWEEPS)
        return ceiling

    @cached_property
    def rounding(self) -> float:
        """Relative error of a sum over the pairs of one unknown, coefficients included."""
        degree = sum(int(np.bincount(end).max(initial=0)) for end in (self.source, self.target))
        exponent = self.epsilon + abs(math.log(float(self.ratio.max(initial=1.0))))
        return roundoff(degree + 16 + 2.0 * exponent)

    def slack(self, v: Floats) -> Floats:
        """Return A v."""
        out = np.empty(len(self.source))
        kernels.cone_slack(v, self.source, self.target, self.ratio, self.growth, out)
        return out

    def adjoint(self, w: Floats) -> Floats:
        """Return A' w."""
        return self._adjoint(w, self.ratio)

    def _adjoint(self, w: Floats, ratio: Floats) -> Floats:
        out = np.empty(len(self.row))
        kernels.cone_adjoint(w, self.source, self.target, ratio, self.growth, out)
        return out

    def totals(self, v: Floats) -> Floats:
        """Return B v."""
        return np.asarray(np.bincount(self.row, v, len(self.total)))

    def granted(self, w: Floats) -> tuple[Floats, Floats]:
        """Return A' w at the granted level, and the contribution of sources.

        The multipliers are scaled so that the contribution at targets, the larger part, stays
        balanced.
        """
        w = w * np.exp(-self.margin * self.length)
        sources = np.bincount(self.source, w, len(self.row))
        return self._adjoint(w, self.granted_ratio), np.asarray(sources)

    def feasible(self, v: Floats) -> Floats | None:
        """Return v, which satisfies all ratios, if its sums are right; else None."""
        missing = (self.total - self.totals(v)) / self.total
        return v if float(np.abs(missing).max()) < _SOUND else None

    def joined(self, at: Place) -> Place:
        """Return a place after pairs joined; here none can join."""
        return at


@dataclass
class GrowingCone:
    """Vectors v[k, x] with v[k, x] <= ratio[x, z] v[k, z] for all pairs; few are tight.

    Only a working set of pairs has slacks and multipliers. They prove a lower bound for all pairs.
    """

    cost: Floats  # [k, x]
    row: Ints  # equation of every x
    total: Floats
    ratio: Floats  # at the level of the program
    granted_ratio: Floats
    near: np.ndarray  # pairs of the first working set
    start: Floats
    gap_share: float = 0.8
    starts: Ints = field(init=False)  # first pair of every output
    source: np.ndarray = field(init=False)
    target: np.ndarray = field(init=False)
    member: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        outputs, size = self.cost.shape
        source, target = (part.astype(np.int32) for part in np.nonzero(self.near))
        self.source, self.target = np.tile(source, outputs), np.tile(target, outputs)
        self.starts = len(source) * np.arange(outputs + 1)
        self.member = np.empty((outputs, size, size), dtype=np.bool_)
        self.member[:] = self.near | np.eye(size, dtype=bool)

    @property
    def equation(self) -> Ints:
        """Equation of every unknown."""
        return np.tile(self.row, len(self.cost))

    @property
    def ceiling(self) -> Floats:
        """Largest value of an unknown: the total of its equation."""
        return np.asarray(self.total[self.equation])

    @property
    def rounding(self) -> float:
        """Relative error of a sum over the pairs of one unknown, coefficients included."""
        size = self.cost.shape[1]
        degree = int(np.bincount(self._places()).max()) + size
        return float(roundoff(degree + 16 + 2.0 * np.log(self.granted_ratio.max())))

    def _places(self) -> Ints:
        """Source of every pair among all unknowns."""
        outputs, size = self.cost.shape
        return np.asarray(np.repeat(np.arange(outputs) * size, np.diff(self.starts)) + self.source)

    def slack(self, v: Floats) -> Floats:
        """Return A v for the working set."""
        out = np.empty(len(self.source))
        kernels.metric_slack(v, self.ratio, self.starts, self.source, self.target, out)
        return out

    def adjoint(self, w: Floats) -> Floats:
        """Return A' w."""
        return self._adjoint(w, self.ratio)

    def _adjoint(self, w: Floats, ratio: Floats) -> Floats:
        out = np.empty(self.cost.shape)
        kernels.metric_adjoint(w, ratio, self.starts, self.source, self.target, out)
        return out

    def totals(self, v: Floats) -> Floats:
        """Return B v."""
        return np.asarray(np.bincount(self.row, v.sum(axis=0), len(self.total)))

    def granted(self, w: Floats) -> tuple[Floats, Floats]:
        """Return A' w at the granted level, and the contribution of sources."""
        pairs = self.source, self.target
        w = w * (self.ratio[pairs] / self.granted_ratio[pairs])
        sources = np.bincount(self._places(), w, self.cost.size).reshape(self.cost.shape)
        return self._adjoint(w, self.granted_ratio), np.asarray(sources, dtype=np.float64)

    def feasible(self, v: Floats) -> Floats | None:
        """Return a point near v that satisfies all ratios and sums; None if none was found."""
        nobody, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        shared = SharedCone(
            self.cost.T, self.row, self.total, nobody, nobody, nothing, nothing, self.start.T,
            self.ratio,
        )  # fmt: skip
        point = shared.private(v.T)
        return None if point is None else point.T

    def joined(self, at: Place) -> Place:
        """Let pairs that are violated or nearly tight join, with a small multiplier each."""
        mean = float(at.s @ at.w) / len(at.w)
        old = self.grow(at.v)
        slack = self.slack(at.v)
        source = at.v.reshape(-1)[self._places()]
        s = np.maximum(slack, _ROOM * source)
        off, w, curve = slack - s, _JOINING * mean / s, np.zeros_like(s)
        s[old], w[old], curve[old], off[old] = at.s, at.w, at.curve, at.off
        return Place(at.v, s, w, curve, off)

    def grow(self, v: Floats) -> np.ndarray:
        """Let the nearest pair of every output and input join; mark the old pairs."""
        nearest = np.empty(v.shape, dtype=np.int32)
        split(
            lambda a, b: kernels.metric_nearest(v, self.ratio, self.member, _NEAR, a, b, nearest),
            len(v),
            1,
        )
        output, source = np.nonzero(nearest >= 0)
        target = nearest[output, source]
        self.member[output, source, target] = True
        # New pairs come after the old ones of their output.
        old = np.repeat(np.arange(len(v)), np.diff(self.starts))
        order = np.argsort(np.concatenate([old, output]), kind="stable")
        self.source = np.concatenate([self.source, source.astype(np.int32)])[order]
        self.target = np.concatenate([self.target, target])[order]
        self.starts = self.starts + np.concatenate(
            [[0], np.cumsum(np.bincount(output, minlength=len(v)))]
        )
        return np.asarray(order < len(old))


@dataclass
class SharedCone:
    """Vectors v[x, k] of all outputs with one list of pairs, v[source] <= ratio v[target].

    Pairs are sorted by their source. If they are part of all pairs of a metric, ``all_ratios`` has
    the others: multipliers of the list prove a lower bound for all, and a closure is over all.
    """

    cost: Floats  # [x, k]
    row: Ints  # equation of every x
    total: Floats
    source: Ints
    target: Ints
    ratio: Floats  # at the level of the program
    granted_ratio: Floats
    near: Floats  # a guess with the right sums; its sizes scale the steps of a method
    all_ratios: Floats | None = None
    gap_share: float = 0.8
    first: Ints = field(init=False)  # first pair of every source

    def __post_init__(self) -> None:
        self.first = np.searchsorted(self.source, np.arange(len(self.cost) + 1)).astype(np.int64)

    @property
    def equation(self) -> Ints:
        """Equation of every unknown."""
        return np.repeat(self.row, self.cost.shape[1])

    @cached_property
    def ceiling(self) -> Floats:
        """Largest value of an unknown: the total, or the bound by a neighbour's largest."""
        ceiling = self.total[self.row].copy()
        kernels.cone_ceiling(
            ceiling, self.source, self.target, self.granted_ratio, _CEILING_MARGIN, _SWEEPS
        )
        return np.repeat(ceiling, self.cost.shape[1])

    @cached_property
    def rounding(self) -> float:
        """Relative error of a sum over the pairs of one unknown, coefficients included."""
        degree = sum(int(np.bincount(end).max(initial=0)) for end in (self.source, self.target))
        return float(roundoff(degree + 16 + 2.0 * np.log(self.granted_ratio.max(initial=1.0))))

    @classmethod
    def of(cls, cone: ListedCone) -> SharedCone:
        """Return the same program, which has one unknown per equation for every output."""
        size = len(cone.total)
        count = len(cone.source) // (len(cone.row) // size)
        source, target = cone.row[cone.source[:count]], cone.row[cone.target[:count]]
        order = np.lexsort((target, source))
        ratio = (cone.ratio * (1.0 + cone.growth))[:count][order]
        granted = (cone.granted_ratio * (1.0 + cone.growth))[:count][order]
        near = cone.start if cone.near is None else cone.near
        cost, near = (cone.by_input(given) for given in (cone.cost, near))
        inputs = np.arange(size)
        return cls(
            cost, inputs, cone.total, source[order], target[order], ratio, granted, near,
            gap_share=cone.gap_share,
        )  # fmt: skip

    def granted(self, w: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Return A' w at the granted level, and the contribution of sources.

        Multipliers come in blocks of outputs. Negative ones count as 0.
        """
        # Any multipliers >= 0 prove a bound, so they are not scaled to the granted level.
        pull, sources = ([np.empty((len(self.row), b.shape[1])) for b in w] for _ in range(2))

        def part(begin: int, end: int) -> None:
            for k in range(begin, end):
                kernels.first_order_adjoint(
                    w[k], self.first, self.target, self.granted_ratio, pull[k], sources[k]
                )

        split(part, len(w), 1)
        return np.concatenate(pull, axis=1), np.concatenate(sources, axis=1)

    def closed(self, v: Floats) -> Floats | None:
        """Return the smallest vectors of the cone above v; None if sweeps ran out."""
        if self.all_ratios is not None:
            columns, shrink = np.ascontiguousarray(v.T), 1.0 / self.all_ratios
            out = np.empty_like(columns)
            split(lambda a, b: kernels.metric_closure(columns, shrink, a, b, out), len(columns), 1)
            return out.T
        above = np.empty_like(v)

        def part(begin: int, end: int) -> bool:
            block = np.ascontiguousarray(v[:, begin:end])
            done = kernels.first_order_closure(block, self.first, self.target, self.ratio, _SWEEPS)
            above[:, begin:end] = block
            return done

        return above if all(split(part, v.shape[1], 1)) else None

    def private(self, v: Floats) -> Floats | None:
        """Return a point of the cone near v; None if there is none above a share of zero.

        Columns are raised to their closure and scaled by s. The masses total - s sums that are
        missing go to the constant mechanism. They have to satisfy the ratios themselves, which
        bounds s.
        """
        v = np.maximum(v, 0.0)
        for _ in range(_ROUNDS):
            closed = self.closed(v * (self.whole / self.sums(v))[:, None])
            if closed is None:
                return None
            v = closed
        sums = self.sums(v)
        scale = self.room(sums) * (1.0 - _MIXED)
        if not scale > 0.0:
            return None
        return np.asarray(scale * v + (self.whole - scale * sums)[:, None] / v.shape[1])

    def sums(self, v: Floats) -> Floats:
        """Return the mass of every input, shared evenly by the inputs of an orbit."""
        total = np.bincount(self.row, v.sum(axis=1), len(self.total))
        return np.asarray((total / np.bincount(self.row))[self.row])

    @cached_property
    def whole(self) -> Floats:
        """Sums of a feasible point."""
        return np.asarray((self.total / np.bincount(self.row))[self.row])

    def room(self, sums: Floats) -> float:
        """Return the largest s such that the masses total - s sums are private themselves."""
        whole = self.whole
        if self.all_ratios is not None:
            room = self.all_ratios * whole - whole[:, None]
            need = self.all_ratios * sums - sums[:, None]
        else:
            room = self.ratio * whole[self.target] - whole[self.source]
            need = self.ratio * sums[self.target] - sums[self.source]
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(need > 0.0, room / need, math.inf).min()
        return min(float(most), float((whole / sums).min()))


#: A program in either form of its pairs: both have the same methods.
Cone = ListedCone | GrowingCone
