"""Queries: maps from databases to numbered answers.

This module has the protocol, queries given by a list of all databases, and sums and histograms,
which need no list. It also counts the databases with each answer, for each value of a group of
records.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, singledispatch
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.defined import runs
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, surprise
from fastpriv._structure.counts import log_binomials, log_multinomials
from fastpriv.priors import Dense, Distribution, Exchangeable, Product
from fastpriv.priors.sums import (
    Odds,
    group_odds,
    group_score_law,
    histogram_law,
    histogram_scores,
    largest_odds,
    log_histogram_law,
    log_row_score_law,
    log_score_law,
    row_score_laws,
    score_law,
    score_odds,
    score_surprise,
)
from fastpriv.spaces import Space

#: Numbers of databases are counted up to this limit.
MANY = 1 << 31
#: Most groups of records that are searched.
_GROUPS = 1 << 14
#: Most values of one group.
_VALUES = 1 << 12
Group = tuple[int, ...]
#: An array of answers or of probabilities.
Numbers = TypeVar("Numbers", Ints, Floats)
#: Most steps of a search for reachable sums.
_STEPS = 1 << 36
#: Probabilities of ones that count as zero.
_NEVER = 1e-150
#: The probabilities of zero and of one. Both are stored, as 1 - p may lose the digits of p.
Chance = tuple[float, float]
#: Entries of the distributions of a count that are computed at a time.
_BLOCK = 1 << 20
#: Answers, and the logarithms of the numbers of databases that have them.
Ways = tuple[Ints, Floats]


class Candidates(NamedTuple):
    """The possible output distributions for each value of a group of records.

    ``slices[j]`` lists rows of a table of output distributions, for the databases in which the
    group holds ``values[j]``. If any two different databases are allowed, ``group`` is empty.
    """

    group: tuple[int, ...]
    values: list[tuple[int, ...]]
    slices: list[Ints]


class Query(ABC):
    """A map from databases to answers 0 .. ``answers`` - 1."""

    space: Space
    answers: int
    #: Bound on the relative error of the distribution of the answer, in addition to the error of a
    #: sum over databases.
    law_error: float = 0.0

    @abstractmethod
    def of(self, rows: Ints) -> Ints:
        """Return the answers for databases of shape (k, n)."""

    def counts_bits(self) -> bool:
        """Whether the answer is known to be the number of bits that are set."""
        return False

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the definition of the query, as plain lists and numbers."""

    @abstractmethod
    def kinds(self) -> Ints:
        """Number the records so that records with equal numbers are interchangeable."""

    @abstractmethod
    def seen(self) -> Ints:
        """Return the answers that occur, in order."""

    @abstractmethod
    def neighbours(self) -> Ints:
        """Return the ordered pairs of different answers that neighbours have: (P, 2)."""

    @abstractmethod
    def class_sizes(self) -> Ints:
        """Return the number of databases with each answer, at most ``MANY``."""

    @abstractmethod
    def law(self, prior: Distribution) -> Floats:
        """Return the distribution of the answer."""

    @abstractmethod
    def log_law(self, prior: Distribution) -> Floats | None:
        """Return logs of the distribution of the answer if it may underflow, else None."""

    @abstractmethod
    def surprise(self, prior: Distribution) -> Floats:
        """Return the sum of p(x) ln p(x) over the databases with each answer."""

    def odds(self, prior: Distribution, k: int = 1) -> Odds | None:
        """Return the largest p(x)/p(x') by both answers, up to k records apart; None if listed."""
        return None

    def row_laws(self, prior: Distribution, rows: Ints) -> Iterator[Floats] | None:
        """Return joint distributions [v, answer] of records and answer; None if listed."""
        return None

    def log_row_law(self, prior: Distribution, i: int) -> Floats:
        """Return logs of the joint distribution [v, answer] of record i and the answer."""
        raise NotImplementedError

    def group_law(self, prior: Distribution, group: Sequence[int]) -> Floats:
        """Return the joint distribution [setting, answer] of a group of records and the answer.

        Settings of the group are in C order. The general algorithm lists the databases.
        """
        lines = group_lines(self.listed(), self.space.sizes, tuple(group))
        weights = group_lines(prior.probabilities(), self.space.sizes, tuple(group))
        laws = [np.bincount(a, p, self.answers) for a, p in zip(lines, weights, strict=True)]
        return np.asarray(np.stack(laws), np.float64)

    @abstractmethod
    def prior(self, law: Floats) -> Distribution:
        """Return a prior under which the answer has the given distribution."""

    @abstractmethod
    def candidates(self, k: int, outputs: int) -> list[Candidates]:
        """Return the answers that each value of a group of k records allows, one entry per group.

        Some optimal input distribution has at most as many databases as there are outputs. So of
        the values that allow the same answers, at most that many are listed.
        """

    @abstractmethod
    def database(self, group: Group, values: Group, answer: int) -> Ints:
        """Return a database with the given values of a group that has the given answer."""

    @abstractmethod
    def step(self, answer: int, other: int) -> tuple[Ints, Ints]:
        """Return two neighbours with the given answers, a pair of ``neighbours()``."""

    @abstractmethod
    def definition(self) -> tuple[object, ...]:
        """Return the data that two equal queries of one class have in common."""

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
            "use fewer records, or measures that a count, sum or histogram answers without it",
        )
        return self.of(self.space.rows(np.arange(self.space.size)))


class Listed(Query):
    """Answers given one by one, for every database of a space.

    Records with the same number in ``kinds`` are interchangeable. Default: no two records are.
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
        """Return the answer of every database, and the sizes of records."""
        return {"values": self.values.tolist(), "sizes": list(self.space.sizes)}

    def of(self, rows: Ints) -> Ints:
        """Return the answers for databases of shape (k, n)."""
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
        """Return the number of databases with each answer."""
        return np.bincount(self.values, minlength=self.answers)

    def law(self, prior: Distribution) -> Floats:
        """Return the distribution of the answer."""
        masses = np.bincount(self.values, prior.probabilities(), minlength=self.answers)
        return np.asarray(masses, np.float64)

    def log_law(self, prior: Distribution) -> Floats | None:
        """Return logs of the distribution of the answer if some probability may underflow."""
        logs = prior.logs_if_rare()
        if logs is None:
            return None
        totals = np.full(self.answers, -math.inf)
        np.logaddexp.at(totals, self.values, logs)
        return totals

    def surprise(self, prior: Distribution) -> Floats:
        """Return the sum of p(x) ln p(x) over the databases with each answer."""
        own = surprise(prior.probabilities())
        return np.asarray(np.bincount(self.values, own, minlength=self.answers), np.float64)

    def prior(self, law: Floats) -> Distribution:
        """Return a prior on the first database of every answer."""
        pmf = np.zeros(self.space.size)
        seen, first = np.unique(self.values, return_index=True)
        pmf[first] = law[seen]
        return Dense.of(pmf, self.space)

    def candidates(self, k: int, outputs: int) -> list[Candidates]:
        """Return one entry for each group. For single bits any two databases are allowed."""
        sizes, seen = self.space.sizes, self.seen()
        if k == 1 and max(sizes) == 2 and len(seen) > 1:
            return [Candidates((), [(), ()], [seen, seen])]
        groups = list(unlike_groups(self._kinds, k))
        work = len(groups) * self.space.size
        check.fits(
            work, f"the list of all databases for all groups of {k} rows", "use fewer records"
        )
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


def group_lines(values: Numbers, sizes: tuple[int, ...], group: Group) -> Numbers:
    """Return numbers of all databases, one line for each value of a group of records in order."""
    shape = [sizes[i] for i in group]
    # One axis for each record of the group, and one for all records between two of them.
    ends = zip((-1, *group), (*group, len(sizes)), strict=True)
    between = [math.prod(sizes[i + 1 : j]) for i, j in ends]
    split = [size for both in zip(between, shape, strict=False) for size in both]
    grid = values.reshape(*split, between[-1])
    moved = np.moveaxis(grid, range(1, 2 * len(group), 2), range(len(group)))
    lines: Numbers = moved.reshape(math.prod(shape), -1)
    return lines


def pairs_of(codes: Ints, answers: int) -> Ints:
    """Return pairs of different answers from codes ``first * answers + second``, each once."""
    pairs = np.stack(np.divmod(np.unique(codes), answers), axis=1)
    return np.ascontiguousarray(pairs[pairs[:, 0] != pairs[:, 1]], dtype=np.int64)


def unlike_groups(kinds: Ints, k: int) -> Iterator[Group]:
    """Yield one group of k records for each choice of how many records of each kind it has."""
    members = [np.flatnonzero(kinds == t).tolist() for t in np.unique(kinds)]
    number = math.comb(min(len(members) + k - 1, len(kinds)), k)
    check.fits(number, "the list of different groups", "use fewer records", _GROUPS)
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


class Sum(Query):
    """The sum of a score per record, ``scores[which[i]][x_i]``, integers of at least 0."""

    def __init__(self, scores: Sequence[Ints], which: Ints) -> None:
        self.scores, self.which = tuple(scores), which
        self.counts: list[int] = np.bincount(which, minlength=len(scores)).tolist()
        sizes: list[int] = np.array([len(s) for s in scores])[which].tolist()
        self.space = Space.of(tuple(sizes))
        tops = [int(s.max()) for s in scores]
        self.answers = sum(c * t for c, t in zip(self.counts, tops, strict=True)) + 1
        check.fits(self.answers, "the list of sums", "use smaller scores")
        self.law_error = _law_error(self.space)
        self._powers: dict[tuple[int, int], Ints] = {}

    def definition(self) -> tuple[object, ...]:
        return tuple(scores.tobytes() for scores in self.scores), self.which.tobytes()

    def to_dict(self) -> dict[str, Any]:
        """Return the scores, and the index of each record's scores."""
        return {"scores": [scores.tolist() for scores in self.scores], "rows": runs(self.which)}

    def of(self, rows: Ints) -> Ints:
        """Return the answers for databases of shape (k, n)."""
        total = np.zeros(len(rows), dtype=np.int64)
        for t, scores in enumerate(self.scores):
            # ``take`` reads a boolean array as numbers, while indexing would read it as a mask
            total += scores.take(rows[:, self.which == t]).sum(axis=1)
        return total

    def counts_bits(self) -> bool:
        """Whether the sum is the number of bits that are set."""
        return len(self.scores) == 1 and self.scores[0].tolist() == [0, 1]

    def kinds(self) -> Ints:
        """Number the records by their scores."""
        return self.which

    def _power(self, t: int, count: int) -> Ints:
        """Count the settings of ``count`` records of one kind by their sum, up to ``MANY``."""
        if self.scores[t].tolist() == [0, 1]:
            return binomials(count)
        key = t, count
        if key not in self._powers:
            top = int(self.scores[t].max())
            work = count * len(self.scores[t]) * (count * top + 1)
            check.fits(work, "the search for reachable sums", "use fewer records", _STEPS)
            ways = np.zeros(count * top + 1, dtype=np.int64)
            ways[0] = 1
            for done in range(count):
                last, ways[:] = ways[: done * top + 1].copy(), 0
                for score in self.scores[t]:
                    ways[score : score + len(last)] += last
                np.minimum(ways, MANY, out=ways)
            self._powers[key] = ways
        return self._powers[key]

    def _ways(self, parts: Sequence[tuple[int, int]]) -> Ints:
        """Count the settings of records of several kinds by their sum, up to ``MANY``."""
        ways = np.ones(1, dtype=np.int64)
        for t, count in parts:
            ways = np.minimum(_sumset(ways, self._power(t, count)), MANY)
        return ways

    def _others(self, group: Sequence[int]) -> list[tuple[int, int]]:
        """Return the number of records of each kind outside a group."""
        used = Counter(self.which[list(group)].tolist())
        return [(t, c - used[t]) for t, c in enumerate(self.counts) if c > used[t]]

    def sums_beside(self, group: Group) -> tuple[Ints, Ints]:
        """Return the sums that the records outside a group can have, and those of the group."""
        used = Counter(self.which[list(group)].tolist())
        rest = np.flatnonzero(self._ways(self._others(group)))
        return rest, np.flatnonzero(self._ways(list(used.items())))

    @cached_property
    def _all(self) -> Ints:
        return self._ways(self._others(()))

    def seen(self) -> Ints:
        """Return the sums that occur, in order."""
        return np.flatnonzero(self._all)

    def class_sizes(self) -> Ints:
        """Return the number of databases with each sum, at most ``MANY``."""
        return self._all

    def neighbours(self) -> Ints:
        """Return the pairs of sums that neighbours have, from the sums of the other records."""
        codes = [np.empty(0, np.int64)]
        for t, scores in enumerate(self.scores):
            rest = np.flatnonzero(self._ways(self._others([int(np.argmax(self.which == t))])))
            for s, other in itertools.permutations(np.unique(scores).tolist(), 2):
                codes.append((rest + s) * self.answers + rest + other)
        return pairs_of(np.concatenate(codes), self.answers)

    def law(self, prior: Distribution) -> Floats:
        """Return the distribution of the sum, in the prior's structure."""
        return score_law(prior, self.scores, self.which)

    def log_law(self, prior: Distribution) -> Floats | None:
        """Return logs of the distribution of the sum if some probability may underflow."""
        if prior.log_smallest() > math.log(TINY):
            return None
        return log_score_law(prior, self.scores, self.which)

    def surprise(self, prior: Distribution) -> Floats:
        """Return the sum of p(x) ln p(x) over the databases with each sum."""
        return score_surprise(prior, self.scores, self.which)

    def odds(self, prior: Distribution, k: int = 1) -> Odds | None:
        """Return the largest p(x)/p(x') by both sums, in the prior's structure."""
        chunks = _odds(prior, self.scores, self.which, k)
        return None if chunks is None else largest_odds(chunks, self.answers)

    def row_laws(self, prior: Distribution, rows: Ints) -> Iterator[Floats]:
        """Return joint distributions [v, sum] of each of some records and the sum."""
        return row_score_laws(prior, self.scores, self.which, rows)

    def log_row_law(self, prior: Distribution, i: int) -> Floats:
        """Return logs of the joint distribution [v, sum] of record i and the sum."""
        return log_row_score_law(prior, self.scores, self.which, i)

    def group_law(self, prior: Distribution, group: Sequence[int]) -> Floats:
        """Return the joint distribution [setting, sum] of a group of records and the sum."""
        return group_score_law(prior, self.scores, self.which, group)

    def prior(self, law: Floats) -> Distribution:
        """Return a prior with that distribution of the sum: exchangeable bits for a count."""
        if self.counts_bits():
            return Exchangeable.of(law)
        return Listed(self.listed(), self.space, self.answers).prior(law)

    def candidates(self, k: int, outputs: int) -> list[Candidates]:
        """Return one entry for each choice of kinds of records, with the sums of the other records.

        For single bits of several kinds any two sums are allowed.
        """
        if k == 1 and max(self.space.sizes) == 2 and len(self.scores) > 1 < len(self.seen()):
            return [Candidates((), [(), ()], [self.seen()] * 2)]
        problems = []
        for group in unlike_groups(self.which, k):
            rest = np.flatnonzero(self._ways(self._others(group)))
            steps = [[(int(s),) for s in self.scores[self.which[i]]] for i in group]
            values, slices = [], []
            for (total,), tuples in values_by_total(steps, min(len(rest), outputs)).items():
                values += tuples
                slices += [rest + total] * len(tuples)
            problems.append(Candidates(group, values, slices))
        return problems

    def database(self, group: Group, values: Group, answer: int) -> Ints:
        """Return a database with the given values and sum, by halving the other records."""
        database = np.empty(self.space.n, dtype=np.int64)
        database[list(group)] = values
        answer -= sum(
            int(self.scores[self.which[i]][v]) for i, v in zip(group, values, strict=True)
        )
        free = np.setdiff1d(np.arange(self.space.n), group)
        for t, chosen in self._split(self._others(group), answer):
            database[free[self.which[free] == t]] = chosen
        return database

    def step(self, answer: int, other: int) -> tuple[Ints, Ints]:
        """Return neighbours with the given sums. They differ in a record of a suitable kind."""
        for t, scores in enumerate(self.scores):
            i = int(np.argmax(self.which == t))
            rest = self._ways(self._others([i]))
            for s, moved in zip(
                *np.nonzero(scores[:, None] - scores == answer - other), strict=True
            ):
                left = answer - int(scores[s])
                if 0 <= left < len(rest) and rest[left]:
                    first = self.database((i,), (int(s),), answer)
                    second = first.copy()
                    second[i] = moved
                    return first, second
        raise AssertionError(f"no neighbours have sums {answer} and {other}")

    def _split(self, parts: list[tuple[int, int]], total: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the values of all records of each kind, so that the scores add up to a total."""
        for j, (t, count) in enumerate(parts):
            own = _meeting(self._power(t, count), self._ways(parts[j + 1 :]), total)
            yield t, self._values(t, count, own)
            total -= own

    def _values(self, t: int, count: int, total: int) -> list[int]:
        """Return values of ``count`` records of one kind whose scores add up to a total."""
        if count == 1:
            return [int(np.flatnonzero(self.scores[t] == total)[0])]
        half = count // 2
        first = _meeting(self._power(t, half), self._power(t, count - half), total)
        return self._values(t, half, first) + self._values(t, count - half, total - first)


class Histogram(Query):
    """The number of n records that hold each of m values.

    Answers are numbered in C order of (c_1, ..., c_(m-1)), where c_v records hold value v, over all
    such counts of sum at most n. This is the order of an exchangeable prior's weights.
    """

    def __init__(self, n: int, m: int) -> None:
        self.space = Space.hamming(n, m)
        self.law_error = _law_error(self.space)
        check.fits((n + 1) ** (m - 1), "the table of histograms", "use fewer records or values")
        axes = np.indices((n + 1,) * (m - 1)).reshape(m - 1, (n + 1) ** (m - 1))
        inside = axes.sum(axis=0) <= n
        self.counts = np.concatenate([n - axes.sum(axis=0)[None], axes])[:, inside].T
        self.answers = len(self.counts)
        self._place = np.full(len(inside), -1, dtype=np.int64)
        self._place[inside] = np.arange(self.answers)

    def definition(self) -> tuple[object, ...]:
        return (self.space,)

    def to_dict(self) -> dict[str, Any]:
        """Return the number of records and of values."""
        return {"n": self.space.n, "m": self.space.m}

    def counts_bits(self) -> bool:
        """Whether records are bits, so that the histogram is the number of bits that are set."""
        return self.space.sizes[0] == 2

    def kinds(self) -> Ints:
        """Return equal numbers: all records are interchangeable."""
        return np.zeros(self.space.n, dtype=np.int64)

    def _number(self, counts: Ints) -> Ints:
        """Return the answers for counts (..., m)."""
        base = (self.space.n + 1) ** np.arange(counts.shape[-1] - 1)[::-1]
        return np.asarray(self._place[counts[..., 1:] @ base])

    def of(self, rows: Ints) -> Ints:
        """Return the answers for databases of shape (k, n)."""
        values = range(self.counts.shape[1])
        return self._number(np.stack([(rows == v).sum(axis=1) for v in values], axis=-1))

    def seen(self) -> Ints:
        """Return all answers."""
        return np.arange(self.answers)

    def neighbours(self) -> Ints:
        """Return the pairs of histograms with one record moved from one value to another."""
        codes = [np.empty(0, np.int64)]
        unit = np.eye(self.counts.shape[1], dtype=np.int64)
        for s, t in itertools.permutations(range(len(unit)), 2):
            holds = np.flatnonzero(self.counts[:, s])
            moved = self._number(self.counts[holds] - unit[s] + unit[t])
            codes.append(holds * self.answers + moved)
        return pairs_of(np.concatenate(codes), self.answers)

    def class_sizes(self) -> Ints:
        """Return the multinomial coefficients, at most ``MANY``."""
        logs = log_multinomials(self.counts, axis=1)
        return np.asarray(np.rint(np.exp(np.minimum(logs, math.log(MANY)))), dtype=np.int64)

    def law(self, prior: Distribution) -> Floats:
        """Return the distribution of the histogram, in the prior's structure."""
        return np.asarray(histogram_law(prior)[self._place >= 0])

    def log_law(self, prior: Distribution) -> Floats | None:
        """Return logs of the distribution of the histogram if some probability may underflow."""
        if prior.log_smallest() > math.log(TINY):
            return None
        return np.asarray(log_histogram_law(prior)[self._place >= 0])

    def surprise(self, prior: Distribution) -> Floats:
        """Return the sum of p(x) ln p(x) over the databases with each histogram."""
        scores = histogram_scores(prior)
        return self._inside(score_surprise(prior, [scores], self.kinds()))

    def odds(self, prior: Distribution, k: int = 1) -> Odds | None:
        """Return the largest p(x)/p(x') by both histograms."""
        chunks = _odds(prior, [histogram_scores(prior)], self.kinds(), k)
        if chunks is None:
            return None
        numbered = (
            c._replace(first=self._place[c.first], second=self._place[c.second]) for c in chunks
        )
        return largest_odds(numbered, self.answers)

    def row_laws(self, prior: Distribution, rows: Ints) -> Iterator[Floats]:
        """Return joint distributions [v, histogram] of some records and the histogram."""
        for law in row_score_laws(prior, [histogram_scores(prior)], self.kinds(), rows):
            yield self._inside(law)

    def log_row_law(self, prior: Distribution, i: int) -> Floats:
        """Return logs of the joint distribution [v, histogram] of record i and the histogram."""
        return self._inside(log_row_score_law(prior, [histogram_scores(prior)], self.kinds(), i))

    def group_law(self, prior: Distribution, group: Sequence[int]) -> Floats:
        """Return the joint distribution [setting, histogram] of a group and the histogram."""
        law = group_score_law(prior, [histogram_scores(prior)], self.kinds(), group)
        return self._inside(np.pad(law, ((0, 0), (0, len(self._place) - law.shape[1]))))

    def _inside(self, per_sum: Floats) -> Floats:
        """Turn numbers by the sum of digits [..., sum] into numbers by histogram."""
        return np.asarray(per_sum[..., np.flatnonzero(self._place >= 0)])

    def prior(self, law: Floats) -> Distribution:
        """Return an exchangeable prior with that distribution of the histogram."""
        m = self.counts.shape[1]
        if m == 1:
            return Dense.of(np.ones(1), self.space)
        weights = np.zeros(len(self._place))
        weights[self._place >= 0] = law
        return Exchangeable.of(weights.reshape((self.space.n + 1,) * (m - 1)))

    def candidates(self, k: int, outputs: int) -> list[Candidates]:
        """Return one entry, since all records are interchangeable."""
        m = self.counts.shape[1]
        unit = [tuple(row) for row in np.eye(m, dtype=np.int64).tolist()]
        most = min(math.comb(self.space.n - k + m - 1, m - 1), outputs)
        values, slices = [], []
        for held, tuples in values_by_total([unit] * k, most).items():
            values += tuples
            slices += [np.flatnonzero((self.counts >= held).all(axis=1))] * len(tuples)
        return [Candidates(tuple(range(k)), values, slices)]

    def database(self, group: Group, values: Group, answer: int) -> Ints:
        """Return the database whose records outside the group are in order of their values."""
        held = np.bincount(values, minlength=self.counts.shape[1])
        database = np.empty(self.space.n, dtype=np.int64)
        database[list(group)] = values
        free = np.setdiff1d(np.arange(self.space.n), group)
        database[free] = np.repeat(np.arange(len(held)), self.counts[answer] - held)
        return database

    def step(self, answer: int, other: int) -> tuple[Ints, Ints]:
        """Return neighbours with the given histograms: record 0 changes its value."""
        moved = self.counts[answer] - self.counts[other]
        first = self.database((0,), (int(moved.argmax()),), answer)
        second = first.copy()
        second[0] = moved.argmin()
        return first, second


def _odds(
    prior: Distribution, scores: Sequence[Ints], which: Ints, k: int
) -> Iterable[Odds] | None:
    """Return the largest p(x)/p(x') by both sums of scores, if up to k records differ."""
    if k == 1:
        return score_odds(prior, scores, which)
    return group_odds(prior, scores, which, k)


def chances_from(c: float) -> tuple[Chance, Chance]:
    """Return the distributions of a bit that is one with probability c, and with 1 - c."""
    return (1.0 - c, c), (c, 1.0 - c)


def chance_of(p: float, c: float) -> Chance:
    """Return the distribution of a bit that is one with probability p, in c .. 1 - c exactly."""
    return (c, p) if p == 1.0 - c else (1.0 - p, p)


def corner_laws(n: int, low: Chance, high: Chance) -> Iterator[Floats]:
    """Yield distributions of the number of ones among n bits of the kinds ``low`` and ``high``.

    There is one distribution for every number of bits with the distribution ``high``, in blocks.
    The relative error is at most ``corner_error(n, low, high)``. Probabilities that underflow are
    0. Cost O(n^2).
    """
    logs = log_binomials(n)
    block = max(1, _BLOCK // (n + 1))
    for start in range(0, n + 1, block):
        stop = min(start + block, n + 1)
        laws = [_corner(logs, k, low, high) for k in range(start, stop)]
        yield np.exp(np.stack(laws) + logs)


def _corner(logs: Floats, k: int, low: Chance, high: Chance) -> Floats:
    """Return ln of P(number of ones)/C(n, number), for k bits with the distribution ``high``.

    ``logs`` has ln C(n, number). Bits that are certain shift the number by their ones. If both
    probabilities are so small that their product underflows, bits count as certain.
    """
    from fastpriv.kernels import binomial_product

    n = len(logs) - 1
    ones = (n - k) * (low[0] <= _NEVER) + k * (high[0] <= _NEVER)
    parts = ((n - k, low), (k, high))
    open_bits = [(count, bit) for count, bit in parts if count and min(bit) > _NEVER]
    (n1, (q1, p1)), (n2, (q2, p2)) = [*open_bits, (0, (0.5, 0.5)), (0, (0.5, 0.5))][:2]
    stop = ones + n1 + n2
    first = n1 * _log(q1, p1) + n2 * _log(q2, p2) - float(logs[ones])
    last = n1 * _log(p1, q1) + n2 * _log(p2, q2) - float(logs[stop])
    law = np.full(n + 1, -math.inf)
    law[ones : stop + 1] = binomial_product(n1, q1, p1, n2, q2, p2, n, ones, first, last)
    return law


def _log(p: float, rest: float) -> float:
    """Return ln p, from 1 - p if that is the smaller one."""
    return math.log1p(-rest) if rest < p else math.log(p)


def corner_error(n: int, low: Chance, high: Chance) -> float:
    """Bound on the relative error of ``corner_laws`` and of a mean under one."""
    chances = (p for p in (*low, *high) if p > _NEVER)
    return roundoff(32 * n + 64) * (1.0 - math.log(min(chances)))


def _law_error(space: Space) -> float:
    """Bound the relative error of products of n probabilities and sums over record values."""
    return roundoff(space.n * (max(space.sizes) + 2) + 16)


def _sumset(a: Ints, b: Ints) -> Ints:
    """Convolve two arrays of counts, up to ``MANY``. Cost O(length) for each positive entry."""
    if len(a) > len(b):
        a, b = b, a
    out = np.zeros(len(a) + len(b) - 1, dtype=np.int64)
    for shift in np.flatnonzero(a).tolist():
        out[shift : shift + len(b)] = np.minimum(out[shift : shift + len(b)] + a[shift] * b, MANY)
    return out


def _meeting(a: Ints, b: Ints, total: int) -> int:
    """Return some u with a[u] > 0 and b[total - u] > 0."""
    low, high = max(0, total - len(b) + 1), min(len(a) - 1, total)
    both = (a[low : high + 1] > 0) & (b[total - high : total - low + 1][::-1] > 0)
    return low + int(both.argmax())


@singledispatch
def slice_ways(query: Query, i: int) -> list[Ways]:
    """Return, for each value of record i, the possible answers and the log of their counts.

    Counts are numbers of databases. Their logs have an error of at most ``ways_error``. The general
    algorithm lists all databases.
    """
    listed = Listed(query.listed(), query.space, query.answers)
    return slice_ways(listed, i)


@slice_ways.register
def _listed_slice_ways(query: Listed, i: int) -> list[Ways]:
    """Count the databases that are listed. Cost O(N)."""
    sizes, inner = query.space.sizes, int(query.space.strides[i])
    blocks = np.swapaxes(query.values.reshape(-1, sizes[i], inner), 0, 1).reshape(sizes[i], -1)
    told = [np.unique(block, return_counts=True) for block in blocks]
    return [(answers, np.log(number)) for answers, number in told]


@slice_ways.register
def _sum_slice_ways(query: Sum, i: int) -> list[Ways]:
    """Convolve the scores of the other records. Cost O(n) for bits of one kind, else O(n sums)."""
    which = np.delete(query.which, i)
    if len(which):
        even = [np.full(len(scores), 1.0 / len(scores)) for scores in query.scores]
        logs = log_score_law(Product.of(even, which), query.scores, which)
        logs = logs + math.fsum(math.log(len(query.scores[t])) for t in which.tolist())
    else:
        logs = np.zeros(1)
    rest = np.flatnonzero(logs > -math.inf)
    return [(rest + score, logs[rest]) for score in query.scores[query.which[i]].tolist()]


@slice_ways.register
def _histogram_slice_ways(query: Histogram, i: int) -> list[Ways]:
    """Return the multinomial coefficients of the other records. Cost O(m) for each answer."""
    ways = []
    for value in range(query.counts.shape[1]):
        answers = np.flatnonzero(query.counts[:, value])
        rest = query.counts[answers].astype(np.float64)
        rest[:, value] -= 1.0
        ways.append((answers, log_multinomials(rest, axis=1)))
    return ways


@singledispatch
def group_ways(query: Query, group: tuple[int, ...]) -> list[Ways]:
    """Return, for each value of a group of records, the possible answers and their counts.

    Values are in C order. The general algorithm lists all databases.
    """
    lines = group_lines(query.listed(), query.space.sizes, group)
    told = [np.unique(line, return_counts=True) for line in lines]
    return [(answers, np.log(number)) for answers, number in told]


@group_ways.register
def _sum_group_ways(query: Sum, group: tuple[int, ...]) -> list[Ways]:
    """Convolve the scores of the records outside the group."""
    which = np.delete(query.which, group)
    logs = np.zeros(1)
    if len(which):
        even = [np.full(len(scores), 1.0 / len(scores)) for scores in query.scores]
        logs = log_score_law(Product.of(even, which), query.scores, which)
        logs = logs + math.fsum(math.log(len(query.scores[t])) for t in which.tolist())
    rest = np.flatnonzero(logs > -math.inf)
    scores = [query.scores[query.which[i]].tolist() for i in group]
    return [(rest + sum(values), logs[rest]) for values in itertools.product(*scores)]


def ways_error(query: Query) -> float:
    """Bound the error of the logarithms of ``slice_ways``."""
    n = query.space.n
    return roundoff(64.0) * (n + 4.0) * (math.log(n + 2.0) + math.log(max(query.space.sizes)))
