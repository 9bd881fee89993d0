"""Brackets from draws: their coverage exactly for tiny samples and by simulation, and edges."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import fastpriv as fp
from fastpriv._core.divergence import divergence
from fastpriv._matrices import samples
from fastpriv._matrices.samples import Box

NAMES = ("dp_level", "maximal_leakage", "mutual_information", "min_entropy_leakage", "pml_level")


def truths(W, p):
    """The values that brackets are to hold, and the leakage of every output."""
    values = [
        fp.dp_level(W),
        fp.maximal_leakage(W),
        fp.mutual_information(W, p),
        fp.g_leakage(W, p),
        fp.pml_level(W, p),
    ]
    return values, fp.pml(W, p)


def holds(sampled, true):
    """Whether all brackets hold at once."""
    values, leaks = true
    brackets = [getattr(sampled, name) for name in NAMES]
    return all(
        b.lower - 1e-12 <= value <= b.upper + 1e-12
        for b, value in zip(brackets, values, strict=True)
    ) and bool(((sampled.pml.lower <= leaks + 1e-12) & (leaks <= sampled.pml.upper + 1e-12)).all())


@pytest.mark.parametrize("beta", [0.2, 0.025, 1e-6])
def test_binomial_bounds_by_fractions(beta):
    for n in (1, 2, 7, 12):
        counts = np.arange(n + 1.0)[None]
        low, high = samples.clopper_pearson(counts, np.array(float(n)), beta)

        def tail(p, k, n=n):  # P(Bin(n, p) >= k)
            p = Fraction(p)
            return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))

        for k in range(n + 1):
            assert tail(low[0, k], k) <= beta or k == 0
            assert 1 - tail(high[0, k], k + 1) <= beta or k == n
            assert k == 0 or tail(low[0, k] * (1 + 1e-7), k) > beta  # and hardly less
            assert k == n or 1 - tail(high[0, k] * (1 - 1e-7), k + 1) > beta
        assert low[0, 0] == 0.0
        assert high[0, n] == 1.0


def box_of(seed, values):
    """A box around a law."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(values))
    spread = rng.random((2, values)) * 0.3
    return rng, Box(
        np.maximum(p - spread[0], 0.0)[None], np.minimum(p + spread[1], 1.0)[None]
    ).tightened()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_least_means_by_linear_programs(seed, values):
    rng, box = box_of(seed, values)
    f = rng.normal(size=(1, values))
    bounds = list(zip(box.low[0], box.high[0], strict=True))
    true = linprog(f[0], A_eq=np.ones((1, values)), b_eq=[1.0], bounds=bounds).fun
    assert true - 1e-9 <= samples.least_mean(box, f)[0] <= true + 1e-11


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
def test_divergences_within_a_box(seed, values):
    rng, box = box_of(seed, values)
    q = rng.dirichlet(np.ones(values))[None]
    most, place = samples.largest_divergence(box, q)
    assert place.sum() == pytest.approx(1.0, abs=1e-9)
    # The largest is at a vertex: all coordinates but one at an end.
    for free in range(values):
        for ends in product((0, 1), repeat=values):
            p = np.where(ends, box.high[0], box.low[0])
            p[free] = 0.0
            p[free] = 1.0 - p.sum()
            if box.low[0, free] <= p[free] <= box.high[0, free]:
                assert divergence(p, q[0]) <= most[0]
    least = samples.nearest(box, q)[0]
    inside = np.clip(least, box.low[0], box.high[0])
    assert abs(least.sum() - 1.0) < 1e-6
    assert (inside == least).all()


def exact_coverage(answers, weights, W, p):
    """Probability of the outcomes whose brackets all hold."""
    true = truths(W, p)
    return math.fsum(
        weight for sampled, weight in zip(answers, weights, strict=True) if holds(sampled, true)
    )


CHANNELS = [
    [[0.5, 0.5], [0.5, 0.5]],
    [[0.9, 0.1], [0.2, 0.8]],
    [[0.99, 0.01], [0.02, 0.98]],
    [[0.3, 0.7], [0.6, 0.4]],
]


@pytest.mark.parametrize("p", [[0.5, 0.5], [0.9, 0.1]])
def test_exact_coverage_with_a_known_prior(p):
    beta, draws = 0.3, (5, 4)
    outcomes = list(product(range(draws[0] + 1), range(draws[1] + 1)))
    tables = [[[draws[0] - a, a], [draws[1] - b, b]] for a, b in outcomes]
    answers = [fp.leakage_from_counts(t, p, beta=beta) for t in tables]
    covered = []
    for W in CHANNELS:
        chances = [
            math.comb(5, a) * W[0][1] ** a * W[0][0] ** (5 - a)
            * math.comb(4, b) * W[1][1] ** b * W[1][0] ** (4 - b)
            for a, b in outcomes
        ]  # fmt: skip
        assert math.fsum(chances) == pytest.approx(1.0, abs=1e-12)
        covered.append(exact_coverage(answers, chances, W, p))
    assert min(covered) >= 1.0 - beta
    assert min(covered) < 1.0  # the brackets do say something


def test_exact_coverage_with_drawn_inputs():
    beta, n = 0.5, 5
    outcomes = [c for c in product(range(n + 1), repeat=4) if sum(c) == n]
    answers = [fp.leakage_from_counts(np.reshape(c, (2, 2)), "drawn", beta=beta) for c in outcomes]
    for W, p in zip(CHANNELS, ([0.5, 0.5], [0.7, 0.3], [0.5, 0.5], [0.2, 0.8]), strict=True):
        cells = (np.array(p)[:, None] * W).reshape(-1)
        chances = [
            math.factorial(n) / math.prod(map(math.factorial, c)) * float(np.prod(cells**c))
            for c in map(np.array, outcomes)
        ]
        assert exact_coverage(answers, chances, W, p) >= 1.0 - beta


@pytest.mark.parametrize("known", [True, False])
def test_coverage_by_simulation(known):
    rng = np.random.default_rng(17)
    W, p = rng.dirichlet(np.ones(4), 3), np.array([0.5, 0.3, 0.2])
    beta, rounds, held, true = 0.2, 100, 0, truths(W, p)
    for _ in range(rounds):
        x = rng.choice(3, 400, p=p)
        y = (rng.random(400)[:, None] > np.cumsum(W, axis=1)[x]).sum(axis=1)
        sampled = fp.leakage_from_samples(x, y, 3, 4, p if known else "drawn", beta=beta)
        held += holds(sampled, true)
    assert held >= (1.0 - beta) * rounds


def test_brackets_close_in():
    rng = np.random.default_rng(3)
    W, p = rng.dirichlet(np.ones(4), 3) * 0.7 + 0.075, np.array([0.5, 0.3, 0.2])
    W /= W.sum(axis=1, keepdims=True)
    widths = []
    for n in (10**3, 10**5, 10**7):
        rows = np.array([rng.multinomial(n, w) for w in W])
        known = fp.leakage_from_counts(rows, p)
        joint = rng.multinomial(3 * n, (p[:, None] * W).reshape(-1))
        drawn = fp.leakage_from_counts(joint.reshape(3, 4), "drawn")
        for sampled in (known, drawn):
            assert holds(sampled, truths(W, p))
        widths.append([getattr(s, name).width for s in (known, drawn) for name in NAMES])
    assert (np.array(widths[1]) < 0.3 * np.array(widths[0])).all()
    assert (np.array(widths[2]) < 0.3 * np.array(widths[1])).all()


def test_little_information_is_bounded_closely():
    # Ten thousand draws that look alike: the bound falls with 1/n, not with its root.
    sampled = fp.leakage_from_counts([[5_000, 5_000], [5_000, 5_000]], [0.5, 0.5])
    assert 0.0 == sampled.mutual_information.lower < sampled.mutual_information.upper < 4e-4


def test_no_draws_say_nothing():
    nothing = np.zeros((2, 3), np.int64)
    known = fp.leakage_from_counts(nothing, [0.75, 0.25])
    assert known.dp_level.lower == 0.0
    assert known.dp_level.upper == math.inf
    assert known.mutual_information.upper == pytest.approx(0.562335, abs=1e-6)  # H(X)
    assert known.pml_level.upper == pytest.approx(math.log(4.0), abs=1e-9)  # 1 / min p(x)
    assert known.min_entropy_leakage.upper == pytest.approx(math.log(4.0 / 3.0), abs=1e-9)
    drawn = fp.leakage_from_counts(nothing, "drawn")
    assert drawn.pml_level.upper == math.inf
    assert drawn.min_entropy_leakage.upper == math.inf
    assert drawn.mutual_information.upper == pytest.approx(math.log(2.0), abs=1e-9)
    assert fp.leakage_from_counts(nothing).mutual_information is None


def test_one_input_or_one_output_leaks_nothing():
    for table in ([[7, 3]], [[5], [6]]):
        for prior in (np.full(len(table), 1 / len(table)), "drawn"):
            sampled = fp.leakage_from_counts(table, prior)
            for name in NAMES[:3]:
                assert getattr(sampled, name).upper < 1e-8


def test_neighbours_of_a_space():
    space = fp.Space([2, 3])
    counts = np.random.default_rng(1).integers(5, 200, (6, 3))
    sampled = fp.leakage_from_counts(counts, space=space)
    lower = upper = 0.0
    for x in range(6):
        for other in space.neighbours(x):
            lower = max(lower, np.log(sampled.lower[x] / sampled.upper[other]).max())
            upper = max(upper, np.log(sampled.upper[x] / sampled.lower[other]).max())
    assert sampled.dp_level.lower == pytest.approx(lower, abs=1e-11)
    assert sampled.dp_level.upper == pytest.approx(upper, abs=1e-11)
    # Databases that differ in both rows are no neighbours.
    opposite = [[99, 1], [50, 50], [50, 50], [1, 99]]
    near = fp.leakage_from_counts(opposite, space=fp.Space([2, 2])).dp_level
    assert near.upper < fp.leakage_from_counts(opposite).dp_level.upper


def test_samples_are_counted():
    x, y = [0, 0, 1, 1, 1], [0, 2, 2, 2, 1]
    by_draws = fp.leakage_from_samples(x, y, 2, 3, [0.5, 0.5])
    by_counts = fp.leakage_from_counts([[1, 0, 1], [0, 1, 2]], [0.5, 0.5])
    assert repr(by_draws) == repr(by_counts)
    assert by_draws.draws == 5
    rows = fp.leakage_from_samples([[0, 1], [1, 0]], [0, 1], fp.Space([2, 2]), 2)
    assert (rows.lower[[1, 2], [0, 1]] > 0.0).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fp.leakage_from_samples([0], [0], 2, None), "outputs must be an integer"),
        (lambda: fp.leakage_from_samples([0], [0, 1], 2, 2), "one entry for each draw"),
        (lambda: fp.leakage_from_samples([0], [2], 2, 2), "y must be in 0 .. 1; got 2"),
        (lambda: fp.leakage_from_samples([-1], [0], 2, 2), "x must be in 0 .. 1; got -1"),
        (lambda: fp.leakage_from_samples([0.5], [0], 2, 2), "one integer for each draw"),
        (lambda: fp.leakage_from_samples([0], [0], 2, 2, beta=0.0), "beta"),
        (lambda: fp.leakage_from_samples([0], [0], 2, 2, beta=float("nan")), "beta"),
        (lambda: fp.leakage_from_samples([0], [0], 2, 2, "sampled"), '"drawn" or None'),
        (lambda: fp.leakage_from_samples([0], [0], 2, 2, [0.5, 0.6]), "sum to 1"),
        (lambda: fp.leakage_from_counts([[1.5, 2.0]]), "whole numbers"),
        (lambda: fp.leakage_from_counts([[1, -2]]), "whole numbers"),
        (lambda: fp.leakage_from_counts([1, 2]), "whole numbers"),
        (lambda: fp.leakage_from_counts([[1, 2]], space=fp.Space([2])), "each of 2 databases"),
        (lambda: fp.leakage_from_counts([[1, 2], [1, 2]], fp.Uniform(2, 2)), "each of 4 databases"),
        (lambda: fp.leakage_from_counts([[1, 1 << 50]]), "at most"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(fp.InvalidInput, match=words):
        call()
