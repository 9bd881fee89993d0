"""Privacy profiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fastpriv.errors import InvalidInput
from fastpriv.plot._style import axes, legend, look, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastpriv._validation import Floats
    from fastpriv.accounting import PrivacyProfile
    from fastpriv.channels import AbstractChannel

__all__ = ["profile"]

#: Epsilons of a curve.
_POINTS = 65
#: Larger than any loss.
_LARGEST = 1e300


def profile(
    *mechanisms: AbstractChannel | PrivacyProfile | ArrayLike,
    labels: Sequence[str] | None = None,
    least: float = 1e-12,
    ax: Axes | None = None,
) -> Axes:
    """Draw delta over epsilon for mechanisms or privacy profiles, with the band that is proved.

    Parameters
    ----------
    *mechanisms : channel, 2-D array or PrivacyProfile
        What to draw, one line each, at the upper end of delta.
    labels : sequence of str, optional
        A name for each.
    least : float
        Least delta of the picture; epsilons go to where all lines have reached it.
    ax : matplotlib Axes, optional
        Where; by default new ones.

    Returns
    -------
    matplotlib Axes
        Delta is logarithmic down to ``least`` and linear from there to 0. The legend says from
        where on delta is 0, or below what it never falls.

    Examples
    --------
    >>> import fastpriv as fp
    >>> once = fp.accounting.PrivacyProfile.of(fp.HammingChannel(5, 3, 0.5))
    >>> many = [once.self_compose(k) for k in (1, 10, 30)]
    >>> ax = fp.plot.profile(*many, labels=["once", "10 times", "30 times"])
    >>> ax.get_xlabel()
    'epsilon (nats)'
    """
    from fastpriv import _validation as check
    from fastpriv.accounting import PrivacyProfile
    from fastpriv.measures._arguments import as_channel

    floor = check.real(least, "least", least=1e-300, most=0.1)
    if not mechanisms:
        raise InvalidInput("profile needs at least one channel or PrivacyProfile to draw")
    drawn = [
        given if isinstance(given, PrivacyProfile) else PrivacyProfile.of(as_channel(given))
        for given in mechanisms
    ]
    names = _names(labels, len(drawn))
    start = max(curve.delta(0.0).upper for curve in drawn)
    floor = min(floor, 1e-3 * start) if start > 0.0 else floor
    reached = [_reach(curve, floor) for curve in drawn]
    right = 1.05 * max(reached) or 1.0
    ax = axes(ax)
    for i, (curve, name, reach) in enumerate(zip(drawn, names, reached, strict=True)):
        grid = _grid(reach, curve.epsilon(0.0).upper, right)
        found = curve.delta(grid)
        style = look(i)
        ax.fill_between(
            grid, found.lower, found.upper, color=style["color"], alpha=0.3, linewidth=0
        )
        every = (i * _POINTS // 40, _POINTS // 5)
        ax.plot(
            grid,
            found.upper,
            **style,
            markersize=4,
            markevery=every,
            label=name + _end(curve, right),
        )
    ax.set_yscale("symlog", linthresh=floor, linscale=0.5)  # which has a place for 0
    ax.yaxis.get_major_locator().set_params(numticks=8)
    ax.set_xlim(0.0, right)
    ax.set_ylim(-0.3 * floor, 2.0 * (start or 1.0))
    ax.set_xlabel("epsilon (nats)")
    ax.set_ylabel("least delta of (epsilon, delta)-DP")
    legend(ax)
    return ax


def _names(labels: Sequence[str] | None, count: int) -> list[str]:
    if labels is None:
        return ["mechanism"] if count == 1 else [f"mechanism {i + 1}" for i in range(count)]
    if isinstance(labels, str) or len(labels) != count:
        raise InvalidInput(f"labels must hold {count} names, one for each line, got {labels!r:.60}")
    return [str(label) for label in labels]


def _reach(curve: PrivacyProfile, floor: float) -> float:
    """Epsilon at which a curve meets the lower edge or hardly falls any further."""
    target = max(floor, 1.01 * _never_below(curve))
    return curve.epsilon(target).upper if target < 1.0 else 0.0


def _never_below(curve: PrivacyProfile) -> float:
    """Chance of outputs that give a database away, which no epsilon helps against."""
    return curve.delta(_LARGEST).upper


def _grid(reach: float, level: float, right: float) -> Floats:
    """Epsilons of a curve: even steps, and ever finer ones where it falls to 0 at its level."""
    even = np.linspace(0.0, right, _POINTS)
    if level > right:
        return even
    finer = level * (1.0 - 0.5 ** np.arange(3.0, 44.0, 2.0))
    return np.unique(np.concatenate([even, finer, [reach, level]]))


def _end(curve: PrivacyProfile, right: float) -> str:
    """Say in words how a curve ends."""
    never, level = _never_below(curve), curve.epsilon(0.0).upper
    if never > 0.0:
        return f": never below {number(never)}"
    return f": 0 from epsilon {number(level)} on" if level <= right else ""
