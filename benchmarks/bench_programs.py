"""PD-DP against raw HiGHS, cvxpy and qif on the plain formulation.

The level asked for is 1. The error of a peer is how far the differential privacy level that its
matrix really has, rows divided by their sums, is above that; ours is the certified gap of the
distortion, the level being met.
"""

import math
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import fastpriv as fp
import instances
from contenders import ours, peer, sizes

EPSILON = 1.0


def plain(prior, epsilon=EPSILON):
    """Cost, ratio rows and row sums of the plain program, variables W[x, y] flat."""
    space, size = prior.space, prior.space.size
    pairs = np.array([(x, y) for x in range(size) for y in space.neighbours(x)])
    here = (pairs[:, :1] * size + np.arange(size)).reshape(-1)
    there = (pairs[:, 1:] * size + np.arange(size)).reshape(-1)
    index = np.arange(len(here))
    ratio = sp.csr_matrix(
        (
            np.concatenate([np.ones(len(index)), np.full(len(index), -math.exp(epsilon))]),
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


def achieved(prior, answer):
    """What a raw solution is worth, its rows divided by their sums and negatives set to zero."""
    entries, cost = answer
    matrix = np.maximum(entries.reshape(prior.space.size, -1), 0.0)
    matrix /= matrix.sum(axis=1, keepdims=True)
    level = fp.dp_level(fp.Channel(matrix, prior.space))
    sound = level <= EPSILON + 1e-9  # the tolerance of a careful solver
    return {"value": float(cost @ entries), "error": max(level - EPSILON, 0.0), "sound": sound}


def certified(solution):
    """What ours certifies."""
    level = fp.dp_level(solution.channel)
    return {"value": solution.value, "error": solution.gap, "sound": level <= EPSILON}


@pytest.mark.parametrize("size", sizes(16, 32, 64, large=[128, 256]))
def test_dense(versus, size):
    """Dense priors beside peers."""
    prior = fp.Dense(instances.even_prior(size), [2] * (size.bit_length() - 1))
    versus(
        "smallest distortion at DP level 1",
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
        headline=size == 32,
    )


@pytest.mark.parametrize("n", sizes(20, large=[40, 60]))
def test_types(versus, n):
    """Types."""
    prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
    versus(
        "smallest distortion at DP level 1",
        f"beta-binomial prior, {n} bits",
        ours(partial(fp.solve_pd_dp, prior, EPSILON), certified),
        error_of="gap, or excess of the level",
        target=1e-6,
    )


#: Priors for both engines, by the number of bits.
DENSE = {f"random dense prior, N = {2**k}": k for k in (3, 4, 5, 6)}
TYPES = {f"beta-binomial prior, {n} bits": n for n in (8, 16, 24)}


@pytest.mark.parametrize("program", ["PD-DP", "PD-I"])
@pytest.mark.parametrize(
    "name", sizes(*[*DENSE][:2], *[*TYPES][:1], large=[*[*DENSE][2:], *[*TYPES][1:]])
)
def test_engines(versus, name, program):
    """Both engines on both programs, through the same repair and certificate."""
    if name in DENSE:
        prior = fp.Dense(instances.even_prior(2 ** DENSE[name]), [2] * DENSE[name])
    else:
        prior = fp.Exchangeable.beta_binomial(TYPES[name], 0.5, 0.8)
    if program == "PD-DP":
        solve, epsilon = fp.solve_pd_dp, 0.5 * prior.epsilon_hat()
    else:
        solve, epsilon = fp.solve_pd_i, 0.5 * (prior.epsilon_x() + prior.epsilon_tilde())
    versus(
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


@pytest.mark.parametrize("side", sizes(4, 6, large=[7, 8, 12, 16]))
def test_grid(versus, side):
    """Mechanisms on a grid of cells whose privacy scales with the distance."""
    cells = np.array([(i, j) for i in range(side) for j in range(side)], dtype=float)
    apart = np.linalg.norm(cells[:, None] - cells, axis=2)
    prior = np.full(side**2, 1.0 / side**2)
    gap = 1e-6 if side <= 8 else 1e-4
    level = math.log(2.0) / 2.0
    versus(
        "least expected distance at level ln 2 / 2 per cell",
        f"{side} x {side} cells",
        ours(
            partial(fp.solve_pd_dp, prior, level, metric=apart, neighbours=apart, gap=gap),
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
