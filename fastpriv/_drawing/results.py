"""Figures of results that draw themselves: trade-offs, exact curves and implications."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core.rounding import exp_down
from fastpriv._drawing.safe import refined, stairs
from fastpriv._drawing.style import FAMILY, INK, axes, band, finish, right_label, ticks
from fastpriv._text.numbers import up
from fastpriv.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv._core.validation import Floats
    from fastpriv.design.exact.curve import ExactPiece
    from fastpriv.design.tradeoff import TradeoffCurve
    from fastpriv.notions.implications import Step

_INFORMATION = "mutual-information"
#: The first two often coincide: the one below is the wider one.
_LOOKS: dict[str, dict[str, Any]] = {
    "dp": {"color": FAMILY[0], "linewidth": 3.0, "marker": "o", "markersize": 5.0},
    "identifiability": {"color": FAMILY[1], "linewidth": 1.2, "marker": "s", "markersize": 2.5},
    "mutual-information": {
        "color": FAMILY[2],
        "linewidth": 1.2,
        "marker": "^",
        "markersize": 3.5,
        "linestyle": "-.",
    },
    "pml": {"color": FAMILY[3], "linewidth": 1.2, "marker": "D", "markersize": 3.0},
    "individual-capacity": {
        "color": FAMILY[4],
        "linewidth": 1.2,
        "marker": "v",
        "markersize": 3.5,
        "linestyle": "--",
    },
}
_NATS = "smallest mutual information (nats)"
#: Legend of the bounds of Wang-Ying-Zhang 2015, without and with identifiability.
_BOUNDS = "bounds: Theorem 1"
_BOTH_BOUNDS = "bounds: Theorem 1, Main Result 1, eps_tilde"
#: Levels that are convex in the distortion: a mixture of mechanisms leaks no more than the mean.
_CONVEX = (_INFORMATION, "individual-capacity")
#: Relative difference up to which distortions count as one.
_ROUNDED = 1e-9
#: Relative rounding of a closed form, with much to spare.
_WIDEN = 1e-13
#: Points of the closed form.
_FINE = 200

#: Level at each of some distortions.
Plain = Callable[["Floats"], "Floats"]
_STAR: dict[str, Any] = {"markersize": 12, "markerfacecolor": "white", "zorder": 3.0}

#: Fewest points on each piece.
_FEWEST = 40
#: Points on all pieces together, if there are few.
_POINTS = 400

# Sizes in inches.
#: Width of the picture.
_WIDTH = 7.0
#: Height of a line.
_LINE = 0.44
#: Indentation of a step.
_INDENT = 0.3
#: Width of a letter, on average.
_LETTER = 0.066
#: Significant digits of a level.
_DIGITS = 4


def tradeoff(
    curve: TradeoffCurve,
    titles: dict[str, str],
    ax: Axes | None,
    legend: bool | str = True,
    plain: Plain | None = None,
) -> Axes:
    """Draw the best levels, with the bounds of Theorem 1 as thin lines; ``titles`` name them.

    ``plain`` is h^-1: the best level up to the end of the closed form.
    """
    drawn = _in_order(curve)
    if not drawn.distortions.size:
        raise InvalidInput("curve must have one distortion or more; got none.")
    ax = axes(ax)
    levels = [notion for notion in drawn.lower if notion != _INFORMATION]
    for notion in levels:
        _best(ax, drawn, notion, titles[notion], plain)
        _bounds(ax, drawn, notion)
    if _INFORMATION in drawn.lower:
        name = f"{titles[_INFORMATION]}{' (right)' if levels else ''}"
        other = ax.twinx() if levels else ax
        _best(other, drawn, _INFORMATION, name, None)
        right_label(other, _NATS, _LOOKS[_INFORMATION]["color"])
        other.set_ylim(bottom=0.0)
        ticks(other)
        if levels:  # one legend for both axes
            ax.plot([], [], label=other.lines[-1].get_label(), **_LOOKS[_INFORMATION])
    if levels:
        _keys(ax, drawn)
        ax.set_ylim(bottom=0.0)
    label = "best privacy level (nats)" if levels else _NATS
    finish(ax, "expected number of changed records", label, legend=legend)
    return ax


def _in_order(curve: TradeoffCurve) -> TradeoffCurve:
    """Return the curve with its distortions in order."""
    order = np.argsort(curve.distortions, kind="stable")
    tables = ("lower", "upper", "theorem_lower", "theorem_upper")
    moved: Any = {t: {name: v[order] for name, v in getattr(curve, t).items()} for t in tables}
    return replace(curve, distortions=curve.distortions[order], **moved)


def _best(ax: Axes, curve: TradeoffCurve, notion: str, label: str, plain: Plain | None) -> None:
    """Draw the best level: markers at the points of the grid, and no line across a jump.

    The level falls with the distortion, so that stairs bound it between the points. In between
    come points of the closed form, up to its end, and of chords where the level is convex.
    """
    x, low, high = curve.distortions, curve.lower[notion], curve.upper[notion]
    measured = x
    end, jump = _closed(curve, notion), curve.jumps.get(notion)
    if notion in _CONVEX and jump is None:
        x, low, high = refined(x, low, high, lambda a, b: b - a)
    added = []
    if end is not None and plain is not None:
        fine = np.linspace(x[0], min(end[0], x[-1]), _FINE)[1:-1]
        levels = np.setdiff1d(fine, x), plain(np.setdiff1d(fine, x))
        added += [(d, e * (1.0 - _WIDEN), e * (1.0 + _WIDEN)) for d, e in zip(*levels, strict=True)]
    if end is not None and (jump is None or end[0] < jump[0] * (1.0 - _ROUNDED)):
        added += [(min(end[0], x[-1]), end[1] * (1.0 - _WIDEN), end[1] * (1.0 + _WIDEN))]
    places = [int(np.searchsorted(x, d * (1.0 - _ROUNDED))) for d, _, _ in added]
    if jump is not None:
        place, before, after = jump
        known = end is not None and end[0] >= place * (1.0 - _ROUNDED)
        near = curve.beside.get(notion)
        points = [near] if near is not None and not known else []
        points += [
            (place, before * (1.0 - _WIDEN) if known else after, before * (1.0 + _WIDEN)),
            (place, math.nan, math.nan),
            (place, after, after),
        ]
        places += [int(np.searchsorted(x, d * (1.0 - _ROUNDED))) for d, _, _ in points]
        added += points
        colour = _LOOKS[notion]["color"]
        ax.plot([place, place], [before, after], "--", color=colour, linewidth=0.8)
    kept = np.insert(np.isin(x, measured), places, False)
    x, low, high = (
        np.insert(values, places, [point[k] for point in added])
        for k, values in enumerate((x, low, high))
    )
    marked = np.flatnonzero(kept).tolist()
    band(ax, x, low, high, label, rising=False, markevery=marked, **_LOOKS[notion])


def _closed(curve: TradeoffCurve, notion: str) -> tuple[float, float] | None:
    """Return the end of the closed form, if it lies in the picture."""
    end, x = curve.closed_form.get(notion), curve.distortions
    if end is None or math.isinf(end[1]):
        return None
    return end if x[0] <= end[0] * (1.0 - _ROUNDED) <= x[-1] else None


def _bounds(ax: Axes, curve: TradeoffCurve, notion: str) -> None:
    """Draw Theorem 1 where it is finite, and the end of the closed form.

    The best level falls with the distortion. An upper bound therefore holds for all larger
    distortions and a lower bound for all smaller ones, so that no line jumps where the theorem
    changes its formula.
    """
    for bounds in (curve.theorem_lower, curve.theorem_upper):
        if notion in bounds:
            lower = bounds is curve.theorem_lower
            values = bounds[notion]
            best = np.fmax.accumulate(values[::-1])[::-1] if lower else np.fmin.accumulate(values)
            values = np.where(np.isfinite(best), best, np.nan)
            steps = stairs(curve.distortions, values, ahead=lower)
            ax.plot(*steps, ":", color=_LOOKS[notion]["color"], linewidth=1.2)
    end = _closed(curve, notion)
    if end is not None:
        ax.plot(*end, "*", color=_LOOKS[notion]["color"], **_STAR)


def _keys(ax: Axes, curve: TradeoffCurve) -> None:
    """Explain thin lines and stars in the legend."""
    if curve.theorem_lower:
        label = _BOTH_BOUNDS if "identifiability" in curve.theorem_upper else _BOUNDS
        ax.plot([], [], ":", color=INK, linewidth=1.2, label=label)
    if any(_closed(curve, notion) for notion in curve.lower):
        ax.plot([], [], "*", color=INK, label="end of closed form", **_STAR)


def pieces(
    given: tuple[ExactPiece, ...], title: str, colour: int, ax: Axes | None, legend: bool | str
) -> Axes:
    """Draw the pieces of a curve, and a dot at every break point.

    ``title`` names the notion, ``colour`` counts the colours of the family.
    """
    drawn = [_points(piece, max(_FEWEST, _POINTS // len(given))) for piece in given]
    ax = axes(ax)
    levels = np.concatenate([x for x, _ in drawn])
    values = np.concatenate([y for _, y in drawn])
    # The curve falls: steps as high as their starts are upper bounds.
    steps = stairs(levels, values, ahead=False)
    ax.plot(*steps, color=FAMILY[colour], label=f"{title}, exactly")
    ends = [(x[-1], y[-1]) for x, y in drawn[:-1]]
    if ends:
        label = f"break points ({len(ends)})"
        ax.plot(*zip(*ends, strict=True), "o", color=INK, markersize=4.0, label=label)
    ax.set_ylim(bottom=0.0)
    finish(ax, "level (nats)", "smallest expected number of changed records", legend=legend)
    return ax


def _points(piece: ExactPiece, count: int) -> tuple[Floats, Floats]:
    """Levels across a piece, and its closed form there, rounded up."""
    levels = np.linspace(piece.low, piece.high, count)
    values = [float(piece.at(Fraction(exp_down(e)))) for e in levels.tolist()]
    return levels, np.nextafter(values, np.inf)


def outline(
    notion: str,
    level: float,
    levels: Mapping[str, float],
    steps: Mapping[str, Step],
    ax: Axes | None,
) -> Axes:
    """Draw what follows from a level of a notion: each box below its premise."""
    order = _order(steps, notion)
    ax = axes(ax, (_WIDTH, _LINE * len(order) + 0.5))
    place = {
        name: (_INDENT * _depth(steps, name, notion), -_LINE * j) for j, name in enumerate(order)
    }
    notes = max(x + _LETTER * len(name) for name, (x, _) in place.items()) + 0.4
    for name, (x, y) in place.items():
        first = name == notion
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": FAMILY[first]}
        ax.text(x, y, f"{name}\n{up(levels[name], _DIGITS)}", va="center", fontsize=8, bbox=box)
        if first:
            continue
        step = steps[name]
        above = place[step.premise]
        corner = above[0] + 0.08, y
        ax.plot([corner[0]] * 2, [above[1] - 0.2, y], color=INK, linewidth=0.8, zorder=0.5)
        arrow = {"arrowstyle": "->", "color": INK, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 3}
        ax.annotate("", xy=(x, y), xytext=corner, arrowprops=arrow)
        note = f"{step.formula}\n{step.source}"
        ax.text(notes, y, note, va="center", fontsize=7.5, color=INK)
    ax.set_xlim(-0.1, _WIDTH - 0.3)
    ax.set_ylim(-_LINE * (len(order) - 0.5), 0.5 * _LINE)
    ax.set_axis_off()
    ax.set_title(f"what follows from {notion} at level {up(level)}", fontsize="medium")
    return ax


def _order(steps: Mapping[str, Step], root: str) -> list[str]:
    """Return a notion and all that follows from it, depth first."""
    order = [root]
    for step in steps.values():
        if step.premise == root:
            order += _order(steps, step.conclusion)
    return order


def _depth(steps: Mapping[str, Step], name: str, root: str) -> int:
    """Return how many steps lead from the root to a notion."""
    return 0 if name == root else 1 + _depth(steps, steps[name].premise, root)
