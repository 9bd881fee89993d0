"""A bracket as a number: which end it is, how it compares, converts and hashes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpriv as fp

ENDS = st.floats(0.0, 1e6, allow_nan=False)


def test_the_number_is_the_guaranteed_end():
    assert float(fp.Bracket(0.25, 0.5)) == 0.5
    assert float(fp.Bracket(0.25, 0.5, guaranteed="lower")) == 0.25
    channel = fp.HammingChannel(2, 2, 1.0)
    assert float(fp.individual_capacity(channel)) == fp.individual_capacity(channel).upper
    gained = fp.balance_function(channel, 1.0)
    assert float(gained) == gained.lower < gained.upper


@given(ENDS, ENDS, ENDS)
def test_orders_compare_the_guaranteed_end(a, b, number):
    lower, upper = sorted((a, b))
    bracket = fp.Bracket(lower, upper)
    assert (bracket <= number) == (upper <= number) == (number >= bracket)
    assert (bracket < number) == (upper < number) == (number > bracket)
    assert (bracket >= number) == (upper >= number)
    assert (bracket > number) == (upper > number)
    other = fp.Bracket(0.0, number)
    assert (bracket <= other) == (upper <= number)
    assert max([bracket, other], key=float) in (bracket, other)


@given(ENDS, ENDS)
def test_equality_needs_both_ends(a, b):
    lower, upper = sorted((a, b))
    bracket = fp.Bracket(lower, upper)
    assert bracket == fp.Bracket(lower, upper)
    assert hash(bracket) == hash(fp.Bracket(lower, upper))
    assert (bracket == upper) == (lower == upper)
    if lower == upper:
        assert hash(bracket) == hash(upper)
        assert {bracket: 1}[upper] == 1
        assert bracket == Fraction(upper)


def test_arrays_hold_the_guaranteed_end():
    brackets = [fp.Bracket(0.0, 0.5), fp.Bracket(1.0, math.inf)]
    np.testing.assert_array_equal(np.array(brackets), [0.5, math.inf])
    np.testing.assert_array_equal(np.asarray(brackets, dtype=np.float64), [0.5, math.inf])
    assert np.float64(brackets[0]) == 0.5
    assert np.maximum(brackets[0], 0.25) == 0.5


def test_other_objects_are_neither_equal_nor_ordered():
    assert fp.Bracket(0.0, 1.0) != "0 to 1"
    with pytest.raises(TypeError):
        assert fp.Bracket(0.0, 1.0) < "1"


def test_formats_both_ends():
    assert f"{fp.Bracket(0.25, 0.5):.3f}" == "[0.250, 0.500]"


def test_every_error_has_one_base():
    errors = (
        fp.BudgetExceeded,
        fp.Infeasible,
        fp.InvalidInput,
        fp.LedgerError,
        fp.SolverFailure,
        fp.TooLarge,
    )
    assert all(issubclass(error, fp.FastprivError) for error in errors)
    with pytest.raises(fp.FastprivError, match="epsilon"):
        fp.HammingChannel(2, 2, -1.0)


def test_a_law_takes_a_space_like_a_channel_does():
    space = fp.Space([2, 2])
    prior = fp.Dense([0.4, 0.1, 0.2, 0.3], space)
    assert prior.space is space
    assert prior.epsilon_x() == fp.Dense([0.4, 0.1, 0.2, 0.3], [2, 2]).epsilon_x()
    with pytest.raises(fp.InvalidInput, match="databases"):
        fp.Dense([0.5, 0.5], space)
