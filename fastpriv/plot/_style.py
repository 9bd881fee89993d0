"""What all figures share: colours, lines, axes and legends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._extras import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv._validation import Floats

#: Blue, vermilion, green, purple, orange and sky blue of Okabe and Ito, for colour-blind readers.
FAMILY = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
#: Line styles and markers that tell lines apart in greyscale.
STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Lines that mark a level, and text beside the data.
INK = "0.25"


def axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.4)) -> Axes:
    """Return the axes, new ones of this size if there are none."""
    if ax is not None:
        return ax
    pyplot: Any = optional("matplotlib.pyplot", "plot")
    made: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return made


def look(i: int) -> dict[str, Any]:
    """Colour, line style and marker of the i-th line: no two alike among the first 42."""
    return {
        "color": FAMILY[i % len(FAMILY)],
        "linestyle": STYLES[i % len(STYLES)],
        "marker": MARKERS[i % len(MARKERS)],
    }


def band(ax: Axes, x: Floats, low: Floats, high: Floats, label: str, **style: Any) -> None:
    """Draw what is proved: the upper end as a line, down to the lower end as a band.

    Infinite values are arrows at the upper edge, and the label says so.
    """
    endless = np.isinf(high)
    ends = np.where(endless, np.nan, high)
    ax.fill_between(x, low, ends, color=style["color"], alpha=0.3, linewidth=0)
    if endless.any():
        label += " (arrows: infinite)"
        place = {"transform": ax.get_xaxis_transform(), "clip_on": False, "zorder": 3.0}
        top = np.full(int(endless.sum()), 0.98)
        ax.plot(x[endless], top, "^", color=style["color"], markersize=7, **place)
    ax.plot(x, ends, label=label, **style)


def legend(ax: Axes, **settings: Any) -> None:
    """Put the legend above the axes, where it hides no data."""
    place: dict[str, Any] = {
        "loc": "lower left",
        "bbox_to_anchor": (0.0, 1.0),
        "borderaxespad": 0.2,
    }
    ax.legend(
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        alignment="left",
        **place | settings,
    )


def number(value: float) -> str:
    """Write a number in few digits."""
    if math.isfinite(value):
        return f"{value:.4g}"
    return "not known" if math.isnan(value) else "infinite"
