"""Logarithms and exponentials with a proved error: the next double on the safe side."""

import math

import mpmath
import numpy as np
import pytest
from numba import config

from fastpriv import kernels
from fastpriv._core import rounding
from fastpriv._core.logs import log_ratio
from fastpriv.kernels import logs


def numbers(count, seed):
    """Positive numbers of every size: any, powers of two, subnormal ones, and close to one."""
    rng = np.random.default_rng(seed)
    near = 1.0 + rng.uniform(-1.0, 1.0, count) * 10.0 ** rng.uniform(-16, -0.1, count)
    any_size = 10.0 ** rng.uniform(-323, 308, count)
    powers = np.ldexp(1.0, rng.integers(-1074, 1024, count))
    subnormal = np.ldexp(rng.integers(1, 2**20, count).astype(float), -1074)
    return np.concatenate([near, any_size, powers, subnormal])


def pairs(count, seed):
    """Tops and bottoms: of every size, and a few doubles apart."""
    rng = np.random.default_rng(seed + 100)
    top, bottom = numbers(count, seed), rng.permutation(numbers(count, seed + 1))
    close = rng.uniform(0.1, 1.0, count)
    apart = close * (1.0 + rng.integers(-9, 9, count) * 2.0**-52)
    ones = np.ones(count)
    return np.concatenate([top, close, top[:count]]), np.concatenate([bottom, apart, ones])


def exact_log(top, bottom):
    return mpmath.log(mpmath.mpf(top) / mpmath.mpf(bottom))


def is_next_double(value, truth, up):
    """Whether a double is the first on one side, or the truth is within 2^-88 of a double."""
    if truth == 0:
        return value == 0.0
    side = 1 if up else -1
    inner = math.nextafter(value, -side * math.inf)
    return (
        side * value >= side * truth and side * (inner - truth) < abs(truth) * mpmath.mpf(2) ** -88
    )


def test_compiled_logarithms_are_the_least_doubles_above():
    with mpmath.workprec(300):
        for top, bottom in zip(*(part.tolist() for part in pairs(300, 1)), strict=True):
            level = kernels.log_ratio_up(top, bottom)
            assert is_next_double(level, exact_log(top, bottom), True), (top, bottom)


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_plain_logarithms_are_the_compiled_ones():
    # The same steps in Python: nothing depends on how a compiler orders or fuses them.
    plain = {
        name: getattr(getattr(logs, name), "py_func", getattr(logs, name)) for name in dir(logs)
    }
    scope = {name: value for name, value in plain.items() if not name.startswith("__")}
    for name, function in scope.items():
        if callable(function) and getattr(function, "__module__", "") == logs.__name__:
            scope[name] = type(function)(function.__code__, scope, name, function.__defaults__)
    for top, bottom in zip(*(part.tolist() for part in pairs(100, 2)), strict=True):
        assert scope["ratio_up"](top, bottom) == kernels.log_ratio_up(top, bottom)


def test_compiled_logarithms_are_the_integers():
    for top, bottom in zip(*(part.tolist() for part in pairs(200, 3)), strict=True):
        first, second = top.as_integer_ratio(), bottom.as_integer_ratio()
        exact = rounding._log_up(first[0] * second[1], first[1] * second[0])
        compiled = kernels.log_ratio_up(top, bottom)
        assert exact <= compiled <= math.nextafter(exact, math.inf)
        assert compiled == exact or abs(exact) < 1e-10  # a tie within 2^-90: ln(1 + x) near x


def test_short_logarithms_are_within_their_units():
    top, bottom = pairs(300, 4)
    values = log_ratio(top, bottom)
    with mpmath.workprec(300):
        for a, b, value in zip(top.tolist(), bottom.tolist(), values.tolist(), strict=True):
            truth = exact_log(a, b)
            assert abs(value - truth) <= abs(truth) * 1.25 * rounding.ULP, (a, b)


def test_logarithms_of_zero_and_infinity():
    values = log_ratio(np.array([1.0, 0.0, math.inf, 2.0]), np.array([0.0, 1.0, 1.0, 2.0]))
    assert values.tolist() == [math.inf, -math.inf, math.inf, 0.0]
    assert kernels.log_ratio_up(1.0, 0.0) == math.inf
    assert kernels.log_ratio_up(5e-324, 5e-324) == 0.0
    assert kernels.log_excess_up(0.0, 3) == 0.0
    assert kernels.log_excess_up(math.inf, 1) == math.inf


def test_an_excess_is_moved_past_its_roundings():
    rng = np.random.default_rng(5)
    excesses = np.concatenate([10.0 ** rng.uniform(-323, 308, 300), rng.uniform(0.0, 2.0, 300)])
    with mpmath.workprec(2400):
        for excess in excesses.tolist():
            for roundings in (0, 1, 2, 3):
                moved = excess
                for _ in range(roundings):
                    moved = math.nextafter(moved, math.inf)
                level = kernels.log_excess_up(excess, roundings)
                assert is_next_double(level, mpmath.log(1 + mpmath.mpf(moved)), True)


def arguments(name, count, seed):
    rng = np.random.default_rng(seed)
    tiny = rng.uniform(-1.0, 1.0, count) * 10.0 ** rng.uniform(-323, 0, count)
    near = rng.uniform(-1.0, 1.0, count) * 10.0 ** rng.uniform(-17, 0, count)
    if name == "log":
        return numbers(count, seed)
    if name == "log1p":
        return np.concatenate([numbers(count, seed), 0.9999 * tiny, 0.9999 * near])
    sizes = 10.0 ** rng.uniform(-323, 2.85, count)
    return np.concatenate([sizes, -sizes, tiny, near])


EXACT = {
    "log": mpmath.log,
    "log1p": lambda x: mpmath.log(1 + x),
    "exp": mpmath.exp,
    "expm1": lambda x: mpmath.exp(x) - 1,
}


@pytest.mark.parametrize("name", EXACT)
def test_functions_are_the_next_doubles(name):
    up, down = (getattr(rounding, f"{name}_{side}") for side in ("up", "down"))
    with mpmath.workprec(2400):
        for x in arguments(name, 120, 6).tolist():
            if name in ("exp", "expm1") and x >= 709.0:
                continue
            truth, first, last = EXACT[name](mpmath.mpf(x)), down(x), up(x)
            assert first <= truth <= last, x
            assert first == last or math.nextafter(first, math.inf) == last, x


def test_integers_beyond_doubles_have_logarithms():
    with mpmath.workprec(300):
        for value in (2**53 + 1, 3**700, 10**400):
            truth = mpmath.log(mpmath.mpf(value))
            assert is_next_double(rounding.log_up(value), truth, True)
            assert is_next_double(rounding.log_down(value), truth, False)


def test_levels_asked_for_are_reached():
    # The ratio e^1 rounded down has a level just below 1, which is reported as at most 1.
    from fastpriv import dp_level

    for level in (0.25, 1.0, 2.0, 3.5):
        ratio = rounding.exp_down(level)
        for low in (2.0**-3, 2.0**-10):
            matrix = [[ratio * low, 1.0 - ratio * low], [low, 1.0 - low]]
            if ratio * low < 0.5:
                assert dp_level(matrix) <= math.nextafter(math.nextafter(level, 9.0), 9.0)


def test_many_logarithms_at_once_are_those_of_one_number():
    top, bottom = pairs(500, 5)
    top, bottom = np.maximum(top, bottom), np.minimum(top, bottom)
    bottom[::97], top[::89] = 0.0, bottom[::89]
    stack = np.column_stack([top, bottom])[:, :, None]
    many, one = np.empty(len(stack)), np.empty(1)
    assert kernels.ratio_levels(stack, math.inf, many) == -1
    for b in range(len(stack)):
        kernels.ratio_levels(stack[b : b + 1], math.inf, one)
        assert many[b] == one[0], (top[b], bottom[b])
    with mpmath.workprec(300):
        for b in range(0, len(stack), 7):
            if bottom[b] > 0.0:
                assert exact_log(top[b], bottom[b]) <= many[b]
            else:
                assert many[b] == (math.inf if top[b] > 0.0 else 0.0)
