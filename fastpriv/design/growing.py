"""An interior-point method that meets most of its constraints only when they come near.

A metric on N inputs asks for about N^2 pairs of every output, but only about N of them are tight.
The method keeps a working set of pairs. Steps are cut so that every pair holds, in the set or not,
so each iterate is private as it stands; after each step the pairs that came nearest join the set.
Multipliers of a working set prove a lower bound for all pairs.

The step is that of :mod:`fastpriv.design.interior`, with dense blocks, all of one size. Correctors
(Gondzio 1996) follow it: a factorisation costs N^3 for every output, a corrector N^2.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv.design.interior import Iterate, filled_from_below

_STEPS = 200
_STEP = 0.95
_CORRECTORS = 4
#: First complementarity, as a multiple of the cost of the start.
_FIRST = 20.0
#: Pairs join the set when the bound on their ratio is within this factor of the ratio.
_NEAR = 1.1
#: Complementarity of a new pair, as a share of the mean.
_SHARE = 0.1


@dataclass
class Cone:
    """Vectors v[k, x] >= 0 with v[k, x] <= bound[x, z] v[k, z], summed over orbits of x."""

    cost: Floats  # [k, x]
    row: Ints  # equation of every x
    rhs: Floats
    bound: Floats  # at which the program is posed
    granted: Floats  # at the level that was asked for: lower bounds hold there
    near: np.ndarray  # pairs of the first working set
    starts: Ints = field(init=False)
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

    def slack(self, v: Floats) -> Floats:
        """Bound v[target] - v[source] for the working set."""
        out = np.empty(len(self.source))
        kernels.metric_slack(v, self.bound, self.starts, self.source, self.target, out)
        return out

    def adjoint(self, weight: Floats, bound: Floats | None = None) -> Floats:
        """Transpose of the slack."""
        out, bound = np.empty(self.cost.shape), self.bound if bound is None else bound
        kernels.metric_adjoint(weight, bound, self.starts, self.source, self.target, out)
        return out

    def totals(self, v: Floats) -> Floats:
        """Sum over outputs and the inputs of every equation."""
        return np.asarray(np.bincount(self.row, v.sum(axis=0), len(self.rhs)))

    def lower(self, weight: Floats) -> float:
        """Lower bound on the optimum proved by the weights; see ``interior.Program.bound``."""
        scale = self.bound[self.source, self.target] / self.granted[self.source, self.target]
        weight = weight * scale
        pull = self.adjoint(weight, self.granted)
        outputs, size = self.cost.shape
        places = np.repeat(np.arange(outputs) * size, np.diff(self.starts)) + self.source
        turns = np.bincount(places, weight, outputs * size).reshape(outputs, size)
        degree = int(np.bincount(places).max()) + size
        rounding = (degree + 16 + 2.0 * float(np.log(self.granted.max()))) * ULP
        z = self.cost - pull - rounding * (pull + 2.0 * turns + self.cost)
        row = np.tile(self.row, outputs)
        return filled_from_below(z.reshape(-1), self.rhs[row], row, self.rhs)

    def reach(self, v: Floats, dv: Floats) -> float:
        """Longest step that keeps all pairs."""
        return min(split(lambda a, b: kernels.metric_reach(v, dv, self.bound, a, b), len(v), 1))

    def grow(self, v: Floats) -> np.ndarray:
        """Let the nearest pair of every output and input join; mark the old ones in the new set."""
        nearest = np.empty(v.shape, dtype=np.int32)
        split(
            lambda a, b: kernels.metric_nearest(v, self.bound, self.member, _NEAR, a, b, nearest),
            len(v),
            1,
        )
        output, source = np.nonzero(nearest >= 0)
        target = nearest[output, source]
        self.member[output, source, target] = True
        # New pairs stand behind the old ones of their output.
        old = np.repeat(np.arange(len(v)), np.diff(self.starts))
        order = np.argsort(np.concatenate([old, output]), kind="stable")
        self.source = np.concatenate([self.source, source.astype(np.int32)])[order]
        self.target = np.concatenate([self.target, target])[order]
        self.starts = self.starts + np.concatenate(
            [[0], np.cumsum(np.bincount(output, minlength=len(v)))]
        )
        return np.asarray(order < len(old))


class _Newton:
    """Factored normal equations at one point."""

    def __init__(self, cone: Cone) -> None:
        self.cone = cone
        outputs, size = cone.cost.shape
        self.factors = np.empty((outputs, size, size))
        self.scales = np.empty((outputs, size))
        self.spread = np.empty((outputs, size, len(cone.rhs)))  # H^-1 B'
        self.sums = np.zeros((size, len(cone.rhs)))
        self.sums[np.arange(size), cone.row] = 1.0

    def factor(self, weight: Floats, deadline: float) -> bool:
        """Factor every output's normal matrix and the coupling; False if rounding or time won."""
        from scipy.linalg import cho_factor
        from scipy.linalg.lapack import dpotrf, dtrtrs

        cone = self.cone
        schur = np.zeros((len(cone.rhs), len(cone.rhs)))
        for k, normal in enumerate(self.factors):
            part = slice(cone.starts[k], cone.starts[k + 1])
            kernels.metric_normal(
                weight[part], cone.bound, cone.source[part], cone.target[part], normal
            )
            scale = 1.0 / np.sqrt(np.diagonal(normal))
            normal *= scale[:, None] * scale
            np.fill_diagonal(normal, 1.0 + 1e-14)
            # The matrix is symmetric: its transpose is the same one in Fortran's order.
            _, failed = dpotrf(normal.T, lower=1, overwrite_a=1, clean=0)
            if failed or not np.isfinite(scale).all() or time.monotonic() > deadline:
                return False
            half, _ = dtrtrs(normal.T, self.sums * scale[:, None], lower=1)
            schur += half.T @ half
            whole, _ = dtrtrs(normal.T, half, lower=1, trans=1)
            self.scales[k], self.spread[k] = scale, whole * scale[:, None]
        self.root = 1.0 / np.sqrt(np.diagonal(schur))
        schur *= self.root[:, None] * self.root
        np.fill_diagonal(schur, 1.0 + 1e-14)
        try:
            self.coupling = cho_factor(schur, check_finite=False)
        except np.linalg.LinAlgError:
            return False
        return True

    def solve(self, rhs: Floats) -> Floats:
        """H^-1 rhs, output by output."""
        from scipy.linalg.lapack import dtrtrs

        out = np.empty_like(rhs)
        for k, normal in enumerate(self.factors):
            half, _ = dtrtrs(normal.T, rhs[k] * self.scales[k], lower=1)
            whole, _ = dtrtrs(normal.T, half, lower=1, trans=1)
            out[k] = whole * self.scales[k]
        return out

    def direction(self, pull: Floats, missing: Floats) -> tuple[Floats, Floats]:
        """(dmu, dv) with H dv - B' dmu = pull and B dv = missing."""
        from scipy.linalg import cho_solve

        free = self.solve(pull)
        inner = self.root * (missing - self.cone.totals(free))
        dmu = self.root * cho_solve(self.coupling, inner, check_finite=False)
        return dmu, free + self.spread @ dmu


def solve(cone: Cone, inside: Floats, gap: float, deadline: float) -> Iterate:
    """Minimise from a strictly private start until the certified gap is met or the clock passes."""
    with np.errstate(all="ignore"):
        return _follow(cone, inside, gap, deadline)


def _follow(cone: Cone, v: Floats, gap: float, deadline: float) -> Iterate:
    newton = _Newton(cone)
    s = cone.slack(v)
    weight = _FIRST * float(np.vdot(cone.cost, v)) / len(s) / s
    mu = cone.totals((cone.cost - cone.adjoint(weight)) * v) / cone.totals(v)
    best = Iterate(v, 0.0)
    for _ in range(_STEPS):
        value, lower = float(np.vdot(cone.cost, v)), cone.lower(weight)
        best = Iterate(v, max(best.bound, lower))
        if value - best.bound <= gap * value or time.monotonic() > deadline:
            break
        missing = cone.rhs - cone.totals(v)
        residual = cone.cost - cone.adjoint(weight) - mu[cone.row]
        curve = weight / s
        if not newton.factor(curve, deadline):
            break
        step = _Step(cone, newton, s, weight, curve, residual, missing)
        dmu, dv, dw, along, across = step.best()
        along = min(along, _STEP * cone.reach(v, dv))
        if not (np.isfinite(dv).all() and np.isfinite(dw).all()) or max(along, across) < 1e-10:
            break
        v, weight, mu = v + along * dv, weight + across * dw, mu + across * dmu
        even = float(cone.slack(v) @ weight) / len(weight)
        goal = cone.cost - mu[cone.row] - (1.0 - across) * residual
        old = cone.grow(v)
        s = cone.slack(v)
        if not s.min() > 0.0:
            break
        weight, curve = _joined(weight, _SHARE * even / s, old), _joined(curve, 0.0 * s, old)
        weight = _refined(cone, newton, weight, goal, curve)
    return best


def _joined(known: Floats, new: Floats, old: np.ndarray) -> Floats:
    new[old] = known
    return new


def _refined(cone: Cone, newton: _Newton, weight: Floats, goal: Floats, curve: Floats) -> Floats:
    """Bring A' weight to the goal, correcting weights in proportion to their size."""
    for _ in range(2):
        residual = goal - cone.adjoint(weight)
        if np.abs(residual).max() <= 1e-9 * cone.cost.max():
            break
        better = weight + curve * cone.slack(newton.solve(residual))
        weight = np.where(better > 0.1 * weight, better, weight)
    return weight


@dataclass
class _Step:
    """Newton directions from one point."""

    cone: Cone
    newton: _Newton
    s: Floats
    weight: Floats
    curve: Floats
    residual: Floats
    missing: Floats

    def towards(self, aim: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Direction to complementarity s (weight + dw) + weight ds = s aim."""
        pull = self.cone.adjoint(aim - self.weight) - self.residual
        dmu, dv = self.newton.direction(pull, self.missing)
        ds = self.cone.slack(dv)
        return dmu, dv, ds, aim - self.weight - self.curve * ds

    def best(self) -> tuple[Floats, Floats, Floats, float, float]:
        """Predictor, corrector, and correctors of outlying products while they lengthen steps."""
        s, weight = self.s, self.weight
        complement = float(s @ weight)
        even = complement / len(s)
        _, _, ds, dw = self.towards(np.zeros_like(s))
        along, across = _length(s, ds, 1.0), _length(weight, dw, 1.0)
        after = float((s + along * ds) @ (weight + across * dw)) / complement
        share = min(max(after, 0.0), 1.0) ** 3
        aim = (share * even - ds * dw) / s
        dmu, dv, ds, dw = self.towards(aim)
        along, across = _length(s, ds, _STEP), _length(weight, dw, _STEP)
        target = max(share, 0.01) * even
        for _ in range(_CORRECTORS):
            product = (s + min(1.0, along + 0.3) * ds) * (weight + min(1.0, across + 0.3) * dw)
            change = np.clip(product, 0.1 * target, 10.0 * target) - product
            aim = aim + np.maximum(change, -10.0 * target) / s
            result = self.towards(aim)
            longer = _length(s, result[2], _STEP), _length(weight, result[3], _STEP)
            if sum(longer) < along + across + 0.02:
                break
            (dmu, dv, ds, dw), (along, across) = result, longer
        return dmu, dv, dw, along, across


def _length(x: Floats, dx: Floats, share: float) -> float:
    """Step to ``share`` of the way to the boundary, at most 1."""
    return min(1.0, share / max(1e-300, float((-dx / x).max())))
