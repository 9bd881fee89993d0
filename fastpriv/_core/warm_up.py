"""Compiling ahead of time, for containers and servers."""

from __future__ import annotations

from fastpriv._core.extras import progress_bar

__all__ = ["warm_up"]


def warm_up(progress: bool = False) -> None:
    """Compile every kernel now, into numba's cache where one can be written.

    Kernels otherwise compile on first use, which takes seconds once per machine. Call this when
    an image is built or a server starts; ``NUMBA_CACHE_DIR`` moves the cache. Where no cache can
    be written the compiled kernels last as long as the process.

    Parameters
    ----------
    progress : bool
        Show a progress bar on a terminal (needs the extra ``fastpriv[progress]``).

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.warm_up()
    """
    from fastpriv import kernels

    tasks = [(name, types) for name, all_ in kernels.SIGNATURES.items() for types in all_]
    with progress_bar(len(tasks), "kernel", progress) as bar:
        for name, types in tasks:
            getattr(kernels, name).compile(types)
            bar.update(1)
