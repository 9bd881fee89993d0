"""The contour integral of losses on several lattices: blurred a little, and told how much.

Moments of losses on lattices do not fall with the angle, but they are near their largest value
only near multiples of 2 pi/h, h the step, and different lattices meet at few angles. A release of
Gaussian noise with a tiny mu is composed with all others, so that angles end. That raises delta by
E D(t - L), and with heat flowing for a time mu^2

    0 <= D(x) e^(-x/2) = 1/2 * integral over z in [0, mu^2] of e^(-z/8) phi_z(x) dz
      <= mu^2 phi_(mu^2)(x),      phi_z the normal density of variance z,

so that from below 1/(s (s+1)) - mu^2 e^(mu^2/8) takes the place of 1/(s (s+1)) in the integral. The
proof is in docs/theory/contour.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fastpriv._core.rounding import ULP, raised
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.contour import Line, Terms, aliases_from, chernoff, cumulant
from fastpriv.accounting.profile.nodes import Complexes, TooCostly
from fastpriv.accounting.profile.normal import Normal
from fastpriv.accounting.profile.terms import Finite, Ordered

#: Share of delta that the blur adds, about; logarithms of what aliases and angles may be off.
_BLUR, _SMALL, _NOTHING = 4e-11, -32.0, 46.0
#: Angles that are looked at together, and angles times losses.
_SOME, _WORK = 1 << 6, 1 << 20
#: Most multiples of a period that are looked at, most angles in all, and points of a period.
_MULTIPLES, _ANGLES, _POINTS = 1 << 20, 1 << 15, 1 << 12
#: Points of a finer look at small angles, and how often.
_NEAR, _FINER = 64, 2


@dataclass(frozen=True)
class Blurred:
    """Two integrals: one from below, one from above."""

    below: Line
    above: Line

    def bounds(self, t: float) -> tuple[float, float]:
        """Return a lower and an upper bound on delta(t), not counting infinite losses."""
        return self.below.bounds(t)[0], self.above.bounds(t)[1]


def blurred_line(terms: Terms, t: float, c: float) -> Blurred:
    """Prepare integrals for questions near t, whose saddle point is near c."""
    kinds = [(term, k) for term, k in terms if isinstance(term, Finite) and term.given.step > 0.0]
    if len(kinds) < len(terms):
        raise TooCostly
    mu = math.sqrt(_BLUR / (c * (1.0 + c)))
    whole: Terms = [*kinds, (Ordered(Normal(1.0 / mu)), 1)]
    K, _, curve = cumulant(whole, c)
    wide = curve + 1.0 / c**2 + 1.0 / (1.0 + c) ** 2
    log_delta = K - c * t - math.log(c * (1.0 + c)) - 0.5 * math.log(2.0 * math.pi * wide)
    above, below, tau = aliases_from(whole, t, c, min(log_delta, 0.0) + _SMALL)
    # Beyond the last angle, and wherever all are below e^-46, the sum of tau/v^2 is bounded.
    last = math.sqrt(2.0 * _NOTHING) / mu
    angles = _angles(kinds, c, tau, last)
    logs, errors = np.zeros(len(angles), dtype=np.complex128), np.zeros(len(angles))
    for term, k in whole:
        points = len(term.given.losses) if isinstance(term, Finite) else 1
        some = max(1, min(_SOME, _WORK // points))
        for start in range(0, len(angles), some):
            part = slice(start, start + some)
            value, error = term.log_moments(c, angles[part], 1e-20)
            logs[part] += k * value
            errors[part] += k * (error + 4.0 * ULP * np.abs(value))
    log_top, top_error = float(logs[0].real), float(errors[0])
    s = c + 1j * angles
    with np.errstate(under="ignore"):
        values = np.exp(logs - log_top) / (s * (1.0 + s))
    values[0] *= 0.5
    cut = 2.0 * math.exp(-_NOTHING) * (1.0 + tau / c) / (math.pi * tau) * (1.0 + mu * mu * last)
    relative = np.expm1(np.minimum(errors, 700.0))
    aliases = tuple((at, chernoff(whole, at, 1e-14)) for at in (above, below))
    # The factor of the Gaussian noise belongs to both, so that only the last one differs.
    less = 1.0 - raised(mu * mu * math.exp(mu * mu / 8.0), 8.0) * s * (1.0 + s)
    lines = []
    for factor in (less, np.ones(len(s))):
        each: Complexes = np.asarray(values * factor, dtype=np.complex128)
        lines.append(
            Line(c, tau, log_top, top_error, each, angles, np.abs(each), relative, cut, aliases)
        )
    return Blurred(lines[0], lines[1])


def _angles(kinds: list[tuple[Finite, int]], c: float, tau: float, last: float) -> Floats:
    """Angles 0, tau, ... up to the last at which moments may be more than e^-46 of the largest."""
    periods = sorted((_period(term, k, c) for term, k in kinds), key=lambda one: one[1] / one[0])
    period, width = periods[0]
    if not 2.0 * width < period or last / period > _MULTIPLES:
        raise TooCostly
    middles = period * np.arange(math.ceil(last / period) + 1, dtype=np.float64)
    for other, reach in periods[1:]:
        turns = middles / other
        # Multiples are good to a few units of the largest angle.
        off = np.abs(turns - np.rint(turns)) * other - 8.0 * ULP * last
        middles = middles[off <= width + reach]
    count = 2.0 * width / tau + 3.0
    if len(middles) * count > _ANGLES:
        raise TooCostly
    first = np.floor((middles - width) / tau)
    at = np.unique(np.add.outer(first, np.arange(math.ceil(count) + 1)).reshape(-1))
    return np.asarray(tau * at[at >= 0.0])


def _period(term: Finite, k: int, c: float) -> tuple[float, float]:
    """Period of |M| in the angle, and the distance from its multiples beyond which it is tiny.

    Tiny is below e^-46 for k releases. |M| is evaluated at points, between which it changes no
    faster than the mean distance of the losses from their mean. Near 0 it is bounded by moments.
    """
    measure = term.given
    places = measure.multiples - measure.multiples[0]
    common = math.gcd(*places.tolist())
    unit = measure.step * common
    period = 2.0 * math.pi / unit
    logs = (measure.logs + c * measure.losses).astype(np.float64)
    law, slope = np.exp(logs - np.logaddexp.reduce(logs)), term.slope(c)
    folded = np.bincount(places // common % (2 * _POINTS), law)
    sizes = np.abs(np.fft.rfft(folded, 2 * _POINTS))
    reach = _tiny_from(sizes, 0.5 * period / _POINTS, slope, k)
    seen = law > 1e-20  # others are together less than what is added for rounding
    losses, law = unit * (places[seen] // common), law[seen]
    for _ in range(_FINER):
        at = reach / _NEAR * np.arange(_NEAR + 1)
        sizes = np.array([abs(np.exp(1j * v * losses) @ law) for v in at])
        reach = min(_tiny_from(sizes, float(at[1]), slope, k), reach)
    return period, _by_moments(losses, law, k, reach)


def _tiny_from(sizes: Floats, step: float, slope: float, k: int) -> float:
    """Multiple of a step from which on |M|, known at multiples, is tiny."""
    most = np.maximum(sizes[1:], sizes[:-1]) + 1e-12 + 0.5 * step * slope
    tiny = k * np.log(np.minimum(np.maximum.accumulate(most[::-1])[::-1], 1.0)) < -_NOTHING
    return step * (int(np.argmax(tiny)) if tiny.any() else len(most))


def _by_moments(losses: Floats, law: Floats, k: int, reach: float) -> float:
    """Angle from which up to ``reach`` |M| is tiny too, or ``reach``.

    With an independent copy L' of the loss, |M(v)|^2 / M(0)^2 = E cos v(L - L') is at most
    1 - v^2 V + v^4 W / 24, V and W the second and fourth moments of L - L' (V halved). That falls
    up to v^2 = 12 V / W.
    """
    away = losses - float(losses @ law)
    second, fourth = float(away**2 @ law), float(away**4 @ law)
    V, W = second * (1.0 - 1e-9), (2.0 * fourth + 6.0 * second**2) * (1.0 + 1e-9)
    wanted = -math.expm1(-2.0 * _NOTHING / k) * (1.0 + 1e-6) + 1e-13
    if W == 0.0:  # losses as small as that do not turn
        return reach
    if not 0.0 < wanted < 6.0 * V * (V / W) or reach**2 * W > 12.0 * V:
        return reach
    # The smaller root of 1 - wanted = 1 - x V + x^2 W / 24.
    root = 2.0 * wanted / (V + math.sqrt(V * V - wanted * W / 6.0))
    return min(math.sqrt(root) * (1.0 + 1e-9), reach)
