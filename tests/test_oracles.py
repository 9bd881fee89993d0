"""Sanity tests of the oracles against cases that can be computed by hand."""

import random
from fractions import Fraction as F  # noqa: N817
from itertools import product
from math import comb

import pytest
from mpmath import exp, inf, log, lu_solve, matrix, mpf

import oracles as o
from oracle_cases import (
    SPACES,
    close,
    priors,
    random_channel,
)

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
