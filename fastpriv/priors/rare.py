"""Laws in logarithms, for what is too rare for a double: sums, and rows given all others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv._matrices.leakage import log_error


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


def rare_ratios(lines: Floats) -> Floats:
    """Largest ln L[s]/L[t] over lines (k, m) given by logs, for every (s, t). Rounded up."""
    m = lines.shape[1]
    worst = np.full((m, m), -math.inf)
    for s in range(m):
        seen = lines[lines[:, s] > -math.inf]
        worst[s] = (seen[:, s : s + 1] - seen).max(axis=0, initial=-math.inf)
        worst[s] += log_error(lines, 0.0) * (np.arange(m) != s)
    return worst


def rare_hat(lines: Floats) -> float:
    """Largest ln(sum L/min L - m + 1) over lines (k, m) given by logs. Rounded up.

    With w = ln(sum L/min L) it is w + ln(1 - (m-1) e^-w).
    """
    m = lines.shape[1]
    seen = lines[lines.max(axis=1) > -math.inf]
    if m == 1 or not len(seen):
        return 0.0
    whole = np.logaddexp.reduce(seen, axis=1) - seen.min(axis=1)
    rest = np.log1p(-(m - 1.0) * np.exp(-np.maximum(whole, math.log(m))))
    # An error of w counts up to m times.
    return max(0.0, float((whole + rest).max())) + float(m * log_error(lines, 0.0))
