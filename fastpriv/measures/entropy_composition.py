"""What several releases tell about a row, if the prior has some least entropy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import lowered, raised, sum_up
from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.arguments import as_channel
from fastpriv.measures.capacity import capacity
from fastpriv.measures.constrained import constrained_capacity
from fastpriv.measures.individual import largest_leak

__all__ = ["constrained_composition_bound"]

#: Share of ln N between an entropy and the next point below it at which a capacity is taken.
_NEAR = 1e-3


def constrained_composition_bound(
    *channels: AbstractChannel | ArrayLike,
    b: float,
    k: int = 1,
    points: int = 6,
    gap: float = 1e-3,
    time_limit: float = 60.0,
) -> float:
    """Upper bound on what releases tell about k rows, for priors with an entropy of at least b.

    C_k^b of a composition (Wu-Xia-He 2020, Assumption 3) is NOT at most the sum of C_k^b of its
    parts: after an output the posterior may have less entropy. It is at most

        C_k^b(first) + c_2(b - C(1)) + c_3(b - C(1) - C(2)) + ...

    Here C(j) is the channel capacity of release j and c_j the least concave majorant of its C_k^b
    as a function of b, which is C_k below 0.

    Parameters
    ----------
    *channels : channels or 2-D arrays
        The mechanisms, all on the same databases, with outputs that are independent given the
        database.
    b : float
        Least entropy of the prior in nats, 0 .. ln N.
    k : int
        Size of the group of rows, 1 .. n.
    points : int
        Entropies at which capacities of later releases are taken. Between them the larger one
        counts, so that more points give a smaller bound.
    gap : float
        As for :func:`constrained_capacity`.
    time_limit : float
        Seconds for all searches together; when they are over, what is proved so far counts.

    Returns
    -------
    float
        Bound in nats, rounded up. Never above the sum of the unconstrained capacities.

    Notes
    -----
    Let Y be the outputs before release j. I(X_G; Y, Y_j) = I(X_G; Y) + I(X_G; Y_j | Y). Given Y = y
    the prior is the posterior, with an entropy H_y, and release j tells at most c_j(H_y). The mean
    of H_y is H(X) - I(X; Y) >= b - C(1) - ... - C(j-1), and c_j is concave and does not increase.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> one = fp.constrained_capacity(channel, 1.3).upper
    >>> both = fp.constrained_composition_bound(channel, channel, b=1.3)
    >>> 2 * one < both < 2 * fp.individual_capacity(channel).upper
    True
    """
    if not channels:
        raise InvalidInput("give at least one channel to compose")
    first = as_channel(channels[0])
    parts = [first, *(as_channel(channel, first.space) for channel in channels[1:])]
    if any(part.space != first.space for part in parts):
        raise InvalidInput("composed channels must be about one data set; use the same space")
    least = check.real(b, "b", least=0.0)
    points = check.integer(points, "points", 2)
    clock, told = Clock(check.limit(time_limit, "time_limit")), []
    for j, part in enumerate(parts):
        seconds = min(clock.share(len(parts) - j), 1e9)
        if j > 0 and seconds == 0.0:  # the time is over: all priors are more than those
            told.append(largest_leak(part, k, gap, 0.0).upper)
        elif j == 0:
            told.append(constrained_capacity(part, least, k=k, gap=gap, time_limit=seconds).upper)
        else:
            told.append(_majorant(part, least, k, points, gap, seconds))
        least = max(0.0, lowered(least - raised(capacity(part, 1e-6).upper, 2.0), 4.0))
    return sum_up(told)


def _majorant(
    channel: AbstractChannel, at: float, k: int, points: int, gap: float, seconds: float
) -> float:
    """Return a bound on the least concave majorant of the constrained capacity, at an entropy."""
    top = math.log(channel.space.size)
    if at == 0.0 or top == 0.0:
        return constrained_capacity(channel, 0.0, k=k, gap=gap, time_limit=seconds).upper
    near = max(0.0, at - _NEAR * top)
    grid = np.unique([*np.linspace(0.0, top, points), near, at])
    share = seconds / len(grid)
    upper = constrained_capacity(channel, grid, k=k, gap=gap, time_limit=share).upper
    # It does not increase, so between two points it is at most what it is at the first.
    return _hull(np.append(0.0, grid[1:]), np.append(upper[0], upper[:-1]), at)


def _hull(x: Floats, y: Floats, at: float) -> float:
    """Return the least concave function above some points, at one place. Rounded up."""
    left, right = x <= at, x >= at
    best = float(y[x == at].max(initial=0.0))
    for a, u in zip(x[left], y[left], strict=True):
        ends = right & (x > a)
        share = (at - a) / (x[ends] - a)
        best = max(best, float((u + share * (y[ends] - u)).max(initial=0.0)))
    return raised(best, 16.0)
