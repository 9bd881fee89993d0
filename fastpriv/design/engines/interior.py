"""An interior-point method for the privacy programs, block by block.

Only the sums B v = b couple the outputs. So a Newton step factors the normal matrix H = A' (w/s) A
of each output separately. It then solves one small system with as many unknowns as there are
equations. Iterates are strictly inside the cone, hence private.

Three changes to the textbook method avoid stalls. The method starts at the analytic centre, found
by Newton's method, where multipliers w ~ 1/s are dual feasible up to the cost. Complementarity is
kept even in class masses, not in single entries, which span too many orders of magnitude. And w is
refined after every step: rounding in A v, divided by a tiny s, would otherwise leave a dual
residual too large for a certificate.

A metric on N inputs has about N^2 pairs for every output, but only about N of them are tight. The
method then keeps a working set of pairs. After each step, pairs that are violated or nearly tight
join it. The slack of a violated pair starts positive, and its error shrinks with the steps. A
closure over all pairs makes every iterate private. Blocks are dense in this case. A factorisation
costs N^3 for every output, and correctors of N^2 each (Gondzio 1996) follow it.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Clock
from fastpriv._core.threads import serial_algebra, split
from fastpriv._core.validation import Floats
from fastpriv.design.certificate import Progress, lower_bound
from fastpriv.design.cone import Cone, GrowingCone, ListedCone, Place
from fastpriv.design.problem import OutOfTime

#: Maximum number of steps.
_MAX_STEPS = 200
#: Newton steps towards the analytic centre.
_MAX_CENTRING = 80
#: Share of the level that the ratios of the first point use, and most sweeps to reach them.
_BALANCED = 0.85
_MAX_SWEEPS = 10_000
#: Share of the distance to the boundary that a step covers.
_STEP = 0.95
#: The same on the way to the centre.
_CENTRING_STEP = 0.9
#: Smallest useful length of a step.
_SHORTEST_STEP = 1e-10
#: Length below which the corrector overshot.
_OVERSHOT = 0.1
#: Steps in which the gap must shrink by a tenth, once it is below a share of the value.
_PATIENCE = 12
_STALLS_BELOW = 1e-3
#: First complementarity, as a multiple of the cost of the start.
_FIRST = 20.0
#: Rounds of refinement of the multipliers, and the residual at which they stop.
_REFINEMENTS = 2
_RESIDUAL = 1e-9
#: Correctors of outlying products after a dense factorisation.
_CORRECTORS = 4
#: The same after a banded one, whose solves cost more beside the factorisation.
_BANDED_CORRECTORS = 2
#: Aimed increase of a step by a corrector, and the smallest increase that is accepted.
_LONGER = 0.3
_WORTH = 0.02
#: Most operations of a factorisation between two checks of the clock.
_UNWATCHED = 1e7
#: Fewest operations for a separate thread.
_THREAD = 2e5
#: Smallest band of all outputs for which dense blocks in LAPACK are faster.
_WIDE_BAND = 64
#: Added to the unit diagonals of scaled matrices, a few times their rounding error.
_LISTED_SHIFT = 1e-15
_DENSE_SHIFT = 1e-14


class Iterate(NamedTuple):
    """Result of an engine: a point and the best lower bound."""

    v: Floats
    bound: float
    late: bool = False  # the engine stopped in time for the repair, above the gap


def step_length(x: Floats, dx: Floats, share: float) -> float:
    """Return the step that covers ``share`` of the way to the boundary x >= 0, at most 1."""
    return min(1.0, share / max(1e-300, float((-dx / x).max())))


def run(cone: Cone, gap: float, clock: Clock) -> Iterate:
    """Minimise until the certified relative gap is met, time is over, or rounding dominates.

    Raises ``OutOfTime`` if the time is over before the first step.
    """
    with np.errstate(all="ignore"), serial_algebra():
        blocks: Blocks
        if isinstance(cone, ListedCone):
            wide = cone.bands.min() >= _WIDE_BAND and cone.has_one_unknown_per_equation
            blocks = FullBlocks(cone, clock) if wide else BandedBlocks(cone, clock)
        else:
            blocks = DenseBlocks(cone, clock)
        newton = Bordered(cone, blocks)
        if isinstance(cone, ListedCone):
            v, s = _centre(cone, newton, clock)
        else:
            v, s = cone.start, cone.slack(cone.start)
        return _follow(cone, newton, v, s, gap, clock)


def _follow(
    cone: Cone, newton: Bordered, v: Floats, s: Floats, gap: float, clock: Clock
) -> Iterate:
    """Follow the central path from a point of the cone."""
    w = _FIRST * float(np.vdot(cone.cost, v)) / len(s) / s
    at = Place(v, s, w, w / s)
    mu = cone.totals((cone.cost - cone.adjoint(w)) * v) / cone.totals(v)
    # Costs are at least 0, and so is the optimum.
    progress = Progress(gap, clock, v, patience=_PATIENCE, stalls_below=_STALLS_BELOW)
    took = 0.0
    for _ in range(_MAX_STEPS):
        begun = clock.left()
        point = cone.feasible(at.v)
        value = math.inf if point is None else float(np.vdot(cone.cost, point))
        bound = lower_bound(cone, at.w)
        if not progress.offer(v if point is None else point, value, bound) or point is None:
            break
        if begun < took:  # another step would end after the time limit
            return Iterate(progress.point, progress.bound, late=True)
        missing = cone.total - cone.totals(at.v)
        residual = cone.cost - cone.adjoint(at.w) - mu[cone.row]
        at = at._replace(curve=at.w / at.s)
        # Multipliers may underflow.
        if not (float(at.s @ at.w) > 0.0 and newton.factor(at.curve)):
            break
        move = _Directions(cone, newton, at, residual, missing).best()
        finite = np.isfinite(move.dv).all() and np.isfinite(move.dw).all()
        if not finite or max(move.along, move.across) < _SHORTEST_STEP:
            break
        mu = mu + move.across * move.dmu
        goal = cone.cost - mu[cone.row] - (1.0 - move.across) * residual
        at = cone.joined(
            Place(
                at.v + move.along * move.dv,
                at.s + move.along * move.ds,
                at.w + move.across * move.dw,
                at.curve,
                (1.0 - move.along) * at.off,
            )
        )
        if not at.s.min() > 0.0:
            break
        at = at._replace(w=_refined(cone, newton, at.w, goal, at.curve))
        took = begun - clock.left()
    return Iterate(progress.point, progress.bound)


def balanced(cone: ListedCone) -> Floats:
    """Return a point of the cone near its centre: even masses, as far as smaller ratios allow.

    A Newton step changes a mass by a small factor only, and the masses of a constant mechanism span
    many orders of magnitude. For 100 bits this start saves 45 of 55 steps.
    """
    v: Floats = np.asarray((cone.total / np.bincount(cone.row))[cone.row])
    grow = math.exp(_BALANCED * cone.epsilon)
    kernels.cone_ceiling(v, cone.source, cone.target, cone.ratio, grow, _MAX_SWEEPS)
    v *= (cone.total / cone.totals(v))[cone.row]
    return v if (cone.slack(v) > 0.0).all() else cone.start


def _centre(cone: ListedCone, newton: Bordered, clock: Clock) -> tuple[Floats, Floats]:
    """Find the analytic centre, the point with the largest product of slacks, by Newton."""
    v = balanced(cone)
    s = cone.slack(v)
    for step in range(_MAX_CENTRING):
        if not newton.factor(1.0 / s**2):
            if step == 0 and clock.left() == 0.0:
                raise OutOfTime
            break
        _, dv = newton.direction(cone.adjoint(1.0 / s), cone.total - cone.totals(v))
        ds = cone.slack(dv)
        relative = ds / s
        if not np.isfinite(relative).all():
            break
        length = step_length(s, ds, _CENTRING_STEP)
        while length > 1e-6 and np.log1p(length * relative).sum() < 0.0:
            length *= 0.5
        v, s = v + length * dv, s + length * ds
        if float(relative @ relative) < 0.1 or clock.left() == 0.0:
            break
    return v, s


def _refined(cone: Cone, newton: Bordered, w: Floats, goal: Floats, curve: Floats) -> Floats:
    """Bring A' w to the goal, with corrections in proportion to the multipliers."""
    for _ in range(_REFINEMENTS):
        residual = goal - cone.adjoint(w)
        if np.abs(residual).max() <= _RESIDUAL * cone.cost.max():
            break
        better = w + curve * cone.slack(newton.blocks.solve(residual))
        w = np.where(better > 0.1 * w, better, w)
    return w


class _Move(NamedTuple):
    """A Newton direction, and the step lengths in v and in w."""

    dmu: Floats
    dv: Floats
    ds: Floats
    dw: Floats
    along: float
    across: float


class _Directions(NamedTuple):
    """Newton directions from one point."""

    cone: Cone
    newton: Bordered
    at: Place
    residual: Floats
    missing: Floats

    def towards(self, aim: Floats, share: float = _STEP) -> _Move:
        """Return the direction to complementarity s (w + dw) + w ds = s aim."""
        at = self.at
        pull = self.cone.adjoint(aim - at.w - at.curve * at.off) - self.residual
        dmu, dv = self.newton.direction(pull, self.missing)
        ds = self.cone.slack(dv) + at.off
        dw = aim - at.w - at.curve * ds
        along, across = step_length(at.s, ds, share), step_length(at.w, dw, share)
        return _Move(dmu, dv, ds, dw, along, across)

    def best(self) -> _Move:
        """Return Mehrotra's predictor and corrector, corrected further or centred."""
        s, w = self.at.s, self.at.w
        complement = float(s @ w)
        mean = complement / len(s)
        _, _, ds, dw, along, across = self.towards(np.zeros_like(s), 1.0)
        after = float((s + along * ds) @ (w + across * dw)) / complement
        share = min(max(after, 0.0), 1.0) ** 3
        aim = (share * mean - ds * dw) / s
        move = self.towards(aim)
        move = self._corrected(move, aim, max(share, 0.01) * mean)
        if self.newton.blocks.recentres and min(move.along, move.across) < _OVERSHOT:
            return self.towards(0.5 * mean / s)
        return move

    def _corrected(self, move: _Move, aim: Floats, target: float) -> _Move:
        """Correct products that are far from the target, while this lengthens steps."""
        s, w = self.at.s, self.at.w
        for _ in range(self.newton.blocks.correctors):
            along, across = min(1.0, move.along + _LONGER), min(1.0, move.across + _LONGER)
            product = (s + along * move.ds) * (w + across * move.dw)
            change = np.clip(product, 0.1 * target, 10.0 * target) - product
            aim = aim + np.maximum(change, -10.0 * target) / s
            result = self.towards(aim)
            if result.along + result.across < move.along + move.across + _WORTH:
                break
            move = result
        return move


class Blocks(Protocol):
    """The normal matrix H = A' diag(weight) A, one block for every output."""

    correctors: int
    recentres: bool  # whether a short step is replaced by one towards the central path
    shift: float

    def factor(self, weight: Floats) -> Floats | None:
        """Factor all blocks and return B H^-1 B'; None if rounding or the clock stops it."""

    def solve(self, right: Floats) -> Floats:
        """Return H^-1 right."""

    def lifted(self, pull: Floats, free: Floats, dmu: Floats) -> Floats:
        """Return H^-1 (pull + B' dmu), given free = H^-1 pull."""


class Bordered:
    """The Newton system H dv - B' dmu = pull, B dv = missing, for H in blocks."""

    def __init__(self, cone: Cone, blocks: Blocks) -> None:
        self.cone, self.blocks = cone, blocks

    def factor(self, weight: Floats) -> bool:
        """Factor the blocks and their coupling; False if rounding or the clock stops it."""
        from scipy.linalg import cho_factor

        schur = self.blocks.factor(weight)
        if schur is None:
            return False
        self._root = 1.0 / np.sqrt(np.diagonal(schur))
        scaled = schur * self._root[:, None] * self._root
        np.fill_diagonal(scaled, 1.0 + self.blocks.shift)
        if not np.isfinite(scaled).all():
            return False
        try:
            self._coupling = cho_factor(scaled)
        except np.linalg.LinAlgError:
            return False
        return True

    def direction(self, pull: Floats, missing: Floats) -> tuple[Floats, Floats]:
        """Return (dmu, dv); not finite if numbers overflow, which callers check."""
        from scipy.linalg import cho_solve

        free = self.blocks.solve(pull)
        inner = self._root * (missing - self.cone.totals(free))
        dmu = self._root * cho_solve(self._coupling, inner, check_finite=False)
        return dmu, self.blocks.lifted(pull, free, dmu)


class BandedBlocks:
    """Blocks of a list of pairs: banded, factored by compiled loops."""

    correctors = _BANDED_CORRECTORS
    recentres = True
    shift = _LISTED_SHIFT

    def __init__(self, cone: ListedCone, clock: Clock) -> None:
        self.cone, self.clock = cone, clock
        sizes = np.diff(cone.starts)
        #: Blocks between two checks of the clock.
        self.stride = max(1, int(_UNWATCHED / float((sizes * (cone.bands + 1.0) ** 2).mean())))
        #: Fewest blocks for a separate thread in a solve, and in a factorisation.
        entries = sizes * (cone.bands + 1.0)
        self.grain = 1 + int(_THREAD / float(entries.mean()))
        work = entries * (cone.bands + 1.0 + len(cone.total))
        self.factor_grain = 1 + int(_THREAD / float(work.mean()))
        #: Start of the factor of each block, and end of the last.
        self.places = np.concatenate([[0], np.cumsum(sizes * (cone.bands + 1))]).astype(np.int64)
        self.factors = np.empty(int(self.places[-1]))
        self.scales = np.empty(len(cone.row))

    def factor(self, weight: Floats) -> Floats | None:
        """Factor all blocks; the clock is checked between them, as they are large."""
        cone, equations = self.cone, len(self.cone.total)

        def part(first: int, last: int) -> Floats:
            schur = np.zeros((equations, equations))
            for start in range(first, last, self.stride):
                if self.clock.left() == 0.0:
                    break
                kernels.cone_factor(
                    weight, cone.source, cone.target, cone.ratio, cone.growth, cone.row,
                    cone.starts, cone.edges, cone.bands, self.places[:-1], start,
                    min(start + self.stride, last), self.factors, self.scales, schur,
                )  # fmt: skip
            return schur

        schur = np.sum(split(part, len(cone.bands), self.factor_grain), axis=0)
        return None if self.clock.left() == 0.0 else np.asarray(schur)

    def solve(self, right: Floats) -> Floats:
        """Return H^-1 right, block by block."""
        cone, out = self.cone, np.empty_like(right)

        def part(first: int, last: int) -> None:
            kernels.cone_solve(
                right, cone.starts, cone.bands, self.places[:-1], self.factors, self.scales, first,
                last, out,
            )  # fmt: skip

        split(part, len(cone.bands), self.grain)
        return out

    def lifted(self, pull: Floats, free: Floats, dmu: Floats) -> Floats:
        """Solve once more, since the factors are narrow."""
        return self.solve(pull + dmu[self.cone.row])


def _added(parts: list[Floats | None]) -> Floats | None:
    """Add up the matrices of threads; None if one of them stopped."""
    whole: list[Floats] = [part for part in parts if part is not None]
    return np.asarray(np.sum(whole, axis=0)) if len(whole) == len(parts) else None


class FullBlocks:
    """Blocks of a list of pairs with wide bands: dense matrices, factored by LAPACK.

    Every output has one unknown per equation, so B H^-1 B' is the sum of the inverses.
    """

    correctors = 0
    recentres = True
    shift = _LISTED_SHIFT

    def __init__(self, cone: ListedCone, clock: Clock) -> None:
        self.cone, self.clock = cone, clock
        outputs, size = len(cone.bands), len(cone.total)
        self.factors = np.empty((outputs, size, size))
        self.scales = np.empty((outputs, size))

    def factor(self, weight: Floats) -> Floats | None:
        """Factor the normal matrix of every output, and add up the inverses."""
        from scipy.linalg.lapack import dpotrf, dpotri

        cone = self.cone

        def part(first: int, last: int) -> Floats | None:
            schur = np.zeros(self.factors.shape[1:])
            for k in range(first, last):
                normal = self.factors[k]
                kernels.cone_normal(
                    weight, cone.source, cone.target, cone.ratio, cone.growth, cone.row,
                    int(cone.edges[k]), int(cone.edges[k + 1]), normal,
                )  # fmt: skip
                scale = 1.0 / np.sqrt(np.diagonal(normal))
                normal *= scale[:, None] * scale
                np.fill_diagonal(normal, 1.0 + self.shift)
                # The matrix is symmetric: its transpose is the same matrix in Fortran order.
                _, failed = dpotrf(normal.T, lower=1, overwrite_a=1, clean=0)
                if failed or not np.isfinite(scale).all() or self.clock.left() == 0.0:
                    return None
                inverse, _ = dpotri(normal.T, lower=1)
                schur += inverse.T * scale[:, None] * scale
                self.scales[k] = scale
            return schur

        schur = _added(split(part, len(self.factors), 1))
        if schur is None:
            return None
        below = np.tril(schur.T)  # the other triangle has no meaning
        return np.asarray(below + np.tril(below, -1).T)

    def solve(self, right: Floats) -> Floats:
        """Return H^-1 right, output by output."""
        from scipy.linalg.lapack import dpotrs

        rows = self.cone.row.reshape(self.scales.shape)
        ordered = np.empty(self.scales.shape)
        np.put_along_axis(ordered, rows, right.reshape(rows.shape), axis=1)
        ordered *= self.scales
        for factor, one in zip(self.factors, ordered, strict=True):
            one[:] = dpotrs(factor.T, one, lower=1)[0]
        ordered *= self.scales
        return np.take_along_axis(ordered, rows, axis=1).reshape(-1)

    def lifted(self, pull: Floats, free: Floats, dmu: Floats) -> Floats:
        """Solve once more: a product with stored inverses would cost as much."""
        return self.solve(pull + dmu[self.cone.row])


class DenseBlocks:
    """Blocks of a working set of all pairs: dense, of one size, factored by LAPACK."""

    correctors = _CORRECTORS
    recentres = False  # a working set joins after every step: 46 instead of 62 steps at 14 x 14
    shift = _DENSE_SHIFT

    def __init__(self, cone: GrowingCone, clock: Clock) -> None:
        self.cone, self.clock = cone, clock
        outputs, size = cone.cost.shape
        self.factors = np.empty((outputs, size, size))
        self.scales = np.empty((outputs, size))
        self.grain = 1 + int(_THREAD / size**2)  # fewest outputs for a separate thread in a solve
        self.sums = np.zeros((size, len(cone.total)))
        self.sums[np.arange(size), cone.row] = 1.0

    def factor(self, weight: Floats) -> Floats | None:
        """Factor the normal matrix of every output, and add up B H^-1 B'."""
        from scipy.linalg.lapack import dpotrf, dtrtrs

        cone, size = self.cone, len(self.cone.total)

        def part(first: int, last: int) -> Floats | None:
            schur = np.zeros((size, size))
            for k in range(first, last):
                normal, pairs = self.factors[k], slice(cone.starts[k], cone.starts[k + 1])
                kernels.metric_normal(
                    weight[pairs], cone.ratio, cone.source[pairs], cone.target[pairs], normal
                )
                scale = 1.0 / np.sqrt(np.diagonal(normal))
                normal *= scale[:, None] * scale
                np.fill_diagonal(normal, 1.0 + self.shift)
                # The matrix is symmetric: its transpose is the same matrix in Fortran order.
                _, failed = dpotrf(normal.T, lower=1, overwrite_a=1, clean=0)
                if failed or not np.isfinite(scale).all() or self.clock.left() == 0.0:
                    return None
                half, _ = dtrtrs(normal.T, self.sums * scale[:, None], lower=1)
                schur += half.T @ half
                self.scales[k] = scale
            return schur

        return _added(split(part, len(self.factors), 1))

    def solve(self, right: Floats) -> Floats:
        """Return H^-1 right, output by output."""
        from scipy.linalg.lapack import dtrtrs

        out = np.empty_like(right)

        def part(first: int, last: int) -> None:
            for k in range(first, last):
                normal = self.factors[k]
                half, _ = dtrtrs(normal.T, right[k] * self.scales[k], lower=1)
                whole, _ = dtrtrs(normal.T, half, lower=1, trans=1)
                out[k] = whole * self.scales[k]

        split(part, len(self.factors), self.grain)
        return out

    def lifted(self, pull: Floats, free: Floats, dmu: Floats) -> Floats:
        """Solve once more: H^-1 B' for all outputs would need as much memory as the factors."""
        return self.solve(pull + dmu[self.cone.row])
