"""What all figures share: colours, lines, axes and legends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from fastpriv._extras import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
