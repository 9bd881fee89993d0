"""Thresholds of chains whose chances are nearly equal: no digit is lost on the wrong side."""

import numpy as np
import pytest
from mpmath import mp, mpf

import fastpriv as fp
import oracles as o


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(60):
        yield


def nearly_equal(rng, m, scale):
    weights = 1.0 + scale * rng.uniform(-1.0, 1.0, m)
    return (weights / weights.sum()).tolist()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [1e-15, 1e-7, 1e-3])
def test_thresholds_of_chains_are_not_below_the_truth(seed, scale):
    rng = np.random.default_rng(seed)
    m, n = 2 + seed % 2, 2 + (seed == 0)
    initial, chain = nearly_equal(rng, m, scale), [nearly_equal(rng, m, scale) for _ in range(m)]
    prior = fp.Markov(initial, chain, n)
    law = o.markov_pmf(o.normal(initial), [o.normal(row) for row in chain], n)
    for level, truth in (
        (prior.epsilon_x(), o.epsilon_x(law, [m] * n)),
        (prior.epsilon_hat(), o.epsilon_hat(law, [m] * n)),
    ):
        assert truth <= level <= truth + mpf("1e-14")
    channel, W = fp.HammingChannel(n, m, 1e-9), o.e_d_matrix([m] * n, 1e-9)
    truth = o.identifiability_level(W, law, [m] * n)
    assert truth <= fp.identifiability_level(channel, prior) <= truth + mpf("1e-14")


def test_uniform_chains_have_level_zero():
    for m in (1, 2, 3, 7):
        chain = fp.Markov(np.full(m, 1.0 / m), np.full((m, m), 1.0 / m), 5)
        assert chain.epsilon_x() == chain.epsilon_hat() == 0.0
