"""How both searches run: strict warnings, processes that share the cases, options of commands."""

import argparse
import multiprocessing
import warnings
from collections import Counter
from contextlib import contextmanager

import numba

from fastpriv.errors import GapWarning


@contextmanager
def strict():
    """Turn warnings into errors, except for gaps that were not reached in time."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GapWarning)
        if numba.config.DISABLE_JIT:  # compiled kernels divide by zero in silence
            warnings.simplefilter("ignore", RuntimeWarning)
        yield


def numbers_of(worker, workers, together):
    """Yield the numbers of one worker's cases: bundles of ``together``, in turn."""
    number = worker * together
    while True:
        yield number
        number += 1 if (number + 1) % together else 1 + (workers - 1) * together


def in_processes(search, parts):
    """Run ``search(*part)`` in a process for each part; add counters and join violations.

    A search returns a counter, violations by their kind, and another counter.
    """
    if len(parts) == 1:
        return search(*parts[0])
    with multiprocessing.get_context("spawn").Pool(len(parts)) as pool:
        answers = pool.starmap(search, parts, chunksize=1)
    broken = {}
    for _, found, _ in answers:
        for key, items in found.items():
            broken.setdefault(key, []).extend(items)
    first, last = (sum((answer[k] for answer in answers), Counter()) for k in (0, 2))
    return first, broken, last


def parser(prog, description):
    """Return a parser with the options that both searches take."""
    made = argparse.ArgumentParser(prog=prog, description=description)
    made.add_argument("--minutes", type=float, default=1.0)
    made.add_argument("--cases", type=int, default=10**9)
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--workers", type=int, default=1)
    return made
