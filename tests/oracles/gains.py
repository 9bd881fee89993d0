"""Vulnerabilities by the definitions, in Fractions: gain[w][x], a law p, a channel W[x][y]."""

from fractions import Fraction
from itertools import product


def exact(values):
    """Nested lists of the exact values of floats."""
    return [exact(v) for v in values] if hasattr(values, "__len__") else Fraction(values)


def vulnerability(p, gain):
    """Best expected gain without an output."""
    return max(sum(g * q for g, q in zip(row, p, strict=True)) for row in gain)


def posterior_vulnerability(W, p, gain):
    """Expected gain of the best action after each output."""
    total = Fraction(0)
    for y in range(len(W[0])):
        total += max(sum(row[x] * p[x] * W[x][y] for x in range(len(p))) for row in gain)
    return total


def identity(size):
    """Gain of a right guess."""
    return [[Fraction(int(w == x)) for x in range(size)] for w in range(size)]


def added_gain(W, p, gain, strategy):
    """Expected gain of a given action after each output, less the best without any."""
    after = sum(gain[w][x] * p[x] * W[x][y] for y, w in enumerate(strategy) for x in range(len(p)))
    return after - vulnerability(p, gain)


def subsets_capacity(W):
    """Largest additive Bayes leakage over priors: some uniform law on a set attains it."""
    best = Fraction(0)
    for mask in product([False, True], repeat=len(W)):
        rows = [row for row, kept in zip(W, mask, strict=True) if kept]
        if rows:
            best = max(best, (sum(map(max, zip(*rows, strict=True))) - 1) / len(rows))
    return best
