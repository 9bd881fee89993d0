"""Individual capacity over polytopes, total variation and KL balls, against grids of all laws."""

import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
from oracles.balance import informations

#: Steps of the grid of laws over four databases.
STEPS = 40
GRID = (
    np.array([g for g in itertools.product(range(STEPS + 1), repeat=3) if sum(g) <= STEPS]) / STEPS
)
GRID = np.column_stack([GRID, 1.0 - GRID.sum(axis=1)])
CENTRE = np.array([0.4, 0.3, 0.2, 0.1])
A = np.array([[1.0, 2.0, 0.0, -1.0], [-1.0, 0.0, 1.0, 0.5], [0.0, 1.0, -2.0, 1.0]])
B = np.array([0.8, 0.1, 0.3])


def divergence(p, q):
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def variation(p, q):
    return 0.5 * np.abs(p - q).sum()


SETS = {
    "polytope": (fp.PriorSet.polytope, (A, B), lambda p, e: (A @ p <= B + e).all()),
    "variation": (
        fp.PriorSet.total_variation,
        (CENTRE, 0.25),
        lambda p, e: variation(p, CENTRE) <= 0.25 + e,
    ),
    "divergence": (
        fp.PriorSet.kl_ball,
        (CENTRE, 0.2),
        lambda p, e: divergence(p, CENTRE) <= 0.2 + e,
    ),
    "entropy": (
        fp.PriorSet.entropy,
        (4, 1.0),
        lambda p, e: divergence(p, np.full(4, 0.25)) <= math.log(4) - 1.0 + e,
    ),
}


@pytest.mark.slow(but=["polytope-0", "variation-0"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", SETS)
def test_every_law_of_a_grid(name, seed):
    """No law of the grid tells more, and the laws near the set tell as much as the lower end."""
    make, arguments, inside = SETS[name]
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(2 + seed, 0.5), 4)
    bracket = fp.individual_capacity(fp.Channel(matrix, [2, 2]), make(*arguments), gap=0.01)
    assert bracket.width <= 0.0101 * bracket.lower
    told = informations(matrix, (2, 2), GRID).max(axis=0)
    within = [inside(p, 1e-12) for p in GRID]
    around = [inside(p, 3.0 / STEPS) for p in GRID]
    assert 0.0 < told[within].max() <= bracket.upper
    assert told[within].max() >= 0.9 * bracket.lower
    assert 1.005 * told[around].max() >= bracket.lower


@pytest.mark.parametrize("name", SETS)
def test_laws_lie_in_the_set(name):
    """The laws that lower ends are computed from meet their constraints, up to rounding."""
    make, arguments, inside = SETS[name]
    priors, rng = make(*arguments), np.random.default_rng(3)
    for _ in range(30):
        weights = rng.normal(size=4)
        bound, law = priors.smallest_sum(weights)
        assert bound <= weights @ law <= bound + 1e-6
        assert inside(law, 1e-14)
        assert law.min() >= 0.0
        assert law.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.slow
def test_one_set_in_many_words():
    """A box is a polytope; an entropy is a ball; balls of radius 0 are one law."""
    rng = np.random.default_rng(7)
    matrix = rng.dirichlet(np.full(2, 0.4), 6)
    channel, pmf = fp.Channel(matrix, [3, 2]), rng.dirichlet(np.ones(6))
    lower, upper = 0.8 * pmf, 1.2 * pmf
    rows, sides = np.vstack([np.eye(6), -np.eye(6)]), np.concatenate([upper, -lower])
    box, polytope = (
        fp.individual_capacity(channel, priors, gap=0.02)
        for priors in (fp.PriorSet.box(lower, upper), fp.PriorSet.polytope(rows, sides))
    )
    assert box.lower <= polytope.upper
    assert polytope.lower <= box.upper
    assert polytope.lower == pytest.approx(box.lower, rel=1e-3)
    truth = float(informations(matrix, (3, 2), pmf[None]).max())
    for ball in (fp.PriorSet.total_variation(pmf, 0.0), fp.PriorSet.kl_ball(pmf, 0.0)):
        told = fp.individual_capacity(channel, ball, gap=0.02)
        assert told.lower - 1e-9 <= truth <= told.upper + 1e-9
    bits = fp.Channel(matrix[:4], [2, 2])
    ball = fp.individual_capacity(bits, fp.PriorSet.entropy(4, 1.1), gap=0.02)
    search = fp.constrained_capacity(bits, 1.1)
    assert ball.lower <= search.upper
    assert search.lower <= ball.upper
    everything = fp.PriorSet.total_variation([0.25] * 4, 1.0)
    whole, free = fp.individual_capacity(bits, everything, gap=0.02), fp.individual_capacity(bits)
    assert whole.lower <= free.upper
    assert free.lower <= whole.upper <= 1.03 * free.upper


@pytest.mark.slow
def test_many_outputs_and_the_entropy_search():
    """A ball around the uniform law is an entropy, which has a search of its own."""
    channel = fp.mechanisms.GeometricCount(4, 1.0).channel()
    ball = fp.PriorSet.kl_ball(np.full(16, 1 / 16), 0.05)
    found = fp.individual_capacity(channel, ball, gap=0.1, time_limit=None)
    search = fp.constrained_capacity(channel, 4.0 * math.log(2.0) - 0.05)
    assert found.width <= 0.11 * found.lower
    assert found.lower <= search.upper
    assert search.lower <= found.upper
    assert found == fp.individual_capacity(channel, ball, gap=0.1, time_limit=None)
