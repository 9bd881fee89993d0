"""What an output can settle beyond doubt: attributes disclosed, databases singled out."""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats, Ints
from fastpriv.channels import AbstractChannel, HammingChannel
from fastpriv.channels.base import NO_HIGH, NO_LOW
from fastpriv.errors import InvalidInput, short
from fastpriv.measures.arguments import as_channel, as_pair
from fastpriv.priors import Dense, Distribution, Markov

__all__ = [
    "correlated_example",
    "disclosure_threshold",
    "discloses",
    "lower_entropy_attribute",
    "remaining_uncertainty_bound",
    "singles_out",
]


def discloses(
    channel: AbstractChannel | ArrayLike,
    attribute: ArrayLike,
    prior: Distribution | ArrayLike | None = None,
) -> bool:
    """Whether some output settles the value of an attribute U of the database beyond doubt.

    True when the posterior of U is a point mass for an output that can occur. Which outputs do so
    depends on the prior only through its support (Saeidian et al. 2024, Theorem 3.4), so none is
    needed where every database is possible. A constant attribute is nothing to disclose.

    Parameters
    ----------
    channel : channel or 2-D array
        The mechanism.
    attribute : 1-D integer array or 2-D array
        A label g(x) for every database, or a kernel p(u|x) with one row for every database.
    prior : Distribution or 1-D array, optional
        Databases of probability zero under it are left out; by default none are.

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
    """Least and largest attribute value of every database; neutral ones where it cannot occur."""
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
        never = channel.prior_for(prior)._vector() == 0.0
        low[never], high[never] = NO_LOW, NO_HIGH
    return low, high


def _settled(channel: AbstractChannel, low: Ints, high: Ints) -> Ints:
    """Values of the attribute that some output settles; none for a constant attribute."""
    if low.min() == high.max():
        return np.empty(0, dtype=np.int64)
    least, most = channel.attribute_range(low, high)
    return np.unique(least[least == most])


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
    return mechanism.space.size > 1 and mechanism.least_support() == 1


def disclosure_threshold(prior: Distribution | ArrayLike) -> float:
    """Pointwise maximal leakage below which nothing at all can be disclosed.

    ln 1/(1 - p_min), p_min the least positive probability of a database (Saeidian et al. 2024,
    Proposition 3.8): at that level an output may rule out the least likely database, and below it
    no output can rule out any.

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
    log_least = _log_least(prior)
    if log_least >= 0.0:
        return math.inf
    return _normal(-math.log1p(-math.exp(log_least)) * (1.0 - 8.0 * ULP))


def _normal(bound: float) -> float:
    """Return a lower bound, or 0 where it is too small for a double to be rounded relatively."""
    return bound if bound >= sys.float_info.min else 0.0


def _log_least(prior: Distribution | ArrayLike) -> float:
    """Log of the least positive probability of a database, rounded down."""
    law = prior if isinstance(prior, Distribution) else Dense(prior)
    return law._log_least()


def remaining_uncertainty_bound(
    channel: AbstractChannel | ArrayLike | float, prior: Distribution | ArrayLike
) -> float:
    """Min-entropy that any output leaves in every attribute of the database, at least.

    ln(1 + q_min/(1 - q_min) e^-C) for a leakage capacity C, the largest ln p(y|x)/p(y|x') over
    all databases, and an adversary with prior q; it holds for every output and every attribute
    that is a function of the database and not constant (Saeidian et al. 2024, Theorem 3.7).

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
        level = as_channel(channel).extreme_level()
    elif channel == math.inf:
        level = math.inf
    else:
        level = check.real(channel, "the leakage capacity", least=0.0)
    log_least = _log_least(prior)
    if log_least >= 0.0:
        return math.inf
    log_odds = log_least - math.log1p(-math.exp(log_least)) - level
    if log_odds == -math.inf:
        return 0.0
    return _normal(math.log1p(math.exp(log_odds * (1.0 + 8.0 * ULP) - 8.0 * ULP)))


def lower_entropy_attribute(
    channel: AbstractChannel | ArrayLike, attribute: ArrayLike, prior: Distribution | ArrayLike
) -> Floats:
    """Build an attribute of smaller min-entropy that is disclosed along with a given one.

    With u the value that an output settles, W replaces any other value of U by u with chance
    lambda. The output that settles U = u settles W = u, and W is easier to guess as soon as
    lambda > (max p_U - p_U(u)) / (1 - p_U(u)) (Saeidian et al. 2024, Proposition 3.6); halfway
    from there to one is taken.

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
    # 1 - lambda: half of what keeps W above the likeliest value of U; complements as sums.
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


def correlated_example(
    law: ArrayLike, epsilon: float, delta: float
) -> tuple[Markov, HammingChannel]:
    """Correlated rows for which an epsilon-private mechanism leaks all but ``delta`` about a row.

    Every row is a copy of the first, which follows ``law``, and E_d releases the table. When the
    least likely value d comes out in all n rows, the leakage about any row is
    -ln(p(d) + (1 - p(d)) e^(-n epsilon)), and the limit ln 1/p(d), which is what releasing the
    row itself leaks, is reached within ``delta`` once n is large enough (Saeidian et al. 2024,
    Theorem 4.3). The least such n is taken.

    Parameters
    ----------
    law : 1-D array
        Law of a single row.
    epsilon : float
        Differential privacy level of the mechanism, more than 0.
    delta : float
        How far from the limit the leakage may stay, more than 0.

    Returns
    -------
    prior, channel
        The law of the database and the mechanism.

    Examples
    --------
    >>> import fastpriv as fp
    >>> prior, channel = fp.correlated_example([0.75, 0.25], 0.5, 1e-3)
    >>> fp.dp_level(channel), prior.space.n
    (0.5, 17)
    """
    row = check.law(law, "law")
    level, gap = check.real(epsilon, "epsilon", least=0.0), check.real(delta, "delta", least=0.0)
    if level == 0.0 or gap == 0.0:
        raise InvalidInput("epsilon and delta must be more than 0")
    least = row[row > 0].min()
    # p + (1-p) e^(-n epsilon) < p e^delta, in logarithms so that no delta is too large or small.
    rest = math.log1p(-least) if least < 1.0 else -math.inf
    limit = rest - math.log(least) - (gap + math.log(-math.expm1(-gap)))
    count = max(1, math.floor(limit / level) + 1) if limit > 0.0 else 1
    check.fits(count, "a database", "use a larger epsilon or delta")
    return Markov(row, np.eye(len(row)), count), HammingChannel(count, len(row), level)
