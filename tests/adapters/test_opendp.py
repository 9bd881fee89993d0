"""Adapters, against the packages they are for."""

import importlib
import math
import sys

import numpy as np
import pytest

import fastpriv as fp

# OpenDP.


@pytest.fixture
def dp():
    """OpenDP with the features that a measurement of ours needs."""
    found = pytest.importorskip("opendp.prelude", reason="needs the extra 'opendp'")
    found.enable_features("contrib", "honest-but-curious")
    return found


def measurement(channel):
    from fastpriv.adapters.opendp import make_channel

    return make_channel(channel)


@pytest.mark.usefixtures("dp")
@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.1, 0.7, 3.0, 20.0])
def test_the_map_is_group_privacy_rounded_up(epsilon):
    channel = fp.HammingChannel(5, 3, epsilon)
    found = measurement(channel)
    level = fp.realised_level(channel)
    assert found.map(0) == 0.0
    assert found.map(1) == level
    for changed in (2, 3, 5):
        assert found.map(changed) >= changed * level
        assert found.map(changed) <= changed * level * (1 + 1e-15) + 5e-324
    assert found.map(50) == found.map(5)  # no more than all rows can change


@pytest.mark.usefixtures("dp")
def test_a_channel_without_privacy_has_an_infinite_map():
    assert measurement(np.eye(3)).map(1) == math.inf
    assert measurement(np.eye(3)).map(0) == 0.0
    assert measurement([[0.5, 0.5]]).map(1) == 0.0


def test_composes_in_the_combinators(dp):
    rows = [0, 1, 2, 0, 1]
    survey, count = measurement(fp.HammingChannel(5, 3, 0.7)), measurement(query(5, 3))
    both = dp.c.make_composition([survey, survey, count])
    first, second, third = both(rows)
    assert len(first) == len(second) == 5
    assert third in range(6)
    assert both.map(1) >= survey.map(1) * 2 + count.map(1)
    assert both.map(1) <= (survey.map(1) * 2 + count.map(1)) * (1 + 1e-14)

    interactive = dp.c.make_adaptive_composition(
        survey.input_domain, survey.input_metric, survey.output_measure, 1, [survey.map(1), 0.1]
    )(rows)
    assert len(interactive(survey)) == 5
    with pytest.raises(dp.OpenDPException, match="insufficient budget"):
        interactive(survey)

    odometer = dp.c.make_fully_adaptive_composition(
        survey.input_domain, survey.input_metric, survey.output_measure
    )(rows)
    odometer(survey)
    odometer(count)
    assert odometer.privacy_loss(1) >= survey.map(1) + count.map(1)


def query(n, m):
    """How many rows are 0, of n in 0 .. m - 1, answered truthfully half the time."""
    space = fp.Space.hamming(n, m)
    values = (space.rows(np.arange(space.size)) == 0).sum(axis=1)
    kernel = 0.5 * np.eye(n + 1) + 0.5 / (n + 1)
    return fp.QueryChannel(values, kernel, space)


@pytest.mark.usefixtures("dp")
@pytest.mark.parametrize("channel", [fp.HammingChannel(2, 3, 1.0), query(2, 3)])
def test_draws_follow_the_channel(channel):
    found, rows, draws = measurement(channel), [2, 0], 1500
    index = channel.space.index(rows)
    seen = np.zeros(channel.output_space.size)
    for _ in range(draws):
        y = found(rows)
        seen[channel.output_space.index(y) if isinstance(y, list) else y] += 1
    law = channel.matrix()[index]
    chi = ((seen - draws * law) ** 2 / (draws * law)).sum()
    freedom = len(law) - 1
    assert chi < freedom + 6 * math.sqrt(2 * freedom) + 10  # fails once in about 10^7 runs


def test_values_too_large_for_their_row_count_as_the_largest(dp):
    certain = [np.eye(2), np.eye(3)]
    found = measurement(fp.ProductChannel(certain))
    assert found([1, 2]) == [1, 2]
    assert found([2, 2]) == [1, 2]
    for wrong in ([-1, 0], [0], [0, 0, 0], ["a", "b"], [0.5, 1.0]):
        with pytest.raises((dp.OpenDPException, TypeError)):
            found(wrong)


def test_features_are_the_users_to_enable(dp):
    dp.disable_features("honest-but-curious")
    try:
        with pytest.raises(dp.OpenDPException, match="honest-but-curious"):
            measurement(fp.HammingChannel(2, 2, 1.0))
    finally:
        dp.enable_features("honest-but-curious")


def test_absence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match=r"fastpriv\[opendp\]"):
        measurement(fp.HammingChannel(2, 2, 1.0))


def test_absence_of_dp_accounting_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.delitem(sys.modules, "fastpriv.adapters.dp_accounting", raising=False)
    with pytest.raises(ImportError, match=r"fastpriv\[dp-accounting\]"):
        importlib.import_module("fastpriv.adapters.dp_accounting")
