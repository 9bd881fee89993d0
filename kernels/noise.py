"""Exact draws of integer noise from random words, and sums of a tilted binomial distribution."""

import math

import numpy as np

from .declare import Bytes, Ints, Vector, Words, kernel

_UNIT = 2.0**-64
#: Relative error of an acceptance probability per unit of its exponent, with room to spare.
_SLACK = 2.0**-49


@kernel()
def draw_noise(
    words: Words,
    at: int,
    p: float,
    rate: float,
    unit: float,
    low: int,
    high: int,
    slots: Bytes,
    scale: Vector,
    sure: Vector,
    width: int,
    reach: int,
    out: Ints,
    filled: int,
) -> tuple[int, int, bool]:
    """Fill ``out`` with draws of weights exp(-rate (|k|/unit)^p) on low .. high, by rejection.

    A trial takes four words. The first gives one of the 4096 ``slots``, a sign and a place in the
    slot's strip of 2^width distances; the second, followed by bits not yet drawn, is a uniform
    real that accepts the trial if it is below exp(-rate (|k|/unit)^p) scale[strip]. The last
    strip is the tail: the third word gives a block j with probability 2^-(j+1), the fourth a place
    among its 2^(reach+j) distances, and 4^j enters the scale. A real below sure[strip] is below
    every bound of the strip; one too close to a rounded bound leaves the trial to the caller.

    Returns the position in ``words`` and in ``out``, and whether the trial there is undecided.
    """
    one = np.uint64(1)
    tail = scale.shape[0] - 1
    while filled < out.shape[0] and at + 4 <= words.shape[0]:
        first = words[at]
        u = words[at + 1]
        real = np.float64(u) * _UNIT
        strip = np.int64(slots[first & np.uint64(4095)])
        k = strip << width
        at += 2
        factor = scale[strip]
        if strip < tail:
            k += np.int64((first >> np.uint64(13)) & np.uint64((1 << width) - 1))
        else:
            bits, place = words[at], words[at + 1]
            at += 2
            j = 0
            while j < 63 and bits & one == 0:
                bits >>= one
                j += 1
            if reach + j > 60:
                if u == 0:
                    return at - 4, filled, True
                continue
            k += ((1 << j) - 1) << reach
            k += np.int64((place >> one) >> np.uint64(63 - reach - j))
            factor *= 4.0**j
        if first & np.uint64(4096):
            k = -k
        if k < low or k > high:
            continue
        if real >= sure[strip]:
            z = abs(k) / unit
            if p == 1.0:
                power = rate * z
            elif p == 2.0:
                power = rate * z * z
            else:
                power = rate * z**p
            if k == 0:
                factor *= 0.5  # zero comes with either sign
            bound = math.exp(-power) * factor
            slack = bound * _SLACK * (2.0 + (1.0 + p) * min(power, 800.0))
            if real >= bound + slack and u > 0:
                continue
            if real + _UNIT >= bound - slack:
                return at - (2 if strip < tail else 4), filled, True
        out[filled] = k
        filled += 1
    return at, filled, False


@kernel()
def tilted_sums(n: int, odds: float, decay: float, out: Vector) -> None:
    """Write sum_{s < k} b(s) decay^(k-1-s) / b(k) for k = 0 .. n, where b is Binomial(n, p).

    ``odds`` is (1-p)/p. All terms are positive. From some k on the sums exceed anything that
    they will be compared with, and are capped.
    """
    total = 0.0
    for k in range(n + 1):
        out[k] = total
        # b(k)/b(k+1) is odds (k+1)/(n-k)
        total = min((1.0 + decay * total) * odds * ((k + 1.0) / (n - k)), 1e200) if k < n else 0.0
