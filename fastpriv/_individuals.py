"""From selected rows of a table back to individuals: the databases an adversary believes in."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple, Protocol

import numpy as np

from fastpriv import _validation as check
from fastpriv._selection import best_selection
from fastpriv._validation import Floats, Ints
from fastpriv.results import Adversary, IndividualCapacity
from fastpriv.spaces import Space

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


class Answers(Protocol):
    """What is asked of a map from databases to rows of a table of output laws."""

    def candidates(self, k: int) -> list[Candidates]:
        """Return one entry for every group of k rows, up to symmetry."""

    def database(self, group: tuple[int, ...], values: tuple[int, ...], answer: int) -> Ints:
        """Return a database with the given values that has the given answer."""


def strongest(
    answers: Answers, table: Floats, k: int, gap: float, time_limit: float
) -> IndividualCapacity:
    """Find the adversary who learns most about k rows."""
    problems = answers.candidates(k)
    found = best_selection(table, [p.slices for p in problems], gap, time_limit)
    group, values, _ = problems[found.problem]
    databases = np.stack(
        [answers.database(group, v, int(x)) for v, x in zip(values, found.choice, strict=True)]
    )
    group = group or (int(np.flatnonzero(databases[0] != databases[1])[0]),)
    order = np.lexsort(databases[:, group].T[::-1])
    who = Adversary(group, databases[order], found.law[order])
    return IndividualCapacity(found.lower, found.upper, who)


def representatives(table: Floats) -> Ints:
    """Return the first row that equals each row of a table; large tables are not compared."""
    if table.size > _COMPARED:
        return np.arange(len(table))
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(row.tobytes(), x) for x, row in enumerate(table)])


class Listed:
    """Answers given one by one, for every database of a space."""

    def __init__(self, values: Ints, space: Space) -> None:
        self.values, self.space = values, space

    def candidates(self, k: int) -> list[Candidates]:
        """One entry per group; bits one at a time are any two databases, asked about at once."""
        sizes, n = self.space.sizes, self.space.n
        alive = np.unique(self.values)
        if k == 1 and max(sizes) == 2 and len(alive) > 1:
            return [Candidates((), [(), ()], [alive, alive])]
        work = math.comb(n, k) * self.space.size
        check.fits(work, "the list of all slices of all groups", "use fewer rows")
        grid = self.values.reshape(sizes)
        found = []
        for group in itertools.combinations(range(n), k):
            shape = [sizes[i] for i in group]
            lines = np.moveaxis(grid, group, range(k)).reshape(math.prod(shape), -1)
            found.append(
                Candidates(group, list(np.ndindex(*shape)), [np.unique(line) for line in lines])
            )
        return found

    def database(self, group: tuple[int, ...], values: tuple[int, ...], answer: int) -> Ints:
        """Return the first database with the given values that has the given answer."""
        rows = self.space.rows(np.flatnonzero(self.values == answer))
        return np.asarray(rows[(rows[:, group] == values).all(axis=1)][0])
