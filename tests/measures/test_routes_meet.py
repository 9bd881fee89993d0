"""Brackets of one quantity by several routes, which once excluded each other."""

from functools import partial

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.measures.correlation import correlation


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
    with pytest.raises(fp.Infeasible, match="overflows a double"):
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


def _dependent(columns):
    """Every measure that reads the matrix, for a record of columns that depend on each other."""
    channel = fp.RecordChannel(columns)
    prior = fp.Dense(
        np.arange(1.0, channel.space.size + 1.0) / np.arange(channel.space.size + 1).sum()
    )
    return channel, prior


RECORDS = {
    "responses": lambda e: fp.HammingChannel(2, 2, e),
    "columns": lambda e: fp.ColumnsChannel(_columns(e)),
    "local": lambda e: fp.ColumnsChannel([fp.UnaryChannel(2, e), fp.SubsetChannel(3, e)]),
    "tilted": lambda e: fp.TiltedChannel(fp.Dense([0.1, 0.2, 0.3, 0.4], [2, 2]), e),
}


@pytest.mark.parametrize("epsilon", [1.907e-10, 3.1e-8, 2.3e-5])
@pytest.mark.parametrize("name", RECORDS)
def test_information_of_a_record_keeps_its_digits(name, epsilon):
    """It read the rounded matrix, and was above the capacity."""
    channel, prior = _dependent(RECORDS[name](epsilon))
    twice = fp.RecordChannel(RECORDS[name](2.0 * epsilon))
    found, doubled = (fp.mutual_information(c, prior) for c in (channel, twice))
    assert 0.0 < found <= fp.channel_capacity(channel).upper
    assert doubled / found == pytest.approx(4.0, rel=20.0 * epsilon + 1e-11)
    uniform = fp.mutual_information(channel, fp.Uniform(1, channel.space.size))
    assert uniform <= fp.channel_capacity(channel).upper


@pytest.mark.parametrize("epsilon", [1.907e-10, 3.1e-8, 2.3e-5])
@pytest.mark.parametrize("name", RECORDS)
def test_measures_of_a_record_allow_for_the_errors_of_its_matrix(name, epsilon):
    columns = RECORDS[name](epsilon)
    channel, prior = _dependent(columns)
    inner = fp.Dense(prior.pmf(), columns.space.sizes)
    for measure in (correlation, partial(fp.sdpi_constant, gap=0.5)):
        one, other = measure(channel, prior), measure(columns, inner)
        assert one.lower <= other.upper
        assert other.lower <= one.upper
    one, other = fp.contraction_coefficient(channel), fp.contraction_coefficient(columns)
    assert one.lower <= other.upper
    assert other.lower <= one.upper
    assert fp.pml_level(channel, prior) <= fp.leakage_capacity(channel)
    # Near zero the leakage is linear in epsilon, so that no larger level leaks less.
    least = fp.pml_level(fp.RecordChannel(RECORDS[name](1e4 * epsilon)), prior) / 1e4
    assert fp.pml_level(channel, prior) >= least * (1.0 - 1e5 * epsilon)


def test_information_of_columns_by_the_chain_rule():
    columns = [fp.UnaryChannel(2, 1.0), fp.Channel([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])]
    columns += [fp.HammingChannel(1, 2, 0.7), fp.RecordChannel(fp.HammingChannel(2, 2, 0.3))]
    channel = fp.ColumnsChannel(columns)
    prior = fp.Dense(np.random.default_rng(4).dirichlet(np.ones(48)), channel.space.sizes)
    plain = fp.mutual_information(np.array(channel.matrix()), prior.pmf())
    assert fp.mutual_information(channel, prior) == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda e: fp.RecordChannel(fp.HammingChannel(2, 2, e)),
        lambda e: fp.ColumnsChannel(_columns(e)),
        lambda e: fp.UnaryChannel(3, e),
        lambda e: fp.SubsetChannel(3, e),
    ],
    ids=["record", "columns", "unary", "subset"],
)
def test_gains_allow_for_the_errors_of_the_matrix(make):
    """They are linear in epsilon near zero, and were below the truth."""
    space, far = make(0.1).space, 2.0**12
    weights = np.arange(1.0, space.size + 1.0)
    prior = fp.Dense(weights / weights.sum(), space.sizes)
    guess = np.eye(space.size) / prior.pmf()  # every database is as good a guess
    for epsilon in 10.0 ** np.random.default_rng(0).uniform(-12.0, -9.0, 25):
        for measure in (
            lambda channel: fp.g_leakage(channel, prior, guess),
            lambda channel: fp.additive_g_leakage(channel, prior, guess),
            lambda channel: fp.additive_gain_capacity(channel, prior, "bounded"),
        ):
            least = measure(make(far * epsilon)) * (1.0 - 2.0**16 * epsilon) - 2e-14
            assert measure(make(epsilon)) * far >= least


@pytest.mark.parametrize("rare", [5e-324, 1e-310, 2e-308])
def test_an_output_that_is_rare_everywhere_leaks_nothing(rare):
    # its probability was added up as a logarithm, and the error of that was called a leakage
    matrix = [[rare, 1.0], [rare, 1.0], [0.5, 0.5]]
    for prior in ([0.0, 1.0, 0.0], [0.25, 0.75, 0.0]):
        for channel in (fp.Channel(matrix), fp.QueryChannel([0, 1, 2], matrix, fp.Space([3]))):
            assert fp.pml_level(channel, prior) == 0.0
            assert fp.information_privacy_level(channel, prior) == 0.0
            assert not fp.pml(channel, prior).any()
    assert fp.pml_level(matrix, [0.25, 0.25, 0.5]) > 0.0


def test_a_polytope_of_rare_probabilities_is_a_bound_on_the_box():
    channel, low = fp.HammingChannel(1, 3, 30.0), np.full(3, 2.0**-54)
    box = fp.pml_level(channel, fp.PriorSet.box(low, np.ones(3)))
    eye = np.eye(3)
    same = fp.PriorSet.polytope(np.vstack([eye, -eye]), np.concatenate([np.ones(3), -low]))
    assert box <= fp.pml_level(channel, same) <= fp.leakage_capacity(channel) * (1 + 1e-12)


FIRST = [[1e-57, 1.0, 5e-39], [1e-57, 1.0, 5e-39], [0.0625, 0.875, 0.0625]]
SECOND = [[1.0, 0.0], [1.0, 0.0], [2.0**-11, 1 - 2.0**-11]]


@pytest.mark.parametrize("law", [[1.0, 0.0, 0.0], [0.25, 0.75, 0.0], [0.0, 1.0, 0.0]])
def test_values_that_nobody_has_leave_no_trace(law):
    # entries relative to those of the third value have errors of 1e-13, which looked like leakage
    for channel in (fp.ProductChannel([FIRST, SECOND]), fp.ProductChannel([FIRST])):
        for prior in (fp.Product([law] * channel.space.n), fp.Dense(law)):
            if prior.space.n == channel.space.n:
                assert fp.pml_level(channel, prior) == 0.0
                assert fp.information_privacy_level(channel, prior) == 0.0
                assert not fp.pml(channel, prior).any()


@pytest.mark.parametrize("law", [[0.5, 0.0, 0.5], [0.0, 0.25, 0.75], [0.0, 0.0, 1.0]])
@pytest.mark.parametrize("epsilon", [1e-9, 0.7, 30.0])
def test_some_values_leak_as_much_as_in_the_matrix(law, epsilon):
    joint = fp.Dense(np.kron(law, [0.0, 0.25, 0.75]), [3, 3])
    for channel in (
        fp.HammingChannel(2, 3, epsilon),
        fp.TiltedChannel(fp.Product.iid([0.2, 0.3, 0.5], 2), epsilon),
        fp.TiltedChannel(fp.Dense(np.arange(1, 10) / 45, [3, 3]), epsilon),
    ):
        dense = fp.Channel(np.array(channel.nearest_matrix()), channel.space)
        for prior in (joint, fp.Product([law, law])):
            for measure in (fp.pml_level, fp.information_privacy_level):
                found, same = measure(channel, prior), measure(dense, prior)
                assert found == pytest.approx(same, rel=1e-12, abs=1e-13)
            leaks = fp.pml(channel, prior), fp.pml(dense, prior)
            np.testing.assert_allclose(*leaks, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("epsilon", [1e-7, 3.0, 21.6])
def test_correlation_does_not_depend_on_databases_that_hardly_occur(epsilon):
    # differences to the mean over all values had errors of 5e-9, from a value of probability 1e-56
    laws = [[0.0625, 0.625, 0.3125], [1.0, 1.8e-56]]
    product = fp.Product(laws)
    dense = fp.Dense(np.kron(*laws), [3, 2])
    base = fp.Product([[4.15e-10, 8.85e-9, 1 - 9.265e-9], [0.99987, 0.00013]])
    first, second = [[0.25, 0.75], [0.5, 0.5], [1e-9, 1 - 1e-9]], [[1e-12, 1.0], [1.0, 0.0]]
    for channel in (
        fp.TiltedChannel(base, epsilon),
        fp.ColumnsChannel([fp.HammingChannel(1, 3, epsilon), fp.HammingChannel(1, 2, epsilon)]),
        fp.ProductChannel([first, second]),
    ):
        one, other = correlation(channel, product), correlation(channel, dense)
        assert max(one.lower, other.lower) <= min(one.upper, other.upper)
        assert other.upper == pytest.approx(one.upper, rel=1e-12)
