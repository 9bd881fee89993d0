"""Measures on privacy losses: what a pair of output laws is, seen through its likelihood ratios.

A pair (P, Q) enters accounting only through the measure that P puts on the loss l = ln P/Q, for
delta(t) = integral of (1 - e^(t-l))_+ over it. Neighbours can be swapped, so the curves here are
those of measures that are *symmetric*: the mass at -l is e^-l times the mass at l.

Bounds. If the curve of a measure is above that of a pair for every t in the reals, it stays above
when both are composed with any measure, because delta of a composition is the mean, under a
non-negative measure, of the curve of one part. For symmetric measures t >= 0 and a total mass of
at least one (below: at most one) are enough. So rounding needs no valid pair of laws: more mass,
larger losses and a total of at least one are an upper bound, the opposite a lower one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._rounding import ULP
from fastpriv._validation import Floats, Ints
from fastpriv.channels import AbstractChannel
from fastpriv.channels._pairs import Pairs

#: Logarithms of masses: k of them are added, so they carry more digits where the platform has them.
Longs = NDArray[np.longdouble]
FINE = max(float(np.finfo(np.longdouble).eps), 2.0**-64)

#: Gains and steps closer than this, relatively, are one.
_SAME = 2.0**-46
#: So are losses: they are quotients of differences of sums, whose errors are larger.
_SAME_LOSS = 2.0**-40
#: Entries of neighbours' laws that are sorted at a time.
CHUNK = 1 << 20
#: The least loss is sought as so many steps of a lattice, at most.
_PARTS = 12
#: The largest loss is at most so many times the least one, in a lattice.
_MULTIPLE = 64.0
#: Levels of randomised response that are computed with as they are.
_LEAST, _MOST = 1e-290, 1e9
#: Ratios above are compared by their logarithms.
_LARGE = 1e300


@dataclass(frozen=True, eq=False)
class Measure:
    """Measure on finitely many losses, and mass at +infinity.

    Attributes
    ----------
    losses : ndarray
        Rising, counted from ``shift``.
    logs : ndarray of longdouble
        Log of the mass of each loss.
    infinite : float
        Mass where the likelihood ratio is infinite.
    error : float
        Relative error of the masses in ``logs``.
    step : float
        The h of which all losses are multiples, exactly; 0 where there is none.
    shift : float
        What is to be added to every loss.
    off : float
        How far losses may be off.
    """

    losses: Floats
    logs: Longs
    infinite: float
    error: float
    step: float = 0.0
    shift: float = 0.0
    off: float = 0.0

    @classmethod
    def symmetric(
        cls, losses: Longs, masses: Longs, infinite: float, up: bool, step: float
    ) -> Measure:
        """Complete positive losses and their log-masses to a symmetric measure of total one.

        What is left for loss 0 is rounded up or down. Where rounding left less than nothing, a
        lower bound takes it from all masses: a total above one would grow with every release.
        """
        mirrored = masses - losses
        rest = 1.0 - np.longdouble(infinite) - (np.exp(masses) + np.exp(mirrored)).sum()
        slack = (len(losses) + 8.0) * FINE
        rest += slack if up else -slack
        if rest < 0.0 and not up:
            masses, mirrored = masses + np.log1p(rest), mirrored + np.log1p(rest)
            infinite *= float(1.0 + rest) * (1.0 - 2.0 * ULP)
        shown = losses.astype(np.float64)
        parts = [-shown[::-1], shown], [mirrored[::-1], masses]
        if rest > 0.0:
            parts[0].insert(1, np.zeros(1))
            parts[1].insert(1, np.log(np.array([rest], dtype=np.longdouble)))
        both = np.concatenate(parts[0]), np.concatenate(parts[1])
        size = float(np.abs(mirrored).max(initial=0.0))
        return cls(*both, infinite, (16.0 + 4.0 * size) * FINE, step)

    @classmethod
    def response(cls, m: int, epsilon: float, delta: float) -> Measure:
        """Masses a = 1/(1 + (m-1) e^-epsilon) at epsilon, a e^-epsilon at -epsilon, the rest at 0.

        All of them times 1 - delta; delta is at infinity.
        """
        level = np.longdouble(epsilon)
        with np.errstate(divide="ignore"):  # delta = 1: everything is shown
            keep = np.log1p(-np.longdouble(delta))
        if m == 1 or epsilon == 0.0:
            losses, logs = np.zeros(1), np.array([keep])
        else:
            stay = keep - np.log1p((m - 1) * np.exp(-level))
            losses, logs = np.array([-epsilon, epsilon]), np.array([stay - level, stay])
            if m > 2:
                losses = np.insert(losses, 1, 0.0)
                logs = np.insert(logs, 1, np.log(np.longdouble(m - 2)) + stay - level)
        return cls(losses, logs, delta, (16.0 + 4.0 * epsilon) * FINE, epsilon)

    @property
    def top(self) -> float:
        """Largest finite loss, counted from ``shift``."""
        return float(self.losses[-1]) if len(self.losses) else 0.0

    @property
    def multiples(self) -> Ints:
        """The losses in units of ``step``."""
        return np.rint(self.losses / self.step).astype(np.int64)


#: Releases of some kinds, and how many of each.
Releases = Sequence[tuple[Measure, int]]


@dataclass(frozen=True, eq=False)
class Source:
    """The channel that a release was made by, its chances known up to a relative error."""

    channel: AbstractChannel
    slack: float


class Atom:
    """One release: a symmetric measure below its curve and one above it.

    ``key`` says what the measures are. ``source`` says where to look up the laws of a given pair
    of neighbours; it is None where the measures are those of any pair, in both orders.
    """

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
        return isinstance(other, Atom) and self.key == other.key and self._channel is other._channel

    @property
    def _channel(self) -> AbstractChannel | None:
        return self.source and self.source.channel

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

    @classmethod
    def of_laws(cls, source: Source) -> Atom:
        """Upper envelope of the curves of all neighbours' pairs of laws.

        With E = e^t - 1 the curve of a pair is the largest of the lines D - E T over sets A of
        outputs, D = P(A) - Q(A) and T = Q(A); only sets of the outputs with the largest ratios
        count. Both numbers are sums of non-negative terms, so all lines are known to a relative
        error, and the measure is read off the corners of the envelope.
        """
        apart = source.channel.laws_apart + source.slack
        low, high = np.zeros((1, 2)), np.zeros((1, 2))
        same = _SAME + 8.0 * apart
        for laws, pairs in _moved_apart(source):
            size = laws.shape[1]
            totals = laws.sum(axis=1)
            error = (size + 16.0) * ULP + 2.0 * float(np.abs(totals - 1.0).max())
            for start in range(0, len(pairs), max(1, CHUNK // size)):
                some = pairs[start : start + max(1, CHUNK // size)]
                lines = _lines(laws[some[:, 0]], laws[some[:, 1]])
                gains = lines[:, 0] * (1.0 + error)
                # Symmetric curves start with a slope of at most (1 - D)/2: no mass is left to fall.
                tests = np.minimum(lines[:, 1] * (1.0 - error), 0.5 * np.maximum(1.0 - gains, 0.0))
                high = _envelope(
                    np.concatenate([high, np.stack([gains, tests], axis=1)]), same, True
                )
                # Laws rounded apart are first brought together again, and beyond.
                gains = lines[:, 0] - 2.5 * apart * (lines[:, 0] + 2.0 * lines[:, 1])
                tests = lines[:, 1] * (1.0 + 2.5 * apart)
                below = np.stack([gains * (1.0 - error), tests * (1.0 + error)], axis=1)
                low = _envelope(np.concatenate([low, below[gains > 0.0]]), same, False)
        key = ("laws", low.tobytes(), high.tobytes())
        return cls(_from_envelope(low, up=False), _from_envelope(high, up=True), key, source)


def _moved_apart(source: Source) -> Iterator[Pairs]:
    """Laws of neighbours, the first of each pair rounded up and the second down by the slack."""
    by = source.slack
    for laws, pairs in source.channel.neighbour_laws():
        if by > 0.0:
            both = np.concatenate([laws * (1.0 + by), laws * (1.0 - by)])
            yield both, pairs + np.array([0, len(laws)])
        else:
            yield laws, pairs


def _lines(first: Floats, second: Floats) -> Floats:
    """Return (D, T) for the sets of outputs with the largest ratios a/b > 1, of pairs of laws."""
    gain = first - second
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


def _envelope(lines: Floats, same: float, up: bool) -> Floats:
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


def _from_envelope(lines: Floats, up: bool) -> Measure:
    """Measure whose curve is an envelope: masses at its corners, rounded up or down.

    Differences and quotients of the lines are good to a few units, and so is log1p of them.
    """
    infinite = float(lines[0, 0])
    dD, dT = np.diff(lines[:, 0])[::-1], np.diff(lines[:, 1])[::-1]
    sign = 1.0 if up else -1.0
    with np.errstate(over="ignore", under="ignore"):
        ratio = dD / dT
        losses = np.where(ratio < math.inf, np.log1p(ratio), np.log(dD) - np.log(dT))
    losses = losses * (1.0 + sign * 8.0 * ULP)
    masses = (dD + dT) * (1.0 + sign * 8.0 * ULP)
    losses, masses = _merged(losses, masses, up)
    fine, step = _on_lattice(losses, up)
    return Measure.symmetric(fine, np.log(masses.astype(np.longdouble)), infinite, up, step)


def merged_below(losses: Longs, masses: Longs) -> tuple[Floats, Longs, float]:
    """Join losses from 0 up, none of which rises, with their masses, and the step they share."""
    starts = np.flatnonzero(np.diff(losses, prepend=-1.0) > _SAME_LOSS * losses[-1])
    rising = losses[starts].astype(np.float64)
    fine, step = _on_lattice(rising[1:], up=False)
    rising[1:] = fine
    return rising, np.add.reduceat(masses, starts), step


def _on_lattice(losses: Floats, up: bool) -> tuple[Longs, float]:
    """Multiples of a step in place of losses that are close to them, and the step, or 0."""
    step = _common_step(losses, up)
    if step == 0.0:
        return losses.astype(np.longdouble), 0.0
    return np.rint(losses / step) * np.longdouble(step), step


def _common_step(losses: Floats, up: bool) -> float:
    """Step h such that all losses are multiples of it up to rounding, or 0.

    Multiples of h are no less, or no more, than the losses: they may stand for them in a bound.
    """
    if not len(losses) or losses[-1] > _MULTIPLE * losses[0]:
        return 0.0
    for parts in range(1, _PARTS + 1):
        multiples = np.rint(losses / (losses[0] / parts))
        steps = losses / multiples
        if np.ptp(steps) <= _SAME * steps[0]:
            return float(steps.max() * (1 + 4 * ULP) if up else steps.min() * (1 - 4 * ULP))
    return 0.0


def _merged(losses: Floats, masses: Floats, up: bool) -> tuple[Floats, Floats]:
    """Join losses that differ by rounding only, at the largest or the least of them."""
    if not len(losses):
        return losses, masses
    starts = np.concatenate([[0], np.flatnonzero(np.diff(losses) > _SAME_LOSS * losses[1:]) + 1])
    joined = np.maximum if up else np.minimum
    total = np.add.reduceat(masses, starts) * (1.0 + (4.0 if up else -4.0) * ULP * len(losses))
    return joined.reduceat(losses, starts), total
