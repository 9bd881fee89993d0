"""Draws for local mechanisms, whose messages favour some outputs by a common factor e^epsilon."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.rounding import ratio_log_up
from fastpriv._core.validation import Ints
from fastpriv._sampling.sequential import draw_all
from fastpriv._sampling.source import Source, Words
from fastpriv._sampling.thresholds import WORDS, integer_ratio


class InsideThresholds:
    """Draws of whether a message falls inside, where every output is e^epsilon times as likely.

    There are outputs inside and outside in the proportion ``inside`` : ``outside``. Each of them
    has ``stay`` or ``move`` words, up to a common factor; other words are drawn again. The ratio
    stay / move is rounded down, so that the realised level never exceeds epsilon.
    """

    def __init__(self, inside: int, outside: int, epsilon: float) -> None:
        common = gcd(inside, outside)
        self._inside, self._outside = inside // common, outside // common
        self.stay, self.move = integer_ratio(self._inside, self._outside, epsilon)
        self._epsilon = epsilon

    @property
    def growth(self) -> Fraction:
        """The factor that is realised."""
        return Fraction(self.stay, self.move)

    @property
    def level(self) -> float:
        """Logarithm of the factor, rounded up; at most epsilon."""
        return min(ratio_log_up(self.growth), self._epsilon)

    @property
    def chance(self) -> Fraction:
        """Probability to fall inside."""
        weight = self._inside * self.stay
        return Fraction(weight, weight + self._outside * self.move)

    def draw(self, count: int, source: Source) -> NDArray[np.bool_]:
        """Draw for each message whether it falls inside."""
        words = source.words(count)
        edge = self._inside * self.stay
        final = np.uint64(edge + self._outside * self.move - 1)
        while len(again := np.flatnonzero(words > final)):
            words[again] = source.words(len(again))
        # An edge of 2^64 does not fit into a word; then all words are inside.
        return np.ones(count, np.bool_) if edge == WORDS else words < np.uint64(edge)


def below(size: int, count: int, source: Source) -> Ints:
    """Draw integers below ``size``, all equally likely; numbers beyond are drawn again."""
    out = np.zeros(count, dtype=np.int64)
    bits = (size - 1).bit_length()
    if bits:
        left = np.arange(count)
        while len(left):
            drawn = (source.words(len(left)) >> np.uint64(64 - bits)).astype(np.int64)
            out[left] = drawn
            left = left[drawn >= size]
    return out


def bits(threshold: int, count: int, source: Source) -> Words:
    """Draw words of 64 bits, each bit 1 with probability threshold / 2^64."""
    out = np.empty(count, dtype=np.uint64)

    def step(done: int, words: Words) -> tuple[int, int]:
        return kernels.draw_bits(words, np.uint64(threshold), out[done:])

    draw_all(step, count, 9, source)
    return out


def subsets(values: Ints, inside: NDArray[np.bool_], k: int, size: int, source: Source) -> Ints:
    """Draw sorted subsets of 0 .. k - 1 that hold the value of their record, or do not.

    All subsets of this size that do, or do not, are equally likely. Cost O(k) for each.
    """
    out = np.empty((len(values), size), dtype=np.int64)
    marks = np.empty((k + 62) // 64, dtype=np.uint64)
    held = inside.astype(np.uint8)
    threshold = np.uint64(min(WORDS * size // k, WORDS - 1))

    def step(done: int, words: Words) -> tuple[int, int]:
        part = values[done:], held[done:]
        return kernels.draw_subsets(*part, k, threshold, words, marks, out[done:])

    draw_all(step, len(values), 10 * len(marks) + 4, source)
    return out
