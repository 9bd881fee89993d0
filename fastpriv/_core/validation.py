"""Checks at the public boundary: done once, in words, and trusted afterwards."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv.errors import InvalidInput, TooLarge, described, did_you_mean, short

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How far a distribution may be from summing to one before it is taken for a mistake.
SUM_TOLERANCE = 1e-9
#: Most entries of a vector over databases that a structured object expands into.
MAX_VECTOR = 1 << 28
#: Most entries of a matrix that a structured channel expands into.
MAX_MATRIX = 1 << 27
#: Most records or rows of a count that no array is made of, exact in a double after a product.
MAX_COUNT = 1 << 62
#: Most points of a curve, each of which is computed.
MAX_POINTS = 1 << 20
#: What arrays of one, two and three axes are called.
_AXES = {
    1: "a list of numbers (1-D)",
    2: "a list of rows (2-D)",
    3: "a stack of matrices (3-D)",
}
#: Most characters of a list of known words in a message.
_LISTED = 120
#: Distributions further from one than a rounded sum can be are divided by their sum.
ROUNDED = 1e-14


def path(value: Any, name: str) -> Path:
    """Return the path of a file."""
    given = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(given, str) or not given or "\0" in given:
        raise InvalidInput(f"{name} must be the path of a file; got {described(value)}.")
    return Path(given)


def integer(value: Any, name: str, least: int, most: int | None = None) -> int:
    """Return ``value`` as a Python int from ``least`` to ``most``, if there is one."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InvalidInput(
            f"{name} must be an integer; got {described(value)}.{_convert(value, 'round')}"
        ) from None
    if number < least:
        raise InvalidInput(f"{name} must be at least {least}; got {short(number)}.")
    if most is not None and number > most:
        raise InvalidInput(f"{name} must be at most {short(most)}; got {short(number)}.")
    return number


def real(value: Any, name: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Return ``value`` as a finite float in ``[least, most]``."""
    try:
        if isinstance(value, str | bytes | bool | np.bool_):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"{name} must be a number; got {described(value)}.{_convert(value)}"
        ) from None
    if not math.isfinite(number) or not least <= number <= most:
        share = (
            " Divide a percentage by 100, or a count by its total." if 1.0 == most < number else ""
        )
        raise InvalidInput(
            f"{name} must be a finite number{_range(least, most)}; got {number}.{share}"
        )
    return number


def _convert(value: Any, function: str = "float") -> str:
    """Return what to do with a text, or with a fraction where an integer is due."""
    if isinstance(value, str) and _is_number(value):
        return f" Give it without quotes, as {value.strip()}."
    if function == "round" and isinstance(value, float) and math.isfinite(value):
        return f" Round it, such as to {math.ceil(value)}."
    return ""


def word(value: Any, name: str, known: Collection[str], listed: str | None = None) -> str:
    """Return ``value``, one of the known words; ``listed`` says where many of them can be read."""
    if not isinstance(value, str) or value not in known:
        near = did_you_mean(value, known)
        raise InvalidInput(
            f"unknown {name} {described(value)}{near} It must be one of {listed or _some(known)}."
            if near
            else f"{name} must be one of {listed or _some(known)}; got {described(value)}."
        )
    return value


def _some(known: Collection[str]) -> str:
    """List known words, the first of them where they are many."""
    text = ", ".join(known)
    if len(text) <= _LISTED:
        return text
    return f"{text[: text.rindex(', ', 0, _LISTED)]}, ... ({len(known)} in all)"


def text(value: Any, name: str) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a text; got {described(value)}.")
    return value


def flag(value: Any, name: str) -> bool:
    """Return ``value`` as True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} must be True or False; got {described(value)}.")
    return bool(value)


def mapping(value: Any, name: str) -> Mapping[Any, Any]:
    """Return ``value``, a mapping such as a dict."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{name} must be a mapping, such as a dict; got {described(value)}.")
    return value


def endless(value: Any) -> bool:
    """Whether ``value`` is the float infinity; arrays, which compare by entry, are not."""
    return isinstance(value, float) and value == math.inf


def limit(value: Any, name: str) -> float:
    """Return ``value`` as a number of seconds of at least 0; infinity is no limit."""
    return math.inf if endless(value) else real(value, name, least=0.0)


def optional_limit(value: Any, name: str) -> float | None:
    """Return ``value`` as a number of seconds of at least 0, or None, which bounds the work."""
    return None if value is None else real(value, name, least=0.0)


def _range(least: float, most: float) -> str:
    if math.isinf(most):
        return "" if math.isinf(least) else f" of at least {least:g}"
    return f" between {least:g} and {most:g}"


def items(values: Any, name: str, what: str) -> list[Any]:
    """Return the items of a sequence or another iterable; ``what`` says what they are."""
    if isinstance(values, memoryview):  # those of several axes cannot be iterated over
        values = np.asarray(values)
    try:
        return list(values)
    except (TypeError, OverflowError):  # a range may have more items than a list
        raise InvalidInput(
            f"{name} must be a sequence of {what}; got {described(values)}."
        ) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def array(values: Any, name: str) -> NDArray[Any]:
    """Return ``values`` as an array of real numbers, refusing what numpy would bend into one."""
    if isinstance(values, str) and _is_number(values):
        raise InvalidInput(
            f"{name} must be a number or an array of numbers; got the text {described(values)}. "
            f"Use float({described(values)})."
        )
    if isinstance(values, str | os.PathLike):
        made = "Use a class, such as fastpriv.Uniform(n, m), or read" if name == "prior" else "Read"
        raise InvalidInput(
            f"{name} must be an array; got {described(values)}. {made} a file first, such as by "
            "numpy.loadtxt(path, delimiter=',')."
        )
    try:
        result = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(
            f"{name} must be a rectangular array of numbers. Give all its rows the same length."
        ) from None
    if result.dtype.kind == "O":  # Fractions, mpmath numbers, huge ints
        try:
            numbers = result.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            kind = type(values).__name__  # its content may be private
            raise InvalidInput(
                f"{name} must hold numbers within the range of a double; got a {kind}."
            ) from None
        whole = all(isinstance(v, int) and not isinstance(v, bool) for v in result.flat)
        return result if whole else numbers
    if result.dtype.kind not in "iufb":
        raise InvalidInput(
            f"{name} must hold real numbers; got {result.dtype}. Convert it to floats."
        )
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        raise InvalidInput(f"{name} must not have masked entries. Fill or drop them.")
    return result


def floats(values: ArrayLike, name: str, ndim: int) -> Floats:
    """Return ``values`` as a contiguous, writeable float array of finite entries of at least 0."""
    given = array(values, name)
    if given.ndim != ndim:
        axes = _AXES.get(ndim, f"an array of {ndim} dimensions")
        raise InvalidInput(f"{name} must be {axes}; got shape {given.shape}.")
    if given.size == 0:
        raise InvalidInput(f"{name} must not be empty. Give at least one number.")
    result = _for_kernels(given)
    least, most = result.min(), result.max()
    if not (least >= 0.0 and most < math.inf):  # written so that a NaN fails
        culprit = "a NaN" if math.isnan(least) else str(least if not least >= 0 else most)
        raise InvalidInput(f"{name} must hold finite numbers of at least 0; got {culprit}.")
    return result


def _for_kernels(values: NDArray[Any]) -> Floats:
    """Return what kernels are compiled for: doubles in C order that may be written to."""
    return np.require(values, np.float64, ["C", "W"])


def law(values: ArrayLike, name: str, ndim: int = 1) -> Floats:
    """Return a probability distribution: non-negative, summing to one within ``SUM_TOLERANCE``."""
    if ndim == 1 and _are_laws(values, 1):
        return np.array(values)
    result = floats(values, name, ndim)
    with np.errstate(over="ignore"):
        total = float(result.sum())
    if not abs(total - 1.0) <= SUM_TOLERANCE:
        raise InvalidInput(
            f"{name} must sum to 1 within {SUM_TOLERANCE:g}; got a sum of {described(total)}"
            f"{_percent(total)}. Divide it by its sum."
        )
    return result / total if abs(total - 1.0) > ROUNDED else owned(result, values)


def stochastic(values: ArrayLike, name: str) -> Floats:
    """Return a row-stochastic matrix: every row is a distribution over the outputs."""
    if _are_laws(values, 2):
        return np.array(values)
    result = floats(values, name, 2)
    with np.errstate(over="ignore"):
        totals = result.sum(axis=1)
    off = np.abs(totals - 1.0)
    worst = off.max()
    if not worst <= SUM_TOLERANCE:
        wrong = np.flatnonzero(~(off <= SUM_TOLERANCE))
        total = float(totals[wrong[0]])
        hint = _percent(total)
        if np.all(np.abs(result.sum(axis=0) - 1.0) <= SUM_TOLERANCE):
            hint = "; all columns sum to 1, so it may be transposed: try W.T"
        raise InvalidInput(
            f"every row of {name} must sum to 1 within {SUM_TOLERANCE:g} (rows are inputs, columns "
            f"outputs); {len(wrong)} of {len(totals)} do not, and row {wrong[0]} sums to "
            f"{described(total)}{hint}. To normalise: W / W.sum(axis=1, keepdims=True)."
        )
    if worst > ROUNDED:
        return np.asarray(result / totals[:, None])
    return owned(result, values)


def _are_laws(values: object, ndim: int) -> bool:
    """Whether it is a plain array of rows that need no repair: the usual case, in one pass."""
    if type(values) is not np.ndarray or values.dtype != np.float64 or values.ndim != ndim:
        return False
    if not values.flags.carray or values.size == 0:
        return False
    from fastpriv.kernels import are_channels

    return are_channels(values.reshape(1, -1, values.shape[-1]), ROUNDED)


def metric(values: ArrayLike, inputs: int, outputs: int | None = None) -> Floats:
    """Return metric[x, y], finite costs with a row per input and any (or the given) columns."""
    result = _for_kernels(array(values, "metric"))
    wrong = result.ndim != 2 or result.shape[0] != inputs or result.size == 0
    if wrong or result.shape[1] != (outputs or result.shape[1]):
        columns = "any number of" if outputs is None else short(outputs)
        raise InvalidInput(
            f"metric[x, y] must have a row for each of {short(inputs)} inputs and a column for "
            f"each of {columns} outputs; got shape {result.shape}."
        )
    if not np.isfinite(result).all():
        raise InvalidInput(
            "metric must hold finite numbers; found a NaN or an infinity. Give finite costs."
        )
    return result


def covariance(values: ArrayLike, name: str) -> Floats:
    """Return a symmetric matrix of finite numbers; one number is a matrix of one entry."""
    given = array(values, name)
    result = np.atleast_2d(given.astype(np.float64))
    if given.ndim not in (0, 2) or result.size == 0 or result.shape[0] != result.shape[1]:
        raise InvalidInput(f"{name} must be a number or a square matrix; got shape {given.shape}.")
    if not np.isfinite(result).all():
        raise InvalidInput(f"{name} must hold finite numbers; got a NaN or an infinity.")
    if np.abs(result - result.T).max() > SUM_TOLERANCE * np.abs(result).max():
        raise InvalidInput(f"{name} must be symmetric. To average both halves: (C + C.T) / 2.")
    return np.asarray(0.5 * result + 0.5 * result.T)


def _percent(total: float) -> str:
    return " (percentages? divide by 100)" if abs(total - 100.0) < 1.0 else ""


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
    given = array(values, name)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iuO":
        raise InvalidInput(
            f"{name} must be a non-empty sequence of integers; got {described(values)}."
        )
    if given.min() < 1:
        raise InvalidInput(f"{name} must all be at least 1; got {int(given.min())}.")
    if given.max() > MAX_VECTOR:
        raise TooLarge.entries(
            "the distribution of a record", int(given.max()), "use records of fewer values"
        )
    result: list[int] = given.tolist()
    return tuple(result)


def row_sizes(n: Any, m: Any) -> tuple[int, ...]:
    """Return the sizes of ``n`` rows from one ``m`` for all of them or one for each."""
    count = integer(n, "n", 1)
    fits(count, "a database", "use fewer records")
    if isinstance(m, Sequence) or np.ndim(m) > 0:
        given = sizes(m, "m")
        if len(given) != count:
            raise InvalidInput(
                f"m must be one integer or one for each of {n} rows; got {len(given)}."
            )
        return given
    size = integer(m, "m", 1)
    fits(size, "the distribution of a record", "use records of fewer values")
    return (size,) * count


def codes(values: ArrayLike, of: tuple[int, ...], m: int | None = None) -> NDArray[Any]:
    """Return databases of shape ``(..., n)`` in their own dtype, every value in its range.

    ``m`` is the number of values of every row, where there is one and it is known.
    """
    given = array(values, "rows")
    n = len(of)
    if given.ndim == 0 or given.shape[-1] != n or given.dtype.kind not in "iub":
        raise InvalidInput(
            f"rows must be an integer array whose last axis has n = {n} entries, "
            f"got shape {given.shape} of {given.dtype}."
        )
    tops = given.max(initial=0) if m else given.max(axis=tuple(range(given.ndim - 1)), initial=0)
    # Extremes first: a mask of every value is only made to name a wrong one.
    if given.size and not (given.min() >= 0 and np.all(tops < (m or np.asarray(of)))):
        outside = (given < 0) | (given >= np.asarray(of))
        place = np.argwhere(outside)[0]
        i = int(place[-1])
        raise InvalidInput(
            f"record {i} must have a value in 0 .. {of[i] - 1} (0 .. size - 1); got "
            f"{given[tuple(place)]}."
        )
    return given


def rows(values: ArrayLike, of: tuple[int, ...]) -> Ints:
    """Return databases as a 64-bit array of shape ``(..., n)`` with every value in its range."""
    return np.ascontiguousarray(codes(values, of), dtype=np.int64)


def index(value: Any, size: int, name: str) -> int:
    """Return a database index as a Python int in ``[0, size)``."""
    number = integer(value, name, 0)
    if number >= size:
        raise InvalidInput(
            f"{name} must be below the number of databases {short(size)}; got {short(number)}."
        )
    return number


def fits(count: int, what: str, instead: str, limit: int = MAX_VECTOR) -> None:
    """Raise :class:`TooLarge` when an array of ``count`` entries is not to be formed."""
    if count > limit:
        raise TooLarge.entries(what, count, instead)


def generator(rng: Any) -> np.random.Generator:
    """Return the given generator, or one seeded from the operating system's entropy."""
    if rng is None or isinstance(rng, np.random.SeedSequence):
        return np.random.default_rng(rng)
    if isinstance(rng, int | np.integer):
        return np.random.default_rng(integer(rng, "rng", 0))
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(
            f"rng must be a numpy.random.Generator, an int or None; got {described(rng)}."
        )
    return rng
