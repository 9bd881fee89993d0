"""Profiles in other words: errors of tests, Renyi divergences, a guess between two."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import exp_down, exp_up, lowered, raised
from fastpriv._drawing.safe import below_lines, highest, refined
from fastpriv._drawing.style import axes, band, finish, look
from fastpriv.accounting import PrivacyProfile
from fastpriv.errors import InvalidInput
from fastpriv.plot.profiles import _ends, _names, _profiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastpriv._core.validation import Floats
    from fastpriv.accounting.profile.cases import Delta
    from fastpriv.channels import AbstractChannel

__all__ = ["bayes_risk", "renyi", "roc", "type_two_error"]

#: Points of a curve of errors, closer together near its ends.
_ERRORS = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 25))
#: Levels of a grid, the level up to which it is dense, and a delta too small to be seen.
_LEVELS, _SHOWN, _UNSEEN = 48, 8.0, 1e-4
#: Largest level of a line, whose slope is then below the largest double.
_STEEPEST = 600.0
#: Most levels at which a curve bends that are all drawn.
_BENDS = 256


def type_two_error(
    *mechanisms: AbstractChannel | PrivacyProfile | ArrayLike,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw trade-off functions (f-DP): the least type II error of a test over its type I error.

    Parameters
    ----------
    *mechanisms : channel, 2-D array or PrivacyProfile
        What to draw, one line each, at the lower end: what is guaranteed, between computed points
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
    ax.plot([0.0, 1.0], [1.0, 0.0], color="0.6", linewidth=0.8, linestyle=":")
    finish(ax, "type I error", "least type II error", legend=legend)
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
        As for :func:`type_two_error`; the line is at the upper end: what is guaranteed.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.roc(fp.HammingChannel(5, 3, 0.5))
    >>> ax.get_ylabel()
    'largest true-positive rate'
    """
    ax = _curves(mechanisms, labels, _rates, ax)
    ax.plot([0.0, 1.0], [0.0, 1.0], color="0.6", linewidth=0.8, linestyle=":")
    finish(ax, "false-positive rate", "largest true-positive rate", legend=legend)
    return ax


def bayes_risk(
    *mechanisms: AbstractChannel | PrivacyProfile | ArrayLike,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    legend: bool | str = True,
) -> Axes:
    """Draw the least error of a guess between two neighbours over the prior of one of them.

    Parameters
    ----------
    *mechanisms, labels, ax, legend
        As for :func:`type_two_error`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> ax = fp.plot.bayes_risk(fp.accounting.PrivacyProfile.laplace(1.0))
    >>> ax.get_ylabel()
    'least error of a guess'
    """
    ax = _curves(mechanisms, labels, _risks, ax)
    ax.plot([0.0, 0.5, 1.0], [0.0, 0.5, 0.0], color="0.6", linewidth=0.8, linestyle=":")
    finish(ax, "prior probability of one of two", "least error of a guess", legend=legend)
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
        As for :func:`type_two_error`; the line is at the upper end: what is guaranteed.
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
            raise InvalidInput("orders must be above 1, finite and rising")
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
        raise InvalidInput("a plot needs at least one channel or PrivacyProfile to draw")
    drawn = _profiles(mechanisms)
    names = _names(labels, len(drawn))
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
