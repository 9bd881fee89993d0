"""Individual capacity over priors with independent records."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import log_up, raised, round_up, roundoff
from fastpriv._core.search import BestFirst
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel
from fastpriv.channels.queries import (
    Chance,
    Query,
    chance_of,
    chances_from,
    corner_error,
    corner_laws,
)
from fastpriv.errors import InvalidInput, TooLarge, short
from fastpriv.measures.capacity import capacity, row_capacity
from fastpriv.measures.individual.adversary import as_query, capped, widened
from fastpriv.measures.individual.convex import most_information
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.database import scaled_matrix
from fastpriv.measures.pointwise.prior_sets import at_corners, chances, corners, means_by_ones
from fastpriv.priors.sets import Box
from fastpriv.results import Adversary, IndividualCapacity
from fastpriv.spaces import Space

#: Entries of a batch of channels whose capacities are computed together.
_BATCH = 1 << 20
#: Most information that a bit holds, in nats.
_BIT = log_up(2.0)
#: Most products in the channels at all corners.
_WORK = 1 << 36
#: Most intervals of a common probability.
_INTERVALS = 4096
#: Most channels of one record, the others being at corners.
_CHANNELS = 1 << 12
#: Gap of capacities that only order the channels and bound them.
_ROUGH = 1e-3
#: Most entries of all pairs of databases.
_PAIRS = 1 << 29


@singledispatch
def independent_leak(channel: AbstractChannel, gap: float, clock: Clock) -> IndividualCapacity:
    """Largest I(X_i; Y) over records i and priors with independent records, for checked arguments.

    Given the distribution of the other records, the channel from X_i to Y is a mixture of the
    channels with fixed other records, and information is convex in the channel. So the other
    records are fixed, and the result is the largest capacity of the m_i databases that differ in
    record i alone. The general algorithm takes each such set of output distributions once. Cost at
    most n N/m capacities of m rows.
    """
    query, table = as_query(channel)
    lower, upper, who = -1.0, 0.0, _nobody(channel.space)
    for lines in _lines(query):
        step = max(1, _BATCH // (lines.shape[1] * table.shape[1]))
        for start in range(0, len(lines), step):
            if clock.left() == 0.0 and lower >= 0.0:
                most = min(log_up(lines.shape[1]), capacity(channel, 1e-3).upper)
                upper = max(upper, most)
                break
            part = lines[start : start + step]
            low, high, laws = capacities(np.ascontiguousarray(table[part]), 0.25 * gap)
            best = int(low.argmax())
            upper = max(upper, float(high.max()))
            if low[best] > lower:
                lower, who = float(low[best]), _adversary(query, part[best], laws[best])
    return widened(IndividualCapacity(max(lower, 0.0), upper, who), channel.matrix_error)


@independent_leak.register
def _product_independent_leak(
    channel: ProductChannel, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest capacity of one record's channel. Cost O(distinct records)."""
    told = [row_capacity(kernel, gap) for kernel in channel.kernels.distinct]
    at = int(np.argmax([part.lower for part, _ in told]))
    i, (best, law) = int(np.argmax(channel.kernels.assignment == at)), told[at]
    who = None
    if len(law) * channel.space.n <= check.MAX_VECTOR:
        databases = np.zeros((len(law), channel.space.n), dtype=np.int64)
        databases[:, i] = np.arange(len(law))
        who = Adversary((i,), databases, law)
    return IndividualCapacity(best.lower, max(part.upper for part, _ in told), who)


def _lines(query: Query) -> list[Ints]:
    """Return the sets of answers of databases that differ in one record, as arrays (sets, m)."""
    sizes = query.space.sizes
    if max(sizes) == 2:
        pairs = query.neighbours()
        return [pairs[pairs[:, 0] < pairs[:, 1]]]
    values = query.listed()
    kinds = query.kinds()
    lines = []
    for i in np.unique(kinds, return_index=True)[1].tolist():
        inner = int(query.space.strides[i])
        blocks = np.swapaxes(values.reshape(-1, sizes[i], inner), 1, 2).reshape(-1, sizes[i])
        if sizes[i] > 1:
            lines.append(np.unique(np.sort(blocks, axis=1), axis=0))
    return lines


def _nobody(space: Space) -> Adversary:
    """Return an adversary who learns nothing."""
    return Adversary((0,), np.zeros((1, space.n), dtype=np.int64), np.ones(1))


def _adversary(query: Query, line: Ints, law: Floats) -> Adversary:
    """Return databases that differ in one record and have the given answers."""
    sizes = query.space.sizes
    if max(sizes) == 2:
        databases = np.stack(query.step(int(line[0]), int(line[1])))
        i = int(np.flatnonzero(databases[0] != databases[1])[0])
    else:
        i, databases = _found(query, line)
    answers = query.of(databases).tolist()
    left = list(range(len(line)))
    order = []
    for answer in answers:
        at = next(j for j in left if line[j] == answer)
        left.remove(at)
        order.append(at)
    ranks = np.argsort(databases[:, i])
    return Adversary((i,), databases[ranks], law[order][ranks])


def _found(query: Query, line: Ints) -> tuple[int, Ints]:
    """Return a record and databases that differ in it alone, with the answers of a line."""
    sizes, values = query.space.sizes, query.listed()
    for i in range(query.space.n):
        if sizes[i] != len(line):
            continue
        inner = int(query.space.strides[i])
        blocks = np.swapaxes(values.reshape(-1, sizes[i], inner), 1, 2).reshape(-1, sizes[i])
        places = np.flatnonzero((np.sort(blocks, axis=1) == line).all(axis=1))
        if len(places):
            outer, rest = divmod(int(places[0]), inner)
            first = outer * sizes[i] * inner + rest
            return i, query.space.rows(first + inner * np.arange(sizes[i]))
    raise AssertionError("every line comes from some databases")


# Individual capacity over independent bits: with probabilities of their own, or one for all of
# them.


@singledispatch
def interval_leak(
    channel: AbstractChannel, low: Chance, high: Chance, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over independent bits with probabilities in an interval.

    The channel from x_i to y is linear in the probability of every other bit. So the other
    probabilities are at a bound of the interval. Cost O(N n^2 K).
    """
    matrix, n = np.array(channel.nearest_matrix(), order="C"), channel.space.n
    rows = np.unique(channel.record_kinds, return_index=True)[1].tolist()
    check.fits(
        n * len(rows) * matrix.size, "the probabilities of all corners", "use fewer records", _WORK
    )

    def corners(i: int) -> Floats:
        """Return the channels from x_i to y for all corners of the other records."""
        table = at_corners(matrix, low, high, [j for j in range(n) if j != i])
        lines = table.reshape(2**i, 2, -1, matrix.shape[1])
        return np.moveaxis(lines, 1, 2).reshape(-1, 2, matrix.shape[1])

    leak = _clipped(map(corners, rows), low, high, gap, clock)
    return widened(capped(leak, _BIT, channel, clock), channel.matrix_error + roundoff(8.0 * n))


@interval_leak.register
def _product_interval_leak(
    channel: ProductChannel, low: Chance, high: Chance, gap: float, clock: Clock
) -> IndividualCapacity:
    """Bound every record separately."""
    rows = (kernel.matrix[None] for kernel in channel.kernels.distinct)
    return _clipped(rows, low, high, gap, clock)


@interval_leak.register
def _query_interval_leak(
    channel: QueryChannel, low: Chance, high: Chance, gap: float, clock: Clock
) -> IndividualCapacity:
    """A count: only the number of other bits with the larger probability matters."""
    if not channel.query.counts_bits():
        plain = Channel(channel.nearest_matrix(), channel.space)
        return interval_leak(plain, low, high, gap, clock)
    table, n = _shifted(channel), channel.space.n
    leak = _clipped(_mixed(table, low, high), low, high, gap, clock)
    return widened(capped(leak, _BIT, channel, clock), corner_error(n, low, high))


def _shifted(channel: QueryChannel) -> Floats:
    """Return the output distributions of a count, [bit, other ones, output]."""
    matrix, n = channel.kernel.matrix, channel.space.n
    check.fits(n * matrix.size, "the work for all corners", "use fewer records", _WORK)
    return np.stack([matrix[:-1], matrix[1:]])


def _mixed(table: Floats, low: Chance, high: Chance) -> Iterator[Floats]:
    """Yield the channels from a bit with the others at either probability, in blocks."""
    for laws in corner_laws(table.shape[1] - 1, low, high):
        yield np.stack([laws @ table[0], laws @ table[1]], axis=1)


def _clipped(
    parts: Iterable[Floats], low: Chance, high: Chance, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest information through two-row channels with probabilities in an interval.

    Information is concave in the probability. So the best probability is the unrestricted one or
    the nearest bound of the interval. For q the distribution of the output, sum p D(V_x || q) is
    the information at p, and its largest value over the interval bounds all of them. If the time is
    over, the other channels are bounded by one bit.
    """
    lower = upper = 0.0
    begun = False
    for channels in parts:
        step = max(1, _BATCH // channels[0].size)
        for start in range(0, len(channels), step):
            if begun and clock.left() == 0.0:
                return IndividualCapacity(lower, _BIT, None)
            V, begun = np.ascontiguousarray(channels[start : start + step]), True
            chance = np.clip(capacities(V, 0.25 * gap)[2][:, 1], low[1], high[1])
            lower = max(lower, float(_information(V, chance).max()))
            upper = max(upper, float(_tangents(V, chance, low, high).max()))
    return IndividualCapacity(min(lower, upper), upper, None)


def _tangents(V: Floats, chance: Floats, low: Chance, high: Chance) -> Floats:
    """Bound the information at both bounds of an interval of probabilities, (B, 2), rounded up.

    V is (B, 2, K). Information is concave in the probability of ones. The bounds are on its
    tangents at the given probabilities.
    """
    told = _told(V, chance) * (1.0 + _error(V))
    return np.stack([q * told[:, 0] + p * told[:, 1] for q, p in (low, high)], axis=1)


def _information(V: Floats, chance: Floats) -> Floats:
    """Return the information at the given probabilities of ones, rounded down."""
    told = _told(V, chance) * (1.0 - _error(V))
    return np.asarray((1.0 - chance) * told[:, 0] + chance * told[:, 1])


def _told(V: Floats, chance: Floats) -> Floats:
    """Return D(V_x || q), q being the distribution of the output."""
    told = np.empty((len(V), 2))
    kernels.two_row_divergences(V, chance, told)
    return told


def _error(V: Floats) -> float:
    """Relative error of these divergences and of their means."""
    return roundoff(int(V.shape[2]) + 136)


@singledispatch
def common_leak(channel: AbstractChannel, c: float, gap: float, clock: Clock) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over bits with one common probability in [c, 1-c]."""
    return matrix_common_leak(channel, c, gap, clock)


def matrix_common_leak(
    channel: AbstractChannel, c: float, gap: float, clock: Clock
) -> IndividualCapacity:
    """Use the matrix.

    For record i only means of matrix rows matter: one mean for each value of record i and each
    number of ones among the other bits.
    """
    n, matrix = channel.space.n, np.array(channel.nearest_matrix(), order="C")
    x = channel.space.rows(np.arange(channel.space.size))
    ones, tables = x.sum(axis=1), []
    for i in np.unique(channel.record_kinds, return_index=True)[1].tolist():
        halves = [matrix[x[:, i] == value] for value in (0, 1)]
        others = [ones[x[:, i] == value] - value for value in (0, 1)]
        means = [means_by_ones(*half, n - 1) for half in zip(halves, others, strict=True)]
        tables.append(np.stack(means))
    error = channel.matrix_error + roundoff(2.0 * len(matrix))
    return _by_intervals(tables, channel, error, c, gap, clock)


@common_leak.register
def _product_common_leak(
    channel: ProductChannel, c: float, gap: float, clock: Clock
) -> IndividualCapacity:
    """The other records do not matter."""
    return interval_leak(channel, *chances_from(c), gap, clock)


@common_leak.register
def _query_common_leak(
    channel: QueryChannel, c: float, gap: float, clock: Clock
) -> IndividualCapacity:
    """A count is a function of the number of ones."""
    if not channel.query.counts_bits():
        return matrix_common_leak(channel, c, gap, clock)
    return _by_intervals([_shifted(channel)], channel, 0.0, c, gap, clock)


def _by_intervals(
    tables: list[Floats],
    channel: AbstractChannel,
    error: float,
    c: float,
    gap: float,
    clock: Clock,
) -> IndividualCapacity:
    """Branch and bound over the common probability, [bit, other ones, output] being given.

    A bit with a probability p between l and r is a mixture of bits with probabilities l and r. So
    for p = l + t (r - l) the channel from x_i to y is the mixture of channels V_k, in which k of
    the n - 1 other bits have probability r, with the weights of a binomial distribution with
    probability t. Information is convex in the channel, and in p it is below its tangents. If the
    tangent for V_k has the value L_k at l and R_k at r, the information is at most

        sum_k C(n-1, k) t^k (1-t)^(n-1-k) ((1-t) L_k + t R_k).

    In Bernstein's basis of degree n this has the coefficients ((n - j) L_j + j R_(j-1))/n, and the
    largest of them bounds the interval. It exceeds the information by a multiple of (r - l)^2.
    """
    n = channel.space.n
    seen = [np.ascontiguousarray(table[:, :, table.any(axis=(0, 1))]) for table in tables]
    error += corner_error(n, *chances_from(c))
    share = np.arange(n + 1) / n
    lower = 0.0

    def bound(table: Floats, low: float, high: float) -> float:
        lines: list[Floats] = []
        ends = chance_of(low, c), chance_of(high, c)
        for V in _mixed(table, *ends):
            if lines and clock.left() == 0.0:
                return _BIT
            number = sum(map(len, lines)) + np.arange(len(V))
            chance = np.minimum(low + (high - low) * (number + 0.5) / n, high)
            lines.append(_tangents(V, chance, *ends))
        left, right = np.concatenate(lines).T
        terms = (1.0 - share) * np.append(left, 0.0) + share * np.append(0.0, right)
        return raised(float(terms.max()), 4.0)

    def reached(table: Floats, p: float) -> float:
        law = next(corner_laws(n - 1, (1.0 - p, p), (1.0 - p, p)))[:1]
        V = np.stack([law @ table[0], law @ table[1]], axis=1)
        return float(_information(V, np.full(1, p))[0])

    parts = []
    for number, table in enumerate(seen):
        lower = max(lower, reached(table, 0.5))
        late = number > 0 and clock.left() == 0.0
        parts.append(_Interval(_BIT if late else bound(table, c, 1.0 - c), c, 1.0 - c, table))

    def halves(whole: _Interval) -> list[_Interval]:
        nonlocal lower
        most, low, high, table = whole
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return [whole]
        lower = max(lower, reached(table, middle))
        ends = (low, middle), (middle, high)
        return [_Interval(min(most, bound(table, *half)), *half, table) for half in ends]

    halvings = itertools.count()
    upper = BestFirst(parts, halves).run(
        lambda: lower + 0.5 * gap * min(1.0, lower),
        lambda: clock.left() == 0.0 or next(halvings) >= _INTERVALS,
    )
    leak = IndividualCapacity(lower, max(lower, upper), None)
    return widened(capped(leak, _BIT, channel, clock), error)


class _Interval(NamedTuple):
    """An interval of the common probability, and the table of one record."""

    bound: float
    low: float
    high: float
    table: Floats


# Individual capacity over independent records, each with a distribution of its own in a box.


def row_box_leak(
    channel: AbstractChannel, box: Box, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over independent records, each with a distribution in a box.

    The channel from x_i to y is linear in the distribution of each other record, and information is
    convex in the channel. So all other records are at corners of the box. Information is concave in
    the distribution of record i. Channels of largest capacity come first. Channels whose capacity
    is below the best value are left out. If the time is over, capacities bound the other channels.
    """
    if box.size == 2:
        return interval_leak(channel, *chances(box), gap, clock)
    if isinstance(channel, ProductChannel):
        tables = [kernel.matrix[None] for kernel in channel.kernels.distinct]
    else:
        tables = _at_corners(channel, corners(box))
    bounded = [pair for part in tables for pair in _bounded(part)]
    lower = upper = 0.0
    for number, (most, table) in enumerate(sorted(bounded, key=lambda pair: -pair[0])):
        if most <= upper or (number and clock.left() == 0.0):
            upper = max(upper, most)
            break
        low, high = most_information(table, box, gap, clock)
        lower, upper = max(lower, low), max(upper, min(high, most))
    leak = IndividualCapacity(lower, upper, None)
    return widened(leak, channel.matrix_error + roundoff(8.0 * channel.space.n * (box.size + 2)))


def _bounded(tables: Floats) -> list[tuple[float, Floats]]:
    """Return channels of one record, each with its capacity over all distributions, from above."""
    caps = capacities(np.ascontiguousarray(tables), _ROUGH)[1]
    return list(zip(caps.tolist(), tables, strict=True))


def _at_corners(channel: AbstractChannel, laws: Floats) -> list[Floats]:
    """Return for each record its channels to the output, with the other records at corners."""
    n, m = channel.space.n, laws.shape[1]
    rows = np.unique(channel.record_kinds, return_index=True)[1].tolist()
    count = len(rows) * len(laws) ** (n - 1)
    if count > _CHANNELS:
        raise TooLarge(
            f"each corner of the box of all other rows leaves a channel of one row to search, "
            f"{short(count)} of them, and at most {_CHANNELS:,} are searched; use fewer records, "
            "or a channel that acts on each record."
        )
    lead = np.array(channel.nearest_matrix(), order="C").reshape((m,) * n + (-1,))
    tables = []
    for i in rows:
        table = lead
        for j in range(n):
            if j != i:
                table = np.moveaxis(np.tensordot(laws, np.moveaxis(table, j, 0), 1), 0, j)
        moved: Floats = np.moveaxis(table, i, -2)
        tables.append(moved.reshape(-1, m, np.shape(moved)[-1]))
    return tables


# Individual capacity over Markov chains of bits.


def chain_leak(channel: AbstractChannel, gap: float, clock: Clock) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over records i and Markov chains of bits, for checked arguments.

    The channel from x_i to y is linear in the steps of the chain, and information is convex in the
    channel, so every step is a function. Records behind a constant step do not depend on x_i. So
    it suffices to compare two databases that differ in consecutive records, record i among them:
    O(n^2 N) pairs. If the time is over, the other pairs are bounded by one bit.
    """
    matrix = np.array(channel.nearest_matrix(), order="C")
    lower, upper, who = 0.0, 0.0, None
    for (first, second), i in _pairs(channel, matrix):
        if who is not None and clock.left() == 0.0:
            upper = _BIT
            break
        low, high, laws = capacities(np.stack([matrix[first], matrix[second]], axis=1), gap)
        best = int(low.argmax())
        upper = max(upper, float(high.max()))
        if who is None or low[best] > lower:
            databases = channel.space.rows(np.array([first[best], second[best]]))
            order = np.argsort(databases[:, i])
            who = Adversary((i,), databases[order], laws[best][order])
            lower = float(low[best])
    leak = IndividualCapacity(max(lower, 0.0), upper, who)
    return widened(capped(leak, _BIT, channel, clock), channel.matrix_error)


def chain_ratio(channel: AbstractChannel) -> float:
    """Return the largest ln W[x, y]/W[x', y] over databases that differ in neighbouring records."""
    if isinstance(channel, ProductChannel):
        return extreme_level(channel)  # all records may differ
    matrix, worst = scaled_matrix(channel), 0.0
    for (first, second), _ in _pairs(channel, matrix):
        for top, bottom in ((matrix[first], matrix[second]), (matrix[second], matrix[first])):
            seen = top > 0.0
            worst = max(worst, float(log_ratio(top[seen], bottom[seen]).max(initial=0.0)))
    return round_up(worst)


def _pairs(channel: AbstractChannel, matrix: Floats) -> Iterator[tuple[tuple[Ints, Ints], int]]:
    """Yield batches of pairs of databases that differ in consecutive records, and a record."""
    n, size, outputs = channel.space.n, len(matrix), matrix.shape[1]
    if channel.space.m != 2:
        raise InvalidInput(
            'priors="markov" is for records of two values; use "all", which bounds it.'
        )
    check.fits(
        n * (n + 1) // 2 * size * outputs,
        "the pairs of databases of all Markov chains",
        'use fewer records, or priors="all", which bounds it',
        _PAIRS,
    )
    everything, step = np.arange(size), max(1, _BATCH // (2 * outputs))
    strides = channel.space.strides.tolist()
    for i in range(n):
        first = everything[everything // strides[i] % 2 == 0]
        for last in range(i, n):
            other = first ^ sum(strides[i : last + 1])  # numbers of databases are their bits
            for start in range(0, len(first), step):
                yield (first[start : start + step], other[start : start + step]), i
