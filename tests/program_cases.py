"""What the tests of programs share: the plain linear program, and what every solution satisfies."""

import math

import numpy as np
import pytest
from mpmath import exp, mpf
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

import oracles as o


def naive(pmf, sizes, epsilon, joint):
    """Solve the plain program over all databases with SciPy's HiGHS."""
    dbs = o.databases(sizes)
    size = len(dbs)
    distance = np.array([[o.hamming(x, y) for y in dbs] for x in dbs], dtype=float)
    cost = distance if joint else np.asarray(pmf)[:, None] * distance
    pairs = o.neighbour_pairs(sizes)
    index = np.arange(len(pairs) * size)
    here = np.array([[x * size + y for y in range(size)] for x, _ in pairs]).reshape(-1)
    there = np.array([[x * size + y for y in range(size)] for _, x in pairs]).reshape(-1)
    values = np.concatenate([np.ones(len(index)), np.full(len(index), -math.exp(epsilon))])
    ratio = coo_matrix(
        (values, (np.concatenate([index, index]), np.concatenate([here, there]))),
        shape=(len(index), size * size),
    )
    total = coo_matrix(np.kron(np.eye(size), np.ones(size)))
    rhs = np.asarray(pmf, dtype=float) if joint else np.ones(size)
    found = linprog(cost.reshape(-1), ratio, np.zeros(len(index)), total, rhs, method="highs-ds")
    assert found.status == 0
    return found.fun


def violations(solution, pmf, sizes, epsilon, joint):
    """Count the entries of the matrix that break the constraint, in 50-digit arithmetic."""
    matrix, most = solution.channel.matrix(), exp(mpf(epsilon))
    count = 0
    for i, j in o.neighbour_pairs(sizes):
        for a, b in zip(matrix[i], matrix[j], strict=True):
            top, bottom = mpf(float(a)), mpf(float(b))
            if joint:
                top, bottom = top * mpf(float(pmf[i])), bottom * mpf(float(pmf[j]))
            count += top > most * bottom
    return count


def check(solution, prior, pmf, epsilon, joint):
    """Certificate, privacy in exact arithmetic, row sums, and value, of a small solution."""
    sizes, matrix = prior.space.sizes, solution.channel.matrix()
    assert violations(solution, pmf, sizes, epsilon, joint) == 0
    assert np.abs(matrix.sum(axis=1) - 1.0).max() < 1e-13
    assert solution.value == pytest.approx(float(o.distortion(matrix, pmf, sizes)), rel=1e-12)
    assert 0 <= solution.bound <= solution.value
    assert solution.level <= epsilon
