"""Finite steps: channels, randomised response, discrete noise, curves from points, and samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np

from fastpriv._core.rounding import LEAST, ULP, directed, raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv._matrices.ratios import Pairs
from fastpriv.accounting.profile.discrete import (
    FINE,
    SAME,
    DiscreteLosses,
    Longs,
    Step,
    merged,
    on_lattice,
)
from fastpriv.channels import AbstractChannel
from fastpriv.measures.approximate_dp import laws_apart, laws_lost, neighbour_laws, response
from fastpriv.measures.dp import neighbour_level

# One step: bounds on its curve, from the distributions of all neighbours or from a level.


#: Number of entries of neighbouring distributions processed in one block.
CHUNK = 1 << 20
#: Smallest level of randomised response that is not rounded.
_SMALLEST_LEVEL = 1e-290
#: Largest level of randomised response that is not rounded.
_LARGEST_LEVEL = 1e9
#: Overlaps of two distributions below this may be rounding errors.
_OVERLAP = 2.0**-40
#: Sums of probabilities below this may have lost digits to underflow.
_LITTLE = 1e-290
#: Ratios above this are compared by their logarithms.
_LARGE = 1e300
#: Smallest positive loss; the tilt of a smaller one would overflow.
_SMALLEST_LOSS = 1e-290


@dataclass(frozen=True, eq=False)
class Source:
    """The channel of a step, whose probabilities are known up to the relative error ``slack``."""

    channel: AbstractChannel
    slack: float


class FiniteStep(Step):
    """One step, bounded by a symmetric measure below its curve and one above it.

    ``key`` identifies the measures. ``source`` holds the channel with the distributions of each
    pair of neighbours. It is None if the measures hold for every pair in both orders, or if only
    the curve of a channel was kept. ``drawn`` is the certainly attained level of a randomised
    response, if it is lower than the level in ``key``.
    """

    drawn: float | None = None

    def __init__(
        self,
        lower: DiscreteLosses,
        upper: DiscreteLosses,
        key: tuple[Any, ...],
        source: Source | None = None,
    ) -> None:
        self.lower, self.upper = lower, upper
        self.key, self.source = key, source

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FiniteStep) and self.key == other.key and self._same == other._same

    @property
    def _same(self) -> tuple[AbstractChannel | None, float]:
        """The channel and the largest loss of the lower measure, equal for equal mechanisms."""
        return None if self.source is None else self.source.channel, self.lower.top

    @property
    def free(self) -> bool:
        """Whether every pair of neighbours attains the lower measure, whatever the other steps."""
        return self.source is None and self.key[0] != "laws"

    @property
    def is_response(self) -> bool:
        """Whether this is a randomised response."""
        return bool(self.key[0] == "response")

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same distribution."""
        return self.upper.top == 0.0 and self.upper.infinite == 0.0

    def gaussian_square(self, zcdp: bool) -> tuple[float, float] | None:
        """Return bounds on mu^2 of discrete Gaussian noise in zCDP: (distance d / sigma)^2.

        Its Renyi divergence of order alpha is at most alpha d^2 / (2 sigma^2), with equality at
        every integer alpha (Canonne, Kamath and Steinke 2020).
        """
        if not zcdp or self.key[0] != "discrete-gaussian":
            return None
        _, sigma, distance = self.key
        return (distance / sigma) ** 2, (distance / sigma) ** 2

    @classmethod
    def response(
        cls, m: int, epsilon: float, delta: float = 0.0, source: Source | None = None
    ) -> FiniteStep:
        """Return m-ary randomised response that reveals its input with probability delta.

        The curve increases with epsilon, so extreme levels are rounded outwards. The lower measure
        has level 0 or ``_LARGEST_LEVEL``. The upper measure has ``_SMALLEST_LEVEL`` or reveals the
        input.
        """
        key = ("response", m, epsilon, delta)
        if m == 1 or epsilon == 0.0 or _SMALLEST_LEVEL <= epsilon <= _LARGEST_LEVEL:
            both = DiscreteLosses.response(m, epsilon, delta)
            return cls(both, both, key, source)
        if epsilon < _SMALLEST_LEVEL:
            levels = (
                DiscreteLosses.response(m, 0.0, delta),
                DiscreteLosses.response(m, _SMALLEST_LEVEL, delta),
            )
        else:
            levels = (
                DiscreteLosses.response(m, _LARGEST_LEVEL, delta),
                DiscreteLosses.response(m, 0.0, 1.0),
            )
        return cls(*levels, key, source)

    def down_to(self, epsilon: float) -> FiniteStep:
        """Return this randomised response with a lower level that is certainly attained."""
        _, m, _, delta = self.key
        result = FiniteStep(
            FiniteStep.response(m, epsilon, delta).lower, self.upper, self.key, self.source
        )
        result.drawn = epsilon
        return result

    @classmethod
    def of(cls, channel: AbstractChannel, slack: float) -> FiniteStep:
        """Return one step of a channel whose probabilities have the relative error ``slack``."""
        dominating, source = response(channel), Source(channel, slack)
        if dominating is None or slack > 0.0:
            return cls.of_laws(source)
        everywhere = all(m in (1, dominating[0]) for m in channel.space.sizes)
        return cls.response(*dominating, source=None if everywhere else source)

    @classmethod
    def of_laws(cls, source: Source) -> FiniteStep:
        """Return the upper envelope of the curves of all pairs of neighbouring distributions.

        Matrix rows are distributions after division by their exact sums. The bounds hold for these
        distributions and for the given entries: see docs/theory/rounding.md.
        """
        # Let E = e^t - 1. The curve of a pair is the maximum of the lines D - E T over sets A of
        # outputs, with D = P(A) - Q(A) and T = Q(A). Only sets of outputs with the largest ratios
        # matter. D and T are sums of non-negative terms, so they have a small relative error. The
        # corners of the envelope give the measure.
        apart = laws_apart(source.channel) + source.slack
        lost = laws_lost(source.channel)
        flattest = _inverse_slope(source.channel) if lost > 0.0 else 0.0
        low, high = np.zeros((1, 2)), np.zeros((1, 2))
        summed = totals = moved = np.zeros(0)
        same = SAME + 8.0 * apart
        for laws, pairs in _moved_apart(source):
            size = laws.shape[1]
            if apart > 0.0:  # computed distributions: digits beyond their error have no meaning
                totals, moved = laws.sum(axis=1) - 1.0, np.zeros(len(laws))
            elif laws is not summed:
                summed, totals = laws, _beyond_one(laws)
                moved = totals
            error = roundoff(size + 16.0) + 2.0 * float(np.abs(totals).max())
            for start in range(0, len(pairs), max(1, CHUNK // size)):
                some = pairs[start : start + max(1, CHUNK // size)]
                first, second = (laws[some[:, k]] for k in (0, 1))
                least, most = _gains(first, second, moved[some[:, 0]], moved[some[:, 1]])
                lines = _lines(most, second)
                gains = lines[:, 0] * (1.0 + error)
                # Symmetric curves start with a slope of at most (1 - D)/2. If D is one up to
                # rounding, this limit is not applied, because it would make losses infinite.
                tests, slope = lines[:, 1] * (1.0 - error), 0.5 * (1.0 - gains)
                if lost > 0.0 and (tests < _LITTLE).any():
                    # If T underflows, the level bounds it: D <= (e^level - 1) T.
                    tests = np.maximum(tests, lines[:, 0] * (1.0 - error) * flattest)
                tests = np.where(slope > _OVERLAP, np.minimum(tests, slope), tests)
                high = envelope(
                    np.concatenate([high, np.stack([gains, tests], axis=1)]), same, True
                )
                lines = _lines(least, second)
                # The lower bound undoes the outward rounding, with a margin.
                gains = lines[:, 0] - 2.5 * apart * (lines[:, 0] + 2.0 * lines[:, 1])
                gains -= size * lost
                tests = lines[:, 1] * (1.0 + 2.5 * apart) + size * lost
                below = np.stack([gains * (1.0 - error), tests * (1.0 + error)], axis=1)
                low = envelope(np.concatenate([low, below[gains > 0.0]]), same, False)
        key = ("laws", low.tobytes(), high.tobytes())
        return cls(from_envelope(low, up=False), from_envelope(high, up=True), key, source)


def _inverse_slope(channel: AbstractChannel) -> float:
    """Return 1 / (e^level - 1) of a channel, rounded down; 0 if it is out of range."""
    level = neighbour_level(channel)
    return (1.0 - roundoff(8.0)) / math.expm1(level) if 0.0 < level < 709.0 else 0.0


def _moved_apart(source: Source) -> Iterator[Pairs]:
    """Yield pairs of neighbouring distributions, the first rounded up, the second down."""
    by = source.slack
    for laws, pairs in neighbour_laws(source.channel):
        if by > 0.0:
            both = np.concatenate([laws * (1.0 + by), laws * (1.0 - by)])
            yield both, pairs + np.array([0, len(laws)])
        else:
            yield laws, pairs


def _beyond_one(laws: Floats) -> Floats:
    """Return the sum of each row minus one, computed exactly and rounded once."""
    return np.array([math.fsum((-1.0, *law)) for law in laws.tolist()])


def _gains(first: Floats, second: Floats, more: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Bound a - b for pairs of rows, and s t times the difference of a/s and b/t.

    The second number is a - b + a (t - 1) - b (s - 1), and a - b is exact if it is as small as the
    other terms. ``more`` and ``other`` are s - 1 and t - 1. Equal rows are equal distributions.
    """
    gain = first - second
    told = gain.any(axis=1) & ((more != 0.0) | (other != 0.0))
    if not told.any():
        return gain, gain
    rise, fall = first * (other * told)[:, None], second * (more * told)[:, None]
    shift, doubt = rise - fall, roundoff(4.0) * (np.abs(rise) + np.abs(fall))
    doubt += 4.0 * LEAST * (told[:, None] & (first + second > 0.0))
    return gain + np.minimum(shift, 0.0) - doubt, gain + np.maximum(shift, 0.0) + doubt


def _lines(gain: Floats, second: Floats) -> Floats:
    """Return (D, T) of each pair for the sets of outputs with the largest ratios a/b > 1."""
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
    """Return the upper envelope of lines D - E T over E >= 0, with increasing T and D.

    If a line gains no more than rounding at E = 0, the lower envelope omits it, and the upper one
    joins it with the line before. The same pair in the other order gives such lines.
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
    """Whether line b exceeds both a and c somewhere, by the order of its two corners."""
    left = (c[0] - b[0]) * (b[1] - a[1])
    right = (b[0] - a[0]) * (c[1] - b[1])
    if abs(left - right) > 1e-14 * (left + right):
        return left < right
    (d0, t0), (d1, t1), (d2, t2) = (map(Fraction, line) for line in (a, b, c))
    return (d2 - d1) * (t1 - t0) < (d1 - d0) * (t2 - t1)


def from_envelope(lines: Floats, up: bool) -> DiscreteLosses:
    """Return the measure whose curve is an envelope, rounded up or down; masses are at corners.

    Differences and quotients of the lines, and their log1p, are accurate to a few units.
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
    elif small.any():  # the lower bound omits them; the upper bound adds their gain to infinite
        infinite = raised(math.fsum([infinite, *dD[small]]), 4.0) if up else infinite
        losses, masses = losses[~small], masses[~small]
    losses, masses = merged(losses, masses, up)
    fine, step = on_lattice(losses, up)
    return DiscreteLosses.symmetric(fine, np.log(masses.astype(np.longdouble)), infinite, up, step)


# Symmetric measures from bounds on a curve delta(t) at some levels.
#
# delta is convex in E = e^t - 1. Upper bounds joined by chords are therefore above it. Between two
# points, the extrapolated chords of the points to the left and to the right are below it.


Points = TypeVar("Points", Floats, Longs)

#: Number of standard deviations of the losses within which levels are equally spaced.
_NEAR = 8.0
#: Largest ratio of consecutive levels beyond that.
_RATIO = 1.1
#: Delta below which no further levels are evaluated.
_SMALLEST_DELTA = 1e-60


def deviation(largest: float) -> float:
    """Return the standard deviation of normal losses with the given delta(0)."""
    return 2.0 * NormalDist().inv_cdf(0.5 + 0.5 * min(max(largest, 1e-12), 1.0 - 1e-12))


def levels(largest: float, end: float, fine: int) -> Floats:
    """Return levels in [0, end]: ``fine`` per standard deviation, and fewer in the tail."""
    mu = deviation(largest)
    near = min(_NEAR * mu, end)
    close = np.arange(0.0, near * (1.0 - 1e-9), mu / fine)
    count = max(math.ceil(math.log(end / near) / math.log(_RATIO)), 0)
    result = np.append(close, near * (end / near) ** (np.arange(count + 1) / max(count, 1)))
    result[-1] = end
    return result


def curve_above(delta: Callable[[float], float], at: Floats, top: float) -> DiscreteLosses:
    """Return a measure whose curve is above delta, given upper bounds on delta."""
    values, used = [], []
    for t in at.tolist():
        values.append(0.0 if t >= top else delta(t))
        used.append(t)
        if 0.0 < values[-1] < _SMALLEST_DELTA and top < math.inf:
            values.append(0.0)
            used.append(top)
            break
    # The curve decreases, so moving points to higher levels keeps upper bounds valid.
    moved = np.expm1(np.array(used) * (1.0 + roundoff(16.0))) * (1.0 + roundoff(4.0))
    e, d = hull(moved, np.array(values))
    lines = _chords(e, d) * np.array([1.0 + roundoff(16.0), 1.0 - roundoff(16.0)])
    # Symmetric curves start with a slope of at most (1 - D)/2.
    most = 0.5 * (1.0 - lines[:, 0])
    lines[:, 1] = np.where(most > _OVERLAP, np.minimum(lines[:, 1], most), lines[:, 1])
    lines = np.concatenate([[[d[-1], 0.0]], lines[::-1]])
    return from_envelope(envelope(lines, SAME, True), up=True)


def lower_of(
    delta: Callable[[float], tuple[float, float]], at: Floats, top: float
) -> tuple[Floats, Floats]:
    """Return the corners of a convex function of E below delta, given bounds on delta."""
    known: list[tuple[float, float, float]] = []
    for t in at.tolist():
        low, high = (0.0, 0.0) if t >= top else delta(t)
        if low <= _SMALLEST_DELTA:
            break
        known.append((t, low, high))
    if len(known) < 4:
        return np.zeros(1), np.zeros(1)
    t_, below, above = np.array(known).T.copy()
    e = np.expm1(t_)
    rise = np.diff(e)
    # Points are rounded down. Lower bounds still hold there; upper bounds get a margin.
    e[1:] *= 1.0 - roundoff(4.0)
    above[1:] += roundoff(16.0) * e[1:] * (above[:-1] - below[1:]) / rise
    rise = np.diff(e)
    left = (below[1:] - above[:-1]) / rise * (1.0 + roundoff(8.0))  # continued to the right
    right = np.minimum((above[1:] - below[:-1]) / rise * (1.0 - roundoff(8.0)), 0.0)  # to the left
    # The first and the last interval have one chord each.
    below[0] = min(below[0], below[1] - right[1] * rise[0])
    below[-1] = max(min(below[-1], below[-2] + left[-2] * rise[-1]), 0.0)
    corners = list(zip(e.tolist(), below.tolist(), strict=True))
    for i in range(1, len(e) - 2):
        # Use the larger of both chords; they meet in a corner unless one is above throughout.
        down, up = below[i] + left[i - 1] * rise[i], below[i + 1] - right[i + 1] * rise[i]
        if down < below[i + 1] and up < below[i]:
            cut = rise[i] * (below[i] - up) / (below[i] - up + below[i + 1] - down)
            value = min(below[i] + left[i - 1] * cut, up + right[i + 1] * cut)
            corners.append((e[i] + cut, max(value - roundoff(16.0) * below[i], 0.0)))
    where, what = np.array(sorted(corners)).T
    return hull(where, what)


def curve_below(curves: list[tuple[Floats, Floats]], always: float) -> DiscreteLosses:
    """Return a measure whose curve is below convex functions of E, given by their corners.

    ``always`` is a constant below all of them.
    """
    e = np.unique(np.concatenate([corners for corners, _ in curves]))
    e = e[e <= min(corners[-1] for corners, _ in curves)]
    least = np.min([_between(e, *curve) for curve in curves], axis=0)
    e, d = hull(e, np.maximum(least, 0.0))
    lines = _chords(e, d) * np.array([1.0 - roundoff(16.0), 1.0 + roundoff(16.0)])
    lines = np.concatenate([[[always, 0.0]], lines[lines[:, 0] > always][::-1]])
    return from_envelope(envelope(lines, SAME, False), up=False)


def _between(e: Floats, corners: Floats, values: Floats) -> Floats:
    """Return the values at e of the linear interpolation of corners, rounded down."""
    before = np.clip(np.searchsorted(corners, e, side="right") - 1, 0, len(values) - 1)
    here = np.interp(e, corners, values)
    return np.where(corners[before] == e, here, here - roundoff(8.0) * values[before])


def _chords(e: Floats, d: Floats) -> Floats:
    """Return (D, T) of the lines D - E T through consecutive points of a decreasing function."""
    slope = (d[:-1] - d[1:]) / np.diff(e)
    return np.stack([d[:-1] + e[:-1] * slope, slope], axis=1)


def hull(at: Points, values: Points) -> tuple[Points, Points]:
    """Return the corners of the largest convex function below some points."""
    kept: list[int] = []
    for i in range(len(at)):
        while len(kept) > 1:
            j, k = kept[-2], kept[-1]
            left = (values[k] - values[j]) * (at[i] - at[k])
            if left < (values[i] - values[k]) * (at[k] - at[j]):
                break
            kept.pop()
        kept.append(i)
    return at[kept], values[kept]


# Subsampled finite steps: measures for each order of the neighbours.


class SampledFinite(Step):
    """A step on a sample that includes each record with probability q.

    Let (P, Q) be the pair of the step without sampling. The output distribution is
    (1 - q) Q + q P with the record and Q without it. A loss l becomes ln(1 - q + q e^l), and
    changes sign in the other order.
    """

    def __init__(self, atom: FiniteStep, q: float) -> None:
        self.atom, self.q = atom, q
        self.key = ("sampled", q, *atom.key)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SampledFinite)
            and type(other) is type(self)
            and self.q == other.q
            and self.atom == other.atom
        )

    @property
    def alternatives(self) -> list[dict[Step, int]]:
        """Steps of which some neighbours attain each, or a part of what each step shows."""
        return []

    @property
    def revealed(self) -> dict[Step, int] | None:
        """Steps that show this one and what was chosen at random; None if not known."""
        return None

    @property
    def symmetric(self) -> bool:
        """Whether both orders of the neighbours have the same measures."""
        return False

    @property
    def attained(self) -> bool:
        """Whether every pair of neighbours attains the lower measure, whatever the other steps."""
        return self.atom.free

    @property
    def exact(self) -> bool:
        """Whether the bounds from above and below are the same measure, which is attained.

        A mass of infinite losses times q is rounded up in one and down in the other.
        """
        one = self.atom.lower is self.atom.upper and self.atom.upper.infinite == 0.0
        return self.atom.free and one

    def measure(self, flipped: bool, up: bool) -> DiscreteLosses:
        """Return the measure of one order that bounds the step from above or below."""
        given = self.atom.upper if up else self.atom.lower
        q = np.longdouble(self.q)
        plain = given.losses.astype(np.longdouble) + np.longdouble(given.shift)
        losses = np.log1p(q * np.expm1(plain)) if self.q < 1.0 else plain
        with np.errstate(divide="ignore"):
            low = np.log1p(-q)  # the loss of outputs with probability 0 under P
            hidden = np.log(np.longdouble(given.infinite)) if given.infinite > 0.0 else -np.inf
        logs = given.logs - plain
        if flipped:
            losses, logs, infinite = -losses, logs, 0.0
            losses, logs = np.append(losses, -low), np.append(logs, hidden)
        else:
            logs = logs + losses
            infinite = directed(given.infinite * self.q, 4.0, up)
            losses, logs = np.append(losses, low), np.append(logs, hidden + low)
        seen = logs > -np.inf
        losses, logs = losses[seen], logs[seen]
        order = np.argsort(losses, kind="stable")
        losses, logs = losses[order], logs[order]
        size = float(np.abs(losses).max(initial=0.0))
        off = 2.0 * given.off + (16.0 * FINE + ULP) * size + 16.0 * FINE
        error = 2.0 * given.error + (32.0 + 8.0 * float(np.abs(logs).max(initial=0.0))) * FINE
        shift = losses[0] if len(losses) else np.longdouble(0.0)
        rising, logs, moved = _joined((losses - shift).astype(np.float64), logs)
        return DiscreteLosses(rising, logs, infinite, error, 0.0, float(shift), off + moved)

    def measures(self, flipped: bool, up: bool) -> list[tuple[DiscreteLosses, int]]:
        """Return losses whose composition bounds the step in one order, with their numbers."""
        return [(self.measure(flipped, up), 1)]

    #: Whether ``measures`` returns several losses to be composed.
    is_composed: bool = False

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same distribution."""
        return self.q == 0.0 or self.atom.is_trivial


def _joined(losses: Floats, logs: Longs) -> tuple[Floats, Longs, float]:
    """Merge losses that are equal up to rounding, and return the largest change of a loss."""
    if not len(losses):
        return losses, logs, 0.0
    starts = np.flatnonzero(np.diff(losses, prepend=-1.0) > roundoff(4.0) * losses[-1])
    last = np.append(starts[1:], len(losses)) - 1
    most = np.maximum.reduceat(logs, starts)
    sizes = np.diff(np.append(starts, len(losses)))
    total = np.add.reduceat(np.exp(logs - np.repeat(most, sizes)), starts)
    moved = float((losses[last] - losses[starts]).max())
    return losses[last], most + np.log(total), moved


class FixedSizeSample(SampledFinite):
    """A step on a sample of fixed size that includes each record with probability q.

    If the record is replaced, both orders have the upper curve q delta(ln(1 + (e^t - 1)/q)) for
    t >= 0. Losses l > 0 become ln(1 - q + q e^l), with their mirror images. The attained pair is
    (1 - q) Q + q P against Q, in both orders, with the pair (P, Q) of ``reached``.
    """

    def __init__(self, atom: FiniteStep, q: float, reached: FiniteStep | None) -> None:
        super().__init__(atom, q)
        self.reached = reached
        other = None if reached is None else reached.key
        self.key = ("without-replacement", q, atom.key, other)

    @property
    def attained(self) -> bool:
        """Whether an attained pair is known, whatever the other steps."""
        return self.reached is not None

    def measure(self, flipped: bool, up: bool) -> DiscreteLosses:
        """Return the measure of one order that bounds the step from above or below."""
        if not up:
            if self.reached is not None:
                return SampledFinite(self.reached, self.q).measure(flipped, False)
            return DiscreteLosses(np.zeros(1), np.zeros(1, dtype=np.longdouble), 0.0, 0.0)
        given = super().measure(False, True)
        losses = given.losses.astype(np.longdouble) + np.longdouble(given.shift)
        seen = losses > 0.0
        result = DiscreteLosses.symmetric(losses[seen], given.logs[seen], given.infinite, True, 0.0)
        return replace(result, error=result.error + given.error, off=given.off)


class CurveStep(SampledFinite):
    """A step whose curve is computed level by level.

    ``delta`` and ``epsilon`` bound one step. Its measures come from some points of the curve; they
    are less accurate and serve for compositions.
    """

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.key == getattr(other, "key", None)

    @property
    def levelwise(self) -> bool:
        """Whether ``delta`` and ``epsilon`` are more accurate than the measures."""
        return True

    @property
    def attained(self) -> bool:
        """Whether neighbours attain the lower measure."""
        return True

    @property
    def asked_of(self) -> tuple[Any, ...] | None:
        """The neighbours that attain the lower measure; None if all do."""
        return None

    @property
    def exact(self) -> bool:
        """Always False: the two bounds on the curve differ."""
        return False

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same distribution."""
        return False

    def delta(self, t: float) -> tuple[float, float]:
        """Bounds on delta(t) of one step."""
        raise NotImplementedError

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Bounds on the smallest level of one step at a delta."""
        raise NotImplementedError


def show_all() -> FiniteStep:
    """Return a step that reveals its input."""
    return FiniteStep.response(2, 0.0, 1.0)


def revealed(low: float, high: float) -> FiniteStep:
    """Return a step that reveals its input with a probability between two bounds."""
    lower, upper = (DiscreteLosses.response(2, 0.0, delta) for delta in (low, high))
    return FiniteStep(lower, upper, ("revealed", low, high))


def discrete_gaussian(sigma: float, sensitivity: int) -> FiniteStep:
    """Return discrete Gaussian noise on two integers at distance d = ``sensitivity``.

    The losses are d (2x - d) / (2 sigma^2), and x has mass e^(-(x-d)^2/(2 sigma^2)) / Z under the
    first distribution. They are odd or even multiples of d/(2 sigma^2). Noise beyond 39 sigma
    counts as an infinite loss.
    """
    d = sensitivity
    reach = math.ceil(39.0 * sigma) + 2
    n = np.arange(-reach, reach + 1)
    step = d / (2.0 * sigma * sigma)
    fine = np.longdouble(d) / (2.0 * np.longdouble(sigma) ** 2)
    logs = -(n.astype(np.longdouble) ** 2) / (2.0 * np.longdouble(sigma) ** 2)
    logs -= np.log(np.exp(logs).sum())
    multiples = 2 * n + d
    # Masses of losses and their mirror images, symmetric up to the truncated tail.
    keep = multiples > 0
    positive, masses = multiples[keep] * np.longdouble(step), logs[keep]
    size = float(np.abs(masses).max())
    error = (32.0 + 8.0 * size) * FINE + float(abs(fine - step) / fine) * 2.0 * size
    infinite = 1e-320
    mirrored = masses - positive
    losses = np.concatenate([-positive[::-1], positive])
    both = np.concatenate([mirrored[::-1], masses])
    if 0 in multiples:
        middle = logs[multiples == 0]
        losses = np.concatenate([-positive[::-1], np.zeros(1, dtype=np.longdouble), positive])
        both = np.concatenate([mirrored[::-1], middle, masses])
    # The lattice step is rounded to a double; ``off`` bounds the resulting error of the losses.
    off = (float(abs(fine - step)) + 4.0 * FINE * step) * float(np.abs(multiples).max())
    lower = DiscreteLosses(losses.astype(np.float64), both, 0.0, error, step, off=off)
    upper = replace(lower, infinite=infinite)
    return FiniteStep(lower, upper, ("discrete-gaussian", sigma, sensitivity))


def discrete_laplace(parameter: float, sensitivity: int) -> FiniteStep:
    """Return discrete Laplace noise e^(-a|x|) tanh(a/2) on two integers at distance d.

    The losses are a (|x| - |x - d|): a d and -a d in the tails, and a (2x - d) between.
    """
    a, d = np.longdouble(parameter), sensitivity
    x = np.arange(1, d)  # strictly between
    tail = -np.log1p(np.exp(-a))  # ln of the mass of x >= d under the distribution around d
    inner = np.log(np.tanh(a / 2.0)) - a * np.abs(x - d)
    multiples = np.concatenate([[-d], 2 * x - d, [d]])
    logs = np.concatenate([[tail - a * d], inner, [tail]])
    losses = multiples * float(parameter)
    size = float(np.abs(logs).max())
    top = float(losses[-1])
    off = 0.0 if Fraction(top) == d * Fraction(float(parameter)) else roundoff(top)
    measure = DiscreteLosses(
        losses, logs, 0.0, (32.0 + 8.0 * size) * FINE, float(parameter), off=off
    )
    return FiniteStep(measure, measure, ("discrete-laplace", parameter, sensitivity))
