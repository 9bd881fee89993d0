"""The largest of several curves: mechanisms of which one pair of neighbours meets one only."""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from fastpriv.accounting.profile.discrete import DiscreteLosses, Step
from fastpriv.accounting.profile.steps.finite import CurveStep, curve_above, levels
from fastpriv.accounting.profile.steps.groups import nothing_lost

if TYPE_CHECKING:
    from fastpriv.accounting.profile.profile import PrivacyProfile

#: Levels of the composed curve in a standard deviation of its losses.
_FINE = 24
#: Delta below which losses of a composed curve count as infinite.
_SMALLEST = 1e-30
#: Largest level of a composed curve: e^t must not overflow.
_FAR = 600.0


class Largest(CurveStep):
    """A step whose pair of distributions is that of one of several profiles."""

    def __init__(self, profiles: tuple[PrivacyProfile, ...]) -> None:
        super().__init__(("largest", *(each.to_json() for each in profiles)))
        self.profiles = profiles

    @property
    def attained(self) -> bool:
        """Always False: other profiles attain the curve at other levels."""
        return False

    @property
    def alternatives(self) -> list[dict[Step, int]]:
        """The steps of each profile: some neighbours attain them."""
        return [each.parts for each in self.profiles]

    def delta(self, t: float) -> tuple[float, float]:
        """Bounds on delta(t): the largest of all profiles."""
        found = [each.delta(t) for each in self.profiles]
        return max(b.lower for b in found), max(b.upper for b in found)

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Bounds on the smallest level at a delta."""
        found = [each.epsilon(delta) for each in self.profiles]
        return max(b.lower for b in found), max(b.upper for b in found)

    def measure(self, flipped: bool, up: bool) -> DiscreteLosses:
        """Return losses whose curve is above the largest one in both orders."""
        return _above(self) if up else nothing_lost()


@lru_cache(maxsize=16)
def _above(step: Largest) -> DiscreteLosses:
    top = min(step.epsilon(0.0)[1], _FAR)
    if math.isinf(top) or top == _FAR:
        top = min(step.epsilon(max(_SMALLEST, 2.0 * step.delta(sys.float_info.max)[1]))[1], _FAR)
    at = levels(step.delta(0.0)[1], max(top, 1e-9), _FINE)
    return curve_above(lambda t: step.delta(t)[1], at, math.inf)
