"""Laws of sums in logarithms, for sums too rare for a double."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fastpriv._core.validation import Floats


def log_binomials(n: int) -> Floats:
    """Log of n choose k for k = 0 .. n, by sums of logarithms in extended precision."""
    steps = np.arange(n, dtype=np.longdouble)
    logs = np.cumsum(np.log((n - steps) / (steps + 1)))
    return np.concatenate([[0.0], logs]).astype(np.float64)


def log_convolve(a: Floats, b: Floats) -> Floats:
    """Log of the convolution of two arrays given by logs; cost the product of their lengths."""
    if len(a) > len(b):
        a, b = b, a
    out = np.full(len(a) + len(b) - 1, -math.inf)
    for shift in np.flatnonzero(a > -math.inf).tolist():
        part = out[shift : shift + len(b)]
        np.logaddexp(part, a[shift] + b, out=part)
    return out


def log_power(steps: Sequence[tuple[int, float]], count: int) -> Floats:
    """Logs of the law of a sum of ``count`` equal terms, from their values and chances.

    Two values: binomial, O(count). Otherwise one convolution for each term.
    """
    top = max(value for value, _ in steps)
    chances = np.full(top + 1, -math.inf)
    for value, chance in steps:
        chances[value] = math.log(chance)
    if len(steps) == 2:
        (low, first), (high, last) = sorted(steps)
        k = np.arange(count + 1)
        logs = np.full(count * top + 1, -math.inf)
        own = log_binomials(count) + (count - k) * math.log(first) + k * math.log(last)
        logs[low * (count - k) + high * k] = own
        return logs
    total = np.zeros(1)
    for _ in range(count):
        total = log_convolve(total, chances)
    return total
