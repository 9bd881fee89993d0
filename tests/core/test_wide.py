"""Numbers beyond doubles against fractions and long decimals."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpriv._core.rounding import ULP
from fastpriv._core.wide import Wide, scaled, wide, wide_exp, wide_from_logs, wide_powers

mantissas = st.floats(-1.0, 1.0).filter(lambda v: v == 0.0 or abs(v) > 1e-3)
exponents = st.integers(-5000, 5000)


def made(value, exponent):
    return scaled(np.array([value]), exponent)


def exact(number):
    (mantissa,), (exponent,) = number.mantissa.tolist(), number.exponent.tolist()
    return Fraction(mantissa) * Fraction(2) ** exponent if mantissa else Fraction(0)


def close(number, truth, size=None):
    return abs(exact(number) - truth) <= 2 * Fraction(ULP) * (abs(truth) if size is None else size)


@given(mantissas, exponents, mantissas, exponents)
def test_one_operation_has_one_rounding_error(a, j, b, k):
    x, y = made(a, j), made(b, k)
    p, q = exact(x), exact(y)
    assert close(x * y, p * q)
    assert close(x + y, p + q, abs(p) + abs(q))
    if b:
        assert close(x / y, p / q)


def test_sums_of_far_numbers_keep_the_large_one():
    numbers = Wide(np.array([0.5, 0.75, 0.0]), np.array([-4000, 3000, 0]))
    assert exact(numbers.sum(0)) == Fraction(3, 4) * Fraction(2) ** 3000
    assert exact(wide(np.zeros(3)).sum(0)) == 0


@pytest.mark.parametrize("value", [0.0, -1e-300, -1e-9, -0.7, -745.0, -1381.5, -20000.0, 900.0])
def test_exponentials(value):
    with mpmath.workdps(60):
        truth = mpmath.exp(mpmath.mpf(value))
        power = wide_powers(wide_exp(value), 3)[np.array([3])]
        for found, want, units in ((wide_exp(value), truth, 2), (power, truth**3, 10)):
            got = mpmath.mpf(found.mantissa.item()) * mpmath.mpf(2) ** found.exponent.item()
            assert abs(got / want - 1) <= units * ULP


def test_floats_and_logarithms():
    values = np.array([0.0, 5e-324, 1e-300, 0.3, 1.0])
    assert np.array_equal(wide(values).floats(), values)
    logs = (wide(values[1:]) * wide_exp(-2000.0)).logs()
    assert np.allclose(logs, np.log(values[1:]) - 2000.0, rtol=4 * ULP, atol=0.0)
    assert wide(values).logs()[0] == -np.inf
    assert np.allclose(wide_from_logs(logs).logs(), logs, rtol=4 * ULP, atol=0.0)
    assert wide_from_logs(np.array([-np.inf])).mantissa == 0.0
