"""Where random bits come from: an unpredictable keystream, or a NumPy generator on request.

The default is the keystream of AES-256 in counter mode under a key and a starting counter from the
operating system. It is as hard to predict as the cipher is to break, and more than ten times as
fast as asking the system for every byte (6.6 GB/s against 0.25). The ``cryptography`` package is
imported with the first draw.

A task that may run more than once draws from :class:`Keyed`: the same keystream, but under a secret
that its caller drew. Run again, on any machine, it gives the same words.

Each thread has a stream of its own. A forked child never continues a stream of its parent. A stream
takes a new key after 64 MiB, so that its memory reveals little about earlier draws. Bits are made
when they are asked for; nothing is kept that could be used twice.
"""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv._core import validation as check

Words = NDArray[np.uint64]

#: Bytes after which a stream takes a new key.
_PER_KEY = 1 << 26
#: The plaintext whose encryption is the keystream.
_ZEROS = memoryview(bytes(1 << 20))

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class Source(ABC):
    """Uniform random 64-bit words."""

    #: Whether the words are unpredictable without the secrets of this source.
    secure: bool
    #: Whether threads may ask at once; otherwise the words are one sequence.
    shared: bool = False

    @abstractmethod
    def words(self, count: int) -> Words:
        """Return ``count`` fresh words."""


class _Keystream:
    """The keystream of one thread of one process."""

    def __init__(self) -> None:
        self._born = _here()
        self._left = 0
        self._cipher: Any = None

    @property
    def inherited(self) -> bool:
        """Whether this is the copy of a parent's stream in a forked child."""
        return self._born != _here()

    def fill(self, out: memoryview, count: int) -> None:
        """Write ``count`` bytes; ``out`` has room for one more block of the cipher."""
        done = 0
        while done < count:
            if not self._left:
                self._renew()
            size = min(count - done, self._left, len(_ZEROS))
            self._cipher.update_into(_ZEROS[:size], out[done:])
            done += size
            self._left -= size

    def _renew(self) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        mode = modes.CTR(os.urandom(16))
        self._cipher = Cipher(algorithms.AES256(os.urandom(32)), mode).encryptor()
        self._left = _PER_KEY


def _here() -> tuple[int, int]:
    # The count changes with forks by Python, the process id with all others.
    return _forks, os.getpid()


class _Threads(threading.local):
    stream: _Keystream | None = None


class _Secure(Source):
    secure = shared = True
    _mine = _Threads()

    def words(self, count: int) -> Words:
        stream = self._mine.stream
        if stream is None or stream.inherited:
            stream = self._mine.stream = _Keystream()
        words = np.empty(count + 2, dtype=np.uint64)
        stream.fill(words.view(np.uint8).data, 8 * count)
        return words[:count]


class Keyed(Source):
    """The keystream that 48 bytes determine: asked in the same order, it gives the same words."""

    shared = False

    def __init__(self, key: bytes, secure: bool) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self.secure = secure
        self._cipher = Cipher(algorithms.AES256(key[:32]), modes.CTR(key[32:])).encryptor()

    def words(self, count: int) -> Words:
        words = np.empty(count + 2, dtype=np.uint64)
        out = words.view(np.uint8).data
        for done in range(0, 8 * count, len(_ZEROS)):
            size = min(8 * count - done, len(_ZEROS))
            self._cipher.update_into(_ZEROS[:size], out[done:])
        return words[:count]


class _Seeded(Source):
    secure = shared = False

    def __init__(self, generator: np.random.Generator) -> None:
        self._generator = generator

    def words(self, count: int) -> Words:
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


_SECURE = _Secure()


def source(rng: Any) -> Source:
    """Return the secure source for None, and one that draws from a NumPy generator or a seed."""
    if rng is None:
        return _SECURE
    return rng if isinstance(rng, Source) else _Seeded(check.generator(rng))


def is_secure(rng: Any) -> bool:
    """Whether draws with this ``rng`` are unpredictable; by default they are."""
    return source(rng).secure
