"""Maximal correlation of exchangeable rows, from types, against the full matrix."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cases
import fastpriv as fp
from fastpriv.measures.correlation import correlation, type_correlation, vector_correlation
from oracles import correlation as oc


def weights(n, seed, zeros):
    """Return weights of types, some of them zero, or one type alone."""
    rng = np.random.default_rng(seed)
    w = rng.dirichlet(np.full(n + 1, 0.4)) + 1e-12
    w[rng.random(n + 1) < zeros] = 0.0
    if not w.any():
        w[rng.integers(n + 1)] = 1.0
    return w / w.sum()


def meet(a, b):
    """Whether two certified brackets have a number in common."""
    return a.lower <= b.upper and b.lower <= a.upper


bits = st.tuples(st.integers(1, 7), st.integers(0, 10**6), st.sampled_from([0.0, 0.4, 0.95]))
chances = st.floats(1e-60, 1.0) | st.just(0.0)
levels = st.sampled_from([0.0, 1e-8, 0.1, 1.0, 4.0, 30.0, 700.0])


@settings(max_examples=60)
@example((5, 51, 0.0), 700.0)  # eigenvalues so alike that bisection finds no place for the last
@given(bits, levels)
def test_bits_through_e_d(case, epsilon):
    n = case[0]
    prior, channel = fp.Exchangeable(weights(*case)), fp.HammingChannel(n, 2, epsilon)
    rho = correlation(channel, prior)
    assert meet(rho, vector_correlation(prior.probabilities(), channel.kernels))
    assert rho.width <= 1e-11 * rho.upper + 1e-100


@settings(max_examples=40)
@given(bits, chances, chances)
def test_bits_through_any_kernel(case, b, d):
    prior = fp.Exchangeable(weights(*case))
    channel = fp.ProductChannel([[[1 - b, b], [1 - d, d]]] * case[0])
    rho = correlation(channel, prior)
    assert meet(rho, vector_correlation(prior.probabilities(), channel.kernels))
    assert rho.width <= 1e-9 * rho.upper + 1e-12


@settings(max_examples=25)
@given(st.sampled_from([(1, 3, 3), (3, 3, 3), (4, 3, 2), (3, 2, 4), (2, 4, 4)]), st.integers(0, 99))
def test_more_values(shape, seed):
    n, m, outputs = shape
    rng = np.random.default_rng(seed)
    prior = fp.Exchangeable(cases.simplex_weights(rng, n, m)[0])
    W = cases.kernel(rng, m, outputs, 0.0)
    channel = fp.ProductChannel([W] * n)
    truth = vector_correlation(prior.probabilities(), channel.kernels)
    assert meet(type_correlation(prior, channel.kernels[0]), truth)
    assert fp.maximal_correlation(channel, prior) == pytest.approx(truth.upper, rel=1e-8)


def test_fifty_digits():
    prior = fp.Exchangeable([0.2, 0.1, 0.05, 0.25, 0.4])
    channel = fp.HammingChannel(4, 2, 0.7)
    truth = oc.maximal_correlation(channel.matrix(), prior.pmf())
    rho = correlation(channel, prior)
    assert rho.lower <= truth <= rho.upper
    assert rho.width < 1e-12


def test_many_bits():
    # A binomial law of types is that of independent bits, whose correlation has a closed form.
    n = 200
    binomial = [math.comb(n, k) * 0.3**k * 0.7 ** (n - k) for k in range(n + 1)]
    channel = fp.HammingChannel(n, 2, 1.0)
    want = fp.maximal_correlation(channel, fp.Product.iid([0.7, 0.3], n))
    assert fp.maximal_correlation(channel, fp.Exchangeable(binomial)) == pytest.approx(
        want, rel=1e-9
    )


def test_rare_types_count():
    # A type too rare for a double still settles the database at a high level.
    prior, channel = fp.Exchangeable.beta_binomial(4, 1e-200, 1e-200), fp.HammingChannel(4, 2, 30.0)
    assert fp.maximal_correlation(channel, prior) > 0.999


def test_e_i_of_exchangeable_and_independent_bits():
    for prior in (fp.Exchangeable.beta_binomial(40, 2.0, 3.0), fp.Product.iid([0.6, 0.4], 40)):
        channel = fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.5)
        rho = fp.maximal_correlation(channel, prior)
        assert isinstance(rho, float)
        assert 0 < rho <= 1
    small = fp.Exchangeable.beta_binomial(5, 2.0, 3.0)
    channel = fp.PosteriorChannel(small, small.epsilon_tilde() + 0.5)
    want = fp.maximal_correlation(channel.matrix(), small.pmf())
    assert fp.maximal_correlation(channel, small) == pytest.approx(want, rel=1e-9)


def test_long_chains_have_a_bracket():
    chain = fp.Markov([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], 40)
    rho = fp.maximal_correlation(fp.HammingChannel(40, 2, 1.0), chain)
    assert isinstance(rho, fp.Bracket)
    short = fp.Markov([0.5, 0.5], [[0.7, 0.3], [0.4, 0.6]], 8)
    assert rho.lower <= fp.maximal_correlation(fp.HammingChannel(8, 2, 1.0), short) <= rho.upper
