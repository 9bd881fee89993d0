"""Distributions as integer weights: a sampler draws from them, and they have a privacy level.

A floating-point distribution never reaches a sampler. It is rounded once, to integer weights out of
2^64 words, and from then on outputs have exactly these probabilities: no draw depends on rounding,
and the level that is reported is computed from the integers themselves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.rounding import lowered, ratio_log_up
from fastpriv._core.threads import split
from fastpriv._core.validation import Floats, Ints
from fastpriv._sampling.source import Source, Words

Codes = NDArray[Any]

#: Number of 64-bit words.
WORDS = 1 << 64
#: Enough digits to decide about the last bit of a double, with many to spare.
_EXACT = Context(prec=60)
#: Rows of fewer values than this are moved by a table over 16 bits.
_SMALL = 1 << 14
#: Fewest draws worth a thread.
_GRAIN = 1 << 17
#: Largest matrix whose thresholds are kept.
_KEEP = 1 << 20
#: Largest increase of a level when thresholds are read as doubles.
_ROUNDED = 2.0**-51
#: A step that the top 16 bits of a word do not decide.
_TIE = 65535


class Thresholds(ABC):
    """A channel for one row whose probabilities are integers."""

    #: Number of values in and out.
    shape: tuple[int, int]
    #: Codes drawn for at a time: their words stay in cache until they are used.
    _chunk: int

    @abstractmethod
    def level(self) -> float:
        """Largest log-ratio of the integer probabilities of an output, over pairs of inputs."""

    @abstractmethod
    def _fill(self, codes: Codes, out: Codes, source: Source) -> None:
        """Draw an output for every code of a chunk; both are flat, contiguous and unsigned."""

    def draw(self, codes: Codes, source: Source) -> Codes:
        """Draw an output for every code, in the codes' own dtype wherever outputs fit into it.

        Draws from the secure source are split over threads. A seeded or keyed one is asked in
        order, so that the same seed gives the same outputs on any number of cores and for any
        dtype.
        """
        given = np.ascontiguousarray(codes, dtype=fitting(codes.dtype, self.shape[1]))
        out = np.empty_like(given)
        unsigned = f"u{given.dtype.itemsize}"
        flat, drawn = given.reshape(-1).view(unsigned), out.reshape(-1).view(unsigned)

        def task(start: int, stop: int) -> None:
            for low in range(start, stop, self._chunk):
                part = slice(low, min(low + self._chunk, stop))
                # Kernels are compiled for arrays that can be written.
                mine = flat[part] if flat.flags.writeable else flat[part].copy()
                self._fill(mine, drawn[part], source)

        split(task, flat.size, _GRAIN if source.shared else max(flat.size, 1))
        return out


class LawThresholds(Thresholds):
    """Any distributions, one per input: a random word is looked up among cumulated weights."""

    _chunk = 1 << 15

    def __init__(self, laws: Floats) -> None:
        self.shape = laws.shape[0], laws.shape[1]
        self.weights: Words = np.empty(laws.shape, dtype=np.uint64)
        self._last = np.empty(len(laws), dtype=np.int64)
        kernels.integer_weights(laws, self.weights, self._last)

    @cached_property
    def _tables(self) -> tuple[Words, Ints, NDArray[np.int32], int]:
        # One more bit than outputs need: most words find their output at once.
        bits = min((self.shape[1] - 1).bit_length() + 1, 16)
        edges = np.empty_like(self.weights)
        guide = np.empty((len(edges), 1 << bits), dtype=np.int32)
        kernels.guide_tables(self.weights, self._last, 64 - bits, edges, guide)
        return edges, self._last, guide, 64 - bits

    def _fill(self, codes: Codes, out: Codes, source: Source) -> None:
        kernels.look_up(codes, source.words(len(codes)), *self._tables, out)

    def chances(self) -> Floats:
        """Return the probabilities of the outputs, each rounded to the nearest double."""
        chances = self.weights.astype(np.float64) * 2.0**-64
        chances[self._sure, self._last[self._sure]] = 1.0
        return chances

    @property
    def _sure(self) -> NDArray[np.bool_]:
        """Which distributions have one output: its weight 2^64 does not fit and is stored as 0."""
        return np.asarray(self.weights.max(axis=1) == 0)

    def level(self) -> float:
        """Largest log-ratio over inputs and outputs, from the integers. Rounded up."""
        if self._sure.any():
            same = self._sure.all() and np.ptp(self._last) == 0
            return 0.0 if same else math.inf
        most, least = self.weights.max(axis=0), self.weights.min(axis=0)
        seen = most > 0
        if np.any(least[seen] == 0):
            return math.inf
        ratios = most[seen] / least[seen]
        close = ratios >= lowered(ratios.max(initial=0.0), 32.0)
        pairs = set(zip(most[seen][close].tolist(), least[seen][close].tolist(), strict=True))
        return ratio_log_up(max((Fraction(*pair) for pair in pairs), default=Fraction(1)))


class ManyThresholds:
    """The rows of a matrix as integer thresholds: all are kept if small, else made on demand."""

    def __init__(self, matrix: Floats) -> None:
        self._matrix = matrix

    @cached_property
    def _kept(self) -> LawThresholds:
        return LawThresholds(self._matrix)

    def draw(self, which: Ints, source: Source) -> Ints:
        """Draw from row ``which[j]`` for every j. Cost O(1) for each after O(K) per row."""
        if self._matrix.size <= _KEEP:
            return self._kept.draw(which, source)
        seen, which = np.unique(which, return_inverse=True)
        return LawThresholds(self._matrix[seen]).draw(which.reshape(-1), source)

    def level(self, of: Callable[[Floats], float]) -> float:
        """Return the level of the realised probabilities; ``of`` measures a matrix of doubles."""
        level = of(LawThresholds(self._matrix).chances())
        # A double is within 2^-53 of each probability, so a ratio of two is within 2^-52 of theirs.
        # Neighbours with equal distributions have equal thresholds.
        return level + _ROUNDED if of(self._matrix) > 0.0 else 0.0


class SymmetricThresholds(Thresholds):
    """R_epsilon in integers: ``stay`` words keep a value, ``move`` words lead to each other one.

    Words that are left over, e^epsilon + m of the 2^64 at most, decide nothing and are drawn
    again. So stay / move is free to be rounded down to the best ratio of integers for this
    ``move``: the realised level never exceeds epsilon, for any number of values.
    """

    def __init__(self, m: int, epsilon: float) -> None:
        self.shape = m, m
        self._m, self._epsilon = m, epsilon
        self._chunk = 1 << (17 if m <= _SMALL else 15)
        if m == 1:
            self.stay, self.move = WORDS - 1, 1
        else:
            self.stay, self.move = integer_ratio(1, m - 1, epsilon)

    def level(self) -> float:
        """Return ln(stay / move), rounded up; at most epsilon."""
        return (
            min(ratio_log_up(Fraction(self.stay, self.move)), self._epsilon) if self._m > 1 else 0.0
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the table of steps: it follows from the rest and is large."""
        return {name: value for name, value in self.__dict__.items() if name != "_steps"}

    @cached_property
    def _rule(self) -> tuple[int, np.uint64, np.uint64, np.uint64]:
        final = self.stay + (self._m - 1) * self.move - 1
        return self._m, np.uint64(self.stay), np.uint64(self.move), np.uint64(final)

    @cached_property
    def _steps(self) -> NDArray[np.uint16]:
        """The step that the top 16 bits of a word decide, or a tie where they do not."""
        _, stay, move, final = self._rule
        low = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
        high = low | np.uint64((1 << 48) - 1)

        def step(u: Words) -> Words:
            moved = np.uint64(1) + (np.maximum(u, stay) - stay) // move
            return np.where(u < stay, np.uint64(0), moved)

        settled = (step(low) == step(high)) & (high <= final)
        return np.where(settled, step(low), np.uint64(_TIE)).astype(np.uint16)

    def _fill(self, codes: Codes, out: Codes, source: Source) -> None:
        if self._m == 1:
            out[:] = codes
            return
        if self._m > _SMALL:
            left, words = np.arange(len(codes)), source.words(len(codes))
        else:  # 16 bits each, and the other 48 of those words for which these settle nothing
            left = np.empty(len(codes), dtype=np.int64)
            cells = source.words((len(codes) + 3) // 4).view(np.uint16)[: len(codes)]
            count = kernels.step_by_cells(codes, cells, self._steps, self._m, out, left)
            high = cells[left[:count]].astype(np.uint64) << np.uint64(48)
            words = high | (source.words(count) >> np.uint64(16))
        while len(words):
            words = source.words(kernels.step_by_words(codes, left, words, *self._rule, out))


def integer_ratio(inside: int, outside: int, epsilon: float) -> tuple[int, int]:
    """Return integers in about the ratio e^epsilon and never above it, as large as words allow.

    So many outputs share 2^64 words: ``inside`` get the first integer each, ``outside`` the second.
    """
    if epsilon > 64.0:  # beyond the ratio of 64-bit integers
        return (WORDS - outside) // inside, 1
    with localcontext(_EXACT):
        growth = Decimal(epsilon).exp()
        # The guard covers the rounding of e^epsilon, which is not an integer.
        guard = Decimal("1e-30") if epsilon > 0.0 else Decimal(0)
        move = max(1, int(WORDS / (growth * inside + outside)))
        stay = max(move, int(growth * move - guard))
        return min(stay, (WORDS - outside * move) // inside), move


def fitting(dtype: np.dtype[Any], values: int) -> np.dtype[Any]:
    """Return an integer dtype in native order, or the smallest one that holds so many values."""
    bits = {"b": 1, "i": 8 * dtype.itemsize - 1, "u": 8 * dtype.itemsize}[dtype.kind]
    if values <= 1 << bits:
        return dtype.newbyteorder("=")
    return np.dtype(np.min_scalar_type(values - 1))
