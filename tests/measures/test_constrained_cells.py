"""Cells of posteriors: curvature below the chords, laws within reach of a floor, single slices."""

import math

import numpy as np
import pytest
from numba import njit

import fastpriv as fp
from fastpriv._matrices.searches.entropy import Constrained, Search
from fastpriv._matrices.searches.entropy_parts import Bit
from fastpriv.kernels.curvature import curvature_gain
from fastpriv.kernels.reach import narrow_by_reach
from oracles import balance as ob


def best_of_first_bit(outputs, weight, share, seed):
    """The first bit of three, with the best law that ascents find, and a least entropy."""
    W = np.random.default_rng([seed, outputs]).dirichlet(np.full(outputs, weight), 8)
    individual = Constrained.of_matrix(W, (2, 2, 2)).individuals[0]
    b = share * math.log(8.0)
    Search([individual], b, 1e-3, math.inf, 0.0).run()
    return individual, b


def posteriors(bit, laws):
    """Chance of the first value given each output, and before, for many laws."""
    joint = laws[:, : bit.edges[1]] @ bit.W[: bit.edges[1]]
    return joint / (laws @ bit.W)


def neighbours(individual, law, b, count, rng):
    """Laws around one, of an entropy of at least b, from very near to far."""
    far = rng.dirichlet(np.full(len(law), 0.5), count)
    share = 10.0 ** rng.uniform(-3.0, 0.0, (count, 1))
    tilted = law * np.exp(rng.normal(size=far.shape) * 10.0 ** rng.uniform(-2.0, 0.5, (count, 1)))
    laws = np.vstack([law, (1.0 - share) * law + share * far, tilted / tilted.sum(1)[:, None]])
    return np.array([p for p in laws if individual.entropy(p) >= b])


CASES = [(4, 1.0, 0.7, 0), (4, 20.0, 0.7, 1), (6, 0.5, 0.9, 2), (6, 20.0, 0.9, 3), (3, 0.3, 0.5, 4)]


@pytest.mark.slow(but=["4-1.0-0.7-0", "4-20.0-0.7-1", "6-0.5-0.9-2"])
@pytest.mark.parametrize(("outputs", "weight", "share", "seed"), CASES)
def test_curvature_is_below_the_chords_by_what_no_prior_can_avoid(outputs, weight, share, seed):
    individual, b = best_of_first_bit(outputs, weight, share, seed)
    rng, bit = np.random.default_rng(seed), Bit(individual, b)
    best, law = individual.best
    laws = neighbours(individual, law, b, 4_000, rng)
    Q, told = posteriors(bit, laws), np.array([individual.information(p)[0] for p in laws])
    assert len(laws) > 500
    curved = False
    for width in (0.01, 0.03, 0.1, 0.3, 0.7):
        low = np.maximum(Q[0] - width * rng.uniform(0.2, 0.8, Q.shape[1]), bit.ranges[0])
        high = np.minimum(low + width, bit.ranges[1])
        inside = ((low <= Q) & (high >= Q)).all(axis=1)
        assert inside[0]
        cell = bit.cell(low, high, bit.start, -math.inf, 1e-7)
        assert told[inside].max() <= cell.bound
        # f'' >= 4, so that the bound of the chords alone is at least best + lift.
        above = 2.0 * (Q[0] - cell.low) * (cell.high - Q[0])
        curved |= cell.bound < best + float(law @ bit.W[:, :-1] @ above[:-1])
    assert curved or weight < 0.5


@pytest.mark.parametrize(("outputs", "weight", "share", "seed"), CASES)
def test_ranges_keep_every_prior_above_the_floor(outputs, weight, share, seed):
    individual, b = best_of_first_bit(outputs, weight, share, seed)
    bit = Bit(individual, b)
    best, law = individual.best
    laws = neighbours(individual, law, b, 2_000, np.random.default_rng(seed))
    Q, told = posteriors(bit, laws), np.array([individual.information(p)[0] for p in laws])
    narrowed = 0
    for width in (0.02, 0.1, 0.4):
        low, high = np.maximum(Q[0] - width, 0.0), np.minimum(Q[0] + width, 1.0)
        inside = ((low <= Q) & (high >= Q)).all(axis=1)
        open_cell = bit.cell(low, high, bit.start, -math.inf, 1e-7)
        for floor in (0.5 * best, 0.9 * best, 0.999 * best):
            cell = bit.cell(low, high, bit.start, floor, 1e-7)
            assert cell.bound >= max(floor, told[inside].max())
            above = inside & (told > floor)
            assert above[0]
            assert (Q[above] >= cell.low - 1e-12).all()
            assert (Q[above] <= cell.high + 1e-12).all()
            was, now = open_cell.high - open_cell.low, cell.high - cell.low
            narrowed += bool((now < 0.9 * was).any())
    assert narrowed >= 2 or weight > 1.0


def test_bounds_are_never_below_the_floor():
    """Priors below the floor may be left out of ranges, so that no bound may be below it."""
    individual, b = best_of_first_bit(4, 1.0, 0.7, 0)
    bit = Bit(individual, b)
    nowhere = np.full(bit.W.shape[1], 1e-3)
    assert bit.cell(nowhere, nowhere + 1e-3, bit.start, 0.1, 1e-7).bound == 0.1


@pytest.mark.parametrize("t", [0.02, 0.3])
def test_multiplier_of_a_stationary_law(t):
    individual, _ = best_of_first_bit(4, 1.0, 0.7, 5)
    where = np.repeat([0, 1], np.diff(individual.edges))
    start = np.random.default_rng(0).dirichlet(np.ones(8))
    law = ob.stationary_prior(individual.W, where, t, start)
    assert individual.multiplier(law) == pytest.approx(t, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "outputs", "weight"), [((2, 2, 2), 6, 20.0), ((4, 4), 4, 0.5)])
def test_searches_that_know_a_poor_prior_only(sizes, outputs, weight, monkeypatch):
    """Upper ends hold for the best prior also if the lower end is far below it."""
    size = math.prod(sizes)
    W = np.random.default_rng(1).dirichlet(np.full(outputs, weight), size)
    b = 0.8 * math.log(size)
    most = ob.ascended_information(W, sizes, b, 2, np.random.default_rng(3))
    found = fp.constrained_capacity(fp.Channel(W, sizes), b, gap=1e-2, time_limit=3600.0)
    assert found.width <= 1e-2 * found.lower
    assert 0.9 * found.lower <= most <= found.upper
    monkeypatch.setattr(Search, "climb", lambda self, individual, p: None)
    search = Search(Constrained.of_matrix(W, sizes).individuals, b, 1e-3, math.inf, None)
    search.meter.limit = 2e8
    search.lower = 0.7 * found.lower
    assert search.bound() >= most


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.7, 0.9])
def test_two_rows_of_four_values(share):
    """Every slice by itself tells most at the best law, and has three dimensions."""
    W = np.random.default_rng(1).dirichlet(np.full(4, 0.5), 16)
    b = share * math.log(16.0)
    found = fp.constrained_capacity(fp.Channel(W, [4, 4]), b, time_limit=3600.0)
    assert found.width <= 1e-3 * found.lower
    most = ob.ascended_information(W, (4, 4), b, 2, np.random.default_rng(3))
    assert 0.95 * found.lower <= most <= found.upper


@njit
def gain(low, high, look, W, first, p, t):
    return curvature_gain(low, high, look, W, first, p, t)


@njit
def keeps_any(low, high, W, first, p, t, gap):
    return narrow_by_reach(low, high, W, first, p, t, gap)


def law_of_a_bit(seed, weight):
    """Rows with a last column of ones, which of two values each has, and a law of the rows."""
    rng = np.random.default_rng([seed, 77])
    W = np.column_stack([rng.dirichlet(np.full(4, weight), 8), np.ones(8)])
    return rng, W, np.repeat([0, 1], [3, 5]), rng.dirichlet(np.full(8, 2.0))


@pytest.mark.slow  # compiles a kernel by itself
@pytest.mark.parametrize("t", [1e-2, 0.1, 1.0, 10.0])
@pytest.mark.parametrize(("seed", "weight"), [(0, 0.5), (1, 2.0), (2, 20.0)])
def test_ranges_of_laws_of_a_small_cost_are_kept_and_no_more(seed, weight, t):
    """The laws that change a posterior most at a given cost stay within the ranges, just."""
    _, W, where, p = law_of_a_bit(seed, weight)
    _, (Q,) = ob.joint_posteriors(W, where, p[None])
    for gap in (1e-8, 1e-5, 1e-3):
        low, high = np.zeros(5), np.ones(5)
        assert keeps_any(low, high, W, 3, p, t, gap)
        for y in range(5):
            for sign, end in ((1.0, high[y]), (-1.0, low[y])):
                turns = np.linspace(end, Q[y], 5)[:, None] - (where == 0)
                scales = t * np.geomspace(1e-6, 30.0, 2000)
                scores = np.concatenate([-sign * s * W[:, y] * turns for s in scales])
                laws = ob.cheapest_laws(p, where, t, scores)
                cheap = ob.relative_cost(laws, p, where, t) < gap
                moved = sign * (ob.joint_posteriors(W, where, laws[cheap])[1][:, y] - Q[y])
                room = sign * (end - Q[y])
                assert moved.max() <= room
                assert moved.max() >= 0.6 * room or end in (0.0, 1.0)


@pytest.mark.slow  # compiles a kernel by itself
@pytest.mark.parametrize("t", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("seed", "weight"), [(0, 0.5), (1, 2.0), (2, 20.0)])
def test_no_law_avoids_the_gain_of_curvature(seed, weight, t):
    """Cost, plus what chords are above minus the entropy of the bit, is at least the gain."""
    rng, W, where, p = law_of_a_bit(seed, weight)
    _, (Q,) = ob.joint_posteriors(W, where, p[None])
    for width in (1e-3, 1e-2, 0.1):
        low = np.maximum(Q - width * rng.uniform(0.2, 0.8, 5), 0.0)
        high = np.minimum(low + width, 1.0)
        claimed = gain(low, high, np.ones((2, 1)), W, 3, p, t)
        c = rng.uniform(-0.5, 0.5, (20_000, 5)) * (high - low)
        bend = 1.0 / (Q * (1.0 - Q)) * np.array([1.0, 1.0, 1.0, 1.0, 0.0])
        middle = 0.5 * (low + high)
        lever = (where == 0)[:, None] - middle
        scores = np.einsum("ky,y,xy,xy->kx", c, bend, W, lever) - (c**2 / 2.0 * bend) @ W.T
        laws = np.vstack([p, ob.cheapest_laws(p, where, t, scores)])
        P, posterior = ob.joint_posteriors(W, where, laws)
        inside = ((low <= posterior) & (posterior <= high)).all(axis=1)
        share = (posterior - low) / (high - low)
        chord = (1.0 - share) * told(low) + share * told(high)
        above = (P * (chord - told(posterior)))[:, :-1].sum(axis=1)
        least = (ob.relative_cost(laws, p, where, t) + above)[inside].min()
        assert claimed <= least
        assert claimed >= 0.8 * least or t < 1.0 or width > 1e-2


def told(q):
    """Minus the entropy of a bit."""
    return q * np.log(q) + (1.0 - q) * np.log1p(-q)
