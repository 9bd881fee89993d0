"""Chances below the range of a double: a zero that is none proves nothing."""

from itertools import permutations

import numpy as np
import pytest
from mpmath import mp

import fastpriv as fp
import oracles as o
from oracles import profile as op

P = fp.accounting.PrivacyProfile

#: Laws whose tilts underflow, in some rows or in all.
LAWS = [
    (fp.Uniform(1, 2), lambda: [o.num(1) / 2] * 2),
    (
        fp.Markov([0.75, 0.25], [[1.0, 0.0], [0.535, 0.465]], 2),
        lambda: markov([0.75, 0.25], [[1.0, 0.0], [0.535, 0.465]], 2),
    ),
    (
        fp.Markov([0.0, 1.0], [[1.0, 5e-10], [1.0, 5e-10]], 2),
        lambda: markov([0.0, 1.0], [[1.0, 5e-10], [1.0, 5e-10]], 2),
    ),
    (
        fp.Markov([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], 3),
        lambda: markov([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], 3),
    ),
    (
        fp.Dense([2.0**-20, 0.0, 2.0**-20, 0.375, 0.0, 0.5, 0.0, 0.125 - 2.0**-19], [2, 2, 2]),
        lambda: o.normal([2.0**-20, 0.0, 2.0**-20, 0.375, 0.0, 0.5, 0.0, 0.125 - 2.0**-19]),
    ),
]


def markov(initial, chain, n):
    return o.markov_pmf(o.normal(initial), [o.normal(row) for row in chain], n)


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workdps(1200):
        yield


@pytest.mark.slow(but=["law0-<lambda>-457.4", "law0-<lambda>-720.0", "law3-<lambda>-720.0"])
@pytest.mark.parametrize("epsilon", [457.4, 720.0])
@pytest.mark.parametrize(("law", "exact"), LAWS)
def test_tilted_laws(law, exact, epsilon):
    channel, sizes = fp.TiltedChannel(law, epsilon), law.space.sizes
    W = o.tilted_matrix(exact(), list(sizes), epsilon)
    assert fp.maximal_leakage(channel) >= o.maximal_leakage(W)
    assert fp.maximal_leakage(channel) <= o.maximal_leakage(W) + mp.mpf("1e-12")
    one, two = P.of(channel), P.of(channel).self_compose(2)
    for t in (1.0, 0.9 * epsilon):
        truth = o.hockey_stick(W, list(sizes), t)
        assert truth <= fp.hockey_stick(channel, t) <= truth + mp.mpf("1e-12")
        delta = one.delta(t)
        assert delta.lower <= truth <= delta.upper
    pairs = o.neighbour_pairs(sizes)
    for t in (1.5 * epsilon, 1.9 * epsilon):
        assert two.delta(t).lower <= op.worst_delta([(W, 2)], pairs, t)
    for adaptive in (False, True):
        nothing = op.declared_pair(0.0, 0.0)
        least = op.worst_epsilon([(W, 2)], nothing, pairs, 1e-6, mp.mpf("1e-30"))
        answer = two.epsilon(1e-6, adaptive=adaptive)
        assert answer.lower <= least[1]
        assert answer.upper >= least[0]


def test_column_maxima_of_far_databases():
    law = fp.Markov([1.0, 0.0], [[0.0, 1.0], [1.0, 0.0]], 3)
    channel = fp.TiltedChannel(law, 700.0)
    matrix = channel.matrix()
    np.testing.assert_allclose(channel.column_maxima(), matrix.max(axis=0), rtol=1e-12)
    np.testing.assert_allclose(channel.column_minima(), matrix.min(axis=0), rtol=1e-12)


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_fixed_pairs_that_differ_by_little(order):
    """Pairs are told apart by their digits, however small the numbers are."""
    rows = [[0.5, 0.5, 0.0], [0.5, 0.5 - 1e-13, 1e-13], [0.5, 0.5 - 2e-13, 2e-13]]
    W = [rows[j] for j in order]
    truth = o.hockey_stick(o.nums(W), [3], 0.1)
    delta = P.of(W).delta(0.1, adaptive=False)
    assert delta.lower <= truth <= delta.upper <= truth * (1 + mp.mpf("1e-9"))


def test_no_finite_lower_end_is_infinite():
    """E_d at 745 has entries of 5e-324, and a uniform law tilted there zeros."""
    channel = fp.TiltedChannel(fp.Uniform(1, 2), 745.0)
    assert P.of(channel).delta(745.0).lower == 0.0
    assert P.of(channel).epsilon(0.0).lower <= 745.0


def test_a_subnormal_lower_bound_of_one_sampled_step_holds():
    # delta is 1.7457e-323: four subnormals, 1.976e-323, are more.
    answer = fp.accounting.PrivacyProfile.gaussian(7.21363, 0.00214496).delta(0.354495)
    assert answer.lower <= 1.5e-323
    assert answer.upper >= 2e-323


@pytest.mark.slow
def test_a_grid_whose_windows_do_not_meet_has_no_lower_bound():
    of = fp.accounting.PrivacyProfile
    answer = (
        of.from_epsilon_delta(0.20756)
        .poisson_subsampled(0.00837626)
        .compose(of.from_epsilon_delta(0.0330312, 5.61844e-12).self_compose(2), of.laplace(1.05048))
    )
    level = answer.epsilon(4.13849e-09)
    assert 0.0 < level.lower <= level.upper < 1.1
