"""Which guarantee gives which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpriv.errors import InvalidInput, described
from fastpriv.notions.implications import Implications

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["implications"]


def implications(derived: Implications, ax: Axes | None = None) -> Axes:
    """Draw which guarantee gives which, as an outline: each box under the one that it rests on.

    Parameters
    ----------
    derived : Implications
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
    if not isinstance(derived, Implications):
        raise InvalidInput(f"what fp.implications returns is expected, got {described(derived)}")
    return derived.plot(ax)
