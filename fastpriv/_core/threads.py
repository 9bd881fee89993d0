"""The one place that knows about threads.

Kernels are serial and release the interpreter lock, so work is split here into ranges and given to
a small shared pool. The pool is made on first use and forgotten in a forked child, whose copy of
it has no threads left.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()
#: Endings of the functions of OpenBLAS in the wheels of scipy and numpy.
_ENDINGS = ("", "64_")
#: How many calls of :func:`serial_algebra` are open, and the numbers of threads before the first.
_open, _before = 0, list[int]()


def workers() -> int:
    """Count the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _forget() -> None:
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def split(task: Callable[[int, int], T], count: int, grain: int) -> list[T]:
    """Run ``task(start, stop)`` over ranges that cover ``range(count)``, results in order.

    Parameters
    ----------
    task : callable
        Called with the bounds of one range; should release the interpreter lock.
    count : int
        Number of work items.
    grain : int
        Fewest items worth a thread of their own; fewer than two grains run in the caller.
    """
    global _pool
    parts = count // max(grain, 1)
    # At the size of one call even counting the cores takes time, so it comes second.
    if parts < 2 or (parts := min(parts, workers())) < 2:
        return [task(0, count)]
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(workers(), thread_name_prefix="fastpriv")
        pool = _pool
    edges = [count * k // parts for k in range(parts + 1)]
    # The caller takes the first range itself: one thread fewer to wake, and no idle core.
    futures = [pool.submit(task, a, b) for a, b in pairwise(edges[1:])]
    return [task(0, edges[1]), *(future.result() for future in futures)]


@cache
def _openblas() -> list[tuple[Callable[[], int], Callable[[int], Any]]]:
    """Return how to read and set the number of threads of each OpenBLAS in a wheel."""
    found = []
    for package in ("numpy", "scipy"):
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            continue
        for path in Path(spec.origin).parents[1].glob(f"{package}.libs/*openblas*"):
            with suppress(OSError):
                library = ctypes.CDLL(str(path))
                for ending in _ENDINGS:
                    with suppress(AttributeError):
                        get = getattr(library, f"scipy_openblas_get_num_threads{ending}")
                        found.append(
                            (get, getattr(library, f"scipy_openblas_set_num_threads{ending}"))
                        )
    return found


@contextmanager
def serial_algebra() -> Iterator[None]:
    """Let OpenBLAS use one thread inside, for work that is split by :func:`split`.

    Its own threads wait actively for each other: on cores that others use, factorisations of a few
    hundred rows took 50 times as long.
    """
    global _open
    with _lock:
        if _open == 0:
            _before[:] = [get() for get, _ in _openblas()]
            for _, put in _openblas():
                put(1)
        _open += 1
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if _open == 0:
                for (_, put), count in zip(_openblas(), _before, strict=True):
                    put(count)
