"""Mappings against inference: closed forms, duality, a plain reference, the ends, hostile input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import law
from fastpriv._core import highs as _highs

HAMMING = 1.0 - np.eye(2)


def entropy(p):
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def random_problem(seed, k, n, m, zeros=0.0):
    """Return a joint law and a metric, and the ends of its distortions."""
    rng = np.random.default_rng(seed)
    joint = law(rng, k * n, 0.02).reshape(k, n) * (rng.random((k, n)) >= zeros)
    joint[0, 0] += 0.1
    joint /= joint.sum()
    metric = rng.random((n, m)) - 0.2
    p = joint.sum(axis=0)
    return joint, metric, float(p @ metric.min(axis=1)), float((p @ metric).min())


def spent(solution, joint, metric):
    """Return the exact expected distortion."""
    p = [sum(o.num(v) for v in column) for column in np.transpose(joint).tolist()]
    return o.distortion_metric(solution.channel.matrix().tolist(), p, np.asarray(metric).tolist())


def check(solution, joint, metric, budget, gap=1e-8):
    """Check what every answer must satisfy: its own numbers, the budget and the gap."""
    W = solution.channel.matrix()
    assert np.allclose(W.sum(axis=1), 1.0, atol=1e-14)
    truth = o.inference_leakage(np.asarray(joint).tolist(), W.tolist())
    # Rounded P(y|s) shift a small information by their error times its square root.
    assert abs(solution.value - truth) <= 1e-12 * truth + 1e-15 * math.sqrt(max(truth, 0)) + 1e-30
    assert solution.level == solution.value >= solution.bound >= 0.0
    assert spent(solution, joint, metric) <= budget + 1e-15 * max(1.0, abs(budget))
    assert solution.value - solution.bound <= gap * max(solution.value, 1e-6)


# Examples 1 and 2 of Makhdoumi-Fawaz.


@pytest.mark.parametrize("p", [0.0, 0.01, 0.2, 0.45])
@pytest.mark.parametrize("D", [1e-6, 0.01, 0.1, 0.3, 0.49])
def test_a_bit_through_two_symmetric_channels(p, D):
    joint = [[(1 - p) / 2, p / 2], [p / 2, (1 - p) / 2]]
    best = fp.design_mapping(joint, HAMMING, D)
    check(best, joint, HAMMING, D)
    both = p * (1 - D) + (1 - p) * D
    optimum = math.log(2) - entropy(both)
    assert best.value == pytest.approx(optimum, rel=2e-8, abs=1e-15)
    assert best.bound <= optimum * (1 + 1e-12)
    assert best.channel.matrix()[0, 1] == pytest.approx(D, abs=2e-4)
    # Example 2: the leak is at most (1-2D)^2 of what X tells.
    assert best.value <= (1 - 2 * D) ** 2 * (math.log(2) - (entropy(p) if p else 0.0)) + 1e-9


def test_a_bit_at_half_distortion_tells_nothing():
    best = fp.design_mapping([[0.4, 0.1], [0.1, 0.4]], HAMMING, 0.5)
    assert (best.value, best.bound, best.method) == (0.0, 0.0, "closed-form")


def test_rate_distortion_is_the_case_s_equals_x():
    # Binary source: R(D) = h(p) - h(D).
    best = fp.design_mapping(np.diag([0.3, 0.7]), HAMMING, 0.1)
    assert best.value == pytest.approx(entropy(0.3) - entropy(0.1), rel=1e-8)


# Optimality.


@pytest.mark.parametrize(
    "shape", [(2, 2, 2), (2, 5, 5), (5, 3, 4), (3, 6, 2), (7, 2, 5), (4, 4, 9)]
)
@pytest.mark.parametrize("part", [1e-7, 0.02, 0.4, 0.9])
def test_random_problems_are_solved_to_the_gap(shape, part):
    joint, metric, least, most = random_problem(sum(shape), *shape)
    budget = least + part * (most - least)
    check(fp.design_mapping(joint, metric, budget), joint, metric, budget)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5)),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 0.4]),
)
def test_no_mapping_beats_the_bound(seed, shape, part, zeros):
    joint, metric, least, most = random_problem(seed, *shape, zeros)
    budget = least + part * (most - least)
    best = fp.design_mapping(joint, metric, budget)
    check(best, joint, metric, budget, 1e-6)
    rng = np.random.default_rng(seed + 1)
    cheapest = np.eye(shape[2])[np.argmin(metric, axis=1)]
    p = joint.sum(axis=0)
    for _ in range(5):
        other = rng.dirichlet(np.full(shape[2], 0.3), shape[1])
        extra = p @ (other * metric).sum(axis=1) - least
        share = 1.0 if extra <= budget - least else (budget - least) / extra
        mixed = share * other + (1 - share) * cheapest
        leak = o.inference_leakage(joint.tolist(), mixed.tolist())
        assert leak >= best.bound - 1e-12


@pytest.mark.parametrize(("seed", "shape", "slope"), [(0, (2, 3, 3), 0.3), (4, (3, 2, 4), 0.3)])
def test_against_mirror_descent(seed, shape, slope):
    joint, metric, *_ = random_problem(seed, *shape)
    W = o.mirror_descent(joint.tolist(), metric.tolist(), slope, 6000)
    p = joint.sum(axis=0)
    reached = float(o.distortion_metric(W, p.tolist(), metric.tolist()))
    leak = float(o.inference_leakage(joint.tolist(), W))
    assert leak > 1e-4
    best = fp.design_mapping(joint, metric, reached)
    assert best.bound <= leak
    assert best.value == pytest.approx(leak, rel=1e-6)


def test_independent_pairs_add_up():
    joint = np.array([[0.4, 0.15], [0.05, 0.4]])
    D = 0.12
    one = fp.design_mapping(joint, HAMMING, D)
    pairs = np.kron(joint, joint)
    metric = np.kron(HAMMING, np.ones((2, 2))) + np.kron(np.ones((2, 2)), HAMMING)
    both = fp.design_mapping(pairs, metric, 2 * D)
    assert both.value == pytest.approx(2 * one.value, rel=3e-8)
    assert both.bound <= 2 * one.value


def test_the_curve_falls_and_is_convex():
    joint, metric, least, most = random_problem(5, 3, 4, 4)
    found = [fp.design_mapping(joint, metric, D) for D in np.linspace(least, most, 9)]
    values = np.array([s.value for s in found])
    assert (np.diff(values) < 1e-9).all()
    assert (np.diff(values, 2) > -1e-8).all()
    assert values[-1] == 0.0


def test_more_outputs_and_coarser_secrets_leak_less():
    joint, metric, least, most = random_problem(6, 4, 3, 5)
    D = 0.5 * (least + most)
    full = fp.design_mapping(joint, metric, D)
    coarse = np.array([joint[0] + joint[1], joint[2] + joint[3]])
    assert fp.design_mapping(coarse, metric, D).bound <= full.value
    fewer = fp.design_mapping(joint, metric[:, :3], D + 1.0)
    assert full.bound <= fp.design_mapping(joint, metric, D - 1e-3).value
    assert fewer.value == 0.0


@pytest.mark.parametrize("part", [1e-3, 1e-5])
def test_small_informations_keep_their_digits(part):
    joint = np.array([[0.4, 0.1], [0.1, 0.4]])
    D = 0.5 - part
    best = fp.design_mapping(joint, HAMMING, D)
    z = o.mpf(2) * (o.mpf("0.5") - o.num(D)) * o.mpf("0.6")  # 1 - 2 (p * D)
    optimum = ((1 + z) * o.log(1 + z) + (1 - z) * o.log(1 - z)) / 2
    assert best.bound <= optimum
    assert abs(best.value - optimum) <= 1e-6 * optimum


@pytest.mark.parametrize("rare", [1e-6, 1e-12, 1e-30, 1e-200])
def test_rare_values(rare):
    joint = np.array([[0.4, 0.1, rare], [0.1, 0.4, 0.0], [rare, 0.0, rare]])
    joint /= joint.sum()
    metric = 1.0 - np.eye(3)
    best = fp.design_mapping(joint, metric, 0.1)
    plain = fp.design_mapping([[0.4, 0.1], [0.1, 0.4]], HAMMING, 0.1)
    assert best.value == pytest.approx(plain.value, abs=1e-7 + 100 * rare)
    assert 0.0 <= best.value - best.bound <= 1e-7


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("shift", [0.0, -3.0])
def test_units_of_the_metric_do_not_matter(scale, shift):
    joint, metric, least, most = random_problem(3, 3, 3, 4)
    D = 0.6 * least + 0.4 * most
    plain = fp.design_mapping(joint, metric, D)
    other = fp.design_mapping(joint, scale * (metric + shift), scale * (D + shift))
    assert other.value == pytest.approx(plain.value, rel=3e-8)


def test_outputs_at_forbidding_cost():
    joint, metric, least, most = random_problem(4, 3, 4, 4)
    D = 0.7 * least + 0.3 * most
    wide = np.hstack([metric, np.full((4, 1), 1e12)])
    best = fp.design_mapping(joint, wide, D)
    assert best.value == pytest.approx(fp.design_mapping(joint, metric, D).value, rel=1e-7)


# The ends.


def test_the_least_distortion_leaves_only_the_cheapest_outputs():
    rng = np.random.default_rng(0)
    joint = law(rng, 12).reshape(3, 4)
    metric = rng.integers(0, 2, (4, 5)).astype(float)
    metric[:, 0] = [0, 1, 1, 0]
    p = joint.sum(axis=0)
    least = fp.least_distortion(p, metric)
    best = fp.design_mapping(joint, metric, least)
    check(best, joint, metric, least)
    costly = metric > metric.min(axis=1, keepdims=True)
    assert (best.channel.matrix()[costly] == 0.0).all()
    identity = fp.design_mapping(joint, 1 - np.eye(4), 0.0)
    assert identity.method == "closed-form"
    truth = o.inference_leakage(joint.tolist(), np.eye(4).tolist())
    assert identity.value == pytest.approx(float(truth), rel=1e-13)
    above = fp.design_mapping(joint, metric, least + 1e-9)
    assert best.value - 1e-6 <= above.value <= best.value * (1 + 1e-9)


def test_a_choice_that_costs_nothing_hides_all():
    # Two outputs are as good for each x, and one of them is common to all.
    best = fp.design_mapping([[0.5, 0.1], [0.1, 0.3]], [[0, 0, 2], [1, 0, 0]], 0.0)
    assert best.value <= 1e-30


def test_too_small_a_budget_names_the_least():
    joint, metric, least, _ = random_problem(1, 2, 3, 3)
    with pytest.raises(fp.Infeasible, match=repr(round(least, 6))[:6]):
        fp.design_mapping(joint, metric, least - 1e-6)


def test_perfect_privacy_keeps_what_is_independent_of_s():
    # X = (S, bit); wrong halves cost 1 and 3. Y keeps the bit and guesses S.
    joint = np.array([[0.3, 0.3, 0, 0], [0, 0, 0.2, 0.2]])
    metric = np.array([[0, 3, 1, 4], [3, 0, 4, 1], [1, 4, 0, 3], [4, 1, 3, 0]], float)
    best = fp.perfect_privacy(joint, metric)
    assert best.value == pytest.approx(0.4, abs=1e-12)
    assert best.bound <= 0.4 + 1e-15
    assert best.value - best.bound <= 1e-12
    assert best.level <= 1e-25
    above = fp.design_mapping(joint, metric, 0.4 + 1e-6)
    assert above.value <= 1e-18
    assert above.bound == pytest.approx(0.0, abs=1e-18)
    assert fp.design_mapping(joint, metric, 0.39).bound > 1e-6


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.tuples(*[st.integers(1, 5)] * 3), st.sampled_from([0.0, 0.4]))
def test_perfect_privacy_is_where_the_curve_ends(seed, shape, zeros):
    joint, metric, least, most = random_problem(seed, *shape, zeros)
    best = fp.perfect_privacy(joint, metric)
    assert best.bound <= best.value <= most + 1e-12
    assert best.value >= least - 1e-12
    assert best.value - best.bound <= 1e-7
    assert best.value == pytest.approx(float(spent(best, joint, metric)), abs=1e-13)
    assert best.level <= 1e-15
    assert abs(best.level - o.inference_leakage(joint.tolist(), best.channel.matrix())) <= 1e-25
    assert fp.design_mapping(joint, metric, best.value + 1e-3).bound <= 1e-12
    if best.bound - 1e-2 > least:
        assert fp.design_mapping(joint, metric, best.bound - 1e-2).bound > 0.0


@pytest.mark.parametrize(
    ("joint", "metric"),
    [
        ([[0.2, 0.3, 0.5]], 1 - np.eye(3)),  # one secret
        ([[0.2], [0.8]], [[1.0, 0.5]]),  # one input
        ([[0.2, 0.3], [0.4, 0.1]], [[1.0], [0.5]]),  # one output
        (np.outer([0.3, 0.7], [0.2, 0.5, 0.3]), 1 - np.eye(3)),  # independent
        ([[0.0, 0.5, 0.5], [0.0, 0.0, 0.0]], 1 - np.eye(3)),  # impossible values
    ],
)
def test_nothing_to_hide(joint, metric):
    p = np.sum(joint, axis=0)
    least = fp.least_distortion(p, metric)
    best = fp.design_mapping(joint, metric, least)
    assert best.value <= 1e-30
    assert best.bound == 0.0
    assert best.method == "closed-form"
    assert fp.distortion(best.channel, p, metric) == pytest.approx(least, abs=1e-15)
    assert fp.perfect_privacy(joint, metric).value == pytest.approx(least, abs=1e-12)


def test_impossible_values_change_nothing():
    joint, metric, least, most = random_problem(2, 3, 3, 3)
    D = 0.5 * (least + most)
    wide = np.zeros((4, 4))
    wide[:3, [0, 2, 3]] = joint
    more = np.vstack([metric[:1], [[5.0, -9.0, 1.0]], metric[1:]])
    best = fp.design_mapping(wide, more, D)
    assert best.value == pytest.approx(fp.design_mapping(joint, metric, D).value, rel=1e-9)
    assert best.channel.matrix()[1].tolist() == [0.0, 1.0, 0.0]


# Fano.


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.floats(0.0, 1.0))
def test_nobody_guesses_better_than_fano(seed, k, part):
    joint, metric, least, most = random_problem(seed, k, 4, 4)
    best = fp.design_mapping(joint, metric, least + part * (most - least))
    error = o.guessing_error(joint.tolist(), best.channel.matrix().tolist())
    assert best.error_bound <= error
    prior = joint.sum(axis=1)
    again = fp.error_probability_bound(best.leakage_factor, prior)
    assert best.error_bound == pytest.approx(again, rel=1e-12, abs=1e-12)
    W = [
        [float(v) for v in row]
        for row in o.secret_channel(joint.tolist(), best.channel.matrix())[0]
    ]
    assert fp.leakage_factor(W, prior) == pytest.approx(best.leakage_factor, rel=1e-9, abs=1e-15)


# Hostile input.

JOINT = [[0.4, 0.1], [0.1, 0.4]]


@pytest.mark.parametrize(
    ("joint", "metric", "budget"),
    [
        ([0.5, 0.5], HAMMING, 0.1),
        ([[0.4, 0.1], [0.1, 0.5]], HAMMING, 0.1),
        ([[0.6, -0.1], [0.1, 0.4]], HAMMING, 0.1),
        ([[math.nan, 0.1], [0.1, 0.4]], HAMMING, 0.1),
        ([], HAMMING, 0.1),
        ("joint", HAMMING, 0.1),
        (JOINT, np.ones((3, 2)), 0.1),
        (JOINT, [0.0, 1.0], 0.1),
        (JOINT, np.empty((2, 0)), 0.1),
        (JOINT, [[0, math.inf], [1, 0]], 0.1),
        (JOINT, [[0, math.nan], [1, 0]], 0.1),
        (JOINT, [["a", "b"], ["c", "d"]], 0.1),
        (JOINT, HAMMING, math.nan),
        (JOINT, HAMMING, math.inf),
        (JOINT, HAMMING, "much"),
        (JOINT, HAMMING, None),
    ],
)
def test_bad_problems_are_refused_in_words(joint, metric, budget):
    with pytest.raises(fp.InvalidInput):
        fp.design_mapping(joint, metric, budget)


def test_bad_limits_and_sizes():
    for options in ({"gap": 0.0}, {"gap": math.nan}, {"time_limit": 0.0}, {"time_limit": -1}):
        with pytest.raises(fp.InvalidInput):
            fp.design_mapping(JOINT, HAMMING, 0.1, **options)
    with pytest.raises(fp.TooLarge):
        fp.design_mapping(np.full((600, 600), 1 / 360000), 1 - np.eye(600), 0.1)
    with pytest.raises(fp.InvalidInput, match="criterion"):
        fp.design_worst_case([0.5, 0.5], 0.1, criterion="entropy")
    with pytest.raises(fp.InvalidInput, match="prior"):
        fp.design_worst_case(None, 0.1)
    with pytest.raises(fp.InvalidInput):
        fp.design_worst_case(None, 0.1, 5.0)
    with pytest.raises(fp.Infeasible, match="smallest"):
        fp.design_worst_case([0.5, 0.5], -0.1)


def test_huge_and_negative_metrics():
    metric = [[-1e308, 1e308], [1e308, -1e308]]
    best = fp.design_mapping(JOINT, metric, -0.8e308)
    assert best.value == pytest.approx(math.log(2) - entropy(0.2 * 0.9 + 0.8 * 0.1), rel=1e-7)
    assert fp.design_mapping(JOINT, np.zeros((2, 2)), 0.0).value == 0.0
    assert fp.design_mapping(JOINT, HAMMING * 1e-310, 1e300).value == 0.0


def test_a_time_limit_returns_something_certified():
    joint, metric, least, most = random_problem(8, 20, 20, 20)
    D = 0.9 * least + 0.1 * most
    with pytest.warns(fp.GapWarning, match="the time limit passed"):
        best = fp.design_mapping(joint, metric, D, time_limit=1e-9)
    assert not best.converged
    assert best.bound <= fp.design_mapping(joint, metric, D).value <= best.value
    assert spent(best, joint, metric) <= D


def test_inputs_are_left_alone():
    joint, metric = np.array(JOINT), HAMMING.copy()
    fp.design_mapping(joint, metric, 0.1)
    fp.perfect_privacy(joint, metric)
    assert np.array_equal(joint, JOINT)
    assert np.array_equal(metric, HAMMING)


def test_programs_that_are_not_numbers_or_have_no_answer():
    def rows(entry, lower, upper):
        one = np.ones(1)
        return _highs.Rows(np.array([0, 1]), np.array([0]), one * entry, one * lower, one * upper)

    answer = _highs.minimise(np.ones(1), np.zeros(1), rows(1.0, 2.0, 3.0), 10.0)
    assert answer.values[0] == pytest.approx(2.0)
    for cost, problem in [
        (np.array([math.nan]), rows(1.0, 0.0, 1.0)),
        (np.ones(1), rows(math.inf, 0.0, 1.0)),
        (np.ones(1), rows(1.0, math.nan, 1.0)),
    ]:
        with pytest.raises(fp.SolverFailure, match="finite"):
            _highs.minimise(cost, np.zeros(1), problem, 10.0)
    with pytest.raises(fp.SolverFailure, match="Infeasible"):
        _highs.minimise(np.ones(1), np.zeros(1), rows(1.0, -2.0, -1.0), 10.0)


@pytest.mark.parametrize("off", [1e-7, 1e-9, 1e-12])
def test_nearly_independent_secrets_can_be_hidden_by_silence(off):
    joint = np.outer([0.4, 0.6], [0.3, 0.7]) + off * np.array([[1, -1], [-1, 1]])
    for each in (joint, [[1 - off, 0.0], [0.0, off]]):
        best = fp.perfect_privacy(each, HAMMING)
        assert best.level <= 1e-9 * off
        assert best.bound <= best.value <= np.min(np.sum(each, axis=0)) * (1 + 1e-9)


def test_least_distortion_takes_the_joint_law_or_that_of_x():
    joint, metric = [[0.5, 0.1], [0.1, 0.3]], [[1, 2, 3], [4, 2, 5]]
    assert fp.least_distortion(joint, metric) == pytest.approx(0.6 * 1 + 0.4 * 2, rel=1e-15)
    assert fp.least_distortion(joint, metric) == fp.least_distortion([0.6, 0.4], metric)
    with pytest.raises(fp.InvalidInput, match="joint distribution of S and X"):
        fp.least_distortion([0.6, 0.6], metric)


def test_the_default_metric_counts_errors():
    joint = [[0.4, 0.1, 0.0], [0.1, 0.2, 0.2]]
    plain, given = (
        fp.design_mapping(joint, distortion=0.1),
        fp.design_mapping(joint, 1 - np.eye(3), 0.1),
    )
    assert plain.value == given.value
    assert fp.design_mapping(joint, None, 0.1).value == given.value
    with pytest.raises(fp.InvalidInput, match="distortion must be a number"):
        fp.design_mapping(joint)
