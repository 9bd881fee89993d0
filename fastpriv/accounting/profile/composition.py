"""Many steps in one direction: cumulants, saddle points and Chernoff's bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from fastpriv._core.rounding import LEAST, ULP, raised
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.discrete import Releases
from fastpriv.accounting.profile.losses import Complexes, Directed, Discrete, TooCostly


class Losses(Protocol):
    """One kind of release, in one order of its neighbours, as moments M(s) = E_P e^(sL)."""

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln M(c + i angle), and bounds on its error."""

    def ceiling(self, c: float, angles: Floats) -> Floats:
        """Bound |M(c + i angle)| / M(c) for each angle and all larger ones."""

    def cumulant(self, s: float) -> tuple[float, float, float]:
        """Return ln M(s) and two derivatives; no digit of a result."""

    def slope(self, c: float) -> float:
        """Bound the change of |M(c + i angle)| / M(c) with the angle."""

    def top(self) -> float:
        """Largest loss, to a few units."""


#: Kinds of releases in one order, and how many of each.
Terms = Sequence[tuple[Losses, int]]


def cumulant(terms: Terms, s: float) -> tuple[float, float, float]:
    """Return K(s) = ln M(s) of all releases, and its first two derivatives."""
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
        except (TooCostly, OverflowError):
            return True
        return not result < 0.0

    low, high = 1.0, 1.0
    if positive(1.0):
        while low > 1e-18 and positive(low):
            high, low = low, low / 8.0
    else:
        while high < 1e18 and not positive(high):
            low, high = high, high * 8.0
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if positive(middle) else (middle, high)
    return low


def share(c: float) -> float:
    """Return ln of the largest (1 - e^-x) e^(-cx) over x >= 0."""
    return c * math.log(c) - (1.0 + c) * math.log1p(c) if c > 0.0 else 0.0


def chernoff(terms: Terms, at: float, tolerance: float) -> float:
    """Upper bound on ln M(at) + ln max (1 - e^-x) e^(-at x)."""
    if at == 0.0:
        return 1e-9
    total, zero = share(at), np.zeros(1)
    for term, k in terms:
        value, error = term.log_moments(at, zero, max(tolerance, 1e-14))
        total += k * (float(value[0].real) + float(error[0]))
    return total + 1e-9 + 1e-12 * abs(total)


# Which tilt suits a question: where the law of the losses is centred. No digit of a result.


def discrete_cumulant(releases: Releases, s: float) -> tuple[float, float, float]:
    """Return K(s) = ln of the mean of e^(s loss), and its first two derivatives."""
    value = slope = curve = 0.0
    for measure, k in releases:
        logs = (measure.logs + s * measure.losses).astype(np.float64)
        most = float(logs.max())
        law = np.exp(logs - most)
        total = float(law.sum())
        law /= total
        mean = float((law * measure.losses).sum())
        value += k * (most + math.log(total))
        slope += k * mean
        curve += k * float((law * (measure.losses - mean) ** 2).sum())
    return value, slope, curve


def discrete_tilt_at(releases: Releases, t: float) -> float:
    """Tilt whose law is centred where delta(t) comes from.

    The saddle point of e^(K - s t) / (s (1 + s)), whose integral delta(t) is: a little above t,
    and never at s = 0, so that losses above t that are rare in all are not rare under the tilt.
    """
    return _smallest_tilt(
        releases,
        lambda s: s == 0.0 or discrete_cumulant(releases, s)[1] < t + 1.0 / s + 1.0 / (1.0 + s),
    )


def discrete_tilt_for(releases: Releases, delta: float) -> float:
    """Tilt whose law is centred near where the curve falls to delta.

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
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if more(middle) else (low, middle)
    return high


# Releases of which only Renyi divergences are known: bounds from above.


#: Levels beyond this one are not told apart.
_FARTHEST = 1e9


class RenyiStep:
    """Bounds on ln M(s), s > 0: rho-zCDP, or levels at some orders.

    ln M is convex and zero at 0, so between two orders the chord is a bound. It is infinite beyond
    the largest order.
    """

    def __init__(
        self, orders: tuple[float, ...], levels: tuple[float, ...], rho: float, xi: float
    ) -> None:
        self.orders, self.levels, self.rho, self.xi = orders, levels, rho, xi
        self.key: tuple[Any, ...] = ("renyi", orders, levels, rho, xi)

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
        """Whether neighbours have the same law."""
        return not self.orders and self.rho == 0.0 and self.xi == 0.0


class Chernoff:
    """delta(t) <= M(s) e^(-st) max over x of (1 - e^-x) e^(-sx), the best of all s."""

    def __init__(
        self,
        moments: Sequence[tuple[RenyiStep, int]],
        pairs: Sequence[tuple[Directed, int]],
        finite: Releases,
    ) -> None:
        self._moments = list(moments)
        self._terms: list[tuple[Losses, int]] = [*pairs, *((Discrete(m), k) for m, k in finite)]
        self._slack = math.fsum(k * (m.error + 8.0 * ULP) for m, k in finite)
        self._moved = math.fsum(k * m.off for m, k in finite)
        missed = math.fsum(
            -k * math.log1p(-m.infinite) if m.infinite < 1.0 else math.inf for m, k in finite
        )
        self.infinite = -math.expm1(-missed * (1.0 + 1e-12))

    def delta(self, t: float) -> float:
        """Upper bound on delta(t)."""
        t = min(t, _FARTHEST)  # the curve falls
        log = min(self._log(s) - s * t for s in self._tried(lambda s: self._about(s) - s * t))
        if not log < 700.0:
            return 1.0
        # Moments bound no loss: delta is positive, also where it is less than any double.
        finite = max(math.exp(log + 8.0 * ULP * (abs(log) + 1.0)) * (1.0 + 1e-12), LEAST)
        return min(self.infinite + finite, 1.0)

    def epsilon(self, delta: float) -> float:
        """Upper bound on the least t with delta(t) <= delta."""
        rest = delta - raised(self.infinite, 4.0)
        if rest <= 0.0:
            return math.inf
        target = math.log(rest)
        result = [
            (self._log(s) - target) / s
            for s in self._tried(lambda s: (self._about(s) - target) / s)
        ]
        best = min(result)
        return max(best + 16.0 * ULP * (abs(best) + 1.0), 0.0) if math.isfinite(best) else math.inf

    def _about(self, s: float) -> float:
        """Return ln M(s) and the share, without rounding."""
        value = _share(s) + sum(k * part.log_moment(s) for part, k in self._moments)
        try:
            return value + sum(k * term.cumulant(s)[0] for term, k in self._terms)
        except (TooCostly, OverflowError):
            return math.inf

    def _log(self, s: float) -> float:
        """Return ln M(s) and the share, rounded up."""
        value = _share(s) + sum(k * part.log_moment(s) for part, k in self._moments)
        for term, k in self._terms:
            try:
                log, error = term.log_moments(s, np.zeros(1), 1e-16 / k)
            except TooCostly:
                return math.inf
            value += k * (float(log[0].real) + float(error[0]))
        return value + self._slack + s * self._moved + 1e-13 * (1.0 + abs(value))

    def _tried(self, ask: Callable[[float], float]) -> list[float]:
        """Exponents near the best: the orders that are known, and the best of a search."""
        known = [order - 1.0 for part, _ in self._moments for order in part.orders if order > 1.0]
        grid = np.exp(np.linspace(math.log(1e-6), math.log(1e6), 97))
        values = [ask(s) for s in grid.tolist()]
        best = int(np.argmin(values))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])
        for _ in range(60):
            a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, b) if ask(a) < ask(b) else (a, high)
        return [0.5 * (low + high), *sorted(known, key=ask)[:4]]


def _share(s: float) -> float:
    return s * math.log(s) - (1.0 + s) * math.log1p(s)
