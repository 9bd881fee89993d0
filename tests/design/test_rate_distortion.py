"""Rate-distortion: every answer proved from outside by Blahut's bounds in fifty digits."""

import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fastpriv as fp
import oracles as o
from cases import close, law, priors

GAP = 2e-9  # what is asked for, and the last digits of logarithms


def hamming(space):
    rows = space.rows(np.arange(space.size))
    return (rows[:, None] != rows[None]).sum(axis=-1).astype(float)


def prove(point, prior, metric):
    """Check channel, value and bound of a solution against fifty digits."""
    W, p = point.channel.matrix(), prior.pmf()
    truth = o.mutual_information(W, p)
    assert close(point.value, truth, 1e-9, 1e-13)
    assert point.level == point.value
    assert close(point.distortion, o.distortion_metric(W, p, metric), 1e-12, 1e-15)
    assert 0.0 <= point.bound <= point.value
    if point.slope < math.inf:
        lower, upper = o.blahut_bounds(p, metric, o.output_law(W, p), point.slope, GAP / 4)
        charge = o.num(point.slope) * o.num(point.distortion)
        # Started at its own output law, the iteration proves the channel optimal, and the bound.
        assert point.value - (lower - charge) < GAP
        assert point.bound <= max(0.0, upper - charge) + 1e-12
        assert point.value - point.bound < GAP
    return point


SOURCES = [
    *[c[:2] for c in priors() if c[1].space.size > 1],
    ("zeros", fp.Dense([0.5, 0.0, 0.2, 0.1, 0.0, 0.2], [2, 3])),
    ("one database", fp.Dense([1.0, 0.0, 0.0, 0.0], [2, 2])),
    ("rows with zeros", fp.Product([[0.7, 0.3, 0.0], [1.0, 0.0], [0.5, 0.5]])),
    ("sparse types", fp.Exchangeable([0.5, 0.0, 0.0, 0.5])),
]
each_source = pytest.mark.parametrize("prior", [s[1] for s in SOURCES], ids=[s[0] for s in SOURCES])


@pytest.mark.grid
@each_source
@pytest.mark.parametrize("slope", [1e-3, 0.3, 1.0, 2.5, 30.0])
def test_every_structure_at_a_slope(prior, slope):
    prove(fp.solve_pd_mip(prior, slope=slope), prior, hamming(prior.space))


@pytest.mark.grid
@each_source
@pytest.mark.parametrize("part", [0.01, 0.3, 0.7, 0.95])
def test_every_structure_at_a_distortion(prior, part):
    cost = part * fp.solve_pd_mip(prior, slope=0.0).distortion
    point = prove(fp.solve_pd_mip(prior, cost), prior, hamming(prior.space))
    assert point.distortion <= cost
    bracket = fp.privacy_level(prior, cost, "mutual-information")
    assert point.bound <= bracket.upper
    assert bracket.lower <= point.value


@each_source
def test_slope_and_distortion_are_two_ways_to_one_point(prior):
    there = fp.solve_pd_mip(prior, slope=1.2)
    if there.value > 1e-6:
        back = fp.solve_pd_mip(prior, there.distortion)
        assert back.value == pytest.approx(there.value, abs=2 * GAP)


@pytest.mark.slow(only=["markov-4-2"])
@each_source
def test_a_metric_equal_to_the_default_changes_nothing(prior):
    d = hamming(prior.space)
    for slope in (0.4, 1.7):
        plain = fp.solve_pd_mip(prior, slope=slope)
        other = prove(fp.solve_pd_mip(prior, slope=slope, metric=d), prior, d)
        lagrangian = [s.value + slope * s.distortion for s in (plain, other)]
        assert lagrangian[0] == pytest.approx(lagrangian[1], abs=GAP)


# Where Theorem 2 applies.


@pytest.mark.parametrize("prior", [c[1] for c in priors() if c[1].space.size > 1], ids=repr)
def test_from_eps_tilde_on_the_optimum_is_e_i_for_all_notions(prior):
    """Theorem 2, and Theorem 1 beside it: one mechanism is best for both notions."""
    sizes = prior.space.sizes
    slope = prior.epsilon_tilde() + 0.3
    point = fp.solve_pd_mip(prior, slope=slope)
    assert point.method == "closed-form"
    e_i = fp.PosteriorChannel(prior, slope)
    assert np.allclose(point.channel.matrix(), e_i.matrix(), rtol=1e-12, atol=1e-300)
    other = fp.solve_pd_i(prior, slope).channel
    assert np.allclose(point.channel.matrix(), other.matrix(), rtol=1e-9, atol=1e-15)
    # Kuhn-Tucker: c(y) = sum over x of p(x) K[x, y] / (K q)(x) is one at every output.
    K = [[o.exp(-o.num(slope) * int(k)) for k in row] for row in hamming(prior.space)]
    q = o.inverse_output(prior.pmf(), sizes, slope)
    v = [sum(a * b for a, b in zip(row, q, strict=True)) for row in K]
    p = prior.pmf()
    for y in range(len(q)):
        c = sum(o.num(p[x]) * K[x][y] / v[x] for x in range(len(q)))
        assert close(1.0, c, 1e-9)


def test_below_eps_tilde_the_program_is_better_than_e_d():
    prior = fp.Dense(law(np.random.default_rng(3), 16, 0.0), [2] * 4)
    slope = 0.5 * prior.epsilon_tilde()
    point = fp.solve_pd_mip(prior, slope=slope)
    e_d = fp.HammingChannel(4, 2, fp.h_inverse(point.distortion, 4, 2))
    assert point.value < fp.mutual_information(e_d, prior)


# Closed forms and sums.


@pytest.mark.parametrize("p", [0.5, 0.3, 0.01])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.999])
def test_one_bit(p, part):
    """R(D) = H(p) - H(D) for a bit with Hamming distortion."""
    prior, cost = fp.Dense([p, 1 - p]), p * part
    point = fp.solve_pd_mip(prior, cost)
    truth = o.entropy([p, 1 - p]) - o.entropy([cost, 1 - cost])
    assert close(point.value, truth, 1e-9, 1e-9)
    rows = fp.solve_pd_mip(fp.Product([[p, 1 - p]]), cost)
    assert close(rows.value, truth, 1e-12, 1e-16)


@pytest.mark.parametrize("cost", [0.2, 0.9, 1.35])
def test_product_sources_are_sums_at_a_common_slope(cost):
    laws = [[0.8, 0.2], [0.1, 0.6, 0.3], [0.4, 0.3, 0.2, 0.1]]
    whole = fp.solve_pd_mip(fp.Product(laws), cost)
    parts = [fp.solve_pd_mip(fp.Product([p]), slope=whole.slope) for p in laws]
    assert whole.value == pytest.approx(sum(s.value for s in parts), rel=1e-9)
    assert whole.distortion == pytest.approx(sum(s.distortion for s in parts), rel=1e-9)
    dense = fp.solve_pd_mip(fp.Dense(fp.Product(laws).pmf(), [2, 3, 4]), cost)
    assert dense.value == pytest.approx(whole.value, abs=GAP)


def test_a_million_rows():
    prior = fp.Product.iid([0.7, 0.2, 0.1], 10**6)
    whole, one = fp.solve_pd_mip(prior, 250_000.0), fp.solve_pd_mip(fp.Dense([0.7, 0.2, 0.1]), 0.25)
    assert whole.method == "rows"
    assert whole.value == pytest.approx(1e6 * one.value, rel=1e-7)
    assert whole.channel.sample(prior.sample(1, rng=1), rng=2).shape == (1, 10**6)


@pytest.mark.parametrize("n", [5, 8])
def test_types_agree_with_all_databases(n):
    prior = fp.Exchangeable.beta_binomial(n, 0.5, 0.8)
    for cost in (0.1 * n, 0.25 * n):
        types, dense = (fp.solve_pd_mip(p, cost) for p in (prior, fp.Dense(prior.pmf(), [2] * n)))
        assert (types.method, dense.method) == ("types", "dense")
        assert types.value == pytest.approx(dense.value, abs=GAP)
        assert np.allclose(types.channel.matrix(), dense.channel.matrix(), atol=1e-4)


def test_long_exchangeable_priors():
    prior = fp.Exchangeable.beta_binomial(100, 0.5, 0.8)
    point = fp.solve_pd_mip(prior, 20.0)
    assert point.value - point.bound < GAP
    assert point.distortion <= 20.0
    assert fp.mutual_information(point.channel, prior) == point.value
    assert math.isfinite(fp.dp_level(point.channel))


# Metrics.


def test_fewer_and_more_outputs_than_databases():
    rng = np.random.default_rng(0)
    for outputs in (1, 2, 7):
        metric = rng.random((4, outputs)) - 0.3
        prior = fp.Dense(law(rng, 4), [2, 2])
        prove(fp.solve_pd_mip(prior, slope=5.0, metric=metric), prior, metric)
        p = prior.pmf()
        least, most = float(p @ metric.min(axis=1)), float((p @ metric).min())
        for part in (0.1, 0.9):
            cost = least + part * (most - least)
            point = prove(fp.solve_pd_mip(prior, cost, metric=metric), prior, metric)
            assert point.distortion <= cost


def test_an_exhausted_budget_keeps_only_nearest_outputs():
    """Databases 0 and 3 have two nearest outputs; the best mixes them, and 3 never answers 2."""
    metric = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 0, 0]], dtype=float)
    prior = fp.Dense([0.25] * 4)
    point = fp.solve_pd_mip(prior, 0.0, metric=metric)
    assert point.slope == math.inf
    assert point.distortion == 0.0
    # By calculus, database 0 answers 0 with chance a = 1/3: I = H((1 + a)/4) - H(a)/4.
    assert point.value == pytest.approx(0.75 * float(o.entropy([1 / 3, 2 / 3])), abs=GAP)
    assert point.value - point.bound < GAP
    steep = fp.solve_pd_mip(prior, slope=200.0, metric=metric)
    assert steep.value == pytest.approx(point.value, abs=GAP)


def test_a_budget_below_the_least_is_refused_with_the_least():
    metric = np.array([[1.0, 2.0], [3.0, 1.5]])
    with pytest.raises(fp.Infeasible, match=r"1\.25"):
        fp.solve_pd_mip(fp.Dense([0.5, 0.5]), 1.2, metric=metric)
    assert fp.solve_pd_mip(fp.Dense([0.5, 0.5]), 1.25, metric=metric).distortion == 1.25


@pytest.mark.search(every=10)
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10**6), st.floats(0.01, 40.0))
@example(7, 7, 357, 30.0)  # its own output law alone proves only 3e-5
def test_any_metric_any_slope(inputs, outputs, seed, slope):
    rng = np.random.default_rng(seed)
    metric = rng.choice([rng.random((inputs, outputs)), rng.integers(0, 3, (inputs, outputs))])
    weights = rng.random(inputs) * (rng.random(inputs) < 0.8) + 1e-12
    prior = fp.Dense(weights / weights.sum())
    prove(fp.solve_pd_mip(prior, slope=slope, metric=metric), prior, metric)


# The curve.


def test_the_curve_falls_convexly_from_entropy_to_zero():
    prior = fp.Markov([0.7, 0.3], [[0.9, 0.1], [0.3, 0.7]], 5)
    top = fp.solve_pd_mip(prior, slope=0.0).distortion
    grid = np.linspace(0.0, top, 13)
    curve = fp.tradeoff_curve(prior, ["mutual-information"], grid)
    values = curve.upper["mutual-information"]
    assert values[0] == pytest.approx(prior.entropy(), rel=1e-11)
    assert curve.lower["mutual-information"][-1] == 0.0
    # The float may be below the largest distortion by its rounding error.
    assert values[-1] <= 2.0**-46 * 5 * np.log(2.0)
    assert np.all(np.diff(values) < 0)
    assert np.all(np.diff(values, 2) > -1e-8)
    assert np.all(curve.upper["mutual-information"] - curve.lower["mutual-information"] < GAP)


def test_larger_spaces_are_certified_too():
    prior = fp.Dense(np.random.default_rng(5).dirichlet(np.ones(3**8)), [3] * 8)
    point = fp.solve_pd_mip(prior, 2.0)
    assert point.value - point.bound < GAP
    assert fp.distortion(point.channel, prior) == point.distortion <= 2.0
    mixed = fp.Dense(np.random.default_rng(5).dirichlet(np.ones(2**4 * 3**3)), [2, 3] * 3 + [2])
    assert fp.solve_pd_mip(mixed, 1.5).gap < 1e-8


def test_a_time_limit_returns_what_is_proved():
    prior = fp.Dense(np.random.default_rng(6).dirichlet(np.ones(2**12)), [2] * 12)
    with pytest.warns(fp.GapWarning, match="the time limit passed"):
        point = fp.solve_pd_mip(prior, 3.0, time_limit=1e-9)
    assert not point.converged
    best = fp.solve_pd_mip(prior, 3.0)
    assert point.bound <= best.value <= point.value
    assert point.distortion <= 3.0


# Ends and mistakes.


def test_ends():
    prior = fp.Dense([0.1, 0.2, 0.3, 0.4], [2, 2])
    silent, truthful = fp.solve_pd_mip(prior, 1.9), fp.solve_pd_mip(prior, 0.0)
    assert (silent.value, silent.bound, silent.gap) == (0.0, 0.0, 0.0)
    assert truthful.distortion == 0.0
    assert truthful.value == pytest.approx(prior.entropy())
    for alone in (fp.Uniform(3, 1), fp.Dense([1.0])):
        assert fp.solve_pd_mip(alone, 0.0).value == 0.0
        assert fp.solve_pd_mip(alone, slope=1.0).value == 0.0
    assert fp.solve_pd_mip(prior, slope=700.0).value == pytest.approx(prior.entropy())
    assert fp.solve_pd_mip(prior, 1e-12).value == pytest.approx(prior.entropy())
    nearly = fp.Dense(np.full(16, 1 / 16) + 1e-9 * np.arange(-7.5, 8) / 16, [2] * 4)
    assert fp.solve_pd_mip(nearly, 1.9).value - fp.solve_pd_mip(nearly, 1.9).bound < GAP


@pytest.mark.parametrize(
    ("law", "n", "most"),
    [
        ([0.2, 0.05, 0.75], 3, 0.75),
        ([0.05, 0.51, 0.18, 0.26], 3, 1.47),
        ([0.11, 0.58, 0.15, 0.16], 1, 0.42),
        ([0.7, 0.19, 0.11], 3, 0.9),
    ],
)
def test_an_ulp_below_the_distortion_of_silence(law, n, most):
    """Where rounding decides whether a constant output meets the budget."""
    for cost in (most, np.nextafter(most, 0.0), np.nextafter(most, 2.0)):
        point = fp.solve_pd_mip(fp.Product.iid(law, n), cost)
        assert 0.0 <= point.value < 1e-13
        assert point.distortion <= cost


@pytest.mark.parametrize("cost", [1e-60, 1e-150, 1e-240, 1e-260, 5e-324])
def test_distortions_too_small_to_save_anything(cost):
    chain = fp.Markov([0.5, 0.5], [[1.0, 0.0], [0.1, 0.9]], 6)
    zeros = fp.Product([[0.7, 0.3], [1.0, 0.0]])
    for prior in (chain, zeros, fp.Uniform(3, 3), fp.Exchangeable([0.2, 0.0, 0.3, 0.0, 0.5])):
        point = fp.solve_pd_mip(prior, cost)
        assert point.value == pytest.approx(prior.entropy(), rel=1e-9)
        assert point.distortion <= cost
        assert point.value - point.bound < GAP


@pytest.mark.parametrize("slope", [100.0, 300.0, 700.0])
def test_steep_slopes_on_priors_with_zeros(slope):
    chain = fp.Markov([0.5, 0.5], [[1.0, 0.0], [0.1, 0.9]], 8)
    alone = fp.Exchangeable([1.0, 0.0, 0.0, 0.0])
    three = fp.Exchangeable({(3, 0, 0): 0.5, (0, 3, 0): 0.2, (1, 1, 1): 0.3})
    for prior in (chain, alone, three, fp.Exchangeable([0.2, 0.0, 0.3, 0.0, 0.5])):
        point = fp.solve_pd_mip(prior, slope=slope)
        assert point.value == pytest.approx(prior.entropy(), abs=1e-9)


def test_an_offset_in_the_metric_does_not_spoil_the_bound():
    p = [0.5072399192480264, 0.45121518347500467, 0.04154489727696893]
    metric = np.array([[6.0, 1.0], [2.0, 1.0], [0.0, 1.0]])
    for offset in (1e4, 1e8, 1e12):
        cost = offset + 0.9751
        lost = offset > 1e4  # the offset leaves no digits for a gap of 1e-9
        with pytest.warns(fp.GapWarning, match="rounding") if lost else nullcontext():
            far = fp.solve_pd_mip(fp.Dense(p), cost, metric=metric + offset)
        assert far.converged is not lost
        true = fp.solve_pd_mip(fp.Dense(p), cost - offset, metric=metric)
        assert far.bound <= true.value


def test_tilted_laws_that_underflow_are_refused():
    for q in (fp.Dense([0.5, 0.0, 0.0, 0.5], [2, 2]), fp.Product([[1.0, 0.0], [0.5, 0.5]])):
        with pytest.raises(fp.InvalidInput, match="smaller epsilon"):
            fp.TiltedChannel(q, 800.0)


def test_short_repr():
    text = repr(fp.solve_pd_mip(fp.Uniform(4, 2), 1.0))
    assert text.startswith("RateDistortion(value=0.5232481438")
    assert "slope=1.09861" in text
    assert len(text) < 160


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: fp.solve_pd_mip(p), "one of distortion and slope"),
        (lambda p: fp.solve_pd_mip(p, 1.0, slope=1.0), "one of distortion and slope"),
        (lambda p: fp.solve_pd_mip(p, 3.0), "between 0 and 2"),
        (lambda p: fp.solve_pd_mip(p, math.nan), "finite"),
        (lambda p: fp.solve_pd_mip(p, slope=-1.0), "between 0 and 700"),
        (lambda p: fp.solve_pd_mip(p, 1.0, gap=0.0), "gap"),
        (lambda p: fp.solve_pd_mip([0.5, 0.6], 1.0), "Distribution, or a vector .* sum"),
        (lambda p: fp.solve_pd_mip(p, 1.0, metric=np.eye(3)), "each of 4 inputs"),
        (lambda p: fp.solve_pd_mip(p, 1.0, metric=np.full((4, 4), math.inf)), "finite numbers"),
        (lambda p: fp.solve_pd_mip(fp.Uniform(40, 2), 5.0, metric=np.eye(3)), "inputs"),
        (lambda p: fp.solve_pd_mip(fp.Markov([0.6, 0.4], np.eye(2), 60), 5.0), "dense form"),
        (lambda p: fp.solve_pd_mip(fp.Exchangeable.beta_binomial(900, 1, 2), 5.0), "pair classes"),
    ],
)
def test_mistakes(call, words):
    with pytest.raises(ValueError, match=words):
        call(fp.Dense([0.1, 0.2, 0.3, 0.4], [2, 2]))
