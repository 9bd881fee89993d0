"""One release of a sample: which pair of laws it has, or is bounded by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fastpriv._core.rounding import ULP, raised
from fastpriv.accounting.profile.atoms import Atom
from fastpriv.accounting.profile.intervals import Interval
from fastpriv.accounting.profile.lopsided import (
    Lopsided,
    WithoutReplacement,
    discrete_gaussian,
    discrete_laplace,
)
from fastpriv.accounting.profile.mixtures import Mixtures
from fastpriv.accounting.profile.normal import Normal
from fastpriv.accounting.profile.pairs import Blend, Pair
from fastpriv.accounting.profile.symmetrised import Symmetrised

if TYPE_CHECKING:
    from fastpriv.accounting.profile.composed import Part

#: Chance of numbers of draws that counts as showing everything.
_RARE = 1e-24


def one_release(parts: dict[Part, int]) -> Part | None:
    """Return all releases as one, None where they are not."""
    if parts and all(isinstance(part, Normal) for part in parts):
        return Normal.together([(part, k) for part, k in parts.items() if isinstance(part, Normal)])
    return next(iter(parts)) if sum(parts.values()) == 1 else None


def poisson_sample(release: Part, q: float) -> Part | None:
    """Return ((1 - q) Q + q P, Q) for the pair (P, Q) of a release, None where it is not known."""
    if isinstance(release, Normal):
        return Mixtures(release.sigma, ((1.0, q),))
    if isinstance(release, WithoutReplacement):
        return None
    if isinstance(release, Atom):
        return Lopsided(release, q)
    if type(release) is Lopsided:
        return Lopsided(release.atom, release.q * q)
    if isinstance(release, Interval):
        return Interval(release.e, release.atoms, release.q * q)
    if isinstance(release, Mixtures) and not release.down:
        _, sigma, up, _ = release.key
        return Mixtures(sigma, tuple((c, p * q) for c, p in up))
    return None


def replaced_in_sample(release: Part, q: float, blank: bool) -> Part | None:
    """Return the symmetric bound for a person that is replaced, in the sample with probability q.

    If ``blank``, a person that counts zero must be one of the values, and is what is attained.
    """
    if isinstance(release, Normal):
        near = Mixtures(2.0 * release.sigma if blank else release.sigma, ((1.0, q),))
        return Symmetrised((Mixtures(release.sigma, ((1.0, q),)),), (1.0,), near)
    if isinstance(release, Interval) and release.q == 1.0 and (release.atoms or not blank):
        whole = Interval(release.e, release.atoms, q)
        close = Interval(0.5 * release.e, True, q) if blank else whole
        return Symmetrised((whole,), (1.0,), close if release.atoms else None)
    if isinstance(release, Symmetrised) and not blank:
        pairs = tuple(_thinned(pair, q) for pair in release.sampled)
        other = release.attained_pair
        return Symmetrised(pairs, release.weights, None if other is None else _thinned(other, q))
    if isinstance(release, Atom):
        reached = release if release.free else None
        if blank:
            reached = _halved(release)
            if reached is None:
                return None
        return WithoutReplacement(release, q, reached)
    return None


def _thinned(pair: Pair, q: float) -> Pair:
    result = poisson_sample(pair, q)
    assert isinstance(result, Pair)
    return result


def _halved(noise: Atom) -> Atom | None:
    """Return discrete noise at half its distance, None for what is no noise on a sum."""
    make: Any = {"discrete-gaussian": discrete_gaussian, "discrete-laplace": discrete_laplace}
    kind, *rest = noise.key
    if kind not in make or rest[1] % 2:
        return None
    result: Atom = make[kind](rest[0], rest[1] // 2)
    return result


def with_replacement(release: Part, m: int, n: int, relation: str) -> dict[Part, int] | None:
    """Return noise on a sum of m draws from n people, None for other releases."""
    chances = _draws(m, n)
    total = raised(math.fsum(chances), 4.0)
    weights = tuple(chance / total for chance in chances)
    counts = range(1, len(chances) + 1)
    rest = _beyond(chances, m, n)
    shown: dict[Part, int] = {Atom.response(2, 0.0, rest): 1} if rest > 0.0 else {}
    if n == 1:  # everybody is drawn m times
        counts, chances, weights, total, shown = range(m, m + 1), [1.0], (1.0,), 1.0, {}
    if isinstance(release, Normal):
        scale = 2.0 * release.sigma if relation == "replace-special" else release.sigma
        mixed = Mixtures(scale, tuple(zip(map(float, counts), chances, strict=True)))
        if relation == "add-or-remove":
            return {mixed: 1, **shown}
        if total >= 1.0:
            return {Normal(release.sigma / m): 1}
        each = tuple(Mixtures(release.sigma, ((float(k), total),)) for k in counts)
        return {Symmetrised(each, weights, mixed): 1, **shown}
    if isinstance(release, Interval) and release.q == 1.0 and release.atoms:
        if total >= 1.0:
            return {Interval(release.e * m, True): 1}
        laws = tuple(Interval(release.e * k, True, total) for k in counts)
        if relation == "add-or-remove":
            return {Blend(laws, weights, 8.0 * ULP): 1, **shown}
        return {Symmetrised(laws, weights): 1, **shown}
    return None


def _draws(m: int, n: int) -> list[float]:
    """Chances of k = 1, 2, ... successes of m with chance 1/n, rounded up, but for rare ones."""
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
    """Bound the chance of more than k successes by a geometric series, k > 2 m/n."""
    ratio = (m - k) / ((k + 1.0) * (n - 1.0))
    return chance * ratio / (1.0 - ratio) * (1.0 + 1e-9)


def _beyond(chances: list[float], m: int, n: int) -> float:
    """Bound the chance of more successes than are listed."""
    return 0.0 if len(chances) == m or n == 1 else _after(chances[-1], len(chances), m, n)
