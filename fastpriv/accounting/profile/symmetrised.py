"""Samples of a fixed size: the symmetric curve that they have where a person is replaced.

Let a mechanism on samples have the symmetric curve delta(t), and let a person be in the sample with
probability q. Where the person is replaced, the curve of both together is at most

    delta'(t) = q delta(ln(1 + (e^t - 1)/q)),   t >= 0,

Balle, Barthe and Gaboardi (2018); the proof is in docs/theory/sampling.md. That is the
curve of (1-q) Q + q P against Q where losses are positive. Neighbours can be swapped, so to the
left of t = 0 it is the mirror image: the law of the loss L = ln A, A = 1 - q + q e^l, is

    under Q: that of l > 0, the mass at -L being e^L times that at L, and the rest of one at zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.nodes import Nodes, TooCostly, cumulant
from fastpriv.accounting.profile.pairs import Cells, Pair
from fastpriv.accounting.profile.plainlaws import PlainLaw, plain_law
from fastpriv.accounting.profile.single import single
from fastpriv.accounting.profile.terms import Ordered

#: Points of the Gauss-Legendre rule on a panel, and most panels.
_RULE, _PANELS = 24, 1 << 11
#: Ellipses on which integrands are bounded.
_ELLIPSES = 1.0 + 0.7 * 1.7 ** np.arange(6)
#: Cells on which total variations are bounded, and places where they begin.
_CELLS, _PLACES = 1 << 11, 1 << 6


def amplified(loss: Floats, q: float) -> tuple[Floats, Floats, Floats]:
    """Return L = ln(1 - q + q e^l), a bound on its error, and dL/dl."""
    near = q * np.expm1(np.minimum(loss, 1.0))
    far = np.logaddexp(math.log1p(-q), math.log(q) + loss)
    result = np.where(loss <= 1.0, np.log1p(near), far)
    error = 4.0 * ULP * (np.minimum(np.abs(near), np.abs(result)) + np.abs(result))
    return result, error, np.exp(math.log(q) + loss - result)


def _log_sum(logs: Floats) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum()))


class Symmetrised(Pair):
    """The symmetric curve above both orders of sampled pairs, one of them chosen in the open.

    Parameters
    ----------
    sampled : tuple of Pair
        Pairs (1-q) Q + q P against Q, all with one q below 1: normal noise or an interval.
    weights : tuple of float
        Chances of the pairs, which sum to one.
    attained_pair : Pair, optional
        What two databases attain, in both orders.
    """

    symmetric = True
    attained = tight = False

    def __init__(
        self,
        sampled: tuple[Pair, ...],
        weights: tuple[float, ...] = (1.0,),
        attained_pair: Pair | None = None,
    ) -> None:
        self.sampled, self.weights, self.attained_pair = sampled, weights, attained_pair
        laws = [plain_law(pair) for pair in sampled]
        self.laws: list[PlainLaw] = [law for law, _ in laws]
        self.q = laws[0][1]
        other = None if attained_pair is None else attained_pair.key
        self.key = ("symmetrised", tuple(pair.key for pair in sampled), weights, other)

    @property
    def below(self) -> Pair | None:
        """What two databases attain."""
        return self.attained_pair

    @property
    def _rest(self) -> float:
        """Mass at zero: (1 - q) (Q(l < 0) - Q(l > 0))."""
        each = zip(self.laws, self.weights, strict=True)
        return (1.0 - self.q) * math.fsum(w * law.below() for law, w in each)

    def _remainder(
        self, law: PlainLaw, c: float, angles: Floats, middles: Floats, half: float
    ) -> Floats:
        """Bound ln of the error of the rules for f (A^w + A^(1-w) - 1 - A), w = c + i angle.

        On an ellipse |Im l| <= y < pi, so that A lies within an angle y of the positive numbers.
        """
        best = np.full(len(angles), math.inf)
        for r in _ELLIPSES.tolist():
            y, x = 0.5 * half * (r - 1.0 / r), 0.5 * half * (r + 1.0 / r)
            if y > 2.6:
                break
            factor = math.log(64.0 / 15.0) - 2.0 * _RULE * math.log(r) - math.log1p(-(r**-2))
            start = law.largest(middles - x) + law.lift * y * y + math.log(half) + factor
            right = amplified(middles + x, self.q)[0]
            # |A| is at most that on the right, and at least cos(y/2) times that on the left.
            least = amplified(middles - x, self.q)[0] + math.log(math.cos(0.5 * y))
            turned = np.maximum(c * (right if c >= 0.0 else least), 0.0)
            other = np.maximum((1.0 - c) * (right if c <= 1.0 else least), 0.0)
            top = np.maximum(np.maximum(turned, other), right)
            log = _log_sum(start + top) + math.log(4.0)
            best = np.minimum(best, log + angles * y)
        return best + 0.01

    def _end(self, law: PlainLaw, c: float, small: float) -> tuple[float, float]:
        """Where f A^c, f A^(1-c) and f A are small, and ln of their integrals beyond.

        ln f falls ever faster and ln A rises by at most 1 per unit, so that beyond an end where
        their sum falls by g per unit an integral is at most the integrand there over g.
        """
        if law.top < math.inf:
            return law.top, -math.inf
        power, end = max(c, 1.0 - c, 1.0), 0.0
        while True:
            end += 0.5 * law.width
            at = np.array([end])
            falls = -float(law.slope(at)[0]) - power
            if falls * law.width >= 1.0:
                value = float(law.log(at)[0] + power * amplified(at, self.q)[0][0])
                value += math.log(4.0 / falls) + 0.01
                if value <= small:
                    return end, value

    def cumulant(self, c: float) -> tuple[float, float, float]:
        """Return ln Phi(c) and two derivatives; used only to guide the search."""
        return cumulant(self._rough(c), c)

    @lru_cache(maxsize=256)  # noqa: B019  (pairs are few and small)
    def _rough(self, c: float) -> Nodes:
        return self._made(c, 0.0, -20.0, False)

    @lru_cache(maxsize=8)  # noqa: B019  (pairs are few and small)
    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Gauss-Legendre rules on panels of l > 0, each point with its mirror image."""
        size = max(self.cumulant(c)[0], 0.0)  # what is left out is relative to Phi(c)
        return self._made(c, angle, math.log(tolerance) + size, True)

    def _made(self, c: float, angle: float, small: float, sure: bool) -> Nodes:
        parts, bounds = [], []
        for law, weight in zip(self.laws, self.weights, strict=True):
            made, bound = self._points(law, math.log(weight), c, angle, small, sure)
            parts.append(made)
            bounds.append(bound)
        logs, losses, fuzz, off = (np.concatenate(each) for each in zip(*parts, strict=True))
        rest = np.array([math.log(self._rest)])
        zero = np.zeros(1)

        def remainder(angles: Floats, scale: float) -> Floats:
            total = np.logaddexp.reduce([bound(angles) for bound in bounds], axis=0)
            return np.asarray(np.exp(np.minimum(total - scale, 700.0)))

        return Nodes(
            np.concatenate([logs, logs + losses, rest]),
            np.concatenate([losses, -losses, zero]),
            np.concatenate([fuzz, fuzz + off + 4.0 * ULP * np.abs(losses), [32.0 * ULP]]),
            np.concatenate([off, off, zero]),
            remainder,
        )

    def _points(
        self, law: PlainLaw, weight: float, c: float, angle: float, small: float, sure: bool
    ) -> tuple[tuple[Floats, Floats, Floats, Floats], Callable[[Floats], Floats]]:
        """Points of one law: log-weights, losses and their errors; and a bound on the error.

        If not ``sure``, panels are as wide as usual, whatever the bound.
        """
        end, tail = self._end(law, c, small)
        panels = max(1, math.ceil(end / (4.0 * min(law.width, 2.0))))
        while True:
            half = 0.5 * end / panels
            middles: Floats = half * (2.0 * np.arange(panels, dtype=np.float64) + 1.0)
            turned = np.array([angle])
            if not sure or float(self._remainder(law, c, turned, middles, half)[0]) <= small:
                break
            panels = math.ceil(1.3 * panels)
            if panels > _PANELS:
                raise TooCostly
        at, weights = np.polynomial.legendre.leggauss(_RULE)
        points = (middles[:, None] + half * at).reshape(-1)
        logs = law.log(points) + np.tile(np.log(weights), panels) + math.log(half)
        fuzz = law.fuzz(points)
        if law.atom() > -math.inf:
            points, logs = np.append(points, law.top), np.append(logs, law.atom())
            fuzz = np.append(fuzz, fuzz.max())
        losses, off, rise = amplified(points, self.q)
        off = off + 8.0 * ULP * end * rise

        def bound(angles: Floats) -> Floats:
            inside = self._remainder(law, c, angles, middles, half)
            # Terms of g that are not turned count by |w| times more in a tail.
            return np.asarray(np.logaddexp(inside, tail + np.log1p(angles + abs(c))) + weight)

        return (logs + weight, losses, fuzz + ULP * np.abs(logs), off), bound

    def variation(self, c: float) -> tuple[Floats, Floats]:
        """By parts on l > y, as r = f A^c / L' against e^(i angle L) dL; the rest counts in full.

        ln r has the derivative g = (ln f)' + (c + 1) L' - 1, with |g'| <= bend + |c + 1|/4, so r is
        bounded on cells by its value in the middle. For the mirror image c becomes 1 - c.
        """
        value, q = self.log_moment_bounds(c)[0], self.q
        small = math.log(1e-30) + min(value, 0.0)
        ends = [self._end(law, max(abs(c), abs(1.0 - c)) + 1.0, small)[0] for law in self.laws]
        end = max(ends)
        h = end / _CELLS
        loss: Floats = h * (np.arange(_CELLS, dtype=np.float64) + 0.5)
        L, _, rise = amplified(loss, q)
        a, b = np.full(_CELLS, self._rest * math.exp(min(-value, 600.0))), np.zeros(_CELLS)
        for law, weight in zip(self.laws, self.weights, strict=True):
            inside = loss - 0.5 * h < law.top
            for power in (c, 1.0 - c):
                log_f, slope = law.log(loss), law.slope(loss)
                g = np.abs(slope + (power + 1.0) * rise - 1.0)
                g += 0.5 * h * (law.bend + 0.25 * abs(power + 1.0))
                tilt = np.abs(slope + power * rise) + 0.5 * h * (law.bend + 0.25 * abs(power))
                logs = log_f + power * L - value + math.log(weight)
                with np.errstate(over="ignore", under="ignore"):
                    r = np.exp(np.minimum(logs - np.log(rise) + 0.5 * h * g, 600.0)) * inside
                    mass = np.exp(np.minimum(logs + 0.5 * h * tilt, 600.0)) * h * inside
                b += np.cumsum((r * g * h)[::-1])[::-1] + 2.0 * r + r[-1]
                a += np.cumsum(mass) - mass + 1e-15
                if law.atom() > -math.inf:
                    most = float(amplified(np.array([law.top]), q)[0][0])
                    a += math.exp(min(law.atom() + power * most - value, 600.0))
        picked = slice(0, None, _CELLS // _PLACES)
        return a[picked] * 1.001, b[picked] * 1.001

    def top(self, flipped: bool) -> float:
        """Largest loss: that of the largest l."""
        most = max(law.top for law in self.laws)
        return float(amplified(np.array([most]), self.q)[0][0]) if most < math.inf else math.inf

    def single(self, t: float, flipped: bool) -> tuple[float, float]:
        """Bound delta'(t) of one release: that of the sampled pairs in their own order."""
        each = [single(Ordered(pair), t) for pair in self.sampled]
        low = math.fsum(w * one[0] for w, one in zip(self.weights, each, strict=True))
        high = math.fsum(w * one[1] for w, one in zip(self.weights, each, strict=True))
        return lowered(low, 16.0), min(raised(high, 16.0), 1.0)

    @lru_cache(maxsize=2)  # noqa: B019  (one for each side)
    def cells(self, far: float, count: int) -> Cells:
        """Equal cells of l > 0 with their mirror images, and one for the mass at zero."""
        tops = [law.top for law in self.laws]
        bounded = max(tops) < math.inf
        if bounded and min(tops) < max(tops):
            raise TooCostly  # atoms inside of cells
        end = max(self._end(law, 1.0, -far)[0] for law in self.laws)
        edges = np.linspace(0.0, end, count // 2)
        half = 0.5 * (edges[1] - edges[0])
        at, weights = np.polynomial.legendre.leggauss(4)
        inner = (edges[:-1, None] + half * (1.0 + at)).reshape(-1)
        scale = np.tile(np.log(weights), len(edges) - 1) + math.log(half)
        L = amplified(inner, self.q)[0]
        each = zip(self.laws, self.weights, strict=True)
        density = np.logaddexp.reduce([math.log(w) + law.log(inner) for law, w in each], axis=0)
        q = np.logaddexp.reduce((density + scale).reshape(-1, len(at)), axis=1)
        p = np.logaddexp.reduce((density + scale + L).reshape(-1, len(at)), axis=1)
        losses, off, rise = amplified(edges, self.q)
        last = float(losses[-1])
        if bounded:
            beyond = np.logaddexp.reduce(
                [math.log(w) + law.atom() for law, w in zip(self.laws, self.weights, strict=True)]
            )
            outer = beyond, beyond + last
        else:
            tail = max(self._end(law, 1.0, -far)[1] for law in self.laws)
            outer = tail, tail
        zero = np.array([math.log(self._rest)])
        q_all = np.concatenate([[outer[1]], p[::-1], zero, q, [outer[0]]])
        p_all = np.concatenate([[outer[0]], q[::-1], zero, p, [outer[1]]])
        fuzz = max(float(law.fuzz(edges[1:]).max()) for law in self.laws)
        error = fuzz + ULP * (64.0 + 8.0 * float(np.abs(density).max()) / 16.0)
        moved = float((off + 8.0 * ULP * end * rise).max())
        return Cells(
            np.concatenate([-losses[::-1], losses]), p_all, q_all, moved, error, bounded=bounded
        )
