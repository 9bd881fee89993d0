"""Figures of privacy profiles: delta, composition, errors of tests and Renyi levels."""

from __future__ import annotations

import itertools
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import exp_down, exp_up, lowered, raised
from fastpriv._drawing.safe import below_lines, highest, refined, stairs
from fastpriv._drawing.style import INK, axes, band, finish, look, number, plain, right_label
from fastpriv.accounting import PrivacyProfile
from fastpriv.channels import Channel
from fastpriv.errors import InvalidInput, described, short
from fastpriv.measures.inputs import as_channel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastpriv._core.validation import Floats
    from fastpriv.accounting.profile.cases import Delta
    from fastpriv.channels import AbstractChannel
    from fastpriv.results import Bracket

__all__ = ["bayes_risk", "composition", "profile", "renyi", "risks", "roc", "type_two_error"]

#: Epsilons of a curve to begin with.
_POINTS = 9
#: Steps of the finest grid.
_FINEST = 400
#: Part of the height up to which a piece counts as straight: less than a line is wide.
_BENT = 0.004
#: Points of a curve of errors, closer together near its ends.
_ERRORS = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 25))
#: Levels of a grid.
_LEVELS = 48
#: Level up to which the grid is dense.
_SHOWN = 8.0
#: A delta too small to see.
_UNSEEN = 1e-4
#: Largest level of a line, whose slope then does not overflow.
_STEEPEST = 600.0
#: Most epsilons at which a curve bends that are all drawn.
_BENDS = 256
#: Larger than any loss.
_LARGEST = sys.float_info.max
#: Smallest delta that can be drawn.
_LEAST = 1e-300
#: The line of a mechanism whose output does not depend on the data.
_REFERENCE: Any = {"color": "0.6", "linewidth": 0.8, "linestyle": ":"}
_NOTHING = "output independent of the data"
#: Letters of a name in a legend.
_LONGEST = 60
#: Most steps: a double does not distinguish larger numbers.
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
        The profiles, one line each, at the upper bound of delta. Lines are stairs that are nowhere
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
        Delta is logarithmic down to ``least`` and linear from there to 0. The legend states from
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
        raise InvalidInput("channels must be one channel or PrivacyProfile or more; got none.")
    drawn = _profiles(mechanisms)
    names = _names(labels, mechanisms)
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
    finish(ax, "epsilon (nats)", "smallest delta of (epsilon, delta)-DP", legend=legend)
    return ax


def _profiles(
    mechanisms: Sequence[AbstractChannel | PrivacyProfile | ArrayLike],
) -> list[PrivacyProfile]:
    return [
        given if isinstance(given, PrivacyProfile) else PrivacyProfile.of(as_channel(given))
        for given in mechanisms
    ]


def _names(
    labels: Sequence[str] | None,
    mechanisms: Sequence[AbstractChannel | PrivacyProfile | ArrayLike],
) -> list[str]:
    """Return the given names, or what each mechanism is in words; equal ones are numbered."""
    count = len(mechanisms)
    if labels is None:
        found = [_title(given) for given in mechanisms]
        return [
            plain(name if found.count(name) == 1 else f"{name} ({i + 1})")
            for i, name in enumerate(found)
        ]
    names = None if isinstance(labels, str) or not isinstance(labels, Iterable) else [*labels]
    if names is None or len(names) != count:
        raise InvalidInput(
            f"labels must hold {count} names, one for each line; got {described(labels)}."
        )
    return [plain(name) for name in names]


def _title(mechanism: AbstractChannel | PrivacyProfile | ArrayLike) -> str:
    """Return what a mechanism is, in few words."""
    if isinstance(mechanism, PrivacyProfile):
        name = mechanism.title
    else:
        channel = as_channel(mechanism)
        name = repr(channel)
        if type(channel) is Channel:
            name = f"matrix of {channel.space.size} x {channel.output_space.size}"
    return textwrap.shorten(name, _LONGEST, placeholder=" ...")


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
    if never > _LEAST:
        return f": never below {number(never)}"
    return f": 0 from epsilon {number(level)} on" if level <= right else ""


def _ends(points: Iterable[Bracket]) -> tuple[Floats, Floats]:
    """Return all lower and all upper bounds."""
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
        raise InvalidInput(f"releases must be at most 2^53; got {short(most)}.")
    given = [
        check.real(delta, "delta", least=0.0, most=1.0)
        for delta in np.atleast_1d(check.array(deltas, "deltas")).tolist()
    ]
    if not given:
        raise InvalidInput("deltas must be one delta or more; got none.")
    once = _profiles([channel])[0]
    level = once.epsilon(0.0).upper
    counts = np.unique(np.rint(np.append(np.geomspace(1, most, 12), np.linspace(1, most, 25))))
    composed = [once.self_compose(int(k)) for k in counts]
    bands = [_ends(profile.epsilon(delta) for profile in composed) for delta in given]
    total = np.multiply(counts, level)
    ax = axes(ax)
    name = f"levels add: {number(level)} each" if level < math.inf else "levels add"
    band(ax, counts, total, total, name, rising=None, color=INK, linestyle="-", linewidth=1.0)
    for i, delta in enumerate(given):
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


def risks(
    make: Callable[[float], PrivacyProfile],
    noise: ArrayLike,
    *,
    delta: float = 1e-5,
    fpr: float = 0.01,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw epsilon, the advantage of a test and its true-positive rate against the noise.

    The advantage is the largest true-positive rate minus the false-positive rate, delta(0). Lines
    are upper bounds, as stairs that hold between the computed amounts of noise as well.

    Parameters
    ----------
    make : callable
        Returns the profile for an amount of noise; more noise must not make it worse.
    noise : 1-D array
        Two amounts of noise or more, rising and positive.
    delta : float
        Delta of epsilon.
    fpr : float
        False-positive rate of the true-positive rate.
    ax : matplotlib Axes, optional
        Where; by default new ones. Epsilon is on the axis at the right.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.risks(fp.accounting.PrivacyProfile.gaussian, [0.5, 1.0, 2.0, 4.0])
    >>> ax.get_xlabel()
    'noise multiplier'
    """
    if not callable(make):
        raise InvalidInput(
            f"make must be a function that returns a profile; got {described(make)}."
        )
    at = check.floats(noise, "noise", 1)
    if len(at) < 2 or not (np.all(at > 0.0) and np.all(np.diff(at) > 0.0)):
        raise InvalidInput(
            "noise must be two positive numbers or more, in increasing order. Use "
            "numpy.geomspace(0.5, 5, 20)."
        )
    level = check.real(delta, "delta", least=0.0, most=1.0)
    rate = check.real(fpr, "fpr", least=0.0, most=1.0)
    made = [make(x) for x in at.tolist()]
    for each in made:
        if not isinstance(each, PrivacyProfile):
            raise InvalidInput(f"make must return a PrivacyProfile; got {described(each)}.")
    lines = [
        (_ends(each.delta(0.0) for each in made), "advantage, TPR - FPR"),
        (_ends(each.tpr(rate) for each in made), f"TPR at FPR {number(rate)}"),
    ]
    levels = _ends(each.epsilon(level) for each in made)
    ax = axes(ax)
    for i, (bounds, name) in enumerate(lines):
        band(ax, at, *bounds, name, rising=False, **look(i))
    ax.set_ylim(0.0, 1.02)
    ax.set_xscale("log")
    right = ax.twinx()
    style = look(2)
    band(right, at, *levels, f"epsilon at delta {number(level)}", rising=False, **style)
    right.set_yscale("log")
    right_label(right, "epsilon (nats)", style["color"])
    ax.plot([], [], label=f"epsilon at delta {number(level)} (right axis)", **style)
    finish(ax, "noise multiplier", "advantage and true-positive rate", legend=legend)
    return ax


def type_two_error(
    *mechanisms: AbstractChannel | PrivacyProfile | ArrayLike,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw trade-off functions (f-DP): the smallest type II error of a test over its type I error.

    Parameters
    ----------
    *mechanisms : channel, 2-D array or PrivacyProfile
        The profiles, one line each, at the guaranteed lower bound, between computed points
        too. Finite mechanisms are drawn with their exact corners.
    labels : sequence of str, optional
        A name for each.
    ax : matplotlib Axes, optional
        Where; by default new ones.
    legend : bool or str
        Whether there is one, above the axes; or its place inside, such as "upper right".

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.type_two_error(fp.accounting.PrivacyProfile.gaussian(1.0))
    >>> ax.get_xlabel()
    'type I error'
    """
    ax = _curves(mechanisms, labels, _errors, ax)
    ax.plot([0.0, 1.0], [1.0, 0.0], label=_NOTHING, **_REFERENCE)
    finish(ax, "type I error", "smallest type II error", legend=legend)
    return ax


def roc(
    *mechanisms: AbstractChannel | PrivacyProfile | ArrayLike,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the largest true-positive rate of a test for one person over its false-positive rate.

    Parameters
    ----------
    *mechanisms, labels, ax, legend
        As for :func:`type_two_error`; the line is the guaranteed upper bound.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.roc(fp.HammingChannel(5, 3, 0.5))
    >>> ax.get_ylabel()
    'largest true-positive rate'
    """
    ax = _curves(mechanisms, labels, _rates, ax)
    ax.plot([0.0, 1.0], [0.0, 1.0], label=_NOTHING, **_REFERENCE)
    finish(ax, "false-positive rate", "largest true-positive rate", legend=legend)
    return ax


def bayes_risk(
    *mechanisms: AbstractChannel | PrivacyProfile | ArrayLike,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the smallest error of a guess between two neighbours over the prior of one of them.

    Parameters
    ----------
    *mechanisms, labels, ax, legend
        As for :func:`type_two_error`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.bayes_risk(fp.accounting.PrivacyProfile.laplace(1.0))
    >>> ax.get_ylabel()
    'smallest error of a guess'
    """
    ax = _curves(mechanisms, labels, _risks, ax)
    ax.plot([0.0, 0.5, 1.0], [0.0, 0.5, 0.0], label=_NOTHING, **_REFERENCE)
    finish(ax, "prior probability of one of two", "smallest error of a guess", legend=legend)
    return ax


def renyi(
    *mechanisms: AbstractChannel | PrivacyProfile | ArrayLike,
    labels: Sequence[str] | None = None,
    orders: ArrayLike | None = None,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw Renyi divergences between neighbours over their order.

    Parameters
    ----------
    *mechanisms, labels, ax, legend
        As for :func:`type_two_error`; the line is the guaranteed upper bound.
    orders : 1-D array, optional
        Rising, above 1; by default 33 from 1.01 to 65.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.renyi(fp.accounting.PrivacyProfile.gaussian(1.0))
    >>> ax.get_xlabel()
    'order of the divergence'
    """
    at = 1.0 + np.geomspace(0.01, 64.0, 33)
    if orders is not None:
        at = check.floats(orders, "orders", 1)
        if not (len(at) and np.all(at > 1.0) and np.all(np.diff(at) > 0.0) and np.all(at < np.inf)):
            raise InvalidInput(
                "orders must be finite, above 1 and in increasing order. Use range(2, 64)."
            )
    ax = _curves(mechanisms, labels, partial(_divergences, at), ax, rising=True)
    ax.set_xscale("log")
    finish(ax, "order of the divergence", "Renyi divergence (nats)", legend=legend)
    return ax


def _curves(
    mechanisms: Sequence[AbstractChannel | PrivacyProfile | ArrayLike],
    labels: Sequence[str] | None,
    bounds: Callable[[PrivacyProfile], tuple[Floats, Floats, Floats]],
    ax: Axes | None,
    rising: bool | None = None,
) -> Axes:
    """Draw bounds of profiles: places, the end that is attained and the end that is guaranteed."""
    if not mechanisms:
        raise InvalidInput("profiles must be one channel or PrivacyProfile or more; got none.")
    drawn = _profiles(mechanisms)
    names = _names(labels, mechanisms)
    lines = [bounds(curve) for curve in drawn]
    ax = axes(ax)
    for i, line in enumerate(lines):
        band(ax, *line, names[i], rising=rising, **look(i))
    return ax


def _levels(profile: PrivacyProfile) -> list[float]:
    """Levels that show a whole curve: those at which it bends, its end, and a grid."""
    never = profile.delta(sys.float_info.max).upper
    target = max(_UNSEEN, 1.01 * never)
    end = min(profile.epsilon(target).upper, _STEEPEST) if target < 1.0 else 0.0
    near = min(end, _SHOWN)
    levels = {*np.linspace(0.0, near, _LEVELS), *np.linspace(near, end, _LEVELS // 2)}
    bends = [*profile.cases.bends(), profile.epsilon(never).upper]
    if len(bends) <= _BENDS:
        levels |= {bend for bend in bends if bend <= _STEEPEST}
    return sorted(map(float, levels))


def _rates(profile: PrivacyProfile) -> tuple[Floats, Floats, Floats]:
    """False-positive rates, with true-positive rates from below and above.

    From above, straight lines bound the tests of each pair of neighbours. From below, a pair also
    has the tests between two of its tests; of several pairs, those between a test of the best one
    and the test that always alarms.
    """
    known, levels = profile.distinguishers, _levels(profile)
    corners, heights = highest([_above(*pair, levels) for pair in known.curves])
    reached = np.array([profile.tpr(a).lower for a in _ERRORS.tolist()])
    x = np.unique(np.concatenate([corners, _ERRORS, np.nextafter(_ERRORS[1:], 0.0)]))
    above = np.minimum(raised(np.interp(x, corners, heights), 8.0), 1.0)
    below = np.interp(x, _ERRORS, reached)
    if len(known.pairs) != 1:
        at = np.minimum(np.searchsorted(_ERRORS, x, side="right"), len(_ERRORS) - 1) - 1
        lost = (1.0 - reached[at]) / (1.0 - _ERRORS[at]) * (1.0 - x)
        below = np.where(np.isin(x, _ERRORS), below, 1.0 - lost)
    return x, np.maximum(lowered(below, 16.0), 0.0), above


def _above(first: Delta, second: Delta, levels: list[float]) -> tuple[Floats, Floats]:
    """Corners of a line above the true-positive rates of a pair, over false-positive rates a.

    d(t) + e^t a bounds them for every level t, and 1 - e^-t (1 - d'(t) - a) with the curve d' of
    the other order.
    """
    heights, slopes = [1.0], [0.0]
    for t in levels:
        heights += [first(t).upper, raised(1.0 - exp_down(-t) * (1.0 - second(t).upper), 8.0)]
        slopes += [exp_up(t), exp_up(-t)]
    return below_lines(np.array(heights), np.array(slopes))


def _errors(profile: PrivacyProfile) -> tuple[Floats, Floats, Floats]:
    """Type I errors, with type II errors from above and below."""
    x, below, above = _rates(profile)
    return x, raised(1.0 - below, 4.0), np.maximum(lowered(1.0 - above, 4.0), 0.0)


def _risks(profile: PrivacyProfile) -> tuple[Floats, Floats, Floats]:
    """Priors, with the errors of a guess from above and below.

    The error is concave in the prior, so that chords of lower bounds are lower bounds. It rises up
    to 1/2 and falls from there on, so that the higher end of a stretch bounds it above.
    """
    rare = [1.0 / (1.0 + math.exp(t)) for t in _levels(profile)]
    priors = np.unique([*_ERRORS, 0.5, *rare, *(1.0 - p for p in rare)])
    low, high = _ends(profile.bayes_risk(p) for p in priors.tolist())
    stretches = np.repeat(np.maximum(high[:-1], high[1:]), 2)
    return np.repeat(priors, 2), np.array([high[0], *stretches, high[-1]]), np.repeat(low, 2)


def _divergences(orders: Floats, profile: PrivacyProfile) -> tuple[Floats, Floats, Floats]:
    """Orders, with divergences from below and above: order - 1 times a divergence is convex."""
    low, high = _ends(profile.renyi_level(order) for order in orders.tolist())
    s = orders - 1.0
    fine, low, high = refined(orders, s * low, s * high, lambda a, b: b - a, parts=32)
    return fine, lowered(low / (fine - 1.0), 8.0), raised(high / (fine - 1.0), 8.0)
