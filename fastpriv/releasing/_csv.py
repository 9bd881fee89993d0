"""CSV files, read and written in chunks with the standard library alone.

A file of categorical records repeats the same few lines, so each distinct line is parsed once and
looked up afterwards; so is each distinct record on the way out. That is several times faster than
parsing every field, and faster than a reader in C that does.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._extras import progress_bar
from fastpriv.errors import InvalidInput
from fastpriv.releasing._output import appearing
from fastpriv.releasing._tables import in_order
from fastpriv.releasing.domain import Digits, Domain, outside

#: Characters in memory at a time, and in the longest record.
_BLOCK, _LONGEST = 1 << 22, 1 << 20
#: Most distinct lines remembered at the start of a chunk, and most records spelt out in advance.
_REMEMBERED = 1 << 18


class CsvFile:
    """A CSV file with a header: commas, double quotes, UTF-8 with or without a BOM."""

    kept = ""

    def __init__(self, path: Path, out: Path | None = None, overwrite: bool = False) -> None:
        self.path, self.out, self.overwrite = path, out, overwrite
        lines = next(self._blocks(), None)
        if lines is None:
            raise InvalidInput(f"{path} is empty: the first line must name the columns")
        self.columns: tuple[Hashable, ...] = tuple(self._fields(lines[0], 0))
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise InvalidInput(f"{path} has two columns named {name!r}; rename one")

    def _blocks(self, progress: bool = False) -> Iterator[list[str]]:
        """Yield the lines of a block of the file, a record that goes on over line ends as one."""
        try:
            with ExitStack() as stack:
                raw = stack.enter_context(open(self.path, "rb"))
                bar = stack.enter_context(progress_bar(self.path.stat().st_size, "B", progress))
                text = io.TextIOWrapper(raw, "utf-8-sig", newline="")
                rest = ""
                while block := text.read(_BLOCK):
                    block = rest + block
                    lines = block.split("\n")
                    if '"' in block:
                        lines = list(self._joined(lines))
                    rest = lines.pop()
                    if lines:
                        yield lines
                    bar.update(raw.tell() - bar.n)
                if rest:
                    yield [rest]
        except OSError as problem:
            raise InvalidInput(f"cannot read {self.path}: {problem.strerror}") from None
        except UnicodeDecodeError as problem:
            raise InvalidInput(f"{self.path} is not UTF-8 ({problem.reason}); convert it") from None

    def _joined(self, lines: list[str]) -> Iterator[str]:
        """Join lines while a quote is open; the last one may be unfinished in any case."""
        found = ""
        for line in lines:
            found = f"{found}\n{line}" if found else line
            if found.count('"') % 2 == 0:
                yield found
                found = ""
            elif len(found) > _LONGEST:
                raise InvalidInput(f"{self.path}: a quote is opened and not closed: {found[:60]!r}")
        if found:
            yield found

    def _records(self, progress: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield lines after the header, with the number of those before them."""
        start = -1
        for lines in self._blocks(progress):
            if body := lines[1:] if start < 0 else lines:
                yield max(start, 0), body
            start += len(lines)

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

    def rows(self) -> int:
        """Count the records: one pass over the file."""
        return sum(len(lines) for _, lines in self._records())

    def observed(self, column: Hashable) -> list[Any]:
        """List the distinct texts of a column: one pass over the file."""
        place, found = self.columns.index(column), set()
        for start, lines in self._records():
            found |= {self._record(line, row)[place] for row, line in enumerate(lines, start + 1)}
        return in_order(found)

    def chunks(self, domain: Domain, progress: bool = False) -> Iterator[Digits]:
        """Yield the codes of the domain's columns, a block of the file at a time."""
        encode = self._encoder(domain)
        known: dict[str, int] = {}
        table: list[list[int]] = []
        for start, lines in self._records(progress):
            if len(known) > _REMEMBERED:
                known, table = {}, []
            try:
                numbers = _looked_up(known, lines)
            except KeyError:
                for row, line in enumerate(lines, start + 1):
                    if line not in known:
                        known[line] = len(table)
                        table.append(encode(line, row))
                numbers = _looked_up(known, lines)
            yield np.array(table, domain.dtype)[numbers]

    def _encoder(self, domain: Domain) -> Callable[[str, int], list[int]]:
        places = [self.columns.index(name) for name in domain.columns]
        codes = [{text: k for k, text in enumerate(spelt)} for spelt in texts(domain)]

        def encode(line: str, row: int) -> list[int]:
            fields = self._record(line, row)
            found = [code.get(fields[j], -1) for code, j in zip(codes, places, strict=True)]
            if -1 in found:
                k = found.index(-1)
                raise outside(domain.columns[k], row, fields[places[k]], domain)
            return found

        return encode

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
        header = ",".join(_quoted(str(name)) for name in self._kept)
        self._stream = self._file.__enter__()
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


def _looked_up(known: dict[str, int], lines: list[str]) -> NDArray[np.int64]:
    return np.fromiter(map(known.__getitem__, lines), np.int64, len(lines))


def texts(domain: Domain) -> list[list[str]]:
    """How every value is written in a CSV file: as str() writes it, nothing for a missing one."""
    found = []
    for name, values in zip(domain.columns, domain.values, strict=True):
        spelt = ["" if value is None else str(value) for value in values]
        if len(set(spelt)) < len(spelt):
            twice = next(text for text in spelt if spelt.count(text) > 1)
            raise InvalidInput(
                f"in a CSV file two values of column {name!r} are both written {twice!r}"
            )
        found.append(spelt)
    return found


def _quoted(text: str) -> str:
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
