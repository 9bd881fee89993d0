"""Directed rounding against exact arithmetic, and the assumption on the machine's library."""

import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpriv._core import rounding
from fastpriv._core.rounding import LEAST, LIBM, ULP, lowered, raised, round_up

LARGEST = math.nextafter(math.inf, 0.0)
finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-1e150, 1e150, allow_nan=False)
positive = st.floats(min_value=0.0, exclude_min=True, allow_infinity=False)


def is_least_above(result, exact):
    """Whether a double is the least that is no less than an exact number."""
    if result == math.inf:
        return exact > LARGEST
    below = math.nextafter(result, -math.inf)
    return Fraction(result) >= exact and (below == -math.inf or Fraction(below) < exact)


def is_largest_below(result, exact):
    return is_least_above(-result, -exact)


@given(st.lists(moderate, max_size=8))
def test_sums(parts):
    exact = sum(map(Fraction, parts))
    assert is_least_above(rounding.sum_up(parts), exact)
    assert is_largest_below(rounding.sum_down(parts), exact)


@given(finite, finite)
def test_products(a, b):
    exact = Fraction(a) * Fraction(b)
    assert is_least_above(rounding.product_up(a, b), exact)
    assert is_largest_below(rounding.product_down(a, b), exact)


@given(finite, positive)
def test_quotients(a, b):
    exact = Fraction(a) / Fraction(b)
    assert is_least_above(rounding.quotient_up(a, b), exact)


@given(st.floats(0.0, allow_infinity=False))
def test_roots(value):
    up = rounding.root_up(value)
    assert Fraction(up) ** 2 >= Fraction(value)
    assert up == 0.0 or Fraction(math.nextafter(up, 0.0)) ** 2 < Fraction(value)


@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=60), st.integers(0, 8))
def test_sum_error_covers_sums_of_rounded_terms(terms, each):
    factor = Fraction(each) * Fraction(2) ** -53
    exact = sum(Fraction(t) * (1 + factor) for t in terms)  # each term is off by ``each`` units
    size = sum(abs(Fraction(t)) for t in terms)
    error = Fraction(rounding.sum_error(len(terms), each)) * size
    for ordered in (terms, sorted(terms), sorted(terms, key=abs)):
        total = 0.0
        for term in ordered:
            total += term
        assert abs(Fraction(total) - exact) <= error


def test_edges():
    assert rounding.product_up(0.0, math.inf) == rounding.product_down(math.inf, 0.0) == 0.0
    assert rounding.product_up(LEAST, 0.5) == LEAST
    assert rounding.product_down(LEAST, 0.5) == 0.0
    assert rounding.product_up(1e308, 10.0) == math.inf
    assert rounding.product_down(1e308, 10.0) == LARGEST
    assert rounding.product_up(-1e308, 10.0) == -LARGEST
    assert rounding.product_down(math.inf, 2.0) == math.inf
    assert rounding.product_up(2.0, 3.0) == rounding.product_down(2.0, 3.0) == 6.0
    assert rounding.quotient_up(1.0, LEAST) == math.inf
    assert rounding.quotient_up(1.0, math.inf) == 0.0
    assert rounding.quotient_up(math.inf, 2.0) == math.inf
    assert rounding.sum_up([]) == rounding.sum_down([]) == 0.0
    assert rounding.sum_up([math.inf, 1.0]) == math.inf
    largest = sys.float_info.max
    assert rounding.sum_up([1e308, 1e308]) == math.inf
    assert rounding.sum_down([1e308, 1e308]) == largest
    assert (
        rounding.sum_up([1e308, 1e308, -1e308])
        == rounding.sum_down([1e308, 1e308, -1e308])
        == 1e308
    )
    assert rounding.root_up(4.0) == 2.0
    assert rounding.root_up(math.inf) == math.inf


@given(finite, st.integers(1, 64), st.floats(-1.0, 1.0))
def test_raised_and_lowered_cover_their_errors(value, units, share):
    # One unit for 2 and units - 2 above that, and as many least doubles, counting one for the sum.
    covered = max(1, units - 2) if units > 1 else 0
    error = abs(Fraction(share)) * covered * Fraction(ULP) * abs(Fraction(value))
    up, down = raised(value, units), lowered(value, units)
    if value != 0.0:
        error += Fraction(LEAST) * (units - 1) / 2
    if up < math.inf:  # rounding keeps the sign
        top = Fraction(value) + error
        assert Fraction(up) >= (min(top, 0) if value < 0.0 else top)
    if down > -math.inf:
        least = Fraction(value) - error
        assert Fraction(down) <= (max(least, 0) if value > 0.0 else least)


@given(st.floats(-1e300, 1e300), st.integers(2, 64))
def test_raised_is_no_more_than_it_says(value, units):
    room = (units + 2) * (Fraction(ULP) * abs(Fraction(value)) + Fraction(LEAST))
    assert Fraction(raised(value, units)) <= Fraction(value) + room
    assert Fraction(lowered(value, units)) >= Fraction(value) - room


@given(st.lists(finite, min_size=1, max_size=5), st.integers(1, 40))
def test_arrays_are_rounded_like_numbers(values, units):
    array = np.array(values)
    with np.errstate(over="ignore"):
        up, down = raised(array, units), lowered(array, units)
    assert up.tolist() == [raised(v, units) for v in values]
    assert down.tolist() == [lowered(v, units) for v in values]


def test_zero_and_infinity_stay():
    assert raised(0.0, 8.0) == lowered(0.0, 8.0) == round_up(0.0) == round_up(-1.0) == 0.0
    assert raised(math.inf, 8.0) == math.inf == -lowered(-math.inf, 8.0)
    assert raised(-math.inf, 8.0) == -math.inf
    assert raised(LEAST, 4.0) == 5 * LEAST
    assert lowered(LEAST, 4.0) == 0.0 == raised(-LEAST, 4.0)  # rounding keeps the sign
    assert raised(np.array([-LEAST]), 4.0)[0] == 0.0
    assert rounding.directed(1.0, 4.0, True) == raised(1.0, 4.0)
    assert rounding.directed(1.0, 4.0, False) == lowered(1.0, 4.0)
    assert round_up(1.0) == 1.0 + 2.0**-51


FUNCTIONS = {
    "log": (math.log, rounding.log_up, rounding.log_down, mpmath.log),
    "log1p": (math.log1p, rounding.log1p_up, rounding.log1p_down, mpmath.log1p),
    "exp": (math.exp, rounding.exp_up, rounding.exp_down, mpmath.exp),
    "expm1": (math.expm1, rounding.expm1_up, rounding.expm1_down, mpmath.expm1),
}
VECTORS = {"log": np.log, "log1p": np.log1p, "exp": np.exp, "expm1": np.expm1}


def drawn(name, count, seed):
    """Arguments of every size, and close to where the function is 0 or 1."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-323, 308 if name.startswith("log") else 2.84, count)
    near = rng.uniform(-1.0, 1.0, count) * 10.0 ** rng.uniform(-17, 0, count)
    if name == "log":
        return np.concatenate([sizes, 1.0 + near / 2])
    if name == "log1p":
        return np.concatenate([sizes, near * 0.999999])
    return np.concatenate([sizes, -sizes, near])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_library_is_within_the_assumed_units(name):
    # What the proofs take for granted; an ulp of a denormal result is the least double.
    plain, _, _, exact = FUNCTIONS[name]
    values = drawn(name, 1000, 5)
    with mpmath.workdps(60), np.errstate(over="ignore", under="ignore"):
        for x, vector in zip(values.tolist(), VECTORS[name](values).tolist(), strict=True):
            truth = exact(mpmath.mpf(x))
            if truth > LARGEST:
                continue
            for computed in (plain(x), vector):
                assert abs(computed - truth) <= LIBM * math.ulp(computed), x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_rounded_outwards(name):
    _, up, down, exact = FUNCTIONS[name]
    with mpmath.workdps(60):
        for x in drawn(name, 300, 6).tolist():
            truth = exact(mpmath.mpf(x))
            assert down(x) <= truth <= up(x)
            if abs(truth) < 1e300:
                assert up(x) - down(x) <= 4 * (LIBM + 1) * math.ulp(float(truth))


def test_functions_are_exact_where_they_can_be():
    for up, down in ((rounding.log_up, rounding.log_down), (rounding.exp_up, rounding.exp_down)):
        at = 1.0 if up is rounding.log_up else 0.0
        assert up(at) == down(at) == 1.0 - at
    assert rounding.log1p_up(0.0) == rounding.log1p_down(0.0) == 0.0
    assert rounding.expm1_up(0.0) == rounding.expm1_down(0.0) == 0.0
    assert rounding.log_up(0.0) == rounding.log_down(0.0) == -math.inf
    assert rounding.log1p_up(-1.0) == rounding.log1p_down(-1.0) == -math.inf
    assert rounding.exp_up(-800.0) == LEAST
    assert rounding.exp_down(-800.0) == 0.0
    for beyond in (709.0, 709.9, 710.0):  # from 709.79 on the machine's library refuses
        assert rounding.exp_up(beyond) == math.inf == rounding.expm1_up(beyond)
        assert 8e307 < rounding.exp_down(beyond) < math.inf
        assert 8e307 < rounding.expm1_down(beyond) < math.inf
    assert rounding.expm1_down(-800.0) == -1.0
    assert -1.0 < rounding.expm1_up(-800.0) < -0.999


@given(st.floats(0.0, 1e300), st.floats(0.0, 1e300))
def test_least_float_is_the_first_that_holds(low, high):
    if low >= high:
        low, high = high, math.nextafter(low, math.inf)
    edge = low + (high - low) / 3.0
    result = rounding.least_float(lambda x: x >= edge, low, high)
    assert result == max(edge, math.nextafter(low, math.inf))


def test_constants_are_those_of_doubles():
    assert sys.float_info.min == rounding.NORMAL
    assert math.ulp(0.0) == rounding.LEAST
    assert sys.float_info.epsilon == 2.0 * rounding.ULP


@pytest.mark.parametrize("level", [5e-324, 1e-310, 0.1, 1.0, 700.0])
def test_levels_are_raised_by_four_units(level):
    assert rounding.round_up(level) == rounding.raised(level, 4.0) > rounding.raised(level, 2.0)


def test_logs_of_fractions_are_the_least_doubles_above():
    rng = np.random.default_rng(8)
    ratios = [Fraction(int(a) + int(b), int(b)) for a, b in rng.integers(1, 2**62, (200, 2))]
    tiny = [Fraction(2**k + 1, 2**k) for k in (1, 52, 53, 200)]
    for ratio in [*ratios, *tiny, Fraction(10**400, 3)]:
        level = rounding.ratio_log_up(ratio)
        with mpmath.workdps(150):
            exact = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
            assert level >= exact
            assert math.nextafter(level, 0.0) < exact + mpmath.mpf(10) ** -49
    assert rounding.ratio_log_up(Fraction(1)) == 0.0
