"""Figures: what is drawn is what was computed, in words, and for every reader."""

import importlib
import itertools
import math

import numpy as np
import pytest

import fastpriv as fp
import oracles as o
from oracles import plot as oracle
from oracles.pointwise import pml

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = importlib.import_module("matplotlib.pyplot")

FAMILY = importlib.import_module("fastpriv._drawing.style").FAMILY
Profile = fp.accounting.PrivacyProfile
MATRIX = [[0.5, 0.25, 0.125, 0.125], [0.25, 0.5, 0.125, 0.125], [0.125, 0.125, 0.25, 0.5]]
PRIOR = [0.5, 0.25, 0.25]
SKEWED = fp.Product.iid([0.75, 0.25], 12)


def line(ax, label):
    """The one line whose label starts so."""
    (found,) = [x for x in ax.lines if x.get_label().startswith(label)]
    return found


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# Colours.


@pytest.mark.parametrize("sight", [None, *oracle.SIGHTS])
def test_colours_are_told_apart_by_everybody(sight):
    for first, second in itertools.combinations(FAMILY, 2):
        assert oracle.difference(first, second, sight) > 15.0  # about 2 is just noticeable
    assert all(oracle.difference(colour, "#FFFFFF", sight) > 30.0 for colour in FAMILY)


def test_lines_of_a_family_differ_in_greyscale_too():
    look = importlib.import_module("fastpriv._drawing.style").look
    drawn = {(style["linestyle"], style["marker"]) for style in map(look, range(28))}
    assert len(drawn) == 28


# Leakage.


def test_bars_are_leakages_as_wide_as_outputs_are_likely():
    ax = fp.plot.leakage(MATRIX, PRIOR)
    stairs = ax.patches[0].get_data()
    outputs = zip(pml(MATRIX, PRIOR), o.output_law(MATRIX, PRIOR), strict=True)
    expected = sorted(((float(x), float(p)) for x, p in outputs), reverse=True)
    np.testing.assert_allclose(stairs.values, [x for x, _ in expected], rtol=1e-12)
    np.testing.assert_allclose(np.diff(stairs.edges), [p for _, p in expected], rtol=1e-12)
    level = line(ax, "level").get_ydata()[0]
    assert level == fp.pml_level(MATRIX, PRIOR) == fp.pml(MATRIX, PRIOR).max()
    threshold = line(ax, "disclosure").get_ydata()[0]
    assert threshold == fp.disclosure_threshold(PRIOR)
    assert "output 3" in legend(ax)[0]
    assert ax.get_legend().get_title().get_text().startswith("4 outputs")
    assert [text.get_text() for text in ax.texts] == ["3", "1", "2", "0"]
    assert "nats" in ax.get_ylabel()
    assert "probability" in ax.get_xlabel()


def test_outputs_of_rows_are_named_by_their_rows():
    ax = fp.plot.leakage(fp.HammingChannel(2, 2, 1.0), fp.Product.iid([0.75, 0.25], 2))
    assert "output 11" in legend(ax)[0]
    assert {text.get_text() for text in ax.texts} <= {"00", "01", "10", "11"}
    wide = fp.plot.leakage(fp.HammingChannel(2, 11, 1.0), fp.Uniform(2, 11))
    assert "output 0 0" in legend(wide)[0]


def test_outputs_that_cannot_occur_are_left_out():
    ax = fp.plot.leakage([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]], [0.5, 0.5])
    assert len(ax.patches[0].get_data().values) == 2


def test_outputs_too_rare_for_a_double_are_not_forgotten():
    channel = fp.HammingChannel(5, 2, 600.0)
    prior = fp.Dense(np.r_[1 - 1e-9, 1e-9, np.zeros(30)], [2] * 5)
    ax = fp.plot.leakage(channel, prior)  # two ones more cost e^-1200
    assert len(channel.output(prior).pmf().nonzero()[0]) < 24
    heights = ax.patches[0].get_data().values
    assert heights[0] == pytest.approx(fp.pml_level(channel, prior))
    assert ax.get_xscale() == "log"
    assert ax.get_xlim()[0] > 0.0


def test_curve_of_many_outputs_is_their_tail():
    channel = fp.HammingChannel(12, 2, 1.0)
    ax = fp.plot.leakage(channel, SKEWED)
    heights, edges, _ = ax.patches[0].get_data()
    leakages, chances = fp.pml(channel, SKEWED), channel.output(SKEWED).pmf()
    assert ax.get_xscale() == "log"
    assert len(heights) == 13  # one for each number of ones
    for height, end in zip(heights, edges[1:], strict=True):
        assert chances[leakages > height * (1 - 1e-9)].sum() == pytest.approx(end, rel=1e-9)
    assert heights[0] == pytest.approx(leakages.max(), rel=1e-12)


def test_steps_that_cannot_be_seen_are_merged_upwards():
    rng = np.random.default_rng(3)
    matrix = rng.dirichlet(np.full(5000, 0.5), size=3)
    ax = fp.plot.leakage(matrix, PRIOR)
    heights, edges, _ = ax.patches[0].get_data()
    leakages, chances = fp.pml(matrix, PRIOR), PRIOR @ matrix
    assert len(heights) <= 1001
    for height, start, end in zip(heights, edges, edges[1:], strict=False):
        assert chances[leakages > height * (1 + 1e-9)].sum() <= start * (1 + 1e-9) + 1e-12
        assert chances[leakages > height - 2e-3 * heights[0]].sum() >= end * (1 - 1e-9)


def test_too_many_outputs_are_drawn_at_random_and_say_so():
    channel, prior = fp.HammingChannel(500, 2, 1.0), fp.Product.iid([0.75, 0.25], 500)
    ax = fp.plot.leakage(channel, prior, draws=30, rng=7)
    assert "30 of about 2^500 outputs, drawn at random" in ax.get_legend().get_title().get_text()
    heights = ax.patches[0].get_data().values
    assert (heights <= fp.pml_level(channel, prior)).all()
    rng = np.random.default_rng(7)
    seen = channel.sample(prior.sample(30, rng), rng)
    assert heights[0] == max(fp.pml(channel, prior, y=y) for y in seen)
    again = fp.plot.leakage(channel, prior, draws=30, rng=7)
    np.testing.assert_array_equal(again.patches[0].get_data().values, heights)


def test_the_level_of_a_long_chain_is_its_upper_end():
    chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 400)
    ax = fp.plot.leakage(fp.HammingChannel(400, 2, 1.0), chain, draws=3)
    level = fp.pml_level(fp.HammingChannel(400, 2, 1.0), chain)
    assert any(text.startswith("level") for text in legend(ax))
    assert level.lower < level.upper  # of a long chain a bracket, whose upper end is drawn


@pytest.mark.parametrize(
    ("channel", "prior"),
    [
        ([[1.0], [1.0]], [0.5, 0.5]),
        ([[0.5, 0.5]], [1.0]),
        ([[0.5, 0.5], [0.1, 0.9]], [1.0, 0.0]),
        ([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5]),
        (np.eye(40), np.full(40, 1 / 40)),
        (fp.HammingChannel(3, 2, 1e-8), fp.Uniform(3, 2)),
        (fp.HammingChannel(3, 2, 700.0), fp.Uniform(3, 2)),
        ([[1e-300, 1.0], [0.0, 1.0]], [1e-5, 1 - 1e-5]),
        (fp.HammingChannel(3, 2, 700.0), fp.Dense([0.75, 0.25, 0, 0, 0, 0, 0, 0], [2, 2, 2])),
    ],
)
def test_edges_of_leakage(channel, prior):
    ax = fp.plot.leakage(channel, prior)
    top = ax.patches[0].get_data().values.max()
    assert top == pytest.approx(fp.pml_level(channel, prior), rel=1e-12)
    assert line(ax, "level").get_ydata()[0] == fp.pml_level(channel, prior)
    assert ax.get_ylim()[1] > top


# Profiles.


def test_profile_is_delta_over_epsilon():
    matrix = MATRIX[:2]
    ax = fp.plot.profile(matrix, Profile.of(MATRIX), labels=["two", "three"])
    for label, rows in (("two", matrix), ("three", MATRIX)):
        x, y = line(ax, label).get_data()
        for epsilon, delta, before in zip(x[1::2], y[1::2], y[::2], strict=True):
            truth = o.hockey_stick(rows, [len(rows)], epsilon)
            assert truth <= delta <= truth * (1 + 1e-8) + 1e-9  # all corners are drawn
            assert delta <= before
        level = Profile.of(rows).epsilon(0.0).upper
        assert level in x
        assert y[x > level].tolist() == [0.0] * int((x > level).sum())
        assert f"0 from epsilon {level:.4g}" in line(ax, label).get_label()
    assert ax.get_yscale() == "symlog"
    assert ax.get_ylim()[0] < 0.0
    assert len(ax.collections) == 2


def test_profile_follows_every_scallop():
    given = Profile.from_epsilon_delta(1.0, 1e-6).self_compose(20)  # kinks at every other nat
    x, y = line(fp.plot.profile(given), "20 x (1, 1e-06)-DP: ").get_data()
    for at in np.linspace(0.0, x[-1], 97):
        drawn = np.exp(np.interp(at, x, np.log(y)))
        assert abs(math.log10(given.delta(at).upper / drawn)) < 0.1  # of 12 decades


def test_profile_shows_the_band_of_composed_releases():
    composed = Profile.of(MATRIX).self_compose(40)
    ax = fp.plot.profile(composed, least=1e-6)
    x, y = line(ax, f"40 x {fp.Channel(MATRIX)!r}").get_data()
    assert x[-1] == pytest.approx(1.05 * composed.epsilon(1e-6).upper)
    computed = slice(1, None, 16)  # a stretch between computed points has eight steps
    found = [composed.delta(e) for e in x[computed]]
    assert y[computed].tolist() == [b.upper for b in found]
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert {b.lower for b in found} | {b.upper for b in found} <= set(corners)


def test_profile_says_what_no_epsilon_mends():
    ax = fp.plot.profile([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]], np.eye(2))
    assert legend(ax) == ["matrix of 2 x 3: never below 0.25", "matrix of 2 x 2: never below 1"]
    assert set(line(ax, "matrix of 2 x 2").get_ydata()) == {1.0}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (fp.HammingChannel(3, 2, 700.0), "HammingChannel(n=3, m=2, epsilon=700): 0 from"),
        (fp.HammingChannel(3, 2, 1e-8), "HammingChannel(n=3, m=2, epsilon=1e-08): 0 from"),
        (fp.HammingChannel(3, 2, 1e-14), "HammingChannel(n=3, m=2, epsilon=1e-14): 0 from"),
        ([[0.5, 0.5]], "matrix of 1 x 2: 0 from epsilon 0 on"),
        ([[0.5, 0.5], [0.5, 0.5]], "matrix of 2 x 2: 0 from epsilon 0 on"),
        ([[1e-300, 1.0], [0.0, 1.0]], "matrix of 2 x 2: never below 1e-300"),
        (Profile.from_epsilon_delta(1.0, 1e-6).self_compose(20), "20 x (1, 1e-06)-DP: never below"),
        (Profile.of(MATRIX).self_compose(0), "no steps: 0 from epsilon 0 on"),
    ],
)
def test_edges_of_profiles(given, name):
    ax = fp.plot.profile(given)
    x, y = line(ax, name).get_data()
    assert x[0] == 0.0
    assert (np.diff(y) <= 0.0).all()
    assert ax.get_ylim()[1] > y[0] >= 0.0


def test_least_delta_reaches_far_down():
    once = Profile.randomised_response(2, 0.5)
    assert once.title == "randomised response, 2 values, epsilon 0.5"
    ax = fp.plot.profile(once.self_compose(1000), least=1e-300)
    assert legend(ax) == [f"1,000 x {once.title}: 0 from epsilon 500 on"]


def test_names_are_taken_as_they_are():
    ax = fp.plot.profile(np.eye(2), np.eye(3), labels=["_a $x_{$", 7])
    assert [text.split(":")[0] for text in legend(ax)] == [r" _a \$x_{\$", "7"]


# Composition.


def test_composition_is_epsilon_over_releases():
    channel = fp.HammingChannel(5, 3, 0.25)
    ax = fp.plot.composition(channel, releases=60, deltas=[1e-9, 1e-3])
    total = line(ax, "levels add: 0.25 each")
    counts = total.get_xdata()  # a straight line; the others are stairs with these corners
    assert counts[0] == 1
    assert counts[-1] == 60
    np.testing.assert_array_equal(total.get_ydata(), 0.25 * counts)
    profile = Profile.of(channel)
    for delta, name in ((1e-9, "1e-9"), (1e-3, "0.001")):
        drawn = line(ax, f"privacy profile, delta {name}").get_ydata()[::2]
        bound = line(ax, f"advanced composition, delta {name}").get_ydata()[::2]
        for k, value, other in zip(counts, drawn, bound, strict=True):
            assert value == profile.self_compose(int(k)).epsilon(delta).upper
            assert other == pytest.approx(oracle.advanced(0.25, k, delta), rel=1e-12)
            assert value <= min(other, 0.25 * k) * (1 + 1e-9)
    assert ax.get_xlabel() == "number of releases"
    assert "nats" in ax.get_ylabel()


def test_composition_shows_infinite_levels():
    ax = fp.plot.composition([[0.5, 0.499, 0.001], [0.5, 0.5, 0.0]], 100, 0.05)
    assert legend(ax)[0] == "levels add (infinite at 1 to 100)"
    assert "infinite at" in legend(ax)[1]
    arrows = [x for x in ax.lines if x.get_marker() == "^" and x.get_linestyle() == "None"]
    assert len(arrows) == 2
    drawn = line(ax, "privacy profile")
    finite = drawn.get_xdata()[np.isfinite(drawn.get_ydata())]
    # 1 - 0.999^k exceeds 0.05 from k = 52 on.
    assert arrows[1].get_xdata().min() >= 52
    assert finite.max() <= 51


@pytest.mark.parametrize("deltas", [0.0, 1.0, [0.0, 1e-6, 1.0]])
@pytest.mark.parametrize("channel", [np.eye(2), [[1.0]], fp.HammingChannel(2, 2, 700.0)])
def test_edges_of_composition(channel, deltas):
    ax = fp.plot.composition(channel, 1, deltas)
    assert line(ax, "levels add").get_xdata().tolist() == [1.0]


# Trade-off.


def test_a_missing_bound_is_not_called_infinite():
    band = importlib.import_module("fastpriv._drawing.style").band
    _, ax = plt.subplots()
    x, high = np.array([0.0, 1.0]), np.array([np.inf, 2.0])
    band(ax, x, np.array([1.0, 1.0]), high, "a", rising=False, color=FAMILY[0])
    band(ax, x, high, high, "b", rising=False, color=FAMILY[1])
    assert line(ax, "a").get_label() == "a (no bound at 0)"
    assert line(ax, "b").get_label() == "b (infinite at 0)"


def marked(ax, label):
    """The points of a line that have markers."""
    drawn = line(ax, label)
    x, y = drawn.get_data()
    kept = drawn.get_markevery()
    return x[kept], y[kept]


def test_tradeoff_is_the_figure_of_the_paper():
    prior = fp.Dense([0.4, 0.25, 0.15, 0.2], [2, 2])
    curve = fp.tradeoff_curve(prior)
    ax = curve.plot()
    (twin,) = [other for other in ax.figure.axes if other is not ax]
    for axes, notion, label in (
        (ax, "dp", "differential privacy"),
        (ax, "identifiability", "identifiability"),
        (twin, "mutual-information", "mutual information"),
    ):
        x, y = marked(axes, label)
        np.testing.assert_array_equal(x, curve.distortions)
        np.testing.assert_array_equal(y, curve.upper[notion])
    for notion, level in (("dp", prior.epsilon_hat()), ("identifiability", prior.epsilon_tilde())):
        assert curve.closed_form[notion] == (fp.h(level, 2, 2), level)
    stars = [s.get_data() for s in ax.lines if s.get_marker() == "*" and len(s.get_xdata())]
    assert [(x[0], y[0]) for x, y in stars] == [*curve.closed_form.values()]
    bounds = [x.get_ydata() for x in ax.lines if x.get_linestyle() == ":" and len(x.get_xdata())]
    for notion in ("dp", "identifiability"):
        for table in (curve.theorem_lower, curve.theorem_upper):
            values = np.where(np.isinf(table[notion]), np.nan, table[notion])
            ahead = table is curve.theorem_lower  # a lower bound on what falls
            corners = [drawn[::2] if ahead else drawn[1::2] for drawn in bounds]
            assert any(np.array_equal(values, drawn, equal_nan=True) for drawn in corners)
    assert legend(ax)[:3] == [
        "differential privacy",
        "identifiability",
        "mutual information (right)",
    ]
    assert "nats" in twin.get_ylabel()
    used = {x.get_color() for x in [*ax.lines, *twin.lines]}
    assert used <= {*FAMILY, "0.25"}


FALLING = {
    "bits": (fp.Product.iid([0.7, 0.3], 4), 1.2, math.log(7 / 3)),  # E_d is optimal until there
    "tied": (fp.Dense([0.4, 0.3, 0.2, 0.1]), 0.6, math.log(4 / 3)),
}


@pytest.mark.parametrize("grid", [3, 7, 25, [0.1, 0.5], [0.5, 1.0, 0.05], [0.3, 2.0]])
@pytest.mark.parametrize("name", FALLING)
def test_a_level_that_falls_at_once_is_drawn_so(name, grid):
    prior, place, before = FALLING[name]
    wanted = {"points": grid} if isinstance(grid, int) else {"distortions": grid}
    if prior.space.n == 1 and not isinstance(grid, int):
        wanted = {"distortions": [min(x, 1.0) for x in grid]}
    curve = fp.tradeoff_curve(prior, ["dp"], **wanted)
    ax = curve.plot()
    drawn = line(ax, "differential privacy")
    x, y = marked(ax, "differential privacy")
    order = np.argsort(curve.distortions)
    np.testing.assert_array_equal(x, curve.distortions[order])  # nothing off the grid is marked
    np.testing.assert_array_equal(y, curve.upper["dp"][order])
    if curve.distortions.max() < place * (1.0 - 1e-9):
        assert not curve.jumps
        return
    assert curve.jumps["dp"] == pytest.approx((place, before, 0.0), rel=2e-3)
    x, y = drawn.get_data()
    at = np.flatnonzero(np.isnan(y))
    assert x[at] == pytest.approx([place] * len(at))  # the line is broken there
    assert y[at[0] - 1] == pytest.approx(before, rel=2e-3)
    assert y[at[-1] + 1] == 0.0
    (fill,) = ax.collections
    corners = np.concatenate([path.vertices for path in fill.get_paths()])
    assert corners[:, 1].max() <= np.nanmax(y) * (1 + 1e-12)
    inside = (corners[:, 0] < place * (1 - 2e-4)) & (corners[:, 0] > corners[:, 0].min())
    assert (corners[inside, 1] >= before * (1 - 2e-3)).all()  # the jump itself is not shaded


def test_a_level_that_falls_continuously_has_no_jump():
    curve = fp.tradeoff_curve(fp.Uniform(2, 2), ["dp"])
    assert not curve.jumps
    assert np.isfinite(line(curve.plot(), "differential").get_ydata()).all()


def test_one_notion_one_point_any_order():
    alone = fp.plot.tradeoff(fp.tradeoff_curve(fp.Uniform(3, 2), ["mutual-information"], [0.5]))
    assert alone.get_ylabel() == "smallest mutual information (nats)"
    assert len(alone.figure.axes) == 1
    one = fp.plot.tradeoff(fp.tradeoff_curve(fp.Uniform(3, 2), ["dp"], [0.5]))
    assert set(line(one, "differential").get_xdata()) == {0.5}
    mixed = fp.plot.tradeoff(fp.tradeoff_curve(fp.Uniform(3, 2), ["dp"], [1.0, 0.0, 0.5]))
    assert marked(mixed, "differential")[0].tolist() == [0.0, 0.5, 1.0]
    assert "(infinite at 0)" in legend(mixed)[0]


def test_tradeoff_of_priors_with_nothing_to_say():
    fp.plot.tradeoff(fp.Dense([1.0]))
    ax = fp.plot.tradeoff(
        fp.tradeoff_curve(fp.Dense([0.5, 0.5, 0.0, 0.0], [2, 2]), ["identifiability"], [0.1, 0.2])
    )
    assert "identifiability (infinite at 0.1 to 0.2)" in legend(ax)
