"""Pairs of databases of bits before a channel that no permutation of the rows changes.

Two databases x, x' have a, b, c, d rows with (1, 1), (1, 0), (0, 1), (0, 0). An output y that has
alpha, beta, gamma, delta ones among these rows has overlaps alpha + beta with x and alpha + gamma
with x', and there are C(a, alpha) C(b, beta) C(c, gamma) C(d, delta) such outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from fastpriv._core.validation import Floats
from fastpriv._matrices.contraction import contractions
from fastpriv._structure.johnson import log_binomial_table
from fastpriv.results import Bracket


def listed_outputs(n: int) -> int:
    """Return how many kinds of outputs all kinds of pairs have."""
    return math.comb(n + 7, 7)


def pair_laws(entries: Floats) -> Iterator[Floats]:
    """Yield the laws of x and x' over kinds of outputs, (2, K), for every kind of pair.

    ``entries[i, j, t]`` is p(y|x) for i ones in x, j in y and t in both. A pair comes in one order.
    """
    n = len(entries) - 1
    binomials = log_binomial_table(n)
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
        # H = |sqrt P - sqrt Q|^2 / 2 bounds the contraction by 2 H, whatever the laws sum to.
        roots = np.sqrt(laws)
        bound = float(((roots[0] - roots[1]) ** 2).sum()) * (1.0 + 2.0**-40)
        if bound > low:
            low, top, _, _ = contractions(laws, left, right, np.array([bound]), low)
            high = max(high, top)
    return Bracket(min(low, 1.0), min(max(high, low), 1.0))
