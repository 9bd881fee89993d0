"""Individual capacity of bits with one common chance, and of bits with chances in any interval."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from oracles.spaces import databases


def information(joint):
    """I(A; Y) of a joint law [a, y]."""
    total = 0.0
    for a, row in enumerate(joint):
        for y, mass in enumerate(row):
            if mass > 0.0:
                total += mass * math.log(mass / (joint[a].sum() * joint[:, y].sum()))
    return total


def told(matrix, n, chances):
    """The most that the output tells about a bit, under independent bits with these chances."""
    rows = databases((2,) * n)
    pmf = [math.prod(p if bit else 1 - p for p, bit in zip(chances, x, strict=True)) for x in rows]
    best = 0.0
    for i in range(n):
        joint = np.zeros((2, matrix.shape[1]))
        for x, mass, law in zip(rows, pmf, matrix, strict=True):
            joint[x[i]] += mass * law
        best = max(best, information(joint))
    return best


@pytest.mark.parametrize(
    ("n", "outputs", "c"), [(1, 3, 0.1), (2, 4, 0.0), (3, 5, 0.2), (4, 2, 0.4)]
)
def test_a_common_chance_against_a_grid(n, outputs, c):
    """No chance tells more than the upper end, and the best of a grid is as good as the lower."""
    rng = np.random.default_rng(n)
    matrix = rng.dirichlet(np.full(outputs, 0.3), 2**n)
    bracket = fp.individual_capacity(fp.Channel(matrix, [2] * n), fp.PriorSet.iid_interval(n, c))
    grid = max(told(matrix, n, [p] * n) for p in np.linspace(max(c, 1e-6), 1 - max(c, 1e-6), 201))
    assert bracket.lower - 2e-4 <= grid <= bracket.upper + 1e-14
    assert bracket.width <= 1e-9
    others = fp.individual_capacity(fp.Channel(matrix, [2] * n), "independent")
    assert bracket.lower <= others.upper


def test_a_common_chance_by_structure():
    """Counts and products agree with their matrices."""
    for channel in (fp.mechanisms.GeometricCount(5, 0.8).channel(), fp.HammingChannel(5, 2, 0.8)):
        plain = fp.Channel(channel.matrix(), channel.space)
        for c in (0.0, 0.2, 0.5):
            priors = fp.PriorSet.iid_interval(5, c)
            one, other = (fp.individual_capacity(ch, priors) for ch in (channel, plain))
            assert one.lower <= other.upper
            assert other.lower <= one.upper
            assert max(one.width, other.width) <= 1e-9 * one.upper + 1e-15


@pytest.mark.slow
def test_a_common_chance_without_time():
    """The bracket is wide, and holds what the search finds."""
    channel = fp.mechanisms.GeometricCount(300, 0.1).channel()
    priors = fp.PriorSet.iid_interval(300, 0.05)
    hasty = fp.individual_capacity(channel, priors, time_limit=0.0)
    known = fp.individual_capacity(channel, priors, gap=1e-2)
    assert hasty.lower <= known.lower
    assert known.upper <= hasty.upper
    assert known.width <= 1e-2 * known.upper


@pytest.mark.parametrize("ends", [(0.1, 0.6), (0.0, 0.3), (0.35, 0.35), (0.6, 1.0)])
def test_boxes_of_bits_against_a_grid(ends):
    """Other bits are at an end of the interval, for capacities and for leakages."""
    low, high = ends
    rng = np.random.default_rng(3)
    matrix = rng.dirichlet(np.full(4, 0.5), 8)
    channel = fp.Channel(matrix, [2] * 3)
    priors = fp.PriorSet.row_box([1 - high, low], [1 - low, high], 3)
    bracket = fp.individual_capacity(channel, priors)
    grid = np.linspace(low, high, 11)
    best = max(
        told(matrix, 3, np.insert(corner, i, p))
        for i in range(3)
        for corner in itertools.product(ends, repeat=2)
        for p in grid
    )
    assert bracket.lower - 1e-2 * best <= best <= bracket.upper + 1e-14
    assert bracket.width <= 1e-8
    assert max(told(matrix, 3, rng.uniform(low, high, 3)) for _ in range(20)) <= bracket.upper


def test_boxes_of_bits_of_a_count():
    """Through the number of bits at either end, as through the matrix."""
    count = fp.mechanisms.GeometricCount(4, 0.7).channel()
    plain = fp.Channel(count.matrix(), count.space)
    for low, high in ((0.1, 0.6), (0.0, 0.3), (0.6, 1.0)):
        priors = fp.PriorSet.row_box([1 - high, low], [1 - low, high], 4)
        one, other = (fp.individual_capacity(ch, priors) for ch in (count, plain))
        assert one.midpoint == pytest.approx(other.midpoint, rel=1e-8)
        for row in (None, 0, "worst"):
            levels = [fp.pml_level(ch, priors, row=row) for ch in (count, plain)]
            assert levels[0] == pytest.approx(levels[1], rel=1e-10)
    large = fp.mechanisms.GeometricCount(200, 0.7).channel()
    wide = fp.PriorSet.row_box([0.2, 0.3], [0.7, 0.8], 200)
    assert fp.pml_level(large, wide, row=0) < 0.7
    assert 0.0 < fp.individual_capacity(large, wide).upper < 0.7**2 / 8
