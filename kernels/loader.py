"""Choice of a kernel's code: shipped in a compiled wheel, or compiled here by numba.

A compiled wheel (``tools/compiled_wheel.py``) holds this folder and one extension module for each
kind of processor, ``compiled_v3`` and ``compiled_v2`` on x86-64. The module refuses to be imported
if the processor lacks its instructions. It calls neither numba nor llvmlite, so their versions
do not matter, and it was built from the sources of this folder: its ``stamp`` is their hash.

Shipped code is preferred, since every processor that runs it returns the same bits.
``FASTPRIV_NATIVE=1`` chooses code that numba compiles for the processor at hand.
"""

import hashlib
import importlib
import logging
import os
import pickle
import re
from pathlib import Path

HERE = Path(__file__).parent
#: The folder's files, which machine code depends on.
SOURCES = {path.name: path.read_bytes() for path in sorted(HERE.glob("*.py"))}
#: The file in which each kernel stands.
FILES = {
    kernel.decode(): name.removesuffix(".py")
    for name, source in SOURCES.items()
    for kernel in re.findall(rb"^@kernel\(.*\)\ndef (\w+)\(", source, re.M)
}
#: Kernels that are interpreted for small problems.
SMALL = {
    kernel.decode()
    for source in SOURCES.values()
    for kernel in re.findall(rb"^@kernel\(small=.*\)\ndef (\w+)\(", source, re.M)
}
#: Extension modules of a compiled wheel, the best processor first.
LEVELS = ("compiled_v3", "compiled_v2", "compiled_baseline")

logger = logging.getLogger("fastpriv")
#: Called with the name and the fields of every compilation, besides the logger.
observers = []


def stamp_of(sources: dict[str, bytes]) -> str:
    """Return a hash of the names and contents of files."""
    digest = hashlib.sha256()
    for name, source in sources.items():
        digest.update(f"{name} {len(source)} ".encode())
        digest.update(source)
    return digest.hexdigest()


STAMP = stamp_of(SOURCES)


def asked(variable: str) -> bool:
    """Whether an environment variable is set, and not to 0."""
    return os.environ.get(variable, "0") not in ("", "0")


def _shipped():
    """Return the extension module for this processor, None if there is none to be used."""
    if asked("FASTPRIV_NATIVE") or asked("NUMBA_DISABLE_JIT"):
        return None
    for level in LEVELS:
        try:
            found = importlib.import_module(f"{__package__}.{level}")
        except ModuleNotFoundError:
            continue
        except Exception:  # the processor lacks its instructions, or it is damaged
            logger.debug("%s cannot be used", level, exc_info=True)
            continue
        if getattr(found, "stamp", None) == STAMP:
            return found
        logger.info("%s was built from other sources: it is not used", level)
    return None


SHIPPED = _shipped()


def load(name):
    """Return a kernel by its name."""
    if SHIPPED:
        return getattr(SHIPPED, name)
    if name in SMALL and not asked("NUMBA_DISABLE_JIT"):
        from .plain import Small

        return Small(name)
    return declared(name)


def declared(name):
    """Return a kernel as numba has it, from the file that declares it."""
    return getattr(importlib.import_module(f"{__package__}.{FILES[name]}"), name)


def undeclared(name, arguments):
    """Answer a call of shipped code with types that it does not have: numba warns and compiles."""
    return declared(name)(*arguments)


def failed(pickled):
    """Raise the error with which a shipped kernel ended, ZeroDivisionError or MemoryError."""
    kind, arguments, *_ = pickle.loads(pickled)
    raise kind(*(arguments or ()))
