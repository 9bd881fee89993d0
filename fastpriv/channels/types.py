"""Channels that see only how many rows hold which pair of values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check
from fastpriv._core.logs import log_ratio, round_up
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, Leakages
from fastpriv._matrices.pairs import Pairs, apart, apart_by
from fastpriv._sampling.sequential import Tree, alike, shuffle
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.types import Classes, Stack, Types, expand
from fastpriv.channels.base import AbstractChannel
from fastpriv.channels.dense import Channel
from fastpriv.channels.witnesses import FEW, laid_out, largest_ratio
from fastpriv.priors import Distribution, Exchangeable
from fastpriv.results import Witness
from fastpriv.spaces import Space

__all__ = ["TypeChannel"]


class TypeChannel(AbstractChannel):
    """A mechanism on n rows of m values that no permutation of the rows changes.

    p(y|x) depends only on how many rows hold value s in x and v in y. It is stored as one number
    per class of pairs, C(n + m^2 - 1, m^2 - 1) in all, so that a mechanism over 2^60 databases is
    some 40,000 numbers. Made by the programs of ``fastpriv.design``, not by hand.

    Parameters
    ----------
    types : Types
        The types of databases, all rows in one block.
    classes : list of Classes
        The classes of databases against an output of each type.
    entries : list of arrays
        p(y|x) for every class, for one output y of each type.
    """

    def __init__(self, types: Types, classes: list[Classes], entries: list[Floats]) -> None:
        (rows,), (m,) = types.blocks.rows, types.blocks.sizes
        self.space = self.output_space = Space.hamming(len(rows), m)
        self._types, self._classes, self._entries = types, classes, entries

    @cached_property
    def _stack(self) -> Stack:
        return Stack.of(self._types, self._classes)

    @cached_property
    def _entry(self) -> Floats:
        return np.concatenate(self._entries)

    @cached_property
    def _mass(self) -> Floats:
        """P(the output makes this class | x), for any x of the class's type."""
        return np.asarray(self._entry * np.exp(self._stack.log_outputs))

    def _type_weights(self, prior: Distribution) -> Floats | None:
        """Probability of each type under an exchangeable prior, None for others."""
        if not isinstance(prior, Exchangeable):
            return None
        return type_weights(self._types, prior)

    def _output_types(self, weights: Floats) -> Floats:
        """Law of the output's type, from that of the database's."""
        masses = weights[self._stack.row] * self._mass
        return np.asarray(np.bincount(self._stack.kind, masses), dtype=np.float64)

    def _row_kinds(self) -> Ints:
        return np.zeros(self.space.n, dtype=np.int64)

    def _plain(self) -> Channel:
        return Channel(self.matrix(), self.space)

    def matrix(self) -> Floats:
        """Return W[x, y] = p(y|x), an N x N array."""
        self._check_matrix()
        return expand(self._types, self._classes, self._entries)

    def _output(self, prior: Distribution) -> Distribution:
        weights = self._type_weights(prior)
        if weights is None:
            return self._plain()._output(prior)
        law = self._output_types(weights)
        table = np.zeros((self.space.n + 1,) * (len(self._types.counts[0][0]) - 1))
        for kind, chance in zip(self._types.counts, law, strict=True):
            table[kind[0][1:]] = chance
        return Exchangeable._trusted(table / table.sum())

    def neighbour_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over neighbours. Cost O(classes)."""
        return self._level(self._entry)

    def _level(self, entry: Floats) -> float:
        source, target = self._stack.source, self._stack.target
        seen = entry[source] > 0
        ratios = log_ratio(entry[source][seen], entry[target][seen])
        return round_up(float(ratios.max(initial=0.0)))

    def posterior_level(self, prior: Distribution) -> float:
        """Largest ln p(x|y)/p(x'|y) over neighbours. Cost O(classes)."""
        weights = self._type_weights(prior)
        if weights is None:
            return self._plain().posterior_level(prior)
        return self._level(self._joint(weights))

    def _joint(self, weights: Floats) -> Floats:
        """Entries times the chance of the database, up to a factor."""
        with np.errstate(divide="ignore"):
            logs = np.log(weights) - self._types.log_sizes
        return np.asarray(np.exp(logs - logs.max())[self._stack.row] * self._entry)

    def ruling_out(self) -> tuple[int, Ints]:
        """Count the outputs whose type some class cannot reach. Cost O(classes)."""
        types = [j for j, e in enumerate(self._entries) if e.max() > 0.0 and e.min() == 0.0]
        count = sum(self._types.size(j) for j in types)
        first = [np.repeat(np.arange(self.space.sizes[0]), self._types.counts[j][0]) for j in types]
        return count, np.array(first[:FEW], dtype=np.int64).reshape(-1, self.space.n)

    def step_witness(self, prior: Distribution | None = None) -> Witness:
        """Find what attains the neighbour or the posterior level. Cost O(classes)."""
        weights = None if prior is None else self._type_weights(prior)
        if prior is not None and weights is None:
            return super().step_witness(prior)
        entry = self._entry if weights is None else self._joint(weights)
        source, target = self._stack.source, self._stack.target
        at = largest_ratio(entry[source], entry[target])
        pairs = self._pair_counts(int(source[at]))
        moved = pairs - self._pair_counts(int(target[at]))
        x, y = laid_out(pairs)
        v, s = np.unravel_index(moved.argmax(), moved.shape)
        other = x.copy()
        other[np.flatnonzero((y == v) & (x == s))[0]] = moved[v].argmin()
        return Witness(y, x, other)

    def extreme_witness(self) -> Witness:
        """Find what attains the extreme level. Cost O(classes)."""
        most, least = (np.array([f(e) for e in self._entries]) for f in (np.max, np.min))
        j = largest_ratio(most, least)
        first, entry = int(self._stack.starts[j]), self._entries[j]
        x, y = laid_out(self._pair_counts(first + int(entry.argmax())))
        other, _ = laid_out(self._pair_counts(first + int(entry.argmin())))
        return Witness(y, x, other)

    def leakage_witness(self, prior: Distribution) -> Witness:
        """Find the output that leaks most, over types."""
        if not isinstance(prior, Exchangeable):
            return super().leakage_witness(prior)
        j = int(self._type_leakages(prior).above.argmax())
        entry = np.where(self._alive(prior)[self._classes[j].row], self._entries[j], -1.0)
        x, y = laid_out(self._pair_counts(int(self._stack.starts[j]) + int(entry.argmax())))
        return Witness(y, x)

    def neighbour_laws(self) -> Iterator[Pairs]:
        """Laws of the class of y and of its value in the row that moves, for every move.

        Cost O(classes); rounded apart.
        """
        stack = self._stack
        moves = stack.row[stack.source] * len(self._classes) + stack.row[stack.target]
        order = np.argsort(moves, kind="stable")
        count = np.exp(stack.log_outputs[stack.source]) * stack.share
        sides = np.stack([count * self._entry[stack.source], count * self._entry[stack.target]])
        for part in np.split(order, np.flatnonzero(np.diff(moves[order])) + 1):
            laws = np.ascontiguousarray(sides[:, part])
            yield from apart(laws, [(np.zeros(1, np.int64), np.ones(1, np.int64))], self.space.n)

    @property
    def laws_apart(self) -> float:
        """As ``apart`` rounds laws over classes."""
        return apart_by(len(self._entry), self.space.n)

    def _alive(self, prior: Exchangeable) -> NDArray[np.bool_]:
        """Which types of databases can occur."""
        logs = [prior._log_weights[kind[0][1:]] for kind in self._types.counts]
        return np.asarray(np.array(logs) > -math.inf)

    def _type_leakages(self, prior: Exchangeable) -> Leakages:
        """How far an output of each type moves the odds, from the laws of types."""
        weights = type_weights(self._types, prior)
        alive = self._alive(prior)
        law = self._output_types(weights) / np.exp(self._types.log_sizes)
        found = np.zeros((2, len(law)))
        for j, (classes, entry) in enumerate(zip(self._classes, self._entries, strict=True)):
            seen = entry[alive[classes.row]]
            # An output too rare for a double may leak any amount.
            if seen.max() > 0:
                rare = law[j] < TINY
                found[0, j] = math.inf if rare else max(0.0, math.log(seen.max() / law[j]))
                least = seen.min()
                known = least > 0.0 and not rare
                found[1, j] = max(0.0, math.log(law[j] / least)) if known else math.inf
        slack = (len(self._entry) + 8 * self.space.n + 64) * ULP
        return Leakages(*np.where(found > 0, found * (1 + slack) + slack, 0.0))

    def leakages(self, prior: Distribution) -> Leakages:
        """How far every output moves the odds, by its type."""
        if not isinstance(prior, Exchangeable):
            return self._plain().leakages(prior)
        return Leakages(*map(self._spread_out, self._type_leakages(prior)))

    def leakage_levels(self, prior: Distribution) -> tuple[float, float]:
        """Return the largest of each of the leakages, over types."""
        if not isinstance(prior, Exchangeable):
            return self._plain().leakage_levels(prior)
        return self._type_leakages(prior).largest()

    def leakage_at(self, prior: Distribution, y: Ints) -> float:
        """Pointwise maximal leakage of one output, by its type."""
        if not isinstance(prior, Exchangeable):
            return self._plain().leakage_at(prior, y)
        return float(self._type_leakages(prior).above[self._types.number(y[None])[0]])

    def extreme_level(self) -> float:
        """Largest ln W[x, y]/W[x', y] over all x, x' and outputs y. Cost O(classes)."""
        ends = [(entry.max(), entry.min()) for entry in self._entries if entry.max() > 0]
        most, least = np.array(ends).T
        return round_up(float(log_ratio(most, least).max()))

    def maximal_leakage(self) -> float:
        """Log of the sum of column maxima. Cost O(classes)."""
        tops = np.array([entry.max() for entry in self._entries])
        total = math.fsum(tops * np.exp(self._types.log_sizes))
        return round_up(max(0.0, math.log(total))) + (8 * self.space.n + 64) * ULP

    def _spread_out(self, per_type: Floats) -> Floats:
        """Turn a number per type into one per database."""
        check.fits(self.space.size, "a vector over databases", "ask for single rows")
        return per_type[self._types.number(self.space.rows(np.arange(self.space.size)))]

    def column_maxima(self) -> Floats:
        """Largest p(y|x) over x, for every output y."""
        return self._spread_out(np.array([entry.max() for entry in self._entries]))

    def column_minima(self) -> Floats:
        """Least p(y|x) over x, for every output y."""
        return self._spread_out(np.array([entry.min() for entry in self._entries]))

    def _sample(self, rows: Codes, source: Source) -> Codes:
        """Draw the class that output and database make, then any of its outputs alike."""
        found, kinds = np.empty(len(rows), dtype=np.int64), self._types.number(rows)
        for places in alike(kinds):
            members = np.flatnonzero(self._stack.row == kinds[places[0]])
            found[places] = members[self._tree(members).draws(len(places), source)]
        # In the order of the rows' values, the outputs due to the rows of one value lie together.
        values = np.empty(rows.shape, dtype=np.int64)
        ends = np.empty((len(rows), self._types.blocks.sizes[0]), dtype=np.int64)
        for places in alike(found):
            pairs = self._pair_counts(int(found[places[0]]))
            values[places] = np.repeat(np.tile(np.arange(len(pairs)), len(pairs)), pairs.T.ravel())
            ends[places] = np.cumsum(pairs.sum(axis=0))
        shuffle(values, ends, source)
        out = np.empty_like(rows)
        np.put_along_axis(out, np.argsort(rows, axis=1, kind="stable"), values, axis=1)
        return out

    def _tree(self, members: Ints) -> Tree:
        # The power of two keeps small entries exact, and cancels.
        return Tree(self._entry[members] * 2.0**500 * np.exp(self._stack.log_outputs[members]))

    def _pair_counts(self, number: int) -> Ints:
        """How many rows hold v in y and s in x, [v, s], for one of all classes."""
        j = int(self._stack.kind[number])
        first = int(self._stack.starts[j])
        return self._classes[j].pair_counts(number - first, self._types.blocks.sizes[0])

    def realised_level(self) -> float:
        """Bound the level of what is drawn: that of the entries, and two errors of some ulp.

        A class is drawn by at most 32 coins, each right to some ulp, and its outputs are equally
        likely without error. The classes' chances are divided by their sum, which is not quite 1.
        """
        totals = np.bincount(self._stack.row, self._mass)
        spread = math.log(totals.max() / totals.min())
        error = (16 * self.space.n + len(self._entry) + 512) * ULP
        return self.neighbour_level() + spread + 2.0 * error

    def __repr__(self) -> str:
        return f"TypeChannel(n={self.space.n}, m={self.space.m}, {len(self._entry)} classes)"


def type_weights(types: Types, prior: Exchangeable) -> Floats:
    """Probability of each type, all rows being in one block."""
    weights = prior.weights
    return np.array([weights[kind[0][1:]] for kind in types.counts])
