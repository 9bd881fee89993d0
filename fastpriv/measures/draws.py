"""Levels of what is drawn, from those of the channel that stands for the draws and its slack."""

from __future__ import annotations

from fastpriv._core.rounding import round_up

#: Relative error of an information that is computed as a float, far above its few ulp.
INFORMATION_ERROR = 2.0**-40


def raised(level: float, slack: float) -> float:
    """Raise a level by what the draws can have on top of it."""
    return round_up(level + slack) if slack else level


def raised_information(value: float, slack: float) -> float:
    """Raise an information or a capacity by what the draws can have on top of it.

    Chances within e^(+-s) of W give at most I + s + (e^s - 1) E|ln W/q|, and E|ln W/q| is at
    most I + 2/e, q being the law of the output under W.
    """
    return raised(value + slack * (1.0 + 2.0 * value), slack)
