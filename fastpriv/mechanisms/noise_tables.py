"""Output laws of noise on finitely many points, as tables for searches over finite channels.

A density is replaced by its values at the nodes of a quadrature rule, times the weights of the
rule. The divergence D(w || q) of one point's law from a mixture q of all of them is an integral,
and a table comes with a bound on the error of the rule that holds for every point and every
mixture. The capacity of some points is the least over mixtures q of the largest divergence, so that
the capacity of rows of the table is off by at most that bound.

Normal noise: the trapezoidal rule, with the bound of ``fastpriv.mechanisms.amplitude``. In the
plane the rule is applied to one coordinate after the other. Along each, the integrand has the same
bound on the same strip, times the density of the other coordinate, whose sum over a grid is below
2, and so is that of the density times |y - x|; so four times the bound holds for either step.

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
of at least G, the laws of these two are the same unless the nearest cluster is another one than the
point's, which has a chance below e. So gaps are cut down to G, where e is below 1e-19 and changes
no information by more than e (ln m + 2 + ln 1/e).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.mechanisms.amplitude import ROOT_TWO_PI, WINDOW, quadrature_step

#: Nodes of Gauss quadrature in a piece, and the error of all pieces for R + 6 = 1.
_NODES = 16
_RULE = 32.0 / 15.0 * math.e**2 * 5.0 ** (2 - 2 * _NODES) / (1.0 - 1.0 / 25.0)
#: Gaps beyond which answers are told apart: the chance of a mistake is below e^-46.
GAUSSIAN_GAP, LAPLACE_GAP = 24.0, 94.0
#: What a mistake may cost, for up to e^100 points.
MISTAKE = 1e-17
#: Scale of the errors of the trapezoidal rule: they are 1e-12.
_COARSE = 1e4


class Table(NamedTuple):
    """Output laws, with what their divergences are off by."""

    laws: Floats  # one row for each point
    error: float  # of the rule, absolute
    rounding: float  # relative error of the entries


def gaussian_entries(points: Floats) -> float:
    """Number of outputs of the table for points in order."""
    spread = float(points[-1] - points[0])
    a = max(0.5 * spread, 1.0)
    return (spread + 2.0 * WINDOW) / quadrature_step(a, _COARSE)[0] if a < 1e6 else math.inf


def gaussian_table(points: Floats) -> Table:
    """Return the table of standard normal noise on points of one dimension."""
    a = max(0.5 * float(np.ptp(points)), 1.0)
    step, error = quadrature_step(a, _COARSE)
    laws = _normal(points, step, _window(_COARSE))
    # Exponents matter up to about 50, where they are off by two units each; points are too.
    return Table(laws, error, (128.0 + 8.0 * a * WINDOW) * ULP)


def plane_entries(points: Floats) -> float:
    """Number of outputs of the table for points (k, 2) in the plane."""
    spread = np.ptp(points, axis=0)
    a = 0.5 * float(np.hypot(*spread))
    if a > 1e6:
        return math.inf
    scale = _COARSE * min(1.0, a * a)
    return float(np.prod((spread + 2.0 * _window(scale)) / quadrature_step(a, scale)[0]))


def plane_table(points: Floats) -> Table:
    """Return the table of standard normal noise on points (k, 2) in the plane."""
    a = 0.5 * float(np.hypot(*np.ptp(points, axis=0)))
    scale = _COARSE * min(1.0, a * a)  # of capacities
    step, error = quadrature_step(a, scale)
    first, second = (_normal(points[:, k], step, _window(scale)) for k in range(2))
    laws = (first[:, :, None] * second[:, None]).reshape(len(points), -1)
    return Table(laws, 8.0 * error, (256.0 + 512.0 * a * WINDOW) * ULP)


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
    return Table(np.concatenate(columns, axis=1), error, (128.0 + 8.0 * spread) * ULP)


def closer(points: Floats, gap: float) -> Floats:
    """Return points in order, with gaps cut down to ``gap``."""
    return np.concatenate([[0.0], np.cumsum(np.minimum(np.diff(points), gap))])


def laplace_pair(distance: float) -> float:
    """Return the capacity of two points behind Laplace noise of scale 1, to about 16 ulp.

    With a = distance/2 even odds are best, and the information is a - ln cosh a - e^-a gd(a), where
    gd(a) = arctan(sinh a): the chances of the two given an output z to the right of their middle
    are (1 +- t)/2 with t = tanh(min(z, a)), which tell k(t) = t artanh t + ln(1 - t^2)/2 nats, and
    the mean of k is an elementary integral. Below 1/2 that mean is taken by Gauss quadrature over
    positive terms: (1 + e^-2a)/2 k(tanh a) + e^-a * integral over |z| < a of cosh(z) k(tanh z)/2.
    """
    a = 0.5 * distance
    if a > 0.5:
        # ln cosh a = a - ln 2 + ln(1 + e^-2a), and gd(a) = pi/2 - 2 arctan(e^-a).
        e = math.exp(-a)
        turn = 0.5 * math.pi - 2.0 * math.atan(e)
        return math.log(2.0) - math.log1p(e * e) - e * turn
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    z = 0.5 * a * (1.0 + nodes)
    inside = 0.5 * a * weights * np.cosh(z) * _told(np.tanh(z))
    ends = 0.5 * (1.0 + math.exp(-2.0 * a)) * float(_told(np.array(math.tanh(a))))
    return ends + math.exp(-a) * math.fsum(inside)


def _told(t: Floats) -> Floats:
    """Return t artanh t + ln(1 - t^2)/2 = sum_j t^2j/(2j (2j - 1)) for t below 1/2."""
    square, total = t * t, np.zeros_like(t)
    for j in range(28, 0, -1):
        total = (total + 1.0 / (2 * j * (2 * j - 1))) * square
    return np.asarray(total)
