"""Individual and group capacity: the most an output reveals about one or k records."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.executors import mapping
from fastpriv._core.rounding import log_up
from fastpriv._matrices.searches.selection import best_selection
from fastpriv.channels import AbstractChannel, HammingChannel, ProductChannel
from fastpriv.channels.queries import chances_from
from fastpriv.errors import InvalidInput, TooLarge, short
from fastpriv.measures.capacity import capacity
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.individual.adversary import adversary_of, as_query, searched, widened
from fastpriv.measures.individual.convex import convex_leak
from fastpriv.measures.individual.copies import (
    by_copies,
    by_part,
    row_kernels,
    shown_capacity,
    with_code,
)
from fastpriv.measures.individual.equal_records import (
    affinity_limit,
    alike,
    by_flips,
    by_types,
    fits,
)
from fastpriv.measures.individual.mixtures import MOST, hull_leak
from fastpriv.measures.individual.prior_sets import (
    chain_leak,
    chain_ratio,
    common_leak,
    independent_leak,
    interval_leak,
    row_box_leak,
)
from fastpriv.measures.inputs import as_channel, as_pair
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.prior_sets import check_set, set_level
from fastpriv.measures.pointwise.record import unlike_rows, worst_row_level
from fastpriv.measures.realised import INFORMATION_ERROR
from fastpriv.measures.records import group_information
from fastpriv.priors import Distribution
from fastpriv.priors.sets import (
    AllPriors,
    BernoulliPriors,
    ConvexPriors,
    HullPriors,
    IidPriors,
    PriorSet,
    ProductPriors,
    RowBoxPriors,
)
from fastpriv.results import Bracket, IndividualCapacity, top

__all__ = ["cross_capacity", "group_capacity", "individual_capacity", "max_individual_capacity"]

PriorLike = Distribution | ArrayLike
#: Smallest gap of a search over a convex set of priors.
_SET_GAP = 1e-3
#: Smallest gap of a search over the mixtures of a few priors.
_HULL_GAP = 1e-9
#: Largest matrix of a record-by-record channel that is searched for an adversary.
_SEARCHED = 1 << 20
#: Most databases of an adversary with a given prior.
_LISTED = 1 << 16
#: Most records of several sizes whose outputs are counted.
_COUNTED = 1 << 12


def individual_capacity(
    channel: AbstractChannel | ArrayLike,
    priors: str | PriorSet | PriorLike = "all",
    *,
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
    executor: Any = None,
) -> IndividualCapacity:
    """Bound the individual channel capacity: the most an output reveals about one record, in nats.

    C_1 = max I(X_i; Y) over records i and priors (Wu-Xia-He 2020, Definition 5). Records may
    depend on each other, so C_1 can exceed the leakage under independent records.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism. A 2-D array is a mechanism on one record; row x is the output distribution
        for value x.
    priors : {"all", "independent", "markov"}, PriorSet or a single prior
        Priors that an adversary may have. Convex sets are searched to a gap of 1e-3 or more,
        and mixtures of up to six priors to any gap. Markov chains and sets of bits with bounded
        probabilities need records of two values.
    gap : float
        Width of the bracket to reach, in nats; relative if the capacity is below one nat.
    time_limit : float or None
        Seconds after which the bracket is returned, wider but valid. None bounds the work instead:
        the bracket is then the same on every machine.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Runs the search of a matrix or a query under all priors, in at least 16 tasks.

    Returns
    -------
    IndividualCapacity
        A bracket, rounded outwards, with the ``adversary`` that attains its lower bound: the
        record, a database for each of its values, and the distribution of these values. Over a
        convex set these are all databases that the attaining prior allows. It is None for a very
        large channel, whose databases are not listed.

    Notes
    -----
    Randomised response and equal bits have closed forms. Other channels are searched by branch and
    bound. The page "Individuals" of the documentation has costs, limits and proofs.

    Examples
    --------
    >>> import fastpriv as fp
    >>> alone, tied = fp.HammingChannel(1, 2, 1.0), fp.HammingChannel(4, 2, 1.0)
    >>> fp.individual_capacity(alone)
    IndividualCapacity(0.1109440716, 0.1109440717)
    >>> fp.individual_capacity(tied)  # four noisy copies of one bit
    IndividualCapacity(0.331838472, 0.3318384721)
    >>> fp.individual_capacity(tied, "independent")
    IndividualCapacity(0.1109440716, 0.1109440717)
    """
    if not isinstance(priors, str | PriorSet):
        mechanism, law = as_pair(channel, priors)
        return one_prior_leak(mechanism, law)
    kind = _kind(priors)
    if kind == "markov" and isinstance(channel, HammingChannel) and channel.space.m:
        kind = "all"  # the worst adversary makes all records equal: a chain
    if kind == "all":
        return group_capacity(channel, 1, gap=gap, time_limit=time_limit, executor=executor)
    mechanism, gap = as_channel(channel), check.real(gap, "gap", least=0.0)
    seconds = check.optional_limit(time_limit, "time_limit")
    clock = Clock(math.inf if seconds is None else seconds)
    if kind == "markov":
        return chain_leak(mechanism, gap, clock)
    if isinstance(kind, PriorSet):
        check_set(kind, mechanism)
        if isinstance(kind, BernoulliPriors):
            return interval_leak(mechanism, *chances_from(kind.c), gap, clock)
        if isinstance(kind, IidPriors):
            return common_leak(mechanism, kind.c, gap, clock)
        if isinstance(kind, RowBoxPriors):
            return row_box_leak(mechanism, kind.record_set, gap, clock)
        if isinstance(kind, HullPriors) and len(kind.laws) <= MOST:
            return hull_leak(mechanism, kind, max(gap, _HULL_GAP), seconds)
        half = None if seconds is None else 0.5 * seconds
        most = largest_leak(mechanism, 1, max(gap, 1e-9), half).upper
        rest = None if seconds is None else clock.left()
        return convex_leak(mechanism, kind, max(gap, _SET_GAP), most, rest)
    return independent_leak(mechanism, gap, clock)


def _kind(
    priors: str | PriorSet,
) -> str | BernoulliPriors | ConvexPriors | IidPriors | RowBoxPriors:
    """Return the name of a set of priors, or a set with bounds."""
    if isinstance(priors, ConvexPriors | IidPriors | RowBoxPriors):
        return priors
    if isinstance(priors, BernoulliPriors):
        return priors if priors.c > 0.0 else "independent"
    if isinstance(priors, AllPriors | ProductPriors):
        return "all" if isinstance(priors, AllPriors) else "independent"
    return check.word(priors, "priors", ("all", "independent", "markov"))


def group_capacity(
    channel: AbstractChannel | ArrayLike,
    k: int,
    *,
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
    executor: Any = None,
) -> IndividualCapacity:
    """Bound the group channel capacity: the most an output reveals about k records, in nats.

    C_k = max over groups G of k records and all priors of I(X_G; Y) (Wu-Xia-He 2020, Definition
    17). It is at most k C_1 (Theorem 4 there), and C_n is the channel capacity.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    k : int
        Size of the group, 1 .. n.
    gap, time_limit, executor
        As for :func:`individual_capacity`.

    Returns
    -------
    IndividualCapacity
        A bracket, rounded outwards, with the adversary that attains its lower bound.

    Examples
    --------
    >>> import fastpriv as fp
    >>> two_bits = fp.Channel([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1],
    ...                        [0.1, 0.1, 0.7, 0.1], [0.1, 0.1, 0.1, 0.7]], [2, 2])
    >>> fp.group_capacity(two_bits, 1), fp.group_capacity(two_bits, 2)
    (IndividualCapacity(0.2531016154, 0.2531016155), IndividualCapacity(0.4458463724, 0.4458463725))
    """
    mechanism = as_channel(channel)
    k = check.integer(k, "k", 1)
    n = mechanism.space.n
    if k > n:
        raise InvalidInput(f"k must be at most the number of records {n}; got {short(k)}.")
    gap = check.real(gap, "gap", least=0.0)
    seconds = check.optional_limit(time_limit, "time_limit")
    if executor is not None:
        run = mapping(executor)
        if not isinstance(mechanism, ProductChannel):
            return searched(mechanism, k, gap, seconds, run)
    return largest_leak(mechanism, k, gap, seconds)


def max_individual_capacity(
    channel: AbstractChannel | ArrayLike,
    priors: str | PriorSet | PriorLike = "all",
    *,
    time_limit: float = 60.0,
) -> float:
    """Return the largest information gain of a single output about one record, in nats.

    max over records i, priors and outputs y of ln p(y | x_i)/p(y) (Wu-Xia-He 2020, Definition 8).
    Over independent records this is the differential privacy level (Theorem 1 there). Over all
    priors it is the leakage capacity, because any two databases differ in some record.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    priors : {"all", "independent", "markov"}, PriorSet or a single prior
        Priors that an adversary may have. Over a set this is ``pml_level(channel, priors,
        row="worst")``.
    time_limit : float
        Seconds for a search over a set. If they run out, the level is the upper bound so far.

    Returns
    -------
    float
        Level in nats, rounded up. It is a supremum, approached by nearly degenerate priors.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(4, 2, 1.0)
    >>> fp.max_individual_capacity(channel), fp.max_individual_capacity(channel, "independent")
    (4.0, 1.0)
    """
    if not isinstance(priors, str | PriorSet):
        return worst_row_level(*as_pair(channel, priors))
    if isinstance(priors, PriorSet):
        mechanism = as_channel(channel, getattr(priors, "space", None))
        return top(set_level(priors, mechanism, "worst", Clock(time_limit)))
    mechanism, kind = as_channel(channel), _kind(priors)
    if kind == "markov":
        return chain_ratio(mechanism)
    return extreme_level(mechanism) if kind == "all" else neighbour_level(mechanism)


def one_prior_leak(channel: AbstractChannel, prior: Distribution) -> IndividualCapacity:
    """Largest I(X_i; Y) over records i under one prior."""
    best = -1.0, -1.0, 0
    upper = 0.0
    for i in unlike_rows(channel, prior).tolist():
        told = group_information(channel, prior, (i,))
        low, high = (told.lower, told.upper) if isinstance(told, Bracket) else (told, told)
        best, upper = max(best, (low, high, i)), max(upper, high)
    lower = max(0.0, best[0] * (1.0 - INFORMATION_ERROR))
    who = None
    if prior.space.size <= _LISTED:
        who = adversary_of(channel.space, (best[2],), prior.probabilities())
    return IndividualCapacity(lower, max(lower, upper * (1.0 + INFORMATION_ERROR)), who)


@singledispatch
def largest_leak(
    channel: AbstractChannel, k: int, gap: float, time_limit: float | None
) -> IndividualCapacity:
    """Largest I(X_G; Y) over groups G of k records and all priors, for checked arguments.

    The general algorithm searches the matrix, or the distributions of the answers of a query.
    """
    return searched(channel, k, gap, time_limit)


@largest_leak.register
def _product_largest_leak(
    channel: ProductChannel, k: int, gap: float, time_limit: float | None
) -> IndividualCapacity:
    """Enumerate flips for bits with one channel. Search other channels if the matrix is small.

    Otherwise records with one channel are bounded by types. For other records, a search of some of
    them gives the lower bound. The upper bound is the capacity of all records.
    """

    def search(part: ProductChannel) -> IndividualCapacity:
        return searched(part, k, gap, time_limit)

    if k == 1 and fits(channel.kernels):
        clock = Clock(math.inf if time_limit is None else time_limit)
        return by_flips(channel.kernels, gap, clock, capacity(channel, 1e-3).upper)
    if channel.space.size * channel.output_count <= _SEARCHED:
        return search(channel)
    if k == 1 and alike(channel.kernels):
        clock = Clock(math.inf if time_limit is None else time_limit)
        most = min(capacity(channel, 1e-9).upper, affinity_limit(channel.kernels, k))
        return by_types(channel.kernels, gap, clock, most)
    most = affinity_limit(channel.kernels, k)
    return by_part(channel, _SEARCHED, k, search, most)


@largest_leak.register
def _hamming_largest_leak(
    channel: HammingChannel, k: int, gap: float, time_limit: float | None
) -> IndividualCapacity:
    """Use the closed form for records of one size. Otherwise narrow a bracket by a search."""
    clock = Clock(math.inf if time_limit is None else time_limit)
    kinds = row_kernels(channel)
    bracket = by_copies(kinds, channel.kernels.assignment, k, clock)
    narrow = bracket.width <= gap * min(1.0, bracket.lower)
    if k > 1 and channel.space.m and not narrow:
        half = Clock(clock.share(2))
        bracket = with_code(bracket, kinds[0], channel.space.n, k, half)
        narrow = bracket.width <= gap * min(1.0, bracket.lower)
    if narrow or channel.space.size**2 > _SEARCHED:
        return bracket
    search = searched(channel, k, gap, None if time_limit is None else clock.left())
    best = max(search, bracket, key=lambda b: b.lower)
    upper = max(best.lower, min(search.upper, bracket.upper))
    return IndividualCapacity(best.lower, upper, best.adversary)


# Cross capacity: the most an output reveals about a person's value in another data set.


def cross_capacity(
    channel: AbstractChannel | ArrayLike, k: int, *, gap: float = 1e-9, time_limit: float = 60.0
) -> Bracket:
    """Bound the most an output reveals about a person's value in another data set, in nats.

    A record of k values in a second data set may depend on the first data set in any way. The
    result is the largest capacity of k rows of the matrix W (Wu-Xia-He 2020, Proposition 6, C^{2,1}
    there).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism of the first data set.
    k : int
        Number of values of a record of the second data set.
    gap, time_limit : float
        As for :func:`individual_capacity`.

    Returns
    -------
    Bracket
        The channel capacity if k is at least the number of outputs or of distinct output
        distributions. If the matrix does not fit, the upper bound is the channel capacity or ln k,
        whichever is smaller.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> fp.cross_capacity(channel, 2), fp.cross_capacity(channel, 4)
    (Bracket(0.1989093021, 0.1989093022), Bracket(0.2218881433, 0.2218881434))
    """
    mechanism = as_channel(channel)
    k = check.integer(k, "k", 1)
    gap = check.real(gap, "gap", least=0.0)
    time_limit = check.real(time_limit, "time_limit", least=0.0)
    if k == 1:
        return Bracket(0.0, 0.0)
    # Some optimal input distribution has at most as many databases as there are outputs.
    if k >= min(mechanism.output_count, mechanism.space.size):
        return capacity(mechanism, gap)
    return best_databases(mechanism, k, gap, time_limit)


@singledispatch
def best_databases(channel: AbstractChannel, k: int, gap: float, time_limit: float) -> Bracket:
    """Largest capacity of k rows of the matrix, k >= 2, for checked arguments."""
    return searched_databases(channel, k, gap, time_limit)


def searched_databases(channel: AbstractChannel, k: int, gap: float, time_limit: float) -> Bracket:
    """Search the output distributions of the answers."""
    sizes = channel.space.sizes
    if k == 2 == max(sizes):  # any two databases of bits differ in some bit
        single = largest_leak(channel, 1, gap, time_limit)
        return Bracket(single.lower, single.upper)
    try:
        query, table = as_query(channel)
    except TooLarge:
        least = largest_leak(channel, 1, gap, time_limit).lower if k >= max(sizes) else 0.0
        most = min(capacity(channel, gap).upper, log_up(k))
        return Bracket(min(least, most), most)
    rows = query.seen()
    if k >= len(rows):
        return capacity(channel, gap)
    best = best_selection(table, [[rows] * k], gap, time_limit)
    upper = best.upper
    if upper - best.lower > gap * min(1.0, best.lower):  # the search did not end
        upper = max(best.lower, min(upper, capacity(channel, 1e-3).upper))
    told = widened(IndividualCapacity(best.lower, upper, None), channel.matrix_error)
    return Bracket(told.lower, told.upper)


@best_databases.register
def _hamming_best_databases(
    channel: HammingChannel, k: int, gap: float, time_limit: float
) -> Bracket:
    """Use the closed form if every record with more than one value has at least k values."""
    kinds = row_kernels(channel)
    rows = [kinds[t] for t in channel.kernels.assignment.tolist() if kinds[t].m > 1]
    few = len(rows) <= _COUNTED or k == 2 or {row.m for row in rows} == {k}
    if rows and few and k <= min(row.m for row in rows):
        return shown_capacity(rows, k, Clock(time_limit))
    return searched_databases(channel, k, gap, time_limit)
