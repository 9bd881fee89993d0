"""Individual capacity: counts of many bits, random channels, and peers that loop over selections.

Run ``python benchmarks/bench_individual.py``; about two minutes. Peers that are not installed are
left out (``pip install 'fastpriv[peers]'``). They are given what they lack, the list of all
selections of one row of W per value of each individual, each selection once, and loop their
channel capacity over it. A peer whose last size took long is not asked for larger ones.
"""

import itertools
import math
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

import fastpriv as fp

GAP = 1e-9
#: Seconds after which a peer is not given the next size.
PATIENCE = 4.0


def with_qif(matrix):
    """Blahut-Arimoto in C++."""
    import qif

    return qif.measure.shannon.add_capacity(matrix, GAP, GAP)[0] * math.log(2)


def with_dit(matrix):
    """Blahut-Arimoto in numpy."""
    from dit.algorithms.channelcapacity import channel_capacity

    return channel_capacity(matrix, rtol=0.0, atol=GAP)[0] * math.log(2)


def pairs(matrix):
    """All selections for bits: any two different databases differ in some bit."""
    return [matrix[[x, other]] for x, other in itertools.combinations(range(len(matrix)), 2)]


def random_channel(bits, outputs, seed=0):
    """A random channel over databases of some bits, rows uniform on the simplex."""
    matrix = np.random.default_rng([seed, bits]).dirichlet(np.ones(outputs), 2**bits)
    return fp.Channel(matrix, [2] * bits)


def geometric(n, rate):
    """Noise e^(-rate |y - c|/n) on a count, cut off at 0 and n."""
    steps = np.arange(n + 1)
    row, noise = np.exp(-rate / n * steps), np.empty((n + 1, n + 1))
    for c in steps:
        noise[c] = row[np.abs(steps - c)]
    noise /= noise.sum(axis=1, keepdims=True)
    return noise


def rounded(n, outputs):
    """The share of bits that are set, rounded to a few values with noise."""
    share, marks = np.linspace(0, 1, n + 1), np.linspace(0, 1, outputs)
    noise = np.exp(-3.0 * np.abs(share[:, None] - marks))
    return noise / noise.sum(axis=1, keepdims=True)


def timed(work):
    """Seconds of one call, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_random(benchmark, bits):
    benchmark(fp.individual_capacity, random_channel(bits, 16))


@pytest.mark.parametrize("n", [100, 1000])
def test_count(benchmark, n):
    benchmark(fp.individual_capacity, fp.QueryChannel.count(n, rounded(n, 4)))


def counts():
    """How the time for a count grows with the number of bits."""
    print(f"{'count, n':>10}  {'kernel':<26}{'seconds':>9}{'width':>10}{'capacity':>12}")
    for n in (100, 1000, 10_000):
        for name, kernel in (
            ("4 outputs", lambda n=n: rounded(n, 4)),
            ("n + 1 outputs, rate 2", lambda n=n: geometric(n, 2.0)),
            ("n + 1 outputs, rate 1000", lambda n=n: geometric(n, 1000.0)),
        ):
            channel = fp.QueryChannel.count(n, kernel())
            seconds, found = timed(lambda c=channel: fp.individual_capacity(c, gap=GAP))
            print(f"{n:>10}  {name:<26}{seconds:>9.3g}{found.width:>10.0e}{found.lower:>12.6f}")
            del channel
            sys.stdout.flush()


def dense():
    """How the time for random channels grows with the number of databases, and peers."""
    peers = {"qif": with_qif, "dit": with_dit}
    print(
        f"\n{'databases':>10}{'outputs':>9}  {'solver':<10}{'seconds':>10}{'ratio':>9}{'width':>9}"
    )
    for bits in range(4, 11):
        for outputs in (4, 64, 2**bits) if bits in (6, 8, 10) else (16,):
            channel = random_channel(bits, outputs)
            mine, found = timed(lambda c=channel: fp.individual_capacity(c, gap=GAP))
            print(
                f"{2**bits:>10}{outputs:>9}  {'fastpriv':<10}{mine:>10.3g}{'':>9}{found.width:>9.0e}"
            )
            if outputs != 16:
                continue
            for name, solve in list(peers.items()):
                with suppress(ImportError):
                    solve(np.eye(2) * 0.5 + 0.25)  # imports and first calls are not counted
                    chosen = pairs(np.array(channel.matrix()))
                    seconds, best = timed(lambda s=solve, c=chosen: max(map(s, c)))
                    off = best - found.lower
                    line = f"{'':>19}  {name:<10}{seconds:>10.3g}{seconds / mine:>9.0f}"
                    print(f"{line}   differs by {off:.0e}")
                    if seconds > PATIENCE:
                        del peers[name]
            sys.stdout.flush()


def others():
    """Values beyond bits, and groups: seconds, and how narrow the bracket is after them."""
    print(f"\n{'selection':<34}{'seconds':>9}{'width':>10}")
    rng = np.random.default_rng(0)
    for m, n, outputs, k in ((3, 4, 8, 1), (4, 4, 4, 1), (3, 6, 4, 1), (2, 6, 4, 2), (4, 4, 64, 1)):
        channel = fp.Channel(rng.dirichlet(np.ones(outputs), m**n), [m] * n)
        seconds, found = timed(lambda c=channel, k=k: fp.group_capacity(c, k, time_limit=8.0))
        name = f"{n} rows of {m}, {outputs} outputs, k = {k}"
        print(f"{name:<34}{seconds:>9.3g}{found.width:>10.0e}")
        sys.stdout.flush()


if __name__ == "__main__":
    import fastpriv.kernels

    fp.warm_up()
    counts()
    dense()
    others()
