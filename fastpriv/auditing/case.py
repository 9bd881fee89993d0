"""What an audit works on, and what a line of it is: a measurement, a sentence, a worst case."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, raised
from fastpriv._core.validation import Floats
from fastpriv._text.numbers import down, up
from fastpriv.auditing.words import DIGITS, factor, nats, percent
from fastpriv.channels import AbstractChannel
from fastpriv.errors import TooLarge
from fastpriv.measures.capacity import searched_entries
from fastpriv.measures.draws import INFORMATION_ERROR
from fastpriv.measures.individual import largest_leak
from fastpriv.measures.information import through_entries
from fastpriv.measures.leakage import leakage_factor
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.pointwise.row import row_level
from fastpriv.measures.witnesses import extreme_witness, leakage_witness
from fastpriv.notions.notion import Notion
from fastpriv.priors import Distribution
from fastpriv.results import Bracket, IndividualCapacity, Value, Witness, Worst, top

#: Entries, and comparisons of entries, that an audit waits for.
SEARCHED, _COMPARED = 1 << 20, 1 << 27
#: Seconds past the limit after which not even quick measures are begun.
_GRACE = 5.0
#: Entries of a mechanism that is not worth looking at the clock for.
_QUICK = 1 << 12
#: Types of outputs, row after row, that an audit waits for.
_PASSED = 1 << 23
#: Rows that are looked at one by one.
_ROWS = 64
#: Width to which capacities are bracketed.
GAP = 1e-9

Levels = TypeVar("Levels", Value, Floats)


class Case:
    """A mechanism, perhaps with a prior, and the clock; None bounds the work instead of time."""

    def __init__(
        self, channel: AbstractChannel, prior: Distribution | None, clock: Clock | None
    ) -> None:
        self.channel, self._prior, self._clock = channel, prior, clock
        self._hopeless = clock is not None and clock.limit == 0.0

    @property
    def law(self) -> Distribution | None:
        """The prior, or None where none is given."""
        return self._prior

    @property
    def prior(self) -> Distribution:
        """The prior, asked for by notions that need one."""
        assert self._prior is not None
        return self._prior

    def time(self, searches: int = 1) -> float | None:
        """Return the seconds of the first of some searches to come, or None without a limit."""
        if self._hopeless:
            raise TooLarge("there is no time for searches; give a larger time limit")
        return self.seconds(searches)

    def seconds(self, searches: int) -> float | None:
        """Return the same for a measure that is taken without any time as well."""
        return None if self._clock is None else self._clock.share(searches)

    def wait(self) -> None:
        """Refuse to begin a measure of a large mechanism after the time limit."""
        if self._late(0.0):
            raise TooLarge("the time limit was used up before; give a larger one")

    def begin(self) -> None:
        """Refuse to begin any measure of a large mechanism long after the time limit."""
        if self._late(_GRACE):
            raise TooLarge(f"it was not begun {_GRACE:g} s past the time limit; call the measure")

    def _late(self, grace: float) -> bool:
        """Whether the time is over. Small mechanisms are never late: only compiling takes time."""
        small = max(searched_entries(self.channel), self.channel.space.size) <= _QUICK
        return self._clock is not None and not small and self._clock.past() > grace

    def search(self) -> AbstractChannel:
        """Return the channel for an optimisation, unless that takes too long."""
        self.wait()
        entries = searched_entries(self.channel)
        check.fits(entries, "the matrix to search", "call the measure", SEARCHED)
        return self.channel

    def compare(self) -> AbstractChannel:
        """Return the channel for a comparison of all neighbours, unless that takes too long."""
        work = searched_entries(self.channel) * max(self.channel.space.sizes)
        self.wait()
        check.fits(work, "the comparison of neighbours", "call the measure", _COMPARED)
        return self.channel

    def passed(self) -> Distribution:
        """Return the prior for a pass of its rows through the channel, unless that takes long."""
        work = through_entries(self.prior)
        self.wait()
        check.fits(work, "the types of outputs, row by row,", "call the measure", _PASSED)
        return self.prior

    @cached_property
    def leakages(self) -> tuple[float, float]:
        """How far outputs move the odds of databases at most, up and down."""
        return leakage_levels(self.channel, self.passed())

    @cached_property
    def extreme(self) -> Witness:
        """What attains the largest ratio between any two databases."""
        return extreme_witness(self.channel)

    @cached_property
    def leading(self) -> Witness:
        """The output that leaks most."""
        return leakage_witness(self.channel, self.prior)

    @cached_property
    def factor(self) -> Value:
        """Share of the database's entropy that an output tells on average."""
        return leakage_factor(self.channel, self.passed())

    @cached_property
    def individual(self) -> IndividualCapacity:
        """Individual capacity."""
        searches = 1 if self._prior is None else 2  # another one is at the prior's entropy
        return largest_leak(self.search(), 1, GAP, self.time(searches))

    @cached_property
    def row_levels(self) -> list[float]:
        """Largest leakage about each row."""
        check.fits(self.channel.space.n, "the list of rows", "ask row_pml for one row", _ROWS)
        levels = []
        for i in range(self.channel.space.n):
            if i > 0:
                self.wait()
            levels.append(row_level(self.channel, self.passed(), i))
        return levels

    def entropy(self) -> float:
        """H(X), from above."""
        return top(self.prior.entropy())


@dataclass(frozen=True)
class Line:
    """How an audit measures a notion of the registry and puts its number into words.

    Attributes
    ----------
    says : callable
        One sentence that says what the number means.
    measure : callable or None
        The number, within the limits of the case; None for the notion's own function.
    worst : callable or None
        What attains the number, where that can be pointed at.
    """

    says: Callable[[Value, Case], str]
    measure: Callable[[Case], Value] | None = None
    worst: Callable[[Case], Worst | None] | None = None


def guaranteed(notion: Notion, value: Levels) -> Levels:
    """Raise averages that are rounded to nearest past their error; other levels are bounds."""
    if not notion.information or isinstance(value, Bracket):
        return value
    if isinstance(value, np.ndarray):
        return np.array([guaranteed(notion, float(one)) for one in value])
    above = raised(float(value), INFORMATION_ERROR / ULP)
    return min(above, 1.0) if notion.unit == "share" else above


def ratio(finite: str, infinite: str) -> Callable[[Value, Case], str]:
    """Say that a factor is at most e^level, or what an infinite level means."""

    def says(value: Value, case: Case) -> str:
        level = top(value)
        return infinite if level == math.inf else finite.format(factor(level))

    return says


def amount(text: str) -> Callable[[Value, Case], str]:
    """Say an amount of information in nats and bits."""
    return lambda value, case: text.format(nats(value))


def share(text: str) -> Callable[[Value, Case], str]:
    """Say a share as a percentage."""
    return lambda value, case: text.format(percent(top(value)))


def number(text: str) -> Callable[[Value, Case], str]:
    """Say a number, rounded up."""
    return lambda value, case: text.format(up(top(value), DIGITS))


def wrong(what: str) -> Callable[[Value, Case], str]:
    """Say how often a guess is wrong at least."""

    def says(value: Value, case: Case) -> str:
        least = down(top(value), DIGITS)
        if least == "0":
            return f"An output may give {what} away: the bound on the chance of a wrong guess is 0."
        return (
            f"Whoever guesses {what} from an output is wrong with probability {least} or more, "
            "however clever."
        )

    return says
