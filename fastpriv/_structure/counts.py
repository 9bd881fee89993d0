"""Counts of values: how many databases share them, and all that there are."""

from __future__ import annotations

import numpy as np

from fastpriv._core.validation import Floats


def log_binomials(n: int) -> Floats:
    """Log of n choose k for k = 0 .. n, by sums of logarithms in extended precision."""
    steps = np.arange(n, dtype=np.longdouble)
    logs = np.cumsum(np.log((n - steps) / (steps + 1)))
    return np.concatenate([[0.0], logs]).astype(np.float64)
