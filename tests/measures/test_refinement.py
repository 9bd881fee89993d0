"""Post-processing is recognised; everything else is refuted by a decision problem."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import fastpriv as fp
from oracles import gains as plain


def channel(rng, n, k):
    return rng.dirichlet(np.full(k, 0.7), size=n)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_every_post_processing_is_recognised(seed, n, inner, outer):
    rng = np.random.default_rng(seed)
    A, R = channel(rng, n, inner), channel(rng, inner, outer)
    result = fp.refines(A, A @ R)
    assert result
    np.testing.assert_allclose(A @ result.processing.matrix(), A @ R, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 4), st.integers(2, 4))
def test_the_bracket_is_proved_on_both_sides(seed, n, inner, outer):
    rng = np.random.default_rng(seed)
    A, B = channel(rng, n, inner), channel(rng, n, outer)
    result = fp.refines(A, B)
    R = result.processing.matrix()
    assert abs(R.sum(axis=1) - 1.0).max() < 1e-12
    variation = 0.5 * abs(A @ R - B).sum(axis=1).max()
    assert variation <= result.deficiency.upper <= variation + 1e-9
    assert result.deficiency.width < 1e-8
    if result.prior is not None:  # the decision problem: b is worth more than any use of a
        gain = result.prior[:, None] * result.utility
        assert 0.0 <= result.utility.min() <= result.utility.max() <= 1.0
        advantage = (gain * B).sum() - (A.T @ gain).max(axis=1).sum()
        assert advantage >= result.deficiency.lower - 1e-12


def separation(result, A, B):
    """What b is worth more than a in the decision problem of a result, in Fractions."""
    p, g = plain.exact(result.prior), plain.exact(result.gain)
    worth = [plain.posterior_vulnerability(plain.exact(W), p, g) for W in (A, B)]
    return worth[1] - worth[0]


def mean_deficiency(A, B, p, bounded):
    """The same distance from the side of gains: one action for each output of b, by scipy."""
    (n, inner), outer = A.shape, B.shape[1]
    g, best = np.arange(outer * n).reshape(outer, n), outer * n + np.arange(inner)
    cost = np.concatenate([-(p[:, None] * B).T.reshape(-1), np.ones(inner)])
    rows = np.zeros((inner * outer, len(cost)))
    for y in range(inner):  # best[y] >= sum_x p(x) A[x, y] g[z, x]
        for z in range(outer):
            rows[y * outer + z, g[z]] = p * A[:, y]
            rows[y * outer + z, best[y]] = -1.0
    each, after = ((None, 1.0), (0.0, None)) if bounded else ((0.0, 1.0), (None, None))
    bounds = [each] * g.size + [after] * inner
    return -linprog(cost, rows, np.zeros(len(rows)), bounds=bounds).fun


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 4),
    st.booleans(),
)
def test_deficiency_under_a_prior(seed, n, inner, outer, bounded):
    rng = np.random.default_rng(seed)
    A, B = channel(rng, n, inner), channel(rng, n, outer)
    B[rng.random(B.shape) < 0.2] = 0.0
    B[:, 0] += 1.0 - B.sum(axis=1)
    p = rng.dirichlet(np.ones(n))
    if n > 2:
        p[0] = 0.0
        p /= p.sum()
    gains = "bounded" if bounded else "unit"
    result = fp.refines(A, B, p, gains=gains)
    true = mean_deficiency(A, B, p, bounded)
    assert result.deficiency.lower <= true + 1e-8
    assert result.deficiency.upper >= true - 1e-8
    assert result.deficiency.width < 1e-8
    R = result.processing.matrix()
    variation = p @ np.maximum(B - A @ R, 0.0).sum(axis=1)
    assert variation <= result.deficiency.upper + 1e-15  # also where only a part is b's
    if result.prior is not None:
        assert separation(result, A, B) >= Fraction(result.deficiency.lower)
        assert result.gain.max() <= 1.0 + 1e-12
        np.testing.assert_allclose(result.prior, p, atol=1e-15)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(1, 4), st.integers(2, 4))
def test_the_worst_prior_is_the_worst(seed, n, inner, outer):
    rng = np.random.default_rng(seed)
    A, B = channel(rng, n, inner), channel(rng, n, outer)
    for gains in ("unit", "bounded"):
        worst = fp.refines(A, B, gains=gains)
        assert worst.deficiency.width < 1e-8
        if worst.prior is not None:
            assert separation(worst, A, B) >= Fraction(worst.deficiency.lower)
            again = fp.refines(A, B, worst.prior, gains=gains)
            assert again.deficiency.upper >= worst.deficiency.lower
        p = rng.dirichlet(np.ones(n))
        assert fp.refines(A, B, p, gains=gains).deficiency.lower <= worst.deficiency.upper


def test_the_additive_metric_of_libqif():
    # Its tests have this value in rational arithmetic.
    prior = [0.62, 0.03, 0.35]
    A = [[0.1, 0.4, 0.1, 0.4], [0.2, 0.2, 0.3, 0.3], [0.5, 0.1, 0.1, 0.3]]
    B = [[0.2, 0.22, 0.58], [0.2, 0.4, 0.4], [0.35, 0.4, 0.25]]
    result = fp.refines(A, B, prior, gains="bounded")
    assert 18643 / 2220000 in result.deficiency
    assert result.deficiency.width < 1e-9
    assert separation(result, A, B) >= Fraction(result.deficiency.lower)


def test_knowing_nothing_is_as_deficient_as_the_best_gain():
    rng = np.random.default_rng(11)
    W, p, nothing = channel(rng, 4, 3), rng.dirichlet(np.ones(4)), np.ones((4, 1))
    for gains in ("unit", "bounded"):
        most = fp.additive_gain_capacity(W, p, gains)
        assert fp.refines(nothing, W, p, gains=gains).deficiency.upper == pytest.approx(
            most, abs=1e-9
        )


def test_products_under_independent_rows():
    a, b = fp.HammingChannel(3, 2, 1.0), fp.HammingChannel(3, 2, 1.3)
    prior = fp.Product([[0.3, 0.7], [0.5, 0.5], [0.5, 0.5]])
    for gains in ("unit", "bounded"):
        rows = fp.refines(a, b, prior, gains=gains).deficiency
        dense = fp.refines(a.matrix(), b.matrix(), prior.pmf(), gains=gains).deficiency
        assert rows.lower <= dense.upper
        assert dense.lower <= rows.upper
        assert rows.lower > 0.0


def test_a_refinement_leaks_at_least_as_much():
    rng = np.random.default_rng(5)
    A = channel(rng, 4, 5)
    B = A @ channel(rng, 5, 3)
    assert fp.refines(A, B)
    prior = rng.dirichlet(np.ones(4))
    for measure in (fp.maximal_leakage, fp.leakage_capacity, fp.dp_level):
        assert measure(A) >= measure(B) - 1e-12
    assert fp.mutual_information(A, prior) >= fp.mutual_information(B, prior) - 1e-12


def test_less_leakage_alone_is_no_refinement():
    # An erasure channel and a symmetric one: more information, yet not more useful for all.
    erasure = np.array([[0.6, 0.0, 0.4], [0.0, 0.6, 0.4]])
    symmetric = np.array([[0.9, 0.1], [0.1, 0.9]])
    assert fp.mutual_information(erasure, [0.5, 0.5]) > fp.mutual_information(symmetric, [0.5, 0.5])
    assert not fp.refines(erasure, symmetric)
    assert not fp.refines(symmetric, erasure)


@pytest.mark.parametrize("m", [2, 3])
def test_randomised_response_is_ordered_by_its_level(m):
    stronger, weaker = fp.HammingChannel(1_000, m, 1.0), fp.HammingChannel(1_000, m, 0.75)
    assert fp.refines(stronger, weaker)
    backwards = fp.refines(weaker, stronger)
    assert not backwards
    assert backwards.deficiency.lower > 0.01


def test_rows_agree_with_the_matrix():
    a, b = fp.HammingChannel(3, 2, 1.0), fp.HammingChannel(3, 2, 1.3)
    by_rows, dense = fp.refines(a, b), fp.refines(a.matrix(), b.matrix())
    assert by_rows.deficiency.lower <= dense.deficiency.upper
    assert dense.deficiency.lower <= by_rows.deficiency.upper


def test_zeros_and_constants():
    perfect, nothing = np.eye(3), np.full((3, 1), 1.0)
    assert fp.refines(perfect, nothing)
    assert fp.refines(nothing, nothing)
    assert fp.refines(nothing, perfect).deficiency.lower == pytest.approx(2.0 / 3.0, abs=1e-9)


def test_bad_input():
    with pytest.raises(fp.InvalidInput, match="gains must be one of unit, bounded"):
        fp.refines(np.eye(2), np.eye(2), gains="all")
    with pytest.raises(fp.InvalidInput, match="prior has 3 entries"):
        fp.refines(np.eye(2), np.eye(2), [0.5, 0.25, 0.25])
    with pytest.raises(fp.InvalidInput, match="same databases"):
        fp.refines(fp.HammingChannel(2, 2, 1.0), fp.HammingChannel(3, 2, 1.0))
    wide = np.full((256, 256), 1.0 / 256)
    with pytest.raises(fp.TooLarge, match="linear program"):
        fp.refines(wide, wide)
