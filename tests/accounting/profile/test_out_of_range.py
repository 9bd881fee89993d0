"""Rates, noise, orders and numbers of releases far out: an answer, or one sentence."""

import pytest

import fastpriv as fp

P = fp.accounting.PrivacyProfile


@pytest.mark.parametrize("q", [1e-17, 1e-100, 5e-324])
def test_rare_samples_tell_nothing(q):
    many = P.gaussian(1.0, q).self_compose(100)
    assert many.epsilon(1e-6).upper == 0.0
    assert P.gaussian(1.0, q, relation="replace-one").self_compose(10).epsilon(1e-6).upper == 0.0
    assert P.laplace(1.0, q).self_compose(100).epsilon(1e-6).upper < 1e-13


@pytest.mark.slow
@pytest.mark.parametrize("count", [10**18, 10**30])
def test_very_many_gaussian_releases(count):
    """Epsilon is about mu^2/2 + mu Phi^-1(1 - delta) with mu^2 = count."""
    epsilon = P.gaussian(1.0).self_compose(count).epsilon(1e-6)
    assert epsilon.lower <= 0.5 * count * (1.0 + 1e-8)
    assert 0.5 * count <= epsilon.upper <= 0.5 * count * (1.0 + 1e-6)
    assert P.gaussian(1.0, 0.1).self_compose(count).epsilon(1e-6).upper < 0.5 * count


@pytest.mark.parametrize("order", [1e17, 1e300, 1e308])
def test_renyi_divergence_of_huge_orders(order):
    """Of Gaussian noise order/2; of channels at most the level."""
    for profile, truth in ((P.gaussian(1.0), 0.5 * order), (P.randomised_response(2, 1.0), 1.0)):
        level = profile.renyi(order)
        assert level.lower <= truth * (1.0 + 1e-12)
        assert level.upper >= truth * (1.0 - 1e-12)


def test_discrete_laplace_of_large_parameters():
    level = P.discrete_laplace(1e9).self_compose(10**30).epsilon(1e-6)
    assert level.upper * (1.0 + 1e-12) >= 1e39


@pytest.mark.parametrize("level", [1e-300, 1e-150, 1e-100])
def test_bounded_range_of_tiny_levels_is_not_nothing(level):
    """One mechanism of range e has a total variation of tanh(e/4)."""
    assert P.exponential(level).delta(0.0).upper >= 0.25 * level
    assert P.exponential(level).self_compose(10).delta(0.0).upper >= 0.25 * level
    again = P.from_json(P.exponential(level).to_json())
    assert again == P.exponential(level)


@pytest.mark.parametrize(
    "call",
    [
        lambda: P.discrete_laplace(1e100),
        lambda: P.discrete_laplace(1e308),
        lambda: P.mixture_of_gaussians(1.0, [1e308, 1.0], [0.5, 0.5]),
        lambda: P.mixture_of_gaussians(1e-6, [1e5, 1.0], [0.5, 0.5]),
        lambda: P.truncated_subsampled_gaussian(10**30, 0.1, 10**29, 1.0),
    ],
)
def test_refused_in_words(call):
    with pytest.raises(fp.InvalidInput, match="must be"):
        call()


def test_a_poisson_sample_of_a_channel_is_refused_with_a_way_out():
    profile = P.of(fp.HammingChannel(2, 2, 1.0))
    with pytest.raises(fp.InvalidInput, match="sampled_without_replacement"):
        profile.poisson_subsampled(0.1)
    assert profile.sampled_without_replacement(1, 10).epsilon(0.0).upper < 0.2
