"""Counts of values: how many databases share them, and all that there are."""

from __future__ import annotations

import math

import numpy as np

from fastpriv._core.validation import Floats


def log_binomials(n: int) -> Floats:
    """Log of n choose k for k = 0 .. n, by sums of logarithms in extended precision."""
    steps = np.arange(n, dtype=np.longdouble)
    logs = np.cumsum(np.log((n - steps) / (steps + 1)))
    return np.concatenate([[0.0], logs]).astype(np.float64)


#: Most bits whose binomials are formed exactly: beyond, these are numbers of thousands of digits.
_EXACT = 4096


def log_class_sizes(n: int, axes: int) -> Floats:
    """Log of the number of databases with each counts (c_1, ..., c_axes), 0 where they exceed n.

    From exact binomials. Those of many bits are long numbers; there sums of logarithms are taken.
    """
    if axes == 1 and n > _EXACT:
        return log_binomials(n)
    tops = [n] if axes == 1 else range(n + 1)
    table = np.zeros((n + 1, n + 1) if axes > 1 else (1, n + 1))
    for top in tops:
        ways = 1
        for k in range(top + 1):
            table[top if axes > 1 else 0, k] = math.log(ways)
            ways = ways * (top - k) // (k + 1)
    if axes == 1:
        return np.asarray(table[0])
    shape = (n + 1,) * axes
    left, logs = np.full(shape, n), np.zeros(shape)
    for counts in np.indices(shape):
        logs += table[np.maximum(left, 0), counts]
        left = left - counts
    return logs
