"""Design of mappings against inference: fastpriv beside cvxpy with CLARABEL, in one run.

Run ``python benchmarks/bench_inference.py [largest size]``; cvxpy is left out where it is not
installed (``pip install 'fastpriv[peers]'``). Both are asked for a gap of 1e-8. ``above`` is how
far the information of each answer, repaired to meet the budget, lies above our lower bound.
"""

import sys
import time
from contextlib import suppress

import numpy as np
import pytest

import fastpriv as fp

GAP = 1e-8
#: Largest |X| that the peer solves within minutes.
PEER = 50


def problem(k, n, seed=0):
    """A random joint law of k secrets and n inputs, Hamming distortion at a third of its range."""
    joint = np.random.default_rng(seed).dirichlet(np.ones(k * n)).reshape(k, n)
    metric = 1.0 - np.eye(n)
    return joint, metric, float((joint.sum(axis=0) @ metric).min()) / 3


def with_cvxpy(joint, metric, distortion):
    """The same program as relative entropies for a conic solver."""
    import cvxpy as cp

    prior, p = joint.sum(axis=1), joint.sum(axis=0)
    W = cp.Variable(metric.shape, nonneg=True)
    q = cp.reshape(p @ W, (1, metric.shape[1]), order="C")
    independent = prior[:, None] @ q
    constraints = [cp.sum(W, axis=1) == 1, p @ cp.sum(cp.multiply(W, metric), axis=1) <= distortion]
    leak = cp.sum(cp.rel_entr(joint @ W, independent))
    tolerances = {f"tol_{name}": GAP for name in ("gap_abs", "gap_rel", "feas")}
    cp.Problem(cp.Minimize(leak), constraints).solve(solver="CLARABEL", **tolerances)
    return W.value


def repaired(W, joint, metric, distortion):
    """Information of a raw matrix, mixed with the identity where it misses the budget."""
    W = np.maximum(W, 0.0)
    W /= W.sum(axis=1, keepdims=True)
    spent = joint.sum(axis=0) @ (W * metric).sum(axis=1)
    if spent > distortion:
        W = W * (distortion / spent) + np.eye(len(W)) * (1.0 - distortion / spent)
    prior = joint.sum(axis=1)
    return fp.mutual_information(joint @ W / prior[:, None], prior)


def timed(work, rounds):
    """Least seconds over some rounds, and the result."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


@pytest.mark.parametrize("shape", [(2, 2), (10, 10), (50, 50)])
def test_design(benchmark, shape):
    case = problem(*shape)
    benchmark.pedantic(fp.design_mapping, case, rounds=3, warmup_rounds=1)


def main(largest):
    """Print one line per size and solver."""
    fp.design_mapping(*problem(2, 2))
    print(
        f"{'|S| x |X| = |Y|':<18}{'solver':<18}{'seconds':>10}{'nats':>14}{'above':>10}{'ratio':>8}"
    )
    for k, n in [
        (2, 2),
        (2, 10),
        (10, 10),
        (2, 20),
        (20, 20),
        (2, 50),
        (50, 50),
        (2, 200),
        (200, 200),
    ]:
        if n > largest:
            continue
        case = problem(k, n)
        seconds, best = timed(lambda c=case: fp.design_mapping(*c, gap=GAP), 5 if n <= 50 else 1)
        above = best.value - best.bound
        print(
            f"{f'{k} x {n}':<18}{'fastpriv':<18}{seconds:>10.4f}{best.value:>14.9f}{above:>10.0e}"
        )
        if n <= PEER:
            with suppress(ImportError):
                other, W = timed(lambda c=case: with_cvxpy(*c), 2)
                value = repaired(W, *case)
                print(
                    f"{'':<18}{'cvxpy + CLARABEL':<18}{other:>10.4f}{value:>14.9f}"
                    f"{value - best.bound:>10.0e}{other / seconds:>8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
