"""Ledgers: exact sums of levels, and what is refused."""

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.accounting import Ledger
from fastpriv.errors import BudgetExceeded, InvalidInput
from oracles.ledger import accept, exact


def test_ten_tenths_are_one(make):
    ledger = make({"dp": 1.0})
    for _ in range(10):
        ledger.spend({"dp": 0.1})
    assert ledger.spent == {"dp": 1.0}
    assert ledger.remaining == {"dp": 0.0}
    with pytest.raises(BudgetExceeded):
        ledger.spend({"dp": 5e-324})
    ledger.spend({"dp": 0})
    assert len(ledger) == 11


def test_ten_channels_of_a_tenth_fit_one(make):
    ledger = make({"dp": 1.0})
    channel = fp.HammingChannel(5, 3, 0.1)
    ledger.spend(channel)
    ledger.spend(channel, count=9)
    assert ledger.spent["dp"] <= 1.0
    with pytest.raises(BudgetExceeded):
        ledger.spend(channel)


LEVELS = st.one_of(
    st.floats(0.0, 1.0), st.sampled_from([0.1, 0.2, 0.3, 0.7, 1e-8, 5e-324, 1e-300, 1e300, 700.0])
)


@settings(deadline=None)
@given(budget=st.floats(0.0, 3.0), levels=st.lists(LEVELS, max_size=12))
def test_accepts_exactly_what_fits(budget, levels):
    taken, total = accept(budget, levels)
    ledger, found = Ledger({"dp": budget}), []
    for level in levels:
        try:
            ledger.spend({"dp": level})
            found.append(True)
        except BudgetExceeded:
            found.append(False)
    assert found == taken
    spent, left = ledger.spent["dp"], ledger.remaining["dp"]
    assert exact(spent) >= total  # rounded up, and no further than needed
    assert spent == 0.0 or exact(math.nextafter(spent, 0.0)) < total
    assert exact(left) <= exact(budget) - total
    assert exact(math.nextafter(left, math.inf)) > exact(budget) - total
    assert sum(Fraction(Decimal(r.charged["dp"].__repr__())) for r in ledger.history()) == total
    ledger.spend({"dp": left})


@settings(deadline=None)
@given(level=st.floats(0.0, 1.0), count=st.integers(1, 2**63 - 1))
def test_count_is_that_many_spends(level, count):
    ledger = Ledger({"dp": 1.0})
    if exact(level) * count <= 1:
        ledger.spend({"dp": level}, count=count)
        assert exact(ledger.spent["dp"]) >= exact(level) * count
    else:
        with pytest.raises(BudgetExceeded):
            ledger.spend({"dp": level}, count=count)
        assert ledger.spent["dp"] == 0.0


def test_other_numbers_are_taken_for_what_they_are():
    ledger = Ledger({"dp": Decimal("0.3"), "strong-dp": 7})
    ledger.spend({"dp": "0.1", "strong-dp": 2})
    ledger.spend({"dp": np.float64(0.1), "strong-dp": np.int64(5)})
    ledger.spend({"dp": Decimal("0.1"), "strong-dp": 0})
    assert ledger.spent == {"dp": 0.3, "strong-dp": 7.0}
    assert ledger.budget == {"dp": 0.3, "strong-dp": 7.0}


def test_too_much_says_what_and_spends_nothing(make):
    ledger = make({"dp": 1.0, "mutual-information": 0.25})
    ledger.spend({"dp": 0.25, "mutual-information": 0.125})
    with pytest.raises(BudgetExceeded, match=r"mutual-information: .* asks for 0\.5 but 0\.125 of"):
        ledger.spend({"dp": 0.25, "mutual-information": 0.5})
    with pytest.raises(BudgetExceeded) as caught:
        ledger.spend({"dp": math.inf, "mutual-information": 0.0})
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.notion, error.asked, error.remaining, error.budget) == ("dp", math.inf, 0.75, 1.0)
    assert str(error) == str(caught.value)
    assert ledger.spent == {"dp": 0.25, "mutual-information": 0.125}
    assert len(ledger) == len(ledger.history()) == 1


@pytest.mark.parametrize(
    "budget",
    [None, {}, 3.0, {"dp": -1}, {"dp": math.nan}, {"dp": math.inf}, {"dp": "much"}, {"dp": None},
     {"dp": True}, {"privacy": 1.0}, {"dp": Decimal("1e-4000")}, {"dp": 10**400}],
)  # fmt: skip
def test_budgets_that_mean_nothing(budget):
    with pytest.raises(InvalidInput):
        Ledger(budget)


@pytest.mark.parametrize(
    "arguments",
    [
        {"mechanism": {"dp": -0.1}},
        {"mechanism": {"dp": math.nan}},
        {"mechanism": {"dp": "a lot"}},
        {"mechanism": {"privacy": 0.1}},
        {"mechanism": {}},
        {"mechanism": 0.1},
        {"mechanism": None},
        {"mechanism": {"dp": 0.1}, "count": 0},
        {"mechanism": {"dp": 0.1}, "count": 1.5},
        {"mechanism": {"dp": 0.0}, "count": 2**63},
        {"mechanism": {"dp": 0.1}, "label": 7},
        {"mechanism": {"dp": 0.1}, "label": "\ud800"},
        {"mechanism": fp.Uniform(2, 2)},
    ],
)
def test_spends_that_mean_nothing(make, arguments):
    ledger = make({"dp": 1.0})
    with pytest.raises(InvalidInput):
        ledger.spend(**arguments)
    assert ledger.spent == {"dp": 0.0}
    assert len(ledger) == 0
