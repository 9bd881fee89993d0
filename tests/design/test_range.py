"""Programs at levels and priors whose coefficients leave the range of a double."""

import math
import warnings

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.errors import GapWarning, Infeasible

LEVELS = [1e-300, 0.5, 199.0, 201.0, 700.0, 745.0, 800.0]
PRIORS = {
    "point": fp.Dense([1.0, 0.0, 0.0, 0.0], [2, 2]),
    "zero": fp.Dense([0.5, 0.5, 0.0, 0.0], [2, 2]),
    "zero in three": fp.Dense([0.25, 0.0, 0.75], [3]),
    "least double": fp.Dense([0.5, 0.25, 0.25, 5e-324], [2, 2]),
    "denormal row": fp.Product([[1.0 - 1e-16, 1e-320], [0.3, 0.7]]),
    "absorbing": fp.Markov([1.0, 0.0], [[1.0, 0.0], [0.3, 0.7]], 3),
    "denormal chain": fp.Markov([0.5, 0.5], [[1.0, 0.0], [1e-320, 1.0]], 2),
    "tiny entry": fp.Dense([0.3, 1e-100, 0.3, 0.2, 0.2, 1e-100], [2, 3]),
}


@pytest.fixture(autouse=True)
def _strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", GapWarning)
        yield


def _sound(solution, prior):
    matrix, p = solution.channel.matrix(), prior.pmf()
    assert np.isfinite(matrix).all()
    assert 0.0 <= solution.bound <= solution.value
    assert solution.gap >= 0.0
    rows = prior.space.rows(np.arange(prior.space.size))
    cost = (rows[:, None] != rows[None]).sum(axis=2)
    assert solution.value == pytest.approx(float(p @ (matrix * cost).sum(axis=1)), rel=1e-9)


@pytest.mark.grid
@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("epsilon", LEVELS)
def test_dp_programs_answer_everywhere(name, epsilon):
    prior = PRIORS[name]
    solution = fp.solve_pd_dp(prior, epsilon)
    _sound(solution, prior)
    assert fp.dp_level(solution.channel) <= epsilon
    if name == "point":  # a constant mechanism errs never, so that no positive bound holds
        assert solution.bound == solution.value == 0.0


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("more", [0.0, 1e-3, 10.0])
def test_identifiability_programs_answer_everywhere(name, more):
    prior = PRIORS[name]
    least = prior.epsilon_x()
    if math.isinf(least):
        with pytest.raises(Infeasible):
            fp.solve_pd_i(prior, 745.0)
    else:
        _sound(fp.solve_pd_i(prior, least + more), prior)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("slug", ["dp", "identifiability"])
def test_the_best_level_at_a_tiny_distortion(name, slug):
    level = fp.privacy_level(PRIORS[name], 1e-100, slug)
    assert 0.0 <= level.lower <= level.upper


def test_metrics_and_deltas_at_the_largest_levels():
    prior = PRIORS["least double"]
    apart = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    fp.solve_pd_i(prior, 745.0, metric=apart)
    fp.solve_pd_i(prior, 745.0, neighbours=apart)
    solution = fp.solve_pd_dp(prior, 745.0, delta=1e-3)
    assert 0.0 <= solution.bound <= solution.value
