"""Leakage of certain databases, and of levels that rest on entries beyond the range of a double."""

import numpy as np
import pytest

import fastpriv as fp


@pytest.mark.parametrize("epsilon", [1e-9, 1.0, 30.0])
@pytest.mark.parametrize(
    "measure", [fp.pml_level, fp.max_information, fp.information_privacy_level]
)
def test_a_certain_database_leaks_nothing(measure, epsilon):
    channel = fp.PosteriorChannel(fp.Uniform(2, 2), epsilon)
    assert measure(channel, fp.Dense(np.eye(4)[3], [2, 2])) == 0.0
    assert measure(channel, fp.Product([[1.0, 0.0], [0.0, 1.0]])) == 0.0


def test_sets_of_priors_are_not_below_the_level_of_all_priors():
    factors = [
        [[1e-300, 1.0], [0.07406568046126126, 0.9259343195387387]],
        [[1.0], [1.0]],
        [[0.3333333333333333, 0.3333333333333333, 0.33333333333333337], [1.0, 1e-16, 1e-300]],
    ]
    channel = fp.ProductChannel(factors)
    most = fp.leakage_capacity(channel)
    for priors in (fp.PriorSet.box(np.zeros(8), np.ones(8)), fp.PriorSet.entropy(8, 0.0)):
        assert fp.pml_level(channel, priors) >= most * (1.0 - 1e-12)


def test_levels_beyond_doubles_are_finite():
    channel = fp.HammingChannel(2, 2, 700.0)
    assert fp.pml_level(channel, fp.PriorSet.entropy(4, 0.0)) == fp.leakage_capacity(channel)


@pytest.mark.parametrize(
    "prior",
    [
        fp.Dense([0.44, 0.56, 0.0, 0.0], [2, 2]),
        fp.Product([[1.0, 0.0], [0.44, 0.56]]),
        fp.Markov([1.0, 0.0], [[0.44, 0.56], [0.5, 0.5]], 2),
    ],
)
def test_nothing_leaks_about_a_certain_record(prior):
    # The error of the channel was added to it: 9e-13.
    channel = fp.PosteriorChannel(fp.Product([[0.5, 0.5], [4.2e-08, 1.0 - 4.2e-08]]), 20.0)
    assert fp.pml_level(channel, prior, 0) == 0.0
    assert not fp.row_pml(channel, prior, 0).any()
    rare = fp.Product([[1e-320, 1.0], [0.44, 0.56]])  # possible, however rare
    assert fp.pml_level(channel, rare, 0) > 1.0
