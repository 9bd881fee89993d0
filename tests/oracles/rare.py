"""Laws and channels whose chances no double holds, in mpmath, which has no least number."""

from itertools import pairwise, product
from math import comb

from mpmath import exp, log, mpf

from oracles import num


def product_law(rows):
    """Return the chance of every database of independent rows, in C order."""
    found = [mpf(1)]
    for row in rows:
        found = [a * num(b) for a in found for b in row]
    return found


def chain_law(initial, transition, n):
    """Return the chance of every path of a Markov chain, in C order."""
    found = []
    for path in product(range(len(initial)), repeat=n):
        chance = num(initial[path[0]])
        for a, b in pairwise(path):
            chance *= num(transition[a][b])
        found.append(chance)
    return found


def hidden_law(law, W):
    """Return the law of the output of a matrix."""
    return [sum(p * row[y] for p, row in zip(law, W, strict=True)) for y in range(len(W[0]))]


def product_matrix(factors):
    """Return p(y|x) of a channel that treats every row by itself."""
    found = [[mpf(1)]]
    for factor in factors:
        found = [[a * num(b) for a in left for b in right] for left in found for right in factor]
    return found


def tilted_matrix(law, sizes, epsilon):
    """Return W[x, y] proportional to law(y) e^(-epsilon d(x, y))."""
    dbs = list(product(*map(range, sizes)))
    rows = []
    for x in dbs:
        far = [sum(a != b for a, b in zip(x, y, strict=True)) for y in dbs]
        row = [q * exp(-num(epsilon) * d) for q, d in zip(law, far, strict=True)]
        total = sum(row)
        rows.append([v / total for v in row])
    return rows


def binomial_law(n, p):
    """Return the chances of 0 .. n ones among n bits, each one with chance p."""
    return [comb(n, k) * num(p) ** k * (1 - num(p)) ** (n - k) for k in range(n + 1)]


def beta_binomial_law(n, a, b):
    """Return the chances of 0 .. n ones of a beta-binomial law, by ratios of rising factorials."""
    found = [mpf(1)]
    for k in range(n):
        found.append(found[-1] * (n - k) * (k + num(a)) / ((k + 1) * (n - 1 - k + num(b))))
    total = sum(found)
    return [v / total for v in found]


def level(laws, weights):
    """Return the largest ln W[c, y] / p_Y(y) over answers c that can occur and outputs y."""
    worst = mpf(0)
    for y in range(len(laws[0])):
        column = [(num(w[y]), p) for w, p in zip(laws, weights, strict=True) if p > 0]
        mean = sum(w * p for w, p in column)
        if mean > 0:
            worst = max(worst, log(max(w for w, _ in column) / mean))
    return worst


def level_of(laws, weights):
    """Return the largest ln max_c W[c, y] / p_Y(y) over outputs, all answers being possible."""
    worst = mpf(0)
    for y in range(len(laws[0])):
        column = [num(w[y]) for w in laws]
        worst = max(
            worst, log(max(column) / sum(w * p for w, p in zip(column, weights, strict=True)))
        )
    return worst


def bit_level(laws, rest, c):
    """Return the most that an output tells about a bit with chance c or 1 - c of a count.

    ``rest`` is the law of the number of ones among the other bits.
    """
    worst = mpf(0)
    for y in range(len(laws[0])):
        zero, one = (sum(num(laws[s + v][y]) * p for s, p in enumerate(rest)) for v in (0, 1))
        for a, b in ((zero, one), (one, zero)):
            for share in (num(c), 1 - num(c)):
                worst = max(worst, log(a / (share * a + (1 - share) * b)))
    return worst
