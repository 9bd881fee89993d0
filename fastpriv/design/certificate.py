"""From an engine's floats to proofs: lower bounds, repaired mechanisms, stopping rules.

An engine meets its constraints up to a tolerance and proves nothing. Any multipliers w >= 0 give a
lower bound on the optimum. Any nearly private vector can be repaired to a mechanism whose floats
meet the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from fastpriv import kernels
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import raised, roundoff
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv._core.wide import wide
from fastpriv.design.cone import Cone, SharedCone

#: Relative differences of row sums that the level of a closure allows for.
TOLERANCE = 1e-13
#: Rounds of closing and normalising before a larger share of a constant is tried.
_REPAIRS = 30
#: Shares of a constant mechanism, in the order in which they are tried.
_TRACES = (0.0, *(10.0**k for k in range(-13, 1)))
#: Most sweeps over all pairs in a closure.
_SWEEPS = 10_000
#: Covers the rounding of a sum of products: no equation has 4,000 unknowns at its cut.
_CUT_MARGIN = 1.0 + 1e-12

Result = TypeVar("Result")
Point = TypeVar("Point")

#: Smallest vector above a given one whose ratios are within a level; None if none was reached.
Closure = Callable[[Floats, float], "Floats | None"]


def lower_bound(cone: Cone, w: Floats) -> float:
    """Return a lower bound on the optimum of a program, from multipliers w >= 0 of its slacks.

    For any feasible v, <c, v> >= <z, v> with z = c - A' w, and 0 <= v <= ceiling. The sums of v are
    given, so <z, v> is smallest if the unknowns with the smallest z are filled first. This makes
    the bound robust: an unknown with huge multipliers, whose z is noise, has a tiny ceiling. z is
    rounded down by the error of its sum.
    """
    return bound_of(cone, *cone.granted(w))


def bound_of(cone: Cone | SharedCone, pull: Floats, sources: Floats) -> float:
    """Return the lower bound of multipliers from A' w and the contribution of its sources."""
    z = cone.cost - pull - cone.rounding * (pull + 2.0 * sources + cone.cost)
    return fill_cheapest(z.reshape(-1), cone.ceiling, cone.equation, cone.total)


def fill_cheapest(z: Floats, ceiling: Floats, row: Ints, total: Floats) -> float:
    """Return the minimum of <z, v> over 0 <= v <= ceiling with given sums, rounded down."""
    if not math.isfinite(float(np.abs(z).sum()) * float(total.max())):
        return -math.inf  # multipliers overflowed
    order = np.lexsort((z, row))
    z, room, row = z[order], ceiling[order], row[order]
    filled = np.cumsum(room)
    first = np.searchsorted(row, np.arange(len(total)))
    before = filled - room - (filled - room)[first][row]
    taken = np.clip(total[row] - before, 0.0, room)
    # Rounded sums may stop filling an equation slightly early or late. The difference is counted at
    # the z where filling stopped.
    count = np.bincount(row)
    off = np.abs(np.bincount(row, taken) - total) + 2.0**-52 * count * total
    cut = np.zeros(len(total))
    np.maximum.at(cut, row[taken > 0], np.abs(z[taken > 0]))
    return math.fsum(z * taken) - math.fsum(cut * off) * _CUT_MARGIN


class Layout(NamedTuple):
    """The entries of a mechanism: how they add up and how their ratios are restored."""

    row: Ints  # equation of every entry
    copies: Floats  # how often the entry counts in its equation
    prior: Floats  # factor of the entries of each equation before ratios are taken
    closure: Closure


def pairs_closure(source: Ints, target: Ints) -> Closure:
    """Return the closure over pairs of entries whose ratio is bounded by e^level."""

    def closure(entry: Floats, level: float) -> Floats | None:
        closed = entry.copy()
        done = kernels.cone_closure(closed, source, target, math.exp(-level), _SWEEPS)
        return closed if done else None

    return closure


def distance_closure(distance: Floats) -> Closure:
    """Return the closure within v[z] <= e^(level d(x, z)) v[x], vector by vector."""

    def closure(entry: Floats, level: float) -> Floats:
        with np.errstate(under="ignore"):
            shrink = np.exp(-level * distance)
        v = entry.reshape(-1, len(distance))
        out = np.empty_like(v)
        split(lambda first, last: kernels.metric_closure(v, shrink, first, last, out), len(v), 1)
        return out.reshape(-1)

    return closure


def repair_margin(epsilon: float, extra: float) -> float:
    """Bound the rounding error of the log of a ratio of repaired entries."""
    return extra + roundoff(64 + 8 * epsilon)


def repaired(
    entry: Floats, constant: Floats, layout: Layout, epsilon: float, extra: float
) -> Floats:
    """Make rows sum to one and keep ratios of prior times entry within e^epsilon.

    Parameters
    ----------
    entry : ndarray
        The engine's p(y|x).
    constant : ndarray
        Entries of a mechanism that does not depend on x.
    layout : Layout
        Equations, and the closure that restores ratios.
    epsilon : float
        The level.
    extra : float
        Further rounding error that the repair allows for.
    """
    # Two steps alternate. Columns are raised to their closure, which restores every ratio. Rows are
    # divided by their sums. The level of the closure is slightly below epsilon, so that small
    # differences of the sums are harmless. If a tight prior prevents convergence, a little of a
    # constant mechanism gives room.
    row, p = layout.row, layout.prior[layout.row]
    spare = min(TOLERANCE, 0.01 * epsilon)
    level = epsilon - repair_margin(epsilon, extra) - spare
    if not level > 0.5 * epsilon or not np.isfinite(entry).all():
        return constant
    given = np.maximum(entry, 0.0)
    given = given / np.bincount(row, given * layout.copies)[row]

    def closed(mixed: Floats) -> Floats | None:
        for _ in range(_REPAIRS):
            above = layout.closure(p * mixed, level)
            if above is None:
                return None
            mixed = above / p
            total = np.bincount(row, mixed * layout.copies)
            mixed = mixed / total[row]
            if math.log(total.max() / total.min()) <= spare:
                return np.asarray(mixed)
        return None

    result = mixed_until(closed, given, constant, _TRACES)
    return constant if result is None else result


def mixed_until(
    accept: Callable[[Floats], Result | None], given: Floats, safe: Floats, shares: Iterable[float]
) -> Result | None:
    """Mix a mechanism with growing shares of a safe one until the mixture is accepted."""
    for share in shares:
        result = accept((1.0 - share) * given + share * safe)
        if result is not None:
            return result
    return None


def certified_level(matrix: Floats, distance: Floats, prior: Floats | None = None) -> float:
    """Return the largest ln(V[x, y] / V[z, y]) / d(x, z) over all pairs, rounded up.

    V is the matrix, or p(x) times the matrix if a prior is given. The products may underflow, so
    columns are divided by powers of two, which is exact.
    """
    entries, slack = wide(matrix), 0.0
    if prior is not None:
        entries, slack = entries * wide(prior[:, None]), roundoff(3.0)  # two rounded products
    given = entries.to_one(axis=0), entries.mantissa, entries.exponent.astype(np.float64)
    parts = split(
        lambda first, last: kernels.metric_level(*given, distance, slack, first, last),
        len(matrix),
        1,
    )
    return raised(max(parts), 24.0)


class Progress(Generic[Point]):
    """The best point and bound of an iteration, and its stopping rule.

    The best results are kept, because rounding may worsen later ones. The iteration ends if the gap
    is met or the time is over. It also ends if the gap, below ``stalls_below`` of the value, did
    not shrink by a tenth in ``patience`` steps.
    """

    def __init__(
        self,
        gap: float,
        clock: Clock,
        point: Point,
        *,
        patience: int,
        bound: float = 0.0,
        absolute: float = 0.0,
        stalls_below: float = math.inf,
    ) -> None:
        self.point, self.value, self.bound = point, math.inf, bound
        self._gap, self._clock, self._absolute = gap, clock, absolute
        self._patience, self._stalls_below = patience, stalls_below
        self._gaps: list[float] = []

    def offer(self, point: Point, value: float, bound: float) -> bool:
        """Keep the better value and bound; return whether to continue."""
        if value < self.value:
            self.point, self.value = point, value
        self.bound = max(self.bound, bound) if bound == bound else self.bound
        self._gaps.append(self.value - self.bound)
        return not (self.met or self._stalled() or self._clock.left() == 0.0)

    @property
    def met(self) -> bool:
        """Whether the requested gap is reached."""
        return self.value - self.bound <= max(self._gap * self.value, self._absolute)

    def _stalled(self) -> bool:
        gaps = self._gaps
        return (
            len(gaps) > self._patience
            and gaps[-1] < self._stalls_below * self.value
            and gaps[-1] > 0.9 * gaps[-1 - self._patience]
        )
