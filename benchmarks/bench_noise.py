"""Draws of exact integer noise, against numpy's floats and OpenDP's exact noise.

Ours draws from the default cryptographic source, and once from numpy's SFC64 ("fast"). numpy's
``laplace`` and ``normal`` are floating-point, hence attackable, and use the same SFC64.
"""

import math
from functools import partial

import numpy as np

import instances
from _bench import ours, peer, run, yardstick
from fastpriv.mechanisms import (
    GaussianNoise,
    GeometricCount,
    MaxEntropyNoise,
    laplace_count_leakage,
)

PEER_COUNT = 20_000


def opendp_noise(kind, scale, count):
    """OpenDP's discrete noise on a vector of zeros."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "laplace":
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    return partial(measurement, [0] * count)


def draws(bench, count):
    """Noise of several kinds and sizes."""
    fast = np.random.Generator(np.random.SFC64(1))
    cases = [(1, d) for d in (0.5, 10.0, 1e6)] + [(2, d) for d in (0.5, 10.0, 1e6)]
    cases += [(0.5, 10.0), (3, 100.0), (math.inf, 100.0)]
    for p, distortion in cases[:: bench.sizes(4, 1)]:
        noise, others = MaxEntropyNoise(p, distortion), []
        if p in (1, 2):
            floating = partial(fast.laplace if p == 1 else fast.normal, 0.0, distortion, count)
            kind = "laplace" if p == 1 else "gaussian"
            opendp = partial(opendp_noise, kind, distortion, PEER_COUNT)
            others = [
                peer("numpy, floats", floating, lambda _: {"sound": False}, count),
                peer("opendp", opendp, lambda _: {"sound": True}, PEER_COUNT, "opendp", made=True),
            ]
        bench.compare(
            "integer noise",
            f"p = {p:g}, D = {distortion:g}",
            ours(partial(noise.sample, count), lambda _: {"sound": True}, count),
            yardstick("ours, SFC64", partial(noise.sample, count, rng=fast), count),
            *others,
            unit="draw",
            headline=p == 2 and distortion == 10.0,
        )


def main(bench):
    """Draws, and what comes before them."""
    count = bench.sizes(200_000, 2_000_000)
    draws(bench, count)
    query, counts = GeometricCount(1000, 0.1), np.full(count, 500)
    bench.compare(
        "noisy counts",
        "GeometricCount(1000, 0.1)",
        ours(partial(query.sample, counts), items=count),
        unit="draw",
    )
    factor = instances.channel(200)
    tasks = {
        "MaxEntropyNoise(2, 1e6)": partial(MaxEntropyNoise, 2, 1e6),
        "MaxEntropyNoise(1.5, 10)": partial(MaxEntropyNoise, 1.5, 10.0),
        "its sampler": lambda: MaxEntropyNoise(1, 10.0).sample(1),
        "GaussianNoise, 200 dimensions": partial(GaussianNoise, factor @ factor.T, 0.1),
        "laplace_count_leakage, n = 10^6": partial(
            laplace_count_leakage, 10**6, 1e-6, 0.3, np.linspace(0.0, 1.0, 1001)
        ),
    }
    for name, task in tasks.items():
        bench.compare("design of noise", name, ours(task))


if __name__ == "__main__":
    run(main)
