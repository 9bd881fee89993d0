"""Gaussian noise, and Gaussian mixtures: subsampled Gaussian noise in either relation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import roundoff
from fastpriv._core.search import bisect
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.losses import (
    Cells,
    Complexes,
    ContinuousStep,
    Nodes,
    OutOfRange,
    RecentRules,
    TooMuchWork,
    gauss_legendre,
    log_sum_above,
    unsampled_level,
)

# Pairs of mixtures of normal distributions: subsampled Gaussian noise in either relation.
#
# In units of the noise, with phi the standard normal density,
#
#     P = phi A,  A(x) = sum_i p_i e^(a_i x - a_i^2/2),      0 <= a_i <= a,
#     Q = phi B,  B(x) = sum_j q_j e^(-b_j x - b_j^2/2),     0 <= b_j <= b,
#
# so the loss ln A/B increases with x. Poisson-subsampled Gaussian noise has
# A = 1 - q + q e^(x/sigma - 1/(2 sigma^2)). B = 1 if a record is removed, and B is the mirror image
# of A if a record is replaced.


#: Largest angle between the terms of A or of B in the strip of analyticity. Below pi, the terms do
#: not cancel, so A and B have no zero.
_TURN = 0.85 * math.pi
#: Heights of the strip that are tried, relative to the largest height.
_HEIGHTS: Floats = np.asarray(0.8 ** np.arange(16.0))
#: Maximum number of quadrature points.
_POINTS = 1 << 20
#: Number of cells on which total variations are bounded.
_CELLS = 1 << 12
#: Number of cells for lines above the real axis.
_LIFTED = 1 << 10
#: Decrease of the log-integrand beyond these cells, per unit of the noise.
_STEEP = 16.0
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)

#: Number of equally long arrays of a quadrature; the cache of quadratures is limited to 64 MB.
_ARRAYS = 5
_RULES = RecentRules(1 << 26)

#: Largest x whose e^x does not overflow, with room for factors.
_LARGEST_EXPONENT = 700.0
#: Sums of probabilities below this may have lost digits to underflow.
_LITTLE = 1e-290
#: Absolute errors of a few subnormal numbers.
_UNDERFLOW = 1e-322
#: Smallest argument of a logarithm or denominator that may be zero.
_SMALLEST = 1e-300
#: Factor that covers the rounding of masses of cells, of their sums and of repeated squares.
_MASS_MARGIN = 1.001
#: Relative error of angles, far above their rounding.
_ANGLE_MARGIN = 1e-9
#: Largest logarithm of a bound that is kept: bounds above one are of no use.
_LARGEST_LOG = 300.0

#: Positive shifts in units of the noise and their probabilities; the remainder is at zero.
Shifts = tuple[tuple[float, float], ...]


class _Sum:
    """One of the functions A and B: shifts c with probabilities p, the remainder at zero."""

    def __init__(self, shifts: Shifts) -> None:
        kept = [(c, p) for c, p in shifts if c > 0.0 and p > 0.0]
        self.c: Floats = np.array([c for c, _ in kept], dtype=np.float64)
        self.p: Floats = np.array([p for _, p in kept], dtype=np.float64)
        rest = math.fsum([1.0, *(-self.p).tolist()])
        self.slack = 0.0 if len(self.p) <= 1 else roundoff(4.0) * len(self.p)
        self.rest = 0.0 if rest <= self.slack else rest
        self.most = float(self.c.max(initial=0.0))
        #: Shifts and probabilities in one array, and the probability of no shift, for kernels.
        self.plain = np.array([self.c, self.p]), self.rest if len(self.c) else 1.0

    def logs(self, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return ln of the sum, a bound on its error, and mean and variance of c given x."""
        if not len(self.c):
            zero = np.zeros(len(x))
            return zero, zero, zero, zero
        c, p = self.c[:, None], self.p[:, None]
        u = c * x - 0.5 * c * c
        parts = np.concatenate(
            [
                np.log(p) + u,
                np.full((1, len(x)), math.log(self.rest) if self.rest > 0.0 else -math.inf),
            ]
        )
        most = parts.max(axis=0)
        masses = np.exp(parts - most)
        total = masses.sum(axis=0)
        given = masses[:-1] / total
        small = np.abs(u).max(axis=0) <= 1.0
        near = np.expm1(np.where(small, u, 0.0))
        logs = np.where(small, np.log1p((p * near).sum(axis=0)), most + np.log(total))
        sizes = np.where(small, (p * np.abs(near)).sum(axis=0), 4.0 + np.abs(most))
        inputs = (given * (np.abs(c * x) + c * c)).sum(axis=0)
        off = roundoff(6.0 * sizes + 4.0 * inputs + 2.0 * np.abs(logs)) + self.slack
        mean = (given * c).sum(axis=0)
        variance = (given * c * c).sum(axis=0) - mean * mean
        return logs, off, mean, np.maximum(variance, 0.0)

    def mean(self, x: float) -> float:
        """Return the mean of c given x; used only to choose a window."""
        parts = list(zip(self.c.tolist(), self.p.tolist(), strict=True))
        logs = [math.log(p) + c * (x - 0.5 * c) for c, p in parts]
        most = max(*logs, math.log(max(self.rest, _SMALLEST)))
        masses = [math.exp(max(log - most, -_LARGEST_EXPONENT)) for log in logs]
        total = math.fsum(masses) + self.rest * math.exp(min(-most, _LARGEST_EXPONENT))
        return math.fsum(m * c for m, (c, _) in zip(masses, parts, strict=True)) / total

    def angle(self, x: Floats, d: float) -> Floats:
        """Return the angle of the sum at x + id; d times the largest shift must be below pi.

        The angle increases with x.
        """
        if not len(self.c):
            return np.zeros(len(x))
        c, p = self.c[:, None], self.p[:, None]
        logs = np.log(p) + c * x - 0.5 * c * c
        most = np.maximum(logs.max(axis=0), math.log(max(self.rest, _SMALLEST)))
        with np.errstate(under="ignore"):
            parts = np.exp(logs - most)
            real = (parts * np.cos(c * d)).sum(axis=0) + self.rest * np.exp(-most)
            return np.asarray(np.arctan2((parts * np.sin(c * d)).sum(axis=0), real))

    def tail(self, y: float, sign: float, t: float = 0.0) -> float:
        """Return e^t times the probability of outputs above y, with shifts up (1) or down (-1)."""
        shifts = [
            (0.0, self.rest if len(self.c) else 1.0),
            *zip(self.c.tolist(), self.p.tolist(), strict=True),
        ]
        plain = math.fsum(0.5 * p * math.erfc((y - sign * c) / math.sqrt(2.0)) for c, p in shifts)
        if t == 0.0 or (t <= _LARGEST_EXPONENT and plain >= _LITTLE):
            return math.exp(t) * plain
        from scipy.special import log_ndtr

        logs = [t + float(log_ndtr(sign * c - y)) for c, _ in shifts]
        terms = zip(logs, shifts, strict=True)
        return math.fsum(p * math.exp(min(log, _LARGEST_EXPONENT)) for log, (_, p) in terms)


@dataclass(frozen=True, eq=False)
class _Cells:
    """Cells of outputs of width h around x under phi A^c B^(1-c) / Phi(c).

    ``tilt`` is the derivative of the logarithm ``logs`` and changes by at most G per unit.
    ``masses`` are upper bounds. ``outside`` is an upper bound on the mass outside all cells.
    """

    h: float
    G: float
    x: Floats
    tilt: Floats
    logs: Floats
    masses: Floats
    outside: float


def _falls(angles: Floats, masses: Floats, turns: list[Floats], logs: Floats) -> Floats:
    """Return the smallest sum of masses e^(log - angle turn) over lines, at increasing angles.

    The kernel squares the exponentials of an angle to get those of twice the angle. To cover the
    errors of these squares, masses must be raised by ``_MASS_MARGIN`` and turns lowered by
    ``_ANGLE_MARGIN``.
    """
    octave = int(np.searchsorted(angles, 2.0 * angles[0] * (1.0 - _ANGLE_MARGIN)))
    if not np.allclose(angles[octave:], 2.0 * angles[:-octave], rtol=1e-10, atol=0.0):
        octave = len(angles)
    sums = np.zeros((max(len(turns), 1), len(angles)))
    if turns:
        kernels.lifted_falls(angles, octave, np.array(turns), masses, logs, sums)
    else:
        sums += 1.0
    return np.asarray(np.minimum(sums.min(axis=0), 1.0))


class GaussianMixture(ContinuousStep):
    """Pair of a mixture P of normal distributions shifted up and a mixture Q shifted down.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise.
    up, down : tuples of (shift, probability)
        Positive shifts and their probabilities; the remaining probability is at zero.
    """

    #: Largest output; a subclass leaves out larger ones.
    cut: float = math.inf

    def __init__(self, sigma: float, up: Shifts, down: Shifts = ()) -> None:
        self.key = ("mixtures", sigma, up, down)
        self.symmetric = up == down or (not down and len(up) == 1 and up[0][1] == 1.0)
        self.up = tuple((c / sigma, p) for c, p in up)
        self.down = tuple((c / sigma, p) for c, p in down)
        self._A, self._B = _Sum(self.up), _Sum(self.down)
        self.a, self.b = self._A.most, self._B.most

    def gaussian_square(self, zcdp: bool) -> tuple[float, float] | None:
        """Return mu^2 of the most distant components, which is the limit and an upper bound."""
        _, sigma, up, down = self.key
        first, second = (max((c for c, _ in side), default=0.0) for side in (up, down))
        return (first / sigma) ** 2, ((first + second) / sigma) ** 2

    def _reach(self, c: float) -> tuple[float, float]:
        """Return points beyond which ln(phi A^c B^(1-c)) decreases outwards, on either side.

        The derivative is -x + c m_A - (1-c) m_B with 0 <= m_A <= a and 0 <= m_B <= b.
        """
        first, second = c * self.a, (c - 1.0) * self.b
        return min(first, 0.0) + min(second, 0.0), max(first, 0.0) + max(second, 0.0)

    def _window(self, c: float, steep: float) -> tuple[float, float]:
        """Return points beyond which this logarithm decreases outwards by ``steep`` per unit.

        For c < 0 and B = 1 the logarithm is concave, so its derivative determines the points.
        """
        low, high = self._reach(c)
        if c < 0.0 and not self.down:

            def steeper(y: float) -> bool:
                return -y + c * self._A.mean(y) >= steep

            return bisect(steeper, low - steep, 0.0, absolute=0.1)[0], high + steep
        return low - steep, high + steep

    def _losses(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the losses, their errors, and ln B."""
        first, off, _, _ = self._A.logs(x)
        second, more, _, _ = self._B.logs(-x)
        losses = first - second
        return losses, off + more + roundoff(2.0) * np.abs(losses), second

    def _strip(self, c: float, d: float) -> float:
        """Bound ln of the mean of |phi A^w B^(1-w)| at height d, relative to the real line.

        The bound omits the factor for the angle. The terms of A lie within an angle a d of each
        other, so |A(x + id)| >= A(x) cos(a d/2). The same holds for B with b.
        """
        turned = max(-c, 0.0) * -math.log(math.cos(0.5 * self.a * d))
        turned += max(c - 1.0, 0.0) * -math.log(math.cos(0.5 * self.b * d))
        return 0.5 * d * d + turned

    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Return the trapezoidal rule on the real line, with a step set by the strip."""
        return self.rule(c, angle, tolerance, math.inf)[1]

    def rule(
        self, c: float, angle: float, tolerance: float, eta: float
    ) -> tuple[Floats, Nodes, Callable[[Floats], Floats]]:
        """Return outputs, their weights, and the error of the rule at angles, relative to 0.

        The rule also holds for integrands times Phi(+-(x - x0) / eta), for any x0. At height d this
        factor is at most e^(d^2 / (2 eta^2)) times its value on the real line. Each tail beyond the
        first and the last output is less than the integrand there.
        """

        def make() -> tuple[tuple[Floats, Nodes, Callable[[Floats], Floats]], int]:
            made = self._rule(c, angle, tolerance, eta)
            return made, _ARRAYS * made[0].nbytes

        return _RULES.get((self, c, angle, tolerance, eta), make)

    def _spacing(self, c: float, angle: float, far: float, eta: float) -> tuple[float, float]:
        """Return the widest spacing with an error of e^-far, and the height that proves it."""
        widest = _TURN / max(self.a, self.b)
        widest = min(widest, math.sqrt(2.0 * far) + 1.0, eta * math.sqrt(2.0 * far))
        # The error of the trapezoidal rule is 2 / (e^(2 pi d/h) - 1) times the mean at height d.
        best = (0.0, 0.0)
        for d in (widest * _HEIGHTS).tolist():
            exponent = far + 2.0 + self._strip(c, d) + angle * (self.a + self.b) * d
            best = max(best, (2.0 * math.pi * d / (exponent + 0.5 * (d / eta) ** 2), d))
        return best

    def _rule(
        self, c: float, angle: float, tolerance: float, eta: float
    ) -> tuple[Floats, Nodes, Callable[[Floats], Floats]]:
        """Compute what ``rule`` returns and caches."""
        far = math.log(1.0 / tolerance)
        h, d = self._spacing(c, angle, far, eta)
        reach = math.sqrt(2.0 * far) + 2.0
        low, high = self._window(c, reach)
        low, high = min(low, -self.b - reach), max(high, self.a + reach)
        if high - low > _POINTS * h:
            raise TooMuchWork
        steps = np.arange(math.ceil((high - low) / h) + 2, dtype=np.float64)
        x: Floats = math.floor(low / h) * h + h * steps
        losses, off, second = self._losses(x)
        logs = -0.5 * x * x + (math.log(h) - _HALF_LOG_TWO_PI) + second
        fuzz = roundoff(4.0) * (4.0 + x * x + np.abs(second)) + 2.0 * off
        tails = self._tails(c, x[[0, -1]], losses[[0, -1]], second[[0, -1]])
        rule = math.log(2.0) - 2.0 * math.pi * d / h + 0.01  # ln of 2 / (e^(2 pi d/h) - 1)
        strip, lifted = self._strip(c, d) + 0.5 * (d / eta) ** 2, 0.5 * d * d
        # The error is a share of Phi(c), which the sum, the tails and that share itself bound.
        total = log_sum_above(Nodes(logs, losses, fuzz, off, lambda a, s: a), c)
        share = math.exp(min(strip + rule, 0.0))
        if not share < 0.5:
            raise OutOfRange
        value = float(np.logaddexp(total, tails[0])) - math.log1p(-share) + 1e-9

        def remainder(angles: Floats, scale: float) -> Floats:
            size = 2.0 * (abs(c) + angles) + 1.0
            turned = value + strip + rule + angles * (self.a + self.b) * d
            logs = np.logaddexp(turned, tails[0]), np.logaddexp(lifted + rule, tails[1])
            tilted, plain = (np.exp(np.minimum(log - scale, _LARGEST_EXPONENT)) for log in logs)
            return np.asarray(tilted + size * plain)

        def relative(angles: Floats) -> Floats:
            logs = strip + rule + angles * (self.a + self.b) * d
            return np.exp(np.minimum(logs, _LARGEST_EXPONENT))

        return x, Nodes(logs, losses, fuzz, off, remainder), relative

    def _tails(self, c: float, x: Floats, losses: Floats, second: Floats) -> tuple[float, float]:
        """Bound ln of the integrals of phi B e^(wL) beyond the first and the last point.

        The bounds are for w = c, and for w = 0 and 1 together. Beyond these points the logarithm
        decreases by more than one per unit, so each integral is below the integrand at its start.
        """
        logs = -0.5 * x * x - _HALF_LOG_TWO_PI + second + 0.01
        tilted, plain = logs + c * losses, np.concatenate([logs, logs + losses])
        return float(np.logaddexp.reduce(tilted)), float(np.logaddexp.reduce(plain))

    @lru_cache(maxsize=256)  # noqa: B019  (pairs are few and small)
    def cumulant(self, c: float) -> tuple[float, float, float]:
        """Return ln Phi(c) and its first two derivatives; used only to guide the search."""
        out = np.empty(3)
        if not kernels.mixture_cumulant(c, *self._A.plain, *self._B.plain, self.cut, _POINTS, out):
            raise TooMuchWork
        if not np.isfinite(out).all():
            raise OutOfRange
        value, slope, curve = out.tolist()
        return value, slope, curve

    def variation(self, c: float) -> tuple[Floats, Floats]:
        """Return a, b with |Phi(c + i angle)| <= a + b / angle, by integration by parts."""
        # On x > y, the integral of e^(i angle L) r dL is at most the variation of r, divided by the
        # angle. r = phi A^c B^(1-c) / L' has the logarithmic derivative
        # g = -x + c m_A - (1-c) m_B - (V_A - V_B)/(m_A + m_B), with |g'| <= G, because each
        # cumulant of c in [0, a] is at most a times the one before. So the value in the middle of a
        # cell bounds r on the cell. Outside the window, g keeps its sign. The mass below y is
        # counted in full.
        cells = self._cells_under(c, max(self.a, self.b) + 10.0, _CELLS)
        h, G, x, tilt, logs = cells.h, cells.G, cells.x, cells.tilt, cells.logs
        _, _, m_a, v_a = self._A.logs(x)
        _, _, m_b, v_b = self._B.logs(-x)
        slope = np.maximum(m_a + m_b, _SMALLEST)
        g = np.abs(tilt - (v_a - v_b) / slope) + 0.5 * h * G
        with np.errstate(under="ignore"):
            r = np.exp(np.minimum(logs - np.log(slope) + 0.5 * h * g, 600.0))
        masses = cells.masses
        beyond = np.cumsum((r * g * h)[::-1])[::-1] + r[-1] + r
        beyond[0] += r[0]
        below = np.cumsum(masses) - masses + 1e-15
        below[0] = 0.0
        picked = np.arange(0, _CELLS, _CELLS >> 8)
        return below[picked] * _MASS_MARGIN, beyond[picked] * _MASS_MARGIN

    def ceiling(self, c: float, angles: Floats, fine: bool = True) -> Floats:
        """Bound |Phi(c + i angle)| / Phi(c), by parts and, if fine, on lines above the real axis.

        At height d, the modulus of e^(i angle L) is e^(-angle Im L(x + id)). Im L is the angle of A
        minus the angle of B, and both angles increase with x.
        """
        result = super().ceiling(c, angles)
        if fine:
            _, masses, lines = self.lifted(c)
            logs = np.array([self._strip(c, d) for d, _ in lines])
            result = np.minimum(result, _falls(angles, masses, [t for _, t in lines], logs))
        return np.asarray(result)

    def fall(self, c: float, angles: Floats, cut: Callable[[Floats], Floats], eta: float) -> Floats:
        """Bound that ratio for an integrand times ``cut``, the increasing Phi((x - x0) / eta)."""
        edges, masses, lines = self.lifted(c)
        logs = [(self._strip(c, d) + 0.5 * (d / eta) ** 2, turns) for d, turns in lines]
        kept = [(log, turns) for log, turns in logs if log < _LARGEST_LOG]
        turns = [turn for _, turn in kept]
        return _falls(angles, masses * cut(edges), turns, np.array([log for log, _ in kept]))

    @lru_cache(maxsize=8)  # noqa: B019  (pairs are few and small)
    def lifted(self, c: float) -> tuple[Floats, Floats, list[tuple[float, Floats]]]:
        """Return right edges of cells, their masses, and lines at some heights d.

        A line has the smallest Im L(x + id) of each cell. Masses are under the tilted distribution.
        Outputs outside the window have Im L = 0, which is a lower bound.
        """
        cells = self._cells_under(c, _STEEP, _LIFTED)
        x, h = cells.x, cells.h
        widest = _TURN / max(self.a, self.b)
        lines = []
        for d in (
            widest * np.concatenate([_HEIGHTS, _HEIGHTS[-1] * 0.5 ** np.arange(1, 7)])
        ).tolist():
            if self._strip(c, d) < _LARGEST_LOG:
                turns = self._A.angle(x - 0.5 * h, d) + self._B.angle(-x - 0.5 * h, d)
                lines.append((d, np.append(turns * (1.0 - _ANGLE_MARGIN), 0.0)))
        masses = np.append(cells.masses, cells.outside) * _MASS_MARGIN
        return np.append(x + 0.5 * h, math.inf), masses, lines

    def slope(self, c: float) -> float:
        """Upper bound on the derivative of |Phi(c + i angle)| / Phi(c): the mean of |L - m|.

        Losses increase with the output, so |L - m| is largest at an edge of a cell. Beyond the
        window, losses change by at most a + b per unit, and the integrand by a factor e^-16.
        """
        cells, m = self._cells_under(c, _STEEP, _LIFTED), self.cumulant(c)[1]
        edges = np.append(cells.x - 0.5 * cells.h, cells.x[-1] + 0.5 * cells.h)
        losses, off, _ = self._losses(edges)
        far = np.abs(losses - m) + off
        inside = float((cells.masses * np.maximum(far[:-1], far[1:])).sum())
        most = float(max(far[0], far[-1]))
        return _MASS_MARGIN * (inside + cells.outside * (most + self.a + self.b))

    @lru_cache(maxsize=8)  # noqa: B019  (pairs are few and small)
    def _cells_under(self, c: float, steep: float, count: int) -> _Cells:
        """Return equal cells of the window; beyond it the integrand decays by e^-steep per unit."""
        low, high = self._window(c, steep)
        h = (high - low) / count
        x: Floats = low + h * (np.arange(-1, count + 1, dtype=np.float64) + 0.5)
        x[[0, -1]] = low, high
        first, _, m_a, _ = self._A.logs(x)
        second, _, m_b, _ = self._B.logs(-x)
        tilt = -x + c * m_a - (1.0 - c) * m_b
        logs = -0.5 * x * x - _HALF_LOG_TWO_PI + c * first + (1.0 - c) * second
        logs -= self.log_moment_bounds(c)[0]
        a, b = self.a, self.b
        G = 1.0 + 0.25 * (abs(c) * a * a + abs(1.0 - c) * b * b) + 2.0 * max(a, b) ** 2
        with np.errstate(under="ignore"):
            outside = float(np.exp(logs[0]) + (np.exp(logs[-1]) if self.cut == math.inf else 0.0))
            # The values clipped here are far above one, so they are useless as bounds.
            rise = np.minimum(logs + 0.5 * h * (np.abs(tilt) + 0.5 * h * G), 600.0)
            masses = np.exp(rise) * h
        return _Cells(h, G, x[1:-1], tilt[1:-1], logs[1:-1], masses[1:-1], outside)

    def top(self, flipped: bool) -> float:
        """Largest loss; if flipped, at most -ln of the probability of not being sampled."""
        if flipped and not self.down and self._A.rest > 0.0:
            return (
                -math.log(self._A.rest)
                if self._A.rest < 0.5
                else -math.log1p(-math.fsum(self._A.p))
            )
        return math.inf

    def output(self, loss: float) -> float:
        """Return the output with a given loss, to a few units."""
        low, high = -self.b - 60.0, self.a + 60.0
        while high - low > roundoff(4.0) * max(abs(low), abs(high)):
            points = np.linspace(low, high, 130)
            at = int(np.searchsorted(self._losses(points)[0], loss))
            first, last = float(points[max(at - 1, 0)]), float(points[min(at, 129)])
            if last - first >= high - low:
                break
            low, high = first, last
        return high

    def rough_delta(self, t: float) -> float:
        """Return delta(t) of one step, not rounded; used only to guide the search."""
        if len(self.up) == 1 and not self.down:
            ((shift, q),) = self.up
            y = unsampled_level(t, q) / shift + 0.5 * shift
        else:
            y = self.output(t)
        return self._A.tail(y, 1.0) - self._B.tail(y, -1.0, t)

    def delta(self, t: float, flipped: bool, count: int = 1) -> tuple[float, float]:
        """Bound delta(t) = P(x > y) - e^t Q(x > y) of one step; the loss at y is t."""
        level = -t if flipped else t
        y = self.output(level)
        off = float(self._losses(np.array([y]))[1][0]) + roundoff(8.0) * abs(y) * (self.a + self.b)
        # If flipped, the first distribution is the one of B, and -x is the output.
        sign, (own, other) = (-1.0, (self._B, self._A)) if flipped else (1.0, (self._A, self._B))
        p = own.tail(sign * y, 1.0)
        scaled = min(other.tail(sign * y, -1.0, t), p)  # losses beyond y are at least t
        # Outputs with a loss within an error of t contribute at most this error each. They are
        # close to y, unless the losses hardly change there.
        step = sign / (1.0 + abs(y))
        near = self._losses(np.array([y - step, y + step]))[0]
        alike = own.tail(sign * (y - step), 1.0) if np.all(np.abs(near - level) > off) else 1.0
        far = abs(y) + self.a + self.b
        error = roundoff((p + scaled) * (64.0 + 4.0 * far * far + 4.0 * t)) + 2.0 * off * alike
        error += _UNDERFLOW
        return max(p - scaled - error, 0.0), max(min(p - scaled + error, 1.0), 0.0)

    @lru_cache(maxsize=2)  # noqa: B019  (one for each side)
    def cells(self, far: float, count: int) -> Cells:
        """Return equal cells of the outputs, with masses by a Gauss-Legendre rule in each."""
        reach = math.sqrt(2.0 * far) + 1.0
        low, high = -self.b - reach, self.a + reach
        x = np.linspace(low, high, count)
        losses, off, _ = self._losses(x)
        half = 0.5 * (x[1] - x[0])
        if not 0.0 < half < math.inf:
            raise OutOfRange
        at, weights = gauss_legendre(4)
        inner = (x[:-1, None] + half * (1.0 + at)).reshape(-1)
        logs = (-0.5 * inner * inner + math.log(half) - _HALF_LOG_TWO_PI).reshape(-1, len(at))
        logs += np.log(weights)
        first, second = self._A.logs(inner), self._B.logs(-inner)
        p, q = (
            np.logaddexp.reduce(logs + s[0].reshape(-1, len(at)), axis=1) for s in (first, second)
        )
        error = float(max(first[1].max(), second[1].max())) + roundoff(64.0 + 4.0 * x.max() ** 2)
        ends = np.array([low, high])
        tails = -0.5 * ends * ends - _HALF_LOG_TWO_PI
        p_tails, q_tails = tails + self._A.logs(ends)[0], tails + self._B.logs(-ends)[0]
        p = np.concatenate([p_tails[:1], p, p_tails[1:]])
        q = np.concatenate([q_tails[:1], q, q_tails[1:]])
        return Cells(losses, p, q, float(off.max()), error, bounded=False)


# Subsampled Gaussian noise without its large losses.


#: Number of points of the Gauss-Legendre rule on a panel, and its parameters of ellipses.
_RULE = 24
_ELLIPSES = 1.0 + 0.25 * 1.3 ** np.arange(20)
#: Largest change of the exponent on half a panel, and the largest half panel.
_TURNS = 5.0
_HALF_PANEL = 0.7


class CutMixture(GaussianMixture):
    """Subsampled Gaussian noise, restricted to outputs up to ``cut``, against the noise alone.

    Both distributions have a total mass below one.
    """

    closed_form_up_to = 0
    can_be_cut = False

    def __init__(self, whole: GaussianMixture, cut: float) -> None:
        _, sigma, up, _ = whole.key
        super().__init__(sigma, up)
        self.symmetric, self.cut = False, cut
        self.key = ("cut mixtures", sigma, up, cut)

    def _window(self, c: float, steep: float) -> tuple[float, float]:
        return min(-steep, self.cut - steep), self.cut

    def ceiling(self, c: float, angles: Floats, fine: bool = True) -> Floats:
        """Bound |Phi(c + i angle)| / Phi(c) by parts; the integrand ends at the cut."""
        return super().ceiling(c, angles, fine=False)

    def top(self, flipped: bool) -> float:
        """Largest loss, at the cut, or at most -ln of the probability of not being sampled."""
        return super().top(True) if flipped else float(self._losses(np.array([self.cut]))[0][0])

    @lru_cache(maxsize=8)  # noqa: B019  (pairs are few and small)
    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Return Gauss-Legendre rules on panels from the cut downwards, for c >= 0."""
        if c < 0.0:
            raise OutOfRange
        low = min(0.0, self.cut) - math.sqrt(2.0 * math.log(1.0 / tolerance)) - 2.0
        edges, size, (_, q) = [self.cut], c + angle + 1.0, self.up[0]
        widest = _HALF_PANEL / max(self.a, 1.0)
        while edges[-1] > low:
            # Losses change by at most a times the probability of having been sampled, per unit.
            odds = math.log(q / (1.0 - q)) + self.a * (edges[-1] - 0.5 * self.a)
            slope = self.a / (1.0 + math.exp(min(-odds, _LARGEST_EXPONENT)))
            edges.append(edges[-1] - 2.0 * min(widest, _TURNS / (size * slope)))
            if len(edges) * _RULE > _POINTS:
                raise TooMuchWork
        ends: Floats = np.array(edges[::-1])
        middles, halves = 0.5 * (ends[1:] + ends[:-1]), 0.5 * np.diff(ends)
        at, weights = gauss_legendre(_RULE)
        x = (middles[:, None] + halves[:, None] * at).reshape(-1)
        losses, off, _ = self._losses(x)
        logs = -0.5 * x * x - _HALF_LOG_TWO_PI
        logs += (np.log(halves)[:, None] + np.log(weights)).reshape(-1)
        fuzz = roundoff(64.0 + 4.0 * x * x)
        off = off + roundoff(8.0) * np.abs(x) * self.a

        @cache
        def errors() -> tuple[float, float]:
            """Logarithms of the errors of e^(wL), and of 1 and e^L together."""
            tails = self._tails(c, ends[:1], self._losses(ends[:1])[0], np.zeros(1))
            rules = self._remainder(c, angle, middles, halves)
            tilted, plain = (float(np.logaddexp(*pair)) for pair in zip(rules, tails, strict=True))
            return tilted, plain

        def remainder(angles: Floats, scale: float) -> Floats:
            tilted, plain = (math.exp(min(log - scale, _LARGEST_EXPONENT)) for log in errors())
            return np.asarray(tilted + (2.0 * (c + angles) + 1.0) * plain)

        root = math.sqrt(0.5)
        base, moved = (0.5 * math.erfc((self.cut - shift) * root) for shift in (0.0, self.a))
        q = self.up[0][1]
        return Nodes(logs, losses, fuzz, off, remainder, -base - q * (moved - base), -base)

    def _remainder(
        self, c: float, angle: float, middles: Floats, halves: Floats
    ) -> tuple[float, float]:
        """Bound ln of the errors of all rules: of e^(wL) up to an angle, and of 1 and e^L together.

        On an ellipse |Im x| <= y with ay <= pi/2, |A| is largest at the largest real part, and so
        is its angle, which grows with y.
        """
        (_, q), r = self.up[0], _ELLIPSES[:, None]
        y, reach = 0.5 * halves * (r - 1.0 / r), 0.5 * halves * (r + 1.0 / r)
        factor = math.log(64.0 / 15.0) - 2.0 * _RULE * np.log(r) - np.log1p(-(r**-2.0))
        right, near = middles + reach, np.maximum(np.abs(middles) - reach, 0.0)
        start = 0.5 * (y * y - near * near) - _HALF_LOG_TWO_PI + np.log(halves) + factor
        grown = np.exp(np.minimum(math.log(q) + self.a * (right - 0.5 * self.a), _LARGEST_LOG))
        turn = np.arctan2(grown * np.sin(self.a * y), (1.0 - q) + grown * np.cos(self.a * y))
        losses = self._losses(right.reshape(-1))[0].reshape(right.shape)
        start = np.where(self.a * y <= 0.5 * math.pi, start, math.inf)
        tilted, plain = start + c * losses + angle * turn, start + np.maximum(losses, 0.0)
        first, second = (float(np.logaddexp.reduce(log.min(axis=0))) for log in (tilted, plain))
        return first + 1e-3, second + 1e-3


# Gaussian noise without sampling: a pair of normal distributions with closed-form moments.


class GaussianNoise(ContinuousStep):
    """Two normal distributions at distance one: ln Phi(w) = mu^2 w (w - 1) / 2, mu = 1 / sigma.

    ``square`` is mu^2. It adds under composition, so all normal pairs of a profile form one pair.
    """

    symmetric = True
    closed_form_up_to = 0  # the contour integral of one step is as accurate as a closed form

    def __init__(self, sigma: float) -> None:
        self.sigma, self.square, self.error = sigma, sigma**-2.0, roundoff(4.0)
        self.key = ("normal", sigma)

    def gaussian_square(self, zcdp: bool) -> tuple[float, float] | None:
        """Return mu^2."""
        return self.square, self.square

    @classmethod
    def together(cls, parts: list[tuple[GaussianNoise, int]]) -> GaussianNoise:
        """Compose normal pairs into one."""
        total = math.fsum(k * part.square for part, k in parts)
        result = cls(total**-0.5)
        result.square, result.error = total, roundoff(16.0)
        return result

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln Phi(c + i angle), exact up to rounding, and bounds on its error."""
        half = 0.5 * self.square
        real = half * (c * (c - 1.0) - angles * angles)
        turn = half * angles * (2.0 * c - 1.0)
        size = half * (abs(c) * (abs(c) + 1.0) + angles**2 + np.abs(angles) * (2 * abs(c) + 1.0))
        return real + 1j * turn, size * (roundoff(8.0) + self.error)

    def ceiling(self, c: float, angles: Floats, fine: bool = True) -> Floats:
        """Return |Phi(c + i angle)| / Phi(c), which decreases with the angle."""
        return np.asarray(np.exp(-0.5 * self.square * (1.0 - 1e-12) * angles**2))

    def cumulant(self, c: float) -> tuple[float, float, float]:
        """Return ln Phi(c) and its first two derivatives."""
        half = 0.5 * self.square
        return half * c * (c - 1.0), half * (2.0 * c - 1.0), self.square

    def variation(self, c: float) -> tuple[Floats, Floats]:
        """Return bounds that decay as one over the angle."""
        return np.zeros(1), np.array([1.0 / math.sqrt(self.square)])

    def slope(self, c: float) -> float:
        """Standard deviation of the losses."""
        return math.sqrt(self.square)

    def cells(self, far: float, count: int) -> Cells:
        """Return cells of the outputs."""
        result = GaussianMixture(1.0, ((math.sqrt(self.square), 1.0),)).cells(far, count)
        return replace(result, off=result.off + self.error * float(np.abs(result.losses).max()))
