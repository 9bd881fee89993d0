"""Leakage over bits with a common chance, boxes of rows, balls and entropies."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from pointwise_cases import CHANNELS, SEEDS, random_case

FINE = np.linspace(0.0, 1.0, 401)


def row_leakage(matrix, pmf, own):
    """Largest leakage of an output about whether a database is in a set, from its laws."""
    values = [part for part in (own, ~own) if pmf[part].sum() > 0]
    given_each = [pmf[part] @ matrix[part] / pmf[part].sum() for part in values]
    law = pmf @ matrix
    return max(float((row[law > 0] / law[law > 0]).max()) for row in given_each)


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=40)
@given(SEEDS, st.integers(1, 4), CHANNELS, st.sampled_from([0.05, 0.3, 0.5]))
def test_a_common_chance_by_a_grid(seed, n, zeros, c):
    """The certified maximum over p is that of a fine grid, from above; a product as its matrix."""
    _, matrix = random_case(seed, (2,) * n, zeros=zeros)
    channel, priors = fp.Channel(matrix, [2] * n), fp.PriorSet.iid_interval(n, c)
    laws = [fp.Product.iid([1 - p, p], n) for p in c + (1 - 2 * c) * FINE[::8]]
    for row in (None, *range(n)):
        grid = max(fp.pml_level(channel, law, row=row) for law in laws)
        level = fp.pml_level(channel, priors, row=row)
        assert grid - 1e-11 <= level <= grid + 0.05
        assert level <= fp.pml_level(channel, fp.PriorSet.bernoulli_interval(n, c), row=row) + 1e-9
    rows = fp.ProductChannel([random_case(seed + i, (2,), zeros=zeros)[1] for i in range(n)])
    plain = fp.Channel(rows.matrix(), [2] * n)
    for row in (None, n - 1):
        one, other = (fp.pml_level(ch, priors, row=row) for ch in (rows, plain))
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12)


def test_a_common_chance_of_a_count():
    """A count agrees with its matrix, Proposition 4.6 is met, and c = 0 is a limit."""
    n = 6
    count = fp.mechanisms.GeometricCount(n, 0.7).channel()
    plain = fp.Channel(count.matrix(), [2] * n)
    for c in (0.0, 0.2):
        priors = fp.PriorSet.iid_interval(n, c)
        for row in (None, 2):
            levels = [fp.pml_level(ch, priors, row=row) for ch in (count, plain)]
            assert levels[0] == pytest.approx(levels[1], rel=1e-9)
    bits, nothing = fp.HammingChannel(n, 2, 0.7), fp.PriorSet.iid_interval(n, 0.0)
    dense = fp.Channel(bits.matrix(), bits.space)
    assert fp.pml_level(bits, nothing) == pytest.approx(6 * 0.7)
    assert fp.pml_level(dense, nothing) == pytest.approx(6 * 0.7)
    assert fp.pml_level(bits, nothing, row=0) == pytest.approx(0.7)
    # A query for which a common chance inside the interval is worst: are two bits equal?
    equal = fp.Channel([[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]], [2, 2])
    middle = fp.pml_level(equal, fp.PriorSet.iid_interval(2, 0.1))
    ends = fp.pml_level(equal, fp.Product.iid([0.9, 0.1], 2))
    assert middle == pytest.approx(max(ends, math.log(0.9 / 0.5)), abs=1e-9)


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=25)
@given(SEEDS, st.sampled_from([(2, 2), (2, 3), (3, 2)]), CHANNELS)
def test_rows_over_a_box_by_search(seed, sizes, zeros):
    """No prior of the box leaks more about a row, and a local search comes close."""
    rng, matrix = random_case(seed, sizes, zeros=zeros)
    channel, size = fp.Channel(matrix, sizes), math.prod(sizes)
    centre = rng.dirichlet(np.ones(size))
    lower = centre * rng.random(size) * (rng.random(size) < 0.7)
    upper = np.minimum(1.0, centre + rng.random(size) * 0.4)
    box = fp.PriorSet.box(lower, upper)
    index = np.arange(size)
    for i in range(len(sizes)):
        level = fp.pml_level(channel, box, row=i)
        assert level <= fp.pml_level(channel, box) + 1e-9
        values = index // int(np.prod(sizes[i + 1 :])) % sizes[i]
        best = 0.0
        for y in range(matrix.shape[1]):
            for v in range(sizes[i]):
                best = max(best, greedy_share(matrix[:, y], values == v, lower, upper))
        # Where the grid passes 15 nats the value may vanish with the output: a limit of infinity.
        assert math.log(best) - 1e-12 <= level
        assert min(level, 15.0) <= math.log(best) + 2e-3


def greedy_share(column, own, lower, upper):
    """Largest P(y | own)/P(y) over the chance of ``own``, greedily at each: a grid, then finer."""
    room, free = upper - lower, 1.0 - lower.sum()
    low, high = max(0.0, free - room[~own].sum()), min(free, room[own].sum())

    def share(extra):
        p = lower.copy()
        for part, order, left in (
            (own, np.argsort(-column), extra),
            (~own, np.argsort(column), free - extra),
        ):
            for x in order:
                if part[x]:
                    step = min(left, room[x])
                    p[x] += step
                    left -= step
        return (p[own] @ column[own]) / p[own].sum() / (p @ column) if p @ column > 0 else 1.0

    best = 1.0
    for _ in range(3):
        grid = low + (high - low) * np.linspace(1e-9, 1.0, 33)
        shares = [share(extra) for extra in grid]
        at = int(np.argmax(shares))
        best = max(best, shares[at])
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, 32)]
    return best


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=30)
@given(SEEDS, st.sampled_from([(1, 3), (2, 2), (3, 2), (2, 3)]), CHANNELS)
def test_boxes_of_independent_rows(seed, shape, zeros):
    """Laws of the box leak no more, corners come close, bits are bernoulli_interval."""
    n, m = shape
    rng, matrix = random_case(seed, (m,) * n, zeros=zeros)
    channel = fp.Channel(matrix, [m] * n)
    centre = rng.dirichlet(np.ones(m))
    lower, upper = 0.5 * centre, np.minimum(1.0, centre + 0.3)
    priors, box = fp.PriorSet.row_box(lower, upper, n), fp.PriorSet.box(lower, upper)
    levels = {row: fp.pml_level(channel, priors, row=row) for row in (None, *range(n))}
    for _ in range(60):
        laws = []
        for _ in range(n):
            order, p, left = rng.permutation(m), lower.copy(), 1.0 - lower.sum()
            for x in order:
                step = min(left, upper[x] - lower[x])
                p[x], left = p[x] + step, left - step
            laws.append(p)
        for row, level in levels.items():
            reached = fp.pml_level(channel, fp.Product(laws), row=row)
            assert reached <= level + 1e-12
    if n == 1:
        assert levels[None] == pytest.approx(fp.pml_level(matrix, box), abs=1e-12)
    if m == 2:
        bits = fp.PriorSet.row_box([0.2, 0.2], [0.8, 0.8], n)
        same = fp.PriorSet.bernoulli_interval(n, 0.2)
        for row in (None, *range(n)):
            one, other = (fp.pml_level(channel, s, row=row) for s in (bits, same))
            assert one == pytest.approx(other, abs=1e-12)
    rows = fp.HammingChannel(n, m, 0.8)
    plain = fp.Channel(rows.matrix(), rows.space)
    for row in (None, 0):
        one, other = (fp.pml_level(ch, priors, row=row) for ch in (rows, plain))
        assert one == pytest.approx(other, abs=1e-12)


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=25)
@given(SEEDS, st.integers(2, 5), st.sampled_from([0.0, 0.02, 0.3]))
def test_balls(seed, size, radius):
    """The level is that of the least chance of an output, by a general optimiser."""
    rng, matrix = random_case(seed, (size,))
    centre = rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size
    sets = {
        "total_variation": lambda p: radius - 0.5 * np.abs(p - centre).sum(),
        "kl_ball": lambda p: radius - p @ np.log(np.maximum(p, 1e-300) / centre),
    }
    for name, slack in sets.items():
        level = fp.pml_level(matrix, getattr(fp.PriorSet, name)(centre, radius))
        for _ in range(50 if radius else 0):  # laws on the border, along random directions
            p = border(slack, centre, rng.dirichlet(np.full(size, 0.3)))
            assert fp.pml_level(matrix, p) <= level + 1e-9
        if radius == 0.0:
            assert level == pytest.approx(fp.pml_level(matrix, centre), abs=1e-6)
    if radius > 0.0:
        ball = fp.PriorSet.kl_ball(centre, radius)
        least = [least_mean(matrix[:, y], centre, radius) for y in range(matrix.shape[1])]
        truth = math.log(float((matrix.max(axis=0) / least).max()))
        assert fp.pml_level(matrix, ball) == pytest.approx(truth, rel=1e-7)


def border(slack, centre, other):
    """Return the last law of the set on the way from its centre to another law."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        inside = slack(centre + middle * (other - centre)) >= 0
        low, high = (middle, high) if inside else (low, middle)
    return centre + low * (other - centre)


def least_mean(column, centre, radius):
    """Least mean under D(p || centre) <= radius: tilted laws, by bisection of the divergence."""

    def tilted(t):
        p = centre * np.exp(-t * (column - column.min()))
        return p / p.sum()

    low, high = 0.0, 1e4
    for _ in range(200):
        middle = 0.5 * (low + high)
        p = tilted(middle)
        inside = p @ np.log(np.maximum(p, 1e-300) / centre) <= radius
        low, high = (middle, high) if inside else (low, middle)
    return float(column @ tilted(low))


def test_variation_ball_in_closed_form():
    """A bit: the ball is an interval."""
    W, q = [[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]
    level = fp.pml_level(W, fp.PriorSet.total_variation(q, 0.1))
    assert level == pytest.approx(fp.pml_level(W, fp.PriorSet.box([0.4, 0.4], [0.6, 0.6])))
    # A database that the centre rules out becomes possible.
    assert fp.pml_level(W, fp.PriorSet.total_variation([1.0, 0.0], 0.0)) < 1e-12
    assert fp.pml_level(W, fp.PriorSet.total_variation([1.0, 0.0], 0.1)) == pytest.approx(
        math.log(3.0)
    )


def test_entropies():
    """Nothing known is all priors, full entropy is the uniform law; a min-entropy is a box."""
    W = random_case(3, (4,))[1]
    anything, uniform = fp.leakage_capacity(W), fp.pml_level(W, np.full(4, 0.25))
    for make in (fp.PriorSet.entropy, fp.PriorSet.min_entropy):
        assert fp.pml_level(W, make(4, 0.0)) == pytest.approx(anything, rel=1e-6)
        assert fp.pml_level(W, make(4, math.log(4))) == pytest.approx(uniform, abs=1e-5)
        levels = [fp.pml_level(W, make(4, b)) for b in (0.2, 0.6, 1.0, 1.3)]
        assert levels == sorted(levels, reverse=True)
        with pytest.raises(fp.Infeasible, match="entropy"):
            make(4, 1.5)
        with pytest.raises(fp.TooLarge):
            make(2**60, 1.0)
    assert fp.pml_level(W, fp.PriorSet.min_entropy(4, 1.0)) <= fp.pml_level(
        W, fp.PriorSet.entropy(4, 1.0)
    )


def test_sizes_and_rows_that_are_refused():
    """In words, and at once."""
    with pytest.raises(fp.InvalidInput, match="no distribution lies between"):
        fp.PriorSet.row_box([0.6, 0.6], [0.7, 0.7], 3)
    with pytest.raises(fp.TooLarge, match="corners"):
        fp.pml_level(
            fp.QueryChannel.histogram(20, 3, np.full((231, 2), 0.5)),
            fp.PriorSet.row_box([0.1] * 3, [0.9] * 3, 20),
        )
    with pytest.raises(fp.InvalidInput, match="radius"):
        fp.PriorSet.kl_ball([0.5, 0.5], -1.0)
