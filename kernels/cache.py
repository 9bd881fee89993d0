"""Compiled kernels on disk.

Numba stamps its own cache by the date of the file that holds a kernel. If a helper in another file
changed, old machine code would stay in use, and a copied file would look new. This cache is
stamped by the contents of all files of this folder instead: helpers can be shared, and a cache can
be shipped to other machines with the same kind of processor.

Every folder below is searched for a compiled kernel. It is saved in the first writable one:

1. ``NUMBA_CACHE_DIR``, if set; then nothing is saved elsewhere,
2. ``__pycache__`` beside the kernels,
3. the user's cache folder.

A folder that cannot be read or written costs a compilation and nothing else. Each compiled kernel
is one file, which appears as a whole: processes that compile at the same time cannot mix them up.
A user who can write a file here can run code in every process that reads it. So a folder is used
only if its owner alone can write it, and the owner is this user, root or the package's owner.
"""

import hashlib
import os
import pickle
import stat
import sys
import time
import uuid
from pathlib import Path

import numba
from numba.core import config
from numba.core.runtime import rtsys

from .loader import FILES, HERE, STAMP, asked, declared, logger, observers

#: The newest numba that the tests have run with.
TESTED = (0, 68)


def _shared(folder: str) -> Path:
    """Return the place of this version in a folder that versions share."""
    return Path(folder) / f"fastpriv-{STAMP[:16]}"


def _user_folders() -> list[Path]:
    """Return the user's cache folder, if there is one."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [_shared(home)] if os.path.isabs(home) else []


def folders() -> list[Path]:
    """Return the folders to read from, in order; some may not exist."""
    chosen = [_shared(config.CACHE_DIR)] if config.CACHE_DIR else []
    return [*chosen, HERE / "__pycache__", *_user_folders()]


_refused: set[Path] = set()


def _is_safe(folder: Path) -> bool:
    """Whether only this user and users who can change the package can write to a folder."""
    if not hasattr(os, "getuid"):  # Windows: folders of a user are the user's
        return True
    found, package = folder.stat(), HERE.stat()
    groups = stat.S_IWGRP if found.st_gid == package.st_gid else 0  # who may change the sources
    writers = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) & ~(package.st_mode & groups)
    safe = not writers and found.st_uid in (0, os.getuid(), package.st_uid)
    if not safe and folder not in _refused:
        _refused.add(folder)
        logger.warning("%s is not used: others can write to it", folder)
    return safe


def writable_folder() -> Path | None:
    """Return the folder that compiled kernels are saved in, None if none can be written."""
    for folder in folders()[:1] if config.CACHE_DIR else folders():
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK | os.X_OK) and _is_safe(folder):
                return folder
        except OSError:
            continue
    return None


_announced = False


def announce(count: int | None = None) -> None:
    """Print once per process how many kernels are compiled, unless ``FASTPRIV_QUIET=1``; log it.

    Without a count, kernels are compiled as they are needed: all that are missing at most.
    """
    global _announced
    if _announced:
        return
    _announced = True
    often = "once per machine" if writable_folder() else "for this process only (no cache folder)"
    number = f"up to {missing(map(declared, FILES))}" if count is None else count
    text = f"compiling {number} kernels, {often}"
    logger.info(text)
    if sys.stderr is not None and not asked("FASTPRIV_QUIET"):
        print(f"fastpriv: {text}", file=sys.stderr, flush=True)


def missing(kernels) -> int:
    """Return how many compiled forms of kernels no folder holds."""
    cached = (each for each in kernels if isinstance(getattr(each, "_cache", None), KernelCache))
    forms = ((kernel, types) for kernel in cached for types in kernel.declared)
    return sum(kernel._cache.find(types, kernel.targetctx) is None for kernel, types in forms)


def _prepare(context):
    """Let machine code be loaded: numba's runtime has to be there, its compiler need not be.

    A refresh would do too; it imports what only compiling needs, and scipy.linalg.
    """
    if numba.version_info.short > TESTED:
        context.refresh()
    else:
        rtsys.initialize(context)


class KernelCache:
    """The compiled forms of one kernel, one file for each tuple of argument types."""

    def __init__(self, name):
        self._name = name
        self._enabled = True
        self._begun = {}  # when types began to be compiled

    @property
    def cache_path(self):
        """The folder that is written."""
        return str(writable_folder() or "")

    def enable(self):
        """Use the files."""
        self._enabled = True

    def disable(self):
        """Leave the files alone."""
        self._enabled = False

    def flush(self):
        """Do nothing: a file is replaced when its kernel is compiled again."""

    def _key(self, types, context):
        """Return two hashes of what machine code depends on: without the source and with it.

        The first names the file, and its contents begin with the second.
        """
        target = context.codegen().magic_tuple()
        python = (sys.implementation.cache_tag, getattr(sys, "abiflags", ""))  # not on Windows
        options = (config.OPT, config.BOUNDSCHECK)
        key = repr((self._name, types, target, python, numba.__version__, options))
        return tuple(hashlib.sha256(text.encode()).digest() for text in (key, key + STAMP))

    def find(self, types, context):
        """Return the file of a compiled form and what it holds, None if there is none to use."""
        place, key = self._key(types, context)
        for folder in folders():
            path = folder / self._file(place)
            try:
                content = path.read_bytes()
                if content[: len(key)] == key and _is_safe(folder):
                    return path, content
            except OSError:
                continue
        return None

    def load_overload(self, sig, target_context):
        """Return the compiled kernel, None if no file holds it."""
        from numba.core.compiler import CompileResult

        _prepare(target_context)
        found = self.find(sig, target_context) if self._enabled else None
        if found:
            path, content = found
            place, key = self._key(sig, target_context)
            try:
                kernel = CompileResult._rebuild(target_context, *pickle.loads(content[len(key) :]))
            except Exception:  # whatever a damaged file makes of pickle and LLVM
                logger.debug("%s cannot be used", path, exc_info=True)
            else:
                if config.CACHE_DIR and path.parent != folders()[0]:
                    self._write(place, content)  # a chosen folder becomes complete
                return kernel
        if self._enabled:
            announce()
        self._begun[sig] = time.perf_counter()
        return None

    def save_overload(self, sig, data):
        """Save a compiled kernel, if a folder can be written."""
        from numba.core.serialize import dumps

        now = time.perf_counter()
        fields = {"kernel": self._name, "seconds": now - self._begun.pop(sig, now)}
        for observer in observers:
            observer("compilation", fields)
        structure = {"event": "compilation", "fields": fields}
        logger.info("compilation kernel=%(kernel)s seconds=%(seconds).3f", fields, extra=structure)
        if self._enabled:
            place, key = self._key(sig, data.target_context)
            self._write(place, key + dumps(data._reduce()))

    def _write(self, place, content):
        """Write a file as a whole, if a folder can be written."""
        folder = writable_folder()
        if folder is None:
            return
        part = folder / f"{self._file(place)}.{uuid.uuid4().hex}"
        try:
            part.write_bytes(content)
            os.replace(part, folder / self._file(place))
        except OSError:
            part.unlink(missing_ok=True)

    def _file(self, place):
        return f"{self._name}-{place.hex()[:16]}.nbc"
