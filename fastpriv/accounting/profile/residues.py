"""A few releases of Laplace noise, in closed form.

With a = s + 1/2 and losses in [-e, e], one release has the moments

    M(s) = e^(-e/2) (e^(ae) (1/2 + 1/(4a)) + e^(-ae) (1/2 - 1/(4a))),

so that the contour integral of M^k is a sum of residues at a = 1/2 and a = 0. With
x_j = (2j - k) e - t, over the j for which it is positive,

    delta(t) = 1 - 4 e^((t - ke)/2) sum_j C(k, j) sum_n p(j, n) sum_m 4^m x_j^(n-1-2m) / (n-1-2m)!,

where p(j, n) is the coefficient of a^-n in (1/2 + 1/(4a))^j (1/2 - 1/(4a))^(k-j), 1 <= n <= k. The
terms cancel, so they are summed with as many decimal digits as that takes.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from functools import lru_cache

#: Most releases for which the sum is short.
MOST = 40
#: Relative error of a level: it is one over a scale, rounded.
_OFF = Decimal(2) ** -52


@lru_cache(maxsize=64)
def _coefficients(k: int, j: int) -> tuple[int, ...]:
    """Return 2^(k+n) p(j, n) for n = 0 .. k."""
    return tuple(
        sum(
            math.comb(j, i) * math.comb(k - j, n - i) * (-1) ** (n - i)
            for i in range(max(0, n - k + j), min(j, n) + 1)
        )
        for n in range(k + 1)
    )


def laplace_delta(e: float, k: int, t: float) -> tuple[float, float]:
    """Bound delta(t) of k releases of Laplace noise of level e; it rises with e.

    O(k^3) operations on decimal numbers of 60 digits, or more where they cancel.

    Examples
    --------
    >>> low, high = laplace_delta(1.0, 2, 0.0)
    >>> round(low, 12), round(high, 12)
    (0.448180838243, 0.448180838243)
    """
    digits = 60
    while True:
        low, high = (_delta(e, k, t, digits, sign) for sign in (-1, 1))
        if high[1] <= max(high[0], Decimal(0)) * Decimal(2) ** -60 or digits > 1200:
            break
        digits *= 2
    if high[0] == high[1] == 0:  # beyond all losses
        return 0.0, 0.0
    return (
        max(math.nextafter(float(low[0] - low[1]), -1.0), 0.0),
        min(math.nextafter(float(max(high[0] + high[1], Decimal(0))), 2.0), 1.0),
    )


def _delta(e: float, k: int, t: float, digits: int, sign: int) -> tuple[Decimal, Decimal]:
    """The sum with a level rounded down or up, and a bound on its error."""
    with decimal.localcontext(decimal.Context(prec=digits, Emin=-999999, Emax=999999)):
        level, at = Decimal(e) * (1 + sign * _OFF), Decimal(t)
        if k * level <= at:
            return Decimal(0), Decimal(0)
        total = size = Decimal(0)
        for j in range(k + 1):
            x = (2 * j - k) * level - at
            if x <= 0:
                continue
            powers = [Decimal(1)]
            for r in range(1, k):
                powers.append(powers[-1] * x / r)
            for n, p in enumerate(_coefficients(k, j)):
                inner = sum((4**m * powers[n - 1 - 2 * m] for m in range((n + 1) // 2)), Decimal(0))
                term = Decimal(math.comb(k, j) * p) * inner / 2 ** (k + n)
                total, size = total + term, size + abs(term)
        scale = 4 * ((at - k * level) / 2).exp()
        error = (1 + scale * size) * Decimal(10) ** (6 - digits)
        return 1 - scale * total, error
