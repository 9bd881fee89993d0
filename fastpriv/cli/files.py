"""Files that commands write."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fastpriv._core.files import appearing, check_target
from fastpriv.cli.arrays import is_file, opened
from fastpriv.errors import InvalidInput


def target(name: str, force: bool, suffixes: tuple[str, ...], *inputs: str | None) -> Path:
    """Check before any work that a file may be written, and return its path."""
    path = Path(name)
    if path.suffix not in suffixes:
        raise InvalidInput(f"{name} must end in {' or '.join(suffixes)}")
    check_target(path, force, *(Path(each) for each in inputs if each is not None))
    return path


def write(path: Path, content: bytes, force: bool) -> None:
    """Write a file that appears whole or not at all."""
    with appearing(path, force) as stream:
        stream.write(content)


def identity(path: Path, content: bytes) -> dict[str, str]:
    """Return what a certificate says of a file: its name and the hash of its bytes."""
    return {"file": path.name, "sha256": hashlib.sha256(content).hexdigest()}


def source(text: str) -> dict[str, str]:
    """Return what a certificate says of an input: the file and its hash, or the text itself."""
    if not is_file(text):
        return {"spec": text}
    with opened(text) as stream:
        return identity(Path(text), stream.read())
