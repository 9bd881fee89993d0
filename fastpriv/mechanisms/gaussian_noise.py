"""Gaussian noise for a signal of known covariance: water-filling."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import ULP, raised
from fastpriv._core.validation import Floats
from fastpriv.errors import InvalidInput

__all__ = ["GaussianNoise"]

#: Numbers up to here can be added without overflow.
_LARGEST = 1e300


class GaussianNoise:
    """Additive Gaussian noise that leaks least about a signal of known covariance.

    Y = X + N with tr Cov(N) <= distortion. Whatever the law of X, I(X; Y) is at most
    1/2 sum_i ln(1 + l_i/s_i), where l_i are the eigenvalues of Cov(X) and s_i those of Cov(N) in
    the same directions, and of all noise of that size this has the least worst case (Makhdoumi
    and Fawaz 2013, Proposition 2 and Theorem 3). The s_i minimise that sum: s_i (s_i + l_i)
    = l_i w for one water level w. From distortion = tr Cov(X) on, releasing the mean of X and no
    data meets the distortion and leaks nothing (their Example 3).

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
    One eigenvalue decomposition, O(n^3), and a Newton iteration in ln w. Eigenvalues that rounding
    cannot tell from zero count as zero: such a direction is a constant and needs no noise.

    There is no ``sample``: the low bits of a floating-point Gaussian reveal the signal it was
    added to (Mironov 2012 for the Laplace mechanism), so that the bound would not hold for what
    is released. Round the signal to a grid of step t and add ``MaxEntropyNoise(2, s / t)``, which
    is drawn exactly, or use the covariance in analysis.

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
            raise InvalidInput(f"signal_covariance must not exceed {_LARGEST:g}; use larger units")
        self.distortion = check.real(distortion, "distortion", 0.0)
        values, self._axes = np.linalg.eigh(signal)
        largest = float(np.abs(values).max())
        # Relative to the largest, the error of eigenvalues; a diagonal matrix has its own.
        self._blur = 8.0 * ULP * len(values) if (signal - np.diag(np.diag(signal))).any() else 0.0
        if values.min() < -self._blur * largest:
            raise InvalidInput(
                f"signal_covariance must not have negative eigenvalues, found {values.min():g}"
            )
        self._signal = np.where(values > self._blur * largest, values, 0.0)
        self.deterministic = self.distortion >= math.fsum(np.diag(signal).tolist())
        self._noise = np.zeros(len(values))
        if not self.deterministic and self.distortion > 0.0:
            seen = self._signal > 0.0
            if self.distortion / largest / len(values) == 0.0:  # the share is no double
                raise InvalidInput(
                    "distortion must be 0 or at least 5e-324 times the largest eigenvalue in every "
                    f"dimension, got {self.distortion:g} for {largest:g}"
                )
            # In units of the largest eigenvalue nothing overflows.
            filled = _water_fill(self._signal[seen] / largest, self.distortion / largest)
            self._noise[seen] = filled * largest

    @property
    def covariance(self) -> Floats:
        """Covariance of the noise; none exists where the mean is released."""
        if self.deterministic:
            raise InvalidInput(
                f"a distortion of {self.distortion:g} is met by releasing the mean, which leaks "
                "nothing: there is no noise to add (check .deterministic), or lower the distortion"
            )
        return np.asarray((self._axes * self._noise) @ self._axes.T)

    def leakage_bound(self) -> float:
        """Bound on I(X; X + N) in nats, rounded up; 0 where the mean is released."""
        if self.deterministic:
            return 0.0
        if self.distortion == 0.0:
            return math.inf
        seen = self._signal > 0.0
        signal, noise = self._signal[seen], self._noise[seen]
        most, least = signal + self._blur * signal.max(), noise - self._blur * noise.max()
        with np.errstate(over="ignore"):
            ratios = most / least
        logs = np.where(ratios < _LARGEST, np.log1p(ratios), np.log(most) - np.log(least))
        return raised(math.fsum(0.5 * logs), 8.0)

    def __repr__(self) -> str:
        kind = "mean only" if self.deterministic else f"leakage <= {self.leakage_bound():.6g}"
        return f"GaussianNoise({len(self._noise)} dimensions, D={self.distortion:g}, {kind})"


def _water_fill(signal: Floats, budget: float) -> Floats:
    """Return s >= 0 of sum ``budget`` with s (s + signal) = w signal for one w, signal > 0."""
    log_level = math.log(budget / len(signal))
    for _ in range(100):
        level = math.exp(log_level)
        q = np.sqrt(1.0 + 4.0 * level / signal)
        noise = 2.0 * level / (1.0 + q)
        # d ln s/d ln w is between 1/2 and 1, so that Newton's method cannot go astray.
        slope = float((noise * (q + 1.0) / (2.0 * q)).sum() / noise.sum())
        step = math.log(noise.sum() / budget) / slope
        log_level -= step
        if abs(step) < 1e-15 * max(1.0, abs(log_level)):
            break
    return np.asarray(noise * (budget / noise.sum()))
