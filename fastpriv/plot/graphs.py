"""Which guarantee gives which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpriv.plot._style import FAMILY, axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv.relations import Implications

__all__ = ["implications"]


def implications(found: Implications, ax: Axes | None = None) -> Axes:
    """Draw which guarantee gives which, each box one step to the right of the one it rests on.

    Parameters
    ----------
    found : Implications
        What to draw.
    ax : matplotlib Axes, optional
        Where; by default new ones.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.plot.implications(fp.implications(0.5, "dp")).get_title()
    'what follows from dp at level 0.5'
    """
    layers: dict[int, list[str]] = {}
    for name in found.levels:
        layers.setdefault(len(found.chain(name)), []).append(name)
    ax = axes(ax, (3.6 * len(layers), 1.1 * max(map(len, layers.values())) + 0.8))
    place: dict[str, tuple[float, float]] = {}
    for depth, names in sorted(layers.items()):
        if depth:  # in the order of what they rest on, so that few arrows cross
            names.sort(key=lambda name: -place[found.steps[name].premise][1])
        for row, name in enumerate(names):
            place[name] = float(depth), -(row + 0.5) / len(names)
    for name, (x, y) in place.items():
        colour = FAMILY[name == found.notion]
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": colour}
        ax.text(x, y, f"{name}\n{found.levels[name]:.4g}", ha="center", va="center", bbox=box)
    for step in found.steps.values():
        tail, head = place[step.premise], place[step.conclusion]
        arrow = {"arrowstyle": "->", "color": "0.4", "shrinkA": 42, "shrinkB": 42}
        ax.annotate("", xy=head, xytext=tail, arrowprops=arrow)
        middle = (tail[0] + head[0]) / 2, (tail[1] + head[1]) / 2
        note = f"{step.formula}\n{step.source.replace(', ', chr(10), 1)}"
        plain = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
        ax.text(*middle, note, ha="center", va="center", fontsize=7, color="0.3", bbox=plain)
    ax.set_xlim(-0.5, max(layers) + 0.5)
    ax.set_ylim(-1.0, 0.0)
    ax.set_axis_off()
    ax.set_title(f"what follows from {found.notion} at level {found.level:g}")
    return ax
