"""Estimates of effective entropy and information: codes that are what they say."""

import math
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from oracles import dalenius as oracle

symbols = st.lists(st.integers(0, 3), min_size=1, max_size=60)


@settings(max_examples=80, deadline=None)
@given(symbols, st.integers(0, 3))
def test_context_model_is_the_sequential_code(samples, order):
    kinds = sorted(set(samples))
    numbers = [kinds.index(s) for s in samples]
    contexts = [tuple(numbers[max(0, t - order) : t]) for t in range(len(numbers))]
    want = oracle.krichevsky_trofimov(numbers, len(kinds), contexts) / len(numbers)
    found = fp.effective_entropy(samples, predictor=order)
    assert found.value == pytest.approx(want, rel=1e-10, abs=1e-12)
    assert found.samples == len(samples)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=60))
def test_information_is_the_difference_of_two_codes(pairs):
    x, y = zip(*pairs, strict=True)
    kinds = sorted(set(x))
    numbers = [kinds.index(s) for s in x]
    without = oracle.krichevsky_trofimov(numbers, len(kinds), [0] * len(x))
    knowing = oracle.krichevsky_trofimov(numbers, len(kinds), y)
    found = fp.effective_information(x, y)
    assert found.value == pytest.approx((without - knowing) / len(x), rel=1e-9, abs=1e-12)


def test_known_sources():
    rng = np.random.default_rng(1)
    coins = (rng.random(50_000) < 0.2).astype(int)
    entropy = -0.2 * math.log(0.2) - 0.8 * math.log(0.8)
    assert fp.effective_entropy(coins).value == pytest.approx(entropy, abs=0.01)
    for name in ("lzma", "bz2", "zlib"):
        found = fp.effective_entropy(coins, compressor=name)
        assert entropy * 0.98 < found.value < 1.5 * entropy
        assert found.method == name
    # A chain that repeats itself has no entropy once the last symbol is known.
    cycle = np.tile([0, 1, 2], 5000)
    assert fp.effective_entropy(cycle).value == pytest.approx(math.log(3), abs=0.01)
    assert fp.effective_entropy(cycle, predictor=1).value < 0.01
    assert fp.effective_entropy(cycle, compressor="lzma").value < 0.1


def test_information_of_a_noisy_copy_and_of_nothing():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2, (40_000, 1))
    y = x ^ (rng.random((40_000, 1)) < 0.1)
    exact = float(oracle.flip_capacity(0.1))
    assert fp.effective_information(x, y).value == pytest.approx(exact, abs=0.01)
    assert fp.effective_information(x, y, compressor="bz2").value == pytest.approx(exact, abs=0.1)
    other = rng.integers(0, 2, (40_000, 1))
    assert abs(fp.effective_information(x, other).value) < 0.001


def test_databases_are_symbols():
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 2, (20_000, 3))
    found = fp.effective_entropy(rows)
    assert found.value == pytest.approx(3 * math.log(2), abs=0.01)
    many = fp.effective_entropy(rng.integers(0, 100_000, 5_000), compressor="zlib")
    assert many.value > 8.0


def test_callables():
    samples = [0, 1, 1, 0, 1]

    def even(past, kinds, known):
        assert known is None
        return np.full(kinds, 1 / kinds)

    found = fp.effective_entropy(samples, predictor=even)
    assert found.value == pytest.approx(math.log(2))
    assert found.method == "even"

    def copies(past, kinds, known):
        return np.full(kinds, 1 / kinds) if known is None else np.eye(kinds)[known[len(past)]]

    told = fp.effective_information(samples, samples, predictor=copies)
    assert told.value == pytest.approx(math.log(2))
    never = fp.effective_entropy(samples, predictor=lambda past, kinds, known: [1.0, 0.0])
    assert never.value == math.inf
    squeezed = fp.effective_entropy(samples * 100, compressor=lambda data: zlib.compress(data, 1))
    assert 0.0 < squeezed.value < 0.5
    assert "no guarantee" in repr(found)
    assert not isinstance(found, fp.Bracket)


@pytest.mark.parametrize(
    "call",
    [
        lambda: fp.effective_entropy([]),
        lambda: fp.effective_entropy([0.5, 1.0]),
        lambda: fp.effective_entropy(np.zeros((2, 2, 2), int)),
        lambda: fp.effective_entropy([0, 1], compressor="zip"),
        lambda: fp.effective_entropy([0, 1], compressor=3),
        lambda: fp.effective_entropy([0, 1], compressor=lambda data: 3),
        lambda: fp.effective_entropy([0, 1], compressor="zlib", predictor=1),
        lambda: fp.effective_entropy([0, 1], predictor=-1),
        lambda: fp.effective_entropy([0, 1], predictor=lambda past, kinds, known: [0.5, 0.6]),
        lambda: fp.effective_entropy([0, 1], predictor=lambda past, kinds, known: [1.0]),
        lambda: fp.effective_information([0, 1], [0, 1, 1]),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(fp.InvalidInput):
        call()


def test_no_symbol_has_more_before_it_than_came():
    samples = [0, 1, 1, 0, 1]
    whole = fp.effective_entropy(samples, predictor=5).value
    assert fp.effective_entropy(samples, predictor=10**18).value == whole


def test_no_chance_with_and_without_is_no_difference():
    def sure(past, kinds, known):
        return np.eye(kinds)[0]

    assert fp.effective_entropy([0, 1], predictor=sure).value == math.inf
    with pytest.raises(fp.InvalidInput, match="probability 0"):
        fp.effective_information([0, 1], [0, 1], predictor=sure)
