"""The composed losses of many steps, to which one more step is added at the cost of one.

On a grid of losses the distribution of a sum is the inverse transform of a product, so one more
step multiplies the transform by its own. The number of grid points is fixed. If the window of the
sum outgrows them, the distribution itself is moved to a grid of twice the spacing: a loss between
two grid points is split between them, which can only raise delta (``engines/grid.py``). No earlier
step is needed again. The cost of one more step therefore does not depend on the steps before it.

All bounds are proved. The transform has an error at every angle; what coarser grids did to it is a
bound on the error of every mass, which convolution with a distribution does not raise. Losses are
tilted by e^(s loss) only if delta is so small that the rounding of a transform would matter. Bounds
from a tilt hold everywhere; a new tilt, which needs all steps again, is asked for only if the
errors become a visible part of delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import add
from typing import NamedTuple

import numpy as np

from fastpriv._core.rounding import lowered, raised, roundoff
from fastpriv._core.search import crossing
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.composition import discrete_tilt_for
from fastpriv.accounting.profile.discrete import (
    FINE,
    DiscreteLosses,
    Releases,
    discrete_cumulant,
)
from fastpriv.accounting.profile.engines.grid import grid_steps
from fastpriv.accounting.profile.engines.lattice import (
    OUTSIDE,
    Listed,
    Steps,
    Tilted,
    characteristic_logs,
    on_lattice,
    placed,
    table,
)
from fastpriv.accounting.profile.losses import Complexes

#: Points of the transform.
LENGTH = 1 << 16
#: The window takes this share of the points at first; later it grows to all of them.
_SHARE = 0.5
#: Exponents at which Chernoff's bounds on the window are taken, in units of the first best one.
_TURNS = 4.0 * 0.5 ** np.arange(14)
#: Shares of the best tilt that are tried in turn. The best tilt falls with every step, so the
#: smallest one that suffices holds for longest: for ever, if it is 0.
_TILTS = (0.0, 0.0625, 0.125, 0.25, 0.5, 0.85)
#: Errors of a first composition may be this share of delta.
_HARDLY_VISIBLE = 1e-3
#: Errors above this share of delta ask for another tilt.
_VISIBLE = 0.02
#: Steps that are kept alone, each with its transform of 0.8 MB.
_SINGLES = 8
#: Steps of at most this many losses are summed at every angle, which is more accurate.
_FEW_LOSSES = 64
#: Error of a transform of 2^L points, in units of L times the sum of its inputs; see
#: ``engines/lattice.py``.
_FFT_ULPS = 8.0


class Amounts(NamedTuple):
    """Numbers that add up over steps.

    Attributes
    ----------
    log_error : float
        Error of the log-moment.
    mass_error : float
        Relative error of the masses.
    moved : float
        How far losses may have moved.
    top : float
        Largest loss.
    certain : float
        Logarithm of the probability that no loss is infinite.
    steps : float
        Number of steps.
    lost : float
        Tilted probability that was lost outside of windows.
    """

    log_error: float = 0.0
    mass_error: float = 0.0
    moved: float = 0.0
    top: float = 0.0
    certain: float = 0.0
    steps: float = 0.0
    lost: float = 0.0


@dataclass(frozen=True, eq=False)
class Running:
    """The tilted distribution of the summed losses of some steps, in one direction.

    Attributes
    ----------
    s, h : float
        The tilt and the spacing of the grid.
    transform : complex array of length LENGTH/2 + 1
        Transform of the masses; indices are relative to ``centre``.
    error : ndarray
        Bound on the error of each of its values.
    off : float
        Bound on the error of every mass, from coarser grids.
    turns : ndarray
        Exponents of Chernoff's bounds, per nat.
    chernoff : ndarray of shape (2, turns)
        Upper bounds on the logarithms of the tilted moments at plus and minus the turns.
    reach : tuple of float
        Sums of the smallest and of the largest losses, in nats.
    centre : int
        Sum of the most likely multiples of ``h``.
    log_total : longdouble
        Log-moment at the tilt.
    amounts : Amounts
        Sums over the steps.
    """

    s: float
    h: float
    transform: Complexes
    error: Floats
    off: float
    turns: Floats
    chernoff: Floats
    reach: tuple[float, float]
    centre: int
    log_total: np.longdouble
    amounts: Amounts

    @classmethod
    def of(cls, releases: Releases, delta: float) -> Running | None:
        """Compose steps with a tilt for this delta; None if no grid suits them.

        That is so if some loss is infinite too often, or all losses are zero.
        """
        if not all(composable(measure) for measure, _ in releases):
            return None
        hidden = _infinite(math.fsum(k * math.log1p(-m.infinite) for m, k in releases))
        if not 0.0 <= hidden < delta:
            return None
        best = discrete_tilt_for(releases, max(delta - hidden, 0.1 * delta))
        variance = discrete_cumulant(releases, best)[2]
        if best == 0.0 or variance == 0.0:
            return None
        known: Running | None = None
        for share in _TILTS:
            result = cls._tilted(releases, share * best)
            level = None if result is None else result.epsilon(delta)
            if result is not None and level is not None:
                known = result
                if result.visible(delta, level) <= _HARDLY_VISIBLE:
                    break
        return known

    @classmethod
    def _tilted(cls, releases: Releases, s: float) -> Running | None:
        """Compose steps with a tilt; None if no grid suits them."""
        variance = discrete_cumulant(releases, s)[2]
        if not 0.0 < variance < math.inf:
            return None
        turns: Floats = np.asarray(math.sqrt(2.0 * OUTSIDE / variance) * _TURNS, np.float64)
        logs = np.zeros((2, len(turns)))
        for measure, k in releases:
            logs += k * _log_moments(measure.logs.astype(np.float64), measure.losses, s, turns)
        reach = [math.fsum(k * float(m.losses[end]) for m, k in releases) for end in (0, -1)]
        low, high = _window(logs, turns, (reach[0], reach[1]))
        h = (high - low) / (_SHARE * LENGTH)
        if not 0.0 < h < 1.0:
            return None
        result = cls(
            s, h, np.ones(LENGTH // 2 + 1, np.complex128), np.zeros(LENGTH // 2 + 1), 0.0, turns,
            np.zeros_like(logs), (0.0, 0.0), 0, np.longdouble(0.0), Amounts(),
        )  # fmt: skip
        return result.plus(releases)

    @property
    def window(self) -> tuple[int, int]:
        """Multiples of ``h`` outside of which the tilted sum has probability 2 e^-OUTSIDE."""
        low, high = _window(self.chernoff, self.turns, self.reach)
        # One more point on either side outweighs the rounding of these quotients.
        return math.floor(low / self.h) - 1, math.ceil(high / self.h) + 1

    @property
    def width(self) -> int:
        """Number of points of the window."""
        low, high = self.window
        return high - low + 1

    def plus(self, releases: Releases) -> Running:
        """Return the composition with more steps: one transform for each kind of them."""
        result = self
        for measure, k in releases:
            longer = result._with(measure, k)
            while longer.width >= LENGTH:  # its masses would overlap
                result = result._coarser()
                longer = result._with(measure, k)
            result = longer
        return result

    def _with(self, measure: DiscreteLosses, k: int) -> Running:
        """Return the composition with k more steps of one kind, on the same grid."""
        one = _single(measure, k, self.s, self.h, tuple(self.turns.tolist()))
        size, sizes = np.abs(self.transform), np.abs(one.transform)
        log_total = self.log_total + one.log_total
        amounts = Amounts(*map(add, self.amounts, one.amounts))
        amounts = amounts._replace(log_error=amounts.log_error + FINE * abs(float(log_total)))
        return replace(
            self,
            transform=self.transform * one.transform,
            error=self.error * (sizes + one.error) + size * (one.error + roundoff(4.0) * sizes),
            chernoff=self.chernoff + one.chernoff,
            reach=(self.reach[0] + one.reach[0], self.reach[1] + one.reach[1]),
            centre=self.centre + one.centre,
            log_total=log_total,
            amounts=amounts,
        )

    @cached_property
    def _masses(self) -> tuple[int, Floats, float]:
        """The first multiple of the window, the masses, and a bound on their errors."""
        low, high = self.window
        y = np.fft.irfft(self.transform, LENGTH)
        unit = roundoff(_FFT_ULPS * math.log2(LENGTH))
        errors = self.error + unit * np.abs(self.transform)
        off = 2.0 / LENGTH * float(errors.sum()) * (1.0 + 1e-9)
        return low, y[placed(low, high, self.centre, LENGTH)], off + self.off

    def _coarser(self) -> Running:
        """Move the losses to a grid of twice the spacing, for an upper bound.

        The share a of an odd multiple g goes up and the rest down, so that its mass and the mean of
        e^-loss stay the same. Tilted masses change by e^(sh) and e^(-sh).
        """
        start, masses, off = self._masses
        masses = np.maximum(masses, 0.0)
        if start % 2:
            start, masses = start - 1, np.concatenate([[0.0], masses])
        if len(masses) % 2 == 0:
            masses = np.concatenate([masses, [0.0]])
        up = math.expm1(-self.h) / math.expm1(-2.0 * self.h)
        sh = self.s * self.h
        even, odd = masses[::2].copy(), masses[1::2]
        even[1:] += up * math.exp(sh) * odd
        even[:-1] += (1.0 - up) * math.exp(-sh) * odd
        total = float(even.sum())
        even /= total
        most = 1.0 + up * math.exp(sh) + (1.0 - up) * math.exp(-sh)
        first, centre = start // 2, start // 2 + int(even.argmax())
        places = np.zeros(LENGTH)
        places[(first - centre + np.arange(len(even))) % LENGTH] = even
        unit = roundoff(_FFT_ULPS * math.log2(LENGTH) + 8.0)
        lost = self.amounts.lost + 2.0 * math.exp(-OUTSIDE)
        amounts = self.amounts._replace(
            log_error=self.amounts.log_error + roundoff(len(even)),
            mass_error=self.amounts.mass_error + roundoff(16.0),
            lost=lost * math.exp(2.0 * sh) * (1.0 + 1e-9),
        )
        return replace(
            self,
            h=2.0 * self.h,
            transform=np.fft.rfft(places),
            error=np.full(LENGTH // 2 + 1, unit),
            off=raised(most * off / total, 16.0),
            chernoff=self.chernoff + 2.0 * sh + self.turns * self.h + roundoff(16.0),
            reach=(self.reach[0] - self.h, self.reach[1] + self.h),
            centre=centre,
            log_total=self.log_total + np.log(np.longdouble(total)),
            amounts=amounts,
        )

    def epsilon(self, delta: float) -> float | None:
        """Bound the smallest level at a delta from above; None if infinite losses exceed delta."""
        fuzz, error, moved, top, certain, count, lost = self.amounts
        hidden = raised(_infinite(certain), 8.0 * (1.0 + count))
        if hidden >= delta:
            return None
        top = max(raised(top, 4.0 * (1.0 + count)) + moved, 0.0)
        low, masses, off = self._masses
        # Levels are not negative, so only losses above 0 count, and a few that may have moved.
        first = min(max(-low - 2 - math.ceil(moved / self.h), 0), len(masses) - 1)
        low, masses = low + first, masses[first:]
        outside = lost + 2.0 * math.exp(-OUTSIDE)
        law = Tilted(low, masses, off, self.log_total, fuzz, outside)
        part = on_lattice(law, self.h, True)
        error = raised(error + fuzz, 1.0 + count)
        bound = table([part], self.s, self.log_total, error, outside, moved, True)
        middle = low * self.h + self.h * float(masses.argmax())
        return _crossed(bound, hidden, delta, min(max(middle, 0.0), top), top)

    def visible(self, delta: float, level: float) -> float:
        """Return about which share of delta, at its level, is the error of the masses."""
        low, masses, off = self._masses
        above = max(low + len(masses) - level / self.h, 1.0)
        sh = self.s * self.h
        points = min(above, 1.0 / -math.expm1(-sh)) if sh > 0.0 else above
        exponent = float(self.log_total) - self.s * level
        return off * points * math.exp(min(exponent, 700.0)) / delta

    def is_close(self, delta: float, level: float) -> bool:
        """Whether the errors are no visible part of delta, so that another tilt is not needed."""
        return self.visible(delta, level) <= _VISIBLE


def composable(measure: DiscreteLosses) -> bool:
    """Whether a step can be added to a running composition: it has finite losses, as they are."""
    return len(measure.losses) > 0 and measure.infinite < 1.0 and measure.shift == 0.0


@lru_cache(maxsize=_SINGLES)
def _single(
    measure: DiscreteLosses, k: int, s: float, h: float, turns: tuple[float, ...]
) -> Running:
    """Compose k equal steps alone, with a tilt and a spacing.

    The last ones are kept: a spend that somebody else overtakes is added once more, to a newer
    composition.
    """
    steps = grid_steps(measure, k, h)
    tilt = np.longdouble(s) * np.longdouble(h)
    tilted = steps.logs + tilt * steps.at
    most = tilted.max()
    log = np.longdouble(most + np.log(np.exp(tilted - most).sum()))
    masses = np.exp(tilted - log).astype(np.float64)
    size = float(np.abs(steps.logs).max()) + float(tilt) * int(np.abs(steps.at).max())
    fuzz = FINE * (8.0 + len(steps.at) + size)
    mode = int(steps.at[masses.argmax()])
    transform, error = _transformed(steps, masses, tilt, mode)
    doubles = steps.logs.astype(np.float64) + float(tilt) * steps.at - float(log)
    losses: Floats = np.asarray(steps.at * h, np.float64)
    exponents = np.array(turns)
    with np.errstate(over="ignore"):
        moments = k * _log_moments(doubles, losses, 0.0, exponents)
        # Logarithms of doubles are rounded relative to the largest exponent.
        far = float(np.abs(steps.at).max()) * h
        moments += roundoff(k * 8.0) * (4.0 + size + exponents * far)
    amounts = Amounts(
        log_error=float(k * fuzz),
        mass_error=float(k * (measure.error + roundoff(2.0) + fuzz)),
        moved=float(k * (roundoff(max(measure.top, 0.0)) + measure.off)),
        top=raised(k * measure.top, 2.0),
        certain=lowered(k * math.log1p(-measure.infinite), 2.0),
        steps=float(k),
    )
    return Running(
        s, h, transform, error, 0.0, exponents, moments,
        (k * (float(steps.at[0]) * h), k * (float(steps.at[-1]) * h)), k * mode, k * log,
        amounts,
    )  # fmt: skip


def _transformed(
    steps: Steps, masses: Floats, tilt: np.longdouble, mode: int
) -> tuple[Complexes, Floats]:
    """Return the transform of the tilted masses to the power of their count, and its errors."""
    k = steps.count
    if len(steps.at) <= _FEW_LOSSES:
        real, turn, size, relative = characteristic_logs([steps], tilt, LENGTH)
        with np.errstate(under="ignore"):
            value = np.exp(real) * (np.cos(turn) + 1j * np.sin(turn))
            return value, np.exp(size) * (relative + roundoff(8.0))
    places = np.bincount((steps.at - mode) % LENGTH, weights=masses, minlength=LENGTH)
    value = np.fft.rfft(places)
    off = roundoff(_FFT_ULPS * math.log2(LENGTH) + 8.0)
    if k == 1:
        return value, np.full(len(value), off)
    size = np.maximum(np.abs(value), 1e-300)
    log, turn = k * np.log(size), k * np.angle(value)
    more = k * np.log1p(off / size)
    with np.errstate(under="ignore"):
        power = np.exp(log)
        given = np.where(more < 1.0, power * np.expm1(np.minimum(more, 1.0)), np.exp(log + more))
        given = given + roundoff(power * 8.0) * (1.0 + np.abs(log) + np.abs(turn))
        return power * (np.cos(turn) + 1j * np.sin(turn)), given


def _log_moments(logs: Floats, losses: Floats, s: float, turns: Floats) -> Floats:
    """Return logarithms of the tilted moments at s plus and minus the turns, relative to s."""
    rows = np.concatenate([[s], s + turns, s - turns])
    exponents = np.multiply.outer(rows, losses) + logs
    most = exponents.max(axis=1)
    values = most + np.log(np.exp(np.maximum(exponents - most[:, None], -99.0)).sum(axis=1))
    return np.asarray(values[1:] - values[0]).reshape(2, -1)


def _window(logs: Floats, turns: Floats, reach: tuple[float, float]) -> tuple[float, float]:
    """Return the range outside of which the sum has probability 2 e^-OUTSIDE, in nats."""
    up, down = ((side + OUTSIDE) / turns for side in logs)
    return max(reach[0], -float(down.min())), min(reach[1], float(up.min()))


def _infinite(certain: float) -> float:
    """Return the probability that some loss is infinite, from ln of the probability of none."""
    return -math.expm1(certain)


def _crossed(bound: Listed, hidden: float, delta: float, guess: float, top: float) -> float:
    """Return the level at which ``hidden`` plus a bound on the finite part is at most delta."""

    def above(t: float) -> float:
        return raised(hidden + bound.value(t), 2.0)

    return crossing(above, delta, guess, top, 1e-3 * max(guess, 1e-3 * top))[1]
