"""Where a level is attained: two databases and an output, found in the channel's structure."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio, log_spread
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import RowKernels
from fastpriv.errors import InvalidInput
from fastpriv.kernels import matrix_spread
from fastpriv.priors import Distribution
from fastpriv.results import Witness
from fastpriv.spaces import Space

if TYPE_CHECKING:
    from fastpriv.channels.base import AbstractChannel

#: Most outputs that are listed, and most entries that are looked through.
FEW, _SCANNED = 5, 1 << 25


def few(indices: Ints, space: Space) -> tuple[int, Ints]:
    """Return how many outputs there are, and the first few as rows of their space."""
    return len(indices), space.rows(indices[:FEW]).reshape(-1, space.n)


def small_matrix(channel: AbstractChannel) -> Floats:
    """Return the matrix of a channel, if it is small enough to look for a single entry."""
    entries = channel.space.size * channel.output_space.size
    check.fits(entries, f"the matrix of {channel!r}", "ask for levels only", _SCANNED)
    return channel.matrix()


def largest_ratio(top: Floats, bottom: Floats) -> int:
    """Return the place, in C order, of the largest top/bottom of those with a positive top."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        excess = (top - bottom) / bottom
    excess[top == 0.0] = -1.0
    place = int(excess.argmax())
    if excess.flat[place] < math.inf or bottom.flat[place] == 0.0:
        return place
    # Beyond the range of a double: a zero below, or else the largest by logarithms.
    apart = np.where(top > 0.0, log_ratio(np.maximum(top, bottom), bottom), -1.0)
    return int(apart.argmax())


def matrix_step(channel: AbstractChannel, prior: Floats | None) -> Witness:
    """Find the neighbours and the output with the largest ratio of joint (or given) chances."""
    joint, space = np.array(small_matrix(channel)), channel.space
    if prior is not None:  # a power of two keeps products of small numbers from underflowing
        joint *= (prior * 2.0**900)[:, None]
    axes = [(int(s), m) for s, m in zip(space._strides, space.sizes, strict=True) if m > 1]
    if not axes:
        raise InvalidInput("no row has a second value, so there are no neighbours")
    levels = [log_spread(partial(_spread, joint, np.array([axis]))) for axis in axes]
    inner, m = axes[int(np.argmax(levels))]
    blocks = joint.reshape(-1, m, inner, joint.shape[1])
    tops, bottoms = blocks.max(axis=1), blocks.min(axis=1)
    outer, rest, y = np.unravel_index(largest_ratio(tops, bottoms), tops.shape)
    line = blocks[outer, :, rest, y]
    ends = [int((outer * m + v) * inner + rest) for v in (line.argmax(), line.argmin())]
    return Witness(channel.output_space.rows(int(y)), *space.rows(np.array(ends)))


def _spread(joint: Floats, axis: Ints, scale: float) -> float:
    return matrix_spread(joint, 0.0, scale, axis, 0, joint.shape[1])


def furthest(laws: Floats) -> tuple[int, int, int]:
    """Return two rows and the column with the largest ratio of any two entries of a column."""
    y = largest_ratio(laws.max(axis=0), laws.min(axis=0))
    return int(laws[:, y].argmax()), int(laws[:, y].argmin()), y


def widest(laws: Floats, pairs: Ints) -> tuple[int, int]:
    """Return the pair of rows, of those listed, with the largest ratio of two entries."""
    check.fits(pairs.size * laws.shape[1], "the laws of neighbours", "ask for levels", _SCANNED)
    place = largest_ratio(laws[pairs[:, 0]], laws[pairs[:, 1]])
    v, w = pairs[place // laws.shape[1]].tolist()
    return v, w


def rows_ruling_out(kernels: RowKernels) -> tuple[int, Ints]:
    """Count the outputs of a row-by-row channel that some database cannot cause; the first few.

    All outputs that occur, less those that every value of every row can cause.
    """
    counts = np.bincount(kernels.assignment, minlength=len(kernels.distinct)).tolist()
    seen = [np.flatnonzero(kernel.matrix.max(axis=0) > 0.0) for kernel in kernels.distinct]
    full = [np.flatnonzero(kernel.matrix.min(axis=0) > 0.0) for kernel in kernels.distinct]
    number = math.prod(len(y) ** c for y, c in zip(seen, counts, strict=True))
    number -= math.prod(len(y) ** c for y, c in zip(full, counts, strict=True))
    # Rows show their first output, and one row at a time an output that rules a value out.
    start = np.array([y[0] for y in seen])[kernels.assignment]
    telling = [k for k, y in enumerate(seen) if len(y) > len(full[k])]
    first = [
        (int((kernels.assignment == k).argmax()), y)
        for k in telling[:FEW]
        for y in np.setdiff1d(seen[k], full[k])[:FEW].tolist()
    ][:FEW]
    found = np.repeat(start[None], len(first), axis=0)
    for line, (i, y) in zip(found, first, strict=True):
        line[i] = y
    return number, found


def rows_step(kernels: RowKernels, prior: Distribution | None) -> Witness:
    """Find the row, its two values and the output; the other rows are as likely as can be."""
    best, place = -math.inf, (kernels.distinct[0], np.arange(1), 0, 0)
    for kernel, rows in kernels.groups():
        level, s, t = kernel.worst()
        if prior is not None:
            check.fits(kernel.shape[0] ** 2, "the pairs of a row's values", "ask for levels only")
            ratios = prior._log_ratios(rows)
            possible = ratios > -math.inf
            total = np.where(possible, np.where(possible, ratios, 0.0) + kernel.log_ratios, -1.0)
            s, t = map(int, np.unravel_index(total.argmax(), total.shape))
            level = float(total[s, t])
        if level > best:
            best, place = level, (kernel, rows, s, t)
    kernel, rows, s, t = place
    x, i = (
        (np.zeros(len(kernels), np.int64), int(rows[0]))
        if prior is None
        else prior._steepest(rows, s, t)
    )
    x[i] = s
    y = np.empty_like(x)
    for other, users in kernels.groups():
        y[users] = other.likeliest(x[users])
    y[i] = kernel.telling(s, t)
    moved = x.copy()
    moved[i] = t
    return Witness(y, x, moved)


def home_step(home: Distribution, groups: list[Ints]) -> Witness:
    """Find the neighbours x, x' of largest home(x')/home(x), and x itself as the output."""
    best, place = -math.inf, (groups[0], 0, 0)
    for rows in groups:
        ratios = home._log_ratios(rows[:1])
        np.fill_diagonal(ratios, -math.inf)
        s, t = map(int, np.unravel_index(ratios.argmax(), ratios.shape))
        if ratios[s, t] > best:
            best, place = float(ratios[s, t]), (rows[:1], s, t)
    rows, s, t = place
    other, i = home._steepest(rows, s, t)
    x = other.copy()
    x[i] = t
    return Witness(x.copy(), x, other)


def rows_extreme(kernels: RowKernels) -> Witness:
    """Find two databases and an output that are as far apart as can be in every row."""
    x, other, y = (np.empty(len(kernels), dtype=np.int64) for _ in range(3))
    for kernel, rows in kernels.groups():
        _, s, t = kernel.worst()
        x[rows], other[rows], y[rows] = s, t, kernel.telling(s, t)
    return Witness(y, x, other)


def laid_out(pairs: Ints) -> tuple[Ints, Ints]:
    """Return a database and an output that have ``pairs[v, s]`` rows with v in y and s in x."""
    values = np.arange(len(pairs))
    y = np.repeat(values, pairs.sum(axis=1))
    return np.repeat(np.tile(values, len(values)), pairs.reshape(-1)), y
