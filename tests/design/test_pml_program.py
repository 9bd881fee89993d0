"""Least distortion at a level of pointwise maximal leakage, against a plain program."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import fastpriv as fp
from fastpriv.design import leakage_program


def plain(p, sizes, epsilon):
    """The optimum of the program, constraint by constraint."""
    rows = list(np.ndindex(*sizes))
    support = [x for x in range(len(rows)) if p[x] > 0]
    N, S = len(rows), len(support)
    apart = [[int(np.not_equal(a, b).sum()) for b in rows] for a in rows]
    cost = [p[x] * apart[x][y] for x in support for y in range(N)]
    leak, sums = [], np.zeros((S, S * N))
    for i in range(S):
        sums[i, i * N : (i + 1) * N] = 1.0
        for y in range(N):
            line = np.zeros(S * N)
            for j, z in enumerate(support):
                line[j * N + y] -= p[z]
            line[i * N + y] += math.exp(-epsilon)
            leak.append(line)
    return linprog(cost, np.array(leak), np.zeros(len(leak)), sums, np.ones(S)).fun


@settings(max_examples=30, deadline=None)
@given(
    st.sampled_from([(2,), (3,), (2, 2), (4,), (3, 2)]),
    st.sampled_from([0.0, 1e-6, 0.1, 0.7, 1.5, 5.0]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_optimum(sizes, epsilon, zeros, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(math.prod(sizes)))
    if zeros:
        p[1:] *= rng.random(len(p) - 1) < 0.6
        p /= p.sum()
    prior = fp.Dense(p, sizes)
    best = fp.solve_pd_pml(prior, epsilon)
    want = plain(prior.pmf(), sizes, epsilon)
    assert best.bound <= want + 1e-7
    assert best.value >= want - 1e-7
    assert best.value - best.bound <= 1e-7
    assert best.level == fp.pml_level(best.channel, prior) <= epsilon
    assert best.value == pytest.approx(fp.distortion(best.channel, prior), abs=1e-12)


@pytest.mark.parametrize(("n", "epsilon"), [(4, 0.3), (4, 1.5), (5, 0.3)])
def test_columns_that_are_nearly_zero(n, epsilon):
    """The solver leaves traces in outputs that are not used: mending them costs nothing."""
    p = np.random.default_rng(1).dirichlet(np.ones(2**n))
    best = fp.solve_pd_pml(fp.Dense(p, [2] * n), epsilon)
    assert best.gap < 1e-9
    assert best.level <= epsilon


def test_no_time():
    prior = fp.Dense(np.random.default_rng(2).dirichlet(np.ones(32)), [2] * 5)
    with pytest.warns(fp.GapWarning, match="time limit"):
        best = fp.solve_pd_pml(prior, 0.5, time_limit=1e-9)
    assert (best.bound, best.level) == (0.0, 0.0)
    assert best.value == fp.solve_pd_dp(prior, 0.0).value


def test_edges():
    assert fp.solve_pd_pml([1.0], 1.0).value == 0.0
    uniform = fp.Uniform(2, 2)
    assert fp.solve_pd_pml(uniform, math.log(4) * (1 + 1e-12)).value <= 1e-12
    assert fp.solve_pd_pml(uniform, 700.0).value == 0.0
    # Differential privacy of every row, n e together, is no better than leakage n e.
    assert fp.solve_pd_pml(uniform, 0.8).bound <= fp.solve_pd_dp(uniform, 0.4).value


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, "1"])
def test_bad_levels(epsilon):
    with pytest.raises(fp.InvalidInput, match="epsilon"):
        fp.solve_pd_pml([0.5, 0.5], epsilon)


def test_too_many_databases():
    with pytest.raises(fp.TooLarge, match="possible ones"):
        fp.solve_pd_pml(fp.Dense(np.full(256, 1 / 256), [2] * 8), 1.0)
    with pytest.raises(fp.TooLarge, match="classes of databases"):
        fp.solve_pd_pml(fp.Uniform(2000, 2), 1.0)


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.3, 1.5, 20.0])
@pytest.mark.parametrize(("n", "m"), [(1, 2), (4, 2), (2, 3)])
def test_types_reach_the_optimum_over_all_databases(n, m, epsilon):
    """Mechanisms that no permutation of the rows changes are enough for exchangeable rows."""
    shape = (n + 1,) * (m - 1)
    weights = np.random.default_rng(n).random(shape)
    weights[np.indices(shape).sum(axis=0) > n] = 0.0
    weights[(1,) * (m - 1)] = 0.0  # a type that never occurs
    prior = fp.Exchangeable(weights / weights.sum())
    best = fp.solve_pd_pml(prior, epsilon)
    want = plain(prior.pmf(), [m] * n, epsilon)
    assert best.bound <= want + 1e-9
    assert want - 1e-9 <= best.value <= want + 1e-7
    assert best.level <= epsilon
    assert best.level == pytest.approx(fp.pml_level(best.channel, prior), abs=1e-13)
    assert best.value == pytest.approx(fp.distortion(best.channel, prior), abs=1e-12)
    full = fp.Channel(best.channel.matrix(), prior.space)
    assert fp.pml_level(full, fp.Dense(prior.pmf(), [m] * n)) <= epsilon + 1e-12


def test_dozens_of_rows():
    """The gap is certified; independent rows of one law are exchangeable."""
    for prior in (fp.Exchangeable.beta_binomial(24, 2.0, 3.0), fp.Product.iid([0.7, 0.3], 20)):
        best = fp.solve_pd_pml(prior, 2.0)
        assert best.method == "types"
        assert best.gap < 1e-9
        assert best.level <= 2.0
    with pytest.raises(fp.TooLarge, match="classes"):
        fp.solve_pd_pml(fp.Exchangeable.beta_binomial(500, 2.0, 3.0), 2.0)


RARE = {
    "one row": ([4], [0.0789235, 2.79657644e-6, 0.92107370204, 1.38e-9]),
    "rarer": ([3], [0.999999024, 9.7505e-7, 8.2554e-10]),
    "two rows": ([2, 3], [3.2e-3, 2.1e-2, 1.7e-10, 6.3e-1, 7.5e-10, 3.4e-1]),
    "hardly ever": ([3], [0.6, 0.4, 1e-300]),
}


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-12, 1e-6, 0.3])
@pytest.mark.parametrize("name", RARE)
def test_weights_that_the_solver_drops(name, epsilon):
    """A constant answer is always allowed, and near epsilon = 0 nothing is much better."""
    sizes, weights = RARE[name]
    p = np.array(weights) / math.fsum(weights)
    prior = fp.Dense(p, sizes)
    best = fp.solve_pd_pml(prior, epsilon, gap=0.1)
    assert best.level <= epsilon
    assert best.value - best.bound <= 1e-7
    assert best.value <= fp.solve_pd_dp(prior, 0.0).value
    if name != "rarer":  # where the solver behind the reference has the same trouble
        want = plain(prior.pmf(), sizes, epsilon)
        assert best.bound - 1e-7 <= want <= best.value + 1e-7
    if epsilon == 0.0:
        assert best.method == "closed-form"
        assert best.gap < 1e-12


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 0.2])
def test_a_solver_that_fails(epsilon, monkeypatch):
    """The constant answer, with a bound that needs no solver."""

    def fails(*_):
        raise fp.SolverFailure("HiGHS stopped with 'Unknown'")

    p = [0.5, 0.3, 0.2]
    want = plain(p, [3], epsilon)
    monkeypatch.setattr(leakage_program.LeakageProgram, "solve", fails)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.GapWarning)
        best = fp.solve_pd_pml(p, epsilon)
    assert best.level == 0.0
    assert best.value == pytest.approx(0.5)
    assert best.bound <= want + 1e-9
    assert best.bound >= 0.5 - 2.0 * math.expm1(epsilon)
    if epsilon == 0.2:
        with pytest.warns(fp.GapWarning, match="Unknown"):
            fp.solve_pd_pml(p, epsilon)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 1e-4])
@pytest.mark.parametrize("failing", [False, True])
def test_rare_types(epsilon, failing, monkeypatch):
    """Weights of types that the solver drops, and a bound that needs no solver."""
    weights = np.array([0.07, 1e-10, 0.3, 4e-11, 0.6, 2e-10, 0.03, 1e-12, 1e-6])
    prior = fp.Exchangeable(weights / weights.sum())
    if failing:

        def fails(*_):
            raise fp.SolverFailure("HiGHS stopped with 'Unknown'")

        monkeypatch.setattr(leakage_program.LeakageProgram, "solve", fails)
    best = fp.solve_pd_pml(prior, epsilon, gap=0.1)
    constant = fp.solve_pd_pml(prior, 0.0)
    assert best.level <= epsilon
    assert best.value <= constant.value
    assert best.bound >= constant.bound - 1e-6 - 9e3 * epsilon
