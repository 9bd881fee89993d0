"""The rank-based exponential privacy channel, its entropy and its calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import least_float, lowered, raised, roundoff
from fastpriv._core.validation import Floats
from fastpriv.channels import QueryChannel
from fastpriv.errors import InvalidInput, described
from fastpriv.spaces import Space

__all__ = ["exponential", "exponential_entropy", "exponential_rate"]

#: Most outputs whose entropy is computed.
_MANY = 1 << 1000
#: Rate at which doubles hold a certain answer.
_CERTAIN = 1e3
#: Below this value of k * rate the entropy's distance from ln k is summed as a series.
_NEAR = 0.5
#: B_2j (2j - 1) / (2j (2j)!), j = 1, 2, ...: coefficients of that series.
_SERIES = (
    1 / 24,
    -1 / 960,
    1 / 36288,
    -1 / 1382400,
    1 / 53222400,
    -691 * 11 / (2730 * 12 * math.factorial(12)),
    7 * 13 / (6 * 14 * math.factorial(14)),
    -3617 * 15 / (510 * 16 * math.factorial(16)),
)


def exponential(
    values: ArrayLike,
    outputs: Sequence[Any] | ArrayLike,
    distance: Callable[[Any, Any], float] | ArrayLike,
    rate: float,
    space: Space | ArrayLike,
) -> QueryChannel:
    """Answer a query by an output whose probability falls with its rank in closeness to the truth.

    p(y|x) is proportional to e^(-rate j) for the output y with exactly j others before it when
    outputs are ordered by their distance from f(x) (Wu-Xia-He 2020, Definition 15). It depends on
    ranks only, so that every row is a permutation of one distribution and C_1 <= ln k - H(Z)
    (Corollary 5).

    Parameters
    ----------
    values : array of length N
        The query's answer f(x) for every database, in C order: numbers that ``distance`` takes,
        or its rows if it is an array.
    outputs : sequence of k
        The outputs, in order; the channel returns indices into it.
    distance : callable or 2-D array
        ``distance(output, answer)``, at least 0; or ``distance[answer, output]``.
    rate : float
        The paper's lambda = 1/N: 0 answers at random, infinity with the closest output.
    space : Space or sequence of int
        The databases.

    Returns
    -------
    QueryChannel
        Its answers are the distinct values, its outputs 0 .. k - 1.

    Notes
    -----
    The paper lets equally distant outputs come in any order; here the one listed first in
    ``outputs`` comes first, for every answer. Cost O(answers k log k).

    Examples
    --------
    >>> import fastpriv as fp
    >>> import numpy as np
    >>> count = np.array([0, 1, 1, 2])  # of two bits
    >>> channel = fp.mechanisms.exponential(count, [0, 1, 2], lambda y, v: abs(y - v), 1.0, [2, 2])
    >>> channel.matrix()[[0, 1, 3]].round(3)
    array([[0.665, 0.245, 0.09 ],
           [0.245, 0.665, 0.09 ],
           [0.09 , 0.245, 0.665]])
    """
    if isinstance(outputs, Set):
        raise InvalidInput(
            f"outputs must be a sequence, whose order counts; got {described(outputs)}."
        )
    outputs = check.items(outputs, "outputs", "outputs, whose order counts")
    k = len(outputs)
    given = check.array(values, "values")
    if callable(distance):
        answers, which = np.unique(given, return_inverse=True)
        costs = [[distance(y, v) for y in outputs] for v in answers.tolist()]
        table = check.floats(costs, "distance(output, answer)", 2)
    else:
        table, which = check.floats(distance, "distance", 2), given
    if table.shape[1] != k:
        raise InvalidInput(
            f"distance[answer, output] must have a column for each of {k} outputs, "
            f"got shape {table.shape}."
        )
    ranks = np.argsort(np.argsort(table, axis=1, kind="stable"), axis=1, kind="stable")
    return QueryChannel(which, _law(k, _rate(rate))[ranks], space)


def exponential_entropy(k: int, rate: float) -> float:
    """Compute the entropy H(Z) of the exponential channel's output, in nats.

    With l = rate: H(Z) = ln((1 - e^-kl)/(1 - e^-l)) + l/(e^l - 1) - kl/(e^kl - 1) (Wu-Xia-He 2020,
    eq. (82)), from ln k at rate 0 down to 0 at infinity.

    Parameters
    ----------
    k : int
        Number of outputs.
    rate : float
        As for :func:`exponential`; may be infinite.

    Returns
    -------
    float
        Entropy, with a relative error of a few units of 2^-53 at either end. Not rounded to
        either side; :func:`exponential_rate` is.

    Examples
    --------
    >>> import math
    >>> import fastpriv as fp
    >>> round(fp.mechanisms.exponential_entropy(3, 1.0), 6)
    0.832396
    >>> fp.mechanisms.exponential_entropy(4, 0.0) == math.log(4)
    True
    """
    k, rate = check.integer(k, "k", 1), _rate(rate)
    check.fits(k, "the list of outputs", "use fewer outputs", _MANY)
    if k == 1 or math.isinf(rate):
        return 0.0
    if k * rate < _NEAR:
        return math.log(k) - _shortfall(k, rate)
    # Of the two forms of ln(1 - e^-l), one keeps the digits of a small l, one those of a large l.
    one = math.log1p(-math.exp(-rate)) if rate > 1.0 else math.log(-math.expm1(-rate))
    return math.log1p(-math.exp(-k * rate)) - one + _mean(rate) - _mean(k * rate)


def exponential_rate(k: int, epsilon: float) -> float:
    """Return the largest rate at which the exponential channel leaks at most epsilon nats.

    The l with ln k - H(Z) = epsilon (Wu-Xia-He 2020, Corollary 5, eq. (83)), where the paper's
    parameter is N = 1/l. The channel leaks at most epsilon about any individual, for every query.

    Parameters
    ----------
    k : int
        Number of outputs.
    epsilon : float
        Bound on the individual channel capacity in nats, at least 0. From ln k on, the rate is
        infinite: the closest output may be given as it is.

    Returns
    -------
    float
        The rate, rounded down: ln k - H(Z) <= epsilon holds at the float returned, and for the
        rounded distribution that :func:`exponential` keeps.

    Notes
    -----
    Bisection over floats; about 20 distributions of k entries, formed next to the root of the
    formula.

    Examples
    --------
    >>> import math
    >>> import fastpriv as fp
    >>> rate = fp.mechanisms.exponential_rate(10, 0.5)
    >>> round(rate, 6), round(math.log(10) - fp.mechanisms.exponential_entropy(10, rate), 12)
    (0.415986, 0.5)
    """
    k, epsilon = check.integer(k, "k", 1), check.real(epsilon, "epsilon", least=0.0)
    check.fits(k, "the distribution of the output", "use fewer outputs")
    if epsilon >= raised(math.log(k), 4.0):
        return math.inf

    if epsilon == 0.0:
        return 0.0
    # In doubles the distribution at rate 1000 is a certain answer, which leaks ln k.
    above = least_float(lambda rate: _formula(k, rate) > epsilon, 0.0, _CERTAIN)
    # Distributions cost k each: they are formed next to the root of the formula, if it is theirs.
    low = lowered(above, 8.0 * (k + 16384))
    if _leakage(k, low) > epsilon:
        low, above = 0.0, low
    above = least_float(lambda rate: _leakage(k, rate) > epsilon, low, above)
    return math.nextafter(above, 0.0)


def _rate(rate: float) -> float:
    if isinstance(rate, float) and rate == math.inf:
        return rate
    return check.real(rate, "rate", least=0.0)


def _law(k: int, rate: float) -> Floats:
    """Probabilities of ranks 0 .. k - 1, which fall by e^-rate each."""
    ranks = np.arange(k, dtype=np.float64)
    with np.errstate(under="ignore", over="ignore"):
        weights = np.exp(-np.multiply(rate, ranks, where=ranks > 0, out=np.zeros(k)))
    return np.asarray(weights / math.fsum(weights))


def _mean(x: float) -> float:
    """Return x/(e^x - 1)."""
    if x == 0.0:
        return 1.0
    return x / math.expm1(x) if x < 700.0 else 0.0


def _shortfall(k: int, rate: float) -> float:
    """Return ln k - H(Z) for k * rate < 1/2, with all its digits.

    It is s(k rate) - s(rate) for an even power series s, of which the first terms are enough.
    """
    terms = [c * ((k * rate) ** (2 * j) - rate ** (2 * j)) for j, c in enumerate(_SERIES, 1)]
    return math.fsum(terms)


def _formula(k: int, rate: float) -> float:
    """Upper bound on ln k - H(Z)."""
    if k * rate < _NEAR:
        # The smallest doubles, to which squares of rates round, are added to the rounding.
        return raised(_shortfall(k, rate), 64.0) + 16.0 * math.ulp(0.0)
    return math.log(k) - exponential_entropy(k, rate) + roundoff(64.0) * (1.0 + math.log(k))


def _leakage(k: int, rate: float) -> float:
    """Upper bound on ln k - H(Z), of the distribution itself and of its rounded probabilities."""
    law, uniform = _law(k, rate)[None], np.full(k, 1.0 / k)
    rounded = kernels.row_divergences(law, uniform, np.zeros(k), 0, 1, np.empty(1))
    return max(_formula(k, rate), rounded)
