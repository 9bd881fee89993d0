"""Figures, with the ``plot`` extra."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._extras import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastpriv.channels import AbstractChannel
    from fastpriv.relations import Implications
    from fastpriv.tradeoff.curve import TradeoffCurve

__all__ = ["balance", "implications", "mean_deviation", "noise", "threshold_query", "tradeoff"]

#: Colour-blind safe (Okabe and Ito).
_COLOURS = {"dp": "#0072B2", "identifiability": "#D55E00", "mutual-information": "#009E73"}
_NAMES = {
    "dp": "differential privacy",
    "identifiability": "identifiability",
    "mutual-information": "mutual information",
}


#: More of them, for families of lines.
_FAMILY = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_STYLES = ("-", "--", ":", "-.")


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes, new ones of this size if there are none."""
    if ax is not None:
        return ax
    pyplot: Any = optional("matplotlib.pyplot", "plot")
    made: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return made


def balance(
    channel: AbstractChannel | ArrayLike,
    points: int = 17,
    *,
    gap: float = 1e-2,
    time_limit: float = 2.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw constrained capacity and balance function over b, each as a band between its bounds.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    points : int
        Values of b, evenly from 0 to ln N.
    gap, time_limit : float
        As for :func:`fastpriv.constrained_capacity`; the time is for each point.
    ax : matplotlib Axes, optional
        Where; by default new ones.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.balance([[0.9, 0.1], [0.2, 0.8]], points=3).get_xlabel()
    'entropy that every adversary lacks (nats)'
    """
    from fastpriv import _validation as check
    from fastpriv.measures._arguments import as_channel
    from fastpriv.measures.balance import balance_and_capacity

    mechanism = as_channel(channel)
    grid = np.linspace(0.0, np.log(mechanism.space.size), check.integer(points, "points", 2))
    gained, left = balance_and_capacity(mechanism, grid, gap, time_limit)
    ax = _axes(ax, (6.4, 4.4))
    for found, colour, style, name in (
        (left, _FAMILY[0], "-", "information about an individual"),
        (gained, _FAMILY[1], "--", "balance function: what is gained"),
    ):
        ax.fill_between(grid, found.lower, found.upper, color=colour, alpha=0.3, linewidth=0)
        ax.plot(grid, found.upper, style, color=colour, linewidth=1.0, label=name)
        ax.plot(grid, found.lower, style, color=colour, linewidth=1.0)
    ax.set_xlabel("entropy that every adversary lacks (nats)")
    ax.set_ylabel("largest information, and its decrease (nats)")
    ax.set_ylim(bottom=0.0)
    ax.legend(title="between proved bounds", frameon=False)
    return ax


def tradeoff(curve: TradeoffCurve, ax: Axes | None = None) -> Axes:
    """Draw the best levels over distortion, with the bounds of Theorem 1 as thin lines.

    Parameters
    ----------
    curve : TradeoffCurve
        What to draw.
    ax : matplotlib Axes, optional
        Where; by default new ones.

    Examples
    --------
    >>> import fastpriv as fp
    >>> curve = fp.tradeoff_curve(fp.Uniform(3, 2), ["dp"], [0.5, 1.0])
    >>> fp.plot.tradeoff(curve).get_ylabel()
    'best privacy level (nats)'
    """
    ax = _axes(ax, (6.4, 4.4))
    for notion in curve.lower:
        colour, low, high = _COLOURS[notion], curve.lower[notion], curve.upper[notion]
        finite = np.isfinite(low) & np.isfinite(high)
        x = curve.distortions[finite]
        ax.fill_between(x, low[finite], high[finite], color=colour, alpha=0.3, linewidth=0)
        ax.plot(x, high[finite], color=colour, marker=".", label=_NAMES[notion])
        for bounds, style in ((curve.theorem_lower, ":"), (curve.theorem_upper, "--")):
            if notion in bounds:
                values = np.where(np.isfinite(bounds[notion]), bounds[notion], np.nan)
                ax.plot(curve.distortions, values, style, color=colour, linewidth=0.8)
    ax.set_xlabel("expected number of changed rows")
    ax.set_ylabel("best privacy level (nats)")
    ax.set_ylim(bottom=0.0)
    ax.legend(title="bounds of Theorem 1: dotted below, dashed above", frameon=False)
    return ax


def threshold_query(
    sizes: Sequence[int] = (200, 500, 1000, 2000),
    chances: Sequence[float] = (0.3, 0.5),
    ax: Axes | None = None,
) -> Axes:
    """Draw what a truthful "yes, more than t" can leak at most (Saeidian et al. 2024, Figure 1).

    Parameters
    ----------
    sizes : sequence of int
        Numbers of rows, one colour each.
    chances : sequence of float
        Chances that a row holds a one, one line style each.
    ax : matplotlib Axes, optional
        Where; by default new ones.

    Examples
    --------
    >>> import fastpriv as fp
    >>> len(fp.plot.threshold_query([200], [0.3, 0.5]).lines)
    2
    """
    from fastpriv.measures.threshold_query import threshold_query_bound

    ax = _axes(ax, (6.4, 4.4))
    for i, n in enumerate(sizes):
        for j, p in enumerate(chances):
            thresholds = [t for t in range(0, n, max(1, n // 200)) if t < n * p]
            ax.plot(
                [t / n for t in thresholds],
                [threshold_query_bound(n, t, p) for t in thresholds],
                _STYLES[j % len(_STYLES)],
                color=_FAMILY[i % len(_FAMILY)],
                label=f"{n} rows, chance {p:g}",
            )
    ax.set_yscale("log")
    ax.set_xlabel("threshold, as a fraction of the rows")
    ax.set_ylabel("upper bound on the leakage (nats)")
    ax.legend(frameon=False)
    return ax


def noise(
    T: float = 1.0,
    sensitivity: float = 0.01,
    delta: float = 1e-6,
    balances: Sequence[float] = (0.0, 0.5, 1.0),
    ax: Axes | None = None,
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

    Examples
    --------
    >>> import fastpriv as fp
    >>> len(fp.plot.noise(balances=[0.0]).lines)
    3
    """
    from fastpriv.mechanisms.utility import noise_comparison

    ax = _axes(ax, (6.4, 4.4))
    epsilons = np.geomspace(0.01, 1.0, 100)
    plain = [noise_comparison(T, e, sensitivity, delta) for e in epsilons]
    ax.plot(epsilons, [p.laplace for p in plain], color=_FAMILY[0], label="Laplace mechanism")
    name = f"Gaussian mechanism, delta = {delta:g}"
    ax.plot(epsilons, [p.gaussian for p in plain], color=_FAMILY[1], label=name)
    for j, balance in enumerate(balances):
        found = [noise_comparison(T, e, sensitivity, delta, balance).channel for e in epsilons]
        style = _STYLES[j % len(_STYLES)]
        name = f"Gaussian privacy channel, balance {balance:g}"
        ax.plot(epsilons, found, style, color=_FAMILY[2], label=name)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("epsilon (nats), of each notion")
    ax.set_ylabel("standard deviation of the noise")
    ax.legend(frameon=False)
    return ax


def mean_deviation(
    T: float = 1.0,
    tau: float = 0.5,
    epsilons: Sequence[float] = (1.0, 1.5, 2.0),
    balance: float = 0.0,
    ax: Axes | None = None,
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

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.mean_deviation(epsilons=[1.0]).get_xlabel()
    'number of rows'
    """
    from fastpriv.mechanisms.utility import mean_deviation_bound as bound

    ax = _axes(ax, (6.4, 4.4))
    sizes = np.unique(np.geomspace(1, 10_000, 100).astype(int)).tolist()
    for j, epsilon in enumerate(epsilons):
        colour = _FAMILY[j % len(_FAMILY)]
        values = [bound(T, epsilon, tau, n, balance=balance) for n in sizes]
        ax.plot(sizes, values, color=colour, label=f"epsilon = {epsilon:g}")
        ax.axhline(bound(T, epsilon, tau, balance=balance), linestyle=":", color=colour)
    ax.set_xscale("log")
    ax.set_xlabel("number of rows")
    ax.set_ylabel(f"bound on the chance of a deviation of {tau:g}")
    ax.legend(frameon=False)
    return ax


def implications(found: Implications, ax: Axes | None = None) -> Axes:
    """Draw which guarantee gives which, each box one step to the right of the one it rests on.

    Parameters
    ----------
    found : Implications
        What to draw.
    ax : matplotlib Axes, optional
        Where; by default new ones.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.implications(fp.implications(0.5, "dp")).get_title()
    'what follows from dp at level 0.5'
    """
    layers: dict[int, list[str]] = {}
    for name in found.levels:
        layers.setdefault(len(found.chain(name)), []).append(name)
    ax = _axes(ax, (3.6 * len(layers), 1.1 * max(map(len, layers.values())) + 0.8))
    place: dict[str, tuple[float, float]] = {}
    for depth, names in sorted(layers.items()):
        if depth:  # in the order of what they rest on, so that few arrows cross
            names.sort(key=lambda name: -place[found.steps[name].premise][1])
        for row, name in enumerate(names):
            place[name] = float(depth), -(row + 0.5) / len(names)
    for name, (x, y) in place.items():
        colour = _COLOURS["identifiability" if name == found.notion else "dp"]
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": colour}
        ax.text(x, y, f"{name}\n{found.levels[name]:.4g}", ha="center", va="center", bbox=box)
    for step in found.steps.values():
        tail, head = place[step.premise], place[step.conclusion]
        arrow = {"arrowstyle": "->", "color": "0.4", "shrinkA": 42, "shrinkB": 42}
        ax.annotate("", xy=head, xytext=tail, arrowprops=arrow)
        middle = (tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2
        note = f"{step.formula}\n{step.source.replace(', ', chr(10), 1)}"
        plain = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        ax.text(*middle, note, ha="center", va="center", fontsize=7, color="0.3", bbox=plain)
    ax.set_xlim(-0.5, max(layers) + 0.5)
    ax.set_ylim(-1.0, 0.0)
    ax.set_axis_off()
    ax.set_title(f"what follows from {found.notion} at level {found.level:g}")
    return ax
