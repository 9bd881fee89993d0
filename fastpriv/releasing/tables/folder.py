"""Folders of Parquet files: one table, read file after file, and written file by file."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fastpriv._core.extras import progress_bar
from fastpriv._core.files import appearing, appearing_folder, check_folder
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.domain import Digits, Domain
from fastpriv.releasing.tables.memory import in_order
from fastpriv.releasing.tables.parquet import ParquetFile, ParquetWriter


class ParquetFolder:
    """The .parquet files of a folder, in the order of their names; numbers in names count."""

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
                    "a folder must be parts of one table"
                )

    def rows(self) -> int:
        """Count the records: written in the files."""
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

    def writer(
        self, domain: Domain, reports: Sequence[Hashable], before: Callable[[], None]
    ) -> FolderWriter:
        """Open the released folder."""
        return FolderWriter(self, domain, reports, before)


class FolderWriter:
    """A folder that appears when the context ends well, with a file for every one of the source.

    Files are numbered: names may say something about the records in them.
    """

    def __init__(
        self,
        source: ParquetFolder,
        domain: Domain,
        reports: Sequence[Hashable],
        before: Callable[[], None],
    ) -> None:
        assert source.out is not None
        self.table, self._source, self._domain = source.out, source, domain
        self._reports, self._before = reports, before
        # What a column cannot hold is refused before anything is drawn.
        self._part(0, source.out)

    def _part(self, number: int, folder: Path) -> ParquetWriter:
        out = folder / f"part-{number:05}.parquet"
        part = ParquetFile(self._source.files[number].path, out)
        part.schema = self._source.schema  # a file without rows may have lost its types
        return ParquetWriter(part, self._domain, self._reports, appearing(out, False))

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

    def write(self, digits: Digits) -> None:
        """Add records of one file of the source."""
        self._current().write(digits)
        self._left -= len(digits)

    def write_reports(self, digits: Digits, domain: Domain) -> None:
        """Add records of one file, some of whose columns are texts of their own."""
        self._current().write_reports(digits, domain)
        self._left -= len(digits)

    def _current(self) -> ParquetWriter:
        while not self._left:
            self._next()
        assert self._file is not None
        return self._file

    def _next(self) -> None:
        """Go on to the next file; one of no records becomes one of no records."""
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
            "Dask"
        )
    files = [file for file in inside if file.suffix.lower() == ".parquet"]
    if not files:
        raise InvalidInput(f"there are no .parquet files in the folder {path}")
    return sorted(files, key=lambda f: [t.zfill(20) for t in re.split(r"(\d+)", f.name)])
