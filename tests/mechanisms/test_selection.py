"""Permute-and-flip and report noisy max: all orders and flips, integrals over noise, theorems."""

import math
from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp

flip, noisy = fp.mechanisms.permute_and_flip, fp.mechanisms.report_noisy_max
UTILITIES = st.lists(st.floats(-8.0, 8.0), min_size=1, max_size=5)


def by_orders(q: list[Fraction]) -> list[Fraction]:
    """Chances of permute-and-flip by all orders of the candidates, in fractions."""
    chances = [Fraction(0)] * len(q)
    for order in permutations(range(len(q))):
        left = Fraction(1, math.factorial(len(q)))
        for r in order:
            chances[r] += left * q[r]
            left *= 1 - q[r]
    return chances


@pytest.mark.parametrize("powers", [[0, 0], [0, 1], [0, 0, 3], [2, 0, 1, 5], [0, 1, 2, 3, 4, 4]])
def test_permute_and_flip_by_all_orders(powers):
    """Chances that are powers of a half, at the double next to ln 2."""
    expected = by_orders([Fraction(1, 2**power) for power in powers])
    channel = flip([-float(power) for power in powers], 2.0 * math.log(2.0))
    np.testing.assert_allclose(channel.matrix()[0], [float(p) for p in expected], rtol=1e-14)


def by_noise(u, noise):
    """Chances that each utility with noise of scale one is the largest, by integrals."""

    def law(x):  # density and distribution function
        if noise == "exponential":
            return (mpmath.exp(-x), 1 - mpmath.exp(-x)) if x > 0 else (mpmath.mpf(0),) * 2
        if noise == "gumbel":
            below = mpmath.exp(-mpmath.exp(-x))
            return mpmath.exp(-x) * below, below
        tail = mpmath.exp(-abs(x)) / 2
        return tail, 1 - tail if x > 0 else tail

    chances = []
    ends = sorted({mpmath.mpf(x) for x in u} | {mpmath.mpf(min(u)) - 40, mpmath.mpf(max(u)) + 50})
    for r, mine in enumerate(u):
        others = [x for s, x in enumerate(u) if s != r]

        def integrand(z, mine=mine, others=others):
            return law(z - mine)[0] * mpmath.fprod(law(z - x)[1] for x in others)

        chances.append(mpmath.quad(integrand, ends, maxdegree=8))
    return [float(p) for p in chances]


@pytest.mark.slow(but=["u0-exponential", "u0-laplace", "u1-exponential"])
@pytest.mark.parametrize("noise", ["exponential", "gumbel", "laplace"])
@pytest.mark.parametrize("u", [[0.0, 0.0], [1.0, -0.5, 0.25], [3.0, 2.0, -1.0]])
def test_report_noisy_max_by_integrals_over_noise(noise, u):
    """Exponential noise is permute-and-flip, and Gumbel noise the exponential mechanism."""
    row = noisy(u, 2.0, noise=noise).matrix()[0]
    np.testing.assert_allclose(row, by_noise(u, noise), atol=1e-11)
    if noise == "exponential":
        np.testing.assert_array_equal(row, flip(u, 2.0).matrix()[0])
    if noise == "gumbel":
        weights = np.exp(np.array(u))
        np.testing.assert_allclose(row, weights / weights.sum(), rtol=1e-14)


@pytest.mark.search(every=10)
@settings(max_examples=60, deadline=None)
@given(UTILITIES, st.floats(1e-8, 20.0), st.data())
def test_levels_and_utility(u, epsilon, data):
    """All are epsilon-private for neighbouring utilities; permute-and-flip is the most useful."""
    moved = [x + data.draw(st.floats(-1.0, 1.0)) for x in u]
    loss = {}
    for noise in ("exponential", "gumbel", "laplace"):
        channel = noisy([u, moved], epsilon, noise=noise)
        assert fp.dp_level(channel) <= epsilon * (1.0 + 1e-9) + 1e-12
        loss[noise] = max(u) - float(channel.matrix()[0] @ np.array(u))
    assert loss["exponential"] <= loss["gumbel"] + 1e-12 * (1.0 + abs(max(u)))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
def test_the_range_of_permute_and_flip_is_more_than_epsilon(epsilon):
    matrix = flip([[0.0, 0.0], [1.0, -1.0]], epsilon).matrix()
    losses = np.log(matrix[0] / matrix[1])
    expected = [-math.log(2.0 - math.exp(-epsilon)), epsilon]
    np.testing.assert_allclose(losses, expected, rtol=1e-12)
    assert np.ptp(losses) > 1.1 * epsilon
    # Of the exponential mechanism it is not, whatever the utilities.
    gumbel = noisy([[0.0, 0.0], [1.0, -1.0]], epsilon, noise="gumbel").matrix()
    assert np.ptp(np.log(gumbel[0] / gumbel[1])) <= epsilon * (1.0 + 1e-12)


@pytest.mark.slow
def test_composed_curves_hold_for_channels():
    """Declared curves are above those of given utilities, also composed."""
    u = [[0.0, 0.0, 0.5], [1.0, -1.0, 0.5]]
    of = fp.accounting.PrivacyProfile
    for t in (0.0, 0.5, 2.0):
        flipped = of.of(flip(u, 0.5)).self_compose(10).delta(t)
        assert flipped.lower <= of.from_epsilon_delta(0.5).self_compose(10).delta(t).upper
        gumbel = of.of(noisy(u, 0.5, noise="gumbel")).self_compose(10).delta(t)
        assert gumbel.lower <= of.exponential(0.5).self_compose(10).delta(t).upper


def test_edges():
    assert flip([3.0], 1.0).matrix().tolist() == [[1.0]]
    for noise in ("exponential", "gumbel", "laplace"):
        assert noisy([0.0, 5.0], 0.0, noise=noise).matrix()[0].tolist() == pytest.approx([0.5, 0.5])
        far = noisy([0.0, 1e9], 700.0, noise=noise).matrix()[0]
        assert far[1] == 1.0
        many = noisy(np.zeros(200), 1.0, noise=noise).matrix()[0]
        np.testing.assert_allclose(many, 1 / 200, rtol=1e-12)
    draws = flip([0.0, 1.0], 1.0).sample(np.zeros((4000, 1), dtype=int), rng=1)
    assert abs(draws.mean() - flip([0.0, 1.0], 1.0).matrix()[0, 1]) < 0.04


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([], 1.0), "utilities"),
        (([0.0, math.nan], 1.0), "utilities"),
        (([0.0], -1.0), "epsilon"),
        (([0.0], 1.0, 0.0), "sensitivity"),
        (([0.0], 1e10, 1e-300), "too large"),
    ],
)
def test_what_is_refused(arguments, words):
    with pytest.raises(fp.InvalidInput, match=words):
        flip(*arguments)
    with pytest.raises(fp.InvalidInput, match="noise"):
        noisy([0.0], 1.0, noise="normal")
    with pytest.raises(fp.TooLarge):
        flip(np.zeros(5000), 1.0)
