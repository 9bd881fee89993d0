"""Measures of exchangeable rows from pairs of types, against lists of all databases."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import fastpriv as fp
import fastpriv.channels.tilted as tilted
import fastpriv.measures.contraction as contractions
import fastpriv.measures.leakage as gains
from fastpriv._matrices.correlation import matrix_correlation
from fastpriv.measures.correlation import correlation
from fastpriv.priors import exchangeable

SHAPES = [(1, 2), (2, 2), (5, 2), (1, 3), (3, 3), (2, 4)]


class _Patched:
    def __init__(self, enter):
        self.patch, self.enter = pytest.MonkeyPatch(), enter

    def __enter__(self):
        self.enter(self.patch)
        return self.patch

    def __exit__(self, *_):
        self.patch.undo()


def random_types(rng, n, m, zeros):
    """Return weights of types, some of them zero."""
    shape = (n + 1,) * (m - 1)
    weights = np.where(np.indices(shape).sum(axis=0) <= n, rng.gamma(0.7, size=shape) + 1e-3, 0.0)
    kept = weights * (rng.random(shape) >= zeros)
    weights = kept if kept.any() else weights
    return weights / weights.sum()


def agree(listed, typed):
    """Whether levels rounded up agree: none below the other beyond its rounding."""
    assert np.asarray(typed) == pytest.approx(np.asarray(listed), rel=1e-9, abs=1e-11)


def levels(channel, prior, y):
    return [
        fp.pml_level(channel, prior),
        fp.information_privacy_level(channel, prior),
        gains.entropy_gain(channel, prior),
        fp.pml(channel, prior, y=y),
    ]


cases = st.tuples(st.sampled_from(SHAPES), st.integers(0, 10**6), st.sampled_from([0.0, 0.4]))


@pytest.mark.search(every=10)
@settings(max_examples=60)
@given(cases, st.sampled_from([1e-6, 0.5, 3.0, 20.0]))
def test_tilted_channels(case, epsilon):
    (n, m), seed, zeros = case
    rng = np.random.default_rng(seed)
    law = fp.Exchangeable(random_types(rng, n, m, zeros))
    try:
        listed = fp.TiltedChannel(law, epsilon)
    except fp.InvalidInput:
        reject()  # too far from all outputs
    others = [
        fp.Exchangeable(random_types(rng, n, m, zeros)),
        fp.Uniform(n, m),
        fp.Product.iid(rng.dirichlet(np.ones(m)), n),
    ]
    y = rng.integers(0, m, n)
    for prior in (listed.prior, *others):
        want = [fp.strong_dp_level(listed), fp.maximal_leakage(listed), *levels(listed, prior, y)]
        want += more(listed, prior)
        with _Patched(_types_only):
            channel = fp.TiltedChannel(law, epsilon)
            made = [fp.strong_dp_level(channel), fp.maximal_leakage(channel)]
            made += levels(channel, prior, y) + more(channel, prior)
        agree(want, made)


def more(channel, prior):
    return [
        fp.mutual_information(channel, prior),
        fp.distortion(channel, prior),
        fp.identifiability_level(channel, prior),
    ]


def _types_only(patch):
    for room in (tilted, gains, exchangeable):
        patch.setattr(room, "LISTED", 0)


@pytest.mark.search(every=10)
@settings(max_examples=40)
@given(cases, st.sampled_from([2, 3, 4]), st.sampled_from([1e-6, 1.0, 30.0]))
def test_row_by_row_channels(case, outputs, epsilon):
    (n, m), seed, zeros = case
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.ones(outputs), m) * (rng.random((m, outputs)) >= zeros)
    W[:, 0] += 1.0 - W.sum(axis=1)
    prior = fp.Exchangeable(random_types(rng, n, m, zeros))
    for channel in (fp.ProductChannel([W] * n), fp.HammingChannel(n, m, epsilon)):
        y = rng.integers(0, channel.output_space.sizes[0], n)
        want = levels(channel, prior, y)
        with _Patched(_types_only):
            made = levels(channel, prior, y)
        agree(want, made)


@settings(max_examples=25)
@given(cases, st.sampled_from([0.0, 0.3, 4.0]))
def test_e_i(case, beyond):
    (n, m), seed, _ = case
    rng = np.random.default_rng(seed)
    prior = fp.Exchangeable(random_types(rng, n, m, 0.0))
    epsilon = prior.epsilon_tilde() + beyond
    listed = fp.PosteriorChannel(prior, epsilon)
    y = rng.integers(0, m, n)
    want = [fp.strong_dp_level(listed), fp.maximal_leakage(listed), *levels(listed, prior, y)]
    with _Patched(_types_only):
        channel = fp.PosteriorChannel(prior, epsilon)
        made = [fp.strong_dp_level(channel), fp.maximal_leakage(channel)]
        made += levels(channel, prior, y)
    assert made == pytest.approx(want, rel=1e-7, abs=1e-9)


def test_independent_equal_rows_are_exchangeable():
    prior = fp.Product.iid([0.2, 0.3, 0.5], 3)
    same = prior.by_type()
    assert same.pmf() == pytest.approx(prior.pmf(), rel=1e-13)
    assert fp.Product([[0.5, 0.5], [0.4, 0.6]]).by_type() is None
    assert fp.Markov([0.5, 0.5], [[0.5, 0.5]] * 2, 3).by_type() is None


@pytest.mark.slow
def test_a_thousand_bits():
    prior = fp.Exchangeable.beta_binomial(1000, 2.0, 3.0)
    channel = fp.TiltedChannel(prior, 1.0)
    assert fp.pml_level(channel, prior) <= fp.strong_dp_level(channel)
    assert fp.maximal_leakage(channel) <= fp.strong_dp_level(channel)
    assert 0 < fp.leakage_factor(channel, prior) <= fp.worst_leakage_factor(channel, prior) < 1


@settings(max_examples=40)
@given(cases, st.sampled_from([1e-4, 0.5, 3.0]))
def test_correlation_of_tilted_channels(case, epsilon):
    (n, m), seed, zeros = case
    rng = np.random.default_rng(seed)
    law = fp.Exchangeable(random_types(rng, n, m, zeros))
    with _Patched(_types_only):
        channel = fp.TiltedChannel(law, epsilon)
        for prior in (fp.Exchangeable(random_types(rng, n, m, zeros)), fp.Uniform(n, m)):
            rho = correlation(channel, prior)
            truth = matrix_correlation(channel.matrix(), prior.probabilities())
            # The bracket of the matrix is one of its rounded entries.
            assert rho.lower <= truth.upper + 1e-14
            assert truth.lower <= rho.upper + 1e-14
            assert m > 2 or rho.width < 1e-9


@settings(max_examples=25)
@given(cases, st.sampled_from([0.1, 1.0, 3.0]))
def test_contraction_of_tilted_channels_is_within_its_bracket(case, epsilon):
    (n, m), seed, zeros = case
    rng = np.random.default_rng(seed)
    law = fp.Exchangeable(random_types(rng, n, m, zeros))
    for given_law in (law, fp.Dense(law.pmf(), [m] * n)):
        with _Patched(_types_only) as patch:
            channel = fp.TiltedChannel(given_law, epsilon)
            patch.setattr(contractions, "_SMALL", 0)
            eta = fp.contraction_coefficient(channel)
        truth = fp.contraction_coefficient(channel.matrix())
        assert eta.lower <= truth.upper
        assert truth.lower <= eta.upper
