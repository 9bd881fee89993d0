"""Best levels, whole curves, and mappings against inference that is not known in advance.

PD-I and perfect privacy are linear programs, which HiGHS (through SciPy) solves in the plain
formulation as a peer. The error of its PD-I is how far the identifiability level that its matrix
really has, rows divided by their sums, is above the one asked for; that of perfect privacy is the
information that is left, as it is for ours. Other errors of ours are certified gaps and widths.
Collusion stands beside plain NumPy sums over the joint law, which give the information but none of
the bounds. For the other questions no peer is known.
"""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import linprog

import fastpriv as fp
import instances
from bench_programs import plain
from contenders import ours, peer, sizes, yardstick


def pd_i_by_linprog(prior, epsilon):
    """PD-I in the joint law Q[x, y] = p(x) W[x, y]: the constraints of PD-DP, other row sums."""
    _, ratio, total = plain(prior, epsilon)
    p, size = prior.pmf(), prior.space.size
    cost = instances.hamming(prior.space.n).reshape(-1)
    best = linprog(cost, ratio, np.zeros(ratio.shape[0]), total, p, method="highs-ipm")
    return best.x.reshape(size, size) / p[:, None], best.fun


def excess(prior, epsilon, answer):
    """What a raw matrix is worth, its rows divided by their sums and negatives set to zero."""
    matrix, value = answer
    matrix = np.maximum(matrix, 0.0)
    channel = fp.Channel(matrix / matrix.sum(axis=1, keepdims=True), prior.space)
    level = fp.identifiability_level(channel, prior)
    sound = level <= epsilon + 1e-9  # the tolerance of a careful solver
    return {"value": value, "error": max(level - epsilon, 0.0), "sound": sound}


def gap_of(solution):
    """Value and certified gap."""
    return {"value": solution.value, "error": solution.value - solution.bound, "sound": True}


def width_of(bracket):
    """Upper end and width."""
    return {"value": bracket.upper, "error": bracket.width, "sound": True}


@pytest.mark.parametrize("bits", sizes(3, 4, large=[5, 6]))
def test_pd_i(versus, bits):
    """Least distortion at an identifiability level."""
    prior = fp.Dense(instances.even_prior(2**bits), [2] * bits)
    epsilon = prior.epsilon_x() + 1.0
    versus(
        "smallest distortion at identifiability level epsilon_X + 1",
        f"random dense prior, N = {2**bits}",
        ours(partial(fp.solve_pd_i, prior, epsilon), gap_of),
        peer(
            "HiGHS IPM by SciPy",
            partial(pd_i_by_linprog, prior, epsilon),
            partial(excess, prior, epsilon),
        ),
        seed=0,
        error_of="gap, or excess of the level",
        target=1e-6,
    )


@pytest.mark.parametrize("notion", ["dp", "identifiability", "mutual-information"])
@pytest.mark.parametrize("n", sizes(4, large=[8, 12]))
def test_privacy_level(versus, n, notion):
    """The best level at a distortion."""
    prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
    distortion = 0.5 * fp.solve_pd_dp(prior, 0.0).value
    versus(
        "best level at half of a constant's distortion",
        f"beta-binomial prior, {n} bits, {notion}",
        ours(partial(fp.privacy_level, prior, distortion, notion), width_of),
        error_of="width of the bracket",
        target=1e-5,
    )


@pytest.mark.parametrize("points", sizes(5, large=[25]))
def test_tradeoff_curve(versus, points):
    """A whole curve of every notion."""
    prior = fp.Exchangeable.beta_binomial(4, 0.5, 0.8)

    def widest(curve):
        return {"error": max(np.max(curve.upper[k] - curve.lower[k]) for k in curve.upper)}

    versus(
        "trade-off curve of three notions",
        f"beta-binomial prior, 4 bits, {points} distortions",
        ours(partial(fp.tradeoff_curve, prior, points=points), widest),
        error_of="widest bracket",
    )


@pytest.mark.parametrize("criterion", ["contraction", "correlation"])
@pytest.mark.parametrize("size", sizes(3, large=[5, 8]))
def test_worst_case(versus, size, criterion):
    """A mapping against every secret."""
    prior = instances.even_prior(size)
    design = partial(fp.design_worst_case, prior, 0.2, criterion=criterion, time_limit=10.0)
    versus(
        f"mapping of least {criterion} at distortion 0.2",
        f"random prior, {size} values",
        ours(design, gap_of),
        seed=0,
        error_of="gap",
        target=1e-4,
    )


def perfect_by_linprog(joint, metric):
    """The plain linear program over W[x, y] and the output law q(y)."""
    (secrets, inputs), outputs = joint.shape, metric.shape[1]
    eye = np.eye(outputs)
    independent = np.hstack([np.kron(joint, eye), np.kron(-joint.sum(axis=1)[:, None], eye)])
    rows = np.kron(np.eye(inputs), np.ones((1, outputs)))
    total = np.hstack([rows, np.zeros((inputs, outputs))])
    p = joint.sum(axis=0)
    cost = np.concatenate([(p[:, None] * metric).reshape(-1), np.zeros(outputs)])
    right = np.concatenate([np.zeros(secrets * outputs), np.ones(inputs)])
    best = linprog(cost, A_eq=np.vstack([independent, total]), b_eq=right, method="highs")
    return best.x[: inputs * outputs].reshape(inputs, outputs), best.fun


@pytest.mark.parametrize("size", sizes(6, large=[12, 24]))
def test_perfect_privacy(versus, size):
    """Least distortion at which the output is independent of a secret bit."""
    joint, metric = instances.joint(2, size), 1.0 - np.eye(size)
    secret = joint.sum(axis=1)

    def left(answer):
        matrix, value = answer
        matrix = np.maximum(matrix, 0.0)
        matrix /= matrix.sum(axis=1, keepdims=True)
        error = fp.mutual_information(joint @ matrix / secret[:, None], secret)
        return {"value": value, "error": error}

    versus(
        "smallest distortion at perfect privacy",
        f"random joint distribution 2 x {size}",
        ours(
            partial(fp.perfect_privacy, joint, metric),
            lambda best: {"value": best.value, "error": best.level},
        ),
        peer("HiGHS by SciPy", partial(perfect_by_linprog, joint, metric), left),
        seed=0,
        error_of="information left, nats",
        target=1e-12,
    )


def plain_collusion(joint, one, two):
    """I(S; Y1, Y2) from the definition, by NumPy."""
    law = np.einsum("sab,ay,bz->syz", joint, one, two, optimize=True)
    both, secret = law.sum(axis=0), law.sum(axis=(1, 2))
    return float((law * np.log(law / (secret[:, None, None] * both))).sum())


@pytest.mark.parametrize("size", sizes(8, large=[32, 64]))
def test_collusion(versus, size):
    """What two outputs tell together; ours has the paper's bounds beside the exact value."""
    joint = instances.joint(4, size * size).reshape(4, size, size)
    one, two = instances.channel(size), instances.channel(size, seed=1)
    exact = plain_collusion(joint, one, two)

    def judge(value):
        return {"value": value, "error": abs(value - exact) / exact}

    versus(
        "information in two outputs together",
        f"4 secrets, two random {size} x {size} channels",
        ours(
            partial(fp.collusion, joint, one, two),
            lambda answer: judge(answer.exact),
        ),
        yardstick("numpy, no bounds", partial(plain_collusion, joint, one, two), judge=judge),
        seed=0,
        error_of="relative difference",
        target=1e-9,
    )
