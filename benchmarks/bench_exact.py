"""Exact optima beside plain HiGHS: what proof in rational arithmetic costs on top of floats.

Peers solve the plain program in floats, with a crossover to a vertex. Their error is how far the
value is from the exact one; ours is zero by proof, and the time includes the proof's making but not
its second check, which is a question of its own.
"""

import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import fastpriv as fp
import instances
from contenders import ours, peer, sizes

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


@pytest.mark.parametrize("shape", sizes([2] * 4, [2] * 5, [20], large=[[2] * 6, [40]]), ids=str)
def test_random_priors(versus, shape):
    """Random priors on bits and on one row of many values."""
    size = math.prod(shape)
    prior = fp.Dense(instances.even_prior(size), shape)
    truth = float(fp.solve_pd_dp(prior, EPSILON, exact=True).value)
    name = f"{len(shape)} bits" if shape[0] == 2 else f"one row of {size} values"
    versus(
        "exact smallest distortion at DP level 1",
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
    )


@pytest.mark.parametrize("n", sizes(20, large=[30]))
def test_types(versus, n):
    """Types, and the second check of a proof."""
    prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
    best = fp.solve_pd_dp(prior, EPSILON, exact=True)
    instance = f"beta-binomial(0.5, 0.8), {n} bits"
    versus(
        "exact smallest distortion at DP level 1",
        instance,
        ours(partial(fp.solve_pd_dp, prior, EPSILON, exact=True), exact),
        error_of="value",
    )
    versus("second check of the proof", instance, ours(best.verify))


def test_curve(versus):
    """A whole curve."""
    prior = fp.Dense(instances.even_prior(8), [2] * 3)
    versus(
        "exact curve, levels 0 to 3",
        "random prior, 3 bits",
        ours(partial(fp.exact_curve, prior, 0.0, 3.0)),
        seed=0,
    )
