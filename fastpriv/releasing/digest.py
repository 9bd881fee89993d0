"""A digest by which a table is recognised: of its records, in any order and any format.

A record is the vector of its codes c_1, c_2, ... in the columns of the domain; a report of a local
mechanism counts as the integers it is made of. With words k_0, k_1, ... that are expanded from a
random key, the digest is the sum over records of mix(k_0 + k_1 c_1 + k_2 c_2 + ...) modulo 2^64,
where mix is the bijection that ends a step of the generator SplitMix64. A sum does not depend on
the order of the records or on how they are read in parts; codes do not depend on the file format or
on the order of the columns in it.

Two records get the same word with probability 2^-(64 - t), if 2^t divides their difference in some
column and no smaller power of two does so in another. A table that is taken for another by mistake
has the same digest with about that probability. The digest is no protection against somebody who
knows the key and forges a table.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fastpriv.releasing.domain import Digits

#: Records hashed at a time: their words stay in the cache of a processor.
_CHUNK = 1 << 14
#: The shifts and multipliers of SplitMix64 (Steele, Lea and Flood 2014).
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31


@dataclass(frozen=True)
class Digest:
    """The digest of some records under a key."""

    key: bytes
    total: int = 0

    def plus(self, digits: Digits) -> Digest:
        """Return the digest with more records, given by their codes: one row for each record."""
        width = digits.shape[1]
        words = np.frombuffer(hashlib.shake_256(self.key).digest(8 * (width + 1)), "<u8")
        total = self.total
        for start in range(0, len(digits), _CHUNK):
            total += _sum_of_mixed(digits[start : start + _CHUNK], words)
        return replace(self, total=total % 2**64)

    def joined(self, other: Digest) -> Digest:
        """Return the digest of the records of both, under the same key."""
        return replace(self, total=(self.total + other.total) % 2**64)


def _sum_of_mixed(digits: Digits, words: NDArray[np.uint64]) -> int:
    mixed = np.full(len(digits), words[0], np.uint64)
    for j, word in enumerate(words[1:]):
        mixed += digits[:, j].astype(np.uint64) * word
    for shift, multiplier in _STEPS:
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(multiplier)
    mixed ^= mixed >> np.uint64(_LAST_SHIFT)
    return int(mixed.sum(dtype=np.uint64))
