"""Individual capacity by listing everything: selections, databases, yes-or-no questions."""

import itertools
import math

import mpmath
import numpy as np


def databases(sizes):
    """All databases, in C order."""
    return list(itertools.product(*(range(m) for m in sizes)))


def selections(matrix, sizes, group):
    """All channels made of one row of the matrix for each value of a group: (B, values, K)."""
    rows = databases(sizes)
    slices = [
        [matrix[x] for x, row in enumerate(rows) if tuple(row[i] for i in group) == values]
        for values in itertools.product(*(range(sizes[i]) for i in group))
    ]
    distinct = [sorted({tuple(map(float, row)) for row in part}) for part in slices]
    return np.array([list(choice) for choice in itertools.product(*distinct)])


def capacities(channels, steps=4000):
    """Bounds on the capacity of each channel from Blahut-Arimoto steps, all at once."""
    count, inputs, _ = channels.shape
    p = np.full((count, inputs), 1.0 / inputs)
    for _ in range(steps):
        q = np.einsum("bx,bxy->by", p, channels)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = channels * np.log(channels / q[:, None])
        D = np.where(channels > 0, terms, 0.0).sum(axis=2)
        low, high = (p * D).sum(axis=1), D.max(axis=1)
        if (high - low).max() < 1e-11:
            break
        p = p * np.exp(D - high[:, None])
        p /= p.sum(axis=1, keepdims=True)
    return low, high


def group_capacity(matrix, sizes, k):
    """Bounds on C_k over all groups and all selections."""
    found = [
        capacities(selections(matrix, sizes, group))
        for group in itertools.combinations(range(len(sizes)), k)
    ]
    return max(low.max() for low, _ in found), max(high.max() for _, high in found)


def information(matrix, law):
    """I(X; Y) of some rows under a law, for these very floats, the law divided by its sum."""
    with mpmath.workdps(60):
        law = [mpmath.mpf(float(p)) for p in law]
        law = [p / mpmath.fsum(law) for p in law]
        rows = [[mpmath.mpf(float(w)) for w in row] for row in matrix]
        total = mpmath.mpf(0)
        for y in range(len(rows[0])):
            q = mpmath.fsum(p * row[y] for p, row in zip(law, rows, strict=True))
            for p, row in zip(law, rows, strict=True):
                if p > 0 and row[y] > 0:
                    total += p * (row[y] * mpmath.log(row[y] / q) - row[y] + q)
                elif p > 0:
                    total += p * q
        return total


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


def gain(matrix, pmf, sizes, i):
    """Largest ln p(y | x_i)/p(y) of one output about row i."""
    rows, pmf = databases(sizes), np.asarray(pmf)
    law = pmf @ matrix
    best = 0.0
    for v in range(sizes[i]):
        weights = np.where([row[i] == v for row in rows], pmf, 0.0)
        if weights.sum() > 0:
            given = weights @ matrix / weights.sum()
            seen = given > 0
            best = max(best, float(np.log(given[seen] / law[seen]).max()))
    return best
