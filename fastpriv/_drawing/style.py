"""What all figures share: colours, lines, axes and legends."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core.extras import optional
from fastpriv._drawing.safe import stairs
from fastpriv.errors import InvalidInput, described

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv._core.validation import Floats

#: Blue, vermilion, green, purple, orange and sky blue of Okabe and Ito, for colour-blind readers.
FAMILY = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
#: Line styles and markers that distinguish lines in greyscale.
STYLES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Lines that mark a level, and text beside the data.
INK = "0.25"
#: Inches from which on a legend may have two columns.
_WIDE = 4.5
#: Inches below which a figure is for one column of a paper.
_COLUMN = 3.6
#: Powers of ten on an axis up to which ticks are at 1, 2 and 5 of each.
_DECADES = 4.0
#: Letters of the legend of such a figure per inch.
_LETTERS = 13.0
#: Letters after which the legend of a wider figure is wrapped: never.
_LONGEST = 1000


def axes(ax: Axes | None, size: tuple[float, float] = (6.4, 4.4)) -> Axes:
    """Return the axes, new ones of this size if there are none.

    Call it when all numbers are known: then no error leaves an empty figure behind.
    """
    pyplot: Any = optional("matplotlib.pyplot", "plot")
    if ax is not None:
        if not isinstance(ax, pyplot.Axes):
            raise InvalidInput(
                f"ax must be matplotlib Axes, such as plt.gca(); got {described(ax)}."
            )
        given: Axes = ax
        return given
    from fastpriv._drawing.figure import PaperFigure

    made: Axes = pyplot.figure(
        figsize=size, layout="constrained", FigureClass=PaperFigure
    ).subplots()
    return made


def plain(name: object) -> str:
    """Return a name that matplotlib takes neither for a formula nor for a private label."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def mark(i: int) -> dict[str, Any]:
    """Colour and marker of the i-th line, the marker at a few places along it."""
    return {
        "color": FAMILY[i % len(FAMILY)],
        "marker": MARKERS[i % len(MARKERS)],
        "markersize": 4.0,
        "markevery": (0.03 * (i % 5), 0.2),  # of the diagonal
    }


def look(i: int) -> dict[str, Any]:
    """Colour, line style and marker of the i-th line: no two alike among the first 42."""
    return mark(i) | {"linestyle": STYLES[i % len(STYLES)]}


def band(
    ax: Axes,
    x: Floats,
    other: Floats,
    proved: Floats,
    label: str,
    *,
    rising: bool | None,
    above: bool = True,
    **style: Any,
) -> None:
    """Draw bounds on a monotone curve: the guaranteed bound as a line, a band to the other one.

    Both are stairs, which hold between the points as well. If the points are corners of bounds,
    ``rising`` is None and straight lines are drawn. With ``above`` the guaranteed bound is the
    upper one. Infinite bounds are arrows at the upper edge, and the label names their places.
    """
    colour, endless = style["color"], np.isinf(proved)
    if endless.any():
        if isinstance(style.get("markevery"), tuple):  # a line without a finite point has no length
            style = style | {"markevery": None}
        first, last = x[endless].min(), x[endless].max()
        what = "infinite" if np.isinf(other[endless]).all() else "no bound"
        label += f" ({what} at {first:.3g}" + (f" to {last:.3g})" if last > first else ")")
        height, edge = np.full(int(endless.sum()), 0.98), ax.get_xaxis_transform()
        ax.plot(x[endless], height, "^", color=colour, markersize=7, transform=edge, clip_on=False)
    ends = np.where(endless, np.nan, proved)
    if rising is not None:
        ahead = rising == above
        (x, ends), other = stairs(x, ends, ahead), stairs(x, other, not ahead)[1]
        if isinstance(style.get("markevery"), list):
            style = style | {"markevery": [2 * i + (not ahead) for i in style["markevery"]]}
    ax.fill_between(x, other, ends, color=colour, alpha=0.3, linewidth=0)
    ax.plot(x, ends, label=label, **style)


def ticks(ax: Axes) -> None:
    """Write powers of ten beside each tick of linear axes; above the axes there is the legend."""
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_tick_params(labelsize=_text(ax))
        if axis.get_scale() == "linear":
            axis.set_major_formatter(lambda value, _: number(value))


def readable_logarithm(ax: Axes) -> None:
    """Write the ticks of a logarithmic vertical axis as numbers, three in each power of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    low, high = ax.get_ylim()
    decades = math.log10(high) - math.log10(low)
    parts = (1.0, 2.0, 5.0) if decades < _DECADES else (1.0,)
    ax.yaxis.set_major_locator(LogLocator(subs=parts))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: number(value))


def _text(ax: Axes) -> str:
    """Return the size of labels: smaller in one column of a paper."""
    figure: Any = ax.figure
    return "small" if figure.get_figwidth() < _COLUMN else "medium"


def fitted(ax: Axes, text: str, inches: float) -> str:
    """Break a label into lines, in one column of a paper."""
    return textwrap.fill(text, int(_LETTERS * inches)) if _text(ax) == "small" else text


def right_label(ax: Axes, text: str, colour: str) -> None:
    """Label the axis on the right, of twin axes."""
    figure: Any = ax.figure
    written = fitted(ax, text, 0.6 * figure.get_figheight())
    ax.set_ylabel(written, color=colour, fontsize=_text(ax))


def finish(
    ax: Axes, x: str, y: str, title: str | None = None, *, legend: bool | str = True
) -> None:
    """Label both axes, and put a legend above them, in two columns if they fit.

    On a figure as narrow as a column of a paper, text is smaller, and long lines are broken.
    """
    figure: Any = ax.figure
    inches = figure.get_figwidth()
    narrow = inches < _COLUMN
    size = "x-small" if narrow else "small"
    most = int(_LETTERS * inches) if narrow else _LONGEST
    ax.set_xlabel(fitted(ax, x, 0.75 * inches), fontsize=_text(ax))
    ax.set_ylabel(fitted(ax, y, 0.6 * figure.get_figheight()), fontsize=_text(ax))
    ticks(ax)
    if not legend:
        return
    handles, labels = ax.get_legend_handles_labels()
    wide = ax.bbox.width / figure.dpi > _WIDE and len(labels) > 3
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
    if isinstance(legend, str):
        place = {"loc": legend}
    ax.legend(
        handles,
        [textwrap.fill(label, most) for label in labels] if narrow else labels,
        title=textwrap.fill(title, most) if title and narrow else title,
        ncols=2 if wide else 1,
        borderaxespad=0.2,
        frameon=False,
        fontsize=size,
        title_fontsize=size,
        alignment="left",
        **place,
    )


def number(value: float) -> str:
    """Write a number in few digits."""
    if math.isfinite(value):
        return f"{value:.4g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return "not known" if math.isnan(value) else "infinite"
