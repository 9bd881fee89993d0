"""Privacy profiles against 80-digit sums over all losses."""

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
from fastpriv.accounting.profile import attained as _attained
from fastpriv.accounting.profile import bounds as _bounds
from fastpriv.accounting.profile.curve import Curve
from oracles import disclosure as od
from oracles import profile as op

response = PrivacyProfile.randomised_response


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(op.DIGITS):
        yield  # enough for sums of positive terms; differences near a corner are clipped there


def holds(bracket, truth, width=None):
    """The bracket contains the truth and is at most so wide, relatively."""
    assert mpf(bracket.lower) <= truth <= mpf(bracket.upper), (bracket, truth)
    if width is not None:
        assert bracket.upper - bracket.lower <= width * bracket.upper, (bracket, truth)


# theory.md's 80-digit values of 4-ary randomised response at 0.5, and one of ours at a million.
@pytest.mark.parametrize(
    ("k", "delta", "epsilon"),
    [
        (100, 1e-6, 23.4674670330556),
        (100, 1e-14, 33.1864818604555),
        (1000, 1e-6, 124.340019018036),
        (1000, 1e-14, 157.682916784456),
    ],
)
def test_reference_values(k, delta, epsilon):
    found = response(4, 0.5).self_compose(k).epsilon(delta)
    assert found.midpoint == pytest.approx(epsilon, rel=1e-14)
    holds(found, op.response_epsilon(4, 0.5, k, delta), 1e-9)


@pytest.mark.parametrize("m", [2, 3, 4, 1000])
@pytest.mark.parametrize("eps", [1e-8, 0.01, 0.5, 3.0, 40.0, 700.0])
@pytest.mark.parametrize("k", [1, 2, 7, 300])
def test_response_lattice(m, eps, k):
    profile = response(m, eps).self_compose(k)
    pairs = [(mpf(eps) * g, q) for g, q in op.composed_response(m, eps, k)]
    for delta in (1e-300, 1e-100, 1e-14, 1e-6, 0.01, 0.3, 0.9):
        found = profile.epsilon(delta)
        holds(found, op.epsilon_of(pairs, mpf(delta)), 1e-9)
    for share in (0.0, 0.01, 0.2, 0.5, 0.77, 0.99):
        t = share * k * eps
        truth = op.delta_of(pairs, t)
        found = profile.delta(t)
        holds(found, truth, 1e-9 if truth > 1e-300 else None)
    assert profile.delta(k * eps * (1 + 1e-15)) == fp.Bracket(0.0, 0.0)


def test_a_million_releases():
    profile = response(4, 0.5).self_compose(10**6)
    # Computed once with the recurrence in 80 digits.
    for delta, epsilon in REFERENCE:
        holds(profile.epsilon(delta), mpf(epsilon), 1e-9)
    for level in profile.epsilon([delta for delta, _ in REFERENCE]).upper:
        found = profile.delta(level)
        assert found.width <= 1e-9 * found.upper


REFERENCE = [
    (1e-300, "83493.98059472924788816081732073879433356"),
    (1e-100, "77657.18125163380287503920888383332099706"),
    (1e-14, "72610.041320904383448780341764286115153"),
    (1e-3, "70919.25777406593347401596281947945095007"),
]


@pytest.mark.parametrize(
    ("m", "eps", "k"), [(10**5, 0.36, 18), (10**5, 5e-7, 18), (10**9, 2.0, 40)]
)
def test_rare_large_losses(m, eps, k):
    """Losses that hardly ever occur ask for a large tilt."""
    profile = response(m, eps).self_compose(k)
    pairs = [(mpf(eps) * g, q) for g, q in op.composed_response(m, eps, k)]
    for share in (0.0, 0.05, 0.3, 0.65, 0.9):
        truth = op.delta_of(pairs, share * k * eps)
        holds(profile.delta(share * k * eps), truth, 1e-9 if truth > 1e-300 else None)
    for delta in (1e-290, 1e-60, 1e-9):
        holds(profile.epsilon(delta), op.epsilon_of(pairs, mpf(delta)), 1e-9)


def test_what_underflows_is_not_zero():
    found = response(10**5, 7e-5).self_compose(1000).delta(0.0699)  # about 1e-5000
    assert found.lower == 0.0 < found.upper < 1e-300


@pytest.mark.parametrize(
    "mixture",
    [
        [(2, 0.5, 20), (4, 0.3, 15)],
        [(3, 1.0, 12), (2, 0.5, 12)],
        [(2, 0.1, 6), (2, 0.25, 5), (5, 1.7, 4)],
        [(2, 1e-6, 20), (2, 5.0, 3)],
    ],
    ids=str,
)
def test_mixtures_of_epsilons(mixture):
    profile = response(2, 0.0)
    laws = []
    for m, eps, k in mixture:
        profile = profile.compose(response(m, eps).self_compose(k))
        laws.append(op.power_law(op.response_law(m, eps), k))
    pairs = op.convolved(laws)
    top = sum(eps * k for _, eps, k in mixture)
    for delta in (1e-200, 1e-14, 1e-6, 0.01, 0.4):
        holds(profile.epsilon(delta), op.epsilon_of(pairs, mpf(delta)), 1e-9)
    for share in (0.0, 0.1, 0.5, 0.9):
        holds(profile.delta(share * top), op.delta_of(pairs, share * top), 1e-9)


@pytest.mark.parametrize("tiny", [1e-290, 1e-100, 1e-30, 1e-16, 1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("k", [1, 20])
def test_a_tiny_epsilon_beside_a_large_one(tiny, k):
    """The tilt that suits the tiny one makes all terms of the other underflow: no zero delta."""
    profile = response(2, 0.5).compose(response(2, tiny).self_compose(k))
    laws = [op.response_law(2, 0.5), op.power_law(op.response_law(2, tiny), k)]
    with mp.workdps(400):
        pairs = op.convolved(laws)
        for delta in (1e-9, 1e-6, 1e-3):
            holds(profile.epsilon(delta), op.epsilon_of(pairs, mpf(delta)), 1e-6)
        for t in (0.0, 0.25, 0.49999):
            holds(profile.delta(t), op.delta_of(pairs, t), 1e-6)


def test_tilting_again_until_it_helps_no_more():
    mixture = [(1000, 0.5, 20), (3, 1e-9, 1), (10**6, 378.0, 2)]
    profile = response(2, 0.0).compose(*(response(m, e).self_compose(k) for m, e, k in mixture))
    pairs = op.convolved([op.power_law(op.response_law(m, e), k) for m, e, k in mixture])
    holds(profile.epsilon(2e-135), op.epsilon_of(pairs, mpf(2e-135)), 1e-9)


def test_totals_do_not_grow():
    """A lower bound of total 1 + 6e-16 would be 1 + 2e-11 after 30,000 releases."""
    excess = 1e-4
    matrix = fp.Channel([[0.5 + excess, 0.5 - excess], [0.5 - excess, 0.5 + excess]]).matrix()
    (atom,) = PrivacyProfile.of(matrix)._parts
    for measure, sign in ((atom.lower, -1), (atom.upper, 1)):
        total = sum(mp.exp(mpf(str(x))) for x in measure.logs) + mpf(measure.infinite)
        assert sign * (total - 1) >= -len(measure.logs) * mpf(2) ** -62
    level = mp.log(mpf(matrix[0, 0]) / mpf(matrix[0, 1]))
    pairs = [(level * g, q) for g, q in op.composed_response(2, level, 30_000)]
    holds(PrivacyProfile.of(matrix).self_compose(30_000).delta(0.0), op.delta_of(pairs, 0), 1e-9)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e10, 1e300, 1.7e308])
def test_levels_beyond_arithmetic(epsilon):
    for m, k in ((1, 5), (2, 1), (3, 3), (3, 1000)):
        profile = response(m, epsilon).self_compose(k)
        for other in (profile, profile.compose(response(2, 0.5))):
            found = other.epsilon(0.0)
            assert found.lower <= min(k * mpf(epsilon), mpf(1.7e308)) * (m > 1) + 1
            assert found.upper >= min(k * mpf(epsilon), mpf(1.7e308)) * (m > 1)
            assert other.delta(0.0).upper >= (0.3 if m > 1 and epsilon > 1 else 0.0)
            assert other.epsilon(1e-6).upper >= (epsilon * (m > 1) > 1) * epsilon
    with pytest.raises(fp.InvalidInput, match="releases of a kind"):
        response(2, 0.5).self_compose(10**400)


def test_one_release_fits_its_own_delta():
    for epsilon, delta in ((1.0, 1e-6), (0.1, 0.3), (0.0, 1e-9), (700.0, 1e-300)):
        one = PrivacyProfile.from_epsilon_delta(epsilon, delta)
        assert one.epsilon(delta) == fp.Bracket(epsilon, epsilon)
        assert one.epsilon(math.nextafter(delta, 0.0)) == fp.Bracket(math.inf, math.inf)


def random_channel(seed, rows=3, outputs=4):
    return np.random.default_rng(seed).dirichlet(np.ones(outputs), rows)


@pytest.mark.parametrize("seed", range(6))
def test_channels_one_release(seed):
    matrix = fp.Channel(random_channel(seed)).matrix()
    profile = PrivacyProfile.of(matrix)
    for t in (0.0, 0.1, 0.7, 2.0, 5.0):
        holds(profile.delta(t), od.hockey_stick(matrix, [3], t))
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
    parts = [(atom, k) for profile in profiles for atom, k in profile._parts.items()]
    return [Curve([(a.upper if up else a.lower, k) for a, k in parts], up) for up in (False, True)]


@pytest.mark.parametrize("seed", range(3))
def test_grid_contains_what_lists_find(seed, monkeypatch):
    releases = (
        PrivacyProfile.of(random_channel(seed)).self_compose(8),
        response(3, 0.7).self_compose(9),
    )
    monkeypatch.setattr(_bounds, "_LISTED", 1 << 20)
    fine = sides(*releases)
    exact = {d: [curve.epsilon(d) for curve in fine] for d in (1e-200, 1e-12, 1e-3, 0.3)}
    monkeypatch.setattr(_bounds, "_LISTED", 0)
    rough = sides(*releases)
    for delta, (low, high) in exact.items():
        assert low * (1 - 1e-3) <= rough[0].epsilon(delta) <= high
        assert low <= rough[1].epsilon(delta) <= high * (1 + 1e-3)


def test_grid_of_lopsided_losses():
    """Many losses that all round the same way: their sum is far from that of their points."""
    P, Q = [0.14, 0.456, 0.179, 0.225], [0.078, 0.187, 0.337, 0.398]
    measure = _attained.pair_measure(np.array(P), np.array(Q), 0.0)
    low, high = (Curve([(measure, 2 * 10**4)], up).epsilon(1e-9) for up in (False, True))
    assert low <= high <= low * (1 + 1e-4)


@pytest.mark.parametrize("k", [50, 10**4])
def test_grid_contains_the_lattice(k, monkeypatch):
    """The grid alone, on releases whose exact curve is known."""

    def refuse(*args, **kwargs):
        raise _bounds.TooMany

    releases = response(4, 0.5).self_compose(k), response(2, 0.21).self_compose(k // 2)
    truth = {d: releases[0].compose(releases[1]).epsilon(d) for d in (1e-250, 1e-4)}
    monkeypatch.setattr("fastpriv.accounting.profile.curve.listed", refuse)
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


def structured():
    space = fp.Space.hamming(3, 2)
    count = space.rows(np.arange(8)).sum(axis=1)
    kernel = np.random.default_rng(1).dirichlet(np.ones(4), 4)
    yield fp.QueryChannel(count, kernel, space)
    yield fp.ProductChannel([random_channel(1), random_channel(2, 2, 3)])
    yield fp.TiltedChannel(fp.Dense([0.4, 0.3, 0.2, 0.1], [2, 2]), 1.0)
    yield fp.PosteriorChannel(fp.Product([[0.6, 0.4], [0.3, 0.7]]), 1.0)
    yield fp.solve_pd_dp(fp.Exchangeable.beta_binomial(3, 0.5, 0.8), 0.6).channel


@pytest.mark.parametrize("channel", [*structured()], ids=repr)
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
    (atom,) = PrivacyProfile.of(matrix)._parts
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
        truth = od.hockey_stick(matrix, [len(matrix)], t)
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
    coin = PrivacyProfile.from_epsilon_delta(0.0, 0.25)
    assert coin.epsilon([0.2, 0.3]).upper.tolist() == [math.inf, 0.0]
    holds(coin.self_compose(10**6).compose(response(2, 1.0)).delta(0.5), mpf(1))
    holds(coin.compose(response(2, 1.0)).delta(0.5), 0.25 + 0.75 * op.response_delta(2, 1, 1, 0.5))
    shown = PrivacyProfile.from_epsilon_delta(1.0, 1.0).compose(response(3, 0.5))
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
                holds(profile.delta(t), od.hockey_stick(plain, [2], t))
        assert profile.epsilon(0.3).upper < math.inf
        assert profile.self_compose(3).delta(700.0).upper <= 1.0


def pair_epsilon(P, Q, k, delta):
    """Epsilon at a delta of one pair of laws, the same in all releases; from below."""
    return Curve([(_attained.pair_measure(P, Q, 0.0), k)], up=False).epsilon(delta)


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
    assert found.upper - sides(profile.self_compose(50))[0].epsilon(1e-8) <= 1e-4 * found.upper


def test_pure_levels_and_counts_beyond_sense():
    """The largest loss of all pairs, though its delta underflows; no warnings."""
    channel = fp.Channel([[0.6, 0.4], [0.5, 0.5], [0.9999, 1e-4]])
    found = PrivacyProfile.of(channel).self_compose(10**4).epsilon(0.0)
    holds(found, 10**4 * mp.log(mpf(0.5) / mpf(1e-4)), 1e-9)
    for tiny in (1e-300, 1e-12):
        profile = PrivacyProfile.of([[1.0, tiny], [1.0, 0.5 * tiny]]).self_compose(10**90)
        assert profile.epsilon(0.0).lower > 0.0


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
    assert repr(profile) == "PrivacyProfile(3 releases of 1 kinds)"
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
    weights = _thresholds.LawThresholds(channel.matrix()).weights.tolist()
    assert all(sum(row) == 2**64 for row in weights)
    laws = [[mpf(w) / 2**64 for w in row] for row in weights]
    found = PrivacyProfile.realised(channel).delta(t)
    ratio = mp.exp(t)
    truth = max(
        sum(max(a - ratio * b, 0) for a, b in zip(p, q, strict=True)) for p in laws for q in laws
    )
    holds(found, truth)
    assert found.width <= 1e-13


def test_realised_profiles_of_structured_channels():
    """E_d is drawn at its level or below; others nearly as they are."""
    for channel in (*structured(), fp.HammingChannel(5, 3, 0.5)):
        drawn, plain = (f(channel) for f in (PrivacyProfile.realised, PrivacyProfile.of))
        for t in (0.0, 0.3):
            mine, nominal = drawn.delta(t), plain.delta(t)
            assert mine.upper == pytest.approx(nominal.upper, abs=1e-12)
        assert drawn.epsilon(0.0).upper >= fp.realised_level(channel) * (1 - 1e-13)
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
