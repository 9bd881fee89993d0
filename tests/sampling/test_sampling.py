"""Samplers: what they realise exactly, what they draw, and where their bits come from."""

import math
import os
import subprocess
import sys
import threading
import tracemalloc
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import fastpriv as fp
from fastpriv import kernels
from fastpriv._sampling import source as _random
from fastpriv._sampling.sequential import States, Tree, scaled, scaled_exp, shuffle
from fastpriv._sampling.thresholds import LawThresholds, SymmetricThresholds
from fastpriv.channels.tilted_draws import tilted_draws
from fastpriv.errors import InvalidInput
from fastpriv.measures.realised import realised as realised_channel
from oracles import sampling as o

WORDS = 1 << 64


class Fed(_random.Source):
    """A source that gives the words it was fed, then the same one for ever."""

    secure = False

    def __init__(self, words, rest=1 << 63):
        self.left, self.rest = list(words), rest

    def words(self, count):
        now, self.left = self.left[:count], self.left[count:]
        return np.array(now + [self.rest] * (count - len(now)), dtype=np.uint64)


# Integer weights.

tiny = st.floats(0.0, 1.0) | st.sampled_from([0.0, 5e-324, 1e-310, 2.0**-64, 3 * 2.0**-66, 1e-30])


@st.composite
def laws(draw, size=None):
    found = np.array(draw(st.lists(tiny, min_size=size or 1, max_size=size or 12)))
    if found.sum() == 0:
        found[draw(st.integers(0, len(found) - 1))] = 1.0
    return found / found.sum() if found.sum() > 1e-300 else found * 2.0**1000 / 1.0


def realised(thresholds):
    """Integer weights as whole numbers, 2^64 included."""
    rows = [[int(w) for w in row] for row in thresholds.weights]
    return [
        [WORDS if sum(row) == 0 and y == last else w for y, w in enumerate(row)]
        for row, last in zip(rows, thresholds._last, strict=True)
    ]


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


# E_d.

EPSILONS = [0.0, 1e-300, 1e-17, 1e-8, 0.1, 1.0, math.log(3.0), 5.0, 20.0, 40.0, 44.2, 64.0, 700.0]


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
    assert level == o.double_above(o.log_ratio(stay, move))
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


# Coins.


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
            side, used = kernels.sampling._coin(v, e, np.array(words, dtype=np.uint64), 0)
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
    pairs = [(a, b, y) for a, b in o.neighbours(sizes) for y in range(len(pmf)) if table[a, y]]
    worst = max(table[a, y] / table[b, y] for a, b, y in pairs)
    level = o.log_ratio(worst.numerator, worst.denominator)
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


# Levels.


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([(2, 2), (3,), (2, 3)]), st.sampled_from([0.05, 1.0]))
def test_realised_level_of_a_matrix(seed, sizes, spread):
    rng = np.random.default_rng(seed)
    size = math.prod(sizes)
    matrix = np.maximum(rng.dirichlet(np.full(4, spread), size), 1e-300)
    matrix /= matrix.sum(axis=1, keepdims=True)
    weights = realised(LawThresholds(matrix))
    truth = max(
        (
            abs(o.log_ratio(weights[a][y], weights[b][y]))
            for a, b in o.neighbours(sizes)
            for y in range(4)
        ),
        default=0,
    )
    for channel in (fp.Channel(matrix, sizes), fp.QueryChannel(np.arange(size), matrix, sizes)):
        level = fp.realised_level(channel)
        assert truth <= level <= truth * (1 + 1e-15) + 1e-15


def test_no_level_of_a_drawn_query_exceeds_that_of_its_realised_channel():
    """Also between answers that no neighbours have, where small chances round further."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        laws = rng.random((3, 3)) * 10.0 ** rng.uniform(-21, 0, (3, 3))
        laws /= laws.sum(axis=1, keepdims=True)
        channel = fp.QueryChannel.count(2, laws)
        weights = realised(LawThresholds(laws))
        drawn, slack = realised_channel(channel)
        assert fp.leakage_capacity(drawn) + slack >= o.column_level(weights)
        assert fp.dp_level(drawn) + slack >= fp.realised_level(channel) - 2.0**-50


def test_the_realised_rows_of_a_tilted_law_are_those_that_are_drawn():
    channel = fp.TiltedChannel(fp.Product([[1e-300, 1.0]] * 2), 700.0)
    drawn, slack = realised_channel(channel)
    assert fp.dp_level(drawn) + slack >= fp.realised_level(channel) > 40.0
    assert fp.dp_level(drawn) < 45.0


def test_levels_stay_finite_and_infinite_and_zero():
    tiny = fp.Channel([[1e-300, 1.0], [1e-10, 1.0 - 1e-10]])
    assert fp.dp_level(tiny) > 600.0
    assert fp.realised_level(tiny) == pytest.approx(math.log(1e-10 * 2.0**64), rel=1e-9)
    assert fp.realised_level(fp.Channel([[0.0, 1.0], [1e-10, 1.0 - 1e-10]])) == math.inf
    assert fp.realised_level(fp.Channel([[0.0, 1.0], [0.0, 1.0]])) == 0.0
    assert fp.realised_level([[1.0], [1.0]]) == 0.0
    assert fp.realised_level(fp.Channel([[0.3, 0.7]] * 4, [2, 2])) == 0.0
    assert fp.realised_level(fp.ProductChannel([np.eye(2), np.full((2, 2), 0.5)])) == math.inf
    assert fp.realised_level(fp.ProductChannel([np.full((3, 2), 0.5)] * 2)) == 0.0
    assert fp.realised_level(fp.QueryChannel([0, 0, 0, 0], [[0.3, 0.7]], [2, 2])) == 0.0
    # Chances that a double cannot hold.
    for far in (
        fp.PosteriorChannel(fp.Product.iid([0.3, 0.7], 2), 800.0),
        fp.TiltedChannel(fp.Product.iid([1e-300, 1.0], 2), 100.0),
    ):
        assert math.isfinite(fp.dp_level(far))
        assert fp.realised_level(far) < 45.0
    assert fp.realised_level(fp.TiltedChannel(fp.Product.iid([0.0, 1.0], 2), 9.0)) == 0.0
    assert fp.realised_level(fp.TiltedChannel(fp.Uniform(2, 1), 9.0)) == 0.0


def test_levels_of_drawn_databases_are_bounds_close_to_the_nominal_ones():
    types = fp.Exchangeable.beta_binomial(6, 0.5, 0.8)
    chain = fp.Markov([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], 5)
    for channel in (
        fp.PosteriorChannel(types, types.epsilon_tilde()),
        fp.PosteriorChannel(fp.Product.iid([0.3, 0.7], 4), 2.0),
        fp.PosteriorChannel(chain, chain.epsilon_tilde() + 0.1),
        fp.TiltedChannel(chain, 0.9),
        fp.TiltedChannel(fp.Uniform(3, 2), 400.0),
        fp.solve_pd_dp(types, 0.7).channel,
    ):
        level, nominal = fp.realised_level(channel), fp.dp_level(channel)
        assert nominal * (1.0 - 1e-12) <= level or level == pytest.approx(math.log(2.0**64), 1e-9)
        assert level <= nominal + 1e-5


# Draws.


def uneven(rng, *shape):
    return rng.dirichlet(np.full(shape[-1], 0.7), shape[:-1])


def families():
    rng = np.random.default_rng(12)
    types = fp.Exchangeable.beta_binomial(4, 0.5, 0.8)
    three = fp.Exchangeable(
        {(2, 0, 0): 0.2, (1, 1, 0): 0.3, (0, 1, 1): 0.2, (0, 2, 0): 0.1, (0, 0, 2): 0.2}
    )
    chain = fp.Markov([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], 4)
    dense = fp.Dense(rng.dirichlet(np.full(6, 9.0)), [2, 3])
    return {
        "E_d": fp.HammingChannel(2, [2, 3], 0.8),
        "E_d of large rows": fp.HammingChannel(1, 300, 4.0),
        "product": fp.ProductChannel([uneven(rng, 2, 3), uneven(rng, 3, 2)]),
        "dense": fp.Channel(uneven(rng, 6, 6), [2, 3]),
        "dense to other outputs": fp.Channel(uneven(rng, 6, 70), [2, 3]),
        "query": fp.QueryChannel([0, 1, 2, 0, 1, 2], uneven(rng, 3, 5), [2, 3]),
        "E_i dense": fp.PosteriorChannel(dense, dense.epsilon_tilde() + 0.5),
        "E_i product": fp.PosteriorChannel(fp.Product([[0.4, 0.6], [0.3, 0.3, 0.4]]), 3.0),
        "E_i exchangeable": fp.PosteriorChannel(types, types.epsilon_tilde() + 0.1),
        "E_i Markov": fp.PosteriorChannel(chain, chain.epsilon_tilde() + 0.1),
        "tilted, three values": fp.TiltedChannel(three, 0.6),
        "tilted chain": fp.TiltedChannel(chain, 0.9),
        "types": fp.solve_pd_dp(types, 0.7).channel,
    }


FAMILIES = families()


@pytest.mark.parametrize("name", FAMILIES)
def test_samples_follow_the_matrix(name):
    channel, draws = FAMILIES[name], 200_000
    rng = np.random.default_rng(1)
    for x in rng.choice(channel.space.size, size=3, replace=False):
        rows = np.repeat(channel.space.rows(np.array([x])), draws, axis=0).astype(np.int16)
        out = channel.sample(rows, rng=rng)
        if out.ndim == 2:
            assert out.dtype == np.int16
            out = channel.output_space.index(out)
        expected = draws * channel.matrix()[x]
        counts = np.bincount(out, minlength=len(expected))
        assert counts[expected == 0].sum() == 0
        rare = expected < 10.0  # put together
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        seen = expected > 0
        statistic = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
        assert chi2.sf(statistic, max(seen.sum() - 1, 1)) > 1e-5


@pytest.mark.parametrize("name", FAMILIES)
def test_many_databases_at_once(name):
    channel = FAMILIES[name]
    space = channel.space
    x = np.random.default_rng(0).integers(space.size, size=60_000)
    out = channel.sample(space.rows(x), rng=3)
    out = channel.output_space.index(out) if out.ndim == 2 else out
    counts = np.zeros((space.size, channel.output_space.size))
    np.add.at(counts, (x, out), 1)
    expected = np.bincount(x, minlength=space.size)[:, None] * channel.matrix()
    # Normal scores of all cells that are large enough.
    seen = expected > 20.0
    scores = (counts - expected)[seen] / np.sqrt((expected * (1 - channel.matrix()))[seen])
    assert np.abs(scores).max() < 5.5
    assert counts[expected == 0].sum() == 0


@pytest.mark.parametrize("name", FAMILIES)
def test_a_seed_repeats_and_nothing_else_does(name):
    channel = FAMILIES[name]
    rows = channel.space.rows(np.arange(200) % channel.space.size)
    first = channel.sample(rows, rng=5)
    for dtype in (np.int16, np.uint32, np.uint64):
        assert np.array_equal(first, channel.sample(rows.astype(dtype), rng=5))
    generator = np.random.default_rng(5)
    assert np.array_equal(first, channel.sample(rows, rng=generator))
    assert not np.array_equal(first, channel.sample(rows, rng=generator))
    assert not np.array_equal(channel.sample(rows), channel.sample(rows))


@pytest.mark.parametrize("name", FAMILIES)
def test_no_databases_no_outputs(name):
    channel = FAMILIES[name]
    out = channel.sample(np.empty((0, channel.space.n), dtype=np.int64), rng=1)
    assert len(out) == 0


def test_threads_draw_from_the_same_law():
    codes = np.zeros((2**19, 1), dtype=np.uint8)
    out = fp.HammingChannel(1, 2, 0.0).sample(codes)
    assert abs(int(out.sum()) - 2**18) < 6 * math.sqrt(2**17)
    halves = out.reshape(4, -1)
    assert not np.array_equal(halves[0], halves[2])


def test_bits_may_be_booleans():
    count = fp.QueryChannel.count(3, np.eye(4))
    assert count.sample(np.array([[True, False, True], [False] * 3])).tolist() == [2, 0]


def test_codes_keep_their_dtype_and_memory_stays_bounded():
    wide = fp.ProductChannel([np.full((2, 200), 1 / 200)])
    assert wide.sample(np.zeros((5, 1), dtype=np.int8), rng=1).dtype == np.uint8
    assert wide.sample(np.zeros((5, 1), dtype=bool), rng=1).dtype == np.uint8
    assert fp.HammingChannel(1, 2, 1.0).sample(np.zeros((5, 1), dtype=bool), rng=1).dtype == bool
    assert fp.HammingChannel(2, 2, 1.0).sample([[0, 1]], rng=1).dtype == np.int64
    foreign = np.array([[0, 1, 2, 2]] * 50, dtype=">i4")  # bytes the other way round
    for channel in (fp.HammingChannel(4, 3, 9.0), fp.ProductChannel([np.eye(3)] * 4)):
        assert np.mean(channel.sample(foreign, rng=1) == foreign) > 0.95
    single = fp.HammingChannel(3, [1, 2, 1], 0.5).sample(np.zeros((50, 3), dtype=int), rng=1)
    assert single.sum(axis=0).tolist()[::2] == [0, 0]
    codes = np.zeros((10**7, 1), dtype=np.uint8)
    for channel in (fp.HammingChannel(1, 7, 1.0), fp.ProductChannel([np.full((2, 2), 0.5)])):
        channel.sample(codes[:10], rng=1)
        tracemalloc.start()
        assert channel.sample(codes, rng=1).dtype == np.uint8
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.5e7


def test_strided_and_read_only_rows():
    rows = np.zeros((100, 8), dtype=np.uint8)[:, ::2]
    rows.flags.writeable = False
    for channel in (fp.HammingChannel(4, 2, 1.0), fp.HammingChannel(4, [2, 3, 2, 3], 1.0)):
        assert channel.sample(rows, rng=1).shape == (100, 4)
    assert not rows.any()
    fortran = np.asfortranarray(np.arange(6).reshape(3, 2) % 2)
    assert np.array_equal(
        fp.HammingChannel(2, 2, 1.0).sample(fortran, rng=1),
        fp.HammingChannel(2, 2, 1.0).sample(np.ascontiguousarray(fortran), rng=1),
    )


def test_long_databases():
    prior = fp.Exchangeable.beta_binomial(300, 2.0, 3.0)
    channel = fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.5)
    rows = prior.sample(20, rng=1)
    out = channel.sample(rows, rng=2)
    expected = fp.distortion(channel, prior)
    assert abs((out != rows).sum(axis=1).mean() - expected) < 6 * math.sqrt(expected / 20) + 1
    assert fp.realised_level(channel) < fp.dp_level(channel) + 1e-4


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: fp.HammingChannel(2, 2, 1.0).sample([[0, 2]]), "row 1 takes values in 0 .. 1"),
        (lambda: fp.HammingChannel(2, [2, 3], 1.0).sample([[2, 0]]), "row 0 takes values"),
        (lambda: fp.HammingChannel(2, [2, 3], 1.0).sample([[0, -1]]), "row 1 takes values"),
        (lambda: fp.HammingChannel(2, 2, 1.0).sample([[0, 0]], rng="seed"), "rng"),
        (lambda: fp.HammingChannel(2, 2, 1.0).sample([[0, 0]], rng=-1), "rng"),
        (lambda: fp.TiltedChannel(fp.Dense([0.5, 0.2, 0.3]), 1e13).sample([[0]]), "epsilon"),
    ],
)
def test_what_cannot_be_drawn(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


# Random bits.


def test_which_sources_are_secure():
    assert _random.is_secure(None)
    assert not _random.is_secure(3)
    assert not _random.is_secure(np.random.default_rng())
    with pytest.raises(InvalidInput, match="rng"):
        _random.is_secure("dice")


def test_seeded_words_are_the_generator_s():
    words = _random.source(7).words(5)
    assert np.array_equal(words, np.random.default_rng(7).integers(0, 2**64, 5, dtype=np.uint64))


def test_words_of_all_threads_differ():
    found = []

    def collect():
        source = _random.source(None)
        found.extend(source.words(k).tobytes() for k in (8, 8, 100))

    threads = [threading.Thread(target=collect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.frombuffer(b"".join(found), dtype=np.uint64)
    assert len(np.unique(words)) == len(words) == 8 * 116


def test_new_keys_and_long_requests(monkeypatch):
    renewed = []
    plain = _random._Keystream._renew
    monkeypatch.setattr(_random, "_PER_KEY", 1000)
    monkeypatch.setattr(
        _random._Keystream, "_renew", lambda self: (renewed.append(1), plain(self))[1]
    )
    monkeypatch.setattr(_random._Secure, "_mine", _random._Threads())
    words = np.concatenate([_random.source(None).words(k) for k in (0, 1, 130, 1000)])
    assert len(renewed) == -(-8 * 1131 // 1000)
    assert len(np.unique(words)) == 1131
    monkeypatch.undo()
    words = _random.source(None).words(1 << 19)  # more than is made at a time
    assert len(np.unique(words)) == 1 << 19
    bits = np.unpackbits(words.view(np.uint8)).reshape(-1, 64).mean(axis=0)
    assert np.abs(bits - 0.5).max() < 6 * 0.5 / math.sqrt(1 << 19)


def test_a_fork_behind_our_back_is_noticed(monkeypatch):
    monkeypatch.setattr(_random._Secure, "_mine", _random._Threads())
    _random.source(None).words(1)
    parent = _random._Secure._mine.stream
    _random.source(None).words(1)
    assert _random._Secure._mine.stream is parent
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    _random.source(None).words(1)
    assert _random._Secure._mine.stream is not parent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_words_of_forked_children_differ():
    code = """
import os
import numpy as np
from fastpriv._sampling import source as _random
source = _random.source(None)
source.words(3)
blocks = []
for _ in range(3):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, source.words(64).tobytes())
        os._exit(0)
    blocks.append(os.read(read, 512))
    os.wait()
blocks.append(source.words(64).tobytes())
words = np.frombuffer(b"".join(blocks), dtype=np.uint64)
print(len(words), len(np.unique(words)))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["256", "256"]


def test_drawing_loads_the_cipher_and_importing_does_not():
    code = """
import sys, fastpriv as fp
channel = fp.HammingChannel(2, 2, 1.0)
channel.sample([[0, 1]], rng=1)
print("cryptography" in sys.modules)
channel.sample([[0, 1]])
print("cryptography" in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "True"]
