"""Named channels of Wu-Xia-He 2020, their closed forms and calibration."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from oracles import dalenius as oracle
from oracles.individual import group_capacity

levels = st.one_of(
    st.floats(1e-300, 1e-6), st.floats(1e-6, 0.7), st.sampled_from([0.0, 1e-32, math.log(2)])
)


# Binary symmetric.


@pytest.mark.search(every=10)
@settings(max_examples=60, deadline=None)
@given(levels)
def test_flip_keeps_its_promise_and_is_tight(epsilon):
    p = fp.mechanisms.binary_symmetric_flip(epsilon)
    assert 0.0 <= p <= 0.5
    assert oracle.flip_capacity(p) <= epsilon
    # The two floats of the kernel keep it as well, taken as the law they are proportional to.
    stay, flip = Fraction(1.0 - p), Fraction(p)
    share = flip / (stay + flip)
    with mp.workdps(120):
        share = mp.mpf(share.numerator) / share.denominator
        assert oracle.flip_capacity(share) <= epsilon
    # No float much below does.
    if p > 0.0:
        below = p - 2.0**-52 * max(p, 2.0**-54) * 4 if p < 0.25 else p - 2.0**-53
        assert oracle.flip_capacity(below) > epsilon


@pytest.mark.parametrize("epsilon", [0.694, 1.0, 700.0])
def test_from_ln_two_on_nothing_is_turned_round(epsilon):
    assert fp.mechanisms.binary_symmetric_flip(epsilon) == 0.0


def test_the_float_below_ln_two_still_needs_noise():
    assert 0.0 < fp.mechanisms.binary_symmetric_flip(math.log(2)) < 1e-18


@pytest.mark.parametrize("sizes", [(2,), (2, 2), (3, 2), (2, 2, 2), (1, 2)])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.75])
def test_binary_symmetric_capacity_is_reached_exactly_where_a_row_can_change_the_answer(sizes, p):
    bound = float(oracle.flip_capacity(p))
    count = math.prod(sizes)
    for values in itertools.islice(itertools.product([0, 1], repeat=count), 1, 12):
        channel = fp.mechanisms.binary_symmetric(values, p, sizes)
        assert channel.matrix()[0].tolist() == ([1 - p, p] if values[0] == 0 else [p, 1 - p])
        found = fp.individual_capacity(channel)
        assert found.lower <= bound * (1 + 1e-9) + 1e-15
        reached = any(
            values[x] != values[y] and xs[i] != ys[i]
            for (x, xs), (y, ys) in itertools.product(enumerate(o.databases(sizes)), repeat=2)
            for i in range(len(sizes))
        )
        assert found.upper == pytest.approx(bound if reached else 0.0, rel=1e-9, abs=1e-15)


def test_example_one_of_the_paper():
    """f(x_1, x_2) = [x_1 = x_2] with three and two values: the bound is reached."""
    equal = [int(a == b) for a, b in o.databases((3, 2))]
    channel = fp.mechanisms.binary_symmetric(equal, 0.2, (3, 2))
    low, high = group_capacity(channel.matrix().tolist(), (3, 2), 1)
    found = fp.individual_capacity(channel)
    assert low <= found.upper
    assert found.lower <= high
    assert found.upper == pytest.approx(float(oracle.flip_capacity(0.2)), rel=1e-9)
    assert fp.is_weakly_symmetric(fp.mechanisms.binary_symmetric([0, 1], 0.2, [2]))


# Exponential.


@pytest.mark.grid(every=6)
@pytest.mark.parametrize("k", [1, 2, 3, 7, 40])
@pytest.mark.parametrize(
    "rate", [0.0, 1e-300, 1e-12, 1e-3, 0.012, 0.0126, 0.2, 0.26, 0.99, 1.01, 5.0, 40.0, 300.0]
)
def test_exponential_entropy_has_its_digits_everywhere(k, rate):
    exact = oracle.exponential_entropy(k, rate)
    found = fp.mechanisms.exponential_entropy(k, rate)
    assert abs(found - exact) <= 2e-15 * abs(exact)


def test_exponential_entropy_at_the_ends():
    assert fp.mechanisms.exponential_entropy(5, math.inf) == 0.0
    assert fp.mechanisms.exponential_entropy(10**9, 0.0) == math.log(10**9)


@pytest.mark.search(every=10)
@settings(max_examples=40, deadline=None)
@given(st.integers(2, 30), st.one_of(st.floats(1e-300, 1e-3), st.floats(1e-3, 3.0)))
def test_exponential_rate_keeps_its_promise_and_is_tight(k, epsilon):
    rate = fp.mechanisms.exponential_rate(k, epsilon)
    if rate == math.inf:
        assert epsilon >= mp.log(k)
        return
    with mp.workdps(400):
        assert mp.log(k) - oracle.exponential_entropy(k, rate) <= epsilon
    values = np.arange(k)
    kernel = fp.mechanisms.exponential(
        values, range(k), lambda y, v: abs(y - v), rate, [k]
    ).matrix()
    with mp.workdps(400):
        for row in kernel[:2]:
            total = mp.fsum(row)
            law = [mp.mpf(w) / total for w in row]
            assert mp.log(k) - o.entropy(law) <= epsilon
    if epsilon > 1e-20:
        with mp.workdps(400):
            more = mp.log(k) - oracle.exponential_entropy(k, rate * (1 + 1e-5))
            assert more > epsilon


def test_exponential_rate_at_the_ends():
    assert fp.mechanisms.exponential_rate(4, 0.0) == 0.0
    assert fp.mechanisms.exponential_rate(4, 700.0) == math.inf
    assert fp.mechanisms.exponential_rate(1, 0.0) == math.inf
    assert fp.mechanisms.exponential_rate(100_000, 1e-8) > 0.0


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.floats(0.0, 50.0), st.integers(0, 10**6))
def test_exponential_channel_follows_the_definition(answers, k, rate, seed):
    rng = np.random.default_rng(seed)
    distance = rng.integers(0, 4, (answers, k)).astype(float)  # with ties
    values = rng.integers(0, answers, 4)
    channel = fp.mechanisms.exponential(values, range(k), distance, rate, [2, 2])
    want = [oracle.exponential_row(distance[v].tolist(), rate) for v in values]
    np.testing.assert_allclose(channel.matrix(), want, rtol=1e-14, atol=0.0)
    assert fp.is_data_independent(channel)
    exact = math.log(k) - fp.mechanisms.exponential_entropy(k, rate)
    assert fp.data_independent_bound(channel) == pytest.approx(exact, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("rate", [1e308, math.inf])
def test_exponential_channel_at_huge_rates_is_sure(rate):
    channel = fp.mechanisms.exponential([0, 1], range(3), lambda y, v: abs(y - v), rate, [2])
    assert channel.matrix().tolist() == [[1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize("outputs", [3, {0, 1, 2}])
def test_exponential_outputs_have_an_order(outputs):
    with pytest.raises(fp.InvalidInput, match="order"):
        fp.mechanisms.exponential([0, 1], outputs, lambda y, v: abs(y - v), 1.0, [2])


@pytest.mark.parametrize("epsilon", [5e-324, 1e-322, 1e-310])
def test_exponential_rate_keeps_its_promise_among_the_least_doubles(epsilon):
    rate = fp.mechanisms.exponential_rate(2, epsilon)
    assert mp.mpf(rate) ** 2 / 8 <= mp.mpf(epsilon)  # ln 2 - H(Z) up to the fourth power


def test_exponential_entropy_of_too_many_outputs():
    with pytest.raises(fp.TooLarge, match="fewer outputs"):
        fp.mechanisms.exponential_entropy(10**400, 1.0)


def test_exponential_channel_takes_numbers_and_an_infinite_rate():
    answers = [0.5, 2.25, 0.5, 1.0]
    channel = fp.mechanisms.exponential(
        answers, [0.0, 1.0, 2.0], lambda y, v: (y - v) ** 2, math.inf, [2, 2]
    )
    # 0.5 is as far from 0 as from 1: the output listed first comes first.
    assert channel.matrix().tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.binary_symmetric([0, 1], 1.5, [2]),
        lambda m: m.binary_symmetric([0, 2], 0.5, [2]),
        lambda m: m.binary_symmetric_flip(-0.1),
        lambda m: m.binary_symmetric_flip(math.nan),
        lambda m: m.exponential([0, 1], [0, 1], [[0, 1]], 1.0, [2]),
        lambda m: m.exponential([0, 1], [0, 1, 2], [[0, 1], [1, 0]], 1.0, [2]),
        lambda m: m.exponential([0, 1], [0, 1], lambda y, v: -1.0, 1.0, [2]),
        lambda m: m.exponential([0, 1], [0, 1], lambda y, v: math.nan, 1.0, [2]),
        lambda m: m.exponential([0, 1], [0, 1], lambda y, v: abs(y - v), math.nan, [2]),
        lambda m: m.exponential([0, 1], [], lambda y, v: abs(y - v), 1.0, [2]),
        lambda m: m.exponential_entropy(0, 1.0),
        lambda m: m.exponential_entropy(3, -1.0),
        lambda m: m.exponential_rate(3, -1.0),
        lambda m: m.exponential_rate(2.5, 1.0),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(fp.InvalidInput):
        call(fp.mechanisms)
