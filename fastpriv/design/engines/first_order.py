"""A first-order method for programs that are too large for a factorisation.

Restarted primal-dual hybrid gradient with reflection and Halpern averaging (Lu and Yang 2024;
Chambolle and Pock 2011 for the steps). It needs no matrix: a step passes over the multipliers once,
N^2 times the number of neighbours. Steps are scaled by the sums of the coefficients (Pock and
Chambolle 2011). The weight between primal and dual steps follows the distances moved between two
restarts.

Iterates are not private. Every few hundred steps, a copy is raised until its ratios hold, and the
missing mass goes to a constant mechanism. The multipliers, whatever their accuracy, prove a lower
bound.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Clock
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv.design.certificate import Progress, lower_bound
from fastpriv.design.cone import ListedCone
from fastpriv.design.engines.interior import Iterate

#: Steps between two certificates, at least, and as a share of all steps so far.
_CERTIFY = 200
_CERTIFY_SHARE = 0.1
#: Restart if the length of a step fell to this share of the first one since the last restart.
_SUFFICIENT = 0.2
#: Restart at this share if the length starts to grow.
_NECESSARY = 0.8
#: Restart if this share of all steps passed since the last restart, and at least so many.
_LONG = 0.36
_FEWEST = 300
#: Certificates without progress by a tenth after which the method stops.
_PATIENCE = 60
#: Most sweeps of a closure: a path of neighbours is shorter.
_SWEEPS = 10_000
#: Rounds of normalising and closing before masses are mixed in; each brings the sums closer.
_ROUNDS = 10
#: Covers rounding where missing masses are mixed in.
_MIXED = 1e-12


class SharedPairs:
    """The pairs of all outputs as one list over inputs."""

    def __init__(self, cone: ListedCone) -> None:
        size = len(cone.total)
        self.cone, self.size = cone, size
        self.rows = cone.row.reshape(-1, size)
        key = cone.row[cone.source] * size + cone.row[cone.target]
        keys = key.reshape(len(self.rows), -1)
        #: Position of every pair in the list of its output.
        self.order: Ints = np.argsort(keys, axis=1)
        listed = np.take_along_axis(keys, self.order, axis=1)
        ratio = np.take_along_axis(cone.ratio.reshape(keys.shape), self.order, axis=1)
        assert (listed == listed[0]).all()
        assert (ratio == ratio[0]).all()
        source, self.target = np.divmod(listed[0], size)
        self.first = np.searchsorted(source, np.arange(size + 1)).astype(np.int64)
        self.back = np.searchsorted(listed[0], self.target * size + source).astype(np.int64)
        self.source, self.growth = source, ratio[0] * (1.0 + cone.growth)

    def matrix(self, v: Floats) -> Floats:
        """Return unknowns by output and input."""
        out = np.empty(self.rows.shape)
        np.put_along_axis(out, self.rows, v.reshape(out.shape), axis=1)
        return out

    def vector(self, v: Floats) -> Floats:
        """Return unknowns in the order of the cone."""
        return np.take_along_axis(v, self.rows, axis=1).reshape(-1)

    def multipliers(self, w: Floats) -> Floats:
        """Return multipliers in the order of the cone."""
        out = np.empty_like(w)
        np.put_along_axis(out, self.order, w, axis=1)
        return out.reshape(-1)

    def private(self, v: Floats) -> Floats | None:
        """Return a point of the cone near v; None if there is none above a share of zero.

        Columns are raised to their closure and scaled by s. The masses total - s sums that are
        missing go to the constant mechanism. They have to satisfy the ratios themselves, which
        bounds s.
        """
        cone = self.cone
        v = np.maximum(v, 0.0)

        def close(start: int, stop: int) -> bool:
            return kernels.first_order_closure(
                v, self.first, self.target, self.growth, _SWEEPS, start, stop
            )

        for _ in range(_ROUNDS):
            v *= cone.total / v.sum(axis=0)
            if not all(split(close, len(v), 1)):
                return None
        sums, g = v.sum(axis=0), self.growth
        room = g * cone.total[self.target] - cone.total[self.source]
        need = g * sums[self.target] - sums[self.source]
        with np.errstate(divide="ignore", invalid="ignore"):
            most = np.where(need > 0.0, room / need, math.inf).min()
        scale = min(float(most), float((cone.total / sums).min())) * (1.0 - _MIXED)
        if not scale > 0.0:
            return None
        constant = self.matrix(cone.start)
        missing = (cone.total - scale * sums) / constant.sum(axis=0)
        return np.asarray(scale * v + missing * constant)


def run(cone: ListedCone, gap: float, clock: Clock) -> Iterate:
    """Minimise until the certified relative gap is met or the time is over."""
    pairs = SharedPairs(cone)
    cost = pairs.matrix(cone.cost)
    unit = float(cost.mean()) or 1.0
    cost /= unit
    v = pairs.matrix(cone.start if cone.near is None else cone.near)
    w = np.zeros((len(v), len(pairs.target)))
    mu = np.zeros(len(cone.total))
    steps = _Steps(pairs, cost, v, w, mu)
    best = pairs.matrix(cone.start)
    progress = Progress(gap, clock, best, patience=_PATIENCE)
    progress.offer(best, float(np.vdot(cost, best)) * unit, 0.0)
    while True:
        steps.advance(max(_CERTIFY, int(_CERTIFY_SHARE * steps.count)), clock)
        bound = lower_bound(cone, pairs.multipliers(steps.w * unit))
        point = pairs.private(steps.v)
        value = math.inf if point is None else float(np.vdot(cost, point)) * unit
        if not progress.offer(best if point is None else point, value, bound):
            break
    return Iterate(pairs.vector(progress.point), progress.bound)


class _Steps:
    """Iterates, anchors and the weight between primal and dual steps."""

    def __init__(self, pairs: SharedPairs, cost: Floats, v: Floats, w: Floats, mu: Floats) -> None:
        self.pairs, self.cost, self.v, self.w, self.mu = pairs, cost, v, w, mu
        self.total = pairs.cone.total
        growth = pairs.growth
        columns = np.bincount(pairs.source, minlength=len(mu)) + 1.0
        columns += np.bincount(pairs.target, growth, len(mu))
        self.v_step: Floats = np.asarray(1.0 / columns, dtype=np.float64)
        self.w_step: Floats = 1.0 / (1.0 + growth)
        self.mu_step = 1.0 / len(v)
        self.weight, self.count = 1.0, 0
        self._anchor()

    def _anchor(self) -> None:
        self.v_anchor, self.w_anchor, self.mu_anchor = self.v.copy(), self.w.copy(), self.mu.copy()
        self.age, self.longest, self.last = 0, math.inf, math.inf

    def advance(self, count: int, clock: Clock) -> None:
        """Make so many steps, or fewer if the time is over; restart where that is due."""
        for _ in range(count):
            length = self._step()
            if self.age == 1:
                self.longest = length
            elif self._due(length):
                self._restart()
            else:
                self.last = length
            if clock.left() == 0.0:
                break

    def _step(self) -> float:
        """Make one step; return its length in the norm of the step sizes."""
        pairs, weight = self.pairs, self.weight
        given = pairs.first, pairs.target, pairs.back, pairs.growth
        v_step, w_step = self.v_step / weight, self.w_step * weight
        parts: list[Floats] = []

        def part(start: int, stop: int) -> float:
            sums = np.zeros(pairs.size)
            parts.append(sums)
            return kernels.first_order_step(
                self.v, self.w, self.v_anchor, self.w_anchor, self.cost, self.mu, *given, v_step,
                w_step, float(self.age), start, stop, sums,
            )  # fmt: skip

        length = math.fsum(split(part, len(self.v), 1))
        step = self.mu_step * weight
        change = step * (self.total - np.sum(parts, axis=0))
        length += float(change @ change) / step
        keep, draw = (self.age + 1.0) / (self.age + 2.0), 1.0 / (self.age + 2.0)
        self.mu = np.asarray(keep * (self.mu + 2.0 * change) + draw * self.mu_anchor)
        self.age += 1
        self.count += 1
        return math.sqrt(length)

    def _due(self, length: float) -> bool:
        """Whether to restart after a step of this length."""
        if length <= _SUFFICIENT * self.longest:
            return True
        if length <= _NECESSARY * self.longest and length > self.last:
            return True
        return self.age >= max(_FEWEST, _LONG * self.count)

    def _restart(self) -> None:
        """Balance the steps by the distances moved, and anchor here."""
        moved = ((self.v - self.v_anchor) ** 2 / self.v_step).sum()
        turned = ((self.w - self.w_anchor) ** 2 / self.w_step).sum()
        turned += ((self.mu - self.mu_anchor) ** 2).sum() / self.mu_step
        if moved > 0.0 and turned > 0.0:
            self.weight = math.sqrt(self.weight * math.sqrt(turned / moved))
        self._anchor()
