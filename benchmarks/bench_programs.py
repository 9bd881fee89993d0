"""PD-DP against raw HiGHS, cvxpy and qif on the plain formulation, in one run.

Run ``python benchmarks/bench_programs.py [largest N]``; peers that are not installed are left out
(``pip install 'fastpriv[peers]'``). Beside each time stands the differential privacy level that
the returned matrix really has: the level asked for is 1.
"""

import math
import sys
import time
from contextlib import suppress

import numpy as np
import pytest
import scipy.sparse as sp

import fastpriv as fp

EPSILON = 1.0


def prior_over(bits, seed=0):
    """A random dense prior."""
    pmf = np.random.default_rng(seed).random(2**bits) + 0.05
    return fp.Dense(pmf / pmf.sum(), [2] * bits)


def plain(prior):
    """Cost, ratio rows and row sums of the plain program, variables W[x, y] flat."""
    space, size = prior.space, prior.space.size
    rows = space.rows(np.arange(size))
    distance = (rows[:, None, :] != rows[None, :, :]).sum(axis=2)
    pairs = np.array([(x, y) for x in range(size) for y in space.neighbours(x)])
    here = (pairs[:, :1] * size + np.arange(size)).reshape(-1)
    there = (pairs[:, 1:] * size + np.arange(size)).reshape(-1)
    index = np.arange(len(here))
    ratio = sp.csr_matrix(
        (
            np.concatenate([np.ones(len(index)), np.full(len(index), -math.exp(EPSILON))]),
            (np.concatenate([index, index]), np.concatenate([here, there])),
        ),
        shape=(len(index), size * size),
    )
    total = sp.kron(sp.eye(size), np.ones((1, size)), format="csr")
    return (prior.pmf()[:, None] * distance).reshape(-1), ratio, total


def with_highs(prior, method):
    """Raw HiGHS on the plain program."""
    import highspy

    cost, ratio, total = plain(prior)
    rows = sp.vstack([ratio, total], format="csr")
    solver, lp = highspy.Highs(), highspy.HighsLp()
    solver.silent()
    solver.setOptionValue("solver", method)
    solver.setOptionValue("run_crossover", "off")
    lp.num_col_, lp.num_row_ = rows.shape[1], rows.shape[0]
    lp.col_cost_ = cost
    lp.col_lower_, lp.col_upper_ = np.zeros(rows.shape[1]), np.full(rows.shape[1], np.inf)
    sums = np.ones(total.shape[0])
    lp.row_lower_ = np.concatenate([np.full(ratio.shape[0], -np.inf), sums])
    lp.row_upper_ = np.concatenate([np.zeros(ratio.shape[0]), sums])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = rows.indptr, rows.indices
    lp.a_matrix_.value_ = rows.data
    solver.passModel(lp)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return np.array(solver.getSolution().col_value), cost


def with_cvxpy(prior, solver):
    """The plain program through cvxpy."""
    import cvxpy as cp

    cost, ratio, total = plain(prior)
    x = cp.Variable(len(cost), nonneg=True)
    problem = cp.Problem(cp.Minimize(cost @ x), [ratio @ x <= 0, total @ x == 1])
    problem.solve(solver=solver)
    return x.value, cost


def with_qif(prior):
    """The same mechanism from qif's d-private library."""
    import qif

    size = prior.space.size
    rows = prior.space.rows(np.arange(size))
    distance = (rows[:, None, :] != rows[None, :, :]).sum(axis=2).astype(float)
    metric = qif.metric.from_distance_matrix(EPSILON * distance)
    loss = qif.metric.from_distance_matrix(distance)
    channel = qif.mechanism.d_privacy.min_loss_given_d(prior.pmf(), size, metric, loss)
    return np.asarray(channel).reshape(-1), prior.pmf().repeat(size) * distance.reshape(-1)


def achieved(entries, size, prior):
    """DP level of a raw solution, its rows divided by their sums and negatives set to zero."""
    matrix = np.maximum(entries.reshape(size, size), 0.0)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return fp.dp_level(fp.Channel(matrix, prior.space))


def ours(prior):
    """Our solution, with what it certifies."""
    solution = fp.solve_pd_dp(prior, EPSILON)
    return solution.value, fp.dp_level(solution.channel), solution.gap


@pytest.mark.parametrize("bits", [4, 5, 6])
def test_dense(benchmark, bits):
    benchmark.pedantic(ours, (prior_over(bits),), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("n", [20, 40])
def test_types(benchmark, n):
    prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
    benchmark.pedantic(ours, (prior,), rounds=3, warmup_rounds=1)


def show(program, solver, seconds, value, level, gap=None):
    """Print one line of the table."""
    proved = "" if gap is None else f"{gap:>10.0e}"
    print(
        f"{program:<14}{solver:<20}{seconds:>9.2f}{value:>13.7f}{level:>11.6f}{proved}", flush=True
    )


def timed(work):
    """Seconds and result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def main(largest):
    """Print one line per solver and size."""
    peers = {
        # name: (largest N that takes less than minutes, solver)
        "HiGHS simplex": (32, lambda p: with_highs(p, "simplex")),
        "HiGHS IPM": (128, lambda p: with_highs(p, "ipm")),
        "cvxpy + HIGHS": (64, lambda p: with_cvxpy(p, "HIGHS")),
        "cvxpy + CLARABEL": (128, lambda p: with_cvxpy(p, "CLARABEL")),
        "qif": (32, with_qif),
    }
    fp.solve_pd_dp(prior_over(3), EPSILON)
    print(f"{'program':<14}{'solver':<20}{'seconds':>9}{'distortion':>13}{'level':>11}{'gap':>10}")
    for size in (16, 32, 64, 128, 256):
        if size > largest:
            break
        prior = prior_over(size.bit_length() - 1)
        seconds, found = timed(lambda prior=prior: ours(prior))
        show(f"dense {size}", "fastpriv", seconds, *found)
        for name, (most, solve) in peers.items():
            if size <= most:
                with suppress(ImportError):
                    seconds, (entries, cost) = timed(lambda s=solve, p=prior: s(p))
                    show("", name, seconds, cost @ entries, achieved(entries, size, prior))
    for n in (20, 40, 60, 100) if largest >= 256 else (20, 40, 60):
        prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
        seconds, found = timed(lambda prior=prior: ours(prior))
        show(f"types {n}", "fastpriv", seconds, *found)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
