"""Constrained capacity and balance function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._drawing.safe import stairs
from fastpriv._drawing.style import FAMILY, axes, band, finish
from fastpriv.measures.constrained import balance_and_capacity
from fastpriv.measures.inputs import as_channel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastpriv.channels import AbstractChannel

__all__ = ["balance"]


def balance(
    channel: AbstractChannel | ArrayLike,
    points: int = 17,
    *,
    gap: float = 1e-2,
    time_limit: float = 2.0,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw constrained capacity and balance function over b, each as a band between its bounds.

    Both are monotone in b: between computed values the bounds are stairs that hold there too.

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
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.balance(fp.HammingChannel(2, 2, 1.0), points=5).get_xlabel()
    'entropy that every adversary lacks (nats)'
    """
    mechanism = as_channel(channel)
    grid = np.linspace(0.0, np.log(mechanism.space.size), check.integer(points, "points", 2))
    gained, left = balance_and_capacity(mechanism, grid, gap, time_limit)
    ax = axes(ax)
    for bracket, colour, style, name, rising in (
        (left, FAMILY[0], "-", "information about an individual", False),
        (gained, FAMILY[1], "--", "balance function: what is gained", True),
    ):
        look: Any = {"color": colour, "linestyle": style, "linewidth": 1.0}
        band(ax, grid, bracket.lower, bracket.upper, name, rising=rising, **look)
        ax.plot(*stairs(grid, bracket.lower, not rising), **look)
    ax.set_ylim(bottom=0.0)
    finish(
        ax,
        "entropy that every adversary lacks (nats)",
        "largest information, and its decrease (nats)",
        "between proved bounds",
        legend=legend,
    )
    return ax
