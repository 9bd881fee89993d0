"""Errors of tests between two neighbours, in one order and in the other.

The curve of a pair of laws P, Q in one order, d(t) = sup P(A) - e^t Q(A), t >= 0, says what tests
with few false alarms reach. For the others it takes the curve d' of Q, P, since
d(-t) = 1 - e^-t + e^-t d'(t). The worse of both curves belongs to no pair in particular, so that it
bounds errors from below only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fastpriv._core.rounding import ULP, lowered, raised, sum_down, sum_up
from fastpriv.results import Bracket

#: Levels that are looked at when the best one is sought.
_LEVELS = 36
#: Level beyond which mirrored curves are not looked at.
_FAR = 40.0
#: Steps towards the level at which two bounds meet.
_STEPS = 20
#: Most pairs of which the errors are computed.
_PAIRS = 8
_GOLD = 0.5 * (3.0 - math.sqrt(5.0))

#: Delta at a level.
Delta = Callable[[float], Bracket]


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
        """Least type II error over pairs and orders, 0 < alpha <= 1."""
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
    """Lower bound on the least type II error of a pair, from a few levels."""
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
    a, b = 0.0, top
    x, y = a + _GOLD * (b - a), b - _GOLD * (b - a)
    seen[x], seen[y] = value(x), value(y)
    for _ in range(_LEVELS):
        if seen[x][0] >= seen[y][0]:
            b, y = y, x
            x = a + _GOLD * (b - a)
            seen[x] = value(x)
        else:
            a, x = x, y
            y = b - _GOLD * (b - a)
            seen[y] = value(y)
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
