"""What an audit measures: a mechanism, a prior, a secret, and results that notions share."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TypeVar

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, raised, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import Leakages, matrix_leakages
from fastpriv.channels import AbstractChannel, Channel
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.measures.capacity import searched_entries
from fastpriv.measures.disclosure import discloses, disclosure_threshold
from fastpriv.measures.individual import largest_leak
from fastpriv.measures.information import information, through_entries
from fastpriv.measures.leakage import (
    extreme_level,
    leakage_factor,
    maxima_level,
    worst_leakage_factor,
)
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.pointwise.record import law_error, row_level
from fastpriv.measures.realised import INFORMATION_ERROR, raised_information
from fastpriv.measures.witnesses import extreme_witness, leakage_witness, ruling_out, step_witness
from fastpriv.notions.notion import Notion
from fastpriv.priors import Dense, Distribution
from fastpriv.results import Bracket, IndividualCapacity, Value, Witness, top
from fastpriv.spaces import Space

#: Entries of a matrix that an audit optimises over: about a second.
_SEARCHED = 1 << 20
#: Comparisons of entries of neighbours that an audit makes: about a second.
_COMPARED = 1 << 27
#: Types of outputs, record after record, that an audit computes: about a second.
_PASSED = 1 << 23
#: Values of all databases that are listed to find records whose value an output reveals.
_LISTED = 1 << 20
#: Records whose leakages are measured one by one.
_RECORDS = 64
#: Entries of a mechanism so small that the clock is not read for it.
_QUICK = 1 << 12
#: Seconds past the time limit after which not even closed forms are begun.
_GRACE = 5.0
#: Width to which capacities are bracketed: far below the digits that an audit shows.
GAP = 1e-9

Levels = TypeVar("Levels", Value, Floats)


class Case:
    """A mechanism, its prior if there is one, and the clock; no clock bounds the work instead."""

    def __init__(
        self, channel: AbstractChannel, prior: Distribution | None, clock: Clock | None
    ) -> None:
        self.channel, self._prior, self._clock = channel, prior, clock

    @property
    def prior(self) -> Distribution:
        """The prior. Only notions that depend on one read it."""
        assert self._prior is not None
        return self._prior

    # How much work a measure may take.

    def time(self, searches: int = 1) -> float | None:
        """Return the seconds for the first of some searches to come, or None without a limit."""
        if self._clock is not None and self._clock.limit == 0.0:
            raise TooLarge("a time limit of 0 leaves no time for searches. Give a larger one.")
        return self.seconds(searches)

    def seconds(self, searches: int) -> float | None:
        """Return the same for a measure that is taken even without time."""
        return None if self._clock is None else self._clock.share(searches)

    def wait(self) -> None:
        """Refuse to begin a measure of a large mechanism after the time limit."""
        if self._is_late(0.0):
            raise TooLarge("the time limit was used up before. Give a larger one.")

    def begin(self) -> None:
        """Refuse to begin any measure of a large mechanism long after the time limit."""
        if self._is_late(_GRACE):
            raise TooLarge(f"it would begin {_GRACE:g} s past the time limit. Call the measure.")

    def _is_late(self, grace: float) -> bool:
        """Whether the time is over. Small mechanisms are never late: only compiling takes time."""
        if self._clock is None or self._clock.past() <= grace:
            return False
        return max(searched_entries(self.channel), self.channel.space.size) > _QUICK

    def search(self) -> AbstractChannel:
        """Return the channel for an optimisation, unless that takes too long."""
        self.wait()
        entries = searched_entries(self.channel)
        check.fits(entries, "the matrix to search", "call the measure", _SEARCHED)
        return self.channel

    def compare(self) -> AbstractChannel:
        """Return the channel for a comparison of all neighbours, unless that takes too long."""
        work = searched_entries(self.channel) * max(self.channel.space.sizes)
        self.wait()
        check.fits(work, "the comparison of neighbours", "call the measure", _COMPARED)
        return self.channel

    def passed(self) -> Distribution:
        """Return the prior for a pass of its records through the channel, unless it takes long."""
        work = through_entries(self.prior)
        self.wait()
        check.fits(work, "the types of outputs, record by record,", "call the measure", _PASSED)
        return self.prior

    # Results that several notions or sentences read, computed once.

    @cached_property
    def leakages(self) -> tuple[float, float]:
        """Largest ln p(x|y)/p(x) and ln p(x)/p(x|y)."""
        return leakage_levels(self.channel, self.passed())

    @cached_property
    def factor(self) -> Value:
        """Share of the database's entropy that an output reveals on average."""
        return leakage_factor(self.channel, self.passed())

    @cached_property
    def individual(self) -> IndividualCapacity:
        """Individual capacity."""
        searches = 1 if self._prior is None else 2  # the other one is at the prior's entropy
        return largest_leak(self.search(), 1, GAP, self.time(searches))

    @cached_property
    def strong_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over any two databases x, x'."""
        return extreme_level(self.channel)

    @cached_property
    def record_levels(self) -> list[float]:
        """Largest leakage about each record."""
        if self.channel.space.n == 1:  # the record is the database
            return [self.leakages[0]]
        check.fits(
            self.channel.space.n, "the list of records", "ask row_pml for one record", _RECORDS
        )
        levels = []
        for i in range(self.channel.space.n):
            if i > 0:
                self.wait()
            levels.append(row_level(self.channel, self.passed(), i))
        return levels

    @cached_property
    def ruling_out(self) -> tuple[int, Ints]:
        """The number of outputs that rule out a database, and the first few of them."""
        return ruling_out(self.channel)

    @cached_property
    def entropy(self) -> float | Bracket:
        """H(X)."""
        return self.prior.entropy()

    @cached_property
    def threshold(self) -> float:
        """The leakage below which no output rules out a database."""
        return disclosure_threshold(self.prior)

    # What attains the levels.

    @cached_property
    def neighbours(self) -> Witness:
        """The output and the neighbours with the largest ratio of probabilities."""
        return step_witness(self.channel)

    @cached_property
    def posterior(self) -> Witness:
        """The output and the neighbours with the largest ratio of posterior probabilities."""
        return step_witness(self.channel, self.prior)

    @cached_property
    def extreme(self) -> Witness:
        """The output and the databases with the largest ratio of probabilities."""
        return extreme_witness(self.channel)

    @cached_property
    def leading(self) -> Witness:
        """The output that leaks most."""
        return leakage_witness(self.channel, self.prior)

    def disclosed(self) -> Witness:
        """Return an output with a database it can come from and one it rules out, both possible."""
        ends = (self.extreme.database, self.extreme.other)
        if all(x is not None and self.prior.log_prob(x) > -math.inf for x in ends):
            return self.extreme
        entries = searched_entries(self.channel)
        check.fits(entries, "the matrix to search", "ask discloses", _SEARCHED)
        possible = np.flatnonzero(self.prior.probabilities())
        rows = self.channel.nearest_matrix()[possible]
        y = int(((rows.max(axis=0) > 0.0) & (rows.min(axis=0) == 0.0)).argmax())
        x, other = self.channel.space.rows(possible[[rows[:, y].argmax(), rows[:, y].argmin()]])
        return Witness(self.channel.output_row(y), x, other)

    def revealed_records(self) -> list[int]:
        """Return the records whose value some output reveals; none if there are too many."""
        space = self.channel.space
        if space.size * space.n > _LISTED or searched_entries(self.channel) > _SEARCHED:
            return []
        values = space.rows(np.arange(space.size)).T
        return [i for i in range(space.n) if discloses(self.channel, values[i], self.prior)]


class SecretCase(Case):
    """The channel from a secret S to the output, with a bound on the errors of its entries."""

    def __init__(self, mechanism: AbstractChannel, joint: Floats, clock: Clock | None) -> None:
        masses = joint.sum(axis=1)
        self.values = np.flatnonzero(masses)
        self._given = joint[self.values] / masses[self.values, None]
        self._masses = masses[self.values] / masses.sum()
        super().__init__(mechanism, Dense.of(self._masses, Space([len(self.values)])), clock)

    @cached_property
    def secret(self) -> Channel:
        """The distribution of the output for every value of S."""
        entries = len(self.values) * self.channel.output_count
        check.fits(entries, "the distribution of the output for each value of S", "use fewer")
        rows = [
            self.channel.output_distribution(Dense.of(p, self.channel.space)).probabilities()
            for p in self._given
        ]
        return Channel(np.array(rows))

    @cached_property
    def error(self) -> float:
        """Relative error of the entries."""
        return law_error(self.channel) + roundoff(16.0)

    @cached_property
    def odds(self) -> Leakages:
        """Leakages of the outputs about S, from both sides."""
        return matrix_leakages(self.secret.table(), self._masses, self.error)

    def leading_value(self) -> Witness:
        """Return the output that leaks most about S, and the value of S that it points to."""
        y = int(self.odds.above.argmax())
        s = self.values[self.secret.table()[:, y].argmax()]
        return Witness(self.channel.output_row(y), np.array([s]))

    def information(self) -> float:
        """Return I(S; Y), raised past the errors of the computed channel."""
        return raised_information(top(information(self.secret, self.prior)), self.error)

    def extreme_level(self) -> float:
        """Return the strong DP level of the channel from S."""
        return extreme_level(self.secret) + 2.0 * self.error

    def maximal_leakage(self) -> float:
        """Return the maximal leakage about S."""
        return maxima_level(self.secret) + self.error

    def share(self, worst: bool = False) -> float:
        """Return the share of the entropy of S that is revealed, raised past all rounding."""
        factor = worst_leakage_factor if worst else leakage_factor
        revealed, whole = top(factor(self.secret, self._masses)), top(self.entropy)
        slack = 8.0 * self.error * (1.0 + math.log(len(self.values)))
        return min(1.0, revealed * (1.0 + INFORMATION_ERROR) + slack / whole) if whole else 0.0


def as_joint(joint: object, size: int) -> Floats:
    """Return joint[s, x] as a distribution over values of S and databases."""
    masses = check.law(joint, "joint", 2)  # type: ignore[arg-type]
    if masses.shape[1] != size:
        raise InvalidInput(
            f"joint must have a column for each of {size} databases; got shape {masses.shape}."
        )
    return masses


def guaranteed(notion: Notion, value: Levels) -> Levels:
    """Raise averages that are rounded to nearest past their error; other levels are bounds."""
    if not notion.information or isinstance(value, Bracket):
        return value
    if isinstance(value, np.ndarray):
        return np.array([guaranteed(notion, float(one)) for one in value])
    above = raised(float(value), INFORMATION_ERROR / ULP)
    return min(above, 1.0) if notion.unit == "share" else above
