"""Samplers: the levels of what is drawn, and what is drawn."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from cases import once
from fastpriv._sampling.thresholds import LawThresholds
from fastpriv.errors import InvalidInput
from fastpriv.measures.realised import realised as realised_channel
from oracles import log_ratio, neighbour_pairs
from oracles import sampling as o
from sampling_cases import realised


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(2, 2), (3,), (2, 3)]), st.sampled_from([0.05, 1.0]))
def test_realised_level_of_a_matrix(seed, sizes, spread):
    rng = np.random.default_rng(seed)
    size = math.prod(sizes)
    matrix = np.maximum(rng.dirichlet(np.full(4, spread), size), 1e-300)
    matrix /= matrix.sum(axis=1, keepdims=True)
    weights = realised(LawThresholds(matrix))
    truth = max(
        (
            abs(log_ratio(weights[a][y], weights[b][y]))
            for a, b in neighbour_pairs(sizes)
            for y in range(4)
        ),
        default=0,
    )
    for channel in (fp.Channel(matrix, sizes), fp.QueryChannel(np.arange(size), matrix, sizes)):
        level = fp.realised_level(channel)
        assert truth <= level <= truth * (1 + 1e-15) + 1e-15


def test_no_level_of_a_drawn_query_exceeds_that_of_its_realised_channel():
    """Also between answers that no neighbours have, where small chances round further."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        laws = rng.random((3, 3)) * 10.0 ** rng.uniform(-21, 0, (3, 3))
        laws /= laws.sum(axis=1, keepdims=True)
        channel = fp.QueryChannel.count(2, laws)
        weights = realised(LawThresholds(laws))
        drawn, slack = realised_channel(channel)
        assert fp.leakage_capacity(drawn) + slack >= o.column_level(weights)
        assert fp.dp_level(drawn) + slack >= fp.realised_level(channel) - 2.0**-50


def test_the_realised_rows_of_a_tilted_law_are_those_that_are_drawn():
    channel = fp.TiltedChannel(fp.Product([[1e-300, 1.0]] * 2), 700.0)
    drawn, slack = realised_channel(channel)
    assert fp.dp_level(drawn) + slack >= fp.realised_level(channel) > 40.0
    assert fp.dp_level(drawn) < 45.0


def test_levels_stay_finite_and_infinite_and_zero():
    tiny = fp.Channel([[1e-300, 1.0], [1e-10, 1.0 - 1e-10]])
    assert fp.dp_level(tiny) > 600.0
    assert fp.realised_level(tiny) == pytest.approx(math.log(1e-10 * 2.0**64), rel=1e-9)
    assert fp.realised_level(fp.Channel([[0.0, 1.0], [1e-10, 1.0 - 1e-10]])) == math.inf
    assert fp.realised_level(fp.Channel([[0.0, 1.0], [0.0, 1.0]])) == 0.0
    assert fp.realised_level([[1.0], [1.0]]) == 0.0
    assert fp.realised_level(fp.Channel([[0.3, 0.7]] * 4, [2, 2])) == 0.0
    assert fp.realised_level(fp.ProductChannel([np.eye(2), np.full((2, 2), 0.5)])) == math.inf
    assert fp.realised_level(fp.ProductChannel([np.full((3, 2), 0.5)] * 2)) == 0.0
    assert fp.realised_level(fp.QueryChannel([0, 0, 0, 0], [[0.3, 0.7]], [2, 2])) == 0.0
    # Chances that a double cannot hold.
    for far in (
        fp.PosteriorChannel(fp.Product.iid([0.3, 0.7], 2), 800.0),
        fp.TiltedChannel(fp.Product.iid([1e-300, 1.0], 2), 100.0),
    ):
        assert math.isfinite(fp.dp_level(far))
        assert fp.realised_level(far) < 45.0
    assert fp.realised_level(fp.TiltedChannel(fp.Product.iid([0.0, 1.0], 2), 9.0)) == 0.0
    assert fp.realised_level(fp.TiltedChannel(fp.Uniform(2, 1), 9.0)) == 0.0


def test_levels_of_drawn_databases_are_bounds_close_to_the_nominal_ones():
    types = fp.Exchangeable.beta_binomial(6, 0.5, 0.8)
    chain = fp.Markov([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], 5)
    for channel in (
        fp.PosteriorChannel(types, types.epsilon_tilde()),
        fp.PosteriorChannel(fp.Product.iid([0.3, 0.7], 4), 2.0),
        fp.PosteriorChannel(chain, chain.epsilon_tilde() + 0.1),
        fp.TiltedChannel(chain, 0.9),
        fp.TiltedChannel(fp.Uniform(3, 2), 400.0),
        fp.solve_pd_dp(types, 0.7).channel,
    ):
        level, nominal = fp.realised_level(channel), fp.dp_level(channel)
        assert nominal * (1.0 - 1e-12) <= level or level == pytest.approx(math.log(2.0**64), 1e-9)
        assert level <= nominal + 1e-5


def uneven(rng, *shape):
    return rng.dirichlet(np.full(shape[-1], 0.7), shape[:-1])


def families():
    rng = np.random.default_rng(12)
    types = fp.Exchangeable.beta_binomial(4, 0.5, 0.8)
    three = fp.Exchangeable(
        {(2, 0, 0): 0.2, (1, 1, 0): 0.3, (0, 1, 1): 0.2, (0, 2, 0): 0.1, (0, 0, 2): 0.2}
    )
    chain = fp.Markov([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], 4)
    dense = fp.Dense(rng.dirichlet(np.full(6, 9.0)), [2, 3])
    return {
        "E_d": fp.HammingChannel(2, [2, 3], 0.8),
        "E_d of large rows": fp.HammingChannel(1, 300, 4.0),
        "product": fp.ProductChannel([uneven(rng, 2, 3), uneven(rng, 3, 2)]),
        "dense": fp.Channel(uneven(rng, 6, 6), [2, 3]),
        "dense to other outputs": fp.Channel(uneven(rng, 6, 70), [2, 3]),
        "query": fp.QueryChannel([0, 1, 2, 0, 1, 2], uneven(rng, 3, 5), [2, 3]),
        "E_i dense": fp.PosteriorChannel(dense, dense.epsilon_tilde() + 0.5),
        "E_i product": fp.PosteriorChannel(fp.Product([[0.4, 0.6], [0.3, 0.3, 0.4]]), 3.0),
        "E_i exchangeable": fp.PosteriorChannel(types, types.epsilon_tilde() + 0.1),
        "E_i Markov": fp.PosteriorChannel(chain, chain.epsilon_tilde() + 0.1),
        "tilted, three values": fp.TiltedChannel(three, 0.6),
        "tilted chain": fp.TiltedChannel(chain, 0.9),
        "types": once(lambda: fp.solve_pd_dp(types, 0.7).channel),
    }


each_family = pytest.mark.parametrize(
    "channel", [pytest.param(made, id=name) for name, made in families().items()], indirect=True
)


@each_family
def test_samples_follow_the_matrix(channel):
    draws = 200_000
    rng = np.random.default_rng(1)
    for x in rng.choice(channel.space.size, size=3, replace=False):
        rows = np.repeat(channel.space.rows(np.array([x])), draws, axis=0).astype(np.int16)
        out = channel.sample(rows, rng=rng)
        if out.ndim == 2:
            assert out.dtype == np.int16
            out = channel.output_space.index(out)
        expected = draws * channel.matrix()[x]
        counts = np.bincount(out, minlength=len(expected))
        assert counts[expected == 0].sum() == 0
        rare = expected < 10.0  # put together
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        seen = expected > 0
        statistic = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
        assert scipy.stats.chi2.sf(statistic, max(seen.sum() - 1, 1)) > 1e-5


@each_family
def test_many_databases_at_once(channel):
    space = channel.space
    x = np.random.default_rng(0).integers(space.size, size=60_000)
    out = channel.sample(space.rows(x), rng=3)
    out = channel.output_space.index(out) if out.ndim == 2 else out
    counts = np.zeros((space.size, channel.output_space.size))
    np.add.at(counts, (x, out), 1)
    expected = np.bincount(x, minlength=space.size)[:, None] * channel.matrix()
    # Normal scores of all cells that are large enough.
    seen = expected > 20.0
    scores = (counts - expected)[seen] / np.sqrt((expected * (1 - channel.matrix()))[seen])
    assert np.abs(scores).max() < 5.5
    assert counts[expected == 0].sum() == 0


@each_family
def test_a_seed_repeats_and_nothing_else_does(channel):
    rows = channel.space.rows(np.arange(200) % channel.space.size)
    first = channel.sample(rows, rng=5)
    for dtype in (np.int16, np.uint32, np.uint64):
        assert np.array_equal(first, channel.sample(rows.astype(dtype), rng=5))
    generator = np.random.default_rng(5)
    assert np.array_equal(first, channel.sample(rows, rng=generator))
    assert not np.array_equal(first, channel.sample(rows, rng=generator))
    assert not np.array_equal(channel.sample(rows), channel.sample(rows))


@each_family
def test_no_databases_no_outputs(channel):
    out = channel.sample(np.empty((0, channel.space.n), dtype=np.int64), rng=1)
    assert len(out) == 0


def test_threads_draw_from_the_same_law():
    codes = np.zeros((2**19, 1), dtype=np.uint8)
    out = fp.HammingChannel(1, 2, 0.0).sample(codes)
    assert abs(int(out.sum()) - 2**18) < 6.7 * math.sqrt(2**17)  # chance trips it once in 1e10
    halves = out.reshape(4, -1)
    assert not np.array_equal(halves[0], halves[2])


def test_bits_may_be_booleans():
    count = fp.QueryChannel.count(3, np.eye(4))
    assert count.sample(np.array([[True, False, True], [False] * 3])).tolist() == [2, 0]


def test_codes_keep_their_dtype_and_memory_stays_bounded():
    wide = fp.ProductChannel([np.full((2, 200), 1 / 200)])
    assert wide.sample(np.zeros((5, 1), dtype=np.int8), rng=1).dtype == np.uint8
    assert wide.sample(np.zeros((5, 1), dtype=bool), rng=1).dtype == np.uint8
    assert fp.HammingChannel(1, 2, 1.0).sample(np.zeros((5, 1), dtype=bool), rng=1).dtype == bool
    assert fp.HammingChannel(2, 2, 1.0).sample([[0, 1]], rng=1).dtype == np.int64
    foreign = np.array([[0, 1, 2, 2]] * 50, dtype=">i4")  # bytes the other way round
    for channel in (fp.HammingChannel(4, 3, 9.0), fp.ProductChannel([np.eye(3)] * 4)):
        assert np.mean(channel.sample(foreign, rng=1) == foreign) > 0.95
    single = fp.HammingChannel(3, [1, 2, 1], 0.5).sample(np.zeros((50, 3), dtype=int), rng=1)
    assert single.sum(axis=0).tolist()[::2] == [0, 0]
    codes = np.zeros((10**7, 1), dtype=np.uint8)
    for channel in (fp.HammingChannel(1, 7, 1.0), fp.ProductChannel([np.full((2, 2), 0.5)])):
        channel.sample(codes[:10], rng=1)
        tracemalloc.start()
        assert channel.sample(codes, rng=1).dtype == np.uint8
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.5e7


def test_strided_and_read_only_rows():
    rows = np.zeros((100, 8), dtype=np.uint8)[:, ::2]
    rows.flags.writeable = False
    for channel in (fp.HammingChannel(4, 2, 1.0), fp.HammingChannel(4, [2, 3, 2, 3], 1.0)):
        assert channel.sample(rows, rng=1).shape == (100, 4)
    assert not rows.any()
    fortran = np.asfortranarray(np.arange(6).reshape(3, 2) % 2)
    assert np.array_equal(
        fp.HammingChannel(2, 2, 1.0).sample(fortran, rng=1),
        fp.HammingChannel(2, 2, 1.0).sample(np.ascontiguousarray(fortran), rng=1),
    )


def test_long_databases():
    prior = fp.Exchangeable.beta_binomial(300, 2.0, 3.0)
    channel = fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.5)
    rows = prior.sample(20, rng=1)
    out = channel.sample(rows, rng=2)
    expected = fp.distortion(channel, prior)
    assert abs((out != rows).sum(axis=1).mean() - expected) < 6 * math.sqrt(expected / 20) + 1
    assert fp.realised_level(channel) < fp.dp_level(channel) + 1e-4


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: fp.HammingChannel(2, 2, 1.0).sample([[0, 2]]),
            "record 1 must have a value in 0 .. 1",
        ),
        (lambda: fp.HammingChannel(2, [2, 3], 1.0).sample([[2, 0]]), "record 0 must have a value"),
        (lambda: fp.HammingChannel(2, [2, 3], 1.0).sample([[0, -1]]), "record 1 must have a value"),
        (lambda: fp.HammingChannel(2, 2, 1.0).sample([[0, 0]], rng="seed"), "rng"),
        (lambda: fp.HammingChannel(2, 2, 1.0).sample([[0, 0]], rng=-1), "rng"),
        (lambda: fp.TiltedChannel(fp.Dense([0.5, 0.2, 0.3]), 1e13).sample([[0]]), "epsilon"),
    ],
)
def test_what_cannot_be_drawn(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()
