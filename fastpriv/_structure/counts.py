"""Counts of values: all that there are, and the logs of how many databases have them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from fastpriv._core.validation import Floats, Ints

#: Most bits whose binomials are formed exactly: beyond, they have more than a thousand digits.
_EXACT = 4096


@lru_cache(maxsize=4096)
def compositions(total: int, parts: int) -> tuple[tuple[int, ...], ...]:
    """List all ways to write ``total`` as an ordered sum of ``parts`` counts, in order."""
    if parts == 1:
        return ((total,),)
    return tuple(
        (first, *rest)
        for first in range(total + 1)
        for rest in compositions(total - first, parts - 1)
    )


def compositions_array(total: int, parts: int) -> Ints:
    """Return the same as an array, one row for each; not kept."""
    counts = np.array([[total]])
    for _ in range(parts - 1):  # divide the last count into two
        rest = counts[:, -1]
        own = np.repeat(np.arange(len(rest)), rest + 1)
        taken = np.arange(len(own)) - np.repeat(np.cumsum(rest + 1) - rest - 1, rest + 1)
        counts = np.column_stack([counts[own, :-1], taken, rest[own] - taken])
    return counts


@lru_cache(maxsize=4096)
def _passed(total: int, parts: int) -> Ints:
    """Number of compositions of r into ``parts`` counts with a first count below c, at [r, c]."""
    table = np.zeros((total + 1, total + 1), dtype=np.int64)
    for rest in range(total + 1):
        for first in range(rest):
            later = math.comb(rest - first + parts - 2, parts - 2)
            table[rest, first + 1] = table[rest, first] + later
    return table


def composition_index(counts: Ints, total: int) -> Ints:
    """Return the places of counts (parts, ...) with sum ``total`` in ``compositions``."""
    place = np.zeros(counts.shape[1:], dtype=np.int64)
    rest = np.full(counts.shape[1:], total, dtype=np.int64)
    for k, count in enumerate(counts[:-1]):
        place += _passed(total, len(counts) - k)[rest, count]
        rest = rest - count
    return place


def types_array(n: int, m: int) -> Ints:
    """Return the counts (c_0, ..., c_(m-1)) of all types of n records, one column for each.

    They are in C order of (c_1, ..., c_(m-1)), as the weights of ``Exchangeable``.
    """
    counts = np.indices((n + 1,) * (m - 1)).reshape(m - 1, (n + 1) ** (m - 1))
    rest = n - counts.sum(axis=0)
    return np.concatenate([rest[None], counts])[:, rest >= 0]


def log_multinomial(counts: Sequence[int]) -> float:
    """Log of the number of arrangements of some counts, from the exact number."""
    ways, total = 1, 0
    for c in counts:
        total += c
        ways *= math.comb(total, c)
    return math.log(ways)


def log_multinomials(counts: Ints | Floats, axis: int = 0) -> Floats:
    """Log of the number of arrangements of the counts along an axis, from log-gamma functions."""
    from scipy.special import gammaln

    return np.asarray(gammaln(counts.sum(axis=axis) + 1.0) - gammaln(counts + 1.0).sum(axis=axis))


def log_binomial(n: int, k: int) -> float:
    """Log of n choose k, by an exact sum of logarithms."""
    k = min(k, n - k)
    return math.fsum(np.log(np.arange(n, n - k, -1) / np.arange(1, k + 1)))


def log_binomials(n: int) -> Floats:
    """Log of n choose k for k = 0 .. n, by sums of logarithms in extended precision."""
    steps = np.arange(n, dtype=np.longdouble)
    logs = np.cumsum(np.log((n - steps) / (steps + 1)))
    return np.concatenate([[0.0], logs]).astype(np.float64)


def log_binomial_table(n: int) -> Floats:
    """Return ln C(a, b) for a, b = 0 .. n, -inf if b > a, from the exact numbers."""
    table = np.full((n + 1, n + 1), -math.inf)
    for a in range(n + 1):
        table[a, : a + 1] = [math.log(ways) for ways in _binomials(a)]
    return table


def log_class_sizes(n: int, axes: int) -> Floats:
    """Return ln of the number of databases with counts (c_1, ..., c_axes), 0 if they exceed n.

    From exact binomials; for very many bits by sums of logarithms.
    """
    if axes == 1:
        if n > _EXACT:
            return log_binomials(n)
        return np.array([math.log(ways) for ways in _binomials(n)])
    table = np.maximum(log_binomial_table(n), 0.0)
    shape = (n + 1,) * axes
    left, logs = np.full(shape, n), np.zeros(shape)
    for counts in np.indices(shape):
        logs += table[np.maximum(left, 0), counts]
        left = left - counts
    return logs


def _binomials(n: int) -> list[int]:
    """Return n choose k for k = 0 .. n."""
    row = [1]
    for k in range(n):
        row.append(row[-1] * (n - k) // (k + 1))
    return row
