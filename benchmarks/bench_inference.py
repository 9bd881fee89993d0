"""Design of mappings against inference: fastpriv beside cvxpy with CLARABEL.

Both are asked for a gap of 1e-8. The error is how far the information of each answer, repaired to
meet the budget, lies above our lower bound. Joint laws are random, the distortion is Hamming's at a
third of its range.
"""

from functools import partial

import numpy as np
import pytest

import fastpriv as fp
import instances
from contenders import ours, peer, sizes

GAP = 1e-8


def problem(k, n):
    """A random joint law of k secrets and n inputs, a metric and a budget."""
    joint, metric = instances.joint(k, n), 1.0 - np.eye(n)
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


@pytest.mark.parametrize(
    ("k", "n"),
    sizes(
        (2, 2),
        (10, 10),
        large=[(2, 10), (2, 20), (20, 20), (2, 50), (50, 50), (2, 200), (200, 200)],
    ),
)
def test_mapping(versus, k, n):
    """A random joint law of k secrets and n inputs."""
    case = problem(k, n)
    bound = fp.design_mapping(*case, gap=GAP).bound

    def judge(W):
        value = repaired(W, *case)
        return {"value": value, "error": value - bound}

    versus(
        "mapping against inference to 1e-8",
        f"random joint distribution {k} x {n}",
        ours(
            partial(fp.design_mapping, *case, gap=GAP),
            lambda best: {"value": best.value, "error": best.value - best.bound},
        ),
        peer(
            "cvxpy + CLARABEL",
            partial(with_cvxpy, *case),
            judge,
            needs="cvxpy",
            skip="minutes at this size" if n > 50 else None,
        ),
        seed=0,
        error_of="above the bound",
        target=GAP,
    )
