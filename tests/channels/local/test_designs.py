"""Local mechanisms against lists of their reports, in fractions."""

from __future__ import annotations

import itertools
import math
from decimal import localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.channels.local.support import EXACT
from tests.local_cases import SMALL, fractions

K = 1_000_000
KINDS = [
    fp.SubsetChannel,
    fp.UnaryChannel,
    fp.HashingChannel,
    fp.ProjectiveChannel,
    fp.HadamardChannel,
]


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_chances_of_support_are_those_of_a_list(channel):
    base, member = channel.support_table()
    assert math.isclose(base.sum(), 1.0)
    np.testing.assert_allclose((base * member).sum(axis=1), float(channel.inclusion), rtol=1e-13)
    both = (base * member) @ member.T
    pairs = both[~np.eye(channel.k, dtype=bool)]
    kinds = np.array([float(pair) for pair in channel.joint])
    nearest = np.abs(pairs[:, None] - kinds).argmin(axis=1)
    np.testing.assert_allclose(pairs, kinds[nearest], atol=1e-14)
    assert set(nearest) == set(range(len(kinds)))
    with localcontext(EXACT):
        empty = float(channel.empty_mass)
    assert math.isclose(base[~member.any(axis=0)].sum(), empty, abs_tol=1e-14)
    assert channel.output_count == member.shape[1]
    if channel.listed is not None:
        assert channel.listed == member.shape[1]
        weights = np.random.default_rng(3).random(channel.k)
        np.testing.assert_allclose(channel.masses(weights), weights @ member, atol=1e-13)


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_rows_are_laws_of_the_level(channel):
    columns = fractions(channel)
    assert all(sum(row) == 1 for row in zip(*columns, strict=True))
    ratios = [max(column) / min(column) for column in columns]
    assert max(ratios) == channel.growth
    assert fp.realised_level(channel) <= channel.epsilon
    # The integers give up next to nothing of the level that was asked for.
    assert channel.epsilon - fp.realised_level(channel) < 1e-15 * (1 + channel.epsilon)
    matrix = np.array([[float(entry) for entry in column] for column in columns]).T
    np.testing.assert_allclose(channel.matrix(), matrix, rtol=1e-12)


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_estimates_have_the_mean_and_the_variance_that_are_said(channel):
    """The estimate of one report, as a vector over values: all its moments in fractions."""
    k, columns, reports = channel.k, fractions(channel), _listed(channel)
    assert len(reports) == len(columns)
    values = [channel.moments(channel.tally(one[None]), 1)[0] for one in reports]
    law = np.array([[float(entry) for entry in column] for column in columns])
    table = np.array(values)
    mean, square = law.T @ table, law.T @ table**2
    np.testing.assert_allclose(mean, np.eye(k), atol=1e-9)
    spread = square - mean**2
    # One record that holds t, and one of each of the other values.
    for t in range(k):
        for share in (0.0, 0.25, 1.0):
            rest = [x for x in range(k) if x != t]
            others = np.mean([spread[x, t] for x in rest])
            said = channel.variance(share)
            formula = share * spread[t, t] + (1.0 - share) * others
            if isinstance(channel, fp.HadamardChannel) and t % channel.blocks:
                assert formula <= said * (1 + 1e-9)  # a block that is not one of the largest
            else:
                assert math.isclose(formula, said, rel_tol=1e-9)


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_estimated_variances_are_unbiased(channel):
    """Where the floor does not bind: the variance is linear in the counts."""
    k, rng = channel.k, np.random.default_rng(5)
    law = np.array([[float(entry) for entry in column] for column in fractions(channel)])
    reports = _listed(channel)
    counts = rng.multinomial(10_000, np.full(k, 1.0 / k))
    expected = law @ counts  # how often each report is seen, in the mean
    # Sums of whole numbers are rounded to whole numbers, so let them be large.
    tally = 1e9 * sum(
        times * channel.tally(one[None]) for times, one in zip(expected, reports, strict=True)
    )
    estimates, variances = channel.moments(tally, 10_000 * 10**9)
    np.testing.assert_allclose(estimates, 1e9 * counts, rtol=1e-9)
    values = np.array([channel.moments(channel.tally(one[None]), 1)[0] for one in reports])
    spread = law.T @ values**2 - (law.T @ values) ** 2
    np.testing.assert_allclose(variances, 1e9 * (counts @ spread), rtol=1e-8)


def _listed(channel):
    """All reports in the order of the columns of the matrix."""
    if isinstance(channel, fp.SubsetChannel):
        return np.array(list(itertools.combinations(range(channel.k), channel.size)))
    if isinstance(channel, fp.UnaryChannel):
        return np.array(list(itertools.product((0, 1), repeat=channel.k)))
    count = channel.listed
    if isinstance(channel, fp.HashingChannel):
        return np.array([divmod(y, channel.g) for y in range(count)])
    return np.arange(count)


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_reports_support_the_values_of_their_column(channel):
    _, member = channel.support_table()
    for y, report in enumerate(_listed(channel)):
        np.testing.assert_array_equal(channel.members(np.atleast_1d(report)), member[:, y])
        np.testing.assert_array_equal(channel.support_counts(report[None]), member[:, y])


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_definitions_come_back(channel):
    again = fp.AbstractChannel.from_json(channel.to_json())
    assert again == channel
    assert hash(again) == hash(channel)
    assert repr(again) == repr(channel)
    assert again.growth == channel.growth


@given(
    st.sampled_from(KINDS),
    st.integers(2, 300),
    st.one_of(st.just(0.0), st.floats(1e-8, 60.0), st.just(700.0)),
)
def test_any_level_and_size(kind, k, epsilon):
    channel = kind(k, epsilon)
    assert fp.dp_level(channel) <= epsilon
    assert channel.growth >= 1
    with mpmath.workdps(60):
        exact = mpmath.mpf(channel.growth.numerator) / channel.growth.denominator
        assert exact <= mpmath.exp(mpmath.mpf(epsilon))
    assert 0.0 <= fp.maximal_leakage(channel) <= epsilon
    if channel.growth == 1:
        with pytest.raises(fp.InvalidInput, match="cannot be undone"):
            channel.variance()
    else:
        assert 0.0 < channel.variance(1.0 / k) < math.inf


def test_the_best_size_of_a_subset_is_the_best():
    for k, epsilon in itertools.product((2, 3, 7, 12, 40), (0.1, 1.0, 2.0, 4.0)):
        best = fp.SubsetChannel(k, epsilon)
        others = [fp.SubsetChannel(k, epsilon, size).variance(1.0 / k) for size in range(1, k)]
        assert best.variance(1.0 / k) <= min(others) * (1 + 1e-12)


def test_published_variances():
    """Optimised encoding and hashing have 4 e/(e-1)^2 for rare values (Wang et al. 2017)."""
    for epsilon in (0.5, 1.0, 3.0):
        odds = math.exp(epsilon)
        unary = fp.UnaryChannel(50, epsilon).variance()
        assert math.isclose(unary, 4.0 * odds / (odds - 1.0) ** 2, rel_tol=1e-12)
        response = fp.SubsetChannel(50, epsilon, size=1).variance()
        assert math.isclose(response, (odds + 48.0) / (odds - 1.0) ** 2, rel_tol=1e-12)
        symmetric = fp.UnaryChannel(50, epsilon, "symmetric").variance()
        half = math.exp(epsilon / 2.0)
        assert math.isclose(symmetric, half / (half - 1.0) ** 2, rel_tol=1e-12)
        hadamard = fp.HadamardChannel(50, epsilon, blocks=1).variance()
        assert math.isclose(hadamard, ((odds + 1.0) / (odds - 1.0)) ** 2, rel_tol=1e-12)


def test_hashes_collide_as_often_as_said():
    channel = fp.HashingChannel(27, 1.0, g=3)
    seeds = np.arange(channel.geometry.points)
    hashes = channel._hashed(seeds[:, None], np.arange(27))
    for x, other in itertools.combinations(range(27), 2):
        equal = int((hashes[:, x] == hashes[:, other]).sum())
        assert Fraction(equal, len(seeds)) == Fraction(3**2 - 1, 3**3 - 1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fp.SubsetChannel(1, 1.0), "k must be at least 2"),
        (lambda: fp.SubsetChannel(5, -1.0), "epsilon must be"),
        (lambda: fp.SubsetChannel(5, 1.0, size=5), "size must be below"),
        (lambda: fp.SubsetChannel(5, 1.0, size=0), "size must be at least 1"),
        (lambda: fp.UnaryChannel(5, 1.0, "best"), "encoding must be one of"),
        (lambda: fp.HashingChannel(5, 1.0, g=4), "g must be a prime"),
        (lambda: fp.ProjectiveChannel(5, 1.0, q=1), "q must be at least 2"),
        (lambda: fp.HadamardChannel(5, 1.0, blocks=3), "power of two"),
        (lambda: fp.HadamardChannel(5, math.nan), "epsilon must be"),
        (lambda: fp.HashingChannel(1 << 23, 1.0), "at most"),
        (lambda: fp.HashingChannel(K, 1.0, g=997), "transforms over"),
        (lambda: fp.SubsetChannel(9, 1.0).support_counts([[1, 2, 3]]), "shape"),
        (lambda: fp.HadamardChannel(9, 1.0).support_counts([99]), "range of outputs"),
        (lambda: fp.SubsetChannel(9, 1.0, 2).support_counts([[1, 1]]), "increasing"),
        (lambda: fp.SubsetChannel(40, 1.0).matrix(), "matrix of SubsetChannel"),
        (lambda: fp.UnaryChannel(5, 0.0).variance(), "cannot be undone"),
        (lambda: fp.HadamardChannel(5, 0.0).variance(), "cannot be undone"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(fp.FastprivError, match=words):
        make()


@pytest.mark.parametrize("kind", KINDS)
def test_a_million_values(kind):
    """Nothing here lists reports: closed forms, and draws."""
    channel = kind(K, 1.0)
    assert 1.0 - 1e-12 < fp.dp_level(channel) <= 1.0
    assert fp.hockey_stick(channel, 0.5) > 0.0
    assert 0.3 < fp.maximal_leakage(channel) < 0.7
    assert channel.variance(1.0 / K) < 4.7
    assert fp.accounting.PrivacyProfile.of(channel).self_compose(10).epsilon(1e-6).upper < 10.0
    reports = channel.sample([[K - 1]], rng=1)
    assert len(reports) == 1
