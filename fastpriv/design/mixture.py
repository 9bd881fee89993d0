"""The rate-distortion optimum at a slope or a distortion, by an interior-point method.

At slope s the optimal output distribution q minimises sum q - sum p ln(K q) over q >= 0, K = e^(-s
d): the likelihood of a mixture. With c = K^T (p / K q), q is optimal if c <= 1, and c = 1 where q >
0. Blahut's iteration q <- q c converges slowly if outputs vanish. Here Newton's method follows the
central path c = 1 - z, q z = mu with mu -> 0. Scaled by sqrt(q) its matrix is B^T B + diag(z),
where B[x, y] = sqrt(p(x) q(y)) K[x, y] / (K q)(x) has norm one. So conjugate gradients with the
diagonal as preconditioner need few products, each a transform. If the distortion is given, the
slope is one more unknown of the same system. K weighted by d and by d^2 gives the derivatives of K
q by the slope.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fastpriv import kernels
from fastpriv._core.rounding import roundoff
from fastpriv._core.threads import split
from fastpriv._core.transform import mix
from fastpriv._core.validation import Floats
from fastpriv.design.certificate import Progress
from fastpriv.design.engines.interior import step_length
from fastpriv.design.problem import Limits

#: Lines of all axes up to this many entries are summed together.
_BLOCK = 1 << 15
#: From this slope on, 1/(e^slope - 1) equals e^-slope to all digits, and e^slope may overflow.
_STEEP = 700.0
#: Entries of a kernel below this are set to 0, to avoid denormal numbers.
_TINY = 1e-200
#: Maximum number of steps.
_MAX_STEPS = 300
#: Steps in which the gap must shrink by a tenth; otherwise rounding dominates.
_PATIENCE = 40
#: Share of the distance to the boundary that a step covers.
_STEP = 0.99
#: Relative residual at which conjugate gradients stop.
_RESIDUAL = 0.05
#: Products after which conjugate gradients stop.
_MAX_PRODUCTS = 500
#: Fewest entries for a separate thread.
_GRAIN = 1 << 15


class Tilt(ABC):
    """One kernel K, up to the factor e^log_scale that avoids overflow and underflow."""

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

    Both K and its derivative are products over records of combinations of I and J (all ones), which
    commute. So K weighted by d is G K with G = a sum_i (J_i/g_i - I), a = 1/(e^slope - 1) and g_i =
    1 + (m_i - 1) e^-slope. The weighted sums follow from v by sums along lines.
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
        self._a = 1.0 / math.expm1(slope) if slope < _STEEP else r
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
        # d^2 - d counts ordered pairs of changed records: (sum G_i)^2 without the squares G_i^2.
        same = self._line_sums(v, a * a * (m / g - 2.0) / g) + len(m) * a * a * v
        second = self.distances_back(q, first) - same + first
        return first, second

    def distances_back(self, u: Floats, c: Floats) -> Floats:
        return self._line_sums(c, self._a / self._g) - len(self._g) * self._a * c

    def _line_sums(self, v: Floats, weights: Floats) -> Floats:
        """Return the sum of weights[i] times the sum of v along axis i, as a vector."""
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
    """A kernel given by its matrix, and by the matrix weighted by d and d^2."""

    def __init__(
        self, slope: float, kernel: Floats, first: Floats, second: Floats, log_scale: float = 0.0
    ) -> None:
        self.slope, self.log_scale = slope, log_scale
        self._kernel, self._first, self._second = kernel, first, second

    @classmethod
    def of(cls, metric: Floats, slope: float) -> MatrixTilt:
        """Make e^(-slope metric), for a metric whose smallest entry in every row is zero."""
        if math.isinf(slope):  # only the nearest outputs are left
            kernel = (metric == 0.0).astype(np.float64)
            return cls(slope, kernel, np.zeros_like(kernel), np.zeros_like(kernel))
        kernel = np.exp(-slope * metric)
        kernel[kernel < _TINY] = 0.0
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


@dataclass(frozen=True)
class Fit:
    """An output distribution for a slope, and its proved bound.

    Attributes
    ----------
    law : ndarray
        The output distribution q, positive, summing to one.
    slope : float
        Its slope.
    value : float
        I(X; Y) + slope E d(X, Y) of the channel q tilted by the slope.
    bound : float
        Lower bound on I(X; Y) + slope E d(X, Y) of any channel.
    distortion : float
        E d(X, Y) of that channel, if requested.
    """

    law: Floats
    slope: float
    value: float
    bound: float
    distortion: float = math.nan

    def gap(self, target: float | None) -> float:
        """Bound the distance of the channel from the optimum at its slope or at the distortion."""
        missed = 0.0 if target is None else self.slope * abs(target - self.distortion)
        return self.value - self.bound + missed


def certify(p: Floats, q: Floats, tilt: Tilt, v: Floats, c: Floats) -> tuple[float, float]:
    """Return Blahut's bounds on min I + slope E d, rounded outwards.

    For q of any scale: with v = K q and c = K^T (p/v), every channel has at least -sum p ln v - ln
    max c. The channel q K / v has exactly -sum p ln v - sum q c ln c.
    """
    logs = _dot(p, np.log(v)) + tilt.log_scale
    with np.errstate(divide="ignore", invalid="ignore"):
        tails = float((q * np.where(c > 0.0, c * np.log(c), 0.0)).sum())
    # v and c are sums of non-negative products: their relative errors are a few ulp per term.
    slack = roundoff(8.0) * (_terms(len(q)) + abs(logs) + abs(tilt.log_scale) + abs(tails) + 4.0)
    return -logs - tails + slack, -logs - math.log(float(c.max())) - slack


def _terms(count: int) -> float:
    """Bound the number of roundings in a sum of that many terms, pairwise or by axes."""
    return float(min(count, 1024)) if count <= 4096 else 64.0


def fit(
    p: Floats,
    family: Family,
    outputs: int,
    slope: float,
    target: float | None,
    limits: Limits,
) -> Fit:
    """Find the optimal output distribution at a slope, or at a distortion.

    If a distortion is the ``target``, ``slope`` is the start. Stops at a certified gap in nats, at
    the limit of rounding, or when the time is over. Returns the best iterate.
    """
    tilt = family(slope)
    q = np.full(outputs, 1.0 / outputs)
    v = tilt.forward(q)
    c = tilt.backward(p / v, overwrite=True)
    z = np.maximum(1.0 - c, 0.0) + 0.1
    along: Floats | None = None  # derivative of q / sqrt(q) by the slope
    first = Fit(q, slope, math.inf, -math.inf)
    progress = Progress(0.0, limits.clock, first, patience=_PATIENCE, absolute=limits.gap)
    length = 1.0
    for step in range(_MAX_STEPS):
        u = p / v
        value, bound = certify(p, q, tilt, v, c)
        result = Fit(q, tilt.slope, value, bound)
        if target is not None:
            once, second = tilt.distances(q, v)
            mean = once / v
            result = Fit(q, tilt.slope, value, bound, _dot(p, mean))
        if not progress.offer(result, result.gap(target), 0.0):
            break
        mu = _dot(q, z) / outputs * (max(0.05, (1.0 - length) ** 3) if step else 1.0)
        root = np.sqrt(q)
        newton = ConjugateGradients(tilt, root, u / v, z, 1.0 / (q * tilt.squares(u / v) + z))
        move = newton.solve(root * (c - 1.0) + mu / root)
        turn = 0.0
        if target is not None:
            pull = root * (tilt.distances_back(u, c) - tilt.backward(u * mean))
            along = newton.solve(pull, along)
            curvature = _dot(p, np.maximum(second / v - mean * mean, 0.0)) + _dot(pull, along)
            miss = _dot(pull, move) + result.distortion - target
            # The slope is so steep that the distortion no longer changes: only the sign is used.
            turn = miss / curvature if curvature > 0.0 else math.copysign(math.inf, miss)
            turn = min(max(turn, -0.5 * tilt.slope), tilt.slope)
            move -= turn * along
        move *= root
        push = (mu - z * (q + move)) / q
        length = step_length(q, move, _STEP)
        q = q + length * move
        dual = step_length(z, push, _STEP)
        z += dual * push
        if turn:
            tilt = family(tilt.slope + length * turn)
        length = min(length, dual)
        v = tilt.forward(q)
        c = tilt.backward(p / v, overwrite=True)
    best = progress.point
    return replace(best, law=best.law / best.law.sum())


def _dot(a: Floats, b: Floats) -> float:
    """Return the sum of a b, pairwise, without BLAS threads."""
    return float((a * b).sum())


class ConjugateGradients:
    """The matrix S K^T diag(b) K S + diag(z) with S = diag(root), and its diagonal's inverse."""

    def __init__(self, tilt: Tilt, root: Floats, b: Floats, z: Floats, inverse: Floats) -> None:
        self._tilt, self._root, self._b, self._z, self._inverse = tilt, root, b, z, inverse

    def _product(self, t: Floats) -> tuple[Floats, float]:
        """Return the matrix times t, and its product with t."""
        out = np.empty_like(t)
        _each(kernels.multiply, self._root, t, out)
        out = self._tilt.forward(out, overwrite=True)
        _each(kernels.multiply, out, self._b, out)
        out = self._tilt.backward(out, overwrite=True)
        return out, math.fsum(_each(kernels.finish_product, out, self._root, self._z, t))

    def solve(self, right: Floats, start: Floats | None = None) -> Floats:
        """Solve by conjugate gradients, from a start if one is given."""
        t = np.zeros_like(right) if start is None else start.copy()
        r = right.copy() if start is None else right - self._product(t)[0]
        direction = self._inverse * r
        size = _dot(r, direction)
        enough = _RESIDUAL**2 * _dot(right, self._inverse * right)
        for _ in range(_MAX_PRODUCTS):
            if size <= enough:
                break
            product, curvature = self._product(direction)
            if not curvature > 0.0:
                break
            step = size / curvature
            parts = _each(kernels.descend, t, r, direction, product, self._inverse, step)
            size, before = math.fsum(parts), size
            _each(kernels.turn, direction, r, self._inverse, size / before)
        return t


def _each(kernel: Any, first: Floats, *others: Any) -> list[Any]:
    """Run a kernel over all entries, split over threads if there are enough."""
    return split(partial(kernel, first, *others), len(first), _GRAIN)
