"""Individual capacity by listing everything: selections, databases, yes-or-no questions."""

import itertools
import math

import mpmath
import numpy as np

from oracles.optima import capacities
from oracles.spaces import databases


def selections(matrix, sizes, group):
    """All channels made of one row of the matrix for each value of a group: (B, values, K)."""
    rows = databases(sizes)
    slices = [
        [matrix[x] for x, row in enumerate(rows) if tuple(row[i] for i in group) == values]
        for values in itertools.product(*(range(sizes[i]) for i in group))
    ]
    distinct = [sorted({tuple(map(float, row)) for row in part}) for part in slices]
    return np.array([list(choice) for choice in itertools.product(*distinct)])


def group_capacity(matrix, sizes, k):
    """Bounds on C_k over all groups and all selections."""
    found = [
        capacities(selections(matrix, sizes, group))
        for group in itertools.combinations(range(len(sizes)), k)
    ]
    return max(low.max() for low, _ in found), max(high.max() for _, high in found)


def opposite(n, m, epsilon):
    """Capacity of two databases that differ in all n rows, by adding up all outputs' classes."""
    with mpmath.workdps(60):
        r = mpmath.exp(-mpmath.mpf(epsilon))
        stay = 1 / (1 + (m - 1) * r)
        total = mpmath.mpf(0)
        for right in range(n + 1):
            for wrong in range(n - right + 1):
                rest = n - right - wrong
                if rest and m == 2:
                    continue
                ways = math.comb(n, right) * math.comb(n - right, wrong)
                one = stay**n * r ** (wrong + rest) * (m - 2) ** rest
                other = stay**n * r ** (right + rest) * (m - 2) ** rest
                total += ways * one * mpmath.log(2 * one / (one + other))
        return total


def copies(n, m, epsilon):
    """Information about a uniform value in n noisy copies of it, by listing all m^n outputs."""
    with mpmath.workdps(60):
        r = mpmath.exp(-mpmath.mpf(epsilon))
        stay = 1 / (1 + (m - 1) * r)
        total = mpmath.mpf(0)
        for output in itertools.product(range(m), repeat=n):
            likes = [stay**n * r ** (n - output.count(v)) for v in range(m)]
            mean = sum(likes) / m
            total += sum(like * mpmath.log(like / mean) for like in likes) / m
        return total
