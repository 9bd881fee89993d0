"""Pointwise leakage over sets of priors."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import kernel
from oracles import pointwise as op
from pointwise_cases import CHANNELS, SEEDS, SPACES, covers, random_case


@settings(deadline=None, max_examples=60)
@given(SEEDS, SPACES, CHANNELS)
def test_all_and_product_priors(seed, sizes, zeros):
    """Theorems 2.8, 4.2 and 4.5: approached by nearly constant priors, exceeded by none."""
    rng, matrix = random_case(seed, sizes, zeros=zeros)
    channel = fp.Channel(matrix, sizes)
    size, n = channel.space.size, len(sizes)
    anything, independent = fp.PriorSet.all(size), fp.PriorSet.product(sizes)
    capacity = fp.pml_level(channel, anything)
    assert capacity == fp.pml_level(channel, independent) == fp.leakage_capacity(channel)
    assert fp.pml_level(channel, anything, row="worst") == capacity
    assert fp.pml_level(channel, independent, row="worst") == fp.dp_level(channel)
    each = [fp.pml_level(channel, independent, row=i) for i in range(n)]
    assert max(each) == pytest.approx(fp.dp_level(channel), rel=1e-13)
    loose = [fp.pml_level(channel, anything, row=i) for i in range(n)]
    if max(sizes) > 1:
        assert max(loose) == pytest.approx(capacity, rel=1e-13)
    rows = [rng.dirichlet(np.full(m, 0.3)) + 1e-12 for m in sizes]
    prior = fp.Product([row / row.sum() for row in rows])
    dense = rng.dirichlet(np.full(size, 0.3)) + 1e-12
    other = fp.Dense(dense / dense.sum(), sizes)
    assert fp.pml_level(channel, prior) <= capacity
    assert fp.pml_level(channel, other) <= capacity
    for i in range(n):
        assert fp.pml_level(channel, prior, row=i) <= each[i] + 1e-13
        assert fp.pml_level(channel, other, row=i) <= loose[i] + 1e-13
    # Point masses with a little of everything come as close as one likes.
    best = 0.0
    for x in range(size):
        pmf = np.full(size, 1e-13)
        pmf[x] = 1 - 1e-13 * (size - 1)
        best = max(best, fp.pml_level(channel, fp.Dense(pmf, sizes)))
    assert best >= min(capacity, 20.0) - 1e-9


@settings(deadline=None, max_examples=60)
@given(SEEDS, st.integers(1, 6), CHANNELS)
def test_boxes_and_polytopes(seed, size, zeros):
    """Closed form and linear program agree; a law inside leaks no more, one comes close."""
    rng, matrix = random_case(seed, (size,), zeros=zeros)
    centre = rng.dirichlet(np.ones(size))
    lower = centre * rng.random(size) * (rng.random(size) < 0.8)
    upper = np.minimum(centre + rng.random(size) * 0.5, 1.0)
    level = fp.pml_level(matrix, fp.PriorSet.box(lower, upper))
    A = np.vstack([np.eye(size), -np.eye(size)])
    solved = fp.pml_level(matrix, fp.PriorSet.polytope(A, np.concatenate([upper, -lower])))
    assert solved == pytest.approx(level, rel=1e-6, abs=1e-8)
    assert fp.pml_level(matrix, centre) <= level * (1 + 1e-14)
    # Fill up from the smallest entries of one column, at 50 digits.
    truth = o.mpf(0)
    for y in range(matrix.shape[1]):
        order = np.argsort(matrix[:, y])
        free, mean = 1 - sum(map(o.num, lower)), sum(map(o.num, lower * 0))
        for x in order:
            extra = min(o.num(upper[x]) - o.num(lower[x]), max(free, 0))
            mean += (o.num(lower[x]) + extra) * o.num(matrix[x, y])
            free -= extra
        top = max(o.num(v) for v in matrix[:, y])
        if top > 0:
            truth = max(truth, o.inf if mean <= 1e-30 else o.log(top / mean))
    covers(level, [truth], 1e-11)
    assert solved >= truth - 1e-15 or solved == math.inf


def test_polytopes_that_rule_databases_out():
    matrix = [[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]]
    without = fp.PriorSet.polytope([[0.0, 0.0, 1.0]], [0.0])
    assert fp.pml_level(matrix, without) == pytest.approx(math.log(5.0), rel=1e-9)  # 0.5 / 0.1
    # Equal halves of the first two, nothing else: a single law.
    A = [[1, -1, 0], [-1, 1, 0], [0, 0, 1]]
    single = fp.PriorSet.polytope(A, [0, 0, 0])
    assert fp.pml_level(matrix, single) == pytest.approx(math.log(0.5 / 0.3), rel=1e-9)
    with pytest.raises(fp.Infeasible, match="no distribution"):
        fp.PriorSet.polytope([[1.0, 1.0]], [0.5])
    ruled_out = fp.PriorSet.polytope([[1.0, 0.0]], [0.5])
    assert fp.pml_level([[1.0, 0.0], [0.0, 1.0]], ruled_out) == math.inf


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_polytopes_are_certified(scale):
    """The reported level is above what any law of the set reaches, at any scale of A and b."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        matrix = rng.dirichlet(np.ones(4) * 0.3, 8)
        A, inside = rng.standard_normal((3, 8)), rng.dirichlet(np.ones(8))
        b = A @ inside + 0.05
        level = fp.pml_level(matrix, fp.PriorSet.polytope(A * scale, b * scale))
        for _ in range(50):
            p = 0.9 * inside + 0.1 * rng.dirichlet(np.ones(8) * 0.2)
            if np.all(A @ p <= b):
                assert fp.pml_level(matrix, p) <= level
        assert level <= fp.leakage_capacity(matrix) + 1e-8


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=40)
@given(SEEDS, st.integers(1, 3), st.sampled_from([0.5, 0.3, 0.01, 1e-9]), CHANNELS)
def test_bernoulli_intervals(seed, n, c, zeros):
    rng, matrix = random_case(seed, (2,) * n, zeros=zeros)
    channel, interval = fp.Channel(matrix, [2] * n), fp.PriorSet.bernoulli_interval(n, c)
    covers(fp.pml_level(channel, interval), [op.bernoulli_level(matrix, n, c)])
    for i in range(n):
        truth = op.bernoulli_level(matrix, n, c, i)
        covers(fp.pml_level(channel, interval, row=i), [truth])
    chances = c + (1 - 2 * c) * rng.random(n)
    inside = fp.Product([[1 - p, p] for p in chances])
    assert fp.pml_level(channel, inside) <= fp.pml_level(channel, interval) + 1e-14
    worst = fp.pml_level(channel, interval, row="worst")
    assert fp.pml_level(channel, inside, row="worst") <= worst + 1e-13


def test_bernoulli_intervals_in_structure():
    n, c = 3, 0.2
    interval = fp.PriorSet.bernoulli_interval(n, c)
    rng = np.random.default_rng(0)
    product = fp.ProductChannel([kernel(rng, 2, 3) for _ in range(n)])
    for channel in (fp.HammingChannel(n, 2, 1.3), product):
        plain = fp.Channel(channel.matrix(), [2] * n)
        for row in (None, 0, 2, "worst"):
            level = fp.pml_level(channel, interval, row=row)
            assert level == pytest.approx(fp.pml_level(plain, interval, row=row), rel=1e-13)
    exact = fp.PriorSet.bernoulli_interval(n, 0.0)
    assert fp.pml_level(product, exact) == fp.leakage_capacity(product)
    assert fp.pml_level(product, exact, row="worst") == pytest.approx(fp.dp_level(product))
    huge = fp.PriorSet.bernoulli_interval(100_000, 0.25)
    stay = 1 / (1 + math.exp(-1))
    truth = 100_000 * math.log(stay / (0.25 * stay + 0.75 * (1 - stay)))
    assert fp.pml_level(fp.HammingChannel(100_000, 2, 1.0), huge) == pytest.approx(truth)


@pytest.mark.parametrize("c", [0.0, 0.1, 0.4, 0.5])
def test_laplace_count(c):
    """Proposition 4.6, met with equality: a count with two-sided geometric noise."""
    n, scale = 4, 0.8
    space = fp.Space.hamming(n, 2)
    count = space.rows(np.arange(space.size)).sum(axis=1)
    outputs = np.arange(-60, 65)
    noise = np.exp(-np.abs(outputs - np.arange(n + 1)[:, None]) * scale)
    channel = fp.QueryChannel(count, noise / noise.sum(axis=1, keepdims=True), space)
    interval = fp.PriorSet.bernoulli_interval(n, c)
    truth = scale - math.log(1 - c + c * math.exp(scale))
    for row in (0, 3, "worst"):
        assert fp.pml_level(channel, interval, row=row) == pytest.approx(truth, rel=1e-12)
    iid = fp.Product.iid([1 - max(c, 1e-12), max(c, 1e-12)], n)
    assert fp.pml_level(channel, iid, row=1) == pytest.approx(truth, rel=1e-9)
