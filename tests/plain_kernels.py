"""Bounds inside kernels, called as plain Python, against exact arithmetic.

Run as a script without the compiler: ``NUMBA_DISABLE_JIT=1 python tests/plain_kernels.py``.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
from mpmath import mpf

from fastpriv.kernels import correlation, posterior
from oracles.information import chi_square


def dual_value(z, score, C, logs, edges, b):
    """The value that ``posterior._evaluate`` bounds, errors of the scores included."""
    t = mpf(z[0])
    g = [
        mpf(score[0, x]) + mpf(score[1, x]) + sum(mpf(z[1 + j]) * mpf(v) for j, v in enumerate(row))
        for x, row in enumerate(C.tolist())
    ]
    parts = [
        t * mpmath.log(sum(mpmath.exp(g[x] / t + mpf(logs[x])) for x in range(first, last)))
        for first, last in itertools.pairwise(edges)
    ]
    whole = (1 + t) * mpmath.log(sum(mpmath.exp(part / (1 + t)) for part in parts))
    return whole - t * mpf(b)


def evaluated(rng, large, errors):
    """Return a bound of the kernel and the exact value, for numbers of one of three kinds."""
    edges, columns = np.array([0, 3, 6]), 4
    C = rng.standard_normal((6, columns)) * large
    C[:, 1] = -C[:, 0] * (1.0 + 1e-12 * rng.standard_normal(6))
    z = np.concatenate([[rng.uniform(0.5, 4.0)], np.full(columns, 1.0)])
    C[:, 2:] = rng.standard_normal((6, columns - 2)) if large else 0.0
    score = np.zeros((2, 6))
    score[1] = errors * rng.random(6)
    logs = np.log(rng.integers(1, 9, 6))
    b = float(1.5 * (logs.max() + math.log(6.0)))
    room = np.zeros(6), np.zeros(6), np.zeros(2), np.zeros(2)
    value, _ = posterior._evaluate(z, score, C, logs, edges, b, *room)
    return value, dual_value(z, score, C, logs, edges.tolist(), b)


def check_values():
    """The dual value is rounded up, and by no more than its errors."""
    rng = np.random.default_rng(1)
    for large, errors in ((0.0, 0.0), (1e9, 0.0), (0.0, 1e-3)):
        for _ in range(60):
            value, exact = evaluated(rng, large, errors)
            assert value >= exact, (large, errors)
            assert value <= exact + 1e-12 + 1e-13 * large + 1.1 * errors, (large, errors)


#: No two outputs are known to be in an order.
NO_ORDER = np.empty((0, 2), np.int64)


def posterior_chance(chance, ratio):
    """Chance after an output that multiplies the odds."""
    return chance * ratio / (1 - chance + chance * ratio)


def check_ranges():
    """Narrowing ranges of posteriors never leaves out a true one."""
    rng = np.random.default_rng(2)
    for _ in range(200):
        chance = Fraction(float(rng.uniform(0.05, 0.95)))
        ratios = np.array([1.0, *np.exp(rng.uniform(-2.0, 2.0, 3))])
        exact = [posterior_chance(chance, Fraction(r)) for r in ratios.tolist()]
        low, high = np.array([float(chance), 0.0, 0.0, 0.0]), np.array([float(chance), 1, 1, 1.0])
        with np.errstate(divide="ignore", invalid="ignore"):
            assert posterior._narrow(low, high, NO_ORDER, ratios, ratios)
        for a, q, c in zip(low.tolist(), exact, high.tolist(), strict=True):
            assert Fraction(a) <= q <= Fraction(c)
            assert c - a <= 1e-12


def curve_top(P, Q):
    """Largest value of the curve of two laws, from below, by bisection of its slope."""
    low, high = mpf(0), mpf(1)
    pairs = [(mpf(u), mpf(v)) for u, v in zip(P, Q, strict=True) if u + v > 0]
    for _ in range(140):
        b = (low + high) / 2
        means = [(u - v, b * u + (1 - b) * v, u, v) for u, v in pairs]
        rise = sum((1 - b) ** 2 * v * (d / m) ** 2 for d, m, _, v in means)
        fall = sum(b**2 * u * (d / m) ** 2 for d, m, u, _ in means)
        low, high = (b, high) if rise > fall else (low, b)
    return max(chi_square(P, Q, low), chi_square(P, Q, high))


def check_curves():
    """The contraction of two rows is between the ends of the kernel, which are close."""
    rng = np.random.default_rng(3)
    for number in range(60):
        P, Q = rng.dirichlet([0.3 + number % 3] * (2 + number % 5), size=2)
        if number % 4 == 0:
            Q = P * (1.0 + 1e-6 * rng.standard_normal(P.size))
        with np.errstate(all="ignore"):
            low, high, _ = correlation._pair(P, Q, 0.0)
        exact = curve_top(P.tolist(), Q.tolist())
        assert low <= exact <= high
        assert high <= exact * (1 + mpf("1e-9")) + mpf("1e-250")
        assert low >= exact * (1 - mpf("1e-9"))


def check_all():
    """Check everything here."""
    with mpmath.workdps(60):
        check_values()
        check_curves()
    check_ranges()


if __name__ == "__main__":
    check_all()
