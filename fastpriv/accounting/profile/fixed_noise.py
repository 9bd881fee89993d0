"""Fixed channels together with noise: the worst pair of neighbours of the channels."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fastpriv.accounting.profile.atoms import Atom
from fastpriv.accounting.profile.composed import Composed, Part
from fastpriv.accounting.profile.fixed import every_pair
from fastpriv.errors import TooLarge

#: Most pairs of neighbours that are composed with noise one by one.
_PAIRS = 1 << 8


class LargestWithNoise:
    """The largest of the curves of some pairs of neighbours of channels, composed with noise.

    Noise has one pair, in both orders, whatever the neighbours; each pair of the channels comes in
    both orders too. So all of these, composed, are the exact curve, or bound it where the noise is
    known by a bound.
    """

    def __init__(self, parts: Mapping[Part, int]) -> None:
        atoms = {part: k for part, k in parts.items() if isinstance(part, Atom)}
        noise = Composed({part: k for part, k in parts.items() if not isinstance(part, Atom)})
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
