"""One release: what bounds its curve, from the laws of all neighbours or from a level."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from fastpriv._core.rounding import LEAST, ULP, directed, raised
from fastpriv._core.validation import Floats
from fastpriv._matrices.ratios import Pairs
from fastpriv.accounting.profile.measures import SAME, Measure, merged, on_lattice
from fastpriv.channels import AbstractChannel
from fastpriv.measures.approximate_dp import laws_apart, laws_lost, neighbour_laws, response
from fastpriv.measures.dp import neighbour_level

#: Entries of neighbours' laws that are looked at together.
CHUNK = 1 << 20
#: Levels of randomised response that are computed with as they are.
_LEAST, _MOST = 1e-290, 1e9
#: Laws that overlap by less may do so by rounding.
_OVERLAP = 2.0**-40
#: Sums of chances below may have lost digits to underflow.
_LITTLE = 1e-290
#: Ratios above are compared by their logarithms.
_LARGE = 1e300
#: Positive losses below are not told from zero: the tilt of a smaller one would overflow.
_SMALLEST_LOSS = 1e-290


@dataclass(frozen=True, eq=False)
class Source:
    """The channel that a release was made by, its chances known up to a relative error."""

    channel: AbstractChannel
    slack: float


class Atom:
    """One release: a symmetric measure below its curve and one above it.

    ``key`` says what the measures are. ``source`` says where to look up the laws of a given pair
    of neighbours; it is None where the measures are those of any pair, in both orders, and where
    a curve is all that was kept of a channel. ``drawn`` is the level of a randomised response that
    is certainly attained, where it is lower than that of its key.
    """

    drawn: float | None = None

    def __init__(
        self, lower: Measure, upper: Measure, key: tuple[Any, ...], source: Source | None = None
    ) -> None:
        self.lower, self.upper = lower, upper
        self.key, self.source = key, source

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.key == other.key and self._same == other._same

    @property
    def _same(self) -> tuple[AbstractChannel | None, float]:
        """The channel and the top of the lower measure: equal for releases of one mechanism."""
        return None if self.source is None else self.source.channel, self.lower.top

    @property
    def free(self) -> bool:
        """Whether any neighbours attain the lower measure, whatever else is released."""
        return self.source is None and self.key[0] != "laws"

    @property
    def is_response(self) -> bool:
        """Whether this is a randomised response."""
        return bool(self.key[0] == "response")

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same law."""
        return self.upper.top == 0.0 and self.upper.infinite == 0.0

    @classmethod
    def response(
        cls, m: int, epsilon: float, delta: float = 0.0, source: Source | None = None
    ) -> Atom:
        """m-ary randomised response, run with probability 1 - delta; else the input is shown.

        The curve rises with epsilon, so levels that arithmetic has no room for are rounded: down
        to none or to ``_MOST`` below, up to ``_LEAST`` or to showing the input above.
        """
        key = ("response", m, epsilon, delta)
        if m == 1 or epsilon == 0.0 or _LEAST <= epsilon <= _MOST:
            both = Measure.response(m, epsilon, delta)
            return cls(both, both, key, source)
        if epsilon < _LEAST:
            levels = Measure.response(m, 0.0, delta), Measure.response(m, _LEAST, delta)
        else:
            levels = Measure.response(m, _MOST, delta), Measure.response(m, 0.0, 1.0)
        return cls(*levels, key, source)

    def down_to(self, epsilon: float) -> Atom:
        """Return this randomised response, of which only a lower level is certainly attained."""
        _, m, _, delta = self.key
        result = Atom(Atom.response(m, epsilon, delta).lower, self.upper, self.key, self.source)
        result.drawn = epsilon
        return result

    @classmethod
    def of(cls, channel: AbstractChannel, slack: float) -> Atom:
        """One release by a channel whose chances are known up to a relative error."""
        dominating, source = response(channel), Source(channel, slack)
        if dominating is None or slack > 0.0:
            return cls.of_laws(source)
        everywhere = all(m in (1, dominating[0]) for m in channel.space.sizes)
        return cls.response(*dominating, source=None if everywhere else source)

    @classmethod
    def of_laws(cls, source: Source) -> Atom:
        """Upper envelope of the curves of all neighbours' pairs of laws.

        With E = e^t - 1 the curve of a pair is the largest of the lines D - E T over sets A of
        outputs, D = P(A) - Q(A) and T = Q(A); only sets of the outputs with the largest ratios
        count. Both numbers are sums of non-negative terms, so all lines are known to a relative
        error, and the measure is read off the corners of the envelope.

        Rows that are given are laws once they are divided by their exact sums. Gains are bounded
        for these laws and for the entries as they are: see docs/theory/rounding.md.
        """
        apart = laws_apart(source.channel) + source.slack
        lost = laws_lost(source.channel)
        flattest = _inverse_slope(source.channel) if lost > 0.0 else 0.0
        low, high = np.zeros((1, 2)), np.zeros((1, 2))
        summed = totals = moved = np.zeros(0)
        same = SAME + 8.0 * apart
        for laws, pairs in _moved_apart(source):
            size = laws.shape[1]
            if apart > 0.0:  # computed laws, of which no digit beyond their error is meant
                totals, moved = laws.sum(axis=1) - 1.0, np.zeros(len(laws))
            elif laws is not summed:
                summed, totals = laws, _beyond_one(laws)
                moved = totals
            error = (size + 16.0) * ULP + 2.0 * float(np.abs(totals).max())
            for start in range(0, len(pairs), max(1, CHUNK // size)):
                some = pairs[start : start + max(1, CHUNK // size)]
                first, second = (laws[some[:, k]] for k in (0, 1))
                least, most = _gains(first, second, moved[some[:, 0]], moved[some[:, 1]])
                lines = _lines(most, second)
                gains = lines[:, 0] * (1.0 + error)
                # Symmetric curves start with a slope of at most (1 - D)/2: no mass is left to fall.
                # Where D is one but for rounding, that would make losses infinite.
                tests, slope = lines[:, 1] * (1.0 - error), 0.5 * (1.0 - gains)
                if lost > 0.0 and (tests < _LITTLE).any():
                    # What underflows is known from the level: D <= (e^level - 1) T.
                    tests = np.maximum(tests, lines[:, 0] * (1.0 - error) * flattest)
                tests = np.where(slope > _OVERLAP, np.minimum(tests, slope), tests)
                high = envelope(
                    np.concatenate([high, np.stack([gains, tests], axis=1)]), same, True
                )
                lines = _lines(least, second)
                # Laws rounded apart are first brought together again, and beyond.
                gains = lines[:, 0] - 2.5 * apart * (lines[:, 0] + 2.0 * lines[:, 1])
                gains -= size * lost
                tests = lines[:, 1] * (1.0 + 2.5 * apart) + size * lost
                below = np.stack([gains * (1.0 - error), tests * (1.0 + error)], axis=1)
                low = envelope(np.concatenate([low, below[gains > 0.0]]), same, False)
        key = ("laws", low.tobytes(), high.tobytes())
        return cls(from_envelope(low, up=False), from_envelope(high, up=True), key, source)


def dominating(atoms: Mapping[Atom, int]) -> list[tuple[Measure, int]]:
    """Return the dominating pairs of releases; those with the same curve are of one kind."""
    result: dict[tuple[Any, ...], tuple[Measure, int]] = {}
    for atom, count in atoms.items():
        result[atom.key] = atom.upper, result.get(atom.key, (None, 0))[1] + count
    return list(result.values())


def _inverse_slope(channel: AbstractChannel) -> float:
    """Return 1 / (e^level - 1) of a channel, rounded down; 0 where that is out of range."""
    level = neighbour_level(channel)
    return (1.0 - 8.0 * ULP) / math.expm1(level) if 0.0 < level < 709.0 else 0.0


def _moved_apart(source: Source) -> Iterator[Pairs]:
    """Laws of neighbours, the first of each pair rounded up and the second down by the slack."""
    by = source.slack
    for laws, pairs in neighbour_laws(source.channel):
        if by > 0.0:
            both = np.concatenate([laws * (1.0 + by), laws * (1.0 - by)])
            yield both, pairs + np.array([0, len(laws)])
        else:
            yield laws, pairs


def _beyond_one(laws: Floats) -> Floats:
    """Return how much more than one each row sums to: the exact number, rounded once."""
    return np.array([math.fsum((-1.0, *law)) for law in laws.tolist()])


def _gains(first: Floats, second: Floats, more: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Bound a - b for pairs of rows as they are, and for the laws a/s and b/t, times s t.

    The latter is a - b + a (t - 1) - b (s - 1), where a - b is exact if it is as small as the rest.
    ``more`` and ``other`` are s - 1 and t - 1. Equal rows are equal laws.
    """
    gain = first - second
    told = gain.any(axis=1) & ((more != 0.0) | (other != 0.0))
    if not told.any():
        return gain, gain
    rise, fall = first * (other * told)[:, None], second * (more * told)[:, None]
    shift, doubt = rise - fall, 4.0 * ULP * (np.abs(rise) + np.abs(fall))
    doubt += 4.0 * LEAST * (told[:, None] & (first + second > 0.0))
    return gain + np.minimum(shift, 0.0) - doubt, gain + np.maximum(shift, 0.0) + doubt


def _lines(gain: Floats, second: Floats) -> Floats:
    """Return (D, T) for the sets of outputs with the largest ratios a/b > 1, of pairs of laws."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(gain > 0.0, gain / second, -1.0)
        beyond = (ratio > _LARGE) & (second > 0.0)  # ordered by logarithms, below the infinite
        if beyond.any():
            ratio = np.where(beyond, _LARGE * (np.log(gain) - np.log(second)), ratio)
    order = np.argsort(-ratio, axis=1)
    gain = np.take_along_axis(gain, order, axis=1)
    test = np.take_along_axis(second, order, axis=1)
    wanted = gain > 0.0
    return np.stack([np.cumsum(gain, axis=1)[wanted], np.cumsum(test, axis=1)[wanted]], axis=1)


def envelope(lines: Floats, same: float, up: bool) -> Floats:
    """Upper envelope of lines D - E T over E >= 0, from E = infinity down: T and D rise.

    A line that gains no more than rounding at E = 0, such as that of the same pair the other way
    round, is left out below; above, the line before it takes its place.
    """
    lines = lines[np.lexsort((-lines[:, 0], lines[:, 1]))]
    best = np.maximum.accumulate(lines[:, 0])
    lines = lines[np.concatenate([[True], lines[1:, 0] > best[:-1]])]  # the others are below
    kept: list[tuple[float, float]] = []
    for line in map(tuple, lines.tolist()):
        if kept and line[0] <= kept[-1][0] * (1.0 + same):
            if not up or line[0] <= kept[-1][0]:
                continue
            line = line[0], kept.pop()[1]
        while len(kept) > 1 and not _bends(kept[-2], kept[-1], line):
            kept.pop()
        kept.append(line)
    return np.array(kept)


def _bends(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    """Whether b is above both a and c somewhere: its corner with a comes before that with c."""
    left = (c[0] - b[0]) * (b[1] - a[1])
    right = (b[0] - a[0]) * (c[1] - b[1])
    if abs(left - right) > 1e-14 * (left + right):
        return left < right
    (d0, t0), (d1, t1), (d2, t2) = (map(Fraction, line) for line in (a, b, c))
    return (d2 - d1) * (t1 - t0) < (d1 - d0) * (t2 - t1)


def from_envelope(lines: Floats, up: bool) -> Measure:
    """Measure whose curve is an envelope: masses at its corners, rounded up or down.

    Differences and quotients of the lines are good to a few units, and so is log1p of them.
    """
    infinite = float(lines[0, 0])
    dD, dT = np.diff(lines[:, 0])[::-1], np.diff(lines[:, 1])[::-1]
    with np.errstate(over="ignore", under="ignore"):
        ratio = dD / dT
        losses = np.where(ratio < math.inf, np.log1p(ratio), np.log(dD) - np.log(dT))
    losses = directed(losses, 8.0, up)
    masses = directed(dD + dT, 8.0, up)
    small = losses < _SMALLEST_LOSS
    if up and infinite == 0.0:
        losses = np.maximum(losses, _SMALLEST_LOSS)
    elif small.any():  # below they count as zero; above, what they add to delta(0) as infinite
        infinite = raised(math.fsum([infinite, *dD[small]]), 4.0) if up else infinite
        losses, masses = losses[~small], masses[~small]
    losses, masses = merged(losses, masses, up)
    fine, step = on_lattice(losses, up)
    return Measure.symmetric(fine, np.log(masses.astype(np.longdouble)), infinite, up, step)
