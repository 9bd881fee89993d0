"""Moments of a pair of laws by quadrature: sums over points of the losses, with all errors.

With L = ln P/Q and w complex, Phi(w) = E_Q e^(wL). As E_Q 1 = E_Q e^L = 1,

    Phi(w) - 1 = E_Q g_w(L),    g_w(L) = e^(wL) - 1 - w (e^L - 1),

and g is of second order in small losses: nothing cancels when losses are small and releases many.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastpriv._core.rounding import ULP
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.transform import fits, uniform_sums

Complexes = NDArray[np.complex128]
Rule = TypeVar("Rule")
#: Logarithms of moments, and bounds on their errors.
Moments = tuple[Complexes, Floats]

#: Entries of an array over angles and points that are looked at together.
_BLOCK = 1 << 17
#: Most entries of such an array in all; beyond, equally spaced angles are transformed together.
_WORK = 1 << 21
#: Exponents below this are summed as their excess over one.
_MODEST = 1.0
#: Arguments for which e^z - 1 - z is summed as a series, and its coefficients 1/n!, n = 2, 3, ...
_SMALL = 1.0
#: Where a value x is lost in its error e it is given as 2e: off by 3e + |x|, and so ln (1 + 2.5).
_LOST = math.log(3.5)
_SERIES = [1.0 / math.factorial(n) for n in range(2, 21)]


class TooCostly(Exception):
    """The quadrature would take more points than are worth it, or numbers out of range."""


@contextmanager
def in_range() -> Iterator[None]:
    """Arithmetic that leaves the range of a double proves nothing: it is too costly."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except ArithmeticError:
        raise TooCostly from None


@dataclass(frozen=True, eq=False)
class Nodes:
    """Points of the losses that stand for a law Q, and how far off they are.

    Attributes
    ----------
    logs : ndarray
        Logarithms of the weights under Q.
    losses : ndarray
        Losses L at the points.
    fuzz : ndarray
        Relative errors of the weights.
    off : ndarray
        Absolute errors of the losses.
    remainder : callable
        Bound on the error of the sum for E_Q g_w(L), at an array of |Im w|, times e^-scale.
    extra_p, extra_q : float
        Total masses of P and Q less one, where a measure is not one of laws.
    """

    logs: Floats
    losses: Floats
    fuzz: Floats
    off: Floats
    remainder: Callable[[Floats, float], Floats]
    extra_p: float = 0.0
    extra_q: float = 0.0


class RecentRules:
    """The quadratures that were used last, as many as fit into a number of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0
        self._rules: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], tuple[Rule, int]]) -> Rule:
        """Return a kept rule, or the one that ``make`` returns with its size in bytes."""
        with self._lock:
            if key in self._rules:
                self._rules.move_to_end(key)
                kept: Rule = self._rules[key][0]
                return kept
        rule, size = make()
        with self._lock:
            if size <= self._limit and key not in self._rules:
                self._rules[key] = rule, size
                self._held += size
            while self._held > self._limit:
                self._held -= self._rules.popitem(last=False)[1][1]
        return rule


def log_moments(nodes: Nodes, c: float, angles: Floats) -> tuple[Complexes, Floats]:
    """Return ln Phi(c + i angle) and bounds on its error.

    A computed e^z is off by a few units times 1 + |z|. With |g_w(L)| <= (|w|^2 + |w|) L^2
    max(1, e^(cL), e^L) / 2, the errors of all terms are sums of powers of |w| times sums over
    points that do not depend on the angle.
    """
    L, w = nodes.losses, np.asarray(c + 1j * angles, dtype=np.complex128)
    if len(L) * len(w) > _WORK:
        return _together(nodes, c, angles)
    size = np.abs(w)
    with np.errstate(under="ignore"):
        scale = max(float((nodes.logs + c * L).max()), 0.0)
        weights = np.exp(nodes.logs - scale)
        tilted = np.exp(nodes.logs - scale + c * L)
        plain = np.exp(nodes.logs - scale + np.maximum(L, 0.0))
        top = np.maximum(np.maximum(tilted, weights), plain)
    spread = np.abs(L) * 4.0 * ULP
    rel = (nodes.fuzz + (8.0 + np.sqrt(len(L)) + np.abs(nodes.logs)) * ULP) * tilted
    whole = float(rel.sum()) + size * float(((spread + nodes.off) * tilted).sum())
    # Exponentials that overflow have weights that underflow: those are only summed together.
    if scale <= _MODEST and (abs(c) + 1.0) * float(np.abs(L).max()) < 600.0:
        rounding = _excess_error(nodes, c, size, top) * math.exp(scale)
        rounding += 4.0 * ULP * (size * abs(nodes.extra_p) + (1.0 + size) * abs(nodes.extra_q))
        far = rounding > 2.0 * whole
        if far.any() and not far.all():
            return _joined(nodes, c, angles, far)
        if not far.any():
            return _log1p(
                math.exp(scale)
                * _blocks(w, L, lambda z, v: (_excess(z, v, L) * weights).sum(axis=1))
                + (w * nodes.extra_p + (1.0 - w) * nodes.extra_q),
                rounding
                + nodes.remainder(np.abs(angles), 0.0)
                + len(L) * 2.0**-1060 * (1.0 + size),
            )
    values = _blocks(w, L, lambda z, _: np.exp(nodes.logs - scale + z).sum(axis=1))
    error = whole + nodes.remainder(np.abs(angles), scale) + len(L) * 2.0**-1060
    lost = 2.0 * error >= np.abs(values)
    values = np.where(lost, 2.0 * error, values)
    share = np.where(lost, _LOST, error / np.maximum(np.abs(values) - error, 1e-300))
    return np.asarray(scale + np.log(values), dtype=np.complex128), share + 4.0 * ULP * scale


def _joined(nodes: Nodes, c: float, angles: Floats, far: NDArray[np.bool_]) -> Moments:
    """Moments at small angles, by second order, and at large ones, where that is of no use."""
    logs, errors = np.empty(len(angles), dtype=np.complex128), np.empty(len(angles))
    for part in (far, ~far):
        logs[part], errors[part] = log_moments(nodes, c, angles[part])
    return logs, errors


def _together(nodes: Nodes, c: float, angles: Floats) -> tuple[Complexes, Floats]:
    """The same at angles 0, tau, 2 tau, ... by one Fourier transform.

    Products of moments x_i that are off by e_i are off by at most prod (|x_i| + e_i) - prod |x_i|,
    so that ln (1 + e/|x|) serves as the error of a logarithm, however large it is.
    """
    tau, count = float(angles[min(1, len(angles) - 1)]), len(angles)
    equal = np.array_equal(angles, tau * np.arange(count, dtype=np.float64))
    if not equal or count < 2 or not fits(len(nodes.losses), count):
        raise TooCostly
    L, size = np.abs(nodes.losses), np.abs(c + 1j * angles)
    exponents = nodes.logs + c * nodes.losses
    scale = float(exponents.max())
    with np.errstate(under="ignore"):
        tilted = np.exp(exponents - scale)
    values, error = uniform_sums(nodes.losses, tilted, tau, count)
    unit = nodes.fuzz + (8.0 + np.abs(nodes.logs) + 4.0 * abs(c) * L) * ULP
    off = (L * 8.0 * ULP + nodes.off) * tilted
    errors = error * float(tilted.sum()) + float((unit * tilted).sum()) + size * float(off.sum())
    errors = (errors + nodes.remainder(angles, scale) + len(L) * 2.0**-1060) * (1.0 + 1e-9)
    # A value that is lost in its error is replaced by one of the error's size.
    lost = np.abs(values) < errors
    values, errors = np.where(lost, errors, values), np.where(lost, 2.0 * errors, errors)
    logs = scale + np.log(values)
    return np.asarray(logs, dtype=np.complex128), np.log1p(errors / np.abs(values)) + 8.0 * ULP * (
        1.0 + abs(scale)
    )


def _excess_error(nodes: Nodes, c: float, size: Floats, top: Floats) -> Floats:
    """Bound the error of the sum of weights times g_w(L).

    Where |cL| <= 1 by second order, elsewhere by |g| <= (2 + 2|w|) max(1, e^(cL), e^L).
    """
    L = np.abs(nodes.losses)
    unit = nodes.fuzz + (40.0 + math.sqrt(len(L))) * ULP
    near = np.abs(c) * L <= 1.0
    second = (top * L * L * unit)[near].sum()
    third = (top * L**3)[near].sum() * 24.0 * ULP
    plain = (top * unit)[~near].sum()
    turned = (top * L)[~near].sum() * 24.0 * ULP
    first = (top * L * nodes.off).sum()
    error = (size * size + size) * (0.5 * second + first) + (size**3 + size) * third
    return np.asarray(error + (2.0 + 2.0 * size) * plain + size * turned)


def _blocks(w: Complexes, L: Floats, add: Callable[[Complexes, Complexes], Complexes]) -> Complexes:
    """Sums over points for every w, some rows at a time."""
    result = np.empty(len(w), dtype=np.complex128)
    rows = max(1, _BLOCK // len(L))
    with np.errstate(under="ignore"):
        for start in range(0, len(w), rows):
            part = w[start : start + rows, None]
            result[start : start + rows] = add(part * L, part)
    return result


def _excess(z: Complexes, w: Complexes, L: Floats) -> Complexes:
    """g_w(L) with z = w L."""
    return np.asarray(_second(z) - w * _second(L.astype(np.complex128)))


def _second(z: Complexes) -> Complexes:
    """Return e^z - 1 - z to a few units of |z|^2 max(1, |e^z|) (1 + |z|)."""
    small = np.abs(z) < _SMALL
    if small.all():
        return _series(z)
    result = np.exp(z) - 1.0 - z
    if small.any():
        result[small] = _series(z[small])
    return np.asarray(result)


def _series(z: Complexes) -> Complexes:
    total = np.full_like(z, _SERIES[-1])
    for coefficient in _SERIES[-2::-1]:
        total = total * z + coefficient
    return np.asarray(total * z * z)


def _log1p(z: Complexes, error: Floats) -> tuple[Complexes, Floats]:
    """ln(1 + z) of a z that is off by at most an error; the relative error of 1 + z added."""
    size = np.abs(1.0 + z)
    share = error + 8.0 * ULP * np.abs(z)
    lost = 2.0 * share >= size
    with np.errstate(divide="ignore"):
        logs = np.where(lost, np.log(2.0 * np.maximum(share, 1e-300)), log_one_plus(z))
    rest = np.where(lost, 1.0, size - share)
    return logs, np.where(lost, _LOST, np.minimum(share / rest, 1e300))


def log_one_plus(z: Complexes) -> Complexes:
    """ln(1 + z) to a few units of |z| where z is small."""
    x, y = z.real, z.imag
    small = np.abs(z) < 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        near = 0.5 * np.log1p(np.where(small, x * (2.0 + x) + y * y, 0.0))
        real = np.where(small, near, np.log(np.abs(1.0 + z)))
    return np.asarray(real + 1j * np.arctan2(y, 1.0 + x))


def cumulant(nodes: Nodes, c: float) -> tuple[float, float, float]:
    """Return ln Phi(c) and its first two derivatives, without bounds."""
    logs = nodes.logs + c * nodes.losses
    most = float(logs.max())
    law = np.exp(logs - most)
    total = float(law.sum())
    law /= total
    mean = float((law * nodes.losses).sum())
    variance = float((law * (nodes.losses - mean) ** 2).sum())
    if most > _MODEST:
        return most + math.log(total), mean, variance
    L = nodes.losses
    with np.errstate(over="ignore", invalid="ignore"):
        small = _excess(np.asarray(c * L, dtype=np.complex128)[None, :], np.array([[c + 0j]]), L)
        value = float((small.real[0] * np.exp(nodes.logs)).sum())
    value += c * nodes.extra_p + (1.0 - c) * nodes.extra_q
    known = -1.0 < value < math.inf
    return math.log1p(value) if known else most + math.log(total), mean, variance


def log_sum_above(nodes: Nodes, c: float) -> float:
    """Return an upper bound on ln of the sum over all points of weight e^(cL)."""
    logs = nodes.logs + c * nodes.losses
    most = float(logs.max())
    sizes = np.abs(nodes.logs) + 2.0 * np.abs(c * nodes.losses) + abs(most)
    errors = nodes.fuzz + abs(c) * nodes.off + ULP * (8.0 + len(logs) + sizes)
    with np.errstate(under="ignore"):
        total = float((np.exp(logs - most) * (1.0 + 2.0 * errors)).sum())
    return most + math.log(total) + 8.0 * ULP * (1.0 + abs(most))


def spread(nodes: Nodes, c: float) -> float:
    """Mean distance of the losses from their mean under the law tilted by c, for finite laws.

    A quadrature is good for smooth functions of the loss only, which this is not.
    """
    logs = nodes.logs + c * nodes.losses
    law = np.exp(logs - logs.max())
    law /= law.sum()
    mean = float((law * nodes.losses).sum())
    return float((law * np.abs(nodes.losses - mean)).sum())
