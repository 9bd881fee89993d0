"""Ledgers: budgets of epsilon and delta."""

import json
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting import Ledger
from fastpriv.errors import BudgetExceeded, InvalidInput


@pytest.mark.parametrize("budget", [(23.5, 1e-6), {"epsilon": "23.5", "delta": 1e-6}])
def test_profiles_compose(budget, make):
    ledger, channel = make({"approximate-dp": budget, "dp": 100}), fp.HammingChannel(10**6, 4, 0.5)
    ledger.spend(channel, count=60)
    ledger.spend(channel, count=39)
    ledger.spend(channel)
    assert ledger.spent["dp"] == pytest.approx(50.0, rel=1e-12)
    assert ledger.spent["approximate-dp"] == pytest.approx(23.4674670330556, rel=1e-9)
    assert ledger.spent["approximate-dp"] >= 23.46746703305
    assert ledger.budget == {"approximate-dp": (23.5, 1e-6), "dp": 100.0}
    with pytest.raises(BudgetExceeded) as caught:
        ledger.spend(channel)
    assert caught.value.notion == "approximate-dp"
    assert caught.value.remaining == pytest.approx(0.0325, abs=1e-4)
    assert "epsilon at delta 1e-06" in ledger.report()
    assert [receipt.count for receipt in ledger.history()] == [60, 39, 1]


def test_profiles_of_different_releases_compose(path):
    W, declared = fp.Channel([[0.6, 0.3, 0.1], [0.2, 0.3, 0.5]]), {"approximate-dp": (0.5, 1e-9)}
    of = fp.accounting.PrivacyProfile
    with Ledger.open(path, {"approximate-dp": (30.0, 1e-6)}) as ledger, Ledger.open(path) as other:
        ledger.spend(W, count=3)
        other.spend(declared, count=2)
        ledger.spend({"dp": 0.25})
        other.spend(np.asarray(W.matrix()))
        more = of.from_epsilon_delta(0.5, 1e-9).self_compose(2), of.from_epsilon_delta(0.25)
        truth = (
            of.of(W).self_compose(4).compose(*(each.with_relation("replace-one") for each in more))
        )
        found = truth.epsilon(1e-6)
        assert ledger.spent == other.spent
        assert found.lower <= ledger.spent["approximate-dp"] <= found.upper * (1 + 1e-12)
        again = Ledger.from_json(ledger.to_json())
        assert again.spent == ledger.spent
        ledger.spend(declared)
        again.spend(declared)
        assert again.spent == ledger.spent


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["entries"][0].update(count=1),
        lambda d: d["entries"][0].update(part=None),
        lambda d: d["entries"][0].update(part="[]"),
        lambda d: d["entries"][0].update(part="nonsense"),
        lambda d: d["entries"][0].update(part='[[["response", 2, -1.0, 0.0], 1]]'),
        lambda d: d["budget"].update({"approximate-dp": ["3", "0.5"]}),
    ],
)
def test_profiles_that_were_changed_are_refused(change):
    ledger = Ledger({"approximate-dp": (3.0, 1e-6)})
    ledger.spend(fp.HammingChannel(3, 2, 0.25), count=5)
    data = json.loads(ledger.to_json())
    change(data)
    with pytest.raises(InvalidInput):
        Ledger.from_json(json.dumps(data))


def test_deltas_are_spent_too():
    ledger = Ledger({"approximate-dp": (1.0, 1e-6)})
    ledger.spend({"approximate-dp": (0, 4e-7)}, count=2)
    assert ledger.spent == {"approximate-dp": 0.0}
    for far in ({"approximate-dp": (0.0, 4e-7)}, {"dp": math.inf}, np.eye(2)):
        with pytest.raises(BudgetExceeded) as caught:
            ledger.spend(far)
        assert caught.value.asked == math.inf
    ledger.spend([[0.5, 0.5], [0.5, 0.5]], count=10**6)
    assert ledger.spent == {"approximate-dp": 0.0}


def test_one_level_for_every_delta_adds():
    ledger = Ledger({"approximate-dp": 1.0})
    ledger.spend({"approximate-dp": 0.1}, count=9)
    ledger.spend(fp.HammingChannel(3, 2, 0.1))
    assert ledger.spent["approximate-dp"] <= 1.0
    with pytest.raises(InvalidInput, match="charged the approximate-dp level"):
        ledger.spend({"approximate-dp": (0.0, 0.1)})


@pytest.mark.parametrize(
    "budget",
    [{"dp": (1.0, 1e-6)}, {"approximate-dp": (1.0,)}, {"approximate-dp": (1.0, 0.0)},
     {"approximate-dp": (1.0, 1.0)}, {"approximate-dp": (math.inf, 0.1)},
     {"approximate-dp": {"epsilon": 1.0}}, {"approximate-dp": (1.0, 1e-6, 0)},
     {"approximate-dp": (-1.0, 1e-6)}],
)  # fmt: skip
def test_pairs_that_mean_nothing(budget):
    with pytest.raises(InvalidInput):
        Ledger(budget)


@pytest.mark.parametrize(
    "declared",
    [{"pml": 0.1}, {"approximate-dp": (0.1,)}, {"approximate-dp": (0.1, 2.0)},
     {"approximate-dp": (0.1, -1e-6)}, {"approximate-dp": ("a", "b")}],
)  # fmt: skip
def test_declared_pairs_that_mean_nothing(declared):
    ledger = Ledger({"approximate-dp": (1.0, 1e-6)})
    with pytest.raises(InvalidInput):
        ledger.spend(declared)
    assert len(ledger) == 0


def test_releases_and_counts_say_what_they_spend():
    table = np.zeros((50, 2), dtype=np.int64)
    ledger = Ledger({"dp": 3.0, "strong-dp": 1000.0, "maximal-leakage": 1000.0})
    columns = fp.release(table, domain=[2, 3], epsilon=0.5, per_column=True)  # 1.0 a record
    receipt = ledger.spend(columns)
    assert 0.999 < receipt.charged["dp"] <= 1.0
    assert ledger.spend(columns.report).charged == receipt.charged
    whole = fp.release(table, domain=[2, 3], epsilon=0.5)
    assert ledger.spend(whole).charged["dp"] <= 0.5
    counts = Ledger({"dp": 0.5, "strong-dp": 1000.0})
    counts.spend(fp.mechanisms.GeometricCount(1000, 0.5))
    assert counts.spent["dp"] == 0.5
    assert 500.0 <= counts.spent["strong-dp"] < 500.0 + 1e-9
    with pytest.raises(fp.InvalidInput, match=r"got a GeometricCount\. Give its channel"):
        fp.dp_level(fp.mechanisms.GeometricCount(1000, 0.5))
