"""How much noise the Gaussian privacy channel adds, beside mechanisms of differential privacy."""

from __future__ import annotations

import math
from typing import NamedTuple

from fastpriv._core import validation as check
from fastpriv._core.rounding import raised
from fastpriv.errors import InvalidInput
from fastpriv.mechanisms.gaussian import gaussian_variance

__all__ = ["NoiseComparison", "mean_deviation_bound", "noise_comparison"]


class NoiseComparison(NamedTuple):
    """Standard deviations of the noise of three mechanisms for one query."""

    laplace: float
    gaussian: float
    channel: float


def noise_comparison(
    T: float, epsilon: float, sensitivity: float, delta: float = 1e-6, balance: float = 0.0
) -> NoiseComparison:
    """Standard deviations of Laplace and Gaussian mechanism and of the Gaussian privacy channel.

    For one query with values in [-T, T] and one epsilon: sqrt(2) s/epsilon of the
    epsilon-differentially private Laplace mechanism, sqrt(2 ln(1.25/delta)) s/epsilon of the
    (epsilon, delta) Gaussian one, and T/sqrt(e^(2 (epsilon + balance)) - 1) of the Gaussian
    privacy channel (Wu-Xia-He 2020, Section 5.2, eqs. (119) to (121)).

    Parameters
    ----------
    T : float
        Bound on the absolute value of the query.
    epsilon : float
        Level of each of the three notions, in nats, above 0.
    sensitivity : float
        Largest change s of the query between neighbours, at most 2T.
    delta : float
        Of the Gaussian mechanism, between 0 and 1.
    balance : float
        As for :func:`gaussian_variance`: what adversaries with b nats of ignorance lack.

    Returns
    -------
    NoiseComparison
        ``laplace``, ``gaussian``, ``channel``.

    Notes
    -----
    One epsilon means three different promises: the channel's, mutual information under any
    correlation of rows, is the only one of the three that limits what tied rows tell. The paper
    calls these numbers variances and gives the scale s/epsilon for the Laplace mechanism, whose
    deviation is sqrt(2) times that; the formula of the Gaussian mechanism is proved for epsilon
    below 1 only.

    Examples
    --------
    >>> import fastpriv as fp
    >>> comparison = fp.mechanisms.noise_comparison(T=1.0, epsilon=0.1, sensitivity=0.001)
    >>> [round(value, 6) for value in comparison]
    [0.014142, 0.052988, 2.125242]
    """
    T = check.real(T, "T", least=math.ulp(0.0))
    epsilon = check.real(epsilon, "epsilon", least=math.ulp(0.0))
    sensitivity = check.real(sensitivity, "sensitivity", least=0.0)
    if sensitivity > 2.0 * T:
        raise InvalidInput(f"a query in [-T, T] changes by at most 2T = {2 * T}, got {sensitivity}")
    delta = check.real(delta, "delta", least=math.ulp(0.0), most=1.0)
    return NoiseComparison(
        math.sqrt(2.0) * sensitivity / epsilon,
        math.sqrt(2.0 * math.log(1.25 / delta)) * sensitivity / epsilon,
        math.sqrt(gaussian_variance(T, epsilon, balance)),
    )


def mean_deviation_bound(
    T: float,
    epsilon: float,
    tau: float,
    n: float = math.inf,
    *,
    variance: float | None = None,
    balance: float = 0.0,
) -> float:
    """Bound on the chance that a private mean of n values is off by tau or more.

    The mean of independent values in [-T, T] with the given variance, released through the
    Gaussian privacy channel: by Chebyshev, (variance/n + N)/tau^2 with
    N = T^2/(e^(2 (epsilon + balance)) - 1) (Wu-Xia-He 2020, Proposition 4, eq. (124)). For large n
    the noise remains: the paper's limit (122), printed with an arrow, is the bound's.

    Parameters
    ----------
    T, epsilon, balance : float
        As for :func:`gaussian_variance`.
    tau : float
        The deviation, above 0.
    n : int or infinity
        Number of values; by default the limit.
    variance : float, optional
        Of a single value; by default T^2, the largest possible.

    Returns
    -------
    float
        Bound on the probability, rounded up and at most 1.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.mechanisms.mean_deviation_bound(1.0, 2.0, 0.5, 100), 6)
    0.114629
    >>> round(fp.mechanisms.mean_deviation_bound(1.0, 2.0, 0.5), 6)
    0.074629
    """
    noise, T = gaussian_variance(T, epsilon, balance), float(T)
    tau = check.real(tau, "tau", least=math.ulp(0.0))
    spread = T * T if variance is None else check.real(variance, "variance", 0.0, T * T)
    spread /= n if check.endless(n) else check.real(check.integer(n, "n", 1), "n")
    return min(1.0, raised((spread + noise) / tau / tau, 16.0))
