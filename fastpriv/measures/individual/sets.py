"""Individual capacity over Markov chains, and over independent bits of bounded chances."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import ULP, round_up
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel
from fastpriv.channels.queries.sums import corner_laws
from fastpriv.errors import InvalidInput
from fastpriv.measures.capacity import capacity
from fastpriv.measures.individual.search import matrix_error, widened
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.scaled import scaled_matrix
from fastpriv.results import Adversary, IndividualCapacity

#: What a bit can tell at most.
_BIT = round_up(math.log(2.0))
#: Gap of the channel capacity, which bounds what the time does not suffice for.
_CLOSE = 1e-3
#: Entries of a batch of channels, and most entries of all of them.
_BATCH, _WORK = 1 << 20, 1 << 29


def chain_leak(channel: AbstractChannel, gap: float, clock: Clock) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over rows i and Markov chains of bits, for checked arguments.

    The channel from x_i to y is linear in the steps of the chain, and information is convex in the
    channel, so every step is a function. Where a step is constant the rows behind it do not depend
    on x_i. Hence two databases are left that differ in neighbouring rows only, one of them row i:
    O(n^2 N) pairs. Pairs that the time does not suffice for tell at most a bit.
    """
    matrix = np.array(channel.matrix())
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
    leak = _capped(IndividualCapacity(max(lower, 0.0), upper, who), channel)
    return widened(leak, matrix_error(channel))


def _capped(leak: IndividualCapacity, channel: AbstractChannel) -> IndividualCapacity:
    """Bound a leak that may be a bit, for want of time, by the channel capacity."""
    if leak.upper < _BIT:
        return leak
    upper = max(leak.lower, min(leak.upper, capacity(channel, _CLOSE).upper))
    return IndividualCapacity(leak.lower, upper, leak.adversary)


def chain_ratio(channel: AbstractChannel) -> float:
    """Return the largest ln W[x, y]/W[x', y] over databases that differ in neighbouring rows."""
    if isinstance(channel, ProductChannel):
        return extreme_level(channel)  # all rows may differ
    matrix, worst = scaled_matrix(channel), 0.0
    for (first, second), _ in _pairs(channel, matrix):
        for top, bottom in ((matrix[first], matrix[second]), (matrix[second], matrix[first])):
            seen = top > 0.0
            worst = max(worst, float(log_ratio(top[seen], bottom[seen]).max(initial=0.0)))
    return round_up(worst)


def _pairs(channel: AbstractChannel, matrix: Floats) -> Iterator[tuple[tuple[Ints, Ints], int]]:
    """Yield pairs of databases that differ in some neighbouring rows, in batches, and a row."""
    n, size, outputs = channel.space.n, len(matrix), matrix.shape[1]
    if channel.space.m != 2:
        raise InvalidInput('priors="markov" is for rows of two values; use "all", which bounds it')
    check.fits(
        n * (n + 1) // 2 * size * outputs,
        "the pairs of databases of all Markov chains",
        'use fewer rows, or priors="all", which bounds it',
        _WORK,
    )
    everything, step = np.arange(size), max(1, _BATCH // (2 * outputs))
    strides = channel.space._strides.tolist()
    for i in range(n):
        first = everything[everything // strides[i] % 2 == 0]
        for last in range(i, n):
            other = first ^ sum(strides[i : last + 1])  # numbers of databases are their bits
            for start in range(0, len(first), step):
                yield (first[start : start + step], other[start : start + step]), i


@singledispatch
def interval_leak(
    channel: AbstractChannel, c: float, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over rows i and independent bits with chances in [c, 1-c].

    The channel from x_i to y is linear in the law of every other row, so these are at c or 1 - c.
    Cost O(N n^2 K).
    """
    matrix, n = np.array(channel.matrix()), channel.space.n
    outputs = matrix.shape[1]
    check.fits(n * matrix.size, "the chances of all corners", "use fewer rows", _WORK)
    shape = (*channel.space.sizes, outputs)

    def corners(i: int) -> Floats:
        """Return the channels from x_i to y for all corners of the other rows."""
        shares = [0.0 if row == i else c for row in range(n)]
        mixed = mix(matrix.reshape(-1).copy(), shape, (*shares, 0.0))
        lines = mixed.reshape(-1, 2, int(channel.space._strides[i]), outputs)
        return np.moveaxis(lines, 1, 2).reshape(-1, 2, outputs)

    leak = _capped(_clipped(map(corners, range(n)), c, gap, clock), channel)
    return widened(leak, matrix_error(channel) + 8.0 * n * ULP)


@interval_leak.register
def _(channel: ProductChannel, c: float, gap: float, clock: Clock) -> IndividualCapacity:
    """Every row by itself."""
    return _clipped((kernel.matrix[None] for kernel in channel._kernels.distinct), c, gap, clock)


@interval_leak.register
def _(channel: QueryChannel, c: float, gap: float, clock: Clock) -> IndividualCapacity:
    """A count: only the number of other bits with the larger chance matters."""
    if not channel._query.counts_bits():
        plain = Channel(channel.matrix(), channel.space)
        return interval_leak(plain, c, gap, clock)
    matrix, n = channel._kernel.matrix, channel.space.n
    check.fits(n * matrix.size, "the work for all corners", "use fewer rows", _WORK)
    parts = (
        np.stack([law @ matrix[:-1], law @ matrix[1:]], axis=1) for law in corner_laws(n - 1, c)
    )
    return widened(_capped(_clipped(parts, c, gap, clock), channel), 16.0 * n * ULP)


def _clipped(parts: Iterable[Floats], c: float, gap: float, clock: Clock) -> IndividualCapacity:
    """Return the largest information through two-row channels with chances in [c, 1-c].

    Information is concave in the chance, so that the best one is the unrestricted one or the
    nearest end. For q the law of the output, sum p D(V_x || q) is the information at p, and its
    largest value over the interval bounds all of them. What the time does not suffice for tells at
    most a bit.
    """
    from scipy.special import xlogy

    lower = upper = 0.0
    for number, channels in enumerate(parts):
        if number and clock.left() == 0.0:
            upper = _BIT
            break
        V = np.ascontiguousarray(channels)
        chance = np.clip(capacities(V, 0.25 * gap)[2][:, 1], c, 1.0 - c)
        q = (1.0 - chance)[:, None] * V[:, 0] + chance[:, None] * V[:, 1]
        ratios = V / np.where(q > 0.0, q, 1.0)[:, None]
        # D(V || q) = sum q f(V/q), f(r) = r ln r - r + 1, in which no term is negative.
        told = (q[:, None] * (xlogy(ratios, ratios) - ratios + 1.0)).sum(axis=2)
        at = (1.0 - chance) * told[:, 0] + chance * told[:, 1]
        ends = [(1.0 - p) * told[:, 0] + p * told[:, 1] for p in (c, 1.0 - c)]
        slack = (4 * V.shape[2] + 64) * ULP
        lower = max(lower, float(at.max()) - slack)
        upper = max(upper, float(np.max(ends)) + slack)
    return IndividualCapacity(min(lower, upper), upper, None)
