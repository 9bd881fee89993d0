"""Matrices that structured channels export: they keep the level, and brackets of both intersect."""

import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv._matrices.ratios import inwards, matrix_level
from fastpriv.accounting import PrivacyProfile

LEVELS = [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 0.3, 1.0, 5.0, 50.0, 700.0]
STRUCTURES = {
    "one bit": lambda e: fp.HammingChannel(1, 2, e),
    "one value of five": lambda e: fp.HammingChannel(1, 5, e),
    "three values of three": lambda e: fp.HammingChannel(3, 3, e),
    "mixed sizes": lambda e: fp.HammingChannel(3, [2, 3, 4], e),
    "given factors": lambda e: fp.ProductChannel(
        [fp.HammingChannel(1, 2, e).matrix(), fp.HammingChannel(1, 3, e / 2).matrix()]
    ),
    "joined channels": lambda e: fp.ProductChannel(
        [fp.HammingChannel(2, 2, e), fp.HammingChannel(1, 3, e / 3)]
    ),
    "posterior": lambda e: fp.PosteriorChannel(fp.Uniform(2, 2), e),
    "tilted": lambda e: fp.TiltedChannel(fp.Dense([0.1, 0.2, 0.3, 0.4], [2, 2]), e),
    "tilted product": lambda e: fp.TiltedChannel(fp.Product([[0.1, 0.9], [0.3, 0.7]]), e),
    "subset": lambda e: fp.SubsetChannel(5, e),
    "unary": lambda e: fp.UnaryChannel(5, e),
    "hadamard": lambda e: fp.HadamardChannel(5, e),
    "hashing": lambda e: fp.HashingChannel(5, e),
    "projective": lambda e: fp.ProjectiveChannel(5, e),
    "geometric count": lambda e: fp.mechanisms.GeometricCount(3, min(e, 500.0)).channel(),
    "columns": lambda e: fp.ColumnsChannel(
        [fp.HammingChannel(1, 2, e), fp.SubsetChannel(4, e / 2)]
    ),
    "record": lambda e: fp.RecordChannel(fp.HammingChannel(2, 2, e / 2)),
}


def both(name, level):
    channel = STRUCTURES[name](level)
    return channel, fp.Channel(channel.matrix(), channel.space)


@pytest.mark.parametrize("name", STRUCTURES)
def test_an_exported_matrix_keeps_the_level(name):
    for level in LEVELS:
        channel, matrix = both(name, level)
        assert fp.dp_level(matrix) <= fp.dp_level(channel)
        assert fp.strong_dp_level(matrix) <= fp.strong_dp_level(channel) * (1.0 + 2.0**-50)
        assert np.abs(matrix.matrix().sum(axis=1) - 1.0).max() < 1e-14


#: Structures that are given by a level, which is lowered before the matrix is rounded.
LOWERED = ["one bit", "one value of five", "three values of three", "subset", "unary", "hadamard"]


@pytest.mark.parametrize("name", LOWERED)
def test_an_exported_matrix_tells_no_more_than_the_channel(name):
    for level in LEVELS:
        channel, matrix = both(name, level)
        for measure in (fp.channel_capacity, fp.contraction_coefficient):
            assert measure(matrix).lower <= measure(channel).upper
        for epsilon in (0.0, 0.5 * level, 0.9 * level):
            delta = PrivacyProfile.of(matrix).delta(epsilon).lower
            assert delta <= PrivacyProfile.of(channel).delta(epsilon).upper
            if level < 1.0:  # both are rounded up, by more terms for the matrix
                most = fp.hockey_stick(channel, epsilon) * (1.0 + 2.0**-48)
                assert fp.hockey_stick(matrix, epsilon) <= most


def test_closed_forms_are_those_of_the_channel():
    tiny = fp.channel_capacity(fp.HammingChannel(1, 2, 1e-12))
    assert tiny.lower == pytest.approx(1.25e-25, rel=1e-12)  # epsilon^2/8
    assert tiny.upper == pytest.approx(1.25e-25, rel=1e-12)


@pytest.mark.parametrize("level", [1e-15, 1e-12, 1e-9])
def test_products_of_responses_round_their_deltas_up(level):
    channel = fp.ProductChannel([fp.HammingChannel(2, 2, level), fp.HammingChannel(1, 3, level)])
    truth = math.tanh(0.5 * level)
    assert fp.hockey_stick(channel, 0.0) >= truth
    assert PrivacyProfile.of(channel).delta(0.0).upper >= truth


@pytest.mark.parametrize("level", [1e-15, 1e-8, 0.5, 30.0, 745.0])
def test_inwards_raises_what_is_too_small(level):
    rng = np.random.default_rng(3)
    axes = fp.Space([2, 3]).axes
    column = np.exp(-level * rng.integers(0, 3, (6, 40))) * rng.random(40)
    column[rng.random((6, 40)) < 0.05] = 0.0
    rounded = inwards(column, axes, level)
    assert matrix_level(rounded, axes) <= level
    assert (rounded >= column).all()
    assert (rounded.max(axis=0) == column.max(axis=0)).all()


@pytest.mark.parametrize("size", [1e-15, 1e-12, 1e-7, 1e-3, 1.0])
def test_a_composition_is_within_its_bounds(size):
    rng = np.random.default_rng(5)
    for kind in range(4):
        first, second = (_part(kind, size, rng) for _ in range(2))
        joint = fp.compose(first, second)
        assert fp.dp_level(joint) <= fp.dp_level(first) + fp.dp_level(second)
        bound = fp.composition_bound(first, second)
        assert fp.individual_capacity(joint).lower <= bound
        assert fp.individual_capacity(fp.Channel(joint.matrix(), joint.space)).lower <= bound


def _part(kind, size, rng):
    rows = rng.dirichlet(np.ones(3)) + size * rng.random((3, 3))
    rows /= rows.sum(axis=1, keepdims=True)
    if kind == 0:
        return rows
    if kind == 1:
        return fp.HammingChannel(2, 2, size * rng.random())
    if kind == 2:
        return fp.QueryChannel.count(2, rows)
    return fp.TiltedChannel(fp.Dense(rng.dirichlet(np.ones(4)), [2, 2]), size)


@pytest.mark.parametrize("level", [1e-12, 0.3, 1.0, 1.7, 300.0, 5000.0])
def test_pairs_at_the_same_distance_have_the_same_entry(level):
    matrix = fp.HammingChannel(4, [2, 3, 1, 2], level).matrix()
    assert len(np.unique(matrix)) <= 4
    assert (matrix == matrix.T).all()


def test_a_rare_output_of_a_tilted_law_is_not_raised_beyond_rounding():
    law = fp.Dense([3.8e-256, 9e-133, 2.4e-273, 1.9e-86, 9.8e-144, 1.0], [3, 2])
    channel = fp.TiltedChannel(law, 430.34)
    matrix, nearest = channel.matrix(), channel.nearest_matrix()
    assert fp.dp_level(fp.Channel(matrix, channel.space)) <= fp.dp_level(channel)
    assert np.allclose(matrix, nearest, rtol=1e-11, atol=1e-320)


@pytest.mark.parametrize("n", [1, 3])
def test_the_largest_levels_keep_their_matrix(n):
    matrix = fp.HammingChannel(n, 2, 1e308).matrix()
    np.testing.assert_array_equal(matrix.argmax(axis=1), np.arange(2**n))
    assert np.diag(matrix).min() == 1.0
    assert fp.dp_level(fp.Channel(matrix, fp.Space.hamming(n, 2))) <= 1e308
    joint = fp.compose(fp.HammingChannel(n, 2, 1e308), fp.HammingChannel(n, 2, 1e308))
    assert joint.matrix().max() == 1.0


def test_a_record_that_was_given_is_exported_as_it_is():
    # Its level was compared with one that is rounded otherwise: an entry moved by a last digit.
    rng = np.random.default_rng(3)
    for _ in range(50):
        step = rng.integers(1, 2**20) * 2.0**-50
        low = rng.integers(2**30, 2**40) * 2.0**-50
        rows = np.array([[low, 1.0 - low], [low + step, 1.0 - low - step]])
        channel = fp.ProductChannel([rows])
        assert np.array_equal(channel.matrix(), rows)
        assert fp.dp_level(channel) == fp.dp_level(rows)
