"""Gaussian noise: on a bounded query, for a signal of known covariance, and compared.

- :class:`GaussianChannel` and :func:`gaussian_variance`: a query with answers in [-T, T], and the
  capacity of the channel, bounded and certified (Wu-Xia-He 2020).
- :func:`noise_comparison` and :func:`mean_deviation_bound`: its noise and its error.
- :class:`GaussianNoise`: the noise that leaks least about a signal, by water-filling, and
  :func:`gaussian_distortion` (Makhdoumi and Fawaz 2013).
- :func:`compare_gaussian` and :func:`gaussian_delta`: the same noise as an (epsilon, delta)
  guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import LEAST, lowered, raised, roundoff
from fastpriv._core.search import bisect
from fastpriv._core.validation import Floats
from fastpriv.errors import Infeasible, InvalidInput
from fastpriv.mechanisms.amplitude import amplitude_capacity, best_points, shannon_bound
from fastpriv.results import Bracket

__all__ = [
    "GaussianChannel",
    "GaussianComparison",
    "GaussianNoise",
    "NoiseComparison",
    "compare_gaussian",
    "gaussian_delta",
    "gaussian_distortion",
    "gaussian_variance",
    "mean_deviation_bound",
    "noise_comparison",
]

#: Default width of a capacity, in nats.
_GAP = 1e-9
#: Most values of a row.
_MANY = 1 << 1000
#: Levels from which on e^(2 level) is near the largest double.
_HIGHEST_LEVEL = 350.0
#: Largest log of T in standard deviations that is tried.
_LOG_REACH = 600.0
#: Width of the bracket of a calibrated reach, in its logarithm.
_ROOT_WIDTH = 1e-12
#: Arguments up to here keep e^x a double.
_LARGEST_EXPONENT = 700.0
#: Numbers up to here can be added without overflow.
_LARGEST = 1e300
#: Largest log of a deviation whose square is a double.
_LOG_DEVIATION = 350.0
#: Most steps of Newton's method in the logarithm of the water level.
_NEWTON_STEPS = 100
#: Step in a logarithm, relative to it or to 1, that ends an iteration.
_STILL = 1e-15


class GaussianChannel:
    """A query with answers in [-T, T], released with normal noise.

    The Gaussian privacy channel of Wu-Xia-He 2020, Definition 16. The paper gives its individual
    channel capacity as ln(1 + T^2/N)/2 (Corollary 6). That is the capacity under a bound on the
    mean square, and an upper bound for bounded answers. The capacity of a record of m values is the
    capacity of the best m points in [-T, T] (Theorem 3). A query reaches it if the m values can
    have those points as answers.

    Parameters
    ----------
    T : float
        Bound on the absolute value of the query, above 0.
    variance : float
        Variance N of the noise, above 0.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.mechanisms.GaussianChannel(1.0, 0.5)
    >>> round(channel.capacity_bound(), 6), f"{channel.capacity(2):i.6f}"
    (0.549306, '[0.500072, 0.500073]')
    """

    def __init__(self, T: float, variance: float) -> None:
        self.T = check.real(T, "T", least=LEAST)
        self.variance = check.real(variance, "variance", least=LEAST)
        #: T in standard deviations of the noise, which is all that capacities depend on.
        self._reach = self.T / math.sqrt(self.variance)
        if not 0.0 < self._reach < math.inf:
            raise InvalidInput(
                f"T = {self.T} and variance = {self.variance} are too far apart for doubles. "
                "Scale the data."
            )

    def capacity_bound(self) -> float:
        """Return ln(1 + T^2/N)/2, a bound for any number of values, rounded up.

        :func:`gaussian_variance` calibrates to it.
        """
        return raised(shannon_bound(self._reach), 8.0)

    def capacity(self, m: float = math.inf, *, gap: float = _GAP) -> Bracket:
        """Return the capacity of the best m points in [-T, T], as a certified bracket.

        Parameters
        ----------
        m : int or infinity
            Number of values of a record. Default: any number, the amplitude-limited capacity
            (Smith 1971).
        gap : float
            Width to reach, in nats, and relative to capacities below one nat.

        Notes
        -----
        With T in standard deviations: up to T = 12 the gap is reached for m = 2 and for m large
        enough to reach the amplitude-limited capacity (3 values up to T = 2.78, about T + 1 later).
        For fewer values the places of up to 6 points are searched, to a width of 1e-7: 3 points
        always, 4 and 5 at least up to T = 6. For others the upper bound is the amplitude-limited
        capacity or ln m, and the lower bound a local optimum. From T = 12 the width is about 0.003,
        and from T = 64 the bounds are closed forms.

        The lower bound is the information of a distribution on points, the upper bound the largest
        divergence of any input from its output distribution, both integrals with a proved error
        (``fastpriv.mechanisms.amplitude``). Milliseconds up to T = 5, a second at T = 10. A search
        over places takes 0.1 s for 3 points, 1 s for 4, and up to 10 s.
        """
        gap = check.real(gap, "gap", least=0.0)
        number = _values(m)
        bracket = amplitude_capacity(self._reach, number, gap)
        bracket = best_points(self._reach, number, bracket, gap)
        # The reach is a quotient, rounded; capacities grow with its square at most.
        return Bracket(lowered(bracket.lower, 8.0), raised(bracket.upper, 8.0))

    def __repr__(self) -> str:
        return f"GaussianChannel(T={self.T:g}, variance={self.variance:g})"


def gaussian_variance(
    T: float, epsilon: float, balance: float = 0.0, *, m: float | None = None
) -> float:
    """Return the variance of normal noise that leaks at most epsilon nats about a record.

    N = T^2/(e^(2 (epsilon + balance)) - 1), from the bound ln(1 + T^2/N)/2 <= epsilon + balance
    (Wu-Xia-He 2020, Corollary 6 and eq. (121)).

    Parameters
    ----------
    T : float
        Bound on the absolute value of the query, above 0.
    epsilon : float
        Bound on the individual channel capacity in nats, above 0 together with ``balance``.
    balance : float
        The value g(b) of the balance function of this channel, or less. The guarantee is then
        epsilon against adversaries with H(X) >= b (Proposition 3), and epsilon + balance against
        all. 0 assumes nothing about adversaries.
    m : int or infinity, optional
        Calibrate to the capacity of m points in [-T, T] (infinity: any number) instead of the
        bound, which needs less noise. A record must then have at most m values.

    Returns
    -------
    float
        The variance, rounded up, so that the guarantee holds for the float. 0 if m values carry at
        most epsilon + balance nats without noise.

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.mechanisms.gaussian_variance(1.0, 0.5), 6)
    0.581977
    >>> round(fp.mechanisms.gaussian_variance(1.0, 0.5, m=2), 6)  # bits: less noise does
    0.500156
    """
    T = check.real(T, "T", least=LEAST)
    level = check.real(epsilon, "epsilon", least=0.0) + check.real(balance, "balance", least=0.0)
    if level == 0.0:
        raise Infeasible("epsilon must be above 0; no finite noise reaches level 0.")
    reach = _safe_reach(level)
    if m is not None:
        m = _values(m)
        if level >= raised(math.log(m), 4.0):
            return 0.0
        reach = _exact_reach(level, m) if reach > 0.0 else 0.0
    scale = T / reach if reach > 0.0 else math.inf
    variance = raised(scale * scale, 16.0)
    if variance == math.inf:
        raise Infeasible(
            f"epsilon = {level} and T = {T} need a variance that overflows a double. Use a "
            "larger epsilon, or scale the data down."
        )
    return max(variance, 2.0**-1022)


def _values(m: float) -> float:
    """Return a number of values as a float."""
    if check.endless(m):
        return math.inf
    number = check.integer(m, "m", 1)
    check.fits(number, "a row", "leave the number open: m = infinity", _MANY)
    return float(number)


def _safe_reach(level: float) -> float:
    """T in standard deviations at which ln(1 + reach^2)/2 is the level; rounded down."""
    level = min(level, _HIGHEST_LEVEL)
    return lowered(math.sqrt(math.expm1(lowered(2.0 * level, 32.0))), 8.0)


def _exact_reach(level: float, m: float) -> float:
    """Return the same for the capacity of m points, certified at the value returned."""
    from scipy.optimize import brentq

    def over(log_reach: float) -> float:
        bracket = amplitude_capacity(math.exp(log_reach), m, _GAP)
        # A later call may return a bracket as wide as its gap: stay below that as well.
        widest = bracket.lower + _GAP * min(1.0, bracket.lower)
        return raised(max(bracket.upper, widest), 32.0) / level - 1.0

    low = high = math.log(_safe_reach(level))
    if over(low) > 0.0:  # by rounding
        return math.exp(low)
    step = min(max(1e-9, level * level), 0.1)  # about how far apart bound and capacity are
    while over(high) <= 0.0:
        high += step
        step *= 2.0
        if high > _LOG_REACH:
            return math.exp(low)
    log_reach = brentq(over, low, high, xtol=_ROOT_WIDTH, rtol=_ROOT_WIDTH)
    step = 0.1 * _ROOT_WIDTH
    while over(log_reach) > 0.0:
        log_reach -= step
        step *= 2.0
    return math.exp(max(log_reach, low))


# Utility.


class NoiseComparison(NamedTuple):
    """Standard deviations of the noise of three mechanisms for one query."""

    laplace: float
    gaussian: float
    channel: float


def noise_comparison(
    T: float, epsilon: float, sensitivity: float, delta: float = 1e-6, balance: float = 0.0
) -> NoiseComparison:
    """Compare the noise of the Laplace, the Gaussian and the Gaussian privacy mechanism.

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
        As for :func:`gaussian_variance`.

    Returns
    -------
    NoiseComparison
        ``laplace``, ``gaussian``, ``channel``.

    Notes
    -----
    One epsilon means three different guarantees. Only the channel's, mutual information under any
    correlation of records, limits what correlated records reveal. The paper calls these numbers
    variances and gives the scale s/epsilon for the Laplace mechanism, whose deviation is sqrt(2)
    times as large. The formula of the Gaussian mechanism is proved for epsilon below 1 only.

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
        raise InvalidInput(
            f"sensitivity must be at most 2T = {2 * T}, the range of a query in [-T, T]; got "
            f"{sensitivity}."
        )
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
    """Bound the probability that a private mean of n values is off by tau or more.

    The mean of independent values in [-T, T] with the given variance, released through the
    Gaussian privacy channel: by Chebyshev, (variance/n + N)/tau^2 with
    N = T^2/(e^(2 (epsilon + balance)) - 1) (Wu-Xia-He 2020, Proposition 4, eq. (124)). For large n
    the noise remains: the limit (122) of the paper is the limit of this bound.

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


# A signal of known covariance.


class GaussianNoise:
    """Additive Gaussian noise that leaks least about a signal of known covariance.

    Y = X + N with tr Cov(N) <= distortion. For every distribution of X, I(X; Y) is at most 1/2
    sum_i ln(1 + l_i/s_i), where l_i and s_i are the eigenvalues of Cov(X) and Cov(N) in the same
    directions. Of all noise of that size this has the smallest worst case (Makhdoumi and Fawaz
    2013, Proposition 2 and Theorem 3). The s_i minimise that sum: s_i (s_i + l_i) = l_i w for one
    water level w. From distortion = tr Cov(X) on, releasing only the mean of X leaks nothing
    (Example 3 there).

    Parameters
    ----------
    signal_covariance : 2-D array or float
        Covariance of X, possibly singular; one number is the variance of a scalar.
    distortion : float
        Largest E|Y - X|^2, at least 0.

    Attributes
    ----------
    distortion : float
        As given.
    deterministic : bool
        Whether the mean is to be released instead of noisy data.

    Notes
    -----
    One eigenvalue decomposition, O(n^3), and a Newton iteration in ln w. Eigenvalues of the size of
    their rounding count as zero: such a direction is constant and needs no noise.

    The low bits of a floating-point Gaussian reveal the signal that it was added to (Mironov 2012
    for the Laplace mechanism). To release data, round the signal to a grid of step t and add
    ``MaxEntropyNoise(2, s / t)``, which is drawn exactly.

    Examples
    --------
    >>> from fastpriv.mechanisms import GaussianNoise
    >>> noise = GaussianNoise([[4.0, 0.0], [0.0, 1.0]], distortion=2.0)
    >>> noise.covariance.round(4)
    array([[1.1716, 0.    ],
           [0.    , 0.8284]])
    >>> round(noise.leakage_bound(), 4)
    1.1383
    >>> GaussianNoise([[4.0, 0.0], [0.0, 1.0]], distortion=5.0).leakage_bound()
    0.0
    """

    def __init__(self, signal_covariance: ArrayLike, distortion: float) -> None:
        signal = check.covariance(signal_covariance, "signal_covariance")
        if np.abs(signal).max() > _LARGEST:
            raise InvalidInput(f"signal_covariance must not exceed {_LARGEST:g}; use larger units.")
        self.distortion = check.real(distortion, "distortion", 0.0)
        values, self._axes = np.linalg.eigh(signal)
        largest = float(np.abs(values).max())
        # Relative to the largest, the error of eigenvalues; a diagonal matrix has its own.
        self._blur = (
            roundoff(8.0) * len(values) if (signal - np.diag(np.diag(signal))).any() else 0.0
        )
        if values.min() < -self._blur * largest:
            raise InvalidInput(
                f"signal_covariance must not have negative eigenvalues; got {values.min():g}."
            )
        self._signal = np.where(values > self._blur * largest, values, 0.0)
        self.deterministic = self.distortion >= math.fsum(np.diag(signal).tolist())
        self._noise = np.zeros(len(values))
        if not self.deterministic and self.distortion > 0.0:
            seen = self._signal > 0.0
            if self.distortion / largest / len(values) == 0.0:  # the share underflows
                raise InvalidInput(
                    "distortion must be 0 or at least 5e-324 times the largest eigenvalue in every "
                    f"dimension; got {self.distortion:g} for {largest:g}."
                )
            # In units of the largest eigenvalue nothing overflows.
            filled = _water_fill(self._signal[seen] / largest, self.distortion / largest)
            self._noise[seen] = filled * largest

    @property
    def covariance(self) -> Floats:
        """Covariance of the noise; raises if only the mean is released."""
        if self.deterministic:
            raise InvalidInput(
                f"a distortion of {self.distortion:g} is met by the mean alone, which leaks "
                "nothing and needs no noise. Check .deterministic, or use a smaller distortion."
            )
        return np.asarray((self._axes * self._noise) @ self._axes.T)

    def sample(self, k: int, rng: Any = None) -> Floats:
        """Draw noise vectors, for simulations.

        Parameters
        ----------
        k : int
            Number of draws.
        rng : numpy.random.Generator or int, optional
            Source of randomness. Default: a generator seeded by the operating system.

        Returns
        -------
        ndarray of shape (k, dimensions)
            Independent normal vectors with mean 0 and covariance ``covariance``. Draws are doubles,
            so they are not safe to release; see the notes of the class.
        """
        count = check.integer(k, "k", 0)
        check.fits(count * len(self._noise), "the draws", "draw fewer at a time")
        if self.deterministic:
            self.covariance  # noqa: B018 - raises, with what to do instead
        normal = check.generator(rng).standard_normal((count, len(self._noise)))
        return np.asarray((normal * np.sqrt(self._noise)) @ self._axes.T)

    def leakage_bound(self) -> float:
        """Bound on I(X; X + N) in nats, rounded up; 0 if only the mean is released."""
        if self.deterministic:
            return 0.0
        if self.distortion == 0.0:
            return math.inf
        seen = self._signal > 0.0
        signal, noise = self._signal[seen], self._noise[seen]
        above, below = signal + self._blur * signal.max(), noise - self._blur * noise.max()
        with np.errstate(over="ignore"):
            ratios = above / below
        logs = np.where(ratios < _LARGEST, np.log1p(ratios), np.log(above) - np.log(below))
        return raised(math.fsum(0.5 * logs), 8.0)

    def __repr__(self) -> str:
        kind = "mean only" if self.deterministic else f"leakage <= {self.leakage_bound():.6g}"
        return f"GaussianNoise({len(self._noise)} dimensions, D={self.distortion:g}, {kind})"


def _water_fill(signal: Floats, budget: float) -> Floats:
    """Return s >= 0 of sum ``budget`` with s (s + signal) = w signal for one w, signal > 0."""
    log_level = math.log(budget / len(signal))
    for _ in range(_NEWTON_STEPS):
        level = math.exp(log_level)
        q = np.sqrt(1.0 + 4.0 * level / signal)
        noise = 2.0 * level / (1.0 + q)
        # d ln s/d ln w is between 1/2 and 1, so that Newton's method converges.
        slope = float((noise * (q + 1.0) / (2.0 * q)).sum() / noise.sum())
        step = math.log(noise.sum() / budget) / slope
        log_level -= step
        if abs(step) < _STILL * max(1.0, abs(log_level)):
            break
    return np.asarray(noise * (budget / noise.sum()))


# Leakage and (epsilon, delta).


@dataclass(frozen=True)
class GaussianComparison:
    """Cost and leakage of the Gaussian mechanism of an (epsilon, delta).

    Attributes
    ----------
    distortion : float
        Noise variance of the textbook calibration, 2 ln(2/delta) (sensitivity/epsilon)^2.
    leakage_bound : float
        Bound on I(X; Y) with that noise, in nats, rounded up.
    delta : float
        The smallest delta of this noise at epsilon, rounded up.
    least_distortion : float
        Smallest noise variance that is (epsilon, delta)-private, rounded up.
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
    a leakage L needs D = variance/(e^2L - 1), so that each guarantee gives the other (Makhdoumi and
    Fawaz 2013, Example 5). They take D = 2 ln(2/delta)/epsilon^2 for any epsilon. That calibration
    is for small epsilon only: at delta = 1e-5 it fails from epsilon = 9.4 on. The result therefore
    has its true delta and the smallest sufficient variance too.

    Parameters
    ----------
    variance : float
        Variance of the signal, above 0.
    epsilon, delta : float
        The differential-privacy guarantee, epsilon above 0 and delta between 0 and 1.
    sensitivity : float
        How far one record can move the signal.

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
    level, probability, step = _guarantee(epsilon, delta, sensitivity)
    ratio = step / level
    textbook = 2.0 * math.log(2.0 / probability) * ratio * ratio
    smallest = raised(_smallest_variance(level, probability) * step * step, 4.0)
    if not 0.0 < smallest < math.inf or not 0.0 < textbook < math.inf:
        raise InvalidInput(
            "the variance of the noise must be within the range of a double. Scale the data."
        )
    return GaussianComparison(
        textbook,
        _leakage(spread, textbook),
        gaussian_delta(textbook, level, step),
        smallest,
        _leakage(spread, smallest),
    )


def gaussian_distortion(variance: float, leakage: float) -> float:
    """Return the smallest E|Y - X|^2 with I(X; Y) <= leakage for every X of a given variance.

    Gaussian noise of variance/(e^(2 leakage) - 1), or the mean of X if that has less distortion,
    which leaks nothing. For X = f(S) and a leakage factor f put leakage = f H(S)
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
    return min(spread, raised(spread / math.expm1(min(2.0 * most, _LARGEST_EXPONENT)), 8.0))


def gaussian_delta(noise_variance: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """Compute the smallest delta at which Gaussian noise is (epsilon, delta)-DP, rounded up.

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
        How far one record can move the signal, above 0.

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
    probability = check.real(delta, "delta", 0.0, 1.0)
    step = check.real(sensitivity, "sensitivity", 0.0)
    if level == 0.0 or probability in (0.0, 1.0) or step == 0.0:
        raise InvalidInput("epsilon, delta and sensitivity must be above 0, and delta below 1.")
    return level, probability, step


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
    slack = roundoff(16.0 + 4.0 * (1.0 + abs(a - b)) * (a + b))
    error = first * math.expm1(min(slack, _LARGEST_EXPONENT)) if first > 0.0 else 0.0
    # Gaussian noise has a positive delta at every level, even if it underflows.
    return min(1.0, max(0.0, first - second) + error + 8.0 * LEAST)


def _smallest_variance(epsilon: float, delta: float) -> float:
    """Return the smallest variance with at most this delta, at sensitivity 1, rounded up."""
    low = high = 0.0  # log of the deviation
    while _delta(math.exp(low), epsilon) < delta:
        low -= 1.0
    while _delta(math.exp(high), epsilon) > delta:
        high += 1.0
        if high > _LOG_DEVIATION:  # no double as variance has a delta this small
            return math.inf

    def too_little(log_deviation: float) -> bool:
        return _delta(math.exp(log_deviation), epsilon) > delta

    _, enough = bisect(too_little, low, high, relative=_STILL, absolute=_STILL)
    return math.exp(2.0 * enough)
