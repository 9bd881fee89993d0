"""Profiles of releases that are all finite: both ends, from the losses of their outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, cached_property

from fastpriv.accounting.profile.atoms import Atom, dominating
from fastpriv.accounting.profile.attained import attained
from fastpriv.accounting.profile.crossing import certified
from fastpriv.accounting.profile.curve import Curve
from fastpriv.accounting.profile.distinguishing import Delta
from fastpriv.accounting.profile.fixed import Fixed, ordered_pairs
from fastpriv.accounting.profile.side import Side
from fastpriv.errors import TooLarge
from fastpriv.results import Bracket

#: Relative width of a bracket from which on a contour is tried too.
_WIDE = 1e-9


class Finite:
    """Both ends of the curve of finite releases.

    From above the dominating pairs of all releases are composed, from below the laws of some pairs
    of neighbours.
    """

    def __init__(self, atoms: Mapping[Atom, int]) -> None:
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
