"""Drawn lines are bounds: sampled densely, none crosses the curve that it stands for."""

import importlib
import math

import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile as Profile

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

safe = importlib.import_module("fastpriv._drawing.safe")
MATRIX = [[0.5, 0.25, 0.125, 0.125], [0.25, 0.5, 0.125, 0.125], [0.125, 0.125, 0.25, 0.5]]
PROFILES = {
    "response": Profile.randomised_response(2, 5.0),
    "weak response": Profile.randomised_response(4, 0.1),
    "matrix": Profile.of(MATRIX),
    "two orders": Profile.of([[0.9, 0.1], [0.4, 0.6]]),
    "given away": Profile.of([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]),
    "identity": Profile.of(np.eye(2)),
    "constant": Profile.of([[0.5, 0.5], [0.5, 0.5]]),
    "many values": Profile.of(np.random.default_rng(5).dirichlet(np.ones(4), size=4)),
    "declared": Profile.from_epsilon_delta(1.0, 1e-2),
    "composed": Profile.randomised_response(2, 1.0).self_compose(4),
    "gaussian": Profile.gaussian(1.0),
    "loud gaussian": Profile.gaussian(0.2),
    "laplace": Profile.laplace(1.0),
}


def drawn(ax, x, k=0):
    """Height of the k-th line that has a label, as it is drawn on the scales of the axes."""
    line = [one for one in ax.lines if not one.get_label().startswith("_")][k]
    if ax.get_xscale() == ax.get_yscale() == "linear":
        return np.interp(x, *line.get_data())
    across, up = ax.transData.transform(np.column_stack(line.get_data())).T
    xs, _ = ax.transData.transform(np.column_stack([x, np.ones_like(x)])).T
    heights = np.interp(xs, across, up)
    back = ax.transData.inverted().transform(np.column_stack([xs, heights]))
    return back[:, 1]


def places(ax, low, high, count):
    """Places all over a line, and close to both sides of each of its corners."""
    corners = np.unique(ax.lines[0].get_xdata())
    inside = np.concatenate([corners, 0.5 * (corners[1:] + corners[:-1])])
    inside = inside[(inside >= low) & (inside <= high)]
    chosen = inside[:: max(1, len(inside) // count)]
    return np.unique(np.concatenate([np.linspace(low, high, count), chosen]))


def close(ax, line, truth):
    """Whether a line is nearly the curve: within some pixels of a picture of 300."""
    bottom, top = ax.get_ylim()
    return np.max(np.abs(np.asarray(line) - truth)) <= 0.02 * (top - bottom)


def test_randomised_response_at_five_is_drawn_as_it_is():
    ax = fp.plot.roc(Profile.randomised_response(2, 5.0))
    rate = 1.0 / (1.0 + math.exp(5.0))
    assert drawn(ax, np.array([rate]))[0] == pytest.approx(1.0 - rate, rel=1e-12)
    assert 1.0 - rate == pytest.approx(0.9933, abs=1e-4)  # straight lines of a grid had 0.703


@pytest.mark.outer
@pytest.mark.parametrize("name", PROFILES)
def test_true_positive_rates_are_never_drawn_too_low(name):
    profile = PROFILES[name]
    ax, errors = fp.plot.roc(profile), fp.plot.type_two_error(profile)
    x = places(ax, 0.0, 1.0, 12)
    found = [profile.tpr(float(a)) for a in x]
    line = drawn(ax, x)
    assert (line * (1 + 1e-12) >= [b.lower for b in found]).all()
    assert close(ax, line, [b.upper for b in found])
    assert (drawn(errors, x) <= 1.0 - np.array([b.lower for b in found]) + 1e-12).all()


@pytest.mark.parametrize("name", PROFILES)
def test_risks_are_never_drawn_too_high(name):
    ax = fp.plot.bayes_risk(PROFILES[name])
    x = places(ax, 0.0, 1.0, 200)
    found = [PROFILES[name].bayes_risk(float(p)) for p in x]
    line = drawn(ax, x)
    assert (line <= np.array([b.upper for b in found]) + 1e-13).all()
    assert close(ax, line, [b.lower for b in found])


@pytest.mark.parametrize("name", sorted(set(PROFILES) - {"identity", "given away", "declared"}))
def test_divergences_are_never_drawn_too_low(name):
    ax = fp.plot.renyi(PROFILES[name], orders=[1.01, 1.5, 3.0, 4.0, 60.0])
    x = places(ax, 1.01, 60.0, 100)
    assert (
        drawn(ax, x) * (1 + 1e-9) >= [PROFILES[name].renyi_level(float(a)).lower for a in x]
    ).all()


@pytest.mark.parametrize("name", PROFILES)
def test_deltas_are_never_drawn_too_low(name):
    ax = fp.plot.profile(PROFILES[name])
    ax.figure.canvas.draw()
    x = places(ax, 0.0, ax.get_xlim()[1], 150)
    found = [PROFILES[name].delta(float(e)) for e in x]
    line = drawn(ax, x)
    floor = ax.yaxis.get_transform().linthresh
    for height, bracket in zip(line, found, strict=True):
        assert height * (1 + 1e-9) + 1e-9 * floor >= bracket.lower
    logs = np.log(np.maximum([line, [b.upper for b in found]], floor))
    assert np.median(logs[0] - logs[1]) <= -0.02 * math.log(floor)


def test_a_band_holds_the_curve_between_the_points():
    profile = Profile.of(MATRIX).self_compose(20)
    ax = fp.plot.profile(profile, least=1e-6)
    (fill,) = ax.collections
    corners = fill.get_paths()[0].vertices
    for epsilon in np.linspace(0.01, ax.get_xlim()[1] * 0.95, 23):
        lower = corners[: len(corners) // 2]
        at = np.searchsorted(lower[:, 0], epsilon)
        assert lower[at, 1] <= profile.delta(float(epsilon)).upper * (1 + 1e-9)


def test_composed_epsilons_are_never_drawn_too_low():
    channel = fp.HammingChannel(3, 2, 0.3)
    ax = fp.plot.composition(channel, releases=150, deltas=[1e-6])
    names = [one.get_label() for one in ax.lines]
    k = [name.startswith("privacy profile") for name in names].index(True)
    bound = [name.startswith("advanced") for name in names].index(True)
    once = Profile.of(channel)
    for count in range(1, 151, 7):
        at = np.array([float(count)])
        truth = once.self_compose(count).epsilon(1e-6)
        assert drawn(ax, at, k)[0] * (1 + 1e-12) >= truth.lower
        drift, spread = 0.3 * math.tanh(0.15), 0.3 * math.sqrt(2 * math.log(1e6))
        assert drawn(ax, at, bound)[0] * (1 + 1e-12) >= count * drift + math.sqrt(count) * spread


@pytest.mark.parametrize(
    ("prior", "notion"),
    [
        (fp.Uniform(2, 3), "dp"),
        (fp.Dense([0.4, 0.3, 0.2, 0.1]), "dp"),
        (fp.Dense([0.4, 0.25, 0.15, 0.2], [2, 2]), "dp"),
        (fp.Dense([0.4, 0.25, 0.15, 0.2], [2, 2]), "identifiability"),
        (fp.Product.iid([0.7, 0.3], 3), "mutual-information"),
        (fp.Dense([0.5, 0.3, 0.2]), "pml"),
    ],
)
def test_best_levels_are_never_drawn_too_low(prior, notion):
    curve = fp.tradeoff_curve(prior, [notion], points=7)
    ax = curve.plot()
    line = next(one for one in ax.lines if not one.get_label().startswith("_"))
    x, y = line.get_data()
    inside = 0.5 * (x[1:] + x[:-1])[np.diff(x) > 1e-6]
    for at in inside[:: max(1, len(inside) // 12)]:
        last = np.flatnonzero(x < at)[-1]
        height = np.interp(at, x[last : last + 2], y[last : last + 2])
        assert height * (1 + 1e-9) >= fp.privacy_level(prior, float(at), notion).lower
    closed = curve.closed_form.get(notion)
    if closed is not None:  # h^-1 itself, not seven points of it
        sizes = prior.space.sizes
        at = 0.5 * (x[0] + min(closed[0], x[-1]))
        assert np.interp(at, x, y) == pytest.approx(fp.h_inverse(at, len(sizes), sizes), rel=0.02)


def test_noise_and_bounds_of_the_papers_are_never_drawn_too_low():
    ax = fp.plot.noise(balances=[0.5])
    x = np.geomspace(0.01, 1.0, 333)
    for k, part in enumerate(("laplace", "gaussian", "channel")):
        truth = [getattr(fp.mechanisms.noise_comparison(1.0, e, 0.01, 1e-6, 0.5), part) for e in x]
        assert (drawn(ax, x, k) * (1 + 1e-12) >= truth).all()
    ax = fp.plot.mean_deviation(epsilons=[1.0])
    n = np.unique(np.geomspace(1, 10_000, 200).astype(int))
    truth = [fp.mechanisms.mean_deviation_bound(1.0, 1.0, 0.5, int(k)) for k in n]
    assert (drawn(ax, n.astype(float)) * (1 + 1e-12) >= truth).all()
    ax = fp.plot.threshold_query([1000], [0.3])
    t = np.arange(0, 290, 3)
    truth = [fp.threshold_query_bound(1000, int(k), 0.3) for k in t]
    assert (drawn(ax, t / 1000) * (1 + 1e-12) >= truth).all()


def test_balances_are_stairs_on_both_sides():
    channel = fp.HammingChannel(2, 2, 1.0)
    ax = fp.plot.balance(channel, points=5)
    for b in np.linspace(0.05, 1.3, 5):
        truth = fp.constrained_capacity(channel, float(b))
        upper, lower = (np.interp(b, *line.get_data()) for line in ax.lines[:2])
        assert lower <= truth.upper
        assert truth.lower <= upper


def test_exact_distortions_are_never_drawn_too_low():
    curve = fp.exact_curve([0.6, 0.3, 0.1], 0.0, 3.0)
    line = curve.plot().lines[0]
    for level in np.linspace(0.0, 3.0, 61):
        assert np.interp(level, *line.get_data()) >= float(curve.value(float(level))) * (1 - 1e-15)


def test_lowest_of_many_lines():
    rng = np.random.default_rng(8)
    for _ in range(50):
        heights, slopes = rng.uniform(0, 1, 20), rng.exponential(1.0, 20) ** 4
        x, y = safe.below_lines(heights, slopes)
        at = np.concatenate([rng.uniform(0, 1, 200), x])
        truth = (heights + slopes * at[:, None]).min(axis=1)
        np.testing.assert_allclose(np.interp(at, x, y), truth, rtol=1e-9)
        assert (np.interp(x, x, y) >= (heights + slopes * x[:, None]).min(axis=1)).all()


def test_risks_against_noise_are_never_drawn_too_low():
    ax = fp.plot.risks(Profile.gaussian, [0.5, 1.0, 4.0], delta=1e-3, fpr=0.1)
    right = next(other for other in ax.figure.axes if other is not ax)
    for noise in np.geomspace(0.5, 4.0, 17):
        profile, at = Profile.gaussian(float(noise)), np.array([noise])
        for axes, k, truth in (
            (ax, 0, profile.delta(0.0)),
            (ax, 1, profile.tpr(0.1)),
            (right, 0, profile.epsilon(1e-3)),
        ):
            assert drawn(axes, at, k)[0] * (1 + 1e-9) >= truth.lower


def test_programs_are_drawn_above_their_optima_and_the_relaxation_below():
    prior = fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2])
    spread = prior.epsilon_x()
    ax = fp.plot.relaxation(prior, [0.7, 1.2, 2.0])
    for level in np.linspace(0.7, 2.0, 14):
        at, n, m = np.array([level]), 2, 2
        private, identifiable, relaxed = (drawn(ax, at, k)[0] for k in range(3))
        assert private * (1 + 1e-9) >= fp.solve_pd_dp(prior, float(level - spread)).bound
        assert identifiable * (1 + 1e-9) >= fp.solve_pd_i(prior, float(level)).bound
        assert relaxed <= float(fp.h(float(level), n, m)) * (1 + 1e-9)


def test_leakages_are_drawn_as_high_as_they_are():
    channel, prior = fp.HammingChannel(2, 3, 0.8), fp.Product.iid([0.2, 0.3, 0.5], 2)
    ax = fp.plot.leakage(channel, prior)
    leaks, law = fp.pml(channel, prior), channel.output_distribution(prior).probabilities()
    heights, edges, _ = ax.patches[-1].get_data()
    for level in np.linspace(0.0, leaks.max() * 0.999, 50):  # at least as much leaks more than this
        shown = np.diff(edges)[heights >= level].sum()
        assert shown >= law[leaks >= level].sum() * (1 - 1e-9) - 1e-12
