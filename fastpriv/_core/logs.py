"""Logarithms of ratios and sums that neither cancel nor overflow; levels are rounded up."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fastpriv._core.rounding import raised
from fastpriv._core.validation import Floats

#: Quotients beyond the range of a double are computed times this power of two.
_SCALE = 2.0**-500
#: Excesses below which f is summed as a series.
_SERIES = 0.05
#: Terms of the series: 0.05^14 is below the unit roundoff.
_TERMS = 14


def log_ratio(top: Floats, bottom: Floats) -> Floats:
    """Elementwise ln(top/bottom) for top > 0, off by 1.25 units of roundoff; inf over zero."""
    from fastpriv.kernels import log_ratios

    if np.result_type(top, bottom) == np.longdouble:
        return _extended_ratio(top, bottom)
    top, bottom = np.broadcast_arrays(top, bottom)
    logs = np.empty(top.shape)
    # Numpy warns of a view of one entry that was broadcast; a copy of it is none.
    flat = np.ravel if logs.size > 1 else np.ndarray.flatten
    log_ratios(flat(top), flat(bottom), logs.reshape(-1))
    return logs


def _extended_ratio(top: Floats, bottom: Floats) -> Floats:
    """Elementwise ln(top/bottom) of numbers in extended precision, by the machine's library."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        excess = (top - bottom) / bottom
        return np.where(np.abs(excess) < 0.5, np.log1p(excess), np.log(top) - np.log(bottom))


def gain(excess: Floats) -> Floats:
    """Elementwise f(d) = (1+d) ln(1+d) - d >= 0, the divergence of 1 + d from 1, in all digits."""
    small = np.where(np.abs(excess) < _SERIES, excess, 0.0)
    series = np.zeros_like(excess)
    for j in range(_TERMS - 1, -1, -1):
        series = series * -small + 1.0 / ((j + 1) * (j + 2))
    large = np.where(excess > -1.0, (1.0 + excess) * np.log1p(excess) - excess, 1.0)
    return np.where(np.abs(excess) < _SERIES, small * small * series, large)


def log_spread(worst: Callable[[float], float], roundings: int) -> float:
    """Return ln(1 + worst(1)), where worst(scale) is a largest quotient times scale. Rounded up.

    The quotient was rounded so many times, by at most one unit of roundoff each. A finite one
    beyond the range of a double is asked for again, scaled down; over zero it stays infinite.
    """
    from fastpriv.kernels import log_excess_up, log_ratio_up

    plain = worst(1.0)
    if plain < math.inf:
        return log_excess_up(plain, roundings)
    return log_ratio_up(raised(worst(_SCALE), roundings + 2.0), _SCALE)


def log_total(maxima: Floats) -> float:
    """Log of the sum of column maxima, which is at least 1, from its exact excess. Rounded up."""
    from fastpriv.kernels import log_excess_up

    return log_excess_up(max(0.0, math.fsum([*maxima.tolist(), -1.0])), 1)
