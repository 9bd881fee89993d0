"""What a question is, and how an answer is judged by the exact value."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from flint import arb

import fastpriv as fp
from fuzz.balls import INFINITE, less


@dataclass(frozen=True)
class Question:
    """One measure: how to ask it, and what is broken about an answer under one reading of W."""

    ask: Callable
    #: (case, W, answer) -> the names of the claims that are broken
    judge: Callable
    weight: int = 4
    #: Averages: rounded to nearest, and off by ``least`` of a case at most.
    near: bool = False
    least: Callable = lambda spec: 5e-324
    #: Most databases, where the truth takes long.
    databases: int = 10**4
    #: Whether rows are divided by their exact sums, as in profiles, or taken as they are.
    laws: bool = False


@dataclass(frozen=True)
class Violation:
    """An answer that breaks its claim, in one line."""

    case: dict
    kind: str
    answer: str

    def __str__(self):
        return f"{self.case['question']}: {self.kind}: got {self.answer}"


def ball(value):
    """Return a float as a ball, infinities included."""
    return arb(value) if math.isfinite(value) else INFINITE


def ends(given):
    return (given.lower, given.upper) if isinstance(given, fp.Bracket) else (given, given)


def compared(given, low, high):
    """Return what is broken, where the truth is from low to high."""
    least, most = ends(given)
    broken = set()
    if less(ball(most), low):
        broken.add("below")
    if isinstance(given, fp.Bracket) and less(high, ball(least)):
        broken.add("lower end above")
    return broken


def level(truth):
    """Judge an upper bound, or a bracket, by its exact value."""

    def judge(case, W, given):
        value = truth(case, W)
        return compared(given, value, value)

    return judge


def between(truth):
    """Judge a bracket by bounds on the exact value."""
    return lambda case, W, given: compared(given, *truth(case, W))


def average(truth, least):
    """Judge a number that is rounded to nearest."""

    def judge(case, W, given):
        value = truth(case, W)
        if isinstance(given, fp.Bracket):
            return compared(given, value, value)
        room = abs(value) * arb("1e-12") + arb(least(case.spec))
        if less(ball(given) + room, value):
            return {"too low"}
        return {"too high"} if less(value + room, ball(given)) else set()

    return judge
