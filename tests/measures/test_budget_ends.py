"""Budgets at their ends: brackets by different routes must intersect."""

import math

import numpy as np
import pytest

import fastpriv as fp


def record_information(channel):
    """Largest I(X_i; Y) over the records i, under the uniform prior."""
    sizes = channel.space.sizes
    table, found = np.array(channel.matrix()).reshape(*sizes, -1), []
    for i in range(len(sizes)):
        laws = np.moveaxis(table, i, 0).reshape(sizes[i], -1, table.shape[-1]).mean(axis=1)
        found.append(float((laws * np.log(laws / laws.mean(axis=0))).sum() / sizes[i]))
    return max(found)


def mechanisms():
    rng = np.random.default_rng(0)
    return [
        fp.HammingChannel(2, 2, 1.0),
        fp.Channel(rng.dirichlet(np.ones(4), 4), [2, 2]),
        fp.Channel(rng.dirichlet(np.ones(3), 4)),
    ]


@pytest.mark.parametrize("channel", mechanisms(), ids=["response", "bits", "one record"])
@pytest.mark.parametrize("units", [-4, 0, 1])
def test_entropy_at_its_largest_value(channel, units):
    b = math.log(4.0)
    for _ in range(abs(units)):
        b = math.nextafter(b, math.copysign(math.inf, units))
    constrained = fp.constrained_capacity(channel, b, time_limit=None)
    priors = fp.PriorSet.entropy(4, b)
    over_set = fp.individual_capacity(channel, priors, gap=1e-3, time_limit=None)
    assert constrained.lower <= over_set.upper
    assert over_set.lower <= constrained.upper
    if units >= 0:  # otherwise it is searched, to the gap
        assert constrained.width < 1e-7


def test_the_truth_for_the_double_below_ln_4():
    channel = fp.Channel(np.random.default_rng(0).dirichlet(np.ones(4), 4), [2, 2])
    uniform = record_information(channel)
    bracket = fp.constrained_capacity(channel, math.log(4.0))
    assert bracket.lower <= uniform <= bracket.upper
    assert bracket.upper > uniform * (1.0 + 1e-10)  # the set is a ball of radius about 1e-8


@pytest.mark.parametrize("b", [0.0, math.log(4.0)])
def test_the_balance_function_at_both_ends(b):
    for channel in mechanisms():
        gained = fp.balance_function(channel, b)
        worst = fp.individual_capacity(channel)
        least = fp.constrained_capacity(channel, b)
        assert gained.lower <= worst.upper - least.lower
        assert gained.upper >= worst.lower - least.upper


EVEN = [0.25] * 4
ONE_PRIOR = {
    "total variation": lambda: fp.PriorSet.total_variation(EVEN, 0.0),
    "kl": lambda: fp.PriorSet.kl_ball(EVEN, 0.0),
    "box": lambda: fp.PriorSet.box(EVEN, EVEN),
    "min-entropy": lambda: fp.PriorSet.min_entropy(4, math.log(4.0)),
    "independent bits": lambda: fp.PriorSet.bernoulli_interval(2, 0.5),
    "equal bits": lambda: fp.PriorSet.iid_interval(2, 0.5),
}


@pytest.mark.parametrize("channel", mechanisms(), ids=["response", "bits", "one record"])
@pytest.mark.parametrize("name", ONE_PRIOR)
def test_sets_of_one_prior(channel, name):
    if channel.space.n == 1 and name.endswith("bits"):
        channel = fp.Channel(channel.matrix(), [2, 2])
    uniform = record_information(channel)
    found = fp.individual_capacity(channel, ONE_PRIOR[name](), gap=1e-3, time_limit=None)
    assert found.lower <= uniform * (1.0 + 1e-12)
    assert found.upper >= uniform * (1.0 - 1e-12)


def test_a_group_of_all_records_has_the_channel_capacity():
    for channel in mechanisms():
        group, whole = fp.group_capacity(channel, channel.space.n), fp.channel_capacity(channel)
        assert group.lower <= whole.upper
        assert whole.lower <= group.upper
