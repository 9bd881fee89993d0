"""Parquet files and folders of them, read and written in chunks through pyarrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from fastpriv._core.extras import optional, progress_bar
from fastpriv._core.files import appearing, appearing_folder, check_folder
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.domain import Digits, Domain, code_table, named, scalar
from fastpriv.releasing.tables.memory import Cells, in_order, inside

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
                raise InvalidInput(f"{path} has two columns named {described(name)}; rename one.")

    def _open(self, texts: Sequence[str] = ()) -> Any:
        """Open the file; columns of texts are read as codes, which is how they are stored."""
        try:
            return self.parquet.ParquetFile(self.path, read_dictionary=list(texts))
        except (OSError, self.arrow.ArrowException) as problem:
            raise InvalidInput(
                f"cannot read {self.path}: {problem}. Check that it is a whole Parquet file."
            ) from None

    def rows(self) -> int:
        """Return the number of records, which the file states."""
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
                    f"column {described(field.name)} of {self.path} must hold plain values; it "
                    f"holds {field.type}. Drop it, or convert it."
                )
        texts = [field.name for field in fields if types.is_string(field.type)]
        with self._open(texts) as file:
            try:
                yield from file.iter_batches(CHUNK, columns=list(columns))
            except (OSError, self.arrow.ArrowException) as problem:
                raise InvalidInput(
                    f"cannot read {self.path}: {problem}. Check that it is a whole Parquet file."
                ) from None

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

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        """Yield the cells of some columns, CHUNK records at a time."""
        for batch in self._batches(columns):
            yield [batch.column(str(name)).to_pylist() for name in columns]

    def writer(
        self, domain: Domain, messages: Sequence[Hashable], before: Callable[[], None]
    ) -> ParquetWriter:
        """Open the released file."""
        assert self.out is not None
        file = appearing(self.out, self.overwrite, before)
        return ParquetWriter(self, domain, messages, file)


class ParquetWriter:
    """A Parquet file that appears if the context ends without an error.

    The schema keeps names and types, but no metadata, which may describe the data.
    """

    def __init__(
        self,
        source: ParquetFile,
        domain: Domain,
        messages: Sequence[Hashable],
        file: AbstractContextManager[IO[bytes]],
    ) -> None:
        assert source.out is not None
        self.table, self._source, self._arrow = source.out, source, source.arrow
        kept = [name for name in source.columns if name in domain.columns]
        self._order = [domain.columns.index(name) for name in kept]
        text = self._arrow.string()
        fields = [
            self._arrow.field(name, text) if name in messages else source.schema.field(name)
            for name in kept
        ]
        pairs = zip(fields, self._order, strict=True)
        self._values = [
            None if name in messages else self._held(field, domain.values[j])
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
                f"column {described(field.name)} of type {kind} must be able to hold every "
                f"value of its domain ({named(values)}). Cast it to a wider type."
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

    def write(self, digits: Digits, domain: Domain) -> None:
        """Add records."""
        columns = []
        for values, j, field in zip(self._values, self._order, self._schema, strict=True):
            if values is None:  # messages, which every part has its own of
                values = self._arrow.array(list(domain.values[j]), field.type)
            column = values.take(self._arrow.array(digits[:, j].astype(np.int64)))
            columns.append(column.cast(field.type))
        self._writer.write_table(self._arrow.table(columns, schema=self._schema))


class ParquetFolder:
    """The .parquet files of a folder, in the order of their names and of numbers in names."""

    kept = ""

    def __init__(self, path: Path, out: Path | None = None) -> None:
        self.path, self.out = path, out
        if out is not None:
            check_folder(out, path)
        self.files = [ParquetFile(file) for file in _listed(path)]
        first = next((file for file in self.files if file.rows()), self.files[0])
        self.columns: tuple[Hashable, ...] = first.columns
        self.schema = first.schema
        for file in self.files:
            same = file.schema.equals(first.schema, check_metadata=False)
            if not same and (file.rows() or file.columns != first.columns):  # no rows, no types
                raise InvalidInput(
                    f"{file.path} and {first.path.name} have other columns or types; the files of "
                    "a folder must be parts of one table."
                )

    def rows(self) -> int:
        """Return the number of records, which the files state."""
        return sum(file.rows() for file in self.files)

    def observed(self, column: Hashable) -> list[Any]:
        """List the distinct values of a column: one pass over it."""
        return in_order(set().union(*(file.observed(column) for file in self.files)))

    def chunks(self, domain: Domain, progress: bool = False) -> Iterator[Digits]:
        """Yield the codes of the domain's columns; no chunk holds records of two files."""
        with progress_bar(self.rows(), "rows", progress) as bar:
            for file in self.files:
                try:
                    for digits in file.chunks(domain):
                        bar.update(len(digits))
                        yield digits
                except InvalidInput as problem:
                    raise InvalidInput(f"{file.path.name}: {problem}") from None

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        """Yield the cells of some columns, file after file."""
        for file in self.files:
            yield from file.cells(columns)

    def writer(
        self, domain: Domain, messages: Sequence[Hashable], before: Callable[[], None]
    ) -> FolderWriter:
        """Open the released folder."""
        return FolderWriter(self, domain, messages, before)


class FolderWriter:
    """A folder that appears if the context ends without an error, with a file for each one given.

    Files are numbered, because names may reveal something about the records in them.
    """

    def __init__(
        self,
        source: ParquetFolder,
        domain: Domain,
        messages: Sequence[Hashable],
        before: Callable[[], None],
    ) -> None:
        assert source.out is not None
        self.table, self._source, self._domain = source.out, source, domain
        self._messages, self._before = messages, before
        # A value that a column cannot hold is refused before anything is drawn.
        self._part(0, source.out)

    def _part(self, number: int, folder: Path) -> ParquetWriter:
        out = folder / f"part-{number:05}.parquet"
        part = ParquetFile(self._source.files[number].path, out)
        part.schema = self._source.schema  # a file without rows may have lost its types
        return ParquetWriter(part, self._domain, self._messages, appearing(out, False))

    def __enter__(self) -> FolderWriter:
        with ExitStack() as stack:
            self._folder = stack.enter_context(appearing_folder(self.table, self._before))
            self._stack = stack.pop_all()
        self._number, self._left = -1, 0
        self._file: ParquetWriter | None = None
        return self

    def __exit__(self, *problem: Any) -> None:
        try:
            if self._file is not None:
                self._file.__exit__(*problem)
        except BaseException as failure:
            self._stack.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._stack.__exit__(*problem)

    def write(self, digits: Digits, domain: Domain) -> None:
        """Add records of one file of the source."""
        while not self._left:
            self._next()
        assert self._file is not None
        self._file.write(digits, domain)
        self._left -= len(digits)

    def _next(self) -> None:
        """Go on to the next file; an empty file stays empty."""
        if self._file is not None:
            self._file.__exit__(None, None, None)
        self._number += 1
        self._file = self._part(self._number, self._folder).__enter__()
        self._left = self._source.files[self._number].rows()


def _listed(path: Path) -> list[Path]:
    """Return the Parquet files of a folder, part.2 before part.10."""
    inside = [file for file in path.iterdir() if file.name[0] not in "._"]
    if folders := sorted(file.name for file in inside if file.is_dir()):
        raise InvalidInput(
            f"{path} has folders in it, such as {described(folders[0])}, whose names may stand for "
            "values of a column; write the table as Parquet files of one folder, or read it with "
            "Dask."
        )
    files = [file for file in inside if file.suffix.lower() == ".parquet"]
    if not files:
        raise InvalidInput(
            f"the folder {path} must hold .parquet files, and there are none. Check the path."
        )
    return sorted(files, key=lambda f: [t.zfill(20) for t in re.split(r"(\d+)", f.name)])
