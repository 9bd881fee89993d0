"""Fixed channels with noise: the worst pair of neighbours, against sums of closed forms."""

import math
from itertools import permutations
from statistics import NormalDist

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile
from fastpriv.errors import TooLarge
from profile_cases import holds

Phi = NormalDist().cdf


def normal(t, mu):
    """delta of N(mu, 1) against N(0, 1) at any level."""
    return Phi(mu / 2 - t / mu) - math.exp(t) * Phi(-mu / 2 - t / mu)


def together(matrix, mu, t):
    """Sum over outputs y of P(y) times the curve of the noise at t - ln P(y)/Q(y)."""
    best = 0.0
    for i, j in permutations(range(len(matrix)), 2):
        pairs = zip(matrix[i], matrix[j], strict=True)
        best = max(best, sum(p * normal(t - math.log(p / q), mu) for p, q in pairs))
    return best


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_one_channel_and_normal_noise(seed):
    matrix = np.random.default_rng(seed).dirichlet(np.full(4, 3.0), 3)
    profile = PrivacyProfile.of(matrix).compose(
        PrivacyProfile.gaussian(2.0, relation="replace-one")
    )
    for t in (0.0, 0.5, 1.5):
        truth = together(matrix.tolist(), 1.0, t)
        answer = profile.delta(t, adaptive=False)
        assert answer.lower * (1 - 1e-9) <= truth <= answer.upper * (1 + 1e-9)
        assert answer.width <= 1e-6 * answer.upper
        assert answer.upper <= profile.delta(t).upper * (1 + 1e-9)
    level = profile.epsilon(0.01, adaptive=False)
    assert together(matrix.tolist(), 1.0, level.upper) <= 0.01 * (1 + 1e-9)
    assert together(matrix.tolist(), 1.0, level.lower * (1 - 1e-9)) >= 0.01 * (1 - 1e-9)


def test_the_envelope_is_wider_than_the_worst_pair():
    matrix = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]]
    noise = PrivacyProfile.gaussian(2.0).with_relation("replace-one")
    profile = PrivacyProfile.of(matrix).self_compose(20).compose(noise)
    fixed, any_time = profile.delta(8.0, adaptive=False), profile.delta(8.0)
    assert fixed.upper < 0.99 * any_time.upper
    assert fixed.width < 1e-6 * fixed.upper
    assert fixed.lower >= any_time.lower * (1 - 1e-9)


@pytest.mark.slow
def test_with_all_kinds_of_noise():
    matrix = [[0.7, 0.3], [0.4, 0.6]]
    for noise in (
        PrivacyProfile.gaussian(1.0, 0.1).self_compose(100),
        PrivacyProfile.from_epsilon_delta(0.3).poisson_subsampled(0.2),
        PrivacyProfile.zcdp(0.01),
    ):
        stated = noise.with_relation("replace-one")
        profile = PrivacyProfile.of(matrix).self_compose(30).compose(stated)
        answer, wider = profile.delta(4.0, adaptive=False), profile.delta(4.0)
        assert answer.lower <= answer.upper <= wider.upper * (1 + 1e-9)


def test_noise_alone_is_the_same_either_way():
    profile = PrivacyProfile.gaussian(1.0, 0.1).self_compose(50)
    assert profile.delta(1.0, adaptive=False) == profile.delta(1.0)
    declared = profile.compose(PrivacyProfile.from_epsilon_delta(0.5))
    holds(declared.delta(1.0, adaptive=False), declared.delta(1.0).upper)


@pytest.mark.slow
def test_too_many_pairs():
    matrix = np.random.default_rng(0).dirichlet(np.ones(4), 30)
    noise = PrivacyProfile.gaussian(1.0, relation="replace-one")
    profile = PrivacyProfile.of(fp.Channel(matrix)).compose(noise)
    with pytest.raises(TooLarge, match="256"):
        profile.delta(1.0, adaptive=False)
