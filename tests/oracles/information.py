"""Entropy, divergence and information, with 0 ln 0 = 0."""

from itertools import product

from mpmath import log, mpf

from oracles.numbers import normal, num, nums


def output_law(W, p):
    """Return p_Y(y) = sum over x of p(x) W[x][y]."""
    return [sum(num(p[x]) * num(W[x][y]) for x in range(len(W))) for y in range(len(W[0]))]


def entropy(p):
    """Return the Shannon entropy, with 0 ln 0 = 0."""
    return sum((-num(v) * log(num(v)) for v in p if v > 0), mpf(0))


def min_entropy(p):
    """Return -ln of the largest probability."""
    return -log(max(num(v) for v in p))


def divergence(w, q):
    """Return the sum of w ln(w/q) - w + q, for laws the Kullback-Leibler divergence."""
    w, q = list(map(num, w)), list(map(num, q))
    return sum((a * log(a / b) for a, b in zip(w, q, strict=True) if a > 0), sum(q) - sum(w))


def joint_information(joint):
    """Return I(A; B) of joint[a][b]."""
    joint = nums(joint)
    rows, columns = list(map(sum, joint)), list(map(sum, zip(*joint, strict=True)))
    return sum(
        v * log(v / (rows[a] * columns[b]))
        for a, row in enumerate(joint)
        for b, v in enumerate(row)
        if v > 0
    )


def mutual_information(W, p):
    """Return I(X;Y) from the joint law, with 0 ln 0 = 0; p is divided by its exact sum first."""
    p = normal(p)
    p_y, cells = output_law(W, p), product(range(len(W)), range(len(W[0])))
    used = [(num(p[x]), num(W[x][y]), p_y[y]) for x, y in cells if p[x] > 0 and W[x][y] > 0]
    return sum(a * w * log(w / b) for a, w, b in used)


def secret_channel(joint, W):
    """Return P(y|s) and P(s) of S -> X -> Y, from joint[s][x] and W[x][y]."""
    total = sum(num(v) for row in joint for v in row)
    P = [[num(v) / total for v in row] for row in joint]
    prior = [sum(row) for row in P]
    seen = [s for s in range(len(P)) if prior[s] > 0]
    outputs, inputs = range(len(W[0])), range(len(W))
    rows = [[sum(P[s][x] * num(W[x][y]) for x in inputs) / prior[s] for y in outputs] for s in seen]
    return rows, [prior[s] for s in seen]


def inference_leakage(joint, W):
    """Return I(S;Y) of S -> X -> Y."""
    return mutual_information(*secret_channel(joint, W))


def guessing_error(joint, W):
    """Return the error of the best guess of S from Y: 1 - sum over y of max over s of P(s, y)."""
    rows, prior = secret_channel(joint, W)
    cells = [[prior[s] * v for v in row] for s, row in enumerate(rows)]
    return 1 - sum(max(column) for column in zip(*cells, strict=True))


def chi_square(P, Q, b):
    """Return b(1-b) sum (P-Q)^2/(bP+(1-b)Q), whose largest over b and pairs of rows is eta(W)."""
    b, pairs = num(b), [(num(u), num(v)) for u, v in zip(P, Q, strict=True) if u + v > 0]
    return sum((b * (1 - b) * (u - v) ** 2 / (b * u + (1 - b) * v) for u, v in pairs), mpf(0))
