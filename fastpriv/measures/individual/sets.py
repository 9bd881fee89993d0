"""Individual capacity over Markov chains of bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import log_up, round_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities
from fastpriv.channels import AbstractChannel, ProductChannel
from fastpriv.errors import InvalidInput
from fastpriv.measures.individual.search import capped, widened
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.scaled import scaled_matrix
from fastpriv.results import Adversary, IndividualCapacity

#: What a bit can tell at most.
_BIT = log_up(2.0)
#: Entries of a batch of channels, and most entries of all of them.
_BATCH, _WORK = 1 << 20, 1 << 29


def chain_leak(channel: AbstractChannel, gap: float, clock: Clock) -> IndividualCapacity:
    """Return the largest I(X_i; Y) over rows i and Markov chains of bits, for checked arguments.

    The channel from x_i to y is linear in the steps of the chain, and information is convex in the
    channel, so every step is a function. Where a step is constant the rows behind it do not depend
    on x_i. Hence two databases are left that differ in neighbouring rows only, one of them row i:
    O(n^2 N) pairs. Pairs that the time does not suffice for tell at most a bit.
    """
    matrix = np.array(channel.nearest_matrix())
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
    strides = channel.space.strides.tolist()
    for i in range(n):
        first = everything[everything // strides[i] % 2 == 0]
        for last in range(i, n):
            other = first ^ sum(strides[i : last + 1])  # numbers of databases are their bits
            for start in range(0, len(first), step):
                yield (first[start : start + step], other[start : start + step]), i
