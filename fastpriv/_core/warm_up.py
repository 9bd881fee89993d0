"""Compiling ahead of time, for containers and servers."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from fastpriv._core import validation as check
from fastpriv._core.extras import progress_bar
from fastpriv._core.threads import workers

__all__ = ["load_kernels", "warm_up"]


def warm_up(progress: bool = False, jobs: int = 1) -> None:
    """Compile every kernel now, into the cache where one can be written.

    Kernels otherwise compile on first use, which takes seconds once per machine. Call this when
    an image is built or a server starts: afterwards no process on a machine with the same kind of
    processor compiles anything. Compiled kernels are kept beside the package, or in the user's
    cache folder if that cannot be written; ``NUMBA_CACHE_DIR`` moves them. Where no folder can be
    written they last as long as the process. With a compiled wheel there is nothing to do.

    Parameters
    ----------
    progress : bool
        Show a progress bar on a terminal (needs the extra ``fastpriv[progress]``).
    jobs : int
        Processes that compile at the same time, at most one a processor. They start by importing
        the main module again, so a script calls ``warm_up`` under ``if __name__ == "__main__":``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.warm_up()
    """
    compile_all(progress, check.integer(jobs, "jobs", 1))


def load_kernels(*names: str, interpret: bool = True) -> None:
    """Load or compile kernels, so that a search with a time limit does not wait for them later.

    With ``interpret``, kernels for small problems may stay Python functions for now.
    """
    from fastpriv import kernels

    for name in names:
        kernel = getattr(kernels, name)
        if not interpret and hasattr(kernel, "compiled"):
            kernel = kernel.compiled()
        # Neither shipped nor plain Python, and not loaded before.
        if hasattr(kernel, "declared") and kernel.declared[0] not in kernel.overloads:
            _compile((name, 0))


def compile_all(progress: bool, jobs: int) -> tuple[int, int]:
    """Compile or load all kernels; return how many were compiled and how many were loaded."""
    from fastpriv.kernels import loader

    if loader.SHIPPED:
        return 0, len(loader.FILES)
    return _compile_declared(progress, jobs)


def _compile_declared(progress: bool, jobs: int) -> tuple[int, int]:
    """Compile all kernels that numba has, or load them."""
    from fastpriv.kernels import KERNELS, cache

    kernels = {name: each for name, each in KERNELS.items() if hasattr(each, "declared")}
    tasks = [(name, k) for name, kernel in kernels.items() for k in range(len(kernel.declared))]
    compiled = 0
    if count := cache.missing(kernels.values()):
        cache.announce(count)
    processes = min(jobs, workers())
    with progress_bar(len(tasks), "kernel", progress) as bar:
        if count and processes > 1 and cache.writable_folder() is not None:
            with ProcessPoolExecutor(
                processes, get_context("spawn"), initializer=_be_quiet
            ) as pool:
                for new in pool.map(_compile, tasks):
                    compiled += new
                    bar.update(1)
            sum(map(_compile, tasks))  # this process loads what the others have compiled
        else:
            for task in tasks:
                compiled += _compile(task)
                bar.update(1)
    return compiled, len(tasks) - compiled


def _be_quiet() -> None:
    """Print nothing: the process that started this one announces the compilation."""
    os.environ["FASTPRIV_QUIET"] = "1"


def _compile(task: tuple[str, int]) -> int:
    """Compile or load a kernel for one of its declared types; return 1 if it was compiled."""
    from fastpriv import kernels

    name, which = task
    kernel = kernels.KERNELS[name]
    setattr(kernels, name, kernel)  # in place of one that may be interpreted
    before = sum(kernel.stats.cache_misses.values())
    kernel.compile(kernel.declared[which])
    return int(sum(kernel.stats.cache_misses.values()) - before)
