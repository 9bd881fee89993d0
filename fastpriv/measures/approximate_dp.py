"""Approximate differential privacy: the smallest delta for a given epsilon, and the inverse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, singledispatch
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, NORMAL, lowered, raised
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.ratios import (
    Pairs,
    all_pairs,
    apart,
    apart_by,
    crossing,
    excesses,
    rounded_slopes,
)
from fastpriv._structure.leakage import tropical
from fastpriv._structure.rows import RowKernel, Symmetric, TiltedRow
from fastpriv.channels import (
    AbstractChannel,
    Channel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.record import ColumnsChannel, RecordChannel
from fastpriv.channels.tilted import TiltedProduct
from fastpriv.channels.types import TypeChannel
from fastpriv.measures.dp import neighbour_level
from fastpriv.measures.inputs import is_stack, stacked
from fastpriv.measures.neighbours import (
    Paired,
    ResponseGroup,
    group_size,
    per_distance,
    with_neighbours,
)

__all__ = ["hockey_stick", "hockey_stick_epsilon"]

#: Most terms over all pairs of matrix rows that one thread computes.
_FEW = 1 << 19
#: Levels beyond which probabilities may underflow.
_UNDERFLOW = 600.0


@overload
def hockey_stick(
    channel: AbstractChannel,
    epsilon: float,
    *,
    neighbours: ArrayLike | None = ...,
    group: int = ...,
) -> float: ...
@overload
def hockey_stick(
    channel: AbstractChannel | ArrayLike,
    epsilon: ArrayLike,
    *,
    neighbours: ArrayLike | None = ...,
    group: int = ...,
    out: Floats | None = ...,
) -> float | Floats: ...
def hockey_stick(
    channel: AbstractChannel | ArrayLike,
    epsilon: float | ArrayLike,
    *,
    neighbours: ArrayLike | None = None,
    group: int = 1,
    out: Floats | None = None,
) -> float | Floats:
    """Compute the smallest delta at which a mechanism is (epsilon, delta)-DP.

    delta(epsilon) = max over neighbours x, x' of sum_y (p(y|x) - e^epsilon p(y|x'))_+, the
    hockey-stick divergence (Makhdoumi-Fawaz 2013, Definition 7, last item).

    Parameters
    ----------
    channel : channel, 2-D array, or stack (B, N, K)
        The mechanism, or many matrices. A 2-D array is a mechanism on one record; row x is
        the output distribution for value x.
    epsilon : float or array
        Privacy levels in nats, at least 0.
    neighbours : array or sparse array, optional
        Databases that must be hard to distinguish. Default: those that differ in one record. Pairs
        (k, 2) of integers, or a matrix of zeros and ones, are the edges of a graph. A matrix of
        other numbers has distances d, which multiply
        epsilon. Distances of a graph stand for its edges.
    group : int
        Number of records in which neighbours may differ. With a graph, the number of its edges
        between neighbours.
    out : array, optional
        Array that receives the deltas of a stack.

    Returns
    -------
    float or ndarray
        Delta in [0, 1] for each epsilon, rounded up. It is 0 if epsilon is at least
        ``dp_level(channel)``. For a stack, an array of shape ``(B, *epsilon.shape)``.

    Notes
    -----
    Cost per epsilon: closed form for randomised response (E_d), and O(group^2) for groups of its
    records. Channels that act record by record
    cost O(m^2 K) per distinct record, because neighbours differ in one record only. A query costs
    O(K) per pair of answers. Other channels cost O(N n (m-1) K) on the matrix.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.75, 0.25], [0.25, 0.75]]
    >>> fp.hockey_stick(channel, [0.0, 0.5, fp.dp_level(channel)]).round(6)
    array([0.5    , 0.33782, 0.     ])
    >>> round(fp.hockey_stick(fp.HammingChannel(1_000_000, 2, 1.0), 0.5), 6)
    0.287649
    """
    group = group_size(group)
    usual = neighbours is None and group == 1 and out is None
    if usual and isinstance(channel, Channel) and isinstance(epsilon, float):
        return _one_delta(channel, epsilon)
    given = check.array(epsilon, "epsilon")
    epsilons = check.floats(given.reshape(-1), "epsilon", 1)
    if is_stack(channel, out) and neighbours is None and group == 1:
        return _stack_deltas(channel, epsilons, given.shape, out)
    deltas = np.zeros(len(epsilons))
    for d, mechanism in with_neighbours(channel, neighbours, group):
        scaled = epsilons if d == 1.0 else np.asarray(lowered(epsilons * d, 2.0))
        found = np.minimum(excess(mechanism, scaled), 1.0)
        found[scaled >= neighbour_level(mechanism)] = 0.0
        deltas = np.maximum(deltas, found)
    return float(deltas[0]) if given.ndim == 0 else deltas.reshape(given.shape)


def _one_delta(channel: Channel, epsilon: float) -> float:
    """Return delta of a matrix at one epsilon."""
    check.real(epsilon, "epsilon", least=0.0)
    if _is_small(channel):  # the kernel compares epsilon with the level
        at, delta = np.array([epsilon]), np.empty((1, 1))
        kernels.stack_excess(channel.cube, at, rounded_slopes(at), math.inf, delta)
        return delta.item()
    if epsilon >= neighbour_level(channel):
        return 0.0
    return min(float(excess(channel, np.array([epsilon]))[0]), 1.0)


def _stack_deltas(
    channel: Any, epsilons: Floats, shape: tuple[int, ...], out: Floats | None
) -> Floats:
    """Deltas of every matrix of a stack."""
    slopes = rounded_slopes(epsilons)

    def run(W: Floats, off: float, deltas: Floats) -> int:
        return kernels.stack_excess(W, epsilons, slopes, off, deltas.reshape(len(W), -1))

    def alone(matrix: Floats) -> Any:
        return np.reshape(hockey_stick(matrix, epsilons), shape)

    return stacked(run, alone, channel, None, out, shape)


def hockey_stick_epsilon(
    channel: AbstractChannel | ArrayLike,
    delta: float,
    *,
    neighbours: ArrayLike | None = None,
    group: int = 1,
) -> float:
    """Compute the smallest epsilon at which a mechanism is (epsilon, delta)-DP.

    This is the inverse of :func:`hockey_stick`. For each pair of neighbours, delta is piecewise
    linear in e^epsilon, so the crossing has a closed form on each piece.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    delta : float
        Probability in [0, 1]. With 0 the result is the differential privacy level.
    neighbours, group
        Other neighbours, or groups of records, as for :func:`hockey_stick`.

    Returns
    -------
    float
        Epsilon >= 0 in nats, rounded up. Infinite if some database gives probability above
        ``delta`` to outputs that are impossible for a neighbour. The cost is a few evaluations of
        :func:`hockey_stick`.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]
    >>> fp.hockey_stick_epsilon(channel, 0.25), fp.hockey_stick_epsilon(channel, 0.2)
    (0.0, inf)
    >>> round(fp.hockey_stick_epsilon([[0.75, 0.25], [0.25, 0.75]], 0.33782), 4)
    0.5
    """
    target = check.real(delta, "delta", least=0.0, most=1.0)
    levels = [0.0]
    for d, mechanism in with_neighbours(channel, neighbours, group_size(group)):
        level = neighbour_level(mechanism)
        if target == 1.0:
            level = 0.0  # every mechanism is (0, 1)-private
        elif target > 0.0:
            level = min(level, excess_crossing(mechanism, target))
        levels.append(per_distance(level, d))
    return max(levels)


@singledispatch
def excess(channel: AbstractChannel, epsilons: Floats) -> Floats:
    """Return the largest sum_y (W[x, y] - e^epsilon W[x', y])_+ over neighbours, per epsilon."""
    return excesses(neighbour_laws(channel), epsilons)


@excess.register
def _dense_excess(channel: Channel, epsilons: Floats) -> Floats:
    """With one record, compare all pairs of rows of a small matrix in one call."""
    if not _is_small(channel):
        return excesses(neighbour_laws(channel), epsilons)
    deltas = np.empty((1, len(epsilons)))
    kernels.stack_excess(channel.cube, epsilons, rounded_slopes(epsilons), math.inf, deltas)
    return np.asarray(deltas[0])


def _is_small(channel: Channel) -> bool:
    """Whether it has one record, with few enough values to compare all pairs in one call."""
    values, outputs = channel.table().shape
    return len(channel.space.sizes) == 1 and values * values * outputs <= _FEW


@excess.register
def _hamming_excess(channel: HammingChannel, epsilons: Floats) -> Floats:
    """Randomised response: one output favours x, a - e^t b = a (1 - e^(t - epsilon)).

    It is largest for the records with the fewest values.
    """
    return _kept_excess(_most_kept(channel), channel.epsilon, epsilons)


@excess.register
def _response_group_excess(channel: ResponseGroup, epsilons: Floats) -> Floats:
    """Groups under randomised response: sum of P(loss = l) (1 - e^(t - l)) over losses l > t."""
    masses, losses = channel.kernel.matrix[0], raised(channel.losses, 2.0)
    terms = (-np.expm1(np.minimum(t - losses, 0.0)) @ masses for t in epsilons.tolist())
    return np.asarray(raised(np.array(list(terms)), len(masses) + 16.0))


@excess.register
def _support_excess(channel: SupportChannel, epsilons: Floats) -> Floats:
    """Messages that support x and not x' act as the one output of randomised response."""
    return _kept_excess(channel.most_different_rows()[0, 0], channel.level, epsilons)


def _kept_excess(kept: float, level: float, epsilons: Floats) -> Floats:
    """Return a (1 - e^(t - epsilon)) for probabilities a under x and a e^-epsilon under x'."""
    deltas = raised(-kept * np.expm1(np.minimum(epsilons - level, 0.0)), 16.0)
    # Below the level there is some excess, though it may be less than the smallest double.
    return np.where((epsilons < level) & (kept > 0.0), np.maximum(deltas, LEAST), deltas)


def _most_kept(channel: HammingChannel) -> float:
    """Return the largest probability a that a record of two or more values keeps its value."""
    return max((k.stay for k in channel.symmetric() if k.m > 1), default=0.0)


@singledispatch
def excess_crossing(channel: AbstractChannel, delta: float) -> float:
    """Return the smallest epsilon >= 0 from which the excess is at most delta > 0."""
    return crossing(neighbour_laws(channel), delta)


@excess_crossing.register
def _dense_excess_crossing(channel: Channel, delta: float) -> float:
    """With one record, compare all pairs of rows of a small matrix in one call."""
    if not _is_small(channel):
        return crossing(neighbour_laws(channel), delta)
    return crossing([(channel.table(), _ordered_pairs(len(channel.table())))], delta)


@lru_cache(maxsize=16)
def _ordered_pairs(size: int) -> Ints:
    """Return all ordered pairs of different numbers below a size; one of equal numbers for 1."""
    x, other = np.indices((size, size)).reshape(2, -1)
    return np.asarray(np.stack([x, other], axis=1)[(x != other) | (size == 1)], np.int64)


@excess_crossing.register
def _hamming_excess_crossing(channel: HammingChannel, delta: float) -> float:
    """Randomised response: a (1 - e^(t - epsilon)) is delta at t = epsilon + ln(1 - delta/a)."""
    return _kept_crossing(_most_kept(channel), channel.epsilon, delta)


@excess_crossing.register
def _support_excess_crossing(channel: SupportChannel, delta: float) -> float:
    """The same for the messages that support x and not x'."""
    return _kept_crossing(channel.most_different_rows()[0, 0], channel.level, delta)


def _kept_crossing(kept: float, epsilon: float, delta: float) -> float:
    share = delta / kept if delta < kept else 1.0
    if share >= 1.0:
        return 0.0
    level = epsilon + math.log1p(-share)
    # The probability a has an error of 4 units. log1p amplifies it if the share is close to 1.
    level += 2.0**-50 * (epsilon + share / (1.0 - share))
    return min(max(level, 0.0), epsilon)


@singledispatch
def neighbour_laws(channel: AbstractChannel) -> Iterator[Pairs]:
    """Yield output distributions, and which pairs of them neighbours have, through the matrix.

    Only outputs that distinguish the two matter, so a structure may omit common factors.
    """
    matrix = np.array(channel.nearest_matrix(), order="C")
    for x, other in channel.space.neighbour_pairs():
        yield matrix, np.stack([x, other], axis=1)


@neighbour_laws.register
def _product_neighbour_laws(channel: ProductChannel) -> Iterator[Pairs]:
    """Distributions of one record per distinct kernel; factors of other records sum to one."""
    for kernel in channel.kernels.distinct:
        for laws, pairs in all_pairs(kernel.matrix):
            if isinstance(kernel, Symmetric):  # computed, so a pair is rounded apart
                yield from apart(laws, [(pairs[:, 0], pairs[:, 1])], 1)
            else:
                yield laws, pairs


@neighbour_laws.register
def _support_neighbour_laws(channel: SupportChannel) -> Iterator[Pairs]:
    """Messages that support one, the other, or both or none of the two most distinct values.

    The excess of a pair is proportional to the probability that a message supports one value and
    not the other.
    """
    steps = np.array([0, 1]), np.array([1, 0])
    yield from apart(channel.most_different_rows(), [steps], 1)


@neighbour_laws.register
def _columns_neighbour_laws(channel: ColumnsChannel) -> Iterator[Pairs]:
    """Distributions of every column: the factors of the other columns sum to one."""
    for column in channel.columns:
        yield from neighbour_laws(column)


@neighbour_laws.register
def _record_laws(channel: RecordChannel) -> Iterator[Pairs]:
    """Use the matrix; if its entries are computed, round the distributions of a pair apart."""
    matrix, steps = np.array(channel.nearest_matrix(), order="C"), channel.space.neighbour_pairs()
    if _computed(channel):
        yield from apart(matrix, steps, channel.columns.space.n)
        return
    for x, other in steps:
        yield matrix, np.stack([x, other], axis=1)


@neighbour_laws.register
def _query_neighbour_laws(channel: QueryChannel) -> Iterator[Pairs]:
    """The kernel, and the pairs of answers that neighbours have, each pair once."""
    pairs = channel.query.neighbours()
    yield channel.kernel.matrix, pairs if len(pairs) else np.zeros((1, 2), dtype=np.int64)


@neighbour_laws.register
def _type_neighbour_laws(channel: TypeChannel) -> Iterator[Pairs]:
    """Distributions of the class of y and of its value in the record that changes.

    Cost O(classes). The distributions of a pair are rounded apart.
    """
    stack = channel.all_classes
    moves = stack.row[stack.source] * len(channel.classes) + stack.row[stack.target]
    order = np.argsort(moves, kind="stable")
    count = np.exp(stack.log_outputs[stack.source]) * stack.share
    entry = channel.all_entries
    sides = np.stack([count * entry[stack.source], count * entry[stack.target]])
    for part in np.split(order, np.flatnonzero(np.diff(moves[order])) + 1):
        laws = np.ascontiguousarray(sides[:, part])
        yield from apart(laws, [(np.zeros(1, np.int64), np.ones(1, np.int64))], channel.space.n)


@neighbour_laws.register
def _tilted_neighbour_laws(channel: TiltedChannel) -> Iterator[Pairs]:
    """Distributions of y_i given x: only y_i distinguishes databases that differ in record i.

    Cost O(N n) for each record. The distributions of a pair are rounded apart.
    """
    law, space = channel.base.probabilities(), channel.space
    steps = [k.mixing if isinstance(k, Symmetric) else 0.0 for k in channel.hamming_kernels]
    for i, (m, inner) in enumerate(zip(space.sizes, space.strides.tolist(), strict=True)):
        mixed = mix(law.copy(), space.sizes, [*steps[:i], 0.0, *steps[i + 1 :]])
        values = mixed.reshape(-1, 1, m, inner).swapaxes(2, 3)
        laws = (channel.hamming_kernels[i].matrix[:, None, :] * values).reshape(-1, m)
        if channel.is_rare:
            laws = _rare_laws(channel, i)
        else:
            laws /= laws.sum(axis=1, keepdims=True)
        occurs = channel.base.log_marginal(i)[0] > -math.inf
        yield from apart(laws, space.neighbour_pairs(i), _factors(channel), occurs)


def _factors(channel: TiltedChannel) -> int:
    """Return the factors that count the error of the distributions; a logarithm t counts |t|."""
    n = channel.space.n
    return n + math.ceil(n * (channel.epsilon + 10.0) + 1000.0) if channel.is_rare else n


def _rare_laws(channel: TiltedChannel, i: int) -> Floats:
    """Distributions of y_i given x by logarithms, if weights underflow."""
    logs = channel.base.logs_if_rare()
    with np.errstate(divide="ignore"):
        start = np.log(channel.base.probabilities()) if logs is None else logs
    own, m, inner = (
        channel.hamming_kernels[i],
        channel.space.sizes[i],
        int(channel.space.strides[i]),
    )
    kept = [RowKernel(np.eye(m)) if j == i else k for j, k in enumerate(channel.hamming_kernels)]
    others = tropical(start, kept, np.logaddexp).reshape(-1, 1, m, inner).swapaxes(2, 3)
    terms = (own.log_relative[:, None, :] + others).reshape(-1, m)
    return np.asarray(np.exp(terms - np.logaddexp.reduce(terms, axis=1)[:, None]))


@neighbour_laws.register
def _tilted_product_neighbour_laws(channel: TiltedProduct) -> Iterator[Pairs]:
    """Distributions of the records, rounded apart."""
    for kernel in channel.as_product.kernels.distinct:
        occurs = kernel.occurs if isinstance(kernel, TiltedRow) else None
        for laws, pairs in all_pairs(kernel.matrix):
            yield from apart(laws, [(pairs[:, 0], pairs[:, 1])], 1, occurs)


@singledispatch
def laws_apart(channel: AbstractChannel) -> float:
    """Return the relative error by which ``neighbour_laws`` rounds a pair apart."""
    return 0.0


@laws_apart.register
def _query_apart(channel: QueryChannel) -> float:
    return channel.query.apart if isinstance(channel.query, Paired) else 0.0


@laws_apart.register
def _product_apart(channel: ProductChannel) -> float:
    kinds = channel.kernels.distinct
    sizes = [kernel.m for kernel in kinds if isinstance(kernel, Symmetric)]
    return apart_by(max(sizes), 1) if sizes else 0.0


@laws_apart.register
def _record_apart(channel: RecordChannel) -> float:
    computed = _computed(channel)
    return apart_by(channel.output_count, channel.columns.space.n) if computed else 0.0


def _computed(channel: RecordChannel) -> bool:
    """Whether matrix entries are products over records or columns, or otherwise computed."""
    return not isinstance(channel.columns, Channel | QueryChannel)


@laws_apart.register
def _tilted_laws_apart(channel: TiltedChannel) -> float:
    return apart_by(max(channel.space.sizes), _factors(channel))


@laws_apart.register
def _tilted_product_laws_apart(channel: TiltedProduct) -> float:
    return apart_by(max(channel.space.sizes), 1)


@laws_apart.register
def _support_laws_apart(channel: SupportChannel) -> float:
    return apart_by(3, 1)


@laws_apart.register
def _columns_laws_apart(channel: ColumnsChannel) -> float:
    return max(laws_apart(column) for column in channel.columns)


@laws_apart.register
def _type_laws_apart(channel: TypeChannel) -> float:
    return apart_by(len(channel.all_entries), channel.space.n)


@singledispatch
def laws_lost(channel: AbstractChannel) -> float:
    """Return the absolute error of the entries of ``neighbour_laws`` by underflow.

    It is 0 for channels given by entries, because their zeros are exact.
    """
    return 0.0


@laws_lost.register
def _tilted_laws_lost(channel: TiltedChannel) -> float:
    """A zero may be a probability that underflows."""
    return 2.0 * NORMAL


@laws_lost.register(ColumnsChannel)
@laws_lost.register(RecordChannel)
@laws_lost.register(SupportChannel)
def _columns_or_record_or_support_laws_lost(channel: AbstractChannel) -> float:
    """Zeros are probabilities that underflow, if the level is large and finite."""
    return 2.0 * NORMAL if _UNDERFLOW < neighbour_level(channel) < math.inf else 0.0


@laws_lost.register
def _query_laws_lost(channel: QueryChannel) -> float:
    """Entries of pairs that are rounded apart are computed, so zeros may be small probabilities."""
    return 2.0 * NORMAL if laws_apart(channel) > 0.0 else 0.0


@laws_lost.register
def _response_group_lost(channel: ResponseGroup) -> float:
    return 2.0 * channel.lost


@laws_lost.register
def _type_laws_lost(channel: TypeChannel) -> float:
    """Entries that are given are multiplied by sizes of classes and by shares of them."""
    given = channel.all_entries[channel.all_entries > 0.0]
    return 2.0 * NORMAL if given.min() < NORMAL * channel.space.n else 0.0


@singledispatch
def response(channel: AbstractChannel) -> tuple[int, float] | None:
    """Return values and level of the randomised response that dominates neighbours, if any."""
    return None


@response.register
def _hamming_response(channel: HammingChannel) -> tuple[int, float] | None:
    """Randomised response of one record with the fewest values, whose a is largest."""
    return min((m for m in channel.space.sizes if m > 1), default=1), channel.epsilon
