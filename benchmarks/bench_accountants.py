"""Composed noise and responses: ours against dp-accounting, prv-accountant, autodp and OpenDP.

Every accountant is asked for epsilon at one delta, from scratch, by a line of Python in its own
words (`benchmarks/accountants.py`). Errors are relative to our certified bracket; ours is the width
of the bracket. An epsilon below our lower bound is not a guarantee and counts as unsound;
parameters are rounded for some accountants, which is granted 1e-9. The answer of prv-accountant is
its upper bound, for an error of 0.01 in epsilon.
"""

import math

import pytest

from accountants import FASTPRIV, PEERS, NotTaken
from contenders import ours, peer, sizes
from court import ROUNDING
from events import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Response,
    Sampled,
    Times,
    Together,
)
from records import INFINITE

#: Noise multiplier, sampling rate, steps, delta; those first that grids take easily.
SAMPLED = [
    (0.8, 0.005, 1000, 1e-6),
    (1.0, 0.01, 1000, 1e-5),
    (0.9, 0.00256, 4900, 1e-5),
    (1.0, 0.2, 4, 1e-6),
    (1.0, 0.01, 20, 1e-6),
    (2.0, 0.1, 500, 1e-9),
    (1.1, 0.00427, 3510, 1e-5),
    (1.0, 0.01, 1000, 1e-30),
    (5.0, 0.5, 2000, 1e-12),
    (20.0, 0.01, 10**8, 1e-6),
    (0.5, 0.002, 10**4, 1e-5),
    (1.0, 1e-4, 10**6, 1e-8),
    (0.7, 0.001, 10**5, 1e-7),
    (100.0, 0.01, 10**9, 1e-300),
]
#: Question, and compositions with a delta each.
OTHERS = {
    "Gaussian noise": [
        (Gaussian(1.0), 1e-5),
        (Times(Gaussian(10.0), 100), 1e-10),
        (Times(Gaussian(1000.0), 10**6), 1e-30),
        (Times(Gaussian(1e5), 10**9), 1e-300),
    ],
    "Laplace noise": [
        (Times(Laplace(10.0), 50), 1e-6),
        (Times(Laplace(1.0), 100), 1e-6),
        (Times(Laplace(2.0), 1000), 1e-10),
        (Times(Laplace(20.0), 10**5), 1e-9),
        (Times(Laplace(1e5), 10**9), 1e-12),
    ],
    "sampled Laplace noise": [
        (Times(Sampled(Laplace(1.0), 0.01), 1000), 1e-6),
        (Times(Sampled(Laplace(2.0), 0.1), 100), 1e-9),
    ],
    "discrete Gaussian noise": [
        (DiscreteGaussian(1.0), 1e-8),
        (Times(DiscreteGaussian(2.0), 10), 1e-6),
        (Times(DiscreteGaussian(30.0), 1000), 1e-12),
    ],
    "discrete Laplace noise": [
        (Times(DiscreteLaplace(0.1), 100), 1e-6),
        (Times(DiscreteLaplace(0.01), 10**4), 1e-12),
        (Times(DiscreteLaplace(1e-4), 10**9), 1e-9),
    ],
    "bounded range": [
        (Times(Exponential(1.0), 10), 1e-9),
        (Times(Exponential(0.1), 100), 1e-6),
    ],
    "randomised response": [
        (Times(Response(2, 0.5), 100), 1e-6),
        (Times(Response(4, 0.5), 1000), 1e-14),
        (Times(Response(2, 0.01), 10**6), 1e-9),
    ],
    "several kinds": [
        (Together((Times(Sampled(Gaussian(0.8), 0.005), 1000), Laplace(10.0))), 1e-6),
        (Together((Times(Gaussian(10.0), 50), Times(Laplace(20.0), 50))), 1e-9),
        (Together((Times(Gaussian(20.0), 50), Times(DiscreteLaplace(0.05), 100))), 1e-20),
    ],
}


def compared(versus, question, tree, delta, **fields):
    """Time ours and everybody who takes the releases; judge by our bracket."""
    exact = FASTPRIV.call(tree, delta)()
    least = exact.lower * (1.0 - ROUNDING)

    def judged(line):
        def judge(epsilon):
            if math.isinf(epsilon):
                return {"sound": True, "line": line, "note": INFINITE}
            error = abs(epsilon - exact.midpoint) / exact.midpoint
            return {"value": epsilon, "error": error, "sound": epsilon >= least, "line": line}

        return judge

    def certified(bracket):
        told = {"value": bracket.upper, "error": exact.width / exact.upper, "sound": True}
        return told | {"lower": exact.lower, "line": FASTPRIV.line(tree, delta)}

    solvers = [ours(FASTPRIV.call(tree, delta), certified)]
    for each in PEERS:
        try:
            line = each.line(tree, delta)
        except NotTaken as error:
            solvers.append(peer(each.name, None, needs=each.needs, skip=str(error)))
            continue

        def made(each=each):
            return each.call(tree, delta)

        solvers.append(peer(each.name, made, judged(line), needs=each.needs, made=True))
    instance = FASTPRIV.line(tree, delta).replace("PrivacyProfile.", "")
    fields |= {"error_of": "relative error", "target": 1e-9}
    versus(f"composed epsilon, {question}", instance, *solvers, **fields)


@pytest.mark.parametrize(("sigma", "q", "steps", "delta"), sizes(*SAMPLED[:2], large=SAMPLED[2:]))
def test_sampled_gaussian(versus, sigma, q, steps, delta):
    """Gaussian noise on Poisson samples."""
    tree = Times(Sampled(Gaussian(sigma), q), steps)
    first = (sigma, q, steps, delta) == SAMPLED[0]
    compared(versus, "sampled Gaussian noise", tree, delta, headline=first)


@pytest.mark.parametrize(
    ("question", "tree", "delta"),
    [
        case
        for question, (first, *rest) in OTHERS.items()
        for case in sizes((question, *first), large=[(question, *each) for each in rest])
    ],
)
def test_others(versus, question, tree, delta):
    """Other releases."""
    compared(versus, question, tree, delta)
