"""Where a curve that is known by bounds crosses a level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP
from fastpriv.errors import SolverFailure, described
from fastpriv.results import Bracket, Brackets


def certified(lower: float, upper: float) -> Bracket:
    """Return a bracket of two bounds; bounds that contradict each other are worth nothing."""
    if lower > upper:
        raise SolverFailure(
            f"bounds from below and above contradict each other ({described(lower)} > "
            f"{described(upper)}); please report this profile"
        )
    return Bracket(lower, upper)


def last(holds: Callable[[float], bool], guess: float, top: float) -> tuple[float, float]:
    """Neighbouring doubles, nearly, between which a property of [0, top] is lost.

    Bounds that belong to one tilt are good near its middle only, so the search starts there and
    looks ever further away.
    """
    low, high = -1.0, top
    at, step = guess, 1e-9 * top
    while 0.0 < at < top:
        held = holds(at)
        low, high = (at, high) if held else (low, at)
        if low >= 0.0 and high < top:
            break
        at += step if held else -step
        step *= 8.0
    if low < 0.0:
        if not holds(0.0):
            return 0.0, 0.0
        low = 0.0
    return halved(holds, low, high)


def halved(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Narrow an interval from where a property holds to where it does not: nearly two doubles."""
    while high - low > 4.0 * ULP * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def lost(holds: Callable[[float], bool], top: float, width: float) -> tuple[float, float]:
    """Levels, relatively close, of [0, top]: a property holds at the first, not at the second.

    The search starts near 0, from where levels of many people are not far.
    """
    if not holds(0.0):
        return 0.0, 0.0
    low, at = 0.0, 1e-6 * top
    while at < top and holds(at):
        low, at = at, 4.0 * at
    high = min(at, top)
    while high - low > width * high and high > 1e-300:
        middle = 0.5 * (low + high) if low > 0.0 else high * 0.125
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def each(
    given: float | ArrayLike, name: str, most: float, ask: Callable[[float], Bracket]
) -> Bracket | Brackets:
    """Ask for one number, or for each of many."""
    numbers = check.array(given, name)
    if numbers.ndim == 0:
        return ask(check.real(given, name, least=0.0, most=most))
    values = check.floats(numbers, name, 1)
    ends = [ask(check.real(value, name, least=0.0, most=most)) for value in values.tolist()]
    return Brackets(np.array([b.lower for b in ends]), np.array([b.upper for b in ends]))
