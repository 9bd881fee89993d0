"""Figures of the papers, and figures and numbers in bits."""

import importlib
import math

import numpy as np
import pytest

import fastpriv as fp

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = importlib.import_module("matplotlib.pyplot")

PRIOR = fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2])


def test_numbers_in_bits():
    assert fp.in_bits(math.log(8.0)) == 3.0
    assert fp.in_bits(math.inf) == math.inf
    assert fp.in_bits(np.log([2.0, 4.0])) == pytest.approx([1.0, 2.0], rel=1e-15)
    capacity = fp.channel_capacity([[0.75, 0.25], [0.25, 0.75]])
    bits = fp.in_bits(capacity)
    exact = 1 + 0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)
    assert bits.lower <= exact <= bits.upper
    assert bits.width <= 1.5 * capacity.width / math.log(2) + 1e-15
    assert fp.in_bits(fp.Bracket(1.0, 2.0, guaranteed="lower")).guaranteed == "lower"
    many = fp.in_bits(fp.channel_capacity([np.eye(2), [[0.5, 0.5]] * 2]))
    assert many.lower[0] <= 1.0 <= many.upper[0]
    for wrong in (None, True, "1 nat", [[1.0], "x"]):
        with pytest.raises(fp.InvalidInput):
            fp.in_bits(wrong)


def test_a_figure_and_its_twin_in_bits():
    ax = fp.plot.tradeoff(PRIOR)
    drawn = [line.get_ydata() for line in ax.lines]
    assert fp.in_bits(ax) is ax
    twin = next(other for other in ax.figure.axes if other is not ax)
    assert ax.get_ylabel() == "best privacy level (bits)"
    assert twin.get_ylabel() == "smallest mutual information (bits)"
    assert ax.get_xlabel() == "expected number of changed records"
    ax.figure.canvas.draw()
    for axis in (ax.yaxis, twin.yaxis):
        for place, label in zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True):
            assert float(label.get_text()) == pytest.approx(place / math.log(2), abs=1e-3)
            assert len(label.get_text()) <= 5  # round numbers
    for line, before in zip(ax.lines, drawn, strict=True):
        assert np.array_equal(line.get_ydata(), before, equal_nan=True)
    again = fp.in_bits(ax)  # a second time changes nothing
    assert again.get_ylabel() == "best privacy level (bits)"


def test_a_logarithmic_axis_in_bits():
    ax = fp.in_bits(fp.plot.noise())
    assert ax.get_xlabel() == "epsilon (bits), of each notion"
    ax.figure.canvas.draw()
    labels = [float(label.get_text()) for label in ax.get_xticklabels() if label.get_text()]
    assert {0.1, 1.0} <= set(labels)


def test_the_legend_names_the_results_that_are_drawn():
    both = fp.plot.tradeoff(fp.tradeoff_curve(PRIOR, ["dp", "identifiability"], [0.3, 0.6]))
    one = fp.plot.tradeoff(fp.tradeoff_curve(PRIOR, ["dp"], [0.3, 0.6]))
    texts = [[t.get_text() for t in ax.get_legend().get_texts()] for ax in (both, one)]
    assert "bounds: Theorem 1, Main Result 1, eps_tilde" in texts[0]
    assert "bounds: Theorem 1" in texts[1]


def test_ticks_of_figure_1_are_few_and_even():
    ax = fp.plot.threshold_query()
    low, high = ax.get_ylim()
    ticks = np.array([t for t in ax.get_yticks() if low <= t <= high])
    exponents = np.log10(ticks)
    assert 4 <= len(exponents) <= 9
    steps = np.diff(exponents)
    assert steps == pytest.approx(steps[0])
    assert steps[0] == pytest.approx(round(steps[0]))


def test_the_relaxation_is_below_both_programs():
    levels = [0.5, 0.8, 1.5]
    ax = fp.plot.relaxation(PRIOR, levels)
    private, identifiable, relaxed = (line.get_ydata() for line in ax.lines)
    assert relaxed[0] == pytest.approx(fp.h(0.5, 2, 2))
    assert identifiable[0] == pytest.approx(fp.solve_pd_i(PRIOR, 0.5).value)
    assert private[-1] == pytest.approx(fp.solve_pd_dp(PRIOR, 1.5 - PRIOR.epsilon_x()).value)
    assert (relaxed <= identifiable * (1 + 1e-9)).all()
    assert (relaxed <= private * (1 + 1e-9)).all()
    assert fp.plot.relaxation(PRIOR).lines
    with pytest.raises(fp.InvalidInput, match="at least eps_X"):
        fp.plot.relaxation(PRIOR, [0.1])
    with pytest.raises(fp.InvalidInput, match="positive probability"):
        fp.plot.relaxation([1.0, 0.0])


def test_the_matrix_of_example_1():
    example = fp.mechanisms.binary_symmetric([1, 0, 0, 1, 0, 0], 0.25, [3, 2])
    ax = fp.plot.matrix(example)
    written = [float(text.get_text()) for text in ax.texts]
    assert written == example.matrix().ravel().tolist()
    assert len(ax.lines) == 2  # between the three planes
    assert np.array_equal(ax.images[0].get_array(), example.matrix())
    assert not fp.plot.matrix(np.eye(2)).lines
    with pytest.raises(fp.TooLarge):
        fp.plot.matrix(fp.HammingChannel(6, 2, 1.0))


def test_the_models_and_their_special_cases():
    """Wu-Xia-He 2020, Figure 2: every arrow has its assumption, and all boxes are inside."""
    ax = fp.plot.models()
    written = [text.get_text() for text in ax.texts]
    assert {"semantic security", "local differential privacy", "n = 1, e = 0"} <= set(written)
    ax.figure.canvas.draw()
    frame = ax.figure.bbox
    for text in ax.texts:
        if text.get_text():
            box = text.get_window_extent()
            assert frame.x0 <= box.x0
            assert box.x1 <= frame.x1
            assert frame.y0 <= box.y0
            assert box.y1 <= frame.y1
