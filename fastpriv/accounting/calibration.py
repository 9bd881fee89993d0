"""Calibration of noise, number of steps or sampling rate to a guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable

from fastpriv._core import validation as check
from fastpriv.accounting.profile.profile import PrivacyProfile
from fastpriv.errors import Infeasible, InvalidInput, described, did_you_mean
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


def calibrate(
    make: Callable[..., PrivacyProfile],
    *,
    epsilon: float,
    delta: float,
    parameter: str = "noise",
    tolerance: float = 1e-9,
) -> Bracket:
    """Find the smallest noise, most steps or largest sampling rate that meets a guarantee.

    Parameters
    ----------
    make : callable
        Returns a profile for a value of the parameter: an int for steps, otherwise a float. More
        noise must not make the profile worse. More steps or a larger rate must not make it better.
    epsilon, delta : float
        The required guarantee; epsilon is in nats.
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
        above the upper bound. Some ten to twenty profiles are evaluated.

    Examples
    --------
    >>> import fastpriv as fp
    >>> of = fp.accounting.PrivacyProfile.gaussian
    >>> fp.accounting.calibrate(lambda noise: of(noise), epsilon=1.0, delta=1e-6)
    Bracket(4.224678887, 4.224678891)
    >>> steps = fp.accounting.calibrate(
    ...     lambda n: of(1.0, 0.01).self_compose(n), epsilon=2.0, delta=1e-5, parameter="steps")
    >>> steps
    Bracket(1202, 1202)
    """
    if not callable(make):
        raise InvalidInput(f"make must be a function that returns a profile, got {described(make)}")
    level = check.real(epsilon, "epsilon", least=0.0)
    chance = check.real(delta, "delta", least=0.0, most=1.0)
    width = check.real(tolerance, "tolerance", least=1e-13, most=0.5)
    if parameter not in _PARAMETERS:
        hint = did_you_mean(parameter, _PARAMETERS)
        raise InvalidInput(
            f"parameter must be one of {', '.join(_PARAMETERS)}; got {described(parameter)}{hint}"
        )
    search = _Search(make, level, chance, parameter)
    return search.integers() if parameter == "steps" else search.reals(width)


class _Search:
    """Search state: the profiles at the evaluated values."""

    def __init__(
        self, make: Callable[..., PrivacyProfile], epsilon: float, delta: float, parameter: str
    ) -> None:
        self._make, self._epsilon, self._delta = make, epsilon, delta
        self.start, self.least, self.most, self._better = _PARAMETERS[parameter]
        self._integer = parameter == "steps"
        self._name = parameter
        self._seen: dict[float, Bracket] = {}

    def _at(self, x: float) -> Bracket:
        """Return the bracket of delta at a value."""
        if x not in self._seen:
            if len(self._seen) > _TRIES:
                raise Infeasible(f"no {self._name} settles the guarantee in {_TRIES} tries")
            profile = self._make(int(x) if self._integer else x)
            if not isinstance(profile, PrivacyProfile):
                raise InvalidInput(f"make must return a PrivacyProfile, got {described(profile)}")
            self._seen[x] = profile.delta(self._epsilon)
        return self._seen[x]

    def good(self, x: float) -> bool:
        """Whether the guarantee is proved."""
        return self._at(x).upper <= self._delta

    def bad(self, x: float) -> bool:
        """Whether it is refuted."""
        return self._at(x).lower > self._delta

    def _ends(self) -> tuple[float, float]:
        """Return consecutive values: the guarantee is proved at the first, not at the second.

        The first value is the larger one if more is more private.
        """
        factor = 4.0 if self._better else 0.25
        x = self.start
        if self.good(x):
            while self.good(x):
                best, x = x, x / factor
                if not self.least <= x <= self.most:
                    x = min(max(x, self.least), self.most)
                    if self.good(x):
                        return x, x
                    break
            return best, x
        while not self.good(x):
            worst, x = x, x * factor
            if not self.least <= x <= self.most:
                x = min(max(x, self.least), self.most)
                if not self.good(x):
                    raise Infeasible(
                        f"no {self._name} between {self.least:g} and {self.most:g} gives "
                        f"({self._epsilon:g}, {self._delta:g}); ask for a larger epsilon or delta"
                    )
                break
        return x, worst

    def _guess(self, a: float, b: float, halve: bool) -> float:
        """Return the estimated threshold between two values, by log-log interpolation of delta."""
        first, second = self._at(a).midpoint, self._at(b).midpoint
        middle = math.sqrt(a * b)
        if halve or not (0.0 < first < self._delta < second) or self._delta == 0.0:
            return middle
        share = math.log(self._delta / first) / math.log(second / first)
        return float(a * (b / a) ** min(max(share, 0.01), 0.99))

    def reals(self, tolerance: float) -> Bracket:
        """Return the bracket of a real parameter."""
        good, bad = self._ends()
        if good == bad:
            return Bracket(good, good)
        for i in range(60):
            if abs(good - bad) <= tolerance * good:
                break
            x = self._guess(good, bad, i % 4 == 3)
            # Try values on both sides of the interpolated root, so that both bounds converge.
            step = max(0.3 * tolerance * x, 1e-15 * x) * (1.0 if self._better else -1.0)
            for tried in (x + step, x - step):
                if not min(good, bad) < tried < max(good, bad):
                    continue
                good, bad = (tried, bad) if self.good(tried) else (good, tried)
        # A guarantee that is not proved is not necessarily refuted.
        refuted = bad
        gap = max(abs(good - bad), tolerance * bad * 0.1)
        sign = -1.0 if self._better else 1.0
        while not self.bad(refuted):
            refuted = refuted + sign * gap
            gap *= 4.0
            if not self.least <= refuted <= self.most:
                refuted = min(max(refuted, self.least), self.most)
                break
        return Bracket(min(good, refuted), max(good, refuted))

    def integers(self) -> Bracket:
        """Return the bracket of the largest integer."""
        good, bad = (float(int(x)) for x in self._integer_ends())
        i = 0
        while bad - good > 1.0:
            x = float(int(self._guess(good, bad, i % 3 == 2)))
            x = min(max(x, good + 1.0), bad - 1.0)
            good, bad = (x, bad) if self.good(x) else (good, x)
            i += 1
        last = bad
        while not self.bad(last) and last < self.most:
            last = last + max(1.0, last - good)
        return Bracket(good, max(last - 1.0, good) if self.bad(last) else last)

    def _integer_ends(self) -> tuple[float, float]:
        if not self.good(1.0):
            raise Infeasible(
                f"one step does not give ({self._epsilon:g}, {self._delta:g}); add noise"
            )
        x = 1.0
        while self.good(4.0 * x):
            x *= 4.0
            if x > self.most:
                raise Infeasible("any number of steps gives the guarantee")
        return x, 4.0 * x
