"""Individual capacity over independent bits: with chances of their own, or one for all of them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from functools import singledispatch

import numpy as np

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, log_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel
from fastpriv.channels.queries.sums import (
    Chance,
    chance_of,
    chances_from,
    corner_error,
    corner_laws,
)
from fastpriv.channels.rowwise import row_kinds
from fastpriv.measures.individual.search import capped, widened
from fastpriv.measures.pointwise.intervals import at_corners
from fastpriv.results import IndividualCapacity

#: What a bit can tell at most.
_BIT = log_up(2.0)
#: Entries of a batch of channels, and most entries of all of them.
_BATCH, _WORK = 1 << 20, 1 << 36
#: Most intervals of a common chance.
_INTERVALS = 4096


@singledispatch
def interval_leak(
    channel: AbstractChannel, low: Chance, high: Chance, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over rows i and independent bits with chances in an interval.

    The channel from x_i to y is linear in the law of every other row, so these are at an end.
    Cost O(N n^2 K).
    """
    matrix, n = np.array(channel.nearest_matrix()), channel.space.n
    rows = np.unique(row_kinds(channel), return_index=True)[1].tolist()
    check.fits(n * len(rows) * matrix.size, "the chances of all corners", "use fewer rows", _WORK)

    def corners(i: int) -> Floats:
        """Return the channels from x_i to y for all corners of the other rows."""
        table = at_corners(matrix, low, high, [j for j in range(n) if j != i])
        lines = table.reshape(2**i, 2, -1, matrix.shape[1])
        return np.moveaxis(lines, 1, 2).reshape(-1, 2, matrix.shape[1])

    leak = _clipped(map(corners, rows), low, high, gap, clock)
    return widened(capped(leak, _BIT, channel, clock), channel.matrix_error + 8.0 * n * ULP)


@interval_leak.register
def _product_interval_leak(
    channel: ProductChannel, low: Chance, high: Chance, gap: float, clock: Clock
) -> IndividualCapacity:
    """Every row by itself."""
    rows = (kernel.matrix[None] for kernel in channel.kernels.distinct)
    return _clipped(rows, low, high, gap, clock)


@interval_leak.register
def _query_interval_leak(
    channel: QueryChannel, low: Chance, high: Chance, gap: float, clock: Clock
) -> IndividualCapacity:
    """A count: only the number of other bits with the larger chance matters."""
    if not channel.query.counts_bits():
        plain = Channel(channel.nearest_matrix(), channel.space)
        return interval_leak(plain, low, high, gap, clock)
    table, n = _shifted(channel), channel.space.n
    leak = _clipped(_mixed(table, low, high), low, high, gap, clock)
    return widened(capped(leak, _BIT, channel, clock), corner_error(n, low, high))


def _shifted(channel: QueryChannel) -> Floats:
    """Return the output laws of a count for both values of a bit, [bit, other ones, output]."""
    matrix, n = channel.kernel.matrix, channel.space.n
    check.fits(n * matrix.size, "the work for all corners", "use fewer rows", _WORK)
    return np.stack([matrix[:-1], matrix[1:]])


def _mixed(table: Floats, low: Chance, high: Chance) -> Iterator[Floats]:
    """Yield the channels from a bit with the others at either chance, in blocks."""
    for laws in corner_laws(table.shape[1] - 1, low, high):
        yield np.stack([laws @ table[0], laws @ table[1]], axis=1)


def _clipped(
    parts: Iterable[Floats], low: Chance, high: Chance, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest information through two-row channels with chances in an interval.

    Information is concave in the chance, so that the best one is the unrestricted one or the
    nearest end. For q the law of the output, sum p D(V_x || q) is the information at p, and its
    largest value over the interval bounds all of them. What the time does not suffice for tells at
    most a bit.
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
    """Return bounds on the information at both ends of an interval of chances, (B, 2), rounded up.

    V is (B, 2, K). Information is concave in the chance of ones. The bounds are on its tangents at
    the given chances.
    """
    told = _told(V, chance) * (1.0 + _error(V))
    return np.stack([q * told[:, 0] + p * told[:, 1] for q, p in (low, high)], axis=1)


def _information(V: Floats, chance: Floats) -> Floats:
    """Return the information at the given chances of ones, rounded down."""
    told = _told(V, chance) * (1.0 - _error(V))
    return np.asarray((1.0 - chance) * told[:, 0] + chance * told[:, 1])


def _told(V: Floats, chance: Floats) -> Floats:
    """Return D(V_x || q), q being the law of the output."""
    told = np.empty((len(V), 2))
    kernels.two_row_divergences(V, chance, told)
    return told


def _error(V: Floats) -> float:
    """Relative error of these divergences and of their means."""
    return (int(V.shape[2]) + 136) * ULP


@singledispatch
def common_leak(channel: AbstractChannel, c: float, gap: float, clock: Clock) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over rows i and bits with one common chance in [c, 1-c].

    Through the matrix: for a given row only the means of its rows with the same number of ones
    among the other bits matter.
    """
    n, matrix = channel.space.n, np.array(channel.nearest_matrix())
    x = channel.space.rows(np.arange(channel.space.size))
    ones, tables = x.sum(axis=1), []
    for i in np.unique(row_kinds(channel), return_index=True)[1].tolist():
        halves = [matrix[x[:, i] == value] for value in (0, 1)]
        others = [ones[x[:, i] == value] - value for value in (0, 1)]
        means = [_means(*half, n) for half in zip(halves, others, strict=True)]
        tables.append(np.stack(means))
    error = channel.matrix_error + 2.0 * len(matrix) * ULP
    return _by_intervals(tables, channel, error, c, gap, clock)


@common_leak.register
def _product_common_leak(
    channel: ProductChannel, c: float, gap: float, clock: Clock
) -> IndividualCapacity:
    """The other rows do not matter."""
    return interval_leak(channel, *chances_from(c), gap, clock)


@common_leak.register
def _query_common_leak(
    channel: QueryChannel, c: float, gap: float, clock: Clock
) -> IndividualCapacity:
    """A count is a function of the number of ones."""
    if not channel.query.counts_bits():
        return common_leak.dispatch(AbstractChannel)(channel, c, gap, clock)
    return _by_intervals([_shifted(channel)], channel, 0.0, c, gap, clock)


def _means(matrix: Floats, ones: Ints, n: int) -> Floats:
    """Return the mean of the rows of a matrix for 0 .. n - 1 ones."""
    totals = np.zeros((n, matrix.shape[1]))
    np.add.at(totals, ones, matrix)
    return np.asarray(totals / np.bincount(ones, minlength=n)[:, None])


def _by_intervals(
    tables: list[Floats],
    channel: AbstractChannel,
    error: float,
    c: float,
    gap: float,
    clock: Clock,
) -> IndividualCapacity:
    """Branch and bound over the common chance, [bit, other ones, output] being given.

    A bit with a chance p between l and r is a mixture of bits with chances l and r. So for
    p = l + t (r - l) the channel from x_i to y is the mixture of channels V_k, in which k of the
    n - 1 other bits have chance r, with the weights of a binomial law with chance t. Information is
    convex in the channel, and in p it is below its tangents. If the tangent for V_k has the value
    L_k at l and R_k at r, the information is at most

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
        return float(terms.max()) * (1.0 + 4.0 * ULP)

    def reached(table: Floats, p: float) -> float:
        law = next(corner_laws(n - 1, (1.0 - p, p), (1.0 - p, p)))[:1]
        V = np.stack([law @ table[0], law @ table[1]], axis=1)
        return float(_information(V, np.full(1, p))[0])

    heap = []
    for number, table in enumerate(seen):
        lower = max(lower, reached(table, 0.5))
        late = number > 0 and clock.left() == 0.0
        heap.append((-(_BIT if late else bound(table, c, 1.0 - c)), c, 1.0 - c, number))
    heapq.heapify(heap)
    for _ in range(_INTERVALS):
        worst, low, high, number = heap[0]
        if -worst <= lower + 0.5 * gap * min(1.0, lower) or clock.left() == 0.0:
            break
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        lower = max(lower, reached(seen[number], middle))
        heapq.heappop(heap)
        for ends in ((low, middle), (middle, high)):
            part = max(worst, -bound(seen[number], *ends))
            heapq.heappush(heap, (part, *ends, number))
    leak = IndividualCapacity(lower, max(lower, -heap[0][0]), None)
    return widened(capped(leak, _BIT, channel, clock), error)
