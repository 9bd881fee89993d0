"""delta(t) of a composition by a contour integral with bounds on all errors."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP, raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.composition import (
    Composition,
    Losses,
    Prepared,
    Terms,
    chernoff,
    cumulant,
    share,
)
from fastpriv.accounting.profile.losses import (
    Complexes,
    Directed,
    Discrete,
    NoBound,
    OutOfRange,
    TooMuchWork,
)
from fastpriv.accounting.profile.steps.gaussian import GaussianNoise

# delta(t) of composed steps by a contour integral with bounds on all errors.
#
# Let M(s) be the product of the moments of all steps. On a line Re s = c > 0,
#
#     delta(t) = 1/(2 pi i) * integral of M(s) e^(-st) / (s (s + 1)) ds.
#
# The trapezoidal rule with spacing tau is, by Poisson summation, the sum over all integers m of
# e^(cmW) delta(t + mW), W = 2 pi/tau. Chernoff's bound limits the terms with m != 0. The truncated
# part beyond an angle is bounded by |M|. |M| is evaluated on a coarse grid, and between grid points
# |M| of each step changes no faster than the mean absolute deviation of its losses. Beyond the
# grid, integration by parts is used. The proofs are in docs/theory/contour.md.


#: Lines that are tried, as shares of the saddle point, with the logarithm of the share of delta
#: that aliases, and angles left out, may have, and the most angles: the first that fits.
_TRIED = ((1.0, -38.0, 1 << 12), (1.0, -32.0, 1 << 13), (0.7, -32.0, 1 << 13))
_CUT = ((1.0, -38.0, 1 << 13), (1.0, -30.0, 1 << 16))
_DENSE = ((1.0, -32.0, 1 << 17), (0.7, -32.0, 1 << 17), (1.0, -27.0, 1 << 18))
#: Number of angles up to which a cheap bound on the decay of moments is good enough.
_FEW = 1 << 10
#: Number of angles of the coarse grid on which the decay of moments is bounded.
_COARSE = 1 << 8
#: Number of these angles evaluated in one batch.
_BATCH = 1 << 5
#: Negative logarithm of a bound on moments at all larger angles that no contour needs.
_NOT_NEEDED = 100.0
#: Number of first angles whose moments are computed separately.
_FIRST = 1 << 9
#: Relative error of the moments allowed for quadrature, summed over steps.
_TOLERANCE = 2.0**-54
#: For estimates without bounds: the period in standard deviations, the negative logarithm of the
#: aliases, the number of angles of the first trial, and the relative size of a term left out.
_PERIOD = 24.0
_NEAR = 24.0
_NEAR_ANGLES = 1 << 5
_NEAR_TOLERANCE = 1e-13


@dataclass(frozen=True)
class Line:
    """The integrand on one line, prepared for levels near one t."""

    c: float
    tau: float
    log_top: float
    top_error: float
    values: Complexes
    angles: Floats
    weights: Floats
    errors: Floats
    cut: float
    aliases: tuple[tuple[float, float], ...]
    #: Chernoff's bound on a part of delta that is not in the integral, where there is one.
    apart: tuple[float, float] | None = None

    @cached_property
    def _parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Real and imaginary parts, sizes and relative errors, as a kernel takes them."""
        real, imaginary = self.values.real.copy(), self.values.imag.copy()
        return real, imaginary, self.weights, self.errors

    def bounds(self, t: float) -> tuple[float, float]:
        """Return a lower and an upper bound on delta(t), not counting infinite losses."""
        total, error = kernels.turned_total(*self._parts, self.angles, float(t), ULP)
        total *= self.tau / math.pi
        error = self.tau / math.pi * error * (1.0 + 1e-9) + self.cut
        shift = self.c * t
        log = self.log_top - shift
        slack = self.top_error + roundoff(8.0) * (abs(self.log_top) + abs(shift) + abs(log) + 8.0)
        high = _exp(log + slack, total + error)
        alias = sum(self._alias(at, bound, t) for at, bound in self.aliases)
        low = _exp(log - slack, total - error) - alias
        if self.apart is not None:
            at, bound = self.apart
            rest = bound - at * t
            rest += roundoff(8.0) * (abs(bound) + abs(at * t))
            high += (math.exp(min(rest, 1.0)) + alias) * (1.0 + 1e-9)
        return max(math.nextafter(low, 0.0), 0.0), min(math.nextafter(high, math.inf), 1.0)

    def _alias(self, at: float, bound: float, t: float) -> float:
        """Sum of e^(cmW) delta(t + mW) over m > 0 (at > c) or m < 0 (at < c), by Chernoff's bound.

        ``bound`` is ln M(at) + ln max over x of (1 - e^-x) e^(-at x), rounded up.
        """
        W = 2.0 * math.pi / self.tau
        apart = abs(at - self.c) * W * (1.0 - 1e-12)
        log = bound - at * t + roundoff(8.0) * (abs(bound) + abs(at * t))
        return math.exp(min(log, 700.0)) / math.expm1(min(apart, 700.0)) * (1.0 + 1e-9)


def _exp(log: float, factor: float) -> float:
    """Return e^log times a factor, accurate to a few units; 0 for negative factors."""
    if factor <= 0.0:
        return 0.0
    return math.exp(min(log + math.log(factor), 1.0))


class Contour:
    """Engine for the integral on the first line that needs few enough angles.

    If the tilted distribution has two modes at the saddle point, it has one mode on a line further
    to the left. This line loses a few digits but needs fewer angles.
    """

    def __init__(self, name: str, tried: tuple[tuple[float, float, int], ...]) -> None:
        self.name, self._tried = name, tried

    def applies(self, parts: Composition) -> bool:
        """Whether some losses have a density, so that moments may decay with the angle."""
        return bool(parts.pairs)

    def prepare(self, parts: Composition, t: float, s: float) -> Prepared:
        """Prepare an integral for levels near t, with a saddle point near s."""
        return parts.loosened(_first(self._tried, parts.terms, t, s))


CONTOUR = Contour("contour", _TRIED)
#: For losses that end at a threshold, where moments decay slowly.
CUT_CONTOUR = Contour("contour up to a threshold", _CUT)
#: With very many angles, for distributions that are far from smooth.
DENSE_CONTOUR = Contour("dense contour", _DENSE)


def _first(tried: tuple[tuple[float, float, int], ...], terms: Terms, t: float, c: float) -> Line:
    log_delta = rough_log_delta(terms, t, c)
    decays: dict[tuple[float, bool], Decay] = {}
    values: dict[float, list[Floats]] = {}
    for scale, small, most in tried:
        for fine in (False, True):  # most sums need few angles, and the cheap bounds show it
            with suppress(NoBound):
                if (scale, fine) not in decays:
                    edges, each = falls(terms, scale * c, fine, values.get(scale))
                    values[scale] = [np.exp(inside) for inside, _ in each]
                    decays[scale, fine] = decay(terms, edges, each)
                few = most if fine else _FEW
                return _line(terms, t, scale * c, small, few, log_delta, decays[scale, fine])
    raise TooMuchWork


def rough_log_delta(terms: Terms, t: float, c: float) -> float:
    """Return an estimate of ln delta(t) by Laplace's method at the saddle point."""
    K, _, curve = cumulant(terms, c)
    wide = curve + 1.0 / c**2 + 1.0 / (1.0 + c) ** 2
    return min(K - c * t - math.log(c * (1.0 + c)) - 0.5 * math.log(2.0 * math.pi * wide), 0.0)


def near_log_delta(terms: Terms, t: float, c: float) -> float:
    """Return ln delta(t) to about ten digits, without error bounds; NaN if many angles matter.

    The period of the trapezoidal rule is so long that aliases are about e^-24 of delta if the
    tilted losses have a light tail.
    """
    K, _, curve = cumulant(terms, c)
    wide = math.sqrt(curve + 1.0 / c**2 + 1.0 / (1.0 + c) ** 2)
    period = max(_PERIOD * wide, (_NEAR - rough_log_delta(terms, t, c)) / c)
    tau, count = 2.0 * math.pi / period, _NEAR_ANGLES
    while count <= _FIRST:
        angles: Floats = tau * np.arange(count, dtype=np.float64)
        logs = sum(k * term.log_moments(c, angles, _NEAR_TOLERANCE)[0] for term, k in terms)
        s = c + 1j * angles
        with np.errstate(under="ignore"):
            values = np.exp(logs - K - 1j * t * angles) / (s * (1.0 + s))
        total = float(values.real.sum()) - 0.5 * float(values[0].real)
        if total > 0.0 and float(np.abs(values[-4:]).max()) < _NEAR_TOLERANCE * total:
            return K - c * t + math.log(tau / math.pi * total)
        count *= 4
    return math.nan


def _line(
    terms: Terms,
    t: float,
    c: float,
    small: float,
    most: int,
    log_delta: float,
    decay: Decay,
) -> Line:
    count = sum(k for _, k in terms)
    K = cumulant(terms, c)[0]
    above, below, tau = aliases_from(terms, t, c, log_delta + small)
    allowed = small + log_delta - (K - c * t)
    reach, cut = decay.reach(tau, allowed, most)
    tolerance = _TOLERANCE / count
    angles: Floats = tau * np.arange(math.ceil(reach / tau) + 1, dtype=np.float64)
    logs, errors = np.zeros(len(angles), dtype=np.complex128), np.zeros(len(angles))
    for term, k in terms:
        value, error = term.log_moments(c, angles[:_FIRST], tolerance)
        if len(angles) > _FIRST:
            others = term.log_moments(c, angles, tolerance)
            value = np.concatenate([value, others[0][_FIRST:]])
            error = np.concatenate([error, others[1][_FIRST:]])
        logs += k * value
        # Powers are accurate to a unit of their exponents; errors add up over steps.
        errors += k * (error + roundoff(4.0) * np.abs(value))
    log_top, top_error = float(logs[0].real), float(errors[0])
    logs -= log_top
    s = c + 1j * angles
    with np.errstate(under="ignore"):
        values: Complexes = np.asarray(np.exp(logs) / (s * (1.0 + s)), dtype=np.complex128)
    values[0] *= 0.5
    weights = np.abs(values)
    errors = np.where(errors < 700.0, np.expm1(np.minimum(errors, 700.0)), math.inf)
    with np.errstate(invalid="ignore"):
        errors = np.where(weights > 0.0, errors, 0.0)
    # Errors at the angle 0 are of the whole integrand: they are counted there once.
    aliases = tuple((at, chernoff(terms, at)) for at in (above, below))
    return Line(c, tau, log_top, top_error, values, angles, weights, errors, cut, aliases)


def aliases_from(terms: Terms, t: float, c: float, allowed: float) -> tuple[float, float, float]:
    """Return exponents for Chernoff's bound on either side, and the largest tau they allow."""
    unit = 1.0 / math.sqrt(cumulant(terms, c)[2] + 1.0 / c**2 + 1.0 / (1.0 + c) ** 2)
    best = []
    for sign in (1.0, -1.0):
        tried = []
        for step in (0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 11.0, 16.0):
            at = c + sign * step * unit
            if at < 0.05 * c:
                continue
            tried.append(at)
        if sign < 0.0:
            tried += [0.0, 0.25 * c, 0.6 * c]
        result = (math.inf, 0.0)
        for at in tried:
            if at == c:  # steps that are lost in rounding
                raise OutOfRange
            try:
                K = cumulant(terms, at)[0] if at > 0.0 else 0.0
            except NoBound:
                continue
            W = (K + share(at) - at * t - allowed) / abs(at - c)
            result = min(result, (max(W, 1.0 / abs(at - c)), at))
        best.append(result)
    W = max(best[0][0], best[1][0])
    if math.inf == W:
        raise OutOfRange
    return best[0][1], best[1][1], 2.0 * math.pi / W


@dataclass(frozen=True, eq=False)
class Decay:
    """Bounds on ln |M(c + iv)| / M(c), or on what is summed: on cells, and from each edge on."""

    edges: Floats
    inside: Floats
    beyond: Floats

    def reach(self, tau: float, allowed: float, most: int) -> tuple[float, float]:
        """Return the angle at which to stop, and a bound on what is left out, over M(c) e^-ct.

        ``allowed`` is ln of what may be left out, ``most`` the largest number of angles. In a cell
        there are at most width/tau + 1 angles; the sum of tau/v^2 over angles beyond T is at most
        1/(T - tau).
        """
        edges = self.edges
        with np.errstate(under="ignore", over="ignore"):
            widths = np.diff(edges) + tau
            parts = np.exp(self.inside) * widths / math.pi / edges[:-1] ** 2
            last = np.exp(self.beyond) / (math.pi * np.maximum(edges - tau, 0.5 * tau))
        # What lies beyond an edge: all together, or the next cell and what lies beyond that.
        least = [float(last[-1])]
        for part, whole in zip(parts[::-1].tolist(), last[-2::-1].tolist(), strict=True):
            least.append(min(whole, part + least[-1]))
        total = np.array(least[::-1])
        fits = np.flatnonzero((total <= math.exp(max(allowed, -700.0))) & (edges > 4.0 * tau))
        if not len(fits) or edges[fits[0]] > most * tau:
            raise TooMuchWork
        return float(edges[fits[0]]), float(total[fits[0]]) * (1.0 + 1e-6)


def decay(terms: Terms, edges: Floats, each: list[tuple[Floats, Floats]]) -> Decay:
    """Bound the decay of |M| on a line from that of each kind of step."""
    sums = [sum(k * one[i] for one, (_, k) in zip(each, terms, strict=True)) for i in (0, 1)]
    return Decay(edges, np.asarray(sums[0]), np.asarray(sums[1]))


def falls(
    terms: Terms, c: float, fine: bool = True, known: list[Floats] | None = None
) -> tuple[Floats, list[tuple[Floats, Floats]]]:
    """Angles of all sizes, and ln |M| / M(c) of one release of each kind between and beyond.

    ``known`` are bounds between the angles from an earlier call.
    """
    unit = 1.0 / math.sqrt(cumulant(terms, c)[2] + 1.0 / c**2)
    edges: Floats = unit * np.geomspace(2.0**-2, 2.0**30, _COARSE + 1)
    ceilings = [np.maximum(term.ceiling(c, edges, fine), 1e-300) for term, _ in terms]
    # Where the bounds on all larger angles are tiny, values are not needed.
    beyond = sum(k * np.log(ceiling) for ceiling, (_, k) in zip(ceilings, terms, strict=True))
    needed = int(np.searchsorted(-np.asarray(beyond), _NOT_NEEDED)) + 1
    each = []
    for i, (ceiling, (term, _)) in enumerate(zip(ceilings, terms, strict=True)):
        inside = ceiling[:-1].copy()
        if known is not None:
            inside = np.minimum(inside, known[i])
        else:
            inside[:needed] = np.minimum(_coarse(term, c, edges[: needed + 1]), inside[:needed])
        each.append((np.log(inside), np.log(ceiling)))
    return edges, each


def _coarse(term: Losses, c: float, edges: Floats) -> Floats:
    """Bound |M| / M(c) of one step on cells of angles, from its values at their midpoints."""
    widths, middles = np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    sizes, slope = np.ones(len(middles)), term.slope(c)
    with suppress(NoBound):  # quadratures grow with the angle
        for start in range(0, len(middles), _BATCH):
            part = slice(start, start + _BATCH)
            value, error = term.log_moments(c, np.concatenate([[0.0], middles[part]]), 1e-9)
            fall = (value - value[0]).real[1:] + error[1:] + error[0]
            sizes[part] = np.exp(np.minimum(fall, 0.0)) + 0.5 * widths[part] * slope
            if 0.5 * float(widths[part][-1]) * slope > 1.0:
                break
    return np.maximum(sizes, 1e-300)


# The contour integral of losses on several lattices, smoothed by a known amount.
#
# Moments of losses on a lattice with step h do not decay with the angle. They are near their
# maximum only near multiples of 2 pi/h, and different lattices share few such angles. One step of
# Gaussian noise with a tiny mu is added, so that large angles are negligible. It raises delta by
# E D(t - L), and by the heat equation
#
#     0 <= D(x) e^(-x/2) = 1/2 * integral over z in [0, mu^2] of e^(-z/8) phi_z(x) dz
#       <= mu^2 phi_(mu^2)(x),      phi_z the normal density of variance z,
#
# so that from below 1/(s (s+1)) - mu^2 e^(mu^2/8) takes the place of 1/(s (s+1)) in the integral.
# The proof is in docs/theory/contour.md.


#: Share of delta that the smoothing adds, about: a tenth of the width aimed at.
_BLUR = 4e-11
#: Logarithm of the share of delta that aliases may have.
_SMALL = -32.0
#: Angles count where moments are above e^-46 = 1e-20 of the largest.
_NOTHING = 46.0
#: Angles that are looked at together.
_SOME = 1 << 6
#: Angles times losses that are looked at together: 16 MB.
_WORK = 1 << 20
#: Most multiples of a period that are looked at.
_MULTIPLES = 1 << 20
#: Most angles in all.
_ANGLES = 1 << 15
#: Points of a period at which the size of moments is computed.
_POINTS = 1 << 12
#: Points of a finer look at small angles.
_NEAR = 64
#: How often small angles are looked at more finely.
_FINER = 2


@dataclass(frozen=True)
class Blurred:
    """Two integrals: one for the lower and one for the upper bound."""

    below: Line
    above: Line

    def bounds(self, t: float) -> tuple[float, float]:
        """Return a lower and an upper bound on delta(t), not counting infinite losses."""
        return self.below.bounds(t)[0], self.above.bounds(t)[1]


class SmoothedContour:
    """Engine for the integral of losses on lattices, with a small added Gaussian step."""

    name = "smoothed contour"

    def applies(self, parts: Composition) -> bool:
        """Whether all losses are on lattices."""
        return not parts.pairs and all(measure.step > 0.0 for measure, _ in parts.finite)

    def prepare(self, parts: Composition, t: float, s: float) -> Prepared | None:
        """Prepare integrals for levels near t, with a saddle point near s."""
        if not s > 0.0:
            return None
        return parts.loosened(_blurred([(Discrete(m), k) for m, k in parts.finite], t, s))


SMOOTHED_CONTOUR = SmoothedContour()


def _blurred(kinds: list[tuple[Discrete, int]], t: float, c: float) -> Blurred:
    mu = math.sqrt(_BLUR / (c * (1.0 + c)))
    whole: Terms = [*kinds, (Directed(GaussianNoise(1.0 / mu)), 1)]
    K, _, curve = cumulant(whole, c)
    wide = curve + 1.0 / c**2 + 1.0 / (1.0 + c) ** 2
    log_delta = K - c * t - math.log(c * (1.0 + c)) - 0.5 * math.log(2.0 * math.pi * wide)
    above, below, tau = aliases_from(whole, t, c, min(log_delta, 0.0) + _SMALL)
    # Beyond the last angle, and wherever all are below e^-46, the sum of tau/v^2 is bounded.
    last = math.sqrt(2.0 * _NOTHING) / mu
    angles = _angles(kinds, c, tau, last)
    logs, errors = np.zeros(len(angles), dtype=np.complex128), np.zeros(len(angles))
    for term, k in whole:
        points = len(term.given.losses) if isinstance(term, Discrete) else 1
        some = max(1, min(_SOME, _WORK // points))
        for start in range(0, len(angles), some):
            part = slice(start, start + some)
            value, error = term.log_moments(c, angles[part], 1e-20)
            logs[part] += k * value
            errors[part] += k * (error + roundoff(4.0) * np.abs(value))
    log_top, top_error = float(logs[0].real), float(errors[0])
    s = c + 1j * angles
    with np.errstate(under="ignore"):
        values = np.exp(logs - log_top) / (s * (1.0 + s))
    values[0] *= 0.5
    cut = 2.0 * math.exp(-_NOTHING) * (1.0 + tau / c) / (math.pi * tau) * (1.0 + mu * mu * last)
    relative = np.expm1(np.minimum(errors, 700.0))
    aliases = tuple((at, chernoff(whole, at)) for at in (above, below))
    # The factor of the Gaussian noise belongs to both, so that only the last one differs.
    less = 1.0 - raised(mu * mu * math.exp(mu * mu / 8.0), 8.0) * s * (1.0 + s)
    lines = []
    for factor in (less, np.ones(len(s))):
        each: Complexes = np.asarray(values * factor, dtype=np.complex128)
        lines.append(
            Line(c, tau, log_top, top_error, each, angles, np.abs(each), relative, cut, aliases)
        )
    return Blurred(lines[0], lines[1])


def _angles(kinds: list[tuple[Discrete, int]], c: float, tau: float, last: float) -> Floats:
    """Angles 0, tau, ... up to the last at which moments may be more than e^-46 of the largest."""
    periods = sorted((_period(term, k, c) for term, k in kinds), key=lambda one: one[1] / one[0])
    period, width = periods[0]
    if not 2.0 * width < period or last / period > _MULTIPLES:
        raise TooMuchWork
    middles = period * np.arange(math.ceil(last / period) + 1, dtype=np.float64)
    for other, reach in periods[1:]:
        turns = middles / other
        # Multiples are good to a few units of the largest angle.
        off = np.abs(turns - np.rint(turns)) * other - roundoff(8.0) * last
        middles = middles[off <= width + reach]
    count = 2.0 * width / tau + 3.0
    if len(middles) * count > _ANGLES:
        raise TooMuchWork
    first = np.floor((middles - width) / tau)
    at = np.unique(np.add.outer(first, np.arange(math.ceil(count) + 1)).reshape(-1))
    return np.asarray(tau * at[at >= 0.0])


def _period(term: Discrete, k: int, c: float) -> tuple[float, float]:
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
