"""Plain references for pointwise leakage, from the definitions, at 50 digits."""

from itertools import product

from mpmath import inf, log, mpf

from oracles.information import entropy, output_law
from oracles.numbers import normal, num
from oracles.priors import product_pmf
from oracles.spaces import databases


def pml(W, p):
    """Return ln max over x in the support of W[x][y] / p_Y(y) for every y, 0 where p_Y(y) = 0."""
    p = normal(p)
    q = output_law(W, p)
    seen = [x for x in range(len(p)) if p[x] > 0]
    return [
        log(max(num(W[x][y]) for x in seen) / q[y]) if q[y] > 0 else mpf(0) for y in range(len(q))
    ]


def below(W, p):
    """Return ln p_Y(y) / min over x in the support of W[x][y] for every y."""
    p = normal(p)
    q = output_law(W, p)
    least = [min(num(W[x][y]) for x in range(len(p)) if p[x] > 0) for y in range(len(q))]
    return [
        mpf(0) if b == 0 else inf if a == 0 else log(b / a) for a, b in zip(least, q, strict=True)
    ]


def information_privacy(W, p):
    """Return the largest |ln p(x|y)/p(x)| over x in the support and y that occur."""
    return max(pml(W, p) + below(W, p))


def given(p, keep):
    """Return the law given the databases with keep[x] true."""
    return normal([v if k else 0 for v, k in zip(p, keep, strict=True)])


def row_matrix(W, p, sizes, i):
    """Return P(y | D_i = v) as rows (zeros where v never occurs), and the law of D_i."""
    p, dbs = normal(p), databases(sizes)
    marginal = [sum(p[j] for j, x in enumerate(dbs) if x[i] == v) for v in range(sizes[i])]
    rows = []
    for v in range(sizes[i]):
        if marginal[v] > 0:
            rows.append(output_law(W, given(p, [x[i] == v for x in dbs])))
        else:
            rows.append([mpf(0)] * len(W[0]))
    return rows, marginal


def row_pml(W, p, sizes, i):
    """Return l(D_i -> y) for every y."""
    return pml(*row_matrix(W, p, sizes, i))


def worst_gain(W, p):
    """Return the largest H(X) - H(X | Y = y) over y that occur."""
    p = normal(p)
    q = output_law(W, p)
    gains = [mpf(0)]
    for y in range(len(q)):
        if q[y] > 0:
            gains.append(entropy(p) - entropy([p[x] * num(W[x][y]) / q[y] for x in range(len(p))]))
    return max(gains)


def bernoulli_level(W, n, c, i=None):
    """Return the largest leakage over the corners of independent bits, chances c or 1 - c."""
    worst = mpf(0)
    for chances in product([num(c), 1 - num(c)], repeat=n):
        pmf = product_pmf([[1 - chance, chance] for chance in chances])
        worst = max(worst, *(pml(W, pmf) if i is None else row_pml(W, pmf, [2] * n, i)))
    return worst
