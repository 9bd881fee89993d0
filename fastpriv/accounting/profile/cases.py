"""Which compositions bound a profile from above, and which are attained from below."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, cached_property
from typing import Any

import numpy as np

from fastpriv._core.rounding import ULP, raised
from fastpriv.accounting.profile.composition import Chernoff, Losses, RenyiStep
from fastpriv.accounting.profile.crossing import certified
from fastpriv.accounting.profile.discrete import DiscreteLosses, Releases
from fastpriv.accounting.profile.engines.bounded_range import Chosen, levels
from fastpriv.accounting.profile.losses import (
    ContinuousStep,
    Directed,
    Discrete,
    TooCostly,
    in_range,
)
from fastpriv.accounting.profile.neighbours import (
    Fixed,
    attained,
    common,
    every_pair,
    ordered_pairs,
)
from fastpriv.accounting.profile.questions import Delta
from fastpriv.accounting.profile.steps.finite import CurveStep, FiniteStep, SampledFinite
from fastpriv.accounting.profile.steps.gaussian import GaussianNoise
from fastpriv.accounting.profile.steps.laplace import Interval
from fastpriv.accounting.profile.strategy import Curve, Side
from fastpriv.errors import TooLarge
from fastpriv.results import Bracket


def dominating(atoms: Mapping[FiniteStep, int]) -> list[tuple[DiscreteLosses, int]]:
    """Return the dominating pairs of releases; those with the same curve are of one kind."""
    result: dict[tuple[Any, ...], tuple[DiscreteLosses, int]] = {}
    for atom, count in atoms.items():
        result[atom.key] = atom.upper, result.get(atom.key, (None, 0))[1] + count
    return list(result.values())


# Profiles of releases of all kinds: both orders of the neighbours, from both sides.


#: Share of the upper end from which on the lower end is not compared with single releases.
_LOW = 0.9
#: One kind of release.
Step = FiniteStep | ContinuousStep | SampledFinite | RenyiStep


class _Listed:
    """Finite releases in one order: bounds from above, or from below."""

    def __init__(self, releases: Releases, up: bool) -> None:
        self._curve, self._up = Curve(releases, up), up

    def delta(self, t: float) -> tuple[float, float]:
        value = self._curve.delta(t)
        return (0.0, value) if self._up else (value, 1.0)

    def at_most(self, t: float) -> float:
        return self._curve.at_most(t)

    chernoff = at_most

    def epsilon(self, delta: float) -> tuple[float, float]:
        value = self._curve.epsilon(delta)
        return (0.0, value) if self._up else (value, float("inf"))


class Composed:
    """Both ends of the curve of releases some of which are continuous or differ by order.

    Neighbours keep their order in all releases: each order is composed by itself, and the larger
    delta counts.
    """

    def __init__(self, parts: Mapping[Step, int]) -> None:
        self._atoms = {part: k for part, k in parts.items() if isinstance(part, FiniteStep)}
        self._lopsided = [(part, k) for part, k in parts.items() if isinstance(part, SampledFinite)]
        self._moments = [(part, k) for part, k in parts.items() if isinstance(part, RenyiStep)]
        pairs = [(part, k) for part, k in parts.items() if isinstance(part, ContinuousStep)]
        normal = [(part, k) for part, k in pairs if isinstance(part, GaussianNoise)]
        self._pairs = [(part, k) for part, k in pairs if not isinstance(part, GaussianNoise)]
        if normal:
            self._pairs.append((GaussianNoise.together(normal), 1))
        self._alone = _alone(parts)
        self._orders = self._in_order([pair for pair, _ in self._pairs])
        self._orders_below = self._in_order([pair.below or pair for pair, _ in self._pairs])

    def _in_order(self, pairs: list[ContinuousStep]) -> tuple[bool, ...]:
        """The orders of the neighbours that differ."""
        one = all(pair.symmetric for pair in pairs)
        one = one and all(part.symmetric for part, _ in self._lopsided)
        return (False,) if one else (False, True)

    def delta(self, epsilon: float) -> Bracket:
        """Bracket of the least delta at a level."""
        if self._alone is not None:
            return certified(*self._alone.delta(epsilon))
        if self._same:
            return self._both(epsilon)
        high = max(side.delta(epsilon)[1] for side in self._above)
        high = min([high, *(bound.delta(epsilon) for bound in self._chosen)])
        low = 0.0
        for side in self._below:
            with suppress(TooLarge):
                low = max(low, side.delta(epsilon)[0])
        for part in self._levelwise if low < _LOW * high else []:
            low = max(low, part.delta(epsilon)[0])
        for bound in self._chosen:
            if isinstance(bound, Chosen):
                low = max(low, bound.attained(epsilon))
        return certified(min(low, high), high)

    def _both(self, epsilon: float) -> Bracket:
        """Delta of pairs that are attained: orders that are lower by Chernoff's bound count not."""
        low = high = 0.0
        for side in self._above:
            if low == 0.0 or side.at_most(epsilon) > low:
                result = side.delta(epsilon)
                low, high = max(low, result[0]), max(high, result[1])
        return certified(min(low, high), high)

    def both_orders(self) -> tuple[list[tuple[Delta, Delta]], bool]:
        """Return the curve of each order with that of the other, and whether these are all."""
        if self._alone is not None or not self._same:
            return [], False  # no pair is known to attain them
        curves = [_bracket(side) for side in self._above]
        return list(zip(curves, curves[::-1], strict=True)), True

    def epsilon(self, delta: float) -> Bracket:
        """Bracket of the least level at a delta."""
        if self._alone is not None:
            return certified(*self._alone.epsilon(delta))
        if self._same:
            low = high = 0.0
            for side in self._above:
                if not 0.0 < low < math.inf or delta == 0.0 or side.at_most(low) > delta:
                    result = side.epsilon(delta)
                    low, high = max(low, result[0]), max(high, result[1])
            return certified(low, high)
        high, low = self.guaranteed(delta), 0.0
        for side in self._below:
            with suppress(TooLarge):
                low = max(low, side.epsilon(delta)[0])
        for part in self._levelwise if low < _LOW * high else []:
            low = max(low, part.epsilon(delta)[0])
        for bound in self._chosen:
            if isinstance(bound, Chosen):
                low = max(low, bound.attained_epsilon(delta))
        return certified(low, high)

    def guaranteed(self, delta: float) -> float:
        """Upper end of epsilon alone."""
        if self._alone is not None:
            return self._alone.epsilon(delta)[1]
        high = max(float(side.epsilon(delta)[1]) for side in self._above)
        return min([high, *(bound.epsilon(delta) for bound in self._chosen)])

    def log_moment(self, s: float) -> tuple[float, float]:
        """Lower and upper bounds on ln M(s), the larger of both orders, s > 0."""
        atoms = dominating(self._atoms)
        low = high = 0.0
        more = sum(k * part.log_moment(s) for part, k in self._moments)
        for flipped in self._orders:
            above = [*atoms, *((p.measure(flipped, True), k) for p, k in self._lopsided)]
            try:
                high = max(high, more + _log(self._ordered(flipped, False), above, s, True))
            except TooCostly:  # nothing is known from above
                high = math.inf
        for flipped in self._orders_below:
            attained = [(p.measure(flipped, False), k) for p, k in self._reached]
            for candidate in common(self._atoms):
                below = [*candidate, *attained]
                with suppress(TooCostly):
                    low = max(low, _log(self._ordered(flipped, True), below, s, False))
        return min(low, high), high

    def _ordered(self, flipped: bool, attained: bool) -> list[tuple[Directed, int]]:
        pairs = [(pair.below if attained else pair, k) for pair, k in self._pairs]
        return [(Directed(pair, flipped), k) for pair, k in pairs if pair is not None]

    @cached_property
    def _levelwise(self) -> list[CurveStep]:
        """Releases that are known better by themselves than by their measures."""
        return [part for part, _ in self._lopsided if isinstance(part, CurveStep)]

    @cached_property
    def _reached(self) -> list[tuple[SampledFinite, int]]:
        """Releases of both orders that one pair of neighbours attains together."""
        result: list[tuple[SampledFinite, int]] = []
        asked_of: Any = None
        for part, k in self._lopsided:
            needed = part.asked_of if isinstance(part, CurveStep) else None
            if part.attained and (needed is None or asked_of in (None, needed)):
                result.append((part, k))
                asked_of = asked_of or needed
        return result

    @cached_property
    def _same(self) -> bool:
        """Whether what bounds the curve is attained, so that one side serves for both ends."""
        exact = all(atom.free and atom.lower is atom.upper for atom in self._atoms)
        exact = exact and all(part.exact for part, _ in self._lopsided)
        return (
            bool(self._pairs)
            and exact
            and not self._moments
            and all(pair.attained for pair, _ in self._pairs)
        )

    @cached_property
    def _above(self) -> list[Any]:
        """Upper bounds, one for each order."""
        return self.above_with(dominating(self._atoms))

    @cached_property
    def _chosen(self) -> list[Chosen | Chernoff]:
        """Other upper bounds, for several mechanisms of bounded range: envelopes are not best."""
        ranges = [(pair, k) for pair, k in self._pairs if isinstance(pair, Interval)]
        ranges = [(pair, k) for pair, k in ranges if not pair.attained and pair.q == 1.0]
        whole = sum(k for _, k in ranges)
        if whole < 2 or len(ranges) < len(self._pairs) + len(self._atoms) + len(self._lopsided):
            return []
        # A range of e is e^2/8-zCDP (Cesar and Rogers 2021).
        rho = [(RenyiStep((), (), raised(pair.e**2 / 8.0, 4.0), 0.0), k) for pair, k in ranges]
        result: list[Chosen | Chernoff] = [Chernoff([*rho, *self._moments], [], [])]
        if levels(whole) and not self._moments and len(ranges) == 1:
            result.append(Chosen(ranges[0][0].e, whole))
        return result

    def above_with(self, atoms: Releases) -> list[Any]:
        """Upper bounds, one for each order, with these measures in place of channels."""
        result: list[Any] = []
        for flipped in self._orders:
            finite = [*atoms, *((p.measure(flipped, True), k) for p, k in self._lopsided)]
            pairs = self._ordered(flipped, False)
            if self._moments:
                result.append(_Upper(Chernoff(self._moments, pairs, finite)))
            elif pairs:
                result.append(Side(pairs, finite))
            else:
                result.append(_Listed(finite, True))
        return result

    @cached_property
    def _below(self) -> list[Any]:
        """What is attained, in each order."""
        if self._same:
            return self._above
        candidates = common(self._atoms)
        envelopes = [pair for pair, _ in self._pairs if pair.below is None]
        alone = [k for _, k in self._pairs] == [1] and not (self._atoms or self._lopsided)
        if alone and envelopes and envelopes[0].tight:
            return self._above  # one release attains its envelope
        return [side for candidate in candidates for side in self.below_with(candidate)]

    def below_with(self, atoms: Releases) -> list[Any]:
        """What is attained in each order, with these measures in place of channels."""
        one = sum(self._atoms.values()) + sum(k for _, k in self._lopsided) == 1 and not (
            self._pairs or self._moments
        )
        envelopes = [(pair, k) for pair, k in self._pairs if pair.below is None]
        result: list[Any] = []
        for flipped in self._orders_below:
            together = self._lopsided if one else self._reached
            sampled = [(part.measure(flipped, False), k) for part, k in together]
            pairs = self._ordered(flipped, True)
            witnesses = _witnesses(envelopes)
            if pairs:  # each is an integral: some of them will do
                witnesses = witnesses[len(witnesses) // 16 :: 8]
            for witness in witnesses:
                finite = [*atoms, *sampled, *witness]
                if pairs:
                    result.append(Side(pairs, finite))
                elif finite:
                    result.append(_Listed(finite, False))
        return result


def _bracket(side: Any) -> Delta:
    return cache(lambda t: certified(*side.delta(t)))


def _alone(parts: Mapping[Step, int]) -> CurveStep | None:
    """Return the release, where it is the only one and its curve is computed level by level."""
    (part, k), *more = [*parts.items(), (None, 0)]
    return part if isinstance(part, CurveStep) and k == 1 and len(more) == 1 else None


def _witnesses(
    envelopes: list[tuple[ContinuousStep, int]],
) -> list[list[tuple[DiscreteLosses, int]]]:
    """Releases that attain part of what envelopes allow: the first of each kind, and so on."""
    rows = [(pair.witnesses(), k) for pair, k in envelopes]
    rows = [row for row in rows if row[0]]
    if not rows:
        return [[]]
    count = len(rows[0][0])
    return [[(measure, k) for each, k in rows for measure, _ in each[i]] for i in range(count)]


class _Upper:
    """Chernoff's bound, from above only."""

    def __init__(self, bound: Chernoff) -> None:
        self._bound = bound

    def delta(self, t: float) -> tuple[float, float]:
        return 0.0, self._bound.delta(t)

    def at_most(self, t: float) -> float:
        return self._bound.delta(t)

    chernoff = at_most

    def epsilon(self, delta: float) -> tuple[float, float]:
        return 0.0, self._bound.epsilon(delta)


def _log(pairs: list[tuple[Directed, int]], finite: Releases, s: float, up: bool) -> float:
    """Bound ln M(s) of releases in one order."""
    if any(measure.infinite > 0.0 for measure, _ in finite):
        return math.inf
    total, sign = 0.0, 1.0 if up else -1.0
    terms: list[tuple[Losses, int]] = [*pairs, *((Discrete(measure), k) for measure, k in finite)]
    with in_range():
        for term, k in terms:
            log, error = term.log_moments(s, np.zeros(1), 1e-14 / k)
            total += k * (float(log[0].real) + sign * float(error[0]))
    slack = math.fsum(k * (measure.error + s * measure.off) for measure, k in finite)
    return total + sign * (slack + 8.0 * ULP * abs(total))


# Profiles of releases that are all finite: both ends, from the losses of their outputs.


#: Relative width of a bracket from which on a contour is tried too.
_WIDE = 1e-9


class FiniteCases:
    """Both ends of the curve of finite releases.

    From above the dominating pairs of all releases are composed, from below the laws of some pairs
    of neighbours.
    """

    def __init__(self, atoms: Mapping[FiniteStep, int]) -> None:
        self._atoms = atoms

    @cached_property
    def _above(self) -> Curve:
        """The dominating pairs of all releases."""
        return Curve(dominating(self._atoms), up=True)

    @cached_property
    def _below(self) -> list[Curve]:
        """What some pairs of neighbours attain."""
        return [Curve(releases, up=False) for releases in attained(self._atoms)]

    @cached_property
    def _lattices(self) -> tuple[Side, Side] | None:
        """What is attained and what bounds it, by contours: for losses on several lattices."""
        atoms = [(atom, k) for atom, k in self._atoms.items() if atom.free]
        if len(atoms) < len(self._atoms) or any(atom.upper.step == 0.0 for atom, _ in atoms):
            return None
        return Side([], [(atom.lower, k) for atom, k in atoms]), Side([], self._above.releases)

    def delta(self, epsilon: float) -> Bracket:
        """Bracket of the least delta at a level."""
        high, low = self._from_above(lambda curve: curve.delta(epsilon), 1.0), 0.0
        for curve in self._hopeful(epsilon):
            with suppress(TooLarge):  # nothing is known from below
                if low == 0.0 or curve.at_most(epsilon) > low:  # else it stays below
                    low = max(low, curve.delta(epsilon))
        if high - low > _WIDE * high and self._lattices is not None:
            below, above = self._lattices
            low, high = max(low, below.delta(epsilon)[0]), min(high, above.delta(epsilon)[1])
        return certified(low, high)

    def epsilon(self, delta: float) -> Bracket:
        """Bracket of the least level at a delta."""
        high, low = self._from_above(lambda curve: curve.epsilon(delta), math.inf), 0.0
        for curve in self._hopeful(min(high, 0.5 * max(curve.top for curve in self._below))):
            with suppress(TooLarge):
                if 0.0 in (low, delta) or curve.at_most(low) > delta < curve.delta(low):
                    low = max(low, curve.epsilon(delta))
        if high > low * (1.0 + _WIDE) and self._lattices is not None:
            below, above = self._lattices
            low, high = max(low, below.epsilon(delta)[0]), min(high, above.epsilon(delta)[1])
        return certified(low, high)

    def guaranteed(self, delta: float) -> float:
        """Upper end of epsilon alone."""
        high = self._from_above(lambda curve: curve.epsilon(delta), math.inf)
        if high == math.inf and self._lattices is not None:
            high = self._lattices[1].epsilon(delta)[1]
        return high

    def both_orders(self) -> tuple[list[tuple[Delta, Delta]], bool]:
        """Return curves of pairs, each with that of the other order, and whether they are all."""
        if all(atom.free for atom in self._atoms):  # one pair, the same in both orders
            return [(self.delta, self.delta)], True
        if any(atom.source is None for atom in self._atoms if not atom.free):
            return [], False
        try:
            pairs = ordered_pairs(self._atoms)
        except TooLarge:
            return [], False
        # Who chooses later releases after earlier outputs may look at another pair by then.
        every = len(pairs) <= 2 or sum(self._atoms.values()) == 1
        return [(_curve(first), _curve(second)) for first, second in pairs], every

    def bends(self) -> list[float]:
        """Levels at which curves of one release bend: its losses; none of several releases."""
        if sum(self._atoms.values()) != 1:
            return []
        measures = [measure for measure, _ in self._above.releases]
        with suppress(TooLarge):
            both = ordered_pairs(self._atoms)
            measures += [m for pair in both for fixed in pair for _, m, _ in fixed]
        losses = {float(loss) + m.shift for m in measures for loss in m.losses}
        return sorted(loss for loss in losses if loss >= 0.0)

    def _from_above(self, ask: Callable[[Curve], float], unknown: float) -> float:
        """Answer of the listed losses, or nothing where contours do without listing them."""
        try:
            return ask(self._above)
        except TooLarge:
            if self._lattices is None:
                raise
            return unknown

    def _hopeful(self, epsilon: float) -> list[Curve]:
        """Curves from below, those first that are likely to be the highest."""
        if len(self._below) == 1:
            return self._below
        return sorted(self._below, key=lambda curve: curve.at_most(epsilon), reverse=True)


def _curve(fixed: Fixed) -> Delta:
    """Return the bracket of the delta of one pair in one order, as a function of the level."""
    low = Curve([(measure, k) for measure, _, k in fixed], up=False)
    high = Curve([(measure, k) for _, measure, k in fixed], up=True)
    return cache(lambda t: certified(low.delta(t), high.delta(t)))


class Largest:
    """The largest of the curves of some pairs."""

    def __init__(self, candidates: list[Fixed]) -> None:
        self._above = [Curve([(up, k) for _, up, k in each], True) for each in candidates]
        self._below = [Curve([(low, k) for low, _, k in each], False) for each in candidates]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return both ends of delta."""
        bounds = [curve.at_most(epsilon) for curve in self._above]
        low = high = 0.0
        for j in np.argsort(bounds)[::-1].tolist():
            if bounds[j] < high:
                break
            high = max(high, self._above[j].delta(epsilon))
            low = max(low, self._below[j].delta(epsilon))
        return low, high

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Return both ends of epsilon."""
        low = high = 0.0
        guess = 0.5 * max(curve.top for curve in self._above)
        bounds = [curve.at_most(guess) for curve in self._above]
        for j in np.argsort(bounds)[::-1].tolist():
            curve = self._above[j]
            known = 0.0 < high < math.inf and curve.infinite < delta
            if known and curve.at_most(high) <= delta:
                continue
            high = max(high, curve.epsilon(delta))
            low = max(low, self._below[j].epsilon(delta))
        return low, high


# Fixed channels together with noise: the worst pair of neighbours of the channels.


#: Most pairs of neighbours that are composed with noise one by one.
_PAIRS = 1 << 8


class LargestWithNoise:
    """The largest of the curves of some pairs of neighbours of channels, composed with noise.

    Noise has one pair, in both orders, whatever the neighbours; each pair of the channels comes in
    both orders too. So all of these, composed, are the exact curve, or bound it where the noise is
    known by a bound.
    """

    def __init__(self, parts: Mapping[Step, int]) -> None:
        atoms = {part: k for part, k in parts.items() if isinstance(part, FiniteStep)}
        noise = Composed({part: k for part, k in parts.items() if not isinstance(part, FiniteStep)})
        pairs = every_pair(atoms)
        if len(pairs) > _PAIRS:
            raise TooLarge(
                f"there are {len(pairs):,} pairs of neighbours to compose with noise, more than "
                f"{_PAIRS}; ask for the guarantee that survives adaptive choice, adaptive=True"
            )
        self._above = [
            side for each in pairs for side in noise.above_with([(up, k) for _, up, k in each])
        ]
        self._below = [
            side for each in pairs for side in noise.below_with([(low, k) for low, _, k in each])
        ]

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return both ends of delta."""
        high = low = 0.0
        for side in _largest_first(self._above, epsilon):
            if high == 0.0 or side.at_most(epsilon) > high:
                high = max(high, side.delta(epsilon)[1])
        for side in _largest_first(self._below, epsilon):
            if low == 0.0 or side.chernoff(epsilon) >= low:
                low = max(low, side.delta(epsilon)[0])
        return min(low, high), high

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Return both ends of epsilon."""
        high = low = 0.0
        for side in _largest_first(self._above, 1.0):
            if not 0.0 < high < math.inf or side.at_most(high) > delta:
                high = max(high, side.epsilon(delta)[1])
        for side in _largest_first(self._below, 1.0):
            if low == 0.0 or delta == 0.0 or side.chernoff(low) >= delta:
                low = max(low, side.epsilon(delta)[0])
        return low, high


def _largest_first(sides: list, t: float) -> list:  # type: ignore[type-arg]
    """Return sides in the order of Chernoff's bounds on them, about, the largest first."""
    return sorted(sides, key=lambda side: -side.chernoff(t))
