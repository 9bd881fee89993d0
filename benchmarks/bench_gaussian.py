"""Certified capacities of the Gaussian channel against Blahut-Arimoto on a grid of inputs.

For each reach T in standard deviations: the width of our bracket, and how far plain Blahut-Arimoto
on 201 inputs (not certified) is from the capacity when it is stopped: within 1e-6, or after 2 s.
"""

import time
from functools import partial

import numpy as np
import pytest

import fastpriv as fp
from contenders import ours, peer, sizes
from fastpriv.mechanisms import amplitude as _gaussian


def certified(reach):
    """The bracket, without what an earlier call kept."""
    _gaussian._optimum.cache_clear()
    return fp.mechanisms.GaussianChannel(reach, 1.0).capacity()


def on_a_grid(reach, capacity, seconds=2.0, count=201):
    """What Blahut-Arimoto finds until it is within 1e-6 of the capacity, or in a time."""
    x, y = np.linspace(-reach, reach, count), np.arange(-reach - 8, reach + 8, 0.1)
    rows = np.exp(-0.5 * (y - x[:, None]) ** 2)
    rows /= rows.sum(axis=1, keepdims=True)
    entropies = (rows * np.log(np.maximum(rows, 1e-300))).sum(axis=1)
    p, start = np.full(count, 1 / count), time.perf_counter()
    while True:
        far = entropies - rows @ np.log(p @ rows)
        value = float(p @ far)
        if abs(value - capacity) < 1e-6 or time.perf_counter() - start > seconds:
            return value
        p *= np.exp(far - far.max())
        p /= p.sum()


@pytest.mark.parametrize("reach", sizes(0.5, 3.0, large=[1.5, 2.0, 5.0, 8.0, 12.0, 32.0]))
def test_capacity(versus, reach):
    """Capacities."""
    exact = certified(reach).midpoint
    versus(
        "capacity of the Gaussian channel",
        f"inputs within {reach:g} standard deviations",
        ours(partial(certified, reach), lambda b: {"value": b.lower, "error": b.width}),
        peer(
            "Blahut on a grid",
            partial(on_a_grid, reach, exact),
            lambda value: {"value": value, "error": abs(exact - value)},
        ),
        error_of="error, nats",
        target=1e-9,
    )


@pytest.mark.parametrize("m", [None, 2])
def test_calibration(versus, m):
    """Calibrated variances."""
    versus(
        "Gaussian noise for a capacity of 0.5",
        f"values in [-1, 1], m = {m}",
        ours(partial(fp.mechanisms.gaussian_variance, 1.0, 0.5, m=m), lambda v: {"value": v}),
    )
