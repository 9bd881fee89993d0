"""Cross capacity: the most an output can tell about a person's value in another data set."""

from __future__ import annotations

from functools import singledispatch

from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.clock import Clock
from fastpriv._core.rounding import log_up
from fastpriv._matrices.selection import best_selection
from fastpriv.channels import AbstractChannel, HammingChannel
from fastpriv.errors import TooLarge
from fastpriv.measures.arguments import as_channel
from fastpriv.measures.capacity import capacity
from fastpriv.measures.individual.capacity import largest_leak
from fastpriv.measures.individual.copies import row_kernels, shown_capacity
from fastpriv.measures.individual.search import as_query, widened
from fastpriv.results import Bracket, IndividualCapacity

__all__ = ["cross_capacity"]

#: Most rows of several sizes whose outputs are counted.
_COUNTED = 1 << 12


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
