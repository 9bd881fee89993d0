"""Files of commands: matrices that are read, and results that appear whole or not at all."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

from fastpriv._core.files import appearing, check_target
from fastpriv.errors import InvalidInput, described, did_you_mean

if TYPE_CHECKING:
    from fastpriv._core.validation import Floats

SUFFIXES = (".csv", ".npy")
_STDIN = ("-", "/dev/stdin")


def is_file(text: str) -> bool:
    """Whether an argument is meant as a file rather than a name with parameters."""
    name, colon, _ = text.partition(":")
    return text == "-" or os.sep in name or (not colon and "." in name) or os.path.isfile(text)


def opened(path: str) -> IO[bytes]:
    """Open a file. The content of a pipe, which can be read only once, is kept."""
    return io.BytesIO(_piped(path)) if is_pipe(path) else open(path, "rb")


def is_pipe(path: str) -> bool:
    """Whether a path is standard input, a pipe or a device, which are read as CSV."""
    file = Path(path)
    return path in _STDIN or file.is_fifo() or file.is_char_device()


@cache
def _piped(path: str) -> bytes:
    return sys.stdin.buffer.read() if path in _STDIN else Path(path).read_bytes()


def read(path: str, name: str) -> Floats:
    """Return the numbers of a .csv or .npy file, or of CSV from a pipe, as a matrix."""
    import numpy as np

    file = Path(path)
    suffix = ".csv" if is_pipe(path) else file.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(f"{name} must be a .csv or .npy file; got {path}.")
    try:
        with opened(path) as stream:
            if suffix == ".npy":
                table = np.lib.format.read_array(stream, allow_pickle=False)
            else:
                text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
                table = np.stack(_numbers(text, path))
    except OSError as problem:
        hint = _neighbour(file) or ". Check the path."
        raise InvalidInput(f"cannot read {name} {path}: {problem.strerror}{hint}") from None
    except UnicodeDecodeError:
        raise InvalidInput(
            f"cannot read {name} {path}: it is not UTF-8 text. Convert the file to UTF-8."
        ) from None
    except InvalidInput:
        raise
    except (ValueError, EOFError):
        raise InvalidInput(
            f"cannot read {name} {path}: it is not an array that numpy saved. "
            "Write it by numpy.save."
        ) from None
    if table.ndim not in (1, 2) or table.size == 0 or table.dtype.kind not in "biuf":
        raise InvalidInput(
            f"{name} {path} must be a table of numbers; got shape {table.shape} of {table.dtype}."
        )
    return np.atleast_2d(table).astype(np.float64)


@contextmanager
def named_errors(path: str) -> Iterator[None]:
    """Prefix errors about the numbers with the name of their file."""
    try:
        yield
    except InvalidInput as problem:
        raise InvalidInput(f"{path}: {problem}") from None


def _neighbour(file: Path) -> str:
    """Return a hint at a file with a similar name, if there is one."""
    with suppress(OSError):
        if not file.exists():
            others = set(os.listdir(file.parent)) - {file.name}  # a link to nothing is listed
            return did_you_mean(file.name, sorted(others))
    return ""


def _numbers(lines: io.TextIOWrapper, path: str) -> list[Floats]:
    rows: list[Floats] = []
    reader = csv.reader(lines, strict=True)
    try:
        for cells in reader:
            if not any(map(str.strip, cells)):
                continue
            rows.append(_row(cells, reader.line_num, path))
            if len(rows[-1]) != len(rows[0]):
                raise InvalidInput(
                    f"line {reader.line_num} of {path} has {len(rows[-1])} numbers, but the first "
                    f"has {len(rows[0])}. Give every line the same number."
                )
    except csv.Error as problem:
        raise InvalidInput(f"line {reader.line_num} of {path}: {problem}") from None
    if not rows:
        raise InvalidInput(f"{path} must have a line of numbers for each row; it is empty.")
    return rows


def _row(cells: list[str], line: int, path: str) -> Floats:
    import numpy as np

    with suppress(ValueError):
        row = np.array(list(map(float, cells)))
        if np.isfinite(row).all():
            return row
    cell = next(cell for cell in cells if not _finite(cell))
    raise InvalidInput(
        f"line {line} of {path} holds {described(cell)}, {_wrong(cell, cells, line)}."
    )


def _wrong(cell: str, cells: list[str], line: int) -> str:
    """Return why a cell is not a number, and what may have been meant."""
    text = cell.strip()
    if not text:
        last = cells[-1] == cell and "" not in map(str.strip, cells[:-1])
        return "nothing" + (
            ". Is there a comma at the end of the line? Leave it out" if last else ""
        )
    if text.endswith("%") and _finite(text[:-1]):
        return "not a number. Write percentages as fractions of 1"
    if set(text) & set("; \t"):
        return "not a number. Separate numbers by commas, and write decimals with a point"
    with suppress(ValueError):
        float(text)
        return "not a finite number"
    header = line == 1 and not any(map(_finite, cells))
    return "not a number" + (". Is it a header? Leave it out" if header else "")


def _finite(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def encoded(matrix: Floats, suffix: str) -> bytes:
    """Return a matrix as the bytes of a .csv (digits that are read back exactly) or .npy file."""
    import numpy as np

    if suffix == ".npy":
        stream = io.BytesIO()
        np.save(stream, matrix, allow_pickle=False)
        return stream.getvalue()
    return "".join(",".join(map(repr, row)) + "\n" for row in matrix.tolist()).encode()


def target(name: str, force: bool, suffixes: tuple[str, ...], *inputs: str | None) -> Path:
    """Check before any work that a file may be written, and return its path."""
    path = Path(name)
    if path.suffix not in suffixes:
        raise InvalidInput(
            f"the file to write must end in {' or '.join(suffixes)}; got {described(name)}."
        )
    check_target(path, force, *(Path(each) for each in inputs if each is not None))
    return path


def write(path: Path, content: bytes, force: bool) -> None:
    """Write a file that appears whole or not at all."""
    with appearing(path, force) as stream:
        stream.write(content)


def identity(path: Path, content: bytes) -> dict[str, str]:
    """Return the name of a file and the hash of its bytes, for a certificate."""
    return {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}


def source(text: str) -> dict[str, str]:
    """Return the file and its hash, or the text itself, for a certificate."""
    if not is_file(text):
        return {"spec": text}
    with opened(text) as stream:
        return identity(Path(text), stream.read())
