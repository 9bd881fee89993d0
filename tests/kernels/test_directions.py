"""Levels of long rows and of many: there the sums lose more than their last digit.

The search for wrong numbers asks small matrices, which a slack of a few units would cover. Here
every term of the error bounds is needed: what is returned must not be below the exact level.
"""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from flint import arb, ctx

import fastpriv as fp
import plain_kernels
from fuzz import balls

MANY = 3000


def stacks(rows, columns, seed, count=6):
    """Matrices with entries of all sizes, and a prior."""
    rng = np.random.default_rng(seed)
    weights = rng.random((count, rows, columns)) ** 2 + 0.05
    prior = rng.random(rows) ** 3
    return weights / weights.sum(axis=2, keepdims=True), prior / prior.sum()


def below(given, truths):
    """Return the levels that are below the truth under every reading of their rows."""
    return [
        (g, k) for k, (g, readings) in enumerate(zip(given, truths, strict=True))
        if all(balls.less(arb(float(g)), t) for t in readings)
    ]  # fmt: skip


def readings(matrix):
    """Rows as they are given, and divided by their sums."""
    W = balls.balls(matrix)
    return W, [balls.normal(row) for row in W]


MEASURES = {
    "pml": (fp.pml_level, balls.pml_level),
    "max-information": (fp.max_information, balls.pml_level),
    "information-privacy": (fp.information_privacy_level, balls.information_privacy),
}


@pytest.fixture(autouse=True)
def _precise():
    before, ctx.prec = ctx.prec, 256
    yield
    ctx.prec = before


@pytest.mark.parametrize("name", MEASURES)
def test_leakage_of_many_rows_is_not_below_the_truth(name):
    measure, exact = MEASURES[name]
    stack, prior = stacks(MANY, 2, 7)
    p = balls.normal(prior.tolist())
    truths = [[exact(W, p) for W in readings(matrix)] for matrix in stack]
    given = measure(stack, prior)
    assert not below(given, truths)
    assert not below([measure(matrix, prior) for matrix in stack], truths)
    assert np.all(given <= [float(t[0].mid()) * (1.0 + 1e-10) for t in truths])


def test_maximal_leakage_of_many_outputs_is_not_below_the_truth():
    stack, _ = stacks(3, MANY, 8)
    truths = [[balls.maximal_leakage(W) for W in readings(matrix)] for matrix in stack]
    given = fp.maximal_leakage(stack)
    assert not below(given, truths)
    assert not below([fp.maximal_leakage(matrix) for matrix in stack], truths)
    assert np.all(given <= [float(t[0].mid()) * (1.0 + 1e-12) for t in truths])


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.7])
def test_delta_of_many_outputs_is_not_below_the_truth(epsilon):
    stack, _ = stacks(2, MANY, 9)
    pairs = [(0, 1), (1, 0)]
    truths = [[balls.hockey_stick(W, pairs, epsilon) for W in readings(m)] for m in stack]
    given = fp.hockey_stick(stack, epsilon)
    assert not below(given, truths)
    assert not below([fp.hockey_stick(matrix, epsilon) for matrix in stack], truths)
    assert np.all(given <= [float(t[0].mid()) * (1.0 + 1e-10) + 1e-300 for t in truths])


def test_ratios_beyond_the_range_of_a_double_are_finite():
    matrix = np.array([[1.0, 1e-320], [1e-320, 1.0], [0.5, 0.5]])
    exact = float(balls.strong_dp_level(balls.balls(matrix)).mid())
    stack = np.stack([matrix, matrix[::-1]])
    for measure in (fp.dp_level, fp.strong_dp_level, fp.leakage_capacity):
        for given in (*measure(stack), measure(matrix)):
            assert exact <= given <= exact * (1.0 + 1e-14)


def test_stacks_of_nearly_equal_rows_are_not_below_the_truth():
    rng = np.random.default_rng(3)
    base = rng.dirichlet([1.0] * 40)
    stack = base * (1.0 + 1e-13 * rng.standard_normal((5, 30, 40)))
    stack /= stack.sum(axis=2, keepdims=True)
    p = balls.normal([1.0] * 30)
    prior = np.full(30, 1.0 / 30)
    for name, (measure, exact) in MEASURES.items():
        truths = [[exact(W, p) for W in readings(matrix)] for matrix in stack]
        assert not below(measure(stack, prior), truths), name
    # The sum of the largest entries less one has lost most of its digits, and carries them along.
    nearer = base * (1.0 + 1e-16 * rng.standard_normal((5, 30, 40)))
    for apart in (stack, nearer):
        truths = [[balls.maximal_leakage(W) for W in readings(matrix)] for matrix in apart]
        assert not below(fp.maximal_leakage(apart), truths)


@pytest.mark.slow
def test_bounds_inside_kernels():
    # As plain Python: in a process of its own, unless nothing is compiled anyway.
    if numba.config.DISABLE_JIT:
        plain_kernels.check_all()
    else:
        script, path = plain_kernels.__file__, os.pathsep.join(sys.path)
        environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
        assert subprocess.run([sys.executable, script], env=environment).returncode == 0
