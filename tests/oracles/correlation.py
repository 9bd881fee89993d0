"""Plain references for correlation, contraction and strong data processing, in 50 digits.

W[x][y] = p(y|x), floats counted as they are: nothing is divided by its sum.
"""

from itertools import combinations

from mpmath import eigsy, matrix, mpf, sqrt

from oracles.information import chi_square, divergence, output_law


def maximal_correlation(W, p):
    """Return the second singular value of p(x, y)/sqrt(p(x) p(y)) over the supports."""
    joint = [[mpf(a) * mpf(w) for w in row] for a, row in zip(p, W, strict=True)]
    total = sum(map(sum, joint))
    joint = [[v / total for v in row] for row in joint]
    rows = [sum(row) for row in joint]
    columns = [sum(row[y] for row in joint) for y in range(len(joint[0]))]
    xs = [x for x, v in enumerate(rows) if v > 0]
    ys = [y for y, v in enumerate(columns) if v > 0]
    Q = matrix([[joint[x][y] / sqrt(rows[x] * columns[y]) for y in ys] for x in xs])
    gram = Q * Q.T if len(xs) <= len(ys) else Q.T * Q
    values = sorted(eigsy(gram, eigvals_only=True))
    return sqrt(max(values[-2], mpf(0))) if len(values) > 1 else mpf(0)


def pair_contraction(P, Q, digits=40):
    """Return the largest value of the curve, by golden section: it is concave."""
    ratio = (sqrt(mpf(5)) - 1) / 2
    low, high = mpf(0), mpf(1)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    f, g = chi_square(P, Q, left), chi_square(P, Q, right)
    for _ in range(5 * digits):
        if f < g:
            low, left, f = left, right, g
            right = low + ratio * (high - low)
            g = chi_square(P, Q, right)
        else:
            high, right, g = right, left, f
            left = high - ratio * (high - low)
            f = chi_square(P, Q, left)
    return max(f, g)


def contraction(W):
    """Return the largest contraction over pairs of rows."""
    return max([mpf(0)] + [pair_contraction(P, Q) for P, Q in combinations(W, 2)])


def sdpi_ratio(W, p, q):
    """Return D(qW || pW) / D(q || p)."""
    return divergence(output_law(W, q), output_law(W, p)) / divergence(q, p)


def sdpi_grid(W, p, count):
    """Return the largest ratio over a grid of laws of two inputs, both ends included."""
    grid = [mpf(k) / count for k in range(count + 1)]
    return max(sdpi_ratio(W, p, [t, 1 - t]) for t in grid if abs(t - mpf(p[0])) > mpf(10) ** -6)
