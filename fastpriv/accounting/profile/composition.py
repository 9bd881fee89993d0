"""Many steps in one direction: saddle points, Chernoff's bound, and what an engine is asked.

With K(s) = ln M(s) the sum over all steps of the logarithms of their moments M(s) = E_P e^(sL),
delta(t) is the integral of e^(K(s) - st) / (s (s + 1)) on a line Re s > 0. Its saddle point is
where the tilted distribution of the losses is centred; it guides the search for good bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from fastpriv._core.rounding import LEAST, ULP, exp_up, lowered, raised
from fastpriv._core.search import bisect, golden
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.discrete import Releases, Step, discrete_cumulant
from fastpriv.accounting.profile.losses import Complexes, Directed, Discrete, NoBound, in_range

#: Lower and upper bounds on a number.
Bounds = tuple[float, float]

#: Relative error of saddle points: they only choose where bounds are narrow.
_SADDLE_ERROR = 1e-3
#: The range in which saddle points are sought: one over the smallest and largest noise, squared.
_SADDLE_RANGE = 1e18
#: Accuracy of the moments in Chernoff's bound, relative.
_CHERNOFF_TOLERANCE = 1e-14


class Losses(Protocol):
    """The losses of one step in one direction, by their moments M(s) = E_P e^(sL)."""

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln M(c + i angle), and bounds on its error."""

    def ceiling(self, c: float, angles: Floats) -> Floats:
        """Bound |M(c + i angle)| / M(c) for each angle and all larger ones."""

    def cumulant(self, s: float) -> tuple[float, float, float]:
        """Return ln M(s) and two derivatives; used only to guide the search."""

    def slope(self, c: float) -> float:
        """Bound the change of |M(c + i angle)| / M(c) with the angle."""

    def top(self) -> float:
        """Largest loss, to a few units."""


#: Losses of some kinds of steps, and how many steps of each.
Terms = Sequence[tuple[Losses, int]]


class Prepared(Protocol):
    """Bounds that hold at every level and are narrow near the one they were prepared for."""

    def bounds(self, t: float) -> Bounds:
        """Bound the part of delta(t) that finite losses contribute."""


class Engine(Protocol):
    """One method to bound delta(t) of a composition."""

    name: str

    def applies(self, parts: Composition) -> bool:
        """Whether the method is made for these losses; a cheap test."""

    def prepare(self, parts: Composition, t: float, s: float) -> Prepared | None:
        """Prepare bounds near the level t with the saddle point s; None where it has none there.

        Raises NoBound: OutOfRange where arithmetic overflows, TooMuchWork where arrays would be
        longer than their limits.
        """


def cumulant(terms: Terms, s: float) -> tuple[float, float, float]:
    """Return K(s) = ln M(s) of all steps, and its first two derivatives."""
    value = slope = curve = 0.0
    for term, count in terms:
        a, b, c = term.cumulant(s)
        value, slope, curve = value + count * a, slope + count * b, curve + count * c
    return value, slope, curve


def tilt_at(terms: Terms, t: float) -> float:
    """Saddle point of K(s) - s t - ln s (s + 1), to three digits."""
    return _rising(lambda s: cumulant(terms, s)[1] - t - 1.0 / s - 1.0 / (1.0 + s))


def tilt_for(terms: Terms, log_delta: float) -> float:
    """Saddle point of the t at which delta is about e^log_delta."""

    def short(s: float) -> float:
        value, slope, curve = cumulant(terms, s)
        share = math.log(2.0 + math.sqrt(2.0 * math.pi * max(curve, 0.0)) * s * (1.0 + s))
        return log_delta - (value - s * slope - share)

    return _rising(short)


def _rising(value: Callable[[float], float]) -> float:
    """Where a rising function of s > 0 changes its sign, to three digits.

    Overflow means that s is too large.
    """

    def positive(s: float) -> bool:
        try:
            with np.errstate(all="ignore"):
                result = value(s)
        except (NoBound, OverflowError):
            return True
        return not result < 0.0

    low, high = 1.0, 1.0
    if positive(1.0):
        while low > 1.0 / _SADDLE_RANGE and positive(low):
            high, low = low, low / 8.0
    else:
        while high < _SADDLE_RANGE and not positive(high):
            low, high = high, high * 8.0
    return bisect(lambda s: not positive(s), low, high, relative=_SADDLE_ERROR, geometric=True)[0]


def share(c: float) -> float:
    """Return ln of the largest (1 - e^-x) e^(-cx) over x >= 0."""
    return c * math.log(c) - (1.0 + c) * math.log1p(c) if c > 0.0 else 0.0


def log_moment_above(term: Losses, s: float, tolerance: float) -> float:
    """Return an upper bound on ln M(s)."""
    value, error = term.log_moments(s, np.zeros(1), tolerance)
    return float(value[0].real) + float(error[0])


def chernoff(terms: Terms, at: float) -> float:
    """Upper bound on ln M(at) + ln max (1 - e^-x) e^(-at x)."""
    if at == 0.0:
        return 1e-9
    total = share(at)
    for term, k in terms:
        total += k * log_moment_above(term, at, _CHERNOFF_TOLERANCE)
    return total + 1e-9 + 1e-12 * abs(total)


@dataclass(frozen=True, eq=False)
class Composition:
    """Steps in one direction.

    Attributes
    ----------
    pairs : list of (Directed, int)
        Steps with a density of losses, and how many of each.
    finite : releases
        Steps with finitely many losses.
    up : bool, optional
        Which bound is asked for, where all losses are discrete; None for both.
    """

    pairs: list[tuple[Directed, int]]
    finite: Releases
    up: bool | None = None

    @cached_property
    def terms(self) -> Terms:
        """All losses, by their moments."""
        return [*self.pairs, *((Discrete(measure), k) for measure, k in self.finite)]

    @cached_property
    def mass_error(self) -> float:
        """Relative error of the masses of discrete losses, all steps together."""
        return math.fsum(k * (m.error + 8.0 * ULP) for m, k in self.finite)

    @cached_property
    def loss_error(self) -> float:
        """How far the sum of discrete losses may be off."""
        return math.fsum(k * m.off for m, k in self.finite)

    @cached_property
    def shift(self) -> float:
        """Sum of what discrete losses are counted from."""
        return math.fsum(k * m.shift for m, k in self.finite)

    @cached_property
    def is_single(self) -> bool:
        """Whether it is one step with discrete losses: its numbers are not rounded."""
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
            return 0.0, 0.0  # some step never has a finite loss
        if self.is_single and self.loss_error == 0.0:
            ((measure, _),) = self.finite
            return (measure.shift + measure.top,) * 2
        tops = [k * term.top() for term, k in self.pairs]
        tops += [k * (m.shift + m.top + m.off) for m, k in self.finite]
        if math.inf in tops:
            return math.inf, math.inf
        total = math.fsum(tops)
        slack = 8.0 * ULP * (math.fsum(map(abs, tops)) + abs(self.shift))
        return max(total - slack - 2.0 * self.loss_error, 0.0), max(total + slack, 0.0)

    def tilt_at(self, t: float) -> float:
        """Saddle point for a level."""
        if self.pairs:
            return tilt_at(self.terms, t)
        return discrete_tilt_at(self.finite, t - self.shift)

    def at_most(self, t: float) -> float:
        """Upper bound on delta(t) at little cost: Chernoff's, proved.

        delta(t) <= e^(K(s) - s t) max over y of (1 - e^-y) e^(-sy) for every s >= 0. Errors of
        masses and losses count for every step, so that they grow with the number of steps.
        """
        high = self.infinite[1]
        if high >= 1.0 or t >= self.top[1]:
            return high
        try:
            with in_range():
                at = self.tilt_at(t)
                log = chernoff(self.terms, at)
                log += self.mass_error + at * (self.loss_error - t)
        except NoBound:
            return 1.0
        # Rounded up, so that what underflows is not nothing.
        finite = exp_up(min(log + 1e-9 * (1.0 + at * t), 0.0))
        return min((high + finite) * (1.0 + 1e-9), 1.0)

    def loosened(self, made: Prepared) -> Prepared:
        """Count the errors of discrete masses and losses, which a contour does not know."""
        return _Loosened(made, self.mass_error, self.loss_error) if self.finite else made


@dataclass(frozen=True)
class _Loosened:
    """Bounds with the errors of discrete losses: masses by a factor, losses by a sum."""

    made: Prepared
    mass_error: float
    loss_error: float

    def bounds(self, t: float) -> Bounds:
        """Bound delta(t)."""
        low = self.made.bounds(t + self.loss_error)[0]
        high = self.made.bounds(t - self.loss_error)[1]
        slack = raised(math.expm1(min(self.mass_error, 700.0)), 8.0)
        return max(low * (1.0 - slack), 0.0), min(high * (1.0 + slack) + 1e-322, 1.0)


# Saddle points of discrete losses, which are largest at the tilt that shows the top loss alone.


def discrete_tilt_at(releases: Releases, t: float) -> float:
    """Tilt whose distribution is centred where delta(t) comes from.

    A little above t, and never at s = 0, so that losses above t that are rare in all are not rare
    under the tilt.
    """
    return _smallest_tilt(
        releases,
        lambda s: s == 0.0 or discrete_cumulant(releases, s)[1] < t + 1.0 / s + 1.0 / (1.0 + s),
    )


def discrete_tilt_for(releases: Releases, delta: float) -> float:
    """Tilt whose distribution is centred near where the curve falls to delta.

    The saddle point: delta is about e^(K - s K') / (sqrt(2 pi K'') s (1 + s)), no more than 1/2.
    """
    target = math.log(delta)

    def above(s: float) -> bool:
        value, slope, curve = discrete_cumulant(releases, s)
        share = 2.0 + math.sqrt(2.0 * math.pi * curve) * s * (1.0 + s)
        return value - s * slope - math.log(share) > target

    return _smallest_tilt(releases, above)


def _smallest_tilt(releases: Releases, more: Callable[[float], bool]) -> float:
    """Least tilt, to three digits, at which ``more`` no longer holds."""
    moving = [(measure, k) for measure, k in releases if measure.top > 0.0]
    if not (moving and more(0.0)):
        return 0.0
    low, high = 0.0, 1.0 / sum(k * measure.top for measure, k in moving)
    gap = min(float(np.diff(measure.losses)[-1]) for measure, _ in moving)
    # By then hardly any release is below its top, however rare that was.
    rarest = max(float(measure.logs.max() - measure.logs[-1]) for measure, _ in moving)
    most = (rarest + math.log(sum(k for _, k in moving) + 1.0) + 7.0) / gap
    while high < most and more(high):
        low, high = high, 2.0 * high
    high = min(high, most)
    return bisect(more, low, high, relative=_SADDLE_ERROR)[1]


# Steps of which only Renyi divergences are known: bounds from above.

#: Levels beyond this one are not distinguished: e^(s t) would overflow for every s that is tried.
_FARTHEST = 1e9
#: Exponents s at which Chernoff's bound is first tried.
_EXPONENTS = np.exp(np.linspace(math.log(1e-6), math.log(1e6), 97))
#: Steps of the golden section towards the best exponent: 0.618^60 of a cell is nothing.
_GOLDEN_STEPS = 60


class RenyiStep(Step):
    """Bounds on ln M(s), s > 0: rho-zCDP, or levels at some orders.

    ln M is convex and zero at 0, so between two orders the chord is a bound. It is infinite beyond
    the largest order.
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

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same distribution."""
        return not self.orders and self.rho == 0.0 and self.xi == 0.0

    def declared_rho(self) -> float | None:
        """Return xi + rho, which (xi, rho)-zCDP is no worse than; None for levels at orders."""
        return None if self.orders else self.rho + self.xi


class ChernoffCurve:
    """delta(t) <= M(s) e^(-st) max over x of (1 - e^-x) e^(-sx), the best of all s."""

    def __init__(self, moments: Sequence[tuple[RenyiStep, int]], parts: Composition) -> None:
        self._moments, self._parts = list(moments), parts
        self.infinite = parts.infinite
        self.top = 0.0, math.inf

    def at_most(self, t: float) -> float:
        """Upper bound on delta(t)."""
        t = min(t, _FARTHEST)  # the curve falls
        log = min(self._log(s) - s * t for s in self._tried(lambda s: self._about(s) - s * t))
        if not log < 700.0:
            return 1.0
        # Moments bound no loss: delta is positive, also where it is less than any double.
        finite = max(math.exp(log + 8.0 * ULP * (abs(log) + 1.0)) * (1.0 + 1e-12), LEAST)
        return min(raised(self.infinite[1] + finite, 2.0), 1.0)

    def delta(self, t: float) -> Bounds:
        """Bounds on delta(t): nothing from below."""
        return 0.0, self.at_most(t)

    def epsilon(self, delta: float) -> Bounds:
        """Bounds on the smallest t with delta(t) <= delta: nothing from below."""
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
        return 0.0, max(best + 16.0 * ULP * (abs(best) + 1.0), 0.0)

    def guaranteed(self, delta: float) -> float:
        """Upper bound on that level alone."""
        return self.epsilon(delta)[1]

    def _about(self, s: float) -> float:
        """Return ln M(s) and the share, without rounding."""
        value = share(s) + sum(k * part.log_moment(s) for part, k in self._moments)
        try:
            return value + cumulant(self._parts.terms, s)[0]
        except (NoBound, OverflowError):
            return math.inf

    def _log(self, s: float) -> float:
        """Return ln M(s) and the share, rounded up."""
        value = share(s) + sum(k * part.log_moment(s) for part, k in self._moments)
        try:
            value += sum(k * log_moment_above(one, s, 1e-16 / k) for one, k in self._parts.terms)
        except NoBound:
            return math.inf
        errors = self._parts.mass_error + s * self._parts.loss_error
        return value + errors + 1e-13 * (1.0 + abs(value))

    def _tried(self, ask: Callable[[float], float]) -> list[float]:
        """Exponents near the best: the orders that are known, and the best of a search."""
        known = [order - 1.0 for part, _ in self._moments for order in part.orders if order > 1.0]
        values = [ask(s) for s in _EXPONENTS.tolist()]
        best, last = int(np.argmin(values)), len(_EXPONENTS) - 1
        low, high = float(_EXPONENTS[max(best - 1, 0)]), float(_EXPONENTS[min(best + 1, last)])
        return [golden(ask, low, high, _GOLDEN_STEPS)[0], *sorted(known, key=ask)[:4]]
