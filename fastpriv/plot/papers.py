"""Figures of the papers that need nothing but their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._drawing.safe import stairs
from fastpriv._drawing.style import STYLES, axes, finish, mark, number
from fastpriv.mechanisms.counting import threshold_query_bound
from fastpriv.mechanisms.gaussian import mean_deviation_bound as bound
from fastpriv.mechanisms.gaussian import noise_comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["mean_deviation", "noise", "threshold_query"]


def threshold_query(
    sizes: Sequence[int] = (200, 500, 1000, 2000),
    chances: Sequence[float] = (0.3, 0.5),
    ax: Axes | None = None,
    legend: bool | str = True,
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
        curves.append((i, j, f"{n} rows, chance {p:g}", steps))
    ax = axes(ax)
    for i, j, label, steps in curves:
        ax.plot(*steps, STYLES[j % len(STYLES)], label=label, **mark(i))
    ax.set_yscale("log")
    finish(
        ax,
        "threshold, as a fraction of the rows",
        "upper bound on the leakage (nats)",
        legend=legend,
    )
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
    'number of rows'
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
    finish(ax, "number of rows", f"bound on the chance of a deviation of {tau:g}", legend=legend)
    return ax
