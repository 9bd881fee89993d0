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
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import ULP, log_up, raised
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY
from fastpriv.channels import AbstractChannel, ProductChannel, QueryChannel
from fastpriv.channels.queries.sums import (
    Chance,
    chance_of,
    chances_from,
    corner_error,
    corner_laws,
)
from fastpriv.measures.pointwise.database import leakage_levels
from fastpriv.measures.pointwise.row import row_level
from fastpriv.measures.pointwise.scaled import scaled_matrix
from fastpriv.priors import Product
from fastpriv.results import Bracket

#: Relative distance of a quotient from its bound at which halving stops, and most halvings.
_CLOSE, _HALVINGS = 1e-10, 4096
#: Most products that one halving of the polynomials of all outputs may form.
_WORK = 1 << 36


@singledispatch
def iid_level(channel: AbstractChannel, c: float, i: int | None, clock: Clock) -> float | Bracket:
    """Return the largest leakage (about row i, if given) under bits with one chance in [c, 1-c].

    Through the matrix. Cost O(n^2 K) for every halving, and few are needed. A bracket if the time
    is over before.
    """
    n, matrix = channel.space.n, scaled_matrix(channel)
    ones = channel.space.rows(np.arange(channel.space.size)).sum(axis=1)
    if i is None:
        most = np.broadcast_to(matrix.max(axis=0), (n + 1, matrix.shape[1]))
        return _largest([most], matrix, ones, c, clock)
    values = channel.space.rows(np.arange(channel.space.size))[:, i]
    given = []
    for value in (0, 1):
        own = values == value
        given.append(_raised(_means(matrix[own], ones[own] - value, n - 1)))
    return _largest(given, matrix, ones, c, clock)


@iid_level.register
def _product_iid_level(channel: ProductChannel, c: float, i: int | None, clock: Clock) -> float:
    """At an end: the log of a row's quotient is convex in p, and so is their sum."""
    kernels, levels = channel.kernels, []
    if c == 0.0:  # the limits where all bits become certain, and any other value is surprising
        rows = range(len(kernels)) if i is None else [i]
        ends = [[float(kernels[j].log_ratios[:, t].max()) for j in rows] for t in (0, 1)]
        return raised(max(math.fsum(end) for end in ends), 6.0)
    for law in chances_from(c):
        prior = Product.iid(law, channel.space.n)
        if i is None:
            levels.append(leakage_levels(channel, prior)[0])
        else:
            levels.append(row_level(channel, prior, i))
    return max(levels)


@iid_level.register
def _query_iid_level(
    channel: QueryChannel, c: float, i: int | None, clock: Clock
) -> float | Bracket:
    """A count: its matrix has a row for every number of ones."""
    if not channel.query.counts_bits():
        return iid_level.dispatch(AbstractChannel)(channel, c, i, clock)
    matrix, n = channel.kernel.matrix, channel.space.n
    ones = np.arange(n + 1)
    if i is None:
        most = np.broadcast_to(matrix.max(axis=0), matrix.shape)
        return _largest([most], matrix, ones, c, clock)
    parts = matrix[:-1], matrix[1:]
    return _largest([_raised(part) for part in parts], matrix, ones, c, clock)


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


def _largest(
    tops: list[Floats], matrix: Floats, ones: np.ndarray, c: float, clock: Clock
) -> float | Bracket:
    """Return ln of the largest quotient of the polynomials ``tops`` and the chances of outputs."""
    n = len(tops[0]) - 1
    bottom = _means(matrix, ones, n)
    seen = matrix.max(axis=0) > 0.0
    pairs = [np.stack([top[:, seen], bottom[:, seen]], axis=1) for top in tops]
    whole = np.concatenate(pairs, axis=2)
    check.fits(
        whole.size * (n + 1),
        "the work for all outputs under bits with a common chance",
        "use fewer rows or outputs, or bernoulli_interval, a larger set",
        _WORK,
    )
    value = np.repeat(np.arange(len(tops)) if len(tops) > 1 else [-1], seen.sum())
    first = _quotients(whole).max(axis=0)

    def part(outputs: Ints, low: float, high: float) -> tuple[Floats, Floats]:
        """Return bounds on the quotients of some outputs on an interval, and those at its ends.

        Where chances are too small for a double, the coefficients on [0, 1] bound them, and one
        over the least chance of the value of the row.
        """
        least, most = chance_of(low, c), chance_of(high, c)
        both = _on(np.ascontiguousarray(whole[:, :, outputs]), least, most)
        rare = both[:, 1] < TINY
        alone = np.choose(value[outputs] + 1, [0.0, most[0], least[1]])
        with np.errstate(divide="ignore", over="ignore"):
            caps = np.minimum(first[outputs], 1.0 / alone)
        quotients = _quotients(both)
        bounds = np.where(rare, caps, quotients).max(axis=0, initial=0.0)
        return bounds, np.where(rare, 0.0, quotients)[[0, -1]].max(axis=0, initial=0.0)

    everything = np.arange(whole.shape[2])
    bounds, attained = part(everything, c, 1.0 - c)
    waiting = [(-float(bounds.max(initial=0.0)), c, 1.0 - c, everything)]
    reached, late = max(1.0, float(attained.max(initial=0.0))), False
    for _ in range(_HALVINGS):
        bound, low, high, outputs = waiting[0]
        middle, late = 0.5 * (low + high), clock.left() == 0.0
        if -bound <= reached * (1.0 + _CLOSE) or late or not low < middle < high:
            break
        heapq.heappop(waiting)
        for ends in ((low, middle), (middle, high)):
            bounds, attained = part(outputs, *ends)
            reached = max(reached, float(attained.max(initial=0.0)))
            kept = outputs[bounds > reached]
            most = float(bounds.max(initial=0.0))
            heapq.heappush(waiting, (max(bound, -most), *ends, kept))
    # Every number is made from positive ones: a mean under a law, and the means of the matrix.
    error = 4.0 * corner_error(n, *chances_from(c)) + 4.0 * len(matrix) * ULP
    worst = max(reached, -waiting[0][0])
    level = log_up(worst) + error
    return Bracket(max(0.0, math.log(reached) - error), level) if late else level


def _on(both: Floats, low: Chance, high: Chance) -> Floats:
    """Return the coefficients of the polynomials on an interval, from those on [0, 1].

    Coefficient k is the mean for k bits with the larger chance and n - k with the smaller one.
    """
    flat = both.reshape(len(both), -1)
    parts = [laws @ flat for laws in corner_laws(len(both) - 1, low, high)]
    return np.concatenate(parts).reshape(both.shape)


def _quotients(both: Floats) -> Floats:
    """Return the quotients of coefficients, infinite over zero; 0/0 does not count."""
    top, bottom = both[:, 0], both[:, 1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(top > 0.0, top / bottom, 0.0)
