"""Plain references for Wu-Xia-He 2020: loops, mpmath, no fastpriv."""

import itertools
import math

import mpmath as mp
import numpy as np

from oracles.channels import both
from oracles.information import entropy
from oracles.optima import capacities
from oracles.spaces import databases


def flip_capacity(p):
    """ln 2 - H(p) of the exact value of a float."""
    with mp.workdps(120):
        p = mp.mpf(p)
        return mp.log(2) - entropy([p, 1 - p])


def exponential_law(k, rate, dps=400):
    """Chances of ranks 0 .. k - 1."""
    with mp.workdps(dps):
        weights = [mp.e ** (-mp.mpf(rate) * j) for j in range(k)]
        total = mp.fsum(weights)
        return [w / total for w in weights]


def exponential_entropy(k, rate, dps=400):
    with mp.workdps(dps):
        return entropy(exponential_law(k, rate, dps))


def exponential_row(distances, rate):
    """Definition 15, word for word: sort the outputs by distance, e^(-rate j) for the j-th."""
    order = sorted(range(len(distances)), key=lambda y: (distances[y], y))
    row = [0.0] * len(distances)
    total = sum(math.exp(-rate * j) for j in range(len(order)))
    for j, y in enumerate(order):
        row[y] = math.exp(-rate * j) / total
    return row


def best_capacity(selections, tolerance):
    """Largest capacity over lists of rows, each list looked at once."""
    lower, upper = 0.0, 0.0
    for rows in {tuple(sorted({tuple(row) for row in rows})) for rows in selections}:
        (low,), (high,) = capacities(np.array([rows]), tolerance)
        lower, upper = max(lower, low), max(upper, high)
    return lower, upper


def cross(matrix, k, tolerance=1e-7):
    """Proposition 6: any k rows of the matrix."""
    rows = sorted({tuple(row) for row in matrix})
    return best_capacity(itertools.combinations_with_replacement(rows, k), tolerance)


def paired(first, sizes_1, second, sizes_2):
    """Laws for two data sets, person i holding the pair (a, b) as a * m_2 + b."""
    n = len(sizes_1)
    x1, x2 = databases(sizes_1), databases(sizes_2)
    laws = []
    for x in databases([a * b for a, b in zip(sizes_1, sizes_2, strict=True)]):
        one = tuple(x[i] // sizes_2[i] for i in range(n))
        two = tuple(x[i] % sizes_2[i] for i in range(n))
        laws += both([first[x1.index(one)]], [second[x2.index(two)]])
    return laws


def weakly_symmetric(matrix, sizes):
    """Definition 13 by trying every selection."""
    all_x = databases(sizes)
    for i, m in enumerate(sizes):
        slices = [[matrix[j] for j, x in enumerate(all_x) if x[i] == a] for a in range(m)]
        for rows in itertools.product(*slices):
            sums = [sum(column) for column in zip(*rows, strict=True)]
            if max(sums) - min(sums) < 1e-11:
                return True
    return False


def gaussian_density(points, weights):
    def density(y):
        return mp.fsum(p * mp.npdf(y, x) for x, p in zip(points, weights, strict=True))

    return density


def gaussian_divergence(x, points, weights):
    """KL(N(x, 1) || mixture) and its derivative in x, by adaptive quadrature in 20 digits."""
    with mp.workdps(20):
        density = gaussian_density([mp.mpf(v) for v in points], [mp.mpf(v) for v in weights])
        x = mp.mpf(x)

        def term(s):
            return mp.npdf(s) * (mp.log(mp.npdf(s)) - mp.log(density(x + s)))

        cuts = list(range(-10, 11, 4))
        return mp.quad(term, cuts), mp.quad(lambda s: s * term(s), cuts)


def two_point_capacity(a):
    """a^2 - E ln cosh(a^2 + a Z): even odds on -a and a behind standard normal noise."""
    with mp.workdps(25):
        a = mp.mpf(a)
        cuts = list(range(-12, 13, 4))
        return a * a - mp.quad(lambda z: mp.npdf(z) * mp.log(mp.cosh(a * a + a * z)), cuts)


def krichevsky_trofimov(symbols, kinds, contexts):
    """Nats of the sequential code, one symbol after the other."""
    counts, total = {}, 0.0
    for symbol, context in zip(symbols, contexts, strict=True):
        seen = counts.setdefault(context, [0] * kinds)
        total -= math.log((seen[symbol] + 0.5) / (sum(seen) + 0.5 * kinds))
        seen[symbol] += 1
    return total
