"""Printed numbers: never on the wrong side, exact where they are exact, JSON in one dialect."""

import json
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv._text.encoding import number, plain, to_json
from fastpriv._text.numbers import down, quantity, shown, up
from fastpriv._text.table import table

positive = st.floats(0.0, 1e308)


@given(positive, st.integers(1, 17))
@example(0.30000000000000004, 6)
@example(2.0 * (1 + 2**-51), 6)
@example(5.999999999999999, 9)
@example(5e-324, 1)
@example(1.7976931348623157e308, 2)
def test_what_is_printed_is_on_the_safe_side(value, digits):
    above, below = up(value, digits), down(value, digits)
    assert float(below) <= value <= float(above)
    assert Decimal(below) <= Decimal(repr(value)) <= Decimal(above)
    unit = Decimal(1).scaleb(Decimal(repr(value)).adjusted() - digits + 1) if value else 0
    assert Decimal(above) - Decimal(below) <= unit


@given(st.decimals(0, 10**9, places=3), st.integers(12, 15))
def test_exact_decimals_print_exactly(value, digits):
    for text in (up(float(value), digits), down(float(value), digits)):
        assert Decimal(text) == value


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.1, 9, "0.1"),
        (2.0, 9, "2"),
        (6.0, 9, "6"),
        (0.69314718056, 9, "0.693147181"),
        (math.log(2), 6, "0.693148"),
        (1.0000000000000002, 9, "1.00000001"),
        (1e6, 6, "1000000"),
        (1e9, 9, "1e9"),
        (1e-4, 6, "0.0001"),
        (1.25e-5, 6, "1.25e-5"),
        (0.0, 6, "0"),
        (math.inf, 6, "infinite"),
        (-math.inf, 6, "-infinite"),
        (True, 6, "yes"),
        (False, 6, "no"),
        (7, 6, "7"),
        (2**60, 6, "about 2^60"),
        (fp.Bracket(0.25, 0.5), 6, "[0.25, 0.5]"),
        (fp.Bracket(0.5, 0.5), 6, "0.5"),
        (fp.Bracket(1 / 3, 1 / 3 + 1e-12), 6, "0.333334"),
        (fp.Bracket(1 / 3, 2 / 3), 9, "[0.333333333, 0.666666667]"),
        (fp.Bracket(1.0, math.inf), 6, "[1, infinite]"),
    ],
)
def test_how_values_are_shown(value, digits, text):
    assert shown(value, digits) == text


@given(positive, positive)
def test_brackets_are_rounded_outwards(a, b):
    bracket = fp.Bracket(min(a, b), max(a, b))
    low, high = repr(bracket).removeprefix("Bracket(").removesuffix(")").split(", ")
    assert float(low) <= bracket.lower <= bracket.upper <= float(high)


def test_a_number_from_below_is_rounded_down():
    assert shown(2 / 3, 4, from_below=True) == "0.6666"
    assert shown(fp.Bracket(2 / 3, 2 / 3 + 1e-12), 4, from_below=True) == "0.6666"


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        ("1", "nats", "1 nat"),
        ("1", "rows", "1 row"),
        ("1", "share", "1 share"),
        ("0", "outputs", "0 outputs"),
        ("1.5", "bits", "1.5 bits"),
        ("infinite", "nats", "infinite"),
        ("yes", "", "yes"),
    ],
)
def test_units(number, unit, text):
    assert quantity(number, unit) == text


def test_one_value_is_not_said_to_come_one_times():
    databases = np.array([[0] * 20 + [1], [1] * 21])
    words = repr(fp.Witness(databases[0], databases[1]))
    assert words == "output 0 (20 times) 1, from 1 (21 times)"


def test_json_has_one_spelling_of_everything():
    value = {
        "infinite": [math.inf, 1.0],
        "bracket": fp.Bracket(0.0, math.inf),
        "count": 2**60,
        "array": np.array([[1.0, np.inf]]),
        "scalar": np.float64(0.5),
        "exact": Decimal("0.1"),
        "witness": fp.Witness(np.array([0]), np.array([1])),
        "nothing": None,
        "words": "é",
    }
    assert json.loads(to_json(value)) == {
        "infinite": ["infinite", 1.0],
        "bracket": {"lower": 0.0, "upper": "infinite"},
        "count": "about 2^60",
        "array": [[1.0, "infinite"]],
        "scalar": 0.5,
        "exact": "0.1",
        "witness": {"output": [0], "database": [1], "other": None, "row": None},
        "nothing": None,
        "words": "é",
    }


@pytest.mark.parametrize("level", [0.25, 0.0, math.inf, fp.Bracket(0.1, 0.2)])
def test_levels_are_read_back(level):
    assert number(plain(level)) == float(level)


def test_a_level_that_is_no_number_is_not_read():
    with pytest.raises(ValueError, match="nothing"):
        number("nothing")
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(math.nan)


def test_cells_stay_on_one_line():
    assert table([("a\nb", "c"), ("d", "e")], "  ") == "  a\\nb  c\n  d     e"
