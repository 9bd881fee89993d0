"""Post-processing is recognised; everything else is refuted by a decision problem."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp


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
    with pytest.raises(fp.InvalidInput, match="same databases"):
        fp.refines(fp.HammingChannel(2, 2, 1.0), fp.HammingChannel(3, 2, 1.0))
    wide = np.full((256, 256), 1.0 / 256)
    with pytest.raises(fp.TooLarge, match="linear program"):
        fp.refines(wide, wide)
