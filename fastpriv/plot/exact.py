"""Exact curves with their break points."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fastpriv.design.exact.curve import ExactCurve

__all__ = ["exact"]


def exact(curve: ExactCurve, ax: Axes | None = None, *, legend: bool | str = True) -> Axes:
    """Draw the least distortion over the level, with a dot at every break point.

    Parameters
    ----------
    curve : ExactCurve
        What to draw.
    ax : matplotlib Axes, optional
        Where; by default new ones.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

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
    return curve.plot(ax, legend=legend)
