"""h and its inverse."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import close


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 0.5, 3.0, 700.0, -2.0, -700.0])
@pytest.mark.parametrize(("n", "m"), [(1, 2), (7, 3), (10**6, 2), (3, 1000)])
def test_h(epsilon, n, m):
    assert close(fp.h(epsilon, n, m), o.h(epsilon, n, m))


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.5, 3.0, 700.0, -1e-8, -2.0])
@pytest.mark.parametrize(("n", "m"), [(1, 2), (7, 3), (10**6, 2), (3, 1000)])
def test_h_inverse(epsilon, n, m):
    distortion = fp.h(epsilon, n, m)
    assert close(fp.h_inverse(distortion, n, m), o.h_inverse(distortion, n, m))


@pytest.mark.search(every=10)
@given(st.integers(1, 10**6), st.integers(2, 50), st.floats(0, 600))
def test_round_trip(n, m, epsilon):
    assert fp.h_inverse(fp.h(epsilon, n, m), n, m) == pytest.approx(epsilon, rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 1.0, 30.0, -2.0])
def test_rows_of_different_sizes_add(epsilon):
    sizes = [2, 3, 7, 3]
    total = fp.h(epsilon, 4, sizes)
    assert close(total, sum(o.h(epsilon, 1, m) for m in sizes))
    assert fp.h_inverse(total, 4, sizes) == pytest.approx(epsilon, rel=1e-12, abs=1e-14)
    assert fp.h_inverse([0.0, 4.0], 4, sizes).tolist() == [math.inf, -math.inf]


def test_ends_and_arrays():
    assert fp.h_inverse(0.0, 5, 2) == math.inf
    assert fp.h_inverse(5.0, 5, 2) == -math.inf
    assert fp.h(math.inf, 5, 2) == 0.0
    assert fp.h(1.0, 5, 1) == 0.0
    grid = fp.h(np.array([0.0, 1.0]), 5, 2)
    assert grid.shape == (2,)
    assert np.allclose(fp.h_inverse(grid, 5, 2), [0.0, 1.0])


@pytest.mark.parametrize(
    "call",
    [
        lambda: fp.h_inverse(-1.0, 5, 2),
        lambda: fp.h_inverse(6.0, 5, 2),
        lambda: fp.h_inverse(math.nan, 5, 2),
        lambda: fp.h_inverse(1.0, 5, 1),
        lambda: fp.h(math.nan, 5, 2),
        lambda: fp.h(1.0, 0, 2),
    ],
)
def test_errors(call):
    with pytest.raises(fp.InvalidInput):
        call()
