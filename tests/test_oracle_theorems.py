"""The oracles against the statements of the paper, and where one needs a condition."""

import random
from fractions import Fraction as F  # noqa: N817
from itertools import pairwise
from math import comb

import pytest
from mpmath import exp, inf, log, mpf

import oracles as o
from oracle_cases import (
    close,
    h_mixed,
    lp_optimum,
    priors,
    random_channel,
    row_entropy,
)

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


@pytest.mark.slow
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
