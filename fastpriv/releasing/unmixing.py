"""Undoing row-by-row randomisation of counts: estimates, and the variances they have.

Counts are arrays with an axis for each part of a record that was randomised by itself. On one axis
with kernel W let V be its inverse; the count of value t is estimated by the sum of V[y, t] over
released values y, and a record that held x adds Q[x, t] - [x = t] to its variance, where
Q = W (V * V) entry by entry. Over several axes inverses and Q multiply, so that both are applied
one axis at a time and no matrix over whole records is formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv.errors import InvalidInput, TooLarge

#: Condition numbers beyond which a solution is mostly amplified rounding and noise.
_CONDITION = 1e10
#: Largest matrix that is inverted.
_INVERTED = 4096


class Axis:
    """A part of a record that was randomised by itself, through a matrix."""

    def __init__(self, matrix: Floats) -> None:
        self.matrix, self.inverse = matrix, inverse(matrix)
        self.squares = matrix @ self.inverse**2
        self.own, self.least = np.diag(self.squares), self.squares.min(axis=0)

    def estimate(self, counts: Floats, axis: int) -> Floats:
        """Apply the inverse to one axis of some counts."""
        return _along(counts, self.inverse, axis)

    def spread(self, counts: Floats, axis: int) -> Floats:
        """Apply Q to one axis of some counts."""
        return _along(counts, self.squares, axis)

    def forward(self, law: Floats, axis: int) -> Floats:
        """Send one axis of a law through the matrix."""
        return _along(law, self.matrix, axis)

    def backward(self, weights: Floats, axis: int) -> Floats:
        """Average weights of outputs over what each value of one axis leads to."""
        return _along(weights, self.matrix.T, axis)

    def grouped(self, counts: Floats, groups: Floats) -> tuple[Floats, Floats]:
        """Estimate counts of groups of values, groups[x, t] = [x is in t], and the variances."""
        solved = self.inverse @ groups
        spread = self.matrix @ solved**2 - groups
        floor = counts.sum() * np.maximum(spread.min(axis=0), 0.0)
        return counts @ solved, np.maximum(counts @ self.inverse @ spread, floor)


class SymmetricAxis(Axis):
    """The same for a symmetric channel, every matrix of which is u I + v J.

    Stay with chance a, become each of the other values with chance b; gap = a - b. Then
    V = (I - b J)/gap, and Q = (1 - 2b)/gap I + b (1 - b)/gap^2 J.
    """

    def __init__(self, m: int, off: float, gap: float) -> None:
        if gap < 1.0 / _CONDITION:
            raise InvalidInput(
                "the mechanism cannot be undone: at a level this close to 0 the released values "
                "say next to nothing about the true ones"
            )
        self.off, self.gap = off, gap
        self.other = off * (1.0 - off) / gap**2
        self.own = np.full(m, (1.0 - 2.0 * off) / gap + self.other)
        self.least = np.full(m, self.other if m > 1 else self.own[0])

    def estimate(self, counts: Floats, axis: int) -> Floats:
        """Apply the inverse to one axis of some counts."""
        return np.asarray((counts - self.off * counts.sum(axis=axis, keepdims=True)) / self.gap)

    def spread(self, counts: Floats, axis: int) -> Floats:
        """Apply Q to one axis of some counts."""
        total = counts.sum(axis=axis, keepdims=True)
        return np.asarray((1.0 - 2.0 * self.off) / self.gap * counts + self.other * total)

    def forward(self, law: Floats, axis: int) -> Floats:
        """Send one axis of a law through the matrix, which is gap I + off J."""
        return np.asarray(self.gap * law + self.off * law.sum(axis=axis, keepdims=True))

    def backward(self, weights: Floats, axis: int) -> Floats:
        """Average weights of outputs; the matrix is symmetric."""
        return self.forward(weights, axis)


def axis_of(kernel: RowKernel) -> Axis:
    """Return the axis that went through a kernel."""
    return merged(kernel, kernel.m) if isinstance(kernel, Symmetric) else Axis(kernel.matrix)


def merged(kernel: Symmetric, size: int) -> Axis:
    """Return the axis of one of ``size`` groups of values, all equally large.

    A value moves within its group as often as into any other: groups see a symmetric channel with
    the same gap. A single group always stays.
    """
    if size == 1:
        return SymmetricAxis(1, 0.0, 1.0)
    return SymmetricAxis(size, kernel.off * (kernel.m // size), kernel.gap)


def moments(counts: Floats, axes: Sequence[Axis]) -> tuple[Floats, Floats]:
    """Estimate true counts from released ones, and the variances of the estimates.

    The estimate of a variance is unbiased; where it falls below the least that n records can
    have, whatever they held, that is taken.
    """
    estimates = counts
    for j, axis in enumerate(axes):
        estimates = axis.estimate(estimates, j)
    variances = estimates
    for j, axis in enumerate(axes):
        variances = axis.spread(variances, j)
    variances = variances - estimates
    own = reduce(np.multiply.outer, [axis.own for axis in axes]) - 1.0
    least = reduce(np.multiply.outer, [axis.least for axis in axes])
    floor = counts.sum() * np.maximum(np.minimum(own, least), 0.0)
    return estimates, np.maximum(variances, floor)


def inverse(matrix: Floats) -> Floats:
    """Invert a channel's matrix, or say that nobody can."""
    if len(matrix) > _INVERTED:
        raise TooLarge.entries(
            "the matrix to invert", matrix.size, "estimate through E_d, or fewer values"
        )
    condition = float(np.linalg.cond(matrix))
    if not condition <= _CONDITION:
        raise InvalidInput(
            f"the mechanism cannot be undone: its matrix has condition number {condition:.3g}, "
            f"beyond {_CONDITION:g}"
        )
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _along(counts: Floats, matrix: Floats, axis: int) -> Floats:
    return np.asarray(np.moveaxis(np.tensordot(counts, matrix, ([axis], [0])), -1, axis))
