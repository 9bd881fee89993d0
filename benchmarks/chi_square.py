"""Chi-square tests of every sampler at 10^8 draws; too long for the test suite.

Run ``python benchmarks/chi_square.py [draws]``. Each line is a p-value of the secure sampler
against the channel's matrix, for one database; outputs that are expected less than ten times are
put together. About one line in a hundred is below 0.01 by chance; one below 1e-6 is a defect.
"""

import sys
import time

import numpy as np
from scipy.stats import chi2

import fastpriv as fp

#: Draws at a time.
PART = 10**6


def families():
    """A channel of every kind."""
    rng = np.random.default_rng(12)
    types = fp.Exchangeable.beta_binomial(6, 0.5, 0.8)
    chain = fp.Markov([0.3, 0.7], [[0.8, 0.2], [0.4, 0.6]], 6)
    dense = fp.Dense(rng.dirichlet(np.full(6, 9.0)), [2, 3])
    return {
        "E_d, 2 values": fp.HammingChannel(1, 2, 1.0),
        "E_d, 3 values": fp.HammingChannel(1, 3, 0.3),
        "E_d, 1000 values": fp.HammingChannel(1, 1000, 6.0),
        "E_d, 20000 values": fp.HammingChannel(1, 20_000, 8.0),
        "product": fp.ProductChannel([rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(2), 3)]),
        "matrix": fp.Channel(rng.dirichlet(np.full(50, 0.5), 6), [2, 3]),
        "query": fp.QueryChannel([0, 1, 2, 0, 1, 2], rng.dirichlet(np.ones(5), 3), [2, 3]),
        "E_i, product": fp.PosteriorChannel(fp.Product([[0.4, 0.6], [0.3, 0.3, 0.4]]), 3.0),
        "E_i, dense": fp.PosteriorChannel(dense, dense.epsilon_tilde() + 0.5),
        "E_i, exchangeable": fp.PosteriorChannel(types, types.epsilon_tilde() + 0.1),
        "tilted chain": fp.TiltedChannel(chain, 0.9),
        "optimum on types": fp.solve_pd_dp(types, 0.7).channel,
    }


def law_of(channel, x):
    """One row of the matrix, without the matrix where rows have many values."""
    if isinstance(channel, fp.HammingChannel) and channel.space.n == 1:
        kernel = channel.kernels[0]
        law = np.full(kernel.m, kernel.off)
        law[x] = kernel.stay
        return law
    return channel.matrix()[x]


def p_value(channel, x, draws):
    """Chance of counts at least as far from the law of x."""
    expected = draws * law_of(channel, x)
    counts = np.zeros(len(expected), dtype=np.int64)
    rows = np.repeat(channel.space.rows(np.array([x])), min(PART, draws), axis=0)
    rows = rows.astype(np.uint16)
    for start in range(0, draws, PART):
        out = channel.sample(rows[: draws - start])
        out = out if out.ndim == 1 else channel.output_space.index(out)
        counts += np.bincount(out, minlength=len(counts))
    rare = expected < 10.0
    expected = np.append(expected[~rare], expected[rare].sum())
    counts = np.append(counts[~rare], counts[rare].sum())
    seen = expected > 0
    assert counts[~seen].sum() == 0
    statistic = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    return float(chi2.sf(statistic, seen.sum() - 1))


def main(draws):
    """Print a p-value for each family."""
    for name, channel in families().items():
        start = time.perf_counter()
        p = p_value(channel, channel.space.size - 1, draws)
        took = time.perf_counter() - start
        print(f"{name:<22}{draws:>14,} draws   p = {p:<10.3g}{took:>8.1f} s", flush=True)


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**8)
