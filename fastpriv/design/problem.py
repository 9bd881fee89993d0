"""The request of a privacy program, and the report of its result."""

from __future__ import annotations

import math
import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv.channels import AbstractChannel
from fastpriv.errors import GapWarning, SolverFailure
from fastpriv.results import Solution

#: Names of the engines of linear programs, as the keyword ``solver`` takes them.
ENGINES = ("auto", "interior", "highs", "first-order")
#: Doubles below 1e-308 have lost digits: values that differ by less than this are equal.
_NEGLIGIBLE = 1e-300

#: A solution of any kind.
Kind = TypeVar("Kind", bound=Solution)


class NoAnswer(Exception):
    """A program gave no mechanism; only mechanisms without a program are available."""


class OutOfTime(NoAnswer):
    """The time limit passed before any result better than a constant mechanism."""


class OutOfRange(NoAnswer):
    """The coefficients of a program overflow or underflow, so there is no program in doubles."""


class Limits(NamedTuple):
    """The gap to reach, the time limit, and the requested engine."""

    gap: float
    clock: Clock
    engine: str = "auto"
    absolute: bool = False  # the gap is a difference, not a share of the value
    negligible: float = _NEGLIGIBLE  # smaller differences of value and bound count as none

    @classmethod
    def checked(
        cls,
        gap: float,
        time_limit: float,
        solver: str = "auto",
        *,
        absolute: bool = False,
        negligible: float = _NEGLIGIBLE,
    ) -> Limits:
        """Check the arguments that every program takes."""
        gap = check.real(gap, "gap", least=1e-12, most=1.0)
        endless = check.endless(time_limit)
        seconds = math.inf if endless else check.real(time_limit, "time_limit", least=1e-9)
        check.word(solver, "solver", ENGINES)
        return cls(gap, Clock(seconds), solver, absolute, negligible)

    @property
    def late(self) -> bool:
        """Whether the time limit has passed."""
        return self.clock.left() == 0.0

    def met_by(self, solution: Solution) -> bool:
        """Whether value and bound are as close as requested."""
        missed = solution.value - solution.bound
        return (missed if self.absolute else solution.gap) <= self.gap or missed < self.negligible


class Answer(NamedTuple):
    """Result of a program: a mechanism, and a proved lower bound on the optimum."""

    channel: AbstractChannel
    bound: float
    method: str
    engine: str | None = None
    late: bool = False  # the time limit stopped an engine
    level: float = math.nan  # of the channel, if it was certified


class Problem(ABC, Generic[Kind]):
    """A minimisation: closed forms, mechanisms without a program, and the program."""

    level = math.inf  # largest level that a mechanism may have

    def closed_form(self, limits: Limits) -> Kind | None:
        """Return the optimum if a theorem gives it."""
        return None

    def known(self) -> tuple[list[Kind], float]:
        """Return mechanisms without a program, at least one if ``answer`` may fail, and a bound."""
        return [], 0.0

    @abstractmethod
    def answer(self, limits: Limits) -> Answer:
        """Solve the program; may raise ``NoAnswer``."""

    @abstractmethod
    def measured(self, answer: Answer) -> Kind:
        """Measure value and level of the floats of a channel."""

    def obstacle(self, limits: Limits) -> str:
        """Return why the gap may be missed, if neither time nor rounding is the reason."""
        return ""


def minimum(problem: Problem[Kind], limits: Limits, warn: bool = True) -> Kind:
    """Return the best mechanism at the level, with the largest lower bound.

    The program's mechanism is compared with the mechanisms that need no program. Of two with the
    same value, the one of the lower level is returned. ``warn`` is whether to warn about a missed
    gap.
    """
    closed = problem.closed_form(limits)
    if closed is not None:
        return closed
    candidates, bound = problem.known()
    method, engine, why = "closed-form", None, ""
    try:
        answer = problem.answer(limits)
    except NoAnswer as failure:
        late, why = isinstance(failure, OutOfTime), str(failure)
    else:
        method, engine, late = answer.method, answer.engine, answer.late
        bound = max(bound, answer.bound)
        own = problem.measured(answer)
        if own.level <= problem.level and math.isfinite(own.value):
            candidates = [*candidates, own]
    if not candidates:
        why = why or "the program has no usable answer"
        raise SolverFailure(f"no mechanism was found: {why}. Give a larger time_limit or gap.")
    best = min(candidates, key=lambda solution: (solution.value, solution.level))
    best = replace(best, bound=min(bound, best.value), method=method, solver=engine)
    return reported(best, limits, why or problem.obstacle(limits), late) if warn else best


def reported(solution: Kind, limits: Limits, why: str = "", late: bool = False) -> Kind:
    """Return the solution, and warn if its gap is wider than requested.

    ``why`` is the reason if it is neither the time limit (``late``, or by the clock) nor rounding.
    """
    if limits.met_by(solution):
        return solution
    if late or limits.late:
        why = "the time limit passed"
    elif solution.value == 0.0 and not limits.absolute:
        why = "relative to a value of 0 no distance is small"
    text = f"{_missed(solution, limits.absolute)}, wider than gap={limits.gap:g}: "
    warnings.warn(text + (why or "rounding allows no less"), GapWarning, stacklevel=_frames_up())
    return replace(solution, converged=False)


def _missed(solution: Solution, absolute: bool) -> str:
    if absolute:
        return f"the value is certified to within {solution.value - solution.bound:.1e}"
    if solution.value == 0.0:
        return f"the optimum is certified from {solution.bound:.1e} to 0"
    return f"the certified gap is {solution.gap:.1e}"


def _frames_up() -> int:
    """Return the ``stacklevel`` of the first frame outside of this package, for the caller."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("fastpriv."):
        frame, depth = frame.f_back, depth + 1
    return depth
