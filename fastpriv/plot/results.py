"""Figures of results: trade-off curves, exact curves, implications, levels of an audit."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._drawing.style import FAMILY, INK, axes, finish, plain
from fastpriv._text.numbers import up
from fastpriv.design.tradeoff import TradeoffCurve, tradeoff_curve
from fastpriv.errors import InvalidInput, described
from fastpriv.notions.implications import Implications
from fastpriv.notions.registry import NOTIONS
from fastpriv.releasing.frequencies import Frequencies
from fastpriv.results import Bracket

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv.auditing.report import Audit
    from fastpriv.design.exact.curve import ExactCurve
    from fastpriv.priors import Distribution

__all__ = ["exact", "frequencies", "implications", "levels", "tradeoff"]

#: Colour, hatching and name of each scope.
_LOOKS = {
    "mechanism": (FAMILY[0], "", "for every distribution of the database"),
    "prior": (FAMILY[1], "//", "under the prior"),
    "secret": (FAMILY[2], "..", "about the secret"),
}
#: Ratio of levels from which on the axis is logarithmic.
_FAR = 100.0
#: Most decades of a logarithmic axis.
_DECADES = 9
#: Most values of a column.
_VALUES = 40
#: Characters in a line of a title.
_WRAP = 26


def tradeoff(
    curve: TradeoffCurve | Distribution, ax: Axes | None = None, *, legend: bool | str = True
) -> Axes:
    """Draw the best levels over distortion, with the bounds of Theorem 1 as thin lines.

    The figure of Wang-Ying-Zhang 2015. The best identifiability and differential privacy levels
    differ by at most eps_X. The smallest mutual information has its own axis, because it counts
    nats of the whole database. Thin lines are the bounds of Theorem 1; for identifiability from
    above they are Main Result 1 of the poster, or eps_tilde where it is smaller. Stars mark eps_hat
    and eps_tilde, up to which the levels share the curve h^-1(D). Between computed points the lines
    are upper bounds: every level on them can be reached.

    Parameters
    ----------
    curve : TradeoffCurve or Distribution
        The curve; for a prior, its curve on the default grid.
    ax, legend
        As for :func:`profile`.

    Returns
    -------
    matplotlib Axes
        The axes of the levels; mutual information is on their twin, if both are drawn.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.tradeoff(fp.Product.iid([0.7, 0.3], 4))
    >>> ax.get_ylabel()
    'best privacy level (nats)'
    """
    drawn = curve if isinstance(curve, TradeoffCurve) else tradeoff_curve(curve)
    return drawn.plot(ax, legend=legend)


def exact(curve: ExactCurve, ax: Axes | None = None, *, legend: bool | str = True) -> Axes:
    """Draw the smallest distortion over the level, with a dot at every break point.

    Parameters
    ----------
    curve : ExactCurve
        The curve.
    ax, legend
        As for :func:`profile`.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.exact(fp.exact_curve([0.75, 0.25], 0.0, 2.0))
    >>> ax.get_ylabel()
    'smallest expected number of changed records'
    """
    return curve.plot(ax, legend=legend)


def frequencies(
    estimated: Frequencies,
    column: Hashable | None = None,
    *,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw estimated counts of the values of a column, with their confidence intervals.

    A dot is an unbiased estimate and a bar its interval, which lies within 0 and the number of
    records. An estimate outside its interval is open: noise made it an impossible count.

    Parameters
    ----------
    estimated : Frequencies
        The result of :func:`fastpriv.estimate_frequencies`.
    column : hashable, optional
        The column, or a tuple of columns that were estimated jointly. By default the first one.
    ax, legend
        As for :func:`profile`.

    Returns
    -------
    matplotlib Axes
        At most 40 values; the label states how many are left out.

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> released = fp.release(np.repeat([0, 1, 2], 500), domain=3, epsilon=2.0, rng=1)
    >>> fp.plot.frequencies(fp.estimate_frequencies(released)).get_xlabel()
    'estimated number of records'
    """
    if not isinstance(estimated, Frequencies):
        raise InvalidInput(
            f"estimated must be a result of estimate_frequencies; got {described(estimated)}."
        )
    name = next(iter(estimated.columns)) if column is None else column
    part = estimated[name]
    shown = min(len(part.values), _VALUES)
    names = [_value(value) for value in part.values[:shown]]
    outside = part.outside[:shown]
    ax = axes(ax, (6.4, 1.3 + 0.3 * shown))
    ax.axvline(0.0, color="0.8", linewidth=0.8)
    at = np.arange(shown)
    ax.hlines(at, part.lower[:shown], part.upper[:shown], color=FAMILY[0], linewidth=5, alpha=0.35)
    ax.plot([], [], color=FAMILY[0], linewidth=5, alpha=0.35, label=_interval(estimated))
    for which, fill, label in (
        (~outside, FAMILY[0], "estimate"),
        (outside, "white", "estimate outside its interval"),
    ):
        if which.any():
            dots = part.estimates[:shown][which]
            ax.plot(dots, at[which], "o", color=FAMILY[0], markerfacecolor=fill, label=label)
    ax.set_ylim(shown - 0.5, -0.5)
    title = " x ".join(map(str, name)) if isinstance(name, tuple) else str(name)
    left = len(part.values) - shown
    finish(
        ax,
        "estimated number of records",
        f"values of {plain(title).strip()}" + (f" ({left:,} more)" if left else ""),
        legend=legend,
    )
    ax.set_yticks(at, names, parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _interval(estimated: Frequencies) -> str:
    return f"{100 * estimated.confidence:g} % interval"


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_value, value))
    return "(missing)" if value is None else plain(value)


def implications(derived: Implications, ax: Axes | None = None) -> Axes:
    """Draw which guarantee implies which, as an outline: each box below its premise.

    Parameters
    ----------
    derived : Implications
        The result of :func:`fastpriv.implications`.
    ax : matplotlib Axes, optional
        Where; by default new ones, 7 inches wide.

    Returns
    -------
    matplotlib Axes
        Next to each box are the formula of its level, with e the level above, and the source.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.implications(fp.implications(0.5, "dp")).get_title()
    'what follows from dp at level 0.5'
    """
    if not isinstance(derived, Implications):
        raise InvalidInput(f"derived must be a result of implications; got {described(derived)}.")
    return derived.plot(ax)


def levels(audit: Audit, *, ax: Axes | None = None, legend: bool | str = True) -> Axes:
    """Draw the levels of an audit that are in nats; the pale part of a bar is a bracket.

    Parameters
    ----------
    audit : Audit
        The audit.
    ax, legend
        As for :func:`profile`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.levels(fp.audit([[0.75, 0.25], [0.25, 0.75]])).get_xlabel()
    'level (nats)'
    """
    bars = [
        level
        for slug, level in audit.levels.items()
        if level.unit == "nats" and level.scope in _LOOKS and NOTIONS[slug].display != "row"
    ]
    ax = axes(ax, (6.4, 1.2 + 0.4 * len(bars)))
    pairs = [v if isinstance(v := level.value, Bracket) else Bracket(v, v) for level in bars]
    finite = [pair.upper for pair in pairs if 0.0 < pair.upper < math.inf]
    most, smallest = max(finite, default=1.0), min(finite, default=1.0)
    left = 0.0
    if most > _FAR * smallest:
        ax.set_xscale("log")
        left = max(smallest / 3.0, most * 10.0**-_DECADES)
    right = most * (1.6 if left == 0.0 else (most / left) ** 0.4)
    ax.set_xlim(left, right)
    named = set[str]()
    for y, (level, pair) in enumerate(zip(bars, pairs, strict=True)):
        colour, hatch, name = _LOOKS[level.scope]
        label = name if name not in named else None
        named.add(name)
        look: dict[str, Any] = {"color": colour, "height": 0.62, "left": left, "edgecolor": "white"}
        end, sure = (min(max(v, left), right) - left for v in (pair.upper, pair.lower))
        ax.barh(y, end, alpha=0.4, **look)
        endless = pair.upper == math.inf
        ax.barh(y, sure, hatch="" if endless else hatch, label=label, **look)
        if endless:
            _beside(ax, right, y, "infinite", -4, ha="right", color="white", weight="bold")
        else:
            _beside(ax, left + end, y, up(pair.upper, 3), 3, size="small", color=INK)
    titles = [textwrap.fill(level.title, _WRAP) for level in bars]
    ax.set_yticks(range(len(bars)), titles, fontsize="small", linespacing=0.95, parse_math=False)
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.set_xlabel("level (nats)")
    ax.spines[["top", "right"]].set_visible(False)
    if bars and legend:
        place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
        if isinstance(legend, str):
            place = {"loc": legend}
        ax.legend(frameon=False, fontsize="small", **place)
    return ax


def _beside(ax: Axes, x: float, y: int, text: str, points: int, **look: Any) -> None:
    """Write next to the end of a bar."""
    place: dict[str, Any] = {"xytext": (points, 0), "textcoords": "offset points"}
    ax.annotate(text, (x, y), va="center", **place, **look)
