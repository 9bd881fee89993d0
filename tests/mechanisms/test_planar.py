"""Planar Laplace and geometric noise, against sums and integrals over the plane."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad

import fastpriv as fp
from fastpriv.mechanisms import planar_geometric, planar_laplace


def distances(rows, columns):
    cells = np.array([(i, j) for i in range(rows) for j in range(columns)], dtype=float)
    return np.linalg.norm(cells[:, None] - cells, axis=2)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 2), (4, 4)])
@pytest.mark.parametrize("epsilon", [0.7, 2.0])
def test_geometric_noise_is_a_clamped_sum_over_the_plane(shape, epsilon):
    rows, columns = shape
    reach = math.ceil(40.0 / epsilon)
    expected = np.zeros((rows * columns, rows * columns))
    i, j = np.mgrid[-reach : rows + reach, -reach : columns + reach]
    output = np.clip(i, 0, rows - 1) * columns + np.clip(j, 0, columns - 1)
    for x in range(rows * columns):
        weight = np.exp(-epsilon * np.hypot(i - x // columns, j - x % columns))
        np.add.at(expected[x], output, weight / weight.sum())
    assert planar_geometric(shape, epsilon).matrix() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.4, 3.0])
def test_laplace_noise_is_an_integral_over_cells(epsilon):
    matrix = planar_laplace((5, 5), epsilon).matrix()
    for row, column in [(2, 2), (2, 3), (1, 3), (3, 1)]:
        expected, error = 0.0, 0.0
        for low in (row - 2.5, row - 2.0):  # split at the kink of the density
            for left in (column - 2.5, column - 2.0):
                part, bound = dblquad(
                    lambda v, u: epsilon**2 / (2 * math.pi) * math.exp(-epsilon * math.hypot(u, v)),
                    low, low + 0.5, left, left + 0.5,
                )  # fmt: skip
                expected, error = expected + part, error + bound
        assert matrix[12, 5 * row + column] == pytest.approx(expected, abs=1e-9 + error)


@pytest.mark.parametrize("mechanism", [planar_geometric, planar_laplace])
@pytest.mark.parametrize("epsilon", [0.05, 0.35, 4.0])
def test_the_level_is_met_and_the_optimum_is_better(mechanism, epsilon):
    apart = distances(3, 4)
    channel = mechanism((3, 4), epsilon)
    assert fp.dp_level(channel, neighbours=apart) <= epsilon
    p = np.full(12, 1.0 / 12.0)
    cost = float((p[:, None] * channel.matrix() * apart).sum())
    best = fp.solve_pd_dp(p, epsilon, metric=apart, neighbours=apart)
    assert best.value <= cost * (1.0 + 1e-9)


def test_bad_arguments():
    with pytest.raises(fp.InvalidInput, match="rows and columns"):
        planar_geometric((3, 3, 3), 1.0)
    with pytest.raises(fp.InvalidInput, match="epsilon"):
        planar_laplace((3, 3), 0.0)
    for mechanism in (planar_geometric, planar_laplace):  # exp(-700) would underflow soon
        assert fp.dp_level(mechanism((2, 2), 240.0), neighbours=distances(2, 2)) <= 240.0
        with pytest.raises(fp.InvalidInput, match="epsilon"):
            mechanism((2, 2), 250.0)
    with pytest.raises(fp.TooLarge, match="larger cells"):
        planar_laplace((3, 3), 1e-3)
