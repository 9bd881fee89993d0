"""Logarithms of ratios and sums that neither cancel nor overflow; levels are rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fastpriv._core.rounding import round_up
from fastpriv._core.validation import Floats

#: Quotients beyond the range of a double are computed times this power of two.
_SCALE = 2.0**-500
#: Excesses below which f is summed as a series, and its number of terms.
_SERIES, _TERMS = 0.05, 14


def log_ratio(top: Floats, bottom: Floats) -> Floats:
    """Elementwise ln(top/bottom) for top > 0, without cancellation near 1; inf over zero."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        excess = (top - bottom) / bottom
        quotient = top / bottom
        logs = np.log(quotient)
        # Logarithms are subtracted only where the quotient leaves the range of a double
        # (1 / 1e-320): of two tiny numbers they are large, and their difference has lost digits.
        inside = (quotient > 1e-300) & (quotient < math.inf)
        if not inside.all():
            logs = np.where(inside, logs, np.log(top) - np.log(bottom))
        return np.where(np.abs(excess) < 0.5, np.log1p(excess), logs)


def gain(excess: Floats) -> Floats:
    """Elementwise f(d) = (1+d) ln(1+d) - d >= 0, the divergence of 1 + d from 1, in all digits."""
    small = np.where(np.abs(excess) < _SERIES, excess, 0.0)
    series = np.zeros_like(excess)
    for j in range(_TERMS - 1, -1, -1):
        series = series * -small + 1.0 / ((j + 1) * (j + 2))
    large = np.where(excess > -1.0, (1.0 + excess) * np.log1p(excess) - excess, 1.0)
    return np.where(np.abs(excess) < _SERIES, small * small * series, large)


def log_spread(worst: Callable[[float], float]) -> float:
    """Return ln(1 + worst(1)), where worst(scale) is a largest quotient times scale.

    A finite quotient beyond the range of a double is asked for again, scaled down; a quotient
    over zero stays infinite.
    """
    plain = worst(1.0)
    if plain < math.inf:
        return math.log1p(plain)
    scaled = worst(_SCALE)
    return math.log(scaled) - math.log(_SCALE) if scaled < math.inf else math.inf


def log_total(maxima: Floats) -> float:
    """Log of the sum of column maxima, which is at least 1, from its exact excess. Rounded up."""
    return round_up(math.log1p(max(0.0, math.fsum([*maxima.tolist(), -1.0]))))
