"""How many databases have each answer of a query, for each value of one row."""

from __future__ import annotations

import itertools
import math
from functools import singledispatch

import numpy as np

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels.queries.laws import log_score_law
from fastpriv.channels.queries.query import Listed, Query, group_lines
from fastpriv.channels.queries.sums import Histogram, Sum
from fastpriv.priors import Product

#: Answers, and the logarithms of the numbers of databases that have them.
Ways = tuple[Ints, Floats]


@singledispatch
def slice_ways(query: Query, i: int) -> list[Ways]:
    """Return for each value of row i the possible answers and how many databases have each.

    The numbers are given by their logarithms, which are good to ``ways_error``. The general
    algorithm lists all databases.
    """
    listed = Listed(query.listed(), query.space, query.answers)
    return slice_ways(listed, i)


@slice_ways.register
def _listed_slice_ways(query: Listed, i: int) -> list[Ways]:
    """Count the databases that are listed. Cost O(N)."""
    sizes, inner = query.space.sizes, int(query.space.strides[i])
    blocks = np.swapaxes(query.values.reshape(-1, sizes[i], inner), 0, 1).reshape(sizes[i], -1)
    told = [np.unique(block, return_counts=True) for block in blocks]
    return [(answers, np.log(number)) for answers, number in told]


@slice_ways.register
def _sum_slice_ways(query: Sum, i: int) -> list[Ways]:
    """Convolve the scores of the other rows. Cost O(n) for bits of one kind, else O(n sums)."""
    which = np.delete(query.which, i)
    if len(which):
        even = [np.full(len(scores), 1.0 / len(scores)) for scores in query.scores]
        logs = log_score_law(Product.of(even, which), query.scores, which)
        logs = logs + math.fsum(math.log(len(query.scores[t])) for t in which.tolist())
    else:
        logs = np.zeros(1)
    rest = np.flatnonzero(logs > -math.inf)
    return [(rest + score, logs[rest]) for score in query.scores[query.which[i]].tolist()]


@slice_ways.register
def _histogram_slice_ways(query: Histogram, i: int) -> list[Ways]:
    """Return the multinomial coefficients of the other rows. Cost O(m) for each answer."""
    from scipy.special import gammaln

    ways = []
    for value in range(query.counts.shape[1]):
        answers = np.flatnonzero(query.counts[:, value])
        rest = query.counts[answers].astype(np.float64)
        rest[:, value] -= 1.0
        ways.append((answers, gammaln(float(query.space.n)) - gammaln(rest + 1.0).sum(axis=1)))
    return ways


@singledispatch
def group_ways(query: Query, group: tuple[int, ...]) -> list[Ways]:
    """Return for each value of a group of rows the possible answers and how many have each.

    Values are in C order. The general algorithm lists all databases.
    """
    lines = group_lines(query.listed(), query.space.sizes, group)
    told = [np.unique(line, return_counts=True) for line in lines]
    return [(answers, np.log(number)) for answers, number in told]


@group_ways.register
def _sum_group_ways(query: Sum, group: tuple[int, ...]) -> list[Ways]:
    """Convolve the scores of the rows outside the group."""
    which = np.delete(query.which, group)
    logs = np.zeros(1)
    if len(which):
        even = [np.full(len(scores), 1.0 / len(scores)) for scores in query.scores]
        logs = log_score_law(Product.of(even, which), query.scores, which)
        logs = logs + math.fsum(math.log(len(query.scores[t])) for t in which.tolist())
    rest = np.flatnonzero(logs > -math.inf)
    scores = [query.scores[query.which[i]].tolist() for i in group]
    return [(rest + sum(values), logs[rest]) for values in itertools.product(*scores)]


def ways_error(query: Query) -> float:
    """Bound the error of the logarithms of ``slice_ways``."""
    n = query.space.n
    return 64.0 * ULP * (n + 4.0) * (math.log(n + 2.0) + math.log(max(query.space.sizes)))
