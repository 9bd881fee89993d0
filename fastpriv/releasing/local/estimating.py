"""Counts of values from reports, with the variances they have."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core.validation import Floats
from fastpriv._structure.rows import RowKernel
from fastpriv.channels import AbstractChannel, ColumnsChannel, HammingChannel
from fastpriv.channels.local import SupportChannel
from fastpriv.errors import InvalidInput, described
from fastpriv.releasing.digest import Digest
from fastpriv.releasing.domain import Domain, code_table, scalar
from fastpriv.releasing.local.plan import side_by_side
from fastpriv.releasing.local.spelling import read
from fastpriv.releasing.tables.cells import cells
from fastpriv.releasing.tables.memory import Table
from fastpriv.releasing.unmixing import axis_of, moments


class Tallies:
    """Reports of some columns, counted part by part, and the digest of whole records.

    Values that went through randomised response are counted jointly too if ``joint``.
    """

    def __init__(
        self,
        channel: ColumnsChannel,
        domain: Domain,
        places: Sequence[int],
        joint: bool,
        expected: Digest | None,
    ) -> None:
        self.n, self._domain, self._places = 0, domain, tuple(places)
        self.digest = None if expected is None else Digest(expected.key)
        #: The columns to read: a digest is of whole records.
        self.read = self._places if expected is None else tuple(range(len(domain.columns)))
        self._columns = channel.columns
        self._totals: dict[int, Any] = dict.fromkeys(self._places, 0.0)
        self._shape = tuple(domain.sizes[j] for j in self._places)
        self._joint = np.zeros(math.prod(self._shape)) if joint else None

    def add(self, parts: Sequence[Sequence[Any]]) -> None:
        """Count more records: a list of cells for each column that is read."""
        self.n += len(parts[0])
        integers = {j: self._integers(j, part) for j, part in zip(self.read, parts, strict=True)}
        for j in self._places:
            self._totals[j] = self._totals[j] + self._tally(j, integers[j])
        if self._joint is not None:
            cells = np.ravel_multi_index([integers[j] for j in self._places], self._shape)
            self._joint += np.bincount(cells, minlength=len(self._joint))
        if self.digest is not None:
            self.digest = self.digest.plus(side_by_side(list(integers.values())))

    def _tally(self, j: int, integers: Any) -> Any:
        column = self._columns[j]
        if isinstance(column, SupportChannel):
            return column.tally(integers)
        return np.bincount(integers, minlength=self._domain.sizes[j])

    def _integers(self, j: int, part: Sequence[Any]) -> Any:
        """Return a column as it was drawn: reports, or codes of values."""
        name, column = self._domain.columns[j], self._columns[j]
        if isinstance(column, SupportChannel):
            return read(column, part, name)
        return _codes(part, name, self._domain)

    def moments(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield the estimates of every column and their variances."""
        for j, total in self._totals.items():
            yield column_moments(self._columns[j], np.asarray(total), self.n)

    def joint_moments(self) -> tuple[Floats, Floats] | None:
        """Return the estimates of the joint counts and their variances, where they are counted."""
        if self._joint is None:
            return None
        axes = [axis_of(_response(self._columns[j])) for j in self._places]
        estimates, variances = moments(self._joint.reshape(self._shape), axes)
        return estimates.reshape(-1), variances.reshape(-1)


def column_moments(column: AbstractChannel, tally: Floats, n: int) -> tuple[Floats, Floats]:
    """Estimate the counts of a column from what was counted, and the variances."""
    if isinstance(column, SupportChannel):
        return column.moments(tally, n)
    return moments(tally, [axis_of(_response(column))])


def _response(column: AbstractChannel) -> RowKernel:
    assert isinstance(column, HammingChannel)
    return column.kernels[0]


def _codes(values: Sequence[Any], name: Hashable, domain: Domain) -> NDArray[np.int64]:
    """Return the codes of the values of a column that went through randomised response."""
    listed: dict[Any, int] = {}
    numbers = [listed.setdefault(value, len(listed)) for value in map(scalar, values)]
    codes = code_table(name, domain, listed)[:-1]
    if (codes < 0).any():  # a CSV file holds texts
        spelt = {"" if v is None else str(v): v for v in domain.values[domain.columns.index(name)]}
        codes = code_table(name, domain, [spelt.get(str(value), value) for value in listed])[:-1]
    if (codes < 0).any():
        raise InvalidInput(f"column {described(name)} holds a value that its domain does not list")
    return codes[np.array(numbers, dtype=np.int64)]


def tallied(
    source: Table,
    channel: ColumnsChannel,
    domain: Domain,
    places: Sequence[int],
    joint: bool,
    expected: Digest | None,
) -> Tallies:
    """Count the reports of a table, in one pass."""
    counts = Tallies(channel, domain, places, joint, expected)
    for part in cells(source, [domain.columns[j] for j in counts.read]):
        counts.add(part)
    return counts
