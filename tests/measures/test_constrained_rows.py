"""Constrained capacity of channels that act row by row: looks, symmetries, rows peeled off."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv._matrices.searches.entropy import peeled_bound
from fastpriv.measures import constrained

chances = st.floats(0.02, 0.98)
bit_channels = st.tuples(chances, chances).map(
    lambda w: np.array([[w[0], 1 - w[0]], [w[1], 1 - w[1]]])
)


def entropy(p):
    return -math.fsum(x * math.log(x) for x in p.tolist() if x > 0.0)


def about_first_row(p, matrices):
    """I(X_1; Y) under the prior p, from the whole matrix."""
    W = matrices[0]
    for matrix in matrices[1:]:
        W = np.kron(W, matrix)
    joint = np.stack(
        [half @ rows for half, rows in zip(p.reshape(2, -1), np.split(W, 2), strict=True)]
    )
    product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return math.fsum(
        j * math.log(j / q)
        for j, q in zip(joint.ravel().tolist(), product.ravel().tolist(), strict=True)
        if j > 0.0
    )


@pytest.mark.search(every=10)
@settings(max_examples=25, deadline=None)
@given(st.lists(bit_channels, min_size=2, max_size=4), st.floats(0.05, 2.0), st.integers(0, 10**6))
def test_rows_peeled_off_bound_every_prior(matrices, weight, seed):
    size = 2 ** len(matrices)
    p = np.random.default_rng(seed).dirichlet(np.full(size, weight))
    assert about_first_row(p, matrices) <= peeled_bound(matrices[0], matrices[1:], entropy(p))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_peeling_is_exact_at_both_ends(epsilon):
    """Under the uniform prior only the own row tells; without a constraint all rows are copies."""
    kernel = np.array(fp.HammingChannel(1, 2, epsilon).matrix())
    alone = fp.channel_capacity(kernel).lower
    copies = fp.individual_capacity(fp.HammingChannel(3, 2, epsilon)).lower
    assert alone <= peeled_bound(kernel, [kernel] * 2, math.log(8.0)) <= alone + 2e-4
    assert copies <= peeled_bound(kernel, [kernel] * 2, math.log(2.0)) <= copies + 2e-3


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 0.45), (0.5, 0.7), (0.5, 0.95), (4.0, 0.7)])
def test_rows_by_themselves_agree_with_the_matrix(epsilon, share):
    channel = fp.HammingChannel(3, 2, epsilon)
    plain = fp.Channel(channel.matrix(), channel.space)
    b = share * math.log(8.0)
    one, two = (
        fp.constrained_capacity(each, b, time_limit=t)
        for each, t in zip((channel, plain), (60.0, 2.0), strict=True)
    )
    assert one.lower <= two.upper * (1.0 + 1e-9)
    assert two.lower <= one.upper * (1.0 + 1e-9)
    assert one.width <= 1.1e-3 * one.upper


@pytest.mark.slow
def test_rows_with_different_channels_agree_with_the_matrix():
    channel = fp.ProductChannel(
        [[[0.7, 0.3], [0.2, 0.8]], [[1.0, 0.0], [0.4, 0.6]], [[0.5, 0.5], [0.3, 0.7]]]
    )
    plain = fp.Channel(channel.matrix(), channel.space)
    for b in (1.0, 1.6):
        one, two = (fp.constrained_capacity(each, b, time_limit=2.0) for each in (channel, plain))
        assert one.lower <= two.upper * (1.0 + 1e-9)
        assert two.lower <= one.upper * (1.0 + 1e-9)


@pytest.mark.parametrize("sizes", [[2, 2], [3, 2], [2, 2, 2]])
def test_order_holds_for_a_symmetric_prior(sizes):
    """Some permutation of values and rows brings the posteriors of any prior into the order."""
    kernels = [np.array(fp.HammingChannel(1, m, 1.0).matrix()) for m in sizes]
    order = constrained._order(kernels)
    assert len(order) >= math.prod(sizes) - 1
    outputs = list(itertools.product(*map(range, sizes)))
    where = {y: k for k, y in enumerate(outputs)}
    swaps = [s for s in itertools.permutations(range(len(sizes))) if [sizes[j] for j in s] == sizes]
    rng = np.random.default_rng(0)
    for _ in range(20):
        Q = rng.uniform(size=len(outputs))
        assert any(
            all(Q[moved[y]] >= Q[moved[z]] for y, z in order)
            for turn in outputs
            for swap in swaps
            for moved in [
                [
                    where[tuple((y[j] + turn[k]) % sizes[k] for k, j in enumerate(swap))]
                    for y in outputs
                ]
            ]
        )


def test_rows_in_no_order():
    assert constrained._order([]).shape == (0, 2)
    unlike = [np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.8, 0.2], [0.3, 0.7]])]
    assert constrained._order(unlike).shape == (0, 2)
    assert constrained._order([unlike[0]] * 2).tolist() == [[2, 1]]


@pytest.mark.slow
def test_randomised_response_on_four_and_six_bits():
    """These were 14 to 35 percent wide, and 60 percent."""
    four = fp.constrained_capacity(
        fp.HammingChannel(4, 2, 1.0), 0.7 * math.log(16.0), time_limit=60.0
    )
    assert four.lower >= 0.23009
    assert four.upper <= 0.2304
    six = fp.constrained_capacity(
        fp.HammingChannel(6, 2, 0.5), 0.9 * math.log(64.0), time_limit=4.0
    )
    assert six.lower >= 0.0527
    assert six.upper <= 0.0533
