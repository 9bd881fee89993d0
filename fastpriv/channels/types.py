"""Channels that depend only on how many records hold which pair of values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY
from fastpriv._sampling.sequential import Tree, alike, shuffle
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.types import (
    Blocks,
    Classes,
    Stack,
    Types,
    classes_against,
    expand,
    types_of,
)
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.dense import Channel
from fastpriv.errors import InvalidInput, described
from fastpriv.priors import Distribution, Exchangeable
from fastpriv.priors.sums import log_score_law, score_law
from fastpriv.spaces import Space

__all__ = ["TypeChannel"]


class TypeChannel(AbstractChannel):
    """A mechanism on n records of m values that no permutation of the records changes.

    p(y|x) depends only on how many records hold value s in x and v in y. One number is stored per
    class of pairs, C(n + m^2 - 1, m^2 - 1) in all: some 40,000 numbers for 2^60 databases. The
    programs of ``fastpriv.design`` make it.

    Parameters
    ----------
    types : Types
        The types of databases, all records in one block.
    classes : list of Classes
        The classes of databases against an output of each type.
    entries : list of arrays
        p(y|x) for every class, for one output y of each type.
    """

    def __init__(self, types: Types, classes: list[Classes], entries: list[Floats]) -> None:
        (rows,), (m,) = types.blocks.rows, types.blocks.sizes
        self.space = self.output_space = Space.hamming(len(rows), m)
        self.types, self.classes, self.entries = types, classes, entries

    def definition(self) -> dict[str, Any]:
        return {"n": self.space.n, "m": self.space.m, "entries": self.entries}

    @classmethod
    def from_definition(cls, given: Mapping[str, Any]) -> TypeChannel:
        n, m = check.integer(given["n"], "n", 1), check.integer(given["m"], "m", 1)
        pairs = math.comb(n + m * m - 1, n)
        check.fits(pairs, "the classes of pairs", "use fewer records or values")
        types = types_of(Blocks.single(n, m))
        classes = [classes_against(kind, types) for kind in types.counts]
        entries = [check.floats(part, "entries", 1) for part in given["entries"]]
        if [len(part) for part in entries] != [len(part.row) for part in classes]:
            raise InvalidInput(
                "entries must hold a probability for each class of every output. Give one row "
                "for each type."
            )
        made = cls(types, classes, entries)
        for x in range(len(types.counts)):
            total = math.fsum(made.class_masses[made.all_classes.row == x])
            if abs(total - 1.0) > check.SUM_TOLERANCE:
                raise InvalidInput(
                    f"the distribution of the output given type {x} sums to {described(total)}, "
                    "not 1. Divide it by its sum."
                )
        return made

    @property
    def record_kinds(self) -> Ints:
        return np.zeros(self.space.n, dtype=np.int64)

    @cached_property
    def all_classes(self) -> Stack:
        """The classes against an output of each type, one after the other."""
        return Stack.of(self.types, self.classes)

    @cached_property
    def all_entries(self) -> Floats:
        """p(y|x) of each of these classes."""
        return np.concatenate(self.entries)

    @cached_property
    def class_masses(self) -> Floats:
        """P(the output makes this class | x), for any x of the class's type."""
        return np.asarray(self.all_entries * np.exp(self.all_classes.log_outputs))

    def type_weights(self, prior: Distribution) -> Floats | None:
        """Return the probability of each type under an exchangeable prior, None for others."""
        by_type = prior.by_type()
        return None if by_type is None else type_weights(self.types, by_type)

    def output_types(self, weights: Floats) -> Floats:
        """Return the distribution of the output's type, given weights of database types."""
        masses = weights[self.all_classes.row] * self.class_masses
        return np.asarray(np.bincount(self.all_classes.kind, masses), dtype=np.float64)

    def type_matrix(self) -> Floats:
        """Return the probabilities of the output's type, given a database of each type."""
        count = len(self.classes)
        places = self.all_classes.row * count + self.all_classes.kind
        chances = np.asarray(np.bincount(places, self.class_masses, count**2), dtype=np.float64)
        return chances.reshape(count, count)

    def by_overlap(self) -> Floats:
        """Return p(y|x) of bits for i ones in x, j in y and t in both, [i, j, t]."""
        table = np.zeros((self.space.n + 1,) * 3)
        for kind, classes, entry in zip(self.types.counts, self.classes, self.entries, strict=True):
            shared = classes.held(1, 2)[1]
            table[shared + classes.held(0, 2)[1], kind[0][1], shared] = entry
        return table

    def class_distribution(self, prior: Distribution, y: Ints) -> tuple[Floats, Floats | None]:
        """Return the distribution of the database's class for one output; logs if it underflows.

        A record adds (n + 1)^j to a sum, with a different j for each pair of values (v in y, s in
        x), except 0 for s = 0. The digits of the sum in base n + 1 count the pairs, so the sum
        determines the class. The cost is the cost of the distribution of this sum.
        """
        m, base = self.types.blocks.sizes[0], self.space.n + 1
        digits = np.zeros((m, m), dtype=object)
        digits[:, 1:] = base ** np.arange(m * (m - 1), dtype=object).reshape(m, m - 1)
        largest = sum(
            int(digits[v, -1]) * int(c) for v, c in enumerate(np.bincount(y, minlength=m))
        )
        check.fits(largest, "the table of classes", "use fewer records or values")
        classes = self.classes[int(self.types.number(y[None])[0])]
        scores = [row.astype(np.int64) for row in digits]
        places = sum(scores[v] @ classes.held(v, m) for v in range(m))
        logs = None
        if prior.log_smallest() <= math.log(TINY):
            logs = log_score_law(prior, scores, y)[places]
        return score_law(prior, scores, y)[places], logs

    def as_channel(self) -> Channel:
        return Channel(self.matrix(), self.space)

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array."""
        self.check_matrix_fits()
        return expand(self.types, self.classes, self.entries)

    def output_distribution(self, prior: Distribution) -> Distribution:
        weights = self.type_weights(prior)
        if weights is None:
            return self.as_channel().output_distribution(prior)
        law = self.output_types(weights)
        table = np.zeros((self.space.n + 1,) * (len(self.types.counts[0][0]) - 1))
        for kind, chance in zip(self.types.counts, law, strict=True):
            table[kind[0][1:]] = chance
        return Exchangeable.of(table / table.sum())

    def per_database(self, per_type: Floats) -> Floats:
        """Expand a number per type to a number per database."""
        check.fits(self.space.size, "a vector over databases", "ask for single rows")
        return per_type[self.types.number(self.space.rows(np.arange(self.space.size)))]

    def column_maxima(self) -> Floats:
        """Return the largest p(y|x) over x, for every output y."""
        return self.per_database(np.array([entry.max() for entry in self.entries]))

    def column_minima(self) -> Floats:
        """Return the smallest p(y|x) over x, for every output y."""
        return self.per_database(np.array([entry.min() for entry in self.entries]))

    def draw(self, rows: Codes, source: Source) -> Codes:
        """Draw the class of the pair of output and database, then one of its outputs uniformly."""
        drawn, kinds = np.empty(len(rows), dtype=np.int64), self.types.number(rows)
        for places in alike(kinds):
            members = np.flatnonzero(self.all_classes.row == kinds[places[0]])
            drawn[places] = members[self._tree(members).draws(len(places), source)]
        # Sorted by the records' values, the outputs of the records of one value are contiguous.
        values = np.empty(rows.shape, dtype=np.int64)
        ends = np.empty((len(rows), self.types.blocks.sizes[0]), dtype=np.int64)
        for places in alike(drawn):
            pairs = self.pair_counts(int(drawn[places[0]]))
            values[places] = np.repeat(np.tile(np.arange(len(pairs)), len(pairs)), pairs.T.ravel())
            ends[places] = np.cumsum(pairs.sum(axis=0))
        shuffle(values, ends, source)
        out = np.empty_like(rows)
        np.put_along_axis(out, np.argsort(rows, axis=1, kind="stable"), values, axis=1)
        return out

    def _tree(self, members: Ints) -> Tree:
        # The power of two keeps small entries exact, and cancels.
        return Tree(
            self.all_entries[members] * 2.0**500 * np.exp(self.all_classes.log_outputs[members])
        )

    def pair_counts(self, number: int) -> Ints:
        """Return how many records hold v in y and s in x, [v, s], for one class."""
        j = int(self.all_classes.kind[number])
        first = int(self.all_classes.starts[j])
        return self.classes[j].pair_counts(number - first, self.types.blocks.sizes[0])

    def __repr__(self) -> str:
        return f"TypeChannel(n={self.space.n}, m={self.space.m}, {len(self.all_entries)} classes)"


def type_weights(types: Types, prior: Exchangeable) -> Floats:
    """Return the probability of each type, all records being in one block."""
    weights = prior.weights
    return np.array([weights[kind[0][1:]] for kind in types.counts])


def log_type_weights(types: Types, prior: Exchangeable) -> Floats:
    """Return the log-probability of each type, finite even if it underflows."""
    return np.array([prior.log_weights[kind[0][1:]] for kind in types.counts])


def type_error(n: int) -> float:
    """Bound the relative error of sizes of classes, which come from logarithms, and of weights."""
    return roundoff(16 * n + 128)
