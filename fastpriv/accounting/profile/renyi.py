"""Releases of which only Renyi divergences are known: bounds from above."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fastpriv._core.rounding import LEAST, ULP, raised
from fastpriv.accounting.profile.contour import Term
from fastpriv.accounting.profile.measures import Releases
from fastpriv.accounting.profile.nodes import TooCostly
from fastpriv.accounting.profile.terms import Finite, Ordered

#: Levels beyond this one are not told apart.
_FARTHEST = 1e9


class Moments:
    """Bounds on ln M(s), s > 0: rho-zCDP, or levels at some orders.

    ln M is convex and zero at 0, so between two orders the chord is a bound. It is infinite beyond
    the largest order.
    """

    def __init__(
        self, orders: tuple[float, ...], levels: tuple[float, ...], rho: float, xi: float
    ) -> None:
        self.orders, self.levels, self.rho, self.xi = orders, levels, rho, xi
        self.key: tuple[Any, ...] = ("renyi", orders, levels, rho, xi)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moments) and self.key == other.key

    def log_moment(self, s: float) -> float:
        """Upper bound on ln M(s)."""
        if not self.orders:
            return raised(s * (self.xi + self.rho * (1.0 + s)), 8.0)
        at = [0.0, *(order - 1.0 for order in self.orders)]
        if s > at[-1]:
            return math.inf
        values = [
            0.0,
            *((order - 1.0) * level for order, level in zip(self.orders, self.levels, strict=True)),
        ]
        return raised(float(np.interp(s, at, values)), 16.0)

    @property
    def is_trivial(self) -> bool:
        """Whether neighbours have the same law."""
        return not self.orders and self.rho == 0.0 and self.xi == 0.0


class Chernoff:
    """delta(t) <= M(s) e^(-st) max over x of (1 - e^-x) e^(-sx), the best of all s."""

    def __init__(
        self,
        moments: Sequence[tuple[Moments, int]],
        pairs: Sequence[tuple[Ordered, int]],
        finite: Releases,
    ) -> None:
        self._moments = list(moments)
        self._terms: list[tuple[Term, int]] = [*pairs, *((Finite(m), k) for m, k in finite)]
        self._slack = math.fsum(k * (m.error + 8.0 * ULP) for m, k in finite)
        self._moved = math.fsum(k * m.off for m, k in finite)
        missed = math.fsum(
            -k * math.log1p(-m.infinite) if m.infinite < 1.0 else math.inf for m, k in finite
        )
        self.infinite = -math.expm1(-missed * (1.0 + 1e-12))

    def delta(self, t: float) -> float:
        """Upper bound on delta(t)."""
        t = min(t, _FARTHEST)  # the curve falls
        log = min(self._log(s) - s * t for s in self._tried(lambda s: self._about(s) - s * t))
        if not log < 700.0:
            return 1.0
        # Moments bound no loss: delta is positive, also where it is less than any double.
        finite = max(math.exp(log + 8.0 * ULP * (abs(log) + 1.0)) * (1.0 + 1e-12), LEAST)
        return min(self.infinite + finite, 1.0)

    def epsilon(self, delta: float) -> float:
        """Upper bound on the least t with delta(t) <= delta."""
        rest = delta - raised(self.infinite, 4.0)
        if rest <= 0.0:
            return math.inf
        target = math.log(rest)
        result = [
            (self._log(s) - target) / s
            for s in self._tried(lambda s: (self._about(s) - target) / s)
        ]
        best = min(result)
        return max(best + 16.0 * ULP * (abs(best) + 1.0), 0.0) if math.isfinite(best) else math.inf

    def _about(self, s: float) -> float:
        """Return ln M(s) and the share, without rounding."""
        value = _share(s) + sum(k * part.log_moment(s) for part, k in self._moments)
        try:
            return value + sum(k * term.cumulant(s)[0] for term, k in self._terms)
        except (TooCostly, OverflowError):
            return math.inf

    def _log(self, s: float) -> float:
        """Return ln M(s) and the share, rounded up."""
        value = _share(s) + sum(k * part.log_moment(s) for part, k in self._moments)
        for term, k in self._terms:
            try:
                log, error = term.log_moments(s, np.zeros(1), 1e-16 / k)
            except TooCostly:
                return math.inf
            value += k * (float(log[0].real) + float(error[0]))
        return value + self._slack + s * self._moved + 1e-13 * (1.0 + abs(value))

    def _tried(self, ask: Callable[[float], float]) -> list[float]:
        """Exponents near the best: the orders that are known, and the best of a search."""
        known = [order - 1.0 for part, _ in self._moments for order in part.orders if order > 1.0]
        grid = np.exp(np.linspace(math.log(1e-6), math.log(1e6), 97))
        values = [ask(s) for s in grid.tolist()]
        best = int(np.argmin(values))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])
        for _ in range(60):
            a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
            low, high = (low, b) if ask(a) < ask(b) else (a, high)
        return [0.5 * (low + high), *sorted(known, key=ask)[:4]]


def _share(s: float) -> float:
    return s * math.log(s) - (1.0 + s) * math.log1p(s)
