"""The one place that knows about threads.

Kernels are serial and release the interpreter lock, so work is split here into ranges and given to
a small shared pool. The pool is made on first use and forgotten in a forked child, whose copy of
it has no threads left.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


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
