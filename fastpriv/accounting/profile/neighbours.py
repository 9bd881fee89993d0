"""Losses of pairs of neighbours of channels: what is attained."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product, zip_longest

import numpy as np

from fastpriv._core.rounding import NORMAL, roundoff
from fastpriv._core.validation import Floats
from fastpriv._matrices.ratios import Pairs, all_pairs, apart_by
from fastpriv._structure.rows import RowKernels
from fastpriv.accounting.profile.discrete import (
    DiscreteLosses,
    Error,
    Releases,
    pair_measure,
)
from fastpriv.accounting.profile.engines.lattice import TINY
from fastpriv.accounting.profile.steps.finite import CHUNK, FiniteStep, Source
from fastpriv.channels import AbstractChannel
from fastpriv.errors import TooLarge
from fastpriv.measures.approximate_dp import laws_apart, laws_lost, neighbour_laws, response
from fastpriv.spaces import Space

# What neighbours really attain when releases are composed: bounds from below.
#
# A curve is set by the worst pair of neighbours at every epsilon; after many releases no single
# pair need reach the composition of that envelope. What a pair of databases does attain is the
# composition of its own two laws, in one order and the same pair in every release. Any pair gives
# a lower bound, so that a few which are hard to tell apart from the best will do.


#: Orders, in units of one over the largest loss, whose Renyi divergences pick pairs.
_ORDERS = np.array([1e-3, 0.1, 1.0, 10.0, 100.0])
#: So few pairs of neighbours are all tried.
_FEW = 12
#: Most values of a row whose kernels find the common pairs of channels of different kinds.
_VALUES = 1 << 10
#: Most entries of a matrix through which channels of different kinds find their common pairs.
_MATRIX = 1 << 16
#: Numbers that differ by this share or more have other digits.
ALIKE = 2.0**-39
#: Stands for the logarithm of no probability at all.
_NEVER = -1e300

#: Kinds of releases, and how often each was made.
Kinds = Sequence[tuple[FiniteStep, int]]
#: Distributions of the first and of the second database, and their errors, for every kind.
Site = list[tuple[Floats, Floats, Error]]


def attained(parts: Mapping[FiniteStep, int]) -> list[Releases]:
    """Releases that some neighbours attain together, or a part of them: each a lower bound."""
    if sum(parts.values()) == 1:
        return [[(atom.lower, 1) for atom in parts]]
    # One release alone is known to the last digit.
    alone = {atom.key: [(atom.lower, 1)] for atom in parts if not atom.free}
    return [*common(parts), *alone.values()]


def common(parts: Mapping[FiniteStep, int]) -> list[Releases]:
    """Releases of one pair of neighbours each: what they attain together with anything else."""
    free: list[tuple[DiscreteLosses, int]] = []
    spaces: dict[Space, list[tuple[FiniteStep, int]]] = {}
    for atom, count in parts.items():
        if atom.free:
            free.append((atom.lower, count))
        elif atom.source is not None:
            spaces.setdefault(atom.source.channel.space, []).append((atom, count))
    result = [_best(kinds) for kinds in spaces.values()]
    # Neighbours of different spaces are chosen freely: the first with the first, and so on.
    firsts = [each[0] for each in result]
    together = [
        [*free, *chain.from_iterable(one or first for one, first in zip(row, firsts, strict=True))]
        for row in zip_longest(*result)
    ]
    found_together: list[Releases] = [*together] if together else [free]
    return found_together


def _best(kinds: Kinds) -> list[Releases]:
    """Pairs of neighbours that are hard to beat, as what they attain in all kinds together."""
    if all(atom.is_response for atom, _ in kinds):  # the row with the fewest values is worst in all
        return [[(atom.lower, count) for atom, count in kinds]]
    sites = _sites([atom.source for atom, _ in kinds if atom.source is not None])
    if sites is None:  # each kind by itself
        return list(chain.from_iterable(_best([kind]) for kind in kinds))
    orders = _ORDERS / max(max(atom.upper.top for atom, _ in kinds), TINY)
    picked = _Picked(len(orders) + 1)
    for groups, errors in sites:
        step = max(1, CHUNK // max(laws.shape[1] for laws, _ in groups))
        for start in range(0, len(groups[0][1]), step):
            some = [(laws, pairs[start : start + step]) for laws, pairs in groups]
            scores = np.zeros((len(orders) + 1, len(some[0][1])))
            with np.errstate(over="ignore", invalid="ignore"):  # what is picked is up to taste
                for (_, count), each in zip(kinds, some, strict=True):
                    scores += float(count) * _scores(*each, orders)
            picked.add(scores, some, errors)
    result = {}
    for site in picked.sites():
        same: dict[bytes, tuple[DiscreteLosses, int]] = {}  # channels that are equal were two kinds
        for (first, second, error), (_, count) in zip(site, kinds, strict=True):
            key = np.concatenate([first, second, error]).tobytes()
            before = same.get(key, (pair_measure(first, second, error), 0))
            same[key] = before[0], before[1] + count
        releases = list(same.values())
        result[tuple((digits(measure), count) for measure, count in releases)] = releases
    return list(result.values())


def digits(measure: DiscreteLosses) -> bytes:
    """The same for pairs of distributions that differ by rounding and the order of outputs only.

    Numbers with the same digits differ by less than ``ALIKE`` of them.
    """
    numbers = [*measure.losses, *np.exp(measure.logs), measure.shift, measure.infinite]
    parts, powers = np.frexp(np.array(numbers, dtype=np.float64))
    return np.stack([np.round(parts / ALIKE), powers]).tobytes()


class _Picked:
    """The best pair for every score, and the first few."""

    def __init__(self, scores: int) -> None:
        self._values = np.full(scores, -math.inf)
        self._best: list[Site] = [[]] * scores
        self._first: list[Site] = []
        self._seen = 0

    def add(self, scores: Floats, groups: Sequence[Pairs], errors: Sequence[Error]) -> None:
        """Look at pairs with scores (orders, pairs)."""

        def site(j: int) -> Site:
            picked = [(laws[pairs[j, 0]], laws[pairs[j, 1]]) for laws, pairs in groups]
            return [(p, q, error) for (p, q), error in zip(picked, errors, strict=True)]

        if self._seen <= _FEW:
            self._first += [site(j) for j in range(min(scores.shape[1], _FEW))]
        self._seen += scores.shape[1]
        for i, j in enumerate(scores.argmax(axis=1).tolist()):
            if scores[i, j] > self._values[i] or not self._best[i]:
                self._values[i], self._best[i] = scores[i, j], site(j)

    def sites(self) -> list[Site]:
        """All pairs where they are few, else the best."""
        return [site for site in self._best if site] + self._first * (self._seen <= _FEW)


def _scores(laws: Floats, pairs: np.ndarray, orders: Floats) -> Floats:
    """Log-moments of the finite losses of pairs for some orders, and of the infinite ones."""
    first, second = laws[pairs[:, 0]], laws[pairs[:, 1]]
    seen = (first > 0.0) & (second > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(seen, np.log(first), -math.inf)
        losses = np.where(seen, logs - np.log(second), 0.0)
        lost = -np.log1p(-np.minimum(np.where(second > 0.0, 0.0, first).sum(axis=1), 1.0))
    result = []
    for s in orders.tolist():
        tilted = logs + s * losses
        most = np.maximum(tilted.max(axis=1, keepdims=True), _NEVER)
        result.append(most[:, 0] + np.log(np.maximum(np.exp(tilted - most).sum(axis=1), TINY)))
    return np.stack([*result, lost])


def _sites(sources: Sequence[Source]) -> Iterator[tuple[list[Pairs], list[Error]]] | None:
    """Laws and errors of the same pairs of neighbours for every kind; None where unknown."""
    channels = [source.channel for source in sources]
    slacks = [source.slack for source in sources]
    if len(channels) == 1:
        error = laws_apart(channels[0]) + slacks[0], laws_lost(channels[0])
        return (([group], [error]) for group in neighbour_laws(channels[0]))
    space = channels[0].space
    rows = [kernels for channel in channels if (kernels := channel.kernels) is not None]
    if len(rows) == len(channels) and max(k.shape[0] for r in rows for k in r.distinct) <= _VALUES:
        errors = [_error(*each, 1) for each in zip(channels, slacks, strict=True)]
        return ((groups, errors) for groups in _by_rows(rows))
    if all(space.size * channel.output_count <= _MATRIX for channel in channels):
        errors = [_error(*each, space.n) for each in zip(channels, slacks, strict=True)]
        return ((groups, errors) for groups in _by_matrices(channels, space))
    return None


def _error(channel: AbstractChannel, slack: float, n: int) -> Error:
    """Errors of a matrix whose entries are products of n given or computed probabilities."""
    given = laws_apart(channel) == 0.0 and response(channel) is None
    if not given:
        computed = max(apart_by(channel.output_count, n), laws_apart(channel))
        return computed + slack, 2.0 * NORMAL
    rows = channel.kernels if n > 1 else None
    lost = rows is not None and math.prod(_least(k.matrix) for k in rows) < NORMAL
    return roundoff(2.0) * (n - 1) + slack, 2.0 * NORMAL if lost else 0.0


def _least(matrix: Floats) -> float:
    """Smallest positive entry."""
    return float(matrix[matrix > 0.0].min())


def _by_rows(kernels: Sequence[RowKernels]) -> Iterator[list[Pairs]]:
    """Pairs of values of one row, for every combination of kernels that some row has."""
    kind = np.zeros(len(kernels[0]), dtype=np.int64)
    for rows in kernels:
        kind = np.unique(kind * len(rows.distinct) + rows.assignment, return_inverse=True)[1]
    for i in np.unique(kind, return_index=True)[1].tolist():
        for groups in zip(*(all_pairs(rows[i].matrix) for rows in kernels), strict=True):
            yield list(groups)


def _by_matrices(channels: Sequence[AbstractChannel], space: Space) -> Iterator[list[Pairs]]:
    """All pairs of neighbours, through matrices."""
    matrices = [np.array(channel.nearest_matrix(), order="C") for channel in channels]
    for x, other in space.neighbour_pairs():
        pairs = np.stack([x, other], axis=1)
        yield [(matrix, pairs) for matrix in matrices]


# Fixed mechanisms on one database: the worst pair of neighbours, the same in every release.
#
# Where later mechanisms are chosen after earlier outputs, the pair that is worst may change with
# what came out, and the envelope of all pairs is composed. Where the mechanisms are fixed
# beforehand, two neighbouring databases stay the same two in all releases: the composed curve is
# the largest, over pairs and both orders, of the composition of each pair's own distributions.


#: Most pairs of neighbours, in all spaces together, that are composed one by one.
_PAIRS = 1 << 12
#: Losses that are joined are moved by at most this share of the largest.
_JOINED = 2.0**-38

#: What one pair of neighbours attains, from below and from above, and how often.
Fixed = list[tuple[DiscreteLosses, DiscreteLosses, int]]


def ordered_pairs(parts: Mapping[FiniteStep, int]) -> list[tuple[Fixed, Fixed]]:
    """Return what each pair of neighbours attains in one order, and in the other."""
    free: Fixed = []
    spaces: dict[Space, list[tuple[FiniteStep, int]]] = {}
    for atom, count in parts.items():
        if atom.free:
            free.append((atom.lower, atom.upper, count))
        elif atom.source is not None:
            spaces.setdefault(atom.source.channel.space, []).append((atom, count))
    result = []
    for kinds in spaces.values():
        if all(atom.is_response for atom, _ in kinds):  # the row with the fewest values is worst
            free += [(atom.lower, atom.upper, count) for atom, count in kinds]
        else:
            result.append(list(_pairs(kinds).values()))
    if math.prod(map(len, result)) > _PAIRS:
        raise _too_many()

    def together(chosen: Sequence[tuple[Fixed, Fixed]], order: int) -> Fixed:
        return [*free, *(one for each in chosen for one in each[order])]

    # Neighbours of different spaces are chosen freely.
    return [(together(chosen, 0), together(chosen, 1)) for chosen in product(*result)]


def _too_many() -> TooLarge:
    return TooLarge(
        f"there are more than {_PAIRS:,} pairs of neighbours to compose one by one; ask for the "
        "guarantee that survives adaptive choice, adaptive=True"
    )


def _pairs(kinds: list[tuple[FiniteStep, int]]) -> dict[tuple[bytes, ...], tuple[Fixed, Fixed]]:
    """Return the distinct pairs of neighbours of one space, in each order and in the other."""
    sources = [atom.source for atom, _ in kinds if atom.source is not None]
    sites = _sites(sources)
    if sites is None:
        raise _too_many()
    result: dict[tuple[bytes, ...], tuple[Fixed, Fixed]] = {}
    for groups, errors in sites:
        for j in range(len(groups[0][1])):
            orders: list[Fixed] = [[], []]
            for (laws, pairs), error, (_, count) in zip(groups, errors, kinds, strict=True):
                for fixed, (x, other) in zip(orders, (pairs[j], pairs[j][::-1]), strict=True):
                    low = pair_measure(laws[x], laws[other], error)
                    fixed.append((low, _raised(low, laws[x], laws[other], error[1]), count))
            for first, second in (orders, orders[::-1]):
                key = tuple(digits(low) for fixed in (first, second) for low, _, _ in fixed)
                one, other = result.get(key, (first, second))
                result[key] = _joined(one, first), _joined(other, second)
            if len(result) > _PAIRS:
                raise _too_many()
    return result


def _joined(kept: Fixed, other: Fixed) -> Fixed:
    """One pair for two with the same digits: it bounds both from above."""
    return [
        (low, up if _equal(up, again) else _above(up), count)
        for (low, up, count), (_, again, _) in zip(kept, other, strict=True)
    ]


def _equal(first: DiscreteLosses, second: DiscreteLosses) -> bool:
    """Whether both are the same, float for float."""
    names = ("losses", "logs", "infinite", "shift")
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names)


def _above(measure: DiscreteLosses) -> DiscreteLosses:
    """Bound all measures with the same digits from above."""
    return replace(
        measure,
        infinite=min(measure.infinite * (1.0 + 2.0 * ALIKE), 1.0),
        error=measure.error + 2.0 * ALIKE,
        off=measure.off + 2.0 * ALIKE * (abs(measure.shift) + measure.top),
    )


def _raised(
    low: DiscreteLosses, first: np.ndarray, second: np.ndarray, below: float
) -> DiscreteLosses:
    """The same measure, with what rounding may have taken away given back.

    Second probabilities that may be those of underflow, ``below``, count as none.
    """
    size = abs(low.shift) + low.top
    lost = math.fsum(first[second <= 2.0**53 * below].tolist()) + 8.0 * len(first) * below
    lost *= 1.0 + 2.0 * low.error + roundoff(8.0)
    return replace(low, infinite=min(lost, 1.0), off=low.off + _JOINED * size)
