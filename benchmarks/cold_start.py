"""CPU time of compiling: every kernel by itself, and the first audit without a cache.

    python benchmarks/cold_start.py            all kernels, then an audit
    python benchmarks/cold_start.py entropy    some kernels

Nothing is read from a cache or written to one.
"""

import multiprocessing
import sys
import time

import fastpriv as fp
from fastpriv.kernels import KERNELS
from fastpriv.kernels.cache import KernelCache


def without_cache():
    """Compile everything in this process."""
    KernelCache.load_overload = lambda cache, sig, context: context.refresh()
    KernelCache.save_overload = lambda cache, sig, data: None


def kernel_seconds(names):
    """Return the CPU seconds of each kernel, all its types together."""
    without_cache()
    fp.h(1.0, 1, 2)
    KERNELS["any_below"].compile(KERNELS["any_below"].declared[0])  # numba's own start
    seconds = {}
    for name in names:
        start = time.process_time()
        for types in KERNELS[name].declared:
            KERNELS[name].compile(types)
        seconds[name] = time.process_time() - start
    return seconds


def audit_seconds():
    """Return the CPU seconds of the first audit, and the kernels it compiled."""
    without_cache()
    start = time.process_time()
    fp.audit([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5])
    seconds = time.process_time() - start
    return seconds, [name for name, kernel in KERNELS.items() if kernel.stats.cache_misses]


def main(names):
    """Print the table, most costly first."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        seconds = pool.apply(kernel_seconds, (names or list(KERNELS),))
        for name, each in sorted(seconds.items(), key=lambda pair: -pair[1]):
            print(f"{each:8.2f} s  {name}")
        print(f"{sum(seconds.values()):8.2f} s  together")
        if not names:
            first, used = pool.apply(audit_seconds)
            print(f"{first:8.2f} s  first audit of a 2 x 2 channel, {len(used)} kernels")


if __name__ == "__main__":
    main(sys.argv[1:])
