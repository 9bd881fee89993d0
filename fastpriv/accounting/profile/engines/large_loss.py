"""The contour integral if one large loss among many small losses dominates delta.

The tilted distribution of the losses then has two modes with t between them, and the integrand
exceeds delta by many orders. The smooth share Phi((x - x0) / eta) of the outputs of a pair splits
its moments into M = B + J, and J has the large losses. Then

    M^k - B^k = B^k ((1 + J/B)^k - 1)

has a small relative error and decays with the angle as J does. Its integral is delta(t) of M^k
minus delta(t) of B^k, and by Chernoff's bound the second term is negligible. The line passes
through the saddle point of J. Proofs are in docs/theory/contour.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import roundoff
from fastpriv._core.search import bisect
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.composition import (
    Composition,
    Losses,
    Prepared,
    Terms,
    chernoff,
    share,
)
from fastpriv.accounting.profile.engines.contour import Decay, Line, aliases_from, falls
from fastpriv.accounting.profile.losses import (
    Complexes,
    Directed,
    NoBound,
    OutOfRange,
    TooMuchWork,
    fits,
    log_one_plus,
    uniform_sums,
)
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture

#: Error of quadratures, relative to B and to J.
_FINE = 1e-18
#: Losses at which B and J are divided, in parts of t: two below a half do not add up to t.
_CUTS = (0.47, 0.3, 0.2, 0.12, 0.06, 0.03)
#: Widths eta of the division from there to t: Phi(-9) is 1e-19.
_WIDTHS = 9.0
#: Lines that are tried, relative to the saddle point.
_LINES = np.geomspace(0.1, 1.2, 32)
#: Number of exponents tried for Chernoff's bound on B.
_EXPONENTS = 40
#: Logarithm of the share of delta allowed for each kind of error.
_SMALL = -30.0
#: Maximum number of angles.
_ANGLES = 1 << 16


@dataclass(frozen=True)
class _Divided:
    """k releases of a pair whose outputs are divided, or of another kind, all of which is B."""

    term: Losses
    k: int
    x0: float = math.inf
    eta: float = math.inf

    @classmethod
    def of(cls, term: Losses, k: int, b: float, t: float) -> _Divided:
        """Divide at the output with the loss b, so that at t nearly all is J."""
        if (
            isinstance(term, Directed)
            and isinstance(term.pair, GaussianMixture)
            and not term.flipped
        ):
            x0 = term.pair.output(b)
            return cls(term, k, x0, (term.pair.output(t) - x0) / _WIDTHS)
        return cls(term, k)

    @cached_property
    def pair(self) -> GaussianMixture | None:
        """The pair, if it is divided."""
        if self.eta < math.inf and isinstance(self.term, Directed):
            pair = self.term.pair
            return pair if isinstance(pair, GaussianMixture) else None
        return None

    def share(self, x: Floats, sign: float = 1.0) -> Floats:
        """Return Phi((x - x0) / eta), or one minus it."""
        z = (sign / (self.eta * math.sqrt(2.0))) * (self.x0 - x)
        result = np.empty(len(z))
        kernels.half_erfc(np.ascontiguousarray(z), result)
        return result

    def logs(self, s: float) -> tuple[float, float]:
        """Return ln of upper bounds on B and J at a real exponent."""
        if self.pair is None:
            value, error = self.term.log_moments(s, np.zeros(1), 1e-14)
            return float(value[0].real + error[0]), -math.inf
        x, nodes, off = self.pair.rule(1.0 + s, 0.0, _FINE, self.eta)
        logs = nodes.logs + (1.0 + s) * nodes.losses
        wide = 1.0 / float(x[1] - x[0])  # what lies beyond the ends is less than so many weights
        result = []
        for sign in (-1.0, 1.0):
            with np.errstate(divide="ignore"):
                masses = logs + np.log(self.share(x, sign))
            scale = max(float(masses.max()), -1e300)
            total = float(np.exp(masses - scale).sum())
            total += wide * math.exp(masses[0] - scale) + wide * math.exp(masses[-1] - scale)
            relative = 1.0 + float(off(np.zeros(1))[0]) + 1e-12 * (1.0 + abs(scale))
            result.append(scale + math.log(total * relative + 1e-300))
        return result[0], result[1]

    def moments(self, c: float, tau: float, count: int) -> list[np.ndarray]:
        """Return B, a bound on its error, J, and one on its error, at count angles."""
        angles = tau * np.arange(count, dtype=np.float64)
        none = np.zeros(count)
        if self.pair is None:
            logs, errors = self.term.log_moments(c, angles, 1e-17 / self.k)
            values = np.exp(logs)
            off = np.abs(values) * (np.expm1(np.minimum(errors, 700.0)) + roundoff(8.0))
            return [values, off + roundoff(4.0) * np.abs(logs * values), none + 0j, none]
        w = 1.0 + c
        x, nodes, relative = self.pair.rule(w, tau * count, _FINE, self.eta)
        if not fits(len(x), count):
            raise TooMuchWork
        result: list[np.ndarray] = []
        L = np.abs(nodes.losses)
        exponents = nodes.logs + w * nodes.losses
        if float(exponents.max()) > 600.0:
            raise OutOfRange
        with np.errstate(under="ignore"):
            all_weights = np.exp(exponents)
        for sign in (-1.0, 1.0):
            part = self.share(x, sign)
            weights = all_weights * part
            # A small share changes by its argument's square times the argument's relative error.
            z = np.where(part < 0.5, (np.abs(x) + abs(self.x0)) / self.eta, 1.0)
            units = nodes.fuzz + roundoff(16.0 + np.abs(nodes.logs) + 4.0 * w * L + 4.0 * z * z)
            moved = float(((roundoff(8.0) * L + nodes.off) * weights).sum())
            sums, error = uniform_sums(nodes.losses, weights, tau, count)
            lost = error * float(weights.sum()) + float((units * weights).sum())
            less = (lost + (w + angles) * moved) * (1.0 + 1e-9) + len(L) * 2.0**-1060
            less = less + float(weights.sum()) * relative(angles) * 1.001
            result += [sums, less + float(weights[0] + weights[-1]) / (x[1] - x[0])]
        return result


class LargeLoss:
    """Engine for the integral of the contribution of large losses."""

    name = "large loss"

    def applies(self, parts: Composition) -> bool:
        """Whether some step is a mixture of Gaussians with the record, which has large losses."""
        return bool(_mixtures(parts))

    def prepare(self, parts: Composition, t: float, s: float) -> Prepared | None:
        """Prepare an integral for levels near t, with a saddle point near s.

        Return None if no loss is large, or if small losses may add up to t.
        """
        terms = parts.terms
        best: tuple[float, list[_Divided], float, float, tuple[float, float]] | None = None
        for share_of_t in _CUTS:
            divided = [_Divided.of(term, k, share_of_t * t, t) for term, k in terms]
            if any(not one.eta > 0.0 for one in divided):
                return None
            at, log_delta = _saddle(divided, t, s)
            apart = _least(divided, t, s)
            margin = apart[1] - apart[0] * t - log_delta
            if best is None or margin < best[0]:
                best = margin, divided, at, log_delta, apart
            if margin < _SMALL:
                break
        if best is None or best[0] > 0.6 * _SMALL:
            return None
        _, divided, at, log_delta, apart = best
        return parts.loosened(_line(terms, divided, t, at, log_delta, apart))


LARGE_LOSS = LargeLoss()


def _mixtures(parts: Composition) -> list[tuple[GaussianMixture, int]]:
    return [
        (one.pair, k)
        for one, k in parts.pairs
        if isinstance(one.pair, GaussianMixture) and not one.flipped
    ]


def likely_level(parts: Composition, rest: float) -> float:
    """Return a t that one large loss exceeds with a probability of about ``rest``; 0 for none."""
    pairs = _mixtures(parts)

    def likely(t: float) -> bool:
        return sum(k * pair.rough_delta(t) for pair, k in pairs) > rest

    low, high = 0.0, 1.0
    while likely(high) and high < 1e3:
        low, high = high, 2.0 * high
    return bisect(likely, low, high, relative=0.01, absolute=1e-8)[0]


def _saddle(parts: list[_Divided], t: float, c: float) -> tuple[float, float]:
    """Return where ln of J e^(-st) / (s (s+1)) is least, about, and about ln delta."""
    best = (math.inf, c)
    for s in (c * _LINES).tolist():
        logs = [one.logs(s) for one in parts]
        all_small = math.fsum(one.k * log[0] for one, log in zip(parts, logs, strict=True))
        large = np.logaddexp.reduce(
            [math.log(one.k) + log[1] - log[0] for one, log in zip(parts, logs, strict=True)]
        )
        best = min(best, (all_small + float(large) - s * t - math.log(s * (1.0 + s)), s))
    if not math.isfinite(best[0]):
        raise OutOfRange
    return best[1], best[0] - 3.0


def _least(parts: list[_Divided], t: float, c: float) -> tuple[float, float]:
    """Return a, and a bound on ln of B(a)^k max (1 - e^-x) e^(-ax): the best exponent for t."""
    best = (math.inf, 0.0, 0.0)
    for a in np.geomspace(0.2 * c, max(30.0 * c, 300.0 / t), _EXPONENTS).tolist():
        try:
            total = share(a) + math.fsum(one.k * one.logs(a)[0] for one in parts)
        except (NoBound, OverflowError):
            break
        total += 1e-9 * (1.0 + abs(total))
        best = min(best, (total - a * t, a, total))
    return best[1], best[2]


def _line(
    terms: Terms,
    parts: list[_Divided],
    t: float,
    c: float,
    log_delta: float,
    apart: tuple[float, float],
) -> Line:
    above, below, tau = aliases_from(terms, t, c, log_delta + _SMALL)
    logs = [float(np.logaddexp(*one.logs(c))) for one in parts]
    log_top = math.fsum(one.k * log for one, log in zip(parts, logs, strict=True))
    allowed = log_delta + _SMALL - log_top + c * t
    reach, cut = _decay(terms, parts, c).reach(tau, allowed, _ANGLES)
    count = math.ceil(reach / tau) + 1
    values, errors = _difference(parts, c, tau, count, log_top)
    angles: Floats = tau * np.arange(count, dtype=np.float64)
    s = c + 1j * angles
    values, errors = values / (s * (1.0 + s)), errors / np.abs(s * (1.0 + s))
    values[0], errors[0] = 0.5 * values[0], 0.5 * errors[0]
    weights = np.abs(values) + errors
    relative = errors / np.maximum(weights, 1e-320)
    # B is a part of M, so the aliases of B^k are within the bounds on those of M^k.
    aliases = tuple((at, chernoff(terms, at)) for at in (above, below))
    return Line(c, tau, log_top, 0.0, values, angles, weights, relative, cut, aliases, apart)


def _decay(terms: Terms, parts: list[_Divided], c: float) -> Decay:
    """Bound |M^k - B^k| / M(c)^k by (b + j)^k - b^k with |B| <= b and |J| <= j over M(c)."""
    edges, each = falls(terms, c)
    result = []
    larger = [
        np.zeros(len(edges)) if one.pair is None
        else one.pair.fall(1.0 + c, edges, one.share, one.eta) for one in parts
    ]  # fmt: skip
    for i in (0, 1):
        logs, rise = np.zeros(len(each[0][i])), np.zeros(len(each[0][i]))
        for one, fall, j in zip(parts, each, larger, strict=True):
            y = j[: len(logs)]
            x = np.minimum(np.exp(fall[i]) + y, 1.0)
            logs += one.k * np.log(x)
            rise += one.k * np.log1p(y / x)
        with np.errstate(divide="ignore", over="ignore"):
            small = np.log(np.maximum(np.expm1(np.minimum(rise, 1.0)), 1e-300))
            result.append(logs + np.where(rise < 1.0, small, rise))
    return Decay(edges, result[0], result[1])


def _difference(
    parts: list[_Divided], c: float, tau: float, count: int, log_top: float
) -> tuple[Complexes, Floats]:
    """M^k - B^k over e^log_top, and a bound on its error.

    With b and j bounds on |B| and |J| that count their errors e and f, the derivatives of
    (b + j)^k - b^k, which has positive coefficients, bound the error by
    b^k ((1 + j/b)^k - 1) k e/b + (b + j)^k k f/(b + j).
    """
    log, rise = (np.zeros(count, dtype=np.complex128) for _ in range(2))
    most, more, first, second, units = (np.zeros(count) for _ in range(5))
    for one in parts:
        B, e, J, f = one.moments(c, tau, count)
        B = np.where(np.abs(B) < e, e, B)
        b, j = np.abs(B) + 2.0 * e + 1e-300, np.abs(J) + f
        log, rise = log + one.k * np.log(B), rise + one.k * log_one_plus(J / B)
        most, more = most + one.k * np.log(b), more + one.k * np.log1p(j / b)
        first, second = first + one.k * 2.0 * e / b, second + one.k * f / (b + j)
        units = units + one.k * (np.abs(np.log(B)) + 4.0)
    with np.errstate(under="ignore", over="ignore"):
        values = np.exp(log - log_top) * np.expm1(rise)
        whole = np.exp(most - log_top)
        gain = np.where(more < 700.0, np.expm1(np.minimum(more, 700.0)), math.inf)
        errors = whole * (gain * (first + roundoff(16.0) * units) + (1.0 + gain) * second)
    return np.asarray(values), errors * (1.0 + 1e-9)
