"""The E_d output law and its inverse, as a ratio to a copy of the same vector in the same run.

Run ``python benchmarks/bench_transform.py`` for the table, or the file under pytest-benchmark.
"""

import time

import numpy as np
import pytest

from fastpriv._rows import Symmetric
from fastpriv._transform import mix

SIZES = {
    **{f"2^{k}": (2,) * k for k in (10, 12, 14, 16, 18, 20, 22, 24, 26)},
    "3^15": (3,) * 15,
    "4^12": (4,) * 12,
    "5^10": (5,) * 10,
    "10^7": (10,) * 7,
    "(2,3,2,7)^3": (2, 3, 2, 7) * 3,
}


def coefficients(sizes, inverse, epsilon=3.0):
    """The mixing step of every axis."""
    kernels = [Symmetric(m, epsilon) for m in sizes]
    return [k.unmixing if inverse else k.mixing for k in kernels]


def ratio(sizes, inverse, seconds=2.0):
    """Least time of a transform over least time of np.copyto, interleaved."""
    v = np.random.default_rng(0).random(int(np.prod(sizes)))
    other, c = np.empty_like(v), coefficients(sizes, inverse)
    np.copyto(other, v)
    mix(v, sizes, c)
    copy = work = np.inf
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        np.copyto(v, other)  # also undoes the transform, so that numbers stay ordinary
        middle = time.perf_counter()
        mix(v, sizes, c)
        stop = time.perf_counter()
        copy, work = min(copy, middle - start), min(work, stop - middle)
    return work / copy, work, copy


@pytest.mark.parametrize("inverse", [False, True], ids=["forward", "inverse"])
@pytest.mark.parametrize("name", SIZES)
def test_transform(benchmark, name, inverse):
    sizes = SIZES[name]
    v, c = np.full(int(np.prod(sizes)), 1.0), coefficients(sizes, inverse)
    benchmark(mix, v, sizes, c)


if __name__ == "__main__":
    print(f"{'sizes':>12} {'N':>10} {'copy ms':>9} {'forward/copy':>13} {'inverse/copy':>13}")
    for name, sizes in SIZES.items():
        forward, _, copy = ratio(sizes, False)
        inverse, _, _ = ratio(sizes, True)
        size = int(np.prod(sizes))
        print(f"{name:>12} {size:>10} {1e3 * copy:>9.4f} {forward:>13.2f} {inverse:>13.2f}")
