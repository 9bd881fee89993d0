"""Maximal correlation against NumPy's full SVD, sparse and structured channels, contraction.

The SVD is of the same matrix; it has no certificate and is noise for nearly useless channels.
Contraction stands beside a plain NumPy bisection over all pairs at once.
"""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import fastpriv as fp
import instances
from contenders import ours, peer, sizes


def with_svd(W, p):
    """Second singular value of p(x, y)/sqrt(p(x) p(y)) from all of them."""
    return np.linalg.svd(np.sqrt(p)[:, None] * W / np.sqrt(p @ W), compute_uv=False)[1]


def with_bisection(W):
    """Largest contraction, all pairs of a row at a time."""
    most = 0.0
    for x in range(len(W) - 1):
        P, Q = W[x], W[x + 1 :]
        low, high = np.zeros((len(Q), 1)), np.ones((len(Q), 1))
        for _ in range(30):
            b = 0.5 * (low + high)
            mean = b * P + (1 - b) * Q
            up = (P * Q * (P - Q) / mean**2).sum(axis=1, keepdims=True) > 0
            low, high = np.where(up, b, low), np.where(up, high, b)
        most = max(most, (b * (1 - b) * (P - Q) ** 2 / mean).sum(axis=1).max())
    return most


def sparse_channel(size, each=10):
    """A channel with a few outputs for each input."""
    rows = np.repeat(np.arange(size), each)
    columns = (instances.uniform([0, size], size * each) * size).astype(np.int64)
    weights = instances.uniform([1, size], size * each) + 0.1
    matrix = sp.csr_matrix((weights, (rows, columns)), (size, size))
    return sp.diags(1.0 / np.asarray(matrix.sum(axis=1)).ravel()) @ matrix


def value(answer):
    """The middle of a bracket, or a number, with half the width of a bracket."""
    if isinstance(answer, fp.Bracket):
        return {"value": answer.midpoint, "error": answer.width}
    return {"value": float(answer)}


@pytest.mark.parametrize("size", sizes(16, 64, 256, large=[1024]))
def test_maximal_correlation(versus, size):
    """Random channels, beside an SVD."""
    W, p = instances.channel(size), np.full(size, 1 / size)
    channel, prior = fp.Channel(W), fp.Dense(p)
    versus(
        "maximal correlation",
        f"random {size} x {size}",
        ours(partial(fp.maximal_correlation, channel, prior), value),
        peer("numpy's SVD", partial(with_svd, W, p), value),
        seed=0,
        error_of="width",
    )


@pytest.mark.parametrize("size", sizes(10_000, large=[100_000]))
def test_sparse(versus, size):
    """A sparse channel."""
    W, p = sparse_channel(size), np.full(size, 1 / size)
    versus(
        "maximal correlation",
        f"sparse {size:,} x {size:,}",
        ours(partial(fp.maximal_correlation, W, p), value),
        seed=0,
        error_of="width",
    )


@pytest.mark.parametrize("epsilon", [1.0, 1e-8])
@pytest.mark.parametrize("bits", sizes(12, large=[18]))
def test_chain(versus, bits, epsilon):
    """Randomised response on a Markov chain."""
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], bits)
    channel = fp.HammingChannel(bits, 2, epsilon)
    versus(
        "maximal correlation",
        f"E_d {epsilon:g} on a chain of {bits} bits",
        ours(partial(fp.maximal_correlation, channel, chain), value),
        error_of="width",
    )


@pytest.mark.parametrize("size", sizes(50, large=[200, 500]))
def test_contraction(versus, size):
    """Random channels, beside a bisection."""
    W = instances.channel(size)
    versus(
        "contraction coefficient",
        f"random {size} x {size}",
        ours(partial(fp.contraction_coefficient, fp.Channel(W)), value),
        peer("numpy bisection", partial(with_bisection, W), value),
        seed=0,
        error_of="width",
    )


def test_contraction_of_many_rows(versus):
    """Weak randomised response of many rows."""
    weak = fp.HammingChannel(10**6, 2, 1e-3)
    versus(
        "contraction coefficient",
        "E_d on 10^6 rows",
        ours(partial(fp.contraction_coefficient, weak), value),
        error_of="width",
    )
