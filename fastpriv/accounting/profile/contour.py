"""delta(t) of composed releases by a contour integral whose every error is bounded.

With M(s) the product of the moments of all releases, on a line Re s = c > 0

    delta(t) = 1/(2 pi i) * integral of M(s) e^(-st) / (s (s + 1)) ds.

The trapezoidal rule with spacing tau is, by Poisson summation, the sum over all integers m of
e^(cmW) delta(t + mW), W = 2 pi/tau: too large, by at most what Chernoff's bound says of the other
terms. What the sum leaves out beyond an angle is bounded by |M|: evaluated on a coarse grid,
between whose points |M| of each release changes no faster than its mean absolute loss, and
integrated by parts beyond. The proofs are in docs/theory/contour.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.nodes import Complexes, TooCostly

#: Lines that are tried, as shares of the saddle point, with the logarithm of the share of delta
#: that aliases, and angles left out, may have, and the most angles: the first that fits.
_TRIED = ((1.0, -38.0, 1 << 12), (1.0, -32.0, 1 << 13), (0.7, -32.0, 1 << 13))
_DENSE = ((1.0, -32.0, 1 << 17), (0.7, -32.0, 1 << 17), (1.0, -27.0, 1 << 18))
#: Angles of the coarse grid, which are looked at some at a time.
_COARSE, _BATCH = 1 << 8, 1 << 5
#: The first angles, which count most, have moments by themselves.
_FIRST = 1 << 9
#: Share of the moments that quadrature may be off by, all releases together.
_TOLERANCE = 2.0**-54


class Term(Protocol):
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
Terms = Sequence[tuple[Term, int]]


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


@dataclass(frozen=True)
class Line:
    """The integrand on one line, ready for any t near the one it was made for."""

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

    def bounds(self, t: float) -> tuple[float, float]:
        """Return a lower and an upper bound on delta(t), not counting infinite losses."""
        turn = self.angles * t
        terms = self.values * (np.cos(turn) - 1j * np.sin(turn))
        total = self.tau / math.pi * float(terms.real.sum())
        sizes = self.weights * (self.errors + ULP * (16.0 + 4.0 * np.abs(turn)))
        error = self.tau / math.pi * float(sizes.sum()) * (1.0 + 1e-9) + self.cut
        shift = self.c * t
        log = self.log_top - shift
        slack = self.top_error + 8.0 * ULP * (abs(self.log_top) + abs(shift) + abs(log) + 8.0)
        high = _exp(log + slack, total + error)
        alias = sum(self._alias(at, bound, t) for at, bound in self.aliases)
        low = _exp(log - slack, total - error) - alias
        if self.apart is not None:
            at, bound = self.apart
            rest = bound - at * t
            rest += 8.0 * ULP * (abs(bound) + abs(at * t))
            high += (math.exp(min(rest, 1.0)) + alias) * (1.0 + 1e-9)
        return max(math.nextafter(low, 0.0), 0.0), min(math.nextafter(high, math.inf), 1.0)

    def _alias(self, at: float, bound: float, t: float) -> float:
        """Sum of e^(cmW) delta(t + mW) over m > 0 (at > c) or m < 0 (at < c), by Chernoff's bound.

        ``bound`` is ln M(at) + ln max over x of (1 - e^-x) e^(-at x), rounded up.
        """
        W = 2.0 * math.pi / self.tau
        apart = abs(at - self.c) * W * (1.0 - 1e-12)
        log = bound - at * t + 8.0 * ULP * (abs(bound) + abs(at * t))
        return math.exp(min(log, 700.0)) / math.expm1(min(apart, 700.0)) * (1.0 + 1e-9)


def _exp(log: float, factor: float) -> float:
    """e^log times a factor, rounded to a few units; nothing for factors below zero."""
    if factor <= 0.0:
        return 0.0
    return math.exp(min(log + math.log(factor), 1.0))


def share(c: float) -> float:
    """Return ln of the largest (1 - e^-x) e^(-cx) over x >= 0."""
    return c * math.log(c) - (1.0 + c) * math.log1p(c) if c > 0.0 else 0.0


def line(terms: Terms, t: float, c: float) -> Line:
    """Prepare an integral for questions near t, whose saddle point is near c.

    Where the tilted law has two humps there, it has one on a line further to the left, which loses
    a few digits but takes fewer angles.
    """
    return _first(_TRIED, terms, t, c)


def dense_line(terms: Terms, t: float, c: float) -> Line:
    """The same with very many angles, for laws that are far from smooth."""
    return _first(_DENSE, terms, t, c)


def _first(tried: tuple[tuple[float, float, int], ...], terms: Terms, t: float, c: float) -> Line:
    log_delta = _log_delta(terms, t, c)
    decays: dict[float, Decay] = {}
    for share, small, most in tried:
        with suppress(TooCostly):
            if share not in decays:
                decays[share] = decay(terms, share * c)
            return _line(terms, t, share * c, small, most, log_delta, decays[share])
    raise TooCostly


def _log_delta(terms: Terms, t: float, c: float) -> float:
    """Return ln delta(t), about, by the method of Laplace at its saddle point."""
    K, _, curve = cumulant(terms, c)
    wide = curve + 1.0 / c**2 + 1.0 / (1.0 + c) ** 2
    return min(K - c * t - math.log(c * (1.0 + c)) - 0.5 * math.log(2.0 * math.pi * wide), 0.0)


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
        # Powers are good to a unit of their exponents; errors of many releases add up.
        errors += k * (error + 4.0 * ULP * np.abs(value))
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
    aliases = tuple((at, chernoff(terms, at, tolerance)) for at in (above, below))
    return Line(c, tau, log_top, top_error, values, angles, weights, errors, cut, aliases)


def chernoff(terms: Terms, at: float, tolerance: float) -> float:
    """Upper bound on ln M(at) + ln max (1 - e^-x) e^(-at x)."""
    if at == 0.0:
        return 1e-9
    total, zero = share(at), np.zeros(1)
    for term, k in terms:
        value, error = term.log_moments(at, zero, max(tolerance, 1e-14))
        total += k * (float(value[0].real) + float(error[0]))
    return total + 1e-9 + 1e-12 * abs(total)


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
                raise TooCostly
            try:
                K = cumulant(terms, at)[0] if at > 0.0 else 0.0
            except TooCostly:
                continue
            W = (K + share(at) - at * t - allowed) / abs(at - c)
            result = min(result, (max(W, 1.0 / abs(at - c)), at))
        best.append(result)
    W = max(best[0][0], best[1][0])
    if math.inf == W:
        raise TooCostly
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
            raise TooCostly
        return float(edges[fits[0]]), float(total[fits[0]]) * (1.0 + 1e-6)


def decay(terms: Terms, c: float) -> Decay:
    """Bound how |M| falls on a line."""
    edges, each = falls(terms, c)
    sums = [sum(k * one[i] for one, (_, k) in zip(each, terms, strict=True)) for i in (0, 1)]
    return Decay(edges, np.asarray(sums[0]), np.asarray(sums[1]))


def falls(terms: Terms, c: float) -> tuple[Floats, list[tuple[Floats, Floats]]]:
    """Angles of all sizes, and ln |M| / M(c) of one release of each kind between and beyond."""
    unit = 1.0 / math.sqrt(cumulant(terms, c)[2] + 1.0 / c**2)
    edges: Floats = unit * np.geomspace(2.0**-2, 2.0**30, _COARSE + 1)
    each = []
    for term, _ in terms:
        ceiling = np.maximum(term.ceiling(c, edges), 1e-300)
        inside = np.minimum(_coarse(term, c, edges), ceiling[:-1])
        each.append((np.log(inside), np.log(ceiling)))
    return edges, each


def _coarse(term: Term, c: float, edges: Floats) -> Floats:
    """Bound |M| / M(c) of one release on cells of angles, from its values in their middles."""
    widths, middles = np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    sizes, slope = np.ones(len(middles)), term.slope(c)
    with suppress(TooCostly):  # quadratures grow with the angle
        for start in range(0, len(middles), _BATCH):
            part = slice(start, start + _BATCH)
            value, error = term.log_moments(c, np.concatenate([[0.0], middles[part]]), 1e-9)
            fall = (value - value[0]).real[1:] + error[1:] + error[0]
            sizes[part] = np.exp(np.minimum(fall, 0.0)) + 0.5 * widths[part] * slope
            if 0.5 * float(widths[part][-1]) * slope > 1.0:
                break
    return np.maximum(sizes, 1e-300)
