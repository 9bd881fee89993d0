"""Queries: maps from databases to numbered answers, with or without a list of all databases."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import surprise
from fastpriv.channels.queries.odds import Odds
from fastpriv.priors import Dense, Distribution
from fastpriv.spaces import Space

#: Numbers of databases are counted up to this one.
MANY = 1 << 31
#: Most groups that are searched, and most values of one group.
_GROUPS, _VALUES = 1 << 14, 1 << 12

Group = tuple[int, ...]


class Candidates(NamedTuple):
    """The output laws that are possible for each value of a group of rows.

    ``slices[j]`` lists rows of a table of output laws, for the databases in which the group holds
    ``values[j]``. If any two different databases are allowed, ``group`` is empty.
    """

    group: tuple[int, ...]
    values: list[tuple[int, ...]]
    slices: list[Ints]


class Query(ABC):
    """A map from databases to answers 0 .. ``answers`` - 1."""

    space: Space
    answers: int
    #: Bound on the relative error of the law of the answer, beyond that of summing over databases.
    law_error: float = 0.0

    @abstractmethod
    def of(self, rows: Ints) -> Ints:
        """Answers for databases of shape (k, n)."""

    def counts_bits(self) -> bool:
        """Whether the answer is known to be the number of bits that are set."""
        return False

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return what defines the query, as plain lists and numbers."""

    @abstractmethod
    def kinds(self) -> Ints:
        """Number the rows so that rows with equal numbers are interchangeable."""

    @abstractmethod
    def seen(self) -> Ints:
        """Return the answers that occur, in order."""

    @abstractmethod
    def neighbours(self) -> Ints:
        """Return the ordered pairs of different answers that neighbours have: (P, 2)."""

    @abstractmethod
    def class_sizes(self) -> Ints:
        """Return the number of databases behind each answer, at most ``MANY``."""

    @abstractmethod
    def law(self, prior: Distribution) -> Floats:
        """Law of the answer."""

    @abstractmethod
    def log_law(self, prior: Distribution) -> Floats | None:
        """Logs of the law of the answer if some probability may underflow, otherwise None."""

    @abstractmethod
    def surprise(self, prior: Distribution) -> Floats:
        """Sum of p(x) ln p(x) over the databases behind each answer."""

    def odds(self, prior: Distribution) -> Odds | None:
        """Return the largest p(x)/p(x') of neighbours by their answers; None where by a list."""
        return None

    def row_laws(self, prior: Distribution, rows: Ints) -> Iterator[Floats] | None:
        """Joint laws [v, answer] of each of some rows and the answer; None where by a list."""
        return None

    def log_row_law(self, prior: Distribution, i: int) -> Floats:
        """Logs of the joint law [v, answer] of row i and the answer."""
        raise NotImplementedError

    @abstractmethod
    def prior(self, law: Floats) -> Distribution:
        """Return a prior under which the answer has the given law."""

    @abstractmethod
    def candidates(self, k: int, outputs: int) -> list[Candidates]:
        """Return the answers that each value of a group of k rows allows, one entry per group.

        Some optimal input law has at most as many rows as there are outputs. So of the values
        that allow the same answers, at most that many are listed.
        """

    @abstractmethod
    def database(self, group: Group, values: Group, answer: int) -> Ints:
        """Return a database with the given values of a group that has the given answer."""

    @abstractmethod
    def step(self, answer: int, other: int) -> tuple[Ints, Ints]:
        """Return two neighbours with the given answers, a pair of ``neighbours()``."""

    @abstractmethod
    def definition(self) -> tuple[object, ...]:
        """Return what two queries of one class must have in common to be equal."""

    def same(self, other: Query) -> bool:
        """Whether the other query is of the same class and has the same definition."""
        if self is other:
            return True
        return type(self) is type(other) and self.definition() == other.definition()

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

    Rows with the same number in ``kinds`` are interchangeable. By default no two rows are.
    """

    def __init__(self, values: Ints, space: Space, answers: int, kinds: Ints | None = None) -> None:
        self.values, self.space, self.answers = values, space, answers
        self._kinds = np.arange(space.n) if kinds is None else kinds

    def kinds(self) -> Ints:
        """Return the numbers given."""
        return self._kinds

    def definition(self) -> tuple[object, ...]:
        return self.space, self.answers, self.values.tobytes()

    def to_dict(self) -> dict[str, Any]:
        """Return the answer of every database, and the sizes of rows."""
        return {"values": self.values.tolist(), "sizes": list(self.space.sizes)}

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
            for x, other in self.space.neighbour_pairs()
        ]
        return pairs_of(np.concatenate([*codes, np.empty(0, np.int64)]), self.answers)

    def class_sizes(self) -> Ints:
        """Return the number of databases behind each answer."""
        return np.bincount(self.values, minlength=self.answers)

    def law(self, prior: Distribution) -> Floats:
        """Law of the answer."""
        masses = np.bincount(self.values, prior.probabilities(), minlength=self.answers)
        return np.asarray(masses, np.float64)

    def log_law(self, prior: Distribution) -> Floats | None:
        """Logs of the law of the answer if some probability may underflow."""
        logs = prior.logs_if_rare()
        if logs is None:
            return None
        totals = np.full(self.answers, -math.inf)
        np.logaddexp.at(totals, self.values, logs)
        return totals

    def surprise(self, prior: Distribution) -> Floats:
        """Sum of p(x) ln p(x) over the databases behind each answer."""
        own = surprise(prior.probabilities())
        return np.asarray(np.bincount(self.values, own, minlength=self.answers), np.float64)

    def prior(self, law: Floats) -> Distribution:
        """Return a prior on the first database of every answer."""
        pmf = np.zeros(self.space.size)
        seen, first = np.unique(self.values, return_index=True)
        pmf[first] = law[seen]
        return Dense.of(pmf, self.space)

    def candidates(self, k: int, outputs: int) -> list[Candidates]:
        """Return one entry for each group. For single bits any two databases will do."""
        sizes, seen = self.space.sizes, self.seen()
        if k == 1 and max(sizes) == 2 and len(seen) > 1:
            return [Candidates((), [(), ()], [seen, seen])]
        groups = list(unlike_groups(self._kinds, k))
        work = len(groups) * self.space.size
        check.fits(work, f"the list of all databases for all groups of {k} rows", "use fewer rows")
        problems = []
        for group in groups:
            shape = [sizes[i] for i in group]
            slices = [np.unique(line) for line in group_lines(self.values, sizes, group)]
            problems.append(Candidates(group, list(np.ndindex(*shape)), slices))
        return problems

    def database(self, group: Group, values: Group, answer: int) -> Ints:
        """Return the first database with the given values that has the given answer."""
        rows = self.space.rows(np.flatnonzero(self.values == answer))
        return np.asarray(rows[(rows[:, group] == values).all(axis=1)][0])

    def step(self, answer: int, other: int) -> tuple[Ints, Ints]:
        """Return the first two neighbours that have the given answers. Cost O(N n m)."""
        for x, moved in self.space.neighbour_pairs():
            places = np.flatnonzero((self.values[x] == answer) & (self.values[moved] == other))
            if len(places):
                break
        first, second = self.space.rows(np.array([x[places[0]], moved[places[0]]]))
        return first, second


def group_lines(values: Ints, sizes: tuple[int, ...], group: Group) -> Ints:
    """Return the answers of all databases, one line for each value of a group of rows."""
    shape = [sizes[i] for i in group]
    # One axis for each row of the group, and one for all rows between two of them.
    ends = zip((-1, *group), (*group, len(sizes)), strict=True)
    between = [math.prod(sizes[i + 1 : j]) for i, j in ends]
    split = [size for both in zip(between, shape, strict=False) for size in both]
    grid = values.reshape(*split, between[-1])
    moved = np.moveaxis(grid, range(1, 2 * len(group), 2), range(len(group)))
    return moved.reshape(math.prod(shape), -1)


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
    """Return values of a group by their total of ``steps[i][value]``, up to ``most`` of each."""
    by_total: dict[tuple[int, ...], list[Group]] = {(0,) * len(steps[0][0]): [()]}
    for row in steps:
        grown: dict[tuple[int, ...], list[Group]] = defaultdict(list)
        for total, tuples in by_total.items():
            for value, step in enumerate(row):
                kept = grown[tuple(a + b for a, b in zip(total, step, strict=True))]
                kept += [(*t, value) for t in tuples[: most - len(kept)]]
        by_total = grown
        number = sum(map(len, by_total.values()))
        check.fits(number, "the list of a group's values", "use a smaller group", _VALUES)
    return by_total


def binomials(n: int) -> Ints:
    """Return the binomial coefficients of n, at most ``MANY``."""
    counts = np.full(n + 1, MANY, dtype=np.int64)
    value = 1
    for k in range(n // 2 + 1):
        counts[k] = counts[n - k] = value
        value = value * (n - k) // (k + 1)
        if value >= MANY:
            break
    return counts
