"""Unary encoding: a message has a bit for every value."""

from __future__ import annotations

import itertools
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check
from fastpriv._core.rounding import ratio_log_up
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.local import bits
from fastpriv._sampling.source import Source
from fastpriv._sampling.thresholds import WORDS, Codes
from fastpriv.channels.local.support import EXACT, SupportChannel
from fastpriv.spaces import Space

__all__ = ["UnaryChannel"]

OPTIMISED = "optimised"
SYMMETRIC = "symmetric"
#: Most bits in all messages of one call.
_DRAWN = 1 << 30


class UnaryChannel(SupportChannel):
    """Unary encoding: a message is k bits, each flipped independently.

    The bit of the true value is 1 with probability p, every other bit with probability q. The level
    is ln p (1-q) / (q (1-p)). Optimised encoding has p = 1/2 and q = 1/(e^epsilon + 1). Symmetric
    encoding, as in RAPPOR, has p = 1 - q and q = 1/(e^(epsilon/2) + 1) (Wang, Blocki, Li and Jha
    2017). Both p and q are multiples of 2^-64, and q is rounded up. The sampler draws exactly from
    this channel, and its level is at most epsilon.

    Parameters
    ----------
    k : int
        Number of values, at least 2.
    epsilon : float
        Differential privacy level, at least 0.
    encoding : {"optimised", "symmetric"}
        The choice of p and q.

    Examples
    --------
    >>> import fastpriv as fp
    >>> channel = fp.UnaryChannel(6, 1.0)
    >>> channel.sample([[2]], rng=3)
    array([[0, 1, 0, 0, 0, 0]], dtype=uint8)
    >>> round(fp.dp_level(channel), 12), round(channel.variance(), 6)  # 4 e / (e - 1)^2
    (1.0, 3.682694)
    """

    _parameter = "encoding"
    symmetric = True

    def __init__(self, k: int, epsilon: float, encoding: str = OPTIMISED) -> None:
        self._set(k, epsilon)
        self.encoding = check.word(encoding, "encoding", (OPTIMISED, SYMMETRIC))
        with localcontext(EXACT):
            share = Decimal(self.epsilon) / (2 if encoding == SYMMETRIC else 1)
            exact = WORDS / (1 + share.exp()) + Decimal("1e-30")
            off = int(exact.to_integral_value(ROUND_CEILING)) if self.epsilon else WORDS // 2
        #: Of 2^64 words, how many set the bit of the true value, and each other bit.
        self._words_off = min(off, WORDS // 2)  # at most the true value's, at any epsilon
        self._words_on = WORDS - self._words_off if encoding == SYMMETRIC else WORDS // 2
        p, q = self.chances
        self.growth = p * (1 - q) / (q * (1 - p))
        self.inclusion, self.joint = q, (q * q,)
        self.width = self.k
        self.output_space = Space.of((2,) * self.k)

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """Probabilities p and q that the bit of the true value, and another bit, is 1."""
        return Fraction(self._words_on, WORDS), Fraction(self._words_off, WORDS)

    def definition(self) -> dict[str, Any]:
        return {"k": self.k, "epsilon": self.epsilon, "encoding": self.encoding}

    @cached_property
    def excess(self) -> Decimal:
        with localcontext(EXACT):
            more = self.growth - 1
            return Decimal(more.numerator) / more.denominator

    @cached_property
    def level(self) -> float:
        return min(ratio_log_up(self.growth), self.epsilon)

    def _at(self, level: float) -> UnaryChannel:
        return self

    def support_table(self) -> tuple[Floats, NDArray[np.bool_]]:
        member = np.array(list(itertools.product((0, 1), repeat=self.k)), dtype=np.bool_).T
        q = float(self.inclusion)
        return np.where(member, q, 1.0 - q).prod(axis=0), member

    def members(self, report: Ints) -> NDArray[np.bool_]:
        return np.asarray(report == 1)

    @property
    def empty_mass(self) -> Decimal:
        return (1 - Decimal(self._words_off) / WORDS) ** self.k

    def draw_messages(self, values: Ints, source: Source) -> Codes:
        check.fits(len(values) * self.k, "the bits of the reports", "draw fewer at a time", _DRAWN)
        width = (self.k + 63) // 64
        packed = bits(self._words_off, len(values) * width, source)
        own = bits(self._words_on, (len(values) + 63) // 64, source)
        out = _unpacked(packed.reshape(-1, width))[:, : self.k]
        out[np.arange(len(values)), values] = _unpacked(own[None])[0, : len(values)]
        return np.ascontiguousarray(out)

    def tally(self, reports: Codes) -> Floats:
        return np.asarray(reports.sum(axis=0, dtype=np.int64), dtype=np.float64)


def _unpacked(words: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return the bits of words, the lowest first."""
    return np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), axis=1, bitorder="little")
