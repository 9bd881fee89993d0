"""What attains a level is what the level says: the ratio at the witness is the level."""

import math

import numpy as np
import pytest

import cases
import fastpriv as fp
import oracles as o
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.identifiability import posterior_level
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.witnesses import extreme_witness, leakage_witness, ruling_out, step_witness
from oracles import witnesses as ow
from oracles.pointwise import pml

SIZES = [(2, 2, 2), (3, 2), (2, 1, 3), (4,)]


def small_channels(sizes):
    yield from ((name, channel) for name, channel, _ in cases.channels(sizes))
    rng = np.random.default_rng(5)
    marginals = [cases.law(rng, m) for m in sizes]
    yield "tilted-product", fp.TiltedChannel(fp.Product(marginals), 0.8)
    if set(sizes) == {2}:
        n = len(sizes)
        prior = fp.Exchangeable.beta_binomial(n, 0.9, 1.3)
        yield "posterior", lambda: fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.2)
        yield "types", cases.once(lambda: fp.solve_pd_dp(prior, 0.7).channel)
        yield "count", fp.QueryChannel.count(n, cases.kernel(rng, n + 1, 4))
        yield "histogram", fp.QueryChannel.histogram(n, 2, cases.kernel(rng, n + 1, 3))
        scores = [[0, 2], [1, 0], [0, 2]][:n]
        top = sum(map(max, scores))
        yield "sum", fp.QueryChannel.sum(scores, cases.kernel(rng, top + 1, 3))


CHANNELS = [
    pytest.param(channel, id=f"{sizes}-{name}")
    for sizes in SIZES
    for name, channel in small_channels(sizes)
]
every_channel = pytest.mark.parametrize("channel", CHANNELS, indirect=True)


def priors_on(space):
    rng = np.random.default_rng(8)
    pmf = cases.law(rng, space.size)
    found = [
        fp.Uniform(space.n, space.sizes),
        fp.Product([cases.law(rng, m) for m in space.sizes]),
        fp.Dense(pmf, space.sizes),
    ]
    if space.size > 2:
        holes = np.where(np.arange(space.size) == 1, 0.0, pmf)
        found.append(fp.Dense(holes / holes.sum(), space.sizes))
    if space.m and space.m > 1:
        found.append(fp.Exchangeable(cases.simplex_weights(rng, space.n, space.m)[0]))
        start, step = cases.law(rng, space.m), cases.kernel(rng, space.m, space.m)
        found.append(fp.Markov(start, step, space.n))
    return found


def entries(channel, witness):
    """W at the witness, for its database and for the other one."""
    matrix, sizes = channel.matrix(), channel.space.sizes
    y = o.index(witness.output, channel.output_space.sizes)
    return [float(matrix[o.index(x, sizes), y]) for x in (witness.database, witness.other)]


def agree(ratio, level):
    if level == math.inf or ratio == math.inf:
        return ratio == level
    return abs(ratio - level) <= 1e-12 * max(1.0, level)


@pytest.mark.grid
@every_channel
def test_neighbours(channel):
    level = neighbour_level(channel)
    if level == 0.0:
        assert o.dp_level(channel.matrix(), channel.space.sizes) == 0
        return
    witness = step_witness(channel)
    assert ow.differ(witness.database, witness.other) == [witness.row]
    assert agree(o.log_ratio(*entries(channel, witness)), level)


@pytest.mark.grid
@every_channel
def test_posteriors(channel):
    for prior in priors_on(channel.space):
        level = posterior_level(channel, prior)
        if level == 0.0:
            continue
        witness = step_witness(channel, prior)
        assert ow.differ(witness.database, witness.other) == [witness.row]
        pmf, sizes = prior.pmf(), channel.space.sizes
        masses = [pmf[o.index(x, sizes)] for x in (witness.database, witness.other)]
        top, bottom = (p * w for p, w in zip(masses, entries(channel, witness), strict=True))
        assert agree(o.log_ratio(top, bottom), level), prior


@pytest.mark.grid
@every_channel
def test_any_two_databases(channel):
    level = extreme_level(channel)
    if level > 0.0:
        witness = extreme_witness(channel)
        assert agree(o.log_ratio(*entries(channel, witness)), level)


@pytest.mark.grid
@every_channel
def test_leakage(channel):
    matrix = channel.matrix()
    for prior in priors_on(channel.space):
        level, pmf = leakage_levels(channel, prior)[0], prior.pmf()
        witness = leakage_witness(channel, prior)
        y = o.index(witness.output, channel.output_space.sizes)
        x = o.index(witness.database, channel.space.sizes)
        assert witness.other is None
        assert pmf[x] > 0
        assert agree(pml(matrix, pmf)[y], level), prior
        law = math.fsum(pmf * matrix[:, y])
        assert agree(o.log_ratio(matrix[x, y], law), level), prior


@pytest.mark.grid
@every_channel
def test_outputs_that_rule_databases_out(channel):
    truth = ow.ruling_out(channel.matrix())
    count, first = ruling_out(channel)
    assert count == len(truth)
    assert len(first) == min(count, 5) or 0 < len(first) <= min(count, 5)
    found = [o.index(y, channel.output_space.sizes) for y in first]
    assert len(set(found)) == len(found)
    assert set(found) <= set(truth)


def test_mixed_histograms_and_sums_of_many_rows():
    rng = np.random.default_rng(3)
    for channel in (
        fp.QueryChannel.histogram(3, 3, cases.kernel(rng, 10, 4)),
        fp.QueryChannel.sum([[0, 1, 3]] * 3, cases.kernel(rng, 10, 4)),
    ):
        witness = step_witness(channel)
        assert ow.differ(witness.database, witness.other) == [witness.row]
        assert agree(o.log_ratio(*entries(channel, witness)), neighbour_level(channel))


@pytest.mark.slow
def test_a_million_rows():
    n = 1_000_000
    channel = fp.HammingChannel(n, 3, 0.5)
    witness = step_witness(channel)
    assert len(ow.differ(witness.database, witness.other)) == 1
    assert witness.output[witness.row] == witness.database[witness.row]
    far = extreme_witness(channel)
    assert (far.database != far.other).all()
    assert (far.output == far.database).all()
    prior = fp.Product.iid([0.5, 0.3, 0.2], n)
    leaky = leakage_witness(channel, prior)
    assert (leaky.output == 2).all()
    assert (leaky.database == 2).all()
    # eps_X is ln 0.5/0.2, and the output shows the likelier value.
    near = step_witness(channel, prior)
    assert (near.database[near.row], near.other[near.row], near.output[near.row]) == (0, 2, 0)


def test_a_long_chain():
    prior = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 10_000)
    channel = fp.HammingChannel(10_000, 2, 1.0)
    witness = step_witness(channel, prior)
    assert ow.differ(witness.database, witness.other) == [witness.row]
    ratio = prior.log_prob(witness.database) - prior.log_prob(witness.other) + 1.0
    assert abs(ratio - fp.identifiability_level(channel, prior)) < 1e-9


def test_zeros_too_small_for_a_double_rule_nothing_out():
    assert ruling_out(fp.HammingChannel(3, 2, 900.0))[0] == 0
    assert ruling_out(fp.HammingChannel(2000, 2, 5.0))[0] == 0


def test_many_outputs_of_many_rows_are_counted():
    z = [[1.0, 0.0], [0.5, 0.5]]
    count, first = ruling_out(fp.ProductChannel([z] * 100))
    assert count == 2**100 - 1  # all but the one with zeros only
    assert first.shape == (1, 100)


def test_many_types_that_rule_databases_out_are_counted_exactly():
    types = fp.solve_pd_dp(fp.Exchangeable.beta_binomial(6, 0.9, 1.3), 0.7).channel.types
    assert [types.size(j) for j in range(7)] == [math.comb(6, k) for k in range(7)]
    huge = types._replace(counts=[((550, 550),)])
    assert huge.size(0) == math.comb(1100, 550)


def test_too_large_to_look_for():
    rng = np.random.default_rng(0)
    law = np.where(np.arange(2**14) == 0, 0.0, rng.random(2**14))
    channel = fp.TiltedChannel(fp.Dense(law / law.sum(), [2] * 14), 0.1)
    with pytest.raises(fp.TooLarge):
        step_witness.dispatch(fp.AbstractChannel)(channel)
