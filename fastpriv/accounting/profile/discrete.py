"""Losses with finitely many values: masses, lattices, merging of equal losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.rounding import directed, lowered, roundoff
from fastpriv._core.validation import Floats, Ints

# Measures on privacy losses: pairs of output distributions, represented by likelihood ratios.
#
# Accounting needs only the measure of a pair (P, Q): the distribution under P of the loss
# l = ln P/Q. delta(t) is the integral of (1 - e^(t-l))_+ over it. Neighbours can be swapped, so the
# envelope over all pairs is the curve of a *symmetric* measure: the mass at -l is e^-l times the
# mass at l.
#
# Bounds. Let the curve of a measure be above the curve of a pair for every real t. It stays above
# if both are composed with any measure, because delta of a composition is the mean of the curve of
# one part under a non-negative measure. For symmetric measures, t >= 0 and a total mass of at least
# one (at most one for lower bounds) suffice. A rounded measure need not come from a pair of
# distributions. More mass, larger losses and a total of at least one give an upper bound; the
# opposite gives a lower bound. For other measures, less mass and smaller losses give a lower bound.


#: Logarithms of masses, in extended precision if the platform has it, because many are added.
Longs = NDArray[np.longdouble]
FINE = max(float(np.finfo(np.longdouble).eps), 2.0**-64)

#: Relative difference up to which gains and lattice steps count as equal.
SAME = 2.0**-46
#: The same for losses, which have larger errors as quotients of differences of sums.
_SAME_LOSS = 2.0**-40
#: Maximum number of lattice steps in the smallest loss.
_PARTS = 12
#: Maximum ratio of the largest to the smallest loss of a lattice.
_MULTIPLE = 64.0


class Step:
    """One kind of private computation, identified by its ``key``."""

    key: tuple[Any, ...]

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same distribution of outputs."""
        return False

    def gaussian_square(self, zcdp: bool) -> tuple[float, float] | None:
        """Return bounds on mu^2 if the step counts as Gaussian noise, in zCDP or otherwise in GDP.

        The lower bound is the limit for large orders. Squares add up. None for other steps.
        """
        return None

    def declared_rho(self) -> float | None:
        """Return rho if only a zCDP level is known of the step; None for other steps."""
        return None

    def replacement(self) -> DiscreteLosses | None:
        """Return losses, rounded down, that a replaced record attains; None if not known."""
        return None


@dataclass(frozen=True, eq=False)
class DiscreteLosses:
    """Measure on finitely many losses, and mass at +infinity.

    Attributes
    ----------
    losses : ndarray
        Increasing losses minus ``shift``, in nats.
    logs : ndarray of longdouble
        Log of the mass of each loss.
    infinite : float
        Mass of infinite losses.
    error : float
        Relative error of the masses in ``logs``.
    step : float
        Lattice step h: all losses are exact multiples of it. 0 if there is no lattice.
    shift : float
        Offset to be added to every loss.
    off : float
        Absolute error of the losses.
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
    ) -> DiscreteLosses:
        """Complete positive losses and their log-masses to a symmetric measure of total one.

        The remaining mass at loss 0 is rounded up or down. If it is negative by rounding, a lower
        bound reduces all masses, because a total above one would grow with every step.
        """
        mirrored = masses - losses
        rest = 1.0 - np.longdouble(infinite) - (np.exp(masses) + np.exp(mirrored)).sum()
        slack = (len(losses) + 8.0) * FINE
        rest += slack if up else -slack
        if rest < 0.0 and not up:
            shrink = np.log1p(-rest)  # ln of the total, which may be two if all losses are tiny
            masses, mirrored = masses - shrink, mirrored - shrink
            infinite *= lowered(float(np.exp(-shrink)), 4.0)
        shown = losses.astype(np.float64)
        parts = [-shown[::-1], shown], [mirrored[::-1], masses]
        if rest > 0.0:
            parts[0].insert(1, np.zeros(1))
            parts[1].insert(1, np.log(np.array([rest], dtype=np.longdouble)))
        both = np.concatenate(parts[0]), np.concatenate(parts[1])
        size = float(np.abs(mirrored).max(initial=0.0))
        return cls(*both, infinite, (16.0 + 4.0 * size) * FINE, step)

    @classmethod
    def response(cls, m: int, epsilon: float, delta: float) -> DiscreteLosses:
        """Return the losses of m-ary response that reveals its input with probability delta.

        The masses are (1 - delta) times a = 1/(1 + (m-1) e^-epsilon) at epsilon, a e^-epsilon at
        -epsilon, and the remainder at 0. The mass at infinity is delta.
        """
        level = np.longdouble(epsilon)
        with np.errstate(divide="ignore"):  # delta = 1 reveals everything
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
        """Largest finite loss minus ``shift``."""
        return float(self.losses[-1]) if len(self.losses) else 0.0

    @cached_property
    def rough_logs(self) -> Floats:
        """The logarithms of the masses as doubles; used only to guide the search."""
        return self.logs.astype(np.float64)

    @property
    def without_infinite(self) -> DiscreteLosses:
        """Return the finite losses only."""
        return replace(self, infinite=0.0)

    @property
    def multiples(self) -> Ints:
        """The losses in units of ``step``."""
        return np.rint(self.losses / self.step).astype(np.int64)


#: Losses of each kind of step, and the number of steps of that kind.
Releases = Sequence[tuple[DiscreteLosses, int]]


def discrete_cumulant(releases: Releases, s: float) -> tuple[float, float, float]:
    """Return ln E e^(s loss) and its first two derivatives; used only to guide the search."""
    value = slope = curve = 0.0
    out = np.empty(3)
    for measure, k in releases:
        kernels.tilted_moments(measure.rough_logs, measure.losses, float(s), out)
        each = out.tolist()
        value, slope, curve = value + k * each[0], slope + k * each[1], curve + k * each[2]
    return value, slope, curve


def merged_below(losses: Longs, masses: Longs) -> tuple[Floats, Longs, float]:
    """Merge losses from 0 up without raising any; return losses, masses and the lattice step."""
    starts = np.flatnonzero(np.diff(losses, prepend=-1.0) > _SAME_LOSS * losses[-1])
    rising = losses[starts].astype(np.float64)
    fine, step = on_lattice(rising[1:], up=False)
    rising[1:] = fine
    return rising, np.add.reduceat(masses, starts), step


def on_lattice(losses: Floats, up: bool) -> tuple[Longs, float]:
    """Replace losses by close multiples of a lattice step; return them and the step, or 0."""
    step = _common_step(losses, up)
    if step == 0.0:
        return losses.astype(np.longdouble), 0.0
    return np.rint(losses / step) * np.longdouble(step), step


def _common_step(losses: Floats, up: bool) -> float:
    """Return the step h whose multiples equal all losses up to rounding, or 0.

    The multiples of h are at least the losses if ``up``, and at most the losses otherwise.
    """
    if not len(losses) or losses[-1] > _MULTIPLE * losses[0]:
        return 0.0
    for parts in range(1, _PARTS + 1):
        multiples = np.rint(losses / (losses[0] / parts))
        steps = losses / multiples
        if np.ptp(steps) <= SAME * steps[0]:
            return directed(float(steps.max() if up else steps.min()), 4.0, up)
    return 0.0


def merged(losses: Floats, masses: Floats, up: bool) -> tuple[Floats, Floats]:
    """Merge losses that differ by rounding only, into the largest or the smallest of them."""
    if not len(losses):
        return losses, masses
    starts = np.concatenate([[0], np.flatnonzero(np.diff(losses) > _SAME_LOSS * losses[1:]) + 1])
    joined = np.maximum if up else np.minimum
    total = directed(np.add.reduceat(masses, starts), 4.0 * len(losses), up)
    return joined.reduceat(losses, starts), total


#: Relative error of distributions, and their absolute error due to underflow.
Error = tuple[float, float]


def pair_measure(first: Floats, second: Floats, error: Error) -> DiscreteLosses:
    """Return the losses of one pair of distributions, rounded down.

    The relative error of the distributions includes their distance from a total of one. The result
    states the errors of its losses and masses. The absolute error due to underflow is added to the
    second distribution and subtracted from the first.
    """
    apart, below = error
    totals = [abs(math.fsum([*law.tolist(), -1.0])) for law in (first, second)]
    if below > 0.0:
        first, second = np.where(first > 4.0 * below, first - below, 0.0), second + below
    apart = 2.5 * apart + 2.0 * sum(totals)
    finite = (first > 0.0) & (second > 0.0)
    p, q = (law[finite].astype(np.longdouble) for law in (first, second))
    lost = math.fsum(first[second == 0.0].tolist()) * (1.0 - 2.0 * apart - roundoff(4.0))
    infinite = min(max(lost, 0.0), 1.0)
    if not len(p):
        return DiscreteLosses(np.zeros(0), np.zeros(0, dtype=np.longdouble), infinite, 0.0)
    logs = np.log(p)
    # Ratios near one are computed from the difference, so that small losses keep their digits.
    near = np.abs(p - q) <= 0.5 * q
    losses = np.where(near, np.log1p(np.where(near, (p - q) / q, 0.0)), logs - np.log(q))
    sizes = np.where(near, np.abs(losses), np.abs(logs) + np.abs(np.log(q)))
    shift = losses.min()
    order = np.argsort(losses)
    result, masses, step = merged_below((losses - shift)[order], p[order])
    size = float(np.abs(np.log(masses)).max())
    fuzz = apart + (16.0 + len(p) + 4.0 * size) * FINE
    off = 2.0 * apart + 8.0 * FINE * float(sizes.max())
    off += roundoff(2.0) * (abs(float(shift)) + float(result[-1]))
    return DiscreteLosses(result, np.log(masses), infinite, fuzz, step, float(shift), off)
