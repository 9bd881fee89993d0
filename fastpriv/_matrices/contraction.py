"""Contraction coefficients of matrices, from pairs of rows.

For a pair of distributions with Hellinger affinity A = sum sqrt(PQ) and H = 1 - A,

    H <= g(1/2) <= max_b g(b) <= H (2 - H):

The first inequality holds because (sqrt P + sqrt Q)^2 >= P + Q, the last because sum PQ/m >= A^2
by Cauchy-Schwarz, m being the mean of P and Q. One matrix product gives the distances of all pairs,
and rules out most pairs of most channels.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import lowered, raised, roundoff, sum_error
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv.results import Bracket

#: Most rows whose pairs are listed by one kernel.
_FEW_ROWS = 64
#: Rows whose distances to all others are taken at once.
_BLOCK = 256
#: Increase of H (2 - H) if the sums of distributions, which are not normalised, are off by 1e-14.
UNSUMMED = 1e-13
#: Fewest terms worth a thread of their own.
_GRAIN = 1 << 15


def contractions(
    rows: Floats, left: Ints, right: Ints, upper: Floats | None = None, floor: float = 0.0
) -> tuple[float, float, Floats, Floats]:
    """Bound the largest contraction of some pairs of rows, and the contraction of every pair.

    Returns both bounds on the largest, then for every pair a lower bound and the weight b that
    attains it. A pair is dropped as soon as it cannot be the largest. ``upper`` may hold known
    bounds for the pairs, ``floor`` a lower bound on the largest.
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
    if len(matrix) <= _FEW_ROWS and matrix.size <= _BLOCK * _FEW_ROWS:
        low, high = kernels.rows_contraction(np.require(matrix, np.float64, ["C", "W"]), UNSUMMED)
        return Bracket(min(low, 1.0), min(high, 1.0))
    rows = np.unique(matrix, axis=0)
    rows = np.ascontiguousarray(rows[:, rows.any(axis=0)])
    floor = most = 0.0
    for start in range(0, len(rows), _BLOCK):
        distances = _distances(rows, start, min(start + _BLOCK, len(rows)))[1]
        # Beyond H (2 - H), a term is at most (sqrt P - sqrt Q)^2, whatever P and Q sum to.
        bounds = np.minimum(2.0 * distances, distances * (2.0 - distances) + UNSUMMED)
        i, j = np.nonzero(np.triu(bounds > floor, start + 1))
        if len(i):
            order = np.argsort(-bounds[i, j])
            i, j = i[order], j[order]
            floor, high, _, _ = contractions(rows, i + start, j, bounds[i, j], floor)
            most = max(most, high)
    return Bracket(min(floor, 1.0), min(max(most, floor), 1.0))


def _distances(rows: Floats, start: int, stop: int) -> tuple[Floats, Floats]:
    """H = |sqrt P - sqrt Q|^2 / 2 between some rows and all rows, rounded down and up.

    The mean of the roots is subtracted first, so that similar rows keep their digits.
    """
    root = np.sqrt(rows)
    root -= root.mean(axis=0)
    norms = np.einsum("xy,xy->x", root, root)
    sums = norms[start:stop, None] + norms
    square = sums - 2.0 * (root[start:stop] @ root.T)
    doubt = sum_error(3 * rows.shape[1], 16) * sums
    low = np.maximum(np.sqrt(np.maximum(square - doubt, 0.0)) - roundoff(16.0), 0.0)
    high = np.sqrt(np.maximum(square + doubt, 0.0)) + roundoff(16.0)
    return lowered(0.5 * low**2, 8.0), raised(0.5 * high**2, 8.0)


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
