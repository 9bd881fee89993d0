"""Contraction coefficients: pairs of rows, and what can be said of products without listing them.

For a pair of laws with Hellinger affinity A = sum sqrt(PQ) and H = 1 - A,

    H <= g(1/2) <= max_b g(b) <= H (2 - H):

on the left (sqrt P + sqrt Q)^2 >= P + Q, on the right sum PQ/m >= A^2 by Cauchy-Schwarz. The
distances of all pairs are one matrix product, so most pairs of most channels need nothing else.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import ULP
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv.results import Bracket

#: Rows whose distances to all others are taken at once.
_BLOCK = 256
#: Rows are taken as they are: sums that are off by 1e-14 may add this to H (2 - H).
_UNSUMMED = 1e-13
#: Fewest terms worth a thread of their own.
_GRAIN = 1 << 15
#: Base-2 logarithm of the most entries, and of the most terms over all pairs (in both orders), of
#: a product channel whose pairs are listed.
_LISTED, _TERMS = 22, 29
#: Most rows of E_d whose distances are summed.
_MOST_ROWS = 1 << 24


def contractions(
    rows: Floats, left: Ints, right: Ints, upper: Floats | None = None, floor: float = 0.0
) -> tuple[float, float, Floats, Floats]:
    """Largest contraction of some pairs of rows, from below and above, and that of every pair.

    Returns the two ends of the largest, then for every pair a lower end and the weight b that
    attains it. Pairs that cannot be the largest are left as soon as that is clear; ``upper`` may
    hold bounds that are already known, ``floor`` a value to be reached.
    """
    lower, weight = np.empty(len(left)), np.empty(len(left))
    bounds = np.full(len(left), np.inf) if upper is None else upper
    task = partial(_pairs, rows, left, right, floor, lower, bounds, weight)
    ends = split(task, len(left), max(1, _GRAIN // rows.shape[1]))
    return max(end[0] for end in ends), max(end[1] for end in ends), lower, weight


def _pairs(
    rows: Floats,
    left: Ints,
    right: Ints,
    floor: float,
    lower: Floats,
    upper: Floats,
    weight: Floats,
    start: int,
    stop: int,
) -> tuple[float, float]:
    return kernels.pair_contractions(rows, left, right, floor, start, stop, lower, upper, weight)


def matrix_contraction(matrix: Floats) -> Bracket:
    """Largest contraction over all pairs of rows of a matrix, equal rows counted once."""
    rows = np.unique(matrix, axis=0)
    rows = np.ascontiguousarray(rows[:, rows.any(axis=0)])
    floor = most = 0.0
    for start in range(0, len(rows), _BLOCK):
        distances = _distances(rows, start, min(start + _BLOCK, len(rows)))[1]
        # Beyond H (2 - H), a term is at most (sqrt P - sqrt Q)^2, whatever P and Q sum to.
        bounds = np.minimum(2.0 * distances, distances * (2.0 - distances) + _UNSUMMED)
        i, j = np.nonzero(np.triu(bounds > floor, start + 1))
        if len(i):
            order = np.argsort(-bounds[i, j])
            i, j = i[order], j[order]
            floor, high, _, _ = contractions(rows, i + start, j, bounds[i, j], floor)
            most = max(most, high)
    return Bracket(min(floor, 1.0), min(max(most, floor), 1.0))


def _distances(rows: Floats, start: int, stop: int) -> tuple[Floats, Floats]:
    """H between some rows and all, rounded down and up: half of |sqrt P - sqrt Q|^2.

    Taken from the roots minus their mean, so that rows close together keep their digits.
    """
    root = np.sqrt(rows)
    root -= root.mean(axis=0)
    norms = np.einsum("xy,xy->x", root, root)
    sums = norms[start:stop, None] + norms
    square = sums - 2.0 * (root[start:stop] @ root.T)
    doubt = (3 * rows.shape[1] + 16) * ULP * sums
    low = np.maximum(np.sqrt(np.maximum(square - doubt, 0.0)) - 16.0 * ULP, 0.0)
    high = np.sqrt(np.maximum(square + doubt, 0.0)) + 16.0 * ULP
    return 0.5 * low**2 * (1.0 - 8.0 * ULP), 0.5 * high**2 * (1.0 + 8.0 * ULP)


def product_contraction(row_kernels: RowKernels) -> Bracket:
    """Contraction of a row-by-row channel.

    Seeing a further row only helps, so that the worst pair differs in every row. For R_epsilon
    on rows of one size all such pairs are alike. Others are listed while they are few. Beyond,
    1 - prod A_i <= eta <= 1 - max(prod A_i^2, prod (1 - eta_i)), A_i the least affinity of a row:
    the last bound because what is unexplained of a bit by one row is left to be explained by the
    next (Polyanskiy-Wu 2017 for general networks).
    """
    counts = np.bincount(row_kernels.assignment).tolist()
    kinds = [
        (kernel, count)
        for kernel, count in zip(row_kernels.distinct, counts, strict=True)
        if kernel.shape[0] > 1
    ]
    if not kinds:
        return Bracket(0.0, 0.0)
    kernel, n = kinds[0]
    if len(kinds) == 1 and isinstance(kernel, Symmetric) and n <= _MOST_ROWS:
        return symmetric_contraction(kernel, n)
    if sum(count for _, count in kinds) == 1:
        return kernel.contraction()
    return _listed(kinds) or _bounded(kinds)


def symmetric_contraction(kernel: Symmetric, n: int) -> Bracket:
    """E tanh^2(epsilon K / 2), K how many of n rows speak for x rather than for x'.

    The pair and its reverse are alike, so that b = 1/2 is best. The law of K is a recursion with
    positive terms; an ulp or twelve are granted for each step.
    """
    value = kernels.net_contraction(n, kernel.m, kernel.epsilon)
    error = (24 * n + 256) * ULP
    return Bracket(min(value * (1.0 - error), 1.0), min(value * (1.0 + error), 1.0))


def _listed(kinds: list[tuple[RowKernel, int]]) -> Bracket | None:
    """Contraction over the pairs that differ in every row that tells, None if they are many."""
    distinct = [(np.unique(kernel.matrix, axis=0), count) for kernel, count in kinds]
    told = [(rows, count) for rows, count in distinct if len(rows) > 1]
    entries = math.fsum(count * math.log2(rows.size) for rows, count in told)
    work = math.fsum(count * math.log2((len(rows) - 1) * rows.size) for rows, count in told)
    if entries > _LISTED or work > _TERMS:
        return None
    if not told:
        return Bracket(0.0, 0.0)
    factors = [rows for rows, count in told for _ in range(count)]
    left = right = np.zeros(1, dtype=np.int64)
    for place, factor in enumerate(factors):
        s, t = np.triu_indices(len(factor), 1)
        if place:  # the first row settles which database comes first
            s, t = np.concatenate([s, t]), np.concatenate([t, s])
        left = np.add.outer(left * len(factor), s).reshape(-1)
        right = np.add.outer(right * len(factor), t).reshape(-1)
    rows = factors[0]
    for factor in factors[1:]:
        rows = np.ascontiguousarray(np.kron(rows, factor))
    lower, upper, _, _ = contractions(rows, left, right)
    # Products are off by d = n ulp. At a fixed mean, sqrt g is a norm of P - Q, where an error of
    # d P counts d sqrt(2) at most; the mean is off by d itself.
    off = 2.0 * (len(factors) + 1) * ULP
    low = max(math.sqrt(lower) - off, 0.0) * (1.0 - off)
    high = (math.sqrt(upper) + off) * (1.0 + off) if upper > 0.0 else 0.0
    return Bracket(min(low**2, 1.0), min(high**2, 1.0))


def _bounded(kinds: list[tuple[RowKernel, int]]) -> Bracket:
    """Bounds from each row's own contraction and affinity."""
    found = [(kernel.contraction(), *kernel.hellinger(), count) for kernel, count in kinds]
    lowest = max(eta.lower for eta, _, _, _ in found)
    lower = max(lowest, _together([(low, count) for _, low, _, count in found], 1))
    # Sums of rows that are off by 1e-14 move a root of a contraction by at most as much again.
    off = [((math.sqrt(eta.upper) + _UNSUMMED) ** 2, count) for eta, _, _, count in found]
    upper = min(_together(off, 1), _together([(high + _UNSUMMED, c) for _, _, high, c in found], 2))
    slack = (8 * len(kinds) + 32) * ULP
    return Bracket(min(lower * (1.0 - slack), 1.0), min(upper * (1.0 + slack), 1.0))


def _together(parts: list[tuple[float, int]], power: int) -> float:
    """1 - prod (1 - v)^(power count)."""
    if any(v >= 1.0 for v, _ in parts):
        return 1.0
    return -math.expm1(power * math.fsum(count * math.log1p(-v) for v, count in parts))


def largest_distance(matrix: Floats) -> tuple[float, float]:
    """Largest Hellinger distance H of two rows, rounded down and up."""
    rows = np.unique(matrix, axis=0)
    blocks = [
        _distances(rows, start, min(start + _BLOCK, len(rows)))
        for start in range(0, len(rows), _BLOCK)
    ]
    if len(rows) == 1:
        return 0.0, 0.0
    return max(float(low.max()) for low, _ in blocks), max(float(high.max()) for _, high in blocks)
