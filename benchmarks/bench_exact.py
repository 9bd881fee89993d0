"""Exact optima beside plain HiGHS: what proof in rational arithmetic costs on top of floats.

Peers solve the plain program in floats, with a crossover to a vertex. Their error is how far the
value is from the exact one; ours is zero by proof, and the time includes the proof's making but not
its second check, which is a question of its own.
"""

import math
from functools import partial

import numpy as np
import scipy.sparse as sp

import fastpriv as fp
import instances
from _bench import ours, peer, run

EPSILON = 1.0


def with_highs(method, prior):
    """Raw HiGHS on the plain program over all pairs of databases."""
    import highspy

    space, size = prior.space, prior.space.size
    rows = space.rows(np.arange(size))
    distance = (rows[:, None, :] != rows[None, :, :]).sum(axis=2)
    x, other = np.nonzero(distance == 1)
    here = (x[:, None] * size + np.arange(size)).reshape(-1)
    there = (other[:, None] * size + np.arange(size)).reshape(-1)
    index = np.arange(len(here))
    values = np.concatenate([np.ones(len(index)), np.full(len(index), -math.exp(EPSILON))])
    places = np.concatenate([index, index]), np.concatenate([here, there])
    ratio = sp.csr_matrix((values, places), shape=(len(index), size * size))
    total = sp.kron(sp.eye(size), np.ones((1, size)), format="csr")
    matrix = sp.vstack([ratio, total], format="csr")
    solver, lp = highspy.Highs(), highspy.HighsLp()
    solver.silent()
    solver.setOptionValue("solver", method)
    lp.num_col_, lp.num_row_ = matrix.shape[1], matrix.shape[0]
    lp.col_cost_ = (prior.pmf()[:, None] * distance).reshape(-1)
    lp.col_lower_, lp.col_upper_ = np.zeros(size**2), np.full(size**2, np.inf)
    lp.row_lower_ = np.concatenate([np.full(ratio.shape[0], -np.inf), np.ones(size)])
    lp.row_upper_ = np.concatenate([np.zeros(ratio.shape[0]), np.ones(size)])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    solver.passModel(lp)
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getObjectiveValue()


def exact(solution):
    """What ours proves."""
    sound = solution.verify() and fp.dp_level(solution.channel) <= EPSILON
    return {"value": float(solution.value), "error": 0.0, "sound": sound}


def beside(truth, value):
    """How far a float is from the exact value; a raw vertex certifies nothing."""
    return {"value": value, "error": abs(value - truth) / truth, "sound": None}


def main(bench):
    """Random priors on bits and on one row of many values, types, proofs, and a curve."""
    fp.solve_pd_dp(fp.Dense(instances.even_prior(8), [2] * 3), EPSILON, exact=True)
    spaces = [[2] * 4, [2] * 5, *bench.sizes(([20],), ([2] * 6, [20], [40]))]
    for sizes in spaces:
        size = math.prod(sizes)
        prior = fp.Dense(instances.even_prior(size), sizes)
        truth = float(fp.solve_pd_dp(prior, EPSILON, exact=True).value)
        name = f"{len(sizes)} bits" if sizes[0] == 2 else f"one row of {size} values"
        bench.compare(
            "exact least distortion at DP level 1",
            f"random prior, {name}",
            ours(partial(fp.solve_pd_dp, prior, EPSILON, exact=True), exact),
            *(
                peer(
                    f"HiGHS {title} (floats)",
                    partial(with_highs, method, prior),
                    partial(beside, truth),
                    skip="minutes at this size" if method == "simplex" and size > 40 else None,
                )
                for title, method in (("simplex", "simplex"), ("IPM + crossover", "ipm"))
            ),
            seed=0,
            error_of="value",
            headline=sizes == [2] * 5,
        )
    for n in bench.sizes((20,), (20, 30)):
        prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
        best = fp.solve_pd_dp(prior, EPSILON, exact=True)
        instance = f"beta-binomial(0.5, 0.8), {n} bits"
        bench.compare(
            "exact least distortion at DP level 1",
            instance,
            ours(partial(fp.solve_pd_dp, prior, EPSILON, exact=True), exact),
        )
        bench.compare("second check of the proof", instance, ours(best.verify))
    prior = fp.Dense(instances.even_prior(8), [2] * 3)
    bench.compare(
        "exact curve, levels 0 to 3",
        "random prior, 3 bits",
        ours(partial(fp.exact_curve, prior, 0.0, 3.0)),
        seed=0,
    )


if __name__ == "__main__":
    run(main)
