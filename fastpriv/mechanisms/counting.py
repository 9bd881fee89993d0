"""How many rows hold a one? Laplace noise measured exactly, geometric noise drawn exactly."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import (
    ULP,
    exp_down,
    expm1_down,
    log1p_down,
    log_down,
    lowered,
    raised,
    round_up,
)
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.power_law import FAR, PowerLaw
from fastpriv._sampling.rejection import Sampler
from fastpriv.channels import QueryChannel
from fastpriv.errors import InvalidInput

__all__ = ["GeometricCount", "laplace_count_leakage", "laplace_count_pml"]

#: Minus the least logarithm of a chance in a kernel: well inside the range of doubles.
_FURTHEST = 690.0
#: Largest level whose ratio of chances doubles can hold.
_STEEPEST = 700.0
#: Least chance of a one: sums relative to binomial probabilities then stay far from overflow.
_RAREST = 1e-100


def laplace_count_pml(n: int, scale: float, c: float = 0.0) -> float:
    """Pointwise maximal leakage of one row from the fraction of ones with Laplace noise.

    sup l(D_i -> y) = 1/(nb) - ln((1 - c) + c e^(1/(nb))), over outputs y and over priors under
    which the n rows are independent and hold a one with the same chance in [c, 1 - c]. Saeidian
    et al. 2024, Proposition 4.6, prove that it is an upper bound; it is attained, by y >= 1 at
    the chance c (see :func:`laplace_count_leakage`).

    Parameters
    ----------
    n : int
        Number of rows.
    scale : float
        Scale b of the Laplace noise on the fraction of ones, above 0.
    c : float
        Least chance of a one and of a zero, between 0 and 1/2; 0 gives the level 1/(nb) of
        differential privacy.

    Returns
    -------
    float
        Level in nats, rounded up.

    Examples
    --------
    >>> from fastpriv.mechanisms import laplace_count_pml
    >>> round(laplace_count_pml(100, 0.01), 6), round(laplace_count_pml(100, 0.01, c=0.5), 6)
    (1.0, 0.379885)
    """
    return _tilted_level(round_up(_step(n, scale)), check.real(c, "c", 0.0, 0.5))


def laplace_count_leakage(n: int, scale: float, p: float, y: ArrayLike) -> Floats:
    """Leakage l(D_i -> y) about one row at each output of the Laplace mechanism for a fraction.

    Y is the fraction of ones among n independent rows, each a one with chance p, plus Laplace
    noise of scale b; l(D_i -> y) is the log of the largest p(y | d_i) over p(y) (Saeidian et al.
    2024, section 4.1). Flat for y <= 0 and y >= 1, where it is largest.

    Parameters
    ----------
    n : int
        Number of rows.
    scale : float
        Scale b of the noise, above 0.
    p : float
        Chance that a row holds a one: 0, or at least 1e-100.
    y : array of float
        Outputs; infinities are allowed.

    Returns
    -------
    ndarray
        Leakage in nats at each y, rounded up by about 1e-14 sqrt(n) of its two parts, what values
        below y and above y tell, which cancel near the middle.

    Notes
    -----
    Both conditional densities are sums of binomial probabilities times exponentials, which two
    recursions of positive terms, relative to the term nearest to y, give for all y at once. Their
    difference is formed without cancellation, so that the leakage has its digits also for wide
    noise. Cost O(n + len(y)).

    Examples
    --------
    >>> from fastpriv.mechanisms import laplace_count_leakage
    >>> laplace_count_leakage(100, 0.01, 0.3, [0.0, 0.29, 0.31, 1.0]).round(4)
    array([0.2103, 0.0134, 0.0301, 0.5843])
    """
    n, t = check.integer(n, "n", 1), _step(n, scale)
    chance = check.real(p, "p", 0.0, 1.0)
    if 0.0 < chance < _RAREST:
        raise InvalidInput(f"p must be 0 or at least {_RAREST:g}, got {chance:g}")
    places = np.asarray(check.array(y, "y"), dtype=np.float64)
    if np.isnan(places).any():
        raise InvalidInput("y must not hold a NaN")
    if chance in (0.0, 1.0):  # the row is known beforehand
        return np.zeros(places.shape)
    rest, decay = n - 1, math.exp(-t)
    below, above = np.empty(n), np.empty(n)
    kernels.tilted_sums(rest, (1.0 - chance) / chance, decay, below)
    kernels.tilted_sums(rest, chance / (1.0 - chance), decay, above)
    # With S the count of the other rows: y is f above the k-th possible count, in steps of 1/n.
    # In two parts of few bits each n y is exact up to 2^-50.
    inner = np.clip(places, 0.0, 1.0)
    coarse = np.floor(inner * 2.0**24) * 2.0**-24
    fine = n * (inner - coarse)
    k = np.minimum(np.floor(n * coarse + fine), rest).astype(np.int64)
    f = (n * coarse - k) + fine
    left, right = below[k], above[rest - k]
    # Densities given a one and a zero, relative to P(S = k) e^(-t min(f, 1-f)), and their
    # difference.
    lead = t * (2.0 * f - 1.0)
    down, up = np.exp(-np.maximum(lead, 0.0)), np.exp(np.minimum(lead, 0.0))
    one = down * left + up * (1.0 + decay * right)
    zero = down * (1.0 + decay * left) + up * right
    lean = -math.expm1(-t)
    turn = -np.expm1(-np.abs(lead)) * np.sign(lead)
    excess = lean * (down * left - up * right) + turn
    slack = min((64.0 + 64.0 * math.sqrt(n) + 16.0 * t) * ULP, 1.0)
    error = slack * (lean * (down * left + up * right) + np.abs(turn)) + min(16.0 * t * ULP, 1.0)
    likely, other = np.maximum(one, zero), np.minimum(one, zero)
    likelier_one = excess > 0.0
    own = np.where(likelier_one, chance, 1.0 - chance)  # chance of the likelier value
    rest_of = np.where(likelier_one, 1.0 - chance, chance)
    loss = np.minimum((np.abs(excess) + error) / likely, 1.0)
    ratio = other / likely * (1.0 - slack)
    # One minus what the odds lose is known to all digits, unless little of one is left.
    much = (loss > 0.75) & (own < 0.5)
    small = -np.log1p(-np.where(much, 0.0, rest_of * loss))
    large = -np.log(own + rest_of * ratio)
    level = raised(np.where(much, large, small), 8.0)
    return np.asarray(level)


class GeometricCount:
    """A count of ones with two-sided geometric noise, drawn exactly.

    P(Z = z) is proportional to e^(-epsilon |z|), and the released count is count + Z, clamped to
    0 .. n (post-processing, which can only help). Its level of differential privacy is epsilon,
    of what is drawn and not of an idealisation: no probability is rounded. It is the integer
    counterpart of the Laplace mechanism (Ghosh, Roughgarden and Sundararajan 2009).

    Parameters
    ----------
    n : int
        Number of rows.
    epsilon : float
        Level of differential privacy, above 0.
    clamp : bool
        Whether released counts are clamped to 0 .. n.

    Examples
    --------
    >>> import fastpriv as fp
    >>> query = fp.mechanisms.GeometricCount(n=10, epsilon=0.5)
    >>> released = query.sample([3, 4, 10])
    >>> bool((0 <= released).all() and (released <= 10).all())
    True
    >>> query.realised_level(), round(fp.dp_level(query.channel()), 12)
    (0.5, 0.5)
    >>> round(query.pml_level(0.5), 6)  # rows that are ones with chance 1/2
    0.21907
    """

    def __init__(self, n: int, epsilon: float, clamp: bool = True) -> None:
        self.n = check.integer(n, "n", 1)
        if self.n >= 1 << 61:
            raise InvalidInput("n must be below 2^61: counts are 64-bit integers")
        self.epsilon = check.real(epsilon, "epsilon", 0.0)
        if self.epsilon == 0.0:
            raise InvalidInput("epsilon must be above 0: no law on the integers has level 0")
        self.clamp = check.flag(clamp, "clamp")

    @cached_property
    def _sampler(self) -> Sampler:
        unit = 2.0 ** max(0, round(-math.log2(self.epsilon)))
        return Sampler.of(PowerLaw(1.0, self.epsilon * unit, unit, -FAR, FAR))

    def sample(self, counts: ArrayLike, rng: Any = None) -> Ints:
        """Release counts, each with noise of its own.

        Parameters
        ----------
        counts : array of int
            True counts, 0 .. n.
        rng : numpy.random.Generator or int, optional
            Source of randomness; by default a cryptographic one. Give a generator or a seed only
            for work that must be repeatable: what it draws protects nobody.

        Returns
        -------
        ndarray of int64
            Noisy counts, of the same shape. Every release of the same data costs epsilon anew.
        """
        given = check.array(counts, "counts")
        if given.dtype.kind not in "iu" or (
            given.size and not 0 <= given.min() <= given.max() <= self.n
        ):
            raise InvalidInput(f"counts must be integers in 0 .. n = {self.n}")
        noisy = given.astype(np.int64) + self._sampler.draw(given.size, rng).reshape(given.shape)
        return np.clip(noisy, 0, self.n) if self.clamp else noisy

    def realised_level(self) -> float:
        """Level of differential privacy of what ``sample`` draws: epsilon itself."""
        return self.epsilon

    def spending(self) -> dict[str, float]:
        """Return what one release costs a ledger: epsilon, and n epsilon between any two tables."""
        everything = round_up(self.n * self.epsilon)
        return {"dp": self.epsilon, "strong-dp": everything, "pml-all-priors": everything}

    def pml_level(self, c: float = 0.0) -> float:
        """Largest leakage about one row, where rows are ones with one chance in [c, 1 - c].

        epsilon - ln((1 - c) + c e^epsilon), as for the Laplace mechanism and for the same reason:
        a clamped (or very large) count tilts the odds of every row by e^epsilon. Rounded up.
        """
        return _tilted_level(self.epsilon, check.real(c, "c", 0.0, 0.5))

    def kernel(self) -> Floats:
        """Return P(released = y | count = v) of the clamped release, (n + 1) x (n + 1) doubles.

        Chances below e^-690 are raised to it: the draws have no impossible counts, and a double
        of zero would give an infinite level. Neighbouring counts then still have a ratio of at
        most e^epsilon, up to the rounding of doubles: the certified level of these doubles is
        ``dp_level(channel())``, and draws have the level epsilon itself.
        """
        check.fits((self.n + 1) ** 2, "the kernel", "use fewer rows", check.MAX_MATRIX)
        if self.epsilon > _STEEPEST:
            raise InvalidInput(
                f"beyond epsilon {_STEEPEST:g} doubles cannot hold the kernel, got {self.epsilon:g}"
            )
        v = np.arange(self.n + 1.0)
        q = math.exp(-self.epsilon)
        inner = math.tanh(0.5 * self.epsilon)  # (1 - q)/(1 + q)
        far = max(_FURTHEST, self.epsilon)
        matrix = inner * np.exp(-np.minimum(self.epsilon * np.abs(v - v[:, None]), far))
        matrix[:, 0] = np.exp(-np.minimum(self.epsilon * v, far)) / (1.0 + q)
        matrix[:, -1] = matrix[::-1, 0]
        return matrix

    def channel(self) -> QueryChannel:
        """Return the clamped release as a channel from databases of n bits."""
        return QueryChannel.count(self.n, self.kernel())

    def __repr__(self) -> str:
        return f"GeometricCount(n={self.n}, epsilon={self.epsilon:g})"


def _step(n: int, scale: float) -> float:
    """Return 1/(nb), the log ratio that one row makes."""
    rows = check.integer(n, "n", 1)
    check.fits(rows, "a database", "use fewer rows")
    b = check.real(scale, "scale", 0.0)
    if b == 0.0:
        raise InvalidInput("scale must be above 0: without noise the count itself is released")
    return min(1.0 / rows / b, 1e300)


def _tilted_level(t: float, c: float) -> float:
    """Return t - ln((1 - c) + c e^t) for t >= 0, rounded up."""
    if c == 0.0:
        return t
    if t < 1.0:
        return -log1p_down(lowered((1.0 - c) * expm1_down(-t), 4.0))
    return -log_down(lowered(c + (1.0 - c) * exp_down(-t), 5.0))
