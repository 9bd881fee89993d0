"""Databases and outputs that stand out under a prior, for witnesses of row-by-row channels."""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from fastpriv._core.logs import log_ratio
from fastpriv._core.validation import Floats, Ints
from fastpriv._structure.leakage import vector_leakages
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv.measures.pointwise.rows import count_leakages, rows_leakages
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.spaces import Space


@singledispatch
def leading(prior: Distribution, kernels: RowKernels) -> tuple[Ints, Ints]:
    """Return the output of a row-by-row channel that leaks most, and its likeliest cause."""
    y = Space(kernels.sizes_out).rows(int(rows_leakages(prior, kernels).above.argmax()))
    return y, _cause(prior, kernels, y)


@leading.register
def _product_leading(prior: Product, kernels: RowKernels) -> tuple[Ints, Ints]:
    """Independent rows: those of every row by itself."""
    laws, which, _, place = prior.paired(kernels)
    pairs = zip(laws, which, strict=True)
    ends = np.array([_row_leading(kernels.distinct[j], prior.distinct[k]) for k, j in pairs])
    y, x = ends[place].T
    return y.copy(), x.copy()


@leading.register
def _exchangeable_leading(prior: Exchangeable, kernels: RowKernels) -> tuple[Ints, Ints]:
    """Exchangeable bits with one kernel: over types of outputs."""
    by_type = count_leakages(prior, kernels)
    if by_type is None:
        return leading.dispatch(Distribution)(prior, kernels)
    ones = max(by_type, key=lambda leak: leak[1])[0]
    y = np.repeat([0, 1], [prior.space.n - ones, ones])
    return y, _cause(prior, kernels, y)


@singledispatch
def _row_leading(kernel: RowKernel, law: Floats) -> tuple[int, int]:
    """Return the output of one row that leaks most, and the likeliest value behind it."""
    y = int(vector_leakages(law, [kernel]).above.argmax())
    return y, int(np.where(law > 0, kernel.matrix[:, y], -1.0).argmax())


@_row_leading.register
def _symmetric_row_leading(kernel: Symmetric, law: Floats) -> tuple[int, int]:
    """R_epsilon: the rarest value that occurs, twice."""
    y = int(np.where(law > 0, law, math.inf).argmin())
    return y, y


def _cause(prior: Distribution, kernels: RowKernels, y: Ints) -> Ints:
    """Return the database with the largest chance of y, of those that can occur."""
    x = np.empty_like(y)
    for kernel, rows in kernels.groups():
        x[rows] = kernel.causes(y[rows])
    if prior.log_prob(x) > -math.inf:
        return x
    possible, logs = prior.probabilities() > 0, np.zeros(1)
    for kernel, value in zip(kernels, y.tolist(), strict=True):
        logs = np.add.outer(logs, kernel.log_near[:, value]).reshape(-1)
    return prior.space.rows(int(np.where(possible, logs, -math.inf).argmax()))


@singledispatch
def steepest(prior: Distribution, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
    """Return a database and one of ``rows``, where p falls most as its value s becomes t.

    The rows have the same size. Through the vector.
    """
    p, best, space = prior.probabilities(), (-math.inf, 0, 0), prior.space
    for i in rows.tolist():
        m, inner = space.sizes[i], int(space.strides[i])
        lanes = p.reshape(-1, m, inner)
        top, seen = lanes[:, s], lanes[:, s] > 0
        logs = log_ratio(np.where(seen, top, 1.0), np.where(seen, lanes[:, t], 1.0))
        place = int(np.where(seen, logs, -math.inf).argmax())
        if logs.flat[place] > best[0] and seen.flat[place]:
            index = (place // inner * m + s) * inner + place % inner
            best = float(logs.flat[place]), i, index
    return space.rows(best[2]), best[1]


@steepest.register
def _product_steepest(prior: Product, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
    """Independent rows: the steepest law; the other rows hold their likeliest values."""
    used, first = np.unique(prior.assignment[rows], return_index=True)
    tops, bottoms = np.array([(prior.distinct[k][s], prior.distinct[k][t]) for k in used]).T
    seen = tops > 0
    logs = log_ratio(np.where(seen, tops, 1.0), np.where(seen, bottoms, 1.0))
    i = int(rows[first[np.where(seen, logs, -math.inf).argmax()]])
    x = np.array([int(law.argmax()) for law in prior.distinct])[prior.assignment]
    x[i] = s
    return x, i


@steepest.register
def _exchangeable_steepest(prior: Exchangeable, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
    """Exchangeable rows: by the counts of the other rows, those of the steepest line."""
    lines, n, axes = prior.line_table, prior.space.n, prior.type_weights.ndim
    seen = lines[:, s] > 0
    top, bottom = (np.where(seen, lines[:, v], 1.0) for v in (s, t))
    best = int(np.where(seen, log_ratio(top, bottom), -math.inf).argmax())
    counts = np.indices((n,) * axes)
    others = counts[:, counts.sum(axis=0) < n][:, best]
    x = np.repeat(np.arange(axes + 1), [n - 1 - others.sum(), *others])
    i = int(rows[0])
    return np.insert(x, i, s), i


@steepest.register
def _markov_steepest(prior: Markov, rows: Ints, s: int, t: int) -> tuple[Ints, int]:
    """Chain: by the values on both sides of a row that make it steepest."""
    first, T, n = prior.initial, prior.transition, prior.space.n
    if n == 1 or first.min() == 0 or T.min() == 0:
        return steepest.dispatch(Distribution)(prior, rows, s, t)
    # What a row's value gains from being first, from the row before it and from the next one.
    start = log_ratio(first[s : s + 1], first[t : t + 1])
    before, after = log_ratio(T[:, s], T[:, t]), log_ratio(T[s], T[t])
    gains = np.full(len(rows), before.max() + after.max())
    gains[rows == 0] = start + after.max()
    gains[rows == n - 1] = before.max()
    i = int(rows[gains.argmax()])
    x = np.full(n, int(before.argmax()))
    x[i], x[i + 1 :] = s, int(after.argmax())
    return x, i
