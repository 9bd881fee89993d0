"""Profiles in other words: errors of tests, Renyi divergences, a guess between two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fastpriv._core import validation as check
from fastpriv._drawing.style import axes, band, finish, look
from fastpriv.accounting import PrivacyProfile
from fastpriv.errors import InvalidInput
from fastpriv.plot.profiles import _ends, _names, _profiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from fastpriv._core.validation import Floats
    from fastpriv.channels import AbstractChannel
    from fastpriv.results import Bracket

__all__ = ["bayes_risk", "renyi", "roc", "type_two_error"]

#: Points of a curve of errors, closer together near its ends.
_ERRORS = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, 25))


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
        What to draw, one line each, at the lower end: what is guaranteed.
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
    ax = _curves(mechanisms, labels, _ERRORS, PrivacyProfile.tradeoff, False, ax)
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
    ax = _curves(mechanisms, labels, _ERRORS, PrivacyProfile.tpr, True, ax)
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
    ax = _curves(mechanisms, labels, _ERRORS, PrivacyProfile.bayes_risk, False, ax)
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
    ax = _curves(mechanisms, labels, at, PrivacyProfile.renyi_level, True, ax)
    ax.set_xscale("log")
    finish(ax, "order of the divergence", "Renyi divergence (nats)", legend=legend)
    return ax


def _curves(
    mechanisms: Sequence[AbstractChannel | PrivacyProfile | ArrayLike],
    labels: Sequence[str] | None,
    at: Floats,
    ask: Callable[[PrivacyProfile, float], Bracket],
    upper: bool,
    ax: Axes | None,
) -> Axes:
    """Draw what profiles answer at some points, with the band that is proved."""
    if not mechanisms:
        raise InvalidInput("a plot needs at least one channel or PrivacyProfile to draw")
    drawn = _profiles(mechanisms)
    names = _names(labels, len(drawn))
    answers = [_ends(ask(curve, x) for x in at.tolist()) for curve in drawn]
    ax = axes(ax)
    for i, (low, high) in enumerate(answers):
        ends = (low, high) if upper else (high, low)
        band(ax, at, *ends, names[i], **look(i))
    return ax
