"""Mappings for unknown private data: closed forms, brackets, the ends."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import law

HAMMING = 1.0 - np.eye(2)


def eta(W):
    """Return a lower bound on the contraction coefficient, close to it: a grid over b."""
    rows, grid = np.asarray(W).tolist(), [o.mpf(b) / 200 for b in range(1, 200)]
    pairs = [(P, Q) for i, P in enumerate(rows) for Q in rows[:i]]
    return max((o.chi_square(P, Q, b) for P, Q in pairs for b in grid), default=o.mpf(0))


def rho_squared(W, p):
    """Return the square of the second singular value of P(x,y)/sqrt(P(x)P(y))."""
    joint = np.asarray(p)[:, None] * W
    q = joint.sum(axis=0)
    Q = joint[:, q > 0] / np.sqrt(np.outer(p, q[q > 0]))
    values = np.linalg.svd(Q, compute_uv=False)
    return values[1] ** 2 if len(values) > 1 else 0.0


@pytest.mark.parametrize(("m", "D", "truth"), [(3, 0.3, 0.355882), (5, 0.3, 0.504032)])
def test_the_symmetric_channel_contracts_most(m, D, truth):
    best = fp.design_worst_case(np.full(m, 1 / m), D)
    assert best.value == pytest.approx(truth, abs=1e-6)
    assert float(eta(best.channel.matrix())) == pytest.approx(best.value, rel=1e-12)
    assert fp.design_worst_case(None, D, 1 - np.eye(m)).value == best.value
    # The same by the program, under a metric that is not exactly the closed form's.
    for prior in (None, np.full(m, 1 / m)):
        found = fp.design_worst_case(prior, D * (1 + 1e-9), (1 - np.eye(m)) * (1 + 1e-9))
        assert found.method == "dense"
        assert found.bound <= best.value + 1e-12
        assert found.value == pytest.approx(best.value, abs=1e-4)
    none = fp.design_worst_case(None, 1 - 1 / m, 1 - np.eye(m))
    assert none.value == pytest.approx(0.0, abs=1e-30)


@pytest.mark.parametrize("p", [0.5, 0.4, 0.2, 0.9, 0.97])
@pytest.mark.parametrize("part", [0.01, 0.3, 0.8])
def test_least_correlation_of_a_bit(p, part):
    prior, D = [p, 1 - p], part * min(p, 1 - p)
    best = fp.design_worst_case(prior, D, criterion="correlation")
    assert best.method == "closed-form"
    W = best.channel.matrix()
    assert rho_squared(W, prior) == pytest.approx(best.value, rel=1e-9)
    assert fp.distortion(W, prior, HAMMING) <= D + 1e-15
    # No other way to spend the budget is better.
    for share in np.linspace(0, 1, 101):
        a, b = min(share * D / p, 1), min((1 - share) * D / (1 - p), 1)
        assert rho_squared([[1 - a, a], [b, 1 - b]], prior) >= best.value - 1e-12
    found = fp.design_worst_case(prior, D * (1 + 1e-9), HAMMING * (1 + 1e-9), "correlation")
    assert found.bound <= best.value + 1e-9
    assert found.value == pytest.approx(best.value, abs=1e-4)


def test_least_correlation_of_uniform_values():
    best = fp.design_worst_case(fp.Uniform(1, 4), 0.3, criterion="correlation")
    assert best.value == pytest.approx((1 - 4 * 0.3 / 3) ** 2, rel=1e-12)
    assert rho_squared(best.channel.matrix(), [0.25] * 4) == pytest.approx(best.value, rel=1e-9)


@pytest.mark.search(every=10)
@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.floats(0.0, 1.0),
    st.sampled_from(["contraction", "correlation"]),
)
def test_worst_cases_are_bracketed(seed, shape, part, criterion):
    rng = np.random.default_rng(seed)
    (n, m), p = shape, law(rng, shape[0])
    metric = rng.random(shape)
    least, most = float(p @ metric.min(axis=1)), float((p @ metric).min())
    D = least + part * (most - least)
    best = fp.design_worst_case(p, D, metric, criterion, time_limit=600)
    W = best.channel.matrix()
    assert 0.0 <= best.bound <= best.value <= 1.0
    assert type(best.bound) is type(best.value) is float
    assert fp.distortion(W, p, metric) <= D + 1e-14
    assert best.value - best.bound <= 1e-3

    def measure(W):
        return float(eta(W)) if criterion == "contraction" else rho_squared(W, p)

    assert measure(W) <= best.value + 1e-12
    assert measure(W) == pytest.approx(best.value, abs=2e-2 if criterion == "contraction" else 1e-9)
    cheapest = np.eye(m)[np.argmin(metric, axis=1)]
    for _ in range(3):
        other = rng.dirichlet(np.full(m, 0.5), n)
        extra = p @ (other * metric).sum(axis=1) - least
        share = 1.0 if extra <= D - least else (D - least) / extra
        assert measure(share * other + (1 - share) * cheapest) >= best.bound - (
            2e-2 if criterion == "contraction" else 1e-9
        )


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4))
def test_contraction_bounds_the_leak_of_every_secret(seed, n):
    rng = np.random.default_rng(seed)
    prior = law(rng, n)
    best = fp.design_worst_case(prior, 0.1, time_limit=600)
    for other in (prior, law(rng, n)):  # eta does not depend on the law of X
        joint = (rng.dirichlet(np.full(3, 0.5), n) * other[:, None]).T
        leak = o.inference_leakage(joint.tolist(), best.channel.matrix().tolist())
        assert leak <= best.value * o.inference_leakage(joint.tolist(), np.eye(n).tolist()) + 1e-18


def test_worst_case_budgets_at_and_below_the_least():
    with pytest.raises(fp.Infeasible, match="1e-15"):
        fp.design_worst_case([0.3, 0.7], 5e-16, [[1e-15, 2e-15], [2e-15, 1e-15]])
    p = np.array([0.31, 0.28, 0.23, 0.18])
    metric = np.array([[2, 0, 0, 0], [-1, 0, 2, 1], [1, 2, 1, 2], [-1, -1, 2, -1.0]])
    least = fp.least_distortion(p, metric)
    best = fp.design_worst_case(p, least, metric, "correlation")
    assert best.value - best.bound < 1e-3
    assert best.value < 0.9  # ties leave a choice, so that not everything is told


def sdpi_below(W, p, count=24):
    """Return a lower bound on S*: the largest ratio over a grid of distributions Q."""
    W, p = np.asarray(W), np.asarray(p)
    grid = [k for k in product(range(count + 1), repeat=len(p)) if sum(k) == count]
    Q = np.array(grid) / count
    Q = Q[(Q[:, p == 0] == 0).all(axis=1)]

    def divergence(a, b):
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(a > 0, a * np.log(a / b), 0.0).sum(axis=1)

    below, above = divergence(Q, p), divergence(Q @ W, p @ W)
    return float((above[below > 1e-3] / below[below > 1e-3]).max())


def feasible(rng, p, metric, D):
    """Return a random mapping within a budget."""
    cheapest = np.eye(metric.shape[1])[np.argmin(metric, axis=1)]
    other = rng.dirichlet(np.full(metric.shape[1], 0.5), len(p))
    least, spent = (float(p @ (V * metric).sum(axis=1)) for V in (cheapest, other))
    share = min(1.0, (D - least) / (spent - least)) if spent > least else 1.0
    return share * other + (1 - share) * cheapest


def test_least_sdpi_between_correlation_and_contraction():
    p, D = [0.2, 0.3, 0.5], 0.2
    best = fp.design_worst_case(p, D, 1 - np.eye(3), criterion="sdpi")
    low = fp.design_worst_case(p, D, 1 - np.eye(3), criterion="correlation")
    assert best.converged
    assert low.bound <= best.bound <= best.value <= 0.4605
    assert best.value - best.bound <= 1e-4
    W = best.channel.matrix()
    assert sdpi_below(W, p) <= best.value
    assert best.value - 1e-4 <= fp.sdpi_constant(W, p).lower
    assert fp.distortion(W, p, 1 - np.eye(3)) <= D
    # Other mappings, the two other designs among them, have no smaller constant.
    others = [low.channel.matrix(), fp.design_worst_case(p, D).channel.matrix()]
    rng = np.random.default_rng(0)
    others += [feasible(rng, np.array(p), 1 - np.eye(3), D) for _ in range(20)]
    assert all(fp.sdpi_constant(V, p).upper >= best.bound for V in others)


@pytest.mark.parametrize("p", [0.5, 0.4, 0.1])
def test_least_sdpi_of_a_bit_by_brute_force(p):
    prior, D = [p, 1 - p], 0.4 * min(p, 1 - p)
    best = fp.design_worst_case(prior, D, criterion="sdpi")
    reached = []
    for share in np.linspace(0, 1, 401):
        a, b = share * D / p, (1 - share) * D / (1 - p)
        reached.append(fp.sdpi_constant([[1 - a, a], [b, 1 - b]], prior).upper)
    assert best.bound <= min(reached)
    assert best.value == pytest.approx(min(reached), abs=1.1e-4)


@pytest.mark.parametrize("m", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_least_sdpi_of_uniform_values_is_symmetric(m):
    best = fp.design_worst_case([1 / m] * m, 0.2, criterion="sdpi")
    assert best.method == "closed-form"
    assert best.value - best.bound <= 1e-4
    # The program agrees, under a metric that is not exactly the closed form's.
    found = fp.design_worst_case([1 / m] * m, 0.2, (1 - np.eye(m)) * (1 + 1e-9), "sdpi")
    assert found.method == "dense"
    assert max(found.bound, best.bound) <= min(found.value, best.value) + 1e-8


def test_least_sdpi_with_impossible_values_and_at_the_ends():
    best = fp.design_worst_case([0.6, 0.0, 0.4], 0.2, criterion="sdpi")
    bit = fp.design_worst_case([0.6, 0.4], 0.2, criterion="sdpi")
    # A third output for the two values does not help.
    assert max(best.bound, bit.bound) <= min(best.value, bit.value)
    assert fp.design_worst_case([0.6, 0.4], 0.0, criterion="sdpi").value == 1.0
    assert fp.design_worst_case([0.6, 0.4], 0.4, criterion="sdpi").value == 0.0
    assert fp.design_worst_case([1.0, 0.0], 0.0, criterion="sdpi").value == 0.0
    with pytest.raises(fp.InvalidInput, match="prior must be given"):
        fp.design_worst_case(None, 0.2, HAMMING, criterion="sdpi")


@pytest.mark.search(every=5)
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 4), st.floats(0.05, 0.95))
def test_least_sdpi_is_bracketed(seed, n, m, part):
    rng = np.random.default_rng(seed)
    p, metric = law(rng, n), rng.random((n, m))
    least, most = float(p @ metric.min(axis=1)), float((p @ metric).min())
    D = least + part * (most - least)
    best = fp.design_worst_case(p, D, metric, "sdpi", time_limit=600)
    W = best.channel.matrix()
    assert best.value - best.bound <= 1e-4
    assert fp.distortion(W, p, metric) <= D + 1e-14
    assert sdpi_below(W, p, 10) <= best.value
    for _ in range(3):
        assert fp.sdpi_constant(feasible(rng, p, metric, D), p).upper >= best.bound
