"""The privacy-distortion trade-off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastpriv.plot._style import axes, legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv.tradeoff.curve import TradeoffCurve

__all__ = ["tradeoff"]

#: Colour-blind safe (Okabe and Ito).
_COLOURS = {"dp": "#0072B2", "identifiability": "#D55E00", "mutual-information": "#009E73"}
_NAMES = {
    "dp": "differential privacy",
    "identifiability": "identifiability",
    "mutual-information": "mutual information",
}


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
    ax = axes(ax)
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
    legend(ax, title="bounds of Theorem 1: dotted below, dashed above")
    return ax
