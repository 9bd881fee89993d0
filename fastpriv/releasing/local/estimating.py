"""Counts of values from reports, with the variances they have."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel, ColumnsChannel, HammingChannel
from fastpriv.channels.local import SupportChannel
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.domain import Domain, code_table, scalar
from fastpriv.releasing.local.spelling import read
from fastpriv.releasing.tables.cells import cells
from fastpriv.releasing.tables.memory import Table
from fastpriv.releasing.unmixing import axis_of, moments


class Tallies:
    """Reports of some columns, counted part by part."""

    def __init__(self, channel: ColumnsChannel, domain: Domain, places: Sequence[int]) -> None:
        self.n, self._domain, self._places = 0, domain, tuple(places)
        self._columns = [channel.columns[j] for j in self._places]
        self._totals: list[Any] = [0.0] * len(self._places)

    def add(self, parts: Sequence[Sequence[Any]]) -> None:
        """Count more records: a list of cells for each column."""
        self.n += len(parts[0])
        for k, column in enumerate(self._columns):
            name = self._domain.columns[self._places[k]]
            if isinstance(column, SupportChannel):
                counted = column._tally(read(column, parts[k], name))
            else:
                counted = _value_counts(parts[k], name, self._domain, column.space.sizes[0])
            self._totals[k] = self._totals[k] + counted

    def moments(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield the estimates of every column and their variances."""
        for column, total in zip(self._columns, self._totals, strict=True):
            yield column_moments(column, np.asarray(total), self.n)


def column_moments(column: AbstractChannel, tally: Floats, n: int) -> tuple[Floats, Floats]:
    """Estimate the counts of a column from what was counted, and the variances."""
    if isinstance(column, SupportChannel):
        return column._moments(tally, n)
    assert isinstance(column, HammingChannel)
    return moments(tally, [axis_of(column._kernels[0])])


def _value_counts(values: Sequence[Any], name: Hashable, domain: Domain, k: int) -> Floats:
    """Count the values of a column that went through randomised response."""
    listed: dict[Any, int] = {}
    for value in map(scalar, values):
        listed[value] = listed.get(value, 0) + 1
    codes = code_table(name, domain, listed)[:-1]
    if (codes < 0).any():  # a CSV file holds texts
        spelt = {"" if v is None else str(v): v for v in domain.values[domain.columns.index(name)]}
        codes = code_table(name, domain, [spelt.get(str(value), value) for value in listed])[:-1]
    if (codes < 0).any():
        raise InvalidInput(f"column {described(name)} holds a value that its domain does not list")
    times = np.array(list(listed.values()), dtype=np.float64)
    return np.asarray(np.bincount(codes, times, minlength=k), dtype=np.float64)


def tallied(
    source: Table, channel: ColumnsChannel, domain: Domain, places: Sequence[int]
) -> Tallies:
    """Count the reports of a table, in one pass."""
    counts = Tallies(channel, domain, places)
    for part in cells(source, [domain.columns[j] for j in places]):
        counts.add(part)
    return counts
