"""The Gaussian privacy channel: proven integrals, certified capacities, safe calibration."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpriv as fp
from fastpriv.mechanisms.amplitude import Mixture
from oracles import dalenius as oracle

REACHES = [1e-120, 1e-8, 0.01, 0.5, 1.0, 1.0001, 1.6, 1.7, 2.5, 3.0, 5.0, 11.0, 13.0, 40.0, 1e3]


def channel(reach):
    return fp.mechanisms.GaussianChannel(reach, 1.0)


def information(points, weights):
    """I(X; Y) of a law on points, by a plain Riemann sum far finer than needed."""
    points, weights = np.asarray(points, float), np.asarray(weights, float)
    y = np.arange(points.min() - 10, points.max() + 10, 0.01)
    rows = np.exp(-0.5 * (y - points[:, None]) ** 2) / math.sqrt(2 * math.pi)
    q = weights @ rows
    logs = np.log(np.where(rows > 0, rows, 1.0)) - np.log(np.where(q > 0, q, 1.0))
    return float((weights[:, None] * rows * logs).sum() * 0.01)


# The integral and its slope.


@pytest.mark.slow
@pytest.mark.parametrize("a", [1.0, 4.0])
def test_divergences_and_slopes_are_within_their_error(a):
    rng = np.random.default_rng(int(a))
    points = np.sort(np.append(rng.uniform(-a, a, 3), [-a, a]))
    weights = rng.dirichlet(np.ones(5))
    mixture = Mixture(a, points, weights)
    x = np.array([-a, 0.0, 0.77 * a])
    value, slope, error = mixture.divergences(x)
    assert error.max() < 1e-12 * (1 + a * a)
    for j, where in enumerate(x):
        exact, derivative = oracle.gaussian_divergence(where, points, weights)
        assert abs(value[j] - exact) <= error[j]
        assert abs(slope[j] - derivative) <= error[j]


def test_ceiling_is_above_every_divergence_and_not_far():
    rng = np.random.default_rng(3)
    for a in (1.5, 3.0, 6.0):
        inner = np.sort(rng.uniform(0, a, 2))
        points = np.array([-a, *-inner[::-1], *inner, a])
        weights = rng.dirichlet(np.ones(3))[[0, 1, 2, 2, 1, 0]] / 2
        mixture = Mixture(a, points, weights)
        value, _, error = mixture.divergences(np.linspace(-a, a, 4001))
        top = mixture.ceiling(0.0)
        assert value.max() <= top
        assert top <= value.max() + error.max() + 1e-6


# Capacities.


@pytest.mark.parametrize("reach", [1e-120, 1e-20, 1e-8, 1e-3, 0.1, 0.7, 1.0])
def test_small_reach_is_two_points_with_all_digits(reach):
    found = channel(reach).capacity()
    if reach < 1e-2:  # a^2/2 - a^4/4 + ...
        exact = mp.mpf(reach) ** 2 / 2 - mp.mpf(reach) ** 4 / 4 * (1 - 2 * mp.mpf(reach) ** 2 / 3)
        slack = mp.mpf(reach) ** 8
    else:
        exact, slack = oracle.two_point_capacity(reach), 0
    assert found.lower - slack <= exact <= found.upper + slack
    assert found.width <= 3e-13 * found.upper
    assert channel(reach).capacity(2) == found == channel(reach).capacity(7)


@pytest.mark.parametrize("reach", [1.2, 4.0])
def test_two_values_use_the_ends(reach):
    found = channel(reach).capacity(2)
    assert found.lower <= oracle.two_point_capacity(reach) <= found.upper
    assert found.width < 1e-11


@pytest.mark.parametrize(
    ("reach", "points", "enough"),
    [(1.66, 2, True), (1.75, 2, False), (2.7, 3, True), (3.2, 3, False)],
)
def test_points_appear_where_the_literature_has_them(reach, points, enough):
    """Two points are optimal up to 1.665, three up to 2.786 (Sharma and Shamai 2010)."""
    whole, few = channel(reach).capacity(), channel(reach).capacity(points)
    assert whole.width < 1.1e-9
    if enough:
        assert few.lower >= whole.lower - 1e-12
    else:
        assert few.lower < whole.lower - 1e-6
        assert channel(reach).capacity(points + 1).lower >= whole.lower - 1e-9


@pytest.mark.slow(only=["11.0"])
@pytest.mark.parametrize("reach", REACHES)
def test_brackets_are_ordered_and_below_the_bound(reach):
    mechanism = channel(reach)
    found = [mechanism.capacity(m) for m in (1, 2, 3, 5, 100, math.inf)]
    for bracket in found:
        assert 0.0 <= bracket.lower <= bracket.upper <= mechanism.capacity_bound() * (1 + 1e-14)
    for less, more in itertools.pairwise(found):
        assert less.lower <= more.upper
    assert found[0].upper == 0.0
    assert found[1].upper <= math.log(2) * (1 + 1e-14)
    assert found[2].upper <= math.log(3) * (1 + 1e-14)
    with mp.workdps(300):
        exact = mp.log1p(mp.mpf(reach) ** 2) / 2
        assert exact <= mechanism.capacity_bound() <= exact * (1 + mp.mpf(10) ** -14)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from([1.3, 2.2, 5.0, 14.0]), st.integers(2, 12), st.integers(0, 10**6))
def test_no_law_exceeds_the_upper_end(reach, count, seed):
    rng = np.random.default_rng(seed)
    points = np.append(rng.uniform(-reach, reach, count - 2), [-reach, reach])
    weights = rng.dirichlet(np.ones(count))
    told = information(points, weights)
    assert told <= channel(reach).capacity().upper + 1e-12
    assert told <= channel(reach).capacity(count).upper + 1e-12


@pytest.mark.parametrize("reach", [1.4, 2.0, 3.5])
def test_lower_end_beats_a_fine_grid(reach):
    """Blahut-Arimoto on a grid of inputs comes close from below and never gets above."""
    x = np.linspace(-reach, reach, 81)
    y = np.arange(-reach - 9, reach + 9, 0.05)
    rows = np.exp(-0.5 * (y - x[:, None]) ** 2)
    rows /= rows.sum(axis=1, keepdims=True)
    p = np.full(len(x), 1 / len(x))
    for _ in range(3000):
        q = p @ rows
        far = (rows * np.log(rows / q)).sum(axis=1)
        p = p * np.exp(far - far.max())
        p /= p.sum()
    found = channel(reach).capacity()
    grid = float(p @ (rows * np.log(rows / (p @ rows))).sum(axis=1))
    assert grid <= found.upper
    assert found.lower - 1e-3 < grid


@pytest.mark.parametrize("reach", [0.5, 1.3, 2.5, 16.0])
def test_a_gap_of_nothing_ends(reach):
    tight, usual = channel(reach).capacity(gap=0.0), channel(reach).capacity()
    assert tight.upper >= usual.lower
    assert usual.upper >= tight.lower
    assert tight.width <= max(usual.width, 1e-12)


def test_units_do_not_matter():
    for scale in (1e-100, 3.0, 1e80):
        found = fp.mechanisms.GaussianChannel(2.0 * scale, scale * scale).capacity(3)
        assert found.lower == pytest.approx(channel(2.0).capacity(3).lower, rel=1e-12)


def test_huge_reach_saturates_with_few_values():
    found = channel(1e9).capacity(16)
    assert found.upper == pytest.approx(math.log(16), rel=1e-15)
    assert found.lower == pytest.approx(math.log(16), rel=1e-15)
    unlimited = channel(1e9).capacity()
    assert unlimited.lower < math.log(2e9 / math.sqrt(2 * math.pi * math.e)) < unlimited.upper
    assert unlimited.width < 1e-8


# Calibration.


@settings(max_examples=60, deadline=None)
@given(
    st.floats(1e-100, 1e100),
    st.one_of(st.floats(1e-80, 1e-6), st.floats(1e-6, 40.0)),
    st.sampled_from([0.0, 0.3]),
)
def test_safe_variance_keeps_the_bound_and_is_tight(T, epsilon, balance):
    variance = fp.mechanisms.gaussian_variance(T, epsilon, balance)
    with mp.workdps(60):
        bound = mp.log1p(mp.mpf(T) ** 2 / mp.mpf(variance)) / 2
        assert bound <= mp.mpf(epsilon) + mp.mpf(balance)
        assert bound >= (mp.mpf(epsilon) + mp.mpf(balance)) * (1 - mp.mpf(10) ** -12)
    level = epsilon + balance
    assert fp.mechanisms.GaussianChannel(T, variance).capacity_bound() <= level * (1 + 1e-15)


@pytest.mark.parametrize("epsilon", [1e-200, 1e-8, 0.1, 0.5, 0.69])
@pytest.mark.parametrize("m", [2, 3, math.inf])
def test_exact_variance_keeps_the_promise_with_less_noise(epsilon, m):
    T = 3.0
    variance = fp.mechanisms.gaussian_variance(T, epsilon, m=m)
    assert variance <= fp.mechanisms.gaussian_variance(T, epsilon) * (1 + 1e-12)
    found = fp.mechanisms.GaussianChannel(T, variance).capacity(m)
    assert found.upper <= epsilon
    assert found.lower >= epsilon * (1 - 5e-9)
    if m == 2 and epsilon > 0.01:
        assert oracle.two_point_capacity(T / mp.sqrt(variance)) <= epsilon


def test_variance_at_the_ends():
    assert fp.mechanisms.gaussian_variance(1.0, 0.7, m=2) == 0.0
    assert 0.0 < fp.mechanisms.gaussian_variance(1.0, 700.0) < 1e-290
    assert fp.mechanisms.gaussian_variance(1.0, 5.0, m=math.inf) > 0.0
    with pytest.raises(fp.Infeasible, match="above 0"):
        fp.mechanisms.gaussian_variance(1.0, 0.0)
    with pytest.raises(fp.Infeasible, match="overflows a double"):
        fp.mechanisms.gaussian_variance(1e200, 1e-20)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.GaussianChannel(0.0, 1.0),
        lambda m: m.GaussianChannel(1.0, 0.0),
        lambda m: m.GaussianChannel(math.inf, 1.0),
        lambda m: m.GaussianChannel(1e300, 1e-300),
        lambda m: m.GaussianChannel(1.0, 1.0).capacity(0),
        lambda m: m.GaussianChannel(1.0, 1.0).capacity(2.5),
        lambda m: m.GaussianChannel(1.0, 1.0).capacity(gap=-1.0),
        lambda m: m.gaussian_variance(-1.0, 1.0),
        lambda m: m.gaussian_variance(1.0, -1.0),
        lambda m: m.gaussian_variance(1.0, 1.0, balance=-1.0),
        lambda m: m.gaussian_variance(1.0, 1.0, m=0),
        lambda m: m.noise_comparison(1.0, 0.0, 0.1),
        lambda m: m.noise_comparison(1.0, 0.1, 3.0),
        lambda m: m.mean_deviation_bound(1.0, 0.1, 0.0),
        lambda m: m.mean_deviation_bound(1.0, 0.1, 0.1, 0),
        lambda m: m.mean_deviation_bound(1.0, 0.1, 0.1, variance=2.0),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(fp.InvalidInput):
        call(fp.mechanisms)


# Utility.


def test_noise_of_three_mechanisms():
    found = fp.mechanisms.noise_comparison(2.0, 0.5, 0.1, 1e-5, balance=0.25)
    assert found.laplace == pytest.approx(math.sqrt(2) * 0.1 / 0.5)
    assert found.gaussian == pytest.approx(math.sqrt(2 * math.log(1.25e5)) * 0.1 / 0.5)
    assert found.channel == pytest.approx(2.0 / math.sqrt(math.exp(1.5) - 1))
    # Balance makes room: eventually the channel needs the least noise of the three.
    assert fp.mechanisms.noise_comparison(1.0, 0.5, 0.1, balance=6.0).channel < found.laplace


def test_private_means_obey_the_bound():
    T, epsilon, tau, n = 1.0, 2.0, 0.4, 50
    bound = fp.mechanisms.mean_deviation_bound(T, epsilon, tau, n)
    limit = fp.mechanisms.mean_deviation_bound(T, epsilon, tau)
    noise = fp.mechanisms.gaussian_variance(T, epsilon)
    assert limit == pytest.approx(noise / tau**2)
    assert bound == pytest.approx((1.0 / n + noise) / tau**2)
    assert fp.mechanisms.mean_deviation_bound(T, 0.01, tau, n) == 1.0
    rng = np.random.default_rng(0)
    means = rng.choice([-1.0, 1.0], (20_000, n)).mean(axis=1)
    off = np.abs(means + rng.normal(0, math.sqrt(noise), 20_000)) >= tau
    assert off.mean() < bound


def test_figures():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = fp.plot.noise(balances=(0.0, 1.0))
    assert len(ax.lines) == 4
    ax = fp.plot.mean_deviation(epsilons=(1.0, 2.0))
    assert len(ax.lines) == 4
    plt.close("all")


def test_reach_beyond_the_square_root_of_doubles():
    huge = fp.mechanisms.GaussianChannel(1.0, 5e-324)
    found = huge.capacity()
    assert 371.0 < found.lower <= found.upper <= huge.capacity_bound() < 373.0
    # ln(1 + a^2)/2 is positive, also where a^2 is less than any double.
    tiny = fp.mechanisms.GaussianChannel(1e-300, 1.0)
    assert tiny.capacity_bound() > 0.0
    assert tiny.capacity(2).upper > 0.0
    small = fp.mechanisms.GaussianChannel(3.3e-162, 1.0)  # a^2/2 = 1.1 times the least double
    assert mp.mpf(small.capacity_bound()) >= mp.mpf(3.3e-162) ** 2 / 2
    with pytest.raises(fp.TooLarge, match="infinity"):
        huge.capacity(10**400)


def test_a_distortion_that_is_no_share_of_the_signal_is_refused():
    with pytest.raises(fp.InvalidInput, match="0 or at least 5e-324 times the largest eigenvalue"):
        fp.mechanisms.GaussianNoise(2.0**63, 1e-320)
