"""Shuffled local randomisers against all histograms of small databases."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.accounting.profile.steps import shuffling as engine
from fastpriv.accounting.profile.steps.shuffling import Excess, Variable
from fastpriv.errors import InvalidInput, TooLarge

shuffled = fp.accounting.shuffled


def histograms(rows: list[list[Fraction]]) -> Counter:
    """Law of the histogram of independent outputs, one law each."""
    law: Counter = Counter()
    for outputs in product(range(len(rows[0])), repeat=len(rows)):
        chance = math.prod(
            (row[y] for row, y in zip(rows, outputs, strict=True)), start=Fraction(1)
        )
        law[tuple(sorted(outputs))] += chance
    return law


def hockey_stick(p: Counter, q: Counter, t: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        factor = mpmath.exp(mpmath.mpf(t))
        parts = []
        for key in p:
            a, b = (mpmath.mpf(x.numerator) / x.denominator for x in (p[key], q[key]))
            parts.append(max(a - factor * b, mpmath.mpf(0)))
        return mpmath.fsum(parts)


def exact(laws: list[list[Fraction]], n: int, t: float) -> tuple[float, float]:
    """Largest delta over all neighbours, and over those whose other people are all alike."""
    best = alike = mpmath.mpf(0)
    for x, other in permutations(range(len(laws)), 2):
        for rest in combinations_with_replacement(range(len(laws)), n - 1):
            shown = [laws[z] for z in rest]
            value = hockey_stick(
                histograms([laws[x], *shown]), histograms([laws[other], *shown]), t
            )
            best = max(best, value)
            if len(set(rest)) <= 1:
                alike = max(alike, value)
    return best, alike


@st.composite
def randomisers(draw: st.DrawFn) -> list[list[Fraction]]:
    k, m = draw(st.integers(2, 3)), draw(st.integers(2, 3))
    counts = st.lists(st.integers(0, 8), min_size=m, max_size=m).filter(any)
    # Powers of two, so that doubles hold the laws.
    laws = []
    for _ in range(k):
        row = draw(counts)
        row[draw(st.integers(0, m - 1))] += 32 - sum(row)
        laws.append([Fraction(value, 32) for value in row])
    return laws


@pytest.mark.search(every=10)
@settings(max_examples=40, deadline=None)
@given(randomisers(), st.integers(1, 4), st.sampled_from([0.0, 1e-3, 0.3, 1.0, 2.5]))
def test_brackets_hold_the_truth_of_small_databases(laws, n, t):
    best, alike = exact(laws, n, t)
    found = shuffled([[float(p) for p in row] for row in laws], n).delta(t)
    assert found.lower <= best <= found.upper
    # Other people who are all alike attain the lower end.
    assert abs(found.lower - alike) <= 1e-13
    if n == 1:
        assert abs(found.upper - best) <= 1e-13


@pytest.mark.slow(but=["0.0-65", "0.05-65", "0.5-65"])
@pytest.mark.parametrize("n", [65, 200, 500])
@pytest.mark.parametrize("t", [0.0, 0.05, 0.5])
def test_two_values_against_binomial_sums(n, t):
    """The blanket of binary response: three values, two of them with equal chances, in mpmath."""
    with mpmath.workdps(40):
        factor = mpmath.exp(mpmath.mpf(t))
        gain, loss = 3 - factor, 3 * factor - 1
        total = mpmath.mpf(0)
        for shown in range(1, n + 1):  # outputs under the blanket, half of them of either kind
            first = int(mpmath.floor(shown * loss / (gain + loss))) + 1
            weight = mpmath.mpf(math.comb(n, shown)) / 2 ** (n + shown)
            best = mpmath.mpf(math.comb(shown, first)) if first <= shown else mpmath.mpf(0)
            inner = mpmath.mpf(0)
            for i in range(first, shown + 1):
                inner += best * (i * gain - (shown - i) * loss)
                best = best * (shown - i) / (i + 1)
            total += weight * inner
        truth = total / n
    result = shuffled([[0.75, 0.25], [0.25, 0.75]], n).delta(t)
    # Up to 300 people all sums are listed. Beyond, the contour blurs them by a normal number of
    # deviation eta, which adds at most eta E[phi(S/eta)]: 1e-6 where S = 0 is an atom.
    width = 1e-10 if n <= 200 else 2e-6
    assert truth <= result.upper <= truth * (1 + mpmath.mpf(width))


def rows_of(k: int, odds: int) -> list[list[Fraction]]:
    """k-ary response of the level ln(odds), in rational numbers."""
    return [[Fraction(odds if x == y else 1, odds + k - 1) for y in range(k)] for x in range(k)]


def counted(rows: list[list[Fraction]]) -> dict[tuple[int, ...], Fraction]:
    """Law of the histogram of independent outputs, person by person."""
    law = {(0,) * len(rows[0]): Fraction(1)}
    for row in rows:
        step: Counter = Counter()
        for histogram, chance in law.items():
            for y, p in enumerate(row):
                step[(*histogram[:y], histogram[y] + 1, *histogram[y + 1 :])] += chance * p
        law = step
    return law


def test_published_code_is_below_what_is_attained():
    """4-ary response of level ln 4, 8 people, at ln 3: 7067/7^8 has been reported."""
    laws = rows_of(4, 4)
    deltas = {}
    for rest in ((2,) * 7, (0,) * 7, (0,) * 6 + (2,)):
        others = [laws[x] for x in rest]
        p, q = counted([laws[0], *others]), counted([laws[1], *others])
        deltas[rest] = sum(max(p[h] - 3 * q[h], Fraction(0)) for h in p)
    assert list(deltas.values()) == [Fraction(n, 7**8) for n in (11883, 16384, 20480)]
    reported = Fraction(7067, 7**8)
    assert reported < min(deltas.values())
    result = shuffled(fp.HammingChannel(1, 4, math.log(4.0)), 8).delta(math.log(3.0))
    assert abs(result.lower - Fraction(16384, 7**8)) < 1e-14
    assert result.lower < max(deltas.values()) < result.upper


def rounds(laws: list[list[Fraction]], n: int, times: int, t: float) -> mpmath.mpf:
    """Largest delta of several rounds among neighbours, the same in all of them."""
    best = mpmath.mpf(0)
    for x, other in permutations(range(len(laws)), 2):
        for rest in combinations_with_replacement(range(len(laws)), n - 1):
            others = [laws[z] for z in rest]
            p, q = counted([laws[x], *others]), counted([laws[other], *others])
            keys = list(product(p, repeat=times))
            both = [
                Counter({key: math.prod((law[h] for h in key), start=Fraction(1)) for key in keys})
                for law in (p, q)
            ]
            best = max(best, hockey_stick(*both, t))
    return best


@pytest.mark.parametrize(
    "laws",
    [
        [[24, 8], [8, 24]],
        [[24, 8], [4, 28]],
        [[16, 8, 8], [8, 24, 0]],
        [[0, 16, 16], [16, 0, 16]],
        [[24, 4, 4], [4, 24, 4], [2, 10, 20]],
    ],
)
def test_rounds_against_all_histograms(laws):
    """Two rounds of three people: asymmetric laws, zeros, and no blanket."""
    fractions = [[Fraction(value, 32) for value in row] for row in laws]
    profile = shuffled([[value / 32 for value in row] for row in laws], 3).self_compose(2)
    for t in (0.0, 0.4, 1.5):
        truth, result = rounds(fractions, 3, 2, t), profile.delta(t)
        assert result.lower <= truth <= result.upper
        assert result.lower >= 0.5 * truth


@pytest.mark.slow
def test_rounds_of_many_people_compose_like_normal_noise():
    """Many people: the central limit, with a mu read off one round."""
    one = shuffled(fp.HammingChannel(1, 16, 4.0), 10**7)
    mu = one.delta(0.0).upper * math.sqrt(2.0 * math.pi)
    result = one.self_compose(100).epsilon(1e-6)
    normal = fp.accounting.PrivacyProfile.gaussian(1.0 / (10.0 * mu)).epsilon(1e-6)
    assert result.width < 4e-3 * result.upper
    assert result.lower < normal.upper * 1.001
    assert result.upper > normal.upper * 0.999


def test_composes_with_noise_and_other_shufflers_and_is_written():
    of = fp.accounting.PrivacyProfile
    first = shuffled([[0.75, 0.25], [0.25, 0.75]], 50)
    other = shuffled([[0.6, 0.4], [0.1, 0.9]], 50)
    noise = of.gaussian(3.0).with_relation("replace-one")
    together = first.compose(noise, other)
    level = together.epsilon(1e-4)
    for part in (first, noise, other, first.compose(noise)):
        assert part.epsilon(1e-4).lower <= level.upper
    assert level.upper < sum(part.epsilon(3e-5).upper for part in (first, noise, other))
    assert level.lower >= max(part.epsilon(1e-4).lower for part in (first, noise, other))
    again = of.from_json(together.to_json())
    assert again == together
    assert again.epsilon(1e-4) == level
    with pytest.raises(InvalidInput, match="do not compose"):
        first.compose(of.gaussian(1.0, relation="add-or-remove"))
    with pytest.raises(InvalidInput, match="for noise on a sum"):
        first.poisson_subsampled(0.5)


def test_asked_in_other_words():
    """Errors of tests and Renyi divergences follow from the curve and from the measures."""
    profile = shuffled([[0.75, 0.25], [0.25, 0.75]], 1)
    plain = fp.accounting.PrivacyProfile.of([[0.75, 0.25], [0.25, 0.75]])
    assert profile.tradeoff(0.1).lower == pytest.approx(plain.tradeoff(0.1).lower, rel=1e-9)
    for order in (1.5, 8.0):
        a, b = profile.renyi_level(order), plain.renyi_level(order)
        assert a.lower <= b.upper
        assert b.lower <= a.upper
        assert a.width < 1e-2 * a.upper


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-30.0, 30.0), min_size=1, max_size=3),
    st.lists(st.floats(0.01, 0.3), min_size=3, max_size=3),
    st.integers(1, 12),
)
def test_the_contour_and_the_list_agree(values, chances, n):
    values = [*values, 1.0]
    variable = Variable(
        np.array(values), np.array([*chances, 0.05][: len(values)]), np.zeros(len(values)), 0.0
    )
    listed = Excess(variable, n)
    listed.refine()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "is_short", lambda kinds, n: False)
        line = Excess(variable, n)
        for _ in range(3):
            line.refine()
    low, high = listed.bounds
    assert low <= high
    assert high - low <= 1e-12 * high + 1e-300
    assert line.bounds[0] <= high
    assert low <= line.bounds[1]
    assert low <= line.chernoff


@pytest.mark.slow
def test_k_ary_response_of_many_people():
    found = shuffled(fp.HammingChannel(1, 16, 4.0), 10**5).epsilon(1e-6)
    assert found.lower == pytest.approx(0.1047066582, abs=2e-10)
    assert found.upper == pytest.approx(0.1047067635, abs=2e-10)


@pytest.mark.slow
def test_three_rows_stand_for_k_ary_response():
    channel = fp.HammingChannel(1, 6, 1.5)
    for n in (3, 70, 5000):
        short, long = shuffled(channel, n), shuffled(fp.Channel(channel.matrix()), n)
        for t in (0.0, 0.02, 0.4):
            a, b = short.delta(t), long.delta(t)
            assert a.lower == pytest.approx(b.lower, rel=1e-6)
            assert a.upper == pytest.approx(b.upper, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("t", [1e-6, 0.05, 0.7])
def test_more_people_hide_better(t):
    profiles = [shuffled(fp.HammingChannel(1, 4, 2.0), n) for n in (1, 2, 7, 64, 65, 300, 10**5)]
    deltas = [profile.delta(t) for profile in profiles]
    for more, fewer in zip(deltas[1:], deltas, strict=False):
        assert more.upper <= fewer.upper * (1.0 + 1e-8)
        assert more.lower <= fewer.upper


@pytest.mark.slow(but=["1", "5"])
@pytest.mark.parametrize("n", [1, 5, 100, 10**6])
def test_levels_invert_deltas(n):
    profile = shuffled([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.6, 0.2]], n)
    level = profile.epsilon(1e-5)
    assert level.lower <= level.upper
    assert profile.delta(level.upper).upper <= 1e-5 * (1.0 + 1e-8)
    if level.lower > 0.0:
        assert profile.delta(level.lower).lower >= 1e-5 * (1.0 - 1e-8)


@pytest.mark.parametrize("n", [1, 10, 10**9])
def test_one_person_and_no_blanket(n):
    """Without a blanket shuffling is not seen to help from above."""
    apart = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    found = shuffled(apart, n).delta(0.3)
    assert found.upper == pytest.approx(fp.hockey_stick(apart, 0.3), rel=1e-12)
    assert shuffled(apart, n).epsilon(1e-3).upper == math.inf


def test_everything_shown():
    profile = shuffled(np.eye(3), 1000)
    assert profile.delta(5.0).upper == 1.0
    assert profile.delta(5.0).lower >= 1.0 - 1e-11
    assert profile.epsilon(0.5).lower == math.inf
    assert profile.delta(1e6).lower >= 1.0 - 1e-11


def test_nothing_shown():
    for channel in ([[0.5, 0.5], [0.5, 0.5]], [[1.0], [1.0]], [[0.3, 0.7]]):
        for n in (1, 100, 10**9):
            profile = shuffled(channel, n)
            assert profile.delta(0.0).upper == 0.0 == profile.epsilon(0.0).upper
            assert profile.epsilon(1e-9).upper == 0.0


@pytest.mark.slow(but=["1-1e-08", "1-0.001", "1-30.0"])
@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 30.0, 500.0])
@pytest.mark.parametrize("n", [1, 50, 1000, 10**9])
def test_extreme_randomisers(epsilon, n):
    profile = shuffled(fp.HammingChannel(1, 5, epsilon), n)
    for t in (0.0, 0.5 * epsilon, epsilon * 1.01):
        found = profile.delta(t)
        assert 0.0 <= found.lower <= found.upper <= 1.0
    assert profile.delta(1.01 * epsilon).upper == 0.0
    assert profile.epsilon(0.0).upper == pytest.approx(epsilon, rel=1e-12, abs=1e-14)
    level = profile.epsilon(1e-6)
    assert 0.0 <= level.lower <= level.upper <= epsilon * (1.0 + 1e-12) + 1e-14


@pytest.mark.slow
def test_tiny_deltas():
    profile = shuffled(fp.HammingChannel(1, 8, 3.0), 10_000)
    for delta in (1e-30, 1e-200):
        level = profile.epsilon(delta)
        # Both ends are known to ten digits, as deltas show; what is between them is what the
        # blanket allows and no database with others who are all alike attains.
        assert level.width <= (3e-4 if delta == 1e-30 else 5e-3) * level.upper
        assert profile.delta(level.upper).upper == pytest.approx(delta, rel=1e-6)
        assert profile.delta(level.lower).lower == pytest.approx(delta, rel=1e-6)
    assert len(profile.delta([0.1, 0.2])) == 2


@pytest.mark.parametrize("n", [0, -1, 1.5, True, 10**13])
def test_bad_numbers_of_people(n):
    with pytest.raises(InvalidInput, match="n must be"):
        shuffled(fp.HammingChannel(1, 2, 1.0), n)


def test_bad_randomisers_and_levels():
    with pytest.raises(InvalidInput, match="on one record"):
        shuffled(fp.HammingChannel(2, 2, 1.0), 10)
    with pytest.raises(InvalidInput):
        shuffled([[0.5, 0.6], [0.5, 0.5]], 10)
    with pytest.raises(TooLarge, match="too many triples"):
        shuffled(fp.Channel(np.full((300, 300), 1 / 300)), 10)
    profile = shuffled(fp.HammingChannel(1, 2, 1.0), 10)
    with pytest.raises(InvalidInput, match="epsilon"):
        profile.delta(-1.0)
    with pytest.raises(InvalidInput, match="delta"):
        profile.epsilon(math.nan)


@pytest.mark.parametrize("k", [3, 16, 128])
def test_a_response_given_as_a_matrix(k):
    """Recognised from its entries, with outputs in any order."""
    odds = math.exp(2.0)
    matrix = np.full((k, k), 1.0 / (odds + k - 1.0))
    np.fill_diagonal(matrix, odds / (odds + k - 1.0))
    expected = fp.accounting.shuffled(fp.HammingChannel(1, k, 2.0), 1000).delta(0.1)
    for rows in (matrix, matrix[:, np.random.default_rng(1).permutation(k)]):
        found = fp.accounting.shuffled(rows, 1000).delta(0.1)
        assert found.lower == pytest.approx(expected.lower, rel=1e-9)
        assert found.upper == pytest.approx(expected.upper, rel=1e-9)


def test_other_matrices_of_many_values_are_refused():
    matrix = np.random.default_rng(1).dirichlet(np.ones(64), size=64)
    with pytest.raises(TooLarge, match="64 values and 64 outputs"):
        fp.accounting.shuffled(matrix, 1000)
