"""Distortion and the levels that compare databases."""

from itertools import product

from mpmath import exp, inf, log, mpf

from oracles.information import output_law
from oracles.numbers import log_ratio, num
from oracles.spaces import databases, hamming, neighbour_pairs


def distortion_metric(W, p, d):
    """Return the expected d[X][Y]."""
    cells = product(range(len(W)), range(len(W[0])))
    return sum(num(p[x]) * num(W[x][y]) * num(d[x][y]) for x, y in cells)


def distortion(W, p, sizes):
    """Return the expected Hamming distance between X and Y."""
    dbs = databases(sizes)
    return distortion_metric(W, p, [[hamming(x, y) for y in dbs] for x in dbs])


def dp_level(W, sizes):
    """Return the largest ln W[x][y]/W[x'][y] over neighbours and outputs."""
    pairs, outputs = neighbour_pairs(sizes), range(len(W[0]))
    return max([mpf(0)] + [log_ratio(W[i][y], W[j][y]) for i, j in pairs for y in outputs])


def strong_dp_level(W):
    """Return the largest ln W[x][y]/W[x'][y] over all pairs: the leakage capacity."""
    columns = [column for column in zip(*W, strict=True) if max(column) > 0]
    return max(log_ratio(max(column), min(column)) for column in columns)


def identifiability_level(W, p, sizes):
    """Return the largest ln p(x|y)/p(x'|y) over neighbours and outputs with p_Y(y) > 0."""
    p_y = output_law(W, p)
    seen = [y for y in range(len(p_y)) if p_y[y] > 0]
    posterior = [[num(p[x]) * num(W[x][y]) / p_y[y] for y in seen] for x in range(len(W))]
    return dp_level(posterior, sizes)


def maximal_leakage(W):
    """Return ln of the sum of column maxima."""
    return log(sum(max(map(num, column)) for column in zip(*W, strict=True)))


def hockey_stick(W, sizes, eps):
    """Return the largest sum of (W[x][y] - e^eps W[x'][y])_+ over neighbours."""
    factor, outputs = exp(num(eps)), range(len(W[0]))
    sums = [
        sum((max(num(W[i][y]) - factor * num(W[j][y]), mpf(0)) for y in outputs), mpf(0))
        for i, j in neighbour_pairs(sizes)
    ]
    return max([mpf(0), *sums])


def h(eps, n, m):
    """Return n / (1 + e^eps / (m - 1)), the distortion of E_d and E_i; 0 for m = 1."""
    return mpf(0) if m == 1 else n / (1 + exp(num(eps)) / (m - 1))


def h_inverse(D, n, m):
    """Return ln(n/D - 1) + ln(m - 1) for m >= 2: inf at D = 0, -inf at D = n."""
    return {0: inf, n: -inf}[D] if D in (0, n) else log(n / num(D) - 1) + log(m - 1)
