"""Laws of databases as full lists, and what the papers read off them."""

from fractions import Fraction
from itertools import pairwise, product
from math import comb, factorial, prod

from mpmath import beta, inf, log, mpf

from oracles.numbers import exact, log_ratio, num
from oracles.spaces import databases, lines, neighbour_pairs, shell


def product_pmf(marginals):
    """Return the pmf of independent rows."""
    return [prod(choice) for choice in product(*marginals)]


def exchangeable_pmf(weights, n):
    """Return the pmf over n bits with weights[k] = P(k ones), spread evenly over the class."""
    return [weights[sum(x)] / comb(n, sum(x)) for x in databases([2] * n)]


def exchangeable_pmf_general(counts, n, m):
    """Return the pmf of n m-valued rows from {(count of 0, ..., count of m-1): probability}."""
    kinds = [tuple(x.count(a) for a in range(m)) for x in databases([m] * n)]
    return [counts.get(k, 0) / (factorial(n) // prod(map(factorial, k))) for k in kinds]


def markov_pmf(initial, transition, n):
    """Return the pmf of a homogeneous Markov chain of n rows, transition[from][to]."""
    dbs = databases([len(initial)] * n)
    return [initial[x[0]] * prod(transition[a][b] for a, b in pairwise(x)) for x in dbs]


def binomial_weights(n, p):
    """Return P(k ones), k = 0..n, of n bits that are one with probability p."""
    return [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def beta_binomial_weights(n, a, b):
    """Return P(k ones), k = 0..n, of the beta-binomial law."""
    a, b = num(a), num(b)
    return [comb(n, k) * beta(k + a, n - k + b) / beta(a, b) for k in range(n + 1)]


def epsilon_x(pmf, sizes):
    """Return the largest ln p(x)/p(x') over neighbours, 0 if there are none."""
    return max([mpf(0)] + [log_ratio(pmf[i], pmf[j]) for i, j in neighbour_pairs(sizes)])


def epsilon_hat(pmf, sizes):
    """Return the largest ln(1/p(x_i|x_-i) - m_i + 1), at least 0."""
    level = mpf(0)
    for axis, m in enumerate(sizes):
        for line in lines(axis, sizes):
            least, mass = min(exact(pmf[i]) for i in line), sum(exact(pmf[i]) for i in line)
            if m > 1 and mass > 0:  # the least conditional probability gives the largest value
                level = max(level, inf if least == 0 else log(num(mass / least - m + 1)))
    return level


def unmix(pmf, sizes, r):
    """Return R^-1 pmf with r = e^-eps < 1: on one row, stay g - r and move -r, both over 1 - r."""
    for axis, m in enumerate(sizes):
        stay, move, new = (1 + (m - 2) * r) / (1 - r), -r / (1 - r), {}
        for line in lines(axis, sizes):
            for i in line:
                new[i] = sum((stay if i == j else move) * pmf[j] for j in line)
        pmf = [new[i] for i in range(len(pmf))]
    return pmf


def epsilon_tilde(pmf, sizes):
    """Return the least eps >= 0 at which R^-1 pmf is non-negative, from above to 1e-31."""
    # A zero anywhere: inf. At finite eps all entries of R are positive, so p = R q for a law q has
    # none. R^-1 p tends to p as eps -> inf, yet has a negative entry (maybe elsewhere) all the way.
    # Full support: finite, as R^-1 p tends to p > 0; 0 exactly if uniform, as R_eps q tends to that
    # as eps -> 0. In between it is upward closed: R_eps = R_eps' S, S stochastic, for eps' > eps.
    # In r = e^-eps all is rational, so signs are exact (equal rows: entries of order 1e-31^n).
    p = [exact(v) for v in pmf]
    if min(p) == max(p) or min(p) == 0:
        return mpf(0) if min(p) == max(p) else inf
    low, high = Fraction(1, 2), Fraction(1)  # r = 1 is infeasible here
    while min(unmix(p, sizes, low)) < 0:
        low, high = low / 2, low
    while high - low > low / 10**31:
        middle = (low + high) / 2
        low, high = (middle, high) if min(unmix(p, sizes, middle)) >= 0 else (low, middle)
    return -log(num(low))


def shell_profile(pmf, y_index, sizes):
    """Return the mass of the shell at each distance l = 0..n from y."""
    shells = [shell(y_index, k, sizes) for k in range(len(sizes) + 1)]
    return [sum((num(pmf[i]) for i in indices), mpf(0)) for indices in shells]
