"""Measures of local mechanisms in their structure, against their matrices and by high precision."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.channels.local import support
from fastpriv.measures import supports
from fastpriv.measures.realised import realised
from tests.local_cases import SMALL, fractions, priors


@pytest.fixture
def structured(monkeypatch):
    """Take the structure where small matrices would be taken."""
    monkeypatch.setattr(support, "SMALL", 0)


def _agree(value, exact, rel=1e-11):
    if isinstance(value, fp.Bracket):
        low, high = (exact.lower, exact.upper) if isinstance(exact, fp.Bracket) else (exact, exact)
        assert value.lower <= high * (1 + rel) + 1e-15
        assert value.upper >= low * (1 - rel) - 1e-15
    else:
        assert math.isclose(value, float(exact), rel_tol=rel, abs_tol=1e-15)


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_measures_of_the_mechanism(channel, structured):
    dense = fp.Channel(channel.matrix())
    for measure in (
        fp.dp_level,
        fp.leakage_capacity,
        fp.strong_dp_level,
        fp.maximal_leakage,
        fp.contraction_coefficient,
        fp.channel_capacity,
    ):
        _agree(measure(channel), measure(dense))
    for epsilon in (0.0, 0.2, 0.9):
        _agree(fp.hockey_stick(channel, epsilon), fp.hockey_stick(dense, epsilon), 1e-9)
    for delta in (1e-3, 0.05, 0.3):
        _agree(fp.hockey_stick_epsilon(channel, delta), fp.hockey_stick_epsilon(dense, delta), 1e-9)
    ours = fp.accounting.PrivacyProfile.of(channel).self_compose(5).epsilon(1e-4)
    theirs = fp.accounting.PrivacyProfile.of(dense).self_compose(5).epsilon(1e-4)
    assert ours.upper >= theirs.lower
    assert ours.lower <= theirs.upper
    assert ours.upper - ours.lower < 1e-6


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_measures_under_priors(channel, structured):
    dense = fp.Channel(channel.matrix())
    for p in priors(channel.k, np.random.default_rng(channel.k)):
        for measure in (
            fp.mutual_information,
            fp.pml_level,
            fp.max_information,
            fp.information_privacy_level,
            fp.identifiability_level,
            fp.maximal_correlation,
        ):
            _agree(measure(channel, p), measure(dense, p))
        if channel.listed is not None:
            np.testing.assert_allclose(fp.pml(channel, p), fp.pml(dense, p), atol=1e-11)
            np.testing.assert_allclose(
                channel.output(p).pmf(), dense.output(p).pmf(), rtol=1e-11, atol=1e-14
            )


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_the_leakage_of_one_report(channel):
    dense = fp.Channel(channel.matrix())
    p = priors(channel.k, np.random.default_rng(2))[1]
    leakages = fp.pml(dense, p)
    reports = channel.sample([[0]] * 20, rng=5)
    for report in reports:
        member = channel.members(np.atleast_1d(report).astype(np.int64))
        same = (channel.support_table()[1] == member[:, None]).all(axis=0)
        _agree(fp.pml(channel, p, y=np.atleast_1d(report)), leakages[same][0])


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_levels_hold_for_the_draws(channel):
    """Levels of the channel that stands for the draws, against the draws in fractions."""
    drawn, slack = realised(channel)
    assert slack == 0.0
    columns = fractions(channel)
    with mpmath.workdps(40):
        worst = sum(max(column) for column in columns)
        exact = mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)
        assert mpmath.mpf(fp.maximal_leakage(drawn)) >= exact
        assert mpmath.mpf(fp.maximal_leakage(channel)) >= exact
        ratio = mpmath.log(mpmath.mpf(channel.growth.numerator) / channel.growth.denominator)
        assert mpmath.mpf(fp.dp_level(drawn)) >= ratio


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 1.0, 30.0, 700.0])
def test_closed_forms_by_high_precision(epsilon):
    """Subset selection at any level: capacity and maximal leakage to the last digits."""
    k, size = 1000, 37
    channel = fp.SubsetChannel(k, epsilon, size)
    with mpmath.workdps(400):
        e, s = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(size) / k
        z = 1 + (e - 1) * s
        capacity = (e * s * epsilon) / z - mpmath.log(z)
        leakage = mpmath.log(e / z)
    _agree(fp.channel_capacity(channel), float(capacity), 1e-12)
    assert fp.channel_capacity(channel).width <= 4e-12 * float(capacity)
    level = fp.maximal_leakage(channel)
    assert float(leakage) * (1 - 1e-14) <= level <= float(leakage) * (1 + 1e-14)
    assert mpmath.mpf(level) >= leakage
    # E_d on one row is subset selection of one value.
    one, response = fp.SubsetChannel(k, epsilon, 1), fp.HammingChannel(1, k, epsilon)
    uniform = fp.Uniform(1, k)
    _agree(fp.mutual_information(one, uniform), fp.mutual_information(response, uniform))
    _agree(fp.maximal_leakage(one), fp.maximal_leakage(response), 1e-14)
    _agree(fp.maximal_correlation(one, uniform), fp.maximal_correlation(response, uniform))
    _agree(fp.contraction_coefficient(one), fp.contraction_coefficient(response))


@settings(max_examples=25)
@given(st.integers(14, 24), st.floats(0.05, 5.0), st.integers(0, 10**6), st.floats(0.05, 2.0))
def test_brackets_hold_the_information(k, epsilon, seed, concentration):
    """Against the sum over all subsets of two, and over all numbers of ones."""
    p = np.random.default_rng(seed).dirichlet(np.full(k, concentration))
    subset = fp.SubsetChannel(k, epsilon, 2)
    exact = fp.mutual_information(fp.Channel(subset.matrix()), p)
    inside = supports.information(subset, fp.Dense(p))
    assert inside.lower <= exact * (1 + 1e-9)
    assert exact * (1 - 1e-9) <= inside.upper
    assert inside.width <= 0.05 * inside.upper + 1e-12


@settings(max_examples=10)
@given(st.integers(13, 14), st.floats(0.05, 4.0), st.integers(0, 10**6))
def test_brackets_of_bits_hold_the_information(k, epsilon, seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(k))
    unary = fp.UnaryChannel(k, epsilon)
    exact = fp.mutual_information(fp.Channel(unary.matrix()), p)
    inside = supports.information(unary, fp.Dense(p))
    assert inside.lower <= exact * (1 + 1e-9)
    assert exact * (1 - 1e-9) <= inside.upper


def test_binomial_weights_are_binomial():
    for n, q in [(1, 0.5), (20, 0.3), (100_000, 0.2689)]:
        sizes, weights = supports.binomial(n, q)
        assert math.isclose(weights.sum(), 1.0, rel_tol=1e-13)
        for place in (0, len(sizes) // 2, len(sizes) - 1):
            size = int(sizes[place])
            with mpmath.workdps(40):
                exact = (
                    mpmath.binomial(n, size)
                    * mpmath.mpf(q) ** size
                    * (1 - mpmath.mpf(q)) ** (n - size)
                )
            assert math.isclose(weights[place], float(exact), rel_tol=1e-10)


def test_the_uniform_prior_is_best_for_symmetric_channels():
    channel = fp.UnaryChannel(5, 1.3)
    dense = fp.channel_capacity(fp.Channel(channel.matrix()))
    _agree(fp.channel_capacity(channel), dense)
    assert fp.capacity_prior(channel) == fp.Uniform(1, 5)


def test_large_channels_answer_in_their_structure():
    k = 20_000
    p = np.random.default_rng(0).dirichlet(np.ones(k))
    for channel in (
        fp.SubsetChannel(k, 2.0),
        fp.UnaryChannel(k, 2.0),
        fp.HashingChannel(k, 2.0),
        fp.ProjectiveChannel(k, 2.0),
        fp.HadamardChannel(k, 2.0),
    ):
        capacity = fp.channel_capacity(channel)
        assert capacity.width < 1e-2 * capacity.upper
        value = fp.mutual_information(channel, p)
        lower, upper = (value.lower, value.upper) if isinstance(value, fp.Bracket) else (value,) * 2
        assert 0.3 < lower <= upper < capacity.upper
        assert upper - lower < 1e-4
        assert lower < fp.pml_level(channel, p) <= 2.0
        with pytest.raises(fp.TooLarge, match="matrix"):
            fp.sdpi_constant(channel, p)


def test_columns_through_unlike_mechanisms():
    channel = fp.ColumnsChannel([fp.SubsetChannel(4, 0.5, 2), fp.HammingChannel(1, 3, 1.0)])
    dense = fp.Channel(channel.matrix(), [4, 3])
    record, whole = fp.RecordChannel(channel), fp.Channel(channel.matrix())
    for measure in (
        fp.dp_level,
        fp.leakage_capacity,
        fp.maximal_leakage,
        fp.channel_capacity,
        fp.realised_level,
    ):
        _agree(measure(channel), measure(dense))
        _agree(measure(record), measure(whole))
    _agree(fp.hockey_stick(channel, 0.3), fp.hockey_stick(dense, 0.3))
    prior = fp.Product([[0.1, 0.2, 0.3, 0.4], [0.5, 0.25, 0.25]])
    joint = fp.Dense(np.random.default_rng(1).dirichlet(np.ones(12)), [4, 3])
    for law in (prior, joint):
        for measure in (fp.mutual_information, fp.pml_level, fp.identifiability_level):
            _agree(measure(channel, law), measure(dense, law))
    assert fp.AbstractChannel.from_json(channel.to_json()) == channel
    assert fp.AbstractChannel.from_json(record.to_json()) == record
    assert channel.sample([[1, 2], [3, 0]], rng=1).shape == (2, 3)
    with pytest.raises(fp.InvalidInput, match="each on one record"):
        fp.ColumnsChannel([fp.HammingChannel(2, 2, 1.0)])


def _exact_matrix(channel):
    """Return W[x, y] = b(y) (odds if y supports x, else 1)/Z in the precision at work."""
    base, member = channel.support_table()
    if isinstance(channel, fp.UnaryChannel):
        odds = mpmath.mpf(channel.growth.numerator) / channel.growth.denominator
        q = mpmath.mpf(channel.inclusion.numerator) / channel.inclusion.denominator
        base = [mpmath.fprod(q if held else 1 - q for held in y) for y in member.T]
    else:
        odds = mpmath.exp(mpmath.mpf(channel.epsilon))
        base = [mpmath.mpf(1) / len(base)] * len(base)
    rows = [[b * (odds if held else 1) for b, held in zip(base, x, strict=True)] for x in member]
    return [[entry / mpmath.fsum(row) for entry in row] for row in rows]


def _exact_correlation(W, p):
    """Return the second largest root of an eigenvalue of B B', B = sqrt(p) W/sqrt(q)."""
    q = [mpmath.fdot(p, column) for column in zip(*W, strict=True)]
    inner = [[mpmath.fdot(map(mpmath.fdiv, a, q), b) for b in W] for a in W]
    size = range(len(p))
    shifted = [[mpmath.sqrt(p[i] * p[j]) * (inner[i][j] - 1) for j in size] for i in size]
    return mpmath.sqrt(max(mpmath.eigsy(mpmath.matrix(shifted), eigvals_only=True)))


@pytest.mark.grid(every=5)
@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-40, 1e-17, 1e-12, 1e-8, 1e-3, 1.0])
@pytest.mark.parametrize(
    "make",
    [
        lambda epsilon: fp.SubsetChannel(4, epsilon, 2),
        lambda epsilon: fp.UnaryChannel(3, epsilon),
        lambda epsilon: fp.UnaryChannel(3, epsilon, "symmetric"),
        lambda epsilon: fp.HadamardChannel(3, epsilon),
        lambda epsilon: fp.HashingChannel(3, epsilon),
        lambda epsilon: fp.ProjectiveChannel(4, epsilon),
    ],
)
def test_small_mechanisms_at_any_level(make, epsilon):
    """The mechanism is what epsilon says, also where the floats of its matrix no longer do."""
    channel = make(epsilon)
    p = np.arange(1.0, channel.k + 1.0) / (channel.k * (channel.k + 1) / 2)
    with mpmath.workdps(700):
        W, law = _exact_matrix(channel), [x / mpmath.fsum(p) for x in map(mpmath.mpf, p)]
        columns = list(zip(*W, strict=True))
        level = max(mpmath.log(max(y) / min(y)) for y in columns)
        assert fp.dp_level(channel) >= level * (1 - mpmath.mpf(10) ** -300)
        assert fp.maximal_leakage(channel) >= mpmath.log(mpmath.fsum(map(max, columns)))
        apart = max(
            mpmath.fsum((a - b) ** 2 / (2 * (a + b)) for a, b in zip(x, z, strict=True))
            for x in W
            for z in W
        )
        eta = fp.contraction_coefficient(channel)
        assert eta.lower <= apart <= eta.upper
        q = [mpmath.fdot(law, y) for y in columns]
        told = mpmath.fsum(
            x * a * mpmath.log(a / b)
            for x, row in zip(law, W, strict=True)
            for a, b in zip(row, q, strict=True)
        )
        found = fp.mutual_information(channel, p)
        assert abs(found - told) <= 1e-12 * told + mpmath.mpf(1e-322)
        assert fp.channel_capacity(channel).upper >= told * (1 - mpmath.mpf(1e-12))
    with mpmath.workdps(60):
        if epsilon >= 1e-20:
            for some in (law, [mpmath.mpf(1) / channel.k] * channel.k):
                rho = fp.maximal_correlation(channel, fp.Dense([float(x) for x in some]))
                assert rho >= _exact_correlation(W, some) * (1 - mpmath.mpf(1e-15))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_reports_that_do_not_fill_their_space(size, epsilon):
    """Subsets are some of the lists of numbers; what is formed of them has a column for each."""
    subset = fp.SubsetChannel(4, epsilon, size)
    columns = fp.ColumnsChannel([subset, fp.HammingChannel(1, 2, 1.0)])
    for channel in (subset, columns, fp.RecordChannel(columns)):
        dense = fp.Channel(channel.matrix(), channel.space.sizes)
        both, plain = fp.pair_datasets(channel, channel), fp.pair_datasets(dense, dense)
        assert np.array_equal(both.matrix(), plain.matrix())
        assert fp.dp_level(both) == fp.dp_level(plain)
        assert fp.is_weakly_symmetric(channel) == fp.is_weakly_symmetric(dense)
