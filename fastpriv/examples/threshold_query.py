"""The deterministic answer to "are there more than t?": what it leaks, exactly and bounded."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

from fastpriv._core import validation as check
from fastpriv._core.rounding import raised
from fastpriv.errors import InvalidInput, described, short

__all__ = ["threshold_query_bound", "threshold_query_leakage"]

#: Terms of the order 10^9 cancel, down to 10^-33 in a divergence where t/n and p are an ulp apart.
_DIGITS = Context(prec=64)
_HALF_LOG_TWO_PI = Decimal("0.9189385332046727417803297364056176398614")
_STIRLING = [(1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360)]
_CHUNK = 4096


def threshold_query_leakage(n: int, t: int, p: float, answer: bool = True) -> float:
    """Pointwise maximal leakage of a truthful answer to "do more than t of n rows hold a one?".

    The rows are independent and hold a one with chance p. The answer yes leaks
    -ln P(Bin(n, p) > t), the answer no -ln P(Bin(n, p) <= t) (Saeidian et al. 2024,
    Example 3.11): little where the answer is a foregone conclusion, although no noise is added.

    Parameters
    ----------
    n : int
        Number of rows.
    t : int
        The threshold, at least 0.
    p : float
        Chance that a row holds a one.
    answer : bool
        Which answer was given: yes (more than t) by default.

    Returns
    -------
    float
        Leakage in nats, rounded up by about 1e-12 of itself for n up to 10^7; infinite for an
        answer that is impossible, 0 below the range of a double.

    Notes
    -----
    The tail that does not hold the mean is one probability, from 64 digits, times a sum of
    positive terms that fall from 1, so that nothing cancels and nothing underflows; the other
    tail is its complement. Cost O(sqrt(n)).

    Examples
    --------
    >>> import fastpriv as fp
    >>> round(fp.threshold_query_leakage(200, 60, 0.5), 12)  # P(Bin <= 60), nearly
    7.535e-09
    >>> round(fp.threshold_query_leakage(10**7, 10**7 // 2, 0.5, answer=False), 6)
    0.692895
    """
    n, t, chance = _checked(n, t, p)
    answer = check.flag(answer, "answer")
    if t >= n or chance == 0:
        return math.inf if answer else 0.0
    if chance == 1:
        return 0.0 if answer else math.inf
    yes = 2 * t + 1 > 2 * n * chance  # which answer has the tail without the mean
    tail = _log_tail(n, t + 1, chance) if yes else _log_tail(n, n - t, 1 - chance)
    level = -tail if yes == answer else _log_complement(tail)
    spread = math.sqrt(n * float(chance * (1 - chance)))
    return raised(level, 64.0 + 6.0 * spread + min(-tail, 745.0))


def threshold_query_bound(n: int, t: int, p: float, answer: bool = True) -> float:
    """Chernoff bound on :func:`threshold_query_leakage`, for an answer that is to be expected.

    -ln(1 - exp(-n KL(t/n || p))) for the answer yes, which needs t/n < p, and the same with t + 1
    in place of t for the answer no, which needs (t + 1)/n > p (Saeidian et al. 2024,
    Example 3.11 and Figure 1; at equality, which the paper admits, the bound is infinite).

    Parameters
    ----------
    n : int
        Number of rows.
    t : int
        The threshold, at least 0.
    p : float
        Chance that a row holds a one.
    answer : bool
        Which answer was given: yes (more than t) by default.

    Returns
    -------
    float
        Upper bound in nats, rounded up; 0 below the range of a double.

    Examples
    --------
    >>> import fastpriv as fp
    >>> fp.threshold_query_bound(200, 60, 0.5) > fp.threshold_query_leakage(200, 60, 0.5)
    True
    """
    n, t, chance = _checked(n, t, p)
    answer = check.flag(answer, "answer")
    count = t if answer else t + 1
    if not (count < n * chance if answer else count > n * chance):
        need = "t/n < p" if answer else "(t + 1)/n > p"
        raise InvalidInput(
            f"the Chernoff bound for this answer holds for {need} only, got n = {short(n)}, "
            f"t = {short(t)}, p = {described(p)}; ask threshold_query_leakage, which is exact"
        )
    if count > n or chance in (0, 1):  # the answer is certain
        return 0.0
    with localcontext(_DIGITS):
        parts = [(count, chance), (n - count, 1 - chance)]
        exponent = float(
            sum(k * (_decimal(Fraction(k)) / _decimal(n * c)).ln() for k, c in parts if k)
        )
    return raised(_log_complement(-exponent), 2.0 * (16.0 + exponent))


def _checked(n: int, t: int, p: float) -> tuple[int, int, Fraction]:
    rows = check.integer(n, "n", 1)
    check.fits(rows, "a database", "use fewer rows")
    chance = Fraction(check.real(p, "p", least=0.0, most=1.0))
    return rows, check.integer(t, "t", 0), chance


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log_complement(log_tail: float) -> float:
    """Return -ln(1 - e^log_tail), with its digits also where the tail is close to 0 or 1."""
    if log_tail > -0.5:
        return -math.log(-math.expm1(log_tail))
    return -math.log1p(-math.exp(log_tail))


def _log_tail(n: int, k: int, chance: Fraction) -> float:
    """Return ln P(Bin(n, chance) >= k) for k of at least the mean, from where terms fall."""
    odds = float(min(chance / (1 - chance), Fraction(10**300)))  # of use only while k < n
    total = last = 1.0
    at = k
    while at < n and last > total * 1e-20:
        steps = np.arange(at, min(n, at + _CHUNK), dtype=np.float64)
        terms = last * np.cumprod((n - steps) / (steps + 1.0) * odds)
        total, last, at = total + float(terms.sum()), float(terms[-1]), at + len(steps)
    return _log_probability(n, k, chance) + math.log(total)


def _log_probability(n: int, k: int, chance: Fraction) -> float:
    """Return ln P(Bin(n, chance) = k): terms of order n that cancel, hence many digits."""
    with localcontext(_DIGITS):
        ways = _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)
        return float(ways + k * _decimal(chance).ln() + (n - k) * _decimal(1 - chance).ln())


def _log_factorial(n: int) -> Decimal:
    """Return ln n!, by Stirling's series where its first terms are good to 25 digits."""
    if n < 256:
        return Decimal(math.factorial(n)).ln()
    series = sum(Decimal(a) / b / Decimal(n) ** (2 * j + 1) for j, (a, b) in enumerate(_STIRLING))
    return (n + Decimal("0.5")) * Decimal(n).ln() - n + _HALF_LOG_TWO_PI + series
