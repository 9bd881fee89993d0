"""Maximal leakage under adaptive choice, by listing all paths in exact arithmetic."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.accounting import LAWS
from fastpriv.notions.notion import ADAPTIVE


@st.composite
def channels(draw, inputs, outputs):
    rows = []
    for _ in range(inputs):
        weights = draw(st.lists(st.integers(0, 9), min_size=outputs, max_size=outputs).filter(any))
        rows.append([Fraction(w, sum(weights)) for w in weights])
    return rows


def maxima(rows):
    """e to the maximal leakage."""
    return sum(max(column) for column in zip(*rows, strict=True))


@pytest.mark.search(every=10)
@settings(deadline=None)
@given(st.data())
def test_maximal_leakage_adds_when_the_second_mechanism_is_chosen_by_the_first_output(data):
    first = data.draw(channels(3, 2))
    chosen = [data.draw(channels(3, 3)) for _ in range(2)]  # by the first output
    joint = [
        [first[x][y] * chosen[y][x][z] for y, z in itertools.product(range(2), range(3))]
        for x in range(3)
    ]
    whole = maxima(joint)
    assert whole <= maxima(first) * max(map(maxima, chosen))
    # A budget that is kept on every path is kept by all of them together.
    budget = max(maxima(first) * maxima(second) for second in chosen)
    assert whole <= budget
    measured = fp.maximal_leakage([[float(p) for p in row] for row in joint])
    assert measured == pytest.approx(math.log(whole), rel=1e-9, abs=1e-12)


def test_releases_about_different_rows_attain_the_sum():
    exact = [[1.0, 0.0], [0.0, 1.0]]
    both = fp.maximal_leakage(fp.ProductChannel([exact, exact]))
    assert both == pytest.approx(2.0 * fp.maximal_leakage(exact), rel=1e-12)


def test_the_law_says_so():
    law = LAWS["maximal-leakage"]
    assert law.needs == ADAPTIVE
    assert law.first == law.later == "maximal-leakage"
    assert "maximal leakage add, even if" in " ".join(fp.accounting.Ledger.__doc__.split())
