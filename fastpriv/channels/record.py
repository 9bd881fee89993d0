"""The columns of one record, each through its own mechanism, and the record as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.defined import load
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.ratios import inwards, matrix_level
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, fitting
from fastpriv.channels.base import AbstractChannel
from fastpriv.errors import InvalidInput, described, short
from fastpriv.priors import Dense, Distribution
from fastpriv.spaces import Space

__all__ = ["ColumnsChannel"]

#: Largest number of values of a record that codes can number.
MOST_VALUES = 1 << 62


class ColumnsChannel(AbstractChannel):
    """Every column of a record goes through its own mechanism, of any structure.

    Here each column counts as one record of the space. For the levels of a person, who has all
    columns, use ``RecordChannel(channel)``: differential privacy levels add up over columns.

    Parameters
    ----------
    columns : sequence of channels
        The mechanism of each column, on one record.

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
            raise InvalidInput(
                "columns must be one channel or more, each on one record. Give a matrix or a "
                "channel for each column."
            )
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

        It is rounded inwards: its level is at most the largest level of the columns' matrices.
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
        """Bound on the relative error of entries, which are products over columns."""
        own = sum(column.matrix_error for column in self.columns)
        return 2.0 * own + roundoff(8.0 * (self.space.n + 4))

    def draw(self, rows: Codes, source: Source) -> Codes:
        drawn = [
            np.asarray(column.draw(rows[:, j : j + 1], source)).astype(np.int64)
            for j, column in enumerate(self.columns)
        ]
        return np.concatenate([part.reshape(len(rows), -1) for part in drawn], axis=1)

    def __repr__(self) -> str:
        return f"ColumnsChannel({', '.join(map(repr, self.columns))})"


class RecordChannel(AbstractChannel):
    """A channel on the columns of one record, seen as a channel on the whole record.

    Its database has a single record, with values numbered in C order of the columns' values.
    Neighbours differ in the whole record. For example, four columns randomised at level 0.5 have
    level 2 here, and level 0.5 for ``columns``.

    Parameters
    ----------
    columns : channel
        The mechanism on the columns, one record of its space for each. Its outputs are records, or
        the messages of a :class:`ColumnsChannel`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> columns = fp.HammingChannel(4, 3, 0.5)
    >>> fp.dp_level(columns), fp.dp_level(fp.RecordChannel(columns))
    (0.5, 2.0)
    """

    def __init__(self, columns: AbstractChannel) -> None:
        reports = isinstance(columns, ColumnsChannel)
        if not isinstance(columns, AbstractChannel) or not (
            reports or columns.space == columns.output_space
        ):
            raise InvalidInput(
                "columns must be a channel whose outputs are records; got "
                f"{described(columns)}. Use a ProductChannel or a HammingChannel."
            )
        if columns.space.size > MOST_VALUES:
            raise InvalidInput(
                f"a record of {short(columns.space.size)} values cannot be one row; ask the "
                "channel of its columns."
            )
        self.columns = columns
        self.space = self.output_space = Space.of((columns.space.size,))
        if reports:
            self.output_space = columns.output_space

    @property
    def output_count(self) -> int:
        return self.columns.output_count

    def output_row(self, y: int) -> Ints:
        whole = self.output_space == self.space  # records as one number, not as their columns
        return super().output_row(y) if whole else self.columns.output_row(y)

    def column_index(self, output: Ints) -> int:
        whole = self.output_space == self.space
        return super().column_index(output) if whole else self.columns.column_index(output)

    def definition(self) -> dict[str, Any]:
        return {"columns": self.columns}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> RecordChannel:
        return cls(load(given["columns"]))

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array."""
        return self.columns.matrix()

    def nearest_matrix(self) -> Floats:
        """Return W[x, y] to the nearest doubles."""
        return self.columns.nearest_matrix()

    @property
    def matrix_error(self) -> float:
        """Bound on the relative error of entries, as for the columns."""
        return self.columns.matrix_error

    def columns_prior(self, prior: Distribution) -> Distribution:
        """Return the distribution of the columns of a record that follows ``prior``."""
        return Dense.of(prior.probabilities(), self.columns.space, prior.logs_if_rare())

    def output_distribution(self, prior: Distribution) -> Distribution:
        law = self.columns.output(self.columns_prior(prior))
        return Dense.of(law.pmf(), self.column_space)

    def column_maxima(self) -> Floats:
        """Return the largest p(y|x) over x, for every output y."""
        return self.columns.column_maxima()

    def column_minima(self) -> Floats:
        """Return the smallest p(y|x) over x, for every output y."""
        return self.columns.column_minima()

    def draw(self, rows: Codes, source: Source) -> Codes:
        inner = self.columns.space
        drawn = self.columns.draw(inner.rows(rows[:, 0].astype(np.int64)), source)
        if self.output_space != self.space:
            return drawn
        codes = np.asarray(inner.index(drawn)).reshape(-1, 1)
        return codes.astype(fitting(rows.dtype, inner.size))

    def __repr__(self) -> str:
        return f"RecordChannel({self.columns!r})"
