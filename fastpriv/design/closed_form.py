"""The privacy-distortion curve that both optimal mechanisms share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats
from fastpriv.errors import InvalidInput

__all__ = ["h", "h_inverse"]


def h(epsilon: ArrayLike, n: int, m: int | Sequence[int]) -> Any:
    """Distortion of E_d (and of E_i) at level epsilon: n / (1 + e^epsilon / (m - 1)).

    Parameters
    ----------
    epsilon : float or array
        Privacy level in nats; infinity gives 0.
    n : int
        Number of rows.
    m : int or sequence of int
        Number of values of every row, or of each: the rows' distortions then add.

    Returns
    -------
    float or ndarray
        Expected number of changed rows (Wang-Ying-Zhang 2015, Lemma 1).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.h(0.0, n=10, m=2)
    5.0
    >>> round(fp.h(1.0, n=3, m=[2, 3, 7]), 6)
    1.381034
    """
    counts = Counter(check.row_sizes(n, m))
    level = _array(epsilon, "epsilon")
    total = np.zeros_like(level)
    for size, count in counts.items():
        if size > 1:  # a single value stays
            total += count * _moved(level, size)
    return _like(total, epsilon)


def _moved(level: Floats, m: int) -> Floats:
    """Chance that a row moves: (m-1) / (m - 1 + e^level), written so that nothing overflows."""
    r = np.exp(-np.abs(level))
    return np.where(level >= 0, (m - 1) * r / (1.0 + (m - 1) * r), (m - 1) / (r + (m - 1.0)))


def h_inverse(distortion: ArrayLike, n: int, m: int | Sequence[int]) -> Any:
    """Level at which E_d has the given distortion: ln(n/D - 1) + ln(m - 1).

    Parameters
    ----------
    distortion : float or array
        Expected number of changed rows, between 0 (level infinity) and n (minus infinity).
        Negative beyond n (m-1)/m, the distortion of a uniformly random output.
    n : int
        Number of rows.
    m : int or sequence of int
        Number of values of every row, or of each, at least 2. Where rows differ there is no
        closed form and the level is found by bisection.

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
    sizes = check.row_sizes(n, m)
    if min(sizes) < 2:
        raise InvalidInput("m must be at least 2: a row with one value never changes")
    cost = _array(distortion, "distortion")
    if not np.all((cost >= 0) & (cost <= n)):
        raise InvalidInput(f"distortion must lie between 0 and n = {n}")
    if len(set(sizes)) > 1:
        return _like(_bisect(cost, sizes), distortion)
    size = sizes[0]
    # ln((n-D)(m-1)/D) = ln(1 + (n (m-1) - m D)/D). Near level 0 the numerator nearly vanishes:
    # splitting D into a high and a low half makes m D exact.
    high = cost * 134217729.0
    high = high - (high - cost)
    surplus = (n * (size - 1.0) - size * high) - size * (cost - high)
    with np.errstate(divide="ignore", over="ignore"):
        near = np.log1p(np.maximum(surplus / np.where(cost > 0, cost, 1.0), -1.0))
        far = np.log(n - cost) + np.log(size - 1.0) - np.log(cost)
    return _like(np.where(np.abs(surplus) < 0.5 * cost, near, far), distortion)


def _bisect(cost: Floats, sizes: Sequence[int]) -> Floats:
    """Level of a sum of rows of different sizes; each row's own level brackets it."""
    n, counts = len(sizes), Counter(sizes)
    ends = np.array([h_inverse(cost, n, m) for m in counts])
    low, high = ends.min(axis=0), ends.max(axis=0)
    with np.errstate(invalid="ignore"):
        for _ in range(100):
            middle = 0.5 * (low + high)
            moved = np.sum([c * _moved(middle, m) for m, c in counts.items()], axis=0)
            above = moved > cost
            low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.asarray(np.where(np.isinf(ends[0]), ends[0], high))


def _array(values: ArrayLike, name: str) -> Floats:
    array = check.array(values, name).astype(np.float64)
    if np.isnan(array).any():
        raise InvalidInput(f"{name} must not be NaN")
    return array


def _like(values: Floats, given: ArrayLike) -> Any:
    return float(values) if np.ndim(given) == 0 else values
