"""Leakage about a record under the worst prior of a convex set, by branch and bound in one number.

For an output y and a value v of record i let t = P(x_i = v), s = P(y) and A = P(y, x_i = v). The
leakage is ln A/(t s). With rho = A/s, kappa = 1/s and tau = t/s it is ln rho + ln kappa - ln tau,
and only the last term is not concave. On an interval of tau it lies below a line k - m tau, and the
logarithms lie below tangents:

    ln A/(t s) <= (alpha rho - 1 - ln alpha) + (L kappa - 1 - ln L) + k - m tau.

Let L be the smallest value of D s + m t - alpha A over the set. Then the right side is at most k +
D - 2 - ln alpha - ln L. So one smallest mean over the set, rounded down, proves a bound for an
interval. The numbers alpha, m and D come from the distributions seen so far, and any others prove a
bound as well. Intervals are halved until the bound is close to the leakage under some distribution.

If t may vanish, the halving would not stop. Let a be the largest probability of y given a
database with x_i = v. For nu > 0 let nu s_0 be the smallest value of a t - A + nu s over the set.
Then A <= a t - nu (s_0 - s), and A <= a t. So the leakage is at most ln a/s_0 if s >= s_0, and also
if s < s_0 and t <= nu s_0/a, because then a/s - nu (s_0 - s)/(t s) increases in s. The same holds
with t and s exchanged, and 1 in place of a.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import lowered, raised, round_up, roundoff
from fastpriv._core.search import BestFirst
from fastpriv._core.validation import Floats
from fastpriv._matrices.cutting import best_tangents
from fastpriv.channels import AbstractChannel
from fastpriv.measures.pointwise.database import scaled_matrix
from fastpriv.priors.sets import ConvexPriors
from fastpriv.results import Bracket

#: Distance in nats between the level and the leakage under some distribution.
_CLOSE = 1e-6
#: Most intervals for one output.
_INTERVALS = 100
#: An interval whose bounds have a smaller ratio is not halved.
_APART = 1.0 + 1e-9
#: Rounds of tangents on one interval.
_ROUNDS = 8
#: Share of its largest value below which t or s may as well vanish.
_SMALL = 0.05
#: Smallest multiplier nu.
_FLAT = 1e-9
#: Weight of an equation in the search for distributions that satisfy it.
_TIED = 1e3
#: Weight of a distribution that is mixed in, so that t, s and A stay positive.
_MIXED = 1e-9


def convex_row_leakages(
    priors: ConvexPriors, channel: AbstractChannel, i: int, clock: Clock
) -> Floats:
    """Return the largest leakage of every output about record i over a convex set. Rounded up.

    Cost: some tens of smallest means over the set for each output and value of the record.
    """
    matrix = scaled_matrix(channel)
    alone = (matrix[:, [y]] for y in range(matrix.shape[1]))
    return np.array([_largest(priors, channel, column, i, clock).upper for column in alone])


def convex_row_level(
    priors: ConvexPriors, channel: AbstractChannel, i: int, clock: Clock
) -> Bracket:
    """Return bounds on the largest leakage about record i over outputs and a convex set."""
    return _largest(priors, channel, scaled_matrix(channel), i, clock)


def _largest(
    priors: ConvexPriors, channel: AbstractChannel, columns: Floats, i: int, clock: Clock
) -> Bracket:
    """Return the largest leakage of some outputs, the pairs of largest bounds first.

    The largest quotient of two entries of a column is a bound that needs no search.
    """
    possible = priors.possible()
    values = np.arange(len(columns)) // int(channel.space.strides[i]) % channel.space.sizes[i]
    known = np.unique(values[possible])
    if len(known) == 1:
        return Bracket(0.0, 0.0)  # the record is certain
    least, top = columns[possible].min(axis=0), columns[possible].max(axis=0)
    candidates = []
    for v in known.tolist():
        most = columns[possible & (values == v)].max(axis=0)
        behind = np.flatnonzero(most > 0.0)
        caps = log_ratio(most[behind], least[behind]) + roundoff(8.0)
        pairs = zip(caps.tolist(), behind.tolist(), strict=True)
        candidates += [_Candidate(cap, v, y, None) for cap, y in pairs]
    level = reached = 0.0

    def settled(candidate: _Candidate) -> list[_Candidate]:
        nonlocal level, reached
        cap, v, y, pair = candidate
        if pair is None:
            scaled = np.where(possible, columns[:, y] / top[y], 0.0)
            pair = Pair(priors, scaled, (values == v) & possible)
            left = [_Candidate(min(cap, pair.cap), v, y, pair)]
        else:
            level, left = max(level, min(cap, pair.bound(reached, clock))), []
        reached = max(reached, pair.reached)
        return left

    search = BestFirst(candidates, settled)
    level = max(
        search.run(lambda: max(level, reached + _CLOSE), lambda: clock.left() == 0.0), level
    )
    return Bracket(max(0.0, min(reached - _CLOSE, level)), level)


class _Candidate(NamedTuple):
    """A value and an output, with their pair once the first bound did not settle them."""

    bound: float
    v: int
    y: int
    pair: Pair | None


class _Interval(NamedTuple):
    """An interval of t/s with a bound on the leakage."""

    bound: float
    low: float
    high: float


class Pair:
    """One output and one value of a record, with the distributions seen so far.

    ``cap`` is a first upper bound on the leakage, ``reached`` the leakage under some distribution.
    """

    def __init__(self, priors: ConvexPriors, column: Floats, own: np.ndarray) -> None:
        self._priors = priors
        self._parts = np.stack([own.astype(np.float64), column, column * own])  # t, s, A
        self._seen = np.empty((0, 3))
        self.reached = self._floor = 0.0
        self._most = float(column[own].max())
        self._t = max(0.0, self._ask(1.0, 0.0, 0.0)), -self._ask(-1.0, 0.0, 0.0)
        # The smallest probability of y has all its digits, however small it is.
        least, law = priors.lowest(column)
        self._keep(self._parts @ law)
        self._s = max(0.0, least), -self._ask(0.0, -1.0, 0.0)
        self._ask(0.0, 0.0, -1.0)
        # Distributions close to A = t times its largest entry, and to A = s.
        self._ask(_TIED * self._most, 0.0, -_TIED - 1.0)
        self._ask(0.0, _TIED, -_TIED - 1.0)
        # A is at most s, and at most t times the largest entry.
        ends = [self._most / self._s[0] if self._s[0] > 0.0 else math.inf]
        ends.append(1.0 / self._t[0] if self._t[0] > 0.0 else math.inf)
        self.cap = math.log(min(ends)) + roundoff(8.0)

    def _ask(self, t: float, s: float, A: float) -> float:
        """Bound the smallest weighted sum of t, s and A from below; keep the distribution."""
        weights = np.array([t, s, A])
        bound, law = self._priors.smallest_sum(weights @ self._parts)
        self._keep(self._parts @ law)
        return bound - roundoff(8.0) * float(np.abs(weights).sum())

    def _keep(self, point: Floats) -> None:
        """Add a distribution, and compute the leakage under its mixtures with the others.

        Over mixtures of two distributions, the leakage is largest at one of them or at the root of
        a quadratic.
        """
        step = self._seen - point
        self._seen = np.vstack([self._seen, point])
        t, s, A = point
        dt, ds, dA = step.T
        square, slope, start = (
            -dA * dt * ds,
            -2.0 * A * dt * ds,
            dA * t * s - dt * A * s - ds * A * t,
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(np.maximum(slope**2 - 4.0 * square * start, 0.0))
            turns = np.concatenate(
                [(-slope + root) / (2.0 * square), (-slope - root) / (2.0 * square), -start / slope]
            )
        turns = np.clip(np.where(np.isfinite(turns), turns, _MIXED), _MIXED, 1.0 - _MIXED)
        ends = np.repeat([_MIXED, 1.0 - _MIXED], len(step))
        mixed = point + np.append(turns, ends)[:, None] * np.tile(step, (5, 1))
        mixed = mixed[(mixed > 0.0).all(axis=1)]
        if len(mixed):
            leaks = np.log(mixed[:, 2]) - np.log(mixed[:, 0]) - np.log(mixed[:, 1])
            self.reached = max(self.reached, float(leaks.max()))

    def bound(self, floor: float, clock: Clock) -> float:
        """Return an upper bound on the leakage, close to it unless it is below a floor.

        If the time is over, it is the bound proved so far.
        """
        self._floor = floor
        if self.cap <= self._target:
            return self.cap
        if self._ask(1.0, 1.0, 0.0) <= 0.0:
            return math.inf  # some distribution rules out both the output and the value
        closed_t, least_t = self._near_zero(np.array([1.0, 0.0]), self._most, self._t)
        closed_s, least_s = self._near_zero(np.array([0.0, 1.0]), 1.0, self._s)
        closed = max(closed_t, closed_s)
        low = lowered(least_t / self._s[1], 8.0)
        high = raised(self._t[1] / least_s, 8.0)
        halvings = itertools.count()

        def halves(whole: _Interval) -> list[_Interval]:
            nonlocal closed
            middle = math.sqrt(whole.low) * math.sqrt(whole.high)
            if next(halvings) >= _INTERVALS or not whole.low * _APART < middle < whole.high:
                closed = max(closed, whole.bound)
                return []
            ends = (whole.low, middle), (middle, whole.high)
            return [_Interval(min(whole.bound, self._by_tangents(*half)), *half) for half in ends]

        start = [_Interval(self._by_tangents(low, high), low, high)] if low < high else []
        search = BestFirst(start, halves)
        left = search.run(lambda: self._target, lambda: clock.left() == 0.0)
        return min(self.cap, max(closed, left, 0.0, self.reached))

    @property
    def _target(self) -> float:
        """A bound that is close enough."""
        return max(self._floor, self.reached) + _CLOSE

    def _near_zero(self, small: Floats, a: float, ends: tuple[float, float]) -> tuple[float, float]:
        """Return a bound on the leakage if t (or s) is below some number, and that number.

        ``small`` has a 1 for the one of t and s that may vanish.
        """
        if ends[0] > _SMALL * ends[1]:
            return 0.0, ends[0]
        best, least, nu = math.inf, ends[0], 1.0
        while nu > _FLAT and best > self._target:
            t, s = a * small + nu * small[::-1]
            other = self._ask(float(t), float(s), -1.0) / nu
            bound = math.log(a / other) + roundoff(16.0) if other > 0.0 else math.inf
            if bound < best:
                best, least = bound, lowered(nu * other / a, 16.0)
            nu *= 0.25
        return best, max(least, ends[0])

    def _by_tangents(self, low: float, high: float) -> float:
        best = math.inf
        for _ in range(_ROUNDS):
            alpha, m, D, value = best_tangents(self._seen, self._between(low, high), low, high)
            least = self._ask(m, D, -alpha)
            if least > 0.0:
                best = min(best, _proved(alpha, m, D, least, low, high))
            if best <= max(value, self._target) + 0.25 * _CLOSE:
                break
        return best

    def _between(self, low: float, high: float) -> Floats:
        """Return the mixture that leaks most among those with t/s in the middle of an interval."""
        tau = math.sqrt(low) * math.sqrt(high)
        off = self._seen[:, 0] - tau * self._seen[:, 1]
        below, above = self._seen[off <= 0.0], self._seen[off > 0.0]
        if not (len(below) and len(above)):
            return np.array([tau, 1.0, min(1.0, tau * self._most)])
        left, right = -off[off <= 0.0], off[off > 0.0]
        share = (left[:, None] / (left[:, None] + right))[:, :, None]
        mixed = (1.0 - share) * below[:, None] + share * above
        leaks = mixed[:, :, 2] / np.maximum(mixed[:, :, 0] * mixed[:, :, 1], 1e-300)
        best: Floats = mixed.reshape(-1, 3)[int(leaks.argmax())]
        return best


def _proved(alpha: float, m: float, D: float, least: float, low: float, high: float) -> float:
    """Return k + D - 2 - ln alpha - ln L, k - m tau being above -ln tau. Rounded up."""
    k = max(m * low - math.log(low), m * high - math.log(high))
    logs = math.log(alpha), math.log(least)
    size = 2.0 + abs(k) + abs(D) + abs(m) * high + abs(logs[0]) + abs(logs[1])
    size += abs(math.log(low)) + abs(math.log(high))
    return max(0.0, round_up(k + D - 2.0 - logs[0] - logs[1]) + roundoff(16.0) * size)
