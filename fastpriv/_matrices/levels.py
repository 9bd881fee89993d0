"""The largest ratio of two entries of a column whose rows are neighbours."""

from __future__ import annotations

from functools import partial

from fastpriv import kernels
from fastpriv._core.logs import log_spread
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints

#: Smallest matrix that is split over threads.
_THREADED = 1 << 17


def matrix_level(matrix: Floats, axes: Ints, shift: float = 0.0) -> float:
    """Return ln of the largest ratio of two entries on a line along one axis. Rounded up.

    The rows of the matrix are databases. ``axes`` holds the stride and the size of every axis of
    two or more values. With a shift, the matrix holds entry - shift, for entries close to it.
    Cost O(N K) per axis.
    """
    return log_spread(partial(_spread, matrix, shift, axes), 3 if shift else 2)


def _spread(matrix: Floats, shift: float, axes: Ints, scale: float) -> float:
    if matrix.size < _THREADED:
        return kernels.matrix_spread(matrix, shift, scale, axes, 0, matrix.shape[1])
    task = partial(kernels.matrix_spread, matrix, shift, scale, axes)
    return max(split(task, matrix.shape[1], 512))
