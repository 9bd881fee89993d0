"""Maximal correlation against NumPy's full SVD, sparse and structured channels, contraction.

Run ``python benchmarks/bench_correlation.py [largest size]``. The SVD is of the same matrix in the
same process; it has no certificate and is noise for nearly useless channels. Contraction stands
beside a plain NumPy bisection over all pairs at once.
"""

import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

import fastpriv as fp


def channel(size):
    return np.random.default_rng(size).dirichlet(np.ones(size), size)


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
    rng = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(size), each), rng.integers(0, size, size * each)
    found = sp.csr_matrix((rng.random(size * each) + 0.1, (rows, columns)), (size, size))
    return sp.diags(1.0 / np.asarray(found.sum(axis=1)).ravel()) @ found


def timed(work, *arguments):
    start = time.perf_counter()
    result = work(*arguments)
    return time.perf_counter() - start, result


@pytest.mark.parametrize("size", [8, 64, 300])
def test_correlation(benchmark, size):
    benchmark(fp.maximal_correlation, channel(size), np.full(size, 1 / size))


@pytest.mark.parametrize("size", [8, 64, 200])
def test_contraction(benchmark, size):
    benchmark(fp.contraction_coefficient, channel(size))


def compare(largest):
    print(f"{'what':<34}{'seconds':>10}{'peer':>10}{'ratio':>8}  value")

    def line(what, mine, peer=None):
        theirs = f"{peer[0]:>10.3g}{peer[0] / mine[0]:>8.1f}" if peer else " " * 18
        print(f"{what:<34}{mine[0]:>10.3g}{theirs}  {mine[1]!r}", flush=True)

    for size in (16, 64, 256, 1024, 2048):
        if size <= largest:
            W, p = channel(size), np.full(size, 1 / size)
            mine = timed(fp.maximal_correlation, W, p)
            line(f"correlation, {size} x {size}", mine, timed(with_svd, W, p))
    for size in (50, 200, 500):
        W = channel(size)
        mine = timed(fp.contraction_coefficient, W)
        line(f"contraction, {size} rows", mine, timed(with_bisection, W) if size < 500 else None)
    size = 100_000
    W, p = sparse_channel(size), np.full(size, 1 / size)
    line("correlation, sparse 10^5 x 10^5", timed(fp.maximal_correlation, W, p))
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 18)
    for epsilon in (1.0, 1e-8):
        mine = timed(fp.maximal_correlation, fp.HammingChannel(18, 2, epsilon), chain)
        line(f"correlation, E_d {epsilon:g} on 2^18", mine)
    line(
        "contraction, E_d on 10^6 rows",
        timed(fp.contraction_coefficient, fp.HammingChannel(10**6, 2, 1e-3)),
    )


if __name__ == "__main__":
    import fastpriv.kernels

    fp.warm_up()
    fp.maximal_correlation(channel(300), np.full(300, 1 / 300))  # imports are not counted
    compare(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
