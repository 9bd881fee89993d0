"""Leakage measures of a dense channel against one np.sum of it, and against qif and dit.

Run ``python benchmarks/bench_leakage.py [N]``; peers that are not installed are left out
(``pip install 'fastpriv[peers]'``). Times are the best of several, ratios are to np.sum in the
same run. Then outputs of a million rows, in seconds.
"""

import math
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

import fastpriv as fp


def best(work, rounds=7):
    """Least seconds over a few rounds, and the result."""
    found, seconds = work(), math.inf
    for _ in range(rounds):
        start = time.perf_counter()
        found = work()
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, found


def dense(size, seed=0):
    """A random channel and prior."""
    rng = np.random.default_rng(seed)
    return fp.Channel(rng.dirichlet(np.ones(size), size)), fp.Dense(rng.dirichlet(np.ones(size)))


def measures(channel, prior):
    """Name and call of everything timed."""
    return {
        "pml": lambda: fp.pml(channel, prior).max(),
        "maximal_leakage": lambda: fp.maximal_leakage(channel),
        "leakage_capacity": lambda: fp.leakage_capacity(channel),
        "information_privacy_level": lambda: fp.information_privacy_level(channel, prior),
        "dp_level": lambda: fp.dp_level(channel),
        "mutual_information": lambda: fp.mutual_information(channel, prior),
        "worst_leakage_factor": lambda: fp.worst_leakage_factor(channel, prior),
    }


def peers(channel, prior):
    """What other libraries have of it."""
    W, p = np.array(channel.matrix()), np.array(prior.pmf())
    found = {}
    with suppress(ImportError):
        import qif

        of = qif.measure
        found["qif bayes_vuln.mult_capacity"] = lambda: math.log(of.bayes_vuln.mult_capacity(W))
        found["qif shannon.add_leakage"] = lambda: of.shannon.add_leakage(p, W) * math.log(2)
    if len(p) <= 64:
        with suppress(ImportError):
            import dit

            joint = p[:, None] * W
            outcomes = [f"{chr(x + 48)}{chr(y + 48)}" for x, y in np.ndindex(*joint.shape)]
            law = dit.Distribution(outcomes, joint.reshape(-1))
            found["dit mutual information"] = lambda: (
                math.log(2) * dit.shannon.mutual_information(law, [0], [1])
            )
    return found


def million(n=1_000_000):
    """Name and call of one output of a million rows."""
    rng = np.random.default_rng(0)
    channel, y = fp.HammingChannel(n, 2, 1.0), rng.integers(0, 2, n)
    weights = rng.random(n + 1)
    made = {
        "product": fp.Product.iid([0.3, 0.7], n),
        "markov": fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], n),
        "markov, zeros": fp.Markov([0.5, 0.5], [[0.0, 1.0], [0.2, 0.8]], n),
        "exchangeable": fp.Exchangeable(weights / weights.sum()),
    }
    return {
        f"{kind} {name}": work
        for name, prior in made.items()
        for kind, work in (
            ("pml", lambda p=prior: fp.pml(channel, p, y=y)),
            ("row_pml", lambda p=prior: fp.row_pml(channel, p, n // 2, y=y)),
        )
    }


@pytest.mark.parametrize("name", list(measures(*dense(2))))
def test_dense(benchmark, name):
    benchmark(measures(*dense(1024))[name])


def main(size):
    """Print one line per measure."""
    for count in (48, size):
        channel, prior = dense(count)
        matrix = np.array(channel.matrix())
        unit, _ = best(lambda matrix=matrix: np.sum(matrix))
        print(f"N = K = {count}, np.sum {unit * 1e3:.3f} ms")
        for name, work in {**measures(channel, prior), **peers(channel, prior)}.items():
            seconds, value = best(work, 3 if count > 48 and " " in name else 7)
            print(f"  {name:<32}{seconds * 1e3:>12.3f} ms{seconds / unit:>9.2f} x{value:>14.8f}")
    print("one output of a million rows")
    for name, work in million().items():
        seconds, value = best(work, 3)
        print(f"  {name:<32}{seconds:>12.3f} s{value:>16.6f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4096)
