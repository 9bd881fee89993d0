"""Laws, channels and formulas that the tests of the oracles share."""

import random
from fractions import Fraction as F  # noqa: N817
from itertools import product

import numpy as np
from mpmath import exp, log, mpf
from scipy.optimize import linprog

import oracles as o

SPACES = [(2,), (3,), (2, 2), (3, 3), (2, 3), (3, 1, 2), (2, 2, 2), (4, 2)]


def close(a, b, tol="1e-28"):
    """Return whether two numbers agree, infinities included."""
    a, b = o.num(a), o.num(b)
    return a == b or abs(a - b) <= mpf(tol) * max(1, abs(b))


def random_law(rng, size):
    """Return a full-support law in Fractions, away from zero."""
    weights = [rng.randint(5, 100) for _ in range(size)]
    return [F(w, sum(weights)) for w in weights]


def random_channel(rng, inputs, outputs):
    """Return a random positive channel in Fractions."""
    return [random_law(rng, outputs) for _ in range(inputs)]


def row_entropy(m, eps):
    """Return the entropy of one row of R_eps."""
    g = 1 + (m - 1) * exp(-eps)
    return log(g) + eps * (m - 1) * exp(-eps) / g


def h_mixed(eps, sizes):
    """Return h for rows of their own sizes."""
    return sum(o.h(eps, 1, m) for m in sizes)


def priors():
    """Return (sizes, pmf) pairs, random and full-support."""
    rng = random.Random(7)
    return [(s, random_law(rng, len(o.databases(s)))) for s in SPACES for _ in range(2)]


def lp_optimum(pmf, sizes, eps, notion):
    """Return the optimum of PD-DP or PD-I by a linear program, in floats."""
    dbs = o.databases(sizes)
    size, p = len(dbs), [float(v) for v in pmf]
    scale = p if notion == "dp" else [1.0] * size  # variables: channel, or joint law
    cost = [scale[x] * o.hamming(dbs[x], dbs[y]) for x in range(size) for y in range(size)]
    total = [1.0] * size if notion == "dp" else p
    ratio = []
    for (i, j), y in product(o.neighbour_pairs(sizes), range(size)):
        row = np.zeros(size * size)
        row[i * size + y], row[j * size + y] = 1, -float(exp(eps))
        ratio.append(row)
    sums = np.kron(np.eye(size), np.ones(size))
    result = linprog(cost, np.array(ratio), np.zeros(len(ratio)), sums, total, method="highs")
    return result.fun if result.success else None
