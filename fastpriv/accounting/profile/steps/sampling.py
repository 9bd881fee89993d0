"""Subsampled steps: Poisson sampling, fixed size, and with replacement."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from fastpriv._core.rounding import raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.losses import (
    Cells,
    ContinuousStep,
    Nodes,
    TooMuchWork,
    _variation,
    cumulant,
    gauss_legendre,
)
from fastpriv.accounting.profile.relations import LEAST_NOISE
from fastpriv.accounting.profile.steps.finite import (
    FiniteStep,
    FixedSizeSample,
    SampledFinite,
    discrete_gaussian,
    discrete_laplace,
)
from fastpriv.accounting.profile.steps.gaussian import GaussianMixture, GaussianNoise
from fastpriv.accounting.profile.steps.groups import Grouped
from fastpriv.accounting.profile.steps.laplace import Interval

if TYPE_CHECKING:
    from fastpriv.accounting.profile.discrete import Step


# One subsampled step: its pair of distributions, or a pair that dominates it.


#: Total probability of the numbers of draws that count as revealing everything.
_RARE = 1e-24
#: Probability below which a number of sampled records of a group counts as the largest one.
_RARE_NUMBER = decimal.Decimal("1e-40")


def one_release(parts: dict[Step, int]) -> Step | None:
    """Return all steps as one step; None if that is not possible."""
    if parts and all(isinstance(part, GaussianNoise) for part in parts):
        return GaussianNoise.together(
            [(part, k) for part, k in parts.items() if isinstance(part, GaussianNoise)]
        )
    return next(iter(parts)) if sum(parts.values()) == 1 else None


def poisson_sample(release: Step, q: float) -> Step | None:
    """Return ((1 - q) Q + q P, Q) for the pair (P, Q) of a step; None if it is not known."""
    if isinstance(release, GaussianNoise):
        return GaussianMixture(release.sigma, ((1.0, q),))
    if isinstance(release, FixedSizeSample):
        return None
    if isinstance(release, FiniteStep):
        return SampledFinite(release, q)
    if type(release) is SampledFinite:
        return SampledFinite(release.atom, release.q * q)
    if isinstance(release, Interval):
        return release.changed(1.0, release.q * q)
    if isinstance(release, GaussianMixture) and not release.down:
        _, sigma, up, _ = release.key
        return GaussianMixture(sigma, tuple((c, p * q) for c, p in up))
    return None


def group_of(step: Step, k: int, relation: str) -> Step | None:
    """Return a step for databases that differ in k records; None if no bound is known."""
    if isinstance(step, GaussianNoise):
        return GaussianNoise(step.sigma / k)
    if isinstance(step, Interval) and step.q == 1.0:
        return step.changed(k, 1.0)  # the ranges of losses add up
    if isinstance(step, FiniteStep) and step.key[0] == "discrete-gaussian":
        return discrete_gaussian(step.key[1], step.key[2] * k)
    if isinstance(step, FiniteStep) and step.key[0] == "discrete-laplace":
        return discrete_laplace(step.key[1], step.key[2] * k)
    if isinstance(step, GaussianMixture) and not step.down and relation != "replace-one":
        _, sigma, up, _ = step.key
        if len(up) == 1 and up[0][1] < 1.0 and (shift := up[0][0]) * k <= sigma / LEAST_NOISE:
            counts = _sampled_of_group(k, up[0][1])
            return GaussianMixture(sigma, tuple((shift * j, p) for j, p in counts.items()))
    if isinstance(step, ContinuousStep) and not step.can_be_cut:
        return None
    if isinstance(step, Grouped):
        return Grouped(step.step, step.k * k)
    if isinstance(step, SampledFinite) and step.is_composed:
        return None
    return (
        Grouped(step, k) if isinstance(step, ContinuousStep | FiniteStep | SampledFinite) else None
    )


def _sampled_of_group(k: int, q: float) -> dict[int, float]:
    """Return the numbers j > 0 of k records in a Poisson sample, and their probabilities.

    Probabilities are rounded up. Rare numbers count as k.
    """
    result: dict[int, float] = {}
    with decimal.localcontext(decimal.Context(prec=50, Emin=-999999, Emax=999999)):
        rate = decimal.Decimal(q)
        chance, rest = (1 - rate) ** k, decimal.Decimal(0)
        for j in range(1, k + 1):
            chance = chance * (k - j + 1) * rate / (j * (1 - rate))
            if chance < _RARE_NUMBER and j < k:
                rest += chance
            else:
                result[j] = math.nextafter(float(chance), 2.0)
        result[k] = math.nextafter(result[k] + float(rest), 2.0)
    return result


def replaced_in_sample(release: Step, q: float, blank: bool) -> Step | None:
    """Return the symmetric bound for a replaced record that is sampled with probability q.

    If ``blank``, a record that contributes zero must be a possible value; it attains the bound.
    """
    if isinstance(release, GaussianNoise):
        near = GaussianMixture(2.0 * release.sigma if blank else release.sigma, ((1.0, q),))
        return Symmetrised((GaussianMixture(release.sigma, ((1.0, q),)),), (1.0,), near)
    if isinstance(release, Interval) and release.q == 1.0 and (release.is_noise or not blank):
        whole = release.changed(1.0, q)
        close = Interval(0.5 * release.e, True, q) if blank else whole
        return Symmetrised((whole,), (1.0,), close if release.is_noise else None)
    if isinstance(release, Symmetrised) and not blank:
        pairs = tuple(_thinned(pair, q) for pair in release.sampled)
        other = release.attained_pair
        return Symmetrised(pairs, release.weights, None if other is None else _thinned(other, q))
    if isinstance(release, FiniteStep):
        reached = release if release.free else None
        if blank:
            reached = _halved(release)
            if reached is None:
                return None
        return FixedSizeSample(release, q, reached)
    return None


def _thinned(pair: ContinuousStep, q: float) -> ContinuousStep:
    result = poisson_sample(pair, q)
    assert isinstance(result, ContinuousStep)
    return result


def _halved(noise: FiniteStep) -> FiniteStep | None:
    """Return discrete noise at half its distance; None if the step is not noise on a sum."""
    make: Any = {"discrete-gaussian": discrete_gaussian, "discrete-laplace": discrete_laplace}
    kind, *rest = noise.key
    if kind not in make or rest[1] % 2:
        return None
    result: FiniteStep = make[kind](rest[0], rest[1] // 2)
    return result


def with_replacement(release: Step, m: int, n: int, relation: str) -> dict[Step, int] | None:
    """Return noise on a sum of m draws from n records; None for other steps."""
    chances = _draws(m, n)
    total = raised(math.fsum(chances), 4.0)
    weights = tuple(chance / total for chance in chances)
    counts = range(1, len(chances) + 1)
    rest = _beyond(chances, m, n)
    shown: dict[Step, int] = {FiniteStep.response(2, 0.0, rest): 1} if rest > 0.0 else {}
    if n == 1:  # the record is sampled m times
        counts, chances, weights, total, shown = range(m, m + 1), [1.0], (1.0,), 1.0, {}
    if isinstance(release, GaussianNoise):
        scale = 2.0 * release.sigma if relation == "replace-special" else release.sigma
        mixed = GaussianMixture(scale, tuple(zip(map(float, counts), chances, strict=True)))
        if relation == "add-or-remove":
            return {mixed: 1, **shown}
        if total >= 1.0:
            return {GaussianNoise(release.sigma / m): 1}
        each = tuple(GaussianMixture(release.sigma, ((float(k), total),)) for k in counts)
        return {Symmetrised(each, weights, mixed): 1, **shown}
    if isinstance(release, Interval) and release.q == 1.0 and release.is_noise:
        if total >= 1.0:
            return {Interval(release.e * m, True): 1}
        laws = tuple(Interval(release.e * k, True, total) for k in counts)
        if relation == "add-or-remove":
            return {Blend(laws, weights, roundoff(8.0)): 1, **shown}
        return {Symmetrised(laws, weights): 1, **shown}
    return None


def _draws(m: int, n: int) -> list[float]:
    """Return binomial probabilities of k = 1, 2, ... successes, rounded up, without rare k.

    There are m trials with success probability 1/n.
    """
    if n == 1:
        return [1.0]
    chance = math.exp(m * math.log1p(-1.0 / n))
    result = []
    for k in range(1, m + 1):
        chance *= raised((m - k + 1.0) / (k * (n - 1.0)), 8.0)
        result.append(raised(chance, 8.0 * (1.0 + m / n)))
        if k > 2 * m / n and _after(chance, k, m, n) < _RARE:
            break
    return result


def _after(chance: float, k: int, m: int, n: int) -> float:
    """Bound the probability of more than k successes by a geometric series, k > 2 m/n."""
    ratio = (m - k) / ((k + 1.0) * (n - 1.0))
    return chance * ratio / (1.0 - ratio) * (1.0 + 1e-9)


def _beyond(chances: list[float], m: int, n: int) -> float:
    """Bound the probability of more successes than are listed."""
    return 0.0 if len(chances) == m or n == 1 else _after(chances[-1], len(chances), m, n)


class Blend(ContinuousStep):
    """A random choice among pairs that is public: Phi is the mean of their Phi.

    This is an upper bound. Two databases attain ``attained_pair``, if it is given.
    """

    attained = tight = can_be_cut = False

    def __init__(
        self,
        pairs: tuple[ContinuousStep, ...],
        weights: tuple[float, ...],
        slack: float = 0.0,
        attained_pair: ContinuousStep | None = None,
    ) -> None:
        self.pairs, self.weights, self.slack = pairs, weights, slack
        self.choices = tuple(zip(weights, pairs, strict=True))
        self.attained_pair = attained_pair
        other = None if attained_pair is None else attained_pair.key
        self.key = ("blend", tuple(pair.key for pair in pairs), weights, other)
        self.symmetric = all(pair.symmetric for pair in pairs)

    @property
    def below(self) -> ContinuousStep | None:
        """The pair that two databases attain, or None."""
        return self.attained_pair

    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Return a quadrature of Phi on a line."""
        parts = [pair.nodes(c, angle, tolerance) for pair in self.pairs]
        logs = [part.logs + math.log(r) for part, r in zip(parts, self.weights, strict=True)]

        def remainder(angles: Floats, scale: float) -> Floats:
            terms = (
                r * part.remainder(angles, scale)
                for part, r in zip(parts, self.weights, strict=True)
            )
            return np.asarray(sum(terms))

        return Nodes(
            np.concatenate(logs),
            np.concatenate([part.losses for part in parts]),
            np.concatenate([part.fuzz for part in parts]) + roundoff(4.0) + self.slack,
            np.concatenate([part.off for part in parts]),
            remainder,
        )

    def top(self, flipped: bool) -> float:
        """Largest loss, to a few units."""
        return max(pair.top(flipped) for pair in self.pairs)

    def variation(self, c: float) -> tuple[Floats, Floats]:
        """Return bounds that decay as one over the angle."""
        bounds = np.array([pair.log_moment_bounds(c) for pair in self.pairs])
        low, high = (bounds + np.log(self.weights)[:, None]).T
        shares = np.exp(high - np.logaddexp.reduce(low)) * (1.0 + 1e-6)
        each = [_variation(pair, c) for pair in self.pairs]
        a, b = ([share * v[i] for share, v in zip(shares, each, strict=True)] for i in (0, 1))
        # Combine each bound of the first pair with each bound of the next, for a few bounds.
        total = np.zeros(1), np.zeros(1)
        for x, y in zip(a, b, strict=True):
            some = slice(None, None, max(1, len(x) // 24))
            total = (
                np.add.outer(total[0], x[some]).reshape(-1),
                np.add.outer(total[1], y[some]).reshape(-1),
            )
        return total


# Distributions of positive losses before sampling: Gaussian noise, and losses on an interval.


_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class PlainLaw(Protocol):
    """Density f of the loss l > 0 of a symmetric pair under its second distribution.

    ``bend`` bounds |(ln f)''|, and ``lift`` satisfies |f(l + iy)| <= f(l) e^(lift y^2). ``width``
    is the scale on which f changes, and ``top`` is the largest loss.
    """

    bend: float
    lift: float
    width: float
    top: float

    def log(self, loss: Floats) -> Floats:
        """Logarithm of f."""

    def slope(self, loss: Floats) -> Floats:
        """(ln f)', which decreases."""

    def largest(self, loss: Floats) -> Floats:
        """Upper bound on ln f at this loss and all larger ones."""

    def fuzz(self, loss: Floats) -> Floats:
        """Relative error of f if losses have an error of some units in the last place."""

    def below(self) -> float:
        """Q(l < 0) - Q(l > 0), to a few units."""

    def atom(self) -> float:
        """Logarithm of the mass under Q at the largest loss; minus infinity for none."""


class Bell:
    """Two normal distributions at distance a: l is normal with mean -a^2/2 and variance a^2."""

    top = math.inf

    def __init__(self, a: float) -> None:
        self.a, self.width = a, a
        self.bend, self.lift = 1.0 / (a * a), 0.5 / (a * a)

    def log(self, loss: Floats) -> Floats:
        """Logarithm of f."""
        u = loss / self.a + 0.5 * self.a
        return np.asarray(-0.5 * u * u - _HALF_LOG_TWO_PI - math.log(self.a))

    def slope(self, loss: Floats) -> Floats:
        """(ln f)'."""
        return np.asarray(-(loss / self.a + 0.5 * self.a) / self.a)

    def largest(self, loss: Floats) -> Floats:
        """Upper bound on ln f at this loss and all larger ones."""
        return self.log(np.maximum(loss, -0.5 * self.a * self.a))

    def fuzz(self, loss: Floats) -> Floats:
        """Relative error of f."""
        u, most = np.abs(loss) / self.a + 0.5 * self.a, float(np.abs(loss).max()) / self.a
        return np.asarray(roundoff(64.0 + 8.0 * u * (u + most)))

    def below(self) -> float:
        """erf(a / (2 sqrt 2))."""
        return math.erf(self.a * math.sqrt(0.125))

    def atom(self) -> float:
        """Minus infinity: there is no atom."""
        return -math.inf


class Slope:
    """Losses on [-e, e] with density k e^(-(l + e)/2), and optional atoms at -e and e."""

    bend = lift = 0.0

    def __init__(self, e: float, atoms: bool) -> None:
        self.top, self.atoms, self.width = e, atoms, max(e, 2.0)
        self.start = math.log(0.25) if atoms else -math.log(-2.0 * math.expm1(-e))

    def log(self, loss: Floats) -> Floats:
        """Logarithm of f."""
        return np.asarray(self.start - 0.5 * (loss + self.top))

    def slope(self, loss: Floats) -> Floats:
        """(ln f)'."""
        return np.full(len(loss), -0.5)

    def largest(self, loss: Floats) -> Floats:
        """Upper bound on ln f at this loss and all larger ones."""
        return self.log(loss)

    def fuzz(self, loss: Floats) -> Floats:
        """Relative error of f."""
        return np.full(len(loss), roundoff(64.0 + 8.0 * self.top))

    def below(self) -> float:
        """1 - e^(-e/2) with atoms, tanh(e/4) without."""
        return -math.expm1(-0.5 * self.top) if self.atoms else math.tanh(0.25 * self.top)

    def atom(self) -> float:
        """Logarithm of e^-e / 2."""
        return math.log(0.5) - self.top if self.atoms else -math.inf


def plain_law(sampled: ContinuousStep) -> tuple[PlainLaw, float]:
    """Return the distribution of the loss before sampling, and the sampling rate, of a pair."""
    if isinstance(sampled, Interval):
        return Slope(sampled.e, sampled.atoms), sampled.q
    assert isinstance(sampled, GaussianMixture)
    ((a, q),) = sampled.up
    return Bell(a), q


# Samples of a fixed size: the symmetric curve if a record is replaced.
#
# Let a mechanism on samples have the symmetric curve delta(t), and let each record be sampled with
# probability q. If a record is replaced, the curve of the subsampled mechanism is at most
#
#     delta'(t) = q delta(ln(1 + (e^t - 1)/q)),   t >= 0,
#
# (Balle, Barthe and Gaboardi 2018); the proof is in docs/theory/sampling.md. For positive losses,
# this is the curve of (1-q) Q + q P against Q. Neighbours can be swapped, so negative losses are
# the mirror image. The loss is L = ln A with A = 1 - q + q e^l. Its distribution under Q has the
# masses of l > 0 at L, e^L times these masses at -L, and the remaining mass at zero.


#: Number of points of the Gauss-Legendre rule on a panel.
_RULE = 24
#: Maximum number of panels.
_PANELS = 1 << 11
#: Parameters of the ellipses on which integrands are bounded.
_ELLIPSES = 1.0 + 0.7 * 1.7 ** np.arange(6)
#: Number of cells on which total variations are bounded.
_CELLS = 1 << 11
#: Number of starting points of these variations.
_PLACES = 1 << 6


def amplified(loss: Floats, q: float) -> tuple[Floats, Floats, Floats]:
    """Return L = ln(1 - q + q e^l), a bound on its error, and dL/dl."""
    near = q * np.expm1(np.minimum(loss, 1.0))
    far = np.logaddexp(math.log1p(-q), math.log(q) + loss)
    result = np.where(loss <= 1.0, np.log1p(near), far)
    error = roundoff(4.0) * (np.minimum(np.abs(near), np.abs(result)) + np.abs(result))
    return result, error, np.exp(math.log(q) + loss - result)


def _log_sum(logs: Floats) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum()))


class Symmetrised(ContinuousStep):
    """Symmetric upper bound on both orders of subsampled pairs, with a public random choice.

    Parameters
    ----------
    sampled : tuple of Pair
        Pairs (1-q) Q + q P against Q, all with the same q below 1: Gaussian noise or an interval.
    weights : tuple of float
        Probabilities of the pairs, which sum to one.
    attained_pair : Pair, optional
        The pair that two databases attain, in both orders.
    """

    symmetric = True
    attained = tight = False

    def __init__(
        self,
        sampled: tuple[ContinuousStep, ...],
        weights: tuple[float, ...] = (1.0,),
        attained_pair: ContinuousStep | None = None,
    ) -> None:
        self.sampled, self.weights, self.attained_pair = sampled, weights, attained_pair
        self.choices = tuple(zip(weights, sampled, strict=True))
        laws = [plain_law(pair) for pair in sampled]
        self.laws: list[PlainLaw] = [law for law, _ in laws]
        self.q = laws[0][1]
        tops = {law.top for law in self.laws}
        self.can_be_cut = len(tops) == 1 or math.inf in tops  # otherwise atoms are inside cells
        other = None if attained_pair is None else attained_pair.key
        self.key = ("symmetrised", tuple(pair.key for pair in sampled), weights, other)

    def gaussian_square(self, zcdp: bool) -> tuple[float, float] | None:
        """Return mu^2 without sampling, which is an upper bound and the limit for large orders."""
        if self.top(False) < math.inf:
            return None
        near = self.attained_pair
        least = near.a if isinstance(near, GaussianMixture) else 0.0
        return least**2, max(law.width for law in self.laws) ** 2

    @property
    def below(self) -> ContinuousStep | None:
        """The pair that two databases attain, or None."""
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

        On an ellipse |Im l| <= y < pi, so A lies within an angle y of the positive real axis.
        """
        best = np.full(len(angles), math.inf)
        for r in _ELLIPSES.tolist():
            y, x = 0.5 * half * (r - 1.0 / r), 0.5 * half * (r + 1.0 / r)
            if y > 2.6:
                break
            factor = math.log(64.0 / 15.0) - 2.0 * _RULE * math.log(r) - math.log1p(-(r**-2))
            start = law.largest(middles - x) + law.lift * y * y + math.log(half) + factor
            right = amplified(middles + x, self.q)[0]
            # |A| is at most A at the right end, and at least cos(y/2) times A at the left end.
            least = amplified(middles - x, self.q)[0] + math.log(math.cos(0.5 * y))
            turned = np.maximum(c * (right if c >= 0.0 else least), 0.0)
            other = np.maximum((1.0 - c) * (right if c <= 1.0 else least), 0.0)
            top = np.maximum(np.maximum(turned, other), right)
            log = _log_sum(start + top) + math.log(4.0)
            best = np.minimum(best, log + angles * y)
        return best + 0.01

    def _end(self, law: PlainLaw, c: float, small: float) -> tuple[float, float]:
        """Return a point beyond which f A^c, f A^(1-c) and f A are small, and ln of the tails.

        ln f is concave, and ln A increases by at most 1 per unit. If the log-integrand decreases by
        g per unit at this point, the tail integral is at most the integrand there divided by g.
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
        """Return ln Phi(c) and its first two derivatives; used only to guide the search."""
        return cumulant(self._rough(c), c)

    @lru_cache(maxsize=256)  # noqa: B019  (pairs are few and small)
    def _rough(self, c: float) -> Nodes:
        return self._made(c, 0.0, -20.0, False)

    @lru_cache(maxsize=8)  # noqa: B019  (pairs are few and small)
    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Return Gauss-Legendre rules on panels of l > 0, each point with its mirror image."""
        size = max(self.cumulant(c)[0], 0.0)  # the omitted tail is relative to Phi(c)
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
            np.concatenate([fuzz, fuzz + off + roundoff(4.0) * np.abs(losses), [roundoff(32.0)]]),
            np.concatenate([off, off, zero]),
            remainder,
        )

    def _points(
        self, law: PlainLaw, weight: float, c: float, angle: float, small: float, sure: bool
    ) -> tuple[tuple[Floats, Floats, Floats, Floats], Callable[[Floats], Floats]]:
        """Return log-weights, losses and their errors for one distribution, and an error bound.

        If not ``sure``, panels have the default width, whatever the error bound.
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
                raise TooMuchWork
        at, weights = gauss_legendre(_RULE)
        points = (middles[:, None] + half * at).reshape(-1)
        logs = law.log(points) + np.tile(np.log(weights), panels) + math.log(half)
        fuzz = law.fuzz(points)
        if law.atom() > -math.inf:
            points, logs = np.append(points, law.top), np.append(logs, law.atom())
            fuzz = np.append(fuzz, fuzz.max())
        losses, off, rise = amplified(points, self.q)
        off = off + roundoff(8.0) * end * rise

        def bound(angles: Floats) -> Floats:
            inside = self._remainder(law, c, angles, middles, half)
            # The terms of g without oscillation have an additional factor |w| in a tail.
            return np.asarray(np.logaddexp(inside, tail + np.log1p(angles + abs(c))) + weight)

        return (logs + weight, losses, fuzz + roundoff(np.abs(logs)), off), bound

    def variation(self, c: float) -> tuple[Floats, Floats]:
        """Return bounds that decay as one over the angle, by integration by parts on l > y."""
        # The integrand is r = f A^c / L' against e^(i angle L) dL; losses below y count in full.
        # ln r has the derivative g = (ln f)' + (c + 1) L' - 1, with |g'| <= bend + |c + 1|/4. So
        # the value in the middle of a cell bounds r on the cell. For the mirror image c becomes
        # 1 - c.
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
        """Largest loss, at the largest l."""
        most = max(law.top for law in self.laws)
        return float(amplified(np.array([most]), self.q)[0][0]) if most < math.inf else math.inf

    @lru_cache(maxsize=2)  # noqa: B019  (one for each side)
    def cells(self, far: float, count: int) -> Cells:
        """Return equal cells of l > 0, their mirror images, and one cell for the mass at zero."""
        tops = [law.top for law in self.laws]
        bounded = max(tops) < math.inf
        end = max(self._end(law, 1.0, -far)[0] for law in self.laws)
        edges = np.linspace(0.0, end, count // 2)
        half = 0.5 * (edges[1] - edges[0])
        at, weights = gauss_legendre(4)
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
        error = fuzz + roundoff(64.0 + 8.0 * float(np.abs(density).max()) / 16.0)
        moved = float((off + roundoff(8.0) * end * rise).max())
        return Cells(
            np.concatenate([-losses[::-1], losses]), p_all, q_all, moved, error, bounded=bounded
        )
