"""From selected rows of a table back to individuals: the databases an adversary believes in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.selection import best_selection
from fastpriv.results import Adversary, IndividualCapacity

if TYPE_CHECKING:
    from fastpriv.channels.queries.query import Query

#: Largest table whose equal rows are looked for.
_COMPARED = 1 << 24


class Candidates(NamedTuple):
    """Which laws the output can have for each value of a group of rows.

    ``slices[j]`` lists rows of a table of output laws, those of databases in which the group
    holds ``values[j]``. Where any two different databases will do, ``group`` is empty.
    """

    group: tuple[int, ...]
    values: list[tuple[int, ...]]
    slices: list[Ints]


def strongest(
    query: Query, table: Floats, k: int, gap: float, time_limit: float
) -> IndividualCapacity:
    """Find the adversary who learns most about k rows, p(.|x) being a row of the table."""
    problems = query.candidates(k, table.shape[1])
    found = best_selection(table, [p.slices for p in problems], gap, time_limit)
    group, values, _ = problems[found.problem]
    databases = np.stack(
        [query.database(group, v, int(x)) for v, x in zip(values, found.choice, strict=True)]
    )
    if not group:
        if (databases[0] == databases[1]).all():  # all laws are the same: any other tells nothing
            bit = query.space.sizes.index(2)
            databases[1, bit] = 1 - databases[1, bit]
        group = (int(np.flatnonzero(databases[0] != databases[1])[0]),)
    order = np.lexsort(databases[:, group].T[::-1])
    who = Adversary(group, databases[order], found.law[order])
    return IndividualCapacity(found.lower, found.upper, who)


def representatives(table: Floats) -> Ints:
    """Return the first row that equals each row of a table; large tables are not compared."""
    if table.size > _COMPARED:
        return np.arange(len(table))
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(row.tobytes(), x) for x, row in enumerate(table)])
