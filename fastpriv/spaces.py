"""The set of databases: rows with finitely many values, numbered in C order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.validation import Ints
from fastpriv.errors import InvalidInput, TooLarge, described, short

__all__ = ["Space"]

_INT64 = 1 << 63
_CHUNK = 1 << 20


class Space:
    """All databases of n records, record i taking one of ``sizes[i]`` values.

    Databases are numbered in C order: record 0 is the most significant digit. Every pmf and every
    channel matrix in fastpriv is flat in that order.

    Parameters
    ----------
    sizes : sequence of int
        Number of values of each record, each at least 1.

    Examples
    --------
    >>> import fastpriv as fp
    >>> space = fp.Space([2, 3])
    >>> space.size, space.index([1, 2]), space.rows(5)
    (6, 5, array([1, 2]))
    >>> space.neighbours(0)
    array([3, 1, 2])
    """

    def __init__(self, sizes: ArrayLike) -> None:
        self.sizes: tuple[int, ...] = check.sizes(sizes)

    @classmethod
    def of(cls, sizes: tuple[int, ...]) -> Space:
        """Make a space of sizes that were checked."""
        self = cls.__new__(cls)
        self.sizes = sizes
        return self

    @classmethod
    def hamming(cls, n: int, m: int) -> Space:
        """Return the space of ``n`` records with ``m`` values each."""
        return cls.of(check.row_sizes(n, m))

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.sizes)

    @cached_property
    def size(self) -> int:
        """Number of databases, N, as an exact Python int."""
        return math.prod(m**count for m, count in Counter(self.sizes).items())

    @cached_property
    def m(self) -> int | None:
        """The common number of values per record, or None if records differ."""
        return self.sizes[0] if len(set(self.sizes)) == 1 else None

    @cached_property
    def strides(self) -> NDArray[Any]:
        """Weight of each record in the index: int64, or Python ints where those do not suffice."""
        weights = [1] * self.n
        for i in range(self.n - 1, 0, -1):
            weights[i - 1] = weights[i] * self.sizes[i]
        return np.array(weights, dtype=np.int64 if self.size <= _INT64 else object)

    @cached_property
    def axes(self) -> Ints:
        """Stride and size of every record that has two or more values, as kernels take them."""
        pairs = zip(self.strides.tolist(), self.sizes, strict=True)
        return np.array([(inner, m) for inner, m in pairs if m > 1], np.int64).reshape(-1, 2)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.sizes == other.sizes

    def __hash__(self) -> int:
        return hash(self.sizes)

    def __repr__(self) -> str:
        if self.m is not None:
            return f"Space.hamming(n={self.n}, m={self.m})"
        shown = ", ".join(map(str, self.sizes[:8])) + (", ..." if self.n > 8 else "")
        return f"Space([{shown}])"

    def index(self, rows: ArrayLike) -> Any:
        """Number databases: ``rows`` of shape (..., n) to indices of shape (...).

        Indices are int64, or exact Python ints in an object array where N exceeds 2^63. A single
        database gives a plain int. Cost O(n) per database.
        """
        digits = check.rows(rows, self.sizes)
        if self.strides.dtype == object:
            digits = digits.astype(object)
        indices = (digits * self.strides).sum(axis=-1)
        return int(indices) if digits.ndim == 1 else indices

    def rows(self, index: ArrayLike) -> Ints:
        """Turn indices into databases: shape (...) to (..., n). The inverse of index."""
        indices = check.array(index, "index")
        if indices.dtype.kind not in "iuO":
            raise InvalidInput(
                f"index must hold integers; got {indices.dtype}. Convert it by astype(int)."
            )
        if indices.size and (np.min(indices) < 0 or np.max(indices) >= self.size):
            raise InvalidInput(
                f"index must lie in 0 .. {short(self.size - 1)}; got {described(index)}."
            )
        if len(self.sizes) == 1:  # the index is the value
            return np.asarray(indices[..., None], dtype=np.int64)
        indices = indices.astype(self.strides.dtype)
        digits = indices[..., None] // self.strides % np.array(self.sizes, self.strides.dtype)
        return np.asarray(digits, dtype=np.int64)

    def shell_size(self, l: int) -> int:
        """Count the databases at Hamming distance ``l`` from any one, exactly.

        Coefficient of t^l in the product over records of 1 + (m_i - 1) t. Cost O(l^2) big-integer
        operations per distinct size.
        """
        l = check.integer(l, "l", 0)
        if l > self.n:
            return 0
        if self.m is not None:
            return math.comb(self.n, l) * int((self.m - 1) ** l)
        ways = [1]
        for m, count in Counter(self.sizes).items():
            factor = [math.comb(count, k) * (m - 1) ** k for k in range(min(l, count) + 1)]
            top = min(l, len(ways) + len(factor) - 2)
            ways = [
                sum(ways[j] * factor[k - j] for j in range(len(ways)) if 0 <= k - j < len(factor))
                for k in range(top + 1)
            ]
        return ways[l] if l < len(ways) else 0

    def iter_shell(self, center: int, l: int, chunk: int = _CHUNK) -> Iterator[Ints]:
        """Yield the databases at distance ``l`` from ``center`` in arrays of at most ``chunk``.

        Memory stays at one chunk however large the shell is. Order: by the records changed, then by
        the values they take, starting after the centre's own.

        Examples
        --------
        >>> import fastpriv as fp
        >>> sum(len(part) for part in fp.Space.hamming(40, 2).iter_shell(0, 4))
        91390
        """
        from fastpriv.kernels import fill_shell

        center = check.index(center, self.size, "center")
        l = check.integer(l, "l", 0)
        chunk = check.integer(chunk, "chunk", 1)
        if self.size > _INT64:
            raise TooLarge(
                f"databases of {self!r} have indices beyond 64 bits, which a shell cannot list; "
                "use shell_size, or a space of fewer records."
            )
        delta, start = self._changes(center)
        left = self.shell_size(l)
        # Records with a single value cannot change and are left out.
        start = np.unique(start)
        choice = start[:l].copy()
        while left:
            out = np.empty(min(chunk, left), dtype=np.int64)
            left -= fill_shell(center, delta, start, choice, out)
            yield out

    def _changes(self, center: int) -> tuple[Ints, Ints]:
        """All single-row changes of ``center``: index differences, and where each row's begin."""
        check.fits(sum(self.sizes), "the list of changes", "use records of fewer values")
        digits = self.rows(center)
        start = np.concatenate([[0], np.cumsum(np.asarray(self.sizes, dtype=np.int64) - 1)])
        row = np.repeat(np.arange(self.n), np.diff(start))
        step = np.arange(start[-1]) - start[row] + 1
        size = np.asarray(self.sizes, dtype=np.int64)[row]
        moved = (digits[row] + step) % size - digits[row]
        return moved.astype(self.strides.dtype) * self.strides[row], start

    @property
    def has_neighbours(self) -> bool:
        """Whether some record has two values, so that some databases are neighbours."""
        return max(self.sizes) > 1

    def neighbour_pairs(self, i: int | None = None) -> Iterator[tuple[Ints, Ints]]:
        """Yield all databases beside a neighbour of each, for every change of a record's value.

        With ``i`` only that record changes.
        """
        index = np.arange(self.size)
        for record in range(self.n) if i is None else (i,):
            lines = index.reshape(-1, self.sizes[record], int(self.strides[record]))
            for step in range(1, self.sizes[record]):
                yield index, np.roll(lines, step, axis=1).reshape(-1)

    def shell(self, center: int, l: int) -> Ints:
        """List the databases at distance ``l`` from ``center``. Cost O(shell size)."""
        check.fits(self.shell_size(l), "this shell", "use iter_shell")
        parts = list(self.iter_shell(center, l, max(self.shell_size(l), 1)))
        return parts[0] if parts else np.empty(0, dtype=np.int64)

    def neighbours(self, x: int) -> NDArray[Any]:
        """List the databases that differ from ``x`` in exactly one record. Cost O(sum of sizes)."""
        x = check.index(x, self.size, "x")
        changes, _ = self._changes(x)
        return changes + x
