"""Maximal correlation and contraction of bits if no permutation of the records matters.

The functions of n bits split into parts that permutations do not mix. Part k = 0 .. n/2 has one
copy for every number of ones k .. n - k. The copies are all spanned alike, by

    f(x) = prod over l <= k of (x_(2l-1) - x_(2l)), restricted to the x with i ones,

and its permutations. The operator g -> E(g(Y) | X = .) turns a copy into copies, so it
is one matrix of order n - 2k + 1 for each part (Schrijver 2005). Evaluated at x = (1, 0, ...,
1, 0, rest), the pairs (y_(2l-1), y_(2l)) take k-th differences of p(y|x) in the overlap of x and y,

    c_k[i, j] = sum_h C(i-k, h) C(n-i-k, j-k-h) (D^k W_ij)(h),

where W_ij(t) = p(y|x) for i ones in x, j in y, t in both. Part 0 is the channel from type to type.
Without signs, the same sums are entries of an operator of norm at most 1. So relative errors of the
terms are absolute errors of the norm.

The contraction is the largest over kinds of pairs of databases. Two databases x, x' have a, b, c, d
records with (1, 1), (1, 0), (0, 1), (0, 0). An output y that has alpha, beta, gamma, delta ones
among these records has overlaps alpha + beta with x and alpha + gamma with x', and there are
C(a, alpha) C(b, beta) C(c, gamma) C(d, delta) such outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fastpriv._core.rounding import raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv._matrices.contraction import contractions
from fastpriv._matrices.correlation import norm_bounds
from fastpriv._structure.counts import log_binomial_table
from fastpriv.results import Bracket


def block_norms(entries: Floats, log_p: Floats, log_q: Floats) -> Bracket:
    """Return the largest norm of parts k >= 1 of a channel on bits.

    Parameters
    ----------
    entries : array (n + 1, n + 1, n + 1)
        p(y|x) for i ones in x, j in y and t in both, 0 if there are no such pairs.
    log_p, log_q : arrays of length n + 1
        Log-probability of one x with i ones, and of one y with j ones.

    Notes
    -----
    Cost O(n^4) for the entries, n/2 matrices of order up to n to bound.
    """
    n = len(log_p) - 1
    binomials = log_binomial_table(n + 1)
    with np.errstate(invalid="ignore"):
        scale = 0.5 * (log_p[:, None] - log_q)
    scale[~np.isfinite(log_p)] = -math.inf
    scale[:, ~np.isfinite(log_q)] = -math.inf
    differences: Any = entries
    lower = upper = 0.0
    for k in range(1, n // 2 + 1):
        differences = np.diff(differences, axis=2)
        block = _block(differences, binomials, scale, n, k)
        # Sums of squares bound the norm, and rule most parts out.
        if raised(float(np.linalg.norm(block)), block.size) > lower:
            low, high = norm_bounds(block)
            lower, upper = max(lower, low), max(upper, high)
    # Binomials of up to 2^n have logarithms of an ulp of n each; eight of them are added.
    error = roundoff(16 * n + 256)
    return Bracket(max(lower - error, 0.0), upper + error if n > 1 else 0.0)


def _block(differences: Floats, binomials: Floats, scale: Floats, n: int, k: int) -> Floats:
    """Return the matrix of part k between unit vectors, from k-th differences."""
    size = n - 2 * k + 1
    ones = np.arange(size)  # beyond k, in x along the first axis, in y along the second
    both = ones[None, None, :]
    rest = ones[None, :, None] - both
    missing = n - 2 * k - ones
    chosen = binomials[ones[:, None, None], np.broadcast_to(both, (1, 1, size))]
    outside = binomials[missing[:, None, None], np.where(rest >= 0, rest, n + 1)]
    copies = 0.5 * binomials[n - 2 * k, ones]
    logs = (
        chosen
        + outside
        + (copies[:, None] - copies + scale[k : n - k + 1, k : n - k + 1])[..., None]
    )
    part = differences[k : n - k + 1, k : n - k + 1, :size]
    return np.asarray((np.exp(logs) * part).sum(axis=2))


def listed_outputs(n: int) -> int:
    """Return how many kinds of outputs all kinds of pairs have."""
    return math.comb(n + 7, 7)


def pair_laws(entries: Floats) -> Iterator[Floats]:
    """Yield the distributions of x and x' over kinds of outputs, (2, K), for every kind of pair.

    ``entries[i, j, t]`` is p(y|x) for i ones in x, j in y and t in both. A pair comes in one order.
    """
    n = len(entries) - 1
    binomials = log_binomial_table(n + 1)
    for a in range(n + 1):
        for b in range(n - a + 1):
            for c in range(min(b, n - a - b) + 1):
                if b:
                    sizes = a, b, c, n - a - b - c
                    chosen = np.indices([size + 1 for size in sizes]).reshape(4, -1)
                    logs = sum(binomials[size, k] for size, k in zip(sizes, chosen, strict=True))
                    ones = chosen.sum(axis=0)
                    first = entries[a + b, ones, chosen[0] + chosen[1]]
                    second = entries[a + c, ones, chosen[0] + chosen[2]]
                    yield np.exp(logs) * np.stack([first, second])


def pair_contraction(entries: Floats) -> Bracket:
    """Return the largest contraction of two databases. Cost O(n^7)."""
    left, right = np.zeros(1, np.int64), np.ones(1, np.int64)
    low = high = 0.0
    for laws in pair_laws(entries):
        laws = np.ascontiguousarray(laws[:, laws.any(axis=0)])
        # H = |sqrt P - sqrt Q|^2 / 2 bounds the contraction by 2 H for vectors of any sum.
        roots = np.sqrt(laws)
        bound = float(((roots[0] - roots[1]) ** 2).sum()) * (1.0 + 2.0**-40)
        if bound > low:
            low, top, _, _ = contractions(laws, left, right, np.array([bound]), low)
            high = max(high, top)
    return Bracket(min(low, 1.0), min(max(high, low), 1.0))
