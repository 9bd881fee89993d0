"""Figures of the papers that need nothing but their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._core import validation as check
from fastpriv._drawing.safe import stairs
from fastpriv._drawing.style import INK, STYLES, axes, finish, mark, number, readable_logarithm
from fastpriv.design.closed_forms import h
from fastpriv.design.ratio_programs import solve_pd_dp, solve_pd_i
from fastpriv.errors import InvalidInput, described
from fastpriv.measures.inputs import as_channel
from fastpriv.mechanisms.counting import threshold_query_bound
from fastpriv.mechanisms.gaussian import mean_deviation_bound as bound
from fastpriv.mechanisms.gaussian import noise_comparison
from fastpriv.priors.base import as_prior

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastpriv.channels import AbstractChannel
    from fastpriv.priors import Distribution

__all__ = ["matrix", "mean_deviation", "models", "noise", "relaxation", "threshold_query"]

#: Most entries of a matrix whose probabilities are written out.
_WRITTEN = 600
#: Darkness from which on the probability is written in white.
_DARK = 0.6

#: The models of Wu-Xia-He 2020, Figure 2, and where their boxes are.
_MODELS = {
    "information privacy\nI(X_i; Y) at most e\nfor all records and priors": (2.0, 2.0),
    "bounded knowledge\nentropy of the prior at least b": (4.6, 2.0),
    "differential privacy\nlargest log-ratio at most e": (3.4, 1.0),
    "local differential privacy": (3.4, 0.0),
    "perfect secrecy\nI(X; Y) = 0": (0.6, 1.0),
    "semantic security": (0.6, 0.0),
}
#: Pairs of models by their numbers; the second is the first under an assumption.
_SPECIAL_CASES = {
    (0, 1): "fewer priors",
    (0, 2): "independent records,\nlargest log-ratio",
    (2, 3): "n = 1",
    (0, 4): "n = 1, e = 0",
    (4, 5): "efficient\nadversaries",
}

#: Share of the largest bound below which a bound is not shown.
_INVISIBLE = 1e-12


def threshold_query(
    sizes: Sequence[int] = (200, 500, 1000, 2000),
    chances: Sequence[float] = (0.3, 0.5),
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw a bound on the leakage of "yes, more than t" (Saeidian et al. 2024, Figure 1).

    Parameters
    ----------
    sizes : sequence of int
        Numbers of records, one colour each.
    chances : sequence of float
        Probabilities that a record is one, one line style each.
    ax : matplotlib Axes, optional
        Where; by default new ones.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

    Examples
    --------
    >>> import fastpriv as fp
    >>> len(fp.plot.threshold_query([200], [0.3, 0.5]).lines)
    2
    """
    curves = []
    for (i, n), (j, p) in product(enumerate(sizes), enumerate(chances)):
        thresholds = [t for t in range(0, n, max(1, n // 200)) if t < n * p]
        bounds = np.array([threshold_query_bound(n, t, p) for t in thresholds])
        # A higher threshold leaks more, so that a step is as high as its end.
        steps = stairs(np.array(thresholds) / n, bounds, ahead=True)
        curves.append((i, j, f"{n} records, probability {p:g}", steps))
    ax = axes(ax)
    for i, j, label, steps in curves:
        ax.plot(*steps, STYLES[j % len(STYLES)], label=label, **mark(i))
    ax.set_yscale("log")
    finish(
        ax,
        "threshold, as a fraction of the records",
        "upper bound on the leakage (nats)",
        legend=legend,
    )
    highest = max((float(steps[1].max()) for *_, steps in curves), default=1.0)
    ax.set_ylim(_INVISIBLE * highest, 3.0 * highest)
    readable_logarithm(ax)
    return ax


def noise(
    T: float = 1.0,
    sensitivity: float = 0.01,
    delta: float = 1e-6,
    balances: Sequence[float] = (0.0, 0.5, 1.0),
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the noise of three mechanisms over epsilon (Wu-Xia-He 2020, Section 5.2).

    Parameters
    ----------
    T, sensitivity, delta : float
        As for :func:`fastpriv.mechanisms.noise_comparison`.
    balances : sequence of float
        Values of the balance function, one line of the Gaussian privacy channel each.
    ax : matplotlib Axes, optional
        Where; by default new ones.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

    Examples
    --------
    >>> import fastpriv as fp
    >>> len(fp.plot.noise(balances=[0.0]).lines)
    3
    """
    epsilons = np.geomspace(0.01, 1.0, 400)
    common = [noise_comparison(T, e, sensitivity, delta) for e in epsilons]
    channels = [
        [noise_comparison(T, e, sensitivity, delta, balance).channel for e in epsilons]
        for balance in balances
    ]
    ax = axes(ax)
    # Noise falls with epsilon: a step that is as high as its start is never too little.
    lines = [("Laplace mechanism", "-", 0, [c.laplace for c in common])]
    name = f"Gaussian mechanism, delta {number(delta)}"
    lines.append((name, "-", 1, [c.gaussian for c in common]))
    for j, (balance, deviations) in enumerate(zip(balances, channels, strict=True)):
        name = f"Gaussian privacy channel, balance {balance:g}"
        lines.append((name, STYLES[j % len(STYLES)], 2, deviations))
    for name, style, colour, noises in lines:
        steps = stairs(epsilons, np.array(noises), ahead=False)
        ax.plot(*steps, style, label=name, **mark(colour))
    ax.set_xscale("log")
    ax.set_yscale("log")
    finish(ax, "epsilon (nats), of each notion", "standard deviation of the noise", legend=legend)
    return ax


def mean_deviation(
    T: float = 1.0,
    tau: float = 0.5,
    epsilons: Sequence[float] = (1.0, 1.5, 2.0),
    balance: float = 0.0,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the bound on a private mean's deviation over n (Wu-Xia-He 2020, Proposition 4).

    Parameters
    ----------
    T, tau, balance : float
        As for :func:`fastpriv.mechanisms.mean_deviation_bound`.
    epsilons : sequence of float
        Levels, one colour each; the limits are dotted.
    ax : matplotlib Axes, optional
        Where; by default new ones.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.mean_deviation(epsilons=[1.0]).get_xlabel()
    'number of records'
    """
    sizes = np.unique(np.geomspace(1, 10_000, 400).astype(int)).tolist()
    curves = [[bound(T, e, tau, n, balance=balance) for n in sizes] for e in epsilons]
    limits = [bound(T, e, tau, balance=balance) for e in epsilons]
    ax = axes(ax)
    for j, epsilon in enumerate(epsilons):
        steps = stairs(np.array(sizes), np.array(curves[j]), ahead=False)  # the bound falls with n
        line = ax.plot(*steps, label=f"epsilon {epsilon:g}", **mark(j))[0]
        ax.axhline(limits[j], linestyle=":", color=line.get_color())
    ax.set_xscale("log")
    name = f"bound on the probability of a deviation of {tau:g}"
    finish(ax, "number of records", name, legend=legend)
    return ax


def relaxation(
    prior: Distribution | ArrayLike,
    epsilons: Sequence[float] | None = None,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the optima of PD-I and PD-DP above their relaxation (Wang-Ying-Zhang 2015, Figure 3).

    R-PD at level e is a relaxation of PD-I at e, and of PD-DP at e - eps_X. So h(e) is at most the
    smallest distortion of either.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases, with eps_X finite.
    epsilons : sequence of float, optional
        Levels e of identifiability, at least eps_X. Default: 25 levels from eps_X on.
    ax : matplotlib Axes, optional
        Where; by default new ones.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.relaxation(fp.Dense([0.35, 0.25, 0.22, 0.18], [2, 2]), [0.5, 1.0, 1.5])
    >>> ax.get_xlabel()
    'level of identifiability (nats)'
    """
    law = as_prior(prior)
    spread, n, m = law.epsilon_x(), law.space.n, law.space.sizes
    if spread == np.inf:
        raise InvalidInput("prior must give every database a positive probability.")
    if epsilons is None:
        levels = np.linspace(spread * (1.0 + 1e-9), max(2.0 * spread, spread + 2.0), 25)
    else:
        levels = np.sort(check.floats(epsilons, "epsilons", 1))
        if not len(levels) or levels[0] < spread:
            raise InvalidInput(
                f"epsilons must be at least eps_X = {spread:g}; got {described(epsilons)}."
            )
    identifiable = [solve_pd_i(law, float(e)).value for e in levels]
    private = [solve_pd_dp(law, float(max(e - spread, 0.0))).value for e in levels]
    relaxed = np.array([float(h(e, n, m)) for e in levels.tolist()])
    ax = axes(ax)
    lines = [
        ("PD-DP at the level less eps_X", private, "-"),
        ("PD-I", identifiable, "-"),
        ("R-PD: h of the level", relaxed, "--"),
    ]
    for j, (label, values, style) in enumerate(lines):
        # Distortions fall with the level: a step as high as its start can be attained.
        steps = stairs(levels, np.array(values), ahead=j == len(lines) - 1)
        ax.plot(*steps, style, label=label, **mark(j))
    ax.set_ylim(bottom=0.0)
    finish(ax, "level of identifiability (nats)", "smallest expected distortion", legend=legend)
    return ax


def matrix(channel: AbstractChannel | ArrayLike, ax: Axes | None = None) -> Axes:
    """Draw the probability of each output for each database (Wu-Xia-He 2020, Figure 1).

    The paper draws the matrix of Example 1 as a cube with the axes x_1, x_2 and y. Here the planes
    of equal x_1 are below each other, with a line between them.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism, with up to 600 entries.
    ax : matplotlib Axes, optional
        Where; by default new ones.

    Examples
    --------
    >>> import fastpriv as fp
    >>> example = fp.mechanisms.binary_symmetric([1, 0, 0, 1, 0, 0], 0.25, [3, 2])
    >>> [label.get_text() for label in fp.plot.matrix(example).get_yticklabels()]
    ['0, 0', '0, 1', '1, 0', '1, 1', '2, 0', '2, 1']
    """
    mechanism = as_channel(channel)
    count = mechanism.space.size
    check.fits(count * mechanism.output_space.size, "the figure", "draw fewer", _WRITTEN)
    table = mechanism.matrix()
    names = [", ".join(map(str, row)) for row in mechanism.space.rows(np.arange(count)).tolist()]
    ax = axes(ax, (2.0 + 0.6 * table.shape[1], 1.2 + 0.36 * count))
    ax.imshow(table, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for (x, y), value in np.ndenumerate(table):
        colour = "white" if value > _DARK else INK
        ax.text(y, x, number(float(value)), ha="center", va="center", color=colour, fontsize=8)
    plane = count // mechanism.space.sizes[0]
    for edge in range(plane, count, plane) if mechanism.space.n > 1 else ():
        ax.axhline(edge - 0.5, color=INK, linewidth=1.0)
    ax.set_yticks(range(count), names, fontsize="small")
    ax.set_xticks(range(table.shape[1]))
    ax.set_xlabel("output y", fontsize="small")
    ax.set_ylabel("database x", fontsize="small")
    return ax


def models(ax: Axes | None = None) -> Axes:
    """Draw how models of privacy and of encryption are related (Wu-Xia-He 2020, Figure 2).

    An arrow leads from a model to a special case of it, with the assumption beside it.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where; by default new ones, 7 inches wide.

    Examples
    --------
    >>> import fastpriv as fp
    >>> len(fp.plot.models().texts)  # six models, and five arrows with their assumptions
    16
    """
    ax = axes(ax, (7.0, 3.6))
    places = list(_MODELS.values())
    for (first, second), assumption in _SPECIAL_CASES.items():
        ends = places[first], places[second]
        arrow = {"arrowstyle": "->", "color": INK, "linewidth": 0.8, "shrinkA": 26, "shrinkB": 26}
        if ends[0][1] == ends[1][1]:
            arrow |= {"shrinkA": 65, "shrinkB": 76}
        ax.annotate("", xy=ends[1], xytext=ends[0], arrowprops=arrow)
        x, y = np.mean(ends, axis=0)
        side = "right" if ends[1][0] < ends[0][0] else "left"
        x += -0.15 if side == "right" else 0.1
        if ends[0][1] == ends[1][1]:  # above the arrow, between the boxes
            x, y, side = x - 0.15, y + 0.08, "center"
        ax.text(x, y + 0.06, assumption, ha=side, va="center", fontsize=7.5, color=INK)
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": INK}
    for name, (x, y) in _MODELS.items():
        ax.text(x, y, name, ha="center", va="center", fontsize=8, bbox=box)
    ax.set_xlim(-0.3, 5.8)
    ax.set_ylim(-0.35, 2.4)
    ax.set_axis_off()
    return ax
