"""Least distortion at an individual capacity, against closed forms, another solver and duality."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize, minimize_scalar

import fastpriv as fp


def entropy(w):
    return -sum(x * math.log(x) for x in w if x > 0.0)


def binary_capacity(a, b):
    """Muroga's formula for rows (1 - a, a) and (b, 1 - b), a + b < 1."""
    W = np.array([[1.0 - a, a], [b, 1.0 - b]])
    solved = np.linalg.solve(W, [entropy(row) for row in W])
    return math.log(sum(math.exp(-x) for x in solved))


def one_bit(p, epsilon):
    """Least p_0 a + p_1 b over flips a, b with that capacity, by two nested searches in plain."""

    def flip(a):
        if binary_capacity(a, 0.0) <= epsilon:
            return 0.0
        return brentq(lambda b: binary_capacity(a, b) - epsilon, 0.0, 1.0 - a - 1e-9, xtol=1e-14)

    def cost(a):
        return p[0] * a + p[1] * flip(a)

    best = minimize_scalar(cost, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9})
    return min(best.fun, cost(1e-300), p[0], p[1])


@pytest.mark.parametrize("epsilon", [1e-4, 0.05, 0.3, 0.69])
@pytest.mark.parametrize("p", [(0.5, 0.5), (0.8, 0.2), (0.35, 0.65)])
def test_one_bit(p, epsilon):
    best = fp.solve_pd_capacity(p, epsilon)
    want = one_bit(p, epsilon)
    assert best.bound <= want + 1e-8
    assert best.value == pytest.approx(want, abs=2e-6)
    assert best.level <= epsilon


def adversaries(sizes, priors):
    """All selections of one database for each value of a row, as lists of indices."""
    rows = list(np.ndindex(*sizes))
    for i, m in enumerate(sizes):
        slices = [[x for x, row in enumerate(rows) if row[i] == a] for a in range(m)]
        for chosen in itertools.product(*slices):
            others = {rows[x][:i] + rows[x][i + 1 :] for x in chosen}
            if priors == "all" or len(others) == 1:
                yield list(chosen)


def blahut(W, steps=3000):
    """Lower and upper bounds on the capacity of a few rows, by plain iteration."""
    p = np.full(len(W), 1.0 / len(W))
    for _ in range(steps):
        q = p @ W
        told = np.array(
            [sum(w * math.log(w / y) for w, y in zip(r, q, strict=True) if w > 0.0) for r in W]
        )
        if told.max() - p @ told < 1e-11:
            break
        p = p * np.exp(told)
        p /= p.sum()
    return p @ told, told.max()


def plain_capacity(W, sizes, priors):
    return max(blahut(W[rows])[0] for rows in adversaries(sizes, priors))


@pytest.mark.parametrize(
    ("sizes", "epsilon", "priors"),
    [((2, 2), 0.2, "all"), ((2, 2), 0.2, "independent"), ((3,), 0.4, "all"), ((2, 3), 0.3, "all")],
)
def test_duality(sizes, epsilon, priors):
    """Nothing within the capacity is cheaper than the bound; the channel itself is within it."""
    rng = np.random.default_rng(7)
    N = math.prod(sizes)
    prior = fp.Dense(rng.dirichlet(np.ones(N)), sizes)
    best = fp.solve_pd_capacity(prior, epsilon, priors=priors)
    assert best.gap <= 1e-6
    assert plain_capacity(best.channel.matrix(), sizes, priors) <= best.level <= epsilon
    rows = np.array(list(np.ndindex(*sizes)))
    cost = prior.pmf()[:, None] * (rows[:, None] != rows).sum(axis=2)
    assert best.value == pytest.approx((cost * best.channel.matrix()).sum(), rel=1e-12)
    constant = np.eye(N)[cost.sum(axis=0).argmin()]
    for k in range(6):
        # Near the optimum as well as far from it.
        W = rng.dirichlet(np.full(N, 0.5), N)
        W = W if k < 3 else 0.9 * best.channel.matrix() + 0.1 * (0.7 * np.eye(N) + 0.3 * W)
        told = plain_capacity(W, sizes, priors)
        share = max(0.0, 1.0 - epsilon / (told * (1.0 + 1e-9)))
        mixed = (1.0 - share) * W + share * constant  # capacity is convex
        assert (cost * mixed).sum() >= best.bound


def test_another_solver():
    """Sequential quadratic programming in W and an output law within epsilon of all rows."""
    prior, epsilon = np.array([0.5, 0.3, 0.2]), 0.15
    cost = prior[:, None] * (1.0 - np.eye(3))

    def split(z):
        return z[:9].reshape(3, 3), z[9:]

    def slack(z):
        W, q = split(z)
        return epsilon - (W * np.log(W / q) - W + q).sum(axis=1)

    start = np.concatenate([(np.full((3, 3), 0.3) + 0.1 * np.eye(3)).ravel(), np.full(3, 1 / 3)])
    result = minimize(
        lambda z: (cost * split(z)[0]).sum(),
        start,
        bounds=[(1e-9, 1.0)] * 12,
        constraints=[
            {"type": "ineq", "fun": slack},
            {"type": "eq", "fun": lambda z: split(z)[0].sum(axis=1) - 1.0},
        ],
        options={"maxiter": 300, "ftol": 1e-12},
    )
    best = fp.solve_pd_capacity(prior, epsilon)
    assert best.value == pytest.approx(result.fun, abs=2e-6)


@pytest.mark.search(every=10)
@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([(2,), (3,), (2, 2), (2, 1, 2), (3, 2)]),
    st.sampled_from([1e-300, 1e-14, 1e-12, 1e-6, 1e-2, 0.2, 0.5, 0.69]),
    st.sampled_from(["all", "independent"]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_certificates(sizes, epsilon, priors, zeros, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(math.prod(sizes)))
    if zeros:
        p[1:] *= rng.random(len(p) - 1) < 0.6
        p /= p.sum()
    prior = fp.Dense(p, sizes)
    best = fp.solve_pd_capacity(prior, epsilon, priors=priors, gap=1e-3)
    assert 0.0 <= best.bound <= best.value
    assert best.gap <= 1e-3
    assert best.level <= epsilon
    assert fp.individual_capacity(best.channel, priors).lower <= best.level
    assert best.value == pytest.approx(fp.distortion(best.channel, prior), abs=1e-12)


def test_independent_rows_add_up():
    laws = [[0.7, 0.3], [0.5, 0.3, 0.2]]
    rows = fp.solve_pd_capacity(fp.Product(laws), 0.2, priors="independent")
    joint = fp.Dense(np.kron(*laws), [2, 3])
    dense = fp.solve_pd_capacity(joint, 0.2, priors="independent")
    assert (rows.method, dense.method) == ("rows", "dense")
    assert rows.bound <= dense.value
    assert dense.bound <= rows.value
    assert rows.value == pytest.approx(dense.value, rel=2e-6)
    parts = [fp.solve_pd_capacity(law, 0.2).value for law in laws]
    assert rows.value == pytest.approx(sum(parts), rel=2e-6)
    many = fp.solve_pd_capacity(fp.Product.iid([0.7, 0.3], 10_000), 0.2, priors="independent")
    assert many.value == pytest.approx(10_000 * parts[0], rel=2e-6)


def test_order():
    prior = fp.Dense([0.4, 0.1, 0.2, 0.3], [2, 2])
    tied = [fp.solve_pd_capacity(prior, e) for e in (0.0, 0.05, 0.2, 0.6)]
    alone = [fp.solve_pd_capacity(prior, e, priors="independent") for e in (0.0, 0.05, 0.2, 0.6)]
    for few, more in itertools.pairwise(tied):
        assert more.value < few.bound
    assert all(free.bound <= strict.value for free, strict in zip(alone, tied, strict=True))
    # A level e of differential privacy bounds the capacity of independent rows by psi(e).
    u = 1.0 / (1.0 - math.exp(-1.0))
    psi = u - 1.0 - math.log(u)
    at_psi = fp.solve_pd_capacity(prior, psi, priors="independent")
    assert at_psi.bound <= fp.solve_pd_dp(prior, 1.0).value


def test_edges():
    prior = fp.Dense([0.4, 0.1, 0.2, 0.3], [2, 2])
    assert fp.solve_pd_capacity(prior, 0.0).value == pytest.approx(0.9)
    assert fp.solve_pd_capacity(prior, 0.0).level == 0.0
    for epsilon in (0.6931471806, 700.0):
        assert fp.solve_pd_capacity(prior, epsilon).value == 0.0
    assert fp.solve_pd_capacity([1.0], 0.1).value == 0.0
    assert fp.solve_pd_capacity([0.0, 1.0], 0.1).value == 0.0
    assert fp.solve_pd_capacity(fp.Uniform(3000, 2), 0.7).method == "closed-form"
    with pytest.warns(fp.GapWarning, match="time limit"):
        hurried = fp.solve_pd_capacity(prior, 0.2, time_limit=1e-9)
    assert 0.0 <= hurried.bound <= hurried.value <= 0.9
    assert fp.individual_capacity(hurried.channel).lower <= 0.2


@pytest.mark.parametrize(
    ("prior", "epsilon", "given", "error", "match"),
    [
        ([0.5, 0.5], -1.0, {}, fp.InvalidInput, "epsilon"),
        ([0.5, 0.5], math.nan, {}, fp.InvalidInput, "epsilon"),
        ([0.5, 0.5], 0.1, {"priors": "markov"}, fp.InvalidInput, "priors"),
        ([0.5, 0.5], 0.1, {"gap": 0.0}, fp.InvalidInput, "gap"),
        (fp.Uniform(4, 3), 0.1, {}, fp.TooLarge, "at most 64 databases"),
        (fp.Uniform(2000, 2), 0.1, {}, fp.TooLarge, "classes of databases"),
        (fp.Dense(np.full(32, 1 / 32), [2, 16]), 0.1, {}, fp.TooLarge, "selections"),
    ],
)
def test_refusals(prior, epsilon, given, error, match):
    with pytest.raises(error, match=match):
        fp.solve_pd_capacity(prior, epsilon, **given)
