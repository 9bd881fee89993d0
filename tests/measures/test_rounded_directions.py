"""Measures of rare numbers and of rows that do not sum to one are rounded the right way."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import fastpriv as fp
from fastpriv.mechanisms import gaussian_delta

LEAST = 5e-324


def log(value):
    return mpmath.log(mpmath.mpf(value.numerator) / mpmath.mpf(value.denominator))


def matrices(count, seed):
    """Ordinary rows, rows with outputs of a few least doubles, and rows a few doubles apart."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, m = rng.integers(2, 4), rng.integers(2, 5)
        yield rng.dirichlet(np.ones(m), n)
        rare = np.ldexp(rng.integers(0, 9, (n, m)).astype(float), -1074)
        rare[:, 0] = 1.0
        yield rare
        yield np.tile(rng.dirichlet(np.ones(m)), (n, 1)) * (
            1 + rng.integers(-3, 4, (n, m)) * 2**-52
        )


def exactly(matrix):
    return [[Fraction(float(entry)) for entry in row] for row in matrix]


def excess(matrix, epsilon):
    """Largest sum of (a - e^epsilon b)_+ over rows a and b."""
    growth, rows = (
        mpmath.exp(mpmath.mpf(epsilon)),
        [[mpmath.mpf(float(v)) for v in r] for r in matrix],
    )
    return max(
        sum(max(a - growth * b, 0) for a, b in zip(first, second, strict=True))
        for first in rows
        for second in rows
    )


def test_deltas_below_the_level_are_positive():
    assert gaussian_delta(2500.0, 1.0) > 0.0
    assert gaussian_delta(1e6, 700.0) > 0.0
    assert fp.hockey_stick([[1e-323, 1.0], [5e-324, 1.0]], 0.5) >= LEAST
    assert fp.hockey_stick([[[1e-323, 1.0], [5e-324, 1.0]]], 0.5)[0] >= LEAST
    level = fp.dp_level([[1e-323, 1.0], [5e-324, 1.0]])
    assert fp.hockey_stick([[1e-323, 1.0], [5e-324, 1.0]], level) == 0.0


def test_deltas_are_upper_bounds():
    with mpmath.workprec(1300):
        for matrix in matrices(20, 1):
            level = fp.dp_level(matrix)
            for epsilon in (0.0, 0.3, 0.999 * min(level, 5.0)):
                truth = min(excess(matrix, epsilon), 1)
                assert fp.hockey_stick(matrix, epsilon) >= truth
                assert fp.hockey_stick(matrix[None], epsilon)[0] >= truth


def test_levels_are_upper_bounds_and_close():
    with mpmath.workprec(1300):
        for matrix in matrices(40, 2):
            columns = [c for c in zip(*exactly(matrix), strict=True) if max(c) > 0]
            if any(min(column) == 0 for column in columns):
                assert fp.dp_level(matrix) == np.inf
                continue
            truth = log(max(max(column) / min(column) for column in columns))
            for level in (
                fp.dp_level(matrix),
                fp.leakage_capacity(matrix),
                fp.dp_level(matrix[None])[0],
            ):
                assert truth <= level <= truth * (1 + 8 * mpmath.mpf(2) ** -53)


def test_leakages_read_row_sums_alike():
    with mpmath.workprec(1300):
        for matrix in matrices(40, 3):
            rows, n = exactly(matrix), len(matrix)
            tops = [max(column) for column in zip(*rows, strict=True)]
            truth = log(max(sum(tops), Fraction(1)))
            assert fp.maximal_leakage(matrix) >= truth
            uniform = np.full(n, 1.0 / n)
            for leakage in (
                fp.g_leakage(matrix, uniform),
                fp.g_leakage(matrix, uniform, np.eye(n)),
            ):
                assert truth <= leakage <= fp.maximal_leakage(matrix) + 1e-14


def test_guesses_are_upper_bounds_whatever_rows_sum_to():
    rng = np.random.default_rng(4)
    with mpmath.workprec(1300):
        for matrix in matrices(30, 4):
            prior = rng.dirichlet(np.ones(len(matrix)))
            weights = [Fraction(float(p)) for p in prior]
            joint = [[p * v for v in row] for p, row in zip(weights, exactly(matrix), strict=True)]
            posterior = sum(max(column) for column in zip(*joint, strict=True))
            truth = log(posterior / max(weights))
            assert fp.g_leakage(matrix, prior) >= truth
            assert fp.g_leakage(matrix, prior, np.eye(len(matrix))) >= truth


def test_pointwise_leakages_of_rare_outputs_are_upper_bounds():
    rng = np.random.default_rng(5)
    with mpmath.workprec(1300):
        for matrix in matrices(30, 5):
            prior = rng.dirichlet(np.ones(len(matrix)))
            weights, leaks = [Fraction(float(p)) for p in prior], fp.pml(matrix, prior)
            for column, leak in zip(zip(*exactly(matrix), strict=True), leaks, strict=True):
                mean = sum(p * v for p, v in zip(weights, column, strict=True)) / sum(weights)
                assert mean == 0 or leak >= log(max(column) / mean)


@pytest.mark.parametrize("share", [0.05, 1e-3, 1e-9])
def test_levels_of_a_prior_that_the_output_cancels_are_upper_bounds(share):
    # p W is the same for both inputs up to last digits, which the difference of two gains loses.
    rng = np.random.default_rng(6)
    with mpmath.workprec(300):
        for step in rng.uniform(0.5, 1.0, 20) * share:
            prior = np.array([1.0, 1.0 + step]) / (2.0 + step)
            matrix = [[0.5, 0.5], [0.5 / (1.0 + step), 1.0 - 0.5 / (1.0 + step)]]
            joint = [
                [Fraction(float(p)) * Fraction(v) for v in row]
                for p, row in zip(prior, matrix, strict=True)
            ]
            truth = log(max(max(c) / min(c) for c in zip(*joint, strict=True)))
            assert fp.identifiability_level(matrix, prior) >= truth
            assert fp.identifiability_level([matrix], prior)[0] >= truth


def test_pointwise_leakages_under_rare_priors_are_upper_bounds():
    # Products of a prior and a difference underflow, also where they are scaled up.
    rng = np.random.default_rng(7)
    cases = [([[1.0, 1e-61, 1e-299], [1.0, 0.0, 0.0]], [1.0, 8e-299])]
    cases += [([[1.0, 4e-107], [0.989, 0.011]], [1.0, 4e-311])]
    for _ in range(60):
        rare = 10.0 ** rng.uniform(-323, -1, 3)
        cases.append(
            ([[1.0 - rare[0], rare[0]], [1.0 - rare[1], rare[1]]], [1.0 - rare[2], rare[2]])
        )
    with mpmath.workprec(2400):
        for matrix, prior in cases:
            weights, rows = [Fraction(p) for p in prior], exactly(matrix)
            alone, stacked = fp.pml(matrix, prior), fp.pml_level(np.array([matrix]), prior)[0]
            for column, leak in zip(zip(*rows, strict=True), alone, strict=True):
                mean = sum(p * v for p, v in zip(weights, column, strict=True)) / sum(weights)
                truth = log(max(column) / mean)
                assert leak >= truth
                assert stacked >= truth
