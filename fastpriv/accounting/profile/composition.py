"""Composition of steps in one direction: saddle points, Chernoff's bound, the engine protocol.

Each step has the moments M(s) = E_P e^(sL) of its loss L. Let K(s) be the sum of ln M(s) over all
steps. Then delta(t) is the integral of e^(K(s) - st) / (s (s + 1)) on a line Re s > 0. At the
saddle point, the tilted distribution of the losses is centred near t. The saddle point is used only
to guide the search.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from fastpriv._core.rounding import LEAST, exp_up, lowered, raised, roundoff
from fastpriv._core.search import golden
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.discrete import Releases, Step, discrete_cumulant
from fastpriv.accounting.profile.losses import Complexes, Directed, Discrete, NoBound, in_range

#: Lower and upper bounds on a number.
Bounds = tuple[float, float]

#: Relative error of saddle points, which are used only to guide the search.
_SADDLE_ERROR = 1e-3
#: Longest step of the search for a saddle point, on ln s, and the largest number of steps.
_SADDLE_STEP = math.log(8.0)
_SADDLE_STEPS = 200
#: Largest level at which Chernoff's inequality is evaluated: products with it do not overflow.
_FAR = 1e150
#: Largest saddle point, and the inverse of the smallest one.
_SADDLE_RANGE = 1e18
#: Largest product of a saddle point above 1 and a level: the rounding of larger ones spoils the
#: bounds. Larger saddle points belong to levels next to the largest loss.
_SADDLE_EXPONENT = 2.0**30
#: Relative accuracy of the moments in Chernoff's bound.
_CHERNOFF_TOLERANCE = 1e-14


class Losses(Protocol):
    """Losses L of one step in one direction, represented by moments M(s) = E_P e^(sL)."""

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln M(c + i angle), and bounds on its error."""

    def ceiling(self, c: float, angles: Floats, fine: bool = True) -> Floats:
        """Bound |M(c + i angle)| / M(c) for each angle and all larger ones, cheaply if not fine."""

    def cumulant(self, s: float) -> tuple[float, float, float]:
        """Return ln M(s) and its first two derivatives; used only to guide the search."""

    def slope(self, c: float) -> float:
        """Upper bound on the derivative of |M(c + i angle)| / M(c) in the angle."""

    def top(self) -> float:
        """Largest loss, to a few units."""


#: Losses of each kind of step, and the number of steps of that kind.
Terms = Sequence[tuple[Losses, int]]


class Prepared(Protocol):
    """Bounds that hold at every level and are narrow near the level of preparation."""

    def bounds(self, t: float) -> Bounds:
        """Bound the contribution of finite losses to delta(t)."""


class Engine(Protocol):
    """One method to bound delta(t) of a composition."""

    name: str

    def applies(self, parts: Composition) -> bool:
        """Whether the method supports these losses; a cheap test."""

    def prepare(self, parts: Composition, t: float, s: float) -> Prepared | None:
        """Prepare bounds near the level t with the saddle point s; None if there are none.

        Raises a NoBound: OutOfRange if arithmetic overflows, TooMuchWork if an array would exceed
        its limit.
        """


def cumulant(terms: Terms, s: float) -> tuple[float, float, float]:
    """Return K(s) = ln M(s) of all steps, and its first two derivatives."""
    value = slope = curve = 0.0
    for term, count in terms:
        a, b, c = term.cumulant(s)
        value, slope, curve = value + count * a, slope + count * b, curve + count * c
    return value, slope, curve


def tilt_at(terms: Terms, t: float) -> float:
    """Return the saddle point of K(s) - s t - ln(s (s + 1)), to three digits; not too large."""

    def slope(s: float) -> tuple[float, float]:
        _, slope, curve = cumulant(terms, s)
        rest = 1.0 / s + 1.0 / (1.0 + s)
        return slope - t - rest, curve + 1.0 / s**2 + 1.0 / (1.0 + s) ** 2

    saddle = _rising(slope)
    if saddle <= 1.0 or saddle * abs(t) <= _SADDLE_EXPONENT:
        return saddle
    return max(_SADDLE_EXPONENT / abs(t), 1.0)


def tilt_for(terms: Terms, log_delta: float) -> float:
    """Return the saddle point for the t at which delta is about e^log_delta."""

    def short(s: float) -> tuple[float, float]:
        value, slope, curve = cumulant(terms, s)
        wide = math.sqrt(2.0 * math.pi * max(curve, 0.0))
        share = 2.0 + wide * s * (1.0 + s)
        rise = s * curve + wide * (1.0 + 2.0 * s) / share
        return log_delta - (value - s * slope - math.log(share)), rise

    return _rising(short)


def _rising(value: Callable[[float], tuple[float, float]]) -> float:
    """Return the root of an increasing function of s > 0, to three digits.

    The function returns its value and its derivative, for Newton steps on ln s. Overflow counts as
    a positive value.
    """
    low, high, s = 1.0 / _SADDLE_RANGE, _SADDLE_RANGE, 1.0
    for _ in range(_SADDLE_STEPS):
        try:
            with np.errstate(all="ignore"):
                found, rise = value(s)
        except (NoBound, OverflowError):
            found, rise = math.inf, math.inf
        if found < 0.0:
            low = s
        else:
            high = s
        step = -found / (s * rise) if 0.0 < s * rise < math.inf and found < math.inf else math.nan
        if not math.isfinite(step):
            step = _SADDLE_STEP if found < 0.0 else -_SADDLE_STEP
        following = s * math.exp(min(max(step, -_SADDLE_STEP), _SADDLE_STEP))
        if abs(step) <= _SADDLE_ERROR:
            return following
        if not low < following < high:
            following = math.sqrt(low) * math.sqrt(high)
        if high <= low * (1.0 + _SADDLE_ERROR):
            return low  # the function is known there; above it may overflow
        s = following
    return s


def share(c: float) -> float:
    """Return ln of the maximum of (1 - e^-x) e^(-cx) over x >= 0."""
    return c * math.log(c) - (1.0 + c) * math.log1p(c) if c > 0.0 else 0.0


def log_moment_above(term: Losses, s: float, tolerance: float) -> float:
    """Return an upper bound on ln M(s)."""
    value, error = term.log_moments(s, np.zeros(1), tolerance)
    return float(value[0].real) + float(error[0])


def chernoff(terms: Terms, at: float) -> float:
    """Upper bound on K(at) + ln max over x >= 0 of (1 - e^-x) e^(-at x)."""
    if at == 0.0:
        return 1e-9
    total = share(at)
    for term, k in terms:
        total += k * log_moment_above(term, at, _CHERNOFF_TOLERANCE)
    return total + 1e-9 + 1e-12 * abs(total)


@dataclass(frozen=True, eq=False)
class Composition:
    """Composed steps in one direction.

    Attributes
    ----------
    pairs : list of (Directed, int)
        Steps whose losses have a density, and the number of each.
    finite : list of (DiscreteLosses, int)
        Steps with finitely many losses, and the number of each.
    up : bool, optional
        Whether the upper or the lower bound is needed, if all losses are discrete; None for both.
    """

    pairs: list[tuple[Directed, int]]
    finite: Releases
    up: bool | None = None

    @cached_property
    def terms(self) -> Terms:
        """All losses, represented by their moments."""
        return [*self.pairs, *((Discrete(measure), k) for measure, k in self.finite)]

    @cached_property
    def mass_error(self) -> float:
        """Relative error of the masses of discrete losses, summed over steps."""
        return math.fsum(k * (m.error + roundoff(8.0)) for m, k in self.finite)

    @cached_property
    def loss_error(self) -> float:
        """Bound on the absolute error of the sum of discrete losses."""
        return math.fsum(k * m.off for m, k in self.finite)

    @cached_property
    def shift(self) -> float:
        """Sum of the offsets of the discrete losses."""
        return math.fsum(k * m.shift for m, k in self.finite)

    @cached_property
    def is_single(self) -> bool:
        """Whether this is a single step with discrete losses, whose numbers are not rounded."""
        return not self.pairs and [k for _, k in self.finite] == [1]

    @cached_property
    def infinite(self) -> Bounds:
        """Probability that some loss is infinite."""
        if any(measure.infinite >= 1.0 for measure, _ in self.finite):
            return 1.0, 1.0
        shown = [(m.infinite, k) for m, k in self.finite if m.infinite > 0.0]
        if not shown or [k for _, k in shown] == [1]:
            one = shown[0][0] if shown else 0.0
            return one, one
        low = high = 0.0
        for chance, k in shown:
            part = -math.expm1(k * math.log1p(-chance))
            low += lowered(part * (1.0 - low), 16.0)
            high += raised(part * (1.0 - high), 16.0)
        return lowered(low, 4.0), min(raised(high, 4.0), 1.0)

    @cached_property
    def top(self) -> Bounds:
        """Largest finite loss of all steps together."""
        if any(not len(measure.losses) for measure, _ in self.finite):
            return 0.0, 0.0  # some step has no finite loss
        if self.is_single and self.loss_error == 0.0:
            ((measure, _),) = self.finite
            return (measure.shift + measure.top,) * 2
        tops = [k * term.top() for term, k in self.pairs]
        tops += [k * (m.shift + m.top + m.off) for m, k in self.finite]
        if math.inf in tops:
            return math.inf, math.inf
        total = math.fsum(tops)
        slack = roundoff(8.0) * (math.fsum(map(abs, tops)) + abs(self.shift))
        return max(total - slack - 2.0 * self.loss_error, 0.0), max(total + slack, 0.0)

    def tilt_at(self, t: float) -> float:
        """Return the saddle point for a level."""
        if self.pairs:
            return tilt_at(self.terms, t)
        return discrete_tilt_at(self.finite, t - self.shift)

    def at_most(self, t: float) -> float:
        """Cheap and certified upper bound on delta(t), by Chernoff's inequality.

        delta(t) <= e^(K(s) - s t) max over y >= 0 of (1 - e^-y) e^(-sy) for every s >= 0. The
        errors of masses and losses are added for every step.
        """
        high = self.infinite[1]
        if high >= 1.0 or t >= self.top[1]:
            return high
        t = min(t, _FAR)  # delta does not increase
        try:
            with in_range():
                at = self.tilt_at(t)
                log = chernoff(self.terms, at)
                log += self.mass_error + at * (self.loss_error - t)
        except NoBound:
            return 1.0
        # Rounded up, so that a value that underflows stays positive.
        finite = exp_up(min(log + 1e-9 * (1.0 + at * t), 0.0))
        return min((high + finite) * (1.0 + 1e-9), 1.0)

    def loosened(self, made: Prepared) -> Prepared:
        """Widen bounds by the errors of discrete masses and losses, which a contour omits."""
        return _Loosened(made, self.mass_error, self.loss_error) if self.finite else made


@dataclass(frozen=True)
class _Loosened:
    """Bounds widened by a relative error of the masses and an absolute error of the losses."""

    made: Prepared
    mass_error: float
    loss_error: float

    def bounds(self, t: float) -> Bounds:
        """Bound delta(t)."""
        low = self.made.bounds(t + self.loss_error)[0]
        high = self.made.bounds(t - self.loss_error)[1]
        slack = raised(math.expm1(min(self.mass_error, 700.0)), 8.0)
        return max(low * (1.0 - slack), 0.0), min(high * (1.0 + slack) + 1e-322, 1.0)


# Saddle points of discrete losses. The search stops at a tilt concentrated on the largest loss.


def discrete_tilt_at(releases: Releases, t: float) -> float:
    """Return the tilt whose distribution is centred on the losses that contribute to delta(t).

    The centre is slightly above t, and s > 0, so that rare losses above t are likely under the
    tilt.
    """

    def above(s: float) -> tuple[float, float]:
        _, slope, curve = discrete_cumulant(releases, s)
        rest = 1.0 / s + 1.0 / (1.0 + s)
        return slope - t - rest, curve + 1.0 / s**2 + 1.0 / (1.0 + s) ** 2

    most = _largest_tilt(releases)
    return min(_rising(above), most) if most > 0.0 else 0.0


def discrete_tilt_for(releases: Releases, delta: float) -> float:
    """Return the tilt whose distribution is centred near the level at which the curve is delta.

    Saddle-point approximation: delta is about e^(K - s K') / (2 + sqrt(2 pi K'') s (1 + s)).
    """
    target, most = math.log(delta), _largest_tilt(releases)

    def short(s: float) -> tuple[float, float]:
        value, slope, curve = discrete_cumulant(releases, s)
        wide = math.sqrt(2.0 * math.pi * curve)
        share = 2.0 + wide * s * (1.0 + s)
        rise = s * curve + wide * (1.0 + 2.0 * s) / share
        return target - (value - s * slope - math.log(share)), rise

    return min(_rising(short), most) if most > 0.0 and short(0.0)[0] < 0.0 else 0.0


def _largest_tilt(releases: Releases) -> float:
    """Return a tilt at which almost every step has its largest loss, however rare; 0 if all are 0.

    No larger tilt is of use.
    """
    moving = [(measure, k) for measure, k in releases if measure.top > 0.0]
    if not moving:
        return 0.0
    gap = min(float(np.diff(measure.losses)[-1]) for measure, _ in moving)
    rarest = max(float(measure.logs.max() - measure.logs[-1]) for measure, _ in moving)
    return (rarest + math.log(sum(k for _, k in moving) + 1.0) + 7.0) / gap


# Steps with known Renyi divergences only: upper bounds.

#: Larger levels are replaced by this one, which is valid because the curve decreases.
_FARTHEST = 1e9
#: Exponents s at which Chernoff's bound is first tried.
_EXPONENTS = np.exp(np.linspace(math.log(1e-6), math.log(1e6), 97))
#: Steps of the golden section; they shrink a cell by a factor of 0.618^60, about 3e-13.
_GOLDEN_STEPS = 60


class RenyiStep(Step):
    """Upper bounds on ln M(s), s > 0, from (xi, rho)-zCDP or from levels at some orders.

    ln M is convex and zero at 0, so the chord between two orders is an upper bound. The bound is
    infinite beyond the largest order.
    """

    def __init__(
        self, orders: tuple[float, ...], levels: tuple[float, ...], rho: float, xi: float
    ) -> None:
        self.orders, self.levels, self.rho, self.xi = orders, levels, rho, xi
        self.key = ("renyi", orders, levels, rho, xi)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RenyiStep) and self.key == other.key

    def log_moment(self, s: float) -> float:
        """Upper bound on ln M(s)."""
        if not self.orders:
            return raised(s * (self.xi + self.rho * (1.0 + s)), 8.0)
        at = [0.0, *(order - 1.0 for order in self.orders)]
        if s > at[-1]:
            return math.inf
        values = [
            0.0,
            *((order - 1.0) * level for order, level in zip(self.orders, self.levels, strict=True)),
        ]
        return raised(float(np.interp(s, at, values)), 16.0)

    def group(self, k: int) -> RenyiStep | None:
        """Return the level of databases that differ in k records; None if orders are given."""
        if self.orders:
            return None
        slope = raised(k * math.fsum(1.0 / i for i in range(1, k + 1)), 4.0)
        return RenyiStep((), (), raised(k * k * self.rho, 4.0), raised(slope * self.xi, 4.0))

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same distribution."""
        return not self.orders and self.rho == 0.0 and self.xi == 0.0

    def declared_rho(self) -> float | None:
        """Return xi + rho, because (xi, rho)-zCDP implies (xi + rho)-zCDP; None for orders."""
        return None if self.orders else self.rho + self.xi


class ChernoffCurve:
    """Upper bound delta(t) <= min over s of M(s) e^(-st) max over x of (1 - e^-x) e^(-sx)."""

    def __init__(self, moments: Sequence[tuple[RenyiStep, int]], parts: Composition) -> None:
        self._moments, self._parts = list(moments), parts
        self.infinite = parts.infinite
        self.top = 0.0, math.inf

    def at_most(self, t: float) -> float:
        """Upper bound on delta(t)."""
        t = min(t, _FARTHEST)  # the curve decreases
        log = min(self._log(s) - s * t for s in self._tried(lambda s: self._about(s) - s * t))
        if not log < 700.0:
            return 1.0
        # Moments do not bound the losses, so the bound stays positive even if it underflows.
        finite = max(math.exp(log + roundoff(8.0) * (abs(log) + 1.0)) * (1.0 + 1e-12), LEAST)
        return min(raised(self.infinite[1] + finite, 2.0), 1.0)

    def delta(self, t: float) -> Bounds:
        """Bounds on delta(t); the lower bound is 0."""
        return 0.0, self.at_most(t)

    def epsilon(self, delta: float) -> Bounds:
        """Bounds on the smallest t with delta(t) <= delta; the lower bound is 0."""
        rest = delta - raised(self.infinite[1], 4.0)
        if rest <= 0.0:
            return 0.0, math.inf
        target = math.log(rest)
        result = [
            (self._log(s) - target) / s
            for s in self._tried(lambda s: (self._about(s) - target) / s)
        ]
        best = min(result)
        if not math.isfinite(best):
            return 0.0, math.inf
        return 0.0, max(best + roundoff(16.0) * (abs(best) + 1.0), 0.0)

    def guaranteed(self, delta: float) -> float:
        """Upper bound on the smallest t with delta(t) <= delta."""
        return self.epsilon(delta)[1]

    def _about(self, s: float) -> float:
        """Return ln M(s) + share(s), not rounded in any direction."""
        value = share(s) + sum(k * part.log_moment(s) for part, k in self._moments)
        try:
            return value + cumulant(self._parts.terms, s)[0]
        except (NoBound, OverflowError):
            return math.inf

    def _log(self, s: float) -> float:
        """Return ln M(s) + share(s), rounded up."""
        value = share(s) + sum(k * part.log_moment(s) for part, k in self._moments)
        try:
            value += sum(k * log_moment_above(one, s, 1e-16 / k) for one, k in self._parts.terms)
        except NoBound:
            return math.inf
        errors = self._parts.mass_error + s * self._parts.loss_error
        return value + errors + 1e-13 * (1.0 + abs(value))

    def _tried(self, ask: Callable[[float], float]) -> list[float]:
        """Return exponents to try: the result of a search, and the four best known orders."""
        known = [order - 1.0 for part, _ in self._moments for order in part.orders if order > 1.0]
        values = [ask(s) for s in _EXPONENTS.tolist()]
        best, last = int(np.argmin(values)), len(_EXPONENTS) - 1
        low, high = float(_EXPONENTS[max(best - 1, 0)]), float(_EXPONENTS[min(best + 1, last)])
        return [golden(ask, low, high, _GOLDEN_STEPS)[0], *sorted(known, key=ask)[:4]]
