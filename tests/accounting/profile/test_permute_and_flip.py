"""Permute-and-flip: its curve is at most the curve of Laplace noise, and each point is attained."""

import math

import numpy as np
import pytest

import fastpriv as fp

Profile = fp.accounting.PrivacyProfile


def chosen(scores, level):
    """Probabilities of the noisy maximum with exponential noise, by the recursion over subsets."""
    from itertools import permutations

    best = max(scores)
    keep = [math.exp(0.5 * level * (q - best)) for q in scores]
    result = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:  # the definition: in random order, each is taken with its probability
        left = 1.0
        for i in order:
            result[i] += left * keep[i] / len(orders)
            left *= 1.0 - keep[i]
    return result


def test_random_scores_never_exceed_the_curve():
    rng = np.random.default_rng(7)
    levels = np.array([0.0, 0.1, 0.4, 0.7, 0.95])
    for level in (0.3, 1.0, 3.0):
        curve = [Profile.permute_and_flip(level).delta(float(t)).upper for t in levels * level]
        for _ in range(200):
            n = int(rng.integers(2, 5))
            first = rng.exponential(3.0, n) * rng.integers(0, 2, n)
            second = first + rng.choice([-1.0, 1.0, 0.3], n)
            p, q = chosen(first, level), chosen(second, level)
            for t, most in zip(levels * level, curve, strict=True):
                assert np.maximum(p - math.exp(t) * q, 0.0).sum() <= most * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("t", [0.0, 0.3, 0.8])
def test_two_candidates_attain_each_point(t):
    """The best shift c of the scores (0, c) against (-1, c + 1)."""
    level = 1.0
    best = max(
        float(
            np.maximum(
                chosen((0.0, c), level) - math.exp(t) * chosen((-1.0, c + 1.0), level), 0
            ).sum()
        )
        for c in np.linspace(-6.0, 6.0, 4801)
    )
    found = Profile.permute_and_flip(level).delta(t)
    assert best <= found.upper
    assert best == pytest.approx(found.lower, rel=1e-5)
    assert found.upper == pytest.approx(-math.expm1(0.5 * (t - level)), rel=1e-12)


def test_compositions_are_between_a_choice_and_laplace_noise():
    for k in (2, 10, 60):
        found = Profile.permute_and_flip(0.5).self_compose(k).epsilon(1e-3)
        noise = Profile.laplace(2.0).self_compose(k).epsilon(1e-3)
        assert found.upper == pytest.approx(noise.upper, rel=1e-9)
        assert 0.8 * found.upper < found.lower <= noise.upper
    # One pair of databases, 6 times, by enumeration of the binomial number of first choices.
    p, q = chosen((0.0, 0.0), 1.0), chosen((-1.0, 1.0), 1.0)
    counts = np.arange(7)
    both = [
        np.array([math.comb(6, i) for i in counts]) * a[0] ** counts * a[1] ** (6 - counts)
        for a in (p, q)
    ]
    truth = np.maximum(both[0] - math.exp(1.0) * both[1], 0.0).sum()
    assert truth <= Profile.permute_and_flip(1.0).self_compose(6).delta(1.0).upper


def test_samples_groups_and_text():
    step = Profile.permute_and_flip(1.0)
    assert Profile.from_json(step.to_json()) == step
    assert step.group(2) == Profile.permute_and_flip(2.0)
    sampled = step.poisson_subsampled(0.1)
    assert Profile.from_json(sampled.to_json()) == sampled
    assert sampled.epsilon(0.0).upper == pytest.approx(math.log1p(0.1 * math.expm1(1.0)))
    assert Profile.permute_and_flip(0.0) == Profile({})
    with pytest.raises(fp.InvalidInput, match="with replacement"):
        Profile.permute_and_flip(1.0, relation="replace-one").sampled_with_replacement(2, 10)
    with pytest.raises(fp.InvalidInput, match="epsilon"):
        Profile.permute_and_flip(-1.0)
