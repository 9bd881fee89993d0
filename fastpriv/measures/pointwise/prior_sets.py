"""Pointwise maximal leakage under the worst prior of a set."""

from __future__ import annotations

import itertools
import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.logs import log_ratio
from fastpriv._core.rounding import (
    log_down,
    log_up,
    lowered,
    raised,
    round_up,
    roundoff,
    sum_up,
)
from fastpriv._core.search import BestFirst
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel
from fastpriv.channels.queries import (
    Chance,
    chance_of,
    chances_from,
    corner_error,
    corner_laws,
    group_lines,
)
from fastpriv.errors import InvalidInput, short
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.inputs import group_numbers
from fastpriv.measures.leakage import add_over_rows, extreme_level
from fastpriv.measures.pointwise.convex import convex_row_leakages, convex_row_level
from fastpriv.measures.pointwise.database import leakage_levels, scaled_matrix
from fastpriv.measures.pointwise.record import row_level
from fastpriv.priors import Product
from fastpriv.priors.sets import (
    AllPriors,
    BernoulliPriors,
    Box,
    ConvexPriors,
    IidPriors,
    PriorSet,
    ProductPriors,
    RowBoxPriors,
    RowPriors,
)
from fastpriv.results import Bracket, top
from fastpriv.spaces import Space

#: Width in nats below which a bracket counts as one number.
_CLOSE = 4e-6
#: Rounds of the search for a smallest quotient of two means.
_ROUNDS = 60
#: Relative distance of two quotients at which it stops.
_SAME = 1e-12
#: Most entries of the probabilities of all outputs at all corners.
_CORNER_ENTRIES = 1 << 26
#: Outputs at corners that are computed together.
_BLOCK = 1 << 16
#: Most products in the probabilities of all outputs at all corners of a set of priors.
_CORNERS = 1 << 36
#: Relative distance of a quotient from its bound at which halving stops.
_HALVED = 1e-10
#: Most halvings.
_HALVINGS = 4096
#: Most products that one halving of the polynomials of all outputs may form.
_WORK = 1 << 36
#: Levels from a matrix above this one rest on entries that have lost digits to underflow, or are
#: zero by it. The level over all priors is then returned, which is computed from logarithms.
_UNDERFLOWS = 690.0


def set_level(
    priors: PriorSet,
    channel: AbstractChannel,
    row: int | str | tuple[int, ...] | None,
    clock: Clock,
) -> float | Bracket:
    """Return the supremum over priors of the leakage about the database or about a record.

    It is a bracket if the time ran out.
    """
    check_set(priors, channel)
    group = () if row is None or isinstance(row, str) else group_numbers(channel, row)
    if row is None:
        found = _whole(priors, channel, clock)
    elif isinstance(row, str) and row == "worst":
        found = _worst_row(priors, channel, clock)
    elif len(group) == 1:
        found = _one_row(priors, channel, group[0], clock)
    else:
        found = _group_level(priors, channel, group, clock)
    by_record = not isinstance(priors, ConvexPriors)
    if channel.matrix_error and not (isinstance(channel, ProductChannel) and by_record):
        # Entries of the matrix are off by that.
        off, most = 4.0 * channel.matrix_error, extreme_level(channel)
        if isinstance(found, Bracket):
            lower = min(max(found.lower - off, 0.0), most)
            found = Bracket(lower, min(found.upper + off, most))
        else:
            found = min(found + off, most)
    if isinstance(priors, ConvexPriors) and top(found) > _UNDERFLOWS:
        return extreme_level(channel)
    if top(found) > _UNDERFLOWS:  # of a quotient of probabilities, which overflows
        found = min(top(found), extreme_level(channel))
    if isinstance(found, Bracket) and (found.width <= _CLOSE or clock.left() > 0.0):
        return float(found.upper)
    return found if isinstance(found, Bracket) else float(found)


def joined(
    priors: PriorSet, channel: AbstractChannel, group: tuple[int, ...]
) -> tuple[PriorSet, AbstractChannel]:
    """Return a set and a channel with a group of records as record 0, the others as record 1."""
    sizes, size = channel.space.sizes, channel.space.size
    matrix = np.array(channel.nearest_matrix(), order="C")
    order = group_lines(np.arange(size), sizes, group).reshape(-1)
    values = math.prod(sizes[i] for i in group)
    space = Space.of((values, size // values))
    if isinstance(priors, ProductPriors):
        priors = ProductPriors(space)
    elif isinstance(priors, ConvexPriors):
        priors = priors.reordered(order)
    return priors, Channel(matrix[order], space)


def _group_level(
    priors: PriorSet, channel: AbstractChannel, group: tuple[int, ...], clock: Clock
) -> float | Bracket:
    """Return the leakage about a group of records.

    Distributions of single records form a product for the group. Over all products the group may
    as well have any distribution, because the supremum is reached near point masses.
    """
    if isinstance(priors, BernoulliPriors | RowBoxPriors):
        if isinstance(channel, ProductChannel):  # leakages about independent records add up
            return sum_up([top(_one_row(priors, channel, i, clock)) for i in group])
        return float(independent_leakages(priors, channel, group).max())
    if isinstance(priors, AllPriors | ProductPriors) and isinstance(channel, ProductChannel):
        if isinstance(priors, ProductPriors):
            return sum_up([row_ratio(channel, i, fixed=True) for i in group])
        return max(row_ratio(channel, i, fixed=False) for i in group)
    if isinstance(priors, IidPriors):
        return iid_level(channel, priors.c, group, clock)
    return _one_row(*joined(priors, channel, group), 0, clock)


@singledispatch
def _whole(priors: PriorSet, channel: AbstractChannel, clock: Clock) -> float | Bracket:
    """Return the leakage about the database."""
    raise NotImplementedError(f"no leakage is registered for {type(priors).__name__}")


@singledispatch
def _worst_row(priors: PriorSet, channel: AbstractChannel, clock: Clock) -> float | Bracket:
    """Return the leakage about the record that leaks most."""
    rows = np.unique(channel.record_kinds, return_index=True)[1]
    levels = [_one_row(priors, channel, i, clock) for i in rows.tolist()]
    if not any(isinstance(level, Bracket) for level in levels):
        return max(map(top, levels))
    lower = max(level.lower if isinstance(level, Bracket) else level for level in levels)
    return Bracket(lower, max(map(top, levels)))


@singledispatch
def _one_row(priors: PriorSet, channel: AbstractChannel, i: int, clock: Clock) -> float | Bracket:
    """Return the leakage about one record."""
    raise NotImplementedError(f"no leakage about a row is registered for {type(priors).__name__}")


@_whole.register
def _all_whole(priors: AllPriors, channel: AbstractChannel, clock: Clock) -> float:
    return extreme_level(channel)


@_worst_row.register
def _all_worst_row(priors: AllPriors, channel: AbstractChannel, clock: Clock) -> float:
    """Theorem 4.5: the pair x, x' of the leakage capacity differs in some record."""
    return extreme_level(channel)


@_one_row.register
def _all_one_row(priors: AllPriors, channel: AbstractChannel, i: int, clock: Clock) -> float:
    return row_ratio(channel, i, fixed=False)


@_whole.register
def _product_whole(priors: ProductPriors, channel: AbstractChannel, clock: Clock) -> float:
    """Point masses are products, and p_Y(y) approaches its smallest value."""
    return extreme_level(channel)


@_worst_row.register
def _product_worst_row(priors: ProductPriors, channel: AbstractChannel, clock: Clock) -> float:
    """Theorem 4.2: the differential privacy level."""
    return neighbour_level(channel)


@_one_row.register
def _product_one_row(
    priors: ProductPriors, channel: AbstractChannel, i: int, clock: Clock
) -> float:
    return row_ratio(channel, i, fixed=True)


@_whole.register
def _bernoulli_whole(priors: BernoulliPriors, channel: AbstractChannel, clock: Clock) -> float:
    return _bits(channel, *chances_from(priors.c), None)


@_one_row.register
def _bernoulli_one_row(
    priors: BernoulliPriors, channel: AbstractChannel, i: int, clock: Clock
) -> float:
    return _bits(channel, *chances_from(priors.c), i)


@_whole.register
def _iid_whole(priors: IidPriors, channel: AbstractChannel, clock: Clock) -> float | Bracket:
    return iid_level(channel, priors.c, None, clock)


@_one_row.register
def _iid_one_row(
    priors: IidPriors, channel: AbstractChannel, i: int, clock: Clock
) -> float | Bracket:
    return iid_level(channel, priors.c, (i,), clock)


@_whole.register
def _row_box_whole(priors: RowBoxPriors, channel: AbstractChannel, clock: Clock) -> float:
    return _in_box(channel, priors.record_set, None)


@_one_row.register
def _row_box_one_row(priors: RowBoxPriors, channel: AbstractChannel, i: int, clock: Clock) -> float:
    return _in_box(channel, priors.record_set, i)


@_one_row.register
def _box_one_row(priors: Box, channel: AbstractChannel, i: int, clock: Clock) -> float:
    return float(box_row_leakages(priors, channel, i).max())


@_one_row.register
def _convex_one_row(
    priors: ConvexPriors, channel: AbstractChannel, i: int, clock: Clock
) -> float | Bracket:
    return convex_row_level(priors, channel, i, clock)


@_whole.register
def _convex_whole(priors: ConvexPriors, channel: AbstractChannel, clock: Clock) -> float | Bracket:
    """Output by output.

    For one output the supremum over p of max W[x, y] / p_Y(y), x over the support of p, is the
    largest W[x, y] over the x that any distribution of the set allows, divided by the smallest
    p_Y(y). To see this, mix a little of a distribution that allows x into the minimiser.
    """
    matrix, possible = scaled_matrix(channel), priors.possible()
    tops, least = matrix[possible].max(axis=0), matrix[possible].min(axis=0)
    seen = np.flatnonzero(tops > 0.0)
    caps = log_ratio(tops[seen], least[seen]) + roundoff(8.0)  # the largest that any prior allows
    level = reached = 0.0
    for place in np.argsort(-caps).tolist():
        if caps[place] <= level:
            break
        if clock.left() == 0.0:
            level = float(caps[place])
            break
        y = seen[place]
        column = np.where(possible, matrix[:, y] / tops[y], 0.0)
        leak, law = _output_level(priors, column)
        level, reached = max(level, leak), max(reached, -math.log(max(float(column @ law), TINY)))
        if level == math.inf:
            break
    return Bracket(max(0.0, min(reached - _CLOSE, level)), level)


@singledispatch
def row_ratio(channel: AbstractChannel, i: int, fixed: bool) -> float:
    """Return the largest ln W[x, y]/W[x', y] over x, x' that differ in record i, by the matrix.

    With ``fixed`` they differ in nothing else.
    """
    return round_up(float(row_ratios(scaled_matrix(channel), channel.space, i, fixed).max()))


@row_ratio.register
def _product_row_ratio(channel: ProductChannel, i: int, fixed: bool) -> float:
    """Use the kernel of the record, or of all records."""
    if channel.space.sizes[i] == 1:
        return 0.0
    if fixed:
        return round_up(float(channel.kernels[i].log_ratios.max()))
    return extreme_level(channel)


def _bits(channel: AbstractChannel, low: Chance, high: Chance, i: int | None) -> float:
    """Independent bits with probabilities in an interval."""
    if low[1] == 0.0 and high[0] == 0.0:
        return extreme_level(channel) if i is None else row_ratio(channel, i, fixed=True)
    return interval_level(channel, low, high, i)


def _in_box(channel: AbstractChannel, box: Box, i: int | None) -> float:
    """Independent records with distributions in a box."""
    if box.size == 2:
        return _bits(channel, *chances(box), i)
    return row_box_level(channel, box, i)


# Leakage of single outputs under the worst prior of a set, about a record or given an event.


def check_set(priors: PriorSet, channel: AbstractChannel) -> None:
    """Refuse a set of priors whose databases differ from the inputs of the channel."""
    if isinstance(priors, RowPriors) and channel.space != priors.space:
        raise InvalidInput(
            f"priors and channel must be on the same databases; got {priors.space!r} and "
            f"{channel.space!r}."
        )
    if channel.space.size != priors.size:
        raise InvalidInput(
            f"priors must be over the {short(channel.space.size)} databases of the channel; "
            f"got {short(priors.size)}."
        )


def set_row_leakages(priors: PriorSet, channel: AbstractChannel, i: Any, clock: Clock) -> Floats:
    """Return the largest leakage of every output about record i over a set of priors.

    If the time runs out, it is the upper bound proved so far.
    """
    check_set(priors, channel)
    check.fits(channel.output_count, "the leakage of every output", "use pml_level with row=")
    group = group_numbers(channel, i)
    if isinstance(priors, BernoulliPriors | RowBoxPriors):
        leaks = independent_leakages(priors, channel, group)
    elif len(group) == 1:
        leaks = _row(priors, channel, group[0], clock)
    else:
        leaks = _row(*joined(priors, channel, group), 0, clock)
    if channel.matrix_error == 0.0:
        return leaks
    one_of_product = isinstance(priors, ProductPriors) and len(group) == 1
    most = neighbour_level(channel) if one_of_product else extreme_level(channel)
    return np.minimum(leaks + 4.0 * channel.matrix_error, most)


@singledispatch
def _row(priors: PriorSet, channel: AbstractChannel, i: int, clock: Clock) -> Floats:
    raise InvalidInput(
        f"priors must be a set with an algorithm for single outputs; got {priors!r}. Use "
        "pml_level(channel, priors, row=i), the largest leakage over all outputs."
    )


@_row.register(AllPriors)
@_row.register(ProductPriors)
def _all_or_product_row(priors: PriorSet, channel: AbstractChannel, i: int, clock: Clock) -> Floats:
    """Compare any two databases that differ in record i; neighbours for product priors."""
    fixed = isinstance(priors, ProductPriors)
    ratios = row_ratios(scaled_matrix(channel), channel.space, i, fixed)
    return np.array([round_up(ratio) for ratio in ratios.tolist()])


def row_ratios(matrix: Floats, space: Space, i: int, fixed: bool) -> Floats:
    """Return the largest ln W[x, y]/W[x', y] over x, x' that differ in record i, for every y."""
    inner, m = int(space.strides[i]), space.sizes[i]
    blocks = matrix.reshape(-1, m, inner, matrix.shape[1])
    axes = () if fixed else (0, 2)
    tops, bottoms = blocks.max(axis=axes), blocks.min(axis=axes)
    worst = np.zeros(matrix.shape[1])
    for s, t in itertools.permutations(range(m), 2):
        top, bottom = (tops[:, s], bottoms[:, t]) if fixed else (tops[s], bottoms[t])
        seen = top > 0
        ratios = np.zeros(top.shape)
        ratios[seen] = log_ratio(top[seen], bottom[seen])
        worst = np.maximum(worst, ratios.reshape(-1, matrix.shape[1]).max(axis=0))
    return worst


@_row.register
def _box_row(priors: Box, channel: AbstractChannel, i: int, clock: Clock) -> Floats:
    return box_row_leakages(priors, channel, i)


@_row.register
def _convex_row(priors: ConvexPriors, channel: AbstractChannel, i: int, clock: Clock) -> Floats:
    return convex_row_leakages(priors, channel, i, clock)


def set_conditional_leakages(
    priors: PriorSet, channel: AbstractChannel, event: np.ndarray
) -> Floats:
    """Return the largest leakage of every output given an event, over a set of priors.

    Priors that rule the event out do not count.
    """
    check_set(priors, channel)
    if not event.any():
        raise InvalidInput(
            "no database is in the given event. Give an event that contains a database."
        )
    return _given(priors, scaled_matrix(channel), event)


@singledispatch
def _given(priors: PriorSet, matrix: Floats, event: np.ndarray) -> Floats:
    raise InvalidInput(
        "priors must be PriorSet.all, .product, a box, a ball or a polytope if an event is "
        f"given; got {priors!r}. Use a box around it."
    )


@_given.register(AllPriors)
@_given.register(ProductPriors)
def _all_or_product_given(priors: PriorSet, matrix: Floats, event: np.ndarray) -> Floats:
    """Distributions near a point mass in the event, which are products."""
    inside = matrix[event]
    tops, bottoms = inside.max(axis=0), inside.min(axis=0)
    seen = tops > 0.0
    ratios = np.zeros(len(tops))
    ratios[seen] = log_ratio(tops[seen], bottoms[seen])
    return np.array([round_up(ratio) for ratio in ratios.tolist()])


@_given.register
def _convex_given(priors: ConvexPriors, matrix: Floats, event: np.ndarray) -> Floats:
    """Output by output: the smallest P(y, E)/P(E), a quotient of two means."""
    possible = priors.possible() & event
    if not possible.any():
        raise InvalidInput(
            "given must be possible under some prior of the set; none allows it. Give another "
            "event, or a larger set."
        )
    leaks = np.zeros(matrix.shape[1])
    tops = matrix[possible].max(axis=0)
    for y in np.flatnonzero(tops > 0.0):
        column = np.where(possible, matrix[:, y] / tops[y], 0.0)
        least = _least_quotient(priors, column, possible)
        leaks[y] = -log_down(least) + roundoff(8.0) if least > 0.0 else math.inf
    return leaks


def _least_quotient(priors: ConvexPriors, column: Floats, inside: np.ndarray) -> float:
    """Return a lower bound on the smallest P(y, E)/P(E) over distributions with P(E) > 0.

    For every r the quotient is at least r + min(P(y, E) - r P(E))/min P(E), where the first minimum
    is 0 at the smallest quotient (Dinkelbach). If P(E) may vanish, the bound is the smallest entry.
    A distribution may then be anything inside the event, unless a polytope restricts it.
    """
    chance = inside.astype(np.float64)
    best, law = float(column[inside].min()), priors.smallest_sum(-chance)[1]
    rarest = priors.smallest_sum(chance)[0]
    if rarest <= 0.0:
        return best
    quotient = math.inf
    for _ in range(_ROUNDS):
        reached = float(column @ law / (chance @ law))
        if reached >= quotient * (1.0 - _SAME):
            break
        quotient = reached
        below, law = priors.smallest_sum(column - quotient * chance)
        best = max(best, quotient + lowered(min(below, 0.0) / rarest, 8.0))
    return lowered(best, 8.0)


# Leakage about a record over a box of priors, and over boxes of the distributions of independent
# records.


def box_row_leakages(box: Box, channel: AbstractChannel, i: int) -> Floats:
    """Return the largest leakage of every output about record i over a box. Cost O(m N K log N).

    For an output y and a value v let A = P(y, x_i = v), B = P(y, x_i != v) and t = P(x_i = v).
    The leakage is ln A/(t (A + B)). At a fixed t the largest A and the smallest B do not depend on
    each other: both are knapsacks, piecewise linear in t. On a piece A = a + b t and
    A + B = s + r t. The quotient has its maximum at a bound of the piece or at a root of
    b r t^2 + 2 a r t + a s = 0. The leakage about the database bounds it, which matters above 30
    nats: the masses of a box are known up to roundoff only.
    """
    matrix, possible = scaled_matrix(channel), box.possible()
    inner, m = int(channel.space.strides[i]), channel.space.sizes[i]
    values = np.arange(channel.space.size) // inner % m
    tops = np.where(possible[:, None], matrix, 0.0).max(axis=0)
    leaks = np.full(matrix.shape[1], log_up(1.0) + roundoff(16.0))
    for y in np.flatnonzero(tops > 0.0):
        column = np.where(possible, matrix[:, y] / tops[y], 0.0)
        worst = 1.0
        for v in range(m):
            own = values == v
            if (possible & own & (column > 0.0)).any():
                worst = max(worst, _largest_share(box, column, own))
        leaks[y] = min(log_up(worst) + roundoff(16.0), _output_level(box, column)[0])
    return leaks


def _output_level(priors: ConvexPriors, column: Floats) -> tuple[float, Floats]:
    """Return the leakage of an output whose largest probability is scaled to 1, and the prior."""
    mean, law = priors.lowest(column)
    return (-log_down(mean) + roundoff(4.0) if mean > 0.0 else math.inf), law


def _largest_share(box: Box, column: Floats, own: np.ndarray) -> float:
    """Return the largest A/(t (A + B)) over the box, rounded up."""
    least, room = box.lower, box.upper - box.lower
    taken, free = math.fsum(least[own]), box.free
    first = max(0.0, free - math.fsum(room[~own]))  # what the other values cannot take
    last = max(first, min(free, math.fsum(room[own])))
    most = _filled(-column[own], least[own], room[own])  # from t - taken to -A
    rest = _filled(column[~own], least[~own], room[~own])  # from the remaining mass to B

    def shares(given: Floats) -> Floats:
        A, B = -np.interp(given, *most), np.interp(free - given, *rest)
        return _shares(taken + given, A, B, float(column[own].max()))

    ends = np.concatenate([most[0], free - rest[0], [first, last]])
    ends = np.unique(np.clip(ends, first, last))
    A, B = -np.interp(ends, *most), np.interp(free - ends, *rest)
    t, width = (taken + ends)[:-1], np.diff(ends)
    b, r = np.diff(A) / width, np.diff(A + B) / width
    a, s = A[:-1] - b * t, (A + B)[:-1] - r * t
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum((a * r) ** 2 - a * b * r * s, 0.0))
        turns = np.stack([(-a * r + root) / (b * r), (-a * r - root) / (b * r), -s / (2.0 * r)])
    turns = np.where(np.isfinite(turns), turns - taken, first)
    inside = np.clip(turns, ends[:-1], ends[1:]).reshape(-1)
    return float(shares(np.append(ends, inside)).max())


def _filled(values: Floats, least: Floats, room: Floats) -> tuple[Floats, Floats]:
    """Return the smallest mean of the values, with more and more mass given out: its corners."""
    order = np.argsort(values)
    masses = np.append(0.0, np.cumsum(room[order]))
    sums = np.append(0.0, np.cumsum(room[order] * values[order]))
    return masses, float(least @ values) + sums


def _shares(t: Floats, A: Floats, B: Floats, top: float) -> Floats:
    """Return A/(t (A + B)), where A is at most top t. Rounded up.

    Masses may be off by a few ulp of 1 for every database.
    """
    slack = roundoff(8 * len(t) + 64)
    up, low = A * (1.0 + slack) + slack * top, A * (1.0 - slack) - slack * top
    other = np.maximum(B * (1.0 - slack) - slack, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        share = up / (up + other) / np.maximum(t * (1.0 - slack) - slack, 0.0)
        bound = top / (np.maximum(low, 0.0) + other)
    return np.asarray(raised(np.minimum(share, bound), 8.0))


def chances(box: Box) -> tuple[Chance, Chance]:
    """Return the distributions of a bit with the smallest and the largest probability of 1."""
    (low0, low1), (high0, high1) = box.lower.tolist(), box.upper.tolist()
    least = min(high0, 1.0 - low1), max(low1, 1.0 - high0)
    most = max(low0, 1.0 - high1), min(high1, 1.0 - low0)
    return least, most


def corners(box: Box) -> Floats:
    """Return the corners of a box of distributions: all values at a bound but at most one."""
    m, laws = box.size, []
    check.fits(
        m * 2**m,
        "the corners of a box of distributions of a record",
        "use records of fewer values",
        1 << 20,
    )
    for k in range(m):
        others = [x for x in range(m) if x != k]
        for choice in itertools.product((0, 1), repeat=m - 1):
            law = np.zeros(m)
            law[others] = np.where(choice, box.upper[others], box.lower[others])
            law[k] = 1.0 - math.fsum(law)
            if box.lower[k] - roundoff(4) <= law[k] <= box.upper[k] + roundoff(4):
                laws.append(np.maximum(law, 0.0))
    return _distinct(np.array(laws))


def _distinct(laws: Floats) -> Floats:
    """Leave out distributions that are others but for rounding."""
    kept: list[Floats] = []
    for law in np.unique(laws, axis=0):
        if not any((np.abs(law - other) <= roundoff(8.0) * other).all() for other in kept):
            kept.append(law)
    return np.array(kept)


@singledispatch
def row_box_level(channel: AbstractChannel, box: Box, i: int | None) -> float:
    """Return the largest leakage (about record i, if given) under independent records of a box.

    The probability of y is linear in the distribution of each record, and its quotient by the one
    given x_i is linear-fractional in the distributions of the others. So all other records are at
    corners of the box.
    """
    laws, n, outputs = corners(box), channel.space.n, channel.output_count
    sides = [box.size if j == i else len(laws) for j in range(n)]
    check.fits(
        math.prod(sides) * outputs,
        "the probabilities of all outputs at all corners",
        "use fewer records, or a channel that acts on each record",
        _CORNER_ENTRIES,
    )
    matrix, possible = scaled_matrix(channel), box.possible()
    tops = matrix.max(axis=0)
    chances = (matrix / np.where(tops > 0.0, tops, 1.0))[:, tops > 0.0]
    slack = roundoff(2 * n * (box.size + 2) + 32)
    lead: Floats = chances.reshape((box.size,) * n + (-1,))
    if i is None:
        most = lead[np.ix_(*[possible] * n)].reshape(-1, lead.shape[-1]).max(axis=0)
    for j in range(n):
        if j != i:
            lead = _at_corners(lead, laws, j)
    if i is None:
        least = lead.reshape(-1, lead.shape[-1]).min(axis=0)
        seen = most > 0.0
        with np.errstate(divide="ignore"):
            worst = float((most[seen] / least[seen]).max(initial=1.0))
        return log_up(worst) + 2.0 * slack
    columns = np.moveaxis(lead, i, 0).reshape(box.size, -1)
    columns = columns[:, columns[possible].max(axis=0) > 0.0]
    worst = 1.0
    for start in range(0, columns.shape[1], _BLOCK):  # the smallest mean over a box is at a corner
        part = columns[:, start : start + _BLOCK]
        with np.errstate(divide="ignore"):
            shares = part[possible].max(axis=0) / (laws @ part).min(axis=0)
        worst = max(worst, float(shares.max()))
    return log_up(worst) + 2.0 * slack


def independent_leakages(
    priors: BernoulliPriors | RowBoxPriors, channel: AbstractChannel, group: tuple[int, ...]
) -> Floats:
    """Return the largest leakage of every output about a group of independent records.

    For a setting of the group, the probability of y given that setting is linear in the
    distribution of each other record, and the probability of y in those of all records. So the
    largest quotient is at corners. Cost O(n corners N K) for corners^n no larger than N, else more.
    """
    if isinstance(priors, BernoulliPriors):
        laws = np.array(chances_from(priors.c))
        possible = laws.max(axis=0) > 0.0
    else:
        laws, possible = corners(priors.record_set), priors.record_set.possible()
    n, m = channel.space.n, laws.shape[1]
    sides = max(m, len(laws))
    check.fits(
        sides**n * channel.output_count,
        "the probabilities of all outputs at all corners",
        "use fewer records",
        _CORNER_ENTRIES,
    )
    matrix = scaled_matrix(channel)
    tops = matrix.max(axis=0)
    table: Floats = (matrix / np.where(tops > 0.0, tops, 1.0)).reshape((m,) * n + (-1,))
    for j in range(n):
        if j not in group:
            table = _at_corners(table, laws, j)
    k, outputs = len(group), table.shape[-1]
    first = np.moveaxis(table, group, range(k))
    given = first[np.ix_(*[possible] * k)].reshape(-1, math.prod(first.shape[k:-1]), outputs)
    for j in group:
        table = _at_corners(table, laws, j)
    means = np.moveaxis(table, group, range(k)).reshape(-1, given.shape[1], outputs)
    most, least = given.max(axis=0), means.min(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(most > 0.0, most / least, 1.0).max(axis=0)
    slack = 2.0 * roundoff(2 * n * (m + 2) + 32)
    return np.array([log_up(max(1.0, share)) + slack for share in shares.tolist()])


def _at_corners(table: Floats, laws: Floats, j: int) -> Floats:
    """Return means over record j under each of some distributions, in the place of its values."""
    return np.moveaxis(np.tensordot(laws, np.moveaxis(table, j, 0), 1), 0, j)


@row_box_level.register
def _product_row_box_level(channel: ProductChannel, box: Box, i: int | None) -> float:
    """Every record by itself."""
    kinds = [channel.kernels[i]] if i is not None else channel.kernels.distinct
    alone = [row_box_level(Channel(kernel.matrix, [box.size]), box, 0) for kernel in kinds]
    return alone[0] if i is not None else add_over_rows(channel, alone)


# Leakage under the worst of the priors whose bits are independent, with probabilities in an
# interval.


@singledispatch
def interval_level(channel: AbstractChannel, low: Chance, high: Chance, i: int | None) -> float:
    """Return the largest leakage (about record i, if given) under bits in an interval."""
    return matrix_interval_level(channel, low, high, i)


def matrix_interval_level(
    channel: AbstractChannel, low: Chance, high: Chance, i: int | None
) -> float:
    """Use the matrix.

    The probability of y is linear in the probability of each bit. So it is smallest, and its ratio
    to the one given a bit is most extreme, at the bounds of the intervals. Cost O(N n K).
    """
    n, matrix = channel.space.n, scaled_matrix(channel)
    outputs, slack = matrix.shape[1], roundoff(8 * n + 16)
    corners = at_corners(matrix, low, high, [j for j in range(n) if j != i])
    if i is None:
        possible = matrix.reshape((2,) * n + (outputs,))[(_possible(low, high),) * n]
        most, least = possible.reshape(-1, outputs).max(axis=0), corners.min(axis=0)
        seen = most > 0.0
        return round_up(float(log_ratio(most[seen], least[seen]).max(initial=0.0))) + slack
    zero, one = np.moveaxis(corners.reshape(2**i, 2, -1), 1, 0)
    return math.log(_row_share(zero, one, low, high)) + slack


def at_corners(matrix: Floats, low: Chance, high: Chance, rows: list[int]) -> Floats:
    """Return the output distributions, with the given bits at either probability."""
    table = matrix
    for j in rows:
        zero, one = np.moveaxis(table.reshape(2**j, 2, -1), 1, 0)
        table = np.stack([q * zero + p * one for q, p in (low, high)], axis=1)
    return table.reshape(matrix.shape)


def _possible(low: Chance, high: Chance) -> slice:
    """Return the values that a bit can have."""
    return slice(0 if low[0] > 0.0 else 1, 2 if high[1] > 0.0 else 1)


def _row_share(zero: Floats, one: Floats, low: Chance, high: Chance) -> float:
    """Return the largest P(y | bit)/P(y), from the probabilities of outputs given a zero and a one.

    It is largest at the smallest probability of the bit. If the probability of an output
    underflows, the probability of the bit alone bounds it.
    """
    worst = 1.0
    for own, other, t in ((zero, one, high[0]), (one, zero, low[1])):
        if t < 1.0:
            rare = own < TINY
            mean = t * own + (1.0 - t) * other
            with np.errstate(divide="ignore"):
                shares = own / np.where(rare, 1.0, mean)
            worst = max(worst, float(shares.max()))
            if rare.any() and (own[rare] > other[rare]).any():
                worst = max(worst, 1.0 / t if t > 0.0 else math.inf)
    return raised(worst, 8.0)


@interval_level.register
def _product_interval_level(
    channel: ProductChannel, low: Chance, high: Chance, i: int | None
) -> float:
    """Every record by itself."""
    if i is not None:
        return interval_level(Channel(channel.kernels[i].matrix, [2]), low, high, 0)
    rows = [Channel(kernel.matrix, [2]) for kernel in channel.kernels.distinct]
    return add_over_rows(channel, [interval_level(row, low, high, None) for row in rows])


@interval_level.register
def _query_interval_level(channel: QueryChannel, low: Chance, high: Chance, i: int | None) -> float:
    """A count: only the number of bits with the larger probability matters. Cost O(n^2 K)."""
    if not channel.query.counts_bits():
        return matrix_interval_level(channel, low, high, i)
    n, matrix = channel.space.n, channel.kernel.matrix
    matrix = np.ascontiguousarray(matrix[:, matrix.max(axis=0) > 0.0])
    check.fits(n * matrix.size, "the work for all corners", "use fewer records", _CORNERS)
    error = corner_error(n, low, high)
    if i is None:
        first, last = n * (low[0] == 0.0), n * (high[1] > 0.0)
        most = matrix[first : last + 1].max(axis=0)
        least = np.full(matrix.shape[1], np.inf)
        for laws in corner_laws(n, low, high):
            np.minimum(least, (laws @ matrix).min(axis=0), out=least)
        seen = most > 0.0
        return round_up(float(log_ratio(most[seen], least[seen]).max(initial=0.0))) + error
    parts = ((laws @ matrix[:-1], laws @ matrix[1:]) for laws in corner_laws(n - 1, low, high))
    return math.log(max(_row_share(zero, one, low, high) for zero, one in parts)) + error


# Leakage under the worst of the priors whose bits are independent with one common probability.
#
# The probability of an output is a polynomial in the common probability p of a one. In Bernstein's
# basis C(n, k) p^k (1-p)^(n-k), its coefficients are means over the databases with k ones, so none
# is negative. A leakage is then the log of a quotient of two such polynomials. It is at most the
# largest quotient of coefficients. Intervals of p are halved until this bound is close to the
# quotient at a bound of the interval.


@singledispatch
def iid_level(
    channel: AbstractChannel, c: float, group: tuple[int, ...] | None, clock: Clock
) -> float | Bracket:
    """Return the largest leakage (about a group, if given) under bits with one probability.

    The probability is in [c, 1-c]. The result is a bracket if the time runs out.
    """
    if channel.space.n == 1:  # one bit is independent of no other
        return interval_level(channel, *chances_from(c), None if group is None else group[0])
    return matrix_iid_level(channel, c, group, clock)


def matrix_iid_level(
    channel: AbstractChannel, c: float, group: tuple[int, ...] | None, clock: Clock
) -> float | Bracket:
    """Through the matrix. Cost O(n^2 K) for every halving, and few are needed."""
    n, matrix = channel.space.n, scaled_matrix(channel)
    rows = channel.space.rows(np.arange(channel.space.size))
    ones = rows.sum(axis=1)
    if group is None:
        most = np.broadcast_to(matrix.max(axis=0), (n + 1, matrix.shape[1]))
        return _largest([most], None, matrix, ones, c, clock)
    given, settings = [], list(itertools.product((0, 1), repeat=len(group)))
    for setting in settings:
        own = (rows[:, group] == setting).all(axis=1)
        means = means_by_ones(matrix[own], ones[own] - sum(setting), n - len(group))
        given.append(_raised(means, len(group)))
    counts = np.array([[len(group) - sum(setting), sum(setting)] for setting in settings])
    return _largest(given, counts, matrix, ones, c, clock)


@iid_level.register
def _product_iid_level(
    channel: ProductChannel, c: float, group: tuple[int, ...] | None, clock: Clock
) -> float:
    """Take p = c or 1-c: the log of a record's quotient is convex in p, and so is their sum."""
    kernels, levels = channel.kernels, []
    if c == 0.0:  # the limits in which all bits become certain
        rows = range(len(kernels)) if group is None else group
        ends = [[float(kernels[j].log_ratios[:, t].max()) for j in rows] for t in (0, 1)]
        return raised(max(math.fsum(end) for end in ends), 6.0)
    for law in chances_from(c):
        prior = Product.iid(law, channel.space.n)
        if group is None:
            levels.append(leakage_levels(channel, prior)[0])
        else:
            levels.append(sum_up(row_level(channel, prior, i) for i in group))
    return max(levels)


@iid_level.register
def _query_iid_level(
    channel: QueryChannel, c: float, group: tuple[int, ...] | None, clock: Clock
) -> float | Bracket:
    """A count: its matrix has a row for every number of ones."""
    if not channel.query.counts_bits():
        return matrix_iid_level(channel, c, group, clock)
    matrix, n = channel.kernel.matrix, channel.space.n
    ones = np.arange(n + 1)
    if group is None:
        most = np.broadcast_to(matrix.max(axis=0), matrix.shape)
        return _largest([most], None, matrix, ones, c, clock)
    k = len(group)
    held = np.arange(k + 1)
    given = [_raised(matrix[j : n - k + j + 1], k) for j in held.tolist()]
    return _largest(given, np.stack([k - held, held], axis=1), matrix, ones, c, clock)


def means_by_ones(matrix: Floats, ones: np.ndarray, n: int) -> Floats:
    """Return the mean of the rows of a matrix for every number of ones."""
    totals = np.zeros((n + 1, matrix.shape[1]))
    np.add.at(totals, ones, matrix)
    return np.asarray(totals / np.bincount(ones, minlength=n + 1)[:, None])


def _raised(coefficients: Floats, degrees: int) -> Floats:
    """Return the coefficients of the same polynomials, seen as polynomials of a larger degree."""
    for _ in range(degrees):
        n = len(coefficients)
        share = np.arange(n + 1)[:, None] / n
        zero = np.zeros((1, coefficients.shape[1]))
        before, after = np.vstack([zero, coefficients]), np.vstack([coefficients, zero])
        coefficients = np.asarray(share * before + (1.0 - share) * after)
    return coefficients


def _largest(
    tops: list[Floats],
    counts: Ints | None,
    matrix: Floats,
    ones: np.ndarray,
    c: float,
    clock: Clock,
) -> float | Bracket:
    """Return ln of the largest quotient of ``tops`` and the probabilities of outputs.

    ``counts`` has the numbers of zeros and ones of the setting that each top is given.
    """
    n = len(tops[0]) - 1
    bottom = means_by_ones(matrix, ones, n)
    seen = matrix.max(axis=0) > 0.0
    pairs = [np.stack([top[:, seen], bottom[:, seen]], axis=1) for top in tops]
    whole = np.concatenate(pairs, axis=2)
    check.fits(
        whole.size * (n + 1),
        "the work for all outputs under bits with a common probability",
        "use fewer records or outputs, or bernoulli_interval, a larger set",
        _WORK,
    )
    known = None if counts is None else np.repeat(counts, seen.sum(), axis=0)
    first = _quotients(whole).max(axis=0)

    def part(outputs: Ints, low: float, high: float) -> tuple[Floats, Floats]:
        """Return bounds on the quotients of some outputs on an interval, and values at its bounds.

        If probabilities underflow, two other bounds hold: the coefficients on [0, 1], and one over
        the smallest probability of the setting that is given.
        """
        least, most = chance_of(low, c), chance_of(high, c)
        both = _on(np.ascontiguousarray(whole[:, :, outputs]), least, most)
        rare = both[:, 1] < TINY
        caps = first[outputs]
        if known is not None:
            alone = ((most[0], least[1]) ** known[outputs]).prod(axis=1)
            with np.errstate(divide="ignore", over="ignore"):
                caps = np.minimum(caps, 1.0 / alone)
        quotients = _quotients(both)
        bounds = np.where(rare, caps, quotients).max(axis=0, initial=0.0)
        return bounds, np.where(rare, 0.0, quotients)[[0, -1]].max(axis=0, initial=0.0)

    reached, late = 1.0, False

    def interval(low: float, high: float, outputs: Ints, most: float) -> _Interval:
        nonlocal reached
        bounds, attained = part(outputs, low, high)
        reached = max(reached, float(attained.max(initial=0.0)))
        bound = min(most, float(bounds.max(initial=0.0)))
        return _Interval(bound, low, high, outputs[bounds > reached])

    def halves(whole: _Interval) -> list[_Interval]:
        bound, low, high, outputs = whole
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return [whole]
        return [interval(*ends, outputs, bound) for ends in ((low, middle), (middle, high))]

    halvings = itertools.count()

    def over() -> bool:
        nonlocal late
        late = clock.left() == 0.0
        return late or next(halvings) >= _HALVINGS

    start = interval(c, 1.0 - c, np.arange(whole.shape[2]), math.inf)
    most = BestFirst([start], halves).run(lambda: reached * (1.0 + _HALVED), over)
    # Every number is made from positive ones: a mean under a distribution, and the means of the
    # matrix.
    error = 4.0 * corner_error(n, *chances_from(c)) + roundoff(4.0 * (len(matrix) + n))
    level = log_up(max(reached, most)) + error
    return Bracket(max(0.0, math.log(reached) - error), level) if late else level


class _Interval(NamedTuple):
    """An interval of the common probability, with outputs whose quotients may be largest."""

    bound: float
    low: float
    high: float
    outputs: Ints


def _on(both: Floats, low: Chance, high: Chance) -> Floats:
    """Return the coefficients of the polynomials on an interval, from those on [0, 1].

    Coefficient k is the mean for k bits with the larger probability and n - k with the smaller one.
    """
    flat = both.reshape(len(both), -1)
    parts = [laws @ flat for laws in corner_laws(len(both) - 1, low, high)]
    return np.concatenate(parts).reshape(both.shape)


def _quotients(both: Floats) -> Floats:
    """Return the quotients of coefficients, infinite over zero; 0/0 does not count."""
    top, bottom = both[:, 0], both[:, 1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(top > 0.0, top / bottom, 0.0)
