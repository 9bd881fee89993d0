"""Least distortion over the level, exactly, with break points."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._core.rounding import exp_down
from fastpriv._drawing.safe import stairs
from fastpriv._drawing.style import FAMILY, INK, axes, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv._core.validation import Floats
    from fastpriv.design.exact.curve import ExactPiece

#: Points drawn on each piece at least, and on all together.
_FEWEST, _POINTS = 40, 400


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
    # The curve falls: a step as high as its start promises no distortion that cannot be had.
    steps = stairs(levels, values, ahead=False)
    ax.plot(*steps, color=FAMILY[colour], label=f"{title}, exactly")
    ends = [(x[-1], y[-1]) for x, y in drawn[:-1]]
    if ends:
        label = f"break points ({len(ends)})"
        ax.plot(*zip(*ends, strict=True), "o", color=INK, markersize=4.0, label=label)
    ax.set_ylim(bottom=0.0)
    finish(ax, "level (nats)", "least expected number of changed rows", legend=legend)
    return ax


def _points(piece: ExactPiece, count: int) -> tuple[Floats, Floats]:
    """Levels across a piece, and its closed form there, rounded up."""
    levels = np.linspace(piece.low, piece.high, count)
    values = [float(piece.at(Fraction(exp_down(e)))) for e in levels.tolist()]
    return levels, np.nextafter(values, np.inf)
