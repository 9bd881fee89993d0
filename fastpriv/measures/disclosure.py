"""What an output can settle beyond doubt: attributes disclosed, databases singled out."""

from __future__ import annotations

import math
import sys
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, lowered
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import (
    AbstractChannel,
    HammingChannel,
    ProductChannel,
    QueryChannel,
    TiltedChannel,
)
from fastpriv.errors import InvalidInput, short
from fastpriv.measures.arguments import as_channel, as_pair
from fastpriv.measures.leakage import extreme_level
from fastpriv.priors import Distribution
from fastpriv.priors.arguments import as_prior

__all__ = [
    "disclosure_threshold",
    "discloses",
    "lower_entropy_attribute",
    "remaining_uncertainty_bound",
    "singles_out",
]

#: Neutral elements of the least and the largest attribute value.
_NO_LOW, _NO_HIGH = np.iinfo(np.int64).max, -1
#: How many entries of a boolean matrix are read at a time.
_BLOCK = 1 << 20


def discloses(
    channel: AbstractChannel | ArrayLike,
    attribute: ArrayLike,
    prior: Distribution | ArrayLike | None = None,
) -> bool:
    """Whether some output settles the value of an attribute U of the database beyond doubt.

    True when the posterior of U is a point mass for an output that can occur. Which outputs do so
    depends on the prior only through its support (Saeidian et al. 2024, Theorem 3.4), so no prior
    is needed where every database is possible. A constant attribute cannot be disclosed.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    attribute : 1-D integer array or 2-D array
        A label g(x) for every database, or a kernel p(u|x) with one row for every database.
    prior : Distribution or 1-D array, optional
        Databases of probability zero under it are left out. By default every one is possible.

    Returns
    -------
    bool
        Cost O(N K) for a matrix, one row after the other for channels that act row by row. E_d,
        E_i and tilted laws disclose nothing, also where a chance is too small for a double.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.0, 0.5]]
    >>> fp.discloses(channel, [0, 0, 1]), fp.discloses(channel, [0, 1, 0])
    (True, True)
    >>> fp.discloses(channel, [0, 0, 1], prior=[0.5, 0.5, 0.0])  # constant then
    False
    """
    mechanism = as_channel(channel) if prior is None else as_pair(channel, prior)[0]
    low, high = _value_range(mechanism, attribute, prior)
    return bool(_settled(mechanism, low, high).size)


def _value_range(
    channel: AbstractChannel, attribute: ArrayLike, prior: Distribution | ArrayLike | None
) -> tuple[Ints, Ints]:
    """Return the least and largest attribute value of every database, neutral if impossible."""
    given = check.array(attribute, "attribute")
    size = channel.space.size
    if given.ndim not in (1, 2) or len(given) != size:
        raise InvalidInput(
            f"attribute must hold a label or a row p(u|x) for each of the {short(size)} databases, "
            f"got shape {given.shape}"
        )
    if given.ndim == 1:
        if given.dtype.kind not in "iub":
            raise InvalidInput(f"labels must be integers, got {given.dtype}")
        low = np.unique(given, return_inverse=True)[1].reshape(-1).astype(np.int64)
        high = low.copy()
    else:
        possible = check.stochastic(given, "attribute") > 0.0
        low = np.argmax(possible, axis=1)
        high = possible.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1)
    if prior is not None:
        never = as_prior(prior, channel.space)._vector() == 0.0
        low[never], high[never] = _NO_LOW, _NO_HIGH
    return low, high


def _settled(channel: AbstractChannel, low: Ints, high: Ints) -> Ints:
    """Return the attribute values that some output settles; none for a constant attribute."""
    if low.min() == high.max():
        return np.empty(0, dtype=np.int64)
    least, most = attribute_range(channel, low, high)
    return np.unique(least[least == most])


@singledispatch
def attribute_range(channel: AbstractChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the least ``low`` and largest ``high`` over the databases that can cause each output.

    Through the matrix. An output that nothing causes keeps the neutral elements.
    """
    return _support_range(np.array(channel.matrix()) > 0.0, low, high)


@attribute_range.register
def _(channel: ProductChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """One row after the other."""
    for i, m in enumerate(channel.space.sizes):
        # Rows before i are outputs by now. Row i comes first, the rest behind it.
        seen = channel._kernels[i].matrix > 0.0
        before = math.prod(channel.output_space.sizes[:i])
        low, high = (np.moveaxis(v.reshape(before, m, -1), 1, 0) for v in (low, high))
        least, most = _support_range(seen, low, high)
        low, high = (np.moveaxis(v, 0, 1).reshape(-1) for v in (least, most))
    return low, high


@attribute_range.register(HammingChannel)
@attribute_range.register(TiltedChannel)
def _(channel: AbstractChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Every database can cause every output that occurs, also where its chance rounds to 0."""
    return low.min(keepdims=True), high.max(keepdims=True)


@attribute_range.register
def _(channel: QueryChannel, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Per answer, then per output."""
    answers = channel._kernel.shape[0]
    least = np.full(answers, _NO_LOW, dtype=np.int64)
    most = np.full(answers, _NO_HIGH, dtype=np.int64)
    values = channel._query.listed()
    np.minimum.at(least, values, low)
    np.maximum.at(most, values, high)
    return _support_range(channel._kernel.matrix > 0.0, least, most)


def _support_range(seen: NDArray[np.bool_], low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the least ``low[x]`` and largest ``high[x]`` over the x with ``seen[x, y]``, per y.

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


def singles_out(channel: AbstractChannel | ArrayLike) -> bool:
    """Whether some output leaves a single database possible: the attribute U = X is disclosed.

    Saeidian et al. 2024, Definition 3.9. It cannot happen below a pointwise maximal leakage of
    the prior's min-entropy (Corollary 3.10).

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.

    Returns
    -------
    bool
        Cost O(distinct rows) for channels that act row by row, O(N K) for a matrix.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.singles_out([[0.5, 0.5], [0.0, 1.0]])
    True
    >>> fp.singles_out(fp.HammingChannel(1_000_000, 2, 5.0))
    False
    """
    mechanism = as_channel(channel)
    return mechanism.space.size > 1 and least_support(mechanism) == 1


@singledispatch
def least_support(channel: AbstractChannel) -> int:
    """Return the least number of databases that can cause an output, over outputs that occur."""
    counts = (channel.matrix() > 0.0).sum(axis=0)
    return int(counts[counts > 0].min())


@least_support.register
def _(channel: ProductChannel) -> int:
    """Product over rows of the least number of values behind an output. O(distinct rows)."""
    counts = [(k.matrix > 0.0).sum(axis=0) for k in channel._kernels.distinct]
    least = [int(c[c > 0].min()) for c in counts]
    used = np.bincount(channel._kernels.assignment, minlength=len(least)).tolist()
    return math.prod(size**times for size, times in zip(least, used, strict=True))


@least_support.register(HammingChannel)
@least_support.register(TiltedChannel)
def _(channel: AbstractChannel) -> int:
    """All databases, also where a chance rounds to 0."""
    return channel.space.size


@least_support.register
def _(channel: QueryChannel) -> int:
    """Add up the sizes of the answers' classes, counted up to 2^31."""
    sizes, matrix = channel._query.class_sizes(), channel._kernel.matrix
    counts = np.zeros(matrix.shape[1], dtype=np.int64)
    for size, row in zip(sizes, matrix, strict=True):
        counts += size * (row > 0.0)
    return int(counts[counts > 0].min())


def disclosure_threshold(prior: Distribution | ArrayLike) -> float:
    """Pointwise maximal leakage below which nothing at all can be disclosed.

    It is ln 1/(1 - p_min), where p_min is the least positive probability of a database (Saeidian
    et al. 2024, Proposition 3.8). At that level an output may rule out the least likely database.
    Below it no output can rule out any.

    Parameters
    ----------
    prior : Distribution or 1-D array
        Law of the databases.

    Returns
    -------
    float
        Level in nats, rounded down: 0 where p_min is below the range of a double, infinite for a
        point mass. Never lists the databases of a structured prior.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.disclosure_threshold([0.5, 0.3, 0.2]), 6)  # -ln 0.8
    0.223144
    >>> fp.disclosure_threshold(fp.Product.iid([0.9, 0.1], 200)) < 1e-199
    True
    """
    log_least = as_prior(prior)._log_least()
    if log_least >= 0.0:
        return math.inf
    return _normal(lowered(-math.log1p(-math.exp(log_least)), 8.0))


def _normal(bound: float) -> float:
    """Return a lower bound, or 0 where it is too small for a double to be rounded relatively."""
    return bound if bound >= sys.float_info.min else 0.0


def remaining_uncertainty_bound(
    channel: AbstractChannel | ArrayLike | float, prior: Distribution | ArrayLike
) -> float:
    """Min-entropy that any output leaves in every attribute of the database, at least.

    It is ln(1 + q_min/(1 - q_min) e^-C) for an adversary with prior q, where C is the leakage
    capacity: the largest ln p(y|x)/p(y|x') over all databases. It holds for every output and for
    every attribute that is a function of the database and not constant (Saeidian et al. 2024,
    Theorem 3.7).

    Parameters
    ----------
    channel : channel, 2-D array or float
        The mechanism, or its leakage capacity (not its Shannon capacity) in nats.
    prior : Distribution or 1-D array
        What the adversary believes.

    Returns
    -------
    float
        Min-entropy in nats, rounded down; infinite for a point mass, under which no attribute
        varies.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.remaining_uncertainty_bound(1.0, [0.5, 0.3, 0.2]), 6)  # ln(1 + e^-1 / 4)
    0.087983
    """
    if isinstance(channel, AbstractChannel) or np.ndim(channel) == 2:
        level = extreme_level(as_channel(channel))
    elif channel == math.inf:
        level = math.inf
    else:
        level = check.real(channel, "the leakage capacity", least=0.0)
    log_least = as_prior(prior)._log_least()
    if log_least >= 0.0:
        return math.inf
    log_odds = log_least - math.log1p(-math.exp(log_least)) - level
    if log_odds == -math.inf:
        return 0.0
    return _normal(math.log1p(math.exp(lowered(log_odds, 8.0) - 8.0 * ULP)))


def lower_entropy_attribute(
    channel: AbstractChannel | ArrayLike, attribute: ArrayLike, prior: Distribution | ArrayLike
) -> Floats:
    """Build an attribute of smaller min-entropy that is disclosed along with a given one.

    Let u be the value that an output settles. W replaces any other value of U by u with chance
    lambda. The output that settles U = u then settles W = u, and W is easier to guess as soon as
    lambda > (max p_U - p_U(u)) / (1 - p_U(u)) (Saeidian et al. 2024, Proposition 3.6). The lambda
    halfway between this bound and one is taken.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    attribute : 1-D integer array or 2-D array
        As for :func:`discloses`, which must find it disclosed.
    prior : Distribution or 1-D array
        Law of the databases.

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
    low, high = _value_range(mechanism, attribute, law)
    settled = _settled(mechanism, low, high)
    if not settled.size:
        raise InvalidInput(
            "the mechanism does not disclose this attribute; only a disclosed one (see discloses) "
            "takes another with it"
        )
    kernel = _as_kernel(attribute)
    u = int(settled[0])
    values = law._vector() @ kernel
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
