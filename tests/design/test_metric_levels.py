"""Levels per distance by definition, in 60 digits; warnings; databases that cannot occur."""

import itertools
import math

import mpmath
import numpy as np
import pytest

import fastpriv as fp
from fastpriv.design.certificate import certified_level


def by_definition(matrix, distance, prior):
    """Return the largest ln(p(x) W(y|x) / p(z) W(y|z)) / d(x, z)."""
    levels = [mpmath.mpf(0)]
    for x, z in itertools.permutations(range(len(matrix)), 2):
        for a, b in zip(matrix[x].tolist(), matrix[z].tolist(), strict=True):
            top, bottom = mpmath.mpf(a) * prior[x], mpmath.mpf(b) * prior[z]
            if top > 0 and distance[x, z] < math.inf:
                ratio = mpmath.log(top / bottom) if bottom else mpmath.inf
                levels.append(ratio / mpmath.mpf(float(distance[x, z])))
    return max(levels)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("digits", [0.0, 1e-10, 3.0, 320.0])
def test_levels_are_upper_ends_whatever_the_size_of_the_numbers(digits, joint):
    rng = np.random.default_rng(int(digits) + joint)
    for _ in range(60):
        size, outputs = rng.integers(2, 5), rng.integers(1, 4)
        matrix = 10.0 ** (-digits * rng.random((size, outputs)))
        prior = 10.0 ** (-digits * rng.random(size)) if joint else np.ones(size)
        distance = rng.uniform(0.5, 2.0, (size, size)) * rng.choice([1e-3, 1.0, 1e5])
        distance += distance.T
        given = certified_level(matrix, distance, prior if joint else None)
        with mpmath.workdps(60):
            truth = by_definition(matrix, distance, [mpmath.mpf(float(v)) for v in prior])
            assert truth <= given
            slack = mpmath.mpf(2) ** -50 / mpmath.mpf(float(distance.min()))
            assert given <= truth * (1 + mpmath.mpf(2) ** -47) + joint * slack


def test_equal_rows_have_level_zero_at_any_distance():
    matrix = np.array([[0.25, 0.75], [0.25, 0.75], [0.5, 0.5]])
    distance = np.array([[0.0, 1e-320, 1.0], [1e-320, 0.0, 1.0], [1.0, 1.0, 0.0]])
    assert certified_level(matrix[:2], distance[:2, :2].copy()) == 0.0
    assert certified_level(matrix, distance) == pytest.approx(math.log(2.0), rel=1e-14)


def test_products_below_the_least_double_are_compared():
    matrix, prior = np.array([[1e-200, 1.0], [3e-200, 1.0]]), np.array([1e-200, 1e-200])
    level = certified_level(matrix, 1.0 - np.eye(2), prior)
    assert level == pytest.approx(math.log(3.0), rel=1e-14)
    assert level >= math.log(3.0)


def test_entries_that_are_tiny_beside_others_of_their_column_are_compared():
    matrix = np.array([[1.0], [1e-310], [1.1e-310], [5e-324]])
    distance = np.full((4, 4), math.inf)
    for x, z, apart in ((1, 2, 1e-3), (2, 3, 10.0)):
        distance[x, z] = distance[z, x] = apart
    ones = [mpmath.mpf(1)] * 4
    for rows in ([0, 1, 2], [0, 2, 3], [0, 1, 2, 3]):
        near = distance[np.ix_(rows, rows)]
        given = certified_level(matrix[rows], near)
        with mpmath.workdps(60):
            truth = by_definition(matrix[rows], near, ones)
            assert truth <= given <= truth * (1 + mpmath.mpf(2) ** -47)


def test_warnings_name_distances_too_short_for_rounding():
    near = np.array([[0.0, 1e-320, 1.0], [1e-320, 0.0, 1.0], [1.0, 1.0, 0.0]])
    with pytest.warns(fp.GapWarning, match="at a distance of 1e-320 may differ by a factor of"):
        solution = fp.solve_pd_dp([0.3, 0.3, 0.4], 1.0, neighbours=near)
    assert solution.level <= 1.0
    assert solution.value < 0.49  # the two that are so close have one row


def test_warnings_at_a_value_of_zero_do_not_speak_of_rounding():
    with pytest.warns(fp.GapWarning, match="relative to a value of 0 no distance is small"):
        solution = fp.solve_pd_dp([0.5, 0.5], 1.0, metric=[[0.0, 3.0], [0.0, -1.0]])
    assert solution.value == 0.0


def test_databases_that_cannot_occur_and_touch_no_other_are_mapped_to_anything():
    prior, path = [0.3, 0.0, 0.4, 0.3], [[0, 2], [2, 3]]
    whole = fp.solve_pd_i(prior, 1.0, neighbours=path)
    costs = (1.0 - np.eye(4))[[0, 2, 3]]
    alone = fp.solve_pd_i([0.3, 0.4, 0.3], 1.0, neighbours=[[0, 1], [1, 2]], metric=costs)
    assert whole.value == pytest.approx(alone.value, rel=1e-12)
    matrix = whole.channel.matrix()
    assert matrix.shape == (4, 4)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-14)
    for x, z in [*path, *(pair[::-1] for pair in path)]:
        ratios = prior[x] * matrix[x] / np.where(matrix[z] > 0, prior[z] * matrix[z], 1.0)
        assert ratios.max() <= math.e * (1.0 + 1e-14)
    pairs = fp.solve_pd_i([0.5, 0.5, 0.0, 0.0], 1.0, neighbours=[[0, 1], [2, 3]])
    assert pairs.value == pytest.approx(1.0 / (1.0 + math.e), rel=1e-6)


def test_a_database_that_cannot_occur_beside_one_that_can_rules_levels_out():
    with pytest.raises(fp.Infeasible, match="probability zero is a neighbour of a possible one"):
        fp.solve_pd_i([0.5, 0.5, 0.0], 1.0, neighbours=[[0, 1], [1, 2]])
