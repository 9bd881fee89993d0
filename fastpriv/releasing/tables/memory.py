"""Tables in memory: arrays of codes, lists of records, frames of pandas, Arrow and polars.

:class:`Table` and :class:`Writer` are the protocols that all kinds of tables implement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fastpriv._core.extras import optional
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.domain import Digits, Domain, code_table, outside, record_name, scalar

#: Parts of a table: a list of cells for each column.
Cells = Iterator[list[list[Any]]]


class Writer(AbstractContextManager["Writer"], Protocol):
    """Where released records go; ``table`` is the released table once the context is left."""

    table: Any

    def write(self, digits: Digits, domain: Domain) -> None:
        """Add records by the codes of their columns.

        The domain is the declared one, or lists the messages of this part as texts.
        """


class Table(Protocol):
    """What a release needs of a table."""

    columns: tuple[Hashable, ...]
    #: What comes out as it was, such as an index; empty for most tables.
    kept: str

    def rows(self) -> int:
        """Count the records, if possible without reading them."""

    def observed(self, column: Hashable) -> list[Any]:
        """List the distinct values of a column in order, a missing one last."""

    def chunks(self, domain: Domain, progress: bool = False) -> Iterator[Digits]:
        """Yield the codes of the domain's columns, or raise on a value outside it."""

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        """Yield parts of the table as they are: a list of cells for each of some columns."""

    def writer(
        self, domain: Domain, messages: Sequence[Hashable], before: Callable[[], None]
    ) -> Writer:
        """Open a table of the same kind with the domain's columns, some of which hold messages.

        ``before`` is called after all records are drawn, immediately before anybody can see them.
        """


class InMemory(ABC):
    """A table that is encoded and decoded in one piece."""

    kept = ""

    @abstractmethod
    def encode(self, domain: Domain) -> Digits:
        """Return the codes of all records."""

    @abstractmethod
    def decode(self, digits: Digits, domain: Domain) -> Any:
        """Return the table that codes stand for."""

    def chunks(self, domain: Domain, progress: bool = False) -> Iterator[Digits]:
        yield self.encode(domain)

    def decode_messages(self, digits: Digits, domain: Domain) -> Any:
        """Return the table that codes stand for if some columns hold messages."""
        return self.decode(digits, domain)

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        raise InvalidInput(
            f"messages are not read from a {type(self).__name__}; give a frame in memory, records "
            "or a file."
        )

    def writer(
        self, domain: Domain, messages: Sequence[Hashable], before: Callable[[], None]
    ) -> Writer:
        return _MemoryWriter(self.decode_messages if messages else self.decode, before)


class _MemoryWriter:
    def __init__(self, decode: Callable[[Digits, Domain], Any], before: Callable[[], None]) -> None:
        self._decode, self._before, self.table = decode, before, None

    def write(self, digits: Digits, domain: Domain) -> None:
        self.table = self._decode(digits, domain)

    def __enter__(self) -> _MemoryWriter:
        return self

    def __exit__(self, kind: object, *problem: object) -> None:
        if kind is None:
            self._before()


class Codes(InMemory):
    """A NumPy array of codes: one column, or shape (records, columns)."""

    def __init__(self, array: NDArray[Any]) -> None:
        if array.ndim not in (1, 2) or array.dtype.kind not in "iub":
            raise InvalidInput(
                "an array must hold integer codes in shape (records,) or (records, columns); got "
                f"shape {array.shape} of {array.dtype}. Encode values first, or give a DataFrame."
            )
        self.array = array
        self.columns: tuple[Hashable, ...] = tuple(range(self._digits().shape[1]))

    def rows(self) -> int:
        return len(self.array)

    def observed(self, column: Hashable) -> list[Any]:
        most = int(self._digits()[:, self.columns.index(column)].max(initial=0))
        return list(range(most + 1))

    def _digits(self) -> Digits:
        codes = self.array.view(np.uint8) if self.array.dtype.kind == "b" else self.array
        return codes if codes.ndim == 2 else codes[:, None]

    def encode(self, domain: Domain) -> Digits:
        digits = self._digits()
        for j, (name, size) in enumerate(zip(domain.columns, domain.sizes, strict=True)):
            column = digits[:, j]
            if not len(column) or (column.min() >= 0 and column.max() < size):
                continue
            wrong = np.flatnonzero((column < 0) | (column >= size))
            raise InvalidInput(
                f"column {described(name)} must hold codes 0 .. {size - 1}; "
                f"{record_name(int(wrong[0]) + 1)} does not ({len(wrong)} such records), and "
                "nothing was released. Correct the table or its domain."
            )
        if max(domain.sizes) - 1 > _largest(self.array.dtype):
            raise InvalidInput(
                f"codes up to {max(domain.sizes) - 1} do not fit into {self.array.dtype}; give a "
                "wider array."
            )
        return digits

    def decode(self, digits: Digits, domain: Domain) -> NDArray[Any]:
        codes = digits.astype(self.array.dtype, copy=False)
        return codes if self.array.ndim == 2 else codes[:, 0]

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        yield [self._digits()[:, self.columns.index(name)].tolist() for name in columns]

    def decode_messages(self, digits: Digits, domain: Domain) -> NDArray[Any]:
        columns = [np.array(list(map(str, v)))[digits[:, j]] for j, v in enumerate(domain.values)]
        return np.stack(columns, axis=1) if self.array.ndim == 2 else columns[0]


def _largest(dtype: np.dtype[Any]) -> int:
    return 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)


class Records(InMemory):
    """A list of mappings, one per record, all with the same keys."""

    def __init__(self, records: Sequence[Mapping[Hashable, Any]]) -> None:
        self.records = records
        self.columns: tuple[Hashable, ...] = tuple(records[0])
        for row, record in enumerate(records):
            if set(record) != set(self.columns):
                odd = next(iter(set(record) ^ set(self.columns)))
                raise InvalidInput(
                    f"all records must have the same columns; {record_name(row + 1)} and the first "
                    f"differ in {described(odd)} (write None where a value is missing)."
                )

    def rows(self) -> int:
        return len(self.records)

    def observed(self, column: Hashable) -> list[Any]:
        try:
            return in_order({scalar(record[column]) for record in self.records})
        except TypeError:
            raise _not_plain(column) from None

    def encode(self, domain: Domain) -> Digits:
        digits = np.empty((len(self.records), len(domain.columns)), domain.dtype)
        for j, name in enumerate(domain.columns):
            values = [record[name] for record in self.records]
            codes = code_table(name, domain, values)[:-1]
            digits[:, j] = inside(name, domain, codes, values)
        return digits

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        yield [[record[name] for record in self.records] for name in columns]

    def decode(self, digits: Digits, domain: Domain) -> list[dict[Hashable, Any]]:
        kept = [name for name in self.columns if name in domain.columns]
        order = [domain.columns.index(name) for name in kept]
        return [
            {name: domain.values[j][row[j]] for name, j in zip(kept, order, strict=True)}
            for row in digits.tolist()
        ]


class Labels(InMemory):
    """A list of labels: a table of one column without a name."""

    def __init__(self, labels: Sequence[str | None]) -> None:
        self.labels = labels
        self.columns: tuple[Hashable, ...] = ("value",)

    def rows(self) -> int:
        return len(self.labels)

    def observed(self, column: Hashable) -> list[Any]:
        return in_order(set(self.labels))

    def encode(self, domain: Domain) -> Digits:
        (name,) = domain.columns
        codes = code_table(name, domain, self.labels)[:-1]
        return inside(name, domain, codes, self.labels)[:, None]

    def decode(self, digits: Digits, domain: Domain) -> list[Any]:
        return [domain.values[0][code] for code in digits[:, 0].tolist()]


class Frame(InMemory):
    """A pandas DataFrame."""

    def __init__(self, frame: Any) -> None:
        self.pandas = optional("pandas", "tables")
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise InvalidInput(f"the table has two columns named {described(twice)}; rename one.")
        self.frame = frame
        self.columns: tuple[Hashable, ...] = tuple(frame.columns)
        if not isinstance(frame.index, self.pandas.RangeIndex):
            self.kept = "the index of the frame, as it was"

    def rows(self) -> int:
        return len(self.frame)

    def _factors(self, name: Hashable) -> tuple[NDArray[Any], Sequence[Any]]:
        """Number the distinct values of a column, -1 where it is missing, and list them."""
        column = self.frame[name]
        if isinstance(column.dtype, self.pandas.CategoricalDtype):
            return np.asarray(column.cat.codes), list(column.cat.categories)
        try:
            codes, uniques = self.pandas.factorize(column)
        except TypeError:
            raise _not_plain(name) from None
        return np.asarray(codes), list(uniques)

    def observed(self, column: Hashable) -> list[Any]:
        codes, uniques = self._factors(column)
        return in_order({*map(scalar, uniques), *([None] if (codes < 0).any() else [])})

    def encode(self, domain: Domain) -> Digits:
        digits = np.empty((len(self.frame), len(domain.columns)), domain.dtype, order="F")
        for j, name in enumerate(domain.columns):
            codes, uniques = self._factors(name)
            table = code_table(name, domain, uniques)
            digits[:, j] = inside(name, domain, table[codes], self.frame[name].array)
        return digits

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        yield [self.frame[name].tolist() for name in columns]

    def decode(self, digits: Digits, domain: Domain) -> Any:
        return self.decoded(digits, domain, self.frame.index)

    def decoded(self, digits: Digits, domain: Domain, index: Any) -> Any:
        """Return the table that codes stand for, with this frame's types and another index."""
        kept = [name for name in self.columns if name in domain.columns]
        columns = {}
        for name in kept:
            j = domain.columns.index(name)
            columns[name] = self._column(domain.values[j], digits[:, j], self.frame[name].dtype)
        return self.pandas.DataFrame(columns, index=index, columns=kept)

    def _column(self, values: Sequence[Any], codes: NDArray[Any], dtype: Any) -> Any:
        """Return values by their codes, in the column's own type if that can hold the domain.

        Categories are kept only if they are the values of the domain: others would reveal which
        values occurred.
        """
        pandas = self.pandas
        if isinstance(dtype, pandas.CategoricalDtype):
            listed = [value for value in values if value is not None]
            categories = dtype.categories if set(dtype.categories) == set(listed) else listed
            places = {value: k for k, value in enumerate(categories)}
            renumbered = np.array([places.get(value, -1) for value in values])
            return pandas.Categorical.from_codes(
                renumbered[codes], categories=categories, ordered=dtype.ordered
            )
        listed = pandas.Series(list(values), dtype=object)
        try:
            held = listed.astype(dtype)
            same = all(scalar(a) == b for a, b in zip(held, values, strict=True))
        except (TypeError, ValueError, OverflowError):
            same = False
        return (held if same else pandas.Series(list(values))).array.take(codes)


class Column(Frame):
    """A pandas Series: a table of one column."""

    def __init__(self, series: Any) -> None:
        super().__init__(series.to_frame(series.name if series.name is not None else "value"))
        self._name = series.name

    def decode(self, digits: Digits, domain: Domain) -> Any:
        return super().decode(digits, domain).iloc[:, 0].rename(self._name)


class ArrowTable(InMemory):
    """A pyarrow Table or RecordBatch."""

    def __init__(self, table: Any) -> None:
        self.arrow = optional("pyarrow", "tables")
        if isinstance(table, self.arrow.RecordBatch):
            table = self.arrow.Table.from_batches([table])
        self.arrow_table = table
        self.columns: tuple[Hashable, ...] = tuple(table.column_names)
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise InvalidInput(
                    f"the table has two columns named {described(name)}; rename one."
                )

    def rows(self) -> int:
        return int(self.arrow_table.num_rows)

    def _encoded(self, name: Hashable) -> Any:
        """Return a column as one array of indices into a dictionary."""
        column = self.arrow_table.column(str(name))
        if self.arrow.types.is_nested(column.type):
            raise InvalidInput(
                f"column {described(name)} must hold plain values; it holds {column.type}. "
                "Drop it, or convert it."
            )
        if not self.arrow.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        joined = column.unify_dictionaries().combine_chunks()
        return joined.chunk(0) if isinstance(joined, self.arrow.ChunkedArray) else joined

    def observed(self, column: Hashable) -> list[Any]:
        encoded = self._encoded(column)
        missing = [None] if encoded.null_count else []
        return in_order({*map(scalar, encoded.dictionary.to_pylist()), *missing})

    def encode(self, domain: Domain) -> Digits:
        digits = np.empty((self.rows(), len(domain.columns)), domain.dtype, order="F")
        for j, name in enumerate(domain.columns):
            if self.rows() == 0:
                continue
            encoded = self._encoded(name)
            codes = code_table(name, domain, encoded.dictionary.to_pylist())
            numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
            digits[:, j] = inside(name, domain, codes[numbers], encoded)
        return digits

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        yield [self.arrow_table.column(str(name)).to_pylist() for name in columns]

    def decode(self, digits: Digits, domain: Domain) -> Any:
        kept = [name for name in self.columns if name in domain.columns]
        columns = []
        for name in kept:
            j = domain.columns.index(name)
            kind = self.arrow_table.schema.field(name).type
            values = self._held(list(domain.values[j]), kind)
            columns.append(values.take(self.arrow.array(digits[:, j].astype(np.int64))))
        return self.arrow.table(columns, names=kept)

    def _held(self, values: list[Any], kind: Any) -> Any:
        """Return the values of a domain in the column's own type, if it can hold them."""
        if self.arrow.types.is_dictionary(kind):
            kind = kind.value_type
        try:
            return self.arrow.array(values, kind)
        except (self.arrow.ArrowException, TypeError, ValueError, OverflowError):
            return self.arrow.array(values)


class PolarsFrame(ArrowTable):
    """A polars DataFrame."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame.to_arrow())
        self.polars = optional("polars", "polars")

    def decode(self, digits: Digits, domain: Domain) -> Any:
        return self.polars.from_arrow(super().decode(digits, domain))


class PolarsSeries(PolarsFrame):
    """A polars Series: a table of one column."""

    def __init__(self, series: Any) -> None:
        super().__init__(series.to_frame())

    def decode(self, digits: Digits, domain: Domain) -> Any:
        return super().decode(digits, domain).to_series()


def _not_plain(name: Hashable) -> InvalidInput:
    return InvalidInput(
        f"column {described(name)} holds lists or other values that cannot be distinguished; only "
        "columns of plain values can be released"
    )


def inside(
    name: Hashable, domain: Domain, codes: NDArray[Any], values: Any, start: int = 0
) -> NDArray[Any]:
    """Return the codes of a column, none of which may be -1; ``start`` records came before."""
    if len(codes) and codes.min() < 0:
        wrong = np.flatnonzero(codes < 0)
        first = int(wrong[0])
        raise outside(name, start + first + 1, scalar(values[first]), domain, len(wrong))
    return codes


def in_order(values: set[Any]) -> list[Any]:
    """Sort values, a missing one last."""
    listed = sorted((v for v in values if v is not None), key=lambda v: (type(v).__name__, v))
    return listed + [None] * (None in values)
