"""Groups of records: closed forms, enumeration of curves, and what is refused."""

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting.profile.steps.gaussian import GaussianNoise
from fastpriv.accounting.profile.steps.groups import Grouped
from fastpriv.accounting.profile.steps.laplace import Interval

Profile = fp.accounting.PrivacyProfile


def test_noise_on_sums_has_a_larger_sensitivity():
    assert Profile.gaussian(4.0).group(2) == Profile.gaussian(2.0)
    assert Profile.laplace(3.0).group(3) == Profile.laplace(1.0)
    assert Profile.discrete_laplace(0.5).group(3) == Profile.discrete_laplace(0.5, 3)
    assert Profile.discrete_gaussian(2.0).group(3) == Profile.discrete_gaussian(2.0, 3)
    assert Profile.gaussian(4.0).group(1) == Profile.gaussian(4.0)


@pytest.mark.parametrize(
    ("step", "k", "exact"),
    [
        (GaussianNoise(4.0), 2, Profile.gaussian(2.0)),
        (GaussianNoise(4.0), 4, Profile.gaussian(1.0)),
        (Interval(0.5, True), 3, Profile.laplace(1.0 / 1.5)),
    ],
)
def test_chained_curves_of_noise_are_exact(step, k, exact):
    """The trade-off curve of a location family with log-concave noise, k times, is one shift."""
    for count in (1, 3):
        found = Profile({Grouped(step, k): count})
        for epsilon in (0.0, 0.5, 1.2):
            truth = exact.self_compose(count).delta(epsilon)
            assert truth.lower <= found.delta(epsilon).upper < truth.upper * (1 + 2e-3)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize(("level", "delta"), [(1.0, 1e-6), (0.2, 0.01), (0.7, 0.0)])
def test_declared_levels_by_the_rule_of_groups(level, delta, k):
    """(k e)-DP with delta (1 + e^e + ... + e^((k-1)e)), attained at the level k e."""
    found = Profile.from_epsilon_delta(level, delta).group(k)
    known = delta * sum(np.exp(i * level) for i in range(k))
    assert found.delta(k * level).upper == pytest.approx(known, rel=1e-9, abs=1e-14)
    if delta == 0.0:
        assert found.epsilon(0.0).upper == pytest.approx(k * level, rel=1e-12)
    # Two responses in a row, from the trade-off curve by hand: the power of the test "one".
    if k == 2 and delta == 0.0:
        p = np.exp(level) / (1 + np.exp(level))
        power = min(np.exp(level) * p, 1 - np.exp(-level) * (1 - p))
        assert found.delta(0.0).upper == pytest.approx(power - (1 - p), rel=1e-9)


def test_a_group_in_a_poisson_sample_by_integration():
    sigma, q, k = 1.0, 0.1, 3
    x = np.linspace(-12, 16, 400_001)
    bell = lambda m: np.exp(-((x - m) ** 2) / 2) / np.sqrt(2 * np.pi)  # noqa: E731
    weights = [(1 - q) ** 3, 3 * q * (1 - q) ** 2, 3 * q * q * (1 - q), q**3]
    p, none = sum(w * bell(j) for j, w in enumerate(weights)), bell(0)
    found = Profile.gaussian(sigma, q).group(k)
    for epsilon in (0.0, 0.5, 2.0):
        truth = max(
            np.trapezoid(np.maximum(a - np.exp(epsilon) * b, 0.0), x)
            for a, b in ((p, none), (none, p))
        )
        assert found.delta(epsilon).lower == pytest.approx(truth, rel=1e-6)
        assert found.delta(epsilon).upper == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_channels_on_several_records_by_enumeration(k):
    """The curve of a group bounds each pair of databases at distance k."""
    rng = np.random.default_rng(3)
    kernel = rng.dirichlet(np.ones(4), size=2)
    one = fp.ProductChannel([fp.Channel(kernel)] * 3)
    found = Profile.of(one).group(k)
    rows = one.matrix()
    far = [(i, j) for i in range(8) for j in range(8) if 0 < bin(i ^ j).count("1") <= k]
    for epsilon in (0.0, 0.7, 2.0):
        truth = max(np.maximum(rows[i] - np.exp(epsilon) * rows[j], 0.0).sum() for i, j in far)
        assert truth <= found.delta(epsilon).upper * (1 + 1e-12)


def test_zcdp_and_composition():
    found = Profile.zcdp(0.1).group(3)
    assert found.zcdp_level().upper == pytest.approx(0.9)
    both = Profile.gaussian(2.0).compose(Profile.laplace(2.0)).group(2)
    assert both == Profile.gaussian(1.0).compose(Profile.laplace(1.0))
    assert Profile.from_epsilon_delta(0.5).group(2).group(2) == (
        Profile.from_epsilon_delta(0.5).group(4)
    )


def test_groups_are_written():
    profile = Profile.of([[0.7, 0.3], [0.4, 0.6]]).group(3)
    again = Profile.from_json(profile.to_json())
    assert again == profile
    assert again.delta(0.3) == profile.delta(0.3)


@pytest.mark.parametrize(
    ("profile", "size", "words"),
    [
        (Profile.gaussian(1.0), 0, "size"),
        (Profile.gaussian(1.0), 2.5, "size"),
        (Profile.gaussian(1.0), 5000, "size"),
        (Profile.renyi([2.0, 4.0], [0.1, 0.2]), 2, "do not bound groups"),
        (fp.accounting.random_allocation(1.0, 6, selected=3), 2, "do not bound groups"),
    ],
)
def test_refused_groups(profile, size, words):
    with pytest.raises(fp.InvalidInput, match=words):
        profile.group(size)


def test_groups_in_a_sample_of_fixed_size():
    """Two of four records are sampled: one of a pair with probability 5/6, which noise reveals."""
    noise = Profile.gaussian(0.1, relation="replace-one")
    step = noise.sampled_without_replacement(2, 4 - 2 + 1, relation="add-or-remove")
    assert step.group(2).delta(0.0).upper >= 5 / 6


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "matrix", [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]], [[0.5, 0.5], [1, 0]]]
)
def test_groups_of_channels_that_exclude_outputs(matrix, k):
    # No finite loss was left after the second record: an IndexError.
    profile = Profile.of(matrix).group(k)
    assert profile.delta(0.1).upper == 1.0
    assert profile.epsilon(0.1).upper == np.inf


@pytest.mark.parametrize("k", [60, 100, 1000])
def test_many_records_of_a_pure_level(k):
    """The bound is k times the level, less what delta allows."""
    level = fp.accounting.PrivacyProfile.from_epsilon_delta(0.5).group(k).epsilon(1e-6)
    assert 0.5 * k - 1e-5 <= level.upper <= 0.5 * k
