"""A record of several columns as one row, so that levels speak of the person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpriv._core.defined import load
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, fitting
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.columns import ColumnsChannel
from fastpriv.errors import InvalidInput, short
from fastpriv.priors import Dense, Distribution
from fastpriv.spaces import Space

#: Largest number of values of a record that codes can number.
MOST_VALUES = 1 << 62


class RecordChannel(AbstractChannel):
    """A channel on the columns of one record, seen as a channel on the whole record.

    Its database has a single row, the person's record, whose values are numbered in C order of the
    columns' values. Neighbours differ in the whole record. Randomising each of four columns at
    level 0.5 is therefore level 2 here, and level 0.5 for ``columns``.

    Parameters
    ----------
    columns : channel
        The mechanism on the columns, one row for each. Its outputs are records, or the reports of
        a :class:`ColumnsChannel`.

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
            raise InvalidInput("columns must be a channel whose outputs are records")
        if columns.space.size > MOST_VALUES:
            raise InvalidInput(
                f"a record of {short(columns.space.size)} values cannot be one row; ask the "
                "channel of its columns"
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
        """Entries are those of the columns."""
        return self.columns.matrix_error

    def columns_prior(self, prior: Distribution) -> Distribution:
        """Return the law of the columns of a record that follows ``prior``."""
        return Dense.of(prior.probabilities(), self.columns.space, prior.logs_if_rare())

    def output_distribution(self, prior: Distribution) -> Distribution:
        law = self.columns.output(self.columns_prior(prior))
        return Dense.of(law.pmf(), self.column_space)

    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""
        return self.columns.column_maxima()

    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""
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
