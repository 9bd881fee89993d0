"""Search for the strong data-processing constant of three or more inputs.

A law r with the ratio s = D(rW || q)/D(r || p) bounds the constant from below. From above, a level
l is proved by branch and bound over simplices of laws: F(r) = l D(r || p) - D(rW || q) >= 0. Both
divergences are convex, so F is bounded on a simplex by a quadratic function that touches it; see
``kernels/sdpi.py``. Near p and near a minimiser of F the function touches at that very point, and
a cell that contains it is proved as soon as the quadratic function is convex.
"""

from __future__ import annotations

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Clock, Meter
from fastpriv._core.divergence import divergence
from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv._core.validation import Floats
from fastpriv._core.warm_up import load_kernels

#: Most inputs that are searched, and cells that wait; cells between two looks at the clock.
LARGEST, _WAITING, _ROUND = 8, 4096, 500
#: Seeded random starts, steps of each, steps of Newton's method, and how often it is repeated.
_STARTS, _STEPS, _NEWTON, _RAISES = 12, 80, 20, 8
#: Work that a search without a time limit may do.
_WORK = 5e5
#: Inputs up to which a step of linear algebra takes no time to speak of.
_QUICK = 64
#: Parts of the width at which levels are tried before the gap itself.
_PARTS = 3.0, 30.0
#: Most local maxima that are followed up from one set of starts, and how far apart these are.
_KEPT, _APART = 4, 0.02
#: Divergences below are left to rho^2; laws nearer than this count as one.
_NEAR_PRIOR, _SAME = 1e-9, 1e-6


class Ratios:
    """The two divergences of laws r, rW from p, q, and their ratio.

    Ascents end where they are when the time is over.
    """

    def __init__(self, rows: Floats, p: Floats, clock: Clock) -> None:
        self.rows, self.p, self.q, self.clock = rows, p, p @ rows, clock
        # From differences of rows, so that small ones keep their digits.
        excess = rows - rows[np.argmax(p)]
        for _ in range(2):
            excess = excess - p @ excess
        self.excess = excess

    def logs(self, u: Floats) -> Floats:
        """Return ln(rW/q) for laws r = p + u."""
        shift = u @ self.excess
        mean = np.maximum(self.q + shift, 2.0**-1000)
        with np.errstate(divide="ignore", invalid="ignore"):
            small = np.abs(shift) < 0.5 * self.q
            logs = np.where(small, np.log1p(shift / self.q), np.log(mean / self.q))
        return np.asarray(logs)

    def ratio(self, r: Floats) -> float:
        """Return a lower bound on D(rW || q)/D(r || p), 0 if r is too near p."""
        u, size = r - self.p, len(self.p)
        shift, logs = u @ self.excess, self.logs(u)
        mean = np.maximum(self.q + shift, 0.0)
        # D is convex in the mean, so an error e of the mean changes it by sum |ln(mean/q)| e.
        off = (size + 8) * ULP * (np.abs(u) @ np.abs(self.excess)) + 2.0**-1000
        depth = 1.0 + float(np.maximum(-logs, 0.0).max())
        relative = (size + len(mean) + 160) * ULP * depth
        below = raised(divergence(r, self.p, u), size + 160)
        above = divergence(mean, self.q, shift) * (1.0 - relative) - float(np.abs(logs) @ off)
        return lowered(above / below, 8.0) if below >= _NEAR_PRIOR else 0.0

    def tilted(self, u: Floats, level: Floats | float) -> Floats:
        """Return p e^(h/l), h(x) = sum_y W[x, y] ln(rW/q)(y): F of no law in between is larger.

        It maximises a minorant of D(rW || q) - l D(r || p). If l is the ratio of r, the ratio
        does not decrease.
        """
        h = self.logs(u) @ self.excess.T / level
        r = self.p * np.exp(h - h.max(axis=-1, keepdims=True))
        return np.asarray(r / r.sum(axis=-1, keepdims=True))

    def climbed(self, starts: Floats) -> Floats:
        """Return laws of larger ratios, by some steps from each start."""
        r = starts
        for _ in range(_STEPS):
            if self.clock.left() == 0.0:
                break
            u = r - self.p
            below = (r * np.log(np.maximum(r, 2.0**-1000) / self.p)).sum(axis=1)
            above = ((self.q + u @ self.excess) * self.logs(u)).sum(axis=1)
            level = above / np.maximum(below, 1e-14)
            r = self.tilted(u, np.maximum(level, 1e-14)[:, None])
        return r

    def difference(self, r: Floats, level: float) -> float:
        """Return F(r) = l D(r || p) - D(rW || q)."""
        u = r - self.p
        shift = u @ self.excess
        inputs = divergence(r, self.p, u)
        return level * inputs - divergence(np.maximum(self.q + shift, 0.0), self.q, shift)

    def minimiser(self, r: Floats, level: float) -> Floats:
        """Return a law near r at which F has a local minimum.

        Newton's method in the coordinates u / sqrt(r), with the absolute values of the
        curvatures, so that it leaves saddle points.
        """
        value = self.difference(r, level)
        for _ in range(_NEWTON):
            if r.min() <= 1e-14 or self.clock.left() < step_seconds(len(r)):
                break
            u, root = r - self.p, np.sqrt(r)
            mean = np.maximum(self.q + u @ self.excess, 2.0**-1000)
            scaled = self.excess * root[:, None]
            curvature = level * np.eye(len(r)) - (scaled / mean) @ scaled.T
            slope = root * (level * np.log1p(u / self.p) - self.excess @ self.logs(u))
            across = np.eye(len(r)) - np.outer(root, root)  # keeps the sum of the law
            values, vectors = np.linalg.eigh(across @ curvature @ across)
            sizes = np.maximum(np.abs(values), 1e-9 * level)
            step = -root * (across @ vectors @ ((vectors.T @ across @ slope) / sizes))
            size = min(1.0, 0.9 / max(float(np.max(-step / r)), 1e-300))
            while size > 1e-6:
                moved = r + size * step
                moved = moved / moved.sum()
                if (reached := self.difference(moved, level)) < value:
                    break
                size *= 0.25
            if size <= 1e-6:
                break
            r, value = moved, reached
        return r


def step_seconds(inputs: int) -> float:
    """Return about how long a matrix of all pairs of inputs takes to decompose."""
    return 5e-9 * inputs**3 if inputs > _QUICK else 0.0


class Search:
    """The ends of the constant so far, the laws that attain the lower one, and levels to prove."""

    def __init__(self, rows: Floats, p: Floats, lower: float, upper: float, clock: Clock) -> None:
        self.ratios, self.lower, self.upper = Ratios(rows, p, clock), lower, upper
        self.law: Floats | None = None
        self.peaks: list[Floats] = []
        size = len(p)
        scaled = np.sqrt(p)[:, None] * self.ratios.excess / np.sqrt(self.ratios.q)
        tilt = np.linalg.svd(scaled, full_matrices=False)[0][:, 0] / np.sqrt(p)
        self.tilt = tilt / np.abs(tilt).max()
        corners = 0.999 * np.eye(size)[np.argsort(p)[:64]] + 0.001 * p
        near = [p * (1.0 + t * self.tilt) for t in (-0.9, -0.5, -0.1, 0.1, 0.5, 0.9)]
        drawn = np.random.default_rng(0).dirichlet(np.full(size, 0.5), _STARTS)
        self._offer(self.ratios.climbed(np.vstack([corners, near, 0.999 * drawn + 0.001 * p])))
        for x in range(min(size, 64)):
            self._note(np.eye(size)[x])
        if self.law is None:  # rho^2 is approached near p
            self.law = p * (1.0 + 1e-4 * self.tilt)

    def _note(self, r: Floats) -> None:
        ratio = self.ratios.ratio(r)
        if ratio > self.lower:
            self.lower, self.law = ratio, r

    def _peak(self, r: Floats) -> Floats:
        """Raise the ratio of a law to a local maximum: F at that level is negative beside it."""
        ratio = self.ratios.ratio(r)
        for _ in range(_RAISES):
            moved = self.ratios.minimiser(r, ratio) if ratio > 0.0 else r
            reached = self.ratios.ratio(moved)
            if reached <= raised(ratio, 4.0):
                break
            r, ratio = moved, reached
        self._note(r)
        return r

    def _offer(self, laws: Floats) -> None:
        """Raise the best of some laws, and keep those that are far from others."""
        order = np.argsort([-self.ratios.ratio(r) for r in laws])
        kept: list[Floats] = []
        for r in laws[order]:
            if len(kept) < _KEPT and all(np.abs(r - other).max() > _APART for other in kept):
                kept.append(r)
        self.peaks.extend(self._peak(r) for r in kept)

    def narrow(self, gap: float, time_limit: float | None) -> None:
        """Prove smaller levels until the relative gap is met, or the time or work is used up."""
        load_kernels("sdpi_cells")
        meter = Meter(time_limit, _WORK)
        width = self.upper / self.lower - 1.0
        for part in (*_PARTS, np.inf):
            while True:
                level = self.lower * (1.0 + max(0.99 * gap, width / part))
                if level >= self.upper:
                    break
                better = self._prove(level, meter)
                if better is None:
                    return
                if not len(better):
                    self.upper = level
                    break
                before = self.lower
                self._offer(self.ratios.climbed(better[None]))
                self._note(better)
                if self.lower <= before:  # within rounding of the level
                    return

    def _prove(self, level: float, meter: Meter) -> Floats | None:
        """Return an empty array if a level is proved, None if it is open, a law that refutes it."""
        ratios, p = self.ratios, self.ratios.p
        size = len(p)
        alone = (ratios.rows > 0.0).sum(axis=0) == 1
        weights = level - np.where(alone, ratios.rows, 0.0).sum(axis=1)
        W, q = np.ascontiguousarray(ratios.excess[:, ~alone]), ratios.q[~alone]
        points = [np.zeros(size)]
        for r in self.peaks:
            u = ratios.minimiser(r, level) - p
            if min(np.abs(u - other).max() for other in points) > _SAME:
                points.append(u)
        touched = np.array(points[:16])
        cells, better = np.zeros((_WAITING, size, size)), np.zeros(size)
        corners = np.eye(size) - p
        for x in range(size):
            cells[x, 1:] = np.delete(corners, x, axis=0)
        count = size
        while 0 < count <= _WAITING - 2 and meter.used() < meter.limit:
            count, used = kernels.sdpi_cells(
                cells, count, W, p, q, weights, level, touched, _ROUND, better
            )
            meter.spend(used * size**3)
            if better.any():
                return np.maximum(p + better, 0.0)
        return np.empty(0) if count == 0 else None
