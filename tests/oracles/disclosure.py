"""Plain references for disclosure, hockey-stick curves and the measures that imply each other.

Written from the definitions with loops, Fractions and mpmath; a channel is W[x][y] = p(y|x).
"""

from fractions import Fraction

from mpmath import inf, log

from oracles.information import divergence
from oracles.numbers import exact, num
from oracles.priors import binomial_weights
from oracles.spaces import neighbour_pairs


def support(W, p, y):
    """Return the databases that can cause the output y."""
    return [x for x in range(len(W)) if p[x] > 0 and W[x][y] > 0]


def discloses(W, kernel, p):
    """Return whether some output that can occur has a degenerate posterior of U."""
    values = range(len(kernel[0]))
    prior = [sum(exact(p[x]) * exact(kernel[x][u]) for x in range(len(W))) for u in values]
    if sum(1 for v in prior if v > 0) == 1:
        return False
    for y in range(len(W[0])):
        joint = [
            sum(exact(p[x]) * exact(kernel[x][u]) * exact(W[x][y]) for x in range(len(W)))
            for u in values
        ]
        if sum(1 for v in joint if v > 0) == 1:
            return True
    return False


def labels_kernel(labels):
    """Return labels as a kernel p(u|x), columns in sorted order."""
    values = sorted(set(labels))
    return [[int(v == label) for v in values] for label in labels]


def attribute_law(kernel, p):
    """Return the law of U."""
    return [
        sum(exact(p[x]) * exact(kernel[x][u]) for x in range(len(p))) for u in range(len(kernel[0]))
    ]


def posterior(W, p, y):
    """Return p(x|y) as Fractions."""
    mass = [exact(p[x]) * exact(W[x][y]) for x in range(len(W))]
    return [v / sum(mass) for v in mass]


def live_outputs(W, p):
    """Return the outputs that can occur."""
    return [y for y in range(len(W[0])) if support(W, p, y)]


def hockey_stick_epsilon(W, sizes, delta):
    """Return the least eps >= 0 with delta(eps) <= delta > 0, line by line over sorted ratios."""
    delta, best = exact(delta), Fraction(1)
    for i, j in neighbour_pairs(sizes):
        a, b = [exact(v) for v in W[i]], [exact(v) for v in W[j]]
        if sum((u for u, v in zip(a, b, strict=True) if v == 0), Fraction(0)) > delta:
            return inf
        cells = [(u / v, u, v) for u, v in zip(a, b, strict=True) if v > 0]
        left = sum((u for u, v in zip(a, b, strict=True) if v == 0), Fraction(0)) - delta
        mass = Fraction(0)
        # From the largest ratio down: the curve at a ratio is left - ratio * mass.
        for ratio, u, v in sorted(cells, reverse=True):
            if left - ratio * mass > 0:  # it rose above delta between the last ratio and this one
                break
            left, mass = left + u, mass + v
        if mass > 0 and left > 0:
            best = max(best, left / mass)
    return log(num(best))


def divergence_level(W, p):
    """Return the largest KL divergence of a posterior from the prior."""
    return max(divergence(posterior(W, p, y), p) for y in live_outputs(W, p))


def binomial_tail(n, t, p, more):
    """Return P(Bin(n, p) > t) or P(Bin(n, p) <= t) exactly, p as the float it is."""
    weights = binomial_weights(n, exact(p))
    return sum(weights[t + 1 :] if more else weights[: t + 1], Fraction(0))
