"""The first-order engine, against the interior-point method and HiGHS."""

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.design.cone import ListedCone
from fastpriv.design.engines import interior

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


def test_symmetric_programs_are_refused_in_words():
    with pytest.raises(fp.InvalidInput, match="solver='auto'"):
        fp.solve_pd_dp(fp.Exchangeable.beta_binomial(4, 0.5, 0.8), 0.5, solver="first-order")


def test_a_time_limit_is_kept():
    prior = random_prior((2,) * 5, 4)
    with pytest.warns(fp.GapWarning, match="time limit"):
        solution = fp.solve_pd_dp(prior, 1.0, solver="first-order", gap=1e-9, time_limit=1e-9)
    assert not solution.converged
    assert solution.level <= 1.0
    assert 0.0 < solution.bound <= solution.value


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
