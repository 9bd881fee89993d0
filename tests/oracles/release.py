"""What E_d on records does, from its definition: loops and fractions, nothing of fastpriv."""

import math


def levels(matrix, prior):
    """Every level of one record that goes through a matrix, any two records being neighbours."""
    size, outputs = len(matrix), range(len(matrix[0]))
    law = [sum(prior[x] * matrix[x][y] for x in range(size)) for y in outputs]
    pairs = [(x, z) for x in range(size) for z in range(size) if x != z]
    return {
        "dp": max(
            (math.log(matrix[x][y] / matrix[z][y]) for x, z in pairs for y in outputs), default=0.0
        ),
        "identifiability": max(
            (
                math.log(prior[x] * matrix[x][y] / (prior[z] * matrix[z][y]))
                for x, z in pairs
                for y in outputs
            ),
            default=0.0,
        ),
        "maximal-leakage": math.log(sum(max(row[y] for row in matrix) for y in outputs)),
        "pml": max(math.log(max(row[y] for row in matrix) / law[y]) for y in outputs),
        # For any law of records: reached by the uniform one, the matrix being symmetric.
        "channel-capacity": sum(
            matrix[x][y] / size * math.log(matrix[x][y] * size)
            for x in range(size)
            for y in outputs
        ),
        "mutual-information": sum(
            prior[x] * matrix[x][y] * math.log(matrix[x][y] / law[y])
            for x in range(size)
            for y in outputs
        ),
    }


def estimate(matrix, counts, groups):
    """Unbiased counts of groups of values and their variances, for given true counts' estimate.

    ``groups[x]`` is the group of value x. Gaussian elimination by hand: W g = f for each group.
    """
    inverse = invert(matrix)
    size = len(matrix)
    true = [sum(counts[y] * inverse[y][x] for y in range(size)) for x in range(size)]
    found = []
    for t in range(max(groups) + 1):
        g = [sum(inverse[y][x] for x in range(size) if groups[x] == t) for y in range(size)]
        spread = [
            sum(matrix[x][y] * g[y] ** 2 for y in range(size)) - (groups[x] == t)
            for x in range(size)
        ]
        found.append(
            (
                sum(counts[y] * g[y] for y in range(size)),
                sum(true[x] * spread[x] for x in range(size)),
                sum(counts) * min(spread),
            )
        )
    return found


def exact_variance(matrix, true, groups, t):
    """Variance of the estimate of group t for a fixed table with these true counts."""
    inverse = invert(matrix)
    size = len(matrix)
    g = [sum(inverse[y][x] for x in range(size) if groups[x] == t) for y in range(size)]
    total = 0.0
    for x in range(size):
        mean = sum(matrix[x][y] * g[y] for y in range(size))
        total += true[x] * sum(matrix[x][y] * (g[y] - mean) ** 2 for y in range(size))
    return total


def invert(matrix):
    """Gauss-Jordan with pivoting."""
    size = len(matrix)
    work = [list(row) + [float(i == j) for j in range(size)] for i, row in enumerate(matrix)]
    for k in range(size):
        pivot = max(range(k, size), key=lambda i: abs(work[i][k]))
        work[k], work[pivot] = work[pivot], work[k]
        work[k] = [value / work[k][k] for value in work[k]]
        for i in range(size):
            if i != k:
                factor = work[i][k]
                work[i] = [a - factor * b for a, b in zip(work[i], work[k], strict=True)]
    return [row[size:] for row in work]
