"""What holds for every figure: sizes, axes, legends, files, words, wrong input."""

import importlib
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

import fastpriv as fp

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = importlib.import_module("matplotlib.pyplot")

MATRIX = [[0.5, 0.25, 0.125, 0.125], [0.25, 0.5, 0.125, 0.125], [0.125, 0.125, 0.25, 0.5]]
PRIOR = [0.5, 0.25, 0.25]


def estimated():
    released = fp.release(np.repeat([0, 1, 2], [600, 300, 9]), domain=4, epsilon=2.0, rng=5)
    return fp.estimate_frequencies(released)


CALLS = {
    "balance": lambda ax, **look: fp.plot.balance(
        fp.HammingChannel(2, 2, 1.0), points=3, ax=ax, **look
    ),
    "composition": lambda ax, **look: fp.plot.composition(MATRIX, 5, ax=ax, **look),
    "exact": lambda ax, **look: fp.plot.exact(fp.exact_curve([0.75, 0.25], 0.0, 2.0), ax, **look),
    "frequencies": lambda ax, **look: fp.plot.frequencies(estimated(), ax=ax, **look),
    "implications": lambda ax, **look: fp.plot.implications(fp.implications(1.0, "dp", n=3), ax),
    "leakage": lambda ax, **look: fp.plot.leakage(MATRIX, PRIOR, ax=ax, **look),
    "mean_deviation": lambda ax, **look: fp.plot.mean_deviation(ax=ax, **look),
    "noise": lambda ax, **look: fp.plot.noise(ax=ax, **look),
    "profile": lambda ax, **look: fp.plot.profile(MATRIX, ax=ax, **look),
    "bayes_risk": lambda ax, **look: fp.plot.bayes_risk(MATRIX, ax=ax, **look),
    "renyi": lambda ax, **look: fp.plot.renyi(MATRIX, ax=ax, **look),
    "risks": lambda ax, **look: fp.plot.risks(
        fp.accounting.PrivacyProfile.gaussian, [0.5, 1.0, 2.0], ax=ax, **look
    ),
    "roc": lambda ax, **look: fp.plot.roc(MATRIX, ax=ax, **look),
    "type_two_error": lambda ax, **look: fp.plot.type_two_error(MATRIX, ax=ax, **look),
    "relaxation": lambda ax, **look: fp.plot.relaxation(PRIOR, [1.0, 2.0], ax=ax, **look),
    "threshold_query": lambda ax, **look: fp.plot.threshold_query([200], ax=ax, **look),
    "tradeoff": lambda ax, **look: fp.plot.tradeoff(fp.Uniform(2, 2), ax=ax, **look),
}


def test_calls_are_complete():
    assert set(CALLS) <= set(fp.plot.__all__)
    # The levels of an audit are tested with it; a matrix, a map and a diagram have no curves.
    assert set(fp.plot.__all__) - set(CALLS) <= {"cells", "levels", "matrix", "models"}


@pytest.mark.parametrize("name", CALLS)
def test_given_axes_are_used_at_the_width_of_a_phone(name):
    figure, ax = plt.subplots(figsize=(3.75, 3.4), layout="constrained")
    assert CALLS[name](ax) is ax
    assert ax.lines or ax.texts
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()
    if name != "implications":
        assert ax.get_window_extent().width > 200  # of 375
        assert ax.get_window_extent().height > 130  # of 340


@pytest.mark.parametrize("name", [name for name in CALLS if name != "implications"])  # no legend
def test_figures_fit_a_column_of_a_paper(name):
    figure, ax = plt.subplots(figsize=(3.4, 2.4), layout="constrained")
    CALLS[name](ax)
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    labels = [label for one in figure.axes for label in (one.xaxis.label, one.yaxis.label)]
    for part in (ax.get_legend(), *labels):
        box = part.get_window_extent()
        assert box.x0 >= -1.0
        assert box.y0 >= -1.0
        assert box.x1 <= width + 1.0
        assert box.y1 <= height + 1.0
    assert ax.get_window_extent().width > 0.45 * width
    assert ax.get_window_extent().height > 0.3 * height


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"implications"}))
def test_legends_are_left_out_or_put_inside(name):
    call = CALLS[name]
    assert call(None, legend=False).get_legend() is None
    ax = call(None, legend="upper right")
    ax.figure.canvas.draw()
    box, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert box.y1 <= frame.y1 + 1.0
    assert box.x1 <= frame.x1 + 1.0


@pytest.mark.parametrize("kind", ["pdf", "ps"])
def test_files_have_fonts_of_type_42(kind, tmp_path):
    ax = fp.plot.exact(fp.exact_curve([0.75, 0.25], 0.0, 2.0))
    path = tmp_path / f"figure.{kind}"
    plt.savefig(path)
    data = path.read_bytes()
    assert (b"/FontType 42" if kind == "ps" else b"/Subtype /Type0") in data or b"FontFile2" in data
    assert b"/Type3" not in data
    assert b"/FontType 3" not in data
    assert plt.rcParams["pdf.fonttype"] == 3  # other figures are left alone
    assert ax.figure.number in plt.get_fignums()


@pytest.mark.parametrize("name", CALLS)
def test_axes_that_are_none_leave_no_figure(name):
    with pytest.raises(fp.InvalidInput, match="ax must be matplotlib Axes"):
        CALLS[name](3)
    assert not plt.get_fignums()


@pytest.mark.parametrize("name", CALLS)
def test_figures_speak_in_words(name):
    ax = CALLS[name](None)
    assert len(plt.get_fignums()) == 1
    if name != "implications":
        assert len(ax.get_xlabel().split()) >= 2
        assert len(ax.get_ylabel().split()) >= 3
        ax.figure.canvas.draw()
        box = ax.get_legend().get_window_extent()
        assert box.y0 >= ax.get_window_extent().y1 - 1.0  # above the data


@pytest.mark.parametrize("notion", ["dp", "pml"])
def test_implications_fit_seven_inches(notion):
    found = fp.implications(0.1, notion, prior=fp.Product.iid([0.6, 0.4], 2))
    ax = fp.plot.implications(found)
    figure = ax.figure
    figure.canvas.draw()
    assert figure.get_figwidth() == 7.0
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
    assert max(box.x1 for box in boxes) <= 700.0
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    assert set(found.levels) <= {text.get_text().split("\n")[0] for text in ax.texts}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fp.plot.tradeoff([[0.5, 0.5]]), "Distribution"),
        (
            lambda: fp.plot.tradeoff(fp.tradeoff_curve(fp.Uniform(2, 2), ["dp"], [])),
            "one distortion or more",
        ),
        (lambda: fp.plot.leakage(MATRIX, [0.5, 0.6, 0.1]), "sum"),
        (lambda: fp.plot.leakage(fp.Uniform(2, 2), fp.Uniform(2, 2)), "channel"),
        (lambda: fp.plot.leakage(MATRIX, PRIOR, draws=0), "draws"),
        (lambda: fp.plot.leakage(MATRIX, PRIOR, rng=-1), "rng"),
        (lambda: fp.plot.profile(), "or more"),
        (lambda: fp.plot.profile(MATRIX, labels="a"), "labels must hold 1"),
        (lambda: fp.plot.profile(MATRIX, labels=["a", "b"]), "labels must hold 1"),
        (lambda: fp.plot.profile(MATRIX, labels=3), "labels must hold 1"),
        (lambda: fp.plot.profile(MATRIX, least=0.0), "least"),
        (lambda: fp.plot.profile("x"), "matrix|real"),
        (lambda: fp.plot.composition(MATRIX, 0), "releases"),
        (lambda: fp.plot.composition(MATRIX, 2.5), "releases"),
        (lambda: fp.plot.composition(MATRIX, 10**400), "2.53"),
        (lambda: fp.plot.composition(MATRIX, 5, [2.0]), "delta"),
        (lambda: fp.plot.composition(MATRIX, 5, []), "one delta or more"),
        (lambda: fp.plot.composition(MATRIX, 5, [math.nan]), "delta"),
        (lambda: fp.plot.implications(3), "a result of implications"),
        (lambda: fp.plot.balance(MATRIX, points=1), "points"),
    ],
)
def test_wrong_input_is_explained_and_leaves_no_figure(call, message):
    with pytest.raises(fp.InvalidInput, match=message):
        call()
    assert not plt.get_fignums()


def test_a_missing_matplotlib_names_its_extra():
    code = """
import sys
sys.modules["matplotlib"] = None
sys.modules["matplotlib.pyplot"] = None
import fastpriv as fp
try:
    fp.plot.leakage([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5])
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "matplotlib" in run.stdout
    assert "pip install 'fastpriv[plot]'" in run.stdout


def test_bar_labels_are_rounded_up_and_need_no_spaces():
    ax = fp.plot.levels(fp.audit(fp.HammingChannel(2, 2, 1.2345), time_limit=0))
    texts = [text.get_text() for text in ax.texts]
    assert texts[0] == "1.24"
    assert all(text == text.strip() for text in texts)


def test_dots_of_frequencies_are_estimates_and_bars_intervals():
    counts = estimated()
    ax = fp.plot.frequencies(counts, 0)
    drawn = np.concatenate([line.get_xdata() for line in ax.lines if line.get_marker() == "o"])
    np.testing.assert_allclose(np.sort(drawn), np.sort(counts[0].estimates))
    (bars,) = [part for part in ax.collections if len(part.get_segments()) == 4]
    ends = np.array([segment[:, 0] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, np.stack([counts[0].lower, counts[0].upper], axis=1))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2", "3"]
    with pytest.raises(fp.InvalidInput, match="estimated must be a result"):
        fp.plot.frequencies([1.0])
    with pytest.raises(fp.InvalidInput, match="no column"):
        fp.plot.frequencies(counts, "age")


def test_legends_name_mechanisms_and_the_reference_line():
    noise = fp.accounting.PrivacyProfile.gaussian(2.0)
    ax = fp.plot.roc(noise, fp.HammingChannel(1, 2, 1.0), MATRIX, MATRIX)
    assert ax.get_legend_handles_labels()[1] == [
        "Gaussian noise, multiplier 2",
        "HammingChannel(n=1, m=2, epsilon=1)",
        "matrix of 3 x 4 (3)",
        "matrix of 3 x 4 (4)",
        "output independent of the data",
    ]


def test_ticks_of_threshold_queries_can_be_read():
    ax = fp.plot.threshold_query([200, 2000], [0.3, 0.5])
    ax.figure.canvas.draw()
    low, high = ax.get_ylim()
    assert high / low < 1e14
    shown = [label.get_text() for label in ax.get_yticklabels()]
    values = [v for v in map(float, shown) if low <= v <= high]
    assert 4 <= len(values) <= 14


def test_bounds_of_a_tradeoff_do_not_jump_up():
    curve = fp.tradeoff_curve(fp.Exchangeable.beta_binomial(6, 0.5, 0.8), points=12)
    ax = curve.plot()
    dotted = [line for line in ax.lines if line.get_linestyle() == ":" and len(line.get_xdata())]
    assert len(dotted) >= 3
    for line in dotted:
        heights = line.get_ydata()[np.isfinite(line.get_ydata())]
        assert (np.diff(heights) <= 1e-12).all()


def drawn(ax):
    return np.asarray(ax.images[0].get_array())


def test_a_map_shows_the_distribution_of_a_cell():
    channel = fp.mechanisms.planar_geometric((3, 5), 0.8)
    figure, ax = plt.subplots(figsize=(3.75, 3.4), layout="constrained")
    assert fp.plot.cells(channel, (3, 5), at=(1, 4), ax=ax) is ax
    np.testing.assert_array_equal(drawn(ax), channel.matrix()[9].reshape(3, 5))
    (cross,) = ax.lines
    assert (cross.get_xdata()[0], cross.get_ydata()[0]) == (4, 1)
    figure.canvas.draw()


def test_a_map_shows_the_cost_of_every_cell():
    channel = fp.mechanisms.planar_laplace((2, 3), 0.8)
    places = np.array([(i, j) for i in range(2) for j in range(3)])
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    costs = (channel.matrix() * apart).sum(axis=1).reshape(2, 3)
    np.testing.assert_allclose(drawn(fp.plot.cells(channel, (2, 3))), costs, rtol=1e-14)
    few = fp.Channel(np.array([[0.5, 0.5]] * 6))
    doubled = fp.plot.cells(few, (2, 3), metric=np.arange(12.0).reshape(6, 2))
    np.testing.assert_allclose(drawn(doubled), (np.arange(6) * 2 + 0.5).reshape(2, 3))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"grid": (2, 2)}, "grid must have a cell for each of 6 inputs"),
        ({"grid": (6,)}, "grid must be two integers"),
        ({"grid": 6}, "grid"),
        ({"grid": (2, 3), "at": (2, 0)}, "at must be at most 1"),
        ({"grid": (2, 3), "at": (0, 3)}, "at must be at most 2"),
        ({"grid": (2, 3), "at": 1}, "at"),
        ({"grid": (2, 3), "metric": np.eye(3)}, "metric"),
    ],
)
def test_wrong_maps_are_refused_in_words(given, words):
    with pytest.raises(fp.InvalidInput, match=words):
        fp.plot.cells(fp.mechanisms.planar_geometric((2, 3), 1.0), **given)
    assert not plt.get_fignums()


def test_a_map_needs_outputs_that_are_cells():
    few = np.array([[0.5, 0.5]] * 6)
    with pytest.raises(fp.InvalidInput, match="Leave out at"):
        fp.plot.cells(few, (2, 3), at=(0, 0))
    with pytest.raises(fp.InvalidInput, match="metric must be given"):
        fp.plot.cells(few, (2, 3))
