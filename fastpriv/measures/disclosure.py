"""Certain disclosure: attributes and databases that an output determines."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, ULP, lowered, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import (
    AbstractChannel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.channels.queries import slice_ways
from fastpriv.errors import InvalidInput, short
from fastpriv.measures.attributes import RowFunction, row_codes
from fastpriv.measures.inputs import as_channel, as_pair, row_number
from fastpriv.measures.leakage import extreme_level
from fastpriv.measures.pointwise.database import scaled_matrix
from fastpriv.priors import Distribution, Product
from fastpriv.priors.base import as_prior
from fastpriv.spaces import Space

__all__ = [
    "discloses",
    "disclosure_threshold",
    "lower_entropy_attribute",
    "remaining_uncertainty",
    "remaining_uncertainty_bound",
    "singles_out",
]

#: Neutral element of the smallest attribute value.
_NO_LOW = np.iinfo(np.int64).max
#: Neutral element of the largest attribute value; attribute values are 0, 1, ...
_NO_HIGH = -1
#: How many entries of a boolean matrix are read at a time.
_BLOCK = 1 << 20
#: Products below this may have lost digits. They count as zero, which is conservative.
_TINY = 1e-290


def discloses(
    channel: AbstractChannel | ArrayLike,
    attribute: ArrayLike | RowFunction,
    prior: Distribution | ArrayLike | None = None,
    *,
    row: int | None = None,
) -> bool:
    """Check whether some output determines the value of an attribute U of the database.

    True if the posterior of U is a point mass for an output that can occur. This depends on the
    prior only through its support (Saeidian et al. 2024, Theorem 3.4). No prior is needed if every
    database is possible. A constant attribute cannot be disclosed.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    attribute : 1-D integer array, 2-D array, function or mapping
        A label g(x) for every database, or a kernel p(u|x) with one row for every database. With
        ``row=i``, a function of x_i: a callable, a mapping from the values of record i to labels,
        or a list of m_i labels.
    prior : Distribution or 1-D array, optional
        Databases of probability zero are ignored. By default every database is possible.
    row : int, optional
        Index of the record that the attribute is a function of.

    Returns
    -------
    bool
        Whether the attribute is disclosed. Randomised response, E_i and tilted mechanisms disclose
        nothing, even if a probability underflows. Cost O(N K) for a matrix; channels that act
        record by record are checked one record at a time. With ``row=i`` these channels and queries
        cost O(m_i K), unless a prior with dependent records excludes some databases.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]
    >>> fp.discloses(channel, [0, 0, 1]), fp.discloses(channel, [0, 1, 0])
    (True, True)
    >>> fp.discloses(channel, [0, 0, 1], prior=[0.5, 0.5, 0.0])  # constant then
    False
    >>> ages = fp.ProductChannel([[[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]]] * 1_000_000)
    >>> fp.discloses(ages, lambda age: age == 2, row=7)
    True
    >>> fp.discloses(ages, {0: "young", 1: "old", 2: "old"}, row=7)
    True
    """
    mechanism = as_channel(channel) if prior is None else as_pair(channel, prior)[0]
    if row is not None:
        i = row_number(mechanism, row)
        law = None if prior is None else as_prior(prior, mechanism.space)
        return row_settled(mechanism, row_codes(attribute, i, mechanism.space.sizes[i]), i, law)
    return bool(settled(mechanism, *value_range(mechanism.space, _listed(attribute), prior)).size)


def _listed(attribute: Any) -> ArrayLike:
    """Return an attribute of the whole database, which has an entry for each of them."""
    if callable(attribute) or isinstance(attribute, Mapping):
        raise InvalidInput("row must be given with a function of one record. Pass row=i.")
    given: ArrayLike = attribute
    return given


def singles_out(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike | None = None
) -> bool:
    """Check whether some output leaves a single database possible.

    The attribute U = X is then disclosed (Saeidian et al. 2024, Definition 3.9). This is impossible
    if the pointwise maximal leakage is below the prior's min-entropy (Corollary 3.10).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array, optional
        Databases of probability zero are ignored. By default every database is possible.

    Returns
    -------
    bool
        Cost O(distinct records) for channels that act record by record, O(N K) for a matrix.
        Databases are listed if a prior with dependent records excludes some of them. False for a
        point mass.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.singles_out([[0.5, 0.5], [0.0, 1.0]])
    True
    >>> fp.singles_out(fp.HammingChannel(1_000_000, 2, 5.0))
    False
    >>> halves = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    >>> fp.singles_out(halves), fp.singles_out(halves, [0.5, 0.5, 0.0])
    (False, True)
    """
    if prior is None:
        return _alone(as_channel(channel))
    mechanism, law = as_pair(channel, prior)
    if every_database(law):
        return _alone(mechanism)
    if isinstance(mechanism, HammingChannel | TiltedChannel):
        return False  # every database can cause every output
    if isinstance(mechanism, ProductChannel) and isinstance(law, Product):
        return _rows_alone(mechanism, law)
    check.fits(
        mechanism.space.size,
        "the list of databases, needed where dependent rows rule some of them out,",
        "use independent rows or a prior that allows every database",
    )
    return bool(
        settled(mechanism, *value_range(mechanism.space, np.arange(law.space.size), law)).size
    )


def _alone(channel: AbstractChannel) -> bool:
    """Whether an output has a single cause, if every database is possible."""
    return channel.space.size > 1 and least_support(channel) == 1


def _rows_alone(channel: ProductChannel, prior: Product) -> bool:
    """Whether every record has an output with a single cause. Cost O(distinct records)."""
    laws, which, _, _ = prior.paired(channel.kernels)
    choices = False
    for law, kernel in zip(laws, which, strict=True):
        occurs = prior.distinct[law] > 0.0
        causes = (channel.kernels.distinct[kernel].matrix[occurs] > 0.0).sum(axis=0)
        choices = choices or int(occurs.sum()) > 1
        if not (causes == 1).any():
            return False
    return choices


@singledispatch
def least_support(channel: AbstractChannel) -> int:
    """Return the smallest number of databases that can cause an output, over outputs that occur."""
    counts = (channel.nearest_matrix() > 0.0).sum(axis=0)
    return int(counts[counts > 0].min())


@least_support.register
def _product_least_support(channel: ProductChannel) -> int:
    """Multiply the smallest numbers of values behind an output. Cost O(distinct records)."""
    counts = [(k.matrix > 0.0).sum(axis=0) for k in channel.kernels.distinct]
    least = [int(c[c > 0].min()) for c in counts]
    used = np.bincount(channel.kernels.assignment, minlength=len(least)).tolist()
    return math.prod(size**times for size, times in zip(least, used, strict=True))


@least_support.register(HammingChannel)
@least_support.register(TiltedChannel)
def _hamming_or_tilted_least_support(channel: AbstractChannel) -> int:
    """Return the number of all databases, even if a probability rounds to 0."""
    return channel.space.size


@least_support.register
def _query_least_support(channel: QueryChannel) -> int:
    """Add up the sizes of the answers' classes, counted up to 2^31."""
    sizes, matrix = channel.query.class_sizes(), channel.kernel.matrix
    counts = np.zeros(matrix.shape[1], dtype=np.int64)
    for size, row in zip(sizes, matrix, strict=True):
        counts += size * (row > 0.0)
    return int(counts[counts > 0].min())


def disclosure_threshold(
    prior: Distribution | ArrayLike,
    attribute: ArrayLike | RowFunction | None = None,
    *,
    row: int | None = None,
) -> float:
    """Compute the pointwise maximal leakage below which no output discloses an attribute.

    Without an attribute it is ln 1/(1 - p_min), where p_min is the smallest positive probability of
    a database (Saeidian et al. 2024, Proposition 3.8). At that level an output may exclude the
    least likely database. Below it no output can exclude any database.

    The threshold of an attribute U is -ln max_u P(S_u), where S_u is the set of databases for which
    U is certainly u. For a function of the database it is the min-entropy of U (Theorem 3.5 there).
    For a kernel it is larger.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Distribution of the databases.
    attribute : 1-D integer array, 2-D array, function or mapping, optional
        As for :func:`discloses`.
    row : int, optional
        Index of the record that the attribute is a function of.

    Returns
    -------
    float
        Level in nats, rounded down. It is 0 if p_min underflows. It is infinite for a point mass
        and for attributes that no mechanism discloses: constant attributes, and kernels that leave
        U uncertain for every database. The databases of a structured prior are listed only if the
        attribute lists them.

    Notes
    -----
    An output that determines U = u comes from databases in S_u only. So it leaks ln max W[x, y]/sum
    p(x) W[x, y] >= -ln P(S_u). Some mechanism attains this bound. If the database is in S_u, it
    reveals this fact with a small probability.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.disclosure_threshold([0.5, 0.3, 0.2]), 6)  # -ln 0.8
    0.223144
    >>> fp.disclosure_threshold(fp.Product.iid([0.9, 0.1], 200)) < 1e-199
    True
    >>> round(fp.disclosure_threshold([0.5, 0.3, 0.2], [0, 0, 1]), 6)  # -ln 0.8, its min-entropy
    0.223144
    >>> chain = fp.Markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 1_000_000)
    >>> round(fp.disclosure_threshold(chain, lambda value: value, row=999), 6)  # -ln 2/3
    0.405465
    """
    law = as_prior(prior)
    if attribute is not None:
        return _attribute_threshold(law, attribute, row)
    if row is not None:
        raise InvalidInput(
            "row must come with attribute, a function of that record. Give the attribute."
        )
    log_least = law.log_smallest()
    if log_least >= 0.0:
        return math.inf
    return _normal(lowered(-math.log1p(-math.exp(log_least)), 8.0))


def _attribute_threshold(prior: Distribution, attribute: Any, row: int | None) -> float:
    """Return -ln max_u P(U is certainly u), rounded down."""
    if row is None:
        low, high = value_range(prior.space, _listed(attribute), None)
        weights, error = prior.probabilities(), 0.0
        occurs = possible_databases(prior)
    else:
        i = row_number(prior, row)
        low = high = row_codes(attribute, i, prior.space.sizes[i])
        logs, error = prior.log_marginal(i)
        weights, occurs = np.exp(logs), logs > -math.inf
    sure = occurs & (low == high)
    if not sure.any():
        return math.inf
    weights = np.maximum(weights, LEAST)  # a probability may underflow
    u = int(np.bincount(low[sure], weights[sure]).argmax())
    others = occurs & ~(sure & (low == u))
    if not others.any():
        return math.inf  # a constant
    slack = roundoff(2.0 * len(weights) + 16.0 * prior.space.n * (max(prior.space.sizes) + 4))
    slack += roundoff(64.0) + 2.0 * error
    rest = math.fsum(weights[others])
    if rest < 0.5:  # near 1 the probability is known by its complement
        return _normal(-math.log1p(-rest) * (1.0 - 2.0 * slack))
    chance = math.fsum(weights[sure & (low == u)])
    return max(0.0, -math.log(chance) - slack)


def _normal(bound: float) -> float:
    """Return a lower bound, or 0 if it is too small for relative rounding."""
    return bound if bound >= sys.float_info.min else 0.0


def remaining_uncertainty_bound(
    channel: AbstractChannel | ArrayLike | float, prior: Distribution | ArrayLike
) -> float:
    """Bound from below the min-entropy that any output leaves in every attribute.

    It is ln(1 + q_min/(1 - q_min) e^-C) for an adversary with prior q, where C is the leakage
    capacity: the largest ln p(y|x)/p(y|x') over all databases. It holds for every output and for
    every attribute that is a function of the database and not constant (Saeidian et al. 2024,
    Theorem 3.7).

    Parameters
    ----------
    channel : channel, 2-D array or float
        The mechanism, or its leakage capacity (not its Shannon capacity) in nats.
    prior : Distribution or 1-D array
        Prior of the adversary.

    Returns
    -------
    float
        Min-entropy in nats, rounded down; infinite for a point mass, because no attribute varies.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.remaining_uncertainty_bound(1.0, [0.5, 0.3, 0.2]), 6)  # ln(1 + e^-1 / 4)
    0.087983
    """
    if isinstance(channel, AbstractChannel) or check.array(channel, "channel").ndim:
        level = extreme_level(as_channel(channel))
    elif check.endless(channel):
        level = math.inf
    else:
        level = check.real(channel, "the leakage capacity", least=0.0)
    log_least = as_prior(prior).log_smallest()
    if log_least >= 0.0:
        return math.inf
    log_odds = log_least - math.log1p(-math.exp(log_least)) - level
    if log_odds == -math.inf:
        return 0.0
    return _normal(math.log1p(math.exp(lowered(log_odds, 8.0) - roundoff(8.0))))


def lower_entropy_attribute(
    channel: AbstractChannel | ArrayLike, attribute: ArrayLike, prior: Distribution | ArrayLike
) -> Floats:
    """Build an attribute of smaller min-entropy that is disclosed along with a given one.

    Let u be the value that an output determines. W replaces any other value of U by u with
    probability lambda. The output then determines W = u too. W is easier to guess if lambda > (max
    p_U - p_U(u)) / (1 - p_U(u)) (Saeidian et al. 2024, Proposition 3.6). The function uses the
    lambda halfway between this bound and one.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    attribute : 1-D integer array or 2-D array
        As for :func:`discloses`, which must return True for it.
    prior : Distribution or 1-D array
        Distribution of the databases.

    Returns
    -------
    ndarray
        The kernel p(w|x), one row for every database, columns in the order of the sorted labels.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.5, 0.5], [0.0, 1.0]]
    >>> fp.lower_entropy_attribute(channel, [0, 1], [0.4, 0.6])
    array([[1.        , 0.        ],
           [0.66666667, 0.33333333]])
    """
    mechanism, law = as_pair(channel, prior)
    told = settled(mechanism, *value_range(mechanism.space, attribute, law))
    if not told.size:
        raise InvalidInput(
            "the mechanism does not disclose this attribute; it must be disclosed (see discloses)."
        )
    kernel = _as_kernel(attribute)
    u = int(told[0])
    values = law.probabilities() @ kernel
    # 1 - lambda is half of the largest value allowed. Complements are computed as sums.
    others = [float(np.delete(values, v).sum()) for v in (values.argmax(), u)]
    kept = 0.5 * others[0] / others[1]
    kernel *= kept
    kernel[:, u] = 0.0
    kernel[:, u] = 1.0 - kernel.sum(axis=1)
    return kernel


def _as_kernel(attribute: ArrayLike) -> Floats:
    """Return an attribute, checked already, as a matrix p(u|x) of its own."""
    given = check.array(attribute, "attribute")
    if given.ndim == 2:
        return check.stochastic(given, "attribute").copy()
    labels, which = np.unique(given, return_inverse=True)
    check.fits(
        len(given) * len(labels),
        "the kernel of the attribute",
        "use labels with fewer values",
        check.MAX_MATRIX,
    )
    kernel = np.zeros((len(given), len(labels)))
    kernel[np.arange(len(given)), which.reshape(-1)] = 1.0
    return kernel


# Attributes of a database, and which values of them an output leaves possible.


def value_range(
    space: Space, attribute: ArrayLike, prior: Distribution | ArrayLike | None
) -> tuple[Ints, Ints]:
    """Return the smallest and largest attribute value of every database, neutral if impossible."""
    given = check.array(attribute, "attribute")
    size = space.size
    if given.ndim not in (1, 2) or len(given) != size:
        raise InvalidInput(
            f"attribute must hold a label or a row p(u|x) for each of the {short(size)} databases, "
            f"got shape {given.shape}."
        )
    if given.ndim == 1:
        if given.dtype.kind not in "iub":
            raise InvalidInput(
                f"labels must be integers; got {given.dtype}. Number the labels from 0."
            )
        low = np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.int64)
        high = low.copy()
    else:
        possible = check.stochastic(given, "attribute") > 0.0
        low = np.argmax(possible, axis=1)
        high = possible.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1)
    if prior is not None:
        never = ~possible_databases(as_prior(prior, space))
        low[never], high[never] = _NO_LOW, _NO_HIGH
    return low, high


def possible_databases(prior: Distribution) -> NDArray[np.bool_]:
    """Return which databases can occur, including those whose probability underflows."""
    logs = prior.logs_if_rare()
    return np.asarray(prior.probabilities() > 0.0 if logs is None else logs > -math.inf)


def every_database(prior: Distribution | None) -> bool:
    """Whether all databases can occur, as they do if no prior is given."""
    return prior is None or prior.epsilon_x() < math.inf


def settled(channel: AbstractChannel, low: Ints, high: Ints) -> Ints:
    """Return the attribute values that some output determines; none for a constant attribute."""
    if low.min() == high.max():
        return np.empty(0, dtype=np.int64)
    least, most = attribute_range(channel, low, high)
    return np.unique(least[least == most])


@singledispatch
def attribute_range(channel: AbstractChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the smallest ``low`` and largest ``high`` over databases that can cause each output.

    Use the matrix. An output that no database causes keeps the neutral elements.
    """
    return _support_range(np.array(channel.nearest_matrix(), order="C") > 0.0, low, high)


@attribute_range.register
def _product_attribute_range(channel: ProductChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """One record after the other."""
    for i, m in enumerate(channel.space.sizes):
        # Records before i are already outputs. Record i is the first axis, the others follow.
        seen = channel.kernels[i].matrix > 0.0
        before = math.prod(channel.output_space.sizes[:i])
        low, high = (np.moveaxis(v.reshape(before, m, -1), 1, 0) for v in (low, high))
        least, most = _support_range(seen, low, high)
        low, high = (np.moveaxis(v, 0, 1).reshape(-1) for v in (least, most))
    return low, high


@attribute_range.register(HammingChannel)
@attribute_range.register(TiltedChannel)
def _hamming_or_tilted_attribute_range(
    channel: AbstractChannel, low: Ints, high: Ints
) -> tuple[Ints, Ints]:
    """Every database can cause every output that occurs, even if its probability rounds to 0."""
    return low.min(keepdims=True), high.max(keepdims=True)


@attribute_range.register
def _query_attribute_range(channel: QueryChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Per answer, then per output."""
    answers = channel.kernel.shape[0]
    least = np.full(answers, _NO_LOW, dtype=np.int64)
    most = np.full(answers, _NO_HIGH, dtype=np.int64)
    values = channel.query.listed()
    np.minimum.at(least, values, low)
    np.maximum.at(most, values, high)
    return _support_range(channel.kernel.matrix > 0.0, least, most)


def _support_range(seen: NDArray[np.bool_], low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the smallest ``low[x]`` and largest ``high[x]`` over the x with ``seen[x, y]``, per y.

    ``low`` and ``high`` may have further axes after the first. Cost O(N K) for each of them.
    """
    tail = low.shape[1:]
    least = np.full((seen.shape[1], *tail), _NO_LOW, dtype=np.int64)
    most = np.full((seen.shape[1], *tail), _NO_HIGH, dtype=np.int64)
    rows = max(1, _BLOCK // (seen.shape[1] * math.prod(tail)))
    for start in range(0, len(seen), rows):
        part = slice(start, start + rows)
        mask = seen[part].reshape(*seen[part].shape, *(1,) * len(tail))
        np.minimum(least, np.where(mask, low[part, None], _NO_LOW).min(axis=0), out=least)
        np.maximum(most, np.where(mask, high[part, None], _NO_HIGH).max(axis=0), out=most)
    return least, most


def row_settled(channel: AbstractChannel, codes: Ints, i: int, prior: Distribution | None) -> bool:
    """Whether some output determines a function of record i, given as a number for each value."""
    seen = row_causes(channel, prior, i)
    if seen is None:
        space = channel.space
        check.fits(
            space.size,
            "the list of databases, needed where a prior rules some of them out,",
            "use independent rows or a prior that allows every database",
        )
        values = np.arange(space.size) // int(space.strides[i]) % space.sizes[i]
        return bool(settled(channel, *value_range(space, codes[values], prior)).size)
    if len(np.unique(codes[seen.any(axis=1)])) == 1:
        return False
    least, most = _support_range(seen, codes, codes)
    return bool((least == most).any())


@singledispatch
def row_causes(
    channel: AbstractChannel, prior: Distribution | None, i: int
) -> NDArray[np.bool_] | None:
    """Return which values of record i can cause each output, None if databases are listed.

    Outputs that leave the same values possible may be merged.
    """
    return None


@row_causes.register
def _product_row_causes(
    channel: ProductChannel, prior: Distribution | None, i: int
) -> NDArray[np.bool_] | None:
    """Use the record alone, if the other records cannot exclude any of its values."""
    if not (isinstance(prior, Product) or every_database(prior)):
        return None
    return np.asarray((channel.kernels[i].matrix > 0.0) & _occurs(channel, prior, i)[:, None])


@row_causes.register(HammingChannel)
@row_causes.register(TiltedChannel)
def _hamming_or_tilted_row_causes(
    channel: AbstractChannel, prior: Distribution | None, i: int
) -> NDArray[np.bool_]:
    """Every database can cause every output that occurs, even if its probability rounds to 0."""
    return _occurs(channel, prior, i)[:, None]


@row_causes.register
def _query_row_causes(
    channel: QueryChannel, prior: Distribution | None, i: int
) -> NDArray[np.bool_] | None:
    """Use the answers that each value of the record can have."""
    if not every_database(prior):
        return None
    kernel = channel.kernel.matrix > 0.0
    ways = slice_ways(channel.query, i)
    return np.array([kernel[answers].any(axis=0) for answers, _ in ways])


def _occurs(channel: AbstractChannel, prior: Distribution | None, i: int) -> NDArray[np.bool_]:
    """Return which values of record i can occur."""
    if prior is None:
        return np.ones(channel.space.sizes[i], dtype=bool)
    return np.asarray(prior.log_marginal(i)[0] > -math.inf)


# The uncertainty about every attribute that remains after the worst output.


def remaining_uncertainty(
    channel: AbstractChannel | ArrayLike, prior: Distribution | ArrayLike
) -> float:
    """Compute the smallest min-entropy that an output leaves in any attribute.

    It is -ln max_y (1 - min_x q(x|y)), where q(x|y) is the posterior and x is in the support of the
    prior. The attribute is any function of the database that is not constant on the support. Its
    likeliest value has the probability 1 - P(x in A | y), where A is the set of databases with
    other values. This is largest if A contains only the least likely database. Theorem 3.7 of
    Saeidian et al. 2024 is a lower bound, see :func:`remaining_uncertainty_bound`.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    prior : Distribution or 1-D array
        Prior of the adversary.

    Returns
    -------
    float
        Min-entropy in nats, rounded down. It is 0 if some output excludes a database. It is
        infinite for a point mass, because no attribute varies.

    Notes
    -----
    Cost O(N K), or O(distinct records) if the channel acts record by record and records are
    independent.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel, prior = fp.HammingChannel(2, 2, 1.0), fp.Product.iid([0.8, 0.2], 2)
    >>> round(fp.remaining_uncertainty(channel, prior), 6)
    0.007119
    >>> round(fp.remaining_uncertainty_bound(channel, prior), 6)
    0.005623
    """
    mechanism, law = as_pair(channel, prior)
    log_least = _log_rarest(mechanism, law)
    if log_least >= 0.0:
        return math.inf
    return lowered(-math.log1p(-math.exp(log_least)), 16.0)


@singledispatch
def _log_rarest(channel: AbstractChannel, prior: Distribution) -> float:
    """Return ln of the smallest posterior probability of a possible database, rounded down."""
    return _matrix_log_rarest(channel, prior)


def _matrix_log_rarest(channel: AbstractChannel, prior: Distribution) -> float:
    """Use the matrix."""
    weights = prior.probabilities()
    support = weights > 0.0
    matrix = scaled_matrix(channel)[support]
    units = 16.0 * channel.space.n + 2.0 * channel.matrix_error / ULP
    return _log_least(matrix, weights[support], units)


@_log_rarest.register
def _product_log_rarest(channel: ProductChannel, prior: Distribution) -> float:
    """Add up the records, if they are independent."""
    if not isinstance(prior, Product):
        return _matrix_log_rarest(channel, prior)
    laws, which, counts, _ = prior.paired(channel.kernels)
    total = 0.0
    for law, kernel, count in zip(laws, which, counts, strict=True):
        own = prior.distinct[law]
        matrix = channel.kernels.distinct[kernel].relative[own > 0.0]
        total += float(count) * _log_least(matrix, own[own > 0.0], 16.0)
    return lowered(total, 4.0 * len(counts))


def _log_least(matrix: Floats, weights: Floats, units: float) -> float:
    """Return ln of the smallest posterior probability, given scaled columns; 0 if certain."""
    if len(weights) == 1:
        return 0.0
    joint = weights[:, None] * matrix[:, matrix.max(axis=0) > 0.0]
    least, total = joint.min(axis=0), joint.sum(axis=0)
    if least.min() < _TINY:
        return -math.inf
    ratio = float((least / total).min())
    return lowered(math.log(ratio), 4.0) - roundoff(2.0 * len(weights) + units + 16.0)
