"""Plain references for disclosure, hockey-stick curves and the measures that imply each other.

Written from the definitions with loops, Fractions and mpmath; a channel is W[x][y] = p(y|x).
"""

from fractions import Fraction
from math import comb

from mpmath import exp, inf, log, mpf

from oracles import databases, divergence, entropy, exact, log_ratio, neighbour_pairs, num


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


def hockey_stick(W, sizes, eps):
    """Return the largest sum of (W[x][y] - e^eps W[x'][y])_+ over neighbours."""
    factor, outputs = exp(num(eps)), range(len(W[0]))
    sums = [
        sum((max(num(W[i][y]) - factor * num(W[j][y]), mpf(0)) for y in outputs), mpf(0))
        for i, j in neighbour_pairs(sizes)
    ]
    return max([mpf(0), *sums])


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


def leakage(W, p, y):
    """Return the pointwise maximal leakage of an output, ln max_x p(x|y)/p(x)."""
    after = posterior(W, p, y)
    return max(log_ratio(after[x], exact(p[x])) for x in range(len(p)) if p[x] > 0)


def pml_level(W, p):
    """Return the largest leakage over outputs."""
    return max(leakage(W, p, y) for y in live_outputs(W, p))


def row_channel(W, p, sizes, i):
    """Return p(y | x_i) and p(x_i), in Fractions, for values that can occur."""
    dbs, laws, row = databases(sizes), [], []
    for value in range(sizes[i]):
        members = [x for x, db in enumerate(dbs) if db[i] == value]
        mass = sum(exact(p[x]) for x in members)
        if mass > 0:
            row.append(mass)
            laws.append(
                [
                    sum(exact(p[x]) * exact(W[x][y]) for x in members) / mass
                    for y in range(len(W[0]))
                ]
            )
    return laws, row


def strong_dp_level(W):
    """Return the largest ln W[x][y]/W[x'][y] over all pairs: the leakage capacity."""
    pairs = [(u, v) for u in W for v in W]
    return max(log_ratio(u[y], v[y]) for u, v in pairs for y in range(len(W[0])))


def information_privacy_level(W, p):
    """Return the largest |ln p(x|y)/p(x)|."""
    worst = mpf(0)
    for y in live_outputs(W, p):
        for x, q in enumerate(posterior(W, p, y)):
            if p[x] > 0:
                worst = max(worst, log_ratio(q, exact(p[x])), log_ratio(exact(p[x]), q))
    return worst


def divergence_level(W, p):
    """Return the largest KL divergence of a posterior from the prior."""
    return max(divergence(posterior(W, p, y), p) for y in live_outputs(W, p))


def worst_divergence_privacy(W, p):
    """Return H(S) - min_y H(S|Y=y), the paper's worst-case divergence privacy times H(S)."""
    return entropy(p) - min(entropy(posterior(W, p, y)) for y in live_outputs(W, p))


def maximal_leakage(W, p):
    """Return ln sum_y max_x W[x][y] over the support."""
    alive = [x for x in range(len(W)) if p[x] > 0]
    return log(sum(max(num(W[x][y]) for x in alive) for y in range(len(W[0]))))


def binomial_tail(n, t, p, more):
    """Return P(Bin(n, p) > t) or P(Bin(n, p) <= t) exactly, p as the float it is."""
    p = exact(p)
    counts = range(t + 1, n + 1) if more else range(min(t, n) + 1)
    return sum((comb(n, k) * p**k * (1 - p) ** (n - k) for k in counts), Fraction(0))
