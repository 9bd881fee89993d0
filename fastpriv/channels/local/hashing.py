"""Local hashing: a message is a random hash function and a noisy hash value."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.local import below
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import Codes, SymmetricThresholds
from fastpriv._structure.geometry import Geometry, is_prime, least_dimension, primes_near
from fastpriv.channels.local.subset import design_variance
from fastpriv.channels.local.support import SupportChannel
from fastpriv.errors import InvalidInput, TooLarge, short
from fastpriv.spaces import Space

__all__ = ["HashingChannel"]

#: Most vectors that transforms run over.
MOST_VECTORS = 1 << 24


class HashingChannel(SupportChannel):
    """Local hashing: a random hash function, and randomised response on the hash value.

    A value is written with t digits in base g, a prime, and hashed to h_a(x) = <a, x> mod g. The
    seed a is uniform over the points of the projective geometry PG(t-1, g): vectors of t digits
    whose first nonzero digit is 1. Two values have equal hashes with probability exactly (g^(t-1) -
    1)/(g^t - 1) < 1/g. So estimates are unbiased and their variance is a formula. A message is the
    pair (number of the seed, noisy hash value).

    Parameters
    ----------
    k : int
        Number of values, at least 2.
    epsilon : float
        Differential privacy level, at least 0.
    g : int, optional
        Number of hash values, a prime. Default: the best one with g^t up to 2^24, about e^epsilon +
        1 (optimised local hashing: Wang, Blocki, Li and Jha 2017).

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.HashingChannel(1_000_000, 1.0)
    >>> channel
    HashingChannel(k=1000000, epsilon=1, g=3)
    >>> channel.sample([[17], [17], [999_999]], rng=1).shape
    (3, 2)
    >>> round(channel.variance(), 4), fp.dp_level(channel)
    (3.7701, 1.0)
    """

    _parameter = "g"
    width = 2

    def __init__(self, k: int, epsilon: float, g: int | None = None) -> None:
        self._set(k, epsilon)
        self.g = _best_field(self) if g is None else prime(g, "g")
        self.geometry = Geometry(self.g, least_dimension(self.g, self.k))
        check_field(self.g, self.geometry.t)
        self.inclusion, joint = _chances(self.geometry)
        self.joint = (joint,)
        self._thresholds = SymmetricThresholds(self.g, self.epsilon)
        self.growth = Fraction(self._thresholds.stay, self._thresholds.move)
        self.listed = self.geometry.points * self.g
        self.output_space = Space.of((self.geometry.points, self.g))

    def definition(self) -> dict[str, Any]:
        return {"k": self.k, "epsilon": self.epsilon, "g": self.g}

    def support_table(self) -> tuple[Floats, NDArray[np.bool_]]:
        seeds = np.arange(self.geometry.points)
        hashes = self._hashed(seeds[:, None], np.arange(self.k))
        member = hashes[:, None, :] == np.arange(self.g)[:, None]
        count = len(seeds) * self.g
        return np.full(count, 1.0 / count), member.reshape(count, self.k).T

    def _hashed(self, seeds: Ints, values: Ints) -> Ints:
        """Return h_a(x) for seeds and values that broadcast."""
        shape = np.broadcast_shapes(seeds.shape, values.shape)
        a = self.geometry.vectors_of(seeds.reshape(-1)).reshape((*seeds.shape, -1))
        x = self.geometry.digits(values.reshape(-1)).reshape((*values.shape, -1))
        total = np.zeros(shape, dtype=np.int64)
        for j in range(self.geometry.t):
            total += a[..., j] * x[..., j]
        return total % self.g

    def members(self, report: Ints) -> NDArray[np.bool_]:
        return np.asarray(self._hashed(report[:1], np.arange(self.k)) == report[1])

    @cached_property
    def empty_mass(self) -> Decimal:
        """Probability under b of no support: only the seed (1, 0, ..., 0) misses hash values.

        All other seeds hash the values with first digit 0, which all occur, to every hash value.
        """
        block = self.g ** (self.geometry.t - 1)
        digits = -(-self.k // block)
        return Decimal(self.g - digits) / Decimal(self.geometry.points * self.g)

    def masses(self, weights: Floats) -> Floats:
        padded = np.zeros(self.geometry.vectors)
        padded[: self.k] = weights
        return self.geometry.hyperplane_sums(padded).reshape(-1)

    def draw_messages(self, values: Ints, source: Source) -> Codes:
        seeds = below(self.geometry.points, len(values), source)
        noisy = self._thresholds.draw(self._hashed(seeds, values), source)
        return np.stack([seeds, noisy], axis=1)

    def tally(self, reports: Codes) -> Floats:
        codes = reports[:, 0].astype(np.int64) * self.g + reports[:, 1].astype(np.int64)
        return np.bincount(codes, minlength=self.geometry.points * self.g).astype(np.float64)

    def supports(self, tally: Floats) -> Floats:
        """Add counts over the hyperplanes through each value. The sums are whole numbers."""
        sums = self.geometry.back_projection(tally.reshape(-1, self.g))
        return np.asarray(np.rint(sums[: self.k]))


def prime(number: Any, name: str) -> int:
    """Return a prime number, checked."""
    given = check.integer(number, name, 2)
    if given > MOST_VECTORS or not is_prime(given):
        raise InvalidInput(f"{name} must be a prime of at most {MOST_VECTORS}; got {short(given)}.")
    return given


def check_field(q: int, t: int) -> None:
    """Raise an error if F_q^t has too many vectors for transforms over all of them."""
    if q**t > MOST_VECTORS:
        raise TooLarge(
            f"transforms over {q}^{t} vectors are not made, more than {short(MOST_VECTORS)}; leave "
            "the choice of the field to the mechanism, or use fewer values."
        )


def _chances(geometry: Geometry) -> tuple[Fraction, Fraction]:
    """Return the probabilities that a uniform message supports a value, and two values."""
    q = geometry.q
    same = Fraction(q ** (geometry.t - 1) - 1, geometry.vectors - 1)
    return Fraction(1, q), same / q


def _best_field(channel: SupportChannel) -> int:
    """Return the prime g of the smallest variance at a share of 1/k."""
    target = float(min(channel.odds + 1, Decimal(2 * channel.k)))
    best = []
    for g in primes_near(target, channel.k, MOST_VECTORS):
        geometry = Geometry(g, least_dimension(g, channel.k))
        if geometry.vectors <= MOST_VECTORS:
            best.append((design_variance(channel, *_chances(geometry)), g))
    return min(best)[1]
