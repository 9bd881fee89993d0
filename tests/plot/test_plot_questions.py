"""Plots of what follows from a profile: the numbers that are drawn."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest

import fastpriv as fp
from fastpriv.accounting import PrivacyProfile

GAUSS, MATRIX = PrivacyProfile.gaussian(1.0), [[0.75, 0.25], [0.25, 0.75]]


@pytest.mark.parametrize(
    ("draw", "ask", "end"),
    [
        (fp.plot.type_two_error, "tradeoff", "lower"),
        (fp.plot.roc, "tpr", "upper"),
        (fp.plot.bayes_risk, "bayes_risk", "lower"),
        (fp.plot.renyi, "renyi", "upper"),
    ],
)
def test_the_guaranteed_end_is_drawn(draw, ask, end):
    ax = draw(GAUSS, MATRIX, labels=["noise", "response"])
    line, other = ax.get_lines()[:2]
    assert (line.get_label(), other.get_label()) == ("noise", "response")
    places = np.unique(line.get_xdata())
    for x in np.concatenate([places[:: len(places) // 9], places[1:3], places[-3:]]):
        bound, drawn = getattr(getattr(GAUSS, ask)(float(x)), end), np.interp(x, *line.get_data())
        assert drawn == pytest.approx(bound, abs=0.03 * max(1.0, bound))
        assert drawn >= bound * (1 - 1e-9) if end == "upper" else drawn <= bound * (1 + 1e-9)
    assert np.all(np.isfinite(other.get_ydata()))


def test_infinite_divergences_are_arrows():
    ax = fp.plot.renyi(PrivacyProfile.from_epsilon_delta(1.0, 1e-3), orders=[2.0, 3.0])
    assert "infinite" in ax.get_legend_handles_labels()[1][0]


@pytest.mark.parametrize(
    "call",
    [
        fp.plot.type_two_error,
        lambda: fp.plot.roc(GAUSS, labels=["a", "b"]),
        lambda: fp.plot.renyi(GAUSS, orders=[1.0, 2.0]),
        lambda: fp.plot.renyi(GAUSS, orders=[]),
        lambda: fp.plot.renyi(GAUSS, orders=[2.0, math.inf]),
        lambda: fp.plot.bayes_risk("x"),
    ],
)
def test_what_cannot_be_drawn(call):
    with pytest.raises(fp.InvalidInput):
        call()
    assert not plt.get_fignums()


def test_risks_against_noise():
    from statistics import NormalDist

    noise = [0.5, 1.0, 2.0, 4.0]
    ax = fp.plot.risks(PrivacyProfile.gaussian, noise, fpr=0.05)
    lines = {line.get_label(): line for line in ax.lines}
    (advantage,) = [line for name, line in lines.items() if name.startswith("advantage")]
    x, y = (np.asarray(each) for each in advantage.get_data())
    for sigma in (0.5, 0.7, 1.5, 4.0):  # nowhere below the truth, also between the points
        truth = 2 * NormalDist().cdf(0.5 / sigma) - 1
        assert np.interp(sigma, x, y) >= truth * (1 - 1e-12)
    assert "epsilon" in ax.figure.axes[1].get_ylabel()


@pytest.mark.parametrize(
    ("make", "noise", "words"),
    [
        (1.0, [1.0, 2.0], "make must be a function"),
        (lambda x: x, [1.0, 2.0], "must return a PrivacyProfile"),
        (PrivacyProfile.gaussian, [2.0, 1.0], "increasing order"),
        (PrivacyProfile.gaussian, [1.0], "two positive"),
    ],
)
def test_risks_refused(make, noise, words):
    with pytest.raises(fp.InvalidInput, match=words):
        fp.plot.risks(make, noise)
