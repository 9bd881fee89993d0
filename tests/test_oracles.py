"""Sanity tests of the oracles against hand-computable cases and the statements of the paper."""

import random
from fractions import Fraction as F  # noqa: N817
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest
from mpmath import exp, inf, log, lu_solve, matrix, mpf
from scipy.optimize import linprog

import oracles as o

SPACES = [(2,), (3,), (2, 2), (3, 3), (2, 3), (3, 1, 2), (2, 2, 2), (4, 2)]


def close(a, b, tol="1e-28"):
    """Return whether two numbers agree, infinities included."""
    a, b = o.num(a), o.num(b)
    return a == b or abs(a - b) <= mpf(tol) * max(1, abs(b))


def random_law(rng, size):
    """Return a full-support law in Fractions, away from zero."""
    weights = [rng.randint(5, 100) for _ in range(size)]
    return [F(w, sum(weights)) for w in weights]


def random_channel(rng, inputs, outputs):
    """Return a random positive channel in Fractions."""
    return [random_law(rng, outputs) for _ in range(inputs)]


def row_entropy(m, eps):
    """Return the entropy of one row of R_eps."""
    g = 1 + (m - 1) * exp(-eps)
    return log(g) + eps * (m - 1) * exp(-eps) / g


def h_mixed(eps, sizes):
    """Return h for rows of their own sizes."""
    return sum(o.h(eps, 1, m) for m in sizes)


def priors():
    """Return (sizes, pmf) pairs, random and full-support."""
    rng = random.Random(7)
    return [(s, random_law(rng, len(o.databases(s)))) for s in SPACES for _ in range(2)]


def lp_optimum(pmf, sizes, eps, notion):
    """Return the optimum of PD-DP or PD-I by a linear program, in floats."""
    dbs = o.databases(sizes)
    size, p = len(dbs), [float(v) for v in pmf]
    scale = p if notion == "dp" else [1.0] * size  # variables: channel, or joint law
    cost = [scale[x] * o.hamming(dbs[x], dbs[y]) for x in range(size) for y in range(size)]
    total = [1.0] * size if notion == "dp" else p
    ratio = []
    for (i, j), y in product(o.neighbour_pairs(sizes), range(size)):
        row = np.zeros(size * size)
        row[i * size + y], row[j * size + y] = 1, -float(exp(eps))
        ratio.append(row)
    sums = np.kron(np.eye(size), np.ones(size))
    result = linprog(cost, np.array(ratio), np.zeros(len(ratio)), sums, total, method="highs")
    return result.fun if result.success else None


# Spaces


def test_c_order_by_hand():
    assert o.databases((2, 3)) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert o.index((1, 0), (2, 3)) == 3
    assert o.index((1, 0, 2), (2, 3, 4)) == 14
    assert o.neighbours(0, (2, 3)) == [1, 2, 3]
    assert o.shell(4, 2, (2, 3)) == [0, 2]
    assert o.shell(4, 0, (2, 3)) == [4]
    assert o.lines(0, (2, 3)) == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("sizes", SPACES)
def test_shells_partition_and_have_one_size(sizes):
    total = len(o.databases(sizes))
    for x in range(total):
        shells = [o.shell(x, k, sizes) for k in range(len(sizes) + 1)]
        assert sorted(i for s in shells for i in s) == list(range(total))
        assert [len(s) for s in shells] == [o.shell_size(k, sizes) for k in range(len(sizes) + 1)]


def test_shell_size_is_the_papers_formula():
    for n, m in [(3, 2), (4, 3), (2, 4)]:
        for k in range(n + 1):
            assert o.shell_size(k, [m] * n) == comb(n, k) * (m - 1) ** k


# Priors


def test_priors_by_hand():
    assert o.product_pmf([[F(1, 3), F(2, 3)], [F(1, 4), F(3, 4)]]) == [
        F(1, 12),
        F(3, 12),
        F(2, 12),
        F(6, 12),
    ]
    assert o.exchangeable_pmf([F(1, 2), F(1, 3), F(1, 6)], 2) == [
        F(1, 2),
        F(1, 6),
        F(1, 6),
        F(1, 6),
    ]
    assert o.markov_pmf([F(1, 4), F(3, 4)], [[F(1, 2), F(1, 2)], [F(1, 5), F(4, 5)]], 2) == [
        F(1, 8),
        F(1, 8),
        F(3, 20),
        F(3, 5),
    ]
    assert all(close(w, F(1, 6)) for w in o.beta_binomial_weights(5, 1, 1))


def test_general_exchangeable_agrees_with_bits_and_iid():
    weights = [F(1, 10), F(2, 10), F(3, 10), F(4, 10)]
    counts = {(3 - k, k): w for k, w in enumerate(weights)}
    assert o.exchangeable_pmf_general(counts, 3, 2) == o.exchangeable_pmf(weights, 3)
    p = [F(1, 2), F(1, 3), F(1, 6)]
    iid = o.product_pmf([p] * 2)
    counts = {}
    for x, mass in zip(o.databases((3, 3)), iid, strict=True):
        kind = tuple(x.count(a) for a in range(3))
        counts[kind] = counts.get(kind, 0) + mass
    assert o.exchangeable_pmf_general(counts, 2, 3) == iid


@pytest.mark.parametrize("kind", [float, F, lambda v: o.num(F(v))])
def test_priors_take_every_number_type(kind):
    p, t = [kind(0.25), kind(0.75)], [[kind(0.5), kind(0.5)], [kind(0.125), kind(0.875)]]
    for pmf in (o.product_pmf([p, p]), o.markov_pmf(p, t, 3), o.exchangeable_pmf(p, 1)):
        assert close(sum(pmf), 1)
        assert {type(v) for v in pmf} == {type(p[0])}


# Levels of a prior


def test_levels_by_hand():
    p = [F(1, 10), F(3, 10), F(6, 10)]
    assert close(o.epsilon_x(p, (3,)), log(6))
    assert close(o.epsilon_hat(p, (3,)), log(8))
    assert close(o.epsilon_tilde(p, (3,)), log(8))
    assert close(o.epsilon_tilde([0.25, 0.75], (2,)), log(3))


@pytest.mark.parametrize("sizes", SPACES)
def test_uniform_priors_have_level_zero(sizes):
    total = len(o.databases(sizes))
    for pmf in ([F(1, total)] * total, [1 / total] * total):
        assert (
            o.epsilon_x(pmf, sizes) == o.epsilon_hat(pmf, sizes) == o.epsilon_tilde(pmf, sizes) == 0
        )


def test_one_database_and_rows_with_one_value():
    for sizes in [(1,), (1, 1)]:
        assert (
            o.epsilon_x([1], sizes) == o.epsilon_hat([1], sizes) == o.epsilon_tilde([1], sizes) == 0
        )
    p = [F(1, 5), F(4, 5)]
    for level in (o.epsilon_x, o.epsilon_hat, o.epsilon_tilde):
        assert close(level(p, (1, 2)), log(4))
        assert close(level(p, (2, 1)), log(4))


@pytest.mark.parametrize(
    ("pmf", "sizes"),
    [
        ([0, 1], (2,)),
        ([F(1, 2), 0, 0, F(1, 2)], (2, 2)),
        ([F(1, 2)] + [0] * 6 + [F(1, 2)], (2, 2, 2)),
        ([1] + [0] * 8, (3, 3)),
        ([0] + [F(1, 5)] * 5, (2, 3)),
    ],
)
def test_a_zero_anywhere_makes_all_three_infinite(pmf, sizes):
    assert (
        o.epsilon_x(pmf, sizes) == o.epsilon_hat(pmf, sizes) == o.epsilon_tilde(pmf, sizes) == inf
    )
    for eps in (mpf("0.01"), mpf(1), mpf(10), mpf(40)):
        assert min(o.inverse_output(pmf, sizes, eps)) < 0


def test_the_negative_entry_need_not_be_where_the_zero_is():
    pmf = [F(1, 1000)] * 8  # n = 3, m = 2; the zero has small neighbours and a large antipode
    pmf[0], pmf[6], pmf[5], pmf[3] = F(0), F(3, 10), F(3, 10), F(3, 10)
    pmf[7] = 1 - sum(pmf[:7])
    p_y = o.inverse_output(pmf, (2, 2, 2), log(mpf(4)))
    assert p_y[0] > 0 > min(p_y)


@pytest.mark.parametrize(("sizes", "pmf"), priors())
def test_order_of_the_three_levels(sizes, pmf):
    e_x, e_hat, e_tilde = (f(pmf, sizes) for f in (o.epsilon_x, o.epsilon_hat, o.epsilon_tilde))
    assert e_x <= e_hat + mpf("1e-45")
    assert e_hat <= e_tilde + mpf("1e-28")
    if max(sizes) == 2:
        assert close(e_x, e_hat)
    if len(sizes) == 1:
        assert close(e_hat, e_tilde)


@pytest.mark.parametrize(
    "marginals",
    [
        [[F(3, 10), F(7, 10)]] * 4,
        [[F(1, 10), F(3, 10), F(6, 10)], [F(1, 4), F(3, 4)]],
        [[F(1, 3), F(1, 3), F(1, 3)], [F(1, 20), F(9, 20), F(1, 2)]],
        [[F(1)], [F(1, 5), F(4, 5)], [F(1, 8), F(3, 8), F(2, 8), F(2, 8)]],
    ],
)
def test_product_formulas(marginals):
    sizes, pmf = [len(p) for p in marginals], o.product_pmf(marginals)
    tilde = max(log(o.num(1 / min(p) - len(p) + 1)) for p in marginals)
    assert close(o.epsilon_tilde(pmf, sizes), tilde)
    assert close(o.epsilon_hat(pmf, sizes), tilde)
    assert close(o.epsilon_x(pmf, sizes), max(o.log_ratio(max(p), min(p)) for p in marginals))


@pytest.mark.parametrize(("sizes", "pmf"), priors())
def test_epsilon_tilde_is_the_threshold(sizes, pmf):
    e = o.epsilon_tilde(pmf, sizes)
    for step in ("1e-25", "1e-3", "1", "20"):
        assert min(o.inverse_output(pmf, sizes, e + mpf(step))) > 0  # strictly, once above it
    for factor in ("1e-25", "1e-3", "0.5"):
        assert min(o.inverse_output(pmf, sizes, e * (1 - mpf(factor)))) < 0


# Channels


@pytest.mark.parametrize("m", [2, 3, 5])
def test_randomised_response_by_hand(m):
    eps = log(mpf(3))
    w = o.randomised_response(m, eps)
    assert close(w[0][0], F(3, m + 2))
    assert close(w[0][m - 1], F(1, m + 2))


@pytest.mark.parametrize(("sizes", "pmf"), priors())
def test_inverse_output_solves_the_linear_system(sizes, pmf):
    eps = mpf("0.8")
    p_y = o.inverse_output(pmf, sizes, eps)
    solved = lu_solve(matrix(o.e_d_matrix(sizes, eps)), matrix([o.num(v) for v in pmf]))
    assert all(close(a, b) for a, b in zip(p_y, solved, strict=True))
    assert all(
        close(a, b) for a, b in zip(o.output_law(o.e_d_matrix(sizes, eps), p_y), pmf, strict=True)
    )


def test_e_d_is_the_exponential_of_the_distance():
    n, m, eps = 3, 3, mpf("0.7")
    dbs, w = o.databases([m] * n), o.e_d_matrix([m] * n, eps)
    for x, y in product(range(len(dbs)), repeat=2):
        assert close(
            w[x][y], exp(-eps * o.hamming(dbs[x], dbs[y])) / (1 + (m - 1) * exp(-eps)) ** n
        )


def test_singular_and_infinite_levels():
    uniform = [F(1, 4)] * 4
    assert o.e_i_matrix(uniform, (2, 2), 0) == o.e_d_matrix((2, 2), 0)
    with pytest.raises(ValueError, match="singular"):
        o.inverse_output([F(1, 5), F(4, 5)], (2,), 0)
    identity = [[1, 0], [0, 1]]
    assert o.e_d_matrix((2,), inf) == identity == o.e_i_matrix([F(1, 5), F(4, 5)], (2,), inf)
    assert o.dp_level(identity, (2,)) == inf


def test_product_matrix_of_unequal_factors_by_hand():
    a = [[F(1, 2), F(1, 4), F(1, 4)], [F(0), F(1), F(0)]]
    b = [[F(1)], [F(1)], [F(1)]]
    c = [[F(1, 3), F(2, 3)]]
    w = o.product_matrix([a, b, c])
    assert (len(w), len(w[0])) == (6, 6)
    assert w[0] == w[1] == w[2] == [F(1, 6), F(1, 3), F(1, 12), F(1, 6), F(1, 12), F(1, 6)]
    assert w[5] == [0, 0, F(1, 3), F(2, 3), 0, 0]


def test_query_matrix_by_hand():
    assert o.query_matrix([0, 1, 1, 2], [[1, 0], [F(1, 2), F(1, 2)], [0, 1]])[1:] == [
        [F(1, 2), F(1, 2)],
        [F(1, 2), F(1, 2)],
        [0, 1],
    ]


# Measures


def test_measures_by_hand():
    w, p = [[F(3, 4), F(1, 4)], [F(1, 3), F(2, 3)]], [F(2, 5), F(3, 5)]
    assert [close(a, b) for a, b in zip(o.output_law(w, p), [F(1, 2), F(1, 2)], strict=True)] == [
        True
    ] * 2
    assert close(o.distortion(w, p, (2,)), F(3, 10))
    assert close(
        o.distortion_metric(w, p, [[1, 2], [3, 4]]), F(3, 10) + F(2, 10) + F(6, 10) + F(16, 10)
    )
    assert close(o.dp_level(w, (2,)), log(mpf(8) / 3))
    assert close(o.identifiability_level(w, p, (2,)), log(mpf(4)))
    expected = sum(
        o.num(q) * log(o.num(q) / o.num(a) * 2)
        for q, a in [
            (F(3, 10), F(2, 5)),
            (F(1, 10), F(2, 5)),
            (F(1, 5), F(3, 5)),
            (F(2, 5), F(3, 5)),
        ]
    )
    assert close(o.mutual_information(w, p), expected)
    assert close(o.entropy([F(1, 4)] * 4 + [0]), log(mpf(4)))
    assert close(o.min_entropy([F(1, 5), F(4, 5)]), log(mpf(5) / 4))


def test_zero_conventions():
    assert o.dp_level([[1, 0, 0], [1, 0, 0]], (2,)) == 0  # dead outputs are 0/0
    assert o.dp_level([[1, 0], [0.5, 0.5]], (2,)) == inf
    assert o.dp_level([[0.5, 0.5]], (1,)) == 0
    # an output that only a zero-probability database can produce does not count
    assert o.identifiability_level([[1, 0], [0, 1]], [1, 0], (2,)) == inf
    w = [[F(1, 2), F(1, 2), 0], [F(1, 2), F(1, 2), 0], [F(1, 2), F(1, 4), F(1, 4)]]
    assert o.mutual_information(w, [F(1, 2), F(1, 2), 0]) == 0
    assert o.output_law(w, [F(1, 2), F(1, 2), 0])[2] == 0


def test_identifiability_is_at_least_that_of_the_prior():
    rng = random.Random(3)
    for sizes, pmf in priors():
        w = random_channel(rng, len(pmf), 3)
        assert o.identifiability_level(w, pmf, sizes) >= o.epsilon_x(pmf, sizes) - mpf("1e-40")
        constant = [w[0]] * len(pmf)
        assert close(o.identifiability_level(constant, pmf, sizes), o.epsilon_x(pmf, sizes))
        assert abs(o.mutual_information(constant, pmf)) < mpf("1e-45")


# The paper and what was checked beside it


def test_h_and_its_inverse():
    assert close(o.h(log(mpf(4)), 1, 2), F(1, 5))
    assert o.h(0, 6, 3) == 4
    assert (o.h_inverse(0, 3, 2), o.h_inverse(3, 3, 2), o.h(5, 3, 1)) == (inf, -inf, 0)
    for n, m, eps in [(1, 2, 1), (5, 4, 0.3), (7, 3, 12)]:
        assert close(o.h_inverse(o.h(eps, n, m), n, m), eps)


@pytest.mark.parametrize("eps", [mpf("0.3"), mpf("1.7")])
@pytest.mark.parametrize(("sizes", "pmf"), priors())
def test_exact_levels_of_e_d_and_lemma_5(sizes, pmf, eps):
    w = o.e_d_matrix(sizes, eps)
    assert close(o.dp_level(w, sizes), eps)
    assert close(o.identifiability_level(w, pmf, sizes), eps + o.epsilon_x(pmf, sizes))
    assert close(o.distortion(w, pmf, sizes), h_mixed(eps, sizes))
    rate = o.entropy(o.output_law(w, pmf)) - sum(row_entropy(m, eps) for m in sizes)
    assert close(o.mutual_information(w, pmf), rate)
    if len(set(sizes)) == 1:
        assert close(o.distortion(w, pmf, sizes), o.h(eps, len(sizes), sizes[0]))


@pytest.mark.parametrize("extra", [mpf("0.01"), mpf("1.5")])
@pytest.mark.parametrize(("sizes", "pmf"), priors())
def test_exact_levels_of_e_i_and_lemma_4(sizes, pmf, extra):
    eps = o.epsilon_tilde(pmf, sizes) + extra
    w = o.e_i_matrix(pmf, sizes, eps)
    assert all(close(sum(row), 1) for row in w)
    assert close(o.identifiability_level(w, pmf, sizes), eps)
    assert close(o.dp_level(w, sizes), eps + o.epsilon_x(pmf, sizes))
    assert close(o.distortion(w, pmf, sizes), h_mixed(eps, sizes))
    rate = o.entropy(pmf) - sum(row_entropy(m, eps) for m in sizes)
    assert close(o.mutual_information(w, pmf), rate)
    if len(set(sizes)) == 1:  # theorem 1: identifiability equals h^-1 of the distortion
        d = o.distortion(w, pmf, sizes)
        assert close(o.identifiability_level(w, pmf, sizes), o.h_inverse(d, len(sizes), sizes[0]))


def test_lemmas_1_and_2_every_channel_lies_above_h():
    rng = random.Random(5)
    for sizes, pmf in priors():
        for _ in range(5):
            w = random_channel(rng, len(pmf), len(pmf))
            d, e_x = o.distortion(w, pmf, sizes), o.epsilon_x(pmf, sizes)
            assert d >= h_mixed(o.identifiability_level(w, pmf, sizes), sizes)
            assert d >= h_mixed(o.dp_level(w, sizes) + e_x, sizes)


def test_lemma_1_shells_of_a_posterior():
    n, m, eps = 3, 3, mpf("0.9")
    profile = o.shell_profile(o.e_d_matrix([m] * n, eps)[5], 5, [m] * n)
    g = 1 + (m - 1) * exp(-eps)
    assert all(
        close(v, comb(n, k) * ((m - 1) * exp(-eps)) ** k / g**n) for k, v in enumerate(profile)
    )
    for sizes, pmf in priors():
        e = o.epsilon_x(pmf, sizes)
        for y in range(len(pmf)):
            profile = o.shell_profile(pmf, y, sizes)
            assert close(sum(profile), 1)
            means = [v / o.shell_size(k, sizes) for k, v in enumerate(profile) if v > 0]
            assert all(a <= b * exp(e) + mpf("1e-40") for a, b in pairwise(means))


@pytest.mark.parametrize(("sizes", "pmf"), [(s, p) for s, p in priors() if len(p) <= 6])
def test_theorem_1_by_linear_programs(sizes, pmf):
    e_x, e_hat, e_tilde = (f(pmf, sizes) for f in (o.epsilon_x, o.epsilon_hat, o.epsilon_tilde))
    for eps in (e_tilde + mpf("0.01"), e_tilde + 1):
        assert lp_optimum(pmf, sizes, eps, "i") == pytest.approx(
            float(h_mixed(eps, sizes)), abs=1e-7
        )
    for eps in (e_hat + mpf("0.01"), e_hat + 1):
        assert lp_optimum(pmf, sizes, eps, "dp") == pytest.approx(
            float(h_mixed(eps, sizes)), abs=1e-7
        )
    assert lp_optimum(pmf, sizes, e_x * mpf("0.98"), "i") is None


# Where a statement needs a condition


def test_e_i_at_epsilon_tilde_can_have_a_smaller_dp_level():
    # n = 1, p = (1/5, 4/5): p_Y = (0, 1), so E_i is constant: DP level 0, not ln 4 + ln 4
    p, p_y, r = [F(1, 5), F(4, 5)], [F(0), F(1)], [[F(4, 5), F(1, 5)], [F(1, 5), F(4, 5)]]
    w = [[p_y[y] * r[x][y] / p[x] for y in range(2)] for x in range(2)]
    assert w == [[0, 1], [0, 1]]
    assert o.dp_level(w, (2,)) == 0
    assert close(o.identifiability_level(w, p, (2,)), log(mpf(4)))
    assert close(o.distortion(w, p, (2,)), o.h(log(mpf(4)), 1, 2))


def test_closed_endpoint_of_the_dp_optimum_fails():
    # D = h(eps_hat) = 1/5 = D of the constant answer, whose level is 0, not h^-1(D) = ln 4
    p, constant = [F(1, 5), F(4, 5)], [[0, 1], [0, 1]]
    e_hat = o.epsilon_hat(p, (2,))
    assert close(o.distortion(constant, p, (2,)), o.h(e_hat, 1, 2))
    assert o.dp_level(constant, (2,)) == 0


def test_rate_formulas_of_a_markov_window_need_a_stationary_chain():
    # from a nearly certain first row the entropy of a window is below the later entropy rate
    pmf = o.markov_pmf([F(99, 100), F(1, 100)], [[F(1, 2)] * 2] * 2, 4)
    w, eps = o.e_d_matrix((2,) * 4, mpf(2)), mpf(2)
    first = o.entropy(o.output_law(o.randomised_response(2, eps), [F(99, 100), F(1, 100)]))
    assert o.entropy(o.output_law(w, pmf)) > 4 * first
