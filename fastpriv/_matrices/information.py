"""Mutual information of a matrix and an input law."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from fastpriv import kernels
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats

#: Smallest matrix whose rows are split over threads.
_THREADED = 1 << 17
#: Information below is computed again from a larger multiple of the matrix, which is exact:
#: kernels take chances below 2^-1021 for that one.
_LITTLE, _SCALE = 2.0**-960, 2.0**900


def matrix_information(matrix: Floats, prior: Floats) -> float:
    """Return I(X; Y) of a matrix, as a sum of non-negative terms. Cost O(N K).

    The rows of a large matrix are split over threads.
    """
    if matrix.size < _THREADED:
        value = kernels.mutual_information(matrix, prior)
        if value < _LITTLE:
            value = kernels.mutual_information(matrix * _SCALE, prior) / _SCALE
        return value
    count, grain = len(matrix), max(1, _THREADED // matrix.shape[1])
    mass, reference = prior.sum(), matrix[np.argmax(prior)]
    shift = sum(split(partial(kernels.shift_rows, matrix, prior, reference), count, grain)) / mass
    parts = split(partial(kernels.information_rows, matrix, prior, reference, shift), count, grain)
    return math.fsum(parts) / float(mass)
