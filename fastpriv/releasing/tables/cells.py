"""The cells of a table as they are, for columns that hold reports."""

from __future__ import annotations

import csv
import io
from collections.abc import Hashable, Iterator, Sequence
from functools import singledispatch
from itertools import islice
from typing import Any

from fastpriv.errors import InvalidInput
from fastpriv.releasing.tables.arrow import ArrowTable
from fastpriv.releasing.tables.csv import CsvFile, opened
from fastpriv.releasing.tables.folder import ParquetFolder
from fastpriv.releasing.tables.memory import Codes, Frame, Records
from fastpriv.releasing.tables.parquet import ParquetFile

#: Records read at a time from a CSV file.
_CHUNK = 1 << 16

Cells = Iterator[list[list[Any]]]


@singledispatch
def cells(source: Any, names: Sequence[Hashable]) -> Cells:
    """Yield parts of a table: a list of cells for each of some columns."""
    raise InvalidInput(
        f"reports are not read from a {type(source).__name__}; give a frame in memory, records or "
        "a file"
    )


@cells.register
def _codes_cells(source: Codes, names: Sequence[Hashable]) -> Cells:
    yield [source._digits()[:, source.columns.index(name)].tolist() for name in names]


@cells.register
def _records_cells(source: Records, names: Sequence[Hashable]) -> Cells:
    yield [[record[name] for record in source.records] for name in names]


@cells.register
def _frame_cells(source: Frame, names: Sequence[Hashable]) -> Cells:
    yield [source.frame[name].tolist() for name in names]


@cells.register
def _arrow_table_cells(source: ArrowTable, names: Sequence[Hashable]) -> Cells:
    yield [source.arrow_table.column(str(name)).to_pylist() for name in names]


@cells.register
def _csv_file_cells(source: CsvFile, names: Sequence[Hashable]) -> Cells:
    places = [source.columns.index(name) for name in names]
    with opened(source.path) as raw:
        lines = csv.reader(io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""))
        next(lines)
        while part := list(islice(lines, _CHUNK)):
            if any(len(fields) != len(source.columns) for fields in part):
                raise InvalidInput(f"a record of {source.path} has missing or extra fields")
            yield [[fields[j] for fields in part] for j in places]


@cells.register
def _parquet_file_cells(source: ParquetFile, names: Sequence[Hashable]) -> Cells:
    for batch in source._batches(names):
        yield [batch.column(str(name)).to_pylist() for name in names]


@cells.register
def _parquet_folder_cells(source: ParquetFolder, names: Sequence[Hashable]) -> Cells:
    for file in source.files:
        yield from cells(file, names)
