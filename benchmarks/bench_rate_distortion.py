"""Rate-distortion against qif, dit and Blahut's plain iteration, in one run.

Run ``python benchmarks/bench_rate_distortion.py [largest n]``; peers that are not installed are
left out (``pip install 'fastpriv[peers]'``). Priors are random and dense on n bits, the distance is
Hamming's and the slope 1. Every mechanism's gap is measured here, from the bound that we prove.
"""

import math
import sys
import time
from contextlib import suppress
from functools import partial

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.tradeoff._mixture import certify
from fastpriv.tradeoff._tilting import HammingTilt

SLOPE = 1.0


def prior_over(bits, seed=0):
    """A random dense prior, without a floor: many outputs die out."""
    return fp.Dense(np.random.default_rng(seed).dirichlet(np.ones(2**bits)), [2] * bits)


def distances(prior):
    """The matrix that peers need."""
    rows = prior.space.rows(np.arange(prior.space.size))
    return (rows[:, None, :] != rows[None, :, :]).sum(axis=2).astype(float)


def ours(prior):
    return fp.solve_pd_mip(prior, slope=SLOPE).channel


def with_qif(prior, metric):
    import qif

    flat = np.full(len(metric), 1.0 / len(metric))
    solve = qif.mechanism.shannon.max_entropy_given_same_loss
    return np.asarray(solve(prior.pmf(), flat, lambda x, y: float(SLOPE * metric[x, y]), 1e-9))


def with_dit(prior, metric, restarts):
    from dit.rate_distortion.blahut_arimoto import blahut_arimoto

    p = np.array(prior.pmf())
    _, joint = blahut_arimoto(
        p, SLOPE / math.log(2), lambda *_: metric, max_iters=10**5, restarts=restarts
    )
    return joint / joint.sum(axis=1, keepdims=True)


def lagrangian(channel, prior):
    return fp.mutual_information(channel, prior) + SLOPE * fp.distortion(channel, prior)


def plain_gap(prior, seconds):
    """Gap that q <- q c reaches in a time, with our own transforms."""
    p, tilt = prior.pmf().copy(), HammingTilt(prior.space.sizes, SLOPE)
    q = np.full(len(p), 1.0 / len(p))
    end, steps = time.perf_counter() + seconds, 0
    while True:
        v = tilt.forward(q)
        c = tilt.backward(p / v)
        if time.perf_counter() > end:
            value, bound = certify(p, q, tilt, v, c)
            return value - bound, steps
        q *= c
        steps += 1


#: A peer that took longer than this at one size is not asked for the next.
PATIENCE = 2.0
taken = {}


def report(name, solve, prior, bound):
    if taken.get(name, 0.0) > PATIENCE:
        print(f"  {name:24s} not run: {taken[name]:.1f} s at the last size")
        return
    start = time.perf_counter()
    with suppress(ImportError):
        channel = solve()
        taken[name] = seconds = time.perf_counter() - start
        gap = lagrangian(fp.Channel(channel, prior.space), prior) - bound
        print(f"  {name:24s} {seconds:9.3f} s   gap {gap:.1e}", flush=True)


@pytest.mark.parametrize("bits", [6, 10])
def test_rate_distortion(benchmark, bits):
    benchmark(ours, prior_over(bits))


def main(largest):
    ours(prior_over(4))  # compile
    for bits in (6, 8, 10):
        prior = prior_over(bits)
        start = time.perf_counter()
        point = fp.solve_pd_mip(prior, slope=SLOPE)
        seconds = time.perf_counter() - start
        print(f"N = {2**bits}")
        print(f"  {'fastpriv':24s} {seconds:9.3f} s   gap {point.value - point.bound:.1e}")
        metric, bound = distances(prior), point.bound + SLOPE * point.distortion
        report("fastpriv, as a metric", lambda p=prior, m=metric: by_metric(p, m), prior, bound)
        report("qif", partial(with_qif, prior, metric), prior, bound)
        report("dit, restarts=1", partial(with_dit, prior, metric, 1), prior, bound)
        if bits == 6:
            report("dit, default restarts", partial(with_dit, prior, metric, 100), prior, bound)
    for bits in (12, 16, 20):
        if bits > largest:
            break
        prior = prior_over(bits)
        print(f"N = 2^{bits}")
        for part in (0.1, 0.25):
            start = time.perf_counter()
            point = fp.solve_pd_mip(prior, part * bits)
            seconds = time.perf_counter() - start
            print(
                f"  fastpriv, D = {part:4} n       {seconds:9.3f} s   gap "
                f"{point.value - point.bound:.1e}   I = {point.value:.9f}",
                flush=True,
            )
        gap, steps = plain_gap(prior, seconds)
        print(f"  Blahut's iteration       {seconds:9.3f} s   gap {gap:.1e}   ({steps} steps)")


def by_metric(prior, metric):
    return fp.solve_pd_mip(prior, slope=SLOPE, metric=metric).channel.matrix()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
