"""Laplace noise and mechanisms of bounded range: losses on an interval."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.discrete import FINE, DiscreteLosses, Releases
from fastpriv.accounting.profile.losses import (
    Cells,
    Complexes,
    ContinuousStep,
    Nodes,
    TooMuchWork,
    gauss_legendre,
    log1p_with_error,
    unsampled_level,
)

# Pairs with losses on an interval: Laplace noise and mechanisms of bounded range.
#
# Before subsampling, the loss l lies in [-e, e]. Under Q it has the density k e^(-(l + e)/2), and
# possibly atoms at -e and e. Laplace noise of scale b at distance 1 has e = 1/b, k = 1/4 and the
# atoms e^-e/2 at e and 1/2 at -e. The envelope of all mechanisms of bounded range e (the pairs
# with losses {u, u - e}) is delta(x) = (e^(e/2) - e^(x/2))^2 / (e^e - 1). It has no atoms and
# k = 1/(2 (1 - e^-e)). Poisson subsampling changes the loss to ln(1 - q + q e^l).


#: Number of points of the Gauss-Legendre rule on a panel.
_RULE = 24
#: Maximum number of quadrature points.
_POINTS = 1 << 17
#: Parameters of the ellipses on which integrands are bounded.
_ELLIPSES = 1.0 + 0.25 * 1.35 ** np.arange(16)


class Interval(ContinuousStep):
    """Losses on [-e, e] with density k e^(-(l + e)/2) under Q, subsampled with probability q."""

    def __init__(self, e: float, atoms: bool, q: float = 1.0) -> None:
        self.e, self.atoms, self.q = e, atoms, q
        self.symmetric = q == 1.0
        self.has_atoms = atoms and q == 1.0
        self.key = ("laplace" if atoms else "range", e, q)
        self.log_density = math.log(0.25) if atoms else -math.log(-2.0 * math.expm1(-e))

    def _losses(self, plain: Floats) -> tuple[Floats, Floats]:
        """Return the losses after subsampling, and their errors."""
        if self.q == 1.0:
            return plain, roundoff(2.0) * np.abs(plain)
        near = self.q * np.expm1(np.minimum(plain, 1.0))
        rest = math.log1p(-self.q)
        far = np.logaddexp(rest, math.log(self.q) + plain)
        losses = np.where(plain <= 1.0, np.log1p(near), far)
        return losses, roundoff(4.0) * (np.minimum(np.abs(near), np.abs(losses)) + np.abs(losses))

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        """Return the atoms, and the logarithms of their masses under Q."""
        if not self.atoms:
            return np.zeros(0), np.zeros(0)
        return np.array([-self.e, self.e]), np.array([math.log(0.5), math.log(0.5) - self.e])

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln Phi(c + i angle), and bounds on its error; in closed form without sampling."""
        if self.q < 1.0:
            return super().log_moments(c, angles, tolerance)
        return _log_moments(self.e, self.atoms, c, angles)

    def cumulant(self, c: float) -> tuple[float, float, float]:
        """Return ln Phi(c) and its first two derivatives; used only to guide the search."""
        if self.q < 1.0:
            return super().cumulant(c)
        return _cumulant(self.e, self.atoms, c)

    @lru_cache(maxsize=8)  # noqa: B019  (pairs are few and small)
    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Return Gauss-Legendre rules on panels, with errors 64/15 M r^-2n/(1 - r^-2)."""
        turn = abs(c) + angle + 1.0
        panels = max(1, math.ceil(2.0 * self.e * max(turn / 6.0, 0.7)))
        if panels * _RULE > _POINTS:
            raise TooMuchWork
        half = self.e / panels
        at, weights = gauss_legendre(_RULE)
        middles: Floats = half * (2.0 * np.arange(panels, dtype=np.float64) + 1.0 - panels)
        points = (middles[:, None] + half * at).reshape(-1)
        logs = self.log_density - 0.5 * (points + self.e) + math.log(half)
        logs += np.tile(np.log(weights), panels)
        ends, chances = self._ends
        points, logs = np.concatenate([points, ends]), np.concatenate([logs, chances])
        losses, off = self._losses(points)
        fuzz = roundoff(64.0 + 4.0 * self.e + np.abs(logs))
        off = off + roundoff(8.0) * self.e * (0.0 if len(points) == len(ends) else 1.0)

        def remainder(angles: Floats, scale: float) -> Floats:
            return self._remainder(c, angles, middles, half) * math.exp(-scale)

        return Nodes(logs, losses, fuzz, off, remainder)

    def _remainder(self, c: float, angles: Floats, middles: Floats, half: float) -> Floats:
        """Bound the error of the rules by the integrand on ellipses with |Im l| <= y < pi.

        Any ellipse gives a bound at all angles: the best one of each of the outer angles is used.
        """
        r = _ELLIPSES[0.5 * half * (_ELLIPSES - 1.0 / _ELLIPSES) <= 2.6]
        if not len(r):
            return np.full(len(angles), math.inf)
        y, x = 0.5 * half * (r - 1.0 / r), (0.5 * half * (r + 1.0 / r))[:, None]
        factor = math.log(64.0 / 15.0 * half) - 2.0 * _RULE * np.log(r) - np.log1p(-(r**-2.0))
        turned = -np.log(np.cos(0.5 * y)) * (max(-c, 0.0) if self.q < 1.0 else 0.0)
        # The mean over panels of the maximum on their ellipses.
        low, high = self._losses(middles - x)[0], self._losses(middles + x)[0]
        start = self.log_density - 0.5 * (middles - x + self.e)
        tilted = np.logaddexp.reduce(start + np.maximum(c * low, c * high), axis=1)
        plain = np.logaddexp.reduce(start + np.maximum(high, 0.0), axis=1) + factor
        tilted += turned + factor
        size = np.log(2.0 * (abs(c) + angles) + 1.0)
        best = np.full(len(angles), math.inf)
        for i in {int(np.argmin(tilted + angle * y)) for angle in (angles.min(), angles.max())}:
            best = np.minimum(best, np.logaddexp(tilted[i] + angles * y[i], plain[i] + size))
        return np.asarray(np.exp(np.minimum(best, 700.0))) * 1.001

    def variation(self, c: float) -> tuple[Floats, Floats]:
        """Return bounds that decay as one over the angle, by integration by parts."""
        # The density of the loss divided by dL/dl decreases and then increases, or decreases. Its
        # logarithmic derivative is (c + 1) p - 3/2 with increasing p = dL/dl (-1/2 + c if q = 1).
        # So boundary terms and variation are at most twice the values at both ends.
        value = self.log_moment_bounds(c)[0]
        ends = np.array([-self.e, self.e])
        losses = self._losses(ends)[0]
        logs = self.log_density - 0.5 * (ends + self.e) + c * losses - value
        logs -= math.log(self.q) + ends - losses  # dL/dl = q e^l / (1 - q + q e^l)
        with np.errstate(over="ignore"):
            b = 2.0 * float(np.exp(np.minimum(logs, 600.0)).sum())
        where, chances = self._ends
        a = float(np.exp(chances + c * self._losses(where)[0] - value).sum())
        return np.array([a * (1.0 + 1e-6)]), np.array([b * 1.001])

    def top(self, flipped: bool) -> float:
        """Largest loss, at one end of the interval."""
        losses = self._losses(np.array([-self.e, self.e]))[0]
        return float(-losses[0] if flipped else losses[1])

    @property
    def is_noise(self) -> bool:
        """Whether this is Laplace noise on a sum."""
        return self.atoms

    def changed(self, times: float, q: float) -> Interval:
        """Return the same kind of step with more losses, sampled with probability q."""
        return Interval(self.e * times, self.atoms, q)

    @property
    def attained(self) -> bool:  # type: ignore[override]
        """Whether two databases attain the pair: Laplace noise does, an envelope does not."""
        return self.atoms

    def witnesses(self) -> list[Releases]:
        """Return pairs with losses u and u - e; P has the mass (e^e - e^u) / (e^e - 1) at u."""
        if self.atoms or self.q < 1.0:
            return []
        result: list[Releases] = []
        for u in (np.arange(1.0, 64.0) / 64.0 * self.e).tolist():
            fine = np.longdouble(u) - np.longdouble(self.e)
            high = np.log(np.expm1(-fine) / np.expm1(np.longdouble(self.e))) + np.longdouble(u)
            low = np.log(np.expm1(np.longdouble(u)) / np.expm1(np.longdouble(self.e)))
            losses = np.array([u - self.e, u])
            logs = np.array([low, high], dtype=np.longdouble)
            result.append(
                [(DiscreteLosses(losses, logs, 0.0, 64.0 * FINE, off=roundoff(4.0) * self.e), 1)]
            )
        return result

    @property
    def closed_form_up_to(self) -> int:  # type: ignore[override]
        """``MOST`` steps or more for Laplace noise without sampling; otherwise one step."""
        if not self.atoms or self.q < 1.0:
            return 1
        atoms = math.log(0.5 + 0.5 * math.exp(-self.e))
        return max(MOST, min(MOST_ATOMS, int(_ALL_ATOMS / atoms) if atoms < 0.0 else MOST_ATOMS))

    def delta(self, t: float, flipped: bool, count: int = 1) -> tuple[float, float]:
        """Bound delta(t) of ``count`` steps in closed form.

        With sampling, delta(t) in either order is delta of the pair without sampling at another
        level, times a factor.
        """
        if count > 1:
            return laplace_delta(self.e, count, t)
        factor, level = 1.0, t
        if self.q < 1.0 and not flipped:
            factor, level = self.q, unsampled_level(t, self.q)
        elif self.q < 1.0:
            # 1 - (1-q) e^t, without cancellation for small t.
            factor = self.q - (1.0 - self.q) * math.expm1(min(t, 700.0))
            if factor <= 0.0:
                return 0.0, 0.0
            level = t + math.log(self.q / factor)
        if level >= self.e:
            close = level - self.e < roundoff(64.0) * (1.0 + self.e)  # it may be below
            return 0.0, roundoff(64.0) * factor * (1.0 + self.e) if close else 0.0
        if self.atoms:
            value, slope = -math.expm1(0.5 * (level - self.e)), 0.5
        else:
            gap = -math.expm1(0.5 * (level - self.e))
            value, slope = gap * gap / -math.expm1(-self.e), gap / -math.expm1(-self.e)
        error = factor * (
            roundoff(16.0) * value + roundoff(slope * 16.0) * (abs(level) + self.e + 1.0)
        )
        error += roundoff(16.0) * (value + slope) * (1.0 if flipped else 0.0)  # of the factor
        value *= factor
        return max(value - error, 0.0), min(value + error + 1e-322, 1.0)

    @lru_cache(maxsize=2)  # noqa: B019  (one for each side)
    def cells(self, far: float, count: int) -> Cells:
        """Return equal cells of the interval before subsampling."""
        edges = np.linspace(-self.e, self.e, count)
        width = np.log(-2.0 * np.expm1(-0.5 * np.diff(edges)))
        # P is the first distribution of the pair, mixed with Q if there is subsampling.
        q = self.log_density - 0.5 * (edges[:-1] + self.e) + width
        p = self.log_density + 0.5 * (edges[1:] - self.e) + width
        _, chances = self._ends
        never = np.array([-math.inf])
        low, high = (chances[:1], chances[1:]) if self.atoms else (never, never)
        q = np.concatenate([low, q, high])
        p = np.concatenate([low - self.e, p, high + self.e])
        if self.q < 1.0:
            p = np.logaddexp(math.log1p(-self.q) + q, math.log(self.q) + p)
        losses, off = self._losses(edges)
        error = roundoff(64.0 + 4.0 * count + 4.0 * self.e)  # widths are differences of edges
        return Cells(losses, p, q, float(off.max()) + roundoff(8.0) * self.e, error, bounded=True)


# Moments without sampling, in closed form.
#
# With a = w - 1/2, z = ae and y = e/2, the moments Phi(w) = E_Q e^(wL) are even in z:
#
#     Laplace noise: e^-y (cosh z + y sinh(z)/z);      bounded range: y sinh(z) / (z sinh y).
#
# Both are 1 at z = y. If e and Re z are small, they are computed as their excess over one, of
# second order in small losses: cosh z - cosh y = 2 sinh(we/2) sinh((w-1)e/2), and the difference of
# sinh(z)/z and sinh(y)/y is w (w-1) e^2 times a series. Otherwise they are computed as
# e^(z-y) ((1 + e^-2z)/2 + y R) and e^(z-y) R / R(y), with R = (1 - e^-2z)/(2z) and Re z >= 0, so
# that |R| <= 1 and |z R'| <= 2.


#: Largest Re z and e/2 at which moments are computed as their excess over one.
_MODEST = 1.0
#: Coefficients 1/(2n+1)!, n = 1, 2, ...; for |z| <= 1 the first one left out is below 2^-60.
_ODD = [1.0 / math.factorial(2 * n + 1) for n in range(1, 11)]
#: Units of roundoff of the excess over one, relative to (|w| + |w-1|)^2 e^2: each of both sinh is
#: off by 4 units and by 7 in its argument, which includes 4 of e. cosh(1) cosh(1/2)/2 < 1 bounds
#: the other factors. The series adds at most 16.
_EXCESS_UNITS = 64.0
#: Units of roundoff of the sum behind e^(z-y), relative to 1 + |z| + e, for the same reasons.
_SUM_UNITS = 64.0


def _log_moments(e: float, atoms: bool, c: float, angles: Floats) -> tuple[Complexes, Floats]:
    """Return ln Phi(c + i angle) without sampling, and bounds on its error."""
    w = np.asarray(c + 1j * angles, dtype=np.complex128)
    y = 0.5 * e
    z = (w - 0.5) * e
    z = -z if c < 0.5 else z
    if max(abs(c - 0.5) * e, y) <= _MODEST:
        excess = y * _rise(z, w * (w - 1.0) * e * e, y)
        if atoms:
            excess = (2.0 * np.sinh(w * y) * np.sinh((w - 1.0) * y) + excess) * math.exp(-y)
        else:
            excess /= math.sinh(y)
        size = np.abs(w) + np.abs(w - 1.0)
        return log1p_with_error(excess, roundoff(_EXCESS_UNITS) * (size * e) ** 2)
    with np.errstate(under="ignore"):
        small = np.expm1(-2.0 * z)
        R = np.where(z == 0.0, 1.0, -0.5 * small / np.where(z == 0.0, 1.0, z))
    values = 1.0 + 0.5 * small + y * R if atoms else R
    error = roundoff(_SUM_UNITS) * (1.0 + np.abs(z) + e)
    if not atoms:
        values = values * (2.0 * y / -math.expm1(-e))
        error = error * np.abs(values)
    logs, errors = log1p_with_error(np.asarray(values - 1.0, dtype=np.complex128), error)
    return logs + (z - y), errors + roundoff(8.0) * (np.abs(z) + e)


def _rise(z: Complexes, square: Complexes, y: float) -> Complexes:
    """Return sinh(z)/z - sinh(y)/y, y <= 1, with the difference ``square`` of z^2 and y^2."""
    near = np.abs(z) <= 1.0
    result = np.empty(len(z), dtype=np.complex128)
    small = z[near] ** 2
    sums, powers, last = np.zeros(len(small), dtype=np.complex128), np.ones_like(small), 1.0
    for coefficient in _ODD:
        sums += coefficient * powers
        last *= y * y
        powers = small * powers + last
    result[near] = square[near] * sums
    far = z[~near]
    result[~near] = np.sinh(far) / far - math.sinh(y) / y
    return result


@lru_cache(maxsize=256)
def _cumulant(e: float, atoms: bool, c: float) -> tuple[float, float, float]:
    """Return ln Phi(c) without sampling, and its first two derivatives; no error bounds."""
    y, z = 0.5 * e, abs(c - 0.5) * e
    values, _ = _log_moments(e, atoms, c, np.zeros(1))
    small = math.exp(-2.0 * z)
    cosh = 0.5 * (1.0 + small)  # all relative to e^z
    sinh = 0.5 * -math.expm1(-2.0 * z)
    if z > 0.05:
        ratio = sinh / z
        first = (cosh - ratio) / z
        second = ratio - 2.0 * first / z
    else:
        scale = math.exp(-z)
        ratio, first = scale * (1.0 + z * z / 6.0), scale * z * (1.0 + 0.1 * z * z) / 3.0
        second = scale * (1.0 / 3.0 + 0.1 * z * z)
    if atoms:
        ratio, first, second = cosh + y * ratio, sinh + y * first, cosh + y * second
    slope = first / ratio
    return (
        float(values[0].real),
        math.copysign(e * slope, c - 0.5),
        e * e * max(second / ratio - slope * slope, 0.0),
    )


# Permute-and-flip selects a candidate. It is the noisy maximum with exponential noise of the rate
# e/2 per unit of sensitivity (Ding et al. 2021, arXiv:2105.07260). Its curve is at most the curve
# of Laplace noise of level e:
#
# Let A be a set of candidates, and D the largest noisy score in A minus the largest one outside.
# P(A) - e^t Q(A) is largest if all scores in A fall by one and all others rise by one, so that it
# is G(0) - e^t G(2) with G(x) = P(D > x). The maximum of some shifted exponential numbers has a
# density of at most e/2 P(exactly one exceeds y) <= e/2 P(it exceeds y). Applied to either maximum,
# given the other one, this bounds the density g of D by e/2 min(G, 1 - G). Laplace noise of scale
# 2/e has the density e/2 min(L, 1 - L) and the survival function L. So L^-1(G(x)) rises by at most
# 2 from x = 0 to 2, and G(2) is at least L(L^-1(G(0)) + 2), which is the trade-off curve of Laplace
# noise. Two candidates attain each point of the curve. docs/theory/selection.md has the details.


class PermuteAndFlip(Interval):
    """Permute-and-flip of level e, bounded by Laplace noise, subsampled with probability q."""

    def __init__(self, e: float, q: float = 1.0) -> None:
        super().__init__(e, True, q)
        self.key = ("permute-and-flip", e, q)

    @property
    def is_noise(self) -> bool:
        """Always False."""
        return False

    @property
    def attained(self) -> bool:  # type: ignore[override]
        """Always False: other scores attain the curve at other levels."""
        return False

    def changed(self, times: float, q: float) -> Interval:
        """Return the same kind of step with more losses, sampled with probability q."""
        return PermuteAndFlip(self.e * times, q)

    def witnesses(self) -> list[Releases]:
        """Return the choice between two candidates whose scores differ by some amounts."""
        if self.q < 1.0:
            return []
        result: list[Releases] = []
        for x in (self.e * np.arange(-63.0, 64.0) / 64.0 - 0.5 * self.e).tolist():
            p, q = (_laplace_above(x), _laplace_above(x + self.e))
            masses = np.array([[1.0 - p, p], [1.0 - q, q]], dtype=np.longdouble)
            losses = np.log(masses[0]) - np.log(masses[1])
            off = roundoff(64.0) * (1.0 + self.e) / float(masses.min())
            result.append(
                [
                    (
                        DiscreteLosses(
                            (losses - losses[0]).astype(np.float64),
                            np.log(masses[0]),
                            0.0,
                            off,
                            shift=float(losses[0]),
                            off=2.0 * off,
                        ),
                        1,
                    )
                ]
            )
        return result


def _laplace_above(x: float) -> float:
    """Return P(L > x) of Laplace noise of scale 1."""
    return 0.5 * math.exp(-x) if x > 0.0 else -0.5 * math.expm1(x) + 0.5


# A few steps of Laplace noise, in closed form.
#
# With a = s + 1/2 and losses in [-e, e], one step has the moments
#
#     M(s) = e^(-e/2) (e^(ae) (1/2 + 1/(4a)) + e^(-ae) (1/2 - 1/(4a))),
#
# so the contour integral of M^k is a sum of residues at a = 1/2 and a = 0. Let
# x_j = (2j - k) e - t. Over all j with positive x_j,
#
#     delta(t) = 1 - 4 e^((t - ke)/2) sum_j C(k, j) sum_n p(j, n) sum_m 4^m x_j^(n-1-2m)/(n-1-2m)!,
#
# where p(j, n) is the coefficient of a^-n in (1/2 + 1/(4a))^j (1/2 - 1/(4a))^(k-j), 1 <= n <= k.
# The terms cancel, so they are summed as integers with additional binary digits. The sum over m is
# inner(n) = x_j^(n-1)/(n-1)! + 4 inner(n-2).


#: Maximum number of steps in closed form.
MOST = 40
#: The same if a contour would be of no use, because most losses are atoms.
MOST_ATOMS = 120
#: Logarithm of the probability that all losses are atoms, below which a contour is of use.
_ALL_ATOMS = -25.0
#: Relative error of a level, which is a rounded reciprocal of the scale.
_OFF = Fraction(1, 1 << 52)
#: Binary digits of delta that are asked for, of the first trial after the point, and the most.
_DIGITS = 60
_BITS = 110
_MOST_BITS = 4000
#: Most binary digits that are carried.
_LONGEST = 10_000
#: Logarithm of 1 - delta below which delta is the last double before one, or one.
_NEARLY_ONE = -40.0


@lru_cache(maxsize=4)
def _coefficients(k: int) -> list[list[int]]:
    """Return 2^(k+n) p(j, n) for j and n = 0 .. k: the powers of u in (1 + u)^j (1 - u)^(k-j)."""
    row = [math.comb(k, n) * (-1) ** n for n in range(k + 1)]
    rows = [row]
    for _ in range(k):
        # Times (1 + u) / (1 - u): sums of all earlier coefficients, twice the last ones but one.
        sums = list(accumulate(row))
        row = [after + before for after, before in zip(sums, [0, *sums], strict=False)]
        rows.append(row)
    return rows


def laplace_delta(e: float, k: int, t: float) -> tuple[float, float]:
    """Bound delta(t) of k steps of Laplace noise of level e; delta increases with e.

    The cost is O(k^2) operations on integers of some k + 100 bits, or more if delta is small.

    Examples
    --------
    >>> low, high = laplace_delta(1.0, 2, 0.0)
    >>> round(low, 12), round(high, 12)
    (0.448180838243, 0.448180838243)
    """
    # 1 - delta = E min(1, e^(t-L)) <= M(-1/2) e^(t/2), and M(-1/2) = e^(-e/2) (1 + e/2).
    if k * (math.log1p(0.5 * e) - 0.5 * e) * (1.0 - 1e-9) + 0.5 * t < _NEARLY_ONE:
        return math.nextafter(1.0, 0.0), 1.0
    bits = _BITS
    while True:
        low, high = (_delta(e, k, t, bits, sign) for sign in (-1, 1))
        # Each is good to a unit of 2^-bits.
        if high.bit_length() > _DIGITS or bits > _MOST_BITS or k * e * (1.0 + 2.0**-51) <= t:
            break
        bits += max(_DIGITS - high.bit_length(), 1) + _DIGITS
    if k * e * (1.0 + 2.0**-51) <= t:  # beyond all losses
        return 0.0, 0.0
    below, above = (Fraction(number, 1 << bits) for number in (max(low - 1, 0), max(high, 0) + 1))
    return (
        max(math.nextafter(float(below), -1.0), 0.0),
        min(math.nextafter(float(above), 2.0), 1.0),
    )


def _delta(e: float, k: int, t: float, digits: int, sign: int) -> int:
    """Return the sum with the level rounded down or up, in units of 2^-digits, good to one unit.

    Let a unit be 2^-bits. Powers x^r/r! are off by at most 2 e^x + 1 units: by one in each step,
    which later steps multiply by x^i/i! at most, and by one in x. With sum over n of |p(j, n)| 2^n
    at most 1, all terms are off by at most 2^k (3 e^x + 2) units, for the largest x = ke - t. The
    factor before the sum is at most 4 e^(-x/2), so that the result is off by 2^(k+5) e^(x/2) units.
    """
    level = Fraction(e) * (1 + sign * _OFF)
    largest = k * level - Fraction(t)
    if largest <= 0:
        return 0
    bits = digits + k + 8 + math.ceil(min(float(largest), 1e9) / 1.386)
    if bits > _LONGEST:
        raise TooMuchWork
    total, one = 0, 1 << bits
    step, at = (int(number * one) for number in (level, Fraction(t)))
    rows = _coefficients(k)
    for j in range(k, -1, -1):
        x = (2 * j - k) * step - at
        if x <= 0:
            break
        power, older, last, inner = one, 0, 0, 0
        for n in range(1, k + 1):
            older, last = last, power + 4 * older
            inner += (rows[j][n] * last) << (k - n)
            power = ((power * x) >> bits) // n
        total += math.comb(k, j) * inner
    total >>= 2 * k
    with decimal.localcontext(decimal.Context(prec=bits // 3 + 40, Emin=-999999, Emax=999999)):
        half = -(Decimal(largest.numerator) / Decimal(largest.denominator)) / 2
        scale = int(half.exp() * Decimal(4 << bits))
    result = one - ((scale * total) >> bits)
    return result >> (bits - digits)
