"""Pointwise leakage on every pairing of channel and prior, against the definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import close, full_channels, kernel, law, priors, row_channels
from fastpriv.measures.pointwise.database import leakages
from oracles import pointwise as op


def sparse_priors():
    """Return (name, prior, pmf) where some databases never occur."""
    found = []
    rows = [[0.0, 1.0], [0.3, 0.0, 0.7]]
    found.append(("product-zeros", fp.Product(rows), o.product_pmf(rows)))
    for w in ([0.0, 0.4, 0.6, 0.0], [0.5, 0.0, 0.0, 0.5], [0.0, 0.0, 1.0, 0.0], [1.0, 0, 0, 0]):
        found.append((f"exchangeable-{w}", fp.Exchangeable(w), o.exchangeable_pmf(w, 3)))
    chain = ([0.4, 0.6], [[0.0, 1.0], [0.5, 0.5]])
    found.append(("markov-zeros", fp.Markov(*chain, 3), o.markov_pmf(*chain, 3)))
    pmf = [0.0, 0.2, 0.0, 0.1, 0.3, 0.4, 0.0, 0.0]
    found.append(("dense-zeros", fp.Dense(pmf, [2, 2, 2]), pmf))
    pmf = [0.0, 0.2, 0.0, 0.1, 0.3, 0.4]
    found.append(("dense-mixed-zeros", fp.Dense(pmf, [2, 3]), pmf))
    return found


PAIRS = [
    pytest.param(prior, pmf, channel, matrix, id=f"{a}-{b}")
    for a, prior, pmf in priors() + sparse_priors()
    for b, channel, matrix in row_channels(prior.space.sizes) + full_channels(prior.space.sizes)
    if prior.space.size <= 9
]
every_pair = pytest.mark.parametrize(("prior", "pmf", "channel", "matrix"), PAIRS)


def covers(values, truths, rel=1e-11, abs_=1e-13):
    """Whether floats agree with the oracle's numbers and none is below its own."""
    values, truths = np.atleast_1d(values).tolist(), list(truths)
    assert len(values) == len(truths)
    for value, truth in zip(values, truths, strict=True):
        assert close(value, truth, rel, abs_), (value, truth)
        # Inputs are rounded to doubles before either side sees them, at times in another order.
        assert value == math.inf or value >= truth - 1e-15 * max(1, truth), (value, truth)


@every_pair
def test_pairings(prior, pmf, channel, matrix):
    truth = op.pml(matrix, pmf)
    covers(fp.pml(channel, prior), truth)
    covers(leakages(channel, prior).below, op.below(matrix, pmf))
    covers(fp.pml_level(channel, prior), [max(truth)])
    covers(fp.max_information(channel, prior), [max(truth)])
    covers(fp.information_privacy_level(channel, prior), [op.information_privacy(matrix, pmf)])
    covers(fp.maximal_leakage(channel), [op.maximal_leakage(matrix)])
    covers(fp.leakage_capacity(channel), [op.leakage_capacity(matrix)])
    assert fp.strong_dp_level(channel) == fp.leakage_capacity(channel)
    for y in range(len(truth)):
        covers(fp.pml(channel, prior, y=y), [truth[y]])
        rows = channel.output_space.rows(y)
        assert fp.pml(channel, prior, y=rows) == fp.pml(channel, prior, y=y)


@every_pair
def test_rows(prior, pmf, channel, matrix):
    sizes = prior.space.sizes
    for i in range(len(sizes)):
        truth = op.row_pml(matrix, pmf, sizes, i)
        covers(fp.row_pml(channel, prior, i), truth)
        covers(fp.pml_level(channel, prior, row=i), [max(truth)])
        for y in range(0, len(truth), 3):
            covers(fp.row_pml(channel, prior, i, y=y), [truth[y]])


@every_pair
def test_factors(prior, pmf, channel, matrix):
    entropy = o.entropy(op.normal(pmf))
    gain = op.worst_gain(matrix, pmf)
    worst, mean = fp.worst_leakage_factor(channel, prior), fp.leakage_factor(channel, prior)
    if entropy < 1e-15:
        assert worst == mean == 0.0
    else:
        covers(worst, [gain / entropy], 1e-10, 1e-12)
        assert close(mean, o.mutual_information(matrix, pmf) / entropy, 1e-11, 1e-15)
        assert mean <= worst + 1e-15


@every_pair
def test_conditional(prior, pmf, channel, matrix):
    rng = np.random.default_rng(0)
    event = rng.random(len(pmf)) < 0.6
    if sum(o.num(v) for v, k in zip(pmf, event, strict=True) if k) > 0:
        covers(fp.conditional_pml(channel, prior, event), op.pml(matrix, op.given(pmf, event)))
    dbs, i = o.databases(prior.space.sizes), prior.space.n - 1
    for v in range(prior.space.sizes[i]):
        keep = [x[i] == v for x in dbs]
        if any(k and w > 0 for k, w in zip(keep, pmf, strict=True)):
            truth = op.pml(matrix, op.given(pmf, keep))
            covers(fp.conditional_pml(channel, prior, {i: v}), truth)
            covers(fp.conditional_pml(channel, prior, {i: v}, y=0), truth[:1])
        else:
            with pytest.raises(fp.InvalidInput, match="probability zero"):
                fp.conditional_pml(channel, prior, {i: v})
    with pytest.raises(fp.InvalidInput, match="probability zero"):
        fp.conditional_pml(channel, prior, np.zeros(len(pmf), bool))


@pytest.mark.parametrize("epsilon", [1e-8, 1e-4, 1.0, 37.0, 700.0])
@pytest.mark.parametrize(
    "prior", [p for _, p, _ in priors() + sparse_priors() if 1 < p.space.size <= 9], ids=repr
)
def test_e_d_at_extreme_epsilons(prior, epsilon):
    sizes, pmf = prior.space.sizes, list(prior.pmf())
    channel, matrix = fp.HammingChannel(len(sizes), sizes, epsilon), o.e_d_matrix(sizes, epsilon)
    truth = op.pml(matrix, pmf)
    # Outputs that are no possible database come from afar: ln W and ln p_Y are both of order
    # -n epsilon, and their difference is exact to a few ulp of that.
    error = 1e-13 + 4e-15 * len(sizes) * epsilon
    covers(fp.pml(channel, prior), truth, 1e-12, error)
    covers(fp.pml_level(channel, prior), [max(truth)], 1e-12, error)
    both = op.information_privacy(matrix, pmf)
    covers(fp.information_privacy_level(channel, prior), [both], 1e-12, error)
    for y in range(len(truth)):
        covers(fp.pml(channel, prior, y=y), [truth[y]], 1e-12, error)


@pytest.mark.parametrize("scale", [1e-12, 1e-8, 1e-4])
def test_nearly_useless_matrices_keep_their_digits(scale):
    rng = np.random.default_rng(3)
    matrix = law(rng, 5) * (1 + scale * (rng.random((6, 5)) - 0.5))
    matrix /= matrix.sum(axis=1, keepdims=True)
    p = law(rng, 6)
    truth = op.pml(matrix, p)
    assert all(close(a, b, 1e-12) for a, b in zip(fp.pml(matrix, p), truth, strict=True))
    assert close(fp.leakage_capacity(matrix), op.leakage_capacity(matrix))
    assert close(fp.information_privacy_level(matrix, p), op.information_privacy(matrix, p))
    uniform = [1 / 8] * 8
    rows = np.repeat(matrix[:2], 4, axis=0)
    covers(fp.worst_leakage_factor(rows, uniform) * math.log(8), [op.worst_gain(rows, uniform)])


# Channels made by other parts of the library.


@pytest.mark.parametrize("weights", [[0.1, 0.2, 0.3, 0.4], [0.0, 0.4, 0.6, 0.0]])
def test_channels_that_see_types(weights):
    made = fp.solve_pd_dp(fp.Exchangeable([0.4, 0.3, 0.2, 0.1]), 0.8).channel
    assert isinstance(made, fp.TypeChannel)
    matrix = made.matrix()
    for prior in (fp.Exchangeable(weights), fp.Dense(o.exchangeable_pmf(weights, 3), [2] * 3)):
        pmf = prior.pmf()
        truth = op.pml(matrix, pmf)
        covers(fp.pml(made, prior), truth)
        covers(fp.pml_level(made, prior), [max(truth)])
        covers(fp.information_privacy_level(made, prior), [op.information_privacy(matrix, pmf)])
        covers([fp.pml(made, prior, y=y) for y in range(8)], truth)
        covers(fp.row_pml(made, prior, 1), op.row_pml(matrix, pmf, (2, 2, 2), 1))
        gain = op.worst_gain(matrix, pmf) / o.entropy(pmf)
        covers(fp.worst_leakage_factor(made, prior), [gain])
    covers(fp.maximal_leakage(made), [op.maximal_leakage(matrix)])
    covers(fp.leakage_capacity(made), [op.leakage_capacity(matrix)])


@pytest.mark.parametrize("prior", [p for _, p, _ in priors() if 1 < p.space.size <= 9], ids=repr)
def test_e_i(prior):
    channel = fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.3)
    matrix, pmf = channel.matrix(), prior.pmf()
    truth = op.pml(matrix, pmf)
    values = fp.pml(channel, prior)
    assert all(close(a, b, 1e-9, 1e-12) for a, b in zip(values, truth, strict=True))
    assert close(fp.pml_level(channel, prior), max(truth), 1e-9, 1e-12)
    assert close(fp.leakage_capacity(channel), op.leakage_capacity(matrix), 1e-9, 1e-12)
    assert close(fp.maximal_leakage(channel), op.maximal_leakage(matrix), 1e-9, 1e-12)
    assert close(fp.pml(channel, prior, y=1), truth[1], 1e-9, 1e-12)


# A million rows.


def small_and_large(n, seed):
    """Return pairs of channel and prior that any n makes, structures that list nothing."""
    rng = np.random.default_rng(seed)
    weights = rng.random(n + 1)
    holes = np.where(np.arange(n + 1) % 3 == 1, 0.0, weights)
    start, step = law(rng, 2), kernel(rng, 2, 2)
    chain = fp.Markov(start, step, n)
    factors = [kernel(rng, 2, 3), kernel(rng, 2, 3)]
    noisy = [fp.HammingChannel(n, 2, 0.7), fp.ProductChannel([factors[i % 2] for i in range(n)])]
    found = [
        (channel, prior)
        for channel in noisy
        for prior in (
            chain,
            fp.Markov(start, [[0.0, 1.0], [0.5, 0.5]], n),
            chain.through(fp.HammingChannel(n, 2, 1.1)._kernels),
            fp.Product([law(rng, 2), [0.0, 1.0]] * (n // 2)),
        )
    ]
    found += [(noisy[0], fp.Exchangeable(w / w.sum())) for w in (weights, holes)]
    zeros = fp.ProductChannel([[[0.75, 0.25], [0.0, 1.0]]] * n)
    return [*found, (zeros, fp.Exchangeable(weights / weights.sum())), (zeros, chain)]


@pytest.mark.parametrize("case", range(12))
def test_realised_outputs_of_a_few_rows(case):
    """What a million rows are asked in the next test, where the table still fits."""
    n = 6
    channel, prior = small_and_large(n, 4)[case]
    matrix, pmf = channel.matrix(), prior.pmf()
    truth = op.pml(matrix, pmf)
    rows = [op.row_pml(matrix, pmf, (2,) * n, i) for i in (0, 3)]
    for y in range(0, len(truth), 7):
        covers(fp.pml(channel, prior, y=y), [truth[y]])
        for i, part in zip((0, 3), rows, strict=True):
            covers(fp.row_pml(channel, prior, i, y=y), [part[y]])


@pytest.mark.parametrize("case", range(12))
def test_realised_outputs_of_a_million_rows(case):
    n = 1_000_000
    channel, prior = small_and_large(n, 4)[case]
    if isinstance(prior, fp.Exchangeable):  # drawing one would sort a million rows: any output
        y = np.random.default_rng(1).integers(0, 2, n)
    else:
        y = channel.sample(prior.sample(1, rng=1), rng=2)[0]
    whole, one = fp.pml(channel, prior, y=y), fp.row_pml(channel, prior, 500_000, y=y)
    assert 0.0 <= one <= whole < math.inf
    assert one < 20.0


def test_a_million_rows_by_another_road():
    n = 1_000_000
    channel, stay = fp.HammingChannel(n, 2, 1.0), 1 / (1 + math.exp(-1))
    # Independent rows as a product, as a chain and as binomial weights.
    q = 0.25 * stay + 0.75 * (1 - stay)
    y = (np.random.default_rng(3).random(n) < q).astype(int)
    ones = int(y.sum())
    truth = ones * math.log(stay / q) + (n - ones) * math.log(stay / (1 - q))
    assert fp.pml(channel, fp.Product.iid([0.75, 0.25], n), y=y) == pytest.approx(truth, rel=1e-13)
    chain = fp.Markov([0.75, 0.25], [[0.75, 0.25]] * 2, n)
    assert fp.pml(channel, chain, y=y) == pytest.approx(truth, rel=1e-13)
    from scipy.stats import binom

    # A millionth of all types alike keeps tails possible that binomial weights lose to underflow.
    weights = (1 - 1e-6) * binom.pmf(np.arange(n + 1), n, 0.25) + 1e-6 / (n + 1)
    types = fp.Exchangeable(weights)
    assert fp.pml(channel, types, y=y) == pytest.approx(truth, abs=2e-6)
    level = n * math.log(stay / (0.25 * stay + 0.75 * (1 - stay)))
    assert fp.pml_level(channel, fp.Product.iid([0.75, 0.25], n)) == pytest.approx(level)
    assert fp.leakage_capacity(channel) == n


@pytest.mark.parametrize("weights", [[0.2, 0.1, 0.3, 0.1, 0.3], [0.0, 0.5, 0.0, 0.5, 0.0]])
@pytest.mark.parametrize("factor", [[[0.9, 0.1], [0.3, 0.7]], [[1.0, 0.0], [0.4, 0.6]]])
def test_levels_of_types(weights, factor):
    prior, channel = fp.Exchangeable(weights), fp.ProductChannel([factor] * 4)
    pmf, matrix = o.exchangeable_pmf(weights, 4), o.product_matrix([factor] * 4)
    covers(fp.pml_level(channel, prior), [max(op.pml(matrix, pmf))])
    covers(fp.information_privacy_level(channel, prior), [op.information_privacy(matrix, pmf)])


# Sets of priors.


def random_case(seed, sizes=(2, 2), outputs=3, zeros=0.0):
    """Return a random generator and channel matrix over a space."""
    rng = np.random.default_rng(seed)
    matrix = kernel(rng, int(np.prod(sizes)), outputs, 0.02)
    matrix = np.where(rng.random(matrix.shape) < zeros, 0.0, matrix)
    matrix[:, 0] += 0.05
    return rng, matrix / matrix.sum(axis=1, keepdims=True)


SEEDS = st.integers(0, 2**32 - 1)
SPACES = st.sampled_from([(2,), (3,), (2, 2), (2, 3), (2, 2, 2), (1, 3)])
CHANNELS = st.sampled_from([0.0, 0.3])


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
    with pytest.raises(fp.Infeasible, match="no law"):
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


# Statements of the paper, as properties.


@settings(deadline=None, max_examples=60)
@given(SEEDS, SPACES, CHANNELS)
def test_properties_of_leakage(seed, sizes, zeros):
    rng, matrix = random_case(seed, sizes, 4, zeros)
    p = law(rng, int(np.prod(sizes)))
    channel, prior = fp.Channel(matrix, sizes), fp.Dense(p, sizes)
    leak, law_y = fp.pml(channel, prior), p @ matrix
    assert np.all(leak >= 0)
    assert np.all(leak <= min(-math.log(p.min()), fp.leakage_capacity(channel)) + 1e-13)
    # Maximal leakage is the log of the mean of e^l.
    mean = math.log(float(law_y @ np.exp(leak)))
    assert fp.maximal_leakage(channel) == pytest.approx(mean, abs=1e-13)
    assert fp.mutual_information(channel, prior) <= fp.maximal_leakage(channel) + 1e-14
    for i in range(len(sizes)):
        assert np.all(fp.row_pml(channel, prior, i) <= leak + 1e-13)
    # Post-processing: no output of a coarser mechanism leaks more than the worst.
    after = kernel(rng, 4, 3)
    assert fp.pml_level(matrix @ after, p) <= fp.pml_level(channel, prior) + 1e-14
    # Proposition 4 of Makhdoumi-Fawaz 2013: strong DP >= information privacy >= half of it.
    both, strong = fp.information_privacy_level(channel, prior), fp.strong_dp_level(channel)
    assert both <= strong * (1 + 1e-13) + 1e-13
    assert strong <= 2 * both * (1 + 1e-13) + 1e-13


@settings(deadline=None, max_examples=40)
@given(SEEDS, CHANNELS)
def test_composition(seed, zeros):
    """l(X -> (y, z)) <= l(X -> z) + l(X -> y | z), the second under the posterior of z."""
    rng, first = random_case(seed, (4,), 3, zeros)
    second, p = kernel(rng, 4, 3), law(rng, 4)
    pair = (first[:, :, None] * second[:, None, :]).reshape(4, -1)
    joint, alone = fp.pml(pair, p).reshape(3, 3), fp.pml(first, p)
    for z in range(3):
        posterior = p * first[:, z]
        if posterior.sum() > 0:
            rest = fp.pml(second, posterior / posterior.sum())
            assert np.all(joint[z] <= alone[z] + rest + 1e-13)
    levels = [fp.leakage_capacity(W) for W in (pair, first, second)]
    assert levels[0] <= levels[1] + levels[2] + 1e-13


def test_correlated_rows_leak_beyond_differential_privacy():
    """Theorem 4.3: many copies of one bit through E_d tell it almost surely."""
    n = 40
    weights = np.zeros(n + 1)
    weights[0], weights[n] = 0.9, 0.1
    prior, channel = fp.Exchangeable(weights), fp.HammingChannel(n, 2, 0.5)
    assert fp.dp_level(channel) == 0.5
    leak = fp.row_pml(channel, prior, 0, y=np.ones(n, int))
    assert leak == pytest.approx(math.log(10), rel=1e-6)
    assert leak <= math.log(10) + 1e-12


@pytest.mark.parametrize("p", [0.3, 0.6])
def test_deterministic_threshold(p):
    n, m = 6, 2
    space = fp.Space.hamming(n, 2)
    more = (space.rows(np.arange(space.size)).sum(axis=1) > m).astype(int)
    channel = fp.QueryChannel(more, np.eye(2), space)
    from scipy.stats import binom

    leak = fp.pml(channel, fp.Product.iid([1 - p, p], n))
    assert leak == pytest.approx([-math.log(binom.cdf(m, n, p)), -math.log(binom.sf(m, n, p))])


# Edges and hostile input.


def test_one_of_everything():
    one = fp.Channel([[1.0]])
    assert fp.pml(one, [1.0]).tolist() == [0.0]
    assert fp.pml(one, [1.0], y=0) == fp.pml_level(one, [1.0]) == fp.maximal_leakage(one) == 0.0
    assert fp.leakage_capacity(one) == fp.information_privacy_level(one, [1.0]) == 0.0
    assert fp.leakage_factor(one, [1.0]) == fp.worst_leakage_factor(one, [1.0]) == 0.0
    assert fp.row_pml(one, [1.0], 0).tolist() == [0.0]
    for priors_ in (fp.PriorSet.all(1), fp.PriorSet.box([1.0], [1.0]), fp.PriorSet.product([1])):
        assert fp.pml_level(one, priors_) == pytest.approx(0.0, abs=1e-14)
    constant = fp.HammingChannel(3, 1, 2.0)
    assert fp.leakage_capacity(constant) == fp.pml_level(constant, fp.Uniform(3, 1)) == 0.0
    assert fp.pml_level(constant, fp.PriorSet.all(1), row=1) == 0.0


def test_outputs_of_probability_zero_leak_nothing():
    matrix = [[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    found = fp.pml(matrix, [0.5, 0.5, 0.0])
    assert found[2] == fp.pml(matrix, [0.5, 0.5, 0.0], y=2) == 0.0
    assert found[:2] == pytest.approx([math.log(1 / 0.75), math.log(2)])
    assert fp.information_privacy_level(matrix, [0.0, 1.0, 0.0]) <= 1e-14
    assert fp.information_privacy_level(matrix, [0.5, 0.5, 0.0]) == math.inf


def test_levels_are_rounded_up():
    for n in (3, 7, 11):
        level = fp.leakage_capacity(fp.HammingChannel(n, 2, 0.1))
        assert o.exact(level) >= o.exact(0.1) * n
    # Two tiny numbers: their logarithms are large, the log of their quotient is not.
    matrix = np.array([[1.0, 3e-300], [1.0, 1e-300]])
    assert o.num(fp.leakage_capacity(matrix)) >= op.leakage_capacity(matrix)
    covers(fp.pml(matrix, [0.3, 0.7]), op.pml(matrix, [0.3, 0.7]), 1e-14, 0.0)


def test_extreme_numbers():
    matrix, p = [[1 - 1e-150, 1e-150], [1.0, 1e-303]], [1 - 1e-20, 1e-20]
    truth = op.pml(matrix, p)
    covers(fp.pml(matrix, p), truth)
    covers(fp.information_privacy_level(matrix, p), [op.information_privacy(matrix, p)])
    tiny = np.array([[1.0, 5e-320], [5e-320, 1.0]])
    covers(fp.leakage_capacity(tiny), [op.leakage_capacity(tiny)], 1e-11)
    covers(fp.pml(tiny, [1 - 1e-300, 1e-300]), op.pml(tiny, [1 - 1e-300, 1e-300]))


CHANNEL, PRIOR = fp.HammingChannel(2, 2, 1.0), fp.Uniform(2, 2)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: fp.pml(CHANNEL, [0.5, 0.5]), "2 entries"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=4), "below the number of outputs"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=-1), "at least 0"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=1.5), "integer"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=[0, 2]), "takes values"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=[0, 0, 0]), "last axis"),
        (lambda: fp.pml(CHANNEL, PRIOR, y=[[0, 0]]), "one output"),
        (lambda: fp.row_pml(CHANNEL, PRIOR, 2), "below n"),
        (lambda: fp.row_pml(CHANNEL, PRIOR, -1), "at least 0"),
        (lambda: fp.row_pml(CHANNEL, PRIOR, True), "integer"),
        (lambda: fp.pml_level(CHANNEL, PRIOR, row=9), "below n"),
        (lambda: fp.pml_level(CHANNEL, PRIOR, row="best"), "integer"),
        (lambda: fp.conditional_pml(CHANNEL, PRIOR, {5: 0}), "below n"),
        (lambda: fp.conditional_pml(CHANNEL, PRIOR, {0: 7}), "takes values"),
        (lambda: fp.conditional_pml(CHANNEL, PRIOR, [1, 0, 0, 0]), "boolean"),
        (lambda: fp.conditional_pml(CHANNEL, PRIOR, [True]), "boolean"),
        (lambda: fp.conditional_pml(CHANNEL, fp.Product([[1, 0]] * 2), {0: 1}), "zero"),
        (lambda: fp.pml_level(CHANNEL, fp.PriorSet.all(3)), "3 databases"),
        (lambda: fp.pml_level(CHANNEL, fp.PriorSet.product([4])), "priors are on"),
        (lambda: fp.pml_level(CHANNEL, fp.PriorSet.box([0] * 4, [1] * 4), row=0), "linear"),
        (lambda: fp.pml_level(CHANNEL, fp.PriorSet.all(4), row=2), "below n"),
        (lambda: fp.PriorSet.all(0), "at least 1"),
        (lambda: fp.PriorSet.box([0.5], [0.4]), "exceeds"),
        (lambda: fp.PriorSet.box([0.1, 0.1], [0.3, 0.3]), "no law"),
        (lambda: fp.PriorSet.box([0.6, 0.6], [0.7, 0.7]), "no law"),
        (lambda: fp.PriorSet.box([0.1], [0.3, 0.3]), "entries"),
        (lambda: fp.PriorSet.box([math.nan], [1.0]), "NaN"),
        (lambda: fp.PriorSet.polytope([[1.0, math.inf]], [1.0]), "finite"),
        (lambda: fp.PriorSet.polytope([[1.0, 1.0]], [1.0, 2.0]), "rows"),
        (lambda: fp.PriorSet.polytope([1.0, 1.0], [1.0]), "dimension"),
        (lambda: fp.PriorSet.bernoulli_interval(2, 0.6), "between 0 and 0.5"),
        (lambda: fp.PriorSet.bernoulli_interval(0, 0.1), "at least 1"),
        (lambda: fp.maximal_leakage(PRIOR), "must be a channel"),
        (lambda: fp.leakage_capacity([[0.5, 0.6]]), "sum to 1"),
    ],
)
def test_hostile_input(call, match):
    with pytest.raises(fp.InvalidInput, match=match):
        call()


def test_what_does_not_fit_says_so():
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 100)
    channel = fp.HammingChannel(100, 2, 1.0)
    for call in (fp.pml, fp.pml_level, fp.worst_leakage_factor):
        with pytest.raises(fp.TooLarge):
            call(channel, chain)


def test_outputs_that_no_database_has_leak_nothing_under_exchangeable_priors():
    prior, three = fp.Exchangeable([0.1, 0.4, 0.5]), fp.Exchangeable([0.1, 0.2, 0.3, 0.4])
    constant = fp.ProductChannel([[[0.0, 1.0], [0.0, 1.0]]] * 2)
    assert fp.pml_level(constant, prior) < 1e-13
    assert fp.information_privacy_level(constant, prior) < 1e-13
    mixed = fp.ProductChannel([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[1.0], [1.0]]])
    assert fp.pml(mixed, prior, y=2) == fp.pml(mixed, prior)[2] == 0.0
    assert fp.pml_level(fp.solve_pd_dp(three, 0.01).channel, three) < 0.02


def test_a_box_wider_than_certainty_is_the_box_up_to_certainty():
    channel = [[0.001, 0.999], [0.1, 0.9]]
    levels = [fp.pml_level(channel, fp.PriorSet.box([0, 0], [0.3, u])) for u in (1, 1e16, 1e308)]
    assert levels[0] == levels[1] == levels[2] == pytest.approx(0.352398, abs=1e-6)


@pytest.mark.parametrize(("n", "epsilon"), [(1, 1e-8), (1, 1e-16), (10**6, 1e-15), (3, 2.0)])
def test_maximal_leakage_of_randomised_response_is_rounded_up(n, epsilon):
    e = o.num(epsilon)
    truth = n * o.log(2 / (1 + o.exp(-e)))
    assert truth <= fp.maximal_leakage(fp.HammingChannel(n, 2, epsilon)) <= truth * (1 + 1e-14)


def test_levels_about_one_of_a_million_independent_rows():
    channel, prior = fp.HammingChannel(10**6, 2, 1.0), fp.Product.iid([0.3, 0.7], 10**6)
    alone = fp.pml_level(fp.HammingChannel(1, 2, 1.0), fp.Product([[0.3, 0.7]]))
    assert fp.pml_level(channel, prior, row=3) == pytest.approx(alone, rel=1e-12)
    small = fp.Dense(fp.Product.iid([0.3, 0.7], 3).pmf(), [2] * 3)
    assert fp.pml_level(fp.HammingChannel(3, 2, 1.0), small, row=1) == pytest.approx(alone)


@settings(max_examples=60, deadline=None)
@given(
    masses=st.lists(st.sampled_from([0.0, 1e-12, 0.1, 0.5, 1.0]), min_size=2, max_size=5),
    epsilon=st.sampled_from([0.0, 1e-9, 0.4, 1.0, 3.0, 40.0]),
)
def test_a_symmetric_row_needs_no_matrix(masses, epsilon):
    """The closed form of one row against the definition, which lists the outputs."""
    prior = np.array(masses if any(masses) else [1.0, *masses[1:]])
    prior /= prior.sum()
    channel = fp.HammingChannel(1, len(prior), epsilon)
    W, law = channel.matrix(), fp.Product([prior])  # at 1e-9 a double holds 7 digits of W's gap
    above, both = max(op.pml(W, prior)), op.information_privacy(W, prior)
    assert fp.pml_level(channel, law) == pytest.approx(float(above), rel=1e-6, abs=1e-12)
    found = fp.information_privacy_level(channel, law)
    assert found == pytest.approx(float(both), rel=1e-6, abs=1e-12)


def test_a_row_of_a_million_values():
    channel, prior = fp.HammingChannel(1, 1_000_000, 3.0), fp.Uniform(1, 1_000_000)
    expected = fp.maximal_leakage(channel)  # ln(m a): the uniform prior attains it
    assert fp.pml_level(channel, prior) == pytest.approx(expected, rel=1e-9)
