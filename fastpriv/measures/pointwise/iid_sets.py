"""Leakage under the worst of the priors whose bits are independent with one common chance.

The chance of an output is a polynomial in the common chance p of a one. In Bernstein's basis
C(n, k) p^k (1-p)^(n-k), its coefficients are means over the databases with k ones, so none is
negative. A leakage is then the log of a quotient of two such polynomials. It is at most the
largest quotient of coefficients, and intervals of p are halved until that is close to the quotient
at an end.
"""

from __future__ import annotations

import heapq
import math
from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, round_up
from fastpriv._core.validation import Floats
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.pointwise.row import row_level
from fastpriv.measures.pointwise.scaled import scaled_matrix
from fastpriv.priors import Product

#: Relative distance of a quotient from its bound at which halving stops, and most halvings.
_CLOSE, _HALVINGS = 1e-10, 4096
#: Most numbers that one halving of the polynomials of all outputs may form.
_WORK = 1 << 28


@singledispatch
def iid_level(channel: AbstractChannel, c: float, i: int | None) -> float:
    """Return the largest leakage (about row i, if given) under bits with one chance in [c, 1-c].

    Through the matrix. Cost O(n^2 K) for every halving, and few are needed.
    """
    n, matrix = channel.space.n, scaled_matrix(channel)
    ones = channel.space.rows(np.arange(channel.space.size)).sum(axis=1)
    if i is None:
        return _largest(
            np.broadcast_to(matrix.max(axis=0), (n + 1, matrix.shape[1])), matrix, ones, c
        )
    values = channel.space.rows(np.arange(channel.space.size))[:, i]
    levels = []
    for value in (0, 1):
        own = values == value
        given = _means(matrix[own], ones[own] - value, n - 1)
        levels.append(_largest(_raised(given), matrix, ones, c))
    return max(levels)


@iid_level.register
def _(channel: ProductChannel, c: float, i: int | None) -> float:
    """At an end: the log of a row's quotient is convex in p, and so is their sum."""
    kernels, levels = channel._kernels, []
    if c == 0.0:  # the limits where all bits become certain, and any other value is surprising
        rows = range(len(kernels)) if i is None else [i]
        ends = [[float(kernels[j].log_ratios[:, t].max()) for j in rows] for t in (0, 1)]
        return round_up(max(math.fsum(end) for end in ends))
    for p in (c, 1.0 - c):
        prior = Product.iid([1.0 - p, p], channel.space.n)
        if i is None:
            levels.append(leakage_levels(channel, prior)[0])
        else:
            levels.append(row_level(channel, prior, i))
    return max(levels)


@iid_level.register
def _(channel: QueryChannel, c: float, i: int | None) -> float:
    """A count: its matrix has a row for every number of ones."""
    if not channel._query.counts_bits():
        return iid_level.dispatch(AbstractChannel)(channel, c, i)
    matrix, n = channel._kernel.matrix, channel.space.n
    ones = np.arange(n + 1)
    if i is None:
        return _largest(np.broadcast_to(matrix.max(axis=0), matrix.shape), matrix, ones, c)
    parts = matrix[:-1], matrix[1:]
    return max(_largest(_raised(part), matrix, ones, c) for part in parts)


def _means(matrix: Floats, ones: np.ndarray, n: int) -> Floats:
    """Return the mean of the rows of a matrix for every number of ones."""
    totals = np.zeros((n + 1, matrix.shape[1]))
    np.add.at(totals, ones, matrix)
    return np.asarray(totals / np.bincount(ones, minlength=n + 1)[:, None])


def _raised(coefficients: Floats) -> Floats:
    """Return the coefficients of the same polynomials, seen as polynomials of one degree more."""
    n = len(coefficients)
    share = np.arange(n + 1)[:, None] / n
    zero = np.zeros((1, coefficients.shape[1]))
    before, after = np.vstack([zero, coefficients]), np.vstack([coefficients, zero])
    return np.asarray(share * before + (1.0 - share) * after)


def _largest(top: Floats, matrix: Floats, ones: np.ndarray, c: float) -> float:
    """Return ln of the largest quotient of the polynomials ``top`` and the chances of outputs."""
    n = len(top) - 1
    bottom = _means(matrix, ones, n)
    seen = matrix.max(axis=0) > 0.0
    both = np.stack([top[:, seen], bottom[:, seen]], axis=1)
    check.fits(
        both.size * (n + 1),
        "the work for all outputs under bits with a common chance",
        "use fewer rows or outputs, or bernoulli_interval, a larger set",
        _WORK,
    )
    if c > 0.0:
        both = _split(_split(both, c)[1], (1.0 - 2.0 * c) / (1.0 - c))[0]
    waiting = [(*_bounds(both), 0, both)]
    reached, halvings = 1.0, 0
    while waiting:
        bound, reached = -waiting[0][0], max(reached, *(item[1] for item in waiting))
        if bound <= reached * (1.0 + _CLOSE) or halvings == _HALVINGS:
            break
        part = heapq.heappop(waiting)[-1]
        part = part[:, :, _quotients(part).max(axis=0) > reached]
        for half in _split(part, 0.5):
            halvings += 1
            heapq.heappush(waiting, (*_bounds(half), halvings, half))
    worst = max(1.0, bound, reached)
    # Every number is made from positive ones, by one addition and two products for each degree.
    return round_up(math.log(worst)) + (16.0 * n + 64.0 + 2.0 * len(matrix)) * ULP


def _split(both: Floats, t: float) -> tuple[Floats, Floats]:
    """Return the coefficients to the left and to the right of t (de Casteljau)."""
    left, right, now = np.empty_like(both), np.empty_like(both), both
    for k in range(len(both)):
        left[k], right[len(both) - 1 - k] = now[0], now[-1]
        now = (1.0 - t) * now[:-1] + t * now[1:]
    return left, right


def _quotients(both: Floats) -> Floats:
    """Return the quotients of coefficients, infinite over zero; 0/0 does not count."""
    top, bottom = both[:, 0], both[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(top > 0.0, top / bottom, 0.0)


def _bounds(both: Floats) -> tuple[float, float]:
    """Return minus an upper bound on the quotients in an interval, and one that an end attains."""
    quotients = _quotients(both)
    return -float(quotients.max(initial=0.0)), float(quotients[[0, -1]].max(initial=0.0))
