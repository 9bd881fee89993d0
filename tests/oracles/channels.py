"""Channels as full tables."""

from math import prod

from mpmath import exp

from oracles.numbers import num
from oracles.priors import unmix
from oracles.spaces import databases, hamming


def randomised_response(m, eps):
    """Return the m-ary symmetric channel R_eps."""
    stay = 1 / (1 + (m - 1) * exp(-num(eps)))
    return [[stay if x == y else stay * exp(-num(eps)) for y in range(m)] for x in range(m)]


def product_matrix(factors):
    """Return the channel that sends row i through factors[i] (m_i x k_i), independently."""
    inputs, outputs = databases(map(len, factors)), databases([len(f[0]) for f in factors])
    rows = range(len(factors))
    return [[prod(factors[i][x[i]][y[i]] for i in rows) for y in outputs] for x in inputs]


def query_matrix(values, kernel):
    """Return the channel p(.|x) = kernel[values[x]]."""
    return [list(kernel[v]) for v in values]


def e_d_matrix(sizes, eps):
    """Return E_d: every row through its own symmetric channel, all at eps."""
    return product_matrix([randomised_response(m, eps) for m in sizes])


def inverse_output(pmf, sizes, eps):
    """Return p_Y = R^-1 p, signed; at eps = 0, where any law serves a uniform p, p itself."""
    if eps > 0:
        return unmix([num(v) for v in pmf], sizes, exp(-num(eps)))
    if min(pmf) != max(pmf):
        raise ValueError("R is singular at eps = 0")
    return [num(v) for v in pmf]


def e_i_matrix(pmf, sizes, eps):
    """Return E_i: W[x][y] = p_Y(y) R(x, y) / p(x) with p_Y = R^-1 p."""
    p_y = inverse_output(pmf, sizes, eps)
    rows = zip(pmf, e_d_matrix(sizes, eps), strict=True)
    return [[q * r / num(p) for q, r in zip(p_y, row, strict=True)] for p, row in rows]


def tilted_matrix(q, sizes, eps):
    """Return W[x][y] proportional to q(y) e^(-eps d(x, y)), rows normalised."""
    dbs = databases(sizes)
    joint = [
        [num(w) * exp(-num(eps) * hamming(x, y)) for w, y in zip(q, dbs, strict=True)] for x in dbs
    ]
    return [[v / sum(row) for v in row] for row in joint]


def both(first, second):
    """Return the channel that gives both outputs, independent given the database, in C order."""
    return [[a * b for a in v for b in w] for v, w in zip(first, second, strict=True)]
