"""A whole curve in one number: the least rho of zCDP and the least mu of Gaussian privacy.

Normal noise contributes a known amount, which adds up: mu^2 and rho = mu^2/2. A mixture of normal
laws is no worse than its most distant parts. The other releases are bounded on intervals of orders
or levels, of which the worst is halved until the bracket is narrow; amounts of both add up.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv.accounting.profile.atoms import Atom
from fastpriv.accounting.profile.mixtures import Mixtures
from fastpriv.accounting.profile.normal import Normal
from fastpriv.accounting.profile.pairs import Pair
from fastpriv.accounting.profile.renyi import Moments
from fastpriv.accounting.profile.symmetrised import Symmetrised

if TYPE_CHECKING:
    from fastpriv.accounting.profile.composed import Part

#: Least exponent, ratio of the first exponents, halvings, and relative width that is aimed at.
_LEAST, _RATIO, _HALVINGS, _WIDTH = 1e-6, 4.0, 240, 1e-9

Bounds = tuple[float, float]


def normal_square(
    parts: Mapping[Part, int], zcdp: bool = False
) -> tuple[dict[Part, int], float, float]:
    """Return other releases, and mu^2 of the normal ones: in the limit of orders, and at most.

    For zCDP discrete Gaussian noise of parameter sigma at distance d is one of them: its divergence
    of any order alpha is at most alpha d^2 / (2 sigma^2), and that at every integer alpha
    (Canonne, Kamath and Steinke 2020).
    """
    rest: dict[Part, int] = {}
    low, high = [], []
    for part, k in parts.items():
        if isinstance(part, Normal):
            low.append(k * part.square)
            high.append(k * part.square)
        elif isinstance(part, Mixtures):
            _, sigma, up, down = part.key
            first, second = (max((c for c, _ in side), default=0.0) for side in (up, down))
            low.append(k * (first / sigma) ** 2)
            high.append(k * ((first + second) / sigma) ** 2)
        elif isinstance(part, Atom) and part.key[0] == "discrete-gaussian" and zcdp:
            _, sigma, distance = part.key
            low.append(k * (distance / sigma) ** 2)
            high.append(k * (distance / sigma) ** 2)
        elif isinstance(part, Symmetrised) and part.top(False) == math.inf:
            # No worse than without sampling, and as bad in the limit of orders.
            low.append(k * _farthest(part.attained_pair) ** 2)
            high.append(k * max(law.width for law in part.laws) ** 2)
        else:
            rest[part] = k
    return rest, lowered(math.fsum(low), 16.0), raised(math.fsum(high), 16.0)


def _farthest(pair: Pair | None) -> float:
    """How far apart the most distant parts of a mixture of normal laws and its noise are."""
    return pair.a if isinstance(pair, Mixtures) else 0.0


def declared_rate(parts: Mapping[Part, int]) -> tuple[dict[Part, int], float]:
    """Return other releases, and an upper bound on rho of those that are declared in zCDP."""
    rest = dict(parts)
    rates = []
    for part in parts:
        if isinstance(part, Moments) and not part.orders:
            rates.append(rest.pop(part) * (part.rho + part.xi))
    return rest, raised(math.fsum(rates), 8.0)


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
    """Bounds on the least mu whose Gaussian curve is above delta(t) for all t in [0, top].

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
    while high - low > 1e-12 * high and high > 1e-150:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if enough(middle) else (middle, high)
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
