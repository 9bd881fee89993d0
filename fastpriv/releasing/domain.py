"""Which values every column of a table can take, and the digest of a table.

A domain is declared, never guessed from the data. It turns a record into a vector of codes, one
per column. A :class:`Digest` recognises a table by the codes of its records.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check
from fastpriv.errors import InvalidInput, described
from fastpriv.spaces import Space

#: Codes of values, one column of the array per column of the table.
Digits = NDArray[Any]

#: Sources of a domain, as reports print them.
DECLARED = "declared"
FROM_DATA = "read from the data, which it may give away"
#: What a mechanism takes as its input: a record as one value, its columns, or the whole table.
RECORD = "record"
COLUMNS = "columns"
TABLE = "table"
#: Most names or values that a message lists.
_NAMED = 8
#: Most characters of all of them.
_NAMED_LENGTH = 60
#: Records hashed at a time: their words stay in the cache of a processor.
_CHUNK = 1 << 14
#: The shifts and multipliers of SplitMix64 (Steele, Lea and Flood 2014).
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31


@dataclass(frozen=True)
class Domain:
    """The columns of a table and the values of each; a record is one of ``size`` values.

    Records are numbered in C order: the first column is the most significant digit. ``None``
    stands for a missing value.
    """

    columns: tuple[Hashable, ...]
    values: tuple[Sequence[Any], ...]
    source: str = DECLARED

    @cached_property
    def space(self) -> Space:
        """A record as a database with one row per column."""
        return Space([len(column) for column in self.values])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each column."""
        return self.space.sizes

    @property
    def size(self) -> int:
        """Number of values of a record: the product of the column sizes."""
        return self.space.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest integers that hold the code of any column."""
        return np.min_scalar_type(max(self.sizes) - 1)

    def records(self, digits: Digits) -> NDArray[Any]:
        """Number records by the codes of their columns."""
        if len(self.columns) == 1:
            return digits[:, 0]
        numbers = np.zeros(len(digits), dtype=np.min_scalar_type(self.size))
        for j, size in enumerate(self.sizes):
            numbers *= numbers.dtype.type(size)
            numbers += digits[:, j].astype(numbers.dtype)
        return numbers

    def digits(self, records: NDArray[Any]) -> Digits:
        """Return the codes of the columns of numbered records: the inverse of records."""
        if len(self.columns) == 1:
            return records[:, None]
        digits = np.empty((len(records), len(self.columns)), dtype=self.dtype)
        rest = records
        for j in range(len(self.columns) - 1, 0, -1):
            rest, digits[:, j] = np.divmod(rest, rest.dtype.type(self.sizes[j]))
        digits[:, 0] = rest
        return digits


def read(given: Any) -> Domain:
    """Return a declared domain: a mapping, the path of a JSON file, or sizes for coded columns."""
    if isinstance(given, Domain):
        return given
    if isinstance(given, str | os.PathLike):
        given = _load(Path(given))
    if isinstance(given, Mapping):
        return make(given.items())
    sizes = check.sizes(_sizes(given), "domain")
    return Domain(tuple(range(len(sizes))), tuple(map(range, sizes)))


def _sizes(given: Any) -> Any:
    """Return sizes of coded columns; refuse names or values without their columns."""
    if isinstance(given, int | np.integer):
        return [given]
    if isinstance(given, list | tuple) and any(isinstance(each, str) for each in given):
        raise InvalidInput(
            'domain must be a mapping {"column": [values]}, or sizes such as [2, 3] for codes; '
            f"got {described(given)}. Name the column of the values."
        )
    return getattr(given, "sizes", given)  # of a Space


def make(items: Iterable[tuple[Hashable, Any]], source: str = DECLARED) -> Domain:
    """Check columns and their values, which must be scalars and differ from each other."""
    columns, values = [], []
    for name, listed in items:
        if isinstance(listed, str | bytes | Mapping) or not isinstance(listed, Iterable):
            raise InvalidInput(
                f"the domain of column {described(name)} must be a list of its values; got "
                f"{described(listed)}."
            )
        columns.append(name)
        values.append(_distinct(name, tuple(map(scalar, listed))))
    if not columns:
        raise InvalidInput('the domain has no columns. Declare it as {"column": [values]}.')
    return Domain(tuple(columns), tuple(values), source)


def _distinct(name: Hashable, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise InvalidInput(
            f"the domain of column {described(name)} lists no values. "
            "List every value that can occur."
        )
    seen: set[Hashable] = set()
    for value in values:
        if not isinstance(value, Hashable):
            raise InvalidInput(
                f"the domain of column {described(name)} must list plain values; got "
                f"{described(value)}."
            )
        if value in seen:
            raise InvalidInput(
                f"the domain of column {described(name)} lists {described(value)} twice (1, 1.0 "
                "and True are one). "
                "Remove one of them."
            )
        seen.add(value)
    return values


def scalar(value: Any) -> Any:
    """Return a plain Python value; None for NaN, NaT and NA."""
    if isinstance(value, np.datetime64 | np.timedelta64):  # in nanoseconds they become integers
        unit = "datetime64[us]" if isinstance(value, np.datetime64) else "timedelta64[us]"
        value = value.astype(unit).item()
    elif isinstance(value, np.generic):
        value = value.item()
    elif hasattr(value, "as_py"):  # pyarrow
        value = value.as_py()
    return None if value is None or is_missing(value) else value


def is_missing(value: Any) -> bool:
    """Whether a value is a NaN, pandas' NA or NaT: none of them equals itself."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth, arrays more than one
        return type(value).__name__ == "NAType"


def refuse(columns: Sequence[Hashable]) -> InvalidInput:
    """Build the error for a table without a domain, with a template to fill in."""
    shown = ", ".join(f'"{name!s:.20}": [...]' for name in columns[:2])
    more = ", ..." if len(columns) > 2 else ""
    return InvalidInput(
        f"domain must declare the values of each column: domain={{{shown}{more}}} (--domain, a "
        "JSON file). accept='domain-from-data' (--accept-domain-from-data) reveals which values "
        "occur."
    )


def named(values: Sequence[Any]) -> str:
    """List the first names or values for a message, as many as are short together."""
    texts = [described(value) for value in values[:_NAMED]]
    while len(texts) > 1 and len(", ".join(texts)) > _NAMED_LENGTH:
        texts.pop()
    return ", ".join(texts) + (", ..." if len(texts) < len(values) else "")


def record_name(row: int) -> str:
    """Name a record in messages: counted from 1, and as an index from 0."""
    return f"record {row} (index {row - 1})"


def outside(name: Hashable, row: int, value: Any, domain: Domain, count: int = 1) -> InvalidInput:
    """Build the error for a value that the domain does not list; records count from 1.

    The value is private and messages end up in logs, so that only its type is named.
    """
    listed = domain.values[domain.columns.index(name)]
    more = f" (and {count - 1} more records)" if count > 1 else ""
    missing = value is None or value == ""
    what = "a missing value" if missing else f"a value (of type {type(value).__name__})"
    hint = (
        "to allow missing values list null (None)"
        if missing
        else "list the value if it is possible"
    )
    return InvalidInput(
        f"{record_name(row)} has {what} in column {described(name)}{more}, which its domain does "
        f"not list ({named(listed)}); nothing was released. Correct the record, or {hint}."
    )


def code_table(name: Hashable, domain: Domain, uniques: Iterable[Any]) -> NDArray[np.int64]:
    """Return the code of each distinct value, then of a missing one; -1 outside the domain."""
    codes = {value: k for k, value in enumerate(domain.values[domain.columns.index(name)])}
    listed = [codes.get(v, -1) if isinstance(v, Hashable) else -1 for v in map(scalar, uniques)]
    return np.array([*listed, codes.get(None, -1)], dtype=np.int64)


def _load(path: Path) -> Mapping[str, Any]:
    try:
        declared = json.loads(path.read_text("utf-8-sig"), object_pairs_hook=_unique_keys)
    except OSError as problem:
        raise InvalidInput(
            f"cannot read the domain {path!s:.100}: {problem.strerror}. Check the path."
        ) from None
    except (ValueError, RecursionError) as problem:  # bad JSON, bad UTF-8, brackets too deep
        raise InvalidInput(
            f'the domain {path!s:.100} must be valid JSON such as {{"smokes": ["no", "yes"]}}: '
            f"{problem}."
        ) from None
    if not isinstance(declared, Mapping):
        raise InvalidInput(
            f'the domain {path} must be a JSON object {{"column": [values]}}. List the values '
            "of each column."
        )
    return declared


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(
            f"it must name every column once; {described(twice)} stands there twice. Remove one."
        )
    return document


# The digest of a table: of its records, in any order and any format.
#
# With words k_0, k_1, ... that are expanded from a random key, the digest of records with codes
# c_1, c_2, ... is the sum over records of mix(k_0 + k_1 c_1 + k_2 c_2 + ...) modulo 2^64, where mix
# is the bijection that ends a step of the generator SplitMix64. Messages of local mechanisms count
# as the integers they consist of. A sum does not depend on the order of the records or on how they
# are read in parts; codes do not depend on the file format or the order of its columns.
#
# Two records get the same word with probability 2^-(64 - t), if 2^t divides their difference in
# some column and no smaller power of two does so in another. Another table has the same digest by
# accident with about that probability. The digest is no protection against somebody who knows the
# key and forges a table.


@dataclass(frozen=True)
class Digest:
    """The digest of some records under a key."""

    key: bytes
    total: int = 0

    def plus(self, digits: Digits) -> Digest:
        """Return the digest with more records; ``digits`` has one row for each record."""
        width = digits.shape[1]
        words = np.frombuffer(hashlib.shake_256(self.key).digest(8 * (width + 1)), "<u8")
        total = self.total
        for start in range(0, len(digits), _CHUNK):
            total += _sum_of_mixed(digits[start : start + _CHUNK], words)
        return replace(self, total=total % 2**64)

    def joined(self, other: Digest) -> Digest:
        """Return the digest of the records of both; the keys must be the same."""
        return replace(self, total=(self.total + other.total) % 2**64)


def _sum_of_mixed(digits: Digits, words: NDArray[np.uint64]) -> int:
    mixed = np.full(len(digits), words[0], np.uint64)
    for j, word in enumerate(words[1:]):
        mixed += digits[:, j].astype(np.uint64) * word
    for shift, multiplier in _STEPS:
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(multiplier)
    mixed ^= mixed >> np.uint64(_LAST_SHIFT)
    return int(mixed.sum(dtype=np.uint64))
