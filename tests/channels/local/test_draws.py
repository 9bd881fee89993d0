"""What local mechanisms draw: exactly the law that is accounted."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv import kernels
from fastpriv._sampling import local as inside_module
from fastpriv._sampling.local import InsideThresholds, below
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import WORDS, integer_ratio
from fastpriv.channels.local import hadamard, hashing, projective
from tests.local_cases import SMALL


class Given(Source):
    """Words that a test chose."""

    secure = False

    def __init__(self, words):
        self.left = list(words)

    def words(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        assert len(taken) == count, "more words than the test gave"
        return np.array(taken, dtype=np.uint64)


class Grid:
    """Stands for uniform draws: every combination of all draws, once."""

    def __init__(self, *sizes):
        self.sizes = list(sizes)
        self.columns = list(np.indices(sizes).reshape(len(sizes), -1))
        self.count = len(self.columns[0])

    def __call__(self, size, count, source):
        assert (size, count) == (self.sizes.pop(0), self.count)
        return self.columns.pop(0)


def _fixed(channel, monkeypatch, held):
    monkeypatch.setattr(
        type(channel._thresholds), "draw", lambda self, count, source: np.full(count, held)
    )


def _uniform_over(reports, expected):
    """Whether all the expected reports occur equally often, and no others."""
    counts = Counter(np.asarray(reports).tolist())
    assert set(counts) == set(expected)
    assert len(set(counts.values())) == 1


HADAMARD = [c for c in SMALL if isinstance(c, fp.HadamardChannel)]
PROJECTIVE = [c for c in SMALL if isinstance(c, fp.ProjectiveChannel)]
HASHING = [c for c in SMALL if isinstance(c, fp.HashingChannel)]


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("channel", HADAMARD, ids=repr)
def test_hadamard_draws_are_uniform_inside_and_outside(channel, held, monkeypatch):
    _, member = channel.support_table()
    _fixed(channel, monkeypatch, held)
    for x in range(channel.k):
        grid = Grid(channel.columns, 2 * channel.blocks - 1)
        monkeypatch.setattr(hadamard, "below", grid)
        drawn = channel.draw_messages(np.full(grid.count, x), Given([]))
        _uniform_over(drawn, np.flatnonzero(member[x] == held).tolist())


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("channel", PROJECTIVE, ids=repr)
def test_projective_draws_are_uniform_inside_and_outside(channel, held, monkeypatch):
    """Vectors that are zero are drawn again: those are left out of the count here."""
    _, member = channel.support_table()
    geometry = channel.geometry
    free = geometry.digits(np.arange(geometry.vectors // channel.q))[:, 1:]
    values = geometry.vectors_of(np.arange(channel.k))
    for x in values:
        many = np.tile(x, (len(free), 1))
        lead = np.argmax(many != 0, axis=1)
        wanted = np.full(len(free), 0 if held else 1)
        y = projective._completed(free, many, lead, wanted, channel.q)
        assert ((y @ x) % channel.q == wanted).all()
        y = y[y.any(axis=1)]
        column = member[geometry.points_of(x[None])[0]]
        _uniform_over(geometry.points_of(y), np.flatnonzero(column == held).tolist())


@pytest.mark.parametrize("channel", HASHING, ids=repr)
def test_hashing_draws_every_seed_and_responds_to_its_hash(channel, monkeypatch):
    """All seeds once, and all answers that randomised response moves a hash to."""
    g, points = channel.g, channel.geometry.points
    _, member = channel.support_table()
    monkeypatch.setattr(
        type(channel._thresholds), "draw", lambda self, codes, source: (codes + step) % g
    )
    for x, step in itertools.product(range(channel.k), range(g)):
        monkeypatch.setattr(hashing, "below", Grid(points))
        reports = channel.draw_messages(np.full(points, x), Given([]))
        columns = reports[:, 0] * g + reports[:, 1]
        assert reports[:, 0].tolist() == list(range(points))
        assert (member[x, columns] == (step == 0)).all()
    assert channel.growth == Fraction(channel._thresholds.stay, channel._thresholds.move)


@given(st.integers(1, 10**7), st.integers(1, 10**7), st.floats(0.0, 80.0))
def test_integers_share_all_words_and_stay_below_the_ratio(inside, outside, epsilon):
    stay, move = integer_ratio(inside, outside, epsilon)
    assert 1 <= move <= stay
    assert inside * stay + outside * move <= WORDS
    rules = InsideThresholds(inside, outside, epsilon)
    odds = Fraction(inside * rules.stay, outside * rules.move)
    assert rules.chance == odds / (1 + odds)
    assert rules.level <= epsilon


def test_words_at_the_edges_fall_on_the_right_side():
    rules = InsideThresholds(2, 6, 1.0)  # one inside, three outside
    edge = rules.stay
    final = edge + 3 * rules.move - 1
    words = [0, edge - 1, edge, final]
    assert rules.draw(4, Given(words)).tolist() == [True, True, False, False]
    if final < WORDS - 1:  # a word that is left over is drawn again
        assert rules.draw(1, Given([WORDS - 1, 5])).tolist() == [True]


def test_uniform_integers_are_bits_drawn_again():
    # Two bits for numbers below three: 11 is drawn again, the others are themselves.
    words = [(top << 62) | 12345 for top in (0, 3, 1, 2, 3, 0, 3, 1)]
    assert below(3, 4, Given(words[:4] + words[5:6])).tolist() == [0, 0, 1, 2]
    assert below(1, 3, Given([])).tolist() == [0, 0, 0]


def _compared(words, at, threshold):
    """Compare 64 numbers, whose digits are in the words from ``at`` on, with a threshold."""
    less, lanes = 0, set(range(64))
    for place in range(63, -1, -1):
        if not lanes or threshold & ((1 << (place + 1)) - 1) == 0:
            return less, at
        digits, at = words[at], at + 1
        for lane in list(lanes):
            digit, wanted = digits >> lane & 1, threshold >> place & 1
            if digit != wanted:
                less |= int(digit < wanted) << lane
                lanes.remove(lane)
    return less, at


@given(st.integers(1, WORDS - 1) | st.sampled_from([1, 1 << 63, WORDS - 1, 3 << 62]), st.data())
def test_bits_compare_numbers_with_the_threshold(threshold, data):
    seed = data.draw(st.integers(0, 2**32))
    words = np.random.default_rng(seed).integers(0, 2**64, 200, dtype=np.uint64)
    # Force ties with the first digits of the threshold in some lanes.
    for place in range(40):
        wanted = ~0 if threshold >> (63 - place) & 1 else 0
        words[place] = np.uint64((int(words[place]) & ~0xFF | wanted & 0xFF) % WORDS)
    out = np.zeros(3, dtype=np.uint64)
    done, used = kernels.draw_bits(words, np.uint64(threshold), out)
    at, listed = 0, [int(word) for word in words]
    for lane in range(done):
        expected, at = _compared(listed, at, threshold)
        assert int(out[lane]) == expected
    assert (done, used) == (3, at)


def test_bits_that_run_out_of_words_are_begun_again():
    words = np.random.default_rng(1).integers(0, 2**64, 400, dtype=np.uint64)
    whole, parts = np.zeros(20, np.uint64), np.zeros(20, np.uint64)
    threshold = np.uint64(WORDS // 3)
    kernels.draw_bits(words, threshold, whole)
    done, used = kernels.draw_bits(words[:33], threshold, parts)
    assert 0 < done < 20
    assert used <= 33
    kernels.draw_bits(words[used:], threshold, parts[done:])
    np.testing.assert_array_equal(parts, whole)


@given(st.integers(2, 150), st.data())
def test_subsets_follow_the_words(k, data):
    """Bits first; then values are added to them, or taken away, until the size is right."""
    size = data.draw(st.integers(1, k - 1))
    x, held = data.draw(st.integers(0, k - 1)), data.draw(st.booleans())
    threshold = data.draw(st.sampled_from([0, 1 << 62, 1 << 63, WORDS - 1, WORDS // 3]))
    seed = data.draw(st.integers(0, 999))
    words = np.random.default_rng(seed).integers(0, 2**64, 9_000, dtype=np.uint64)
    out, marks = np.zeros((1, size), np.int64), np.zeros((k + 62) // 64, np.uint64)
    arguments = np.array([x]), np.array([held], np.uint8), k, np.uint64(threshold)
    done, used = kernels.draw_subsets(*arguments, words, marks, out)
    listed, at, chosen = [int(word) for word in words], 0, set()
    for i in range(len(marks)):
        less, at = _compared(listed, at, threshold)
        chosen |= {64 * i + j for j in range(64) if less >> j & 1}
    chosen = {v for v in chosen if v < k - 1}
    bits = max(1, (k - 2).bit_length())
    pieces = (
        (place + 1, listed[place] >> (bits * i) & ((1 << bits) - 1))
        for place in range(at, len(listed))
        for i in range(64 // bits)
    )
    wanted = size - held
    grow = len(chosen) < wanted
    while len(chosen) != wanted:
        at, pick = next(pieces)
        if pick < k - 1 and (pick not in chosen) == grow:
            chosen ^= {pick}
    others = [v for v in range(k) if v != x]
    assert out[0].tolist() == sorted([others[v] for v in chosen] + [x] * held)
    assert (done, used) == (1, at)
    # With words that run out nothing is used, and the draw is begun again.
    assert kernels.draw_subsets(*arguments, words[: at - 1], marks, out) == (0, 0) or at == 0


@pytest.mark.parametrize(("k", "size"), [(3, 1), (4, 2), (5, 2), (5, 4)])
def test_subsets_of_each_kind_are_equally_likely(k, size):
    """All bits and all first picks, weighed: marks of chance 1/2 and what is done to them."""
    others = k - 1
    for held in (0, 1):
        wanted, law = size - held, {}

        def followed(marked, weight, wanted=wanted, law=law):
            if len(marked) == wanted:
                law[marked] = law.get(marked, 0) + weight
                return
            grow = len(marked) < wanted
            choices = [v for v in range(others) if (v not in marked) == grow]
            for v in choices:
                followed(marked ^ {v}, weight / len(choices))

        for marks in itertools.product((0, 1), repeat=others):
            start = frozenset(v for v in range(others) if marks[v])
            followed(start, Fraction(1, 2**others))
        assert len(set(law.values())) == 1


@pytest.mark.parametrize("channel", SMALL, ids=repr)
def test_draws_follow_the_law(channel):
    """Chi-square of the whole sampler, with a seed."""
    n, x = 20_000, channel.k - 1
    reports = channel.sample(np.full((n, 1), x), rng=11)
    if channel.width is None:
        places = reports
    elif isinstance(channel, fp.HashingChannel):
        places = reports[:, 0] * channel.g + reports[:, 1]
    elif isinstance(channel, fp.UnaryChannel):
        places = reports @ (1 << np.arange(channel.k)[::-1])
    else:
        sets = list(itertools.combinations(range(channel.k), channel.size))
        order = {held: y for y, held in enumerate(sets)}
        places = np.array([order[tuple(one)] for one in reports.tolist()])
    law = channel.matrix()[x]
    seen = np.bincount(places, minlength=len(law))
    expected = n * law
    kept = expected > 5.0
    statistic = ((seen - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < scipy.stats.chi2.ppf(1.0 - 1e-6, kept.sum())


def test_seeds_repeat_and_the_source_is_secure_by_default(monkeypatch):
    for channel in SMALL:
        rows = np.zeros((50, 1), dtype=np.int64)
        np.testing.assert_array_equal(channel.sample(rows, rng=4), channel.sample(rows, rng=4))
        assert len(channel.sample(rows)) == 50
    assert inside_module.below is below
