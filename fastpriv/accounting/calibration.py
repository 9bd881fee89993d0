"""Calibration of noise, number of steps or sampling rate to a guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from fastpriv._core import validation as check
from fastpriv._core.rounding import raised, sum_down, sum_up
from fastpriv._core.search import crossing, golden
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.errors import FastprivError, Infeasible, InvalidInput, described, did_you_mean
from fastpriv.results import Bracket

__all__ = ["calibrate"]

#: For each parameter: start and limits of the search, and whether more of it is more private.
_PARAMETERS = {
    "noise": (1.0, 1e-6, 1e15, True),
    "steps": (1.0, 1.0, 1e15, False),
    "sampling": (0.1, 1e-15, 1.0, False),
}
#: Maximum number of evaluated profiles.
_TRIES = 200
#: First steps of the search, as ratios: from a default value, and near an expected one.
_FAR, _NEAR = 4.0, 1.25
#: The first step from a threshold of rough estimates, as a ratio.
_CLOSE = 1.01
#: Relative accuracy of that threshold, and the most estimates that are made for it.
_ROUGH = 1e-2
_ROUGH_TRIES = 60
#: The accuracy of the threshold of near estimates, as a share of the tolerance.
_NEARLY = 0.1
#: Most secant steps to that threshold.
_SECANTS = 12
#: False-positive rates up to this are not calibrated by levels: e^t would overflow.
_RARE = 1e-300
#: Width of a bracket, in tolerances, above which the rate itself narrows it.
_WIDE = 8.0


class _NoEstimate(Exception):
    """No rough estimate is cheap, or too many were made."""


def calibrate(
    make: Callable[..., PrivacyProfile],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    tpr: float | None = None,
    fpr: float | None = None,
    bayes_risk: float | None = None,
    prior: float | None = None,
    parameter: str = "noise",
    tolerance: float = 1e-9,
) -> Bracket:
    """Find the smallest noise, most steps or largest sampling rate that meets a guarantee.

    The guarantee is one of the following, for the best test between two neighbours:

    - ``epsilon`` and ``delta``: (epsilon, delta)-differential privacy.
    - ``advantage``: true-positive rate minus false-positive rate at most this; it is delta(0).
    - ``tpr`` and ``fpr``: true-positive rate at most ``tpr`` at the false-positive rate ``fpr``.
    - ``bayes_risk`` and ``prior``: error probability at least ``bayes_risk`` with the prior
      probability ``prior`` of one of them, 1/2 by default.

    Gaussian noise has closed forms: 1/(2 Phi^-1((1 + advantage)/2)) and
    1/(Phi^-1(tpr) - Phi^-1(fpr)).

    Parameters
    ----------
    make : callable
        Returns a profile for a value of the parameter: an int for steps, otherwise a float. More
        noise must not make the profile worse. More steps or a larger rate must not make it better.
    epsilon, delta : float
        Level in nats, and a probability.
    advantage : float
        Between 0 and 1.
    tpr, fpr : float
        Probabilities, ``tpr`` above ``fpr``.
    bayes_risk, prior : float
        Probabilities, ``bayes_risk`` below ``prior`` and 1 - ``prior``.
    parameter : {"noise", "steps", "sampling"}
        The argument of ``make``: noise between 1e-6 and 1e15, an integer number of steps >= 1, or
        a sampling rate.
    tolerance : float
        Target relative width of the bracket.

    Returns
    -------
    Bracket
        Certified bounds on the threshold. For noise, the guarantee holds at the upper bound and
        fails below the lower bound. For steps and rates, it holds at the lower bound and fails
        above the upper bound. Some ten to twenty profiles are evaluated; ``tpr`` evaluates each at
        some 70 levels.

    Examples
    --------
    >>> import fastpriv as fp
    >>> of = fp.accounting.PrivacyProfile.gaussian
    >>> fp.accounting.calibrate(lambda noise: of(noise), epsilon=1.0, delta=1e-6)
    Bracket(4.224678887, 4.224678892)
    >>> steps = fp.accounting.calibrate(
    ...     lambda n: of(1.0, 0.01).self_compose(n), epsilon=2.0, delta=1e-5, parameter="steps")
    >>> steps
    Bracket(1202, 1202)
    >>> fp.accounting.calibrate(of, advantage=0.1)
    Bracket(3.978948279, 3.978948282)
    >>> fp.accounting.calibrate(of, tpr=0.05, fpr=0.01, tolerance=1e-6).width < 1e-5
    True
    """
    if not callable(make):
        raise InvalidInput(
            f"make must be a function that returns a profile; got {described(make)}. For Gaussian "
            "noise give PrivacyProfile.gaussian."
        )
    goal = _goal(
        {"epsilon": epsilon, "delta": delta},
        {"advantage": advantage},
        {"tpr": tpr, "fpr": fpr},
        {
            "bayes_risk": bayes_risk,
            "prior": 0.5 if bayes_risk is not None and prior is None else prior,
        },
    )
    width = check.real(tolerance, "tolerance", least=1e-13, most=0.5)
    if not isinstance(parameter, str) or parameter not in _PARAMETERS:
        hint = did_you_mean(parameter, _PARAMETERS)
        raise InvalidInput(
            f"parameter must be one of {', '.join(_PARAMETERS)}; got {described(parameter)}{hint}"
        )
    if goal.fpr is not None and goal.fpr > _RARE and goal.limit < 1.0:
        return _by_levels(make, goal, parameter, width)
    return _Search(make, goal, parameter).threshold(width)


def _by_levels(
    make: Callable[..., PrivacyProfile], goal: _Goal, parameter: str, tolerance: float
) -> Bracket:
    """Calibrate to a true-positive rate: delta(t) <= tpr - e^t fpr at the best level t.

    The other bound on the threshold is a value at which the rate itself is too large.
    """
    better = _PARAMETERS[parameter][3]
    last: float | None = None

    def cost(t: float) -> float:
        nonlocal last
        there = goal.at(t)
        if there is None:
            return math.inf
        try:
            result = _Search(make, there, parameter, last).threshold(tolerance)
        except Infeasible:
            return math.inf
        last = result.upper if better else result.lower
        return last if better else -last

    assert goal.fpr is not None
    # The threshold is flat at the best level: its error is the square of the error of the level.
    steps = math.ceil(math.log(max(tolerance, 1e-8)) / (2.0 * math.log(0.618))) + 2
    _, value = golden(cost, 0.0, math.log(goal.limit / goal.fpr), steps)
    whole = _Search(make, goal, parameter)
    if value == math.inf:
        return whole.threshold(tolerance)
    return whole.around(abs(value), tolerance)


class _Goal(NamedTuple):
    """A guarantee: ``ask`` returns bounds on a number that must be at most ``limit``.

    ``fpr`` is the false-positive rate at which the number is a true-positive rate.
    """

    ask: Callable[[PrivacyProfile], Bracket]
    limit: float
    words: str
    remedy: str
    fpr: float | None = None
    #: Returns about this number, to start a search; NaN if that is not cheap.
    rough: Callable[[PrivacyProfile, bool], float] | None = None

    def at(self, t: float) -> _Goal | None:
        """Return delta(t) <= tpr - e^t fpr, which is sufficient for every t; None if impossible."""
        assert self.fpr is not None
        limit = sum_down([self.limit, -raised(math.exp(t) * self.fpr, 4.0)])
        if limit <= 0.0:
            return None
        return _Goal(lambda made: made.delta(t), limit, self.words, self.remedy)


def _goal(*kinds: dict[str, float | None]) -> _Goal:
    """Validate the guarantee and return it."""
    asked = [kind for kind in kinds if any(value is not None for value in kind.values())]
    if len(asked) != 1:
        raise InvalidInput(
            "calibrate needs one guarantee: epsilon and delta, or advantage, or tpr and fpr, or "
            f"bayes_risk and prior; got {_named(asked) or 'none'}."
        )
    (kind,) = asked
    missing = [name for name, value in kind.items() if value is None]
    if missing:
        raise InvalidInput(f"{missing[0]} must be given with {_named(asked)}; got None.")
    if "epsilon" in kind:
        level = check.real(kind["epsilon"], "epsilon", least=0.0)
        limit = check.real(kind["delta"], "delta", least=0.0, most=1.0)
        words = f"({level:g}, {limit:g})"
        remedy = "a larger epsilon or delta"
        rough = lambda made, near: made.cases.rough(level, near)  # noqa: E731
        return _Goal(lambda made: made.delta(level), limit, words, remedy, None, rough)
    if "advantage" in kind:
        limit = check.real(kind["advantage"], "advantage", least=0.0, most=1.0)
        words = f"an advantage of {limit:g}"
        return _Goal(lambda made: made.delta(0.0), limit, words, "a larger advantage")
    if "tpr" in kind:
        limit = check.real(kind["tpr"], "tpr", least=0.0, most=1.0)
        rate = check.real(kind["fpr"], "fpr", least=0.0, most=1.0)
        if limit <= rate and limit < 1.0:
            raise InvalidInput(
                f"tpr must be above fpr, because a guess alone has tpr = fpr; got {limit:g} and "
                f"{rate:g}."
            )
        words = f"a true-positive rate of {limit:g} at the false-positive rate {rate:g}"
        if limit < 1.0 < limit + rate:
            # The same errors with the neighbours swapped: the best level of a test is then >= 0.
            limit, rate = sum_down([1.0, -rate]), sum_up([1.0, -limit])
        return _Goal(lambda made: made.tpr(rate), limit, words, "a larger tpr", rate)
    risk = check.real(kind["bayes_risk"], "bayes_risk", least=0.0, most=1.0)
    p = check.real(kind["prior"], "prior", least=0.0, most=1.0)
    if risk >= min(p, 1.0 - p) and risk > 0.0:
        raise InvalidInput(
            f"bayes_risk must be below prior and 1 - prior, the risk of a guess from the prior "
            f"alone; got {risk:g} and {p:g}."
        )

    def right(made: PrivacyProfile) -> Bracket:
        """Return the probability of a right guess."""
        wrong = made.bayes_risk(p)
        return Bracket(sum_down([1.0, -wrong.upper]), sum_up([1.0, -wrong.lower]))

    words = f"a Bayes risk of {risk:g} at the prior {p:g}"
    return _Goal(right, sum_down([1.0, -risk]), words, "a smaller bayes_risk")


def _named(asked: list[dict[str, float | None]]) -> str:
    names = (name for kind in asked for name, value in kind.items() if value is not None)
    return ", ".join(names)


class _Search:
    """Search state: the profiles at the evaluated values."""

    def __init__(
        self,
        make: Callable[..., PrivacyProfile],
        goal: _Goal,
        parameter: str,
        near: float | None = None,
    ) -> None:
        self._make, self._goal, self._limit = make, goal, goal.limit
        self.start, self.least, self.most, self._better = _PARAMETERS[parameter]
        self._ratio = _FAR if near is None else _NEAR
        if near is not None:
            self.start = near
        self._integer = parameter == "steps"
        self._name = parameter
        self._seen: dict[float, Bracket] = {}

    def _at(self, x: float) -> Bracket:
        """Return the bracket of the number that is limited, at a value."""
        if x not in self._seen:
            if len(self._seen) > _TRIES:
                raise Infeasible(
                    f"no {self._name} settles the guarantee in {_TRIES} tries. Give a larger "
                    "tolerance, or a make whose guarantee is monotone."
                )
            self._seen[x] = self._goal.ask(self._profile(x))
        return self._seen[x]

    def _profile(self, x: float) -> PrivacyProfile:
        """Return the profile at a value."""
        profile = self._make(int(x) if self._integer else x)
        if not isinstance(profile, PrivacyProfile):
            raise InvalidInput(f"make must return a PrivacyProfile; got {described(profile)}.")
        return profile

    def good(self, x: float) -> bool:
        """Whether the guarantee is proved."""
        return self._at(x).upper <= self._limit

    def bad(self, x: float) -> bool:
        """Whether it is refuted."""
        return self._at(x).lower > self._limit

    def _ends(self) -> tuple[float, float]:
        """Return consecutive values: the guarantee is proved at the first, not at the second.

        The first value is the larger one if more is more private.
        """
        factor = self._ratio if self._better else 1.0 / self._ratio
        growth = 4.0 if self._ratio < _NEAR else 1.0  # close estimates may be off
        x = self.start
        if self.good(x):
            while self.good(x):
                best, x, factor = x, x / factor, factor**growth
                if not self.least <= x <= self.most:
                    x = min(max(x, self.least), self.most)
                    if self.good(x):
                        return x, x
                    break
            return best, x
        if self._limit == 0.0 and self._hopeless(self.most if factor > 1.0 else self.least):
            raise self._infeasible()
        while not self.good(x):
            worst, x, factor = x, x * factor, factor**growth
            if not self.least <= x <= self.most:
                x = min(max(x, self.least), self.most)
                if not self.good(x):
                    raise self._infeasible()
                break
        return x, worst

    def _hopeless(self, furthest: float) -> bool:
        """Whether not even the last value gives the guarantee; False if it makes no profile."""
        with suppress(FastprivError):
            return not self.good(furthest)
        return False

    def _infeasible(self) -> Infeasible:
        return Infeasible(
            f"no {self._name} between {self.least:g} and {self.most:g} gives {self._goal.words}; "
            f"ask for {self._goal.remedy}."
        )

    def _guess(self, a: float, b: float, halve: bool) -> float:
        """Return the estimated threshold between two values, by log-log interpolation."""
        first, second = self._at(a).midpoint, self._at(b).midpoint
        middle = math.sqrt(a * b)
        if halve or not 0.0 < first < self._limit < second:
            return middle
        share = math.log(self._limit / first) / math.log(second / first)
        return float(a * (b / a) ** min(max(share, 0.01), 0.99))

    def threshold(self, tolerance: float) -> Bracket:
        """Return the bracket of the parameter."""
        return self.integers() if self._integer else self.reals(tolerance)

    def around(self, good: float, tolerance: float) -> Bracket:
        """Return the bracket, given a value at which the guarantee is proved."""
        if self._integer:
            result = self._last(good, good + 1.0)
            return self._narrowed_integers(result.lower, result.upper + 1.0)
        gap = 4.0 * tolerance * good * (-1.0 if self._better else 1.0)
        refuted = self._refuted(good + gap, abs(gap))
        if abs(good - refuted) > _WIDE * tolerance * good and self.bad(refuted):
            return self._narrowed(good, refuted, tolerance)
        return Bracket(min(good, refuted), max(good, refuted))

    def _start_roughly(self, tolerance: float) -> None:
        """Start near the threshold of rough estimates, if there are any, and then of near ones."""
        if self._goal.rough is None or not self._limit > 0.0 or self._ratio != _FAR:
            return
        first = self.start if self._better else 1.0 / self.start
        top = self.most if self._better else 1.0 / self.least
        tried = 0

        def rough(y: float) -> float:
            nonlocal tried
            tried += 1
            return self._estimate(y if tried <= _ROUGH_TRIES else math.nan, False)

        with suppress(_NoEstimate):
            y = crossing(rough, self._limit, first, top, 0.1 * first, relative=_ROUGH)[1]
            if not 0.0 < y < top:
                return
            self.start, self._ratio = (y if self._better else 1.0 / y), _CLOSE
            y = self._secant(y, _NEARLY * tolerance)
            self.start, self._ratio = (y if self._better else 1.0 / y), 1.0 + 0.5 * tolerance

    def _estimate(self, y: float, near: bool) -> float:
        """Return an estimate of the number that is limited; more y is more private."""
        if not y > 0.0:
            raise _NoEstimate
        x = min(max(y if self._better else 1.0 / y, self.least), self.most)
        assert self._goal.rough is not None
        value = self._goal.rough(self._profile(x), near)
        if not value >= 0.0:
            raise _NoEstimate
        return value

    def _secant(self, y: float, relative: float) -> float:
        """Return the threshold of near estimates, by secant steps on logarithms."""
        at, value = math.log(y), self._distance(y)
        following = at + _ROUGH
        for _ in range(_SECANTS):
            last, before = at, value
            at, value = following, self._distance(math.exp(following))
            if value == before:
                raise _NoEstimate
            following = at - value * (at - last) / (value - before)
            if abs(following - at) <= relative:
                return math.exp(following)
        raise _NoEstimate

    def _distance(self, y: float) -> float:
        """Return the logarithm of a near estimate over the limit."""
        value = self._estimate(y, True)
        if value == 0.0:
            raise _NoEstimate
        return math.log(value / self._limit)

    def reals(self, tolerance: float) -> Bracket:
        """Return the bracket of a real parameter."""
        self._start_roughly(tolerance)
        good, bad = self._ends()
        if good == bad:
            return Bracket(good, good)
        return self._narrowed(good, bad, tolerance)

    def _narrowed(self, good: float, bad: float, tolerance: float) -> Bracket:
        """Return the bracket between a value at which the guarantee is proved and one where not."""
        for i in range(60):
            if abs(good - bad) <= tolerance * good:
                break
            x = self._guess(good, bad, i % 4 == 3)
            # Try values on both sides of the interpolated root, so that both bounds converge. It is
            # off by about the square of their distance.
            step = max(0.3 * tolerance * x, 1e-15 * x, min(0.25 * (good - bad) ** 2 / x, 0.01 * x))
            step = step if self._better else -step
            for tried in (x + step, x - step):
                if not min(good, bad) < tried < max(good, bad):
                    continue
                good, bad = (tried, bad) if self.good(tried) else (good, tried)
        # A guarantee that is not proved is not necessarily refuted.
        refuted = self._refuted(bad, max(abs(good - bad), tolerance * bad * 0.1))
        return Bracket(min(good, refuted), max(good, refuted))

    def _refuted(self, x: float, gap: float) -> float:
        """Return a value from x on, in growing steps, at which the guarantee is refuted."""
        sign = -1.0 if self._better else 1.0
        while True:
            x = min(max(x, self.least), self.most)
            if x in (self.least, self.most) or self.bad(x):
                return x
            x = x + sign * gap
            gap *= 4.0

    def integers(self) -> Bracket:
        """Return the bracket of the largest integer."""
        return self._narrowed_integers(*(float(int(x)) for x in self._integer_ends()))

    def _narrowed_integers(self, good: float, bad: float) -> Bracket:
        """Return the bracket of the largest integer between two, as ``_narrowed``."""
        i = 0
        while bad - good > 1.0:
            x = float(int(self._guess(good, bad, i % 3 == 2)))
            x = min(max(x, good + 1.0), bad - 1.0)
            good, bad = (x, bad) if self.good(x) else (good, x)
            i += 1
        return self._last(good, bad)

    def _last(self, good: float, last: float) -> Bracket:
        """Return the bracket of the largest integer, given one at which the guarantee is proved."""
        while not self.bad(last) and last < self.most:
            last = last + max(1.0, last - good)
        return Bracket(good, max(last - 1.0, good) if self.bad(last) else last)

    def _integer_ends(self) -> tuple[float, float]:
        if not self.good(1.0):
            raise Infeasible(f"one step does not give {self._goal.words}. Add noise.")
        x = 1.0
        while self.good(4.0 * x):
            x *= 4.0
            if x > self.most:
                raise Infeasible(
                    f"any number of steps gives {self._goal.words}. Ask for a stricter guarantee."
                )
        return x, 4.0 * x
