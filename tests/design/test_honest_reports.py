"""Solutions that say when they fall short, values rounded up, levels and budgets at their ends."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.design import closed_forms, problem

PRIOR = fp.Dense(np.random.default_rng(1).dirichlet(np.ones(64)), [2] * 6)
JOINT = np.random.default_rng(2).dirichlet(np.ones(40)).reshape(4, 10)
LINE = np.abs(np.subtract.outer(range(10), range(10))).astype(float)
COSTS = [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]


# Gaps that are missed.

LATE = {
    "solve_pd_dp": lambda: fp.solve_pd_dp(PRIOR, 1.0, time_limit=1e-3),
    "solve_pd_mip": lambda: fp.solve_pd_mip(PRIOR, 0.5, time_limit=1e-9),
    "solve_pd_mip with a metric": lambda: fp.solve_pd_mip(
        [0.5, 0.3, 0.2], 0.1, metric=COSTS, time_limit=1e-9
    ),
    "design_mapping": lambda: fp.design_mapping(JOINT, LINE, 0.5, time_limit=1e-9),
    "design_worst_case": lambda: fp.design_worst_case([0.5, 0.3, 0.2], 0.2, COSTS, time_limit=1e-9),
    "solve at a level": lambda: fp.solve(PRIOR, "dp", epsilon=1.0, time_limit=1e-3),
    "solve at a distortion": lambda: fp.solve(PRIOR, "dp", distortion=0.9, time_limit=1e-3),
    "solve for information": lambda: fp.solve(
        PRIOR, "mutual-information", distortion=0.9, time_limit=1e-9
    ),
}


@pytest.mark.parametrize("name", LATE)
def test_a_program_stopped_by_the_clock_says_so(name):
    with pytest.warns(fp.GapWarning, match="the time limit passed") as seen:
        best = LATE[name]()
    assert not any("rounding" in str(one.message) for one in seen)
    assert not best.converged
    assert best.bound < best.value


@pytest.mark.parametrize("seconds", [0.02, 0.05, 0.1])
def test_an_engine_that_leaves_time_for_the_repair_blames_the_clock(seconds):
    """Engines stop before the time limit, so that the matrix is ready by then."""
    prior = fp.Dense(np.random.default_rng(3).dirichlet(np.ones(128)), [2] * 7)
    with pytest.warns(fp.GapWarning) as seen:
        best = fp.solve_pd_dp(prior, 1.0, time_limit=seconds, solver="interior")
    assert not best.converged
    assert all("the time limit passed" in str(one.message) for one in seen)


def test_an_engine_stopped_early_is_remembered():
    asked = problem.Limits.checked(1e-6, math.inf)
    solution = fp.Solution(1.0, 0.5, fp.Channel([[1.0]]), 0.0, "dense")
    with pytest.warns(fp.GapWarning, match="rounding allows no less"):
        problem.reported(solution, asked)
    with pytest.warns(fp.GapWarning, match="the time limit passed"):
        problem.reported(solution, asked, late=True)


def test_an_unreachable_gap_is_reported():
    with pytest.warns(fp.GapWarning, match="wider than gap=1e-12"):
        best = fp.design_worst_case([0.5, 0.3, 0.2], 0.2, COSTS, gap=1e-12)
    assert not best.converged
    assert best.value - best.bound > 1e-12


def test_gaps_that_are_met_are_not_reported():
    assert fp.solve_pd_mip(PRIOR, 0.5).converged
    assert fp.design_mapping(JOINT, LINE, 0.5).converged
    assert fp.design_worst_case([0.5, 0.3, 0.2], 0.2, COSTS).converged
    small = fp.Dense([0.4, 0.25, 0.15, 0.2], [2, 2])
    assert fp.solve(small, "mutual-information", epsilon=0.1).converged


def test_solve_keeps_the_engine():
    prior = fp.Dense([0.4, 0.3, 0.2, 0.1])
    best, plain = fp.solve(prior, "dp", epsilon=0.5), fp.solve_pd_dp(prior, 0.5)
    assert best.solver == plain.solver == "highs"
    assert best.converged is plain.converged is True


# Values.


def exactly(channel, p, cost):
    W = np.array(channel.matrix()).tolist()
    return sum(
        (
            Fraction(p[x]) * Fraction(W[x][y]) * Fraction(cost[x][y])
            for x in range(len(W))
            for y in range(len(W[0]))
        ),
        Fraction(0),
    )


def hamming(sizes):
    rows = np.array([*np.ndindex(*sizes)])
    return (rows[:, None] != rows).sum(axis=2).astype(float).tolist()


PROGRAMS = {
    "dp": lambda prior, e: fp.solve_pd_dp(prior, e),
    "dp by pairs": lambda prior, e: fp.solve_pd_dp(
        prior, e, neighbours=1.0 - np.eye(prior.space.size)
    ),
    "delta": lambda prior, e: fp.solve_pd_dp(prior, e, delta=0.01),
    "identifiability": lambda prior, e: fp.solve_pd_i(prior, e + prior.epsilon_x()),
    "pml": lambda prior, e: fp.solve_pd_pml(prior, e),
    "capacity": lambda prior, e: fp.solve_pd_capacity(prior, e, gap=1e-3),
    "solve": lambda prior, e: fp.solve(prior, "dp", epsilon=e),
    "solve densely": lambda prior, e: fp.solve(prior, "pml", epsilon=e, dense=True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_no_less_than_the_distortion(name):
    """Of the floats of the channel, summed exactly, and as fp.distortion measures it."""
    rng = np.random.default_rng(11)
    for k in range(12):
        sizes = ([3], [2, 2], [4], [2])[k % 4]
        p = rng.dirichlet(np.full(math.prod(sizes), (0.3, 1.0, 10.0)[k % 3]))
        prior = fp.Dense(p, sizes)
        epsilon = float((0.0, 0.1, 0.5, 1.0, 3.0)[k % 5])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fp.GapWarning)
            best = PROGRAMS[name](prior, epsilon)
        assert Fraction(best.value) >= exactly(best.channel, prior.pmf().tolist(), hamming(sizes))
        assert best.value >= fp.distortion(best.channel, prior)
        assert best.bound <= best.value


def test_exact_sums_are_rounded_up_and_no_further():
    rng = np.random.default_rng(4)
    for _ in range(40):
        p, W = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), size=3)
        cost = rng.choice([0.0, 1.0, 0.3, -2.0, 1e9], (3, 4))
        total = sum(
            Fraction(p[x]) * Fraction(W[x, y]) * Fraction(cost[x, y])
            for x in range(3)
            for y in range(4)
        )
        up = closed_forms.exact_cost(p, W, cost)
        assert Fraction(math.nextafter(up, -math.inf)) < total <= Fraction(up)
    assert closed_forms.exact_cost(np.ones(1), np.eye(2)[:1], np.array([[1.0, 5.0]])) == 1.0
    tiny = closed_forms.exact_cost(np.array([1e-200]), np.array([[1e-200]]), np.ones((1, 1)))
    assert tiny > 0.0


# Programs far apart, and for nothing.


@pytest.mark.parametrize("solver", ["auto", "interior", "highs"])
@pytest.mark.parametrize("distance", [7.0, 30.0, 93.0, 150.0, 500.0, 1e300])
def test_inputs_far_apart(solver, distance):
    apart = [[0.0, distance], [distance, 0.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.GapWarning)  # the optimum may be e^-1000
        best = fp.solve_pd_dp([0.5, 0.5], 5.0, neighbours=apart, solver=solver)
    assert best.level <= 5.0
    assert 0.0 <= best.bound <= best.value <= 0.5
    if 5.0 * distance < 700.0:
        assert best.value <= 1.01 * math.exp(-5.0 * distance) + 1e-17


@pytest.mark.parametrize(
    ("prior", "metric"),
    [
        ([1.0, 0.0], [[0.0, 0.0], [1.0, 0.0]]),
        ([0.5, 0.5, 0.0], [[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]]),
        ([1.0, 0.0, 0.0], [[0.0, 0.0, 0.0], [1.0, 0.0, 3.0], [5.0, 1.0, 0.0]]),
    ],
)
@pytest.mark.parametrize("solver", ["auto", "interior", "highs"])
def test_costs_that_only_impossible_databases_have(prior, metric, solver):
    best = fp.solve_pd_dp(prior, 1.0, metric=metric, solver=solver)
    assert (best.value, best.bound, best.converged) == (0.0, 0.0, True)


# Budgets and levels at their ends.


@pytest.mark.parametrize("short", [1e-3, 1e-8, 1e-12, 1e-14, 1e-15])
@pytest.mark.parametrize("notion", ["dp", "identifiability"])
def test_levels_near_the_distortion_of_a_uniform_output(short, notion):
    """Rows of different sizes are solved by bisection, which has no relative error near 0."""
    mpmath = pytest.importorskip("mpmath")
    prior = fp.Product([[0.5, 0.5], [1 / 3] * 3])
    budget = (0.5 + 2 / 3) * (1.0 - short)
    level = fp.privacy_level(prior, budget, notion)
    with mpmath.workdps(50):
        truth = mpmath.findroot(
            lambda e: 1 / (1 + mpmath.e**e) + 2 / (2 + mpmath.e**e) - mpmath.mpf(budget),
            mpmath.mpf(short),
        )
        assert level.lower <= truth <= level.upper
    assert level.width <= 1e-13


@pytest.mark.parametrize("k", range(4))
def test_bounds_around_thresholds_do_not_contradict_each_other(k):
    """A larger level never has a larger optimum, also one double apart."""
    p = np.random.default_rng(k).dirichlet(np.ones(3))
    prior = fp.Dense(p)
    for level, program in (
        (prior.epsilon_hat(), fp.solve_pd_dp),
        (float(prior.epsilon_tilde()), fp.solve_pd_i),
        (-math.log(p.min()), fp.solve_pd_pml),
        (0.0, fp.solve_pd_dp),
        (0.0, fp.solve_pd_pml),
    ):
        found = []
        for epsilon in (level * (1 - 1e-9), level, math.nextafter(level, 9.0), level + 1e-9):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", fp.GapWarning)
                found.append(program(prior, epsilon))
        for i, first in enumerate(found):
            assert all(later.bound <= first.value for later in found[i:])


@pytest.mark.parametrize("notion", ["dp", "identifiability", "pml", "mutual-information"])
def test_levels_fall_up_to_the_last_distortion(notion):
    p = np.array([0.45, 0.35, 0.2])
    prior, most = fp.Dense(p), 1.0 - 0.45
    budgets = (0.0, 5e-324, 1e-9, 0.3, most * (1 - 1e-9), math.nextafter(most, 0.0), most, 1.0)
    levels = [fp.privacy_level(prior, budget, notion) for budget in budgets]
    for i, first in enumerate(levels):
        assert all(later.lower <= first.upper for later in levels[i:])
