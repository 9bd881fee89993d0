"""CSV files, read and written in blocks.

A file of categorical records repeats the same lines, so each distinct line is parsed once, by the
standard library, and looked up afterwards; so is each distinct record on the way out. That is
several times faster than a parser that takes every field apart.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.extras import progress_bar
from fastpriv._core.files import appearing
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.domain import Digits, Domain, named, outside, record_name
from fastpriv.releasing.tables.memory import Cells, in_order

#: Bytes read at a time.
_BLOCK = 1 << 22
#: Bytes of the longest record.
_LONGEST = 1 << 20
#: Most distinct lines remembered, and most records spelt out in advance.
_REMEMBERED = 1 << 16
#: Records read at a time as cells.
_CHUNK = 1 << 16
#: Delimiters that files of one column are looked at for.
_DELIMITERS = (";", "\t", "|", ",")
_BOM = b"\xef\xbb\xbf"


class CsvFile:
    """A CSV file with a header: double quotes, UTF-8 with or without a BOM, or gzipped.

    The released file has the same delimiter.
    """

    kept = ""

    def __init__(
        self, path: Path, out: Path | None = None, overwrite: bool = False, delimiter: str = ","
    ) -> None:
        self.path, self.out, self.overwrite, self.delimiter = path, out, overwrite, delimiter
        with self._open() as raw:
            header = raw.readline(_LONGEST).removeprefix(_BOM)
            while header.count(b'"') % 2 and len(header) < _LONGEST and (more := raw.readline()):
                header += more
            self._body = raw.tell()
        if not header:
            raise InvalidInput(f"{path} is empty. Its first line must name the columns.")
        self.columns: tuple[Hashable, ...] = tuple(self._fields(header, 0))
        for name in self.columns:
            if self.columns.count(name) > 1:
                raise InvalidInput(f"{path} has two columns named {described(name)}; rename one.")

    @property
    def hint(self) -> str:
        """What may be wrong: another delimiter if there is one column, or no line of names."""
        if len(self.columns) == 1:
            for mark in _DELIMITERS:
                if mark != self.delimiter and mark in str(self.columns[0]):
                    shown = repr(mark)
                    return f". The header suggests delimiter={shown} (--delimiter {shown})."
        return ". The first line must name the columns."

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        try:
            with _opened(self.path) as raw:
                yield raw
        except (OSError, EOFError, zlib.error) as problem:
            reason = getattr(problem, "strerror", None) or "it is not a whole gzip file"
            raise InvalidInput(f"cannot read {self.path}: {reason}. Check the file.") from None

    def _blocks(self, progress: bool = False) -> Iterator[bytes]:
        """Yield what follows the header, a block at a time."""
        size = max(0, self.path.stat().st_size - self._body)  # of what is stored, if compressed
        with self._open() as raw, progress_bar(size, "B", progress) as bar:
            raw.seek(self._body)
            while block := raw.read(_BLOCK):
                yield block
                bar.update(len(block))

    def _fields(self, line: bytes, row: int) -> list[str]:
        try:
            if len(line) > _LONGEST:
                raise ValueError(f"it is longer than {_LONGEST} bytes")
            (fields,) = csv.reader([line.decode()], strict=True, delimiter=self.delimiter)
        except UnicodeDecodeError as problem:
            raise InvalidInput(
                f"{self.path} is not UTF-8 ({record_name(row)}: {problem.reason}); convert it."
            ) from None
        except (csv.Error, ValueError) as problem:
            raise InvalidInput(
                f"{self.path}: {record_name(row)} cannot be read: {problem}. Correct the file."
            ) from None
        return fields

    def _record(self, line: bytes, row: int) -> list[str]:
        fields = self._fields(line, row)
        if len(fields) != len(self.columns):
            raise InvalidInput(
                f"{self.path}: {record_name(row)} must have {len(self.columns)} fields "
                f"({named(self.columns)}); it has {len(fields)}, and nothing was released. "
                "Correct the record, or give the delimiter."
            )
        return fields

    def rows(self) -> int:
        """Count the records: line ends outside quotes, and a last one without. One pass."""
        count, quotes, last = 0, 0, b"\n"
        for block in self._blocks():
            text = np.frombuffer(block, np.uint8)
            parity = (quotes + np.cumsum(text == ord('"'))) % 2
            count += int(np.count_nonzero((text == ord("\n")) & (parity == 0)))
            quotes, last = int(parity[-1]), block[-1:]
        return count + (last != b"\n")

    def observed(self, column: Hashable) -> list[Any]:
        """List the distinct texts of a column: one pass over the file."""
        place, values = self.columns.index(column), set()

        def note(line: bytes, row: int) -> list[int]:
            values.add(self._record(line, row)[place])
            return [0]

        for _ in _Lines(note, 1, np.dtype(np.uint8)).chunks(self._blocks()):
            pass
        return in_order(values)

    def chunks(self, domain: Domain, progress: bool = False) -> Iterator[Digits]:
        """Yield the codes of the domain's columns, a block of the file at a time."""
        places = [self.columns.index(name) for name in domain.columns]
        codes = [{text: k for k, text in enumerate(spelt)} for spelt in _texts(domain)]

        def encode(line: bytes, row: int) -> list[int]:
            fields = self._record(line, row)
            record = [code.get(fields[j], -1) for code, j in zip(codes, places, strict=True)]
            if -1 in record:
                k = record.index(-1)
                raise outside(domain.columns[k], row, fields[places[k]], domain)
            return record

        yield from _Lines(encode, len(places), domain.dtype).chunks(self._blocks(progress))

    def cells(self, columns: Sequence[Hashable]) -> Cells:
        """Yield the cells of some columns as texts."""
        places = [self.columns.index(name) for name in columns]
        with _opened(self.path) as raw:
            text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
            lines = csv.reader(text, delimiter=self.delimiter)
            next(lines)
            while part := list(islice(lines, _CHUNK)):
                if any(len(fields) != len(self.columns) for fields in part):
                    raise InvalidInput(
                        f"a record of {self.path} has missing or extra fields. "
                        "Correct the file, or give its delimiter."
                    )
                yield [[fields[j] for fields in part] for j in places]

    def writer(
        self, domain: Domain, messages: Sequence[Hashable], before: Callable[[], None]
    ) -> CsvWriter:
        """Open the released file."""
        assert self.out is not None
        kept = [name for name in self.columns if name in domain.columns]
        file = appearing(self.out, self.overwrite, before)
        return CsvWriter(file, self.out, domain, kept, self.delimiter)


class _Lines:
    """Lines that were encoded before, in a hash table that kernels read."""

    def __init__(
        self, encode: Callable[[bytes, int], list[int]], width: int, dtype: np.dtype[Any]
    ) -> None:
        self._encode = encode
        self._codes = np.empty((_REMEMBERED, width), dtype)
        self._text = np.empty(2 * _LONGEST, np.uint8)
        self._edges = np.zeros(_REMEMBERED + 1, np.int64)
        self._slots = np.empty(1 << (2 * _REMEMBERED - 1).bit_length(), np.int64)
        self._forget()

    def _forget(self) -> None:
        self._slots[:] = -1
        self._count = 0

    def _full(self, length: int) -> bool:
        end = self._edges[self._count]
        return bool(self._count == _REMEMBERED or end + length > len(self._text))

    def _learn(self, line: NDArray[np.uint8], row: int) -> None:
        k = self._count
        self._codes[k] = self._encode(line.tobytes(), row)
        self._edges[k + 1] = self._edges[k] + len(line)
        self._text[self._edges[k] : self._edges[k + 1]] = line
        kernels.remember_record(self._slots, self._edges, self._text, k)
        self._count += 1

    def chunks(self, blocks: Iterator[bytes]) -> Iterator[Digits]:
        """Yield the codes of the records of a file."""
        rest, row = b"", 0
        for block in blocks:
            text = np.frombuffer(bytearray(rest + block), np.uint8)
            numbers = np.empty(np.count_nonzero(text == ord("\n")), np.int64)
            count = begin = 0
            while True:
                count, begin, end = kernels.number_records(
                    text, begin, self._slots, self._edges, self._text, numbers, count
                )
                if end < 0:
                    break
                if self._full(end - begin):
                    if count:
                        yield self._codes[numbers[:count]]
                    row, count = row + count, 0
                    self._forget()
                self._learn(text[begin:end], row + count + 1)
            if count:
                yield self._codes[numbers[:count]]
            row, rest = row + count, text[begin:].tobytes()
            if len(rest) > _LONGEST:
                self._encode(rest, row + 1)
        if rest:
            yield np.array([self._encode(rest, row + 1)], self._codes.dtype)


class CsvWriter:
    """A CSV file that appears if the context ends without an error."""

    def __init__(
        self,
        file: AbstractContextManager[IO[bytes]],
        out: Path,
        domain: Domain,
        kept: list[Hashable],
        delimiter: str,
    ) -> None:
        self._delimiter = delimiter
        self._file, self.table, self._domain, self._kept = file, out, domain, kept
        self._order = [domain.columns.index(name) for name in kept]
        self._texts = self._spellings(domain)
        self._known = None
        if domain.size <= _REMEMBERED:
            lines = self._spell(domain.digits(np.arange(domain.size)), self._texts)
            edges = np.concatenate([[0], np.cumsum([len(line) for line in lines])])
            self._known = edges, np.frombuffer(bytearray(b"".join(lines)), np.uint8)

    def __enter__(self) -> CsvWriter:
        mark = self._delimiter
        header = mark.join(_quoted(str(name), mark) for name in self._kept)
        stream: Any = self._file.__enter__()
        if self.table.suffix.lower() == ".gz":  # no name and no time, which reveal the source
            stream = gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0)
        self._stream: Any = stream
        self._stream.write((header + "\n").encode())
        return self

    def __exit__(self, *problem: Any) -> None:
        if isinstance(self._stream, gzip.GzipFile):
            self._stream.close()
        self._file.__exit__(*problem)

    def _spellings(self, domain: Domain) -> list[NDArray[Any]]:
        """Return how the values of every released column are written."""
        spelt = _texts(domain)
        mark = self._delimiter
        return [
            np.array([_quoted(t, mark).encode() for t in spelt[j]], object) for j in self._order
        ]

    def _spell(self, digits: Digits, spellings: list[NDArray[Any]]) -> list[bytes]:
        pairs = zip(spellings, self._order, strict=True)
        columns = [column[digits[:, j]].tolist() for column, j in pairs]
        if len(columns) == 1:  # an empty line is no record: some readers skip it
            return [(text or b'""') + b"\n" for text in columns[0]]
        mark = self._delimiter.encode()
        return [mark.join(fields) + b"\n" for fields in zip(*columns, strict=True)]

    def write(self, digits: Digits, domain: Domain) -> None:
        """Add records."""
        if self._known is None or domain is not self._domain:
            same = domain is self._domain
            spellings = self._texts if same else self._spellings(domain)
            self._stream.write(b"".join(self._spell(digits, spellings)))
            return
        edges, text = self._known
        records = self._domain.records(digits).astype(np.int64)
        out = np.empty(int(np.diff(edges)[records].sum()), np.uint8)
        kernels.spell_records(records, edges, text, out)
        self._stream.write(out.data)


def _opened(path: Path) -> Any:
    """Open a file to read its bytes, unpacked where its name ends in .gz."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")


def _texts(domain: Domain) -> list[list[str]]:
    """Return how every value is written: as str() writes it, empty for a missing one."""
    written = []
    for name, values in zip(domain.columns, domain.values, strict=True):
        spelt = ["" if value is None else str(value) for value in values]
        if len(set(spelt)) < len(spelt):
            twice = next(text for text in spelt if spelt.count(text) > 1)
            raise InvalidInput(
                f"values of column {described(name)} must differ in a CSV file; two are "
                f"written {described(twice)}. Rename one."
            )
        try:
            "".join(spelt).encode()
        except UnicodeEncodeError as problem:
            raise InvalidInput(
                f"values of column {described(name)} must be text that UTF-8 can write: "
                f"{problem.reason}. Rename the value."
            ) from None
        written.append(spelt)
    return written


def _quoted(text: str, delimiter: str) -> str:
    if any(mark in text for mark in (delimiter, '"', "\r", "\n")):
        return '"' + text.replace('"', '""') + '"'
    return text
