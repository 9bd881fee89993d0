"""Invariant operators on bits, against all databases and against exact integers."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpriv._structure.bit_blocks import block_error, blocks, overlap_factors


def copies(n, k):
    return math.comb(n, k) - (math.comb(n, k - 1) if k else 0)


def overlaps(n, i, j):
    return range(max(0, i + j - n), min(i, j) + 1)


@pytest.mark.parametrize("n", range(1, 7))
def test_singular_values(n):
    rng = np.random.default_rng(n)
    values = rng.standard_normal((n + 1, n + 1, n + 1))
    x = np.array(list(product([0, 1], repeat=n)))
    ones = x.sum(axis=1)
    whole = values[ones[:, None], ones[None, :], x @ x.T]
    parts = {
        (i, j): np.array(
            [
                values[i, j, r]
                * math.comb(i, r)
                * math.comb(n - i, j - r)
                * math.sqrt(math.comb(n, i) / math.comb(n, j))
                for r in overlaps(n, i, j)
            ]
        )
        for i in range(n + 1)
        for j in range(n + 1)
    }
    made = [
        np.repeat(np.linalg.svd(block, compute_uv=False), copies(n, k))
        for k, block in enumerate(blocks(n, parts))
    ]
    want = np.linalg.svd(whole, compute_uv=False)
    assert np.sort(np.concatenate(made)) == pytest.approx(np.sort(want), abs=1e-12)


def exact_factor(n, i, j, k, r):
    """Return c_k(r) from an alternating sum of integers."""
    total = sum(
        (-1) ** (u - r)
        * math.comb(u, r)
        * math.comb(n - 2 * k, u - k)
        * math.comb(n - k - u, i - u)
        * math.comb(n - k - u, j - u)
        for u in range(max(r, k), min(i, j, n - k) + 1)
    )
    first = math.comb(i, r) * math.comb(n - i, j - r)
    scale = math.comb(n - 2 * k, i - k) * math.comb(n - 2 * k, j - k)
    square = Fraction(total * total * math.comb(n, j), scale * first * first * math.comb(n, i))
    return math.copysign(math.sqrt(square), total)


@settings(max_examples=60)
@given(st.integers(1, 120), st.data())
def test_factors_are_those_of_integers(n, data):
    i, j = data.draw(st.integers(0, n)), data.draw(st.integers(0, n))
    made = overlap_factors(n, i, j)
    at = data.draw(st.integers(0, len(made) - 1))
    k = data.draw(st.integers(0, min(i, j, n - i, n - j)))
    truth = exact_factor(n, i, j, k, overlaps(n, i, j)[at])
    assert abs(made[at, k] - truth) <= block_error(n) / 4
