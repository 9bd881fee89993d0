"""A release through local mechanisms, one for each column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv.channels import AbstractChannel, ColumnsChannel, HammingChannel, RecordChannel
from fastpriv.channels.local import SubsetChannel, SupportChannel
from fastpriv.channels.record import MOST_VALUES
from fastpriv.releasing.domain import Digits, Domain
from fastpriv.releasing.local.spelling import spelt
from fastpriv.releasing.plan import COLUMNS, Plan


@dataclass(frozen=True)
class LocalPlan(Plan):
    """Each column through a mechanism of its own: randomised response, or one with reports."""

    channel: ColumnsChannel
    #: How each mechanism was chosen, in words.
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, channel: ColumnsChannel, domain: Domain, reasons: tuple[str, ...] = ()
    ) -> LocalPlan:
        """Return the plan of mechanisms for the columns of a domain."""
        return cls(channel, COLUMNS, domain, reasons)

    @property
    def about_people(self) -> AbstractChannel:
        """The channel whose row is the record."""
        return person(self.channel)

    @property
    def report_columns(self) -> tuple[int, ...]:
        """The places of the columns that become reports."""
        kinds = enumerate(self.channel.columns)
        return tuple(j for j, column in kinds if isinstance(column, SupportChannel))

    def reported(self, digits: Digits, rng: Any) -> tuple[Digits, Domain, Digits, int]:
        """Draw records: codes, the domain they are of, in which reports are texts, and changes.

        A cell that became a report counts as changed. Before the changes come the integers that
        were drawn, those of all columns side by side.
        """
        values, changed, integers = list(self.domain.values), 0, []
        after = np.empty(digits.shape, dtype=np.int64, order="F")
        for j, column in enumerate(self.channel.columns):
            drawn = column.sample(np.ascontiguousarray(digits[:, j : j + 1]), rng)
            integers.append(drawn)
            if isinstance(column, SupportChannel):
                texts, after[:, j] = np.unique(np.array(spelt(column, drawn)), return_inverse=True)
                values[j] = texts.tolist()
                changed += len(digits)
            else:
                after[:, j] = drawn[:, 0]
                changed += int(np.count_nonzero(after[:, j] != digits[:, j]))
        domain = Domain(self.domain.columns, tuple(values), self.domain.source)
        return after, domain, side_by_side(integers), changed

    def expected_changes(self) -> float:
        """Expected number of cells of a record that change."""
        moves = [
            1.0 if isinstance(column, SupportChannel) else _moving(column)
            for column in self.channel.columns
        ]
        return math.fsum(moves)

    def errors(self, n: int) -> dict[object, float]:
        """Standard error of an estimated count of each column, its values equally common."""
        pairs = zip(self.domain.columns, self.channel.columns, strict=True)
        return {name: math.sqrt(n * record_variance(column)) for name, column in pairs}


def side_by_side(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the integers of all columns, one row for each record."""
    return np.column_stack([column.astype(np.int64, copy=False) for column in columns])


def person(channel: ColumnsChannel) -> AbstractChannel:
    """Return the channel whose row is the record, while records can be numbered."""
    if len(channel.columns) == 1:
        return channel.columns[0]
    return channel if channel.space.size > MOST_VALUES else RecordChannel(channel)


def record_variance(column: AbstractChannel) -> float:
    """Variance of an estimated count for each record at a share of 1/k; infinite at level 0."""
    k = column.space.sizes[0]
    if k == 1:
        return 0.0
    if isinstance(column, HammingChannel):  # subset selection of one value
        column = SubsetChannel(k, column.epsilon, 1)
    assert isinstance(column, SupportChannel)
    return column.variance(1.0 / k) if column.growth > 1 else math.inf


def _moving(column: AbstractChannel) -> float:
    assert isinstance(column, HammingChannel)
    (kernel,) = column.symmetric()
    return (kernel.m - 1) * kernel.off
