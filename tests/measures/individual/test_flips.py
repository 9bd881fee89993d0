"""Bits that all pass through one channel: only the number of flipped bits matters."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fastpriv as fp
from individual_cases import holds, reached
from oracles import individual as brute

WEIGHTS = st.lists(st.sampled_from([0.0, 0.01, 0.2, 0.5, 1.0]), min_size=6, max_size=6)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(WEIGHTS, st.integers(2, 3), st.integers(1, 4))
@example([1.0, 0.0, 0.0, 0.5, 0.5, 0.0], 2, 3)  # an output that only one value can have
@example([0.2, 0.2, 0.2, 0.2, 0.2, 0.2], 3, 2)  # nothing is told
def test_all_adversaries(weights, outputs, n):
    rows = np.array(weights[: 2 * outputs]).reshape(2, outputs)
    rows[0] += 1e-3
    if not rows.sum(axis=1).all():
        rows[1, 0] = 1.0
    rows /= rows.sum(axis=1, keepdims=True)
    channel = fp.ProductChannel([rows] * n)
    bracket = fp.individual_capacity(channel)
    matrix, sizes = np.array(channel.matrix()), [2] * n
    assert holds(bracket, *brute.group_capacity(matrix, sizes, 1))
    assert bracket.width <= 1e-9
    assert reached(bracket, matrix, sizes)


def test_a_mixed_adversary_is_best():
    """Here one bit that is flipped against the others makes databases easier to tell apart."""
    rows = [[0.97, 0.03], [0.12, 0.88]]
    channel = fp.ProductChannel([rows] * 3)
    bracket = fp.individual_capacity(channel)
    assert holds(bracket, *brute.group_capacity(np.array(channel.matrix()), [2] * 3, 1))
    assert sorted(bracket.adversary.databases.sum(axis=1).tolist()) == [1, 2]


@pytest.mark.parametrize(("n", "value"), [(11, 0.50489), (40, 0.68394)])
def test_values_that_were_out_of_reach(n, value):
    bracket = fp.individual_capacity(fp.ProductChannel([[[0.8, 0.2], [0.4, 0.6]]] * n))
    assert round(bracket.lower, 5) == round(bracket.upper, 5) == value
    assert bracket.width <= 1e-9


def test_no_time():
    channel = fp.ProductChannel([[[0.51, 0.49], [0.49, 0.51]]] * 300)
    bracket = fp.individual_capacity(channel, time_limit=0.0)
    assert fp.individual_capacity(channel).lower <= bracket.upper
    assert bracket.upper <= fp.channel_capacity(channel).upper * (1 + 1e-3)
    assert bracket.upper < math.log(2)
