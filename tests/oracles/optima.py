"""Optima with their own proof: capacities, rate-distortion, mappings against inference."""

from math import exp as float_exp
from math import log as float_log

import numpy as np
from mpmath import exp, inf, log, lu_solve, matrix, mpf

from oracles.information import divergence, output_law
from oracles.numbers import normal, num


def blahut_bounds(p, d, q, slope, enough):
    """Return Blahut's bounds on the least I + slope E d, from any output law q.

    The lower one is the best of his iteration's, which goes on until the bounds are ``enough``
    close: a law may be optimal but for the outputs of nearly impossible inputs.
    """
    p = normal(p)
    best = -inf
    for _ in range(1000):
        lower, upper, q = _blahut_step(p, d, q, slope)
        best = max(best, lower)
        if upper - best < enough:
            break
    return best, upper


def _blahut_step(p, d, q, slope):
    inputs, outputs = range(len(p)), range(len(q))
    K = [[exp(-num(slope) * num(d[x][y])) for y in outputs] for x in inputs]
    v = [sum(K[x][y] * num(q[y]) for y in outputs) for x in inputs]
    c = [sum(p[x] * K[x][y] / v[x] for x in inputs) for y in outputs]
    base = -sum(p[x] * log(v[x]) for x in inputs)
    upper = base - sum(num(w) * b * log(b) for w, b in zip(q, c, strict=True) if b > 0)
    return base - log(max(c)), upper, [num(w) * b for w, b in zip(q, c, strict=True)]


def capacity_bracket(W, p):
    """Return I(p, W) and the largest divergence of a row from the output law: C lies between."""
    p = normal(p)
    distances = [divergence(row, output_law(W, p)) for row in W]
    return sum(a * d for a, d in zip(p, distances, strict=True)), max(distances)


def capacity(W, steps=150):
    """Return lower and upper bounds on the capacity: multiplicative steps, then Newton's method.

    Both are heuristic ways to a good input law; whatever law they end at, its bracket is exact.
    """
    p = [mpf(1) / len(W)] * len(W)
    for _ in range(steps):  # Blahut-Arimoto, with steps as long for small capacities as for large
        distances = [divergence(row, output_law(W, p)) for row in W]
        scale = max(distances)
        if scale == 0:
            return scale, scale
        p = [a * exp(d / scale) for a, d in zip(p, distances, strict=True)]
        p = [a / sum(p) for a in p]
    best, support = p, [x for x in range(len(W)) if p[x] > 1e-3]
    p = [p[x] for x in support]
    rows = [list(map(num, W[x])) for x in support]
    for _ in range(8):  # all divergences on the support equal, and p a law
        q, n = output_law(rows, p), len(p)
        ratio = [[w / v if v > 0 else 0 for w, v in zip(row, q, strict=True)] for row in rows]
        cells = [[sum(b * (1 - r) for b, r in zip(y, x, strict=True)) for y in rows] for x in ratio]
        system = matrix([[*line, -1] for line in cells] + [[1] * n + [0]])
        level = [divergence(row, q) for row in rows]
        try:
            step = lu_solve(system, matrix([level[0] - d for d in level] + [1 - sum(p)]))
        except ZeroDivisionError:
            break
        p = [a + step[i] for i, a in enumerate(p)]
        if min(p) < 0:
            break
    if min(p) > 0:
        polished = [p[support.index(x)] if x in support else mpf(0) for x in range(len(W))]
        best = min(best, polished, key=lambda law: -capacity_bracket(W, law)[0])
    return capacity_bracket(W, best)


def capacities(channels, tolerance=1e-11, steps=100_000):
    """Return bounds on the capacity of each channel (b, x, y), by Blahut-Arimoto in doubles."""
    count, inputs, _ = channels.shape
    p = np.full((count, inputs), 1.0 / inputs)
    for _ in range(steps):
        q = np.einsum("bx,bxy->by", p, channels)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = channels * np.log(channels / q[:, None])
        D = np.where(channels > 0, terms, 0.0).sum(axis=2)
        low, high = (p * D).sum(axis=1), D.max(axis=1)
        if (high - low).max() < tolerance:
            break
        p = p * np.exp(D - high[:, None])
        p /= p.sum(axis=1, keepdims=True)
    return low, high


def mirror_descent(joint, metric, slope, steps, rate=0.5):
    """Return W that nearly minimises I(S;Y) + slope E d(X,Y), by exponentiated gradients."""
    secrets, inputs, outputs = range(len(joint)), range(len(metric)), range(len(metric[0]))
    p = [sum(joint[s][x] for s in secrets) for x in inputs]
    prior = [sum(joint[s]) for s in secrets]
    W = [[1 / len(outputs) * (1 + 0.1 * (x == y)) for y in outputs] for x in inputs]
    W = [[v / sum(row) for v in row] for row in W]
    for _ in range(steps):
        j = [[sum(joint[s][x] * W[x][y] for x in inputs) for y in outputs] for s in secrets]
        q = [sum(j[s][y] for s in secrets) for y in outputs]
        for x in inputs:
            pull = [
                sum(joint[s][x] / p[x] * float_log(j[s][y] / (prior[s] * q[y])) for s in secrets)
                + slope * metric[x][y]
                for y in outputs
            ]
            weights = [W[x][y] * float_exp(-rate * (pull[y] - min(pull))) for y in outputs]
            W[x] = [max(w / sum(weights), 1e-300) for w in weights]
    return W
