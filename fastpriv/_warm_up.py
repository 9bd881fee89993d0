"""Compiling ahead of time, for containers and servers."""

from __future__ import annotations

__all__ = ["warm_up"]


def warm_up() -> None:
    """Compile every kernel now, into numba's cache where one can be written.

    Kernels otherwise compile on first use, which takes seconds once per machine. Call this when
    an image is built or a server starts; ``NUMBA_CACHE_DIR`` moves the cache. Where no cache can
    be written the compiled kernels last as long as the process.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.warm_up()
    """
    from fastpriv.kernels import compile_all

    compile_all()
