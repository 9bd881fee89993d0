"""Shuffling: many people randomise their own rows, and the outputs are shown in a random order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv._core.validation import Floats
from fastpriv.accounting.excess import Excess, Variable
from fastpriv.accounting.profile.crossing import certified, each
from fastpriv.channels import AbstractChannel, HammingChannel
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.measures.arguments import as_channel
from fastpriv.results import Bracket, Brackets

__all__ = ["ShuffledProfile", "shuffled"]

#: Most people, and entries of all triples of laws.
_PEOPLE, _ENTRIES = 10**12, 1 << 22
#: Levels beyond which e^t is not computed with.
_FAR = 690.0
#: Relative width at which bounds are good, and of a level.
_GOOD, _LEVEL = 1e-9, 1e-10
#: Triples from below that are computed; the others look less promising.
_TRIED = 24
#: Reference probabilities that are taken for zero.
_TINY = 1e-100


@dataclass(frozen=True)
class _Triple:
    """Laws a and b of a person's output, and the reference law q of everybody else's.

    The positive part of sum (a - e^t b)/q over n draws from q, and what q never shows.
    """

    a: Floats
    b: Floats
    q: Floats
    only_a: Floats
    only_b: Floats
    relative: float
    lost: float = 0.0

    @property
    def key(self) -> tuple[bytes, ...]:
        parts = (self.a, self.b, self.q, self.only_a, self.only_b, np.float64(self.lost))
        return tuple(part.tobytes() for part in parts)

    def blurred(self, t: float, n: int) -> float:
        """How much less delta may be, for probabilities of q that were taken for zero."""
        return n * self.lost * (1.0 + math.exp(t)) * (1.0 + 1e-12)

    def shown(self, t: float) -> float:
        """What outputs that nobody else has give away."""
        return float(np.maximum(self.only_a - math.exp(t) * self.only_b, 0.0).sum())

    def always(self, n: int) -> float:
        """Limit of delta for large levels, rounded down: all outputs are possible under a only."""
        never = self.b == 0.0
        hidden = float(self.a[never].sum())
        rest = 1.0 - float(self.q[~never].sum()) - self.relative * (not never.all())
        shown = float(self.only_a[self.only_b == 0.0].sum()) + hidden * max(rest, 0.0) ** (n - 1)
        return shown * (1.0 - self.relative)

    def excess(self, t: float, n: int) -> Excess | None:
        """Return what bounds the rest; None where it is 0."""
        values = ((self.a - self.b) - math.expm1(t) * self.b) / self.q
        if not len(values) or not values.max() > 0.0:
            return None
        errors = self.relative * (self.a + math.exp(t) * self.b) / self.q
        return Excess(Variable(values, self.q, errors, self.relative), n)


class ShuffledProfile:
    """The (epsilon, delta) curve of n people's shuffled outputs, made by :func:`shuffled`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.accounting.shuffled([[0.75, 0.25], [0.25, 0.75]], 1000)
    ShuffledProfile(1,000 people)
    """

    def __init__(self, above: list[_Triple], below: list[_Triple], n: int, top: float) -> None:
        self._above, self._below, self._top = above, below, top
        self.n = n

    @overload
    def delta(self, epsilon: float) -> Bracket: ...
    @overload
    def delta(self, epsilon: ArrayLike) -> Bracket | Brackets: ...
    def delta(self, epsilon: float | ArrayLike) -> Bracket | Brackets:
        """Least delta for which the shuffled outputs are (epsilon, delta)-differentially private.

        Examples
        --------
        >>> import fastpriv as fp
        >>> fp.accounting.shuffled([[0.75, 0.25], [0.25, 0.75]], 3).delta(0.0)
        Bracket(0.2812499999, 0.3125000001)
        """
        return each(epsilon, "epsilon", math.inf, self._delta)

    @overload
    def epsilon(self, delta: float) -> Bracket: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> Bracket | Brackets: ...
    def epsilon(self, delta: float | ArrayLike) -> Bracket | Brackets:
        """Least epsilon for which the shuffled outputs are (epsilon, delta)-differentially private.

        Examples
        --------
        >>> import fastpriv as fp
        >>> profile = fp.accounting.shuffled(fp.HammingChannel(1, 4, 2.0), 1000)
        >>> profile.epsilon(0.0)  # everybody's output may be the same
        Bracket(1.999999999, 2.000000001)
        """
        return each(delta, "delta", 1.0, self._epsilon)

    def __repr__(self) -> str:
        return f"ShuffledProfile({self.n:,} people)"

    @property
    def _always(self) -> float:
        """Limit of the lower end for large levels."""
        limits = (triple.always(self.n) for triple in self._below if triple.lost == 0.0)
        return max(limits, default=0.0)

    def _delta(self, t: float) -> Bracket:
        if t >= self._top:
            return Bracket(0.0, 0.0)
        low = self._always
        if t <= _FAR:
            low = max(low, self._lower(t, lambda low, high: high - low <= _GOOD * high))
        high = self._upper(min(t, _FAR), lambda low, high: high - low <= _GOOD * high)
        return certified(low, high)

    def _epsilon(self, delta: float) -> Bracket:
        if delta >= 1.0:
            return Bracket(0.0, 0.0)
        if delta == 0.0:
            slack = 16.0 * ULP
            return Bracket(self._top * (1.0 - slack), self._top * (1.0 + slack))
        start = min(self._top, _FAR)

        def decided(low: float, high: float) -> bool:
            return high <= delta or low > delta or high - low <= 0.1 * _GOOD * high

        if self._always > delta:
            return Bracket(math.inf, math.inf)
        low, _ = _crossing(lambda t: self._lower(t, decided) > delta, start)
        if start < self._top and self._upper(start, decided) > delta:
            return Bracket(low, math.inf)
        _, high = _crossing(lambda t: self._upper(t, decided) > delta, start)
        return certified(low, min(high, raised(self._top, 16.0)))

    def _upper(self, t: float, enough: Callable[[float, float], bool]) -> float:
        """Upper bound on delta(t), by blankets."""
        best = 0.0
        parts = [(triple.shown(t), triple.excess(t, self.n)) for triple in self._above]
        parts.sort(key=lambda part: part[0] + (part[1].about if part[1] else 0.0), reverse=True)
        for shown, excess in parts:
            if excess is None or shown + excess.chernoff > best:
                best = max(best, _refined(excess, shown, enough)[1])
        return min(best, 1.0)

    def _lower(self, t: float, enough: Callable[[float, float], bool]) -> float:
        """Lower bound on delta(t): what two neighbouring databases attain."""
        parts = [(triple, triple.shown(t), triple.excess(t, self.n)) for triple in self._below]
        parts.sort(key=lambda part: part[1] + (part[2].about if part[2] else 0.0), reverse=True)
        best = 0.0
        for triple, shown, excess in parts[:_TRIED]:
            if excess is not None and shown + excess.chernoff <= best:
                continue
            best = max(best, _refined(excess, shown, enough)[0] - triple.blurred(t, self.n))
        return best


def shuffled(channel: AbstractChannel | ArrayLike, n: int) -> ShuffledProfile:
    """Profile of n people who randomise their own rows by a channel and are then shuffled.

    Neighbours differ in one person's value, x or x'. Somebody else's output y has at least the
    probability w(y) = min over x of W(y|x), whatever their value: the privacy blanket of Balle,
    Bell, Gascon and Nissim (2019). With q = w, and V = (W(y|x) - e^t W(y|x')) / q(y) at y with
    probability q(y), and 0 otherwise,

        delta(t) <= max over x, x' of E[(V_1 + ... + V_n)_+] / n,

    and the same with q = W(.|x'') is attained, where all others have the value x''. Outputs that q
    never shows add the positive part of W(y|x) - e^t W(y|x').

    Parameters
    ----------
    channel : channel or 2-D array
        The local randomiser W[x, y], of one row. k-ary response of any size is three rows; others
        take O(k^3 m) triples, at most 4,194,304 entries.
    n : int
        Number of people, from 1 to 10^12.

    Returns
    -------
    ShuffledProfile
        With ``delta(epsilon)`` and ``epsilon(delta)`` as brackets: the upper end is proved for all
        databases, the lower end is attained by two neighbouring ones. The ends are nearly the same
        for k-ary response with k > 2 and many people. Where the blanket is empty, shuffling is
        not seen to help from above.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.accounting.shuffled(fp.HammingChannel(1, 16, 4.0), 100_000).epsilon(1e-6)
    Bracket(0.1047066582, 0.1047067636)
    """
    people = check.integer(n, "n", 1)
    if people > _PEOPLE:
        raise InvalidInput(f"n must be at most 10^12, got {people}")
    given = as_channel(channel)
    if given.space.n != 1:
        raise InvalidInput(
            f"a local randomiser reads one row, got a channel of {given.space.n} rows; shuffle the "
            "channel of one person"
        )
    laws = _laws(given)
    k, m = laws.shape
    if k * (k - 1) * (k + 1) * m > _ENTRIES:
        raise TooLarge(
            f"a local randomiser of {k} values and {m} outputs has too many triples of laws to "
            "shuffle; use a HammingChannel, or merge values"
        )
    above = _distinct(_triples(laws, [laws.min(axis=0)]))
    below = _distinct(_triples(laws, list(laws)))
    return ShuffledProfile(above, below, people, _top(laws))


def _laws(channel: AbstractChannel) -> Floats:
    """Laws of the outputs; k-ary response by three values, the other outputs merged."""
    if isinstance(channel, HammingChannel) and channel.space.sizes[0] > 4:
        k, odds = channel.space.sizes[0], math.exp(-channel.epsilon)
        rest = odds / (1.0 + (k - 1) * odds)
        laws = np.full((3, 4), rest)
        np.fill_diagonal(laws, 1.0 / (1.0 + (k - 1) * odds))
        laws[:, 3] = (k - 3) * rest
        return laws
    return channel.matrix()


def _triples(laws: Floats, references: list[Floats]) -> Iterator[_Triple]:
    relative = (laws.shape[1] + 24.0) * ULP
    for x, other in permutations(range(len(laws)), 2):
        for q in references:
            # A smaller blanket is a blanket. Laws of databases are moved by n times what is lost.
            kept = np.where(q < _TINY, 0.0, q)
            lost = float((q - kept).sum())
            yield _triple(laws[x], laws[other], kept, relative, lost)


def _triple(a: Floats, b: Floats, q: Floats, relative: float, lost: float) -> _Triple:
    """Merge outputs with the same ratios, and leave out those that say nothing."""
    seen = (q > 0.0) & ((a > 0.0) | (b > 0.0))
    only = (q == 0.0) & (a > 0.0)
    ratios = np.column_stack([a[seen] / q[seen], b[seen] / q[seen]])
    _, where = np.unique(ratios, axis=0, return_inverse=True)
    where = where.reshape(-1)
    sums: list[Floats] = [np.zeros(int(where.max(initial=-1)) + 1) for _ in range(3)]
    for total, part in zip(sums, (a, b, q), strict=True):
        np.add.at(total, where, part[seen])
    order = np.argsort(a[only], kind="stable")
    return _Triple(sums[0], sums[1], sums[2], a[only][order], b[only][order], relative, lost)


def _distinct(triples: Iterator[_Triple]) -> list[_Triple]:
    return list({triple.key: triple for triple in triples}.values())


def _top(laws: Floats) -> float:
    """Largest ln W(y|x)/W(y|x'), infinite where an output is possible under one value only."""
    shown = laws.max(axis=0) > 0.0
    high, low = laws.max(axis=0)[shown], laws.min(axis=0)[shown]
    return float((np.log(high) - np.log(low)).max()) if low.all() else math.inf


def _refined(
    excess: Excess | None, shown: float, enough: Callable[[float, float], bool]
) -> tuple[float, float]:
    """Bounds on delta that are good enough, or as good as they get."""
    slack = 1e-14 * shown
    if excess is None:
        return shown - slack, shown + slack
    while True:
        low, high = (end + shown for end in excess.bounds)
        low, high = lowered(low - slack, 2.0), raised(high + slack, 2.0)
        if enough(low, high) or not excess.refine():
            return low, high


def _crossing(holds: Callable[[float], bool], top: float) -> tuple[float, float]:
    """Levels close to each other: a property of [0, top] holds at the first, not at the second."""
    if not holds(0.0):
        return 0.0, 0.0
    low, high = 0.0, top
    at = 1e-6 * top
    while at < top and holds(at):  # levels of many people are small
        low, at = at, 4.0 * at
    high = min(at, top)
    while high - low > _LEVEL * high:
        middle = 0.5 * (low + high) if low > 0.0 else high * 0.125
        if high < 1e-300:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
