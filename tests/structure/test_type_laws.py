"""Laws of the output's type given the database's, against all outputs."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpriv._structure.rows import RowKernel, Symmetric
from fastpriv._structure.type_pairs import rise_of_laws, rises, type_laws


@settings(max_examples=25)
@given(st.sampled_from([(1, 2, 2), (4, 2, 2), (3, 3, 2), (3, 2, 3), (3, 3, 3)]), st.integers(0, 99))
def test_all_outputs(shape, seed):
    n, m, outputs = shape
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(outputs, 0.5), m) * (rng.random((m, outputs)) < 0.8)
    matrix[:, 0] += 1.0 - matrix.sum(axis=1)
    laws, fewer = type_laws(n, matrix), type_laws(n - 1, matrix)
    rise = rise_of_laws(fewer, rises(RowKernel(matrix)))
    for x in product(range(m), repeat=n):
        want = np.zeros((n + 1,) * (outputs - 1))
        for y in product(range(outputs), repeat=n):
            counts = Counter(y)
            at = tuple(counts[v] for v in range(1, outputs))
            want[at] += math.prod(matrix[s, v] for s, v in zip(x, y, strict=True))
        kind = tuple(Counter(x)[v] for v in range(1, m))
        assert laws[kind] == pytest.approx(want, abs=1e-14)
        assert rise[kind] == pytest.approx(want - laws[(0,) * (m - 1)], abs=1e-14)


def test_small_epsilon_keeps_digits():
    kernel = Symmetric(2, 1e-9)
    rise = rise_of_laws(type_laws(1, kernel.matrix), rises(kernel))
    # Two bits: P(no ones) falls by a - b from two zeros to two ones, up to (a - b)^2.
    assert rise[2, 0] == pytest.approx(-kernel.gap, rel=1e-8)
    assert rise[2, 1] == pytest.approx(0.0, abs=1e-16 * kernel.gap)
