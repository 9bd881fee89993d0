"""A search for the worst adversary that is spread over an executor proves the same."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp


def informed(channel, adversary):
    """I(X_i; Y) under the adversary's prior, by sums over values and outputs."""
    matrix = np.asarray(channel.matrix())
    rows = [matrix[channel.space.index(database)] for database in adversary.databases]
    law = adversary.law
    output = sum(p * row for p, row in zip(law, rows, strict=True))
    return sum(
        p * w * np.log(w / q)
        for p, row in zip(law, rows, strict=True)
        for w, q in zip(row, output, strict=True)
        if p * w > 0
    )


@pytest.mark.search(every=10)
@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([(2, 2), (3, 2), (2, 3), (4,)]), st.integers(1, 2))
def test_brackets_meet_those_of_one_search(seed, sizes, k):
    rng = np.random.default_rng(seed)
    space = fp.Space(sizes)
    channel = fp.Channel(rng.dirichlet(np.ones(4), space.size), space)
    k = min(k, space.n)
    with ThreadPoolExecutor(2) as pool:
        spread = fp.group_capacity(channel, k, executor=pool)
    alone = fp.group_capacity(channel, k)
    assert spread.lower <= alone.upper
    assert alone.lower <= spread.upper
    assert spread.width <= 2e-9
    assert informed(channel, spread.adversary) == pytest.approx(spread.lower, abs=1e-9)


@pytest.mark.slow
def test_queries_and_processes():
    answers = np.random.default_rng(5).dirichlet(np.ones(3), 6)
    query = fp.QueryChannel.count(5, answers)
    alone = fp.individual_capacity(query)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        spread = fp.individual_capacity(query, executor=pool)
    assert spread.lower == pytest.approx(alone.lower, abs=2e-9)
    assert spread.upper == pytest.approx(alone.upper, abs=2e-9)


def test_formulas_run_here_and_others_are_refused():
    channel = fp.HammingChannel(4, 2, 1.0)
    with ThreadPoolExecutor(1) as pool:
        assert fp.individual_capacity(channel, executor=pool) == fp.individual_capacity(channel)
    with pytest.raises(fp.InvalidInput, match="executor must be"):
        fp.individual_capacity(channel, executor=3)
