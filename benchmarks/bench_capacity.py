"""Channel capacity against qif, dit and cvxpy with CLARABEL, in one run, and batches per second.

Run ``python benchmarks/bench_capacity.py [largest size]``; peers that are not installed are left
out (``pip install 'fastpriv[peers]'``). All are asked for 1e-9 nats. Beside each time stands the
gap that the returned input law really proves, max_x D(W_x || q) - sum_x p(x) D(W_x || q). A peer
whose last size took long is not asked for larger ones.
"""

import math
import sys
import time
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import fastpriv as fp

GAP = 1e-9
#: Seconds after which a peer is not given the next size.
PATIENCE = 4.0


def channel(size, seed=0):
    """A random square channel, rows uniform on the simplex."""
    return np.random.default_rng([seed, size]).dirichlet(np.ones(size), size)


def with_qif(matrix):
    """Blahut-Arimoto in C++; its two tolerances are absolute and relative."""
    import qif

    return np.asarray(qif.measure.shannon.add_capacity(matrix, GAP, GAP)[1]).reshape(-1)


def with_dit(matrix):
    """Blahut-Arimoto in numpy, until the capacity changes by less than the tolerance."""
    from dit.algorithms.channelcapacity import channel_capacity

    return channel_capacity(matrix, rtol=0.0, atol=GAP)[1]


def with_cvxpy(matrix):
    """The concave program in exponential cones."""
    import cvxpy as cp

    p = cp.Variable(len(matrix), nonneg=True)
    noise = -(matrix * np.log(matrix)).sum(axis=1)
    problem = cp.Problem(cp.Maximize(cp.sum(cp.entr(matrix.T @ p)) - noise @ p), [cp.sum(p) == 1])
    tolerances = {f"tol_{kind}": GAP for kind in ("gap_abs", "gap_rel", "feas")}
    problem.solve(solver="CLARABEL", **tolerances)
    return np.maximum(p.value, 0.0)


def proved(matrix, p):
    """The gap that an input law proves."""
    p = p / p.sum()
    distances = (matrix * np.log(matrix / (p @ matrix))).sum(axis=1)
    return distances.max() - p @ distances


def each(solve, matrices):
    """Results for all matrices."""
    return [solve(matrix) for matrix in matrices]


def timed(work, least=0.2):
    """Best seconds per result of a few calls, or of one that is long, and the results."""
    best, total = math.inf, 0.0
    while total < least:
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
        total += time.perf_counter() - start
    return best / len(result), result


@pytest.mark.parametrize("size", [2, 8, 64, 300])
def test_single(benchmark, size):
    benchmark(fp.channel_capacity, channel(size))


@pytest.mark.parametrize("rows", [2, 3, 8])
def test_batch(benchmark, rows):
    benchmark(fp.channel_capacity, np.random.default_rng(0).dirichlet(np.ones(4), (10_000, rows)))


def compare(largest):
    """One line per size and solver; ratio is the peer's time over ours."""
    peers = {"qif": with_qif, "dit": with_dit, "cvxpy + CLARABEL": with_cvxpy}
    print(f"{'size':>6}  {'solver':<18}{'seconds':>12}{'ratio':>10}{'gap':>10}")
    for size in (2, 3, 5, 8, 16, 32, 64, 100, 200, 300, 500, 1000, 2000):
        if size > largest:
            break
        # Blahut-Arimoto may need three steps or thousands: small sizes are a mean over channels.
        matrices = [channel(size, seed) for seed in range(max(1, 40 // size))]
        mine, brackets = timed(partial(each, partial(fp.channel_capacity, gap=GAP), matrices))
        gap = max(bracket.width for bracket in brackets)
        print(f"{size:>6}  {'fastpriv':<18}{mine:>12.3g}{'':>10}{gap:>10.0e}")
        for name, solve in list(peers.items()):
            with suppress(ImportError):
                solve(channel(4))  # imports and first calls are not counted
                seconds, laws = timed(partial(each, solve, matrices))
                gap = max(map(proved, matrices, laws))
                print(f"{'':>6}  {name:<18}{seconds:>12.3g}{seconds / mine:>10.1f}{gap:>10.0e}")
                if seconds * len(matrices) > PATIENCE:
                    del peers[name]
        sys.stdout.flush()


def throughput():
    """Channels per second: one call with all checks, and the kernel alone on one core."""
    print(f"\n{'rows x outputs':>15}{'per second':>14}{'kernel, one core':>18}")
    rng = np.random.default_rng(0)
    for rows, outputs in ((2, 2), (2, 4), (2, 16), (3, 3), (4, 4), (5, 5), (6, 6), (8, 8)):
        count = 200_000 if rows == 2 else 20_000
        batch = rng.dirichlet(np.ones(outputs), (count, rows))
        kernel = fp.kernels.two_row_capacities if rows == 2 else fp.kernels.capacities
        room = np.empty(count), np.empty(count), np.empty((count, rows))
        seconds, _ = timed(partial(fp.channel_capacity, batch))
        alone, _ = timed(lambda k=kernel, b=batch, r=room: k(b, GAP, 0, len(b), *r) or r[0])
        print(f"{f'{rows} x {outputs}':>15}{1 / seconds:>14,.0f}{1 / alone:>18,.0f}")


if __name__ == "__main__":
    import fastpriv.kernels

    fp.warm_up()
    compare(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
    throughput()
