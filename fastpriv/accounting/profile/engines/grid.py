"""Lower and upper bounds on a grid of losses, for losses that are too many to enumerate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.composition import Bounds, Composition, Prepared, cumulant
from fastpriv.accounting.profile.discrete import (
    FINE,
    DiscreteLosses,
    Longs,
    Releases,
    discrete_cumulant,
)
from fastpriv.accounting.profile.engines.lattice import (
    TINY,
    Bound,
    Listed,
    OneSided,
    Steps,
    Tilted,
    on_lattice,
    rounded,
    table,
    tilted_law,
)
from fastpriv.accounting.profile.losses import TooMuchWork

# Lower and upper bounds on delta(t) on a grid of losses with spacing h.
#
# Upper bound: a loss between two grid points is split between them so that the mean of e^l under Q
# stays the same. Delta is convex in e^l under Q, so it can only increase, by at most the effect of
# noise of variance h^2/4.
#
# Lower bound: every output is replaced by the nearest grid point. The loss of a sum is then the
# ratio of P and Q given the sum of grid points, and both P and Q are computed. This is
# post-processing, so delta can only decrease. Both errors are of second order in h.


#: Number of grid points within the window of one step.
_FEWEST = 1 << 15
#: The same number for a million steps.
_MOST = 1 << 20
#: Approximate width of a window, in standard deviations.
_SPAN = 21.0
#: Number of grid points on either side of t at which a test may start.
_NEAR = 1 << 10
#: Maximum number of points from the first of the lower distribution to the last of the higher.
_LONGEST_TAILS = 1 << 25
#: Number of spacings that are compared.
_TRIED = 1 << 10


def spacing(releases: Releases, s: float) -> float:
    """Return the grid spacing: about the window of the tilted distribution over its points.

    Among nearby spacings, it is the one with most losses close to its multiples, because losses on
    grid points cause no error.
    """
    count = sum(k for _, k in releases)
    # A power of two that holds the windows of tilted distributions, so transforms are no longer.
    points = min(_FEWEST * 2.0 ** max(0, round(math.log2(count) / 2.0 - 3.0)), _MOST)
    losses = np.concatenate([measure.losses for measure, _ in releases])
    sigma = math.sqrt(discrete_cumulant(releases, s)[2])
    wanted = max(_SPAN * sigma, float(losses.max())) / points
    weights = np.concatenate([_weights(measure, s) * k for measure, k in releases])
    main = abs(float(losses[(weights * (losses != 0.0)).argmax()]))
    fewest, most = math.ceil(main / (1.25 * wanted)), math.floor(main / wanted)
    if most < max(fewest, 1):
        return wanted
    tried = main / np.unique(np.linspace(max(fewest, 1), most, _TRIED).astype(np.int64))
    costs = []
    for h in tried.tolist():
        parts = losses / h
        off = np.abs(parts - np.rint(parts))
        costs.append(h * h * float((weights * off * (1.0 - off)).sum()))
    return float(tried[int(np.argmin(costs))])


def _weights(measure: DiscreteLosses, s: float) -> Floats:
    logs = (measure.logs + s * measure.losses).astype(np.float64)
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs)))


def grid_above(releases: Releases, s: float, h: float) -> Listed:
    """Return the upper bound on the points of a grid."""
    steps = [grid_steps(measure, count, h) for measure, count in releases]
    law = tilted_law(steps, np.longdouble(s) * np.longdouble(h))
    part = on_lattice(law, h, True)
    # Multiples of a step were rounded to doubles.
    moved = sum(roundoff(count) * measure.top for measure, count in releases)
    error = law.log_error + sum(
        count * (measure.error + 32.0 * FINE) for measure, count in releases
    )
    return table([part], s, law.log_total, error, law.outside, moved, True)


def grid_steps(measure: DiscreteLosses, count: int, h: float) -> Steps:
    """Split every loss between its two adjacent grid points."""
    below = np.floor(measure.losses / h)
    rise = np.clip(measure.losses.astype(np.longdouble) - below * np.longdouble(h), 0.0, h)
    step = np.longdouble(h)
    with np.errstate(divide="ignore"):
        high = np.log(np.expm1(-rise) / np.expm1(-step))
        low = np.log(np.expm1(rise - step) / np.expm1(-step)) - rise  # (e^(h - r) - 1)/(e^h - 1)
    at = np.concatenate([below, below + 1.0]).astype(np.int64)
    return _gathered(at, np.concatenate([measure.logs + low, measure.logs + high]), count)


def _gathered(at: np.ndarray, logs: Longs, count: int) -> Steps:
    """Add up the masses of equal steps."""
    keep = logs > -np.inf
    places, which = np.unique(at[keep], return_inverse=True)
    most = logs.max()
    masses = np.zeros(len(places), dtype=np.longdouble)
    np.add.at(masses, which, np.exp(logs[keep] - most))
    seen = masses > 0.0
    return Steps(places[seen], most + np.log(masses[seen]), count)


@dataclass(frozen=True, eq=False)
class Processed:
    """Lower bound P(A) - e^t Q(A); A contains all sums of grid points from some point on."""

    s: float
    h: float
    start: int
    tails_p: Floats
    tails_q: Floats
    log_p: np.longdouble
    log_q: np.longdouble
    error: float

    def value(self, t: float) -> float:
        """Return the best lower bound over the starting points near t."""
        if not len(self.tails_p):  # the windows of P and Q do not meet
            return 0.0
        # The ratio of the tilted P and Q estimates the difference of sums of points and losses.
        ratio = float(self.log_q - self.log_p)
        middle = min(max(round((t + ratio) / self.h) - self.start, 0), len(self.tails_p) - 1)
        near = slice(max(middle - _NEAR, 0), min(middle + _NEAR, len(self.tails_p)))
        losses = (self.start + np.arange(near.start, near.stop)) * self.h
        x = losses - t
        size = abs(float(losses[0])) + abs(float(losses[-1])) + abs(t)
        error = self.error + FINE * (
            abs(float(self.log_p)) + abs(float(self.log_q)) + self.s * size
        )
        error += roundoff(8.0) * (1.0 + self.s) * size
        error += roundoff(abs(ratio))
        with np.errstate(over="ignore"):
            gain = self.tails_p[near] * (1.0 - 2.0 * error) - np.exp(ratio - x) * self.tails_q[
                near
            ] * (1.0 + 2.0 * error)
            logs = np.log(np.maximum(gain, 1e-320)) - self.s * x
        best = int(logs.argmax())
        if not gain[best] > 0.0:
            return 0.0
        exponent = self.log_p - np.longdouble(self.s) * np.longdouble(t)
        error = 2.0 * error + roundoff(32.0) * (1.0 + abs(float(logs[best])))
        return rounded(exponent + np.longdouble(logs[best]), error, False)


def grid_below(releases: Releases, s: float, h: float) -> Processed:
    """Return the lower bound from outputs replaced by grid points."""
    ps, qs = [], []
    for measure, count in releases:
        at = np.rint(measure.losses / h).astype(np.int64)
        ps.append(_gathered(at, measure.logs, count))
        qs.append(_gathered(at, measure.logs - measure.losses, count))
    step = np.longdouble(h)
    p, q = tilted_law(ps, s * step), tilted_law(qs, (s + np.longdouble(1.0)) * step)
    start = max(p.start, q.start)
    top = max(p.start + len(p.y), q.start + len(q.y))
    tails_p = _tails(p, np.maximum(p.y - p.error, 0.0), s * h, start, top)
    tails_q = _tails(q, q.y + q.error, (s + 1.0) * h, start, top)
    tails_p = np.maximum(tails_p - p.outside, 0.0)
    tails_q = tails_q + q.outside + TINY * len(tails_q)  # terms may have been lost to underflow
    error = p.log_error + q.log_error + roundoff(8.0 * len(tails_p))
    # Multiples of a step were rounded to doubles, which changes Q = P e^-l.
    error += sum(
        count * (2.0 * measure.error + 32.0 * FINE + roundoff(measure.top) + measure.off)
        for measure, count in releases
    )
    return Processed(s, h, start, tails_p, tails_q, p.log_total, q.log_total, error)


def _tails(law: Tilted, masses: Floats, sh: float, start: int, top: int) -> Floats:
    """Return tail sums of masses times e^(-sh d) for every start in start .. top - 1."""
    if top - law.start > _LONGEST_TAILS:
        raise TooMuchWork
    padded = np.zeros(top - law.start)
    padded[: len(masses)] = masses
    both, above = np.empty(len(padded)), np.empty(len(padded))
    points, rests = np.arange(len(padded), dtype=np.float64), np.zeros(len(padded))
    kernels.tail_tables(points, rests, padded, sh - 1.0, both, above)
    return both[start - law.start :]


# Bounds on delta(t) of continuous pairs, partitioned into cells, on a grid of losses.


#: Total number of cells over all kinds of steps.
_CELLS = 1 << 17
#: Number of grid points within the window of the tilted distribution of cells.
_POINTS = 1 << 19
#: Logarithm of the smallest delta that is distinguished from zero.
_LEAST = math.log(1e-320)


class Grid:
    """Engine that moves losses to the points of a grid, for both bounds."""

    name = "grid"

    def applies(self, parts: Composition) -> bool:
        """Whether all outputs can be partitioned into cells; discrete losses have one bound."""
        if not parts.pairs:
            return parts.up is not None
        return all(one.pair.can_be_cut for one, _ in parts.pairs)

    def prepare(self, parts: Composition, t: float, s: float) -> Prepared | None:
        """Prepare tilted distributions on a grid; None if the grid would be too coarse."""
        if parts.pairs:
            return _cut(parts, t, s)
        up, h = bool(parts.up), spacing(parts.finite, s)
        bound: Bound = (grid_above if up else grid_below)(parts.finite, s, h)
        return OneSided(bound, parts.shift, up, parts.loss_error if up else 0.0)


GRID = Grid()


@dataclass(frozen=True)
class _Gridded:
    """Lower and upper bounds; outputs beyond the last cell count as an infinite loss."""

    below: OneSided
    above: OneSided
    beyond: float

    def bounds(self, t: float) -> Bounds:
        """Bound the contribution of finite losses to delta(t)."""
        return self.below.bounds(t)[0], min(self.above.bounds(t)[1] + self.beyond, 1.0)


def _cut(parts: Composition, t: float, c: float) -> _Gridded | None:
    """Partition the outputs into cells, and tilt their losses by e^(c loss)."""
    floor = min(max(cumulant(parts.terms, c)[0] - c * t, _LEAST), 0.0)
    count = _CELLS // len(parts.pairs)
    sides = []
    for up in (False, True):
        cut = [(one.measure(32.0 - floor, count, up), k) for one, k in parts.pairs]
        sides.append([*cut, *((measure.without_infinite, k) for measure, k in parts.finite)])
    below, above = sides
    h = _spacing(above, c)
    ends = [(k, one.pair.top(False)) for one, k in parts.pairs if one.pair.has_atoms]
    if ends and max(ends)[1] > h:  # atoms on grid points cause no error
        h = max(ends)[1] / math.ceil(max(ends)[1] / h)
    if not 0.0 < h < 1.0:
        return None
    lower, upper = grid_below(below, c, h), grid_above(above, c, h)
    beyond = raised(math.fsum(k * measure.infinite for measure, k in above), 4.0)
    return _Gridded(one_sided(lower, below, False), one_sided(upper, above, True), beyond)


def one_sided(bound: Bound, releases: Releases, up: bool) -> OneSided:
    """Return a bound for losses with the shifts and errors of these steps."""
    shift = math.fsum(k * measure.shift for measure, k in releases)
    top = shift + math.fsum(k * measure.top for measure, k in releases) + 1.0
    off = math.fsum(k * measure.off for measure, k in releases) if up else 0.0
    return OneSided(bound, shift, up, off, top)


def _spacing(releases: Releases, c: float) -> float:
    """Return the grid spacing: the window of the tilted distribution over its points."""
    sigma = math.sqrt(discrete_cumulant(releases, c)[2])
    widest = max(float(measure.losses[-1] - measure.losses[0]) for measure, _ in releases)
    return max(_SPAN * sigma, widest) / _POINTS
