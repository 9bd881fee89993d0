"""Sums of discrete losses, enumerated, or on lattices by one Fourier transform."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv.accounting.profile.composition import Bounds, Composition, Prepared
from fastpriv.accounting.profile.discrete import FINE, DiscreteLosses, Longs, Releases
from fastpriv.accounting.profile.losses import TooMuchWork

# The distribution of a sum of many independent steps on a lattice, tilted so that a far tail is its
# middle.
#
# With tilt s the masses p(j) become p(j) e^(s j) / M(s): the sum of k steps has mass M(s)^k e^(-s
# g) y(g), y a law. Where s is chosen so that y is centred at the tail asked for, every digit of y
# there is a digit of the tail, however small the tail is. The law y comes from its characteristic
# function, raised to the power k pointwise, and one inverse FFT. All errors are bounded, not
# estimated:
#
# - |phi^k| from logarithms of phi = 1 + sum p(j) (e^(i theta j) - 1), the most likely step taken
#   as 0: small angles have small errors, and they are the ones that matter, so that k steps lose
#   about sqrt(k) units and not k;
# - every output of an FFT of 2^L points is a sum of inputs times at most L computed twiddles, each
#   adding at most 6 units: an error of at most 8 L units of the mean of |phi^k|;
# - what lies outside of the window, by Chernoff's bound.


#: Tilts carry the digits that multiplying them by many steps would lose.
Tilt = float | np.longdouble

#: Exponent of Chernoff's bound on what lies outside of the window, on either side.
OUTSIDE = 52.0
#: Number of exponents tried in Chernoff's bound.
TURNS = 8
#: Sums with at most this number of points are not truncated.
_SHORT = 1 << 6
#: From this number on, steps are transformed instead of summed at every angle.
_MANY = 1 << 10
#: Maximum number of points of a window.
_LONGEST = 1 << 23


@dataclass(frozen=True, eq=False)
class Steps:
    """``count`` independent steps on the integers, the log-mass of step ``at[j]`` being logs[j]."""

    at: Ints
    logs: Longs
    count: int

    @property
    def many(self) -> bool:
        """Whether the steps represent a density, for which doubles suffice."""
        return len(self.at) > _MANY

    @cached_property
    def _plain(self) -> tuple[Floats, Floats]:
        return self.at.astype(np.float64), self.logs.astype(np.float64)

    def log_total(self, s: Tilt) -> np.longdouble:
        """Return ln M(s), M(s) = sum of p(j) e^(s j)."""
        if self.many:
            at, logs = self._plain
            rough = logs + float(s) * at
            top = float(rough.max())
            return np.longdouble(
                top + math.log(float(np.exp(np.maximum(rough - top, -99.0)).sum()))
            )
        tilted = self.logs + np.longdouble(s) * self.at
        most = tilted.max()
        return np.longdouble(most + np.log(np.exp(tilted - most).sum()))

    def tilted(self, s: Tilt) -> Floats:
        """Return the masses of the steps after tilting."""
        if self.many:
            at, logs = self._plain
            with np.errstate(under="ignore"):
                return np.asarray(np.exp(logs + float(s) * at - float(self.log_total(s))))
        return np.exp(self.logs + np.longdouble(s) * self.at - self.log_total(s)).astype(np.float64)

    def mode(self, s: Tilt) -> int:
        """The most likely step after tilting."""
        return int(self.at[self.tilted(s).argmax()])

    def fuzz(self, s: Tilt) -> float:
        """Relative error of the tilted masses, and of their total, before they are rounded."""
        size = float(np.abs(self.logs).max()) + abs(float(s)) * int(np.abs(self.at).max())
        if self.many:
            return roundoff(64.0 + 4.0 * size)
        return FINE * (8.0 + len(self.at) + size)


@dataclass(frozen=True, eq=False)
class Tilted:
    """Masses e^(log_total - s g) y(g) for g = start, start + 1, ...

    The error of ``y`` is at most ``error`` everywhere, and the error of ``log_total`` at most
    ``log_error``. The mass outside the window, omitted or folded in, is at most ``outside``.
    """

    start: int
    y: Floats
    error: float
    log_total: np.longdouble
    log_error: float
    outside: float


def tilted_law(parts: list[Steps], s: Tilt) -> Tilted:
    """Return the distribution of the sum of all steps, tilted by s."""
    log_total = sum((part.count * part.log_total(s) for part in parts), np.longdouble(0.0))
    laws = [part.tilted(s) for part in parts]
    log_error = sum(part.count * part.fuzz(s) for part in parts) + FINE * abs(float(log_total))
    modes = [int(part.at[law.argmax()]) for part, law in zip(parts, laws, strict=True)]
    low, high, outside = _window(parts, laws, s)
    length = 1 << max(1, (high - low).bit_length())
    check.fits(length, "the distribution of the losses", "compose fewer steps at a time", _LONGEST)
    fuzz = max(part.fuzz(s) for part in parts)
    many = any(part.many for part in parts)
    y, error = (_transformed if many else _inverse)(parts, laws, modes, length, fuzz)
    centre = sum(part.count * mode for part, mode in zip(parts, modes, strict=True))
    return Tilted(low, y[placed(low, high, centre, length)], error, log_total, log_error, outside)


def _window(parts: list[Steps], laws: list[Floats], s: Tilt) -> tuple[int, int, float]:
    """Range outside of which the tilted sum has at most the returned probability."""
    least = sum(part.count * int(part.at.min()) for part in parts)
    most = sum(part.count * int(part.at.max()) for part in parts)
    if most - least < _SHORT:
        return least, most, 0.0
    variance = 0.0
    for part, law in zip(parts, laws, strict=True):
        mean = float((law * part.at).sum())
        variance += part.count * float((law * (part.at - mean) ** 2).sum())
    # The first turn is best for a bell; the distribution of a few rare steps asks for smaller ones.
    start = math.sqrt(2.0 * OUTSIDE / variance) if variance > 0.0 else math.inf
    at, low, high = _cumulant(parts, s), least, most
    for turn in min(start, OUTSIDE) * 0.2 ** np.arange(TURNS):
        # One more point on either side outweighs the rounding of these quotients.
        up, down = (_cumulant(parts, tilt) - at + OUTSIDE for tilt in (s + turn, s - turn))
        high = min(high, math.floor(up / turn) + 1)
        low = max(low, math.ceil(-down / turn) - 1)
    return low, high, 2.0 * math.exp(-OUTSIDE) if high - low < most - least else 0.0


def _cumulant(parts: list[Steps], s: Tilt) -> float:
    return float(sum(part.count * part.log_total(s) for part in parts))


def _inverse(
    parts: list[Steps], laws: list[Floats], modes: list[int], length: int, fuzz: float
) -> tuple[Floats, float]:
    """Return y modulo ``length``, indices relative to the sum of modes, and its largest error."""
    return inverted(_powers(parts, laws, modes, length, fuzz), length)


def characteristic_logs(parts: list[Steps], s: Tilt, length: int) -> Floats:
    """Logarithm of the transform of the tilted sum, indices relative to the sum of modes.

    See ``characteristic_powers`` for its four rows. Those of more steps add up.
    """
    laws = [part.tilted(s) for part in parts]
    modes = [int(part.at[law.argmax()]) for part, law in zip(parts, laws, strict=True)]
    return _powers(parts, laws, modes, length, max(part.fuzz(s) for part in parts))


def _powers(
    parts: list[Steps], laws: list[Floats], modes: list[int], length: int, fuzz: float
) -> Floats:
    at = [(part.at - mode) % length for part, mode in zip(parts, modes, strict=True)]
    moved = [part.at != mode for part, mode in zip(parts, modes, strict=True)]
    starts = np.concatenate([[0], np.cumsum([int(m.sum()) for m in moved])])
    logs = np.empty((4, length // 2 + 1))
    kernels.characteristic_powers(
        np.concatenate([a[m] for a, m in zip(at, moved, strict=True)]),
        np.concatenate([law[m] for law, m in zip(laws, moved, strict=True)]),
        starts,
        np.array([float(part.count) for part in parts]),
        np.array([roundoff(32.0 + len(law)) + fuzz for law in laws]),
        *_sines(length),
        logs,
    )
    return logs


@lru_cache(maxsize=2)
def _sines(length: int) -> tuple[Floats, Floats]:
    """Return sin(pi m / length) and sin(2 pi m / length) for all m, negative ones at the end."""
    places = np.arange(length)
    around = np.where(places > length // 2, places - length, places) / length
    return np.sin(np.pi * around), np.sin(2.0 * np.pi * around)


def inverted(logs: Floats, length: int) -> tuple[Floats, float]:
    """Return y modulo ``length`` from the logarithm of its transform, and its largest error."""
    real, turn, size, relative = logs
    with np.errstate(under="ignore"):
        result = np.fft.irfft(np.exp(real) * (np.cos(turn) + 1j * np.sin(turn)), length)
        transform = roundoff(8.0 * math.log2(length))
        error = 2.0 / length * float((np.exp(size) * (relative + transform)).sum())
    return result, error * (1.0 + 1e-9)


def placed(low: int, high: int, centre: int, length: int) -> Ints:
    """Where the points of a window stand in a transform whose indices start from ``centre``."""
    return np.arange(low - centre, high - centre + 1) % length


def _transformed(
    parts: list[Steps], laws: list[Floats], modes: list[int], length: int, fuzz: float
) -> tuple[Floats, float]:
    """The same as ``_inverse`` by transforms of the distributions of the steps, which are many.

    Every output of a transform is off by at most 8 L units of the sum of its inputs, here one.
    Where factors are off by e, their product is by at most prod (|phi| + e) - prod |phi|.
    """
    unit = roundoff(8.0 * math.log2(length))
    off = unit + roundoff(8.0) + fuzz
    log, more, turn = (np.zeros(length // 2 + 1) for _ in range(3))
    for part, law, mode in zip(parts, laws, modes, strict=True):
        places = np.zeros(length)
        np.add.at(places, (part.at - mode) % length, law)
        phi = np.fft.rfft(places)
        size = np.maximum(np.abs(phi), 1e-300)
        log += part.count * np.log(size)
        more += part.count * np.log1p(off / size)
        turn += part.count * np.angle(phi)
    with np.errstate(under="ignore"):
        size = np.exp(log)
        given = np.where(more < 1.0, size * np.expm1(np.minimum(more, 1.0)), np.exp(log + more))
        result = np.fft.irfft(size * (np.cos(turn) + 1j * np.sin(turn)), length)
    # Logarithms and angles are good to a few units of the count.
    given = given + size * (unit + roundoff(8.0) * (1.0 + np.abs(log) + np.abs(turn)))
    return result, 2.0 / length * float(given.sum()) * (1.0 + 1e-9)


# Bounds on delta(t) of many steps on one lattice, from the few angles that matter.
#
# The transform of a sum of many steps is tiny except near angle 0. With n angles the tilted law is
# a sum of n waves. The tail of delta(t) over a wave is the difference of two geometric series, so
# that nothing is enumerated. Elsewhere, |phi| on a coarse grid of angles bounds |phi| between
# them, since its slope is at most the mean distance of a step from any point.

#: Number of coarse angles.
_COARSE = 1 << 16
#: Logarithm of a transform that is omitted.
_OMITTED = -60.0
#: Maximum number of waves, and of products of waves and masses.
_WAVES, _PRODUCTS = 1 << 12, 1 << 23
#: Mass of a step that is not transformed.
_NEGLIGIBLE = 1e-30


@dataclass(frozen=True, eq=False)
class Waves:
    """delta(t) as a sum over waves.

    The mass of the loss offset + h g is e^(log_total - s h g) times the sum of the waves at g.
    """

    up: bool
    s: float
    h: float
    offset: np.longdouble
    low: int
    high: int
    centre: int
    length: int
    #: Coefficients of the waves, of frequencies 0, 1, ..., and bounds on their errors.
    powers: NDArray[np.complex128]
    errors: Floats
    log_total: np.longdouble
    log_error: float
    outside: float
    moved: float

    def value(self, t: float) -> float:
        """Bound delta(t)."""
        sign = 1.0 if self.up else -1.0
        slack = self.moved + 4.0 * FINE * (abs(t) + abs(float(self.offset)))
        level = np.longdouble(t) - self.offset - sign * np.longdouble(slack)
        h = np.longdouble(self.h)
        first = max(self.low, math.floor(level / h) + 1)
        total = sign * (self.outside / (1.0 + self.s) + _UNDERFLOW)
        if first <= self.high:
            x = max(float(first * h - level), 0.0)
            turns = np.exp(2j * np.pi * self._part(self.centre - first))
            (small, most), (large, other) = (self._tail(self.s + a, x, first) for a in (0.0, 1.0))
            both = small - large
            off = roundoff(64.0 + 8.0 * (1.0 + self.s) * self.h * (self.high - first + 1))
            error = off * float((np.abs(self.powers) * (most + other)).sum())
            error += float((self.errors * (np.abs(both) + off * (most + other))).sum())
            error += math.exp(_OMITTED) * (float(both[0].real) + off * float(most[0]))
            total += float((self.powers * turns * both).real.sum()) + sign * 1.001 * error
        if total <= 0.0:
            return 0.0
        exponent = self.log_total - np.longdouble(self.s) * level
        error = self.log_error + self.s * slack
        error += FINE * (abs(float(self.log_total)) + abs(self.s * float(level)) + 8.0)
        return rounded(exponent + np.log(np.longdouble(total)), error, self.up)

    def _part(self, multiple: int) -> Floats:
        """Return what a multiple of every frequency leaves of a period, as a part of it."""
        around = (multiple % self.length) * np.arange(len(self.powers)) % self.length
        return np.where(around > self.length // 2, around - self.length, around) / self.length

    def _tail(self, a: float, x: float, first: int) -> tuple[NDArray[np.complex128], Floats]:
        """Sum e^(-a (x + h j)) times the wave over j = 0, 1, ... up to ``high``; and its size.

        The size bounds the sum, and its relative error is a few units and those of the exponent.
        """
        number, turn = self.high - first + 1, 2j * np.pi
        with np.errstate(invalid="ignore", divide="ignore", under="ignore"):
            start = np.expm1(-a * self.h - turn * self._part(1))
            sums = np.expm1(-a * self.h * number - turn * self._part(number)) / start
            sums[start == 0.0] = number
            size = np.minimum(2.0 / np.abs(start), float(number))
            return math.exp(-a * x) * sums, math.exp(-a * x) * size


class _Recent:
    """The last waves: the lower and the upper bound of the same losses share them."""

    def __init__(self) -> None:
        self._last: tuple[list[tuple[object, ...]], Waves, Releases] | None = None

    def waves(self, releases: Releases, s: float, moved: float, error: float) -> Waves:
        """Return an upper bound for steps on one lattice."""
        key: list[tuple[object, ...]] = [(s, moved, error)]
        key += [(id(m.losses), id(m.logs), m.step, k) for m, k in releases]
        last = self._last
        if last is None or last[0] != key:
            parts = [Steps(m.multiples, m.logs, k) for m, k in releases]
            made = waves(parts, releases[0][0].step, s, moved, error, True)
            last = self._last = key, made, releases  # kept, so that identities stay theirs
        return last[1]


_RECENT = _Recent()


def waves(parts: list[Steps], h: float, s: float, moved: float, error: float, up: bool) -> Waves:
    """Return a bound for steps on one lattice; TooMuchWork if many angles matter."""
    offset = sum(part.count * int(part.at[0]) for part in parts)
    stride = math.gcd(*(int(np.gcd.reduce(part.at - part.at[0])) for part in parts)) or 1
    stride &= -stride  # a power of two, so that multiples of h are exact
    parts = [Steps((part.at - part.at[0]) // stride, part.logs, part.count) for part in parts]
    shift, h = np.longdouble(offset) * np.longdouble(h), stride * h
    tilt = np.longdouble(s) * np.longdouble(h)
    laws = [part.tilted(tilt) for part in parts]
    low, high, outside = _window(parts, laws, tilt)
    length = 1 << max(1, (high - low).bit_length())
    if length <= _COARSE:
        raise TooMuchWork
    fuzz = max(part.fuzz(tilt) for part in parts)
    modes = [int(part.at[law.argmax()]) for part, law in zip(parts, laws, strict=True)]
    least = np.zeros(_COARSE // 2 + 1)
    for part, law, mode in zip(parts, laws, modes, strict=True):
        places = np.bincount((part.at - mode) % _COARSE, law, _COARSE)
        mean = mode + float((law * (part.at - mode)).sum())
        slope = float((law * np.abs(part.at - mean)).sum()) * (1.0 + 1e-6)
        size = np.abs(np.fft.rfft(places)) + slope * np.pi / _COARSE
        size += roundoff(8.0 * math.log2(_COARSE) + 8.0) + fuzz
        least += part.count * np.log(np.minimum(size, 2.0))
    matter = int(np.flatnonzero(least > _OMITTED - 1.0)[-1])
    number = (matter + 1) * (length // _COARSE)
    if number > _WAVES or number * sum(int((law > _NEGLIGIBLE).sum()) for law in laws) > _PRODUCTS:
        raise TooMuchWork
    log, more, turn = (np.zeros(number) for _ in range(3))
    off = roundoff(64.0) + fuzz + _NEGLIGIBLE * max(len(law) for law in laws)
    for part, law, mode in zip(parts, laws, modes, strict=True):
        keep = law > _NEGLIGIBLE
        sums = np.empty((2, number))
        kernels.wave_sums(part.at[keep] - mode, law[keep], length, sums)
        phi = sums[0] + 1j * sums[1]
        size = np.maximum(np.abs(phi), 1e-300)
        log += part.count * np.log(size)
        more += part.count * np.log1p(off / size)
        turn += part.count * np.angle(phi)
    with np.errstate(under="ignore", over="ignore"):
        size = np.exp(log)
        given = np.where(more < 1.0, size * np.expm1(np.minimum(more, 1.0)), np.exp(log + more))
    # Logarithms and angles are good to a few units of the count.
    given = given + size * roundoff(8.0) * (2.0 + np.abs(log) + np.abs(turn))
    scale = np.where(np.arange(number) == 0, 1.0, 2.0) / length
    log_total = sum((part.count * part.log_total(tilt) for part in parts), np.longdouble(0.0))
    log_error = sum(part.count * part.fuzz(tilt) for part in parts) + FINE * abs(float(log_total))
    return Waves(
        up,
        s,
        h,
        shift,
        low,
        high,
        sum(part.count * mode for part, mode in zip(parts, modes, strict=True)),
        length,
        scale * size * np.exp(1j * turn),
        scale * given * (1.0 + 1e-9),
        log_total,
        log_error + error,
        outside,
        moved,
    )


# Bounds on delta(t) of many steps from enumerated losses.


#: Maximum number of enumerated sums of losses.
_LISTED = 1 << 15
#: The same if steps are added one by one.
_ONE_BY_ONE = 1 << 13
#: Maximum number of equal steps whose sums are enumerated at once: extended precision has room for
#: its factorial, about 2^3876, and doubles have not.
_AT_ONCE = 512 if np.finfo(np.longdouble).maxexp > 1 << 13 else 1
#: Maximum number of sums of losses that are looked up in the table of another part.
_SHIFTS = 1 << 21
#: What underflow of a term, and of the few numbers that it is made of, can take away or add.
_UNDERFLOW = 2.0**-1070
#: Smallest mass of a product of masses in an upper bound.
TINY = 1e-300


class Bound(Protocol):
    """One side of delta(t)."""

    def value(self, t: float) -> float:
        """Return the bound at t."""


@dataclass(frozen=True, eq=False)
class Listed:
    """delta(t) as a sum over enumerated losses: shifts plus a table, both with tilted masses."""

    up: bool
    s: float
    shifts: Floats
    weights: Floats
    losses: Floats
    rests: Floats
    both: Floats
    above: Floats
    log_total: np.longdouble
    error: float
    outside: float
    moved: float
    relative: float

    def value(self, t: float) -> float:
        """Bound delta(t): losses are off by a few units, which moving t makes up for."""
        sign = 1.0 if self.up else -1.0
        slack = self.moved + self.relative * abs(t)
        at, rest = _both_parts(t, -sign * slack)
        lists = self.shifts, self.weights, self.losses, self.rests, self.both, self.above
        total = kernels.tail_excess(*lists, self.s, at, rest)
        # e^(-s x) (1 - e^-x) is at most 1 / (1 + s), so what is outside counts no more than that.
        # Far from the middle of a tilted law terms underflow, each by less than the least double.
        lost = _UNDERFLOW * (len(self.shifts) + len(self.losses))
        total += sign * (self.outside / (1.0 + self.s) + lost)
        if total <= 0.0:
            return 0.0
        exponent = self.log_total - np.longdouble(self.s) * np.longdouble(at)
        error = self.error + self.s * slack
        error += FINE * (abs(float(self.log_total)) + abs(self.s * at) + 8.0)
        return rounded(exponent + np.log(np.longdouble(total)), error, self.up)


def _both_parts(first: float, second: float) -> tuple[float, float]:
    """Return a sum and what rounding took from it, which together are exact (Knuth's two-sum)."""
    total = first + second
    part = total - first
    return total, (first - (total - part)) + (second - part)


def rounded(log: np.longdouble, error: float, up: bool) -> float:
    """Return the probability e^log, rounded up or down by at least the error of log."""
    sign = 1.0 if up else -1.0
    moved = log + np.longdouble(sign * (error + 4.0 * FINE * (1.0 + abs(float(log)))))
    result = float(np.exp(np.minimum(moved, np.longdouble(0.0))))
    return min(math.nextafter(result, math.inf), 1.0) if up else math.nextafter(result, 0.0)


@dataclass(frozen=True, eq=False)
class _Part:
    """Tilted masses of some losses, rising; a loss is losses[j] + rests[j]."""

    losses: Floats
    rests: Floats
    masses: Floats
    #: Relative error of a loss.
    off: float = 0.0

    @property
    def size(self) -> float:
        """Largest absolute loss."""
        return float(max(-self.losses[0], self.losses[-1]))


class Lattice:
    """Engine that enumerates all sums of losses; sums on one lattice by a Fourier transform."""

    name = "lattice"

    def applies(self, parts: Composition) -> bool:
        """Whether all losses are discrete, and one bound is needed."""
        return not parts.pairs and parts.up is not None

    def prepare(self, parts: Composition, t: float, s: float) -> Prepared:
        """Enumerate the sums, tilted by s."""
        up = bool(parts.up)
        return OneSided(listed(parts.finite, s, up), parts.shift, up)


LATTICE = Lattice()


@dataclass(frozen=True)
class OneSided:
    """A bound for losses that are counted from a shift, and may be off.

    It is not asked for beyond a ``top``, where it says nothing but that delta falls.
    """

    bound: Bound
    shift: float
    up: bool
    off: float = 0.0
    top: float = math.inf

    def bounds(self, t: float) -> Bounds:
        """Bound delta(t) from one side."""
        if t > self.top:
            if not self.up:
                return 0.0, 1.0
            t = self.top
        slack = self.off + (
            roundoff(4.0) * (abs(t) + abs(self.shift)) if self.shift != 0.0 else 0.0
        )
        x = t - self.shift
        return (0.0, self.bound.value(x - slack)) if self.up else (self.bound.value(x + slack), 1.0)


def listed(releases: Releases, s: float, up: bool) -> Bound:
    """Return a bound from all enumerated losses, tilted by s.

    Steps with losses -h, 0, h for the same h form one lattice. A Fourier transform gives the
    distribution of their sum, whatever their number. Other losses are added one by one.
    """
    lattices: dict[float, list[Steps]] = {}
    parts: list[_Part] = []
    others = [(measure, count) for measure, count in releases if measure.step == 0.0]
    limit = _LISTED if max((k for _, k in others), default=0) <= _AT_ONCE else _ONE_BY_ONE
    if math.prod(_sums(measure, count) for measure, count in others) > limit:
        raise TooMuchWork
    log_total, error, outside, moved = np.longdouble(0.0), 0.0, 0.0, 0.0
    for measure, count in releases:
        error += count * measure.error
        if measure.step > 0.0:
            kind = Steps(measure.multiples, measure.logs, count)
            lattices.setdefault(measure.step, []).append(kind)
            continue
        tilted, log, fuzz = _tilt(measure, s)
        log_total += count * log
        error += count * (fuzz + roundoff(8.0))
        if measure.top > 0.0:
            one = _Part(measure.losses, np.zeros(len(tilted)), tilted)
            if 1 < count <= _AT_ONCE:
                parts.append(_repeated(one, count, up))
                moved += roundoff(4.0) * count * one.size
            else:
                parts += [one] * count
    if 2 ** (len(lattices) - 1) > _SHIFTS:
        raise TooMuchWork
    joined, apart = _fold(parts, up)
    moved += apart + sum(count * measure.off for measure, count in releases)
    for h, kinds in lattices.items():
        if len(lattices) == 1 and not joined and any(part.many for part in kinds):
            with suppress(TooMuchWork):
                steps = [(m, k) for m, k in releases if m.step > 0.0]
                made = _RECENT.waves(steps, s, moved, error)
                return replace(made, up=up, log_total=made.log_total + log_total)
        law = tilted_law(kinds, np.longdouble(s) * np.longdouble(h))
        joined.append(on_lattice(law, h, up))
        log_total += law.log_total
        error, outside = error + law.log_error, outside + law.outside
    if not joined:  # below, what is left of tiny losses is none
        joined = [_Part(np.zeros(1), np.zeros(1), np.ones(1))]
    return table(joined, s, log_total, error, outside, moved, up)


def _sums(measure: DiscreteLosses, count: int) -> int:
    """Number of sums of so many losses, where none coincide, but for some that are too many.

    Of losses that mirror each other as many as there are integer points in an octahedron, of
    others as many as there are ways to choose with repetition.
    """
    losses = measure.losses
    if len(losses) and losses[0] < 0.0:
        kinds = int(np.count_nonzero(losses > 0.0))
        used = range(min(kinds, 9) + 1)
        return sum(2**j * math.comb(kinds, j) * math.comb(count, j) for j in used)
    used = range(1, min(len(losses), 9) + 1)
    return sum(math.comb(len(losses), j) * math.comb(count - 1, j - 1) for j in used)


def _repeated(part: _Part, count: int, up: bool) -> _Part:
    """Add so many independent losses: each sum once, with the number of its orders.

    Extended precision has room for the factorials, and for the powers that they multiply.
    """
    numbers = np.arange(count + 1)
    factorials = np.cumprod(np.maximum(numbers, 1).astype(np.longdouble))
    left, sums, masses = np.array([count]), np.zeros(1, np.longdouble), factorials[-1:]
    *first, last = zip(part.losses, part.masses.astype(np.longdouble), strict=True)
    with np.errstate(under="ignore"):
        for loss, mass in first:
            each = np.repeat(np.arange(len(left)), left + 1)
            starts = np.cumsum(left + 1) - left - 1
            used = np.arange(len(each)) - starts[each]
            sums, masses = (
                sums[each] + used * loss,
                masses[each] * (mass**numbers / factorials)[used],
            )
            left = left[each] - used
        sums, masses = sums + left * last[0], masses * (last[1] ** numbers / factorials)[left]
        losses, joint = sums.astype(np.float64), masses.astype(np.float64)
    order = np.argsort(losses)
    joint = np.maximum(joint, TINY) if up else joint
    return _Part(losses[order], np.zeros(len(losses)), joint[order])


def _tilt(measure: DiscreteLosses, s: float) -> tuple[Floats, np.longdouble, float]:
    """Tilted masses, the log of their total before it was divided out, and their relative error."""
    logs: Longs = measure.logs + np.longdouble(s) * measure.losses
    most = logs.max()
    log = np.longdouble(most + np.log(np.exp(logs - most).sum()))
    fuzz = FINE * (8.0 + len(logs) + float(np.abs(logs).max()) + s * measure.top)
    return np.exp(logs - log).astype(np.float64), log, fuzz


def on_lattice(law: Tilted, h: float, up: bool) -> _Part:
    """Losses are multiples of h as the sum of two doubles: exactly, if they are not too many."""
    multiples = np.arange(law.start, law.start + len(law.y))
    exact = multiples.astype(np.longdouble) * np.longdouble(h)
    losses = exact.astype(np.float64)
    masses = law.y + law.error if up else np.maximum(law.y - law.error, 0.0)
    off = FINE if np.abs(multiples).max(initial=0) > _EXACT else 0.0
    return _Part(losses, (exact - losses).astype(np.float64), masses, off)


#: Multiples of a double that a long double holds exactly.
_EXACT = 2 ** (np.finfo(np.longdouble).nmant - np.finfo(np.float64).nmant - 1)
#: Sums of losses closer than this, relative to the largest, are joined.
_TOLERANCE = 2.0**-48


def _fold(parts: list[_Part], up: bool) -> tuple[list[_Part], float]:
    """Add independent losses, joining sums that differ by rounding only, and how far any moved."""
    moved = 0.0
    while len(parts) > 1:
        first, second, *parts = parts
        losses = np.add.outer(first.losses, second.losses).reshape(-1)
        masses = np.multiply.outer(first.masses, second.masses).reshape(-1)
        order = np.argsort(losses, kind="stable")
        losses, masses = losses[order], masses[order]
        near = _TOLERANCE * max(losses[-1], -losses[0])
        apart = np.diff(losses) > near
        starts = np.concatenate([[0], np.flatnonzero(apart) + 1])
        group = np.concatenate([[0], np.cumsum(apart)])
        moved += float((losses - losses[starts][group]).max()) + near
        masses = np.add.reduceat(masses, starts)
        masses = np.maximum(masses, TINY) if up else masses
        parts = [_Part(losses[starts], np.zeros(len(starts)), masses), *parts]
    return parts, moved


def table(
    parts: list[_Part],
    s: float,
    log_total: np.longdouble,
    error: float,
    outside: float,
    moved: float,
    up: bool,
) -> Listed:
    """Put the longest part into a table, and list the sums of all others."""
    *others, longest = sorted(parts, key=lambda part: len(part.losses))
    if math.prod(len(part.losses) for part in others) > _SHIFTS:
        raise TooMuchWork
    if not all(len(part.losses) for part in parts):  # all masses are less than any double
        raise TooMuchWork
    shifts, weights = np.zeros(1), np.ones(1)
    for part in others:
        shifts = np.add.outer(shifts, part.losses).reshape(-1)
        weights = np.multiply.outer(weights, part.masses).reshape(-1)
    order = np.argsort(shifts)
    both, above = np.empty(len(longest.losses)), np.empty(len(longest.losses))
    kernels.tail_tables(longest.losses, longest.rests, longest.masses, s, both, above)
    if others:
        moved += (roundoff(4.0) * len(others) + 2.0 * FINE) * sum(part.size for part in parts)
    # A loss of one part alone is off relative to itself: to t where it is next to t, and elsewhere
    # by less than the error of as many steps as the table has.
    spread = float(longest.losses[-1] - longest.losses[0])
    error += roundoff(8.0 * len(both) + 4.0 * len(shifts) ** 0.5 + 32.0 + 4.0 * s * spread)
    error += roundoff(len(shifts))
    return Listed(
        up,
        s,
        shifts[order],
        weights[order],
        longest.losses,
        longest.rests,
        both,
        above,
        log_total,
        error,
        outside,
        moved,
        roundoff(4.0) if others else 2.0 * longest.off,
    )
