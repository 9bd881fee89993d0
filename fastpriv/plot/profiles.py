"""Privacy profiles."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._drawing.safe import refined, stairs
from fastpriv._drawing.style import INK, axes, band, finish, look, number, plain
from fastpriv.accounting import PrivacyProfile
from fastpriv.errors import InvalidInput, described, short
from fastpriv.measures.arguments import as_channel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastpriv._core.validation import Floats
    from fastpriv.channels import AbstractChannel
    from fastpriv.results import Bracket

__all__ = ["composition", "profile"]

#: Epsilons of a curve to begin with, steps of the finest grid, and what passes for straight.
_POINTS, _FINEST, _BENT = 9, 400, 0.004
#: Most epsilons at which a curve bends that are all drawn.
_BENDS = 256
#: Larger than any loss.
_LARGEST = sys.float_info.max
#: Least delta that can be drawn.
_LEAST = 1e-300
#: Most releases: larger numbers are no longer told apart by a double.
_COUNTED = 2**53


def profile(
    *mechanisms: AbstractChannel | PrivacyProfile | ArrayLike,
    labels: Sequence[str] | None = None,
    least: float = 1e-12,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw delta over epsilon for mechanisms or privacy profiles, with the band that is proved.

    Parameters
    ----------
    *mechanisms : channel, 2-D array or PrivacyProfile
        What to draw, one line each, at the upper end of delta. Lines are stairs that are nowhere
        below delta, also between the epsilons at which it was computed.
    labels : sequence of str, optional
        A name for each.
    least : float
        Least delta of the picture; epsilons go to where all lines have reached it.
    ax : matplotlib Axes, optional
        Where; by default new ones.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

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
    floor = check.real(least, "least", least=_LEAST, most=0.1)
    if not mechanisms:
        raise InvalidInput("profile needs at least one channel or PrivacyProfile to draw")
    drawn = _profiles(mechanisms)
    names = _names(labels, len(drawn))
    start = max(curve.delta(0.0).upper for curve in drawn)
    if start > 0.0:
        floor = max(min(floor, 1e-3 * start), _LEAST)
    reached = [_reach(curve, floor) for curve in drawn]
    right = 1.05 * max(reached) or 1.0
    sampled = [_sampled(curve, right, floor) for curve in drawn]
    labels = [name + _end(curve, right) for name, curve in zip(names, drawn, strict=True)]
    ax = axes(ax)
    for i, points in enumerate(sampled):
        # Delta is convex in e^epsilon.
        fine = refined(np.array([*points]), *_ends(points.values()), lambda a, b: np.expm1(b - a))
        band(ax, *fine, labels[i], rising=False, **look(i))
    ax.set_xlim(0.0, right)
    ax.set_ylim(-0.3 * floor, 2.0 * (start or 1.0))
    room = max(0.5, -0.04 * math.log10(floor))  # for 0, below the logarithmic part
    ax.set_yscale("symlog", linthresh=floor, linscale=room)
    locator: Any = ax.yaxis.get_major_locator()
    locator.set_params(numticks=8)
    finish(ax, "epsilon (nats)", "least delta of (epsilon, delta)-DP", legend=legend)
    return ax


def _profiles(
    mechanisms: Sequence[AbstractChannel | PrivacyProfile | ArrayLike],
) -> list[PrivacyProfile]:
    return [
        given if isinstance(given, PrivacyProfile) else PrivacyProfile.of(as_channel(given))
        for given in mechanisms
    ]


def _names(labels: Sequence[str] | None, count: int) -> list[str]:
    if labels is None:
        return ["mechanism"] if count == 1 else [f"mechanism {i + 1}" for i in range(count)]
    names = None if isinstance(labels, str) or not isinstance(labels, Iterable) else [*labels]
    if names is None or len(names) != count:
        raise InvalidInput(
            f"labels must hold {count} names, one for each line, got {described(labels)}"
        )
    return [plain(name) for name in names]


def _reach(curve: PrivacyProfile, floor: float) -> float:
    """Epsilon at which a curve meets the lower edge or hardly falls any further."""
    target = max(floor, 1.01 * _never_below(curve))
    return curve.epsilon(target).upper if target < 1.0 else 0.0


def _never_below(curve: PrivacyProfile) -> float:
    """Return the probability of outputs that give a database away, which no epsilon lowers."""
    return curve.delta(_LARGEST).upper


def _sampled(curve: PrivacyProfile, right: float, floor: float) -> dict[float, Bracket]:
    """Delta at epsilons so close that chords in e^epsilon between them pass for the curve."""
    level = curve.epsilon(0.0).upper
    grid = np.linspace(0.0, right, _POINTS)
    if level <= right:  # towards it delta falls to 0, ever more steeply
        fall = level * (1.0 - 0.5 ** np.arange(3.0, 44.0, 2.0))
        grid = np.unique(np.concatenate([grid, fall, [level]]))
    bends = [bend for bend in curve.cases.bends() if bend <= right]
    if len(bends) <= _BENDS:
        grid = np.union1d(grid, bends)
    points = {epsilon: curve.delta(epsilon) for epsilon in grid.tolist()}
    gaps = [*itertools.pairwise(points)]
    while gaps:
        left, end = gaps.pop()
        if end - left > right / _FINEST:
            middle = 0.5 * (left + end)
            points[middle] = curve.delta(middle)
            a, b, c = (max(points[e].upper, floor) for e in (left, middle, end))
            chord = a + (c - a) / (1.0 + math.exp(middle - left))
            if math.log(chord / b) > _BENT * -math.log(floor):
                gaps += [(left, middle), (middle, end)]
    return dict(sorted(points.items()))


def _end(curve: PrivacyProfile, right: float) -> str:
    """Say in words how a curve ends."""
    never, level = _never_below(curve), curve.epsilon(0.0).upper
    if never > 0.0:
        return f": never below {number(never)}"
    return f": 0 from epsilon {number(level)} on" if level <= right else ""


def _ends(points: Iterable[Bracket]) -> tuple[Floats, Floats]:
    """Return all lower and all upper ends."""
    lower, upper = zip(*((b.lower, b.upper) for b in points), strict=True)
    return np.array(lower), np.array(upper)


def composition(
    channel: AbstractChannel | PrivacyProfile | ArrayLike,
    releases: int = 100,
    deltas: float | Sequence[float] = (1e-6,),
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the epsilon that has been spent after each of many releases by one mechanism.

    From above: levels that add, k e for differential privacy at level e; the bound of advanced
    composition, k e tanh(e/2) + e sqrt(2 k ln 1/delta), which knows nothing but e; and the
    epsilon of the composed :class:`fastpriv.accounting.PrivacyProfile`, with the band that is
    proved. Lines are stairs: between two computed numbers of releases the larger one bounds
    epsilon.

    Parameters
    ----------
    channel : channel, 2-D array or PrivacyProfile
        The mechanism.
    releases : int
        How many, at most.
    deltas : float or sequence of float
        One line, and one bound, for each delta between 0 and 1.
    ax : matplotlib Axes, optional
        Where; by default new ones.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.composition(fp.HammingChannel(5, 3, 0.1), releases=200, deltas=[1e-9, 1e-3])
    >>> ax.get_xlabel()
    'number of releases'
    """
    most = check.integer(releases, "releases", 1)
    if most > _COUNTED:
        raise InvalidInput(f"releases must be at most 2^53, got {short(most)}")
    chances = [
        check.real(delta, "delta", least=0.0, most=1.0)
        for delta in np.atleast_1d(check.array(deltas, "deltas")).tolist()
    ]
    if not chances:
        raise InvalidInput("deltas must hold at least one delta, got none")
    once = _profiles([channel])[0]
    level = once.epsilon(0.0).upper
    counts = np.unique(np.rint(np.append(np.geomspace(1, most, 12), np.linspace(1, most, 25))))
    composed = [once.self_compose(int(k)) for k in counts]
    bands = [_ends(profile.epsilon(delta) for profile in composed) for delta in chances]
    total = np.multiply(counts, level)
    ax = axes(ax)
    name = f"levels add: {number(level)} each" if level < math.inf else "levels add"
    band(ax, counts, total, total, name, rising=None, color=INK, linestyle="-", linewidth=1.0)
    for i, delta in enumerate(chances):
        style = look(i)
        if 0.0 < delta < 1.0 and level < math.inf:
            drift, spread = level * math.tanh(0.5 * level), level * math.sqrt(-2 * math.log(delta))
            name = f"advanced composition, delta {number(delta)}"
            thin = style | {"linestyle": ":", "linewidth": 1.2, "markerfacecolor": "white"}
            bounds = counts * drift + np.sqrt(counts) * spread
            ax.plot(*stairs(counts, bounds, ahead=True), label=name, **thin)
        name = f"privacy profile, delta {number(delta)}"
        band(ax, counts, *bands[i], name, rising=True, **style)
    ax.set_xlim(0.0, 1.02 * most)
    ax.set_ylim(0.0, 1.1 * total[-1] if 0.0 < level < math.inf else None)
    finish(ax, "number of releases", "epsilon spent (nats)", legend=legend)
    return ax
