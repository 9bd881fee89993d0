"""Lower ends that neighbours attain, and profiles of what is drawn."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import fastpriv as fp
import oracles as o
from fastpriv._sampling import thresholds as _thresholds
from fastpriv.accounting import PrivacyProfile
from fastpriv.accounting.profile import neighbours as _attained
from oracles import profile as op
from profile_cases import each_structure, holds, random_channel, response


def test_lower_ends_are_attained():
    """Two pairs that set parts of the curve: after many releases none of them reaches it."""
    matrix = np.array([[0.8, 0.2, 0.0], [0.2, 0.8, 0.0], [0.79, 0.2, 0.01]])
    matrix = fp.Channel(matrix).matrix()
    one, k, t = PrivacyProfile.of(matrix), 4, 2.0
    pairs = o.neighbour_pairs([3])
    holds(one.delta(1.0), op.worst_delta([(matrix, 1)], pairs, 1.0), 1e-12)
    found, truth = one.self_compose(k).delta(t), op.worst_delta([(matrix, k)], pairs, t)
    assert truth * (1 - mpf(10) ** -12) <= found.lower <= truth < found.upper * 0.999


@st.composite
def kinds(draw):
    """Two matrices with as many rows, and how often each is released."""
    rows, found = draw(st.integers(2, 3)), []
    for most in (5, 2):
        outputs = draw(st.integers(2, 3))
        weights = st.lists(st.integers(0, 6), min_size=outputs, max_size=outputs).filter(any)
        matrix = np.array([draw(weights) for _ in range(rows)], dtype=float)
        found.append(
            (fp.Channel(matrix / matrix.sum(axis=1, keepdims=True)), draw(st.integers(0, most)))
        )
    return found


def check_mixture(channels, t, delta=0.02, tight=True):
    """Brackets contain what the worst pair of neighbours attains, and it is the lower end."""
    profile = response(2, 0.0)
    for channel, k in channels:
        profile = profile.compose(PrivacyProfile.of(channel).self_compose(k))
    plain = [(channel.matrix().tolist(), k) for channel, k in channels]
    pairs = [*o.neighbour_pairs(channels[0][0].space.sizes)]
    found, truth = profile.delta(t), op.worst_delta(plain, pairs, t)
    rounding = mpf(10) ** -13  # of rows, which do not sum to one exactly
    assert found.lower <= truth * (1 + rounding)
    assert truth <= found.upper * (1 + rounding)
    if tight:
        assert found.lower >= truth * (1 - mpf(10) ** -9) - rounding
    level = profile.epsilon(delta)
    if 0.0 < level.lower < math.inf:
        assert op.worst_delta(plain, pairs, level.lower * (1 - 1e-12)) >= delta * (1 - rounding)
    if level.upper < math.inf:
        assert op.worst_delta(plain, pairs, level.upper) <= delta * (1 + rounding)
    if level.lower == math.inf:
        assert op.worst_delta(plain, pairs, 800.0) > delta * (1 - rounding)


@pytest.mark.search(every=10)
@settings(max_examples=60, deadline=None)
@given(kinds(), st.floats(0, 4), st.sampled_from([1e-6, 0.01, 0.3]))
def test_lower_ends_of_mixtures_are_attained(channels, t, delta):
    check_mixture(channels, t, delta)


def test_the_same_neighbours_in_all_releases():
    """Channels with one curve, set by different neighbours: no pair is worst in both."""
    matrix = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])
    first, second = fp.Channel(matrix), fp.Channel(matrix[[2, 1, 0]])
    both = PrivacyProfile.of(first).compose(PrivacyProfile.of(second))
    twice = PrivacyProfile.of(first).self_compose(2)
    assert both.delta(0.5).upper == twice.delta(0.5).upper
    assert both.delta(0.5).lower < twice.delta(0.5).lower * 0.99
    check_mixture([(first, 1), (second, 1)], 0.5)
    check_mixture([(first, 2), (second, 3)], 0.5)


@pytest.mark.slow
def test_neighbours_of_structured_mixtures():
    coin, blunt = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([[0.55, 0.45], [0.5, 0.5]])
    left, right = fp.ProductChannel([coin, blunt]), fp.ProductChannel([blunt, coin])
    check_mixture([(left, 1), (right, 1)], 0.4)
    check_mixture([(left, 2), (fp.HammingChannel(2, 2, 0.7), 1)], 0.4)
    unequal = fp.HammingChannel(2, [3, 2], 0.7)
    sharp = fp.ProductChannel([np.eye(3) * 0.7 + 0.1, blunt])  # in the other row
    check_mixture([(sharp, 1), (unequal, 1)], 0.4, tight=False)
    assert PrivacyProfile.of(unequal).self_compose(50).epsilon(1e-6).width < 1e-10
    count = fp.QueryChannel([0, 1, 1, 2], random_channel(5), [2, 2])
    check_mixture([(count, 1), (left, 1)], 0.4, tight=False)
    tilted = fp.TiltedChannel(fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2]), 1.0)
    check_mixture([(tilted, 1), (count, 2)], 0.4, tight=False)
    check_mixture([(tilted, 2)], 0.4, tight=False)


def test_channels_whose_common_neighbours_are_unknown(monkeypatch):
    """Then what the releases of one kind attain is a bound."""
    monkeypatch.setattr(_attained, "_MATRIX", 0)
    first, second = (fp.Channel(random_channel(seed)) for seed in (1, 2))
    check_mixture([(first, 2), (second, 2)], 0.4, tight=False)
    mixed = PrivacyProfile.of(first).self_compose(3).compose(PrivacyProfile.of(second))
    assert mixed.delta(0.5).lower >= PrivacyProfile.of(first).self_compose(3).delta(0.5).lower


def test_neighbours_of_different_spaces():
    """Data of the same people in two tables: any neighbours of one beside any of the other."""
    first, second = fp.Channel(random_channel(1, 2, 2)), fp.Channel(random_channel(2, 3, 2))
    profile = PrivacyProfile.of(first).compose(PrivacyProfile.of(second).self_compose(2))
    truth = max(
        op.attained_delta(
            [
                (np.vstack([first.matrix()[x], first.matrix()[z]]), 1),
                (np.vstack([second.matrix()[a], second.matrix()[b]]), 2),
            ],
            0,
            1,
            0.3,
        )
        for x, z in [(0, 1), (1, 0)]
        for a in range(3)
        for b in range(3)
        if a != b
    )
    found = profile.delta(0.3)
    holds(found, truth)
    assert found.lower >= max(
        PrivacyProfile.of(first).delta(0.3).lower,
        PrivacyProfile.of(second).self_compose(2).delta(0.3).lower,
    )


def test_laws_that_hardly_overlap():
    """Losses stay finite where P(A) - Q(A) is one but for rounding."""
    matrix = fp.Channel([[1.0, 3e-17], [1e-16, 1.0]]).matrix()
    for k in (1, 4):
        found = PrivacyProfile.of(matrix).self_compose(k)
        for t in (20.0 * k, 36.0 * k):
            truth = op.worst_delta([(matrix, k)], [(0, 1)], t)
            assert found.delta(t).lower <= truth <= found.delta(t).upper * (1 + 1e-15)
            assert found.delta(t).upper <= truth * (1 + 1e-9) + 0.1 * (k > 1)
        assert 30.0 * k < found.epsilon(0.5).upper < 40.0 * k


def test_a_pair_with_one_finite_loss():
    """Losses that are all the same, or all infinite, have no law to tilt."""
    for matrix in (
        [[0.6, 0.4, 0.0], [0.5, 0.0, 0.5]],
        [[1.0, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [1e-3, 1 - 1e-3]],
        [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5], [0.5, 0.25, 0.25]],
    ):
        for k in (1, 2, 5):
            for t in (0.0, 0.1, 1.0, 40.0):
                check_mixture([(fp.Channel(matrix), k)], t, 0.5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 1e-9, 0.01, 0.3, 2.0, 20.0]), st.booleans())
@example(146, 0.0, False)
@example(11562, 20.0, False)
def test_realised_profiles_cover_the_integer_thresholds(seed, t, query):
    """Chances far below 1 are drawn as multiples of 2^-64, not as they are."""
    rng = np.random.default_rng(seed)
    matrix = (10.0 ** rng.uniform(-7, 0, (3, 4))) ** rng.choice([1.0, 3.0])
    matrix[:, 3] = 10.0 ** rng.uniform(-25, -15, 3)
    matrix[rng.integers(3)] = matrix[0]
    matrix /= matrix.sum(axis=1, keepdims=True)
    channel = fp.QueryChannel([0, 1, 2], matrix, [3]) if query else fp.Channel(matrix)
    weights = _thresholds.LawThresholds(np.array(channel.matrix())).weights.tolist()
    assert all(sum(row) == 2**64 for row in weights)
    laws = [[mpf(w) / 2**64 for w in row] for row in weights]
    found = PrivacyProfile.realised(channel).delta(t)
    ratio = mp.exp(t)
    truth = max(
        sum(max(a - ratio * b, 0) for a, b in zip(p, q, strict=True)) for p in laws for q in laws
    )
    holds(found, truth)
    assert found.width <= 1e-13


@each_structure
def test_realised_profiles_of_structured_channels(channel):
    """E_d is drawn at its level or below; others nearly as they are."""
    drawn, plain = (f(channel) for f in (PrivacyProfile.realised, PrivacyProfile.of))
    for t in (0.0, 0.3):
        mine, nominal = drawn.delta(t), plain.delta(t)
        assert mine.upper == pytest.approx(nominal.upper, abs=1e-12)
    assert drawn.epsilon(0.0).upper >= fp.realised_level(channel) * (1 - 1e-13)


def test_realised_profiles_of_e_d_at_a_large_epsilon():
    found = PrivacyProfile.realised(fp.HammingChannel(5, 3, 700.0)).epsilon(0.0)
    assert found.upper == pytest.approx(fp.realised_level(fp.HammingChannel(1, 3, 700.0)))


@pytest.mark.parametrize(
    ("m", "epsilon"),
    [(2, 0.5), (3, 50.0), (2, 700.0), (2**28, 0.5), ([2**27, 2**28], 0.5)],
    ids=str,
)
def test_realised_profiles_of_e_d_are_attained(m, epsilon):
    """Of many values the words keep the ratio at less than epsilon, which is no lower end."""
    channel = fp.HammingChannel(2, m, epsilon)
    size = min(channel.space.sizes)
    words = _thresholds.SymmetricThresholds(size, epsilon)
    level = mp.log(mpf(words.stay) / mpf(words.move))
    for k in (1, 7):
        found = PrivacyProfile.realised(channel).self_compose(k)
        holds(found.epsilon(0.0), k * level)
        holds(found.delta(0.2 * k), op.response_delta(size, level, k, 0.2 * k))
