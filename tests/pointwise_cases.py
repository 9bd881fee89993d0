"""Random channels and checks that the tests of pointwise leakage share."""

import math

import numpy as np
from hypothesis import strategies as st

from cases import close, kernel


def covers(values, truths, rel=1e-11, abs_=1e-13):
    """Whether floats agree with the oracle's numbers and none is below its own."""
    values, truths = np.atleast_1d(values).tolist(), list(truths)
    assert len(values) == len(truths)
    for value, truth in zip(values, truths, strict=True):
        assert close(value, truth, rel, abs_), (value, truth)
        # Inputs are rounded to doubles before either side sees them, at times in another order.
        assert value == math.inf or value >= truth - 1e-15 * max(1, truth), (value, truth)


def random_case(seed, sizes=(2, 2), outputs=3, zeros=0.0):
    """Return a random generator and channel matrix over a space."""
    rng = np.random.default_rng(seed)
    matrix = kernel(rng, int(np.prod(sizes)), outputs, 0.02)
    matrix = np.where(rng.random(matrix.shape) < zeros, 0.0, matrix)
    matrix[:, 0] += 0.05
    return rng, matrix / matrix.sum(axis=1, keepdims=True)


SEEDS = st.integers(0, 2**32 - 1)
SPACES = st.sampled_from([(2,), (3,), (2, 2), (2, 3), (2, 2, 2), (1, 3)])
CHANNELS = st.sampled_from([0.0, 0.3])
