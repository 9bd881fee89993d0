"""Leakage about a row, and given an event, over balls, entropies and polytopes of priors."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import fastpriv as fp
from fastpriv._core.clock import Clock
from fastpriv.measures.pointwise.convex import convex_row_leakages, convex_row_level
from pointwise_cases import CHANNELS, SEEDS, random_case

SIZES = st.sampled_from([(2, 2), (2, 3), (3, 2)])
CLOSE = 2e-6


def row_leakage(matrix, pmf, sizes, i):
    """Largest ln P(y | x_i = v)/P(y), from the definition."""
    values = np.arange(len(pmf)) // math.prod(sizes[i + 1 :]) % sizes[i]
    law, worst = pmf @ matrix, 0.0
    for v in range(sizes[i]):
        own = values == v
        if pmf[own].sum() > 0:
            given_v = pmf[own] @ matrix[own] / pmf[own].sum()
            seen = given_v > 0
            worst = max(worst, float(np.log(given_v[seen] / law[seen]).max()))
    return worst


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=5)
@given(SEEDS, SIZES, CHANNELS, st.booleans())
def test_boxes_two_ways(seed, sizes, zeros, open_below):
    """Branch and bound over a convex set agrees with the knapsacks of a box."""
    rng, matrix = random_case(seed, sizes, zeros=zeros)
    channel, size = fp.Channel(matrix, sizes), math.prod(sizes)
    centre = rng.dirichlet(np.ones(size))
    lower = centre * rng.random(size) * (rng.random(size) < (0.5 if open_below else 1.1))
    box = fp.PriorSet.box(lower, np.minimum(1.0, centre + rng.random(size) * 0.4))
    i = seed % 2
    plain = fp.pml_level(channel, box, row=i)
    found = convex_row_level(box, channel, i, Clock(math.inf))
    # The number of intervals is limited: in a few boxes the upper end stays above 1e-6.
    assert found.lower - CLOSE <= plain <= found.upper + 1e-10
    assert found.upper <= plain + 1e-3 or found.upper == plain == math.inf
    first = fp.Channel(np.stack([matrix[:, 0], 1.0 - matrix[:, 0]], axis=1), sizes)
    each = convex_row_leakages(box, first, i, Clock(math.inf))
    listed = fp.row_pml(first, box, i)
    assert (each >= listed - 1e-10).all()
    assert ((each <= listed + 1e-3) | (each == listed)).all()


def signs(size):
    """All vectors of 0 and 1: the total variation is the largest difference of an event."""
    return (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(float)


def three_means(p, matrix, y, own):
    """P(x_i = v), P(y), and P of both."""
    return p @ own, p @ matrix[:, y], p @ (own * matrix[:, y])


@settings(deadline=None, max_examples=4)
@given(SEEDS)
def test_polytopes_by_their_edges(seed):
    """At a fixed P(x_i = v) the leakage is largest at a vertex of the slice, so on an edge."""
    sizes, i = (2, 2), seed % 2
    rng, matrix = random_case(seed, sizes, 2)
    centre = rng.dirichlet(np.ones(4)) * 0.8 + 0.05
    A = rng.standard_normal((3, 4))
    b = A @ centre + rng.uniform(0.02, 0.2)
    level = fp.pml_level(fp.Channel(matrix, sizes), fp.PriorSet.polytope(A, b), row=i)
    sides, most = np.vstack([A, -np.eye(4)]), np.append(b, np.zeros(4))
    corners = []
    for tight in itertools.combinations(range(7), 3):
        system = np.vstack([sides[list(tight)], np.ones(4)])
        if abs(np.linalg.det(system)) > 1e-9:
            p = np.linalg.solve(system, np.append(most[list(tight)], 1.0))
            if (sides @ p <= most + 1e-9).all():
                corners.append(np.maximum(p, 0.0))
    best, values = 0.0, np.arange(4) // (2 if i == 0 else 1) % 2
    share = np.linspace(1e-9, 1.0, 2001)[:, None]
    for first, second in itertools.permutations(corners, 2):
        laws = first + share * (second - first)
        for y, v in np.ndindex(2, 2):
            t, s, both = three_means(laws, matrix, y, (values == v).astype(float))
            seen = both > 1e-13
            if seen.any():
                best = max(best, float(np.log(both[seen] / (t[seen] * s[seen])).max()))
    assert best <= level + 1e-8
    assert level <= best + 1e-5


@pytest.mark.slow
@settings(deadline=None, max_examples=2)
@given(SEEDS, st.sampled_from([0.05, 0.4]))
def test_divergence_balls_by_tilted_laws(seed, radius):
    """Step towards the centre tilted by the gradient, again and again, from many starts."""
    sizes, i = (2, 2), seed % 2
    rng, matrix = random_case(seed, sizes, 2)
    centre = rng.dirichlet(np.ones(4)) * 0.8 + 0.05
    level = fp.pml_level(fp.Channel(matrix, sizes), fp.PriorSet.kl_ball(centre, radius), row=i)
    best, values = 0.0, np.arange(4) // (2 if i == 0 else 1) % 2
    for y, v in np.ndindex(2, 2):
        own = (values == v).astype(float)
        for p in (centre, *(tilted(centre, rng.standard_normal(4), radius) for _ in range(4))):
            for _ in range(80):
                t, s, both = three_means(p, matrix, y, own)
                slope = own / t + matrix[:, y] / s - own * matrix[:, y] / both
                way = tilted(centre, slope, radius) - p
                laws = p + np.geomspace(1e-6, 1.0, 40)[:, None] * way
                t, s, both = three_means(laws, matrix, y, own)
                p = laws[np.argmax(both / (t * s))]
            best = max(best, row_leakage(matrix, p, sizes, i))
    assert best <= level + 1e-9
    assert level <= best + 1e-4


def tilted(centre, slope, radius):
    """Return the law proportional to centre e^(-k slope) on the border of the ball."""
    low, high = 0.0, 1e3

    def law(k):
        p = centre * np.exp(-k * (slope - slope.min()))
        return p / p.sum()

    for _ in range(50):
        middle = 0.5 * (low + high)
        p = law(middle)
        inside = p @ np.log(np.maximum(p, 1e-300) / centre) <= radius
        low, high = (middle, high) if inside else (low, middle)
    return law(low)


@settings(deadline=None, max_examples=3)
@given(SEEDS, st.sampled_from([0.1, 0.5]))
def test_variation_balls_are_polytopes(seed, radius):
    """Written out with an inequality for every event."""
    rng, matrix = random_case(seed, (2, 2), 2)
    centre, channel = rng.dirichlet(np.ones(4)), fp.Channel(matrix, [2, 2])
    events = signs(4)
    levels = [
        fp.pml_level(channel, priors, row=seed % 2)
        for priors in (
            fp.PriorSet.total_variation(centre, radius),
            fp.PriorSet.polytope(events, events @ centre + radius),
        )
    ]
    assert levels[0] == pytest.approx(levels[1], abs=CLOSE)


@pytest.mark.slow
@settings(deadline=None, max_examples=3)
@given(SEEDS, SIZES, CHANNELS)
def test_limits_of_a_set(seed, sizes, zeros):
    """A ball of radius 0 is one law; all laws are a ball, an entropy of 0 and a polytope."""
    rng, matrix = random_case(seed, sizes, zeros=zeros)
    channel, size = fp.Channel(matrix, sizes), math.prod(sizes)
    centre = rng.dirichlet(np.ones(size))
    one = fp.Dense(centre, sizes)
    equal = fp.PriorSet.polytope(np.vstack([np.eye(size), -np.eye(size)]), [*centre, *-centre])
    single = [fp.PriorSet.total_variation(centre, 0.0), fp.PriorSet.kl_ball(centre, 0.0), equal]
    whole = [
        fp.PriorSet.total_variation(centre, 1.0),
        fp.PriorSet.entropy(size, 0.0),
        fp.PriorSet.polytope(np.zeros((1, size)), [0.0]),
    ]
    everything = fp.PriorSet.all(size)
    for i in range(len(sizes)):
        truth = fp.pml_level(channel, one, row=i)
        for priors in single:
            assert fp.pml_level(channel, priors, row=i) == pytest.approx(truth, abs=1e-5)
        truth = fp.pml_level(channel, everything, row=i)
        each = fp.row_pml(channel, everything, i)
        assert each.max() == pytest.approx(truth, abs=1e-12)
        for priors in whole:
            level = fp.pml_level(channel, priors, row=i)
            assert level >= truth - 1e-9
            assert level == pytest.approx(truth, rel=1e-5, abs=CLOSE)
        assert fp.max_individual_capacity(channel, whole[0]) >= truth - 1e-9


@pytest.mark.slow
def test_rows_of_single_outputs():
    channel = fp.HammingChannel(2, 2, 1.0)
    near = fp.PriorSet.total_variation([0.25] * 4, 0.1)
    each = fp.row_pml(channel, near, 1)
    assert each.max() == pytest.approx(fp.pml_level(channel, near, row=1), abs=CLOSE)
    assert fp.row_pml(channel, near, 1, y=2) == each[2]
    assert fp.row_pml(channel, near, 1, y=[1, 0]) == each[2]
    independent = fp.row_pml(channel, fp.PriorSet.product([2, 2]), 0)
    assert independent == pytest.approx(np.ones(4))
    with pytest.raises(fp.InvalidInput, match="largest leakage"):
        fp.row_pml(channel, fp.PriorSet.iid_interval(2, 0.1), 0)
    with pytest.raises(fp.InvalidInput, match="got 3"):
        fp.row_pml(channel, fp.PriorSet.all(3), 0)
    certain = fp.PriorSet.polytope([[0, 0, 1, 1]], [0.0])  # row 0 is 0
    assert fp.pml_level(fp.Channel(channel.matrix(), [2, 2]), certain, row=0) == 0.0


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=8)
@given(SEEDS, SIZES, CHANNELS, st.sampled_from(["box", "polytope", "total_variation"]))
def test_given_an_event_by_linear_programs(seed, sizes, zeros, kind):
    """The least P(y | E) by bisection, with another solver for each test."""
    rng, matrix = random_case(seed, sizes, zeros=zeros)
    size = math.prod(sizes)
    centre = rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size
    radius, A, b = rng.uniform(0.01, 0.09) / size, np.zeros((1, size)), [0.0]
    lower, upper = np.maximum(0.0, centre - radius), np.minimum(1.0, centre + radius)
    if kind == "box":
        priors = fp.PriorSet.box(lower, upper)
    elif kind == "polytope":
        A = rng.standard_normal((2, size))
        b = A @ centre + 0.01
        priors = fp.PriorSet.polytope(
            np.vstack([A, np.eye(size), -np.eye(size)]), [*b, *upper, *-lower]
        )
    else:
        A = signs(size)
        b = A @ centre + radius
        lower, upper = np.zeros(size), np.ones(size)
        priors = fp.PriorSet.total_variation(centre, radius)
    row, channel = seed % 2, fp.Channel(matrix, sizes)
    inside = np.arange(size) // math.prod(sizes[row + 1 :]) % sizes[row] == 0
    leaks = fp.conditional_pml(channel, priors, {row: 0})
    assert leaks.tolist() == fp.conditional_pml(channel, priors, inside).tolist()
    for y in range(matrix.shape[1]):
        column = np.where(inside, matrix[:, y], 0.0)
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = 0.5 * (low + high)
            program = linprog(
                column - middle * inside,
                A_ub=A,
                b_ub=b,
                A_eq=np.ones((1, size)),
                b_eq=[1.0],
                bounds=np.stack([lower, upper], axis=1),
            )
            low, high = (middle, high) if program.fun >= 0 else (low, middle)
        if matrix[inside, y].max() > 0:
            truth = math.log(matrix[inside, y].max() / low) if low > 1e-9 else math.inf
            assert leaks[y] >= truth - 1e-7
            assert leaks[y] <= truth + 1e-6 or matrix[inside, y].min() < 1e-6


def test_given_over_large_sets():
    """All laws, and all products: any two databases of the event. No rows given: the level."""
    _, matrix = random_case(7, (2, 3))
    channel = fp.Channel(matrix, [2, 3])
    inside = matrix.reshape(2, 3, -1)[1]
    truth = np.log(inside.max(axis=0) / inside.min(axis=0))
    for priors in (fp.PriorSet.all(6), fp.PriorSet.product([2, 3])):
        assert fp.conditional_pml(channel, priors, {0: 1}) == pytest.approx(truth)
        assert fp.conditional_pml(channel, priors, {0: 1}, y=1) == pytest.approx(truth[1])
    ball = fp.PriorSet.kl_ball(np.full(6, 1 / 6), 0.1)
    assert fp.conditional_pml(channel, ball, {}).max() == pytest.approx(
        fp.pml_level(channel, ball), rel=1e-7
    )
    known = fp.conditional_pml(channel, ball, {0: 0, 1: 2})
    assert known == pytest.approx(np.zeros(3), abs=1e-6)
    # The event may vanish: then nothing is known inside it.
    wide = fp.PriorSet.total_variation(np.full(6, 1 / 6), 0.9)
    assert fp.conditional_pml(channel, wide, {0: 1}) == pytest.approx(truth)


def test_sets_that_are_refused():
    channel = fp.HammingChannel(2, 2, 1.0)
    for priors, given_, word in (
        (fp.PriorSet.bernoulli_interval(2, 0.1), {0: 1}, "if an event is given"),
        (fp.PriorSet.all(4), [False] * 4, "no database"),
        (fp.PriorSet.all(4), [True] * 3, "boolean array"),
        (fp.PriorSet.all(4), {0: 2}, "for record 0"),
        (fp.PriorSet.polytope([[0, 0, 1, 1]], [0.0]), {0: 1}, "none allows it"),
        (fp.PriorSet.all(5), {0: 1}, "got 5"),
    ):
        with pytest.raises(fp.InvalidInput, match=word):
            fp.conditional_pml(channel, priors, given_)
    huge = fp.HammingChannel(200, 2, 1.0)
    for call in (
        lambda: fp.conditional_pml(huge, fp.PriorSet.all(2**200), {0: 1}),
        lambda: fp.row_pml(huge, fp.PriorSet.all(2**200), 0),
    ):
        with pytest.raises(fp.TooLarge):
            call()
    assert fp.pml_level(huge, fp.PriorSet.all(2**200), row=0) == pytest.approx(200.0)


@pytest.mark.parametrize("low", [2.0**-45, 2.0**-70, 1e-300])
def test_the_only_record_leaks_as_much_as_the_database(low):
    # Above 30 nats the masses of a box are not known well enough: the record was 0.4 nats loose.
    channel = fp.Channel([[1.0 - 2.0**-42, 2.0**-42], [low, 1.0 - low]])
    box = fp.PriorSet.box([0.0, 0.0], [1.0, 1.0])
    whole = fp.pml_level(channel, box)
    assert whole >= float(-mpmath.log(mpmath.mpf(low) / (1 - mpmath.mpf(2) ** -42)))
    assert whole == pytest.approx(-np.log(low), rel=1e-12)
    assert fp.pml_level(channel, box, 0) == pytest.approx(whole, rel=1e-12)
    assert fp.row_pml(channel, box, 0).max() == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("epsilon", [702.0, 720.0, 745.0])
@pytest.mark.parametrize("n", [1, 2])
def test_bits_with_one_probability_leak_a_finite_amount(epsilon, n):
    # Quotients of probabilities overflow above 709 nats: the level was infinite.
    matrix = fp.HammingChannel(n, 2, epsilon).matrix()
    channel = fp.Channel(matrix, fp.Space.hamming(n, 2))
    level = fp.pml_level(channel, fp.PriorSet.iid_interval(n, 0.0))
    assert level == pytest.approx(fp.leakage_capacity(channel), rel=1e-12)
    assert fp.pml_level(channel, fp.PriorSet.iid_interval(n, 0.25)) < 2.0 * n


CENTRE = [0.4375, 0.4375, 0.125]


@pytest.mark.parametrize(
    "priors",
    [
        fp.PriorSet.total_variation(CENTRE, 0.5),
        fp.PriorSet.kl_ball(CENTRE, 0.6),
        fp.PriorSet.hull([CENTRE, [0.25, 0.0, 0.75]]),
    ],
)
def test_the_only_record_of_a_convex_set_leaks_as_much_as_the_database(priors):
    # The smallest probability of an output was known up to 1e-15 only: 5e-4 loose at 25 nats.
    channel = fp.Channel([[1 - 1.5e-12, 1.5e-12, 0.0], [0.375, 0.125, 0.5], [0, 1e-12, 1 - 1e-12]])
    whole = fp.pml_level(channel, priors)
    assert whole > 25.0
    assert fp.pml_level(channel, priors, 0) == pytest.approx(whole, abs=2e-6)
    assert fp.row_pml(channel, priors, 0).max() == pytest.approx(whole, abs=2e-6)
