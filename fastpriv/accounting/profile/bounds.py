"""Bounds on delta(t) of many releases: exactly where their losses can be listed, else on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.lattice import Steps, Tilted, tilted_law
from fastpriv.accounting.profile.measures import FINE, Longs, Measure, Releases

#: Most sums of losses that are listed one by one.
_LISTED = 1 << 13
#: Most sums of losses that are looked up in the table of another part.
_SHIFTS = 1 << 21
#: What underflow of a term, and of the few numbers that it is made of, can take away or add.
_UNDERFLOW = 2.0**-1070
#: Least mass that a product of masses is taken for in an upper bound.
TINY = 1e-300


class Bound(Protocol):
    """One side of delta(t)."""

    def value(self, t: float) -> float:
        """Return the bound at t."""


class TooMany(Exception):
    """There are more sums of losses than are listed."""


@dataclass(frozen=True, eq=False)
class Listed:
    """delta(t) as a sum over listed losses: shifts + a table, both with tilted masses."""

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
    """Return a chance above or below all whose logarithms are within an error of the given one."""
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


def listed(releases: Releases, s: float, up: bool) -> Listed:
    """Bound from a list of all losses, tilted by s.

    Releases with losses -h, 0, h for the same h are one lattice, whose law comes from a Fourier
    transform whatever their number. The losses of others are added up one by one.
    """
    lattices: dict[float, list[Steps]] = {}
    parts: list[_Part] = []
    if math.prod(_sums(m, k) for m, k in releases if m.step == 0.0) > _LISTED:
        raise TooMany
    log_total, error, outside = np.longdouble(0.0), 0.0, 0.0
    for measure, count in releases:
        error += count * measure.error
        if measure.step > 0.0:
            steps = Steps(measure.multiples, measure.logs, count)
            lattices.setdefault(measure.step, []).append(steps)
            continue
        tilted, log, fuzz = _tilt(measure, s)
        log_total += count * log
        error += count * (fuzz + 8.0 * ULP)
        if measure.top > 0.0:
            parts += [_Part(measure.losses, np.zeros(len(tilted)), tilted)] * count
    if 2 ** (len(lattices) - 1) > _SHIFTS:
        raise TooMany
    joined, moved = _fold(parts, up)
    moved += sum(count * measure.off for measure, count in releases)
    for h, kinds in lattices.items():
        law = tilted_law(kinds, np.longdouble(s) * np.longdouble(h))
        joined.append(on_lattice(law, h, up))
        log_total += law.log_total
        error, outside = error + law.log_error, outside + law.outside
    if not joined:  # below, what is left of tiny losses is none
        joined = [_Part(np.zeros(1), np.zeros(1), np.ones(1))]
    return table(joined, s, log_total, error, outside, moved, up)


def _sums(measure: Measure, count: int) -> int:
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


def _tilt(measure: Measure, s: float) -> tuple[Floats, np.longdouble, float]:
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
        raise TooMany
    if not all(len(part.losses) for part in parts):  # all masses are less than any double
        raise TooMany
    shifts, weights = np.zeros(1), np.ones(1)
    for part in others:
        shifts = np.add.outer(shifts, part.losses).reshape(-1)
        weights = np.multiply.outer(weights, part.masses).reshape(-1)
    order = np.argsort(shifts)
    both, above = np.empty(len(longest.losses)), np.empty(len(longest.losses))
    kernels.tail_tables(longest.losses, longest.rests, longest.masses, s, both, above)
    if others:
        moved += (4.0 * ULP * len(others) + 2.0 * FINE) * sum(part.size for part in parts)
    # A loss of one part alone is off relative to itself: to t where it is next to t, and elsewhere
    # by less than the error of as many steps as the table has.
    spread = float(longest.losses[-1] - longest.losses[0])
    error += (8.0 * len(both) + 4.0 * len(shifts) ** 0.5 + 32.0 + 4.0 * s * spread) * ULP
    error += len(shifts) * ULP
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
        4.0 * ULP if others else 2.0 * longest.off,
    )
