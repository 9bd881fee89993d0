"""Any cost, any outputs, any graph or metric: against a plain linear program, and by definition."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, mpf
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

import fastpriv as fp
from fastpriv._structure import neighbours
from fastpriv.design import engines, reductions
from fastpriv.design.cone import GrowingCone, Place
from fastpriv.design.engines import interior
from fastpriv.design.reductions import ByOrbits


def cells(a, b):
    """Centres of a grid of cells, and the distances between them."""
    points = np.array(list(itertools.product(range(a), range(b))), dtype=float)
    return np.linalg.norm(points[:, None] - points, axis=2)


def naive(prior, cost, distance, epsilon, joint):
    """Solve the plain program, with a row for every pair, by SciPy's HiGHS."""
    size, outputs = cost.shape
    pairs = [(x, z) for x, z in itertools.permutations(range(size), 2) if distance[x, z] < math.inf]
    rows, columns, values = [], [], []
    for number, ((x, z), y) in enumerate(itertools.product(pairs, range(outputs))):
        rows += [number, number]
        columns += [x * outputs + y, z * outputs + y]
        values += [1.0, -math.exp(epsilon * distance[x, z])]
    count = len(pairs) * outputs
    bounds = coo_array((values, (rows, columns)), shape=(count, size * outputs))
    totals = np.kron(np.eye(size), np.ones(outputs))
    charge = cost if joint else prior[:, None] * cost
    rhs = prior if joint else np.ones(size)
    found = linprog(charge.reshape(-1), bounds.tocsr(), np.zeros(count), totals, rhs)
    assert found.status == 0
    return found.fun


def check(solution, prior, cost, distance, epsilon, joint=False):
    """Privacy of every pair of floats in 50-digit arithmetic, rows, value and certificate."""
    matrix = solution.channel.matrix()
    weights = prior if joint else np.ones(len(prior))
    for x, z in itertools.permutations(range(len(prior)), 2):
        if distance[x, z] < math.inf:
            most = exp(mpf(epsilon) * mpf(distance[x, z])) * mpf(weights[z]) / mpf(weights[x])
            assert all(
                mpf(a) <= most * mpf(b)
                for a, b in zip(matrix[x].tolist(), matrix[z].tolist(), strict=True)
            )
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < 1e-13
    assert solution.value == pytest.approx((prior[:, None] * matrix * cost).sum(), rel=1e-12)
    assert solution.bound <= solution.value
    assert solution.level <= epsilon


@pytest.mark.slow(but=["4-0.1823215567939546-1.491733427", "6-0.1823215567939546-2.1930889637"])
@pytest.mark.parametrize(
    ("a", "epsilon", "loss"),
    [
        (4, math.log(1.2), 1.4917334270),
        (6, math.log(1.2), 2.1930889637),
        (7, math.log(1.2), 2.5521813738),
        (8, math.log(2.0) / 2.0, 2.5624288370),
    ],
)
def test_published_grids(a, epsilon, loss):
    apart, prior = cells(a, a), np.full(a * a, 1.0 / (a * a))
    solution = fp.solve_pd_dp(prior, epsilon, metric=apart, neighbours=apart, gap=1e-8)
    assert solution.value == pytest.approx(loss, rel=1e-8)
    assert solution.bound <= loss * (1.0 + 1e-10)
    assert solution.gap <= 1e-8
    check(solution, prior, apart, apart, epsilon)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_agreement_with_a_naive_program(seed, joint):
    rng = np.random.default_rng(seed)
    size, outputs = rng.integers(2, 7), rng.integers(1, 6)
    prior, cost = rng.dirichlet(np.full(size, 3.0)), rng.normal(size=(size, outputs))
    points = rng.random((size, 2))
    distance = np.linalg.norm(points[:, None] - points, axis=2) + 0.1 * (1.0 - np.eye(size))
    least = (np.log(prior[:, None] / prior) / (distance + np.eye(size))).max() if joint else 0.0
    epsilon = least + float(10 ** rng.uniform(-2, 1))
    solve = fp.solve_pd_i if joint else fp.solve_pd_dp
    solution = solve(prior, epsilon, metric=cost, neighbours=distance, gap=1e-6)
    best = naive(prior, cost, distance, epsilon, joint)
    assert solution.value == pytest.approx(best, rel=2e-6, abs=1e-8)
    check(solution, prior, cost, distance, epsilon, joint)


@pytest.mark.parametrize("joint", [False, True])
def test_the_default_cost_and_graph_are_those_of_the_plain_programs(joint):
    prior = fp.Dense([0.1, 0.2, 0.3, 0.15, 0.05, 0.2], [2, 3])
    epsilon = prior.epsilon_x() + 0.1 if joint else 0.4
    solve = fp.solve_pd_i if joint else fp.solve_pd_dp
    plain = solve(prior, epsilon)
    edges = [
        (x, z)
        for x, z in itertools.combinations(range(6), 2)
        if sum(a != b for a, b in zip(divmod(x, 3), divmod(z, 3), strict=True)) == 1
    ]
    adjacency = np.zeros((6, 6), dtype=bool)
    for x, z in edges:
        adjacency[x, z] = adjacency[z, x] = True
    for graph in (np.array(edges), adjacency, csr_array(adjacency)):
        general = solve(prior, epsilon, neighbours=graph)
        assert general.value == pytest.approx(plain.value, rel=2e-6)
        assert max(plain.bound, general.bound) <= min(plain.value, general.value)


def test_groups_of_rows():
    """A level for groups of two rows is between the level itself and half of it."""
    prior = fp.Dense(np.random.default_rng(3).dirichlet(np.ones(8)), [2, 2, 2])
    solution = fp.solve_pd_dp(prior, 1.0, group=2)
    changed = neighbours.hamming_distances(prior.space)
    assert fp.solve_pd_dp(prior, 1.0).bound <= solution.value
    assert solution.bound <= fp.solve_pd_dp(prior, 0.5).value
    best = naive(prior.pmf(), changed, np.where(changed <= 2, 1.0, math.inf), 1.0, False)
    assert solution.value == pytest.approx(best, rel=2e-6)
    check(solution, prior.pmf(), changed, np.ceil(changed / 2), 1.0)


def test_inputs_that_nothing_relates_are_told_apart():
    prior = np.array([0.2, 0.3, 0.5])
    solution = fp.solve_pd_dp(prior, 1.0, neighbours=np.array([[0, 1]]))
    assert solution.channel.matrix()[2].tolist() == pytest.approx([0.0, 0.0, 1.0], abs=1e-9)
    distance = np.array([[0, 1, math.inf], [1, 0, math.inf], [math.inf, math.inf, 0]])
    best = naive(prior, 1.0 - np.eye(3), distance, 1.0, False)
    assert solution.value == pytest.approx(best, rel=2e-6)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-9, 0.5]), st.booleans())
def test_inputs_of_several_components(seed, epsilon, joint):
    """Only what a chain of neighbours joins looks alike: at epsilon 0 it has the same row."""
    rng = np.random.default_rng(seed)
    size, outputs, parts = rng.integers(1, 7), rng.integers(1, 5), rng.integers(1, 5)
    part = rng.integers(0, parts, size)
    distance = np.where(part[:, None] == part, rng.uniform(0.5, 2.0, (size, size)), math.inf)
    distance = np.where(np.eye(size, dtype=bool), 0.0, np.maximum(distance, distance.T))
    prior, cost = rng.dirichlet(np.ones(parts))[part], rng.normal(size=(size, outputs))
    prior = prior / prior.sum()  # the same within a part, as identifiability at level 0 needs
    solve = fp.solve_pd_i if joint else fp.solve_pd_dp
    solution = solve(prior, epsilon, metric=cost, neighbours=distance)
    shortest = neighbours.distances(distance, size)
    best = naive(prior, cost, shortest, epsilon, joint)
    assert solution.bound <= best + 1e-7  # the reference may break its rows by that much
    assert solution.value == pytest.approx(best, rel=2e-6, abs=1e-7)
    check(solution, prior, cost, shortest, epsilon, joint)
    if not joint:
        minimax = fp.solve_minimax(
            fp.PriorSet.box(prior, prior), epsilon, metric=cost, neighbours=distance
        )
        assert minimax.bound <= best + 1e-7
        assert minimax.value == pytest.approx(best, rel=2e-6, abs=1e-7)
        assert minimax.level <= epsilon


@pytest.mark.parametrize(
    "graph",
    [[[0, 0]], np.empty((0, 2), dtype=int), np.zeros((3, 3), dtype=bool), csr_array((3, 3))],
)
def test_at_epsilon_0_a_graph_without_edges_asks_for_nothing(graph):
    for solve in (fp.solve_pd_dp, fp.solve_pd_i):
        solution = solve([0.2, 0.3, 0.5], 0.0, neighbours=graph)
        assert (solution.value, solution.bound, solution.level) == (0.0, 0.0, 0.0)


def test_the_least_bound_at_epsilon_0_is_below_the_exact_optimum():
    rng = np.random.default_rng(1)
    for _ in range(100):
        prior, cost = rng.dirichlet(np.ones(5)), rng.normal(size=(5, 3))
        solution = fp.solve_pd_dp(prior, 0.0, metric=cost, neighbours=[[0, 1], [1, 2], [3, 4]])
        exact = sum(
            min(sum(Fraction(prior[x]) * Fraction(cost[x, y]) for x in part) for y in range(3))
            for part in [(0, 1, 2), (3, 4)]
        )
        assert solution.bound <= exact <= solution.value + 1e-15


def test_the_spanner_keeps_what_no_chain_implies():
    distance = cells(5, 5)
    keep = neighbours.spanner(distance)
    for x, z in itertools.permutations(range(25), 2):
        step = np.abs(np.subtract(divmod(x, 5), divmod(z, 5)))
        assert keep[x, z] == (math.gcd(*step.tolist()) == 1)
    assert not keep.diagonal().any()


def test_symmetries_of_a_square_a_path_and_a_random_prior():
    square, path = cells(4, 4), cells(1, 5)
    uniform = np.full(16, 1.0 / 16.0)
    group = reductions.automorphisms(uniform, square, square)
    assert len(group) == 8
    assert len({tuple(moved) for moved in group.tolist()}) == 8
    orbits = reductions.Orbits.of(group, 16)
    assert len(orbits.outputs) == 3
    assert orbits.copies.sum() == 16
    assert len(reductions.automorphisms(np.full(5, 0.2), path, path)) == 2
    uneven = np.random.default_rng(0).dirichlet(np.ones(16))
    assert len(reductions.automorphisms(uneven, square, square)) == 1
    # A cost that breaks the symmetry is noticed.
    tilted = square + np.arange(16)
    assert len(reductions.automorphisms(uniform, tilted, square)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
def test_pairs_that_join_when_they_come_near(joint, monkeypatch):
    """The method for large programs, forced on a small one, agrees with the one that lists."""
    distance = cells(4, 5)
    prior = np.random.default_rng(1).dirichlet(np.full(20, 9.0))
    epsilon = 0.6 if not joint else 0.2 + float((np.log(prior[:, None] / prior)).max())
    solve = fp.solve_pd_i if joint else fp.solve_pd_dp
    listed = solve(prior, epsilon, metric=distance, neighbours=distance, gap=1e-8)
    monkeypatch.setattr(reductions, "MAX_LISTED", 0)
    grown = solve(prior, epsilon, metric=distance, neighbours=distance, gap=1e-6)
    assert grown.gap <= 1e-6
    assert grown.value == pytest.approx(listed.value, rel=1e-6)
    assert grown.bound <= listed.value
    check(grown, prior, distance, distance, epsilon, joint)


def test_violated_pairs_join_with_a_positive_slack():
    distance = cells(3, 3)
    ratio = np.exp(distance)
    start = np.full((9, 9), 1.0 / 9.0)
    cone = GrowingCone(
        distance.copy(), np.arange(9), np.ones(9), ratio, ratio, distance == 1, start
    )
    v = np.full((9, 9), 1.0 / 9.0)
    v[:, 0] = 1.0  # e^sqrt(2) times its diagonal neighbour is below it
    s = np.maximum(cone.slack(v), 1e-3)
    at = cone.joined(Place(v, s, 1.0 / s, 1.0 / s**2, cone.slack(v) - s))
    assert len(at.s) > len(s)
    assert (at.s > 0.0).all()
    assert (at.w > 0.0).all()
    np.testing.assert_allclose(at.s + at.off, cone.slack(v), atol=1e-15)
    assert (at.off[cone.slack(v) < 0.0] < 0.0).all()
    point = cone.feasible(v)
    assert point is not None
    np.testing.assert_allclose(point.sum(axis=0), 1.0, rtol=1e-12)
    assert (point[:, :, None] <= ratio * point[:, None, :] * (1.0 + 1e-12)).all()


@pytest.mark.slow
def test_cells_take_few_interior_point_steps(monkeypatch):
    """With steps cut at every pair, this took 47 of them; with violated pairs, 33."""
    distance = cells(16, 16)
    level = math.log(2.0) / 2.0
    monkeypatch.setattr(interior, "_MAX_STEPS", 40)
    solution = fp.solve_pd_dp(
        np.full(256, 1.0 / 256.0), level, gap=1e-3, metric=distance, neighbours=distance,
        solver="interior",
    )  # fmt: skip
    assert solution.gap <= 1e-3
    logs = np.log(solution.channel.matrix())
    apart = distance + np.eye(256)
    steepest = max((np.abs(logs - logs[x]).max(axis=1) / apart[x]).max() for x in range(len(logs)))
    assert steepest <= level * (1.0 + 1e-12)


def test_a_grown_set_is_sorted_by_output():
    distance = cells(3, 3)
    cone = GrowingCone(
        distance.copy(),
        np.arange(9),
        np.ones(9),
        np.exp(distance),
        np.exp(distance),
        distance == 1,
        np.ones((9, 9)),
    )
    v = np.exp(-distance) + 1e-3
    before = {
        (k, int(s), int(t))
        for k in range(9)
        for s, t in zip(
            cone.source[cone.starts[k] : cone.starts[k + 1]],
            cone.target[cone.starts[k] : cone.starts[k + 1]],
            strict=True,
        )
    }
    old = cone.grow(v)
    assert old.sum() == len(before)
    assert len(old) > old.sum()
    for k in range(9):
        for e in range(cone.starts[k], cone.starts[k + 1]):
            pair = (k, int(cone.source[e]), int(cone.target[e]))
            assert (pair in before) == old[e]
            assert cone.member[pair]
    assert cone.starts[-1] == len(old)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": [[0.0, math.nan], [1.0, 0.0]]}, "metric must hold finite numbers"),
        ({"metric": [[0.0, 1.0]]}, "a row for each of 2 inputs"),
        ({"neighbours": [[0.0, 1.0], [2.0, 0.0]]}, "symmetric"),
        ({"neighbours": np.array([[False, True], [False, False]])}, "symmetric"),
        ({"neighbours": [[0.0, math.nan], [math.nan, 0.0]]}, "NaN"),
        ({"neighbours": [[0.0, 0.0], [0.0, 0.0]]}, "merge inputs at distance 0"),
        ({"neighbours": [[0.0, -1.0], [-1.0, 0.0]]}, "at least 0"),
        ({"neighbours": np.array([[0, 5]])}, "pairs of inputs 0 to 1"),
        ({"neighbours": np.zeros((3, 3))}, "shape \\(3, 3\\)"),
        ({"neighbours": np.array([[0, 1]]), "group": 2}, "must be left out"),
        ({"group": 0}, "group"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, message):
    with pytest.raises(fp.InvalidInput, match=message) as caught:
        fp.solve_pd_dp([0.4, 0.6], 1.0, **arguments)
    assert "\n" not in str(caught.value)


def test_an_infeasible_level_names_the_least_one():
    distance = np.array([[0.0, 2.0], [2.0, 0.0]])
    with pytest.raises(fp.Infeasible, match="which is the smallest possible"):
        fp.solve_pd_i([0.2, 0.8], 0.5, neighbours=distance)
    assert fp.solve_pd_i([0.2, 0.8], 0.7, neighbours=distance).level <= 0.7
    with pytest.raises(fp.Infeasible, match="probability zero is a neighbour of a possible one"):
        fp.solve_pd_i([0.0, 1.0], 0.5, neighbours=distance)


@pytest.mark.filterwarnings("ignore::fastpriv.errors.GapWarning")  # e^-50 is beyond any solver
def test_edges():
    one = fp.solve_pd_dp([1.0], 1.0, metric=[[2.0, 1.0]])
    assert (one.value, one.level) == (1.0, 0.0)
    still = fp.solve_pd_dp([0.4, 0.6], 0.0, metric=[[0.0, 1.0], [1.0, 0.0]])
    assert still.value == 0.4
    for epsilon in (1e-8, 50.0, 700.0):
        solution = fp.solve_pd_dp([0.4, 0.6], epsilon, metric=[[0.0, 1.0], [1.0, 0.0]])
        assert solution.level <= epsilon
        assert solution.value <= 0.4


def test_a_program_too_large_is_refused():
    with pytest.raises(fp.TooLarge, match="symmetry"):
        fp.solve_pd_dp(np.random.default_rng(0).dirichlet(np.ones(900)), 1.0, group=2)


def test_the_time_limit_is_kept():
    distance = cells(12, 12)
    with pytest.warns(fp.GapWarning, match="time limit"):
        solution = fp.solve_pd_dp(
            np.full(144, 1 / 144), 0.3, metric=distance, neighbours=distance, time_limit=1e-3
        )
    assert solution.level <= 0.3
    assert not solution.converged


@pytest.mark.parametrize("solve", [fp.solve_pd_dp, fp.solve_pd_i])
def test_exact_programs_refuse_a_time_limit(solve):
    with pytest.raises(fp.InvalidInput, match="time_limit must be left out"):
        solve([0.5, 0.5], 1.0, exact=True, time_limit=3600.0)


def test_time_is_kept_for_repair_and_measurement(monkeypatch):
    """On 32 x 32 cells the level of the matrix takes seconds, after the engine has returned."""
    monkeypatch.setattr(ByOrbits, "finishing_seconds", lambda self: 1000.0)
    given = []
    solve = engines.solve

    def watched(cone, gap, clock, engine):
        given.append(clock.left())
        return solve(cone, gap, clock, engine)

    monkeypatch.setattr(engines, "solve", watched)
    apart = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    fp.solve_pd_dp([0.25] * 4, 0.5, metric=apart, neighbours=apart, time_limit=3000.0)
    assert 1900.0 < given[0] <= 2000.0


def test_the_time_of_repair_and_measurement_is_estimated():
    apart = np.abs(np.subtract.outer(np.arange(40.0), np.arange(40.0)))
    reduction = ByOrbits(np.full(40, 1 / 40), apart, apart, False)
    assert 0.0 < reduction.finishing_seconds() < 10.0
