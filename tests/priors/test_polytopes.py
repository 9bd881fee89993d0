"""Polytopes of priors whose numbers span more orders of magnitude than a solver keeps."""

from fractions import Fraction

import numpy as np
import pytest

import fastpriv as fp
from oracles import pointwise as op


def wide_case(seed):
    """Return A, b with entries down to 1e-22, a law inside, and a channel."""
    rng = np.random.default_rng(seed)
    size, rows = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    A = rng.standard_normal((rows, size)) * 10.0 ** rng.integers(-22, 1, (rows, size))
    inside = rng.dirichlet(np.full(size, 0.3))
    if seed % 3 == 0:
        inside = 10.0 ** rng.integers(-20, 1, size)
        inside /= inside.sum()
    reached = A @ inside
    b = reached + np.abs(reached) * 10.0 ** rng.integers(-12, 0)
    return A, b, inside, rng.dirichlet(np.full(3, 0.4), size)


def test_wide_numbers_are_answered_from_above():
    """Sets that are not empty are never called so, and no law inside leaks more."""
    tried = 0
    for seed in range(60):
        A, b, inside, matrix = wide_case(seed)
        p = [Fraction(v) for v in inside.tolist()]
        sides = zip(A.tolist(), b.tolist(), strict=True)
        if any(
            sum(Fraction(a) * v for a, v in zip(row, p, strict=True)) > Fraction(most) * sum(p)
            for row, most in sides
        ):
            continue  # rounding put the law outside
        level = fp.pml_level(matrix, fp.PriorSet.polytope(A, b))
        assert level >= max(op.pml(matrix, inside))
        tried += 1
    assert tried > 40


def test_rows_of_tiny_numbers():
    """Every row has a scale of its own, as small as it may be."""
    matrix = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    plain = fp.pml_level(matrix, fp.PriorSet.polytope([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]], [0, 0]))
    scaled = fp.PriorSet.polytope([[1e-200, -1e-200, 0.0], [0.0, 1e250, -1e250]], [0, 0])
    assert fp.pml_level(matrix, scaled) == pytest.approx(plain, rel=1e-12)
    # p_0 >= 1e-20 p_1: the solver drops the small entry, the level does not mind.
    nearly = fp.PriorSet.polytope([[-1.0, 1e-20, 0.0]], [0.0])
    assert fp.pml_level(matrix, nearly) == pytest.approx(fp.leakage_capacity(matrix), rel=1e-9)
    with pytest.raises(fp.Infeasible, match="no distribution"):
        fp.PriorSet.polytope([[1e-20, 1e-20, 1e-20]], [0.9e-20])
