"""Data independence and weak symmetry: by brute force, and the closed forms they allow."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from oracles import dalenius as oracle
from oracles.individual import group_capacity


def random_matrix(seed, size, outputs, sharpness=1.0):
    return np.random.default_rng(seed).dirichlet(np.full(outputs, sharpness), size)


def permuted(seed, sizes, outputs):
    """A matrix whose rows are permutations of one law, some of them often used."""
    rng = np.random.default_rng(seed)
    law = rng.permutation(np.arange(1, outputs + 1)) ** 2.0
    law /= law.sum()
    few = [rng.permutation(law) for _ in range(rng.integers(1, 5))]
    few += [np.roll(law, shift) for shift in range(rng.integers(0, outputs + 1))]
    return np.array([few[j] for j in rng.integers(0, len(few), math.prod(sizes))])


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(2, 2), (3, 2), (3, 3), (2, 2, 2), (4, 2)]))
def test_weak_symmetry_by_brute_force_and_its_closed_form(seed, sizes):
    outputs = 2 + seed % 3
    matrix = permuted(seed, sizes, outputs)
    channel = fp.Channel(matrix, sizes)
    assert fp.is_data_independent(channel)
    want = oracle.weakly_symmetric(matrix.tolist(), sizes)
    assert fp.is_weakly_symmetric(channel) == want
    bound = fp.data_independent_bound(channel)
    exact = float(mp.log(outputs) - o.entropy(matrix[0]))
    assert exact <= bound <= exact * (1 + 1e-12) + 1e-15
    found = fp.channel_capacity(channel)
    assert found.lower <= bound
    if want:
        low, high = group_capacity(matrix.tolist(), sizes, 1)
        assert low <= bound
        assert high == pytest.approx(bound, rel=1e-6)


def test_equal_column_sums_of_the_whole_matrix_are_not_enough():
    """All four cyclic shifts of one law, but a row of two values holds only two of them."""
    law = np.array([0.4, 0.3, 0.2, 0.1])
    channel = fp.Channel([np.roll(law, s) for s in range(4)], [2, 2])
    np.testing.assert_allclose(channel.matrix().sum(axis=0), 1.0)
    assert not fp.is_weakly_symmetric(channel)
    assert fp.individual_capacity(channel).upper < 0.9 * fp.data_independent_bound(channel)
    assert fp.is_weakly_symmetric(fp.Channel(channel.matrix(), [4]))


def test_structures_answer_like_their_matrices():
    kernel = [np.roll([0.5, 0.3, 0.2], s) for s in (0, 1, 2, 0)]
    count = fp.QueryChannel.count(3, kernel)
    for channel in (
        count,
        fp.HammingChannel(2, 3, 0.5),
        fp.ProductChannel([[[0.5, 0.5], [0.5, 0.5]], [[0.25, 0.75], [0.75, 0.25]]]),
        fp.ProductChannel([[[0.5, 0.5], [0.4, 0.6]], [[0.25, 0.75], [0.75, 0.25]]]),
        fp.QueryChannel.sum([[0, 1, 1]] * 2, kernel[:3]),
        fp.QueryChannel.histogram(2, 3, [kernel[s % 3] for s in range(6)]),
    ):
        dense = fp.Channel(channel.matrix(), channel.space)
        assert fp.is_data_independent(channel) == fp.is_data_independent(dense)
        assert fp.is_weakly_symmetric(channel) == fp.is_weakly_symmetric(dense)
        if fp.is_data_independent(channel):
            bounds = fp.data_independent_bound(channel), fp.data_independent_bound(dense)
            assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)


def test_large_structures_need_no_matrix():
    channel = fp.HammingChannel(100_000, 4, 0.1)
    assert fp.is_data_independent(channel)
    assert not fp.is_weakly_symmetric(channel)
    one = fp.data_independent_bound(fp.HammingChannel(1, 4, 0.1))
    assert fp.data_independent_bound(channel) == pytest.approx(100_000 * one, rel=1e-12)


def test_dependent_noise_has_no_closed_form():
    with pytest.raises(fp.InvalidInput, match="individual_capacity"):
        fp.data_independent_bound([[1.0, 0.0], [0.5, 0.5]])
    assert not fp.is_weakly_symmetric([[1.0, 0.0], [0.5, 0.5]])


def test_a_search_without_end_is_refused():
    """Eleven values of one row, each with 64 shifts of a law that mixes well: nothing settles."""
    law = np.zeros(64)
    law[:11] = np.arange(1, 12) / 66
    shifts = np.array([np.roll(law, s) for s in range(64)])
    channel = fp.QueryChannel(np.arange(11 * 64) % 64, shifts, [11, 64])
    with pytest.raises(fp.TooLarge, match="individual_capacity"):
        fp.is_weakly_symmetric(channel)


def test_independence_does_not_depend_on_the_order_of_rows():
    """Rows that differ by 1e-12 are the same, or not, from whichever row they are compared."""
    rows = [
        [0.6568043822060361, 0.3431956177939639],
        [0.6568043822057965, 0.3431956177942035],
        [0.6568043822061584, 0.34319561779384156],
    ]
    answers = {fp.is_data_independent([rows[k] for k in order]) for order in ((0, 1, 2), (1, 0, 2))}
    assert len(answers) == 1
