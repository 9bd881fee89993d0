"""Tables that are released.

``memory`` has arrays, lists and frames and the protocol :class:`~.memory.Table`; ``csv``,
``parquet`` and ``dask`` have the others. :func:`open_table` recognises the kind of a table.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.files import check_target
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.tables.csv import CsvFile
from fastpriv.releasing.tables.dask import DaskFrame, DaskSeries
from fastpriv.releasing.tables.memory import (
    ArrowTable,
    Codes,
    Column,
    Frame,
    Labels,
    PolarsFrame,
    PolarsSeries,
    Records,
    Table,
)
from fastpriv.releasing.tables.parquet import ParquetFile, ParquetFolder


def open_table(
    table: Any,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    delimiter: str = ",",
) -> Table:
    """Return a table behind the protocol of its kind; ``out`` is where a file is released to."""
    _check_delimiter(delimiter)
    if isinstance(table, str | os.PathLike):
        try:
            target = None if out is None else Path(out)
            return _open_file(Path(table), target, overwrite, delimiter)
        except OSError as problem:  # such as a name that is too long
            reason = problem.strerror or "it cannot be opened"
            raise InvalidInput(
                f"no table can be read at {described(str(table))}: {reason}. Check the path."
            ) from None
    if out is not None:
        raise InvalidInput(
            "out is for files; other tables come back as the result's .table. Leave out out=."
        )
    if (kind := _kind(table)) is not None:
        return kind(table)
    if isinstance(table, np.ndarray | memoryview):
        return Codes(np.asarray(table))
    if isinstance(table, Sequence) and table:
        if all(isinstance(record, Mapping) for record in table):
            return Records(table)
        if all(value is None or isinstance(value, str) for value in table):
            return Labels(table)
        first = table[0]
        if isinstance(first, list | tuple) and any(isinstance(value, str) for value in first):
            raise InvalidInput(
                "table must be a list of dicts, one for each record, if its values are texts. Give "
                '[{"column": value}, ...], or a DataFrame.'
            )
        return Codes(check.array(table, "table"))
    kind_of = "None" if table is None else f"a {type(table).__name__}"  # never its values
    raise InvalidInput(
        "table must be a frame or series, an Arrow table, an integer array, a list of dicts or "
        "of labels, or the path of a CSV or Parquet file or of a folder of Parquet files, and "
        f"have records; got {kind_of}."
    )


def _check_delimiter(delimiter: str) -> None:
    """Refuse what separates no fields: quotes, line ends, and more than one ASCII letter."""
    if (
        not isinstance(delimiter, str)
        or len(delimiter) != 1
        or not delimiter.isascii()
        or delimiter in '"\r\n\0'
    ):
        raise InvalidInput(
            "delimiter must be one ASCII character other than a quote or a line end, such as ';'; "
            f"got {described(delimiter)}."
        )


def _kind(table: Any) -> Callable[[Any], Table] | None:
    """Recognise tables of packages; a package that is not imported cannot have made one."""
    kinds: dict[tuple[str, str], Callable[[Any], Table]] = {
        ("pandas", "DataFrame"): Frame,
        ("pandas", "Series"): Column,
        ("dask.dataframe", "DataFrame"): DaskFrame,
        ("dask.dataframe", "Series"): DaskSeries,
        ("polars", "DataFrame"): PolarsFrame,
        ("polars", "Series"): PolarsSeries,
        ("pyarrow", "Table"): ArrowTable,
        ("pyarrow", "RecordBatch"): ArrowTable,
    }
    for (package, name), kind in kinds.items():
        module = sys.modules.get(package)
        if module is not None and isinstance(table, getattr(module, name)):
            return kind
    return None


def _open_file(path: Path, out: Path | None, overwrite: bool, delimiter: str) -> Table:
    text = partial(CsvFile, delimiter=delimiter)
    kinds: dict[str, Callable[..., Table]] = {
        ".csv": text,
        ".csv.gz": text,
        ".parquet": ParquetFile,
    }
    if path.is_dir():
        if out is not None and _ending(out) in kinds:
            raise InvalidInput(
                f"out must be the name of a folder, because {path} is one; got {out}. Leave out "
                f"the ending {_ending(out)}."
            )
        return ParquetFolder(path, out)
    kind = _ending(path)
    if kind not in kinds:
        raise InvalidInput(f"table must be a .csv, .csv.gz or .parquet file; got {path}.")
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}. Check the path.")
    if out is not None:
        check_target(out, overwrite, path)
        if _ending(out).removesuffix(".gz") != kind.removesuffix(".gz"):
            raise InvalidInput(f"out must be a {kind} file, as {path.name} is; got {out}.")
    return kinds[kind](path, out, overwrite)


def _ending(path: Path) -> str:
    """Return the ending of a file name in lower case; .csv.gz is one ending."""
    return "".join(path.suffixes[-2:] if path.suffix.lower() == ".gz" else [path.suffix]).lower()
