"""How the cost of priors, shells and E_d's information grows with N, n and m.

Run ``python benchmarks/bench_structures.py`` for the table of seconds, with the growth between
neighbouring sizes beside the growth that the docstring promises.
"""

import math
import time

import numpy as np
import pytest

import fastpriv as fp


def dense(k):
    """A random dense prior over k bits."""
    pmf = np.random.default_rng(0).random(2**k) + 0.1
    return fp.Dense(pmf / pmf.sum(), [2] * k)


def chain(n):
    """A chain of n rows with three values."""
    return fp.Markov([0.3, 0.3, 0.4], np.full((3, 3), 0.2) + 0.4 * np.eye(3), n)


def walk(n):
    """Walk a shell of radius 5 without keeping it."""
    return sum(len(part) for part in fp.Space.hamming(n, 2).iter_shell(0, 5))


# name, sizes, promised cost, work
CASES = [
    ("dense epsilon_x", (16, 20, 24), lambda k: k * 2.0**k, lambda k: dense(k).epsilon_x()),
    (
        "dense E_d information",
        (16, 20, 22),
        lambda k: k * 2.0**k,
        lambda k: fp.mutual_information(fp.HammingChannel(k, 2, 1.0), dense(k)),
    ),
    ("dense epsilon_tilde", (12, 16, 20), lambda k: k * 2.0**k, lambda k: dense(k).epsilon_tilde()),
    (
        "exchangeable epsilon_tilde",
        (500, 1000, 5000),
        lambda n: n**2,
        lambda n: fp.Exchangeable.beta_binomial(n, 0.5, 0.8).epsilon_tilde(),
    ),
    (
        "exchangeable E_d information",
        (500, 1000, 5000),
        lambda n: n**2,
        lambda n: fp.mutual_information(
            fp.HammingChannel(n, 2, 1.0), fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
        ),
    ),
    ("markov entropy", (10**4, 10**5, 10**6), lambda n: n, lambda n: chain(n).entropy()),
    (
        "markov log_prob",
        (10**4, 10**5, 10**6),
        lambda n: n,
        lambda n: chain(n).log_prob(np.zeros(n, dtype=np.int64)),
    ),
    (
        "product E_d information",
        (10**4, 10**5, 10**6),
        lambda n: n,
        lambda n: fp.mutual_information(
            fp.HammingChannel(n, 3, 1.0), fp.Product.iid([0.2, 0.3, 0.5], n)
        ),
    ),
    ("shell walk, radius 5", (20, 40, 60), lambda n: math.comb(n, 5), walk),
]


@pytest.mark.parametrize(("name", "sizes", "cost", "work"), CASES, ids=[c[0] for c in CASES])
def test_structure(benchmark, name, sizes, cost, work):
    benchmark.pedantic(work, (sizes[0],), rounds=3, warmup_rounds=1)


if __name__ == "__main__":
    print(f"{'work':<32}{'size':>9}{'seconds':>10}{'growth':>9}{'promised':>10}")
    for name, sizes, cost, work in CASES:
        work(sizes[0])
        last = None
        for size in sizes:
            best = float("inf")
            for _ in range(3):
                start = time.perf_counter()
                work(size)
                best = min(best, time.perf_counter() - start)
            growth = ("", "") if last is None else (best / last[1], cost(size) / cost(last[0]))
            shown = "".join(f"{g:>9.1f}" if g else f"{'':>9}" for g in growth)
            print(f"{name:<32}{size:>9}{best:>10.4f}{shown}")
            last = size, best
