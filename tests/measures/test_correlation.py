"""Maximal correlation, contraction, strong data processing: 50 digits, closed forms, properties."""

import math
import warnings
from itertools import product

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import cases
import fastpriv as fp
import fastpriv._matrices.contraction as pairs
import fastpriv._matrices.correlation as internals
import fastpriv.measures.contraction as products
import fastpriv.measures.correlation as correlations
import oracles as o
from cases import kernel, law
from oracles import correlation as oc


def above(value, truth, share=1e-11):
    """Whether a float is at least the oracle's number, and by no more than a share of it."""
    return truth <= mpf(value) <= truth * (1 + mpf(share))


def holds(bracket, truth, share=1e-11):
    """Whether a bracket contains the oracle's number and is as narrow as a share of it."""
    tight = bracket.upper - bracket.lower <= share * bracket.upper
    return mpf(bracket.lower) <= truth <= mpf(bracket.upper) and tight


def symmetric(m, distortion):
    W = np.full((m, m), distortion / (m - 1))
    np.fill_diagonal(W, 1.0 - distortion)
    return W


def near_useless(rng, inputs, outputs, scale=1e-8):
    base = law(rng, outputs)
    W = base * (1.0 + scale * rng.standard_normal((inputs, outputs)))
    return W / W.sum(axis=1, keepdims=True)


RNG = np.random.default_rng(5)
Z = [[1.0, 0.0], [0.5, 0.5]]
MATRICES = {
    "random": (kernel(RNG, 4, 5), law(RNG, 4)),
    "tall": (kernel(RNG, 7, 2), law(RNG, 7)),
    "z": (Z, [0.25, 0.75]),
    "erasure": ([[0.75, 0.25, 0.0], [0.0, 0.25, 0.75]], [0.3, 0.7]),
    "zeros": ([[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0.25, 0, 0.75, 0]], [0.5, 0.0, 0.5]),
    "useless": (near_useless(RNG, 3, 4), law(RNG, 3)),
    "rare": (kernel(RNG, 3, 3), [1 - 2e-12, 1e-12, 1e-12]),
    "tiny": ([[1 - 1e-150, 1e-150], [1.0, 1e-303]], [0.5, 0.5]),
}
every_matrix = pytest.mark.parametrize(("W", "p"), list(MATRICES.values()), ids=list(MATRICES))


def digits(W):
    """As many digits as tiny entries leave fifty of."""
    return 50 - 4 * math.floor(math.log10(min(v for row in W for v in row if v > 0)))


@every_matrix
def test_correlation_of_matrices(W, p):
    with mp.workdps(digits(W)):
        truth = oc.maximal_correlation(W, p)
    assert above(fp.maximal_correlation(W, p), truth)
    found = correlations.correlation(fp.Channel(W), fp.Dense(p))
    assert mpf(found.lower) <= truth <= mpf(found.upper)


@every_matrix
def test_contraction_of_matrices(W, p):
    assert holds(fp.contraction_coefficient(W), oc.contraction(W))


every_pair = cases.every_pair(6)


@pytest.mark.grid
@every_pair
def test_pairings(prior, pmf, channel, matrix):
    W = [[float(v) for v in row] for row in matrix]
    p = [float(v) for v in pmf]
    joint = np.array(p)[:, None] * W
    joint = joint[joint.sum(axis=1) > 0][:, joint.sum(axis=0) > 0]
    values = joint / np.sqrt(np.outer(joint.sum(axis=1), joint.sum(axis=0)))
    rho = float(np.append(np.linalg.svd(values)[1], 0.0)[1])
    assert fp.maximal_correlation(channel, prior) == pytest.approx(rho, rel=1e-9, abs=1e-14)
    eta = fp.contraction_coefficient(W)
    assert fp.contraction_coefficient(channel).lower <= eta.upper + 1e-15
    assert fp.contraction_coefficient(channel).upper >= eta.lower - 1e-15
    bracket = fp.sdpi_constant(channel, prior, time_limit=None)
    assert rho**2 <= bracket.upper * (1 + 1e-9) + 1e-28
    assert bracket.lower >= rho**2 * (1 - 1e-9) - 1e-27
    assert bracket.upper <= fp.contraction_coefficient(channel).upper * (1 + 1e-12)
    assert 0.0 <= bracket.lower <= bracket.upper <= 1.0


@pytest.mark.parametrize(("m", "distortion"), list(product([2, 3, 5, 40], [0.3, 0.01, 1e-9])))
def test_symmetric_closed_forms(m, distortion):
    W = symmetric(m, distortion)
    D = mpf(W[0, 0]), mpf(W[0, 1])
    rho = fp.maximal_correlation(W, np.full(m, 1 / m))
    assert rho == pytest.approx(float(D[0] - D[1]), rel=1e-12)
    assert holds(fp.contraction_coefficient(W), (D[0] - D[1]) ** 2 / (D[0] + D[1]))


def test_values_known_from_elsewhere():
    assert fp.contraction_coefficient(symmetric(3, 0.3)).upper == pytest.approx(0.355882, abs=1e-6)
    assert fp.contraction_coefficient(symmetric(5, 0.3)).upper == pytest.approx(0.504032, abs=1e-6)
    erasure = [[0.75, 0.25, 0.0], [0.0, 0.25, 0.75]]
    for bracket in (
        fp.contraction_coefficient(erasure),
        fp.sdpi_constant(erasure, [0.3, 0.7]),
    ):
        assert bracket.lower == pytest.approx(0.75, rel=1e-12)
        assert bracket.upper == pytest.approx(0.75, rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.7, 5.0, 40.0, 700.0])
@pytest.mark.parametrize(("n", "m"), [(1, 2), (1, 5), (3, 2), (2, 3)])
def test_e_d(n, m, epsilon):
    channel = fp.HammingChannel(n, m, epsilon)
    with mp.workdps(400):
        r = o.exp(-mpf(epsilon))
        a, b = 1 / (1 + (m - 1) * r), r / (1 + (m - 1) * r)
        gap = a - b
        rows = [[a if s == y else b for y in range(m)] for s in range(m)]
        one, other = [mpf(1)], [mpf(1)]
        for _ in range(n):
            one = [u * v for u in one for v in rows[0]]
            other = [u * v for u in other for v in rows[-1]]
        eta = o.chi_square(one, other, 0.5)
    uniform = fp.maximal_correlation(channel, fp.Uniform(n, m))
    assert above(uniform, gap, 1e-14) or (uniform == 1.0 and gap > 1 - 1e-16)
    assert holds(fp.contraction_coefficient(channel), min(eta, mpf(1)))
    skew = fp.Product.iid(law(np.random.default_rng(0), m), n)
    truth = oc.maximal_correlation(rows, skew.marginals[0])
    assert above(fp.maximal_correlation(channel, skew), truth) or truth > 1 - 1e-11


@pytest.mark.parametrize("scale", [1e-8, 1e-12])
def test_near_useless_channels_keep_their_digits(scale):
    rng = np.random.default_rng(8)
    W, p = near_useless(rng, 4, 6, scale), law(rng, 4)
    # Rows of floats sum to one up to 1e-16, which is all that distinguishes definitions here.
    share = 1e-11 + (1e-15 / scale) ** 2
    rho, eta = oc.maximal_correlation(W, p), oc.contraction(W)
    assert fp.maximal_correlation(W, p) == pytest.approx(float(rho), rel=share)
    assert holds(fp.contraction_coefficient(W), eta)
    two = fp.sdpi_constant(W[:2], [0.3, 0.7], time_limit=None)
    assert two.upper == pytest.approx(float(oc.sdpi_ratio(W[:2], [0.3, 0.7], [0.9, 0.1])), rel=1e-5)


@pytest.mark.parametrize("epsilon", [1e-8, 1.0])
@pytest.mark.parametrize("kind", ["hamming", "product"])
def test_matrix_free_agrees_with_the_matrix(monkeypatch, kind, epsilon):
    rng = np.random.default_rng(3)
    if kind == "hamming":
        channel = fp.HammingChannel(7, [2, 3, 2, 2, 3, 2, 2], epsilon)
    else:
        sizes = [(2, 3), (3, 2), (2, 2), (2, 1), (3, 3), (2, 2)]
        channel = fp.ProductChannel([near_useless(rng, a, b, epsilon / 4) for a, b in sizes])
    pmf = law(rng, channel.space.size) * (rng.random(channel.space.size) < 0.9)
    prior = fp.Dense(pmf / pmf.sum(), channel.space.sizes)
    certified = fp.maximal_correlation(channel, prior)
    monkeypatch.setattr(correlations, "_FORMED", 1)
    monkeypatch.setattr(correlations, "_GROUP", 7)
    assert fp.maximal_correlation(channel, prior) == pytest.approx(certified, rel=1e-9)


def test_the_epsilon_of_a_markov_prior_is_not_lost():
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 4)
    small, smaller = (
        fp.maximal_correlation(fp.HammingChannel(4, 2, e), chain) / e for e in (1e-6, 1e-9)
    )
    assert small == pytest.approx(smaller, rel=1e-5)


def test_large_matrices_without_a_certificate(monkeypatch):
    W, p = kernel(np.random.default_rng(1), 60, 50), law(np.random.default_rng(2), 60)
    certified = fp.maximal_correlation(W, p)
    monkeypatch.setattr(internals, "_FULL", 10)
    monkeypatch.setattr(internals, "_CERTIFIED", 10)
    assert fp.maximal_correlation(W, p) == pytest.approx(certified, rel=1e-9)
    monkeypatch.setattr(internals, "_CERTIFIED", 4096)
    assert fp.maximal_correlation(W, p) == pytest.approx(certified, rel=1e-9)


def sparse_channel(rng, inputs, outputs, each):
    rows = np.repeat(np.arange(inputs), each)
    columns = rng.integers(0, outputs, inputs * each)
    found = sp.csr_matrix((rng.random(inputs * each), (rows, columns)), (inputs, outputs))
    return sp.csr_matrix(sp.diags(1.0 / np.asarray(found.sum(axis=1)).ravel()) @ found)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_matrix, sp.csc_array])
def test_sparse_matrices(monkeypatch, kind):
    rng = np.random.default_rng(4)
    W, p = sparse_channel(rng, 40, 30, 6), law(rng, 40)
    p[3] = 0.0
    p /= p.sum()
    truth = fp.maximal_correlation(W.toarray(), p)
    assert fp.maximal_correlation(kind(W), p) == pytest.approx(truth, rel=1e-11)
    monkeypatch.setattr(internals, "_CERTIFIED", 10)
    assert fp.maximal_correlation(kind(W), p) == pytest.approx(truth, rel=1e-9)
    parts = sp.block_diag([W, W])
    assert fp.maximal_correlation(kind(parts), np.full(80, 1 / 80)) == 1.0
    eta, dense = fp.contraction_coefficient(kind(W)), fp.contraction_coefficient(W.toarray())
    assert eta.upper == pytest.approx(dense.upper, rel=1e-13)
    assert fp.sdpi_constant(kind(W), fp.Dense(p), time_limit=None).upper <= eta.upper


def test_independence_and_functions_in_common():
    p = [0.2, 0.3, 0.5]
    same = np.tile([0.1, 0.6, 0.3], (3, 1))
    for W in (same, np.ones((3, 1))):
        assert fp.maximal_correlation(W, p) == 0.0
        assert fp.contraction_coefficient(W) == fp.Bracket(0.0, 0.0)
        assert fp.sdpi_constant(W, p, time_limit=None) == fp.Bracket(0.0, 0.0)
    assert fp.maximal_correlation([[0.5, 0.5]], [1.0]) == 0.0
    assert fp.contraction_coefficient([[0.5, 0.5]]).upper == 0.0
    assert fp.sdpi_constant([[0.5, 0.5]], [1.0], time_limit=None).upper == 0.0
    assert fp.maximal_correlation(np.eye(3), [0.0, 1.0, 0.0]) == 0.0
    for W in (np.eye(3), [[1, 0], [0, 1], [0, 1]], [[0.5, 0.5, 0], [0.25, 0.75, 0], [0, 0, 1]]):
        assert fp.maximal_correlation(W, p) == pytest.approx(1.0, rel=1e-12)
        assert fp.contraction_coefficient(W).lower == pytest.approx(1.0, rel=1e-12)
        assert fp.sdpi_constant(W, p, time_limit=None).lower == pytest.approx(1.0, rel=1e-11)
    for eps in (0.0, 1000.0):
        channel, eye = fp.HammingChannel(2, 3, eps), fp.HammingChannel(1, 1, eps)
        assert fp.maximal_correlation(channel, fp.Uniform(2, 3)) == (eps > 0)
        assert fp.contraction_coefficient(channel).upper == (eps > 0)
        assert fp.maximal_correlation(eye, fp.Uniform(1, 1)) == 0.0


laws = st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(lambda v: sum(v) > 0)
rows = st.lists(laws, min_size=2, max_size=4)


def normalised(weights):
    weights = np.asarray(weights, float)
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.mark.search(every=10)
@settings(deadline=None, max_examples=80)
@given(rows, st.data())
def test_the_chain_of_inequalities(weights, data):
    W = normalised(weights)
    p = normalised(
        data.draw(st.lists(st.integers(0, 5), min_size=len(W), max_size=len(W)).filter(any))
    )
    rho, eta = fp.maximal_correlation(W, p), fp.contraction_coefficient(W)
    bracket = fp.sdpi_constant(W, p, time_limit=None)
    assert 0.0 <= rho <= 1.0
    assert 0.0 <= bracket.lower <= bracket.upper <= eta.upper * (1 + 1e-13) <= 1.0 + 1e-12
    assert bracket.lower >= rho**2 * (1 - 1e-10) - 1e-26
    # A further channel after W cannot raise any of them.
    V = normalised(data.draw(st.lists(laws, min_size=3, max_size=3)))
    after = W @ V
    after /= after.sum(axis=1, keepdims=True)
    assert fp.maximal_correlation(after, p) <= rho + 1e-11
    assert fp.contraction_coefficient(after).lower <= eta.upper + 1e-13
    assert fp.sdpi_constant(after, p, time_limit=None).lower <= bracket.upper + 1e-12


@settings(deadline=None, max_examples=60)
@given(st.lists(laws, min_size=2, max_size=2), st.integers(1, 99))
def test_two_inputs_are_settled(weights, percent):
    W, p = normalised(weights), [percent / 100, 1 - percent / 100]
    bracket = fp.sdpi_constant(W, p, time_limit=None)
    assert bracket.width <= 1e-9 * bracket.upper
    if bracket.upper > 0:
        # The oracle's own last digits are not ours to cover.
        assert oc.sdpi_grid(W, p, 20) <= mpf(bracket.upper) * (1 + mpf(10) ** -40)


@pytest.mark.parametrize("seed", range(8))
def test_two_inputs_against_a_grid(seed):
    rng = np.random.default_rng(seed)
    W, p = rng.dirichlet([0.3] * 4, 2), rng.dirichlet([0.5, 0.5])
    bracket = fp.sdpi_constant(W, p, time_limit=None)
    grid = oc.sdpi_grid(W, p, 300)
    assert grid <= mpf(bracket.upper)
    assert float(grid) >= bracket.lower * (1 - 1e-2)
    assert bracket.width <= 1e-9 * bracket.upper


def test_z_channel_is_settled_by_its_end():
    bracket = fp.sdpi_constant(Z, [0.5, 0.5], time_limit=None)
    assert holds(bracket, o.log(o.num(4) / 3) / o.log(o.num(2)))


@pytest.mark.parametrize("seed", range(4))
def test_the_climb_finds_what_random_laws_find(seed):
    rng = np.random.default_rng(seed)
    W, p = rng.dirichlet([0.5] * 4, 3), rng.dirichlet([1.0] * 3)
    bracket = fp.sdpi_constant(W, p, time_limit=None)
    found = [oc.sdpi_ratio(W, p, q) for q in rng.dirichlet([0.4] * 3, 100)]
    assert float(max(found)) <= bracket.lower * (1 + 1e-6)
    assert bracket.lower <= bracket.upper


def test_products_take_the_largest_row():
    rng = np.random.default_rng(9)
    parts = [kernel(rng, 2, 3), kernel(rng, 3, 2), kernel(rng, 2, 2)]
    rows = [law(rng, 2), law(rng, 3), law(rng, 2)]
    channel, prior = fp.ProductChannel(parts), fp.Product(rows)
    whole = fp.maximal_correlation(channel.matrix(), prior.pmf())
    assert fp.maximal_correlation(channel, prior) == pytest.approx(whole, rel=1e-11)
    single = [fp.sdpi_constant(W, p, time_limit=None) for W, p in zip(parts, rows, strict=True)]
    bracket = fp.sdpi_constant(channel, prior, time_limit=None)
    assert bracket == fp.Bracket(max(b.lower for b in single), max(b.upper for b in single))
    assert fp.sdpi_constant(channel.matrix(), prior.pmf(), time_limit=None).lower <= bracket.upper


def test_contraction_of_products(monkeypatch):
    rng = np.random.default_rng(10)
    parts = [kernel(rng, 2, 3), kernel(rng, 3, 2), np.tile(law(rng, 2), (2, 1)), kernel(rng, 2, 2)]
    parts[1][2] = parts[1][0]
    channel = fp.ProductChannel(parts)
    exact, listed = (
        fp.contraction_coefficient(channel.matrix()),
        fp.contraction_coefficient(channel),
    )
    assert listed.upper == pytest.approx(exact.upper, rel=1e-12)
    assert listed.width < 1e-12
    monkeypatch.setattr(products, "_LISTED", 0)
    bounded = fp.contraction_coefficient(channel)
    assert bounded.lower <= exact.lower <= exact.upper <= bounded.upper
    single = [fp.contraction_coefficient(W) for W in parts]
    assert bounded.upper <= 1 - math.prod(1 - b.upper for b in single) + 1e-9
    assert bounded.lower >= max(b.lower for b in single) * (1 - 1e-12)


@pytest.mark.slow
def test_e_d_of_mixed_sizes_and_of_many_rows():
    mixed = fp.HammingChannel(4, [2, 3, 2, 3], 0.8)
    exact = fp.contraction_coefficient(mixed.matrix())
    assert fp.contraction_coefficient(mixed).upper == pytest.approx(exact.upper, rel=1e-12)
    wide = fp.contraction_coefficient(fp.HammingChannel(40, [2, 3] * 20, 0.1))
    two, three = (fp.contraction_coefficient(fp.HammingChannel(40, m, 0.1)) for m in (2, 3))
    assert three.lower <= wide.upper
    assert wide.lower <= two.upper
    many = [fp.contraction_coefficient(fp.HammingChannel(n, 2, 1e-3)) for n in (10**5, 10**6)]
    assert many[0].upper < many[1].lower
    assert many[1].width < 1e-8
    assert fp.contraction_coefficient(fp.HammingChannel(10**6, 2, 1.0)).lower > 1 - 1e-8
    assert fp.contraction_coefficient(fp.HammingChannel(1 << 25, 2, 1e-8)).width < 1e-8


def test_no_pair_is_pruned_wrongly():
    rng = np.random.default_rng(11)
    for size, spread in product((5, 300), (0.05, 1.0, 50.0)):
        W = rng.dirichlet([spread] * 6, size)
        left, right = np.triu_indices(size, 1)
        lower, upper, each, weight = pairs.contractions(W, left, right)
        bracket = fp.contraction_coefficient(W)
        assert bracket.lower <= upper
        assert lower <= bracket.upper
        assert bracket.width <= 1e-13
        best = int(np.argmax(each))
        value = float(o.chi_square(W[left[best]], W[right[best]], weight[best]))
        assert value == pytest.approx(bracket.upper, rel=1e-12)


def test_queries_see_their_answers():
    rng = np.random.default_rng(12)
    table, values = kernel(rng, 4, 3), rng.integers(0, 3, 8)  # the last answer never occurs
    channel, p = fp.QueryChannel(values, table, [2] * 3), law(rng, 8)
    matrix = fp.Channel(channel.matrix(), [2] * 3)
    for measure in (fp.maximal_correlation, fp.sdpi_constant):
        mine, theirs = measure(channel, p), measure(matrix, p)
        if isinstance(mine, fp.Bracket):
            mine, theirs = mine.upper, theirs.upper
        assert mine == pytest.approx(theirs, rel=1e-11)
    assert fp.contraction_coefficient(channel) == fp.contraction_coefficient(matrix)


def test_e_i_is_e_d_backwards():
    rng = np.random.default_rng(13)
    for prior in (fp.Dense(law(rng, 8, 1.0), [2] * 3), fp.Product([[0.6, 0.4], [0.3, 0.7]])):
        channel = fp.PosteriorChannel(prior, prior.epsilon_tilde() + 0.5)
        truth = float(oc.maximal_correlation(channel.matrix(), prior.pmf()))
        assert fp.maximal_correlation(channel, prior) == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: fp.maximal_correlation([[0.5, 0.6]], [1.0]),
        lambda: fp.maximal_correlation(np.eye(2), [0.5, 0.6]),
        lambda: fp.maximal_correlation(np.eye(2), [1.0]),
        lambda: fp.maximal_correlation(np.eye(2), None),
        lambda: fp.maximal_correlation(fp.Uniform(1, 2), np.eye(2)),
        lambda: fp.maximal_correlation(sp.eye(3), [0.5, 0.5]),
        lambda: fp.maximal_correlation(sp.csr_matrix((2, 2)), [0.5, 0.5]),
        lambda: fp.maximal_correlation(sp.csr_matrix([[0.5, 0.4], [0.5, 0.5]]), [0.5, 0.5]),
        lambda: fp.maximal_correlation(sp.csr_matrix([[1.5, -0.5], [0.5, 0.5]]), [0.5, 0.5]),
        lambda: fp.maximal_correlation(sp.csr_matrix([[np.nan, 1.0]]), [1.0]),
        lambda: fp.contraction_coefficient([[np.nan, 1.0]]),
        lambda: fp.contraction_coefficient([0.5, 0.5]),
        lambda: fp.contraction_coefficient(fp.Uniform(2, 2)),
        lambda: fp.contraction_coefficient("channel"),
        lambda: fp.contraction_coefficient(sp.eye(100_000)),
        lambda: fp.sdpi_constant(np.eye(2), [0.5, np.nan], time_limit=None),
        lambda: fp.sdpi_constant(fp.HammingChannel(2, 2, 1.0), fp.Uniform(3, 2), time_limit=None),
    ],
)
def test_refused_in_words(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((fp.InvalidInput, fp.TooLarge)):
            make()


def test_a_chain_too_long_for_any_search_still_has_a_bracket():
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 100_000)
    one = fp.maximal_correlation(fp.HammingChannel(1, 2, 1.0), [0.5, 0.5])  # of the first bit
    constant = fp.sdpi_constant(fp.HammingChannel(100_000, 2, 1.0), chain, time_limit=None)
    # Entries of n factors are known to 16 n u, which moves the constant by some 13 times as much.
    assert constant.lower == pytest.approx(one**2, rel=16 * 16 * 100_000 * 2.0**-53)
    assert constant.upper == 1.0


@pytest.mark.parametrize("size", [1, 2, 3, 8, 17, 64, 130])
@pytest.mark.parametrize("kind", ["random", "equal", "diagonal", "spread"])
def test_the_leading_vector_of_three_diagonals(size, kind):
    rng = np.random.default_rng(size)
    B = {
        "random": rng.standard_normal((size, size + 3)),
        "equal": np.ones((size, size)),
        "diagonal": np.eye(size),
        "spread": np.diag(np.logspace(0, -160, size)),
    }[kind]
    lower, upper = internals.norm_bounds(B)
    largest = np.linalg.svd(B, compute_uv=False)[0]
    assert lower * (1 - 1e-13) <= largest <= upper * (1 + 1e-13)
    assert upper - lower <= 1e-10 * upper


@pytest.mark.parametrize("shape", [(1, 4), (2, 2), (5, 3), (4, 6)])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e100])
def test_norm_bounds_hold_at_forty_digits(shape, scale):
    rng = np.random.default_rng(shape)
    for _ in range(5):
        B = rng.standard_normal(shape) * scale
        lower, upper = internals.norm_bounds(B)
        with mpmath.workdps(40):
            largest = max(mpmath.svd_r(mpmath.matrix(B.tolist()), compute_uv=False))
            assert lower <= largest <= upper
        assert upper - lower <= 1e-12 * upper


@pytest.mark.parametrize("epsilon", [0.01, 3.0, 40.0])
def test_a_certain_database_has_no_correlation(epsilon):
    certain = fp.Dense(np.eye(8)[3], [2, 2, 2])
    channel = fp.TiltedChannel(fp.Uniform(3, 2), epsilon)
    assert fp.maximal_correlation(channel, certain) == 0.0
    other = fp.TiltedChannel(fp.Dense(np.arange(1.0, 9.0) / 36.0, [2, 2, 2]), epsilon)
    assert fp.maximal_correlation(other, certain) == 0.0


@pytest.mark.parametrize("rare", [1e-10, 1e-16, 1e-30])
def test_a_rare_value_beside_a_likely_one_keeps_its_digits(rare):
    prior = np.array([1.0, rare])
    one = fp.maximal_correlation(fp.HammingChannel(1, 2, 30.0), prior)
    matrix = fp.Channel(fp.HammingChannel(1, 2, 30.0).nearest_matrix())
    assert one == pytest.approx(fp.maximal_correlation(matrix, prior), rel=1e-12)
    kernel = [[0.0, 0.25, 0.75], [0.25, 0.5, 0.25]]
    rows = fp.ProductChannel([[[1.0], [1.0]], kernel])
    dense = fp.Dense(np.concatenate([prior, [0.0, 0.0]]) / prior.sum(), [2, 2])
    assert fp.maximal_correlation(rows, dense) == pytest.approx(
        fp.maximal_correlation(kernel, prior), rel=1e-12
    )


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (3, 5), (4, 2)])
@pytest.mark.parametrize("zeros", [False, True])
def test_the_mechanism_of_a_matrix_of_correlations(shape, zeros):
    rng = np.random.default_rng(3)
    W, p = rng.dirichlet(np.ones(shape[1]), shape[0]), rng.dirichlet(np.ones(shape[0]))
    if zeros:
        W[:, -1], p[0] = 0.0, 0.0  # an output and a database that do not occur
        W, p = W / W.sum(axis=1, keepdims=True), p / p.sum()
    joint = p[:, None] * W
    scale = np.sqrt(np.outer(p, joint.sum(axis=0)))
    Q = np.divide(joint, scale, out=np.zeros_like(joint), where=scale > 0)
    back = fp.channel_from_correlation(Q, p)
    W[p == 0] = joint.sum(axis=0)
    assert back.matrix() == pytest.approx(W, abs=1e-14)
    assert np.linalg.svd(Q, compute_uv=False)[1] == pytest.approx(
        fp.maximal_correlation(back, p), abs=1e-12
    )


@pytest.mark.parametrize(
    ("Q", "match"),
    [
        ([[0.9, 0.1]], "2 rows"),
        ([[1.1, -0.1], [0.1, 0.9]], "at least 0"),
        ([[0.9, 0.2], [0.1, 0.9]], "Q Q' r = r"),
    ],
)
def test_matrices_that_are_no_correlations(Q, match):
    with pytest.raises(fp.InvalidInput, match=match):
        fp.channel_from_correlation(Q, [0.5, 0.5])
