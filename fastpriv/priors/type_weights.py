"""Weights of types as arrays: from counts, without a row, with every row sent through a matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv._structure.rows import Symmetric
from fastpriv.errors import InvalidInput


def from_counts(weights: Mapping[Any, float]) -> Floats:
    """Turn a mapping from count tuples to probabilities into the padded array."""
    keys = list(weights)
    if not keys or not all(isinstance(key, tuple) and len(key) >= 2 for key in keys):
        raise InvalidInput("count tuples must be (c_0, ..., c_(m-1)) with m >= 2 entries")
    counts = [tuple(check.integer(c, "a count", 0) for c in key) for key in keys]
    n, m = sum(counts[0]), len(counts[0])
    if any(len(key) != m or sum(key) != n for key in counts):
        raise InvalidInput(f"all count tuples must have {m} entries that add up to {n}")
    check.fits((n + 1) ** (m - 1), "the table of types", "use fewer rows or values")
    array = np.zeros((n + 1,) * (m - 1))
    for key, weight in zip(counts, weights.values(), strict=True):
        array[key[1:]] = check.real(weight, "a weight", 0.0)
    return array


def without_one(weights: Any) -> list[Any]:
    """For each value v: weights over the types of the other rows when one row holds v, times n.

    Entry t of part v is weights[t + e_v] (t_v + 1): n times the probability that a given row
    holds v and the others have type t.
    """
    axes, n = weights.ndim, weights.shape[0] - 1
    counts = np.indices((n,) * axes)
    inside = (slice(0, n),) * axes
    parts = [weights[inside] * np.maximum(n - sum(counts), 0)]
    for axis in range(axes):
        ahead = tuple(slice(1, None) if a == axis else slice(0, n) for a in range(axes))
        parts.append(weights[ahead] * (counts[axis] + 1))
    return parts


def inverse_matrix(kernel: Symmetric) -> Floats:
    """R^-1, written so that its rows sum to one and its signs are right."""
    inverse = np.full((kernel.m, kernel.m), kernel.unmixing)
    np.fill_diagonal(inverse, 1.0 - (kernel.m - 1) * kernel.unmixing)
    return inverse


def substitute(weights: Floats, matrix: Floats) -> Floats:
    """Substitute u_s = sum_y matrix[s, y] z_y in the polynomial sum_t weights[t] u^t."""
    from fastpriv.kernels import multiply_linear, substitute_pair

    n, outputs = weights.shape[0] - 1, matrix.shape[1]
    shape = (n + 1,) * (outputs - 1)
    strides = (n + 1) ** np.arange(outputs - 1, dtype=np.int64)[::-1]
    size = (n + 1) ** (outputs - 1)

    def expand(part: Floats, degree: int) -> Floats:
        """Horner's rule in the last variable, down to two."""
        top = part.ndim
        if top == 1:
            row = np.ascontiguousarray(part)
            return substitute_pair(row, matrix[0], matrix[1], degree, strides, size)
        poly = np.zeros(size)
        for count in range(degree, -1, -1):
            multiply_linear(poly, matrix[top], strides, poly)
            poly += expand(part[..., count], degree - count)
        return poly

    return expand(weights, n).reshape(shape)
