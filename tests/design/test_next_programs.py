"""Sets of priors, (epsilon, delta), least capacity, and what the theorems say without a program."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, mpf
from scipy.optimize import linprog

import fastpriv as fp
from fastpriv.design.closed_forms import theorem_bracket
from fastpriv.notions.registry import COMPARED, DESIGNED, NOTIONS
from fastpriv.priors.unmixing import tilde_bound


def neighbours(sizes):
    """Ordered pairs of databases that differ in one row."""
    rows = list(itertools.product(*map(range, sizes)))
    return [
        (i, j)
        for i, j in itertools.permutations(range(len(rows)), 2)
        if sum(a != b for a, b in zip(rows[i], rows[j], strict=True)) == 1
    ]


def distance(sizes):
    """Hamming distances, by loops."""
    rows = list(itertools.product(*map(range, sizes)))
    return np.array([[sum(a != b for a, b in zip(x, y, strict=True)) for y in rows] for x in rows])


# (epsilon, delta)


def naive_delta(prior, cost, sizes, epsilon, delta):
    """The program at an (epsilon, delta) level, written out."""
    size, outputs = cost.shape
    pairs = neighbours(sizes)
    count = size * outputs + len(pairs) * outputs
    rows, limits = [], []
    for number, (x, z) in enumerate(pairs):
        total = np.zeros(count)
        for y in range(outputs):
            row = np.zeros(count)
            row[x * outputs + y] = 1.0
            row[z * outputs + y] = -math.exp(epsilon)
            row[size * outputs + number * outputs + y] = -1.0
            total[size * outputs + number * outputs + y] = 1.0
            rows.append(row)
            limits.append(0.0)
        rows.append(total)
        limits.append(delta)
    sums = np.hstack(
        [np.kron(np.eye(size), np.ones(outputs)), np.zeros((size, count - size * outputs))]
    )
    charge = np.append((prior[:, None] * cost).reshape(-1), np.zeros(count - size * outputs))
    found = linprog(charge, np.array(rows), limits, sums, np.ones(size))
    assert found.status == 0
    return found.fun


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(2,), (3,), (2, 2), (2, 3)]),
    st.floats(0.0, 2.0),
    st.floats(1e-6, 0.999999) | st.just(1.0),  # between, the optimum is lost in rounding: below
)
def test_delta_against_a_naive_program(seed, sizes, epsilon, delta):
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(math.prod(sizes)))
    solution = fp.solve_pd_dp(fp.Dense(prior, sizes), epsilon, delta=delta)
    best = naive_delta(prior, distance(sizes), sizes, epsilon, delta)
    assert solution.value == pytest.approx(best, rel=2e-6, abs=1e-9)
    matrix = solution.channel.matrix()
    for x, z in neighbours(sizes):
        excess = sum(
            max(mpf(a) - exp(mpf(epsilon)) * mpf(b), mpf(0))
            for a, b in zip(matrix[x].tolist(), matrix[z].tolist(), strict=True)
        )
        assert excess <= delta
    assert fp.hockey_stick(solution.channel, epsilon) <= delta


def test_delta_next_to_one_is_proved_up_to_rounding():
    delta = math.nextafter(1.0, 0.0)
    with pytest.warns(fp.errors.GapWarning, match="rounding allows no less"):
        solution = fp.solve_pd_dp([0.25, 0.75], 0.0, delta=delta)
    assert solution.bound <= 0.25 * (1.0 - delta) <= solution.value < 1e-12


def test_delta_with_a_metric_and_its_ends():
    prior = [0.2, 0.3, 0.5]
    free = fp.solve_pd_dp(prior, 0.5, delta=1.0)
    assert (free.value, free.method) == (0.0, "closed-form")
    shifted = fp.solve_pd_dp(
        prior, 0.5, delta=0.1, metric=np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]]) - 2
    )
    plain = fp.solve_pd_dp(prior, 0.5, delta=0.1)
    assert shifted.value == pytest.approx(plain.value - 2.0, rel=1e-9)
    assert fp.solve_pd_dp(prior, 0.5).value == pytest.approx(
        fp.solve_pd_dp(prior, 0.5, delta=1e-12).value, rel=1e-9
    )
    with pytest.raises(fp.InvalidInput, match="delta must come with"):
        fp.solve_pd_dp(prior, 0.5, delta=0.1, group=2)
    with pytest.raises(fp.InvalidInput, match="delta"):
        fp.solve_pd_dp(prior, 0.5, delta=-0.1)


# Sets of priors


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_all_priors_have_a_closed_form(epsilon):
    """The m-ary symmetric channel has the same distortion for every input: it is minimax."""
    solution = fp.solve_minimax(fp.PriorSet.all(4), epsilon)
    assert solution.value == pytest.approx(3.0 / (3.0 + math.exp(epsilon)), rel=1e-9)
    assert solution.gap <= 1e-6
    rows = fp.solve_minimax(fp.PriorSet.product([2, 2]), epsilon, sizes=[2, 2])
    assert rows.value == pytest.approx(2.0 / (1.0 + math.exp(epsilon)), rel=1e-9)


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 2.0))
def test_a_box_lies_between_its_priors_and_all(seed, epsilon):
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.ones(4))
    box = fp.PriorSet.box(np.maximum(centre - 0.1, 0.0), np.minimum(centre + 0.1, 1.0))
    solution = fp.solve_minimax(box, epsilon, sizes=[2, 2])
    assert solution.gap <= 1e-6
    assert solution.level <= epsilon
    assert fp.dp_level(solution.channel) <= epsilon
    matrix, apart = solution.channel.matrix(), distance([2, 2])
    losses = (matrix * apart).sum(axis=1)
    table = linprog(
        -losses,
        A_eq=np.ones((1, 4)),
        b_eq=[1.0],
        bounds=list(zip(np.maximum(centre - 0.1, 0), np.minimum(centre + 0.1, 1), strict=True)),
    )
    assert solution.value == pytest.approx(-table.fun, rel=1e-9)
    assert fp.solve_pd_dp(fp.Dense(centre, [2, 2]), epsilon).bound <= solution.value
    assert solution.bound <= fp.solve_minimax(fp.PriorSet.all(4), epsilon, sizes=[2, 2]).value
    # A polytope with the same inequalities is the same set.
    inequalities = np.vstack([np.eye(4), -np.eye(4)])
    limits = np.append(np.minimum(centre + 0.1, 1.0), -np.maximum(centre - 0.1, 0.0))
    polytope = fp.solve_minimax(fp.PriorSet.polytope(inequalities, limits), epsilon, sizes=[2, 2])
    assert polytope.value == pytest.approx(solution.value, rel=2e-6)


def test_one_prior_is_the_plain_program():
    p = np.array([0.5, 0.3, 0.2])
    solution = fp.solve_minimax(fp.PriorSet.box(p, p), 0.7)
    assert solution.value == pytest.approx(fp.solve_pd_dp(p, 0.7).value, rel=2e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fp.solve_minimax("all", 1.0), "PriorSet"),
        (lambda: fp.solve_minimax(fp.PriorSet.all(4), 1.0, sizes=[2, 3]), "got 4 databases"),
        (lambda: fp.solve_minimax(fp.PriorSet.all(4), -1.0), "epsilon"),
        (
            lambda: fp.solve_minimax(fp.PriorSet.bernoulli_interval(2, 0.1), 1.0, sizes=[2, 2]),
            "a polytope or a hull; got",
        ),
        (lambda: fp.least_capacity([[0.0, math.nan]], 1.0), "finite"),
        (lambda: fp.least_capacity([[0.0, 1.0]], math.nan), "finite"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(fp.InvalidInput, match=message):
        call()


# Least capacity


def test_least_capacity_of_the_paper_and_of_symmetric_costs():
    apart = np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    assert fp.least_capacity(apart, 0.4).value == pytest.approx(0.2615, abs=5e-5)
    for m, budget in ((2, 0.1), (5, 0.3)):
        solution = fp.least_capacity(1.0 - np.eye(m), budget)
        entropy = -budget * math.log(budget / (m - 1)) - (1 - budget) * math.log(1 - budget)
        assert solution.value == pytest.approx(math.log(m) - entropy, rel=1e-9)
        assert solution.gap <= 1e-6


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_no_mapping_within_budget_has_less_capacity(seed):
    rng = np.random.default_rng(seed)
    inputs, outputs = rng.integers(2, 5), rng.integers(2, 5)
    cost = rng.random((inputs, outputs))
    budget = cost.min(axis=1) + 0.2 * rng.random(inputs)
    solution = fp.least_capacity(cost, budget)
    matrix = solution.channel.matrix()
    assert ((matrix * cost).sum(axis=1) <= budget * (1.0 + 1e-15)).all()
    assert solution.bound <= fp.channel_capacity(solution.channel).upper <= solution.value
    assert solution.gap <= 1e-6
    # Random mappings within budget, made by mixing with the cheapest outputs.
    cheapest = np.eye(outputs)[cost.argmin(axis=1)]
    for _ in range(20):
        other = rng.dirichlet(np.ones(outputs), inputs)
        spent = (other * cost).sum(axis=1) - cost.min(axis=1)
        share = np.minimum(1.0, (budget - cost.min(axis=1)) / np.maximum(spent, 1e-300))
        mixed = share[:, None] * other + (1.0 - share)[:, None] * cheapest
        assert fp.channel_capacity(fp.Channel(mixed)).upper >= solution.bound


def test_a_budget_that_no_output_meets():
    with pytest.raises(fp.Infeasible, match=r"smallest cost of input 1 is 0\.5"):
        fp.least_capacity([[0.0, 1.0], [0.5, 0.7]], 0.2)
    assert fp.least_capacity([[0.0, 1.0], [0.5, 0.7]], 0.5).value == 0.0
    one = fp.least_capacity([[0.0, 1.0], [1.0, 0.0]], [0.0, 0.0])
    assert one.value == pytest.approx(math.log(2.0), rel=1e-9)


# What the theorems say


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(2,), (4,), (2, 2), (3, 3), (2, 2, 2), (2, 3)]))
def test_the_closed_bound_on_eps_tilde(seed, sizes):
    prior = fp.Dense(np.random.default_rng(seed).dirichlet(np.full(math.prod(sizes), 4.0)), sizes)
    closed = tilde_bound(sizes, prior.epsilon_x())
    assert prior.epsilon_tilde() <= closed
    n, m = len(sizes), max(sizes)
    assert closed <= (math.log(n * (m - 1) / math.log(2) + 1) + prior.epsilon_x()) * (1 + 1e-12)


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.9))
def test_theorem_brackets_hold_the_level(seed, share):
    rng = np.random.default_rng(seed)
    prior = fp.Dense(rng.dirichlet(np.full(4, 3.0)), [2, 2])
    cost = share * fp.solve_pd_dp(prior, 0.0).value
    for notion in COMPARED:
        level, theorem = fp.privacy_level(prior, cost, notion), theorem_bracket(prior, cost, notion)
        assert theorem.lower <= level.upper
        assert level.lower <= theorem.upper


@pytest.mark.parametrize("share", [0.02, 0.4, 0.9])
@pytest.mark.parametrize("sizes", [(2, 2), (4,), (3, 2)])
@pytest.mark.parametrize("notion", ["pml", "individual-capacity"])
def test_theorem_brackets_of_leakages(notion, sizes, share):
    """At the lower end no mechanism is that cheap, at the upper end one is."""
    rng = np.random.default_rng(sum(sizes))
    prior = fp.Dense(rng.dirichlet(np.full(math.prod(sizes), 3.0)), sizes)
    cost = share * fp.solve_pd_dp(prior, 0.0).value
    theorem = theorem_bracket(prior, cost, notion)
    assert NOTIONS[notion].solve(prior, theorem.lower, gap=1e-2).value >= cost
    assert NOTIONS[notion].solve(prior, theorem.upper, gap=1e-2).bound <= cost


def test_long_markov_chains_get_brackets():
    prior = fp.Markov([0.6, 0.4], [[0.8, 0.2], [0.3, 0.7]], 200)
    for notion in DESIGNED:
        for cost in (0.1, 5.0, 60.0):
            level = fp.privacy_level(prior, cost, notion)
            assert 0.0 <= level.lower <= level.upper < math.inf
    curve = fp.tradeoff_curve(prior, distortions=[0.1, 5.0, 30.0])
    assert np.isfinite(curve.theorem_upper["identifiability"]).all()
    assert np.isfinite(curve.upper["identifiability"]).all()


def test_the_upper_bound_of_identifiability_is_finite_and_holds():
    prior = fp.Exchangeable.beta_binomial(4, 0.5, 0.8)
    curve = fp.tradeoff_curve(prior, ["identifiability"])
    upper = curve.theorem_upper["identifiability"]
    assert np.isfinite(upper).all()
    assert (curve.lower["identifiability"] <= upper * (1 + 1e-9)).all()


def test_one_hard_point_does_not_lose_the_curve(monkeypatch):
    from fastpriv.design import tradeoff

    plain, prior = tradeoff._level, fp.Exchangeable.beta_binomial(3, 0.5, 0.8)

    def sometimes(prior, cost, *rest):
        if cost == 0.5:
            raise fp.SolverFailure("HiGHS stopped with 'Unknown'")
        return plain(prior, cost, *rest)

    monkeypatch.setattr(tradeoff, "_level", sometimes)
    found = fp.tradeoff_curve(prior, ["dp"], [0.2, 0.5, 0.6])
    assert np.isfinite(found.upper["dp"]).all()
    assert found.upper["dp"][1] - found.lower["dp"][1] > 1e-3
    assert found.upper["dp"][2] - found.lower["dp"][2] < 1e-5
