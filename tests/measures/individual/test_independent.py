"""Individual capacity over priors with independent rows."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from individual_cases import channel as random_channel
from individual_cases import holds, reached
from oracles import optima

SIZES = st.sampled_from([(2,), (2, 2), (3, 2), (2, 1, 3), (2, 2, 2), (1, 1), (3, 3)])


def by_fixing_others(matrix, sizes):
    """Bounds on the largest capacity of one row's values, all other rows fixed."""
    rows = list(itertools.product(*map(range, sizes)))
    low = high = 0.0
    for i in range(len(sizes)):
        for fixed in {row[:i] + row[i + 1 :] for row in rows}:
            line = [matrix[x] for x, row in enumerate(rows) if row[:i] + row[i + 1 :] == fixed]
            part = optima.capacities(np.array([line]))
            low, high = max(low, part[0].max()), max(high, part[1].max())
    return low, high


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(2, 4), st.booleans(), st.integers(0, 2**32))
def test_other_rows_are_fixed(sizes, outputs, zeros, seed):
    rng = np.random.default_rng(seed)
    matrix = random_channel(rng, sizes, outputs, zeros)
    mechanism = fp.Channel(matrix, sizes)
    bracket = fp.individual_capacity(mechanism, "independent")
    assert holds(bracket, *by_fixing_others(matrix, sizes))
    assert bracket.width <= 1e-9
    assert reached(bracket, matrix, sizes)
    assert bracket.lower <= fp.individual_capacity(mechanism).upper
    # No product prior tells more.
    for _ in range(10):
        laws = [rng.dirichlet(np.full(m, 0.3)) for m in sizes]
        prior = fp.Product(laws)
        for i, m in enumerate(sizes):
            joint = np.moveaxis((prior.pmf()[:, None] * matrix).reshape(*sizes, outputs), i, 0)
            told = joint.reshape(m, -1, outputs).sum(axis=1)
            seen = told.sum(axis=1) > 0
            mass = told[seen].sum(axis=1)
            value = fp.mutual_information(told[seen] / mass[:, None], mass / mass.sum())
            assert value <= bracket.upper * (1 + 1e-9) + 1e-12


def test_structures():
    rng = np.random.default_rng(3)
    noise = rng.dirichlet(np.ones(4), 6)
    count = fp.QueryChannel.count(5, noise)
    listed = fp.Channel(count.matrix(), [2] * 5)
    assert holds(
        fp.individual_capacity(count, "independent"),
        fp.individual_capacity(listed, "independent").lower,
        fp.individual_capacity(listed, "independent").upper,
    )
    long = fp.QueryChannel.count(1000, rng.dirichlet(np.ones(3), 1001))
    assert fp.individual_capacity(long, "independent").width <= 1e-9
    million = fp.individual_capacity(fp.HammingChannel(10**6, 3, 1.0), "independent")
    one = fp.channel_capacity(fp.HammingChannel(1, 3, 1.0))
    assert (million.lower, million.upper) == pytest.approx((one.lower, one.upper), rel=1e-9)
    rows = [noise[:2], noise[2:5]]
    bracket = fp.individual_capacity(fp.ProductChannel(rows), "independent")
    want = max(fp.channel_capacity(row).lower for row in rows)
    assert bracket.lower == pytest.approx(want, abs=1e-9)
    with pytest.raises(fp.InvalidInput, match="independent"):
        fp.individual_capacity(count, "some")


def test_no_time():
    matrix = random_channel(np.random.default_rng(1), (3, 3, 3), 4)
    bracket = fp.individual_capacity(fp.Channel(matrix, (3, 3, 3)), "independent", time_limit=0.0)
    exact = fp.individual_capacity(fp.Channel(matrix, (3, 3, 3)), "independent")
    assert bracket.lower <= exact.upper
    assert exact.lower <= bracket.upper


@pytest.mark.parametrize(
    "epsilon", [0.0, 1e-200, 1e-8, 1e-3, 0.0999, 0.1, 0.101, 0.5, 1.0, 30.0, 700.0]
)
def test_psi_is_the_largest_over_t(epsilon):
    """psi(e) = max over t of e E t/(1 + (E-1) t) - ln(1 + (E-1) t), E = e^e, rounded up."""
    bound = fp.implications(epsilon, "strong-dp").levels["channel-capacity"]
    with mpmath.workdps(700):
        e = mpmath.mpf(epsilon)
        u = e / (1 - mpmath.exp(-e)) if e else mpmath.mpf(1)
        exact = u - 1 - mpmath.log(u)
        if 1e-3 <= epsilon <= 30:
            E = mpmath.exp(e)
            values = [
                e * E * t / (1 + (E - 1) * t) - mpmath.log(1 + (E - 1) * t)
                for t in (
                    (u - 1) / (E - 1) * s for s in (mpmath.mpf("0.99"), 1, mpmath.mpf("1.01"))
                )
            ]
            assert abs(values[1] - exact) < mpmath.mpf(10) ** -100
            assert max(values) == values[1]
        assert exact <= bound <= exact * (1 + 1e-10) + 1e-290
    assert bound <= epsilon
    if epsilon == 1.0:
        assert round(bound, 4) == 0.1233


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(2, 5), st.floats(0.01, 3.0))
def test_psi_bounds_capacities(seed, inputs, outputs, spread):
    matrix = np.exp(spread * np.random.default_rng(seed).random((inputs, outputs)))
    matrix /= matrix.sum(axis=1, keepdims=True)
    level = fp.strong_dp_level(matrix)
    found = fp.implications(level, "strong-dp").levels
    assert fp.channel_capacity(matrix).lower <= found["channel-capacity"]
    assert found["individual-capacity"] == found["channel-capacity"]
    mechanism = fp.HammingChannel(3, inputs, spread)
    row = fp.implications(spread, "dp").levels["product-row-information"]
    assert fp.individual_capacity(mechanism, "independent").upper <= row
    assert math.isfinite(row)
