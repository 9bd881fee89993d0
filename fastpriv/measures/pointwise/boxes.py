"""Leakage about a row over a box of priors, and over boxes of the laws of independent rows."""

from __future__ import annotations

import itertools
import math
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, log_up, raised
from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel, Channel, ProductChannel
from fastpriv.channels.queries.sums import Chance
from fastpriv.measures.maxima import add_over_rows
from fastpriv.measures.pointwise.scaled import scaled_matrix
from fastpriv.priors.sets import Box

#: Most entries of the chances of all outputs at all corners.
_CORNERS = 1 << 26
#: Outputs at corners that are looked at together.
_BLOCK = 1 << 16


def box_row_leakages(box: Box, channel: AbstractChannel, i: int) -> Floats:
    """Return the largest leakage of every output about row i over a box. Cost O(m N K log N).

    For an output y and a value v let A = P(y, x_i = v), B = P(y, x_i != v) and t = P(x_i = v).
    The leakage is ln A/(t (A + B)). At a fixed t the largest A and the least B do not depend on
    each other: both are knapsacks, piecewise linear in t. On a piece A = a + b t and
    A + B = s + r t, and the quotient has its maximum at an end or where
    b r t^2 + 2 a r t + a s = 0.
    """
    matrix, possible = scaled_matrix(channel), box.possible()
    inner, m = int(channel.space.strides[i]), channel.space.sizes[i]
    values = np.arange(channel.space.size) // inner % m
    tops = np.where(possible[:, None], matrix, 0.0).max(axis=0)
    worst = np.ones(matrix.shape[1])
    for y in np.flatnonzero(tops > 0.0):
        column = np.where(possible, matrix[:, y] / tops[y], 0.0)
        for v in range(m):
            own = values == v
            if (possible & own & (column > 0.0)).any():
                worst[y] = max(worst[y], _largest_share(box, column, own))
    return np.array([log_up(share) + 16.0 * ULP for share in worst.tolist()])


def _largest_share(box: Box, column: Floats, own: np.ndarray) -> float:
    """Return the largest A/(t (A + B)) over the box, rounded up."""
    least, room = box.lower, box.upper - box.lower
    taken, free = math.fsum(least[own]), box.free
    first = max(0.0, free - math.fsum(room[~own]))  # what the other values cannot take
    last = max(first, min(free, math.fsum(room[own])))
    most = _filled(-column[own], least[own], room[own])  # from t - taken to -A
    rest = _filled(column[~own], least[~own], room[~own])  # from what is left to B

    def shares(given: Floats) -> Floats:
        A, B = -np.interp(given, *most), np.interp(free - given, *rest)
        return _shares(taken + given, A, B, float(column[own].max()))

    ends = np.concatenate([most[0], free - rest[0], [first, last]])
    ends = np.unique(np.clip(ends, first, last))
    A, B = -np.interp(ends, *most), np.interp(free - ends, *rest)
    t, width = (taken + ends)[:-1], np.diff(ends)
    b, r = np.diff(A) / width, np.diff(A + B) / width
    a, s = A[:-1] - b * t, (A + B)[:-1] - r * t
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum((a * r) ** 2 - a * b * r * s, 0.0))
        turns = np.stack([(-a * r + root) / (b * r), (-a * r - root) / (b * r), -s / (2.0 * r)])
    turns = np.where(np.isfinite(turns), turns - taken, first)
    inside = np.clip(turns, ends[:-1], ends[1:]).reshape(-1)
    return float(shares(np.append(ends, inside)).max())


def _filled(values: Floats, least: Floats, room: Floats) -> tuple[Floats, Floats]:
    """Return the least mean of the values, with more and more mass given out: its corners."""
    order = np.argsort(values)
    masses = np.append(0.0, np.cumsum(room[order]))
    sums = np.append(0.0, np.cumsum(room[order] * values[order]))
    return masses, float(least @ values) + sums


def _shares(t: Floats, A: Floats, B: Floats, top: float) -> Floats:
    """Return A/(t (A + B)), where A is at most top t. Rounded up.

    Masses may be off by a few ulp of 1 for every database.
    """
    slack = (8 * len(t) + 64) * ULP
    up, low = A * (1.0 + slack) + slack * top, A * (1.0 - slack) - slack * top
    other = np.maximum(B * (1.0 - slack) - slack, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        share = up / (up + other) / np.maximum(t * (1.0 - slack) - slack, 0.0)
        bound = top / (np.maximum(low, 0.0) + other)
    return np.asarray(raised(np.minimum(share, bound), 8.0))


def chances(box: Box) -> tuple[Chance, Chance]:
    """Return the laws of a bit with the least and with the largest chance of the value 1."""
    (low0, low1), (high0, high1) = box.lower.tolist(), box.upper.tolist()
    least = min(high0, 1.0 - low1), max(low1, 1.0 - high0)
    most = max(low0, 1.0 - high1), min(high1, 1.0 - low0)
    return least, most


def corners(box: Box) -> Floats:
    """Return the corners of a box of laws: all values at a bound but at most one."""
    m, laws = box.size, []
    check.fits(
        m * 2**m, "the corners of a box of laws of a row", "use rows of fewer values", 1 << 20
    )
    for k in range(m):
        others = [x for x in range(m) if x != k]
        for choice in itertools.product((0, 1), repeat=m - 1):
            law = np.zeros(m)
            law[others] = np.where(choice, box.upper[others], box.lower[others])
            law[k] = 1.0 - math.fsum(law)
            if box.lower[k] - 4 * ULP <= law[k] <= box.upper[k] + 4 * ULP:
                laws.append(np.maximum(law, 0.0))
    return _distinct(np.array(laws))


def _distinct(laws: Floats) -> Floats:
    """Leave out laws that are others but for rounding."""
    kept: list[Floats] = []
    for law in np.unique(laws, axis=0):
        if not any((np.abs(law - other) <= 8.0 * ULP * other).all() for other in kept):
            kept.append(law)
    return np.array(kept)


@singledispatch
def row_box_level(channel: AbstractChannel, box: Box, i: int | None) -> float:
    """Return the largest leakage (about row i, if given) under independent rows of a box.

    The chance of y is linear in the law of each row, and its quotient by the one given x_i is
    linear-fractional in the laws of the others. So all other rows are at corners of the box.
    """
    laws, n, outputs = corners(box), channel.space.n, channel.output_count
    sides = [box.size if j == i else len(laws) for j in range(n)]
    check.fits(
        math.prod(sides) * outputs,
        "the chances of all outputs at all corners",
        "use fewer rows, or a channel that acts row by row",
        _CORNERS,
    )
    matrix, possible = scaled_matrix(channel), box.possible()
    tops = matrix.max(axis=0)
    chances = (matrix / np.where(tops > 0.0, tops, 1.0))[:, tops > 0.0]
    slack = (2 * n * (box.size + 2) + 32) * ULP
    lead: Floats = chances.reshape((box.size,) * n + (-1,))
    if i is None:
        most = lead[np.ix_(*[possible] * n)].reshape(-1, lead.shape[-1]).max(axis=0)
    for j in range(n):
        if j != i:
            lead = np.moveaxis(np.tensordot(laws, np.moveaxis(lead, j, 0), 1), 0, j)
    if i is None:
        least = lead.reshape(-1, lead.shape[-1]).min(axis=0)
        seen = most > 0.0
        with np.errstate(divide="ignore"):
            worst = float((most[seen] / least[seen]).max(initial=1.0))
        return log_up(worst) + 2.0 * slack
    columns = np.moveaxis(lead, i, 0).reshape(box.size, -1)
    columns = columns[:, columns[possible].max(axis=0) > 0.0]
    worst = 1.0
    for start in range(0, columns.shape[1], _BLOCK):  # the least mean over a box is at a corner
        part = columns[:, start : start + _BLOCK]
        with np.errstate(divide="ignore"):
            shares = part[possible].max(axis=0) / (laws @ part).min(axis=0)
        worst = max(worst, float(shares.max()))
    return log_up(worst) + 2.0 * slack


@row_box_level.register
def _product_row_box_level(channel: ProductChannel, box: Box, i: int | None) -> float:
    """Every row by itself."""
    kinds = [channel.kernels[i]] if i is not None else channel.kernels.distinct
    alone = [row_box_level(Channel(kernel.matrix, [box.size]), box, 0) for kernel in kinds]
    return alone[0] if i is not None else add_over_rows(channel, alone)
