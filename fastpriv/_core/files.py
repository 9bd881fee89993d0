"""Files that appear in one step or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from fastpriv.errors import FastprivError, InvalidInput


def check_apart(path: Path, *others: Path) -> None:
    """Refuse a target that is one of the other files."""
    for other in others:
        if path == other or (path.exists() and other.exists() and path.samefile(other)):
            raise InvalidInput(f"{path} would be written over {other}; choose another name.")


def check_target(path: Path, overwrite: bool, *others: Path) -> None:
    """Refuse a target that exists, that is one of the other files, or has no folder."""
    check_apart(path, *others)
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; give the name of a file in it.")
    if path.exists() and not overwrite:
        raise InvalidInput(f"{path} exists; choose another name, or overwrite=True (--force).")
    if not path.parent.is_dir():
        raise InvalidInput(
            f"there is no folder {path.parent} to write {path.name} into. Make it, or give another."
        )


def _nothing() -> None:
    return None


@contextmanager
def appearing(
    path: Path, overwrite: bool, before: Callable[[], None] = _nothing
) -> Iterator[IO[bytes]]:
    """Open a new file beside ``path`` and move it there when the block ends well.

    The file is complete and on disk before it gets its name; whatever ends the block early,
    Ctrl-C included, removes it and leaves ``path`` as it was. ``before`` is called immediately
    before the file gets its name; if it raises, there is no file.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        check_target(path, overwrite)
        before()
        os.replace(part, path)
    except FastprivError:  # some are OSErrors too
        raise
    except OSError as problem:
        raise InvalidInput(
            f"cannot write {path}: {problem.strerror or problem}. Check its folder, or give "
            "another path."
        ) from None
    finally:
        with suppress(OSError):
            part.unlink()
    _sync_folder(path.parent)


def check_folder(path: Path, *others: Path) -> None:
    """Refuse a folder to be made that exists, or that lies in one of the others."""
    if path.exists():
        raise InvalidInput(f"{path} exists; a folder is not overwritten; choose another name.")
    if not path.parent.is_dir():
        raise InvalidInput(
            f"there is no folder {path.parent} to make {path.name} in. Make it, or give another."
        )
    for other in others:
        if other.resolve() in path.resolve().parents:
            raise InvalidInput(f"{path} lies in {other}, which is read; choose another name.")


@contextmanager
def appearing_folder(path: Path, before: Callable[[], None] = _nothing) -> Iterator[Path]:
    """Make a new folder beside ``path`` and give it that name when the block ends well.

    Its files must be on disk by then. Whatever ends the block early removes it. ``before`` is
    called immediately before the folder gets its name.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        part.mkdir()
        yield part
        _sync_folder(part)
        check_folder(path)
        before()
        os.rename(part, path)
    except FastprivError:  # some are OSErrors too
        raise
    except OSError as problem:
        raise InvalidInput(
            f"cannot write {path}: {problem.strerror or problem}. Check its folder, or give "
            "another path."
        ) from None
    finally:
        if part.exists():
            shutil.rmtree(part, ignore_errors=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable, where folders can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
