"""The first-order engine, against the interior-point method and HiGHS."""

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.design import engines, reductions
from fastpriv.design.certificate import bound_of
from fastpriv.design.cone import ListedCone
from fastpriv.design.engines import interior
from fastpriv.design.problem import Limits
from fastpriv.design.ratio_programs import MetricProblem

SIZES = [(2, 2), (2, 3), (3, 3), (2, 2, 2), (2, 2, 2, 2), (4,)]


def random_prior(sizes, seed):
    p = np.random.default_rng(seed).random(int(np.prod(sizes))) + 0.05
    return fp.Dense(p / p.sum(), sizes)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_pd_dp_agrees_with_the_interior_point_method(sizes, epsilon):
    prior = random_prior(sizes, 1)
    first = fp.solve_pd_dp(prior, epsilon, solver="first-order", gap=1e-3)
    other = fp.solve_pd_dp(prior, epsilon, solver="interior")
    assert first.level <= epsilon
    assert fp.dp_level(fp.Channel(first.channel.matrix(), fp.Space(sizes))) <= epsilon
    assert first.bound <= other.value
    assert other.bound <= first.value <= other.value * (1.0 + 1e-3)
    assert first.gap <= 1e-3


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (2, 2, 2)])
def test_pd_i_agrees_with_the_interior_point_method(sizes):
    prior = random_prior(sizes, 2)
    epsilon = prior.epsilon_x() + 0.1
    first = fp.solve_pd_i(prior, epsilon, solver="first-order", gap=1e-2)
    other = fp.solve_pd_i(prior, epsilon, solver="interior")
    assert first.level <= epsilon
    assert first.bound <= other.value
    assert other.bound <= first.value <= other.value * (1.0 + 1e-2)


def test_a_metric_without_symmetries():
    rng = np.random.default_rng(3)
    points = rng.random((9, 2))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    p = rng.random(9) + 0.1
    given = {"metric": apart, "neighbours": apart}
    first = fp.solve_pd_dp(p / p.sum(), 2.0, solver="first-order", gap=1e-3, **given)
    other = fp.solve_pd_dp(p / p.sum(), 2.0, solver="highs", **given)
    assert first.level <= 2.0
    assert first.bound <= other.value
    assert other.bound <= first.value <= other.value * (1.0 + 1e-3)


def cells(side, uneven):
    places = np.array([(i, j) for i in range(side) for j in range(side)])
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    p = np.ones(side * side)
    if uneven:
        p += np.exp(-((places - 1.3) ** 2).sum(axis=1)) + 0.1 * np.random.default_rng(5).random(
            len(p)
        )
    return p / p.sum(), {"metric": apart, "neighbours": apart}


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("few", [0, 16])
def test_a_grid_with_all_pairs_or_a_part_of_them(monkeypatch, uneven, few):
    """Symmetries merge equations; a part of the pairs proves bounds for all of them."""
    monkeypatch.setattr(reductions, "_FEW_PAIRS", few)
    p, given = cells(5, uneven)
    first = fp.solve_pd_dp(p, 0.35, solver="first-order", gap=2e-3, **given)
    other = fp.solve_pd_dp(p, 0.35, solver="highs", **given)
    matrix, apart = first.channel.matrix(), given["neighbours"]
    losses = np.abs(np.log(matrix[:, None] / matrix)).max(axis=2)
    assert (losses <= 0.35 * apart * (1.0 + 1e-12)).all()
    assert first.solver == "first-order"
    assert first.bound <= other.value
    assert other.bound <= first.value <= other.value * (1.0 + 2e-3)


def test_pd_i_on_a_grid():
    p, given = cells(4, True)
    first = fp.solve_pd_i(p, 1.0, solver="first-order", gap=2e-3, **given)
    other = fp.solve_pd_i(p, 1.0, solver="highs", **given)
    assert first.level <= 1.0
    assert first.bound <= other.value
    assert other.bound <= first.value <= other.value * (1.0 + 2e-3)


def test_outputs_other_than_the_inputs():
    p, given = cells(4, True)
    given["metric"] = given["metric"][:, ::3]
    first = fp.solve_pd_dp(p, 0.5, solver="first-order", gap=2e-3, **given)
    other = fp.solve_pd_dp(p, 0.5, solver="highs", **given)
    assert first.bound <= other.value
    assert other.bound <= first.value <= other.value * (1.0 + 2e-3)


def test_any_multipliers_prove_a_bound():
    """Random multipliers, negative ones included, never exceed the optimum."""
    p, given = cells(3, True)
    problem = MetricProblem(
        p, given["metric"], given["neighbours"], fp.Space([9]), 0.4, joint=False
    )
    limits = Limits.checked(1e-3, 60.0, "first-order")
    cone = problem.reduction.cone(0.4, 1e-12, limits)
    optimum = fp.solve_pd_dp(p, 0.4, solver="highs", **given).value
    rng = np.random.default_rng(6)
    for size in 10.0 ** rng.uniform(-4, 0, 300):
        blocks = [size * rng.normal(size=(len(cone.source), 9)) * (rng.random(9) < 0.5)]
        bound = bound_of(cone, *cone.granted(blocks))
        clipped = bound_of(cone, *cone.granted([np.maximum(block, 0.0) for block in blocks]))
        assert bound == clipped <= optimum


def test_symmetric_programs_are_refused_in_words():
    with pytest.raises(fp.InvalidInput, match="solver must be 'auto'"):
        fp.solve_pd_dp(fp.Exchangeable.beta_binomial(4, 0.5, 0.8), 0.5, solver="first-order")


def test_a_time_limit_is_kept():
    prior = random_prior((2,) * 5, 4)
    with pytest.warns(fp.GapWarning, match="time limit"):
        solution = fp.solve_pd_dp(prior, 1.0, solver="first-order", gap=1e-9, time_limit=1e-9)
    assert not solution.converged
    assert solution.level <= 1.0
    assert 0.0 < solution.bound <= solution.value


@pytest.mark.slow  # three seconds by the clock
def test_a_point_is_kept_if_no_time_is_left_to_finish_it(monkeypatch):
    """After the first-order method, the interior-point method has no time for a first step."""
    monkeypatch.setattr(engines, "MAX_WORK", 0.0)
    monkeypatch.setattr(engines.first_order, "_PATIENCE", 1_000_000)
    prior = random_prior((2,) * 5, 4)
    fp.solve_pd_dp(prior, 1.0, solver="first-order", gap=0.1)  # compiled before the clock starts
    with pytest.warns(fp.GapWarning, match="time limit"):
        solution = fp.solve_pd_dp(prior, 1.0, gap=1e-12, time_limit=3.0)
    assert solution.solver == "first-order"
    assert not solution.converged
    assert solution.gap < 0.1


def test_dense_blocks_give_the_directions_of_banded_ones(monkeypatch):
    """LAPACK for wide bands: the same optimum as with the compiled loops."""
    prior = random_prior((2,) * 5, 5)
    banded = fp.solve_pd_dp(prior, 1.0, solver="interior")
    monkeypatch.setattr(interior, "_WIDE_BAND", 1)
    used = []
    init = interior.FullBlocks.__init__

    def noted(self, cone, clock):
        used.append(isinstance(cone, ListedCone))
        init(self, cone, clock)

    monkeypatch.setattr(interior.FullBlocks, "__init__", noted)
    full = fp.solve_pd_dp(prior, 1.0, solver="interior")
    assert used == [True]
    assert full.gap <= 1e-6
    assert full.value == pytest.approx(banded.value, rel=1e-6)


@pytest.mark.parametrize("solver", ["highs", "interior", "first-order"])
def test_runs_of_solvers_are_events(solver):
    seen = []
    stop = fp.observe(lambda event, fields: seen.append((event, fields)))
    fp.solve_pd_dp(random_prior((2, 3), 1), 0.3, solver=solver, gap=1e-3)
    stop()
    assert {event for event, _ in seen} == {"solver"}
    assert {fields["solver"] for _, fields in seen} == {solver}
    assert all(fields["columns"] > fields["rows"] > 0 or solver == "highs" for _, fields in seen)
