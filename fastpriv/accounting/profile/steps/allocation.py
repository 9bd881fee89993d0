"""Random allocation: each record is in k of t batches, with noise on every batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.rounding import lowered, roundoff
from fastpriv._core.search import bisect, lost_near_zero
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.discrete import FINE, DiscreteLosses, Longs, Step, pair_measure
from fastpriv.accounting.profile.steps.finite import CurveStep, hull
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture, GaussianNoise
from fastpriv.accounting.profile.steps.groups import losses_of
from fastpriv.accounting.profile.steps.laplace import Interval

# Random allocation: each person is in one of t batches, every batch is a sum with Gaussian noise.
#
# With the person, outputs have the law P = mean over i of N(e_i, sigma^2 I), without it Q = N(0,
# sigma^2 I), in t dimensions. The likelihood ratio X = P/Q is, under Q, the mean of t independent
# Y = e^((2x-1)/(2 sigma^2)), x ~ N(0, sigma^2). One function tells all about both orders:
#
#     G(a) = E_Q (a - X)_+,   E_Q (X - a)_+ = G(a) + 1 - a,   E_Q (1 - X/a)_+ = G(a)/a.
#
# With phi(s) = E e^(-sY) and any c > 0 it is an integral over Re s = c,
#
#     t G(a) = 1/(2 pi i) * integral of phi(s)^t e^(s t a) / s^2 ds,
#
# taken by the trapezoid rule at s_j = c + i j tau. With W = 2 pi/tau the rule gives exactly sum
# over m >= 0 of e^(-c m W) t G(a + m W/t), as G is zero below 0, so that what is too much is less
# than a geometric series. phi is a Gaussian integral of an entire function, shifted to the line
# on which s e^(...) is as real as can be, and taken by the trapezoid rule as well.
#
# G is convex. Its values at points, rounded up and joined, are the G of a pair that is easier to
# tell apart; lines through neighbouring values, continued, lie below it.


LongComplexes = NDArray[np.clongdouble]

#: Errors of the two trapezoid rules: e^-46 = 1e-20.
_SMALL = 46.0
#: Standard deviations of x that are summed: beyond is less than 1e-32.
_REACH = 12.0
#: How many times the largest point fits into a period.
_SPAN = 8.0
#: Points in ln a in a standard deviation of X.
_FINE = 192
#: Standard deviations that have so many points.
_NEAR = 12.0
#: Distance of points beyond.
_STEP = 1.0 / 64.0
#: Most points of the integral over s.
_MOST = 24_000
#: The same for one question about one epoch.
_QUICK = 8_000
#: Relative width from which on sums are asked too.
_WIDE = 1e-5
#: Relative width of a level.
_LEVEL = 1e-11
#: Levels end here: e^709 overflows.
_FAR = 600.0
#: Deltas below which levels are not sought.
_TINY = 1e-36
#: Probability beyond the points from which on the integral leaves too much open.
_UNTOLD = 1e-11


@dataclass(frozen=True, eq=False)
class _Points:
    """Bounds on G at rising points."""

    at: Longs
    low: Longs
    high: Longs


def transform(s: LongComplexes, sigma: float) -> tuple[LongComplexes, Longs]:
    """Return phi(s) for Re s > 0, and bounds on its errors.

    On x - i d0 with d0 = sigma^2 arg s the argument s e^((2x-1)/(2 sigma^2)) is real; d0 is at most
    2 sigma, as the Gaussian weight grows with it. The integrand is analytic and bounded by the
    weight in a strip of half-width d around, which bounds the rule by 2 e^(-2 pi d/h) of it.
    """
    wide = min(sigma * sigma * math.pi / 2.0, 2.0 * sigma)
    d = 0.99 * wide
    h = 2.0 * math.pi * d / (_SMALL + (wide + d) ** 2 / (2.0 * sigma * sigma))
    n = math.ceil(_REACH * sigma / h)
    x = np.arange(-n, n + 1) * np.longdouble(h)
    variance = np.longdouble(sigma) ** 2
    scale = np.longdouble(h) / np.sqrt(2.0 * np.pi * variance)
    values, errors = np.empty(len(s), dtype=np.clongdouble), np.empty(len(s), dtype=np.longdouble)
    rows = max(1, (1 << 17) // len(x))
    for start in range(0, len(s), rows):
        some = slice(start, start + rows)
        turned = np.clip(variance * np.arctan2(s[some].imag, s[some].real), 0.0, wide)
        z = x - 1j * turned[:, None]
        square, exponent = z * z / (2.0 * variance), (2.0 * z - 1.0) / (2.0 * variance)
        argument = s[some, None] * np.exp(exponent)
        terms = np.exp(-square - argument)
        values[some] = terms.sum(axis=1) * scale
        doubt = 8.0 * np.abs(square) + np.abs(argument) * (4.0 * np.abs(exponent) + 16.0)
        errors[some] = (np.abs(terms) * (doubt + len(x) + 16.0)).sum(axis=1) * scale * FINE
    return values, errors + 3.0 * math.exp(-_SMALL)


def _tail(sigma: float, t: int, v: float) -> float:
    """Bound ln |phi(c + iu)|^t for all u >= v and c <= v / 8.

    Shifted by sigma^2 theta, phi is at most e^(sigma^2 theta^2 / 2) times its value at
    |s| cos(arg s - theta), where arg s is at least 1.446; it falls along the reals.
    """
    theta = np.geomspace(1e-6, 1.44, 128)
    least = v * np.minimum(np.cos(1.446 - theta), np.cos(math.pi / 2.0 - theta)) * 0.999
    values, errors = transform(least.astype(np.clongdouble), sigma)
    logs = (sigma * theta) ** 2 / 2.0 + np.log((values.real + errors).astype(np.float64))
    return t * float(logs.min()) + 1e-9 * t


@lru_cache(maxsize=32)
def _highest(sigma: float, t: int) -> float:
    """Return where the integral over s may end; what is left out is counted as an error."""
    low, high = 1e-3, math.pi * _MOST / (_SPAN * t)
    if _tail(sigma, t, high) > 6.0 - _SMALL:
        return high
    return bisect(
        lambda v: _tail(sigma, t, v) > 6.0 - _SMALL, low, high, relative=0.2, geometric=True
    )[1]


@lru_cache(maxsize=32)
def _integrand(
    sigma: float, t: int, period: float, v: float
) -> tuple[np.longdouble, np.longdouble, LongComplexes, np.longdouble, float]:
    """The line, the spacing, phi^t / s^2 on it, errors of these, and what is left out."""
    v = max(v, 8.0 * _SMALL / period)
    c, tau = np.longdouble(_SMALL / period), 2.0 * np.longdouble(np.pi) / period
    count = math.ceil(v * period / (2.0 * math.pi)) + 1
    s = (c + 1j * tau * np.arange(count)).astype(np.clongdouble)
    values, errors = transform(s, sigma)
    size = np.abs(values)
    terms = np.exp(t * np.log(values)) / s**2
    inverse = 1.0 / np.abs(s) ** 2
    # Terms are turned as often as their number says, and each turn rounds.
    doubt = t * (2.0 * np.abs(np.log(values)) + 2.0) + 16.0 * np.arange(count) + 64.0
    known = np.abs(terms) * doubt * FINE
    known += t * errors * np.exp((t - 1) * np.log(size + errors)) * inverse
    last = float(tau) * (count - 1)
    return c, tau, terms, known.sum(), math.exp(_tail(sigma, t, last)) / last


def points(sigma: float, t: int, at: Longs, v: float) -> _Points:
    """Bounds on G at points of which none is more than twice the least that shares a period."""
    c, tau, terms, known, beyond = _integrand(sigma, t, _SPAN * t * float(at[-1]), v)
    period = float(2.0 * np.pi / tau)
    u = t * at
    turn, total = np.exp(1j * tau * u), np.zeros(len(u), dtype=np.clongdouble)
    for term in terms[:0:-1]:
        total = (total + term) * turn
    result = 2.0 * total.real + terms[0].real
    grown = np.exp(c * u) * tau / (2.0 * np.pi)
    error = grown * 2.0 * known + np.exp(c * u) * beyond
    aliases = 2.1 * period * math.exp(-_SMALL)
    value = grown * result
    base = np.maximum(at - 1.0, 0.0)
    low = np.maximum((value - error - aliases) / t * (1.0 - 8.0 * FINE), base)
    return _Points(at, low, np.maximum((value + error) / t * (1.0 + 8.0 * FINE), low))


@lru_cache(maxsize=16)
def curve(sigma: float, t: int) -> _Points:
    """Bounds on G at points from where little lies below to where little lies above."""
    v, upwards = _highest(sigma, t), _levels(sigma, t)
    parts: list[_Points] = []
    for power in range(64):  # up from 1, by factors of two
        at = _between(upwards, power)
        if v * _SPAN * t * float(at[-1]) > 2.0 * math.pi * _MOST and parts:
            break
        parts.append(points(sigma, t, at, v))
        if parts[-1].low[-1] <= at[-1] - 1.0:  # nothing is told from none any more
            break
    for power in range(64):  # down from 1
        parts.insert(0, points(sigma, t, 1.0 / _between(upwards, power)[::-1], v))
        if parts[0].low[0] <= 0.0:
            break
    at, low, high = (np.concatenate([getattr(p, n) for p in parts]) for n in ("at", "low", "high"))
    # G rises, and G + 1 - a falls.
    high = np.minimum.accumulate(high[::-1])[::-1]
    return _Points(at, low, np.minimum.accumulate(high - (at - 1.0)) + (at - 1.0))


def _levels(sigma: float, t: int) -> Longs:
    """Return values of ln a to look at, from 0 on."""
    deviation = math.sqrt(math.expm1(min(sigma**-2.0, 30.0)) / t)
    near = min(_NEAR * deviation, 4.0)
    first = np.arange(0.0, near, min(deviation / _FINE, _STEP))
    return np.append(first, np.arange(near, 48.0, _STEP)).astype(np.longdouble)


def _between(levels: Longs, power: int) -> Longs:
    """Return the points in [2^power, 2^(power + 1)), without 1 itself."""
    low, high = (p * math.log(2.0) for p in (power, power + 1))
    return np.asarray(np.exp(levels[(levels >= low) & (levels < high) & (levels > 0.0)]))


def _above(given: _Points) -> tuple[Longs, Longs, float, float]:
    """Return atoms of X, their Q-masses, that at 0, and the P-mass at infinity, from above."""
    zero = np.zeros(1, dtype=np.longdouble)
    ends: tuple[Longs, Longs] = np.append(zero, given.at), np.append(zero, given.high)
    at, values = hull(*ends)
    slopes = np.diff(values) / np.diff(at)
    doubt = 16.0 * FINE * (np.abs(values[1:]) / np.diff(at) + 1.0)
    # From the last point on G grows like a: the mean of what lies beyond goes to infinity.
    masses = np.append(slopes[1:], 1.0) - slopes + np.append(doubt[1:], 0.0) + doubt
    infinite = float(values[-1] + 1.0 - at[-1]) * (1.0 + 1e-15) + 16.0 * FINE * float(at[-1])
    return at[1:], np.maximum(masses, 0.0), float(slopes[0] + doubt[0]), max(infinite, 0.0)


def _below(given: _Points) -> tuple[Longs, Longs]:
    """Return atoms of X and their Q-masses, from below.

    Between two points G is above the line through the last two to the left, continued, and above
    the line through the next two to the right; G >= 0 and G >= a - 1 everywhere.
    """
    at, low, high = given.at, given.low, given.high
    rising = (low[1:] - high[:-1]) / np.diff(at)  # continued to the right of its second point
    falling = (high[1:] - low[:-1]) / np.diff(at)  # continued to the left of its first one
    # Lines for the cells (0, at_0), (at_0, at_1), ..., (at_n, infinity).
    left = np.concatenate([np.zeros(2), rising])
    right = np.concatenate([falling, np.ones(2)])
    left_at = np.concatenate([np.zeros(1), at])
    left_low = np.concatenate([np.zeros(1), low])
    right_at = np.concatenate([at, at[-1:] * 2.0])
    right_low = np.concatenate([low, at[-1:] * 2.0 - 1.0])
    steeper = right - left
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = (left_low - right_low + right * right_at - left * left_at) / steeper
    inside = (steeper > 0.0) & (cut > left_at) & (cut < right_at)
    cut = cut[inside]
    down = left_low[inside] + left[inside] * (cut - left_at[inside])
    down = np.maximum(down, np.maximum(cut - 1.0, 0.0))
    ends = np.zeros(1, dtype=np.longdouble), at[-1:] * 2.0
    every = np.concatenate([ends[0], at, cut, ends[1]])
    values = np.concatenate([ends[0], low, down, ends[1] - 1.0])
    order = np.argsort(every, kind="stable")
    at, values = hull(every[order], values[order])
    slopes = np.diff(values) / np.diff(at)
    doubt = 16.0 * FINE * (np.abs(values[1:]) / np.diff(at) + 1.0)
    masses = np.diff(slopes) - doubt[1:] - doubt[:-1]
    kept = masses > 0.0
    return at[1:-1][kept], masses[kept]


class OneOf(CurveStep):
    """One epoch of t batches, each record in one of them at random, with any noise.

    The pair of one batch is (P, Q), and Y = P/Q. The likelihood ratio of an epoch is, under Q, the
    mean of t independent copies of Y. Its distribution is bounded in convex order.
    """

    def __init__(self, step: Step, t: int) -> None:
        super().__init__(("one-of", step.key, t))
        self.step, self.t = step, t

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneOf) and self.t == other.t and self.step == other.step

    def sums(self, up: bool) -> Sums:
        """Return the distribution of the sum of t ratios, larger or smaller in convex order."""
        return _ratio_sums(self.step, self.t, up)

    @property
    def revealed(self) -> dict[Step, int]:
        """The noise of the batch with the record, if this batch is known."""
        return {self.step: 1}

    def replacement(self) -> DiscreteLosses | None:
        """Return losses of a replaced record that are attained, rounded down; None if unknown."""
        return _scored_replacement(self.step, self.t, 1)

    def delta(self, t: float) -> tuple[float, float]:
        """Bounds on delta(t) of one epoch: the larger of both orders."""
        return _by_sums(self.sums(False), self.sums(True), self.t, t)

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Bounds on the smallest level of one epoch."""
        if delta >= 1.0:
            return 0.0, 0.0
        if delta < _TINY:
            return (math.inf if delta == 0.0 else 0.0), math.inf
        top = 1.0
        while top < _FAR and self.delta(top)[1] > delta:
            top *= 2.0
        low, _ = lost_near_zero(lambda t: self.delta(t)[0] > delta, top, _LEVEL)
        if top >= _FAR:
            return low, math.inf
        return low, lost_near_zero(lambda t: self.delta(t)[1] > delta, top, _LEVEL)[1]

    def measure(self, flipped: bool, up: bool) -> DiscreteLosses:
        """Measure of one order, from above or below."""
        return _sums_measure(self.sums(up), self.t, flipped, up)


class Allocated(OneOf):
    """The same for Gaussian noise, whose integral is more accurate."""

    def __init__(self, sigma: float, t: int) -> None:
        CurveStep.__init__(self, ("allocation", sigma, t))
        self.sigma, self.t = sigma, t

    @property
    def step(self) -> Step:  # type: ignore[override]
        """Gaussian noise on one batch."""
        return GaussianNoise(self.sigma)

    @property
    def alternatives(self) -> list[dict[Step, int]]:
        """The output of the first batch, which has the record with probability 1/t."""
        return [{GaussianMixture(self.sigma, ((1.0, lowered(1.0 / self.t, 1.0)),)): 1}]

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Allocated) and self.key == other.key

    def sums(self, up: bool) -> Sums:
        """Return the distribution of a sum of lognormal numbers."""
        return lognormal_sums(self.sigma, self.t, up)

    def delta(self, t: float) -> tuple[float, float]:
        """Bounds on delta(t) of one epoch: the larger of both orders."""
        low, high = _one_epoch(self.sigma, self.t, t)
        if high - low > _WIDE * high:
            more = super().delta(t)
            low, high = max(low, more[0]), min(high, more[1])
        return low, high

    def measure(self, flipped: bool, up: bool) -> DiscreteLosses:
        """Measure of one order, from above or below."""
        return _measure(self.sigma, self.t, flipped, up)


# Each record is in k of the t batches.
#
# Divide the t batches at random into k blocks of floor(t/k) or ceil(t/k), and select one batch in
# every block: the selected set is a uniform k-subset. The blocks do not depend on the data, and
# knowing them only helps to tell the databases apart. So k of t is dominated, in each order, by the
# composition of one of floor(t/k) or ceil(t/k), k of them together.
#
# From below: every output x of a batch is replaced by a score, a multiple of some h near
# ln(1 + Y(x) k/(f t)) with a factor f, and the scores are added. Their sum has the distribution
# Q*t without the record and Q*(t-k) P*k with it. All terms are positive, so masses have a relative
# error.


#: Cells of one output.
_CELLS = 4096
#: Scores per standard deviation of one output; fewer lose information, about 1/(12 n^2) of it.
_SCORES = 12.0
#: Largest number of values of the sum of scores.
_SUM_CELLS = 8192
#: Standard deviations of the sum of scores on either side that are kept.
_KEPT_DEVIATIONS = 14.0
#: Factors f of scores ln(1 + Y k/(f t)); a larger one suits little noise, a small one many batches.
_FACTORS = (0.3, 1.0, 3.0, 9.0, 27.0)
#: Outputs of a probability below e^-cut have no score; it must be far below e^-level. The second
#: cut is for levels above ``_HIGH_LEVEL``.
_SCORE_CUTS = (90.0, 160.0)
_HIGH_LEVEL = 40.0
#: Scores are compared by their level at this delta.
_TYPICAL = 1e-5


class Selected(CurveStep):
    """One epoch of t batches, each record in k of them at random; 1 < k < t."""

    is_composed = True

    def __init__(self, step: Step, t: int, k: int) -> None:
        super().__init__(("selected", step.key, t, k))
        self.step, self.t, self.k = step, t, k

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selected) and self.key == other.key and self.step == other.step

    @property
    def levelwise(self) -> bool:
        """Always False: the curve is a composition."""
        return False

    @property
    def revealed(self) -> dict[Step, int]:
        """The noise of the batches with the record, if these batches are known."""
        return {self.step: self.k}

    def replacement(self) -> DiscreteLosses | None:
        """Return losses of a replaced record that are attained, rounded down; None if unknown."""
        return _scored_replacement(self.step, self.t, self.k)

    def measures(self, flipped: bool, up: bool) -> list[tuple[DiscreteLosses, int]]:
        """Return the blocks for an upper bound, and the scores for a lower bound."""
        if not up:
            return [(_scored(self.step, self.t, self.k, flipped), 1)]
        size, larger = divmod(self.t, self.k)
        blocks = [(size, self.k - larger), (size + 1, larger)]
        return [(self._block(t, flipped), k) for t, k in blocks if k]

    def _block(self, t: int, flipped: bool) -> DiscreteLosses:
        step = self.step if t == 1 else one_of(self.step, t)
        return losses_of(step, flipped, True, _CELLS)


def one_of(step: Step, t: int) -> OneOf:
    """Return one of t > 1 batches with the noise of a step."""
    if isinstance(step, GaussianNoise) and 0.1 <= step.sigma <= 1000.0 / math.sqrt(t):
        return Allocated(step.sigma, t)
    return OneOf(step, t)


@dataclass(frozen=True, eq=False)
class _Scores:
    """Masses of consecutive scores from ``first`` on, and the mass that was left out."""

    first: int
    masses: Floats
    lost: float
    error: float

    def plus(self, other: _Scores, keep: tuple[int, int] | None) -> _Scores:
        """Return the sum of independent scores, without scores outside of ``keep``."""
        first = self.first + other.first
        masses = np.convolve(self.masses, other.masses)
        low, high = keep or (first, first + len(masses))
        start = min(max(low - first, 0), len(masses) - 1)
        end = max(min(high - first + 1, len(masses)), start + 1)
        dropped = float(masses[:start].sum() + masses[end:].sum())
        lost = (self.lost + other.lost + dropped) * (1.0 + 1e-9) + _LOST
        terms = min(len(self.masses), len(other.masses))
        error = self.error + other.error + roundoff(terms + 4.0)
        return _Scores(first + start, masses[start:end], lost, error)

    def spread(self) -> tuple[float, float]:
        """Mean and variance."""
        at = self.first + np.arange(len(self.masses))
        mean = float(self.masses @ at)
        return mean, float(self.masses @ (at - mean) ** 2)


#: Masses of the sums of two databases, and bounds on their absolute and relative errors.
_Pair = tuple[Floats, Floats, float, float]


@lru_cache(maxsize=64)
def _scored(step: Step, t: int, k: int, flipped: bool) -> DiscreteLosses:
    """Return the losses of the sum of scores of k of t batches, rounded down.

    The scores ln(1 + Y k/(f t)) with the best of some factors f are used.
    """
    best, level = _best_scores(step, t, k, _SCORE_CUTS[0])
    if level > _HIGH_LEVEL:
        best = _best_scores(step, t, k, _SCORE_CUTS[1])[0]
    return _of_scores(best, flipped)


def _best_scores(step: Step, t: int, k: int, cut: float) -> tuple[_Pair, float]:
    """Return the sums of the best scores, without outputs beyond e^-cut, and about their level."""
    given = losses_of(step, False, False, _CELLS, cut)
    losses = (given.losses + given.shift).astype(np.float64)
    laws = [np.exp(given.logs - x).astype(np.float64) for x in (0.0, losses)]
    # Left out are the outer cells, and outputs that are impossible with or without the record.
    lost = given.infinite + 4.0 * math.exp(-cut)
    error = given.error + 2.0 * given.off + roundoff(len(losses) + 16.0)
    pairs = []
    for factor in _FACTORS:
        scores = np.logaddexp(0.0, losses + math.log(k / (factor * t)))
        one, none = ((law, lost, error) for law in laws)
        pairs.append(_score_pair(scores, one, none, none, t, k))
    levels = [_rough_level(*pair[:2]) for pair in pairs]
    i = levels.index(max(levels))
    return pairs[i], levels[i]


@lru_cache(maxsize=64)
def _scored_replacement(step: Step, t: int, k: int) -> DiscreteLosses | None:
    """Return the losses of a record 1 that becomes -1, rounded down; None for other noise."""
    if isinstance(step, GaussianNoise):
        unit, reach = step.sigma, _LOG_REACH * step.sigma + 1.0
        x = np.linspace(-reach, reach, _CELLS + 1)
        laws = [_cells((x - mean) / unit)[1:-1] for mean in (1.0, -1.0, 0.0)]
        middle = 0.5 * (x[1:] + x[:-1])
        ratios = [(2.0 * y - 1.0) / (2.0 * unit * unit) for y in (middle, -middle)]
    elif isinstance(step, Interval) and step.is_noise and step.q == 1.0:
        unit = 1.0 / step.e
        reach = 90.0 * unit + 1.0
        x = np.union1d(np.linspace(-1.0, 1.0, _CELLS // 2 + 1), np.linspace(-reach, reach, 513))
        laws = [_laplace_cells((x - mean) / unit) for mean in (1.0, -1.0, 0.0)]
        middle = 0.5 * (x[1:] + x[:-1])
        ratios = [(np.abs(y) - np.abs(y - 1.0)) / unit for y in (middle, -middle)]
    else:
        return None
    up, down = (np.logaddexp(0.0, ratio + math.log(k / t)) for ratio in ratios)
    lost = 4.0 * math.exp(-0.5 * _LOG_REACH**2)
    one, other, none = ((law, lost, 4.0 * _CELL) for law in laws)
    return _of_scores(_score_pair(up - down, one, other, none, t, k), False)


def _laplace_cells(z: Floats) -> Floats:
    """Probabilities of a Laplace number of scale 1 between neighbours."""
    far = np.minimum(np.abs(z[:-1]), np.abs(z[1:]))
    outside = 0.5 * np.exp(-far) * -np.expm1(-np.diff(z))
    inside = -0.5 * (np.expm1(z[:-1]) + np.expm1(-z[1:]))
    return np.asarray(np.where((z[:-1] < 0.0) & (z[1:] > 0.0), inside, outside))


#: Masses of cells, a bound on what they leave out, and their relative error.
_Law = tuple[Floats, float, float]


def _score_pair(scores: Floats, one: _Law, other: _Law, none: _Law, t: int, k: int) -> _Pair:
    """Return the masses of two sums of t scores: k of the one or of the other law, and the rest.

    Also bounds on the absolute and the relative errors of the masses.
    """
    scores = scores - scores.min()
    means = [float(law[0] @ scores) for law in (one, none)]
    variances = [
        float(law[0] @ (scores - mean) ** 2) for law, mean in zip((one, none), means, strict=True)
    ]
    total = math.sqrt(k * variances[0] + (t - k) * variances[1])
    wide = 2.0 * _KEPT_DEVIATIONS * total + k * abs(means[0] - means[1])
    h = max(math.sqrt(variances[1]) / _SCORES, wide / _SUM_CELLS, float(scores.max()) / _CELLS)
    at = np.rint(scores / (h or 1.0)).astype(np.int64)
    laws = [
        _Scores(0, np.bincount(at, masses).astype(np.float64), lost, error)
        for masses, lost, error in (one, other, none)
    ]
    # Sums that are likely under one of both are kept under the other one.
    apart = k * abs(means[0] - means[1]) / (h or 1.0)
    rest = _score_power(laws[2], t - k, 0.0)
    first, second = (rest.plus(_score_power(law, k, apart), None) for law in laws[:2])
    start = max(first.first, second.first)
    end = min(sums.first + len(sums.masses) for sums in (first, second))
    p, q = (sums.masses[start - sums.first : end - sums.first] for sums in (first, second))
    # Sums that only one of both has kept are lost.
    lost = max(first.lost, second.lost) + max(
        float(sums.masses[: start - sums.first].sum() + sums.masses[end - sums.first :].sum())
        for sums in (first, second)
    )
    return p, q, lost * (1.0 + 1e-9) + _LOST, max(first.error, second.error)


def _rough_level(p: Floats, q: Floats) -> float:
    """Return about the level at which delta is ``_TYPICAL``."""
    above = lambda t: float(np.maximum(p - math.exp(t) * q, 0.0).sum()) > _TYPICAL  # noqa: E731
    return bisect(above, 0.0, 100.0, absolute=1e-3)[0]


def _of_scores(pair: _Pair, flipped: bool) -> DiscreteLosses:
    p, q, lost, error = pair
    return pair_measure(*((q, p) if flipped else (p, q)), (error, lost))


def _score_power(one: _Scores, n: int, more: float) -> _Scores:
    """Return the sum of n independent scores, with ``more`` values on either side."""
    mean, variance = one.spread()
    top = len(one.masses)

    def keep(count: int) -> tuple[int, int]:
        reach = _KEPT_DEVIATIONS * math.sqrt(count * variance) + top + more
        return math.floor(count * mean - reach), math.ceil(count * mean + reach)

    total, power, left, size = None, one, n, 1
    done = 0
    while True:
        if left & 1:
            done += size
            total = power if total is None else total.plus(power, keep(done))
        left >>= 1
        if not left:
            assert total is not None
            return total
        size *= 2
        power = power.plus(power, keep(size))


@lru_cache(maxsize=1024)
def _one_epoch(sigma: float, t: int, level: float) -> tuple[float, float]:
    """Bounds on delta of one epoch by the integral at the level, the larger of both orders."""
    if level > _FAR:
        return 0.0, 1.0
    low, high, v = 0.0, 0.0, _highest(sigma, t)
    for sign in (1.0, -1.0):
        a = np.exp(np.longdouble(sign * level))
        end = 2.0 ** (math.floor(math.log2(float(a)) + 1e-9) + 1.0)
        if v * _SPAN * t * end > 2.0 * math.pi * _QUICK:
            return 0.0, 1.0
        made = points(sigma, t, np.array([a, max(a, end)]), v)
        off = 8.0 * FINE * a * (1.0 + level)
        less, more = (made.low[0] - off) / a, (made.high[0] + off) / a
        if sign > 0.0:
            less, more = (a * less - (a - 1.0)), (a * more - (a - 1.0))
        low, high = max(low, float(less) * (1.0 - roundoff(4.0))), max(high, float(more))
    return low, min(high * (1.0 + roundoff(4.0)), 1.0)


def _by_sums(below: Sums, above: Sums, t: int, level: float) -> tuple[float, float]:
    """Bounds on delta of one epoch by sums in convex order, the larger of both orders."""
    if level > _FAR:
        return 0.0, _by_sums(below, above, t, _FAR)[1]
    ends = []
    for law, sign in ((below, -1.0), (above, 1.0)):
        slack = sign * (law.off + roundoff(8.0) * (1.0 + level))
        error = 1.0 + sign * (law.error + roundoff(len(law.values) + 8.0))
        a, b = t * math.exp(level - slack), t * math.exp(-level + slack)
        ends.append(max(law.excess(a) / t, law.shortfall(b) / b) * error)
    return max(ends[0], 0.0), min(ends[1], 1.0)


def _beyond(sigma: float, t: int) -> float:
    """Chance, about, of ratios that the integral does not reach: one batch alone is above them."""
    last = math.pi * _MOST / (_SPAN * t * _highest(sigma, t))
    return 0.5 * math.erfc((sigma * math.log(t * last) - 0.5 / sigma) / math.sqrt(2.0))


@lru_cache(maxsize=64)
def _measure(sigma: float, t: int, flipped: bool, up: bool) -> DiscreteLosses:
    if _beyond(sigma, t) > _UNTOLD:
        return _sums_measure(lognormal_sums(sigma, t, up), t, flipped, up)
    at, masses, nothing, everything = _above(curve(sigma, t))
    if not up:
        at, masses = _below(curve(sigma, t))
    infinite = 0.0
    if up:
        infinite = nothing if flipped else everything
    return _ratio_measure(at, masses, infinite, flipped, 0.0, 0.0)


def _sums_measure(law: Sums, t: int, flipped: bool, up: bool) -> DiscreteLosses:
    """Return the losses of one order for the distribution of a sum of t ratios."""
    at, masses = law.values.astype(np.longdouble) / t, law.chances.astype(np.longdouble)
    infinite = 0.0
    if up:
        nothing = float(masses[0]) if at[0] == 0.0 else 0.0
        infinite = nothing if flipped else law.infinite / t
    seen = at > 0.0
    return _ratio_measure(at[seen], masses[seen], infinite, flipped, law.off, law.error)


def _ratio_measure(
    at: Longs, masses: Longs, infinite: float, flipped: bool, off: float, error: float
) -> DiscreteLosses:
    """Return the losses of one order, given likelihood ratios and their masses under Q."""
    kept = masses > 0.0
    at, masses = at[kept], masses[kept]
    logs, losses = np.log(masses), np.log(at)
    if flipped:
        losses, logs = -losses[::-1], logs[::-1]
    else:
        logs = logs + losses
    size = float(np.abs(losses).max())
    off += 4.0 * float(np.finfo(np.float64).eps) * size + 16.0 * FINE
    error += (64.0 + 8.0 * float(np.abs(logs).max())) * FINE
    shift = float(losses[0])
    shown = (losses - losses[0]).astype(np.float64)
    return DiscreteLosses(shown, logs, infinite, error, 0.0, shift, off)


# Sums of independent lognormal numbers, bounded in convex order.
#
# S is the sum of t copies of Y = e^((2x-1)/(2 sigma^2)), x ~ N(0, sigma^2), of mean one. A law is
# larger in convex order if f has a larger mean under it for all convex f, such as (S - a)_+ and
# (a - S)_+. Sums keep this order. So each law is put on points: larger where a value is shared
# between the points on either side of it so that the mean stays, smaller where all values of a
# cell are replaced by their mean. Copies are doubled and added, O(log t) pairs of laws, each on
# points that are close where the sum is likely. All terms are positive, so that chances have a
# relative error, however small they are.


#: Pairs of points of all sums together: about a second.
_WORK = 6e7
#: Most points of a distribution.
_POINTS = 5000
#: Standard deviations of ln Y on either side: beyond is less than 1e-37.
_LOG_REACH = 13.0
#: Standard deviations of ln S that have close points.
_LOG_NEAR = 9.0
#: Smallest distance of ln Y that counts as a standard deviation: all ratios may be equal.
_LEAST_UNIT = 1e-6
#: Share of the points of a distribution that a standard deviation of ln Y has away from there.
_FAR_SHARE = 1.0 / 50.0
#: Relative error of differences of normal probabilities.
_CELL = 2e-12
#: Probabilities that are lost to underflow.
_LOST = 1e-290


@dataclass(frozen=True, eq=False)
class Sums:
    """A distribution on rising points, and mean that went to infinity.

    Chances are known up to a relative ``error``, values up to a relative ``off``.
    """

    values: Floats
    chances: Floats
    infinite: float
    error: float
    off: float

    def excess(self, a: float) -> float:
        """E (S - a)_+."""
        return float((self.chances * np.maximum(self.values - a, 0.0)).sum()) + self.infinite

    def shortfall(self, a: float) -> float:
        """E (a - S)_+."""
        return float((self.chances * np.maximum(a - self.values, 0.0)).sum())

    @property
    def spread(self) -> tuple[float, float]:
        """Mean and deviation of ln S."""
        seen = self.values > 0.0
        logs, chances = np.log(self.values[seen]), self.chances[seen]
        mean = float(chances @ logs)
        return mean, math.sqrt(max(float(chances @ (logs - mean) ** 2), 1e-300))


@lru_cache(maxsize=16)
def lognormal_sums(sigma: float, t: int, up: bool) -> Sums:
    """The distribution of S, larger or smaller in convex order."""
    size = _sum_points(t)
    return _copies(_single(sigma, size, up), t, 1.0 / sigma, size, up)


@lru_cache(maxsize=16)
def _ratio_sums(step: Step, t: int, up: bool) -> Sums:
    """The distribution of a sum of t likelihood ratios of a step, in convex order."""
    size = _sum_points(t)
    given = losses_of(step, False, up, size)
    losses = given.losses.astype(np.longdouble) + np.longdouble(given.shift)
    values = np.exp(losses).astype(np.float64)
    chances = np.exp(given.logs - losses).astype(np.float64)
    error = given.error + given.off + roundoff(16.0)
    off = given.off + roundoff(16.0) * (1.0 + float(np.abs(losses).max()))
    if up:
        # Outputs that are impossible with the record have the ratio 0.
        values = np.append(0.0, values)
        rest = max(1.0 - math.fsum(chances.tolist()), 0.0) + roundoff(2.0) * len(chances)
        chances = np.append(rest, chances)
    one = Sums(values, chances, given.infinite if up else 0.0, error, off)
    unit = max(float(losses[-1] - losses[0]) / (2.0 * _LOG_REACH), _LEAST_UNIT)
    return _copies(one, t, unit, size, up)


def _sum_points(t: int) -> int:
    """Return how many points each partial sum of t numbers has."""
    stages = t.bit_length() + t.bit_count() - 2
    return int(min(math.sqrt(_WORK / max(stages, 1)), _POINTS))


def _copies(one: Sums, t: int, unit: float, size: int, up: bool) -> Sums:
    """Return the distribution of the sum of t copies, by doubling and adding."""
    total, power, left = None, one, t
    while True:
        if left & 1:
            total = power if total is None else _added(total, power, unit, size, up)
        left >>= 1
        if not left:
            return total or one
        power = _added(power, power, unit, size, up)


def _single(sigma: float, size: int, up: bool) -> Sums:
    """Put Y on points, from the chances of cells and their means, both normal chances."""
    z = np.linspace(
        -_LOG_REACH, _LOG_REACH + 1.0 / sigma, size
    )  # of x / sigma; means are those of z - 1/s
    ends = np.exp((z - 0.5 / sigma) / sigma)
    chances, means = _cells(z), _cells(z - 1.0 / sigma)
    off = 4.0 * _CELL + roundoff(8.0) * float(np.abs(z).max() + 1.0 / sigma) / sigma
    middle = np.divide(means, chances, out=np.zeros(len(z) + 1), where=chances > 0.0)
    if not up:
        seen = chances > 0.0
        return Sums(middle[seen], chances[seen], 0.0, _CELL, off)
    points = np.append(0.0, ends)
    # What is above the last point stays there, and its mean goes to infinity.
    share = np.clip((middle[:-1] - points[:-1]) / np.diff(points), 0.0, 1.0)
    masses = np.append(chances[:-1] * (1.0 - share), chances[-1])
    masses[1:] += chances[:-1] * share
    return Sums(points, masses, float(means[-1]) * (1.0 + _CELL), _CELL + roundoff(8.0), off)


def _cells(z: Floats) -> Floats:
    """Probabilities of a normal number below z_0, between neighbours, and above the last."""
    scaled = z / math.sqrt(2.0)
    below = 0.5 * np.array([math.erfc(-x) for x in scaled.tolist()])
    above = 0.5 * np.array([math.erfc(x) for x in scaled.tolist()])
    inner = np.where(z[:-1] > 0.0, above[:-1] - above[1:], below[1:] - below[:-1])
    return np.concatenate([below[:1], np.maximum(inner, 0.0), above[-1:]])


def _points(first: Sums, second: Sums, unit: float, size: int) -> Floats:
    """Points for a sum: close within some deviations of its logarithm, and some elsewhere."""
    values, weights = zip(*map(_rough, (first, second)), strict=True)
    rough = np.add.outer(*values).ravel()
    mean, deviation = Sums(rough, np.multiply.outer(*weights).ravel(), 0.0, 0.0, 0.0).spread
    low = math.log(max(sum(float(v[v > 0.0][0]) for v in (first.values, second.values)), 1e-300))
    high = math.log(first.values[-1] + second.values[-1]) + 1e-9
    mean = min(max(mean, low), high)  # a rough one
    near = max(mean - _LOG_NEAR * deviation, low), min(mean + _LOG_NEAR * deviation, high)
    step = unit / (_FAR_SHARE * size)
    outer = [np.arange(low, near[0], step), np.arange(near[1], high, step)[1:]]
    inner = np.linspace(*near, max(size - sum(map(len, outer)), size // 4))
    return np.append(0.0, np.exp(np.unique(np.concatenate([*outer, inner, [high]]))))


def _rough(law: Sums) -> tuple[Floats, Floats]:
    """A few points of a distribution."""
    starts = np.arange(0, len(law.values), max(len(law.values) // 256, 1))
    return law.values[starts], np.add.reduceat(law.chances, starts)


def _added(first: Sums, second: Sums, unit: float, size: int, up: bool) -> Sums:
    """The distribution of a sum of independent numbers, on points of its own."""
    points = _points(first, second, unit, size)
    count = len(points)
    chances, means, terms = np.zeros(count), np.zeros(count), np.zeros(count, dtype=np.int64)
    laws = (first.values, first.chances, second.values, second.chances)
    kernels.add_laws(*laws, points, up, chances, means, terms)
    summed = roundoff(2.0 * float(terms.max()) + 16.0)
    error = first.error + second.error + summed
    off = max(first.off, second.off) + roundoff(8.0)
    if not up:
        seen = chances > _LOST
        return Sums(means[seen] / chances[seen], chances[seen], 0.0, error, off + 2.0 * summed)
    chances[0] += _LOST
    infinite = (first.infinite + second.infinite) * (1.0 + roundoff(8.0))
    return Sums(points, chances, infinite, error, off)
