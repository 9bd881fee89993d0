"""Kinds of noise: the capacity of points behind them, and their output distributions as tables.

A table replaces a density by its values at the nodes of a quadrature rule, times the weights of the
rule. The divergence D(w || q) of one point's distribution from a mixture q of all of them is an
integral. A table comes with a bound on the error of the rule that holds for every point and every
mixture. The capacity of some points is the minimum over mixtures q of the largest divergence, so
that the capacity of rows of the table is off by at most that bound.

Normal noise: the trapezoidal rule, with the bound of ``fastpriv.mechanisms.amplitude``. In the
plane the rule is applied to one coordinate after the other. Along each, the integrand has the same
bound on the same strip, times the density of the other coordinate. The sum of that density over a
grid is below 2, and so is the sum of the density times |y - x|. So four times the bound holds for
either step.

Laplace noise: beyond the outermost points all densities keep their ratios, so that each tail is one
output. Between neighbouring points w = c e^(-+y) and q = A e^y + B e^-y, with A, B >= 0. For
|Im y| < pi/2 therefore |q(u + iv)| >= q(u) cos v, the arguments of w and q are at most |v|, and

    |ln(w/q)|(u + iv) <= |ln(w/q)|(u) - ln cos v + 2v.

As any two densities have a ratio of at most e^R, R the range of the points, |ln(w/q)| <= R between
the points, and R + 2o at a distance o beyond. Pieces of length at most 1 have their Bernstein
ellipse of parameter 5 within |Im y| <= 1.2 and o <= 0.8. By the theorem on Gauss quadrature
(Trefethen 2008, Theorem 4.5), n nodes in each piece err in total by at most
(32/15) e^2 (R + 6) 5^(2 - 2n)/(1 - 1/25).

Points that are far apart may be brought closer. Let clusters of points have gaps of at least G, and
replace y by the nearest cluster and the place relative to it, which loses nothing. With other gaps
of at least G, the distribution of these two is the same unless the nearest cluster is not the
point's own, which has probability below e. So gaps are cut down to G, for which e is below 1e-19
and changes no information by more than e (ln m + 2 + ln 1/e).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastpriv._core.clock import Meter
from fastpriv._core.rounding import (
    LEAST,
    log_up,
    lowered,
    raised,
    round_up,
    roundoff,
)
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.searches.cliques import mean_questions
from fastpriv.errors import InvalidInput
from fastpriv.mechanisms.amplitude import (
    ROOT_TWO_PI,
    WINDOW,
    amplitude_capacity,
    best_points,
    quadrature_step,
)
from fastpriv.notions.rules import Facts, capacity_bound
from fastpriv.results import Bracket

#: Largest answer in units of the noise.
FURTHEST = 1e150
#: Relative error of distances, including the directions that are left out.
BLUR = roundoff(64.0)
#: Relative width of answers in further directions that counts as none.
FLAT = 1e-14
#: Gaps beyond which normal noise confuses two answers with probability below e^-46.
GAUSSIAN_GAP = 24.0
#: The same for Laplace noise.
LAPLACE_GAP = 94.0
#: What a confusion may cost, for up to e^100 points.
MISTAKE = 1e-17
#: Nodes of Gauss quadrature in a piece.
_NODES = 16
#: Error of all pieces for R + 6 = 1, by the formula above.
_RULE = 32.0 / 15.0 * math.e**2 * 5.0 ** (2 - 2 * _NODES) / (1.0 - 1.0 / 25.0)
#: Scale of the errors of the trapezoidal rule: they are 1e-12.
_COARSE = 1e4
#: Largest half-range of points for which a table is considered.
_WIDEST = 1e6
#: Most entries of a table of output distributions.
_TABLE = 1 << 23
#: Change of information, when points are moved, from which on a table is of no use.
_MOVED = 0.1
#: Units of work of a search for each entry of a table.
_SEARCH = 1024.0


def as_doubles(given: NDArray[Any], name: str) -> Floats:
    """Return numbers as doubles; refuse integers that are not exactly doubles."""
    numbers = given.astype(np.float64)
    if given.dtype.kind in "iuO" and np.abs(numbers).max(initial=0.0) >= 2.0**53:
        odd = [v for v, x in zip(given.flat, numbers.flat, strict=True) if int(v) != int(x)]
        if odd:
            raise InvalidInput(
                f"{name} must hold numbers that a double represents exactly; got {odd[0]}. "
                "Subtract what all answers have in common."
            )
    return numbers


# Tables.


class Table(NamedTuple):
    """Output distributions, with the errors of their divergences."""

    rows: Floats  # the output distribution of each point
    error: float  # of the rule, absolute
    rounding: float  # relative error of the entries


def gaussian_entries(points: Floats) -> float:
    """Number of outputs of the table for points in order."""
    spread = float(points[-1] - points[0])
    a = max(0.5 * spread, 1.0)
    return (spread + 2.0 * WINDOW) / quadrature_step(a, _COARSE)[0] if a < _WIDEST else math.inf


def gaussian_table(points: Floats) -> Table:
    """Return the table of standard normal noise on points of one dimension."""
    a = max(0.5 * float(np.ptp(points)), 1.0)
    step, error = quadrature_step(a, _COARSE)
    rows = _normal(points, step, _window(_COARSE))
    # Exponents matter up to about 50, where they are off by two units each; points are too.
    return Table(rows, error, roundoff(128.0 + 8.0 * a * WINDOW))


def plane_entries(points: Floats) -> float:
    """Number of outputs of the table for points (k, 2) in the plane."""
    spread = np.ptp(points, axis=0)
    a = 0.5 * float(np.hypot(*spread))
    if a > _WIDEST:
        return math.inf
    scale = _COARSE * min(1.0, a * a)
    return float(np.prod((spread + 2.0 * _window(scale)) / quadrature_step(a, scale)[0]))


def plane_table(points: Floats) -> Table:
    """Return the table of standard normal noise on points (k, 2) in the plane."""
    a = 0.5 * float(np.hypot(*np.ptp(points, axis=0)))
    scale = _COARSE * min(1.0, a * a)  # of capacities
    step, error = quadrature_step(a, scale)
    first, second = (_normal(points[:, k], step, _window(scale)) for k in range(2))
    rows = (first[:, :, None] * second[:, None]).reshape(len(points), -1)
    return Table(rows, 8.0 * error, roundoff(256.0 + 512.0 * a * WINDOW))


def _window(scale: float) -> float:
    """Half-width R of a window with phi(R) = phi(WINDOW) times the scale."""
    return math.sqrt(WINDOW**2 - 2.0 * math.log(scale))


def _normal(points: Floats, step: float, window: float) -> Floats:
    """Return normal densities around points on a grid, times its step."""
    first = math.floor((float(points.min()) - window) / step)
    last = math.ceil((float(points.max()) + window) / step)
    y = np.arange(first, last + 1) * step
    return np.asarray(np.exp(-0.5 * (y - points[:, None]) ** 2) * (step / ROOT_TWO_PI))


def laplace_entries(points: Floats) -> float:
    """Number of outputs of the table for points in order."""
    return 2.0 + _NODES * float(np.ceil(np.diff(points)).sum())


def laplace_table(points: Floats) -> Table:
    """Return the table of Laplace noise of scale 1 on distinct points in order."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    columns = [0.5 * np.exp(-np.abs(points - points[0]))[:, None]]
    for left, right in zip(points[:-1].tolist(), points[1:].tolist(), strict=True):
        cuts = np.linspace(left, right, math.ceil(right - left) + 1)
        half = 0.5 * np.diff(cuts)[:, None]
        y, mass = (cuts[:-1, None] + half * (1.0 + nodes)).ravel(), (half * weights).ravel()
        columns.append(0.5 * mass * np.exp(-np.abs(y - points[:, None])))
    columns.append(0.5 * np.exp(-np.abs(points - points[-1]))[:, None])
    spread = float(points[-1] - points[0])
    error = _RULE * (spread + 6.0)
    return Table(np.concatenate(columns, axis=1), error, roundoff(128.0 + 8.0 * spread))


def _closer(points: Floats, gap: float) -> Floats:
    """Return points in order, with gaps cut down to ``gap``."""
    return np.concatenate([[0.0], np.cumsum(np.minimum(np.diff(points), gap))])


def laplace_pair(distance: float) -> float:
    """Return the capacity of two points behind Laplace noise of scale 1, to about 16 ulp.

    With a = distance/2 even odds are best, and the information is a - ln cosh a - e^-a gd(a), where
    gd(a) = arctan(sinh a). Given an output z to the right of their middle, the two points have
    probabilities (1 +- t)/2 with t = tanh(min(z, a)), an information of
    k(t) = t artanh t + ln(1 - t^2)/2 nats. The mean of k is an elementary integral. Below a = 1/2
    it is taken by Gauss quadrature over positive terms:
    (1 + e^-2a)/2 k(tanh a) + e^-a * integral over |z| < a of cosh(z) k(tanh z)/2.
    """
    a = 0.5 * distance
    if a > 0.5:
        # ln cosh a = a - ln 2 + ln(1 + e^-2a), and gd(a) = pi/2 - 2 arctan(e^-a).
        e = math.exp(-a)
        turn = 0.5 * math.pi - 2.0 * math.atan(e)
        return math.log(2.0) - math.log1p(e * e) - e * turn
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    z = 0.5 * a * (1.0 + nodes)
    inside = 0.5 * a * weights * np.cosh(z) * _pair_information(np.tanh(z))
    ends = 0.5 * (1.0 + math.exp(-2.0 * a)) * float(_pair_information(np.array(math.tanh(a))))
    return ends + math.exp(-a) * math.fsum(inside)


def _pair_information(t: Floats) -> Floats:
    """Return t artanh t + ln(1 - t^2)/2 = sum_j t^2j/(2j (2j - 1)) for t below 1/2."""
    square, total = t * t, np.zeros_like(t)
    for j in range(28, 0, -1):
        total = (total + 1.0 / (2 * j * (2 * j - 1))) * square
    return np.asarray(total)


# Kinds.


@dataclass(frozen=True)
class Noise:
    """Bounds for a kind of noise of size 1."""

    pair: Callable[[float], Bracket]  # capacity of two points at a distance
    ceiling: Callable[[float, int], float]  # upper bound within a distance in k directions
    spread: Callable[[float, int, float], float]  # upper bound for m points on a line, to a gap
    nearby: Callable[[float, float, float], float]  # bound for points that are moved
    moved: Callable[[float, float], float]  # change by moves of points in a range
    few: float  # up to this distance the two outermost points are as good as any number
    gap: float  # distance from which on points are distinguished
    entries: Callable[[Floats], float]
    table: Callable[[Floats], Table]


def _gaussian_pair(distance: float) -> Bracket:
    return amplitude_capacity(0.5 * distance, 2.0, 0.0)


def _gaussian_ceiling(distance: float, k: int) -> float:
    """Return k/2 ln(1 + r^2/k), r the radius of a ball around points within a distance (Jung)."""
    square = distance * distance * k / (2.0 * (k + 1.0))
    return raised(0.5 * k * math.log1p(square / k), 16.0) + 4.0 * LEAST  # a square may underflow


def _gaussian_spread(distance: float, m: int, gap: float) -> float:
    """Return the capacity of the best m points within a distance."""
    half = 0.5 * distance
    return best_points(half, m, amplitude_capacity(half, m, gap), gap).upper


def _gaussian_nearby(capacity: float, step: float, most: float) -> float:
    return most  # densities of moved points have no bounded ratio


def _gaussian_moved(error: float, spread: float) -> float:
    """Bound the change of information when points within a spread are moved by an error.

    With Y = f + Z and points that move at a speed v, dI/dt = E v (f - E[f|Y]). The estimate E[f|Y]
    is off by no more than Y is, sqrt(2) in a plane, nor by more than the spread of the points.
    """
    return 1.5 * error * min(1.0, spread + 2.0 * error)


def _laplace_pair(distance: float) -> Bracket:
    value = laplace_pair(distance)
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
    error = math.expm1(step) * (1.0 + roundoff(8.0)) if step <= 1.0 else math.inf
    for _ in range(8):
        most = min(most, raised(capacity + error * (most + math.sqrt(2.0 * most)), 16.0))
    return most


def _laplace_moved(error: float, spread: float) -> float:
    """Bound the change of information when points within a spread are moved by an error.

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
    GAUSSIAN_GAP,
    gaussian_entries,
    gaussian_table,
)
LAPLACE = Noise(
    _laplace_pair,
    _laplace_ceiling,
    _laplace_spread,
    _laplace_nearby,
    _laplace_moved,
    0.0,
    LAPLACE_GAP,
    laplace_entries,
    laplace_table,
)


def pair_capacity(noise: Noise, distance: float, blur: float) -> Bracket:
    """Return the capacity of two points at a distance that is known up to a relative error."""
    near, far = distance * max(0.0, 1.0 - blur), distance * (1.0 + blur)
    # Two answers reveal something, even if it is below the smallest double.
    return Bracket(noise.pair(near).lower, max(noise.pair(far).upper, LEAST))


def largest_capacity(noise: Noise, pair: Bracket, far: float, m: int, directions: int) -> float:
    """Bound the capacity of m points in some directions, given the capacity of the best two."""
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
    """Return the output distributions of distinct places, and the number of each place.

    Places are off by up to an error. The table is None if the error is too large, if the table is
    too large, or if there is no time for it.
    """
    answers, numbers = np.unique(places, axis=0, return_inverse=True)
    numbers = numbers.reshape(-1)
    moved = noise.moved(error, float(np.linalg.norm(np.ptp(answers, axis=0))))
    plane = places.shape[1] == 2
    points = answers if plane else _closer(answers[:, 0], noise.gap)
    entries = plane_entries(points) if plane else noise.entries(points)
    size = len(points) * entries
    if moved > _MOVED or size > _TABLE or meter.too_late(_SEARCH * size):
        return None, numbers
    table = plane_table(points) if plane else noise.table(points)
    cut = not plane and points[-1] < answers[-1, 0] - answers[0, 0]
    mistake = MISTAKE if cut else 0.0
    return table._replace(error=table.error + moved + mistake), numbers
