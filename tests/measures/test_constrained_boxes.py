"""Boxes of priors in which information plus entropy is concave: no prior is above their bounds."""

import math

import numpy as np
import pytest
from numba import njit
from scipy.optimize import linprog

import fastpriv as fp
from fastpriv._matrices.searches.entropy import Constrained, Search
from fastpriv._matrices.searches.entropy_parts import Boxes
from fastpriv.kernels import majorant as kernel
from fastpriv.kernels.truncated import truncated_gibbs
from oracles import balance as ob

#: Sizes of the rows, outputs, sharpness, share of the largest entropy, seed.
CASES = [
    ((2, 2, 2), 4, 20.0, 0.9, 0),
    ((2, 2, 2), 6, 0.5, 0.9, 1),
    ((2, 2, 2), 3, 0.2, 0.6, 2),
    ((3, 3), 5, 5.0, 0.8, 3),
    ((4, 2), 4, 0.5, 0.7, 4),
]


def best_of_first_row(sizes, outputs, weight, share, seed):
    """The first row, with the best law that ascents find, and a least entropy."""
    size = math.prod(sizes)
    W = np.random.default_rng([seed, outputs]).dirichlet(np.full(outputs, weight), size)
    if weight < 1.0:
        W = np.where(W < 0.02, 0.0, W)
        W /= W.sum(axis=1, keepdims=True)
    W[1] = W[0]  # an input that stands for two databases, if they have the same value
    individual = Constrained.of_matrix(W, sizes).individuals[0]
    b = share * math.log(size)
    Search([individual], b, 1e-3, math.inf, 0.0).run()
    return individual, b


def laws_in_a_box(individual, b, centre, low, high, rng, count):
    """Laws of an entropy of at least b, with all probabilities in their ranges."""
    steps = rng.normal(size=(count, len(centre))) * 10.0 ** rng.uniform(-3.0, 0.5, (count, 1))
    far = np.maximum(centre * np.exp(steps), rng.dirichlet(np.full(len(centre), 0.5), count) * 0.2)
    laws = far / far.sum(axis=1, keepdims=True)
    laws = np.vstack([centre, laws, np.clip(laws, low, high)])
    laws[-count:] /= laws[-count:].sum(axis=1, keepdims=True)
    inside = ((low <= laws) & (laws <= high)).all(axis=1)
    return np.array([p for p in laws[inside] if individual.entropy(p) >= b])


@pytest.mark.slow(but=["case2"])
@pytest.mark.parametrize("case", CASES)
def test_no_prior_in_a_box_tells_more_than_its_bound(case):
    individual, b = best_of_first_row(*case)
    boxes, rng = Boxes(individual, b), np.random.default_rng(case[-1])
    best, law = individual.best
    law = law / law.sum()
    looked_at, tight = 0, math.inf
    for width in (0.003, 0.02, 0.1, 0.3, 1.0):
        for centre in (law, 0.7 * law + 0.3 * individual.even, individual.even):
            low = np.maximum(centre - width * rng.uniform(0.2, 1.0, len(law)), 0.0)
            high = np.minimum(centre + width * rng.uniform(0.2, 1.0, len(law)), boxes.high)
            laws = laws_in_a_box(individual, b, centre, low, high, rng, 400)
            told = np.array([individual.information(p)[0] for p in laws])
            box = boxes.box(low, high, boxes.least, boxes.most, boxes.t, centre, -math.inf)
            assert told.max() <= box.bound
            looked_at += len(laws)
            if centre is law:
                tight = min(tight, box.bound / best)
            for share in (0.5, 0.9, 0.999):  # laws above a floor are kept
                floor = share * told.max()
                box = boxes.box(low, high, boxes.least, boxes.most, boxes.t, centre, floor)
                assert box.bound >= told.max()
                kept = laws[told > floor]
                assert (kept >= box.low - 1e-15).all()
                assert (kept <= box.high + 1e-15).all()
                parts = np.array([[own.sum() for own in individual.split(p)] for p in kept])
                assert (parts >= box.least - 1e-15).all()
                assert (parts <= box.most + 1e-15).all()
    assert looked_at > 2000
    assert tight < 1.05


@pytest.mark.parametrize("case", CASES)
def test_boxes_of_a_search_keep_what_is_above_a_poor_floor(case):
    """A law that the search does not know stays in one of its boxes, whatever is cut off."""
    individual, b = best_of_first_row(*case)
    best, law = individual.best
    law = law / law.sum()
    for share in (0.3, 0.8, 0.99):
        boxes = Boxes(individual, b)
        boxes.t *= 3.0
        heap = [boxes.root(share * best)]
        for _ in range(60):
            heap.sort(key=lambda part: -part.bound)
            box = heap.pop(0)
            heap += [part for part in box.children(share * best) if part.bound > share * best]
            having = [part for part in heap if (part.low <= law).all() and (law <= part.high).all()]
            assert any(part.bound >= best for part in having)


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "outputs"), [((2, 2, 2, 2), 16), ((2, 2, 2), 12)])
def test_flat_channels_with_many_outputs(sizes, outputs):
    """Cells of posteriors left these twice as wide as they are high."""
    W = np.random.default_rng(1).dirichlet(np.full(outputs, 20.0), math.prod(sizes))
    b = 0.9 * math.log(len(W))
    found = fp.constrained_capacity(fp.Channel(W, sizes), b, time_limit=3600.0)
    assert found.width <= 1e-3 * found.lower
    rng = np.random.default_rng(3)
    if len(W) == 8:  # ascents of the oracle take long
        most = ob.ascended_information(W, sizes, b, 1, rng)
        assert 0.95 * found.lower <= most <= found.upper
    priors = ob.random_priors(rng, W, 50_000)
    told = ob.informations(W, sizes, priors).max(axis=0)
    assert told[ob.entropies(priors) >= b].max() <= found.upper


def ranges(rng, inputs, edges):
    """A law, ranges around it, and ranges of the two slices."""
    law = rng.dirichlet(np.full(inputs, 0.7))
    low, high = law * rng.uniform(0.0, 1.0, inputs), np.minimum(law * rng.uniform(1.0, 9.0), 1.0)
    own = np.add.reduceat(law, edges[:-1])
    return law, low, high, 0.9 * own, np.minimum(own * 1.2, 1.0)


@njit
def gibbs(L, logs, low, high, least, most, edges, t, p, push):
    return truncated_gibbs(L, logs, low, high, least, most, edges, t, p, push, np.empty(p.size))


@pytest.mark.slow  # compiles a kernel by itself
@pytest.mark.parametrize("t", [0.02, 0.3, 5.0])
def test_laws_of_largest_score_within_ranges(t):
    rng, edges = np.random.default_rng(5), np.array([0, 3, 7])
    for _ in range(50):
        law, low, high, least, most = ranges(rng, 7, edges)
        L, logs = rng.normal(size=7), np.log(rng.integers(1, 4, 7))
        p, push = np.empty(7), np.empty(7)
        value, entropy, _ = gibbs(L.copy(), logs, low, high, least, most, edges, t, p, push)
        own = np.add.reduceat(p, edges[:-1])
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        assert ((p >= low) & (p <= high)).all()
        assert ((own >= least - 1e-12) & (own <= most + 1e-12)).all()
        assert entropy == pytest.approx(p @ (logs - np.log(p)), rel=1e-12)
        assert value == pytest.approx(L @ p + t * entropy, rel=1e-9)
        other = law @ L + t * law @ (logs - np.log(law))
        cost = t * law @ np.log(law / p) + push @ np.abs(law - p)
        assert other <= value - cost + 1e-12


@njit
def likely(y, first, last, low, high, least, most, W, order):
    return kernel.least_likely(
        y, first, last, low, high, least, most, W, order
    ), kernel.most_likely(y, low, high, W, order)


@pytest.mark.slow
def test_ranges_of_output_laws_by_linear_programs():
    rng, edges = np.random.default_rng(6), np.array([0, 3, 7])
    for _ in range(20):
        _, low, high, least, most = ranges(rng, 7, edges)
        W = rng.dirichlet(np.full(3, 0.6), 7)
        order = np.ascontiguousarray(np.argsort(W, axis=0).T)
        for y in range(3):
            fewest, largest = likely(y, 3, 7, low, high, least[1], most[1], W, order)
            # With scale s = 1/P(a), the laws given the slice are those with s low <= pi <= s high.
            bounds = np.zeros(5)
            bounds[:4] = W[3:, y]
            rows = np.vstack(
                [np.column_stack([np.eye(4), -high[3:]]), np.column_stack([-np.eye(4), low[3:]])]
            )
            limits = [(0.0, None)] * 4 + [(1.0 / most[1], 1.0 / least[1])]
            given = linprog(bounds, rows, np.zeros(8), [[1, 1, 1, 1, 0]], [1.0], limits)
            assert fewest == pytest.approx(given.fun, abs=1e-9)
            given = linprog(-W[:, y], None, None, np.ones((1, 7)), [1.0], np.stack([low, high]).T)
            assert largest == pytest.approx(-given.fun, abs=1e-9)


@njit
def majorant(low, high, least, most, W, edges, order, V, q):
    S, A = np.empty(V.shape), np.empty((low.size, low.size))
    kernel.majorant(low, high, least, most, W, edges, order, V, q, S, A)
    return A


@pytest.mark.slow
def test_quadratic_functions_are_above_divergences():
    rng, edges = np.random.default_rng(7), np.array([0, 3, 7])
    closest = math.inf
    for _ in range(50):
        law, low, high, least, most = ranges(rng, 7, edges)
        W = rng.dirichlet(np.full(4, 3.0), 7)
        order = np.ascontiguousarray(np.argsort(W, axis=0).T)
        near = law * np.exp(0.1 * rng.normal(size=7))
        p = near / near.sum()
        V = np.array([own @ rows / own.sum() for own, rows in parts(p, W)])
        A = majorant(low, high, least, most, W, edges, order, V, p @ W)
        told = sum(
            own.sum() * divergence(own @ rows / own.sum(), V[a])
            for a, (own, rows) in enumerate(parts(law, W))
        )
        exact = told - divergence(law @ W, p @ W)
        assert exact <= 0.5 * law @ A @ law
        closest = min(closest, 0.5 * law @ A @ law / exact)
    assert closest < 1.6


def parts(p, W):
    """The laws and the output laws of two slices."""
    return [(p[:3], W[:3]), (p[3:], W[3:])]


def divergence(v, q):
    return float(v @ np.log(v / q))


@njit
def bend(z):
    return kernel.bend(z)


def test_ratio_of_divergence_and_square():
    z = np.concatenate([np.linspace(-1.0, 5.0, 400), [-1e-3, -9e-4, 9e-4, 1e-3, 1e6]])
    value = np.array([bend(each) for each in np.sort(z)])
    assert value[0] == 2.0
    assert (np.diff(value) <= 1e-12).all()
    exact = [2.0 * ((1.0 + x) * math.log1p(x) - x) / x**2 for x in (-0.5, 0.5, 3.0)]
    assert [bend(x) for x in (-0.5, 0.5, 3.0)] == pytest.approx(exact, rel=1e-12)
