"""Checks at the public boundary: done once, in words, and trusted afterwards."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv.errors import InvalidInput, TooLarge

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How far a law may be from summing to one before it is taken for a mistake.
SUM_TOLERANCE = 1e-9
#: Most entries of a vector over databases that a structured object expands into.
MAX_VECTOR = 1 << 28
#: Most entries of a matrix that a structured channel expands into.
MAX_MATRIX = 1 << 27


def integer(value: Any, name: str, least: int) -> int:
    """Return ``value`` as a Python int that is at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidInput(f"{name} must be an integer, got {value!r}") from None
    if number < least:
        raise InvalidInput(f"{name} must be at least {least}, got {number}")
    return number


def real(value: Any, name: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Return ``value`` as a finite float in ``[least, most]``."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(number) or not least <= number <= most:
        raise InvalidInput(f"{name} must be a finite number {_range(least, most)}, got {number}")
    return number


def _range(least: float, most: float) -> str:
    if math.isinf(most):
        return "" if math.isinf(least) else f"of at least {least:g}"
    return f"between {least:g} and {most:g}"


def floats(values: ArrayLike, name: str, ndim: int) -> Floats:
    """Return ``values`` as a C-contiguous float array with finite, non-negative entries."""
    try:
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be an array of numbers") from None
    if np.ndim(values) == 0 or array.ndim != ndim:  # ascontiguousarray makes scalars 1-D
        raise InvalidInput(f"{name} must have {ndim} dimension(s), got shape {np.shape(values)}")
    if array.size == 0:
        raise InvalidInput(f"{name} must not be empty")
    least, most = array.min(), array.max()
    if not (least >= 0.0 and most < math.inf):  # written so that a NaN fails
        raise InvalidInput(
            f"{name} must hold finite numbers of at least 0, found "
            f"{'a NaN' if math.isnan(least) else least if not least >= 0 else most}"
        )
    return array


def law(values: ArrayLike, name: str, ndim: int = 1) -> Floats:
    """Return a probability law: non-negative, summing to one within ``SUM_TOLERANCE``."""
    array = floats(values, name, ndim)
    total = float(array.sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise InvalidInput(f"{name} must sum to 1, got a sum of {total!r}; divide it by its sum")
    return owned(array, values)


def stochastic(values: ArrayLike, name: str) -> Floats:
    """Return a row-stochastic matrix: every row is a law over the outputs."""
    array = floats(values, name, 2)
    totals = array.sum(axis=1)
    worst = int(np.argmax(np.abs(totals - 1.0)))
    if abs(totals[worst] - 1.0) > SUM_TOLERANCE:
        raise InvalidInput(
            f"every row of {name} must sum to 1 (rows are inputs, columns outputs), "
            f"but row {worst} sums to {totals[worst]!r}"
        )
    return owned(array, values)


def owned(array: Floats, given: object) -> Floats:
    """Copy ``array`` if it is the caller's own memory, so that nobody can change it under us.

    What is stored stays writeable: numba compiles a second kernel for read-only arrays.
    """
    return array.copy() if np.may_share_memory(array, np.asarray(given)) else array


def shown(array: Floats) -> Floats:
    """Return a read-only view of an array we keep."""
    view = array.view()
    view.flags.writeable = False
    return view


def sizes(values: Sequence[int] | ArrayLike, name: str = "sizes") -> tuple[int, ...]:
    """Return row sizes as a tuple of ints, each at least 1."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} must be a non-empty sequence of integers, got {values!r:.80}")
    if array.min() < 1:
        raise InvalidInput(f"{name} must all be at least 1, got {int(array.min())}")
    found: list[int] = array.tolist()
    return tuple(found)


def row_sizes(n: Any, m: Any) -> tuple[int, ...]:
    """Return the sizes of ``n`` rows from one ``m`` for all of them or one for each."""
    count = integer(n, "n", 1)
    if np.ndim(m) == 0:
        return (integer(m, "m", 1),) * count
    given = sizes(m, "m")
    if len(given) != count:
        raise InvalidInput(
            f"m must be one integer or one for each of n = {n} rows, got {len(given)}"
        )
    return given


def rows(values: ArrayLike, of: tuple[int, ...]) -> Ints:
    """Return databases as an integer array of shape ``(..., n)`` with every value in its range."""
    array = np.asarray(values)
    n = len(of)
    if array.ndim == 0 or array.shape[-1] != n or array.dtype.kind not in "iub":
        raise InvalidInput(
            f"rows must be an integer array whose last axis has n = {n} entries, "
            f"got shape {array.shape} of {array.dtype}"
        )
    array = np.ascontiguousarray(array, dtype=np.int64)
    low, high = (array < 0).any(), (array >= np.asarray(of)).any()
    if low or high:
        raise InvalidInput("every row value must lie in 0 .. size - 1 of its row")
    return array


def index(value: Any, size: int, name: str) -> int:
    """Return a database index as a Python int in ``[0, size)``."""
    number = integer(value, name, 0)
    if number >= size:
        raise InvalidInput(f"{name} must be below the number of databases {size}, got {number}")
    return number


def fits(count: int, what: str, instead: str, limit: int = MAX_VECTOR) -> None:
    """Raise :class:`TooLarge` when an array of ``count`` entries is not to be formed."""
    if count > limit:
        raise TooLarge.entries(what, count, instead)


def generator(rng: Any) -> np.random.Generator:
    """Return the given generator, or one seeded from the operating system's entropy."""
    if rng is None or isinstance(rng, int | np.integer | np.random.SeedSequence):
        return np.random.default_rng(rng)
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"rng must be a numpy.random.Generator, an int or None, got {rng!r}")
    return rng
