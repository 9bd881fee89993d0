"""Kernels e^(-slope d(x, y)) that tilt an output law towards a database, and their moments.

With K the kernel, v = K q and c = K^T u are all that an iteration needs; where the slope is sought
too, also K weighted by d and by d^2, which is how K q changes with the slope.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from fastpriv import kernels
from fastpriv._core.threads import split
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats

#: Lines of all axes up to this many entries are summed while they are in cache.
_BLOCK = 1 << 15


class Tilt(ABC):
    """One kernel K, up to the factor e^log_scale that keeps its numbers moderate."""

    slope: float
    log_scale: float = 0.0

    @abstractmethod
    def forward(self, q: Floats, overwrite: bool = False) -> Floats:
        """Return v = K q over databases, in the memory of q if it may be overwritten."""

    @abstractmethod
    def backward(self, u: Floats, overwrite: bool = False) -> Floats:
        """Return c = K^T u over outputs, in the memory of u if it may be overwritten."""

    @abstractmethod
    def squares(self, b: Floats) -> Floats:
        """Return the sums over x of b(x) K[x, y]^2: the diagonal of K^T diag(b) K."""

    @abstractmethod
    def distances(self, q: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Return the sums over y of K d q and K d^2 q, given v = K q."""

    @abstractmethod
    def distances_back(self, u: Floats, c: Floats) -> Floats:
        """Return the sums over x of u K d, given c = K^T u."""


#: A kernel for every slope.
Family = Callable[[float], Tilt]


class HammingTilt(Tilt):
    """The Hamming kernel over databases: every product is an O(N n) transform.

    Both K and its derivative are products over rows of combinations of I and J (all ones), which
    commute. So K weighted by d is G K with G = a sum_i (J_i/g_i - I), a = 1/(e^slope - 1) and
    g_i = 1 + (m_i - 1) e^-slope, and the weighted sums follow from v by sums along lines.
    """

    def __init__(self, sizes: Sequence[int], slope: float) -> None:
        self.slope, self._sizes = slope, tuple(sizes)
        r = math.exp(-slope)
        totals = [1.0 + (m - 1) * r for m in sizes]
        self.log_scale = math.fsum(map(math.log, totals))
        self._mixing = [r / g for g in totals]
        self._squared = [r * r / (1.0 + (m - 1) * r * r) for m in sizes]
        self._square_scale = math.prod(
            (1.0 + (m - 1) * r * r) / g**2 for m, g in zip(sizes, totals, strict=True)
        )
        axes = [(h, m) for h, m in zip(_strides(sizes), sizes, strict=True) if m > 1]
        self._strides = np.array([h for h, _ in axes], dtype=np.int64)
        self._lengths = np.array([m for _, m in axes], dtype=np.int64)
        self._a = 1.0 / math.expm1(slope) if slope < 700.0 else r
        self._g = np.asarray(1.0 + (self._lengths - 1) * r, dtype=np.float64)

    def forward(self, q: Floats, overwrite: bool = False) -> Floats:
        return mix(q if overwrite else q.copy(), self._sizes, self._mixing)

    def backward(self, u: Floats, overwrite: bool = False) -> Floats:
        return self.forward(u, overwrite)

    def squares(self, b: Floats) -> Floats:
        return mix(b.copy(), self._sizes, self._squared) * self._square_scale

    def distances(self, q: Floats, v: Floats) -> tuple[Floats, Floats]:
        a, g, m = self._a, self._g, self._lengths.astype(np.float64)
        first = self.distances_back(q, v)
        # d^2 - d counts ordered pairs of changed rows: (sum G_i)^2 without the squares G_i^2.
        same = self._line_sums(v, a * a * (m / g - 2.0) / g) + len(m) * a * a * v
        second = self.distances_back(q, first) - same + first
        return first, second

    def distances_back(self, u: Floats, c: Floats) -> Floats:
        return self._line_sums(c, self._a / self._g) - len(self._g) * self._a * c

    def _line_sums(self, v: Floats, weights: Floats) -> Floats:
        """Sum of weights[i] times the sum of v along axis i, as a vector."""
        out = np.zeros_like(v)
        spans = self._strides * self._lengths
        low = spans <= _BLOCK
        passes = [np.flatnonzero(low)] * bool(low.any()) + [[i] for i in np.flatnonzero(~low)]
        for axes in passes:
            block = int(spans[axes].max())
            chosen = (weights[axes], self._strides[axes], self._lengths[axes])
            task = partial(kernels.add_line_sums, v, out, *chosen, block)
            split(task, len(v) // block, max(1, _BLOCK // block))
        return out


def _strides(sizes: Sequence[int]) -> list[int]:
    strides = [1]
    for m in reversed(sizes[1:]):
        strides.append(strides[-1] * m)
    return strides[::-1]


class MatrixTilt(Tilt):
    """A kernel given by its matrix and the same weighted by d and d^2."""

    def __init__(
        self, slope: float, kernel: Floats, first: Floats, second: Floats, log_scale: float = 0.0
    ) -> None:
        self.slope, self.log_scale = slope, log_scale
        self._kernel, self._first, self._second = kernel, first, second

    @classmethod
    def of(cls, metric: Floats, slope: float) -> MatrixTilt:
        """Make e^(-slope metric), for a metric whose least entry in every row is zero."""
        if math.isinf(slope):  # only the nearest outputs are left
            kernel = (metric == 0.0).astype(np.float64)
            return cls(slope, kernel, np.zeros_like(kernel), np.zeros_like(kernel))
        kernel = np.exp(-slope * metric)
        kernel[kernel < 1e-200] = 0.0  # denormal numbers are slow
        first = kernel * metric
        return cls(slope, kernel, first, first * metric)

    def forward(self, q: Floats, overwrite: bool = False) -> Floats:
        return np.asarray(self._kernel @ q)

    def backward(self, u: Floats, overwrite: bool = False) -> Floats:
        return np.asarray(u @ self._kernel)

    def squares(self, b: Floats) -> Floats:
        return np.asarray(b @ self._kernel**2)

    def distances(self, q: Floats, v: Floats) -> tuple[Floats, Floats]:
        return self._first @ q, self._second @ q

    def distances_back(self, u: Floats, c: Floats) -> Floats:
        return np.asarray(u @ self._first)

    def joint(self, q: Floats) -> Floats:
        """Return q(y) K[x, y]."""
        return np.asarray(self._kernel * q)
