"""Exact draws from a power law: proposals by bits, acceptance with as many digits as it needs.

Distances up to a few standard deviations are cut into strips of 2^width; a table of 4096 slots
gives strip i a share c_i/4096 that covers its weights, so that bits alone draw strip, place and
sign. Beyond the strips blocks double in width: block j has 2^(reach+j) distances and is proposed
with chance 2^-(j+1). A proposal k is accepted with the real probability
exp(-rate (|k|/unit)^p) e^lift / c_i (in the tail times 4^j, for k = 0 one half): the weight over
the chance of the proposal. A uniform real is compared with that number: 64 bits and a double
decide all but about 1e-13 of the trials, further bits and digits decide the rest. No probability
is rounded, so what is drawn is the law itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.power_law import FAR, PowerLaw
from fastpriv._sampling.source import source
from fastpriv.errors import TooLarge

#: A word is 12 bits for a slot, one for a sign and the rest for a place in a strip.
_SLOTS, _PLACES = 4096, 51
_STRIPS = 128
#: Exponent up to which distances are in strips.
_NEAR = 6.0
#: Log of a chance below that of 320 zero bits, which proposals beyond 64-bit integers must have.
_HOPELESS = -250.0
#: Far beyond the rounding error of a table entry.
_MARGIN = 1.0 + 1e-9
#: Trials per batch of words, at most.
_BATCH = 1 << 14
_TOO_WIDE = "noise this wide does not fit in 64-bit integers; scale the data down"


@dataclass(frozen=True, eq=False)
class Sampler:
    """A law with the proposals that fit it."""

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
        """Cut the law into strips and share out the slots."""
        end = law.high + 1.0
        if law.rate > 0:
            log_end = math.log(_NEAR / law.rate) / law.p
            end = min(end, 1.0 + law.unit * math.exp(min(log_end, 600.0)))
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

        # As many slots per weight as there is room for, at least one where there is any weight.
        tops = np.append(first, tail) * _MARGIN
        least = np.ones(strips + 1)
        least[-1] = edges[-1] <= law.high
        little, much = 0.0, _SLOTS / tops.sum()
        for _ in range(60):
            middle = 0.5 * (little + much)
            fits = np.maximum(np.ceil(tops * middle), least).sum() <= _SLOTS
            little, much = (middle, much) if fits else (little, middle)
        lift = math.log(little)
        counts = np.maximum(np.ceil(tops * little), least).astype(np.int64)
        counts[np.argmax(counts)] += _SLOTS - counts.sum()
        scale = math.exp(lift) / np.maximum(counts, 1)
        scale[-1] *= 2.0 ** (reach - width + 1)
        sure = np.append(last * scale[:-1] / _MARGIN, 0.0)
        slots = np.repeat(np.arange(strips + 1), counts).astype(np.uint8)
        return cls(law, width, reach, lift, counts, slots, scale, sure)

    @property
    def chance(self) -> float:
        """Chance that a trial is accepted."""
        return math.exp(self.law.log_total + self.lift) / (2 * _SLOTS << self.width)

    def draw(self, count: int, rng: Any) -> Ints:
        """Return independent draws."""
        law, bits = self.law, source(rng)
        out = np.empty(count, dtype=np.int64)
        filled = 0
        while filled < count:
            trials = int(1.05 * (count - filled) / self.chance) + 16
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
        """Decide a trial that a double could not: the value or None, and the words it took."""
        first, u = words[:2]
        strip = int(self.slots[first % _SLOTS])
        k, shift, used = strip << self.width, 0, 2
        if strip == len(self.scale) - 1:
            used = 4
            j = (words[2] & -words[2]).bit_length() - 1
            if words[2] == 0 or self.reach + j > 60:
                if self.law.high < FAR or bits.words(4).any():
                    return None, used
                raise OverflowError("a draw beyond 64-bit integers; its chance is below 2^-320")
            k += ((1 << j) - 1 << self.reach) + (words[3] >> (64 - self.reach - j))
            shift = 2 * j + 1 + self.reach - self.width
        else:
            k += (first >> 13) % (1 << self.width)
        shift -= k == 0
        known, digits = 64, 40
        while True:
            least, most = self._acceptance(k, strip, shift + known, digits)
            if u + 1 <= least:
                return -k if first & _SLOTS else k, used
            if u >= most:
                return None, used
            u = u << 64 | int(bits.words(1)[0])
            known, digits = known + 64, digits + 20

    def _acceptance(self, k: int, strip: int, shift: int, digits: int) -> tuple[Decimal, Decimal]:
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
    """Return log2 of the tail's first block and the weight that covers it, per strip width."""
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
