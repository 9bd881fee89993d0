"""A first-order method for programs that are too large for a factorisation.

Restarted primal-dual hybrid gradient with reflection and Halpern averaging (Lu and Yang 2024;
Chambolle and Pock 2011 for the steps). It needs no matrix: a step passes over the multipliers once,
N^2 times the number of neighbours. The weight between primal and dual steps follows the distances
moved between two restarts.

Steps are scaled by the sums of the coefficients (Pock and Chambolle 2011), after a change of units.
An unknown is measured in units of the fourth root of its guessed size. A pair is divided by the
unit of its source and by its ratio, and sums get a third of the coefficients of a column. This
divides the gap after 4,000 steps by 5 or more on dense priors of 6 and 8 bits, and by 2 or 3 on
8 x 8 cells.

Iterates are not private. Every few hundred steps, a copy is raised until its ratios hold, and the
missing mass goes to a constant mechanism. The multipliers, whatever their accuracy, prove a lower
bound.
"""

from __future__ import annotations

import math
import time

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Clock
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats
from fastpriv.design.certificate import Progress, bound_of
from fastpriv.design.cone import SharedCone
from fastpriv.design.engines.interior import Iterate

#: Steps between two certificates, at least, and as a share of all steps so far.
_CERTIFY = 200
_CERTIFY_SHARE = 0.15
#: Restart if the length of a step fell to this share of the first one since the last restart.
_SUFFICIENT = 0.2
#: Restart at this share if the length starts to grow.
_NECESSARY = 0.8
#: Restart if this share of all steps passed since the last restart, and at least so many.
_LONG = 0.36
_FEWEST = 300
#: Certificates without progress by a tenth after which the method stops.
_PATIENCE = 20
#: Outputs of a block: their vectors stay in the cache while the multipliers pass.
_BLOCK = 64
#: Power of the guessed size of an unknown in its step.
_POWER = 0.5
#: Power of the ratio of a pair by which its row is divided.
_PAIRS = 1.0
#: Smallest guessed size, relative to the mean one.
_SMALLEST = 1e-12
#: Coefficients of sums as a share of those of the pairs of a column.
_SUMS = 1.0 / 3.0
#: Power with which the weight follows the ratio of the distances moved.
_TURN = 0.3
#: Times of a certificate that are kept for the last one and the repair.
_RESERVE = 4.0


def entries(inputs: int, outputs: int, pairs: int) -> int:
    """Return how many doubles the method holds: multipliers twice, and a dozen matrices."""
    return 2 * pairs * outputs + 12 * inputs * outputs


def run(cone: SharedCone, gap: float, clock: Clock) -> Iterate:
    """Minimise until the certified relative gap is met or the time is over; v is [k, x]."""
    unit = float(cone.cost.mean()) or 1.0
    steps = _Steps(cone, cone.cost / unit)
    best = np.repeat(cone.whole[:, None] / cone.cost.shape[1], cone.cost.shape[1], axis=1)
    progress = Progress(gap, clock, best, patience=_PATIENCE)
    progress.offer(best, float(np.vdot(cone.cost, best)), 0.0)
    reserve = 0.0
    while True:
        steps.advance(max(_CERTIFY, int(_CERTIFY_SHARE * steps.count)), clock, reserve)
        begun = time.monotonic()
        pull, sources = cone.granted(steps.w)
        bound = bound_of(cone, pull * unit, sources * unit)
        point = cone.private(steps.point())
        value = math.inf if point is None else float(np.vdot(cone.cost, point))
        go_on = progress.offer(best if point is None else point, value, bound)
        reserve = _RESERVE * (time.monotonic() - begun)
        if not go_on or clock.left() <= reserve:
            break
    return Iterate(progress.point.T, progress.bound, not progress.met and clock.left() <= reserve)


class _Block:
    """Iterates, anchors and step sizes of a few outputs."""

    def __init__(self, cone: SharedCone, cost: Floats, near: Floats, size: Floats) -> None:
        self.cost, self.v, self.size = (np.ascontiguousarray(a) for a in (cost, near, size))
        self.w = np.zeros((len(cone.target), cost.shape[1]))
        self.pull, self.ahead = np.zeros_like(self.v), np.empty_like(self.v)
        self.v_step = np.empty_like(self.v)
        self.anchor()

    def anchor(self) -> None:
        """Restart from here."""
        self.v_anchor, self.w_anchor = self.v.copy(), self.w.copy()


class _Steps:
    """Iterates, anchors and the weight between primal and dual steps."""

    def __init__(self, cone: SharedCone, cost: Floats) -> None:
        self.cone, outputs = cone, cost.shape[1]
        near = cone.near / cone.near.mean()
        size = np.maximum(near, _SMALLEST) ** _POWER
        root = np.sqrt(size)
        cuts = range(_BLOCK, outputs, _BLOCK)
        parts = (np.split(part, cuts, axis=1) for part in (cost, cone.near, size))
        self.blocks = [_Block(cone, *part) for part in zip(*parts, strict=True)]
        inverse, columns = 1.0 / root, np.zeros_like(root)
        unit = cone.ratio**-_PAIRS
        stretch = np.empty(len(cone.ratio))
        reach = (unit * cone.ratio).tolist()
        pairs = zip(cone.source.tolist(), cone.target.tolist(), reach, strict=True)
        for e, (x, z, ratio) in enumerate(pairs):
            columns[z] += ratio * inverse[x]
            stretch[e] = (root[z] * inverse[x]).max()  # one step for a pair of all outputs
        self.w_step: Floats = unit / (1.0 + cone.ratio * stretch)
        columns = np.bincount(cone.source, unit, len(root))[:, None] + root * columns
        share = _SUMS * float(columns.mean())
        v_step = size / (columns + share * root)
        for block, part in zip(self.blocks, np.split(v_step, cuts, axis=1), strict=True):
            block.v_step = np.ascontiguousarray(part)
        self.mu_step = share / np.bincount(cone.row, root.sum(axis=1), len(cone.total))
        self.mu = np.zeros(len(cone.total))
        self.weight, self.count = 1.0, 0
        self._anchor()

    def _anchor(self) -> None:
        for block in self.blocks:
            block.anchor()
        self.mu_anchor = self.mu.copy()
        self.age, self.longest, self.last = 0, math.inf, math.inf

    @property
    def w(self) -> list[Floats]:
        """Multipliers of pairs, in blocks of outputs."""
        return [block.w for block in self.blocks]

    def point(self) -> Floats:
        """Return v[x, k] of all outputs."""
        return np.concatenate([block.v for block in self.blocks], axis=1)

    def advance(self, count: int, clock: Clock, reserve: float) -> None:
        """Make so many steps, or fewer if the time is over; restart where that is due."""
        for _ in range(count):
            length = self._step()
            if self.age == 1:
                self.longest = length
            elif self._due(length):
                self._restart()
            else:
                self.last = length
            if clock.left() <= reserve:
                break

    def _step(self) -> float:
        """Make one step; return its length in the norm of the step sizes."""
        cone, blocks, mu = self.cone, self.blocks, self.mu[self.cone.row]

        def part(begin: int, end: int) -> tuple[float, Floats]:
            length, sums = 0.0, np.zeros(len(cone.row))
            for block in blocks[begin:end]:
                length += kernels.first_order_step(
                    block.v, block.w, block.pull, block.v_anchor, block.w_anchor, block.cost, mu,
                    cone.first, cone.target, cone.ratio, block.v_step, block.size, self.w_step,
                    self.weight, float(self.age), block.ahead,
                )  # fmt: skip
                sums += block.ahead.sum(axis=1)
            return length, sums

        lengths, sums = zip(*split(part, len(blocks), 1), strict=True)
        step = self.mu_step * self.weight
        totals = np.bincount(cone.row, np.sum(sums, axis=0), len(cone.total))
        change = step * (cone.total - totals)
        length = math.fsum(lengths) + float((change * change / step).sum())
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
        moved = turned = 0.0
        for block in self.blocks:
            moved += float(((block.v - block.v_anchor) ** 2 / block.v_step).sum())
            squares = (block.w - block.w_anchor) ** 2 * block.size[self.cone.source]
            turned += float(squares.sum(axis=1) @ (1.0 / self.w_step))
        turned += float(((self.mu - self.mu_anchor) ** 2 / self.mu_step).sum())
        if moved > 0.0 and turned > 0.0:
            self.weight *= (math.sqrt(turned / moved) / self.weight) ** _TURN
        self._anchor()
