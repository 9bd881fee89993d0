"""The ordered list of engines that bound a composition, and the search for a level."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from statistics import NormalDist
from typing import NamedTuple, Protocol, TypeVar

from fastpriv._core.clock import Clock
from fastpriv._core.rounding import directed, lowered, raised, roundoff
from fastpriv._core.search import crossing
from fastpriv.accounting.profile.composition import (
    Bounds,
    Composition,
    Engine,
    Prepared,
    cumulant,
    discrete_tilt_for,
    log_moment_above,
    tilt_at,
    tilt_for,
)
from fastpriv.accounting.profile.discrete import Releases, discrete_cumulant
from fastpriv.accounting.profile.engines.closed_form import CLOSED_FORM, curve_of_one
from fastpriv.accounting.profile.engines.contour import (
    CONTOUR,
    DENSE_CONTOUR,
    SMOOTHED_CONTOUR,
    near_log_delta,
    rough_log_delta,
)
from fastpriv.accounting.profile.engines.grid import GRID
from fastpriv.accounting.profile.engines.large_loss import LARGE_LOSS, likely_level
from fastpriv.accounting.profile.engines.lattice import LATTICE
from fastpriv.accounting.profile.engines.threshold import THRESHOLD
from fastpriv.accounting.profile.losses import NoBound, in_range
from fastpriv.errors import TooLarge

_Answer = TypeVar("_Answer")

#: Relative width up to which bounds count as good.
_WIDE = 4e-10
#: Relative width above which the grid is tried too.
_WIDER = 2e-7
#: Relative width above which other engines are tried if large losses are rare.
_WIDEST = 1e-6


class Goal(NamedTuple):
    """Relative width at which bounds are narrow enough, and the time that is left."""

    accuracy: float = 0.0
    clock: Clock | None = None

    def asks_more(self, low: float, high: float, wider: float) -> bool:
        """Whether bounds that are wider than asked for should be narrowed by another engine."""
        if self.clock is not None and self.clock.left() == 0.0:
            return False
        return high == math.inf or high - low > max(wider, self.accuracy) * high


#: The goal of the current question.
_GOAL: ContextVar[Goal] = ContextVar("goal", default=Goal())  # noqa: B039  (it cannot be changed)


@contextmanager
def goal(accuracy: float, time_limit: float) -> Iterator[None]:
    """Set the goal of all questions asked meanwhile.

    Bounds hold whatever the goal is. Once the time is over, Chernoff's inequality gives those that
    are still missing.
    """
    token = _GOAL.set(Goal(accuracy, None if time_limit == math.inf else Clock(time_limit)))
    try:
        yield
    finally:
        _GOAL.reset(token)


class NearlyOne:
    """Lower bound for delta close to one: E min(1, e^(t-L)) <= M(-1/2) e^(t/2)."""

    name = "nearly one"

    def applies(self, parts: Composition) -> bool:
        """Whether all losses have a density, so that the moments include their errors."""
        return bool(parts.pairs) and not parts.finite

    def prepare(self, parts: Composition, t: float, s: float) -> Prepared:
        """Compute one moment."""
        return _HalfMoment(sum(k * log_moment_above(one, -0.5, 1e-12) for one, k in parts.terms))


class _HalfMoment(NamedTuple):
    log: float

    def bounds(self, t: float) -> Bounds:
        """Bound delta(t) from below."""
        log = self.log + 0.5 * t
        error = 1e-12 * (abs(self.log) + 0.5 * t)
        return max(1.0 - math.exp(min(log + error, 0.0)) * (1.0 + 1e-12), 0.0), 1.0


class Attempt(NamedTuple):
    """An engine and the conditions under which it is tried.

    It is tried if the relative width of the bounds so far exceeds ``wider``. If ``enough`` and it
    returns a bound, no further engine is tried. The search for a level prepares it at the level
    expected from the saddle point, or, if ``near``, at the level found so far. It is tried at most
    ``times`` times per round.
    """

    engine: Engine
    wider: float = 0.0
    enough: bool = False
    near: bool = False
    times: int = 1


#: The engines in the order in which they are tried, each only if ``applies`` accepts the losses.
ENGINES = (
    Attempt(CLOSED_FORM, enough=True),
    Attempt(LATTICE, enough=True),
    Attempt(CONTOUR),
    Attempt(NearlyOne(), wider=_WIDE),
    Attempt(THRESHOLD, wider=_WIDE, near=True, times=3),
    Attempt(LARGE_LOSS, wider=_WIDE, near=True, times=2),
    Attempt(DENSE_CONTOUR, wider=_WIDE, near=True),
    Attempt(SMOOTHED_CONTOUR, wider=_WIDE, near=True),
    Attempt(GRID, wider=_WIDER),
)

#: The order if large losses are rare: the tilted distribution is then far wider than the level.
RARE_ENGINES = (
    *(attempt for attempt in ENGINES if attempt.enough),
    Attempt(THRESHOLD, near=True, times=3),
    *(attempt._replace(wider=_WIDEST) for attempt in ENGINES if not attempt.enough),
)
#: Ratio of the standard deviation of the tilted losses to the level from which on they are rare.
_RARE = 5.0
#: The same ratio up to which losses are not rare, at a level from a saddle point.
_ORDINARY = 1.4
#: Multiple of the level of Gaussian noise up to which such a level is plausible.
_FAR_ABOVE = 8.0
#: Engines whose preparation depends on the level, not on the saddle point alone.
_NEAR_ENGINES = frozenset(attempt.engine for attempt in ENGINES if attempt.near)

#: From this delta on, a normal approximation gives the first tilt.
_LARGE = 0.05
#: First step of the search for a level, relative to the expected level.
_FIRST_STEP = 1e-3
#: Where no upper bound on a level is known, the next one is tried at this multiple of the lower.
_FURTHER = 1.05
#: Number of prepared bounds kept for later queries.
_KEPT = 8
#: Distance from the saddle point, in standard deviations, within which prepared bounds are good.
_NEAR = 1.0
#: The same distance for a tilted distribution of discrete losses.
_RETILT = 2.0
#: Maximum number of new tilts of discrete losses.
_AGAIN = 24
#: Relative change of the level below which it counts as converged.
_STILL = 1e-10
#: Relative width of a level from a smoothed contour up to which no grid is tried.
_GOOD_LEVEL = 1e-9
#: Maximum number of new tilts of continuous losses.
_ROUNDS = 8
#: Level beyond which the contribution of finite losses is not computed.
_FAR = 1e300
#: Level beyond which Chernoff's bound is tried first.
_LONG = 1e4
#: No level is searched for positive deltas below this one; underflow hides smaller values only.
_TINY = 1e-305


def _is_rare(parts: Composition, s: float, t: float) -> bool:
    """Whether the losses tilted by the saddle point s of a level t are far wider than the level."""
    return cumulant(parts.terms, s)[2] > (_RARE * t) ** 2


class Curve(Protocol):
    """Bounds on one of the curves whose maximum is a profile."""

    @property
    def infinite(self) -> Bounds:
        """Probability that some loss is infinite."""

    @property
    def top(self) -> Bounds:
        """Largest finite loss."""

    def at_most(self, t: float) -> float:
        """Cheap upper bound on delta(t)."""

    def delta(self, t: float) -> Bounds:
        """Lower and upper bounds on delta(t)."""

    def epsilon(self, delta: float) -> Bounds:
        """Lower and upper bounds on the smallest t >= 0 with delta(t) <= delta."""


class _Composed:
    """Bounds on one composition by the engines; subclasses search for a level."""

    def __init__(self, parts: Composition) -> None:
        self.parts = parts
        self._kept: OrderedDict[tuple[str, float, float], Prepared | None] = OrderedDict()
        #: The exception of each engine that had no bound, by its name, to explain a wide bracket.
        self.reasons: dict[str, Exception] = {}

    @property
    def infinite(self) -> Bounds:
        """Probability that some loss is infinite."""
        return self.parts.infinite

    @property
    def top(self) -> Bounds:
        """Largest finite loss."""
        return self.parts.top

    def at_most(self, t: float) -> float:
        """Cheap and certified upper bound on delta(t), by Chernoff's inequality."""
        return self.parts.at_most(t)

    def delta(self, t: float) -> Bounds:
        """Lower and upper bounds on delta(t)."""
        low, high = self.infinite
        if high >= 1.0 or t >= self.top[1]:
            return low, high
        if t > _FAR:
            return low, min(high + 2e-323, 1.0)  # finite losses there are rarer than any double
        if t > _LONG:
            most = self.at_most(t)
            if most - high < 1e-320:
                return low, min(most, 1.0)
        try:
            with in_range():
                finite = self._finite(t)
        except NoBound:
            finite = 0.0, 1.0
        if high == 0.0:
            return finite
        below = max(low, lowered(low + finite[0], 4.0))
        return below, min(raised(high + finite[1], 4.0), 1.0)

    def _finite(self, t: float) -> Bounds:
        """Bounds on the contribution of finite losses to delta(t), by the engines in order."""
        low, high, asked = 0.0, 1.0, _GOAL.get()
        saddle = cache(lambda: self.parts.tilt_at(t))
        rare = THRESHOLD.applies(self.parts) and _is_rare(self.parts, saddle(), t)
        engines = RARE_ENGINES if rare else ENGINES
        for engine, wider, enough, _, _ in engines:
            if high <= _TINY or not asked.asks_more(low, high, wider):
                continue
            if not engine.applies(self.parts):
                continue
            more = self._bounds(engine, 0.0 if engine is CLOSED_FORM else saddle(), t)
            if more is not None:
                low, high = max(low, more[0]), min(high, more[1])
                if enough:
                    break
        if high == 1.0 and asked.clock is not None and asked.clock.left() == 0.0:
            high = self.at_most(t)
        return low, high

    def _bounds(self, engine: Engine, s: float, t: float) -> Bounds | None:
        made = self._prepared(engine, s, t)
        if made is None:
            return None
        return self._attempt(engine, lambda: made.bounds(t))

    def _prepared(self, engine: Engine, s: float, t: float) -> Prepared | None:
        """Return the bounds that an engine prepares near t with saddle point s, or None."""
        key = engine.name, s, t if engine in _NEAR_ENGINES else 0.0
        if key not in self._kept:
            self._kept[key] = self._attempt(engine, lambda: engine.prepare(self.parts, t, s))
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return self._kept[key]

    def _attempt(self, engine: Engine, ask: Callable[[], _Answer | None]) -> _Answer | None:
        """Call an engine; if it has no bound, record the reason and return None."""
        try:
            with in_range():
                return ask()
        except (NoBound, TooLarge) as reason:
            self.reasons[engine.name] = reason
            return None


class ContinuousCurve(_Composed):
    """Lower and upper bounds on a composition in which some losses have a density."""

    def rough(self, t: float, near: bool = False) -> float:
        """Return about delta(t), by Laplace's method or a sum; used only to guide a search."""
        terms = self.parts.terms
        try:
            with in_range():
                log = (near_log_delta if near else rough_log_delta)(terms, t, self.parts.tilt_at(t))
        except (NoBound, OverflowError):
            return math.nan
        return math.exp(max(log, -700.0)) + self.infinite[1]

    def epsilon(self, delta: float) -> Bounds:
        """Lower and upper bounds on the smallest t >= 0 with delta(t) <= delta."""
        low, high = self.infinite
        if delta >= 1.0 or (self.top[1] == 0.0 and high <= delta):
            return 0.0, 0.0
        if low > delta:
            return math.inf, math.inf
        if delta < _TINY:
            return self.top[0] if delta == 0.0 else 0.0, math.inf if high > delta else self.top[1]
        if high == 0.0 and self._sum_of_curves() <= delta:
            return 0.0, 0.0
        try:
            with in_range():
                if high >= delta:
                    return self._crossing(delta, 0.5 * delta)[0], math.inf
                result = self._crossing(delta, delta - high)
        except NoBound:
            result = 0.0, math.inf
        if high >= delta:
            return 0.0, math.inf
        upper = min(result[1], self.top[1])
        if upper == math.inf:  # no engine has an upper bound: use Chernoff's
            with suppress(NoBound), in_range():
                start = max(cumulant(self.parts.terms, 1.0)[1], 1.0)
                upper = crossing(self.at_most, delta, start, math.inf, _FIRST_STEP * start)[1]
        return min(result[0], upper), upper

    def _sum_of_curves(self) -> float:
        """Upper bound on delta(0) by the sum over steps, or 1 if some step has no closed form."""
        pairs = self.parts.pairs
        if self.parts.finite or not all(one.pair.closed_form_up_to for one, _ in pairs):
            return 1.0
        try:
            with in_range():
                each = [k * curve_of_one(one, 0.0)[1] for one, k in pairs]
        except NoBound:
            return 1.0
        return math.fsum(each) * (1.0 + roundoff(4.0))

    def _start(self, rest: float) -> float:
        """Return the first tilt for a delta, from a normal approximation if delta is large."""
        terms = self.parts.terms
        if rest < _LARGE:
            return tilt_for(terms, math.log(rest))
        _, mean, variance = cumulant(terms, 0.0)
        return tilt_at(terms, max(mean - math.sqrt(variance) * NormalDist().inv_cdf(rest), 0.0))

    def _rare_level(self, c: float, rest: float) -> float:
        """Return about the level if large losses are rare; 0 if the tilt c is an ordinary one.

        At an ordinary tilt, the losses are hardly wider than the level, which is not far from the
        level of Gaussian noise with the same variance without the record.
        """
        terms = self.parts.terms
        _, slope, curve = cumulant(terms, c)
        spread = math.sqrt(cumulant(terms, -1.0)[2])
        normal = 0.5 * spread * spread - spread * NormalDist().inv_cdf(min(rest, 0.4))
        level = max(slope - 1.0 / c - 1.0 / (1.0 + c), 0.0)
        if math.sqrt(curve) <= _ORDINARY * level and level <= _FAR_ABOVE * normal:
            return 0.0
        guess = max(likely_level(self.parts, rest), normal)
        return guess if _is_rare(self.parts, tilt_at(terms, guess), guess) else 0.0

    def _crossing(self, delta: float, rest: float) -> Bounds:
        """Bounds on the level at which the curve equals delta; finite losses have ``rest``."""
        parts, low, high, asked = self.parts, 0.0, math.inf, _GOAL.get()

        def narrow(engine: Engine, c: float, t: float) -> bool:
            """Narrow the level by the bounds that an engine prepares near t."""
            nonlocal low, high
            made = self._prepared(engine, c, t)
            if made is None:
                return False
            start = max(t, 1e-12)
            found = self._attempt(engine, lambda: _search(made, self.infinite, delta, start))
            if found is None:
                return False
            low, high = max(low, found[0]), min(high, found[1])
            return True

        if CLOSED_FORM.applies(parts) and narrow(CLOSED_FORM, 0.0, 1.0):
            return low, high
        c = self._start(rest)
        guess = self._rare_level(c, rest) if THRESHOLD.applies(parts) else 0.0
        if guess > 0.0:
            c = tilt_at(parts.terms, guess)
        for _ in range(_ROUNDS):
            _, slope, curve = cumulant(parts.terms, c)
            t = max(slope - 1.0 / c - 1.0 / (1.0 + c), 0.0)
            for engine, wider, enough, near, times in RARE_ENGINES if guess > 0.0 else ENGINES:
                for _ in range(times):
                    if enough or not asked.asks_more(low, high, wider):
                        break
                    if not engine.applies(parts):
                        break
                    if not near:
                        narrow(engine, c, t)
                        continue
                    # If the tilted distribution has two modes, t is not between them.
                    there = 0.5 * (low + high)
                    if high == math.inf:
                        there = max(guess or likely_level(parts, rest) or t, _FURTHER * low)
                    if not there > 0.0:
                        break
                    width = high - low
                    narrow(engine, tilt_at(parts.terms, there), there)
                    if width < math.inf and high - low > 0.5 * width:
                        break  # as narrow as it gets
            middle = low if high == math.inf else 0.5 * (low + high)
            good = abs(middle - t) <= _NEAR * math.sqrt(curve + 1.0 / c**2)
            enough_now = _WIDEST if guess > 0.0 else _WIDE
            if good or high == 0.0 or not asked.asks_more(low, high, enough_now):
                break
            c = tilt_at(parts.terms, middle)
        return low, high


class DiscreteCurve(_Composed):
    """An upper or a lower bound on a composition of discrete losses."""

    def __init__(self, releases: Releases, up: bool) -> None:
        super().__init__(Composition([], list(releases), up))
        self._up = up

    def delta(self, t: float) -> Bounds:
        """A lower or an upper bound on delta(t)."""
        result = super().delta(t)
        self._check_known(result[1] < 1.0 if self._up else result[0] > 0.0)
        return (0.0, result[1]) if self._up else (result[0], 1.0)

    def epsilon(self, delta: float) -> Bounds:
        """A lower or an upper bound on the smallest t >= 0 with delta(t) <= delta."""
        result = self._level(delta)
        return (0.0, result) if self._up else (result, math.inf)

    def _check_known(self, known: bool) -> None:
        """If no engine has a bound, raise the TooLarge error of the grid."""
        reason = self.reasons.get(GRID.name)
        if not known and isinstance(reason, TooLarge):
            raise reason

    def _level(self, delta: float) -> float:
        side = 1 if self._up else 0
        infinite, top = self.infinite[side], self.top[side]
        if delta >= 1.0 or top == 0.0 >= infinite - delta:
            return 0.0
        if infinite >= delta:
            return math.inf if infinite > delta else top
        releases, shift = self.parts.finite, self.parts.shift
        s = discrete_tilt_for(releases, max(delta - infinite, 0.1 * delta))
        known = math.inf if self._up else 0.0
        if self._prepared(LATTICE, s, 0.0) is None and SMOOTHED_CONTOUR.applies(self.parts):
            both = ContinuousCurve(Composition([], releases)).epsilon(delta)
            known = both[side]
            if both[1] <= both[0] * (1.0 + _GOOD_LEVEL):
                return known
        result, other, stuck = self._cross(s, delta), 0.0 if self._up else top, False
        if result is None:
            self._check_known(known not in (0.0, math.inf))
            return min(known, top) if self._up else known
        for _ in range(_AGAIN):
            if not _GOAL.get().asks_more(0.0, math.inf, 0.0):  # the time is over
                break
            _, middle, variance = discrete_cumulant(releases, s)
            if s > 0.0 and abs(result - shift - middle) <= _RETILT * math.sqrt(variance):
                break
            inside = 0.0 < result < top and not stuck
            here = result if inside else 0.5 * (result + other)
            s = self.parts.tilt_at(here)
            again = self._cross(s, delta)
            if again is None:
                break
            again = min(result, again) if self._up else max(result, again)
            still = abs(again - result) <= _STILL * result
            if still and not inside:
                break
            result, stuck = again, still
        return min(result, known) if self._up else max(result, known)

    def _cross(self, s: float, delta: float) -> float | None:
        """Return the level at which the bound of one tilt equals delta; None without a bound."""
        side = 1 if self._up else 0
        top = self.top[side]
        guess = min(max(discrete_cumulant(self.parts.finite, s)[1] + self.parts.shift, 0.0), top)
        made = self._prepared(LATTICE, s, guess) or self._prepared(GRID, s, guess)
        if made is None:
            return None
        infinite = self.infinite[side]

        def bound(t: float) -> float:
            return directed(infinite + made.bounds(t)[side], 2.0, self._up)

        lower, upper = crossing(bound, delta, guess, top, _FIRST_STEP * max(guess, 1e-3 * top))
        return upper if self._up else lower


def _search(made: Prepared, infinite: Bounds, delta: float, start: float) -> Bounds:
    """Bounds on the level at which finite and infinite losses together equal delta."""
    seen: dict[float, Bounds] = {}

    def bounds(t: float) -> Bounds:
        if t not in seen:
            low, high = made.bounds(t)
            seen[t] = lowered(infinite[0] + low, 4.0), raised(infinite[1] + high, 4.0)
        return seen[t]

    step = _FIRST_STEP * start
    lower, _ = crossing(lambda t: bounds(t)[0], delta, start, math.inf, step)
    known = [(t, high) for t, (_, high) in seen.items()]
    return lower, crossing(lambda t: bounds(t)[1], delta, start, math.inf, step, known)[1]
