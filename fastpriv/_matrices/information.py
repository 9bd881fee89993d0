"""Mutual information of a matrix and an input distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import LEAST
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats

#: Smallest matrix whose rows are split over threads.
_THREADED = 1 << 17
#: Kernels take probabilities below 2^-1021 for that one, which matters to information below this.
_LITTLE = 2.0**-960
#: Such information is computed for this multiple of the matrix.
_SCALE = 2.0**900


def in_range(information: Callable[[float], float]) -> float:
    """Return the information of a matrix, given the information of its multiples by powers of two.

    Divergences scale with the matrix. So a divergence that would underflow is computed from a
    larger multiple.
    """
    value = information(1.0)
    return value if value >= _LITTLE else information(_SCALE) / _SCALE


def matrix_information(matrix: Floats, prior: Floats) -> float:
    """Return I(X; Y) of a matrix, as a sum of non-negative terms. Cost O(N K).

    The rows of a large matrix are split over threads.
    """
    if matrix.size < _THREADED:
        return in_range(lambda scale: kernels.mutual_information(scale * matrix, prior))
    count, grain = len(matrix), max(1, _THREADED // matrix.shape[1])
    mass, reference = prior.sum(), matrix[np.argmax(prior)]
    shift = sum(split(partial(kernels.shift_rows, matrix, prior, reference), count, grain)) / mass
    parts = split(partial(kernels.information_rows, matrix, prior, reference, shift), count, grain)
    return math.fsum(parts) / float(mass)


def told_information(matrix: Floats, prior: Floats) -> float:
    """Return the same, or the smallest positive double if different rows give zero."""
    value = matrix_information(matrix, prior)
    if value > 0.0:
        return value
    rows = matrix[prior > 0.0]
    return LEAST if (rows != rows[:1]).any() else 0.0
