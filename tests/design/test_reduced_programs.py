"""Programs on types and on rows: the same optimum as the full program, at sizes beyond it."""

import math

import numpy as np
import pytest

import fastpriv as fp
import oracles as o
from cases import law, simplex_weights
from fastpriv._core.clock import Clock
from fastpriv._structure.types import Blocks, types_of
from fastpriv.channels.types import type_weights
from fastpriv.design.engines import interior
from fastpriv.design.problem import Limits
from fastpriv.design.reductions import ByTypes
from program_cases import check, naive


def test_reference_value_on_types():
    prior = fp.Exchangeable.beta_binomial(20, 0.5, 0.8)
    solution = fp.solve_pd_dp(prior, 1.0)
    assert solution.value == pytest.approx(3.467572, abs=5e-6)
    assert solution.gap <= 1e-6
    assert fp.dp_level(solution.channel) <= 1.0


def test_types_agree_with_the_full_program():
    prior = fp.Exchangeable.beta_binomial(4, 0.5, 0.8)
    dense = fp.Dense(prior.pmf(), [2] * 4)  # found to be symmetric: types again
    for solve, epsilon in [(fp.solve_pd_dp, 0.7), (fp.solve_pd_i, prior.epsilon_x() + 0.02)]:
        a, b = solve(prior, epsilon), solve(dense, epsilon)
        assert a.value == pytest.approx(b.value, rel=2e-6)
        swapped = a.channel.matrix().reshape([2] * 8).swapaxes(0, 2).swapaxes(4, 6).reshape(16, 16)
        assert np.array_equal(a.channel.matrix(), swapped)
    assert naive(prior.pmf(), [2] * 4, 0.7, False) == pytest.approx(
        fp.solve_pd_dp(prior, 0.7).value, rel=2e-6
    )


def test_partly_exchangeable_rows_are_found():
    from fastpriv.design.reductions import swappable_rows

    rng = np.random.default_rng(3)
    pmf = law(rng, 24).reshape(2, 2, 2, 3)
    pmf = pmf + pmf.swapaxes(0, 2)
    prior = fp.Dense(pmf.reshape(-1) / pmf.sum(), [2, 2, 2, 3])
    assert swappable_rows(prior.pmf().reshape(2, 2, 2, 3)).rows == ((0, 2), (1,), (3,))
    solution = fp.solve_pd_dp(prior, 0.5)
    check(solution, prior, prior.pmf(), 0.5, joint=False)
    assert solution.value == pytest.approx(naive(prior.pmf(), [2, 2, 2, 3], 0.5, False), rel=2e-6)


def test_a_type_channel_is_measured_without_its_matrix():
    prior = fp.Exchangeable.beta_binomial(6, 0.5, 0.8)
    channel = fp.solve_pd_dp(prior, 0.8).channel
    plain = fp.Channel(channel.matrix(), prior.space)
    assert fp.dp_level(channel) == pytest.approx(fp.dp_level(plain), rel=1e-12)
    for measure in (fp.identifiability_level, fp.mutual_information, fp.distortion):
        assert measure(channel, prior) == pytest.approx(measure(plain, prior), rel=1e-10)
    assert np.allclose(channel.output(prior).pmf(), plain.output(prior).pmf(), rtol=1e-12)
    assert np.allclose(channel.column_maxima(), plain.column_maxima(), rtol=1e-14)
    assert np.allclose(channel.column_minima(), plain.column_minima(), rtol=1e-14)
    other = fp.Product([[0.3, 0.7]] * 5 + [[0.5, 0.5]])
    for measure in (fp.identifiability_level, fp.mutual_information, fp.distortion):
        assert measure(channel, other) == pytest.approx(measure(plain, other), rel=1e-10)
    x, draws = 37, 40_000
    rows = np.repeat(prior.space.rows(np.array([x])), draws, axis=0)
    counts = np.bincount(prior.space.index(channel.sample(rows, rng=3)), minlength=64)
    expected = draws * plain.matrix()[x]
    live = expected > 0.0
    assert not counts[~live].any()
    assert ((counts - expected)[live] ** 2 / expected[live]).sum() < 64 + 6 * np.sqrt(128)


def test_three_values_on_types():
    array, counts = simplex_weights(np.random.default_rng(2), 3, 3)
    prior = fp.Exchangeable(array)
    solution = fp.solve_pd_dp(prior, 0.6)
    check(solution, prior, o.exchangeable_pmf_general(counts, 3, 3), 0.6, joint=False)


@pytest.mark.slow
def test_sixty_bits():
    prior = fp.Exchangeable.beta_binomial(60, 0.5, 0.8)
    solution = fp.solve_pd_dp(prior, 1.0)
    assert solution.gap <= 1e-6
    assert fp.dp_level(solution.channel) <= 1.0
    assert fp.distortion(solution.channel, prior) == solution.value
    assert 0 < fp.mutual_information(solution.channel, prior) < prior.entropy()
    rows = prior.sample(3, rng=1)
    assert solution.channel.sample(rows, rng=2).shape == (3, 60)


@pytest.mark.slow
def test_a_million_independent_rows():
    prior = fp.Product.iid([0.9, 0.07, 0.03], 1_000_000)
    solution = fp.solve_pd_dp(prior, 1.0)
    assert solution.method == "rows"
    assert solution.gap <= 1e-6
    one = fp.solve_pd_dp(fp.Product.iid([0.9, 0.07, 0.03], 1), 1.0)
    assert solution.value == pytest.approx(1e6 * one.value, rel=1e-6)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_the_first_point_of_a_program_on_types_is_inside_its_cone(joint, epsilon):
    prior = fp.Exchangeable.beta_binomial(12, 0.5, 0.8)
    types = types_of(Blocks.single(12, 2))
    parts = ByTypes(types, type_weights(types, prior), joint, Clock(math.inf))
    cone = parts.cone(max(epsilon, parts.least + 0.01), 1e-12, Limits.checked(1e-6, math.inf))
    v = interior.balanced(cone)
    assert (cone.slack(v) > 0.0).all()
    np.testing.assert_allclose(cone.totals(v), cone.total, rtol=1e-12)


def test_the_first_point_saves_most_steps_to_the_centre(monkeypatch):
    """Twenty bits took 14 steps from a constant mechanism."""
    counts = []
    factor = interior.BandedBlocks.factor
    monkeypatch.setattr(
        interior.BandedBlocks, "factor", lambda self, w: counts.append(1) or factor(self, w)
    )
    follow = interior._follow
    steps = []
    monkeypatch.setattr(
        interior, "_follow", lambda *given: steps.append(len(counts)) or follow(*given)
    )
    fp.solve_pd_dp(fp.Exchangeable.beta_binomial(20, 0.5, 0.8), 1.0, solver="interior")
    assert steps[0] <= 7
