"""The uncertainty that remains, against all attributes and all outputs."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp


def by_all_attributes(matrix, prior):
    """Least min-entropy of a yes-or-no attribute given an output, over all of them."""
    support = [x for x, p in enumerate(prior) if p > 0]
    least = math.inf
    for y in range(matrix.shape[1]):
        total = math.fsum(prior[x] * matrix[x, y] for x in support)
        if total == 0.0:
            continue
        for size in range(1, len(support)):
            for part in itertools.combinations(support, size):
                likely = math.fsum(prior[x] * matrix[x, y] for x in part) / total
                if likely > 0.0:  # the other value is the likelier one
                    least = min(least, -math.log(min(likely, 1.0)))
    return least


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_all_attributes_and_outputs(seed, size, outputs, zeros):
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(outputs, 0.5), size) + 1e-3
    prior = rng.dirichlet(np.ones(size)) + 1e-3
    if zeros:
        matrix *= rng.random(matrix.shape) < 0.8
        matrix[:, 0] += 0.1
        prior[1:] *= rng.random(size - 1) < 0.7
    matrix /= matrix.sum(axis=1, keepdims=True)
    prior /= prior.sum()
    left, want = fp.remaining_uncertainty(matrix, prior), by_all_attributes(matrix, prior)
    assert left <= want * (1 + 1e-12) + 1e-15
    assert left == pytest.approx(want, rel=1e-11, abs=1e-14)
    assert fp.remaining_uncertainty_bound(matrix, prior) <= left * (1 + 1e-12)


def test_rows_that_act_alone():
    channel = fp.ProductChannel([[[0.7, 0.3], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]])
    prior = fp.Product([[0.3, 0.7], [0.9, 0.1]])
    dense = fp.remaining_uncertainty(channel.matrix(), prior.pmf())
    assert fp.remaining_uncertainty(channel, prior) == pytest.approx(dense, rel=1e-13)
    sure = fp.Product([[0.3, 0.7], [1.0, 0.0]])
    dense = fp.remaining_uncertainty(channel.matrix(), sure.pmf())
    assert fp.remaining_uncertainty(channel, sure) == pytest.approx(dense, rel=1e-13)
    many = fp.remaining_uncertainty(fp.HammingChannel(20, 2, 1.0), fp.Uniform(20, 2))
    assert many == pytest.approx((1 + math.e) ** -20.0, rel=1e-6)


def test_edges():
    assert fp.remaining_uncertainty([[0.5, 0.5]], [1.0]) == math.inf
    assert fp.remaining_uncertainty(np.eye(2), [0.5, 0.5]) == 0.0
    assert fp.remaining_uncertainty(fp.HammingChannel(5, 2, 700.0), fp.Uniform(5, 2)) == 0.0
    with pytest.raises(fp.TooLarge):
        fp.remaining_uncertainty(fp.HammingChannel(40, 2, 1.0), fp.Exchangeable(np.ones(41) / 41))
