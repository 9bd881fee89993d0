"""Leakage about rows of Markov chains of any length."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from pointwise_cases import CHANNELS, SEEDS, random_case


def chain_case(seed, n, zeros):
    """Return a chain of bits, a channel with a kernel of its own for every row, and a generator."""
    rng = np.random.default_rng(seed)
    kernels = [random_case(seed + i, (2,), 1 + int(rng.integers(3)), zeros)[1] for i in range(n)]
    steps = random_case(seed + n, (2,), 2, zeros)[1]
    initial = rng.dirichlet([1, 1]) if rng.random() < 0.8 else np.array([0.0, 1.0])
    return fp.Markov(initial, steps[:, ::-1], n), fp.ProductChannel(kernels), rng


def by_listing(channel, prior, i):
    """Largest leakage of an output about row i, from the joint law of x_i and y."""
    joint = prior.pmf()[:, None] * channel.matrix()
    shape = (2**i, 2, 2 ** (channel.space.n - i - 1), -1)
    joint = joint.reshape(shape).sum(axis=(0, 2))
    value, output = joint.sum(axis=1), joint.sum(axis=0)
    seen, could = output > 0, value > 0
    ratios = joint[could][:, seen] / np.outer(value[could], output[seen])
    return math.log(ratios.max())


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.integers(1, 5), CHANNELS)
def test_levels_of_rows_by_listing(seed, n, zeros):
    """The recursion finds the worst output about every row, also where chances are zero."""
    prior, channel, _ = chain_case(seed, n, zeros)
    levels = [fp.pml_level(channel, prior, row=i) for i in range(n)]
    truth = [by_listing(channel, prior, i) for i in range(n)]
    assert levels == pytest.approx(truth, rel=1e-11, abs=1e-12)
    assert all(level >= value - 1e-15 for level, value in zip(levels, truth, strict=True))
    assert fp.pml_level(channel, prior, row="worst") == max(levels)


@settings(deadline=None, max_examples=40)
@given(SEEDS, st.integers(1, 5), CHANNELS)
def test_leakage_given_rows_by_the_vector(seed, n, zeros):
    """Known rows on a chain: as under the vector of the same law."""
    prior, channel, rng = chain_case(seed, n, zeros)
    database = prior.sample(1, seed % 1000)[0]
    known = {i: int(database[i]) for i in range(n) if rng.random() < 0.5}
    vector = fp.Dense(prior.pmf(), channel.space)
    for y in range(channel.output_space.size):
        one = fp.conditional_pml(channel, prior, known, y=y)
        assert one == pytest.approx(fp.conditional_pml(channel, vector, known, y=y), abs=1e-12)


@pytest.mark.slow
def test_long_chains():
    """No output about a row is worse than the level; the level settles as the chain grows."""
    steps, levels = [[0.9, 0.1], [0.2, 0.8]], []
    for n in (16, 65, 1000):
        chain, channel = fp.Markov([0.5, 0.5], steps, n), fp.HammingChannel(n, 2, 1.0)
        level = fp.pml_level(channel, chain, row=7)
        levels.append(level)
        seen = [[0] * n, [1] * n, *np.random.default_rng(n).integers(0, 2, (5, n)).tolist()]
        about = [fp.row_pml(channel, chain, 7, y=y) for y in seen]
        assert max(about) <= level
        assert about[1] == pytest.approx(level, abs=1e-10)  # all ones speak for a one
        assert level <= -math.log(chain.marginal(7).min())
    assert levels[0] < levels[1] < levels[2] < levels[1] + 1e-6
    million = fp.HammingChannel(1_000_000, 2, 1.0), fp.Markov([0.5, 0.5], steps, 1_000_000)
    assert fp.pml_level(*million, row="worst") >= levels[2]
    given_ends = fp.conditional_pml(*million, {0: 0, 999_999: 0}, y=[0] * 1_000_000)
    assert given_ends < fp.pml(*million, y=[0] * 1_000_000)


def test_what_cannot_be_had_is_said_in_words():
    """Too many outputs, values that cannot occur, and more rows than NumPy has axes."""
    channel, chain = fp.HammingChannel(65, 2, 1.0), fp.Markov([1.0, 0.0], np.full((2, 2), 0.5), 65)
    with pytest.raises(fp.TooLarge, match="give one y="):
        fp.row_pml(channel, chain, 0)
    with pytest.raises(fp.TooLarge, match="give one y="):
        fp.conditional_pml(channel, chain, {0: 0})
    with pytest.raises(fp.InvalidInput, match="probability zero"):
        fp.conditional_pml(channel, chain, {0: 1}, y=[0] * 65)
    thirds = fp.Markov(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), 65)
    for row in (0, "worst"):
        with pytest.raises(fp.TooLarge, match="more than two values"):
            fp.pml_level(fp.HammingChannel(65, 3, 1.0), thirds, row=row)
    many = fp.Dense([0.25, 0.75], [1] * 70 + [2])
    wide = fp.Channel([[0.5, 0.5], [0.1, 0.9]], many.space)
    assert fp.conditional_pml(wide, many, {0: 0}) == pytest.approx(fp.pml(wide, many))
