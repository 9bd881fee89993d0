"""Counts, sums and histograms in the structure of the prior, against the same query as a list."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp

#: Chances with zeros, ones that are rare, and even ones.
CHANCES = st.sampled_from([0.0, 0.0, 1e-9, 0.1, 0.3, 0.5, 1.0])


def laws(size):
    """Laws of ``size`` values, often with zeros."""
    some = st.lists(CHANCES, min_size=size, max_size=size).filter(any)
    return some.map(lambda values: np.array(values) / np.sum(values))


@st.composite
def priors(draw, n, m):
    """Structured priors of n rows with m values: skewed, absorbing, with impossible databases."""
    kind = draw(st.sampled_from(["uniform", "product", "iid", "exchangeable", "markov"]))
    if kind == "uniform":
        return fp.Uniform(n, m)
    if kind == "iid":
        return fp.Product.iid(draw(laws(m)), n)
    if kind == "product":
        return fp.Product([draw(laws(m)) for _ in range(n)])
    if kind == "exchangeable" and m > 1:
        types = [c for c in np.ndindex(*(n + 1,) * m) if sum(c) == n]
        return fp.Exchangeable(dict(zip(types, draw(laws(len(types))), strict=True)))
    return fp.Markov(draw(laws(m)), [draw(laws(m)) for _ in range(m)], n)


@st.composite
def queries(draw):
    """A query by structure, the same one as a list, and a structured prior."""
    n, m = draw(st.sampled_from([(1, 1), (1, 2), (2, 2), (4, 2), (3, 3), (2, 4), (1, 3)]))
    kind = draw(st.sampled_from(["count", "sum", "sums", "histogram"]))
    if kind == "count":
        m, answers = 2, n + 1
    elif kind == "histogram":
        answers = math.comb(n + m - 1, m - 1)
    else:
        own = st.lists(st.integers(0, 3), min_size=m, max_size=m)
        scores = [draw(own)] * n if kind == "sum" else [draw(own) for _ in range(n)]
        answers = sum(max(score) for score in scores) + 1
    kernel = np.array([draw(laws(3)) for _ in range(answers)])
    if kind == "count":
        channel = fp.QueryChannel.count(n, kernel)
    elif kind == "histogram":
        channel = fp.QueryChannel.histogram(n, m, kernel)
    else:
        channel = fp.QueryChannel.sum(scores, kernel)
    rows = channel.space.rows(np.arange(channel.space.size))
    listed = fp.QueryChannel(channel.query.of(rows), kernel, channel.space)
    return channel, listed, draw(priors(n, m))


def same(value, truth):
    """Whether two levels, both rounded up, agree up to what they were rounded up by."""
    return value == truth or abs(value - truth) <= 1e-12 * (1 + truth)


@pytest.mark.search(every=10)
@settings(max_examples=60)
@given(queries())
def test_structure_agrees_with_the_list(case):
    channel, listed, prior = case
    dense = fp.Dense(prior.pmf() / prior.pmf().sum(), prior.space.sizes)
    query = channel.query
    np.testing.assert_allclose(query.law(prior), listed.query.law(dense), rtol=1e-13, atol=1e-120)
    own = listed.query.surprise(dense)
    np.testing.assert_allclose(query.surprise(prior), own, rtol=1e-12, atol=1e-15)
    entropy = float(dense.entropy())  # a factor is rounded up by a share of one over the entropy
    for level in (
        fp.identifiability_level,
        lambda c, p: entropy * fp.worst_leakage_factor(c, p),
        fp.max_information,
        fp.information_privacy_level,
        lambda c, p: fp.pml_level(c, p, row="worst"),
        lambda c, p: fp.row_pml(c, p, prior.space.n - 1).max(),
    ):
        assert same(level(channel, prior), level(listed, dense))
    assert fp.mutual_information(channel, prior) == pytest.approx(
        fp.mutual_information(listed, dense), rel=1e-12, abs=1e-15
    )
    assert fp.maximal_correlation(channel, prior) == pytest.approx(
        fp.maximal_correlation(listed, dense), rel=1e-12, abs=1e-13
    )


@settings(max_examples=60)
@given(queries())
def test_joint_laws_of_rows_and_answers(case):
    """Of every row, by itself and together with the others, in doubles and in logarithms."""
    channel, listed, prior = case
    pmf, rows = prior.pmf(), prior.space.rows(np.arange(prior.space.size))
    together = list(channel.query.row_laws(prior, np.arange(prior.space.n)))
    for i, joint in enumerate(together):
        truth = np.zeros_like(joint)
        np.add.at(truth, (rows[:, i], listed.query.values), pmf)
        np.testing.assert_allclose(joint, truth, rtol=1e-13, atol=1e-120)
        (alone,) = channel.query.row_laws(prior, np.array([i]))
        np.testing.assert_allclose(alone, truth, rtol=1e-13, atol=1e-120)
        logs = channel.query.log_row_law(prior, i)
        np.testing.assert_allclose(np.exp(logs), truth, rtol=1e-12, atol=1e-120)


def noisy(answers, epsilon):
    """Two-sided geometric noise on answers 0, 1, ..., folded back at the ends."""
    places = np.arange(answers)
    kernel = np.exp(-epsilon * np.abs(places[:, None] - places))
    return kernel / kernel.sum(axis=1, keepdims=True)


CHAIN = fp.Markov([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], 120)
LONG = [
    fp.Uniform(120, 2),
    fp.Product.iid([0.7, 0.3], 120),
    fp.Exchangeable.beta_binomial(120, 0.5, 0.8),
    CHAIN,
    fp.Markov([1.0, 0.0], [[0.9, 0.1], [0.0, 1.0]], 120),
]


@pytest.mark.parametrize("prior", LONG, ids=["uniform", "iid", "types", "chain", "absorbing"])
def test_long_databases_need_no_list(prior):
    channel = fp.QueryChannel.count(120, noisy(121, 0.5))
    dp, identifiability = fp.dp_level(channel), fp.identifiability_level(channel, prior)
    assert identifiability <= dp + prior.epsilon_x() + 1e-12
    assert identifiability == math.inf or identifiability >= dp - 1e-12
    information = fp.mutual_information(channel, prior)
    assert information <= fp.max_information(channel, prior)
    assert fp.leakage_factor(channel, prior) <= fp.worst_leakage_factor(channel, prior) <= 1.0
    assert fp.maximal_correlation(channel, prior) <= 1.0
    worst = fp.pml_level(channel, prior, row="worst")
    assert worst <= fp.pml_level(channel, prior)
    assert worst >= fp.row_pml(channel, prior, 60).max()


def test_rows_of_different_scores_under_one_law_of_types():
    """Exchangeable bits that weigh 1 or 2: a law of independent bits has the law of the product."""
    n, scores = 60, [[0, 1]] * 30 + [[0, 2]] * 30
    channel = fp.QueryChannel.sum(scores, noisy(91, 0.3))
    prior = fp.Product.iid([0.7, 0.3], n)
    weights = [math.comb(n, k) * 0.3**k * 0.7 ** (n - k) for k in range(n + 1)]
    types = fp.Exchangeable(np.array(weights) / np.sum(weights))
    for level in (
        fp.mutual_information,
        fp.identifiability_level,
        fp.worst_leakage_factor,
        fp.pml_level,
        lambda c, p: fp.pml_level(c, p, row="worst"),
    ):
        assert level(channel, types) == pytest.approx(level(channel, prior), rel=1e-11)


def test_identifiability_of_a_long_chain_by_hand():
    """A row between two ones, or at an end; the answers on both sides are in reach."""
    epsilon = 0.5
    channel = fp.QueryChannel.count(120, noisy(121, epsilon))
    odds = math.log(0.7 * 0.7 / (0.3 * 0.2)), math.log(0.8 * 0.8 / (0.2 * 0.3))
    ratios = channel.kernel.matrix
    steps = (
        np.log(ratios[1:] / ratios[:-1]).max(axis=1),
        np.log(ratios[:-1] / ratios[1:]).max(axis=1),
    )
    # a one between two ones needs a count of at least 3; a zero between zeros of at most 117
    truth = max(odds[0] + steps[0][2:].max(), odds[1] + steps[1][:118].max())
    assert fp.identifiability_level(channel, CHAIN) == pytest.approx(truth, rel=1e-12)


def test_leakage_about_a_row_is_not_below_the_truth():
    kernel = [[0.75, 0.25], [0.8125, 0.1875], [0.9375, 0.0625]]
    leaks = fp.row_pml(fp.QueryChannel.count(2, kernel), fp.Uniform(2, 2), 0)
    assert leaks[0] >= 0.055059777183027399  # ln(0.875 / 0.828125), all dyadic
