"""Integer noise of the largest entropy for its size, drawn exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv._core import validation as check
from fastpriv._core.rounding import raised, roundoff
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.power_law import FAR, PowerLaw, Sampler, solve
from fastpriv.channels import Channel
from fastpriv.errors import InvalidInput, TooLarge

__all__ = ["MaxEntropyNoise"]

#: Largest cycle: its weights are summed term by term.
_MAX_MODULUS = 1 << 24
#: Relative error of the noise's own moment, for each unit of its exponents.
_MOMENT_ERROR = 1e-14
#: Above 1 by far more than the relative error of a growth.
_GROWTH_UP = 1.0 + 1e-12
#: Norms whose sum is a double.
_MAX_NORM = 1e300


class MaxEntropyNoise:
    """Integer noise Z of the largest entropy with E|Z|^p = distortion^p.

    P(Z = i) = A B^(-|i|^p) (Makhdoumi and Fawaz 2013, Lemma 1): two-sided geometric for p = 1, the
    discrete Gaussian of Canonne, Kamath and Steinke 2020 for p = 2, uniform on
    |i| <= floor(distortion) for p = inf. :meth:`leakage_bound` bounds what it leaks about a signal.
    Proposition 3 there, that no other noise of that norm has a lower worst case, is false on the
    integers: see the page of the paper.

    Parameters
    ----------
    p : float
        The power in the distortion, between 0.05 and 500, or infinity. In the paper p >= 1.
    distortion : float
        The norm D = (E|Z|^p)^(1/p) that the noise may have, at least 0; for p = inf the largest
        |Z|. It is the distortion E[|Y - X|^p]^(1/p) of Y = X + Z.
    modulus : int, optional
        Noise on the cycle 0 .. modulus - 1 instead, to be added modulo ``modulus``; distances are
        then cyclic. A distortion beyond that of uniform noise gives uniform noise.

    Attributes
    ----------
    A, B : float
        P(Z = 0), and the factor by which the probability falls per unit of |i|^p; B is infinite if
        it overflows, and 1 for uniform noise.

    Notes
    -----
    Sums over the integers take at most a few thousand terms, then the Euler-Maclaurin formula:
    A, B, probabilities and entropies are good to about 14 digits at any distortion. Finding B
    takes milliseconds. On a cycle the cost is O(modulus).

    Examples
    --------
    >>> from fastpriv.mechanisms import MaxEntropyNoise
    >>> noise = MaxEntropyNoise(2, 3.0)
    >>> noise
    MaxEntropyNoise(p=2, distortion=3, entropy=2.517551)
    >>> noise.pmf([0, 1, 2]).round(6)
    array([0.132981, 0.125794, 0.106483])
    >>> (noise.sample(1000) == 0).sum() > 0
    np.True_
    """

    def __init__(self, p: float, distortion: float, *, modulus: int | None = None) -> None:
        self.p = math.inf if check.endless(p) else check.real(p, "p", 0.05, 500.0)
        self.distortion = check.real(distortion, "distortion", 0.0, _MAX_NORM)
        self.modulus = modulus
        if modulus is not None:
            self.modulus = check.integer(modulus, "modulus", 1)
            check.fits(self.modulus, "noise on a cycle", "use a shorter cycle", _MAX_MODULUS)
        self._law = law = self._best(self.distortion)
        self.A = math.exp(-law.log_total)
        # Unit by unit, since a small ln B underflows and a large one overflows before B does.
        log_rate = math.log(law.rate) - law.p * math.log(law.unit) if law.rate else -math.inf
        self.B = math.exp(math.exp(log_rate)) if log_rate < math.log(709.0) else math.inf
        if law.high == 0:
            self.B = math.inf

    def _best(self, distortion: float) -> PowerLaw:
        """Return the distribution of the largest entropy at a distortion."""
        high = FAR if self.modulus is None else self.modulus // 2
        low = -high if self.modulus is None or self.modulus % 2 else 1 - high
        if self.p == math.inf or distortion == 0.0 or high == 0:
            reach = math.floor(distortion) if self.p == math.inf else 0
            if self.modulus is None and reach >= FAR // 2:
                raise TooLarge(
                    "uniform noise this wide does not fit in 64-bit integers; scale the data down."
                )
            return PowerLaw(1.0, 0.0, 1.0, max(low, -reach), min(high, reach))
        return solve(self.p, distortion, low, high)

    def pmf(self, k: ArrayLike) -> Floats:
        """Return P(Z = k) for an array of integers, taken modulo ``modulus`` on a cycle."""
        given = check.array(k, "k")
        if given.dtype.kind not in "iu":
            raise InvalidInput(
                f"k must hold integers; got {given.dtype}. Convert it by astype(int)."
            )
        if self.modulus is not None:
            residue = given % self.modulus
            given = np.minimum(residue, self.modulus - residue)
        distance = np.abs(given.astype(np.float64))
        law = self._law
        values = np.exp(-law.exponents(distance) - law.log_total)
        return np.asarray(np.where(distance <= law.high, values, 0.0))

    def entropy(self) -> float:
        """H(Z) = -ln A + D^p ln B in nats."""
        return self._law.entropy

    def leakage_bound(self, norm: float, *, sharp: bool = False) -> float:
        """Bound on I(X; X + Z), and so on I(S; X + Z) for any secret S behind X.

        H*(p, norm + D) - H*(p, D), H*(p, D) being the entropy of this noise (Makhdoumi and Fawaz
        2013, section IV-B: Minkowski's inequality bounds the norm of X + Z). It holds for every
        integer-valued X that is independent of Z.

        Parameters
        ----------
        norm : float
            Upper bound on (E|X|^p)^(1/p), for p = inf on |X|; X may be counted from any centre
            that is known. On a cycle, of the cyclic distance to 0.
        sharp : bool
            For p <= 2 on the integers use E|X + Z|^p <= E|X|^p + E|Z|^p, which holds because Z is
            symmetric and independent of X (average over the sign of Z; t^(p/2) is concave). Then
            p-th powers of norms add, not norms, and at p = 2 a small signal leaks of the order
            (norm/D)^2 and not norm/D. Not in the paper.

        Returns
        -------
        float
            Bound in nats, rounded up.

        Notes
        -----
        Below p = 1, where there is no Minkowski inequality, p-th powers add in any case.

        Examples
        --------
        >>> from fastpriv.mechanisms import MaxEntropyNoise
        >>> noise = MaxEntropyNoise(2, 30.0)
        >>> round(noise.leakage_bound(3.0), 5), round(noise.leakage_bound(3.0, sharp=True), 5)
        (0.09531, 0.00498)
        """
        size = check.real(norm, "norm", 0.0, _MAX_NORM)
        if size == 0.0:
            return 0.0
        if sharp and (self.p > 2.0 or self.modulus is not None):
            raise InvalidInput("the sharp bound needs p <= 2 and noise on all integers.")
        law, D = self._law, self.distortion
        if self.p == math.inf:
            # A rounded sum could fall short of an integer.
            wide = self._best(math.floor(Fraction(size) + Fraction(D)))
        elif sharp or self.p < 1.0:
            wide = self._best(_norm(size, D, self.p))
        else:
            wide = self._best(size + D)
        scale = 1.0 + law.entropy + wide.entropy
        bound = wide.entropy - law.entropy + roundoff(64.0) * scale
        if law.rate > 0.0 and size < D:
            # H* is concave in the moment with slope ln B: no cancellation for small X. The last
            # term is for the digits in which the noise's own moment may differ from D^p.
            growth = (size / D) ** self.p
            if not sharp and self.p >= 1.0:
                growth = math.expm1(self.p * math.log1p(size / D))
            slack = _MOMENT_ERROR * (1.0 + self.p + law.first)
            bound = min(bound, law.mean_exponent * (growth * _GROWTH_UP + slack))
        return max(bound, 0.0)

    def sample(self, size: int | tuple[int, ...] = 1, rng: Any = None) -> Ints:
        """Draw independent noise, with exactly the probabilities of the distribution.

        Parameters
        ----------
        size : int or tuple of int
            Shape of the result.
        rng : numpy.random.Generator or int, optional
            Source of randomness; by default a cryptographic one. A generator or a seed makes the
            draws repeatable and NOT private.

        Returns
        -------
        ndarray of int64
            Noise to be added (on a cycle: modulo ``modulus``, values are centred on zero).

        Notes
        -----
        Rejection from a table, tens of millions of draws a second. If the double B^(-|i|^p) does
        not decide a draw, more random bits and more digits do, so that no probability is rounded.
        """
        shape = size if isinstance(size, tuple) else (size,)
        count = math.prod(check.integer(length, "size", 0) for length in shape)
        check.fits(count, "the sample", "draw it in parts")
        return self._sampler.draw(count, rng).reshape(shape)

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler.of(self._law)

    def channel(self) -> Channel:
        """Return the mechanism x -> x + Z modulo ``modulus``, a matrix of modulus^2 entries.

        Examples
        --------
        >>> import fastpriv as fp
        >>> noise = fp.mechanisms.MaxEntropyNoise(1, 0.5, modulus=5)
        >>> round(fp.mutual_information(noise.channel(), fp.Uniform(1, 5)), 6)
        0.432584
        """
        if self.modulus is None:
            raise InvalidInput(
                "modulus must be given for a matrix; noise on all integers has infinitely many "
                "outputs."
            )
        check.fits(self.modulus**2, "the matrix", "use a shorter cycle", check.MAX_MATRIX)
        law = self.pmf(np.arange(self.modulus))
        places = np.arange(self.modulus)
        return Channel(law[(places - places[:, None]) % self.modulus])

    def __repr__(self) -> str:
        cycle = "" if self.modulus is None else f", modulus={self.modulus}"
        return (
            f"MaxEntropyNoise(p={self.p:g}, distortion={self.distortion:g}{cycle}, "
            f"entropy={self.entropy():.6f})"
        )


def _norm(a: float, b: float, p: float) -> float:
    """Return (a^p + b^p)^(1/p) without overflow, rounded up."""
    big, small = max(a, b), min(a, b)
    return raised(big * math.exp(math.log1p((small / big) ** p) / p), 8.0)
