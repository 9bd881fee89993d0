"""Individual and group capacity: the most an output can tell about one row, or about k rows."""

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
from fastpriv.measures.individual.adversary import as_query, searched, widened
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
from fastpriv.measures.individual.prior_sets import (
    chain_leak,
    chain_ratio,
    common_leak,
    independent_leak,
    interval_leak,
    row_box_leak,
)
from fastpriv.measures.inputs import as_channel
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.prior_sets import check_set, set_level
from fastpriv.priors.sets import (
    AllPriors,
    BernoulliPriors,
    ConvexPriors,
    IidPriors,
    PriorSet,
    ProductPriors,
    RowBoxPriors,
)
from fastpriv.results import Bracket, IndividualCapacity, top

__all__ = ["cross_capacity", "group_capacity", "individual_capacity", "max_individual_capacity"]

#: Least gap of a search over a convex set of priors.
_SET_GAP = 1e-3
#: Largest matrix of a row-by-row channel that is searched for an adversary.
_SEARCHED = 1 << 20
#: Most rows of several sizes whose outputs are counted.
_COUNTED = 1 << 12


def individual_capacity(
    channel: AbstractChannel | ArrayLike,
    priors: str | PriorSet = "all",
    *,
    gap: float = 1e-9,
    time_limit: float | None = 60.0,
    executor: Any = None,
) -> IndividualCapacity:
    """Individual channel capacity: the most an output can tell about one row, in nats.

    C_1 = max over rows i and all priors of I(X_i; Y) (Wu-Xia-He 2020, Definition 5). Under the
    prior the other rows may depend on row i in any way. So C_1 is at least what independent rows
    leak, and it can be much more: if all rows are equal, each of them shows the same person's
    value. In the worst case the other rows are a function of x_i. Then C_1 is the largest capacity
    of a channel that consists of one row of W for each value of x_i (Theorem 2 there).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism. A plain matrix is one row with as many values as it has rows.
    priors : {"all", "independent", "markov"} or PriorSet
        Which priors an adversary may have.
        Convex sets of priors (``.box``, ``.min_entropy``, ``.polytope``, ``.total_variation``,
        ``.kl_ball`` and ``.entropy``) are searched by branch and bound with linear programs, to a
        gap of 1e-3 or more: about a second for 3 bits and 3 outputs. With more outputs, or rows of
        more values, the bracket may be wide. (For a least entropy :func:`constrained_capacity` has
        a search of its own, also for counts and products of many rows.) Markov chains, with any
        steps, are for rows of two values: the worst makes neighbouring rows functions of x_i,
        O(n^2 N) pairs of databases.
        (For E_d, with rows of one size, that is the worst of all priors.) Under independent rows
        the others are fixed in the worst case, and the result is the largest capacity of databases
        that differ in one row.
        Independent bits with bounded chances (``.bernoulli_interval``, ``.row_box``) are at their
        bounds, but for x_i; one common chance (``.iid_interval``) is searched by branch and bound.
        If the channel is epsilon-DP, that is at most psi(epsilon) = u - 1 - ln u with
        u = epsilon/(1 - e^-epsilon), about epsilon^2/8.
    gap : float
        Width to reach, in nats, and relative to capacities below one nat.
    time_limit : float or None
        Seconds after which the bracket is returned as it stands. It is valid at any time: the
        adversary that comes with it attains the lower end, and the upper end is proved. None bounds
        the work instead (about a second of it), so that the bracket is the same on every machine.
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Where to search a matrix or a query under all priors: a process pool, a Dask client, ...
        The search becomes at least 16 tasks, each with the whole time limit. Other channels and
        other priors have formulas or short searches, which run here.

    Returns
    -------
    IndividualCapacity
        A bracket with the ``adversary`` that attains its lower end: the row, a database for each
        of its values, and the law of these values. Rounded outwards.

    Notes
    -----
    Databases with the same output law count once, and a query counts its answers in place of its
    databases. Any output law q bounds all selections by max D(W_x || q). The rest is branch and
    bound. Bits need O(N^2 K) at worst, a few seconds for N = K = 1024. A count of n bits with K
    outputs needs O(n K) if two answers have the capacity of all of them, or if they tell a bit
    apart almost surely. For m > 2 values the number of selections is (N/m)^m. Most of them are left
    because of the affinities of their rows, sum_y sqrt(W_a W_b): random channels of 3^7 databases
    and 8 outputs take about five seconds, 4^5 and 16 outputs about twenty. Beyond, the upper end is
    at most the capacity of the best pair of rows times the mean number of yes-or-no questions that
    identify one of m values (5/3 for m = 3, 2 for m = 4).

    Bits that all pass through one channel need a sum over the net numbers of outputs for each
    number of bits that the two databases of the adversary flip against each other, O(n^3) for two
    outputs.

    Rows with more values that all pass through one channel, too many for a search, have a lower end
    from the types of their outputs: all rows copy x_i, except some that share another function.
    For up to 4 values their upper end is at most that of m rows with the least affinity of two
    databases.

    For E_d with rows of one size the worst adversary makes all rows equal and x_i uniform. The
    result is a sum over the partitions of n into at most m parts, or O(n) for bits. Beyond about
    2^21/m partitions (n = 2800 for m = 3, n = 60 for m = 10) sums are merged on a grid. The
    relative width is then 3e-5 for n = 100 and 6e-4 for n = 200 (m = 10, epsilon = 0.3). For
    thousands of rows with many values the bracket may be wide.

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
    kind = _kind(priors)
    if kind == "markov" and isinstance(channel, HammingChannel) and channel.space.m:
        kind = "all"  # the worst adversary makes all rows equal, which is a chain
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
    """Group channel capacity: the most an output can tell about k rows together, in nats.

    C_k = max over groups G of k rows and all priors of I(X_G; Y) (Wu-Xia-He 2020, Definition 17).
    It is the individual capacity with the group as one row. It is at most k C_1 (Theorem 4 there),
    and C_n is the channel capacity.

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
        A bracket with the adversary that attains its lower end.

    Notes
    -----
    All C(n, k) groups are searched, except that groups which differ only by rows with the same
    role in the channel are searched once. A group of k bits has 2^k values. For E_d with rows of
    one size the lower end is what a linear code on the words of the group tells, and for two bits
    the upper end is at most twice the information in 2n/3 copies of a bit.

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
        raise InvalidInput(f"k must be at most the number of rows {n}, got {short(k)}")
    gap = check.real(gap, "gap", least=0.0)
    seconds = check.optional_limit(time_limit, "time_limit")
    run = mapping(executor)
    if executor is not None and largest_leak.dispatch(type(mechanism)) is _general:
        return searched(mechanism, k, gap, seconds, run)
    return largest_leak(mechanism, k, gap, seconds)


def max_individual_capacity(
    channel: AbstractChannel | ArrayLike,
    priors: str | PriorSet = "all",
    *,
    time_limit: float = 60.0,
) -> float:
    """Largest information gain of a single output about one row, over priors, in nats.

    max over rows i, priors and outputs y of ln p(y | x_i)/p(y) (Wu-Xia-He 2020, Definition 8).
    Over priors with independent rows this is the differential privacy level (Theorem 1 there).
    Over all priors the other rows may be a function of x_i, and any two databases differ in some
    row. So it is the largest ln W[x, y]/W[x', y] over any two databases, the leakage capacity.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    priors : {"all", "independent", "markov"} or PriorSet
        Which priors an adversary may have. Over a set this is the leakage about its worst row,
        ``pml_level(channel, priors, row="worst")``.
    time_limit : float
        Seconds for a search over a set; when they are over, the level is what is proved by then.

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
    if isinstance(priors, PriorSet):
        mechanism = as_channel(channel, getattr(priors, "space", None))
        return top(set_level(priors, mechanism, "worst", Clock(time_limit)))
    mechanism, kind = as_channel(channel), _kind(priors)
    if kind == "markov":
        return chain_ratio(mechanism)
    return extreme_level(mechanism) if kind == "all" else neighbour_level(mechanism)


@singledispatch
def largest_leak(
    channel: AbstractChannel, k: int, gap: float, time_limit: float | None
) -> IndividualCapacity:
    """Largest I(X_G; Y) over groups G of k rows and all priors, for checked arguments.

    The general algorithm searches the matrix, or the laws of the answers of a query.
    """
    return searched(channel, k, gap, time_limit)


_general = largest_leak.dispatch(object)


@largest_leak.register
def _product_largest_leak(
    channel: ProductChannel, k: int, gap: float, time_limit: float | None
) -> IndividualCapacity:
    """Bits with one channel by the number of flips. Others are searched while the matrix is small.

    Otherwise rows with one channel go by types. For others some of the rows are searched for the
    lower end, and the upper end is the capacity of all rows.
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
    """Closed form for rows of one size. Otherwise a bracket, narrowed by a search while small."""
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


# Cross capacity: the most an output can tell about a person's value in another data set.


def cross_capacity(
    channel: AbstractChannel | ArrayLike, k: int, *, gap: float = 1e-9, time_limit: float = 60.0
) -> Bracket:
    """Most that an output can tell about a person's value in another data set, in nats.

    A row of k values in a second data set may depend on the first data set in any way. The result
    is the largest capacity of a channel with k rows chosen from those of W (Wu-Xia-He 2020,
    Proposition 6, C^{2,1} there).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism of the first data set.
    k : int
        Number of values of a row of the second data set.
    gap, time_limit : float
        As for :func:`individual_capacity`.

    Returns
    -------
    Bracket
        The channel capacity if k is at least the number of outputs or of distinct output laws. It
        is at least the individual capacity of rows with at most k values. If the matrix does not
        fit, the upper end is the channel capacity or ln k, whichever is less.

    Notes
    -----
    E_d with rows of at least k values has a closed form: in the best k databases no two agree in
    any row. The cost is that of listing the partitions of n into at most k parts, or O(n) for
    k = 2. Other channels are searched as for :func:`individual_capacity`.

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
    # Some optimal input law has at most as many rows as there are outputs.
    if k >= min(mechanism.output_count, mechanism.space.size):
        return capacity(mechanism, gap)
    return best_databases(mechanism, k, gap, time_limit)


@singledispatch
def best_databases(channel: AbstractChannel, k: int, gap: float, time_limit: float) -> Bracket:
    """Largest capacity of k rows of the matrix, k >= 2, for checked arguments."""
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
    """Closed form if every row that has a choice has at least k values."""
    kinds = row_kernels(channel)
    rows = [kinds[t] for t in channel.kernels.assignment.tolist() if kinds[t].m > 1]
    few = len(rows) <= _COUNTED or k == 2 or {row.m for row in rows} == {k}
    if rows and few and k <= min(row.m for row in rows):
        return shown_capacity(rows, k, Clock(time_limit))
    return best_databases.dispatch(AbstractChannel)(channel, k, gap, time_limit)
