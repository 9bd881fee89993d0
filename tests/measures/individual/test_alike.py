"""Rows of three and more values that all pass through one channel."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv._core.clock import Clock
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.measures.individual import equal_records
from individual_cases import holds, reached
from oracles import individual as brute

TERNARY = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.15, 0.6]])
ZEROS = np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]])


def same(kernel, n):
    return RowKernels([RowKernel(kernel)], np.zeros(n, dtype=np.int64))


@pytest.mark.slow(only=["3-kernel1"])
@pytest.mark.parametrize("kernel", [TERNARY, ZEROS])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_types_are_below_all_adversaries(kernel, n):
    bracket = equal_records.by_types(same(kernel, n), 1e-9, Clock(60.0), math.inf)
    matrix = np.array(fp.ProductChannel([kernel] * n).matrix())
    low, high = brute.group_capacity(matrix, [3] * n, 1)
    assert holds(bracket, low, high)
    assert reached(bracket, matrix, [3] * n)
    if n < 3:  # two groups of rows are all there are
        assert bracket.lower == pytest.approx(low, rel=1e-8)


@pytest.mark.parametrize(("kernel", "n"), [(TERNARY, 4), (ZEROS, 5)])
def test_law_of_counts_by_listing_all_outputs(kernel, n):
    law = equal_records.counts_law(kernel, n)
    for v, row in enumerate(kernel):
        chances = {}
        for outputs in itertools.product(range(kernel.shape[1]), repeat=n):
            key = tuple(map(outputs.count, range(kernel.shape[1])))
            chances[key] = chances.get(key, 0.0) + math.prod(row[y] for y in outputs)
        assert sorted(chances.values()) == pytest.approx(sorted(law[v].tolist()), rel=1e-12)


def test_many_rows():
    """Copies alone tell 1.0501 about one of twelve rows; a second function tells more."""
    twelve = fp.individual_capacity(fp.ProductChannel([TERNARY] * 12), time_limit=3600.0)
    assert 1.0591 <= twelve.lower <= twelve.upper <= math.log(3.0) * (1.0 + 1e-12)
    hundred = fp.individual_capacity(fp.ProductChannel([TERNARY] * 100), time_limit=0.0)
    assert hundred.width <= 1e-4 * hundred.upper
