"""The columns of a record, each through a mechanism of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.defined import load
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.levels import inwards, matrix_level
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv.channels.base import AbstractChannel
from fastpriv.errors import InvalidInput
from fastpriv.spaces import Space

__all__ = ["ColumnsChannel"]


class ColumnsChannel(AbstractChannel):
    """Every column of a record goes through a mechanism of its own, of whatever structure.

    Rows are columns here. The levels of a person, who is a whole record, are those of
    ``RecordChannel(channel)``: differential privacy adds up over columns.

    Parameters
    ----------
    columns : sequence of channels
        The mechanism of each column, on one row.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.ColumnsChannel([fp.SubsetChannel(20, 0.5), fp.HammingChannel(1, 3, 1.0)])
    >>> fp.dp_level(channel), fp.dp_level(fp.RecordChannel(channel))
    (1.0, 1.5)
    """

    def __init__(self, columns: Sequence[AbstractChannel]) -> None:
        given = check.items(columns, "columns", "channels")
        self.columns: tuple[AbstractChannel, ...] = tuple(given)
        if not self.columns or not all(
            isinstance(column, AbstractChannel) and column.space.n == 1 for column in self.columns
        ):
            raise InvalidInput("columns must be channels on one row each, and at least one")
        self.space = Space.of(tuple(column.space.sizes[0] for column in self.columns))

    @property
    def output_space(self) -> Space:  # type: ignore[override]
        """The outputs of all columns, one after the other."""
        parts = (column.output_space.sizes for column in self.columns)
        return Space.of(tuple(size for sizes in parts for size in sizes))

    @property
    def output_count(self) -> int:
        return math.prod(column.output_count for column in self.columns)

    def output_row(self, y: int) -> Ints:
        parts, rest = [], int(y)
        for column in reversed(self.columns):
            rest, own = divmod(rest, column.output_count)
            parts.append(np.atleast_1d(column.output_row(own)))
        return np.concatenate(parts[::-1])

    def column_index(self, output: Ints) -> int:
        ends = np.cumsum([column.output_space.n for column in self.columns])[:-1]
        result = 0
        for column, part in zip(self.columns, np.split(output, ends), strict=True):
            result = result * column.output_count + column.column_index(part)
        return result

    def definition(self) -> dict[str, Any]:
        return {"columns": list(self.columns)}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> ColumnsChannel:
        return cls([load(column) for column in given["columns"]])

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), the Kronecker product of the columns' matrices.

        It is rounded inwards: its level is at most the largest of the columns' matrices.
        """
        self.check_matrix_fits()
        whole: Floats = np.ones((1, 1))
        level = 0.0
        for column in self.columns:
            part = np.array(column.matrix())
            whole = np.asarray(np.kron(whole, part), dtype=np.float64)
            level = max(level, matrix_level(part, column.space.axes))
        return inwards(whole, self.space.axes, level)

    def nearest_matrix(self) -> Floats:
        """Return W[x, y] to the nearest doubles, up to the rounding of products over columns."""
        self.check_matrix_fits()
        whole: Floats = np.ones((1, 1))
        for column in self.columns:
            whole = np.asarray(np.kron(whole, column.nearest_matrix()), dtype=np.float64)
        return whole

    @property
    def matrix_error(self) -> float:
        """Entries are products over columns, each with its own error."""
        own = sum(column.matrix_error for column in self.columns)
        return 2.0 * own + 8.0 * (self.space.n + 4) * ULP

    def draw(self, rows: Codes, source: Source) -> Codes:
        drawn = [
            np.asarray(column.draw(rows[:, j : j + 1], source)).astype(np.int64)
            for j, column in enumerate(self.columns)
        ]
        return np.concatenate([part.reshape(len(rows), -1) for part in drawn], axis=1)

    def __repr__(self) -> str:
        return f"ColumnsChannel({', '.join(map(repr, self.columns))})"
