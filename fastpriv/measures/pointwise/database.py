"""Pointwise maximal leakage about the whole database."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial, singledispatch
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv import kernels
from fastpriv._core.rounding import LEAST, raised, round_up, roundoff, sum_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._matrices.leakage import TINY, Leakages, matrix_leakages
from fastpriv._structure.leakage import Column, log_masses, vector_leakages
from fastpriv._structure.rows import RowKernel, RowKernels, Symmetric
from fastpriv._structure.type_pairs import TypePairs
from fastpriv.channels import AbstractChannel, Channel, ProductChannel, QueryChannel, TiltedChannel
from fastpriv.channels.local import SupportChannel
from fastpriv.channels.record import ColumnsChannel
from fastpriv.channels.tilted import PosteriorChain, TiltedProduct, TypeTilt
from fastpriv.channels.types import TypeChannel, log_type_weights, type_error, type_weights
from fastpriv.measures import supports
from fastpriv.measures.attributes import Attribute, secret_of, whole_channel
from fastpriv.measures.chain_bounds import is_long, leakage_bounds
from fastpriv.measures.inputs import as_pair, measured, output_rows, plain_pair, table
from fastpriv.measures.leakage import extreme_level
from fastpriv.priors import Distribution, Exchangeable, Markov, Product
from fastpriv.priors.exchangeable import OutputForm
from fastpriv.results import Bracket

__all__ = ["pml"]

ChannelLike = AbstractChannel | ArrayLike
PriorLike = Distribution | ArrayLike


@overload
def pml(
    channel: ChannelLike,
    prior: PriorLike,
    *,
    attribute: Attribute | None = ...,
    row: int | None = ...,
) -> Floats: ...
@overload
def pml(
    channel: ChannelLike,
    prior: PriorLike,
    y: ArrayLike,
    *,
    attribute: Attribute | None = ...,
    row: int | None = ...,
) -> float: ...
def pml(
    channel: ChannelLike,
    prior: PriorLike,
    y: ArrayLike | None = None,
    *,
    attribute: Attribute | None = None,
    row: int | None = None,
) -> Floats | float:
    """Return the pointwise maximal leakage of every output, or of one output, in nats.

    l(X -> y) = ln max_x p(y|x) / p_Y(y) over databases x that can occur (Saeidian et al. 2024,
    Theorem 2.4). It bounds how much more likely any guess about X becomes after y is seen. An
    output of probability zero leaks nothing. About an attribute U it is l(U -> y) = ln max_u
    p(y|u) / p_Y(y) over values u that can occur (Definition 2.2 and what follows), which is at most
    l(X -> y).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Distribution of the databases.
    y : int or array of values, optional
        One output, by index or by the value of each record. Only its leakage is computed.
    attribute : 1-D array, 2-D array, function or mapping, optional
        An attribute U of the database, instead of the database itself: a label for every database,
        a kernel p(u|x) with one row for every database, or a function of the database (a tuple of
        values; the value if there is one record). With ``row=i``, a function of x_i: a callable, a
        mapping from the values of record i, or a list of m_i labels.
    row : int, optional
        Number of the record that the attribute is a function of.

    Returns
    -------
    ndarray or float
        Nats, rounded up: for every output, or for output y.

    Notes
    -----
    All outputs cost one or two passes over a matrix, or O(N n m) for record-by-record channels. One
    output costs O(n m^2) on a Markov prior, and O(n) on independent records and exchangeable bits.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.pml([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5]).round(6)  # ln 1.5
    array([0.405465, 0.405465])
    >>> chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], 1_000_000)
    >>> channel = fp.HammingChannel(1_000_000, 2, 1.0)
    >>> round(fp.pml(channel, chain, y=[0] * 1_000_000), 3)
    98281.082
    >>> channel = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]
    >>> fp.pml(channel, [0.25, 0.5, 0.25], attribute=["a", "a", "b"]).round(6)
    array([0.154151, 0.405465])
    """
    if attribute is not None or row is not None:
        whole_channel(channel, attribute)
        leaks = secret_of(channel, prior, attribute, row).leakages().above
        if y is None:
            return leaks
        mechanism = as_pair(channel, prior)[0]
        return float(leaks[mechanism.column_index(output_rows(mechanism, y))])
    if y is None and (pair := plain_pair(channel, prior)):
        above = np.empty((1, pair[0].shape[2]))
        kernels.column_leakages(*pair, math.inf, above)
        if above[0, 0] >= 0.0:
            return np.asarray(above[0])
    mechanism, law = as_pair(channel, prior)
    if y is not None:
        return leakage_at(mechanism, law, output_rows(mechanism, y))
    return leakages(mechanism, law).above


@singledispatch
def leakages(channel: AbstractChannel, prior: Distribution) -> Leakages:
    """Return how far every output moves the odds of databases, up and down."""
    return listed_leakages(channel, prior)


def listed_leakages(channel: AbstractChannel, prior: Distribution) -> Leakages:
    """Return both leakages of all outputs of a channel.

    The matrix is read once, and again if leakage is small. If the matrix has errors, the leakage
    capacity is a second bound.
    """
    matrix, error = table(channel), channel.matrix_error
    both = matrix_leakages(matrix, prior.probabilities(), error, prior.logs_if_rare())
    if error == 0.0:
        return both
    most = extreme_level(channel)
    return Leakages(*(np.minimum(part, most) for part in both))


@singledispatch
def leakage_levels(channel: AbstractChannel, prior: Distribution) -> tuple[float, float]:
    """Return the largest of both leakages over outputs."""
    return leakages(channel, prior).largest()


def level_bounds(
    channel: AbstractChannel, prior: Distribution
) -> tuple[float | Bracket, float | Bracket]:
    """Return the largest of both leakages, as brackets if a long chain has only bounds."""
    kernels = channel.kernels
    if kernels is not None and isinstance(prior, Markov) and is_long(prior):
        return leakage_bounds(prior, kernels)
    return leakage_levels(channel, prior)


@singledispatch
def leakage_at(channel: AbstractChannel, prior: Distribution, y: Ints) -> float:
    """Return the pointwise maximal leakage of one output, given by the value of each record."""
    return float(leakages(channel, prior).above[channel.column_index(y)])


@leakage_at.register
def _dense_leakage_at(channel: Channel, prior: Distribution, y: Ints) -> float:
    """From the column of the output."""
    one = np.ascontiguousarray(channel.table()[:, [channel.column_index(y)]])
    return float(matrix_leakages(one, prior.probabilities(), logs=prior.logs_if_rare()).above[0])


@leakage_levels.register
def _dense_leakage_levels(channel: Channel, prior: Distribution) -> tuple[float, float]:
    """Read the matrix once; use vectors over outputs if some are rare."""
    if prior.logs_if_rare() is None:
        below, given = np.empty(1), (channel.table(), prior.probabilities()[None])
        above = measured(partial(_both_levels, below), *given)
        if not math.isnan(above):
            return above, below.item()
        above = measured(partial(_both_levels, np.empty(0)), *given)
        if not math.isnan(above):  # only the second leakage is beyond the range of a double
            return above, leakages(channel, prior).largest()[1]
    return leakages(channel, prior).largest()


def _both_levels(below: Floats, W: Floats, P: Floats, off: float, above: Floats) -> int:
    return kernels.leakage_levels(W, P, off, above, below)


@leakages.register
def _product_leakages(channel: ProductChannel, prior: Distribution) -> Leakages:
    """In the structure of the prior."""
    channel.check_vector_fits()
    return rows_leakages(prior, channel.kernels)


@leakage_levels.register
def _product_leakage_levels(channel: ProductChannel, prior: Distribution) -> tuple[float, float]:
    """In the structure of the prior."""
    return rows_levels(prior, channel.kernels)


@leakage_at.register
def _product_leakage_at(channel: ProductChannel, prior: Distribution, y: Ints) -> float:
    """In the structure of the prior."""
    return prior.column(channel.kernels, y).leakage()


@leakages.register
def _query_leakages(channel: QueryChannel, prior: Distribution) -> Leakages:
    """An output leaks about the answer as much as about the database."""
    return _answer_leakages(channel, channel.kernel.matrix, prior)


@leakage_at.register
def _query_leakage_at(channel: QueryChannel, prior: Distribution, y: Ints) -> float:
    """From the column of the output."""
    one = np.ascontiguousarray(channel.kernel.matrix[:, y])
    return float(_answer_leakages(channel, one, prior).above[0])


def _answer_leakages(channel: QueryChannel, laws: Floats, prior: Distribution) -> Leakages:
    query = channel.query
    return matrix_leakages(laws, query.law(prior), query.law_error, query.log_law(prior))


@leakages.register
def _type_leakages(channel: TypeChannel, prior: Distribution) -> Leakages:
    """Under an exchangeable prior by the type of the output, otherwise through the matrix."""
    types = prior.by_type()
    if types is None:
        return leakages(channel.as_channel(), prior)
    return Leakages(*map(channel.per_database, type_leakages(channel, types)))


@leakage_levels.register
def _type_leakage_levels(channel: TypeChannel, prior: Distribution) -> tuple[float, float]:
    types = prior.by_type()
    if types is None:
        return leakage_levels(channel.as_channel(), prior)
    return type_leakages(channel, types).largest()


@leakage_at.register
def _type_leakage_at(channel: TypeChannel, prior: Distribution, y: Ints) -> float:
    """Use the type under an exchangeable prior, otherwise the distribution of the class."""
    types = prior.by_type()
    if types is None:
        law, logs = channel.class_distribution(prior, y)
        entry = channel.entries[int(channel.types.number(y[None])[0])]
        error = type_error(channel.space.n)
        return float(matrix_leakages(entry[:, None], law, error, logs).above[0])
    return float(type_leakages(channel, types).above[channel.types.number(y[None])[0]])


def type_leakages(channel: TypeChannel, prior: Exchangeable) -> Leakages:
    """Return both leakages of an output of each type, from the distributions of types.

    O(classes).
    """
    weights = type_weights(channel.types, prior)
    alive = possible_types(channel, prior)
    law = channel.output_types(weights) / np.exp(channel.types.log_sizes)
    both = np.zeros((2, len(law)))
    for j, (classes, entry) in enumerate(zip(channel.classes, channel.entries, strict=True)):
        seen = entry[alive[classes.row]]
        # An output too rare for a double may leak any amount.
        if seen.max() > 0:
            rare = law[j] < TINY
            both[0, j] = math.inf if rare else max(0.0, math.log(seen.max() / law[j]))
            least = seen.min()
            known = least > 0.0 and not rare
            both[1, j] = max(0.0, math.log(law[j] / least)) if known else math.inf
    slack = roundoff(len(channel.all_entries) + 8 * channel.space.n + 64)
    return Leakages(*np.where(both > 0, both * (1 + slack) + slack, 0.0))


def possible_types(channel: TypeChannel, prior: Exchangeable) -> NDArray[np.bool_]:
    """Return which types of databases can occur."""
    return np.asarray(log_type_weights(channel.types, prior) > -math.inf)


@leakages.register
def _tilted_leakages(channel: TiltedChannel, prior: Distribution) -> Leakages:
    """The kernel R, tilted by 1 / (R q). Cost O(N n m)."""
    occurs, tilt = channel.log_tilt()
    both = vector_leakages(
        prior.probabilities(), channel.hamming_kernels, prior.logs_if_rare(), tilt
    )
    return Leakages(*(np.where(occurs, part, 0.0) for part in both))


@leakage_levels.register
def _tilted_leakage_levels(channel: TiltedChannel, prior: Distribution) -> tuple[float, float]:
    """By the type of the output where records are exchangeable, otherwise from all outputs."""
    by_type = tilted_types(channel, prior)
    return (leakages(channel, prior) if by_type is None else by_type).largest()


@leakage_at.register
def _tilted_leakage_at(channel: TiltedChannel, prior: Distribution, y: Ints) -> float:
    """By the type of the output where records are exchangeable, otherwise from all outputs."""
    by_type = tilted_types(channel, prior)
    if by_type is None:
        return float(leakages(channel, prior).above[channel.column_index(y)])
    assert channel.by_type is not None
    counts = np.bincount(y, minlength=len(channel.by_type.types))
    at = np.flatnonzero((channel.by_type.types == counts[:, None]).all(axis=0))
    return float(by_type.above[at[0]])


@leakage_levels.register
def _posterior_chain_leakage_levels(
    channel: PosteriorChain, prior: Distribution
) -> tuple[float, float]:
    """Chain: ln R[y, y]/p(y) at the rarest y, ln p(x)/R[x, y] at the commonest x. O(n m^2)."""
    if not channel.is_own_prior(prior):
        return _tilted_leakage_levels(channel, prior)
    scale, n = _log_stay(channel), channel.space.n
    above = scale - prior.log_smallest()
    below = n * channel.epsilon - scale - prior.min_entropy()
    error = roundoff(n + 16.0) * (abs(scale) + n * channel.epsilon - prior.log_smallest())
    return max(above, 0.0) + error, max(below, 0.0) + error


@leakage_at.register
def _posterior_chain_leakage_at(channel: PosteriorChain, prior: Distribution, y: Ints) -> float:
    """Chain: ln R[y, y]/p(y). Cost O(n)."""
    if not channel.is_own_prior(prior):
        return _tilted_leakage_at(channel, prior, y)
    log = float(prior.log_probabilities(y[None, :])[0])
    error = roundoff(channel.space.n + 16.0) * (abs(_log_stay(channel)) - log)
    return max(_log_stay(channel) - log, 0.0) + error


def _log_stay(channel: PosteriorChain) -> float:
    """Return ln R[y, y]."""
    move = (channel.prior.space.sizes[0] - 1) * math.exp(-channel.epsilon)
    return -channel.space.n * math.log1p(move)


@leakages.register
def _tilted_product_leakages(channel: TiltedProduct, prior: Distribution) -> Leakages:
    """Use the leakages of the product, plus their rounding errors."""
    both = leakages(channel.as_product, prior)
    return Leakages(*(np.where(v > 0.0, v + channel.rounding_error, 0.0) for v in both))


@leakage_levels.register
def _tilted_product_leakage_levels(
    channel: TiltedProduct, prior: Distribution
) -> tuple[float, float]:
    if prior.is_certain:
        return 0.0, 0.0
    above, below = leakage_levels(channel.as_product, prior)
    return above + channel.rounding_error, below + channel.rounding_error


@leakage_at.register
def _tilted_product_leakage_at(channel: TiltedProduct, prior: Distribution, y: Ints) -> float:
    if prior.is_certain:
        return 0.0
    return leakage_at(channel.as_product, prior, y) + channel.rounding_error


@leakages.register
def _support_leakages(channel: SupportChannel, prior: Distribution) -> Leakages:
    """Use the masses of the supports if messages are listed, otherwise the matrix."""
    if channel.listed is not None:
        return supports.leakages(channel, prior)
    return listed_leakages(channel, prior)


@leakage_levels.register
def _support_leakage_levels(channel: SupportChannel, prior: Distribution) -> tuple[float, float]:
    """From the smallest and the largest support. Cost O(k log k), or a pass over messages."""
    return supports.leakage_levels(channel, prior)


@leakage_at.register
def _support_leakage_at(channel: SupportChannel, prior: Distribution, y: Ints) -> float:
    """From the values that the message supports. Cost O(k)."""
    return supports.leakage_at(channel, prior, y)


@leakage_levels.register
def _columns_leakage_levels(channel: ColumnsChannel, prior: Distribution) -> tuple[float, float]:
    """Add up columns if they are independent, otherwise use the matrix."""
    pairs = supports.independent(channel, prior)
    if pairs is None:
        return leakages(channel, prior).largest()
    parts = [leakage_levels(*pair) for pair in pairs]
    return sum_up([part[0] for part in parts]), sum_up([part[1] for part in parts])


# Leakage of channels that act record by record, in the structure of the prior.


@singledispatch
def rows_leakages(prior: Distribution, kernels: RowKernels) -> Leakages:
    """Return both leakages of every output of a record-by-record channel. Cost O(N n m)."""
    return vector_leakages(prior.probabilities(), kernels, prior.logs_if_rare())


@singledispatch
def rows_log_output(prior: Distribution, kernels: RowKernels) -> Floats:
    """Return ln p_Y(y) / prod max W[., y_i], -inf only where impossible. Cost O(N n m)."""
    return log_masses(prior.probabilities(), kernels, prior.logs_if_rare())


@singledispatch
def rows_levels(prior: Distribution, kernels: RowKernels) -> tuple[float, float]:
    """Return the largest of both leakages over outputs."""
    return rows_leakages(prior, kernels).largest()


@rows_leakages.register
def _product_rows_leakages(prior: Product, kernels: RowKernels) -> Leakages:
    """Independent records: a sum over records. Cost O(outputs)."""
    laws, which, _, place = prior.paired(kernels)
    rows = [
        vector_leakages(prior.distinct[k], [kernels.distinct[j]])
        for k, j in zip(laws, which, strict=True)
    ]
    above, below = (_outer_sum(place, part) for part in zip(*rows, strict=True))
    seen = rows_log_output(prior, kernels) > -math.inf
    up = 1.0 + roundoff(2.0 * len(place))
    return Leakages(np.where(seen, above * up, 0.0), np.where(seen, below * up, 0.0))


@rows_log_output.register
def _product_rows_log_output(prior: Product, kernels: RowKernels) -> Floats:
    """Independent records: a sum over records. Cost O(outputs)."""
    laws, which, _, place = prior.paired(kernels)
    pairs = zip(laws, which, strict=True)
    return _outer_sum(
        place, [log_masses(prior.distinct[k], [kernels.distinct[j]]) for k, j in pairs]
    )


def _outer_sum(place: Ints, parts: Sequence[Floats]) -> Floats:
    """Return the sum over records of parts[place[i]][y_i], for every y."""
    total = np.zeros(1)
    for k in place:
        total = np.add.outer(total, parts[k]).reshape(-1)
    return total


@rows_levels.register
def _product_rows_levels(prior: Product, kernels: RowKernels) -> tuple[float, float]:
    """Independent records: the sum over records of the largest of each.

    Cost O(distinct records).
    """
    laws, which, counts, _ = prior.paired(kernels)
    levels = [
        kernel_levels(kernels.distinct[j], prior.distinct[k])
        for k, j in zip(laws, which, strict=True)
    ]
    above, below = (math.fsum(np.multiply(counts, part)) for part in zip(*levels, strict=True))
    return round_up(above), round_up(below)


@singledispatch
def kernel_levels(kernel: RowKernel, law: Floats) -> tuple[float, float]:
    """Return how far an output can move the odds of one record's value, up and down."""
    return vector_leakages(law, [kernel]).largest()


@kernel_levels.register
def _symmetric_kernel_levels(kernel: Symmetric, law: Floats) -> tuple[float, float]:
    """R_epsilon: up at the rarest value p that occurs, down at the commonest. No matrix is formed.

    An output y has the probability b + (a-b) p_y, which is a (1 - (1 - e^-epsilon)(1 - p_y)) and
    b (1 + (e^epsilon - 1) p_y). Rounded up.
    """
    seen, epsilon = law[law > 0], kernel.epsilon
    if len(seen) == 1:
        return 0.0, 0.0
    rare, common = float(seen.min()), float(seen.max())
    r = math.exp(-epsilon)
    if epsilon < 1.0:
        above = -math.log1p(math.expm1(-epsilon) * (1.0 - rare))
    else:
        above = -math.log(rare + (1.0 - rare) * r)
    if epsilon < 700.0:  # nothing cancels, even if every value is rare
        below = math.log1p(math.expm1(epsilon) * common)
    else:
        below = epsilon + math.log(common + (1.0 - common) * r)
    least = min(epsilon, LEAST)  # a product may underflow
    return raised(max(above, least), 16.0), raised(max(below, least), 16.0)


@rows_levels.register
def _markov_rows_levels(prior: Markov, kernels: RowKernels) -> tuple[float, float]:
    """Use the vector of a chain, or upper bounds of brackets if the chain is too long."""
    if is_long(prior):
        above, below = leakage_bounds(prior, kernels)
        return above.upper, below.upper
    return rows_leakages(prior, kernels).largest()


@rows_levels.register
def _exchangeable_rows_levels(prior: Exchangeable, kernels: RowKernels) -> tuple[float, float]:
    """Exchangeable records with one kernel: over types of outputs, O(n^2) for bits.

    More values use pairs of types if there are many databases, and otherwise the vector.
    """
    by_type = count_leakages(prior, kernels)
    if by_type is None:
        pairs = prior.type_pairs(kernels)
        if pairs is None:
            return rows_leakages(prior, kernels).largest()
        return rows_types(prior, pairs).largest()
    return max(up for _, up, _ in by_type), max(down for *_, down in by_type)


def count_leakages(
    prior: Exchangeable, kernels: RowKernels
) -> list[tuple[int, float, float]] | None:
    """Return both leakages of an output with each number of ones; None if types do not suffice."""
    kernel, n = kernels.distinct[0], prior.space.n
    if len(kernels.distinct) > 1 or kernel.shape != (2, 2):
        return None
    allowed, leaks = prior.possible_counts, [(0, 0.0, 0.0)]
    zero, one = (kernel.column_maxima > 0.0).tolist()  # which values can come out at all
    for ones in range(0 if zero else n, n + 1 if one else 1):
        form = OutputForm(kernels, np.repeat([0, 1], [n - ones, ones]))
        mass, best = form.log_mass(prior.log_weights), form.extreme(allowed)
        error = form.error + prior.log_error
        if mass is None:
            return None
        if best > -math.inf:  # the output can occur
            below = mass - form.extreme(allowed, -1.0) + error
            leaks.append((ones, Column(best, mass, error).leakage(), below))
    return leaks


# Leakage of exchangeable records through one kernel, tilted or not, by the type of the output.


def pair_leakages(
    pairs: TypePairs, log_prior: Floats, tilt: Floats, error: float = 0.0
) -> Leakages:
    """Return both leakages of an output of each type, of a channel proportional to W e^tilt[x].

    ``log_prior`` is the log of the probability of each type, ``tilt`` a number for each type. Cost
    O(types^2). Rounded up; 0 if no database has the output.
    """
    seen, weights = log_prior > -math.inf, log_prior + tilt
    best = (tilt[:, None] + pairs.nearest)[seen].max(axis=0)
    worst = (tilt[:, None] + pairs.farthest)[seen].min(axis=0)
    occurs = (best > -math.inf) & (pairs.log_tops > -math.inf)
    with np.errstate(invalid="ignore"):
        scale = np.where(occurs, pairs.log_output_sizes + pairs.log_tops, 0.0)
        mass = pairs.log_sum(pairs.log_joint(weights)) - scale
        # Distributions that underflow are lost from the mass, which only one of the two leakages
        # allows.
        most = np.logaddexp(mass, pairs.log_lost(weights) - scale)
        size = np.abs(mass) + np.abs(best) + np.abs(scale)
        finite = size[occurs & (mass > -math.inf)].max(initial=0.0)
        error = error + 4.0 * pairs.error + roundoff(64.0) * (1.0 + float(finite))
        above, below = np.maximum(best - mass, 0.0), np.maximum(most - worst, 0.0)
        below += roundoff(64.0) * below
    return Leakages(*(np.where(occurs, part + error, 0.0) for part in (above, below)))


def rows_types(prior: Exchangeable, pairs: TypePairs) -> Leakages:
    """Return both leakages of a record-by-record channel for an output of each type."""
    log_prior = prior.log_weights[tuple(pairs.types[1:])]
    return pair_leakages(pairs, log_prior, np.zeros(len(log_prior)), prior.log_error)


def tilted_types(channel: TiltedChannel, prior: Distribution) -> Leakages | None:
    """Return both leakages of an output of each type; None if types do not suffice."""
    types = channel.by_type
    if types is None:
        return None
    if channel.is_own_prior(prior):
        both = own_types(types, 2.0 * channel.misfit)
    else:
        same = prior.by_type()
        if same is None or not types.fits:
            return None
        error = types.error + same.log_error
        both = pair_leakages(types.pairs, types.log_prior(same), -types.log_each, error)
    return Leakages(*(np.where(types.occurs, part, 0.0) for part in both))


def own_types(types: TypeTilt, misfit: float) -> Leakages:
    """Return both leakages under the channel's own prior, for which every posterior is R.

    ln R[y, y]/(R q)(y) upwards, and ln (R q)(x)/R[x, y] for x that differs from y in every record.
    Cost O(types).
    """
    above = types.log_stay - types.log_each
    below = types.kernel.epsilon * types.n - types.log_stay + types.opposite
    return Leakages(*(np.maximum(part, 0.0) + types.error + misfit for part in (above, below)))


# Matrices whose columns are divided by a number of their own, for levels of rare outputs.


@singledispatch
def scaled_matrix(channel: AbstractChannel) -> Floats:
    """Return the matrix with every column divided by some number.

    Levels do not depend on these numbers. Columns of structured channels that would underflow
    are kept.
    """
    return np.asarray(channel.nearest_matrix())


@scaled_matrix.register
def _product_scaled_matrix(channel: ProductChannel) -> Floats:
    """Every column divided by its largest entry."""
    channel.check_matrix_fits()
    return np.array(channel.kron([k.relative for k in channel.kernels.distinct]), order="C")


@scaled_matrix.register
def _tilted_scaled_matrix(channel: TiltedChannel) -> Floats:
    """Return R[x, y] / (R q)(x) up to a factor, 0 if y has probability zero."""
    occurs, tilt = channel.log_tilt()
    near = scaled_matrix(ProductChannel.of(channel.hamming_kernels))
    return np.asarray(near * np.exp(tilt - tilt.max())[:, None] * occurs)
