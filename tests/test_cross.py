"""The cross-examination: a sample from a fixed seed, and whether it would notice."""

import dataclasses
import json

import numpy as np
import pytest

import fastpriv as fp
from fuzz import cross, routes
from fuzz.judging import Violation


def _kinds(broken):
    return {key: str(items[0][1].answer) for key, items in broken.items()}


def test_calls_that_compute_one_quantity_agree():
    counts, broken, _ = cross.search(seed=2026, minutes=1.0, cases=250)
    assert counts.total() >= 250
    assert _kinds(broken) == {}


@pytest.mark.search
@pytest.mark.parametrize("seed", range(4))
def test_many_calls_that_compute_one_quantity_agree(seed):
    counts, broken, _ = cross.search(seed=seed, minutes=5.0, cases=10_000)
    assert counts.total() >= 10_000
    assert _kinds(broken) == {}


def test_an_instance_depends_on_its_number_alone():
    ahead = [json.dumps(case) for case in cross.cases_of(7, 50)]
    list(cross.cases_of(7, 3))
    assert [json.dumps(case) for case in cross.cases_of(7, 50)] == ahead


def test_rows_on_the_grid_sum_to_one_exactly():
    rng = np.random.default_rng(0)
    for bits in (10, 17, 52):
        rows = cross.rows_on_grid(rng, 5, 3, bits)
        assert all(sum(int(v * 2**bits) for v in row) == 2**bits for row in rows)


@pytest.mark.parametrize(
    "name",
    [
        "channel_capacity",
        "pml_level",
        "delta",
        "program dp",
        "leakage inside a set",
        "information of a group",
        "levels of groups",
        "levels of given neighbours",
    ],
)
def test_a_wrong_answer_is_noticed(monkeypatch, name):
    asked = routes.QUANTITIES[name]

    def ask(case):
        spans = asked.ask(case)
        first = spans[0]
        return [dataclasses.replace(first, low=2 * first.high + 1, high=3 * first.high + 1), *spans]

    monkeypatch.setitem(routes.QUANTITIES, name, dataclasses.replace(asked, ask=ask))
    found = [cross.answer({"question": name} | cross.instance(5, k)) for k in range(40)]
    assert any(isinstance(answer, Violation) for answer in found)


def test_spans_that_are_in_order_may_be_apart():
    low, high = routes.Span("low", 0.0, 1.0), routes.Span("high", 2.0, 3.0)
    ordered = routes.Quantity(None, ordered=True)
    assert cross.judged({}, ordered, [low, high]) == cross.ASKED
    assert isinstance(cross.judged({}, ordered, [high, low]), Violation)
    assert isinstance(cross.judged({}, routes.Quantity(None), [low, high]), Violation)


def test_raw_errors_are_violations(monkeypatch):
    def ask(case):
        raise ZeroDivisionError

    monkeypatch.setitem(routes.QUANTITIES, "dp_level", routes.Quantity(ask))
    found = [cross.answer({"question": "dp_level"} | cross.instance(5, k)) for k in range(5)]
    assert any(isinstance(answer, Violation) for answer in found)


def test_definitions_may_hold_integers_of_numpy():
    channel = fp.Channel([[0.5, 0.5], [0.25, 0.75]])
    given = channel.to_dict()
    assert fp.Channel.from_dict(given | {"version": np.int64(given["version"])}) == channel
