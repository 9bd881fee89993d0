"""One Gaussian noise, two guarantees: information leakage and (epsilon, delta)-privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, ULP, raised
from fastpriv.errors import InvalidInput

__all__ = ["GaussianComparison", "compare_gaussian", "gaussian_delta", "gaussian_distortion"]


@dataclass(frozen=True)
class GaussianComparison:
    """What the Gaussian mechanism of an (epsilon, delta) costs and leaks.

    Attributes
    ----------
    distortion : float
        Noise variance of the textbook calibration, 2 ln(2/delta) (sensitivity/epsilon)^2.
    leakage_bound : float
        Bound on I(X; Y) with that noise, in nats, rounded up.
    delta : float
        The least delta that this noise really has at epsilon, rounded up.
    least_distortion : float
        Least noise variance that is (epsilon, delta)-private, rounded up.
    least_leakage_bound : float
        Bound on I(X; Y) with that noise, in nats, rounded up.

    Examples
    --------
    >>> from fastpriv.mechanisms import compare_gaussian
    >>> both = compare_gaussian(variance=25.0, epsilon=1.0, delta=1e-5)
    >>> both.delta < 1e-5, both.least_distortion < both.distortion
    (True, True)
    """

    distortion: float
    leakage_bound: float
    delta: float
    least_distortion: float
    least_leakage_bound: float


def compare_gaussian(
    variance: float, epsilon: float, delta: float, sensitivity: float = 1.0
) -> GaussianComparison:
    """Compare the (epsilon, delta) Gaussian mechanism with the noise of a leakage bound.

    Noise of variance D leaks at most 1/2 ln(1 + variance/D) about a signal of that variance, and
    a leakage L needs D = variance/(e^2L - 1), so either guarantee can be read off the other
    (Makhdoumi and Fawaz 2013, Example 5). They take D = 2 ln(2/delta)/epsilon^2 for any epsilon;
    that calibration is for small epsilon only (at delta = 1e-5 it fails from epsilon = 9.4 on),
    which is why the delta it really has and the variance that is really needed are here too.

    Parameters
    ----------
    variance : float
        Variance of the signal, above 0.
    epsilon, delta : float
        The differential-privacy guarantee, epsilon above 0 and delta between 0 and 1.
    sensitivity : float
        How far one row can move the signal.

    Returns
    -------
    GaussianComparison
        Both noises with both numbers.

    Examples
    --------
    >>> from fastpriv.mechanisms import compare_gaussian
    >>> both = compare_gaussian(variance=25.0, epsilon=1.0, delta=1e-5)
    >>> round(both.distortion, 4), round(both.leakage_bound, 4)
    (24.4121, 0.3526)
    >>> round(both.least_distortion, 4), round(both.least_leakage_bound, 4)
    (13.9176, 0.5141)
    """
    spread = check.real(variance, "variance", 0.0)
    level, chance, step = _guarantee(epsilon, delta, sensitivity)
    ratio = step / level
    textbook = 2.0 * math.log(2.0 / chance) * ratio * ratio
    least = raised(_least_variance(level, chance) * step * step, 4.0)
    if not 0.0 < least < math.inf or not 0.0 < textbook < math.inf:
        raise InvalidInput("the noise variance is beyond the range of a double; scale the data")
    return GaussianComparison(
        textbook,
        _leakage(spread, textbook),
        gaussian_delta(textbook, level, step),
        least,
        _leakage(spread, least),
    )


def gaussian_distortion(variance: float, leakage: float) -> float:
    """Least E|Y - X|^2 at which I(X; Y) <= leakage is sure, knowing the variance of X only.

    Gaussian noise of variance/(e^(2 leakage) - 1), or the mean of X where that is less
    distortion, which leaks nothing. For X = f(S) and a leakage factor f put leakage = f H(S)
    (Makhdoumi and Fawaz 2013, Example 3).

    Parameters
    ----------
    variance : float
        Variance of X.
    leakage : float
        Largest I(X; Y) in nats, at least 0.

    Returns
    -------
    float
        The distortion, rounded up.

    Examples
    --------
    >>> import math
    >>> from fastpriv.mechanisms import gaussian_distortion
    >>> round(gaussian_distortion(4.0, math.log(3.0)), 12), gaussian_distortion(4.0, 0.1)
    (0.5, 4.0)
    """
    spread = check.real(variance, "variance", 0.0)
    most = check.real(leakage, "leakage", 0.0)
    if most == 0.0:
        return spread
    return min(spread, raised(spread / math.expm1(min(2.0 * most, 700.0)), 8.0))


def gaussian_delta(noise_variance: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """Least delta at which adding Gaussian noise is (epsilon, delta)-private, rounded up.

    Phi(a - b) - e^epsilon Phi(-a - b), with a = sensitivity/(2 s), b = epsilon s/sensitivity and
    s^2 the variance of the noise (Balle and Wang 2018). Both terms share the factor
    e^(-(a-b)^2/2), so that nothing overflows.

    Parameters
    ----------
    noise_variance : float
        Variance of the noise, above 0.
    epsilon : float
        Level, at least 0.
    sensitivity : float
        How far one row can move the signal, above 0.

    Returns
    -------
    float
        The delta, rounded up by a few 1e-16 of Phi(a - b).

    Examples
    --------
    >>> from fastpriv.mechanisms import gaussian_delta
    >>> round(gaussian_delta(1.0, 1.0), 12)
    0.126936737507
    """
    size = check.real(noise_variance, "noise_variance", 0.0)
    level = check.real(epsilon, "epsilon", 0.0)
    step = check.real(sensitivity, "sensitivity", 0.0)
    if not size > 0.0:
        return 1.0 if step > 0.0 else 0.0
    return _delta(math.sqrt(size) / step, level) if step > 0.0 else 0.0


def _guarantee(epsilon: float, delta: float, sensitivity: float) -> tuple[float, float, float]:
    level = check.real(epsilon, "epsilon", 0.0)
    chance = check.real(delta, "delta", 0.0, 1.0)
    step = check.real(sensitivity, "sensitivity", 0.0)
    if level == 0.0 or chance in (0.0, 1.0) or step == 0.0:
        raise InvalidInput("epsilon, delta and sensitivity must be above 0, and delta below 1")
    return level, chance, step


def _leakage(variance: float, noise: float) -> float:
    return raised(0.5 * math.log1p(variance / noise), 8.0)


def _delta(deviation: float, epsilon: float) -> float:
    """Return delta for noise of a standard deviation, at sensitivity 1."""
    from scipy.special import erfcx, ndtr

    a, b = 0.5 / deviation, epsilon * deviation
    common = 0.5 * math.exp(-0.5 * (a - b) * (a - b))
    first = common * float(erfcx((b - a) / math.sqrt(2.0))) if b > a else float(ndtr(a - b))
    second = common * float(erfcx((a + b) / math.sqrt(2.0)))
    # a - b is wrong by an ulp of a + b, and with it the logs of both terms.
    slack = (16.0 + 4.0 * (1.0 + abs(a - b)) * (a + b)) * ULP
    error = first * math.expm1(min(slack, 700.0)) if first > 0.0 else 0.0
    # Gaussian noise has a positive delta at every level, be it less than the least double.
    return min(1.0, max(0.0, first - second) + error + 8.0 * LEAST)


def _least_variance(epsilon: float, delta: float) -> float:
    """Return the least variance with at most this delta, at sensitivity 1, rounded up."""
    low = high = 0.0  # log of the deviation
    while _delta(math.exp(low), epsilon) < delta:
        low -= 1.0
    while _delta(math.exp(high), epsilon) > delta:
        high += 1.0
        if high > 350.0:  # the variance overflows beyond, and no delta is proved to be as small
            return math.inf
    while high - low > 1e-15 * max(1.0, abs(high)):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _delta(math.exp(middle), epsilon) > delta else (low, middle)
    return math.exp(2.0 * high)
