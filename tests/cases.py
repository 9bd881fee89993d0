"""Small priors and channels of every structure, beside their full tables for the oracles."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest

import fastpriv as fp
import oracles as o


def law(rng, size, floor=0.05):
    """Return a random full-support law."""
    weights = rng.random(size) + floor
    return weights / weights.sum()


def kernel(rng, inputs, outputs, floor=0.05):
    """Return a random positive channel."""
    return np.array([law(rng, outputs, floor) for _ in range(inputs)])


def simplex_weights(rng, n, m):
    """Return random exchangeable weights, as an array and as a mapping from counts."""
    counts = {c: 0.0 for c in np.ndindex(*(n + 1,) * m) if sum(c) == n}
    values = law(rng, len(counts))
    counts = dict(zip(counts, values.tolist(), strict=True))
    array = np.zeros((n + 1,) * (m - 1))
    for c, w in counts.items():
        array[c[1:]] = w
    return array, counts


def once(make, *arguments):
    """Return a function that makes a table when it is first called, and keeps it."""
    return cache(partial(make, *arguments))


def priors(seed=0):
    """Return (name, prior, pmf) for every structure on small spaces."""
    rng = np.random.default_rng(seed)
    found = []
    for n, m in [(1, 2), (3, 2), (2, 3), (1, 4), (2, 1)]:
        found.append((f"uniform-{n}-{m}", fp.Uniform(n, m), o.product_pmf([[1 / m] * m] * n)))
    for sizes in [(2, 2, 2), (3, 2), (2, 3, 1), (4,)]:
        rows = [law(rng, m) for m in sizes]
        found.append((f"product-{sizes}", fp.Product(rows), o.product_pmf(rows)))
    p = law(rng, 3)
    found.append(("iid", fp.Product.iid(p, 2), o.product_pmf([p, p])))
    for n in (1, 2, 3, 4):
        w = law(rng, n + 1)
        found.append((f"exchangeable-{n}", fp.Exchangeable(w), o.exchangeable_pmf(w, n)))
    for n, m in [(2, 3), (3, 3), (2, 4)]:
        array, counts = simplex_weights(rng, n, m)
        pmf = o.exchangeable_pmf_general(counts, n, m)
        found.append((f"exchangeable-{n}-{m}", fp.Exchangeable(array), pmf))
    for n, m in [(1, 2), (2, 2), (3, 2), (4, 2), (2, 3)]:
        start, step = law(rng, m), kernel(rng, m, m)
        found.append((f"markov-{n}-{m}", fp.Markov(start, step, n), o.markov_pmf(start, step, n)))
    for sizes in [(2, 2, 2), (3, 3), (2, 1, 3), (5,), (1,)]:
        pmf = law(rng, int(np.prod(sizes)))
        found.append((f"dense-{sizes}", fp.Dense(pmf, sizes), list(pmf)))
    return found


@cache
def row_channels(sizes, seed=1):
    """Return (name, channel, function that makes its matrix) that act row by row on a space."""
    rng = np.random.default_rng(seed)
    found = []
    for epsilon in (0.0, 0.3, 2.0):
        channel = fp.HammingChannel(len(sizes), sizes, epsilon)
        found.append((f"hamming-{epsilon}", channel, once(o.e_d_matrix, sizes, epsilon)))
    square = [kernel(rng, m, m) for m in sizes]
    found.append(("product-square", fp.ProductChannel(square), once(o.product_matrix, square)))
    other = [kernel(rng, m, m % 3 + 2) for m in sizes]
    found.append(("product-other", fp.ProductChannel(other), once(o.product_matrix, other)))
    zeros = [np.eye(m)[:, ::-1] * 0.5 + np.eye(m) * 0.5 for m in sizes]
    found.append(("product-zeros", fp.ProductChannel(zeros), once(o.product_matrix, zeros)))
    if len(set(sizes)) == 1:
        same = [kernel(rng, sizes[0], 3)] * len(sizes)
        found.append(("product-same", fp.ProductChannel(same), once(o.product_matrix, same)))
    return found


@cache
def full_channels(sizes, seed=2):
    """Return (name, channel, function that makes its matrix) without row structure."""
    rng = np.random.default_rng(seed)
    size = int(np.prod(sizes))
    square, wide = kernel(rng, size, size), kernel(rng, size, 3)
    zeros = np.where(rng.random((size, 4)) < 0.3, 0.0, kernel(rng, size, 4))
    zeros[:, 0] += 0.1
    zeros /= zeros.sum(axis=1, keepdims=True)
    values, table = rng.integers(0, 3, size), kernel(rng, 3, 2)
    output = law(rng, size)
    sparse = np.where(np.arange(size) % 2, 0.0, output) / output[::2].sum()
    tilts = [("tilted", output, 0.7), ("tilted-zeros", sparse, 1.5)]
    return [
        *(
            (name, fp.TiltedChannel(fp.Dense(q, sizes), e), once(o.tilted_matrix, q, sizes, e))
            for name, q, e in tilts
        ),
        ("matrix", fp.Channel(square, sizes), once(np.array, square)),
        ("matrix-wide", fp.Channel(wide, sizes), once(np.array, wide)),
        ("matrix-zeros", fp.Channel(zeros, sizes), once(np.array, zeros)),
        ("matrix-one-output", fp.Channel(np.ones((size, 1)), sizes), once(np.ones, (size, 1))),
        ("query", fp.QueryChannel(values, table, sizes), once(o.query_matrix, values, table)),
    ]


def channels(sizes):
    """Return (name, channel, function that makes its matrix) of every structure on a space."""
    return [*row_channels(sizes), *full_channels(sizes)]


def every_pair(largest, more=()):
    """Mark a test of (prior, pmf, channel, matrix) for all pairings on spaces up to a size."""
    pairs = [
        pytest.param(prior, pmf, channel, matrix, id=f"{a}-{b}")
        for a, prior, pmf in [*priors(), *more]
        if prior.space.size <= largest
        for b, channel, matrix in channels(prior.space.sizes)
    ]
    names = ("prior", "pmf", "channel", "matrix")
    return pytest.mark.parametrize(names, pairs, indirect=["matrix"])


def close(value, truth, rel=1e-12, abs_=0.0):
    """Whether a float agrees with the oracle's number, infinities included."""
    truth = o.num(truth)
    if truth == o.inf or value == np.inf:
        return truth == o.inf and value == np.inf
    return abs(o.num(value) - truth) <= rel * abs(truth) + abs_
