"""Kinds of noise, and what is known of the capacity of points behind them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fastpriv._core.clock import Meter
from fastpriv._core.rounding import LEAST, ULP, log_up, lowered, raised, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.searches.cliques import mean_questions
from fastpriv.mechanisms import noise_tables
from fastpriv.mechanisms.amplitude import amplitude_capacity
from fastpriv.mechanisms.noise_tables import Table
from fastpriv.mechanisms.point_search import best_points
from fastpriv.notions.rules import Facts, capacity_bound
from fastpriv.results import Bracket

#: Most entries of a table of output laws.
_TABLE = 1 << 23
#: Change of information by moves of points from which on a table says too little; units of work of
#: a search for each entry of a table.
_MOVED, _SEARCH = 0.1, 1024.0


@dataclass(frozen=True)
class Noise:
    """What is known of a kind of noise of size 1."""

    pair: Callable[[float], Bracket]  # capacity of two points at a distance
    ceiling: Callable[[float, int], float]  # upper bound for points of k directions in a distance
    spread: Callable[[float, int, float], float]  # upper bound for m points on a line, to a gap
    nearby: Callable[[float, float, float], float]  # bound for points that are moved
    moved: Callable[[float, float], float]  # change by moves of points in a range
    few: float  # distance up to which the two outermost points are the best of any number
    gap: float  # distance from which on points are told apart
    entries: Callable[[Floats], float]
    table: Callable[[Floats], Table]


def _gaussian_pair(distance: float) -> Bracket:
    return amplitude_capacity(0.5 * distance, 2.0, 0.0)


def _gaussian_ceiling(distance: float, k: int) -> float:
    """Return k/2 ln(1 + r^2/k), r the radius of a ball around points within a distance (Jung)."""
    square = distance * distance * k / (2.0 * (k + 1.0))
    return raised(0.5 * k * math.log1p(square / k), 16.0) + 4.0 * LEAST  # a square may be lost


def _gaussian_spread(distance: float, m: int, gap: float) -> float:
    """Return the capacity of the best m points within a distance."""
    half = 0.5 * distance
    return best_points(half, m, amplitude_capacity(half, m, gap), gap).upper


def _gaussian_nearby(capacity: float, step: float, most: float) -> float:
    return most  # densities of moved points have no bounded ratio


def _gaussian_moved(error: float, spread: float) -> float:
    """Return how much information changes when points within a spread are moved by an error.

    With Y = f + Z and points that move at a speed v, dI/dt = E v (f - E[f|Y]). The estimate E[f|Y]
    is off by no more than Y is, sqrt(2) in a plane, nor by more than the spread of the points.
    """
    return 1.5 * error * min(1.0, spread + 2.0 * error)


def _laplace_pair(distance: float) -> Bracket:
    value = noise_tables.laplace_pair(distance)
    return Bracket(max(lowered(value, 64.0), 0.0), raised(value, 64.0) + LEAST)


def _laplace_ceiling(distance: float, k: int) -> float:
    """Return psi of the largest log-ratio of densities."""
    bound = capacity_bound(distance, Facts(None))
    return math.inf if bound is None else bound


def _laplace_spread(distance: float, m: int, gap: float) -> float:
    return _laplace_ceiling(distance, 1)


def _laplace_nearby(capacity: float, step: float, most: float) -> float:
    """Return a bound on the capacity of points, each within a step of one with known capacity.

    Densities change by factors of at most e^step. Information is convex in the channel, so that it
    grows from I to at most I' with I' - I <= (e^step - 1) sum p W' |ln(W'/q')|, and by Pinsker's
    inequality the sum is at most I' + sqrt(2 I').
    """
    error = math.expm1(step) * (1.0 + 8.0 * ULP) if step <= 1.0 else math.inf
    for _ in range(8):
        most = min(most, raised(capacity + error * (most + math.sqrt(2.0 * most)), 16.0))
    return most


def _laplace_moved(error: float, spread: float) -> float:
    """Return how much information changes when points within a spread are moved by an error.

    At most (e^error - 1) E |ln(w/q)|, as above. The mean is at most the spread, and at most
    ln m + sqrt(2 ln m), which is below 64 for up to e^50 values.
    """
    return 2.0 * error * min(64.0, spread + 2.0 * error) if error <= 1.0 else math.inf


GAUSSIAN = Noise(
    _gaussian_pair,
    _gaussian_ceiling,
    _gaussian_spread,
    _gaussian_nearby,
    _gaussian_moved,
    2.0,
    noise_tables.GAUSSIAN_GAP,
    noise_tables.gaussian_entries,
    noise_tables.gaussian_table,
)
LAPLACE = Noise(
    _laplace_pair,
    _laplace_ceiling,
    _laplace_spread,
    _laplace_nearby,
    _laplace_moved,
    0.0,
    noise_tables.LAPLACE_GAP,
    noise_tables.laplace_entries,
    noise_tables.laplace_table,
)


def pair_capacity(noise: Noise, distance: float, blur: float) -> Bracket:
    """Return the capacity of two points at a distance that is known up to a relative error."""
    near, far = distance * max(0.0, 1.0 - blur), distance * (1.0 + blur)
    # Two answers tell something, be it less than the least double.
    return Bracket(noise.pair(near).lower, max(noise.pair(far).upper, LEAST))


def largest_capacity(noise: Noise, pair: Bracket, far: float, m: int, directions: int) -> float:
    """Return a bound on the capacity of m points in some directions, the best two being known."""
    return max(
        pair.lower,
        min(
            noise.ceiling(far, min(directions, m - 1)),
            round_up(pair.upper * mean_questions(m)),
            log_up(m),
        ),
    )


def noise_table(
    places: Floats, noise: Noise, error: float, meter: Meter
) -> tuple[Table | None, Ints]:
    """Return the output laws of distinct places, and which one each place is.

    Places are off by up to an error. None where that leaves nothing to say, where the table is too
    large or where there is no time for it.
    """
    answers, numbers = np.unique(places, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    moved = noise.moved(error, float(np.linalg.norm(np.ptp(answers, axis=0))))
    plane = places.shape[1] == 2
    points = answers if plane else noise_tables.closer(answers[:, 0], noise.gap)
    entries = noise_tables.plane_entries(points) if plane else noise.entries(points)
    size = len(points) * entries
    if moved > _MOVED or size > _TABLE or meter.too_late(_SEARCH * size):
        return None, numbers
    table = noise_tables.plane_table(points) if plane else noise.table(points)
    cut = not plane and points[-1] < answers[-1, 0] - answers[0, 0]
    mistake = noise_tables.MISTAKE if cut else 0.0
    return table._replace(error=table.error + moved + mistake), numbers
