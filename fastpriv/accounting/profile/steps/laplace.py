"""Laplace noise and mechanisms of bounded range: losses on an interval."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from functools import lru_cache

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.discrete import FINE, DiscreteLosses, Releases
from fastpriv.accounting.profile.losses import Cells, ContinuousStep, Nodes, TooMuchWork

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
        self.key = ("laplace" if atoms else "range", e, q)
        self.log_density = math.log(0.25) if atoms else -math.log(-2.0 * math.expm1(-e))

    def _losses(self, plain: Floats) -> tuple[Floats, Floats]:
        """Return the losses after subsampling, and their errors."""
        if self.q == 1.0:
            return plain, 2.0 * ULP * np.abs(plain)
        near = self.q * np.expm1(np.minimum(plain, 1.0))
        rest = math.log1p(-self.q)
        far = np.logaddexp(rest, math.log(self.q) + plain)
        losses = np.where(plain <= 1.0, np.log1p(near), far)
        return losses, 4.0 * ULP * (np.minimum(np.abs(near), np.abs(losses)) + np.abs(losses))

    @property
    def _ends(self) -> tuple[Floats, Floats]:
        """Return the atoms, and the logarithms of their masses under Q."""
        if not self.atoms:
            return np.zeros(0), np.zeros(0)
        return np.array([-self.e, self.e]), np.array([math.log(0.5), math.log(0.5) - self.e])

    @lru_cache(maxsize=8)  # noqa: B019  (pairs are few and small)
    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Return Gauss-Legendre rules on panels, with errors 64/15 M r^-2n/(1 - r^-2)."""
        turn = abs(c) + angle + 1.0
        panels = max(1, math.ceil(2.0 * self.e * max(turn / 6.0, 0.7)))
        if panels * _RULE > _POINTS:
            raise TooMuchWork
        half = self.e / panels
        at, weights = np.polynomial.legendre.leggauss(_RULE)
        middles: Floats = half * (2.0 * np.arange(panels, dtype=np.float64) + 1.0 - panels)
        points = (middles[:, None] + half * at).reshape(-1)
        logs = self.log_density - 0.5 * (points + self.e) + math.log(half)
        logs += np.tile(np.log(weights), panels)
        ends, chances = self._ends
        points, logs = np.concatenate([points, ends]), np.concatenate([logs, chances])
        losses, off = self._losses(points)
        fuzz = ULP * (64.0 + 4.0 * self.e + np.abs(logs))
        off = off + 8.0 * ULP * self.e * (0.0 if len(points) == len(ends) else 1.0)

        def remainder(angles: Floats, scale: float) -> Floats:
            return self._remainder(c, angles, middles, half) * math.exp(-scale)

        return Nodes(logs, losses, fuzz, off, remainder)

    def _remainder(self, c: float, angles: Floats, middles: Floats, half: float) -> Floats:
        """Bound the error of the rules by the integrand on ellipses with |Im l| <= y < pi."""
        best = np.full(len(angles), math.inf)
        for r in _ELLIPSES.tolist():
            y, x = 0.5 * half * (r - 1.0 / r), 0.5 * half * (r + 1.0 / r)
            if y > 2.6:
                break
            factor = math.log(64.0 / 15.0) - 2.0 * _RULE * math.log(r) - math.log1p(-(r**-2))
            turned = max(-c, 0.0) * -math.log(math.cos(0.5 * y)) if self.q < 1.0 else 0.0
            # The mean over panels of the maximum on their ellipses.
            low, high = self._losses(middles - x)[0], self._losses(middles + x)[0]
            start = self.log_density - 0.5 * (middles - x + self.e) + math.log(half) + factor
            tilted = np.logaddexp.reduce(start + np.maximum(c * low, c * high)) + turned
            plain = np.logaddexp.reduce(start + np.maximum(high, 0.0))
            size = 2.0 * (abs(c) + angles) + 1.0
            logs = np.logaddexp(tilted + angles * y, plain + np.log(size))
            best = np.minimum(best, np.exp(np.minimum(logs, 700.0)))
        return best * 1.001

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
                [(DiscreteLosses(losses, logs, 0.0, 64.0 * FINE, off=4.0 * ULP * self.e), 1)]
            )
        return result

    @property
    def closed_form_up_to(self) -> int:  # type: ignore[override]
        """``MOST`` steps for Laplace noise without sampling; otherwise one step."""
        return MOST if self.atoms and self.q == 1.0 else 1

    def delta(self, t: float, flipped: bool, count: int = 1) -> tuple[float, float]:
        """Bound delta(t) of ``count`` steps in closed form.

        With sampling, delta(t) in either order is delta of the pair without sampling at another
        level, times a factor.
        """
        if count > 1:
            return laplace_delta(self.e, count, t)
        factor, level = 1.0, t
        if self.q < 1.0 and not flipped:
            factor, level = self.q, math.log1p(math.expm1(min(t, 700.0)) / self.q)
        elif self.q < 1.0:
            # 1 - (1-q) e^t, without cancellation for small t.
            factor = self.q - (1.0 - self.q) * math.expm1(min(t, 700.0))
            if factor <= 0.0:
                return 0.0, 0.0
            level = t + math.log(self.q / factor)
        if level >= self.e:
            close = level - self.e < 64.0 * ULP * (1.0 + self.e)  # it may be below
            return 0.0, 64.0 * ULP * factor * (1.0 + self.e) if close else 0.0
        if self.atoms:
            value, slope = -math.expm1(0.5 * (level - self.e)), 0.5
        else:
            gap = -math.expm1(0.5 * (level - self.e))
            value, slope = gap * gap / -math.expm1(-self.e), gap / -math.expm1(-self.e)
        error = factor * (16.0 * ULP * value + slope * 16.0 * ULP * (abs(level) + self.e + 1.0))
        error += 16.0 * ULP * (value + slope) * (1.0 if flipped else 0.0)  # of the factor
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
        error = ULP * (64.0 + 4.0 * count + 4.0 * self.e)  # widths are differences of edges
        return Cells(losses, p, q, float(off.max()) + 8.0 * ULP * self.e, error, bounded=True)


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
# The terms cancel, so they are summed with additional decimal digits.


#: Maximum number of steps in closed form.
MOST = 40
#: Relative error of a level, which is a rounded reciprocal of the scale.
_OFF = Decimal(2) ** -52


@lru_cache(maxsize=64)
def _coefficients(k: int, j: int) -> tuple[int, ...]:
    """Return 2^(k+n) p(j, n) for n = 0 .. k."""
    return tuple(
        sum(
            math.comb(j, i) * math.comb(k - j, n - i) * (-1) ** (n - i)
            for i in range(max(0, n - k + j), min(j, n) + 1)
        )
        for n in range(k + 1)
    )


def laplace_delta(e: float, k: int, t: float) -> tuple[float, float]:
    """Bound delta(t) of k steps of Laplace noise of level e; delta increases with e.

    The cost is O(k^3) operations on decimal numbers of 60 digits, or more if they cancel.

    Examples
    --------
    >>> low, high = laplace_delta(1.0, 2, 0.0)
    >>> round(low, 12), round(high, 12)
    (0.448180838243, 0.448180838243)
    """
    digits = 60
    while True:
        low, high = (_delta(e, k, t, digits, sign) for sign in (-1, 1))
        if high[1] <= max(high[0], Decimal(0)) * Decimal(2) ** -60 or digits > 1200:
            break
        digits *= 2
    if high[0] == high[1] == 0:  # beyond all losses
        return 0.0, 0.0
    return (
        max(math.nextafter(float(low[0] - low[1]), -1.0), 0.0),
        min(math.nextafter(float(max(high[0] + high[1], Decimal(0))), 2.0), 1.0),
    )


def _delta(e: float, k: int, t: float, digits: int, sign: int) -> tuple[Decimal, Decimal]:
    """Return the sum with the level rounded down or up, and a bound on its error."""
    with decimal.localcontext(decimal.Context(prec=digits, Emin=-999999, Emax=999999)):
        level, at = Decimal(e) * (1 + sign * _OFF), Decimal(t)
        if k * level <= at:
            return Decimal(0), Decimal(0)
        total = size = Decimal(0)
        for j in range(k + 1):
            x = (2 * j - k) * level - at
            if x <= 0:
                continue
            powers = [Decimal(1)]
            for r in range(1, k):
                powers.append(powers[-1] * x / r)
            for n, p in enumerate(_coefficients(k, j)):
                inner = sum((4**m * powers[n - 1 - 2 * m] for m in range((n + 1) // 2)), Decimal(0))
                term = Decimal(math.comb(k, j) * p) * inner / 2 ** (k + n)
                total, size = total + term, size + abs(term)
        scale = 4 * ((at - k * level) / 2).exp()
        error = (1 + scale * size) * Decimal(10) ** (6 - digits)
        return 1 - scale * total, error
