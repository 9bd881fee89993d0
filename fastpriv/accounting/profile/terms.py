"""Releases in one order of their neighbours, as the contour and the grid want them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.measures import FINE, Measure
from fastpriv.accounting.profile.nodes import Complexes, Nodes, cumulant, log_moments, spread
from fastpriv.accounting.profile.pairs import Pair


@dataclass(frozen=True)
class Ordered:
    """A pair, P against Q, or Q against P where it is flipped."""

    pair: Pair
    flipped: bool = False

    def _w(self, s: float) -> float:
        return -s if self.flipped else 1.0 + s

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln M(c + i angle), and bounds on its error."""
        values, errors = self.pair.log_moments(self._w(c), angles, tolerance)
        return np.conj(values) if self.flipped else values, errors

    def ceiling(self, c: float, angles: Floats) -> Floats:
        """Bound |M(c + i angle)| / M(c) for each angle and all larger ones."""
        return self.pair.ceiling(self._w(c), angles)

    def cumulant(self, s: float) -> tuple[float, float, float]:
        """Return ln M(s) and two derivatives."""
        value, slope, curve = self.pair.cumulant(self._w(s))
        return value, -slope if self.flipped else slope, curve

    def slope(self, c: float) -> float:
        """Bound the change of |M(c + i angle)| / M(c) with the angle."""
        return self.pair.slope(self._w(c))

    def top(self) -> float:
        """Largest loss, to a few units."""
        return self.pair.top(self.flipped)

    def measure(self, far: float, count: int, up: bool) -> Measure:
        """Measure above or below, on some cells of the outputs.

        Above, the mass of a cell is moved to the losses at its edges so that Q keeps its mass.
        Below, all outputs of a cell are made one, and what lies outside is left out.
        """
        cells = self.pair.cells(far, count)
        losses, p, q = cells.losses, cells.p, cells.q
        if self.flipped:
            losses, p, q = -losses[::-1], q[::-1], p[::-1]
        return (_above if up else _below)(losses, p, q, cells.off, cells.error, cells.bounded)


def _above(
    losses: Floats, p: Floats, q: Floats, off: float, error: float, bounded: bool
) -> Measure:
    """Split cells between their edges; what is outside counts as the first edge, or infinite."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        width = np.diff(losses)
        high = -np.expm1(q[1:-1] - p[1:-1] + losses[:-1]) + 4.0 * error + 2.0 * off
        share = np.clip(high / -np.expm1(-np.maximum(width, 1e-300)), 0.0, 1.0)
        up, down = p[1:-1] + np.log(share), p[1:-1] + np.log1p(-share)
    logs = np.full(len(losses), -math.inf)
    logs[1:] = up
    logs[:-1] = np.logaddexp(logs[:-1], down)
    logs[0] = np.logaddexp(logs[0], p[0])
    infinite = 0.0
    if bounded:
        logs[-1] = np.logaddexp(logs[-1], p[-1])
    else:
        infinite = math.exp(max(float(p[-1]) + 0.01, -744.0))
    return _measure(losses, logs, infinite, off, 2.0 * error)


def _below(
    losses: Floats, p: Floats, q: Floats, off: float, error: float, bounded: bool
) -> Measure:
    keep = slice(None) if bounded else slice(1, -1)
    p, q = p[keep], q[keep]
    seen = (p > -math.inf) & (q > -math.inf)
    p, q = p[seen], q[seen]
    result = np.maximum.accumulate(p - q)
    rise = float((result - (p - q)).max(initial=0.0))
    off = 2.0 * error + rise + 4.0 * ULP * float(np.abs(result).max())
    return _measure(result, p, 0.0, off, error)


def _measure(losses: Floats, logs: Floats, infinite: float, off: float, error: float) -> Measure:
    """Gather losses that are equal, and leave out those without mass."""
    seen = logs > -math.inf
    losses, logs = losses[seen], logs[seen]
    starts = np.flatnonzero(np.diff(losses, prepend=-math.inf) > 0.0)
    logs = np.logaddexp.reduceat(logs, starts)
    error += ULP * (16.0 + 4.0 * float(np.abs(logs).max(initial=0.0)))
    return Measure(losses[starts], logs.astype(np.longdouble), infinite, error, off=off)


@dataclass(frozen=True, eq=False)
class Finite:
    """A measure on finitely many losses; what it says of errors is for others to count."""

    given: Measure
    nodes: Nodes = field(init=False)

    def __post_init__(self) -> None:
        losses = self.given.losses.astype(np.longdouble) + np.longdouble(self.given.shift)
        p = np.exp(self.given.logs).sum() - 1.0
        q = np.exp(self.given.logs - losses).sum() - 1.0
        logs = (self.given.logs - losses).astype(np.float64)
        shown = losses.astype(np.float64)
        fuzz = 2.0 * ULP * (2.0 + np.abs(logs))
        slack = len(losses) * 4.0 * FINE
        nodes = Nodes(
            logs,
            shown,
            fuzz,
            ULP * np.abs(shown),
            lambda angles, scale: (1.0 + 2.0 * np.abs(angles)) * slack * math.exp(-scale),
            float(p),
            float(q),
        )
        object.__setattr__(self, "nodes", nodes)

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln M(c + i angle), and bounds on its error."""
        values, errors = log_moments(self.nodes, 1.0 + c, angles)
        return values, errors + 4.0 * FINE * (1.0 + c) * len(self.given.losses)

    def ceiling(self, c: float, angles: Floats) -> Floats:
        """Losses that are few may come together again at any angle."""
        return np.ones(len(angles))

    def cumulant(self, s: float) -> tuple[float, float, float]:
        """Return ln M(s) and two derivatives."""
        return cumulant(self.nodes, 1.0 + s)

    def top(self) -> float:
        """Largest loss, to a few units."""
        return self.given.shift + self.given.top + self.given.off

    def slope(self, c: float) -> float:
        """Bound the change of |M(c + i angle)| / M(c) with the angle."""
        return spread(self.nodes, 1.0 + c) * 1.01
