"""Numba kernels: arrays in, arrays or numbers out. They know nothing of priors or channels.

Each file stands alone: numba keys its disk cache by the kernel's own file, so a helper imported
from another file could change and leave old machine code in use.
"""

from contextlib import contextmanager, suppress

from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher


class _ForgivingCache(FunctionCache):
    """Numba's disk cache, where a folder that fails costs a compilation and nothing else."""

    def load_overload(self, sig, target_context):
        with suppress(OSError):
            return super().load_overload(sig, target_context)

    def save_overload(self, sig, data):
        with suppress(OSError):
            super().save_overload(sig, data)


@contextmanager
def _optional_cache():
    """Let kernels be defined where no cache folder can be written: they compile in memory."""
    strict = Dispatcher.enable_caching

    def enable_caching(self):
        with suppress(RuntimeError):  # no writable place: keep the null cache it starts with
            self._cache = _ForgivingCache(self.py_func)

    Dispatcher.enable_caching = enable_caching
    try:
        yield
    finally:
        Dispatcher.enable_caching = strict


with _optional_cache():
    from fastpriv.kernels import (
        balance,
        capacity,
        climb,
        cone,
        correlation,
        descent,
        hockey_stick,
        information,
        leakage,
        lines,
        mapping,
        markov,
        metric,
        noise,
        posterior,
        records,
        sampling,
        selection,
        shells,
        tails,
        transform,
        type_forms,
    )

_FILES = (
    balance,
    capacity,
    climb,
    cone,
    correlation,
    descent,
    hockey_stick,
    information,
    leakage,
    lines,
    mapping,
    markov,
    metric,
    noise,
    posterior,
    records,
    sampling,
    selection,
    shells,
    tails,
    transform,
    type_forms,
)

#: Every kernel, with the argument types that the facade calls it with.
SIGNATURES = {name: types for file in _FILES for name, types in file.SIGNATURES.items()}

globals().update({name: getattr(file, name) for file in _FILES for name in file.SIGNATURES})

__all__ = ["SIGNATURES", *SIGNATURES]
