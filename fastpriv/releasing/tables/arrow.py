"""Tables of Arrow in memory, and what converts to them without a copy: polars frames and series."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from fastpriv._core.extras import optional
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.domain import Digits, Domain, code_table, scalar
from fastpriv.releasing.tables.memory import InMemory, in_order, inside


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
                raise InvalidInput(f"the table has two columns named {described(name)}; rename one")

    def rows(self) -> int:
        return int(self.arrow_table.num_rows)

    def _encoded(self, name: Hashable) -> Any:
        """Return a column as one array of indices into a dictionary."""
        column = self.arrow_table.column(str(name))
        if self.arrow.types.is_nested(column.type):
            raise InvalidInput(
                f"column {described(name)} holds {column.type}; only columns of plain values can "
                "be released"
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
        """Return the values of a domain in the column's own type if that can hold them."""
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
