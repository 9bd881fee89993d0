"""Distributions on the integers with weights exp(-rate (|i|/unit)^p), and exact draws from them.

All maximum-entropy noise has this form: on all integers, on a cycle (the integers nearest to zero)
or on an interval (rate 0). Weights are not formed on their own if they could overflow or underflow.

Draws. Distances up to a few standard deviations are cut into strips of 2^width. A table of 4096
slots gives strip i a share c_i/4096 that covers its weights, so that bits alone draw strip, place
and sign. Beyond the strips blocks double in width: block j has 2^(reach+j) distances and is
proposed with probability 2^-(j+1). A proposal k is accepted with the real probability
exp(-rate (|k|/unit)^p) e^lift / c_i (in the tail times 4^j, for k = 0 one half): the weight over
the probability of the proposal. A uniform real is compared with that number: 64 bits and a double
decide all but about 1e-13 of the trials, further bits and digits decide the others. No probability
is rounded, so that the draws have exactly this distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.search import bisect
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.source import source
from fastpriv.errors import TooLarge

#: Bound of the integers: draws are 64-bit, and no sampled distribution has mass beyond it.
FAR = 1 << 62
#: Sums of at most this many terms are formed term by term.
_DIRECT = 4096
#: Distance at which the Euler-Maclaurin formula takes over from the sum.
_JOIN = 32
#: Terms of that formula.
_TERMS = 12
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
#: Logarithms of rates and distances stay within these bounds, where e^x is a double.
_SMALLEST_LOG = -700.0
_LARGEST_LOG = 600.0
#: Slots of the table: 12 bits of a word.
_SLOTS = 4096
#: Bits of a word for a place in a strip; one more is for the sign.
_PLACES = 51
_STRIPS = 128
#: Exponent up to which distances are in strips.
_NEAR = 6.0
#: Proposals beyond 64-bit integers must have a log-probability below this, less than 320 zero bits.
_HOPELESS = -250.0
#: Relative margin of table entries, far above their rounding error.
_MARGIN = 1.0 + 1e-9
#: Trials per batch of words, at most.
_BATCH = 1 << 14
_TOO_WIDE = "noise this wide does not fit in 64-bit integers; scale the data down"


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
        """Exponent at distance 1."""
        return float(self.exponents(np.ones(1))[0])

    @cached_property
    def _sums(self) -> tuple[float, float]:
        """Sums of e^(g_1 - g_i) and g_i e^(g_1 - g_i) over distances i >= 1, each side once."""
        if self.rate == 0.0:
            return 0.5 * (self.high - self.low), 0.0
        log_end = math.log((_NEGLIGIBLE + self.first) / self.rate) / self.p
        end = self.unit * math.exp(min(log_end, _LARGEST_LOG))  # the last distance that matters
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
        """Log of E (|Z|/unit)^p, also if the moment underflows."""
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
    # Subtract the part up to _JOIN, by its series: for large p g underflows, and that part does
    # not.
    j = np.arange(25)
    terms = _JOIN * (-g) ** j / gamma(j + 1.0)
    below, weighted_below = terms / (p * j + 1.0), g * terms / (p * (j + 1.0) + 1.0)
    return whole - float(below.sum()), weighted - float(weighted_below.sum())


def solve(p: float, distortion: float, low: int, high: int) -> PowerLaw:
    """Return the distribution with E|Z|^p = distortion^p, for 0 < p < inf and 0 < distortion.

    If equal weights on ``low .. high`` have a smaller moment, they are returned. The moment falls
    as the rate grows, so that its logarithm has one root in the log of the rate.
    """
    # The weights fall within a factor of about e of distortion + 1: with this unit, and p <= 500,
    # the rate is between e^-300 and e^400.
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
    # Wide distributions have E (rate |Z/unit|^p) = 1/p; narrow ones have their moment at distance
    # 1.
    wide = -math.log(p) - target
    return law(_decreasing_root(excess, wide if unit > 1.0 else math.log(math.log(2.0) - target)))


def _arsinh_inverse(x: float) -> float:
    """Return arsinh(1/x), the rate of two-sided geometric noise of mean distance x."""
    return math.log(2.0) - math.log(x) if x < 1e-200 else math.asinh(1.0 / x)


def _decreasing_root(f: Callable[[float], float], start: float) -> float:
    """Return the root of a decreasing function, to the last digits, or -700 if it is below."""
    from scipy.optimize import brentq

    step = 0.5
    low = high = start
    while f(low) < 0.0:
        if low == _SMALLEST_LOG:  # on a cycle, equal weights up to rounding
            return low
        low, step = max(low - step, _SMALLEST_LOG), 2.0 * step
    step = 0.5
    while f(high) > 0.0:
        high, step = high + step, 2.0 * step
    return low if low == high else float(brentq(f, low, high, xtol=1e-16, rtol=9e-16))


# Exact draws.


@dataclass(frozen=True, eq=False)
class Sampler:
    """A distribution with the proposals for it."""

    law: PowerLaw
    #: Log2 of the width of a strip and of the first block of the tail.
    width: int
    reach: int
    lift: float
    #: Slots of each strip, the tail last.
    counts: Ints
    slots: NDArray[np.uint8]
    scale: Floats
    sure: Floats

    @classmethod
    def of(cls, law: PowerLaw) -> Sampler:
        """Cut the distribution into strips and assign the slots."""
        end = law.high + 1.0
        if law.rate > 0:
            log_end = math.log(_NEAR / law.rate) / law.p
            end = min(end, 1.0 + law.unit * math.exp(min(log_end, _LARGEST_LOG)))
        width = max(0, math.ceil(math.log2(end / _STRIPS)))
        if width > _PLACES:
            raise TooLarge(_TOO_WIDE)
        strips = math.ceil(end / 2.0**width)
        edges: Floats = np.arange(strips + 1.0) * 2.0**width
        first = np.exp(-law.exponents(edges[:-1]))
        if width == 0:
            first[0] = 0.5
        last = np.exp(-law.exponents(edges[1:] - 1.0))
        last[0] = min(last[0], 0.5)
        reach, tail = _tail(law, edges[-1], width)

        # As many slots per weight as fit, at least one for every strip with weight.
        tops = np.append(first, tail) * _MARGIN
        fewest = np.ones(strips + 1)
        fewest[-1] = edges[-1] <= law.high

        def slots_at(share: float) -> Floats:
            return np.maximum(np.ceil(tops * share), fewest)

        share, _ = bisect(lambda share: slots_at(share).sum() <= _SLOTS, 0.0, _SLOTS / tops.sum())
        lift = math.log(share)
        counts = slots_at(share).astype(np.int64)
        counts[np.argmax(counts)] += _SLOTS - counts.sum()
        scale = math.exp(lift) / np.maximum(counts, 1)
        scale[-1] *= 2.0 ** (reach - width + 1)
        sure = np.append(last * scale[:-1] / _MARGIN, 0.0)
        slots = np.repeat(np.arange(strips + 1), counts).astype(np.uint8)
        return cls(law, width, reach, lift, counts, slots, scale, sure)

    @property
    def acceptance(self) -> float:
        """Probability that a trial is accepted."""
        return math.exp(self.law.log_total + self.lift) / (2 * _SLOTS << self.width)

    def draw(self, count: int, rng: Any) -> Ints:
        """Return independent draws."""
        law, bits = self.law, source(rng)
        out = np.empty(count, dtype=np.int64)
        filled = 0
        while filled < count:
            trials = int(1.05 * (count - filled) / self.acceptance) + 16
            words, at = bits.words(2 * min(trials, _BATCH)), 0
            while at + 4 <= len(words) and filled < count:
                at, filled, undecided = kernels.draw_noise(
                    words, at, law.p, law.rate, law.unit, law.low, law.high, self.slots,
                    self.scale, self.sure, self.width, self.reach, out, filled,
                )  # fmt: skip
                if undecided:
                    k, used = self._settled(words[at : at + 4].tolist(), bits)
                    at += used
                    if k is not None:
                        out[filled] = k
                        filled += 1
        return out

    def _settled(self, words: list[int], bits: Any) -> tuple[int | None, int]:
        """Decide a trial that a double could not; return the value or None, and the words used."""
        first, u = words[:2]
        strip = int(self.slots[first % _SLOTS])
        k, shift, used = strip << self.width, 0, 2
        if strip == len(self.scale) - 1:
            used = 4
            j = (words[2] & -words[2]).bit_length() - 1
            if words[2] == 0 or self.reach + j > 60:
                if self.law.high < FAR or bits.words(4).any():
                    return None, used
                raise OverflowError(
                    "a draw beyond 64-bit integers; its probability is below 2^-320"
                )
            k += ((1 << j) - 1 << self.reach) + (words[3] >> (64 - self.reach - j))
            shift = 2 * j + 1 + self.reach - self.width
        else:
            k += (first >> 13) % (1 << self.width)
        shift -= k == 0
        known, digits = 64, 40
        while True:
            lower, upper = self._weight_over_slots(k, strip, shift + known, digits)
            if u + 1 <= lower:
                return -k if first & _SLOTS else k, used
            if u >= upper:
                return None, used
            u = u << 64 | int(bits.words(1)[0])
            known, digits = known + 64, digits + 20

    def _weight_over_slots(
        self, k: int, strip: int, shift: int, digits: int
    ) -> tuple[Decimal, Decimal]:
        """Enclose 2^shift times weight over slots."""
        law = self.law
        with localcontext(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)):
            z = Decimal(k) / Decimal(law.unit)
            power = Decimal(law.rate) * z ** Decimal(law.p) if k else Decimal(0)
            lift = Decimal(self.lift)
            bound = (lift - power).exp() / int(self.counts[strip]) * Decimal(2) ** shift
            terms = 1 + abs(lift) + power * (1 + Decimal(law.p))
            error = bound * terms * Decimal(10) ** (2 - digits)
            return bound - error, bound + error


def _tail(law: PowerLaw, start: float, width: int) -> tuple[int, float]:
    """Return log2 of the tail's first block, and the weight per strip width that covers it."""
    if start > law.high:
        return 0, 0.0
    reach, j = np.arange(61)[:, None], np.arange(63)
    starts = start + (2.0**j - 1.0) * 2.0**reach
    peaks = (2 * j + 1 + reach - width) * math.log(2.0) - law.exponents(starts)
    if law.high == FAR and (peaks[reach + j > 60] > _HOPELESS).any():
        raise TooLarge(_TOO_WIDE)
    peaks[starts > law.high] = -math.inf
    tops = peaks.max(axis=1)
    return int(np.argmin(tops)), math.exp(tops.min())
