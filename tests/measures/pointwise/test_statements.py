"""Pointwise leakage: statements of the paper, edges and bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import kernel, law
from oracles import pointwise as op
from pointwise_cases import CHANNELS, SEEDS, SPACES, covers, random_case


@settings(deadline=None, max_examples=60)
@given(SEEDS, SPACES, CHANNELS)
def test_properties_of_leakage(seed, sizes, zeros):
    rng, matrix = random_case(seed, sizes, 4, zeros)
    p = law(rng, int(np.prod(sizes)))
    channel, prior = fp.Channel(matrix, sizes), fp.Dense(p, sizes)
    leak, law_y = fp.pml(channel, prior), p @ matrix
    assert np.all(leak >= 0)
    assert np.all(leak <= min(-math.log(p.min()), fp.leakage_capacity(channel)) + 1e-13)
    # Maximal leakage is the log of the mean of e^l.
    mean = math.log(float(law_y @ np.exp(leak)))
    assert fp.maximal_leakage(channel) == pytest.approx(mean, abs=1e-13)
    assert fp.mutual_information(channel, prior) <= fp.maximal_leakage(channel) + 1e-14
    for i in range(len(sizes)):
        assert np.all(fp.row_pml(channel, prior, i) <= leak + 1e-13)
    # Post-processing: no output of a coarser mechanism leaks more than the worst.
    after = kernel(rng, 4, 3)
    assert fp.pml_level(matrix @ after, p) <= fp.pml_level(channel, prior) + 1e-14
    # Proposition 4 of Makhdoumi-Fawaz 2013: strong DP >= information privacy >= half of it.
    both, strong = fp.information_privacy_level(channel, prior), fp.strong_dp_level(channel)
    assert both <= strong * (1 + 1e-13) + 1e-13
    assert strong <= 2 * both * (1 + 1e-13) + 1e-13


@settings(deadline=None, max_examples=40)
@given(SEEDS, CHANNELS)
def test_composition(seed, zeros):
    """l(X -> (y, z)) <= l(X -> z) + l(X -> y | z), the second under the posterior of z."""
    rng, first = random_case(seed, (4,), 3, zeros)
    second, p = kernel(rng, 4, 3), law(rng, 4)
    pair = (first[:, :, None] * second[:, None, :]).reshape(4, -1)
    joint, alone = fp.pml(pair, p).reshape(3, 3), fp.pml(first, p)
    for z in range(3):
        posterior = p * first[:, z]
        if posterior.sum() > 0:
            rest = fp.pml(second, posterior / posterior.sum())
            assert np.all(joint[z] <= alone[z] + rest + 1e-13)
    levels = [fp.leakage_capacity(W) for W in (pair, first, second)]
    assert levels[0] <= levels[1] + levels[2] + 1e-13


def test_correlated_rows_leak_beyond_differential_privacy():
    """Theorem 4.3: many copies of one bit through E_d tell it almost surely."""
    n = 40
    weights = np.zeros(n + 1)
    weights[0], weights[n] = 0.9, 0.1
    prior, channel = fp.Exchangeable(weights), fp.HammingChannel(n, 2, 0.5)
    assert fp.dp_level(channel) == 0.5
    leak = fp.row_pml(channel, prior, 0, y=np.ones(n, int))
    assert leak == pytest.approx(math.log(10), rel=1e-6)
    assert leak <= math.log(10) + 1e-12


@pytest.mark.parametrize("p", [0.3, 0.6])
def test_deterministic_threshold(p):
    n, m = 6, 2
    space = fp.Space.hamming(n, 2)
    more = (space.rows(np.arange(space.size)).sum(axis=1) > m).astype(int)
    channel = fp.QueryChannel(more, np.eye(2), space)
    from scipy.stats import binom

    leak = fp.pml(channel, fp.Product.iid([1 - p, p], n))
    assert leak == pytest.approx([-math.log(binom.cdf(m, n, p)), -math.log(binom.sf(m, n, p))])


def test_one_of_everything():
    one = fp.Channel([[1.0]])
    assert fp.pml(one, [1.0]).tolist() == [0.0]
    assert fp.pml(one, [1.0], y=0) == fp.pml_level(one, [1.0]) == fp.maximal_leakage(one) == 0.0
    assert fp.leakage_capacity(one) == fp.information_privacy_level(one, [1.0]) == 0.0
    assert fp.leakage_factor(one, [1.0]) == fp.worst_leakage_factor(one, [1.0]) == 0.0
    assert fp.row_pml(one, [1.0], 0).tolist() == [0.0]
    for priors_ in (fp.PriorSet.all(1), fp.PriorSet.box([1.0], [1.0]), fp.PriorSet.product([1])):
        assert fp.pml_level(one, priors_) == pytest.approx(0.0, abs=1e-14)
    constant = fp.HammingChannel(3, 1, 2.0)
    assert fp.leakage_capacity(constant) == fp.pml_level(constant, fp.Uniform(3, 1)) == 0.0
    assert fp.pml_level(constant, fp.PriorSet.all(1), row=1) == 0.0


def test_outputs_of_probability_zero_leak_nothing():
    matrix = [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    found = fp.pml(matrix, [0.5, 0.5, 0.0])
    assert found[2] == fp.pml(matrix, [0.5, 0.5, 0.0], y=2) == 0.0
    assert found[:2] == pytest.approx([math.log(1 / 0.75), math.log(2)])
    assert fp.information_privacy_level(matrix, [0.0, 1.0, 0.0]) <= 1e-14
    assert fp.information_privacy_level(matrix, [0.5, 0.5, 0.0]) == math.inf


def test_levels_are_rounded_up():
    for n in (3, 7, 11):
        level = fp.leakage_capacity(fp.HammingChannel(n, 2, 0.1))
        assert o.exact(level) >= o.exact(0.1) * n
    # Two tiny numbers: their logarithms are large, the log of their quotient is not.
    matrix = np.array([[1.0, 3e-300], [1.0, 1e-300]])
    assert o.num(fp.leakage_capacity(matrix)) >= o.strong_dp_level(matrix)
    covers(fp.pml(matrix, [0.3, 0.7]), op.pml(matrix, [0.3, 0.7]), 1e-14, 0.0)


def test_extreme_numbers():
    matrix, p = [[1 - 1e-150, 1e-150], [1.0, 1e-303]], [1 - 1e-20, 1e-20]
    truth = op.pml(matrix, p)
    covers(fp.pml(matrix, p), truth)
    covers(fp.information_privacy_level(matrix, p), [op.information_privacy(matrix, p)])
    tiny = np.array([[1.0, 5e-320], [5e-320, 1.0]])
    covers(fp.leakage_capacity(tiny), [o.strong_dp_level(tiny)], 1e-11)
    covers(fp.pml(tiny, [1 - 1e-300, 1e-300]), op.pml(tiny, [1 - 1e-300, 1e-300]))


CHANNEL, PRIOR = fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: fp.pml(CHANNEL, [0.5, 0.5]), "2 entries"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=4), "below the number of outputs"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=-1), "at least 0"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=1.5), "integer"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=[0, 2]), "a value in"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=[0, 0, 0]), "last axis"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=[[0, 0]]), "one output"),
        (lambda: fp.row_pml(CHANNEL, PRIOR, 2), "below n"),
        (lambda: fp.row_pml(CHANNEL, PRIOR, -1), "at least 0"),
        (lambda: fp.row_pml(CHANNEL, PRIOR, True), "integer"),
        (lambda: fp.pml_level(CHANNEL, PRIOR, row=9), "below n"),
        (lambda: fp.pml_level(CHANNEL, PRIOR, row="best"), "integer"),
        (lambda: fp.conditional_pml(CHANNEL, PRIOR, {5: 0}), "below n"),
        (lambda: fp.conditional_pml(CHANNEL, PRIOR, {0: 7}), "a value in"),
        (lambda: fp.conditional_pml(CHANNEL, PRIOR, [1, 0, 0, 0]), "boolean"),
        (lambda: fp.conditional_pml(CHANNEL, PRIOR, [True]), "boolean"),
        (
            lambda: fp.conditional_pml(CHANNEL, fp.Product([[1, 0]] * 2), {0: 1}),
            "positive probability",
        ),
        (lambda: fp.pml_level(CHANNEL, fp.PriorSet.all(3)), "got 3"),
        (lambda: fp.pml_level(CHANNEL, fp.PriorSet.product([4])), "on the same databases"),
        (lambda: fp.pml_level(CHANNEL, fp.PriorSet.all(4), row=2), "below n"),
        (lambda: fp.PriorSet.all(0), "at least 1"),
        (lambda: fp.PriorSet.box([0.5], [0.4]), "lower must be at most upper"),
        (lambda: fp.PriorSet.box([0.1, 0.1], [0.3, 0.3]), "no distribution"),
        (lambda: fp.PriorSet.box([0.6, 0.6], [0.7, 0.7]), "no distribution"),
        (lambda: fp.PriorSet.box([0.1], [0.3, 0.3]), "entries"),
        (lambda: fp.PriorSet.box([math.nan], [1.0]), "NaN"),
        (lambda: fp.PriorSet.polytope([[1.0, math.inf]], [1.0]), "finite"),
        (lambda: fp.PriorSet.polytope([[1.0, 1.0]], [1.0, 2.0]), "rows"),
        (lambda: fp.PriorSet.polytope([1.0, 1.0], [1.0]), "dimension"),
        (lambda: fp.PriorSet.bernoulli_interval(2, 0.6), "between 0 and 0.5"),
        (lambda: fp.PriorSet.bernoulli_interval(0, 0.1), "at least 1"),
        (lambda: fp.maximal_leakage(PRIOR), "must be a channel"),
        (lambda: fp.leakage_capacity([[0.5, 0.6]]), "sum to 1"),
    ],
)
def test_hostile_input(call, match):
    with pytest.raises(fp.InvalidInput, match=match):
        call()


def test_what_does_not_fit_says_so():
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 100)
    channel = fp.HammingChannel(100, 2, 1.0)
    with pytest.raises(fp.TooLarge):
        fp.pml(channel, chain)
    for call in (fp.pml_level, fp.worst_leakage_factor):
        assert isinstance(call(channel, chain), fp.Bracket)


def test_outputs_that_no_database_has_leak_nothing_under_exchangeable_priors():
    prior, three = fp.Exchangeable([0.1, 0.4, 0.5]), fp.Exchangeable([0.1, 0.2, 0.3, 0.4])
    constant = fp.ProductChannel([[[0.0, 1.0], [0.0, 1.0]]] * 2)
    assert fp.pml_level(constant, prior) < 1e-13
    assert fp.information_privacy_level(constant, prior) < 1e-13
    mixed = fp.ProductChannel([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[1.0], [1.0]]])
    assert fp.pml(mixed, prior, y=2) == fp.pml(mixed, prior)[2] == 0.0
    assert fp.pml_level(fp.solve_pd_dp(three, 0.01).channel, three) < 0.02


def test_a_box_wider_than_certainty_is_the_box_up_to_certainty():
    channel = [[0.001, 0.999], [0.1, 0.9]]
    levels = [fp.pml_level(channel, fp.PriorSet.box([0, 0], [0.3, u])) for u in (1, 1e16, 1e308)]
    assert levels[0] == levels[1] == levels[2] == pytest.approx(0.352398, abs=1e-6)


@pytest.mark.parametrize(("n", "epsilon"), [(1, 1e-8), (1, 1e-16), (10**6, 1e-15), (3, 2.0)])
def test_maximal_leakage_of_randomised_response_is_rounded_up(n, epsilon):
    e = o.num(epsilon)
    truth = n * o.log(2 / (1 + o.exp(-e)))
    assert truth <= fp.maximal_leakage(fp.HammingChannel(n, 2, epsilon)) <= truth * (1 + 1e-14)


def test_levels_about_one_of_a_million_independent_rows():
    channel, prior = fp.HammingChannel(10**6, 2, 1.0), fp.Product.iid([0.3, 0.7], 10**6)
    alone = fp.pml_level(fp.HammingChannel(1, 2, 1.0), fp.Product([[0.3, 0.7]]))
    assert fp.pml_level(channel, prior, row=3) == pytest.approx(alone, rel=1e-12)
    small = fp.Dense(fp.Product.iid([0.3, 0.7], 3).pmf(), [2] * 3)
    assert fp.pml_level(fp.HammingChannel(3, 2, 1.0), small, row=1) == pytest.approx(alone)


@settings(max_examples=60, deadline=None)
@given(
    masses=st.lists(st.sampled_from([0.0, 1e-12, 0.1, 0.5, 1.0]), min_size=2, max_size=5),
    epsilon=st.sampled_from([0.0, 1e-9, 0.4, 1.0, 3.0, 40.0]),
)
def test_a_symmetric_row_needs_no_matrix(masses, epsilon):
    """The closed form of one row against the definition, which lists the outputs."""
    prior = np.array(masses if any(masses) else [1.0, *masses[1:]])
    prior /= prior.sum()
    channel = fp.HammingChannel(1, len(prior), epsilon)
    W, law = channel.matrix(), fp.Product([prior])  # at 1e-9 a double holds 7 digits of W's gap
    above, both = max(op.pml(W, prior)), op.information_privacy(W, prior)
    assert fp.pml_level(channel, law) == pytest.approx(float(above), rel=1e-6, abs=1e-12)
    found = fp.information_privacy_level(channel, law)
    assert found == pytest.approx(float(both), rel=1e-6, abs=1e-12)


def test_a_row_of_a_million_values():
    channel, prior = fp.HammingChannel(1, 1_000_000, 3.0), fp.Uniform(1, 1_000_000)
    expected = fp.maximal_leakage(channel)  # ln(m a): the uniform prior attains it
    assert fp.pml_level(channel, prior) == pytest.approx(expected, rel=1e-9)
