"""A profile in other words: errors of tests, Bayes risk, Renyi divergences, zCDP and GDP."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, lowered, raised, sum_down, sum_up
from fastpriv._core.search import bisect, golden
from fastpriv.accounting.profile.cases import Cases, Delta
from fastpriv.accounting.profile.composition import Bounds
from fastpriv.accounting.profile.discrete import Step
from fastpriv.accounting.profile.steps.gaussian import GaussianNoise
from fastpriv.results import Bracket

# A whole curve in one number: the smallest rho of zCDP and the smallest mu of Gaussian privacy.
#
# Normal noise contributes a known amount, which adds up: mu^2 and rho = mu^2/2. A mixture of
# normal laws is no worse than its most distant parts. The other releases are bounded on intervals
# of orders or levels, of which the worst is halved until the bracket is narrow; amounts of both
# add up.


#: Smallest exponent s at which ln M(s)/s is computed; below it hardly changes.
_LEAST = 1e-6
#: Ratio of the first exponents, between which the worst interval is then halved.
_RATIO = 4.0
#: Most halvings: each costs one moment or one delta.
_HALVINGS = 240
#: Relative width of the bracket that is aimed at.
_WIDTH = 1e-9


def normal_square(
    parts: Mapping[Step, int], zcdp: bool = False
) -> tuple[dict[Step, int], float, float]:
    """Return other steps, and mu^2 of the Gaussian ones: in the limit of orders, and at most."""
    rest: dict[Step, int] = {}
    low, high = [], []
    for part, k in parts.items():
        square = part.gaussian_square(zcdp)
        if square is None:
            rest[part] = k
        else:
            low.append(k * square[0])
            high.append(k * square[1])
    return rest, lowered(math.fsum(low), 16.0), raised(math.fsum(high), 16.0)


def declared_rate(parts: Mapping[Step, int]) -> tuple[dict[Step, int], float]:
    """Return other steps, and an upper bound on rho of those that are declared in zCDP."""
    rates = {part: part.declared_rho() for part in parts}
    rest = {part: k for part, k in parts.items() if rates[part] is None}
    total = math.fsum(parts[part] * rho for part, rho in rates.items() if rho is not None)
    return rest, raised(total, 8.0)


def largest_rate(log_moment: Callable[[float], Bounds], top: float) -> Bounds:
    """Bounds on the largest ln M(s) / (s (s + 1)) over s > 0, for losses of at most ``top``.

    ln M is convex and 0 at 0, so ln M(s)/s rises to at most ``top``, and between two exponents the
    chord is a bound: A + B s, with A <= 0, over s (s + 1) has one largest value.
    """
    seen: dict[float, Bounds] = {}

    def at(s: float) -> float:
        low, high = log_moment(s)
        seen[s] = low, min(high, raised(s * top, 4.0))
        return lowered(seen[s][0] / (s * (s + 1.0)), 8.0)

    s = _LEAST
    best = max(at(s), 0.0)
    low, ends = s, []
    while top / (1.0 + s) > best and s < 1e15:
        s *= _RATIO
        best = max(best, at(s))
        ends.append((low, s))
        low = s
    # Below the first exponent, and beyond the last one.
    rest = max(seen[_LEAST][1] / _LEAST, top / (1.0 + s), 0.0)

    def above(a: float, b: float) -> float:
        return _chord(a, seen[a][1], b, seen[b][1])

    best, high = _halved(ends, above, at, max(best, 0.0), rest)
    return best, raised(max(high, rest), 16.0)


def _chord(a: float, value: float, b: float, other: float) -> float:
    """Upper bound on (A + B s) / (s (s + 1)) on [a, b], for the line through two points."""
    slope = (other - value) / (b - a)
    start = value - slope * a
    result = max(value / (a * (a + 1.0)), other / (b * (b + 1.0)))
    if start < 0.0 < slope:
        root = math.sqrt((slope - start) / -start)
        s = min(max(1.0 / (root - 1.0), a), b) if root > 1.0 else b
        result = max(result, (start + slope * s) / (s * (s + 1.0)))
    # The start is a difference; it is off by some units of both ends.
    return result + 16.0 * ULP * (abs(value) + abs(slope) * b) / (a * (a + 1.0))


def largest_mu(delta: Callable[[float], Bounds], top: float) -> Bounds:
    """Bounds on the smallest mu whose Gaussian curve is above delta(t) for all t in [0, top].

    delta falls, so on [a, b] the mu whose curve is delta(a) at b is enough.
    """
    seen: dict[float, Bounds] = {}

    def at(t: float) -> float:
        seen[t] = delta(t)
        return gaussian_mu(t, seen[t][0], up=False)

    def above(a: float, b: float) -> float:
        return gaussian_mu(b, seen[a][1], up=True)

    best = max(at(0.0), at(top))
    if not top > 0.0:
        return best, gaussian_mu(0.0, seen[0.0][1], up=True)
    return _halved([(0.0, top)], above, at, best, 0.0)


def _halved(
    ends: list[tuple[float, float]],
    above: Callable[[float, float], float],
    at: Callable[[float], float],
    best: float,
    enough: float,
) -> Bounds:
    """Halve the worst interval until its bound is near the best value, or below another bound."""
    heap = [(-above(a, b), a, b) for a, b in ends]
    heapq.heapify(heap)
    for _ in range(_HALVINGS):
        if not heap or -heap[0][0] <= max(best * (1.0 + _WIDTH), enough):
            break
        _, a, b = heap[0]
        if b - a <= _WIDTH * b:
            break
        heapq.heappop(heap)
        middle = 0.5 * (a + b)
        best = max(best, at(middle))
        for c, d in ((a, middle), (middle, b)):
            heapq.heappush(heap, (-above(c, d), c, d))
    return best, max(best, -heap[0][0] if heap else best)


def gaussian_mu(t: float, delta: float, up: bool) -> float:
    """Return the mu at which the Gaussian curve has delta at t, rounded up or down."""
    if delta <= 0.0:
        return 0.0
    if delta >= 1.0:
        return math.inf
    sign = -1.0 if up else 1.0

    def enough(mu: float) -> bool:
        value, error = _gaussian_delta(t, mu)
        return value + sign * error >= delta

    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2.0 * high
        if high > 1e8:
            return math.inf if up else low
    short = lambda mu: not enough(mu)  # noqa: E731
    low, high = bisect(short, low, high, relative=1e-12, absolute=1e-150)
    return high if up else low


def _gaussian_delta(t: float, mu: float) -> Bounds:
    """Phi(mu/2 - t/mu) - e^t Phi(-mu/2 - t/mu), and a bound on its error."""
    x, y = t / mu - 0.5 * mu, t / mu + 0.5 * mu
    first = 0.5 * math.erfc(x / math.sqrt(2.0))
    second = 0.5 * math.erfc(y / math.sqrt(2.0))
    # Phi(-y) is below e^(-y^2/2), and e^t times that is e^(-x^2/2): what underflows is tiny.
    second = math.exp(min(t, 700.0)) * second if second > 1e-300 and t < 700.0 else 0.0
    lost = 0.0 if second else math.exp(-0.5 * min(x * x, 1400.0)) if t > 0.0 else 1e-300
    return first - second, (first + second) * (4.0 + x * x + y * y + t) * 8.0 * ULP + lost


# Errors of tests between two neighbours, in one order and in the other.
#
# The curve of a pair of laws P, Q in one order, d(t) = sup P(A) - e^t Q(A), t >= 0, says what
# tests with few false alarms reach. For the others it takes the curve d' of Q, P, since d(-t) = 1
# - e^-t + e^-t d'(t). The worse of both curves belongs to no pair in particular, so that it
# bounds errors from below only.


#: Levels that are looked at when the best one is sought.
_LEVELS = 36
#: Level beyond which mirrored curves are not looked at.
_FAR = 40.0
#: Steps towards the level at which two bounds meet.
_STEPS = 20
#: Most pairs of which the errors are computed.
_PAIRS = 8


@dataclass(frozen=True)
class Distinguishers:
    """What is known of the tests between neighbours.

    ``worst`` is the larger delta of all pairs and orders. ``pairs`` are laws that neighbours have,
    each as its curve and that of the other order. ``all`` says whether there are no others.
    """

    worst: Delta
    pairs: list[tuple[Delta, Delta]]
    all: bool

    @property
    def curves(self) -> list[tuple[Delta, Delta]]:
        """Curves that bound the tests of all pairs: of each pair, or the worst in both orders."""
        known = self.all and 0 < len(self.pairs) <= _PAIRS
        return self.pairs if known else [(self.worst, self.worst)]

    def least_error(self, alpha: float) -> Bracket:
        """Smallest type II error over pairs and orders, 0 < alpha <= 1."""
        whole = self.all and len(self.pairs) <= _PAIRS
        low = sum_down([1.0, -alpha]) if whole else _of_pair(self.worst, self.worst, alpha).lower
        high = sum_up([1.0, -alpha]) if self.pairs else self._reached(alpha)
        ranked = sorted((_at_least(*pair, alpha), k) for k, pair in enumerate(self.pairs))
        for least, k in ranked[:_PAIRS]:
            if least > high:
                break
            error = _of_pair(*self.pairs[k], alpha)
            low, high = min(low, error.lower), min(high, error.upper)
        return Bracket(min(low, high), high)

    def _reached(self, alpha: float) -> float:
        """What some test of some pair reaches, whichever has the delta of a level t.

        A set A with P(A) = d + e^t Q(A) has Q(A) <= (1 - d) e^-t. Between it and no test, or
        it and a test that always alarms, are tests with the false alarms asked for.
        """
        low, high, best = 0.0, -math.log(alpha), alpha
        for _ in range(_STEPS):
            t = 0.5 * (low + high)
            d = self.worst(t).lower
            rare = lowered(math.exp(t) * alpha, 16.0) / max(1.0 - d, alpha)
            often = lowered(d + (1.0 - d) * alpha, 8.0)
            best = max(best, min(rare, often, 1.0))
            low, high = (t, high) if rare < often else (low, t)
        return raised(1.0 - best, 4.0)


def _at_least(first: Delta, second: Delta, alpha: float) -> float:
    """Lower bound on the smallest type II error of a pair, from a few levels."""
    top = -math.log(alpha)
    few = [_line(first(t), t, alpha)[0] for t in (0.0, 0.25 * top, 0.5 * top)]
    return max(*few, _mirrored(second(0.5), 0.5, alpha)[0], 0.0)


def _of_pair(first: Delta, second: Delta, alpha: float) -> Bracket:
    """T(alpha) of one pair in one order; both of what it is the largest are concave."""
    one = _largest(lambda t: _line(first(t), t, alpha), math.exp, -math.log(alpha))
    other = _largest(lambda t: _mirrored(second(t), t, alpha), lambda t: math.exp(-t), _FAR)
    # Beyond the last level the second is at most e^-t.
    low, high = max(one[0], other[0], 0.0), max(one[1], other[1], math.exp(-_FAR))
    return Bracket(low, min(high, sum_up([1.0, -alpha])))


def _line(delta: Bracket, t: float, alpha: float) -> tuple[float, float]:
    """1 - delta(t) - e^t alpha, from below and above."""
    cost = math.exp(t) * alpha if t < 700.0 else math.inf
    return (
        sum_down([1.0, -delta.upper, -raised(cost, 12.0)]),
        sum_up([1.0, -delta.lower, -lowered(cost, 12.0)]),
    )


def _mirrored(delta: Bracket, t: float, alpha: float) -> tuple[float, float]:
    """e^-t (1 - delta(t) - alpha), from below and above; near alpha = 1 the sum cancels."""
    scale = math.exp(-t)
    low, high = sum_down([1.0, -delta.upper, -alpha]), sum_up([1.0, -delta.lower, -alpha])
    return lowered(scale * low, 12.0), raised(scale * high, 12.0)


def _largest(
    value: Callable[[float], tuple[float, float]], scale: Callable[[float], float], top: float
) -> tuple[float, float]:
    """Bounds on the largest value over [0, top] of a function that is concave in scale(t).

    By golden section; secants bound what is between the points.
    """
    seen = {t: value(t) for t in (0.0, top)}

    def negative(t: float) -> float:
        seen[t] = value(t)
        return -seen[t][0]

    golden(negative, 0.0, top, _LEVELS)
    ordered = sorted(seen)
    best = max(range(len(ordered)), key=lambda i: seen[ordered[i]][0])
    points = [(scale(t), *seen[t]) for t in ordered]
    return points[best][1], _above(points)


def _above(points: list[tuple[float, float, float]]) -> float:
    """Upper bound on the largest value of a concave function between points (x, low, high).

    Between two neighbouring points it is below the secant of the two points before them, and below
    that of the two points after them, both drawn on.
    """
    bound = max(high for _, _, high in points)
    for i in range(len(points) - 1):
        result = []
        for near, far, end in ((i, i - 1, i + 1), (i + 1, i + 2, i)):
            if 0 <= far < len(points):
                (x, _, high), (behind, low, _), ahead = points[near], points[far], points[end][0]
                doubt = 20.0 * ULP * max(x, behind, ahead)  # exponentials, and their differences
                run, step = abs(x - behind) - doubt, abs(ahead - x) + doubt
                if run > 0.0:
                    rise = raised(max(high - low, 0.0) * step / run, 8.0)
                    result.append(sum_up([high, rise]))
        bound = max(bound, min(result, default=math.inf))
    return bound


# The curve of a profile in other words: errors of tests, Renyi divergences, a Bayesian's error.


#: Smallest positive probability of a first error at which the curve is computed.
_RARE = 1e-300


class Questions:
    """Curves that follow from delta(epsilon)."""

    #: Kinds of steps, and how many of each.
    parts: dict[Step, int]

    @cached_property
    def cases(self) -> Cases:
        """The compositions that bound the curve, for other modules."""
        return Cases(self.parts)

    @cached_property
    def distinguishers(self) -> Distinguishers:
        """What is known of tests between neighbours, for other modules."""
        pairs, every = self.cases.both_orders()
        return Distinguishers(self.cases.delta, pairs, every)

    def tradeoff(self, alpha: float) -> Bracket:
        """Smallest type II error of a test with type I error alpha, between neighbours (f-DP).

        Of one pair of neighbours in one order, with curve d, and d' in the other order,
        T(alpha) = sup over t >= 0 of max(0, 1 - d(t) - e^t alpha, e^-t (1 - d'(t) - alpha)),
        Dong, Roth and Su (2022). The least of these over pairs and orders is meant. It may be above
        what follows from delta(t), which is that of the worse order at each t: channels of several
        pairs of neighbours that are composed have a bracket between the two.

        Parameters
        ----------
        alpha : float
            Probability in [0, 1] of taking the first database for the second.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(1.0).tradeoff(0.05)
        >>> round(found.lower, 6), round(found.upper, 6)  # Phi(Phi^-1(0.95) - 1)
        (0.740489, 0.740489)
        """
        a = check.real(alpha, "alpha", least=0.0, most=1.0)
        if a == 0.0:
            missed = self.cases.delta(sys.float_info.max)  # what gives a database away
            return Bracket(sum_down([1.0, -missed.upper]), sum_up([1.0, -missed.lower]))
        if a < _RARE:  # e^t a would overflow; the curve falls
            return Bracket(self.tradeoff(_RARE).lower, self.tradeoff(0.0).upper)
        return self.distinguishers.least_error(a)

    def tpr(self, fpr: float) -> Bracket:
        """Largest true-positive rate of a test at a false-positive rate: 1 - T(fpr).

        Examples
        --------
        >>> import fastpriv as fp
        >>> round(fp.accounting.PrivacyProfile.gaussian(1.0).tpr(0.05).upper, 6)
        0.259511
        """
        result = self.tradeoff(fpr)
        return Bracket(
            math.nextafter(1.0 - result.upper, 0.0),
            min(math.nextafter(1.0 - result.lower, 2.0), 1.0),
        )

    def bayes_risk(self, prior: float = 0.5) -> Bracket:
        """Smallest error of a guess between two neighbours, of which one has a prior probability.

        min(p, 1-p) (1 - delta(t)) with t = |ln p/(1-p)|.

        Examples
        --------
        >>> import fastpriv as fp
        >>> round(fp.accounting.PrivacyProfile.gaussian(1.0).bayes_risk(0.5).lower, 6)  # Phi(-1/2)
        0.308538
        """
        p = check.real(prior, "prior", least=0.0, most=1.0)
        less = min(p, 1.0 - p)
        if less == 0.0:
            return Bracket(0.0, 0.0)
        t = abs(math.log(p) - math.log1p(-p))
        slack = 4.0 * ULP * (1.0 + t)
        high, low = self.cases.delta(max(t - slack, 0.0)).upper, self.cases.delta(t + slack).lower
        return Bracket(lowered(less * (1.0 - high), 4.0), raised(less * (1.0 - low), 4.0))

    def renyi_level(self, order: float) -> Bracket:
        """Renyi divergence of an order above 1 between the laws of neighbours, composed.

        ln M(order - 1) / (order - 1), the larger of both orders of the neighbours. Infinite where
        some output gives a database away.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(3).renyi_level(5.0)
        >>> round(found.lower, 9), round(found.upper, 9)  # 3 * 5 / 8
        (1.875, 1.875)
        """
        alpha = check.real(order, "order", least=1.0 + 1e-9)
        low, high = self.cases.log_moment(alpha - 1.0)
        s = alpha - 1.0
        return Bracket(max(lowered(low / s, 8.0), 0.0), max(raised(high / s, 8.0), 0.0))

    def zcdp_level(self) -> Bracket:
        """Smallest rho for which the releases are rho-zCDP (Bun and Steinke 2016).

        rho is the largest of D_alpha / alpha over all orders alpha > 1. Gaussian noise, also on
        samples, and discrete Gaussian noise are known in closed form; other releases must have
        bounded losses, or the upper bound is infinite. Up to some 300 evaluations of moments.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(3).zcdp_level()
        >>> round(found.lower, 9), round(found.upper, 9)  # 3 / (2 * 2^2)
        (0.375, 0.375)
        """
        others, declared = declared_rate(self.parts)
        parts, least, most = normal_square(others, zcdp=True)
        most = most + 2.0 * declared
        if not parts:
            return Bracket(0.5 * least, raised(0.5 * most, 4.0))
        rest = Cases(parts)
        top = rest.epsilon(0.0)
        if top.lower == math.inf:
            return Bracket(math.inf, math.inf)
        if top.upper == math.inf:
            return Bracket(0.5 * least, math.inf)
        low, high = largest_rate(rest.log_moment, top.upper)
        # The rate of normal noise is the same at all orders; that of samples is a limit.
        constant = math.fsum(
            k * p.square for p, k in others.items() if isinstance(p, GaussianNoise)
        )
        low = lowered(low + 0.5 * constant, 16.0)
        return Bracket(max(low, 0.5 * least), raised(high + 0.5 * most, 4.0))

    def gdp_level(self) -> Bracket:
        """Smallest mu for which the releases are mu-GDP: no worse than N(0, 1) against N(mu, 1).

        The least mu whose curve is above delta(epsilon) at every epsilon, Dong, Roth and Su (2022).
        Gaussian noise is known in closed form, also on samples: far out in the tail those that
        take part decide, so that sampling does not lower mu. Other releases must have bounded
        losses, or the upper bound is infinite. Up to some 250 evaluations of delta, to about three
        digits.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(4).gdp_level()
        >>> round(found.lower, 9), round(found.upper, 9)
        (1.0, 1.0)
        """
        parts, least, most = normal_square(self.parts)
        # ln delta(t) is at least -(t + C)^2 / (2 least) - C for some C, below which no curve of a
        # smaller mu stays for large t.
        low = lowered(math.sqrt(least), 4.0)
        if not parts:
            return Bracket(low, raised(math.sqrt(most), 4.0))
        low = max(low, gaussian_mu(0.0, self.cases.delta(0.0).lower, up=False))
        rest = Cases(parts)
        top = rest.epsilon(0.0)
        if top.upper == math.inf:
            return Bracket(math.inf if top.lower == math.inf else low, math.inf)

        def bounds(t: float) -> tuple[float, float]:
            result = rest.delta(t)
            return result.lower, result.upper

        mu = largest_mu(bounds, top.upper)
        return Bracket(max(low, mu[0]), raised(math.sqrt(mu[1] ** 2 + most), 8.0))
