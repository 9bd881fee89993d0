"""Rows per second of randomised response: fastpriv beside its peers and a memory copy, in one run.

Run ``python benchmarks/bench_sampling.py [largest number of rows]``. Values are bytes, four per
row, epsilon = 1. ``fast`` draws from NumPy's SFC64, ``secure`` is the default. Peers that are not
installed are left out (``pip install 'fastpriv[peers]'``); they are timed on as many rows as a
second or so allows. The second table has the other samplers, in outputs per second.
"""

import sys
import time
from functools import partial

import numpy as np
import pytest

import fastpriv as fp

M, EPSILON = 4, 1.0
PEER_ROWS = {"multi-freq-ldpy": 10**6, "OpenDP": 3_000}


def codes(k):
    """Made-up values, one byte each."""
    return np.random.default_rng(0).integers(0, M, (k, 1), dtype=np.uint8)


def fast():
    """A generator that is quick and predictable."""
    return np.random.Generator(np.random.SFC64(1))


def multi_freq(table):
    """Generalised randomised response of multi-freq-ldpy, in a compiled loop."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from numba import njit

    @njit
    def loop(values):
        out = np.empty_like(values)
        for j in range(len(values)):
            out[j] = GRR_Client(values[j], M, EPSILON)
        return out

    values = table[:, 0].astype(np.int64)
    loop(values[:10])
    return lambda: loop(values)


def opendp(table):
    """Randomised response of OpenDP, value by value."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    keep = np.exp(EPSILON) / (np.exp(EPSILON) + M - 1)
    measure = dp.m.make_randomized_response(list(range(M)), prob=float(keep))
    values = table[:, 0].tolist()
    return lambda: [measure(v) for v in values]


def rate(work, count, rounds):
    """Best number of items per second over some rounds."""
    best = 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = max(best, count / (time.perf_counter() - start))
    return best


def others():
    """Channels of the other families, each with a good number of databases."""
    rng = np.random.default_rng(0)
    types, bits = fp.Exchangeable.beta_binomial(20, 0.5, 0.8), fp.Product.iid([0.4, 0.6], 20)
    yield "E_d, 1000 values", fp.HammingChannel(1, 1000, 5.0), 10**6
    yield "E_d, 10^6 values", fp.HammingChannel(1, 10**6, 9.0), 10**6
    yield "product of 10 x 10", fp.ProductChannel([rng.dirichlet(np.ones(10), 10)]), 10**6
    yield "matrix, 100 x 100", fp.Channel(rng.dirichlet(np.ones(100), 100)), 10**6
    yield "matrix, 1000 x 1000", fp.Channel(rng.dirichlet(np.ones(1000), 1000)), 10**6
    yield "E_i of 20 bits, types", fp.PosteriorChannel(types, types.epsilon_tilde() + 1), 10**5
    yield "E_i of 20 bits, product", fp.PosteriorChannel(bits, 1.0), 10**5
    chain = fp.Markov([0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], 16)
    yield "tilted chain of 16 bits", fp.TiltedChannel(chain, 1.0), 10**5
    yield "optimum of 20 bits, types", fp.solve_pd_dp(types, 1.0).channel, 10**5


@pytest.mark.parametrize("secure", [True, False])
def test_randomised_response(benchmark, secure):
    channel, table = fp.HammingChannel(1, M, EPSILON), codes(10**6)
    benchmark(channel.sample, table, None if secure else fast())


def main(largest):
    """Print both tables."""
    channel = fp.HammingChannel(1, M, EPSILON)
    for rng in (None, fast()):
        channel.sample(codes(10), rng)
    print(f"{'rows':>12}{'copy':>12}{'fast':>12}{'secure':>12}   million rows a second")
    k = 10**4
    while k <= largest:
        table = codes(k)
        out = np.empty_like(table)
        rounds = max(3, min(100, 10**7 // k))
        works = [
            partial(np.copyto, out, table),
            partial(channel.sample, table, fast()),
            partial(channel.sample, table),
        ]
        rates = [rate(work, k, rounds) for work in works]
        print(f"{k:>12,}" + "".join(f"{r / 1e6:>12,.0f}" for r in rates), flush=True)
        k *= 10
    ours = rate(partial(channel.sample, codes(10**6)), 10**6, 20)
    for name, make in (("multi-freq-ldpy", multi_freq), ("OpenDP", opendp)):
        count = PEER_ROWS[name]
        try:
            work = make(codes(count))
        except ImportError:
            print(f"{name}: not installed")
            continue
        theirs = rate(work, count, 3)
        print(f"{name}: {theirs:,.0f} rows a second; ours, secure: {ours / theirs:,.0f} times that")
    print(f"\n{'sampler':<28}{'fast':>12}{'secure':>12}   outputs a second")
    for name, other, count in others():
        index = np.random.default_rng(0).integers(other.space.size, size=count)
        table = other.space.rows(index)
        other.sample(table[:2])
        rates = [rate(partial(other.sample, table, rng), count, 3) for rng in (fast(), None)]
        print(f"{name:<28}" + "".join(f"{r:>12,.0f}" for r in rates), flush=True)


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**9)
