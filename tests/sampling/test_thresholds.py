"""Samplers: what integer thresholds, coins and sequential draws realise exactly."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import fastpriv as fp
from fastpriv._sampling import source as _random
from fastpriv._sampling.sequential import States, Tree, scaled, scaled_exp, shuffle
from fastpriv._sampling.thresholds import LawThresholds, SymmetricThresholds
from fastpriv.channels.tilted import tilted_draws
from fastpriv.kernels.sampling import _coin
from oracles import log_ratio, neighbour_pairs
from oracles import sampling as o
from sampling_cases import WORDS, laws, realised


class Fed(_random.Source):
    """A source that gives the words it was fed, then the same one for ever."""

    secure = False

    def __init__(self, words, rest=1 << 63):
        self.left, self.rest = list(words), rest

    def words(self, count):
        now, self.left = self.left[:count], self.left[count:]
        return np.array(now + [self.rest] * (count - len(now)), dtype=np.uint64)


@pytest.mark.search(every=10)
@settings(max_examples=300, deadline=None)
@given(laws())
def test_weights_are_the_law_to_less_than_one_word(law):
    law = law / law.sum()
    (weights,) = realised(LawThresholds(law[None]))
    assert sum(weights) == WORDS
    shares = o.shares(law.tolist())
    raised = sum(0 < share < 1 for share in shares)
    largest = int(np.argmax(law))
    for y, (w, share) in enumerate(zip(weights, shares, strict=True)):
        assert (w == 0) == (share == 0)
        # The largest also pays for shares that were raised to one.
        assert abs(w - share) < (2 + raised if y == largest else 1 + Fraction(1, 1 << 20))


@pytest.mark.search(every=10)
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 3000), st.sampled_from([-9e-10, 0.0, 9e-10]))
def test_weights_of_long_laws_that_miss_one(seed, size, off):
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(size, 0.05)) * (1.0 + off)
    (weights,) = realised(LawThresholds(law[None]))
    shares = o.shares(law.tolist())
    raised = sum(0 < share < 1 for share in shares)
    wrong = [abs(w - s) for w, s in zip(weights, shares, strict=True)]
    assert sum(weights) == WORDS
    assert all((w == 0) == (s == 0) for w, s in zip(weights, shares, strict=True))
    assert sorted(wrong)[-2] < 1 + Fraction(1, 1 << 12)
    assert max(wrong) < 2 + raised


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 6).flatmap(lambda k: st.lists(laws(k), min_size=1, max_size=4)))
def test_row_level_is_the_least_double_above_that_of_the_integers(rows):
    table = LawThresholds(np.array([row / row.sum() for row in rows]))
    assert table.level() == o.double_above(o.column_level(realised(table)))


def test_words_at_the_edges_find_their_outputs():
    # Outputs are monotone in the word, so both sides of every edge fix every word's output.
    rng = np.random.default_rng(5)
    matrix = np.array([rng.dirichlet(np.full(40, 0.1)) for _ in range(5)])
    matrix[0] = np.eye(40)[7]
    matrix[1, :3] = matrix[1, -4:] = 0.0
    matrix[1] /= matrix[1].sum()
    table = LawThresholds(matrix)
    for x, weights in enumerate(realised(table)):
        edge = 0
        for y, w in enumerate(weights):
            if w:
                ends = [edge, edge + w // 2, edge + w - 1]
                drawn = table.draw(np.full(3, x, dtype=np.uint8), Fed(ends))
                assert drawn.tolist() == [y] * 3
            edge += w
        assert edge == WORDS


EPSILONS = [0.0, 1e-300, 1e-17, 1e-8, 0.1, 1.0, math.log(3.0), 5.0, 20.0, 40.0, 44.2, 64.0, 700.0]


@pytest.mark.grid(every=9)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 10, 1000, 2**20 - 3, 2**28])
def test_hamming_integers_are_the_best_below_e_to_the_epsilon(m, epsilon):
    table = SymmetricThresholds(m, epsilon)
    stay, move = table.stay, table.move
    total = stay + (m - 1) * move
    assert 1 <= move <= stay
    assert total <= WORDS
    channel = fp.HammingChannel(3, m, epsilon)
    level = fp.realised_level(channel)
    assert level <= epsilon
    if m == 1:
        assert level == 0.0
        return
    with mpmath.workdps(60):
        growth = mpmath.exp(mpmath.mpf(epsilon))
        assert stay <= growth * move
        assert total == WORDS or stay + 1 > growth * move - mpmath.mpf("1e-29") or move == stay
    assert level == o.double_above(log_ratio(stay, move))
    if epsilon <= 40.0:
        assert level >= epsilon - 2.0 / move


@pytest.mark.parametrize(
    ("m", "epsilon"), [(2, 1.0), (3, 0.0), (4, 0.5), (7, 1e-8), (500, 3.0), (9, 42.0), (5, 700.0)]
)
def test_sixteen_bits_and_then_the_rest_realise_the_integers(m, epsilon):
    table = SymmetricThresholds(m, epsilon)
    edges = [0, *(table.stay + k * table.move for k in range(m))]  # where each step's words begin
    final = edges.pop()
    inside = {edge >> 48 for edge in [*edges, final] if edge % (1 << 48)}
    # All cells: settled ones by their step, the others left to further bits.
    for cell in range(1 << 16):
        low = cell << 48
        step = int(table._steps[cell])
        if cell in inside or low >= final:
            assert step == 65535
        else:
            assert edges[step] <= low
            assert low + (1 << 48) <= [*edges, final][step + 1]
    # Both sides of every edge, by the first 16 bits and then the other 48.
    places = [(edge + shift, k + shift) for k, edge in enumerate(edges) for shift in (-1, 0)][1:]
    places.append((final - 1, m - 1))
    for word, step in places:
        codes = np.array([m - 1], dtype=np.uint16)
        out = np.empty_like(codes)
        table._fill(codes, out, Fed([word >> 48, (word << 16) % WORDS]))
        assert out[0] == (m - 1 + step) % m
    # Words beyond the last edge decide nothing.
    if final < WORDS:
        codes, out = np.zeros(1, dtype=np.uint16), np.empty(1, dtype=np.uint16)
        fed = Fed([final >> 48, (final << 16) % WORDS, WORDS - 1, 0])
        table._fill(codes, out, fed)
        assert out[0] == 0
        assert not fed.left


@pytest.mark.parametrize("m", [20_000, 2**20 - 3, 2**28])
def test_many_values_take_whole_words(m):
    table = SymmetricThresholds(m, 2.0)
    rng = np.random.default_rng(1)
    steps = [0, 1, 2, m - 2, m - 1, *rng.integers(1, m, 200).tolist()]
    for step in steps:
        start = 0 if step == 0 else table.stay + (step - 1) * table.move
        for word in (start, start + (table.stay if step == 0 else table.move) - 1):
            code = int(rng.integers(m))
            codes, out = np.array([code], dtype=np.uint32), np.empty(1, dtype=np.uint32)
            table._fill(codes, out, Fed([word]))
            assert out[0] == (code + step) % m


@njit
def toss(v, e, words, at):
    """Helpers of kernels are called by compiled functions only."""
    return _coin(v, e, words, at)


@pytest.mark.parametrize(
    ("v", "e"),
    [(0.5, 0), (0.3, 0), (2.0**-64, 0), (1.1e-19, 0), (1e-70, 0), (0.7, -1), (3e70, -1), (1.5, -2)],
)
def test_a_coin_has_exactly_its_chance(v, e):
    chance = Fraction(v) * Fraction(2) ** (512 * e)
    digits, left = [], chance
    while left and len(digits) < 40:
        left *= WORDS
        digits.append(int(left))
        left -= int(left)
    for depth in range(1, len(digits) + 1):
        for shift in (-1, 0, 1):
            words = [*digits[: depth - 1], digits[depth - 1] + shift]
            if not 0 <= words[-1] < WORDS:
                continue
            side, used = toss(v, e, np.array(words, dtype=np.uint64), 0)
            truth = o.heads(chance, words)
            assert side == {None: -1, True: 1, False: 0}[truth]
            assert used <= len(words)


def measured(outcome):
    """All outcomes and their chances, found by halving between words where the outcome changes.

    ``outcome(source)`` takes a word for each coin, and each coin shows in the outcome.
    """
    found = {}

    def explore(words, chance):
        def with_word(word):
            return outcome(Fed([*words, word], WORDS - 1))

        low = with_word(0)
        if low == with_word(WORDS - 1):
            found[low] = chance
            return
        a, b = 0, WORDS - 1
        while b - a > 1:
            middle = (a + b) // 2
            a, b = (middle, b) if with_word(middle) == low else (a, middle)
        explore([*words, 0], chance * Fraction(b, WORDS))
        explore([*words, WORDS - 1], chance * Fraction(WORDS - b, WORDS))

    explore([], Fraction(1))
    return found


def test_a_tree_realises_its_law():
    weights = np.array([0.3, 0.0, 1e-12, 0.5, 0.1, 0.2])
    tree = Tree(weights)
    found = measured(lambda source: int(tree.draws(1, source)[0]))
    total = sum(map(Fraction, weights.tolist()))
    assert set(found) == {0, 2, 3, 4, 5}
    for y, chance in found.items():
        truth = Fraction(weights[y]) / total
        assert abs(chance - truth) <= truth * Fraction(1, 2**48) + Fraction(4, WORDS)


@pytest.mark.slow(but=["law2-0.7", "law3-0.7", "law4-0.7"])
@pytest.mark.parametrize(
    ("law", "epsilon"),
    [
        (fp.Dense([0.1, 0.2, 0.0, 0.15, 0.05, 0.3, 0.1, 0.1], [2, 2, 2]), 0.0),
        (fp.Dense([0.1, 0.2, 0.0, 0.15, 0.05, 0.3, 0.1, 0.1], [2, 2, 2]), 5.0),
        (fp.Dense([0.1, 0.2, 0.25, 0.15, 1e-9, 0.3 - 1e-9], [3, 2]), 0.7),
        (fp.Exchangeable([0.2, 0.5, 0.0, 0.3]), 0.7),
        (fp.Markov([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], 3), 0.7),
    ],
)
def test_rows_in_sequence_realise_the_tilted_law(law, epsilon):
    channel, sizes, pmf = fp.TiltedChannel(law, epsilon), law.space.sizes, law.pmf().tolist()
    ratio = Fraction(math.exp(-epsilon))
    rows = law.space.rows(np.arange(len(pmf)))
    table = {}
    for x in range(len(pmf)):

        def outcome(source, x=x):
            return int(law.space.index(tilted_draws(law, rows[[x]], epsilon, source))[0])

        found = measured(outcome)  # to 2^-63 for each coin
        truth = o.tilted(pmf, sizes, ratio, rows[x].tolist())
        for y, chance in enumerate(truth):
            table[x, y] = found.get(y, Fraction(0))
            assert (table[x, y] == 0) == (chance == 0)
            assert abs(table[x, y] - chance) <= chance * Fraction(1, 2**45) + Fraction(8, WORDS)
    pairs = [(a, b, y) for a, b in neighbour_pairs(sizes) for y in range(len(pmf)) if table[a, y]]
    worst = max(table[a, y] / table[b, y] for a, b, y in pairs)
    level = log_ratio(worst.numerator, worst.denominator)
    assert level <= fp.realised_level(channel) + 2.0**-30  # what halving leaves of 1e-9


def test_numbers_of_any_size():
    numbers = np.array([0.0, 5e-324, 1e-200, 1.0, 1e200, 1.7e308])
    value, power = scaled(numbers)
    for number, v, e in zip(numbers.tolist(), value.tolist(), power.tolist(), strict=True):
        assert Fraction(number) == Fraction(v) * Fraction(2) ** (512 * e)
        assert v == 0 or 2.0**-256 <= v < 2.0**256
    logs = np.array([-math.inf, -1e9, -700.0, 0.0, 3.0])
    for log, v, e in zip(logs.tolist(), *map(np.ndarray.tolist, scaled_exp(logs)), strict=True):
        if log == -math.inf:
            assert v == 0.0
        else:
            assert math.log(v) + e * 512 * math.log(2.0) == pytest.approx(log, rel=1e-15, abs=1e-15)


def test_a_far_output_stays_possible():
    # Only far from x there is an output: e^(-epsilon d) leaves the range of a double by far.
    states = States.dense(np.array([0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 0.75]), (2, 2, 2))
    drawn = states.draws(np.zeros((4000, 3), dtype=np.int64), 5000.0, _random.source(3))
    assert np.unique(drawn, axis=0).tolist() == [[0, 1, 1]]
    half = States.dense(np.array([0.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.0]), (2, 2, 2))
    drawn = half.draws(np.zeros((4000, 3), dtype=np.int64), 5000.0, _random.source(3))
    assert 1800 < (drawn[:, 0] == 0).sum() < 2200


def test_running_out_of_words_changes_nothing(monkeypatch):
    prior = fp.Exchangeable.beta_binomial(9, 0.5, 0.8)
    chain = fp.Markov([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], 9)
    tree = Tree(np.random.default_rng(1).random(11))
    rows = np.repeat([[0, 0, 0, 0, 1, 1, 1, 1, 1]], 40, axis=0)

    def draw():
        items = np.tile(np.arange(20), (30, 1))
        shuffle(items, np.full((30, 1), 20), _random.source(2))
        return [
            tilted_draws(prior, rows, 2.0, _random.source(2)),
            tilted_draws(chain, rows, 2.0, _random.source(2)),
            tree.draws(100, _random.source(2)),
            items,
        ]

    plain = draw()
    # A seeded generator gives the same words in small portions as in large ones.
    monkeypatch.setattr("fastpriv._sampling.sequential._CHUNK", 3)
    for whole, pieced in zip(plain, draw(), strict=True):
        assert np.array_equal(whole, pieced)


@pytest.mark.parametrize("size", [2, 3, 5, 6, 7, 1000, 12345])
def test_a_shuffle_takes_indices_that_are_uniform(size):
    # The first exchange is with an index below ``size``; each must answer equally many 32 bits.
    skip = (1 << 32) % size
    counts = []
    for k in {0, 1, size // 2, size - 1}:
        # Words w with k 2^32 + skip <= w size < (k + 1) 2^32 are taken, and lead to k.
        first = -(-((k << 32) + skip) // size)
        last = -(-((k + 1) << 32) // size) - 1
        counts.append(last - first + 1)
        for word in (first, last):
            assert _first_index(size, [word << 32]) == k
        if first > 0 and ((first - 1) * size) >> 32 == k:
            assert _first_index(size, [(first - 1) << 32, last << 32]) == k  # drawn again
    assert set(counts) == {((1 << 32) - skip) // size}


def _first_index(size, words):
    items = np.arange(size)[None].copy()
    # Later exchanges: an item with itself, the largest 32 bits always being accepted.
    shuffle(items, np.array([[size]]), Fed(words, WORDS - 1))
    return int(items[0, -1])


def test_segments_stay_where_they_are():
    items = np.tile(np.arange(10), (200, 1))
    ends = np.tile([0, 3, 3, 9, 10], (200, 1))
    shuffle(items, ends, _random.source(4))
    assert (np.sort(items[:, :3]) == np.arange(3)).all()
    assert (np.sort(items[:, 3:9]) == np.arange(3, 9)).all()
    assert (items[:, 9] == 9).all()
    assert len(np.unique(items, axis=0)) > 150
