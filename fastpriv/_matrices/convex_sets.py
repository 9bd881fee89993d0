"""Smallest mean of a vector over a convex set of distributions, with a proof.

Every function takes a vector with entries in [0, 1]. It returns a lower bound, which holds for the
floats returned, and a distribution close to it, which lies in the set up to rounding errors.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.divergence import divergence
from fastpriv._core.highs import Answer, Rows, minimise
from fastpriv._core.rounding import lowered, raised, roundoff, sum_error
from fastpriv._core.search import golden
from fastpriv._core.validation import Floats
from fastpriv.errors import SolverFailure

# Boxes and balls.

#: A lower bound on the smallest mean, and a distribution with about this mean.
Least = tuple[float, Floats]


def box_least(lower: Floats, upper: Floats, free: float, column: Floats) -> Least:
    """Minimise over lower <= p <= upper; ``free`` is 1 - sum of lower. Cost O(N log N).

    A fractional knapsack: fill up from the smallest entries.
    """
    order = np.argsort(column)
    room = (upper - lower)[order]
    before = np.cumsum(room) - room
    added = np.clip(free - before, 0.0, room)
    mean = float(column @ lower + column[order] @ added)
    # The sums of room may be off by so many ulp of 1, which the last entry filled then gets.
    last = float(column[order][added > 0].max(initial=0.0))
    law = lower.copy()
    law[order] += added
    bound = mean - sum_error(4 * len(lower), 16) * (mean + last)
    least = lowered(float(column.min()), 4.0)  # a lower bound on every mean
    return max(least, bound), law


def variation_least(centre: Floats, radius: float, column: Floats) -> Least:
    """Minimise over distributions within a total variation distance. Cost O(N log N).

    Move as much mass as allowed from the largest entries to the smallest.
    """
    order = np.argsort(column)[::-1]
    law, values = centre[order], column[order]
    taken = np.clip(raised(radius, 4.0) - (np.cumsum(law) - law), 0.0, law)
    least, moved = float(values[-1]), float(taken.sum())
    mean = least * moved + float(values @ (law - taken))
    top = float(values[taken < law].max(initial=least))
    reached = centre.copy()
    reached[order] -= taken
    reached[order[-1]] += moved
    room = mean + (top if radius > 0.0 else 0.0)  # nothing is taken: only sums are rounded
    return max(least, mean - sum_error(4 * len(law), 16) * room), reached


def divergence_least(centre: Floats, radius: float, column: Floats, inner: float) -> Least:
    """Over distributions p with D(p || centre) <= radius. Cost O(100 N).

    The distribution that is returned is within the ``inner`` radius.

    For every t > 0, <c, p> >= -t radius - t ln sum centre e^(-c/t) (Donsker-Varadhan). The right
    side is concave in t, and a bound wherever the search stops.
    """
    seen = centre > 0
    law, least = centre[seen], float(column[seen].min())
    gaps = column[seen] - least
    low, high = math.log(1e-12), math.log(1e12)
    log_t, value = golden(lambda x: -_dual(law, radius, gaps, x), low, high, 96)
    best, log_t = max((0.0, low), (-value, log_t))
    reached = np.zeros(len(centre))
    reached[seen] = law * np.exp(-gaps / math.exp(log_t))
    return lowered(least + best, 4.0), _drawn_in(reached / reached.sum(), centre, inner)


def _drawn_in(law: Floats, centre: Floats, radius: float) -> Floats:
    """Mix a distribution with the centre of a ball until it is inside: D is convex."""
    for _ in range(4):
        far = divergence(law, centre)
        if far <= radius:
            return law
        law = centre + lowered(radius / far, 8.0) * (law - centre)
    return centre


def _dual(law: Floats, radius: float, gaps: Floats, log_t: float) -> float:
    """Return -t radius - t ln sum distribution e^(-gaps/t), rounded down."""
    t = math.exp(log_t)
    lost = float(law @ -np.expm1(-gaps / t))
    # If little is lost, the sum is 1 - lost, and keeps its digits.
    near = lost < 0.5
    log_mean = math.log1p(-lost) if near else math.log(float(law @ np.exp(-gaps / t)))
    slack = sum_error(4 * len(law), 32)
    radius = radius * (1.0 + slack) + slack * (1.0 if radius > 0 else 0.0)
    error = slack * (-log_mean if near else 1.0 - log_mean)
    return t * (-radius - log_mean - error)


# Linear programs over the distributions p with A p <= b, bounded by weak duality.

#: Seconds after which one linear program is given up.
_SECONDS = 300.0
#: Amount by which b is raised if the solver, but not its multipliers, reports that there is no
#: distribution.
_RAISE = 1e-8


class Polytope:
    """The distributions p with A p <= b, with rows scaled to a largest entry of about one."""

    def __init__(self, A: Floats, b: Floats) -> None:
        scale = np.abs(A).max(axis=1)
        scale[scale == 0] = 1.0
        scale = np.exp2(np.floor(np.log2(scale)))  # exact
        self.A, self.b, self.size = A / scale[:, None], b / scale, A.shape[1]
        self._violation, self._room, self._centre = self._central()

    @property
    def empty(self) -> bool:
        """Whether multipliers prove that there is no such distribution."""
        return self._violation > 0.0

    def possible(self) -> np.ndarray:
        """Return the databases that no row with b = 0 and no negative entry rules out."""
        possible = np.ones(self.size, dtype=bool)
        while True:
            bars = (self.b <= 0) & (self.A[:, possible] >= 0).all(axis=1)
            out = possible & (self.A[bars] > 0).any(axis=0)
            if not out.any():
                return possible
            possible &= ~out

    def least(self, column: Floats) -> Least:
        """Bound <column, p> from below by weak duality, whatever optimum the solver reports.

        For any multipliers l >= 0, <column, p> >= min(column + A^T l) - b l, p being a
        distribution. Without multipliers the bound is the smallest entry.
        """
        law, multipliers = self._solve(column)
        return max(self._proved(column, multipliers), float(column.min())), law

    def _proved(self, column: Floats, multipliers: Floats) -> float:
        """Return the bound that multipliers prove, rounded down."""
        sums = column + multipliers @ self.A
        size = np.abs(column) + multipliers @ np.abs(self.A)
        error = sum_error(len(self.b), 8) * (float(size.max()) + multipliers @ np.abs(self.b))
        return float(sums.min() - multipliers @ self.b - error)

    def _solve(self, cost: Floats) -> tuple[Floats, Floats]:
        """Return a distribution of about smallest cost and multipliers."""
        extra = max(0.0, -self._room)
        while True:
            try:
                answer = self._minimise(cost, self.b + extra)
                break
            except SolverFailure as failure:
                if "nfeasible" not in str(failure) or extra > 1.0:
                    raise
                extra = 8.0 * extra + _RAISE
        law = np.maximum(answer.values, 0.0)
        return self._drawn_in(law / law.sum()), np.maximum(-answer.duals[:-1], 0.0)

    def _drawn_in(self, law: Floats) -> Floats:
        """Mix a distribution with the central one until A p <= b, if the central one has slack."""
        over = self.A @ law - self.b + roundoff(8 * self.size) * (np.abs(self.A) @ law)
        room = self.b - self.A @ self._centre
        needed = (over > 0.0) & (room > 0.0)
        share = over[needed] / (over[needed] + room[needed])
        return np.asarray(law + float(share.max(initial=0.0)) * (self._centre - law))

    def _minimise(self, cost: Floats, b: Floats) -> Answer:
        count, rows = len(cost), len(b)
        table = np.vstack([self.A, np.ones(count)])
        return minimise(
            cost,
            np.zeros(count),
            Rows(
                np.arange(rows + 2) * count,
                np.tile(np.arange(count), rows + 1),
                table.reshape(-1),
                np.append(np.full(rows, -math.inf), 1.0),
                np.append(b, 1.0),
            ),
            _SECONDS,
        )

    def _central(self) -> tuple[float, float, Floats]:
        """Return a proved lower bound on max(A p - b) over p, and the p with the most slack.

        If A^T l > b l everywhere for some l >= 0, there is no distribution. The slack of the
        distribution in every row is at most 1. It is negative if there is no distribution.
        """
        rows, count = self.A.shape
        table = np.hstack([self.A, -np.ones((rows, 1))])
        table = np.vstack([table, np.append(np.ones(count), 0.0)])
        answer = minimise(
            np.append(np.zeros(count), 1.0),
            np.append(np.zeros(count), -1.0),
            Rows(
                np.arange(rows + 2) * (count + 1),
                np.tile(np.arange(count + 1), rows + 1),
                table.reshape(-1),
                np.append(np.full(rows, -math.inf), 1.0),
                np.append(self.b, 1.0),
            ),
            _SECONDS,
        )
        multipliers = np.maximum(-answer.duals[:-1], 0.0)
        multipliers /= max(1.0, float(multipliers.sum()) * (1.0 + roundoff(rows)))
        law = np.maximum(answer.values[:-1], 0.0)
        proved = self._proved(np.zeros(count), multipliers)
        return proved, -float(answer.values[-1]), law / law.sum()
