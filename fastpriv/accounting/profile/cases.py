"""Compositions that bound a profile from above and from below.

Neighbours keep their order in all steps. Each direction is therefore composed separately, and the
largest delta is taken. The upper bound composes the dominating losses of all steps. The lower bound
composes the losses of a few pairs of neighbours, selected by Renyi divergence. If mechanisms are
fixed beforehand, every pair of neighbours is composed, and the maximum is the curve.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, cached_property, lru_cache
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from fastpriv._core.rounding import raised, roundoff
from fastpriv.accounting.profile.composition import (
    Bounds,
    ChernoffCurve,
    Composition,
    Losses,
    RenyiStep,
)
from fastpriv.accounting.profile.discrete import DiscreteLosses, Releases, Step
from fastpriv.accounting.profile.engines.bounded_range import Chosen, levels
from fastpriv.accounting.profile.losses import (
    ContinuousStep,
    Directed,
    Discrete,
    NoBound,
    in_range,
)
from fastpriv.accounting.profile.neighbours import Fixed, attained, common, ordered_pairs
from fastpriv.accounting.profile.steps.finite import CurveStep, FiniteStep, SampledFinite
from fastpriv.accounting.profile.steps.gaussian import GaussianNoise
from fastpriv.accounting.profile.steps.laplace import Interval
from fastpriv.accounting.profile.strategy import ContinuousCurve, Curve, DiscreteCurve
from fastpriv.errors import SolverFailure, TooLarge, described
from fastpriv.results import Bracket

#: If the lower bound is below this share of the upper one, single steps are tried as lower bounds.
_LOW = 0.9
#: Maximum number of pairs of neighbours composed with noise one by one.
_PAIRS_WITH_NOISE = 1 << 8
#: Most choices of alternatives that are composed.
_CHOSEN = 8
#: If there is noise, one in this many attained pairs of bounded-range mechanisms is used.
_SOME_WITNESSES = 8

#: Function from a level to the bracket of delta.
Delta = Callable[[float], Bracket]


def certified(lower: float, upper: float) -> Bracket:
    """Return the bracket of two bounds; raise SolverFailure if they contradict each other."""
    if lower > upper:
        raise SolverFailure(
            f"bounds from below and above contradict each other ({described(lower)} > "
            f"{described(upper)}); please report this profile."
        )
    return Bracket(lower, upper)


class Case(NamedTuple):
    """An upper curve, an attained lower curve, or both curves of one pair.

    ``at_most`` is a cheap upper bound on both. The upper curve may have attained lower bounds; if
    it has none, its lower bounds are 0.
    """

    upper: Curve | None
    lower: Curve | None
    at_most: Callable[[float], float]


def _case(upper: Curve | None, lower: Curve | None) -> Case:
    curve = upper or lower
    assert curve is not None
    return Case(upper, lower, lru_cache(maxsize=4)(curve.at_most))


class Cases:
    """Bounds on the curve of steps, each of which may be chosen after earlier outputs."""

    #: Up to this number, curves are computed without ranking them first.
    unranked = 4

    def __init__(self, parts: Mapping[Step, int]) -> None:
        self._parts = parts
        self._atoms = {part: k for part, k in parts.items() if isinstance(part, FiniteStep)}
        self._sampled = [(part, k) for part, k in parts.items() if isinstance(part, SampledFinite)]
        self._moments = [(part, k) for part, k in parts.items() if isinstance(part, RenyiStep)]
        pairs = [(part, k) for part, k in parts.items() if isinstance(part, ContinuousStep)]
        known = len(self._atoms) + len(self._sampled) + len(self._moments) + len(pairs)
        if known < len(parts):
            raise TypeError(
                "a step must be a FiniteStep, SampledFinite, ContinuousStep or RenyiStep; "
                f"got {[type(part).__name__ for part in parts]}"
            )
        normal = [(part, k) for part, k in pairs if isinstance(part, GaussianNoise)]
        self._pairs = [(part, k) for part, k in pairs if not isinstance(part, GaussianNoise)]
        if normal:
            self._pairs.append((GaussianNoise.together(normal), 1))
        self._orders = self._directions([pair for pair, _ in self._pairs])
        self._orders_below = self._directions([pair.below or pair for pair, _ in self._pairs])

    def _directions(self, pairs: list[ContinuousStep]) -> tuple[bool, ...]:
        """Return the directions that differ, as flags: True swaps the two neighbours."""
        one = all(pair.symmetric for pair in pairs)
        one = one and all(part.symmetric for part, _ in self._sampled)
        return (False,) if one else (False, True)

    @property
    def _is_finite(self) -> bool:
        return len(self._atoms) == len(self._parts)

    # Questions.

    def delta(self, epsilon: float) -> Bracket:
        """Bracket of the smallest delta at a level."""
        if self._alone is not None:
            low, high = self._alone.delta(epsilon)
            if high >= 1.0 and self._revealed is not None:
                high = min(high, self._revealed.delta(epsilon).upper)
            for chosen in self._chosen if low == 0.0 else []:
                low = max(low, chosen.delta(epsilon).lower)
            return certified(min(low, high), high)
        low = high = 0.0
        for upper, lower, at_most in self._ranked(epsilon):
            if upper is not None and (high == 0.0 or at_most(epsilon) > high):
                below, above = upper.delta(epsilon)
                low, high = max(low, below), max(high, above)
            if lower is not None and (low == 0.0 or at_most(epsilon) > low):
                with suppress(TooLarge):  # no lower bound
                    low = max(low, lower.delta(epsilon)[0])
        for bound in self._joint:
            below, above = bound.delta(epsilon)
            low, high = max(low, below), min(high, above)
        for part in self._levelwise if low < _LOW * high else []:
            low = max(low, part.delta(epsilon)[0])
        if high >= 1.0 and self._revealed is not None:
            high = min(high, self._revealed.delta(epsilon).upper)
        for chosen in self._chosen if low < _LOW * high else []:
            low = max(low, chosen.delta(epsilon).lower)
        return certified(min(low, high), high)

    def epsilon(self, delta: float) -> Bracket:
        """Bracket of the smallest level at a delta."""
        if self._alone is not None:
            low, high = self._alone.epsilon(delta)
            if high == math.inf and self._revealed is not None:
                high = self._revealed.epsilon(delta).upper
            for chosen in self._chosen if low == 0.0 else []:
                low = max(low, chosen.epsilon(delta).lower)
            return certified(min(low, high), high)
        low = high = 0.0

        def is_below(case: Case, level: float) -> bool:
            """Whether a cheap bound shows that the curve is at most delta at this level."""
            return 0.0 < level < math.inf and delta > 0.0 and case.at_most(level) <= delta

        for case in self._ranked():
            upper, lower, _ = case
            if upper is not None and not is_below(case, high):
                below, above = upper.epsilon(delta)
                low, high = max(low, below), max(high, above)
            if lower is not None and not is_below(case, low):
                with suppress(TooLarge):
                    # Search for a level only if this curve exceeds delta at the best level so far.
                    known = 0.0 < low < math.inf and delta > 0.0
                    if known and isinstance(lower, DiscreteCurve) and lower.delta(low)[0] <= delta:
                        continue
                    low = max(low, lower.epsilon(delta)[0])
        for bound in self._joint:
            below, above = bound.epsilon(delta)
            low, high = max(low, below), min(high, above)
        for part in self._levelwise if low < _LOW * high else []:
            low = max(low, part.epsilon(delta)[0])
        if high == math.inf and self._revealed is not None:
            high = self._revealed.epsilon(delta).upper
        for chosen in self._chosen if low < _LOW * high else []:
            low = max(low, chosen.epsilon(delta).lower)
        return certified(low, high)

    def rough(self, epsilon: float, near: bool = False) -> float:
        """Return about delta at a level, to guide a search; NaN where no estimate is cheap.

        It is good to some digits, or, if ``near``, to about ten.
        """
        if self._alone is not None:
            return math.nan
        every = [upper for upper, _, _ in self.cases if upper is not None]
        curves = [curve for curve in every if isinstance(curve, ContinuousCurve)]
        if not curves or len(curves) < len(every):
            return math.nan
        known = [(curve.rough(epsilon), curve) for curve in curves]
        most = max(value for value, _ in known)
        if not near or not most >= 0.0:
            return most
        return max(curve.rough(epsilon, near) for value, curve in known if not value < 0.5 * most)

    def guaranteed(self, delta: float) -> float:
        """Upper bound on epsilon alone."""
        if self._alone is not None:
            return self.epsilon(delta).upper
        high = max(upper.epsilon(delta)[1] for upper, _, _ in self.cases if upper is not None)
        return min([high, *(bound.guaranteed(delta) for bound in self._joint)])

    def _ranked(self, t: float | None = None) -> list[Case]:
        """Sort cases by their cheap upper bounds at a level, largest first; not if few."""
        if len(self.cases) <= self.unranked:
            return self.cases
        if t is None:
            tops = [curve.top[1] for case in self.cases for curve in case[:2] if curve is not None]
            t = 1.0 if math.inf in tops else 0.5 * max(tops)
        ranked = [(case.at_most(t), -k) for k, case in enumerate(self.cases)]
        return [self.cases[-k] for _, k in sorted(ranked, reverse=True)]

    def log_moment(self, s: float) -> Bounds:
        """Lower and upper bounds on ln M(s), the larger of both directions, s > 0."""
        atoms = dominating(self._atoms)
        low = high = 0.0
        more = sum(k * part.log_moment(s) for part, k in self._moments)
        for flipped in self._orders:
            above = [*atoms, *_measures(self._sampled, flipped, True)]
            try:
                high = max(high, more + _log(self._directed(flipped, False), above, s, True))
            except NoBound:  # no upper bound
                high = math.inf
        for flipped in self._orders_below:
            reached = _measures(self._reached, flipped, False)
            for candidate in common(self._atoms):
                below = [*candidate, *reached]
                with suppress(NoBound):
                    low = max(low, _log(self._directed(flipped, True), below, s, False))
        return min(low, high), high

    def both_orders(self) -> tuple[list[tuple[Delta, Delta]], bool]:
        """Return the curves of pairs in both directions, and whether these are all pairs."""
        if self._is_finite:
            return self._finite_orders()
        if self._alone is not None or not self._is_exact:
            return [], False  # no pair is known to attain them
        curves = [_bracket(upper, upper) for upper, _, _ in self.cases if upper is not None]
        return list(zip(curves, curves[::-1], strict=True)), True

    def _finite_orders(self) -> tuple[list[tuple[Delta, Delta]], bool]:
        if all(atom.free for atom in self._atoms):  # one pair, the same in both directions
            return [(self.delta, self.delta)], True
        if any(atom.source is None for atom in self._atoms if not atom.free):
            return [], False
        try:
            pairs = ordered_pairs(self._atoms)
        except TooLarge:
            return [], False
        # An adaptive choice of later steps may involve another pair.
        every = len(pairs) <= 2 or sum(self._atoms.values()) == 1
        return [(_curve(first), _curve(second)) for first, second in pairs], every

    def bends(self) -> list[float]:
        """Levels at which the curve of a single finite step bends: its losses; otherwise none."""
        if not self._is_finite or sum(self._atoms.values()) != 1:
            return []
        measures = [measure for measure, _ in dominating(self._atoms)]
        with suppress(TooLarge):
            both = ordered_pairs(self._atoms)
            measures += [m for pair in both for fixed in pair for _, m, _ in fixed]
        losses = {float(loss) + m.shift for m in measures for loss in m.losses}
        return sorted(loss for loss in losses if loss >= 0.0)

    # Compositions.

    @cached_property
    def cases(self) -> list[Case]:
        """Curves whose maximum is the profile."""
        above = self.above_with(dominating(self._atoms))
        if self._is_exact or self._is_tight:
            return [_case(curve, None) for curve in above]
        above = [_FromAbove(curve) for curve in above]
        below: list[Curve] = []
        for candidate in attained(self._atoms) if self._is_finite else common(self._atoms):
            below += self.below_with(candidate)
        return [*(_case(curve, None) for curve in above), *(_case(None, curve) for curve in below)]

    def above_with(self, atoms: Releases) -> list[Curve]:
        """Upper bounds, one per direction, with the given losses in place of the channels."""
        result: list[Curve] = []
        for flipped in self._orders:
            finite = [*atoms, *_measures(self._sampled, flipped, True)]
            pairs = self._directed(flipped, False)
            if self._moments:
                result.append(ChernoffCurve(self._moments, Composition(pairs, finite)))
            elif pairs:
                result.append(ContinuousCurve(Composition(pairs, finite)))
            else:
                result.append(DiscreteCurve(finite, True))
        return result

    def below_with(self, atoms: Releases) -> list[Curve]:
        """Attained lower bounds in each direction, with the given losses for the channels."""
        envelopes = [(pair, k) for pair, k in self._pairs if pair.below is None]
        together = self._sampled if sum(self._parts.values()) == 1 else self._reached
        result: list[Curve] = []
        for flipped in self._orders_below:
            sampled = _measures(together, flipped, False)
            pairs = self._directed(flipped, True)
            witnesses = _witnesses(envelopes)
            if pairs:  # each witness needs an integral: use a subset
                witnesses = witnesses[len(witnesses) // 16 :: _SOME_WITNESSES]
            for witness in witnesses:
                finite = [*atoms, *sampled, *witness]
                if pairs:
                    result.append(ContinuousCurve(Composition(pairs, finite)))
                elif finite:
                    result.append(DiscreteCurve(finite, False))
        return result

    def _directed(self, flipped: bool, below: bool) -> list[tuple[Directed, int]]:
        pairs = [(pair.below if below else pair, k) for pair, k in self._pairs]
        return [(Directed(pair, flipped), k) for pair, k in pairs if pair is not None]

    @cached_property
    def _alone(self) -> CurveStep | None:
        """The step, if it is the only one and its curve is computed level by level."""
        steps = list(self._parts.items())
        return self._levelwise[0] if [k for _, k in steps] == [1] and self._levelwise else None

    @cached_property
    def _levelwise(self) -> list[CurveStep]:
        """Steps whose own curve is more accurate than their discrete losses."""
        curves = (part for part, _ in self._sampled if isinstance(part, CurveStep))
        return [part for part in curves if part.levelwise]

    @cached_property
    def _revealed(self) -> Cases | None:
        """Cases of the steps that show more, in place of steps that have one; None if none has."""
        parts: Counter[Step] = Counter()
        for part, k in self._parts.items():
            shown = part.revealed if isinstance(part, SampledFinite) else None
            for inner, count in (shown or {part: 1}).items():
                parts[inner] += count * k
        return None if parts == self._parts else Cases(parts)

    @cached_property
    def _chosen(self) -> list[Cases]:
        """Cases with one alternative in place of each step that is the largest of several.

        Alternatives with channels are left out: the neighbours of other steps may be others.
        """
        several = [part for part, _ in self._sampled if part.alternatives]
        choices = product(*(part.alternatives for part in several)) if several else ()
        result = []
        for chosen in islice(choices, _CHOSEN):
            parts = Counter({part: k for part, k in self._parts.items() if part not in several})
            for part, alternative in zip(several, chosen, strict=True):
                for inner, k in alternative.items():
                    parts[inner] += k * self._parts[part]
            if all(part.free for part in parts if isinstance(part, FiniteStep)):
                result.append(Cases(parts))
        return result

    @cached_property
    def _reached(self) -> list[tuple[SampledFinite, int]]:
        """Steps in both directions that one pair of neighbours attains together."""
        result: list[tuple[SampledFinite, int]] = []
        asked_of: Any = None
        for part, k in self._sampled:
            needed = part.asked_of if isinstance(part, CurveStep) else None
            if part.attained and (needed is None or asked_of in (None, needed)):
                result.append((part, k))
                asked_of = asked_of or needed
        return result

    @cached_property
    def _is_exact(self) -> bool:
        """Whether the upper bound is attained, so that one curve gives both bounds."""
        exact = all(atom.free and atom.lower is atom.upper for atom in self._atoms)
        exact = exact and all(part.exact for part, _ in self._sampled)
        attains = all(pair.attained for pair, _ in self._pairs)
        return bool(self._pairs) and exact and not self._moments and attains

    @cached_property
    def _is_tight(self) -> bool:
        """Whether this is a single step whose envelope is attained at each level."""
        alone = [k for _, k in self._pairs] == [1] and len(self._pairs) == len(self._parts)
        return alone and self._pairs[0][0].below is None and self._pairs[0][0].tight

    @cached_property
    def _joint(self) -> list[Chosen | ChernoffCurve]:
        """Joint bounds for several bounded-range mechanisms, tighter than composed envelopes."""
        ranges = [(pair, k) for pair, k in self._pairs if isinstance(pair, Interval)]
        ranges = [(pair, k) for pair, k in ranges if not pair.atoms and pair.q == 1.0]
        whole = sum(k for _, k in ranges)
        if whole < 2 or len(ranges) < len(self._pairs) + len(self._atoms) + len(self._sampled):
            return []
        # A mechanism of range e is e^2/8-zCDP (Cesar and Rogers 2021).
        rho = [(RenyiStep((), (), raised(pair.e**2 / 8.0, 4.0), 0.0), k) for pair, k in ranges]
        nothing = Composition([], [])
        result: list[Chosen | ChernoffCurve] = [ChernoffCurve([*rho, *self._moments], nothing)]
        if levels(whole) and not self._moments and len(ranges) == 1:
            result.append(Chosen(ranges[0][0].e, whole))
        return result


class FixedCases(Cases):
    """Bounds on the curve of mechanisms that are fixed beforehand.

    The losses of noise do not depend on the neighbours. Each pair of neighbours of channels occurs
    in both directions. The maximum over all composed pairs is therefore the exact curve, or a bound
    if noise is known only by a bound.
    """

    unranked = 1

    @cached_property
    def cases(self) -> list[Case]:
        """The curves of every pair of neighbours."""
        pairs = [first for first, _ in ordered_pairs(self._atoms)]
        if not self._is_finite and len(pairs) > _PAIRS_WITH_NOISE:
            raise TooLarge(
                f"there are {len(pairs):,} pairs of neighbours to compose with noise, more than "
                f"{_PAIRS_WITH_NOISE}; ask for the guarantee that survives adaptive choice, "
                "adaptive=True."
            )
        result: list[Case] = []
        for fixed in pairs:
            above = self.above_with([(up, k) for _, up, k in fixed])
            below = self.below_with([(low, k) for low, _, k in fixed])
            if len(above) == len(below) == 1:
                result.append(_case(_FromAbove(above[0]), below[0]))
            else:
                result += [_case(_FromAbove(curve), None) for curve in above]
                result += [_case(None, curve) for curve in below]
        return result


class _FromAbove:
    """A curve of dominating losses that may not be attained; its lower bounds are 0."""

    def __init__(self, curve: Curve) -> None:
        self._curve, self.at_most, self.top, self.infinite = (
            curve,
            curve.at_most,
            curve.top,
            curve.infinite,
        )

    def delta(self, t: float) -> Bounds:
        """Bounds on delta(t); the lower bound is 0."""
        return 0.0, self._curve.delta(t)[1]

    def epsilon(self, delta: float) -> Bounds:
        """Bounds on the level; the lower bound is 0."""
        return 0.0, self._curve.epsilon(delta)[1]


def dominating(atoms: Mapping[FiniteStep, int]) -> list[tuple[DiscreteLosses, int]]:
    """Return the dominating losses of steps; steps with the same curve are counted together."""
    result: dict[tuple[Any, ...], tuple[DiscreteLosses, int]] = {}
    for atom, count in atoms.items():
        result[atom.key] = atom.upper, result.get(atom.key, (None, 0))[1] + count
    return list(result.values())


def _measures(
    steps: list[tuple[SampledFinite, int]], flipped: bool, up: bool
) -> list[tuple[DiscreteLosses, int]]:
    """Return the losses of steps in one direction, with their numbers."""
    return [(m, k * count) for part, k in steps for m, count in part.measures(flipped, up)]


def _bracket(below: Curve, above: Curve) -> Delta:
    """Return the bracket of delta in one direction, as a function of the level."""
    if below is above:
        return cache(lambda t: certified(*above.delta(t)))
    return cache(lambda t: certified(below.delta(t)[0], above.delta(t)[1]))


def _curve(fixed: Fixed) -> Delta:
    """Return the bracket of delta for one pair in one direction, as a function of the level."""
    low = DiscreteCurve([(measure, k) for measure, _, k in fixed], up=False)
    return _bracket(low, DiscreteCurve([(measure, k) for _, measure, k in fixed], up=True))


def _witnesses(
    envelopes: list[tuple[ContinuousStep, int]],
) -> list[list[tuple[DiscreteLosses, int]]]:
    """Return attained losses below the envelopes: entry i takes witness i of each kind."""
    rows = [(pair.witnesses(), k) for pair, k in envelopes]
    rows = [row for row in rows if row[0]]
    if not rows:
        return [[]]
    count = len(rows[0][0])
    return [[(measure, k) for each, k in rows for measure, _ in each[i]] for i in range(count)]


def _log(pairs: list[tuple[Directed, int]], finite: Releases, s: float, up: bool) -> float:
    """Upper or lower bound on ln M(s) of steps in one direction."""
    if any(measure.infinite > 0.0 for measure, _ in finite):
        return math.inf
    total, sign = 0.0, 1.0 if up else -1.0
    terms: list[tuple[Losses, int]] = [*pairs, *((Discrete(measure), k) for measure, k in finite)]
    with in_range():
        for term, k in terms:
            log, error = term.log_moments(s, np.zeros(1), 1e-14 / k)
            total += k * (float(log[0].real) + sign * float(error[0]))
    slack = math.fsum(k * (measure.error + s * measure.off) for measure, k in finite)
    return total + sign * (slack + roundoff(8.0) * abs(total))
