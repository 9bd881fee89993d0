"""Which guarantee gives which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpriv.errors import InvalidInput
from fastpriv.plot.style import FAMILY, INK, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv.notions.implications import Implications

__all__ = ["implications"]


#: In inches: the picture's width, height of a line, indentation of a step, width of a letter.
_WIDTH, _LINE, _INDENT, _LETTER = 7.0, 0.44, 0.3, 0.066


def implications(found: Implications, ax: Axes | None = None) -> Axes:
    """Draw which guarantee gives which, as an outline: each box under the one that it rests on.

    Parameters
    ----------
    found : Implications
        What to draw.
    ax : matplotlib Axes, optional
        Where; by default new ones, 7 inches wide.

    Returns
    -------
    matplotlib Axes
        Beside each box the formula that gives its level, e the level above, and the source.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.implications(fp.implications(0.5, "dp")).get_title()
    'what follows from dp at level 0.5'
    """
    from fastpriv.notions.implications import Implications

    if not isinstance(found, Implications):
        raise InvalidInput(f"what fp.implications returns is expected, got {found!r:.60}")
    order = _outline(found, found.notion)
    ax = axes(ax, (_WIDTH, _LINE * len(order) + 0.5))
    place = {name: (_INDENT * len(found.chain(name)), -_LINE * j) for j, name in enumerate(order)}
    notes = max(x + _LETTER * len(name) for name, (x, _) in place.items()) + 0.4
    for name, (x, y) in place.items():
        first = name == found.notion
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": FAMILY[first]}
        ax.text(x, y, f"{name}\n{found.levels[name]:.4g}", va="center", fontsize=8, bbox=box)
        if first:
            continue
        step = found.steps[name]
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
    ax.set_title(f"what follows from {found.notion} at level {found.level:g}", fontsize="medium")
    return ax


def _outline(found: Implications, root: str) -> list[str]:
    """Return a notion and, each followed by what follows from it, all that it gives."""
    order = [root]
    for step in found.steps.values():
        if step.premise == root:
            order += _outline(found, step.conclusion)
    return order
