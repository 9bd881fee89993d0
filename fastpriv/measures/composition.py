"""Several releases: about one data set, about two data sets of the same people, about groups."""

from __future__ import annotations

import math
from functools import reduce, singledispatch
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, sum_up
from fastpriv._matrices.pairs import joint_laws
from fastpriv._matrices.selection import best_selection
from fastpriv._structure.rows import RowKernel, RowKernels
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel
from fastpriv.channels.queries.query import Listed
from fastpriv.errors import InvalidInput, TooLarge
from fastpriv.measures.arguments import as_channel
from fastpriv.measures.capacity import capacity, channel_capacity
from fastpriv.measures.individual import individual_capacity, largest_leak
from fastpriv.measures.individual.search import as_query
from fastpriv.results import Bracket

__all__ = [
    "compose",
    "composition_bound",
    "cross_capacity",
    "group_bound",
    "pair_datasets",
    "parallel_example",
    "two_dataset_bound",
]


def compose(*channels: AbstractChannel | ArrayLike) -> AbstractChannel:
    """Joint channel of several independent releases about one data set: all outputs together.

    p(y_1, y_2, ... | x) = p_1(y_1|x) p_2(y_2|x) ... (Wu-Xia-He 2020, Definition 19). Any measure
    of the result is exact for the composition, where bounds such as :func:`composition_bound` add.

    Parameters
    ----------
    *channels : channels or 2-D arrays
        The mechanisms, all on the same databases; a plain matrix takes the first one's space.

    Returns
    -------
    channel
        Channels that act row by row (E_d among them) give a ProductChannel, with the outputs of
        each row paired; queries give a QueryChannel, of one kernel if it is one query; the rest a
        matrix, N times the product of the numbers of outputs. Outputs are numbered in C order of
        (y_1, y_2, ...), in products for each row.

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

    The general algorithm takes both matrices. Cost O(N K_1 K_2).
    """
    return Channel(joint_laws(first.matrix(), second.matrix()), first.space)


@joined.register(ProductChannel)
def _(first: ProductChannel, second: AbstractChannel) -> AbstractChannel:
    """Join the outputs of every row, where both act row by row. Cost O(distinct pairs of rows)."""
    if not isinstance(second, ProductChannel):
        return Channel(joint_laws(first.matrix(), second.matrix()), first.space)
    mine, theirs = first._kernels, second._kernels
    codes = mine.assignment * len(theirs.distinct) + theirs.assignment
    kinds, which = np.unique(codes, return_inverse=True)
    pairs = [divmod(code, len(theirs.distinct)) for code in kinds.tolist()]
    laws = [
        RowKernel(joint_laws(mine.distinct[a].matrix, theirs.distinct[b].matrix)) for a, b in pairs
    ]
    return ProductChannel._trusted(RowKernels(laws, which))


@joined.register(QueryChannel)
def _(first: QueryChannel, second: AbstractChannel) -> AbstractChannel:
    """Join the laws of the answers of one query, or of the pairs of answers of two queries."""
    if not isinstance(second, QueryChannel):
        return Channel(joint_laws(first.matrix(), second.matrix()), first.space)
    query, one, two = first._query, first._kernel.matrix, second._kernel.matrix
    if not query.same(second._query):
        codes = query.listed() * len(two) + second._query.listed()
        pairs, values = np.unique(codes, return_inverse=True)
        query = Listed(values.astype(np.int64), first.space, len(pairs))
        one, two = one[pairs // len(two)], two[pairs % len(two)]
    return QueryChannel._structured(query, joint_laws(one, two), "answers")


def _about_one(channels: tuple[AbstractChannel | ArrayLike, ...]) -> list[AbstractChannel]:
    """Return channels on the first one's space."""
    if not channels:
        raise InvalidInput("give at least one channel to compose")
    first = as_channel(channels[0])
    others = [as_channel(channel, first.space) for channel in channels[1:]]
    for other in others:
        if other.space != first.space:
            raise InvalidInput(
                f"composed channels must be about one data set, got {first.space!r} and "
                f"{other.space!r}; two data sets: pair_datasets, two_dataset_bound"
            )
    return [first, *others]


def composition_bound(*channels: AbstractChannel | ArrayLike, gap: float = 1e-9) -> float:
    """Upper bound on the individual channel capacity of a composition: the sum of the parts'.

    C_1(p_1 x p_2 x ...) <= C_1(p_1) + C_1(p_2) + ... (Wu-Xia-He 2020, Theorem 5).

    Parameters
    ----------
    *channels : channels or 2-D arrays
        The mechanisms, all on the same databases; a plain matrix takes the first one's space.
    gap : float
        As for :func:`individual_capacity`.

    Returns
    -------
    float
        Bound in nats, rounded up.

    Examples
    --------
    >>> import fastpriv as fp
    >>> once = [[0.9, 0.1], [0.1, 0.9]]
    >>> round(fp.composition_bound(once, once), 6)
    0.736128
    >>> fp.individual_capacity(fp.compose(once, once))
    IndividualCapacity(0.5143747206, 0.5143747206)
    """
    parts = _about_one(channels)
    return sum_up([individual_capacity(channel, gap=gap).upper for channel in parts])


def group_bound(channel: AbstractChannel | ArrayLike, k: int, *, gap: float = 1e-9) -> float:
    """Upper bound on the capacity of a group of k rows: k times that of one (Theorem 4).

    C_k <= k C_1 for every mechanism and k (Wu-Xia-He 2020, Theorem 4, from the chain rule of
    Lemma 4). :func:`group_capacity` is the exact C_k.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    k : int
        Size of the group, 1 .. n.
    gap : float
        As for :func:`individual_capacity`.

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
    if k > mechanism.space.n:
        raise InvalidInput(f"k must be at most the number of rows {mechanism.space.n}, got {k}")
    return k * individual_capacity(mechanism, gap=gap).upper * (1.0 + 2.0 * ULP)


def cross_capacity(
    channel: AbstractChannel | ArrayLike, k: int, *, gap: float = 1e-9, time_limit: float = 60.0
) -> Bracket:
    """Most that an output can tell about a person's value in another data set, in nats.

    A row of k values in a second data set, tied in any way to the first, is seen through any k
    output laws of the channel: the largest capacity of k rows chosen from all rows of W
    (Wu-Xia-He 2020, Proposition 6, C^{2,1} there).

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
        The channel capacity itself once k reaches the number of outputs or of distinct laws;
        never less than the individual capacity of rows with at most k values. Where the matrix
        does not fit, the channel capacity and ln k are the upper end.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> fp.cross_capacity(channel, 2), fp.cross_capacity(channel, 4)
    (Bracket(0.1989093021, 0.1989093021), Bracket(0.2218881433, 0.2218881433))
    """
    mechanism = as_channel(channel)
    k = check.integer(k, "k", 1)
    gap = check.real(gap, "gap", least=0.0)
    time_limit = check.real(time_limit, "time_limit", least=0.0)
    sizes = mechanism.space.sizes
    if k == 1:
        return Bracket(0.0, 0.0)
    # No best input law needs more rows than there are outputs.
    if k >= min(mechanism.output_space.size, mechanism.space.size):
        return capacity(mechanism, gap)
    if k == 2 == max(sizes):  # any two databases of bits differ in some bit
        found = largest_leak(mechanism, 1, gap, time_limit)
        return Bracket(found.lower, found.upper)
    try:
        query, table = as_query(mechanism)
    except TooLarge:
        least = largest_leak(mechanism, 1, gap, time_limit).lower if k >= max(sizes) else 0.0
        most = min(capacity(mechanism, gap).upper, math.log(k) * (1.0 + 2.0 * ULP))
        return Bracket(min(least, most), most)
    rows = query.seen()
    if k >= len(rows):
        return capacity(mechanism, gap)
    best = best_selection(table, [[rows] * k], gap, time_limit)
    return Bracket(best.lower, best.upper)


def two_dataset_bound(
    first: AbstractChannel | ArrayLike, second: AbstractChannel | ArrayLike, *, gap: float = 1e-9
) -> float:
    """Upper bound on what releases about two data sets of the same people tell about one of them.

    Person i has row i in both data sets, tied in any way. Then
    I(X_i; Y_1, Y_2) <= C^{1,1} + C^{2,2} + C^{1,2} + C^{2,1} (Wu-Xia-He 2020, Theorem 6), the
    individual capacities of either channel and what each tells about rows of the other data set.

    Parameters
    ----------
    first, second : channels or 2-D arrays
        The mechanisms, on spaces with equally many rows.
    gap : float
        As for :func:`individual_capacity`.

    Returns
    -------
    float
        Bound in nats, rounded up. The exact value, where the pair fits as a matrix, is
        ``individual_capacity(pair_datasets(first, second))``.

    Notes
    -----
    In the proof, each channel tells about the pair (X_i^1, X_i^2) at most its individual and its
    cross capacity, and at most its channel capacity: the smaller of the two is added.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> round(fp.two_dataset_bound(channel, channel), 6)
    0.443776
    """
    one, two = _same_people(first, second)
    parts = []
    for mechanism, other in ((one, two), (two, one)):
        own = individual_capacity(mechanism, gap=gap).upper
        cross = cross_capacity(mechanism, max(other.space.sizes), gap=gap).upper
        parts.append(min(sum_up([own, cross]), capacity(mechanism, gap).upper))
    return sum_up(parts)


def pair_datasets(
    first: AbstractChannel | ArrayLike, second: AbstractChannel | ArrayLike
) -> AbstractChannel:
    """Joint channel of releases about two data sets of the same people, row i a pair of values.

    p(y_1, y_2 | x_1, x_2) = p_1(y_1|x_1) p_2(y_2|x_2) (Wu-Xia-He 2020, Definition 20).

    Parameters
    ----------
    first, second : channels or 2-D arrays
        The mechanisms, on spaces with equally many rows.

    Returns
    -------
    Channel
        A matrix of N_1 N_2 databases and K_1 K_2 outputs. Row i has m_i^1 m_i^2 values, the pair
        (a, b) numbered a m_i^2 + b; outputs are numbered in C order of (y_1, y_2).

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HammingChannel(2, 2, 1.0)
    >>> both = fp.pair_datasets(channel, channel)
    >>> both.space, fp.individual_capacity(both)
    (Space.hamming(n=2, m=4), IndividualCapacity(0.4127365188, 0.4127365188))
    """
    one, two = _same_people(first, second)
    outputs = one.output_space.size * two.output_space.size
    check.fits(
        one.space.size * two.space.size * outputs,
        "the matrix of both data sets",
        "bound it with two_dataset_bound",
        check.MAX_MATRIX,
    )
    pairs = np.indices((one.space.size, two.space.size)).reshape(2, -1)
    laws = joint_laws(one.matrix()[pairs[0]], two.matrix()[pairs[1]])
    n, sizes = one.space.n, (*one.space.sizes, *two.space.sizes)
    # NumPy has few axes; those of rows with one value are none.
    live = [axis for axis, size in enumerate(sizes) if size > 1]
    order = sorted(range(len(live)), key=lambda j: (live[j] % n, live[j]))
    shaped = laws.reshape(*(sizes[axis] for axis in live), outputs)
    laws = shaped.transpose(*order, len(live)).reshape(-1, outputs)
    return Channel(laws, [a * b for a, b in zip(sizes[:n], sizes[n:], strict=True)])


def _same_people(
    first: AbstractChannel | ArrayLike, second: AbstractChannel | ArrayLike
) -> tuple[AbstractChannel, AbstractChannel]:
    one, two = as_channel(first), as_channel(second)
    if one.space.n != two.space.n:
        raise InvalidInput(
            "both data sets must have a row for each of the same people, got "
            f"{one.space.n} and {two.space.n} rows"
        )
    return one, two


class ParallelExample(NamedTuple):
    """Two people, each answering through their own noise, and what is told about one of them."""

    channel: ProductChannel
    alone: Bracket
    together: Bracket


def parallel_example(p: float) -> ParallelExample:
    """Show that disjoint parts of a data set do not compose in parallel: two people, one secret.

    Each of two people releases a bit turned round with chance p. For differential privacy the
    pair of releases is as good as one. An adversary who knows that both bits are equal sees one
    bit twice and learns strictly more for 0 < p < 1/2, as the second release is not a function of
    the first (Wu-Xia-He 2020, Proposition 7, which leaves strictness open).

    Parameters
    ----------
    p : float
        Chance that a bit is turned round, 0 to 1.

    Returns
    -------
    ParallelExample
        ``channel`` of both people, the individual capacity of one release ``alone`` and of both
        ``together``.

    Examples
    --------
    >>> import fastpriv as fp
    >>> found = fp.parallel_example(0.25)
    >>> f"{found.alone:.6f} {found.together:.6f}"
    '[0.130812, 0.130812] [0.230040, 0.230040]'
    >>> round(fp.dp_level(found.channel), 12), round(fp.dp_level([[0.75, 0.25], [0.25, 0.75]]), 12)
    (1.098612288668, 1.098612288668)
    """
    p = check.real(p, "p", least=0.0, most=1.0)
    noise = [[1.0 - p, p], [p, 1.0 - p]]
    channel = ProductChannel([noise, noise])
    return ParallelExample(channel, channel_capacity(Channel(noise)), individual_capacity(channel))
