"""Disjoint parts, the best of many runs, partitions by thresholds: enumeration and closed forms."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting import best_of_runs, parallel, partition_selection

Profile = fp.accounting.PrivacyProfile


def hockey(p, q, epsilon):
    return max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((p, q), (q, p)))


# Disjoint parts.


def test_parts_cost_as_much_as_the_worst_one():
    two = parallel(Profile.gaussian(2.0), Profile.laplace(1.0))
    for epsilon in (0.0, 0.5, 0.9, 1.5):
        each = [p.delta(epsilon) for p in (Profile.gaussian(2.0), Profile.laplace(1.0))]
        assert two.delta(epsilon).upper == max(b.upper for b in each)
        assert two.delta(epsilon).lower == max(b.lower for b in each)
    assert parallel(Profile.gaussian(2.0), Profile.gaussian(4.0)) == Profile.gaussian(2.0)
    assert parallel() == Profile({})
    # Gaussian noise on samples has the tail of the noise, but not its curve.
    sampled = Profile.gaussian(1.0, 0.1).self_compose(5)
    both = parallel(Profile.gaussian(2.0), sampled)
    assert both.delta(1.0) == Profile.gaussian(2.0).delta(1.0)
    assert both.delta(6.0).upper == max(
        p.delta(6.0).upper for p in (Profile.gaussian(2.0), sampled)
    )
    assert Profile.from_json(two.to_json()) == two


def test_parts_by_enumeration():
    """A record is in part 0 or in part 1; each part answers by a response of its own level."""
    levels = 0.4, 1.1
    profile = parallel(*(Profile.from_epsilon_delta(e) for e in levels))
    for epsilon in (0.0, 0.3, 0.7):
        truth = 0.0
        for part in (0, 1):  # the neighbours differ in the record of this part
            laws = []
            for present in (0, 1):
                stay = [math.exp(e) / (1 + math.exp(e)) for e in levels]
                bits = [present if i == part else 0 for i in (0, 1)]
                laws.append(
                    np.array(
                        [
                            np.prod(
                                [
                                    s if y == b else 1 - s
                                    for s, y, b in zip(stay, out, bits, strict=True)
                                ]
                            )
                            for out in product((0, 1), repeat=2)
                        ]
                    )
                )
            truth = max(truth, hockey(*laws, epsilon))
        assert profile.delta(epsilon).lower <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= profile.delta(epsilon).upper
        # Twice the same: the composition of the worst part is below the composed bound.
        twice = Profile.from_epsilon_delta(levels[1]).self_compose(2).delta(epsilon)
        found = profile.self_compose(2).delta(epsilon)
        assert twice.lower <= found.upper
        assert (
            found.upper
            < Profile.from_epsilon_delta(1.1).self_compose(2).delta(epsilon).upper * 1.05
        )


def test_a_ledger_charges_the_worst_part():
    parts = [Profile.gaussian(2.0), Profile.from_epsilon_delta(1.2)]
    budget = {"approximate-dp": (1.02 * max(p.epsilon(1e-3).upper for p in parts), 1e-3)}
    ledger = fp.accounting.Ledger(budget)
    ledger.spend(parallel(*parts))
    ledger = fp.accounting.Ledger(budget)  # one after the other on the same records
    ledger.spend(parts[0])
    with pytest.raises(fp.BudgetExceeded):
        ledger.spend(parts[1])


def test_parts_that_are_refused():
    replaced = Profile.laplace(1.0, relation="replace-one")
    with pytest.raises(fp.InvalidInput, match="move from one part"):
        parallel(replaced, replaced)
    assert parallel(replaced, replaced, fixed_parts=True) == replaced
    with pytest.raises(fp.InvalidInput, match="do not compose"):
        parallel(replaced, Profile.laplace(1.0), fixed_parts=True)
    with pytest.raises(fp.InvalidInput, match="profiles must be"):
        parallel(1.0)


# Several releases on one sample.


def test_releases_on_one_sample_are_not_releases_on_new_samples():
    with pytest.raises(fp.InvalidInput, match="not releases on refreshed samples"):
        Profile.laplace(1.0).self_compose(2).poisson_subsampled(0.1)
    one_sample = Profile.gaussian(2.0).self_compose(4).poisson_subsampled(0.1)
    assert one_sample == Profile.gaussian(1.0, 0.1)
    new_samples = Profile.gaussian(2.0, 0.1).self_compose(4)
    assert one_sample.epsilon(1e-5).lower > new_samples.epsilon(1e-5).upper


# The best of many runs.


@pytest.mark.parametrize("name", ["geometric", "logarithmic", "poisson"])
def test_the_best_of_runs_by_enumeration(name):
    """Binary response, the run with the output 1 is best; K runs of a truncated distribution."""
    level, mean = 0.3, 3.0
    found = best_of_runs(Profile.from_epsilon_delta(level), mean, name)
    counts = np.arange(1, 400)
    if name == "geometric":
        weights = (1 / mean) * (1 - 1 / mean) ** (counts - 1)
    elif name == "poisson":
        weights = np.exp(
            counts * math.log(mean) - mean - np.array([math.lgamma(k + 1.0) for k in counts])
        )
    else:
        x = max(
            np.linspace(0.01, 0.9999, 20000),
            key=lambda p: -abs(-p / ((1 - p) * math.log1p(-p)) - mean),
        )
        weights = -(x**counts) / counts / math.log1p(-x)
    stay = math.exp(level) / (1 + math.exp(level))
    for one, other in ((stay, 1 - stay), (1 - stay, stay)):
        laws = []
        for p in (one, other):
            ones = (weights * (1 - (1 - p) ** counts)).sum()
            laws.append(np.array([ones, weights.sum() - ones, 1 - weights.sum()]))
        for epsilon in (0.0, 0.3, 0.6):
            assert hockey(*laws, epsilon) <= found.delta(epsilon).upper + 1e-9


def test_runs_that_are_refused():
    with pytest.raises(fp.InvalidInput, match="mean_runs"):
        best_of_runs(Profile.gaussian(1.0), 0.5)
    with pytest.raises(fp.InvalidInput, match="distribution"):
        best_of_runs(Profile.gaussian(1.0), 5.0, "fixed")
    with pytest.raises(fp.InvalidInput, match="profile must be"):
        best_of_runs(1.0, 5.0)


# Partitions by thresholds.


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("threshold", [2.0, 5.0])
def test_partitions_by_enumeration(k, threshold):
    """k partitions of a record, each with no other record or with c others, shown or not."""
    b = 1.5
    profile = partition_selection("laplace", b, threshold, k)

    def above(count):
        x = (threshold - count) / b
        return 0.5 * math.exp(-x) if x > 0 else 1 - 0.5 * math.exp(x)

    for epsilon in (0.0, 0.4, 1.0):
        truth = 0.0
        for others in product((0, 1, 3, 5), repeat=k):
            laws = []
            for present in (1, 0):
                shown = [above(c + present) if c + present else 0.0 for c in others]
                laws.append(
                    np.array(
                        [
                            np.prod([s if y else 1 - s for s, y in zip(shown, out, strict=True)])
                            for out in product((0, 1), repeat=k)
                        ]
                    )
                )
            truth = max(truth, hockey(*laws, epsilon))
        assert truth <= profile.delta(epsilon).upper * (1 + 1e-12)
    if k == 1:
        assert profile.delta(1.0 / b).upper == pytest.approx(0.5 * math.exp((1 - threshold) / b))


def test_gaussian_partitions():
    from statistics import NormalDist

    profile = partition_selection("gaussian", 2.0, 12.0)
    shown = NormalDist().cdf(-5.5)
    assert profile.delta(30.0).upper == pytest.approx(shown, rel=1e-9)
    assert profile.delta(0.5).lower == Profile.gaussian(2.0).delta(0.5).lower


@pytest.mark.parametrize(
    ("noise", "scale", "threshold"),
    [
        ("laplace", 0.02, 15.0),
        ("laplace", 0.1, 70.0),
        ("laplace", 1.0, 15.0),
        ("gaussian", 1.0, 30.3),
        ("gaussian", 2.0, 8.0),
        ("gaussian", 3.0, 1.0),
    ],
)
@pytest.mark.parametrize("k", [1, 3])
def test_both_bounds_of_a_new_partition(noise, scale, threshold, k):
    """Far out, delta is the probability of a partition that has no other record."""
    profile = partition_selection(noise, scale, threshold, k)
    with mpmath.workdps(400):
        x = (mpmath.mpf(threshold) - 1) / mpmath.mpf(scale)
        one = mpmath.exp(-x) / 2 if noise == "laplace" else mpmath.erfc(x / mpmath.sqrt(2)) / 2
        truth = 1 - (1 - one) ** k
        found = profile.delta(600.0)
        assert found.lower <= truth <= found.upper
        assert found.upper <= truth * (1 + mpmath.mpf("1e-11")) + mpmath.mpf("1e-320")
        assert found.lower >= truth * (1 - mpmath.mpf("1e-11"))
    assert Profile.from_json(profile.to_json()) == profile


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cauchy", 1.0, 5.0), "noise"),
        (("laplace", 0.0, 5.0), "scale"),
        (("laplace", 1.0, 0.5), "threshold"),
        (("laplace", 1.0, 5.0, 33), "partitions"),
    ],
)
def test_partitions_that_are_refused(arguments, words):
    with pytest.raises(fp.InvalidInput, match=words):
        partition_selection(*arguments)
    with pytest.raises(fp.InvalidInput, match="twice as many"):
        partition_selection("laplace", 1.0, 5.0, relation="replace-one")


def test_compositions_of_parts_are_attained_by_the_worst_part():
    """Neighbours that differ in the same part in every step attain its composition."""
    of = fp.accounting.PrivacyProfile
    both = fp.accounting.parallel(of.gaussian(2.0), of.laplace(1.0)).self_compose(10)
    level, worst = both.epsilon(1e-6), of.laplace(1.0).self_compose(10).epsilon(1e-6)
    assert worst.lower <= level.lower <= level.upper < 1.12 * worst.upper
    shown = fp.accounting.partition_selection("laplace", 1.0, 15.0).self_compose(5)
    assert 4.99 < shown.epsilon(1e-5).lower <= shown.epsilon(1e-5).upper < 5.0
    assert shown.delta(0.5).width < 0.01 * shown.delta(0.5).upper
    response = of.of([[0.75, 0.25], [0.25, 0.75]])  # neighbours of channels may be others
    mixed = fp.accounting.parallel(response, of.of([[0.7, 0.3], [0.2, 0.8]]), fixed_parts=True)
    assert mixed.self_compose(2).epsilon(0.01).lower <= mixed.self_compose(2).epsilon(0.01).upper
