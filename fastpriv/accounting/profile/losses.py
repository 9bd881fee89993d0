"""Moments of the losses of one step in one direction, by quadrature with error bounds."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastpriv import kernels
from fastpriv._core.rounding import ULP, roundoff
from fastpriv._core.validation import Floats
from fastpriv.accounting.profile.discrete import (
    FINE,
    DiscreteLosses,
    Releases,
    Step,
)

# Moments of a pair of distributions by quadrature: sums over nodes, with bounds on all errors.
#
# With L = ln P/Q and w complex, Phi(w) = E_Q e^(wL). As E_Q 1 = E_Q e^L = 1,
#
#     Phi(w) - 1 = E_Q g_w(L),    g_w(L) = e^(wL) - 1 - w (e^L - 1),
#
# and g is of second order in small losses, so nothing cancels for many steps with small losses.


Complexes = NDArray[np.complex128]
Rule = TypeVar("Rule")
#: Logarithms of moments, and bounds on their errors.
LogMoments = tuple[Complexes, Floats]

#: Maximum number of entries of such an array; above it, one Fourier transform is used.
_WORK = 1 << 21
#: Levels t from which on e^-t is below the rounding of t.
_FAR = 40.0
#: Largest log-scale at which a moment is summed as its excess over one.
_MODEST = 1.0
#: If the error e exceeds |x|/2, x is replaced by 2e. Its error is 3e + |x|, in logs ln(1 + 2.5).
_LOST_LOG_ERROR = math.log(3.5)


class NoBound(Exception):
    """A method gives no bound here."""


class OutOfRange(NoBound):
    """Numbers overflow or lose all their digits, so they yield no bound."""


class TooMuchWork(NoBound):
    """An array would be longer than its limit."""


@contextmanager
def in_range() -> Iterator[None]:
    """Raise OutOfRange if arithmetic overflows."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except ArithmeticError:
        raise OutOfRange from None


@dataclass(frozen=True, eq=False)
class Nodes:
    """Quadrature nodes that represent a distribution Q of losses, with their errors.

    Attributes
    ----------
    logs : ndarray
        Logarithms of the weights under Q.
    losses : ndarray
        Losses L at the nodes.
    fuzz : ndarray
        Relative errors of the weights.
    off : ndarray
        Absolute errors of the losses.
    remainder : callable
        Bound on the error of the sum for E_Q g_w(L), at an array of |Im w|, times e^-scale.
    extra_p, extra_q : float
        Total masses of P and Q minus one, if they are not probability distributions.
    """

    logs: Floats
    losses: Floats
    fuzz: Floats
    off: Floats
    remainder: Callable[[Floats, float], Floats]
    extra_p: float = 0.0
    extra_q: float = 0.0


@cache
def gauss_legendre(count: int) -> tuple[Floats, Floats]:
    """Return the points and weights of the Gauss-Legendre rule on [-1, 1]."""
    at, weights = np.polynomial.legendre.leggauss(count)
    return at, weights


def unsampled_level(t: float, q: float) -> float:
    """Return ln(1 + (e^t - 1)/q): delta(t) with sampling is q times delta there without it."""
    if t > _FAR:
        return t - math.log(q)
    ratio = math.expm1(t) / q
    return math.log1p(ratio) if ratio < math.inf else math.log(math.expm1(t)) - math.log(q)


class RecentRules:
    """Cache of the most recently used quadratures, limited in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0
        self._rules: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], tuple[Rule, int]]) -> Rule:
        """Return the cached rule, or call ``make`` for the rule and its size in bytes."""
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
    """Return ln Phi(c + i angle) and bounds on its error."""
    # A computed e^z has an error of a few units times 1 + |z|. Because of
    # |g_w(L)| <= (|w|^2 + |w|) L^2 max(1, e^(cL), e^L) / 2, the total error is a sum of powers of
    # |w| times sums over nodes that do not depend on the angle.
    L, w = nodes.losses, np.asarray(c + 1j * angles, dtype=np.complex128)
    if len(L) * len(w) > _WORK:
        return _together(nodes, c, angles)
    size, weights, tilted, terms = np.abs(w), np.empty(len(L)), np.empty(len(L)), np.empty(9)
    kernels.moment_terms(
        nodes.logs, L, nodes.fuzz, nodes.off, float(c), ULP, weights, tilted, terms
    )
    if not np.isfinite(terms).all():
        raise OutOfRange
    scale, rel, turned, second, third, plain, far_turned, first, most = terms.tolist()
    whole = rel + size * turned
    # If exponentials overflow, their weights underflow, so both are summed in one exponent below.
    if scale <= _MODEST and (abs(c) + 1.0) * most < 600.0:
        # If |cL| <= 1, errors are of second order; otherwise |g| <= (2 + 2|w|) max(1, e^(cL), e^L).
        rounding = (size * size + size) * (0.5 * second + first)
        rounding += (size**3 + size) * roundoff(24.0 * third)
        rounding += (2.0 + 2.0 * size) * plain + size * roundoff(24.0 * far_turned)
        rounding *= math.exp(scale)
        rounding += roundoff(4.0) * (size * abs(nodes.extra_p) + (1.0 + size) * abs(nodes.extra_q))
        far = rounding > 2.0 * whole
        if far.any() and not far.all():
            return _joined(nodes, c, angles, far)
        if not far.any():
            sums = np.empty((2, len(angles)))
            kernels.excess_sums(L, weights, float(c), np.asarray(angles, dtype=np.float64), sums)
            return log1p_with_error(
                math.exp(scale) * (sums[0] + 1j * sums[1])
                + (w * nodes.extra_p + (1.0 - w) * nodes.extra_q),
                rounding
                + nodes.remainder(np.abs(angles), 0.0)
                + len(L) * 2.0**-1060 * (1.0 + size),
            )
    sums = np.empty((2, len(angles)))
    kernels.turned_sums(L, tilted, np.asarray(angles, dtype=np.float64), sums)
    values = sums[0] + 1j * sums[1]
    error = whole + nodes.remainder(np.abs(angles), scale) + len(L) * 2.0**-1060
    lost = 2.0 * error >= np.abs(values)
    values = np.where(lost, 2.0 * error, values)
    share = np.where(lost, _LOST_LOG_ERROR, error / np.maximum(np.abs(values) - error, 1e-300))
    return np.asarray(scale + np.log(values), dtype=np.complex128), share + roundoff(4.0) * scale


def _joined(nodes: Nodes, c: float, angles: Floats, far: NDArray[np.bool_]) -> LogMoments:
    """Compute moments separately at small angles, to second order, and at large angles."""
    logs, errors = np.empty(len(angles), dtype=np.complex128), np.empty(len(angles))
    for part in (far, ~far):
        logs[part], errors[part] = log_moments(nodes, c, angles[part])
    return logs, errors


def _together(nodes: Nodes, c: float, angles: Floats) -> tuple[Complexes, Floats]:
    """Return the same as ``log_moments`` at angles 0, tau, 2 tau, ..., by one Fourier transform.

    If moments x_i have errors e_i, their product has an error of at most
    prod (|x_i| + e_i) - prod |x_i|. Therefore ln(1 + e/|x|) is a valid error of the logarithm.
    """
    tau, count = float(angles[min(1, len(angles) - 1)]), len(angles)
    equal = np.array_equal(angles, tau * np.arange(count, dtype=np.float64))
    if not equal or count < 2 or not fits(len(nodes.losses), count):
        raise TooMuchWork
    L, size = np.abs(nodes.losses), np.abs(c + 1j * angles)
    exponents = nodes.logs + c * nodes.losses
    scale = float(exponents.max())
    with np.errstate(under="ignore"):
        tilted = np.exp(exponents - scale)
    values, error = uniform_sums(nodes.losses, tilted, tau, count)
    unit = nodes.fuzz + roundoff(8.0 + np.abs(nodes.logs) + 4.0 * abs(c) * L)
    off = (roundoff(L * 8.0) + nodes.off) * tilted
    errors = error * float(tilted.sum()) + float((unit * tilted).sum()) + size * float(off.sum())
    errors = (errors + nodes.remainder(angles, scale) + len(L) * 2.0**-1060) * (1.0 + 1e-9)
    # A value smaller than its error is replaced by the error.
    lost = np.abs(values) < errors
    values, errors = np.where(lost, errors, values), np.where(lost, 2.0 * errors, errors)
    logs = scale + np.log(values)
    return np.asarray(logs, dtype=np.complex128), np.log1p(errors / np.abs(values)) + roundoff(
        8.0
    ) * (1.0 + abs(scale))


def log1p_with_error(z: Complexes, error: Floats) -> tuple[Complexes, Floats]:
    """Return ln(1 + z) and a bound on its error, if z has at most the given error."""
    size = np.abs(1.0 + z)
    share = error + roundoff(8.0) * np.abs(z)
    lost = 2.0 * share >= size
    with np.errstate(divide="ignore"):
        logs = np.where(lost, np.log(2.0 * np.maximum(share, 1e-300)), log_one_plus(z))
    rest = np.where(lost, 1.0, size - share)
    return logs, np.where(lost, _LOST_LOG_ERROR, np.minimum(share / rest, 1e300))


def log_one_plus(z: Complexes) -> Complexes:
    """Return ln(1 + z), to a few units of |z| if z is small."""
    x, y = z.real, z.imag
    small = np.abs(z) < 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        near = 0.5 * np.log1p(np.where(small, x * (2.0 + x) + y * y, 0.0))
        real = np.where(small, near, np.log(np.abs(1.0 + z)))
    return np.asarray(real + 1j * np.arctan2(y, 1.0 + x))


def cumulant(nodes: Nodes, c: float) -> tuple[float, float, float]:
    """Return ln Phi(c) and its first two derivatives, without error bounds."""
    out = np.empty(3)
    extra = c * nodes.extra_p + (1.0 - c) * nodes.extra_q
    kernels.node_cumulant(nodes.logs, nodes.losses, float(c), float(extra), out)
    if not np.isfinite(out).all():
        raise OutOfRange
    value, slope, curve = out.tolist()
    return value, slope, curve


def log_sum_above(nodes: Nodes, c: float) -> float:
    """Return an upper bound on ln of the sum over all nodes of weight times e^(cL)."""
    logs = nodes.logs + c * nodes.losses
    most = float(logs.max())
    sizes = np.abs(nodes.logs) + 2.0 * np.abs(c * nodes.losses) + abs(most)
    errors = nodes.fuzz + abs(c) * nodes.off + roundoff(8.0 + len(logs) + sizes)
    with np.errstate(under="ignore"):
        total = float((np.exp(logs - most) * (1.0 + 2.0 * errors)).sum())
    return most + math.log(total) + roundoff(8.0) * (1.0 + abs(most))


def spread(nodes: Nodes, c: float) -> float:
    """Mean absolute deviation of the losses under the distribution tilted by c.

    Use it for finite distributions only: a quadrature is not accurate for a non-smooth function.
    """
    logs = nodes.logs + c * nodes.losses
    law = np.exp(logs - logs.max())
    law /= law.sum()
    mean = float((law * nodes.losses).sum())
    return float((law * np.abs(nodes.losses - mean)).sum())


# Sums of exponentials over many points, at many equally spaced angles, by one Fourier transform:
#
#     S(v) = sum of w_i e^(i v L_i),   v = 0, tau, 2 tau, ...,   w_i >= 0.
#
# A Gaussian g spreads every point over a grid of M losses with period 2 pi/tau. The transform is
# then divided by the transform g^ of g. With Omega = M tau, Poisson's summation formula gives the
# quotient
#
#     S(v) + sum_(p != 0) S(v + p Omega) g^(v + p Omega) / g^(v),  g^(v) = e^(-48 (v/Omega)^2).
#
# |S| is at most the sum of the weights. For v <= Omega/8, the terms with p != 0 together are at
# most 2.02 e^-36 times this sum. The Gaussian is truncated 13 points from the nearest grid point,
# where it is below e^-37.


#: Minimum number of grid points per angle.
_OVER = 8
#: g^(v) = e^(-_WIDTH (v/Omega)^2), and so g = e^(-_FALL m^2) at m points, times a factor.
_WIDTH = 48.0
_FALL = math.pi**2 / _WIDTH
_HEIGHT = math.sqrt(math.pi / _WIDTH)
#: Number of grid points on either side over which a point is spread.
_REACH = 13
#: Aliasing and truncation error relative to the sum of weights, amplified by at most e^(48/64).
_SPREAD_ERROR = 2.02 * math.exp(-0.75 * _WIDTH) + 4.0 * math.exp(-_FALL * (_REACH + 0.5) ** 2)
#: Maximum number of points per grid point that are summed in double precision.
_CROWDED = 64
#: Maximum number of grid points.
GRID = 1 << 22
#: Maximum number of points spread over the grid.
POINTS = 1 << 20


def fits(points: int, angles: int) -> bool:
    """Whether the transform is within the limits on points and grid points."""
    return points <= POINTS and _length(angles) <= GRID


def _length(angles: int) -> int:
    return 1 << max(6, math.ceil(math.log2(_OVER * angles)))


def uniform_sums(
    losses: Floats, weights: Floats, tau: float, angles: int
) -> tuple[np.ndarray, float]:
    """Return S(v) at v = 0, tau, ..., and an error bound relative to the sum of the weights.

    The bound does not include errors of the losses. The cost is 27 passes over the points and one
    transform of length 8 to 16 times the number of angles.
    """
    order = np.argsort(losses, kind="stable")
    losses, weights = losses[order], weights[order]
    length = _length(angles)
    at = losses * (length * tau / (2.0 * math.pi))
    nearest = np.rint(at)
    rest = at - nearest
    starts = np.flatnonzero(np.diff(nearest, prepend=-math.inf) > 0.0)
    places = (nearest[starts] - nearest[0]).astype(np.int64) + _REACH
    most = int(np.diff(starts, append=len(losses)).max())
    crowded = most > _CROWDED
    # Several periods of the grid, because the losses may span more than one period.
    grid = np.zeros(length * math.ceil((places[-1] + _REACH + 1) / length))
    with np.errstate(under="ignore"):
        middle = weights * np.exp(-_FALL * rest * rest)
        for sign in (1, -1):
            turn = np.exp(2.0 * sign * _FALL * rest)
            part = middle
            for p in range(_REACH + 1):
                if p:
                    part = part * turn
                if p or sign > 0:
                    # If many points share a grid point, their sum needs more digits.
                    each = part.astype(np.longdouble) if crowded else part
                    sums = np.add.reduceat(each, starts).astype(np.float64)
                    grid[places + sign * p] += sums * (_HEIGHT * math.exp(-_FALL * p * p))
    folded = grid.reshape(-1, length).sum(axis=0)
    turns = np.arange(angles, dtype=np.float64) / length
    values = np.conj(np.fft.rfft(folded)[:angles]) * np.exp(_WIDTH * turns**2)
    # The first grid point is not the loss 0.
    begin = 2.0 * math.pi * (((int(nearest[0]) - _REACH) % length) * np.arange(angles) % length)
    values = values * np.exp(1j * (begin / length))
    wraps = 64.0 + len(grid) / length
    unit = roundoff(64.0 + 8.0 * math.log2(length) + wraps) + (FINE if crowded else ULP) * most
    return values, math.exp(_WIDTH / 64.0) * (_SPREAD_ERROR + unit) * (1.0 + 1e-9)


# Base class of pairs of continuous distributions.
#
# A pair (P, Q) is used in both orders. Let Phi(w) = E_Q e^(wL) with L = ln P/Q. The losses of P
# against Q have the moments E_P e^(sL) = Phi(1 + s). The losses of Q against P have the moments
# Phi(-s).


#: Accuracy of moments that guide a search or scale a bound.
ROUGH = 1e-9
#: Exponents at which moments bound a variance, in units of 1 / standard deviation.
_STEPS = 0.1 * 0.25 ** np.arange(5)


@dataclass(frozen=True, eq=False)
class Cells:
    """Partition of the outputs into cells ordered by loss.

    Attributes
    ----------
    losses : ndarray
        Increasing losses at the n edges, with absolute error at most ``off``.
    p, q : ndarray
        Log-masses of the n + 1 cells under P and Q, with relative ``error``. The first and the last
        cell lie beyond the edges; upper bounds suffice for them.
    bounded : bool
        Whether the outer cells are atoms at the first and the last edge.
    """

    losses: Floats
    p: Floats
    q: Floats
    off: float
    error: float
    bounded: bool


class ContinuousStep(Step, ABC):
    """A pair of distributions, represented by the moments of their likelihood ratio.

    ``key`` identifies the pair. ``symmetric`` is whether both orders have the same losses.
    """

    symmetric: bool = False
    #: Whether two databases attain the pair; otherwise it is an upper bound only.
    attained: bool = True
    #: Whether, at each level, some two databases attain the curve of one step.
    tight: bool = True
    #: Largest number of steps whose composed curve has a closed form.
    closed_form_up_to: int = 1
    #: Whether the outputs can be partitioned into ``cells``.
    can_be_cut: bool = True
    #: Whether the largest and the smallest loss are atoms of equal size and opposite sign.
    has_atoms: bool = False
    #: Steps and probabilities, if one step is chosen at random and the choice is public.
    choices: tuple[tuple[float, ContinuousStep], ...] = ()
    #: Relative error of these probabilities.
    slack: float = 0.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ContinuousStep) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def below(self) -> ContinuousStep | None:
        """A pair that two databases attain: this pair, one dominated by it, or None."""
        return self if self.attained else None

    def nodes(self, c: float, angle: float, tolerance: float) -> Nodes:
        """Return a quadrature of Phi on Re w = c up to an angle, to about a tolerance.

        It is needed if a subclass has no closed form of ``log_moments`` and ``cumulant``.
        """
        raise NotImplementedError

    @abstractmethod
    def variation(self, c: float) -> tuple[Floats, Floats]:
        """Return some a, b with |Phi(c + i angle)| <= a + b / angle, relative to Phi(c)."""

    def delta(self, t: float, flipped: bool, count: int = 1) -> tuple[float, float]:
        """Bound delta(t) of ``count`` steps, at most ``closed_form_up_to``, in closed form."""
        raise NotImplementedError

    def cells(self, far: float, count: int) -> Cells:
        """Partition the outputs into cells; the outer two have at most about e^-far of the mass."""
        raise NotImplementedError

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln Phi(c + i angle), and bounds on its error."""
        nodes = self.nodes(c, float(np.abs(angles).max(initial=0.0)), tolerance)
        return log_moments(nodes, c, angles)

    def ceiling(self, c: float, angles: Floats, fine: bool = True) -> Floats:
        """Bound |Phi(c + i angle)| / Phi(c) for each angle and all larger ones.

        If not ``fine``, a cheaper bound will do.
        """
        a, b = _variation(self, c)
        result = np.empty(len(angles))
        kernels.lowest_lines(a, b, angles, result)
        return result

    def cumulant(self, c: float) -> tuple[float, float, float]:
        """Return ln Phi(c) and its first two derivatives; used only to guide the search."""
        return _cumulant(self, c)

    def log_moment_bounds(self, c: float) -> tuple[float, float]:
        """Return certified lower and upper bounds on ln Phi(c)."""
        return _log_moment_bounds(self, c)

    def top(self, flipped: bool) -> float:
        """Largest loss, to a few units."""
        return math.inf

    def witnesses(self) -> list[Releases]:
        """Return losses of attained pairs, if this pair is an envelope of many."""
        return []

    def slope(self, c: float) -> float:
        """Upper bound on the derivative of |Phi(c + i angle)| / Phi(c) in the angle."""
        # It is at most the mean of |L - m| under the tilted distribution, for any m. The square of
        # this mean is at most the mean of (L - m)^2, and for any a,
        # (L - m)^2 <= (e^(a (L - m)) + e^(-a (L - m)) - 2) / a^2.
        _, m, variance = self.cumulant(c)
        if not 0.0 < variance < math.inf:
            raise OutOfRange
        whole = self.log_moment_bounds(c)[0]
        best = math.inf
        for a in (_STEPS / math.sqrt(variance)).tolist():
            right = self.log_moment_bounds(c + a)[1] - whole - a * m
            left = self.log_moment_bounds(c - a)[1] - whole + a * m
            slack = roundoff(8.0) * (abs(whole) + abs(a * m) + 1.0)
            if max(right, left) < 1.0:
                square = math.expm1(right + slack) + math.expm1(left + slack)
                best = min(best, math.sqrt(max(square, 0.0)) / a * (1.0 + roundoff(8.0)))
        return best


@lru_cache(maxsize=1024)
def _cumulant(pair: ContinuousStep, c: float) -> tuple[float, float, float]:
    return cumulant(pair.nodes(c, 0.0, ROUGH), c)


@lru_cache(maxsize=1024)
def _log_moment_bounds(pair: ContinuousStep, c: float) -> tuple[float, float]:
    values, errors = pair.log_moments(c, np.zeros(1), ROUGH)
    value, error = float(values[0].real), float(errors[0])
    return value - error, value + error


@lru_cache(maxsize=64)
def _variation(pair: ContinuousStep, c: float) -> tuple[Floats, Floats]:
    return pair.variation(c)


# Steps in one order of their neighbours, in the form that the contour and the grid use.


@dataclass(frozen=True)
class Directed:
    """A pair in one order: P against Q, or Q against P if flipped."""

    pair: ContinuousStep
    flipped: bool = False

    def _w(self, s: float) -> float:
        return -s if self.flipped else 1.0 + s

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln M(c + i angle), and bounds on its error."""
        values, errors = self.pair.log_moments(self._w(c), angles, tolerance)
        return np.conj(values) if self.flipped else values, errors

    def ceiling(self, c: float, angles: Floats, fine: bool = True) -> Floats:
        """Bound |M(c + i angle)| / M(c) for each angle and all larger ones."""
        return self.pair.ceiling(self._w(c), angles, fine)

    def cumulant(self, s: float) -> tuple[float, float, float]:
        """Return ln M(s) and its first two derivatives."""
        value, slope, curve = self.pair.cumulant(self._w(s))
        return value, -slope if self.flipped else slope, curve

    def slope(self, c: float) -> float:
        """Upper bound on the derivative of |M(c + i angle)| / M(c) in the angle."""
        return self.pair.slope(self._w(c))

    def top(self) -> float:
        """Largest loss, to a few units."""
        return self.pair.top(self.flipped)

    def measure(self, far: float, count: int, up: bool) -> DiscreteLosses:
        """Return discrete losses that bound this step from above or below, on ``count`` cells.

        The upper bound splits the mass of each cell between its edges and keeps the mass under Q.
        The lower bound merges the outputs of each cell and omits the outer cells.
        """
        cells = self.pair.cells(far, count)
        losses, p, q = cells.losses, cells.p, cells.q
        if self.flipped:
            losses, p, q = -losses[::-1], q[::-1], p[::-1]
        return (cells_above if up else cells_below)(
            losses, p, q, cells.off, cells.error, cells.bounded
        )


def cells_above(
    losses: Floats, p: Floats, q: Floats, off: float, error: float, bounded: bool
) -> DiscreteLosses:
    """Split cells between their edges; the outer cells count as the first edge and infinite."""
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        width = np.diff(losses)
        high = -np.expm1(q[1:-1] - p[1:-1] + losses[:-1]) + 4.0 * error + 2.0 * off
        share = np.clip(high / -np.expm1(-np.maximum(width, 1e-300)), 0.0, 1.0)
        up, down = p[1:-1] + np.log(share), p[1:-1] + np.log1p(-share)
    logs = np.full(len(losses), -math.inf)
    logs[1:] = up
    logs[:-1] = np.logaddexp(logs[:-1], down)
    logs[0] = np.logaddexp(logs[0], p[0])
    infinite = 0.0
    if bounded:
        logs[-1] = np.logaddexp(logs[-1], p[-1])
    else:
        infinite = math.exp(max(float(p[-1]) + 0.01, -744.0))
    return _measure(losses, logs, infinite, off, 2.0 * error)


def cells_below(
    losses: Floats, p: Floats, q: Floats, off: float, error: float, bounded: bool
) -> DiscreteLosses:
    """Merge the outputs of each cell; the outer cells are left out unless they are atoms."""
    keep = slice(None) if bounded else slice(1, -1)
    p, q = p[keep], q[keep]
    seen = (p > -math.inf) & (q > -math.inf)
    p, q = p[seen], q[seen]
    result = np.maximum.accumulate(p - q)
    rise = float((result - (p - q)).max(initial=0.0))
    off = 2.0 * error + rise + roundoff(4.0) * float(np.abs(result).max())
    return _measure(result, p, 0.0, off, error)


def _measure(
    losses: Floats, logs: Floats, infinite: float, off: float, error: float
) -> DiscreteLosses:
    """Merge equal losses and omit losses without mass."""
    seen = logs > -math.inf
    losses, logs = losses[seen], logs[seen]
    starts = np.flatnonzero(np.diff(losses, prepend=-math.inf) > 0.0)
    logs = np.logaddexp.reduceat(logs, starts)
    error += roundoff(16.0 + 4.0 * float(np.abs(logs).max(initial=0.0)))
    return DiscreteLosses(losses[starts], logs.astype(np.longdouble), infinite, error, off=off)


@dataclass(frozen=True, eq=False)
class Discrete:
    """A measure on finitely many losses; callers account for its ``error`` and ``off``."""

    given: DiscreteLosses
    nodes: Nodes = field(init=False)

    def __post_init__(self) -> None:
        losses = self.given.losses.astype(np.longdouble) + np.longdouble(self.given.shift)
        p = np.exp(self.given.logs).sum() - 1.0
        q = np.exp(self.given.logs - losses).sum() - 1.0
        logs = (self.given.logs - losses).astype(np.float64)
        shown = losses.astype(np.float64)
        fuzz = roundoff(2.0) * (2.0 + np.abs(logs))
        slack = len(losses) * 4.0 * FINE
        nodes = Nodes(
            logs,
            shown,
            fuzz,
            roundoff(np.abs(shown)),
            lambda angles, scale: (1.0 + 2.0 * np.abs(angles)) * slack * math.exp(-scale),
            float(p),
            float(q),
        )
        object.__setattr__(self, "nodes", nodes)

    def log_moments(self, c: float, angles: Floats, tolerance: float) -> tuple[Complexes, Floats]:
        """Return ln M(c + i angle), and bounds on its error."""
        values, errors = log_moments(self.nodes, 1.0 + c, angles)
        return values, errors + 4.0 * FINE * (1.0 + c) * len(self.given.losses)

    def ceiling(self, c: float, angles: Floats, fine: bool = True) -> Floats:
        """Return the trivial bound 1, because discrete losses may realign at any angle."""
        return np.ones(len(angles))

    def cumulant(self, s: float) -> tuple[float, float, float]:
        """Return ln M(s) and its first two derivatives."""
        return cumulant(self.nodes, 1.0 + s)

    def top(self) -> float:
        """Largest loss, to a few units."""
        return self.given.shift + self.given.top + self.given.off

    def slope(self, c: float) -> float:
        """Upper bound on the derivative of |M(c + i angle)| / M(c) in the angle."""
        return spread(self.nodes, 1.0 + c) * 1.01
