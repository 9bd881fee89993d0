"""Named channels of Wu-Xia-He 2020, their closed forms and calibration, and composition."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from oracles import dalenius as oracle
from oracles.individual import group_capacity

levels = st.one_of(
    st.floats(1e-300, 1e-6), st.floats(1e-6, 0.7), st.sampled_from([0.0, 1e-32, math.log(2)])
)


def random_matrix(seed, size, outputs, sharpness=1.0):
    return np.random.default_rng(seed).dirichlet(np.full(outputs, sharpness), size)


# Binary symmetric.


@settings(max_examples=60, deadline=None)
@given(levels)
def test_flip_keeps_its_promise_and_is_tight(epsilon):
    p = fp.mechanisms.binary_symmetric_flip(epsilon)
    assert 0.0 <= p <= 0.5
    assert oracle.flip_capacity(p) <= epsilon
    # The two floats of the kernel keep it as well, taken as the law they are proportional to.
    stay, flip = Fraction(1.0 - p), Fraction(p)
    share = flip / (stay + flip)
    with mp.workdps(120):
        share = mp.mpf(share.numerator) / share.denominator
        assert oracle.flip_capacity(share) <= epsilon
    # No float much below does.
    if p > 0.0:
        below = p - 2.0**-52 * max(p, 2.0**-54) * 4 if p < 0.25 else p - 2.0**-53
        assert oracle.flip_capacity(below) > epsilon


@pytest.mark.parametrize("epsilon", [0.694, 1.0, 700.0])
def test_from_ln_two_on_nothing_is_turned_round(epsilon):
    assert fp.mechanisms.binary_symmetric_flip(epsilon) == 0.0


def test_the_float_below_ln_two_still_needs_noise():
    assert 0.0 < fp.mechanisms.binary_symmetric_flip(math.log(2)) < 1e-18


@pytest.mark.parametrize("sizes", [(2,), (2, 2), (3, 2), (2, 2, 2), (1, 2)])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.75])
def test_binary_symmetric_capacity_is_reached_exactly_where_a_row_can_change_the_answer(sizes, p):
    bound = float(oracle.flip_capacity(p))
    count = math.prod(sizes)
    for values in itertools.islice(itertools.product([0, 1], repeat=count), 1, 12):
        channel = fp.mechanisms.binary_symmetric(values, p, sizes)
        assert channel.matrix()[0].tolist() == ([1 - p, p] if values[0] == 0 else [p, 1 - p])
        found = fp.individual_capacity(channel)
        assert found.lower <= bound * (1 + 1e-9) + 1e-15
        reached = any(
            values[x] != values[y] and xs[i] != ys[i]
            for (x, xs), (y, ys) in itertools.product(enumerate(o.databases(sizes)), repeat=2)
            for i in range(len(sizes))
        )
        assert found.upper == pytest.approx(bound if reached else 0.0, rel=1e-9, abs=1e-15)


def test_example_one_of_the_paper():
    """f(x_1, x_2) = [x_1 = x_2] with three and two values: the bound is reached."""
    equal = [int(a == b) for a, b in o.databases((3, 2))]
    channel = fp.mechanisms.binary_symmetric(equal, 0.2, (3, 2))
    low, high = group_capacity(channel.matrix().tolist(), (3, 2), 1)
    found = fp.individual_capacity(channel)
    assert low <= found.upper
    assert found.lower <= high
    assert found.upper == pytest.approx(float(oracle.flip_capacity(0.2)), rel=1e-9)
    assert fp.is_weakly_symmetric(fp.mechanisms.binary_symmetric([0, 1], 0.2, [2]))


# Exponential.


@pytest.mark.parametrize("k", [1, 2, 3, 7, 40])
@pytest.mark.parametrize(
    "rate", [0.0, 1e-300, 1e-12, 1e-3, 0.012, 0.0126, 0.2, 0.26, 0.99, 1.01, 5.0, 40.0, 300.0]
)
def test_exponential_entropy_has_its_digits_everywhere(k, rate):
    exact = oracle.exponential_entropy(k, rate)
    found = fp.mechanisms.exponential_entropy(k, rate)
    assert abs(found - exact) <= 2e-15 * abs(exact)


def test_exponential_entropy_at_the_ends():
    assert fp.mechanisms.exponential_entropy(5, math.inf) == 0.0
    assert fp.mechanisms.exponential_entropy(10**9, 0.0) == math.log(10**9)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.one_of(st.floats(1e-300, 1e-3), st.floats(1e-3, 3.0)))
def test_exponential_rate_keeps_its_promise_and_is_tight(k, epsilon):
    rate = fp.mechanisms.exponential_rate(k, epsilon)
    if rate == math.inf:
        assert epsilon >= mp.log(k)
        return
    with mp.workdps(400):
        assert mp.log(k) - oracle.exponential_entropy(k, rate) <= epsilon
    values = np.arange(k)
    kernel = fp.mechanisms.exponential(
        values, range(k), lambda y, v: abs(y - v), rate, [k]
    ).matrix()
    with mp.workdps(400):
        for row in kernel[:2]:
            total = mp.fsum(row)
            law = [mp.mpf(w) / total for w in row]
            assert mp.log(k) - o.entropy(law) <= epsilon
    if epsilon > 1e-20:
        with mp.workdps(400):
            more = mp.log(k) - oracle.exponential_entropy(k, rate * (1 + 1e-5))
            assert more > epsilon


def test_exponential_rate_at_the_ends():
    assert fp.mechanisms.exponential_rate(4, 0.0) == 0.0
    assert fp.mechanisms.exponential_rate(4, 700.0) == math.inf
    assert fp.mechanisms.exponential_rate(1, 0.0) == math.inf
    assert fp.mechanisms.exponential_rate(100_000, 1e-8) > 0.0


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.floats(0.0, 50.0), st.integers(0, 10**6))
def test_exponential_channel_follows_the_definition(answers, k, rate, seed):
    rng = np.random.default_rng(seed)
    distance = rng.integers(0, 4, (answers, k)).astype(float)  # with ties
    values = rng.integers(0, answers, 4)
    channel = fp.mechanisms.exponential(values, range(k), distance, rate, [2, 2])
    want = [oracle.exponential_row(distance[v].tolist(), rate) for v in values]
    np.testing.assert_allclose(channel.matrix(), want, rtol=1e-14, atol=0.0)
    assert fp.is_data_independent(channel)
    exact = math.log(k) - fp.mechanisms.exponential_entropy(k, rate)
    assert fp.data_independent_bound(channel) == pytest.approx(exact, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("rate", [1e308, math.inf])
def test_exponential_channel_at_huge_rates_is_sure(rate):
    channel = fp.mechanisms.exponential([0, 1], range(3), lambda y, v: abs(y - v), rate, [2])
    assert channel.matrix().tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("outputs", [3, {0, 1, 2}])
def test_exponential_outputs_have_an_order(outputs):
    with pytest.raises(fp.InvalidInput, match="order"):
        fp.mechanisms.exponential([0, 1], outputs, lambda y, v: abs(y - v), 1.0, [2])


@pytest.mark.parametrize("epsilon", [5e-324, 1e-322, 1e-310])
def test_exponential_rate_keeps_its_promise_among_the_least_doubles(epsilon):
    rate = fp.mechanisms.exponential_rate(2, epsilon)
    assert mp.mpf(rate) ** 2 / 8 <= mp.mpf(epsilon)  # ln 2 - H(Z) up to the fourth power


def test_exponential_entropy_of_too_many_outputs():
    with pytest.raises(fp.TooLarge, match="fewer outputs"):
        fp.mechanisms.exponential_entropy(10**400, 1.0)


def test_exponential_channel_takes_numbers_and_an_infinite_rate():
    answers = [0.5, 2.25, 0.5, 1.0]
    channel = fp.mechanisms.exponential(
        answers, [0.0, 1.0, 2.0], lambda y, v: (y - v) ** 2, math.inf, [2, 2]
    )
    # 0.5 is as far from 0 as from 1: the output listed first comes first.
    assert channel.matrix().tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.binary_symmetric([0, 1], 1.5, [2]),
        lambda m: m.binary_symmetric([0, 2], 0.5, [2]),
        lambda m: m.binary_symmetric_flip(-0.1),
        lambda m: m.binary_symmetric_flip(math.nan),
        lambda m: m.exponential([0, 1], [0, 1], [[0, 1]], 1.0, [2]),
        lambda m: m.exponential([0, 1], [0, 1, 2], [[0, 1], [1, 0]], 1.0, [2]),
        lambda m: m.exponential([0, 1], [0, 1], lambda y, v: -1.0, 1.0, [2]),
        lambda m: m.exponential([0, 1], [0, 1], lambda y, v: math.nan, 1.0, [2]),
        lambda m: m.exponential([0, 1], [0, 1], lambda y, v: abs(y - v), math.nan, [2]),
        lambda m: m.exponential([0, 1], [], lambda y, v: abs(y - v), 1.0, [2]),
        lambda m: m.exponential_entropy(0, 1.0),
        lambda m: m.exponential_entropy(3, -1.0),
        lambda m: m.exponential_rate(3, -1.0),
        lambda m: m.exponential_rate(2.5, 1.0),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(fp.InvalidInput):
        call(fp.mechanisms)


# Data independence and weak symmetry.


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


# Composition.


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
    with pytest.raises(fp.InvalidInput, match="about one data set"):
        fp.composition_bound(channel, fp.HammingChannel(3, 2, 1.0))


def test_composition_refuses_what_it_cannot_do():
    with pytest.raises(fp.InvalidInput, match="at least one"):
        fp.compose()
    with pytest.raises(fp.InvalidInput, match="at least one"):
        fp.composition_bound()
    with pytest.raises(fp.InvalidInput, match="pair_datasets"):
        fp.compose(fp.HammingChannel(2, 2, 1.0), fp.HammingChannel(3, 2, 1.0))
    tiny = [[1.0, 1e-200], [1.0, 1e-210]]
    with pytest.raises(fp.InvalidInput, match="range of a double"):
        fp.compose(tiny, tiny)
    wide = fp.HammingChannel(2, 2_000, 1.0)
    with pytest.raises(fp.TooLarge, match="composition_bound"):
        fp.compose(wide, wide)
    big = fp.Channel(random_matrix(0, 600, 512))
    with pytest.raises(fp.TooLarge, match="composition_bound"):
        fp.compose(big, big)


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
    with pytest.raises(fp.InvalidInput, match="at most the number of rows"):
        fp.group_bound(one, len(sizes) + 1)


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
    found = fp.parallel_example(p)
    assert found.together.lower > 1.05 * found.alone.upper
    noise = [[1 - p, p], [p, 1 - p]]
    (low,), (high,) = o.capacities(np.array([o.both(noise, noise)]))
    assert low <= found.together.upper * (1 + 1e-9)
    assert found.together.lower <= high
    # Differential privacy does not tell the two apart.
    assert fp.dp_level(found.channel) == pytest.approx(fp.dp_level(noise), rel=1e-12)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_parallel_composition_at_the_ends(p):
    found = fp.parallel_example(p)
    assert found.together.upper == pytest.approx(found.alone.upper, abs=1e-9)
