"""Exact curves with their break points."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._drawing.style import FAMILY, INK, axes, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv.design.exact.curve import ExactCurve, ExactPiece

__all__ = ["exact"]

_NAMES = {"dp": "differential privacy", "identifiability": "identifiability"}
#: Points drawn on each piece.
_POINTS = 40


def exact(curve: ExactCurve, ax: Axes | None = None) -> Axes:
    """Draw the least distortion over the level, with a dot at every break point.

    Parameters
    ----------
    curve : ExactCurve
        What to draw.
    ax : matplotlib Axes, optional
        Where; by default new ones.

    Returns
    -------
    matplotlib Axes
        Those drawn on.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.exact(fp.exact_curve([0.75, 0.25], 0.0, 2.0))
    >>> ax.get_ylabel()
    'least expected number of changed rows'
    """
    drawn = [_points(piece) for piece in curve.pieces]
    ax = axes(ax)
    colour = FAMILY[list(_NAMES).index(curve.notion)]
    levels = np.concatenate([x for x, _ in drawn])
    values = np.concatenate([y for _, y in drawn])
    ax.plot(levels, values, color=colour, label=f"{_NAMES[curve.notion]}, exactly")
    ends = [(x[-1], y[-1]) for x, y in drawn[:-1]]
    if ends:
        label = f"break points ({len(ends)})"
        ax.plot(*zip(*ends, strict=True), "o", color=INK, markersize=4.0, label=label)
    ax.set_ylim(bottom=0.0)
    finish(ax, "level (nats)", "least expected number of changed rows")
    return ax


def _points(piece: ExactPiece) -> tuple[np.ndarray, np.ndarray]:
    """Levels across a piece, and its closed form there."""
    levels = np.linspace(piece.low, piece.high, _POINTS)
    return levels, np.array([float(piece.at(Fraction(float(np.exp(e))))) for e in levels])
