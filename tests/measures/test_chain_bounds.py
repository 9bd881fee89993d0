"""Brackets for row-by-row channels on long chains hold what all databases give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import fastpriv.measures.chain_bounds as bounds
from fastpriv.measures.leakage import entropy_gain

shapes = st.sampled_from([(1, 2), (2, 2), (6, 2), (3, 3)])


def random_case(seed, n, m, zeros):
    """Return a chain, skewed and perhaps absorbing, and row kernels with zeros."""
    rng = np.random.default_rng(seed)
    steps = rng.dirichlet(np.full(m, 0.6), m)
    if zeros:
        steps[0] = np.eye(m)[0]
    chain = fp.Markov(rng.dirichlet(np.full(m, 0.6)), steps, n)
    W = rng.dirichlet(np.ones(3), m) * (rng.random((m, 3)) >= 0.5 * zeros)
    W[:, 0] += 1.0 - W.sum(axis=1)
    return chain, W


@settings(max_examples=50)
@given(shapes, st.integers(0, 10**6), st.booleans(), st.sampled_from([1e-6, 0.7, 5.0]))
def test_brackets_hold(shape, seed, zeros, epsilon):
    n, m = shape
    chain, W = random_case(seed, n, m, zeros)
    rows = [W if i % 2 else np.roll(W, 1, axis=1) for i in range(n)]
    for channel in (fp.HammingChannel(n, m, epsilon), fp.ProductChannel(rows)):
        truth = [fp.pml_level(channel, chain), fp.information_privacy_level(channel, chain)]
        truth.append(entropy_gain(channel, chain))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bounds, "_LISTED", 0)
            made = [fp.pml_level(channel, chain), fp.information_privacy_level(channel, chain)]
            made.append(entropy_gain(channel, chain))
        for bracket, value in zip(made, truth, strict=True):
            assert isinstance(bracket, fp.Bracket)
            assert bracket.lower <= value * (1 + 1e-12) + 1e-14
            assert value <= bracket.upper * (1 + 1e-11) + 1e-12


def test_a_thousand_rows():
    chain = fp.Markov([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], 1000)
    channel = fp.HammingChannel(1000, 2, 1.0)
    level = fp.pml_level(channel, chain)
    assert 0.8 * level.upper < level.lower <= level.upper <= 1000.0
    assert fp.pml(channel, chain, y=[1] * 1000) <= level.upper
    factor = fp.worst_leakage_factor(channel, chain)
    assert 0 < factor.lower < factor.upper < 1
    assert fp.max_information(channel, chain) == level
