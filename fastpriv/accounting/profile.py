"""The whole (epsilon, delta) curve of a mechanism, and of many of them together."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import _validation as check
from fastpriv._rounding import ULP
from fastpriv._validation import Floats
from fastpriv.accounting._bounds import Bound, TooMany, listed
from fastpriv.accounting._crossing import certified, last
from fastpriv.accounting._grid import grid_above, grid_below, spacing
from fastpriv.accounting._measures import Atom, Releases, moved_apart
from fastpriv.accounting._saddle import cumulant, tilt_at, tilt_for
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures._arguments import as_channel
from fastpriv.results import Bracket, Brackets

__all__ = ["PrivacyProfile"]

#: Most releases of a kind.
_COUNTED = 10**100
#: Tilted laws that are kept for the next question.
_KEPT = 4
#: Standard deviations from the middle of a tilted law at which it is tilted again.
_FAR = 2.0
#: How often at most, while that helps.
_AGAIN = 24


class PrivacyProfile:
    """The (epsilon, delta) curve of some releases, as a pair of laws that dominates them.

    For one mechanism the curve is the upper envelope, over neighbours x, x' in both orders, of
    their hockey-stick divergences: convex and piecewise linear in e^epsilon, hence that of one
    pair of laws (P, Q), which is at least as easy to tell apart as any two neighbours. Releases
    compose by multiplying their pairs, whatever later mechanisms do with earlier outputs.

    Make one with :meth:`of`, :meth:`realised`, :meth:`randomised_response` or
    :meth:`from_epsilon_delta`.

    Notes
    -----
    Brackets hold for the composed pair: the upper end is a guarantee for every mechanism that the
    profiles were made of, the lower end is reached by the pair itself, so by some mechanism with
    these curves. It is reached by the given one after one release, and after many where a single
    pair of neighbours sets the whole curve, as in E_d. Otherwise every pair of the given mechanism
    may stay below the lower end: no tighter bound follows from curves alone, because the profile
    no longer tells which neighbours a part of the curve came from.

    Losses are listed, on their lattice where there is one, for randomised response and E_d in any
    number, mixtures of a few such epsilons, and other channels while sums are few; beyond that a
    grid bounds the curve from both sides. A law is tilted towards the question asked, so that
    relative accuracy does not depend on how small delta is.

    Examples
    --------
    >>> import fastpriv as fp
    >>> profile = fp.accounting.PrivacyProfile.of(fp.HammingChannel(1_000_000, 4, 0.5))
    >>> thousand = profile.self_compose(1000)
    >>> thousand.epsilon(1e-14)
    Bracket(157.6829168, 157.6829168)
    >>> thousand.delta(124.0)
    Bracket(1.136353683e-06, 1.136353683e-06)
    """

    def __init__(self, parts: dict[Atom, int]) -> None:
        self._parts = {
            atom: count for atom, count in parts.items() if count and not atom.is_trivial
        }
        if max(self._parts.values(), default=0) > _COUNTED:
            raise InvalidInput("a profile is of at most 10^100 releases of a kind; compose fewer")
        self._cache: OrderedDict[float, tuple[Bound, Bound]] = OrderedDict()

    @classmethod
    def of(cls, channel: AbstractChannel | ArrayLike) -> PrivacyProfile:
        """Profile of one release by a mechanism.

        Parameters
        ----------
        channel : channel or 2-D array
            The mechanism. Closed form for E_d; the pairs of one row's laws for channels that act
            row by row; O(N n (m-1) K log K) through the matrix otherwise.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.of([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]])
        >>> profile.epsilon(0.2), profile.delta(0.0)
        (Bracket(inf, inf), Bracket(0.25, 0.25))
        """
        return cls({_atom(as_channel(channel), 0.0): 1})

    @classmethod
    def realised(cls, channel: AbstractChannel | ArrayLike) -> PrivacyProfile:
        """Profile of one release as ``channel.sample`` draws it: of its integer thresholds.

        Parameters
        ----------
        channel : channel or 2-D array
            The mechanism. Where its draws are known up to a relative error only, laws of
            neighbours are moved apart by it. Cost as for :meth:`of`.

        Examples
        --------
        >>> import fastpriv as fp
        >>> laws = [[1.0, 1e-25], [1.0, 1e-22]]  # both chances are drawn as 2^-64
        >>> fp.accounting.PrivacyProfile.realised(laws).epsilon(0.0).upper < 1e-13
        True
        """
        return cls({_atom(*as_channel(channel).realised()): 1})

    @classmethod
    def randomised_response(cls, m: int, epsilon: float) -> PrivacyProfile:
        """Profile of m-ary randomised response at level epsilon, the same as E_d of any length.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.randomised_response(4, 0.5).self_compose(100).epsilon(1e-6)
        Bracket(23.46746703, 23.46746703)
        """
        size = check.integer(m, "m", 1)
        return cls({Atom.response(size, check.real(epsilon, "epsilon", least=0.0)): 1})

    @classmethod
    def from_epsilon_delta(cls, epsilon: float, delta: float = 0.0) -> PrivacyProfile:
        """Worst profile of any (epsilon, delta)-DP mechanism.

        With chance delta the database is shown, else binary randomised response.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.PrivacyProfile.from_epsilon_delta(1.0, 1e-6).delta(1.0)
        Bracket(1e-06, 1e-06)
        """
        level = check.real(epsilon, "epsilon", least=0.0)
        return cls({Atom.response(2, level, check.real(delta, "delta", least=0.0, most=1.0)): 1})

    # Composition.

    def compose(self, *others: PrivacyProfile) -> PrivacyProfile:
        """Profile of these releases and others together.

        Examples
        --------
        >>> import fastpriv as fp
        >>> of = fp.accounting.PrivacyProfile.randomised_response
        >>> of(2, 0.5).compose(of(4, 0.1), of(4, 0.1))
        PrivacyProfile(3 releases of 2 kinds)
        """
        parts = dict(self._parts)
        for other in others:
            if not isinstance(other, PrivacyProfile):
                raise InvalidInput(f"only profiles compose, got {other!r:.60}")
            for atom, count in other._parts.items():
                parts[atom] = parts.get(atom, 0) + count
        return PrivacyProfile(parts)

    def self_compose(self, count: int) -> PrivacyProfile:
        """Profile of ``count`` independent runs of these releases, 0 for none."""
        times = check.integer(count, "count", 0)
        return PrivacyProfile({atom: k * times for atom, k in self._parts.items()})

    # Questions.

    @overload
    def delta(self, epsilon: float) -> Bracket: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> Bracket | Brackets: ...
    def delta(self, epsilon: float | ArrayLike) -> Bracket | Brackets:
        """Least delta for which the releases are (epsilon, delta)-differentially private.

        Parameters
        ----------
        epsilon : float or 1-D array
            Levels of at least 0, in nats.

        Returns
        -------
        Bracket or Brackets
            Certified on both sides, with relative accuracy down to 1e-300. The upper end holds
            for every mechanism with these curves. The lower end is what the worst of them needs;
            a channel whose curve several pairs of neighbours set may need less (see Notes).

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.of([[0.75, 0.25], [0.25, 0.75]])
        >>> profile.delta([0.0, 0.5])[1]
        Bracket(0.3378196823, 0.3378196823)
        """
        return _each(epsilon, "epsilon", math.inf, self._delta)

    @overload
    def epsilon(self, delta: float) -> Bracket: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> Bracket | Brackets: ...
    def epsilon(self, delta: float | ArrayLike) -> Bracket | Brackets:
        """Least epsilon for which the releases are (epsilon, delta)-differentially private.

        Parameters
        ----------
        delta : float or 1-D array
            In [0, 1]; 0 asks for the differential privacy level.

        Returns
        -------
        Bracket or Brackets
            Certified on both sides; infinite when outputs that give a database away are more
            likely than delta.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.PrivacyProfile.randomised_response(2, 1.0).self_compose(10)
        >>> profile.epsilon([0.0, 1e-3])[0]
        Bracket(10, 10)
        """
        return _each(delta, "delta", 1.0, self._epsilon)

    def __repr__(self) -> str:
        kinds = len(self._parts)
        return f"PrivacyProfile({sum(self._parts.values()):,} releases of {kinds} kinds)"

    # How.

    def _releases(self, up: bool) -> Releases:
        return [(atom.upper if up else atom.lower, k) for atom, k in self._parts.items()]

    def _top(self, up: bool) -> float:
        """Largest finite loss of all releases together, rounded outwards; of one as it is."""
        releases = self._releases(up)
        total = math.fsum(k * measure.top for measure, k in releases)
        if [k for _, k in releases] == [1]:
            return total
        return total * (1.0 + (4.0 if up else -4.0) * ULP)

    def _infinite(self, up: bool) -> float:
        """Chance that some release has an infinite loss, rounded outwards; of one as it is."""
        value, releases = 0.0, self._releases(up)
        if any(measure.infinite >= 1.0 for measure, _ in releases):
            return 1.0
        if [k for _, k in releases] == [1]:
            return releases[0][0].infinite
        for measure, k in releases:
            value -= math.expm1(k * math.log1p(-measure.infinite)) * (1.0 - value)
        return min(value * (1.0 + (8.0 if up else -8.0) * ULP * (1 + len(self._parts))), 1.0)

    def _delta(self, epsilon: float) -> Bracket:
        low, high = self._infinite(False), self._infinite(True)
        if epsilon < self._top(True) and high < 1.0:
            below, above = self._bounds(tilt_at(self._releases(True), epsilon))
            low = (low + below.value(epsilon)) * (1.0 - 2.0 * ULP)
            high = min((high + above.value(epsilon)) * (1.0 + 2.0 * ULP), 1.0)
        elif low < high == 1.0:  # laws that hardly overlap: no upper law to tilt
            with suppress(TooMany):
                below = listed(self._releases(False), 0.0, up=False)
                low = (low + below.value(epsilon)) * (1.0 - 2.0 * ULP)
        return certified(low, high)

    def _epsilon(self, delta: float) -> Bracket:
        low, high = self._infinite(False), self._infinite(True)
        top = Bracket(self._top(False), self._top(True))
        if delta >= 1.0 or not self._parts:
            return Bracket(0.0, 0.0)
        if high >= 1.0:
            return Bracket(math.inf if low > delta else 0.0, math.inf)
        if top.upper == 0.0 and low <= delta:  # every loss is 0 or infinite
            return Bracket(0.0, 0.0 if high <= delta else math.inf)
        if delta == 0.0 or high >= delta:
            upper = math.inf if high > delta else top.upper
            if delta == 0.0 or low >= delta:
                return Bracket(math.inf if low > delta else top.lower, upper)
        s = tilt_for(self._releases(True), max(delta - high, 0.1 * delta))
        found = self._cross(s, delta, low, high, top.upper)
        for _ in range(_AGAIN):
            _, middle, variance = cumulant(self._releases(True), s)
            far = abs(found.midpoint - middle) > _FAR * math.sqrt(variance)
            if not ((s == 0.0 or far) and 0.0 < found.upper < math.inf):
                break
            s = tilt_at(self._releases(True), found.midpoint)
            again = self._cross(s, delta, low, high, top.upper)
            better = certified(max(found.lower, again.lower), min(found.upper, again.upper))
            if better.width > 0.75 * found.width:
                return better
            found = better
        return found

    def _cross(self, s: float, delta: float, low: float, high: float, top: float) -> Bracket:
        """Where the bounds that belong to one tilt cross delta."""
        below, above = self._bounds(s)
        guess = min(max(cumulant(self._releases(True), s)[1], 0.0), top)

        def holds(t: float) -> bool:
            return (high + above.value(t)) * (1.0 + 2.0 * ULP) <= delta

        def fails(t: float) -> bool:
            return (low + below.value(t)) * (1.0 - 2.0 * ULP) > delta

        upper = math.inf if high > delta else last(lambda t: not holds(t), guess, top)[1]
        return certified(last(fails, guess, top)[0], upper)

    def _bounds(self, s: float) -> tuple[Bound, Bound]:
        """Lower and upper bound on the finite part of the curve, from laws tilted by s."""
        found = self._cache.get(s)
        if found is None:
            found = self._make_bounds(s)
            self._cache[s] = found
            if len(self._cache) > _KEPT:
                self._cache.popitem(last=False)
        return found

    def _make_bounds(self, s: float) -> tuple[Bound, Bound]:
        lower, upper = self._releases(False), self._releases(True)
        try:
            return listed(lower, s, up=False), listed(upper, s, up=True)
        except TooMany:
            h = spacing(upper, s)
            return grid_below(lower, s, h), grid_above(upper, s, h)


def _atom(channel: AbstractChannel, slack: float) -> Atom:
    """One release by a channel whose chances are known up to a relative error."""
    response = channel.response()
    if response is not None and slack == 0.0:
        return Atom.response(*response)
    if slack == 0.0:
        return Atom.of_laws(channel.neighbour_laws(), channel.laws_apart)
    return Atom.of_laws(moved_apart(channel.neighbour_laws(), slack), channel.laws_apart + slack)


def _each(
    given: float | ArrayLike, name: str, most: float, ask: Callable[[float], Bracket]
) -> Bracket | Brackets:
    """Ask for one number, or for each of many."""
    numbers = check.array(given, name)
    if numbers.ndim == 0:
        return ask(check.real(given, name, least=0.0, most=most))
    values: Floats = check.floats(numbers, name, 1)
    found = [ask(check.real(value, name, least=0.0, most=most)) for value in values.tolist()]
    return Brackets(np.array([b.lower for b in found]), np.array([b.upper for b in found]))
