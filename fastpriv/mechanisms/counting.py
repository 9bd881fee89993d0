"""Counts of ones: with Laplace noise, with geometric noise, and compared with a threshold.

Laplace noise is measured exactly, geometric noise is drawn exactly, and the truthful answer to "are
there more than t?" is measured without noise.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastpriv import kernels
from fastpriv._core import validation as check
from fastpriv._core.rounding import (
    exp_down,
    expm1_down,
    log1p_down,
    log_down,
    lowered,
    raised,
    round_up,
    roundoff,
)
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.power_law import FAR, PowerLaw, Sampler
from fastpriv.channels import QueryChannel
from fastpriv.errors import InvalidInput, described, short

__all__ = [
    "GeometricCount",
    "laplace_count_leakage",
    "laplace_count_pml",
    "threshold_query_bound",
    "threshold_query_leakage",
]


#: Minus the smallest logarithm of a probability in a kernel: well inside the range of doubles.
_FURTHEST = 690.0
#: Largest level whose ratio of probabilities is a double.
_STEEPEST = 700.0
#: Smallest probability of a one: sums relative to binomial probabilities then do not overflow.
_RAREST = 1e-100
#: Terms of the order 10^9 cancel, down to 10^-33 in a divergence where t/n and p are an ulp apart.
_DIGITS = Context(prec=64)
_HALF_LOG_TWO_PI = Decimal("0.9189385332046727417803297364056176398614")
#: Coefficients of Stirling's series; from 256 on they are good to 25 digits.
_STIRLING = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360)]
_STIRLING_FROM = 256
#: Terms of a binomial tail that are summed at a time.
_CHUNK = 4096
#: Terms below this share of a tail are left out; the result is raised by far more.
_NEGLIGIBLE = 1e-20


def laplace_count_pml(n: int, scale: float, c: float = 0.0) -> float:
    """Compute the largest leakage about one record of the fraction of ones with Laplace noise.

    sup l(D_i -> y) = 1/(nb) - ln((1 - c) + c e^(1/(nb))), over outputs y and over priors under
    which the n records are independent and hold a one with the same probability in [c, 1 - c].
    Saeidian et al. 2024, Proposition 4.6, prove that it is an upper bound; it is attained, by y >=
    1 at the probability c (see :func:`laplace_count_leakage`).

    Parameters
    ----------
    n : int
        Number of records.
    scale : float
        Scale b of the Laplace noise on the fraction of ones, above 0.
    c : float
        Least probability of a one and of a zero, between 0 and 1/2; 0 gives the level 1/(nb) of
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
    """Compute the leakage about one record of each output of the Laplace mechanism for a fraction.

    Y is the fraction of ones among n independent records, each a one with probability p, plus
    Laplace noise of scale b; l(D_i -> y) is the log of the largest p(y | d_i) over p(y) (Saeidian
    et al. 2024, section 4.1). Flat for y <= 0 and y >= 1, where it is largest.

    Parameters
    ----------
    n : int
        Number of records.
    scale : float
        Scale b of the noise, above 0.
    p : float
        Probability that a record holds a one: 0, or at least 1e-100.
    y : array of float
        Outputs; infinities are allowed.

    Returns
    -------
    ndarray
        Leakage in nats at each y, rounded up by about 1e-14 sqrt(n) of its two parts, from values
        below y and above y, which cancel near the middle.

    Notes
    -----
    Both conditional densities are sums of binomial probabilities times exponentials. Two recursions
    of positive terms, relative to the term nearest to y, give them for all y at once. Their
    difference is formed without cancellation. Cost O(n + len(y)).

    Examples
    --------
    >>> from fastpriv.mechanisms import laplace_count_leakage
    >>> laplace_count_leakage(100, 0.01, 0.3, [0.0, 0.29, 0.31, 1.0]).round(4)
    array([0.2103, 0.0134, 0.0301, 0.5843])
    """
    n, t = check.integer(n, "n", 1), _step(n, scale)
    probability = check.real(p, "p", 0.0, 1.0)
    if 0.0 < probability < _RAREST:
        raise InvalidInput(f"p must be 0 or at least {_RAREST:g}; got {probability:g}.")
    places = np.asarray(check.array(y, "y"), dtype=np.float64)
    if np.isnan(places).any():
        raise InvalidInput("y must be numbers; got a NaN. Leave it out.")
    if probability in (0.0, 1.0):  # the row is known beforehand
        return np.zeros(places.shape)
    rest, decay = n - 1, math.exp(-t)
    below, above = np.empty(n), np.empty(n)
    kernels.tilted_sums(rest, (1.0 - probability) / probability, decay, below)
    kernels.tilted_sums(rest, probability / (1.0 - probability), decay, above)
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
    slack = min(roundoff(64.0 + 64.0 * math.sqrt(n) + 16.0 * t), 1.0)
    error = slack * (lean * (down * left + up * right) + np.abs(turn)) + min(
        roundoff(16.0 * t), 1.0
    )
    likely, other = np.maximum(one, zero), np.minimum(one, zero)
    likelier_one = excess > 0.0
    own = np.where(
        likelier_one, probability, 1.0 - probability
    )  # probability of the likelier value
    rest_of = np.where(likelier_one, 1.0 - probability, probability)
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
    0 .. n. The draws themselves have the differential privacy level epsilon: no probability is
    rounded. It is the integer counterpart of the Laplace mechanism (Ghosh, Roughgarden and
    Sundararajan 2009).

    Parameters
    ----------
    n : int
        Number of records.
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
    >>> round(query.pml_level(0.5), 6)  # rows that are ones with probability 1/2
    0.21907
    """

    def __init__(self, n: int, epsilon: float, clamp: bool = True) -> None:
        self.n = check.integer(n, "n", 1)
        if self.n >= 1 << 61:
            raise InvalidInput("n must be below 2^61, because counts are 64-bit integers.")
        self.epsilon = check.real(epsilon, "epsilon", 0.0)
        if self.epsilon == 0.0:
            raise InvalidInput(
                "epsilon must be above 0; no distribution on the integers has level 0."
            )
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
            Source of randomness; by default a cryptographic one. A generator or a seed makes the
            draws repeatable and NOT private.

        Returns
        -------
        ndarray of int64
            Noisy counts, of the same shape. Every release of the same data costs epsilon anew.
        """
        given = check.array(counts, "counts")
        if given.dtype.kind not in "iu" or (
            given.size and not 0 <= given.min() <= given.max() <= self.n
        ):
            raise InvalidInput(f"counts must be integers in 0 .. n = {self.n}.")
        noisy = given.astype(np.int64) + self._sampler.draw(given.size, rng).reshape(given.shape)
        return np.clip(noisy, 0, self.n) if self.clamp else noisy

    def realised_level(self) -> float:
        """Level of differential privacy of what ``sample`` draws: epsilon itself."""
        return self.epsilon

    def spending(self) -> dict[str, float]:
        """Return the cost of one count: epsilon, and n epsilon between any two tables."""
        everything = round_up(self.n * self.epsilon)
        return {"dp": self.epsilon, "strong-dp": everything, "pml-all-priors": everything}

    def pml_level(self, c: float = 0.0) -> float:
        """Largest leakage about one record, if records are ones with one probability in [c, 1 - c].

        It is epsilon - ln((1 - c) + c e^epsilon), as for the Laplace mechanism: a clamped (or very
        large) count changes the odds of every record by e^epsilon. Rounded up.
        """
        return _tilted_level(self.epsilon, check.real(c, "c", 0.0, 0.5))

    def kernel(self) -> Floats:
        """Return P(released = y | count = v) of the clamped release, (n + 1) x (n + 1) doubles.

        Probabilities below e^-690 are raised to it, because a zero would give an infinite level.
        Neighbouring counts then still have a ratio of at most e^epsilon, up to the rounding of
        doubles. The certified level of these doubles is ``dp_level(channel())``; draws have the
        level epsilon itself.
        """
        check.fits((self.n + 1) ** 2, "the kernel", "use fewer records", check.MAX_MATRIX)
        if self.epsilon > _STEEPEST:
            raise InvalidInput(
                f"epsilon must be at most {_STEEPEST:g} for a kernel in doubles; got "
                f"{self.epsilon:g}. Use a smaller epsilon."
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
    check.fits(rows, "a database", "use fewer records")
    b = check.real(scale, "scale", 0.0)
    if b == 0.0:
        raise InvalidInput(
            "scale must be above 0; without noise the count itself is released. Give a "
            "positive scale."
        )
    return min(1.0 / rows / b, 1e300)


def _tilted_level(t: float, c: float) -> float:
    """Return t - ln((1 - c) + c e^t) for t >= 0, rounded up."""
    if c == 0.0:
        return t
    if t < 1.0:
        return -log1p_down(lowered((1.0 - c) * expm1_down(-t), 4.0))
    return -log_down(lowered(c + (1.0 - c) * exp_down(-t), 5.0))


# The truthful answer to "are there more than t?".


def threshold_query_leakage(n: int, t: int, p: float, answer: bool = True) -> float:
    """Compute the leakage of a truthful answer to "do more than t of n records hold a one?".

    The records are independent and hold a one with probability p. The answer yes leaks
    -ln P(Bin(n, p) > t), the answer no -ln P(Bin(n, p) <= t) (Saeidian et al. 2024,
    Example 3.11): little if the answer is nearly certain, although no noise is added.

    Parameters
    ----------
    n : int
        Number of records.
    t : int
        The threshold, at least 0.
    p : float
        Probability that a record holds a one.
    answer : bool
        Which answer was given: yes (more than t) by default.

    Returns
    -------
    float
        Leakage in nats, rounded up by about 1e-12 of itself for n up to 10^7; infinite for an
        impossible answer, 0 if it underflows.

    Notes
    -----
    The tail without the mean is one probability, computed with 64 digits, times a sum of positive
    terms that fall from 1: nothing cancels and nothing underflows. The other tail is its
    complement. Cost O(sqrt(n)).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.threshold_query_leakage(200, 60, 0.5), 12)  # P(Bin <= 60), nearly
    7.535e-09
    >>> round(fp.threshold_query_leakage(10**7, 10**7 // 2, 0.5, answer=False), 6)
    0.692895
    """
    n, t, probability = _checked(n, t, p)
    answer = check.flag(answer, "answer")
    if t >= n or probability == 0:
        return math.inf if answer else 0.0
    if probability == 1:
        return 0.0 if answer else math.inf
    yes = 2 * t + 1 > 2 * n * probability  # which answer has the tail without the mean
    tail = _log_tail(n, t + 1, probability) if yes else _log_tail(n, n - t, 1 - probability)
    level = -tail if yes == answer else _log_complement(tail)
    spread = math.sqrt(n * float(probability * (1 - probability)))
    return raised(level, 64.0 + 6.0 * spread + min(-tail, 745.0))


def threshold_query_bound(n: int, t: int, p: float, answer: bool = True) -> float:
    """Bound :func:`threshold_query_leakage` by Chernoff, for an answer that is expected.

    -ln(1 - exp(-n KL(t/n || p))) for the answer yes, which needs t/n < p, and the same with t + 1
    in place of t for the answer no, which needs (t + 1)/n > p (Saeidian et al. 2024,
    Example 3.11 and Figure 1; at equality, which the paper admits, the bound is infinite).

    Parameters
    ----------
    n, t, p, answer
        As for :func:`threshold_query_leakage`.

    Returns
    -------
    float
        Upper bound in nats, rounded up; 0 if it underflows.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.threshold_query_bound(200, 60, 0.5) > fp.threshold_query_leakage(200, 60, 0.5)
    True
    """
    n, t, probability = _checked(n, t, p)
    answer = check.flag(answer, "answer")
    count = t if answer else t + 1
    if not (count < n * probability if answer else count > n * probability):
        need = "t/n < p" if answer else "(t + 1)/n > p"
        raise InvalidInput(
            f"the Chernoff bound for this answer needs {need}; got n = {short(n)}, t = "
            f"{short(t)}, p = {described(p)}. Use threshold_query_leakage, which is exact."
        )
    if count > n or probability in (0, 1):  # the answer is certain
        return 0.0
    with localcontext(_DIGITS):
        parts = [(count, probability), (n - count, 1 - probability)]
        exponent = float(
            sum(k * (_decimal(Fraction(k)) / _decimal(n * c)).ln() for k, c in parts if k)
        )
    return raised(_log_complement(-exponent), 2.0 * (16.0 + exponent))


def _checked(n: int, t: int, p: float) -> tuple[int, int, Fraction]:
    rows = check.integer(n, "n", 1)
    check.fits(rows, "a database", "use fewer records")
    probability = Fraction(check.real(p, "p", least=0.0, most=1.0))
    return rows, check.integer(t, "t", 0), probability


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log_complement(log_tail: float) -> float:
    """Return -ln(1 - e^log_tail), accurate also if the tail is close to 0 or 1."""
    if log_tail > -0.5:
        return -math.log(-math.expm1(log_tail))
    return -math.log1p(-math.exp(log_tail))


def _log_tail(n: int, k: int, probability: Fraction) -> float:
    """Return ln P(Bin(n, probability) >= k) for k of at least the mean, where terms fall."""
    odds = float(min(probability / (1 - probability), Fraction(10**300)))  # of use only while k < n
    total = last = 1.0
    at = k
    while at < n and last > total * _NEGLIGIBLE:
        steps = np.arange(at, min(n, at + _CHUNK), dtype=np.float64)
        terms = last * np.cumprod((n - steps) / (steps + 1.0) * odds)
        total, last, at = total + float(terms.sum()), float(terms[-1]), at + len(steps)
    return _log_probability(n, k, probability) + math.log(total)


def _log_probability(n: int, k: int, probability: Fraction) -> float:
    """Return ln P(Bin(n, probability) = k): terms of order n that cancel, hence many digits."""
    with localcontext(_DIGITS):
        ways = _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)
        return float(
            ways + k * _decimal(probability).ln() + (n - k) * _decimal(1 - probability).ln()
        )


def _log_factorial(n: int) -> Decimal:
    """Return ln n!, by Stirling's series if n is large enough."""
    if n < _STIRLING_FROM:
        return Decimal(math.factorial(n)).ln()
    series = sum(Decimal(a) / b / Decimal(n) ** (2 * j + 1) for j, (a, b) in enumerate(_STIRLING))
    return (n + Decimal("0.5")) * Decimal(n).ln() - n + _HALF_LOG_TWO_PI + series
