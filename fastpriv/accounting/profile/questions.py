"""Quantities derived from a profile: test errors, Bayes risk, Renyi divergence, zCDP and GDP."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fastpriv._core import validation as check
from fastpriv._core.rounding import lowered, raised, roundoff, sum_down, sum_up
from fastpriv._core.search import bisect, golden
from fastpriv.accounting.profile.cases import Cases, Delta
from fastpriv.accounting.profile.composition import Bounds
from fastpriv.accounting.profile.discrete import Step
from fastpriv.accounting.profile.steps.gaussian import GaussianNoise
from fastpriv.results import Bracket

# The smallest rho of zCDP and the smallest mu of Gaussian differential privacy.
#
# Gaussian steps contribute mu^2 and rho = mu^2/2, which add up. A mixture of normal distributions
# is bounded by its most distant components. The other steps are bounded on intervals of orders or
# levels. The worst interval is halved until the bracket is narrow. Both contributions are added.


#: Smallest exponent s at which ln M(s)/s is computed.
_LEAST = 1e-6
#: Ratio of consecutive initial exponents; the worst interval between them is then halved.
_RATIO = 4.0
#: Maximum number of halvings; each evaluates one moment or one delta.
_HALVINGS = 240
#: Target relative width of the bracket.
_WIDTH = 1e-9


def normal_square(
    parts: Mapping[Step, int], zcdp: bool = False
) -> tuple[dict[Step, int], float, float]:
    """Return the non-Gaussian steps, and lower and upper bounds on mu^2 of the Gaussian steps.

    The lower bound is the limit for large orders.
    """
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
    """Return the other steps, and an upper bound on the total rho of steps declared in zCDP."""
    rates = {part: part.declared_rho() for part in parts}
    rest = {part: k for part, k in parts.items() if rates[part] is None}
    total = math.fsum(parts[part] * rho for part, rho in rates.items() if rho is not None)
    return rest, raised(total, 8.0)


def largest_rate(log_moment: Callable[[float], Bounds], top: float) -> Bounds:
    """Bounds on the largest ln M(s) / (s (s + 1)) over s > 0, for losses of at most ``top``."""
    # ln M is convex and 0 at 0, so ln M(s)/s increases to at most top. Between two exponents the
    # chord A + B s, A <= 0, is an upper bound, and (A + B s) / (s (s + 1)) has one maximum.
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
    # The start is a difference; its error is some units of both terms.
    return result + roundoff(16.0) * (abs(value) + abs(slope) * b) / (a * (a + 1.0))


def largest_mu(delta: Callable[[float], Bounds], top: float) -> Bounds:
    """Bounds on the smallest mu whose Gaussian curve is above delta(t) for all t in [0, top].

    delta decreases. On [a, b], the mu whose curve equals delta(a) at b is therefore sufficient.
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
    """Halve the worst interval until its bound is near ``best`` or below ``enough``."""
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
    """Return the mu whose Gaussian curve equals delta at t, rounded up or down."""
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
    """Return Phi(mu/2 - t/mu) - e^t Phi(-mu/2 - t/mu), and a bound on its error."""
    x, y = t / mu - 0.5 * mu, t / mu + 0.5 * mu
    first = 0.5 * math.erfc(x / math.sqrt(2.0))
    second = 0.5 * math.erfc(y / math.sqrt(2.0))
    # Phi(-y) < e^(-y^2/2) and e^t e^(-y^2/2) = e^(-x^2/2), which bounds an underflowing term.
    second = math.exp(min(t, 700.0)) * second if second > 1e-300 and t < 700.0 else 0.0
    lost = 0.0 if second else math.exp(-0.5 * min(x * x, 1400.0)) if t > 0.0 else 1e-300
    return first - second, roundoff((first + second) * (4.0 + x * x + y * y + t) * 8.0) + lost


# Errors of tests between two neighbours, in both orders.
#
# For a pair of distributions P, Q, the curve d(t) = sup P(A) - e^t Q(A), t >= 0, bounds tests with
# a low false-positive rate. The other tests need the curve d' of Q, P, because
# d(-t) = 1 - e^-t + e^-t d'(t). The larger of both curves belongs to no particular pair, so it
# bounds errors from below only.


#: Number of levels evaluated in the search for the best level.
_LEVELS = 36
#: Largest level at which mirrored curves are evaluated.
_FAR = 40.0
#: Number of bisections towards the level at which two bounds meet.
_STEPS = 20
#: Maximum number of pairs whose errors are computed.
_PAIRS = 8


@dataclass(frozen=True)
class Distinguishers:
    """Curves that bound the tests between neighbours.

    ``worst`` is the largest delta over pairs and orders. ``pairs`` holds the curves of known pairs
    of neighbours, each in one order and in the other. ``all`` is whether there are no other pairs.
    """

    worst: Delta
    pairs: list[tuple[Delta, Delta]]
    all: bool

    @property
    def curves(self) -> list[tuple[Delta, Delta]]:
        """Curves that bound all tests: one entry per pair, or ``worst`` for both orders."""
        known = self.all and 0 < len(self.pairs) <= _PAIRS
        return self.pairs if known else [(self.worst, self.worst)]

    def least_error(self, alpha: float) -> Bracket:
        """Smallest type II error at type I error alpha, over pairs and orders; 0 < alpha <= 1."""
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
        """Upper bound on the smallest type II error, attained by some test of some pair."""
        # A set A with P(A) = d + e^t Q(A) has Q(A) <= (1 - d) e^-t. Mixing A with the test that
        # never rejects, or with the test that always rejects, gives type I error alpha.
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
    """Lower bound on the smallest type II error of a pair, from four evaluations."""
    top = -math.log(alpha)
    few = [_line(first(t), t, alpha)[0] for t in (0.0, 0.25 * top, 0.5 * top)]
    return max(*few, _mirrored(second(0.5), 0.5, alpha)[0], 0.0)


def _of_pair(first: Delta, second: Delta, alpha: float) -> Bracket:
    """Bracket of T(alpha) for one pair in one order: the larger of two concave maxima."""
    one = _largest(lambda t: _line(first(t), t, alpha), math.exp, -math.log(alpha))
    other = _largest(lambda t: _mirrored(second(t), t, alpha), lambda t: math.exp(-t), _FAR)
    # Beyond the last level, the second function is at most e^-t.
    low, high = max(one[0], other[0], 0.0), max(one[1], other[1], math.exp(-_FAR))
    return Bracket(low, min(high, sum_up([1.0, -alpha])))


def _line(delta: Bracket, t: float, alpha: float) -> tuple[float, float]:
    """Lower and upper bounds on 1 - delta(t) - e^t alpha."""
    cost = math.exp(t) * alpha if t < 700.0 else math.inf
    return (
        sum_down([1.0, -delta.upper, -raised(cost, 12.0)]),
        sum_up([1.0, -delta.lower, -lowered(cost, 12.0)]),
    )


def _mirrored(delta: Bracket, t: float, alpha: float) -> tuple[float, float]:
    """Lower and upper bounds on e^-t (1 - delta(t) - alpha); the sum cancels near alpha = 1."""
    scale = math.exp(-t)
    low, high = sum_down([1.0, -delta.upper, -alpha]), sum_up([1.0, -delta.lower, -alpha])
    return lowered(scale * low, 12.0), raised(scale * high, 12.0)


def _largest(
    value: Callable[[float], tuple[float, float]], scale: Callable[[float], float], top: float
) -> tuple[float, float]:
    """Bounds on the maximum over [0, top] of a function that is concave in scale(t).

    Golden section finds the lower bound. Secants bound the function between the points.
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
    """Upper bound on the maximum of a concave function, given points (x, low, high).

    Between consecutive points, the function is below two extrapolated secants: one through the
    left point and its predecessor, one through the right point and its successor.
    """
    bound = max(high for _, _, high in points)
    for i in range(len(points) - 1):
        result = []
        for near, far, end in ((i, i - 1, i + 1), (i + 1, i + 2, i)):
            if 0 <= far < len(points):
                (x, _, high), (behind, low, _), ahead = points[near], points[far], points[end][0]
                doubt = roundoff(20.0) * max(
                    x, behind, ahead
                )  # exponentials, and their differences
                run, step = abs(x - behind) - doubt, abs(ahead - x) + doubt
                if run > 0.0:
                    rise = raised(max(high - low, 0.0) * step / run, 8.0)
                    result.append(sum_up([high, rise]))
        bound = max(bound, min(result, default=math.inf))
    return bound


# Quantities derived from the curve of a profile.


#: Smallest positive type I error at which the trade-off curve is computed.
_RARE = 1e-300


class Questions:
    """Quantities that follow from delta(epsilon)."""

    #: Number of steps of each kind.
    parts: dict[Step, int]

    @cached_property
    def cases(self) -> Cases:
        """The compositions that bound the curve, for other modules."""
        return Cases(self.parts)

    @cached_property
    def distinguishers(self) -> Distinguishers:
        """Curves that bound tests between neighbours, for other modules."""
        pairs, every = self.cases.both_orders()
        return Distinguishers(self.cases.delta, pairs, every)

    def tradeoff(self, alpha: float) -> Bracket:
        """Smallest type II error of a test between neighbours with type I error alpha (f-DP).

        For one pair of neighbours with curve d in one order and d' in the other,
        T(alpha) = sup over t >= 0 of max(0, 1 - d(t) - e^t alpha, e^-t (1 - d'(t) - alpha))
        (Dong, Roth and Su 2022). The result is the minimum over pairs and orders.

        The minimum may exceed the value implied by delta(t), because delta(t) takes the worse
        order at each t. For composed channels with several pairs of neighbours, the bracket lies
        between the two values.

        Parameters
        ----------
        alpha : float
            Type I error: the probability in [0, 1] of mistaking the first database for the second.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(1.0).tradeoff(0.05)
        >>> round(found.lower, 6), round(found.upper, 6)  # Phi(Phi^-1(0.95) - 1)
        (0.740489, 0.740489)
        """
        a = check.real(alpha, "alpha", least=0.0, most=1.0)
        if a == 0.0:
            missed = self.cases.delta(sys.float_info.max)  # outputs that reveal the database
            return Bracket(sum_down([1.0, -missed.upper]), sum_up([1.0, -missed.lower]))
        if a < _RARE:  # e^t a would overflow; the curve decreases
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
        result = self.tradeoff(check.real(fpr, "fpr", least=0.0, most=1.0))
        return Bracket(
            math.nextafter(1.0 - result.upper, 0.0),
            min(math.nextafter(1.0 - result.lower, 2.0), 1.0),
        )

    def bayes_risk(self, prior: float = 0.5) -> Bracket:
        """Smallest error probability of a guess between two neighbours with a prior (p, 1 - p).

        The risk is min(p, 1-p) (1 - delta(t)) with t = |ln p/(1-p)|.

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
        slack = roundoff(4.0) * (1.0 + t)
        high, low = self.cases.delta(max(t - slack, 0.0)).upper, self.cases.delta(t + slack).lower
        return Bracket(lowered(less * (1.0 - high), 4.0), raised(less * (1.0 - low), 4.0))

    def renyi_level(self, order: float) -> Bracket:
        """Renyi divergence between neighbours after composition, at an order above 1, in nats.

        It is ln M(order - 1) / (order - 1) with M(s) = E_P e^(sL), the larger of both directions.
        It is infinite if some output reveals the database.

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
        """Smallest rho for which the steps are rho-zCDP (Bun and Steinke 2016).

        rho is the maximum of D_alpha / alpha over all orders alpha > 1. Gaussian noise, also on
        samples, and discrete Gaussian noise have a closed form. If another step has unbounded
        losses, the upper bound is infinite. The cost is at most some 300 evaluations of moments.

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
        # The rate of Gaussian noise is constant over orders; the rate of a sample is a limit.
        constant = math.fsum(
            k * p.square for p, k in others.items() if isinstance(p, GaussianNoise)
        )
        low = lowered(low + 0.5 * constant, 16.0)
        return Bracket(max(low, 0.5 * least), raised(high + 0.5 * most, 4.0))

    def gdp_level(self) -> Bracket:
        """Smallest mu for which the steps are mu-GDP: no worse than N(0, 1) against N(mu, 1).

        It is the smallest mu whose curve is above delta(epsilon) at every epsilon (Dong, Roth and
        Su 2022). Gaussian noise has a closed form, also on samples: sampling does not lower mu,
        because the sampled records dominate the tail. If another step has unbounded losses, the
        upper bound is infinite. The cost is at most some 250 evaluations of delta, and the result
        has about three digits.

        Examples
        --------
        >>> import fastpriv as fp
        >>> found = fp.accounting.PrivacyProfile.gaussian(2.0).self_compose(4).gdp_level()
        >>> round(found.lower, 9), round(found.upper, 9)
        (1.0, 1.0)
        """
        parts, least, most = normal_square(self.parts)
        # ln delta(t) >= -(t + C)^2 / (2 least) - C for some C. For large t, the curve of any
        # smaller mu falls below this.
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
