"""Which guarantee gives which, as an outline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fastpriv._drawing.style import FAMILY, INK, axes
from fastpriv._text.numbers import up

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv.notions.implications import Step

#: In inches: the picture's width, height of a line, indentation of a step, width of a letter.
_WIDTH, _LINE, _INDENT, _LETTER = 7.0, 0.44, 0.3, 0.066
#: Significant digits of a level.
_DIGITS = 4


def outline(
    notion: str,
    level: float,
    levels: Mapping[str, float],
    steps: Mapping[str, Step],
    ax: Axes | None,
) -> Axes:
    """Draw what follows from a level of a notion: each box under the one that it rests on."""
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
