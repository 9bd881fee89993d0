"""Parquet files through pyarrow, read and written in chunks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from fastpriv._core.extras import optional, progress_bar
from fastpriv._core.files import appearing
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.domain import Digits, Domain, code_table, named, scalar
from fastpriv.releasing.tables.memory import in_order, inside

#: Records in memory at a time.
CHUNK = 1 << 18


class ParquetFile:
    """A Parquet file with flat columns."""

    kept = ""

    def __init__(self, path: Path, out: Path | None = None, overwrite: bool = False) -> None:
        self.path, self.out, self.overwrite = path, out, overwrite
        self.arrow = optional("pyarrow", "tables")
        self.parquet = optional("pyarrow.parquet", "tables")
        with self._open() as file:
            self.schema = file.schema_arrow
            self._rows = file.metadata.num_rows
        self.columns: tuple[Hashable, ...] = tuple(self.schema.names)
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise InvalidInput(f"{path} has two columns named {described(name)}; rename one")

    def _open(self, texts: Sequence[str] = ()) -> Any:
        """Open the file; columns of texts are read as codes, which is how they are stored."""
        try:
            return self.parquet.ParquetFile(self.path, read_dictionary=list(texts))
        except (OSError, self.arrow.ArrowException) as problem:
            raise InvalidInput(f"cannot read {self.path}: {problem}") from None

    def rows(self) -> int:
        """Count the records: written in the file."""
        return int(self._rows)

    def observed(self, column: Hashable) -> list[Any]:
        """List the distinct values of a column: one pass over it."""
        values: set[Any] = set()
        for batch in self._batches([column]):
            values |= set(map(scalar, batch.column(0).unique().to_pylist()))
        return in_order(values)

    def _batches(self, columns: Sequence[Hashable]) -> Iterator[Any]:
        """Yield some columns, CHUNK records at a time."""
        types, fields = self.arrow.types, [self.schema.field(name) for name in columns]
        for field in fields:
            if types.is_nested(field.type):
                raise InvalidInput(
                    f"column {described(field.name)} of {self.path} holds {field.type}; only "
                    "columns of plain values can be released"
                )
        texts = [field.name for field in fields if types.is_string(field.type)]
        with self._open(texts) as file:
            try:
                yield from file.iter_batches(CHUNK, columns=list(columns))
            except (OSError, self.arrow.ArrowException) as problem:
                raise InvalidInput(f"cannot read {self.path}: {problem}") from None

    def chunks(self, domain: Domain, progress: bool = False) -> Iterator[Digits]:
        """Yield the codes of the domain's columns, CHUNK records at a time."""
        start = 0
        with progress_bar(self._rows, "rows", progress) as bar:
            for batch in self._batches(domain.columns):
                digits = np.empty((len(batch), len(domain.columns)), domain.dtype, order="F")
                for j, name in enumerate(domain.columns):
                    digits[:, j] = self._codes(batch.column(str(name)), name, domain, start)
                start += len(batch)
                bar.update(len(batch))
                yield digits

    def _codes(self, column: Any, name: Hashable, domain: Domain, start: int) -> Any:
        if not self.arrow.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        codes = code_table(name, domain, column.dictionary.to_pylist())
        numbers = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return inside(name, domain, codes[numbers], column, start)

    def writer(
        self, domain: Domain, reports: Sequence[Hashable], before: Callable[[], None]
    ) -> ParquetWriter:
        """Open the released file."""
        assert self.out is not None
        file = appearing(self.out, self.overwrite, before)
        return ParquetWriter(self, domain, reports, file)


class ParquetWriter:
    """A Parquet file that appears when the context ends well.

    The schema keeps names and types, and nothing of the metadata, which may describe the data.
    """

    def __init__(
        self,
        source: ParquetFile,
        domain: Domain,
        reports: Sequence[Hashable],
        file: AbstractContextManager[IO[bytes]],
    ) -> None:
        assert source.out is not None
        self.table, self._source, self._arrow = source.out, source, source.arrow
        kept = [name for name in source.columns if name in domain.columns]
        self._order = [domain.columns.index(name) for name in kept]
        text = self._arrow.string()
        fields = [
            self._arrow.field(name, text) if name in reports else source.schema.field(name)
            for name in kept
        ]
        pairs = zip(fields, self._order, strict=True)
        self._values = [
            None if name in reports else self._held(field, domain.values[j])
            for name, (field, j) in zip(kept, pairs, strict=True)
        ]
        self._schema = self._arrow.schema(
            [self._arrow.field(field.name, field.type) for field in fields]
        )
        self._file = file

    def _held(self, field: Any, values: Sequence[Any]) -> Any:
        kind = field.type
        if self._arrow.types.is_dictionary(kind):
            kind = kind.value_type
        try:
            return self._arrow.array(list(values), kind)
        except (self._arrow.ArrowException, TypeError, ValueError, OverflowError):
            raise InvalidInput(
                f"column {described(field.name)} of type {kind} cannot hold every value of its "
                f"domain ({named(values)})"
            ) from None

    def __enter__(self) -> ParquetWriter:
        with ExitStack() as stack:
            stream = stack.enter_context(self._file)
            writer = self._source.parquet.ParquetWriter(stream, self._schema)
            self._writer = stack.enter_context(writer)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._stack.__exit__(*problem)

    def write(self, digits: Digits) -> None:
        """Add records."""
        self._write(digits, self._values)

    def write_reports(self, digits: Digits, domain: Domain) -> None:
        """Add records some of whose columns are texts of their own."""
        listed = [domain.values[j] for j in self._order]
        values = [
            self._arrow.array(list(texts), self._arrow.string()) if held is None else held
            for held, texts in zip(self._values, listed, strict=True)
        ]
        self._write(digits, values)

    def _write(self, digits: Digits, held: list[Any]) -> None:
        columns = []
        for values, j, field in zip(held, self._order, self._schema, strict=True):
            column = values.take(self._arrow.array(digits[:, j].astype(np.int64)))
            columns.append(column.cast(field.type))
        self._writer.write_table(self._arrow.table(columns, schema=self._schema))
