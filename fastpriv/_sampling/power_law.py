"""Laws on the integers with weights exp(-rate (|i|/unit)^p): their sums, and the rate of a moment.

All of maximum-entropy noise is such a law: Z itself, a cycle (the integers nearest to zero) or an
interval (rate 0). Weights are never formed on their own where they could overflow or underflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastpriv._core.validation import Floats

#: The integers: draws are 64-bit, and no law that is drawn from has mass beyond this.
FAR = 1 << 62
#: Sums of at most this many terms are formed term by term.
_DIRECT = 4096
#: Where the Euler-Maclaurin formula takes over from the sum, and how many of its terms are used.
_JOIN, _TERMS = 32, 12
#: Weights e^-60 below the first one do not reach the last digit of a sum.
_NEGLIGIBLE = 60.0
#: B_2r / 2r, the Bernoulli numbers of that formula.
_BERNOULLI = [
    a / b
    for a, b in [
        (1, 12), (-1, 120), (1, 252), (-1, 240), (1, 132), (-691, 32760), (1, 12), (-3617, 8160),
        (43867, 14364), (-174611, 6600), (77683, 276), (-236364091, 65520),
    ]
]  # fmt: skip


@dataclass(frozen=True)
class PowerLaw:
    """P(Z = i) proportional to exp(-rate (|i|/unit)^p) for low <= i <= high.

    The unit is a power of two, so that |i|/unit and, for p = 1, rate/unit are exact; ``high`` is
    ``FAR`` for all integers, and ``low`` is -high or, on an even cycle, 1 - high.
    """

    p: float
    rate: float
    unit: float
    low: int
    high: int

    def exponents(self, distance: Floats) -> Floats:
        """Return rate (distance/unit)^p, or 1e300 beyond it, whose weight is 0 as well."""
        with np.errstate(over="ignore"):
            return np.minimum(self.rate * (distance / self.unit) ** self.p, 1e300)

    @cached_property
    def first(self) -> float:
        """Exponent at distance 1, which is ln B."""
        return float(self.exponents(np.ones(1))[0])

    @cached_property
    def _sums(self) -> tuple[float, float]:
        """Sums of e^(g_1 - g_i) and g_i e^(g_1 - g_i) over distances i >= 1, each side once."""
        if self.rate == 0.0:
            return 0.5 * (self.high - self.low), 0.0
        log_end = math.log((_NEGLIGIBLE + self.first) / self.rate) / self.p
        end = self.unit * math.exp(min(log_end, 600.0))  # the last distance that matters
        if end >= self.high < FAR or end <= max(_DIRECT, _NEGLIGIBLE * self.p):
            distance = np.arange(1.0, math.ceil(min(self.high, end)) + 1.0)
            g = self.exponents(distance)
            weights = np.exp(self.first - g)
            if self.low != -self.high and len(weights) == self.high:
                weights[-1] *= 0.5  # the point opposite zero on an even cycle is one, not two
            return float(weights.sum()), float((g * weights).sum())
        near = self.exponents(np.arange(1.0, _JOIN))
        weights = np.exp(self.first - near)
        tail, weighted_tail = self._tail()
        return float(weights.sum()) + tail, float((near * weights).sum()) + weighted_tail

    def _tail(self) -> tuple[float, float]:
        """Both sums from ``_JOIN`` on, by the Euler-Maclaurin formula.

        The integrals are incomplete gamma functions; derivatives come from the Taylor series of
        the weights in tau, i = _JOIN (1 + tau), whose terms fall like 1/(2 pi _JOIN)^r.
        """
        g = float(self.exponents(np.array([float(_JOIN)]))[0])
        width = self.unit * self.rate ** (-1.0 / self.p)
        order = 2 * _TERMS
        power = np.empty(order)  # of g (1 + tau)^p
        power[0] = g
        for r in range(1, order):
            power[r] = power[r - 1] * (self.p - r + 1) / r
        weight = np.empty(order)  # of exp(g - g (1 + tau)^p)
        weight[0] = 1.0
        steps = np.arange(order)
        for r in range(1, order):
            weight[r] = -(steps[1 : r + 1] * power[1 : r + 1] * weight[r - 1 :: -1]).sum() / r
        weighted = np.convolve(power, weight)[:order]

        scale = math.exp(self.first - g)
        corrections = np.array(_BERNOULLI) / float(_JOIN) ** (2 * np.arange(_TERMS) + 1)
        integral, weighted_integral = _integrals(self.p, width, g)
        ends = 0.5 - float((corrections * weight[1::2]).sum())
        weighted_ends = 0.5 * g - float((corrections * weighted[1::2]).sum())
        lift = math.exp(self.first)
        return lift * integral + scale * ends, lift * weighted_integral + scale * weighted_ends

    @cached_property
    def log_total(self) -> float:
        """Log of the sum of all weights (the weight of zero is 1)."""
        return math.log1p(2.0 * math.exp(-self.first) * self._sums[0])

    @cached_property
    def mean_exponent(self) -> float:
        """Expected rate (|Z|/unit)^p."""
        return 2.0 * math.exp(-self.first - self.log_total) * self._sums[1]

    @property
    def entropy(self) -> float:
        """H(Z) in nats."""
        return self.log_total + self.mean_exponent

    @property
    def log_moment(self) -> float:
        """Log of E (|Z|/unit)^p, also where the moment underflows."""
        if self._sums[1] == 0.0:
            return -math.inf
        return math.log(2.0 * self._sums[1]) - self.first - self.log_total - math.log(self.rate)


def _integrals(p: float, width: float, g: float) -> tuple[float, float]:
    """Integrate e^-y and y e^-y, y = (x/width)^p, over x from ``_JOIN`` on, where y = g."""
    from scipy.special import gamma, gammaincc

    a = 1.0 / p
    whole, weighted = width * a * gamma(a), width * a * a * gamma(a)
    if g > 1.0:
        return whole * gammaincc(a, g), weighted * gammaincc(a + 1.0, g)
    # Less the part up to _JOIN, by its series: for large p g underflows, and that part does not.
    j = np.arange(25)
    terms = _JOIN * (-g) ** j / gamma(j + 1.0)
    below, weighted_below = terms / (p * j + 1.0), g * terms / (p * (j + 1.0) + 1.0)
    return whole - float(below.sum()), weighted - float(weighted_below.sum())


def solve(p: float, distortion: float, low: int, high: int) -> PowerLaw:
    """Return the law with E|Z|^p = distortion^p, for 0 < p < inf and 0 < distortion.

    Where even equal weights on ``low .. high`` do not reach that moment, they are returned.
    The moment falls as the rate grows, so its logarithm has one root in the log of the rate.
    """
    # The law falls within a factor e or so of distortion + 1: with this unit, and p <= 500, the
    # rate is between e^-300 and e^400.
    unit = 2.0 ** round(math.log2(distortion + 1.0))
    target = p * math.log(distortion / unit)
    if high < FAR:
        moments = (np.arange(1.0, high + 1.0) / high) ** p
        if low != -high:
            moments[-1] *= 0.5
        uniform = math.log(2.0 * float(moments.sum()) / (high - low + 1))
        if uniform <= p * math.log(distortion / high):
            return PowerLaw(1.0, 0.0, 1.0, low, high)

    def law(log_rate: float) -> PowerLaw:
        return PowerLaw(p, math.exp(log_rate), unit, low, high)

    def excess(log_rate: float) -> float:
        return law(log_rate).log_moment - target

    if p == 1.0 and high == FAR:
        return PowerLaw(p, unit * _arsinh_inverse(distortion), unit, low, high)
    # Wide laws have E (rate |Z/unit|^p) = 1/p; narrow ones have all their moment at distance 1.
    wide = -math.log(p) - target
    return law(_decreasing_root(excess, wide if unit > 1.0 else math.log(math.log(2.0) - target)))


def _arsinh_inverse(x: float) -> float:
    """Return arsinh(1/x), the rate of a two-sided geometric law of mean distance x."""
    return math.log(2.0) - math.log(x) if x < 1e-200 else math.asinh(1.0 / x)


def _decreasing_root(f: Callable[[float], float], start: float) -> float:
    """Return the root of a decreasing function, to the last digits, or -700 if it is below."""
    from scipy.optimize import brentq

    step = 0.5
    low = high = start
    while f(low) < 0.0:
        if low == -700.0:  # on a cycle, nothing that a double could tell from equal weights
            return low
        low, step = max(low - step, -700.0), 2.0 * step
    step = 0.5
    while f(high) > 0.0:
        high, step = high + step, 2.0 * step
    return low if low == high else float(brentq(f, low, high, xtol=1e-16, rtol=9e-16))
