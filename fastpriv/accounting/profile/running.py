"""The composed law of many finite releases, to which one more is added at the cost of one.

On a grid of losses the law of a sum is the transform of a product, so its logarithm is a sum over
the releases: one release more adds its own term. What bounds the errors adds up as well
(``engines/lattice.py``). All of it belongs to one tilt and one grid. Bounds from a tilt hold
everywhere and are good near its middle. A new tilt is chosen, and all steps are transformed again,
only if the level asked for has moved away from there: about once for every doubling of the steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fastpriv._core.rounding import ULP, lowered, raised
from fastpriv._core.search import crossing
from fastpriv._core.validation import Floats, Ints
from fastpriv.accounting.profile.composition import discrete_tilt_for
from fastpriv.accounting.profile.discrete import (
    FINE,
    DiscreteLosses,
    Longs,
    Releases,
    discrete_cumulant,
)
from fastpriv.accounting.profile.engines.grid import grid_steps, spacing
from fastpriv.accounting.profile.engines.lattice import (
    OUTSIDE,
    TURNS,
    Listed,
    Tilted,
    characteristic_logs,
    inverted,
    on_lattice,
    placed,
    table,
)

#: The window is this many times as long as the law needs at first: releases widen it.
_ROOM = 2.0
#: By how much the first tilt is smaller than the best one: the best one falls with every release.
_BEFOREHAND = 0.85
#: Most points of a transform.
_LONGEST = 1 << 19
#: Standard deviations from the middle of the tilted law within which a level is sought.
_FAR = 2.0


@dataclass(frozen=True, eq=False)
class Running:
    """The tilted law of some releases, as sums over them.

    Attributes
    ----------
    s, h : float
        The tilt and the spacing of the grid.
    turns : ndarray
        Distances from the tilt, in units of 1/h, at which Chernoff's bounds are taken.
    logs : ndarray of shape (4, length/2 + 1)
        The logarithm of the transform, its bound and its error; see ``characteristic_powers``.
    chernoff : ndarray of longdouble, of shape (2, turns)
        Logarithms of the moments at the tilt plus and minus the turns.
    places : integer array
        Sums of the least, the most and the most likely steps.
    log_total : longdouble
        Log-moment at the tilt.
    amounts : ndarray
        Sums of what is small: the error of the log-moment and of the masses, how far losses may
        have moved, the top loss, the log of the probability that no loss is infinite, the number of
        releases; and of the first three derivatives of the log-moment, from the 0th.
    """

    s: float
    h: float
    turns: Floats
    logs: Floats
    chernoff: Longs
    places: Ints
    log_total: np.longdouble
    amounts: Floats

    @classmethod
    def of(cls, releases: Releases, delta: float) -> Running | None:
        """Compose releases with a tilt for this delta; None where no grid suits them.

        That is so where some loss is infinite too often, or where the level is so close to the
        largest loss that the tilted law is hardly wider than one release.
        """
        if not all(composable(measure) for measure, _ in releases):
            return None
        hidden = _infinite(math.fsum(k * math.log1p(-m.infinite) for m, k in releases))
        if not 0.0 <= hidden < delta:
            return None
        s = _BEFOREHAND * discrete_tilt_for(releases, max(delta - hidden, 0.1 * delta))
        variance = discrete_cumulant(releases, s)[2]
        if s == 0.0 or variance == 0.0:
            return None
        h = spacing(releases, s)
        start = min(math.sqrt(2.0 * OUTSIDE / (_ROOM * variance)) * h, OUTSIDE)
        turns = start * np.concatenate([[math.sqrt(_ROOM)], 0.2 ** np.arange(TURNS - 1.0)])
        empty = cls(
            s,
            h,
            turns,
            np.zeros((4, 2)),
            np.zeros((2, TURNS), np.longdouble),
            np.zeros(3, np.int64),
            np.longdouble(0.0),
            np.zeros(9),
        )
        first = empty._summed(releases)
        low, high, _ = first.window
        length = 1 << (math.ceil(_ROOM * (high - low)) + 1).bit_length()
        if length > _LONGEST:
            return None
        return replace(first, logs=first._transform(releases, length))

    @property
    def tilt(self) -> np.longdouble:
        """The tilt in units of the grid."""
        return np.longdouble(self.s) * np.longdouble(self.h)

    @property
    def length(self) -> int:
        """Number of points of the transform."""
        return 2 * (int(self.logs.shape[1]) - 1)

    @property
    def window(self) -> tuple[int, int, float]:
        """Range outside of which the tilted sum has at most the returned probability."""
        least, most, _ = self.places.tolist()
        up, down = ((c - self.log_total).astype(np.float64) + OUTSIDE for c in self.chernoff)
        # One more point on either side outweighs the rounding of these quotients.
        high = min(most, math.floor(float((up / self.turns).min())) + 1)
        low = max(least, math.ceil(float((-down / self.turns).max())) - 1)
        return low, high, 2.0 * math.exp(-OUTSIDE) if high - low < most - least else 0.0

    def plus(self, releases: Releases) -> Running:
        """Return the law with more releases: one transform for each kind of them."""
        logs = self.logs + self._transform(releases, self.length)
        logs[3] += 2.0 * ULP * (np.abs(logs[0]) + np.abs(logs[1]))  # of these additions
        return replace(self._summed(releases), logs=logs)

    def _transform(self, releases: Releases, length: int) -> Floats:
        steps = [grid_steps(measure, count, self.h) for measure, count in releases]
        return characteristic_logs(steps, self.tilt, length)

    def _summed(self, releases: Releases) -> Running:
        """Add all but the transforms."""
        chernoff, places = self.chernoff.copy(), self.places.copy()
        log_total, amounts = self.log_total, self.amounts.copy()
        for measure, k in releases:
            steps = grid_steps(measure, k, self.h)
            log_total = log_total + k * steps.log_total(self.tilt)
            for row, sign in enumerate((1, -1)):
                chernoff[row] += [k * steps.log_total(self.tilt + sign * t) for t in self.turns]
            places += k * np.array([steps.at.min(), steps.at.max(), steps.mode(self.tilt)])
            amounts += [
                k * steps.fuzz(self.tilt) + FINE * abs(float(log_total)),
                k * (measure.error + 32.0 * FINE),
                k * ULP * measure.top,
                raised(k * measure.top, 2.0),
                lowered(k * math.log1p(-measure.infinite), 2.0),
                k,
                *discrete_cumulant([(measure, k)], self.s),
            ]
        return replace(self, chernoff=chernoff, places=places, log_total=log_total, amounts=amounts)

    def epsilon(self, delta: float) -> float | None:
        """Bound the least level at a delta from above; None where another tilt would do better."""
        low, high, outside = self.window
        if high - low >= self.length:
            return None
        fuzz, error, moved, top, certain, count, _, middle, variance = self.amounts.tolist()
        hidden = raised(_infinite(certain), 8.0 * (1.0 + count))
        if hidden >= delta:
            return None
        top = raised(top, 4.0 * (1.0 + count))
        y, off = inverted(self.logs, self.length)
        inside = placed(low, high, int(self.places[2]), self.length)
        law = Tilted(low, y[inside], off, self.log_total, fuzz, outside)
        part = on_lattice(law, self.h, True)
        error = raised(error + fuzz, 1.0 + count)
        bound = table([part], self.s, self.log_total, error, outside, moved, True)
        result = _crossed(bound, hidden, delta, min(max(middle, 0.0), top), top)
        return result if abs(result - middle) <= _FAR * math.sqrt(variance) else None


def composable(measure: DiscreteLosses) -> bool:
    """Whether a release can be added to a running law: it has finite losses, as they are."""
    return len(measure.losses) > 0 and measure.infinite < 1.0 and measure.shift == 0.0


def _infinite(certain: float) -> float:
    """Probability that some loss is infinite, from the log of the probability that none is."""
    return -math.expm1(certain)


def _crossed(bound: Listed, hidden: float, delta: float, guess: float, top: float) -> float:
    """Return the level at which a bound on the finite part and the infinite one falls to delta."""

    def above(t: float) -> bool:
        return raised(hidden + bound.value(t), 2.0) > delta

    return crossing(above, guess, top, 1e-9 * top)[1]
