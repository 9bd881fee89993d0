"""PD-DP against raw HiGHS, cvxpy and qif on the plain formulation.

The level asked for is 1. The error of a peer is how far the differential privacy level that its
matrix really has, rows divided by their sums, is above that; ours is the certified gap of the
distortion, the level being met.
"""

import math
import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp

import fastpriv as fp
import instances
from _bench import ours, peer, run

EPSILON = 1.0


def plain(prior):
    """Cost, ratio rows and row sums of the plain program, variables W[x, y] flat."""
    space, size = prior.space, prior.space.size
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
    return (prior.pmf()[:, None] * instances.hamming(space.n)).reshape(-1), ratio, total


def with_highs(method, prior):
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


def with_cvxpy(solver, prior):
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

    distance = instances.hamming(prior.space.n)
    metric = qif.metric.from_distance_matrix(EPSILON * distance)
    loss = qif.metric.from_distance_matrix(distance)
    solve = qif.mechanism.d_privacy.min_loss_given_d
    channel = np.asarray(solve(prior.pmf(), prior.space.size, metric, loss))
    return channel.reshape(-1), (prior.pmf()[:, None] * distance).reshape(-1)


#: Name, largest N that takes less than minutes, distribution, solver.
PEERS = [
    ("HiGHS simplex", 32, None, partial(with_highs, "simplex")),
    ("HiGHS IPM", 128, None, partial(with_highs, "ipm")),
    ("cvxpy + HIGHS", 64, "cvxpy", partial(with_cvxpy, "HIGHS")),
    ("cvxpy + CLARABEL", 128, "cvxpy", partial(with_cvxpy, "CLARABEL")),
    ("qif", 32, "qif", with_qif),
]


def achieved(prior, found):
    """What a raw solution is worth, its rows divided by their sums and negatives set to zero."""
    entries, cost = found
    matrix = np.maximum(entries.reshape(prior.space.size, -1), 0.0)
    matrix /= matrix.sum(axis=1, keepdims=True)
    level = fp.dp_level(fp.Channel(matrix, prior.space))
    sound = level <= EPSILON + 1e-9  # the tolerance of a careful solver
    return {"value": float(cost @ entries), "error": max(level - EPSILON, 0.0), "sound": sound}


def certified(solution):
    """What ours certifies."""
    level = fp.dp_level(solution.channel)
    return {"value": solution.value, "error": solution.gap, "sound": level <= EPSILON}


def main(bench):
    """Dense priors beside peers, then types."""
    fp.solve_pd_dp(fp.Dense(instances.even_prior(8), [2] * 3), EPSILON)
    for size in bench.sizes((16, 32), (16, 32, 64, 128, 256)):
        prior = fp.Dense(instances.even_prior(size), [2] * (size.bit_length() - 1))
        bench.compare(
            "least distortion at DP level 1",
            f"random dense prior, N = {size}",
            ours(partial(fp.solve_pd_dp, prior, EPSILON), certified),
            *(
                peer(
                    name,
                    partial(solve, prior),
                    partial(achieved, prior),
                    needs=needs,
                    skip="minutes at this size" if size > most else None,
                )
                for name, most, needs, solve in PEERS
            ),
            seed=0,
            error_of="gap, or excess of the level",
            target=1e-6,
            headline=size in (32, 64),
        )
    for n in bench.sizes((20,), (20, 40, 60)):
        prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
        bench.compare(
            "least distortion at DP level 1",
            f"beta-binomial prior, {n} bits",
            ours(partial(fp.solve_pd_dp, prior, EPSILON), certified),
            error_of="gap, or excess of the level",
            target=1e-6,
        )
    engines(bench)
    levels(bench)
    grids(bench)


def engines(bench):
    """Both engines on both programs, through the same repair and certificate."""
    priors = [
        (f"random dense prior, N = {size}", fp.Dense(instances.even_prior(size), [2] * bits))
        for bits, size in bench.sizes(((3, 8), (4, 16)), ((3, 8), (4, 16), (5, 32), (6, 64)))
    ]
    priors += [
        (f"beta-binomial prior, {n} bits", fp.Exchangeable.beta_binomial(n, 0.5, 0.8))
        for n in bench.sizes((8,), (8, 16, 24))
    ]
    for name, prior in priors:
        least, tilde = prior.epsilon_x(), prior.epsilon_tilde()
        for program, solve, epsilon in (
            ("PD-DP", fp.solve_pd_dp, 0.5 * prior.epsilon_hat()),
            ("PD-I", fp.solve_pd_i, 0.5 * (least + tilde)),
        ):
            bench.compare(
                f"{program}, one engine or the other",
                name,
                *(
                    ours(partial(quiet, solve, prior, epsilon, solver), gap_of, name=solver)
                    for solver in ("auto", "interior", "highs")
                ),
                seed=0,
                error_of="gap",
                target=1e-6,
            )


def levels(bench):
    """The best level at a distortion, and a whole curve."""
    for n in bench.sizes((4,), (4, 8, 12)):
        prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
        cost = 0.5 * fp.solve_pd_dp(prior, 0.0).value
        for notion in ("dp", "identifiability"):
            bench.compare(
                "best level at half of a constant's distortion",
                f"beta-binomial prior, {n} bits, {notion}",
                ours(partial(fp.privacy_level, prior, cost, notion), width_of),
                error_of="width of the bracket",
                target=1e-5,
            )
    prior = fp.Exchangeable.beta_binomial(4, 0.5, 0.8)
    bench.compare(
        "trade-off curve, 5 distortions, both notions",
        "beta-binomial prior, 4 bits",
        ours(
            partial(
                fp.tradeoff_curve,
                prior,
                ["dp", "identifiability"],
                [0.1, 0.2, 0.4, 0.6, 0.8],
            )
        ),
    )


def grids(bench):
    """Mechanisms on a grid of cells whose privacy scales with the distance."""
    for a in bench.sizes((4, 6), (4, 6, 7, 8, 12, 16)):
        cells = np.array([(i, j) for i in range(a) for j in range(a)], dtype=float)
        apart = np.linalg.norm(cells[:, None] - cells, axis=2)
        prior = np.full(a * a, 1.0 / (a * a))
        gap = 1e-6 if a <= 8 else 1e-4
        bench.compare(
            "least expected distance at level ln 2 / 2 per cell",
            f"{a} x {a} cells",
            ours(
                partial(
                    fp.solve_pd_dp,
                    prior,
                    math.log(2.0) / 2.0,
                    metric=apart,
                    neighbours=apart,
                    gap=gap,
                ),
                gap_of,
            ),
            error_of="gap",
            target=gap,
        )


def quiet(solve, prior, epsilon, solver):
    """Solve; a gap that is not met shows in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.GapWarning)
        return solve(prior, epsilon, solver=solver)


def gap_of(solution):
    """Value and certified gap."""
    return {"value": solution.value, "error": solution.gap, "sound": True}


def width_of(bracket):
    """Upper end and width."""
    return {"value": bracket.upper, "error": bracket.width, "sound": True}


if __name__ == "__main__":
    run(main)
