"""Sums of exponentials over many points, at many equally spaced angles together.

    S(v) = sum of w_i e^(i v L_i),   v = 0, tau, 2 tau, ...,   w_i >= 0,

by one fast Fourier transform. Every point is spread over a grid of M losses in a period 2 pi/tau by
a Gaussian g, and the transform is divided by that of g. With Omega = M tau, Poisson's formula says
that the quotient is

    S(v) + sum over p != 0 of S(v + p Omega) g^(v + p Omega) / g^(v),   g^(v) = e^(-48 (v/Omega)^2),

and |S| is at most the sum of the weights. For v <= Omega/8 all other terms together are at most
2.02 e^-36 of it. The Gaussian is cut 13 points away from the nearest one, where it is below e^-37.
"""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.measures import FINE

#: The grid has at least so many points for each angle.
_OVER = 8
#: g^(v) = e^(-_WIDTH (v/Omega)^2), and so g = e^(-_FALL m^2) at m points, times a factor.
_WIDTH = 48.0
_FALL = math.pi**2 / _WIDTH
_HEIGHT = math.sqrt(math.pi / _WIDTH)
#: Points of the grid on either side that a point is spread over.
_REACH = 13
#: Aliases and what is cut off, relative to the sum of the weights; amplified at most by e^(48/64).
_LOST = 2.02 * math.exp(-0.75 * _WIDTH) + 4.0 * math.exp(-_FALL * (_REACH + 0.5) ** 2)
#: Points on one place that are summed as they are.
_CROWDED = 64
#: Most points of a grid, and most points that are spread.
GRID, POINTS = 1 << 22, 1 << 20


def fits(points: int, angles: int) -> bool:
    """Whether the transform is not too long."""
    return points <= POINTS and _length(angles) <= GRID


def _length(angles: int) -> int:
    return 1 << max(6, math.ceil(math.log2(_OVER * angles)))


def uniform_sums(
    losses: Floats, weights: Floats, tau: float, angles: int
) -> tuple[np.ndarray, float]:
    """Return S(v) at v = 0, tau, ..., and a bound on errors relative to the sum of the weights.

    What losses are off by is not counted. Cost: 27 passes over the points, and one transform of
    8 to 16 times as many points as there are angles.
    """
    order = np.argsort(losses, kind="stable")
    losses, weights = losses[order], weights[order]
    length = _length(angles)
    at = losses * (length * tau / (2.0 * math.pi))
    nearest = np.rint(at)
    rest = at - nearest
    starts = np.flatnonzero(np.diff(nearest, prepend=-math.inf) > 0.0)
    places = (nearest[starts] - nearest[0]).astype(np.int64) + _REACH
    most = int(np.diff(starts, append=len(losses)).max())
    crowded = most > _CROWDED
    # The grid unrolled: it may be shorter than the range of the losses.
    grid = np.zeros(length * math.ceil((places[-1] + _REACH + 1) / length))
    with np.errstate(under="ignore"):
        middle = weights * np.exp(-_FALL * rest * rest)
        for sign in (1, -1):
            turn = np.exp(2.0 * sign * _FALL * rest)
            part = middle
            for p in range(_REACH + 1):
                if p:
                    part = part * turn
                if p or sign > 0:
                    # Where many points fall on one place, their sum needs more digits.
                    each = part.astype(np.longdouble) if crowded else part
                    sums = np.add.reduceat(each, starts).astype(np.float64)
                    grid[places + sign * p] += sums * (_HEIGHT * math.exp(-_FALL * p * p))
    folded = grid.reshape(-1, length).sum(axis=0)
    turns = np.arange(angles, dtype=np.float64) / length
    values = np.conj(np.fft.rfft(folded)[:angles]) * np.exp(_WIDTH * turns**2)
    # The first place of the grid is not the loss 0.
    begin = 2.0 * math.pi * (((int(nearest[0]) - _REACH) % length) * np.arange(angles) % length)
    values = values * np.exp(1j * (begin / length))
    wraps = 64.0 + len(grid) / length
    unit = ULP * (64.0 + 8.0 * math.log2(length) + wraps) + (FINE if crowded else ULP) * most
    return values, math.exp(_WIDTH / 64.0) * (_LOST + unit) * (1.0 + 1e-9)
