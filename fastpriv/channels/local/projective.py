"""Projective geometry response: a message is a point; it supports values on its hyperplane."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.local import InsideThresholds, below
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes
from fastpriv._structure.geometry import Geometry, primes_near
from fastpriv.channels.local.hashing import MOST_VECTORS, check_field, prime
from fastpriv.channels.local.subset import design_variance
from fastpriv.channels.local.support import SupportChannel
from fastpriv.spaces import Space

__all__ = ["ProjectiveChannel"]


class ProjectiveChannel(SupportChannel):
    """Projective geometry response: values and messages are points of PG(t-1, q), q a prime.

    A message y supports the values x with <x, y> = 0, and is e^epsilon times as likely if it
    supports the true value (Feldman, Nelson, Nguyen and Talwar 2022). Every value is supported by
    (q^(t-1) - 1)/(q - 1) messages and every two values by (q^(t-2) - 1)/(q - 1). With q about
    e^epsilon + 1 the variance is close to the variance of subset selection, and a message is one
    number of about ln k nats. The dimension t is the smallest with (q^t - 1)/(q - 1) >= k points.

    Parameters
    ----------
    k : int
        Number of values, at least 2.
    epsilon : float
        Differential privacy level, at least 0.
    q : int, optional
        A prime. Default: the best one with q^(t-1) up to 2^24.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.ProjectiveChannel(1_000_000, 2.0)
    >>> channel
    ProjectiveChannel(k=1000000, epsilon=2, q=7)
    >>> channel.sample([[17], [999_999]], rng=1).shape
    (2,)
    >>> fp.dp_level(channel), round(channel.variance(), 4)
    (2.0, 0.7319)
    """

    _parameter = "q"

    def __init__(self, k: int, epsilon: float, q: int | None = None) -> None:
        self._set(k, epsilon)
        self.q = _best_field(self) if q is None else prime(q, "q")
        self.geometry = _geometry(self.q, self.k)
        self.inclusion, joint = _chances(self.geometry)
        self.joint = (joint,)
        inside = self.inclusion.numerator
        self._thresholds = InsideThresholds(
            inside, self.inclusion.denominator - inside, self.epsilon
        )
        self.growth = self._thresholds.growth
        self.listed = self.geometry.points
        self.output_space = Space.of((self.geometry.points,))

    def definition(self) -> dict[str, Any]:
        return {"k": self.k, "epsilon": self.epsilon, "q": self.q}

    def support_table(self) -> tuple[Floats, NDArray[np.bool_]]:
        vectors = self.geometry.vectors_of(np.arange(self.geometry.points))
        member = vectors[: self.k] @ vectors.T % self.q == 0
        return np.full(len(vectors), 1.0 / len(vectors)), member

    def members(self, report: Ints) -> NDArray[np.bool_]:
        values = self.geometry.vectors_of(np.arange(self.k))
        return np.asarray(values @ self.geometry.vectors_of(report)[0] % self.q == 0)

    @property
    def empty_mass(self) -> Decimal:
        """A hyperplane meets the values with first digit 0, which all occur, unless t = 2."""
        missed = self.geometry.points - self.k if self.geometry.t == 2 else 0
        return Decimal(missed) / Decimal(self.geometry.points)

    def masses(self, weights: Floats) -> Floats:
        padded = np.zeros(self.geometry.points)
        padded[: self.k] = weights
        return self.geometry.incidence_sums(padded)

    def draw_messages(self, values: Ints, source: Source) -> Codes:
        """Draw a vector y with <x, y> = 0, other than 0, or with <x, y> = 1; then its point.

        A point on the hyperplane of x has q - 1 such vectors, a point off it one. All digits of y
        but one are free: the digit where x is 1 is determined by the others.
        """
        geometry, q, n = self.geometry, self.q, len(values)
        x = geometry.vectors_of(values)
        lead = np.argmax(x != 0, axis=1)
        inside = self._thresholds.draw(n, source)
        y = np.zeros((n, geometry.t), dtype=np.int64)
        left = np.arange(n)
        while len(left):
            drawn = geometry.digits(below(geometry.vectors // q, len(left), source))[:, 1:]
            y[left] = _completed(drawn, x[left], lead[left], np.where(inside[left], 0, 1), q)
            left = left[~y[left].any(axis=1)]
        return geometry.points_of(y)

    def tally(self, reports: Codes) -> Floats:
        counts = np.bincount(reports.astype(np.int64), minlength=self.geometry.points)
        return counts.astype(np.float64)

    def supports(self, tally: Floats) -> Floats:
        """Add counts over the hyperplanes through each value. The sums are whole numbers."""
        return np.asarray(np.rint(self.geometry.incidence_sums(tally)[: self.k]))


def _completed(drawn: Ints, x: Ints, lead: Ints, product: Ints, q: int) -> Ints:
    """Insert the digit at ``lead``, where x is 1, that gives <x, y> its value."""
    n, t = x.shape
    columns = np.arange(t)
    # The free digits fill the places other than the leading one, in order.
    source = np.clip(columns - (columns > lead[:, None]), 0, max(t - 2, 0))
    y = np.take_along_axis(drawn, source, axis=1) if t > 1 else np.zeros((n, 1), np.int64)
    y[np.arange(n), lead] = 0
    y[np.arange(n), lead] = (product - (x * y).sum(axis=1)) % q
    return y


def _geometry(q: int, k: int) -> Geometry:
    """Return PG(t-1, q) of the smallest t >= 2 with k points, if transforms are feasible."""
    t = _dimension(q, k)
    check_field(q, t - 1)
    return Geometry(q, t)


def _dimension(q: int, k: int) -> int:
    """Return the smallest t >= 2 with (q^t - 1)/(q - 1) >= k."""
    t = 2
    while (q**t - 1) // (q - 1) < k:
        t += 1
    return t


def _chances(geometry: Geometry) -> tuple[Fraction, Fraction]:
    """Return the probabilities that a uniform point supports a value, and two values."""
    q, t, points = geometry.q, geometry.t, geometry.points
    single = Fraction((q ** (t - 1) - 1) // (q - 1), points)
    return single, Fraction((q ** (t - 2) - 1) // (q - 1), points)


def _best_field(channel: SupportChannel) -> int:
    """Return the prime q of the smallest variance at a share of 1/k."""
    target = float(min(channel.odds + 1, Decimal(2 * channel.k)))
    best = []
    for q in primes_near(target, channel.k, MOST_VECTORS):
        geometry = Geometry(q, _dimension(q, channel.k))
        if q ** (geometry.t - 1) <= MOST_VECTORS:
            best.append((design_variance(channel, *_chances(geometry)), q))
    return min(best)[1]
