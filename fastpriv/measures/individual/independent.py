"""Individual capacity over priors with independent rows."""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import log_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import capacities
from fastpriv.channels import AbstractChannel, ProductChannel
from fastpriv.channels.queries.query import Query
from fastpriv.measures.capacity import capacity, row_capacity
from fastpriv.measures.individual.search import as_query, widened
from fastpriv.results import Adversary, IndividualCapacity
from fastpriv.spaces import Space

#: Entries of a batch of channels whose capacities are computed together.
_BATCH = 1 << 20


@singledispatch
def independent_leak(channel: AbstractChannel, gap: float, clock: Clock) -> IndividualCapacity:
    """Largest I(X_i; Y) over rows i and priors with independent rows, for checked arguments.

    Given the law of the other rows, the channel from X_i to Y is a mixture of the channels with
    fixed other rows, and information is convex in the channel. So the other rows are fixed, and
    the result is the largest capacity of the m_i databases that differ in row i alone. The general
    algorithm takes each such set of output laws once. Cost at most n N/m capacities of m rows.
    """
    query, table = as_query(channel)
    lower, upper, who = -1.0, 0.0, _nobody(channel.space)
    for lines in _lines(query):
        step = max(1, _BATCH // (lines.shape[1] * table.shape[1]))
        for start in range(0, len(lines), step):
            if clock.left() == 0.0 and lower >= 0.0:
                most = min(log_up(lines.shape[1]), capacity(channel, 1e-3).upper)
                upper = max(upper, most)
                break
            part = lines[start : start + step]
            low, high, laws = capacities(np.ascontiguousarray(table[part]), 0.25 * gap)
            best = int(low.argmax())
            upper = max(upper, float(high.max()))
            if low[best] > lower:
                lower, who = float(low[best]), _adversary(query, part[best], laws[best])
    return widened(IndividualCapacity(max(lower, 0.0), upper, who), channel.matrix_error)


@independent_leak.register
def _product_independent_leak(
    channel: ProductChannel, gap: float, clock: Clock
) -> IndividualCapacity:
    """Return the largest capacity of one row's channel. Cost O(distinct rows)."""
    told = [row_capacity(kernel, gap) for kernel in channel.kernels.distinct]
    at = int(np.argmax([part.lower for part, _ in told]))
    i, (best, law) = int(np.argmax(channel.kernels.assignment == at)), told[at]
    who = None
    if len(law) * channel.space.n <= check.MAX_VECTOR:
        databases = np.zeros((len(law), channel.space.n), dtype=np.int64)
        databases[:, i] = np.arange(len(law))
        who = Adversary((i,), databases, law)
    return IndividualCapacity(best.lower, max(part.upper for part, _ in told), who)


def _lines(query: Query) -> list[Ints]:
    """Return the sets of answers of databases that differ in one row, as arrays (sets, m)."""
    sizes = query.space.sizes
    if max(sizes) == 2:
        pairs = query.neighbours()
        return [pairs[pairs[:, 0] < pairs[:, 1]]]
    values = query.listed()
    kinds = query.kinds()
    lines = []
    for i in np.unique(kinds, return_index=True)[1].tolist():
        inner = int(query.space.strides[i])
        blocks = np.swapaxes(values.reshape(-1, sizes[i], inner), 1, 2).reshape(-1, sizes[i])
        if sizes[i] > 1:
            lines.append(np.unique(np.sort(blocks, axis=1), axis=0))
    return lines


def _nobody(space: Space) -> Adversary:
    """Return an adversary who learns nothing."""
    return Adversary((0,), np.zeros((1, space.n), dtype=np.int64), np.ones(1))


def _adversary(query: Query, line: Ints, law: Floats) -> Adversary:
    """Return databases that differ in one row and have the given answers."""
    sizes = query.space.sizes
    if max(sizes) == 2:
        databases = np.stack(query.step(int(line[0]), int(line[1])))
        i = int(np.flatnonzero(databases[0] != databases[1])[0])
    else:
        i, databases = _found(query, line)
    answers = query.of(databases).tolist()
    left = list(range(len(line)))
    order = []
    for answer in answers:
        at = next(j for j in left if line[j] == answer)
        left.remove(at)
        order.append(at)
    ranks = np.argsort(databases[:, i])
    return Adversary((i,), databases[ranks], law[order][ranks])


def _found(query: Query, line: Ints) -> tuple[int, Ints]:
    """Return a row and databases that differ in it alone, with the answers of a line."""
    sizes, values = query.space.sizes, query.listed()
    for i in range(query.space.n):
        if sizes[i] != len(line):
            continue
        inner = int(query.space.strides[i])
        blocks = np.swapaxes(values.reshape(-1, sizes[i], inner), 1, 2).reshape(-1, sizes[i])
        places = np.flatnonzero((np.sort(blocks, axis=1) == line).all(axis=1))
        if len(places):
            outer, rest = divmod(int(places[0]), inner)
            first = outer * sizes[i] * inner + rest
            return i, query.space.rows(first + inner * np.arange(sizes[i]))
    raise AssertionError("every line comes from some databases")
