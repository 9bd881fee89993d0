"""Search for the adversary who learns most about a group of records."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, singledispatch
from typing import Any

import numpy as np

from fastpriv._core.clock import Clock
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.capacity import matrix_capacity
from fastpriv._matrices.searches.selection import Selection, best_selection
from fastpriv.channels import AbstractChannel, QueryChannel, TiltedChannel
from fastpriv.channels.queries import Listed, Query
from fastpriv.measures.capacity import capacity, searched_entries
from fastpriv.measures.inputs import table
from fastpriv.results import Adversary, IndividualCapacity
from fastpriv.spaces import Space

#: Largest table that is searched for equal rows.
_COMPARED = 1 << 24
#: Gap of the channel capacity if it only caps an upper bound.
_CLOSE = 1e-3
#: Gap that one step of the algorithm meets.
_ANY = 1e300
#: Seconds left below which a large table gets one step of the algorithm.
_SECOND = 1.0
#: Entries of a large table.
_LARGE = 1 << 18
#: Fewest tasks of a search that is spread over an executor.
_TASKS = 16


def adversary_of(space: Space, rows: tuple[int, ...], law: Floats) -> Adversary:
    """Return the adversary with a given prior: the databases that it allows."""
    seen = np.flatnonzero(law)
    return Adversary(rows, space.rows(seen), law[seen])


@singledispatch
def as_query(channel: AbstractChannel) -> tuple[Query, Floats]:
    """Return a query and a table with the output distribution of each answer.

    In general every database is its own answer. Databases with equal rows of the matrix share one.
    """
    matrix = table(channel)
    kinds = channel.record_kinds
    return Listed(representatives(matrix), channel.space, len(matrix), kinds), matrix


@as_query.register
def _query_as_query(channel: QueryChannel) -> tuple[Query, Floats]:
    """Return the query itself and the distributions of its answers."""
    return channel.query, channel.kernel.matrix


def capped(
    leak: IndividualCapacity, most: float, channel: AbstractChannel, clock: Clock
) -> IndividualCapacity:
    """Bound a leak by the channel capacity if its upper bound is at least ``most``."""
    if leak.upper < most:
        return leak
    hurry = searched_entries(channel) > _LARGE and clock.left() < _SECOND
    known = capacity(channel, _ANY if hurry else _CLOSE).upper
    upper = max(leak.lower, min(leak.upper, known))
    return IndividualCapacity(leak.lower, upper, leak.adversary)


def information_error(most: float, error: float) -> float:
    """Bound the error of an information of at most ``most``, from relative errors of the entries.

    Errors e of the entries change I(p) by at most e sum p W |ln(W/q)|. By Pinsker's inequality
    this is at most e (I + sqrt(2 I)).
    """
    return error * (most + math.sqrt(2.0 * most) + 4.0 * error)


def widened(leak: IndividualCapacity, error: float) -> IndividualCapacity:
    """Allow for relative errors of the output distributions."""
    if error == 0.0:
        return leak
    slack = information_error(leak.upper, error)
    return IndividualCapacity(max(leak.lower - slack, 0.0), leak.upper + slack, leak.adversary)


def searched(
    channel: AbstractChannel,
    k: int,
    gap: float,
    time_limit: float | None,
    run: Callable[..., Any] | None = None,
) -> IndividualCapacity:
    """Largest I(X_G; Y) over groups G of k records and all priors, by a search over the answers.

    ``run`` maps a function over arguments elsewhere: the search is then one task for each part of
    the selections.
    """
    clock = Clock(math.inf if time_limit is None else time_limit)
    if k == channel.space.n and not isinstance(channel, QueryChannel):
        return whole_database_leak(channel, gap, clock)
    query, table = as_query(channel)
    problems = query.candidates(k, table.shape[1])
    slices = [p.slices for p in problems]
    if run is None:
        best = best_selection(table, slices, gap, time_limit)
    else:
        best = _spread(table, slices, partial(best_selection, gap=gap, time_limit=time_limit), run)
    group, values, _ = problems[best.problem]
    databases = np.stack(
        [query.database(group, v, int(x)) for v, x in zip(values, best.choice, strict=True)]
    )
    if not group:
        if (databases[0] == databases[1]).all():  # equal distributions: take any other database
            bit = query.space.sizes.index(2)
            databases[1, bit] = 1 - databases[1, bit]
        group = (int(np.flatnonzero(databases[0] != databases[1])[0]),)
    order = np.lexsort(databases[:, group].T[::-1])
    who = Adversary(group, databases[order], best.law[order])
    upper = best.upper
    leak = IndividualCapacity(best.lower, upper, who)
    if upper - best.lower > gap * min(1.0, best.lower):  # the search did not end
        leak = capped(leak, 0.0, channel, clock)
    return allowing_for_errors(leak, channel)


def whole_database_leak(channel: AbstractChannel, gap: float, clock: Clock) -> IndividualCapacity:
    """All records are in the group: the channel capacity, and the prior that attains it."""
    bracket, law = matrix_capacity(table(channel), gap, lambda: clock.left() == 0.0)
    databases = np.arange(len(law))[:, None]
    if channel.space.n > 1:
        databases = channel.space.rows(databases[:, 0])
    who = Adversary(tuple(range(channel.space.n)), databases, law)
    return allowing_for_errors(IndividualCapacity(bracket.lower, bracket.upper, who), channel)


def allowing_for_errors(leak: IndividualCapacity, channel: AbstractChannel) -> IndividualCapacity:
    """Widen the bracket of a leak by the rounding of the matrix."""
    leak = widened(leak, channel.matrix_error)
    if not isinstance(channel, TiltedChannel):
        return leak
    bracket = channel.widened(leak)  # at small epsilon the rounded matrix is useless
    return IndividualCapacity(bracket.lower, bracket.upper, leak.adversary)


def _spread(
    table: Floats,
    problems: Sequence[Sequence[Ints]],
    search: Callable[..., Selection],
    run: Callable[..., Any],
) -> Selection:
    """Search every problem separately, in pieces if there are few; return the largest bound.

    A piece has some candidates of the first slice and all candidates of the other slices.
    """
    pieces = -(-_TASKS // len(problems))
    tasks = [
        (number, [[part, *slices[1:]]])
        for number, slices in enumerate(problems)
        for part in np.array_split(slices[0], min(pieces, len(slices[0])))
    ]
    results: list[Selection] = list(run(partial(search, table), [task for _, task in tasks]))
    place = max(range(len(tasks)), key=lambda j: results[j].lower)
    upper = max(result.upper for result in results)
    return results[place]._replace(upper=upper, problem=tasks[place][0])


def representatives(table: Floats) -> Ints:
    """Return the first row that equals each row of a table. Large tables are not compared."""
    if table.size > _COMPARED:
        return np.arange(len(table))
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(row.tobytes(), x) for x, row in enumerate(table)])
