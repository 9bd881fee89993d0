"""What is asked of a privacy program, and the one way in which its result is reported."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import replace
from typing import NamedTuple, TypeVar

from fastpriv._core import validation as check
from fastpriv.design.engine import SOLVERS
from fastpriv.errors import GapWarning
from fastpriv.results import Solution


class Task(NamedTuple):
    """What is asked of a program."""

    epsilon: float
    joint: bool  # ratios of the joint law are bounded (PD-I), not of the channel (PD-DP)
    gap: float
    deadline: float  # of the monotonic clock
    solver: str
    stopped: list[str]  # engines that the clock stopped, with time left for what follows them


#: Doubles below 1e-308 have lost digits: what differs by less is the same.
_NOTHING = 1e-300


def limits(gap: float, time_limit: float) -> tuple[float, float]:
    """Check what every program takes: the gap to stop at and the seconds to stop after."""
    gap = check.real(gap, "gap", least=1e-12, most=1.0)
    endless = check.endless(time_limit)
    return gap, math.inf if endless else check.real(time_limit, "time_limit", least=1e-9)


def made_task(epsilon: float, joint: bool, gap: float, time_limit: float, solver: str) -> Task:
    """Check what the linear programs take: limits and the engine."""
    gap, time_limit = limits(gap, time_limit)
    check.word(solver, "solver", SOLVERS)
    return Task(epsilon, joint, gap, time.monotonic() + time_limit, solver, [])


#: A solution, of whatever kind.
Kind = TypeVar("Kind", bound=Solution)


def _missed(solution: Solution, absolute: bool) -> str:
    if absolute:
        return f"the value is certified to within {solution.value - solution.bound:.1e}"
    if solution.value == 0.0:
        return f"the optimum is certified from {solution.bound:.1e} to 0"
    return f"the certified gap is {solution.gap:.1e}"


def told(
    solution: Kind,
    task: Task,
    depth: int = 4,
    why: str = "",
    *,
    absolute: bool = False,
    least: float = _NOTHING,
) -> Kind:
    """Return the solution, and warn where its gap is wider than was asked for.

    ``why`` says the reason if it is neither the time limit nor rounding. ``depth`` is the number
    of frames up to the caller that the warning is meant for. Gaps are relative to the value unless
    they are ``absolute``; what differs by less than ``least`` is the same.
    """
    missed = solution.value - solution.bound
    if (missed if absolute else solution.gap) <= task.gap or missed < least:
        return solution
    late = bool(task.stopped) or time.monotonic() > task.deadline
    if solution.value == 0.0 and not late and not absolute:
        why = "relative to a value of 0 no distance is small"
    why = why or ("the time limit passed" if late else "rounding allows no less")
    text = f"{_missed(solution, absolute)}, wider than gap={task.gap:g}: {why}"
    warnings.warn(text, GapWarning, stacklevel=depth)
    return replace(solution, converged=False)
