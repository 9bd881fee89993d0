"""Values in messages: short, on one line, whatever was given."""

import fractions
import functools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fastpriv as fp
from fastpriv.errors import cause, described, short


class Mute:
    def __repr__(self):
        raise ValueError("no text")


class Slow:
    def __repr__(self):
        raise AssertionError("asked for a text that may take for ever")


def deep():
    return functools.reduce(lambda inner, _: [inner], range(5000), [0.5])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (np.float64(0.1), "0.1"),
        (np.array(2), "2"),
        (np.zeros((2, 0)), "an array of shape (2, 0)"),
        ([np.float64(1.0), np.int8(2)], "[1.0, 2]"),
        ((0.5,), "(0.5,)"),
        ({"a": [1, {2}]}, "{'a': [1, {2}]}"),
        (set(), "set()"),
        (list(range(20)), "[0, 1, 2, 3, 4, 5, 6, 7, ...]"),
        (-(10**30), "about -2^99"),
        ("a\nb", r"'a\nb'"),
        (None, "None"),
        (len, "a function"),
        (int, "the class int"),
        (object(), "an object"),
        (pd.DataFrame({"a": [1]}), "a DataFrame"),
        (Mute(), "a Mute"),
        ([Slow()], "[a Slow]"),
        (fractions.Fraction(1, 3), "Fraction(1, 3)"),
        (fractions.Fraction(10**5000, 3), "a Fraction"),
        (fp.Uniform(2, 2), "Uniform(n=2, m=2)"),
    ],
    ids=range(21),
)
def test_values_are_described(value, text):
    assert described(value) == text


@pytest.mark.parametrize("value", ["x" * 10**6, deep(), [["y" * 50] * 8] * 8], ids=range(3))
def test_descriptions_are_short(value):
    assert len(described(value)) <= 80


@pytest.mark.parametrize("value", [deep(), [Mute()], {"a": deep()}, Mute()], ids=range(4))
@pytest.mark.parametrize(
    "call",
    [
        lambda value: fp.HammingChannel(value, 2, 1.0),
        lambda value: fp.HammingChannel(2, 2, value),
        lambda value: fp.Product(value),
        lambda value: fp.solve_pd_dp([0.5, 0.5], 1.0, solver=value),
        lambda value: fp.audit([[1.0]], name=value),
        lambda value: fp.audit([[1.0]], notions=value),
        lambda value: fp.accounting.PrivacyProfile.gaussian(1.0, relation=value),
        lambda value: fp.accounting.PrivacyFilter.from_dict({"epsilon": value}),
        lambda value: fp.accounting.Ledger({"dp": value}),
        lambda value: fp.Product.from_dict({"fastpriv": value, "version": 1, "kind": value}),
    ],
    ids=range(10),
)
def test_what_cannot_be_written_is_refused_in_words(call, value):
    with pytest.raises(fp.InvalidInput):
        call(value)


def test_numbers_of_numpy_are_numbers():
    with pytest.raises(fp.Infeasible, match=r"smallest cost of input 0 is 1\.0; got 0\.5"):
        fp.least_capacity([[1.0, 2.0], [2.0, 1.0]], [0.5, 1.5])


def test_what_cannot_be_read_is_named():
    read = fp.accounting.PrivacyFilter.from_dict
    with pytest.raises(fp.InvalidInput, match="'delta' is missing or not known"):
        read({"epsilon": 1.0})
    with pytest.raises(fp.InvalidInput, match="a filter must be a mapping, such as a dict; got 5"):
        read(5)
    assert cause(TypeError("'int' object is not subscriptable")) == "it has another form"


def test_counts_keep_their_sign():
    assert short(-(2**70)) == "about -2^70"
    assert short(-5) == "-5"


def test_nothing_else_cuts_texts_for_messages():
    sources = Path(fp.__file__).parent.rglob("*.py")
    cut = [str(path) for path in sources if re.search(r"!r:\.\d", path.read_text("utf-8"))]
    assert not cut
