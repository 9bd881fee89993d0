"""The privacy-distortion trade-off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpriv.design.tradeoff import TradeoffCurve, tradeoff_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv.priors import Distribution

__all__ = ["tradeoff"]


def tradeoff(
    curve: TradeoffCurve | Distribution, ax: Axes | None = None, *, legend: bool | str = True
) -> Axes:
    """Draw the best levels over distortion, with the bounds of Theorem 1 as thin lines.

    The figure of Wang-Ying-Zhang 2015: the best identifiability and differential privacy levels,
    which lie within eps_X of each other, and the least mutual information, on an axis of its own
    because it counts nats of the whole database. Stars mark up to where the levels are known to
    share the curve h^-1(D): eps_hat and eps_tilde. Levels fall with the distortion. Between
    computed points the lines are stairs at the upper end: every level that is drawn can be reached.

    Parameters
    ----------
    curve : TradeoffCurve or Distribution
        What to draw; of a prior, its curve on the default grid.
    ax : matplotlib Axes, optional
        Where; by default new ones.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

    Returns
    -------
    matplotlib Axes
        Those of the levels; mutual information is on their twin, if both are drawn.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.tradeoff(fp.Product.iid([0.7, 0.3], 4))
    >>> ax.get_ylabel()
    'best privacy level (nats)'
    """
    drawn = curve if isinstance(curve, TradeoffCurve) else tradeoff_curve(curve)
    return drawn.plot(ax, legend=legend)
