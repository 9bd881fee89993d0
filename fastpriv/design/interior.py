"""An interior-point method for the privacy programs, block by block.

    minimise <c, v>  subject to  s = A v >= 0,  B v = b,

where A holds one row per ordered pair of neighbouring classes of one output and B sums classes
into equations. Only B couples the outputs, so a Newton step factors each output's normal matrix
A' (lambda/s) A by itself (banded) and solves one small system with as many unknowns as there are
equations. Iterates are strictly inside the cone, hence private as they stand.

Three things make it converge where the textbook method stalls. It starts at the analytic centre,
found by Newton's method first, where multipliers lambda ~ 1/s are dual feasible up to the cost.
Complementarity is kept even in class masses, not in single entries, which span too many orders of
magnitude. And lambda is refined after every step: rounding in A v, divided by a tiny s, would
otherwise leave a dual residual that no certificate survives.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fastpriv import kernels
from fastpriv._core.rounding import ULP
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints

_CENTRING = 80
_STEPS = 200
_STEP = 0.95
_REFINEMENTS = 2
#: Steps in which the gap must shrink by a tenth, or rounding has won.
_PATIENCE = 12
#: First complementarity, as a multiple of the cost of the centre.
_FIRST = 20.0
#: Operations of a factorisation that are done without a look at the clock.
_UNWATCHED = 1e7
#: Operations that take longer than waking a thread.
_THREAD = 2e5


@dataclass
class Program:
    """A reduced privacy program in class masses; see :mod:`fastpriv._structure.types`."""

    cost: Floats
    rhs: Floats
    row: Ints  # equation of every class
    source: Ints
    target: Ints
    ratio: Floats  # slack = e^epsilon ratio v[target] - v[source]
    epsilon: float
    margin: float  # how far below the level that was asked for the program is posed
    starts: Ints  # classes of every block
    edges: Ints  # pairs of every block
    bands: Ints
    inside: Floats  # a strictly feasible start
    length: Floats | float = 1.0  # of a pair; margins are per unit of it

    @cached_property
    def growth(self) -> float:
        """Return e^epsilon - 1."""
        return math.expm1(self.epsilon)

    @cached_property
    def granted(self) -> Floats:
        """Return the ratios at the level that was asked for: bounds must hold there."""
        return np.asarray(self.ratio * np.exp(self.margin * self.length))

    def slack(self, v: Floats) -> Floats:
        """A v."""
        out = np.empty(len(self.source))
        kernels.cone_slack(v, self.source, self.target, self.ratio, self.growth, out)
        return out

    def adjoint(self, weight: Floats) -> Floats:
        """A' weight."""
        out = np.empty(len(self.row))
        kernels.cone_adjoint(weight, self.source, self.target, self.ratio, self.growth, out)
        return out

    def totals(self, v: Floats) -> Floats:
        """B v."""
        return np.asarray(np.bincount(self.row, v, len(self.rhs)))

    def bound(self, weight: Floats) -> float:
        """Lower bound on the optimum proved by multipliers ``weight`` >= 0 of the slacks.

        For any feasible v, <c, v> >= <z, v> with z = c - A' weight, and 0 <= v <= most. Given
        that v adds up to rhs in each equation, <z, v> is least when the classes with the least z
        are filled first. Filling is what makes the bound robust: a class whose z is noise has a
        tiny ceiling when its multipliers are huge. z is rounded down by the error of its sum.
        """
        # What a pair pulls at its target stays as the solver balanced it: it is the larger part.
        weight = weight * np.exp(-self.margin * self.length)
        pull = np.empty(len(self.row))
        kernels.cone_adjoint(weight, self.source, self.target, self.granted, self.growth, pull)
        size = pull + 2.0 * np.bincount(self.source, weight, len(self.row))
        z = self.cost - pull - self.rounding * (size + self.cost)
        return filled_from_below(z, self.most, self.row, self.rhs)

    @cached_property
    def most(self) -> Floats:
        """Largest value any class can take: that of its equation, or e^epsilon of a neighbour's."""
        ceiling = self.rhs[self.row].copy()
        grow = (1.0 + self.growth) * (1.0 + 1e-12)
        kernels.cone_ceiling(ceiling, self.source, self.target, self.granted, grow, 10_000)
        return ceiling

    @cached_property
    def rounding(self) -> float:
        """Relative error of a sum over the pairs of one class, coefficients included."""
        degree = sum(int(np.bincount(end).max(initial=0)) for end in (self.source, self.target))
        exponent = self.epsilon + abs(math.log(float(self.ratio.max(initial=1.0))))
        return (degree + 16 + 2.0 * exponent) * ULP

    @cached_property
    def places(self) -> Ints:
        """Where the factor of each block begins, and where the last ends."""
        sizes = np.diff(self.starts) * (self.bands + 1)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def filled_from_below(z: Floats, most: Floats, row: Ints, rhs: Floats) -> float:
    """Lower bound on <z, v> over 0 <= v <= most that add up to rhs in each equation.

    It is least when the classes with the least z are filled first. Rounded downwards.
    """
    if not math.isfinite(float(np.abs(z).sum()) * float(rhs.max())):
        return -math.inf  # multipliers left the range of a double and prove nothing
    order = np.lexsort((z, row))
    z, room, row = z[order], most[order], row[order]
    filled = np.cumsum(room)
    first = np.searchsorted(row, np.arange(len(rhs)))
    before = filled - room - (filled - room)[first][row]
    taken = np.clip(rhs[row] - before, 0.0, room)
    # Rounded sums may stop filling an equation a little early or late. What is missing or too
    # much would have been filled at the z where it stopped.
    count = np.bincount(row)
    off = np.abs(np.bincount(row, taken) - rhs) + 2.0**-52 * count * rhs
    cut = np.zeros(len(rhs))
    np.maximum.at(cut, row[taken > 0], np.abs(z[taken > 0]))
    return math.fsum(z * taken) - math.fsum(cut * off) * (1.0 + 1e-12)


class OutOfTime(Exception):
    """The clock passed before there was anything better than a constant mechanism."""


class OutOfRange(OutOfTime):
    """The coefficients of a program leave the range of a double, so that there is no program."""


class _Newton:
    """Factored normal equations at one point."""

    def __init__(self, program: Program, deadline: float) -> None:
        self.program, self.deadline = program, deadline
        work = float((np.diff(program.starts) * (program.bands + 1.0) ** 2).mean())
        #: Blocks between two looks at the clock.
        self.stride = max(1, int(_UNWATCHED / work))
        thin = float((np.diff(program.starts) * (program.bands + 1.0)).mean())
        #: Blocks that are worth a thread of their own when they are solved.
        self.grain = 1 + int(_THREAD / thin)
        self.factors = np.empty(int(program.places[-1]))
        self.scales = np.empty(len(program.row))

    def factor(self, weight: Floats) -> bool:
        """Factor A' diag(weight) A of every block and the coupling; False if rounding won.

        Also if the clock did: blocks are large.
        """
        p, equations = self.program, len(self.program.rhs)

        def part(first: int, last: int) -> Floats:
            schur = np.zeros((equations, equations))
            for start in range(first, last, self.stride):
                if time.monotonic() > self.deadline:
                    break
                kernels.cone_factor(
                    weight, p.source, p.target, p.ratio, p.growth, p.row, p.starts, p.edges,
                    p.bands, p.places[:-1], start, min(start + self.stride, last), self.factors,
                    self.scales, schur,
                )  # fmt: skip
            return schur

        schur = np.sum(split(part, len(p.bands), 1), axis=0)
        if time.monotonic() > self.deadline:
            return False
        self.root = 1.0 / np.sqrt(np.diag(schur))
        scaled = schur * self.root[:, None] * self.root
        np.fill_diagonal(scaled, 1.0 + 1e-15)
        if not np.isfinite(scaled).all():
            return False
        try:
            self.coupling = cho_factor(scaled)
        except np.linalg.LinAlgError:
            return False
        return True

    def solve(self, rhs: Floats) -> Floats:
        """H^-1 rhs, block by block."""
        p, out = self.program, np.empty_like(rhs)

        def part(first: int, last: int) -> None:
            kernels.cone_solve(
                rhs, p.starts, p.bands, p.places[:-1], self.factors, self.scales, first, last, out
            )

        split(part, len(p.bands), self.grain)
        return out

    def direction(self, pull: Floats, missing: Floats) -> tuple[Floats, Floats]:
        """(dmu, dv) with H dv - B' dmu = pull and B dv = missing."""
        p = self.program
        inner = self.root * (missing - p.totals(self.solve(pull)))
        # Where numbers leave the range of a double, the direction is no number; callers look.
        dmu = self.root * cho_solve(self.coupling, inner, check_finite=False)
        return dmu, self.solve(pull + dmu[p.row])


@dataclass
class Iterate:
    """What the method reached: a point of the cone and the best lower bound."""

    v: Floats
    bound: float


def solve(program: Program, gap: float, deadline: float) -> Iterate:
    """Minimise until the certified relative gap is below ``gap`` or the clock passes.

    Where rounding ends the search early, what was reached is returned with its honest bound.
    """
    with np.errstate(all="ignore"):
        return _follow(program, gap, deadline)


def _follow(p: Program, gap: float, deadline: float) -> Iterate:
    """Follow the central path from the analytic centre."""
    newton = _Newton(p, deadline)
    v, s = _centre(p, newton, deadline)
    weight = _FIRST * float(p.cost @ v) / len(s) / s
    reduced = p.cost - p.adjoint(weight)
    mu = p.totals(reduced * v) / p.totals(v)
    best, value = Iterate(v, 0.0), math.inf  # distortion is never negative
    reached: list[float] = []
    for _ in range(_STEPS):
        missing = p.rhs - p.totals(v)
        off = float(np.abs(missing / p.rhs).max())
        sound = off < 1e-6
        # Rounding may throw the method back: what was reached is kept.
        here = float(p.cost @ v)
        better, bound = sound and here < value, p.bound(weight)
        best = Iterate(v if better else best.v, bound if bound > best.bound else best.bound)
        value = here if better else value
        reached.append(value - best.bound)
        stalled = (
            len(reached) > _PATIENCE
            and reached[-1] < 1e-3 * value
            and reached[-1] > 0.9 * reached[-1 - _PATIENCE]
        )
        if reached[-1] <= gap * value or stalled or not sound or time.monotonic() > deadline:
            break
        residual = p.cost - p.adjoint(weight) - mu[p.row]
        complement = float(s @ weight)
        curve = weight / s
        if not (complement > 0.0 and newton.factor(curve)):  # weights may underflow
            break

        def step(aim: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            pull = p.adjoint(aim - weight) - residual  # noqa: B023
            dmu, dv = newton.direction(pull, missing)  # noqa: B023
            ds = p.slack(dv)
            return dmu, dv, ds, aim - weight - curve * ds  # noqa: B023

        _, _, ds, dw = step(np.zeros_like(s))
        along, across = _length(s, ds, 1.0), _length(weight, dw, 1.0)
        after = float((s + along * ds) @ (weight + across * dw))
        even = complement / len(s)
        aim = (min(max(after / complement, 0.0), 1.0) ** 3 * even - ds * dw) / s
        dmu, dv, ds, dw = step(aim)
        along, across = _length(s, ds, _STEP), _length(weight, dw, _STEP)
        if min(along, across) < 0.1:  # the corrector overshot: centre instead
            dmu, dv, ds, dw = step(0.5 * even / s)
            along, across = _length(s, ds, _STEP), _length(weight, dw, _STEP)
        if not (np.isfinite(dv).all() and np.isfinite(dw).all()) or max(along, across) < 1e-10:
            break
        v, s = v + along * dv, s + along * ds
        weight, mu = weight + across * dw, mu + across * dmu
        weight = _refine(p, newton, weight, mu, (1.0 - across) * residual, curve)
    return best


def _length(x: Floats, dx: Floats, share: float) -> float:
    """Step to ``share`` of the way to the boundary, at most 1."""
    return min(1.0, share / max(1e-300, float((-dx / x).max())))


def _centre(p: Program, newton: _Newton, deadline: float) -> tuple[Floats, Floats]:
    """Newton's method for the analytic centre, the point with the largest product of slacks."""
    v = p.inside
    s = p.slack(v)
    for step in range(_CENTRING):
        if not newton.factor(1.0 / s**2):
            if step == 0 and time.monotonic() > deadline:
                raise OutOfTime
            break
        _, dv = newton.direction(p.adjoint(1.0 / s), p.rhs - p.totals(v))
        ds = p.slack(dv)
        relative = ds / s
        if not np.isfinite(relative).all():
            break
        length = _length(s, ds, 0.9)
        while length > 1e-6 and np.log1p(length * relative).sum() < 0.0:
            length *= 0.5
        v, s = v + length * dv, s + length * ds
        if float(relative @ relative) < 0.1 or time.monotonic() > deadline:
            break
    return v, s


def _refine(
    p: Program, newton: _Newton, weight: Floats, mu: Floats, aim: Floats, curve: Floats
) -> Floats:
    """Bring c - A' weight - B' mu to ``aim``, correcting weights in proportion to their size."""
    goal = p.cost - mu[p.row] - aim
    for _ in range(_REFINEMENTS):
        residual = goal - p.adjoint(weight)
        if np.abs(residual).max() <= 1e-9 * p.cost.max():
            break
        better = weight + curve * p.slack(newton.solve(residual))
        weight = np.where(better > 0.1 * weight, better, weight)
    return weight
