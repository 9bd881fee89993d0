"""Operators on functions of n bits that no permutation of the bits changes, in diagonal blocks.

The functions of n bits split under permutations of the bits into one part for each
k = 0 .. n/2 (Schur-Weyl duality). In part k an invariant operator A[x, y] acts as one matrix of
n - 2k + 1 rows, numbered by the number of ones i = k .. n - k, and this matrix is repeated
C(n, k) - C(n, k-1) times. The norm of A is the largest norm of a block. Block 0 is the operator on
types: its entry (i, j) is sqrt(C(n, i) / C(n, j)) times the sum of A[x, y] over the y with j ones,
for one x with i ones. If the entry is divided by the overlap r = |x and y| into parts, then the
entry of block k is the same sum with every part times a number c_k(r) in [-1, 1]: a Hahn
polynomial in r, divided by its value at k = 0 (compare Schrijver 2005, Section II).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats


def overlap_factors(n: int, i: int, j: int) -> Floats:
    """Return c[r, k], by which part r of entry (i, j) counts in block k of n bits.

    The overlaps are r = max(0, i + j - n) .. min(i, j), the blocks k = 0 .. min(i, j, n-i, n-j).
    The three-term recurrence runs from k = 0, where all factors are 1. Cost O(n^2).

    Examples
    --------
    >>> overlap_factors(2, 1, 1)  # block 1: f(01) = -f(10)
    array([[ 1., -1.],
           [ 1.,  1.]])
    """
    if min(n - i, n - j) < min(i, j):  # exchange zeros and ones: overlaps move by a constant
        i, j = n - i, n - j
    i, j = max(i, j), min(i, j)
    r = np.arange(j + 1.0)
    c = np.ones((j + 1, j + 1))
    back = 0.0
    for k in range(j):
        ahead = (n + 1 - k) * (i - k) * (j - k) / ((n + 1 - 2 * k) * (n - 2 * k))
        behind = k * (n + 1 - j - k) * (n - i + 1 - k) / ((n + 2 - 2 * k) * (n + 1 - 2 * k))
        k1 = k + 1
        after = k1 * (n + 1 - j - k1) * (n - i + 1 - k1) / ((n + 2 - 2 * k1) * (n + 1 - 2 * k1))
        # How much larger the next part is: the ratio of the numbers of copies.
        growth = (n - 2 * k - 1) * (n - k + 1) / ((k + 1) * (n - 2 * k + 1))
        step = math.sqrt(ahead * after)
        last = c[:, k - 1] if k else 0.0
        c[:, k1] = ((r - (ahead + behind)) * c[:, k] - back * last) / (step * math.sqrt(growth))
        back = step / math.sqrt(growth)
    return c


def blocks(n: int, parts: Mapping[tuple[int, int], Floats]) -> list[Floats]:
    """Return the blocks k = 0 .. n/2 of an operator on n bits.

    ``parts[i, j]`` are the parts of entry (i, j) of block 0, for r = max(0, i + j - n) ..
    min(i, j); entries that are left out are zero. Entries of blocks have an error of at most
    ``block_error(n)`` times the sum of the absolute parts. Cost O(n^4), O(n^3) numbers.
    """
    made = [np.zeros((n - 2 * k + 1, n - 2 * k + 1)) for k in range(n // 2 + 1)]
    for (i, j), part in parts.items():
        for k, entry in enumerate(part @ overlap_factors(n, i, j)):
            made[k][i - k, j - k] = entry
    return made


def block_error(n: int) -> float:
    """Bound the error of the entries of blocks, in units of the sum of absolute parts.

    The factors agree with exact integers to 2e-15 for all n up to 200.
    """
    return (64.0 * n + 256.0) * ULP
