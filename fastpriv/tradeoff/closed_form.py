"""The privacy-distortion curve that both optimal mechanisms share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import _validation as check
from fastpriv.errors import InvalidInput

__all__ = ["h", "h_inverse"]


def h(epsilon: ArrayLike, n: int, m: int) -> Any:
    """Distortion of E_d (and of E_i) at level epsilon: n / (1 + e^epsilon / (m - 1)).

    Parameters
    ----------
    epsilon : float or array
        Privacy level in nats; infinity gives 0.
    n, m : int
        Number of rows and of values per row.

    Returns
    -------
    float or ndarray
        Expected number of changed rows (Wang-Ying-Zhang 2015, Lemma 1).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.h(0.0, n=10, m=2)
    5.0
    """
    n, m = check.integer(n, "n", 1), check.integer(m, "m", 1)
    level = np.asarray(epsilon, dtype=np.float64)
    if np.isnan(level).any():
        raise InvalidInput("epsilon must not be NaN")
    # Written with e^-|epsilon|, which never overflows.
    r = np.exp(-np.abs(level))
    moved = np.where(level >= 0, (m - 1) * r / (1.0 + (m - 1) * r), (m - 1) / (r + (m - 1.0)))
    return _like(n * moved, epsilon)


def h_inverse(distortion: ArrayLike, n: int, m: int) -> Any:
    """Level at which E_d has the given distortion: ln(n/D - 1) + ln(m - 1).

    Parameters
    ----------
    distortion : float or array
        Expected number of changed rows, between 0 (level infinity) and n (minus infinity).
        Negative beyond n (m-1)/m, the distortion of a uniformly random output.
    n, m : int
        Number of rows, and of values per row (at least 2).

    Returns
    -------
    float or ndarray
        Level in nats (Wang-Ying-Zhang 2015, eq. (17)).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.h_inverse(fp.h(1.5, n=10, m=4), n=10, m=4)
    1.5
    """
    n, m = check.integer(n, "n", 1), check.integer(m, "m", 2)
    cost = np.asarray(distortion, dtype=np.float64)
    if not np.all((cost >= 0) & (cost <= n)):
        raise InvalidInput(f"distortion must lie between 0 and n = {n}")
    # ln((n-D)(m-1)/D) = ln(1 + (n (m-1) - m D)/D). Near level 0 the numerator nearly vanishes:
    # splitting D into a high and a low half makes m D exact.
    high = cost * 134217729.0
    high = high - (high - cost)
    surplus = (n * (m - 1.0) - m * high) - m * (cost - high)
    with np.errstate(divide="ignore"):
        near = np.log1p(np.maximum(surplus / np.where(cost > 0, cost, 1.0), -1.0))
        far = np.log(n - cost) + np.log(m - 1.0) - np.log(cost)
    return _like(np.where(np.abs(surplus) < 0.5 * cost, near, far), distortion)


def _like(values: np.ndarray, given: ArrayLike) -> Any:
    return float(values) if np.ndim(given) == 0 else values
