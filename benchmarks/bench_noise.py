"""Draws of exact integer noise, against numpy's floats and OpenDP's exact noise.

Ours draws from the default cryptographic source, and once from numpy's SFC64 ("fast"). numpy's
``laplace`` and ``normal`` are floating-point, hence attackable, and use the same SFC64.
"""

import math
from functools import partial

import numpy as np
import pytest

import instances
from contenders import ours, peer, sizes, yardstick
from fastpriv.mechanisms import (
    GaussianNoise,
    GeometricCount,
    MaxEntropyNoise,
    laplace_count_leakage,
)

#: Draws of ours and of slow peers.
COUNT, PEER_COUNT = 1_000_000, 20_000


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


#: Order of the norm and distortion.
SMALL = [(1, 0.5), (2, 10.0)]
LARGE = [(1, 10.0), (1, 1e6), (2, 0.5), (2, 1e6), (0.5, 10.0), (3, 100.0), (math.inf, 100.0)]


@pytest.mark.parametrize(("p", "distortion"), sizes(*SMALL, large=LARGE))
def test_draws(versus, p, distortion):
    """Noise of several kinds and sizes."""
    fast = np.random.Generator(np.random.SFC64(1))
    noise, others = MaxEntropyNoise(p, distortion), []
    if p in (1, 2):
        floating = partial(fast.laplace if p == 1 else fast.normal, 0.0, distortion, COUNT)
        kind = "laplace" if p == 1 else "gaussian"
        opendp = partial(opendp_noise, kind, distortion, PEER_COUNT)
        others = [
            peer("numpy, floats", floating, lambda _: {"sound": False}, COUNT),
            peer("opendp", opendp, lambda _: {"sound": True}, PEER_COUNT, "opendp", made=True),
        ]
    versus(
        "integer noise",
        f"p = {p:g}, D = {distortion:g}",
        ours(partial(noise.sample, COUNT), lambda _: {"sound": True}, COUNT),
        yardstick("ours, SFC64", partial(noise.sample, COUNT, rng=fast), COUNT),
        *others,
        unit="draw",
    )


def test_counts(versus):
    """Noisy counts."""
    query, counts = GeometricCount(1000, 0.1), np.full(COUNT, 500)
    versus(
        "noisy counts",
        "GeometricCount(1000, 0.1)",
        ours(partial(query.sample, counts), items=COUNT),
        unit="draw",
    )


def test_design(versus):
    """What comes before the draws."""
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
        versus("design of noise", name, ours(task))
