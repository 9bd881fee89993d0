"""Composition of channels: the joint law, the additive bound, several data sets."""

import itertools
import math

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


def mechanisms():
    """Channels of every structure on three bits."""
    rng = np.random.default_rng(5)
    factors = [rng.dirichlet([1, 1, 1], 2) for _ in range(2)]
    space = [2, 2, 2]
    values = rng.integers(0, 3, 8)
    return {
        "dense": fp.Channel(rng.dirichlet(np.ones(3), 8), space),
        "query": fp.QueryChannel(values, rng.dirichlet(np.ones(2), 3), space),
        "same query": fp.QueryChannel(values, rng.dirichlet(np.ones(4), 3), space),
        "count": fp.QueryChannel.count(3, rng.dirichlet(np.ones(3), 4)),
        "other count": fp.QueryChannel.count(3, rng.dirichlet(np.ones(2), 4)),
        "product": fp.ProductChannel([factors[0], factors[1], factors[0]]),
        "hamming": fp.HammingChannel(3, 2, 0.7),
        "posterior": fp.PosteriorChannel(fp.Product.iid([0.4, 0.6], 3), 1.5),
    }


@pytest.mark.grid(every=5)
@pytest.mark.parametrize(("a", "b"), list(itertools.product(mechanisms(), repeat=2)))
def test_composition_is_the_joint_law(a, b):
    first, second = mechanisms()[a], mechanisms()[b]
    both = fp.compose(first, second)
    want = np.array(o.both(first.matrix().tolist(), second.matrix().tolist()))
    if isinstance(both, fp.ProductChannel):  # outputs are numbered row by row
        K, L = (c.output_space.sizes for c in (first, second))
        axes = want.reshape(8, *K, *L).transpose(0, 1, 4, 2, 5, 3, 6)
        want = axes.reshape(8, -1)
    np.testing.assert_allclose(both.matrix(), want, rtol=1e-14)
    assert both.space == first.space


def test_composition_keeps_structure():
    made = mechanisms()
    assert isinstance(fp.compose(made["hamming"], made["product"]), fp.ProductChannel)
    assert isinstance(fp.compose(made["query"], made["count"]), fp.QueryChannel)
    million = fp.compose(*[fp.HammingChannel(10**6, 2, 0.1)] * 3)
    assert fp.dp_level(million) == pytest.approx(0.3, rel=1e-9)
    # Two counts over many bits stay one count: nothing lists the 2^5000 databases.
    share = np.linspace(0.2, 0.8, 5001)
    count = fp.QueryChannel.count(5000, np.stack([share, 1 - share], axis=1))
    other = fp.QueryChannel.count(5000, np.stack([share, 1 - share], axis=1))
    twice = fp.compose(count, other)
    assert twice.output_space.size == 4
    ends = [[0.2, 0.8], [0.8, 0.2]]
    want = fp.channel_capacity(o.both(ends, ends)).upper
    assert fp.individual_capacity(twice).upper == pytest.approx(want, rel=1e-8)


def test_one_channel_composes_to_itself_and_matrices_are_taken():
    assert fp.compose(fp.HammingChannel(2, 2, 1.0)).epsilon == 1.0
    joint = fp.compose(np.eye(2), [[0.5, 0.5], [0.25, 0.75]])
    assert joint.matrix().tolist() == [[0.5, 0.5, 0, 0], [0, 0, 0.25, 0.75]]


def test_additive_bound_is_about_one_data_set():
    channel = fp.HammingChannel(2, 2, 1.0)
    twice = fp.composition_bound(channel, channel)
    assert fp.composition_bound(channel, channel.matrix()) == pytest.approx(twice, rel=1e-9)
    with pytest.raises(fp.InvalidInput, match="on the same databases"):
        fp.composition_bound(channel, fp.HammingChannel(3, 2, 1.0))


def test_composition_refuses_what_it_cannot_do():
    with pytest.raises(fp.InvalidInput, match="one channel or more"):
        fp.compose()
    with pytest.raises(fp.InvalidInput, match="one channel or more"):
        fp.composition_bound()
    with pytest.raises(fp.InvalidInput, match="pair_datasets"):
        fp.compose(fp.HammingChannel(2, 2, 1.0), fp.HammingChannel(3, 2, 1.0))
    tiny = [[1.0, 1e-200], [1.0, 1e-210]]
    with pytest.raises(fp.InvalidInput, match="underflows"):
        fp.compose(tiny, tiny)
    wide = fp.HammingChannel(2, 2_000, 1.0)
    with pytest.raises(fp.TooLarge, match="composition_bound"):
        fp.compose(wide, wide)
    big = fp.Channel(random_matrix(0, 600, 512))
    with pytest.raises(fp.TooLarge, match="composition_bound"):
        fp.compose(big, big)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(2, 2), (3, 2), (2, 1, 2)]))
def test_additive_bound_holds_and_group_bound_holds(seed, sizes):
    size = math.prod(sizes)
    first, second = random_matrix(seed, size, 3), random_matrix(seed + 1, size, 2)
    one, two = fp.Channel(first, sizes), fp.Channel(second, sizes)
    low, _ = group_capacity(o.both(first.tolist(), second.tolist()), sizes, 1)
    bound = fp.composition_bound(one, two)
    parts = fp.individual_capacity(one).upper + fp.individual_capacity(two).upper
    assert low <= bound
    assert parts <= bound <= parts * (1 + 1e-14)
    single = fp.individual_capacity(one).upper
    for k in range(1, len(sizes) + 1):
        assert fp.group_bound(one, k) >= max(fp.group_capacity(one, k).lower, k * single)
    assert fp.group_bound(one, len(sizes)) >= fp.channel_capacity(one).lower
    with pytest.raises(fp.InvalidInput, match="at most the number of records"):
        fp.group_bound(one, len(sizes) + 1)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(2, 4))
def test_cross_capacity_by_brute_force(seed, k, outputs):
    matrix = random_matrix(seed, 6, outputs)
    found = fp.cross_capacity(fp.Channel(matrix, [3, 2]), k)
    low, high = oracle.cross(matrix.tolist(), k)
    assert low <= found.upper + 1e-12
    assert found.lower <= high + 1e-12
    assert found.width <= 2e-9
    assert found.upper >= fp.individual_capacity(fp.Channel(matrix, [3, 2])).lower or k < 3


def test_cross_capacity_without_a_matrix():
    bits = fp.HammingChannel(1_000, 2, 0.01)
    found, single = fp.cross_capacity(bits, 2), fp.individual_capacity(bits)
    assert (found.lower, found.upper) == (single.lower, single.upper)
    wide = fp.cross_capacity(fp.HammingChannel(30, 3, 1.0), 4)
    assert 0.0 < wide.lower <= wide.upper <= math.log(4) * (1 + 1e-15)
    opposite = fp.cross_capacity(fp.HammingChannel(30, 3, 1.0), 2)
    assert 0.0 < opposite.lower <= opposite.upper <= opposite.lower * (1 + 1e-12)
    assert fp.two_dataset_bound(bits, bits) >= 2 * single.lower


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([((2, 2), (2, 2)), ((2,), (3,)), ((2, 1), (2, 2))]))
def test_two_data_sets(seed, spaces):
    sizes_1, sizes_2 = spaces
    first = random_matrix(seed, math.prod(sizes_1), 2)
    second = random_matrix(seed + 1, math.prod(sizes_2), 3)
    one, two = fp.Channel(first, sizes_1), fp.Channel(second, sizes_2)
    both = fp.pair_datasets(one, two)
    want = oracle.paired(first.tolist(), sizes_1, second.tolist(), sizes_2)
    np.testing.assert_allclose(both.matrix(), want, rtol=1e-14)
    bound = fp.two_dataset_bound(one, two)
    # Every adversary who ties people at random stays below; Theorem 6's four terms are no less.
    rng = np.random.default_rng(seed)
    for i in range(len(sizes_1)):
        for _ in range(20):
            prior = rng.dirichlet(np.full(both.space.size, 0.1))
            pairs = np.moveaxis(prior.reshape(both.space.sizes), i, 0)
            laws = np.moveaxis(np.reshape(want, (*both.space.sizes, 6)), i, 0)
            values = pairs.reshape(len(pairs), -1)
            mass = values.sum(axis=1)
            told = np.einsum("ax,axy->ay", values, laws.reshape(*values.shape, 6))
            assert fp.mutual_information(told / mass[:, None], mass) <= bound
    terms = [fp.individual_capacity(c).upper for c in (one, two)]
    terms += [
        fp.cross_capacity(one, max(sizes_2)).upper,
        fp.cross_capacity(two, max(sizes_1)).upper,
    ]
    assert bound <= sum(terms) * (1 + 1e-14)
    assert bound >= max(terms)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_three_data_sets_of_the_same_people(seed):
    rng = np.random.default_rng([seed, 77])
    parts = [fp.Channel(rng.dirichlet(np.full(3, 0.4), 4), [2, 2]) for _ in range(3)]
    exact = fp.individual_capacity(
        fp.pair_datasets(fp.pair_datasets(*parts[:2]), parts[2]), gap=1e-3, time_limit=0.3
    )
    bound = fp.two_dataset_bound(*parts)
    assert exact.lower <= bound <= sum(fp.channel_capacity(W).upper for W in parts) * (1 + 1e-12)
    assert bound >= fp.two_dataset_bound(*parts[:2]) * (1.0 - 1e-12)
    with pytest.raises(fp.InvalidInput, match="all data sets must have a row"):
        fp.two_dataset_bound(*parts, np.eye(2))


def test_two_data_sets_need_the_same_people():
    with pytest.raises(fp.InvalidInput, match="same people"):
        fp.two_dataset_bound(fp.HammingChannel(2, 2, 1.0), fp.HammingChannel(3, 2, 1.0))
    with pytest.raises(fp.TooLarge, match="two_dataset_bound"):
        fp.pair_datasets(fp.HammingChannel(8, 2, 1.0), fp.HammingChannel(8, 2, 1.0))


@pytest.mark.parametrize("p", [0.01, 0.1, 0.25, 0.4, 0.49])
def test_parallel_composition_fails_strictly(p):
    noise = [[1 - p, p], [p, 1 - p]]
    pair = fp.ProductChannel([noise, noise])
    alone, together = fp.channel_capacity(noise), fp.individual_capacity(pair)
    assert together.lower > 1.05 * alone.upper
    (low,), (high,) = o.capacities(np.array([o.both(noise, noise)]))
    assert low <= together.upper * (1 + 1e-9)
    assert together.lower <= high
    # The differential privacy levels of the two are the same.
    assert fp.dp_level(pair) == pytest.approx(fp.dp_level(noise), rel=1e-12)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_parallel_composition_at_the_ends(p):
    noise = [[1 - p, p], [p, 1 - p]]
    alone = fp.channel_capacity(noise)
    together = fp.individual_capacity(fp.ProductChannel([noise, noise]))
    assert together.upper == pytest.approx(alone.upper, abs=1e-9)
