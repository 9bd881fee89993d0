"""Queries: maps from databases to numbered answers, with or without a list of all databases."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv.priors import Dense, Distribution
from fastpriv.spaces import Space

#: Class sizes are counted up to here.
MANY = 1 << 31
#: Most groups that are looked at, and values of one that are told apart.
_GROUPS, _VALUES = 1 << 14, 1 << 12

Group = tuple[int, ...]


class Candidates(NamedTuple):
    """Which laws the output can have for each value of a group of rows.

    ``slices[j]`` lists rows of a table of output laws, those of databases in which the group
    holds ``values[j]``. Where any two different databases will do, ``group`` is empty.
    """

    group: tuple[int, ...]
    values: list[tuple[int, ...]]
    slices: list[Ints]


class Query(ABC):
    """A map from databases to answers 0 .. ``answers`` - 1."""

    space: Space
    answers: int
    #: Bound on the relative error of the law of the answer beyond that of adding up.
    law_error: float = 0.0

    @abstractmethod
    def of(self, rows: Ints) -> Ints:
        """Answers for databases of shape (k, n)."""

    def counts_bits(self) -> bool:
        """Whether the answer is known to be the number of bits that are set."""
        return False

    @abstractmethod
    def kinds(self) -> Ints:
        """Number the rows so that rows with equal numbers play the same part."""

    @abstractmethod
    def seen(self) -> Ints:
        """Return the answers that occur, in order."""

    @abstractmethod
    def neighbours(self) -> Ints:
        """Return the pairs of different answers that neighbours have, both ways: (P, 2)."""

    @abstractmethod
    def class_sizes(self) -> Ints:
        """Return the number of databases behind each answer, at most ``MANY``."""

    @abstractmethod
    def law(self, prior: Distribution) -> Floats:
        """Law of the answer."""

    @abstractmethod
    def log_law(self, prior: Distribution) -> Floats | None:
        """Logs of the law of the answer where some of it underflows, None where none can."""

    @abstractmethod
    def prior(self, law: Floats) -> Distribution:
        """Return a prior under which the answer has the given law."""

    @abstractmethod
    def candidates(self, k: int, outputs: int) -> list[Candidates]:
        """Return the answers that each value of a group of k rows allows, one entry per group.

        A capacity needs no more rows than there are outputs, so values that allow the same
        answers are listed no more often than that.
        """

    @abstractmethod
    def database(self, group: Group, values: Group, answer: int) -> Ints:
        """Return a database with the given values of a group that has the given answer."""

    @abstractmethod
    def step(self, answer: int, other: int) -> tuple[Ints, Ints]:
        """Return two neighbours that have the given answers, which neighbours do have."""

    @abstractmethod
    def _definition(self) -> tuple[object, ...]:
        """Return what makes two queries of one kind the same."""

    def same(self, other: Query) -> bool:
        """Whether the other query is this one, kind for kind and number for number."""
        if self is other:
            return True
        return type(self) is type(other) and self._definition() == other._definition()

    def listed(self) -> Ints:
        """Return the answer of every database, in C order."""
        check.fits(
            self.space.size * self.space.n,
            f"the list of all databases of {self.space!r}, which this measure needs,",
            "use fewer rows, or measures that a count, sum or histogram answers without it",
        )
        return self.of(self.space.rows(np.arange(self.space.size)))


class Listed(Query):
    """Answers given one by one, for every database of a space.

    Rows with the same number in ``kinds`` play the same part; by default none do.
    """

    def __init__(self, values: Ints, space: Space, answers: int, kinds: Ints | None = None) -> None:
        self.values, self.space, self.answers = values, space, answers
        self._kinds = np.arange(space.n) if kinds is None else kinds

    def kinds(self) -> Ints:
        """Number the rows as was given."""
        return self._kinds

    def _definition(self) -> tuple[object, ...]:
        return self.space, self.answers, self.values.tobytes()

    def of(self, rows: Ints) -> Ints:
        """Answers for databases of shape (k, n)."""
        return np.asarray(self.values[self.space.index(rows)])

    def listed(self) -> Ints:
        """Return the answer of every database, in C order."""
        return self.values

    def seen(self) -> Ints:
        """Return the answers that occur, in order."""
        return np.unique(self.values)

    def neighbours(self) -> Ints:
        """Return the pairs of answers that neighbours have. Cost O(N n m)."""
        codes = [
            np.unique(self.values[x] * self.answers + self.values[other])
            for x, other in self.space._steps()
        ]
        return pairs_of(np.concatenate([*codes, np.empty(0, np.int64)]), self.answers)

    def class_sizes(self) -> Ints:
        """Return the number of databases behind each answer."""
        return np.bincount(self.values, minlength=self.answers)

    def law(self, prior: Distribution) -> Floats:
        """Law of the answer."""
        masses = np.bincount(self.values, prior._vector(), minlength=self.answers)
        return np.asarray(masses, np.float64)

    def log_law(self, prior: Distribution) -> Floats | None:
        """Logs of the law of the answer where some of it underflows."""
        logs = prior._logs()
        if logs is None:
            return None
        found = np.full(self.answers, -math.inf)
        np.logaddexp.at(found, self.values, logs)
        return found

    def prior(self, law: Floats) -> Distribution:
        """Return a prior on the first database of every answer."""
        pmf = np.zeros(self.space.size)
        seen, first = np.unique(self.values, return_index=True)
        pmf[first] = law[seen]
        return Dense._trusted(pmf, self.space)

    def candidates(self, k: int, outputs: int) -> list[Candidates]:
        """One entry per group; bits one at a time are any two databases, asked about at once."""
        sizes, seen = self.space.sizes, self.seen()
        if k == 1 and max(sizes) == 2 and len(seen) > 1:
            return [Candidates((), [(), ()], [seen, seen])]
        groups = list(unlike_groups(self._kinds, k))
        work = len(groups) * self.space.size
        check.fits(work, f"the list of all databases for all groups of {k} rows", "use fewer rows")
        found = []
        for group in groups:
            shape = [sizes[i] for i in group]
            # An axis for each row of the group, and one for all rows between two of them.
            ends = zip((-1, *group), (*group, self.space.n), strict=True)
            between = [math.prod(sizes[i + 1 : j]) for i, j in ends]
            split = [size for both in zip(between, shape, strict=False) for size in both]
            grid = self.values.reshape(*split, between[-1])
            axes = range(1, 2 * k, 2)
            lines = np.moveaxis(grid, axes, range(k)).reshape(math.prod(shape), -1)
            slices = [np.unique(line) for line in lines]
            found.append(Candidates(group, list(np.ndindex(*shape)), slices))
        return found

    def database(self, group: Group, values: Group, answer: int) -> Ints:
        """Return the first database with the given values that has the given answer."""
        rows = self.space.rows(np.flatnonzero(self.values == answer))
        return np.asarray(rows[(rows[:, group] == values).all(axis=1)][0])

    def step(self, answer: int, other: int) -> tuple[Ints, Ints]:
        """Return the first two neighbours that have the given answers. Cost O(N n m)."""
        for x, moved in self.space._steps():
            found = np.flatnonzero((self.values[x] == answer) & (self.values[moved] == other))
            if len(found):
                break
        first, second = self.space.rows(np.array([x[found[0]], moved[found[0]]]))
        return first, second


def pairs_of(codes: Ints, answers: int) -> Ints:
    """Pairs of different answers from codes ``first * answers + second``, each once."""
    pairs = np.stack(np.divmod(np.unique(codes), answers), axis=1)
    return np.ascontiguousarray(pairs[pairs[:, 0] != pairs[:, 1]], dtype=np.int64)


def unlike_groups(kinds: Ints, k: int) -> Iterator[Group]:
    """Yield one group of k rows for each choice of how many rows of each kind it has."""
    members = [np.flatnonzero(kinds == t).tolist() for t in np.unique(kinds)]
    number = math.comb(min(len(members) + k - 1, len(kinds)), k)
    check.fits(number, "the list of different groups", "use fewer rows", _GROUPS)
    for chosen in itertools.combinations_with_replacement(range(len(members)), k):
        used = Counter(chosen)
        if all(c <= len(members[t]) for t, c in used.items()):
            yield tuple(sorted(i for t, c in used.items() for i in members[t][:c]))


def values_by_total(
    steps: Sequence[Sequence[tuple[int, ...]]], most: int
) -> dict[tuple[int, ...], list[Group]]:
    """Values of a group by the total of ``steps[i][value]``, at most ``most`` of each total."""
    found: dict[tuple[int, ...], list[Group]] = {(0,) * len(steps[0][0]): [()]}
    for row in steps:
        grown: dict[tuple[int, ...], list[Group]] = defaultdict(list)
        for total, tuples in found.items():
            for value, step in enumerate(row):
                kept = grown[tuple(a + b for a, b in zip(total, step, strict=True))]
                kept += [(*t, value) for t in tuples[: most - len(kept)]]
        found = grown
        number = sum(map(len, found.values()))
        check.fits(number, "the list of a group's values", "use a smaller group", _VALUES)
    return found


def binomials(n: int) -> Ints:
    """Return the binomial coefficients of n, at most ``MANY``."""
    found = np.full(n + 1, MANY, dtype=np.int64)
    value = 1
    for k in range(n // 2 + 1):
        found[k] = found[n - k] = value
        value = value * (n - k) // (k + 1)
        if value >= MANY:
            break
    return found
