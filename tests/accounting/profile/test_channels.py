"""Privacy profiles of channels: one release, compositions, grids and lattices."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import fastpriv as fp
import oracles as o
from fastpriv.accounting import PrivacyProfile
from fastpriv.accounting.profile import strategy
from fastpriv.accounting.profile.discrete import pair_measure
from fastpriv.accounting.profile.engines import lattice as _lattice
from fastpriv.accounting.profile.engines.contour import SMOOTHED_CONTOUR
from fastpriv.accounting.profile.strategy import DiscreteCurve
from oracles import disclosure as od
from oracles import profile as op
from profile_cases import each_structure, holds, random_channel, response


@pytest.mark.parametrize("seed", range(6))
def test_channels_one_release(seed):
    matrix = fp.Channel(random_channel(seed)).matrix()
    profile = PrivacyProfile.of(matrix)
    for t in (0.0, 0.1, 0.7, 2.0, 5.0):
        holds(profile.delta(t), o.hockey_stick(matrix, [3], t))
        assert profile.delta(t).width <= 1e-13
    for delta in (1e-12, 1e-3, 0.2):
        holds(profile.epsilon(delta), od.hockey_stick_epsilon(matrix, [3], delta))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [2, 8])
def test_channels_composed(seed, k):
    """Above, the composed envelope; below, the best pair of neighbours."""
    matrix = fp.Channel(random_channel(seed)).matrix()
    profile = PrivacyProfile.of(matrix).self_compose(k)
    law = op.envelope_law(matrix.tolist(), [(0, 1), (0, 2), (1, 2)])
    if len(law) > 5 and k > 5:
        law = law[:0]  # too many outcomes to list
    pairs = op.power_law(law, k) if law else []
    for t in (0.0, 0.5 * k, 1.5 * k):
        found = profile.delta(t)
        truth = op.worst_delta([(matrix.tolist(), k)], [(0, 1), (0, 2), (1, 2)], t)
        holds(found, truth)
        assert mpf(found.lower) >= truth * (1 - mpf(10) ** -9) - mpf(10) ** -13
        if pairs:
            above = op.delta_of(pairs, t)
            assert above <= found.upper <= above * (1 + mpf(10) ** -9) + mpf(10) ** -13


def sides(*profiles):
    """Curves of lower and upper measures of some releases together."""
    parts = [(atom, k) for profile in profiles for atom, k in profile.parts.items()]
    return [
        DiscreteCurve([(a.upper if up else a.lower, k) for a, k in parts], up)
        for up in (False, True)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_grid_contains_what_lists_find(seed, monkeypatch):
    releases = (
        PrivacyProfile.of(random_channel(seed)).self_compose(8),
        response(3, 0.7).self_compose(9),
    )
    monkeypatch.setattr(_lattice, "_LISTED", 1 << 20)
    fine = sides(*releases)
    exact = {d: (fine[0].epsilon(d)[0], fine[1].epsilon(d)[1]) for d in (1e-200, 1e-12, 1e-3, 0.3)}
    monkeypatch.setattr(_lattice, "_LISTED", 0)
    rough = sides(*releases)
    for delta, (low, high) in exact.items():
        assert low * (1 - 1e-3) <= rough[0].epsilon(delta)[0] <= high
        assert low <= rough[1].epsilon(delta)[1] <= high * (1 + 1e-3)


def test_grid_of_lopsided_losses():
    """Many losses that all round the same way: their sum is far from that of their points."""
    P, Q = [0.14, 0.456, 0.179, 0.225], [0.078, 0.187, 0.337, 0.398]
    measure = pair_measure(np.array(P), np.array(Q), (0.0, 0.0))
    curves = [DiscreteCurve([(measure, 2 * 10**4)], up) for up in (False, True)]
    low, high = curves[0].epsilon(1e-9)[0], curves[1].epsilon(1e-9)[1]
    assert low <= high <= low * (1 + 1e-4)


@pytest.mark.slow(but=["50"])
@pytest.mark.parametrize("k", [50, 10**4])
def test_grid_contains_the_lattice(k, monkeypatch):
    """The grid alone, on releases whose exact curve is known."""

    releases = response(4, 0.5).self_compose(k), response(2, 0.21).self_compose(k // 2)
    truth = {d: releases[0].compose(releases[1]).epsilon(d) for d in (1e-250, 1e-4)}
    grid = tuple(attempt for attempt in strategy.ENGINES if attempt.engine.name == "grid")
    monkeypatch.setattr(strategy, "ENGINES", grid)
    monkeypatch.setattr(_lattice.LATTICE, "prepare", lambda *asked: None)
    monkeypatch.setattr(SMOOTHED_CONTOUR, "applies", lambda parts: False)
    rough = releases[0].compose(releases[1])
    for delta, known in truth.items():
        found = rough.epsilon(delta)
        assert found.lower <= known.upper
        assert known.lower <= found.upper
        assert found.width <= 1e-3 * found.upper


def test_e_d_of_any_length_is_one_row():
    for n, m in ((1, 3), (5, [4, 3, 1, 3, 9]), (10**6, 3)):
        profile = PrivacyProfile.of(fp.HammingChannel(n, m, 0.8)).self_compose(30)
        holds(profile.epsilon(1e-9), op.response_epsilon(3, 0.8, 30, 1e-9), 1e-9)


@each_structure
def test_structured_channels(channel):
    profile = PrivacyProfile.of(channel)
    plain = PrivacyProfile.of(fp.Channel(channel.matrix(), channel.space))
    for t in (0.0, 0.3, 0.6, 1.2):
        mine, theirs = profile.delta(t), plain.delta(t)
        assert mine.width < 1e-12
        assert mine.lower <= theirs.upper
        assert theirs.lower <= mine.upper
        assert mine.upper == pytest.approx(fp.hockey_stick(channel, t), abs=1e-12)
    mine, theirs = (p.self_compose(20).epsilon(1e-6) for p in (profile, plain))
    assert mine.midpoint == pytest.approx(theirs.midpoint, rel=1e-6)


def test_common_steps_are_found():
    """Losses -2h .. 2h are a lattice, however many releases: no list, no grid."""
    weights = np.array([1.0, 2.0, 4.0, 8.0])
    matrix = np.stack([weights, weights[::-1]]) / 15
    (atom,) = PrivacyProfile.of(matrix).parts
    assert atom.upper.step == pytest.approx(math.log(2), rel=1e-13)
    found = PrivacyProfile.of(matrix).self_compose(4000).epsilon(1e-10)
    assert found.width <= 1e-9 * found.upper


@st.composite
def matrices(draw):
    outputs = draw(st.integers(1, 4))
    rows = draw(st.integers(1, 3))
    weights = st.lists(st.integers(0, 6), min_size=outputs, max_size=outputs).filter(any)
    found = [draw(weights) for _ in range(rows)]
    return np.array([[v / sum(row) for v in row] for row in found])


@settings(max_examples=60, deadline=None)
@given(matrices(), st.integers(0, 4), st.floats(0, 4))
def test_upper_ends_are_guarantees(matrix, k, t):
    matrix = fp.Channel(matrix).matrix()
    profile = PrivacyProfile.of(matrix).self_compose(k)
    found = profile.delta(t)
    assert 0.0 <= found.lower <= found.upper <= 1.0
    if k == 1:
        truth = o.hockey_stick(matrix, [len(matrix)], t)
        assert mpf(found.lower) <= truth <= mpf(found.upper) + mpf(10) ** -60
    for x, z in o.neighbour_pairs([len(matrix)]):
        law, lost = op.pair_law(matrix[x], matrix[z])
        kept = op.power_law(law, k) if law else []
        total = sum((mpf(v) for v in matrix[x]), mpf(0))
        truth = op.delta_of(kept, t) + total**k - (total - lost) ** k
        # Rows of rounded numbers do not sum to one exactly.
        assert truth <= mpf(found.upper) * (1 + mpf(10) ** -14)
    level = profile.epsilon(0.05)
    assert 0.0 <= level.lower <= level.upper
    if level.upper < math.inf:
        assert profile.delta(level.upper * (1 + 1e-12)).lower <= 0.05
    if 0.0 < level.lower < math.inf:
        assert profile.delta(level.lower * (1 - 1e-12)).upper >= 0.05


def test_infinite_losses():
    profile = PrivacyProfile.from_epsilon_delta(0.5, 1e-6).self_compose(1000)
    lost = 1 - (1 - mpf(1e-6)) ** 1000
    assert profile.epsilon(1e-4) == fp.Bracket(math.inf, math.inf)
    holds(profile.delta(500.1), lost, 1e-12)
    pairs = [
        (mpf("0.5") * g, q * (1 - mpf(1e-6)) ** 1000) for g, q in op.composed_response(2, 0.5, 1000)
    ]
    holds(profile.delta(200.0), op.delta_of(pairs, 200.0) + lost, 1e-9)
    holds(profile.epsilon(0.01), op.epsilon_of(pairs, mpf(0.01) - lost), 1e-9)
    coin = PrivacyProfile.from_epsilon_delta(0.0, 0.25, relation="replace-one")
    assert coin.epsilon([0.2, 0.3]).upper.tolist() == [math.inf, 0.0]
    holds(coin.self_compose(10**6).compose(response(2, 1.0)).delta(0.5), mpf(1))
    holds(coin.compose(response(2, 1.0)).delta(0.5), 0.25 + 0.75 * op.response_delta(2, 1, 1, 0.5))
    shown = PrivacyProfile.from_epsilon_delta(1.0, 1.0, relation="replace-one")
    shown = shown.compose(response(3, 0.5))
    assert shown.delta(3.0) == fp.Bracket(1.0, 1.0)
    assert shown.epsilon(1 - 2**-53) == fp.Bracket(math.inf, math.inf)
    open_ = PrivacyProfile.of(np.eye(2))
    for found in (open_.delta(700.0), open_.self_compose(5).delta(0.0)):
        assert 1 - 1e-14 < found.lower <= found.upper == 1.0
    assert open_.epsilon([0.5, 1.0]).upper.tolist() == [math.inf, 0.0]


def test_ratios_beyond_the_range_of_a_double():
    """Finite ratios that overflow, beside infinite ones."""
    for matrix in (
        [[1 - 1e-3, 1e-3], [1.0, 1e-320]],
        [[0.5, 0.25, 0.25], [1.0, 1e-320, 0.0]],
        [[0.5, 0.3, 0.2], [1.0, 1e-320, 1e-310]],
    ):
        plain = fp.Channel(matrix).matrix()
        profile = PrivacyProfile.of(matrix)
        with mp.workdps(700):
            for t in (0.0, 1.0, 600.0, 708.0, 712.0, 725.0):
                holds(profile.delta(t), o.hockey_stick(plain, [2], t))
        assert profile.epsilon(0.3).upper < math.inf
        assert profile.self_compose(3).delta(700.0).upper <= 1.0


def pair_epsilon(P, Q, k, delta):
    """Epsilon at a delta of one pair of laws, the same in all releases; from below."""
    return DiscreteCurve([(pair_measure(P, Q, (0.0, 0.0)), k)], up=False).epsilon(delta)[0]


def test_a_large_matrix():
    """Many pairs of neighbours, thousands of lines: the same curve as pair by pair."""
    matrix = np.random.default_rng(8).dirichlet(np.full(40, 0.4), 64)
    channel = fp.Channel(matrix, [2] * 6)
    profile = PrivacyProfile.of(channel)
    for t in (0.0, 0.4, 1.5, 4.0):
        found = profile.delta(t)
        assert found.upper == pytest.approx(fp.hockey_stick(channel, t), rel=1e-12)
        assert found.width <= 1e-12
    found = profile.self_compose(50).epsilon(1e-8)
    assert found.upper - sides(profile.self_compose(50))[0].epsilon(1e-8)[0] <= 1e-4 * found.upper


def test_pure_levels_and_counts_beyond_sense():
    """The largest loss of all pairs, though its delta underflows; no warnings."""
    channel = fp.Channel([[0.6, 0.4], [0.5, 0.5], [0.9999, 1e-4]])
    found = PrivacyProfile.of(channel).self_compose(10**4).epsilon(0.0)
    holds(found, 10**4 * mp.log(mpf(0.5) / mpf(1e-4)), 1e-9)
    for tiny in (1e-300, 1e-12):
        profile = PrivacyProfile.of([[1.0, tiny], [1.0, 0.5 * tiny]]).self_compose(10**90)
        assert profile.epsilon(0.0).lower > 0.0


@pytest.mark.slow
def test_the_best_of_many_pairs():
    """Some pairs are picked, and no other does much better."""
    channel = fp.Channel(np.random.default_rng(8).dirichlet(np.full(4, 0.6), 8), [2] * 3)
    matrix, pairs = channel.matrix(), o.neighbour_pairs([2] * 3)
    for k, delta in ((2, 1e-3), (8, 1e-6), (8, 0.3), (100, 1e-9)):
        found = PrivacyProfile.of(channel).self_compose(k).epsilon(delta)
        best = max(pair_epsilon(matrix[x], matrix[z], k, delta) for x, z in pairs)
        assert best * (1 - 0.05) <= found.lower <= best * (1 + 1e-4)
        if k == 2:
            truth = op.worst_delta([(matrix, k)], pairs, found.lower)
            assert truth >= delta * (1 - 1e-12)


def test_nothing_is_released():
    for profile in (
        response(3, 1.0).self_compose(0),
        response(1, 1.0),
        response(5, 0.0).self_compose(10**6),
        PrivacyProfile.of([[0.5, 0.5], [0.5, 0.5]]),
        PrivacyProfile.of([[1.0]]).self_compose(7),
        PrivacyProfile.of(fp.HammingChannel(3, 1, 2.0)),
    ):
        assert profile.delta(0.0) == profile.epsilon(0.0) == profile.epsilon(0.5)
        assert profile.delta(0.0) == fp.Bracket(0.0, 0.0)


def test_pure_level_of_many():
    found = response(3, 0.1).self_compose(1000).epsilon(0.0)
    holds(found, 1000 * mpf(0.1), 1e-14)
    assert response(2, 0.4).epsilon(0.0).upper >= 0.4


@pytest.mark.slow
def test_heterogeneous_lists():
    rng = np.random.default_rng(4)
    profile = response(2, 0.0)
    for eps in rng.uniform(0.05, 0.6, 25):
        profile = profile.compose(response(3, eps))
    found = profile.epsilon(1e-8)
    assert found.width <= 1e-5 * found.upper
    # The order must not matter.
    back = response(2, 0.0)
    for eps in np.random.default_rng(4).uniform(0.05, 0.6, 25)[::-1]:
        back = response(3, eps).compose(back)
    again = back.epsilon(1e-8)
    assert again.lower <= found.upper
    assert found.lower <= again.upper


def test_shapes_and_words():
    profile = response(2, 1.0).self_compose(3)
    assert isinstance(profile.delta(0.5), fp.Bracket)
    assert isinstance(profile.delta([0.5, 1]), fp.Brackets)
    words = "3 x randomised response, 2 values, epsilon 1"
    assert repr(profile) == f"PrivacyProfile({words}; relation='replace-one')"
    for wrong in (-1.0, math.nan, math.inf, "1", None, [[0.1]]):
        with pytest.raises(fp.InvalidInput):
            profile.delta(wrong)
    for wrong in (-1e-9, 1.5, math.nan, "x", [2.0]):
        with pytest.raises(fp.InvalidInput):
            profile.epsilon(wrong)
    for wrong in (-1, 0.5, "2", True):
        with pytest.raises(fp.InvalidInput):
            profile.self_compose(wrong)
    with pytest.raises(fp.InvalidInput):
        profile.compose(0.5)
    with pytest.raises(fp.InvalidInput):
        response(2, math.inf)
    with pytest.raises(fp.InvalidInput):
        PrivacyProfile.from_epsilon_delta(1.0, 1.5)


@pytest.mark.parametrize(("n", "epsilon"), [(20, 0.5), (100, 0.5), (100, 1.0), (50, 3.0)])
def test_losses_that_are_equal_but_for_rounding(n, epsilon):
    """A count with geometric noise has two losses, which sums of its chances blur."""
    channel = fp.mechanisms.GeometricCount(n, epsilon).channel()
    profile = PrivacyProfile.of(channel)
    for delta in (1e-9, 1e-6, 1e-3, 0.05):
        truth = fp.hockey_stick_epsilon(channel, delta)
        found, twice = profile.epsilon(delta), profile.self_compose(2).epsilon(delta)
        assert found.lower <= truth * (1 + 1e-12)
        assert found.upper >= truth * (1 - 1e-12)
        assert found.width <= 1e-9 * truth
        assert truth <= twice.upper <= 2 * epsilon * (1 + 1e-11)
        assert profile.self_compose(2).delta(twice.upper).lower <= delta
