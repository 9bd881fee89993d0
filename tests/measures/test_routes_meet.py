"""Brackets of one quantity by several routes, which once excluded each other."""

import numpy as np
import pytest

import fastpriv as fp


def _columns(epsilon):
    return [fp.HammingChannel(1, 2, epsilon), fp.UnaryChannel(2, epsilon)]


@pytest.mark.parametrize("epsilon", [9.9e-11, 3.3e-9, 1.7e-7])
@pytest.mark.parametrize(
    "make",
    [
        lambda e: fp.UnaryChannel(2, e),
        lambda e: fp.UnaryChannel(3, e),
        lambda e: fp.HadamardChannel(3, e),
        lambda e: fp.HashingChannel(4, e),
        lambda e: fp.SubsetChannel(3, e),
        lambda e: fp.RecordChannel(fp.ColumnsChannel(_columns(e))),
        lambda e: fp.RecordChannel(fp.HammingChannel(2, 2, e)),
    ],
    ids=["unary", "three", "hadamard", "hashing", "subset", "columns", "record"],
)
def test_one_record_has_the_capacity_of_the_channel(make, epsilon):
    channel = make(epsilon)
    whole, alone = fp.channel_capacity(channel), fp.individual_capacity(channel)
    assert whole.lower <= alone.upper
    assert alone.lower <= whole.upper
    assert alone.width < 1e-2 * alone.upper  # and it still says something


def test_a_ball_of_radius_zero_keeps_what_is_rare():
    matrix, centre = [[0.5, 0.5], [1.0, 0.0]], [1e-58, 1.0]
    alone = fp.pml_level(matrix, centre)
    assert fp.pml_level(matrix, fp.PriorSet.total_variation(centre, 0.0)) <= alone * (1 + 1e-12)


def test_a_box_leaks_no_more_than_all_priors():
    matrix = [[1.0, 2e-94], [0.25, 0.75]]
    box = fp.PriorSet.box([1.0 - 1e-9, 0.0], [1.0, 1e-9])
    assert fp.pml_level(matrix, box) <= fp.leakage_capacity(matrix) * (1 + 1e-12)


@pytest.mark.parametrize("least", [1e-10, 8.7e-16, 1.5e-125])
def test_the_level_of_e_i_is_that_of_its_matrix(least):
    prior = fp.Dense([least, 1.0 - least])
    channel = fp.PosteriorChannel(prior, prior.epsilon_tilde())
    dense = fp.Channel(np.array(channel.matrix()))
    assert fp.dp_level(channel) == pytest.approx(fp.dp_level(dense), rel=1e-9)
    uniform = fp.Uniform(1, 2)
    level = fp.identifiability_level(channel, uniform)
    assert level == pytest.approx(fp.identifiability_level(dense, uniform), rel=1e-9)


@pytest.mark.parametrize("m", [None, 3])
def test_noise_for_the_smallest_level_is_refused_in_words(m):
    with pytest.raises(fp.Infeasible, match="beyond the doubles"):
        fp.mechanisms.gaussian_variance(1.0, 5e-324, m=m)


@pytest.mark.parametrize(
    "channel",
    [
        fp.Channel([[0.5, 0.0, 0.5], [0.25, 0.25, 0.5]]),
        fp.Channel([[0.5, 0.5], [0.25, 0.75], [0.25, 0.75], [0.0, 1.0]], fp.Space([2, 2])),
        fp.QueryChannel.count(2, [[0.5, 0.5], [0.25, 0.75], [0.0, 1.0]]),
    ],
    ids=["one bit", "two bits", "count"],
)
def test_bits_that_may_be_certain_leak_without_bound(channel):
    """It was ln 1e300, below the truth: outputs that only a rare database has."""
    assert fp.pml_level(channel, fp.PriorSet.bernoulli_interval(channel.space.n, 0.0)) == np.inf
    assert fp.pml_level(channel, fp.PriorSet.iid_interval(channel.space.n, 0.0)) == np.inf
