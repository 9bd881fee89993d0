"""CSV files, read and written in chunks with the standard library alone.

A file of categorical records repeats the same few lines, so each distinct line is parsed once and
looked up afterwards; so is each distinct record on the way out. That is several times faster than
parsing every field, and faster than a reader in C that does.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Hashable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from fastpriv._extras import progress_bar
from fastpriv.errors import InvalidInput
from fastpriv.releasing._output import appearing
from fastpriv.releasing._tables import in_order
from fastpriv.releasing.domain import Digits, Domain, outside

#: Records in memory at a time.
CHUNK = 1 << 17
#: Most distinct lines remembered at the start of a chunk, and most records spelt out in advance.
_REMEMBERED = 1 << 18


class CsvFile:
    """A CSV file with a header: commas, double quotes, UTF-8 with or without a BOM."""

    kept = ""

    def __init__(self, path: Path, out: Path | None = None, overwrite: bool = False) -> None:
        self.path, self.out, self.overwrite = path, out, overwrite
        lines = self._lines(False)
        header = next(lines, None)
        if header is None:
            raise InvalidInput(f"{path} is empty: the first line must name the columns")
        self.columns: tuple[Hashable, ...] = tuple(self._fields(header, 1))
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise InvalidInput(f"{path} has two columns named {name!r}; rename one")
        lines.close()

    def _lines(self, progress: bool) -> Generator[str, None, None]:
        """Yield records as text; one goes on over line ends while a quote is open."""
        try:
            with ExitStack() as stack:
                raw = stack.enter_context(open(self.path, "rb"))
                bar = stack.enter_context(progress_bar(self.path.stat().st_size, "B", progress))
                text = io.TextIOWrapper(raw, "utf-8-sig", newline="")
                for number, line in enumerate(text):
                    if '"' in line:
                        while line.count('"') % 2 and (more := next(text, "")):
                            line += more
                    if number % CHUNK == 0:
                        bar.update(raw.tell() - bar.n)
                    yield line
                bar.update(raw.tell() - bar.n)
        except OSError as problem:
            raise InvalidInput(f"cannot read {self.path}: {problem.strerror}") from None
        except UnicodeDecodeError as problem:
            raise InvalidInput(
                f"{self.path} is not UTF-8 ({problem.reason} at byte {problem.start}); convert it"
            ) from None

    def _fields(self, line: str, row: int) -> list[str]:
        try:
            (fields,) = csv.reader([line], strict=True)
        except (csv.Error, ValueError) as problem:
            raise InvalidInput(f"{self.path}: row {row} cannot be read: {problem}") from None
        return fields

    def _record(self, line: str, row: int) -> list[str]:
        fields = self._fields(line, row)
        if len(fields) != len(self.columns):
            raise InvalidInput(
                f"{self.path}: row {row} has {len(fields)} fields, expected {len(self.columns)} "
                f"({', '.join(map(str, self.columns[:6]))}); nothing was released"
            )
        return fields

    def _body(self, progress: bool = False) -> Iterator[str]:
        lines = self._lines(progress)
        next(lines)
        return lines

    def rows(self) -> int:
        """Count the records: one pass over the file."""
        return sum(1 for _ in self._body())

    def observed(self, column: Hashable) -> list[Any]:
        """List the distinct texts of a column: one pass over the file."""
        place = self.columns.index(column)
        found: set[str] = set()
        for row, line in enumerate(self._body(), 1):
            found.add(self._record(line, row)[place])
        return in_order({*found})

    def chunks(self, domain: Domain, progress: bool = False) -> Iterator[Digits]:
        """Yield the codes of the domain's columns, CHUNK records at a time."""
        places = [self.columns.index(name) for name in domain.columns]
        codes = [{text: k for k, text in enumerate(spelt)} for spelt in texts(domain)]
        lines = self._body(progress)
        known: dict[str, int] = {}
        table: list[list[int]] = []
        start = 0
        while chunk := list(islice(lines, CHUNK)):
            if len(known) > _REMEMBERED:
                known, table = {}, []
            numbers = list(map(known.get, chunk))
            if None in numbers:
                for k, line in enumerate(chunk):
                    if line not in known:
                        fields = self._record(line, start + k + 1)
                        known[line] = len(table)
                        table.append(
                            [
                                self._code(of, fields[place], name, start + k + 1, domain)
                                for name, place, of in zip(
                                    domain.columns, places, codes, strict=True
                                )
                            ]
                        )
                numbers = list(map(known.get, chunk))
            yield np.array(table, domain.dtype)[np.array(numbers)]
            start += len(chunk)

    @staticmethod
    def _code(of: dict[str, int], text: str, name: Hashable, row: int, domain: Domain) -> int:
        code = of.get(text)
        if code is None:
            raise outside(name, row, text, domain)
        return code

    def writer(self, domain: Domain) -> CsvWriter:
        """Open the released file."""
        assert self.out is not None
        kept = [name for name in self.columns if name in domain.columns]
        return CsvWriter(self.out, self.overwrite, domain, kept)


class CsvWriter:
    """A CSV file that appears when the context ends well."""

    def __init__(self, out: Path, overwrite: bool, domain: Domain, kept: list[Hashable]) -> None:
        self.table, self._domain, self._kept = out, domain, kept
        self._file = appearing(out, overwrite)
        self._order = [domain.columns.index(name) for name in kept]
        spelt = texts(domain)
        self._texts = [np.array([_quoted(t) for t in spelt[j]], object) for j in self._order]
        self._lines = None
        if domain.size <= _REMEMBERED:
            every = domain.digits(np.arange(domain.size))
            self._lines = np.array(self._spell(every), dtype=object)

    def __enter__(self) -> CsvWriter:
        self._stream = self._file.__enter__()
        header = ",".join(_quoted(str(name)) for name in self._kept)
        self._stream.write((header + "\n").encode())
        return self

    def __exit__(self, *problem: Any) -> None:
        self._file.__exit__(*problem)

    def _spell(self, digits: Digits) -> list[str]:
        columns = [
            column[digits[:, j]].tolist()
            for column, j in zip(self._texts, self._order, strict=True)
        ]
        if len(columns) == 1:  # an empty line is no record: some readers skip it
            return [(text or '""') + "\n" for text in columns[0]]
        return [",".join(fields) + "\n" for fields in zip(*columns, strict=True)]

    def write(self, digits: Digits) -> None:
        """Add records."""
        if self._lines is not None:
            lines = self._lines[self._domain.records(digits)].tolist()
        else:
            lines = self._spell(digits)
        self._stream.write("".join(lines).encode())


def texts(domain: Domain) -> list[list[str]]:
    """How every value is written in a CSV file: as str() writes it, nothing for a missing one."""
    found = []
    for name, values in zip(domain.columns, domain.values, strict=True):
        spelt = ["" if value is None else str(value) for value in values]
        for text in spelt:
            if spelt.count(text) > 1:
                raise InvalidInput(
                    f"in a CSV file two values of column {name!r} are both written {text!r}"
                )
        found.append(spelt)
    return found


def _quoted(text: str) -> str:
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
