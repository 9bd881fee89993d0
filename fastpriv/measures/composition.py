"""Composition: several mechanisms on one data set, or on two data sets of the same people."""

from __future__ import annotations

import math
from functools import reduce, singledispatch

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.extras import progress_bar
from fastpriv._core.rounding import (
    lowered,
    raised,
    round_up,
    roundoff,
    sum_down,
    sum_up,
)
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.ratios import inwards, joint_laws, matrix_level, raised_beside
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel
from fastpriv.channels.queries import Listed
from fastpriv.errors import InvalidInput, short
from fastpriv.measures.capacity import capacity
from fastpriv.measures.constrained import constrained_capacity
from fastpriv.measures.individual import cross_capacity, individual_capacity, largest_leak
from fastpriv.measures.inputs import as_channel

__all__ = [
    "compose",
    "composition_bound",
    "constrained_composition_bound",
    "group_bound",
    "pair_datasets",
    "two_dataset_bound",
]

#: Share of ln N between an entropy and the next point below it with a computed capacity.
_NEAR = 1e-3


def compose(*channels: AbstractChannel | ArrayLike) -> AbstractChannel:
    """Build the joint channel of several independent mechanisms on one data set.

    p(y_1, y_2, ... | x) = p_1(y_1|x) p_2(y_2|x) ... (Wu-Xia-He 2020, Definition 19). Measures of
    the joint channel are exact, while :func:`composition_bound` adds the parts. Products are
    rounded inwards, so ``dp_level`` of the joint channel is at most the sum of the levels.

    Parameters
    ----------
    *channels : channels or 2-D arrays
        The mechanisms, all on the same databases. A 2-D array gets the space of the first
        mechanism.

    Returns
    -------
    channel
        Channels that act record by record give a ProductChannel whose outputs are tuples for each
        record. Queries give a QueryChannel, on the same answers if the queries are equal. Other
        channels give a matrix with N rows and a column for each tuple of outputs. Outputs are
        numbered in C order of (y_1, y_2, ...); a ProductChannel numbers them for each record.

    Examples
    --------
    >>> import fastpriv as fp
    >>> twice = fp.compose(fp.HammingChannel(1_000, 2, 0.5), fp.HammingChannel(1_000, 2, 0.25))
    >>> twice
    ProductChannel(Space.hamming(n=1000, m=2) -> about 2^2000 outputs)
    >>> round(fp.dp_level(twice), 12)
    0.75
    """
    return reduce(joined, _about_one(channels))


@singledispatch
def joined(first: AbstractChannel, second: AbstractChannel) -> AbstractChannel:
    """Return the channel of two outputs about one database.

    The general algorithm uses both matrices. Cost O(N K_1 K_2).
    """
    return _joint(first, second)


def _joint(first: AbstractChannel, second: AbstractChannel) -> Channel:
    """Return the matrix of both outputs, rounded inwards: its level is at most the sum of both."""
    one, two, axes = (
        np.array(first.matrix(), order="C"),
        np.array(second.matrix(), order="C"),
        first.space.axes,
    )
    level = sum_down([matrix_level(one, axes), matrix_level(two, axes)])
    return Channel(inwards(joint_laws(one, two), axes, level), first.space)


@joined.register
def _product_joined(first: ProductChannel, second: AbstractChannel) -> AbstractChannel:
    """Join the outputs of every record, if both channels act record by record.

    Cost O(distinct pairs of records).
    """
    if not isinstance(second, ProductChannel):
        return _joint(first, second)
    mine, theirs = first.kernels, second.kernels
    codes = mine.assignment * len(theirs.distinct) + theirs.assignment
    kinds, which = np.unique(codes, return_inverse=True)
    pairs = [divmod(code, len(theirs.distinct)) for code in kinds.tolist()]
    laws = [_joint_row(mine.distinct[a], theirs.distinct[b]) for a, b in pairs]
    return ProductChannel.of(RowKernels(laws, which))


def _joint_row(first: RowKernel, second: RowKernel) -> RowKernel:
    """Return the channel of one record with both outputs, rounded inwards."""
    one, two = first.exported(1), second.exported(1)
    axes = np.array([[1, len(one)]], dtype=np.int64)
    level = sum_down(round_up(float(part.log_ratios.max())) for part in (first, second))
    return RowKernel(inwards(joint_laws(one, two), axes, level))


@joined.register
def _query_joined(first: QueryChannel, second: AbstractChannel) -> AbstractChannel:
    """Join the distributions of the answers of one query, or of pairs of answers of two."""
    if not isinstance(second, QueryChannel):
        return _joint(first, second)
    query, one, two = first.query, first.kernel.matrix, second.kernel.matrix
    if not query.same(second.query):
        codes = query.listed() * len(two) + second.query.listed()
        pairs, values = np.unique(codes, return_inverse=True)
        query = Listed(values.astype(np.int64), first.space, len(pairs))
        one, two = one[pairs // len(two)], two[pairs % len(two)]
    pairs = query.neighbours()
    level = sum_down([_pairs_level(one, pairs), _pairs_level(two, pairs)])
    laws = joint_laws(one, two)
    if len(pairs) and _pairs_level(laws, pairs) > level:  # rounded inwards
        laws = raised_beside(laws, [(pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])], level)
    return QueryChannel.from_query(query, laws, "answers")


def _pairs_level(laws: Floats, pairs: Ints) -> float:
    """Return ln of the largest ratio of two entries of a column in rows of a pair."""
    return matrix_level(laws[pairs.reshape(-1)], np.array([[1, 2]])) if len(pairs) else 0.0


def _about_one(channels: tuple[AbstractChannel | ArrayLike, ...]) -> list[AbstractChannel]:
    """Return channels on the first one's space."""
    if not channels:
        raise InvalidInput("channels must be one channel or more; got none.")
    first = as_channel(channels[0])
    others = [as_channel(channel, first.space) for channel in channels[1:]]
    for other in others:
        if other.space != first.space:
            raise InvalidInput(
                f"channels must be on the same databases; got {first.space!r} and "
                f"{other.space!r}. For two data sets use pair_datasets or two_dataset_bound."
            )
    return [first, *others]


def composition_bound(
    *channels: AbstractChannel | ArrayLike,
    gap: float = 1e-9,
    time_limit: float = 60.0,
    progress: bool = False,
) -> float:
    """Bound the individual channel capacity of a composition by the sum over its parts.

    C_1(p_1 x p_2 x ...) <= C_1(p_1) + C_1(p_2) + ... (Wu-Xia-He 2020, Theorem 5).

    Parameters
    ----------
    *channels : channels or 2-D arrays
        The mechanisms, all on the same databases. A 2-D array gets the space of the first
        mechanism.
    gap : float
        As for :func:`individual_capacity`.
    time_limit : float
        Seconds for all searches together. After them the bound proved so far is returned.
    progress : bool
        Show a progress bar on a terminal, if tqdm is installed.

    Returns
    -------
    float
        Upper bound in nats, rounded up. It also holds for the rounded matrix of :func:`compose`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> once = [[0.9, 0.1], [0.1, 0.9]]
    >>> round(fp.composition_bound(once, once), 6)
    0.736128
    >>> fp.individual_capacity(fp.compose(once, once))
    IndividualCapacity(0.5143747205, 0.5143747206)
    """
    parts = _about_one(channels)
    clock, uppers = Clock(time_limit), []
    with progress_bar(len(parts), "channel", progress) as bar:
        for k, channel in enumerate(parts):
            seconds = clock.share(len(parts) - k)
            uppers.append(individual_capacity(channel, gap=gap, time_limit=seconds).upper)
            bar.update(1)
    total = sum_up(uppers)
    if len(parts) == 1 or total == 0.0:
        return total
    # Entries of joint distributions are rounded products. Relative errors d of the entries move the
    # root of a capacity by d/sqrt(2) at most, as in ``perturbed``.
    return raised((math.sqrt(total) + roundoff(len(parts))) ** 2, 8.0)


def group_bound(
    channel: AbstractChannel | ArrayLike,
    k: int,
    *,
    gap: float = 1e-9,
    time_limit: float = 60.0,
    progress: bool = False,
) -> float:
    """Bound the capacity of a group of k records by k times the individual capacity.

    C_k <= k C_1 for every mechanism and k (Wu-Xia-He 2020, Theorem 4, from the chain rule of Lemma
    4). :func:`group_capacity` computes C_k.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    k : int
        Size of the group, 1 .. n.
    gap : float
        As for :func:`individual_capacity`.
    time_limit : float
        Seconds for all searches together. After them the bound proved so far is returned.
    progress : bool
        Show a progress bar on a terminal, if tqdm is installed.

    Returns
    -------
    float
        Bound in nats, rounded up.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(3, 2, 1.0)
    >>> round(fp.group_bound(channel, 2), 6), round(fp.group_capacity(channel, 2).upper, 6)
    (0.542914, 0.327955)
    """
    mechanism = as_channel(channel)
    k = check.integer(k, "k", 1)
    n = mechanism.space.n
    if k > n:
        raise InvalidInput(f"k must be at most the number of records {n}; got {short(k)}.")
    with progress_bar(1, "search", progress) as bar:
        one = individual_capacity(mechanism, gap=gap, time_limit=time_limit).upper
        bar.update(1)
    return raised(k * one, 2.0)


def two_dataset_bound(
    first: AbstractChannel | ArrayLike,
    second: AbstractChannel | ArrayLike,
    *others: AbstractChannel | ArrayLike,
    gap: float = 1e-9,
    time_limit: float = 60.0,
    progress: bool = False,
) -> float:
    """Bound the information about one person in outputs on several data sets.

    Person i has record i in every data set. The records may depend on each other in any way. For
    two data sets I(X_i; Y_1, Y_2) <= C^{1,1} + C^{2,2} + C^{1,2} + C^{2,1} (Wu-Xia-He 2020, Theorem
    6). The terms are the individual capacities of both channels and their cross capacities.

    Parameters
    ----------
    first, second, *others : channels or 2-D arrays
        The mechanisms, on spaces with equally many records.
    gap : float
        As for :func:`individual_capacity`.
    time_limit : float
        Seconds for all searches together. After them the bound proved so far is returned.
    progress : bool
        Show a progress bar on a terminal, if tqdm is installed.

    Returns
    -------
    float
        Bound in nats, rounded up. If two mechanisms fit in a matrix,
        ``individual_capacity(pair_datasets(first, second))`` is exact.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> round(fp.two_dataset_bound(channel, channel), 6)
    0.443776
    >>> round(fp.two_dataset_bound(channel, channel, channel), 6)
    0.665664
    """
    mechanisms, gap = _same_people(first, second, *others), check.real(gap, "gap", least=0.0)
    clock, parts = Clock(time_limit), []
    left = 3 * len(mechanisms)
    with progress_bar(left, "search", progress) as bar:
        for j, mechanism in enumerate(mechanisms):
            told = capacity(mechanism, gap).upper
            rest = _values(mechanisms[:j] + mechanisms[j + 1 :])
            own = individual_capacity(mechanism, gap=gap, time_limit=clock.share(left)).upper
            for values, before in ((rest, own), (_values(mechanisms), 0.0)):
                left -= 1
                bar.update(1)
                if before < told:  # otherwise nothing is gained
                    cross = cross_capacity(mechanism, values, gap=gap, time_limit=clock.share(left))
                    told = min(told, sum_up([before, cross.upper]))
            left -= 1
            bar.update(1)
            parts.append(told)
    return sum_up(parts)


def _values(mechanisms: list[AbstractChannel]) -> int:
    """Return the largest number of joint values of a person's records."""
    return max(map(math.prod, zip(*(other.space.sizes for other in mechanisms), strict=True)))


def pair_datasets(
    first: AbstractChannel | ArrayLike, second: AbstractChannel | ArrayLike
) -> AbstractChannel:
    """Build the joint channel of two mechanisms on two data sets of the same people.

    p(y_1, y_2 | x_1, x_2) = p_1(y_1|x_1) p_2(y_2|x_2) (Wu-Xia-He 2020, Definition 20).

    Parameters
    ----------
    first, second : channels or 2-D arrays
        The mechanisms, on spaces with equally many records.

    Returns
    -------
    Channel
        A matrix of N_1 N_2 databases and K_1 K_2 outputs. Record i has m_i^1 m_i^2 values; the pair
        (a, b) has the number a m_i^2 + b. Outputs are numbered in C order of (y_1, y_2).

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> both = fp.pair_datasets(channel, channel)
    >>> both.space, fp.individual_capacity(both)
    (Space.hamming(n=2, m=4), IndividualCapacity(0.4127365188, 0.4127365189))
    """
    one, two = _same_people(first, second)
    size = one.space.size * two.space.size
    too_large = "the matrix of both data sets", "bound it with two_dataset_bound", check.MAX_MATRIX
    check.fits(size, *too_large)
    left, right = one.matrix(), two.matrix()
    outputs = left.shape[1] * right.shape[1]  # messages need not fill their space
    check.fits(size * outputs, *too_large)
    pairs = np.indices((one.space.size, two.space.size)).reshape(2, -1)
    laws = joint_laws(left[pairs[0]], right[pairs[1]])
    n, sizes = one.space.n, (*one.space.sizes, *two.space.sizes)
    # NumPy allows few axes, so records with one value get none.
    live = [axis for axis, size in enumerate(sizes) if size > 1]
    order = sorted(range(len(live)), key=lambda j: (live[j] % n, live[j]))
    shaped = laws.reshape(*(sizes[axis] for axis in live), outputs)
    laws = shaped.transpose(*order, len(live)).reshape(-1, outputs)
    return Channel(laws, [a * b for a, b in zip(sizes[:n], sizes[n:], strict=True)])


def _same_people(*channels: AbstractChannel | ArrayLike) -> list[AbstractChannel]:
    mechanisms = [as_channel(channel) for channel in channels]
    rows = {mechanism.space.n for mechanism in mechanisms}
    if len(rows) > 1:
        counts = " and ".join(str(mechanism.space.n) for mechanism in mechanisms)
        which = "both" if len(mechanisms) == 2 else "all"
        raise InvalidInput(
            f"{which} data sets must have a row for each of the same people; got {counts} rows."
        )
    return mechanisms


# Information of several outputs about a record, if the prior has an entropy of at least b.


def constrained_composition_bound(
    *channels: AbstractChannel | ArrayLike,
    b: float,
    k: int = 1,
    points: int = 6,
    gap: float = 1e-3,
    time_limit: float = 60.0,
) -> float:
    """Bound the information of several outputs about k records, for priors of entropy at least b.

    C_k^b of a composition (Wu-Xia-He 2020, Assumption 3) is NOT at most the sum of C_k^b of its
    parts, because the posterior after an output may have less entropy. It is at most

        C_k^b(first) + c_2(b - C(1)) + c_3(b - C(1) - C(2)) + ...

    Here C(j) is the channel capacity of mechanism j. The function c_j is the smallest concave
    majorant of its C_k^b as a function of b, with the value C_k below 0.

    Parameters
    ----------
    *channels : channels or 2-D arrays
        The mechanisms, all on the same databases, with outputs that are independent given the
        database.
    b : float
        Minimum entropy of the prior in nats, 0 .. ln N.
    k : int
        Size of the group of records, 1 .. n.
    points : int
        Number of entropies at which the capacities of later mechanisms are computed. More points
        give a smaller bound.
    gap : float
        As for :func:`constrained_capacity`.
    time_limit : float
        Seconds for all searches together. After them the bound proved so far is returned.

    Returns
    -------
    float
        Upper bound in nats, rounded up. It is at most the sum of the unconstrained capacities.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> one = fp.constrained_capacity(channel, 1.3).upper
    >>> both = fp.constrained_composition_bound(channel, channel, b=1.3)
    >>> 2 * one < both < 2 * fp.individual_capacity(channel).upper
    True
    """
    if not channels:
        raise InvalidInput("channels must be one channel or more; got none.")
    first = as_channel(channels[0])
    parts = [first, *(as_channel(channel, first.space) for channel in channels[1:])]
    if any(part.space != first.space for part in parts):
        raise InvalidInput(
            "channels must be on the same databases. Give all of them the same space."
        )
    least = check.real(b, "b", least=0.0)
    points = check.integer(points, "points", 2, check.MAX_POINTS)
    clock, told = Clock(check.limit(time_limit, "time_limit")), []
    for j, part in enumerate(parts):
        seconds = min(clock.share(len(parts) - j), 1e9)
        if j > 0 and seconds == 0.0:  # the time is over: all priors are more than those
            told.append(largest_leak(part, k, gap, 0.0).upper)
        elif j == 0:
            told.append(constrained_capacity(part, least, k=k, gap=gap, time_limit=seconds).upper)
        else:
            told.append(_majorant(part, least, k, points, gap, seconds))
        least = max(0.0, lowered(least - raised(capacity(part, 1e-6).upper, 2.0), 4.0))
    return sum_up(told)


def _majorant(
    channel: AbstractChannel, at: float, k: int, points: int, gap: float, seconds: float
) -> float:
    """Bound the smallest concave majorant of the constrained capacity at an entropy."""
    top = math.log(channel.space.size)
    if at == 0.0 or top == 0.0:
        return constrained_capacity(channel, 0.0, k=k, gap=gap, time_limit=seconds).upper
    near = max(0.0, at - _NEAR * top)
    grid = np.unique([*np.linspace(0.0, top, points), near, at])
    share = seconds / len(grid)
    upper = constrained_capacity(channel, grid, k=k, gap=gap, time_limit=share).upper
    # It does not increase, so between two points it is at most its value at the first point.
    return _hull(np.append(0.0, grid[1:]), np.append(upper[0], upper[:-1]), at)


def _hull(x: Floats, y: Floats, at: float) -> float:
    """Return the smallest concave function above some points, at one place. Rounded up."""
    left, right = x <= at, x >= at
    best = float(y[x == at].max(initial=0.0))
    for a, u in zip(x[left], y[left], strict=True):
        ends = right & (x > a)
        share = (at - a) / (x[ends] - a)
        best = max(best, float((u + share * (y[ends] - u)).max(initial=0.0)))
    return raised(best, 16.0)
