"""Draws per second of exact integer noise, against numpy's floats and OpenDP's exact noise.

Run ``python benchmarks/bench_noise.py``; OpenDP is left out where it is not installed
(``pip install 'fastpriv[peers]'``). "secure" draws from the default cryptographic source, "fast"
from numpy's SFC64. numpy's ``laplace`` and ``normal`` are
floating-point, hence attackable, and use the same SFC64. Ratios are secure draws over the peer's.
"""

import math
import time
from contextlib import suppress
from functools import partial

import numpy as np

from fastpriv.mechanisms import (
    GaussianNoise,
    GeometricCount,
    MaxEntropyNoise,
    laplace_count_leakage,
)

COUNT = 2_000_000
PEER_COUNT = 20_000


def rate(draw, count, repeats=3):
    """Draws per second, the best of a few runs after a first one that is not counted."""
    draw(min(count, 1000))
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        draw(count)
        best = min(best, time.perf_counter() - start)
    return count / best


def opendp_noise(kind, scale):
    """OpenDP's discrete noise on a vector of zeros."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "laplace":
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    return lambda count: measurement([0] * count)


def compare():
    fast = np.random.Generator(np.random.SFC64(1))
    print(
        f"{'noise':<20}{'secure':>10}{'fast':>10}{'numpy':>10}{'ratio':>8}{'OpenDP':>10}{'ratio':>8}"
    )
    cases = [(1, d) for d in (0.5, 10.0, 1e6)] + [(2, d) for d in (0.5, 10.0, 1e6)]
    cases += [(0.5, 10.0), (3, 100.0), (math.inf, 100.0)]
    for p, distortion in cases:
        noise = MaxEntropyNoise(p, distortion)
        secure = rate(noise.sample, COUNT)
        quick = rate(partial(noise.sample, rng=fast), COUNT)
        line = f"{f'p = {p:g}, D = {distortion:g}':<20}{secure / 1e6:>9.1f}M{quick / 1e6:>9.1f}M"
        if p in (1, 2):
            floating = fast.laplace if p == 1 else fast.normal
            numpy_rate = rate(partial(floating, 0.0, distortion), COUNT)
            line += f"{numpy_rate / 1e6:>9.1f}M{secure / numpy_rate:>8.2f}"
            with suppress(ImportError):
                kind = "laplace" if p == 1 else "gaussian"
                peer = rate(opendp_noise(kind, distortion), PEER_COUNT, repeats=1)
                line += f"{peer / 1e6:>9.3f}M{secure / peer:>8.0f}"
        print(line, flush=True)


def others():
    query = GeometricCount(1000, 0.1)
    counts = np.full(COUNT, 500)
    print(
        f"\nGeometricCount.sample: {rate(lambda n: query.sample(counts[:n]), COUNT) / 1e6:.1f}M/s"
    )
    print("milliseconds:")
    tasks = {
        "MaxEntropyNoise(2, 1e6)": lambda: MaxEntropyNoise(2, 1e6),
        "MaxEntropyNoise(1.5, 10)": lambda: MaxEntropyNoise(1.5, 10.0),
        "its sampler": lambda: MaxEntropyNoise(1, 10.0).sample(1),
        "GaussianNoise, 200 dimensions": partial(GaussianNoise, np.cov(np.eye(200)), 0.1),
        "laplace_count_leakage, n = 10^6": partial(
            laplace_count_leakage, 10**6, 1e-6, 0.3, np.linspace(0.0, 1.0, 1001)
        ),
    }
    for name, task in tasks.items():
        seconds = 1 / rate(lambda n, t=task: [t() for _ in range(n)], 5)
        print(f"  {name:<34}{1e3 * seconds:>8.2f}")


def main():
    compare()
    others()


if __name__ == "__main__":
    main()
