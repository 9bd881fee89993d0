"""Each column by itself: whether anything can be learnt from it, and cross-tabulations."""

import math

import numpy as np
import pytest

import fastpriv as fp

DOMAIN = {"good": ["x", "y"], "bad": list(range(50))}
TABLE = [{"good": "xy"[k % 2], "bad": k % 50} for k in range(1_000)]


@pytest.mark.parametrize("mechanism", [None, "auto", "randomised-response"])
@pytest.mark.parametrize("level", [0.0, 0.001])
def test_a_useless_column_is_named_before_anything_is_drawn(mechanism, level):
    epsilon = {"good": 2.0, "bad": level}
    given = {"domain": DOMAIN, "epsilon": epsilon, "mechanism": mechanism}
    ledger = fp.accounting.Ledger({"dp": 5.0})
    with pytest.raises(fp.Infeasible, match="column 'bad' would be useless") as caught:
        fp.release(TABLE, **given, ledger=ledger)
    assert len(str(caught.value)) <= 200
    assert len(ledger) == 0
    preview = fp.preview_release(1_000, **given)
    (note,) = (note for note in preview.notes if "nothing can be learnt" in note)
    assert "'bad'" in note
    assert "'good'" not in note
    assert preview.standard_errors["good"] < 1_000 <= preview.standard_errors["bad"]
    released = fp.release(TABLE, **given, accept="useless")
    assert note in released.report.notes
    found = fp.estimate_frequencies(released, columns=["good"])
    assert math.isfinite(found["good"].estimates.sum())


def test_columns_that_can_be_counted_are_not_named():
    preview = fp.preview_release(1_000, domain=DOMAIN, epsilon={"good": 2.0, "bad": 2.0})
    assert not preview.notes
    few = fp.preview_release(99, domain=DOMAIN, epsilon={"good": 2.0, "bad": 0.0})
    assert not few.notes


def test_several_useless_columns():
    domain = {name: list(range(30)) for name in "abcdef"}
    table = [dict.fromkeys(domain, 1)] * 200
    with pytest.raises(fp.Infeasible, match="column 'a' and 5 more would be useless"):
        fp.release(table, domain=domain, epsilon=0.3)
    (note,) = fp.preview_release(200, domain=domain, epsilon=0.3, split="columns").notes
    assert "'a', 'b', 'c', 'd', 'e', 'f':" in note


def test_a_mechanism_whose_counts_are_not_estimated_is_not_called_useless():
    table = fp.PosteriorChannel(fp.Product([[0.8, 0.2], [0.6, 0.4], [0.5, 0.5]]), 2.0)
    preview = fp.preview_release(3, domain=[2], mechanism=table)
    assert not [note for note in preview.notes if "nothing can be learnt" in note]


# Cross-tabulations.


def test_a_cross_tabulation_of_reports_is_refused():
    released = fp.release(TABLE, domain=DOMAIN, epsilon={"good": 2.0, "bad": 2.0}, mechanism="auto")
    assert isinstance(released.report.channel.columns.columns[1], fp.SupportChannel)
    with pytest.raises(fp.InvalidInput, match="column 'bad' holds messages") as caught:
        fp.estimate_frequencies(released, columns=["good", "bad"])
    assert len(str(caught.value)) <= 200
    for name in DOMAIN:
        found = fp.estimate_frequencies(released, columns=[name])
        assert found.joint
        assert [*found.records.values] == [(value,) for value in DOMAIN[name]]
        assert np.array_equal(found.records.estimates, found[name].estimates)
    whole = fp.estimate_frequencies(released)
    assert whole.records is None
    with pytest.raises(fp.InvalidInput, match="not estimated jointly"):
        whole["good", "bad"]


@pytest.mark.parametrize("mechanism", ["auto", "randomised-response"])
def test_a_cross_tabulation_of_randomised_response_is_that_of_the_same_channel(mechanism):
    rng = np.random.default_rng(1)
    table = np.stack([rng.integers(0, 2, 500), rng.integers(0, 3, 500)], axis=1)
    released = fp.release(table, domain=[2, 3], epsilon=6.0, mechanism=mechanism)
    channel = fp.HammingChannel(2, [2, 3], 3.0)
    for columns in ([0, 1], [1, 0], [1]):
        found = fp.estimate_frequencies(released, columns=columns).records
        same = fp.estimate_frequencies(
            released.table, channel, domain=[2, 3], columns=columns
        ).records
        assert [*found.values] == [*same.values]
        assert found.estimates == pytest.approx(same.estimates, rel=1e-9, abs=1e-6)
        assert found.standard_errors == pytest.approx(same.standard_errors, rel=1e-9)
